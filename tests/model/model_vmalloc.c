/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random test of ranges against a model that knows each range's pages, what
 * they contain, and how many of them each node owes.
 *
 *	model_vmalloc [SEED|- [COUNT]]
 *
 * runs COUNT operations (default 100000), spread over fixed seeds and one
 * random seed, or all with SEED, each seed over several small machines.  After
 * every operation: no page and no address belongs to two ranges, addresses that
 * wait for a purge are not given out, the rotation has moved by the pages
 * handed out and not at all on a failure, and the counters say what is held.
 * Where the nodes in question have room, each gave exactly its share.  Every
 * few, both engines check themselves; at the end everything is freed and the
 * free blocks must be those of the start.
 *
 * Then the same with the Nth failure point visited made to fail, for rising N
 * until none fails any more.  A failure prints seed, machine and operation.
 */
#include "vmalloc_model.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_COUNT 100000
#define FAULT_OPERATIONS 80

static const char *const machines[] = {
	"2x64M:cpus=2",
	"4x32M:cpus=1",
	"128M:cpus=2+16M:cpus=0+0:cpus=1",
	"node 0 cpus 0-1 zones DMA=4M,DMA32=32M,Normal=28688K\n"
	"node 3 cpus - zones Normal=48M,Movable=16M\n"
	"node 62 cpus 5 zones DMA32=24M,Movable=24M\n"
	"distance 0 10 20 30\n"
	"distance 3 20 10 15\n"
	"distance 62 30 15 10\n",
};

#define NR_MACHINES (sizeof(machines) / sizeof(machines[0]))

/* --- requests --- */

static mf_nodemask random_nodes(struct run *run, mf_nodemask of)
{
	mf_nodemask mask = of & next_random(run);

	return mask ? mask : mf_node_bit(mf_node_nth(of, (int)below(run, (uint64_t)mf_node_weight(of))));
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
	       !mf_policy_set(mode, 0, usable ? random_nodes(run, usable) : 0, &context, out, why,
			      sizeof(why)),
	       "setting a policy failed");
}

static uint64_t random_pages(struct run *run)
{
	switch (below(run, 16)) {
	case 0:
		return 1 + below(run, 3000);
	case 1:
		return 512 * (1 + below(run, 4)) - below(run, 3);
	case 2:
	case 3:
	case 4:
		return 1 + below(run, 300);
	case 5:
	case 6:
		return UINT64_C(1) << below(run, 10);
	default:
		return 1 + below(run, 20);
	}
}

static memfs_gfp random_gfp(struct run *run)
{
	static const memfs_gfp kinds[] = {
		MEMFS_GFP_KERNEL, MEMFS_GFP_KERNEL, MEMFS_GFP_KERNEL,		MEMFS_GFP_KERNEL,
		MEMFS_GFP_NOWAIT, MEMFS_GFP_ATOMIC, MEMFS_GFP_HIGHUSER_MOVABLE,
	};
	static const memfs_gfp extras[] = {
		MEMFS___GFP_ZERO,    MEMFS___GFP_ZERO,	MEMFS___GFP_THISNODE,
		MEMFS___GFP_NORETRY, MEMFS___GFP_DMA32,
	};
	memfs_gfp gfp = kinds[below(run, sizeof(kinds) / sizeof(kinds[0]))];

	return below(run, 3) ? gfp : gfp | extras[below(run, sizeof(extras) / sizeof(extras[0]))];
}

