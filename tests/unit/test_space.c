/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Extents of an address range: refusals, the lowest place that fits, the four
 * cuts, merging, failures of memory, and a million extents.
 *
 * Pictures of a space: a letter a page, 'A' 'B' ... for busy extents by owner,
 * '.' for free pages, '|' between two extents.
 */
#include "unit.h"

#include "vmalloc/space.h"

#include <errno.h>

#define PAGE MF_SPACE_GRANULE
#define BASE (UINT64_C(0x7f00) * PAGE) /* a multiple of 256 pages */
#define NR_MANY 1000000u

static struct mf_fault fault;
static char owners[26];

static void open_space(struct mf_space *space, uint64_t pages)
{
	mf_fault_init(&fault);
	CU_ASSERT_EQUAL_FATAL(mf_space_init(space, &fault, BASE, pages * PAGE), 0);
}

static void expect_sound(const struct mf_space *space)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;

	CU_ASSERT_EQUAL(mf_space_check(space, &out), 0);
	CU_ASSERT_PTR_NULL(out.data);
	mf_outbuf_free(&out);
}

static void close_space(struct mf_space *space)
{
	expect_sound(space);
	mf_space_destroy(space);
	CU_ASSERT_PTR_NULL(space->tree.root);
	CU_ASSERT_EQUAL(space->nr_spare, 0);
}

/* NULL when it is refused. */
static struct mf_extent *take(struct mf_space *space, char letter, uint64_t pages, uint64_t align_pages)
{
	struct mf_extent *extent = NULL;

	if (mf_space_alloc(space, pages * PAGE, align_pages * PAGE, &owners[letter - 'A'], &extent))
		return NULL;
	CU_ASSERT_EQUAL(extent->size, pages * PAGE);
	CU_ASSERT_PTR_EQUAL(extent->owner, &owners[letter - 'A']);
	return extent;
}

/* Busy extents of these sizes one behind the other, from the lowest page on. */
static void fill(struct mf_space *space, struct mf_extent **extents, const unsigned *pages, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		extents[i] = take(space, (char)('A' + i), pages[i], 1);
		CU_ASSERT_PTR_NOT_NULL_FATAL(extents[i]);
	}
}

static void draw(const struct mf_space *space, char *picture)
{
	for (struct mf_extent *at = mf_space_first(space); at; at = mf_space_next(at)) {
		char letter = at->owner ? (char)('A' + ((char *)at->owner - owners)) : '.';

		if (at->start > BASE)
			*picture++ = '|';
		memset(picture, letter, at->size / PAGE);
		picture += at->size / PAGE;
	}
	*picture = '\0';
}

/* The space looks so, and its counts are what the picture says. */
static void expect(const struct mf_space *space, const char *wanted)
{
	char picture[256];
	uint64_t free_pages = 0, longest = 0, run = 0;

	draw(space, picture);
	CU_ASSERT_STRING_EQUAL(picture, wanted);
	if (strcmp(picture, wanted))
		printf("\n    is     %s\n    should %s\n", picture, wanted);
	for (const char *at = wanted; *at; at++) {
		run = *at == '.' ? run + 1 : 0;
		free_pages += *at == '.';
		longest = run > longest ? run : longest;
	}
	CU_ASSERT_EQUAL(space->free_bytes, free_pages * PAGE);
	CU_ASSERT_EQUAL(mf_space_largest_free(space), longest * PAGE);
	expect_sound(space);
}

/* --- refusals --- */

static void test_invalid(void)
{
	struct mf_space space;
	struct mf_extent untouched, *out = &untouched;

	open_space(&space, 8);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, 0, PAGE, owners, &out), -EINVAL);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, 1, PAGE, owners, &out), -EINVAL);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, PAGE - 1, PAGE, owners, &out), -EINVAL);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, PAGE + 1, PAGE, owners, &out), -EINVAL);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, PAGE, 3, owners, &out), -EINVAL);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, PAGE, 4095, owners, &out), -EINVAL);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, PAGE, 3 * PAGE, owners, &out), -EINVAL);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, PAGE, UINT64_MAX, owners, &out), -EINVAL);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, PAGE, PAGE, NULL, &out), -EINVAL);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, 9 * PAGE, 3 * PAGE, owners, &out),
			-EINVAL); /* before ENOSPC */
	CU_ASSERT_PTR_EQUAL(out, &untouched);
	expect(&space, "........");
	close_space(&space);
}

