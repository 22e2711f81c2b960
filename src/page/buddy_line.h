/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arithmetic on one line: 8 rows of 64 page bits and what is remembered of them.
 * Pure functions; the words of a row given here are free bits unless named used.
 *
 * A row's level n is the set of aligned free runs of 2^n pages, a bit at the
 * first page of each; blocks of order n are the members of level n that are
 * not half of a member of level n + 1.
 *
 * mf_line.orders holds a byte a row: bit n says that the row may have a block of order
 * n, and the highest bit set is exact (lower ones may be stale after gives: a
 * merge leaves the bits of the blocks it swallowed, the next take clears
 * them).  Bytes are kept XORed with the byte of a free row, so zero = free row.
 */
#ifndef MF_PAGE_BUDDY_LINE_H
#define MF_PAGE_BUDDY_LINE_H

#include "page/buddy.h"

#define MF_ROW_ORDER 6
#define MF_ROW_PAGES 64u
#define MF_LINE_ROWS 8u

#define MF_ROWS_ONE 0x0101010101010101ull /* a one in every byte */
#define MF_ROW_PART 0x40u		  /* this bit in a row's byte: not wholly free */
#define MF_ROWS_PART (MF_ROW_PART * MF_ROWS_ONE)
#define MF_ROWS_FULL MF_ROWS_PART /* orders of a line without a free page */
#define MF_ROWS_BLOCKS (0x3full * MF_ROWS_ONE)

/* loss = 10 - largest free order; zeroed memory is half of a free pair. */
#define MF_LOSS_PAIR 0u
#define MF_LOSS_FREE 1u /* wholly free, not paired */
#define MF_LOSS_FULL 11u

#define MF_LINE_DIRTY 1u
#define MF_LINE_ISOLATED 2u

struct mf_line {
	uint64_t orders; /* a byte a row, see above; only whole words are read and written */
	uint8_t loss;
	uint8_t tag;   /* type ^ MF_MOVABLE */
	uint8_t flags; /* MF_LINE_ */
	uint8_t unused;
	uint16_t stamp; /* when the line became wholly free */
	uint16_t unused2;
};

struct mf_line_rows {
	uint64_t used[MF_LINE_ROWS];
} __attribute__((aligned(64)));

#define MF_LINE_INLINE static inline __attribute__((always_inline))

static const uint64_t mf_level_mask[MF_ROW_ORDER + 1] = {
	~0ull,
	0x5555555555555555ull,
	0x1111111111111111ull,
	0x0101010101010101ull,
	0x0001000100010001ull,
	0x0000000100000001ull,
	1ull,
};

/* Level n + 1 from level n. */
MF_LINE_INLINE uint64_t mf_row_level_up(uint64_t level, unsigned n)
{
	return level & level >> (1u << n) & mf_level_mask[n + 1];
}

MF_LINE_INLINE void mf_row_levels(uint64_t free, uint64_t level[MF_ROW_ORDER + 1])
{
	level[0] = free;
	level[1] = mf_row_level_up(level[0], 0);
	level[2] = mf_row_level_up(level[1], 1);
	level[3] = mf_row_level_up(level[2], 2);
	level[4] = mf_row_level_up(level[3], 3);
	level[5] = mf_row_level_up(level[4], 4);
	level[6] = mf_row_level_up(level[5], 5);
}

/* The blocks of order n, given levels n and n + 1: a bit at the first page of each. */
MF_LINE_INLINE uint64_t mf_level_blocks(uint64_t level, uint64_t above, unsigned n)
{
	return level & ~(above | above << (1u << n));
}

/* One step of mf_row_blocks: leaves with the blocks of order n, or goes on with level n + 1. */
#define MF_BLOCKS_STEP(n) \
	do { \
		above = mf_row_level_up(level, n); \
		if (order == (n)) \
			return mf_level_blocks(level, above, n); \
		level = above; \
	} while (0)

/* The blocks of an order (at most 5) of a row.  Written out: the constants make it fast. */
MF_LINE_INLINE uint64_t mf_row_blocks(uint64_t free, unsigned order)
{
	uint64_t level = free, above;

	MF_BLOCKS_STEP(0);
	MF_BLOCKS_STEP(1);
	MF_BLOCKS_STEP(2);
	MF_BLOCKS_STEP(3);
	MF_BLOCKS_STEP(4);
	return mf_level_blocks(level, mf_row_level_up(level, 5), 5);
}

MF_LINE_INLINE int32_t mf_count_bits(uint64_t bits)
{
	return __builtin_popcountll(bits);
}

/* Adds sign * the number of blocks of orders 0..5 of a row that is not wholly free. */
MF_LINE_INLINE void mf_row_count(uint64_t free, int32_t sign, int32_t *counts)
{
	uint64_t level[MF_ROW_ORDER + 1];

	mf_row_levels(free, level);
	counts[0] += sign * (mf_count_bits(level[0]) - 2 * mf_count_bits(level[1]));
	counts[1] += sign * (mf_count_bits(level[1]) - 2 * mf_count_bits(level[2]));
	counts[2] += sign * (mf_count_bits(level[2]) - 2 * mf_count_bits(level[3]));
	counts[3] += sign * (mf_count_bits(level[3]) - 2 * mf_count_bits(level[4]));
	counts[4] += sign * (mf_count_bits(level[4]) - 2 * mf_count_bits(level[5]));
	counts[5] += sign * mf_count_bits(level[5]);
}

