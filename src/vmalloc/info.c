/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Looking at ranges, pages of an address, and the check that counts everything
 * anew.
 *
 * Whoever looks gets copies: they are made under the lock, and shown without
 * it.
 */
#include "vmalloc/vmalloc_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- an address --- */

static uint32_t pfn_at(const struct mf_vm_area *area, uint64_t page)
{
	uint32_t low = 0, high = area->nr_runs;

	/* The last run that begins at the page or before it. */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (area->first[middle] <= page)
			low = middle;
		else
			high = middle;
	}
	return area->runs[low].pfn + (uint32_t)(page - area->first[low]);
}

/* The area in use that the address lies in, its guard aside; lock is held. */
static struct mf_vm_area *find(const struct mf_vmalloc *vm, const void *address)
{
	struct mf_extent *extent = mf_space_find(&vm->space, (uintptr_t)address);
	struct mf_vm_area *area = extent ? extent->owner : NULL;

	if (!area || !area->ready || ((uintptr_t)address - extent->start) >> MEMFS_PAGE_SHIFT >= area->pages)
		return NULL;
	return area;
}

bool mf_vmalloc_page(struct mf_vmalloc *vm, const void *address, uint32_t *pfn)
{
	struct mf_vm_area *area;

	if (!mf_vm_in_range(vm, address))
		return mf_page_address_pfn(vm->page, address, pfn);
	mf_lock_acquire(&vm->lock);
	area = find(vm, address);
	if (area)
		*pfn = pfn_at(area, ((uintptr_t)address - area->extent->start) >> MEMFS_PAGE_SHIFT);
	mf_lock_release(&vm->lock);
	return area != NULL;
}

static uint64_t linear_pages(struct mf_vmalloc *vm, const void *address, memfs_pfn *pfns, uint64_t max)
{
	uint32_t pfn, pages;

	if ((uintptr_t)address % MEMFS_PAGE_SIZE || !mf_page_address_pfn(vm->page, address, &pfn))
		return 0;
	pages = mf_linear_pages(vm, pfn);
	for (uint32_t i = 0; i < pages && i < max; i++)
		pfns[i].v = pfn + i;
	return pages;
}

static void copy_pfns(const struct mf_vm_area *area, memfs_pfn *pfns, uint64_t max)
{
	uint64_t done = 0;

	for (uint32_t i = 0; i < area->nr_runs; i++)
		for (uint32_t page = 0; page < area->runs[i].pages && done < max; page++)
			pfns[done++].v = area->runs[i].pfn + page;
}

uint64_t mf_vmalloc_pages(struct mf_vmalloc *vm, const void *address, memfs_pfn *pfns, uint64_t max)
{
	struct mf_vm_area *area;
	uint64_t pages = 0;

	if (!mf_vm_in_range(vm, address))
		return linear_pages(vm, address, pfns, max);
	mf_lock_acquire(&vm->lock);
	area = find(vm, address);
	if (area && area->extent->start == (uintptr_t)address) {
		pages = area->pages;
		copy_pfns(area, pfns, max);
	}
	mf_lock_release(&vm->lock);
	return pages;
}

/* --- all of them --- */

struct list {
	struct mf_vmalloc_area *areas;
	size_t nr, room;
	const struct mf_vmalloc *vm;
	bool failed;
};

static struct mf_vmalloc_area *add(struct list *list)
{
	struct mf_vmalloc_area *grown;
	size_t room = list->room ? list->room * 2 : 64;

	if (list->nr == list->room) {
		grown = realloc(list->areas, room * sizeof(*grown));
		if (!grown) {
			list->failed = true;
			return NULL;
		}
		list->areas = grown;
		list->room = room;
	}
	return memset(&list->areas[list->nr++], 0, sizeof(*list->areas));
}

static void count_run(const struct mf_vmalloc *vm, uint32_t pfn, uint32_t pages,
		      uint64_t by_node[MEMFS_MAX_NODES])
{
	int node = mf_page_node(vm->page, pfn);

	if (node >= 0)
		by_node[node] += pages;
}

