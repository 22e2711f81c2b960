/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The three layers of seeds/004 (behaviour 4.2): the slab a CPU takes objects
 * from, its list of partial slabs, the lists of nodes; and new slabs below.
 *
 * A CPU slab's free list is split: what its CPU took over, which only the CPU's
 * lock protects, and what others freed since, which is the node's.  Objects the
 * CPU took over count as in use.
 *
 * Invariants: a slab of state CPU is pc->slab of exactly one CPU; those of
 * state CPU_PARTIAL are on exactly one CPU's list and have a free object;
 * inuse + length of slab->freelist = objects.
 *
 * Locks: w->pc->lock is held throughout (but while a new slab is made); nodes'
 * locks inside it, one at a time.  Pages move with none held.
 */
#include "slab/slab_internal.h"

#include <string.h>

static struct mf_slab *slab_at(const struct mf_slab_work *w, uint32_t link)
{
	return mf_slab_at(w->cache->slabs, mf_slab_pfn(link));
}

static bool keeps_no_more(const struct mf_cache *cache, const struct mf_cache_node *n)
{
	return n->nr_partial >= __atomic_load_n(&cache->knobs.min_partial, __ATOMIC_RELAXED);
}

static void count(struct mf_slab_work *w, enum mf_slab_stat id, uint64_t n)
{
	mf_slab_count(w->pc, id, n);
}

/* --- putting slabs away --- */

/* The node's lock is held; the slab is on no list. */
static void discard(struct mf_slab_work *w, struct mf_cache_node *n, uint32_t link)
{
	mf_node_discard(w->cache, n, mf_slab_pfn(link), &w->dead);
	count(w, MF_SLAB_STAT_free_slab, 1);
}

/* Objects that were never asked for: if that is all of them, the slab is whole again. */
static void link_fresh(struct mf_slab_work *w, struct mf_slab *slab)
{
	struct mf_cache_cpu *pc = w->pc;

	if (pc->fresh.left && pc->fresh.left == slab->objects) {
		slab->whole = 1;
		slab->inuse = 0;
		pc->fresh.left = 0;
	}
	while (pc->fresh.left) {
		void *object = mf_slab_next_fresh(w->cache, mf_slab_pfn(pc->slab), &pc->fresh);

		mf_slab_set_next_free(w->cache, object, pc->freelist);
		pc->freelist = object;
	}
}

/* What the CPU had taken over stands before what others freed. */
static void splice(struct mf_slab_work *w, struct mf_slab *slab)
{
	void *last, *next;
	uint16_t nr = 1;

	link_fresh(w, slab);
	last = w->pc->freelist;
	if (!last)
		return;
	while ((next = mf_slab_next_free(w->cache, last))) {
		last = next;
		nr++;
	}
	mf_slab_set_next_free(w->cache, last, slab->freelist);
	slab->freelist = w->pc->freelist;
	slab->inuse -= nr;
	w->pc->freelist = NULL;
}

/* pc->slab goes to its node.  False: the lock was taken. */
static bool deactivate(struct mf_slab_work *w)
{
	struct mf_slab *slab = slab_at(w, w->pc->slab);
	struct mf_cache_node *n = w->cache->node[slab->node];
	uint32_t link = w->pc->slab;

	if (!mf_node_lock(n, w->only_try))
		return false;
	splice(w, slab);
	w->pc->slab = 0;
	if (slab->remote_frees)
		count(w, MF_SLAB_STAT_deactivate_remote_frees, 1);
	if (!slab->inuse && keeps_no_more(w->cache, n)) {
		count(w, MF_SLAB_STAT_deactivate_empty, 1);
		discard(w, n, link);
	} else if (slab->freelist || slab->whole) {
		count(w,
		      slab->remote_frees ? MF_SLAB_STAT_deactivate_to_tail : MF_SLAB_STAT_deactivate_to_head,
		      1);
		mf_node_add_partial(w->cache->slabs, n, mf_slab_pfn(link), slab->remote_frees);
	} else {
		count(w, MF_SLAB_STAT_deactivate_full, 1);
		slab->state = MF_SLAB_FULL;
	}
	slab->remote_frees = 0;
	mf_lock_release(&n->lock);
	return true;
}

