/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Many single pages at once: whole rows out, scattered pages in.
 *
 * Taking goes line by line in the order of single takes.  A line that is
 * wanted whole is emptied in address order; otherwise partly free rows go
 * first, those with the smallest largest block before others, then rows of
 * the smallest run of free rows; of the last row the smallest blocks.  That
 * keeps the large blocks of the line as long as possible.
 *
 * Giving costs a few instructions a page without a branch that depends on
 * the neighbours; changes of the block counters within rows are summed in a tally
 * and stored at the end.
 *
 * Both are compiled twice, for CPUs with bit counting instructions and without.
 *
 * Locks: the zone's, held by the caller.
 */
#include "page/buddy_tables.h"

#if defined(__x86_64__)
#define FAST_CPU __attribute__((target("bmi,bmi2,lzcnt,popcnt")))
#else
#define FAST_CPU
#endif

#define PREFETCH_AHEAD 16
/* From this many pages of one row on, counting the row twice is cheaper than page by page. */
#define MIN_GROUP 6

struct take {
	uint32_t *pfns;
	size_t nr;		      /* written */
	size_t wanted;		      /* still wanted */
	int32_t counts[MF_NR_ORDERS]; /* change of nr_free of the one type */
};

/* Writes the first @nr pages of a row's free bits; returns the bits that are left. */
MF_LINE_INLINE uint64_t emit(struct take *take, uint32_t pfn, uint64_t free, unsigned nr)
{
	uint32_t *out = take->pfns + take->nr;

	take->nr += nr;
	take->wanted -= nr;
	if (free == ~0ull) {
		unsigned done = 0;

		for (; done + 8 <= nr; done += 8)
			for (unsigned i = 0; i < 8; i++)
				out[done + i] = pfn + done + i;
		for (; done < nr; done++)
			out[done] = pfn + done;
		return nr == MF_ROW_PAGES ? 0 : ~0ull << nr;
	}
	for (unsigned i = 0; i < nr; i++) {
		out[i] = pfn + (uint32_t)__builtin_ctzll(free);
		free &= free - 1;
	}
	return free;
}

/* Every free page of the line, in address order. */
MF_LINE_INLINE void take_line(struct take *take, struct mf_line *line, struct mf_line_rows *rows,
			      uint32_t pfn)
{
	mf_line_count(rows, line->orders, -1, take->counts);
	for (unsigned row = 0; row < MF_LINE_ROWS; row++) {
		uint64_t free = ~rows->used[row];

		if (free)
			emit(take, pfn + row * MF_ROW_PAGES, free, (unsigned)__builtin_popcountll(free));
		rows->used[row] = ~0ull;
	}
	line->orders = MF_ROWS_FULL;
}

/* @take->wanted of a row's free pages, which are more: small blocks first.  Returns what is left. */
MF_LINE_INLINE uint64_t take_of_row(struct take *take, uint32_t pfn, uint64_t free)
{
	uint64_t left = free;

	if (free == ~0ull)
		return emit(take, pfn, free, (unsigned)take->wanted);
	for (unsigned order = 0; order < MF_ROW_ORDER && take->wanted; order++) {
		uint64_t pages = mf_row_blocks(free, order);
		unsigned nr;

		for (unsigned n = 0; n < order; n++)
			pages |= pages << (1u << n);
		nr = (unsigned)__builtin_popcountll(pages);
		if (nr > take->wanted)
			nr = (unsigned)take->wanted;
		left &= ~pages | emit(take, pfn, pages, nr);
	}
	return left;
}

/* The partly free row whose largest block is the smallest, the lowest of them; 8 if none. */
MF_LINE_INLINE unsigned poorest_row(uint64_t orders)
{
	unsigned best = MF_LINE_ROWS, best_size = ~0u;

	if (!(orders & MF_ROWS_BLOCKS))
		return MF_LINE_ROWS;
	for (unsigned row = 0; row < MF_LINE_ROWS; row++) {
		unsigned blocks = orders >> (8 * row) & 0x3f;
		unsigned size = blocks ? 31 - (unsigned)__builtin_clz(blocks) : ~0u;

		if (size < best_size) {
			best = row;
			best_size = size;
		}
	}
	return best;
}

