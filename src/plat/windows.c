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
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

int mf_windows_file_map(void *at, size_t bytes)
{
	int fd = memfd_create("memfs-arena", MFD_CLOEXEC), error;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) == 0 &&
	    mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0) !=
		    MAP_FAILED)
		return fd;
	error = -errno;
	close(fd);
	/* A failed MAP_FIXED may already have removed what was there. */
	mf_windows_seal(at, bytes);
	return error;
}

int mf_windows_file_punch(int fd, uint64_t offset, uint64_t bytes)
{
	int error;

	do
		error = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
				  (off_t)bytes);
	while (error && errno == EINTR);
	return error ? -errno : 0;
}

int64_t mf_windows_file_resident(int fd)
{
	struct stat status;

	return fstat(fd, &status) ? -errno : (int64_t)status.st_blocks * 512;
}

int mf_windows_file_window(int fd, size_t file_bytes, void *at, uint64_t offset, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE, error;

	if (!at || bytes == 0 || ((uintptr_t)at | offset | bytes) % page || offset > file_bytes ||
	    bytes > file_bytes - offset)
		return -EINVAL;
	if (mmap(at, bytes, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset) != MAP_FAILED)
		return 0;
	error = -errno;
	mf_windows_seal(at, bytes); /* as above */
	return error;
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
