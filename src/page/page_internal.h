/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The allocator's own structures, shared by the files of src/page/ and by
 * nobody else.
 */
#ifndef MF_PAGE_INTERNAL_H
#define MF_PAGE_INTERNAL_H

#include "page/page.h"
#include "page/rotation.h"
#include "plat/rseq.h"

#include <pthread.h>

/* --- per-CPU lists (pcp.c) --- */

/* Orders that the lists keep: 0..3 and the pageblock order, as the kernel does. */
#define MF_PCP_ORDER_SLOTS 5
#define MF_PCP_LISTS (MF_PCP_ORDER_SLOTS * MF_PCP_TYPES)
#define MF_PCP_BATCH_SCALE_MAX 5

/* List number of an order and type, -1 if the lists do not keep that order. */
static inline int mf_pcp_list_index(unsigned order, enum mf_migrate_type type)
{
	if (order <= 3)
		return (int)(order * MF_PCP_TYPES + type);
	return order == MF_PAGEBLOCK_ORDER ? (int)(4 * MF_PCP_TYPES + type) : -1;
}

static inline unsigned mf_pcp_list_order(unsigned list)
{
	unsigned slot = list / MF_PCP_TYPES;

	return slot < 4 ? slot : MF_PAGEBLOCK_ORDER;
}

/*
 * One list: a stack of pfns that grows downwards in a piece of address space.
 * Blocks are pushed and popped at the top (hot) and drained from the bottom
 * (cold), so the entries wander downwards and are moved up again when they
 * reach the start.  At top == limit pushing must look at the whole set: the
 * rooms of all lists together end where the set would hold `high` pages.
 */
struct mf_pcp_list {
	struct mf_rseq_stack stack;
	uint32_t *start;
	uint32_t *seen_top; /* top when the lists were opened: pushes since are frees */
	uint32_t *tick_top; /* top at the last tick: unchanged means idle */
	uint32_t capacity;  /* entries */
};

/*
 * The lists of one zone on one CPU.
 *
 * owner == cpu: the CPU's own restartable sequences may use the lists; only
 * they do.  owner == MF_RSEQ_SHUT: only the holder of lock touches them.
 * Shutting needs the lock, and either to run on the CPU or a fence.
 * Everything but top changes only while shut.  CPU 0's are shut
 * from the start: zero, its number, must not mean open while they are made.
 */
struct mf_pcp {
	uint32_t owner;
	uint16_t kind;	      /* pg->line_kind of the zone's unmovable pageblocks */
	struct mf_zone *zone; /* kind and zone: set for the CPU's own zone only */
	uint32_t visits;      /* goes up each time the lists are opened again */
	uint8_t alloc_factor;
	uint8_t expire; /* ticks until a remote node's list is drained */
	bool ready;	/* stacks exist; under lock */
	uint32_t count; /* pages on all lists; kept up only while shut */
	uint32_t high;
	uint32_t free_count;
	uint32_t *entries; /* one piece of metadata for all stacks */
	size_t entries_bytes;
	struct mf_pcp *next_ready; /* zone->ready_pcps */
	int cpu;
	struct mf_lock lock;
	struct mf_pcp_list list[MF_PCP_LISTS];
} __attribute__((aligned(1024))); /* a power of two: found by a shift */

/* --- zones --- */

struct mf_zone {
	/* read mostly */
	struct mf_pcp *pcp;		      /* [cpu_limit], zeroed until used */
	uint64_t fast_mark[MF_NR_ZONE_TYPES]; /* low + boost + reserve against zone type j + HIGHATOMIC */
	uint64_t wmark[4];		      /* with boost */
	uint64_t lowmem_reserve[MF_NR_ZONE_TYPES];
	uint32_t stat_base; /* index * MF_NR_STATS */
	uint32_t batch, high_min, high_max;
	uint32_t index; /* zone index */
	int node;
	enum mf_zone_type type;
	uint32_t start_pfn;
	uint64_t managed;
	uint64_t boost;
	uint64_t base_wmark[4];	   /* without boost */
	struct mf_pcp *ready_pcps; /* atomic push, never removed */
	/* written under lock */
	struct mf_lock lock __attribute__((aligned(64)));
	struct mf_buddy buddy;
	uint64_t nr_highatomic; /* pages in HIGHATOMIC pageblocks */
	uint32_t trim_cursor;
	/*
	 * Blocks freed by a caller that could neither wait nor get a lock: a stack
	 * through the pages themselves, emptied by whoever takes the lock next.
	 * pfn + 1 of the newest, 0 none; atomic.
	 */
	uint64_t deferred;
	uint64_t nr_trimming; /* pages isolated just now */
};

