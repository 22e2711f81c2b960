/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every invariant of slab.h and slab_internal.h, counted anew: a line of text a
 * violation.
 *
 * First all pages: tags, and the slabs that begin there, by cache, node and
 * state.  Then each cache: its lists are walked and must have as many slabs of
 * each state as there are; every free object must lie at an object's start in
 * a slab of the cache, and only one list or sheaf may have it.
 *
 * Exact when nothing runs; otherwise it tells of moves it has seen half of, and
 * does nothing worse.
 *
 * Locks: one CPU's, one node's inside it, at a time; sequences are locked out
 * while their sheaves are read.
 */
#include "slab/slab_internal.h"

#include <stdlib.h>

#define ID_MASK ((UINT32_C(1) << MF_TAG_NODE_SHIFT) - 1)
#define NR_STATES (MF_SLAB_FULL + 1)

/* What begins on the pages of one node for one cache. */
struct count {
	uint64_t pages, slabs, objects, state[NR_STATES];
};

struct check {
	struct mf_slabs *slabs;
	struct mf_outbuf *out;
	unsigned bad;
	struct count *pages; /* [id * MEMFS_MAX_NODES + node] */
	uint32_t nr_ids;
	/* of the cache that is looked at */
	struct mf_cache *cache;
	const void **free; /* every object on a list or in a sheaf */
	size_t nr_free, room;
	uint64_t seen[NR_STATES];
};

static void __attribute__((format(printf, 2, 3))) say(struct check *c, const char *format, ...)
{
	va_list args;

	mf_outbuf_printf(c->out, "slab%s%s: ", c->cache ? " " : "", c->cache ? c->cache->name : "");
	va_start(args, format);
	mf_outbuf_vprintf(c->out, format, args);
	va_end(args);
	mf_outbuf_puts(c->out, "\n");
	c->bad++;
}

static void equal(struct check *c, int node, const char *what, uint64_t is, uint64_t must_be)
{
	if (is != must_be)
		say(c, "node %d: %s is %llu, must be %llu", node, what, (unsigned long long)is,
		    (unsigned long long)must_be);
}

/* --- all pages --- */

static struct count *count_of(struct check *c, uint32_t id, int node)
{
	return &c->pages[(size_t)id * MEMFS_MAX_NODES + (unsigned)node];
}

/* A first page. */
static void check_slab(struct check *c, const struct mf_cache *cache, uint32_t pfn, int node)
{
	const struct mf_slab *slab = mf_slab_at(c->slabs, pfn);
	struct count *count = count_of(c, cache->id, node);

	if (slab->state > MF_SLAB_FULL || slab->cache != cache->id || slab->node != node ||
	    (slab->order != cache->geometry.order && slab->order != cache->geometry.min_order) ||
	    slab->objects != mf_slab_objects(cache->geometry.size, slab->order) ||
	    slab->inuse > slab->objects) {
		say(c, "%s: the slab at page %u: cache %u, node %u, order %u, state %u, %u of %u in use",
		    cache->name, pfn, slab->cache, slab->node, slab->order, slab->state, slab->inuse,
		    slab->objects);
		return;
	}
	if (slab->whole && (slab->freelist || slab->inuse))
		say(c, "%s: the slab at page %u is whole and in use", cache->name, pfn);
	if (slab->state == MF_SLAB_FULL && (slab->freelist || slab->inuse != slab->objects))
		say(c, "%s: the full slab at page %u has free objects", cache->name, pfn);
	count->slabs++;
	count->objects += slab->objects;
	count->state[slab->state]++;
}

/* Another page of a slab leads to the first, which reaches as far. */
static void check_tail(struct check *c, const struct mf_cache *cache, uint32_t pfn)
{
	uint32_t first = mf_slab_at(c->slabs, pfn)->cache;
	const struct mf_slab *slab;

	if (first < pfn) {
		slab = mf_slab_at(c->slabs, first);
		if (slab->state != MF_SLAB_NONE && slab->cache == cache->id &&
		    pfn - first < UINT32_C(1) << slab->order)
			return;
	}
	say(c, "%s: page %u has its tag and belongs to no slab", cache->name, pfn);
}

