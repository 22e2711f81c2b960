/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs of pages on the simulator: taken exactly, from one node and above its
 * low mark or not at all, and given back so that nothing shows of them.
 */
#include "unit.h"

#include "page/page.h"
#include "page/page_internal.h"
#include "plat/plat_sim.h"

#include <errno.h>
#include <sched.h>

struct machine {
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *pg;
	struct mf_placement place;
};

/* Counters that a try must leave alone. */
static const enum mf_stat_id signs_of_trouble[] = { MF_STAT_alloc_fail,	  MF_STAT_alloc_nowait_fail,
						    MF_STAT_alloc_wait,	  MF_STAT_allocstall,
						    MF_STAT_drain_all,	  MF_STAT_highatomic_reserve,
						    MF_STAT_shrink_calls, MF_STAT_numa_miss };

/* A topology in the short form, or the lines of a FILE. */
static void start(struct machine *m, const char *topology)
{
	char why[256] = "";

	memset(m, 0, sizeof(*m));
	mf_fault_init(&m->fault);
	CU_ASSERT_EQUAL_FATAL(mf_plat_sim_create(NULL, 0, &m->plat), 0);
	if (!strncmp(topology, "node", 4))
		mf_topo_parse_file(topology, strlen(topology), &m->topo, why, sizeof(why));
	else
		mf_topo_create(topology, m->plat, &m->topo, why, sizeof(why));
	CU_ASSERT_STRING_EQUAL_FATAL(why, "");
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

static void set_mode(struct machine *m, enum mf_pcp_mode mode)
{
	struct mf_page_knobs knobs;

	mf_page_get_knobs(m->pg, &knobs);
	knobs.pcp_mode = (int)mode;
	mf_page_set_knobs(m->pg, &knobs);
}

static struct mf_page_request on_node(int node, memfs_gfp gfp)
{
	return (struct mf_page_request){ .gfp = gfp, .node = node, .cpu = MF_CPU_OF_TASK };
}

static uint64_t stat_all(struct machine *m, enum mf_stat_id id)
{
	return mf_stat_read(mf_page_stat(m->pg), id);
}

static uint64_t stat_zone(struct machine *m, int node, enum mf_zone_type type, enum mf_stat_id id)
{
	return mf_stat_zone_read(mf_page_stat(m->pg), mf_zone_index(node, type), id);
}

static uint64_t stat_node(struct machine *m, int node, enum mf_stat_id id)
{
	return stat_zone(m, node, MF_ZONE_NORMAL, id);
}

static void check_no_trouble(struct machine *m)
{
	for (size_t i = 0; i < sizeof(signs_of_trouble) / sizeof(signs_of_trouble[0]); i++)
		CU_ASSERT_EQUAL(stat_all(m, signs_of_trouble[i]), 0);
}

static struct mf_zone_info info_of(struct machine *m, int node)
{
	struct mf_zone_info info;

	mf_page_zone_info(m->pg, mf_zone_index(node, MF_ZONE_NORMAL), &info);
	return info;
}

static void snapshot(struct machine *m, struct mf_zone_info *infos)
{
	for (unsigned zone = 0; zone < MF_MAX_ZONES; zone++)
		mf_page_zone_info(m->pg, zone, &infos[zone]);
}

static uint64_t blocks(const struct mf_zone_info *info, unsigned order)
{
	uint64_t nr = 0;

	for (int type = 0; type < MF_NR_MIGRATE_TYPES; type++)
		nr += info->nr_free[type][order];
	return nr;
}

static bool same_buddyinfo(struct machine *m, const struct mf_zone_info *before)
{
	static struct mf_zone_info now[MF_MAX_ZONES];

	snapshot(m, now);
	for (unsigned zone = 0; zone < MF_MAX_ZONES; zone++)
		for (unsigned order = 0; order < MF_NR_ORDERS; order++)
			if (blocks(&before[zone], order) != blocks(&now[zone], order))
				return false;
	return true;
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

static uint32_t take_run(struct machine *m, const struct mf_page_request *request, uint32_t pages)
{
	memfs_pfn pfn = { UINT32_MAX };

	CU_ASSERT_EQUAL_FATAL(mf_page_alloc_run(m->pg, &m->place, request, pages, &pfn), 0);
	return pfn.v;
}

static void give_run(struct machine *m, const struct mf_placement *place, uint32_t pfn, uint32_t pages)
{
	struct mf_run run = { pfn, pages };

	mf_page_free_runs(m->pg, place, 1, &run);
}

/* --- taking --- */

/* Every size: exactly its pages are gone, counted and together; then everything is as before. */
static void every_size(enum mf_pcp_mode mode, bool to_lists)
{
	static struct mf_zone_info before[MF_MAX_ZONES];
	struct mf_page_request request = on_node(1, MEMFS_GFP_KERNEL);
	uint64_t sum = 0, off = 0;
	struct machine m;

	start(&m, "2x64M:cpus=2");
	set_mode(&m, mode);
	snapshot(&m, before);
	for (uint32_t pages = 1; pages <= 1024; pages++) {
		uint32_t pfn = take_run(&m, &request, pages), order = 0;
		struct mf_zone_info info = info_of(&m, 1);

		while (1u << order < pages)
			order++;
		sum += pages;
		off += pfn & ((1u << order) - 1) || mf_page_node(m.pg, pfn) != 1 ||
		       mf_page_node(m.pg, pfn + pages - 1) != 1;
		off += info.free + info.pcp_count != 16384 - pages;
		off += stat_node(&m, 1, MF_STAT_pgalloc) != sum;
		off += stat_node(&m, 1, MF_STAT_numa_hit) != sum;
		off += stat_node(&m, 1, MF_STAT_numa_other) != sum;
		off += stat_node(&m, 1, MF_STAT_pgfree) != sum - pages;
		if (pages % 101 == 0)
			check_ok(&m, pages);
		give_run(&m, to_lists ? &m.place : NULL, pfn, pages);
		off += stat_node(&m, 1, MF_STAT_pgfree) != sum;
		mf_page_drain(m.pg, -1);
		off += !same_buddyinfo(&m, before);
	}
	CU_ASSERT_EQUAL(off, 0);
	CU_ASSERT_EQUAL(sum, 524800);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_pgalloc), sum);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_numa_local), 0);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_alloc_fail), 0);
	check_ok(&m, 0);
	stop(&m);
}

