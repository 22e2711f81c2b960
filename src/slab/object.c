/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ways in: an object taken, an object given back.
 *
 *   may this placement go fast at all?   one byte
 *   which CPU's sheaf?                   the kernel's word for this thread
 *   does an object freed belong there?   its page's tag
 *   an object                            one restartable sequence, which asks both
 *
 * Whatever does not fit goes to the slow functions, which decide everything
 * anew under the lock of one CPU.  A caller that has interrupted a lock holder
 * (mf_lock_depth() above 0) only tries locks: an allocation may fail for that, an
 * object given back is deferred: pushed on a list without a lock, taken up by
 * the next slow operation of the cache.
 *
 * Locks: SLAB_CPU here, what layers.c and sheaf.c say inside it; SHEAVES while
 * one CPU of a cache is made ready.  Slabs are buried with none held.
 */
#include "slab/object.h"

#include <errno.h>
#include <string.h>

#define NEVER_INLINE __attribute__((noinline))

/* --- one CPU of a cache --- */

/* The node its new objects come from: its own, or the nearest that has memory. */
static int memory_node(const struct mf_slabs *slabs, int cpu)
{
	const struct mf_zonelist *list = mf_page_zonelist(slabs->page, slabs->topo->cpu_node[cpu]);

	return list && list->nr_zones ? list->zones[0] / MF_NR_ZONE_TYPES
				      : mf_node_first(slabs->topo->memory);
}

/* SHEAVES is held.  It is shut: the first thread of the CPU to take its lock opens it. */
static void set_up(struct mf_cache *cache, struct mf_cache_cpu *pc, int cpu)
{
	mf_lock_init(&pc->lock, MF_LOCK_SLAB_CPU);
	pc->cpu = cpu;
	pc->node = (int16_t)memory_node(cache->slabs, cpu);
	pc->main = pc->remote = &cache->slabs->nothing;
	__atomic_store_n(&pc->owner, MF_RSEQ_SHUT, __ATOMIC_RELAXED);
	__atomic_store_n(&pc->ready, true, __ATOMIC_RELEASE);
	__atomic_store_n(&pc->tag, mf_slab_tag(cache, pc->node), __ATOMIC_RELEASE);
}

/*
 * Once a cache and CPU.  Under a lock that was there before: whoever interrupts
 * its holder sees that by mf_lock_depth() and does not wait for it.
 */
static NEVER_INLINE bool make_ready(struct mf_cache *cache, struct mf_cache_cpu *pc, int cpu)
{
	struct mf_slabs *slabs = cache->slabs;

	if (mf_lock_depth() == 0)
		mf_lock_acquire(&slabs->sheaves_lock);
	else if (!mf_lock_try(&slabs->sheaves_lock))
		return false;
	if (!pc->ready)
		set_up(cache, pc, cpu);
	mf_lock_release(&slabs->sheaves_lock);
	return true;
}

struct mf_cache_cpu *mf_cache_cpu_get(struct mf_cache *cache, const struct mf_placement *place)
{
	struct mf_slabs *slabs = cache->slabs;
	int cpu = place ? mf_page_cpu(slabs->page, place) : -1;
	struct mf_cache_cpu *pc;

	if (cpu < 0 || (unsigned)cpu >= slabs->cpu_limit)
		cpu = mf_topo_first_cpu(slabs->topo);
	if (cpu < 0)
		return NULL;
	pc = &cache->cpu[cpu];
	if (!__atomic_load_n(&pc->ready, __ATOMIC_ACQUIRE) && !make_ready(cache, pc, cpu))
		return NULL;
	return pc;
}

bool mf_cache_cpu_lock(struct mf_cache_cpu *pc, bool only_try)
{
	if (only_try)
		return mf_lock_try(&pc->lock);
	mf_lock_acquire(&pc->lock);
	return true;
}

/* --- deferred frees --- */

void mf_cache_defer(struct mf_cache *cache, size_t n, void **objects)
{
	void *first = NULL;

	if (!n)
		return;
	for (size_t i = 1; i < n; i++)
		mf_slab_set_next_free(cache, objects[i - 1], objects[i]);
	first = atomic_load_explicit(&cache->deferred, memory_order_relaxed);
	do
		mf_slab_set_next_free(cache, objects[n - 1], first);
	while (!atomic_compare_exchange_weak_explicit(&cache->deferred, &first, objects[0],
						      memory_order_release, memory_order_relaxed));
}