/* One row, whole or as much as is wanted. */
MF_LINE_INLINE void take_row(struct take *take, struct mf_line *line, struct mf_line_rows *rows, uint32_t pfn)
{
	unsigned row = poorest_row(line->orders), order;
	uint64_t free, left;

	if (row == MF_LINE_ROWS) {
		order = mf_rows_smallest(mf_free_rows(line->orders), MF_ROW_ORDER, &row);
		take->counts[order]--;
		for (unsigned n = MF_ROW_ORDER; n < order; n++)
			take->counts[n]++;
		free = ~0ull;
	} else {
		free = ~rows->used[row];
		mf_row_count(free, -1, take->counts);
	}
	pfn += row * MF_ROW_PAGES;
	if ((unsigned)__builtin_popcountll(free) <= take->wanted)
		left = emit(take, pfn, free, (unsigned)__builtin_popcountll(free));
	else
		left = take_of_row(take, pfn, free);
	rows->used[row] = ~left;
	line->orders = (line->orders & ~(0xffull << (8 * row))) | mf_row_orders(left) << (8 * row);
	if (left)
		mf_row_count(left, 1, take->counts);
}

MF_LINE_INLINE unsigned free_pages(const struct mf_line_rows *rows)
{
	unsigned nr = MF_PAGEBLOCK_PAGES;

	for (unsigned row = 0; row < MF_LINE_ROWS; row++)
		nr -= (unsigned)__builtin_popcountll(rows->used[row]);
	return nr;
}

MF_LINE_INLINE void take_from_line(struct mf_buddy_tables *tables, enum mf_migrate_type type, uint32_t number,
				   struct take *take)
{
	struct mf_line *line = &tables->lines[number];
	struct mf_line_rows *rows = &tables->rows[number];
	uint32_t pfn = mf_line_pfn(tables, number);

	if (line->loss == MF_LOSS_PAIR) {
		mf_pair_split(tables, number, type);
		take->counts[MF_PAIR_ORDER]--;
		take->counts[MF_PAGEBLOCK_ORDER] += 2;
	}
	mf_line_mark_dirty(tables, number);
	if (free_pages(rows) <= take->wanted)
		take_line(take, line, rows, pfn);
	else
		while (take->wanted)
			take_row(take, line, rows, pfn);
	mf_line_requeue(tables, number, type, mf_line_loss(line->orders));
}

MF_LINE_INLINE size_t take_bulk(struct mf_buddy *buddy, enum mf_migrate_type type, size_t n, uint32_t *pfns)
{
	struct mf_buddy_tables *tables = buddy->tables;
	struct take take = { .pfns = pfns, .wanted = n };

	while (take.wanted && tables->waiting[type]) {
		unsigned order = (unsigned)__builtin_ctz(tables->waiting[type]);

		take_from_line(tables, type, mf_queued_line(tables, type, order), &take);
	}
	for (unsigned order = 0; order < MF_NR_ORDERS; order++)
		mf_counter_add(&buddy->nr_free[type][order], take.counts[order]);
	mf_counter_add(&buddy->nr_free_pages, -(int64_t)take.nr);
	return take.nr;
}

/*
 * Gives by the order they merged to are counted in one word, a field an order
 * 0..6: a counter in memory would make each page wait for the one before.
 */
#define FIELD_BITS 9
#define FIELD_MAX ((1u << FIELD_BITS) - 1)

