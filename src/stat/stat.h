/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counters.  One row of MF_STATS declares one counter: it becomes the enum,
 * stats/counters/NAME, a line of stats/all, and (where the kernel has it) a
 * line of zoneinfo, vmstat and numastat.
 *
 * Storage: one shard a thread, plain words written by that thread alone and
 * summed when read.  An increment is one instruction on x86-64, so a signal
 * handler that interrupts it loses nothing; elsewhere it is a relaxed atomic.
 * Counters are never used for decisions.
 *
 * The two *_fast rows are what the fast path counts: one increment that stands
 * for several rows.  Every read folds them into those rows.
 *
 * Threads: anyone may add at any time, a signal handler too, and anyone may
 * read (each value atomic; sums exact when nothing runs).  Nothing here waits
 * and there is no lock.  init and destroy: no other caller on the same set.
 */
#ifndef MF_STAT_H
#define MF_STAT_H

#include <stddef.h>
#include <stdint.h>

enum mf_stat_scope { MF_STAT_GLOBAL, MF_STAT_ZONE };

/* S(name, scope, unit, "help") */
#define MF_STATS(S) \
	/* what the kernel counts, in pages whatever the order */ \
	S(numa_hit, ZONE, pages, "pages placed on the node that was wanted") \
	S(numa_miss, ZONE, pages, "pages placed here though another node was wanted") \
	S(numa_foreign, ZONE, pages, "pages wanted here but placed on another node") \
	S(numa_interleave, ZONE, pages, "pages an interleave policy wanted here and got") \
	S(numa_local, ZONE, pages, "pages placed here for a CPU of this node") \
	S(numa_other, ZONE, pages, "pages placed here for a CPU of another node") \
	S(pgalloc, ZONE, pages, "pages handed out") \
	S(pgfree, ZONE, pages, "pages given back") \
	S(allocstall, ZONE, calls, "allocations that had to drain or shrink first") \
	/* the fast path */ \
	S(alloc_local_fast, ZONE, pages, \
	  "pages handed out by the fast path: also in pgalloc, numa_hit, numa_local, pcp_hit") \
	S(alloc_plain_fast, ZONE, pages, "the same with numa=0: also in pgalloc, pcp_hit") \
	S(free_fast, ZONE, pages, "pages given back by the fast path: also in pgfree") \
	S(alloc_turn_local_fast, ZONE, pages, \
	  "the same inside an interleave turn: also in pgalloc, numa_hit, numa_interleave, numa_local, pcp_hit") \
	S(alloc_turn_other_fast, ZONE, pages, \
	  "the same for a CPU of another node: numa_other in place of numa_local") \
	/* per-CPU lists and zone lock */ \
	S(pcp_hit, ZONE, pages, "pages taken from a per-CPU list without a refill") \
	S(pcp_refill, ZONE, calls, "refills of a per-CPU list") \
	S(pcp_refill_pages, ZONE, pages, "pages moved to a per-CPU list") \
	S(pcp_drain, ZONE, calls, "times pages went from a per-CPU list to the zone") \
	S(pcp_drain_pages, ZONE, pages, "pages moved from a per-CPU list to the zone") \
	S(pcp_locked, ZONE, calls, "per-CPU list operations under its lock") \
	S(pcp_remote, ZONE, calls, "times another CPU's list was fenced off") \
	S(pcp_trylock_fail, ZONE, calls, "times a busy per-CPU list was left for the zone") \
	S(zone_lock, ZONE, calls, "acquisitions of the zone lock") \
	S(zone_trylock_fail, ZONE, calls, "times a caller that must not wait found the zone lock taken") \
	S(zone_fallback, ZONE, calls, "blocks of another migrate type taken over") \
	S(zone_claim, ZONE, calls, "pageblocks that changed their type") \
	S(trim_pages, ZONE, pages, "pages given back to the host") \
	/* bulk */ \
	S(bulk_requests, GLOBAL, calls, "bulk allocations by policy or node") \
	S(bulk_node_calls, GLOBAL, calls, "calls of the bulk path for one node") \
	S(bulk_pages, GLOBAL, pages, "pages handed out by bulk allocations") \
	S(bulk_short, GLOBAL, calls, "bulk allocations that got fewer pages than asked") \
	/* vmalloc: ranges, the paths their pages came by, and what mapping them took */ \
	S(vmalloc_requests, GLOBAL, calls, "ranges asked for") \
	S(vmalloc_fail, GLOBAL, calls, "ranges that could not be made") \
	S(vmalloc_linear, GLOBAL, calls, "ranges used at their linear address") \
	S(vmalloc_linear_pages, GLOBAL, pages, "pages of those") \
	S(vmalloc_linear_freed, GLOBAL, pages, "pages of ranges freed at their linear address") \
	S(vmalloc_mapped, GLOBAL, calls, "ranges mapped from runs of pages") \
	S(vmalloc_huge_fallback, GLOBAL, calls, "huge ranges made from small pages instead") \
	S(vmalloc_buddy_calls, GLOBAL, calls, "calls of the page allocator for ranges") \
	S(vmalloc_large_attempts, GLOBAL, calls, "attempts to get one large block") \
	S(vmalloc_large_blocks, GLOBAL, calls, "large blocks got") \
	S(vmalloc_large_fail_1, GLOBAL, calls, "attempts that failed, order 1") \
	S(vmalloc_large_fail_2, GLOBAL, calls, "attempts that failed, order 2") \
	S(vmalloc_large_fail_3, GLOBAL, calls, "attempts that failed, order 3") \
	S(vmalloc_large_fail_4, GLOBAL, calls, "attempts that failed, order 4") \
	S(vmalloc_large_fail_5, GLOBAL, calls, "attempts that failed, order 5") \
	S(vmalloc_large_fail_6, GLOBAL, calls, "attempts that failed, order 6") \
	S(vmalloc_large_fail_7, GLOBAL, calls, "attempts that failed, order 7") \
	S(vmalloc_large_fail_8, GLOBAL, calls, "attempts that failed, order 8") \
	S(vmalloc_large_fail_9, GLOBAL, calls, "attempts that failed, order 9") \
	S(vmalloc_large_fail_10, GLOBAL, calls, "attempts that failed, order 10") \
	S(vmalloc_large_held_back, GLOBAL, calls, "attempts lowered to keep the last large blocks") \
	S(vmalloc_pages_large, GLOBAL, pages, "pages of ranges that came in large blocks") \
	S(vmalloc_pages_bulk, GLOBAL, pages, "pages of ranges that came in bulk") \
	S(vmalloc_pages_single, GLOBAL, pages, "pages of ranges that came one at a time") \
	S(vmalloc_pages_parked, GLOBAL, pages, "pages of ranges reused as they had been freed") \
	S(vmalloc_map_calls, GLOBAL, calls, "runs of pages mapped") \
	S(vmalloc_purge, GLOBAL, calls, "purges of lazily freed ranges") \
	S(vmalloc_purge_areas, GLOBAL, calls, "lazily freed ranges purged") \
	S(vmalloc_seal_calls, GLOBAL, calls, "times addresses were unmapped") \
	/* pressure */ \
	S(alloc_fail, GLOBAL, calls, "allocations that failed") \
	S(alloc_nowait_fail, GLOBAL, calls, "failures of callers that interrupted a lock holder") \
	S(alloc_wait, GLOBAL, calls, "NOFAIL allocations that had to wait") \
	S(drain_all, GLOBAL, calls, "drains of all lists before giving up") \
	S(shrink_calls, GLOBAL, calls, "calls of the shrinkers") \
	S(shrink_pages, GLOBAL, pages, "pages the shrinkers gave back") \
	S(highatomic_reserve, GLOBAL, calls, "pageblocks set aside for atomic requests") \
	S(highatomic_unreserve, GLOBAL, calls, "pageblocks taken out of that reserve")

