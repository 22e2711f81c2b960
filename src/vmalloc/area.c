/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mapped areas: addresses for the pages and a guard page behind them, a window
 * a run, and the budget of mappings.
 *
 * The host allows a process so many mappings; each window takes one and each
 * guard may take another.  They are charged before the host is asked, so that a
 * range is refused in words and not by the host half-way, or worse, somewhere
 * else in the process.
 *
 * Invariants: an area is in the tree of extents from before its first window
 * until after its last one is sealed; a guard is never mapped.
 *
 * Locks: lock for the extents, the counts and the lists; windows are mapped and
 * sealed without it, by the one who has the area to himself.
 */
#include "vmalloc/vmalloc_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES ((uint64_t)MEMFS_PAGE_SIZE)

/* --- descriptors --- */

static void fill_area(struct mf_vm_area *area, const struct mf_runs *runs)
{
	uint32_t page = 0;

	memcpy(area->runs, runs->run, runs->nr * sizeof(*area->runs));
	area->nr_runs = runs->nr;
	area->pages = runs->pages;
	area->first = (uint32_t *)(area->runs + runs->nr);
	for (uint32_t i = 0; i < runs->nr; i++) {
		area->first[i] = page;
		page += runs->run[i].pages;
	}
}

static struct mf_vm_area *new_area(struct mf_vmalloc *vm, struct mf_runs *runs)
{
	struct mf_vm_area *area = NULL;

	if (!mf_fault_hit(vm->fault, MF_FAULT_meta_alloc))
		area = calloc(1, sizeof(*area));
	if (area && !mf_fault_hit(vm->fault, MF_FAULT_meta_alloc))
		area->runs = malloc(runs->nr * (sizeof(*area->runs) + sizeof(*area->first)));
	if (area && !area->runs) {
		free(area);
		return NULL;
	}
	if (area)
		fill_area(area, runs);
	return area;
}

static void free_area(struct mf_vm_area *area)
{
	free(area->runs);
	free(area);
}

/* --- addresses and budget --- */

static uint64_t cost(const struct mf_vm_area *area)
{
	return (uint64_t)area->nr_runs + 1;
}

static int reserve(struct mf_vmalloc *vm, struct mf_vm_area *area, uint64_t align)
{
	uint64_t size = (area->pages << MEMFS_PAGE_SHIFT) + GUARD_BYTES;
	int error;

	if (mf_fault_hit(vm->fault, MF_FAULT_vmalloc_area))
		return -ENOSPC;
	mf_lock_acquire(&vm->lock);
	error = vm->mappings + cost(area) > MF_VM_KNOB(vm, max_mappings) ? -EMFILE : 0;
	if (!error)
		error = mf_space_alloc(&vm->space, size, align, area, &area->extent);
	if (!error)
		vm->mappings += cost(area);
	mf_lock_release(&vm->lock);
	return error;
}

static int explain(struct mf_vmalloc *vm, const struct mf_vm_area *area, int error, char *why,
		   size_t why_size)
{
	uint64_t used;

	if (error == -EMFILE) {
		mf_lock_acquire(&vm->lock);
		used = vm->mappings;
		mf_lock_release(&vm->lock);
		return mf_why(why, why_size, -ENOSPC,
			      "%" PRIu64 " mappings needed, %" PRIu64 " of %" PRIu64
			      " are used (tune/vmalloc_max_mappings, below vm.max_map_count)",
			      cost(area), used, MF_VM_KNOB(vm, max_mappings));
	}
	if (error == -ENOSPC)
		return mf_why(why, why_size, error,
			      "no %" PRIu64 " bytes of addresses in a row (%" PRIu64 " and a guard page)",
			      (area->pages << MEMFS_PAGE_SHIFT) + GUARD_BYTES,
			      area->pages << MEMFS_PAGE_SHIFT);
	return mf_why(why, why_size, error, "no memory for the area's descriptor");
}

/* What a purge can bring back is used before anything is refused. */
static int reserve_or_purge(struct mf_vmalloc *vm, struct mf_vm_area *area, uint64_t align, char *why,
			    size_t why_size)
{
	int error = reserve(vm, area, align);

	if (error == -ENOSPC || error == -EMFILE) {
		mf_purge_areas(vm);
		error = reserve(vm, area, align);
	}
	return error ? explain(vm, area, error, why, why_size) : 0;
}

