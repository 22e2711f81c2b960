/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Buddy allocator of a zone: making it, single blocks, types.
 *
 * There are no lists of blocks.  Taking clears nothing but page bits, one
 * counter an order that was split, and the line's place in the queues if its
 * largest order changed; giving is the mirror image.  See buddy.h for the
 * invariants, buddy_tables.h for the tables.
 *
 * Locks: the zone's, held by the caller.
 */
#include "page/buddy_tables.h"

#include <errno.h>
#include <string.h>
#ifdef MF_DEBUG
#include <assert.h>
#define debug_assert(condition) assert(condition)
#else
#define debug_assert(condition) ((void)0)
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* The bulk paths exist twice; this chooses (buddy_bulk.c). */
static bool cpu_is_fast(void)
{
#if defined(__x86_64__)
	const unsigned ebx_bmi = 1u << 3, ebx_bmi2 = 1u << 8, ecx_popcnt = 1u << 23, ecx_lzcnt = 1u << 5;
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & ecx_popcnt))
		return false;
	if (!__get_cpuid(0x80000001u, &a, &b, &c, &d) || !(c & ecx_lzcnt))
		return false;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & ebx_bmi && b & ebx_bmi2;
#else
	return false;
#endif
}

static size_t tables_bytes(uint32_t nr_lines)
{
	size_t words = MF_NR_MIGRATE_TYPES * ((MF_NR_ORDERS - 1) * mf_queue_words(nr_lines) +
					      mf_queue_words(nr_lines / 2)) +
		       mf_queue_words(nr_lines);

	return (sizeof(struct mf_buddy_tables) + 63) / 64 * 64 + nr_lines * sizeof(struct mf_line_rows) +
	       nr_lines * sizeof(struct mf_line) + words * sizeof(uint64_t) + nr_lines * sizeof(uint16_t);
}

/* Cuts the one allocation up: struct, rows, lines, queues. */
static uint16_t *lay_out_tables(struct mf_buddy_tables *tables)
{
	char *at = (char *)tables + (sizeof(*tables) + 63) / 64 * 64;
	uint64_t *words;

	tables->rows = (struct mf_line_rows *)(void *)at;
	at += tables->nr_lines * sizeof(struct mf_line_rows);
	tables->lines = (struct mf_line *)(void *)at;
	at += tables->nr_lines * sizeof(struct mf_line);
	words = (uint64_t *)(void *)at;
	for (unsigned type = 0; type < MF_NR_MIGRATE_TYPES; type++) {
		for (unsigned order = 0; order < MF_NR_ORDERS; order++) {
			uint32_t nr = order == MF_PAIR_ORDER ? tables->nr_lines / 2 : tables->nr_lines;

			mf_queue_init(&tables->queues[type][order], words, nr,
				      type == MF_MOVABLE && order == MF_PAIR_ORDER);
			words += mf_queue_words(nr);
		}
	}
	mf_queue_init(&tables->dirty, words, tables->nr_lines, false);
	words += mf_queue_words(tables->nr_lines);
	return (uint16_t *)(void *)words;
}

/* Pages [from, to), all in lines of the table, are outside the zone: used for ever. */
static void reserve_pages(struct mf_buddy *buddy, uint64_t from, uint64_t to)
{
	struct mf_buddy_tables *tables = buddy->tables;

	while (from < to) {
		uint32_t line = mf_line_of(tables, (uint32_t)from);
		uint64_t end = (from | (MF_PAGEBLOCK_PAGES - 1)) + 1;

		mf_buddy_detach_line(buddy, line);
		for (; from < end && from < to; from++)
			tables->rows[line].used[from / 64 % 8] |= 1ull << (from % 64);
		mf_buddy_attach_line(buddy, line);
	}
}

