/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranked locks.  A thread takes locks in rising rank only; the ranks stand
 * here once and are repeated, with what each protects, in src/README.md (a
 * test compares the two).  With MF_DEBUG every acquisition checks the order
 * and calls mf_lock_violation(), which a test may replace.
 *
 * mf_lock_depth() counts the locks this thread holds: a signal handler or
 * callback that finds it above 0 has interrupted a holder and must not wait
 * (design, promise 4).  The count goes up before a lock is tried and down
 * after it is released, so a handler can never see it too low.
 */
#ifndef MF_BASE_LOCK_H
#define MF_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

/* L(name, "what it protects"), lowest rank first */
#define MF_LOCK_RANKS(L) \
	L(CTL, "one command at a time where it must be so: last_cmd_status, README cache") \
	L(LIVE, "the table of named allocations") \
	L(TASKS, "the table of tasks") \
	L(CONFIG, "knobs, weights, bandwidth: writers only") \
	L(TASK, "one task: policy, rotation, allowed nodes") \
	L(CACHES, "the table of caches, their pins") \
	L(SLAB_CPU, "one cache on one CPU: its slab, its partial list, its sheaves") \
	L(SLAB_NODE, "one cache on one node: its slabs, its stock of sheaves") \
	L(SHEAVES, "the pool of empty sheaves") \
	L(VMALLOC, "the address space of mapped areas, the lazily freed ones, the count of mappings") \
	L(TRIM, "the tick and the trimmer of one instance") \
	L(PCP, "one per-CPU list set of one zone") \
	L(ZONE, "one zone's lines; several only in rising zone index") \
	L(WAIT, "sleepers waiting for free pages")

enum mf_lock_rank {
#define MF_LOCK_ENUM(name, protects) MF_LOCK_##name,
	MF_LOCK_RANKS(MF_LOCK_ENUM)
#undef MF_LOCK_ENUM
		MF_NR_LOCK_RANKS,
};

struct mf_lock {
	pthread_mutex_t mutex;
	enum mf_lock_rank rank;
};

void mf_lock_init(struct mf_lock *lock, enum mf_lock_rank rank);
void mf_lock_destroy(struct mf_lock *lock);
void mf_lock_acquire(struct mf_lock *lock);
bool mf_lock_try(struct mf_lock *lock); /* exempt from the order: it cannot deadlock */
void mf_lock_release(struct mf_lock *lock);
void mf_lock_assert_held(const struct mf_lock *lock); /* MF_DEBUG only */

/* How many mf_locks the calling thread holds or is about to take. */
unsigned mf_lock_depth(void);

const char *mf_lock_rank_name(enum mf_lock_rank rank);

typedef void mf_lock_violation_fn(enum mf_lock_rank held, enum mf_lock_rank wanted);
/* MF_DEBUG: replaces the handler (default: print and abort); returns the old one. */
mf_lock_violation_fn *mf_lock_set_violation(mf_lock_violation_fn *handler);

/*
 * What a MF_DEBUG build calls around every lock; present in every build, so
 * that the order itself is tested in every build.  A lock of a rank below the
 * highest one held is a violation, and so is one of the same rank, but for PCP
 * and ZONE.  A lock that was tried is noted, not checked.
 */
void mf_lock_order_enter(const struct mf_lock *lock, bool tried);
void mf_lock_order_leave(const struct mf_lock *lock);
bool mf_lock_order_holds(const struct mf_lock *lock);

#endif