static void test_every_size(void)
{
	every_size(MF_PCP_OFF, false);
	every_size(MF_PCP_TRYLOCK, true);
	every_size(mf_page_rseq_available() ? MF_PCP_RSEQ : MF_PCP_TRYLOCK, false);
}

/* A part of a block costs one hold of the zone's lock, its tail included; a whole one is on the lists. */
static void test_lock_holds(void)
{
	struct mf_page_request request = on_node(0, MEMFS_GFP_KERNEL);
	uint64_t locks;
	struct machine m;
	uint32_t pfn;

	start(&m, "2x64M:cpus=2");
	set_mode(&m, MF_PCP_TRYLOCK);
	locks = stat_all(&m, MF_STAT_zone_lock);
	pfn = take_run(&m, &request, 387);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_zone_lock) - locks, 1);
	give_run(&m, &m.place, pfn, 387);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_zone_lock) - locks, 2);
	pfn = take_run(&m, &request, 4);
	give_run(&m, &m.place, pfn, 4);
	locks = stat_all(&m, MF_STAT_zone_lock);
	for (int i = 0; i < 10; i++) {
		CU_ASSERT_EQUAL(take_run(&m, &request, 4), pfn);
		give_run(&m, &m.place, pfn, 4);
	}
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_zone_lock), locks);
	stop(&m);
}

