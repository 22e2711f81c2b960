/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random test of the page allocator against a model that knows who owns each
 * page, what each block contains, and where the next block belongs, one at a time.
 *
 *	model_page [SEED|- [COUNT]]
 *
 * runs COUNT operations (default 30000), spread over fixed seeds and one random
 * seed, or all with SEED, each seed over several small machines.  After every
 * operation the counters must have moved by exactly what happened; every few
 * the allocator checks itself; at the end everything is freed and the free
 * blocks must be those of the start.  Where the nodes in question have room,
 * the pages must come from exactly the nodes of the reference.
 *
 * Then the same with the Nth failure point visited made to fail, for each N
 * until none fails any more.  A failure prints seed, machine and operation.
 */
#include "page_model.h"
#include "plat/plat_sim.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_COUNT 30000
#define FAULT_OPERATIONS 100
#define MOST_BULK 3000
#define UNTOUCHED 0xfeedfaceu

static const char *const machines[] = {
	"2x64M:cpus=2",
	"3x16M:cpus=1",
	"64M:cpus=4+32M:cpus=0+0:cpus=2",
	/* lists that begin and end inside a word of the queues, gaps between nodes, every kind of zone */
	"node 0 cpus 0-1 zones DMA=4M,DMA32=16M,Normal=28688K\n"
	"node 3 cpus - zones Normal=16M,Movable=16M\n"
	"node 7 cpus 2 zones -\n"
	"node 62 cpus 5 zones DMA32=8M,Movable=24M\n"
	"distance 0 10 20 15 30\n"
	"distance 3 20 10 30 15\n"
	"distance 7 15 30 10 20\n"
	"distance 62 30 15 20 10\n",
	"2x32M:cpus=0",
	"256M:cpus=2",
};

#define NR_MACHINES (sizeof(machines) / sizeof(machines[0]))

/* --- requests --- */

static memfs_gfp random_gfp(struct run *run)
{
	static const memfs_gfp kinds[] = {
		MEMFS_GFP_KERNEL,	    MEMFS_GFP_KERNEL,
		MEMFS_GFP_KERNEL,	    MEMFS_GFP_ATOMIC,
		MEMFS_GFP_NOWAIT,	    MEMFS_GFP_HIGHUSER_MOVABLE,
		MEMFS_GFP_HIGHUSER_MOVABLE, MEMFS_GFP_KERNEL | MEMFS___GFP_RECLAIMABLE,
	};
	static const memfs_gfp extras[] = {
		MEMFS___GFP_ZERO,	MEMFS___GFP_THISNODE, MEMFS___GFP_NORETRY, MEMFS___GFP_MEMALLOC,
		MEMFS___GFP_NOMEMALLOC, MEMFS___GFP_DMA,      MEMFS___GFP_DMA32,
	};
	memfs_gfp gfp = kinds[below(run, sizeof(kinds) / sizeof(kinds[0]))];

	if (!below(run, 4))
		gfp |= extras[below(run, sizeof(extras) / sizeof(extras[0]))];
	return gfp;
}

static unsigned random_order(struct run *run)
{
	if (below(run, 3))
		return 0;
	return below(run, 30) ? (unsigned)below(run, 6) : (unsigned)below(run, MF_NR_ORDERS);
}

static int random_cpu(struct run *run)
{
	int cpu = (int)below(run, run->topo->cpu_limit + 1) - 1;

	return cpu >= 0 && run->topo->cpu_node[cpu] >= 0 ? cpu : MEMFS_CPU_AUTO;
}

static mf_nodemask random_nodes(struct run *run, mf_nodemask of, mf_nodemask one_of)
{
	mf_nodemask mask = of & next_random(run);

	return mask & one_of
		       ? mask
		       : mf_node_bit(mf_node_nth(one_of, (int)below(run, (uint64_t)mf_node_weight(one_of))));
}