static void add_linear(void *arg, uint32_t pfn, uint32_t pages)
{
	struct list *list = arg;
	struct mf_vmalloc_area *area = add(list);

	if (!area)
		return;
	area->start = (uintptr_t)mf_page_address(list->vm->page, pfn);
	area->size = (uint64_t)pages << MEMFS_PAGE_SHIFT;
	area->pages = pages;
	area->runs = 1;
	area->linear = true;
	count_run(list->vm, pfn, pages, area->by_node);
}

static void add_mapped(struct list *list, const struct mf_vm_area *from)
{
	struct mf_vmalloc_area *area = add(list);

	if (!area)
		return;
	area->start = from->extent->start;
	area->size = from->extent->size;
	area->pages = from->pages;
	area->runs = from->nr_runs;
	area->huge = from->huge;
	area->vmap = from->vmap;
	area->caller = from->caller;
	for (uint32_t i = 0; i < from->nr_runs; i++)
		count_run(list->vm, from->runs[i].pfn, from->runs[i].pages, area->by_node);
}

static void collect(struct mf_vmalloc *vm, bool lazy, struct list *list)
{
	mf_lock_acquire(&vm->lock);
	for (struct mf_vm_area *area = lazy ? vm->lazy : NULL; area && !list->failed; area = area->next)
		add_mapped(list, area);
	for (struct mf_extent *at = lazy ? NULL : mf_space_first(&vm->space); at && !list->failed;
	     at = mf_space_next(at)) {
		struct mf_vm_area *area = at->owner;

		if (area && area->ready)
			add_mapped(list, area);
	}
	mf_lock_release(&vm->lock);
	if (!lazy)
		mf_linear_for_each(vm, add_linear, list);
}

