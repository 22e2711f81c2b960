/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a caller can know before it takes pages: the shares of a range against
 * the same pages one at a time, whom to ask for a share, what is free.
 */
#include "unit.h"

#include "page/page.h"
#include "page/rotation.h"
#include "plat/plat_sim.h"

#include <errno.h>

struct machine {
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *pg;
	struct mf_placement place;
};

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

static struct mf_page_request on_node(int node)
{
	return (struct mf_page_request){ .gfp = MEMFS_GFP_KERNEL, .node = node, .cpu = MF_CPU_OF_TASK };
}

static struct mf_page_request by_policy(void)
{
	return on_node(MF_NODE_BY_POLICY);
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

static void plan_of(struct machine *m, const struct mf_page_request *request, uint64_t n,
		    struct mf_page_plan *plan)
{
	memset(plan, 0xee, sizeof(*plan));
	CU_ASSERT_EQUAL_FATAL(mf_page_plan(m->pg, &m->place, request, n, plan), 0);
}

/* --- shares --- */

/* Weights 3:1, a fresh task: 400 pages are 300 and 100, and the next page opens node 0. */
static void test_400_pages(void)
{
	const struct mf_weights weights = { .of = { 3, 1 } };
	struct mf_rotation rotation = MF_ROTATION_INIT, now;
	struct mf_page_request request = by_policy();
	struct mf_page_plan plan;
	struct machine m;

	start(&m, "2x64M:cpus=2");
	mf_page_set_weights(m.pg, &weights);
	set_policy(&m, "weighted interleave:0-1");
	plan_of(&m, &request, 400, &plan);
	CU_ASSERT_TRUE(plan.interleaved && plan.rotates && !plan.only_own);
	CU_ASSERT_EQUAL_FATAL(plan.nr_shares, 2);
	CU_ASSERT_EQUAL(plan.share[0].node, 0);
	CU_ASSERT_EQUAL(plan.share[0].pages, 300);
	CU_ASSERT_EQUAL(plan.share[1].node, 1);
	CU_ASSERT_EQUAL(plan.share[1].pages, 100);
	CU_ASSERT_EQUAL(plan.allowed, 3);
	CU_ASSERT_EQUAL(plan.first, 3);
	/* Nothing moved, nothing was taken. */
	now = mf_placement_rotation(&m.place);
	CU_ASSERT_TRUE(now.il_prev == 63 && now.il_weight == 0);
	CU_ASSERT_EQUAL(mf_stat_read(mf_page_stat(m.pg), MF_STAT_pgalloc), 0);
	for (int i = 0; i < 400; i++)
		mf_policy_step(&plan.policy, &weights, &rotation);
	mf_page_plan_commit(&m.place, &plan, 400);
	now = mf_placement_rotation(&m.place);
	CU_ASSERT_EQUAL(now.il_prev, rotation.il_prev);
	CU_ASSERT_EQUAL(now.il_weight, rotation.il_weight);
	CU_ASSERT_TRUE(now.il_prev == 1 && now.il_weight == 0);
	/* A part of a plan moves by that part; nothing by nothing. */
	plan_of(&m, &request, 400, &plan);
	mf_page_plan_commit(&m.place, &plan, 0);
	CU_ASSERT_EQUAL(mf_placement_rotation(&m.place).il_prev, 1);
	mf_page_plan_commit(&m.place, &plan, 2);
	now = mf_placement_rotation(&m.place);
	CU_ASSERT_TRUE(now.il_prev == 0 && now.il_weight == 1);
	plan_of(&m, &request, 0, &plan);
	CU_ASSERT_EQUAL(plan.nr_shares, 0);
	stop(&m);
}

/* What single pages give: pages by node, and the nodes by their first page. */
struct expected {
	uint64_t pages[64];
	unsigned nr;
	uint8_t order[64];
};

static void expect_page(struct expected *want, int node)
{
	if (!want->pages[node]++)
		want->order[want->nr++] = (uint8_t)node;
}

static unsigned differences(const struct mf_page_plan *plan, const struct expected *want)
{
	unsigned bad = plan->nr_shares != want->nr;

	for (unsigned i = 0; !bad && i < want->nr; i++)
		bad += plan->share[i].node != want->order[i] ||
		       plan->share[i].pages != want->pages[want->order[i]];
	return bad;
}

static void random_policy(struct machine *m, unsigned *seed, struct mf_policy *policy,
			  struct mf_weights *weights)
{
	struct mf_policy_context context;
	mf_nodemask nodes = (mf_nodemask)(rand_r(seed) % 31 + 1);