/* One slab of a CPU's partial list goes to its node. */
static bool put_partial(struct mf_slab_work *w, uint32_t link)
{
	struct mf_slab *slab = slab_at(w, link);
	struct mf_cache_node *n = w->cache->node[slab->node];

	if (!mf_node_lock(n, w->only_try))
		return false;
	slab->next = 0;
	if (!slab->inuse && keeps_no_more(w->cache, n)) {
		count(w, MF_SLAB_STAT_deactivate_empty, 1);
		discard(w, n, link);
	} else {
		mf_node_add_partial(w->cache->slabs, n, mf_slab_pfn(link), true);
		count(w, MF_SLAB_STAT_free_add_partial, 1);
	}
	mf_lock_release(&n->lock);
	return true;
}

static bool put_partials(struct mf_slab_work *w)
{
	while (w->pc->partial) {
		uint32_t link = w->pc->partial, next = slab_at(w, link)->next;

		if (!put_partial(w, link))
			return false;
		w->pc->partial = next;
		w->pc->partial_slabs--;
	}
	return true;
}

bool mf_layers_flush(struct mf_slab_work *w)
{
	if (w->pc->slab) {
		count(w, MF_SLAB_STAT_cpuslab_flush, 1);
		if (!deactivate(w))
			return false;
	}
	return put_partials(w);
}

/* --- becoming the CPU slab --- */

static uint64_t draw(struct mf_cache_cpu *pc)
{
	pc->drawn = pc->drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return pc->drawn ^ pc->drawn >> 29;
}

/* The node's lock is held, the slab on no list: its free objects are the CPU's. */
static void take_over(struct mf_slab_work *w, uint32_t link)
{
	struct mf_slab *slab = slab_at(w, link);

	slab->state = MF_SLAB_CPU;
	slab->next = slab->prev = 0;
	w->pc->slab = link;
	w->pc->freelist = slab->freelist;
	if (slab->whole)
		w->pc->fresh = mf_slab_shuffle(slab->objects, draw(w->pc));
	slab->freelist = NULL;
	slab->whole = 0;
	slab->inuse = slab->objects;
}

/* What others freed to the CPU slab meanwhile; or the slab is full and left alone. */
static bool refill(struct mf_slab_work *w)
{
	struct mf_slab *slab;
	struct mf_cache_node *n;

	if (!w->pc->slab)
		return false;
	slab = slab_at(w, w->pc->slab);
	n = w->cache->node[slab->node];
	if (!mf_node_lock(n, w->only_try))
		return false;
	slab->remote_frees = 0;
	if (slab->freelist || slab->whole) {
		take_over(w, w->pc->slab);
		count(w, MF_SLAB_STAT_alloc_refill, 1);
	} else {
		slab->state = MF_SLAB_FULL;
		w->pc->slab = 0;
		count(w, MF_SLAB_STAT_deactivate_bypass, 1);
	}
	mf_lock_release(&n->lock);
	return w->pc->slab != 0;
}

/* The newest slab of the CPU's list that lies on the node asked for. */
static bool take_cpu_partial(struct mf_slab_work *w)
{
	uint32_t *link = &w->pc->partial, found;
	struct mf_cache_node *n;
	struct mf_slab *slab;

	while (*link && w->node >= 0 && slab_at(w, *link)->node != w->node)
		link = &slab_at(w, *link)->next;
	if (!*link)
		return false;
	found = *link;
	slab = slab_at(w, found);
	n = w->cache->node[slab->node];
	if (!mf_node_lock(n, w->only_try))
		return false;
	*link = slab->next;
	w->pc->partial_slabs--;
	take_over(w, found);
	mf_lock_release(&n->lock);
	count(w, MF_SLAB_STAT_cpu_partial_alloc, 1);
	return true;
}

