/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranges when something is short: memory, addresses, mappings, descriptors, the
 * host's goodwill.  Whatever is refused leaves nothing behind, and what waits to
 * be purged is used before anything is refused.
 */
#include "vmalloc_fixture.h"

#define TWO_NODES "2x64M:cpus=1"
#define ONE_NODE "64M:cpus=1"

/* --- addresses --- */

static void test_no_addresses(void)
{
	struct mf_vmalloc_request request = request_of(8);
	struct mf_extent *extent;
	static struct machine m;
	char *first, *second;
	void *address;

	start(&m, TWO_NODES);
	set_linear(&m, 0);
	extent = fill_range(&m, 32768);
	CU_ASSERT_EQUAL(ask(&m, &request, &address), -ENOSPC);
	CU_ASSERT_STRING_EQUAL(m.why, "no 36864 bytes of addresses in a row (32768 and a guard page)");
	clear_range(&m, extent);
	expect_as_at_start(&m);
	extent = fill_range(&m, 36864);
	first = get(&m, 8);
	CU_ASSERT_EQUAL(info_of(&m).free_bytes, 0);
	CU_ASSERT_EQUAL(info_of(&m).largest_free, 0);
	CU_ASSERT_EQUAL(ask(&m, &request, &address), -ENOSPC);
	/* Freed lazily, its addresses are there for the next one. */
	put(&m, first);
	CU_ASSERT_EQUAL(info_of(&m).free_bytes, 0);
	second = get(&m, 8);
	CU_ASSERT_PTR_EQUAL(second, first);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_purge), 1);
	put(&m, second);
	/* Linear ranges need none. */
	set_linear(&m, 1);
	put(&m, get(&m, 400));
	CU_ASSERT_EQUAL(mf_vmalloc_purge(m.vm), 8);
	clear_range(&m, extent);
	expect_as_at_start(&m);
	stop(&m);
}

static void test_addresses_return_at_purge(void)
{
	static struct machine m;
	char *a, *b, *c, *d;

	start(&m, TWO_NODES);
	set_linear(&m, 0);
	a = get(&m, 3);
	b = get(&m, 3);
	CU_ASSERT_PTR_EQUAL(a, m.vm->base);
	CU_ASSERT_PTR_EQUAL(b, a + 4 * PAGE);
	put(&m, a);
	c = get(&m, 3);
	CU_ASSERT_PTR_EQUAL(c, b + 4 * PAGE);
	put(&m, b);
	put(&m, c);
	CU_ASSERT_EQUAL(info_of(&m).lazy_areas, 3);
	CU_ASSERT_EQUAL(info_of(&m).lazy_pages, 9);
	CU_ASSERT_EQUAL(mf_vmalloc_purge(m.vm), 9);
	/* Three neighbours, one call. */
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_seal_calls), 1);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_purge_areas), 3);
	d = get(&m, 11);
	CU_ASSERT_PTR_EQUAL(d, a);
	put(&m, d);
	expect_as_at_start(&m);
	stop(&m);
}

/* Neighbours together, strangers apart. */
static void test_purge_by_spans(void)
{
	static struct machine m;
	char *at[8];

	start(&m, TWO_NODES);
	set_linear(&m, 0);
	for (int i = 0; i < 8; i++)
		at[i] = get(&m, 1);
	put(&m, at[6]);
	put(&m, at[0]);
	put(&m, at[3]);
	put(&m, at[1]);
	put(&m, at[4]);
	CU_ASSERT_EQUAL(mf_vmalloc_purge(m.vm), 5);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_seal_calls), 3);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_purge_areas), 5);
	*(volatile char *)at[2] = *(volatile char *)at[5] = *(volatile char *)at[7] = 1;
	CU_ASSERT_EQUAL(info_of(&m).nr_free, 4);
	check_ok(&m, 0);
	put(&m, at[2]);
	put(&m, at[5]);
	put(&m, at[7]);
	expect_as_at_start(&m);
	stop(&m);
}

/* --- the bound of what waits --- */

