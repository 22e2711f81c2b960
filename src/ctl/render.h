/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's text formats (those of 7.2), each from one function, so that
 * stats/, nodes/ and the kernel's own paths print the same bytes.
 *
 * A name of the kernel's that has no meaning here prints 0: tools look for the
 * whole set of fields.  Numbers are pages where the kernel's are.
 *
 * Every renderer returns 0 or -ENOMEM, takes no engine lock of its own and
 * reads each counter once, from one snapshot.
 */
#ifndef MF_CTL_RENDER_H
#define MF_CTL_RENDER_H

#include "engine/engine.h"

/* What the tables of names draw on; MF_VM_ZERO is what the kernel counts and we do not. */
enum mf_vm_value {
	MF_VM_ZERO,
	MF_VM_FREE,	   /* in the zones' free lists */
	MF_VM_FREE_BLOCKS, /* of them in whole pageblocks */
	MF_VM_NUMA_HIT,	   /* six in the order of MF_STATS */
	MF_VM_NUMA_MISS,
	MF_VM_NUMA_FOREIGN,
	MF_VM_NUMA_INTERLEAVE,
	MF_VM_NUMA_LOCAL,
	MF_VM_NUMA_OTHER,
	MF_VM_PGALLOC, /* by zone type */
	MF_VM_ALLOCSTALL = MF_VM_PGALLOC + MF_NR_ZONE_TYPES,
	MF_VM_PGFREE = MF_VM_ALLOCSTALL + MF_NR_ZONE_TYPES,
	MF_VM_MANAGED,
	MF_VM_PCP,		/* on per-CPU lists */
	MF_VM_VMALLOC,		/* in ranges of vmalloc */
	MF_VM_SLAB_RECLAIMABLE, /* of slabs, by their caches' flag */
	MF_VM_SLAB_UNRECLAIMABLE,
	MF_VM_RESERVED, /* high mark and largest protection: not available to everybody */
	MF_NR_VM_VALUES,
};

struct mf_vm_numbers {
	uint64_t of[MF_NR_VM_VALUES];
};

/* All counters of one moment. */
struct mf_vm_snapshot {
	struct memfs *m;
	uint64_t *sums; /* mf_stat_snapshot */
	unsigned nr_zones;
	uint64_t vmalloc[MEMFS_MAX_NODES]; /* pages by node; 0 until mf_vm_snapshot_ranges */
};

int mf_vm_snapshot_take(struct memfs *m, struct mf_vm_snapshot *out); /* -ENOMEM */
/* The pages of vmalloc as well: a walk over all ranges in use.  -ENOMEM. */
int mf_vm_snapshot_ranges(struct mf_vm_snapshot *snapshot);
void mf_vm_snapshot_free(struct mf_vm_snapshot *snapshot);
/* Adds a zone's, a node's or everybody's (node -1) numbers to *numbers. */
void mf_vm_add_zone(const struct mf_vm_snapshot *snapshot, const struct mf_zone_info *zone,
		    struct mf_vm_numbers *numbers);
void mf_vm_add_node(const struct mf_vm_snapshot *snapshot, int node, struct mf_vm_numbers *numbers);

/* One line of a kernel table. */
struct mf_vm_item {
	const char *name;
	unsigned value; /* enum mf_vm_value, ZERO if left out */
};

/* The kernel's groups of names, each ended by a NULL name. */
extern const struct mf_vm_item mf_vm_zone_items[], mf_vm_numa_items[], mf_vm_node_items[],
	mf_vm_event_items[];

int mf_render_buddyinfo(struct memfs *m, struct mf_outbuf *out);
int mf_render_pagetypeinfo(struct memfs *m, struct mf_outbuf *out);
int mf_render_zoneinfo(struct memfs *m, struct mf_outbuf *out);
int mf_render_vmstat(struct memfs *m, struct mf_outbuf *out);
int mf_render_meminfo(struct memfs *m, struct mf_outbuf *out);
int mf_render_slabinfo(struct memfs *m, struct mf_outbuf *out);
int mf_render_vmallocinfo(struct memfs *m, struct mf_outbuf *out);
int mf_render_node_meminfo(struct memfs *m, int node, struct mf_outbuf *out);
int mf_render_node_vmstat(struct memfs *m, int node, struct mf_outbuf *out);
int mf_render_node_numastat(struct memfs *m, int node, struct mf_outbuf *out);
int mf_render_node_distance(struct memfs *m, int node, struct mf_outbuf *out);

/* "(0, 991, ...)" with the kernel's five columns, and eleven counts; no newline. */
void mf_render_protection(const struct mf_zone_info *zone, struct mf_outbuf *out);
void mf_render_free_area(const struct mf_zone_info *zone, struct mf_outbuf *out);

/* --- names of ranges (render_vmallocinfo.c) --- */

struct mf_range_names {
	struct mf_range_name *names; /* by address */
	size_t nr, room;
	int error;
};
/* Those of the moment, of named allocations; -ENOMEM.  To be freed in any case. */
int mf_range_names_take(struct memfs *m, struct mf_range_names *out);
const char *mf_range_name(const struct mf_range_names *names, uint64_t start); /* NULL: it has none */
void mf_range_names_free(struct mf_range_names *names);

#endif
