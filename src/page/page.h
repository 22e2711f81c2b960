/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The page allocator: zones, per-CPU lists, zonelists, policies.
 *
 *   request -> policy (which node) -> zonelist (which zones) -> watermark
 *           -> per-CPU list (pcp.c) -> zone under its lock (buddy.h)
 *
 * Invariant, when nothing runs, for each zone:
 *   managed = free in buddy + on per-CPU lists + handed out + being trimmed
 *
 * Threads: everything here may be called from any thread and, where said,
 * inside a signal handler.  Locks: PCP, ZONE, WAIT (see base/lock.h); a caller
 * that has interrupted a holder never waits (design, promise 4).
 */
#ifndef MF_PAGE_H
#define MF_PAGE_H

#include "base/lock.h"
#include "base/outbuf.h"
#include "fault/fault.h"
#include "memfs.h"
#include "page/buddy.h"
#include "page/watermark.h"
#include "page/zonelist.h"
#include "plat/plat.h"
#include "policy/policy.h"
#include "stat/stat.h"
#include "topo/topo.h"

enum mf_watermark { MF_WMARK_MIN, MF_WMARK_LOW, MF_WMARK_HIGH, MF_WMARK_PROMO };

enum mf_pcp_mode { MF_PCP_RSEQ, MF_PCP_TRYLOCK, MF_PCP_OFF };

/* Knobs the allocation paths read with relaxed loads.  Written by mf_page_set_*. */
struct mf_page_knobs {
	int pcp_mode;		    /* enum mf_pcp_mode */
	int pcp_irq_bypass;	    /* 1: context=irq never uses the lists (seeds/001) */
	int numa;		    /* 0: no policy, no NUMA statistics */
	int numa_stat;		    /* 0: no NUMA statistics */
	int bulk_split;		    /* 1: the extra call of kernels 6.9 to 7.2 */
	int init_on_alloc;	    /* 1: every page is cleared when handed out */
	int watermark_boost_factor; /* per 10000 of high; 0 none; default 15000 */
	unsigned trim_seconds;	    /* 0 never */
	struct mf_watermark_knobs marks;
};

/*
 * What a task brings to an allocation.  Readers copy it without a lock
 * (seq is a sequence count); writers hold the task's lock.
 *
 * The rotation is one word, advanced by an unlocked compare-and-store: exact
 * for one thread and the signal handlers that interrupt it.  Threads that
 * share one task's interleave rotation at the same time may repeat a unit, as
 * the kernel's own tasks are one thread each; file commands of one task are
 * serialised by their caller.
 */
#define MF_FAST_AUTO 1u	      /* the CPU is the caller's own */
#define MF_FAST_LOCAL 2u      /* and the policy DEFAULT or LOCAL with every node allowed */
#define MF_FAST_PINNED 8u     /* DEFAULT or LOCAL with every node allowed, whatever the CPU */
#define MF_FAST_INTERLEAVE 4u /* and the policy interleaves over nodes that are all allowed */

struct mf_placement {
	struct mf_page *pg; /* whose pages; set once */
	uint32_t seq;
	uint32_t rotation; /* il_prev | il_weight << 8 */
	int32_t cpu;	   /* CPU of the topology, MEMFS_CPU_AUTO */
	uint8_t fast;	   /* MF_FAST_ bits */
	struct mf_policy policy;
	mf_nodemask allowed; /* mems_allowed (nodes that may lack memory) */
};

struct mf_page; /* page_internal.h */

/* Ends a NOFAIL wait from another thread. */
struct mf_cancel {
	_Atomic int cancelled;
};

#define MF_NODE_BY_POLICY (-1)
#define MF_CPU_OF_TASK (-2) /* else a CPU of the topology, or MEMFS_CPU_AUTO */

struct mf_page_request {
	memfs_gfp gfp;
	unsigned order;
	int node;		     /* MF_NODE_BY_POLICY, or the node named */
	const struct mf_policy *vma; /* NULL, or a VMA policy that replaces the task's */
	uint64_t index;		     /* with vma: the block's index in its range */
	bool stands_in;		     /* for mf_page_alloc_run, _some: node stands in for the node wanted */
	int wanted;		     /* with stands_in: that node; counts as a miss of it */
	bool interleaved;	     /* with node: an interleave policy chose it, and it counts so */
	int cpu;		     /* MF_CPU_OF_TASK, or the CPU that stands in for the task's */
	bool irq;		     /* caller in interrupt-like context */
	struct mf_cancel *cancel;    /* may be NULL */
};

