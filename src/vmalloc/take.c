/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pages of a range.
 *
 * First the plan: how many pages belong to which node.  Then, share by share
 * and node by node (the share's own, then by distance): blocks of that node
 * alone, from the largest that exists downwards, then small pages of it.  What
 * no node gave that way is asked for once more with all that the flags allow:
 * draining, shrinking, reserves, waiting (behaviour 3.5).
 *
 * Invariants: a large block is taken of the node asked, or not at all; a failed
 * order is not tried again for the share; no attempt waits or wakes anybody; a
 * range that cannot be completed leaves nothing behind, and its rotation where
 * it was.
 *
 * Locks: none here.
 */
#include "vmalloc/vmalloc_internal.h"

#include <errno.h>
#include <stdlib.h>

/* Small pages asked for at a time; the baseline asks for at most 100 (behaviour 3.2). */
#define BULK_PAGES 512u
#define BASELINE_PAGES 100u

/* Blocks up to this order may be split whatever is left (behaviour 3.5, 4). */
#define UNBOUND_ORDER 5

/* The last 1/64 of a node's pageblocks, but at least one, is not split for a range. */
#define KEPT_SHARE 64

/* Below it a block call brings no more than a page of the bulk path. */
#define LEAST_ORDER 3

void mf_take_undo(struct mf_vm_take *t)
{
	mf_page_free_runs(t->vm->page, t->place, t->runs.nr, t->runs.run);
	mf_runs_free(&t->runs);
}

/* --- large blocks --- */

static int floor_log2(uint64_t n)
{
	return 63 - __builtin_clzll(n);
}

bool mf_take_within_bound(struct mf_vmalloc *vm, const struct mf_page_free_blocks *free, unsigned order)
{
	uint64_t kept = free->all / KEPT_SHARE;

	if (order <= UNBOUND_ORDER || MF_VM_KNOB(vm, large_order) == MF_VMALLOC_MAX)
		return true;
	for (unsigned o = order; o < MF_HUGE_ORDER; o++)
		if (free->has[o])
			return true; /* no pageblock is broken for it */
	return free->pageblocks > (kept ? kept : 1) + (order > MF_HUGE_ORDER);
}

/* The order to try for @want pages, not above @limit; -1: none is worth it. */
static int pick_order(struct mf_vm_take *t, int node, uint64_t want, int limit)
{
	struct mf_page_free_blocks free;
	int order = floor_log2(want);

	if (order > limit)
		order = limit;
	if (order < LEAST_ORDER)
		return -1;
	mf_page_free_blocks(t->vm->page, node, t->page.gfp, &free);
	if (order > free.largest)
		order = free.largest;
	while (order >= LEAST_ORDER && !mf_take_within_bound(t->vm, &free, (unsigned)order)) {
		mf_vm_count(t->vm, MF_STAT_vmalloc_large_held_back, 1);
		order = order > MF_HUGE_ORDER ? MF_HUGE_ORDER : UNBOUND_ORDER;
	}
	return order < LEAST_ORDER ? -1 : order;
}

/* To a node alone; where it stands in for the one wanted, that is counted, and is no turn of an interleave policy. */
static struct mf_page_request request_on(const struct mf_vm_take *t, int node)
{
	struct mf_page_request request = t->page;

	request.node = node;
	request.vma = NULL;
	request.stands_in = node != t->wanted;
	request.wanted = t->wanted;
	request.interleaved = t->plan.interleaved && node == t->wanted;
	return request;
}

/* One attempt; counts it. */
static int take_block(struct mf_vm_take *t, int node, int order, uint32_t pages, memfs_pfn *pfn)
{
	struct mf_page_request request = request_on(t, node);
	int error;

	mf_vm_count(t->vm, MF_STAT_vmalloc_large_attempts, 1);
	mf_vm_count(t->vm, MF_STAT_vmalloc_buddy_calls, 1);
	error = mf_fault_hit(t->vm->fault, MF_FAULT_vmalloc_large)
			? -ENOMEM
			: mf_page_alloc_run(t->vm->page, t->place, &request, pages, pfn);
	if (error && order > 0)
		mf_vm_count(t->vm, (enum mf_stat_id)(MF_STAT_vmalloc_large_fail_1 + order - 1), 1);
	if (error)
		return error;
	mf_vm_count(t->vm, MF_STAT_vmalloc_large_blocks, 1);
	mf_vm_count(t->vm, MF_STAT_vmalloc_pages_large, pages);
	return 0;
}

static int keep(struct mf_vm_take *t, memfs_pfn pfn, uint32_t pages)
{
	struct mf_run run = { pfn.v, pages };
	int error = mf_runs_add(t->vm, &t->runs, pfn.v, pages);

	if (error)
		mf_page_free_runs(t->vm->page, t->place, 1, &run);
	return error;
}

static int take_large(struct mf_vm_take *t, int node, uint64_t *want)
{
	int limit = MEMFS_MAX_PAGE_ORDER, order, error = 0;
	memfs_pfn pfn;

	while (!error && *want && (order = pick_order(t, node, *want, limit)) >= 0) {
		uint32_t pages = UINT32_C(1) << order;

		if (take_block(t, node, order, pages, &pfn)) {
			limit = order - 1;
			continue;
		}
		error = keep(t, pfn, pages);
		if (!error)
			*want -= pages;
	}
	return error;
}

/* --- small pages --- */

static int compare_pfns(const void *a, const void *b)
{
	uint32_t x = ((const memfs_pfn *)a)->v, y = ((const memfs_pfn *)b)->v;

	return (x > y) - (x < y);
}

/* n pages into the list; what does not fit into it goes back. */
static int keep_pages(struct mf_vm_take *t, memfs_pfn *pfns, size_t n)
{
	int error = 0;
	size_t i = 0;

	qsort(pfns, n, sizeof(*pfns), compare_pfns);
	while (i < n && !error) {
		error = mf_runs_add(t->vm, &t->runs, pfns[i].v, 1);
		i += !error;
	}
	if (error)
		mf_page_free_bulk(t->vm->page, t->place, n - i, pfns + i);
	return error;
}

typedef size_t take_small_fn(struct mf_vm_take *t, const struct mf_page_request *request, size_t n,
			     memfs_pfn *pfns);

/* No more than the node has above its low mark. */
static size_t take_some(struct mf_vm_take *t, const struct mf_page_request *request, size_t n,
			memfs_pfn *pfns)
{
	return mf_page_alloc_some(t->vm->page, t->place, request, n, pfns);
}

/* Wherever the policy allows. */
static size_t take_any(struct mf_vm_take *t, const struct mf_page_request *request, size_t n, memfs_pfn *pfns)
{
	return mf_page_alloc_bulk(t->vm->page, t->place, request, n, pfns);
}

/* Chunk by chunk; the first short answer ends it. */
static int take_bulk(struct mf_vm_take *t, take_small_fn *take, const struct mf_page_request *request,
		     uint64_t *want)
{
	bool baseline = MF_VM_KNOB(t->vm, large_order) == MF_VMALLOC_OFF;
	uint32_t most = baseline ? BASELINE_PAGES : BULK_PAGES;
	memfs_pfn pfns[BULK_PAGES];

	while (*want) {
		size_t n = *want < most ? *want : most;
		size_t got = take(t, request, n, pfns);
		int error = keep_pages(t, pfns, got);

		mf_vm_count(t->vm, MF_STAT_vmalloc_buddy_calls, 1);
		mf_vm_count(t->vm, MF_STAT_vmalloc_pages_bulk, got);
		if (error)
			return error;
		*want -= got;
		if (got < n)
			break;
	}
	return 0;
}

static bool cancelled(const struct mf_vm_take *t)
{
	return t->page.cancel && atomic_load(&t->page.cancel->cancelled);
}

/* One page at a time, as deep as the flags go. */
static int take_singly(struct mf_vm_take *t, const struct mf_page_request *request, uint64_t *want)
{
	memfs_pfn pfn;
	int error = 0;

	while (!error && *want) {
		if (cancelled(t))
			return -EINTR;
		mf_vm_count(t->vm, MF_STAT_vmalloc_buddy_calls, 1);
		error = mf_page_alloc(t->vm->page, t->place, request, &pfn);
		if (!error)
			error = keep(t, pfn, 1);
		if (!error) {
			mf_vm_count(t->vm, MF_STAT_vmalloc_pages_single, 1);
			--*want;
		}
	}
	return error;
}

/* --- shares --- */

/* A small range is mapped from small pages: a large one would cost more than it saves (behaviour 3.5, 5). */
static bool wants_large(const struct mf_vm_take *t)
{
	return MF_VM_KNOB(t->vm, large_order) != MF_VMALLOC_OFF && t->pages >= MF_VM_KNOB(t->vm, small_pages);
}

static int take_from_node(struct mf_vm_take *t, int node, uint64_t *want)
{
	struct mf_page_request request = request_on(t, node);
	int error = wants_large(t) ? take_large(t, node, want) : 0;

	return error || !*want ? error : take_bulk(t, take_some, &request, want);
}

/* By the policy itself, or on the share's node first if an interleave policy made it. */
static int take_deep(struct mf_vm_take *t, const struct mf_page_share *share, uint64_t *want)
{
	struct mf_page_request request = t->plan.interleaved ? request_on(t, share->node) : t->page;
	int error;

	error = take_bulk(t, take_any, &request, want);
	return error || !*want ? error : take_singly(t, &request, want);
}

static int take_share(struct mf_vm_take *t, const struct mf_page_share *share)
{
	uint8_t nodes[MEMFS_MAX_NODES];
	unsigned nr = mf_page_plan_nodes(t->vm->page, &t->plan, share->node, nodes);
	uint64_t want = share->pages;
	int error = 0;

	t->wanted = share->node;
	for (unsigned i = 0; i < nr && want && !error; i++)
		error = take_from_node(t, nodes[i], &want);
	if (!error && cancelled(t))
		error = -EINTR;
	if (!error && want)
		error = take_deep(t, share, &want);
	return error;
}

int mf_take_pages(struct mf_vm_take *t)
{
	int error = 0;

	for (unsigned i = 0; i < t->plan.nr_shares && !error; i++)
		error = take_share(t, &t->plan.share[i]);
	if (error)
		mf_take_undo(t);
	else
		mf_runs_sort(t->vm, &t->runs);
	return error;
}

/* --- special shapes --- */

int mf_take_contiguous(struct mf_vm_take *t)
{
	unsigned order = mf_page_order(t->pages);
	int node = t->plan.share[0].node, error;
	struct mf_page_free_blocks free;
	memfs_pfn pfn;

	if (t->plan.nr_shares != 1 || order > MEMFS_MAX_PAGE_ORDER || !mf_node_isset(t->plan.allowed, node))
		return -ENOMEM;
	t->wanted = node;
	if (order > LEAST_ORDER) {
		mf_page_free_blocks(t->vm->page, node, t->page.gfp, &free);
		if (free.largest < (int)order)
			return -ENOMEM;
		if (!mf_take_within_bound(t->vm, &free, order)) {
			mf_vm_count(t->vm, MF_STAT_vmalloc_large_held_back, 1);
			return -ENOMEM;
		}
	}
	error = take_block(t, node, (int)order, (uint32_t)t->pages, &pfn);
	return error ? error : keep(t, pfn, (uint32_t)t->pages);
}

/* As many 2 MiB blocks as the share takes, from its nodes in order; larger ones count as several. */
static int take_huge_share(struct mf_vm_take *t, const struct mf_page_share *share)
{
	uint64_t want = share->pages >> MF_HUGE_ORDER;
	uint8_t nodes[MEMFS_MAX_NODES];
	unsigned nr = mf_page_plan_nodes(t->vm->page, &t->plan, share->node, nodes), i = 0;
	memfs_pfn pfn;

	t->wanted = share->node;
	while (want && i < nr) {
		struct mf_page_free_blocks free;
		int error;

		mf_page_free_blocks(t->vm->page, nodes[i], t->page.gfp, &free);
		if (!mf_take_within_bound(t->vm, &free, MF_HUGE_ORDER) ||
		    take_block(t, nodes[i], MF_HUGE_ORDER, MF_PAGEBLOCK_PAGES, &pfn)) {
			i++;
			continue;
		}
		error = keep(t, pfn, MF_PAGEBLOCK_PAGES);
		if (error)
			return error;
		want--;
	}
	return want ? -ENOMEM : 0;
}

int mf_take_huge(struct mf_vm_take *t)
{
	int error = 0;

	for (unsigned i = 0; i < t->plan.nr_shares && !error; i++)
		error = t->plan.share[i].pages % MF_PAGEBLOCK_PAGES ? -ENOMEM
								    : take_huge_share(t, &t->plan.share[i]);
	if (error)
		mf_take_undo(t);
	else
		mf_runs_sort(t->vm, &t->runs);
	return error;
}
