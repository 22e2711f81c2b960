/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of src/slab/ share.
 *
 *   geometry.c  sizes and orders (pure)
 *   cache.c     the table of caches, merging, knobs, the engine's birth and end
 *   object.c    the ways in: alloc, free, bulk; which CPU, which path
 *   sheaf.c     per-CPU arrays, exchanged whole with a node's stock
 *   pool.c      empty ones, and the memory of all
 *   layers.c    CPU slab, CPU partial list, new slabs
 *   node.c      a node's list of partial slabs and its stock of sheaves
 *   search.c    other nodes' lists
 *   kmalloc.c   by size
 *   debug.c     caches with debugging: owners, every step checked
 *   pattern.c   what their bytes must be, reports
 *   traces.c    every object of theirs: validating, who has them
 *   oom.c       what is said when there is no memory
 *   info.c      looking, counting
 *   check.c     every invariant, counted anew
 *
 * Locks, lowest first: CACHES (the table of names), SLAB_CPU (one cache's
 * layers of one CPU), SLAB_NODE (one cache's slabs of one node, several in
 * rising node), SHEAVES (the pool of empty sheaves).  Pages are taken and given
 * back with none of them held.  The heap is not used below CACHES: a handler may
 * have interrupted it.
 */
#ifndef MF_SLAB_INTERNAL_H
#define MF_SLAB_INTERNAL_H

#include "base/why.h"
#include "plat/rseq.h"
#include "slab/slab.h"

/* --- slabs --- */

enum mf_slab_state {
	MF_SLAB_NONE,	     /* no slab begins here */
	MF_SLAB_NEW,	     /* being made or given back: nobody else sees it */
	MF_SLAB_CPU,	     /* a CPU slab: its owner took the free list over */
	MF_SLAB_CPU_PARTIAL, /* on a CPU's partial list */
	MF_SLAB_NODE,	     /* on its node's partial list */
	MF_SLAB_FULL,	     /* on no list (with debugging on its node's full list) */
};

/*
 * One a page, used for the first page of a slab; zero where there is none.
 * Under the node's lock from NEW on, but for `next` of a CPU's partial list,
 * which is under that CPU's.
 */
struct mf_slab {
	void *freelist;	     /* what is not with a CPU */
	uint16_t inuse;	     /* objects not on freelist */
	uint16_t objects;    /* in the slab */
	uint32_t next, prev; /* slabs by first page + 1, 0 the end */
	uint32_t cache;	     /* id; in the other pages of a slab its first page */
	uint8_t order, state, node;
	uint8_t remote_frees; /* while with a CPU others freed to it; with debugging: abandoned (debug.h) */
	uint8_t whole;	      /* every object is free and none is linked: freelist is NULL, inuse 0 */
};

/*
 * Objects of a whole slab on their way out, in a shuffled order that is computed
 * as they are asked for: none of them has been touched.
 */
struct mf_slab_fresh {
	uint16_t left; /* objects still to come */
	uint16_t of;   /* objects of the slab */
	uint16_t at, step;
};

/* --- sheaves --- */

/*
 * word: objects in it | allocations from it << 16, one store commits both.
 * Whoever is not the sequence of its CPU owns it whole or leaves it alone.
 */
struct mf_sheaf {
	uint64_t word;
	uint16_t room;	       /* objects it may hold */
	uint16_t start;	       /* objects it held when it came to its CPU, with no allocations counted */
	struct mf_sheaf *next; /* of a stock or the pool */
	void *object[];
};
#define MF_SHEAF_DEPTH(word) ((unsigned)((word)&0xffff))
#define MF_SHEAF_MOST 254u
#define MF_SHEAF_CLASSES 6 /* sizes of sheaves that are cut from memory */
struct mf_sheaf_chunk;

/* One cache on one CPU.  Zeroed memory is not ready; cpu 0 is shut before anyone looks. */
struct mf_cache_cpu {
	/* what the fast paths read */
	uint32_t owner; /* CPU number while its sequences may use main and remote, else MF_RSEQ_SHUT */
	uint32_t tag;	/* of objects that go into main: this node's, this cache's */
	struct mf_sheaf *main, *remote; /* never NULL once ready: &slabs->nothing has no room */

