/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of src/engine/ share with each other and with nobody else.
 *
 *   live.c          a named allocation from its request to its publication
 *   live_vmalloc.c  what is special about ranges
 *   live_data.c     bytes, placement, map, check
 *   live_free.c     the way back
 */
#ifndef MF_ENGINE_INTERNAL_H
#define MF_ENGINE_INTERNAL_H

#include "base/why.h"
#include "engine/engine.h"
#include "engine/live.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

/* The moment @ms from now on the clock that waits are measured by. */
static inline struct timespec mf_deadline_after(unsigned ms)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += ms / 1000;
	at.tv_nsec += (long)(ms % 1000) * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_nsec -= 1000000000;
		at.tv_sec++;
	}
	return at;
}

/* All 1 and auto; or from the topology's bandwidth, if it tells any. */
void mf_engine_init_weights(struct memfs *m);

/* Commands that change allocations stand between these two (live.begun, live.ended). */
void mf_live_begin(struct memfs *m);
void mf_live_end(struct memfs *m);
/* True if no such command is under way; *mark tells later whether one has begun since. */
bool mf_live_quiet(struct memfs *m, uint64_t *mark);

/* A visible entry by name, NULL if there is none; live.lock is held. */
struct mf_live *mf_live_find(struct memfs *m, struct mf_text name);
/* Pages by node of the blocks [first, first + nr). */
void mf_live_count(const struct mf_live *live, size_t first, size_t nr, uint64_t by_node[64]);

/* One alloc/pages or alloc/vmalloc on its way. */
struct mf_live_take {
	struct memfs *m;
	const struct mf_live_request *request;
	struct mf_page_request page;
	struct mf_policy vma; /* the policy= parsed here */
	struct mf_task *task;
	struct mf_live *live;
	uint64_t limit;	      /* blocks that can be handed out at most */
	size_t capacity;      /* of live->blocks */
	uint64_t by_node[64]; /* pages handed out */
	char *why;
	size_t why_size;
};

static inline bool mf_live_cancelled(const struct mf_live_take *t)
{
	return t->page.cancel && atomic_load(&t->page.cancel->cancelled);
}

static inline int mf_live_interrupted(struct mf_live_take *t)
{
	return mf_why(t->why, t->why_size, -EINTR, "interrupted");
}

/* Room for that many blocks in the entry's list.  -ENOMEM. */
int mf_live_grow_list(struct mf_live_take *t, size_t capacity);

/* What the kinds of named allocations do each in their own way. */
struct mf_live_kind_ops {
	const char *prefix;			/* of generated names */
	bool whole;				/* freed as a whole only */
	int (*check)(struct mf_live_take *t);	/* the request's words, before anything is done */
	int (*prepare)(struct mf_live_take *t); /* the name is reserved, the turn not yet waited for */
	/* Pages into live->blocks; on a failure those listed go back through give_back. */
	int (*take)(struct mf_live_take *t);
	/* These blocks go back; nobody reaches them any more. */
	void (*give_back)(struct mf_live *live, struct mf_task *task, size_t first, size_t nr);
};
extern const struct mf_live_kind_ops mf_live_kinds[]; /* by enum mf_live_kind */

/* live_free.c */
void mf_live_give_back_blocks(struct mf_live *live, struct mf_task *task, size_t first, size_t nr);
/* live_vmalloc.c */
int mf_live_check_range(struct mf_live_take *t);
int mf_live_prepare_range(struct mf_live_take *t);
int mf_live_take_range(struct mf_live_take *t);
void mf_live_give_back_range(struct mf_live *live, struct mf_task *task, size_t first, size_t nr);
/* True if the vmalloc engine has the entry's range, too. */
bool mf_live_range_is_there(const struct mf_live *live);

#endif
