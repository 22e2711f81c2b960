/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Per-CPU lists: everything but the fast path (pcp_fast.h).
 *
 * Two ways in.  The CPU's own threads pop and push by restartable sequence
 * while the lists are open.  Everybody else, and the owner when a list is empty
 * or full, takes the set's lock and shuts them (enter), works, and leaves.
 * The lock is only ever tried on the way of an allocation or a free: whoever
 * finds it taken (another thread, or itself below a signal handler) goes to the
 * zone instead, so nobody waits and nobody can deadlock (behaviour 2.5).
 *
 * Sizes follow the kernel's rules (behaviour 2.5): high grows with refills and
 * shrinks with ticks, batches double while only allocations or only frees come.
 * What the kernel updates at every operation, free_count and alloc_factor, is
 * settled here at each slow operation from how far the tops have moved in all and
 * from a hint, so that the fast path has a single committing store.
 *
 * Invariants, while shut: bottom - top <= mask + 1 for each list; a list has
 * room for top - limit more; the pages on the lists plus all rooms are below
 * high, or there is no room at all.
 *
 * Locks: MF_LOCK_PCP, under it MF_LOCK_ZONE.
 */
#include "page/page_internal.h"
#include "page/pcp_fast.h"

#include <string.h>

static uint32_t list_count(const struct mf_pcp_list *list)
{
	return __atomic_load_n(&list->ring.bottom, __ATOMIC_RELAXED) -
	       __atomic_load_n(&list->ring.top, __ATOMIC_RELAXED);
}

uint32_t mf_pcp_count(const struct mf_pcp *pcp)
{
	uint32_t pages = 0;

	for (unsigned i = 0; i < MF_PCP_LISTS; i++)
		pages += list_count(&pcp->list[i]) << mf_pcp_list_order(i);
	return pages;
}

/*
 * Readers of zoneinfo look at tops, bottoms and high without the lock, and the
 * knobs change sizes under nobody's feet: single words, relaxed.
 */
static void set_top(struct mf_pcp_list *list, uint32_t top)
{
	__atomic_store_n(&list->ring.top, top, __ATOMIC_RELAXED);
}

static void set_bottom(struct mf_pcp_list *list, uint32_t bottom)
{
	__atomic_store_n(&list->ring.bottom, bottom, __ATOMIC_RELAXED);
}

static void set_high(struct mf_pcp *pcp, uint32_t high)
{
	__atomic_store_n(&pcp->high, high, __ATOMIC_RELAXED);
}

static uint32_t get_batch(const struct mf_zone *zone)
{
	return __atomic_load_n(&zone->batch, __ATOMIC_RELAXED);
}

static uint32_t get_high_min(const struct mf_zone *zone)
{
	return __atomic_load_n(&zone->high_min, __ATOMIC_RELAXED);
}

static uint32_t get_high_max(const struct mf_zone *zone)
{
	return __atomic_load_n(&zone->high_max, __ATOMIC_RELAXED);
}

static uint32_t round_up_pow2(uint64_t value)
{
	uint32_t size = 64;

	while (size < value && size < (UINT32_C(1) << 31))
		size *= 2;
	return size;
}

/* Entries of an order-0 ring: more than high can ever ask for, whatever the knobs say. */
static uint32_t ring_size(const struct mf_page *pg, const struct mf_zone *zone)
{
	const struct mf_topo_node *node = pg->topo->node[zone->node];
	unsigned cpus = node->nr_cpus ? node->nr_cpus : pg->topo->nr_cpus;
	uint64_t share = zone->managed / (cpus ? cpus : 1);

	return round_up_pow2(share + 8 * (uint64_t)get_batch(zone));
}

/* Zone lock held. */
static void publish(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp, int cpu, uint32_t *rings,
		    size_t bytes)
{
	uint32_t size = ring_size(pg, zone);

	mf_lock_init(&pcp->lock, MF_LOCK_PCP);
	pcp->rings = rings;
	pcp->rings_bytes = bytes;
	pcp->cpu = cpu;
	__atomic_store_n(&pcp->owner, MF_RSEQ_SHUT, __ATOMIC_RELAXED);
	set_high(pcp, get_high_min(zone));
	for (unsigned i = 0; i < MF_PCP_LISTS; i++) {
		uint32_t entries = size >> mf_pcp_list_order(i);

		entries = entries < 16 ? 16 : entries;
		pcp->list[i].ring.entry = rings;
		pcp->list[i].ring.mask = entries - 1;
		rings += entries;
	}
	pcp->next_ready = zone->ready_pcps;
	__atomic_store_n(&pcp->ready, true, __ATOMIC_RELEASE);
	__atomic_store_n(&zone->ready_pcps, pcp, __ATOMIC_RELEASE);
}

