/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The page allocator on the simulator: placement, counters, per-CPU lists,
 * watermarks and reserves, pressure, trimming.
 */
#include "unit.h"

#include "page/page.h"
#include "plat/plat_sim.h"
#include "plat/rseq.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

struct machine {
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *pg;
	struct mf_placement place;
};

static void start(struct machine *m, const char *topology)
{
	char why[256] = "";

	memset(m, 0, sizeof(*m));
	mf_fault_init(&m->fault);
	CU_ASSERT_EQUAL_FATAL(mf_plat_sim_create(NULL, 0, &m->plat), 0);
	if (mf_topo_create(topology, m->plat, &m->topo, why, sizeof(why)))
		fprintf(stderr, "%s\n", why);
	CU_ASSERT_PTR_NOT_NULL_FATAL(m->topo);
	CU_ASSERT_EQUAL_FATAL(mf_page_create(m->topo, m->plat, &m->fault, &m->pg), 0);
	mf_placement_init(&m->place, m->pg);
}

static void stop(struct machine *m)
{
	mf_page_destroy(m->pg);
	mf_topo_destroy(m->topo);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(m->plat), 0);
	m->plat->ops->destroy(m->plat);
}

static void set_policy(struct machine *m, const char *text)
{
	struct mf_policy_context context;
	struct mf_policy policy;
	char why[128];

	mf_placement_context(m->topo, m->place.allowed, &context);
	CU_ASSERT_EQUAL_FATAL(mf_policy_parse(mf_text_of(text), &context, &policy, why, sizeof(why)), 0);
	mf_placement_set_policy(&m->place, &policy, m->topo);
}

static void set_weights(struct machine *m, unsigned w0, unsigned w1)
{
	struct mf_weights weights;

	memset(weights.of, 1, sizeof(weights.of));
	weights.of[0] = (uint8_t)w0;
	weights.of[1] = (uint8_t)w1;
	mf_page_set_weights(m->pg, &weights);
}

static struct mf_page_request request_for(memfs_gfp gfp, unsigned order)
{
	return (struct mf_page_request){
		.gfp = gfp, .order = order, .node = MF_NODE_BY_POLICY, .cpu = MF_CPU_OF_TASK
	};
}

static struct mf_page_request kernel_request(void)
{
	return request_for(MEMFS_GFP_KERNEL, 0);
}

static void snapshot(struct machine *m, struct mf_zone_info *infos)
{
	for (unsigned zone = 0; zone < MF_MAX_ZONES; zone++)
		mf_page_zone_info(m->pg, zone, &infos[zone]);
}

/* buddyinfo: blocks by order over all types. */
static uint64_t blocks(const struct mf_zone_info *info, unsigned order)
{
	uint64_t nr = 0;

	for (int type = 0; type < MF_NR_MIGRATE_TYPES; type++)
		nr += info->nr_free[type][order];
	return nr;
}

static bool same_buddyinfo(const struct mf_zone_info *a, const struct mf_zone_info *b)
{
	for (unsigned zone = 0; zone < MF_MAX_ZONES; zone++)
		for (unsigned order = 0; order < MF_NR_ORDERS; order++)
			if (blocks(&a[zone], order) != blocks(&b[zone], order))
				return false;
	return true;
}

static uint64_t stat_zone(struct machine *m, int node, enum mf_stat_id id)
{
	return mf_stat_zone_read(mf_page_stat(m->pg), mf_zone_index(node, MF_ZONE_NORMAL), id);
}

static void check_ok(struct machine *m, int64_t handed_out)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	unsigned bad = mf_page_check(m->pg, handed_out, &out);

	if (bad)
		fprintf(stderr, "%s", out.data);
	CU_ASSERT_EQUAL(bad, 0);
	mf_outbuf_free(&out);
}

static void count_nodes(struct machine *m, const memfs_pfn *pfns, size_t n, size_t *by_node)
{
	memset(by_node, 0, 64 * sizeof(*by_node));
	for (size_t i = 0; i < n; i++)
		by_node[mf_page_node(m->pg, pfns[i].v)]++;
}