/* 0, 1 and other powers of two below the granule mean the granule. */
static void test_small_alignments(void)
{
	static const uint64_t aligns[6] = { 0, 1, 2, 8, 2048, 4096 };
	struct mf_space space;

	open_space(&space, 6);
	for (unsigned i = 0; i < 6; i++) {
		struct mf_extent *out = NULL;

		CU_ASSERT_EQUAL_FATAL(mf_space_alloc(&space, PAGE, aligns[i], &owners[i], &out), 0);
		CU_ASSERT_EQUAL(out->start, BASE + i * PAGE);
	}
	expect(&space, "A|B|C|D|E|F");
	close_space(&space);
}

static void test_no_space(void)
{
	struct mf_space space;
	struct mf_extent *e[4], *out;

	open_space(&space, 8);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, 9 * PAGE, PAGE, owners, &out), -ENOSPC);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, UINT64_MAX - PAGE + 1, PAGE, owners, &out), -ENOSPC);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, PAGE, UINT64_C(1) << 63, owners, &out), -ENOSPC);
	fill(&space, e, (const unsigned[]){ 2, 2, 2, 2 }, 4);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, PAGE, PAGE, owners, &out), -ENOSPC);
	mf_space_free(&space, e[0]);
	mf_space_free(&space, e[2]);
	expect(&space, "..|BB|..|DD");
	/* four pages are free, but not together */
	CU_ASSERT_EQUAL(mf_space_alloc(&space, 3 * PAGE, PAGE, owners, &out), -ENOSPC);
	/* large enough, but no multiple of 8 pages but the first is free */
	CU_ASSERT_PTR_NOT_NULL(take(&space, 'E', 1, 8));
	CU_ASSERT_EQUAL(mf_space_alloc(&space, PAGE, 8 * PAGE, owners, &out), -ENOSPC);
	expect(&space, "E|.|BB|..|DD");
	close_space(&space);
}

/* --- the lowest place that fits --- */

static void test_lowest_fit(void)
{
	struct mf_space space;
	struct mf_extent *e[7];

	open_space(&space, 20);
	fill(&space, e, (const unsigned[]){ 1, 2, 1, 4, 1, 2, 1 }, 7);
	mf_space_free(&space, e[1]);
	mf_space_free(&space, e[3]);
	mf_space_free(&space, e[5]);
	expect(&space, "A|..|C|....|E|..|G|........");
	/* first fit, not best fit: 2 pages could be had exactly further up */
	CU_ASSERT_EQUAL(take(&space, 'H', 3, 1)->start, BASE + 4 * PAGE);
	expect(&space, "A|..|C|HHH|.|E|..|G|........");
	CU_ASSERT_EQUAL(take(&space, 'I', 1, 1)->start, BASE + 1 * PAGE);
	CU_ASSERT_EQUAL(take(&space, 'J', 2, 1)->start, BASE + 9 * PAGE);
	CU_ASSERT_EQUAL(take(&space, 'K', 2, 1)->start, BASE + 12 * PAGE);
	CU_ASSERT_EQUAL(take(&space, 'L', 1, 1)->start, BASE + 2 * PAGE);
	CU_ASSERT_EQUAL(take(&space, 'M', 1, 1)->start, BASE + 7 * PAGE);
	expect(&space, "A|I|L|C|HHH|M|E|JJ|G|KK|......");
	CU_ASSERT_EQUAL(space.nr_busy, 10);
	CU_ASSERT_EQUAL(space.nr_free, 1);
	close_space(&space);
}

