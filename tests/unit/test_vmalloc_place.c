/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the pages of a range come from: the nodes its policy gives it page by
 * page, whatever blocks they come in, and the path they take, counted.
 */
#include "vmalloc_fixture.h"

#define TWO_NODES "2x64M:cpus=1"

/* --- nodes --- */

static void expect_spread(const char *policy, uint64_t pages, uint64_t first, uint64_t second)
{
	static struct machine m;
	char *address;

	start(&m, TWO_NODES);
	set_weights(&m, 3, 1);
	set_policy(&m, policy);
	for (int linear = 0; linear < 2; linear++) {
		set_linear(&m, linear);
		address = get(&m, pages);
		expect_nodes(&m, address, first, second);
		put(&m, address);
	}
	expect_as_at_start(&m);
	stop(&m);
}

static void test_spread_by_page(void)
{
	expect_spread("weighted interleave:0-1", 400, 300, 100);
	expect_spread("weighted interleave:0-1", 512, 384, 128);
	expect_spread("weighted interleave:0-1", 4096, 3072, 1024);
	expect_spread("interleave:0-1", 512, 256, 256);
	expect_spread("bind:1", 400, 0, 400);
	expect_spread("prefer:1", 400, 0, 400);
	expect_spread("prefer (many):1", 400, 0, 400);
	expect_spread("local", 400, 400, 0);
	expect_spread("default", 400, 400, 0);
}

static void test_interleave_four(void)
{
	static struct machine m;
	uint64_t by_node[64];
	char *address;

	start(&m, "4x32M:cpus=1");
	set_policy(&m, "interleave:0-3");
	address = get(&m, 512);
	count_nodes(&m, address, by_node);
	for (int node = 0; node < 4; node++) {
		CU_ASSERT_EQUAL(by_node[node], 128);
		CU_ASSERT_EQUAL(stat_node(&m, node, MF_STAT_pgalloc), 128);
		CU_ASSERT_EQUAL(stat_node(&m, node, MF_STAT_numa_hit), 128);
		CU_ASSERT_EQUAL(stat_node(&m, node, MF_STAT_numa_interleave), 128);
	}
	CU_ASSERT_EQUAL(stat_node(&m, 0, MF_STAT_numa_local), 128);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_numa_other), 384);
	put(&m, address);
	expect_as_at_start(&m);
	stop(&m);
}

static void test_node_named(void)
{
	struct mf_vmalloc_request request = request_of(400);
	static struct machine m;
	struct mf_rotation before, after;
	uint64_t by_node[64];
	void *address;

	start(&m, TWO_NODES);
	set_policy(&m, "interleave:0-1");
	before = mf_placement_rotation(&m.place);
	request.page.node = 1;
	CU_ASSERT_EQUAL_FATAL(ask(&m, &request, &address), 0);
	expect_nodes(&m, address, 0, 400);
	after = mf_placement_rotation(&m.place);
	CU_ASSERT_EQUAL(memcmp(&before, &after, sizeof(before)), 0);
	put(&m, address);
	/* More than the node has: the rest comes from the other, unless it must not. */
	hold(&m, 1, 16000);
	CU_ASSERT_EQUAL_FATAL(ask(&m, &request, &address), 0);
	count_nodes(&m, address, by_node);
	CU_ASSERT_EQUAL(by_node[0] + by_node[1], 400);
	CU_ASSERT_TRUE(by_node[0] > 0 && by_node[1] > 0);
	put(&m, address);
	mf_vmalloc_purge(m.vm);
	request.page.gfp |= MEMFS___GFP_THISNODE;
	CU_ASSERT_EQUAL(ask(&m, &request, &address), -ENOMEM);
	CU_ASSERT_STRING_EQUAL(m.why, "400 pages asked, so many were not there");
	let_go(&m);
	CU_ASSERT_EQUAL_FATAL(ask(&m, &request, &address), 0);
	expect_nodes(&m, address, 0, 400);
	put(&m, address);
	expect_as_at_start(&m);
	stop(&m);
}

