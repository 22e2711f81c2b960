/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * In which order zones are asked (behaviour 2.4): for each node the nodes with
 * memory from near to far, and within a node the zones from high to low.
 * A pure function of the topology.
 */
#ifndef MF_PAGE_ZONELIST_H
#define MF_PAGE_ZONELIST_H

#include "topo/topo.h"

/* Zone index of a node's zone: node id * MF_NR_ZONE_TYPES + zone type; 256 in all. */
#define MF_MAX_ZONES (64 * MF_NR_ZONE_TYPES)

static inline unsigned mf_zone_index(int node, enum mf_zone_type type)
{
	return (unsigned)node * MF_NR_ZONE_TYPES + type;
}

struct mf_zonelist {
	uint8_t nr_nodes;
	uint8_t nodes[64]; /* ids of nodes with memory, nearest first */
	uint16_t nr_zones;
	uint8_t zones[MF_MAX_ZONES]; /* zone indexes, populated ones only */
};

/* lists[id] for every declared node id; a memoryless node has a list, too. */
void mf_zonelist_build(const struct mf_topo *topo, struct mf_zonelist *lists /* [64] */);

#endif