enum mf_stat_id {
#define MF_STAT_ENUM(name, scope, unit, help) MF_STAT_##name,
	MF_STATS(MF_STAT_ENUM)
#undef MF_STAT_ENUM
		MF_NR_STATS,
};

struct mf_stat_row {
	const char *name, *unit, *help;
	enum mf_stat_scope scope;
};

extern const struct mf_stat_row mf_stat_rows[MF_NR_STATS];

/*
 * What the fast path counts by CPU and not by zone: the address of such a word
 * is known as soon as the CPU is, so the store holds up none of the loads that
 * follow it.  set->cpu_zone tells whose zone it was; when read, each column is
 * part of its row.
 */
enum mf_stat_column {
	MF_STAT_COLUMN_LOCAL,
	MF_STAT_COLUMN_PLAIN,
	MF_STAT_COLUMN_TURN,
	MF_STAT_COLUMN_FREE,
	MF_NR_STAT_COLUMNS,
};

/* The row each column is part of. */
extern const enum mf_stat_id mf_stat_column_rows[MF_NR_STAT_COLUMNS];

#define MF_STAT_CPUS 1024

/* One thread's words of one set; only mf_stat_words() below looks inside, the rest is stat.c's. */
struct mf_stat_shard {
	const struct mf_stat_set *set; /* whose; NULL once it has ended */
	_Atomic uint32_t users;	       /* bits: its set, its thread; the last one to leave unmaps */
	struct mf_stat_shard *next;    /* of the set */
	struct mf_stat_shard *next_of_thread;
	size_t bytes; /* the whole mapping */
	uint64_t cpu[MF_STAT_CPUS][MF_NR_STAT_COLUMNS] __attribute__((aligned(64)));
	uint64_t words[] __attribute__((aligned(64))); /* [zone * MF_NR_STATS + id], globals in zone slot 0 */
};

