/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One zone under its lock: taking blocks with fallback between migrate types,
 * giving them back, watermarks and the HIGHATOMIC reserve (behaviour 2.2, 2.3).
 *
 * Locks: takes MF_LOCK_ZONE, one zone at a time.  A caller that must not wait
 * (it interrupted a lock holder) passes only_try.
 */
#include "page/page_internal.h"

/* Blocks moved under one hold of the lock, at most: bounds the time others wait. */
#define HOLD_MOST 4096u

/* Where a deferred block keeps its link and order: in its own first bytes. */
struct deferred_block {
	uint64_t next; /* pfn + 1, 0 the end */
	uint64_t order;
};

static void defer(struct mf_page *pg, struct mf_zone *zone, uint32_t pfn, unsigned order)
{
	struct deferred_block *block = mf_page_address(pg, pfn);
	uint64_t newest = __atomic_load_n(&zone->deferred, __ATOMIC_RELAXED);

	block->order = order;
	do {
		block->next = newest;
	} while (!__atomic_compare_exchange_n(&zone->deferred, &newest, (uint64_t)pfn + 1, true,
					      __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static void give_deferred(struct mf_page *pg, struct mf_zone *zone)
{
	uint64_t next = __atomic_exchange_n(&zone->deferred, 0, __ATOMIC_ACQUIRE);

	while (next) {
		uint32_t pfn = (uint32_t)(next - 1);
		struct deferred_block *block = mf_page_address(pg, pfn);

		next = block->next;
		mf_buddy_give(&zone->buddy, pfn, (unsigned)block->order);
	}
}

bool mf_zone_lock(struct mf_page *pg, struct mf_zone *zone, bool only_try)
{
	if (!only_try) {
		mf_lock_acquire(&zone->lock);
	} else if (!mf_lock_try(&zone->lock)) {
		mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_zone_trylock_fail, 1);
		return false;
	}
	mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_zone_lock, 1);
	if (__builtin_expect(__atomic_load_n(&zone->deferred, __ATOMIC_RELAXED) != 0, 0))
		give_deferred(pg, zone);
	return true;
}

void mf_zone_unlock(struct mf_zone *zone)
{
	mf_lock_release(&zone->lock);
}

/* Free pages of HIGHATOMIC blocks: nobody but entitled requests may count on them. */
static uint64_t free_highatomic(const struct mf_zone *zone)
{
	uint64_t pages = 0;

	if (!__atomic_load_n(&zone->nr_highatomic, __ATOMIC_RELAXED))
		return 0;
	for (unsigned order = 0; order < MF_NR_ORDERS; order++)
		pages += __atomic_load_n(&zone->buddy.nr_free[MF_HIGHATOMIC][order], __ATOMIC_RELAXED)
			 << order;
	return pages;
}

static bool any_block(const struct mf_zone *zone, const struct mf_alloc *a, unsigned order)
{
	int types = a->highatomic ? MF_NR_MIGRATE_TYPES : MF_PCP_TYPES;

	for (unsigned o = order; o < MF_NR_ORDERS; o++)
		for (int type = 0; type < types; type++)
			if (__atomic_load_n(&zone->buddy.nr_free[type][o], __ATOMIC_RELAXED))
				return true;
	return false;
}

uint64_t mf_zone_available(const struct mf_zone *zone, const struct mf_alloc *a, uint64_t mark)
{
	uint64_t free = mf_zone_free_pages(zone);
	uint64_t min = mark;

	if (a->memalloc)
		return free;
	if (!a->min_reserve && !a->non_block)
		min += free_highatomic(zone);
	if (a->min_reserve) {
		min -= mark / 2;
		if (a->non_block)
			min -= (mark - mark / 2) / 4;
	}
	min += __atomic_load_n(&zone->lowmem_reserve[a->highest], __ATOMIC_RELAXED);
	return free > min ? free - min : 0;
}

bool mf_zone_watermark_ok(const struct mf_zone *zone, const struct mf_alloc *a, unsigned order, uint64_t mark)
{
	if (a->memalloc)
		return true;
	/* The last 2^order - 1 pages cannot hold a block: they do not count. */
	if (mf_zone_available(zone, a, mark) < UINT64_C(1) << order)
		return false;
	return order == 0 || any_block(zone, a, order);
}

void mf_zone_set_marks(struct mf_zone *zone)
{
	for (int mark = MF_WMARK_MIN; mark <= MF_WMARK_PROMO; mark++)
		__atomic_store_n(&zone->wmark[mark], zone->base_wmark[mark] + zone->boost, __ATOMIC_RELAXED);
	for (int highest = 0; highest < MF_NR_ZONE_TYPES; highest++)
		__atomic_store_n(&zone->fast_mark[highest],
				 zone->wmark[MF_WMARK_LOW] + zone->lowmem_reserve[highest] +
					 zone->nr_highatomic,
				 __ATOMIC_RELAXED);
}

/* A pageblock was broken for another type: keep more free for a while (behaviour 2.2). */
static void boost_watermark(struct mf_page *pg, struct mf_zone *zone)
{
	uint64_t factor = (uint64_t)__atomic_load_n(&pg->knobs.watermark_boost_factor, __ATOMIC_RELAXED);
	uint64_t most = zone->base_wmark[MF_WMARK_HIGH] * factor / 10000;

	if (!factor || zone->managed < 4 * MF_PAGEBLOCK_PAGES)
		return;
	if (most < MF_PAGEBLOCK_PAGES)
		most = MF_PAGEBLOCK_PAGES;
	__atomic_store_n(&zone->boost,
			 zone->boost + MF_PAGEBLOCK_PAGES > most ? most : zone->boost + MF_PAGEBLOCK_PAGES,
			 __ATOMIC_RELAXED);
	mf_zone_set_marks(zone);
}

static bool take_fallback(struct mf_page *pg, struct mf_zone *zone, enum mf_migrate_type type, unsigned order,
			  bool nofragment, uint32_t *pfn)
{
	struct mf_fallback_result result = { false, false };

	if (!mf_buddy_take_fallback(&zone->buddy, type, order, nofragment, pfn, &result))
		return false;
	mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_zone_fallback, 1);
	if (result.claimed)
		mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_zone_claim, 1);
	if (result.boost)
		boost_watermark(pg, zone);
	return true;
}

