/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every row of the table, through the files it makes on one instance: listed
 * and found under its path, documented, readable or write-only, refusing
 * garbage with everything unchanged, and taking back what it prints.
 */
#include "../unit/ctl_fixture.h"

#define MAX_FILES 600

/* Every file there is, found by listing from the root. */
struct files {
	struct memfs *m;
	struct mf_ctl_node node[MAX_FILES];
	unsigned nr;
};

struct folder_names {
	struct mf_ctl_node child[256];
	char name[256][66];
	unsigned nr;
};

static bool note_child(void *arg, const char *name, const struct mf_ctl_node *child, uint64_t next_cursor)
{
	struct folder_names *names = arg;

	(void)next_cursor;
	if (names->nr == 256)
		abort();
	snprintf(names->name[names->nr], sizeof(names->name[0]), "%s", name);
	names->child[names->nr++] = *child;
	return true;
}

/* The listing and the lookup of a name agree. */
static void check_child(struct memfs *m, const struct mf_ctl_node *dir, const char *name,
			const struct mf_ctl_node *listed)
{
	struct mf_ctl_node found;

	CU_ASSERT_EQUAL_FATAL(mf_ctl_lookup(m, dir, mf_text_of(name), &found), 0);
	CU_ASSERT_EQUAL(found.inode, listed->inode);
	CU_ASSERT_PTR_EQUAL(found.row, listed->row);
	CU_ASSERT_EQUAL(found.dir, listed->dir);
	CU_ASSERT_EQUAL(found.serial, listed->serial);
}

/* The caches of kmalloc have the files that any other has: that one is enough. */
static bool is_left_out(const char *name)
{
	return strncmp(name, "kmalloc-", 8) == 0;
}

static void walk(struct files *files, const struct mf_ctl_node *dir)
{
	struct folder_names *names = calloc(1, sizeof(*names));

	if (!names)
		abort();
	mf_ctl_list(files->m, dir, 0, note_child, names);
	for (unsigned i = 0; i < names->nr; i++) {
		check_child(files->m, dir, names->name[i], &names->child[i]);
		if (is_left_out(names->name[i]))
			continue;
		if (mf_ctl_is_dir(&names->child[i])) {
			walk(files, &names->child[i]);
			continue;
		}
		if (files->nr == MAX_FILES)
			abort();
		files->node[files->nr++] = names->child[i];
	}
	free(names);
}

/* Two nodes with known bandwidth, a task, an allocation, a range, a cache and objects: something for every row. */
static struct files *make_files(void)
{
	struct files *files = calloc(1, sizeof(*files));
	struct mf_ctl_node dir;

	if (!files)
		abort();
	files->m = fixture("topology=2x16M:cpus=2");
	CU_ASSERT_EQUAL(put(files->m, "nodes/node0/bandwidth", "300"), 0);
	CU_ASSERT_EQUAL(put(files->m, "nodes/node1/bandwidth", "100"), 0);
	CU_ASSERT_EQUAL(mf_ctl_resolve(files->m, mf_text_of("tasks"), &dir), 0);
	CU_ASSERT_EQUAL(mf_ctl_mkdir(files->m, &dir, mf_text_of("web")), 0);
	CU_ASSERT_EQUAL(put(files->m, "tasks/web/policy", "weighted interleave=static:0-1"), 0);
	CU_ASSERT_EQUAL(put(files->m, "alloc/pages", "db count=10 task=web"), 0);
	CU_ASSERT_EQUAL(put(files->m, "alloc/vmalloc", "vm pages=10 task=web"), 0);
	CU_ASSERT_EQUAL(put(files->m, "slab/create", "inode size=600 flags=no_merge"), 0);
	CU_ASSERT_EQUAL(put(files->m, "alloc/slab", "obj cache=inode count=100 task=web"), 0);
	mf_ctl_root(files->m, &dir);
	walk(files, &dir);
	return files;
}

static void end_files(struct files *files)
{
	fixture_end(files->m);
	free(files);
}

static char *show_node(struct memfs *m, const struct mf_ctl_node *node)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;

	CU_ASSERT_EQUAL(mf_ctl_show(m, node, &out), 0);
	return out.data ? out.data : strdup("");
}

static bool is_readable(const struct mf_ctl_row *row)
{
	return (row->show || row->get) && row->mode & 0400;
}

static bool takes_commands(const struct mf_ctl_row *row)
{
	return (row->store || row->set) && row->mode & 0200;
}

