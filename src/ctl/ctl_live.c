/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * live/NAME/: what a named allocation is.  data is plain memory and does not
 * come through here.
 *
 * An allocation freed since the path was looked up is -ENODEV; one freed while
 * it is shown may still show 0.
 * Locks: none here; placement and map take the allocation's data_lock.
 */
#include "ctl/ctl_internal.h"

#include <errno.h>
#include <inttypes.h>

typedef int show_live_fn(struct mf_live *live, struct mf_outbuf *out);

static int show_live(struct memfs *m, const struct mf_ctl_node *node, show_live_fn *show,
		     struct mf_outbuf *out)
{
	struct mf_live *live = mf_ctl_live(m, node);
	int error;

	if (!live)
		return -ENODEV;
	error = mf_live_bytes(live) ? show(live, out) : -ENODEV;
	mf_live_put(live);
	return error;
}

static int show_task(struct mf_live *live, struct mf_outbuf *out)
{
	mf_outbuf_printf(out, "%s\n", live->task_name);
	return 0;
}

static int show_kind(struct mf_live *live, struct mf_outbuf *out)
{
	mf_outbuf_puts(out, live->kind == MF_LIVE_VMALLOC ? "vmalloc\n" : "pages\n");
	return 0;
}

static int show_policy(struct mf_live *live, struct mf_outbuf *out)
{
	mf_outbuf_printf(out, "%s\n", live->policy ? live->policy : "default");
	return 0;
}

static int show_order(struct mf_live *live, struct mf_outbuf *out)
{
	mf_outbuf_printf(out, "%u\n", live->kind == MF_LIVE_VMALLOC ? 0 : live->order);
	return 0;
}

static int show_bytes(struct mf_live *live, struct mf_outbuf *out)
{
	mf_outbuf_printf(out, "%" PRIu64 "\n", mf_live_bytes(live));
	return 0;
}

static int show_pages(struct mf_live *live, struct mf_outbuf *out)
{
	mf_outbuf_printf(out, "%" PRIu64 "\n", mf_live_pages(live));
	return 0;
}

static int show_address(struct mf_live *live, struct mf_outbuf *out)
{
	mf_outbuf_printf(out, "0x%016" PRIxPTR "\n", (uintptr_t)live->address);
	return 0;
}

#define SHOW_LIVE(name, function) \
	int mf_ctl_show_##name(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out) \
	{ \
		return show_live(m, node, function, out); \
	}

SHOW_LIVE(kind, show_kind)
SHOW_LIVE(live_task, show_task)
SHOW_LIVE(live_policy, show_policy)
SHOW_LIVE(order, show_order)
SHOW_LIVE(pages, show_pages)
SHOW_LIVE(bytes, show_bytes)
SHOW_LIVE(placement, mf_live_placement)
SHOW_LIVE(map, mf_live_map)
SHOW_LIVE(address, show_address)