static void test_weighted_bulk(void)
{
	struct mf_page_request request = kernel_request();
	static struct mf_zone_info before[MF_MAX_ZONES], after[MF_MAX_ZONES];
	static memfs_pfn pfns[1024];
	size_t by_node[64];
	struct machine m;

	start(&m, "2x64M:cpus=2");
	snapshot(&m, before);
	set_weights(&m, 3, 1);
	set_policy(&m, "weighted interleave:0-1");
	CU_ASSERT_EQUAL(mf_page_alloc_bulk(m.pg, &m.place, &request, 1024, pfns), 1024);
	count_nodes(&m, pfns, 1024, by_node);
	CU_ASSERT_EQUAL(by_node[0], 768);
	CU_ASSERT_EQUAL(by_node[1], 256);
	CU_ASSERT_EQUAL(mf_stat_read(mf_page_stat(m.pg), MF_STAT_bulk_node_calls), 2);
	CU_ASSERT_EQUAL(stat_zone(&m, 0, MF_STAT_numa_hit), 768);
	CU_ASSERT_EQUAL(stat_zone(&m, 1, MF_STAT_numa_hit), 256);
	CU_ASSERT_EQUAL(stat_zone(&m, 1, MF_STAT_numa_interleave), 256);
	CU_ASSERT_EQUAL(stat_zone(&m, 0, MF_STAT_numa_local), 768);
	CU_ASSERT_EQUAL(stat_zone(&m, 1, MF_STAT_numa_other), 256);
	check_ok(&m, 1024);
	mf_page_free_bulk(m.pg, &m.place, 1024, pfns);
	check_ok(&m, 0);
	mf_page_drain(m.pg, -1);
	snapshot(&m, after);
	CU_ASSERT_TRUE(same_buddyinfo(before, after));
	stop(&m);
}

/* The sequence: weights 10 and 7, 3 single, bulk 14, 1 single. */
static void test_mixed_calls(void)
{
	struct mf_page_request request = kernel_request();
	memfs_pfn single[4], bulk[14];
	size_t by_node[64];
	struct machine m;

	start(&m, "2x64M:cpus=2");
	set_weights(&m, 10, 7);
	set_policy(&m, "weighted-interleave:0-1");
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(mf_page_alloc_simple(&m.place, MEMFS_GFP_KERNEL, 0, &single[i]), 0);
	count_nodes(&m, single, 3, by_node);
	CU_ASSERT_EQUAL(by_node[0], 3);
	CU_ASSERT_EQUAL(mf_page_alloc_bulk(m.pg, &m.place, &request, 14, bulk), 14);
	count_nodes(&m, bulk, 14, by_node);
	CU_ASSERT_EQUAL(by_node[0], 7);
	CU_ASSERT_EQUAL(by_node[1], 7);
	CU_ASSERT_EQUAL(mf_page_alloc_simple(&m.place, MEMFS_GFP_KERNEL, 0, &single[3]), 0);
	CU_ASSERT_EQUAL(mf_page_node(m.pg, single[3].v), 0);
	stop(&m);
}

static uint64_t split_calls(const char *what, int split)
{
	struct mf_page_request request = kernel_request();
	struct mf_page_knobs knobs;
	memfs_pfn pfns[40];
	struct machine m;
	uint64_t calls;

	(void)what;
	start(&m, "2x64M:cpus=2");
	mf_page_get_knobs(m.pg, &knobs);
	knobs.bulk_split = split;
	mf_page_set_knobs(m.pg, &knobs);
	set_weights(&m, 10, 7);
	set_policy(&m, "weighted interleave:0-1");
	/* 3 pages leave 7 owed to node 0; 20 more need node 0 (7 and 3 more) and node 1. */
	CU_ASSERT_EQUAL(mf_page_alloc_bulk(m.pg, &m.place, &request, 3, pfns), 3);
	CU_ASSERT_EQUAL(mf_page_alloc_bulk(m.pg, &m.place, &request, 20, pfns + 3), 20);
	calls = mf_stat_read(mf_page_stat(m.pg), MF_STAT_bulk_node_calls);
	stop(&m);
	return calls;
}

static void test_split_makes_the_extra_call(void)
{
	CU_ASSERT_EQUAL(split_calls("carryover", 0), 3);
	CU_ASSERT_EQUAL(split_calls("split", 1), 4);
}