static void test_lazy_bound(void)
{
	static struct machine m;
	char *at[6];

	start(&m, TWO_NODES);
	/* Two CPUs: two doublings of 32 MiB. */
	CU_ASSERT_EQUAL(knobs_of(&m).lazy_max, 16384);
	set_linear(&m, 0);
	set_lazy_max(&m, 100);
	for (int i = 0; i < 6; i++)
		at[i] = get(&m, 24);
	for (int i = 0; i < 4; i++)
		put(&m, at[i]);
	/* Guards count: four times 25. */
	CU_ASSERT_EQUAL(info_of(&m).lazy_pages, 96);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_purge), 0);
	put(&m, at[4]);
	CU_ASSERT_EQUAL(info_of(&m).lazy_pages, 0);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_purge), 1);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_purge_areas), 5);
	set_lazy_max(&m, 0);
	put(&m, at[5]);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_purge), 2);
	CU_ASSERT_EQUAL(info_of(&m).lazy_areas, 0);
	expect_as_at_start(&m);
	stop(&m);
}

/* Few pages in very many runs are not worth waiting with either. */
static void test_lazy_mappings(void)
{
	static struct machine m;
	memfs_pfn every_second[255];
	void *address, *other;
	struct mf_run whole;

	start(&m, TWO_NODES);
	CU_ASSERT_EQUAL_FATAL(mf_page_alloc_simple(&m.place, MEMFS_GFP_KERNEL, 9, &m.pfns[0]), 0);
	whole = (struct mf_run){ m.pfns[0].v, 512 };
	for (uint32_t i = 0; i < 255; i++)
		every_second[i].v = whole.pfn + 2 * i;
	CU_ASSERT_EQUAL_FATAL(mf_vmalloc_map(m.vm, 255, every_second, "test", &address, NULL, 0), 0);
	CU_ASSERT_EQUAL_FATAL(mf_vmalloc_map(m.vm, 1, every_second, "test", &other, NULL, 0), 0);
	CU_ASSERT_EQUAL(mf_vmalloc_unmap(m.vm, address), 0);
	CU_ASSERT_EQUAL(info_of(&m).lazy_areas, 1);
	CU_ASSERT_EQUAL(info_of(&m).mappings, 258);
	CU_ASSERT_EQUAL(mf_vmalloc_unmap(m.vm, other), 0);
	CU_ASSERT_EQUAL(info_of(&m).lazy_areas, 0);
	CU_ASSERT_EQUAL(info_of(&m).mappings, 0);
	mf_page_free_runs(m.pg, NULL, 1, &whole);
	expect_as_at_start(&m);
	stop(&m);
}

static void test_tick_purges_below_low(void)
{
	static struct machine m;
	char *address;

	start(&m, ONE_NODE);
	set_linear(&m, 0);
	address = get(&m, 1000);
	put(&m, address);
	mf_vmalloc_tick(m.vm);
	CU_ASSERT_EQUAL(info_of(&m).lazy_pages, 1000);
	hold(&m, 0, 16384 - 1000 - zone_of(&m, 0).marks.low + 50);
	mf_vmalloc_tick(m.vm);
	CU_ASSERT_EQUAL(info_of(&m).lazy_pages, 0);
	let_go(&m);
	expect_as_at_start(&m);
	stop(&m);
}

/* The host refuses to unmap: the area waits on, and so do its pages and addresses. */
static void test_sealing_refused(void)
{
	static struct machine m;
	char *address, *other;
	uint64_t mappings;

	start(&m, TWO_NODES);
	set_linear(&m, 0);
	address = get(&m, 30);
	mappings = info_of(&m).mappings;
	put(&m, address);
	mf_plat_sim_fail(m.plat, MF_SIM_WINDOW_SEAL, 1);
	CU_ASSERT_EQUAL(mf_vmalloc_purge(m.vm), 0);
	CU_ASSERT_EQUAL(info_of(&m).lazy_areas, 1);
	CU_ASSERT_EQUAL(info_of(&m).lazy_pages, 30);
	CU_ASSERT_EQUAL(info_of(&m).mappings, mappings);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_pgfree), 0);
	CU_ASSERT_EQUAL(mf_vmalloc_free(m.vm, &m.place, address), -EINVAL);
	check_ok(&m, 0);
	other = get(&m, 30);
	CU_ASSERT_PTR_EQUAL(other, address + 31 * PAGE);
	CU_ASSERT_EQUAL(mf_vmalloc_purge(m.vm), 30);
	CU_ASSERT_EQUAL(info_of(&m).lazy_areas, 0);
	put(&m, other);
	expect_as_at_start(&m);
	stop(&m);
}

