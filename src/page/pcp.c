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
 * settled here at each slow operation from how far the tops have moved in all, so
 * that the fast path has a single committing store and no other.
 *
 * Visitors follow each other without opening the lists in between: then nothing
 * can have moved, count is exact, and one operation costs a lock and a push or
 * pop.  What sequences did is only gone through when the lists were open, and
 * room is only shared out when they are opened again.
 *
 * Invariants, while shut: start <= limit, top <= bottom <= start + capacity for
 * each list; count is the pages on all lists.  When opened: the pages on the
 * lists plus all rooms are below high, or there is no room at all.
 *
 * Locks: MF_LOCK_PCP, under it MF_LOCK_ZONE.
 */
#include "page/page_internal.h"
#include "page/pcp_fast.h"

#include <string.h>

/* Pages that leave for the zone under one hold of its lock, at most. */
#define DRAIN_CHUNK 128u

static uint32_t list_count(const struct mf_pcp_list *list)
{
	return (uint32_t)(__atomic_load_n(&list->stack.bottom, __ATOMIC_RELAXED) -
			  __atomic_load_n(&list->stack.top, __ATOMIC_RELAXED));
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
static void set_top(struct mf_pcp_list *list, uint32_t *top)
{
	__atomic_store_n(&list->stack.top, top, __ATOMIC_RELAXED);
}

static void set_bottom(struct mf_pcp_list *list, uint32_t *bottom)
{
	__atomic_store_n(&list->stack.bottom, bottom, __ATOMIC_RELAXED);
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

/* --- first use --- */

/* Entries of a list: more than high can ever ask for, whatever the knobs say, and a batch. */
static uint32_t list_capacity(const struct mf_page *pg, const struct mf_zone *zone, unsigned index)
{
	const struct mf_topo_node *node = pg->topo->node[zone->node];
	unsigned cpus = node->nr_cpus ? node->nr_cpus : pg->topo->nr_cpus;
	uint64_t share = zone->managed / (cpus ? cpus : 1) + 64 * (uint64_t)get_batch(zone);

	return (uint32_t)(share >> mf_pcp_list_order(index)) + 16;
}

static size_t entries_bytes(const struct mf_page *pg, const struct mf_zone *zone)
{
	size_t entries = 0;

	for (unsigned i = 0; i < MF_PCP_LISTS; i++)
		entries += list_capacity(pg, zone, i);
	return (entries * sizeof(uint32_t) + 4095) & ~(size_t)4095;
}

/* Zone lock held. */
static void publish(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp, int cpu, uint32_t *entries)
{
	mf_lock_init(&pcp->lock, MF_LOCK_PCP);
	pcp->entries = entries;
	pcp->entries_bytes = entries_bytes(pg, zone);
	pcp->cpu = cpu;
	__atomic_store_n(&pcp->owner, MF_RSEQ_SHUT, __ATOMIC_RELAXED);
	set_high(pcp, get_high_min(zone));
	for (unsigned i = 0; i < MF_PCP_LISTS; i++) {
		struct mf_pcp_list *list = &pcp->list[i];

		list->capacity = list_capacity(pg, zone, i);
		list->start = entries;
		entries += list->capacity;
		set_bottom(list, entries);
		set_top(list, entries);
		list->stack.limit = entries;
		list->seen_top = list->tick_top = entries;
	}
	pcp->next_ready = zone->ready_pcps;
	__atomic_store_n(&pcp->ready, true, __ATOMIC_RELEASE);
	__atomic_store_n(&zone->ready_pcps, pcp, __ATOMIC_RELEASE);
}

/*
 * Lists in zeroed memory look open to CPU 0: harmless while their stacks are
 * NULL from end to end, but a sequence of a thread that has just moved to CPU 0
 * must not see them half made.
 */
static void shut_zeroed(struct mf_pcp *pcp, int cpu)
{
	uint32_t zero = 0;

	/* CPU 0's own are shut from the start: there, 0 means open. */
	if (cpu != 0 && mf_rseq_usable() &&
	    __atomic_compare_exchange_n(&pcp->owner, &zero, MF_RSEQ_SHUT, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		mf_rseq_fence(0);
}

/*
 * The stacks are address space until pages pass through them; they are made
 * before the zone lock, which decides the race.
 */
static bool make_ready(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp, int cpu, bool only_try)
{
	size_t bytes = entries_bytes(pg, zone);
	uint32_t *entries;

	if (mf_fault_hit(pg->fault, MF_FAULT_meta_alloc))
		return false;
	entries = pg->plat->ops->meta_alloc(pg->plat, bytes);
	if (!entries)
		return false;
	shut_zeroed(pcp, cpu);
	if (!mf_zone_lock(pg, zone, only_try)) {
		pg->plat->ops->meta_free(pg->plat, entries, bytes);
		return false;
	}
	if (!pcp->ready) {
		publish(pg, zone, pcp, cpu, entries);
		entries = NULL;
	}
	mf_zone_unlock(zone);
	if (entries)
		pg->plat->ops->meta_free(pg->plat, entries, bytes);
	return true;
}

/* --- in and out --- */

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

/* Half for each free (behaviour 2.5). */
static void lower_alloc_factor(struct mf_pcp *pcp, uint64_t frees)
{
	pcp->alloc_factor = frees < 8 ? (uint8_t)(pcp->alloc_factor >> frees) : 0;
}

static void count_frees(const struct mf_zone *zone, struct mf_pcp *pcp, uint64_t pages)
{
	uint32_t most = get_batch(zone) << MF_PCP_BATCH_SCALE_MAX;

	pcp->free_count = pcp->free_count + pages > most ? most : pcp->free_count + (uint32_t)pages;
}

/*
 * What went through sequences since the lists were opened, as a sum: a list
 * that grew was freed to, one that shrank was taken from.
 */
static void catch_up(const struct mf_zone *zone, struct mf_pcp *pcp)
{
	uint64_t frees = 0, blocks = 0;
	bool taken = false;

	for (unsigned i = 0; i < MF_PCP_LISTS; i++) {
		ptrdiff_t pushed = pcp->list[i].seen_top - pcp->list[i].stack.top;

		if (pushed > 0) {
			frees += (uint64_t)pushed << mf_pcp_list_order(i);
			blocks += (uint64_t)pushed;
		}
		taken |= pushed < 0;
	}
	if (taken)
		pcp->free_count >>= 1;
	count_frees(zone, pcp, frees);
	lower_alloc_factor(pcp, blocks);
	pcp->count = mf_pcp_count(pcp);
}

/* Lock held.  Returns whether the lists were open before. */
static bool settle(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp)
{
	bool open = is_open(pcp);

	if (open) {
		shut(pg, zone, pcp);
		catch_up(zone, pcp);
	}
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

/* The entries go to where they have `room` below them, if the list is long enough. */
static void make_room(struct mf_pcp_list *list, uint32_t room)
{
	uint32_t count = list_count(list);
	uint64_t wanted = 2 * ((uint64_t)count + room) + 64;
	uint32_t *bottom;

	if ((uint64_t)(list->stack.top - list->start) >= room)
		return;
	/*
	 * As much again as is moved, so that moving costs a push little, however few come at
	 * once; not the far end, so that the memory in use stays small.
	 */
	bottom = list->start + (wanted < list->capacity ? wanted : list->capacity);
	memmove(bottom - count, list->stack.top, count * sizeof(*bottom));
	set_top(list, bottom - count);
	set_bottom(list, bottom);
}

/*
 * Shares the room below high among the lists in use, and opens them.  A list
 * that is empty gets its share when it is first freed to.
 */
static void open_lists(struct mf_pcp *pcp)
{
	uint32_t room = pcp->high > pcp->count + 1 ? pcp->high - pcp->count - 1 : 0;
	unsigned used = 0;

	for (unsigned i = 0; i < MF_PCP_LISTS; i++)
		used += list_count(&pcp->list[i]) > 0;
	for (unsigned i = 0; i < MF_PCP_LISTS; i++) {
		struct mf_pcp_list *list = &pcp->list[i];
		uint32_t blocks = list_count(list) ? (room / used) >> mf_pcp_list_order(i) : 0;

		make_room(list, blocks);
		if (blocks > (uint64_t)(list->stack.top - list->start))
			blocks = (uint32_t)(list->stack.top - list->start);
		list->stack.limit = list->stack.top - blocks;
		list->seen_top = list->stack.top;
	}
	__atomic_store_n(&pcp->visits, pcp->visits + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&pcp->owner, (uint32_t)pcp->cpu, __ATOMIC_RELEASE);
}

/*
 * open: the owner came by itself, so its sequences may have the lists again.
 * A visitor leaves them shut: the next owner opens them, and visitors who
 * follow each other need no further fence.
 */
static void leave(struct mf_page *pg, struct mf_pcp *pcp, bool open)
{
	if (open && __atomic_load_n(&pg->rseq, __ATOMIC_RELAXED))
		open_lists(pcp);
	mf_lock_release(&pcp->lock);
}

/* --- how much may stay on the lists --- */

static uint32_t clamp_high(const struct mf_zone *zone, uint32_t high)
{
	if (high > get_high_max(zone))
		high = get_high_max(zone);
	return high < get_high_min(zone) ? get_high_min(zone) : high;
}

static bool below_high(const struct mf_zone *zone)
{
	return mf_zone_free_pages(zone) < __atomic_load_n(&zone->wmark[MF_WMARK_HIGH], __ATOMIC_RELAXED);
}

/* How many blocks of the order a refill brings. */
static uint32_t refill_blocks(const struct mf_zone *zone, struct mf_pcp *pcp, unsigned order)
{
	uint32_t base = get_batch(zone), batch = base;
	uint32_t high = pcp->high, most;

	if (high < base)
		return 1;
	if (order == 0)
		batch = base << pcp->alloc_factor;
	if (get_high_min(zone) != get_high_max(zone) && !below_high(zone)) {
		high = high + batch > get_high_max(zone) ? get_high_max(zone) : high + batch;
		set_high(pcp, high);
	}
	if (order > 0 && base <= 1)
		return 1;
	if (order > 0)
		return batch >> order > 2 ? batch >> order : 2;
	most = high > pcp->count + base ? high - pcp->count - base : 0;
	most = most < base ? base : most;
	if (batch <= most && pcp->alloc_factor < MF_PCP_BATCH_SCALE_MAX)
		pcp->alloc_factor++;
	return batch < most ? batch : most;
}

/* Into an empty list; entered.  Placed so that high more fit below. */
static bool refill(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp, unsigned index,
		   const struct mf_alloc *a)
{
	struct mf_pcp_list *list = &pcp->list[index];
	unsigned order = mf_pcp_list_order(index);
	uint32_t n = refill_blocks(zone, pcp, order);
	uint64_t below = pcp->high >> order;
	size_t got;

	n = n > list->capacity ? list->capacity : n;
	below = below + n > list->capacity ? list->capacity - n : below;
	got = mf_zone_take_many(pg, zone, order, a->type, a->no_sleep, a->nofragment, n, list->start + below);
	set_top(list, list->start + below);
	set_bottom(list, list->start + below + got);
	pcp->count += (uint32_t)got << order;
	mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pcp_refill, 1);
	mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pcp_refill_pages, (uint64_t)got << order);
	return got > 0;
}

/* --- taking --- */

static void pop(struct mf_pcp *pcp, struct mf_pcp_list *list, unsigned order, size_t n, uint32_t *pfns)
{
	memcpy(pfns, list->stack.top, n * sizeof(*pfns));
	set_top(list, list->stack.top + n);
	pcp->count -= (uint32_t)n << order;
}

bool mf_pcp_take(struct mf_page *pg, struct mf_zone *zone, const struct mf_alloc *a, uint32_t *pfn)
{
	int index = mf_pcp_list_index(a->order, a->type);
	struct mf_pcp_list *list;
	struct mf_pcp *pcp;
	bool filled;

	if (index < 0 || a->bypass || a->cpu < 0)
		return false;
	pcp = &zone->pcp[a->cpu];
	if (a->auto_cpu && mf_pcp_fast_take(pg->rseq_offset, pcp, (unsigned)index, pfn)) {
		mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pcp_hit, UINT64_C(1) << a->order);
		return true;
	}
	if (!enter(pg, zone, a->cpu, a->no_sleep))
		return false;
	list = &pcp->list[index];
	pcp->free_count >>= 1;
	filled = list_count(list) > 0;
	if (filled)
		mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pcp_hit, UINT64_C(1) << a->order);
	else
		filled = !a->highatomic && refill(pg, zone, pcp, (unsigned)index, a);
	if (filled)
		pop(pcp, list, a->order, 1, pfn);
	leave(pg, pcp, a->auto_cpu);
	return filled;
}

bool mf_pcp_take_hit(struct mf_page *pg, struct mf_zone *zone, int cpu, unsigned index, uint32_t *pfn)
{
	struct mf_pcp *pcp = &zone->pcp[cpu];
	struct mf_pcp_list *list = &pcp->list[index];
	bool hit;

	if (!enter(pg, zone, cpu, true))
		return false;
	hit = list_count(list) > 0;
	if (hit) {
		pcp->free_count >>= 1;
		pop(pcp, list, mf_pcp_list_order(index), 1, pfn);
	}
	leave(pg, pcp, false);
	return hit;
}

static size_t fast_take_many(struct mf_page *pg, struct mf_pcp *pcp, struct mf_pcp_list *list, size_t n,
			     uint32_t *pfns)
{
	uint32_t visits = __atomic_load_n(&pcp->visits, __ATOMIC_ACQUIRE);
	uint32_t *top = __atomic_load_n(&list->stack.top, __ATOMIC_RELAXED);
	ptrdiff_t there = __atomic_load_n(&list->stack.bottom, __ATOMIC_RELAXED) - top;

	if (!is_open(pcp) || there <= 0 || !top)
		return 0;
	n = n < (size_t)there ? n : (size_t)there;
	if (mf_rseq_copy(pg->rseq_offset, &pcp->owner, &pcp->visits, visits, &list->stack.top, top, top + n,
			 pfns, top, n) != MF_RSEQ_DONE)
		return 0;
	return n;
}

static size_t locked_take_many(struct mf_pcp *pcp, struct mf_pcp_list *list, size_t n, uint32_t *pfns)
{
	n = n < list_count(list) ? n : list_count(list);
	pop(pcp, list, 0, n, pfns);
	return n;
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
	pcp = &zone->pcp[a->cpu];
	if (a->auto_cpu)
		got = fast_take_many(pg, pcp, &pcp->list[index], n, pfns);
	hit = got;
	if (got < n && enter(pg, zone, a->cpu, a->no_sleep)) {
		got += locked_take_many(pcp, &pcp->list[index], n - got, pfns + got);
		hit = got;
		if (got < n) {
			uint32_t amount = refill_blocks(zone, pcp, 0);

			if (n - got >= amount)
				got += mf_zone_take_many(pg, zone, 0, a->type, a->no_sleep, a->nofragment,
							 n - got, pfns + got);
			else if (refill(pg, zone, pcp, index, a))
				got += locked_take_many(pcp, &pcp->list[index], n - got, pfns + got);
		}
		leave(pg, pcp, a->auto_cpu);
	}
	if (hit)
		mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pcp_hit, hit);
	return got;
}