static size_t rings_bytes(const struct mf_page *pg, const struct mf_zone *zone)
{
	uint32_t size = ring_size(pg, zone);
	size_t entries = 0;

	for (unsigned i = 0; i < MF_PCP_LISTS; i++)
		entries += size >> mf_pcp_list_order(i) < 16 ? 16 : size >> mf_pcp_list_order(i);
	return (entries * sizeof(uint32_t) + 4095) & ~(size_t)4095;
}

/*
 * First use of a CPU's lists.  The rings are address space until pages pass
 * through them; they are made before the zone lock, which decides the race.
 */
static bool make_ready(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp, int cpu, bool only_try)
{
	size_t bytes = rings_bytes(pg, zone);
	uint32_t *rings;

	if (mf_fault_hit(pg->fault, MF_FAULT_meta_alloc))
		return false;
	rings = pg->plat->ops->meta_alloc(pg->plat, bytes);
	if (!rings)
		return false;
	if (!mf_zone_lock(pg, zone, only_try)) {
		pg->plat->ops->meta_free(pg->plat, rings, bytes);
		return false;
	}
	if (!pcp->ready) {
		publish(pg, zone, pcp, cpu, rings, bytes);
		rings = NULL;
	}
	mf_zone_unlock(zone);
	if (rings)
		pg->plat->ops->meta_free(pg->plat, rings, bytes);
	return true;
}

/*
 * On the CPU itself one sequence shuts the lists, for no other sequence of that
 * CPU can be half-way then; from elsewhere the word is stored first and the
 * fence makes sure that whoever saw it open is gone.
 */
static void shut(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp)
{
	if (mf_rseq_shut(&pcp->owner) == MF_RSEQ_DONE)
		return;
	__atomic_store_n(&pcp->owner, MF_RSEQ_SHUT, __ATOMIC_RELEASE);
	mf_rseq_fence(pcp->cpu);
	mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pcp_remote, 1);
}

static bool is_open(const struct mf_pcp *pcp)
{
	return __atomic_load_n(&pcp->owner, __ATOMIC_RELAXED) != MF_RSEQ_SHUT;
}

/* Lock held.  Returns whether the lists were open before. */
static bool settle(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp)
{
	bool open = is_open(pcp);

	if (open)
		shut(pg, zone, pcp);
	mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pcp_locked, 1);
	return open;
}

static bool enter(struct mf_page *pg, struct mf_zone *zone, int cpu, bool only_try)
{
	struct mf_pcp *pcp = &zone->pcp[cpu];

	if (!__atomic_load_n(&pcp->ready, __ATOMIC_ACQUIRE) && !make_ready(pg, zone, pcp, cpu, only_try))
		return false;
	if (!mf_lock_try(&pcp->lock)) {
		mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pcp_trylock_fail, 1);
		return false;
	}
	settle(pg, zone, pcp);
	return true;
}

/*
 * open: the owner came by itself, so its sequences may have the lists again.
 * A visitor leaves them shut: the next owner opens them, and visitors who
 * follow each other need no further fence.
 */
static void leave(struct mf_page *pg, struct mf_pcp *pcp, bool open)
{
	if (open && __atomic_load_n(&pg->rseq, __ATOMIC_RELAXED)) {
		__atomic_store_n(&pcp->visits, pcp->visits + 1, __ATOMIC_RELAXED);
		__atomic_store_n(&pcp->owner, (uint32_t)pcp->cpu, __ATOMIC_RELEASE);
	}
	mf_lock_release(&pcp->lock);
}

/* --- what may stay on the lists --- */