static void test_vma_range(void)
{
	struct mf_page_request request = kernel_request();
	struct mf_policy_context context;
	struct mf_policy policy;
	memfs_pfn pfns[10];
	struct machine m;
	char why[64];

	start(&m, "2x64M:cpus=2");
	set_weights(&m, 3, 1);
	mf_placement_context(m.topo, m.place.allowed, &context);
	mf_policy_parse(mf_text_of("weighted interleave:0-1"), &context, &policy, why, sizeof(why));
	request.vma = &policy;
	request.index = 2;
	CU_ASSERT_EQUAL(mf_page_alloc_bulk(m.pg, &m.place, &request, 10, pfns), 10);
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(mf_page_node(m.pg, pfns[i].v), (i + 2) % 4 == 3);
	CU_ASSERT_EQUAL(mf_placement_rotation(&m.place).il_weight, 0);
	stop(&m);
}

static void test_refill_sequence(void)
{
	static memfs_pfn pfns[8192];
	uint64_t last = 0, sizes[7];
	struct machine m;
	int refills = 0;

	/* 1 GiB, 4 CPUs: batch 63; 63, 126, 252, ... up to 2016 (behaviour 2.5). */
	start(&m, "1G:cpus=4");
	for (int i = 0; i < 8192 && refills < 7; i++) {
		uint64_t pages;

		CU_ASSERT_EQUAL_FATAL(mf_page_alloc_simple(&m.place, MEMFS_GFP_KERNEL, 0, &pfns[i]), 0);
		pages = stat_zone(&m, 0, MF_STAT_pcp_refill_pages);
		if (pages != last)
			sizes[refills++] = pages - last;
		last = pages;
	}
	CU_ASSERT_EQUAL_FATAL(refills, 7);
	CU_ASSERT_EQUAL(sizes[0], 63);
	CU_ASSERT_EQUAL(sizes[1], 126);
	CU_ASSERT_EQUAL(sizes[2], 252);
	CU_ASSERT_EQUAL(sizes[3], 504);
	CU_ASSERT_EQUAL(sizes[4], 1008);
	CU_ASSERT_EQUAL(sizes[5], 2016);
	CU_ASSERT_EQUAL(sizes[6], 2016);
	stop(&m);
}

static size_t exhaust(struct machine *m, memfs_gfp gfp, memfs_pfn *pfns, size_t most)
{
	struct mf_page_request request = request_for(gfp, 0);
	size_t n = 0;

	while (n < most && mf_page_alloc(m->pg, &m->place, &request, &pfns[n]) == 0)
		n++;
	return n;
}

static void test_exhaustion_and_reserves(void)
{
	static struct mf_zone_info before[MF_MAX_ZONES], after[MF_MAX_ZONES];
	static memfs_pfn pfns[20000];
	struct mf_page_request atomic = request_for(MEMFS_GFP_ATOMIC, 0);
	struct mf_page_request ignoring = request_for(MEMFS_GFP_KERNEL | MEMFS___GFP_MEMALLOC, 0);
	struct machine m;
	size_t n, deep, all;

	start(&m, "64M:cpus=2");
	snapshot(&m, before);
	/* 16384 pages, min 256 (one node of 64 MiB: isqrt(16 * 65536) = 1024 kB): GFP_KERNEL stops at min. */
	n = exhaust(&m, MEMFS_GFP_KERNEL, pfns, 20000);
	CU_ASSERT_EQUAL(n, 16384 - 256);
	/* Atomic requests may use half of min and a quarter of the rest: down to 96. */
	/* They cannot drain the lists themselves, and every list hit checks the mark first. */
	deep = n;
	for (size_t before_drain = 0; before_drain != deep; mf_page_drain(m.pg, -1)) {
		before_drain = deep;
		while (mf_page_alloc(m.pg, &m.place, &atomic, &pfns[deep]) == 0)
			deep++;
	}
	CU_ASSERT_EQUAL(deep, 16384 - 96);
	all = deep;
	while (mf_page_alloc(m.pg, &m.place, &ignoring, &pfns[all]) == 0)
		all++;
	CU_ASSERT_EQUAL(all, 16384);
	check_ok(&m, 16384);
	for (size_t i = 0; i < all; i++)
		mf_page_free(&m.place, pfns[i], 0);
	mf_page_drain(m.pg, -1);
	snapshot(&m, after);
	CU_ASSERT_TRUE(same_buddyinfo(before, after));
	stop(&m);
}

