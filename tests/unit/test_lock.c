/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ranked locks: exclusion, depth, and the order check. */
#include "unit.h"

#include "base/lock.h"

#include <signal.h>

static int nr_violations;
static enum mf_lock_rank last_held, last_wanted;

static void note_violation(enum mf_lock_rank held, enum mf_lock_rank wanted)
{
	nr_violations++;
	last_held = held;
	last_wanted = wanted;
}

static void test_depth(void)
{
	struct mf_lock config, zone;

	mf_lock_init(&config, MF_LOCK_CONFIG);
	mf_lock_init(&zone, MF_LOCK_ZONE);
	CU_ASSERT_EQUAL(mf_lock_depth(), 0);
	mf_lock_acquire(&config);
	CU_ASSERT_EQUAL(mf_lock_depth(), 1);
	CU_ASSERT_TRUE(mf_lock_try(&zone));
	CU_ASSERT_EQUAL(mf_lock_depth(), 2);
	mf_lock_assert_held(&config);
	mf_lock_assert_held(&zone);
	mf_lock_release(&config); /* any order of release */
	CU_ASSERT_EQUAL(mf_lock_depth(), 1);
	mf_lock_assert_held(&zone);
	mf_lock_release(&zone);
	CU_ASSERT_EQUAL(mf_lock_depth(), 0);
	mf_lock_destroy(&config);
	mf_lock_destroy(&zone);
}

static void *try_elsewhere(void *arg)
{
	struct mf_lock *lock = arg;
	bool got = mf_lock_try(lock);

	if (got)
		mf_lock_release(lock);
	return mf_lock_depth() ? NULL : (void *)(got ? "got" : "busy");
}

static const char *outcome_elsewhere(struct mf_lock *lock)
{
	pthread_t thread;
	void *outcome = NULL;

	pthread_create(&thread, NULL, try_elsewhere, lock);
	pthread_join(thread, &outcome);
	return outcome ? outcome : "depth left behind";
}

static void test_try(void)
{
	struct mf_lock lock;

	mf_lock_init(&lock, MF_LOCK_PCP);
	mf_lock_acquire(&lock);
	CU_ASSERT_STRING_EQUAL(outcome_elsewhere(&lock), "busy");
	mf_lock_release(&lock);
	CU_ASSERT_STRING_EQUAL(outcome_elsewhere(&lock), "got");
	mf_lock_destroy(&lock);
}

static struct {
	struct mf_lock lock;
	long count;
} shared;

static void *count_up(void *arg)
{
	for (int i = 0; i < 50000; i++) {
		mf_lock_acquire(&shared.lock);
		shared.count++;
		mf_lock_release(&shared.lock);
	}
	return arg;
}

static void test_exclusion(void)
{
	pthread_t threads[3];

	mf_lock_init(&shared.lock, MF_LOCK_ZONE);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, count_up, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(shared.count, 150000);
	mf_lock_destroy(&shared.lock);
}

static struct mf_lock *signal_lock;
static unsigned signal_depth;
static bool signal_got;

static void on_signal(int number)
{
	(void)number;
	signal_depth = mf_lock_depth();
	signal_got = mf_lock_try(signal_lock);
	if (signal_got)
		mf_lock_release(signal_lock);
}

static void test_handler_sees_holder(void)
{
	struct mf_lock held, other;

	mf_lock_init(&held, MF_LOCK_ZONE);
	mf_lock_init(&other, MF_LOCK_ZONE);
	signal(SIGUSR1, on_signal);
	mf_lock_acquire(&held);
	signal_lock = &held;
	raise(SIGUSR1);
	CU_ASSERT_EQUAL(signal_depth, 1);
	CU_ASSERT_FALSE(signal_got);
	signal_lock = &other;
	raise(SIGUSR1);
	CU_ASSERT_TRUE(signal_got);
	CU_ASSERT_EQUAL(mf_lock_depth(), 1);
	mf_lock_release(&held);
	raise(SIGUSR1);
	CU_ASSERT_EQUAL(signal_depth, 0);
	signal(SIGUSR1, SIG_DFL);
	mf_lock_destroy(&held);
	mf_lock_destroy(&other);
}

