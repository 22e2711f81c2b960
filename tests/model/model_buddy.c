/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The buddy allocator against a reference that keeps one byte a page and looks
 * for blocks by trying all of them.  Random operations; every result is
 * predicted exactly, but for which pages of a line a bulk take chooses.
 *
 * Arguments: [seed [operations]].  Prints the seed; the same seed gives the same run.
 */
#include "page/buddy_tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define BASE_LINE 6u
#define NR_LINES 12u /* of the reference; the zone begins and ends inside, at odd places */
#define START_PFN ((BASE_LINE + 1) * 512 + 131)
#define NR_PAGES (9 * 512 + 77)
#define MAX_HELD (NR_LINES * 512)

static void *meta_alloc(struct mf_plat *plat, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)plat;
	return at == MAP_FAILED ? NULL : at;
}

static void meta_free(struct mf_plat *plat, void *at, size_t bytes)
{
	(void)plat;
	munmap(at, bytes);
}

static const struct mf_plat_ops plat_ops = { .meta_alloc = meta_alloc, .meta_free = meta_free };
static struct mf_plat plat = { &plat_ops };

struct held {
	uint32_t pfn;
	unsigned order;
};

static struct mf_buddy buddy;
static uint64_t seed, state, step;
static uint8_t used[NR_LINES * 512];
static int types[NR_LINES];
static int largest[NR_LINES]; /* order 0..9 of the line alone, -1: full */
static unsigned counts[NR_LINES][10], nr_free_in[NR_LINES];
static bool dirty[NR_LINES], isolated[NR_LINES];
static uint16_t stamps[NR_LINES], stamp;
static struct held blocks[MAX_HELD];
static unsigned nr_blocks;
static uint32_t pages[MAX_HELD];
static unsigned nr_pages;

static void fail(const char *what)
{
	printf("FAILED seed %" PRIu64 " step %" PRIu64 ": %s\n", seed, step, what);
	exit(EXIT_FAILURE);
}

static uint32_t below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 32) * n >> 32);
}

/* --- the reference --- */

static int find_blocks(unsigned page, unsigned order, unsigned *found)
{
	int left, right;

	if (!memchr(used + page, 1, 1u << order)) {
		found[order]++;
		return (int)order;
	}
	if (!order)
		return -1;
	left = find_blocks(page, order - 1, found);
	right = find_blocks(page + (1u << (order - 1)), order - 1, found);
	return left > right ? left : right;
}

static void refresh(unsigned line)
{
	memset(counts[line], 0, sizeof(counts[line]));
	largest[line] = find_blocks(line * 512, 9, counts[line]);
	nr_free_in[line] = 0;
	for (unsigned page = line * 512; page < (line + 1) * 512; page++)
		nr_free_in[line] += !used[page];
}

static bool compatible(int a, int b)
{
	return (a == MF_HIGHATOMIC) == (b == MF_HIGHATOMIC);
}

/* 10 for half of a pair. */
static int line_order(unsigned line)
{
	if (largest[line] == 9 && largest[line ^ 1] == 9 && compatible(types[line], types[line ^ 1]))
		return 10;
	return largest[line];
}

/* The line of a type that serves an order: smallest largest block, lowest line; -1. */
static int preferred(int type, int order)
{
	int best = -1;

	for (unsigned line = 0; line < NR_LINES; line++)
		if (types[line] == type && line_order(line) >= order &&
		    (best < 0 || line_order(line) < line_order((unsigned)best)))
			best = (int)line;
	return best;
}

/* The smallest free block of the line that serves, lowest address. */
static unsigned best_block(unsigned line, unsigned order)
{
	for (unsigned size = order; size <= 9; size++)
		for (unsigned page = line * 512; page < (line + 1) * 512; page += 1u << size) {
			unsigned buddy_page = page ^ 1u << size;

			if (memchr(used + page, 1, 1u << size))
				continue;
			if (size == 9 || memchr(used + buddy_page, 1, 1u << size))
				return page;
		}
	fail("reference has no block");
	return 0;
}