static bool has_cpu_partial(const struct mf_cache *cache)
{
	return __atomic_load_n(&cache->knobs.cpu_partial, __ATOMIC_RELAXED) != 0;
}

static unsigned cpu_partial_slabs(const struct mf_cache *cache)
{
	return mf_slab_cpu_partial_slabs(&cache->geometry,
					 __atomic_load_n(&cache->knobs.cpu_partial, __ATOMIC_RELAXED));
}

static void push_cpu_partial(struct mf_slab_work *w, uint32_t link)
{
	struct mf_slab *slab = slab_at(w, link);

	slab->state = MF_SLAB_CPU_PARTIAL;
	slab->next = w->pc->partial;
	slab->prev = 0;
	w->pc->partial = link;
	w->pc->partial_slabs++;
}

/* --- node lists --- */

/* From the head: one to work with, and some more for later (behaviour 4.2). */
static bool take_from_node(struct mf_slab_work *w, struct mf_cache_node *n, bool only_try)
{
	unsigned most = has_cpu_partial(w->cache) ? cpu_partial_slabs(w->cache) / 2 : 0, moved = 0;

	if (!__atomic_load_n(&n->nr_partial, __ATOMIC_RELAXED) || !mf_node_lock(n, only_try))
		return false;
	while (n->head) {
		uint32_t link = n->head;

		mf_node_remove_partial(w->cache->slabs, n, mf_slab_pfn(link));
		if (!w->pc->slab) {
			take_over(w, link);
			count(w, MF_SLAB_STAT_alloc_from_partial, 1);
			if (!has_cpu_partial(w->cache))
				break;
			continue;
		}
		push_cpu_partial(w, link);
		count(w, MF_SLAB_STAT_cpu_partial_node, 1);
		if (++moved > most)
			break;
	}
	mf_lock_release(&n->lock);
	return w->pc->slab != 0;
}

/* A remote list is worth taking from only while it is longer than its node keeps, and free. */
static bool probe(void *arg, int node)
{
	struct mf_slab_work *w = arg;
	struct mf_cache_node *n = w->cache->node[node];

	return n &&
	       __atomic_load_n(&n->nr_partial, __ATOMIC_RELAXED) >
		       __atomic_load_n(&w->cache->knobs.min_partial, __ATOMIC_RELAXED) &&
	       take_from_node(w, n, true);
}

/* The gate of remote_node_defrag_ratio: even 100 lets some pass by (behaviour 4.2). */
static bool gate_is_open(const struct mf_slab_work *w)
{
	struct mf_plat *plat = w->cache->slabs->plat;
	uint64_t ratio = 10 * __atomic_load_n(&w->cache->knobs.defrag_ratio, __ATOMIC_RELAXED);

	return ratio && plat->ops->now_ns(plat) % 1024 <= ratio;
}

static bool search(struct mf_slab_work *w, int tried)
{
	struct mf_slabs *slabs = w->cache->slabs;
	uint8_t nodes[MF_MAX_ZONES];
	struct mf_search_result result;
	enum mf_slab_skip skip = __atomic_load_n(&slabs->knobs.skip, __ATOMIC_RELAXED);

	if (!w->place || !gate_is_open(w))
		return false;
	result = mf_slab_search(
		nodes, mf_slab_search_order(slabs, w->place, w->gfp | w->cache->gfp, nodes, MF_MAX_ZONES),
		tried, skip, probe, w);
	count(w, MF_SLAB_STAT_partial_search, 1);
	count(w, MF_SLAB_STAT_partial_probe, result.probes);
	count(w, MF_SLAB_STAT_partial_probe_skipped, result.skipped);
	count(w, MF_SLAB_STAT_partial_remote_hit, result.hit);
	return result.hit;
}