static void test_refused_requests(void)
{
	struct mf_page_request request = on_node(0, MEMFS_GFP_KERNEL);
	memfs_pfn pfn = { 77 };
	struct machine m;

	start(&m, "2x64M:cpus=2+0M:cpus=1");
	CU_ASSERT_EQUAL(mf_page_alloc_run(m.pg, &m.place, &request, 0, &pfn), -EINVAL);
	CU_ASSERT_EQUAL(mf_page_alloc_run(m.pg, &m.place, &request, 1025, &pfn), -EINVAL);
	request.node = MF_NODE_BY_POLICY;
	CU_ASSERT_EQUAL(mf_page_alloc_run(m.pg, &m.place, &request, 1, &pfn), -EINVAL);
	CU_ASSERT_EQUAL(mf_page_alloc_some(m.pg, &m.place, &request, 1, &pfn), 0);
	request.node = 2;
	CU_ASSERT_EQUAL(mf_page_alloc_run(m.pg, &m.place, &request, 1, &pfn), -EINVAL);
	CU_ASSERT_EQUAL(mf_page_alloc_some(m.pg, &m.place, &request, 1, &pfn), 0);
	/* The task's allowed nodes hold for a node named, too. */
	request.node = 1;
	CU_ASSERT_EQUAL_FATAL(mf_placement_set_allowed(&m.place, 1, m.topo), 0);
	CU_ASSERT_EQUAL(mf_page_alloc_run(m.pg, &m.place, &request, 1, &pfn), -ENOMEM);
	CU_ASSERT_EQUAL(mf_page_alloc_some(m.pg, &m.place, &request, 1, &pfn), 0);
	CU_ASSERT_EQUAL(pfn.v, 77);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_pgalloc), 0);
	check_no_trouble(&m);
	check_ok(&m, 0);
	stop(&m);
}

/* Only the pages of the run are cleared; the tail belongs to nobody. */
static void test_zero(void)
{
	struct mf_page_request request = on_node(0, MEMFS_GFP_KERNEL);
	struct machine m;
	unsigned char *at;
	uint32_t pfn;

	start(&m, "64M:cpus=2");
	pfn = take_run(&m, &request, 8);
	at = mf_page_address(m.pg, pfn);
	memset(at, 0xa5, 8 * 4096);
	give_run(&m, NULL, pfn, 8);
	request.gfp |= MEMFS___GFP_ZERO;
	CU_ASSERT_EQUAL_FATAL(take_run(&m, &request, 5), pfn);
	for (size_t i = 0; i < 8; i++) {
		unsigned char want = i < 5 ? 0 : 0xa5;

		CU_ASSERT_EQUAL(at[i * 4096], want);
		CU_ASSERT_EQUAL(at[i * 4096 + 4095], want);
	}
	check_ok(&m, 5);
	stop(&m);
}

/* 2 x 16384 pages: min 181, low 226. */
static void test_low_mark(void)
{
	const memfs_gfp greedy = MEMFS_GFP_ATOMIC | MEMFS___GFP_MEMALLOC | MEMFS___GFP_NOFAIL |
				 MEMFS___GFP_DIRECT_RECLAIM;
	struct mf_page_request request = on_node(0, greedy);
	static memfs_pfn pfns[16384];
	struct machine m;
	memfs_pfn pfn;

	start(&m, "2x64M:cpus=2");
	set_mode(&m, MF_PCP_OFF);
	CU_ASSERT_EQUAL(info_of(&m, 0).marks.low, 226);
	CU_ASSERT_EQUAL(mf_page_alloc_some(m.pg, &m.place, &request, 16384, pfns), 16384 - 226);
	CU_ASSERT_EQUAL(mf_page_alloc_some(m.pg, &m.place, &request, 1, &pfn), 0);
	CU_ASSERT_EQUAL(mf_page_alloc_run(m.pg, &m.place, &request, 1, &pfn), -ENOMEM);
	CU_ASSERT_EQUAL(mf_page_alloc_run(m.pg, &m.place, &request, 1024, &pfn), -ENOMEM);
	CU_ASSERT_EQUAL(info_of(&m, 0).free, 226);
	CU_ASSERT_EQUAL(info_of(&m, 1).free, 16384);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_bulk_node_calls), 2);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_bulk_requests), 0);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_pgalloc), 16384 - 226);
	/* One page above the mark is one page, and not two. */
	mf_page_free_runs(m.pg, NULL, 1, &(struct mf_run){ pfns[0].v, 1 });
	CU_ASSERT_EQUAL(mf_page_alloc_run(m.pg, &m.place, &request, 2, &pfn), -ENOMEM);
	CU_ASSERT_EQUAL(mf_page_alloc_run(m.pg, &m.place, &request, 1, &pfn), 0);
	check_no_trouble(&m);
	check_ok(&m, 16384 - 226);
	stop(&m);
}

