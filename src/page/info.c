/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Looking at the allocator: numbers for the kernel's tables, and the check that
 * counts everything anew.
 */
#include "page/page_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GET(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

static void copy_marks(const struct mf_zone *zone, struct mf_zone_info *out)
{
	out->boost = GET(zone->boost);
	out->marks.min = GET(zone->wmark[MF_WMARK_MIN]);
	out->marks.low = GET(zone->wmark[MF_WMARK_LOW]);
	out->marks.high = GET(zone->wmark[MF_WMARK_HIGH]);
	out->marks.promo = GET(zone->wmark[MF_WMARK_PROMO]);
	for (int i = 0; i < MF_NR_ZONE_TYPES; i++)
		out->marks.lowmem_reserve[i] = GET(zone->lowmem_reserve[i]);
	out->marks.batch = GET(zone->batch);
	out->marks.high_min = GET(zone->high_min);
	out->marks.high_max = GET(zone->high_max);
}

bool mf_page_zone_info(const struct mf_page *pg, unsigned index, struct mf_zone_info *out)
{
	const struct mf_zone *zone = index < MF_MAX_ZONES ? pg->zone[index] : NULL;

	memset(out, 0, sizeof(*out));
	out->node = (int)(index / MF_NR_ZONE_TYPES);
	out->type = (enum mf_zone_type)(index % MF_NR_ZONE_TYPES);
	if (!zone)
		return false;
	out->managed = zone->managed;
	out->start_pfn = zone->start_pfn;
	out->free = mf_zone_free_pages(zone);
	copy_marks(zone, out);
	for (int type = 0; type < MF_NR_MIGRATE_TYPES; type++) {
		out->nr_blocks[type] = GET(zone->buddy.nr_blocks[type]);
		for (unsigned order = 0; order < MF_NR_ORDERS; order++)
			out->nr_free[type][order] = GET(zone->buddy.nr_free[type][order]);
	}
	out->reserved_highatomic = GET(zone->nr_highatomic);
	for (unsigned order = 0; order < MF_NR_ORDERS; order++)
		out->free_highatomic += out->nr_free[MF_HIGHATOMIC][order] << order;
	for (const struct mf_pcp *pcp = __atomic_load_n(&zone->ready_pcps, __ATOMIC_ACQUIRE); pcp;
	     pcp = pcp->next_ready)
		out->pcp_count += mf_pcp_count(pcp);
	return true;
}

void mf_page_pcp_info(const struct mf_page *pg, unsigned index, unsigned cpu, struct mf_pcp_info *out)
{
	const struct mf_zone *zone = index < MF_MAX_ZONES ? pg->zone[index] : NULL;
	const struct mf_pcp *pcp;

	memset(out, 0, sizeof(*out));
	if (!zone || cpu >= pg->cpu_limit)
		return;
	out->batch = GET(zone->batch);
	out->high_min = out->high = GET(zone->high_min);
	out->high_max = GET(zone->high_max);
	pcp = &zone->pcp[cpu];
	if (__atomic_load_n(&pcp->ready, __ATOMIC_ACQUIRE)) {
		out->count = mf_pcp_count(pcp);
		out->high = GET(pcp->high);
	}
}

bool mf_page_clears(const struct mf_page *pg, memfs_gfp gfp)
{
	return gfp & MEMFS___GFP_ZERO || GET(pg->knobs.init_on_alloc);
}

static void count_blocks(const struct mf_zone *zone, struct mf_page_free_blocks *out)
{
	const struct mf_buddy *buddy = &zone->buddy;

	for (unsigned order = 0; order < MF_NR_ORDERS; order++) {
		uint64_t nr = 0;

		for (int type = 0; type < MF_PCP_TYPES; type++)
			nr += GET(buddy->nr_free[type][order]);
		if (!nr)
			continue;
		out->has[order] = true;
		if ((int)order > out->largest)
			out->largest = (int)order;
		if (order >= MF_PAGEBLOCK_ORDER)
			out->pageblocks += nr << (order - MF_PAGEBLOCK_ORDER);
	}
	out->all += zone->managed / MF_PAGEBLOCK_PAGES;
}

