/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Weights from bandwidth, the kernel's rule of 6.16 and later (behaviour 1.10):
 * a node gets its share of 32, rounded down and at least 1, then all weights
 * are divided by their greatest common divisor.
 *
 * Invariants: every weight is in 1..32; a node without memory has 1 and takes
 * no part in the sum or the divisor.
 *
 * Locks: none; pure.
 */
#include "policy/weights.h"

#include <string.h>

#define WEIGHTINESS 32

static uint64_t bounded(uint64_t bandwidth)
{
	return bandwidth < MF_BANDWIDTH_MAX ? bandwidth : MF_BANDWIDTH_MAX;
}

static unsigned gcd(unsigned a, unsigned b)
{
	while (b) {
		unsigned remainder = a % b;

		a = b;
		b = remainder;
	}
	return a;
}

void mf_weights_from_bandwidth(const uint64_t *bandwidth, mf_nodemask memory, struct mf_weights *out)
{
	uint64_t sum = 0;
	unsigned divisor = 0;

	memset(out->of, 1, sizeof(out->of));
	MF_FOR_EACH_NODE(node, memory)
		sum += bounded(bandwidth[node]);
	MF_FOR_EACH_NODE(node, memory) {
		uint64_t scaled = WEIGHTINESS * bounded(bandwidth[node]);

		if (scaled > sum)
			out->of[node] = scaled / sum;
		divisor = gcd(divisor, out->of[node]);
	}
	MF_FOR_EACH_NODE(node, memory)
		out->of[node] /= divisor;
}
