/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Weights from bandwidth: worked values, values of a real kernel, bounds.
 */
#include "data.h"
#include "policy/weights.h"
#include "unit.h"

#define ROWS 17

static mf_nodemask low_nodes(int count)
{
	return (UINT64_C(1) << count) - 1;
}

static void every_known_value(void)
{
	FILE *file = data_open("auto-weights.tsv");
	char line[DATA_LINE], *field[3];
	int rows = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	while (data_row(file, line, field, 3) == 3) {
		unsigned long long bandwidth[64], wanted[64];
		int nr = data_numbers(field[0], bandwidth, 64);
		uint64_t of_node[64] = { 0 };
		struct mf_weights weights;

		CU_ASSERT_EQUAL_FATAL(data_numbers(field[1], wanted, 64), nr);
		for (int i = 0; i < nr; i++)
			of_node[i] = bandwidth[i];
		mf_weights_from_bandwidth(of_node, low_nodes(nr), &weights);
		for (int i = 0; i < nr; i++) {
			if (weights.of[i] != wanted[i])
				printf("bandwidth %s: node%d has %u\n", field[0], i, weights.of[i]);
			CU_ASSERT_EQUAL(weights.of[i], wanted[i]);
		}
		rows++;
	}
	fclose(file);
	CU_ASSERT_EQUAL(rows, ROWS);
}

static void nodes_without_memory_do_not_count(void)
{
	uint64_t bandwidth[64] = { [0] = 9999, [3] = 300, [7] = 5, [60] = 100 };
	struct mf_weights weights;

	mf_weights_from_bandwidth(bandwidth, mf_node_bit(3) | mf_node_bit(60), &weights);
	for (int i = 0; i < 64; i++)
		CU_ASSERT_EQUAL(weights.of[i], i == 3 ? 3 : 1);
	mf_weights_from_bandwidth(bandwidth, 0, &weights);
	for (int i = 0; i < 64; i++)
		CU_ASSERT_EQUAL(weights.of[i], 1);
}

static void one_node_alone_has_one(void)
{
	uint64_t bandwidth[64] = { 25600 };
	struct mf_weights weights;

	mf_weights_from_bandwidth(bandwidth, 1, &weights);
	CU_ASSERT_EQUAL(weights.of[0], 1);
}

static void sixty_four_nodes(void)
{
	uint64_t bandwidth[64];
	struct mf_weights weights;

	for (int i = 0; i < 64; i++)
		bandwidth[i] = i ? 10 : 1000; /* 1000 of 1630: 19; each other is below 1 */
	mf_weights_from_bandwidth(bandwidth, ~UINT64_C(0), &weights);
	CU_ASSERT_EQUAL(weights.of[0], 19);
	for (int i = 1; i < 64; i++)
		CU_ASSERT_EQUAL(weights.of[i], 1);
}

static void huge_numbers_do_not_wrap(void)
{
	uint64_t bandwidth[64];
	struct mf_weights weights;

	for (int i = 0; i < 64; i++)
		bandwidth[i] = UINT64_MAX;
	mf_weights_from_bandwidth(bandwidth, ~UINT64_C(0), &weights);
	for (int i = 0; i < 64; i++)
		CU_ASSERT_EQUAL(weights.of[i], 1);
	bandwidth[1] = 1;
	mf_weights_from_bandwidth(bandwidth, low_nodes(2), &weights);
	CU_ASSERT_EQUAL(weights.of[0], 31);
	CU_ASSERT_EQUAL(weights.of[1], 1);
	bandwidth[0] = UINT64_C(3) << 50;
	bandwidth[1] = UINT64_C(1) << 50;
	mf_weights_from_bandwidth(bandwidth, low_nodes(2), &weights);
	CU_ASSERT_EQUAL(weights.of[0], 3); /* 24:8 */
	CU_ASSERT_EQUAL(weights.of[1], 1);
}

static const struct unit_test tests[] = {
	UNIT_TEST(every_known_value),	     UNIT_TEST(nodes_without_memory_do_not_count),
	UNIT_TEST(one_node_alone_has_one),   UNIT_TEST(sixty_four_nodes),
	UNIT_TEST(huge_numbers_do_not_wrap),
};

UNIT_MAIN("weights", tests)
