/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Plans: how many pages of a range belong to which node, before any is taken.
 *
 * A range is filled in blocks of many pages, but policies count pages
 * (behaviour 3.5): the shares are what page by page would give, in closed form,
 * and the blocks are cut inside each share.  The rotation moves once, when all
 * pages were handed out.
 *
 * Invariants: the shares add up to n, none is 0; nothing here takes a page or
 * moves a rotation but mf_page_plan_commit().
 *
 * Locks: none; the task's placement and the weights are copied.
 */
#include "page/page_internal.h"

#include <errno.h>

static void add_share(struct mf_page_plan *plan, int node, uint64_t pages)
{
	if (!pages)
		return;
	plan->share[plan->nr_shares++] = (struct mf_page_share){ .node = (uint8_t)node, .pages = pages };
}

static uint64_t weight_of(const struct mf_page_plan *plan, int node)
{
	return mf_policy_weight(&plan->policy, &plan->weights, node);
}

/* The task's rotation goes on for n pages. */
static void share_by_rotation(const struct mf_placement *place, uint64_t n, struct mf_page_plan *plan)
{
	struct mf_policy_shares shares;

	plan->before = mf_rotation_load(place);
	plan->rotates = true;
	mf_policy_bulk(&plan->policy, &plan->weights, mf_rotation_unpack(plan->before), n, &shares);
	for (unsigned i = 0; i < shares.nr; i++)
		add_share(plan, shares.node[i], shares.share[i]);
}

/* mf_policy_index_node() for the indexes 0 to n - 1: whole cycles, then the rest, by rising node. */
static void share_by_index(uint64_t n, struct mf_page_plan *plan)
{
	uint64_t cycle = 0, rounds, rest;

	MF_FOR_EACH_NODE(node, plan->policy.nodes)
		cycle += weight_of(plan, node);
	if (!cycle)
		return;
	rounds = n / cycle;
	rest = n % cycle;
	MF_FOR_EACH_NODE(node, plan->policy.nodes) {
		uint64_t weight = weight_of(plan, node);
		uint64_t part = rest < weight ? rest : weight;

		rest -= part;
		add_share(plan, node, rounds * weight + part);
	}
}

/* Where a block goes first while nothing is short: also past nodes with no zone for it. */
static int first_node(const struct mf_page *pg, const struct mf_alloc *a)
{
	const struct mf_zonelist *list = &pg->zonelist[a->node];

	for (unsigned i = 0; i < list->nr_zones; i++) {
		const struct mf_zone *zone = pg->zone[list->zones[i]];

		if (zone->type <= a->highest && mf_node_isset(a->first_filter, zone->node))
			return zone->node;
	}
	return a->node;
}

static void share_whole(const struct mf_page *pg, const struct mf_alloc *a, uint64_t n,
			struct mf_page_plan *plan)
{
	plan->allowed = a->filter;
	plan->first = a->first_filter;
	add_share(plan, first_node(pg, a), n);
}

/* Each share has a node of its own; together they may use no other. */
static void only_own_nodes(struct mf_page_plan *plan)
{
	mf_nodemask own = 0;

	for (unsigned i = 0; i < plan->nr_shares; i++)
		own |= mf_node_bit(plan->share[i].node);
	plan->allowed &= own;
	plan->first &= own;
}

int mf_page_plan(struct mf_page *pg, const struct mf_placement *place, const struct mf_page_request *request,
		 uint64_t n, struct mf_page_plan *plan)
{
	bool by_policy = request->node == MF_NODE_BY_POLICY;
	struct mf_alloc a;
	int error = mf_alloc_check(pg, request);

	if (error)
		return error;
	mf_alloc_prepare(pg, place, request, &a);
	mf_alloc_policy(pg, place, request, &plan->policy, &plan->allowed);
	plan->first = plan->allowed;
	plan->interleaved = by_policy ? mf_policy_interleaves(&plan->policy) : request->interleaved;
	plan->rotates = false;
	plan->only_own = request->gfp & MEMFS___GFP_THISNODE;
	plan->nr_shares = 0;
	if (!by_policy) {
		add_share(plan, request->node, n);
	} else if (plan->interleaved) {
		mf_page_get_weights(pg, &plan->weights);
		if (request->vma)
			share_by_index(n, plan);
		else
			share_by_rotation(place, n, plan);
	} else {
		mf_alloc_place(&plan->policy, plan->allowed, &a);
		share_whole(pg, &a, n, plan);
	}
	if (plan->only_own)
		only_own_nodes(plan);
	return 0;
}

void mf_page_plan_commit(struct mf_placement *place, const struct mf_page_plan *plan, uint64_t n)
{
	if (plan->rotates && n)
		mf_alloc_move_rotation(place, &plan->policy, &plan->weights, plan->before, n);
}

/* Those of @mask that are not in the list yet. */
static unsigned add_by_zonelist(const struct mf_zonelist *list, mf_nodemask mask, uint8_t *nodes, unsigned nr)
{
	for (unsigned i = 0; i < list->nr_nodes; i++)
		if (mf_node_isset(mask, list->nodes[i]))
			nodes[nr++] = list->nodes[i];
	return nr;
}

unsigned mf_page_plan_nodes(const struct mf_page *pg, const struct mf_page_plan *plan, int node,
			    uint8_t nodes[MEMFS_MAX_NODES])
{
	const struct mf_zonelist *list = &pg->zonelist[node];
	mf_nodemask own = mf_node_bit(node), others = plan->only_own ? 0 : plan->allowed & ~own;
	unsigned nr = add_by_zonelist(list, plan->allowed & own, nodes, 0);

	nr = add_by_zonelist(list, others & plan->first, nodes, nr);
	return add_by_zonelist(list, others & ~plan->first, nodes, nr);
}