/* Takes over nothing: topo, plat, fault stay the caller's and must outlive it.  -ENOMEM. */
int mf_page_create(const struct mf_topo *topo, struct mf_plat *plat, struct mf_fault *fault,
		   struct mf_page **out);
void mf_page_destroy(struct mf_page *pg);

/* --- allocation; all of these also inside a signal handler --- */

/* The common case in few instructions; what is not common goes to mf_page_alloc. */
int mf_page_alloc_simple(struct mf_placement *place, memfs_gfp gfp, unsigned order, memfs_pfn *out);
/* 0, -EINVAL (order, node without memory), -ENOMEM, -EINTR (cancelled). */
int mf_page_alloc(struct mf_page *pg, struct mf_placement *place, const struct mf_page_request *request,
		  memfs_pfn *out);
/*
 * n single pages (request->order must be 0).  Returns the number handed out;
 * out[] beyond is untouched.  By a task policy or a node: grouped by node as long as no node is short, at
 * most one node call per node that receives pages.  With request->vma:
 * out[i] is the page of index request->index + i as long as nothing is short.
 */
size_t mf_page_alloc_bulk(struct mf_page *pg, struct mf_placement *place,
			  const struct mf_page_request *request, size_t n, memfs_pfn *out);
void mf_page_free(const struct mf_placement *place, memfs_pfn pfn, unsigned order);
void mf_page_free_bulk(struct mf_page *pg, const struct mf_placement *place, size_t n, const memfs_pfn *pfns);
/* As above for a caller in interrupt-like context (pcp_irq_bypass). */
void mf_page_free_irq(struct mf_page *pg, const struct mf_placement *place, memfs_pfn pfn, unsigned order);

/* --- runs: contiguous pages of one zone, not necessarily a power of two (run.c) --- */

struct mf_run {
	uint32_t pfn, pages;
};

/* The smallest order whose block holds so many pages, at least 1; it may be above MEMFS_MAX_PAGE_ORDER. */
static inline unsigned mf_page_order(uint64_t pages)
{
	return pages <= 1 ? 0 : 64u - (unsigned)__builtin_clzll(pages - 1);
}

/*
 * A block of the caller's own node by restartable sequence or nothing: false
 * also where the placement, the order (only 0 to 3 and 9 are on lists) or the
 * mark does not fit.  Unmovable, zone Normal; not cleared.
 */
bool mf_page_alloc_own(struct mf_placement *place, unsigned order, memfs_pfn *out);
/*
 * 1 to 1024 contiguous pages of request->node and no other, out of the smallest
 * block that holds them; the tail goes back at once and nothing but the pages
 * counts.  Never waits, drains or shrinks, whatever the flags.  -ENOMEM.
 */
int mf_page_alloc_run(struct mf_page *pg, struct mf_placement *place, const struct mf_page_request *request,
		      uint32_t pages, memfs_pfn *out);
/*
 * n single pages of request->node and no other, down to the low mark; nothing
 * more is tried for those that are missing.  Returns how many; out[] beyond is
 * untouched.  A node call, but no bulk request of its own.
 */
size_t mf_page_alloc_some(struct mf_page *pg, struct mf_placement *place,
			  const struct mf_page_request *request, size_t n, memfs_pfn *out);
/*
 * Runs back: what the lists of the placement's CPU keep (1, 2, 4, 8 or 512
 * aligned pages) to them, the rest to the zone, each run with one hold of its
 * lock a 4096 pages.  place NULL: all to the zones.  A run may touch zones next
 * to each other.
 */
void mf_page_free_runs(struct mf_page *pg, const struct mf_placement *place, size_t n,
		       const struct mf_run *runs);
/*
 * A run that an engine above keeps to itself though its user gave it back, and
 * takes up again for a user on @cpu: only counters move (pgfree; pgalloc, hit
 * and local or other), so that they tell what users hold.
 */
