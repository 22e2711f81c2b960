/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Many single pages in one call: the shares of an interleave policy in one
 * pass, at most one node call a node (behaviour 1.6), each node's share from
 * its lists and zones with as few lock acquisitions as there are zones.
 *
 * What a node lacks comes along its zonelist, as it would for single pages; a
 * short result means that no node in question had memory.  The rotation moves
 * by what was handed out (behaviour 1.7).
 */
#include "page/page_internal.h"

#include <string.h>

_Static_assert(sizeof(memfs_pfn) == sizeof(uint32_t), "arrays of pfns are arrays of words");

static uint32_t *words_of(memfs_pfn *pfns)
{
	return &pfns->v;
}

static size_t take_from_zone(struct mf_page *pg, struct mf_zone *zone, const struct mf_alloc *a, size_t n,
			     uint32_t *pfns)
{
	size_t got = mf_pcp_take_many(pg, zone, a, n, pfns);

	if (got < n)
		got += mf_zone_take_many(pg, zone, 0, a->type, a->no_sleep, a->nofragment, n - got,
					 pfns + got);
	if (got)
		mf_alloc_account(pg, a, zone, got);
	return got;
}

/* Down to the mark in each zone of the list; pages on per-CPU lists do not count as free, so look again. */
static size_t walk(struct mf_page *pg, const struct mf_alloc *a, enum mf_watermark mark, size_t n,
		   uint32_t *pfns)
{
	const struct mf_zonelist *list = &pg->zonelist[a->node];
	size_t got = 0;

	for (unsigned i = 0; i < list->nr_zones && got < n; i++) {
		struct mf_zone *zone = pg->zone[list->zones[i]];
		size_t more = 1;

		if (zone->type > a->highest || !mf_node_isset(a->filter, zone->node))
			continue;
		for (; got < n && more; got += more) {
			uint64_t most = mf_zone_available(
				zone, a, __atomic_load_n(&zone->wmark[mark], __ATOMIC_RELAXED));

			more = most ? take_from_zone(pg, zone, a, n - got < most ? n - got : most, pfns + got)
				    : 0;
		}
	}
	return got;
}

static size_t walk_filters(struct mf_page *pg, struct mf_alloc *a, enum mf_watermark mark, size_t n,
			   uint32_t *pfns)
{
	mf_nodemask filter = a->filter;
	size_t got = 0;

	if (a->first_filter != filter && a->first_filter) {
		struct mf_alloc deep = *a;

		/* As deep as the nodes preferred go before any other is asked. */
		a->filter = deep.filter = a->first_filter;
		mf_alloc_entitle(&deep);
		got = walk(pg, a, mark, n, pfns);
		if (got < n)
			got += walk(pg, &deep, MF_WMARK_MIN, n - got, pfns + got);
		a->filter = filter;
	}
	return got < n ? got + walk(pg, a, mark, n - got, pfns + got) : got;
}

static size_t slow_path(struct mf_page *pg, struct mf_alloc *a, struct mf_cancel *cancel, size_t n,
			uint32_t *pfns)
{
	bool nofail = (a->gfp & MEMFS___GFP_NOFAIL) && a->may_wait;
	size_t got;

	mf_alloc_entitle(a);
	got = walk_filters(pg, a, MF_WMARK_MIN, n, pfns);
	if (!a->may_wait || (a->gfp & MEMFS___GFP_NORETRY && !nofail))
		return got;
	while (got < n) {
		if (mf_pressure_relieve(pg, a))
			got += walk_filters(pg, a, MF_WMARK_MIN, n - got, pfns + got);
		if (got < n && (!nofail || mf_pressure_wait(pg, cancel) != 0))
			break;
	}
	return got;
}

static void clear_pages(struct mf_page *pg, const struct mf_alloc *a, size_t n, const uint32_t *pfns)
{
	bool clear = a->gfp & MEMFS___GFP_ZERO || __atomic_load_n(&pg->knobs.init_on_alloc, __ATOMIC_RELAXED);

	for (size_t i = 0; clear && i < n; i++)
		mf_alloc_finish(pg, a, pfns[i]);
}