/* Every second page free: no block of two anywhere, and looking for one leaves no trace. */
static void test_fragmented(void)
{
	struct mf_page_request request = on_node(0, MEMFS_GFP_KERNEL);
	static memfs_pfn pfns[16384], odd[16384];
	struct mf_page_free_blocks free;
	uint64_t allocated, handed_out = 0, nr_odd = 0;
	struct machine m;
	memfs_pfn pfn;
	size_t n;

	start(&m, "2x64M:cpus=2");
	set_mode(&m, MF_PCP_OFF);
	n = mf_page_alloc_some(m.pg, &m.place, &request, 16384, pfns);
	/* The last few pages, down to none: only MEMALLOC gets them. */
	request.gfp |= MEMFS___GFP_MEMALLOC | MEMFS___GFP_THISNODE;
	n += mf_page_alloc_bulk(m.pg, &m.place, &request, 16384 - n, pfns + n);
	CU_ASSERT_EQUAL_FATAL(n, 16384);
	for (size_t i = 0; i < n; i++)
		if (pfns[i].v & 1)
			odd[nr_odd++] = pfns[i];
	mf_page_free_bulk(m.pg, &m.place, nr_odd, odd);
	handed_out = n - nr_odd;
	CU_ASSERT_EQUAL(handed_out, 8192);
	mf_page_free_blocks(m.pg, 0, MEMFS_GFP_KERNEL, &free);
	CU_ASSERT_EQUAL(free.largest, 0);
	CU_ASSERT_TRUE(free.has[0] && !free.has[1] && !free.has[10]);
	CU_ASSERT_EQUAL(free.pageblocks, 0);
	CU_ASSERT_EQUAL(free.all, 32);
	allocated = stat_all(&m, MF_STAT_pgalloc);
	for (uint32_t pages = 2; pages <= 1024; pages += 7)
		CU_ASSERT_EQUAL(mf_page_alloc_run(m.pg, &m.place, &request, pages, &pfn), -ENOMEM);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_pgalloc), allocated);
	CU_ASSERT_EQUAL(info_of(&m, 0).free, 8192);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_alloc_fail), 0);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_drain_all), 0);
	CU_ASSERT_EQUAL(mf_page_alloc_run(m.pg, &m.place, &request, 1, &pfn), 0);
	CU_ASSERT_EQUAL(mf_page_alloc_some(m.pg, &m.place, &request, 100, pfns), 100);
	check_ok(&m, 8192 + 101);
	stop(&m);
}

static void test_faults(void)
{
	struct mf_page_request request = on_node(0, MEMFS_GFP_KERNEL);
	struct machine m;
	memfs_pfn pfns[16];

	start(&m, "2x64M:cpus=2");
	mf_fault_arm(&m.fault, MF_FAULT_buddy_alloc, 1, 0);
	CU_ASSERT_EQUAL(mf_page_alloc_run(m.pg, &m.place, &request, 3, pfns), -ENOMEM);
	CU_ASSERT_TRUE(mf_fault_fired(&m.fault));
	mf_fault_disarm(&m.fault);
	mf_fault_arm(&m.fault, MF_FAULT_bulk_node, 1, 0);
	CU_ASSERT_EQUAL(mf_page_alloc_some(m.pg, &m.place, &request, 16, pfns), 0);
	CU_ASSERT_TRUE(mf_fault_fired(&m.fault));
	mf_fault_disarm(&m.fault);
	/* A list that cannot be filled: the block comes from the zone itself. */
	mf_fault_arm(&m.fault, MF_FAULT_pcp_refill, 1, 0);
	CU_ASSERT_EQUAL(mf_page_alloc_run(m.pg, &m.place, &request, 4, pfns), 0);
	CU_ASSERT_TRUE(mf_fault_fired(&m.fault));
	mf_fault_disarm(&m.fault);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_pgalloc), 4);
	check_no_trouble(&m);
	check_ok(&m, 4);
	stop(&m);
}