static void random_wish(struct run *run, struct wish *wish)
{
	struct mf_page_request *page = &wish->request.page;

	memset(wish, 0, sizeof(*wish));
	wish->place = &run->place[below(run, NR_TASKS)];
	mf_placement_read(wish->place, &wish->policy, &wish->allowed);
	wish->request.size =
		random_pages(run) * MEMFS_PAGE_SIZE - below(run, 2) * below(run, MEMFS_PAGE_SIZE);
	wish->request.align = below(run, 4) ? 0 : UINT64_C(1) << below(run, 23);
	wish->request.huge = !below(run, 5);
	wish->request.touch = !below(run, 20);
	*page = (struct mf_page_request){ .gfp = random_gfp(run),
					  .node = MF_NODE_BY_POLICY,
					  .cpu = MF_CPU_OF_TASK };
	if (!below(run, 8)) {
		page->node = mf_node_nth(run->topo->memory,
					 (int)below(run, (uint64_t)mf_node_weight(run->topo->memory)));
		wish->policy = (struct mf_policy){ .mode = MF_MPOL_DEFAULT };
	} else if (!below(run, 6)) {
		random_policy(run, wish->allowed, &wish->vma);
		page->vma = &wish->vma;
		wish->policy = wish->vma;
	}
	wish->allowed &= run->topo->memory;
	wish->rotation = mf_placement_rotation(wish->place);
	foresee(run, wish, (wish->request.size + MEMFS_PAGE_SIZE - 1) / MEMFS_PAGE_SIZE);
}

static bool is_simple(const struct wish *wish)
{
	return !wish->request.align && !wish->request.huge && !wish->request.touch &&
	       !wish->request.page.vma && wish->request.page.node == MF_NODE_BY_POLICY;
}

/* --- ranges come --- */

static void check_rotation(struct run *run, const struct wish *wish, uint64_t got)
{
	struct mf_rotation now = mf_placement_rotation(wish->place), then = wish->rotation;

	for (uint64_t i = 0; moves(wish) && i < got; i++)
		mf_policy_step(&wish->policy, &run->weights, &then);
	expect(run, now.il_prev == then.il_prev && now.il_weight == then.il_weight,
	       "the rotation did not move by the pages handed out");
}

/* Huge pages throughout, at addresses that fit. */
static void check_huge(struct run *run, const struct range *range)
{
	expect(run, !((uintptr_t)range->address % (512 * MEMFS_PAGE_SIZE)) && !(range->pages % 512),
	       "a huge range is not aligned");
	for (uint64_t i = 0; i < range->pages; i++)
		expect(run, i % 512 ? range->pfn[i].v == range->pfn[i - 1].v + 1 : !(range->pfn[i].v % 512),
		       "a huge range is not of huge blocks");
}

static void check_nodes(struct run *run, const struct wish *wish, const struct range *range, bool exact)
{
	uint64_t by_node[MOST_NODES] = { 0 };

	for (uint64_t i = 0; i < range->pages; i++)
		by_node[mf_page_node(run->pg, range->pfn[i].v) & 63]++;
	for (int node = 0; node < MOST_NODES; node++) {
		expect(run, !by_node[node] || mf_node_isset(wish->own, node),
		       "a node that was out of the question");
		expect(run, !exact || by_node[node] == wish->gives[node],
		       "a node gave more or less than its share");
	}
	for (uint64_t i = 0; i < range->pages; i++)
		expect(run, mf_page_zone(run->pg, range->pfn[i].v) % MF_NR_ZONE_TYPES <= highest_zone(wish),
		       "a zone the flags do not allow");
}

static bool has_blocks(const struct run *run, const struct wish *wish)
{
	MF_FOR_EACH_NODE(node, run->topo->memory) {
		struct mf_page_free_blocks free;

		mf_page_free_blocks(run->pg, node, wish->request.page.gfp, &free);
		if (wish->gives[node] % 512 ||
		    (wish->gives[node] && free.pageblocks < wish->gives[node] / 512 + free.all / 64 + 2))
			return false;
	}
	return wish->room;
}

