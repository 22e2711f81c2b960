/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libmemfs: a NUMA page allocator over real memory, without the file system.
 *
 * Every function takes its instance (struct memfs) or a task of it first; two
 * instances in one process share nothing.
 *
 * Failures: a function that returns int or long returns 0 (or what its comment
 * says) or a negative errno, and leaves its out-parameters alone when it fails.
 * Those that return a range's address (memfs_vmalloc, memfs_vzalloc,
 * memfs_vmalloc_node, memfs_vmap) return NULL and set errno; those that return
 * an object's return NULL and leave errno alone.  Functions that look something
 * up say in their comment what stands for "none".
 *
 * Threads: any function may be called from any thread, unless its comment says
 * otherwise.  memfs_alloc_*, memfs_free_* and the calls for objects may also be
 * called inside a signal handler, even one that interrupted another memfs call
 * of the same thread.
 *
 * Units: a page is MEMFS_PAGE_SIZE bytes, a block is 2^order pages, weights are
 * 1..255, node and CPU numbers are those of the topology.
 */
#ifndef MEMFS_H
#define MEMFS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEMFS_PAGE_SHIFT 12
#define MEMFS_PAGE_SIZE 4096u
#define MEMFS_MAX_PAGE_ORDER 10
#define MEMFS_MAX_NODES 64
#define MEMFS_MAX_CPUS 1024
#define MEMFS_NAME_MAX 64

/* One instance: topology, arenas, engines.  Opaque. */
struct memfs;

/* What a mempolicy belongs to: policy, rotation, allowed nodes, CPU.  Opaque. */
struct memfs_task;

/* Objects of one size and the slabs they lie in.  Opaque. */
struct memfs_cache;

/* A page frame number, global over all nodes (design: nodes follow each other). */
typedef struct memfs_pfn {
	uint32_t v;
} memfs_pfn;

/*
 * Allocation flags, named after the kernel's.  The values are ours.
 * The text form (alloc/pages gfp=) is the same names joined by '|'.
 */
typedef uint32_t memfs_gfp;

#define MEMFS___GFP_DMA (1u << 0)	      /* zone DMA only */
#define MEMFS___GFP_DMA32 (1u << 1)	      /* zone DMA32 and below */
#define MEMFS___GFP_HIGHMEM (1u << 2)	      /* no effect alone: no highmem here */
#define MEMFS___GFP_MOVABLE (1u << 3)	      /* movable type; with HIGHMEM also zone Movable */
#define MEMFS___GFP_RECLAIMABLE (1u << 4)     /* reclaimable type */
#define MEMFS___GFP_HIGH (1u << 5)	      /* may use half of the min reserve */
#define MEMFS___GFP_IO (1u << 6)	      /* accepted, no effect */
#define MEMFS___GFP_FS (1u << 7)	      /* accepted, no effect */
#define MEMFS___GFP_ZERO (1u << 8)	      /* clear the pages */
#define MEMFS___GFP_DIRECT_RECLAIM (1u << 9)  /* may drain and shrink, may wait */
#define MEMFS___GFP_KSWAPD_RECLAIM (1u << 10) /* accepted, no effect */
#define MEMFS___GFP_NOWARN (1u << 11)	      /* no log line on failure */
#define MEMFS___GFP_RETRY_MAYFAIL (1u << 12)  /* accepted, no effect */
#define MEMFS___GFP_NOFAIL (1u << 13)	      /* wait until it succeeds */
#define MEMFS___GFP_NORETRY (1u << 14)	      /* fail without draining or shrinking */
#define MEMFS___GFP_MEMALLOC (1u << 15)	      /* ignore watermarks */
#define MEMFS___GFP_NOMEMALLOC (1u << 16)     /* never below min, wins over MEMALLOC */
#define MEMFS___GFP_COMP (1u << 17)	      /* accepted, no effect */
#define MEMFS___GFP_HARDWALL (1u << 18)	      /* accepted: mems_allowed always holds */
#define MEMFS___GFP_THISNODE (1u << 19)	      /* the named node or nothing */
#define MEMFS___GFP_ACCOUNT (1u << 20)	      /* accepted, no effect */

