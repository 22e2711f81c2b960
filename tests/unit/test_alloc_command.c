/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The grammar of alloc/pages and alloc/free: what is understood, and that
 * everything else is refused with a reason and leaves the result alone.
 */
#include "ctl/ctl_internal.h"
#include "unit.h"

#include <errno.h>

/* Nodes 0 and 2 with memory, node 1 without; CPUs 0..3. */
static struct mf_topo_node nodes[3];
static struct mf_topo topo;

static void make_topo(void)
{
	memset(&topo, 0, sizeof(topo));
	topo.nodes = 7;
	topo.memory = 5;
	for (int i = 0; i < 3; i++)
		topo.node[i] = &nodes[i];
	for (int cpu = 0; cpu < MF_MAX_CPUS; cpu++)
		topo.cpu_node[cpu] = cpu < 4 ? 0 : -1;
}

static struct mf_live_request request;
static char why[200];

static int parse(const char *text)
{
	make_topo();
	memset(&request, 0x5a, sizeof(request));
	return mf_ctl_parse_pages(&topo, mf_text_of(text), &request, why, sizeof(why));
}

static bool is(struct mf_text text, const char *string)
{
	return mf_text_is(text, string);
}

static void test_defaults(void)
{
	CU_ASSERT_EQUAL(parse("db"), 0);
	CU_ASSERT(is(request.name, "db"));
	CU_ASSERT_EQUAL(request.count, 1);
	CU_ASSERT_FALSE(request.bulk);
	CU_ASSERT_FALSE(request.partial);
	CU_ASSERT_FALSE(request.touch);
	CU_ASSERT_EQUAL(request.page.gfp, MEMFS_GFP_KERNEL);
	CU_ASSERT_EQUAL(request.page.order, 0);
	CU_ASSERT_EQUAL(request.page.node, MF_NODE_BY_POLICY);
	CU_ASSERT_PTR_NULL(request.page.vma);
	CU_ASSERT_FALSE(request.page.irq);
	CU_ASSERT_EQUAL(request.cpu, MF_CPU_OF_TASK);
	CU_ASSERT_EQUAL(request.page.cpu, MF_CPU_OF_TASK);
	CU_ASSERT_EQUAL(request.task.length, 0);
	CU_ASSERT_EQUAL(request.policy_text.length, 0);
	CU_ASSERT_STRING_EQUAL(why, "");
}

static void test_all_keys_in_any_order(void)
{
	CU_ASSERT_EQUAL(
		parse(" -  touch gfp=GFP_ATOMIC|__GFP_ZERO count=0x10\ttask=web.1 cpu=3 order=04 partial "
		      "context=irq type=movable policy=prefer-(many):0-1 via=single "),
		0);
	CU_ASSERT(is(request.name, "-"));
	CU_ASSERT_EQUAL(request.count, 16);
	CU_ASSERT_EQUAL(request.page.order, 4);
	CU_ASSERT(request.touch && request.partial && request.page.irq);
	CU_ASSERT_EQUAL(request.page.gfp, MEMFS_GFP_ATOMIC | MEMFS___GFP_ZERO | MEMFS___GFP_MOVABLE);
	CU_ASSERT(is(request.task, "web.1"));
	CU_ASSERT(is(request.policy_text, "prefer-(many):0-1"));
	CU_ASSERT_EQUAL(request.cpu, 3);
	CU_ASSERT_EQUAL(request.page.cpu, 3);
	CU_ASSERT_FALSE(request.bulk);
	CU_ASSERT_EQUAL(parse("a node=2 context=task"), 0);
	CU_ASSERT_EQUAL(request.page.node, 2);
	CU_ASSERT_FALSE(request.page.irq);
}

