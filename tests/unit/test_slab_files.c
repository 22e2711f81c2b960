/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The files of slab: slab/create, slab/CACHE/, alloc/slab, live/NAME of
 * objects, stats/slabinfo and the levels in the kernel's files.  One strict
 * parser reads a kernel's slabinfo (tests/data/samples) and ours.
 */
#include "ctl_fixture.h"
#include "ctl/render.h"
#include "data.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

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
static bool parse_row(const char *text, struct row *row)
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
		 "%-17s %6" PRIu64 " %6" PRIu64 " %6u %4u %4u : tunables %4u %4u %4u : slabdata %6" PRIu64
		 " %6" PRIu64 " %6u",
		 row->name, row->active, row->objects, row->size, row->per_slab, row->pages, 0, 0, 0,
		 row->active_slabs, row->slabs, 0);
	return strcmp(again, text) == 0 && row->active <= row->objects && row->active_slabs == row->slabs &&
	       row->size * row->per_slab <= row->pages * 4096u && (row->slabs > 0) == (row->objects > 0);
}

/* Both lines of the head, then rows; how many of them, 0 if one is bad. */
static unsigned parse_info(char *text, struct row *rows, unsigned max)
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

static bool read_row(struct memfs *m, const char *name, struct row *out)
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

static void test_parser_takes_the_kernels(void)
{
	static const char *const bad[] = {
		"kmalloc-64          2388   2436     96   42    1 : tunables    0    0    0 : slabdata     58     57 "
		"     0",
		"kmalloc-64          2437   2436     96   42    1 : tunables    0    0    0 : slabdata     58     58 "
		"     0",
		"kmalloc-64          2388   2436     98   42    1 : tunables    0    0    0 : slabdata     58     58 "
		"     0",
		"kmalloc-64          2388   2436     96   42    1 : tunables   12    0    0 : slabdata     58     58 "
		"     0",
		"kmalloc-64         2388   2436     96   42    1 : tunables    0    0    0 : slabdata     58     58 "
		"     0",
		"kmalloc-64          2388   2436     96   42    1 : tunables    0    0    0 : slabdata     58     58 "
		"     0 ",
		"kmalloc-64          2388   2436     96   42    1",
		"",
	};
	static char text[65536];
	static struct row rows[400];
	FILE *file = data_open("samples/slabinfo");
	struct row row;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_FATAL(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	CU_ASSERT_EQUAL(parse_info(text, rows, 400), 203);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_FALSE(parse_row(bad[i], &row));
}

/* --- helpers --- */

static char *cache_file(struct memfs *m, const char *cache, const char *file)
{
	char path[160];

	snprintf(path, sizeof(path), "slab/%s/%s", cache, file);
	return content(m, path);
}

static bool file_is(struct memfs *m, const char *cache, const char *file, const char *wanted)
{
	char path[160], line[160];

	snprintf(path, sizeof(path), "slab/%s/%s", cache, file);
	snprintf(line, sizeof(line), "%s\n", wanted);
	return holds(m, path, line);
}

static uint64_t number_of(struct memfs *m, const char *cache, const char *file)
{
	char *text = cache_file(m, cache, file), *end;
	uint64_t number = strtoull(text, &end, 10);

	CU_ASSERT(end > text && (*end == ' ' || *end == '\n'));
	free(text);
	return number;
}

static uint64_t level(struct memfs *m, const char *name)
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
static bool is_by_node(const char *text, char letter)
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

static int destroy(struct memfs *m, const char *name)
{
	struct mf_ctl_node dir;

	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("slab"), &dir), 0);
	return mf_ctl_rmdir(m, &dir, mf_text_of(name));
}

/* --- the folder of a cache --- */

struct listed {
	char names[4096];
	unsigned readers, writers, nr;
};

static bool note(void *arg, const char *name, const struct mf_ctl_node *child, uint64_t next_cursor)
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

static void list(struct memfs *m, const char *path, struct listed *out)
{
	struct mf_ctl_node dir;

	memset(out, 0, sizeof(*out));
	CU_ASSERT_EQUAL_FATAL(mf_ctl_resolve(m, mf_text_of(path), &dir), 0);
	mf_ctl_list(m, &dir, 0, note, out);
}

