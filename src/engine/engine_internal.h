/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of src/engine/ share with each other and with nobody else.
 *
 *   live.c          a named allocation from its request to its publication
 *   live_vmalloc.c  what is special about ranges
 *   live_slab.c     what is special about objects
 *   live_data.c     bytes, placement, map, check
 *   live_free.c     the way back
 *   memfs_slab.c    the library's calls for objects
 *   report.c        the last thing that was found wrong
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
/* Pages (of a slab: objects) by node of the blocks [first, first + nr). */
void mf_live_count(const struct mf_live *live, size_t first, size_t nr, uint64_t by_node[64]);

/* One alloc/pages, alloc/vmalloc or alloc/slab on its way. */
struct mf_live_take {
	struct memfs *m;
	const struct mf_live_request *request;
	struct mf_page_request page;
	struct mf_policy vma; /* the policy= parsed here */
	struct mf_task *task;
	struct mf_live *live;
	uint64_t limit;	      /* blocks that can be handed out at most */
	size_t capacity;      /* of live->blocks or live->objects */
	uint64_t by_node[64]; /* pages (of a slab: objects) handed out */
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
	const char *units;			/* what count= counts */
	bool whole;				/* freed as a whole only */
	int (*check)(struct mf_live_take *t);	/* the request's words, before anything is done */
	int (*prepare)(struct mf_live_take *t); /* the name is reserved, the turn not yet waited for */
	/* Pages into live->blocks; on a failure those listed go back through give_back. */
	int (*take)(struct mf_live_take *t);
	/* These blocks go back; nobody reaches them any more. */
	void (*give_back)(struct mf_live *live, struct mf_task *task, size_t first, size_t nr);
};
extern const struct mf_live_kind_ops mf_live_kinds[]; /* by enum mf_live_kind */

/* Pages that so many blocks are in the accounts: objects lie on pages of their caches. */
static inline uint64_t mf_live_account(const struct mf_live *live, size_t nr_blocks)
{
	return live->kind == MF_LIVE_SLAB ? 0 : (uint64_t)nr_blocks << live->order;
}

/* live_free.c */
void mf_live_give_back_blocks(struct mf_live *live, struct mf_task *task, size_t first, size_t nr);
/* live_vmalloc.c */
int mf_live_check_range(struct mf_live_take *t);
int mf_live_prepare_range(struct mf_live_take *t);
int mf_live_take_range(struct mf_live_take *t);
void mf_live_give_back_range(struct mf_live *live, struct mf_task *task, size_t first, size_t nr);
/* True if the vmalloc engine has the entry's range, too. */
bool mf_live_range_is_there(const struct mf_live *live);
/* live_slab.c */
int mf_live_check_objects(struct mf_live_take *t);
int mf_live_prepare_objects(struct mf_live_take *t);
int mf_live_take_objects(struct mf_live_take *t);
void mf_live_give_back_objects(struct mf_live *live, struct mf_task *task, size_t first, size_t nr);
void mf_live_unpin_cache(struct mf_live *live);
int mf_live_object_node(const struct mf_live *live, size_t i);
void mf_live_clear_object(struct mf_live *live, size_t i);
/* Distinct pages the objects lie on, as runs by rising pfn; to be freed; NULL: no memory. */
struct mf_run *mf_live_object_runs(const struct mf_live *live, size_t *nr);
/* True if the slab engine says so, too. */
bool mf_live_object_is_there(const struct mf_live *live, size_t i);
/* Objects that belong to two; cut_mutex is held. */
unsigned mf_live_check_shared(struct mf_live **lives, size_t nr_lives, struct mf_outbuf *out);

/* report.c */
void mf_report_init(struct memfs *m);
void mf_report_destroy(struct memfs *m);
void mf_report_listen(struct memfs *m); /* m->slabs is there */

/* memfs_slab.c: names the program has not destroyed. */
void mf_library_forget_caches(struct memfs *m);

#endif
