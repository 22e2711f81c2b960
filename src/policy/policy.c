/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a policy means: validation when it is set, and rebinding when the
 * allowed nodes of its task change (behaviour 1.1, 1.8).  The text form is in
 * policy_text.c, the choice of nodes in interleave.c.
 *
 * Invariants: a policy that was set has nodes within allowed nodes that have
 * memory; DEFAULT and LOCAL have none, PREFERRED has exactly one, the other
 * modes at least one.
 *
 * Locks: none; the owner of a policy holds what protects it.
 */
#include "policy/policy.h"

#include <errno.h>
#include <stdio.h>

#define USER_MASK_FLAGS (MF_MPOL_F_STATIC_NODES | MF_MPOL_F_RELATIVE_NODES)
#define ALL_FLAGS (USER_MASK_FLAGS | MF_MPOL_F_NUMA_BALANCING)

__attribute__((format(printf, 3, 4))) static int refuse(char *why, size_t why_size, const char *format, ...)
{
	va_list args;

	if (why_size) {
		va_start(args, format);
		vsnprintf(why, why_size, format, args);
		va_end(args);
	}
	return -EINVAL;
}

static mf_nodemask usable(const struct mf_policy_context *context)
{
	return context->allowed & context->memory & context->exist;
}

static bool takes_nodes(enum mf_policy_mode mode)
{
	return mode != MF_MPOL_DEFAULT && mode != MF_MPOL_LOCAL;
}

/* Position i of @relative stands for the (i mod count)-th node of @onto. */
static mf_nodemask fold_onto(mf_nodemask relative, mf_nodemask onto)
{
	int count = mf_node_weight(onto);
	mf_nodemask result = 0;

	if (!count)
		return 0;
	MF_FOR_EACH_NODE(position, relative)
		result |= mf_node_bit(mf_node_nth(onto, position % count));
	return result;
}

/* The k-th node of @from becomes the (k mod count)-th node of @onto. */
static mf_nodemask remap(mf_nodemask nodes, mf_nodemask from, mf_nodemask onto)
{
	mf_nodemask ranks = 0;

	MF_FOR_EACH_NODE(node, nodes & from)
		ranks |= mf_node_bit(mf_node_weight(from & (mf_node_bit(node) - 1)));
	return fold_onto(ranks, onto);
}

static mf_nodemask only_first(enum mf_policy_mode mode, mf_nodemask nodes)
{
	return mode == MF_MPOL_PREFERRED ? nodes & -nodes : nodes;
}

static int check_flags(enum mf_policy_mode mode, unsigned flags, char *why, size_t why_size)
{
	if (flags & ~ALL_FLAGS)
		return refuse(why, why_size, "unknown policy flags 0x%x", flags & ~ALL_FLAGS);
	if ((flags & USER_MASK_FLAGS) == USER_MASK_FLAGS)
		return refuse(why, why_size, "static and relative exclude each other");
	if (flags & MF_MPOL_F_NUMA_BALANCING && mode != MF_MPOL_BIND && mode != MF_MPOL_PREFERRED_MANY)
		return refuse(why, why_size, "balancing goes with bind and prefer (many) only");
	if (flags && mode == MF_MPOL_LOCAL)
		return refuse(why, why_size, "local takes no flags");
	return 0;
}

static int check_nodes(enum mf_policy_mode mode, unsigned flags, mf_nodemask user, char *why, size_t why_size)
{
	if (user && !takes_nodes(mode))
		return refuse(why, why_size, "%s takes no nodes", mf_policy_mode_name(mode));
	if (!user && mode == MF_MPOL_PREFERRED && flags)
		return refuse(why, why_size, "prefer with a flag needs a node");
	if (!user && takes_nodes(mode) && mode != MF_MPOL_PREFERRED)
		return refuse(why, why_size, "%s needs at least one node", mf_policy_mode_name(mode));
	return 0;
}

/* Nothing of a mask that is not empty was left: says which restriction took it. */
static int refuse_empty(mf_nodemask user, const struct mf_policy_context *context, char *why, size_t why_size)
{
	bool one = mf_node_weight(user) == 1;

	if (!usable(context))
		return refuse(why, why_size, "no allowed node has memory");
	if (!(user & context->exist) && one)
		return refuse(why, why_size, "node %d does not exist", mf_node_first(user));
	if (!(user & context->exist))
		return refuse(why, why_size, "none of these nodes exists");
	if (!(user & context->memory) && one)
		return refuse(why, why_size, "node %d has no memory", mf_node_first(user));
	if (!(user & context->memory))
		return refuse(why, why_size, "none of these nodes has memory");
	if (one)
		return refuse(why, why_size, "node %d is not in mems_allowed", mf_node_first(user));
	return refuse(why, why_size, "none of these nodes with memory is in mems_allowed");
}

int mf_policy_set(enum mf_policy_mode mode, unsigned flags, mf_nodemask user,
		  const struct mf_policy_context *context, struct mf_policy *out, char *why, size_t why_size)
{
	struct mf_policy policy = { .mode = mode, .flags = flags, .user = user, .allowed = usable(context) };
	int error;

	if ((unsigned)mode >= MF_NR_MPOL_MODES)
		return refuse(why, why_size, "unknown policy mode %u", (unsigned)mode);
	error = check_flags(mode, flags, why, why_size);
	if (!error)
		error = check_nodes(mode, flags, user, why, why_size);
	if (error)
		return error;
	if (mode == MF_MPOL_DEFAULT)
		policy.flags = 0;
	if (mode == MF_MPOL_PREFERRED && !user)
		policy.mode = MF_MPOL_LOCAL;
	if (takes_nodes(policy.mode)) {
		policy.nodes = flags & MF_MPOL_F_RELATIVE_NODES ? fold_onto(user, policy.allowed)
								: user & policy.allowed;
		policy.nodes = only_first(mode, policy.nodes);
		if (!policy.nodes)
			return refuse_empty(user, context, why, why_size);
	}
	*out = policy;
	return 0;
}

/*
 * The kernel's preferred policy keeps its node whatever the new allowed nodes
 * are; here it follows them like every other mode, since a task never
 * allocates outside them.
 */
void mf_policy_rebind(struct mf_policy *policy, const struct mf_policy_context *context)
{
	mf_nodemask allowed = usable(context);
	mf_nodemask nodes;

	if (!allowed)
		return;
	if (takes_nodes(policy->mode)) {
		if (policy->flags & MF_MPOL_F_STATIC_NODES)
			nodes = policy->user & allowed;
		else if (policy->flags & MF_MPOL_F_RELATIVE_NODES)
			nodes = fold_onto(policy->user, allowed);
		else
			nodes = remap(policy->nodes, policy->allowed, allowed);
		policy->nodes = only_first(policy->mode, nodes ? nodes : allowed);
	}
	policy->allowed = allowed;
}