/* A hole that is large enough by luck comes before one that is large enough for sure. */
static void test_lowest_aligned(void)
{
	struct mf_space space;
	struct mf_extent *e[7];

	open_space(&space, 40);
	fill(&space, e, (const unsigned[]){ 1, 5, 2, 4, 1, 3, 1 }, 7);
	mf_space_free(&space, e[1]); /* pages 1..5 */
	mf_space_free(&space, e[3]); /* pages 8..11 */
	mf_space_free(&space, e[5]); /* pages 13..15 */
	expect(&space, "A|.....|CC|....|E|...|G|.......................");
	/* 4 pages at a multiple of 8: 1..5 is spoiled, 8..11 fits exactly; only 17.. is sure to */
	CU_ASSERT_EQUAL(take(&space, 'H', 4, 8)->start, BASE + 8 * PAGE);
	/* 2 at a multiple of 4: in the middle of 1..5 */
	CU_ASSERT_EQUAL(take(&space, 'I', 2, 4)->start, BASE + 4 * PAGE);
	expect(&space, "A|...|II|CC|HHHH|E|...|G|.......................");
	/* 2 at a multiple of 2: 2..3 */
	CU_ASSERT_EQUAL(take(&space, 'J', 2, 2)->start, BASE + 2 * PAGE);
	/* 3 at a multiple of 4: 1 and 13..15 are spoiled, 17.. does from 20 on */
	CU_ASSERT_EQUAL(take(&space, 'K', 3, 4)->start, BASE + 20 * PAGE);
	expect(&space, "A|.|JJ|II|CC|HHHH|E|...|G|...|KKK|.................");
	CU_ASSERT_EQUAL(take(&space, 'L', 1, 16)->start, BASE + 32 * PAGE);
	close_space(&space);
}

/* The alignment is that of the address, not of the distance from the start of the range. */
static void test_alignment_of_addresses(void)
{
	struct mf_space space;
	struct mf_extent *out;

	mf_fault_init(&fault);
	CU_ASSERT_EQUAL_FATAL(mf_space_init(&space, &fault, BASE + 3 * PAGE, 16 * PAGE), 0);
	CU_ASSERT_EQUAL_FATAL(mf_space_alloc(&space, PAGE, 8 * PAGE, owners, &out), 0);
	CU_ASSERT_EQUAL(out->start, BASE + 8 * PAGE);
	CU_ASSERT_EQUAL_FATAL(mf_space_alloc(&space, PAGE, 8 * PAGE, owners, &out), 0);
	CU_ASSERT_EQUAL(out->start, BASE + 16 * PAGE);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, PAGE, 8 * PAGE, owners, &out), -ENOSPC);
	CU_ASSERT_EQUAL_FATAL(mf_space_alloc(&space, PAGE, PAGE, owners, &out), 0);
	CU_ASSERT_EQUAL(out->start, BASE + 3 * PAGE);
	close_space(&space);
}

/* The next multiple of the alignment lies behind the last address there is. */
static void test_alignment_wraps(void)
{
	struct mf_space space;
	struct mf_extent *out;

	mf_fault_init(&fault);
	CU_ASSERT_EQUAL_FATAL(mf_space_init(&space, &fault, (UINT64_C(1) << 63) + PAGE, 4 * PAGE), 0);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, PAGE, UINT64_C(1) << 63, owners, &out), -ENOSPC);
	CU_ASSERT_EQUAL(space.nr_busy, 0);
	close_space(&space);
}

/* Hundreds of holes large enough but spoiled by alignment, then one that does, wherever it is. */
static void test_many_spoiled(void)
{
	static struct mf_extent *e[512];
	struct mf_space space;

	for (unsigned good = 0; good < 128; good += 9) {
		open_space(&space, 1024);
		for (unsigned i = 0; i < 512; i++) /* 0, 1..3 | 4, 5..7 | ... */
			e[i] = take(&space, i % 2 ? 'B' : 'A', i % 2 ? 3 : 1, 1);
		for (unsigned i = 1; i < 512; i += 2)
			mf_space_free(&space, e[i]);
		CU_ASSERT_PTR_NULL(take(&space, 'C', 3, 4));
		mf_space_free(&space, e[4 * good]); /* pages 8*good-3 .. 8*good+3 */
		CU_ASSERT_EQUAL(take(&space, 'C', 3, 4)->start, BASE + 8 * good * PAGE);
		CU_ASSERT_PTR_NULL(take(&space, 'D', 3, 4));
		close_space(&space);
	}
}

/* --- cuts --- */

/* The free extent of 4 pages from page 4 on, busy ones on both sides. */
static void open_hole(struct mf_space *space)
{
	struct mf_extent *e[3];

	open_space(space, 12);
	fill(space, e, (const unsigned[]){ 4, 4, 4 }, 3);
	mf_space_free(space, e[1]);
	expect(space, "AAAA|....|CCCC");
	CU_ASSERT_EQUAL(space->nr_free, 1);
}