int mf_buddy_init(struct mf_buddy *buddy, struct mf_plat *plat, uint32_t start_pfn, uint64_t nr_pages)
{
	uint64_t end = start_pfn + nr_pages;
	uint64_t end_line = (end + MF_PAGEBLOCK_PAGES - 1) / MF_PAGEBLOCK_PAGES;
	uint32_t first_line = start_pfn / MF_PAGEBLOCK_PAGES, base_line = first_line & ~1u;
	uint32_t table_lines = (uint32_t)((end_line + 1) & ~1ull) - base_line;
	struct mf_buddy_tables *tables;

	memset(buddy, 0, sizeof(*buddy));
	if (!nr_pages || end > 1ull << 32)
		return -EINVAL;
	tables = plat->ops->meta_alloc(plat, tables_bytes(table_lines));
	if (!tables)
		return -ENOMEM;
	tables->bytes = tables_bytes(table_lines);
	tables->base_line = base_line;
	tables->base_row = (uint64_t)base_line * MF_LINE_ROWS;
	tables->nr_lines = table_lines;
	tables->fast = cpu_is_fast();
	buddy->kinds = lay_out_tables(tables);
	buddy->kinds_base = base_line;
	tables->waiting[MF_MOVABLE] = 1u << MF_PAIR_ORDER;

	buddy->start_pfn = start_pfn;
	buddy->nr_pages = nr_pages;
	buddy->first_line = first_line;
	buddy->nr_lines = (uint32_t)(end_line - first_line);
	buddy->plat = plat;
	buddy->tables = tables;
	buddy->nr_free_pages = (uint64_t)table_lines * MF_PAGEBLOCK_PAGES;
	buddy->nr_free[MF_MOVABLE][MF_PAIR_ORDER] = table_lines / 2;
	buddy->nr_blocks[MF_MOVABLE] = buddy->nr_lines;
	reserve_pages(buddy, (uint64_t)base_line * MF_PAGEBLOCK_PAGES, start_pfn);
	reserve_pages(buddy, end, (uint64_t)(base_line + table_lines) * MF_PAGEBLOCK_PAGES);
	return 0;
}

void mf_buddy_share_kinds(struct mf_buddy *buddy, uint16_t *table, uint8_t mark)
{
	for (uint32_t line = buddy->first_line; line < buddy->first_line + buddy->nr_lines; line++)
		table[line] =
			(uint16_t)(mark << 8 | buddy->tables->lines[line - buddy->tables->base_line].tag);
	buddy->kinds = table;
	buddy->kinds_base = 0;
}

void mf_buddy_destroy(struct mf_buddy *buddy)
{
	if (buddy->tables)
		buddy->plat->ops->meta_free(buddy->plat, buddy->tables, buddy->tables->bytes);
	memset(buddy, 0, sizeof(*buddy));
}

/* A block of @order was cut out of one of order @from; the upper halves are free blocks now. */
static void count_split(struct mf_buddy *buddy, enum mf_migrate_type type, unsigned order, unsigned from)
{
	uint64_t *nr_free = buddy->nr_free[type];

	mf_counter_add(&nr_free[from], -1);
	for (unsigned n = order; n < from; n++)
		mf_counter_add(&nr_free[n], 1);
}

/* A block of @order was given and swallowed its buddies up to order @to. */
static void count_merge(struct mf_buddy *buddy, enum mf_migrate_type type, unsigned order, unsigned to)
{
	uint64_t *nr_free = buddy->nr_free[type];

	for (unsigned n = order; n < to; n++)
		mf_counter_add(&nr_free[n], -1);
	mf_counter_add(&nr_free[to], 1);
}

/* Marks the first block of @order in the free row @row (order 6 and more: rows) used. */
static void use_rows_block(struct mf_line *line, struct mf_line_rows *rows, unsigned row, unsigned order)
{
	unsigned nr_rows;

	if (order < MF_ROW_ORDER) {
		rows->used[row] = mf_block_mask(order);
		line->orders |= (uint64_t)(2 * MF_ROW_PART - (1u << order)) << (8 * row);
		return;
	}
	nr_rows = 1u << (order - MF_ROW_ORDER);
	memset(&rows->used[row], 0xff, nr_rows * sizeof(uint64_t));
	line->orders |= (MF_ROWS_PART & ((1ull << (8 * nr_rows)) - 1)) << (8 * row);
}

