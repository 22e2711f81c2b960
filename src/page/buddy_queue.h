/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A set of small numbers as a 64-ary tree of bits: insert, remove and "lowest
 * member" touch one word a level (4 levels hold 16 million members).
 *
 * Invariant: a bit of level n + 1 is set exactly if its word of level n has a
 * member.  Words are kept XORed with flip, so that zeroed memory is an empty
 * set (flip 0) or a full one (flip ~0): neither needs initialisation beyond
 * the last word of each level.
 *
 * Threads: the owner's lock.
 */
#ifndef MF_PAGE_BUDDY_QUEUE_H
#define MF_PAGE_BUDDY_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MF_QUEUE_LEVELS 4
#define MF_QUEUE_NONE UINT32_MAX

struct mf_queue {
	uint64_t *level[MF_QUEUE_LEVELS];
	uint64_t flip;
	uint32_t low; /* no member is below; usually it is the lowest one */
	uint32_t top; /* the level that is one word */
	uint32_t nr;  /* members are below this */
} __attribute__((aligned(64)));

/* Words of memory for a set of numbers below nr, all levels. */
size_t mf_queue_words(uint32_t nr);
/* @words: mf_queue_words(nr) zeroed words.  @full: every number below nr is a member. */
void mf_queue_init(struct mf_queue *queue, uint64_t *words, uint32_t nr, bool full);
/* The lowest member that is at least @at, or MF_QUEUE_NONE. */
uint32_t mf_queue_next(const struct mf_queue *queue, uint32_t at);
/* Members counted one word after the other. */
uint64_t mf_queue_count(const struct mf_queue *queue);
/* Words of upper levels that disagree with the level below. */
unsigned mf_queue_check(const struct mf_queue *queue);

static inline bool mf_queue_has(const struct mf_queue *queue, uint32_t member)
{
	return (queue->level[0][member >> 6] ^ queue->flip) >> (member & 63) & 1;
}

static inline bool mf_queue_empty(const struct mf_queue *queue)
{
	return queue->level[queue->top][0] == queue->flip;
}

/* @member is not in the set.  True if the set was empty. */
static inline bool mf_queue_insert(struct mf_queue *queue, uint32_t member)
{
	if (member < queue->low)
		queue->low = member;
	for (unsigned level = 0; level <= queue->top; level++) {
		uint64_t *word = &queue->level[level][member >> 6];
		uint64_t old = *word;

		*word = old ^ 1ull << (member & 63);
		if (old != queue->flip)
			return false;
		member >>= 6;
	}
	return true;
}

/* @member is in the set.  True if the set is empty now. */
static inline bool mf_queue_remove(struct mf_queue *queue, uint32_t member)
{
	for (unsigned level = 0; level <= queue->top; level++) {
		uint64_t *word = &queue->level[level][member >> 6];
		uint64_t left = *word ^ 1ull << (member & 63);

		*word = left;
		if (left != queue->flip)
			return false;
		member >>= 6;
	}
	return true;
}

/* The lowest member of a set that is not empty.  The guess is
 * checked by a branch, so that the CPU goes on with it. */
static inline uint32_t mf_queue_first(struct mf_queue *queue)
{
	uint32_t low = queue->low;

	if (__builtin_expect(!mf_queue_has(queue, low), 0)) {
		low = mf_queue_next(queue, low);
		queue->low = low;
	}
	return low;
}

#endif