	struct mf_lock lock; /* SLAB_CPU: everything below, and exchanging the two above */
	bool ready;	     /* written once, release, under the lock SHEAVES */
	int16_t node;
	int cpu;
	struct mf_sheaf *spare;	    /* full or empty or NULL */
	uint32_t slab;		    /* CPU slab's first page + 1, 0 none */
	void *freelist;		    /* what the CPU took over of it */
	struct mf_slab_fresh fresh; /* and what of it was never linked */
	uint8_t burst;		    /* new slabs for the next sheaf; 0: one */
	uint64_t drawn;		    /* state of the draws */
	uint32_t partial;	    /* CPU partial list, newest first: first page + 1 */
	uint32_t partial_slabs;
	uint64_t stat[MF_NR_SLAB_STATS];    /* lock, or relaxed adds of debug paths; since birth */
	uint64_t cleared[MF_NR_SLAB_STATS]; /* what of it is not shown any more */
} __attribute__((aligned(1024)));	    /* a power of two: found by a shift, MF_RSEQ_SHEAF_CPU_SHIFT */

struct mf_cache_node {
	struct mf_lock lock;			    /* SLAB_NODE */
	uint32_t head, tail;			    /* partial slabs: first page + 1 */
	uint32_t full;				    /* with debugging: full slabs */
	uint64_t nr_partial;			    /* relaxed looks without the lock */
	uint64_t nr_slabs, nr_pages, total_objects; /* relaxed looks without the lock */
	struct mf_sheaf *stock;			    /* full sheaves, newest first */
	uint64_t stock_objects;
};

/* A name in the table: of a cache, or one more of it. */
struct mf_cache_name {
	struct mf_named named; /* must be first */
	struct mf_cache *cache;
	bool alias;
	unsigned holds; /* CACHES: it may not go */
};

struct mf_cache {
	char name[MEMFS_NAME_MAX + 1]; /* the first it had; constant */
	struct mf_slabs *slabs;
	uint32_t id; /* slabs->by_id[id] */
	unsigned flags;
	void (*ctor)(void *);
	struct mf_slab_geometry geometry;
	uint64_t secret;	     /* stored free pointers are XORed with it */
	struct mf_cache_knobs knobs; /* relaxed words */
	unsigned pins;		     /* CACHES */
	unsigned names;		     /* CACHES: in the table */
	bool permanent;		     /* kmalloc */
	_Atomic bool damaged;
	memfs_gfp gfp;				     /* added to every slab's request */
	struct mf_cache_cpu *cpu;		     /* [slabs->cpu_limit] */
	struct mf_cache_node *node[MEMFS_MAX_NODES]; /* nodes with memory */
	_Atomic(void *) deferred; /* objects freed by handlers that found the locks taken, linked at offset */
};

struct mf_slabs {
	struct mf_page *page;
	struct mf_plat *plat;
	const struct mf_topo *topo;
	struct mf_fault *fault;
	struct mf_stat_set *stat;
	ptrdiff_t rseq;	      /* mf_rseq_offset(), a copy on the fast paths' way */
	char *base;	      /* of the arenas */
	uint64_t bytes;	      /* of all of them */
	uint32_t *tags;	      /* by pfn: node << MF_TAG_NODE_SHIFT | cache id; MF_TAG_LARGE | order; 0 none */
	struct mf_slab *slab; /* by pfn */
	unsigned cpu_limit;   /* CPUs of the topology and of the host */
	bool use_rseq;
	struct mf_slab_knobs knobs; /* relaxed words */

	struct mf_lock names_lock; /* CACHES */
	struct mf_name_table names;
	struct mf_cache **by_id; /* [max ids]; NULL free; release store */
	uint32_t nr_ids;
	struct mf_cache *kmalloc[MF_NR_KMALLOC];

	struct mf_lock sheaves_lock;		  /* SHEAVES */
	struct mf_sheaf *empty[MF_SHEAF_CLASSES]; /* pool, by size */
	struct mf_sheaf *returned;		  /* empty, not sorted yet: pushed with no lock */
	struct mf_sheaf_chunk *chunks;		  /* the memory they are cut from, newest first */
	size_t chunk_used;			  /* bytes of the newest */

