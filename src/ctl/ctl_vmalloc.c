/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vmalloc/: the ranges, the addresses they have, and the purge.
 *
 * Locks: none here.  Ranges and their names are looked at one after the other:
 * they agree when nothing runs.
 */
#include "ctl/ctl_internal.h"
#include "ctl/render.h"

#include <inttypes.h>

/* --- areas --- */

struct areas {
	struct mf_range_names names;
	struct mf_outbuf *out;
};

static const char *kind_of(const struct mf_vmalloc_area *area)
{
	return area->vmap ? "vmap" : area->linear ? "linear" : "mapped";
}

static void put_area(void *arg, const struct mf_vmalloc_area *area)
{
	const struct areas *areas = arg;
	const char *name = mf_range_name(&areas->names, area->start);

	mf_outbuf_printf(areas->out, "0x%016" PRIx64 "-0x%016" PRIx64, area->start, area->start + area->size);
	mf_outbuf_printf(areas->out, " %" PRIu64 " %" PRIu64 " %" PRIu32 " %s%s %s\n", area->size,
			 area->pages, area->runs, kind_of(area), area->huge ? "-huge" : "",
			 name ? name : "-");
}

int mf_ctl_show_areas(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	struct areas areas = { .out = out };
	int error = mf_range_names_take(m, &areas.names);

	(void)node;
	if (!error)
		error = mf_vmalloc_for_each(m->vmalloc, false, put_area, &areas);
	mf_range_names_free(&areas.names);
	return error;
}

/* --- levels --- */

int mf_ctl_show_free_space(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	struct mf_vmalloc_info info;

	(void)node;
	mf_vmalloc_info(m->vmalloc, &info);
	mf_outbuf_printf(out, "start 0x%016" PRIx64 "\nsize %" PRIu64 "\n", info.start, info.size);
	mf_outbuf_printf(out, "free %" PRIu64 "\nlargest %" PRIu64 "\nplaces %" PRIu64 "\n", info.free_bytes,
			 info.largest_free, info.nr_free);
	return 0;
}

int mf_ctl_show_lazy_pages(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	struct mf_vmalloc_info info;

	(void)node;
	mf_vmalloc_info(m->vmalloc, &info);
	mf_outbuf_printf(out, "%" PRIu64 "\n", info.lazy_pages);
	return 0;
}

int mf_ctl_show_mappings(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	struct mf_vmalloc_info info;

	(void)node;
	mf_vmalloc_info(m->vmalloc, &info);
	mf_outbuf_printf(out, "used %" PRIu64 "\nlimit %" PRIu64 "\n", info.mappings, info.max_mappings);
	return 0;
}

int mf_ctl_store_purge(struct mf_ctl_command *command)
{
	int error = mf_ctl_parse_one(command);

	if (!error)
		mf_outbuf_printf(command->reply, "pages=%" PRIu64 "\n",
				 mf_vmalloc_purge(command->m->vmalloc));
	return error;
}
