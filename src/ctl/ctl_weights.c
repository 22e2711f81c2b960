/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * weights/ and nodes/: the machine, its weights and its zones.
 *
 * Locks: none here; the engine's functions take MF_LOCK_CONFIG.
 */
#include "ctl/ctl_internal.h"
#include "ctl/render.h"

#include <errno.h>
#include <inttypes.h>

/* --- weights and bandwidth --- */

uint64_t mf_ctl_get_weight(struct memfs *m, const struct mf_ctl_node *node)
{
	return mf_engine_weight(m, node->node);
}

int mf_ctl_set_weight(struct mf_ctl_command *command, uint64_t value)
{
	return mf_engine_set_weight(command->m, command->node->node, (unsigned)value);
}

int mf_ctl_show_auto(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	(void)node;
	mf_outbuf_puts(out, mf_engine_auto(m) ? "true\n" : "false\n");
	return 0;
}

int mf_ctl_store_auto(struct mf_ctl_command *command)
{
	bool on;
	int error = mf_parse_bool(command->text, &on);

	if (error)
		return mf_ctl_fail(command, error, "neither true nor false");
	error = mf_engine_set_auto(command->m, on);
	if (error == -ENODEV)
		return mf_ctl_fail(command, error,
				   "no bandwidth is known: write nodes/node*/bandwidth first");
	return error;
}

uint64_t mf_ctl_get_bandwidth(struct memfs *m, const struct mf_ctl_node *node)
{
	return mf_engine_bandwidth(m, node->node);
}

int mf_ctl_set_bandwidth(struct mf_ctl_command *command, uint64_t value)
{
	mf_engine_set_bandwidth(command->m, command->node->node, value);
	return 0;
}

/* --- sets of nodes --- */

static int show_nodes(mf_nodemask nodes, struct mf_outbuf *out)
{
	mf_outbuf_nodelist(out, nodes);
	mf_outbuf_puts(out, "\n");
	return 0;
}

int mf_ctl_show_online(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	(void)node;
	return show_nodes(m->topo->nodes, out);
}

int mf_ctl_show_has_cpu(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	(void)node;
	return show_nodes(m->topo->with_cpu, out);
}

int mf_ctl_show_has_memory(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	(void)node;
	return show_nodes(m->topo->memory, out);
}

int mf_ctl_show_has_normal_memory(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	(void)node;
	return show_nodes(m->topo->normal_memory, out);
}

/* --- one node --- */

int mf_ctl_show_cpulist(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	mf_outbuf_list(out, m->topo->node[node->node]->cpus, MF_MAX_CPUS);
	mf_outbuf_puts(out, "\n");
	return 0;
}

int mf_ctl_show_cpumap(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	unsigned nr_bits = m->topo->cpu_limit ? m->topo->cpu_limit : 1;

	mf_outbuf_cpumap(out, m->topo->node[node->node]->cpus, nr_bits);
	mf_outbuf_puts(out, "\n");
	return 0;
}

int mf_ctl_show_distance(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	return mf_render_node_distance(m, node->node, out);
}

int mf_ctl_show_resident(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	int64_t bytes = 0;

	if (mf_node_isset(m->topo->memory, node->node))
		bytes = mf_page_resident(m->page, node->node);
	if (bytes < 0)
		return (int)bytes;
	mf_outbuf_printf(out, "%" PRId64 "\n", bytes);
	return 0;
}

int mf_ctl_show_node_meminfo(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	return mf_render_node_meminfo(m, node->node, out);
}

int mf_ctl_show_node_numastat(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	return mf_render_node_numastat(m, node->node, out);
}

int mf_ctl_show_node_vmstat(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	return mf_render_node_vmstat(m, node->node, out);
}

/* --- one zone --- */

static void zone_info(struct memfs *m, const struct mf_ctl_node *node, struct mf_zone_info *zone)
{
	mf_page_zone_info(m->page, mf_zone_index(node->node, (enum mf_zone_type)node->zone), zone);
}

static int show_number(uint64_t number, struct mf_outbuf *out)
{
	mf_outbuf_printf(out, "%" PRIu64 "\n", number);
	return 0;
}

#define SHOW_ZONE(name, field) \
	int mf_ctl_show_zone_##name(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out) \
	{ \
		struct mf_zone_info zone; \
\
		zone_info(m, node, &zone); \
		return show_number(zone.field, out); \
	}

SHOW_ZONE(free, free)
SHOW_ZONE(min, marks.min)
SHOW_ZONE(low, marks.low)
SHOW_ZONE(high, marks.high)
SHOW_ZONE(promo, marks.promo)
SHOW_ZONE(pages, managed) /* managed, present and spanned: metadata lives outside the arenas */

int mf_ctl_show_zone_protection(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	struct mf_zone_info zone;

	zone_info(m, node, &zone);
	mf_render_protection(&zone, out);
	mf_outbuf_puts(out, "\n");
	return 0;
}

int mf_ctl_show_zone_free_area(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	struct mf_zone_info zone;

	zone_info(m, node, &zone);
	mf_render_free_area(&zone, out);
	mf_outbuf_puts(out, "\n");
	return 0;
}