struct mf_shrinker {
	mf_shrinker_fn *shrink;
	void *arg;
};

struct mf_page {
	struct mf_stat_set stat; /* first: its address is compared at every count */
	/* read mostly: what the fast path needs first */
	uint8_t fast_mask;   /* MF_FAST_ bits of placements that may go fast just now */
	uint8_t free_mask;   /* the same for frees */
	bool locked_ok;	     /* the short way under the lists' lock may be taken */
	uint8_t fast_column; /* enum mf_stat_column of local allocations */
	bool numa;
	bool numa_stat;
	bool rseq; /* pcp_mode is rseq and the process has it */
	/*
	 * By pfn / 512: zone index << 8 | the pageblock's tag (buddy.h), written by
	 * the zones' buddies: one load tells a free whose list the page belongs to.
	 */
	uint16_t *line_kind;
	/* [host cpu * 4 + highest zone type]: first zone of the CPU's node, else no_zone */
	struct mf_zone **local_zone;
	/*
	 * [host cpu]: the lists of the CPU's own zone for MF_ZONE_NORMAL; no_pcp
	 * where there is none, and everywhere while nothing may go fast.
	 */
	struct mf_pcp **local_pcp;
	int16_t *cpu_zone; /* [host cpu]: index of that zone, -1 none */
	ptrdiff_t rseq_offset;
	unsigned local_cpus; /* CPUs in these tables: all the host may have */
	struct mf_zone *zone[MF_MAX_ZONES];
	struct mf_zone
		*node_zone[64][MF_NR_ZONE_TYPES]; /* first zone of the node's zonelist for a highest type */
	uint16_t node_zone_index[64][MF_NR_ZONE_TYPES]; /* their indexes */
	unsigned cpu_limit;
	uint64_t pfn_limit;
	char *base; /* address of pfn 0 */
	size_t base_bytes;
	const struct mf_topo *topo;
	struct mf_plat *plat;
	struct mf_fault *fault;
	struct mf_zone *no_zone;    /* never above its mark */
	struct mf_pcp *no_pcp;	    /* for ever shut; its zone is no_zone */
	struct mf_page_knobs knobs; /* relaxed loads; written under the caller's CONFIG lock */

	uint32_t weights_seq;
	struct mf_weights weights;

	struct mf_zonelist zonelist[64];
	int arena[64];
	int node_without_cpu; /* local node of a caller whose CPU the topology does not have */

	struct mf_shrinker shrinker[8];
	unsigned nr_shrinkers; /* released after the entry is written */

	struct mf_lock wait_lock;
	pthread_cond_t wait_cond; /* with wait_lock's mutex */
	uint32_t nr_waiters;	  /* relaxed; frees look at it after a zone got pages */

	struct mf_lock trim_lock; /* one trimmer at a time: cursors and ticks */
	uint16_t ticks;		  /* stamp of free lines; trim_lock */
};

/* What one allocation may do: worked out once from the flags (alloc.c). */
struct mf_alloc {
	memfs_gfp gfp;
	unsigned order;
	uint32_t pages; /* of the block, from its start, that are wanted and count */
	enum mf_migrate_type type;
	enum mf_zone_type highest;
	int cpu;			     /* whose lists */
	int local;			     /* node of that CPU */
	int node;			     /* preferred */
	mf_nodemask filter;		     /* zones of other nodes are out of the question */
	mf_nodemask first_filter;	     /* tried alone first (PREFERRED_MANY); else the same */
	const struct mf_zone *stands_in_for; /* NULL, or the zone that counts as wanted */
	bool interleaved;		     /* node was chosen by an interleave policy */
	bool auto_cpu;	 /* cpu is the one the caller runs on: its sequences may be used */
	bool bypass;	 /* pcp_irq_bypass or pcp_mode=off: no lists */
	bool nofragment; /* do not break pageblocks of other types while another zone will do */
	bool may_wait;	 /* not in a handler or interrupt-like context, flags allow reclaim */
	bool no_sleep;	 /* has interrupted a lock holder: every lock is only tried */
	bool min_reserve, non_block, highatomic, memalloc;
};