/* The kernel's names, and behind them the counters; all for root, seven of the first can be written. */
static void test_names_and_modes(void)
{
	static const char names[] =
		"aliases align alloc_traces cache_dma cpu_partial cpu_slabs ctor destroy_by_rcu free_traces "
		"hwcache_align min_partial object_size objects objects_partial objs_per_slab order partial poison "
		"reclaim_account red_zone remote_node_defrag_ratio sanity_checks sheaf_capacity shrink slab_size "
		"slabs slabs_cpu_partial store_user total_objects trace usersize validate ";
	struct memfs *m = fixture(TWO_NODES);
	struct mf_ctl_node node;
	struct listed listed;

	list(m, "slab/kmalloc-64", &listed);
	CU_ASSERT_EQUAL(strncmp(listed.names, names, strlen(names)), 0);
	CU_ASSERT_EQUAL(strncmp(listed.names + strlen(names), "alloc_fastpath alloc_slowpath ", 30), 0);
	CU_ASSERT_EQUAL(listed.nr, 32 + MF_NR_SLAB_STATS);
	CU_ASSERT_EQUAL(listed.readers, 32 - 6);
	CU_ASSERT_EQUAL(listed.writers, 6 + MF_NR_SLAB_STATS);
	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("slab"), &node), 0);
	CU_ASSERT_EQUAL(mf_ctl_mode(&node), 0755);
	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("slab/kmalloc-64"), &node), 0);
	CU_ASSERT_EQUAL(mf_ctl_mode(&node), 0555);
	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("slab/kmalloc-64/alloc_slab"), &node), 0);
	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("slab/kmalloc-64/pgalloc"), &node), -ENOENT);
	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("slab/kmalloc-65"), &node), -ENOENT);
	fixture_end(m);
}

/* Four CPUs: the numbers of a kernel on four CPUs. */
static void test_geometry(void)
{
	static const struct {
		unsigned size;
		const char *order, *objects, *min_partial, *cpu_partial;
	} rows[] = {
		{ 8, "0", "512", "5", "120" },	{ 64, "0", "64", "5", "120" },
		{ 192, "0", "21", "5", "120" }, { 256, "0", "16", "5", "52" },
		{ 512, "1", "16", "5", "52" },	{ 700, "2", "23", "5", "52" },
		{ 1024, "2", "16", "5", "24" }, { 2048, "3", "16", "5", "24" },
		{ 4096, "3", "8", "6", "6" },	{ 8192, "3", "4", "6", "6" },
		{ 16384, "3", "2", "7", "6" },
	};
	struct memfs *m = fixture(TWO_NODES);
	char command[80], number[16];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(command, sizeof(command), "c size=%u flags=no_merge", rows[i].size);
		CU_ASSERT_EQUAL(put(m, "slab/create", command), 0);
		snprintf(number, sizeof(number), "%u", rows[i].size);
		CU_ASSERT(file_is(m, "c", "object_size", number));
		CU_ASSERT(file_is(m, "c", "order", rows[i].order));
		CU_ASSERT(file_is(m, "c", "objs_per_slab", rows[i].objects));
		CU_ASSERT(file_is(m, "c", "min_partial", rows[i].min_partial));
		CU_ASSERT(file_is(m, "c", "cpu_partial", rows[i].cpu_partial));
		snprintf(number, sizeof(number), "%u", (rows[i].size + 7) & ~7u);
		CU_ASSERT(file_is(m, "c", "slab_size", number));
		CU_ASSERT_EQUAL(destroy(m, "c"), 0);
	}
	fixture_end(m);
}

/* What nobody has used yet. */
static void test_fresh_files(void)
{
	static const struct {
		const char *file, *text;
	} rows[] = {
		{ "aliases", "0" },
		{ "align", "64" },
		{ "alloc_traces", "No data" },
		{ "cache_dma", "0" },
		{ "cpu_slabs", "0" },
		{ "destroy_by_rcu", "0" },
		{ "free_traces", "No data" },
		{ "hwcache_align", "0" },
		{ "object_size", "64" },
		{ "objects", "0" },
		{ "objects_partial", "0" },
		{ "partial", "0" },
		{ "poison", "0" },
		{ "reclaim_account", "0" },
		{ "red_zone", "0" },
		{ "sanity_checks", "0" },
		{ "slab_size", "64" },
		{ "slabs", "0" },
		{ "slabs_cpu_partial", "0(0)" },
		{ "store_user", "0" },
		{ "total_objects", "0" },
		{ "trace", "0" },
		{ "usersize", "64" },
		{ "remote_node_defrag_ratio", "100" },
		{ "sheaf_capacity", "60" },
		{ "alloc_slab", "0" },
		{ "partial_remote_hit", "0" },
	};
	struct memfs *m = fixture(TWO_NODES);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CU_ASSERT(file_is(m, "kmalloc-64", rows[i].file, rows[i].text));
	ASSERT_HOLDS(m, "slab/kmalloc-64/ctor", "");
	ASSERT_HOLDS(m, "slab/kmalloc-64/shrink", "");
	ASSERT_HOLDS(m, "slab/kmalloc-64/validate", "");
	CU_ASSERT_EQUAL(put(m, "slab/create",
			    "d size=40 flags=hwcache_align,reclaim_account,typesafe_by_rcu,no_merge"),
			0);
	CU_ASSERT_STRING_EQUAL(put_reply, "d size=64 align=64 order=0 objects=64\n");
	CU_ASSERT(file_is(m, "d", "hwcache_align", "1"));
	CU_ASSERT(file_is(m, "d", "reclaim_account", "1"));
	CU_ASSERT(file_is(m, "d", "destroy_by_rcu", "1"));
	CU_ASSERT(file_is(m, "d", "usersize", "0"));
	CU_ASSERT_EQUAL(put(m, "slab/create", "e size=40 flags=poison,red_zone,store_user,consistency"), 0);
	CU_ASSERT(file_is(m, "e", "poison", "1"));
	CU_ASSERT(file_is(m, "e", "red_zone", "1"));
	CU_ASSERT(file_is(m, "e", "store_user", "1"));
	CU_ASSERT(file_is(m, "e", "sanity_checks", "1"));
	CU_ASSERT(file_is(m, "e", "cpu_partial", "0"));
	CU_ASSERT(file_is(m, "e", "sheaf_capacity", "0"));
	fixture_end(m);
}