/* Shares the room below high among the lists in use (and `favoured`). */
static void share_room(struct mf_pcp *pcp, unsigned favoured)
{
	uint32_t count = mf_pcp_count(pcp);
	uint32_t room = pcp->high > count + 1 ? pcp->high - count - 1 : 0;
	unsigned used = 0;

	for (unsigned i = 0; i < MF_PCP_LISTS; i++)
		used += i == favoured || list_count(&pcp->list[i]) > 0;
	for (unsigned i = 0; i < MF_PCP_LISTS; i++) {
		struct mf_pcp_list *list = &pcp->list[i];
		uint32_t most = list->ring.mask + 1 - list_count(list);
		uint32_t blocks = 0;

		if (i == favoured || list_count(list) > 0)
			blocks = (room / used) >> mf_pcp_list_order(i);
		list->ring.limit = list->ring.top - (blocks < most ? blocks : most);
		list->seen_top = list->ring.top;
	}
}

static uint32_t clamp_high(const struct mf_zone *zone, uint32_t high)
{
	if (high > get_high_max(zone))
		high = get_high_max(zone);
	return high < get_high_min(zone) ? get_high_min(zone) : high;
}

/*
 * What went through sequences since the last slow operation, as a sum: a list
 * that grew was freed to, one that shrank was taken from.
 */
static void count_frees(const struct mf_zone *zone, struct mf_pcp *pcp, uint32_t extra)
{
	uint32_t most = get_batch(zone) << MF_PCP_BATCH_SCALE_MAX;
	uint64_t frees = extra;
	bool taken = false;

	for (unsigned i = 0; i < MF_PCP_LISTS; i++) {
		int32_t pushed = (int32_t)(pcp->list[i].seen_top - pcp->list[i].ring.top);

		if (pushed > 0)
			frees += (uint64_t)pushed << mf_pcp_list_order(i);
		taken |= pushed < 0;
	}
	if (taken)
		pcp->free_count >>= 1;
	pcp->free_count = pcp->free_count + frees > most ? most : pcp->free_count + (uint32_t)frees;
}

static bool below_high(const struct mf_zone *zone)
{
	return mf_zone_free_pages(zone) < __atomic_load_n(&zone->wmark[MF_WMARK_HIGH], __ATOMIC_RELAXED);
}

/* How many blocks of the order a refill brings. */
static uint32_t refill_blocks(const struct mf_zone *zone, struct mf_pcp *pcp, unsigned order)
{
	uint32_t base = get_batch(zone), batch = base;
	uint32_t high = pcp->high, count, most;

	if (high < base || base <= 1)
		return 1;
	if (pcp->free_seen) {
		pcp->alloc_factor = 0;
		pcp->free_seen = 0;
	}
	if (order == 0)
		batch = base << pcp->alloc_factor;
	if (get_high_min(zone) != get_high_max(zone) && !below_high(zone)) {
		high = high + batch > get_high_max(zone) ? get_high_max(zone) : high + batch;
		set_high(pcp, high);
	}
	if (order > 0)
		return batch >> order > 2 ? batch >> order : 2;
	count = mf_pcp_count(pcp);
	most = high > count + base ? high - count - base : 0;
	most = most < base ? base : most;
	if (batch <= most && pcp->alloc_factor < MF_PCP_BATCH_SCALE_MAX)
		pcp->alloc_factor++;
	return batch < most ? batch : most;
}

/* Into an empty list; entered.  The list starts at index 0, so that it is one piece. */
static bool refill(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp, unsigned index,
		   const struct mf_alloc *a)
{
	struct mf_pcp_list *list = &pcp->list[index];
	unsigned order = mf_pcp_list_order(index);
	uint32_t n = refill_blocks(zone, pcp, order);
	size_t got;

	n = n > list->ring.mask + 1 ? list->ring.mask + 1 : n;
	got = mf_zone_take_many(pg, zone, order, a->type, a->no_sleep, a->nofragment, n, list->ring.entry);
	set_top(list, 0);
	set_bottom(list, (uint32_t)got);
	share_room(pcp, index);
	mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pcp_refill, 1);
	mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pcp_refill_pages, (uint64_t)got << order);
	return got > 0;
}

/* --- taking --- */

