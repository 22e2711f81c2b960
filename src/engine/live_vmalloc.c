/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Named allocations that are ranges: what alloc/vmalloc does differently.
 *
 * The vmalloc engine makes and ends the range; the entry lists its pages by
 * rising offset, one a block, so that bytes, placement, map, account and check
 * are those of any allocation.
 *
 * Invariant: as long as nr_blocks is not 0, address is where a range of that
 * many pages starts, and blocks[i] the page at byte i * MEMFS_PAGE_SIZE of it.
 *
 * Locks: none held while the vmalloc engine is called, but for the task's turn
 * (alloc) and cut_mutex (the check); live.lock for the list of all ranges.
 */
#include "engine/engine_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- from the request to the range --- */

static uint64_t pages_of(uint64_t bytes)
{
	return bytes / MEMFS_PAGE_SIZE + (bytes % MEMFS_PAGE_SIZE != 0);
}

/* Before memory is taken to list the pages; what else can be wrong the vmalloc engine says. */
int mf_live_check_range(struct mf_live_take *t)
{
	uint64_t have = t->m->topo->nr_pages;

	t->limit = pages_of(t->request->size);
	t->page.order = 0;
	t->page.irq = false; /* a range belongs to a task: it may wait */
	if (!t->request->size)
		return mf_why(t->why, t->why_size, -EINVAL, "size is 0");
	if (t->limit > have)
		return mf_why(t->why, t->why_size, -ENOMEM, "%llu pages asked, all nodes hold %llu",
			      (unsigned long long)t->limit, (unsigned long long)have);
	return 0;
}

/* A range in 2 MiB blocks is made of whole ones. */
int mf_live_prepare_range(struct mf_live_take *t)
{
	if (t->request->huge)
		t->limit = (t->limit + MF_PAGEBLOCK_PAGES - 1) / MF_PAGEBLOCK_PAGES * MF_PAGEBLOCK_PAGES;
	return mf_live_grow_list(t, t->limit);
}

int mf_live_take_range(struct mf_live_take *t)
{
	struct mf_vmalloc_request request = {
		.size = t->request->size,
		.align = t->request->align,
		.page = t->page,
		.huge = t->request->huge,
		.touch = t->request->touch,
		.caller = "alloc/vmalloc",
	};
	struct mf_live *live = t->live;
	int error = mf_vmalloc_alloc(t->m->vmalloc, &t->task->place, &request, &live->address, t->why,
				     t->why_size);

	if (!error)
		live->nr_blocks = mf_vmalloc_pages(t->m->vmalloc, live->address, live->blocks, t->limit);
	if (error == -EINTR || mf_live_cancelled(t))
		return mf_live_interrupted(t);
	return error;
}

void mf_live_give_back_range(struct mf_live *live, struct mf_task *task, size_t first, size_t nr)
{
	(void)first; /* the whole range, always */
	(void)nr;
	mf_vmalloc_free(live->m->vmalloc, &task->place, live->address);
}

/* --- looking --- */

bool mf_live_range_is_there(const struct mf_live *live)
{
	memfs_pfn first = { 0 };

	return mf_vmalloc_pages(live->m->vmalloc, live->address, &first, 1) == live->nr_blocks &&
	       first.v == live->blocks[0].v;
}

struct range_name {
	const void *address;
	char name[MEMFS_NAME_MAX + 1];
};

/* Copies what there is now; at most room for all entries is needed. */
static struct range_name *copy_names(struct memfs *m, size_t *nr)
{
	struct range_name *names;

	*nr = 0;
	mf_lock_acquire(&m->live.lock);
	names = calloc(m->live.table.count + 1, sizeof(*names));
	for (struct mf_named *at = m->live.table.oldest; at && names; at = at->newer) {
		const struct mf_live *live = (struct mf_live *)at;

		if (!live->ready || live->kind != MF_LIVE_VMALLOC)
			continue;
		names[*nr].address = live->address;
		memcpy(names[(*nr)++].name, live->named.name, sizeof(names->name));
	}
	mf_lock_release(&m->live.lock);
	return names;
}

int mf_live_for_each_vmalloc(struct memfs *m, void (*visit)(void *arg, const void *address, const char *name),
			     void *arg)
{
	size_t nr;
	struct range_name *names = copy_names(m, &nr);

	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		visit(arg, names[i].address, names[i].name);
	free(names);
	return 0;
}
