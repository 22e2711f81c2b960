/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects by size: the caches of the kmalloc classes, and whole blocks of pages
 * above the largest of them.
 *
 * What an address is, its page's tag tells: an object of the cache with that
 * id, or the first page of a block of that order (MF_TAG_LARGE).  The other
 * pages of a block have no tag, so that only its start is accepted.
 *
 * Zero bytes are an address that is no memory's and may be freed, as in the
 * kernel.
 *
 * Locks: none of its own.
 */
#include "base/guess.h"
#include "slab/object.h"

#include <string.h>

#define ZERO_BYTES ((void *)16)

/* --- blocks of pages --- */

static void *alloc_large(struct mf_slabs *slabs, struct mf_placement *place, uint64_t size, memfs_gfp gfp,
			 int node)
{
	struct mf_page_request request = {
		.gfp = gfp,
		.order = mf_page_order(((size - 1) >> MEMFS_PAGE_SHIFT) + 1),
		.node = node,
		.cpu = MF_CPU_OF_TASK,
	};
	memfs_pfn page;

	if (mf_page_alloc(slabs->page, place, &request, &page))
		return NULL;
	__atomic_store_n(&slabs->tags[page.v], MF_TAG_LARGE | request.order, __ATOMIC_RELAXED);
	return mf_page_address(slabs->page, page.v);
}

/* Whoever takes the tag away gives the block back: of two at once one is refused. */
static int free_large(struct mf_slabs *slabs, const struct mf_placement *place, void *object, uint32_t tag)
{
	uint64_t offset = (uint64_t)((char *)object - slabs->base);
	memfs_pfn page = { (uint32_t)(offset >> MEMFS_PAGE_SHIFT) };

	if (offset & (MEMFS_PAGE_SIZE - 1) ||
	    !__atomic_compare_exchange_n(&slabs->tags[page.v], &tag, 0, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return mf_slab_refuse(slabs, NULL, object, "no start of a block");
	mf_page_free(place, page, tag & ~MF_TAG_LARGE);
	return 0;
}

/* --- by size --- */

static __attribute__((noinline)) void *kmalloc_other(struct mf_slabs *slabs, struct mf_placement *place,
						     uint64_t size, memfs_gfp gfp, int node,
						     const void *caller)
{
	if (!size)
		return ZERO_BYTES;
	if (size > mf_kmalloc_sizes[MF_NR_KMALLOC - 1])
		return alloc_large(slabs, place, size, gfp, node);
	return mf_object_alloc_slow(slabs->kmalloc[mf_kmalloc_class_of(size)], place, gfp, node, caller);
}

void *mf_kmalloc(struct mf_slabs *slabs, struct mf_placement *place, uint64_t size, memfs_gfp gfp, int node)
{
	void *object;

	if (__builtin_expect(size - 1 < 8192 && node == MF_NODE_BY_POLICY && !(gfp & MEMFS___GFP_ZERO), 1) &&
	    mf_object_pop(slabs->rseq, slabs->kmalloc[mf_kmalloc_class_of(size)], place, &object))
		return object;
	return kmalloc_other(slabs, place, size, gfp, node, __builtin_return_address(0));
}

static struct mf_cache *cache_of_tag(const struct mf_slabs *slabs, uint32_t tag)
{
	return tag && !(tag & MF_TAG_LARGE)
		       ? __atomic_load_n(&slabs->by_id[tag & MF_TAG_ID], __ATOMIC_ACQUIRE)
		       : NULL;
}

static __attribute__((noinline)) int kfree_other(struct mf_slabs *slabs, const struct mf_placement *place,
						 void *object, uint32_t tag, const void *caller)
{
	struct mf_cache *cache = cache_of_tag(slabs, tag);

	if (!object || object == ZERO_BYTES)
		return 0;
	if (tag & MF_TAG_LARGE)
		return free_large(slabs, place, object, tag);
	if (!cache)
		return mf_slab_refuse(slabs, NULL, object, "no object");
	/* The class was guessed wrong, or it is no class at all. */
	if (mf_object_push(slabs->rseq, cache, place, object, tag))
		return 0;
	return mf_object_free_slow(cache, place, object, caller);
}

/*
 * Why kfree guesses.  Which sheaf an object goes to hangs on a chain of loads
 * that begins at its address, and the next allocation waits for the end of it.
 * A branch ends the chain: the processor guesses the class and goes on with
 * addresses it knows.  A wrong class costs time only, for the tag is compared.
 */

/* The caches made first have the ids from 1 on, in the order of size. */
static inline unsigned guess_class(uint32_t id)
{
#define GUESS(class) \
	case (class) + 1: \
		return mf_guess(class)
	switch (id) {
		GUESS(0);
		GUESS(1);
		GUESS(2);
		GUESS(3);
		GUESS(4);
		GUESS(5);
		GUESS(6);
		GUESS(7);
		GUESS(8);
		GUESS(9);
		GUESS(10);
		GUESS(11);
	default:
		return mf_guess(12);
	}
#undef GUESS
}

int mf_kfree(struct mf_slabs *slabs, const struct mf_placement *place, void *object)
{
	uint32_t tag = mf_slab_tag_of(slabs, object);

	if (__builtin_expect(mf_object_push(slabs->rseq, slabs->kmalloc[guess_class(tag & MF_TAG_ID)], place,
					    object, tag),
			     1))
		return 0;
	return kfree_other(slabs, place, object, tag, __builtin_return_address(0));
}

/* --- what there is --- */

struct mf_cache *mf_cache_of(struct mf_slabs *slabs, const void *object)
{
	return cache_of_tag(slabs, mf_slab_tag_of(slabs, object));
}

uint64_t mf_ksize(struct mf_slabs *slabs, const void *object)
{
	uint32_t tag = mf_slab_tag_of(slabs, object);
	struct mf_cache *cache = cache_of_tag(slabs, tag);

	if (tag & MF_TAG_LARGE)
		return UINT64_C(4096) << (tag & ~MF_TAG_LARGE);
	return cache ? cache->geometry.object_size : 0;
}

void *mf_krealloc(struct mf_slabs *slabs, struct mf_placement *place, void *object, uint64_t size,
		  memfs_gfp gfp)
{
	uint64_t old = mf_ksize(slabs, object);
	void *new;

	if (!size) {
		mf_kfree(slabs, place, object);
		return ZERO_BYTES;
	}
	if (object && object != ZERO_BYTES && !old) {
		mf_slab_refuse(slabs, NULL, object, "no object");
		return NULL;
	}
	if (old >= size)
		return object;
	new = mf_kmalloc(slabs, place, size, gfp, MF_NODE_BY_POLICY);
	if (!new || !old)
		return new;
	memcpy(new, object, old);
	mf_kfree(slabs, place, object);
	return new;
}
