/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How a topology is put together: mf_topo_new(), nodes one by one with their
 * zones and CPUs, then mf_topo_finish().  Each step checks its own limits, so
 * that a parser can name the line that went too far.
 *
 * Threads: one builder; nobody else sees the topology before it is finished.
 */
#ifndef MF_TOPO_INTERNAL_H
#define MF_TOPO_INTERNAL_H

#include "topo/topo.h"

#define MF_TOPO_PAGE_SHIFT 12
#define MF_TOPO_MAX_PAGES (UINT64_C(1) << 32) /* 16 TiB */
#define MF_TOPO_LINE_PAGES 512		      /* 2 MiB */

/* Where a failure's one line goes. */
struct mf_topo_reason {
	char *text; /* may be NULL */
	size_t size;
	unsigned line; /* of a FILE, named in the text; 0: no line */
};

/* Writes the reason and returns @error. */
int mf_topo_fail(struct mf_topo_reason *reason, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

struct mf_topo *mf_topo_new(void);

/* @id 0..63, new. */
int mf_topo_add_node(struct mf_topo *topo, unsigned id, struct mf_topo_node **out,
		     struct mf_topo_reason *reason);
/* @pages of a type the node does not have yet. */
int mf_topo_add_zone(struct mf_topo *topo, struct mf_topo_node *node, enum mf_zone_type type, uint64_t pages,
		     struct mf_topo_reason *reason);
/* CPUs that no other node has; @cpus has MF_CPU_WORDS words. */
int mf_topo_add_cpus(struct mf_topo *topo, struct mf_topo_node *node, const uint64_t *cpus,
		     struct mf_topo_reason *reason);
/* Lays out the pfns, fills in missing distances, sets and totals; checks the whole. */
int mf_topo_finish(struct mf_topo *topo, struct mf_topo_reason *reason);

/* Each adds all nodes to an empty topology; the caller finishes it. */
int mf_topo_parse_short(struct mf_topo *topo, const char *text, struct mf_topo_reason *reason);
int mf_topo_parse_lines(struct mf_topo *topo, const char *bytes, size_t length,
			struct mf_topo_reason *reason);
/* -ENODEV: no nodes, or fewer than @min_memory of them have memory. */
int mf_topo_from_host(struct mf_topo *topo, struct mf_plat *plat, unsigned min_memory,
		      struct mf_topo_reason *reason);

#endif
