/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who is calling: the system's number of the thread, the same on the host and
 * the simulator, for records that a person reads beside ps.
 *
 * Threads: any, and inside a signal handler.
 */
#ifndef MF_PLAT_THREAD_H
#define MF_PLAT_THREAD_H

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int32_t mf_plat_thread(void)
{
	return (int32_t)syscall(SYS_gettid);
}

#endif