	mf_placement_context(m->topo, m->place.allowed, &context);
	CU_ASSERT_EQUAL_FATAL(mf_policy_set(rand_r(seed) & 1 ? MF_MPOL_INTERLEAVE
							     : MF_MPOL_WEIGHTED_INTERLEAVE,
					    0, nodes, &context, policy, NULL, 0),
			      0);
	memset(weights->of, 1, sizeof(weights->of));
	for (int node = 0; node < 5; node++)
		weights->of[node] =
			(uint8_t)(rand_r(seed) % 4 ? rand_r(seed) % 12 + 1 : rand_r(seed) % 255 + 1);
	mf_page_set_weights(m->pg, weights);
}

static void test_rotation_shares(void)
{
	struct mf_page_request request = by_policy();
	unsigned seed = 4711, bad = 0;
	struct machine m;

	printf("(seed %u) ", seed);
	start(&m, "5x64M:cpus=1");
	for (int i = 0; i < 20000; i++) {
		uint64_t n = (uint64_t)rand_r(&seed) % (rand_r(&seed) % 8 ? 60 : 1500);
		struct mf_rotation rotation = { .il_prev = (uint8_t)(rand_r(&seed) % 7),
						.il_weight = (uint8_t)(rand_r(&seed) & 1 ? rand_r(&seed) % 13
											 : 0) };
		struct expected want = { .nr = 0 };
		struct mf_policy policy;
		struct mf_weights weights;
		struct mf_page_plan plan;
		struct mf_rotation now;

		random_policy(&m, &seed, &policy, &weights);
		mf_placement_set_policy(&m.place, &policy, m.topo);
		m.place.rotation = mf_rotation_pack(rotation);
		plan_of(&m, &request, n, &plan);
		for (uint64_t page = 0; page < n; page++)
			expect_page(&want, mf_policy_step(&policy, &weights, &rotation));
		bad += differences(&plan, &want) + !plan.rotates + !plan.interleaved;
		mf_page_plan_commit(&m.place, &plan, n);
		now = mf_placement_rotation(&m.place);
		bad += now.il_prev != rotation.il_prev || now.il_weight != rotation.il_weight;
	}
	CU_ASSERT_EQUAL(bad, 0);
	stop(&m);
}

static void test_index_shares(void)
{
	struct mf_page_request request = by_policy();
	unsigned seed = 815, bad = 0;
	struct machine m;

	printf("(seed %u) ", seed);
	start(&m, "5x64M:cpus=1");
	set_policy(&m, "interleave:0-1"); /* the task's own, which the range's replaces */
	for (int i = 0; i < 10000; i++) {
		uint64_t n = (uint64_t)rand_r(&seed) % (rand_r(&seed) % 8 ? 60 : 1500);
		struct expected want = { .nr = 0 };
		struct mf_policy policy;
		struct mf_weights weights;
		struct mf_page_plan plan;

		random_policy(&m, &seed, &policy, &weights);
		request.vma = &policy;
		request.index = (uint64_t)rand_r(&seed); /* the shares are those from index 0 on */
		plan_of(&m, &request, n, &plan);
		for (uint64_t page = 0; page < n; page++)
			expect_page(&want, mf_policy_index_node(&policy, &weights, page));
		bad += differences(&plan, &want) + plan.rotates + !plan.interleaved;
		mf_page_plan_commit(&m.place, &plan, n);
	}
	CU_ASSERT_EQUAL(bad, 0);
	CU_ASSERT_EQUAL(mf_placement_rotation(&m.place).il_prev, 63);
	stop(&m);
}

/* The plan of a bulk call is where its pages are, and the rotation is the same behind both. */
static void test_plan_tells_bulk(void)
{
	const struct mf_weights weights = { .of = { 5, 2, 1, 1, 3 } };
	struct mf_page_request request = by_policy();
	static memfs_pfn pfns[2000];
	struct mf_page_plan plan;
	struct machine m;

	start(&m, "5x64M:cpus=1");
	mf_page_set_weights(m.pg, &weights);
	set_policy(&m, "weighted interleave:0,1,4");
	for (size_t n = 1; n < 2000; n += 123) {
		struct mf_placement planned = m.place;
		uint64_t pages[64] = { 0 };

		plan_of(&m, &request, n, &plan);
		CU_ASSERT_EQUAL(mf_page_alloc_bulk(m.pg, &m.place, &request, n, pfns), n);
		for (size_t i = 0; i < n; i++)
			pages[mf_page_node(m.pg, pfns[i].v)]++;
		for (unsigned i = 0; i < plan.nr_shares; i++)
			CU_ASSERT_EQUAL(plan.share[i].pages, pages[plan.share[i].node]);
		mf_page_plan_commit(&planned, &plan, n);
		CU_ASSERT_EQUAL(planned.rotation, m.place.rotation);
		mf_page_free_bulk(m.pg, &m.place, n, pfns);
	}
	stop(&m);
}

/* --- nodes --- */

/* Zonelists: 0,1,2,3; 1,0,3,2; 2,3,0,1; 3,2,1,0; of node 4, which has no memory, 2,0,1,3. */
#define FOUR_NODES \
	"node 0 cpus 0 zones Normal=16M\nnode 1 cpus 1 zones Normal=16M\n" \
	"node 2 cpus 2 zones Normal=16M\nnode 3 cpus 3 zones Normal=16M\n" \
	"node 4 cpus 4 zones -\n" \
	"distance 0 10 20 30 40 25\ndistance 1 20 10 40 30 35\ndistance 2 30 40 10 20 15\n" \
	"distance 3 40 30 20 10 45\ndistance 4 25 35 15 45 10\n"

/* One share, for @node, and whom it is asked from: digits. */
static void check_whole(struct machine *m, const struct mf_page_request *request, int node, const char *nodes)
{
	uint8_t got[MEMFS_MAX_NODES];
	struct mf_page_plan plan;
	char text[65] = "";
	unsigned nr;

	plan_of(m, request, 1234, &plan);
	CU_ASSERT_EQUAL_FATAL(plan.nr_shares, 1);
	CU_ASSERT_EQUAL(plan.share[0].node, node);
	CU_ASSERT_EQUAL(plan.share[0].pages, 1234);
	CU_ASSERT_FALSE(plan.rotates);
	CU_ASSERT_EQUAL(plan.interleaved, request->interleaved);
	nr = mf_page_plan_nodes(m->pg, &plan, plan.share[0].node, got);
	for (unsigned i = 0; i < nr; i++)
		text[i] = (char)('0' + got[i]);
	CU_ASSERT_STRING_EQUAL(text, nodes);
}

static void check_policy(struct machine *m, int cpu, const char *policy, memfs_gfp flags, int node,
			 const char *nodes)
{
	struct mf_page_request request = by_policy();

	set_policy(m, policy);
	request.cpu = cpu;
	request.gfp |= flags;
	check_whole(m, &request, node, nodes);
}

static void test_policies(void)
{
	const memfs_gfp this_node = MEMFS___GFP_THISNODE;
	struct machine m;

	start(&m, FOUR_NODES);
	check_policy(&m, 0, "default", 0, 0, "0123");
	check_policy(&m, 1, "local", 0, 1, "1032");
	check_policy(&m, 4, "default", 0, 2, "2301");
	check_policy(&m, 9, "default", 0, 0, "0123");
	check_policy(&m, 0, "prefer:3", 0, 3, "3210");
	check_policy(&m, 0, "bind:1,3", 0, 1, "13");
	check_policy(&m, 2, "bind:1,3", 0, 3, "31");
	check_policy(&m, 4, "bind:0-1", 0, 0, "01");
	check_policy(&m, 2, "prefer (many):1,3", 0, 3, "3120");
	check_policy(&m, 1, "prefer (many):0,2", 0, 0, "0213");
	check_policy(&m, 0, "default", this_node, 0, "0");
	check_policy(&m, 0, "prefer:3", this_node, 3, "3");
	check_policy(&m, 3, "bind:1,3", this_node, 3, "3");
	/* As for a single page: the node meant has none. */
	check_policy(&m, 4, "default", this_node, 4, "");
	check_policy(&m, 0, "bind:1,3", this_node, 0, "");
	CU_ASSERT_EQUAL_FATAL(mf_placement_set_allowed(&m.place, 9, m.topo), 0);
	check_policy(&m, 0, "default", 0, 0, "03");
	check_policy(&m, 1, "default", 0, 0, "03");
	check_policy(&m, 2, "default", 0, 3, "30");
	stop(&m);
}

static void test_named_nodes(void)
{
	struct mf_page_request request = on_node(2);
	struct mf_page_plan plan;
	struct machine m;

	start(&m, FOUR_NODES);
	set_policy(&m, "interleave:0-3"); /* plays no part */
	check_whole(&m, &request, 2, "2301");
	request.interleaved = true;
	check_whole(&m, &request, 2, "2301");
	CU_ASSERT_EQUAL_FATAL(mf_placement_set_allowed(&m.place, 3, m.topo), 0);
	check_whole(&m, &request, 2, "01");
	request.gfp |= MEMFS___GFP_THISNODE;
	check_whole(&m, &request, 2, "");
	request.node = 1;
	check_whole(&m, &request, 1, "1");
	request.node = 4;
	CU_ASSERT_EQUAL(mf_page_plan(m.pg, &m.place, &request, 1, &plan), -EINVAL);
	request.node = 64;
	CU_ASSERT_EQUAL(mf_page_plan(m.pg, &m.place, &request, 1, &plan), -EINVAL);
	stop(&m);
}

static void check_nodes(struct machine *m, const struct mf_page_plan *plan, int node, const char *nodes)
{
	uint8_t got[MEMFS_MAX_NODES];
	unsigned nr = mf_page_plan_nodes(m->pg, plan, node, got);

	CU_ASSERT_EQUAL(nr, strlen(nodes));
	for (unsigned i = 0; i < nr && nodes[i]; i++)
		CU_ASSERT_EQUAL(got[i], nodes[i] - '0');
}

/* Interleaved shares fall back along their own node's list, outside the policy too; with THISNODE nowhere. */
static void test_interleaved_nodes(void)
{
	struct mf_page_request request = by_policy();
	struct mf_page_plan plan;
	struct machine m;

	start(&m, FOUR_NODES);
	set_policy(&m, "interleave:1,3");
	plan_of(&m, &request, 3, &plan);
	CU_ASSERT_EQUAL(plan.nr_shares, 2);
	check_nodes(&m, &plan, 1, "1032");
	check_nodes(&m, &plan, 3, "3210");
	request.gfp |= MEMFS___GFP_THISNODE;
	plan_of(&m, &request, 3, &plan);
	CU_ASSERT_TRUE(plan.only_own);
	CU_ASSERT_EQUAL(plan.allowed, 10);
	check_nodes(&m, &plan, 1, "1");
	check_nodes(&m, &plan, 3, "3");
	check_nodes(&m, &plan, 0, "");
	stop(&m);
}

/* In interrupt-like context the task's policy does not hold, without numa none does. */
static void test_no_policy(void)
{
	struct mf_page_request request = by_policy();
	struct mf_policy_context context;
	struct mf_page_knobs knobs;
	struct mf_policy vma;
	struct machine m;
	char why[64];

	start(&m, FOUR_NODES);
	mf_placement_context(m.topo, m.place.allowed, &context);
	CU_ASSERT_EQUAL_FATAL(mf_policy_parse(mf_text_of("bind:2"), &context, &vma, why, sizeof(why)), 0);
	set_policy(&m, "interleave:1,3");
	request.cpu = 2;
	request.irq = true;
	check_whole(&m, &request, 2, "2301");
	request.irq = false;
	request.cpu = 0;
	request.vma = &vma;
	check_whole(&m, &request, 2, "2");
	CU_ASSERT_EQUAL_FATAL(mf_placement_set_allowed(&m.place, 2, m.topo), 0);
	mf_page_get_knobs(m.pg, &knobs);
	knobs.numa = 0;
	mf_page_set_knobs(m.pg, &knobs);
	request.cpu = 3;
	check_whole(&m, &request, 3, "3210");
	stop(&m);
}

/* The node of the CPU has memory, but no zone for the request. */
static void test_zone_types(void)
{
	struct mf_page_request request = by_policy();
	struct machine m;

	start(&m, "node 0 cpus 0 zones Movable=16M\nnode 1 cpus 1 zones Normal=16M\n");
	check_whole(&m, &request, 1, "10");
	request.gfp = MEMFS_GFP_HIGHUSER_MOVABLE;
	check_whole(&m, &request, 0, "01");
	stop(&m);
}

/* --- looking --- */

static void test_page_cpu(void)
{
	struct machine m;

	start(&m, "2x64M:cpus=2");
	set_mode(&m, MF_PCP_TRYLOCK);
	CU_ASSERT_EQUAL(mf_page_cpu(m.pg, &m.place), 0);
	mf_placement_set_cpu(&m.place, 3, m.topo);
	CU_ASSERT_EQUAL(mf_page_cpu(m.pg, &m.place), 3);
	mf_placement_set_cpu(&m.place, MEMFS_CPU_AUTO, m.topo);
	mf_plat_sim_set_cpu(m.plat, 2);
	CU_ASSERT_EQUAL(mf_page_cpu(m.pg, &m.place), 2);
	mf_plat_sim_set_cpu(m.plat, 4);
	CU_ASSERT_EQUAL(mf_page_cpu(m.pg, &m.place), -1);
	stop(&m);
}

static void test_free_blocks(void)
{
	struct mf_page_request request = on_node(0);
	struct mf_page_free_blocks free;
	memfs_pfn pfn;
	struct machine m;

	start(&m, "node 0 cpus 0 zones DMA32=16M,Normal=32M,Movable=8M\nnode 1 cpus 1 zones -\n");
	set_mode(&m, MF_PCP_OFF);
	mf_page_free_blocks(m.pg, 0, MEMFS_GFP_KERNEL, &free);
	CU_ASSERT_EQUAL(free.largest, 10);
	CU_ASSERT_EQUAL(free.all, 24);
	CU_ASSERT_EQUAL(free.pageblocks, 24);
	CU_ASSERT_TRUE(free.has[10] && !free.has[9] && !free.has[0]);
	mf_page_free_blocks(m.pg, 0, MEMFS_GFP_HIGHUSER_MOVABLE, &free);
	CU_ASSERT_EQUAL(free.all, 28);
	mf_page_free_blocks(m.pg, 0, MEMFS_GFP_DMA32, &free);
	CU_ASSERT_EQUAL(free.all, 8);
	mf_page_free_blocks(m.pg, 0, MEMFS_GFP_DMA, &free);
	CU_ASSERT_EQUAL(free.all, 0);
	CU_ASSERT_EQUAL(free.largest, -1);
	CU_ASSERT_EQUAL(mf_page_alloc_run(m.pg, &m.place, &request, 600, &pfn),
			0); /* of Normal, leaves 424 = 256 + 128 + 32 + 8 */
	mf_page_free_blocks(m.pg, 0, MEMFS_GFP_KERNEL, &free);
	CU_ASSERT_EQUAL(free.pageblocks, 22);
	for (unsigned order = 0; order < MF_NR_ORDERS; order++)
		CU_ASSERT_EQUAL(free.has[order],
				order == 3 || order == 5 || order == 7 || order == 8 || order == 10);
	mf_page_free_blocks(m.pg, 1, MEMFS_GFP_KERNEL, &free);
	CU_ASSERT_EQUAL(free.largest, -1);
	CU_ASSERT_EQUAL(free.all, 0);
	mf_page_free_blocks(m.pg, 9, MEMFS_GFP_KERNEL, &free);
	CU_ASSERT_EQUAL(free.largest, -1);
	stop(&m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_400_pages),	   UNIT_TEST(test_rotation_shares), UNIT_TEST(test_index_shares),
	UNIT_TEST(test_plan_tells_bulk),   UNIT_TEST(test_policies),	    UNIT_TEST(test_named_nodes),
	UNIT_TEST(test_interleaved_nodes), UNIT_TEST(test_no_policy),	    UNIT_TEST(test_zone_types),
	UNIT_TEST(test_page_cpu),	   UNIT_TEST(test_free_blocks),
};

UNIT_MAIN("plan", tests)
