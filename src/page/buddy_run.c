/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Contiguous pages whose number is no power of two, from lines that are in use
 * already.
 *
 * A block of the next power of two has room for them, but cutting one for every
 * run leaves tails that only smaller requests can use.  Between used pages runs
 * of just the right length appear at any position.  Lines whose largest block
 * has less than half of the pages are not looked at (few of them would have
 * room), and a wholly free one is not broken while another has.
 *
 * Lock: the zone's.
 */
#include "page/buddy_tables.h"

/* Lines of one queue that are looked at: bounds the time under the lock. */
#define LOOKS 2u

#define LINE_PAGES MF_PAGEBLOCK_PAGES

/* The lowest run of so many free pages in a line; LINE_PAGES: there is none. */
static unsigned find_run(const struct mf_line_rows *rows, unsigned pages)
{
	unsigned run = 0; /* free pages up to here */

	for (unsigned row = 0; row < MF_LINE_ROWS; row++) {
		uint64_t used = rows->used[row];
		unsigned at = 0;

		while (at < MF_ROW_PAGES) {
			unsigned free = mf_zeros_below(used >> at);

			if (free > MF_ROW_PAGES - at)
				free = MF_ROW_PAGES - at;
			at += free;
			run += free;
			if (run >= pages)
				return row * MF_ROW_PAGES + at - run;
			if (at == MF_ROW_PAGES)
				break;
			at += mf_zeros_below(~(used >> at));
			run = 0;
		}
	}
	return LINE_PAGES;
}

static void use_pages(struct mf_line_rows *rows, unsigned from, unsigned pages)
{
	while (pages) {
		unsigned bit = from % MF_ROW_PAGES;
		unsigned here = pages < MF_ROW_PAGES - bit ? pages : MF_ROW_PAGES - bit;
		uint64_t ones = here == MF_ROW_PAGES ? ~UINT64_C(0) : (UINT64_C(1) << here) - 1;

		rows->used[from / MF_ROW_PAGES] |= ones << bit;
		from += here;
		pages -= here;
	}
}

/* Adds sign * the blocks of rows first to last, and of the larger ones that wholly free rows make. */
static void count_rows(const struct mf_line *line, const struct mf_line_rows *rows, unsigned first,
		       unsigned last, bool whole, int32_t sign, int32_t *counts)
{
	for (unsigned row = first; row <= last; row++)
		if (line->orders >> (8 * row) & MF_ROW_PART && ~rows->used[row])
			mf_row_count(~rows->used[row], sign, counts);
	if (whole)
		mf_rows_count(mf_free_rows(line->orders), sign, counts);
}

/* The line is partly used and stays so; its counters move once, by what changes. */
static void take_pages(struct mf_buddy *buddy, enum mf_migrate_type type, uint32_t number, unsigned from,
		       unsigned pages)
{
	unsigned first = from / MF_ROW_PAGES, last = (from + pages - 1) / MF_ROW_PAGES;
	struct mf_buddy_tables *tables = buddy->tables;
	struct mf_line_rows *rows = &tables->rows[number];
	struct mf_line *line = &tables->lines[number];
	int32_t counts[MF_NR_ORDERS] = { 0 };
	bool whole = false; /* a wholly free row is broken */

	for (unsigned row = first; row <= last; row++)
		whole |= !(line->orders >> (8 * row) & MF_ROW_PART);
	mf_line_mark_dirty(tables, number);
	count_rows(line, rows, first, last, whole, -1, counts);
	use_pages(rows, from, pages);
	for (unsigned row = first; row <= last; row++)
		line->orders = (line->orders & ~(UINT64_C(0xff) << (8 * row))) |
			       mf_row_orders(~rows->used[row]) << (8 * row);
	count_rows(line, rows, first, last, whole, 1, counts);
	for (unsigned order = 0; order < MF_PAGEBLOCK_ORDER; order++)
		if (counts[order])
			mf_counter_add(&buddy->nr_free[type][order], counts[order]);
	mf_counter_add(&buddy->nr_free_pages, -(int64_t)pages);
	mf_line_requeue(tables, number, type, mf_line_loss(line->orders));
}

static bool take_from_queue(struct mf_buddy *buddy, enum mf_migrate_type type, unsigned order, unsigned pages,
			    uint32_t *pfn)
{
	struct mf_buddy_tables *tables = buddy->tables;
	uint32_t line = mf_queue_first(&tables->queues[type][order]);

	for (unsigned i = 0; i < LOOKS && line != MF_QUEUE_NONE; i++) {
		unsigned page = find_run(&tables->rows[line], pages);

		if (page < LINE_PAGES) {
			take_pages(buddy, type, line, page, pages);
			*pfn = mf_line_pfn(tables, line) + page;
			return true;
		}
		line = mf_queue_next(&tables->queues[type][order], line + 1);
	}
	return false;
}

bool mf_buddy_take_run(struct mf_buddy *buddy, enum mf_migrate_type type, unsigned pages, uint32_t *pfn)
{
	unsigned order = 31u - (unsigned)__builtin_clz(pages);

	if (pages >= LINE_PAGES)
		return false;
	for (; order < MF_PAGEBLOCK_ORDER; order++)
		if (buddy->tables->waiting[type] >> order & 1 &&
		    take_from_queue(buddy, type, order, pages, pfn))
			return true;
	return false;
}
