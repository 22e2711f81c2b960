/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the buddy_*.c files share: the tables of a zone and the moves on them.
 *
 * Lines are numbered from an even line (base_line) to an even line, so that
 * line ^ 1 is always the other half of the pair; pages outside the zone are
 * used for ever.  A free pair is in the queue of order 10 once, as line / 2;
 * every other line with a free page is in the queue of its type and largest order.
 *
 * Threads: the zone's lock.  Counters that others read without it are stored
 * as whole words, and never pass through a wrong (wrapped) value.
 */
#ifndef MF_PAGE_BUDDY_TABLES_H
#define MF_PAGE_BUDDY_TABLES_H

#include "page/buddy_line.h"
#include "page/buddy_queue.h"

#define MF_PAIR_ORDER MEMFS_MAX_PAGE_ORDER

struct mf_buddy_tables {
	struct mf_line *lines;
	struct mf_line_rows *rows;
	uint32_t base_line; /* even; line numbers below are relative to it */
	uint32_t nr_lines;  /* even; includes lines outside the zone */
	uint64_t base_row;  /* base_line * 8 */
	bool fast;	    /* the CPU has bmi, bmi2, lzcnt and popcnt */
	uint16_t stamp;
	uint16_t waiting[MF_NR_MIGRATE_TYPES]; /* bit n: the queue of order n has lines */
	uint64_t nr_dirty;
	size_t bytes; /* of the whole allocation, this struct first */
	struct mf_queue dirty;
	struct mf_queue queues[MF_NR_MIGRATE_TYPES][MF_NR_ORDERS];
};

static inline void mf_counter_add(uint64_t *counter, int64_t delta)
{
	__atomic_store_n(counter, *counter + (uint64_t)delta, __ATOMIC_RELAXED);
}

static inline enum mf_migrate_type mf_line_type(const struct mf_line *line)
{
	return (enum mf_migrate_type)(line->tag ^ MF_MOVABLE);
}

static inline uint32_t mf_line_of(const struct mf_buddy_tables *tables, uint32_t pfn)
{
	return (pfn >> MF_PAGEBLOCK_ORDER) - tables->base_line;
}

static inline uint32_t mf_line_pfn(const struct mf_buddy_tables *tables, uint32_t line)
{
	return (tables->base_line + line) << MF_PAGEBLOCK_ORDER;
}

/* A row by its number in the zone's table: line * 8 + row of the line. */
static inline uint64_t *mf_row_word(const struct mf_buddy_tables *tables, uint64_t row)
{
	return (uint64_t *)(void *)tables->rows + row;
}

static inline uint32_t mf_queue_member(unsigned order, uint32_t line)
{
	return order == MF_PAIR_ORDER ? line >> 1 : line;
}

static inline void mf_enqueue(struct mf_buddy_tables *tables, enum mf_migrate_type type, unsigned order,
			      uint32_t line)
{
	if (mf_queue_insert(&tables->queues[type][order], mf_queue_member(order, line)))
		tables->waiting[type] |= (uint16_t)(1u << order);
}

static inline void mf_dequeue(struct mf_buddy_tables *tables, enum mf_migrate_type type, unsigned order,
			      uint32_t line)
{
	if (mf_queue_remove(&tables->queues[type][order], mf_queue_member(order, line)))
		tables->waiting[type] &= (uint16_t) ~(1u << order);
}

/* The lowest line of a queue that has one. */
static inline uint32_t mf_queued_line(struct mf_buddy_tables *tables, enum mf_migrate_type type,
				      unsigned order)
{
	uint32_t first = mf_queue_first(&tables->queues[type][order]);

	return order == MF_PAIR_ORDER ? first << 1 : first;
}

static inline void mf_line_mark_dirty(struct mf_buddy_tables *tables, uint32_t line)
{
	if (__builtin_expect(tables->lines[line].flags & MF_LINE_DIRTY, 1))
		return;
	tables->lines[line].flags |= MF_LINE_DIRTY;
	mf_queue_insert(&tables->dirty, line);
	mf_counter_add(&tables->nr_dirty, 1);
}

static inline void mf_line_set_full(struct mf_buddy_tables *tables, uint32_t line)
{
	__builtin_memset(&tables->rows[line], 0xff, sizeof(tables->rows[line]));
	tables->lines[line].orders = MF_ROWS_FULL;
	tables->lines[line].loss = MF_LOSS_FULL;
}

/* Moves a line that is not half of a pair to the queue of its new loss (never PAIR). */
static inline void mf_line_requeue(struct mf_buddy_tables *tables, uint32_t line, enum mf_migrate_type type,
				   unsigned loss)
{
	unsigned old = tables->lines[line].loss;

	if (old == loss)
		return;
	if (old != MF_LOSS_FULL)
		mf_dequeue(tables, type, 10 - old, line);
	if (loss != MF_LOSS_FULL)
		mf_enqueue(tables, type, 10 - loss, line);
	tables->lines[line].loss = (uint8_t)loss;
}

/* Breaks the pair of @line: both are lone free lines.  Counters are the caller's. */
static inline void mf_pair_split(struct mf_buddy_tables *tables, uint32_t line, enum mf_migrate_type type)
{
	mf_dequeue(tables, type, MF_PAIR_ORDER, line);
	tables->lines[line].loss = MF_LOSS_FREE;
	tables->lines[line ^ 1].loss = MF_LOSS_FREE;
	mf_enqueue(tables, type, MF_PAGEBLOCK_ORDER, line);
	mf_enqueue(tables, type, MF_PAGEBLOCK_ORDER, line ^ 1);
}

/*
 * A row of @line has become free by giving a block of @order around it, whose
 * bits are cleared already: everything from there on, counters of blocks included.
 */
void mf_buddy_rows_given(struct mf_buddy *buddy, uint32_t line, unsigned row, unsigned order);

/* The line leaves (enters) the counters and its queue, with all its free blocks.  In between
 * its rows and type may be changed; attach computes the rest and joins a pair. */
void mf_buddy_detach_line(struct mf_buddy *buddy, uint32_t line);
void mf_buddy_attach_line(struct mf_buddy *buddy, uint32_t line);

#endif
