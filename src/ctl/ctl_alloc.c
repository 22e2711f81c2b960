/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * alloc/: the triggers.  Their grammar is in ctl_parse.c, their work in the
 * engine; here the two meet.
 *
 * Locks: none here.
 */
#include "ctl/ctl_internal.h"

#include <errno.h>
#include <inttypes.h>

typedef int parse_request_fn(const struct mf_topo *topo, struct mf_text text, struct mf_live_request *out,
			     char *why, size_t why_size);

static int allocate(struct mf_ctl_command *command, parse_request_fn *parse)
{
	struct mf_live_request request;
	int error = parse(command->m->topo, command->text, &request, command->why, sizeof(command->why));

	if (error)
		return error;
	request.page.cancel = command->cancel;
	return mf_live_alloc(command->m, &request, command->reply, command->why, sizeof(command->why));
}

int mf_ctl_store_pages(struct mf_ctl_command *command)
{
	return allocate(command, mf_ctl_parse_pages);
}

int mf_ctl_store_vmalloc(struct mf_ctl_command *command)
{
	return allocate(command, mf_ctl_parse_vmalloc);
}

int mf_ctl_store_slab(struct mf_ctl_command *command)
{
	return allocate(command, mf_ctl_parse_slab);
}

int mf_ctl_store_free(struct mf_ctl_command *command)
{
	struct mf_text name;
	uint64_t count;
	int error = mf_ctl_parse_free(command->text, &name, &count, command->why, sizeof(command->why));

	if (error)
		return error;
	return mf_live_free(command->m, name, count, command->reply, command->why, sizeof(command->why));
}

/* "nodeN" of a node that exists, -ENOENT of one that does not. */
static int parse_node_name(struct mf_ctl_command *command, int *out)
{
	struct mf_text text = command->text;
	uint64_t node;

	if (text.length < 5 || !mf_text_is((struct mf_text){ text.at, 4 }, "node"))
		return mf_ctl_fail(command, -EINVAL, "expected 1 (all nodes) or nodeN");
	text.at += 4;
	text.length -= 4;
	if (*text.at == '+' || mf_parse_u64(text, INT32_MAX, &node))
		return mf_ctl_fail(command, -EINVAL, "expected 1 (all nodes) or nodeN");
	if (node >= MEMFS_MAX_NODES || !mf_node_isset(command->m->topo->nodes, (int)node))
		return mf_ctl_fail(command, -ENOENT, "node %" PRIu64 " does not exist", node);
	*out = (int)node;
	return 0;
}

int mf_ctl_store_drain(struct mf_ctl_command *command)
{
	int node = -1;
	int error = 0;

	if (!mf_text_is(command->text, "1"))
		error = parse_node_name(command, &node);
	if (!error)
		mf_page_drain(command->m->page, node);
	return error;
}

int mf_ctl_store_trim(struct mf_ctl_command *command)
{
	int error = mf_ctl_parse_one(command);

	if (!error)
		mf_outbuf_printf(command->reply, "pages=%" PRIu64 "\n", mf_page_trim(command->m->page));
	return error;
}