/* Every pair of ranks: the second may be entered unless it is lower, or the same and not PCP or ZONE. */
static void test_order_of_every_pair(void)
{
	mf_lock_violation_fn *old = mf_lock_set_violation(note_violation);

	for (int a = 0; a < MF_NR_LOCK_RANKS; a++) {
		for (int b = 0; b < MF_NR_LOCK_RANKS; b++) {
			struct mf_lock first = { .rank = a }, second = { .rank = b };
			bool wrong = b < a || (b == a && b != MF_LOCK_PCP && b != MF_LOCK_ZONE);

			nr_violations = 0;
			mf_lock_order_enter(&first, false);
			CU_ASSERT_EQUAL(nr_violations, 0);
			mf_lock_order_enter(&second, false);
			CU_ASSERT_EQUAL(nr_violations, wrong);
			CU_ASSERT(!wrong || ((int)last_held == a && (int)last_wanted == b));
			mf_lock_order_leave(&first);
			mf_lock_order_leave(&second);
		}
	}
	CU_ASSERT_PTR_EQUAL(mf_lock_set_violation(old), note_violation);
}

static void test_order_is_of_the_highest(void)
{
	struct mf_lock zone = { .rank = MF_LOCK_ZONE }, task = { .rank = MF_LOCK_TASK };
	struct mf_lock pcp = { .rank = MF_LOCK_PCP };
	mf_lock_violation_fn *old = mf_lock_set_violation(note_violation);

	nr_violations = 0;
	mf_lock_order_enter(&zone, false);
	mf_lock_order_enter(&task, true); /* tried: no violation */
	CU_ASSERT_EQUAL(nr_violations, 0);
	mf_lock_order_enter(&pcp, false); /* above the last one, below the highest */
	CU_ASSERT_EQUAL(nr_violations, 1);
	CU_ASSERT_EQUAL(last_held, MF_LOCK_ZONE);
	CU_ASSERT_EQUAL(last_wanted, MF_LOCK_PCP);
	mf_lock_order_leave(&pcp);
	mf_lock_order_leave(&zone);
	CU_ASSERT_FALSE(mf_lock_order_holds(&zone));
	CU_ASSERT_TRUE(mf_lock_order_holds(&task));
	mf_lock_order_enter(&pcp, false); /* only TASK is left */
	CU_ASSERT_EQUAL(nr_violations, 1);
	mf_lock_order_leave(&task);
	mf_lock_order_leave(&pcp);
	CU_ASSERT_FALSE(mf_lock_order_holds(&pcp));
	mf_lock_set_violation(old);
}

/* What acquire does with it depends on the build: a debug build reports, a release build pays nothing. */
static void test_order_in_acquire(void)
{
	struct mf_lock zone, task;
	mf_lock_violation_fn *old = mf_lock_set_violation(note_violation);

	mf_lock_init(&zone, MF_LOCK_ZONE);
	mf_lock_init(&task, MF_LOCK_TASK);
	nr_violations = 0;
	mf_lock_acquire(&zone);
	mf_lock_acquire(&task);
#ifdef MF_DEBUG
	CU_ASSERT_EQUAL(nr_violations, 1);
	CU_ASSERT_TRUE(mf_lock_order_holds(&zone));
#else
	CU_ASSERT_EQUAL(nr_violations, 0);
	CU_ASSERT_FALSE(mf_lock_order_holds(&zone));
#endif
	mf_lock_release(&task);
	mf_lock_release(&zone);
	mf_lock_set_violation(old);
	mf_lock_destroy(&zone);
	mf_lock_destroy(&task);
}

static void test_rank_names(void)
{
	CU_ASSERT_STRING_EQUAL(mf_lock_rank_name(MF_LOCK_CTL), "CTL");
	CU_ASSERT_STRING_EQUAL(mf_lock_rank_name(MF_LOCK_LIVE), "LIVE");
	CU_ASSERT_STRING_EQUAL(mf_lock_rank_name(MF_LOCK_PCP), "PCP");
	CU_ASSERT_STRING_EQUAL(mf_lock_rank_name(MF_LOCK_WAIT), "WAIT");
	CU_ASSERT_STRING_EQUAL(mf_lock_rank_name(MF_NR_LOCK_RANKS), "none");
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_depth),
	UNIT_TEST(test_try),
	UNIT_TEST(test_exclusion),
	UNIT_TEST(test_handler_sees_holder),
	UNIT_TEST(test_order_of_every_pair),
	UNIT_TEST(test_order_is_of_the_highest),
	UNIT_TEST(test_order_in_acquire),
	UNIT_TEST(test_rank_names),
};

UNIT_MAIN("lock", tests)
