/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * slab/CACHE/: what a cache is and where its slabs are, file by file in the
 * kernel's formats.  The folder of an alias shows the cache it shares.
 *
 * Counts print "TOTAL N0=a N1=b", nodes with 0 left out.  They are levels of
 * one look at the cache; two files agree when nothing runs.
 *
 * Locks: none here; the cache is pinned while it is looked at.
 */
#include "ctl/ctl_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

typedef int show_cache_fn(struct mf_cache *cache, struct mf_outbuf *out);

static int show_cache(struct memfs *m, const struct mf_ctl_node *node, show_cache_fn *show,
		      struct mf_outbuf *out)
{
	struct mf_cache *cache = mf_ctl_cache(m, node);
	int error;

	if (!cache)
		return -ENODEV;
	error = show(cache, out);
	mf_cache_put(cache);
	return error;
}

/* --- one number --- */

#define NUMBER(name, value) \
	static int show_##name(struct mf_cache *cache, struct mf_outbuf *out) \
	{ \
		mf_outbuf_printf(out, "%u\n", (unsigned)(value)); \
		return 0; \
	}
#define FLAG(name, NAME) NUMBER(name, (mf_cache_flags(cache) & MF_SLAB_FLAG(NAME)) != 0)
#define GEOMETRY(name, field) NUMBER(name, mf_cache_geometry(cache)->field)
/* What the kernel has and we do not. */
#define NEVER(name) NUMBER(name, ((void)cache, 0))

NUMBER(aliases, mf_cache_aliases(cache))
GEOMETRY(align, align)
GEOMETRY(object_size, object_size)
GEOMETRY(objs_per_slab, objects)
GEOMETRY(order, order)
GEOMETRY(slab_size, size)
FLAG(destroy_by_rcu, TYPESAFE_BY_RCU)
FLAG(hwcache_align, HWCACHE_ALIGN)
FLAG(poison, POISON)
FLAG(reclaim_account, RECLAIM_ACCOUNT)
FLAG(red_zone, RED_ZONE)
FLAG(sanity_checks, CONSISTENCY)
FLAG(store_user, STORE_USER)
NEVER(cache_dma)
NEVER(trace)

/* Users copy from and to kmalloc's objects alone. */
static bool is_kmalloc(const struct mf_cache *cache)
{
	for (unsigned class = 0; class < MF_NR_KMALLOC; class ++)
		if (strcmp(mf_cache_name(cache), mf_kmalloc_names[class]) == 0)
			return true;
	return false;
}

NUMBER(usersize, is_kmalloc(cache) ? mf_cache_geometry(cache)->object_size : 0)

/* A constructor is a function of a program that links the library: no cache of a mount has one. */
static int show_ctor(struct mf_cache *cache, struct mf_outbuf *out)
{
	(void)cache;
	(void)out;
	return 0;
}

/* --- by node --- */

static void put_by_node(const uint64_t of[MEMFS_MAX_NODES], struct mf_outbuf *out)
{
	uint64_t total = 0;

	for (unsigned node = 0; node < MEMFS_MAX_NODES; node++)
		total += of[node];
	mf_outbuf_printf(out, "%" PRIu64, total);
	for (unsigned node = 0; node < MEMFS_MAX_NODES; node++)
		if (of[node])
			mf_outbuf_printf(out, " N%u=%" PRIu64, node, of[node]);
	mf_outbuf_puts(out, "\n");
}

#define BY_NODE(name, field) \
	static int show_##name(struct mf_cache *cache, struct mf_outbuf *out) \
	{ \
		uint64_t of[MEMFS_MAX_NODES]; \
		struct mf_cache_info info; \
\
		mf_cache_info(cache, &info); \
		for (unsigned node = 0; node < MEMFS_MAX_NODES; node++) \
			of[node] = info.node[node].field; \
		put_by_node(of, out); \
		return 0; \
	}

BY_NODE(cpu_slabs, cpu_slabs)
BY_NODE(objects, objects)
BY_NODE(objects_partial, objects_partial)
BY_NODE(partial, partial)
BY_NODE(slabs, slabs)
BY_NODE(total_objects, total_objects)

/* --- by CPU --- */

/* The objects are the kernel's estimate: the slabs are half full. */
static int show_slabs_cpu_partial(struct mf_cache *cache, struct mf_outbuf *out)
{
	uint64_t per_slab = mf_cache_geometry(cache)->objects, total = 0, slabs, objects;
	struct mf_outbuf by_cpu = MF_OUTBUF_INIT;
	int error;

	for (unsigned cpu = 0; cpu < mf_cache_nr_cpus(cache); cpu++) {
		mf_cache_cpu_partial(cache, cpu, &slabs, &objects);
		total += slabs;
		if (slabs)
			mf_outbuf_printf(&by_cpu, " C%u=%" PRIu64 "(%" PRIu64 ")", cpu, slabs * per_slab / 2,
					 slabs);
	}
	error = mf_outbuf_error(&by_cpu);
	mf_outbuf_printf(out, "%" PRIu64 "(%" PRIu64 ")", total * per_slab / 2, total);
	if (by_cpu.length)
		mf_outbuf_write(out, by_cpu.data, by_cpu.length);
	mf_outbuf_puts(out, "\n");
	mf_outbuf_free(&by_cpu);
	return error;
}

/* --- who allocated and freed --- */

static int show_traces(struct mf_cache *cache, bool frees, struct mf_outbuf *out)
{
	size_t before = out->length;
	int error = 0;

	if (mf_cache_flags(cache) & MF_SLAB_FLAG(STORE_USER))
		error = mf_cache_traces(cache, frees, out);
	if (!error && out->length == before)
		mf_outbuf_puts(out, "No data\n");
	return error;
}

static int show_alloc_traces(struct mf_cache *cache, struct mf_outbuf *out)
{
	return show_traces(cache, false, out);
}

static int show_free_traces(struct mf_cache *cache, struct mf_outbuf *out)
{
	return show_traces(cache, true, out);
}

/* --- the functions of the rows --- */

#define SHOW_CACHE(name) \
	int mf_ctl_show_cache_##name(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out) \
	{ \
		return show_cache(m, node, show_##name, out); \
	}

MF_CTL_CACHE_FILES(SHOW_CACHE)