/* One node's share. */
static size_t node_call(struct mf_page *pg, struct mf_alloc *a, struct mf_cancel *cancel, size_t n,
			uint32_t *pfns)
{
	size_t got;

	mf_stat_add(&pg->stat, MF_STAT_bulk_node_calls, 1);
	if (mf_fault_hit(pg->fault, MF_FAULT_bulk_node))
		return 0;
	got = walk_filters(pg, a, MF_WMARK_LOW, n, pfns);
	if (got < n) {
		struct mf_alloc entitled = *a;

		got += slow_path(pg, &entitled, cancel, n - got, pfns + got);
	}
	clear_pages(pg, a, got, pfns);
	return got;
}

/* A share for one node under an interleave policy; n may be 0 (no call then). */
static size_t share_call(struct mf_page *pg, struct mf_alloc *a, struct mf_cancel *cancel, int node,
			 mf_nodemask allowed, size_t n, uint32_t *pfns)
{
	if (n == 0)
		return 0;
	mf_alloc_place_on(node, allowed, a);
	a->interleaved = true;
	return node_call(pg, a, cancel, n, pfns);
}

static size_t alloc_shares(struct mf_page *pg, struct mf_alloc *a, struct mf_cancel *cancel,
			   mf_nodemask allowed, const struct mf_policy_shares *shares, uint32_t *pfns)
{
	size_t got = 0;

	for (unsigned i = 0; i < shares->nr; i++) {
		size_t more =
			share_call(pg, a, cancel, shares->node[i], allowed, shares->share[i], pfns + got);

		got += more;
		if (more < shares->share[i])
			break;
	}
	return got;
}

static size_t alloc_split(struct mf_page *pg, struct mf_alloc *a, struct mf_cancel *cancel,
			  mf_nodemask allowed, const struct mf_policy_split *split, uint32_t *pfns)
{
	size_t got = 0;

	if (split->carry_node >= 0)
		got = share_call(pg, a, cancel, split->carry_node, allowed, split->carry, pfns);
	if (split->carry_node >= 0 && got < split->carry)
		return got;
	return got + alloc_shares(pg, a, cancel, allowed, &split->rest, pfns + got);
}

static size_t alloc_rotating(struct mf_page *pg, struct mf_placement *place,
			     const struct mf_page_request *request, const struct mf_policy *policy,
			     mf_nodemask allowed, struct mf_alloc *a, size_t n, uint32_t *pfns)
{
	uint32_t before = mf_rotation_load(place);
	struct mf_rotation rotation = mf_rotation_unpack(before);
	struct mf_weights weights;
	size_t got;

	mf_page_get_weights(pg, &weights);
	if (__atomic_load_n(&pg->knobs.bulk_split, __ATOMIC_RELAXED)) {
		struct mf_policy_split split;

		mf_policy_bulk_split(policy, &weights, rotation, n, &split);
		got = alloc_split(pg, a, request->cancel, allowed, &split, pfns);
	} else {
		struct mf_policy_shares shares;

		mf_policy_bulk(policy, &weights, rotation, n, &shares);
		got = alloc_shares(pg, a, request->cancel, allowed, &shares, pfns);
	}
	if (got)
		mf_alloc_move_rotation(place, policy, &weights, before, got);
	return got;
}

/* Blocks of a range handled at a time: their nodes fit on the stack. */
#define RANGE_STEP 1024

/*
 * VMA rule: each page's node follows from its index.  The pages of a step are
 * taken with one call a node and dealt out to their indexes.
 */