#define MEMFS___GFP_RECLAIM (MEMFS___GFP_DIRECT_RECLAIM | MEMFS___GFP_KSWAPD_RECLAIM)
#define MEMFS_GFP_KERNEL (MEMFS___GFP_RECLAIM | MEMFS___GFP_IO | MEMFS___GFP_FS)
#define MEMFS_GFP_KERNEL_ACCOUNT (MEMFS_GFP_KERNEL | MEMFS___GFP_ACCOUNT)
#define MEMFS_GFP_ATOMIC (MEMFS___GFP_HIGH | MEMFS___GFP_KSWAPD_RECLAIM)
#define MEMFS_GFP_NOWAIT (MEMFS___GFP_KSWAPD_RECLAIM | MEMFS___GFP_NOWARN)
#define MEMFS_GFP_NOIO (MEMFS___GFP_RECLAIM)
#define MEMFS_GFP_NOFS (MEMFS___GFP_RECLAIM | MEMFS___GFP_IO)
#define MEMFS_GFP_USER (MEMFS_GFP_KERNEL | MEMFS___GFP_HARDWALL)
#define MEMFS_GFP_DMA MEMFS___GFP_DMA
#define MEMFS_GFP_DMA32 MEMFS___GFP_DMA32
#define MEMFS_GFP_HIGHUSER (MEMFS_GFP_USER | MEMFS___GFP_HIGHMEM)
#define MEMFS_GFP_HIGHUSER_MOVABLE (MEMFS_GFP_HIGHUSER | MEMFS___GFP_MOVABLE)

/*
 * memfs_create - builds an instance.
 * @options: the mount's -o text ("topology=2x256M:cpus=2,weights/node0=3"),
 *           NULL for the defaults.
 * @why:     on failure receives one line without newline (at most why_size
 *           bytes); may be NULL.
 * Errors: EINVAL bad options or topology, ENOMEM, ENODEV no such host nodes.
 */
int memfs_create(const char *options, struct memfs **out, char *why, size_t why_size);

/* memfs_destroy - frees everything; no other call may be running. NULL is allowed. */
void memfs_destroy(struct memfs *m);

const char *memfs_version(void);

/*
 * Tasks.  The one called "default" always exists and is never destroyed.
 * memfs_task_create: EINVAL bad name, EEXIST, ENOSPC too many, ENOMEM.
 * memfs_task_find returns NULL when there is none.
 * memfs_task_destroy: EBUSY while it has live (named) allocations or is "default".
 * A task handle stays valid until it is destroyed.
 */
int memfs_task_create(struct memfs *m, const char *name, struct memfs_task **out);
struct memfs_task *memfs_task_find(struct memfs *m, const char *name);
int memfs_task_destroy(struct memfs_task *t);

/*
 * memfs_task_set_policy - the kernel's text ("weighted interleave:0-1", a
 * hyphen may stand for the space).  Resets the rotation.  EINVAL changes nothing.
 */
int memfs_task_set_policy(struct memfs_task *t, const char *policy);

/* memfs_task_set_mems_allowed - a node list ("0,2-3"); rebinds the policy. EINVAL. */
int memfs_task_set_mems_allowed(struct memfs_task *t, const char *nodes);

/* memfs_task_set_cpu - a CPU of the topology, or MEMFS_CPU_AUTO: the caller's own. EINVAL. */
#define MEMFS_CPU_AUTO (-1)
int memfs_task_set_cpu(struct memfs_task *t, int cpu);

/*
 * memfs_alloc_pages - one block of 2^order pages, placed by the task's policy.
 * Moves an interleave rotation by one unit if it succeeds.
 * Errors: EINVAL order > MEMFS_MAX_PAGE_ORDER, ENOMEM, EINTR (NOFAIL cancelled).
 */
int memfs_alloc_pages(struct memfs_task *t, memfs_gfp gfp, unsigned order, memfs_pfn *out);

/* memfs_alloc_pages_node - the same with policy set aside: @node preferred, or
 * strict with __GFP_THISNODE.  EINVAL when the node has no memory or is none. */
int memfs_alloc_pages_node(struct memfs_task *t, int node, memfs_gfp gfp, unsigned order, memfs_pfn *out);

/* memfs_free_pages - gives a block back to the lists of the task's CPU. */
void memfs_free_pages(struct memfs_task *t, memfs_pfn pfn, unsigned order);