static void check_page(struct check *c, uint32_t pfn)
{
	uint32_t tag = __atomic_load_n(&c->slabs->tags[pfn], __ATOMIC_RELAXED), id = tag & ID_MASK;
	int node = (int)(tag >> MF_TAG_NODE_SHIFT);
	const struct mf_slab *slab = mf_slab_at(c->slabs, pfn);
	const struct mf_cache *cache;

	if (!tag || tag & MF_TAG_LARGE) {
		if (slab->state != MF_SLAB_NONE)
			say(c, "a slab begins at page %u, which has no tag", pfn);
		return;
	}
	cache = id < c->nr_ids ? __atomic_load_n(&c->slabs->by_id[id], __ATOMIC_ACQUIRE) : NULL;
	if (!cache || node != mf_page_node(c->slabs->page, pfn)) {
		say(c, "page %u has the tag of cache %u, node %d", pfn, id, node);
		return;
	}
	count_of(c, id, node)->pages++;
	if (slab->state == MF_SLAB_NONE)
		check_tail(c, cache, pfn);
	else
		check_slab(c, cache, pfn, node);
}

/* --- free objects --- */

static bool add_free(struct check *c, const void *object, const char *where)
{
	if (!mf_slab_object_start(c->cache, object)) {
		say(c, "%s: %p is no object of it", where, object);
		return false;
	}
	if (c->nr_free == c->room) {
		size_t room = c->room ? 2 * c->room : 1024;
		const void **free = realloc(c->free, room * sizeof(*free));

		if (!free) {
			say(c, "no memory to check it");
			return false;
		}
		c->free = free;
		c->room = room;
	}
	c->free[c->nr_free++] = object;
	return true;
}

/* How many, of which none may lie outside the slab at @pfn (UINT32_MAX: anywhere). */
static uint64_t add_list(struct check *c, const void *object, uint32_t pfn, const char *where)
{
	uint64_t nr = 0;

	for (; object; object = mf_slab_next_free(c->cache, object)) {
		uint32_t page =
			(uint32_t)((uint64_t)((const char *)object - c->slabs->base) >> MEMFS_PAGE_SHIFT);

		if (!add_free(c, object, where))
			break;
		if (pfn != UINT32_MAX && mf_slab_first_page(c->slabs, page) != pfn)
			say(c, "%s: %p lies in another slab", where, object);
		if (++nr > UINT32_MAX >> 1 || (pfn != UINT32_MAX && nr > MF_SLAB_MAX_OBJECTS)) {
			say(c, "%s: it runs in a circle", where);
			break;
		}
	}
	return nr;
}

/* Objects that were never linked. */
static void add_fresh(struct check *c, uint32_t pfn, struct mf_slab_fresh fresh, const char *where)
{
	while (fresh.left)
		if (!add_free(c, mf_slab_next_fresh(c->cache, pfn, &fresh), where))
			break;
}

static int by_address(const void *a, const void *b)
{
	uintptr_t one = (uintptr_t) * (const void *const *)a, other = (uintptr_t) * (const void *const *)b;

	return one < other ? -1 : one > other;
}

static void check_twice(struct check *c)
{
	if (c->nr_free)
		qsort(c->free, c->nr_free, sizeof(*c->free), by_address);
	for (size_t i = 1; i < c->nr_free; i++)
		if (c->free[i] == c->free[i - 1])
			say(c, "%p is free twice", c->free[i]);
}

/* --- slabs on lists; the node's lock is held --- */

/* False: the list leads astray and must not be followed. */
static bool check_listed(struct check *c, uint32_t link, enum mf_slab_state state, int node)
{
	const struct mf_slab *slab;
	uint32_t pfn = mf_slab_pfn(link);

	if (pfn >= c->slabs->topo->pfn_limit) {
		say(c, "a list leads to page %u", pfn);
		return false;
	}
	slab = mf_slab_at(c->slabs, pfn);
	if (slab->state != state || slab->cache != c->cache->id || (node >= 0 && slab->node != node)) {
		say(c, "the slab at page %u (cache %u, node %u) has state %u on a list of state %u", pfn,
		    slab->cache, slab->node, slab->state, state);
		return false;
	}
	if (!slab->whole &&
	    add_list(c, slab->freelist, pfn, "free list") != (uint64_t)(slab->objects - slab->inuse))
		say(c, "the slab at page %u: its free list has not %u objects", pfn,
		    slab->objects - slab->inuse);
	if (slab->whole)
		add_fresh(c, pfn, mf_slab_shuffle(slab->objects, 0), "whole slab");
	if (!slab->freelist && !slab->whole && (state == MF_SLAB_NODE || state == MF_SLAB_CPU_PARTIAL))
		say(c, "the slab at page %u is on a list without a free object", pfn);
	c->seen[state]++;
	return true;
}

/* A node's list, linked both ways; returns its last. */
static uint32_t check_node_list(struct check *c, uint32_t head, enum mf_slab_state state, int node,
				uint64_t *nr)
{
	uint32_t last = 0;

	for (uint32_t link = head; link && *nr <= c->slabs->topo->pfn_limit; (*nr)++) {
		if (!check_listed(c, link, state, node))
			break;
		if (mf_slab_at(c->slabs, mf_slab_pfn(link))->prev != last)
			say(c, "the slab at page %u is not linked back", mf_slab_pfn(link));
		last = link;
		link = mf_slab_at(c->slabs, mf_slab_pfn(link))->next;
	}
	return last;
}

