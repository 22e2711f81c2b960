/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What model_page knows of one machine, and its reference: who owns each page and
 * what it contains, how far the counters may move, and where a request belongs
 * when one block at a time is placed.  For model_page.c alone.
 */
#ifndef MF_TESTS_PAGE_MODEL_H
#define MF_TESTS_PAGE_MODEL_H

#include "page/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_NODES 64
#define MOST_USED_ZONES 12
#define NR_TASKS 3

enum counter { ALLOC, HIT, MISS, FOREIGN, TURN, LOCAL, OTHER, FREE, NR_COUNTERS };

static const enum mf_stat_id counter_ids[NR_COUNTERS] = {
	MF_STAT_pgalloc,	 MF_STAT_numa_hit,   MF_STAT_numa_miss,	 MF_STAT_numa_foreign,
	MF_STAT_numa_interleave, MF_STAT_numa_local, MF_STAT_numa_other, MF_STAT_pgfree,
};

struct counters {
	uint64_t of[MOST_USED_ZONES][NR_COUNTERS];
};

struct block {
	uint32_t pfn;
	unsigned order;
	uint64_t tag;
};

struct task {
	struct mf_placement place;
	struct mf_policy policy;
	mf_nodemask allowed;
	int cpu;
	unsigned prev, owed; /* the rotation, one block at a time */
};

struct run {
	uint64_t seed, state, operation;
	unsigned failures;
	const char *machine;
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *pg;
	struct mf_page_knobs knobs;
	unsigned weight[MOST_NODES];
	struct task task[NR_TASKS];
	unsigned zone[MOST_USED_ZONES], nr_zones;
	uint8_t *owned; /* a byte a page */
	struct block *block;
	size_t nr_blocks;
	uint64_t live_pages, most_pages, next_tag;
	int host_cpu; /* this thread is bound to it */
	struct mf_zone_info before[MOST_USED_ZONES];
};

/* One request and what the model says of it. */
struct wish {
	struct mf_page_request request;
	struct task *task;
	struct mf_policy policy; /* that holds */
	uint64_t n;
	int highest, local, zoned_node;
	mf_nodemask allowed, filter; /* no page outside of filter */
	bool turns, moves;	     /* an interleave policy; the task's */
	uint64_t chosen[MOST_NODES]; /* blocks the policy wants of a node */
	uint64_t gives[MOST_NODES];  /* blocks a node gives if it has room */
	uint64_t turn[MOST_NODES];   /* of those: where the policy wanted them */
	bool possible, room;
};

