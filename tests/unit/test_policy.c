/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Setting, parsing, printing and rebinding policies.  mpol-strings.tsv is what
 * a real kernel of two nodes says to each text.
 */
#include "data.h"
#include "policy/policy.h"
#include "unit.h"

#include <errno.h>

#define STRINGS 48

static const struct mf_policy_context two_nodes = { 3, 3, 3 };

static mf_nodemask nodes(int first, int last)
{
	mf_nodemask mask = 0;

	while (first <= last)
		mask |= mf_node_bit(first++);
	return mask;
}

static int parse(const char *text, const struct mf_policy_context *context, struct mf_policy *out)
{
	return mf_policy_parse(mf_text_of(text), context, out, NULL, 0);
}

static void check_print(const struct mf_policy *policy, const char *wanted)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;

	mf_policy_print(policy, &out);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out.data);
	if (strcmp(out.data, wanted))
		printf("printed '%s', wanted '%s'\n", out.data, wanted);
	CU_ASSERT_STRING_EQUAL(out.data, wanted);
	mf_outbuf_free(&out);
}

static void check_why(const char *text, const struct mf_policy_context *context, const char *wanted)
{
	struct mf_policy policy, before;
	char why[128] = "";

	memset(&policy, 0x5a, sizeof(policy));
	before = policy;
	CU_ASSERT_EQUAL(mf_policy_parse(mf_text_of(text), context, &policy, why, sizeof(why)), -EINVAL);
	if (strcmp(why, wanted))
		printf("'%s': said '%s'\n", text, why);
	CU_ASSERT_STRING_EQUAL(why, wanted);
	CU_ASSERT_EQUAL(memcmp(&policy, &before, sizeof(policy)), 0);
}

/* Two ':' are the kernel's stride; we refuse it, the only difference there is. */
static bool has_stride(const char *text)
{
	const char *colon = strchr(text, ':');

	return colon && strchr(colon + 1, ':');
}

static void every_text_of_a_real_kernel(void)
{
	FILE *file = data_open("mpol-strings.tsv");
	char line[DATA_LINE], *field[3];
	int rows = 0, strides = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	while (data_row(file, line, field, 3) == 3) {
		struct mf_policy policy;
		int error = parse(field[0], &two_nodes, &policy);

		rows++;
		if (has_stride(field[0])) {
			strides += !strcmp(field[1], "0");
			CU_ASSERT_EQUAL(error, -EINVAL);
			continue;
		}
		if (error != (strcmp(field[1], "0") ? -EINVAL : 0))
			printf("'%s' gives %d\n", field[0], error);
		CU_ASSERT_EQUAL_FATAL(error, strcmp(field[1], "0") ? -EINVAL : 0);
		if (!error)
			check_print(&policy, field[2][0] == '(' ? "default" : field[2] + strlen("mpol="));
	}
	fclose(file);
	CU_ASSERT_EQUAL(rows, STRINGS);
	CU_ASSERT_EQUAL(strides, 1);
}

static void hyphen_for_a_space(void)
{
	struct mf_policy policy;

	CU_ASSERT_EQUAL(parse("weighted-interleave:0-1", &two_nodes, &policy), 0);
	CU_ASSERT_EQUAL(policy.mode, MF_MPOL_WEIGHTED_INTERLEAVE);
	check_print(&policy, "weighted interleave:0-1");
	CU_ASSERT_EQUAL(parse("prefer-(many)=static:1", &two_nodes, &policy), 0);
	CU_ASSERT_EQUAL(policy.mode, MF_MPOL_PREFERRED_MANY);
	CU_ASSERT_EQUAL(policy.nodes, 2);
	CU_ASSERT_EQUAL(parse("prefer-many:0", &two_nodes, &policy), -EINVAL);
	CU_ASSERT_EQUAL(parse("prefer(many):0", &two_nodes, &policy), -EINVAL);
	CU_ASSERT_EQUAL(parse("weighted  interleave:0", &two_nodes, &policy), -EINVAL);
	CU_ASSERT_EQUAL(parse(" bind:0", &two_nodes, &policy), -EINVAL);
	CU_ASSERT_EQUAL(parse("bind :0", &two_nodes, &policy), -EINVAL);
}