void mf_page_count_parked(struct mf_page *pg, uint32_t pfn, uint32_t pages);
void mf_page_count_reused(struct mf_page *pg, unsigned cpu, uint32_t pfn, uint32_t pages);
/* A parked run goes back to the zone: it counts as given back already. */
void mf_page_free_parked(struct mf_page *pg, const struct mf_run *run);
/* The CPU whose lists serve the placement now, -1 if the topology does not have it. */
int mf_page_cpu(struct mf_page *pg, const struct mf_placement *place);

/* What is free on a node in zones that @gfp may use: relaxed looks, no lock. */
struct mf_page_free_blocks {
	int largest;		/* order of the largest free block of any type but HighAtomic, -1 none */
	uint64_t pageblocks;	/* free memory in blocks of order 9 and 10, in pageblocks */
	uint64_t all;		/* pageblocks there are, free or not */
	bool has[MF_NR_ORDERS]; /* a free block of exactly this order */
};
void mf_page_free_blocks(const struct mf_page *pg, int node, memfs_gfp gfp, struct mf_page_free_blocks *out);

/* The pages of a run appear at @at as well (plat's window); -errno. */
int mf_page_window(struct mf_page *pg, void *at, uint32_t pfn, uint64_t pages);

/* --- plans: where the pages of a range belong, before any is taken (plan.c) --- */

struct mf_page_share {
	uint8_t node;
	uint64_t pages;
};
struct mf_page_plan {
	bool interleaved; /* an interleave policy made the shares */
	bool rotates;	  /* and it is the task's: mf_page_plan_commit moves its rotation */
	bool only_own;	  /* __GFP_THISNODE: a share comes from its own node or not at all */
	unsigned nr_shares;
	struct mf_page_share share[MEMFS_MAX_NODES]; /* in the order of the cycle; none is 0 */
	mf_nodemask first;			     /* nodes asked before any other, however deep */
	mf_nodemask allowed;			     /* nodes that may serve at all */
	uint32_t before;
	struct mf_policy policy;
	struct mf_weights weights;
};
/*
 * Page by page as single allocations would be placed: a task's interleave
 * policy from its rotation, a VMA policy (request->vma) from the indexes 0 to
 * n - 1, any other policy one share for its preferred node.  Takes nothing,
 * moves nothing.  -EINVAL: the node named has no memory.
 */
int mf_page_plan(struct mf_page *pg, const struct mf_placement *place, const struct mf_page_request *request,
		 uint64_t n, struct mf_page_plan *plan);
/* After all n pages were handed out. */
void mf_page_plan_commit(struct mf_placement *place, const struct mf_page_plan *plan, uint64_t n);
/* Nodes to ask for a share of @node, in order: itself, then by its zonelist, first before the rest. */
unsigned mf_page_plan_nodes(const struct mf_page *pg, const struct mf_page_plan *plan, int node,
			    uint8_t nodes[MEMFS_MAX_NODES]);

void mf_page_cancel(struct mf_page *pg, struct mf_cancel *cancel); /* wakes the waiter */

/* --- gfp text: "GFP_KERNEL|__GFP_ZERO"; -EINVAL --- */
int mf_gfp_parse(struct mf_text text, memfs_gfp *out);
void mf_gfp_print(memfs_gfp gfp, struct mf_outbuf *out);
enum mf_migrate_type mf_gfp_migrate_type(memfs_gfp gfp);
enum mf_zone_type mf_gfp_highest_zone(memfs_gfp gfp);
extern const char *const mf_migrate_type_names[6]; /* Unmovable Movable Reclaimable HighAtomic CMA Isolate */

/* --- placement --- */
void mf_placement_init(struct mf_placement *place, struct mf_page *pg); /* DEFAULT, all nodes, first CPU */
/* Writers: the caller holds the task's lock.  set_policy resets the rotation, set_allowed rebinds. */
void mf_placement_set_policy(struct mf_placement *place, const struct mf_policy *policy,
			     const struct mf_topo *topo);
int mf_placement_set_allowed(struct mf_placement *place, mf_nodemask allowed, const struct mf_topo *topo);
void mf_placement_set_cpu(struct mf_placement *place, int cpu, const struct mf_topo *topo);
void mf_placement_read(const struct mf_placement *place, struct mf_policy *policy, mf_nodemask *allowed);
struct mf_rotation mf_placement_rotation(const struct mf_placement *place);
void mf_placement_context(const struct mf_topo *topo, mf_nodemask allowed, struct mf_policy_context *out);