static void take_over(struct run *run, struct wish *wish, void *address, bool huge, bool exact)
{
	struct range range = { .address = address, .tag = run->next_tag++ };

	range.pages = mf_vmalloc_pages(run->vm, address, NULL, 0);
	range.pfn = calloc(range.pages + 1, sizeof(*range.pfn));
	if (!range.pfn)
		abort();
	mf_vmalloc_pages(run->vm, address, range.pfn, range.pages);
	expect(run, range.pages == wish->n, "not the pages that were asked for");
	range.mappings = is_mapped(run, address) ? count_mappings(run, &range) : 0;
	if (wish->request.align)
		expect(run, !((uintptr_t)address & (wish->request.align - 1)), "not aligned");
	check_shape(run, &range);
	check_nodes(run, wish, &range, exact);
	if (huge)
		check_huge(run, &range);
	if (wish->request.page.gfp & MEMFS___GFP_ZERO)
		expect(run, all_clear(&range), "pages are not clear");
	for (uint64_t i = 0; i < range.pages; i++)
		own_page(run, range.pfn[i].v);
	insert(run, &range);
	fill(&range);
}

static void check_error(struct run *run, int error, bool exact, const char *why)
{
	bool tight = run->knobs.max_mappings < run->usual.max_mappings;

	expect(run, error == -ENOMEM || (error == -ENOSPC && (tight || !exact)), "an error that cannot be");
	expect(run, !exact || (tight && error == -ENOSPC), "failed though there was room");
	expect(run, *why, "a failure without a reason");
}

static int ask(struct run *run, const struct wish *wish, bool simple, void **address, char *why, size_t size)
{
	int error;

	if (!simple)
		return mf_vmalloc_alloc(run->vm, wish->place, &wish->request, address, why, size);
	*address = mf_vmalloc_simple(run->vm, wish->place, wish->request.size, wish->request.page.gfp, NULL);
	error = *address ? 0 : -errno;
	snprintf(why, size, "simple");
	return error;
}

/* A range of huge pages is counted in whole ones; false: it was not made of them. */
static bool became_huge(struct run *run, struct wish *wish, uint64_t fallbacks)
{
	if (!wish->request.huge || wish->n < 512 ||
	    mf_stat_read(run->stat, MF_STAT_vmalloc_huge_fallback) != fallbacks)
		return false;
	foresee(run, wish, (wish->n + 511) & ~UINT64_C(511));
	return true;
}

/* Visits made to fail so far. */
static uint64_t failed_visits(const struct run *run)
{
	uint64_t failed = 0;

	for (int i = 0; i < MF_NR_FAULT_POINTS; i++)
		failed += atomic_load(&run->fault.point[i].failures);
	return failed;
}

static void do_alloc(struct run *run)
{
	uint64_t fallbacks = mf_stat_read(run->stat, MF_STAT_vmalloc_huge_fallback);
	uint64_t failed = failed_visits(run);
	bool exact, huge, blocks, simple;
	char why[160] = "";
	struct wish wish;
	void *address;
	int error;

	if (run->nr_ranges == MOST_RANGES)
		return;
	random_wish(run, &wish);
	blocks = wish.request.huge && has_blocks(run, &wish);
	simple = is_simple(&wish) && below(run, 2);
	error = ask(run, &wish, simple, &address, why, sizeof(why));
	see_purges(run);
	exact = wish.room && failed == failed_visits(run);
	expect(run, wish.possible || error, "a range from nowhere");
	if (error) {
		check_error(run, error, exact, why);
		check_rotation(run, &wish, 0);
		return;
	}
	huge = became_huge(run, &wish, fallbacks);
	exact = exact && (!huge || blocks);
	take_over(run, &wish, address, huge, exact);
	check_rotation(run, &wish, wish.n);
}

/* A page here and there back before mapping, so that there are gaps and no order. */
static void shuffle(struct run *run, memfs_pfn *pfn, uint64_t n)
{
	for (uint64_t i = 1; i < n; i++) {
		uint64_t other = below(run, 8) ? i : below(run, i);
		memfs_pfn kept = pfn[i];

		pfn[i] = pfn[other];
		pfn[other] = kept;
	}
}