static bool take_locked(struct mf_page *pg, struct mf_zone *zone, const struct mf_alloc *a, uint32_t *pfn)
{
	struct mf_buddy *buddy = &zone->buddy;

	if (a->highatomic && mf_buddy_take(buddy, MF_HIGHATOMIC, a->order, pfn))
		return true;
	if (mf_buddy_take(buddy, a->type, a->order, pfn) ||
	    take_fallback(pg, zone, a->type, a->order, a->nofragment, pfn))
		return true;
	/* A request that cannot wait may eat into the reserve, too, rather than fail. */
	return a->non_block && mf_buddy_take(buddy, MF_HIGHATOMIC, a->order, pfn);
}

/* The largest aligned block at the start of a run. */
static unsigned first_block(uint32_t pfn, uint32_t pages)
{
	unsigned aligned = pfn ? (unsigned)__builtin_ctz(pfn) : MEMFS_MAX_PAGE_ORDER;
	unsigned fits = 31u - (unsigned)__builtin_clz(pages);
	unsigned order = aligned < fits ? aligned : fits;

	return order < MEMFS_MAX_PAGE_ORDER ? order : MEMFS_MAX_PAGE_ORDER;
}

static void give_blocks(struct mf_zone *zone, uint32_t pfn, uint32_t pages)
{
	while (pages) {
		unsigned order = first_block(pfn, pages);

		mf_buddy_give(&zone->buddy, pfn, order);
		pfn += 1u << order;
		pages -= 1u << order;
	}
}

/* Only where the block would be cut. */
static bool take_run(struct mf_zone *zone, const struct mf_alloc *a, uint32_t *pfn)
{
	return a->pages != UINT32_C(1) << a->order && mf_buddy_take_run(&zone->buddy, a->type, a->pages, pfn);
}

bool mf_zone_take(struct mf_page *pg, struct mf_zone *zone, const struct mf_alloc *a, uint32_t *pfn)
{
	bool got;

	if (mf_fault_hit(pg->fault, MF_FAULT_buddy_alloc) || !mf_zone_lock(pg, zone, a->no_sleep))
		return false;
	got = take_run(zone, a, pfn);
	if (!got) {
		got = take_locked(pg, zone, a, pfn);
		if (got)
			give_blocks(zone, *pfn + a->pages, (UINT32_C(1) << a->order) - a->pages);
	}
	mf_zone_unlock(zone);
	return got;
}

/* Under the lock; type first, then what others have. */
static size_t take_many_locked(struct mf_page *pg, struct mf_zone *zone, unsigned order,
			       enum mf_migrate_type type, bool nofragment, size_t n, uint32_t *pfns)
{
	size_t got = 0;

	while (got < n) {
		size_t before = got;

		if (order == 0)
			got += mf_buddy_take_bulk(&zone->buddy, type, n - got, pfns + got);
		else if (mf_buddy_take(&zone->buddy, type, order, &pfns[got]))
			got++;
		if (got == before) {
			if (!take_fallback(pg, zone, type, order, nofragment, &pfns[got]))
				break;
			got++;
		}
	}
	return got;
}

size_t mf_zone_take_many(struct mf_page *pg, struct mf_zone *zone, unsigned order, enum mf_migrate_type type,
			 bool only_try, bool nofragment, size_t n, uint32_t *pfns)
{
	size_t got = 0, want, more;

	if (mf_fault_hit(pg->fault, MF_FAULT_pcp_refill))
		return 0;
	do {
		want = n - got < HOLD_MOST ? n - got : HOLD_MOST;
		if (!mf_zone_lock(pg, zone, only_try))
			break;
		more = take_many_locked(pg, zone, order, type, nofragment, want, pfns + got);
		mf_zone_unlock(zone);
		got += more;
	} while (got < n && more == want);
	return got;
}

