/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects of one size from slabs of pages: caches and kmalloc.
 *
 *   sheaf      a CPU's array of objects, by restartable sequence      sheaf.c
 *   cpu slab   the slab a CPU takes objects from                      layers.c
 *   partial    a CPU's list of slabs with free objects                layers.c
 *   node       a node's list of such slabs, its stock of sheaves      node.c
 *   search     other nodes' lists, each looked at once                search.c
 *   page       a new slab from the page allocator                     layers.c
 *
 * Each layer is asked when the one above has nothing.  The sheaves can be
 * switched off (tune/slab_sheaves): then the three layers of seeds/004 are all
 * there is.  A cache with debugging uses neither sheaves nor CPU layers.
 *
 * Invariants, when nothing runs, for each cache:
 *   objects handed out + free in slabs + in sheaves + deferred = total_objects
 *   slabs = alloc_slab - free_slab
 *   total_objects = sum over slabs of their objects
 *   every slab is a CPU's, on a CPU's partial list, on its node's list, or full
 *
 * Threads: any thread, and inside a signal handler that has interrupted any of
 * these (create and destroy aside): it never waits for a lock it may have
 * interrupted; an allocation may fail for that, a free is kept for later.
 */
#ifndef MF_SLAB_H
#define MF_SLAB_H

#include "base/hash.h"
#include "base/outbuf.h"
#include "page/page.h"
#include "slab/geometry.h"

struct mf_slabs; /* all caches of one instance */
struct mf_cache;

enum mf_slab_skip { MF_SLAB_SKIP_VISITED, MF_SLAB_SKIP_LAST, MF_SLAB_SKIP_NONE };

struct mf_slab_knobs {
	int skip;    /* enum mf_slab_skip */
	int sheaves; /* 1: per-CPU arrays before the layers */
	uint64_t stock_bytes; /* objects a node keeps in full sheaves of one cache: bytes, and no more than 1024 or a mebibyte */
	uint64_t max_caches; /* 4096 */
};

struct mf_cache_request {
	struct mf_text name;
	uint32_t size, align; /* bytes; align 0: a word */
	unsigned flags;	      /* MF_SLAB_FLAG() */
	void (*ctor)(void *object);
};

/* Takes over nothing.  -ENOMEM. Makes the kmalloc caches. */
int mf_slabs_create(struct mf_page *pg, struct mf_plat *plat, struct mf_slabs **out);
void mf_slabs_destroy(struct mf_slabs *slabs); /* caches still there go, objects and all */
void mf_slabs_get_knobs(const struct mf_slabs *slabs, struct mf_slab_knobs *out);
/* Sheaves switched off are flushed: no lock held.  MF_SLAB_... */
void mf_slabs_set_knobs(struct mf_slabs *slabs, const struct mf_slab_knobs *knobs);

/* --- caches --- */

/*
 * -EINVAL (name, size 0 or too large, align, flag), -EEXIST, -ENOSPC (too
 * many), -ENOMEM.  A cache of the same shape may be shared: then the name is an
 * alias of it.  *out is pinned: mf_cache_put().
 */
int mf_cache_create(struct mf_slabs *slabs, const struct mf_cache_request *request, struct mf_cache **out,
		    char *why, size_t why_size);
/*
 * By name; an alias loses the name only.  -ENOENT; -EBUSY: objects are in use,
 * or somebody holds it, or it is a kmalloc cache; then nothing has changed.
 */
int mf_cache_destroy(struct mf_slabs *slabs, struct mf_text name, char *why, size_t why_size);
struct mf_cache *mf_cache_get(struct mf_slabs *slabs, struct mf_text name); /* pinned; NULL: none */
/* The same, and the name itself stays until it is let go: for whoever has objects under that name. */
struct mf_cache *mf_cache_hold(struct mf_slabs *slabs, struct mf_text name);
void mf_cache_unhold(struct mf_cache *cache, struct mf_text name);
void mf_cache_put(struct mf_cache *cache);
/* Every cache once (aliases: @alias names them too), pinned while visited, no lock held. */
typedef void mf_cache_visit_fn(void *arg, const char *name, struct mf_cache *cache, bool alias);
void mf_cache_for_each(struct mf_slabs *slabs, bool aliases, mf_cache_visit_fn *visit, void *arg);
/* The table of names, for the control tree; tables lock MF_LOCK_CACHES. */
struct mf_name_table *mf_cache_names(struct mf_slabs *slabs, struct mf_lock **lock);
const char *mf_cache_name(const struct mf_cache *cache);
const struct mf_slab_geometry *mf_cache_geometry(const struct mf_cache *cache);
unsigned mf_cache_flags(const struct mf_cache *cache);
unsigned mf_cache_aliases(const struct mf_cache *cache);	   /* names beside the first */
void (*mf_cache_ctor(const struct mf_cache *cache))(void *object); /* NULL: none */