bool mf_pcp_take(struct mf_page *pg, struct mf_zone *zone, const struct mf_alloc *a, uint32_t *pfn)
{
	int index = mf_pcp_list_index(a->order, a->type);
	struct mf_pcp_list *list;
	struct mf_pcp *pcp;
	bool filled;

	if (index < 0 || a->bypass || a->cpu < 0)
		return false;
	if (a->auto_cpu && mf_pcp_fast_take(&zone->pcp[a->cpu], (unsigned)index, pfn)) {
		mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pcp_hit, UINT64_C(1) << a->order);
		return true;
	}
	if (!enter(pg, zone, a->cpu, a->no_sleep))
		return false;
	pcp = &zone->pcp[a->cpu];
	list = &pcp->list[index];
	count_frees(zone, pcp, 0);
	pcp->free_count >>= 1;
	filled = list_count(list) > 0;
	if (filled)
		mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pcp_hit, UINT64_C(1) << a->order);
	else
		filled = !a->highatomic && refill(pg, zone, pcp, (unsigned)index, a);
	if (filled) {
		*pfn = list->ring.entry[list->ring.top & list->ring.mask];
		set_top(list, list->ring.top + 1);
	}
	list->seen_top = list->ring.top;
	leave(pg, pcp, a->auto_cpu);
	return filled;
}

/* How many of n entries from the top on lie in one piece. */
static uint32_t one_piece(const struct mf_pcp_list *list, uint32_t top, uint64_t n)
{
	uint32_t to_wrap = list->ring.mask + 1 - (top & list->ring.mask);

	return n < to_wrap ? (uint32_t)n : to_wrap;
}

static size_t fast_take_many(struct mf_zone *zone, int cpu, unsigned index, size_t n, uint32_t *pfns)
{
	struct mf_pcp *pcp = &zone->pcp[cpu];
	struct mf_pcp_list *list = &pcp->list[index];
	size_t got = 0;

	while (got < n) {
		uint32_t visits = __atomic_load_n(&pcp->visits, __ATOMIC_ACQUIRE);
		uint32_t top = __atomic_load_n(&list->ring.top, __ATOMIC_RELAXED);
		uint32_t there = __atomic_load_n(&list->ring.bottom, __ATOMIC_RELAXED) - top;
		uint32_t k = one_piece(list, top, n - got < there ? n - got : there);

		if (!is_open(pcp) || there == 0 || there > list->ring.mask + 1)
			break;
		if (mf_rseq_copy(&pcp->owner, &pcp->visits, visits, &list->ring.top, top, top + k, pfns + got,
				 list->ring.entry + (top & list->ring.mask), k) != MF_RSEQ_DONE)
			break;
		got += k;
	}
	return got;
}

static size_t locked_take_many(struct mf_pcp_list *list, size_t n, uint32_t *pfns)
{
	size_t got = 0;

	while (got < n && list_count(list)) {
		uint32_t k = one_piece(list, list->ring.top,
				       n - got < list_count(list) ? n - got : list_count(list));

		memcpy(pfns + got, list->ring.entry + (list->ring.top & list->ring.mask), k * sizeof(*pfns));
		set_top(list, list->ring.top + k);
		got += k;
	}
	list->seen_top = list->ring.top;
	return got;
}

/*
 * Single pages.  What the list has is taken first; if a refill would not
 * cover the rest, the rest comes straight from the zone in one go.
 */
size_t mf_pcp_take_many(struct mf_page *pg, struct mf_zone *zone, const struct mf_alloc *a, size_t n,
			uint32_t *pfns)
{
	unsigned index = (unsigned)mf_pcp_list_index(0, a->type);
	struct mf_pcp *pcp;
	size_t got = 0, hit;

	if (a->bypass || a->cpu < 0)
		return 0;
	if (a->auto_cpu)
		got = fast_take_many(zone, a->cpu, index, n, pfns);
	if (got < n && enter(pg, zone, a->cpu, a->no_sleep)) {
		pcp = &zone->pcp[a->cpu];
		count_frees(zone, pcp, 0);
		got += locked_take_many(&pcp->list[index], n - got, pfns + got);
		hit = got;
		if (got < n) {
			uint32_t amount = refill_blocks(zone, pcp, 0);

			if (n - got >= amount)
				got += mf_zone_take_many(pg, zone, 0, a->type, a->no_sleep, a->nofragment,
							 n - got, pfns + got);
			else if (refill(pg, zone, pcp, index, a))
				got += locked_take_many(&pcp->list[index], n - got, pfns + got);
			share_room(pcp, index);
		}
		leave(pg, pcp, a->auto_cpu);
	} else {
		hit = got;
	}
	if (hit)
		mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pcp_hit, hit);
	return got;
}

/* --- giving and draining --- */