void mf_page_free_blocks(const struct mf_page *pg, int node, memfs_gfp gfp, struct mf_page_free_blocks *out)
{
	int highest = (int)mf_gfp_highest_zone(gfp);

	*out = (struct mf_page_free_blocks){ .largest = -1 };
	if (!mf_node_isset(pg->topo->memory, node))
		return;
	for (int type = 0; type <= highest; type++) {
		const struct mf_zone *zone = pg->zone[mf_zone_index(node, (enum mf_zone_type)type)];

		if (zone)
			count_blocks(zone, out);
	}
}

bool mf_page_zone_below_low(const struct mf_page *pg, unsigned index)
{
	const struct mf_zone *zone = index < MF_MAX_ZONES ? pg->zone[index] : NULL;

	return zone && mf_zone_free_pages(zone) < GET(zone->wmark[MF_WMARK_LOW]);
}

static unsigned check_list(const struct mf_page *pg, const struct mf_zone *zone, const struct mf_pcp *pcp,
			   unsigned index, struct mf_outbuf *out)
{
	const struct mf_pcp_list *list = &pcp->list[index];
	unsigned order = mf_pcp_list_order(index), bad = 0;

	if (list->stack.top < list->start || list->stack.bottom < list->stack.top ||
	    list->stack.bottom > list->start + list->capacity) {
		mf_outbuf_printf(out, "zone %u cpu %d list %u: entries outside their place\n", zone->index,
				 pcp->cpu, index);
		return 1;
	}
	for (const uint32_t *entry = list->stack.top; entry < list->stack.bottom; entry++) {
		if (mf_page_zone(pg, *entry) == (int)zone->index && !(*entry & ((1u << order) - 1)) &&
		    !mf_buddy_page_is_free(&zone->buddy, *entry))
			continue;
		mf_outbuf_printf(out, "zone %u cpu %d list %u: pfn %u does not belong there\n", zone->index,
				 pcp->cpu, index, *entry);
		bad++;
	}
	return bad;
}

unsigned mf_pcp_check_set(struct mf_page *pg, struct mf_zone *zone, const struct mf_pcp *pcp,
			  struct mf_outbuf *out)
{
	unsigned bad = 0;

	mf_zone_lock(pg, zone, false);
	for (unsigned i = 0; i < MF_PCP_LISTS; i++)
		bad += check_list(pg, zone, pcp, i, out);
	mf_zone_unlock(zone);
	if (pcp->count != mf_pcp_count(pcp)) {
		mf_outbuf_printf(out, "zone %u cpu %d: %u pages on the lists, %u counted\n", zone->index,
				 pcp->cpu, mf_pcp_count(pcp), pcp->count);
		bad++;
	}
	return bad;
}

static unsigned check_zone(struct mf_page *pg, struct mf_zone *zone, uint64_t *accounted,
			   struct mf_outbuf *out)
{
	uint64_t on_lists, highatomic;
	char prefix[64];
	unsigned bad;

	snprintf(prefix, sizeof(prefix), "node %d zone %s: ", zone->node, mf_zone_names[zone->type]);
	bad = mf_pcp_check(pg, zone, &on_lists, out);
	mf_zone_lock(pg, zone, false);
	bad += mf_buddy_check(&zone->buddy, prefix, out);
	highatomic = zone->buddy.nr_blocks[MF_HIGHATOMIC] * MF_PAGEBLOCK_PAGES;
	if (highatomic != zone->nr_highatomic) {
		mf_outbuf_printf(out, "%s%" PRIu64 " pages reserved, %" PRIu64 " in HighAtomic blocks\n",
				 prefix, zone->nr_highatomic, highatomic);
		bad++;
	}
	*accounted += mf_zone_free_pages(zone) + on_lists + zone->nr_trimming;
	mf_zone_unlock(zone);
	return bad;
}

unsigned mf_page_check(struct mf_page *pg, int64_t handed_out, struct mf_outbuf *out)
{
	uint64_t accounted = 0;
	unsigned bad = 0;

	for (unsigned i = 0; i < MF_MAX_ZONES; i++)
		if (pg->zone[i])
			bad += check_zone(pg, pg->zone[i], &accounted, out);
	if (handed_out >= 0 && accounted + (uint64_t)handed_out != pg->topo->nr_pages) {
		mf_outbuf_printf(out,
				 "%" PRIu64 " pages free or on lists and %" PRId64
				 " handed out are not %" PRIu64 "\n",
				 accounted, handed_out, pg->topo->nr_pages);
		bad++;
	}
	return bad;
}