static void mark_taken(unsigned page, unsigned nr)
{
	memset(used + page, 1, nr);
	for (unsigned line = page / 512; line <= (page + nr - 1) / 512; line++) {
		dirty[line] = true;
		refresh(line);
	}
}

static void mark_free(unsigned page, unsigned nr)
{
	unsigned line = page / 512;

	memset(used + page, 0, nr);
	refresh(line);
	if (largest[line] == 9) {
		stamps[line] = stamp;
		if (line_order(line) == 10)
			types[line ^ 1] = types[line];
	}
}

static unsigned page_of(uint32_t pfn)
{
	return pfn - BASE_LINE * 512;
}

static uint32_t pfn_of(unsigned page)
{
	return page + BASE_LINE * 512;
}

/* --- comparison --- */

static void compare_counts(void)
{
	uint64_t nr_free[MF_NR_MIGRATE_TYPES][MF_NR_ORDERS] = { { 0 } }, free_pages = 0;
	uint64_t line_types[MF_NR_MIGRATE_TYPES] = { 0 };

	for (unsigned line = 0; line < NR_LINES; line++) {
		for (unsigned order = 0; order < 9; order++)
			nr_free[types[line]][order] += counts[line][order];
		if (line_order(line) == 9)
			nr_free[types[line]][9]++;
		if (line_order(line) == 10 && !(line & 1))
			nr_free[types[line]][10]++;
		if (line >= 1 && line <= 10)
			line_types[types[line]]++;
		free_pages += nr_free_in[line];
	}
	if (memcmp(nr_free, buddy.nr_free, sizeof(nr_free)))
		fail("nr_free differs");
	if (buddy.nr_free_pages != free_pages)
		fail("nr_free_pages differs");
	if (memcmp(line_types, buddy.nr_blocks, sizeof(line_types)))
		fail("nr_blocks differs");
}

static void compare_all(void)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	uint64_t nr_dirty = 0;

	compare_counts();
	if (mf_buddy_check(&buddy, "model: ", &out)) {
		printf("%s", out.data);
		fail("mf_buddy_check");
	}
	mf_outbuf_free(&out);
	for (unsigned line = 0; line < NR_LINES; line++)
		nr_dirty += dirty[line];
	if (mf_buddy_dirty_lines(&buddy) != nr_dirty)
		fail("dirty lines differ");
	for (unsigned page = 0; page < NR_LINES * 512; page++)
		if (mf_buddy_page_is_free(&buddy, pfn_of(page)) == used[page])
			fail("page state differs");
	for (unsigned line = 1; line <= 10; line++)
		if ((int)mf_buddy_type(&buddy, pfn_of(line * 512)) != types[line])
			fail("type differs");
}

static void expect_find(int type)
{
	int any = -1, whole = -1;
	uint32_t pfn;

	for (int line = NR_LINES - 1; line >= 0; line--) {
		if (types[line] == type && largest[line] >= 0)
			any = line;
		if (types[line] == type && largest[line] == 9)
			whole = line;
	}
	if (mf_buddy_find_line(&buddy, (enum mf_migrate_type)type, &pfn)
		    ? any < 0 || page_of(pfn) / 512 != (unsigned)any
		    : any >= 0)
		fail("find_line");
	if (mf_buddy_find_free_line(&buddy, (enum mf_migrate_type)type, &pfn)
		    ? whole < 0 || page_of(pfn) / 512 != (unsigned)whole
		    : whole >= 0)
		fail("find_free_line");
}

/* --- operations --- */

static void hold(uint32_t pfn, unsigned order)
{
	if (order)
		blocks[nr_blocks++] = (struct held){ pfn, order };
	else
		pages[nr_pages++] = pfn;
}

/* The reference's take; false: none. */
static bool reference_take(int type, unsigned order, unsigned *page)
{
	int line = preferred(type, (int)order);

	if (line < 0)
		return false;
	*page = order == 10 ? (unsigned)line * 512 : best_block((unsigned)line, order);
	mark_taken(*page, 1u << order);
	return true;
}

