/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counters: sums, threads that come and go, several sets, signal handlers, folding. */
#include "unit.h"

#include "stat/stat.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>

static struct mf_stat_set set_a, set_b;

static unsigned nr_shards(struct mf_stat_set *set)
{
	unsigned nr = 0;

	for (struct mf_stat_shard *shard = set->shards; shard; shard = shard->next)
		nr++;
	return nr;
}

static void test_one_thread(void)
{
	CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set_a, 3), 0);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_pgfree), 0);
	mf_stat_zone_add(&set_a, 0, MF_STAT_pgfree, 1);
	mf_stat_zone_add(&set_a, 2, MF_STAT_pgfree, 40);
	mf_stat_zone_add(&set_a, 2, MF_STAT_pgfree, UINT64_C(1) << 40);
	mf_stat_add(&set_a, MF_STAT_bulk_pages, 512);
	CU_ASSERT_EQUAL(mf_stat_zone_read(&set_a, 0, MF_STAT_pgfree), 1);
	CU_ASSERT_EQUAL(mf_stat_zone_read(&set_a, 1, MF_STAT_pgfree), 0);
	CU_ASSERT_EQUAL(mf_stat_zone_read(&set_a, 2, MF_STAT_pgfree), (UINT64_C(1) << 40) + 40);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_pgfree), (UINT64_C(1) << 40) + 41);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_bulk_pages), 512);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_bulk_requests), 0);
	CU_ASSERT_EQUAL(nr_shards(&set_a), 1);
	mf_stat_destroy(&set_a);
}

/* What one increment of row @id must show in row @row, told the long way round. */
static bool shows_in(int id, int row)
{
	bool turn = id == MF_STAT_alloc_turn_local_fast || id == MF_STAT_alloc_turn_other_fast;
	bool local = id == MF_STAT_alloc_local_fast || id == MF_STAT_alloc_turn_local_fast;
	bool fast = turn || local || id == MF_STAT_alloc_plain_fast;

	if (row == id)
		return true;
	switch (row) {
	case MF_STAT_pgfree:
		return id == MF_STAT_free_fast;
	case MF_STAT_pgalloc:
	case MF_STAT_pcp_hit:
		return fast;
	case MF_STAT_numa_hit:
		return turn || local;
	case MF_STAT_numa_local:
		return local;
	case MF_STAT_numa_interleave:
		return turn;
	case MF_STAT_numa_other:
		return id == MF_STAT_alloc_turn_other_fast;
	default:
		return false;
	}
}

/* Each row alone, so that a row that leaks into another is seen. */
static void test_folding(void)
{
	uint64_t sums[2 * MF_NR_STATS];

	for (int id = 0; id < MF_NR_STATS; id++) {
		CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set_a, 2), 0);
		mf_stat_zone_add(&set_a, 1, id, 5);
		mf_stat_snapshot(&set_a, sums);
		for (int row = 0; row < MF_NR_STATS; row++) {
			uint64_t wanted = shows_in(id, row) ? 5 : 0;

			CU_ASSERT_EQUAL(sums[row], 0);
			CU_ASSERT_EQUAL(sums[MF_NR_STATS + row], wanted);
			CU_ASSERT_EQUAL(mf_stat_zone_read(&set_a, 0, row), 0);
			CU_ASSERT_EQUAL(mf_stat_zone_read(&set_a, 1, row), wanted);
			CU_ASSERT_EQUAL(mf_stat_read(&set_a, row), wanted);
		}
		mf_stat_destroy(&set_a);
	}
}

static void test_folding_adds_up(void)
{
	CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set_a, 1), 0);
	mf_stat_zone_add(&set_a, 0, MF_STAT_alloc_local_fast, 100);
	mf_stat_zone_add(&set_a, 0, MF_STAT_alloc_plain_fast, 20);
	mf_stat_zone_add(&set_a, 0, MF_STAT_pgalloc, 3);
	mf_stat_zone_add(&set_a, 0, MF_STAT_numa_hit, 4);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_pgalloc), 123);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_pcp_hit), 120);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_numa_hit), 104);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_numa_local), 100);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_alloc_local_fast), 100);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_alloc_plain_fast), 20);
	mf_stat_destroy(&set_a);
}

