/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranges of addresses on Linux: see windows.h.
 *
 * Shared memory is populated by reading: the host then maps many pages around
 * each fault, and maps them writable, since nobody tracks what is written to
 * memory without a disk.
 */
#include "plat/windows.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEFAULT_MAX_MAPPINGS 65530

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

int mf_windows_seal(void *at, size_t bytes)
{
	void *mapped =
		mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	return mapped == MAP_FAILED ? -errno : 0;
}

/* Hosts before 5.14. */
static void read_each_page(const volatile char *at, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t offset = 0; offset < bytes; offset += page)
		(void)at[offset];
}

int mf_windows_populate(void *at, size_t bytes)
{
	int error;

	do
		error = madvise(at, bytes, MADV_POPULATE_READ);
	while (error && (errno == EINTR || errno == EAGAIN));
	/* Of an empty range only the advice itself can be wrong. */
	if (error && errno == EINVAL && madvise(at, 0, MADV_POPULATE_READ)) {
		read_each_page(at, bytes);
		return 0;
	}
	return error ? -errno : 0;
}

static uint64_t count_lines(const char *path)
{
	FILE *file = fopen(path, "re");
	uint64_t lines = 0;
	int c;

	if (!file)
		return 0;
	while ((c = getc_unlocked(file)) != EOF)
		lines += c == '\n';
	fclose(file);
	return lines;
}

void mf_windows_count(uint64_t *max, uint64_t *used)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned long long value;

	*max = file && fscanf(file, "%llu", &value) == 1 ? value : DEFAULT_MAX_MAPPINGS;
	if (file)
		fclose(file);
	*used = count_lines("/proc/self/maps");
}