static void test_miss_and_foreign(void)
{
	static memfs_pfn pfns[20000];
	struct machine m;
	size_t n;

	start(&m, "2x64M:cpus=1");
	n = exhaust(&m, MEMFS_GFP_KERNEL, pfns, 17000);
	CU_ASSERT_EQUAL(n, 17000);
	CU_ASSERT_TRUE(stat_zone(&m, 1, MF_STAT_numa_miss) > 0);
	CU_ASSERT_EQUAL(stat_zone(&m, 1, MF_STAT_numa_miss), stat_zone(&m, 0, MF_STAT_numa_foreign));
	CU_ASSERT_EQUAL(stat_zone(&m, 0, MF_STAT_numa_hit) + stat_zone(&m, 1, MF_STAT_numa_miss), 17000);
	CU_ASSERT_EQUAL(stat_zone(&m, 1, MF_STAT_numa_other), stat_zone(&m, 1, MF_STAT_numa_miss));
	stop(&m);
}

static void test_thisnode_and_bind(void)
{
	static memfs_pfn pfns[20000];
	struct mf_page_request request = request_for(MEMFS_GFP_KERNEL | MEMFS___GFP_THISNODE, 0);
	struct machine m;
	size_t n = 0, by_node[64];

	start(&m, "2x64M:cpus=1");
	request.node = 1;
	while (n < 20000 && mf_page_alloc(m.pg, &m.place, &request, &pfns[n]) == 0)
		n++;
	count_nodes(&m, pfns, n, by_node);
	CU_ASSERT_EQUAL(by_node[0], 0);
	CU_ASSERT_TRUE(n < 16384 && n > 16000);
	set_policy(&m, "bind:1");
	request = kernel_request();
	CU_ASSERT_EQUAL(mf_page_alloc(m.pg, &m.place, &request, &pfns[n]), -ENOMEM);
	set_policy(&m, "prefer:1");
	CU_ASSERT_EQUAL(mf_page_alloc(m.pg, &m.place, &request, &pfns[n]), 0);
	CU_ASSERT_EQUAL(mf_page_node(m.pg, pfns[n].v), 0);
	request.node = 5;
	CU_ASSERT_EQUAL(mf_page_alloc(m.pg, &m.place, &request, &pfns[n]), -EINVAL);
	request = kernel_request();
	request.order = 11;
	CU_ASSERT_EQUAL(mf_page_alloc(m.pg, &m.place, &request, &pfns[n]), -EINVAL);
	stop(&m);
}

static void test_orders(void)
{
	static struct mf_zone_info before[MF_MAX_ZONES], after[MF_MAX_ZONES];
	memfs_pfn pfns[MF_NR_ORDERS];
	struct machine m;

	start(&m, "64M:cpus=1");
	snapshot(&m, before);
	for (unsigned order = 0; order < MF_NR_ORDERS; order++) {
		CU_ASSERT_EQUAL(mf_page_alloc_simple(&m.place, MEMFS_GFP_KERNEL, order, &pfns[order]), 0);
		CU_ASSERT_EQUAL(pfns[order].v & ((1u << order) - 1), 0);
		memset(mf_page_address(m.pg, pfns[order].v), 0xa5, (size_t)MEMFS_PAGE_SIZE << order);
	}
	check_ok(&m, 2047);
	for (unsigned order = 0; order < MF_NR_ORDERS; order++)
		mf_page_free(&m.place, pfns[order], order);
	check_ok(&m, 0);
	mf_page_drain(m.pg, -1);
	snapshot(&m, after);
	CU_ASSERT_TRUE(same_buddyinfo(before, after));
	CU_ASSERT_EQUAL(mf_page_alloc_simple(&m.place, MEMFS_GFP_KERNEL | MEMFS___GFP_ZERO, 9, &pfns[0]), 0);
	for (size_t i = 0; i < (size_t)MEMFS_PAGE_SIZE << 9; i++)
		if (((char *)mf_page_address(m.pg, pfns[0].v))[i]) {
			CU_FAIL("a page asked for with __GFP_ZERO is not clear");
			break;
		}
	stop(&m);
}

/* Pages on another CPU's list block a large block: drained and tried again (behaviour 2.9). */
static void test_drain_before_failing(void)
{
	static memfs_pfn pfns[16384];
	struct mf_page_request large = request_for(MEMFS_GFP_KERNEL, 9);
	struct mf_page_request ignoring = request_for(MEMFS_GFP_KERNEL | MEMFS___GFP_MEMALLOC, 0);
	struct machine m;
	memfs_pfn block;
	size_t n = 0;

	start(&m, "64M:cpus=2");
	while (n < 16384 && mf_page_alloc(m.pg, &m.place, &ignoring, &pfns[n]) == 0)
		n++;
	CU_ASSERT_EQUAL(n, 16384);
	mf_placement_set_cpu(&m.place, 1, m.topo);
	for (size_t i = 0; i < n; i += 2)
		mf_page_free(&m.place, pfns[i], 0);
	CU_ASSERT_EQUAL(mf_page_alloc(m.pg, &m.place, &large, &block), -ENOMEM);
	for (size_t i = 1; i < n; i += 2)
		mf_page_free(&m.place, pfns[i], 0);
	for (int i = 0; i < 30; i++)
		CU_ASSERT_EQUAL(mf_page_alloc(m.pg, &m.place, &large, &block), 0);
	stop(&m);
}

