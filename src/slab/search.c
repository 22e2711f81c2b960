/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Looking for a partial slab on other nodes, each node's list at most once
 * (behaviour 4.5).
 *
 * A zonelist has an entry a zone, so a node with three zones is there three
 * times, and the node that was asked just before is there, too.  The seed
 * remembers the last node that had nothing; a mask of all visited remembers
 * every one, in whatever order they come.
 *
 * Pure but for the probe: no lock, no memory.
 */
#include "slab/slab_internal.h"

struct mf_search_result mf_slab_search(const uint8_t *nodes, unsigned n, int tried, enum mf_slab_skip skip,
				       mf_search_probe_fn *probe, void *arg)
{
	struct mf_search_result result = { 0, 0, false };
	mf_nodemask seen = tried >= 0 ? mf_node_bit(tried) : 0;

	for (unsigned i = 0; i < n && !result.hit; i++) {
		if (skip != MF_SLAB_SKIP_NONE && mf_node_isset(seen, nodes[i])) {
			result.skipped++;
			continue;
		}
		result.probes++;
		result.hit = probe(arg, nodes[i]);
		seen = (skip == MF_SLAB_SKIP_LAST ? 0 : seen) | mf_node_bit(nodes[i]);
	}
	return result;
}

/* A local policy with every node allowed needs no plan; -1: any other. */
static int local_node(struct mf_slabs *slabs, const struct mf_placement *place)
{
	int cpu = -1;

	if (__atomic_load_n(&place->fast, __ATOMIC_RELAXED) & (MF_FAST_LOCAL | MF_FAST_PINNED))
		cpu = mf_page_cpu(slabs->page, place);
	return cpu < 0 ? -1 : slabs->topo->cpu_node[cpu];
}

unsigned mf_slab_search_order(struct mf_slabs *slabs, const struct mf_placement *place, memfs_gfp gfp,
			      uint8_t *nodes, unsigned max)
{
	struct mf_page_request request = { .gfp = gfp, .node = MF_NODE_BY_POLICY, .cpu = MF_CPU_OF_TASK };
	enum mf_zone_type highest = mf_gfp_highest_zone(gfp);
	const struct mf_zonelist *list;
	struct mf_page_plan plan;
	mf_nodemask allowed = slabs->topo->memory;
	int first = local_node(slabs, place);
	unsigned nr = 0;

	if (first < 0) {
		if (mf_page_plan(slabs->page, place, &request, 1, &plan) || !plan.nr_shares)
			return 0;
		first = plan.share[0].node;
		allowed = plan.allowed;
	}
	list = mf_page_zonelist(slabs->page, first);
	for (unsigned i = 0; i < list->nr_zones && nr < max; i++) {
		int node = list->zones[i] / MF_NR_ZONE_TYPES;

		if (list->zones[i] % MF_NR_ZONE_TYPES <= (int)highest && mf_node_isset(allowed, node))
			nodes[nr++] = (uint8_t)node;
	}
	return nr;
}