/* The line is wholly free, in the queue of order @from (9 or 10; then it is the even one). */
static uint32_t take_from_free_line(struct mf_buddy *buddy, enum mf_migrate_type type, uint32_t number,
				    unsigned order, unsigned from)
{
	struct mf_buddy_tables *tables = buddy->tables;
	struct mf_line *line = &tables->lines[number];

	mf_dequeue(tables, type, from, number);
	mf_line_mark_dirty(tables, number);
	if (order == MF_PAIR_ORDER) {
		mf_line_mark_dirty(tables, number ^ 1);
		mf_line_set_full(tables, number ^ 1);
	} else if (from == MF_PAIR_ORDER) {
		tables->lines[number ^ 1].loss = MF_LOSS_FREE;
		mf_enqueue(tables, type, MF_PAGEBLOCK_ORDER, number ^ 1);
	}
	if (order >= MF_PAGEBLOCK_ORDER) {
		mf_line_set_full(tables, number);
	} else {
		use_rows_block(line, &tables->rows[number], 0, order);
		line->loss = MF_LOSS_FREE + 1;
		mf_enqueue(tables, type, MF_PAGEBLOCK_ORDER - 1, number);
	}
	count_split(buddy, type, order, from);
	return mf_line_pfn(tables, number);
}

/* A block of order @m is taken from its row: first @order, rest remains. */
static void use_row_block(struct mf_line *line, uint64_t *used, unsigned row, uint64_t blocks, unsigned m,
			  unsigned order)
{
	bool last = !(blocks & (blocks - 1));
	uint64_t now = line->orders >> (8 * row) & 0xff;

	*used |= mf_block_mask(order) << __builtin_ctzll(blocks);
	now |= (1u << m) - (1u << order);
	if (last) {
		now &= ~(1ull << m);
		/* If this was the row's largest order and nothing was split, lower bits may be stale. */
		if (order == m && now != MF_ROW_PART && !((now & ~MF_ROW_PART) >> m))
			now = mf_row_orders(~*used);
	}
	line->orders = (line->orders & ~(0xffull << (8 * row))) | now << (8 * row);
}

/*
 * The smallest block of partly free rows that serves @order (at most 5), the
 * lowest of them.  Returns its order and *page in the line, or 6.
 */
static unsigned take_in_rows(struct mf_line *line, struct mf_line_rows *rows, unsigned order, unsigned *page)
{
	unsigned fit;

	while ((fit = mf_line_small_orders(line->orders) >> order)) {
		unsigned m = order, row;
		uint64_t blocks;

		for (; !(fit & 1); fit >>= 1)
			m++;
		row = (unsigned)__builtin_ctzll(line->orders >> m & MF_ROWS_ONE) / 8;
		blocks = mf_row_blocks(~rows->used[row], m);
		if (blocks) {
			*page = row * MF_ROW_PAGES + (unsigned)__builtin_ctzll(blocks);
			use_row_block(line, &rows->used[row], row, blocks, m, order);
			return m;
		}
		line->orders &= ~(1ull << (8 * row + m)); /* stale; each was set by one give */
	}
	return MF_ROW_ORDER;
}

/* The line has a block of order @largest (at most 8), which is its queue, and serves @order. */
static uint32_t take_from_part_line(struct mf_buddy *buddy, enum mf_migrate_type type, uint32_t number,
				    unsigned order, unsigned largest)
{
	struct mf_buddy_tables *tables = buddy->tables;
	struct mf_line *line = &tables->lines[number];
	unsigned from = MF_ROW_ORDER, page = 0, row = 0;

	mf_line_mark_dirty(tables, number); /* a line at the zone's end was never wholly free */
	if (order < MF_ROW_ORDER)
		from = take_in_rows(line, &tables->rows[number], order, &page);
	if (from == MF_ROW_ORDER) {
		from = mf_rows_smallest(mf_free_rows(line->orders),
					order < MF_ROW_ORDER ? MF_ROW_ORDER : order, &row);
		page = row * MF_ROW_PAGES;
		use_rows_block(line, &tables->rows[number], row, order);
	}
	count_split(buddy, type, order, from);
	if (from == largest)
		mf_line_requeue(tables, number, type, mf_line_loss(line->orders));
	return mf_line_pfn(tables, number) + page;
}