/* @put_away: it is with no CPU, or its spare: nothing is counted in it. */
static void check_sheaf(struct check *c, const struct mf_sheaf *sheaf, bool put_away, const char *where)
{
	unsigned depth = MF_SHEAF_DEPTH(sheaf->word);

	if (depth > sheaf->room || (put_away && (sheaf->word >> 16 || sheaf->start != depth)))
		say(c, "%s: %u objects, room for %u, %llu taken, started with %u", where, depth, sheaf->room,
		    (unsigned long long)(sheaf->word >> 16), sheaf->start);
	for (unsigned i = 0; i < depth && depth <= sheaf->room; i++)
		add_free(c, sheaf->object[i], where);
}

static void check_stock(struct check *c, const struct mf_cache_node *n, int node)
{
	uint64_t objects = 0;

	for (const struct mf_sheaf *sheaf = n->stock; sheaf && objects <= n->stock_objects;
	     sheaf = sheaf->next) {
		check_sheaf(c, sheaf, true, "stock");
		objects += MF_SHEAF_DEPTH(sheaf->word);
	}
	equal(c, node, "the stock", n->stock_objects, objects);
}

static void check_node(struct check *c, int node)
{
	const struct count *pages = count_of(c, c->cache->id, node);
	struct mf_cache_node *n = c->cache->node[node];
	uint64_t partial = 0, full = 0;
	uint32_t last;

	mf_lock_acquire(&n->lock);
	last = check_node_list(c, n->head, MF_SLAB_NODE, node, &partial);
	if (last != n->tail)
		say(c, "node %d: the list ends with %u, not with %u", node, last, n->tail);
	check_node_list(c, n->full, MF_SLAB_FULL, node, &full);
	check_stock(c, n, node);
	equal(c, node, "nr_partial", n->nr_partial, partial);
	equal(c, node, "slabs on the partial list", partial, pages->state[MF_SLAB_NODE]);
	equal(c, node, "slabs on the full list", full,
	      mf_cache_debugs(c->cache) ? pages->state[MF_SLAB_FULL] : 0);
	equal(c, node, "nr_slabs", n->nr_slabs, pages->slabs);
	equal(c, node, "nr_pages", n->nr_pages, pages->pages);
	equal(c, node, "total_objects", n->total_objects, pages->objects);
	equal(c, node, "slabs in no state", pages->state[MF_SLAB_NEW], 0);
	mf_lock_release(&n->lock);
}

/* --- CPUs; pc->lock is held --- */

static uint32_t check_cpu_slab(struct check *c, uint32_t link, enum mf_slab_state state)
{
	struct mf_cache_node *n = NULL;
	uint32_t next = 0;
	uint8_t node;

	if (mf_slab_pfn(link) < c->slabs->topo->pfn_limit) {
		node = mf_slab_at(c->slabs, mf_slab_pfn(link))->node;
		n = node < MEMFS_MAX_NODES ? c->cache->node[node] : NULL;
	}
	if (!n) {
		say(c, "a CPU has a slab at page %u", mf_slab_pfn(link));
		return 0;
	}
	mf_lock_acquire(&n->lock);
	if (check_listed(c, link, state, -1))
		next = mf_slab_at(c->slabs, mf_slab_pfn(link))->next;
	mf_lock_release(&n->lock);
	return next;
}

static void check_cpu_layers(struct check *c, const struct mf_cache_cpu *pc)
{
	uint32_t nr = 0, link = pc->partial;

	if (pc->slab) {
		check_cpu_slab(c, pc->slab, MF_SLAB_CPU);
		add_list(c, pc->freelist, mf_slab_pfn(pc->slab), "CPU slab");
		add_fresh(c, mf_slab_pfn(pc->slab), pc->fresh, "CPU slab");
	} else if (pc->freelist) {
		say(c, "CPU %d has a free list and no slab", pc->cpu);
	}
	for (; link && nr <= pc->partial_slabs; nr++)
		link = check_cpu_slab(c, link, MF_SLAB_CPU_PARTIAL);
	if (nr != pc->partial_slabs)
		say(c, "CPU %d: its list has %u slabs, not %u", pc->cpu, nr, pc->partial_slabs);
}