/* --- memory --- */

static void expect_no_memory(struct machine *m, const struct mf_vmalloc_request *request)
{
	static struct mf_zone_info before[MF_MAX_ZONES];
	struct mf_rotation was = mf_placement_rotation(&m->place), is;
	void *address;

	mf_page_drain(m->pg, -1);
	snapshot(m, before);
	CU_ASSERT_EQUAL(ask(m, request, &address), -ENOMEM);
	CU_ASSERT_STRING_EQUAL(m->why, "4000 pages asked, so many were not there");
	is = mf_placement_rotation(&m->place);
	CU_ASSERT_EQUAL(memcmp(&was, &is, sizeof(is)), 0);
	expect_all_back(m, before, m->nr_pfns);
}

static void test_no_memory(void)
{
	struct mf_vmalloc_request request = request_of(4000);
	static struct machine m;
	void *address;

	start(&m, TWO_NODES);
	hold(&m, 0, 14000);
	hold(&m, 1, 15000);
	expect_no_memory(&m, &request);
	set_linear(&m, 0);
	expect_no_memory(&m, &request);
	set_large(&m, MF_VMALLOC_OFF);
	expect_no_memory(&m, &request);
	set_policy(&m, "interleave:0-1");
	expect_no_memory(&m, &request);
	set_large(&m, MF_VMALLOC_MAX);
	request.huge = true;
	expect_no_memory(&m, &request);
	request.page.node = 1;
	expect_no_memory(&m, &request);
	set_policy(&m, "bind:1");
	request.page.node = MF_NODE_BY_POLICY;
	expect_no_memory(&m, &request);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_fail), 7);
	let_go(&m);
	CU_ASSERT_EQUAL(ask(&m, &request, &address), 0);
	put(&m, address);
	expect_as_at_start(&m);
	stop(&m);
}

/* Node 0 has single pages only, node 1 everything: small and near goes before large and far. */
static void test_near_before_large(void)
{
	static struct machine m;
	char *address;
	size_t kept = 0;
	uint64_t stalls;

	start(&m, TWO_NODES);
	hold_node(&m, 0);
	for (size_t i = 0; i < m.nr_pfns; i++) {
		if (m.pfns[i].v % 2)
			mf_page_free(&m.place, m.pfns[i], 0);
		else
			m.pfns[kept++] = m.pfns[i];
	}
	m.nr_pfns = kept;
	stalls = stat_of(&m, MF_STAT_allocstall);
	mf_page_drain(m.pg, -1);
	CU_ASSERT_EQUAL(free_blocks(&m, 0, 9), 0);
	for (int linear = 0; linear < 2; linear++) {
		set_linear(&m, linear);
		address = get(&m, 512);
		expect_nodes(&m, address, 512, 0);
		put(&m, address);
	}
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_pgalloc), 0);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_allocstall), stalls);
	let_go(&m);
	expect_as_at_start(&m);
	stop(&m);
}

/* What the near node has left above its low mark, then the other. */
static void test_rest_from_the_other(void)
{
	struct mf_zone_info zone;
	static struct machine m;
	char *address;

	start(&m, TWO_NODES);
	set_linear(&m, 0);
	zone = zone_of(&m, 0);
	hold(&m, 0, zone.free - zone.marks.low - 200);
	mf_page_drain(m.pg, -1);
	CU_ASSERT_EQUAL(zone_of(&m, 0).free, zone.marks.low + 200);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_miss), 0);
	address = get(&m, 512);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_miss), 312);
	CU_ASSERT_EQUAL(stat_node(&m, 0, MF_STAT_numa_foreign), 312);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_hit), 0);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_other), 312);
	expect_nodes(&m, address, 200, 312);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_allocstall), 0);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_pages_single), 0);
	put(&m, address);
	let_go(&m);
	expect_as_at_start(&m);
	stop(&m);
}