/* --- making and ending --- */

static void test_create(void)
{
	static const struct {
		const char *text;
		int error;
		const char *why;
	} refusals[] = {
		{ "a size=64", -EEXIST, "slab/create: a exists\n" },
		{ "kmalloc-8 size=8", -EEXIST, "slab/create: kmalloc-8 exists\n" },
		{ "create size=64", -EEXIST, "slab/create: create is a file of slab/\n" },
		{ "b size=5M", -EINVAL, "slab/create: size 5242880 does not fit into the largest slab\n" },
		{ "b size=64 flags=panic", -EINVAL, "slab/create: \"panic\" is not a flag\n" },
		{ "b size=64 size=64", -EINVAL, "slab/create: size twice\n" },
		{ "b", -EINVAL, "slab/create: size= is needed\n" },
		{ "b size=64 align=3", -EINVAL, "slab/create: align=3: expected a power of two of bytes\n" },
	};
	struct memfs *m = fixture(TWO_NODES);
	struct mf_ctl_node node;

	CU_ASSERT_EQUAL(put(m, "slab/create", "a size=700 flags=no_merge\n"), 0);
	CU_ASSERT_STRING_EQUAL(put_reply, "a size=704 align=8 order=2 objects=23\n");
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		CU_ASSERT_EQUAL(put(m, "slab/create", refusals[i].text), refusals[i].error);
		CU_ASSERT_STRING_EQUAL(put_reply, refusals[i].why);
		CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("slab/b"), &node), -ENOENT);
	}
	CU_ASSERT_EQUAL(level(m, "slab_caches"), MF_NR_KMALLOC + 1);
	CU_ASSERT_EQUAL(put(m, "tune/max_caches", "14"), 0);
	CU_ASSERT_EQUAL(put(m, "slab/create", "b size=64"), -ENOSPC);
	CU_ASSERT_STRING_EQUAL(put_reply,
			       "slab/create: there are as many caches as tune/max_caches allows\n");
	CU_ASSERT_EQUAL(put(m, "tune/max_caches", "15"), 0);
	CU_ASSERT_EQUAL(put(m, "slab/create", "b size=64"), 0);
	ASSERT_HOLDS(m, "debug/check", "ok\n");
	fixture_end(m);
}

static void test_alias(void)
{
	struct memfs *m = fixture(TWO_NODES);
	struct mf_ctl_node one, other;
	struct row row;

	CU_ASSERT_EQUAL(put(m, "slab/create", "host size=328"), 0);
	CU_ASSERT_STRING_EQUAL(put_reply, "host size=328 align=8 order=1 objects=24\n");
	CU_ASSERT_EQUAL(put(m, "slab/create", "guest size=322"), 0);
	CU_ASSERT_STRING_EQUAL(put_reply, "guest size=328 align=8 order=1 objects=24 alias of host\n");
	CU_ASSERT(file_is(m, "host", "aliases", "1"));
	CU_ASSERT(file_is(m, "guest", "aliases", "1"));
	CU_ASSERT(file_is(m, "guest", "object_size", "328"));
	CU_ASSERT_EQUAL(put(m, "slab/guest/min_partial", "9"), 0);
	CU_ASSERT(file_is(m, "host", "min_partial", "9"));
	/* Two folders, one cache. */
	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("slab/host/order"), &one), 0);
	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("slab/guest/order"), &other), 0);
	CU_ASSERT_NOT_EQUAL(one.inode, other.inode);
	CU_ASSERT_EQUAL(level(m, "slab_caches"), MF_NR_KMALLOC + 1);
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "x cache=guest count=10"), 0);
	ASSERT_HOLDS(m, "live/x/cache", "guest\n");
	CU_ASSERT(read_row(m, "host", &row));
	CU_ASSERT(row.active >= 10);
	CU_ASSERT_FALSE(read_row(m, "guest", &row));
	/* A name under which objects are in use stays; another can go, and the cache stays. */
	CU_ASSERT_EQUAL(destroy(m, "guest"), -EBUSY);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "x"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "x cache=host count=10"), 0);
	CU_ASSERT_EQUAL(destroy(m, "guest"), 0);
	CU_ASSERT_FALSE(mf_ctl_alive(m, &other));
	CU_ASSERT(file_is(m, "host", "aliases", "0"));
	CU_ASSERT_EQUAL(destroy(m, "host"), -EBUSY);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "x"), 0);
	/* The other name can go, too: what is left stands for the cache in the table. */
	CU_ASSERT_EQUAL(put(m, "slab/create", "heir size=328"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "x cache=heir count=10"), 0);
	CU_ASSERT_EQUAL(destroy(m, "host"), 0);
	CU_ASSERT(read_row(m, "heir", &row));
	CU_ASSERT(row.active >= 10);
	CU_ASSERT_EQUAL(level(m, "slab_caches"), MF_NR_KMALLOC + 1);
	CU_ASSERT_EQUAL(destroy(m, "heir"), -EBUSY);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "x"), 0);
	CU_ASSERT_EQUAL(destroy(m, "heir"), 0);
	ASSERT_HOLDS(m, "debug/check", "ok\n");
	fixture_end(m);
}

