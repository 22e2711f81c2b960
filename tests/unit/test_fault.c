/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Failure points: the very visits that fail, counted and drawn. */
#include "unit.h"

#include "fault/fault.h"

#include <pthread.h>

static struct mf_fault fault;

/* Bit i: visit i + 1 of @nr failed. */
static uint64_t visit_some(enum mf_fault_point point, int nr)
{
	uint64_t failed = 0;

	for (int i = 0; i < nr; i++)
		failed |= (uint64_t)mf_fault_hit(&fault, point) << i;
	return failed;
}

static void test_nothing_armed(void)
{
	mf_fault_init(&fault);
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_buddy_alloc, 64), 0);
	CU_ASSERT_EQUAL(fault.point[MF_FAULT_buddy_alloc].visits, 0);
	CU_ASSERT_FALSE(mf_fault_fired(&fault));
}

static void test_nth(void)
{
	mf_fault_init(&fault);
	mf_fault_arm(&fault, MF_FAULT_pcp_refill, 1, 0);
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_pcp_refill, 10), 1);
	mf_fault_arm(&fault, MF_FAULT_pcp_refill, 3, 0);
	CU_ASSERT_FALSE(mf_fault_fired(&fault));
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_pcp_refill, 2), 0);
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_buddy_alloc, 9), 0); /* counted, but not this point */
	CU_ASSERT_FALSE(mf_fault_fired(&fault));
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_pcp_refill, 10), 1);
	CU_ASSERT_TRUE(mf_fault_fired(&fault));
	CU_ASSERT_EQUAL(fault.point[MF_FAULT_pcp_refill].visits, 12);
	CU_ASSERT_EQUAL(fault.point[MF_FAULT_pcp_refill].failures, 1);
	CU_ASSERT_EQUAL(fault.point[MF_FAULT_buddy_alloc].visits, 9);
	CU_ASSERT_EQUAL(fault.point[MF_FAULT_buddy_alloc].failures, 0);
}

static void test_every(void)
{
	mf_fault_init(&fault);
	mf_fault_arm(&fault, MF_FAULT_meta_alloc, 2, 3);
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_meta_alloc, 12), 0x492); /* 2, 5, 8, 11 */
	CU_ASSERT_EQUAL(fault.point[MF_FAULT_meta_alloc].failures, 4);
	mf_fault_arm(&fault, MF_FAULT_meta_alloc, 1, 1);
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_meta_alloc, 8), 0xff);
	mf_fault_arm(&fault, MF_FAULT_meta_alloc, 0, 1);
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_meta_alloc, 8), 0);
}

static void test_any(void)
{
	mf_fault_init(&fault);
	mf_fault_arm_any(&fault, 4);
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_arena_map, 2), 0);
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_arena_trim, 1), 0);
	CU_ASSERT_FALSE(mf_fault_fired(&fault));
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_bulk_node, 5), 1);
	CU_ASSERT_TRUE(mf_fault_fired(&fault));
	CU_ASSERT_EQUAL(fault.any_visits, 8);
	CU_ASSERT_EQUAL(fault.point[MF_FAULT_bulk_node].failures, 1);
	mf_fault_arm_any(&fault, 100); /* the next round of a model test */
	CU_ASSERT_FALSE(mf_fault_fired(&fault));
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_bulk_node, 50), 0);
	CU_ASSERT_FALSE(mf_fault_fired(&fault));
	mf_fault_arm_any(&fault, 0);
	CU_ASSERT_EQUAL(fault.armed, 0);
}

static void test_any_and_a_point_together(void)
{
	mf_fault_init(&fault);
	mf_fault_arm(&fault, MF_FAULT_buddy_alloc, 2, 0);
	mf_fault_arm_any(&fault, 4);
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_buddy_alloc, 6), 0xa);
	CU_ASSERT_EQUAL(fault.point[MF_FAULT_buddy_alloc].failures, 2);
}

static void test_disarm(void)
{
	mf_fault_init(&fault);
	mf_fault_arm(&fault, MF_FAULT_buddy_alloc, 1, 1);
	mf_fault_arm_any(&fault, 50);
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_buddy_alloc, 3), 7);
	mf_fault_disarm(&fault);
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_buddy_alloc, 60), 0);
	CU_ASSERT_FALSE(mf_fault_visit(&fault, MF_FAULT_buddy_alloc)); /* a thread that was late */
	CU_ASSERT_TRUE(mf_fault_fired(&fault));			       /* can still be asked */
	CU_ASSERT_EQUAL(fault.point[MF_FAULT_buddy_alloc].failures, 3);
	mf_fault_arm(&fault, MF_FAULT_arena_map, 1, 0); /* a new experiment */
	CU_ASSERT_FALSE(mf_fault_fired(&fault));
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_arena_map, 1), 1);
}