/* --- rows as such --- */

static void test_rows_are_whole(void)
{
	for (size_t i = 0; i < mf_nr_ctl_rows; i++) {
		const struct mf_ctl_row *row = &mf_ctl_rows[i];

		CU_ASSERT_PTR_NOT_NULL_FATAL(row->help);
		CU_ASSERT_PTR_NOT_NULL_FATAL(row->since);
		CU_ASSERT(strlen(row->help) >= 10 && row->help[strlen(row->help) - 1] == '.');
		CU_ASSERT(strlen(row->since) > 0);
		CU_ASSERT_PTR_NULL(strchr(row->help, '\n'));
		CU_ASSERT(row->event >= -1 && row->event < MF_NR_EVENTS);
		CU_ASSERT_EQUAL(row->mode & ~0666u, 0);
		CU_ASSERT_EQUAL(row->mode & 0022u, 0); /* root writes, all read */
		if (row->type == MF_CTL_MEMORY)
			continue;
		CU_ASSERT(is_readable(row) || takes_commands(row));
		CU_ASSERT_EQUAL(takes_commands(row), (row->mode & 0200) != 0);
		CU_ASSERT_EQUAL(row->type == MF_CTL_CHOICE, row->choices != NULL);
		CU_ASSERT(row->type == MF_CTL_TEXT || (row->get && row->set && !row->show && !row->store));
		CU_ASSERT(row->type != MF_CTL_U64 || row->min < row->max);
		for (size_t j = 0; j < i; j++)
			CU_ASSERT_STRING_NOT_EQUAL(mf_ctl_rows[j].path, row->path);
	}
}

static void test_every_row_makes_files(void)
{
	struct files *files = make_files();

	for (size_t i = 0; i < mf_nr_ctl_rows; i++) {
		unsigned made = 0;

		for (unsigned j = 0; j < files->nr; j++)
			made += files->node[j].row == &mf_ctl_rows[i];
		CU_ASSERT(made > 0);
		if (!made)
			fprintf(stderr, "%s: no file\n", mf_ctl_rows[i].path);
	}
	end_files(files);
}

static void test_paths_lead_back(void)
{
	struct files *files = make_files();

	for (unsigned i = 0; i < files->nr; i++) {
		struct mf_outbuf path = MF_OUTBUF_INIT;
		struct mf_ctl_node found;

		mf_ctl_path(&files->node[i], &path);
		CU_ASSERT_EQUAL_FATAL(mf_ctl_resolve(files->m, mf_text_of(path.data), &found), 0);
		CU_ASSERT_EQUAL(found.inode, files->node[i].inode);
		for (unsigned j = 0; j < i; j++)
			CU_ASSERT_NOT_EQUAL(files->node[j].inode, files->node[i].inode);
		mf_outbuf_free(&path);
	}
	end_files(files);
}

static void test_readme_has_every_row(void)
{
	struct files *files = make_files();
	char *readme = content(files->m, "README");

	for (size_t i = 0; i < mf_nr_ctl_rows; i++) {
		char start[128];
		const char *at;

		snprintf(start, sizeof(start), "\n%s ", mf_ctl_rows[i].path);
		at = strstr(readme, start);
		CU_ASSERT_PTR_NOT_NULL_FATAL(at);
		at = strstr(at, mf_ctl_rows[i].help);
		CU_ASSERT_PTR_NOT_NULL(at);
	}
	for (unsigned i = 0; i < MF_NR_STATS; i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(readme, mf_stat_rows[i].help));
	for (unsigned i = 0; i < MF_NR_SLAB_STATS; i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(readme, mf_slab_stat_help[i]));
	for (unsigned i = 0; i < MF_NR_FAULT_POINTS; i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(readme, mf_fault_help(i)));
	free(readme);
	end_files(files);
}

/* --- files --- */

static void test_reading(void)
{
	struct files *files = make_files();
	struct mf_outbuf out = MF_OUTBUF_INIT;

	for (unsigned i = 0; i < files->nr; i++) {
		const struct mf_ctl_row *row = files->node[i].row;
		int error;

		mf_outbuf_clear(&out);
		error = mf_ctl_show(files->m, &files->node[i], &out);
		if (row->type == MF_CTL_MEMORY) {
			CU_ASSERT_EQUAL(error, -EACCES);
			continue;
		}
		CU_ASSERT_EQUAL(error, 0);
		/* No cache made by files has a constructor. */
		CU_ASSERT_EQUAL(out.length > 0,
				is_readable(row) && strcmp(row->path, "slab/{cache}/ctor") != 0);
		if (out.length) {
			CU_ASSERT_EQUAL(out.data[out.length - 1], '\n');
			CU_ASSERT_PTR_NULL(memchr(out.data, '\0', out.length));
		}
	}
	mf_outbuf_free(&out);
	end_files(files);
}

