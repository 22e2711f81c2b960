/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fallback order.  A node asks itself first; then, again and again, the
 * nearest node with memory not yet in its list.  Among nodes equally far the
 * higher numbers than its own come first, then the one that fewer nodes before
 * have at the head of a distance group, then the lowest number.  So a group of
 * equal nodes forms a ring, and the pressure of a full node spreads.
 *
 * Whether a node has CPUs plays no part: the kernel's rule names it, but its
 * lists are built before it knows which CPUs belong where, and its recorded
 * lists (tests/data/fallback-order.tsv, "cpuless4") show no trace of it.
 *
 * Invariant: the lists are built by rising node id; the load counts the earlier
 * ones left behind decide ties in the later ones.
 */
#include "page/zonelist.h"

#include <string.h>

struct order_state {
	const struct mf_topo *topo;
	unsigned load[64]; /* how often a node heads a distance group */
};

/* Smaller is asked earlier; the caller goes by rising number. */
static unsigned cost(const struct order_state *state, int from, int to)
{
	unsigned distance = state->topo->node[from]->distance[to] + (to < from ? 1u : 0u);

	/* At most 64 lists add to a load, each once. */
	return distance * 128 + state->load[to];
}

static int nearest(const struct order_state *state, int from, mf_nodemask candidates)
{
	unsigned best_cost = 0;
	int best = -1;

	if (mf_node_isset(candidates, from))
		return from;
	MF_FOR_EACH_NODE(to, candidates) {
		unsigned candidate_cost = cost(state, from, to);

		if (best < 0 || candidate_cost < best_cost) {
			best = to;
			best_cost = candidate_cost;
		}
	}
	return best;
}

static void order_nodes(struct order_state *state, int from, struct mf_zonelist *list)
{
	const uint8_t *distance = state->topo->node[from]->distance;
	mf_nodemask left = state->topo->memory;
	int previous = from;

	while (left) {
		int next = nearest(state, from, left);

		if (distance[next] != distance[previous])
			state->load[next]++;
		list->nodes[list->nr_nodes++] = (uint8_t)next;
		left &= ~mf_node_bit(next);
		previous = next;
	}
}

static void order_zones(const struct mf_topo *topo, struct mf_zonelist *list)
{
	for (unsigned i = 0; i < list->nr_nodes; i++) {
		const struct mf_topo_node *node = topo->node[list->nodes[i]];

		for (int type = MF_NR_ZONE_TYPES - 1; type >= 0; type--)
			if (node->zone[type].nr_pages)
				list->zones[list->nr_zones++] = (uint8_t)mf_zone_index(node->id, type);
	}
}

void mf_zonelist_build(const struct mf_topo *topo, struct mf_zonelist *lists)
{
	struct order_state state = { .topo = topo };

	MF_FOR_EACH_NODE(node, topo->nodes) {
		memset(&lists[node], 0, sizeof(lists[node]));
		order_nodes(&state, node, &lists[node]);
		order_zones(topo, &lists[node]);
	}
}
