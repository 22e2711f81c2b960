/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What model_vmalloc knows of one machine, and its reference: which pages and
 * addresses each range has, what they contain, what waits for a purge, and how
 * many pages each node owes a request.  For model_vmalloc.c alone.
 */
#ifndef MF_TESTS_VMALLOC_MODEL_H
#define MF_TESTS_VMALLOC_MODEL_H

#include "plat/plat_sim.h"
#include "vmalloc/vmalloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RANGES 160
#define MOST_HELD 1500
#define MOST_NODES 64
#define MOST_USED_ZONES 12
#define NR_TASKS 3

struct range {
	char *address;
	uint64_t pages, tag;
	memfs_pfn *pfn;	   /* in the order of its bytes */
	uint64_t mappings; /* 0: linear */
	bool vmap;
};

/* Freed, its addresses wait for a purge. */
struct waiting {
	char *address;
	uint64_t bytes, pages, mappings;
};

struct held {
	uint32_t pfn;
	unsigned order;
};

struct run {
	uint64_t seed, state, operation;
	unsigned failures;
	const char *machine;
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *pg;
	struct mf_vmalloc *vm;
	struct mf_stat_set *stat;
	struct mf_vmalloc_knobs usual, knobs;
	struct mf_vmalloc_info info;
	struct mf_weights weights;
	struct mf_placement place[NR_TASKS];
	unsigned zone[MOST_USED_ZONES], nr_zones;
	struct mf_zone_info before[MOST_USED_ZONES];
	uint8_t *owned;			 /* a byte a page */
	struct range range[MOST_RANGES]; /* by rising address */
	struct waiting *waiting;
	struct held held[MOST_HELD];
	size_t nr_ranges, nr_waiting, room_waiting, nr_held;
	uint64_t range_pages, vmap_pages, held_pages, waiting_pages, mappings, next_tag;
	uint64_t purges; /* seen so far */
	bool leaves;	 /* ranges to the engine's end */
};

