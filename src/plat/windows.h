/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What both platforms ask of the host in the same way: files for arenas and
 * windows on them, ranges of addresses sealed and populated, mappings counted.
 *
 * Threads: any; seal and populate also inside a signal handler.
 */
#ifndef MF_PLAT_WINDOWS_H
#define MF_PLAT_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

/* The range is PROT_NONE, whatever was mapped there; never a hole.  -errno. */
int mf_windows_seal(void *at, size_t bytes);
/* The host maps every page now, from what the file holds, with zeroes where it holds nothing.  -errno. */
int mf_windows_populate(void *at, size_t bytes);

/* The memory of an arena is a sparse file without a name. */
int mf_windows_file_map(void *at, size_t bytes); /* a new one, mapped there: its descriptor or -errno */
int mf_windows_file_punch(int fd, uint64_t offset, uint64_t bytes);
int64_t mf_windows_file_resident(int fd);
/* -EINVAL unless all of it is page aligned and inside the file's @file_bytes; see window_map. */
int mf_windows_file_window(int fd, size_t file_bytes, void *at, uint64_t offset, size_t bytes);

/* vm.max_map_count, and the mappings this process has. */
void mf_windows_count(uint64_t *max, uint64_t *used);

#endif
