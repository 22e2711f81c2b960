/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The counters as text, see stat_out.h.
 *
 * Locks: MF_LOCK_STAT, taken by the reading functions of stat.c.
 */
#include "stat/stat_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Counters of no zone stand in the slot of zone 0, so a sum over all slots serves both scopes. */
static uint64_t total(const uint64_t *sums, unsigned nr_zones, unsigned id)
{
	uint64_t sum = 0;

	for (unsigned zone = 0; zone < nr_zones; zone++)
		sum += sums[(size_t)zone * MF_NR_STATS + id];
	return sum;
}

int mf_stat_print_all(struct mf_stat_set *set, struct mf_outbuf *out)
{
	uint64_t *sums = calloc((size_t)set->nr_zones * MF_NR_STATS, sizeof(*sums));

	if (!sums)
		return -ENOMEM;
	mf_stat_snapshot(set, sums);
	for (unsigned id = 0; id < MF_NR_STATS; id++)
		mf_outbuf_printf(out, "%s %" PRIu64 "\n", mf_stat_rows[id].name,
				 total(sums, set->nr_zones, id));
	free(sums);
	return mf_outbuf_error(out);
}

void mf_stat_print_one(struct mf_stat_set *set, enum mf_stat_id id, struct mf_outbuf *out)
{
	mf_outbuf_printf(out, "%" PRIu64 "\n", mf_stat_read(set, id));
}
