/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the kernel shows of a node beside meminfo and vmstat: numastat and
 * distance.  A node without memory has the files, too, and reads zeros.
 */
#include "ctl/render.h"

#include <inttypes.h>

int mf_render_node_numastat(struct memfs *m, int node, struct mf_outbuf *out)
{
	static const char *const names[] = { "numa_hit",       "numa_miss",  "numa_foreign",
					     "interleave_hit", "local_node", "other_node" };
	struct mf_vm_numbers numbers = { { 0 } };
	struct mf_vm_snapshot snapshot;
	int error = mf_vm_snapshot_take(m, &snapshot);

	if (error)
		return error;
	mf_vm_add_node(&snapshot, node, &numbers);
	mf_vm_snapshot_free(&snapshot);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		mf_outbuf_printf(out, "%s %" PRIu64 "\n", names[i], numbers.of[MF_VM_NUMA_HIT + i]);
	return mf_outbuf_error(out);
}

/* One column an online node, in the order of their numbers, which need not be its position. */
int mf_render_node_distance(struct memfs *m, int node, struct mf_outbuf *out)
{
	const char *blank = "";

	MF_FOR_EACH_NODE(other, m->topo->nodes) {
		mf_outbuf_printf(out, "%s%u", blank, m->topo->node[node]->distance[other]);
		blank = " ";
	}
	mf_outbuf_puts(out, "\n");
	return mf_outbuf_error(out);
}
