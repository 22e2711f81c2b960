/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Looking at caches: slabs and objects by node, counters by CPU, pages; and the
 * end of slabs whose objects nobody gave back.
 *
 * "Objects" of a node are those that are not free in a slab; "used" is what is
 * left without those that CPUs, sheaves, stocks and deferred frees have.  Each
 * layer is looked at under its own lock, one after the other: sums are exact
 * when nothing runs.
 *
 * Counters run since the cache's birth; clearing one remembers what it had.
 *
 * Locks: SLAB_CPU, SLAB_NODE inside it, CACHES for sums over all caches.
 */
#include "slab/slab_internal.h"

#include <stdlib.h>

#define S_NAME(name, help) #name,
#define S_HELP(name, help) help,
const char *const mf_slab_stat_names[MF_NR_SLAB_STATS] = { MF_SLAB_STATS(S_NAME) };
const char *const mf_slab_stat_help[MF_NR_SLAB_STATS] = { MF_SLAB_STATS(S_HELP) };
#undef S_NAME
#undef S_HELP

/* --- one CPU --- */

unsigned mf_cache_nr_cpus(const struct mf_cache *cache)
{
	unsigned topo = cache->slabs->topo->cpu_limit;

	return topo < cache->slabs->cpu_limit ? topo : cache->slabs->cpu_limit;
}

/* NULL: it has never had anything. */
static struct mf_cache_cpu *get_cpu(const struct mf_cache *cache, unsigned cpu)
{
	struct mf_cache_cpu *pc = &cache->cpu[cpu];

	return cpu < mf_cache_nr_cpus(cache) && __atomic_load_n(&pc->ready, __ATOMIC_ACQUIRE) ? pc : NULL;
}

/* Objects on a list that begins with @object; a pointer that leads out of the cache ends it. */
static unsigned list_length(const struct mf_cache *cache, const void *object)
{
	unsigned nr = 0;

	for (; object && nr < MF_SLAB_MAX_OBJECTS && mf_slab_object_start(cache, object); nr++)
		object = mf_slab_next_free(cache, object);
	return nr;
}

void mf_cache_cpu_partial(const struct mf_cache *cache, unsigned cpu, uint64_t *slabs, uint64_t *objects)
{
	struct mf_cache_cpu *pc = get_cpu(cache, cpu);

	*slabs = pc ? __atomic_load_n(&pc->partial_slabs, __ATOMIC_RELAXED) : 0;
	/* The kernel's estimate: half of them. */
	*objects = *slabs * cache->geometry.objects / 2;
}

/* --- counters --- */

/* What a sheaf that is with its CPU has counted; pc->lock is held, or the value may be old. */
static uint64_t live_count(const struct mf_cache_cpu *pc, enum mf_slab_stat id)
{
	uint64_t allocs = 0, frees = 0, homeward = 0, none;

	switch (id) {
	case MF_SLAB_STAT_alloc_fastpath:
	case MF_SLAB_STAT_alloc_cpu_sheaf:
		mf_sheaf_counts(pc->main, &allocs, &frees);
		return allocs;
	case MF_SLAB_STAT_free_fastpath:
	case MF_SLAB_STAT_free_cpu_sheaf:
		mf_sheaf_counts(pc->main, &allocs, &frees);
		mf_sheaf_counts(pc->remote, &none, &homeward);
		return frees + homeward;
	case MF_SLAB_STAT_free_remote:
		mf_sheaf_counts(pc->remote, &none, &homeward);
		return homeward;
	default:
		return 0;
	}
}

/* Since birth. */
static uint64_t whole_count(struct mf_cache_cpu *pc, enum mf_slab_stat id)
{
	bool locked = mf_cache_cpu_lock(pc, mf_lock_depth() > 0);
	uint64_t value = __atomic_load_n(&pc->stat[id], __ATOMIC_RELAXED) + live_count(pc, id);

	if (locked)
		mf_lock_release(&pc->lock);
	return value;
}