static void do_vmap(struct run *run)
{
	struct mf_placement *place = &run->place[below(run, NR_TASKS)];
	struct mf_page_request request = { .gfp = MEMFS_GFP_KERNEL,
					   .node = MF_NODE_BY_POLICY,
					   .cpu = MF_CPU_OF_TASK };
	struct range range = { .pages = 1 + below(run, 60), .tag = run->next_tag++, .vmap = true };
	char why[160] = "";
	void *address;
	int error;

	if (run->nr_ranges == MOST_RANGES)
		return;
	range.pfn = calloc(range.pages, sizeof(*range.pfn));
	if (!range.pfn)
		abort();
	range.pages = mf_page_alloc_bulk(run->pg, place, &request, range.pages, range.pfn);
	shuffle(run, range.pfn, range.pages);
	error = mf_vmalloc_map(run->vm, range.pages, range.pfn, "model", &address, why, sizeof(why));
	see_purges(run);
	if (error) {
		expect(run, *why && (range.pages ? error != -EINVAL : error == -EINVAL), "vmap failed oddly");
		mf_page_free_bulk(run->pg, place, range.pages, range.pfn);
		free(range.pfn);
		return;
	}
	range.address = address;
	range.mappings = count_mappings(run, &range);
	expect(run, is_mapped(run, address), "a vmap outside of the reserved range");
	for (uint64_t i = 0; i < range.pages; i++)
		own_page(run, range.pfn[i].v);
	insert(run, &range);
	fill(&range);
}

/* --- ranges go --- */

static void check_refusals(struct run *run, const struct range *range)
{
	if (range->vmap)
		expect(run, mf_vmalloc_free(run->vm, NULL, range->address) == -EINVAL, "vfree of a vmap");
	else
		expect(run, mf_vmalloc_unmap(run->vm, range->address) == -EINVAL, "vunmap of a range");
	if (range->pages > 1)
		expect(run, mf_vmalloc_free(run->vm, NULL, range->address + MEMFS_PAGE_SIZE) == -EINVAL,
		       "vfree of the middle of a range");
}

static int give_back(struct run *run, const struct range *range, struct mf_placement *place)
{
	int error = range->vmap ? mf_vmalloc_unmap(run->vm, range->address)
				: mf_vmalloc_free(run->vm, below(run, 8) ? place : NULL, range->address);

	if (range->vmap)
		mf_page_free_bulk(run->pg, place, range->pages, range->pfn);
	return error;
}

static void do_free(struct run *run)
{
	uint64_t parked = mf_vmalloc_parked(run->vm), now;
	struct mf_placement *place = &run->place[below(run, NR_TASKS)];
	size_t at = run->nr_ranges ? below(run, run->nr_ranges) : 0;
	struct range range;

	if (!run->nr_ranges)
		return;
	range = run->range[at];
	expect(run, all_filled(run, &range), "contents changed");
	check_refusals(run, &range);
	expect(run, !give_back(run, &range, place), "a range is not taken back");
	expect(run, mf_vmalloc_free(run->vm, place, range.address) == -EINVAL, "freed twice");
	forget(run, at, range.mappings > 0);
	see_purges(run);
	now = mf_vmalloc_parked(run->vm);
	if (range.mappings || range.pages > 256 || !run->knobs.lazy_max || !run->knobs.linear)
		expect(run, now <= parked, "what is not linear or too large was parked");
	else
		expect(run, now <= parked + range.pages, "more was parked than the pages freed");
}

/* --- pages that fragment --- */

static void do_hold(struct run *run)
{
	unsigned order = below(run, 3) ? 0 : (unsigned)below(run, 5);
	struct mf_placement *place = &run->place[below(run, NR_TASKS)];
	memfs_pfn pfn;

	if (run->nr_held == MOST_HELD || mf_page_alloc_simple(place, MEMFS_GFP_KERNEL, order, &pfn))
		return;
	run->held[run->nr_held++] = (struct held){ pfn.v, order };
	run->held_pages += UINT64_C(1) << order;
	for (uint32_t i = 0; i < UINT32_C(1) << order; i++)
		own_page(run, pfn.v + i);
}

