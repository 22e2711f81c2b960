/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host's own nodes as a topology: same node and CPU numbers, same
 * distances, memory in one Normal zone a node, each arena bound to its node.
 * The arenas are sparse, so a node as large as the host's costs nothing.
 */
#include "topo/topo_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Whole 2 MiB only. */
static uint64_t usable_pages(const struct mf_plat_node *host)
{
	return (host->bytes >> MF_TOPO_PAGE_SHIFT) & ~(uint64_t)(MF_TOPO_LINE_PAGES - 1);
}

static int add_host_node(struct mf_topo *topo, const struct mf_plat_node *host, struct mf_topo_reason *reason)
{
	struct mf_topo_node *node;
	int error = mf_topo_add_node(topo, (unsigned)host->id, &node, reason);

	if (!error)
		error = mf_topo_add_zone(topo, node, MF_ZONE_NORMAL, usable_pages(host), reason);
	if (!error)
		error = mf_topo_add_cpus(topo, node, host->cpus, reason);
	if (error)
		return error;
	node->host_node = host->id;
	memcpy(node->distance, host->distance, sizeof(node->distance));
	return 0;
}

/* A distance to a node that is not here would break "0 where there is no node". */
static void drop_absent_distances(struct mf_topo *topo)
{
	MF_FOR_EACH_NODE(from, topo->nodes)
		for (int to = 0; to < 64; to++)
			if (!mf_node_isset(topo->nodes, to))
				topo->node[from]->distance[to] = 0;
}

static unsigned nodes_with_memory(const struct mf_plat_node *hosts, unsigned nr)
{
	unsigned found = 0;

	for (unsigned i = 0; i < nr; i++)
		found += usable_pages(&hosts[i]) > 0;
	return found;
}

int mf_topo_from_host(struct mf_topo *topo, struct mf_plat *plat, unsigned min_memory,
		      struct mf_topo_reason *reason)
{
	struct mf_plat_node *hosts = calloc(64, sizeof(*hosts));
	int nr, error = 0;

	if (!hosts)
		return mf_topo_fail(reason, -ENOMEM, "no memory");
	nr = plat ? plat->ops->host_nodes(plat, hosts, 64) : 0;
	if (nr <= 0 || nodes_with_memory(hosts, (unsigned)nr) < min_memory)
		error = mf_topo_fail(reason, -ENODEV, "the host does not tell of its nodes");
	for (int i = 0; !error && i < nr; i++)
		error = add_host_node(topo, &hosts[i], reason);
	free(hosts);
	topo->simulated = false;
	drop_absent_distances(topo);
	return error;
}