/* The rest comes from the nearest, not from the next by number. */
static void test_rest_by_distance(void)
{
	static struct machine m;
	uint64_t by_node[64];
	char *address;

	start(&m, "node 0 cpus 0 zones Normal=64M\nnode 1 cpus 1 zones Normal=64M\n"
		  "node 2 cpus 2 zones Normal=64M\n"
		  "distance 0 10 40 20\ndistance 1 40 10 20\ndistance 2 20 20 10\n");
	hold_node(&m, 0);
	mf_page_drain(m.pg, -1);
	address = get(&m, 600);
	count_nodes(&m, address, by_node);
	CU_ASSERT_EQUAL(by_node[0], 0);
	CU_ASSERT_EQUAL(by_node[1], 0);
	CU_ASSERT_EQUAL(by_node[2], 600);
	put(&m, address);
	let_go(&m);
	expect_as_at_start(&m);
	stop(&m);
}

static void test_shrinker(void)
{
	static struct machine m;
	char *address, *again;
	memfs_pfn pfn;
	size_t got;

	start(&m, ONE_NODE);
	set_linear(&m, 0);
	set_lazy_max(&m, 16384);
	address = get(&m, 12000);
	put(&m, address);
	CU_ASSERT_EQUAL(info_of(&m).lazy_pages, 12000);
	again = get(&m, 11000);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_purge), 1);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_shrink_pages), 12000);
	put(&m, again);
	/* Not for ranges alone. */
	got = hold(&m, 0, 12000);
	CU_ASSERT_EQUAL(got, 12000);
	CU_ASSERT_EQUAL(info_of(&m).lazy_pages, 0);
	/* Parked runs come back that way, too. */
	set_linear(&m, 1);
	put(&m, get(&m, 200));
	CU_ASSERT_EQUAL(info_of(&m).parked_pages, 200);
	hold_node(&m, 0);
	CU_ASSERT_EQUAL(info_of(&m).parked_pages, 0);
	CU_ASSERT_NOT_EQUAL(mf_page_alloc_simple(&m.place, MEMFS_GFP_KERNEL, 0, &pfn), 0);
	let_go(&m);
	expect_as_at_start(&m);
	stop(&m);
}

/* --- the last large blocks --- */

/* Of eight pageblocks one stays free, and of another every second block of 32 pages. */
static void break_up(struct machine *m)
{
	for (; m->nr_pfns < 7; m->nr_pfns++)
		CU_ASSERT_EQUAL_FATAL(
			mf_page_alloc_simple(&m->place, MEMFS_GFP_KERNEL, 9, &m->pfns[m->nr_pfns]), 0);
	for (uint32_t at = 0; at < 512; at += 64)
		mf_page_free_runs(m->pg, NULL, 1, &(struct mf_run){ m->pfns[0].v + at, 32 });
	mf_page_drain(m->pg, -1);
}

static void mend(struct machine *m)
{
	for (uint32_t at = 32; at < 512; at += 64)
		mf_page_free_runs(m->pg, NULL, 1, &(struct mf_run){ m->pfns[0].v + at, 32 });
	while (--m->nr_pfns)
		mf_page_free(&m->place, m->pfns[m->nr_pfns], 9);
}

static void test_bounded_keeps_the_last(void)
{
	static struct machine m;
	char *address;

	start(&m, "16M:cpus=1");
	break_up(&m);
	CU_ASSERT_EQUAL(zone_of(&m, 0).free, 768);
	address = get(&m, 256);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_large_held_back), 8);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_large_attempts), 8);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_pages_large), 256);
	CU_ASSERT_EQUAL(free_blocks(&m, 0, 9), 1);
	CU_ASSERT_TRUE(is_mapped(&m, address));
	put(&m, address);
	mf_vmalloc_purge(m.vm);
	set_large(&m, MF_VMALLOC_MAX);
	address = get(&m, 256);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_large_held_back), 8);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_large_attempts), 9);
	CU_ASSERT_EQUAL(free_blocks(&m, 0, 9), 0);
	CU_ASSERT_FALSE(is_mapped(&m, address));
	put(&m, address);
	mf_vmalloc_purge(m.vm);
	mend(&m);
	expect_as_at_start(&m);
	stop(&m);
}