uint64_t mf_cache_stat(const struct mf_cache *cache, enum mf_slab_stat id, unsigned cpu)
{
	struct mf_cache_cpu *pc = get_cpu(cache, cpu);
	uint64_t value, cleared;

	if (!pc)
		return 0;
	cleared = __atomic_load_n(&pc->cleared[id], __ATOMIC_RELAXED);
	value = whole_count(pc, id);
	return value > cleared ? value - cleared : 0;
}

void mf_cache_stat_clear(struct mf_cache *cache, enum mf_slab_stat id)
{
	for (unsigned cpu = 0; cpu < mf_cache_nr_cpus(cache); cpu++) {
		struct mf_cache_cpu *pc = get_cpu(cache, cpu);

		if (pc)
			__atomic_store_n(&pc->cleared[id], whole_count(pc, id), __ATOMIC_RELAXED);
	}
}

/* --- slabs and objects --- */

/* A look at a cache while it is put together. */
struct look {
	struct mf_cache *cache;
	struct mf_cache_info *out;
	uint64_t free_in_slabs, free_on_cpus;
};

static void add_free(struct look *l, int node, unsigned nr)
{
	l->out->node[node].objects -= nr;
	l->free_in_slabs += nr;
}

static void look_at_node(struct look *l, int node)
{
	struct mf_slabs *slabs = l->cache->slabs;
	struct mf_cache_node *n = l->cache->node[node];

	mf_lock_acquire(&n->lock);
	l->out->node[node].slabs = n->nr_slabs;
	l->out->node[node].partial = n->nr_partial;
	l->out->node[node].stock = n->stock_objects;
	l->out->node[node].total_objects = n->total_objects;
	l->out->node[node].objects += n->total_objects;
	for (uint32_t link = n->head; link; link = mf_slab_at(slabs, mf_slab_pfn(link))->next) {
		const struct mf_slab *slab = mf_slab_at(slabs, mf_slab_pfn(link));

		add_free(l, node, slab->objects - slab->inuse);
		l->out->node[node].objects_partial += slab->inuse;
	}
	mf_lock_release(&n->lock);
	/* A CPU's slab that went to another node's list meanwhile was counted twice. */
	if ((int64_t)l->out->node[node].objects < 0)
		l->out->node[node].objects = 0;
}

/* pc->lock is held, so that the slab stays the CPU's. */
static uint32_t look_at_cpu_slab(struct look *l, uint32_t link)
{
	const struct mf_slab *slab = mf_slab_at(l->cache->slabs, mf_slab_pfn(link));
	struct mf_cache_node *n = l->cache->node[slab->node];

	mf_lock_acquire(&n->lock);
	add_free(l, slab->node, slab->objects - slab->inuse);
	l->out->node[slab->node].cpu_slabs++;
	mf_lock_release(&n->lock);
	return slab->next;
}

static unsigned depth(const struct mf_sheaf *sheaf)
{
	return sheaf ? MF_SHEAF_DEPTH(__atomic_load_n(&sheaf->word, __ATOMIC_RELAXED)) : 0;
}

static void look_at_cpu(struct look *l, struct mf_cache_cpu *pc)
{
	mf_lock_acquire(&pc->lock);
	if (pc->slab)
		look_at_cpu_slab(l, pc->slab);
	for (uint32_t link = pc->partial; link;)
		link = look_at_cpu_slab(l, link);
	l->free_on_cpus += list_length(l->cache, pc->freelist) + pc->fresh.left;
	l->out->in_sheaves += depth(pc->main) + depth(pc->remote) + depth(pc->spare);
	mf_lock_release(&pc->lock);
}

void mf_cache_info(struct mf_cache *cache, struct mf_cache_info *out)
{
	struct look l = { .cache = cache, .out = out };
	uint64_t total = 0, free;

	*out = (struct mf_cache_info){ .deferred = 0 };
	for (unsigned cpu = 0; cpu < mf_cache_nr_cpus(cache); cpu++)
		if (get_cpu(cache, cpu))
			look_at_cpu(&l, get_cpu(cache, cpu));
	out->deferred = list_length(cache, atomic_load_explicit(&cache->deferred, memory_order_acquire));
	free = out->in_sheaves + out->deferred + l.free_on_cpus;
	for (int node = 0; node < MEMFS_MAX_NODES; node++)
		if (cache->node[node]) {
			look_at_node(&l, node);
			free += out->node[node].stock;
			total += out->node[node].total_objects;
		}
	free += l.free_in_slabs;
	/* Objects that moved from a layer not looked at yet to one that was: never below nothing. */
	out->used = total > free ? total - free : 0;
}

