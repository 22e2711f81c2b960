/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The grammar of alloc/pages, alloc/vmalloc, alloc/slab, alloc/free and slab/create: what is
 * understood, and that everything else is refused with a reason and leaves the result alone.
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

static int parse_vmalloc(const char *text)
{
	make_topo();
	memset(&request, 0x5a, sizeof(request));
	return mf_ctl_parse_vmalloc(&topo, mf_text_of(text), &request, why, sizeof(why));
}

static int parse_slab(const char *text)
{
	make_topo();
	memset(&request, 0x5a, sizeof(request));
	return mf_ctl_parse_slab(&topo, mf_text_of(text), &request, why, sizeof(why));
}

static bool is(struct mf_text text, const char *string)
{
	return mf_text_is(text, string);
}

static void test_defaults(void)
{
	CU_ASSERT_EQUAL(parse("db"), 0);
	CU_ASSERT(is(request.name, "db"));
	CU_ASSERT_EQUAL(request.kind, MF_LIVE_PAGES);
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
	{ "a colour=red", -EINVAL, "\"colour\" is not a key of alloc/pages" },
	{ "a size=4096", -EINVAL, "\"size\" is not a key of alloc/pages" },
	{ "a pages=1", -EINVAL, "\"pages\" is not a key of alloc/pages" },
	{ "a align=4096", -EINVAL, "\"align\" is not a key of alloc/pages" },
	{ "a huge", -EINVAL, "\"huge\" is not a key of alloc/pages" },
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

/* --- alloc/vmalloc --- */

static void test_vmalloc_defaults(void)
{
	CU_ASSERT_EQUAL(parse_vmalloc("db size=5000"), 0);
	CU_ASSERT(is(request.name, "db"));
	CU_ASSERT_EQUAL(request.kind, MF_LIVE_VMALLOC);
	CU_ASSERT_EQUAL(request.size, 5000);
	CU_ASSERT_EQUAL(request.align, 0);
	CU_ASSERT_FALSE(request.huge || request.touch || request.partial || request.bulk);
	CU_ASSERT_EQUAL(request.page.gfp, MEMFS_GFP_KERNEL);
	CU_ASSERT_EQUAL(request.page.order, 0);
	CU_ASSERT_EQUAL(request.page.node, MF_NODE_BY_POLICY);
	CU_ASSERT_FALSE(request.page.irq);
	CU_ASSERT_EQUAL(request.cpu, MF_CPU_OF_TASK);
	CU_ASSERT_EQUAL(request.task.length, 0);
	CU_ASSERT_EQUAL(request.policy_text.length, 0);
	CU_ASSERT_STRING_EQUAL(why, "");
}

static void test_vmalloc_keys_in_any_order(void)
{
	CU_ASSERT_EQUAL(parse_vmalloc(" - huge  touch gfp=GFP_KERNEL|__GFP_ZERO align=2M\ttask=web.1 cpu=3 "
				      "policy=interleave:0,2 size=1G "),
			0);
	CU_ASSERT(is(request.name, "-"));
	CU_ASSERT(request.huge && request.touch);
	CU_ASSERT_EQUAL(request.size, UINT64_C(1) << 30);
	CU_ASSERT_EQUAL(request.align, 2 << 20);
	CU_ASSERT_EQUAL(request.page.gfp, MEMFS_GFP_KERNEL | MEMFS___GFP_ZERO);
	CU_ASSERT(is(request.task, "web.1"));
	CU_ASSERT(is(request.policy_text, "interleave:0,2"));
	CU_ASSERT_EQUAL(request.cpu, 3);
	CU_ASSERT_EQUAL(request.page.cpu, 3);
	CU_ASSERT_EQUAL(parse_vmalloc("a pages=400 node=2"), 0);
	CU_ASSERT_EQUAL(request.size, 1638400);
	CU_ASSERT_EQUAL(request.page.node, 2);
}

static void test_vmalloc_sizes(void)
{
	static const struct {
		const char *text;
		uint64_t size;
	} rows[] = {
		{ "a size=1", 1 },
		{ "a size=0x1000", 4096 },
		{ "a size=8k", 8192 },
		{ "a size=3M", 3 << 20 },
		{ "a size=2T", UINT64_C(2) << 40 },
		{ "a size=9223372036854775807", INT64_MAX },
		{ "a pages=1", 4096 },
		{ "a pages=+010", 8 * 4096 },
		{ "a pages=2251799813685247", UINT64_C(2251799813685247) * 4096 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CU_ASSERT_EQUAL(parse_vmalloc(rows[i].text), 0);
		CU_ASSERT_EQUAL(request.size, rows[i].size);
	}
}

static const struct refusal vmalloc_refusals[] = {
	{ "", -EINVAL, "the first word is the name: 1 to 64 of A-Z a-z 0-9 . _ : -" },
	{ "size=4096", -EINVAL, "the first word is the name: 1 to 64 of A-Z a-z 0-9 . _ : -" },
	{ "a", -EINVAL, "size= or pages= is needed" },
	{ "a huge touch", -EINVAL, "size= or pages= is needed" },
	{ "a size=4096 pages=1", -EINVAL, "size= and pages= exclude each other" },
	{ "a size=0", -EINVAL, "size=0: expected bytes, at least 1" },
	{ "a size=", -EINVAL, "size=: expected bytes, at least 1" },
	{ "a size=-1", -EINVAL, "size=-1: expected bytes, at least 1" },
	{ "a size=4X", -EINVAL, "size=4X: expected bytes, at least 1" },
	{ "a size=9223372036854775808", -EINVAL, "size=9223372036854775808: expected bytes, at least 1" },
	{ "a size=8388608T", -EINVAL, "size=8388608T: expected bytes, at least 1" },
	{ "a size", -EINVAL, "size needs a value" },
	{ "a size=1 size=1", -EINVAL, "size twice" },
	{ "a pages=0", -EINVAL, "pages=0: expected a number of at least 1" },
	{ "a pages=1K", -EINVAL, "pages=1K: expected a number of at least 1" },
	{ "a pages=2251799813685248", -EINVAL, "pages=2251799813685248: expected a number of at least 1" },
	{ "a pages=1 align=0", -EINVAL, "align=0: expected a power of two of bytes" },
	{ "a pages=1 align=3K", -EINVAL, "align=3K: expected a power of two of bytes" },
	{ "a pages=1 huge=1", -EINVAL, "huge takes no value" },
	{ "a pages=1 huge huge", -EINVAL, "huge twice" },
	{ "a pages=1 count=1", -EINVAL, "\"count\" is not a key of alloc/vmalloc" },
	{ "a pages=1 order=1", -EINVAL, "\"order\" is not a key of alloc/vmalloc" },
	{ "a pages=1 via=bulk", -EINVAL, "\"via\" is not a key of alloc/vmalloc" },
	{ "a pages=1 type=movable", -EINVAL, "\"type\" is not a key of alloc/vmalloc" },
	{ "a pages=1 context=irq", -EINVAL, "\"context\" is not a key of alloc/vmalloc" },
	{ "a pages=1 partial", -EINVAL, "\"partial\" is not a key of alloc/vmalloc" },
	{ "a pages=1 colour=red", -EINVAL, "\"colour\" is not a key of alloc/vmalloc" },
	{ "a pages=1 node=1", -EINVAL, "node 1 has no memory" },
	{ "a pages=1 node=3", -ENOENT, "node 3 does not exist" },
	{ "a pages=1 node=0 policy=bind:0", -EINVAL, "node= and policy= exclude each other" },
	{ "a pages=1 gfp=GFP_NONE", -EINVAL, "gfp=GFP_NONE: expected flag names joined by |" },
	{ "a pages=1 cpu=4", -EINVAL, "cpu=4: expected the number of a CPU that exists" },
};

static void test_vmalloc_refusals(void)
{
	struct mf_live_request untouched;

	memset(&untouched, 0x5a, sizeof(untouched));
	for (size_t i = 0; i < sizeof(vmalloc_refusals) / sizeof(vmalloc_refusals[0]); i++) {
		CU_ASSERT_EQUAL(parse_vmalloc(vmalloc_refusals[i].text), vmalloc_refusals[i].error);
		CU_ASSERT_STRING_EQUAL(why, vmalloc_refusals[i].why);
		CU_ASSERT_EQUAL(memcmp(&request, &untouched, sizeof(request)), 0);
	}
	CU_ASSERT_EQUAL(mf_ctl_parse_vmalloc(&topo, mf_text_of("a"), &request, NULL, 0), -EINVAL);
}

/* --- alloc/slab --- */

static void test_slab_defaults(void)
{
	CU_ASSERT_EQUAL(parse_slab("db size=64"), 0);
	CU_ASSERT(is(request.name, "db"));
	CU_ASSERT_EQUAL(request.kind, MF_LIVE_SLAB);
	CU_ASSERT_EQUAL(request.size, 64);
	CU_ASSERT_EQUAL(request.cache.length, 0);
	CU_ASSERT_EQUAL(request.count, 1);
	CU_ASSERT_FALSE(request.huge || request.touch || request.partial || request.bulk);
	CU_ASSERT_EQUAL(request.page.gfp, MEMFS_GFP_KERNEL);
	CU_ASSERT_EQUAL(request.page.order, 0);
	CU_ASSERT_EQUAL(request.page.node, MF_NODE_BY_POLICY);
	CU_ASSERT_PTR_NULL(request.page.vma);
	CU_ASSERT_EQUAL(request.cpu, MF_CPU_OF_TASK);
	CU_ASSERT_EQUAL(request.task.length, 0);
	CU_ASSERT_EQUAL(request.policy_text.length, 0);
	CU_ASSERT_STRING_EQUAL(why, "");
}

static void test_slab_keys_in_any_order(void)
{
	CU_ASSERT_EQUAL(parse_slab(" - gfp=GFP_ATOMIC|__GFP_ZERO count=0x10\ttask=web.1 node=2 cpu=3 "
				   "cache=kmalloc-64 "),
			0);
	CU_ASSERT(is(request.name, "-"));
	CU_ASSERT(is(request.cache, "kmalloc-64"));
	CU_ASSERT_EQUAL(request.size, 0);
	CU_ASSERT_EQUAL(request.count, 16);
	CU_ASSERT_FALSE(request.bulk);
	CU_ASSERT_EQUAL(request.page.gfp, MEMFS_GFP_ATOMIC | MEMFS___GFP_ZERO);
	CU_ASSERT_EQUAL(request.page.node, 2);
	CU_ASSERT(is(request.task, "web.1"));
	CU_ASSERT_EQUAL(request.cpu, 3);
	CU_ASSERT_EQUAL(request.page.cpu, 3);
	CU_ASSERT_EQUAL(parse_slab("a size=4K count=100000"), 0);
	CU_ASSERT_EQUAL(request.size, 4096);
	CU_ASSERT_EQUAL(request.count, 100000);
}

static const struct refusal slab_refusals[] = {
	{ "", -EINVAL, "the first word is the name: 1 to 64 of A-Z a-z 0-9 . _ : -" },
	{ "cache=a", -EINVAL, "the first word is the name: 1 to 64 of A-Z a-z 0-9 . _ : -" },
	{ "a", -EINVAL, "cache= or size= is needed" },
	{ "a count=3", -EINVAL, "cache= or size= is needed" },
	{ "a size=64 cache=b", -EINVAL, "cache= and size= exclude each other" },
	{ "a cache=", -EINVAL, "cache=: expected a cache's name" },
	{ "a cache=b/c", -EINVAL, "cache=b/c: expected a cache's name" },
	{ "a cache=..", -EINVAL, "cache=..: expected a cache's name" },
	{ "a cache", -EINVAL, "cache needs a value" },
	{ "a cache=b cache=b", -EINVAL, "cache twice" },
	{ "a size=0", -EINVAL, "size=0: expected bytes, at least 1" },
	{ "a size=-1", -EINVAL, "size=-1: expected bytes, at least 1" },
	{ "a size=64 count=0", -EINVAL, "count=0: expected a number of at least 1" },
	{ "a size=64 order=1", -EINVAL, "\"order\" is not a key of alloc/slab" },
	{ "a size=64 pages=1", -EINVAL, "\"pages\" is not a key of alloc/slab" },
	{ "a size=64 align=8", -EINVAL, "\"align\" is not a key of alloc/slab" },
	{ "a size=64 policy=local", -EINVAL, "\"policy\" is not a key of alloc/slab" },
	{ "a size=64 type=movable", -EINVAL, "\"type\" is not a key of alloc/slab" },
	{ "a size=64 context=irq", -EINVAL, "\"context\" is not a key of alloc/slab" },
	{ "a size=64 via=bulk", -EINVAL, "\"via\" is not a key of alloc/slab" },
	{ "a size=64 partial", -EINVAL, "\"partial\" is not a key of alloc/slab" },
	{ "a size=64 touch", -EINVAL, "\"touch\" is not a key of alloc/slab" },
	{ "a size=64 huge", -EINVAL, "\"huge\" is not a key of alloc/slab" },
	{ "a size=64 node=1", -EINVAL, "node 1 has no memory" },
	{ "a size=64 node=3", -ENOENT, "node 3 does not exist" },
	{ "a size=64 cpu=4", -EINVAL, "cpu=4: expected the number of a CPU that exists" },
	{ "a size=64 gfp=GFP_NONE", -EINVAL, "gfp=GFP_NONE: expected flag names joined by |" },
};

static void test_slab_refusals(void)
{
	struct mf_live_request untouched;

	memset(&untouched, 0x5a, sizeof(untouched));
	for (size_t i = 0; i < sizeof(slab_refusals) / sizeof(slab_refusals[0]); i++) {
		CU_ASSERT_EQUAL(parse_slab(slab_refusals[i].text), slab_refusals[i].error);
		CU_ASSERT_STRING_EQUAL(why, slab_refusals[i].why);
		CU_ASSERT_EQUAL(memcmp(&request, &untouched, sizeof(request)), 0);
	}
	CU_ASSERT_EQUAL(mf_ctl_parse_slab(&topo, mf_text_of("a"), &request, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(parse("a cache=b"), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "\"cache\" is not a key of alloc/pages");
	CU_ASSERT_EQUAL(parse_vmalloc("a pages=1 cache=b"), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "\"cache\" is not a key of alloc/vmalloc");
}

/* --- slab/create --- */

static void test_create_grammar(void)
{
	struct mf_cache_request cache;

	CU_ASSERT_EQUAL(mf_ctl_parse_cache(mf_text_of("inode size=600"), &cache, why, sizeof(why)), 0);
	CU_ASSERT(is(cache.name, "inode"));
	CU_ASSERT_EQUAL(cache.size, 600);
	CU_ASSERT_EQUAL(cache.align, 0);
	CU_ASSERT_EQUAL(cache.flags, 0);
	CU_ASSERT(cache.ctor == NULL);
	CU_ASSERT_EQUAL(
		mf_ctl_parse_cache(
			mf_text_of(" a:b  flags=no_merge,hwcache_align,reclaim_account,poison,"
				   "red_zone,store_user,typesafe_by_rcu,consistency align=0x40\tsize=1K "),
			&cache, why, sizeof(why)),
		0);
	CU_ASSERT(is(cache.name, "a:b"));
	CU_ASSERT_EQUAL(cache.size, 1024);
	CU_ASSERT_EQUAL(cache.align, 64);
	CU_ASSERT_EQUAL(cache.flags, (1u << MF_NR_SLAB_FLAGS) - 1);
}

static const struct refusal create_refusals[] = {
	{ "", -EINVAL, "the first word is the name: 1 to 64 of A-Z a-z 0-9 . _ : -" },
	{ "-/ size=8", -EINVAL, "the first word is the name: 1 to 64 of A-Z a-z 0-9 . _ : -" },
	{ "size=8", -EINVAL, "the first word is the name: 1 to 64 of A-Z a-z 0-9 . _ : -" },
	{ "a", -EINVAL, "size= is needed" },
	{ "a flags=poison", -EINVAL, "size= is needed" },
	{ "a size=0", -EINVAL, "size=0: expected bytes, at least 1" },
	{ "a size=", -EINVAL, "size=: expected bytes, at least 1" },
	{ "a size=4G", -EINVAL, "size=4G: expected bytes, at least 1" },
	{ "a size", -EINVAL, "size needs a value" },
	{ "a size=8 size=8", -EINVAL, "size twice" },
	{ "a size=8 align=0", -EINVAL, "align=0: expected a power of two of bytes" },
	{ "a size=8 align=24", -EINVAL, "align=24: expected a power of two of bytes" },
	{ "a size=8 flags=", -EINVAL, "\"\" is not a flag" },
	{ "a size=8 flags=poison,", -EINVAL, "\"\" is not a flag" },
	{ "a size=8 flags=poison,,red_zone", -EINVAL, "\"\" is not a flag" },
	{ "a size=8 flags=Poison", -EINVAL, "\"Poison\" is not a flag" },
	{ "a size=8 flags=poison,panic", -EINVAL, "\"panic\" is not a flag" },
	{ "a size=8 flags=poison,poison", -EINVAL, "poison twice" },
	{ "a size=8 flags=poison flags=red_zone", -EINVAL, "flags twice" },
	{ "a size=8 ctor=x", -EINVAL, "\"ctor\" is not a key of slab/create" },
	{ "a size=8 b", -EINVAL, "\"b\" is not a key of slab/create" },
};

static void test_create_refusals(void)
{
	struct mf_cache_request cache, untouched;

	memset(&untouched, 0x5a, sizeof(untouched));
	for (size_t i = 0; i < sizeof(create_refusals) / sizeof(create_refusals[0]); i++) {
		memset(&cache, 0x5a, sizeof(cache));
		why[0] = '\0';
		CU_ASSERT_EQUAL(mf_ctl_parse_cache(mf_text_of(create_refusals[i].text), &cache, why,
						   sizeof(why)),
				create_refusals[i].error);
		CU_ASSERT_STRING_EQUAL(why, create_refusals[i].why);
		CU_ASSERT_EQUAL(memcmp(&cache, &untouched, sizeof(cache)), 0);
	}
	CU_ASSERT_EQUAL(mf_ctl_parse_cache(mf_text_of("a"), &cache, NULL, 0), -EINVAL);
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
	CU_ASSERT_FALSE(mf_ctl_alloc_waits(mf_text_of("a count=5 gfp=GFP_KERNEL")));
	CU_ASSERT_FALSE(mf_ctl_alloc_waits(mf_text_of("touch count=5")));
	CU_ASSERT_TRUE(mf_ctl_alloc_waits(mf_text_of("touch touch")));
	CU_ASSERT_TRUE(mf_ctl_alloc_waits(mf_text_of("a count=5 touch")));
	CU_ASSERT_TRUE(mf_ctl_alloc_waits(mf_text_of("a gfp=GFP_KERNEL|__GFP_NOFAIL count=5")));
	CU_ASSERT_FALSE(mf_ctl_alloc_waits(mf_text_of("a gfp=NOFAIL")));
	CU_ASSERT_TRUE(mf_ctl_alloc_waits(mf_text_of("a size=1M touch")));
	CU_ASSERT_FALSE(mf_ctl_alloc_waits(mf_text_of("a size=1M huge")));
	CU_ASSERT_TRUE(mf_ctl_alloc_waits(mf_text_of("a size=64 gfp=GFP_KERNEL|__GFP_NOFAIL")));
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
	UNIT_TEST(test_vmalloc_defaults),
	UNIT_TEST(test_vmalloc_keys_in_any_order),
	UNIT_TEST(test_vmalloc_sizes),
	UNIT_TEST(test_vmalloc_refusals),
	UNIT_TEST(test_slab_defaults),
	UNIT_TEST(test_slab_keys_in_any_order),
	UNIT_TEST(test_slab_refusals),
	UNIT_TEST(test_create_grammar),
	UNIT_TEST(test_create_refusals),
	UNIT_TEST(test_name_length),
	UNIT_TEST(test_what_may_wait),
	UNIT_TEST(test_free_grammar),
};

UNIT_MAIN("alloc_command", tests)
