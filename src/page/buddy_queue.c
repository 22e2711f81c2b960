/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * 64-ary bitmap queues: layout, ordered walk and self-check (see buddy_queue.h).
 */
#include "page/buddy_queue.h"

/* Words of one level of a set of nr numbers. */
static size_t level_words(uint32_t nr, unsigned level)
{
	return (size_t)(((uint64_t)nr + (64ull << (6 * level)) - 1) >> (6 * (level + 1)));
}

size_t mf_queue_words(uint32_t nr)
{
	size_t words = 0;

	for (unsigned level = 0;; level++) {
		words += level_words(nr, level);
		if (level_words(nr, level) <= 1)
			return words;
	}
}

void mf_queue_init(struct mf_queue *queue, uint64_t *words, uint32_t nr, bool full)
{
	uint32_t members = nr;

	queue->nr = nr;
	queue->low = 0;
	queue->flip = full ? ~0ull : 0;
	for (unsigned level = 0;; level++) {
		size_t nr_words = level_words(nr, level);

		queue->level[level] = words;
		/* Bits beyond the last member are never members, of either kind of set. */
		if (full && members & 63)
			words[nr_words - 1] = ~0ull << (members & 63);
		words += nr_words;
		members = (uint32_t)nr_words;
		queue->top = level;
		if (nr_words <= 1)
			return;
	}
}

uint32_t mf_queue_next(const struct mf_queue *queue, uint32_t at)
{
	unsigned level = 0;
	uint64_t bits;

	for (;;) {
		if ((uint64_t)at << (6 * level) >= queue->nr)
			return MF_QUEUE_NONE;
		bits = (queue->level[level][at >> 6] ^ queue->flip) & ~0ull << (at & 63);
		if (bits)
			break;
		if (level == queue->top)
			return MF_QUEUE_NONE;
		at = (at >> 6) + 1;
		level++;
	}
	at = (at & ~63u) | (uint32_t)__builtin_ctzll(bits);
	while (level-- > 0)
		at = at << 6 | (uint32_t)__builtin_ctzll(queue->level[level][at] ^ queue->flip);
	return at;
}

uint64_t mf_queue_count(const struct mf_queue *queue)
{
	size_t nr_words = level_words(queue->nr, 0);
	uint64_t count = 0;

	for (size_t i = 0; i < nr_words; i++)
		count += (uint64_t)__builtin_popcountll(queue->level[0][i] ^ queue->flip);
	return count;
}

unsigned mf_queue_check(const struct mf_queue *queue)
{
	unsigned wrong = 0;

	for (unsigned level = 0; level < queue->top; level++) {
		size_t nr_words = level_words(queue->nr, level);

		for (size_t i = 0; i < nr_words; i++) {
			bool members = queue->level[level][i] != queue->flip;
			bool marked = (queue->level[level + 1][i >> 6] ^ queue->flip) >> (i & 63) & 1;

			wrong += members != marked;
		}
	}
	return wrong;
}