/* A node that an interleave policy chose, whichever call takes it. */
static void test_interleaved(void)
{
	struct mf_page_request request = on_node(1, MEMFS_GFP_KERNEL);
	struct machine m;
	memfs_pfn pfns[32];

	start(&m, "2x64M:cpus=2");
	CU_ASSERT_EQUAL(mf_page_alloc(m.pg, &m.place, &request, pfns), 0);
	CU_ASSERT_EQUAL(mf_page_alloc_bulk(m.pg, &m.place, &request, 10, pfns), 10);
	take_run(&m, &request, 5);
	CU_ASSERT_EQUAL(mf_page_alloc_some(m.pg, &m.place, &request, 7, pfns), 7);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_numa_interleave), 0);
	request.interleaved = true;
	CU_ASSERT_EQUAL(mf_page_alloc(m.pg, &m.place, &request, pfns), 0);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_interleave), 1);
	CU_ASSERT_EQUAL(mf_page_alloc_bulk(m.pg, &m.place, &request, 10, pfns), 10);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_interleave), 11);
	take_run(&m, &request, 5);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_interleave), 16);
	CU_ASSERT_EQUAL(mf_page_alloc_some(m.pg, &m.place, &request, 7, pfns), 7);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_interleave), 23);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_numa_interleave), 23);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_hit), 46);
	stop(&m);
}

/* The thread stays on a CPU that the topology has. False: it may run on none of them. */
static bool stay_on_cpu(int nr)
{
	cpu_set_t set;

	for (int cpu = 0; cpu < nr; cpu++) {
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		if (!sched_setaffinity(0, sizeof(set), &set))
			return true;
	}
	return false;
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

/* What was given back last comes, and counts once in @row and @numa times as local. */
static void check_own(struct machine *m, unsigned order, enum mf_stat_id row, uint64_t numa)
{
	struct mf_page_request request = on_node(MF_NODE_BY_POLICY, MEMFS_GFP_KERNEL);
	uint64_t before, local;
	memfs_pfn pfn, own;

	request.order = order;
	CU_ASSERT_EQUAL_FATAL(mf_page_alloc(m->pg, &m->place, &request, &pfn), 0);
	mf_page_free(&m->place, pfn, order);
	before = stat_all(m, row);
	local = stat_all(m, MF_STAT_numa_local);
	CU_ASSERT_TRUE_FATAL(mf_page_alloc_own(&m->place, order, &own));
	CU_ASSERT_EQUAL(own.v, pfn.v);
	CU_ASSERT_EQUAL(stat_all(m, row) - before, 1u << order);
	CU_ASSERT_EQUAL(stat_all(m, MF_STAT_numa_local) - local, numa << order);
	mf_page_free(&m->place, own, order);
}

static void test_alloc_own(void)
{
	static const unsigned orders[] = { 9, 0, 1, 2, 3 };
	struct mf_page_knobs knobs;
	struct machine m;
	cpu_set_t old;
	memfs_pfn pfn = { 5 };

	start(&m, "4G:cpus=4");
	sched_getaffinity(0, sizeof(old), &old);
	/* No list yet; a fixed CPU; orders the lists do not keep. */
	CU_ASSERT_FALSE(mf_page_alloc_own(&m.place, 0, &pfn));
	mf_placement_set_cpu(&m.place, MEMFS_CPU_AUTO, m.topo);
	CU_ASSERT_FALSE(mf_page_alloc_own(&m.place, 0, &pfn));
	CU_ASSERT_FALSE(mf_page_alloc_own(&m.place, 4, &pfn));
	CU_ASSERT_FALSE(mf_page_alloc_own(&m.place, 11, &pfn));
	CU_ASSERT_EQUAL(pfn.v, 5);
	if (mf_page_rseq_available() && stay_on_cpu(4)) {
		for (size_t i = 0; i < 5; i++)
			check_own(&m, orders[i], MF_STAT_alloc_local_fast, 1);
		set_policy(&m, "interleave:0");
		CU_ASSERT_FALSE(mf_page_alloc_own(&m.place, 0, &pfn));
		mf_page_get_knobs(m.pg, &knobs);
		knobs.numa = 0;
		mf_page_set_knobs(m.pg, &knobs);
		check_own(&m, 1, MF_STAT_alloc_plain_fast, 0);
		set_mode(&m, MF_PCP_TRYLOCK);
		CU_ASSERT_FALSE(mf_page_alloc_own(&m.place, 0, &pfn));
	}
	sched_setaffinity(0, sizeof(old), &old);
	check_no_trouble(&m);
	check_ok(&m, 0);
	stop(&m);
}

/* --- giving back --- */

/* From @first on, blocks that stand together; only MEMALLOC may have them all. */
static void take_blocks(struct machine *m, memfs_gfp gfp, int node, uint32_t first, uint32_t nr)
{
	struct mf_page_request request = on_node(node, gfp | MEMFS___GFP_MEMALLOC | MEMFS___GFP_THISNODE);
	memfs_pfn pfn;

	request.order = 10;
	for (uint32_t i = 0; i < nr; i++) {
		CU_ASSERT_EQUAL_FATAL(mf_page_alloc(m->pg, &m->place, &request, &pfn), 0);
		CU_ASSERT_EQUAL_FATAL(pfn.v, first + i * 1024);
	}
}

static void odd_runs(const struct mf_placement *by(struct machine *m))
{
	static const uint32_t sizes[] = { 1, 3, 7, 512, 700, 1500, 2, 1, 4999, 8, 64, 395 };
	static struct mf_zone_info before[MF_MAX_ZONES];
	struct mf_run runs[12];
	struct machine m;
	uint32_t at = 0;

	start(&m, "64M:cpus=2");
	snapshot(&m, before);
	take_blocks(&m, MEMFS_GFP_KERNEL, 0, 0, 8);
	for (int i = 0; i < 12; at += sizes[i++])
		runs[i] = (struct mf_run){ at, sizes[i] };
	CU_ASSERT_EQUAL_FATAL(at, 8192);
	mf_page_free_runs(m.pg, by(&m), 5, runs);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_pgfree), 1223);
	check_ok(&m, 8192 - 1223);
	mf_page_free_runs(m.pg, by(&m), 7, runs + 5);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_pgfree), 8192);
	check_ok(&m, 0);
	mf_page_drain(m.pg, -1);
	CU_ASSERT_TRUE(same_buddyinfo(&m, before));
	CU_ASSERT_EQUAL(info_of(&m, 0).pcp_count, 0);
	stop(&m);
}