/* Two words a line, each name once. */
static void test_stats_all(void)
{
	struct files *files = make_files();
	char *all = content(files->m, "stats/all"), *rest = all, *line;
	unsigned nr = 0;

	while ((line = strsep(&rest, "\n")) && *line) {
		char name[64], extra;
		unsigned long long value;

		CU_ASSERT_EQUAL(sscanf(line, "%63s %llu%c", name, &value, &extra), 2);
		if (nr < MF_NR_STATS)
			CU_ASSERT_STRING_EQUAL(name, mf_stat_rows[nr].name);
		nr++;
	}
	CU_ASSERT(nr > MF_NR_STATS);
	free(all);
	end_files(files);
}

/* What a refused command must leave alone: whatever can be written, and what tells of state. */
static char *fingerprint(struct files *files)
{
	static const char *const levels[] = {
		"stats/buddyinfo",	  "live/db/map",	   "tasks/web/il_prev", "tasks/web/il_weight",
		"stats/counters/pgalloc", "stats/counters/pgfree", "stats/vmallocinfo", "vmalloc/areas",
		"vmalloc/free_space",	  "vmalloc/mappings",	   "stats/slabinfo",	"slab/inode/objects",
		"slab/inode/cpu_slabs",	  "live/obj/map"
	};
	struct mf_outbuf all = MF_OUTBUF_INIT;

	for (unsigned i = 0; i < files->nr; i++)
		if (files->node[i].row->mode & 0200 && files->node[i].row->type != MF_CTL_MEMORY) {
			char *text = show_node(files->m, &files->node[i]);

			mf_outbuf_printf(&all, "%u %s", i, text);
			free(text);
		}
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		char *text = content(files->m, levels[i]);

		mf_outbuf_puts(&all, text);
		free(text);
	}
	return all.data;
}

static void refuse_one(struct files *files, const struct mf_ctl_node *node, const char *bytes, size_t length,
		       int error)
{
	struct mf_outbuf reply = MF_OUTBUF_INIT, path = MF_OUTBUF_INIT;
	char *before = fingerprint(files), *after, *status;
	int result = mf_ctl_store(files->m, node, bytes, length, &reply, NULL);

	mf_ctl_path(node, &path);
	if (result != error)
		fprintf(stderr, "%s: %d for \"%.20s\"\n", path.data, result, bytes);
	CU_ASSERT_EQUAL(result, error);
	after = fingerprint(files);
	CU_ASSERT_STRING_EQUAL(after, before);
	/* The reason: one line, "PATH: why", the same in both places. */
	status = content(files->m, "last_cmd_status");
	CU_ASSERT_PTR_NOT_NULL_FATAL(reply.data);
	CU_ASSERT_STRING_EQUAL(reply.data, status);
	CU_ASSERT_EQUAL(strncmp(status, path.data, path.length), 0);
	CU_ASSERT_EQUAL(strncmp(status + path.length, ": ", 2), 0);
	CU_ASSERT(strlen(status) > path.length + 5);
	CU_ASSERT_PTR_EQUAL(strchr(status, '\n'), status + strlen(status) - 1);
	free(status);
	free(before);
	free(after);
	mf_outbuf_free(&path);
	mf_outbuf_free(&reply);
}