static void random_policy(struct run *run, mf_nodemask allowed, struct mf_policy *out)
{
	enum mf_policy_mode mode = below(run, 3) ? (enum mf_policy_mode)below(run, MF_NR_MPOL_MODES)
						 : MF_MPOL_WEIGHTED_INTERLEAVE;
	mf_nodemask usable = allowed & run->topo->memory;
	struct mf_policy_context context;
	char why[128];

	if (mode == MF_MPOL_DEFAULT || mode == MF_MPOL_LOCAL)
		usable = 0;
	mf_placement_context(run->topo, allowed, &context);
	expect(run,
	       !mf_policy_set(mode, 0, usable ? random_nodes(run, usable, usable) : 0, &context, out, why,
			      sizeof(why)),
	       "setting a policy failed");
}

static void random_wish(struct run *run, struct wish *wish, struct mf_policy *vma)
{
	memset(wish, 0, sizeof(*wish));
	wish->task = &run->task[below(run, NR_TASKS)];
	wish->n = 1;
	wish->request = (struct mf_page_request){ .gfp = random_gfp(run),
						  .node = MF_NODE_BY_POLICY,
						  .cpu = MF_CPU_OF_TASK };
	if (!below(run, 10)) {
		wish->request.node = mf_node_nth(
			run->topo->memory, (int)below(run, (uint64_t)mf_node_weight(run->topo->memory)));
	} else if (!below(run, 8)) {
		random_policy(run, wish->task->allowed, vma);
		wish->request.vma = vma;
		wish->request.index = next_random(run) >> below(run, 64);
	}
	if (!below(run, 10))
		wish->request.cpu = random_cpu(run);
	wish->request.irq = !below(run, 10);
}

static bool is_simple(const struct mf_page_request *request)
{
	return request->node == MF_NODE_BY_POLICY && !request->vma && !request->irq &&
	       request->cpu == MF_CPU_OF_TASK;
}

static void check_rotation(struct run *run, const struct wish *wish, uint64_t got)
{
	struct mf_rotation rotation = mf_placement_rotation(&wish->task->place);

	for (uint64_t i = 0; wish->moves && i < got; i++)
		step(run, &wish->policy, &wish->task->prev, &wish->task->owed);
	expect(run, rotation.il_prev == wish->task->prev && rotation.il_weight == wish->task->owed,
	       "the rotation did not move by the blocks handed out");
}

static void check_nodes(struct run *run, const struct wish *wish, const memfs_pfn *pfns, uint64_t got,
			bool exact)
{
	uint64_t by_node[MOST_NODES] = { 0 };
	bool this_node = wish->request.gfp & MEMFS___GFP_THISNODE;

	for (uint64_t i = 0; i < got; i++)
		by_node[mf_page_node(run->pg, pfns[i].v) & 63]++;
	for (int node = 0; node < MOST_NODES; node++) {
		if (exact)
			expect(run, by_node[node] == wish->gives[node],
			       "a node gave more or less than its share");
		if (this_node)
			expect(run, by_node[node] <= wish->chosen[node], "more than THISNODE allows");
	}
}

/* No node was short: each gave its share and no page more. */
static bool shares_are_met(const struct run *run, const struct wish *wish, const memfs_pfn *pfns)
{
	uint64_t by_node[64] = { 0 };

	for (uint64_t i = 0; i < wish->n; i++)
		by_node[mf_page_node(run->pg, pfns[i].v)]++;
	for (int node = 0; node < 64; node++)
		if (by_node[node] != wish->turn[node])
			return false;
	return true;
}

/* Pages of a node stand together while no node is short; a range follows its indexes. */
static void check_order(struct run *run, const struct wish *wish, const memfs_pfn *pfns)
{
	bool met = shares_are_met(run, wish, pfns);
	mf_nodemask left = 0;
	int last = -1;

	for (uint64_t i = 0; i < wish->n; i++) {
		int node = mf_page_node(run->pg, pfns[i].v);

		if (wish->turns && !wish->moves) {
			int wanted = index_node(run, &wish->policy, wish->request.index + i);

			expect(run, node == wanted || !wish->turn[wanted],
			       "a page of a range is not of its index's node");
		} else if (node != last && wish->turn[node]) {
			expect(run, run->knobs.bulk_split || !met || !mf_node_isset(left, node),
			       "pages are not grouped by node");
			left |= mf_node_bit(node);
			last = node;
		}
	}
}