static void test_cut_whole(void)
{
	struct mf_space space;

	open_hole(&space);
	CU_ASSERT_PTR_NOT_NULL(take(&space, 'X', 4, 1));
	expect(&space, "AAAA|XXXX|CCCC");
	CU_ASSERT_EQUAL(space.nr_free, 0);
	CU_ASSERT_EQUAL(space.nr_busy, 3);
	close_space(&space);
}

static void test_cut_left(void)
{
	struct mf_space space;

	open_hole(&space);
	CU_ASSERT_PTR_NOT_NULL(take(&space, 'X', 3, 1));
	expect(&space, "AAAA|XXX|.|CCCC");
	CU_ASSERT_EQUAL(space.nr_free, 1);
	CU_ASSERT_EQUAL(space.nr_busy, 3);
	close_space(&space);
}

static void test_cut_right(void)
{
	struct mf_space space;
	struct mf_extent *e[3];

	open_space(&space, 12);
	fill(&space, e, (const unsigned[]){ 2, 6, 4 }, 3);
	mf_space_free(&space, e[1]);
	CU_ASSERT_PTR_NOT_NULL(take(&space, 'X', 4, 4));
	expect(&space, "AA|..|XXXX|CCCC");
	CU_ASSERT_EQUAL(space.nr_free, 1);
	CU_ASSERT_EQUAL(space.nr_busy, 3);
	close_space(&space);
}

static void test_cut_middle(void)
{
	struct mf_space space;
	struct mf_extent *e[3];

	open_space(&space, 12);
	fill(&space, e, (const unsigned[]){ 1, 8, 3 }, 3);
	mf_space_free(&space, e[1]);
	CU_ASSERT_PTR_NOT_NULL(take(&space, 'X', 3, 4));
	expect(&space, "A|...|XXX|..|CCC");
	CU_ASSERT_EQUAL(space.nr_free, 2);
	CU_ASSERT_EQUAL(space.nr_busy, 3);
	close_space(&space);
}

/* --- merging --- */

static void test_merge(void)
{
	struct mf_space space;
	struct mf_extent *e[6];

	open_space(&space, 12);
	fill(&space, e, (const unsigned[]){ 2, 2, 2, 2, 2, 2 }, 6);
	mf_space_free(&space, e[1]); /* with nobody */
	expect(&space, "AA|..|CC|DD|EE|FF");
	CU_ASSERT_EQUAL(space.nr_free, 1);
	mf_space_free(&space, e[2]); /* left */
	expect(&space, "AA|....|DD|EE|FF");
	CU_ASSERT_EQUAL(space.nr_free, 1);
	mf_space_free(&space, e[0]); /* right, at the start of the range */
	expect(&space, "......|DD|EE|FF");
	mf_space_free(&space, e[5]); /* alone at the end of the range */
	expect(&space, "......|DD|EE|..");
	CU_ASSERT_EQUAL(space.nr_free, 2);
	mf_space_free(&space, e[4]); /* right */
	expect(&space, "......|DD|....");
	mf_space_free(&space, e[3]); /* both */
	expect(&space, "............");
	CU_ASSERT_EQUAL(space.nr_free, 1);
	CU_ASSERT_EQUAL(space.nr_busy, 0);
	close_space(&space);
}

/* All orders of giving back six extents end in one free extent, sound after each step. */
static void test_merge_orders(void)
{
	unsigned bad = 0, nr_orders = 0;

	for (unsigned code = 0; code < 6 * 6 * 6 * 6 * 6 * 6; code++) {
		struct mf_space space;
		struct mf_outbuf out = MF_OUTBUF_INIT;
		struct mf_extent *e[6];
		unsigned digits[6], seen = 0;

		for (unsigned i = 0, rest = code; i < 6; i++, rest /= 6)
			seen |= 1u << (digits[i] = rest % 6);
		if (seen != 63)
			continue;
		nr_orders++;
		open_space(&space, 21);
		fill(&space, e, (const unsigned[]){ 1, 2, 3, 4, 5, 6 }, 6);
		for (unsigned i = 0; i < 6; i++) {
			mf_space_free(&space, e[digits[i]]);
			bad += mf_space_check(&space, &out);
		}
		bad += space.nr_free != 1 || mf_space_largest_free(&space) != 21 * PAGE;
		mf_outbuf_free(&out);
		mf_space_destroy(&space);
	}
	CU_ASSERT_EQUAL(nr_orders, 720);
	CU_ASSERT_EQUAL(bad, 0);
}

