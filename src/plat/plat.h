/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Everything memfs asks of the system, as one table of operations: the host
 * (plat_host.c: memfd, mmap, mbind, libnuma) or the simulator (plat_sim.c: any
 * number of nodes, any failure, a clock that a test moves).  Nothing else in
 * src/ maps memory, binds it, asks the time or knows libnuma.
 *
 * Invariants: a reserved range never has a hole (it is PROT_NONE, an arena or a
 * window); an arena is mapped once, linear, and reads as zero where never written
 * or trimmed; a window shows the same bytes once more.
 *
 * Threads: all operations may run in parallel; on one byte range the caller
 * sees to it that only one trims.  No operation is called under
 * MF_LOCK_ZONE or above, except now_ns.
 */
#ifndef MF_PLAT_H
#define MF_PLAT_H

#include "base/nodemask.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mf_plat;

/* One node of the host as libnuma sees it. */
struct mf_plat_node {
	int id;		      /* host node number */
	uint64_t bytes;	      /* its memory */
	uint64_t cpus[16];    /* bit a host CPU */
	uint8_t distance[64]; /* to host node i */
};

struct mf_plat_ops {
	/* Host nodes, by rising id, at most max; returns how many or -errno. */
	int (*host_nodes)(struct mf_plat *plat, struct mf_plat_node *nodes, unsigned max);

	/* Address space without memory behind it (PROT_NONE); 2 MiB aligned. */
	int (*reserve)(struct mf_plat *plat, size_t bytes, void **base);
	void (*unreserve)(struct mf_plat *plat, void *base, size_t bytes);

	/*
	 * Maps an arena of @bytes at the reserved address @at, bound to
	 * @host_node (-1: unbound).  *arena is a handle for the calls below.
	 */
	int (*arena_map)(struct mf_plat *plat, void *at, size_t bytes, int host_node, int *arena);
	/* Gives [offset, offset + bytes) back to the host; it reads as zero afterwards. */
	int (*arena_trim)(struct mf_plat *plat, int arena, uint64_t offset, uint64_t bytes);
	/* Bytes of the arena the host really holds. */
	int64_t (*arena_resident)(struct mf_plat *plat, int arena);
	void (*arena_unmap)(struct mf_plat *plat, int arena); /* the range is PROT_NONE again */

	/*
	 * A window: the arena's bytes [offset, offset + bytes) appear at @at as
	 * well, inside a reserved range; all page aligned.  On failure the window
	 * is PROT_NONE.  -errno.
	 */
	int (*window_map)(struct mf_plat *plat, void *at, int arena, uint64_t offset, size_t bytes);
	/*
	 * One call for any number of windows and gaps: [at, at + bytes) is
	 * PROT_NONE again.  -errno: nothing changed.
	 */
	int (*window_seal)(struct mf_plat *plat, void *at, size_t bytes);
	/*
	 * Has the host map the pages of an arena or window now, for reading and
	 * writing; what it does not hold it supplies as zeroes.  -errno.
	 */
	int (*populate)(struct mf_plat *plat, void *at, size_t bytes);
	/* A wish for huge pages there; the host may ignore it. */
	void (*advise_huge)(struct mf_plat *plat, void *at, size_t bytes);
	/* Mappings this process may have (vm.max_map_count) and has now. */
	void (*mappings)(struct mf_plat *plat, uint64_t *max, uint64_t *used);

	/* Zeroed memory for tables, taken from the host only as it is touched; page aligned. NULL: none. */
	void *(*meta_alloc)(struct mf_plat *plat, size_t bytes);
	void (*meta_free)(struct mf_plat *plat, void *at, size_t bytes);

	uint64_t (*now_ns)(struct mf_plat *plat); /* monotonic */
	/* The CPU the caller runs on (host number); a hint by the time it is used. */
	int (*current_cpu)(struct mf_plat *plat);
	void (*destroy)(struct mf_plat *plat);
};

struct mf_plat {
	const struct mf_plat_ops *ops;
};

/* The real host.  -errno. */
int mf_plat_host_create(struct mf_plat **out);

#endif