static void *add_many(void *arg)
{
	for (int i = 0; i < 100000; i++)
		mf_stat_zone_add(&set_a, i % 2, MF_STAT_pgalloc, 3);
	return arg;
}

static void *add_alternating(void *arg)
{
	for (int i = 0; i < 20000; i++) {
		mf_stat_zone_add(&set_a, 1, MF_STAT_pgalloc, 1);
		mf_stat_zone_add(&set_b, 4, MF_STAT_pgalloc, 2);
	}
	return arg;
}

static void run_threads(void *(*body)(void *), int nr)
{
	pthread_t threads[8];

	for (int i = 0; i < nr; i++)
		pthread_create(&threads[i], NULL, body, NULL);
	for (int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
}

static void test_threads(void)
{
	CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set_a, 2), 0);
	run_threads(add_many, 4);
	CU_ASSERT_EQUAL(mf_stat_zone_read(&set_a, 0, MF_STAT_pgalloc), 600000);
	CU_ASSERT_EQUAL(mf_stat_zone_read(&set_a, 1, MF_STAT_pgalloc), 600000);
	CU_ASSERT(nr_shards(&set_a) >= 1 && nr_shards(&set_a) <= 4);
	mf_stat_destroy(&set_a);
}

/* A reader sees sums that only rise, and never an odd mixture of one row. */
static void test_reader_beside(void)
{
	uint64_t last = 0, sums[2 * MF_NR_STATS];
	pthread_t threads[2];
	bool rises = true;

	CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set_a, 2), 0);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, add_many, NULL);
	for (int i = 0; i < 1000; i++) {
		uint64_t now = mf_stat_read(&set_a, MF_STAT_pgalloc);

		mf_stat_snapshot(&set_a, sums);
		rises &= now >= last && now % 3 == 0 && sums[MF_STAT_pgalloc] % 3 == 0;
		rises &= sums[MF_STAT_pgalloc] + sums[MF_NR_STATS + MF_STAT_pgalloc] >= now;
		last = now;
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_TRUE(rises);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_pgalloc), 600000);
	mf_stat_destroy(&set_a);
}

static void *add_one(void *arg)
{
	mf_stat_zone_add(&set_a, 0, MF_STAT_pgfree, 1);
	return arg;
}

/* Threads one after the other: every count stays, and one shard is enough. */
static void test_threads_come_and_go(void)
{
	CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set_a, 1), 0);
	for (int i = 0; i < 200; i++)
		run_threads(add_one, 1);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_pgfree), 200);
	CU_ASSERT_EQUAL(nr_shards(&set_a), 1);
	for (int i = 0; i < 20; i++)
		run_threads(add_one, 8);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_pgfree), 360);
	CU_ASSERT(nr_shards(&set_a) <= 8);
	mf_stat_destroy(&set_a);
}

static void test_two_sets(void)
{
	CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set_a, 2), 0);
	CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set_b, 5), 0);
	add_alternating(NULL);
	CU_ASSERT_EQUAL(nr_shards(&set_a), 1);
	CU_ASSERT_EQUAL(nr_shards(&set_b), 1);
	run_threads(add_alternating, 3);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_pgalloc), 80000);
	CU_ASSERT_EQUAL(mf_stat_read(&set_b, MF_STAT_pgalloc), 160000);
	CU_ASSERT_EQUAL(mf_stat_zone_read(&set_b, 4, MF_STAT_pgalloc), 160000);
	mf_stat_destroy(&set_a);
	CU_ASSERT_EQUAL(mf_stat_read(&set_b, MF_STAT_pgalloc), 160000);
	mf_stat_destroy(&set_b);
}