static void test_vma_policy(void)
{
	struct mf_vmalloc_request request = request_of(403);
	static struct machine m;
	struct mf_rotation before, after;
	struct mf_policy vma;
	void *address;

	start(&m, TWO_NODES);
	set_weights(&m, 3, 1);
	set_policy(&m, "interleave:0-1");
	vma = policy_of(&m, "weighted interleave:0-1");
	request.page.vma = &vma;
	before = mf_placement_rotation(&m.place);
	for (int round = 0; round < 2; round++) {
		CU_ASSERT_EQUAL_FATAL(ask(&m, &request, &address), 0);
		/* 100 cycles and 3 more of the first. */
		expect_nodes(&m, address, 303, 100);
		put(&m, address);
	}
	after = mf_placement_rotation(&m.place);
	CU_ASSERT_EQUAL(memcmp(&before, &after, sizeof(before)), 0);
	expect_as_at_start(&m);
	stop(&m);
}

/* However many pages a range has, the rotation is where so many single steps would have put it. */
static void test_rotation(void)
{
	static const uint64_t sizes[] = { 1, 2, 3, 4, 5, 7, 31, 100, 399, 400, 401, 512, 1023 };
	struct mf_rotation expected = MF_ROTATION_INIT, now;
	struct mf_weights weights;
	struct mf_policy policy;
	static struct machine m;

	start(&m, TWO_NODES);
	weights = set_weights(&m, 5, 2);
	set_policy(&m, "weighted interleave:0-1");
	policy = m.place.policy;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t nodes[2] = { 0, 0 };
		char *address = get(&m, sizes[i]);

		for (uint64_t k = 0; k < sizes[i]; k++)
			nodes[mf_policy_step(&policy, &weights, &expected)]++;
		now = mf_placement_rotation(&m.place);
		CU_ASSERT_EQUAL(now.il_prev, expected.il_prev);
		CU_ASSERT_EQUAL(now.il_weight, expected.il_weight);
		expect_nodes(&m, address, nodes[0], nodes[1]);
		put(&m, address);
	}
	expect_as_at_start(&m);
	stop(&m);
}

/* --- which path the pages come by --- */

/* 512 pages on an empty node, from small pages and from large ones. */
static void test_paths_of_512(void)
{
	static struct machine m;
	char *address;

	start(&m, TWO_NODES);
	set_large(&m, MF_VMALLOC_OFF);
	set_linear(&m, 0);
	address = get(&m, 512);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_buddy_calls), 6);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_large_attempts), 0);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_pages_bulk), 512);
	put(&m, address);
	set_large(&m, MF_VMALLOC_BOUNDED);
	address = get(&m, 512);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_buddy_calls), 7);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_large_attempts), 1);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_large_blocks), 1);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_pages_large), 512);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_pages_bulk), 512);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_mapped), 2);
	put(&m, address);
	set_linear(&m, 1);
	address = get(&m, 512);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_buddy_calls), 8);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_linear), 1);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_map_calls),
			info_of(&m).mappings - info_of(&m).lazy_areas);
	put(&m, address);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_bulk_requests), 0);
	expect_as_at_start(&m);
	stop(&m);
}

/* Blocks by falling powers of two; what is left below eight pages comes in bulk. */
static void test_paths_of_odd_sizes(void)
{
	static struct machine m;
	char *address;

	start(&m, TWO_NODES);
	set_linear(&m, 0);
	address = get(&m, 3007);
	/* 1024 1024 512 256 128 32 16 8, and 7 */
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_large_blocks), 8);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_large_attempts), 8);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_pages_large), 3000);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_pages_bulk), 7);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_buddy_calls), 9);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_pages_single), 0);
	put(&m, address);
	expect_as_at_start(&m);
	stop(&m);
}

static void test_small_pages(void)
{
	struct mf_vmalloc_knobs knobs;
	static struct machine m;

	start(&m, TWO_NODES);
	set_linear(&m, 0);
	put(&m, get(&m, 7));
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_large_attempts), 0);
	put(&m, get(&m, 8));
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_large_attempts), 1);
	knobs = knobs_of(&m);
	knobs.small_pages = 100;
	mf_vmalloc_set_knobs(m.vm, &knobs);
	put(&m, get(&m, 99));
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_large_attempts), 1);
	put(&m, get(&m, 128));
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_large_attempts), 2);
	expect_as_at_start(&m);
	stop(&m);
}