static void flags_of_a_text(void)
{
	struct mf_policy policy;

	CU_ASSERT_EQUAL(parse("bind=static|balancing:0", &two_nodes, &policy), 0);
	CU_ASSERT_EQUAL(policy.flags, MF_MPOL_F_STATIC_NODES | MF_MPOL_F_NUMA_BALANCING);
	check_print(&policy, "bind=static|balancing:0");
	CU_ASSERT_EQUAL(parse("bind=balancing|relative:1", &two_nodes, &policy), 0);
	check_print(&policy, "bind=relative|balancing:1");
	CU_ASSERT_EQUAL(parse("prefer (many)=balancing:0-1", &two_nodes, &policy), 0);
	check_print(&policy, "prefer (many)=balancing:0-1");
	CU_ASSERT_EQUAL(parse("interleave=balancing:0", &two_nodes, &policy), -EINVAL);
	CU_ASSERT_EQUAL(parse("default=balancing", &two_nodes, &policy), -EINVAL);
	CU_ASSERT_EQUAL(parse("default=foo", &two_nodes, &policy), -EINVAL);
	CU_ASSERT_EQUAL(parse("bind=static|relative:0", &two_nodes, &policy), -EINVAL);
	CU_ASSERT_EQUAL(parse("bind=:0", &two_nodes, &policy), -EINVAL);
	CU_ASSERT_EQUAL(parse("bind=static|:0", &two_nodes, &policy), -EINVAL);
	CU_ASSERT_EQUAL(parse("bind=|static:0", &two_nodes, &policy), -EINVAL);
	CU_ASSERT_EQUAL(parse("prefer=static", &two_nodes, &policy), -EINVAL);
	CU_ASSERT_EQUAL(parse("local:", &two_nodes, &policy), -EINVAL);
	CU_ASSERT_EQUAL(parse("prefer:", &two_nodes, &policy), -EINVAL);
	CU_ASSERT_EQUAL(parse("interleave:", &two_nodes, &policy), -EINVAL);
}

static void nodes_without_memory(void)
{
	const struct mf_policy_context context = { .exist = 0xf, .memory = 0x5, .allowed = 0xf };
	struct mf_policy policy;

	CU_ASSERT_EQUAL(parse("interleave:0-3", &context, &policy), 0);
	check_print(&policy, "interleave:0,2");
	CU_ASSERT_EQUAL(parse("interleave", &context, &policy), 0);
	check_print(&policy, "interleave:0,2");
	CU_ASSERT_EQUAL(parse("bind:1,2", &context, &policy), 0);
	check_print(&policy, "bind:2");
	check_why("bind:1", &context, "node 1 has no memory");
	check_why("bind:1,3", &context, "none of these nodes has memory");
	check_why("prefer:3", &context, "node 3 has no memory");
}

static void only_allowed_nodes(void)
{
	const struct mf_policy_context context = { .exist = 0xff, .memory = 0xff, .allowed = 0x38 };
	struct mf_policy policy;

	CU_ASSERT_EQUAL(parse("weighted interleave", &context, &policy), 0);
	check_print(&policy, "weighted interleave:3-5");
	CU_ASSERT_EQUAL(parse("interleave:0-4", &context, &policy), 0);
	check_print(&policy, "interleave:3-4");
	CU_ASSERT_EQUAL(parse("interleave=static:0-4", &context, &policy), 0);
	CU_ASSERT_EQUAL(policy.nodes, nodes(3, 4));
	check_print(&policy, "interleave=static:0-4");
	CU_ASSERT_EQUAL(parse("interleave=relative:0,4,7", &context, &policy), 0);
	CU_ASSERT_EQUAL(policy.nodes, nodes(3, 4)); /* 0, 1, 1 */
	check_print(&policy, "interleave=relative:0,4,7");
	CU_ASSERT_EQUAL(parse("prefer=relative:2", &context, &policy), 0);
	CU_ASSERT_EQUAL(policy.nodes, mf_node_bit(5));
	check_why("prefer:6", &context, "node 6 is not in mems_allowed");
	check_why("bind:0-2", &context, "none of these nodes with memory is in mems_allowed");
}

