/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Nanoseconds of CPU time of the buddy allocator alone, no lock, no list before it.
 * Pairs are the best of 10 parts.  Prints "name value unit" lines.  Arguments: [scale], rounds relative to the
 * default 100; 1 is a smoke run.
 */
#include "page/buddy.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define MIB_PAGES 256u

static unsigned scale = 100;

static void *meta_alloc(struct mf_plat *plat, size_t bytes)
{
	void *at =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

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

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* What reading the clock adds to a measured span. */
static double clock_ns(void)
{
	double best = 1e9;

	for (unsigned i = 0; i < 1000; i++) {
		double start = now_ns(), span = now_ns() - start;

		best = span < best ? span : best;
	}
	return best;
}

static uint64_t random_state = 88172645463325252ull;

static uint32_t random_below(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state >> 32) * n >> 32);
}

static void shuffle(uint32_t *pfns, size_t n)
{
	for (size_t i = n; i > 1; i--) {
		size_t j = random_below((uint32_t)i);
		uint32_t pfn = pfns[j];

		pfns[j] = pfns[i - 1];
		pfns[i - 1] = pfn;
	}
}

static void make(struct mf_buddy *buddy, uint64_t pages)
{
	if (mf_buddy_init(buddy, &plat, 0, pages))
		exit(2);
}

/* Takes everything; the memory of the array is touched before. */
static uint32_t *take_all(struct mf_buddy *buddy, size_t *n)
{
	uint32_t *pfns;

	*n = buddy->nr_free_pages;
	pfns = malloc(*n * sizeof(*pfns));
	if (!pfns)
		exit(2);
	for (size_t got = 0; got < *n;)
		got += mf_buddy_take_bulk(buddy, MF_MOVABLE, *n - got < 63 ? *n - got : 63, pfns + got);
	return pfns;
}

static void bench_init(void)
{
	struct mf_buddy zones[8];
	double start = now_ns();

	for (unsigned i = 0; i < 8; i++)
		make(&zones[i], 128ull * 1024 * MIB_PAGES);
	printf("init_8x128GiB %.1f us\n", (now_ns() - start) / 1000);
	for (unsigned i = 0; i < 8; i++)
		mf_buddy_destroy(&zones[i]);
}

/* Hot pairs; @split: one page of the zone is in use, so that blocks of all orders exist. */
static void bench_pair(unsigned order, bool split)
{
	unsigned rounds = 1000 * scale;
	struct mf_buddy buddy;
	uint32_t page, pfn;
	double start, ns, best = 1e9;

	make(&buddy, 1024 * MIB_PAGES);
	if (split)
		mf_buddy_take(&buddy, MF_MOVABLE, 0, &page);
	for (unsigned part = 0; part < 10; part++) {
		start = now_ns();
		for (unsigned i = 0; i < rounds; i++) {
			mf_buddy_take(&buddy, MF_MOVABLE, order, &pfn);
			mf_buddy_give(&buddy, pfn, order);
		}
		ns = (now_ns() - start) / rounds;
		best = ns < best ? ns : best;
	}
	printf("pair_order%u_%s %.2f ns (take and give)\n", order, split ? "split_zone" : "fresh_zone", best);
	mf_buddy_destroy(&buddy);
}

/* A stack of 512 blocks taken, then given in random order: blocks split and merge. */
static void bench_stack(unsigned order)
{
	unsigned rounds = 40 * scale;
	uint32_t pfns[512];
	struct mf_buddy buddy;
	double take = 0, give = 0, start, clock = clock_ns();

	make(&buddy, 4096 * MIB_PAGES);
	for (unsigned round = 0; round < rounds; round++) {
		start = now_ns();
		for (unsigned i = 0; i < 512; i++)
			mf_buddy_take(&buddy, MF_MOVABLE, order, &pfns[i]);
		take += now_ns() - start;
		shuffle(pfns, 512);
		start = now_ns();
		for (unsigned i = 0; i < 512; i++)
			mf_buddy_give(&buddy, pfns[i], order);
		give += now_ns() - start;
	}
	printf("stack512_order%u take %.2f ns, give in random order %.2f ns\n", order,
	       (take / rounds - clock) / 512, (give / rounds - clock) / 512);
	mf_buddy_destroy(&buddy);
}

static void bench_bulk(size_t n, bool in_order)
{
	unsigned rounds = 2000 * scale / 10;
	static uint32_t pfns[4096];
	struct mf_buddy buddy;
	double take = 0, give = 0, start, clock = clock_ns();

	make(&buddy, 1024 * MIB_PAGES);
	for (unsigned i = 0; i < rounds; i++) {
		start = now_ns();
		mf_buddy_take_bulk(&buddy, MF_MOVABLE, n, pfns);
		take += now_ns() - start;
		if (!in_order)
			shuffle(pfns, n);
		start = now_ns();
		mf_buddy_give_bulk(&buddy, n, pfns);
		give += now_ns() - start;
	}
	printf("bulk%zu_%s take %.2f ns, give %.2f ns a page\n", n, in_order ? "in_order" : "shuffled",
	       (take / rounds - clock) / (double)n, (give / rounds - clock) / (double)n);
	mf_buddy_destroy(&buddy);
}

