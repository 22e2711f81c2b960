/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * buddyinfo and pagetypeinfo.  Populated zones only; the same number of
 * columns on every line (parsers insist), and whole numbers where the kernel
 * gives up at 100000.
 */
#include "ctl/render.h"

#include <inttypes.h>

#define NR_TYPE_NAMES 6 /* the kernel's, of which CMA and Isolate are always empty here */

/* Calls @put for each populated zone of @nodes. */
typedef void put_zone_fn(const struct mf_zone_info *zone, struct mf_outbuf *out);

static void for_each_zone(struct memfs *m, mf_nodemask nodes, put_zone_fn *put, struct mf_outbuf *out)
{
	struct mf_zone_info zone;

	MF_FOR_EACH_NODE(node, nodes)
		for (unsigned type = 0; type < MF_NR_ZONE_TYPES; type++)
			if (mf_page_zone_info(m->page, mf_zone_index(node, type), &zone))
				put(&zone, out);
}

void mf_render_free_area(const struct mf_zone_info *zone, struct mf_outbuf *out)
{
	for (unsigned order = 0; order < MF_NR_ORDERS; order++) {
		uint64_t blocks = 0;

		for (unsigned type = 0; type < MF_NR_MIGRATE_TYPES; type++)
			blocks += zone->nr_free[type][order];
		mf_outbuf_printf(out, "%6" PRIu64 " ", blocks);
	}
}

static void put_buddyinfo_line(const struct mf_zone_info *zone, struct mf_outbuf *out)
{
	mf_outbuf_printf(out, "Node %d, zone %8s ", zone->node, mf_zone_names[zone->type]);
	mf_render_free_area(zone, out);
	mf_outbuf_puts(out, "\n");
}

int mf_render_buddyinfo(struct memfs *m, struct mf_outbuf *out)
{
	for_each_zone(m, m->topo->memory, put_buddyinfo_line, out);
	return mf_outbuf_error(out);
}

static void put_free_by_type(const struct mf_zone_info *zone, struct mf_outbuf *out)
{
	for (unsigned type = 0; type < NR_TYPE_NAMES; type++) {
		mf_outbuf_printf(out, "Node %4d, zone %8s, type %12s ", zone->node, mf_zone_names[zone->type],
				 mf_migrate_type_names[type]);
		for (unsigned order = 0; order < MF_NR_ORDERS; order++)
			mf_outbuf_printf(out, "%6" PRIu64 " ",
					 type < MF_NR_MIGRATE_TYPES ? zone->nr_free[type][order] : 0);
		mf_outbuf_puts(out, "\n");
	}
}

static void put_blocks_by_type(const struct mf_zone_info *zone, struct mf_outbuf *out)
{
	mf_outbuf_printf(out, "Node %d, zone %8s ", zone->node, mf_zone_names[zone->type]);
	for (unsigned type = 0; type < NR_TYPE_NAMES; type++)
		mf_outbuf_printf(out, "%12" PRIu64 " ",
				 type < MF_NR_MIGRATE_TYPES ? zone->nr_blocks[type] : 0);
	mf_outbuf_puts(out, "\n");
}

static void put_node_by_type(struct memfs *m, int node, struct mf_outbuf *out)
{
	mf_outbuf_printf(out, "Page block order: %d\nPages per block:  %u\n\n", MF_PAGEBLOCK_ORDER,
			 MF_PAGEBLOCK_PAGES);
	mf_outbuf_printf(out, "%-43s ", "Free pages count per migrate type at order ");
	for (unsigned order = 0; order < MF_NR_ORDERS; order++)
		mf_outbuf_printf(out, "%6u ", order);
	mf_outbuf_puts(out, "\n");
	for_each_zone(m, mf_node_bit(node), put_free_by_type, out);
	mf_outbuf_printf(out, "\n%-23s", "Number of blocks type ");
	for (unsigned type = 0; type < NR_TYPE_NAMES; type++)
		mf_outbuf_printf(out, "%12s ", mf_migrate_type_names[type]);
	mf_outbuf_puts(out, "\n");
	for_each_zone(m, mf_node_bit(node), put_blocks_by_type, out);
}

int mf_render_pagetypeinfo(struct memfs *m, struct mf_outbuf *out)
{
	MF_FOR_EACH_NODE(node, m->topo->memory)
		put_node_by_type(m, node, out);
	return mf_outbuf_error(out);
}