/* The node's own list; a named node's alone, unless @anywhere. */
static bool get_partial(struct mf_slab_work *w, bool anywhere)
{
	int node = w->node >= 0 ? w->node : w->pc->node;
	struct mf_cache_node *n = w->cache->node[node];

	if (n && take_from_node(w, n, w->only_try))
		return true;
	return anywhere && !(w->gfp & MEMFS___GFP_THISNODE) && search(w, n ? node : -1);
}

/* --- new slabs --- */

void mf_slab_enter(struct mf_cache *cache, struct mf_cache_node *n, uint32_t pfn)
{
	const struct mf_slab *slab = mf_slab_at(cache->slabs, pfn);

	__atomic_store_n(&n->nr_slabs, n->nr_slabs + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&n->nr_pages, n->nr_pages + (UINT64_C(1) << slab->order), __ATOMIC_RELAXED);
	__atomic_store_n(&n->total_objects, n->total_objects + slab->objects, __ATOMIC_RELAXED);
}

/* Without the lock, so another may bring the CPU a slab meanwhile; who may not wait for it keeps it. */
static uint32_t make_slab(struct mf_slab_work *w)
{
	uint32_t link;

	if (w->only_try)
		return mf_slab_new(w);
	mf_lock_release(&w->pc->lock);
	link = mf_slab_new(w);
	mf_lock_acquire(&w->pc->lock);
	return link;
}

static bool add_slab(struct mf_slab_work *w)
{
	uint32_t link = make_slab(w);
	struct mf_cache_node *n;

	if (!link)
		return false;
	n = w->cache->node[slab_at(w, link)->node];
	if (!mf_node_lock(n, w->only_try)) {
		slab_at(w, link)->next = w->dead.first;
		w->dead.first = link;
		return false;
	}
	mf_slab_enter(w->cache, n, mf_slab_pfn(link));
	if (w->pc->slab)
		mf_node_add_partial(w->cache->slabs, n, mf_slab_pfn(link), false);
	else
		take_over(w, link);
	mf_lock_release(&n->lock);
	count(w, MF_SLAB_STAT_alloc_slab, 1);
	if (slab_at(w, link)->order < w->cache->geometry.order)
		count(w, MF_SLAB_STAT_order_fallback, 1);
	return true;
}

/* A node that is preferred, not named strictly: its lists, a new slab there, then anything (behaviour 4.2). */
static bool add_slab_anywhere(struct mf_slab_work *w)
{
	struct mf_slab_work there = *w;
	bool got;

	if (w->node < 0 || w->gfp & MEMFS___GFP_THISNODE)
		return add_slab(w);
	there.gfp = (w->gfp & ~(MEMFS___GFP_NOFAIL | MEMFS___GFP_RECLAIM)) | MEMFS___GFP_THISNODE |
		    MEMFS___GFP_NOWARN;
	got = add_slab(&there);
	w->dead = there.dead;
	return got || get_partial(w, true) || add_slab(w);
}

/* --- taking objects --- */

static size_t pop(struct mf_slab_work *w, size_t n, void **objects)
{
	void *object = w->pc->freelist;
	size_t got = 0;

	while (object && got < n) {
		objects[got++] = object;
		object = mf_slab_next_free(w->cache, object);
	}
	w->pc->freelist = object;
	while (w->pc->fresh.left && got < n)
		objects[got++] = mf_slab_next_fresh(w->cache, mf_slab_pfn(w->pc->slab), &w->pc->fresh);
	return got;
}

static bool wrong_node(const struct mf_slab_work *w)
{
	return w->node >= 0 && w->pc->slab && slab_at(w, w->pc->slab)->node != w->node;
}

/* A CPU slab that could not be looked at (its node's lock was taken) stays: nothing replaces it. */
static bool next_slab(struct mf_slab_work *w, bool anywhere)
{
	if (refill(w))
		return true;
	if (w->pc->slab)
		return false;
	return take_cpu_partial(w) || get_partial(w, anywhere && w->node < 0);
}

/* Slabs made at a time for a sheaf. */
#define NEW_SLABS 8u