static void check_bulk_calls(struct run *run, const struct wish *wish, uint64_t calls)
{
	uint64_t nodes = 0;

	for (int node = 0; node < MOST_NODES; node++)
		nodes += wish->chosen[node] > 0;
	if (wish->turns && !wish->moves)
		expect(run, calls <= nodes * ((wish->n + 1023) / 1024), "node calls of a range");
	else
		expect(run, calls == nodes || (run->knobs.bulk_split && wish->moves && calls == nodes + 1),
		       "not one call a node");
}

static void do_single(struct run *run, unsigned order)
{
	bool fired = mf_fault_fired(&run->fault), exact;
	memfs_pfn pfn = { UNTOUCHED };
	struct counters before;
	struct mf_policy vma;
	struct wish wish;
	int error;

	random_wish(run, &wish, &vma);
	wish.request.order = order;
	foresee(run, &wish);
	read_counters(run, &before);
	if (is_simple(&wish.request))
		error = mf_page_alloc_simple(&wish.task->place, wish.request.gfp, order, &pfn);
	else
		error = mf_page_alloc(run->pg, &wish.task->place, &wish.request, &pfn);
	exact = wish.possible && wish.room && fired == mf_fault_fired(&run->fault);
	expect(run, error == 0 || error == -ENOMEM, "an error that cannot be");
	expect(run, !error || pfn.v == UNTOUCHED, "the result of a failure is not left alone");
	expect(run, wish.possible || error, "a block from nowhere");
	if (exact)
		expect(run, !error, "failed though there was room");
	check_rotation(run, &wish, !error);
	check_counters(run, &wish, &before, &pfn, !error, exact);
	check_nodes(run, &wish, &pfn, !error, exact);
	if (!error)
		own(run, &wish, pfn.v);
}

static void do_bulk(struct run *run, uint64_t n)
{
	static memfs_pfn pfns[MOST_BULK + 1];
	bool fired = mf_fault_fired(&run->fault), exact, untouched = true;
	struct mf_stat_set *stat = mf_page_stat(run->pg);
	uint64_t calls = mf_stat_read(stat, MF_STAT_bulk_node_calls);
	struct counters before;
	struct mf_policy vma;
	struct wish wish;
	size_t got;

	for (uint64_t i = 0; i <= n; i++)
		pfns[i].v = UNTOUCHED;
	random_wish(run, &wish, &vma);
	wish.n = n;
	foresee(run, &wish);
	read_counters(run, &before);
	got = mf_page_alloc_bulk(run->pg, &wish.task->place, &wish.request, n, pfns);
	exact = wish.possible && wish.room && fired == mf_fault_fired(&run->fault);
	expect(run, got <= n, "more than asked for");
	for (uint64_t i = got; i <= n; i++)
		untouched &= pfns[i].v == UNTOUCHED;
	expect(run, untouched, "written behind what was handed out");
	check_rotation(run, &wish, got);
	check_counters(run, &wish, &before, pfns, got, exact);
	check_nodes(run, &wish, pfns, got, exact);
	if (exact) {
		expect(run, got == n, "short though there was room");
		check_order(run, &wish, pfns);
		check_bulk_calls(run, &wish, mf_stat_read(stat, MF_STAT_bulk_node_calls) - calls);
	}
	for (size_t i = 0; i < got; i++)
		own(run, &wish, pfns[i].v);
}

static void check_freed(struct run *run, const struct counters *before, uint64_t pages)
{
	struct counters moved;
	uint64_t freed = 0, others = 0;

	read_counters(run, &moved);
	subtract(run, &moved, before);
	for (unsigned z = 0; z < run->nr_zones; z++) {
		freed += moved.of[z][FREE];
		for (int c = 0; c < FREE; c++)
			others += moved.of[z][c];
	}
	expect(run, freed == pages && !others, "pgfree is not the pages freed");
}

