/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the benchmarks share: a clock, order statistics, random numbers, and
 * what one piece of work is (a job) and yields (a result), for our allocator
 * and for the rivals alike.  The loops that carry a job out are in jobs.h.
 */
#ifndef MF_BENCH_H
#define MF_BENCH_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum bench_kind {
	BENCH_PAIR,    /* take one, give it back */
	BENCH_BATCH,   /* take `batch` one by one, then give them back one by one */
	BENCH_BULK,    /* the same in two calls; ours only */
	BENCH_RANDOM,  /* take `count` one by one, give them back in random order */
	BENCH_THREADS, /* a pair on each of two CPUs at once */
	BENCH_HANDOFF, /* taken on one CPU, given back on the other, at the same time */
	BENCH_KEEP,    /* take `count`, write them, give them back: the memory, not the time */
};

struct bench_job {
	enum bench_kind kind;
	unsigned order;
	size_t batch; /* PAIR: pages of a block if it has not 2^order, else 0 */
	size_t count; /* blocks in all (THREADS: each) */
	size_t bytes; /* of an object; 0: blocks of pages */
};

struct bench_result {
	double ns;	/* RANDOM: the giving back alone; else take and give, a block */
	double take_ns; /* RANDOM: the taking; else 0 */
	/* KEEP: bytes resident beyond those of before: all held, all freed, given up on demand; else 0 */
	double held, kept, purged;
};

/* CPU time of the calling thread: a busy machine disturbs it least. */
static inline double bench_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* What reading the clock adds to a span. */
static inline double bench_clock_cost(void)
{
	double best = 1e9;

	for (int i = 0; i < 200; i++) {
		double start = bench_now(), span = bench_now() - start;

		best = span < best ? span : best;
	}
	return best;
}

static inline void bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static inline uint64_t bench_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline size_t bench_random_below(uint64_t *state, size_t n)
{
	return (size_t)((bench_random(state) >> 32) * n >> 32);
}

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline void bench_sort(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), bench_compare);
}

/* Of sorted values; 0 if there are none. */
static inline double bench_quantile(const double *values, size_t n, unsigned percent)
{
	return n ? values[(n - 1) * percent / 100] : 0;
}

/* What chunks of several sides, run in turn, took; sorted by bench_race_finish(). */
#define BENCH_RACE_SIDES 7
#define BENCH_RACE_ROUNDS 40

struct bench_race {
	double ns[BENCH_RACE_SIDES][BENCH_RACE_ROUNDS];
	double ratio[BENCH_RACE_SIDES][BENCH_RACE_ROUNDS]; /* side over side 0, round by round */
	unsigned rounds;
};

static inline void bench_race_finish(struct bench_race *race)
{
	for (unsigned i = 0; i < BENCH_RACE_SIDES; i++) {
		bench_sort(race->ns[i], race->rounds);
		bench_sort(race->ratio[i], race->rounds);
	}
}

static inline double bench_race_quantile(const struct bench_race *race, unsigned side, unsigned percent)
{
	return bench_quantile(race->ns[side], race->rounds, percent);
}

/* The median of the rounds' ratios: steadier than the ratio of medians. */
static inline double bench_race_ratio(const struct bench_race *race, unsigned side)
{
	return bench_quantile(race->ratio[side], race->rounds, 50);
}

static inline void *bench_alloc(size_t n, size_t size)
{
	void *at = calloc(n, size);

	if (!at) {
		fprintf(stderr, "not enough memory for the benchmark\n");
		exit(2);
	}
	return at;
}

#endif