/*
 * memfs_alloc_bulk - n single pages into out[0..n), grouped by node as long as no node is short.
 * Returns how many were handed out (out[] beyond is untouched); the rotation
 * advances by exactly that number.
 */
size_t memfs_alloc_bulk(struct memfs_task *t, memfs_gfp gfp, size_t n, memfs_pfn *out);
void memfs_free_bulk(struct memfs_task *t, size_t n, const memfs_pfn *pfns);

/* memfs_page_address - the page's bytes, readable and writable while it is allocated. */
void *memfs_page_address(const struct memfs *m, memfs_pfn pfn);
/*
 * memfs_address_page - the page an address lies in, also one inside a range of
 * memfs_vmalloc or memfs_vmap; the highest number there is (UINT32_MAX) for an
 * address that is no page's.  Not inside a signal handler.
 * memfs_page_node - the page's node, -1 if there is no such page.
 */
memfs_pfn memfs_address_page(const struct memfs *m, const void *address);
int memfs_page_node(const struct memfs *m, memfs_pfn pfn);

/*
 * Ranges: as many bytes as asked for (rounded up to pages) that follow each
 * other, over pages that need not.  None of these may be called inside a signal
 * handler.
 *
 * memfs_vmalloc - pages placed by the task's policy page by page: under an
 * interleave policy each node has exactly its share, and the rotation moves by
 * the number of pages.  What the bytes hold is not said.
 * memfs_vzalloc - the same, cleared.
 * memfs_vmalloc_node - the same with policy set aside: @node preferred.
 * All three return NULL and set errno when they fail: EINVAL size 0 or no such
 * node with memory, ENOMEM, ENOSPC no addresses or host mappings left.
 */
void *memfs_vmalloc(struct memfs_task *t, size_t size);
void *memfs_vzalloc(struct memfs_task *t, size_t size);
void *memfs_vmalloc_node(struct memfs_task *t, size_t size, int node);

/*
 * memfs_vfree - ends a range; @address is what one of the three returned, NULL
 * is allowed.  Pages and addresses may be kept for a while: memfs_vpurge.
 * EINVAL: no range starts there, or it has been freed already.
 */
int memfs_vfree(struct memfs_task *t, const void *address);

/*
 * memfs_vmap - shows n allocated pages at addresses that follow each other,
 * beside where they are anyway.  They stay the caller's, who unmaps them before
 * he frees them.  NULL and errno: EINVAL n is 0 or a number is no page's,
 * ENOMEM, ENOSPC.
 * memfs_vunmap - ends that; NULL is allowed.  EINVAL: nothing is mapped there.
 * Neither may be called inside a signal handler.
 */
void *memfs_vmap(struct memfs *m, const memfs_pfn *pfns, size_t n);
int memfs_vunmap(struct memfs *m, const void *address);

/* memfs_vpurge - what freed ranges still keep goes back now.  Not inside a signal handler. */
int memfs_vpurge(struct memfs *m);

/*
 * Caches: objects of one size, cut from slabs of pages.
 *
 * memfs_cache_create - @align is a power of two, 0 for a word.  @ctor (may be
 * NULL) is called for each object when its slab is made, with no lock held, and
 * an object is freed as its constructor made it.  A cache of the same shape may
 * be shared: then both names lead to one cache, and the handles are equal.
 * Errors: EINVAL name, size, alignment or flag; EEXIST; ENOSPC as many caches as
 * tune/max_caches allows; ENOMEM.
 * memfs_cache_destroy - gives up one name; the last one ends the cache.
 * Errors: EBUSY objects are in use, or a command is using the cache; EINVAL no such
 * cache.
 * memfs_cache_shrink - what no object needs goes back to the pages; returns how
 * many slabs did.
 * None of the three may be called inside a signal handler.
 */