	uint64_t oom_said;	   /* atomic: when that was said last, 0 never */
	mf_slab_report_fn *report; /* relaxed */
	void *report_arg;
	mf_slab_report_fn *notice; /* relaxed */
	void *notice_arg;

	struct mf_sheaf nothing; /* empty and without room; last, as its array has no end */
};

#define MF_MAX_CACHE_IDS 65536u
#define MF_TAG_NODE_SHIFT 20
#define MF_TAG_LARGE 0x80000000u /* kmalloc above the classes: | order */

static inline struct mf_slab *mf_slab_at(const struct mf_slabs *slabs, uint32_t pfn)
{
	return &slabs->slab[pfn];
}

/* The first page of the slab that a tagged page belongs to; by what stays while the slab is there: no lock. */
static inline uint32_t mf_slab_first_page(const struct mf_slabs *slabs, uint32_t pfn)
{
	return slabs->slab[pfn].objects ? pfn : slabs->slab[pfn].cache;
}

/* The first page of a slab from a list's link. */
static inline uint32_t mf_slab_pfn(uint32_t link)
{
	return link - 1;
}

static inline uint32_t mf_slab_tag(const struct mf_cache *cache, int node)
{
	return (uint32_t)node << MF_TAG_NODE_SHIFT | cache->id;
}

/* The tag of the page an address lies in; 0: no address of ours, or no slab's. */
static inline uint32_t mf_slab_tag_of(const struct mf_slabs *slabs, const void *object)
{
	uint64_t offset = (uint64_t)((const char *)object - slabs->base);

	if (__builtin_expect(offset >= slabs->bytes, 0))
		return 0;
	return __atomic_load_n(&slabs->tags[offset >> MEMFS_PAGE_SHIFT], __ATOMIC_RELAXED);
}

static inline bool mf_cache_debugs(const struct mf_cache *cache)
{
	return cache->flags & MF_SLAB_DEBUG;
}

/* --- free pointers: XORed with the cache's secret and with where they stand, bytes swapped --- */
static inline void *mf_slab_next_free(const struct mf_cache *cache, const void *object)
{
	const char *at = (const char *)object + cache->geometry.offset;
	uint64_t stored;

	__builtin_memcpy(&stored, at, sizeof(stored));
	return (void *)(uintptr_t)(stored ^ cache->secret ^ __builtin_bswap64((uintptr_t)at));
}

static inline void mf_slab_set_next_free(const struct mf_cache *cache, void *object, const void *next)
{
	char *at = (char *)object + cache->geometry.offset;
	uint64_t stored = (uintptr_t)next ^ cache->secret ^ __builtin_bswap64((uintptr_t)at);

	__builtin_memcpy(at, &stored, sizeof(stored));
}

/* --- statistics; the CPU's lock is held --- */
static inline void mf_slab_count(struct mf_cache_cpu *pc, enum mf_slab_stat id, uint64_t n)
{
	__atomic_store_n(&pc->stat[id], pc->stat[id] + n, __ATOMIC_RELAXED);
}

/* --- node.c --- */

/* Slabs on their way back to the page allocator: given when no lock is held any more. */
struct mf_slab_dead {
	uint32_t first; /* linked by next */
	unsigned nr;
};
/* False: only_try and taken. */
bool mf_node_lock(struct mf_cache_node *n, bool only_try);
/* lock held: */
void mf_node_add_partial(struct mf_slabs *slabs, struct mf_cache_node *n, uint32_t pfn, bool tail);
void mf_node_remove_partial(struct mf_slabs *slabs, struct mf_cache_node *n, uint32_t pfn);
void mf_node_add_full(struct mf_slabs *slabs, struct mf_cache_node *n, uint32_t pfn); /* debugging */
void mf_node_remove_full(struct mf_slabs *slabs, struct mf_cache_node *n, uint32_t pfn);
/* Off the books and onto the list of the dead. */
void mf_node_discard(struct mf_cache *cache, struct mf_cache_node *n, uint32_t pfn,
		     struct mf_slab_dead *dead);
