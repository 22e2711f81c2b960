/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Named allocations that are objects: what alloc/slab does differently.
 *
 * The slab engine hands out the objects, of a cache or by size; the entry lists
 * them in allocation order.  Their pages are the caches' and may hold other
 * objects, too: the entry counts none of them as its own, neither in
 * live.nr_pages nor in its task's account.
 *
 * Invariants: as long as nr_blocks is not 0, objects[0 ... nr_blocks) are
 * handed out, and the cache, if they are a cache's, is pinned.
 *
 * A constructor's objects are given back as it made them, whatever was written
 * to data: it is called again for each.
 *
 * Locks: none held while the slab engine is called, but for the task's turn
 * (alloc) and cut_mutex (the check).
 */
#include "engine/engine_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_SIZE ((uint64_t)MEMFS_PAGE_SIZE << MEMFS_MAX_PAGE_ORDER)
/* Objects taken between two looks at whether the command was cancelled. */
#define SLICE_OBJECTS 256u

/* --- from the request to the objects --- */

int mf_live_check_objects(struct mf_live_take *t)
{
	const struct mf_live_request *request = t->request;

	t->page.order = 0;
	t->page.irq = false; /* the slab engine knows by itself what it has interrupted */
	if (t->page.vma || request->policy_text.length)
		return mf_why(t->why, t->why_size, -EINVAL, "objects are placed by their task's policy");
	if (request->cache.length && request->size)
		return mf_why(t->why, t->why_size, -EINVAL, "cache= and size= exclude each other");
	if (!request->cache.length && !request->size)
		return mf_why(t->why, t->why_size, -EINVAL, "size is 0, and no cache is named");
	if (request->size > LARGEST_SIZE)
		return mf_why(t->why, t->why_size, -EINVAL, "size %llu is above %llu",
			      (unsigned long long)request->size, (unsigned long long)LARGEST_SIZE);
	if (request->count < 1)
		return mf_why(t->why, t->why_size, -EINVAL, "count is 0");
	return 0;
}

static int pin_cache(struct mf_live_take *t)
{
	struct mf_text name = t->request->cache;
	struct mf_live *live = t->live;

	live->object_size = t->request->size;
	if (!name.length)
		return 0;
	live->cache = mf_cache_hold(t->m->slabs, name);
	if (!live->cache)
		return mf_why(t->why, t->why_size, -ENOENT, "no cache %.*s", (int)name.length, name.at);
	memcpy(live->cache_name, name.at, name.length);
	live->object_size = mf_cache_geometry(live->cache)->object_size;
	if (mf_cache_ctor(live->cache))
		live->cleared = false; /* nobody clears such objects */
	return 0;
}

void mf_live_unpin_cache(struct mf_live *live)
{
	if (live->cache)
		mf_cache_unhold(live->cache, mf_text_of(live->cache_name));
	live->cache = NULL;
}

int mf_live_prepare_objects(struct mf_live_take *t)
{
	uint64_t count = t->request->count;
	struct mf_live *live = t->live;
	int error = pin_cache(t);

	if (error)
		return error;
	if (count > (t->m->topo->nr_pages << MEMFS_PAGE_SHIFT) / live->object_size)
		return mf_why(t->why, t->why_size, -ENOMEM,
			      "%llu objects of %llu bytes asked, all nodes hold fewer",
			      (unsigned long long)count, (unsigned long long)live->object_size);
	if (!mf_fault_hit(&t->m->fault, MF_FAULT_meta_alloc))
		live->objects = malloc(count * sizeof(*live->objects));
	if (!live->objects)
		return mf_why(t->why, t->why_size, -ENOMEM, "no memory to list %llu objects",
			      (unsigned long long)count);
	t->limit = t->capacity = count;
	return 0;
}

/* At least one and at most n, or none. */
static size_t take_some(struct mf_live_take *t, struct mf_placement *place, size_t n)
{
	memfs_gfp gfp = t->page.gfp &
			~MEMFS___GFP_NOFAIL; /* it is waited for here, where it can be cancelled */
	struct mf_live *live = t->live;
	void **out = live->objects + live->nr_blocks;

	if (live->cache && t->page.node == MF_NODE_BY_POLICY)
		return mf_cache_alloc_bulk(live->cache, place, gfp, n, out);
	*out = live->cache ? mf_cache_alloc_node(live->cache, place, gfp, t->page.node)
			   : mf_kmalloc(t->m->slabs, place, live->object_size, gfp, t->page.node);
	return *out != NULL;
}

static int none_left(struct mf_live_take *t)
{
	if (t->page.gfp & MEMFS___GFP_NOFAIL)
		return mf_page_wait(t->m->page, t->page.cancel) ? mf_live_interrupted(t) : 0;
	return mf_why(t->why, t->why_size, -ENOMEM, "%llu objects of %llu bytes asked, %zu were there",
		      (unsigned long long)t->limit, (unsigned long long)t->live->object_size,
		      t->live->nr_blocks);
}

static int take_all(struct mf_live_take *t, struct mf_placement *place)
{
	struct mf_live *live = t->live;
	size_t slice = SLICE_OBJECTS;
	int error = 0;

	while (!error && live->nr_blocks < t->limit) {
		size_t left = t->limit - live->nr_blocks;
		size_t got = take_some(t, place, left < slice ? left : slice);

		live->nr_blocks += got;
		if (mf_live_cancelled(t))
			return mf_live_interrupted(t);
		if (!got && slice == 1)
			error = none_left(t);
		else if (!got)
			slice = 1; /* what is there may still be enough */
	}
	return error;
}

