/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text form of a policy, the kernel's: NAME[=FLAG[|FLAG]][:NODES], for
 * instance "weighted interleave=static:0-1".
 *
 * Differences, both documented: '-' is taken for the space of a name, so that
 * a policy can be one word of a command, and the stride of a list ("0-3:1/2")
 * is refused.  What mf_policy_print writes, mf_policy_parse takes.
 *
 * Locks: none; pure functions.
 */
#include "policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Node numbers are parsed beyond what can exist, to say "node 100 does not exist". */
#define MAX_NODE_NUMBER 1023

static const char *const mode_names[MF_NR_MPOL_MODES] = {
	[MF_MPOL_DEFAULT] = "default",
	[MF_MPOL_PREFERRED] = "prefer",
	[MF_MPOL_BIND] = "bind",
	[MF_MPOL_INTERLEAVE] = "interleave",
	[MF_MPOL_LOCAL] = "local",
	[MF_MPOL_PREFERRED_MANY] = "prefer (many)",
	[MF_MPOL_WEIGHTED_INTERLEAVE] = "weighted interleave",
};

static const struct flag_name {
	const char *name;
	unsigned flag;
} flag_names[] = {
	{ "static", MF_MPOL_F_STATIC_NODES },
	{ "relative", MF_MPOL_F_RELATIVE_NODES },
	{ "balancing", MF_MPOL_F_NUMA_BALANCING },
};

#define NR_FLAG_NAMES (sizeof(flag_names) / sizeof(flag_names[0]))

/* A policy text taken apart. */
struct pieces {
	struct mf_text mode, flags, nodes;
	bool has_flags, has_nodes;
};

const char *mf_policy_mode_name(enum mf_policy_mode mode)
{
	return (unsigned)mode < MF_NR_MPOL_MODES ? mode_names[mode] : "unknown";
}

/* -EINVAL with "BEFORE 'text'AFTER"; the text is cut at 32 bytes and made printable. */
static int refuse_text(char *why, size_t why_size, const char *before, struct mf_text text, const char *after)
{
	size_t length = text.length < 32 ? text.length : 32;
	char shown[33];

	for (size_t i = 0; i < length; i++)
		shown[i] = text.at[i] >= ' ' && text.at[i] <= '~' ? text.at[i] : '?';
	shown[length] = '\0';
	if (why_size)
		snprintf(why, why_size, "%s '%s'%s", before, shown, after);
	return -EINVAL;
}

static int refuse(char *why, size_t why_size, const char *reason)
{
	if (why_size)
		snprintf(why, why_size, "%s", reason);
	return -EINVAL;
}

static struct pieces take_apart(struct mf_text text)
{
	struct pieces pieces;
	struct mf_text head;

	pieces.nodes = text;
	head = mf_text_until(&pieces.nodes, ':');
	pieces.has_nodes = head.length < text.length;
	pieces.flags = head;
	pieces.mode = mf_text_until(&pieces.flags, '=');
	pieces.has_flags = pieces.mode.length < head.length;
	return pieces;
}

static bool is_mode_name(struct mf_text text, const char *name)
{
	if (text.length != strlen(name))
		return false;
	for (size_t i = 0; i < text.length; i++)
		if (text.at[i] != name[i] && !(name[i] == ' ' && text.at[i] == '-'))
			return false;
	return true;
}

static int parse_mode(struct mf_text text, enum mf_policy_mode *mode, char *why, size_t why_size)
{
	if (!text.length)
		return refuse(why, why_size, "a policy is needed, as in interleave:0-1");
	for (unsigned i = 0; i < MF_NR_MPOL_MODES; i++)
		if (is_mode_name(text, mode_names[i])) {
			*mode = i;
			return 0;
		}
	return refuse_text(why, why_size, "unknown policy", text, "");
}

static unsigned flag_of(struct mf_text text)
{
	for (size_t i = 0; i < NR_FLAG_NAMES; i++)
		if (mf_text_is(text, flag_names[i].name))
			return flag_names[i].flag;
	return 0;
}

static int parse_flags(struct mf_text text, unsigned *flags, char *why, size_t why_size)
{
	size_t left;

	do {
		struct mf_text name;

		left = text.length;
		name = mf_text_until(&text, '|');
		if (!flag_of(name))
			return refuse_text(why, why_size, "unknown policy flag", name,
					   ", known are static, relative, balancing");
		*flags |= flag_of(name);
		left -= name.length;
	} while (left); /* a separator was cut off behind the name */
	return 0;
}

static bool all_digits(struct mf_text text)
{
	for (size_t i = 0; i < text.length; i++)
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
	return true;
}