static const struct mf_placement *by_nobody(struct machine *m)
{
	(void)m;
	return NULL;
}

static const struct mf_placement *by_task(struct machine *m)
{
	return &m->place;
}

static void test_odd_runs(void)
{
	odd_runs(by_nobody);
	odd_runs(by_task);
}

/* Which runs the lists keep, and how often the zone's lock is taken for the others. */
static void test_where_runs_go(void)
{
	struct machine m;
	uint64_t locks;

	start(&m, "1G:cpus=4");
	set_mode(&m, MF_PCP_TRYLOCK);
	take_blocks(&m, MEMFS_GFP_KERNEL, 0, 0, 16);
	give_run(&m, &m.place, 16383, 1); /* makes the lists */
	locks = stat_all(&m, MF_STAT_zone_lock);
	mf_page_free_runs(m.pg, &m.place, 4, (struct mf_run[]){ { 8, 8 }, { 4, 4 }, { 2, 2 }, { 1, 1 } });
	CU_ASSERT_EQUAL(info_of(&m, 0).pcp_count, 16);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_zone_lock) - locks, 0);
	/* Not aligned, no power of two, of an order between the lists'. */
	mf_page_free_runs(m.pg, &m.place, 3, (struct mf_run[]){ { 17, 2 }, { 20, 3 }, { 32, 16 } });
	CU_ASSERT_EQUAL(info_of(&m, 0).pcp_count, 16);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_zone_lock) - locks, 3);
	give_run(&m, NULL, 48, 8);
	CU_ASSERT_EQUAL(info_of(&m, 0).pcp_count, 16);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_zone_lock) - locks, 4);
	give_run(&m, &m.place, 100, 4096);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_zone_lock) - locks, 5);
	give_run(&m, &m.place, 5001, 4097);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_zone_lock) - locks, 7);
	check_ok(&m, 16384 - 1 - 15 - 21 - 8 - 4096 - 4097);
	stop(&m);
}