/* All objects of a slab that nobody else has seen yet; its node's lock is held. */
static size_t hand_out(struct mf_slab_work *w, struct mf_cache_node *n, uint32_t link, void **objects)
{
	struct mf_slab *slab = slab_at(w, link);
	struct mf_slab_fresh fresh = mf_slab_shuffle(slab->objects, draw(w->pc));
	size_t got = 0;

	mf_slab_enter(w->cache, n, mf_slab_pfn(link));
	slab->state = MF_SLAB_FULL;
	slab->inuse = slab->objects;
	slab->whole = 0;
	while (fresh.left)
		objects[got++] = mf_slab_next_fresh(w->cache, mf_slab_pfn(link), &fresh);
	count(w, MF_SLAB_STAT_alloc_slab, 1);
	if (slab->order < w->cache->geometry.order)
		count(w, MF_SLAB_STAT_order_fallback, 1);
	return got;
}

static unsigned make_slabs(struct mf_slab_work *w, unsigned nr, uint32_t links[NEW_SLABS])
{
	unsigned made = 0;

	mf_lock_release(&w->pc->lock);
	while (made < nr && (links[made] = mf_slab_new(w)))
		made++;
	mf_lock_acquire(&w->pc->lock);
	return made;
}

/*
 * One slab for whoever wants an object now and then; more while more is wanted
 * and nothing comes back.  Slabs that turn by turn lie on several nodes are made
 * one by one: each is asked for before the next.
 */
static unsigned next_burst(struct mf_slab_work *w, size_t want)
{
	struct mf_cache_cpu *pc = w->pc;
	unsigned burst = pc->burst ? pc->burst : 1;

	if (!(__atomic_load_n(&w->place->fast, __ATOMIC_RELAXED) & (MF_FAST_LOCAL | MF_FAST_PINNED)))
		return 1;
	pc->burst = (uint8_t)(burst * 2 < NEW_SLABS ? burst * 2 : NEW_SLABS);
	return want < burst ? (unsigned)want : burst;
}

/* A sheaf takes whole slabs, at most as many as it has room for; none of them is ever a CPU slab. */
static size_t take_new_slabs(struct mf_slab_work *w, size_t n, void **objects)
{
	size_t want = n / w->cache->geometry.objects, got = 0;
	struct mf_cache_node *n_locked = NULL;
	uint32_t links[NEW_SLABS];
	unsigned made;

	if (w->direct || w->only_try || !want || w->node != MF_NODE_BY_POLICY)
		return 0;
	made = make_slabs(w, next_burst(w, want), links);
	for (unsigned i = 0; i < made; i++) {
		struct mf_cache_node *node = w->cache->node[slab_at(w, links[i])->node];

		if (node != n_locked && n_locked)
			mf_lock_release(&n_locked->lock);
		if (node != n_locked)
			mf_lock_acquire(&node->lock);
		n_locked = node;
		got += hand_out(w, node, links[i], objects + got);
	}
	if (n_locked)
		mf_lock_release(&n_locked->lock);
	return got;
}

size_t mf_layers_take(struct mf_slab_work *w, size_t n, void **objects)
{
	size_t got;
	bool quick;

	if (wrong_node(w)) {
		count(w, MF_SLAB_STAT_alloc_node_mismatch, 1);
		if (!deactivate(w))
			return 0;
	}
	quick = w->pc->freelist || w->pc->fresh.left;
	got = pop(w, n, objects);
	/* More than the first is not worth a search of other nodes. */
	while (got < n && next_slab(w, !got))
		got += pop(w, n - got, objects + got);
	if (!got)
		got = take_new_slabs(w, n, objects);
	if (!got && add_slab_anywhere(w))
		do
			got = pop(w, n, objects);
		while (!got && next_slab(w, false));
	if (w->direct)
		count(w, quick ? MF_SLAB_STAT_alloc_fastpath : MF_SLAB_STAT_alloc_slowpath, got ? got : 1);
	return got;
}