static unsigned random_order(void)
{
	return below(3) ? below(4) : below(11);
}

static void do_take(void)
{
	int type = below(4) ? MF_MOVABLE : (int)below(4);
	unsigned order = random_order(), page;
	bool had = mf_buddy_has(&buddy, (enum mf_migrate_type)type, order);
	uint32_t pfn;

	if (mf_buddy_take(&buddy, (enum mf_migrate_type)type, order, &pfn)) {
		if (!had || !reference_take(type, order, &page) || pfn_of(page) != pfn)
			fail("take: another block");
		hold(pfn, order);
	} else if (had || reference_take(type, order, &page)) {
		fail("take: nothing, where the reference has a block");
	}
}

static void give_one(uint32_t pfn, unsigned order)
{
	mf_buddy_give(&buddy, pfn, order);
	if (order == 10) {
		mark_free(page_of(pfn) + 512, 512);
		order = 9;
	}
	mark_free(page_of(pfn), 1u << order);
}

static void do_give(void)
{
	unsigned i;

	if (nr_blocks && (below(2) || !nr_pages)) {
		i = below(nr_blocks);
		give_one(blocks[i].pfn, blocks[i].order);
		blocks[i] = blocks[--nr_blocks];
	} else if (nr_pages) {
		i = below(nr_pages);
		give_one(pages[i], 0);
		pages[i] = pages[--nr_pages];
	}
}

static void do_take_bulk(void)
{
	static uint32_t pfns[MAX_HELD];
	enum mf_migrate_type type = below(4) ? MF_MOVABLE : (enum mf_migrate_type)below(4);
	size_t n = below(8) ? below(200) : below(2500), got, wanted = 0;
	int line = -1;

	for (unsigned i = 0; i < NR_LINES; i++)
		if (types[i] == (int)type)
			wanted += nr_free_in[i];
	if (wanted > n)
		wanted = n;
	got = mf_buddy_take_bulk(&buddy, type, n, pfns);
	if (got != wanted)
		fail("take_bulk: count");
	for (size_t i = 0; i < got; i++) {
		unsigned page = page_of(pfns[i]);

		if (page >= NR_LINES * 512 || used[page])
			fail("take_bulk: page was not free");
		if ((int)(page / 512) != line) {
			if (line >= 0 && memchr(used + line * 512, 0, 512))
				fail("take_bulk: left a line early");
			if (line >= 0)
				refresh((unsigned)line);
			line = preferred((int)type, 0);
			if ((int)(page / 512) != line)
				fail("take_bulk: another line");
			dirty[line] = true;
		}
		used[page] = 1;
		hold(pfns[i], 0);
	}
	if (line >= 0)
		refresh((unsigned)line);
}

/* Contiguous pages of a line that is in use: they were free, of the type, in one line not wholly free. */
static void do_take_run(void)
{
	enum mf_migrate_type type = below(4) ? MF_MOVABLE : (enum mf_migrate_type)below(4);
	unsigned n = below(4) ? 1 + below(60) : 1 + below(600), line;
	uint32_t pfn;

	if (!mf_buddy_take_run(&buddy, type, n, &pfn))
		return;
	line = page_of(pfn) / 512;
	if (n >= 512 || page_of(pfn) + n > NR_LINES * 512 || page_of(pfn + n - 1) / 512 != line)
		fail("take_run: leaves its line");
	if (types[line] != (int)type || nr_free_in[line] == 512)
		fail("take_run: another type, or a whole line was broken");
	for (unsigned i = 0; i < n; i++) {
		if (used[page_of(pfn + i)])
			fail("take_run: page was not free");
		used[page_of(pfn + i)] = 1;
		hold(pfn + i, 0);
	}
	dirty[line] = true;
	refresh(line);
}