struct tally {
	struct mf_buddy *buddy;
	struct mf_line *lines; /* of the tables; here because the compiler cannot know they stay */
	uint64_t *rows;
	uint64_t base_row;
	uint64_t fields;
	unsigned room;					   /* gives until a field may be full */
	unsigned tag;					   /* of the lines counted in fields */
	unsigned seen;					   /* a bit a tag: its changes below are valid */
	int32_t change[MF_NR_MIGRATE_TYPES][MF_ROW_ORDER]; /* of nr_free by tag, orders 0..5 */
};

MF_LINE_INLINE int32_t *changes_of(struct tally *tally, unsigned tag)
{
	if (!(tally->seen >> tag & 1)) {
		for (unsigned order = 0; order < MF_ROW_ORDER; order++)
			tally->change[tag][order] = 0;
		tally->seen |= 1u << tag;
	}
	return tally->change[tag];
}

MF_LINE_INLINE void unpack_fields(struct tally *tally, unsigned tag)
{
	int32_t above = (int32_t)(tally->fields >> (MF_ROW_ORDER * FIELD_BITS));
	int32_t *change = changes_of(tally, tally->tag);

	/* A give that merged to an order swallowed one block of each order below. */
	for (unsigned order = MF_ROW_ORDER; order-- > 0;) {
		int32_t here = (int32_t)(tally->fields >> (order * FIELD_BITS) & FIELD_MAX);

		change[order] += here - above;
		above += here;
	}
	tally->fields = 0;
	tally->room = FIELD_MAX;
	tally->tag = tag;
}

MF_LINE_INLINE void settle(struct tally *tally)
{
	unpack_fields(tally, 0);
	for (unsigned tag = 0; tag < MF_NR_MIGRATE_TYPES; tag++)
		for (unsigned order = 0; tally->seen >> tag & 1 && order < MF_ROW_ORDER; order++)
			mf_counter_add(&tally->buddy->nr_free[tag ^ MF_MOVABLE][order],
				       tally->change[tag][order]);
}

/* Gives the pages @mask of one row. */
MF_LINE_INLINE void give_group(struct tally *tally, uint64_t row, uint64_t mask)
{
	uint32_t number = (uint32_t)(row / MF_LINE_ROWS);
	struct mf_line *line = &tally->lines[number];
	uint64_t used = tally->rows[row], orders;
	unsigned shift = row % MF_LINE_ROWS * 8, loss;
	int32_t *change = changes_of(tally, line->tag);

	mf_row_count(~used, -1, change);
	used &= ~mask;
	tally->rows[row] = used;
	orders = line->orders & ~(0xffull << shift);
	if (!used) {
		/* The row enters as one block of order 6. */
		line->orders = orders;
		mf_buddy_rows_given(tally->buddy, number, row % MF_LINE_ROWS, MF_ROW_ORDER);
		return;
	}
	mf_row_count(~used, 1, change);
	orders |= mf_row_orders(~used) << shift;
	line->orders = orders;
	loss = mf_line_loss(orders);
	if (loss < line->loss)
		mf_line_requeue(tally->buddy->tables, number, mf_line_type(line), loss);
}

MF_LINE_INLINE void give_page(struct tally *tally, uint64_t row, unsigned bit)
{
	uint32_t number = (uint32_t)(row / MF_LINE_ROWS);
	struct mf_line *line = &tally->lines[number];
	uint64_t used = tally->rows[row] & ~(1ull << bit);
	unsigned shift = row % MF_LINE_ROWS * 8, order = mf_merge_order(used, bit);

	tally->rows[row] = used;
	if (__builtin_expect(line->tag != tally->tag || !tally->room, 0))
		unpack_fields(tally, line->tag);
	tally->room--;
	tally->fields += 1ull << (order * FIELD_BITS);
	if (__builtin_expect(!used, 0)) {
		line->orders &= ~(0xffull << shift);
		mf_buddy_rows_given(tally->buddy, number, row % MF_LINE_ROWS, MF_ROW_ORDER);
		return;
	}
	line->orders |= 1ull << (shift + order);
	if (__builtin_expect(10 - order < line->loss, 0))
		mf_line_requeue(tally->buddy->tables, number, mf_line_type(line), 10 - order);
}