static void do_release(struct run *run)
{
	size_t at = run->nr_held ? below(run, run->nr_held) : 0;
	struct held held;

	if (!run->nr_held)
		return;
	held = run->held[at];
	run->held[at] = run->held[--run->nr_held];
	run->held_pages -= UINT64_C(1) << held.order;
	memset(run->owned + held.pfn, 0, UINT64_C(1) << held.order);
	mf_page_free(&run->place[below(run, NR_TASKS)], (memfs_pfn){ held.pfn }, held.order);
}

/* --- changes --- */

static void do_knobs(struct run *run)
{
	struct mf_vmalloc_knobs *knobs = &run->knobs;

	*knobs = run->usual;
	knobs->large_order = below(run, 2) ? MF_VMALLOC_BOUNDED : (int)below(run, 3);
	knobs->linear = below(run, 3) != 0;
	knobs->small_pages = below(run, 2) ? 8 : (unsigned)below(run, 64);
	if (!below(run, 3))
		knobs->lazy_max = below(run, 3) * 2000;
	if (!below(run, 5))
		knobs->max_mappings = below(run, 400);
	mf_vmalloc_set_knobs(run->vm, knobs);
}

static void do_weights(struct run *run)
{
	for (int node = 0; node < MOST_NODES; node++)
		run->weights.of[node] = (uint8_t)(1 + below(run, below(run, 4) ? 12 : 255));
	mf_page_set_weights(run->pg, &run->weights);
}

static int random_cpu(struct run *run)
{
	int cpu;

	do
		cpu = (int)below(run, run->topo->cpu_limit);
	while (run->topo->cpu_node[cpu] < 0);
	return cpu;
}

static void do_task(struct run *run, struct mf_placement *place)
{
	mf_nodemask allowed = below(run, 3) ? run->topo->nodes : random_nodes(run, run->topo->memory);
	struct mf_policy policy;

	expect(run, !mf_placement_set_allowed(place, allowed, run->topo), "mems_allowed refused");
	random_policy(run, allowed, &policy);
	mf_placement_set_policy(place, &policy, run->topo);
	mf_placement_set_cpu(place, random_cpu(run), run->topo);
}

static void do_purge(struct run *run)
{
	uint64_t wanted = run->waiting_pages + mf_vmalloc_parked(run->vm);

	expect(run, mf_vmalloc_purge(run->vm) == wanted, "a purge gave back more or less than there was");
	see_purges(run);
	expect(run, !run->nr_waiting && !mf_vmalloc_parked(run->vm), "something is left after a purge");
}

static void do_arm(struct run *run)
{
	mf_fault_disarm(&run->fault);
	if (!below(run, 3))
		return;
	if (below(run, 2))
		mf_fault_arm_any(&run->fault, 1 + below(run, 40));
	else
		mf_fault_arm(&run->fault, (enum mf_fault_point)below(run, MF_NR_FAULT_POINTS),
			     1 + below(run, 4), below(run, 2) ? 0 : 1 + below(run, 5));
}

static void do_change(struct run *run)
{
	switch (below(run, 10)) {
	case 0:
		do_purge(run);
		break;
	case 1:
		mf_page_drain(run->pg, (int)below(run, 64) - 1);
		break;
	case 2:
		mf_page_tick(run->pg);
		mf_vmalloc_tick(run->vm);
		see_purges(run);
		break;
	case 3:
	case 4:
		do_knobs(run);
		break;
	case 5:
		do_weights(run);
		break;
	default:
		do_task(run, &run->place[below(run, NR_TASKS)]);
	}
}

/* --- checks --- */