#define DEFERRED_BATCH 32u

void mf_cache_take_deferred(struct mf_slab_work *w)
{
	struct mf_cache *cache = w->cache;
	bool direct = w->direct, taken = true;
	void *batch[DEFERRED_BATCH], *object;

	/* Those of a cache with debugging are checked one by one: mf_debug_take_deferred(). */
	if (mf_cache_debugs(cache) || !atomic_load_explicit(&cache->deferred, memory_order_relaxed))
		return;
	object = atomic_exchange_explicit(&cache->deferred, NULL, memory_order_acquire);
	w->direct = true;
	while (object) {
		size_t n = 0, done = 0;

		for (; object && n < DEFERRED_BATCH; object = mf_slab_next_free(cache, object))
			batch[n++] = object;
		if (taken)
			done = mf_layers_give(w, n, batch);
		taken = done == n;
		mf_cache_defer(cache, n - done, batch + done);
	}
	w->direct = direct;
}

/* --- the slow ways --- */

/* The CPU's lock is held afterwards, and what handlers left is taken up; false: neither. */
static bool begin(struct mf_slab_work *w)
{
	w->pc = mf_cache_cpu_get(w->cache, w->place);
	if (!w->pc || !mf_cache_cpu_lock(w->pc, w->only_try))
		return false;
	mf_cache_take_deferred(w);
	return true;
}

static void end(struct mf_slab_work *w)
{
	mf_lock_release(&w->pc->lock);
	mf_slab_bury(w->cache, w->place, &w->dead);
}

static void *debug_alloc(struct mf_cache *cache, struct mf_placement *place, memfs_gfp gfp, int node,
			 const void *caller)
{
	struct mf_cache_cpu *pc = mf_cache_cpu_get(cache, place);

	return pc ? mf_debug_alloc(cache, pc, place, gfp, node, caller) : NULL;
}

/* @node: one with memory, or by policy. */
static void *layered_alloc(struct mf_cache *cache, struct mf_placement *place, memfs_gfp gfp, int node)
{
	struct mf_slab_work w = {
		.cache = cache, .place = place, .gfp = gfp, .node = node, .only_try = mf_lock_depth() > 0
	};
	void *object = NULL;

	if (begin(&w)) {
		object = node == MF_NODE_BY_POLICY ? mf_sheaf_alloc(&w) : mf_layers_take_one(&w);
		end(&w);
	}
	if (!object && w.only_try)
		mf_stat_add(cache->slabs->stat, MF_STAT_alloc_nowait_fail, 1);
	return object;
}

static bool is_node(const struct mf_cache *cache, int node)
{
	return node >= 0 && node < MEMFS_MAX_NODES && cache->node[node];
}

static void *cleared(const struct mf_cache *cache, memfs_gfp gfp, void *object)
{
	if (object && gfp & MEMFS___GFP_ZERO && !cache->ctor)
		memset(object, 0, cache->geometry.object_size);
	return object;
}

NEVER_INLINE void *mf_object_alloc_slow(struct mf_cache *cache, struct mf_placement *place, memfs_gfp gfp,
					int node, const void *caller)
{
	void *object;

	if (node != MF_NODE_BY_POLICY && !is_node(cache, node))
		return NULL;
	if (mf_cache_debugs(cache))
		object = debug_alloc(cache, place, gfp, node, caller);
	else if (node != MF_NODE_BY_POLICY || !mf_object_pop(cache->slabs->rseq, cache, place, &object))
		object = layered_alloc(cache, place, gfp, node);
	if (!object)
		mf_slab_out_of_memory(cache, gfp, node);
	return cleared(cache, gfp, object);
}

static int debug_free(struct mf_cache *cache, const struct mf_placement *place, void *object,
		      const void *caller)
{
	struct mf_cache_cpu *pc = mf_cache_cpu_get(cache, place);

	/* Its CPU could not be made ready: then it waits as what finds a lock taken does. */
	if (!pc) {
		mf_cache_defer(cache, 1, &object);
		return 0;
	}
	return mf_debug_free(cache, pc, place, object, caller);
}