/* The coldest blocks of one list, at most `pages` pages, in chunks the zone lock bears. False: zone busy. */
static bool drain_list(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp_list *list, unsigned order,
		       uint32_t *pages, bool only_try)
{
	uint32_t chunk_most = get_batch(zone) >> order ? get_batch(zone) >> order : 1;

	while (*pages && list_count(list)) {
		uint32_t want = (uint32_t)(((uint64_t)*pages + (1u << order) - 1) >> order);
		uint32_t end = ((list->ring.bottom - 1) & list->ring.mask) +
			       1; /* ring position behind the coldest */
		uint32_t k = want < chunk_most ? want : chunk_most;

		k = k < list_count(list) ? k : list_count(list);
		k = k < end ? k : end;
		if (!mf_zone_give(pg, zone, order, only_try, k, list->ring.entry + end - k))
			return false;
		set_bottom(list, list->ring.bottom - k);
		*pages -= (k << order) < *pages ? k << order : *pages;
		mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pcp_drain_pages, (uint64_t)k << order);
	}
	return true;
}

/* Entered.  Round robin over the lists, `first` first (behaviour 2.5). */
static void drain(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp, unsigned first,
		  uint32_t pages, bool only_try)
{
	mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pcp_drain, 1);
	for (unsigned i = 0; i < MF_PCP_LISTS && pages; i++) {
		unsigned index = (first + i) % MF_PCP_LISTS;

		if (!drain_list(pg, zone, &pcp->list[index], mf_pcp_list_order(index), &pages, only_try))
			break;
	}
}

/* After frees: is there too much, and how much of it goes (behaviour 2.5)? */
static void drain_excess(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp, unsigned index,
			 bool only_try)
{
	uint32_t count = mf_pcp_count(pcp), batch = get_batch(zone), high = pcp->high, pages;

	if (get_high_min(zone) != get_high_max(zone) && below_high(zone)) {
		uint32_t less = pcp->free_count > batch ? pcp->free_count : batch;

		set_high(pcp, clamp_high(zone, high > less ? high - less : 0));
		high = count > get_high_min(zone) ? count : get_high_min(zone);
	} else if (get_high_min(zone) != get_high_max(zone) && count >= high &&
		   high < pcp->free_count + batch) {
		set_high(pcp, clamp_high(zone, pcp->free_count + batch));
	}
	if (count < high)
		return;
	if (high < batch) {
		pages = 1;
	} else {
		pages = pcp->free_count > batch ? pcp->free_count : batch;
		pages = pages > high - batch ? high - batch : pages;
		pages = pages ? pages : 1;
	}
	/* The list may have been allowed to outgrow a high that has just been lowered. */
	if (count - pages >= pcp->high + batch)
		pages = count - pcp->high;
	drain(pg, zone, pcp, index, pages, only_try);
}

static void push_locked(struct mf_pcp_list *list, uint32_t pfn)
{
	set_top(list, list->ring.top - 1);
	list->ring.entry[list->ring.top & list->ring.mask] = pfn;
}

bool mf_pcp_give(struct mf_page *pg, struct mf_zone *zone, int cpu, bool auto_cpu, unsigned order,
		 enum mf_migrate_type type, uint32_t pfn)
{
	int index = type < MF_PCP_TYPES ? mf_pcp_list_index(order, type) : -1;
	bool only_try = mf_lock_depth() > 0;
	struct mf_pcp_list *list;
	struct mf_pcp *pcp;

	if (index < 0 || cpu < 0)
		return false;
	if (auto_cpu && mf_pcp_fast_give(&zone->pcp[cpu], (unsigned)index, pfn))
		return true;
	if (!enter(pg, zone, cpu, only_try))
		return false;
	pcp = &zone->pcp[cpu];
	list = &pcp->list[index];
	if (list_count(list) > list->ring.mask) {
		leave(pg, pcp, auto_cpu);
		return false;
	}
	count_frees(zone, pcp, 1u << order);
	pcp->alloc_factor >>= 1;
	push_locked(list, pfn);
	drain_excess(pg, zone, pcp, (unsigned)index, only_try);
	share_room(pcp, (unsigned)index);
	leave(pg, pcp, auto_cpu);
	return true;
}

