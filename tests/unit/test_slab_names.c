/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Caches made, shared under several names and ended through slab/; what is
 * reported of them.
 */
#include "slab_files.h"

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

/* What is found damaged is told like a failure, until the next command. */
static void test_report_in_status(void)
{
	struct memfs *m = fixture(TWO_NODES);
	struct mf_placement *place = &m->tasks.default_task->place;
	struct mf_cache *cache;
	void *object;

	CU_ASSERT_EQUAL(put(m, "slab/create", "dbg size=64 flags=poison,red_zone"), 0);
	cache = mf_cache_get(m->slabs, mf_text_of("dbg"));
	object = mf_cache_alloc(cache, place, MEMFS_GFP_KERNEL);
	CU_ASSERT_EQUAL(mf_cache_free(cache, place, object), 0);
	ASSERT_HOLDS(m, "last_cmd_status", "ok\n");
	CU_ASSERT_EQUAL(mf_cache_free(cache, place, object), -EINVAL);
	ASSERT_CONTAINS(m, "last_cmd_status", "dbg: freed though it is free already: object 0x");
	ASSERT_CONTAINS(m, "last_cmd_status", "dbg: freed though it is free already: object 0x");
	mf_cache_put(cache);
	CU_ASSERT_EQUAL(put(m, "alloc/drain", "1"), 0);
	ASSERT_HOLDS(m, "last_cmd_status", "ok\n");
	fixture_end(m);
}

static unsigned nr_logged;
static char logged[512];

static void on_log(void *arg, const char *line)
{
	(void)arg;
	nr_logged++;
	snprintf(logged, sizeof(logged), "%s", line);
}

/* One message in five seconds; what is freed later is there for others. */
static void test_out_of_memory(void)
{
	struct memfs *m = fixture("topology=32M");

	nr_logged = 0;
	mf_engine_on_log(m, on_log, NULL);
	CU_ASSERT_EQUAL(put(m, "slab/create", "big size=8192 flags=no_merge"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "x cache=big count=4096"), -ENOMEM);
	CU_ASSERT_EQUAL(nr_logged, 1);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(logged, "big: out of memory for objects of 8192 bytes, slabs of order 3 or 1"));
	CU_ASSERT_PTR_NOT_NULL(strstr(logged, "; node 0: "));
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "x cache=big count=4096"), -ENOMEM);
	CU_ASSERT_EQUAL(nr_logged, 1);
	mf_plat_sim_advance(m->plat, UINT64_C(5000000000));
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "x cache=big count=4096 gfp=GFP_KERNEL|__GFP_NOWARN"), -ENOMEM);
	CU_ASSERT_EQUAL(nr_logged, 1);
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "x cache=big count=4096"), -ENOMEM);
	CU_ASSERT_EQUAL(nr_logged, 2);
	CU_ASSERT_EQUAL(put(m, "alloc/slab", "x cache=big count=1000"), 0);
	mf_engine_on_log(m, NULL, NULL);
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

static const struct unit_test tests[] = {
	UNIT_TEST(test_create),	       UNIT_TEST(test_alias),	UNIT_TEST(test_report_in_status),
	UNIT_TEST(test_out_of_memory), UNIT_TEST(test_destroy), UNIT_TEST(test_hidden_name),
};

UNIT_MAIN("slab_names", tests)