static void test_destroy(void)
{
	struct memfs *m = fixture(TWO_NODES);
	struct mf_ctl_node dir, before, after;
	struct mf_outbuf out = MF_OUTBUF_INIT;

	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("slab"), &dir), 0);
	CU_ASSERT_EQUAL(mf_ctl_mkdir(m, &dir, mf_text_of("a")), -EPERM);
	ASSERT_HOLDS(m, "last_cmd_status", "slab/a: folders are made in tasks/ only\n");
	CU_ASSERT_EQUAL(destroy(m, "a"), -ENOENT);
	ASSERT_HOLDS(m, "last_cmd_status", "slab/a: no cache a\n");
	CU_ASSERT_EQUAL(destroy(m, "kmalloc-64"), -EBUSY);
	ASSERT_HOLDS(m, "last_cmd_status", "slab/kmalloc-64: kmalloc-64 belongs to kmalloc\n");
	CU_ASSERT_EQUAL(put(m, "slab/create", "a size=100 flags=no_merge"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "x cache=a"), 0);
	CU_ASSERT_EQUAL(destroy(m, "a"), -EBUSY);
	ASSERT_CONTAINS(m, "last_cmd_status", "slab/a: a ");
	CU_ASSERT_EQUAL(put(m, "alloc/free", "x"), 0);
	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("slab/a/slabs"), &before), 0);
	CU_ASSERT(mf_ctl_alive(m, &before));
	CU_ASSERT_EQUAL(destroy(m, "a"), 0);
	ASSERT_HOLDS(m, "last_cmd_status", "ok\n");
	CU_ASSERT_FALSE(mf_ctl_alive(m, &before));
	CU_ASSERT_EQUAL(put(m, "slab/create", "a size=100 flags=no_merge"), 0);
	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("slab/a/slabs"), &after), 0);
	CU_ASSERT_NOT_EQUAL(before.inode, after.inode);
	CU_ASSERT_EQUAL(mf_ctl_show(m, &before, &out), -ENODEV);
	CU_ASSERT_EQUAL(mf_ctl_show(m, &after, &out), 0);
	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("slab/a/shrink"), &after), 0);
	CU_ASSERT_EQUAL(destroy(m, "a"), 0);
	mf_outbuf_clear(&out);
	CU_ASSERT_EQUAL(mf_ctl_store(m, &after, "1", 1, &out, NULL), -ENODEV);
	CU_ASSERT_STRING_EQUAL(out.data, "slab/a/shrink: has gone\n");
	mf_outbuf_free(&out);
	fixture_end(m);
}

/* A cache of a library user that is called as a file is: the file is what one finds, once. */
static void test_hidden_name(void)
{
	struct mf_cache_request request = { .name = mf_text_of("create"), .size = 100 };
	struct memfs *m = fixture(TWO_NODES);
	struct mf_ctl_node node;
	struct mf_cache *cache;
	struct listed listed;

	CU_ASSERT_EQUAL_FATAL(mf_cache_create(m->slabs, &request, &cache, NULL, 0), 0);
	mf_cache_put(cache);
	list(m, "slab", &listed);
	CU_ASSERT_EQUAL(listed.nr, 1 + MF_NR_KMALLOC);
	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("slab/create"), &node), 0);
	CU_ASSERT_FALSE(mf_ctl_is_dir(&node));
	fixture_end(m);
}

/* --- objects --- */

