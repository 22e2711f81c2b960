/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of src/engine/ share with each other and with nobody else.
 */
#ifndef MF_ENGINE_INTERNAL_H
#define MF_ENGINE_INTERNAL_H

#include "engine/engine.h"
#include "engine/live.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

/* Writes the reason of a failure (at most why_size bytes; why may be NULL) and returns the error. */
static inline int __attribute__((format(printf, 4, 5)))
mf_why(char *why, size_t why_size, int error, const char *format, ...)
{
	va_list args;

	if (!why || !why_size)
		return error;
	va_start(args, format);
	vsnprintf(why, why_size, format, args);
	va_end(args);
	return error;
}

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
/* Gives these blocks back; nobody reaches them any more. */
void mf_live_give_back(struct mf_live *live, struct mf_task *task, size_t first, size_t nr);

#endif