struct mf_stat_set {
	_Atomic(struct mf_stat_shard *) shards; /* all there ever were; a dead thread's shard is reused */
	unsigned nr_zones;
	const int16_t *cpu_zone; /* [nr_cpus]: zone of a CPU's columns, -1 none; the owner's, constant */
	unsigned nr_cpus;	 /* at most MF_STAT_CPUS */
	uint64_t *spare;	 /* counts here, inexactly, when the host refuses a page for a shard */
};

int mf_stat_init(struct mf_stat_set *set, unsigned nr_zones); /* -ENOMEM */
void mf_stat_destroy(struct mf_stat_set *set);

/* The calling thread's words; never NULL. */
uint64_t *mf_stat_shard_get(struct mf_stat_set *set);

/*
 * The shard this thread used last (of whichever set), so that the common case
 * is one compare.  One pointer, not a pair of words: a signal handler that
 * counts for another set changes it as a whole.
 */
extern __thread struct mf_stat_shard *mf_stat_current __attribute__((tls_model("initial-exec")));

static inline uint64_t *mf_stat_words(struct mf_stat_set *set)
{
	struct mf_stat_shard *shard = __atomic_load_n(&mf_stat_current, __ATOMIC_RELAXED);

	return __builtin_expect(__atomic_load_n(&shard->set, __ATOMIC_RELAXED) == set, 1)
		       ? shard->words
		       : mf_stat_shard_get(set);
}

static inline void mf_stat_word_add(uint64_t *word, uint64_t n)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__ volatile("addq %1, %0" : "+m"(*word) : "er"(n) : "cc");
#else
	__atomic_fetch_add(word, n, __ATOMIC_RELAXED);
#endif
}

static inline void mf_stat_zone_add(struct mf_stat_set *set, unsigned zone, enum mf_stat_id id, uint64_t n)
{
	mf_stat_word_add(&mf_stat_words(set)[zone * MF_NR_STATS + id], n);
}

static inline void mf_stat_add(struct mf_stat_set *set, enum mf_stat_id id, uint64_t n)
{
	mf_stat_zone_add(set, 0, id, n);
}

/* Sums of one row; the fast rows are folded into the rows they stand for. */
uint64_t mf_stat_zone_read(struct mf_stat_set *set, unsigned zone, enum mf_stat_id id);
uint64_t mf_stat_read(struct mf_stat_set *set, enum mf_stat_id id); /* over all zones */

/* All rows of all zones at once: sums[zone * MF_NR_STATS + id], folded. */
void mf_stat_snapshot(struct mf_stat_set *set, uint64_t *sums);

#endif