/* --- parked runs --- */

static void *simple(struct machine *m, uint64_t pages)
{
	void *address = mf_vmalloc_simple(m->vm, &m->place, pages * PAGE, MEMFS_GFP_KERNEL, "test");

	CU_ASSERT_PTR_NOT_NULL_FATAL(address);
	return address;
}

static void test_parked(void)
{
	static struct machine m;
	void *address, *other;
	uint64_t free;

	start(&m, TWO_NODES);
	address = simple(&m, 5);
	free = zone_of(&m, 0).free;
	put(&m, address);
	CU_ASSERT_EQUAL(info_of(&m).parked_pages, 5);
	CU_ASSERT_EQUAL(info_of(&m).lazy_pages, 5);
	CU_ASSERT_EQUAL(info_of(&m).used_pages, 0);
	CU_ASSERT_EQUAL(mf_vmalloc_parked(m.vm), 5);
	CU_ASSERT_EQUAL(zone_of(&m, 0).free, free);
	CU_ASSERT_EQUAL(stat_node(&m, 0, MF_STAT_pgfree), 5);
	CU_ASSERT_EQUAL(mf_vmalloc_free(m.vm, &m.place, address), -EINVAL);
	check_ok(&m, 0);
	/* Another size has no use for it. */
	other = simple(&m, 6);
	CU_ASSERT_PTR_NOT_EQUAL(other, address);
	CU_ASSERT_PTR_EQUAL(simple(&m, 5), address);
	CU_ASSERT_EQUAL(info_of(&m).parked_pages, 0);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_pages_parked), 5);
	CU_ASSERT_EQUAL(stat_node(&m, 0, MF_STAT_pgalloc), 16);
	CU_ASSERT_EQUAL(stat_node(&m, 0, MF_STAT_numa_hit), 16);
	CU_ASSERT_EQUAL(stat_node(&m, 0, MF_STAT_numa_local), 16);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_requests), 3);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_linear), 3);
	put(&m, address);
	put(&m, other);
	CU_ASSERT_EQUAL(mf_vmalloc_purge(m.vm), 11);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_pgfree), 16);
	CU_ASSERT_EQUAL(zone_of(&m, 0).free, 16384);
	expect_as_at_start(&m);
	stop(&m);
}

static void test_parks_nothing(void)
{
	static struct machine m;

	start(&m, TWO_NODES);
	/* Sizes that the lists keep, and large ones. */
	put(&m, simple(&m, 4));
	put(&m, simple(&m, 257));
	CU_ASSERT_EQUAL(info_of(&m).parked_pages, 0);
	put(&m, simple(&m, 256));
	CU_ASSERT_EQUAL(info_of(&m).parked_pages, 256);
	/* A purge empties it. */
	CU_ASSERT_EQUAL(mf_vmalloc_purge(m.vm), 256);
	set_lazy_max(&m, 0);
	put(&m, simple(&m, 5));
	CU_ASSERT_EQUAL(info_of(&m).parked_pages, 0);
	set_lazy_max(&m, 100);
	/* A run of another node is of no use to the next caller on this CPU. */
	set_policy(&m, "bind:1");
	put(&m, simple(&m, 5));
	CU_ASSERT_EQUAL(info_of(&m).parked_pages, 0);
	expect_as_at_start(&m);
	stop(&m);
}

/* --- a run that was joined from small pages --- */

