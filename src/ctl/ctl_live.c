/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * live/NAME/: what a named allocation is.  data is plain memory and does not
 * come through here.
 *
 * An allocation freed since the path was looked up is -ENODEV; one freed while
 * it is shown may still show 0.
 * Locks: the allocation's data_lock (shared) while its cache is looked at, which
 * it pins until it is freed; placement and map take it themselves.
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
	static const char *const names[] = {
		[MF_LIVE_PAGES] = "pages",
		[MF_LIVE_VMALLOC] = "vmalloc",
		[MF_LIVE_SLAB] = "slab",
	};

	mf_outbuf_printf(out, "%s\n", names[live->kind]);
	return 0;
}

static int show_policy(struct mf_live *live, struct mf_outbuf *out)
{
	mf_outbuf_printf(out, "%s\n", live->policy ? live->policy : "default");
	return 0;
}

/* Of objects allocated by size it is the one kmalloc took them from; NULL: they are too large for one. */
static const struct mf_cache *cache_of(const struct mf_live *live)
{
	return live->cache ? live->cache : mf_cache_of(live->m->slabs, live->objects[0]);
}

static unsigned order_of_size(uint64_t size)
{
	unsigned order = 0;

	while ((uint64_t)MEMFS_PAGE_SIZE << order < size)
		order++;
	return order;
}

static void put_slab_order(const struct mf_live *live, struct mf_outbuf *out)
{
	const struct mf_cache *cache = cache_of(live);

	mf_outbuf_printf(out, "%u\n",
			 cache ? mf_cache_geometry(cache)->order : order_of_size(live->object_size));
}

static void put_cache_name(const struct mf_live *live, struct mf_outbuf *out)
{
	const struct mf_cache *cache = cache_of(live);

	/* By the name it was asked for, of which a cache may have several. */
	mf_outbuf_printf(out, "%s\n", live->cache ? live->cache_name : cache ? mf_cache_name(cache) : "-");
}

static int put_of_objects(struct mf_live *live,
			  void (*put)(const struct mf_live *live, struct mf_outbuf *out),
			  struct mf_outbuf *out)
{
	int error = -ENODEV;

	pthread_rwlock_rdlock(&live->data_lock);
	if (live->nr_blocks) {
		put(live, out);
		error = 0;
	}
	pthread_rwlock_unlock(&live->data_lock);
	return error;
}

static int show_order(struct mf_live *live, struct mf_outbuf *out)
{
	if (live->kind == MF_LIVE_SLAB)
		return put_of_objects(live, put_slab_order, out);
	mf_outbuf_printf(out, "%u\n", live->kind == MF_LIVE_VMALLOC ? 0 : live->order);
	return 0;
}

static int show_cache(struct mf_live *live, struct mf_outbuf *out)
{
	return put_of_objects(live, put_cache_name, out);
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
SHOW_LIVE(live_cache, show_cache)
