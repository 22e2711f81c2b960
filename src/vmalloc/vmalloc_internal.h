/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of src/vmalloc/ share.
 *
 *   vmalloc.c   a request from its check to its address, and back
 *   take.c      the pages of a range, node by node, large blocks first
 *   runs.c      a list of runs
 *   linear.c    ranges at their linear address, and parked ones
 *   area.c      mapped areas: addresses, windows, the budget of mappings
 *   purge.c     lazily freed areas
 *   info.c      looking and checking
 */
#ifndef MF_VMALLOC_INTERNAL_H
#define MF_VMALLOC_INTERNAL_H

#include "base/why.h"
#include "vmalloc/space.h"
#include "vmalloc/vmalloc.h"

#define MF_HUGE_ORDER MF_PAGEBLOCK_ORDER

/* --- runs.c --- */

/* Growing; the first few need no memory of their own. */
struct mf_runs {
	struct mf_run *run;
	uint32_t nr, room;
	uint64_t pages;
	struct mf_run few[8];
};
void mf_runs_init(struct mf_runs *runs);
void mf_runs_free(struct mf_runs *runs);
/* Joined to the last one if it follows it in its zone.  -ENOMEM. */
int mf_runs_add(const struct mf_vmalloc *vm, struct mf_runs *runs, uint32_t pfn, uint32_t pages);
/* By address, neighbours joined: as few as there can be. */
void mf_runs_sort(const struct mf_vmalloc *vm, struct mf_runs *runs);

/* --- area.c --- */

struct mf_vm_area {
	struct mf_extent *extent; /* lock: addresses, guard included */
	uint64_t pages;
	struct mf_run *runs; /* by rising offset; constant from ready on */
	uint32_t *first;     /* by run: the number of its first page in the area; behind the runs in memory */
	uint32_t nr_runs;
	bool ready; /* lock: mapped and in use */
	bool vmap;  /* the pages are somebody else's */
	bool huge;
	const char *caller;
	struct mf_vm_area *next; /* lock: of the lazy or the dead */
};

#define MF_PARK_ROWS 64
#define MF_PARK_SLOTS 8

struct mf_vmalloc {
	struct mf_page *page;
	struct mf_plat *plat;
	const struct mf_topo *topo;
	struct mf_stat_set *stat;
	struct mf_fault *fault;
	void *base; /* the reserved range */
	uint64_t bytes;

	struct mf_lock lock;	 /* MF_LOCK_VMALLOC */
	struct mf_space space;	 /* lock */
	struct mf_vm_area *lazy; /* lock: newest first */
	struct mf_vm_area *dead; /* lock: descriptors to be freed; see mf_area_forget */
	uint64_t nr_lazy;	 /* lock: areas */
	uint64_t lazy_pages;	 /* lock: of theirs, guards not counted; vmaps have none */
	uint64_t lazy_span;	 /* lock: addresses in pages, guards included: what the bound is about */
	uint64_t lazy_mappings;	 /* lock: runs and guards of theirs */
	uint64_t nr_areas;	 /* lock: in use */
	uint64_t area_pages;	 /* lock: of those */
	uint64_t mappings;	 /* lock: runs and guards */

	pthread_mutex_t purge_mutex;   /* one purge at a time; outermost, not ranked */
	struct mf_vmalloc_knobs knobs; /* single words, relaxed; written under the caller's CONFIG lock */

	uint32_t *linear; /* by pfn: pages of the linear range that starts there, 0 none; its owner writes */
	uint8_t *line_used; /* by line: a linear range may start in it (never cleared but by a walk) */
	struct {
		_Atomic uint64_t slot[MF_PARK_SLOTS]; /* pages << 32 | pfn; 0 empty */
	} __attribute__((aligned(64))) park[MF_PARK_ROWS];
};

#define MF_VM_KNOB(vm, field) __atomic_load_n(&(vm)->knobs.field, __ATOMIC_RELAXED)

static inline void mf_vm_count(struct mf_vmalloc *vm, enum mf_stat_id id, uint64_t n)
{
	mf_stat_add(vm->stat, id, n);
}