#define MEMFS_SLAB_HWCACHE_ALIGN (1u << 0)   /* objects on cache lines of their own */
#define MEMFS_SLAB_RECLAIM_ACCOUNT (1u << 1) /* slabs from reclaimable pageblocks */
#define MEMFS_SLAB_NO_MERGE (1u << 2)	     /* never shared */
#define MEMFS_SLAB_POISON (1u << 3)	     /* free objects hold a pattern that is checked */
#define MEMFS_SLAB_RED_ZONE (1u << 4)	     /* patterns before and behind each object are checked */
#define MEMFS_SLAB_STORE_USER (1u << 5)	     /* who allocated and freed each object is kept */
#define MEMFS_SLAB_TYPESAFE_BY_RCU (1u << 6) /* a free object's content stays */
#define MEMFS_SLAB_CONSISTENCY (1u << 7)     /* every free is checked */
int memfs_cache_create(struct memfs *m, const char *name, size_t size, size_t align, unsigned flags,
		       void (*ctor)(void *object), struct memfs_cache **out);
int memfs_cache_destroy(struct memfs *m, struct memfs_cache *c);
size_t memfs_cache_shrink(struct memfs *m, struct memfs_cache *c);

/*
 * Objects.  All of these may also be called inside a signal handler; there an
 * allocation fails rather than waits for what it has interrupted.
 *
 * memfs_cache_alloc - an object near the task's CPU, a new slab where the task's
 * policy wants it.  NULL: no memory.  __GFP_ZERO clears it, unless the cache has
 * a constructor.
 * memfs_cache_alloc_node - policy set aside: @node preferred, or strict with
 * __GFP_THISNODE.  NULL also when it is no node with memory.
 * memfs_cache_free - EINVAL: not an object of this cache, or, with the flags
 * that check, free already.  That is reported, and nothing else happens.
 * memfs_cache_alloc_bulk - n objects or none; returns which.
 * memfs_cache_free_bulk - EINVAL: some were refused.
 */
void *memfs_cache_alloc(struct memfs_task *t, struct memfs_cache *c, memfs_gfp gfp);
void *memfs_cache_alloc_node(struct memfs_task *t, struct memfs_cache *c, memfs_gfp gfp, int node);
int memfs_cache_free(struct memfs_task *t, struct memfs_cache *c, void *object);
size_t memfs_cache_alloc_bulk(struct memfs_task *t, struct memfs_cache *c, memfs_gfp gfp, size_t n,
			      void **objects);
int memfs_cache_free_bulk(struct memfs_task *t, struct memfs_cache *c, size_t n, void **objects);

/*
 * By size, up to 4 MiB; rounded up to a class of the kernel's (8 to 8192 bytes,
 * with 96 and 192) or, above them, to a block of pages.  Also inside a signal
 * handler.
 *
 * memfs_kmalloc, memfs_kzalloc (cleared), memfs_kmalloc_node - NULL: no memory,
 * too large, or no such node with memory.  Size 0 returns an address that is no
 * memory and may be freed.
 * memfs_kfree - NULL is allowed.  EINVAL: nothing of ours.
 * memfs_krealloc - the object, or a copy of it that has room for @size, after
 * which the old one is free; NULL as above, and the old one stays.  NULL as
 * @object allocates, size 0 frees.
 * memfs_ksize - the bytes that may be used, 0: nothing of ours.
 */
void *memfs_kmalloc(struct memfs_task *t, size_t size, memfs_gfp gfp);
void *memfs_kzalloc(struct memfs_task *t, size_t size, memfs_gfp gfp);
void *memfs_kmalloc_node(struct memfs_task *t, size_t size, memfs_gfp gfp, int node);
int memfs_kfree(struct memfs_task *t, void *object);
void *memfs_krealloc(struct memfs_task *t, void *object, size_t size, memfs_gfp gfp);
size_t memfs_ksize(struct memfs *m, const void *object);

/* memfs_drain - every per-CPU list of @node (or of all, -1) back to the zones. */
int memfs_drain(struct memfs *m, int node);

/*
 * The control files without a mount: @path relative to the mount point.
 * memfs_read returns the bytes the file holds (the first @size are stored) or
 * -errno.  memfs_write performs one command; @reply (may be NULL) receives what
 * reading the same descriptor would return: the reply, or the reason of the
 * failure, always NUL-terminated.
 */
long memfs_read(struct memfs *m, const char *path, char *buf, size_t size);
int memfs_write(struct memfs *m, const char *path, const char *text, size_t length, char *reply,
		size_t reply_size);

#ifdef __cplusplus
}
#endif
#endif