/* The object is one of the cache, as far as its page tells. */
static void layered_free(struct mf_cache *cache, const struct mf_placement *place, void *object)
{
	struct mf_slab_work w = {
		.cache = cache,
		.place = (struct mf_placement *)place, /* a free moves no rotation */
		.node = MF_NODE_BY_POLICY,
		.only_try = mf_lock_depth() > 0,
	};

	if (!begin(&w)) {
		mf_cache_defer(cache, 1, &object);
		return;
	}
	if (!mf_sheaf_give(&w, object, mf_slab_tag_of(cache->slabs, object) != w.pc->tag)) {
		w.direct = true;
		if (!mf_layers_give(&w, 1, &object))
			mf_cache_defer(cache, 1, &object);
	}
	end(&w);
}

NEVER_INLINE int mf_object_free_slow(struct mf_cache *cache, const struct mf_placement *place, void *object,
				     const void *caller)
{
	uint32_t tag = mf_slab_tag_of(cache->slabs, object);

	if (!tag || tag & MF_TAG_LARGE || (tag & MF_TAG_ID) != cache->id)
		return mf_slab_refuse(cache->slabs, cache, object, "no object of this cache");
	if (mf_cache_debugs(cache))
		return debug_free(cache, place, object, caller);
	layered_free(cache, place, object);
	return 0;
}

/* --- one object --- */

void *mf_cache_alloc(struct mf_cache *cache, struct mf_placement *place, memfs_gfp gfp)
{
	void *object;

	if (__builtin_expect(!(gfp & MEMFS___GFP_ZERO), 1) &&
	    mf_object_pop(cache->slabs->rseq, cache, place, &object))
		return object;
	return mf_object_alloc_slow(cache, place, gfp, MF_NODE_BY_POLICY, __builtin_return_address(0));
}

void *mf_cache_alloc_node(struct mf_cache *cache, struct mf_placement *place, memfs_gfp gfp, int node)
{
	return mf_object_alloc_slow(cache, place, gfp, node, __builtin_return_address(0));
}

int mf_cache_free(struct mf_cache *cache, const struct mf_placement *place, void *object)
{
	if (mf_object_push(cache->slabs->rseq, cache, place, object, mf_slab_tag_of(cache->slabs, object)))
		return 0;
	return mf_object_free_slow(cache, place, object, __builtin_return_address(0));
}

/* --- many --- */

static size_t debug_alloc_bulk(struct mf_cache *cache, struct mf_placement *place, memfs_gfp gfp, size_t n,
			       void **objects, const void *caller)
{
	size_t got = 0;

	while (got < n && (objects[got] = debug_alloc(cache, place, gfp, MF_NODE_BY_POLICY, caller)))
		got++;
	return got;
}

/* Sheaves that are there, then the layers until a new slab cannot be had. */
static size_t layered_alloc_bulk(struct mf_cache *cache, struct mf_placement *place, memfs_gfp gfp, size_t n,
				 void **objects)
{
	struct mf_slab_work w = {
		.cache = cache,
		.place = place,
		.gfp = gfp,
		.node = MF_NODE_BY_POLICY,
		.only_try = mf_lock_depth() > 0,
	};
	size_t got, more = 1;

	if (!begin(&w)) {
		mf_stat_add(cache->slabs->stat, MF_STAT_alloc_nowait_fail, 1);
		return 0;
	}
	got = mf_sheaf_take(&w, n, objects);
	w.direct = true;
	for (; got < n && more; got += more)
		more = mf_layers_take(&w, n - got, objects + got);
	end(&w);
	if (got < n && w.only_try)
		mf_stat_add(cache->slabs->stat, MF_STAT_alloc_nowait_fail, 1);
	return got;
}