static void test_five_pages(void)
{
	memfs_pfn pfns[5];
	uint64_t before;
	static struct machine m;
	char *address;

	start(&m, TWO_NODES);
	before = zone_of(&m, 0).free;
	address = get(&m, 5);
	CU_ASSERT_EQUAL(zone_of(&m, 0).free, before - 5);
	CU_ASSERT_EQUAL(zone_of(&m, 0).pcp_count, 0);
	CU_ASSERT_EQUAL(mf_vmalloc_pages(m.vm, address, pfns, 5), 5);
	for (unsigned i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(pfns[i].v, pfns[0].v + i);
	CU_ASSERT_PTR_EQUAL(address, mf_page_address(m.pg, pfns[0].v));
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_pgalloc), 5);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_linear), 1);
	CU_ASSERT_EQUAL(info_of(&m).used_pages, 5);
	put(&m, address);
	expect_as_at_start(&m);
	stop(&m);
}

static void test_alignment(void)
{
	struct mf_vmalloc_request request = request_of(5);
	static struct machine m;
	void *address[32];
	unsigned n = 0;

	start(&m, TWO_NODES);
	for (int linear = 0; linear < 2; linear++) {
		set_linear(&m, linear);
		for (uint64_t align = 1; align <= 16 << 20; align *= 4) {
			request.align = align;
			CU_ASSERT_EQUAL_FATAL(ask(&m, &request, &address[n]), 0);
			CU_ASSERT_EQUAL((uintptr_t)address[n] % align, 0);
			n++;
		}
	}
	check_ok(&m, 0);
	while (n)
		put(&m, address[--n]);
	expect_as_at_start(&m);
	stop(&m);
}

/* --- huge --- */

static void test_huge(void)
{
	struct mf_vmalloc_request request = request_of(768);
	static struct machine m;
	memfs_pfn pfns[1024];
	void *address;

	start(&m, TWO_NODES);
	request.huge = true;
	for (int linear = 0; linear < 2; linear++) {
		set_linear(&m, linear);
		CU_ASSERT_EQUAL_FATAL(ask(&m, &request, &address), 0);
		CU_ASSERT_EQUAL((uintptr_t)address % (2 << 20), 0);
		CU_ASSERT_EQUAL(mf_vmalloc_pages(m.vm, address, pfns, 1024), 1024);
		CU_ASSERT_EQUAL(pfns[0].v % 512, 0);
		CU_ASSERT_EQUAL(pfns[512].v % 512, 0);
		CU_ASSERT_EQUAL(pfns[511].v, pfns[0].v + 511);
		CU_ASSERT_EQUAL(info_of(&m).used_pages, 1024);
		put(&m, address);
	}
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_huge_fallback), 0);
	/* Less than a huge page is no huge range. */
	request.size = 511 * PAGE;
	CU_ASSERT_EQUAL_FATAL(ask(&m, &request, &address), 0);
	CU_ASSERT_EQUAL(mf_vmalloc_pages(m.vm, address, NULL, 0), 511);
	put(&m, address);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_huge_fallback), 0);
	expect_as_at_start(&m);
	stop(&m);
}

/* One of two huge pages cannot be had: none is used, and the range is as long as was asked. */
static void test_huge_falls_back_whole(void)
{
	struct mf_vmalloc_request request = request_of(768);
	static struct machine m;
	void *address;

	start(&m, TWO_NODES);
	request.huge = true;
	request.page.node = 1;
	request.page.gfp |= MEMFS___GFP_THISNODE;
	set_linear(&m, 0);
	mf_fault_arm(&m.fault, MF_FAULT_vmalloc_large, 2, 0);
	CU_ASSERT_EQUAL_FATAL(ask(&m, &request, &address), 0);
	CU_ASSERT_TRUE(mf_fault_fired(&m.fault));
	mf_fault_disarm(&m.fault);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_huge_fallback), 1);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_large_fail_9), 1);
	expect_nodes(&m, address, 0, 768);
	CU_ASSERT_EQUAL(info_of(&m).used_pages, 768);
	put(&m, address);
	expect_as_at_start(&m);
	stop(&m);
}