/* One request on its way. */
struct mf_vm_take {
	struct mf_vmalloc *vm;
	struct mf_placement *place;
	struct mf_page_request page;
	struct mf_page_plan plan;
	uint64_t pages; /* wanted */
	int wanted;	/* node of the share that is being filled */
	struct mf_runs runs;
	char *why;
	size_t why_size;
};

/*
 * Addresses, windows, guard: the runs become an area, which owns the list from
 * then on.  -ENOSPC, -ENOMEM, the host's errno; then nothing is left of it.
 */
int mf_area_create(struct mf_vmalloc *vm, struct mf_runs *runs, uint64_t align, bool vmap, bool huge,
		   const char *caller, void **address, char *why, size_t why_size);
/* The area that starts there and is in use is taken out of use; NULL: there is none of the kind. */
struct mf_vm_area *mf_area_retire(struct mf_vmalloc *vm, const void *address, bool vmap);
/*
 * Its windows are gone: gives the addresses back and forgets it. lock is held.
 * The descriptor is freed by the next one to make an area: a purge may run in a
 * signal handler that has interrupted the heap.
 */
void mf_area_forget(struct mf_vmalloc *vm, struct mf_vm_area *area);
void mf_area_bury(struct mf_vmalloc *vm); /* frees the dead */
static inline char *mf_area_address(const struct mf_vm_area *area)
{
	return (char *)(uintptr_t)area->extent->start;
}
static inline bool mf_vm_in_range(const struct mf_vmalloc *vm, const void *address)
{
	return (uint64_t)((uintptr_t)address - (uintptr_t)vm->base) < vm->bytes;
}

/* --- take.c --- */

/* The pages of a range into t->runs, sorted; -ENOMEM, -EINTR, -EINVAL: none are left. */
int mf_take_pages(struct mf_vm_take *t);
/* All in blocks of 2 MiB; -ENOMEM: none are left. */
int mf_take_huge(struct mf_vm_take *t);
/* One contiguous run of the only node that has a share, if the bound allows it. */
int mf_take_contiguous(struct mf_vm_take *t);
void mf_take_undo(struct mf_vm_take *t);

/* --- linear.c --- */

int mf_linear_create(struct mf_vmalloc *vm); /* -ENOMEM */
void mf_linear_destroy(struct mf_vmalloc *vm);
/* The run is a range from now on; its address. */
void *mf_linear_start(struct mf_vmalloc *vm, uint32_t pfn, uint32_t pages);
/* One that costs a few instructions, for a placement that is local with every node allowed; NULL: ask properly. */
void *mf_linear_quick(struct mf_vmalloc *vm, struct mf_placement *place, uint64_t pages);
/* -EINVAL: no range starts there.  place NULL: nothing is parked. */
int mf_linear_free(struct mf_vmalloc *vm, const struct mf_placement *place, uint32_t pfn);
/* Pages of the linear range that starts at @pfn, 0 none. */
static inline uint32_t mf_linear_pages(const struct mf_vmalloc *vm, uint32_t pfn)
{
	return __atomic_load_n(&vm->linear[pfn], __ATOMIC_RELAXED);
}
uint64_t mf_linear_unpark(struct mf_vmalloc *vm); /* all parked runs back; pages */
/* By rising address. */
typedef void mf_linear_visit_fn(void *arg, uint32_t pfn, uint32_t pages);
void mf_linear_for_each(struct mf_vmalloc *vm, mf_linear_visit_fn *visit, void *arg);
/* May a block of @order be taken without touching the last large ones?  (tune/vmalloc_large_order) */
bool mf_take_within_bound(struct mf_vmalloc *vm, const struct mf_page_free_blocks *free, unsigned order);

/* --- purge.c --- */

/* A retired area waits for a purge; true: enough of them wait. */
bool mf_purge_queue(struct mf_vmalloc *vm, struct mf_vm_area *area);
void mf_purge_later(struct mf_vmalloc *vm, struct mf_vm_area *area); /* and purges if so */
uint64_t mf_purge_areas(struct mf_vmalloc *vm);			     /* pages given back */
mf_shrinker_fn mf_purge_shrink;

#endif