static size_t fast_give_many(struct mf_zone *zone, int cpu, unsigned index, size_t n, const uint32_t *pfns)
{
	struct mf_pcp *pcp = &zone->pcp[cpu];
	struct mf_pcp_list *list = &pcp->list[index];
	size_t given = 0;

	while (given < n) {
		uint32_t visits = __atomic_load_n(&pcp->visits, __ATOMIC_ACQUIRE);
		uint32_t top = __atomic_load_n(&list->ring.top, __ATOMIC_RELAXED);
		uint32_t room = top - __atomic_load_n(&list->ring.limit, __ATOMIC_RELAXED);
		uint32_t end = ((top - 1) & list->ring.mask) + 1;
		uint64_t k = n - given < room ? n - given : room;

		k = k < end ? k : end;
		if (!is_open(pcp) || room == 0 || room > list->ring.mask + 1)
			break;
		if (mf_rseq_copy(&pcp->owner, &pcp->visits, visits, &list->ring.top, top, top - (uint32_t)k,
				 list->ring.entry + end - k, pfns + given, k) != MF_RSEQ_DONE)
			break;
		given += k;
	}
	if (given)
		pcp->free_seen = 1;
	return given;
}

/* One round under the lock: as many as fit below high, at least one; then what is too much goes. */
static size_t locked_give_many(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp, unsigned index,
			       size_t n, const uint32_t *pfns, bool only_try)
{
	struct mf_pcp_list *list = &pcp->list[index];
	uint32_t count = mf_pcp_count(pcp);
	uint32_t k = pcp->high > count ? pcp->high - count : 1;
	uint32_t room = list->ring.mask + 1 - list_count(list);

	k = k < n ? k : (uint32_t)n;
	k = k < room ? k : room;
	for (uint32_t i = 0; i < k; i++)
		push_locked(list, pfns[i]);
	count_frees(zone, pcp, 0);
	pcp->alloc_factor = 0;
	drain_excess(pg, zone, pcp, index, only_try);
	share_room(pcp, index);
	return k;
}

size_t mf_pcp_give_many(struct mf_page *pg, struct mf_zone *zone, int cpu, bool auto_cpu,
			enum mf_migrate_type type, size_t n, const uint32_t *pfns)
{
	unsigned index = (unsigned)mf_pcp_list_index(0, type);
	bool only_try = mf_lock_depth() > 0;
	size_t given = 0;

	if (type >= MF_PCP_TYPES || cpu < 0)
		return 0;
	if (auto_cpu)
		given = fast_give_many(zone, cpu, index, n, pfns);
	if (given < n && enter(pg, zone, cpu, only_try)) {
		size_t round = 1;

		for (; given < n && round; given += round)
			round = locked_give_many(pg, zone, &zone->pcp[cpu], index, n - given, pfns + given,
						 only_try);
		leave(pg, &zone->pcp[cpu], auto_cpu);
	}
	return given;
}

/* --- whole sets, from outside --- */

/* Runs work(pcp) inside every set that exists, waiting for each. */
static void for_each_ready(struct mf_page *pg, struct mf_zone *zone,
			   void (*work)(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp))
{
	struct mf_pcp *pcp = __atomic_load_n(&zone->ready_pcps, __ATOMIC_ACQUIRE);

	for (; pcp; pcp = pcp->next_ready) {
		bool open;

		mf_lock_acquire(&pcp->lock);
		open = settle(pg, zone, pcp);
		work(pg, zone, pcp);
		leave(pg, pcp, open);
	}
}

static void drain_all(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp)
{
	if (mf_pcp_count(pcp))
		drain(pg, zone, pcp, 0, UINT32_MAX, false);
	share_room(pcp, 0);
}

void mf_pcp_drain_zone(struct mf_page *pg, struct mf_zone *zone)
{
	for_each_ready(pg, zone, drain_all);
}

static void resize(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp)
{
	set_high(pcp, clamp_high(zone, pcp->high));
	if (__atomic_load_n(&pg->knobs.pcp_mode, __ATOMIC_RELAXED) == MF_PCP_OFF)
		drain_all(pg, zone, pcp);
	else if (mf_pcp_count(pcp) > pcp->high)
		drain(pg, zone, pcp, 0, mf_pcp_count(pcp) - pcp->high, false);
	share_room(pcp, 0);
}

void mf_pcp_resize(struct mf_page *pg, struct mf_zone *zone)
{
	for_each_ready(pg, zone, resize);
}

