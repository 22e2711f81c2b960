/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Allocation flags as text, and what they say about zone and migrate type.
 * One row a name; combinations stand before the single bits so that printing
 * finds the shortest text.
 */
#include "page/page.h"

#include <errno.h>

const char *const mf_migrate_type_names[6] = { "Unmovable",  "Movable", "Reclaimable",
					       "HighAtomic", "CMA",	"Isolate" };

struct gfp_name {
	const char *name;
	memfs_gfp flags;
};

#define GFP_ROW(flag) \
	{ \
#flag, MEMFS_##flag \
	}

static const struct gfp_name gfp_names[] = {
	GFP_ROW(GFP_HIGHUSER_MOVABLE),
	GFP_ROW(GFP_HIGHUSER),
	GFP_ROW(GFP_USER),
	GFP_ROW(GFP_KERNEL_ACCOUNT),
	GFP_ROW(GFP_KERNEL),
	GFP_ROW(GFP_NOFS),
	GFP_ROW(GFP_ATOMIC),
	GFP_ROW(GFP_NOIO),
	GFP_ROW(GFP_NOWAIT),
	GFP_ROW(GFP_DMA),
	GFP_ROW(GFP_DMA32),
	GFP_ROW(__GFP_DMA),
	GFP_ROW(__GFP_DMA32),
	GFP_ROW(__GFP_HIGHMEM),
	GFP_ROW(__GFP_MOVABLE),
	GFP_ROW(__GFP_RECLAIMABLE),
	GFP_ROW(__GFP_HIGH),
	GFP_ROW(__GFP_IO),
	GFP_ROW(__GFP_FS),
	GFP_ROW(__GFP_ZERO),
	GFP_ROW(__GFP_RECLAIM),
	GFP_ROW(__GFP_DIRECT_RECLAIM),
	GFP_ROW(__GFP_KSWAPD_RECLAIM),
	GFP_ROW(__GFP_NOWARN),
	GFP_ROW(__GFP_RETRY_MAYFAIL),
	GFP_ROW(__GFP_NOFAIL),
	GFP_ROW(__GFP_NORETRY),
	GFP_ROW(__GFP_MEMALLOC),
	GFP_ROW(__GFP_NOMEMALLOC),
	GFP_ROW(__GFP_COMP),
	GFP_ROW(__GFP_HARDWALL),
	GFP_ROW(__GFP_THISNODE),
	GFP_ROW(__GFP_ACCOUNT),
};

#define NR_GFP_NAMES (sizeof(gfp_names) / sizeof(gfp_names[0]))

static const struct gfp_name *find(struct mf_text name)
{
	for (size_t i = 0; i < NR_GFP_NAMES; i++)
		if (mf_text_is(name, gfp_names[i].name))
			return &gfp_names[i];
	return NULL;
}

int mf_gfp_parse(struct mf_text text, memfs_gfp *out)
{
	memfs_gfp flags = 0;
	const char *end = text.at + text.length;

	/* An empty name, also behind a last '|', is refused like any unknown one. */
	for (;;) {
		struct mf_text name = mf_text_until(&text, '|');
		const struct gfp_name *row = find(name);

		if (!row)
			return -EINVAL;
		flags |= row->flags;
		if (name.at + name.length == end)
			break;
	}
	*out = flags;
	return 0;
}

void mf_gfp_print(memfs_gfp gfp, struct mf_outbuf *out)
{
	const char *separator = "";

	if (!gfp)
		mf_outbuf_puts(out, "0");
	for (size_t i = 0; gfp && i < NR_GFP_NAMES; i++) {
		memfs_gfp flags = gfp_names[i].flags;

		if ((gfp & flags) != flags)
			continue;
		mf_outbuf_printf(out, "%s%s", separator, gfp_names[i].name);
		separator = "|";
		gfp &= ~flags;
	}
}

enum mf_migrate_type mf_gfp_migrate_type(memfs_gfp gfp)
{
	if (gfp & MEMFS___GFP_MOVABLE)
		return MF_MOVABLE;
	return gfp & MEMFS___GFP_RECLAIMABLE ? MF_RECLAIMABLE : MF_UNMOVABLE;
}

enum mf_zone_type mf_gfp_highest_zone(memfs_gfp gfp)
{
	const memfs_gfp user_movable = MEMFS___GFP_HIGHMEM | MEMFS___GFP_MOVABLE;

	if (gfp & MEMFS___GFP_DMA)
		return MF_ZONE_DMA;
	if (gfp & MEMFS___GFP_DMA32)
		return MF_ZONE_DMA32;
	return (gfp & user_movable) == user_movable ? MF_ZONE_MOVABLE : MF_ZONE_NORMAL;
}
