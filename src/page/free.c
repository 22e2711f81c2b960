/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Giving back: to the per-CPU list of the task's CPU, else to the zone.  A free
 * never fails and never waits below a lock that its own thread has interrupted.
 *
 * A page goes to the list of its pageblock's type, not of the request that
 * took it, so that lists do not mix types (behaviour 2.9).
 */
#include "page/page_internal.h"

static bool lists_off(const struct mf_page *pg)
{
	return __atomic_load_n(&pg->knobs.pcp_mode, __ATOMIC_RELAXED) == MF_PCP_OFF;
}

void mf_free_slow(struct mf_page *pg, const struct mf_placement *place, uint32_t pfn, unsigned order,
		  bool bypass)
{
	struct mf_zone *zone = mf_page_zone_of(pg, pfn);
	bool is_auto;
	int cpu = mf_alloc_cpu(pg, __atomic_load_n(&place->cpu, __ATOMIC_RELAXED), &is_auto);

	is_auto &= __atomic_load_n(&pg->rseq, __ATOMIC_RELAXED);
	mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pgfree, UINT64_C(1) << order);
	if (!bypass && !lists_off(pg) &&
	    mf_pcp_give(pg, zone, cpu, is_auto, order, mf_buddy_type(&zone->buddy, pfn), pfn))
		return;
	mf_zone_give_anyhow(pg, zone, order, mf_lock_depth() > 0, 1, &pfn);
}

void mf_page_free_irq(struct mf_page *pg, const struct mf_placement *place, memfs_pfn page, unsigned order)
{
	mf_free_slow(pg, place, page.v, order, __atomic_load_n(&pg->knobs.pcp_irq_bypass, __ATOMIC_RELAXED));
}

/* How many pages from the first on belong to one zone and one type. */
static size_t same_kind(const struct mf_page *pg, size_t n, const memfs_pfn *pfns, struct mf_zone *zone,
			enum mf_migrate_type type)
{
	uint32_t line = pfns[0].v >> MF_PAGEBLOCK_ORDER;
	size_t i = 1;

	for (; i < n; i++) {
		if (pfns[i].v >> MF_PAGEBLOCK_ORDER == line)
			continue;
		if (mf_page_zone_of(pg, pfns[i].v) != zone || mf_buddy_type(&zone->buddy, pfns[i].v) != type)
			break;
		line = pfns[i].v >> MF_PAGEBLOCK_ORDER;
	}
	return i;
}

void mf_page_free_bulk(struct mf_page *pg, const struct mf_placement *place, size_t n, const memfs_pfn *pfns)
{
	bool is_auto, lists = !lists_off(pg);
	int cpu = mf_alloc_cpu(pg, __atomic_load_n(&place->cpu, __ATOMIC_RELAXED), &is_auto);

	is_auto &= __atomic_load_n(&pg->rseq, __ATOMIC_RELAXED);
	while (n) {
		struct mf_zone *zone = mf_page_zone_of(pg, pfns[0].v);
		enum mf_migrate_type type = mf_buddy_type(&zone->buddy, pfns[0].v);
		size_t run = same_kind(pg, n, pfns, zone, type);
		size_t given = lists ? mf_pcp_give_many(pg, zone, cpu, is_auto, type, run, &pfns->v) : 0;

		mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pgfree, run);
		if (given < run)
			mf_zone_give_anyhow(pg, zone, 0, mf_lock_depth() > 0, run - given, &pfns[given].v);
		pfns += run;
		n -= run;
	}
}
