/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lazily freed areas.
 *
 * To unmap costs a call of the host, and areas that lie one behind the other
 * can be unmapped by one.  So a freed area waits, with its pages and its
 * addresses, until enough have gathered (behaviour 3.1; or mappings), addresses
 * run out, or memory does.
 *
 *   all lazy areas taken off the list -> sorted -> neighbours sealed by one call
 *   -> their pages back -> their addresses free
 *
 * Invariants: an area on the list is nobody's; its addresses are not given out
 * again before they are sealed.  An area whose sealing the host refused goes
 * back to the list, still mapped.
 *
 * Locks: purge_mutex outermost, so that a caller who finds the list empty
 * because another is at work comes after him; lock only to take the list and to
 * give addresses back.  Pressure may start a purge inside a signal handler:
 * nothing here touches the heap, and a handler that has interrupted its own
 * thread's purge leaves it alone.
 */
#include "vmalloc/vmalloc_internal.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Areas of many runs are not worth waiting with: they are unmapped by one call
 * each, and while they wait the host has the more mappings to look through.
 */
#define LAZY_MAPPINGS 256u

/* This thread is inside a purge of whichever instance. */
static __thread volatile bool purging;

/* --- the list --- */

/* lock is held. */
static void push(struct mf_vmalloc *vm, struct mf_vm_area *area)
{
	area->next = vm->lazy;
	vm->lazy = area;
	vm->nr_lazy++;
	vm->lazy_span += area->extent->size >> MEMFS_PAGE_SHIFT;
	vm->lazy_mappings += (uint64_t)area->nr_runs + 1;
	if (!area->vmap)
		vm->lazy_pages += area->pages;
}

bool mf_purge_queue(struct mf_vmalloc *vm, struct mf_vm_area *area)
{
	uint64_t lazy_max = MF_VM_KNOB(vm, lazy_max);
	bool full;

	mf_lock_acquire(&vm->lock);
	push(vm, area);
	full = vm->lazy_span > lazy_max || vm->lazy_mappings > LAZY_MAPPINGS;
	mf_lock_release(&vm->lock);
	return full;
}

void mf_purge_later(struct mf_vmalloc *vm, struct mf_vm_area *area)
{
	if (mf_purge_queue(vm, area))
		mf_purge_areas(vm);
}

static struct mf_vm_area *take_list(struct mf_vmalloc *vm)
{
	struct mf_vm_area *list;

	mf_lock_acquire(&vm->lock);
	list = vm->lazy;
	vm->lazy = NULL;
	vm->nr_lazy = 0;
	vm->lazy_span = 0;
	vm->lazy_mappings = 0;
	vm->lazy_pages = 0;
	mf_lock_release(&vm->lock);
	return list;
}

/* --- by address --- */

static struct mf_vm_area *merge(struct mf_vm_area *a, struct mf_vm_area *b)
{
	struct mf_vm_area *head = NULL, **tail = &head;

	while (a && b) {
		struct mf_vm_area **lower = a->extent->start < b->extent->start ? &a : &b;

		*tail = *lower;
		tail = &(*lower)->next;
		*lower = *tail;
	}
	*tail = a ? a : b;
	return head;
}

/* Merge sort from the bottom: a pile per power of two, no memory, no recursion. */
static struct mf_vm_area *sort(struct mf_vm_area *list)
{
	struct mf_vm_area *pile[64] = { NULL }, *sorted = NULL;

	while (list) {
		struct mf_vm_area *one = list;
		unsigned i = 0;

		list = list->next;
		one->next = NULL;
		for (; pile[i]; i++) {
			one = merge(pile[i], one);
			pile[i] = NULL;
		}
		pile[i] = one;
	}
	for (unsigned i = 0; i < 64; i++)
		sorted = merge(pile[i], sorted);
	return sorted;
}

/* --- a purge --- */

static uint64_t end_of(const struct mf_vm_area *area)
{
	return area->extent->start + area->extent->size;
}

/* The first of @list and those that follow it without a gap become a list of their own. */
static struct mf_vm_area *cut_span(struct mf_vm_area **list, uint64_t *start, uint64_t *end)
{
	struct mf_vm_area *first = *list, *last = first;

	while (last->next && last->next->extent->start == end_of(last))
		last = last->next;
	*start = first->extent->start;
	*end = end_of(last);
	*list = last->next;
	last->next = NULL;
	return first;
}

static void keep(struct mf_vmalloc *vm, struct mf_vm_area *span)
{
	mf_lock_acquire(&vm->lock);
	while (span) {
		struct mf_vm_area *area = span;

		span = span->next;
		push(vm, area);
	}
	mf_lock_release(&vm->lock);
}

/* Sealed: nobody can reach the pages by these addresses any more. */
static uint64_t give_pages(struct mf_vmalloc *vm, const struct mf_vm_area *span)
{
	uint64_t pages = 0;

	for (; span; span = span->next) {
		if (span->vmap)
			continue;
		mf_page_free_runs(vm->page, NULL, span->nr_runs, span->runs);
		pages += span->pages;
	}
	return pages;
}

static void give_addresses(struct mf_vmalloc *vm, struct mf_vm_area *span)
{
	uint64_t areas = 0;

	mf_lock_acquire(&vm->lock);
	while (span) {
		struct mf_vm_area *area = span;

		span = span->next;
		mf_area_forget(vm, area);
		areas++;
	}
	mf_lock_release(&vm->lock);
	mf_vm_count(vm, MF_STAT_vmalloc_purge_areas, areas);
}

static uint64_t purge_span(struct mf_vmalloc *vm, struct mf_vm_area *span, uint64_t start, uint64_t end)
{
	uint64_t pages;

	mf_vm_count(vm, MF_STAT_vmalloc_seal_calls, 1);
	if (vm->plat->ops->window_seal(vm->plat, (void *)(uintptr_t)start, end - start)) {
		keep(vm, span);
		return 0;
	}
	pages = give_pages(vm, span);
	give_addresses(vm, span);
	return pages;
}

uint64_t mf_purge_areas(struct mf_vmalloc *vm)
{
	uint64_t pages = 0, start, end;
	struct mf_vm_area *list;

	if (purging)
		return 0;
	purging = true;
	pthread_mutex_lock(&vm->purge_mutex);
	list = sort(take_list(vm));
	if (list)
		mf_vm_count(vm, MF_STAT_vmalloc_purge, 1);
	while (list) {
		struct mf_vm_area *span = cut_span(&list, &start, &end);

		pages += purge_span(vm, span, start, end);
	}
	pthread_mutex_unlock(&vm->purge_mutex);
	purging = false;
	return pages;
}

uint64_t mf_vmalloc_purge(struct mf_vmalloc *vm)
{
	uint64_t parked = mf_linear_unpark(vm);

	return mf_purge_areas(vm) + parked;
}

/* What is asked for does not matter: all of it is cheap to make again. */
uint64_t mf_purge_shrink(void *arg, uint64_t nr_pages)
{
	(void)nr_pages;
	return mf_vmalloc_purge(arg);
}

void mf_vmalloc_tick(struct mf_vmalloc *vm)
{
	MF_FOR_EACH_NODE(node, vm->topo->memory)
		for (int type = 0; type < MF_NR_ZONE_TYPES; type++) {
			unsigned zone = mf_zone_index(node, (enum mf_zone_type)type);

			if (vm->topo->node[node]->zone[type].nr_pages &&
			    mf_page_zone_below_low(vm->page, zone)) {
				mf_vmalloc_purge(vm);
				return;
			}
		}
}