/* --- zone.c: under or around the zone lock --- */
bool mf_zone_lock(struct mf_page *pg, struct mf_zone *zone, bool only_try);
void mf_zone_unlock(struct mf_zone *zone);
/* Pages the request may take before the zone's free pages reach its mark. */
uint64_t mf_zone_available(const struct mf_zone *zone, const struct mf_alloc *a, uint64_t mark);
bool mf_zone_watermark_ok(const struct mf_zone *zone, const struct mf_alloc *a, unsigned order,
			  uint64_t mark);
/* One block straight from the zone; what it has beyond a->pages stays there. */
bool mf_zone_take(struct mf_page *pg, struct mf_zone *zone, const struct mf_alloc *a, uint32_t *pfn);
/* Up to n blocks of an order the lists keep, for a refill; returns how many. */
size_t mf_zone_take_many(struct mf_page *pg, struct mf_zone *zone, unsigned order, enum mf_migrate_type type,
			 bool only_try, bool nofragment, size_t n, uint32_t *pfns);
/* Never fails: with only_try and the lock taken, the blocks wait on zone->deferred. */
void mf_zone_give_anyhow(struct mf_page *pg, struct mf_zone *zone, unsigned order, bool only_try, size_t n,
			 const uint32_t *pfns);
/* False only if only_try and the lock was taken. */
bool mf_zone_give(struct mf_page *pg, struct mf_zone *zone, unsigned order, bool only_try, size_t n,
		  const uint32_t *pfns);
/* Contiguous pages of the zone, any number; never fails, as above. */
void mf_zone_give_run(struct mf_page *pg, struct mf_zone *zone, uint32_t pfn, uint32_t pages, bool only_try);
void mf_zone_reserve_highatomic(struct mf_page *pg, struct mf_zone *zone, uint32_t pfn);
bool mf_zone_unreserve_highatomic(struct mf_page *pg, struct mf_zone *zone, bool only_free);
void mf_zone_set_marks(
	struct mf_zone *zone); /* wmark, fast_mark from base and boost; under lock or before use */

/* --- pcp.c --- */
/* False: the list had nothing and could not be refilled, or is busy: ask the zone. */
bool mf_pcp_take(struct mf_page *pg, struct mf_zone *zone, const struct mf_alloc *a, uint32_t *pfn);
/* The same for a list that has something, under its lock, as a visitor; no refill. */
bool mf_pcp_take_hit(struct mf_page *pg, struct mf_zone *zone, int cpu, unsigned index, uint32_t *pfn);
size_t mf_pcp_take_many(struct mf_page *pg, struct mf_zone *zone, const struct mf_alloc *a, size_t n,
			uint32_t *pfns);
/* False, or fewer than n: busy, or not a kind the lists keep: give it to the zone. */
bool mf_pcp_give(struct mf_page *pg, struct mf_zone *zone, int cpu, bool auto_cpu, unsigned order,
		 enum mf_migrate_type type, uint32_t pfn);
size_t mf_pcp_give_many(struct mf_page *pg, struct mf_zone *zone, int cpu, bool auto_cpu,
			enum mf_migrate_type type, size_t n, const uint32_t *pfns);
void mf_pcp_drain_zone(struct mf_page *pg, struct mf_zone *zone);
void mf_pcp_tick(struct mf_page *pg, struct mf_zone *zone);
/* After the sizes or the mode changed: every list looks at them anew. */
void mf_pcp_resize(struct mf_page *pg, struct mf_zone *zone);
uint32_t mf_pcp_count(const struct mf_pcp *pcp); /* pages; exact when the owner stands still */
unsigned mf_pcp_check(struct mf_page *pg, struct mf_zone *zone, uint64_t *pages, struct mf_outbuf *out);
/* info.c: one set, shut and its lock held. */
unsigned mf_pcp_check_set(struct mf_page *pg, struct mf_zone *zone, const struct mf_pcp *pcp,
			  struct mf_outbuf *out);