/* --- looking --- */

static void test_find(void)
{
	struct mf_space space;
	struct mf_extent *e[3], *hole;

	open_space(&space, 10);
	fill(&space, e, (const unsigned[]){ 2, 3, 2 }, 3);
	mf_space_free(&space, e[1]);
	expect(&space, "AA|...|CC|...");
	CU_ASSERT_PTR_NULL(mf_space_find(&space, BASE - 1));
	CU_ASSERT_PTR_NULL(mf_space_find(&space, 0));
	CU_ASSERT_PTR_EQUAL(mf_space_find(&space, BASE), e[0]);
	CU_ASSERT_PTR_EQUAL(mf_space_find(&space, BASE + 2 * PAGE - 1), e[0]);
	hole = mf_space_find(&space, BASE + 2 * PAGE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(hole);
	CU_ASSERT_PTR_NULL(hole->owner);
	CU_ASSERT_EQUAL(hole->start, BASE + 2 * PAGE);
	CU_ASSERT_EQUAL(hole->size, 3 * PAGE);
	CU_ASSERT_PTR_EQUAL(mf_space_find(&space, BASE + 5 * PAGE - 1), hole);
	CU_ASSERT_PTR_EQUAL(mf_space_find(&space, BASE + 5 * PAGE), e[2]);
	CU_ASSERT_PTR_EQUAL(mf_space_find(&space, BASE + 7 * PAGE), mf_space_next(e[2]));
	CU_ASSERT_PTR_NOT_NULL(mf_space_find(&space, BASE + 10 * PAGE - 1));
	CU_ASSERT_PTR_NULL(mf_space_find(&space, BASE + 10 * PAGE));
	CU_ASSERT_PTR_NULL(mf_space_find(&space, UINT64_MAX));
	CU_ASSERT_PTR_EQUAL(mf_space_first(&space), e[0]);
	CU_ASSERT_PTR_EQUAL(mf_space_next(e[0]), hole);
	CU_ASSERT_PTR_NULL(mf_space_next(mf_space_next(e[2])));
	CU_ASSERT_EQUAL(mf_space_depth(&space), 3);
	close_space(&space);
}

/* The check names each thing that is wrong; one line each. */
static unsigned violations(const struct mf_space *space)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	unsigned n = mf_space_check(space, &out), lines = 0;

	for (size_t i = 0; i < out.length; i++)
		lines += out.data[i] == '\n';
	CU_ASSERT_EQUAL(lines, n);
	mf_outbuf_free(&out);
	return n;
}

static void test_check_refuses(void)
{
	struct mf_space space;
	struct mf_extent *e[3];

	open_space(&space, 10);
	fill(&space, e, (const unsigned[]){ 2, 3, 2 }, 3);
	space.nr_busy++;
	CU_ASSERT_EQUAL(violations(&space), 1);
	space.nr_busy--;
	space.nr_free--;
	CU_ASSERT_EQUAL(violations(&space), 1);
	space.nr_free++;
	space.free_bytes += PAGE;
	CU_ASSERT_EQUAL(violations(&space), 1);
	space.free_bytes -= PAGE;
	e[1]->max_free += PAGE; /* the root: nobody above it has to agree */
	CU_ASSERT_PTR_EQUAL(space.tree.root, &e[1]->node);
	CU_ASSERT_EQUAL(violations(&space), 1);
	e[1]->max_free -= PAGE;
	e[1]->start += PAGE; /* a gap, then an overlap */
	CU_ASSERT_EQUAL(violations(&space), 2);
	e[1]->start -= PAGE;
	e[2]->owner = NULL; /* two free ones touch, and the counts are others */
	CU_ASSERT_EQUAL(violations(&space), 2);
	e[2]->owner = &owners[2];
	space.tree.root->red = true;
	CU_ASSERT_EQUAL(violations(&space), 1);
	space.tree.root->red = false;
	close_space(&space);
}

/* --- memory --- */

