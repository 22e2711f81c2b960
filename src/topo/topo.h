/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The machine: nodes, zones, CPUs, distances.  Built once from the mount's
 * topology= text, immutable afterwards (so: no lock, any thread).
 *
 * Invariants: nodes follow each other in pfn space by rising id, each starting
 * at a multiple of 1024 pages; a node's populated zones follow each other from
 * low to high without gap; every zone but a node's last is a multiple of 512
 * pages; the whole machine has at most 2^32 pages.
 */
#ifndef MF_TOPO_H
#define MF_TOPO_H

#include "base/nodemask.h"
#include "plat/plat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mf_zone_type { MF_ZONE_DMA, MF_ZONE_DMA32, MF_ZONE_NORMAL, MF_ZONE_MOVABLE, MF_NR_ZONE_TYPES };

/* "DMA", "DMA32", "Normal", "Movable" */
extern const char *const mf_zone_names[MF_NR_ZONE_TYPES];

#define MF_MAX_CPUS 1024
#define MF_CPU_WORDS (MF_MAX_CPUS / 64)

struct mf_topo_zone {
	uint32_t start_pfn;
	uint64_t nr_pages; /* 0: not populated; spanned = present = managed */
};

struct mf_topo_node {
	int id;
	uint32_t start_pfn;
	uint64_t nr_pages; /* 0: no memory */
	struct mf_topo_zone zone[MF_NR_ZONE_TYPES];
	uint64_t cpus[MF_CPU_WORDS];
	unsigned nr_cpus;
	uint8_t distance[64]; /* to node id i; 0 where there is no node i */
	uint64_t bandwidth;   /* MB/s, 0 unknown: the value at start */
	int host_node;	      /* the host node its arena is bound to, -1 none */
};

struct mf_topo {
	mf_nodemask nodes;	   /* declared (online) */
	mf_nodemask memory;	   /* with memory */
	mf_nodemask normal_memory; /* with a Normal zone or below (all but Movable-only) */
	mf_nodemask with_cpu;
	struct mf_topo_node *node[64]; /* by id, NULL where there is none */
	int16_t cpu_node[MF_MAX_CPUS]; /* node id, -1 no such CPU */
	uint64_t cpus[MF_CPU_WORDS];
	unsigned nr_cpus;   /* how many */
	unsigned cpu_limit; /* highest number + 1 */
	uint64_t nr_pages;  /* of all nodes, without alignment gaps */
	uint64_t pfn_limit; /* highest pfn + 1 */
	bool simulated;	    /* false: the host's own nodes and CPUs */
};

/*
 * mf_topo_create - @text is the option's value: "auto", "host", the short form
 * ("2x1G:cpus=4+256M:cpus=0") or "@FILE".  NULL means "auto".
 * In the short form a size of 0 is a node without memory, and a node without
 * ":cpus=" has one CPU.  Saved "numactl --hardware" output is refused.
 * @why (why_size bytes, may be NULL) receives one line on failure.
 * Errors: EINVAL grammar or limits, ENOENT/EACCES/... the FILE, ENODEV no host
 * nodes, ENOMEM.
 */
int mf_topo_create(const char *text, struct mf_plat *plat, struct mf_topo **out, char *why, size_t why_size);

/* The lines of a topology FILE, for tests and for embedding. */
int mf_topo_parse_file(const char *bytes, size_t length, struct mf_topo **out, char *why, size_t why_size);

void mf_topo_destroy(struct mf_topo *topo);

/* Lowest CPU of the topology, -1 if it has none. */
int mf_topo_first_cpu(const struct mf_topo *topo);

#endif