/* What the task is, on another CPU. */
static void stand_in(struct mf_live_take *t, struct mf_placement *place)
{
	const struct mf_topo *topo = t->m->topo;
	struct mf_policy policy;
	mf_nodemask allowed;

	mf_placement_init(place, t->m->page);
	mf_placement_read(&t->task->place, &policy, &allowed);
	mf_placement_set_allowed(place, allowed, topo);
	mf_placement_set_policy(place, &policy, topo);
	mf_placement_set_cpu(place, t->page.cpu, topo);
	place->rotation = __atomic_load_n(&t->task->place.rotation, __ATOMIC_RELAXED);
}

int mf_live_take_objects(struct mf_live_take *t)
{
	struct mf_placement other;
	uint32_t before;
	int error;

	if (t->page.cpu == MF_CPU_OF_TASK)
		return take_all(t, &t->task->place);
	stand_in(t, &other);
	before = other.rotation;
	error = take_all(t, &other);
	/* New slabs moved the rotation: it is the task's, unless somebody has set another meanwhile. */
	__atomic_compare_exchange_n(&t->task->place.rotation, &before, other.rotation, false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return error;
}

void mf_live_give_back_objects(struct mf_live *live, struct mf_task *task, size_t first, size_t nr)
{
	void (*ctor)(void *) = live->cache ? mf_cache_ctor(live->cache) : NULL;
	void **objects = live->objects + first;

	for (size_t i = 0; ctor && i < nr; i++)
		ctor(objects[i]);
	if (live->cache) {
		mf_cache_free_bulk(live->cache, &task->place, nr, objects);
		return;
	}
	for (size_t i = 0; i < nr; i++)
		mf_kfree(live->m->slabs, &task->place, objects[i]);
}

void mf_live_clear_object(struct mf_live *live, size_t i)
{
	void (*ctor)(void *) = live->cache ? mf_cache_ctor(live->cache) : NULL;

	memset(live->objects[i], 0, live->object_size);
	if (ctor)
		ctor(live->objects[i]);
}

/* --- where they lie --- */

int mf_live_object_node(const struct mf_live *live, size_t i)
{
	uint32_t pfn;

	return mf_page_address_pfn(live->m->page, live->objects[i], &pfn) ? mf_page_node(live->m->page, pfn)
									  : -1;
}

static int compare_runs(const void *a, const void *b)
{
	const struct mf_run *one = a, *other = b;

	return one->pfn < other->pfn ? -1 : one->pfn > other->pfn;
}

/* Sorted runs, of which several may have pages in common, made into distinct ones. */
static size_t merge_runs(const struct mf_page *pg, struct mf_run *runs, size_t nr)
{
	size_t kept = 0;

	for (size_t i = 1; i < nr; i++) {
		struct mf_run *last = &runs[kept];
		uint32_t end = runs[i].pfn + runs[i].pages;

		if (runs[i].pfn > last->pfn + last->pages ||
		    mf_page_zone(pg, runs[i].pfn) != mf_page_zone(pg, last->pfn))
			runs[++kept] = runs[i];
		else if (end > last->pfn + last->pages)
			last->pages = end - last->pfn;
	}
	return nr ? kept + 1 : 0;
}

struct mf_run *mf_live_object_runs(const struct mf_live *live, size_t *nr)
{
	const struct mf_page *pg = live->m->page;
	struct mf_run *runs = malloc((live->nr_blocks + 1) * sizeof(*runs));

	*nr = 0;
	for (size_t i = 0; runs && i < live->nr_blocks; i++) {
		const char *object = live->objects[i];
		uint32_t first, last;

		if (mf_page_address_pfn(pg, object, &first) &&
		    mf_page_address_pfn(pg, object + live->object_size - 1, &last))
			runs[(*nr)++] = (struct mf_run){ first, last - first + 1 };
	}
	if (runs) {
		qsort(runs, *nr, sizeof(*runs), compare_runs);
		*nr = merge_runs(pg, runs, *nr);
	}
	return runs;
}

/* --- check --- */

bool mf_live_object_is_there(const struct mf_live *live, size_t i)
{
	struct mf_slabs *slabs = live->m->slabs;
	const void *object = live->objects[i];

	if (live->cache)
		return mf_cache_of(slabs, object) == live->cache;
	return mf_ksize(slabs, object) >= live->object_size;
}

static int compare_addresses(const void *a, const void *b)
{
	uintptr_t one = (uintptr_t) * (void *const *)a, other = (uintptr_t) * (void *const *)b;

	return one < other ? -1 : one > other;
}

unsigned mf_live_check_shared(struct mf_live **lives, size_t nr_lives, struct mf_outbuf *out)
{
	size_t nr = 0, total = 0;
	unsigned bad = 0;
	void **all;

	for (size_t i = 0; i < nr_lives; i++)
		total += lives[i]->kind == MF_LIVE_SLAB ? lives[i]->nr_blocks : 0;
	all = malloc((total + 1) * sizeof(*all));
	if (!all) {
		mf_outbuf_puts(out, "live: no memory to check objects\n");
		return 1;
	}
	for (size_t i = 0; i < nr_lives; i++)
		for (size_t k = 0; lives[i]->kind == MF_LIVE_SLAB && k < lives[i]->nr_blocks; k++)
			all[nr++] = lives[i]->objects[k];
	qsort(all, nr, sizeof(*all), compare_addresses);
	for (size_t i = 1; i < nr; i++)
		if (all[i] == all[i - 1] && ++bad)
			mf_outbuf_printf(out, "live: the object at %p belongs to two allocations\n", all[i]);
	free(all);
	return bad;
}
