/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Weights from bandwidth (behaviour 1.10).  Pure.
 */
#ifndef MF_POLICY_WEIGHTS_H
#define MF_POLICY_WEIGHTS_H

#include "policy/policy.h"

/* Above this a bandwidth counts as this, so that 32 times it and the sum of 64 fit 64 bits. */
#define MF_BANDWIDTH_MAX ((UINT64_C(1) << 53) - 1)

/* bandwidth[id] in MB/s, 0 = unknown, for the nodes of @memory; the others get 1. */
void mf_weights_from_bandwidth(const uint64_t *bandwidth, mf_nodemask memory, struct mf_weights *out);

#endif