static void test_garbage_is_refused(void)
{
	static const struct {
		const char *bytes;
		size_t length;
	} garbage[] = {
		{ "", 0 },
		{ "\n", 1 },
		{ "\n\n", 2 },
		{ "?", 1 },
		{ "1\0", 2 },
		{ "1\n1\n", 4 },
		{ "1 ?", 3 },
		{ "\xff\xfe", 2 },
		{ "=", 1 },
		{ "%s%n", 4 },
		{ "1\r\n", 3 },
		{ "99999999999999999999?", 21 },
		{ "-9223372036854775809=", 21 },
	};
	char big[MF_CTL_WRITE_MAX + 1];
	struct files *files = make_files();

	memset(big, '1', sizeof(big));
	for (unsigned i = 0; i < files->nr; i++) {
		const struct mf_ctl_row *row = files->node[i].row;

		/* The counters of a cache are all alike: the first. */
		if (strcmp(row->path, "slab/{cache}/{slabstat}") == 0 && files->node[i].counter)
			continue;
		if (!takes_commands(row)) {
			refuse_one(files, &files->node[i], "1", 1, -EACCES);
			continue;
		}
		for (size_t j = 0; j < sizeof(garbage) / sizeof(garbage[0]); j++) {
			/* auto judges by the first letter, as the kernel does. */
			if (strcmp(row->path, "weights/auto") == 0 && strcmp(garbage[j].bytes, "1 ?") == 0)
				continue;
			refuse_one(files, &files->node[i], garbage[j].bytes, garbage[j].length, -EINVAL);
		}
		refuse_one(files, &files->node[i], big, sizeof(big), -E2BIG);
		if (row->type == MF_CTL_U64 || row->type == MF_CTL_BOOL) {
			char text[32];

			snprintf(text, sizeof(text), "%llu", (unsigned long long)row->max + 1);
			refuse_one(files, &files->node[i], text, strlen(text), -EINVAL);
			refuse_one(files, &files->node[i], "18446744073709551616", 20, -EINVAL);
			refuse_one(files, &files->node[i], "-1", 2, -EINVAL);
		}
	}
	end_files(files);
}

static void test_prints_can_be_written(void)
{
	struct files *files = make_files();
	unsigned written = 0;

	for (unsigned i = 0; i < files->nr; i++) {
		const struct mf_ctl_node *node = &files->node[i];
		struct mf_outbuf reply = MF_OUTBUF_INIT;
		char *before, *after;

		/* A counter of a cache is only cleared. */
		if (!takes_commands(node->row) || !is_readable(node->row) ||
		    strcmp(node->row->path, "slab/{cache}/{slabstat}") == 0)
			continue;
		before = show_node(files->m, node);
		CU_ASSERT_EQUAL(mf_ctl_store(files->m, node, before, strlen(before), &reply, NULL), 0);
		CU_ASSERT_EQUAL(reply.length, 0);
		after = show_node(files->m, node);
		CU_ASSERT_STRING_EQUAL(after, before);
		free(before);
		free(after);
		mf_outbuf_free(&reply);
		ASSERT_HOLDS(files->m, "last_cmd_status", "ok\n");
		written++;
	}
	CU_ASSERT(written > 20);
	end_files(files);
}

/* Both ends of every range, and every choice, are taken and read back. */
static void test_ranges(void)
{
	struct files *files = make_files();

	for (unsigned i = 0; i < files->nr; i++) {
		const struct mf_ctl_row *row = files->node[i].row;
		const struct mf_ctl_node *node = &files->node[i];
		uint64_t max = row->type == MF_CTL_CHOICE ? 0 : row->max;
		char text[64], *old, *now;

		if (!row->set)
			continue;
		while (row->type == MF_CTL_CHOICE && row->choices[max + 1])
			max++;
		old = show_node(files->m, node);
		for (int end = 0; end < 2; end++) {
			uint64_t value = end ? max : row->min;

			if (row->type == MF_CTL_CHOICE && value == MF_PCP_RSEQ && !mf_page_rseq_available())
				continue;
			if (row->type == MF_CTL_CHOICE)
				snprintf(text, sizeof(text), "%s\n", row->choices[value]);
			else
				snprintf(text, sizeof(text), "%llu\n", (unsigned long long)value);
			CU_ASSERT_EQUAL(mf_ctl_store(files->m, node, text, strlen(text), NULL, NULL), 0);
			now = show_node(files->m, node);
			CU_ASSERT_STRING_EQUAL(now, text);
			free(now);
		}
		CU_ASSERT_EQUAL(mf_ctl_store(files->m, node, old, strlen(old), NULL, NULL), 0);
		free(old);
	}
	end_files(files);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_rows_are_whole),
	UNIT_TEST(test_every_row_makes_files),
	UNIT_TEST(test_paths_lead_back),
	UNIT_TEST(test_readme_has_every_row),
	UNIT_TEST(test_reading),
	UNIT_TEST(test_stats_all),
	UNIT_TEST(test_garbage_is_refused),
	UNIT_TEST(test_prints_can_be_written),
	UNIT_TEST(test_ranges),
};

UNIT_MAIN("table", tests)