static void do_free(struct run *run, struct task *task)
{
	struct counters before;
	struct block block;

	if (!run->nr_blocks)
		return;
	block = disown(run, below(run, run->nr_blocks));
	read_counters(run, &before);
	if (below(run, 10))
		mf_page_free(&task->place, (memfs_pfn){ block.pfn }, block.order);
	else
		mf_page_free_irq(run->pg, &task->place, (memfs_pfn){ block.pfn }, block.order);
	check_freed(run, &before, UINT64_C(1) << block.order);
}

/* Single pages from a random place on, as they come. */
static void do_free_bulk(struct run *run, struct task *task, uint64_t n)
{
	static memfs_pfn pfns[MOST_BULK];
	size_t at = run->nr_blocks ? below(run, run->nr_blocks) : 0, found = 0;
	struct counters before;

	while (found < n && at < run->nr_blocks) {
		if (run->block[at].order == 0)
			pfns[found++].v = disown(run, at).pfn;
		else
			at++;
	}
	read_counters(run, &before);
	mf_page_free_bulk(run->pg, &task->place, found, pfns);
	check_freed(run, &before, found);
}

/* --- changes --- */

static void do_weights(struct run *run)
{
	struct mf_weights weights;

	for (int node = 0; node < MOST_NODES; node++) {
		run->weight[node] = below(run, 4) ? 1 + (unsigned)below(run, 12)
						  : 1 + (unsigned)below(run, 255);
		weights.of[node] = (uint8_t)run->weight[node];
	}
	mf_page_set_weights(run->pg, &weights);
}

static void do_policy(struct run *run, struct task *task)
{
	struct mf_policy policy;

	random_policy(run, task->allowed, &policy);
	mf_placement_set_policy(&task->place, &policy, run->topo);
	task->policy = policy;
	task->prev = 63;
	task->owed = 0;
}

static void do_allowed(struct run *run, struct task *task)
{
	mf_nodemask allowed = below(run, 3) ? run->topo->nodes
					    : random_nodes(run, run->topo->nodes, run->topo->memory);
	struct mf_policy_context context;
	struct mf_policy policy;
	mf_nodemask read;

	mf_placement_context(run->topo, allowed, &context);
	mf_policy_rebind(&task->policy, &context);
	task->allowed = allowed;
	expect(run, mf_placement_set_allowed(&task->place, allowed, run->topo) == 0, "mems_allowed refused");
	mf_placement_read(&task->place, &policy, &read);
	expect(run, read == allowed && policy.nodes == task->policy.nodes, "nodes after mems_allowed");
	check_rotation(run, &(struct wish){ .task = task }, 0);
	expect(run, mf_placement_set_allowed(&task->place, 0, run->topo) == -EINVAL,
	       "no node at all allowed");
}

static void do_cpu(struct run *run, struct task *task)
{
	task->cpu = random_cpu(run);
	mf_placement_set_cpu(&task->place, task->cpu, run->topo);
}

static void do_knobs(struct run *run)
{
	struct mf_page_knobs *knobs = &run->knobs;
	uint64_t usual = mf_watermark_default_min_free(run->topo);

	knobs->pcp_mode = below(run, 2) ? MF_PCP_RSEQ : (int)below(run, 3);
	knobs->pcp_irq_bypass = !below(run, 3);
	knobs->numa = below(run, 5) != 0;
	knobs->numa_stat = below(run, 5) != 0;
	knobs->bulk_split = !below(run, 3);
	knobs->init_on_alloc = !below(run, 8);
	knobs->watermark_boost_factor = below(run, 3) ? 15000 : 0;
	knobs->trim_seconds = (unsigned)below(run, 4);
	knobs->marks.min_free_kbytes = below(run, 3) ? usual : 64 + below(run, 4 * usual);
	knobs->marks.watermark_scale_factor = below(run, 3) ? 10 : 1 + (unsigned)below(run, 100);
	knobs->marks.percpu_pagelist_high_fraction = below(run, 3) ? 0 : 8 + (unsigned)below(run, 1000);
	knobs->marks.lowmem_reserve_ratio[MF_ZONE_DMA] = below(run, 3) ? 256 : (unsigned)below(run, 300);
	mf_page_set_knobs(run->pg, knobs);
}