/* One request and what the model says of it. */
struct wish {
	struct mf_vmalloc_request request;
	struct mf_placement *place;
	struct mf_policy policy, vma;
	struct mf_rotation rotation;
	mf_nodemask allowed, own;
	uint64_t n, gives[MOST_NODES];
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

/* --- contents --- */

static uint64_t word_of(const struct range *range, uint64_t page)
{
	return (range->tag << 20 ^ page) * 0x9e3779b97f4a7c15;
}

static uint64_t *first_word(const struct range *range, uint64_t page)
{
	return (uint64_t *)(range->address + page * MEMFS_PAGE_SIZE);
}

/* A page that the test writes and reads: all of a small range, of a large one some, its last among them. */
static uint64_t next_touched(const struct range *range, uint64_t page)
{
	uint64_t next = page + 1 + range->pages / 64;

	return page + 1 < range->pages && next >= range->pages ? range->pages - 1 : next;
}

static void fill(const struct range *range)
{
	for (uint64_t page = 0; page < range->pages; page = next_touched(range, page))
		*first_word(range, page) = word_of(range, page);
}

/* By the range's address and by the page's own: both are the same memory. */
static bool is_filled(const struct run *run, const struct range *range, uint64_t page)
{
	const uint64_t *own = mf_page_address(run->pg, range->pfn[page].v);

	return *first_word(range, page) == word_of(range, page) && *own == word_of(range, page);
}

static bool all_filled(const struct run *run, const struct range *range)
{
	for (uint64_t page = 0; page < range->pages; page = next_touched(range, page))
		if (!is_filled(run, range, page))
			return false;
	return true;
}

static bool all_clear(const struct range *range)
{
	for (uint64_t page = 0; page < range->pages; page = next_touched(range, page))
		if (*first_word(range, page))
			return false;
	return true;
}

static void own_page(struct run *run, uint32_t pfn)
{
	expect(run, mf_page_zone(run->pg, pfn) >= 0, "a page outside of every zone");
	if (mf_page_zone(run->pg, pfn) < 0)
		return;
	expect(run, !run->owned[pfn], "a page was handed out twice");
	run->owned[pfn] = 1;
}

/* --- ranges --- */

static bool is_mapped(const struct run *run, const char *address)
{
	return (uint64_t)((uintptr_t)address - run->info.start) < run->info.size;
}

static bool is_one_run(const struct run *run, const memfs_pfn *pfn, uint64_t i)
{
	return pfn[i].v == pfn[i - 1].v + 1 &&
	       mf_page_zone(run->pg, pfn[i].v) == mf_page_zone(run->pg, pfn[i - 1].v);
}

/* Runs and the guard. */
static uint64_t count_mappings(const struct run *run, const struct range *range)
{
	uint64_t mappings = 2;

	for (uint64_t i = 1; i < range->pages; i++)
		mappings += !is_one_run(run, range->pfn, i);
	return mappings;
}

/* Addresses with the guard. */
static uint64_t span_of(const struct range *range)
{
	return (range->pages + (range->mappings > 0)) * MEMFS_PAGE_SIZE;
}

static bool overlap(const char *a, uint64_t a_bytes, const char *b, uint64_t b_bytes)
{
	return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

static void check_addresses(struct run *run, const struct range *range, size_t at)
{
	const struct range *next = &run->range[at];

	if (at < run->nr_ranges)
		expect(run, !overlap(range->address, span_of(range), next->address, span_of(next)),
		       "a range lies in the next one");
	if (at)
		expect(run, !overlap(range->address, span_of(range), next[-1].address, span_of(&next[-1])),
		       "a range lies in the one before");
	for (size_t i = 0; i < run->nr_waiting; i++)
		expect(run,
		       !overlap(range->address, span_of(range), run->waiting[i].address,
				run->waiting[i].bytes),
		       "addresses are used again before the purge");
}

static void insert(struct run *run, const struct range *range)
{
	size_t at = run->nr_ranges;

	while (at && (uintptr_t)run->range[at - 1].address > (uintptr_t)range->address)
		at--;
	check_addresses(run, range, at);
	memmove(run->range + at + 1, run->range + at, (run->nr_ranges - at) * sizeof(*range));
	run->range[at] = *range;
	run->nr_ranges++;
	run->mappings += range->mappings;
	*(range->vmap ? &run->vmap_pages : &run->range_pages) += range->pages;
}

static void check_shape(struct run *run, const struct range *range)
{
	for (uint64_t i = 1; i < range->pages && !range->vmap; i++)
		expect(run, range->pfn[i].v > range->pfn[i - 1].v, "pages are not in the order of addresses");
	if (range->mappings)
		return;
	expect(run, range->address == mf_page_address(run->pg, range->pfn[0].v),
	       "a linear range is not where its page is");
	expect(run, count_mappings(run, range) == 2, "a linear range is no single run");
	expect(run, run->knobs.linear, "a linear range though there should be none");
}

static void forget(struct run *run, size_t at, bool waits)
{
	struct range range = run->range[at];

	run->mappings -= range.mappings;
	*(range.vmap ? &run->vmap_pages : &run->range_pages) -= range.pages;
	memmove(run->range + at, run->range + at + 1, (--run->nr_ranges - at) * sizeof(range));
	for (uint64_t i = 0; i < range.pages; i++)
		run->owned[range.pfn[i].v] = 0;
	free(range.pfn);
	if (!waits)
		return;
	if (run->nr_waiting == run->room_waiting) {
		run->room_waiting = run->room_waiting * 2 + 64;
		run->waiting = realloc(run->waiting, run->room_waiting * sizeof(*run->waiting));
		if (!run->waiting)
			abort();
	}
	run->waiting[run->nr_waiting++] = (struct waiting){ .address = range.address,
							    .bytes = span_of(&range),
							    .pages = range.vmap ? 0 : range.pages,
							    .mappings = range.mappings };
	run->waiting_pages += range.vmap ? 0 : range.pages;
	run->mappings += range.mappings;
}

/* All that waited is gone after a purge, whoever began it. */
static void see_purges(struct run *run)
{
	uint64_t purges = mf_stat_read(run->stat, MF_STAT_vmalloc_purge);

	if (purges == run->purges)
		return;
	run->purges = purges;
	for (size_t i = 0; i < run->nr_waiting; i++)
		run->mappings -= run->waiting[i].mappings;
	run->nr_waiting = 0;
	run->waiting_pages = 0;
}

/* --- the reference of placement --- */

/* The zone asked first for a page preferred on @node, -1: there is none. */
static int first_zone(const struct run *run, int node, mf_nodemask filter, int highest)
{
	const struct mf_zonelist *list = mf_page_zonelist(run->pg, node);

	for (unsigned i = 0; i < list->nr_zones; i++)
		if (list->zones[i] % MF_NR_ZONE_TYPES <= highest &&
		    mf_node_isset(filter, list->zones[i] / MF_NR_ZONE_TYPES))
			return list->zones[i];
	return -1;
}

static int highest_zone(const struct wish *wish)
{
	return (int)mf_gfp_highest_zone(wish->request.page.gfp);
}

/* @pages wanted on @node: which node gives them. */
static void place_on(const struct run *run, struct wish *wish, int node, mf_nodemask first,
		     mf_nodemask filter, uint64_t pages)
{
	mf_nodemask own = wish->request.page.gfp & MEMFS___GFP_THISNODE ? mf_node_bit(node) : ~(mf_nodemask)0;
	int zone = first_zone(run, node, first & own, highest_zone(wish));

	wish->own |= filter & own;
	if (zone < 0)
		zone = first_zone(run, node, filter & own, highest_zone(wish));
	if (zone < 0)
		wish->possible = false;
	else
		wish->gives[zone / MF_NR_ZONE_TYPES] += pages;
}

static bool moves(const struct wish *wish)
{
	return wish->request.page.node == MF_NODE_BY_POLICY && !wish->request.page.vma &&
	       mf_policy_interleaves(&wish->policy);
}

static void place_turns(const struct run *run, struct wish *wish, uint64_t n)
{
	struct mf_rotation rotation = wish->rotation;

	for (uint64_t i = 0; i < n; i++) {
		int node = moves(wish) ? mf_policy_step(&wish->policy, &run->weights, &rotation)
				       : mf_policy_index_node(&wish->policy, &run->weights, i);

		place_on(run, wish, node, wish->allowed, wish->allowed, 1);
	}
}

static void place_whole(const struct run *run, struct wish *wish, uint64_t n)
{
	mf_nodemask nodes = wish->policy.nodes, first = wish->allowed, filter = wish->allowed;
	int node = run->topo->cpu_node[wish->place->cpu];

	if (wish->request.page.node != MF_NODE_BY_POLICY)
		node = wish->request.page.node;
	else if (wish->policy.mode == MF_MPOL_PREFERRED)
		node = mf_node_first(nodes);
	else if (wish->policy.mode == MF_MPOL_BIND)
		first = filter = filter & nodes ? filter & nodes : nodes;
	else if (wish->policy.mode == MF_MPOL_PREFERRED_MANY)
		first = filter & nodes;
	place_on(run, wish, node, first, filter, n);
}

/* Beyond every reserve and anything a list may take. */
static bool has_room(const struct run *run, const struct wish *wish, int node)
{
	int zone = first_zone(run, node, mf_node_bit(node), highest_zone(wish));
	struct mf_pcp_info pcp;
	struct mf_zone_info info;

	mf_page_zone_info(run->pg, (unsigned)zone, &info);
	mf_page_pcp_info(run->pg, (unsigned)zone, 0, &pcp);
	return info.free >= 2 * info.marks.high + info.marks.lowmem_reserve[highest_zone(wish)] +
				    info.free_highatomic + wish->gives[node] + 64 * (uint64_t)pcp.batch +
				    1024;
}

static void foresee(const struct run *run, struct wish *wish, uint64_t n)
{
	memset(wish->gives, 0, sizeof(wish->gives));
	wish->n = n;
	wish->own = 0;
	wish->possible = true;
	if (wish->request.page.node == MF_NODE_BY_POLICY && mf_policy_interleaves(&wish->policy))
		place_turns(run, wish, n);
	else
		place_whole(run, wish, n);
	wish->room = wish->possible;
	MF_FOR_EACH_NODE(node, run->topo->memory)
		if (wish->gives[node] && !has_room(run, wish, node))
			wish->room = false;
}

#endif