static int refuse_missing(const uint64_t *bits, mf_nodemask known, char *why, size_t why_size)
{
	for (unsigned node = 0; node <= MAX_NODE_NUMBER; node++) {
		if (!(bits[node / 64] >> node % 64 & 1) || (node < 64 && mf_node_isset(known, node)))
			continue;
		if (why_size)
			snprintf(why, why_size, "node %u does not exist", node);
		return -EINVAL;
	}
	return 0;
}

/* @known: the numbers a list may hold; others do not exist. */
static int parse_nodes(struct mf_text text, mf_nodemask known, mf_nodemask *out, char *why, size_t why_size)
{
	uint64_t bits[MAX_NODE_NUMBER / 64 + 1];
	int error;

	/* The kernel's lists may have blanks in front, its other parts may not. */
	while (text.length && text.at[0] == ' ') {
		text.at++;
		text.length--;
	}
	if (text.length && memchr(text.at, ':', text.length))
		return refuse_text(why, why_size, "node list", text, " has a stride, which is not supported");
	if (mf_parse_list(text, MAX_NODE_NUMBER, bits))
		return refuse_text(why, why_size, "node list", text, " is not like 0,2-3");
	error = refuse_missing(bits, known, why, why_size);
	if (!error)
		*out = bits[0];
	return error;
}

/* The numbers of RELATIVE are positions; as many as there are nodes mean something. */
static mf_nodemask known_numbers(unsigned flags, const struct mf_policy_context *context)
{
	int count = mf_node_weight(context->exist);

	if (!(flags & MF_MPOL_F_RELATIVE_NODES) || !count)
		return context->exist;
	return context->exist | ~UINT64_C(0) >> (64 - count);
}

/* What an interleaving policy without a list means: all allowed nodes with memory. */
static mf_nodemask all_nodes(unsigned flags, const struct mf_policy_context *context)
{
	mf_nodemask all = context->allowed & context->memory & context->exist;

	if (flags & MF_MPOL_F_RELATIVE_NODES && all)
		return ~UINT64_C(0) >> (64 - mf_node_weight(all));
	return all;
}

/* The nodes a text gives or implies; the empty set where it gives none. */
static int nodes_of(const struct pieces *pieces, enum mf_policy_mode mode, unsigned flags,
		    const struct mf_policy_context *context, mf_nodemask *out, char *why, size_t why_size)
{
	int error;

	*out = 0;
	if (!pieces->has_nodes) {
		if (mode == MF_MPOL_INTERLEAVE || mode == MF_MPOL_WEIGHTED_INTERLEAVE) {
			*out = all_nodes(flags, context);
			if (!*out)
				return refuse(why, why_size, "no allowed node has memory");
		}
		return 0;
	}
	if (mode == MF_MPOL_DEFAULT || mode == MF_MPOL_LOCAL) {
		if (why_size)
			snprintf(why, why_size, "%s takes no nodes", mode_names[mode]);
		return -EINVAL;
	}
	if (mode == MF_MPOL_PREFERRED && !all_digits(pieces->nodes))
		return refuse(why, why_size, "prefer takes one node, prefer (many) takes a list");
	error = parse_nodes(pieces->nodes, known_numbers(flags, context), out, why, why_size);
	if (!error && !*out)
		return refuse(why, why_size, "the node list behind ':' is empty");
	return error;
}

int mf_policy_parse(struct mf_text text, const struct mf_policy_context *context, struct mf_policy *out,
		    char *why, size_t why_size)
{
	struct pieces pieces = take_apart(text);
	enum mf_policy_mode mode = MF_MPOL_DEFAULT;
	unsigned flags = 0;
	mf_nodemask nodes = 0;
	int error;

	error = parse_mode(pieces.mode, &mode, why, why_size);
	if (!error && pieces.has_flags)
		error = parse_flags(pieces.flags, &flags, why, why_size);
	if (!error)
		error = nodes_of(&pieces, mode, flags, context, &nodes, why, why_size);
	if (error)
		return error;
	return mf_policy_set(mode, flags, nodes, context, out, why, why_size);
}

void mf_policy_print(const struct mf_policy *policy, struct mf_outbuf *out)
{
	mf_nodemask nodes = policy->flags & (MF_MPOL_F_STATIC_NODES | MF_MPOL_F_RELATIVE_NODES)
				    ? policy->user
				    : policy->nodes;
	char separator = '=';

	mf_outbuf_puts(out, mf_policy_mode_name(policy->mode));
	for (size_t i = 0; i < NR_FLAG_NAMES; i++) {
		if (!(policy->flags & flag_names[i].flag))
			continue;
		mf_outbuf_printf(out, "%c%s", separator, flag_names[i].name);
		separator = '|';
	}
	if (nodes) {
		mf_outbuf_puts(out, ":");
		mf_outbuf_nodelist(out, nodes);
	}
}