/* --- giving and draining --- */

/* The coldest blocks of one list, at most `pages` pages, in chunks the zone lock bears. False: zone busy. */
static bool drain_list(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp, unsigned index,
		       uint32_t *pages, bool only_try)
{
	struct mf_pcp_list *list = &pcp->list[index];
	unsigned order = mf_pcp_list_order(index);

	while (*pages && list_count(list)) {
		uint32_t want = (uint32_t)(((uint64_t)*pages + (1u << order) - 1) >> order);
		uint32_t k = want < DRAIN_CHUNK ? want : DRAIN_CHUNK;

		k = k < list_count(list) ? k : list_count(list);
		if (!mf_zone_give(pg, zone, order, only_try, k, list->stack.bottom - k))
			return false;
		set_bottom(list, list->stack.bottom - k);
		pcp->count -= k << order;
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
	for (unsigned i = 0; i < MF_PCP_LISTS && pages; i++)
		if (!drain_list(pg, zone, pcp, (first + i) % MF_PCP_LISTS, &pages, only_try))
			break;
}

/* After frees: is there too much, and how much of it goes (behaviour 2.5)? */
static void drain_excess(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp, unsigned index,
			 bool only_try)
{
	uint32_t count = pcp->count, batch = get_batch(zone), high = pcp->high, pages;
	bool tuned = get_high_min(zone) != get_high_max(zone);

	if (tuned && below_high(zone)) {
		uint32_t less = pcp->free_count > batch ? pcp->free_count : batch;

		set_high(pcp, clamp_high(zone, high > less ? high - less : 0));
		high = count > get_high_min(zone) ? count : get_high_min(zone);
	} else if (tuned && count >= high && high < pcp->free_count + batch) {
		set_high(pcp, clamp_high(zone, pcp->free_count + batch));
	}
	if (count < high)
		return;
	pages = 1;
	if (high >= batch) {
		pages = pcp->free_count > batch ? pcp->free_count : batch;
		pages = pages > high - batch ? high - batch : pages;
		pages = pages ? pages : 1;
	}
	/* The lists may have been allowed to outgrow a high that has just been lowered. */
	if (count - pages >= pcp->high + batch)
		pages = count - pcp->high;
	drain(pg, zone, pcp, index, pages, only_try);
}

/* False: no room even after moving. */
static bool push(struct mf_pcp *pcp, unsigned index, size_t n, const uint32_t *pfns)
{
	struct mf_pcp_list *list = &pcp->list[index];

	make_room(list, (uint32_t)n);
	if ((size_t)(list->stack.top - list->start) < n)
		return false;
	memcpy(list->stack.top - n, pfns, n * sizeof(*pfns));
	set_top(list, list->stack.top - n);
	pcp->count += (uint32_t)n << mf_pcp_list_order(index);
	return true;
}

bool mf_pcp_give(struct mf_page *pg, struct mf_zone *zone, int cpu, bool auto_cpu, unsigned order,
		 enum mf_migrate_type type, uint32_t pfn)
{
	int index = type < MF_PCP_TYPES ? mf_pcp_list_index(order, type) : -1;
	bool only_try = mf_lock_depth() > 0;
	struct mf_pcp *pcp;
	bool pushed;

	if (index < 0 || cpu < 0)
		return false;
	pcp = &zone->pcp[cpu];
	if (auto_cpu && mf_pcp_fast_give(pg->rseq_offset, pcp, (unsigned)index, pfn))
		return true;
	if (!enter(pg, zone, cpu, only_try))
		return false;
	pushed = push(pcp, (unsigned)index, 1, &pfn);
	if (pushed) {
		count_frees(zone, pcp, UINT64_C(1) << order);
		lower_alloc_factor(pcp, 1);
		drain_excess(pg, zone, pcp, (unsigned)index, only_try);
	}
	leave(pg, pcp, auto_cpu);
	return pushed;
}

static size_t fast_give_many(struct mf_page *pg, struct mf_pcp *pcp, struct mf_pcp_list *list, size_t n,
			     const uint32_t *pfns)
{
	uint32_t visits = __atomic_load_n(&pcp->visits, __ATOMIC_ACQUIRE);
	uint32_t *top = __atomic_load_n(&list->stack.top, __ATOMIC_RELAXED);
	ptrdiff_t room = top - __atomic_load_n(&list->stack.limit, __ATOMIC_RELAXED);

	if (!is_open(pcp) || room <= 0 || !top)
		return 0;
	n = n < (size_t)room ? n : (size_t)room;
	if (mf_rseq_copy(pg->rseq_offset, &pcp->owner, &pcp->visits, visits, &list->stack.top, top, top - n,
			 top - n, pfns, n) != MF_RSEQ_DONE)
		return 0;
	return n;
}

/* One round under the lock: as many as fit below high, at least one; then what is too much goes. */
static size_t locked_give_many(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp, unsigned index,
			       size_t n, const uint32_t *pfns, bool only_try)
{
	size_t k = pcp->high > pcp->count ? pcp->high - pcp->count : 1;

	k = k < n ? k : n;
	k = k < pcp->list[index].capacity ? k : pcp->list[index].capacity;
	if (!push(pcp, index, k, pfns))
		return 0;
	count_frees(zone, pcp, k);
	lower_alloc_factor(pcp, k);
	drain_excess(pg, zone, pcp, index, only_try);
	return k;
}

size_t mf_pcp_give_many(struct mf_page *pg, struct mf_zone *zone, int cpu, bool auto_cpu,
			enum mf_migrate_type type, size_t n, const uint32_t *pfns)
{
	unsigned index = (unsigned)mf_pcp_list_index(0, type);
	bool only_try = mf_lock_depth() > 0;
	struct mf_pcp *pcp;
	size_t given = 0;

	if (type >= MF_PCP_TYPES || cpu < 0)
		return 0;
	pcp = &zone->pcp[cpu];
	if (auto_cpu)
		given = fast_give_many(pg, pcp, &pcp->list[index], n, pfns);
	if (given < n && enter(pg, zone, cpu, only_try)) {
		size_t round = 1;

		for (; given < n && round; given += round)
			round = locked_give_many(pg, zone, pcp, index, n - given, pfns + given, only_try);
		leave(pg, pcp, auto_cpu);
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
	if (pcp->count)
		drain(pg, zone, pcp, 0, UINT32_MAX, false);
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
	else if (pcp->count > pcp->high)
		drain(pg, zone, pcp, 0, pcp->count - pcp->high, false);
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
		uint32_t *top = __atomic_load_n(&pcp->list[i].stack.top, __ATOMIC_RELAXED);

		idle &= top == pcp->list[i].tick_top;
		pcp->list[i].tick_top = top;
	}
	return idle;
}

/* high falls by an eighth, and what is above it goes (behaviour 2.5). */
static void decay(struct mf_page *pg, struct mf_zone *zone, struct mf_pcp *pcp)
{
	uint32_t count = pcp->count, scale = get_batch(zone) << MF_PCP_BATCH_SCALE_MAX;
	uint32_t high = pcp->high - (pcp->high >> 3);

	if (pcp->high > get_high_min(zone)) {
		high = count > scale && count - scale > high ? count - scale : high;
		set_high(pcp, clamp_high(zone, high));
	}
	if (count > pcp->high)
		drain(pg, zone, pcp, 0, count - pcp->high, false);
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
		bad += mf_pcp_check_set(pg, zone, pcp, out);
		*pages += pcp->count;
		leave(pg, pcp, open);
	}
	return bad;
}

void mf_pcp_destroy_zone(struct mf_page *pg, struct mf_zone *zone)
{
	for (struct mf_pcp *pcp = zone->ready_pcps; pcp; pcp = pcp->next_ready) {
		pg->plat->ops->meta_free(pg->plat, pcp->entries, pcp->entries_bytes);
		mf_lock_destroy(&pcp->lock);
	}
}