/* A run that touches two zones of a node, then two nodes. */
static void test_across_zones(void)
{
	static struct mf_zone_info before[MF_MAX_ZONES];
	struct machine m;

	start(&m, "node 0 cpus 0 zones DMA32=8M,Normal=8M\nnode 1 cpus 1 zones Normal=8M\n");
	snapshot(&m, before);
	take_blocks(&m, MEMFS_GFP_KERNEL | MEMFS_GFP_DMA32, 0, 0, 2);
	take_blocks(&m, MEMFS_GFP_KERNEL, 0, 2048, 2);
	take_blocks(&m, MEMFS_GFP_KERNEL, 1, 4096, 2);
	give_run(&m, NULL, 1500, 1000);
	CU_ASSERT_EQUAL(stat_zone(&m, 0, MF_ZONE_DMA32, MF_STAT_pgfree), 548);
	CU_ASSERT_EQUAL(stat_node(&m, 0, MF_STAT_pgfree), 452);
	give_run(&m, &m.place, 2500, 3644);
	CU_ASSERT_EQUAL(stat_node(&m, 0, MF_STAT_pgfree), 2048);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_pgfree), 2048);
	give_run(&m, NULL, 0, 1500);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_pgfree), 6144);
	mf_page_drain(m.pg, -1);
	CU_ASSERT_TRUE(same_buddyinfo(&m, before));
	check_ok(&m, 0);
	stop(&m);
}

/* Whoever has interrupted the holder of the zone's lock leaves the run for later. */
static void test_deferred(void)
{
	static struct mf_zone_info before[MF_MAX_ZONES];
	struct mf_page_request request = on_node(0, MEMFS_GFP_KERNEL);
	struct mf_zone *zone;
	struct machine m;
	memfs_pfn pfn;

	start(&m, "64M:cpus=2");
	snapshot(&m, before);
	take_blocks(&m, MEMFS_GFP_KERNEL, 0, 0, 8);
	zone = m.pg->zone[mf_zone_index(0, MF_ZONE_NORMAL)];
	CU_ASSERT_TRUE_FATAL(mf_zone_lock(m.pg, zone, false));
	give_run(&m, NULL, 3, 5000);
	CU_ASSERT_EQUAL(mf_page_alloc_run(m.pg, &m.place, &request, 6, &pfn), -ENOMEM);
	mf_zone_unlock(zone);
	CU_ASSERT_EQUAL(info_of(&m, 0).free, 8192);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_pgfree), 5000);
	check_no_trouble(&m);
	mf_page_free_runs(m.pg, NULL, 2, (struct mf_run[]){ { 5003, 8192 - 5003 }, { 0, 3 } });
	CU_ASSERT_EQUAL(info_of(&m, 0).free, 16384);
	CU_ASSERT_TRUE(same_buddyinfo(&m, before));
	check_ok(&m, 0);
	stop(&m);
}

/* Runs of all sizes come and go in any order: never twice the same page, nothing lost. */
static void test_random(void)
{
	struct mf_page_request request = on_node(0, MEMFS_GFP_KERNEL);
	static struct mf_zone_info before[MF_MAX_ZONES];
	static struct mf_run held[256];
	static bool used[32768];
	unsigned seed = 20240817;
	uint64_t out = 0, twice = 0;
	size_t nr = 0;
	struct machine m;
	memfs_pfn pfn;

	printf("(seed %u) ", seed);
	start(&m, "2x64M:cpus=2");
	snapshot(&m, before);
	for (int i = 0; i < 20000; i++) {
		uint32_t pages = rand_r(&seed) % 1024u >> rand_r(&seed) % 10u;

		request.node = rand_r(&seed) & 1;
		if (nr < 256 && rand_r(&seed) % 5 < 3 && pages &&
		    !mf_page_alloc_run(m.pg, &m.place, &request, pages, &pfn)) {
			held[nr++] = (struct mf_run){ pfn.v, pages };
			for (uint32_t page = pfn.v; page < pfn.v + pages; page++) {
				twice += used[page];
				used[page] = true;
			}
			out += pages;
		} else if (nr) {
			size_t k = (size_t)rand_r(&seed) % nr;

			memset(&used[held[k].pfn], false, held[k].pages);
			out -= held[k].pages;
			mf_page_free_runs(m.pg, i & 1 ? &m.place : NULL, 1, &held[k]);
			held[k] = held[--nr];
		}
		if (i % 1000 == 0)
			check_ok(&m, (int64_t)out);
	}
	CU_ASSERT_EQUAL(twice, 0);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_pgalloc) - stat_all(&m, MF_STAT_pgfree), out);
	CU_ASSERT_TRUE(stat_all(&m, MF_STAT_pgalloc) > 500000);
	mf_page_free_runs(m.pg, &m.place, nr, held);
	mf_page_drain(m.pg, -1);
	CU_ASSERT_TRUE(same_buddyinfo(&m, before));
	check_ok(&m, 0);
	stop(&m);
}

