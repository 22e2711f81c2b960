/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of caches: made, shared under several names, destroyed; and the
 * engine's birth and end.
 *
 * Invariants: by_id[id] leads to every cache there is; cache->names counts the
 * entries of the table that lead to it; a cache without names is about to go.
 *
 * Locks: names_lock for the table, pins and names; nothing else is taken under
 * it.  Slabs and pages move with no lock held.
 */
#include "slab/slab_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_STOCK (UINT64_C(8) << 20)
#define DEFAULT_MAX_CACHES 4096
#define DEFAULT_DEFRAG_RATIO 100

/* --- a cache's memory --- */

static size_t cpu_bytes(const struct mf_slabs *slabs)
{
	return slabs->cpu_limit * sizeof(struct mf_cache_cpu);
}

static void *meta_alloc(struct mf_slabs *slabs, size_t bytes)
{
	return mf_fault_hit(slabs->fault, MF_FAULT_meta_alloc)
		       ? NULL
		       : slabs->plat->ops->meta_alloc(slabs->plat, bytes);
}

static void free_cache(struct mf_cache *cache)
{
	struct mf_slabs *slabs = cache->slabs;

	for (int node = 0; node < MEMFS_MAX_NODES; node++) {
		if (cache->node[node])
			mf_lock_destroy(&cache->node[node]->lock);
		free(cache->node[node]);
	}
	if (cache->cpu)
		slabs->plat->ops->meta_free(slabs->plat, cache->cpu, cpu_bytes(slabs));
	free(cache);
}

static int make_nodes(struct mf_cache *cache)
{
	MF_FOR_EACH_NODE(node, cache->slabs->topo->memory) {
		struct mf_cache_node *n = NULL;

		if (!mf_fault_hit(cache->slabs->fault, MF_FAULT_meta_alloc))
			n = calloc(1, sizeof(*n));
		if (!n)
			return -ENOMEM;
		mf_lock_init(&n->lock, MF_LOCK_SLAB_NODE);
		cache->node[node] = n;
	}
	return 0;
}

