/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pool of empty sheaves, for all caches of an engine.
 *
 * Memory comes from the platform in chunks, never from the heap, which a signal
 * handler may have interrupted, and is cut into sheaves of a few sizes.  It is
 * not given back before the end: a sequence that looks at a sheaf too late finds
 * memory there and commits nothing.
 *
 * Invariant: a sheaf of the pool is on one list: `returned`, or that of its size.
 *
 * Locks: SHEAVES for the lists by size and the chunks; `returned` has none.
 */
#include "slab/slab_internal.h"

#include <string.h>

/*
 * Sheaves of a kind have one size, a whole number of cache lines; memory is cut
 * in rising order, so that the host supplies only what is used.
 */
static const uint16_t class_room[MF_SHEAF_CLASSES] = { 5, 13, 29, 61, 125, 261 };

_Static_assert(MF_SHEAF_MOST <= 261, "the largest kind holds any sheaf");

#define CHUNK_BYTES ((size_t)256 << 10)

struct mf_sheaf_chunk {
	struct mf_sheaf_chunk *next;
} __attribute__((aligned(64)));

static unsigned class_of(unsigned room)
{
	unsigned kind = 0;

	while (class_room[kind] < room)
		kind++;
	return kind;
}

static size_t class_bytes(unsigned kind)
{
	return (sizeof(struct mf_sheaf) + class_room[kind] * sizeof(void *) + 63) & ~(size_t)63;
}

/* The pool's lock is held. */
static bool add_chunk(struct mf_slabs *slabs)
{
	struct mf_sheaf_chunk *chunk = slabs->plat->ops->meta_alloc(slabs->plat, CHUNK_BYTES);

	if (!chunk)
		return false;
	chunk->next = slabs->chunks;
	slabs->chunks = chunk;
	slabs->chunk_used = sizeof(*chunk);
	return true;
}

/* The pool's lock is held: what came back since is sorted by size. */
static void sort_returned(struct mf_slabs *slabs)
{
	struct mf_sheaf *sheaf = NULL, *next;

	if (__atomic_load_n(&slabs->returned, __ATOMIC_RELAXED))
		sheaf = __atomic_exchange_n(&slabs->returned, NULL, __ATOMIC_ACQUIRE);
	for (; sheaf; sheaf = next) {
		unsigned kind = class_of(sheaf->room);

		next = sheaf->next;
		sheaf->next = slabs->empty[kind];
		slabs->empty[kind] = sheaf;
	}
}

/* The pool's lock is held. */
static struct mf_sheaf *cut(struct mf_slabs *slabs, unsigned kind)
{
	size_t bytes = class_bytes(kind);
	struct mf_sheaf *sheaf;

	if (!slabs->empty[kind])
		sort_returned(slabs);
	sheaf = slabs->empty[kind];
	if (sheaf) {
		slabs->empty[kind] = sheaf->next;
		return sheaf;
	}
	if ((!slabs->chunks || slabs->chunk_used + bytes > CHUNK_BYTES) && !add_chunk(slabs))
		return NULL;
	sheaf = (struct mf_sheaf *)((char *)slabs->chunks + slabs->chunk_used);
	slabs->chunk_used += bytes;
	return sheaf;
}

static bool lock_pool(struct mf_slabs *slabs, bool only_try)
{
	if (only_try)
		return mf_lock_try(&slabs->sheaves_lock);
	mf_lock_acquire(&slabs->sheaves_lock);
	return true;
}

struct mf_sheaf *mf_sheaf_new(struct mf_slabs *slabs, unsigned room, bool only_try)
{
	struct mf_sheaf *sheaf;

	if (mf_fault_hit(slabs->fault, MF_FAULT_sheaf_alloc) || !lock_pool(slabs, only_try))
		return NULL;
	sheaf = cut(slabs, class_of(room));
	mf_lock_release(&slabs->sheaves_lock);
	if (!sheaf)
		return NULL;
	__atomic_store_n(&sheaf->word, 0, __ATOMIC_RELAXED);
	sheaf->room = (uint16_t)room;
	sheaf->start = 0;
	sheaf->next = NULL;
	return sheaf;
}

/* Without the lock: a handler may have interrupted its holder, and no sheaf is lost for that. */
void mf_sheaf_free(struct mf_slabs *slabs, struct mf_sheaf *sheaf)
{
	struct mf_sheaf *next = __atomic_load_n(&slabs->returned, __ATOMIC_RELAXED);

	do
		sheaf->next = next;
	while (!__atomic_compare_exchange_n(&slabs->returned, &next, sheaf, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED));
}

void mf_sheaf_pool_destroy(struct mf_slabs *slabs)
{
	while (slabs->chunks) {
		struct mf_sheaf_chunk *chunk = slabs->chunks;

		slabs->chunks = chunk->next;
		slabs->plat->ops->meta_free(slabs->plat, chunk, CHUNK_BYTES);
	}
	memset(slabs->empty, 0, sizeof(slabs->empty));
	slabs->returned = NULL;
}