static void test_init_without_memory(void)
{
	struct mf_space space;

	mf_fault_init(&fault);
	mf_fault_arm(&fault, MF_FAULT_meta_alloc, 1, 0);
	CU_ASSERT_EQUAL(mf_space_init(&space, &fault, BASE, PAGE), -ENOMEM);
	CU_ASSERT_EQUAL(fault.point[MF_FAULT_meta_alloc].failures, 1);
	mf_space_destroy(&space);
	mf_fault_disarm(&fault);
	CU_ASSERT_EQUAL(mf_space_init(&space, &fault, BASE, PAGE), 0);
	close_space(&space);
}

/*
 * A hole from page @left on, without a spare node; a request that needs @nr_nodes
 * fails at each of them, changes nothing that anybody sees, and then succeeds.
 */
static void fail_cut(unsigned left, unsigned hole, uint64_t pages, unsigned nr_nodes, const char *after)
{
	for (unsigned nth = 1; nth <= nr_nodes; nth++) {
		struct mf_space space;
		struct mf_extent *e[3], untouched, *out = &untouched;
		char before[64];

		open_space(&space, 16);
		fill(&space, e, (const unsigned[]){ left, hole, 16 - left - hole }, 3);
		mf_space_free(&space, e[1]); /* merges with nobody */
		CU_ASSERT_EQUAL_FATAL(space.nr_spare, 0);
		draw(&space, before);
		mf_fault_arm(&fault, MF_FAULT_meta_alloc, nth, 0);
		CU_ASSERT_EQUAL(mf_space_alloc(&space, pages * PAGE, 4 * PAGE, &owners[23], &out), -ENOMEM);
		CU_ASSERT(mf_fault_fired(&fault));
		CU_ASSERT_EQUAL(fault.point[MF_FAULT_meta_alloc].visits, nth);
		CU_ASSERT_PTR_EQUAL(out, &untouched);
		expect(&space, before);
		CU_ASSERT_EQUAL(space.nr_busy, 2);
		CU_ASSERT_EQUAL(space.nr_free, 1);
		/* what the first try got from the heap is kept for the second */
		CU_ASSERT_EQUAL(space.nr_spare, nth - 1);
		mf_fault_arm(&fault, MF_FAULT_meta_alloc, 100, 0);
		CU_ASSERT_PTR_NOT_NULL(take(&space, 'X', pages, 4));
		CU_ASSERT_EQUAL(fault.point[MF_FAULT_meta_alloc].visits, nr_nodes - (nth - 1));
		expect(&space, after);
		close_space(&space);
	}
}

static void test_no_memory(void)
{
	fail_cut(4, 8, 4, 1, "AAAA|XXXX|....|CCCC");   /* left */
	fail_cut(2, 6, 4, 1, "AA|..|XXXX|CCCCCCCC");   /* right */
	fail_cut(1, 10, 4, 2, "A|...|XXXX|...|CCCCC"); /* middle */
}

/* The whole of a hole needs no node, giving back none either. */
static void test_needs_no_memory(void)
{
	struct mf_space space;
	struct mf_extent *x, *out;

	open_hole(&space);
	mf_fault_arm(&fault, MF_FAULT_meta_alloc, 1, 1); /* always */
	x = take(&space, 'X', 4, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(x);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, PAGE, PAGE, owners, &out), -ENOSPC);
	mf_space_free(&space, x);
	mf_space_free(&space, mf_space_first(&space)); /* leaves a spare */
	CU_ASSERT_EQUAL(fault.point[MF_FAULT_meta_alloc].visits, 0);
	expect(&space, "........|CCCC");
	CU_ASSERT_EQUAL(space.nr_spare, 1);
	CU_ASSERT_PTR_NOT_NULL(take(&space, 'Y', 3, 1)); /* with the spare */
	CU_ASSERT_EQUAL(space.nr_spare, 0);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, PAGE, PAGE, owners, &out), -ENOMEM);
	CU_ASSERT_EQUAL(fault.point[MF_FAULT_meta_alloc].visits, 1);
	expect(&space, "YYY|.....|CCCC");
	close_space(&space);
}

