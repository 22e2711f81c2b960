/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A growing list of runs.  Neighbours are joined as they come, and once more
 * after sorting, so that a range needs as few mappings as its pages allow.  A
 * run never reaches from one zone into the next: what is given back goes to one
 * zone.
 */
#include "vmalloc/vmalloc_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NR_FEW (sizeof(((struct mf_runs *)NULL)->few) / sizeof(struct mf_run))

void mf_runs_init(struct mf_runs *runs)
{
	runs->run = runs->few;
	runs->nr = 0;
	runs->room = NR_FEW;
	runs->pages = 0;
}

void mf_runs_free(struct mf_runs *runs)
{
	if (runs->run != runs->few)
		free(runs->run);
	mf_runs_init(runs);
}

static int grow(const struct mf_vmalloc *vm, struct mf_runs *runs)
{
	uint32_t room = runs->room * 2;
	struct mf_run *grown = NULL;

	if (!mf_fault_hit(vm->fault, MF_FAULT_meta_alloc))
		grown = realloc(runs->run == runs->few ? NULL : runs->run, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	if (runs->run == runs->few)
		memcpy(grown, runs->few, sizeof(runs->few));
	runs->run = grown;
	runs->room = room;
	return 0;
}

static bool follows(const struct mf_vmalloc *vm, const struct mf_run *run, uint32_t pfn)
{
	return run->pfn + run->pages == pfn &&
	       mf_page_zone(vm->page, run->pfn) == mf_page_zone(vm->page, pfn);
}

int mf_runs_add(const struct mf_vmalloc *vm, struct mf_runs *runs, uint32_t pfn, uint32_t pages)
{
	int error;

	if (runs->nr && follows(vm, &runs->run[runs->nr - 1], pfn)) {
		runs->run[runs->nr - 1].pages += pages;
		runs->pages += pages;
		return 0;
	}
	if (runs->nr == runs->room) {
		error = grow(vm, runs);
		if (error)
			return error;
	}
	runs->run[runs->nr++] = (struct mf_run){ pfn, pages };
	runs->pages += pages;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct mf_run *x = a, *y = b;

	return (x->pfn > y->pfn) - (x->pfn < y->pfn);
}

void mf_runs_sort(const struct mf_vmalloc *vm, struct mf_runs *runs)
{
	uint32_t kept = 0;

	qsort(runs->run, runs->nr, sizeof(*runs->run), compare);
	for (uint32_t i = 0; i < runs->nr; i++) {
		if (kept && follows(vm, &runs->run[kept - 1], runs->run[i].pfn))
			runs->run[kept - 1].pages += runs->run[i].pages;
		else
			runs->run[kept++] = runs->run[i];
	}
	runs->nr = kept;
}