static void relative_without_a_list_is_all(void)
{
	const struct mf_policy_context sparse = { .exist = 0x25, .memory = 0x25, .allowed = 0x25 };
	struct mf_policy policy, again;

	CU_ASSERT_EQUAL(parse("interleave=relative", &sparse, &policy), 0);
	CU_ASSERT_EQUAL(policy.nodes, 0x25);
	check_print(&policy, "interleave=relative:0-2");
	CU_ASSERT_EQUAL(parse("interleave=relative:0-2", &sparse, &again), 0);
	CU_ASSERT_EQUAL(again.nodes, policy.nodes);
	CU_ASSERT_EQUAL(parse("interleave:1", &sparse, &again), -EINVAL);
}

static void reasons(void)
{
	const struct mf_policy_context none = { .exist = 3, .memory = 3, .allowed = 0 };

	check_why("bind:9", &two_nodes, "node 9 does not exist");
	check_why("bind:0,100", &two_nodes, "node 100 does not exist");
	check_why("bind:0-3", &two_nodes, "node 2 does not exist");
	check_why("foo:0", &two_nodes, "unknown policy 'foo'");
	check_why("f\to\n", &two_nodes, "unknown policy 'f?o?'");
	check_why("", &two_nodes, "a policy is needed, as in interleave:0-1");
	check_why("bind=foo:0", &two_nodes,
		  "unknown policy flag 'foo', known are static, relative, balancing");
	check_why("bind=static|relative:0", &two_nodes, "static and relative exclude each other");
	check_why("interleave=balancing:0", &two_nodes, "balancing goes with bind and prefer (many) only");
	check_why("bind", &two_nodes, "bind needs at least one node");
	check_why("bind:", &two_nodes, "the node list behind ':' is empty");
	check_why("bind:x", &two_nodes, "node list 'x' is not like 0,2-3");
	check_why("bind:0-1:1/2", &two_nodes, "node list '0-1:1/2' has a stride, which is not supported");
	check_why("prefer:0-1", &two_nodes, "prefer takes one node, prefer (many) takes a list");
	check_why("prefer=static", &two_nodes, "prefer with a flag needs a node");
	check_why("local:0", &two_nodes, "local takes no nodes");
	check_why("default:0", &two_nodes, "default takes no nodes");
	check_why("local=static", &two_nodes, "local takes no flags");
	check_why("interleave", &none, "no allowed node has memory");
	check_why("bind:0", &none, "no allowed node has memory");
}

static void a_reason_fits_its_buffer(void)
{
	struct mf_policy policy;
	char why[8];
	char text[5000];

	memset(text, 'x', sizeof(text));
	memset(why, '!', sizeof(why));
	CU_ASSERT_EQUAL(mf_policy_parse((struct mf_text){ text, sizeof(text) }, &two_nodes, &policy, why, 5),
			-EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "unkn");
	CU_ASSERT_EQUAL(why[5], '!');
}

