/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranges at their linear address: one contiguous run, used where its arena is
 * mapped anyway.  No addresses, no mapping, no guard.
 *
 * One table says, by the number of a run's first page, how many pages it has;
 * it costs memory only where it is used.  Whoever holds a range is the only one
 * to write its entry, so no lock is needed.
 *
 * Parked runs: a run of a size that the per-CPU lists do not keep goes into a
 * slot of its CPU when it is freed, and from there to the next range of that
 * size.  A slot is one word, taken and filled by one compare-and-store; anyone
 * may empty it.
 *
 * Invariants: an entry is set exactly while its range is in use; a parked run
 * has no entry and lies on the node of its slot's CPU.
 */
#include "vmalloc/vmalloc_internal.h"

#include <errno.h>

/* As the kernel's pools of addresses: nothing larger is kept back. */
#define PARK_PAGES 256u

#define LINE_PAGES MF_PAGEBLOCK_PAGES

static size_t table_bytes(const struct mf_vmalloc *vm)
{
	return (size_t)vm->topo->pfn_limit * sizeof(*vm->linear);
}

static size_t nr_lines(const struct mf_vmalloc *vm)
{
	return (size_t)((vm->topo->pfn_limit + LINE_PAGES - 1) / LINE_PAGES);
}

int mf_linear_create(struct mf_vmalloc *vm)
{
	struct mf_plat *plat = vm->plat;

	if (mf_fault_hit(vm->fault, MF_FAULT_meta_alloc))
		return -ENOMEM;
	vm->linear = plat->ops->meta_alloc(plat, table_bytes(vm));
	vm->line_used = plat->ops->meta_alloc(plat, nr_lines(vm));
	return vm->linear && vm->line_used ? 0 : -ENOMEM;
}

static void give_range(void *arg, uint32_t pfn, uint32_t pages)
{
	struct mf_vmalloc *vm = arg;
	struct mf_run run = { pfn, pages };

	mf_page_free_runs(vm->page, NULL, 1, &run);
}

void mf_linear_destroy(struct mf_vmalloc *vm)
{
	struct mf_plat *plat = vm->plat;

	if (vm->linear && vm->line_used) {
		mf_linear_unpark(vm);
		mf_linear_for_each(vm, give_range, vm);
	}
	if (vm->linear)
		plat->ops->meta_free(plat, vm->linear, table_bytes(vm));
	if (vm->line_used)
		plat->ops->meta_free(plat, vm->line_used, nr_lines(vm));
}

void *mf_linear_start(struct mf_vmalloc *vm, uint32_t pfn, uint32_t pages)
{
	uint8_t *used = &vm->line_used[pfn / LINE_PAGES];

	if (!__atomic_load_n(used, __ATOMIC_RELAXED))
		__atomic_store_n(used, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&vm->linear[pfn], pages, __ATOMIC_RELEASE);
	mf_vm_count(vm, MF_STAT_vmalloc_linear, 1);
	mf_vm_count(vm, MF_STAT_vmalloc_linear_pages, pages);
	return mf_page_address(vm->page, pfn);
}

/* --- parking --- */

/* The order whose list keeps runs of so many pages; -1: none. */
static int listed_order(uint64_t pages)
{
	switch (pages) {
	case 1:
		return 0;
	case 2:
		return 1;
	case 4:
		return 2;
	case 8:
		return 3;
	case MF_PAGEBLOCK_PAGES:
		return MF_PAGEBLOCK_ORDER;
	}
	return -1;
}

static _Atomic uint64_t *slot_of(struct mf_vmalloc *vm, unsigned cpu, uint64_t pages)
{
	return &vm->park[cpu % MF_PARK_ROWS].slot[(uint32_t)pages * UINT32_C(0x9E3779B1) >> 29];
}

static bool parks(const struct mf_vmalloc *vm, uint64_t pages)
{
	return pages <= PARK_PAGES && listed_order(pages) < 0 && MF_VM_KNOB(vm, lazy_max) &&
	       MF_VM_KNOB(vm, linear) && MF_VM_KNOB(vm, large_order) != MF_VMALLOC_OFF;
}

static void give_parked(struct mf_vmalloc *vm, uint64_t word)
{
	struct mf_run run = { (uint32_t)word, (uint32_t)(word >> 32) };

	mf_page_free_parked(vm->page, &run);
}

/*
 * Only what the next caller on that CPU may get: its own node, and no zone
 * Movable.  A run of another size makes way: what was freed last is asked for next.
 */
static bool park(struct mf_vmalloc *vm, const struct mf_placement *place, uint32_t pfn, uint32_t pages)
{
	int cpu = place ? mf_page_cpu(vm->page, place) : -1;
	uint64_t old, word = (uint64_t)pages << 32 | pfn;
	int zone = mf_page_zone(vm->page, pfn);
	_Atomic uint64_t *slot;

	if (cpu < 0 || zone / MF_NR_ZONE_TYPES != vm->topo->cpu_node[cpu] ||
	    zone % MF_NR_ZONE_TYPES > MF_ZONE_NORMAL)
		return false;
	slot = slot_of(vm, (unsigned)cpu, pages);
	old = atomic_load_explicit(slot, memory_order_relaxed);
	if (old >> 32 == pages)
		return false;
	/* Counted first: what is parked was given back, whoever looks. */
	mf_page_count_parked(vm->page, pfn, pages);
	old = atomic_exchange_explicit(slot, word, memory_order_acq_rel);
	if (old)
		give_parked(vm, old);
	return true;
}

