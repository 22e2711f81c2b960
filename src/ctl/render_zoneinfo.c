/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * zoneinfo.  Every zone type of every node, unpopulated ones cut short behind
 * "protection", and the kernel's Device zone, always empty here: the number of
 * protection columns is the number of zone types.  The per-node block stands in
 * a node's first populated zone only, because parsers lose the zone's name
 * behind it.
 */
#include "ctl/render.h"

#include <inttypes.h>

void mf_render_protection(const struct mf_zone_info *zone, struct mf_outbuf *out)
{
	const uint64_t *reserve = zone->marks.lowmem_reserve;

	mf_outbuf_puts(out, "(");
	for (unsigned j = 0; j < MF_NR_ZONE_TYPES; j++)
		mf_outbuf_printf(out, "%" PRIu64 ", ", reserve[j]);
	/* Device adds no pages, so a request that may use it is kept off as one for Movable is. */
	mf_outbuf_printf(out, "%" PRIu64 ")", reserve[MF_NR_ZONE_TYPES - 1]);
}

static void put_items(const struct mf_vm_item *items, const struct mf_vm_numbers *numbers,
		      struct mf_outbuf *out)
{
	for (; items->name; items++)
		mf_outbuf_printf(out, "\n      %-12s %" PRIu64, items->name, numbers->of[items->value]);
}

static void put_node_stats(const struct mf_vm_snapshot *snapshot, int node, struct mf_outbuf *out)
{
	struct mf_vm_numbers numbers = { { 0 } };

	mf_vm_add_node(snapshot, node, &numbers);
	mf_outbuf_puts(out, "\n  per-node stats");
	put_items(mf_vm_node_items, &numbers, out);
}

static void put_pages(const struct mf_zone_info *zone, struct mf_outbuf *out)
{
	const struct {
		const char *name;
		uint64_t pages;
	} rows[] = {
		{ "boost", zone->boost },     { "min", zone->marks.min },     { "low", zone->marks.low },
		{ "high", zone->marks.high }, { "promo", zone->marks.promo }, { "spanned", zone->managed },
		{ "present", zone->managed }, { "managed", zone->managed },   { "cma", 0 },
	};

	mf_outbuf_printf(out, "\n  pages free     %" PRIu64, zone->free);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		mf_outbuf_printf(out, "\n        %-8s %" PRIu64, rows[i].name, rows[i].pages);
	mf_outbuf_puts(out, "\n        protection: ");
	mf_render_protection(zone, out);
}

static void put_pageset(struct memfs *m, unsigned zone, unsigned cpu, struct mf_outbuf *out)
{
	struct mf_pcp_info pcp = { 0 };

	mf_page_pcp_info(m->page, zone, cpu, &pcp);
	mf_outbuf_printf(out, "\n    cpu: %u", cpu);
	mf_outbuf_printf(
		out, "\n              count:    %u\n              high:     %u\n              batch:    %u",
		pcp.count, pcp.high, pcp.batch);
	mf_outbuf_printf(out, "\n              high_min: %u\n              high_max: %u", pcp.high_min,
			 pcp.high_max);
	/* Our counters are summed when read: none of them lags behind by a threshold. */
	mf_outbuf_puts(out, "\n  vm stats threshold: 0");
}

static void put_pagesets(struct memfs *m, unsigned zone, struct mf_outbuf *out)
{
	mf_outbuf_puts(out, "\n  pagesets");
	for (unsigned cpu = 0; cpu < m->topo->cpu_limit; cpu++)
		if (m->topo->cpu_node[cpu] >= 0)
			put_pageset(m, zone, cpu, out);
}

static void put_populated(const struct mf_vm_snapshot *snapshot, const struct mf_zone_info *zone,
			  struct mf_outbuf *out)
{
	struct mf_vm_numbers numbers = { { 0 } };

	mf_vm_add_zone(snapshot, zone, &numbers);
	put_items(mf_vm_zone_items, &numbers, out);
	put_items(mf_vm_numa_items, &numbers, out);
	put_pagesets(snapshot->m, mf_zone_index(zone->node, zone->type), out);
	mf_outbuf_puts(out, "\n  node_unreclaimable:  0");
	mf_outbuf_printf(out, "\n  start_pfn:           %" PRIu64, zone->start_pfn);
	mf_outbuf_printf(out, "\n  reserved_highatomic: %" PRIu64, zone->reserved_highatomic);
	mf_outbuf_printf(out, "\n  free_highatomic:     %" PRIu64, zone->free_highatomic);
}

static void put_node(const struct mf_vm_snapshot *snapshot, int node, struct mf_outbuf *out)
{
	const struct mf_zone_info device = { .node = node };
	bool first_populated = true;
	struct mf_zone_info zone;

	for (unsigned type = 0; type < MF_NR_ZONE_TYPES; type++) {
		bool populated = mf_page_zone_info(snapshot->m->page, mf_zone_index(node, type), &zone);

		mf_outbuf_printf(out, "Node %d, zone %8s", node, mf_zone_names[type]);
		if (populated && first_populated)
			put_node_stats(snapshot, node, out);
		first_populated = first_populated && !populated;
		put_pages(&zone, out);
		if (populated)
			put_populated(snapshot, &zone, out);
		mf_outbuf_puts(out, "\n");
	}
	mf_outbuf_printf(out, "Node %d, zone %8s", node, "Device");
	put_pages(&device, out);
	mf_outbuf_puts(out, "\n");
}

int mf_render_zoneinfo(struct memfs *m, struct mf_outbuf *out)
{
	struct mf_vm_snapshot snapshot;
	int error = mf_vm_snapshot_take(m, &snapshot);

	if (error)
		return error;
	error = mf_vm_snapshot_ranges(&snapshot);
	if (!error)
		MF_FOR_EACH_NODE(node, m->topo->nodes)
			put_node(&snapshot, node, out);
	mf_vm_snapshot_free(&snapshot);
	return error ? error : mf_outbuf_error(out);
}