static void bench_random_give(unsigned mib, size_t batch)
{
	struct mf_buddy buddy;
	uint32_t *pfns;
	size_t n;
	double start, take, give = 0, retake;

	make(&buddy, (uint64_t)mib * MIB_PAGES);
	free(take_all(&buddy, &n));
	mf_buddy_destroy(&buddy);

	make(&buddy, (uint64_t)mib * MIB_PAGES);
	start = now_ns();
	pfns = take_all(&buddy, &n);
	take = now_ns() - start;
	shuffle(pfns, n);
	start = now_ns();
	for (size_t i = 0; i < n; i += batch)
		mf_buddy_give_bulk(&buddy, n - i < batch ? n - i : batch, pfns + i);
	give = now_ns() - start;
	if (buddy.nr_free[MF_MOVABLE][10] * 1024 != n)
		printf("ERROR: not merged\n");
	/* Half of it taken out of a zone of scattered free pages. */
	for (size_t got = 0; got < n;)
		got += mf_buddy_take_bulk(&buddy, MF_MOVABLE, n - got < 63 ? n - got : 63, pfns + got);
	shuffle(pfns, n);
	for (size_t i = 0; i < n / 2; i += batch)
		mf_buddy_give_bulk(&buddy, n / 2 - i < batch ? n / 2 - i : batch, pfns + i);
	start = now_ns();
	for (size_t got = 0; got < n / 2;)
		got += mf_buddy_take_bulk(&buddy, MF_MOVABLE, n / 2 - got < 63 ? n / 2 - got : 63,
					  pfns + got);
	retake = now_ns() - start;
	printf("random_give_%uMiB_batch%zu %.2f ns a page (take all first time %.2f, take scattered half %.2f)\n",
	       mib, batch, give / (double)n, take / (double)n, retake / (double)(n / 2));
	free(pfns);
	mf_buddy_destroy(&buddy);
}

/* 1 GiB: percent of the pages in use, rounds of freeing a tenth of them at random and taking as many. */
static void bench_churn(unsigned percent)
{
	unsigned rounds = scale;
	struct mf_buddy buddy;
	uint32_t *pfns;
	size_t n, tenth;
	uint64_t ideal, found;

	make(&buddy, 1024 * MIB_PAGES);
	n = buddy.nr_pages * percent / 100;
	tenth = n / 10;
	pfns = malloc(n * sizeof(*pfns));
	if (!pfns)
		exit(2);
	for (size_t got = 0; got < n;)
		got += mf_buddy_take_bulk(&buddy, MF_MOVABLE, n - got < 63 ? n - got : 63, pfns + got);
	for (unsigned round = 0; round < rounds; round++) {
		shuffle(pfns, n);
		for (size_t i = 0; i < tenth; i += 63)
			mf_buddy_give_bulk(&buddy, tenth - i < 63 ? tenth - i : 63, pfns + i);
		for (size_t i = 0; i < tenth;)
			i += mf_buddy_take_bulk(&buddy, MF_MOVABLE, tenth - i < 63 ? tenth - i : 63,
						pfns + i);
	}
	ideal = buddy.nr_free_pages / 512;
	found = buddy.nr_free[MF_MOVABLE][9] + 2 * buddy.nr_free[MF_MOVABLE][10];
	printf("churn_%u%% free 2 MiB blocks %llu of ideal %llu = %.1f %%\n", percent,
	       (unsigned long long)found, (unsigned long long)ideal, 100.0 * (double)found / (double)ideal);
	free(pfns);
	mf_buddy_destroy(&buddy);
}

int main(int argc, char **argv)
{
	static const unsigned mibs[] = { 256, 1024, 16384 }, percents[] = { 25, 50, 75, 90 };

	if (argc > 1)
		scale = (unsigned)atoi(argv[1]);
	if (!scale)
		return 2;
	bench_init();
	for (unsigned order = 0; order <= 9; order += order ? 6 : 3) {
		bench_pair(order, false);
		bench_pair(order, true);
		if (order)
			bench_stack(order);
	}
	bench_stack(0);
	bench_bulk(64, true);
	bench_bulk(64, false);
	bench_bulk(512, true);
	bench_bulk(512, false);
	for (unsigned i = 0; i < 3 - (scale < 100); i++) {
		bench_random_give(mibs[i], 63);
		bench_random_give(mibs[i], 2016);
	}
	for (unsigned i = 0; i < 4; i++)
		bench_churn(percents[i]);
	return 0;
}
