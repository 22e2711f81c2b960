/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rotation by numbers: single blocks, bulks, mixtures, what kernels and
 * withdrawn patches got wrong, and the rule for ranges.  Random mixtures are in
 * tests/model/model_policy.c, a real kernel's placements in test_vectors.c.
 */
#include "policy/policy.h"
#include "unit.h"

#define WEIGHTED MF_MPOL_WEIGHTED_INTERLEAVE
#define PLAIN MF_MPOL_INTERLEAVE

/* A task under test: its policy, its rotation, and how many blocks each node got. */
struct subject {
	struct mf_policy policy;
	struct mf_weights weights;
	struct mf_rotation rotation;
	uint64_t got[64];
};

static struct subject fresh(enum mf_policy_mode mode, mf_nodemask nodes, const unsigned *weights)
{
	struct subject s = { .policy = { .mode = mode, .nodes = nodes }, .rotation = MF_ROTATION_INIT };

	memset(s.weights.of, 1, sizeof(s.weights.of));
	if (weights)
		MF_FOR_EACH_NODE(node, nodes)
			s.weights.of[node] = *weights++;
	return s;
}

static struct subject two(unsigned weight0, unsigned weight1)
{
	const unsigned weights[] = { weight0, weight1 };

	return fresh(WEIGHTED, 3, weights);
}

static int single(struct subject *s)
{
	int peeked = mf_policy_peek(&s->policy, &s->weights, s->rotation);
	int node = mf_policy_step(&s->policy, &s->weights, &s->rotation);

	CU_ASSERT_EQUAL(peeked, node);
	s->got[node]++;
	return node;
}

static struct mf_policy_shares bulk(struct subject *s, uint64_t n)
{
	struct mf_policy_shares shares;

	mf_policy_bulk(&s->policy, &s->weights, s->rotation, n, &shares);
	mf_policy_advance(&s->policy, &s->weights, &s->rotation, n);
	CU_ASSERT(shares.nr <= (unsigned)mf_node_weight(s->policy.nodes));
	for (unsigned i = 0; i < shares.nr; i++) {
		CU_ASSERT(shares.share[i] > 0);
		s->got[shares.node[i]] += shares.share[i];
	}
	return shares;
}

static uint64_t share_of(const struct mf_policy_shares *shares, int node)
{
	for (unsigned i = 0; i < shares->nr; i++)
		if (shares->node[i] == node)
			return shares->share[i];
	return 0;
}

static void singles_follow_the_weights(void)
{
	static const int order[] = { 0, 0, 0, 1, 0, 0, 0, 1, 0, 0 };
	struct subject s = two(3, 1);

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		CU_ASSERT_EQUAL(single(&s), order[i]);
	CU_ASSERT_EQUAL(s.rotation.il_prev, 0);
	CU_ASSERT_EQUAL(s.rotation.il_weight, 1);
}

static void singles_of_plain_interleave(void)
{
	const unsigned ignored[] = { 9, 9, 9 };
	struct subject s = fresh(PLAIN, 0x8000000000000011, ignored);

	CU_ASSERT_EQUAL(single(&s), 0);
	CU_ASSERT_EQUAL(single(&s), 4);
	CU_ASSERT_EQUAL(single(&s), 63);
	CU_ASSERT_EQUAL(single(&s), 0);
}

static void a_weight_is_read_on_entry(void)
{
	static const int order[] = { 0, 1, 1, 1, 0, 0, 1 };
	struct subject s = two(3, 1);

	CU_ASSERT_EQUAL(single(&s), 0);
	CU_ASSERT_EQUAL(single(&s), 0);
	s.weights.of[0] = 2;
	s.weights.of[1] = 3;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		CU_ASSERT_EQUAL(single(&s), order[i]);
}

/* The kernel has loaded the next node's weight after a bulk that came out even; here it is read on entry. */
static void a_weight_is_read_on_entry_after_a_bulk_too(void)
{
	struct subject s = two(3, 1);

	bulk(&s, 4);
	CU_ASSERT_EQUAL(s.rotation.il_prev, 1);
	CU_ASSERT_EQUAL(s.rotation.il_weight, 0);
	s.weights.of[0] = 5;
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(single(&s), 0);
	CU_ASSERT_EQUAL(single(&s), 1);
}