/* Without sheaves: no CPU holds back more than its slabs. */
static void test_objects(void)
{
	static const char *const counts[] = { "objects", "objects_partial", "total_objects",
					      "slabs",	 "partial",	    "cpu_slabs" };
	struct memfs *m = fixture(TWO_NODES);
	struct free_table *before = free_table(m);
	struct row row;

	CU_ASSERT_EQUAL(put(m, "tune/slab_sheaves", "0"), 0);
	CU_ASSERT_EQUAL(put(m, "slab/create", "a size=64 flags=no_merge"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "x cache=a count=1000"), 0);
	CU_ASSERT_STRING_EQUAL(put_reply, "x returned=1000 node0=1000\n");
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "y cache=a count=640 node=1"), 0);
	CU_ASSERT_STRING_EQUAL(put_reply, "y returned=640 node1=640\n");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		char *text = cache_file(m, "a", counts[i]);

		CU_ASSERT(is_by_node(text, 'N'));
		free(text);
	}
	CU_ASSERT_EQUAL(number_of(m, "a", "slabs"), 16 + 10);
	CU_ASSERT(file_is(m, "a", "slabs", "26 N0=16 N1=10"));
	CU_ASSERT(file_is(m, "a", "total_objects", "1664 N0=1024 N1=640"));
	CU_ASSERT(read_row(m, "a", &row));
	CU_ASSERT_EQUAL(row.objects, 1664);
	CU_ASSERT(row.active >= 1640 && row.active <= 1664);
	CU_ASSERT_EQUAL(row.slabs, 26);
	CU_ASSERT_EQUAL(row.size, 64);
	CU_ASSERT_EQUAL(row.per_slab, 64);
	CU_ASSERT_EQUAL(row.pages, 1);
	ASSERT_HOLDS(m, "live/x/kind", "slab\n");
	ASSERT_HOLDS(m, "live/x/cache", "a\n");
	ASSERT_HOLDS(m, "live/x/order", "0\n");
	ASSERT_HOLDS(m, "live/x/bytes", "64000\n");
	ASSERT_HOLDS(m, "live/x/pages", "16\n");
	ASSERT_HOLDS(m, "live/x/placement", "node0 16\n");
	ASSERT_HOLDS(m, "live/y/policy", "node=1\n");
	ASSERT_HOLDS(m, "debug/check", "ok\n");
	CU_ASSERT_EQUAL(put(m, "alloc/free", "x count=1001"), -EINVAL);
	CU_ASSERT_STRING_EQUAL(put_reply, "alloc/free: x has 1000 objects, fewer than 1001\n");
	CU_ASSERT_EQUAL(put(m, "alloc/free", "x count=999"), 0);
	ASSERT_HOLDS(m, "live/x/bytes", "64\n");
	CU_ASSERT_EQUAL(put(m, "alloc/free", "x"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "y"), 0);
	CU_ASSERT(number_of(m, "a", "slabs") > 0);
	CU_ASSERT_EQUAL(put(m, "slab/a/shrink", "1"), 0);
	CU_ASSERT_EQUAL(strncmp(put_reply, "slabs=", 6), 0);
	CU_ASSERT(atoi(put_reply + 6) > 0);
	CU_ASSERT(file_is(m, "a", "slabs", "0"));
	CU_ASSERT(file_is(m, "a", "total_objects", "0"));
	CU_ASSERT_EQUAL(put(m, "slab/a/shrink", "1"), 0);
	CU_ASSERT_STRING_EQUAL(put_reply, "slabs=0\n");
	CU_ASSERT(same_free_table(m, before));
	fixture_end(m);
}

/* By size: kmalloc's caches, and beyond them blocks without one. */
static void test_by_size(void)
{
	struct memfs *m = fixture(TWO_NODES);
	struct free_table *before = free_table(m);
	struct mf_ctl_node node;

	CU_ASSERT_EQUAL(put(m, "alloc/slab", "a size=65 count=10"), 0);
	ASSERT_HOLDS(m, "live/a/cache", "kmalloc-96\n");
	ASSERT_HOLDS(m, "live/a/bytes", "650\n");
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "b size=2K"), 0);
	ASSERT_HOLDS(m, "live/b/cache", "kmalloc-2k\n");
	ASSERT_HOLDS(m, "live/b/order", "3\n");
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "c size=20000"), 0);
	ASSERT_HOLDS(m, "live/c/cache", "-\n");
	ASSERT_HOLDS(m, "live/c/order", "3\n");
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "d cache=none"), -ENOENT);
	CU_ASSERT_STRING_EQUAL(put_reply, "alloc/slab: no cache none\n");
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "p"), 0);
	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("live/p/cache"), &node), -ENOENT);
	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("live/a/address"), &node), -ENOENT);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "p"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "a"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "b"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "c"), 0);
	CU_ASSERT_EQUAL(put(m, "slab/kmalloc-96/shrink", "1"), 0);
	CU_ASSERT_EQUAL(put(m, "slab/kmalloc-2k/shrink", "1"), 0);
	CU_ASSERT(same_free_table(m, before));
	fixture_end(m);
}