bool mf_buddy_take(struct mf_buddy *buddy, enum mf_migrate_type type, unsigned order, uint32_t *pfn)
{
	struct mf_buddy_tables *tables = buddy->tables;
	unsigned fit = order <= MEMFS_MAX_PAGE_ORDER ? tables->waiting[type] >> order : 0;
	unsigned largest = order;
	uint32_t line;

	if (!fit)
		return false;
	for (; !(fit & 1); fit >>= 1) /* predicted, not waited for */
		largest++;
	line = mf_queued_line(tables, type, largest);
	if (largest >= MF_PAGEBLOCK_ORDER)
		*pfn = take_from_free_line(buddy, type, line, order, largest);
	else
		*pfn = take_from_part_line(buddy, type, line, order, largest);
	mf_counter_add(&buddy->nr_free_pages, -(int64_t)(1u << order));
	return true;
}

static void set_kind(struct mf_buddy *buddy, const struct mf_line *line)
{
	uint32_t absolute = (uint32_t)(line - buddy->tables->lines) + buddy->tables->base_line;
	uint16_t *kind = &buddy->kinds[absolute - buddy->kinds_base];

	__atomic_store_n(kind, (uint16_t)((*kind & 0xff00) | line->tag), __ATOMIC_RELAXED);
}

static void retag_line(struct mf_buddy *buddy, struct mf_line *line, enum mf_migrate_type type)
{
	mf_counter_add(&buddy->nr_blocks[mf_line_type(line)], -1);
	mf_counter_add(&buddy->nr_blocks[type], 1);
	line->tag = (uint8_t)(type ^ MF_MOVABLE);
	set_kind(buddy, line);
}

/* Wholly free lines of these types make a pair. */
static bool types_pair(enum mf_migrate_type a, enum mf_migrate_type b)
{
	return (a == MF_HIGHATOMIC) == (b == MF_HIGHATOMIC);
}

/*
 * The line is wholly free, in no queue and not counted: it joins its partner
 * or is queued alone.  Returns the order of the block that it is now part of, which the
 * caller counts; the partner's is counted under the line's type when this returns.
 */
static unsigned join_pair(struct mf_buddy *buddy, uint32_t number)
{
	struct mf_buddy_tables *tables = buddy->tables;
	struct mf_line *line = &tables->lines[number], *partner = &tables->lines[number ^ 1];
	enum mf_migrate_type type = mf_line_type(line), partner_type = mf_line_type(partner);

	if (partner->loss != MF_LOSS_FREE || !types_pair(type, partner_type)) {
		line->loss = MF_LOSS_FREE;
		mf_enqueue(tables, type, MF_PAGEBLOCK_ORDER, number);
		return MF_PAGEBLOCK_ORDER;
	}
	mf_dequeue(tables, partner_type, MF_PAGEBLOCK_ORDER, number ^ 1);
	if (type != partner_type) {
		mf_counter_add(&buddy->nr_free[partner_type][MF_PAGEBLOCK_ORDER], -1);
		mf_counter_add(&buddy->nr_free[type][MF_PAGEBLOCK_ORDER], 1);
		retag_line(buddy, partner, type);
	}
	line->loss = MF_LOSS_PAIR;
	partner->loss = MF_LOSS_PAIR;
	mf_enqueue(tables, type, MF_PAIR_ORDER, number);
	return MF_PAIR_ORDER;
}

/* All rows of the line are free; @order was given to complete it. */
static void complete_line(struct mf_buddy *buddy, uint32_t number, unsigned order)
{
	struct mf_buddy_tables *tables = buddy->tables;
	struct mf_line *line = &tables->lines[number];
	enum mf_migrate_type type = mf_line_type(line);

	if (line->loss != MF_LOSS_FULL)
		mf_dequeue(tables, type, 10u - line->loss, number);
	line->stamp = tables->stamp;
	count_merge(buddy, type, order, join_pair(buddy, number));
}

