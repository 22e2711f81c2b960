/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rotation of interleaving policies: one block, many blocks at once, and
 * the stateless rule for ranges (behaviour 1.3 to 1.6).
 *
 * One block at a time is the definition; everything else here is a closed form
 * of it.  Let p = il_prev, c = what is still owed to p (0 if p has left the
 * mask) and W the sum of the weights.  A cycle starts at the node after p and
 * ends with p itself, if p is in the mask.  n > c blocks are then c for p,
 * (n - c) / W whole cycles, and a rest that opens nodes in cycle order until it
 * is used up.  Since p is the last of its cycle, its part of the rest is what
 * all others together do not take, which is known before any of them is
 * visited: one request a node is enough.
 *
 * Invariants: plain interleave is weighted interleave with all weights 1; the
 * shares of a bulk add up to n; advancing by n equals n steps bit for bit.
 *
 * Locks: none; pure functions over what the caller holds.
 */
#include "policy/policy.h"

/* n blocks as c owed ones, whole cycles and a rest. */
struct split_up {
	uint64_t owed;	  /* of n, for il_prev */
	uint64_t rounds;  /* whole cycles behind them */
	uint64_t rest;	  /* blocks of the last, incomplete cycle */
	uint64_t weights; /* W */
	bool has_prev;	  /* il_prev is in the mask */
};

static uint64_t weight_sum(const struct mf_policy *policy, const struct mf_weights *weights)
{
	uint64_t sum = 0;

	if (policy->mode == MF_MPOL_INTERLEAVE)
		return mf_node_weight(policy->nodes);
	MF_FOR_EACH_NODE(node, policy->nodes)
		sum += weights->of[node];
	return sum;
}

/* The last node of the cycle that starts behind @prev: the highest below it, else the highest of all. */
static int last_of_cycle(mf_nodemask mask, int prev)
{
	mf_nodemask below = mask & (mf_node_bit(prev) - 1);

	return 63 - __builtin_clzll(below ? below : mask);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The mask must not be empty. */
static struct split_up split_up(const struct mf_policy *policy, const struct mf_weights *weights,
				struct mf_rotation rotation, uint64_t n)
{
	struct split_up up = { .has_prev = mf_node_isset(policy->nodes, rotation.il_prev) };

	up.owed = up.has_prev ? min_u64(n, rotation.il_weight) : 0;
	if (n == up.owed)
		return up;
	up.weights = weight_sum(policy, weights);
	up.rounds = (n - up.owed) / up.weights;
	up.rest = (n - up.owed) % up.weights;
	return up;
}

static void add_share(struct mf_policy_shares *shares, int node, uint64_t share)
{
	if (!share)
		return;
	shares->node[shares->nr] = node;
	shares->share[shares->nr] = share;
	shares->nr++;
}

int mf_policy_step(const struct mf_policy *policy, const struct mf_weights *weights,
		   struct mf_rotation *rotation)
{
	if (!rotation->il_weight || !mf_node_isset(policy->nodes, rotation->il_prev)) {
		int node = mf_node_next_cyclic(policy->nodes, rotation->il_prev);

		if (node < 0)
			return -1;
		rotation->il_prev = node;
		rotation->il_weight = mf_policy_weight(policy, weights, node);
	}
	rotation->il_weight--;
	return rotation->il_prev;
}

int mf_policy_peek(const struct mf_policy *policy, const struct mf_weights *weights,
		   struct mf_rotation rotation)
{
	return mf_policy_step(policy, weights, &rotation);
}

/* All of il_prev, which is in the mask: what is owed, its whole cycles, and the end of the rest. */
static uint64_t share_of_prev(const struct split_up *up, unsigned weight)
{
	uint64_t before; /* what the rest gives to the others before it comes to il_prev */

	if (!up->weights)
		return up->owed;
	before = up->weights - weight;
	return up->owed + weight * up->rounds + (up->rest > before ? up->rest - before : 0);
}

void mf_policy_bulk(const struct mf_policy *policy, const struct mf_weights *weights,
		    struct mf_rotation rotation, uint64_t n, struct mf_policy_shares *out)
{
	int prev = rotation.il_prev;
	int node = prev, others;
	uint64_t prev_share = 0;
	struct split_up up;

	out->nr = 0;
	if (!n || !policy->nodes)
		return;
	up = split_up(policy, weights, rotation, n);
	if (up.has_prev)
		prev_share = share_of_prev(&up, mf_policy_weight(policy, weights, prev));
	if (up.owed)
		add_share(out, prev, prev_share);
	others = up.weights ? mf_node_weight(policy->nodes) - up.has_prev : 0;
	for (; others > 0; others--) {
		unsigned weight;
		uint64_t part;

		node = mf_node_next_cyclic(policy->nodes, node); /* prev itself would come last */
		weight = mf_policy_weight(policy, weights, node);
		part = min_u64(up.rest, weight);
		up.rest -= part;
		add_share(out, node, weight * up.rounds + part);
	}
	if (!up.owed)
		add_share(out, prev, prev_share);
}

void mf_policy_bulk_split(const struct mf_policy *policy, const struct mf_weights *weights,
			  struct mf_rotation rotation, uint64_t n, struct mf_policy_split *out)
{
	bool owed = rotation.il_weight && mf_node_isset(policy->nodes, rotation.il_prev);

	out->carry_node = -1;
	out->carry = 0;
	if (owed && n) {
		out->carry_node = rotation.il_prev;
		out->carry = min_u64(n, rotation.il_weight);
		n -= out->carry;
	}
	rotation.il_weight = 0;
	mf_policy_bulk(policy, weights, rotation, n, &out->rest);
}

void mf_policy_advance(const struct mf_policy *policy, const struct mf_weights *weights,
		       struct mf_rotation *rotation, uint64_t n)
{
	struct split_up up;
	int node;

	if (!n || !policy->nodes)
		return;
	up = split_up(policy, weights, *rotation, n);
	if (!up.weights) { /* all of it was owed */
		rotation->il_weight -= up.owed;
		return;
	}
	if (!up.rest) { /* whole cycles: their last node is through */
		if (!up.has_prev)
			rotation->il_prev = last_of_cycle(policy->nodes, rotation->il_prev);
		rotation->il_weight = 0;
		return;
	}
	node = mf_node_next_cyclic(policy->nodes, rotation->il_prev);
	while (up.rest > mf_policy_weight(policy, weights, node)) {
		up.rest -= mf_policy_weight(policy, weights, node);
		node = mf_node_next_cyclic(policy->nodes, node);
	}
	rotation->il_prev = node;
	rotation->il_weight = mf_policy_weight(policy, weights, node) - up.rest;
}

int mf_policy_index_node(const struct mf_policy *policy, const struct mf_weights *weights, uint64_t index)
{
	uint64_t sum = weight_sum(policy, weights);

	if (!sum)
		return -1;
	index %= sum;
	if (policy->mode == MF_MPOL_INTERLEAVE)
		return mf_node_nth(policy->nodes, index);
	MF_FOR_EACH_NODE(node, policy->nodes) {
		if (index < weights->of[node])
			return node;
		index -= weights->of[node];
	}
	return -1;
}