/* --- weights (one table an instance; a bulk call sees one state of it) --- */
void mf_page_set_weights(struct mf_page *pg, const struct mf_weights *weights);
void mf_page_get_weights(const struct mf_page *pg, struct mf_weights *out);

/* --- knobs; both hold MF_LOCK_CONFIG (the allocation paths read single words) --- */
void mf_page_get_knobs(const struct mf_page *pg, struct mf_page_knobs *out);
void mf_page_set_knobs(struct mf_page *pg,
		       const struct mf_page_knobs *knobs); /* recomputes marks, list sizes */
bool mf_page_rseq_available(void);

/* --- pressure, time, giving back --- */
/* Called (no lock held) when a request does not fit; returns pages given back. */
typedef uint64_t mf_shrinker_fn(void *arg, uint64_t nr_pages);
int mf_page_add_shrinker(struct mf_page *pg, mf_shrinker_fn *shrink, void *arg); /* -ENOSPC above 8 */
/* While no allocation is under way; an unknown one is left alone. */
void mf_page_remove_shrinker(struct mf_page *pg, mf_shrinker_fn *shrink, void *arg);
/* Sleeps until pages came back or a moment has passed; -EINTR: cancelled. */
int mf_page_wait(struct mf_page *pg, struct mf_cancel *cancel);
void mf_page_drain(struct mf_page *pg, int node); /* -1: all; also gives up empty HIGHATOMIC blocks */
void mf_page_tick(struct mf_page *pg);		  /* one second of decay, remote drain, boost, trimming */
uint64_t mf_page_trim(struct mf_page *pg);	  /* now, whatever the age; pages given back */
/* Pages for @gfp are handed out cleared: __GFP_ZERO or tune/init_on_alloc. */
bool mf_page_clears(const struct mf_page *pg, memfs_gfp gfp);
/* True if the zone's free pages are under low (pressure notification). */
bool mf_page_zone_below_low(const struct mf_page *pg, unsigned zone);

/* --- looking --- */
void *mf_page_address(const struct mf_page *pg, uint32_t pfn);
bool mf_page_address_pfn(const struct mf_page *pg, const void *address, uint32_t *pfn); /* false: not ours */
int mf_page_node(const struct mf_page *pg, uint32_t pfn);				/* -1: no such page */
int mf_page_zone(const struct mf_page *pg, uint32_t pfn);				/* zone index, -1 */
struct mf_stat_set *mf_page_stat(struct mf_page *pg);
struct mf_fault *mf_page_fault(struct mf_page *pg);
const struct mf_topo *mf_page_topo(const struct mf_page *pg);
const struct mf_zonelist *mf_page_zonelist(const struct mf_page *pg, int node);
int64_t mf_page_resident(const struct mf_page *pg, int node); /* bytes the host holds, -errno */

struct mf_pcp_info {
	uint32_t count, high, batch, high_min, high_max; /* pages */
};
struct mf_zone_info {
	int node;
	enum mf_zone_type type;
	uint64_t managed, start_pfn;
	uint64_t free, boost;
	struct mf_zone_marks marks; /* min, low, high, promo include the boost, as zoneinfo prints them */
	uint64_t nr_free[MF_NR_MIGRATE_TYPES][MF_NR_ORDERS];
	uint64_t nr_blocks[MF_NR_MIGRATE_TYPES];
	uint64_t reserved_highatomic, free_highatomic; /* pages */
	uint64_t pcp_count;			       /* pages on all lists */
};
/* False if the zone is not populated (info then has node, type and zeros). Takes no lock. */
bool mf_page_zone_info(const struct mf_page *pg, unsigned zone, struct mf_zone_info *out);
void mf_page_pcp_info(const struct mf_page *pg, unsigned zone, unsigned cpu, struct mf_pcp_info *out);

/* Walks every structure; a line a violation; returns how many.  Takes the locks it needs.
 * Exact sums (managed = free + lists + @handed_out) are checked when handed_out >= 0. */
unsigned mf_page_check(struct mf_page *pg, int64_t handed_out, struct mf_outbuf *out);

#endif
