/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts a zone anew, bit by bit, and compares with what the other buddy
 * files keep.  Shares no arithmetic with them on purpose.
 *
 * A line never touched (all its memory zero) is passed over quickly, so that
 * a large zone with little use checks fast.
 *
 * Locks: the zone's, held by the caller.
 */
#include "page/buddy_tables.h"

#include <inttypes.h>

struct recount {
	const struct mf_buddy *buddy;
	const char *prefix;
	struct mf_outbuf *out;
	unsigned violations;
	uint64_t free_pages;
	uint64_t nr_free[MF_NR_MIGRATE_TYPES][MF_NR_ORDERS];
	uint64_t nr_blocks[MF_NR_MIGRATE_TYPES];
	uint64_t queued[MF_NR_MIGRATE_TYPES][MF_NR_ORDERS]; /* lines that belong there */
	uint64_t dirty;
};

static __attribute__((format(printf, 2, 3))) void complain(struct recount *re, const char *format, ...)
{
	va_list args;

	re->violations++;
	mf_outbuf_puts(re->out, re->prefix);
	va_start(args, format);
	mf_outbuf_vprintf(re->out, format, args);
	va_end(args);
	mf_outbuf_puts(re->out, "\n");
}

static bool bit_used(const struct mf_line_rows *rows, unsigned page)
{
	return rows->used[page / 64] & (uint64_t)1 << page % 64;
}

static bool run_free(const struct mf_line_rows *rows, unsigned page, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		if (bit_used(rows, page + i))
			return false;
	return true;
}

/* Counts the blocks in the aligned run of @order at @page; returns the largest order, -1 if none. */
static int count_blocks(const struct mf_line_rows *rows, unsigned page, unsigned order, uint64_t *counts)
{
	int left, right;

	if (run_free(rows, page, 1u << order)) {
		counts[order]++;
		return (int)order;
	}
	if (!order)
		return -1;
	left = count_blocks(rows, page, order - 1, counts);
	right = count_blocks(rows, page + (1u << (order - 1)), order - 1, counts);
	return left > right ? left : right;
}

/* The remembered orders of a row: nothing missing, the largest not invented. */
static void check_row(struct recount *re, uint32_t number, unsigned row)
{
	const struct mf_buddy_tables *tables = re->buddy->tables;
	uint64_t counts[MF_NR_ORDERS] = { 0 };
	unsigned kept = tables->lines[number].orders >> (8 * row) & 0xff, lower = 0;
	int largest = count_blocks(&tables->rows[number], row * 64, 6, counts);

	if (largest == 6) {
		if (kept)
			complain(re, "line %" PRIu32 " row %u: free, orders 0x%x", number, row, kept);
		return;
	}
	for (unsigned order = 0; order < 6; order++)
		lower |= (unsigned)(counts[order] > 0) << order;
	if (!(kept & 0x40) || (kept & 0x80) || (lower & ~kept) || (kept & 0x3f) >> (largest + 1))
		complain(re, "line %" PRIu32 " row %u: orders 0x%x, found 0x%x", number, row, kept, lower);
}

static void check_outside(struct recount *re, uint32_t number)
{
	const struct mf_buddy *buddy = re->buddy;
	uint64_t first = (uint64_t)(buddy->tables->base_line + number) * 512;

	if (first >= buddy->start_pfn && first + 512 <= buddy->start_pfn + buddy->nr_pages)
		return;
	for (unsigned page = 0; page < 512; page++)
		if ((first + page < buddy->start_pfn || first + page >= buddy->start_pfn + buddy->nr_pages) &&
		    !bit_used(&buddy->tables->rows[number], page))
			complain(re, "page %" PRIu64 " outside the zone is free", first + page);
}

static void check_flags(struct recount *re, uint32_t number)
{
	const struct mf_buddy_tables *tables = re->buddy->tables;
	const struct mf_line *line = &tables->lines[number];
	bool dirty = line->flags & MF_LINE_DIRTY;

	if (dirty != mf_queue_has(&tables->dirty, number))
		complain(re, "line %" PRIu32 ": dirty %d, in the dirty set %d", number, dirty, !dirty);
	re->dirty += dirty;
	if (!(line->flags & MF_LINE_ISOLATED))
		return;
	if (!dirty)
		complain(re, "line %" PRIu32 ": isolated and clean", number);
	for (unsigned page = 0; page < 512; page++)
		if (!bit_used(&tables->rows[number], page))
			complain(re, "line %" PRIu32 ": isolated, page %u free", number, page);
}

/* Is the line free, and with its free partner a block of order 10? */
static bool is_pair(const struct mf_buddy_tables *tables, uint32_t number)
{
	const struct mf_line *line = &tables->lines[number], *partner = &tables->lines[number ^ 1];

	return run_free(&tables->rows[number], 0, 512) && run_free(&tables->rows[number ^ 1], 0, 512) &&
	       (mf_line_type(line) == MF_HIGHATOMIC) == (mf_line_type(partner) == MF_HIGHATOMIC);
}

/* Loss and queue of a line whose largest block is of order @largest (-1: none; 10: half a pair). */
static void check_place(struct recount *re, uint32_t number, int largest)
{
	const struct mf_buddy_tables *tables = re->buddy->tables;
	const struct mf_line *line = &tables->lines[number];
	enum mf_migrate_type type = mf_line_type(line);

	if (line->loss != (largest < 0 ? 11 : 10 - largest))
		complain(re, "line %" PRIu32 ": loss %u, largest order %d", number, line->loss, largest);
	if (largest < 0 || (largest == 10 && number & 1))
		return;
	re->queued[type][largest]++;
	if (!mf_queue_has(&tables->queues[type][largest], largest == 10 ? number / 2 : number))
		complain(re, "line %" PRIu32 ": not in the queue of type %d order %d", number, (int)type,
			 largest);
}

