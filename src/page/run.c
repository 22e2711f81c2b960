/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs: contiguous pages whose number need not be a power of two, taken whole
 * or not at all and given back with few lock acquisitions.
 *
 * An attempt at a run must cost others nothing: it stays on its node, above the
 * low mark, and wakes, drains and shrinks nothing (behaviour 3.5).  What the
 * block has beyond the run is given back under the lock it was taken under, so
 * nobody ever sees it missing and no counter moves for it.
 *
 * Invariants: the pages of a run that was handed out are in one zone; pgalloc
 * and pgfree count its pages, never its block's.
 *
 * Locks: ZONE, PCP through zone.c and pcp.c.
 */
#include "page/page_internal.h"

#include <errno.h>

static bool is_block(uint32_t pages)
{
	return (pages & (pages - 1)) == 0;
}

int mf_page_alloc_run(struct mf_page *pg, struct mf_placement *place, const struct mf_page_request *request,
		      uint32_t pages, memfs_pfn *out)
{
	struct mf_alloc a;
	uint32_t pfn;
	int error;

	if (pages == 0 || pages > UINT32_C(1) << MEMFS_MAX_PAGE_ORDER)
		return -EINVAL;
	error = mf_alloc_place_try(pg, place, request, mf_page_order(pages), &a);
	if (error)
		return error;
	a.pages = pages;
	/* The lists keep whole blocks: a part of one is cut off where its tail belongs. */
	a.bypass |= !is_block(pages);
	error = mf_alloc_try(pg, &a, &pfn);
	if (!error)
		out->v = pfn;
	return error;
}

/* --- giving back --- */

/* How many pages of the run are in the zone of its first page. */
static uint32_t pages_in_zone(const struct mf_zone *zone, uint32_t pfn, uint32_t pages)
{
	uint64_t there = zone->start_pfn + zone->managed - pfn;

	return pages < there ? pages : (uint32_t)there;
}

/* Whose lists a call gives to; no CPU: none. */
struct lists {
	int cpu;
	bool is_auto;
};

static struct lists lists_of(struct mf_page *pg, const struct mf_placement *place)
{
	struct lists lists = { -1, false };

	if (!place || __atomic_load_n(&pg->knobs.pcp_mode, __ATOMIC_RELAXED) == MF_PCP_OFF)
		return lists;
	lists.cpu = mf_alloc_cpu(pg, __atomic_load_n(&place->cpu, __ATOMIC_RELAXED), &lists.is_auto);
	lists.is_auto &= __atomic_load_n(&pg->rseq, __ATOMIC_RELAXED);
	return lists;
}

/* One zone's part. */
static void give_part(struct mf_page *pg, struct mf_zone *zone, struct lists lists, uint32_t pfn,
		      uint32_t pages)
{
	mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pgfree, pages);
	if (lists.cpu >= 0 && is_block(pages) && !(pfn & (pages - 1)) &&
	    mf_pcp_give(pg, zone, lists.cpu, lists.is_auto, mf_page_order(pages),
			mf_buddy_type(&zone->buddy, pfn), pfn))
		return;
	mf_zone_give_run(pg, zone, pfn, pages, mf_lock_depth() > 0);
}

void mf_page_free_runs(struct mf_page *pg, const struct mf_placement *place, size_t n,
		       const struct mf_run *runs)
{
	struct lists lists = lists_of(pg, place);

	for (size_t i = 0; i < n; i++) {
		uint32_t pfn = runs[i].pfn, pages = runs[i].pages;

		while (pages) {
			struct mf_zone *zone = mf_page_zone_of(pg, pfn);
			uint32_t part = pages_in_zone(zone, pfn, pages);

			give_part(pg, zone, lists, pfn, part);
			pfn += part;
			pages -= part;
		}
	}
}

/* --- counting --- */

void mf_page_count_parked(struct mf_page *pg, uint32_t pfn, uint32_t pages)
{
	const struct mf_zone *zone = mf_page_zone_of(pg, pfn);

	mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_pgfree, pages);
}

void mf_page_count_reused(struct mf_page *pg, unsigned cpu, uint32_t pfn, uint32_t pages)
{
	const struct mf_zone *zone = mf_page_zone_of(pg, pfn);
	uint64_t *words = mf_stat_words(&pg->stat) + zone->stat_base;
	int local = cpu < pg->cpu_limit ? pg->topo->cpu_node[cpu] : -1;

	if (local < 0)
		local = pg->node_without_cpu;
	mf_stat_word_add(&words[MF_STAT_pgalloc], pages);
	if (!__atomic_load_n(&pg->numa_stat, __ATOMIC_RELAXED))
		return;
	mf_stat_word_add(&words[MF_STAT_numa_hit], pages);
	mf_stat_word_add(&words[zone->node == local ? MF_STAT_numa_local : MF_STAT_numa_other], pages);
}

void mf_page_free_parked(struct mf_page *pg, const struct mf_run *run)
{
	mf_zone_give_run(pg, mf_page_zone_of(pg, run->pfn), run->pfn, run->pages, mf_lock_depth() > 0);
}

int mf_page_cpu(struct mf_page *pg, const struct mf_placement *place)
{
	bool is_auto;

	return mf_alloc_cpu(pg, __atomic_load_n(&place->cpu, __ATOMIC_RELAXED), &is_auto);
}

/* --- windows --- */

int mf_page_window(struct mf_page *pg, void *at, uint32_t pfn, uint64_t pages)
{
	int id = mf_page_node(pg, pfn);
	const struct mf_topo_node *node;
	uint64_t first;

	if (id < 0)
		return -EINVAL;
	node = pg->topo->node[id];
	first = pfn - node->start_pfn;
	if (pages == 0 || pages > node->nr_pages - first)
		return -EINVAL;
	return pg->plat->ops->window_map(pg->plat, at, pg->arena[id], first << MEMFS_PAGE_SHIFT,
					 (size_t)pages << MEMFS_PAGE_SHIFT);
}