static uint64_t shrink_hook(void *arg, uint64_t nr_pages)
{
	struct machine *m = arg;
	static memfs_pfn none;

	(void)none;
	CU_ASSERT_TRUE(nr_pages >= 1);
	if (m->place.rotation == 12345)
		return 0;
	return 0;
}

static void test_shrinkers_are_asked(void)
{
	static memfs_pfn pfns[20000];
	struct machine m;

	start(&m, "16M:cpus=1");
	CU_ASSERT_EQUAL(mf_page_add_shrinker(m.pg, shrink_hook, &m), 0);
	exhaust(&m, MEMFS_GFP_KERNEL, pfns, 20000);
	CU_ASSERT_TRUE(mf_stat_read(mf_page_stat(m.pg), MF_STAT_shrink_calls) >= 1);
	stop(&m);
}

struct waiter {
	struct machine *m;
	struct mf_cancel cancel;
	memfs_pfn pfn;
	int result;
};

static void *wait_for_page(void *arg)
{
	struct waiter *w = arg;
	struct mf_page_request request = request_for(MEMFS_GFP_KERNEL | MEMFS___GFP_NOFAIL, 0);

	request.cancel = &w->cancel;
	w->result = mf_page_alloc(w->m->pg, &w->m->place, &request, &w->pfn);
	return NULL;
}

static void test_nofail_waits(void)
{
	static memfs_pfn pfns[20000];
	struct waiter w = { 0 };
	struct machine m;
	pthread_t thread;
	size_t n;

	start(&m, "16M:cpus=1");
	n = exhaust(&m, MEMFS_GFP_KERNEL, pfns, 20000);
	w.m = &m;
	pthread_create(&thread, NULL, wait_for_page, &w);
	usleep(50000);
	for (size_t i = 0; i < 64; i++)
		mf_page_free(&m.place, pfns[--n], 0);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(w.result, 0);
	mf_page_free(&m.place, w.pfn, 0);
	n += exhaust(&m, MEMFS_GFP_KERNEL, pfns + n, 20000 - n);
	pthread_create(&thread, NULL, wait_for_page, &w);
	usleep(50000);
	mf_page_cancel(m.pg, &w.cancel);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(w.result, -EINTR);
	check_ok(&m, (int64_t)n);
	stop(&m);
}

static void test_trim(void)
{
	struct mf_page_request request = request_for(MEMFS_GFP_KERNEL, 10);
	memfs_pfn pfns[4];
	struct machine m;

	start(&m, "64M:cpus=1");
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(mf_page_alloc(m.pg, &m.place, &request, &pfns[i]), 0);
		memset(mf_page_address(m.pg, pfns[i].v), 0x5a, (size_t)MEMFS_PAGE_SIZE << 10);
	}
	CU_ASSERT_TRUE(mf_page_resident(m.pg, 0) >= 16 << 20);
	for (int i = 0; i < 4; i++)
		mf_page_free(&m.place, pfns[i], 10);
	for (int i = 0; i < 9; i++)
		mf_page_tick(m.pg);
	CU_ASSERT_TRUE(mf_page_resident(m.pg, 0) >= 16 << 20);
	mf_page_tick(m.pg);
	mf_page_tick(m.pg);
	CU_ASSERT_EQUAL(mf_page_resident(m.pg, 0), 0);
	CU_ASSERT_EQUAL(mf_stat_read(mf_page_stat(m.pg), MF_STAT_trim_pages), 4096);
	check_ok(&m, 0);
	CU_ASSERT_EQUAL(mf_page_alloc(m.pg, &m.place, &request, &pfns[0]), 0);
	CU_ASSERT_EQUAL(((char *)mf_page_address(m.pg, pfns[0].v))[0], 0);
	mf_page_free(&m.place, pfns[0], 10);
	CU_ASSERT_EQUAL(mf_page_trim(m.pg), 1024);
	mf_fault_arm(&m.fault, MF_FAULT_arena_trim, 1, 1);
	CU_ASSERT_EQUAL(mf_page_alloc(m.pg, &m.place, &request, &pfns[0]), 0);
	mf_page_free(&m.place, pfns[0], 10);
	CU_ASSERT_EQUAL(mf_page_trim(m.pg), 0);
	mf_fault_disarm(&m.fault);
	check_ok(&m, 0);
	stop(&m);
}