/* Nothing was taken or given since the last tick (and remembers for the next). */
static bool idle_since_tick(struct mf_pcp *pcp)
{
	bool idle = true;

	for (unsigned i = 0; i < MF_PCP_LISTS; i++) {
		uint32_t top = __atomic_load_n(&pcp->list[i].ring.top, __ATOMIC_RELAXED);

		idle &= top == pcp->list[i].tick_top;
		pcp->list[i].tick_top = top;
	}
	return idle;
}

/* high falls by an eighth, and what is above it goes (behaviour 2.5). */
static void decay(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp)
{
	uint32_t count = mf_pcp_count(pcp), scale = get_batch(zone) << MF_PCP_BATCH_SCALE_MAX;
	uint32_t high = pcp->high - (pcp->high >> 3);

	if (pcp->high > get_high_min(zone)) {
		high = count > scale && count - scale > high ? count - scale : high;
		set_high(pcp, clamp_high(zone, high));
	}
	if (count > pcp->high)
		drain(pg, zone, pcp, 0, count - pcp->high, false);
	share_room(pcp, 0);
}

/* A set with nothing to do is not fenced off: the tick only looks. */
void mf_pcp_tick(struct mf_page *pg, struct mf_zone *zone)
{
	struct mf_pcp *pcp = __atomic_load_n(&zone->ready_pcps, __ATOMIC_ACQUIRE);

	for (; pcp; pcp = pcp->next_ready) {
		bool remote = pg->topo->cpu_node[pcp->cpu] != zone->node;
		bool expired = false, open;

		mf_lock_acquire(&pcp->lock);
		if (!idle_since_tick(pcp))
			pcp->expire = 3;
		else if (pcp->expire)
			expired = --pcp->expire == 0 && remote;
		if (!expired && pcp->high <= get_high_min(zone) && mf_pcp_count(pcp) <= pcp->high) {
			mf_lock_release(&pcp->lock);
			continue;
		}
		open = settle(pg, zone, pcp);
		if (expired)
			drain_all(pg, zone, pcp);
		else
			decay(pg, zone, pcp);
		leave(pg, pcp, open);
	}
}

/* --- looking --- */

static unsigned check_list(const struct mf_page *pg, const struct mf_zone *zone, const struct mf_pcp *pcp,
			   unsigned index, struct mf_outbuf *out)
{
	const struct mf_pcp_list *list = &pcp->list[index];
	unsigned order = mf_pcp_list_order(index), bad = 0;

	if (list_count(list) > list->ring.mask + 1) {
		mf_outbuf_printf(out, "zone %u cpu %d list %u: %u entries in a ring of %u\n", zone->index,
				 pcp->cpu, index, list_count(list), list->ring.mask + 1);
		return 1;
	}
	for (uint32_t i = list->ring.top; i != list->ring.bottom; i++) {
		uint32_t pfn = list->ring.entry[i & list->ring.mask];

		if (mf_page_zone(pg, pfn) != (int)zone->index || pfn & ((1u << order) - 1) ||
		    mf_buddy_page_is_free(&zone->buddy, pfn)) {
			mf_outbuf_printf(out, "zone %u cpu %d list %u: pfn %u does not belong there\n",
					 zone->index, pcp->cpu, index, pfn);
			bad++;
		}
	}
	return bad;
}

/* The zone lock must not be held; each set is entered while it is walked. */
unsigned mf_pcp_check(struct mf_page *pg, struct mf_zone *zone, uint64_t *pages, struct mf_outbuf *out)
{
	struct mf_pcp *pcp = __atomic_load_n(&zone->ready_pcps, __ATOMIC_ACQUIRE);
	unsigned bad = 0;

	*pages = 0;
	for (; pcp; pcp = pcp->next_ready) {
		bool open;

		mf_lock_acquire(&pcp->lock);
		open = settle(pg, zone, pcp);
		mf_zone_lock(pg, zone, false);
		for (unsigned i = 0; i < MF_PCP_LISTS; i++)
			bad += check_list(pg, zone, pcp, i, out);
		mf_zone_unlock(zone);
		*pages += mf_pcp_count(pcp);
		leave(pg, pcp, open);
	}
	return bad;
}

void mf_pcp_destroy_zone(struct mf_page *pg, struct mf_zone *zone)
{
	for (struct mf_pcp *pcp = zone->ready_pcps; pcp; pcp = pcp->next_ready) {
		pg->plat->ops->meta_free(pg->plat, pcp->rings, pcp->rings_bytes);
		mf_lock_destroy(&pcp->lock);
	}
}