static void check_line(struct recount *re, uint32_t number)
{
	const struct mf_buddy_tables *tables = re->buddy->tables;
	const struct mf_line *line = &tables->lines[number];
	const struct mf_line_rows *rows = &tables->rows[number];
	enum mf_migrate_type type = mf_line_type(line);
	uint64_t counts[MF_NR_ORDERS] = { 0 };
	int largest = count_blocks(rows, 0, 9, counts);

	for (unsigned row = 0; row < MF_LINE_ROWS; row++)
		check_row(re, number, row);
	check_outside(re, number);
	check_flags(re, number);
	if (number + tables->base_line >= re->buddy->first_line &&
	    number + tables->base_line < re->buddy->first_line + re->buddy->nr_lines &&
	    (re->buddy->kinds[number + tables->base_line - re->buddy->kinds_base] & 0xff) != line->tag)
		complain(re, "line %" PRIu32 ": the copy of its type differs", number);
	if (largest == 9 && is_pair(tables, number)) {
		largest = 10;
		counts[9] = 0;
		counts[10] = !(number & 1);
		if (line->tag != tables->lines[number ^ 1].tag)
			complain(re, "line %" PRIu32 ": pair of two types", number);
		re->free_pages += number & 1 ? 1024 : 0;
	}
	for (unsigned order = 0; order < MF_NR_ORDERS; order++) {
		re->nr_free[type][order] += counts[order];
		re->free_pages += order < 10 ? counts[order] << order : 0;
	}
	check_place(re, number, largest);
}

/* Both lines never touched: a free movable pair. */
static bool pair_is_fresh(const struct mf_buddy_tables *tables, uint32_t number)
{
	uint64_t sum = 0;

	for (uint32_t line = number; line < number + 2; line++) {
		const struct mf_line *meta = &tables->lines[line];

		sum |= meta->orders | meta->loss | meta->tag | meta->flags;
		for (unsigned row = 0; row < MF_LINE_ROWS; row++)
			sum |= tables->rows[line].used[row];
	}
	return !sum;
}

static void check_fresh_pair(struct recount *re, uint32_t number)
{
	const struct mf_buddy_tables *tables = re->buddy->tables;

	re->nr_free[MF_MOVABLE][10]++;
	re->queued[MF_MOVABLE][10]++;
	re->free_pages += 1024;
	if (!mf_queue_has(&tables->queues[MF_MOVABLE][10], number / 2))
		complain(re, "line %" PRIu32 ": free pair not queued", number);
	check_outside(re, number);
	check_outside(re, number + 1);
}

static void check_queues(struct recount *re)
{
	const struct mf_buddy_tables *tables = re->buddy->tables;

	for (unsigned type = 0; type < MF_NR_MIGRATE_TYPES; type++) {
		for (unsigned order = 0; order < MF_NR_ORDERS; order++) {
			const struct mf_queue *queue = &tables->queues[type][order];
			uint64_t members = mf_queue_count(queue);
			bool waiting = tables->waiting[type] >> order & 1;

			if (members != re->queued[type][order])
				complain(re,
					 "queue of type %u order %u: %" PRIu64 " lines, expected %" PRIu64,
					 type, order, members, re->queued[type][order]);
			if (mf_queue_check(queue) || waiting != (members > 0) ||
			    (members && mf_queue_next(queue, 0) < queue->low))
				complain(re, "queue of type %u order %u: wrong summary", type, order);
		}
	}
	if (mf_queue_count(&tables->dirty) != re->dirty || tables->nr_dirty != re->dirty ||
	    mf_queue_check(&tables->dirty))
		complain(re, "dirty lines: counter %" PRIu64 ", found %" PRIu64, tables->nr_dirty, re->dirty);
}

static void check_counters(struct recount *re)
{
	const struct mf_buddy *buddy = re->buddy;

	if (buddy->nr_free_pages != re->free_pages)
		complain(re, "free pages %" PRIu64 ", counted %" PRIu64, buddy->nr_free_pages,
			 re->free_pages);
	for (unsigned type = 0; type < MF_NR_MIGRATE_TYPES; type++) {
		if (buddy->nr_blocks[type] != re->nr_blocks[type])
			complain(re, "pageblocks of type %u: %" PRIu64 ", counted %" PRIu64, type,
				 buddy->nr_blocks[type], re->nr_blocks[type]);
		for (unsigned order = 0; order < MF_NR_ORDERS; order++)
			if (buddy->nr_free[type][order] != re->nr_free[type][order])
				complain(re, "free blocks of type %u order %u: %" PRIu64 ", counted %" PRIu64,
					 type, order, buddy->nr_free[type][order], re->nr_free[type][order]);
	}
}

unsigned mf_buddy_check(const struct mf_buddy *buddy, const char *prefix, struct mf_outbuf *out)
{
	const struct mf_buddy_tables *tables = buddy->tables;
	uint32_t first = buddy->first_line - tables->base_line;
	struct recount re = { .buddy = buddy, .prefix = prefix, .out = out };

	for (uint32_t line = 0; line < tables->nr_lines; line += 2) {
		if (pair_is_fresh(tables, line)) {
			check_fresh_pair(&re, line);
			continue;
		}
		check_line(&re, line);
		check_line(&re, line + 1);
	}
	for (uint32_t line = first; line < first + buddy->nr_lines; line++)
		re.nr_blocks[mf_line_type(&tables->lines[line])]++;
	check_queues(&re);
	check_counters(&re);
	return re.violations;
}