static void check_sums(struct run *run)
{
	struct mf_vmalloc_info *info = &run->info;
	uint64_t held = run->range_pages + run->vmap_pages + run->held_pages + run->waiting_pages;
	uint64_t linear = 0;

	mf_vmalloc_info(run->vm, info);
	for (size_t i = 0; i < run->nr_ranges; i++)
		linear += !run->range[i].mappings;
	expect(run, info->areas == run->nr_ranges - linear, "areas in use");
	expect(run, info->used_pages == run->range_pages, "pages of ranges in use");
	expect(run, info->lazy_areas == run->nr_waiting, "areas that wait for a purge");
	expect(run, info->lazy_pages == run->waiting_pages + info->parked_pages, "pages freed lazily");
	expect(run, info->mappings == run->mappings, "mappings are not the runs and guards");
	expect(run,
	       mf_stat_read(run->stat, MF_STAT_pgalloc) == mf_stat_read(run->stat, MF_STAT_pgfree) + held,
	       "pgalloc less pgfree is not what users hold");
}

static void do_check(struct run *run)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	uint64_t handed = run->range_pages + run->vmap_pages + run->held_pages + run->waiting_pages +
			  mf_vmalloc_parked(run->vm);
	unsigned bad = mf_vmalloc_check(run->vm, &out) + mf_page_check(run->pg, (int64_t)handed, &out);

	if (bad && run->failures < 5)
		printf("%s", out.data);
	expect(run, !bad, "the engines' own checks");
	mf_outbuf_free(&out);
}

/* A page of some range, looked up and read. */
static void check_any(struct run *run)
{
	const struct range *range = &run->range[run->nr_ranges ? below(run, run->nr_ranges) : 0];
	uint64_t page;
	uint32_t pfn;

	if (!run->nr_ranges)
		return;
	page = below(run, range->pages);
	expect(run, is_filled(run, range, below(run, 2) ? 0 : range->pages - 1),
	       "contents changed meanwhile");
	expect(run,
	       mf_vmalloc_page(run->vm, range->address + page * MEMFS_PAGE_SIZE + below(run, 4096), &pfn) &&
		       pfn == range->pfn[page].v,
	       "the page of an address");
	if (range->mappings)
		expect(run, !mf_vmalloc_page(run->vm, range->address + range->pages * MEMFS_PAGE_SIZE, &pfn),
		       "a guard has a page");
}

static void do_something(struct run *run)
{
	/* Filling up and emptying take turns. */
	unsigned bias = run->operation / 256 % 2 ? 30 : 46, what = (unsigned)below(run, 100);

	if (what < bias)
		do_alloc(run);
	else if (what < bias + 4)
		do_vmap(run);
	else if (what < 74)
		do_free(run);
	else if (what < 84)
		do_hold(run);
	else if (what < 91)
		do_release(run);
	else
		do_change(run);
	see_purges(run);
	check_any(run);
	if (run->operation % 4 == 0)
		check_sums(run);
	if (run->operation % 64 == 0)
		do_check(run);
}

/* --- one machine --- */

static int create_machine(struct run *run, char *why, size_t size)
{
	if (mf_plat_sim_create(NULL, 0, &run->plat))
		abort();
	if (strncmp(run->machine, "node", 4))
		return mf_topo_create(run->machine, run->plat, &run->topo, why, size);
	return mf_topo_parse_file(run->machine, strlen(run->machine), &run->topo, why, size);
}

