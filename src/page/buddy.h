/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The free pages of one zone, by order and migrate type.
 *
 * A zone is lines of 512 pages (2 MiB, one pageblock).  A line is 512 bits
 * (a set bit = page not free, so that zeroed memory is an untouched free zone)
 * and one migrate type.  Free blocks are implicit: the maximal aligned runs of
 * free pages up to order 9 inside a line, and a pair of free lines at an even
 * line number is a block of order 10, unless exactly one of the two is
 * HIGHATOMIC.  Merging therefore needs no work and no list can be corrupted.
 * Each line knows its largest free order exactly; lines are queued by (type,
 * largest order) in 64-ary bitmaps, so the fullest line that can serve an
 * order, at the lowest address, is found in constant time.
 *
 * Invariants (mf_buddy_check proves them by counting):
 *   nr_free_pages = sum over types, orders of nr_free[type][order] << order
 *                 = free bits of all lines
 *   every line is in exactly the queue of its type and largest order,
 *   a full line in none;
 *   nr_blocks summed over types = nr_lines
 *
 * Metadata is touched only for lines that are used.
 *
 * Threads: callers hold the zone's lock for everything but init, destroy and
 * reading nr_free_pages (relaxed atomic) and the nr_free table (relaxed, a
 * value at a time).
 */
#ifndef MF_PAGE_BUDDY_H
#define MF_PAGE_BUDDY_H

#include "base/outbuf.h"
#include "memfs.h"
#include "plat/plat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mf_migrate_type {
	MF_UNMOVABLE,
	MF_MOVABLE,
	MF_RECLAIMABLE,
	MF_PCP_TYPES, /* the types that per-CPU lists keep */
	MF_HIGHATOMIC = MF_PCP_TYPES,
	MF_NR_MIGRATE_TYPES,
};

#define MF_NR_ORDERS (MEMFS_MAX_PAGE_ORDER + 1)
#define MF_PAGEBLOCK_ORDER 9
#define MF_PAGEBLOCK_PAGES 512u

struct mf_buddy {
	uint64_t nr_free_pages; /* written with relaxed atomic stores under the zone lock */
	uint64_t nr_free[MF_NR_MIGRATE_TYPES][MF_NR_ORDERS]; /* blocks; as above */
	uint64_t nr_blocks[MF_NR_MIGRATE_TYPES];	     /* pageblocks of each type */
	uint32_t start_pfn;
	uint64_t nr_pages;
	uint32_t first_line; /* start_pfn / 512: a boundary inside a line is allowed */
	uint32_t nr_lines;
	struct mf_plat *plat;
	/*
	 * By line from kinds_base on: this zone's mark << 8 | type ^ MF_MOVABLE, a
	 * dense copy for those who hold no lock.  Own memory, or see mf_buddy_share_kinds.
	 */
	uint16_t *kinds;
	uint32_t kinds_base;
	struct mf_buddy_tables *tables; /* lines, queues, trim state: buddy.c's own */
};

/* All pages free, every line MOVABLE.  -ENOMEM; -EINVAL: no pages, or beyond 2^32 of them. */
int mf_buddy_init(struct mf_buddy *buddy, struct mf_plat *plat, uint32_t start_pfn, uint64_t nr_pages);
void mf_buddy_destroy(struct mf_buddy *buddy);

/* Moves the kinds to table[] (by absolute line), marked with @mark.  Before anyone uses the zone. */
void mf_buddy_share_kinds(struct mf_buddy *buddy, uint16_t *table, uint8_t mark);

/*
 * Takes a block of @order from lines of @type only: the lowest line among
 * those whose largest order is the smallest that serves, and in it the
 * smallest block that serves, at the lowest address.
 */
bool mf_buddy_take(struct mf_buddy *buddy, enum mf_migrate_type type, unsigned order, uint32_t *pfn);

/*
 * Takes up to n single pages of @type, whole 64-bit rows at a time, the same
 * lines in the same order as n takes of order 0 would choose first; returns
 * how many were written to pfns[].
 */
size_t mf_buddy_take_bulk(struct mf_buddy *buddy, enum mf_migrate_type type, size_t n, uint32_t *pfns);