/* --- counting and looking --- */

static void test_counting(void)
{
	struct mf_page_request request = on_node(1, MEMFS_GFP_KERNEL);
	struct mf_page_knobs knobs;
	struct machine m;
	uint32_t pfn;

	start(&m, "2x64M:cpus=2");
	pfn = take_run(&m, &request, 77);
	mf_page_count_parked(m.pg, pfn, 77);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_pgfree), 77);
	mf_page_count_reused(m.pg, 3, pfn, 70);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_pgalloc), 147);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_hit), 147);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_local), 70);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_other), 77);
	mf_page_count_reused(m.pg, 1, pfn, 5);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_local), 70);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_other), 82);
	/* A CPU nobody knows counts as one of the first node, as for an allocation. */
	mf_page_count_reused(m.pg, 999, pfn, 3);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_other), 85);
	mf_page_get_knobs(m.pg, &knobs);
	knobs.numa_stat = 0;
	mf_page_set_knobs(m.pg, &knobs);
	mf_page_count_reused(m.pg, 3, pfn, 2);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_pgalloc), 157);
	CU_ASSERT_EQUAL(stat_node(&m, 1, MF_STAT_numa_hit), 155);
	CU_ASSERT_EQUAL(stat_all(&m, MF_STAT_pgfree), 77);
	check_ok(&m, 77); /* only counters moved */
	stop(&m);
}

static struct {
	void *at;
	int arena, error;
	uint64_t offset;
	size_t bytes;
} mapped;

static int note_window(struct mf_plat *plat, void *at, int arena, uint64_t offset, size_t bytes)
{
	(void)plat;
	mapped.at = at;
	mapped.arena = arena;
	mapped.offset = offset;
	mapped.bytes = bytes;
	return mapped.error;
}

static void test_window(void)
{
	const struct mf_plat_ops *real;
	struct mf_plat_ops ops;
	struct machine m;
	char here[1];

	start(&m, "2x64M:cpus=2");
	real = m.plat->ops;
	ops = *real;
	ops.window_map = note_window;
	m.plat->ops = &ops;
	CU_ASSERT_EQUAL(mf_page_window(m.pg, here, 16384 + 100, 16284), 0);
	CU_ASSERT_PTR_EQUAL(mapped.at, here);
	CU_ASSERT_EQUAL(mapped.arena, m.pg->arena[1]);
	CU_ASSERT_EQUAL(mapped.offset, 100 * 4096);
	CU_ASSERT_EQUAL(mapped.bytes, 16284 * 4096);
	mapped.error = -ENOMEM;
	CU_ASSERT_EQUAL(mf_page_window(m.pg, here, 0, 1), -ENOMEM);
	CU_ASSERT_EQUAL(mapped.arena, m.pg->arena[0]);
	mapped.error = 0;
	CU_ASSERT_EQUAL(mf_page_window(m.pg, here, 16384 + 100, 16285), -EINVAL);
	CU_ASSERT_EQUAL(mf_page_window(m.pg, here, 16380, 5), -EINVAL);
	CU_ASSERT_EQUAL(mf_page_window(m.pg, here, 32768, 1), -EINVAL);
	CU_ASSERT_EQUAL(mf_page_window(m.pg, here, 5, 0), -EINVAL);
	m.plat->ops = real;
	stop(&m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_every_size), UNIT_TEST(test_lock_holds),	   UNIT_TEST(test_refused_requests),
	UNIT_TEST(test_zero),	    UNIT_TEST(test_low_mark),	   UNIT_TEST(test_fragmented),
	UNIT_TEST(test_faults),	    UNIT_TEST(test_interleaved),   UNIT_TEST(test_alloc_own),
	UNIT_TEST(test_odd_runs),   UNIT_TEST(test_where_runs_go), UNIT_TEST(test_across_zones),
	UNIT_TEST(test_deferred),   UNIT_TEST(test_random),	   UNIT_TEST(test_counting),
	UNIT_TEST(test_window),
};

UNIT_MAIN("page_run", tests)