/* Pages of slabs in the kernel's files: reclaimable ones by their cache's flag. */
static void test_levels_in_kernel_files(void)
{
	struct memfs *m = fixture(TWO_NODES);

	CU_ASSERT_EQUAL(put(m, "tune/slab_sheaves", "0"), 0);
	CU_ASSERT_EQUAL(put(m, "slab/create", "r size=64 flags=reclaim_account,no_merge"), 0);
	CU_ASSERT_EQUAL(put(m, "slab/create", "u size=2048 flags=no_merge"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "x cache=r count=640"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "y cache=u count=32 node=1"), 0);
	ASSERT_CONTAINS(m, "stats/vmstat", "\nnr_slab_reclaimable 10\nnr_slab_unreclaimable 16\n");
	ASSERT_CONTAINS(m, "nodes/node0/vmstat", "\nnr_slab_reclaimable 10\nnr_slab_unreclaimable 0\n");
	ASSERT_CONTAINS(m, "nodes/node1/vmstat", "\nnr_slab_reclaimable 0\nnr_slab_unreclaimable 16\n");
	ASSERT_CONTAINS(m, "stats/zoneinfo",
			"\n      nr_slab_reclaimable 0\n      nr_slab_unreclaimable 16\n");
	ASSERT_CONTAINS(m, "stats/meminfo",
			"\nKReclaimable:         40 kB\nSlab:                104 kB\n"
			"SReclaimable:         40 kB\nSUnreclaim:           64 kB\n");
	ASSERT_CONTAINS(m, "nodes/node1/meminfo",
			"\nNode 1 KReclaimable:          0 kB\nNode 1 Slab:                 64 kB\n"
			"Node 1 SReclaimable:          0 kB\nNode 1 SUnreclaim:           64 kB\n");
	CU_ASSERT_EQUAL(level(m, "slab_pages"), 26);
	ASSERT_HOLDS(m, "stats/counters/slab_pages", "26\n");
	ASSERT_HOLDS(m, "stats/counters/slab_caches", "15\n");
	fixture_end(m);
}

/* --- knobs and triggers of a cache, as a kernel answers --- */

static void test_cache_knobs(void)
{
	static const struct {
		const char *file, *text;
		int error;
		const char *after, *why;
	} rows[] = {
		{ "shrink", "1", 0, "", NULL },
		{ "shrink", "0", -EINVAL, "", "\"0\" is not 1" },
		{ "shrink", "abc", -EINVAL, "", "\"abc\" is not 1" },
		{ "validate", "1", -EINVAL, "", "the cache has no debugging" },
		{ "validate", "0", -EINVAL, "", "\"0\" is not 1" },
		{ "min_partial", "0", 0, "0\n", NULL },
		{ "min_partial", "100", 0, "100\n", NULL },
		{ "min_partial", "abc", -EINVAL, "100\n", "\"abc\" is not a number in 0..4294967295" },
		{ "min_partial", "-1", -EINVAL, "100\n", "\"-1\" is not a number in 0..4294967295" },
		{ "cpu_partial", "0", 0, "0\n", NULL },
		{ "cpu_partial", "30", 0, "30\n", NULL },
		{ "cpu_partial", "-1", -EINVAL, "30\n", "\"-1\" is not a number in 0..1073741824" },
		{ "remote_node_defrag_ratio", "50", 0, "50\n", NULL },
		{ "remote_node_defrag_ratio", "100", 0, "100\n", NULL },
		{ "remote_node_defrag_ratio", "101", -ERANGE, "100\n", "101 is not in 0..100" },
		{ "remote_node_defrag_ratio", "abc", -EINVAL, "100\n", "\"abc\" is not a number in 0..100" },
		{ "remote_node_defrag_ratio", "-1", -EINVAL, "100\n", "\"-1\" is not a number in 0..100" },
		{ "sheaf_capacity", "254", 0, "254\n", NULL },
		{ "sheaf_capacity", "255", -EINVAL, "254\n", "255 is not in 0..254" },
		{ "sheaf_capacity", "0", 0, "0\n", NULL },
		{ "order", "1", -EACCES, "0\n", "is not written with commands" },
		{ "alloc_slab", "1", -EINVAL, "0\n", "\"1\" does not begin with 0: it is only cleared" },
		{ "alloc_slab", "0", 0, "0\n", NULL },
		{ "alloc_slab", "0abc", 0, "0\n", NULL },
	};
	struct memfs *m = fixture(TWO_NODES);
	char path[80], why[160];

	CU_ASSERT_EQUAL(put(m, "slab/create", "a size=192 flags=no_merge"), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(path, sizeof(path), "slab/a/%s", rows[i].file);
		CU_ASSERT_EQUAL(put(m, path, rows[i].text), rows[i].error);
		snprintf(why, sizeof(why), "%s: %s\n", path, rows[i].why ? rows[i].why : "");
		if (rows[i].why)
			CU_ASSERT_STRING_EQUAL(put_reply, why);
		ASSERT_HOLDS(m, path, rows[i].after);
	}
	fixture_end(m);
}

static void test_debug_cache_knobs(void)
{
	struct memfs *m = fixture(TWO_NODES);

	CU_ASSERT_EQUAL(put(m, "slab/create", "d size=100 flags=poison,red_zone,store_user"), 0);
	CU_ASSERT_EQUAL(put(m, "slab/d/cpu_partial", "0"), 0);
	CU_ASSERT_EQUAL(put(m, "slab/d/cpu_partial", "1"), -EINVAL);
	CU_ASSERT_STRING_EQUAL(put_reply,
			       "slab/d/cpu_partial: a cache with debugging has none: 0 is all it takes\n");
	CU_ASSERT_EQUAL(put(m, "slab/d/sheaf_capacity", "1"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "slab/d/min_partial", "3"), 0);
	CU_ASSERT(file_is(m, "d", "cpu_partial", "0"));
	CU_ASSERT_EQUAL(put(m, "slab/d/validate", "1"), 0);
	CU_ASSERT_STRING_EQUAL(put_reply, "problems=0\n");
	fixture_end(m);
}