static void test_bulk_is_chosen(void)
{
	static const struct {
		const char *text;
		bool bulk;
	} rows[] = {
		{ "a", false },
		{ "a count=1", false },
		{ "a count=2", true },
		{ "a count=2 via=single", false },
		{ "a count=1 via=bulk", true },
		{ "a count=2 order=1", false },
		{ "a count=2 order=0", true },
		{ "a via=bulk order=0 count=+3", true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CU_ASSERT_EQUAL(parse(rows[i].text), 0);
		CU_ASSERT_EQUAL(request.bulk, rows[i].bulk);
	}
}

static void test_type_sets_the_flags(void)
{
	CU_ASSERT_EQUAL(parse("a gfp=GFP_HIGHUSER_MOVABLE type=unmovable"), 0);
	CU_ASSERT_EQUAL(request.page.gfp, MEMFS_GFP_HIGHUSER);
	CU_ASSERT_EQUAL(parse("a type=reclaimable gfp=GFP_HIGHUSER_MOVABLE"), 0);
	CU_ASSERT_EQUAL(request.page.gfp, MEMFS_GFP_HIGHUSER | MEMFS___GFP_RECLAIMABLE);
	CU_ASSERT_EQUAL(parse("a gfp=__GFP_MOVABLE|__GFP_RECLAIMABLE"), -EINVAL);
	CU_ASSERT_EQUAL(parse("a gfp=__GFP_MOVABLE|__GFP_RECLAIMABLE type=movable"), 0);
	CU_ASSERT_EQUAL(request.page.gfp, MEMFS___GFP_MOVABLE);
}

static void test_default_policy_is_the_tasks(void)
{
	CU_ASSERT_EQUAL(parse("a policy=default"), 0);
	CU_ASSERT_EQUAL(request.policy_text.length, 0);
	CU_ASSERT_EQUAL(parse("a policy=default node=0"), -EINVAL);
}

static const struct refusal {
	const char *text;
	int error;
	const char *why; /* a part of it */
} refusals[] = {
	{ "", -EINVAL, "name" },
	{ ".", -EINVAL, "name" },
	{ "..", -EINVAL, "name" },
	{ "a/b", -EINVAL, "name" },
	{ "count=3", -EINVAL, "name" },
	{ "a count=0", -EINVAL, "count=0: expected a number of at least 1" },
	{ "a count=-1", -EINVAL, "count" },
	{ "a count=18446744073709551616", -EINVAL, "count" },
	{ "a count=", -EINVAL, "count" },
	{ "a count", -EINVAL, "count needs a value" },
	{ "a count=1 count=1", -EINVAL, "count twice" },
	{ "a touch touch", -EINVAL, "touch twice" },
	{ "a touch=1", -EINVAL, "touch takes no value" },
	{ "a partial=", -EINVAL, "partial takes no value" },
	{ "a order=11", -EINVAL, "order=11: expected a number in 0..10" },
	{ "a via=", -EINVAL, "via" },
	{ "a via=bulk order=1", -EINVAL, "via=bulk" },
	{ "a node=1", -EINVAL, "node 1 has no memory" },
	{ "a node=3", -ENOENT, "node 3 does not exist" },
	{ "a node=64", -ENOENT, "node 64 does not exist" },
	{ "a node=-1", -EINVAL, "node" },
	{ "a node=x", -EINVAL, "node=x: expected a node number" },
	{ "a node=0 policy=bind:0", -EINVAL, "exclude" },
	{ "a policy=", -EINVAL, "policy" },
	{ "a task=", -EINVAL, "task" },
	{ "a task=a/b", -EINVAL, "task" },
	{ "a cpu=4", -EINVAL, "cpu=4" },
	{ "a cpu=1024", -EINVAL, "cpu=1024" },
	{ "a gfp=", -EINVAL, "gfp" },
	{ "a gfp=GFP_KERNEL|", -EINVAL, "gfp" },
	{ "a gfp=gfp_kernel", -EINVAL, "gfp" },
	{ "a type=cma", -EINVAL, "type" },
	{ "a context=nmi", -EINVAL, "context" },
	{ "a colour=red", -EINVAL, "\"colour\" is not a key" },
	{ "a b", -EINVAL, "\"b\" is not a key" },
	{ "a =", -EINVAL, "is not a key" },
};

static void test_refusals(void)
{
	struct mf_live_request untouched;

	memset(&untouched, 0x5a, sizeof(untouched));
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		CU_ASSERT_EQUAL(parse(refusals[i].text), refusals[i].error);
		CU_ASSERT_PTR_NOT_NULL(strstr(why, refusals[i].why));
		CU_ASSERT_EQUAL(memcmp(&request, &untouched, sizeof(request)), 0);
	}
	CU_ASSERT_EQUAL(mf_ctl_parse_pages(&topo, mf_text_of("a b"), &request, NULL, 0), -EINVAL);
}

static void test_name_length(void)
{
	char name[66];

	memset(name, 'n', 65);
	name[65] = '\0';
	CU_ASSERT_EQUAL(parse(name), -EINVAL);
	name[64] = '\0';
	CU_ASSERT_EQUAL(parse(name), 0);
	CU_ASSERT_EQUAL(request.name.length, 64);
}

static void test_what_may_wait(void)
{
	CU_ASSERT_FALSE(mf_ctl_pages_waits(mf_text_of("a count=5 gfp=GFP_KERNEL")));
	CU_ASSERT_FALSE(mf_ctl_pages_waits(mf_text_of("touch count=5")));
	CU_ASSERT_TRUE(mf_ctl_pages_waits(mf_text_of("touch touch")));
	CU_ASSERT_TRUE(mf_ctl_pages_waits(mf_text_of("a count=5 touch")));
	CU_ASSERT_TRUE(mf_ctl_pages_waits(mf_text_of("a gfp=GFP_KERNEL|__GFP_NOFAIL count=5")));
	CU_ASSERT_FALSE(mf_ctl_pages_waits(mf_text_of("a gfp=NOFAIL")));
}

static void test_free_grammar(void)
{
	static const char *const bad[] = { "",		".",
					   "a b",	"a count=0",
					   "a count=",	"a count=1 count=1",
					   "a count=x", "a count=18446744073709551616",
					   "a number=1" };
	struct mf_text name;
	uint64_t count = 9;

	CU_ASSERT_EQUAL(mf_ctl_parse_free(mf_text_of("db"), &name, &count, why, sizeof(why)), 0);
	CU_ASSERT(is(name, "db"));
	CU_ASSERT_EQUAL(count, 0);
	CU_ASSERT_EQUAL(mf_ctl_parse_free(mf_text_of("db  count=0x20 "), &name, &count, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(count, 32);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		count = 7;
		why[0] = '\0';
		CU_ASSERT_EQUAL(mf_ctl_parse_free(mf_text_of(bad[i]), &name, &count, why, sizeof(why)),
				-EINVAL);
		CU_ASSERT_EQUAL(count, 7);
		CU_ASSERT_NOT_EQUAL(strlen(why), 0);
	}
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_defaults),
	UNIT_TEST(test_all_keys_in_any_order),
	UNIT_TEST(test_bulk_is_chosen),
	UNIT_TEST(test_type_sets_the_flags),
	UNIT_TEST(test_default_policy_is_the_tasks),
	UNIT_TEST(test_refusals),
	UNIT_TEST(test_name_length),
	UNIT_TEST(test_what_may_wait),
	UNIT_TEST(test_free_grammar),
};

UNIT_MAIN("alloc_command", tests)