MF_LINE_INLINE void prefetch_page(const struct tally *tally, uint32_t pfn)
{
	uint64_t row = pfn / MF_ROW_PAGES - tally->base_row;

	__builtin_prefetch(&tally->rows[row], 1);
	__builtin_prefetch(&tally->lines[row / MF_LINE_ROWS], 1);
}

/* Gives pfns[i] and what follows it in the same row; returns the next index. */
MF_LINE_INLINE size_t give_run(struct tally *tally, size_t n, const uint32_t *pfns, size_t i)
{
	uint32_t row = pfns[i] / MF_ROW_PAGES;
	uint64_t mask = 0;
	size_t start = i;

	for (; i < n && pfns[i] / MF_ROW_PAGES == row; i++)
		mask |= 1ull << pfns[i] % MF_ROW_PAGES;
	if (i - start >= MIN_GROUP)
		give_group(tally, row - tally->base_row, mask);
	else
		for (; mask; mask &= mask - 1)
			give_page(tally, row - tally->base_row, mf_zeros_below(mask));
	return i;
}

MF_LINE_INLINE void give_bulk(struct mf_buddy *buddy, size_t n, const uint32_t *pfns)
{
	struct mf_buddy_tables *tables = buddy->tables;
	struct tally tally;
	size_t i;

	tally.buddy = buddy;
	tally.lines = tables->lines;
	tally.rows = mf_row_word(tables, 0);
	tally.base_row = tables->base_row;
	tally.fields = 0;
	tally.room = FIELD_MAX;
	tally.tag = 0;
	tally.seen = 0;
	for (i = 0; i < PREFETCH_AHEAD && i < n; i++)
		prefetch_page(&tally, pfns[i]);
	for (i = 0; i < n;) {
		if (i + PREFETCH_AHEAD < n)
			prefetch_page(&tally, pfns[i + PREFETCH_AHEAD]);
		if (i + 1 < n && __builtin_expect(pfns[i] / MF_ROW_PAGES == pfns[i + 1] / MF_ROW_PAGES, 0)) {
			i = give_run(&tally, n, pfns, i);
			continue;
		}
		give_page(&tally, pfns[i] / MF_ROW_PAGES - tally.base_row, pfns[i] % MF_ROW_PAGES);
		i++;
	}
	settle(&tally);
	mf_counter_add(&buddy->nr_free_pages, (int64_t)n);
}

static FAST_CPU size_t take_bulk_fast(struct mf_buddy *buddy, enum mf_migrate_type type, size_t n,
				      uint32_t *pfns)
{
	return take_bulk(buddy, type, n, pfns);
}

static FAST_CPU void give_bulk_fast(struct mf_buddy *buddy, size_t n, const uint32_t *pfns)
{
	give_bulk(buddy, n, pfns);
}

static size_t take_bulk_portable(struct mf_buddy *buddy, enum mf_migrate_type type, size_t n, uint32_t *pfns)
{
	return take_bulk(buddy, type, n, pfns);
}

static void give_bulk_portable(struct mf_buddy *buddy, size_t n, const uint32_t *pfns)
{
	give_bulk(buddy, n, pfns);
}

size_t mf_buddy_take_bulk(struct mf_buddy *buddy, enum mf_migrate_type type, size_t n, uint32_t *pfns)
{
	if (buddy->tables->fast)
		return take_bulk_fast(buddy, type, n, pfns);
	return take_bulk_portable(buddy, type, n, pfns);
}

void mf_buddy_give_bulk(struct mf_buddy *buddy, size_t n, const uint32_t *pfns)
{
	if (buddy->tables->fast)
		give_bulk_fast(buddy, n, pfns);
	else
		give_bulk_portable(buddy, n, pfns);
}
