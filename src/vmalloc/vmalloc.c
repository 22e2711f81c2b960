/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A range from its request to its address and back, and the engine's birth and
 * end.
 *
 *   check -> plan -> contiguous? large and small pages -> linear or mapped -> touched
 *
 * and on a failure the same way back: pages given back, the rotation where it was.
 *
 * Locks: none here; area.c and purge.c take theirs.
 */
#include "vmalloc/vmalloc_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GIB (UINT64_C(1) << 30)
#define LEAST_RANGE (64 * GIB)
#define MOST_RANGE (32768 * GIB)
#define RANGE_FACTOR 16

#define HUGE_BYTES ((uint64_t)MEMFS_PAGE_SIZE << MF_HUGE_ORDER)

#define LAZY_BYTES (UINT64_C(32) << 20) /* a doubling of CPUs (behaviour 3.1) */

/* Mappings left to the rest of the process. */
#define SPARE_MAPPINGS 2048

/* --- birth and end --- */

static uint64_t range_bytes(const struct mf_topo *topo)
{
	uint64_t bytes = topo->nr_pages * MEMFS_PAGE_SIZE * RANGE_FACTOR;

	bytes = (bytes + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1);
	if (bytes < LEAST_RANGE)
		return LEAST_RANGE;
	return bytes > MOST_RANGE ? MOST_RANGE : bytes;
}

/* A host that limits addresses gets by with less, down to what the nodes hold. */
static int reserve_range(struct mf_vmalloc *vm)
{
	uint64_t least = vm->topo->nr_pages * MEMFS_PAGE_SIZE;
	int error;

	for (vm->bytes = range_bytes(vm->topo);; vm->bytes /= 2) {
		error = vm->plat->ops->reserve(vm->plat, vm->bytes, &vm->base);
		if (!error || vm->bytes / 2 < least || vm->bytes / 2 < HUGE_BYTES)
			return error;
	}
}

static void init_knobs(struct mf_vmalloc *vm)
{
	unsigned cpus = vm->topo->nr_cpus, doublings = cpus ? 32 - (unsigned)__builtin_clz(cpus) : 1;
	uint64_t max, used;

	vm->plat->ops->mappings(vm->plat, &max, &used);
	used += SPARE_MAPPINGS;
	vm->knobs = (struct mf_vmalloc_knobs){
		.large_order = MF_VMALLOC_BOUNDED,
		.linear = 1,
		.small_pages = 8,
		.lazy_max = doublings * (LAZY_BYTES >> MEMFS_PAGE_SHIFT),
		.max_mappings = max > used ? max - used : 0,
	};
}

static int build(struct mf_vmalloc *vm)
{
	int error = reserve_range(vm);

	if (error) {
		vm->base = NULL;
		return error;
	}
	error = mf_space_init(&vm->space, vm->fault, (uintptr_t)vm->base, vm->bytes);
	if (!error)
		error = mf_linear_create(vm);
	if (!error)
		error = mf_page_add_shrinker(vm->page, mf_purge_shrink, vm);
	return error;
}

int mf_vmalloc_create(struct mf_page *pg, struct mf_plat *plat, struct mf_vmalloc **out)
{
	struct mf_vmalloc *vm = aligned_alloc(64, (sizeof(*vm) + 63) & ~(size_t)63);
	int error;

	if (!vm)
		return -ENOMEM;
	memset(vm, 0, sizeof(*vm));
	vm->page = pg;
	vm->plat = plat;
	vm->topo = mf_page_topo(pg);
	vm->stat = mf_page_stat(pg);
	vm->fault = mf_page_fault(pg);
	mf_lock_init(&vm->lock, MF_LOCK_VMALLOC);
	pthread_mutex_init(&vm->purge_mutex, NULL);
	init_knobs(vm);
	error = build(vm);
	if (error) {
		mf_vmalloc_destroy(vm);
		return error;
	}
	*out = vm;
	return 0;
}

/* Areas that are still in use become lazy ones, and a purge ends them all. */
static void retire_all(struct mf_vmalloc *vm)
{
	for (struct mf_extent *at = mf_space_first(&vm->space); at; at = mf_space_next(at)) {
		struct mf_vm_area *area = at->owner;

		/* No purge meanwhile: it would free the extents under the walk. */
		if (area && area->ready && mf_area_retire(vm, mf_area_address(area), area->vmap))
			mf_purge_queue(vm, area);
	}
}

void mf_vmalloc_destroy(struct mf_vmalloc *vm)
{
	mf_page_remove_shrinker(vm->page, mf_purge_shrink, vm);
	if (vm->space.size) {
		retire_all(vm);
		mf_purge_areas(vm);
		mf_area_bury(vm);
		mf_space_destroy(&vm->space);
	}
	mf_linear_destroy(vm);
	if (vm->base)
		vm->plat->ops->unreserve(vm->plat, vm->base, vm->bytes);
	pthread_mutex_destroy(&vm->purge_mutex);
	mf_lock_destroy(&vm->lock);
	free(vm);
}

void mf_vmalloc_get_knobs(const struct mf_vmalloc *vm, struct mf_vmalloc_knobs *out)
{
	*out = vm->knobs;
}