static void the_example_the_author_withdrew(void)
{
	struct subject s = two(10, 7);
	struct mf_policy_shares shares;

	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(single(&s), 0);
	shares = bulk(&s, 14); /* the withdrawn patch: 14 and 0 */
	CU_ASSERT_EQUAL(shares.nr, 2);
	CU_ASSERT_EQUAL(shares.node[0], 0);
	CU_ASSERT_EQUAL(shares.share[0], 7);
	CU_ASSERT_EQUAL(shares.node[1], 1);
	CU_ASSERT_EQUAL(shares.share[1], 7);
	CU_ASSERT_EQUAL(single(&s), 0);
}

static void a_bulk_that_ends_at_a_boundary(void)
{
	struct subject s = two(3, 1);
	struct mf_policy_shares shares = bulk(&s, 3);

	CU_ASSERT_EQUAL(shares.nr, 1);
	CU_ASSERT_EQUAL(share_of(&shares, 0), 3);
	CU_ASSERT_EQUAL(single(&s), 1); /* the withdrawn clean-up: node 0 once more */
}

static void one_page_a_call_takes_turns(void)
{
	struct subject s = fresh(WEIGHTED, 0xf, NULL);

	for (int i = 0; i < 12; i++)
		CU_ASSERT_EQUAL(bulk(&s, 1).node[0], i % 4); /* the withdrawn clean-up: 0 0 1 1 2 2 */
}

static void eight_bulks_of_three(void)
{
	struct subject s = two(3, 1);

	for (int i = 0; i < 8; i++)
		bulk(&s, 3);
	CU_ASSERT_EQUAL(s.got[0], 18); /* the withdrawn patch: 23 and 1 */
	CU_ASSERT_EQUAL(s.got[1], 6);
}

static void seventy_seven_bulks_of_thirteen(void)
{
	struct subject s = two(8, 2);

	for (int i = 0; i < 77; i++)
		bulk(&s, 13);
	CU_ASSERT_EQUAL(s.got[0], 801); /* the withdrawn patch: 773 and 228 */
	CU_ASSERT_EQUAL(s.got[1], 200);
}

static void any_split_of_a_thousand(void)
{
	for (unsigned size = 1; size <= 1000; size++) {
		struct subject s = two(8, 2);
		unsigned left = 1000;

		while (left) {
			unsigned n = size < left ? size : left;

			if (left % 3)
				bulk(&s, n);
			else
				for (unsigned i = 0; i < n; i++)
					single(&s);
			left -= n;
		}
		CU_ASSERT_EQUAL(s.got[0], 800);
		CU_ASSERT_EQUAL(s.got[1], 200);
		CU_ASSERT_EQUAL(s.rotation.il_weight, 0);
		CU_ASSERT_EQUAL(s.rotation.il_prev, 1);
	}
}

static void plain_bulks_are_fair(void)
{
	struct subject s = fresh(PLAIN, 0xf, NULL);

	for (int i = 0; i < 100; i++)
		bulk(&s, 1);
	for (int node = 0; node < 4; node++)
		CU_ASSERT_EQUAL(s.got[node], 25); /* kernel: 100 0 0 0 */
	s = fresh(PLAIN, 0x7, NULL);
	for (int i = 0; i < 100; i++)
		bulk(&s, 4);
	CU_ASSERT_EQUAL(s.got[0], 134); /* kernel: 200 100 100 */
	CU_ASSERT_EQUAL(s.got[1], 133);
	CU_ASSERT_EQUAL(s.got[2], 133);
}

