/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * New slabs: pages, tags, objects in a shuffled order.
 *
 * A slab of the preferred order is asked for without effort, one of the least
 * order with all that the flags allow (behaviour 4.1).  It belongs to nobody but
 * its maker until mf_slab_enter().
 *
 * Locks: none is held.
 */
#include "slab/slab_internal.h"

/* --- pages --- */

static bool take_pages(struct mf_slab_work *w, memfs_gfp gfp, unsigned order, memfs_pfn *pfn)
{
	struct mf_slabs *slabs = w->cache->slabs;
	struct mf_page_request request = {
		.gfp = gfp, .order = order, .node = w->node, .cpu = MF_CPU_OF_TASK
	};

	if (mf_fault_hit(slabs->fault, MF_FAULT_slab_new))
		return false;
	if (w->node == MF_NODE_BY_POLICY)
		return !mf_page_alloc_simple(w->place, gfp, order, pfn);
	return !mf_page_alloc(slabs->page, w->place, &request, pfn);
}

static bool take_block(struct mf_slab_work *w, unsigned *order, memfs_pfn *pfn)
{
	const struct mf_slab_geometry *geometry = &w->cache->geometry;
	memfs_gfp gfp = (w->gfp & ~MEMFS___GFP_ZERO) | w->cache->gfp;
	const memfs_gfp effort = MEMFS___GFP_DIRECT_RECLAIM | MEMFS___GFP_NOFAIL;

	*order = geometry->order;
	if (geometry->order > geometry->min_order) {
		if (take_pages(w,
			       (gfp & ~effort) | MEMFS___GFP_NOWARN | MEMFS___GFP_NORETRY |
				       MEMFS___GFP_NOMEMALLOC,
			       *order, pfn))
			return true;
		*order = geometry->min_order;
	}
	return take_pages(w, gfp, *order, pfn);
}

/* --- objects --- */

static unsigned gcd(unsigned a, unsigned b)
{
	while (b) {
		unsigned rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Every object once: from a drawn start in drawn steps that share no factor with their number. */
struct mf_slab_fresh mf_slab_shuffle(unsigned objects, uint64_t drawn)
{
	unsigned step = (unsigned)((drawn >> 32) % objects) | 1;

	/* Of a power of two any odd step will do. */
	while (objects & (objects - 1) && gcd(step, objects) != 1)
		step += 2;
	return (struct mf_slab_fresh){ .left = (uint16_t)objects,
				       .of = (uint16_t)objects,
				       .at = (uint16_t)(drawn % objects),
				       .step = (uint16_t)(step % objects) };
}

/* With debugging every object is checked on its way, so the list is there from the start. */
static void link_objects(struct mf_cache *cache, uint32_t pfn)
{
	struct mf_slab *slab = mf_slab_at(cache->slabs, pfn);
	struct mf_slab_fresh fresh =
		mf_slab_shuffle(slab->objects, cache->secret ^ (uint64_t)pfn * UINT64_C(0x9e3779b97f4a7c15));
	void *list = NULL;

	while (fresh.left) {
		void *object = mf_slab_next_fresh(cache, pfn, &fresh);

		mf_slab_set_next_free(cache, object, list);
		list = object;
	}
	slab->freelist = list;
}

static void construct_objects(struct mf_cache *cache, uint32_t pfn)
{
	struct mf_slab_fresh fresh = mf_slab_shuffle(mf_slab_at(cache->slabs, pfn)->objects, 0);

	while (cache->ctor && fresh.left)
		cache->ctor(mf_slab_next_fresh(cache, pfn, &fresh));
}

uint32_t mf_slab_new(struct mf_slab_work *w)
{
	struct mf_cache *cache = w->cache;
	struct mf_slabs *slabs = cache->slabs;
	struct mf_slab *slab;
	unsigned order;
	memfs_pfn pfn;
	int node;

	if (!take_block(w, &order, &pfn))
		return 0;
	node = mf_page_node(slabs->page, pfn.v);
	slab = mf_slab_at(slabs, pfn.v);
	*slab = (struct mf_slab){
		.objects = (uint16_t)mf_slab_objects(cache->geometry.size, order),
		.cache = cache->id,
		.order = (uint8_t)order,
		.state = MF_SLAB_NEW,
		.node = (uint8_t)node,
	};
	for (uint32_t page = 1; page < UINT32_C(1) << order; page++)
		if (slabs->slab[pfn.v + page].cache != pfn.v)
			slabs->slab[pfn.v + page].cache = pfn.v;
	for (uint32_t page = 0; page < UINT32_C(1) << order; page++)
		__atomic_store_n(&slabs->tags[pfn.v + page], mf_slab_tag(cache, node), __ATOMIC_RELEASE);
	slab->whole = !mf_cache_debugs(cache);
	if (!slab->whole)
		mf_debug_init_slab(cache, pfn.v);
	construct_objects(cache, pfn.v);
	if (!slab->whole)
		link_objects(cache, pfn.v);
	return pfn.v + 1;
}