static int compare(const void *a, const void *b)
{
	const struct mf_vmalloc_area *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

int mf_vmalloc_for_each(struct mf_vmalloc *vm, bool lazy, mf_vmalloc_visit_fn *visit, void *arg)
{
	struct list list = { .vm = vm };

	collect(vm, lazy, &list);
	if (!list.failed && list.nr) {
		qsort(list.areas, list.nr, sizeof(*list.areas), compare);
		for (size_t i = 0; i < list.nr; i++)
			visit(arg, &list.areas[i]);
	}
	free(list.areas);
	return list.failed ? -ENOMEM : 0;
}

int mf_vmalloc_for_each_free(struct mf_vmalloc *vm, void (*visit)(void *arg, uint64_t start, uint64_t size),
			     void *arg)
{
	struct list list = { .vm = vm };

	mf_lock_acquire(&vm->lock);
	for (struct mf_extent *at = mf_space_first(&vm->space); at && !list.failed; at = mf_space_next(at)) {
		struct mf_vmalloc_area *area = at->owner ? NULL : add(&list);

		if (area) {
			area->start = at->start;
			area->size = at->size;
		}
	}
	mf_lock_release(&vm->lock);
	for (size_t i = 0; i < list.nr && !list.failed; i++)
		visit(arg, list.areas[i].start, list.areas[i].size);
	free(list.areas);
	return list.failed ? -ENOMEM : 0;
}

/* From the counters: a walk of the table would grow with the machine, and meminfo is read often. */
static uint64_t linear_in_use(struct mf_vmalloc *vm)
{
	uint64_t freed = mf_stat_read(vm->stat, MF_STAT_vmalloc_linear_freed);

	return mf_stat_read(vm->stat, MF_STAT_vmalloc_linear_pages) - freed;
}

void mf_vmalloc_info(struct mf_vmalloc *vm, struct mf_vmalloc_info *out)
{
	memset(out, 0, sizeof(*out));
	out->start = (uintptr_t)vm->base;
	out->size = vm->bytes;
	out->max_mappings = MF_VM_KNOB(vm, max_mappings);
	mf_lock_acquire(&vm->lock);
	out->free_bytes = vm->space.free_bytes;
	out->largest_free = mf_space_largest_free(&vm->space);
	out->nr_free = vm->space.nr_free;
	out->areas = vm->nr_areas;
	out->lazy_areas = vm->nr_lazy;
	out->used_pages = vm->area_pages;
	out->lazy_pages = vm->lazy_pages;
	out->mappings = vm->mappings;
	mf_lock_release(&vm->lock);
	out->used_pages += linear_in_use(vm);
	out->parked_pages = mf_vmalloc_parked(vm);
	out->lazy_pages += out->parked_pages;
}

/* --- check --- */

struct check {
	struct mf_vmalloc *vm;
	struct mf_outbuf *out;
	uint32_t last, last_pages; /* linear range seen last */
	uint64_t areas, area_pages, lazy, lazy_pages, lazy_span, lazy_mappings, mappings;
	unsigned bad;
};

static void check_linear(void *arg, uint32_t pfn, uint32_t pages)
{
	struct check *c = arg;
	int zone = mf_page_zone(c->vm->page, pfn);

	/* They come and go without a lock: it is a fault only if both are still there. */
	if (c->last_pages && pfn < (uint64_t)c->last + c->last_pages &&
	    mf_linear_pages(c->vm, c->last) == c->last_pages && mf_linear_pages(c->vm, pfn) == pages &&
	    ++c->bad)
		mf_outbuf_printf(c->out, "vmalloc: linear range at pfn %u lies in the one before\n", pfn);
	if ((zone < 0 || mf_page_zone(c->vm->page, pfn + pages - 1) != zone) && ++c->bad)
		mf_outbuf_printf(c->out, "vmalloc: linear range at pfn %u, %u pages, leaves its zone\n", pfn,
				 pages);
	c->last = pfn;
	c->last_pages = pages;
}

static void check_area(struct check *c, const struct mf_vm_area *area)
{
	uint64_t pages = 0;

	for (uint32_t i = 0; i < area->nr_runs; i++)
		pages += area->runs[i].pages;
	if ((pages != area->pages || area->extent->size != (pages << MEMFS_PAGE_SHIFT) + MEMFS_PAGE_SIZE) &&
	    ++c->bad)
		mf_outbuf_printf(c->out, "vmalloc: area at %#" PRIx64 " has %" PRIu64 " pages in its runs\n",
				 area->extent->start, pages);
	c->mappings += (uint64_t)area->nr_runs + 1;
	if (!area->ready)
		return;
	c->areas++;
	if (!area->vmap)
		c->area_pages += pages;
}

static void check_counts(struct check *c)
{
	struct mf_vmalloc *vm = c->vm;

	for (const struct mf_vm_area *area = vm->lazy; area; area = area->next) {
		c->lazy++;
		c->lazy_pages += area->vmap ? 0 : area->pages;
		c->lazy_span += area->extent->size >> MEMFS_PAGE_SHIFT;
		c->lazy_mappings += (uint64_t)area->nr_runs + 1;
		if (area->ready && ++c->bad)
			mf_outbuf_printf(c->out, "vmalloc: area at %#" PRIx64 " is in use and lazily freed\n",
					 area->extent->start);
	}
	if (c->areas == vm->nr_areas && c->area_pages == vm->area_pages && c->lazy == vm->nr_lazy &&
	    c->lazy_pages == vm->lazy_pages && c->lazy_span == vm->lazy_span &&
	    c->lazy_mappings == vm->lazy_mappings && c->mappings == vm->mappings)
		return;
	c->bad++;
	mf_outbuf_printf(c->out,
			 "vmalloc: counted %" PRIu64 " areas of %" PRIu64 " pages, %" PRIu64
			 " lazy of %" PRIu64 ", %" PRIu64 " mappings; kept %" PRIu64 " of %" PRIu64
			 ", %" PRIu64 " of %" PRIu64 ", %" PRIu64 "\n",
			 c->areas, c->area_pages, c->lazy, c->lazy_pages, c->mappings, vm->nr_areas,
			 vm->area_pages, vm->nr_lazy, vm->lazy_pages, vm->mappings);
}

unsigned mf_vmalloc_check(struct mf_vmalloc *vm, struct mf_outbuf *out)
{
	struct check c = { .vm = vm, .out = out };

	mf_lock_acquire(&vm->lock);
	c.bad = mf_space_check(&vm->space, out);
	for (struct mf_extent *at = mf_space_first(&vm->space); at; at = mf_space_next(at))
		if (at->owner)
			check_area(&c, at->owner);
	check_counts(&c);
	mf_lock_release(&vm->lock);
	mf_linear_for_each(vm, check_linear, &c);
	return c.bad;
}