static void owed_blocks_come_first(void)
{
	const unsigned weights[] = { 2, 3, 4 };
	struct subject s = fresh(WEIGHTED, 0x7, weights);
	struct mf_policy_shares shares;

	for (int i = 0; i < 3; i++)
		single(&s);    /* 0 0 1: node 1 is owed two */
	shares = bulk(&s, 10); /* 1 1, 2 2 2 2, 0 0, 1 1 */
	CU_ASSERT_EQUAL(shares.nr, 3);
	CU_ASSERT_EQUAL(shares.node[0], 1);
	CU_ASSERT_EQUAL(shares.share[0], 4);
	CU_ASSERT_EQUAL(shares.node[1], 2);
	CU_ASSERT_EQUAL(shares.share[1], 4);
	CU_ASSERT_EQUAL(shares.node[2], 0);
	CU_ASSERT_EQUAL(shares.share[2], 2);
	CU_ASSERT_EQUAL(s.rotation.il_prev, 1);
	CU_ASSERT_EQUAL(s.rotation.il_weight, 1);
}

static void nothing_owed_starts_behind_the_last(void)
{
	const unsigned weights[] = { 2, 3, 4 };
	struct subject s = fresh(WEIGHTED, 0x7, weights);
	struct mf_policy_shares shares;

	bulk(&s, 5); /* 0 0 1 1 1 */
	CU_ASSERT_EQUAL(s.rotation.il_prev, 1);
	CU_ASSERT_EQUAL(s.rotation.il_weight, 0);
	shares = bulk(&s, 18);
	CU_ASSERT_EQUAL(shares.node[0], 2);
	CU_ASSERT_EQUAL(shares.share[0], 8);
	CU_ASSERT_EQUAL(shares.node[1], 0);
	CU_ASSERT_EQUAL(shares.share[1], 4);
	CU_ASSERT_EQUAL(shares.node[2], 1);
	CU_ASSERT_EQUAL(shares.share[2], 6);
	CU_ASSERT_EQUAL(s.rotation.il_prev, 1);
	CU_ASSERT_EQUAL(s.rotation.il_weight, 0);
}

static void only_what_is_owed(void)
{
	struct subject s = two(10, 7);
	struct mf_policy_shares shares;

	single(&s);
	shares = bulk(&s, 9);
	CU_ASSERT_EQUAL(shares.nr, 1);
	CU_ASSERT_EQUAL(shares.share[0], 9);
	CU_ASSERT_EQUAL(s.rotation.il_prev, 0);
	CU_ASSERT_EQUAL(s.rotation.il_weight, 0);
	CU_ASSERT_EQUAL(single(&s), 1);
}

static void a_bulk_of_nothing(void)
{
	struct subject s = two(3, 1);

	single(&s);
	CU_ASSERT_EQUAL(bulk(&s, 0).nr, 0);
	CU_ASSERT_EQUAL(s.rotation.il_prev, 0);
	CU_ASSERT_EQUAL(s.rotation.il_weight, 2);
}

/* An owed node that left the mask gets nothing; the rotation goes on behind its number. */
static void a_node_that_left_the_mask(void)
{
	const unsigned weights[] = { 1, 5, 2, 2 };
	struct subject s = fresh(WEIGHTED, 0xf, weights);
	struct subject other;

	single(&s);
	single(&s); /* node 1 is owed four */
	s.policy.nodes = 0xd;
	other = s;
	CU_ASSERT_EQUAL(single(&other), 2);
	other = s;
	CU_ASSERT_EQUAL(bulk(&other, 5).node[0], 2);
	CU_ASSERT_EQUAL(other.got[1], s.got[1]);
	CU_ASSERT_EQUAL(other.rotation.il_prev, 0);
	CU_ASSERT_EQUAL(other.rotation.il_weight, 0);
	bulk(&s, 4);
	CU_ASSERT_EQUAL(s.rotation.il_prev, 3);
	CU_ASSERT_EQUAL(s.rotation.il_weight, 0);
}