static int by_pfn(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void do_give_bulk(void)
{
	unsigned n = below(8) ? below(130) : below(2500), start;

	if (n > nr_pages)
		n = nr_pages;
	if (!n)
		return;
	if (below(2)) /* scattered; otherwise as they were taken */
		for (unsigned i = 0; i < n; i++) {
			unsigned a = nr_pages - 1 - i, b = below(nr_pages - i);
			uint32_t pfn = pages[a];

			pages[a] = pages[b];
			pages[b] = pfn;
		}
	start = nr_pages - n;
	if (!below(4))
		qsort(pages + start, n, sizeof(*pages), by_pfn);
	mf_buddy_give_bulk(&buddy, n, pages + start);
	for (unsigned i = start; i < nr_pages; i++)
		mark_free(page_of(pages[i]), 1);
	nr_pages = start;
}

static void set_reference_type(unsigned line, int type)
{
	bool pair;

	if (types[line] == type)
		return;
	types[line] = type;
	pair = line_order(line) == 10;
	if (pair)
		types[line ^ 1] = type;
}

static void do_set_type(void)
{
	unsigned line = 1 + below(10);
	enum mf_migrate_type type = (enum mf_migrate_type)below(4);

	mf_buddy_set_type(&buddy, pfn_of(line * 512 + below(512)), type);
	set_reference_type(line, (int)type);
}

/* The reference's claim: the line whose type changed, or -1; *boost. */
static int reference_claim(int type, const int *from, unsigned min_order, bool *boost)
{
	for (int order = 10; order >= (int)min_order; order--) {
		if (order < 4 && type == MF_MOVABLE)
			break;
		for (int i = 0; i < 2; i++) {
			int line = -1;
			unsigned worth;

			for (int j = NR_LINES - 1; j >= 0; j--)
				if (types[j] == from[i] && line_order((unsigned)j) == order)
					line = j;
			if (line < 0)
				continue;
			*boost = order < 9;
			worth = nr_free_in[line];
			if (type != MF_MOVABLE && from[i] != MF_MOVABLE)
				worth = 512;
			if (order >= 9 || (worth >= 256 && line > 1 && line < 10))
				return line;
		}
	}
	return -1;
}

static bool reference_fallback(int type, unsigned order, bool nofragment, unsigned *page,
			       struct mf_fallback_result *result)
{
	static const int froms[3][2] = { { MF_RECLAIMABLE, MF_MOVABLE },
					 { MF_RECLAIMABLE, MF_UNMOVABLE },
					 { MF_UNMOVABLE, MF_MOVABLE } };
	const int *from = froms[type];
	int line = reference_claim(type, from, nofragment && order < 9 ? 9 : order, &result->boost);

	result->claimed = line >= 0;
	if (line >= 0) {
		set_reference_type((unsigned)line, type);
		return reference_take(type, order, page);
	}
	result->boost = false;
	for (int size = (int)order; size <= 10 && !nofragment; size++)
		for (int i = 0; i < 2; i++) {
			line = preferred(from[i], (int)order);
			if (line >= 0 && line_order((unsigned)line) == size)
				return reference_take(from[i], order, page);
		}
	return false;
}

static void do_fallback(void)
{
	int type = (int)below(3);
	unsigned order = random_order(), page = 0;
	bool nofragment = !below(3), found, expected;
	struct mf_fallback_result result, reference;
	uint32_t pfn = 0;

	if (mf_buddy_has(&buddy, (enum mf_migrate_type)type, order))
		return;
	found = mf_buddy_take_fallback(&buddy, (enum mf_migrate_type)type, order, nofragment, &pfn, &result);
	expected = reference_fallback(type, order, nofragment, &page, &reference);
	if (found != expected || (found && pfn_of(page) != pfn))
		fail("fallback: another block");
	if (result.claimed != reference.claimed || result.boost != reference.boost)
		fail("fallback: another result");
	if (found)
		hold(pfn, order);
}

static void do_trim(void)
{
	uint32_t pfns[4], cursor = 0;
	uint16_t now = (uint16_t)(stamp + below(3)), age = (uint16_t)below(4);
	unsigned max = 1 + below(4), n = 0;
	unsigned got = mf_buddy_isolate(&buddy, now, age, 1 + below(3), &cursor, max, pfns);

	for (unsigned line = 0; line < NR_LINES && n < max; line++) {
		if (!dirty[line] || largest[line] != 9 || (uint16_t)(now - stamps[line]) < age)
			continue;
		if (n >= got || page_of(pfns[n]) != line * 512)
			fail("isolate: another line");
		memset(used + line * 512, 1, 512);
		refresh(line);
		isolated[line] = true;
		n++;
	}
	if (n != got || (got < max) != !cursor)
		fail("isolate: count or cursor");
}

static void do_release(void)
{
	unsigned line = below(NR_LINES);
	bool clean = below(2);

	if (!isolated[line])
		return;
	mf_buddy_release(&buddy, pfn_of(line * 512), clean);
	isolated[line] = false;
	dirty[line] = !clean;
	mark_free(line * 512, 512);
}

static void do_stamp(void)
{
	stamp = (uint16_t)(stamp + below(2));
	mf_buddy_set_stamp(&buddy, stamp);
	expect_find((int)below(4));
}

/* The zone fills and empties in waves, so that all densities are met. */
static void do_step(void)
{
	bool filling = step >> 9 & 1;
	unsigned kind = below(64);

	if (kind < 24)
		(filling ? do_take : do_give)();
	else if (kind < 36)
		(filling ? do_give : do_take)();
	else if (kind < 44)
		(filling ? do_take_bulk : do_give_bulk)();
	else if (kind < 49)
		(filling ? do_give_bulk : do_take_bulk)();
	else if (kind < 51)
		do_take_run();
	else if (kind < 54)
		do_fallback();
	else if (kind < 56)
		do_set_type();
	else if (kind < 58)
		do_trim();
	else if (kind < 62)
		do_release();
	else
		do_stamp();
}

static void start(void)
{
	if (mf_buddy_init(&buddy, &plat, START_PFN, NR_PAGES))
		fail("init");
	if (seed & 1) /* odd seeds: the bulk paths for CPUs without bit counting */
		buddy.tables->fast = false;
	memset(used, 1, sizeof(used));
	memset(used + page_of(START_PFN), 0, NR_PAGES);
	for (unsigned line = 0; line < NR_LINES; line++) {
		types[line] = MF_MOVABLE;
		refresh(line);
	}
	compare_all();
}

static void finish(void)
{
	uint64_t initial[MF_NR_ORDERS], end[MF_NR_ORDERS] = { 0 };
	struct mf_buddy fresh;

	while (nr_blocks || nr_pages)
		do_give();
	for (unsigned line = 0; line < NR_LINES; line++) {
		if (isolated[line])
			mf_buddy_release(&buddy, pfn_of(line * 512), true);
		if (line >= 1 && line <= 10)
			mf_buddy_set_type(&buddy, pfn_of(line * 512), MF_MOVABLE);
	}
	if (mf_buddy_init(&fresh, &plat, START_PFN, NR_PAGES))
		fail("init");
	memcpy(initial, fresh.nr_free[MF_MOVABLE], sizeof(initial));
	memcpy(end, buddy.nr_free[MF_MOVABLE], sizeof(end));
	if (memcmp(initial, end, sizeof(initial)) || buddy.nr_free_pages != NR_PAGES)
		fail("end state differs from the initial one");
	mf_buddy_destroy(&fresh);
	mf_buddy_destroy(&buddy);
}

int main(int argc, char **argv)
{
	uint64_t operations = argc > 2 ? strtoull(argv[2], NULL, 10) : 20000;

	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
	printf("model_buddy: seed %" PRIu64 ", %" PRIu64 " operations\n", seed, operations);
	state = seed * 0x9e3779b97f4a7c15ull + 1;
	start();
	for (step = 0; step < operations; step++) {
		do_step();
		compare_counts();
		if (step % 128 == 0)
			compare_all();
	}
	finish();
	printf("model_buddy: passed\n");
	return EXIT_SUCCESS;
}
