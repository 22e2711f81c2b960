/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Caches with debugging: one object at a time, checked.
 *
 * A problem ends one operation and nothing else: an object that is freed in
 * error is not taken back; a slab with a free object that was written to is
 * abandoned, which means that its free objects are never handed out and count as
 * in use.  Each problem is one line of report.
 *
 * Invariants: a slab is on its node's partial list while it has a free object,
 * else on the full list; CPU layers and sheaves have nothing.
 *
 * Locks: the node's for each step; the CPU's, to count, once that is let go.
 * Reports are sent and slabs buried with none held.
 */
#include "plat/thread.h"
#include "slab/debug.h"

#include <errno.h>
#include <string.h>

/* One operation. */
struct job {
	struct mf_cache *cache;
	struct mf_cache_cpu *pc;
	const void *caller;
	bool only_try;
	struct mf_slab_dead dead;
	struct mf_slab_report report;
	uint16_t count[MF_NR_SLAB_STATS];
};

/* --- one operation --- */

static void count(struct job *j, enum mf_slab_stat id, unsigned n)
{
	j->count[id] = (uint16_t)(j->count[id] + n);
}

static void set_owner(const struct job *j, char *object, unsigned which)
{
	struct mf_plat *plat = j->cache->slabs->plat;
	struct mf_slab_track track = {
		.caller = j->caller,
		.when = plat->ops->now_ns(plat),
		.cpu = j->pc->cpu,
		.thread = mf_plat_thread(),
	};

	if (j->cache->geometry.track)
		memcpy(object + j->cache->geometry.track + which * sizeof(track), &track, sizeof(track));
}

/* No lock held.  Whoever may not wait for the CPU's lock counts beside its holder. */
static void finish(struct job *j, const struct mf_placement *place)
{
	bool locked = mf_cache_cpu_lock(j->pc, j->only_try);

	for (int id = 0; id < MF_NR_SLAB_STATS; id++)
		if (j->count[id])
			__atomic_fetch_add(&j->pc->stat[id], j->count[id], __ATOMIC_RELAXED);
	if (locked)
		mf_lock_release(&j->pc->lock);
	mf_debug_send(j->cache->slabs, &j->report);
	mf_slab_bury(j->cache, place, &j->dead);
}

/* The node's lock is held: what is left of the slab's free list is not touched again. */
static void abandon(struct job *j, struct mf_cache_node *n, uint32_t pfn)
{
	struct mf_slab *slab = mf_slab_at(j->cache->slabs, pfn);

	slab->freelist = NULL;
	slab->inuse = slab->objects;
	slab->remote_frees = 1;
	if (slab->state == MF_SLAB_NODE) {
		mf_node_remove_partial(j->cache->slabs, n, pfn);
		mf_node_add_full(j->cache->slabs, n, pfn);
	}
}

/* --- taking --- */

/* The node's lock is held, the slab on its list.  NULL: abandoned. */
static void *take_object(struct job *j, struct mf_cache_node *n, uint32_t pfn)
{
	struct mf_slab *slab = mf_slab_at(j->cache->slabs, pfn);
	char *object = slab->freelist;

	if (!mf_debug_check_object(j->cache, pfn, object, false, &j->report)) {
		abandon(j, n, pfn);
		return NULL;
	}
	slab->freelist = mf_slab_next_free(j->cache, object);
	slab->inuse++;
	if (mf_debug_pointer_is_behind(&j->cache->geometry))
		mf_slab_set_next_free(j->cache, object, NULL);
	mf_debug_fill(j->cache, object, true);
	set_owner(j, object, 0);
	if (!slab->freelist) {
		mf_node_remove_partial(j->cache->slabs, n, pfn);
		mf_node_add_full(j->cache->slabs, n, pfn);
	}
	return object;
}

static void *take_from_node(struct job *j, struct mf_cache_node *n, bool only_try)
{
	void *object = NULL;
	bool again = true;

	while (!object && again) {
		if (!__atomic_load_n(&n->nr_partial, __ATOMIC_RELAXED) || !mf_node_lock(n, only_try))
			return NULL;
		again = n->head;
		if (again)
			object = take_object(j, n, mf_slab_pfn(n->head));
		mf_lock_release(&n->lock);
		mf_debug_send(j->cache->slabs, &j->report);
	}
	count(j, MF_SLAB_STAT_alloc_from_partial, object != NULL);
	return object;
}

struct search {
	struct job *job;
	void *object;
};

static bool probe(void *arg, int node)
{
	struct search *s = arg;
	struct mf_cache *cache = s->job->cache;
	struct mf_cache_node *n = cache->node[node];

	if (!n || __atomic_load_n(&n->nr_partial, __ATOMIC_RELAXED) <=
			  __atomic_load_n(&cache->knobs.min_partial, __ATOMIC_RELAXED))
		return false;
	s->object = take_from_node(s->job, n, true);
	return s->object != NULL;
}

