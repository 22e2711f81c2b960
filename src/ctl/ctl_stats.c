/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stats/: every counter, and the kernel's views of them.
 *
 * Locks: live.lock and tasks.lock for one count each, and what mf_vmalloc_info
 * and the walk over the caches take.
 */
#include "ctl/ctl_internal.h"
#include "ctl/render.h"
#include "stat/stat_out.h"

#include <inttypes.h>

int mf_ctl_show_counter(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	mf_stat_print_one(mf_page_stat(m->page), (enum mf_stat_id)node->counter, out);
	return 0;
}

static uint64_t count_names(struct mf_lock *lock, const struct mf_name_table *table)
{
	uint64_t count;

	mf_lock_acquire(lock);
	count = table->count;
	mf_lock_release(lock);
	return count;
}

static void put_slab_totals(struct memfs *m, struct mf_outbuf *out)
{
	static const char *const names[MF_CTL_NR_SLAB_SUMS] = {
#define SUM_NAME(name) [MF_CTL_SLAB_SUM_##name] = #name,
		MF_CTL_SLAB_SUMS(SUM_NAME)
#undef SUM_NAME
	};
	struct mf_ctl_slab_totals totals;

	mf_ctl_slab_totals(m, &totals);
	for (unsigned i = 0; i < MF_CTL_NR_SLAB_SUMS; i++)
		mf_outbuf_printf(out, "%s %" PRIu64 "\n", names[i], totals.sum[i]);
	mf_outbuf_printf(out, "slab_caches %" PRIu64 "\nslab_pages %" PRIu64 "\n", totals.caches,
			 totals.pages);
}

/* Levels, behind the counters: what is where now. */
static void put_gauges(struct memfs *m, struct mf_outbuf *out)
{
	struct mf_vmalloc_info ranges;
	struct mf_zone_info zone;
	uint64_t managed = 0, free = 0, pcp = 0;

	MF_FOR_EACH_NODE(node, m->topo->memory)
		for (unsigned type = 0; type < MF_NR_ZONE_TYPES; type++)
			if (mf_page_zone_info(m->page, mf_zone_index(node, type), &zone)) {
				managed += zone.managed;
				free += zone.free;
				pcp += zone.pcp_count;
			}
	mf_outbuf_printf(out, "pages_managed %" PRIu64 "\npages_free %" PRIu64 "\npages_pcp %" PRIu64 "\n",
			 managed, free, pcp);
	mf_outbuf_printf(out, "pages_live %" PRIu64 "\n",
			 atomic_load_explicit(&m->live.nr_pages, memory_order_relaxed));
	mf_outbuf_printf(out, "allocations_live %" PRIu64 "\n", count_names(&m->live.lock, &m->live.table));
	mf_outbuf_printf(out, "tasks %" PRIu64 "\n", count_names(&m->tasks.lock, &m->tasks.table));
	mf_vmalloc_info(m->vmalloc, &ranges);
	mf_outbuf_printf(out, "vmalloc_used_pages %" PRIu64 "\nvmalloc_lazy_pages %" PRIu64 "\n",
			 ranges.used_pages, ranges.lazy_pages);
	mf_outbuf_printf(out, "vmalloc_mappings %" PRIu64 "\n", ranges.mappings);
	put_slab_totals(m, out);
}

int mf_ctl_show_all(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	int error = mf_stat_print_all(mf_page_stat(m->page), out);

	(void)node;
	if (!error)
		put_gauges(m, out);
	return error;
}

#define SHOW_RENDERED(name) \
	int mf_ctl_show_##name(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out) \
	{ \
		(void)node; \
		return mf_render_##name(m, out); \
	}

SHOW_RENDERED(buddyinfo)
SHOW_RENDERED(pagetypeinfo)
SHOW_RENDERED(zoneinfo)
SHOW_RENDERED(vmstat)
SHOW_RENDERED(meminfo)
SHOW_RENDERED(slabinfo)
SHOW_RENDERED(vmallocinfo)
