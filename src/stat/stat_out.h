/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The counters as text: all of them from one snapshot, or one.  The names are
 * those of MF_STATS; nothing is named twice.
 */
#ifndef MF_STAT_OUT_H
#define MF_STAT_OUT_H

#include "base/outbuf.h"
#include "stat/stat.h"

/* "name value" lines, a total over all zones each.  -ENOMEM. */
int mf_stat_print_all(struct mf_stat_set *set, struct mf_outbuf *out);

/* A value and a newline. */
void mf_stat_print_one(struct mf_stat_set *set, enum mf_stat_id id, struct mf_outbuf *out);

#endif