static size_t alloc_range_step(struct mf_page *pg, struct mf_alloc *a, const struct mf_page_request *request,
			       mf_nodemask allowed, const struct mf_weights *weights, uint64_t index,
			       size_t n, uint32_t *pfns)
{
	uint8_t node_of[RANGE_STEP];
	uint32_t taken[RANGE_STEP], page_of[RANGE_STEP];
	bool filled[RANGE_STEP] = { false };
	size_t got = 0, kept = 0;
	mf_nodemask nodes = 0;

	for (size_t i = 0; i < n; i++) {
		node_of[i] = (uint8_t)mf_policy_index_node(request->vma, weights, index + i);
		nodes |= mf_node_bit(node_of[i]);
	}
	MF_FOR_EACH_NODE(node, nodes) {
		size_t want = 0, more, dealt = 0;

		for (size_t i = 0; i < n; i++)
			want += node_of[i] == node;
		more = share_call(pg, a, request->cancel, node, allowed, want, taken);
		for (size_t i = 0; i < n && dealt < more; i++) {
			if (node_of[i] != node)
				continue;
			page_of[i] = taken[dealt++];
			filled[i] = true;
		}
		got += more;
		if (more < want)
			break;
	}
	/* If it is short, what there is moves together: nothing is written behind it. */
	for (size_t i = 0; i < n; i++)
		if (filled[i])
			pfns[kept++] = page_of[i];
	return got;
}

static size_t alloc_range(struct mf_page *pg, struct mf_alloc *a, const struct mf_page_request *request,
			  mf_nodemask allowed, size_t n, uint32_t *pfns)
{
	struct mf_weights weights;
	size_t got = 0;

	mf_page_get_weights(pg, &weights);
	while (got < n) {
		size_t step = n - got < RANGE_STEP ? n - got : RANGE_STEP;
		size_t more = alloc_range_step(pg, a, request, allowed, &weights, request->index + got, step,
					       pfns + got);

		got += more;
		if (more < step)
			break;
	}
	return got;
}

static size_t alloc_by_request(struct mf_page *pg, struct mf_placement *place,
			       const struct mf_page_request *request, size_t n, uint32_t *pfns)
{
	struct mf_policy policy;
	mf_nodemask allowed;
	struct mf_alloc a;

	mf_alloc_prepare(pg, place, request, &a);
	mf_alloc_policy(pg, place, request, &policy, &allowed);
	if (request->node != MF_NODE_BY_POLICY) {
		mf_alloc_place_on(request->node, allowed, &a);
		a.interleaved = request->interleaved;
		return node_call(pg, &a, request->cancel, n, pfns);
	}
	if (!mf_policy_interleaves(&policy)) {
		mf_alloc_place(&policy, allowed, &a);
		return node_call(pg, &a, request->cancel, n, pfns);
	}
	if (request->vma && policy.mode == request->vma->mode)
		return alloc_range(pg, &a, request, allowed, n, pfns);
	return alloc_rotating(pg, place, request, &policy, allowed, &a, n, pfns);
}

size_t mf_page_alloc_bulk(struct mf_page *pg, struct mf_placement *place,
			  const struct mf_page_request *request, size_t n, memfs_pfn *out)
{
	size_t got;

	if (n == 0 || request->order != 0)
		return 0;
	if (request->node != MF_NODE_BY_POLICY && !mf_node_isset(pg->topo->memory, request->node))
		return 0;
	got = alloc_by_request(pg, place, request, n, words_of(out));
	mf_stat_add(&pg->stat, MF_STAT_bulk_requests, 1);
	mf_stat_add(&pg->stat, MF_STAT_bulk_pages, got);
	if (got < n)
		mf_stat_add(&pg->stat, MF_STAT_bulk_short, 1);
	return got;
}

size_t mf_page_alloc_some(struct mf_page *pg, struct mf_placement *place,
			  const struct mf_page_request *request, size_t n, memfs_pfn *out)
{
	struct mf_alloc a;
	size_t got;

	if (n == 0 || mf_alloc_place_try(pg, place, request, 0, &a))
		return 0;
	mf_stat_add(&pg->stat, MF_STAT_bulk_node_calls, 1);
	if (mf_fault_hit(pg->fault, MF_FAULT_bulk_node))
		return 0;
	got = walk(pg, &a, MF_WMARK_LOW, n, words_of(out));
	clear_pages(pg, &a, got, words_of(out));
	return got;
}