void mf_vmalloc_set_knobs(struct mf_vmalloc *vm, const struct mf_vmalloc_knobs *knobs)
{
	__atomic_store_n(&vm->knobs.large_order, knobs->large_order, __ATOMIC_RELAXED);
	__atomic_store_n(&vm->knobs.linear, knobs->linear, __ATOMIC_RELAXED);
	__atomic_store_n(&vm->knobs.small_pages, knobs->small_pages, __ATOMIC_RELAXED);
	__atomic_store_n(&vm->knobs.lazy_max, knobs->lazy_max, __ATOMIC_RELAXED);
	__atomic_store_n(&vm->knobs.max_mappings, knobs->max_mappings, __ATOMIC_RELAXED);
}

/* --- a request --- */

static int check(struct mf_vm_take *t, const struct mf_vmalloc_request *request)
{
	uint64_t pages = request->size / MEMFS_PAGE_SIZE + (request->size % MEMFS_PAGE_SIZE != 0);

	if (!request->size)
		return mf_why(t->why, t->why_size, -EINVAL, "size is 0");
	if (request->align & (request->align - 1))
		return mf_why(t->why, t->why_size, -EINVAL, "align %" PRIu64 " is no power of two",
			      request->align);
	if (pages > t->vm->topo->nr_pages)
		return mf_why(t->why, t->why_size, -ENOMEM,
			      "%" PRIu64 " pages asked, all nodes hold %" PRIu64, pages,
			      t->vm->topo->nr_pages);
	t->pages = pages;
	return 0;
}

static int plan(struct mf_vm_take *t)
{
	int error = mf_page_plan(t->vm->page, t->place, &t->page, t->pages, &t->plan);

	return error ? mf_why(t->why, t->why_size, error, "the node named has no memory") : 0;
}

static bool is_aligned(const struct mf_vm_take *t, uint64_t align)
{
	uintptr_t address = (uintptr_t)mf_page_address(t->vm->page, t->runs.run[0].pfn);

	return align <= 1 || !(address & (align - 1));
}

/* One run is best, linear or as one mapping; a small mapped range does without (behaviour 3.5). */
static bool wants_contiguous(const struct mf_vm_take *t)
{
	return MF_VM_KNOB(t->vm, large_order) != MF_VMALLOC_OFF &&
	       (MF_VM_KNOB(t->vm, linear) || t->pages >= MF_VM_KNOB(t->vm, small_pages));
}

static void touch(struct mf_vm_take *t, void *address)
{
	/* What the host cannot supply now it will be asked for again when it is used. */
	t->vm->plat->ops->populate(t->vm->plat, address, t->pages << MEMFS_PAGE_SHIFT);
}

/* From pages to an address; the pages are gone if it fails. */
static int show(struct mf_vm_take *t, const struct mf_vmalloc_request *request, uint64_t align, bool huge,
		void **address)
{
	int error = 0;

	if (t->runs.nr == 1 && MF_VM_KNOB(t->vm, linear) && is_aligned(t, align))
		*address = mf_linear_start(t->vm, t->runs.run[0].pfn, t->runs.run[0].pages);
	else
		error = mf_area_create(t->vm, &t->runs, align, false, huge, request->caller, address, t->why,
				       t->why_size);
	if (error) {
		mf_take_undo(t);
		return error;
	}
	mf_runs_free(&t->runs);
	if (request->touch)
		touch(t, *address);
	return 0;
}

/* In 2 MiB blocks throughout, else not at all: -EAGAIN, planned anew for small pages (behaviour 3.2). */
static int try_huge(struct mf_vm_take *t, const struct mf_vmalloc_request *request, void **address)
{
	uint64_t align = request->align > HUGE_BYTES ? request->align : HUGE_BYTES;
	uint64_t pages = t->pages;
	int error;

	t->pages = (pages + MF_PAGEBLOCK_PAGES - 1) & ~(uint64_t)(MF_PAGEBLOCK_PAGES - 1);
	error = plan(t);
	if (!error)
		error = mf_take_huge(t);
	if (!error)
		error = show(t, request, align, true, address);
	if (!error)
		return 0;
	mf_vm_count(t->vm, MF_STAT_vmalloc_huge_fallback, 1);
	t->pages = pages;
	error = plan(t);
	return error ? error : -EAGAIN;
}

static int try_small(struct mf_vm_take *t, const struct mf_vmalloc_request *request, void **address)
{
	int error = wants_contiguous(t) ? mf_take_contiguous(t) : -ENOMEM;

	if (error)
		error = mf_take_pages(t);
	if (error == -EINTR)
		return mf_why(t->why, t->why_size, error, "interrupted");
	if (error)
		return mf_why(t->why, t->why_size, error, "%" PRIu64 " pages asked, so many were not there",
			      t->pages);
	return show(t, request, request->align, false, address);
}

static int attempt(struct mf_vm_take *t, const struct mf_vmalloc_request *request, void **address)
{
	bool huge = request->huge && t->pages >= MF_PAGEBLOCK_PAGES;
	int error = huge ? try_huge(t, request, address) : plan(t);

	if (huge ? error == -EAGAIN : !error)
		error = try_small(t, request, address);
	return error;
}