/* Four pages in a row that are no block of four: they must not go back as one. */
static void test_joined_run(void)
{
	static struct machine m;
	char *address;
	uint32_t pfn;

	start(&m, ONE_NODE);
	hold_node(&m, 0);
	/* Free is what is held back by the marks, and these. */
	mf_page_free_runs(m.pg, NULL, 1, &(struct mf_run){ 4097, 1 });
	mf_page_free_runs(m.pg, NULL, 1, &(struct mf_run){ 4098, 3 });
	mf_fault_arm(&m.fault, MF_FAULT_vmalloc_large, 1, 1);
	address = get(&m, 4);
	mf_fault_disarm(&m.fault);
	CU_ASSERT_FALSE(is_mapped(&m, address));
	CU_ASSERT_TRUE(mf_vmalloc_page(m.vm, address, &pfn) && pfn == 4097);
	put(&m, address);
	mf_vmalloc_purge(m.vm);
	mf_page_drain(m.pg, -1);
	check_ok(&m, m.nr_pfns - 4);
	for (size_t i = 0; i < m.nr_pfns; i++)
		if (m.pfns[i].v < 4097 || m.pfns[i].v > 4100)
			mf_page_free(&m.place, m.pfns[i], 0);
	m.nr_pfns = 0;
	expect_as_at_start(&m);
	stop(&m);
}

/* --- the budget of mappings --- */

static void test_budget(void)
{
	static struct machine m;
	struct mf_run whole;
	memfs_pfn every_second[10];
	void *address, *again;

	start(&m, TWO_NODES);
	/* Of 65530, 100 are used and 2048 left alone. */
	CU_ASSERT_EQUAL(info_of(&m).max_mappings, 65530 - 100 - 2048);
	set_max_mappings(&m, 10);
	CU_ASSERT_EQUAL_FATAL(mf_page_alloc_simple(&m.place, MEMFS_GFP_KERNEL, 5, &m.pfns[0]), 0);
	whole = (struct mf_run){ m.pfns[0].v, 32 };
	for (uint32_t i = 0; i < 10; i++)
		every_second[i].v = whole.pfn + 2 * i;
	CU_ASSERT_EQUAL(mf_vmalloc_map(m.vm, 10, every_second, "test", &address, m.why, sizeof(m.why)),
			-ENOSPC);
	CU_ASSERT_STRING_EQUAL(m.why, "11 mappings needed, 0 of 10 are used (tune/vmalloc_max_mappings, "
				      "below vm.max_map_count)");
	CU_ASSERT_EQUAL(mf_vmalloc_map(m.vm, 9, every_second, "test", &address, m.why, sizeof(m.why)), 0);
	CU_ASSERT_EQUAL(info_of(&m).mappings, 10);
	CU_ASSERT_EQUAL(mf_vmalloc_map(m.vm, 1, every_second, "test", &again, m.why, sizeof(m.why)), -ENOSPC);
	CU_ASSERT_STRING_EQUAL(m.why, "2 mappings needed, 10 of 10 are used (tune/vmalloc_max_mappings, "
				      "below vm.max_map_count)");
	check_ok(&m, 32);
	/* Lazily freed ones count, and are purged before anything is refused. */
	CU_ASSERT_EQUAL(mf_vmalloc_unmap(m.vm, address), 0);
	CU_ASSERT_EQUAL(info_of(&m).mappings, 10);
	CU_ASSERT_EQUAL(mf_vmalloc_map(m.vm, 9, every_second, "test", &address, m.why, sizeof(m.why)), 0);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_purge), 1);
	CU_ASSERT_EQUAL(mf_vmalloc_unmap(m.vm, address), 0);
	mf_page_free_runs(m.pg, NULL, 1, &whole);
	expect_as_at_start(&m);
	stop(&m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_no_addresses),
	UNIT_TEST(test_addresses_return_at_purge),
	UNIT_TEST(test_purge_by_spans),
	UNIT_TEST(test_lazy_bound),
	UNIT_TEST(test_lazy_mappings),
	UNIT_TEST(test_tick_purges_below_low),
	UNIT_TEST(test_sealing_refused),
	UNIT_TEST(test_no_memory),
	UNIT_TEST(test_near_before_large),
	UNIT_TEST(test_rest_from_the_other),
	UNIT_TEST(test_rest_by_distance),
	UNIT_TEST(test_shrinker),
	UNIT_TEST(test_bounded_keeps_the_last),
	UNIT_TEST(test_parked),
	UNIT_TEST(test_parks_nothing),
	UNIT_TEST(test_joined_run),
	UNIT_TEST(test_budget),
};

UNIT_MAIN("vmalloc_pressure", tests)