bool mf_zone_give(struct mf_page *pg, struct mf_zone *zone, unsigned order, bool only_try, size_t n,
		  const uint32_t *pfns)
{
	if (!mf_zone_lock(pg, zone, only_try))
		return false;
	if (order == 0 && n > 1)
		mf_buddy_give_bulk(&zone->buddy, n, pfns);
	else
		for (size_t i = 0; i < n; i++)
			mf_buddy_give(&zone->buddy, pfns[i], order);
	mf_zone_unlock(zone);
	if (__builtin_expect(__atomic_load_n(&pg->nr_waiters, __ATOMIC_RELAXED) != 0, 0) && !only_try)
		mf_pressure_wake(pg);
	return true;
}

void mf_zone_give_anyhow(struct mf_page *pg, struct mf_zone *zone, unsigned order, bool only_try, size_t n,
			 const uint32_t *pfns)
{
	while (n) {
		size_t k = n < HOLD_MOST ? n : HOLD_MOST;

		if (!mf_zone_give(pg, zone, order, only_try, k, pfns))
			for (size_t i = 0; i < k; i++)
				defer(pg, zone, pfns[i], order);
		pfns += k;
		n -= k;
	}
}

static void defer_blocks(struct mf_page *pg, struct mf_zone *zone, uint32_t pfn, uint32_t pages)
{
	while (pages) {
		unsigned order = first_block(pfn, pages);

		defer(pg, zone, pfn, order);
		pfn += 1u << order;
		pages -= 1u << order;
	}
}

void mf_zone_give_run(struct mf_page *pg, struct mf_zone *zone, uint32_t pfn, uint32_t pages, bool only_try)
{
	while (pages) {
		uint32_t k = pages < HOLD_MOST ? pages : HOLD_MOST;

		if (mf_zone_lock(pg, zone, only_try)) {
			give_blocks(zone, pfn, k);
			mf_zone_unlock(zone);
		} else {
			defer_blocks(pg, zone, pfn, k);
		}
		pfn += k;
		pages -= k;
	}
	if (__builtin_expect(__atomic_load_n(&pg->nr_waiters, __ATOMIC_RELAXED) != 0, 0) && !only_try)
		mf_pressure_wake(pg);
}

/*
 * After an atomic request of order > 0 was served: its pageblock is set aside
 * for more of that kind, up to about one percent of the zone.
 */
void mf_zone_reserve_highatomic(struct mf_page *pg, struct mf_zone *zone, uint32_t pfn)
{
	uint64_t most =
		(zone->managed / 100 + MF_PAGEBLOCK_PAGES - 1) / MF_PAGEBLOCK_PAGES * MF_PAGEBLOCK_PAGES;

	if (zone->managed / 100 < MF_PAGEBLOCK_PAGES)
		return;
	if (!mf_zone_lock(pg, zone, true))
		return;
	if (zone->nr_highatomic + MF_PAGEBLOCK_PAGES <= most &&
	    mf_buddy_type(&zone->buddy, pfn) != MF_HIGHATOMIC) {
		mf_buddy_set_type(&zone->buddy, pfn, MF_HIGHATOMIC);
		__atomic_store_n(&zone->nr_highatomic, zone->nr_highatomic + MF_PAGEBLOCK_PAGES,
				 __ATOMIC_RELAXED);
		mf_zone_set_marks(zone);
		mf_stat_add(&pg->stat, MF_STAT_highatomic_reserve, 1);
	}
	mf_zone_unlock(zone);
}

/* Takes one block out of the reserve; only_free: one that is wholly free. */
bool mf_zone_unreserve_highatomic(struct mf_page *pg, struct mf_zone *zone, bool only_free)
{
	uint32_t pfn;
	bool found;

	if (!__atomic_load_n(&zone->nr_highatomic, __ATOMIC_RELAXED))
		return false;
	mf_zone_lock(pg, zone, false);
	found = zone->nr_highatomic && (only_free ? mf_buddy_find_free_line(&zone->buddy, MF_HIGHATOMIC, &pfn)
						  : mf_buddy_find_line(&zone->buddy, MF_HIGHATOMIC, &pfn));
	if (found) {
		mf_buddy_set_type(&zone->buddy, pfn, MF_MOVABLE);
		__atomic_store_n(&zone->nr_highatomic, zone->nr_highatomic - MF_PAGEBLOCK_PAGES,
				 __ATOMIC_RELAXED);
		mf_zone_set_marks(zone);
		mf_stat_add(&pg->stat, MF_STAT_highatomic_unreserve, 1);
	}
	mf_zone_unlock(zone);
	return found;
}
