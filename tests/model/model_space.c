/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The partition of an address range against a sorted list of what is busy: a
 * place is looked for from the lowest gap on, page by page.  Random requests of
 * all sizes and alignments, some with memory made to fail; every result is
 * predicted exactly.
 *
 * Arguments: [seed|- [operations]].  Prints the seed; the same seed gives the same run.
 */
#include "vmalloc/space.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE MF_SPACE_GRANULE
#define NR_PAGES 1500u
#define MAX_BUSY NR_PAGES

/* One busy extent; the list is sorted by start.  Pages, counted from address 0. */
struct busy {
	uint64_t start, pages;
	struct mf_extent *extent;
};

static struct mf_fault fault;
static struct mf_space space;
static uint64_t seed, state, step;
static uint64_t base, end; /* pages */
static struct busy list[MAX_BUSY];
static unsigned nr_busy;
static uint64_t nr_results[3]; /* placed, no space, no memory */

static void fail(const char *what)
{
	printf("FAILED seed %" PRIu64 " step %" PRIu64 ": %s\n", seed, step, what);
	exit(EXIT_FAILURE);
}

static unsigned below(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)((state >> 32) * n >> 32);
}

/* --- the reference --- */

static uint64_t gap_start(unsigned i)
{
	return i ? list[i - 1].start + list[i - 1].pages : base;
}

static uint64_t gap_end(unsigned i)
{
	return i < nr_busy ? list[i].start : end;
}

/* The gap (before list[*at]) of the lowest place, and its first page; false: none. */
static bool lowest_place(uint64_t pages, uint64_t align, unsigned *at, uint64_t *start)
{
	for (*at = 0; *at <= nr_busy; (*at)++)
		for (*start = gap_start(*at); *start + pages <= gap_end(*at); (*start)++)
			if (*start % align == 0)
				return true;
	return false;
}

/* How many nodes a place needs: one for what is left before it, one for what is left behind. */
static unsigned nodes_needed(unsigned at, uint64_t start, uint64_t pages)
{
	return (start > gap_start(at)) + (start + pages < gap_end(at));
}

static void insert_busy(unsigned at, struct busy busy)
{
	memmove(list + at + 1, list + at, (nr_busy - at) * sizeof(*list));
	list[at] = busy;
	nr_busy++;
}

static void remove_busy(unsigned at)
{
	nr_busy--;
	memmove(list + at, list + at + 1, (nr_busy - at) * sizeof(*list));
}

/* --- comparison --- */

static void compare_counts(void)
{
	uint64_t nr_free = 0, free_pages = 0, largest = 0;

	for (unsigned i = 0; i <= nr_busy; i++) {
		uint64_t gap = gap_end(i) - gap_start(i);

		nr_free += gap > 0;
		free_pages += gap;
		largest = gap > largest ? gap : largest;
	}
	if (space.nr_busy != nr_busy || space.nr_free != nr_free)
		fail("another number of extents");
	if (space.free_bytes != free_pages * PAGE)
		fail("free_bytes differs");
	if (mf_space_largest_free(&space) != largest * PAGE)
		fail("largest free extent differs");
}

static struct mf_extent *expect_extent(struct mf_extent *at, uint64_t start, uint64_t stop, const void *owner)
{
	if (!at || at->start != start * PAGE || at->size != (stop - start) * PAGE || at->owner != owner)
		fail("another extent");
	return mf_space_next(at);
}

static void compare_all(void)
{
	struct mf_extent *at = mf_space_first(&space);
	struct mf_outbuf out = MF_OUTBUF_INIT;
	unsigned log2 = 0;

	for (unsigned i = 0; i <= nr_busy; i++) {
		if (gap_end(i) > gap_start(i))
			at = expect_extent(at, gap_start(i), gap_end(i), NULL);
		if (i < nr_busy)
			at = expect_extent(at, list[i].start, list[i].start + list[i].pages, list);
	}
	if (at)
		fail("an extent too many");
	if (mf_space_check(&space, &out)) {
		printf("%s", out.data);
		fail("mf_space_check");
	}
	mf_outbuf_free(&out);
	while ((space.nr_busy + space.nr_free + 1) >> (log2 + 1))
		log2++;
	if (mf_space_depth(&space) > 2 * log2 + 2)
		fail("too deep");
}

/* --- operations --- */

static uint64_t random_pages(void)
{
	unsigned kind = below(16);

	if (kind < 10)
		return 1 + below(4);
	if (kind < 15)
		return 1 + below(40);
	return 1 + below(NR_PAGES + 10);
}