/* No lock held: pages back, to the lists of the placement's CPU if there is one. */
void mf_slab_bury(struct mf_cache *cache, const struct mf_placement *place, struct mf_slab_dead *dead);
/* One full sheaf from the stock, NULL none; and into it: false when it is full. */
struct mf_sheaf *mf_stock_get(struct mf_cache *cache, int node, bool only_try);
bool mf_stock_put(struct mf_cache *cache, int node, struct mf_sheaf *sheaf, bool only_try);

/* --- layers.c --- */

/* One operation on its way through the layers. */
struct mf_slab_work {
	struct mf_cache *cache;
	struct mf_cache_cpu *pc;    /* its lock is held */
	struct mf_placement *place; /* NULL: none (flushes) */
	memfs_gfp gfp;
	int node;      /* MF_NODE_BY_POLICY or the node named */
	bool only_try; /* has interrupted a lock holder: locks are only tried */
	bool direct;   /* for a user, not to fill or empty a sheaf: fastpath and slowpath are counted */
	struct mf_slab_dead dead; /* to be buried once no lock is held */
};

/*
 * Up to n objects, fewer only where more would need another new slab; none: no
 * memory, or a lock it may not wait for.  Lets go of pc->lock while a new slab
 * is made, and takes it again.
 */
size_t mf_layers_take(struct mf_slab_work *w, size_t n, void **objects);
/* One for a user, without a sheaf; NULL: as above. */
void *mf_layers_take_one(struct mf_slab_work *w);
/* How many, from the first on; fewer than n: a lock it may not wait for was taken. */
size_t mf_layers_give(struct mf_slab_work *w, size_t n, void **objects);
/* CPU slab and partial list to their nodes; false: not all, a lock was taken. */
bool mf_layers_flush(struct mf_slab_work *w);
/* No lock held: empty slabs of all node lists go, the fullest first among the rest; slabs gone. */
uint64_t mf_layers_shrink_nodes(struct mf_cache *cache, struct mf_slab_dead *dead);
/* No lock held: a whole slab (with debugging: its free list linked) in state NEW and no count; first page + 1, 0: no memory. */
uint32_t mf_slab_new(struct mf_slab_work *w);
/* The order in which the objects of a whole slab come; @drawn: any number. */
struct mf_slab_fresh mf_slab_shuffle(unsigned objects, uint64_t drawn);
/* The next one; fresh->left is above 0. */
static inline void *mf_slab_next_fresh(const struct mf_cache *cache, uint32_t pfn,
				       struct mf_slab_fresh *fresh)
{
	char *object = cache->slabs->base + ((uint64_t)pfn << MEMFS_PAGE_SHIFT) +
		       (uint64_t)fresh->at * cache->geometry.size + cache->geometry.red_left;
	unsigned next = (unsigned)fresh->at + fresh->step;

	fresh->at = (uint16_t)(next >= fresh->of ? next - fresh->of : next);
	fresh->left--;
	return object;
}

/* The node's lock is held: it is counted from now on. */
void mf_slab_enter(struct mf_cache *cache, struct mf_cache_node *n, uint32_t pfn);

/* --- search.c --- */

/* True: *taken is a slab taken off the list of the node it asks about. */
typedef bool mf_search_probe_fn(void *arg, int node);
struct mf_search_result {
	unsigned probes, skipped;
	bool hit;
};
/*
 * Along @nodes (a zonelist, a zone an entry) until a probe succeeds.  @tried:
 * a node that was looked at just before, -1 none.  Pure but for the probe.
 */
struct mf_search_result mf_slab_search(const uint8_t *nodes, unsigned n, int tried, enum mf_slab_skip skip,
				       mf_search_probe_fn *probe, void *arg);
/* The nodes of the zones, in the order the policy's node sees them; moves no rotation. */
unsigned mf_slab_search_order(struct mf_slabs *slabs, const struct mf_placement *place, memfs_gfp gfp,
			      uint8_t *nodes, unsigned max);