void mf_pcp_destroy_zone(struct mf_page *pg, struct mf_zone *zone);

/* --- place.c: from a policy to a preferred node and a filter --- */
/* The CPU whose lists serve a caller that asks for @cpu (or MEMFS_CPU_AUTO), -1 none. */
int mf_alloc_cpu(struct mf_page *pg, int cpu, bool *is_auto);
/* Fills what the flags and the caller's CPU decide; node: the CPU's, filter: every node with memory. */
void mf_alloc_prepare(struct mf_page *pg, const struct mf_placement *place,
		      const struct mf_page_request *request, struct mf_alloc *a);
/* The policy that holds for a request (a copy), and the nodes allowed. */
void mf_alloc_policy(struct mf_page *pg, const struct mf_placement *place,
		     const struct mf_page_request *request, struct mf_policy *policy, mf_nodemask *allowed);
/* Every mode but the interleaving ones: node, filter, first_filter. */
void mf_alloc_place(const struct mf_policy *policy, mf_nodemask allowed, struct mf_alloc *a);
/* An interleaved block for @node. */
void mf_alloc_place_on(int node, mf_nodemask allowed, struct mf_alloc *a);
/* A try on request->node and no other. -EINVAL: none named, or it has no memory. */
int mf_alloc_place_try(struct mf_page *pg, const struct mf_placement *place,
		       const struct mf_page_request *request, unsigned order, struct mf_alloc *a);
/* Moves the rotation by the blocks handed out; @before is what the placement was worked out from. */
void mf_alloc_move_rotation(struct mf_placement *place, const struct mf_policy *policy,
			    const struct mf_weights *weights, uint32_t before, uint64_t blocks);

/* --- free.c --- */
/* A free with everything decided anew; counts it. */
void mf_free_slow(struct mf_page *pg, const struct mf_placement *place, uint32_t pfn, unsigned order,
		  bool bypass);

/* --- alloc.c --- */
int mf_alloc_block(struct mf_page *pg, struct mf_alloc *a, struct mf_cancel *cancel, uint32_t *pfn);
/*
 * Only a try: along the zonelist once, down to the low mark, no reserve and no
 * other way whatever the flags; a failure is not counted.
 */
int mf_alloc_try(struct mf_page *pg, const struct mf_alloc *a, uint32_t *pfn);
/* 0, or -EINVAL: order, or a node without memory. */
int mf_alloc_check(const struct mf_page *pg, const struct mf_page_request *request);
/* What the second look may do that the first may not (behaviour 2.3). */
void mf_alloc_entitle(struct mf_alloc *a);
void mf_alloc_account(struct mf_page *pg, const struct mf_alloc *a, const struct mf_zone *from,
		      uint64_t pages);
void mf_alloc_finish(struct mf_page *pg, const struct mf_alloc *a, uint32_t pfn); /* clears a->pages */
int mf_alloc_fail(struct mf_page *pg, const struct mf_alloc *a);		  /* counts; -ENOMEM */

/* --- pressure.c --- */
/* Drains, shrinks, gives up reserves; true if anything may have become free. */
bool mf_pressure_relieve(struct mf_page *pg, const struct mf_alloc *a);
int mf_pressure_wait(struct mf_page *pg, struct mf_cancel *cancel); /* 0 or -EINTR */
void mf_pressure_wake(struct mf_page *pg);

static inline struct mf_zone *mf_page_zone_of(const struct mf_page *pg, uint32_t pfn)
{
	/* The low byte, the type, may be changing: not the zone. */
	return pg->zone[__atomic_load_n(&pg->line_kind[pfn >> MF_PAGEBLOCK_ORDER], __ATOMIC_RELAXED) >> 8];
}

static inline uint64_t mf_zone_free_pages(const struct mf_zone *zone)
{
	return __atomic_load_n(&zone->buddy.nr_free_pages, __ATOMIC_RELAXED);
}

#endif