/* A row's byte of mf_line.orders, exact. */
MF_LINE_INLINE uint64_t mf_row_orders(uint64_t free)
{
	uint64_t level[MF_ROW_ORDER + 1], orders;

	mf_row_levels(free, level);
	orders = (uint64_t)(mf_level_blocks(level[0], level[1], 0) != 0);
	orders |= (uint64_t)(mf_level_blocks(level[1], level[2], 1) != 0) << 1;
	orders |= (uint64_t)(mf_level_blocks(level[2], level[3], 2) != 0) << 2;
	orders |= (uint64_t)(mf_level_blocks(level[3], level[4], 3) != 0) << 3;
	orders |= (uint64_t)(mf_level_blocks(level[4], level[5], 4) != 0) << 4;
	orders |= (uint64_t)(level[5] != 0) << 5;
	return level[6] ? 0 : orders | MF_ROW_PART;
}

/* 2^order ones, order at most 5. */
MF_LINE_INLINE uint64_t mf_block_mask(unsigned order)
{
	return (1ull << (1u << order)) - 1;
}

/* 64 of an empty word, as the fast instructions have it. */
MF_LINE_INLINE uint32_t mf_zeros_below(uint64_t bits)
{
	return bits ? (uint32_t)__builtin_ctzll(bits) : 64;
}

MF_LINE_INLINE uint32_t mf_zeros_above(uint64_t bits)
{
	return bits ? (uint32_t)__builtin_clzll(bits) : 64;
}

/*
 * The order of the largest aligned free run around position @at, which is
 * free; or 6 if nothing is used.  Among the used positions the one next
 * above or next below differs from @at in the lowest power of two, and that
 * power is the order.
 */
MF_LINE_INLINE unsigned mf_merge_order(uint64_t used, unsigned at)
{
	/* None above makes 64, none below a huge number. */
	uint32_t up = (at + mf_zeros_below(used >> at)) ^ at;
	uint32_t down = (at - mf_zeros_above(used << (63 - at))) ^ at;

	return 31 - (unsigned)__builtin_clz(up < down ? up : down);
}

/* The wholly free rows of a line, a bit a row. */
MF_LINE_INLINE unsigned mf_free_rows(uint64_t orders)
{
	uint64_t bits = (~orders >> 6) & MF_ROWS_ONE;

	return (unsigned)(bits * 0x0102040810204080ull >> 56);
}

/* Rows are runs of a larger unit as pages are of a row: the order of the block around row @row. */
MF_LINE_INLINE unsigned mf_rows_merge_order(unsigned free_rows, unsigned row)
{
	return MF_ROW_ORDER + mf_merge_order(~(uint64_t)free_rows, row);
}

/*
 * The smallest block of at least @order (6..9) among wholly free rows; its order (6..9),
 * or 10 if there is none.  *row: its first row.
 */
MF_LINE_INLINE unsigned mf_rows_smallest(unsigned free_rows, unsigned order, unsigned *row)
{
	for (; order <= MF_PAGEBLOCK_ORDER; order++) {
		uint64_t blocks = mf_row_blocks(free_rows, order - MF_ROW_ORDER);

		if (blocks) {
			*row = (unsigned)__builtin_ctzll(blocks);
			return order;
		}
	}
	return order;
}

/* Adds sign * the number of blocks of orders 6..9 that the free rows make. */
MF_LINE_INLINE void mf_rows_count(unsigned free_rows, int32_t sign, int32_t *counts)
{
	for (unsigned n = 0; n <= MF_PAGEBLOCK_ORDER - MF_ROW_ORDER; n++)
		counts[MF_ROW_ORDER + n] += sign * __builtin_popcountll(mf_row_blocks(free_rows, n));
}

/* All orders 0..9 of a line. */
MF_LINE_INLINE void mf_line_count(const struct mf_line_rows *rows, uint64_t orders, int32_t sign,
				  int32_t *counts)
{
	for (unsigned row = 0; row < MF_LINE_ROWS; row++)
		if (orders >> (8 * row) & MF_ROW_PART && ~rows->used[row])
			mf_row_count(~rows->used[row], sign, counts);
	mf_rows_count(mf_free_rows(orders), sign, counts);
}

/* Which orders 0..5 the partly free rows may have, a bit an order. */
MF_LINE_INLINE unsigned mf_line_small_orders(uint64_t orders)
{
	uint64_t fold = orders & MF_ROWS_BLOCKS;

	fold |= fold >> 32;
	fold |= fold >> 16;
	fold |= fold >> 8;
	return (unsigned)fold & 0x3f;
}

/* 10 - the largest order 0..9; MF_LOSS_FULL without a free page. */
MF_LINE_INLINE unsigned mf_line_loss(uint64_t orders)
{
	unsigned rows = mf_free_rows(orders), small;

	if (rows) {
		unsigned pairs = rows & rows >> 1 & 0x55;
		unsigned quads = pairs & pairs >> 2 & 0x11;

		if (rows == 0xff)
			return MF_LOSS_FREE;
		return quads ? 2 : pairs ? 3 : 4;
	}
	small = mf_line_small_orders(orders);
	return small ? 10 - (31 - (unsigned)__builtin_clz(small)) : MF_LOSS_FULL;
}

#endif