static void *take_from_others(struct job *j, const struct mf_placement *place, memfs_gfp gfp, int tried)
{
	struct mf_slabs *slabs = j->cache->slabs;
	struct search s = { j, NULL };
	struct mf_search_result result;
	uint8_t nodes[MF_MAX_ZONES];
	unsigned nr;

	if (gfp & MEMFS___GFP_THISNODE || !__atomic_load_n(&j->cache->knobs.defrag_ratio, __ATOMIC_RELAXED))
		return NULL;
	nr = mf_slab_search_order(slabs, place, gfp | j->cache->gfp, nodes, MF_MAX_ZONES);
	result = mf_slab_search(nodes, nr, tried, __atomic_load_n(&slabs->knobs.skip, __ATOMIC_RELAXED),
				probe, &s);
	count(j, MF_SLAB_STAT_partial_search, 1);
	count(j, MF_SLAB_STAT_partial_probe, result.probes);
	count(j, MF_SLAB_STAT_partial_probe_skipped, result.skipped);
	count(j, MF_SLAB_STAT_partial_remote_hit, result.hit);
	return s.object;
}

static void *take_from_new(struct job *j, struct mf_placement *place, memfs_gfp gfp, int node)
{
	struct mf_slab_work w = { .cache = j->cache,
				  .pc = j->pc,
				  .place = place,
				  .gfp = gfp,
				  .node = node,
				  .only_try = j->only_try };
	uint32_t link = mf_slab_new(&w);
	struct mf_cache_node *n;
	struct mf_slab *slab;
	void *object;

	if (!link)
		return NULL;
	slab = mf_slab_at(j->cache->slabs, mf_slab_pfn(link));
	n = j->cache->node[slab->node];
	if (!mf_node_lock(n, j->only_try)) {
		slab->next = j->dead.first;
		j->dead.first = link;
		return NULL;
	}
	count(j, MF_SLAB_STAT_alloc_slab, 1);
	count(j, MF_SLAB_STAT_order_fallback, slab->order < j->cache->geometry.order);
	mf_slab_enter(j->cache, n, mf_slab_pfn(link));
	mf_node_add_partial(j->cache->slabs, n, mf_slab_pfn(link), false);
	object = take_object(j, n, mf_slab_pfn(link));
	mf_lock_release(&n->lock);
	return object;
}

/* A node named and not strictly: a new slab there comes before other nodes' lists. */
static void *take(struct job *j, struct mf_placement *place, memfs_gfp gfp, int node)
{
	const memfs_gfp effort = MEMFS___GFP_NOFAIL | MEMFS___GFP_RECLAIM;
	int near = node >= 0 ? node : j->pc->node;
	struct mf_cache_node *n = j->cache->node[near];
	void *object = n ? take_from_node(j, n, j->only_try) : NULL;

	if (!object && node >= 0 && !(gfp & MEMFS___GFP_THISNODE))
		object = take_from_new(j, place, (gfp & ~effort) | MEMFS___GFP_THISNODE | MEMFS___GFP_NOWARN,
				       node);
	if (!object)
		object = take_from_others(j, place, gfp, n ? near : -1);
	return object ? object : take_from_new(j, place, gfp, node);
}

void *mf_debug_alloc(struct mf_cache *cache, struct mf_cache_cpu *pc, struct mf_placement *place,
		     memfs_gfp gfp, int node, const void *caller)
{
	struct job j = { .cache = cache, .pc = pc, .caller = caller, .only_try = mf_lock_depth() > 0 };
	void *object;

	mf_debug_take_deferred(cache, pc, place);
	object = take(&j, place, gfp, node);
	count(&j, MF_SLAB_STAT_alloc_slowpath, 1);
	finish(&j, place);
	if (!object && j.only_try)
		mf_stat_add(cache->slabs->stat, MF_STAT_alloc_nowait_fail, 1);
	return object;
}

/* --- giving back --- */

static void report_double(struct job *j, const void *object)
{
	mf_debug_begin_report(&j->report, j->cache, object, "freed though it is free already");
	mf_debug_say(&j->report, "; by %p", j->caller);
	mf_debug_say_owners(&j->report, j->cache, object);
}

