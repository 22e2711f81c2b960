/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The allocators that ours is measured beside.  Each lives in a process of its
 * own, this program again with the library preloaded, which carries out one job
 * after another on command, so that the runs of all sides interleave.
 */
#ifndef MF_BENCH_RIVALS_H
#define MF_BENCH_RIVALS_H

#include "bench.h"

enum { RIVAL_JEMALLOC, RIVAL_GPERFTOOLS, RIVAL_MIMALLOC, RIVAL_GLIBC, NR_RIVALS };

extern const char *const rival_names[NR_RIVALS];

/* The argument that makes this program a rival's process. */
#define RIVAL_ARGUMENT "--rival"
int rival_main(const char *library);

/* Starts them all; one that is not installed does not run. */
void rivals_start(void);
bool rival_runs(int rival);
/* False: not running (any more). */
bool rival_run(int rival, const struct bench_job *job, struct bench_result *result);
void rivals_stop(void);

#endif