static void test_highatomic(void)
{
	static struct mf_zone_info before[MF_MAX_ZONES], after[MF_MAX_ZONES];
	static memfs_pfn pfns[70000];
	struct mf_page_request atomic = request_for(MEMFS_GFP_ATOMIC, 3);
	struct mf_zone_info info;
	struct machine m;
	memfs_pfn block;
	size_t n;

	start(&m, "256M:cpus=1");
	snapshot(&m, before);
	n = exhaust(&m, MEMFS_GFP_KERNEL, pfns, 70000);
	/* Room for one block of order 3, but only below min. */
	for (size_t i = 0; i < 4096; i++)
		mf_page_free(&m.place, pfns[--n], 0);
	mf_page_drain(m.pg, -1);
	n += exhaust(&m, MEMFS_GFP_KERNEL | MEMFS___GFP_NORETRY, pfns + n, 70000 - n);
	CU_ASSERT_EQUAL(mf_page_alloc(m.pg, &m.place, &atomic, &block), 0);
	mf_page_zone_info(m.pg, mf_zone_index(0, MF_ZONE_NORMAL), &info);
	CU_ASSERT_EQUAL(info.reserved_highatomic, 512);
	check_ok(&m, (int64_t)n + 8);
	mf_page_free(&m.place, block, 3);
	while (n)
		mf_page_free(&m.place, pfns[--n], 0);
	mf_page_drain(m.pg, -1);
	snapshot(&m, after);
	CU_ASSERT_EQUAL(after[mf_zone_index(0, MF_ZONE_NORMAL)].reserved_highatomic, 0);
	CU_ASSERT_TRUE(same_buddyinfo(before, after));
	stop(&m);
}

/* Alternating auto and fixed CPUs, so that lists are opened and shut. */
static void test_visitors(void)
{
	struct mf_placement fixed;
	static memfs_pfn pfns[1000];
	struct machine m;

	start(&m, "64M:cpus=2");
	if (!mf_page_rseq_available()) {
		printf("(no restartable sequences here: the locked lists are tested) ");
	}
	fixed = m.place;
	mf_placement_set_cpu(&m.place, MEMFS_CPU_AUTO, m.topo);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 1000; i++) {
			struct mf_placement *place = i % 3 ? &m.place : &fixed;

			mf_placement_set_cpu(&fixed, i & 1, m.topo);
			CU_ASSERT_EQUAL_FATAL(mf_page_alloc_simple(place, MEMFS_GFP_KERNEL, 0, &pfns[i]), 0);
		}
		check_ok(&m, 1000);
		for (int i = 0; i < 1000; i++)
			mf_page_free(i % 5 ? &m.place : &fixed, pfns[i], 0);
		check_ok(&m, 0);
	}
	CU_ASSERT_EQUAL(mf_stat_read(mf_page_stat(m.pg), MF_STAT_pgalloc), 20000);
	CU_ASSERT_EQUAL(mf_stat_read(mf_page_stat(m.pg), MF_STAT_pgfree), 20000);
	CU_ASSERT_EQUAL(mf_stat_read(mf_page_stat(m.pg), MF_STAT_numa_hit), 20000);
	stop(&m);
}

/* A handler allocates and frees whatever it interrupts; nothing is lost and nothing hangs. */
static struct machine *handler_machine;
static volatile sig_atomic_t handler_done, handler_failed;

static void on_alarm(int signal_number)
{
	memfs_pfn pfn;

	(void)signal_number;
	if (mf_page_alloc_simple(&handler_machine->place, MEMFS_GFP_ATOMIC, 0, &pfn) == 0) {
		*(volatile char *)mf_page_address(handler_machine->pg, pfn.v) = 1;
		mf_page_free(&handler_machine->place, pfn, 0);
		handler_done++;
	} else {
		handler_failed++;
	}
}