/* False: the object is on the slab's free list.  A list that leads astray is cut off. */
static bool check_not_free(struct job *j, struct mf_cache_node *n, uint32_t pfn, const void *object)
{
	const struct mf_slab *slab = mf_slab_at(j->cache->slabs, pfn);
	unsigned nr = 0;

	for (const void *at = slab->freelist, *next; at; at = next) {
		if (at == object) {
			report_double(j, object);
			return false;
		}
		next = mf_slab_next_free(j->cache, at);
		if (++nr <= slab->objects && (!next || mf_debug_is_object(j->cache, pfn, next)))
			continue;
		mf_debug_begin_report(&j->report, j->cache, at, "free pointer overwritten");
		mf_debug_say(&j->report, "; leads to %p", next);
		mf_debug_say_owners(&j->report, j->cache, at);
		abandon(j, n, pfn);
		return true;
	}
	return true;
}

/* The node's lock is held, the slab on no list. */
static void discard(struct job *j, struct mf_cache_node *n, uint32_t pfn)
{
	count(j, MF_SLAB_STAT_free_slab, 1);
	mf_node_discard(j->cache, n, pfn, &j->dead);
}

static void put_object(struct job *j, struct mf_cache_node *n, uint32_t pfn, char *object)
{
	struct mf_slabs *slabs = j->cache->slabs;
	struct mf_slab *slab = mf_slab_at(slabs, pfn);
	bool goes;

	mf_debug_fill(j->cache, object, false);
	set_owner(j, object, 1);
	mf_slab_set_next_free(j->cache, object, slab->freelist);
	slab->freelist = object;
	slab->inuse--;
	goes = !slab->inuse &&
	       n->nr_partial >= __atomic_load_n(&j->cache->knobs.min_partial, __ATOMIC_RELAXED);
	if (slab->state == MF_SLAB_FULL) {
		mf_node_remove_full(slabs, n, pfn);
		if (!goes) {
			mf_node_add_partial(slabs, n, pfn, true);
			count(j, MF_SLAB_STAT_free_add_partial, 1);
		}
	} else if (goes) {
		mf_node_remove_partial(slabs, n, pfn);
		count(j, MF_SLAB_STAT_free_remove_partial, 1);
	}
	if (goes)
		discard(j, n, pfn);
}

/* The node's lock is held.  False: while it was waited for, another free emptied the slab for good. */
static bool is_listed(const struct mf_cache *cache, uint32_t pfn)
{
	const struct mf_slab *slab = mf_slab_at(cache->slabs, pfn);

	return slab->cache == cache->id && (slab->state == MF_SLAB_NODE || slab->state == MF_SLAB_FULL);
}

/* @waited: it was deferred, and its free pointer used for that. */
static int give(struct job *j, void *object, bool waited)
{
	struct mf_cache *cache = j->cache;
	struct mf_cache_node *n;
	uint32_t pfn;
	bool good;

	if (!mf_slab_object_start(cache, object))
		return mf_slab_refuse(cache->slabs, cache, object, "freed, but no object's start");
	pfn = mf_debug_slab_of(cache->slabs, object);
	n = cache->node[mf_slab_at(cache->slabs, pfn)->node];
	if (!mf_node_lock(n, j->only_try)) {
		mf_cache_defer(cache, 1, &object);
		return 0;
	}
	good = is_listed(cache, pfn) && check_not_free(j, n, pfn, object);
	if (good && waited && mf_debug_pointer_is_behind(&cache->geometry))
		mf_slab_set_next_free(cache, object, NULL);
	good = good && mf_debug_check_object(cache, pfn, object, true, &j->report);
	if (good)
		put_object(j, n, pfn, object);
	mf_lock_release(&n->lock);
	count(j, MF_SLAB_STAT_free_slowpath, good);
	if (!good && !j->report.length)
		return mf_slab_refuse(cache->slabs, cache, object, "freed, but its slab has gone");
	mf_debug_send(cache->slabs, &j->report);
	return good ? 0 : -EINVAL;
}

void mf_debug_take_deferred(struct mf_cache *cache, struct mf_cache_cpu *pc, const struct mf_placement *place)
{
	struct job j = { .cache = cache, .pc = pc, .only_try = mf_lock_depth() > 0 };
	void *object, *next;

	if (!atomic_load_explicit(&cache->deferred, memory_order_relaxed))
		return;
	object = atomic_exchange_explicit(&cache->deferred, NULL, memory_order_acquire);
	for (; object && mf_slab_object_start(cache, object); object = next) {
		next = mf_slab_next_free(cache, object);
		give(&j, object, true);
	}
	finish(&j, place);
}

int mf_debug_free(struct mf_cache *cache, struct mf_cache_cpu *pc, const struct mf_placement *place,
		  void *object, const void *caller)
{
	struct job j = { .cache = cache, .pc = pc, .caller = caller, .only_try = mf_lock_depth() > 0 };
	int error;

	mf_debug_take_deferred(cache, pc, place);
	error = give(&j, object, false);
	finish(&j, place);
	return error;
}
