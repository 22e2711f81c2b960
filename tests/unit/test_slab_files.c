/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The files of slab: slab/create, slab/CACHE/, alloc/slab, live/NAME of
 * objects, stats/slabinfo and the levels in the kernel's files.  One strict
 * parser reads a kernel's slabinfo (tests/data/samples) and ours.
 */
#include "data.h"
#include "slab_files.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

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

/* --- the folder of a cache --- */

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
		{ "sheaf_capacity", "252" },
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
