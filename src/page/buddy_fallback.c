/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks for a type whose own lines have none: claiming a pageblock of another
 * type, or stealing a block from it.
 *
 * A claim is tried at each order from the largest down, on the lowest line
 * of each other type whose largest block is of that order; blocks of whole
 * pageblocks always change type, smaller ones take their pageblock along if at
 * least half of it is free or compatible.  A pageblock that sticks out of the zone
 * is not claimed.  Stealing takes from the line that a request of the
 * other type would take from.
 *
 * Locks: the zone's, held by the caller.
 */
#include "page/buddy_tables.h"

/* A claim below this order is for UNMOVABLE and RECLAIMABLE only. */
#define CLAIM_ORDER (MF_PAGEBLOCK_ORDER / 2)

static const enum mf_migrate_type fallbacks[MF_PCP_TYPES][2] = {
	[MF_UNMOVABLE] = { MF_RECLAIMABLE, MF_MOVABLE },
	[MF_MOVABLE] = { MF_RECLAIMABLE, MF_UNMOVABLE },
	[MF_RECLAIMABLE] = { MF_UNMOVABLE, MF_MOVABLE },
};

static unsigned free_pages(const struct mf_line_rows *rows)
{
	unsigned nr = MF_PAGEBLOCK_PAGES;

	for (unsigned row = 0; row < MF_LINE_ROWS; row++)
		nr -= (unsigned)__builtin_popcountll(rows->used[row]);
	return nr;
}

static bool inside_zone(const struct mf_buddy *buddy, uint32_t pfn)
{
	return pfn >= buddy->start_pfn &&
	       (uint64_t)pfn + MF_PAGEBLOCK_PAGES <= buddy->start_pfn + buddy->nr_pages;
}

/* May the whole pageblock of a partly free line become @type? */
static bool convertible(const struct mf_buddy *buddy, uint32_t line, enum mf_migrate_type type)
{
	const struct mf_buddy_tables *tables = buddy->tables;
	unsigned nr_free = free_pages(&tables->rows[line]), compatible = 0;

	if (!inside_zone(buddy, mf_line_pfn(tables, line)))
		return false;
	/* What was handed out of a movable pageblock is movable, of any other it is not. */
	if (type != MF_MOVABLE && mf_line_type(&tables->lines[line]) != MF_MOVABLE)
		compatible = MF_PAGEBLOCK_PAGES - nr_free;
	return nr_free + compatible >= MF_PAGEBLOCK_PAGES / 2;
}

/* Claims from the lowest line of type @from whose largest block is of @order. */
static bool claim(struct mf_buddy *buddy, enum mf_migrate_type type, enum mf_migrate_type from,
		  unsigned order)
{
	struct mf_buddy_tables *tables = buddy->tables;
	uint32_t line;

	if (!(tables->waiting[from] >> order & 1))
		return false;
	line = mf_queued_line(tables, from, order);
	if (order < MF_PAGEBLOCK_ORDER && !convertible(buddy, line, type))
		return false;
	/* Of a free pair, the other line follows. */
	mf_buddy_set_type(buddy, mf_line_pfn(tables, line), type);
	return true;
}

/* *order: that of the block claimed. */
static bool claim_largest(struct mf_buddy *buddy, enum mf_migrate_type type, unsigned min_order,
			  unsigned *order)
{
	if (type == MF_MOVABLE && min_order < CLAIM_ORDER)
		min_order = CLAIM_ORDER;
	for (unsigned size = MF_PAIR_ORDER + 1; size-- > min_order;) {
		*order = size;
		for (unsigned i = 0; i < 2; i++)
			if (claim(buddy, type, fallbacks[type][i], size))
				return true;
	}
	return false;
}

static bool steal_smallest(struct mf_buddy *buddy, enum mf_migrate_type type, unsigned order, uint32_t *pfn)
{
	for (unsigned size = order; size <= MF_PAIR_ORDER; size++)
		for (unsigned i = 0; i < 2; i++)
			if (buddy->tables->waiting[fallbacks[type][i]] >> size & 1)
				return mf_buddy_take(buddy, fallbacks[type][i], order, pfn);
	return false;
}

bool mf_buddy_take_fallback(struct mf_buddy *buddy, enum mf_migrate_type type, unsigned order,
			    bool nofragment, uint32_t *pfn, struct mf_fallback_result *result)
{
	unsigned claimed, min_order = order;

	result->claimed = false;
	result->boost = false;
	if (type >= MF_PCP_TYPES || order > MEMFS_MAX_PAGE_ORDER)
		return false;
	if (nofragment && min_order < MF_PAGEBLOCK_ORDER)
		min_order = MF_PAGEBLOCK_ORDER;
	if (claim_largest(buddy, type, min_order, &claimed)) {
		result->claimed = true;
		result->boost = claimed < MF_PAGEBLOCK_ORDER;
		return mf_buddy_take(buddy, type, order, pfn);
	}
	return !nofragment && steal_smallest(buddy, type, order, pfn);
}