static bool unpark(struct mf_vmalloc *vm, unsigned cpu, uint64_t pages, uint32_t *pfn)
{
	_Atomic uint64_t *slot = slot_of(vm, cpu, pages);
	uint64_t word = atomic_load_explicit(slot, memory_order_relaxed);

	if (word >> 32 != pages || mf_page_node(vm->page, (uint32_t)word) != vm->topo->cpu_node[cpu] ||
	    !atomic_compare_exchange_strong_explicit(slot, &word, 0, memory_order_acquire,
						     memory_order_relaxed))
		return false;
	*pfn = (uint32_t)word;
	mf_page_count_reused(vm->page, cpu, *pfn, (uint32_t)pages);
	mf_vm_count(vm, MF_STAT_vmalloc_pages_parked, pages);
	return true;
}

uint64_t mf_linear_unpark(struct mf_vmalloc *vm)
{
	uint64_t given = 0;

	for (unsigned row = 0; row < MF_PARK_ROWS; row++)
		for (unsigned i = 0; i < MF_PARK_SLOTS; i++) {
			uint64_t word = 0;

			if (atomic_load_explicit(&vm->park[row].slot[i], memory_order_relaxed))
				word = atomic_exchange_explicit(&vm->park[row].slot[i], 0,
								memory_order_acquire);
			if (!word)
				continue;
			give_parked(vm, word);
			given += word >> 32;
		}
	return given;
}

uint64_t mf_vmalloc_parked(const struct mf_vmalloc *vm)
{
	uint64_t pages = 0;

	for (unsigned row = 0; row < MF_PARK_ROWS; row++)
		for (unsigned i = 0; i < MF_PARK_SLOTS; i++)
			pages += atomic_load_explicit(&vm->park[row].slot[i], memory_order_relaxed) >> 32;
	return pages;
}

/* --- quick ranges --- */

/* A block from the list of its order; the last 2 MiB blocks are left alone (tune/vmalloc_large_order). */
static bool take_listed(struct mf_vmalloc *vm, struct mf_placement *place, int order, memfs_pfn *pfn)
{
	struct mf_page_free_blocks free;
	int cpu;

	if (order == MF_HUGE_ORDER && MF_VM_KNOB(vm, large_order) == MF_VMALLOC_BOUNDED) {
		cpu = mf_page_cpu(vm->page, place);
		if (cpu < 0)
			return false;
		mf_page_free_blocks(vm->page, vm->topo->cpu_node[cpu], MEMFS_GFP_KERNEL, &free);
		if (!mf_take_within_bound(vm, &free, MF_HUGE_ORDER))
			return false;
	}
	return mf_page_alloc_own(place, (unsigned)order, pfn);
}

void *mf_linear_quick(struct mf_vmalloc *vm, struct mf_placement *place, uint64_t pages)
{
	int order = listed_order(pages), cpu;
	memfs_pfn pfn;

	if (!MF_VM_KNOB(vm, linear) || MF_VM_KNOB(vm, large_order) == MF_VMALLOC_OFF)
		return NULL;
	if (order >= 0) {
		if (!take_listed(vm, place, order, &pfn))
			return NULL;
		mf_vm_count(vm, MF_STAT_vmalloc_pages_large, pages);
	} else {
		cpu = parks(vm, pages) ? mf_page_cpu(vm->page, place) : -1;
		if (cpu < 0 || !unpark(vm, (unsigned)cpu, pages, &pfn.v))
			return NULL;
	}
	return mf_linear_start(vm, pfn.v, (uint32_t)pages);
}

int mf_linear_free(struct mf_vmalloc *vm, const struct mf_placement *place, uint32_t pfn)
{
	uint32_t pages = mf_linear_pages(vm, pfn);
	struct mf_run run = { pfn, pages };
	int order = listed_order(pages);

	if (!pages)
		return -EINVAL;
	__atomic_store_n(&vm->linear[pfn], 0, __ATOMIC_RELAXED);
	mf_vm_count(vm, MF_STAT_vmalloc_linear_freed, pages);
	/* A run that was joined from small pages may lie across what a list takes for a block. */
	if (order >= 0 && place && !(pfn & (pages - 1)))
		mf_page_free(place, (memfs_pfn){ pfn }, (unsigned)order);
	else if (!parks(vm, pages) || !park(vm, place, pfn, pages))
		mf_page_free_runs(vm->page, place, 1, &run);
	return 0;
}

/* --- looking --- */

void mf_linear_for_each(struct mf_vmalloc *vm, mf_linear_visit_fn *visit, void *arg)
{
	size_t lines = nr_lines(vm);

	for (size_t line = 0; line < lines; line++) {
		uint32_t pfn = (uint32_t)(line * LINE_PAGES);
		uint32_t end = pfn + LINE_PAGES < vm->topo->pfn_limit ? pfn + LINE_PAGES
								      : (uint32_t)vm->topo->pfn_limit;

		if (!__atomic_load_n(&vm->line_used[line], __ATOMIC_RELAXED))
			continue;
		for (; pfn < end; pfn++) {
			uint32_t pages = mf_linear_pages(vm, pfn);

			if (pages)
				visit(arg, pfn, pages);
		}
	}
}
