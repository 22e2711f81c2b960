/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is said when there is no memory for a slab: one line, at most one in
 * five seconds, with what each node has of the cache.
 *
 * Relaxed looks, no lock: whoever is out of memory may be anywhere.
 */
#include "slab/debug.h"

#include <inttypes.h>

#define QUIET_NS UINT64_C(5000000000)

/* One caller in QUIET_NS gets true, the first at once. */
static bool may_speak(struct mf_slabs *slabs)
{
	uint64_t now = slabs->plat->ops->now_ns(slabs->plat) + 1;
	uint64_t last = __atomic_load_n(&slabs->oom_said, __ATOMIC_RELAXED);

	return (!last || now - last >= QUIET_NS) &&
	       __atomic_compare_exchange_n(&slabs->oom_said, &last, now, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

static void say_node(struct mf_slab_report *report, const struct mf_cache_node *n, int node)
{
	mf_debug_say(report, "; node %d: %" PRIu64 " slabs, %" PRIu64 " objects, %" PRIu64 " partial", node,
		     __atomic_load_n(&n->nr_slabs, __ATOMIC_RELAXED),
		     __atomic_load_n(&n->total_objects, __ATOMIC_RELAXED),
		     __atomic_load_n(&n->nr_partial, __ATOMIC_RELAXED));
}

void mf_slab_out_of_memory(struct mf_cache *cache, memfs_gfp gfp, int node)
{
	mf_slab_report_fn *tell = __atomic_load_n(&cache->slabs->notice, __ATOMIC_ACQUIRE);
	struct mf_slab_report report = { 0 };

	/* Who has interrupted a lock holder may have failed for that. */
	if (gfp & MEMFS___GFP_NOWARN || mf_lock_depth() > 0 || !may_speak(cache->slabs))
		return;
	mf_debug_say(&report, "%s: out of memory for objects of %u bytes, slabs of order %u or %u, node %d",
		     cache->name, cache->geometry.object_size, cache->geometry.order,
		     cache->geometry.min_order, node);
	for (int id = 0; id < MEMFS_MAX_NODES; id++)
		if (cache->node[id])
			say_node(&report, cache->node[id], id);
	if (tell)
		tell(cache->slabs->notice_arg, report.text);
}