/* The kernel tries addresses and mappings again after a while, if failing is no choice (behaviour 3.2). */
static bool again(const struct mf_vm_take *t, int error)
{
	return error && error != -EINTR && error != -EINVAL && t->page.gfp & MEMFS___GFP_NOFAIL &&
	       t->page.gfp & MEMFS___GFP_DIRECT_RECLAIM;
}

int mf_vmalloc_alloc(struct mf_vmalloc *vm, struct mf_placement *place,
		     const struct mf_vmalloc_request *request, void **address, char *why, size_t why_size)
{
	struct mf_vm_take
		t; /* field by field: its plan and its list are large, and filled when they are made */
	int error;

	t.vm = vm;
	t.place = place;
	t.page = request->page;
	t.pages = 0;
	t.why = why;
	t.why_size = why_size;
	mf_vm_count(vm, MF_STAT_vmalloc_requests, 1);
	mf_runs_init(&t.runs);
	error = check(&t, request);
	if (!error)
		error = attempt(&t, request, address);
	while (t.pages && again(&t, error)) {
		error = mf_page_wait(vm->page, t.page.cancel);
		error = error ? mf_why(why, why_size, error, "interrupted") : attempt(&t, request, address);
	}
	if (error)
		mf_vm_count(vm, MF_STAT_vmalloc_fail, 1);
	else if (t.plan.rotates)
		mf_page_plan_commit(place, &t.plan, t.pages);
	return error;
}

/* A local policy, nothing special asked: what mf_linear_quick() can tell at a glance. */
static bool is_plain(const struct mf_placement *place, size_t size, memfs_gfp gfp)
{
	return size && size <= HUGE_BYTES && (gfp & ~MEMFS___GFP_ZERO) == MEMFS_GFP_KERNEL &&
	       __atomic_load_n(&place->fast, __ATOMIC_RELAXED) & (MF_FAST_LOCAL | MF_FAST_PINNED);
}

/* Apart, so that the quick ranges do not pay for its request. */
static __attribute__((noinline)) void *ask_properly(struct mf_vmalloc *vm, struct mf_placement *place,
						    size_t size, memfs_gfp gfp, const char *caller)
{
	struct mf_vmalloc_request request = {
		.size = size,
		.page = { .gfp = gfp, .node = MF_NODE_BY_POLICY, .cpu = MF_CPU_OF_TASK },
		.caller = caller,
	};
	void *address;
	int error = mf_vmalloc_alloc(vm, place, &request, &address, NULL, 0);

	if (!error)
		return address;
	errno = -error;
	return NULL;
}

void *mf_vmalloc_simple(struct mf_vmalloc *vm, struct mf_placement *place, size_t size, memfs_gfp gfp,
			const char *caller)
{
	uint64_t pages = (size + MEMFS_PAGE_SIZE - 1) >> MEMFS_PAGE_SHIFT;
	void *address = is_plain(place, size, gfp) ? mf_linear_quick(vm, place, pages) : NULL;

	if (!address)
		return ask_properly(vm, place, size, gfp, caller);
	mf_vm_count(vm, MF_STAT_vmalloc_requests, 1);
	if (mf_page_clears(vm->page, gfp))
		memset(address, 0, pages << MEMFS_PAGE_SHIFT);
	return address;
}

int mf_vmalloc_map(struct mf_vmalloc *vm, size_t n, const memfs_pfn *pfns, const char *caller, void **address,
		   char *why, size_t why_size)
{
	struct mf_runs runs;
	int error = n ? 0 : mf_why(why, why_size, -EINVAL, "no pages");

	mf_runs_init(&runs);
	for (size_t i = 0; i < n && !error; i++) {
		if (mf_page_zone(vm->page, pfns[i].v) < 0)
			error = mf_why(why, why_size, -EINVAL, "pfn %u is no page", pfns[i].v);
		else if (mf_runs_add(vm, &runs, pfns[i].v, 1))
			error = mf_why(why, why_size, -ENOMEM, "no memory to list the pages");
	}
	if (!error)
		error = mf_area_create(vm, &runs, 0, true, false, caller, address, why, why_size);
	mf_runs_free(&runs);
	return error;
}

/* --- back --- */

static int free_area(struct mf_vmalloc *vm, const void *address, bool vmap)
{
	struct mf_vm_area *area = mf_area_retire(vm, address, vmap);

	if (!area)
		return -EINVAL;
	mf_purge_later(vm, area);
	return 0;
}

int mf_vmalloc_free(struct mf_vmalloc *vm, const struct mf_placement *place, const void *address)
{
	uint32_t pfn;

	if (mf_vm_in_range(vm, address))
		return free_area(vm, address, false);
	if ((uintptr_t)address % MEMFS_PAGE_SIZE || !mf_page_address_pfn(vm->page, address, &pfn))
		return -EINVAL;
	return mf_linear_free(vm, place, pfn);
}

int mf_vmalloc_unmap(struct mf_vmalloc *vm, const void *address)
{
	return mf_vm_in_range(vm, address) ? free_area(vm, address, true) : -EINVAL;
}