/* A line a place: how many objects, seven wide, then who. */
static uint64_t sum_of_traces(struct memfs *m, const char *file)
{
	char *text = cache_file(m, "d", file), *rest = text, *line;
	uint64_t sum = 0, count;

	while ((line = strsep(&rest, "\n")) && *line) {
		char number[32];

		if (line[0] == '\t' || strncmp(line, "        ", 8) == 0)
			continue; /* of a longer trace */
		CU_ASSERT_EQUAL(sscanf(line, "%" SCNu64, &count), 1);
		snprintf(number, sizeof(number), "%7" PRIu64 " ", count);
		CU_ASSERT_EQUAL(strncmp(line, number, strlen(number)), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(line, " age="));
		sum += count;
	}
	free(text);
	return sum;
}

static void test_traces(void)
{
	struct memfs *m = fixture(TWO_NODES);

	CU_ASSERT_EQUAL(put(m, "slab/create", "d size=40 flags=store_user"), 0);
	CU_ASSERT(file_is(m, "d", "alloc_traces", "No data"));
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "x cache=d count=200"), 0);
	CU_ASSERT_EQUAL(sum_of_traces(m, "alloc_traces"), 200);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "x count=150"), 0);
	CU_ASSERT_EQUAL(sum_of_traces(m, "alloc_traces"), 50);
	CU_ASSERT_EQUAL(sum_of_traces(m, "free_traces"), 50);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "x"), 0);
	CU_ASSERT(file_is(m, "d", "alloc_traces", "No data"));
	fixture_end(m);
}

static void test_tune(void)
{
	static const struct {
		const char *path, *first, *good, *bad, *why;
	} rows[] = {
		{ "tune/slab_skip", "visited\n", "last\n", "some",
		  "tune/slab_skip: \"some\" is not one of visited, last, none\n" },
		{ "tune/slab_sheaves", "1\n", "0\n", "2", "tune/slab_sheaves: 2 is not in 0..1\n" },
		{ "tune/slab_stock_bytes", NULL, "0\n", "1099511627777",
		  "tune/slab_stock_bytes: 1099511627777 is not in 0..1099511627776\n" },
		{ "tune/max_caches", "4096\n", "20\n", "0", "tune/max_caches: 0 is not in 1..65535\n" },
	};
	struct memfs *m = fixture(TWO_NODES);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].first)
			ASSERT_HOLDS(m, rows[i].path, rows[i].first);
		CU_ASSERT_EQUAL(put(m, rows[i].path, rows[i].good), 0);
		ASSERT_HOLDS(m, rows[i].path, rows[i].good);
		CU_ASSERT_EQUAL(put(m, rows[i].path, rows[i].bad), -EINVAL);
		CU_ASSERT_STRING_EQUAL(put_reply, rows[i].why);
		ASSERT_HOLDS(m, rows[i].path, rows[i].good);
	}
	fixture_end(m);
}

/* --- counters --- */

static void test_counters(void)
{
	struct memfs *m = fixture(TWO_NODES);
	char *text;

	CU_ASSERT_EQUAL(put(m, "tune/slab_sheaves", "0"), 0);
	CU_ASSERT_EQUAL(put(m, "slab/create", "a size=256 flags=no_merge"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "x cache=a count=32"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "y cache=a count=16 cpu=3"), 0);
	CU_ASSERT(file_is(m, "a", "alloc_slab", "3 C0=2 C3=1"));
	CU_ASSERT_EQUAL(number_of(m, "a", "alloc_fastpath") + number_of(m, "a", "alloc_slowpath"), 48);
	text = cache_file(m, "a", "alloc_slowpath");
	CU_ASSERT(is_by_node(text, 'C'));
	free(text);
	CU_ASSERT_EQUAL(put(m, "slab/a/alloc_slab", "0"), 0);
	CU_ASSERT(file_is(m, "a", "alloc_slab", "0"));
	CU_ASSERT(number_of(m, "a", "alloc_slowpath") >= 1);
	fixture_end(m);
}

/*
 * A CPU of node 0 whose new slabs are wanted on node 2: the search looks along
 * 2, 3, 0 (three zones), 1 and has asked node 0 before.
 */
static const char machine[] = "node 0 cpus 0 zones DMA=16M,DMA32=32M,Normal=64M\n"
			      "node 1 cpus 1 zones Normal=64M\nnode 2 cpus 2 zones Normal=64M\n"
			      "node 3 cpus 3 zones Normal=64M\n";

struct probes {
	uint64_t searches, probes, skipped, hits;
};

static struct probes probes(struct memfs *m, const char *skip)
{
	struct probes p;

