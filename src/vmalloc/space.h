/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A range of addresses, partitioned into extents that are free or busy.
 *
 * One augmented red-black tree by address holds all extents; each knows the
 * largest free extent of its subtree, so the lowest address that fits is found
 * in logarithmic time (behaviour 3.1: strict first fit by address).
 *
 * Invariants: the extents cover the range without gap or overlap; no two free
 * extents touch; max_free of each node is exact; nr_busy, nr_free and
 * free_bytes are what counting gives.
 *
 * Threads: the caller's lock around everything.  Nodes come from the heap, a
 * few vanished ones are kept; giving back never fails.
 */
#ifndef MF_VMALLOC_SPACE_H
#define MF_VMALLOC_SPACE_H

#include "base/outbuf.h"
#include "base/rbtree.h"
#include "fault/fault.h"

#include <stdbool.h>
#include <stdint.h>

#define MF_SPACE_GRANULE UINT64_C(4096) /* every address and size is a multiple of it */

struct mf_extent {
	struct mf_rb_node node; /* must be first */
	uint64_t start, size;	/* bytes */
	uint64_t max_free;	/* largest free extent at or below this node, bytes */
	void *owner;		/* busy: whoever asked for it; NULL: free */
};

struct mf_space {
	struct mf_rb_tree tree;
	struct mf_fault *fault; /* meta_alloc is visited for each new node */
	uint64_t start, size;
	uint64_t nr_busy, nr_free; /* extents */
	uint64_t free_bytes;
	struct mf_extent *spare; /* nodes that vanished, linked by owner */
	unsigned nr_spare;
};

int mf_space_init(struct mf_space *space, struct mf_fault *fault, uint64_t start,
		  uint64_t size);	       /* -ENOMEM */
void mf_space_destroy(struct mf_space *space); /* busy extents vanish with it */

/*
 * The lowest start, a multiple of @align, of a free place of @size bytes.
 * -EINVAL: size 0 or no multiple of the granule, align no power of two (0 and 1
 * mean the granule), owner NULL.  -ENOSPC: no such place.  -ENOMEM: no node.
 */
int mf_space_alloc(struct mf_space *space, uint64_t size, uint64_t align, void *owner,
		   struct mf_extent **out);
/* The extent is free and merged with free neighbours; the pointer is void. */
void mf_space_free(struct mf_space *space, struct mf_extent *extent);

/* The extent, busy or free, that holds the address; NULL outside the range. */
struct mf_extent *mf_space_find(const struct mf_space *space, uint64_t address);
struct mf_extent *mf_space_first(const struct mf_space *space);
struct mf_extent *mf_space_next(const struct mf_extent *extent);
uint64_t mf_space_largest_free(const struct mf_space *space);

/* Counts everything anew; a line a violation, how many. */
unsigned mf_space_check(const struct mf_space *space, struct mf_outbuf *out);
/* Longest way from the root, in nodes (tests: logarithmic). */
unsigned mf_space_depth(const struct mf_space *space);

#endif