/* --- pool.c --- */

struct mf_sheaf *mf_sheaf_new(struct mf_slabs *slabs, unsigned room, bool only_try); /* from the pool; NULL */
void mf_sheaf_free(struct mf_slabs *slabs, struct mf_sheaf *sheaf);		     /* to the pool, empty */
/* Gives the pool's memory back; nobody uses a sheaf any more. */
void mf_sheaf_pool_destroy(struct mf_slabs *slabs);

/* --- sheaf.c: pc->lock is held --- */

/*
 * The CPU's sequences are locked out, whoever calls from wherever.  They are let
 * in again by the next thread of that CPU that takes the lock, so that visitors
 * who follow each other need one fence.
 */
void mf_sheaf_visit_begin(struct mf_cache_cpu *pc);
/* One object with the sheaf's help, refilled if need be; NULL: no memory, or a lock was taken. */
void *mf_sheaf_alloc(struct mf_slab_work *w);
/* False: it could not be taken (a lock); the object is still the caller's. */
bool mf_sheaf_give(struct mf_slab_work *w, void *object, bool is_remote);
/* All sheaves of the CPU emptied into the layers and given up. */
void mf_sheaf_flush(struct mf_slab_work *w);
/* The stock of every node emptied through w->pc's layers. */
void mf_stock_flush(struct mf_slab_work *w);
/* Allocations and frees counted in a sheaf that is still with its CPU. */
void mf_sheaf_counts(const struct mf_sheaf *sheaf, uint64_t *allocs, uint64_t *frees);

/* As many as can be had without the layers: from the CPU's sheaves and the node's stock. */
size_t mf_sheaf_take(struct mf_slab_work *w, size_t n, void **objects);

/* --- object.c --- */

/* A flushed cache's locks and sheaves of its CPUs end; before it is freed. */
void mf_cache_release_cpus(struct mf_cache *cache);

/* Objects that cannot be given back now, kept for the next operation that can; anybody, no lock. */
void mf_cache_defer(struct mf_cache *cache, size_t n, void **objects);
struct mf_cache_cpu *mf_cache_cpu_get(struct mf_cache *cache,
				      const struct mf_placement *place); /* made ready */
bool mf_cache_cpu_lock(struct mf_cache_cpu *pc, bool only_try);
/* Objects that handlers left behind go to the layers; pc->lock is held. */
void mf_cache_take_deferred(struct mf_slab_work *w);
/* No lock held: every CPU's sheaves and layers, every node's stock; what became empty is buried. */
void mf_cache_flush(struct mf_cache *cache);

/* --- info.c --- */

/* At the instance's end: slabs that still have objects are given back all the same. */
void mf_cache_release_slabs(struct mf_cache *cache);

/* --- debug.c, pattern.c: caches with debugging, one object at a time; no lock held --- */
void *mf_debug_alloc(struct mf_cache *cache, struct mf_cache_cpu *pc, struct mf_placement *place,
		     memfs_gfp gfp, int node, const void *caller);
int mf_debug_free(struct mf_cache *cache, struct mf_cache_cpu *pc, const struct mf_placement *place,
		  void *object, const void *caller);
/* What handlers could not give back; the layers know nothing of a cache with debugging. */
void mf_debug_take_deferred(struct mf_cache *cache, struct mf_cache_cpu *pc,
			    const struct mf_placement *place);
void mf_debug_init_slab(struct mf_cache *cache, uint32_t pfn);	/* patterns of a new slab */
void mf_debug_check_slab(struct mf_cache *cache, uint32_t pfn); /* before it goes back */
/* oom.c: no memory for a slab, unless the flags say that nobody minds. */
void mf_slab_out_of_memory(struct mf_cache *cache, memfs_gfp gfp, int node);
/* A pointer that is no object of the cache: reported.  Returns -EINVAL. */
int mf_slab_refuse(struct mf_slabs *slabs, struct mf_cache *cache, const void *object, const char *what);
/* The object's first byte if the pointer is one's start in a slab of the cache; else NULL. */
void *mf_slab_object_start(const struct mf_cache *cache, const void *object);

#endif