void *mf_layers_take_one(struct mf_slab_work *w)
{
	void *object = NULL;

	w->direct = true;
	mf_layers_take(w, 1, &object);
	return object;
}

/* --- giving objects back --- */

/* The list is full: all of it goes to the nodes, and the slab begins a new one. */
static void drain_full_list(struct mf_slab_work *w)
{
	if (!w->pc->partial || w->pc->partial_slabs < cpu_partial_slabs(w->cache))
		return;
	if (put_partials(w))
		count(w, MF_SLAB_STAT_cpu_partial_drain, 1);
}

/* The node's lock is held.  True: the slab, full until now, should go onto the CPU's list. */
static bool give_to_slab(struct mf_slab_work *w, struct mf_cache_node *n, uint32_t pfn, void *object)
{
	struct mf_slab *slab = mf_slab_at(w->cache->slabs, pfn);

	mf_slab_set_next_free(w->cache, object, slab->freelist);
	slab->freelist = object;
	slab->inuse--;
	if (!slab->inuse) {
		slab->whole = 1;
		slab->freelist = NULL;
	}
	switch (slab->state) {
	case MF_SLAB_CPU:
		slab->remote_frees = 1;
		count(w, MF_SLAB_STAT_free_frozen, 1);
		return false;
	case MF_SLAB_FULL:
		if (has_cpu_partial(w->cache)) {
			push_cpu_partial(w, pfn + 1);
			count(w, MF_SLAB_STAT_cpu_partial_free, 1);
			return true;
		}
		if (!slab->inuse && keeps_no_more(w->cache, n)) {
			discard(w, n, pfn + 1);
			return false;
		}
		mf_node_add_partial(w->cache->slabs, n, pfn, true);
		count(w, MF_SLAB_STAT_free_add_partial, 1);
		return false;
	case MF_SLAB_NODE:
		if (!slab->inuse && keeps_no_more(w->cache, n)) {
			mf_node_remove_partial(w->cache->slabs, n, pfn);
			count(w, MF_SLAB_STAT_free_remove_partial, 1);
			discard(w, n, pfn + 1);
		}
		return false;
	default:
		return false;
	}
}

/* The first page of the slab an object lies in. */
static uint32_t slab_of(const struct mf_cache *cache, const void *object)
{
	const struct mf_slabs *slabs = cache->slabs;
	uint32_t pfn = (uint32_t)((uint64_t)((const char *)object - slabs->base) >> MEMFS_PAGE_SHIFT);

	return mf_slab_first_page(slabs, pfn);
}

static bool give_to_own_slab(struct mf_slab_work *w, uint32_t pfn, void *object)
{
	if (w->pc->slab != pfn + 1)
		return false;
	mf_slab_set_next_free(w->cache, object, w->pc->freelist);
	w->pc->freelist = object;
	if (w->direct)
		count(w, MF_SLAB_STAT_free_fastpath, 1);
	return true;
}

/* How many objects from the first on lie in the slab. */
static size_t same_slab(const struct mf_slab_work *w, uint32_t pfn, size_t n, void **objects)
{
	size_t nr = 1;

	while (nr < n && slab_of(w->cache, objects[nr]) == pfn)
		nr++;
	return nr;
}

/*
 * All that are in use of a slab come back at once from a sheaf: nothing has to
 * be linked, and the slab is whole.  How many; 0: it is not so.
 */