static void begin(struct run *run)
{
	char why[256] = "";

	if (create_machine(run, why, sizeof(why))) {
		printf("cannot begin: %s\n", why);
		exit(EXIT_FAILURE);
	}
	mf_fault_init(&run->fault);
	if (mf_page_create(run->topo, run->plat, &run->fault, &run->pg) ||
	    mf_vmalloc_create(run->pg, run->plat, &run->vm))
		abort();
	run->stat = mf_page_stat(run->pg);
	for (unsigned zone = 0; zone < MF_MAX_ZONES; zone++)
		if (mf_page_zone_info(run->pg, zone, &run->before[run->nr_zones]))
			run->zone[run->nr_zones++] = zone;
	run->owned = calloc(run->topo->pfn_limit, 1);
	if (!run->owned)
		abort();
	mf_vmalloc_info(run->vm, &run->info);
	mf_vmalloc_get_knobs(run->vm, &run->usual);
	run->knobs = run->usual;
	do_weights(run);
	for (unsigned i = 0; i < NR_TASKS; i++) {
		mf_placement_init(&run->place[i], run->pg);
		do_task(run, &run->place[i]);
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

/* What is left of the ranges goes with the engine; pages of a vmap are ours. */
static void leave(struct run *run)
{
	for (size_t at = run->nr_ranges; at-- > 0;)
		if (run->range[at].vmap) {
			expect(run, !give_back(run, &run->range[at], &run->place[0]), "vunmap at the end");
			forget(run, at, true);
		}
	mf_vmalloc_destroy(run->vm);
	while (run->nr_ranges)
		forget(run, run->nr_ranges - 1, false);
}

static void end(struct run *run)
{
	mf_fault_disarm(&run->fault);
	while (run->nr_held)
		do_release(run);
	if (run->leaves) {
		leave(run);
	} else {
		while (run->nr_ranges)
			do_free(run);
		do_purge(run);
		check_sums(run);
		do_check(run);
		expect(run,
		       !run->info.mappings && !run->info.areas && run->info.nr_free == 1 &&
			       run->info.free_bytes == run->info.size,
		       "the reserved range is not one free place");
		mf_vmalloc_destroy(run->vm);
	}
	mf_page_drain(run->pg, -1);
	for (unsigned z = 0; z < run->nr_zones; z++)
		expect(run, same_blocks(run, z), "the free blocks are not those of the start");
	mf_page_destroy(run->pg);
	mf_topo_destroy(run->topo);
	expect(run, mf_plat_sim_outstanding(run->plat) == 0, "not everything went back to the host");
	run->plat->ops->destroy(run->plat);
	free(run->owned);
	free(run->waiting);
}

static unsigned run_machine(uint64_t seed, size_t machine, uint64_t operations)
{
	struct run *run = calloc(1, sizeof(*run));
	unsigned failures;

	if (!run)
		abort();
	run->seed = seed;
	run->state = seed + machine;
	run->machine = machines[machine];
	run->leaves = (seed + machine) % 2;
	begin(run);
	for (run->operation = 1; run->operation <= operations; run->operation++) {
		if (!below(run, 60))
			do_arm(run);
		do_something(run);
	}
	end(run);
	failures = run->failures;
	free(run);
	return failures;
}

/* True: the Nth visit came, so there may be another. */
static bool run_fault(uint64_t seed, size_t machine, uint64_t nth, unsigned *failures)
{
	struct run *run = calloc(1, sizeof(*run));
	bool fired;

	if (!run)
		abort();
	run->seed = seed;
	run->state = seed + machine;
	run->machine = machines[machine];
	begin(run);
	mf_fault_arm_any(&run->fault, nth);
	for (run->operation = 1; run->operation <= FAULT_OPERATIONS; run->operation++) {
		bool before = mf_fault_fired(&run->fault);

		do_something(run);
		if (before != mf_fault_fired(&run->fault)) {
			check_sums(run);
			do_check(run);
		}
	}
	fired = mf_fault_fired(&run->fault);
	end(run);
	if (run->failures)
		printf("visit %" PRIu64 " failing, seed %" PRIu64 ": %u failures\n", nth, seed,
		       run->failures);
	*failures += run->failures;
	free(run);
	return fired;
}

/* Every visit of the first twenty, then ever fewer. */
static uint64_t sweep(uint64_t seed, size_t machine, unsigned *failures)
{
	uint64_t visits = 0;

	for (uint64_t nth = 1; run_fault(seed, machine, nth, failures); nth += 1 + nth / 20)
		visits++;
	return visits;
}

static bool run_seed(uint64_t seed, uint64_t operations)
{
	unsigned failures = 0;
	uint64_t visits = 0;

	for (size_t machine = 0; machine < NR_MACHINES; machine++)
		failures += run_machine(seed, machine, operations / NR_MACHINES);
	visits += sweep(seed, seed % NR_MACHINES, &failures);
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