	CU_ASSERT_EQUAL(put(m, "tune/slab_skip", skip), 0);
	CU_ASSERT_EQUAL(put(m, "slab/create", "p size=256 flags=no_merge"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "x cache=p count=800"), 0);
	p.searches = level(m, "partial_search");
	p.probes = level(m, "partial_probe");
	p.skipped = level(m, "partial_probe_skipped");
	p.hits = level(m, "partial_remote_hit");
	CU_ASSERT_EQUAL(number_of(m, "p", "partial_probe"), p.probes);
	CU_ASSERT(p.searches > 20); /* about 50 new slabs; the gate may let some pass by */
	CU_ASSERT_EQUAL(p.hits, 0);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "x"), 0);
	CU_ASSERT_EQUAL(destroy(m, "p"), 0);
	/* What it counted has gone with it. */
	CU_ASSERT_EQUAL(level(m, "partial_search"), 0);
	return p;
}

static void test_probes(void)
{
	struct memfs *m = fixture_file(machine);
	struct probes p;

	CU_ASSERT_EQUAL(put(m, "tune/slab_sheaves", "0"), 0);
	p = probes(m, "visited");
	CU_ASSERT_EQUAL(p.probes, 3 * p.searches);
	CU_ASSERT_EQUAL(p.skipped, 3 * p.searches);
	p = probes(m, "none");
	CU_ASSERT_EQUAL(p.probes, 6 * p.searches);
	CU_ASSERT_EQUAL(p.skipped, 0);
	CU_ASSERT_EQUAL(put(m, "tasks/default/policy", "prefer:2"), 0);
	p = probes(m, "visited");
	CU_ASSERT_EQUAL(p.probes, 3 * p.searches);
	p = probes(m, "last");
	CU_ASSERT_EQUAL(p.probes, 4 * p.searches);
	CU_ASSERT_EQUAL(p.skipped, 2 * p.searches);
	p = probes(m, "none");
	CU_ASSERT_EQUAL(p.probes, 6 * p.searches);
	ASSERT_HOLDS(m, "debug/check", "ok\n");
	fixture_end(m);
}

/* --- names that come and go --- */

#define ROUNDS 300

struct churn {
	struct memfs *m;
	_Atomic bool over;
	_Atomic unsigned odd; /* results that nobody should see */
};

static void *read_churning(void *arg)
{
	static const char *const files[] = { "objects", "aliases", "alloc_slab", "min_partial" };
	struct mf_outbuf out = MF_OUTBUF_INIT;
	struct churn *churn = arg;
	struct mf_ctl_node node;

	for (unsigned i = 0; !churn->over; i++) {
		char path[64];
		int error;

		snprintf(path, sizeof(path), "slab/t/%s", files[i % 4]);
		error = mf_ctl_resolve(churn->m, mf_text_of(path), &node);
		if (error) {
			churn->odd += error != -ENOENT;
			continue;
		}
		mf_outbuf_clear(&out);
		error = mf_ctl_show(churn->m, &node, &out);
		churn->odd += error ? error != -ENODEV : out.data[0] != '0' && i % 4 < 3;
		mf_outbuf_clear(&out);
		churn->odd += mf_render_slabinfo(churn->m, &out) != 0;
	}
	mf_outbuf_free(&out);
	return NULL;
}

/* Whoever reads a file of a cache pins it for that time: its end may have to be asked for again. */
static void test_names_come_and_go(void)
{
	struct churn churn = { .m = fixture(TWO_NODES) };
	pthread_t readers[3];

	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&readers[i], NULL, read_churning, &churn), 0);
	for (int i = 0; i < ROUNDS; i++) {
		int error;

		CU_ASSERT_EQUAL(put(churn.m, "slab/create", "t size=100 flags=no_merge"), 0);
		while ((error = destroy(churn.m, "t")) == -EBUSY)
			sched_yield();
		CU_ASSERT_EQUAL(error, 0);
	}
	churn.over = true;
	for (int i = 0; i < 3; i++)
		pthread_join(readers[i], NULL);
	CU_ASSERT_EQUAL(churn.odd, 0);
	ASSERT_HOLDS(churn.m, "debug/check", "ok\n");
	fixture_end(churn.m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_parser_takes_the_kernels),
	UNIT_TEST(test_names_and_modes),
	UNIT_TEST(test_geometry),
	UNIT_TEST(test_fresh_files),
	UNIT_TEST(test_create),
	UNIT_TEST(test_alias),
	UNIT_TEST(test_destroy),
	UNIT_TEST(test_hidden_name),
	UNIT_TEST(test_objects),
	UNIT_TEST(test_by_size),
	UNIT_TEST(test_levels_in_kernel_files),
	UNIT_TEST(test_cache_knobs),
	UNIT_TEST(test_debug_cache_knobs),
	UNIT_TEST(test_traces),
	UNIT_TEST(test_tune),
	UNIT_TEST(test_counters),
	UNIT_TEST(test_probes),
	UNIT_TEST(test_names_come_and_go),
};

UNIT_MAIN("slab_files", tests)