/* Many extents vanish at once: their nodes go back to the heap little by little, 64 stay. */
static void test_spares_are_bounded(void)
{
	static struct mf_extent *e[1000];
	struct mf_space space;
	unsigned before;

	open_space(&space, 2000);
	for (unsigned i = 0; i < 1000; i++)
		e[i] = take(&space, 'A', 1, 1);
	for (unsigned i = 0; i < 1000; i++)
		mf_space_free(&space, e[i]);
	CU_ASSERT_EQUAL(space.nr_spare, 1000);
	mf_space_free(&space, take(&space, 'A', 1, 1)); /* 16 go; one is used and comes back */
	CU_ASSERT_EQUAL(space.nr_spare, 984);
	for (unsigned i = 0; i < 1000; i++) {
		struct mf_extent *x = take(&space, 'A', 1, 1);

		before = space.nr_spare;
		mf_space_free(&space, x);
		CU_ASSERT_EQUAL_FATAL(space.nr_spare, before + 1);
	}
	CU_ASSERT_EQUAL(space.nr_spare, 64);
	close_space(&space);
}

/* --- many --- */

static unsigned depth_bound(uint64_t n)
{
	unsigned log2 = 0; /* rounded down: 2 * log2(n + 1) + 2 is at least this */

	while ((n + 1) >> (log2 + 1))
		log2++;
	return 2 * log2 + 2;
}

static void expect_depth(const struct mf_space *space)
{
	CU_ASSERT(mf_space_depth(space) <= depth_bound(space->nr_busy + space->nr_free));
}

/* Half the places of a million freed, then taken again, lowest first. */
static void test_million(void)
{
	struct mf_extent **e = calloc(NR_MANY, sizeof(*e)), *out;
	struct mf_space space;
	unsigned bad = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(e);
	open_space(&space, 2 * NR_MANY);
	for (unsigned i = 0; i < NR_MANY; i++) {
		bad += mf_space_alloc(&space, 2 * PAGE, 0, owners, &e[i]) != 0;
		bad += e[i]->start != BASE + 2 * i * PAGE;
	}
	CU_ASSERT_EQUAL_FATAL(bad, 0);
	CU_ASSERT_EQUAL(mf_space_largest_free(&space), 0);
	CU_ASSERT_EQUAL(space.nr_busy, NR_MANY);
	expect_depth(&space);
	for (unsigned i = 1; i < NR_MANY; i += 2)
		mf_space_free(&space, e[i]);
	CU_ASSERT_EQUAL(space.nr_free, NR_MANY / 2);
	CU_ASSERT_EQUAL(space.free_bytes, (uint64_t)NR_MANY * PAGE);
	CU_ASSERT_EQUAL(mf_space_alloc(&space, 3 * PAGE, 0, owners, &out), -ENOSPC);
	expect_depth(&space);
	for (unsigned i = 1; i < NR_MANY / 2; i += 2) {
		bad += mf_space_alloc(&space, 2 * PAGE, 0, owners, &e[i]) != 0;
		bad += e[i]->start != BASE + 2 * i * PAGE;
	}
	for (unsigned i = NR_MANY / 2 + 1; i < NR_MANY; i += 2) { /* halves of a hole */
		bad += mf_space_alloc(&space, PAGE, 0, owners, &out) != 0 ||
		       out->start != BASE + 2 * i * PAGE;
		bad += mf_space_alloc(&space, PAGE, 0, owners, &out) != 0 ||
		       out->start != BASE + (2 * i + 1) * PAGE;
	}
	CU_ASSERT_EQUAL(bad, 0);
	CU_ASSERT_EQUAL(space.nr_busy, NR_MANY + NR_MANY / 4);
	CU_ASSERT_EQUAL(space.nr_free, 0);
	expect_depth(&space);
	close_space(&space);
	free(e);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_invalid),
	UNIT_TEST(test_small_alignments),
	UNIT_TEST(test_no_space),
	UNIT_TEST(test_lowest_fit),
	UNIT_TEST(test_lowest_aligned),
	UNIT_TEST(test_alignment_of_addresses),
	UNIT_TEST(test_alignment_wraps),
	UNIT_TEST(test_many_spoiled),
	UNIT_TEST(test_cut_whole),
	UNIT_TEST(test_cut_left),
	UNIT_TEST(test_cut_right),
	UNIT_TEST(test_cut_middle),
	UNIT_TEST(test_merge),
	UNIT_TEST(test_merge_orders),
	UNIT_TEST(test_find),
	UNIT_TEST(test_check_refuses),
	UNIT_TEST(test_init_without_memory),
	UNIT_TEST(test_no_memory),
	UNIT_TEST(test_needs_no_memory),
	UNIT_TEST(test_spares_are_bounded),
	UNIT_TEST(test_million),
};

UNIT_MAIN("space", tests)