static void run_with_alarms(int cpu, const char *policy)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct mf_page_request request = kernel_request();
	static memfs_pfn pfns[512];
	struct machine m;
	uint64_t allocated = 0;
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct itimerspec every = { { 0, 50000 }, { 0, 50000 } };

	start(&m, "2x64M:cpus=2");
	set_policy(&m, policy);
	mf_placement_set_cpu(&m.place, cpu, m.topo);
	handler_machine = &m;
	handler_done = handler_failed = 0;
	sigaction(SIGALRM, &action, NULL);
	CU_ASSERT_EQUAL_FATAL(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	timer_settime(timer, 0, &every, NULL);
	for (int round = 0; round < 4000 && handler_done < 2000; round++) {
		size_t n = mf_page_alloc_bulk(m.pg, &m.place, &request, 512, pfns);

		allocated += n;
		mf_page_free_bulk(m.pg, &m.place, n, pfns);
		if (round % 64 == 0)
			mf_page_drain(m.pg, -1);
	}
	timer_delete(timer);
	CU_ASSERT_TRUE(handler_done > 0);
	CU_ASSERT_TRUE(allocated > 0);
	check_ok(&m, 0);
	CU_ASSERT_EQUAL(mf_stat_read(mf_page_stat(m.pg), MF_STAT_pgalloc),
			allocated + (uint64_t)handler_done);
	CU_ASSERT_EQUAL(mf_stat_read(mf_page_stat(m.pg), MF_STAT_pgfree), allocated + (uint64_t)handler_done);
	CU_ASSERT_EQUAL(mf_stat_read(mf_page_stat(m.pg), MF_STAT_alloc_nowait_fail),
			(uint64_t)handler_failed);
	stop(&m);
}

static void test_signal_handler(void)
{
	run_with_alarms(0, "local");
	run_with_alarms(MEMFS_CPU_AUTO, "local");
	run_with_alarms(MEMFS_CPU_AUTO, "interleave:0-1");
}

static void test_irq_bypass(void)
{
	struct mf_page_request irq = kernel_request();
	struct mf_page_knobs knobs;
	uint64_t locks;
	struct machine m;
	memfs_pfn pfn;

	start(&m, "64M:cpus=2");
	irq.irq = true;
	for (int i = 0; i < 100; i++) {
		CU_ASSERT_EQUAL(mf_page_alloc(m.pg, &m.place, &irq, &pfn), 0);
		mf_page_free_irq(m.pg, &m.place, pfn, 0);
	}
	locks = mf_stat_read(mf_page_stat(m.pg), MF_STAT_zone_lock);
	mf_page_get_knobs(m.pg, &knobs);
	knobs.pcp_irq_bypass = 1;
	mf_page_set_knobs(m.pg, &knobs);
	locks = mf_stat_read(mf_page_stat(m.pg), MF_STAT_zone_lock);
	for (int i = 0; i < 100; i++) {
		CU_ASSERT_EQUAL(mf_page_alloc(m.pg, &m.place, &irq, &pfn), 0);
		mf_page_free_irq(m.pg, &m.place, pfn, 0);
	}
	CU_ASSERT_EQUAL(mf_stat_read(mf_page_stat(m.pg), MF_STAT_zone_lock) - locks, 200);
	stop(&m);
}

static void test_pcp_modes(void)
{
	static const enum mf_pcp_mode modes[] = { MF_PCP_RSEQ, MF_PCP_TRYLOCK, MF_PCP_OFF };
	struct mf_page_knobs knobs;
	struct machine m;
	memfs_pfn pfns[100];

	start(&m, "64M:cpus=2");
	mf_placement_set_cpu(&m.place, MEMFS_CPU_AUTO, m.topo);
	for (size_t mode = 0; mode < 3; mode++) {
		uint64_t locks;

		mf_page_get_knobs(m.pg, &knobs);
		knobs.pcp_mode = (int)modes[mode];
		mf_page_set_knobs(m.pg, &knobs);
		locks = mf_stat_read(mf_page_stat(m.pg), MF_STAT_zone_lock);
		for (int i = 0; i < 100; i++)
			CU_ASSERT_EQUAL(mf_page_alloc_simple(&m.place, MEMFS_GFP_KERNEL, 0, &pfns[i]), 0);
		for (int i = 0; i < 100; i++)
			mf_page_free(&m.place, pfns[i], 0);
		locks = mf_stat_read(mf_page_stat(m.pg), MF_STAT_zone_lock) - locks;
		if (modes[mode] == MF_PCP_OFF)
			CU_ASSERT_EQUAL(locks, 200);
		if (modes[mode] != MF_PCP_OFF)
			CU_ASSERT_TRUE(locks < 100);
		check_ok(&m, 0);
	}
	stop(&m);
}

