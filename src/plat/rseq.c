/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether restartable sequences can be used in this process, and the fence
 * that keeps another CPU's sequences out (see rseq.h).
 */
#include "plat/rseq.h"

#if MF_HAVE_RSEQ
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The most that Linux can be built for here. */
#define MOST_CPUS 8192

static bool usable;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int membarrier(int command, unsigned flags, int cpu)
{
	return (int)syscall(SYS_membarrier, command, flags, cpu);
}

static void find_out(void)
{
	if (__rseq_size == 0 || mf_rseq_cpu() < 0)
		return;
	usable = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0) == 0;
}

/*
 * Not what the host says it has: CPUs may be added while we run, their numbers
 * may have gaps, and containers show a part of them.
 */
unsigned mf_rseq_cpu_limit(void)
{
	return MOST_CPUS;
}

bool mf_rseq_usable(void)
{
	pthread_once(&once, find_out);
	return usable;
}

/*
 * The one-CPU form is refused for a CPU that is offline or unknown to older
 * kernels; the form for all CPUs is always right, only dearer.  A child of fork()
 * starts unregistered, so both may be refused there once.  To go on without a
 * fence would hand out pages twice: that is worse than to stop.
 */
void mf_rseq_fence(int cpu)
{
	const int fence = MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ;
	int saved = errno; /* a signal handler's caller may be looking at it */

	if (membarrier(fence, MEMBARRIER_CMD_FLAG_CPU, cpu) == 0)
		return;
	if (membarrier(fence, 0, 0) != 0 &&
	    (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0) != 0 ||
	     membarrier(fence, 0, 0) != 0))
		abort();
	errno = saved;
}

#else

unsigned mf_rseq_cpu_limit(void)
{
	return 1;
}

bool mf_rseq_usable(void)
{
	return false;
}

void mf_rseq_fence(int cpu)
{
	(void)cpu;
}

#endif