void mf_buddy_rows_given(struct mf_buddy *buddy, uint32_t number, unsigned row, unsigned order)
{
	struct mf_line *line = &buddy->tables->lines[number];
	unsigned to;

	if (!line->orders) {
		complete_line(buddy, number, order);
		return;
	}
	to = mf_rows_merge_order(mf_free_rows(line->orders), row);
	count_merge(buddy, mf_line_type(line), order, to);
	if (10 - to < line->loss)
		mf_line_requeue(buddy->tables, number, mf_line_type(line), 10 - to);
}

/* A block inside one row. */
static void give_in_row(struct mf_buddy *buddy, uint32_t number, unsigned page, unsigned order)
{
	struct mf_buddy_tables *tables = buddy->tables;
	struct mf_line *line = &tables->lines[number];
	unsigned row = page / MF_ROW_PAGES, bit = page % MF_ROW_PAGES, to;
	uint64_t *used = &tables->rows[number].used[row];

	debug_assert((*used >> bit & mf_block_mask(order)) == mf_block_mask(order));
	*used &= ~(mf_block_mask(order) << bit);
	if (!*used) {
		line->orders &= ~(0xffull << (8 * row));
		mf_buddy_rows_given(buddy, number, row, order);
		return;
	}
	/* A walk by branches: faster than mf_merge_order() when one caller takes and gives again. */
	for (to = order;
	     to < MF_ROW_ORDER - 1 && !(*used >> (bit & ~((2u << to) - 1)) & mf_block_mask(to + 1)); to++)
		;
	line->orders |= 1ull << (8 * row + to);
	count_merge(buddy, mf_line_type(line), order, to);
	if (10 - to < line->loss)
		mf_line_requeue(tables, number, mf_line_type(line), 10 - to);
}

/* Whole rows of one line. */
static void give_rows(struct mf_buddy *buddy, uint32_t number, unsigned row, unsigned order)
{
	struct mf_buddy_tables *tables = buddy->tables;
	struct mf_line *line = &tables->lines[number];
	unsigned nr_rows = 1u << (order - MF_ROW_ORDER);

	for (unsigned i = row; i < row + nr_rows; i++)
		debug_assert(tables->rows[number].used[i] == ~0ull);
	if (order == MF_PAGEBLOCK_ORDER) {
		memset(&tables->rows[number], 0, sizeof(tables->rows[number]));
		line->orders = 0;
		complete_line(buddy, number, order);
		return;
	}
	memset(&tables->rows[number].used[row], 0, nr_rows * sizeof(uint64_t));
	line->orders &= ~(((1ull << (8 * nr_rows)) - 1) << (8 * row));
	mf_buddy_rows_given(buddy, number, row, order);
}

void mf_buddy_give(struct mf_buddy *buddy, uint32_t pfn, unsigned order)
{
	uint32_t line = mf_line_of(buddy->tables, pfn);
	unsigned page = pfn % MF_PAGEBLOCK_PAGES;

	mf_counter_add(&buddy->nr_free_pages, 1u << order);
	if (order < MF_ROW_ORDER) {
		give_in_row(buddy, line, page, order);
	} else if (order < MF_PAIR_ORDER) {
		give_rows(buddy, line, page / MF_ROW_PAGES, order);
	} else {
		/* The block's type is that of its first line, which joins last. */
		give_rows(buddy, line + 1, 0, MF_PAGEBLOCK_ORDER);
		give_rows(buddy, line, 0, MF_PAGEBLOCK_ORDER);
	}
}

/* Adds sign * the line's blocks to the counters. */
static void count_line(struct mf_buddy *buddy, uint32_t number, int32_t sign)
{
	struct mf_buddy_tables *tables = buddy->tables;
	struct mf_line *line = &tables->lines[number];
	int32_t counts[MF_NR_ORDERS] = { 0 };
	int64_t pages = 0;

	mf_line_count(&tables->rows[number], line->orders, sign, counts);
	for (unsigned order = 0; order < MF_NR_ORDERS; order++) {
		mf_counter_add(&buddy->nr_free[mf_line_type(line)][order], counts[order]);
		pages += (int64_t)counts[order] * (1 << order);
	}
	mf_counter_add(&buddy->nr_free_pages, pages);
}

