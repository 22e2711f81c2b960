/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What both platforms ask of the host in the same way once a range of addresses
 * is theirs: to seal it, to have it populated, to count mappings.
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
/* vm.max_map_count, and the mappings this process has. */
void mf_windows_count(uint64_t *max, uint64_t *used);

#endif