static size_t give_whole(struct mf_slab_work *w, struct mf_cache_node *n, uint32_t pfn, size_t nr,
			 void **objects)
{
	struct mf_slab *slab = mf_slab_at(w->cache->slabs, pfn);

	if (w->direct || slab->inuse > nr || (slab->state != MF_SLAB_FULL && slab->state != MF_SLAB_NODE))
		return 0;
	nr = same_slab(w, pfn, nr, objects);
	if (nr != slab->inuse)
		return 0;
	slab->inuse = 0;
	slab->freelist = NULL;
	slab->whole = 1;
	if (slab->state == MF_SLAB_NODE && keeps_no_more(w->cache, n)) {
		mf_node_remove_partial(w->cache->slabs, n, pfn);
		count(w, MF_SLAB_STAT_free_remove_partial, 1);
		discard(w, n, pfn + 1);
	} else if (slab->state == MF_SLAB_FULL && keeps_no_more(w->cache, n)) {
		discard(w, n, pfn + 1);
	} else if (slab->state == MF_SLAB_FULL) {
		mf_node_add_partial(w->cache->slabs, n, pfn, true);
		count(w, MF_SLAB_STAT_free_add_partial, 1);
	}
	return nr;
}

/* Objects of one node in a row, under one hold of its lock; how many. */
static size_t give_to_node(struct mf_slab_work *w, size_t n, void **objects)
{
	uint32_t pfn = slab_of(w->cache, objects[0]);
	struct mf_cache_node *home = w->cache->node[mf_slab_at(w->cache->slabs, pfn)->node];
	bool joined = false;
	size_t done = 0, whole;

	if (give_to_own_slab(w, pfn, objects[0]))
		return 1;
	if (!mf_node_lock(home, w->only_try))
		return 0;
	while (done < n && !joined) {
		pfn = slab_of(w->cache, objects[done]);
		if (w->cache->node[mf_slab_at(w->cache->slabs, pfn)->node] != home || w->pc->slab == pfn + 1)
			break;
		whole = give_whole(w, home, pfn, n - done, objects + done);
		done += whole;
		if (whole)
			continue;
		joined = give_to_slab(w, home, pfn, objects[done++]);
		if (w->direct)
			count(w, MF_SLAB_STAT_free_slowpath, 1);
	}
	mf_lock_release(&home->lock);
	return done;
}

size_t mf_layers_give(struct mf_slab_work *w, size_t n, void **objects)
{
	size_t done = 0, more;

	w->pc->burst = 0;
	drain_full_list(w);
	while (done < n && (more = give_to_node(w, n - done, objects + done))) {
		done += more;
		drain_full_list(w);
	}
	return done;
}

/* --- shrinking --- */

/* Free objects up to which slabs are sorted: the fuller, the nearer to the head. */
#define SHRINK_BUCKETS 32u

static uint64_t shrink_node(struct mf_cache *cache, struct mf_cache_node *n, struct mf_slab_dead *dead)
{
	struct mf_slabs *slabs = cache->slabs;
	uint32_t bucket[SHRINK_BUCKETS] = { 0 };
	uint64_t gone = 0;

	mf_lock_acquire(&n->lock);
	for (uint32_t link = n->head, next; link; link = next) {
		struct mf_slab *slab = mf_slab_at(slabs, mf_slab_pfn(link));
		unsigned free = slab->objects - slab->inuse;

		next = slab->next;
		if (slab->inuse && free > SHRINK_BUCKETS)
			continue;
		mf_node_remove_partial(slabs, n, mf_slab_pfn(link));
		if (!slab->inuse) {
			mf_node_discard(cache, n, mf_slab_pfn(link), dead);
			gone++;
			continue;
		}
		slab->next = bucket[free - 1];
		bucket[free - 1] = link;
	}
	for (unsigned i = SHRINK_BUCKETS; i-- > 0;)
		for (uint32_t link = bucket[i], next; link; link = next) {
			next = mf_slab_at(slabs, mf_slab_pfn(link))->next;
			mf_node_add_partial(slabs, n, mf_slab_pfn(link), false);
		}
	mf_lock_release(&n->lock);
	return gone;
}

uint64_t mf_layers_shrink_nodes(struct mf_cache *cache, struct mf_slab_dead *dead)
{
	uint64_t gone = 0;

	for (int node = 0; node < MEMFS_MAX_NODES; node++)
		if (cache->node[node])
			gone += shrink_node(cache, cache->node[node], dead);
	return gone;
}