/* The same struct again and again: a new set starts at 0, and the thread's memory is used again. */
static void test_destroyed_and_made_again(void)
{
	uint64_t *first_words = NULL;

	for (int round = 0; round < 1000; round++) {
		CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set_a, 1 + round % 3), 0);
		mf_stat_zone_add(&set_a, 0, MF_STAT_pgfree, 7);
		mf_stat_zone_add(&set_a, round % 3, MF_STAT_numa_miss, 1);
		CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_pgfree), 7);
		CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_numa_miss), 1);
		first_words = first_words ? first_words : mf_stat_words(&set_a);
		CU_ASSERT_PTR_EQUAL(mf_stat_words(&set_a), first_words);
		mf_stat_destroy(&set_a);
	}
}

static pthread_barrier_t barrier;

/* Counts in a set, outlives it, and counts in the next one at the same address. */
static void *outlive(void *arg)
{
	for (int round = 0; round < 20; round++) {
		pthread_barrier_wait(&barrier); /* the set is there */
		mf_stat_zone_add(&set_a, 0, MF_STAT_pgfree, 1);
		mf_stat_zone_add(&set_b, 0, MF_STAT_pgfree, 1);
		pthread_barrier_wait(&barrier); /* it may go */
	}
	return arg;
}

static void test_set_dies_before_threads(void)
{
	pthread_t threads[3];

	CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set_b, 1), 0);
	pthread_barrier_init(&barrier, NULL, 4);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, outlive, NULL);
	for (int round = 0; round < 20; round++) {
		CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set_a, 1 + round), 0);
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_pgfree), 3);
		CU_ASSERT_EQUAL(mf_stat_read(&set_b, MF_STAT_pgfree), 3 * (uint64_t)(round + 1));
		mf_stat_destroy(&set_a);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(nr_shards(&set_b), 3);
	pthread_barrier_destroy(&barrier);
	mf_stat_destroy(&set_b);
}

static volatile sig_atomic_t nr_signals;

/* Counts for both sets, so that the interrupted thread's last shard changes under it. */
static void count_in_handler(int number)
{
	(void)number;
	mf_stat_zone_add(&set_b, 0, MF_STAT_pgfree, 1);
	mf_stat_zone_add(&set_a, 0, MF_STAT_pgfree, 1);
	nr_signals++;
}

static void tick_every(int microseconds)
{
	struct itimerval timer = { { 0, microseconds }, { 0, microseconds } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Whole rounds with fresh sets: the handler also falls into the making of shards. */
static void test_signal_handler(void)
{
	struct sigaction action = { .sa_handler = count_in_handler };
	uint64_t added = 0, seen_a, seen_b;

	CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set_a, 1), 0);
	CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set_b, 1), 0);
	nr_signals = 0;
	sigaction(SIGALRM, &action, NULL);
	tick_every(50);
	while (nr_signals < 2000) {
		mf_stat_zone_add(&set_a, 0, MF_STAT_pgfree, 1);
		added++;
	}
	tick_every(0);
	signal(SIGALRM, SIG_IGN);
	seen_a = mf_stat_read(&set_a, MF_STAT_pgfree);
	seen_b = mf_stat_read(&set_b, MF_STAT_pgfree);
	CU_ASSERT_EQUAL(seen_a, added + (uint64_t)nr_signals);
	CU_ASSERT_EQUAL(seen_b, (uint64_t)nr_signals);
	mf_stat_destroy(&set_a);
	mf_stat_destroy(&set_b);
}

static void *first_shard_under_fire(void *arg)
{
	mf_stat_zone_add(&set_a, 0, MF_STAT_pgalloc, 1);
	return arg;
}

/* Signals that hit threads while they make, take over and give back their shards. */
static void test_signal_in_the_slow_path(void)
{
	struct sigaction action = { .sa_handler = count_in_handler };

	CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set_a, 1), 0);
	CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set_b, 1), 0);
	nr_signals = 0;
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 1000; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, first_shard_under_fire, NULL);
		pthread_kill(thread, SIGUSR1);
		pthread_join(thread, NULL);
	}
	signal(SIGUSR1, SIG_DFL);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_pgalloc), 1000);
	CU_ASSERT_EQUAL(mf_stat_read(&set_a, MF_STAT_pgfree), (uint64_t)nr_signals);
	CU_ASSERT_EQUAL(mf_stat_read(&set_b, MF_STAT_pgfree), (uint64_t)nr_signals);
	CU_ASSERT(nr_shards(&set_a) <= 10);
	mf_stat_destroy(&set_a);
	mf_stat_destroy(&set_b);
}