static void the_split_rule_gives_the_same(void)
{
	struct subject s = two(10, 7);
	struct mf_policy_split split;

	for (int i = 0; i < 3; i++)
		single(&s);
	mf_policy_bulk_split(&s.policy, &s.weights, s.rotation, 20, &split);
	CU_ASSERT_EQUAL(split.carry_node, 0);
	CU_ASSERT_EQUAL(split.carry, 7);
	CU_ASSERT_EQUAL(split.rest.nr, 2);
	CU_ASSERT_EQUAL(share_of(&split.rest, 0), 6);
	CU_ASSERT_EQUAL(share_of(&split.rest, 1), 7);
	mf_policy_bulk_split(&s.policy, &s.weights, s.rotation, 7, &split);
	CU_ASSERT_EQUAL(split.carry, 7);
	CU_ASSERT_EQUAL(split.rest.nr, 0);
	bulk(&s, 7);
	mf_policy_bulk_split(&s.policy, &s.weights, s.rotation, 7, &split);
	CU_ASSERT_EQUAL(split.carry_node, -1);
	CU_ASSERT_EQUAL(split.carry, 0);
	CU_ASSERT_EQUAL(share_of(&split.rest, 1), 7);
	CU_ASSERT_EQUAL(split.rest.nr, 1);
}

static void sixty_four_nodes_of_full_weight(void)
{
	struct subject s = fresh(WEIGHTED, ~UINT64_C(0), NULL);
	struct mf_policy_shares shares;

	memset(s.weights.of, 255, sizeof(s.weights.of));
	single(&s);
	shares = bulk(&s, UINT64_C(64) * 255 * 1000000 + 300);
	CU_ASSERT_EQUAL(shares.nr, 64);
	CU_ASSERT_EQUAL(shares.share[0],
			255000254); /* 254 owed, a million cycles, nothing of the rest of 46 */
	CU_ASSERT_EQUAL(shares.node[1], 1);
	CU_ASSERT_EQUAL(shares.share[1], 255000046);
	CU_ASSERT_EQUAL(shares.share[2], 255000000);
	CU_ASSERT_EQUAL(shares.node[63], 63);
	CU_ASSERT_EQUAL(shares.share[63], 255000000);
	CU_ASSERT_EQUAL(s.rotation.il_prev, 1);
	CU_ASSERT_EQUAL(s.rotation.il_weight, 209);
}

static void the_rule_of_ranges(void)
{
	static const int weighted[] = { 1, 1, 1, 4, 7, 7, 1, 1 };
	const unsigned weights[] = { 3, 1, 2 };
	struct subject s = fresh(WEIGHTED, 0x92, weights);

	for (int i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(mf_policy_index_node(&s.policy, &s.weights, i), weighted[i]);
	CU_ASSERT_EQUAL(mf_policy_index_node(&s.policy, &s.weights, 6000000000003), 4);
	s.weights.of[1] = 1; /* a change acts on what comes */
	CU_ASSERT_EQUAL(mf_policy_index_node(&s.policy, &s.weights, 1), 4);
	s.policy.mode = PLAIN;
	CU_ASSERT_EQUAL(mf_policy_index_node(&s.policy, &s.weights, 2), 7);
	CU_ASSERT_EQUAL(mf_policy_index_node(&s.policy, &s.weights, UINT64_MAX),
			1); /* 2^64 - 1 is a multiple of 3 */
}

static const struct unit_test tests[] = {
	UNIT_TEST(singles_follow_the_weights),
	UNIT_TEST(singles_of_plain_interleave),
	UNIT_TEST(a_weight_is_read_on_entry),
	UNIT_TEST(a_weight_is_read_on_entry_after_a_bulk_too),
	UNIT_TEST(the_example_the_author_withdrew),
	UNIT_TEST(a_bulk_that_ends_at_a_boundary),
	UNIT_TEST(one_page_a_call_takes_turns),
	UNIT_TEST(eight_bulks_of_three),
	UNIT_TEST(seventy_seven_bulks_of_thirteen),
	UNIT_TEST(any_split_of_a_thousand),
	UNIT_TEST(plain_bulks_are_fair),
	UNIT_TEST(owed_blocks_come_first),
	UNIT_TEST(nothing_owed_starts_behind_the_last),
	UNIT_TEST(only_what_is_owed),
	UNIT_TEST(a_bulk_of_nothing),
	UNIT_TEST(a_node_that_left_the_mask),
	UNIT_TEST(the_split_rule_gives_the_same),
	UNIT_TEST(sixty_four_nodes_of_full_weight),
	UNIT_TEST(the_rule_of_ranges),
};

UNIT_MAIN("interleave", tests)