/* set_mempolicy() of a real kernel with two nodes, where node 2 does not exist. */
static void the_system_call(void)
{
	static const struct {
		unsigned mode, flags;
		mf_nodemask user;
		int error;
		unsigned new_mode;
		mf_nodemask nodes;
	} cases[] = {
		{ 0, 0, 0, 0, 0, 0 },
		{ 0, 0, 1, -EINVAL, 0, 0 },
		{ 0, 0x8000, 0, 0, 0, 0 },
		{ 0, 0x4000, 0, 0, 0, 0 },
		{ 0, 0x2000, 0, -EINVAL, 0, 0 },
		{ 0, 0xc000, 0, -EINVAL, 0, 0 },
		{ 1, 0, 0, 0, 4, 0 },
		{ 1, 0, 2, 0, 1, 2 },
		{ 1, 0, 3, 0, 1, 1 },
		{ 1, 0, 4, -EINVAL, 0, 0 },
		{ 1, 0, 5, 0, 1, 1 },
		{ 1, 0x8000, 0, -EINVAL, 0, 0 },
		{ 1, 0x8000, 4, -EINVAL, 0, 0 },
		{ 1, 0x4000, 4, 0, 1, 1 },
		{ 1, 0x2000, 1, -EINVAL, 0, 0 },
		{ 1, 0xc000, 1, -EINVAL, 0, 0 },
		{ 2, 0, 0, -EINVAL, 0, 0 },
		{ 2, 0, 3, 0, 2, 3 },
		{ 2, 0, 5, 0, 2, 1 },
		{ 2, 0x8000, 5, 0, 2, 1 },
		{ 2, 0x4000, 4, 0, 2, 1 },
		{ 2, 0x2000, 2, 0, 2, 2 },
		{ 3, 0, 4, -EINVAL, 0, 0 },
		{ 3, 0, 5, 0, 3, 1 },
		{ 3, 0x2000, 1, -EINVAL, 0, 0 },
		{ 4, 0, 0, 0, 4, 0 },
		{ 4, 0, 1, -EINVAL, 0, 0 },
		{ 4, 0x8000, 0, -EINVAL, 0, 0 },
		{ 4, 0x2000, 0, -EINVAL, 0, 0 },
		{ 5, 0, 0, -EINVAL, 0, 0 },
		{ 5, 0x2000, 3, 0, 5, 3 },
		{ 6, 0, 3, 0, 6, 3 },
		{ 6, 0x2000, 3, -EINVAL, 0, 0 },
		{ 7, 0, 1, -EINVAL, 0, 0 },
		{ 8, 0, 1, -EINVAL, 0, 0 },
		{ 2, 0x1000, 1, -EINVAL, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mf_policy policy = { 0 };
		int error = mf_policy_set(cases[i].mode, cases[i].flags, cases[i].user, &two_nodes, &policy,
					  NULL, 0);

		if (error != cases[i].error)
			printf("case %zu gives %d\n", i, error);
		CU_ASSERT_EQUAL(error, cases[i].error);
		if (error)
			continue;
		CU_ASSERT_EQUAL(policy.mode, cases[i].new_mode);
		CU_ASSERT_EQUAL(policy.nodes, cases[i].nodes);
		CU_ASSERT_EQUAL(policy.allowed, 3);
	}
}

static mf_nodemask rebind(struct mf_policy *policy, mf_nodemask allowed)
{
	const struct mf_policy_context context = { .exist = 0xff, .memory = 0xff, .allowed = allowed };

	mf_policy_rebind(policy, &context);
	return policy->nodes;
}

static struct mf_policy bound(const char *text, mf_nodemask allowed)
{
	const struct mf_policy_context context = { .exist = 0xff, .memory = 0xff, .allowed = allowed };
	struct mf_policy policy;

	CU_ASSERT_EQUAL_FATAL(parse(text, &context, &policy), 0);
	return policy;
}

static void rebinding_as_documented(void)
{
	struct mf_policy policy = bound("interleave:1-3", nodes(1, 3));

	CU_ASSERT_EQUAL(rebind(&policy, nodes(3, 5)), nodes(3, 5));
	policy = bound("interleave=static:1-3", nodes(1, 3));
	CU_ASSERT_EQUAL(rebind(&policy, nodes(3, 5)), nodes(3, 3));
	policy = bound("interleave=relative:2-5", nodes(2, 5));
	CU_ASSERT_EQUAL(policy.nodes, nodes(2, 5));
	CU_ASSERT_EQUAL(rebind(&policy, nodes(3, 7)), nodes(3, 3) | nodes(5, 7));
	CU_ASSERT_EQUAL(rebind(&policy, nodes(0, 0) | nodes(2, 3) | nodes(5, 5)),
			nodes(0, 0) | nodes(2, 3) | nodes(5, 5));
}

static void rebinding_to_nothing_is_all(void)
{
	struct mf_policy policy = bound("interleave=static:1-3", nodes(0, 7));

	CU_ASSERT_EQUAL(rebind(&policy, nodes(5, 7)), nodes(5, 7));
	CU_ASSERT_EQUAL(rebind(&policy, nodes(2, 7)), nodes(2, 3)); /* the user's mask is not lost */
	check_print(&policy, "interleave=static:1-3");
	policy = bound("prefer=static:1", nodes(0, 7));
	CU_ASSERT_EQUAL(rebind(&policy, nodes(5, 7)), nodes(5, 5));
	CU_ASSERT_EQUAL(rebind(&policy, nodes(0, 7)), nodes(1, 1));
}

static void rebinding_by_rank(void)
{
	struct mf_policy policy = bound("bind:2,5", nodes(0, 5));

	CU_ASSERT_EQUAL(rebind(&policy, nodes(4, 7)), nodes(5, 6)); /* ranks 2 and 5 of 4 nodes */
	policy = bound("bind:0-3", nodes(0, 3));
	CU_ASSERT_EQUAL(rebind(&policy, nodes(6, 7)), nodes(6, 7));
	CU_ASSERT_EQUAL(rebind(&policy, nodes(0, 3)), nodes(0, 1)); /* what was folded stays folded */
	policy = bound("prefer:3", nodes(0, 3));
	CU_ASSERT_EQUAL(rebind(&policy, nodes(1, 2)), nodes(2, 2));
	policy = bound("prefer=relative:3", nodes(0, 3));
	CU_ASSERT_EQUAL(rebind(&policy, nodes(1, 3)), nodes(1, 1));
}

static void rebinding_without_nodes(void)
{
	struct mf_policy policy = bound("local", nodes(0, 3));

	CU_ASSERT_EQUAL(rebind(&policy, nodes(4, 7)), 0);
	CU_ASSERT_EQUAL(policy.allowed, nodes(4, 7));
	policy = bound("bind:1", nodes(0, 3));
	CU_ASSERT_EQUAL(rebind(&policy, 0), nodes(1, 1));
	CU_ASSERT_EQUAL(policy.allowed, nodes(0, 3));
}

static void highest_nodes(void)
{
	const struct mf_policy_context all = { ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0) };
	struct mf_policy policy;

	CU_ASSERT_EQUAL(parse("interleave", &all, &policy), 0);
	check_print(&policy, "interleave:0-63");
	CU_ASSERT_EQUAL(parse("interleave=relative", &all, &policy), 0);
	CU_ASSERT_EQUAL(policy.nodes, ~UINT64_C(0));
	CU_ASSERT_EQUAL(parse("bind:63", &all, &policy), 0);
	CU_ASSERT_EQUAL(policy.nodes, UINT64_C(1) << 63);
	check_why("bind:64", &all, "node 64 does not exist");
}

static const struct unit_test tests[] = {
	UNIT_TEST(every_text_of_a_real_kernel),
	UNIT_TEST(hyphen_for_a_space),
	UNIT_TEST(flags_of_a_text),
	UNIT_TEST(nodes_without_memory),
	UNIT_TEST(only_allowed_nodes),
	UNIT_TEST(relative_without_a_list_is_all),
	UNIT_TEST(reasons),
	UNIT_TEST(a_reason_fits_its_buffer),
	UNIT_TEST(the_system_call),
	UNIT_TEST(rebinding_as_documented),
	UNIT_TEST(rebinding_to_nothing_is_all),
	UNIT_TEST(rebinding_by_rank),
	UNIT_TEST(rebinding_without_nodes),
	UNIT_TEST(highest_nodes),
};

UNIT_MAIN("policy", tests)
