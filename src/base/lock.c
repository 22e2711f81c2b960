/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranked locks, see lock.h.
 *
 * Per thread there is a depth (always) and a stack of the locks held
 * (MF_DEBUG).  Both may be used by a signal handler in the middle of a change:
 * a handler that takes locks gives them all back before it returns, so it
 * leaves depth and stack as it found them, and every change below keeps its
 * own slot reserved while it works.
 */
#include "base/lock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef MF_DEBUG
#define MF_LOCK_ORDER 1
#else
#define MF_LOCK_ORDER 0
#endif

#define MAX_HELD 256

struct held_stack {
	unsigned count;
	const struct mf_lock *lock[MAX_HELD]; /* NULL: slot reserved, not yet filled */
};

static __thread unsigned depth __attribute__((tls_model("initial-exec")));
static __thread struct held_stack held_locks;

static const char *const rank_names[MF_NR_LOCK_RANKS] = {
#define MF_LOCK_NAME(name, protects) #name,
	MF_LOCK_RANKS(MF_LOCK_NAME)
#undef MF_LOCK_NAME
};

const char *mf_lock_rank_name(enum mf_lock_rank rank)
{
	return (unsigned)rank < MF_NR_LOCK_RANKS ? rank_names[rank] : "none";
}

static void violation_abort(enum mf_lock_rank held, enum mf_lock_rank wanted)
{
	fprintf(stderr, "lock order: %s wanted while %s is held\n", mf_lock_rank_name(wanted),
		mf_lock_rank_name(held));
	abort();
}

static _Atomic(mf_lock_violation_fn *) violation = violation_abort;

mf_lock_violation_fn *mf_lock_set_violation(mf_lock_violation_fn *handler)
{
	return atomic_exchange(&violation, handler ? handler : violation_abort);
}

/* Several locks of these ranks are taken in an order of their own (rising zone index). */
static bool rank_is_nestable(enum mf_lock_rank rank)
{
	return rank == MF_LOCK_PCP || rank == MF_LOCK_ZONE;
}

static void check_order(enum mf_lock_rank wanted)
{
	int highest = -1;

	for (unsigned i = 0; i < held_locks.count; i++)
		if (held_locks.lock[i] && (int)held_locks.lock[i]->rank > highest)
			highest = held_locks.lock[i]->rank;
	if (highest > (int)wanted || (highest == (int)wanted && !rank_is_nestable(wanted)))
		atomic_load (&violation)((enum mf_lock_rank)highest, wanted);
}

static void push_held(const struct mf_lock *lock)
{
	unsigned slot = held_locks.count;

	if (slot == MAX_HELD) {
		fprintf(stderr, "lock order: more than %d locks held\n", MAX_HELD);
		abort();
	}
	held_locks.count = slot + 1;
	atomic_signal_fence(memory_order_seq_cst);
	held_locks.lock[slot] = lock;
}

static int find_held(const struct mf_lock *lock)
{
	int i = (int)held_locks.count - 1;

	while (i >= 0 && held_locks.lock[i] != lock)
		i--;
	return i;
}

void mf_lock_order_enter(const struct mf_lock *lock, bool tried)
{
	if (!tried)
		check_order(lock->rank);
	push_held(lock);
}

void mf_lock_order_leave(const struct mf_lock *lock)
{
	int slot = find_held(lock);

	if (slot < 0) {
		fprintf(stderr, "lock order: %s released but not held\n", mf_lock_rank_name(lock->rank));
		abort();
	}
	for (unsigned i = slot; i + 1 < held_locks.count; i++)
		held_locks.lock[i] = held_locks.lock[i + 1];
	held_locks.lock[held_locks.count - 1] = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	held_locks.count--;
}

bool mf_lock_order_holds(const struct mf_lock *lock)
{
	return find_held(lock) >= 0;
}

void mf_lock_init(struct mf_lock *lock, enum mf_lock_rank rank)
{
	pthread_mutex_init(&lock->mutex, NULL);
	lock->rank = rank;
}

void mf_lock_destroy(struct mf_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

static void depth_up(void)
{
	depth++;
	atomic_signal_fence(memory_order_seq_cst);
}

static void depth_down(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	depth--;
}

void mf_lock_acquire(struct mf_lock *lock)
{
	depth_up();
	if (MF_LOCK_ORDER)
		mf_lock_order_enter(lock, false);
	pthread_mutex_lock(&lock->mutex);
}

bool mf_lock_try(struct mf_lock *lock)
{
	depth_up();
	if (pthread_mutex_trylock(&lock->mutex)) {
		depth_down();
		return false;
	}
	if (MF_LOCK_ORDER)
		mf_lock_order_enter(lock, true);
	return true;
}

void mf_lock_release(struct mf_lock *lock)
{
	if (MF_LOCK_ORDER)
		mf_lock_order_leave(lock);
	pthread_mutex_unlock(&lock->mutex);
	depth_down();
}

void mf_lock_assert_held(const struct mf_lock *lock)
{
	if (MF_LOCK_ORDER && !mf_lock_order_holds(lock)) {
		fprintf(stderr, "lock order: %s should be held\n", mf_lock_rank_name(lock->rank));
		abort();
	}
}

unsigned mf_lock_depth(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	return depth;
}