/*
 * Up to 511 contiguous pages, at any position, of a line of @type that is in
 * use already; a few lines of each queue are looked at, the fullest first.
 * False: none of them has room, though a block of the next order may be free.
 */
bool mf_buddy_take_run(struct mf_buddy *buddy, enum mf_migrate_type type, unsigned pages, uint32_t *pfn);

/* Gives a block back; it merges by itself.  Joining an order-10 pair of two
 * types makes both lines the type of the block that was given (kernel: buddy matches). */
void mf_buddy_give(struct mf_buddy *buddy, uint32_t pfn, unsigned order);

/* Single pages in any order; pages of one row that stand together are given together. */
void mf_buddy_give_bulk(struct mf_buddy *buddy, size_t n, const uint32_t *pfns);

/*
 * Fallback (behaviour 2.2): a block for @type from lines of other types:
 * first claiming (largest block first, the pageblock may change type), then
 * stealing the smallest block.  @nofragment: only whole pageblocks.  HIGHATOMIC
 * lines are never touched here.
 */
struct mf_fallback_result {
	bool claimed; /* at least one pageblock changed its type */
	bool boost;   /* a claim below pageblock order: the caller boosts the watermark */
};
bool mf_buddy_take_fallback(struct mf_buddy *buddy, enum mf_migrate_type type, unsigned order,
			    bool nofragment, uint32_t *pfn, struct mf_fallback_result *result);

/* The type of the page's pageblock. Lock-free (one byte). */
static inline enum mf_migrate_type mf_buddy_type(const struct mf_buddy *buddy, uint32_t pfn)
{
	uint16_t kind = __atomic_load_n(&buddy->kinds[(pfn >> MF_PAGEBLOCK_ORDER) - buddy->kinds_base],
					__ATOMIC_RELAXED);

	return (enum mf_migrate_type)((kind & 0xff) ^ MF_MOVABLE);
}

/* Changes the type of the pageblock of pfn, with its free blocks; a free line that pairs
 * with its neighbour afterwards takes it along. */
void mf_buddy_set_type(struct mf_buddy *buddy, uint32_t pfn, enum mf_migrate_type type);

/* The lowest line of @type that is wholly free, as a pfn (for giving up HIGHATOMIC blocks). */
bool mf_buddy_find_free_line(const struct mf_buddy *buddy, enum mf_migrate_type type, uint32_t *pfn);
/* The lowest line of @type with any free page. */
bool mf_buddy_find_line(const struct mf_buddy *buddy, enum mf_migrate_type type, uint32_t *pfn);

/* A free block of at least @order of @type exists. O(1). */
bool mf_buddy_has(const struct mf_buddy *buddy, enum mf_migrate_type type, unsigned order);

/* Is this page free in the zone (not on a per-CPU list)?  For checks and double frees. */
bool mf_buddy_page_is_free(const struct mf_buddy *buddy, uint32_t pfn);

/*
 * Trimming.  A line is dirty once a page of it was handed out.  The caller
 * isolates a batch of dirty free lines that have been free since before
 * @stamp (the value of mf_buddy_set_stamp when they became free), punches them
 * without the lock, and releases them clean (or dirty, if the host refused).
 * An isolated line is not free for anyone; nr_free_pages goes down meanwhile.
 * Isolation walks at most @budget queue words and goes on from *cursor
 * (0 = start; 0 again when the zone's end was reached).
 */
void mf_buddy_set_stamp(struct mf_buddy *buddy, uint16_t stamp); /* "now" of lines becoming free */
unsigned mf_buddy_isolate(struct mf_buddy *buddy, uint16_t now, uint16_t min_age, unsigned budget,
			  uint32_t *cursor, unsigned max, uint32_t *pfns);
void mf_buddy_release(struct mf_buddy *buddy, uint32_t pfn, bool clean);
uint64_t mf_buddy_dirty_lines(const struct mf_buddy *buddy); /* lines that may hold host memory */

/*
 * Counts everything anew and prints a line for each violation to @out
 * (prefix first); returns how many.
 */
unsigned mf_buddy_check(const struct mf_buddy *buddy, const char *prefix, struct mf_outbuf *out);

#endif