static uint64_t next_random(struct run *run)
{
	uint64_t z = run->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t below(struct run *run, uint64_t bound)
{
	return next_random(run) % bound;
}

static void expect(struct run *run, bool holds, const char *what)
{
	if (holds)
		return;
	run->failures++;
	if (run->failures <= 5)
		printf("seed %" PRIu64 " machine '%.30s' operation %" PRIu64 ": %s\n", run->seed,
		       run->machine, run->operation, what);
}

/* --- contents and owners --- */

static uint64_t page_word(const struct block *block, uint64_t page)
{
	return (block->tag + page) * 0x9e3779b97f4a7c15;
}

static uint64_t *words_of(const struct run *run, const struct block *block, uint64_t page)
{
	return mf_page_address(run->pg, block->pfn + (uint32_t)page);
}

/* Both ends of every page and a word in between. */
static void fill(struct run *run, const struct block *block)
{
	for (uint64_t page = 0; page < 1u << block->order; page++) {
		uint64_t *words = words_of(run, block, page), word = page_word(block, page);

		words[0] = word;
		words[1 + word % 510] = ~word;
		words[511] = word;
	}
}

static bool is_filled(struct run *run, const struct block *block)
{
	for (uint64_t page = 0; page < 1u << block->order; page++) {
		uint64_t *words = words_of(run, block, page), word = page_word(block, page);

		if (words[0] != word || words[1 + word % 510] != ~word || words[511] != word)
			return false;
	}
	return true;
}

static bool is_zero(struct run *run, const struct block *block)
{
	static const uint64_t zero[512];

	for (uint64_t page = 0; page < 1u << block->order; page++)
		if (memcmp(words_of(run, block, page), zero, sizeof(zero)))
			return false;
	return true;
}

static void own(struct run *run, const struct wish *wish, uint32_t pfn)
{
	struct block block = { .pfn = pfn, .order = wish->request.order, .tag = run->next_tag++ };
	uint32_t pages = 1u << block.order;
	int zone = mf_page_zone(run->pg, pfn), last = mf_page_zone(run->pg, pfn + pages - 1);
	bool taken = false;

	expect(run, zone >= 0 && zone == last, "a block outside of every zone");
	if (zone < 0 || last < 0)
		return;
	expect(run, !(pfn & (pages - 1)), "a block is not aligned");
	expect(run, zone % MF_NR_ZONE_TYPES <= wish->highest, "a zone the flags do not allow");
	expect(run, mf_node_isset(wish->filter, mf_page_node(run->pg, pfn)),
	       "a node that was out of the question");
	for (uint32_t i = 0; i < pages; i++) {
		taken |= run->owned[pfn + i];
		run->owned[pfn + i] = 1;
	}
	expect(run, !taken, "a page was handed out twice");
	if (wish->request.gfp & MEMFS___GFP_ZERO || run->knobs.init_on_alloc)
		expect(run, is_zero(run, &block), "pages are not clear");
	fill(run, &block);
	run->block[run->nr_blocks++] = block;
	run->live_pages += pages;
}

/* Takes block number @i out of the model; the caller frees it. */
static struct block disown(struct run *run, size_t i)
{
	struct block block = run->block[i];

	expect(run, is_filled(run, &block), "contents changed");
	memset(run->owned + block.pfn, 0, 1u << block.order);
	run->block[i] = run->block[--run->nr_blocks];
	run->live_pages -= 1u << block.order;
	return block;
}

/* --- counters --- */

static void read_counters(const struct run *run, struct counters *out)
{
	for (unsigned z = 0; z < run->nr_zones; z++)
		for (int c = 0; c < NR_COUNTERS; c++)
			out->of[z][c] =
				mf_stat_zone_read(mf_page_stat(run->pg), run->zone[z], counter_ids[c]);
}

static void subtract(const struct run *run, struct counters *from, const struct counters *what)
{
	for (unsigned z = 0; z < run->nr_zones; z++)
		for (int c = 0; c < NR_COUNTERS; c++)
			from->of[z][c] -= what->of[z][c];
}

static void check_zone_counters(struct run *run, const struct wish *wish, unsigned z, const uint64_t *moved,
				uint64_t pages, bool exact)
{
	bool counts = run->knobs.numa && run->knobs.numa_stat;
	int node = (int)(run->zone[z] / MF_NR_ZONE_TYPES);
	uint64_t counted = counts ? pages : 0;

	expect(run, moved[ALLOC] == pages, "pgalloc is not the pages of the zone");
	expect(run, moved[HIT] + moved[MISS] == counted, "hit and miss are not the pages of the zone");
	expect(run, moved[LOCAL] == (node == wish->local ? counted : 0), "local");
	expect(run, moved[OTHER] == (node == wish->local ? 0 : counted), "other");
	expect(run, moved[TURN] <= moved[HIT], "more interleave hits than hits");
	expect(run, wish->turns || !moved[TURN], "an interleave hit without an interleave policy");
	expect(run, !moved[FREE], "an allocation freed something");
	if (exact)
		expect(run, moved[MISS] == 0 && moved[FOREIGN] == 0, "a miss though there was room");
}

static void check_counters(struct run *run, const struct wish *wish, const struct counters *before,
			   const memfs_pfn *pfns, uint64_t got, bool exact)
{
	uint64_t pages[MOST_USED_ZONES] = { 0 }, miss = 0, foreign = 0, turn[MOST_NODES] = { 0 };
	struct counters moved;

	read_counters(run, &moved);
	subtract(run, &moved, before);
	for (uint64_t i = 0; i < got; i++)
		for (unsigned z = 0; z < run->nr_zones; z++)
			if ((int)run->zone[z] == mf_page_zone(run->pg, pfns[i].v))
				pages[z] += 1u << wish->request.order;
	for (unsigned z = 0; z < run->nr_zones; z++) {
		check_zone_counters(run, wish, z, moved.of[z], pages[z], exact);
		miss += moved.of[z][MISS];
		foreign += moved.of[z][FOREIGN];
		turn[run->zone[z] / MF_NR_ZONE_TYPES] += moved.of[z][TURN];
	}
	expect(run, miss == foreign, "the misses are not the foreign pages");
	for (int node = 0; exact && run->knobs.numa && run->knobs.numa_stat && node < MOST_NODES; node++)
		expect(run, turn[node] == wish->turn[node] << wish->request.order, "interleave hits");
}

/* --- the reference of placement --- */

static int local_node(const struct run *run, int cpu)
{
	if (cpu == MEMFS_CPU_AUTO)
		cpu = run->host_cpu;
	if (cpu < 0 || (unsigned)cpu >= run->topo->cpu_limit || run->topo->cpu_node[cpu] < 0)
		return mf_node_first(run->topo->memory);
	return run->topo->cpu_node[cpu];
}

/* The zone asked first for a block preferred on @node, -1: there is none. */
static int first_zone(const struct run *run, int node, mf_nodemask filter, int highest)
{
	const struct mf_zonelist *list = mf_page_zonelist(run->pg, node);

	for (unsigned i = 0; i < list->nr_zones; i++)
		if (list->zones[i] % MF_NR_ZONE_TYPES <= highest &&
		    mf_node_isset(filter, list->zones[i] / MF_NR_ZONE_TYPES))
			return list->zones[i];
	return -1;
}

static unsigned weight_of(const struct run *run, const struct mf_policy *policy, unsigned node)
{
	return policy->mode == MF_MPOL_INTERLEAVE ? 1 : run->weight[node];
}

static unsigned next_node(const struct mf_policy *policy, unsigned node)
{
	do
		node = (node + 1) % MOST_NODES;
	while (!mf_node_isset(policy->nodes, (int)node));
	return node;
}

static int step(const struct run *run, const struct mf_policy *policy, unsigned *prev, unsigned *owed)
{
	if (!*owed || !mf_node_isset(policy->nodes, (int)*prev)) {
		*prev = next_node(policy, *prev);
		*owed = weight_of(run, policy, *prev);
	}
	--*owed;
	return (int)*prev;
}

static int index_node(const struct run *run, const struct mf_policy *policy, uint64_t index)
{
	uint64_t sum = 0;
	unsigned node = (unsigned)mf_node_first(policy->nodes);

	MF_FOR_EACH_NODE(n, policy->nodes)
		sum += weight_of(run, policy, (unsigned)n);
	for (index %= sum; index >= weight_of(run, policy, node); node = next_node(policy, node))
		index -= weight_of(run, policy, node);
	return (int)node;
}

static mf_nodemask strict(const struct wish *wish, int node, mf_nodemask filter)
{
	return wish->request.gfp & MEMFS___GFP_THISNODE ? filter & mf_node_bit(node) : filter;
}

/* @blocks wanted on @node: which node gives them. */
static void place_on(struct run *run, struct wish *wish, int node, mf_nodemask first, mf_nodemask filter,
		     uint64_t blocks)
{
	int zone;

	filter = strict(wish, node, filter);
	first = strict(wish, node, first);
	wish->filter |= filter;
	wish->chosen[node] += blocks;
	zone = first_zone(run, node, first, wish->highest);
	if (zone < 0)
		zone = first_zone(run, node, filter, wish->highest);
	if (zone < 0) {
		wish->possible = false;
		return;
	}
	wish->gives[zone / MF_NR_ZONE_TYPES] += blocks;
	if (wish->turns && zone / MF_NR_ZONE_TYPES == node)
		wish->turn[node] += blocks;
}

static void place_turns(struct run *run, struct wish *wish)
{
	unsigned prev = wish->task->prev, owed = wish->task->owed;

	for (uint64_t i = 0; i < wish->n; i++) {
		int node = wish->moves ? step(run, &wish->policy, &prev, &owed)
				       : index_node(run, &wish->policy, wish->request.index + i);

		place_on(run, wish, node, wish->allowed, wish->allowed, 1);
	}
}

static void place_other(struct run *run, struct wish *wish)
{
	mf_nodemask nodes = wish->policy.nodes, first = wish->allowed, filter = wish->allowed;
	int node = wish->local;

	if (wish->request.node != MF_NODE_BY_POLICY)
		node = wish->request.node;
	else if (wish->policy.mode == MF_MPOL_PREFERRED)
		node = mf_node_first(nodes);
	else if (wish->policy.mode == MF_MPOL_BIND)
		first = filter = filter & nodes ? filter & nodes : nodes;
	else if (wish->policy.mode == MF_MPOL_PREFERRED_MANY)
		first = filter & nodes;
	place_on(run, wish, node, first, filter, wish->n);
}

/* The zone that a node asks first has room for @blocks beyond every reserve and anything a list may take. */
static bool has_room(const struct run *run, const struct wish *wish, int node, uint64_t blocks)
{
	int zone = first_zone(run, node, mf_node_bit(node), wish->highest);
	struct mf_zone_info info;
	uint64_t need;

	mf_page_zone_info(run->pg, (unsigned)zone, &info);
	need = 2 * info.marks.high + info.marks.lowmem_reserve[wish->highest] + info.free_highatomic +
	       (blocks << wish->request.order) + 64 * (uint64_t)info.marks.batch + 1024;
	if (info.free < need)
		return false;
	for (unsigned order = wish->request.order; order < MF_NR_ORDERS; order++)
		for (int type = 0; type < MF_PCP_TYPES; type++)
			if (info.nr_free[type][order])
				return true;
	return false;
}

static void foresee(struct run *run, struct wish *wish)
{
	const struct mf_page_request *request = &wish->request;

	wish->policy = (struct mf_policy){ .mode = MF_MPOL_DEFAULT };
	wish->allowed = run->knobs.numa ? wish->task->allowed & run->topo->memory : run->topo->memory;
	if (run->knobs.numa && request->vma)
		wish->policy = *request->vma;
	else if (run->knobs.numa && !request->irq)
		wish->policy = wish->task->policy;
	wish->highest = (int)mf_gfp_highest_zone(request->gfp);
	wish->local = local_node(run, request->cpu == MF_CPU_OF_TASK ? wish->task->cpu : request->cpu);
	wish->turns = request->node == MF_NODE_BY_POLICY && mf_policy_interleaves(&wish->policy);
	wish->moves = wish->turns && !request->vma;
	wish->possible = true;
	if (wish->turns)
		place_turns(run, wish);
	else
		place_other(run, wish);
	wish->room = true;
	MF_FOR_EACH_NODE(node, run->topo->memory)
		if (wish->gives[node] && !has_room(run, wish, node, wish->gives[node]))
			wish->room = false;
}

#endif