static void do_check(struct run *run)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	unsigned bad = mf_page_check(run->pg, (int64_t)run->live_pages, &out);

	if (bad && run->failures < 5)
		printf("%s", out.data);
	expect(run, !bad, "the allocator's own check");
	mf_outbuf_free(&out);
}

static void do_change(struct run *run, struct task *task)
{
	switch (below(run, 16)) {
	case 0:
		mf_page_drain(run->pg, (int)below(run, 64) - 1);
		break;
	case 1:
	case 2:
		mf_page_tick(run->pg);
		break;
	case 3:
		mf_page_trim(run->pg);
		break;
	case 4:
	case 5:
		do_weights(run);
		break;
	case 6:
	case 7:
		do_allowed(run, task);
		break;
	case 8:
	case 9:
		do_cpu(run, task);
		break;
	case 10:
		do_knobs(run);
		break;
	default:
		do_policy(run, task);
		break;
	}
}

static void do_something(struct run *run)
{
	/* Filling up and emptying take turns. */
	unsigned bias = run->operation / 512 % 2 ? 34 : 55;
	struct task *task = &run->task[below(run, NR_TASKS)];
	unsigned what = (unsigned)below(run, 100), order = random_order(run);
	uint64_t n = below(run, 20) ? below(run, 61) : below(run, MOST_BULK);

	if (run->live_pages + n + (UINT64_C(1) << order) > run->most_pages)
		what = 50 + what / 2;
	if (what < bias - 12)
		do_single(run, order);
	else if (what < bias)
		do_bulk(run, n);
	else if (what < 88)
		do_free(run, task);
	else if (what < 92)
		do_free_bulk(run, task, n);
	else
		do_change(run, task);
	if (run->operation % 32 == 0)
		do_check(run);
}

/* --- one machine --- */

static bool bind_to_cpu(struct run *run)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	if (cpu < 0)
		return false;
	CPU_SET((unsigned)cpu, &set);
	run->host_cpu = cpu;
	mf_plat_sim_set_cpu(run->plat, cpu);
	return sched_setaffinity(0, sizeof(set), &set) == 0;
}

static void begin(struct run *run)
{
	char why[256] = "";
	int error;

	if (mf_plat_sim_create(NULL, 0, &run->plat))
		abort();
	if (strncmp(run->machine, "node", 4))
		error = mf_topo_create(run->machine, run->plat, &run->topo, why, sizeof(why));
	else
		error = mf_topo_parse_file(run->machine, strlen(run->machine), &run->topo, why, sizeof(why));
	if (error || !bind_to_cpu(run)) {
		printf("cannot begin: %s\n", why);
		exit(EXIT_FAILURE);
	}
	mf_fault_init(&run->fault);
	if (mf_page_create(run->topo, run->plat, &run->fault, &run->pg))
		abort();
	mf_page_get_knobs(run->pg, &run->knobs);
	for (unsigned zone = 0; zone < MF_MAX_ZONES; zone++)
		if (mf_page_zone_info(run->pg, zone, &run->before[run->nr_zones]))
			run->zone[run->nr_zones++] = zone;
	run->owned = calloc(run->topo->pfn_limit, 1);
	run->block = calloc(run->topo->nr_pages, sizeof(*run->block));
	if (!run->owned || !run->block)
		abort();
	run->most_pages = run->topo->nr_pages < 26000 ? run->topo->nr_pages : 26000;
	do_weights(run);
	for (unsigned i = 0; i < NR_TASKS; i++) {
		struct task *task = &run->task[i];

		mf_placement_init(&task->place, run->pg);
		task->allowed = run->topo->nodes;
		do_policy(run, task);
		do_cpu(run, task);
	}
}