void mf_buddy_detach_line(struct mf_buddy *buddy, uint32_t number)
{
	struct mf_buddy_tables *tables = buddy->tables;
	struct mf_line *line = &tables->lines[number];
	enum mf_migrate_type type = mf_line_type(line);

	if (line->loss == MF_LOSS_FULL)
		return;
	if (line->loss == MF_LOSS_PAIR) {
		mf_pair_split(tables, number, type);
		mf_counter_add(&buddy->nr_free[type][MF_PAIR_ORDER], -1);
		mf_counter_add(&buddy->nr_free[type][MF_PAGEBLOCK_ORDER], 2);
	}
	count_line(buddy, number, -1);
	mf_line_requeue(tables, number, type, MF_LOSS_FULL);
}

void mf_buddy_attach_line(struct mf_buddy *buddy, uint32_t number)
{
	struct mf_buddy_tables *tables = buddy->tables;
	struct mf_line *line = &tables->lines[number];
	unsigned loss;

	line->orders = 0;
	for (unsigned row = 0; row < MF_LINE_ROWS; row++)
		line->orders |= mf_row_orders(~tables->rows[number].used[row]) << (8 * row);
	count_line(buddy, number, 1);
	loss = mf_line_loss(line->orders);
	if (loss == MF_LOSS_FREE) {
		if (join_pair(buddy, number) == MF_PAIR_ORDER) {
			mf_counter_add(&buddy->nr_free[mf_line_type(line)][MF_PAGEBLOCK_ORDER], -2);
			mf_counter_add(&buddy->nr_free[mf_line_type(line)][MF_PAIR_ORDER], 1);
		}
	} else {
		mf_line_requeue(tables, number, mf_line_type(line), loss);
	}
}

void mf_buddy_set_type(struct mf_buddy *buddy, uint32_t pfn, enum mf_migrate_type type)
{
	uint32_t number = mf_line_of(buddy->tables, pfn);
	struct mf_line *line = &buddy->tables->lines[number];

	if (mf_line_type(line) == type)
		return;
	if (line->loss == MF_LOSS_FULL) {
		retag_line(buddy, line, type);
		return;
	}
	mf_buddy_detach_line(buddy, number);
	retag_line(buddy, line, type);
	mf_buddy_attach_line(buddy, number);
}

bool mf_buddy_find_free_line(const struct mf_buddy *buddy, enum mf_migrate_type type, uint32_t *pfn)
{
	struct mf_buddy_tables *tables = buddy->tables;
	uint32_t lowest = MF_QUEUE_NONE;

	for (unsigned order = MF_PAGEBLOCK_ORDER; order <= MF_PAIR_ORDER; order++)
		if (tables->waiting[type] >> order & 1 && mf_queued_line(tables, type, order) < lowest)
			lowest = mf_queued_line(tables, type, order);
	if (lowest == MF_QUEUE_NONE)
		return false;
	*pfn = mf_line_pfn(tables, lowest);
	return true;
}

bool mf_buddy_find_line(const struct mf_buddy *buddy, enum mf_migrate_type type, uint32_t *pfn)
{
	struct mf_buddy_tables *tables = buddy->tables;
	uint32_t lowest = MF_QUEUE_NONE;

	for (unsigned order = 0; order < MF_NR_ORDERS; order++)
		if (tables->waiting[type] >> order & 1 && mf_queued_line(tables, type, order) < lowest)
			lowest = mf_queued_line(tables, type, order);
	if (lowest == MF_QUEUE_NONE)
		return false;
	*pfn = mf_line_pfn(tables, lowest);
	return true;
}

bool mf_buddy_has(const struct mf_buddy *buddy, enum mf_migrate_type type, unsigned order)
{
	return order <= MEMFS_MAX_PAGE_ORDER && buddy->tables->waiting[type] >> order;
}

bool mf_buddy_page_is_free(const struct mf_buddy *buddy, uint32_t pfn)
{
	const struct mf_buddy_tables *tables = buddy->tables;

	if (pfn < buddy->start_pfn || pfn - buddy->start_pfn >= buddy->nr_pages)
		return false;
	return !(tables->rows[mf_line_of(tables, pfn)].used[pfn / MF_ROW_PAGES % MF_LINE_ROWS] >>
			 (pfn % MF_ROW_PAGES) &
		 1);
}