static void test_rows(void)
{
	CU_ASSERT_STRING_EQUAL(mf_stat_rows[MF_STAT_numa_hit].name, "numa_hit");
	CU_ASSERT_STRING_EQUAL(mf_stat_rows[MF_STAT_numa_hit].unit, "pages");
	CU_ASSERT_EQUAL(mf_stat_rows[MF_STAT_numa_hit].scope, MF_STAT_ZONE);
	CU_ASSERT_STRING_EQUAL(mf_stat_rows[MF_STAT_alloc_fail].unit, "calls");
	CU_ASSERT_EQUAL(mf_stat_rows[MF_STAT_alloc_fail].scope, MF_STAT_GLOBAL);
	for (int i = 0; i < MF_NR_STATS; i++) {
		CU_ASSERT(mf_stat_rows[i].help[0] != 0);
		for (int j = 0; j < i; j++)
			CU_ASSERT_STRING_NOT_EQUAL(mf_stat_rows[i].name, mf_stat_rows[j].name);
	}
}

/* Counted by CPU, read as part of the zone's rows; a CPU without a zone of its own counts nowhere. */
static void columns_are_rows_of_the_cpus_zone(void)
{
	static const int16_t cpu_zone[] = { 1, 0, -1 };
	uint64_t sums[2 * MF_NR_STATS];
	struct mf_stat_set set;
	struct mf_stat_shard *shard;

	CU_ASSERT_EQUAL_FATAL(mf_stat_init(&set, 2), 0);
	set.cpu_zone = cpu_zone;
	set.nr_cpus = 3;
	mf_stat_zone_add(&set, 1, MF_STAT_pgfree, 5);
	shard = mf_stat_current;
	CU_ASSERT_PTR_EQUAL_FATAL(shard->set, &set);
	mf_stat_word_add(&shard->cpu[0][MF_STAT_COLUMN_FREE], 7);
	mf_stat_word_add(&shard->cpu[0][MF_STAT_COLUMN_LOCAL], 11);
	mf_stat_word_add(&shard->cpu[1][MF_STAT_COLUMN_TURN], 13);
	mf_stat_word_add(&shard->cpu[1][MF_STAT_COLUMN_PLAIN], 17);
	CU_ASSERT_EQUAL(mf_stat_zone_read(&set, 1, MF_STAT_pgfree), 12);
	CU_ASSERT_EQUAL(mf_stat_zone_read(&set, 1, MF_STAT_numa_hit), 11);
	CU_ASSERT_EQUAL(mf_stat_zone_read(&set, 0, MF_STAT_numa_interleave), 13);
	CU_ASSERT_EQUAL(mf_stat_zone_read(&set, 0, MF_STAT_pgalloc), 30);
	CU_ASSERT_EQUAL(mf_stat_zone_read(&set, 0, MF_STAT_pgfree), 0);
	mf_stat_snapshot(&set, sums);
	for (unsigned zone = 0; zone < 2; zone++)
		for (unsigned id = 0; id < MF_NR_STATS; id++)
			CU_ASSERT_EQUAL(sums[zone * MF_NR_STATS + id],
					mf_stat_zone_read(&set, zone, (enum mf_stat_id)id));
	mf_stat_destroy(&set);
}

static const struct unit_test tests[] = {
	UNIT_TEST(columns_are_rows_of_the_cpus_zone),
	UNIT_TEST(test_one_thread),
	UNIT_TEST(test_folding),
	UNIT_TEST(test_folding_adds_up),
	UNIT_TEST(test_threads),
	UNIT_TEST(test_reader_beside),
	UNIT_TEST(test_threads_come_and_go),
	UNIT_TEST(test_two_sets),
	UNIT_TEST(test_destroyed_and_made_again),
	UNIT_TEST(test_set_dies_before_threads),
	UNIT_TEST(test_signal_handler),
	UNIT_TEST(test_signal_in_the_slow_path),
	UNIT_TEST(test_rows),
};

UNIT_MAIN("stat", tests)