/* --- objects --- */

/* NULL: -ENOMEM.  With MF_NODE_BY_POLICY the node is the CPU's or, for a new slab, the policy's. */
void *mf_cache_alloc(struct mf_cache *cache, struct mf_placement *place, memfs_gfp gfp);
void *mf_cache_alloc_node(struct mf_cache *cache, struct mf_placement *place, memfs_gfp gfp, int node);
/* All or none: n or 0. */
size_t mf_cache_alloc_bulk(struct mf_cache *cache, struct mf_placement *place, memfs_gfp gfp, size_t n,
			   void **objects);
/* -EINVAL: not an object of this cache, or (debugging) free already: reported, refused. */
int mf_cache_free(struct mf_cache *cache, const struct mf_placement *place, void *object);
int mf_cache_free_bulk(struct mf_cache *cache, const struct mf_placement *place, size_t n, void **objects);
/* Sheaves and CPU layers back to the nodes, empty slabs back to the page allocator; slabs given back. */
uint64_t mf_cache_shrink(struct mf_cache *cache);

void *mf_kmalloc(struct mf_slabs *slabs, struct mf_placement *place, uint64_t size, memfs_gfp gfp, int node);
int mf_kfree(struct mf_slabs *slabs, const struct mf_placement *place, void *object); /* NULL allowed */
void *mf_krealloc(struct mf_slabs *slabs, struct mf_placement *place, void *object, uint64_t size,
		  memfs_gfp gfp);
uint64_t mf_ksize(struct mf_slabs *slabs, const void *object); /* 0: none of ours */
/* The cache an object belongs to, NULL: none (kmalloc above 8 KiB has none). */
struct mf_cache *mf_cache_of(struct mf_slabs *slabs, const void *object);

/* --- knobs of a cache (slab/NAME/...) --- */
struct mf_cache_knobs {
	unsigned min_partial, cpu_partial; /* slabs of a node's list; objects */
	unsigned defrag_ratio;		   /* remote_node_defrag_ratio, 0..100 */
	unsigned sheaf_capacity;	   /* objects, 0..254 */
};
void mf_cache_get_knobs(const struct mf_cache *cache, struct mf_cache_knobs *out);
/* -EINVAL: cpu_partial or sheaves of a cache with debugging.  A new cpu_partial or capacity flushes the CPUs. */
int mf_cache_set_knobs(struct mf_cache *cache, const struct mf_cache_knobs *knobs);

/* --- counters, by cache and CPU --- */