/* lock is held. */
void mf_area_forget(struct mf_vmalloc *vm, struct mf_vm_area *area)
{
	mf_lock_assert_held(&vm->lock);
	vm->mappings -= cost(area);
	mf_space_free(&vm->space, area->extent);
	area->next = vm->dead;
	vm->dead = area;
}

void mf_area_bury(struct mf_vmalloc *vm)
{
	struct mf_vm_area *dead;

	mf_lock_acquire(&vm->lock);
	dead = vm->dead;
	vm->dead = NULL;
	mf_lock_release(&vm->lock);
	while (dead) {
		struct mf_vm_area *next = dead->next;

		free_area(dead);
		dead = next;
	}
}

/* --- windows --- */

static int map_run(struct mf_vmalloc *vm, char *at, const struct mf_run *run)
{
	mf_vm_count(vm, MF_STAT_vmalloc_map_calls, 1);
	if (mf_fault_hit(vm->fault, MF_FAULT_vmalloc_map))
		return -ENOMEM;
	return mf_page_window(vm->page, at, run->pfn, run->pages);
}

/* Until all are mapped or one is refused; *done: the pages mapped. */
static int map_runs(struct mf_vmalloc *vm, const struct mf_vm_area *area, uint64_t *done)
{
	char *at = mf_area_address(area);
	int error = 0;

	*done = 0;
	for (uint32_t i = 0; i < area->nr_runs && !error; i++) {
		error = map_run(vm, at + (*done << MEMFS_PAGE_SHIFT), &area->runs[i]);
		if (!error)
			*done += area->runs[i].pages;
	}
	return error;
}

/*
 * Nobody has seen the area.  If the host does not unmap its windows either, its
 * addresses must not be given out: they wait for a purge, without the pages.
 */
static void abandon(struct mf_vmalloc *vm, struct mf_vm_area *area, uint64_t done)
{
	int error = 0;

	if (done) {
		mf_vm_count(vm, MF_STAT_vmalloc_seal_calls, 1);
		error = vm->plat->ops->window_seal(vm->plat, mf_area_address(area), done << MEMFS_PAGE_SHIFT);
	}
	if (error) {
		area->vmap = true;
		mf_purge_later(vm, area);
		return;
	}
	mf_lock_acquire(&vm->lock);
	mf_area_forget(vm, area);
	mf_lock_release(&vm->lock);
}

static void publish(struct mf_vmalloc *vm, struct mf_vm_area *area)
{
	mf_lock_acquire(&vm->lock);
	area->ready = true;
	vm->nr_areas++;
	if (!area->vmap)
		vm->area_pages += area->pages;
	mf_lock_release(&vm->lock);
	mf_vm_count(vm, MF_STAT_vmalloc_mapped, 1);
}

/* --- making and retiring --- */

int mf_area_create(struct mf_vmalloc *vm, struct mf_runs *runs, uint64_t align, bool vmap, bool huge,
		   const char *caller, void **address, char *why, size_t why_size)
{
	struct mf_vm_area *area = new_area(vm, runs);
	uint64_t done;
	int error;

	mf_area_bury(vm);
	if (!area)
		return mf_why(why, why_size, -ENOMEM, "no memory for the area's descriptor");
	area->vmap = vmap;
	area->huge = huge;
	area->caller = caller;
	error = reserve_or_purge(vm, area, align, why, why_size);
	if (error) {
		free_area(area);
		return error;
	}
	error = map_runs(vm, area, &done);
	if (error) {
		abandon(vm, area, done);
		return mf_why(why, why_size, error, "the host refused to map a run of pages: %s",
			      strerror(-error));
	}
	if (huge)
		vm->plat->ops->advise_huge(vm->plat, mf_area_address(area), area->pages << MEMFS_PAGE_SHIFT);
	*address = mf_area_address(area);
	publish(vm, area);
	return 0;
}

struct mf_vm_area *mf_area_retire(struct mf_vmalloc *vm, const void *address, bool vmap)
{
	struct mf_vm_area *area = NULL;
	struct mf_extent *extent;

	mf_lock_acquire(&vm->lock);
	extent = mf_space_find(&vm->space, (uintptr_t)address);
	if (extent && extent->owner && extent->start == (uintptr_t)address)
		area = extent->owner;
	if (area && (!area->ready || area->vmap != vmap))
		area = NULL;
	if (area) {
		area->ready = false;
		vm->nr_areas--;
		if (!vmap)
			vm->area_pages -= area->pages;
	}
	mf_lock_release(&vm->lock);
	return area;
}