static bool same_blocks(const struct run *run, unsigned z)
{
	uint64_t was[MF_NR_ORDERS] = { 0 }, is[MF_NR_ORDERS] = { 0 };
	struct mf_zone_info info;

	mf_page_zone_info(run->pg, run->zone[z], &info);
	for (int type = 0; type < MF_NR_MIGRATE_TYPES; type++)
		for (unsigned order = 0; order < MF_NR_ORDERS; order++) {
			was[order] += run->before[z].nr_free[type][order];
			is[order] += info.nr_free[type][order];
		}
	return !memcmp(was, is, sizeof(is)) && info.pcp_count == 0;
}

static void end(struct run *run)
{
	while (run->nr_blocks)
		do_free(run, &run->task[below(run, NR_TASKS)]);
	do_check(run);
	mf_page_drain(run->pg, -1);
	for (unsigned z = 0; z < run->nr_zones; z++)
		expect(run, same_blocks(run, z), "the free blocks are not those of the start");
	expect(run,
	       mf_stat_read(mf_page_stat(run->pg), MF_STAT_pgalloc) ==
		       mf_stat_read(mf_page_stat(run->pg), MF_STAT_pgfree),
	       "pgalloc and pgfree differ at the end");
	mf_page_destroy(run->pg);
	mf_topo_destroy(run->topo);
	expect(run, mf_plat_sim_outstanding(run->plat) == 0, "not everything went back to the host");
	run->plat->ops->destroy(run->plat);
	free(run->owned);
	free(run->block);
}

static unsigned run_machine(uint64_t seed, size_t machine, uint64_t operations)
{
	struct run run = { .seed = seed, .state = seed + machine, .machine = machines[machine] };

	begin(&run);
	for (run.operation = 1; run.operation <= operations; run.operation++)
		do_something(&run);
	end(&run);
	return run.failures;
}

/* True: the Nth visit came, so there may be another. */
static bool run_fault(uint64_t seed, size_t machine, uint64_t nth, unsigned *failures)
{
	struct run run = { .seed = seed, .state = seed + machine, .machine = machines[machine] };
	bool fired;

	begin(&run);
	mf_fault_arm_any(&run.fault, nth);
	for (run.operation = 1; run.operation <= FAULT_OPERATIONS; run.operation++) {
		bool before = mf_fault_fired(&run.fault);

		do_something(&run);
		if (before != mf_fault_fired(&run.fault))
			do_check(&run);
	}
	fired = mf_fault_fired(&run.fault);
	mf_fault_disarm(&run.fault);
	end(&run);
	if (run.failures)
		printf("visit %" PRIu64 " failing, seed %" PRIu64 ": %u failures\n", nth, seed, run.failures);
	*failures += run.failures;
	return fired;
}

static bool run_seed(uint64_t seed, uint64_t operations)
{
	unsigned failures = 0;
	uint64_t visits = 0;

	for (size_t machine = 0; machine < NR_MACHINES; machine++)
		failures += run_machine(seed, machine, operations / NR_MACHINES);
	for (size_t machine = seed % 2; machine < 4; machine += 2)
		for (uint64_t nth = 1; run_fault(seed, machine, nth, &failures); nth++)
			visits++;
	printf("seed %" PRIu64 ": %" PRIu64 " operations, %" PRIu64 " failing visits, %u failures\n", seed,
	       operations, visits, failures);
	return !failures;
}

int main(int argc, char **argv)
{
	uint64_t seeds[] = { 1, 2, (uint64_t)time(NULL) * 1000003 + (uint64_t)getpid() };
	uint64_t operations = argc > 2 ? strtoull(argv[2], NULL, 0) : DEFAULT_COUNT;
	unsigned nr_seeds = sizeof(seeds) / sizeof(seeds[0]);
	unsigned passed = 0;

	if (argc > 1 && strcmp(argv[1], "-")) {
		seeds[0] = strtoull(argv[1], NULL, 0);
		nr_seeds = 1;
	}
	for (unsigned i = 0; i < nr_seeds; i++)
		passed += run_seed(seeds[i], operations / nr_seeds);
	printf("TOTALS %u passed, %u failed, 0 skipped\n", passed, nr_seeds - passed);
	return passed == nr_seeds ? EXIT_SUCCESS : EXIT_FAILURE;
}