/* --- pages --- */

static uint64_t pages_of(const struct mf_cache *cache, int node)
{
	const struct mf_cache_node *n = cache->node[node];

	return n ? __atomic_load_n(&n->nr_pages, __ATOMIC_RELAXED) : 0;
}

uint64_t mf_slabs_pages(struct mf_slabs *slabs, bool reclaimable, int node)
{
	uint64_t pages = 0;

	mf_lock_acquire(&slabs->names_lock);
	for (uint32_t id = 1; id < slabs->nr_ids; id++) {
		const struct mf_cache *cache = slabs->by_id[id];

		if (!cache || !(cache->flags & MF_SLAB_FLAG(RECLAIM_ACCOUNT)) == reclaimable)
			continue;
		for (int i = 0; i < MEMFS_MAX_NODES; i++)
			if (node < 0 || node == i)
				pages += pages_of(cache, i);
	}
	mf_lock_release(&slabs->names_lock);
	return pages;
}

static uint64_t slabs_left(const struct mf_cache *cache)
{
	uint64_t nr = 0;

	for (int node = 0; node < MEMFS_MAX_NODES; node++)
		if (cache->node[node])
			nr += cache->node[node]->nr_slabs;
	return nr;
}

/* Nobody else uses the cache any more: no lock, and no check of what is in use all the same. */
static void release_slab(struct mf_cache *cache, uint32_t pfn)
{
	struct mf_slabs *slabs = cache->slabs;
	struct mf_run run = { pfn, UINT32_C(1) << mf_slab_at(slabs, pfn)->order };

	for (uint32_t page = pfn; page < pfn + run.pages; page++) {
		__atomic_store_n(&slabs->tags[page], 0, __ATOMIC_RELAXED);
		*mf_slab_at(slabs, page) = (struct mf_slab){ .state = MF_SLAB_NONE };
	}
	mf_page_free_runs(slabs->page, NULL, 1, &run);
}

void mf_cache_release_slabs(struct mf_cache *cache)
{
	const uint32_t id_mask = (UINT32_C(1) << MF_TAG_NODE_SHIFT) - 1;
	struct mf_slabs *slabs = cache->slabs;
	uint64_t left = slabs_left(cache);

	for (uint32_t pfn = 0; left && pfn < slabs->topo->pfn_limit; pfn++) {
		uint32_t tag = slabs->tags[pfn];

		if (tag & MF_TAG_LARGE || (tag & id_mask) != cache->id)
			continue;
		release_slab(cache, pfn);
		left--;
	}
	for (int node = 0; node < MEMFS_MAX_NODES; node++)
		if (cache->node[node]) {
			struct mf_cache_node *n = cache->node[node];

			n->head = n->tail = n->full = 0;
			n->nr_partial = n->nr_slabs = n->nr_pages = n->total_objects = 0;
		}
}

/* --- reports --- */

void mf_slabs_on_report(struct mf_slabs *slabs, mf_slab_report_fn *report, void *arg)
{
	/* Nobody is told with the argument of somebody else. */
	__atomic_store_n(&slabs->report, NULL, __ATOMIC_RELEASE);
	slabs->report_arg = arg;
	__atomic_store_n(&slabs->report, report, __ATOMIC_RELEASE);
}

void mf_slabs_on_notice(struct mf_slabs *slabs, mf_slab_report_fn *notice, void *arg)
{
	/* Nobody is told with the argument of somebody else. */
	__atomic_store_n(&slabs->notice, NULL, __ATOMIC_RELEASE);
	slabs->notice_arg = arg;
	__atomic_store_n(&slabs->notice, notice, __ATOMIC_RELEASE);
}

bool mf_cache_is_damaged(const struct mf_cache *cache)
{
	return atomic_load_explicit(&cache->damaged, memory_order_relaxed);
}