static uint64_t random_align(void)
{
	return UINT64_C(1) << (below(2) ? 0 : below(9));
}

/* Whether nth of the nodes that the heap has to give fails. */
static bool memory_fails(unsigned nr_nodes, unsigned nth)
{
	unsigned from_heap = nr_nodes > space.nr_spare ? nr_nodes - space.nr_spare : 0;

	return nth && nth <= from_heap;
}

static void do_alloc(void)
{
	uint64_t pages = random_pages(), align = random_align(), start;
	unsigned nth = below(8) ? 0 : 1 + below(2), at;
	struct mf_extent *extent = NULL;
	bool found = lowest_place(pages, align, &at, &start);
	int wanted = !found ? -ENOSPC : memory_fails(nodes_needed(at, start, pages), nth) ? -ENOMEM : 0, got;

	if (nth)
		mf_fault_arm(&fault, MF_FAULT_meta_alloc, nth, 0);
	got = mf_space_alloc(&space, pages * PAGE, align == 1 ? below(2) : align * PAGE, list, &extent);
	mf_fault_disarm(&fault);
	if (got != wanted)
		fail("alloc: another result");
	nr_results[got == -ENOSPC ? 1 : got == -ENOMEM ? 2 : 0]++;
	if (got)
		return;
	if (extent->start != start * PAGE)
		fail("alloc: not the lowest place");
	insert_busy(at, (struct busy){ start, pages, extent });
}

static void free_at(unsigned at)
{
	mf_space_free(&space, list[at].extent);
	remove_busy(at);
}

static void do_free(void)
{
	if (nr_busy)
		free_at(below(nr_busy));
}

/* Neighbours together, as a purge does it. */
static void do_free_run(void)
{
	unsigned at, n;

	if (!nr_busy)
		return;
	at = below(nr_busy);
	for (n = 1 + below(12); n && at < nr_busy; n--)
		free_at(at);
}

static void do_find(void)
{
	uint64_t page = base - 2 + below(NR_PAGES + 4);
	struct mf_extent *extent = mf_space_find(&space, page * PAGE + below(PAGE));
	unsigned i = 0;

	if (page < base || page >= end) {
		if (extent)
			fail("find: an extent outside the range");
		return;
	}
	while (i < nr_busy && list[i].start + list[i].pages <= page)
		i++;
	if (i < nr_busy && page >= list[i].start) {
		if (extent != list[i].extent)
			fail("find: not the busy extent");
		return;
	}
	if (!extent || extent->owner || extent->start != gap_start(i) * PAGE)
		fail("find: not the free extent");
}

/* The range fills and empties in waves, so that all densities are met. */
static void do_step(void)
{
	bool filling = step >> 10 & 1;
	unsigned kind = below(64);

	if (kind < 28)
		(filling ? do_alloc : do_free)();
	else if (kind < 48)
		(filling ? do_free : do_alloc)();
	else if (kind < 56)
		do_alloc();
	else if (kind < 57)
		do_free_run();
	else
		do_find();
}

static void start_range(void)
{
	base = 256 + below(512); /* at an odd place, too */
	end = base + NR_PAGES;
	mf_fault_init(&fault);
	if (mf_space_init(&space, &fault, base * PAGE, NR_PAGES * PAGE))
		fail("init");
	compare_all();
}

static void finish(void)
{
	while (nr_busy)
		do_free();
	compare_all();
	if (space.nr_free != 1 || mf_space_largest_free(&space) != NR_PAGES * PAGE)
		fail("end state differs from the initial one");
	mf_space_destroy(&space);
}

int main(int argc, char **argv)
{
	uint64_t operations = argc > 2 ? strtoull(argv[2], NULL, 10) : 200000;

	seed = argc > 1 && strcmp(argv[1], "-") ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
	printf("model_space: seed %" PRIu64 ", %" PRIu64 " operations\n", seed, operations);
	state = seed * 0x9e3779b97f4a7c15ull + 1;
	start_range();
	for (step = 0; step < operations; step++) {
		do_step();
		compare_counts();
		if (step % 64 == 0)
			compare_all();
	}
	finish();
	printf("model_space: %" PRIu64 " placed, %" PRIu64 " without space, %" PRIu64
	       " without memory; passed\n",
	       nr_results[0], nr_results[1], nr_results[2]);
	return EXIT_SUCCESS;
}
