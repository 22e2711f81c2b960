/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A set of nodes is one 64-bit word: MEMFS_MAX_NODES is 64 by design, so every
 * set operation of the policies is one instruction and needs no allocation.
 */
#ifndef MF_BASE_NODEMASK_H
#define MF_BASE_NODEMASK_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t mf_nodemask;

static inline mf_nodemask mf_node_bit(int node)
{
	return UINT64_C(1) << node;
}

static inline bool mf_node_isset(mf_nodemask mask, int node)
{
	return node >= 0 && node < 64 && (mask >> node & 1);
}

static inline int mf_node_weight(mf_nodemask mask)
{
	return __builtin_popcountll(mask);
}

/* Lowest node of a set, -1 for the empty set. */
static inline int mf_node_first(mf_nodemask mask)
{
	return mask ? __builtin_ctzll(mask) : -1;
}

/* Lowest node above @node, -1 if there is none; @node may be -1 or 63. */
static inline int mf_node_next(mf_nodemask mask, int node)
{
	if (node >= 63)
		return -1;
	return mf_node_first(mask & (~UINT64_C(0) << (node + 1)));
}

/* The same, going round to the lowest; -1 only for the empty set. */
static inline int mf_node_next_cyclic(mf_nodemask mask, int node)
{
	int next = mf_node_next(mask, node);

	return next >= 0 ? next : mf_node_first(mask);
}

/* The k-th (from 0) node of a set that has more than k. */
static inline int mf_node_nth(mf_nodemask mask, int k)
{
	while (k-- > 0)
		mask &= mask - 1;
	return mf_node_first(mask);
}

#define MF_FOR_EACH_NODE(node, mask) \
	for (int node = mf_node_first(mask); node >= 0; node = mf_node_next(mask, node))

#endif