static void test_huge_by_turns(void)
{
	struct mf_vmalloc_request request = request_of(2048);
	static struct machine m;
	struct mf_rotation now;
	void *address;

	start(&m, TWO_NODES);
	set_policy(&m, "interleave:0-1");
	request.huge = true;
	CU_ASSERT_EQUAL_FATAL(ask(&m, &request, &address), 0);
	expect_nodes(&m, address, 1024, 1024);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_huge_fallback), 0);
	now = mf_placement_rotation(&m.place);
	CU_ASSERT_EQUAL(now.il_prev, 1);
	CU_ASSERT_EQUAL(now.il_weight, 0);
	put(&m, address);
	expect_as_at_start(&m);
	stop(&m);
}

/* --- a few instructions --- */

/* On the caller's own CPU, whichever it is: sizes that the lists keep, and others. */
static void test_simple(void)
{
	static const uint64_t sizes[] = { 1, 2, 3, 4, 5, 8, 9, 100, 512, 513 };
	static struct machine m;
	uint64_t pages = 0;

	start(&m, "2x64M:cpus=512");
	mf_placement_set_cpu(&m.place, MEMFS_CPU_AUTO, m.topo);
	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			char *address = mf_vmalloc_simple(m.vm, &m.place, sizes[i] * PAGE - 100,
							  MEMFS_GFP_KERNEL, "test");

			CU_ASSERT_PTR_NOT_NULL_FATAL(address);
			CU_ASSERT_FALSE(is_mapped(&m, address));
			expect_nodes(&m, address, sizes[i], 0);
			CU_ASSERT_EQUAL(info_of(&m).used_pages, sizes[i]);
			pages += sizes[i];
			CU_ASSERT_EQUAL(stat_node(&m, 0, MF_STAT_pgalloc), pages);
			CU_ASSERT_EQUAL(stat_node(&m, 0, MF_STAT_numa_hit), pages);
			CU_ASSERT_EQUAL(stat_node(&m, 0, MF_STAT_numa_local), pages);
			put(&m, address);
			CU_ASSERT_EQUAL(stat_node(&m, 0, MF_STAT_pgfree), pages);
		}
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_requests), 30);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_linear), 30);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_pages_large) + stat_of(&m, MF_STAT_vmalloc_pages_parked) +
				stat_of(&m, MF_STAT_vmalloc_pages_bulk),
			pages);
	expect_as_at_start(&m);
	stop(&m);
}

/* Where it cannot be quick it still follows the policy and the knobs. */
static void test_simple_is_no_shortcut(void)
{
	static struct machine m;
	char *address;

	start(&m, TWO_NODES);
	set_policy(&m, "interleave:0-1");
	address = mf_vmalloc_simple(m.vm, &m.place, 8 * PAGE, MEMFS_GFP_KERNEL, "test");
	expect_nodes(&m, address, 4, 4);
	put(&m, address);
	set_policy(&m, "default");
	for (int round = 0; round < 2; round++) {
		if (round)
			set_large(&m, MF_VMALLOC_OFF);
		set_linear(&m, round);
		address = mf_vmalloc_simple(m.vm, &m.place, 9 * PAGE, MEMFS_GFP_KERNEL, "test");
		CU_ASSERT_TRUE(round || is_mapped(&m, address));
		put(&m, address);
		CU_ASSERT_EQUAL(info_of(&m).parked_pages, 0);
	}
	expect_as_at_start(&m);
	stop(&m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_spread_by_page),
	UNIT_TEST(test_interleave_four),
	UNIT_TEST(test_node_named),
	UNIT_TEST(test_vma_policy),
	UNIT_TEST(test_rotation),
	UNIT_TEST(test_paths_of_512),
	UNIT_TEST(test_paths_of_odd_sizes),
	UNIT_TEST(test_small_pages),
	UNIT_TEST(test_five_pages),
	UNIT_TEST(test_alignment),
	UNIT_TEST(test_huge),
	UNIT_TEST(test_huge_falls_back_whole),
	UNIT_TEST(test_huge_by_turns),
	UNIT_TEST(test_simple),
	UNIT_TEST(test_simple_is_no_shortcut),
};

UNIT_MAIN("vmalloc_place", tests)
