/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory policies: pure choice of nodes from a policy, a rotation and weights
 * (behaviour 1).  No lock, no allocation, no clock; callers hold what they
 * pass.  The unit of a rotation is one block handed out, whatever its order.
 *
 * Invariants: 0 < weight[n] for every node with memory; il_weight > 0 only if
 * il_prev was entered; policy.nodes is a subset of the nodes with memory and
 * empty only for DEFAULT, LOCAL.
 */
#ifndef MF_POLICY_H
#define MF_POLICY_H

#include "base/nodemask.h"
#include "base/outbuf.h"
#include "base/parse.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mf_policy_mode { /* the kernel's ABI numbers */
		      MF_MPOL_DEFAULT,
		      MF_MPOL_PREFERRED,
		      MF_MPOL_BIND,
		      MF_MPOL_INTERLEAVE,
		      MF_MPOL_LOCAL,
		      MF_MPOL_PREFERRED_MANY,
		      MF_MPOL_WEIGHTED_INTERLEAVE,
		      MF_NR_MPOL_MODES,
};

#define MF_MPOL_F_NUMA_BALANCING (1u << 13)
#define MF_MPOL_F_RELATIVE_NODES (1u << 14)
#define MF_MPOL_F_STATIC_NODES (1u << 15)

struct mf_policy {
	enum mf_policy_mode mode;
	unsigned flags;
	mf_nodemask user;    /* the mask as the user gave it (STATIC, RELATIVE rebind from it) */
	mf_nodemask nodes;   /* what it means now */
	mf_nodemask allowed; /* the allowed nodes with memory it was last bound to */
};

/* Weight per node id; entries of nodes without memory are 1 and never used. */
struct mf_weights {
	uint8_t of[64];
};

/* One word, so that a step can be committed by one compare-and-store. */
struct mf_rotation {
	uint8_t il_prev;   /* node last entered; 63 at the start (the highest id there can be) */
	uint8_t il_weight; /* blocks still owed to il_prev */
};
#define MF_ROTATION_INIT \
	{ \
		63, 0 \
	}

/* What a policy may choose from. */
struct mf_policy_context {
	mf_nodemask exist;   /* declared nodes: others in a text are EINVAL */
	mf_nodemask memory;  /* nodes with memory */
	mf_nodemask allowed; /* mems_allowed of the task */
};

/*
 * mf_policy_set - the rules of behaviour 1.1 for set_mempolicy: validates and
 * binds.  -EINVAL leaves *out alone and writes one line without newline to
 * @why (@why_size bytes, may be NULL when that is 0).  Bits of @user outside
 * @context->exist are dropped like nodes without memory, as the system call
 * does; only a text that names such a node is refused.
 */
int mf_policy_set(enum mf_policy_mode mode, unsigned flags, mf_nodemask user,
		  const struct mf_policy_context *context, struct mf_policy *out, char *why, size_t why_size);

/* The text form, '-' accepted for the space of a name; "interleave" alone means all allowed nodes. */
int mf_policy_parse(struct mf_text text, const struct mf_policy_context *context, struct mf_policy *out,
		    char *why, size_t why_size);

/*
 * What mf_policy_parse takes, no newline.  Under STATIC and RELATIVE the nodes
 * are those the user gave, so that writing the line back changes nothing.
 */
void mf_policy_print(const struct mf_policy *policy, struct mf_outbuf *out);
const char *mf_policy_mode_name(enum mf_policy_mode mode);

/*
 * After mems_allowed changed (behaviour 1.8); the rotation is left alone.  A
 * result without nodes becomes all allowed nodes; when no allowed node has
 * memory the policy stays as it was.
 */
void mf_policy_rebind(struct mf_policy *policy, const struct mf_policy_context *context);

static inline bool mf_policy_interleaves(const struct mf_policy *policy)
{
	return policy->mode == MF_MPOL_INTERLEAVE || policy->mode == MF_MPOL_WEIGHTED_INTERLEAVE;
}

/* Weight of a node under this policy: 1 under plain interleave. */
static inline unsigned mf_policy_weight(const struct mf_policy *policy, const struct mf_weights *weights,
					int node)
{
	return policy->mode == MF_MPOL_INTERLEAVE ? 1 : weights->of[node];
}

/*
 * One block: the node it goes to; *rotation becomes the state after it
 * (behaviour 1.3).  This and all below are for interleaving policies only.
 */
int mf_policy_step(const struct mf_policy *policy, const struct mf_weights *weights,
		   struct mf_rotation *rotation);

/* The node the next block would go to, without moving (tasks/NAME/next_node). */
int mf_policy_peek(const struct mf_policy *policy, const struct mf_weights *weights,
		   struct mf_rotation rotation);

/*
 * A bulk of n blocks in one pass (behaviour 1.6): share[i] blocks for
 * node[i], in the order of the cycle, starting with what is still owed.
 * Nodes with share 0 are left out.  Nothing moves; see mf_policy_advance.
 */
struct mf_policy_shares {
	unsigned nr;
	uint8_t node[64];
	uint64_t share[64];
};
void mf_policy_bulk(const struct mf_policy *policy, const struct mf_weights *weights,
		    struct mf_rotation rotation, uint64_t n, struct mf_policy_shares *out);

/*
 * The same by the rule of kernels 6.9 to 7.2 (behaviour 1.4; tune/bulk_algorithm
 * = split): what is owed is a call of its own, so node[0] may come twice
 * (65 entries are possible: share of an own first call stands in *carry).
 */
struct mf_policy_split {
	int carry_node; /* -1: none */
	uint64_t carry;
	struct mf_policy_shares rest;
};
void mf_policy_bulk_split(const struct mf_policy *policy, const struct mf_weights *weights,
			  struct mf_rotation rotation, uint64_t n, struct mf_policy_split *out);

/*
 * The rotation after n blocks, in constant time per node: equal to n steps to
 * the last bit, so a run that ends at a boundary leaves (last node, 0) and the
 * next node's weight is read when it is entered.
 */
void mf_policy_advance(const struct mf_policy *policy, const struct mf_weights *weights,
		       struct mf_rotation *rotation, uint64_t n);

/* VMA rule: the node of block number @index of a range; no state. */
int mf_policy_index_node(const struct mf_policy *policy, const struct mf_weights *weights, uint64_t index);

#endif
