/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tasks: what a mempolicy belongs to.  struct memfs_task of the public header.
 *
 * A task is found by name under tasks.lock and then pinned (mf_task_get /
 * mf_task_put); destroying it needs: not "default", no live allocations, no
 * pins.  The allocating commands of one task whose policy interleaves take
 * turns, so that its rotation is exact; the library's callers do not.  Whoever
 * has the turn holds no lock by it and may wait for memory; whoever queues for
 * it can be cancelled.
 */
#ifndef MF_ENGINE_TASK_H
#define MF_ENGINE_TASK_H

#include "engine/engine.h"

struct mf_task {
	struct mf_named named; /* tasks.table; must be first */
	struct memfs *m;
	struct mf_page *page;	/* m->page: one load less on the library's fast path */
	struct mf_slabs *slabs; /* m->slabs, as well */
	struct mf_lock lock;	/* MF_LOCK_TASK: writers of place */
	struct mf_placement place;
	struct {
		pthread_mutex_t mutex; /* not ranked: nothing is called under it */
		pthread_cond_t given_on;
		bool taken;
	} turn;
	uint64_t nr_live;		 /* tasks.lock: named allocations that are its own */
	uint64_t nr_pins;		 /* tasks.lock */
	_Atomic uint64_t live_pages[64]; /* pages of its named allocations by node (tasks/NAME/numastat) */
};

/* -EINVAL (name), -EEXIST, -ENOSPC (too many), -ENOMEM; @out may be NULL. */
int mf_task_create(struct memfs *m, struct mf_text name, struct mf_task **out);
int mf_task_destroy(struct memfs *m, struct mf_text name);	   /* -ENOENT, -EBUSY */
int mf_task_end(struct mf_task *task);				   /* the same by handle: EBUSY */
struct mf_task *mf_task_get(struct memfs *m, struct mf_text name); /* pinned; NULL: no such task */
void mf_task_put(struct mf_task *task);

int mf_task_set_policy(struct mf_task *task, struct mf_text policy, char *why, size_t why_size);
int mf_task_set_mems_allowed(struct mf_task *task, struct mf_text nodes, char *why, size_t why_size);
/* A number or "auto". */
int mf_task_set_cpu(struct mf_task *task, struct mf_text cpu, char *why, size_t why_size);
/* The same for the library: a number or MEMFS_CPU_AUTO. */
int mf_task_set_cpu_number(struct mf_task *task, int cpu, char *why, size_t why_size);
/* 0 if @cpu is a CPU of the topology, or MEMFS_CPU_AUTO and callers' own CPUs mean something in it; -EINVAL. */
int mf_task_check_cpu(struct memfs *m, int cpu, char *why, size_t why_size);

/*
 * Around the allocations of one command.  begin waits for its turn if the
 * task's policy interleaves (-EINTR if cancelled) and remembers the rotation;
 * end gives the turn on, after putting the rotation back if the command is
 * undone and nobody set anything on the task meanwhile.
 */
struct mf_task_turn {
	struct mf_task *task;
	bool held;
	uint32_t seq, rotation;
};
int mf_task_turn_begin(struct mf_task *task, struct mf_cancel *cancel, struct mf_task_turn *turn);
void mf_task_turn_end(struct mf_task_turn *turn, bool undo);

unsigned mf_task_check(struct memfs *m, struct mf_outbuf *out); /* counts against the allocations */

#endif