/* S(name, "help"); the kernel's names where it has them */
#define MF_SLAB_STATS(S) \
	S(alloc_fastpath, "objects from a sheaf or the CPU slab's own list") \
	S(alloc_slowpath, "objects from anywhere below, failures included") \
	S(free_fastpath, "objects freed to a sheaf or the CPU slab's own list") \
	S(free_slowpath, "objects freed to a slab") \
	S(free_frozen, "objects freed to another CPU's slab") \
	S(free_add_partial, "slabs a free put on a node's list") \
	S(free_remove_partial, "slabs a free took off a node's list") \
	S(alloc_from_partial, "CPU slabs taken from a node's list") \
	S(alloc_slab, "new slabs") \
	S(alloc_refill, "times the CPU took over what others had freed to its slab") \
	S(alloc_node_mismatch, "CPU slabs put away because another node was asked for") \
	S(free_slab, "slabs given back") \
	S(cpuslab_flush, "CPU slabs flushed") \
	S(deactivate_full, "CPU slabs put away without a free object") \
	S(deactivate_empty, "CPU slabs put away with free objects only") \
	S(deactivate_to_head, "CPU slabs put at the head of a node's list") \
	S(deactivate_to_tail, "CPU slabs put at the tail of a node's list") \
	S(deactivate_remote_frees, "CPU slabs put away that others had freed to") \
	S(deactivate_bypass, "CPU slabs used up and left") \
	S(order_fallback, "slabs of the least order, for want of larger blocks") \
	S(cmpxchg_double_cpu_fail, "retries of the fast path: none, it restarts instead") \
	S(cmpxchg_double_fail, "retries on a slab: none, a lock is held") \
	S(cpu_partial_alloc, "CPU slabs taken from the CPU's own partial list") \
	S(cpu_partial_free, "slabs a free put on the CPU's partial list") \
	S(cpu_partial_node, "slabs taken along from a node's list to the CPU's") \
	S(cpu_partial_drain, "times the CPU's partial list was full and drained") \
	S(alloc_cpu_sheaf, "objects from a sheaf; part of alloc_fastpath") \
	S(free_cpu_sheaf, "objects freed to a sheaf; part of free_fastpath") \
	S(sheaf_refill, "sheaves filled from the layers") \
	S(sheaf_flush, "sheaves emptied into the layers") \
	S(barn_get, "full sheaves taken from a node's stock") \
	S(barn_get_fail, "times the stock had none") \
	S(barn_put, "full sheaves put into the stock") \
	S(barn_put_fail, "times the stock was full") \
	S(free_remote, "objects of another node, on their way home") \
	S(partial_search, "searches of other nodes' lists") \
	S(partial_probe, "lists looked at in searches") \
	S(partial_probe_skipped, "list looks saved") \
	S(partial_remote_hit, "searches that found a slab")

enum mf_slab_stat {
#define MF_SLAB_STAT_ENUM(name, help) MF_SLAB_STAT_##name,
	MF_SLAB_STATS(MF_SLAB_STAT_ENUM)
#undef MF_SLAB_STAT_ENUM
		MF_NR_SLAB_STATS,
};
extern const char *const mf_slab_stat_names[MF_NR_SLAB_STATS];
extern const char *const mf_slab_stat_help[MF_NR_SLAB_STATS];
uint64_t mf_cache_stat(const struct mf_cache *cache, enum mf_slab_stat id, unsigned cpu);
unsigned mf_cache_nr_cpus(const struct mf_cache *cache); /* CPU numbers are below it */
void mf_cache_stat_clear(struct mf_cache *cache, enum mf_slab_stat id);

/* --- looking --- */

struct mf_cache_info {
	struct {
		uint64_t slabs, total_objects, partial;
		uint64_t objects;	  /* not free in a slab: used, or in a CPU layer */
		uint64_t objects_partial; /* the same on partial slabs */
		uint64_t cpu_slabs;	  /* CPU slabs and partial ones of CPUs */
		uint64_t stock;		  /* objects in the node's full sheaves */
	} node[MEMFS_MAX_NODES];
	uint64_t in_sheaves; /* of all CPUs */
	uint64_t deferred;   /* freed by handlers, not yet taken up */
	uint64_t used;	     /* handed out */
};
void mf_cache_info(struct mf_cache *cache, struct mf_cache_info *out);
/* Slabs and objects on a CPU's partial list. */
void mf_cache_cpu_partial(const struct mf_cache *cache, unsigned cpu, uint64_t *slabs, uint64_t *objects);

/* --- debugging (debug.c) --- */

/* Every object of every slab checked; problems are reported; how many there were. */
unsigned mf_cache_validate(struct mf_cache *cache);
/* Who allocated (or had freed) the objects in use, as the kernel's alloc_traces.  -EINVAL: no STORE_USER. */
int mf_cache_traces(struct mf_cache *cache, bool frees, struct mf_outbuf *out);
/* Called with each report, a line; we hold no lock, but a handler's caller may: see mf_lock_depth(). */
typedef void mf_slab_report_fn(void *arg, const char *text);
void mf_slabs_on_report(struct mf_slabs *slabs, mf_slab_report_fn *report, void *arg);
/* The same for what is nobody's mistake: memory is out. */
void mf_slabs_on_notice(struct mf_slabs *slabs, mf_slab_report_fn *notice, void *arg);
bool mf_cache_is_damaged(const struct mf_cache *cache); /* a report was made about it */

uint64_t mf_slabs_pages(struct mf_slabs *slabs, bool reclaimable, int node); /* -1: all nodes */
unsigned mf_slabs_check(struct mf_slabs *slabs, struct mf_outbuf *out);

#endif
