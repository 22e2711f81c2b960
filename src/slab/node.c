/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A cache's slabs of one node: the list of those with free objects, the count
 * of all, and the stock of full sheaves.
 *
 * Invariants: nr_partial slabs are linked from head to tail, all of state NODE;
 * with debugging the full ones are linked from full.  A slab that is discarded
 * is in no count and on no list, and reaches the page allocator once no lock is
 * held.
 *
 * Locks: the node's, for everything here but mf_slab_bury().
 */
#include "slab/slab_internal.h"

bool mf_node_lock(struct mf_cache_node *n, bool only_try)
{
	if (only_try)
		return mf_lock_try(&n->lock);
	mf_lock_acquire(&n->lock);
	return true;
}

/* --- the partial list --- */

static void set_partial(struct mf_cache_node *n, uint64_t nr)
{
	__atomic_store_n(&n->nr_partial, nr, __ATOMIC_RELAXED);
}

void mf_node_add_partial(struct mf_slabs *slabs, struct mf_cache_node *n, uint32_t pfn, bool tail)
{
	struct mf_slab *slab = mf_slab_at(slabs, pfn);

	slab->state = MF_SLAB_NODE;
	slab->prev = tail ? n->tail : 0;
	slab->next = tail ? 0 : n->head;
	if (slab->prev)
		mf_slab_at(slabs, mf_slab_pfn(slab->prev))->next = pfn + 1;
	else
		n->head = pfn + 1;
	if (slab->next)
		mf_slab_at(slabs, mf_slab_pfn(slab->next))->prev = pfn + 1;
	else
		n->tail = pfn + 1;
	set_partial(n, n->nr_partial + 1);
}

void mf_node_remove_partial(struct mf_slabs *slabs, struct mf_cache_node *n, uint32_t pfn)
{
	struct mf_slab *slab = mf_slab_at(slabs, pfn);

	if (slab->prev)
		mf_slab_at(slabs, mf_slab_pfn(slab->prev))->next = slab->next;
	else
		n->head = slab->next;
	if (slab->next)
		mf_slab_at(slabs, mf_slab_pfn(slab->next))->prev = slab->prev;
	else
		n->tail = slab->prev;
	slab->prev = slab->next = 0;
	set_partial(n, n->nr_partial - 1);
}

void mf_node_add_full(struct mf_slabs *slabs, struct mf_cache_node *n, uint32_t pfn)
{
	struct mf_slab *slab = mf_slab_at(slabs, pfn);

	slab->state = MF_SLAB_FULL;
	slab->prev = 0;
	slab->next = n->full;
	if (n->full)
		mf_slab_at(slabs, mf_slab_pfn(n->full))->prev = pfn + 1;
	n->full = pfn + 1;
}

void mf_node_remove_full(struct mf_slabs *slabs, struct mf_cache_node *n, uint32_t pfn)
{
	struct mf_slab *slab = mf_slab_at(slabs, pfn);

	if (slab->prev)
		mf_slab_at(slabs, mf_slab_pfn(slab->prev))->next = slab->next;
	else
		n->full = slab->next;
	if (slab->next)
		mf_slab_at(slabs, mf_slab_pfn(slab->next))->prev = slab->prev;
	slab->prev = slab->next = 0;
}

/* --- the end of a slab --- */

void mf_node_discard(struct mf_cache *cache, struct mf_cache_node *n, uint32_t pfn, struct mf_slab_dead *dead)
{
	struct mf_slab *slab = mf_slab_at(cache->slabs, pfn);

	__atomic_store_n(&n->nr_slabs, n->nr_slabs - 1, __ATOMIC_RELAXED);
	__atomic_store_n(&n->nr_pages, n->nr_pages - (UINT64_C(1) << slab->order), __ATOMIC_RELAXED);
	__atomic_store_n(&n->total_objects, n->total_objects - slab->objects, __ATOMIC_RELAXED);
	slab->state = MF_SLAB_NEW;
	slab->next = dead->first;
	dead->first = pfn + 1;
	dead->nr++;
}

static void give_pages(struct mf_slabs *slabs, const struct mf_placement *place, uint32_t pfn, unsigned order)
{
	struct mf_run run = { pfn, UINT32_C(1) << order };

	if (place)
		mf_page_free(place, (memfs_pfn){ pfn }, order);
	else
		mf_page_free_runs(slabs->page, NULL, 1, &run);
}

void mf_slab_bury(struct mf_cache *cache, const struct mf_placement *place, struct mf_slab_dead *dead)
{
	struct mf_slabs *slabs = cache->slabs;

	while (dead->first) {
		uint32_t pfn = mf_slab_pfn(dead->first);
		struct mf_slab *slab = mf_slab_at(slabs, pfn);
		unsigned order = slab->order;

		dead->first = slab->next;
		if (mf_cache_debugs(cache))
			mf_debug_check_slab(cache, pfn);
		for (uint32_t page = 0; page < UINT32_C(1) << order; page++)
			__atomic_store_n(&slabs->tags[pfn + page], 0, __ATOMIC_RELAXED);
		/* The other pages keep the way to their first one: without tags nobody asks. */
		*slab = (struct mf_slab){ .state = MF_SLAB_NONE };
		give_pages(slabs, place, pfn, order);
	}
	dead->nr = 0;
}

/* --- the stock of full sheaves --- */

/* What is enough of any cache, however much the knob allows: so many objects, or bytes of small ones. */
#define STOCK_OBJECTS 1024
#define STOCK_BYTES (UINT64_C(1) << 20)

/* Without the lock: a look at a single word that may be old in a moment. */
static bool looks_empty(const struct mf_cache_node *n)
{
	return !__atomic_load_n(&n->stock_objects, __ATOMIC_RELAXED);
}

struct mf_sheaf *mf_stock_get(struct mf_cache *cache, int node, bool only_try)
{
	struct mf_cache_node *n = cache->node[node];
	struct mf_sheaf *sheaf;

	if (looks_empty(n) || !mf_node_lock(n, only_try))
		return NULL;
	sheaf = n->stock;
	if (sheaf) {
		n->stock = sheaf->next;
		__atomic_store_n(&n->stock_objects, n->stock_objects - MF_SHEAF_DEPTH(sheaf->word),
				 __ATOMIC_RELAXED);
	}
	mf_lock_release(&n->lock);
	return sheaf;
}

bool mf_stock_put(struct mf_cache *cache, int node, struct mf_sheaf *sheaf, bool only_try)
{
	uint64_t most = __atomic_load_n(&cache->slabs->knobs.stock_bytes, __ATOMIC_RELAXED);
	uint64_t enough = (uint64_t)STOCK_OBJECTS * cache->geometry.size;
	uint64_t objects = MF_SHEAF_DEPTH(sheaf->word);
	struct mf_cache_node *n = cache->node[node];
	bool room;

	if (!mf_node_lock(n, only_try))
		return false;
	enough = enough > STOCK_BYTES ? enough : STOCK_BYTES;
	if (most > enough)
		most = enough;
	room = (n->stock_objects + objects) * cache->geometry.size <= most;
	if (room) {
		sheaf->next = n->stock;
		n->stock = sheaf;
		__atomic_store_n(&n->stock_objects, n->stock_objects + objects, __ATOMIC_RELAXED);
	}
	mf_lock_release(&n->lock);
	return room;
}