/* Two points armed one after the other do not disturb each other. */
static void test_two_points(void)
{
	mf_fault_init(&fault);
	mf_fault_arm(&fault, MF_FAULT_meta_alloc, 3, 0);
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_meta_alloc, 2), 0);
	mf_fault_arm(&fault, MF_FAULT_buddy_alloc, 1, 0);
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_buddy_alloc, 2), 1);
	CU_ASSERT_EQUAL(visit_some(MF_FAULT_meta_alloc, 2), 1);
}

static unsigned share_of(uint32_t permille, uint64_t seed, uint64_t *pattern)
{
	unsigned failed = 0;

	mf_fault_init(&fault);
	mf_fault_arm_share(&fault, MF_FAULT_buddy_alloc, permille, seed);
	*pattern = visit_some(MF_FAULT_buddy_alloc, 64);
	for (int i = 0; i < 10000; i++)
		failed += mf_fault_hit(&fault, MF_FAULT_buddy_alloc);
	CU_ASSERT_EQUAL(fault.point[MF_FAULT_buddy_alloc].failures, failed + __builtin_popcountll(*pattern));
	return failed;
}

static void test_share(void)
{
	uint64_t first, again, other;
	unsigned failed = share_of(300, 7, &first);

	CU_ASSERT(failed > 2800 && failed < 3200);
	CU_ASSERT_EQUAL(share_of(300, 7, &again), failed);
	CU_ASSERT_EQUAL(first, again);
	share_of(300, 8, &other);
	CU_ASSERT_NOT_EQUAL(first, other);
	CU_ASSERT_EQUAL(share_of(1000, 1, &first), 10000);
	CU_ASSERT_EQUAL(first, UINT64_MAX);
	CU_ASSERT_EQUAL(share_of(0, 1, &first), 0);
	CU_ASSERT_EQUAL(first, 0);
}

/* The first numbers of splitmix64 with seed 0, modulo 1000, are 535, 700 and 679. */
static void test_draw_is_splitmix64(void)
{
	static const uint64_t published[] = { UINT64_C(0xe220a8397b1dcdaf), UINT64_C(0x6e789e6aa1b965f4),
					      UINT64_C(0x06c45d188009454f) };

	for (int i = 0; i < 3; i++) {
		uint32_t value = published[i] % 1000;

		mf_fault_init(&fault);
		mf_fault_arm_share(&fault, MF_FAULT_meta_alloc, value,
				   0); /* fails below, not at, the value */
		CU_ASSERT_FALSE(visit_some(MF_FAULT_meta_alloc, i + 1) >> i & 1);
		mf_fault_arm_share(&fault, MF_FAULT_meta_alloc, value + 1, 0);
		CU_ASSERT_TRUE(visit_some(MF_FAULT_meta_alloc, i + 1) >> i & 1);
	}
}

static void *visit_in_thread(void *arg)
{
	for (int i = 0; i < 20000; i++)
		*(unsigned *)arg += mf_fault_hit(&fault, MF_FAULT_pcp_refill);
	return NULL;
}

static void test_threads(void)
{
	pthread_t threads[3];
	unsigned failed[3] = { 0 };

	mf_fault_init(&fault);
	mf_fault_arm(&fault, MF_FAULT_pcp_refill, 100, 100);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, visit_in_thread, &failed[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(failed[0] + failed[1] + failed[2], 600);
	CU_ASSERT_EQUAL(fault.point[MF_FAULT_pcp_refill].visits, 60000);
	CU_ASSERT_EQUAL(fault.point[MF_FAULT_pcp_refill].failures, 600);
}

static void test_names(void)
{
	CU_ASSERT_STRING_EQUAL(mf_fault_name(MF_FAULT_meta_alloc), "meta_alloc");
	CU_ASSERT_STRING_EQUAL(mf_fault_name(MF_FAULT_arena_trim), "arena_trim");
	CU_ASSERT_STRING_EQUAL(mf_fault_help(MF_FAULT_buddy_alloc), "taking a block from a zone");
	CU_ASSERT_PTR_NULL(mf_fault_name(MF_NR_FAULT_POINTS));
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_nothing_armed),
	UNIT_TEST(test_nth),
	UNIT_TEST(test_every),
	UNIT_TEST(test_any),
	UNIT_TEST(test_any_and_a_point_together),
	UNIT_TEST(test_disarm),
	UNIT_TEST(test_two_points),
	UNIT_TEST(test_share),
	UNIT_TEST(test_draw_is_splitmix64),
	UNIT_TEST(test_threads),
	UNIT_TEST(test_names),
};

UNIT_MAIN("fault", tests)
