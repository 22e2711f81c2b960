/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the tests of slab/ share: rows of slabinfo by a strict parser, and the
 * files of a cache.
 */
#ifndef MF_TESTS_SLAB_FILES_H
#define MF_TESTS_SLAB_FILES_H

#include "ctl_fixture.h"
#include "ctl/render.h"

#include <inttypes.h>

#define TWO_NODES "topology=2x16M:cpus=2"

/* --- slabinfo --- */

struct row {
	char name[65];
	uint64_t active, objects, active_slabs, slabs;
	unsigned size, per_slab, pages;
};

static const char head[] =
	"slabinfo - version: 2.1\n"
	"# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables "
	"<limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n";

/* Every blank counts: what was read is printed again and compared. */
static inline bool parse_row(const char *text, struct row *row)
{
	unsigned limit, batch, factor, shared;
	char again[256];

	if (sscanf(text,
		   "%64s %" SCNu64 " %" SCNu64 " %u %u %u : tunables %u %u %u : slabdata %" SCNu64 " %" SCNu64
		   " %u",
		   row->name, &row->active, &row->objects, &row->size, &row->per_slab, &row->pages, &limit,
		   &batch, &factor, &row->active_slabs, &row->slabs, &shared) != 12)
		return false;
	snprintf(again, sizeof(again),
		 "%-17.64s %6" PRIu64 " %6" PRIu64 " %6u %4u %4u : tunables %4u %4u %4u : slabdata %6" PRIu64
		 " %6" PRIu64 " %6u",
		 row->name, row->active, row->objects, row->size, row->per_slab, row->pages, 0, 0, 0,
		 row->active_slabs, row->slabs, 0);
	return strcmp(again, text) == 0 && row->active <= row->objects && row->active_slabs == row->slabs &&
	       row->size * row->per_slab <= row->pages * 4096u && (row->slabs > 0) == (row->objects > 0);
}

/* Both lines of the head, then rows; how many of them, 0 if one is bad. */
static inline unsigned parse_info(char *text, struct row *rows, unsigned max)
{
	unsigned nr = 0;
	char *one;

	if (strncmp(text, head, strlen(head)) != 0)
		return 0;
	text += strlen(head);
	while ((one = strsep(&text, "\n")) && *one) {
		if (nr == max || !parse_row(one, &rows[nr])) {
			fprintf(stderr, "bad line: %s\n", one);
			return 0;
		}
		nr++;
	}
	return text ? 0 : nr; /* the last line has a newline */
}

static inline bool read_row(struct memfs *m, const char *name, struct row *out)
{
	char *text = content(m, "stats/slabinfo");
	struct row rows[64];
	unsigned nr = parse_info(text, rows, 64), found = 0;

	free(text);
	for (unsigned i = 0; i < nr; i++)
		if (strcmp(rows[i].name, name) == 0) {
			*out = rows[i];
			found++;
		}
	CU_ASSERT(nr >= MF_NR_KMALLOC);
	CU_ASSERT(found <= 1);
	return found == 1;
}

/* --- helpers --- */

static inline char *cache_file(struct memfs *m, const char *cache, const char *file)
{
	char path[160];

	snprintf(path, sizeof(path), "slab/%s/%s", cache, file);
	return content(m, path);
}

static inline bool file_is(struct memfs *m, const char *cache, const char *file, const char *wanted)
{
	char path[160], line[160];

	snprintf(path, sizeof(path), "slab/%s/%s", cache, file);
	snprintf(line, sizeof(line), "%s\n", wanted);
	return holds(m, path, line);
}

static inline uint64_t number_of(struct memfs *m, const char *cache, const char *file)
{
	char *text = cache_file(m, cache, file), *end;
	uint64_t number = strtoull(text, &end, 10);

	CU_ASSERT(end > text && (*end == ' ' || *end == '\n'));
	free(text);
	return number;
}

static inline uint64_t level(struct memfs *m, const char *name)
{
	char *all = content(m, "stats/all"), line[80], *at;
	uint64_t value = UINT64_MAX;

	snprintf(line, sizeof(line), "\n%s ", name);
	at = strstr(all, line);
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	value = strtoull(at + strlen(line), NULL, 10);
	free(all);
	return value;
}

/* "TOTAL N0=a N1=b": what follows the total adds up to it, nodes rise, no zeros. */
static inline bool is_by_node(const char *text, char letter)
{
	uint64_t total, sum = 0, one;
	int last = -1, index, used;
	char got;

	if (sscanf(text, "%" SCNu64 "%n", &total, &used) != 1)
		return false;
	text += used;
	while (sscanf(text, " %c%d=%" SCNu64 "%n", &got, &index, &one, &used) == 3) {
		if (got != letter || index <= last || !one || text[0] != ' ' || text[1] == ' ')
			return false;
		last = index;
		sum += one;
		text += used;
	}
	return strcmp(text, "\n") == 0 && sum == total;
}

static inline int destroy(struct memfs *m, const char *name)
{
	struct mf_ctl_node dir;

	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("slab"), &dir), 0);
	return mf_ctl_rmdir(m, &dir, mf_text_of(name));
}

struct listed {
	char names[4096];
	unsigned readers, writers, nr;
};

static inline bool note(void *arg, const char *name, const struct mf_ctl_node *child, uint64_t next_cursor)
{
	struct listed *listed = arg;
	size_t used = strlen(listed->names);

	(void)next_cursor;
	snprintf(listed->names + used, sizeof(listed->names) - used, "%s ", name);
	listed->readers += mf_ctl_mode(child) == 0400;
	listed->writers += mf_ctl_mode(child) == 0600;
	listed->nr++;
	return true;
}

static inline void list(struct memfs *m, const char *path, struct listed *out)
{
	struct mf_ctl_node dir;

	memset(out, 0, sizeof(*out));
	CU_ASSERT_EQUAL_FATAL(mf_ctl_resolve(m, mf_text_of(path), &dir), 0);
	mf_ctl_list(m, &dir, 0, note, out);
}

/* The kernel's names, and behind them the counters; all for root, seven of the first can be written. */

#endif