size_t mf_cache_alloc_bulk(struct mf_cache *cache, struct mf_placement *place, memfs_gfp gfp, size_t n,
			   void **objects)
{
	size_t got = 0;

	if (mf_cache_debugs(cache))
		got = debug_alloc_bulk(cache, place, gfp, n, objects, __builtin_return_address(0));
	else
		while (got < n && mf_object_pop(cache->slabs->rseq, cache, place, &objects[got]))
			got++;
	if (got < n && !mf_cache_debugs(cache))
		got += layered_alloc_bulk(cache, place, gfp, n - got, objects + got);
	if (got < n) {
		mf_slab_out_of_memory(cache, gfp, MF_NODE_BY_POLICY);
		mf_cache_free_bulk(cache, place, got, objects);
		return 0;
	}
	for (size_t i = 0; gfp & MEMFS___GFP_ZERO && i < n; i++)
		cleared(cache, gfp, objects[i]);
	return n;
}

int mf_cache_free_bulk(struct mf_cache *cache, const struct mf_placement *place, size_t n, void **objects)
{
	const void *caller = __builtin_return_address(0);
	int result = 0;

	for (size_t i = 0; i < n; i++)
		if (!mf_object_push(cache->slabs->rseq, cache, place, objects[i],
				    mf_slab_tag_of(cache->slabs, objects[i])) &&
		    mf_object_free_slow(cache, place, objects[i], caller))
			result = -EINVAL;
	return result;
}

/* --- flushing --- */

static void flush_cpu(struct mf_slab_work *w)
{
	if (mf_cache_debugs(w->cache))
		mf_debug_take_deferred(w->cache, w->pc, NULL);
	if (!mf_cache_cpu_lock(w->pc, w->only_try))
		return;
	mf_cache_take_deferred(w);
	mf_sheaf_visit_begin(w->pc);
	mf_sheaf_flush(w);
	mf_layers_flush(w);
	mf_lock_release(&w->pc->lock);
}

static void flush_stock(struct mf_slab_work *w)
{
	if (!mf_cache_cpu_lock(w->pc, w->only_try))
		return;
	mf_stock_flush(w);
	mf_layers_flush(w);
	mf_lock_release(&w->pc->lock);
}

/*
 * Slabs that went.  The stock comes last: a CPU that is still at work may have
 * put a sheaf there while others were flushed.
 */
static uint64_t flush(struct mf_cache *cache)
{
	const struct mf_topo *topo = cache->slabs->topo;
	struct mf_slab_work w = { .cache = cache,
				  .node = MF_NODE_BY_POLICY,
				  .only_try = mf_lock_depth() > 0 };
	uint64_t gone;

	for (unsigned cpu = 0; cpu < topo->cpu_limit && cpu < cache->slabs->cpu_limit; cpu++) {
		w.pc = &cache->cpu[cpu];
		if (topo->cpu_node[cpu] >= 0 && __atomic_load_n(&w.pc->ready, __ATOMIC_ACQUIRE))
			flush_cpu(&w);
	}
	w.pc = mf_cache_cpu_get(cache, NULL);
	if (w.pc && mf_cache_debugs(cache))
		mf_debug_take_deferred(cache, w.pc, NULL);
	else if (w.pc)
		flush_stock(&w);
	gone = w.dead.nr;
	mf_slab_bury(cache, NULL, &w.dead);
	return gone;
}

void mf_cache_flush(struct mf_cache *cache)
{
	flush(cache);
}

uint64_t mf_cache_shrink(struct mf_cache *cache)
{
	struct mf_cache_cpu *pc = mf_cache_cpu_get(cache, NULL);
	struct mf_slab_dead dead = { 0, 0 };
	uint64_t gone = flush(cache), more;

	/* Every node's lock is waited for: not for who has interrupted a holder. */
	if (!pc || mf_lock_depth() > 0)
		return gone;
	more = mf_layers_shrink_nodes(cache, &dead);
	mf_slab_bury(cache, NULL, &dead);
	mf_lock_acquire(&pc->lock);
	mf_slab_count(pc, MF_SLAB_STAT_free_slab, more);
	mf_lock_release(&pc->lock);
	return gone + more;
}

void mf_cache_release_cpus(struct mf_cache *cache)
{
	const struct mf_topo *topo = cache->slabs->topo;

	for (unsigned cpu = 0; cpu < topo->cpu_limit && cpu < cache->slabs->cpu_limit; cpu++)
		if (topo->cpu_node[cpu] >= 0 && cache->cpu[cpu].ready)
			mf_lock_destroy(&cache->cpu[cpu].lock);
}
