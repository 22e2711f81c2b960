/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * slabinfo, version 2.1: a line a cache under the first name it has; aliases
 * have none.
 *
 * An object is active unless it is free in a slab on a node's partial list:
 * what CPUs hold back counts as active, as in the kernel.  Every slab is.
 * There are no tunables and nothing is shared between CPUs: zeros, which tools
 * look for all the same.
 *
 * Locks: none here; each cache is pinned while it is looked at.
 */
#include "ctl/render.h"

#include <inttypes.h>

static const char head[] = "slabinfo - version: 2.1\n"
			   "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>"
			   " : tunables <limit> <batchcount> <sharedfactor>"
			   " : slabdata <active_slabs> <num_slabs> <sharedavail>\n";

static void put_cache(void *arg, const char *name, struct mf_cache *cache, bool alias)
{
	const struct mf_slab_geometry *geometry = mf_cache_geometry(cache);
	uint64_t active = 0, objects = 0, slabs = 0;
	struct mf_outbuf *out = arg;
	struct mf_cache_info info;

	(void)alias;
	mf_cache_info(cache, &info);
	for (unsigned node = 0; node < MEMFS_MAX_NODES; node++) {
		active += info.node[node].objects;
		objects += info.node[node].total_objects;
		slabs += info.node[node].slabs;
	}
	mf_outbuf_printf(out, "%-17s %6" PRIu64 " %6" PRIu64 " %6" PRIu32 " %4" PRIu32 " %4u", name, active,
			 objects, geometry->size, geometry->objects, 1u << geometry->order);
	mf_outbuf_printf(out, " : tunables %4u %4u %4u : slabdata %6" PRIu64 " %6" PRIu64 " %6u\n", 0, 0, 0,
			 slabs, slabs, 0);
}

int mf_render_slabinfo(struct memfs *m, struct mf_outbuf *out)
{
	mf_outbuf_puts(out, head);
	mf_cache_for_each(m->slabs, false, put_cache, out);
	return mf_outbuf_error(out);
}