static uint64_t draw_secret(const struct mf_slabs *slabs, const struct mf_cache *cache)
{
	uint64_t x = (uintptr_t)cache ^ (uintptr_t)slabs << 17 ^ slabs->plat->ops->now_ns(slabs->plat);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static struct mf_cache *new_cache(struct mf_slabs *slabs, const struct mf_cache_request *request,
				  const struct mf_slab_geometry *geometry)
{
	struct mf_cache *cache = NULL;

	if (!mf_fault_hit(slabs->fault, MF_FAULT_meta_alloc))
		cache = calloc(1, sizeof(*cache));
	if (!cache)
		return NULL;
	cache->slabs = slabs;
	memcpy(cache->name, request->name.at, request->name.length);
	cache->flags = request->flags;
	cache->ctor = request->ctor;
	cache->geometry = *geometry;
	cache->secret = draw_secret(slabs, cache);
	cache->gfp = request->flags & MF_SLAB_FLAG(RECLAIM_ACCOUNT) ? MEMFS___GFP_RECLAIMABLE : 0;
	cache->knobs = (struct mf_cache_knobs){
		.min_partial = geometry->min_partial,
		.cpu_partial = geometry->cpu_partial,
		.defrag_ratio = DEFAULT_DEFRAG_RATIO,
		.sheaf_capacity = geometry->sheaf_capacity,
	};
	cache->cpu = meta_alloc(slabs, cpu_bytes(slabs));
	if (!cache->cpu || make_nodes(cache)) {
		free_cache(cache);
		return NULL;
	}
	/* Zeroed memory would be open for CPU 0. */
	cache->cpu[0].owner = MF_RSEQ_SHUT;
	return cache;
}

/* --- names; names_lock is held --- */

static struct mf_cache_name *find_name(struct mf_slabs *slabs, struct mf_text name)
{
	return (struct mf_cache_name *)mf_name_table_find(&slabs->names, name);
}

static int add_name(struct mf_slabs *slabs, struct mf_cache *cache, struct mf_text name, bool alias)
{
	struct mf_cache_name *entry = NULL;
	int error;

	if (!mf_fault_hit(slabs->fault, MF_FAULT_meta_alloc))
		entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	error = mf_name_table_add(&slabs->names, &entry->named, name);
	if (error) {
		free(entry);
		return error;
	}
	entry->cache = cache;
	entry->alias = alias;
	cache->names++;
	return 0;
}

/* The oldest name that is left is the cache's own from now on: who goes through the caches finds it by that. */
static void pass_on(struct mf_slabs *slabs, const struct mf_cache *cache)
{
	for (struct mf_named *at = slabs->names.oldest; at; at = at->newer) {
		struct mf_cache_name *entry = (struct mf_cache_name *)at;

		if (entry->cache == cache) {
			entry->alias = false;
			return;
		}
	}
}

static void drop_name(struct mf_slabs *slabs, struct mf_cache_name *entry)
{
	struct mf_cache *cache = entry->cache;
	bool own = !entry->alias;

	cache->names--;
	mf_name_table_remove(&slabs->names, &entry->named);
	free(entry);
	if (own && cache->names)
		pass_on(slabs, cache);
}

static int take_id(struct mf_slabs *slabs, struct mf_cache *cache)
{
	for (uint32_t id = 1; id < MF_MAX_CACHE_IDS; id++)
		if (!slabs->by_id[id]) {
			cache->id = id;
			__atomic_store_n(&slabs->by_id[id], cache, __ATOMIC_RELEASE);
			if (id >= slabs->nr_ids)
				__atomic_store_n(&slabs->nr_ids, id + 1, __ATOMIC_RELEASE);
			return 0;
		}
	return -ENOSPC;
}

static struct mf_cache *find_host(struct mf_slabs *slabs, const struct mf_slab_geometry *geometry,
				  const struct mf_cache_request *request)
{
	for (uint32_t id = 1; id < slabs->nr_ids; id++) {
		struct mf_cache *cache = slabs->by_id[id];

		/* As in the kernel nobody shares the caches of kmalloc. */
		if (cache && cache->names && !cache->permanent &&
		    mf_slab_mergeable(&cache->geometry, cache->flags, cache->ctor != NULL, geometry,
				      request->flags, request->ctor != NULL))
			return cache;
	}
	return NULL;
}

/* --- making --- */

static int check_request(struct mf_slabs *slabs, const struct mf_cache_request *request,
			 struct mf_slab_geometry *geometry, char *why, size_t why_size)
{
	if (!mf_name_is_valid(request->name))
		return mf_why(why, why_size, -EINVAL, "not a name: 1 to %d of A-Z a-z 0-9 . _ : -",
			      MEMFS_NAME_MAX);
	if (!request->size)
		return mf_why(why, why_size, -EINVAL, "size is 0");
	if (request->align & (request->align - 1))
		return mf_why(why, why_size, -EINVAL, "align %u is no power of two", request->align);
	if (mf_slab_geometry(request->size, request->align, request->flags, request->ctor != NULL,
			     slabs->topo->nr_cpus, geometry))
		return mf_why(why, why_size, -EINVAL, "size %u does not fit into the largest slab",
			      request->size);
	return 0;
}

/* A shared object is as large as the largest that was asked for: all of that is cleared, and the user's. */
static void cover(struct mf_cache *host, const struct mf_slab_geometry *wanted)
{
	if (wanted->object_size > host->geometry.object_size)
		__atomic_store_n(&host->geometry.object_size, wanted->object_size, __ATOMIC_RELAXED);
	if (wanted->inuse > host->geometry.inuse)
		__atomic_store_n(&host->geometry.inuse, wanted->inuse, __ATOMIC_RELAXED);
}

/* names_lock is held: the new cache, or the one that takes the name on; NULL and *error. */
static struct mf_cache *enter(struct mf_slabs *slabs, const struct mf_cache_request *request,
			      const struct mf_slab_geometry *geometry, struct mf_cache *made, int *error)
{
	struct mf_cache *host = find_host(slabs, geometry, request);

	*error = 0;
	if (find_name(slabs, request->name))
		*error = -EEXIST;
	else if (slabs->names.count >= __atomic_load_n(&slabs->knobs.max_caches, __ATOMIC_RELAXED))
		*error = -ENOSPC;
	else if (host)
		*error = add_name(slabs, host, request->name, true);
	else
		*error = take_id(slabs, made);
	if (!*error && !host) {
		*error = add_name(slabs, made, request->name, false);
		if (*error)
			__atomic_store_n(&slabs->by_id[made->id], NULL, __ATOMIC_RELEASE);
	}
	if (*error)
		return NULL;
	if (host)
		cover(host, geometry);
	host = host ? host : made;
	host->pins++;
	return host;
}

int mf_cache_create(struct mf_slabs *slabs, const struct mf_cache_request *request, struct mf_cache **out,
		    char *why, size_t why_size)
{
	int shown = (int)request->name.length;
	struct mf_slab_geometry geometry;
	struct mf_cache *made, *cache;
	int error = check_request(slabs, request, &geometry, why, why_size);

	if (error)
		return error;
	made = new_cache(slabs, request, &geometry);
	if (!made)
		return mf_why(why, why_size, -ENOMEM, "no memory for the cache's descriptor");
	mf_lock_acquire(&slabs->names_lock);
	cache = enter(slabs, request, &geometry, made, &error);
	mf_lock_release(&slabs->names_lock);
	if (cache != made)
		free_cache(made);
	if (error == -EEXIST)
		return mf_why(why, why_size, error, "%.*s exists", shown, request->name.at);
	if (error == -ENOSPC)
		return mf_why(why, why_size, error, "there are as many caches as tune/max_caches allows");
	if (error)
		return mf_why(why, why_size, error, "no memory for the name");
	*out = cache;
	return 0;
}

/* --- destroying --- */

static void forget(struct mf_cache *cache)
{
	struct mf_slabs *slabs = cache->slabs;

	mf_lock_acquire(&slabs->names_lock);
	__atomic_store_n(&slabs->by_id[cache->id], NULL, __ATOMIC_RELEASE);
	mf_lock_release(&slabs->names_lock);
	mf_cache_release_cpus(cache);
	free_cache(cache);
}

static uint64_t nr_slabs(const struct mf_cache *cache)
{
	uint64_t nr = 0;

	for (int node = 0; node < MEMFS_MAX_NODES; node++)
		if (cache->node[node])
			nr += __atomic_load_n(&cache->node[node]->nr_slabs, __ATOMIC_RELAXED);
	return nr;
}

/* Pinned by us alone and without other names: all layers emptied, it may go if no slab is left. */
static int end_cache(struct mf_slabs *slabs, struct mf_cache *cache, struct mf_text name, char *why,
		     size_t why_size)
{
	bool last;

	mf_cache_shrink(cache);
	if (nr_slabs(cache)) {
		mf_cache_put(cache);
		return mf_why(why, why_size, -EBUSY, "%.*s has objects in use", (int)name.length, name.at);
	}
	mf_lock_acquire(&slabs->names_lock);
	last = cache->pins == 1 && cache->names == 1 && !nr_slabs(cache);
	if (last)
		drop_name(slabs, find_name(slabs, name));
	mf_lock_release(&slabs->names_lock);
	if (!last) {
		mf_cache_put(cache);
		return mf_why(why, why_size, -EBUSY, "%.*s is in use", (int)name.length, name.at);
	}
	forget(cache);
	return 0;
}

/* names_lock is held.  0: *cache is pinned and may end, or NULL: only a name went. */
static int give_up_name(struct mf_slabs *slabs, struct mf_text name, struct mf_cache **cache,
			const char **because)
{
	struct mf_cache_name *entry = find_name(slabs, name);

	*cache = NULL;
	*because = "is in use";
	if (!entry)
		return -ENOENT;
	if (entry->cache->permanent) {
		*because = "belongs to kmalloc";
		return -EBUSY;
	}
	if (entry->holds) {
		*because = "has objects in use";
		return -EBUSY;
	}
	if (entry->cache->names > 1) {
		drop_name(slabs, entry);
		return 0;
	}
	if (entry->cache->pins)
		return -EBUSY;
	*cache = entry->cache;
	entry->cache->pins++;
	return 0;
}

int mf_cache_destroy(struct mf_slabs *slabs, struct mf_text name, char *why, size_t why_size)
{
	struct mf_cache *cache;
	const char *because;
	int error;

	mf_lock_acquire(&slabs->names_lock);
	error = give_up_name(slabs, name, &cache, &because);
	mf_lock_release(&slabs->names_lock);
	if (error == -ENOENT)
		return mf_why(why, why_size, error, "no cache %.*s", (int)name.length, name.at);
	if (error)
		return mf_why(why, why_size, error, "%.*s %s", (int)name.length, name.at, because);
	return cache ? end_cache(slabs, cache, name, why, why_size) : 0;
}

/* --- pins and walks --- */

static struct mf_cache *pin(struct mf_slabs *slabs, struct mf_text name, unsigned holds)
{
	struct mf_cache_name *entry;
	struct mf_cache *cache = NULL;

	mf_lock_acquire(&slabs->names_lock);
	entry = find_name(slabs, name);
	if (entry) {
		cache = entry->cache;
		cache->pins++;
		entry->holds += holds;
	}
	mf_lock_release(&slabs->names_lock);
	return cache;
}

struct mf_cache *mf_cache_get(struct mf_slabs *slabs, struct mf_text name)
{
	return pin(slabs, name, 0);
}

struct mf_cache *mf_cache_hold(struct mf_slabs *slabs, struct mf_text name)
{
	return pin(slabs, name, 1);
}

void mf_cache_unhold(struct mf_cache *cache, struct mf_text name)
{
	struct mf_slabs *slabs = cache->slabs;

	mf_lock_acquire(&slabs->names_lock);
	find_name(slabs, name)->holds--;
	cache->pins--;
	mf_lock_release(&slabs->names_lock);
}

void mf_cache_put(struct mf_cache *cache)
{
	struct mf_slabs *slabs = cache->slabs;

	mf_lock_acquire(&slabs->names_lock);
	cache->pins--;
	mf_lock_release(&slabs->names_lock);
}

void mf_cache_for_each(struct mf_slabs *slabs, bool aliases, mf_cache_visit_fn *visit, void *arg)
{
	uint64_t serial = 0;

	for (;;) {
		char name[MEMFS_NAME_MAX + 1];
		struct mf_cache *cache = NULL;
		bool alias = false;

		mf_lock_acquire(&slabs->names_lock);
		for (struct mf_named *at = mf_name_table_after(&slabs->names, serial); at && !cache;
		     at = at->newer) {
			struct mf_cache_name *entry = (struct mf_cache_name *)at;

			serial = at->serial;
			if (entry->alias && !aliases)
				continue;
			cache = entry->cache;
			alias = entry->alias;
			memcpy(name, at->name, sizeof(name));
			cache->pins++;
		}
		mf_lock_release(&slabs->names_lock);
		if (!cache)
			return;
		visit(arg, name, cache, alias);
		mf_cache_put(cache);
	}
}

struct mf_name_table *mf_cache_names(struct mf_slabs *slabs, struct mf_lock **lock)
{
	*lock = &slabs->names_lock;
	return &slabs->names;
}

const char *mf_cache_name(const struct mf_cache *cache)
{
	return cache->name;
}

const struct mf_slab_geometry *mf_cache_geometry(const struct mf_cache *cache)
{
	return &cache->geometry;
}

unsigned mf_cache_flags(const struct mf_cache *cache)
{
	return cache->flags;
}

void (*mf_cache_ctor(const struct mf_cache *cache))(void *object)
{
	return cache->ctor;
}

unsigned mf_cache_aliases(const struct mf_cache *cache)
{
	unsigned names;

	mf_lock_acquire(&cache->slabs->names_lock);
	names = cache->names;
	mf_lock_release(&cache->slabs->names_lock);
	return names ? names - 1 : 0;
}

/* --- knobs --- */

void mf_cache_get_knobs(const struct mf_cache *cache, struct mf_cache_knobs *out)
{
	out->min_partial = __atomic_load_n(&cache->knobs.min_partial, __ATOMIC_RELAXED);
	out->cpu_partial = __atomic_load_n(&cache->knobs.cpu_partial, __ATOMIC_RELAXED);
	out->defrag_ratio = __atomic_load_n(&cache->knobs.defrag_ratio, __ATOMIC_RELAXED);
	out->sheaf_capacity = __atomic_load_n(&cache->knobs.sheaf_capacity, __ATOMIC_RELAXED);
}

int mf_cache_set_knobs(struct mf_cache *cache, const struct mf_cache_knobs *knobs)
{
	bool flush = knobs->cpu_partial != cache->knobs.cpu_partial ||
		     knobs->sheaf_capacity != cache->knobs.sheaf_capacity;

	if ((mf_cache_debugs(cache) && (knobs->cpu_partial || knobs->sheaf_capacity)) ||
	    knobs->sheaf_capacity > MF_SHEAF_MOST || knobs->defrag_ratio > 100)
		return -EINVAL;
	__atomic_store_n(&cache->knobs.min_partial, knobs->min_partial, __ATOMIC_RELAXED);
	__atomic_store_n(&cache->knobs.cpu_partial, knobs->cpu_partial, __ATOMIC_RELAXED);
	__atomic_store_n(&cache->knobs.defrag_ratio, knobs->defrag_ratio, __ATOMIC_RELAXED);
	__atomic_store_n(&cache->knobs.sheaf_capacity, knobs->sheaf_capacity, __ATOMIC_RELAXED);
	if (flush)
		mf_cache_flush(cache);
	return 0;
}

void mf_slabs_get_knobs(const struct mf_slabs *slabs, struct mf_slab_knobs *out)
{
	out->skip = __atomic_load_n(&slabs->knobs.skip, __ATOMIC_RELAXED);
	out->sheaves = __atomic_load_n(&slabs->knobs.sheaves, __ATOMIC_RELAXED);
	out->stock_bytes = __atomic_load_n(&slabs->knobs.stock_bytes, __ATOMIC_RELAXED);
	out->max_caches = __atomic_load_n(&slabs->knobs.max_caches, __ATOMIC_RELAXED);
}

/* What the sheaves had pinned goes back as far as it can. */
static void empty_one(void *arg, const char *name, struct mf_cache *cache, bool alias)
{
	(void)arg, (void)name, (void)alias;
	mf_cache_shrink(cache);
}

void mf_slabs_set_knobs(struct mf_slabs *slabs, const struct mf_slab_knobs *knobs)
{
	bool flush = knobs->sheaves != slabs->knobs.sheaves || knobs->stock_bytes < slabs->knobs.stock_bytes;

	__atomic_store_n(&slabs->knobs.skip, knobs->skip, __ATOMIC_RELAXED);
	__atomic_store_n(&slabs->knobs.sheaves, knobs->sheaves, __ATOMIC_RELAXED);
	__atomic_store_n(&slabs->knobs.stock_bytes, knobs->stock_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&slabs->knobs.max_caches, knobs->max_caches, __ATOMIC_RELAXED);
	if (flush)
		mf_cache_for_each(slabs, false, empty_one, NULL);
}

/* --- the engine's birth and end --- */

static void shrink_one(void *arg, const char *name, struct mf_cache *cache, bool alias)
{
	(void)name, (void)alias;
	*(uint64_t *)arg += mf_cache_shrink(cache);
}

/* Under pressure every cache gives what it can spare. */
static uint64_t shrink(void *arg, uint64_t nr_pages)
{
	uint64_t slabs = 0;

	(void)nr_pages;
	mf_cache_for_each(arg, false, shrink_one, &slabs);
	return slabs;
}

static int make_kmalloc(struct mf_slabs *slabs)
{
	for (int class = 0; class < MF_NR_KMALLOC; class ++) {
		struct mf_cache_request request = {
			.name = mf_text_of(mf_kmalloc_names[class]),
			.size = mf_kmalloc_sizes[class],
			/* A power of two is aligned to itself. */
			.align = mf_kmalloc_sizes[class] & (mf_kmalloc_sizes[class] - 1)
					 ? 0
					 : mf_kmalloc_sizes[class],
		};
		int error = mf_cache_create(slabs, &request, &slabs->kmalloc[class], NULL, 0);

		if (error)
			return error;
		slabs->kmalloc[class]->permanent = true;
		mf_cache_put(slabs->kmalloc[class]);
	}
	return 0;
}

static size_t tag_bytes(const struct mf_slabs *slabs)
{
	return (size_t)slabs->topo->pfn_limit * sizeof(*slabs->tags);
}

static size_t slab_bytes(const struct mf_slabs *slabs)
{
	return (size_t)slabs->topo->pfn_limit * sizeof(*slabs->slab);
}

static int build(struct mf_slabs *slabs)
{
	int error;

	slabs->tags = meta_alloc(slabs, tag_bytes(slabs));
	slabs->slab = meta_alloc(slabs, slab_bytes(slabs));
	slabs->by_id = meta_alloc(slabs, MF_MAX_CACHE_IDS * sizeof(*slabs->by_id));
	if (!slabs->tags || !slabs->slab || !slabs->by_id)
		return -ENOMEM;
	error = make_kmalloc(slabs);
	return error ? error : mf_page_add_shrinker(slabs->page, shrink, slabs);
}

static unsigned cpu_limit(const struct mf_topo *topo)
{
	unsigned host = mf_rseq_cpu_limit();

	return topo->cpu_limit > host ? topo->cpu_limit : host;
}

int mf_slabs_create(struct mf_page *pg, struct mf_plat *plat, struct mf_slabs **out)
{
	struct mf_slabs *slabs = calloc(1, sizeof(*slabs));
	int error;

	if (!slabs)
		return -ENOMEM;
	slabs->page = pg;
	slabs->plat = plat;
	slabs->topo = mf_page_topo(pg);
	slabs->fault = mf_page_fault(pg);
	slabs->stat = mf_page_stat(pg);
	slabs->use_rseq = mf_page_rseq_available();
	slabs->rseq = mf_rseq_offset();
	slabs->cpu_limit = cpu_limit(slabs->topo);
	slabs->base = mf_page_address(pg, 0);
	slabs->bytes = slabs->topo->pfn_limit << MEMFS_PAGE_SHIFT;
	slabs->knobs = (struct mf_slab_knobs){ .sheaves = 1,
					       .stock_bytes = DEFAULT_STOCK,
					       .max_caches = DEFAULT_MAX_CACHES };
	mf_lock_init(&slabs->names_lock, MF_LOCK_CACHES);
	mf_lock_init(&slabs->sheaves_lock, MF_LOCK_SHEAVES);
	mf_name_table_init(&slabs->names);
	error = build(slabs);
	if (error) {
		mf_slabs_destroy(slabs);
		return error;
	}
	*out = slabs;
	return 0;
}

/* Whoever still holds objects has broken the contract: their pages go all the same. */
static void end_all(struct mf_slabs *slabs)
{
	while (slabs->names.oldest)
		drop_name(slabs, (struct mf_cache_name *)slabs->names.oldest);
	for (uint32_t id = 1; slabs->by_id && id < slabs->nr_ids; id++) {
		struct mf_cache *cache = slabs->by_id[id];

		if (!cache)
			continue;
		mf_cache_shrink(cache);
		mf_cache_release_slabs(cache);
		forget(cache);
	}
}

void mf_slabs_destroy(struct mf_slabs *slabs)
{
	struct mf_plat *plat = slabs->plat;

	mf_page_remove_shrinker(slabs->page, shrink, slabs);
	end_all(slabs);
	mf_sheaf_pool_destroy(slabs);
	if (slabs->by_id)
		plat->ops->meta_free(plat, slabs->by_id, MF_MAX_CACHE_IDS * sizeof(*slabs->by_id));
	if (slabs->slab)
		plat->ops->meta_free(plat, slabs->slab, slab_bytes(slabs));
	if (slabs->tags)
		plat->ops->meta_free(plat, slabs->tags, tag_bytes(slabs));
	mf_name_table_destroy(&slabs->names);
	mf_lock_destroy(&slabs->names_lock);
	mf_lock_destroy(&slabs->sheaves_lock);
	free(slabs);
}