static void test_numa_off(void)
{
	struct mf_page_request request = kernel_request();
	struct mf_page_knobs knobs;
	memfs_pfn pfns[64];
	size_t by_node[64];
	struct machine m;

	start(&m, "2x64M:cpus=2");
	set_policy(&m, "interleave:0-1");
	mf_page_get_knobs(m.pg, &knobs);
	knobs.numa = 0;
	mf_page_set_knobs(m.pg, &knobs);
	CU_ASSERT_EQUAL(mf_page_alloc_bulk(m.pg, &m.place, &request, 64, pfns), 64);
	count_nodes(&m, pfns, 64, by_node);
	CU_ASSERT_EQUAL(by_node[0], 64);
	CU_ASSERT_EQUAL(mf_stat_read(mf_page_stat(m.pg), MF_STAT_numa_hit), 0);
	CU_ASSERT_EQUAL(mf_stat_read(mf_page_stat(m.pg), MF_STAT_pgalloc), 64);
	stop(&m);
}

static void test_creation_failures(void)
{
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *pg;
	bool done = false;

	CU_ASSERT_EQUAL_FATAL(mf_plat_sim_create(NULL, 0, &plat), 0);
	CU_ASSERT_EQUAL_FATAL(mf_topo_create("2x16M:cpus=2", plat, &topo, NULL, 0), 0);
	for (uint64_t nth = 1; !done; nth++) {
		int error;

		mf_fault_init(&fault);
		mf_fault_arm_any(&fault, nth);
		error = mf_page_create(topo, plat, &fault, &pg);
		done = !mf_fault_fired(&fault);
		if (!error)
			mf_page_destroy(pg);
		CU_ASSERT_EQUAL(error, done ? 0 : -ENOMEM);
		CU_ASSERT_EQUAL(mf_plat_sim_outstanding(plat), 0);
	}
	mf_topo_destroy(topo);
	plat->ops->destroy(plat);
}

static void test_gfp_text(void)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	memfs_gfp gfp = 0;

	CU_ASSERT_EQUAL(mf_gfp_parse(mf_text_of("GFP_KERNEL|__GFP_ZERO"), &gfp), 0);
	CU_ASSERT_EQUAL(gfp, MEMFS_GFP_KERNEL | MEMFS___GFP_ZERO);
	mf_gfp_print(gfp, &out);
	CU_ASSERT_STRING_EQUAL(out.data, "GFP_KERNEL|__GFP_ZERO");
	CU_ASSERT_EQUAL(mf_gfp_parse(mf_text_of("GFP_KERNEL|"), &gfp), -EINVAL);
	CU_ASSERT_EQUAL(mf_gfp_parse(mf_text_of(""), &gfp), -EINVAL);
	CU_ASSERT_EQUAL(mf_gfp_parse(mf_text_of("GFP_NONE"), &gfp), -EINVAL);
	CU_ASSERT_EQUAL(gfp, MEMFS_GFP_KERNEL | MEMFS___GFP_ZERO);
	mf_outbuf_free(&out);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_weighted_bulk),
	UNIT_TEST(test_mixed_calls),
	UNIT_TEST(test_split_makes_the_extra_call),
	UNIT_TEST(test_vma_range),
	UNIT_TEST(test_refill_sequence),
	UNIT_TEST(test_exhaustion_and_reserves),
	UNIT_TEST(test_miss_and_foreign),
	UNIT_TEST(test_thisnode_and_bind),
	UNIT_TEST(test_orders),
	UNIT_TEST(test_drain_before_failing),
	UNIT_TEST(test_shrinkers_are_asked),
	UNIT_TEST(test_nofail_waits),
	UNIT_TEST(test_trim),
	UNIT_TEST(test_highatomic),
	UNIT_TEST(test_visitors),
	UNIT_TEST(test_signal_handler),
	UNIT_TEST(test_irq_bypass),
	UNIT_TEST(test_pcp_modes),
	UNIT_TEST(test_numa_off),
	UNIT_TEST(test_creation_failures),
	UNIT_TEST(test_gfp_text),
};

UNIT_MAIN("page", tests)
