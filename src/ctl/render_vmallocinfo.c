/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vmallocinfo: a line a range in use by address, then those freed lazily, in
 * the kernel's format and order of words.
 *
 *   0xSTART-0xEND    size caller pages=N vmalloc [linear] Nnode=pages ...
 *   0xSTART-0xEND    size caller vmap          (its pages are somebody else's)
 *   0xSTART-0xEND    size unpurged vm_area
 *
 * The size has a mapped range's guard in it; "linear" is ours: such a range has
 * no guard.  A named allocation is its own caller, NAME+0x0/0xBYTES; any other
 * is known by the function that asked, or not at all.
 *
 * Locks: none here.  Ranges and names are looked at one after the other.
 */
#include "ctl/render.h"
#include "engine/live.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- names --- */

struct mf_range_name {
	uint64_t start;
	char name[MEMFS_NAME_MAX + 1];
};

static int compare_names(const void *a, const void *b)
{
	const struct mf_range_name *left = a, *right = b;

	return left->start < right->start ? -1 : left->start > right->start;
}

static void note_name(void *arg, const void *address, const char *name)
{
	struct mf_range_names *names = arg;
	struct mf_range_name *one;

	if (names->error)
		return;
	if (names->nr == names->room) {
		size_t room = names->room ? 2 * names->room : 64;
		struct mf_range_name *grown = realloc(names->names, room * sizeof(*grown));

		if (!grown) {
			names->error = -ENOMEM;
			return;
		}
		names->names = grown;
		names->room = room;
	}
	one = &names->names[names->nr++];
	one->start = (uint64_t)(uintptr_t)address;
	memcpy(one->name, name, strnlen(name, MEMFS_NAME_MAX));
	one->name[strnlen(name, MEMFS_NAME_MAX)] = '\0';
}

int mf_range_names_take(struct memfs *m, struct mf_range_names *out)
{
	int error;

	memset(out, 0, sizeof(*out));
	error = mf_live_for_each_vmalloc(m, note_name, out);
	if (!error)
		error = out->error;
	if (!error && out->nr)
		qsort(out->names, out->nr, sizeof(*out->names), compare_names);
	return error;
}

const char *mf_range_name(const struct mf_range_names *names, uint64_t start)
{
	const struct mf_range_name wanted = { .start = start }, *found = NULL;

	if (names->nr)
		found = bsearch(&wanted, names->names, names->nr, sizeof(wanted), compare_names);
	return found ? found->name : NULL;
}

void mf_range_names_free(struct mf_range_names *names)
{
	free(names->names);
	memset(names, 0, sizeof(*names));
}

/* --- lines --- */

struct lines {
	struct mf_range_names names;
	struct mf_outbuf *out;
};

static void put_span(const struct mf_vmalloc_area *area, struct mf_outbuf *out)
{
	mf_outbuf_printf(out, "0x%016" PRIx64 "-0x%016" PRIx64 " %7" PRIu64, area->start,
			 area->start + area->size, area->size);
}

static void put_caller(const struct lines *lines, const struct mf_vmalloc_area *area)
{
	const char *name = mf_range_name(&lines->names, area->start);

	if (name)
		mf_outbuf_printf(lines->out, " %s+0x0/0x%" PRIx64, name, area->pages << MEMFS_PAGE_SHIFT);
	else if (area->caller)
		mf_outbuf_printf(lines->out, " %s", area->caller);
}

static void put_used(void *arg, const struct mf_vmalloc_area *area)
{
	const struct lines *lines = arg;

	put_span(area, lines->out);
	put_caller(lines, area);
	if (area->vmap) {
		mf_outbuf_puts(lines->out, " vmap\n");
		return;
	}
	mf_outbuf_printf(lines->out, " pages=%" PRIu64 " vmalloc%s", area->pages,
			 area->linear ? " linear" : "");
	for (unsigned node = 0; node < MEMFS_MAX_NODES; node++)
		if (area->by_node[node])
			mf_outbuf_printf(lines->out, " N%u=%" PRIu64, node, area->by_node[node]);
	mf_outbuf_puts(lines->out, "\n");
}

static void put_lazy(void *arg, const struct mf_vmalloc_area *area)
{
	const struct lines *lines = arg;

	put_span(area, lines->out);
	mf_outbuf_puts(lines->out, " unpurged vm_area\n");
}

int mf_render_vmallocinfo(struct memfs *m, struct mf_outbuf *out)
{
	struct lines lines = { .out = out };
	int error = mf_range_names_take(m, &lines.names);

	if (!error)
		error = mf_vmalloc_for_each(m->vmalloc, false, put_used, &lines);
	if (!error)
		error = mf_vmalloc_for_each(m->vmalloc, true, put_lazy, &lines);
	mf_range_names_free(&lines.names);
	return error ? error : mf_outbuf_error(out);
}
