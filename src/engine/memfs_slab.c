/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The public API over the slab engine.  struct memfs_cache is struct mf_cache
 * under its public name, and the calls for objects are one tail call each.
 *
 * A cache may be shared under several names, so a handle does not tell which of
 * them its owner was given: library.first lists the names by handle, and each
 * keeps the cache pinned.
 *
 * Locks: library.mutex for that list, nothing is called under it.
 */
#include "engine/engine_internal.h"
#include "memfs.h"

#include <stdlib.h>
#include <string.h>

#define SAME_FLAG(NAME, name, help) \
	_Static_assert(MEMFS_SLAB_##NAME == MF_SLAB_FLAG(NAME), "flags are the engine's: " name);
MF_SLAB_FLAGS(SAME_FLAG)
#undef SAME_FLAG

#define ALL_FLAGS ((1u << MF_NR_SLAB_FLAGS) - 1)

struct mf_library_cache {
	struct mf_library_cache *next;
	struct mf_cache *cache;
	char name[MEMFS_NAME_MAX + 1];
};

static inline struct mf_task *task_of(struct memfs_task *t)
{
	return (struct mf_task *)t;
}

static inline struct mf_cache *cache_of(struct memfs_cache *c)
{
	return (struct mf_cache *)c;
}

/* --- names --- */

static void remember(struct memfs *m, struct mf_library_cache *entry)
{
	pthread_mutex_lock(&m->library.mutex);
	entry->next = m->library.first;
	m->library.first = entry;
	pthread_mutex_unlock(&m->library.mutex);
}

/* Off the list; NULL: no handle of ours. */
static struct mf_library_cache *recall(struct memfs *m, const struct mf_cache *cache)
{
	struct mf_library_cache **at, *entry;

	pthread_mutex_lock(&m->library.mutex);
	for (at = &m->library.first; *at && (*at)->cache != cache;)
		at = &(*at)->next;
	entry = *at;
	if (entry)
		*at = entry->next;
	pthread_mutex_unlock(&m->library.mutex);
	return entry;
}

void mf_library_forget_caches(struct memfs *m)
{
	struct mf_library_cache *entry;

	while ((entry = m->library.first)) {
		m->library.first = entry->next;
		free(entry);
	}
}

/* --- caches --- */

int memfs_cache_create(struct memfs *m, const char *name, size_t size, size_t align, unsigned flags,
		       void (*ctor)(void *object), struct memfs_cache **out)
{
	struct mf_cache_request request = {
		.name = mf_text_of(name),
		.size = (uint32_t)size,
		.align = (uint32_t)align,
		.flags = flags,
		.ctor = ctor,
	};
	struct mf_library_cache *entry;
	int error;

	if (request.size != size || request.align != align || flags & ~ALL_FLAGS)
		return -EINVAL;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	error = mf_cache_create(m->slabs, &request, &entry->cache, NULL, 0);
	if (error) {
		free(entry);
		return error;
	}
	*out = (struct memfs_cache *)entry->cache;
	memcpy(entry->name, request.name.at, request.name.length);
	remember(m, entry);
	return 0;
}

/* The name stays, and the handle with it. */
static int keep(struct memfs *m, struct mf_library_cache *entry, int error)
{
	entry->cache = mf_cache_get(m->slabs, mf_text_of(entry->name));
	if (entry->cache) {
		remember(m, entry);
		return error;
	}
	free(entry); /* it was destroyed by its file meanwhile */
	return 0;
}

int memfs_cache_destroy(struct memfs *m, struct memfs_cache *c)
{
	struct mf_library_cache *entry = recall(m, cache_of(c));
	int error;

	if (!entry)
		return -EINVAL;
	mf_cache_put(entry->cache);
	error = mf_cache_destroy(m->slabs, mf_text_of(entry->name), NULL, 0);
	if (error)
		return keep(m, entry, error);
	free(entry);
	return 0;
}

size_t memfs_cache_shrink(struct memfs *m, struct memfs_cache *c)
{
	(void)m;
	return mf_cache_shrink(cache_of(c));
}

/* --- objects --- */

void *memfs_cache_alloc(struct memfs_task *t, struct memfs_cache *c, memfs_gfp gfp)
{
	return mf_cache_alloc(cache_of(c), &task_of(t)->place, gfp);
}

void *memfs_cache_alloc_node(struct memfs_task *t, struct memfs_cache *c, memfs_gfp gfp, int node)
{
	return mf_cache_alloc_node(cache_of(c), &task_of(t)->place, gfp, node);
}

int memfs_cache_free(struct memfs_task *t, struct memfs_cache *c, void *object)
{
	return mf_cache_free(cache_of(c), &task_of(t)->place, object);
}

size_t memfs_cache_alloc_bulk(struct memfs_task *t, struct memfs_cache *c, memfs_gfp gfp, size_t n,
			      void **objects)
{
	return mf_cache_alloc_bulk(cache_of(c), &task_of(t)->place, gfp, n, objects);
}

int memfs_cache_free_bulk(struct memfs_task *t, struct memfs_cache *c, size_t n, void **objects)
{
	return mf_cache_free_bulk(cache_of(c), &task_of(t)->place, n, objects);
}

/* --- by size --- */

void *memfs_kmalloc(struct memfs_task *t, size_t size, memfs_gfp gfp)
{
	struct mf_task *task = task_of(t);

	return mf_kmalloc(task->slabs, &task->place, size, gfp, MF_NODE_BY_POLICY);
}

void *memfs_kzalloc(struct memfs_task *t, size_t size, memfs_gfp gfp)
{
	struct mf_task *task = task_of(t);

	return mf_kmalloc(task->slabs, &task->place, size, gfp | MEMFS___GFP_ZERO, MF_NODE_BY_POLICY);
}

void *memfs_kmalloc_node(struct memfs_task *t, size_t size, memfs_gfp gfp, int node)
{
	struct mf_task *task = task_of(t);

	return mf_kmalloc(task->slabs, &task->place, size, gfp, node);
}

int memfs_kfree(struct memfs_task *t, void *object)
{
	struct mf_task *task = task_of(t);

	return mf_kfree(task->slabs, &task->place, object);
}

void *memfs_krealloc(struct memfs_task *t, void *object, size_t size, memfs_gfp gfp)
{
	struct mf_task *task = task_of(t);

	return mf_krealloc(task->slabs, &task->place, object, size, gfp);
}

size_t memfs_ksize(struct memfs *m, const void *object)
{
	return mf_ksize(m->slabs, object);
}
