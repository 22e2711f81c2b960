/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranges of any size that are contiguous for their user, over pages that need
 * not be.
 *
 *   plan     how many pages belong to which node, page by page (page/page.h)
 *   take     within each share the largest blocks of that node, then small
 *            pages of it, then other nodes
 *   show     one contiguous run is used where it is (linear); otherwise its runs
 *            are mapped one behind the other into the reserved range (mapped),
 *            with a guard page behind them
 *
 * A mapped area that is freed keeps its pages and its addresses until a purge,
 * which unmaps many areas at once; a linear run that is freed may be parked
 * for the next range of its size.  Both come back under pressure (a shrinker).
 * The order of pages inside a range is by address, whatever the policy: pages
 * of a node stand together.
 *
 * Invariants, when nothing runs:
 *   every address of the reserved range is mapped by one area or PROT_NONE
 *   a page belongs to one range, is parked, or is the page allocator's
 *   mappings = sum over mapped areas, lazy ones too, of their runs + 1 <= limit
 *   an address is not used again between its free and the purge
 *
 * Threads: any, but not inside a signal handler.  Locks: MF_LOCK_VMALLOC, which
 * is never held while pages are taken or the host is asked to map.
 */
#ifndef MF_VMALLOC_H
#define MF_VMALLOC_H

#include "base/outbuf.h"
#include "page/page.h"

struct mf_vmalloc;

enum mf_vmalloc_large { MF_VMALLOC_BOUNDED, MF_VMALLOC_OFF, MF_VMALLOC_MAX };

struct mf_vmalloc_knobs {
	int large_order;       /* enum mf_vmalloc_large */
	int linear;	       /* 1: a contiguous run is used at its linear address */
	unsigned small_pages;  /* a mapped range of fewer pages asks for no large block; 8 */
	uint64_t lazy_max;     /* pages freed lazily before a purge; 0: purge at once, park nothing */
	uint64_t max_mappings; /* runs and guards that may be mapped at once */
};

struct mf_vmalloc_request {
	uint64_t size;		     /* bytes; rounded up to pages */
	uint64_t align;		     /* bytes; 0: a page */
	struct mf_page_request page; /* gfp, node, vma, cpu, cancel */
	bool huge;		     /* 2 MiB blocks at 2 MiB boundaries, or else small pages throughout */
	bool touch;		     /* the host maps it all now */
	const char *caller;	     /* static text for vmallocinfo */
};

/* The reserved range: 16 times the managed memory, 64 GiB to 32 TiB, less if the host refuses.  -ENOMEM. */
int mf_vmalloc_create(struct mf_page *pg, struct mf_plat *plat, struct mf_vmalloc **out);
void mf_vmalloc_destroy(struct mf_vmalloc *vm); /* areas still there go back */

/*
 * -EINVAL (size 0, alignment no power of two, node), -ENOMEM (memory, or more
 * than the machine has), -ENOSPC (addresses, mappings), -EINTR (cancelled), or
 * what the host said.  On failure everything is as before and @why says which.
 */
int mf_vmalloc_alloc(struct mf_vmalloc *vm, struct mf_placement *place,
		     const struct mf_vmalloc_request *request, void **address, char *why, size_t why_size);
/*
 * Pages the caller holds, mapped one behind the other; always mapped.  They stay
 * the caller's.  -EINVAL (none, no page of ours), -ENOMEM, -ENOSPC.
 */
int mf_vmalloc_map(struct mf_vmalloc *vm, size_t n, const memfs_pfn *pfns, const char *caller, void **address,
		   char *why, size_t why_size);
/* @address is what alloc (map for unmap) returned.  -EINVAL: it is not, or freed already. */
int mf_vmalloc_free(struct mf_vmalloc *vm, const struct mf_placement *place, const void *address);
int mf_vmalloc_unmap(struct mf_vmalloc *vm, const void *address);

/* A few instructions for the common case: GFP_KERNEL by a local policy. NULL and errno. */
void *mf_vmalloc_simple(struct mf_vmalloc *vm, struct mf_placement *place, size_t size, memfs_gfp gfp,
			const char *caller);

/* The page that @address lies in, mapped or linear; false: none. */
bool mf_vmalloc_page(struct mf_vmalloc *vm, const void *address, uint32_t *pfn);
/* The pages of the range that starts at @address, in the order of its bytes; at most max; how many there are. */
uint64_t mf_vmalloc_pages(struct mf_vmalloc *vm, const void *address, memfs_pfn *pfns, uint64_t max);

/* Everything freed lazily or parked goes back; pages given back. */
uint64_t mf_vmalloc_purge(struct mf_vmalloc *vm);
void mf_vmalloc_tick(struct mf_vmalloc *vm); /* purges if a zone is below its low mark */

void mf_vmalloc_get_knobs(const struct mf_vmalloc *vm, struct mf_vmalloc_knobs *out);
/* Does not purge: whoever lowers a bound does, with no lock held. */
void mf_vmalloc_set_knobs(struct mf_vmalloc *vm, const struct mf_vmalloc_knobs *knobs);

/* --- looking --- */

struct mf_vmalloc_info {
	uint64_t start, size; /* the reserved range */
	uint64_t free_bytes, largest_free;
	uint64_t nr_free; /* free places */
	uint64_t areas;	  /* mapped areas in use */
	uint64_t lazy_areas;
	uint64_t used_pages;   /* of ranges in use, mapped and linear */
	uint64_t lazy_pages;   /* pages a purge gives back: lazily freed and parked */
	uint64_t parked_pages; /* the parked ones among them */
	uint64_t mappings, max_mappings;
};
void mf_vmalloc_info(struct mf_vmalloc *vm, struct mf_vmalloc_info *out);
/* Parked alone; no lock.  They count as given back, though no zone or list has them. */
uint64_t mf_vmalloc_parked(const struct mf_vmalloc *vm);

struct mf_vmalloc_area {
	uint64_t start, size; /* bytes, a mapped area's guard included */
	uint64_t pages;
	uint32_t runs;
	bool linear, huge, vmap;
	const char *caller;		   /* NULL: not known */
	uint64_t by_node[MEMFS_MAX_NODES]; /* pages */
};
typedef void mf_vmalloc_visit_fn(void *arg, const struct mf_vmalloc_area *area);
/* Ranges in use by rising address; @lazy: the lazily freed instead.  -ENOMEM. The visitor holds no lock of ours. */
int mf_vmalloc_for_each(struct mf_vmalloc *vm, bool lazy, mf_vmalloc_visit_fn *visit, void *arg);
/* Free places by rising address. */
int mf_vmalloc_for_each_free(struct mf_vmalloc *vm, void (*visit)(void *arg, uint64_t start, uint64_t size),
			     void *arg);

/* Counts everything anew; a line a violation, how many. */
unsigned mf_vmalloc_check(struct mf_vmalloc *vm, struct mf_outbuf *out);

#endif
