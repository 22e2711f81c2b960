/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Zeroed host pages for what no instance owns: the counter shards, which
 * belong to a thread as much as to an instance and are needed inside signal
 * handlers, where malloc() is not allowed.  Everything else goes through
 * struct mf_plat.
 *
 * Threads: both calls may be made anywhere, also in a signal handler.
 */
#ifndef MF_PLAT_PAGES_H
#define MF_PLAT_PAGES_H

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

/* NULL: the host has none.  Leaves errno alone, a handler's caller may be looking at it. */
static inline void *mf_pages_map(size_t bytes)
{
	int saved = errno;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved;
	return at == MAP_FAILED ? NULL : at;
}

static inline void mf_pages_unmap(void *at, size_t bytes)
{
	munmap(at, bytes);
}

#endif