static void check_cpu(struct check *c, struct mf_cache_cpu *pc)
{
	const bool debugs = mf_cache_debugs(c->cache);

	mf_lock_acquire(&pc->lock);
	mf_sheaf_visit_begin(pc);
	check_cpu_layers(c, pc);
	check_sheaf(c, pc->main, false, "main sheaf");
	check_sheaf(c, pc->remote, false, "remote sheaf");
	if (pc->spare)
		check_sheaf(c, pc->spare, true, "spare sheaf");
	if (debugs && (pc->slab || pc->partial || pc->spare || MF_SHEAF_DEPTH(pc->main->word)))
		say(c, "CPU %d has objects of a cache with debugging", pc->cpu);
	if (pc->tag != mf_slab_tag(c->cache, pc->node))
		say(c, "CPU %d: its tag is %x", pc->cpu, pc->tag);
	mf_lock_release(&pc->lock);
}

/* --- one cache --- */

static uint64_t since_birth(const struct mf_cache *cache, enum mf_slab_stat id)
{
	uint64_t sum = 0;

	for (unsigned cpu = 0; cpu < mf_cache_nr_cpus(cache); cpu++)
		if (__atomic_load_n(&cache->cpu[cpu].ready, __ATOMIC_ACQUIRE))
			sum += __atomic_load_n(&cache->cpu[cpu].stat[id], __ATOMIC_RELAXED);
	return sum;
}

static void check_sums(struct check *c)
{
	uint64_t slabs = 0, objects = 0, state[NR_STATES] = { 0 };
	uint64_t born = since_birth(c->cache, MF_SLAB_STAT_alloc_slab);
	uint64_t gone = since_birth(c->cache, MF_SLAB_STAT_free_slab);

	for (int node = 0; node < MEMFS_MAX_NODES; node++) {
		const struct count *pages = count_of(c, c->cache->id, node);

		if (pages->slabs && !c->cache->node[node])
			say(c, "node %d has slabs and no memory", node);
		slabs += pages->slabs;
		objects += pages->objects;
		for (int i = 0; i < NR_STATES; i++)
			state[i] += pages->state[i];
	}
	if (c->seen[MF_SLAB_CPU] != state[MF_SLAB_CPU] ||
	    c->seen[MF_SLAB_CPU_PARTIAL] != state[MF_SLAB_CPU_PARTIAL])
		say(c, "CPUs have %llu and %llu slabs, %llu and %llu are marked so",
		    (unsigned long long)c->seen[MF_SLAB_CPU],
		    (unsigned long long)c->seen[MF_SLAB_CPU_PARTIAL], (unsigned long long)state[MF_SLAB_CPU],
		    (unsigned long long)state[MF_SLAB_CPU_PARTIAL]);
	if (born - gone != slabs)
		say(c, "alloc_slab %llu - free_slab %llu is not its %llu slabs", (unsigned long long)born,
		    (unsigned long long)gone, (unsigned long long)slabs);
	if (c->nr_free > objects)
		say(c, "%zu of %llu objects are free", c->nr_free, (unsigned long long)objects);
}

static void check_cache(void *arg, const char *name, struct mf_cache *cache, bool alias)
{
	struct check *c = arg;

	(void)name, (void)alias;
	/* Younger than the look at the pages. */
	if (cache->id >= c->nr_ids)
		return;
	c->cache = cache;
	c->nr_free = 0;
	for (int i = 0; i < NR_STATES; i++)
		c->seen[i] = 0;
	if (c->slabs->by_id[cache->id] != cache)
		say(c, "its number %u is another's", cache->id);
	for (unsigned cpu = 0; cpu < mf_cache_nr_cpus(cache); cpu++)
		if (__atomic_load_n(&cache->cpu[cpu].ready, __ATOMIC_ACQUIRE))
			check_cpu(c, &cache->cpu[cpu]);
	for (int node = 0; node < MEMFS_MAX_NODES; node++)
		if (cache->node[node])
			check_node(c, node);
	add_list(c, atomic_load_explicit(&cache->deferred, memory_order_acquire), UINT32_MAX, "deferred");
	check_twice(c);
	check_sums(c);
	c->cache = NULL;
}

unsigned mf_slabs_check(struct mf_slabs *slabs, struct mf_outbuf *out)
{
	struct check c = { .slabs = slabs, .out = out };

	c.nr_ids = __atomic_load_n(&slabs->nr_ids, __ATOMIC_ACQUIRE);
	c.pages = calloc((size_t)c.nr_ids * MEMFS_MAX_NODES, sizeof(*c.pages));
	if (!c.pages) {
		say(&c, "no memory to check it");
		return c.bad;
	}
	for (uint32_t pfn = 0; pfn < slabs->topo->pfn_limit; pfn++)
		check_page(&c, pfn);
	mf_cache_for_each(slabs, false, check_cache, &c);
	free(c.free);
	free(c.pages);
	return c.bad;
}
