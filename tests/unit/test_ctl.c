/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control tree: finding and listing, the rules of every write, and what
 * each group of files does.
 */
#include "ctl_fixture.h"

#include <pthread.h>

#define TWO_NODES "topology=2x16M:cpus=2"

/* --- the tree --- */

static int resolve(struct memfs *m, const char *path, struct mf_ctl_node *node)
{
	return mf_ctl_resolve(m, mf_text_of(path), node);
}

static void test_lookup(void)
{
	static const char *const absent[] = {
		"nothing",
		"weights/node00",
		"weights/node2",
		"weights/node",
		"weights/nodex",
		"weights/node-1",
		"weights/node100",
		"nodes/node0/DMA",
		"nodes/node0/normal",
		"tasks/nobody",
		"live/nothing",
		"live/nothing/map",
		"stats/counters/nothing",
		"debug/fault/nothing",
		"/README",
		"weights//auto",
		"weights/node*",
		"tasks/{task}",
		".",
	};
	struct memfs *m = fixture(TWO_NODES);
	struct mf_ctl_node node, untouched;

	memset(&untouched, 0x5a, sizeof(untouched));
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		node = untouched;
		CU_ASSERT_EQUAL(resolve(m, absent[i], &node), -ENOENT);
		CU_ASSERT_EQUAL(memcmp(&node, &untouched, sizeof(node)), 0);
	}
	CU_ASSERT_EQUAL(resolve(m, "README/x", &node), -ENOTDIR);
	CU_ASSERT_EQUAL(resolve(m, "", &node), 0);
	CU_ASSERT(mf_ctl_is_dir(&node));
	CU_ASSERT_EQUAL(node.inode, 1);
	CU_ASSERT_EQUAL(resolve(m, "nodes/node1/Normal/free", &node), 0);
	CU_ASSERT_FALSE(mf_ctl_is_dir(&node));
	CU_ASSERT_EQUAL(node.node, 1);
	CU_ASSERT_EQUAL(node.zone, MF_ZONE_NORMAL);
	CU_ASSERT_STRING_EQUAL(node.row->path, "nodes/node*/{zone}/free");
	CU_ASSERT_EQUAL(resolve(m, "stats/counters/pgfree", &node), 0);
	CU_ASSERT_EQUAL(node.counter, MF_STAT_pgfree);
	fixture_end(m);
}

static void test_modes(void)
{
	static const struct {
		const char *path;
		unsigned mode;
	} rows[] = {
		{ "", 0555 },
		{ "tasks", 0755 },
		{ "live", 0755 },
		{ "tasks/default", 0555 },
		{ "nodes/node0", 0555 },
		{ "weights/node0", 0644 },
		{ "README", 0444 },
		{ "alloc/pages", 0600 },
		{ "alloc", 0555 },
		{ "debug/check", 0400 },
		{ "stats/vmallocinfo", 0400 },
		{ "vmalloc/areas", 0400 },
		{ "vmalloc/purge", 0600 },
	};
	struct memfs *m = fixture(TWO_NODES);
	struct mf_ctl_node node;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CU_ASSERT_EQUAL(resolve(m, rows[i].path, &node), 0);
		CU_ASSERT_EQUAL(mf_ctl_mode(&node), rows[i].mode);
	}
	fixture_end(m);
}

/* A listing taken a few entries at a time. */
struct names {
	char list[4096];
	unsigned nr, room;
	uint64_t cursor;
};

static bool collect(void *arg, const char *name, const struct mf_ctl_node *child, uint64_t next_cursor)
{
	struct names *names = arg;

	if (!names->room)
		return false;
	names->room--;
	snprintf(names->list + strlen(names->list), sizeof(names->list) - strlen(names->list), "%s%s ", name,
		 mf_ctl_is_dir(child) ? "/" : "");
	CU_ASSERT(next_cursor > names->cursor);
	names->cursor = next_cursor;
	names->nr++;
	return true;
}

/* Up to @step entries from where it stood; false when there were fewer. */
static bool list_some(struct memfs *m, const char *path, struct names *names, unsigned step)
{
	struct mf_ctl_node dir;

	CU_ASSERT_EQUAL(resolve(m, path, &dir), 0);
	names->room = step;
	mf_ctl_list(m, &dir, names->cursor, collect, names);
	return names->room == 0;
}

static void test_listing(void)
{
	static const struct {
		const char *path, *list;
	} rows[] = {
		{ "",
		  "README version last_cmd_status weights/ nodes/ tasks/ alloc/ live/ vmalloc/ slab/ stats/ tune/ debug/ " },
		{ "weights", "auto node0 node1 " },
		{ "nodes", "online possible has_cpu has_memory has_normal_memory node0/ node1/ " },
		{ "nodes/node1",
		  "cpulist cpumap distance bandwidth meminfo numastat vmstat resident Normal/ " },
		{ "nodes/node1/Normal",
		  "free min low high promo managed present spanned protection free_area " },
		{ "tasks", "default/ " },
		{ "tasks/default", "policy mems_allowed cpu il_prev il_weight next_node numastat " },
		{ "alloc", "pages vmalloc slab free drain trim " },
		{ "live", "" },
		{ "vmalloc", "areas free_space lazy_pages mappings purge " },
		{ "slab",
		  "create kmalloc-8/ kmalloc-16/ kmalloc-32/ kmalloc-64/ kmalloc-96/ kmalloc-128/ "
		  "kmalloc-192/ kmalloc-256/ kmalloc-512/ kmalloc-1k/ kmalloc-2k/ kmalloc-4k/ kmalloc-8k/ " },
		{ "stats",
		  "all counters/ buddyinfo pagetypeinfo zoneinfo vmstat meminfo slabinfo vmallocinfo " },
		{ "debug/fault", "meta_alloc buddy_alloc pcp_refill bulk_node arena_map arena_trim "
				 "vmalloc_area vmalloc_large vmalloc_map slab_new sheaf_alloc " },
	};
	struct memfs *m = fixture(TWO_NODES);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned step = 1; step < 40; step += 19) {
			struct names names = { .nr = 0 };

			while (list_some(m, rows[i].path, &names, step))
				;
			CU_ASSERT_STRING_EQUAL(names.list, rows[i].list);
		}
	fixture_end(m);
}

/* Entries come and go between two pieces: those present throughout are listed once. */
static void test_listing_under_change(void)
{
	struct memfs *m = fixture(TWO_NODES);
	struct names names = { .nr = 0 };
	char command[32];

	for (int i = 0; i < 200; i++) {
		snprintf(command, sizeof(command), "a%d", i);
		CU_ASSERT_EQUAL(put(m, "alloc/pages", command), 0);
	}
	for (int i = 0; i < 10; i++)
		CU_ASSERT(list_some(m, "live", &names, 10));
	CU_ASSERT_EQUAL(names.nr, 100);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "a99"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "a5"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "a150"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "a5"), 0);
	CU_ASSERT_FALSE(list_some(m, "live", &names, 1000));
	CU_ASSERT_EQUAL(names.nr, 100 + 99 + 1); /* a150 is gone, the new a5 comes last */
	CU_ASSERT_PTR_NOT_NULL(strstr(names.list, "a199/ a5/ "));
	CU_ASSERT_PTR_NULL(strstr(names.list, "a150/"));
	fixture_end(m);
}

static void test_paths_and_inodes(void)
{
	static const char *const paths[] = {
		"README",
		"weights",
		"weights/auto",
		"weights/node0",
		"weights/node1",
		"nodes/node0",
		"nodes/node1",
		"nodes/node0/cpulist",
		"nodes/node1/cpulist",
		"nodes/node0/Normal",
		"nodes/node0/Normal/free",
		"nodes/node1/Normal/free",
		"tasks",
		"tasks/default",
		"tasks/t",
		"tasks/t/policy",
		"tasks/default/policy",
		"live/x",
		"live/x/data",
		"stats/counters",
		"stats/counters/numa_hit",
		"stats/counters/numa_miss",
		"debug/fault/meta_alloc",
		"debug/fault/buddy_alloc",
		"",
	};
	enum { NR = sizeof(paths) / sizeof(paths[0]) };
	struct memfs *m = fixture(TWO_NODES);
	uint64_t inodes[NR];
	struct mf_ctl_node node;

	CU_ASSERT_EQUAL(resolve(m, "tasks", &node), 0);
	CU_ASSERT_EQUAL(mf_ctl_mkdir(m, &node, mf_text_of("t")), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "x"), 0);
	for (size_t i = 0; i < NR; i++) {
		struct mf_outbuf path = MF_OUTBUF_INIT;

		CU_ASSERT_EQUAL(resolve(m, paths[i], &node), 0);
		mf_ctl_path(&node, &path);
		CU_ASSERT_STRING_EQUAL(path.length ? path.data : "", paths[i]);
		mf_outbuf_free(&path);
		inodes[i] = node.inode;
		for (size_t j = 0; j < i; j++)
			CU_ASSERT_NOT_EQUAL(inodes[j], inodes[i]);
	}
	/* The same name again is another object. */
	CU_ASSERT_EQUAL(resolve(m, "live/x/data", &node), 0);
	inodes[0] = node.inode;
	CU_ASSERT(mf_ctl_alive(m, &node));
	CU_ASSERT_EQUAL(put(m, "alloc/free", "x"), 0);
	CU_ASSERT_FALSE(mf_ctl_alive(m, &node));
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "x"), 0);
	CU_ASSERT_FALSE(mf_ctl_alive(m, &node));
	CU_ASSERT_EQUAL(resolve(m, "live/x/data", &node), 0);
	CU_ASSERT_NOT_EQUAL(node.inode, inodes[0]);
	fixture_end(m);
}

/* --- the rules of writing --- */

static void test_text_rules(void)
{
	struct memfs *m = fixture(TWO_NODES);
	char big[MF_CTL_WRITE_MAX + 1];

	CU_ASSERT_EQUAL(put(m, "weights/node0", "3\n"), 0);
	ASSERT_HOLDS(m, "weights/node0", "3\n");
	CU_ASSERT_EQUAL(put(m, "weights/node0", "0x10"), 0);
	CU_ASSERT_EQUAL(put(m, "weights/node0", "010"), 0);
	CU_ASSERT_EQUAL(put(m, "weights/node0", "+8"), 0);
	ASSERT_HOLDS(m, "weights/node0", "8\n");
	ASSERT_HOLDS(m, "last_cmd_status", "ok\n");
	CU_ASSERT_EQUAL(put(m, "weights/node0", "0"), -EINVAL);
	CU_ASSERT_STRING_EQUAL(put_reply, "weights/node0: 0 is not in 1..255\n");
	ASSERT_HOLDS(m, "last_cmd_status", "weights/node0: 0 is not in 1..255\n");
	CU_ASSERT_EQUAL(put(m, "weights/node0", "256"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "weights/node0", "18446744073709551616"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "weights/node0", "-1"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "weights/node0", ""), -EINVAL);
	CU_ASSERT_STRING_EQUAL(put_reply, "weights/node0: nothing written\n");
	CU_ASSERT_EQUAL(put(m, "weights/node0", "\n"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "weights/node0", "3\n\n"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "weights/node0", "3\n4\n"), -EINVAL);
	CU_ASSERT_STRING_EQUAL(put_reply, "weights/node0: more than one line in one write\n");
	CU_ASSERT_EQUAL(put(m, "weights/node0", " 3"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "weights/node0", "3 "), -EINVAL);
	CU_ASSERT_EQUAL(put_bytes(m, "weights/node0", "3\0", 2), -EINVAL);
	CU_ASSERT_EQUAL(put_bytes(m, "weights/node0", "3\0\n", 3), -EINVAL);
	memset(big, '0', sizeof(big));
	big[sizeof(big) - 2] = '7';
	CU_ASSERT_EQUAL(put_bytes(m, "weights/node0", big, sizeof(big)), -E2BIG);
	ASSERT_HOLDS(m, "weights/node0", "8\n");
	CU_ASSERT_EQUAL(put_bytes(m, "weights/node0", big, sizeof(big) - 1), 0);
	ASSERT_HOLDS(m, "weights/node0", "7\n");
	ASSERT_HOLDS(m, "weights/auto", "false\n");
	CU_ASSERT_EQUAL(put(m, "README", "1"), -EACCES);
	CU_ASSERT_EQUAL(put(m, "weights", "1"), -EISDIR);
	fixture_end(m);
}

static void test_status_is_one_line(void)
{
	struct memfs *m = fixture(TWO_NODES);

	CU_ASSERT_EQUAL(put(m, "weights/node0", "a\tb"), -EINVAL);
	ASSERT_HOLDS(m, "last_cmd_status", "weights/node0: \"a?b\" is not a number in 1..255\n");
	mf_ctl_refused(m, "some/where\n", EPERM, NULL);
	ASSERT_HOLDS(m, "last_cmd_status", "some/where?: Operation not permitted\n");
	mf_ctl_refused(m, "x", -E2BIG, "too long");
	ASSERT_HOLDS(m, "last_cmd_status", "x: too long\n");
	CU_ASSERT_EQUAL(put(m, "alloc/drain", "1"), 0);
	ASSERT_HOLDS(m, "last_cmd_status", "ok\n");
	fixture_end(m);
}

static void test_mkdir_rmdir(void)
{
	struct memfs *m = fixture(TWO_NODES);
	struct mf_ctl_node root, tasks, live, nodes;
	char name[66];

	mf_ctl_root(m, &root);
	CU_ASSERT_EQUAL(resolve(m, "tasks", &tasks), 0);
	CU_ASSERT_EQUAL(resolve(m, "live", &live), 0);
	CU_ASSERT_EQUAL(resolve(m, "nodes", &nodes), 0);
	CU_ASSERT_EQUAL(mf_ctl_mkdir(m, &root, mf_text_of("x")), -EPERM);
	ASSERT_HOLDS(m, "last_cmd_status", "x: folders are made in tasks/ only\n");
	CU_ASSERT_EQUAL(mf_ctl_mkdir(m, &live, mf_text_of("x")), -EPERM);
	CU_ASSERT_EQUAL(mf_ctl_rmdir(m, &nodes, mf_text_of("node0")), -EPERM);
	ASSERT_HOLDS(m, "last_cmd_status",
		     "nodes/node0: folders are removed in tasks/, live/ and slab/ only\n");
	CU_ASSERT_EQUAL(mf_ctl_mkdir(m, &tasks, mf_text_of("web")), 0);
	ASSERT_HOLDS(m, "last_cmd_status", "ok\n");
	CU_ASSERT_EQUAL(mf_ctl_mkdir(m, &tasks, mf_text_of("web")), -EEXIST);
	ASSERT_HOLDS(m, "last_cmd_status", "tasks/web: there is a task of this name\n");
	CU_ASSERT_EQUAL(mf_ctl_mkdir(m, &tasks, mf_text_of("a b")), -EINVAL);
	memset(name, 'x', 65);
	name[65] = '\0';
	CU_ASSERT_EQUAL(mf_ctl_mkdir(m, &tasks, mf_text_of(name)), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "db task=web"), 0);
	CU_ASSERT_EQUAL(mf_ctl_rmdir(m, &tasks, mf_text_of("web")), -EBUSY);
	CU_ASSERT_EQUAL(mf_ctl_rmdir(m, &tasks, mf_text_of("default")), -EBUSY);
	CU_ASSERT_EQUAL(mf_ctl_rmdir(m, &tasks, mf_text_of("nobody")), -ENOENT);
	CU_ASSERT_EQUAL(mf_ctl_rmdir(m, &live, mf_text_of("nothing")), -ENOENT);
	CU_ASSERT_EQUAL(mf_ctl_rmdir(m, &live, mf_text_of("db")), 0);
	CU_ASSERT_EQUAL(mf_ctl_rmdir(m, &tasks, mf_text_of("web")), 0);
	CU_ASSERT_EQUAL(resolve(m, "tasks/web", &nodes), -ENOENT);
	CU_ASSERT_EQUAL(put(m, "tune/max_tasks", "1"), 0);
	CU_ASSERT_EQUAL(mf_ctl_mkdir(m, &tasks, mf_text_of("web")), -ENOSPC);
	fixture_end(m);
}

/* --- groups of files --- */

static void test_weights_and_bandwidth(void)
{
	struct memfs *m = fixture(TWO_NODES);

	ASSERT_HOLDS(m, "weights/auto", "true\n");
	CU_ASSERT_EQUAL(put(m, "weights/auto", "true"), -ENODEV);
	CU_ASSERT_EQUAL(put(m, "nodes/node0/bandwidth", "300"), 0);
	CU_ASSERT_EQUAL(put(m, "nodes/node1/bandwidth", "100"), 0);
	ASSERT_HOLDS(m, "weights/node0", "3\n");
	ASSERT_HOLDS(m, "weights/node1", "1\n");
	ASSERT_HOLDS(m, "nodes/node0/bandwidth", "300\n");
	CU_ASSERT_EQUAL(put(m, "weights/node1", "9"), 0);
	ASSERT_HOLDS(m, "weights/auto", "false\n");
	ASSERT_HOLDS(m, "weights/node0", "3\n");
	CU_ASSERT_EQUAL(put(m, "weights/auto", "perhaps"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "weights/auto", "1"), 0);
	ASSERT_HOLDS(m, "weights/node1", "1\n");
	ASSERT_HOLDS(m, "weights/auto", "true\n");
	fixture_end(m);
}

static void test_tasks(void)
{
	struct memfs *m = fixture(TWO_NODES);

	ASSERT_HOLDS(m, "tasks/default/policy", "default\n");
	ASSERT_HOLDS(m, "tasks/default/mems_allowed", "0-1\n");
	ASSERT_HOLDS(m, "tasks/default/cpu", "0\n");
	ASSERT_HOLDS(m, "tasks/default/next_node", "0\n");
	CU_ASSERT_EQUAL(put(m, "tasks/default/cpu", "3"), 0);
	ASSERT_HOLDS(m, "tasks/default/next_node", "1\n");
	CU_ASSERT_EQUAL(put(m, "tasks/default/cpu", "4"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "tasks/default/policy", "bind:0"), 0);
	ASSERT_HOLDS(m, "tasks/default/next_node", "0\n");
	CU_ASSERT_EQUAL(put(m, "tasks/default/policy", "prefer:1"), 0);
	ASSERT_HOLDS(m, "tasks/default/next_node", "1\n");
	CU_ASSERT_EQUAL(put(m, "weights/node0", "3"), 0);
	CU_ASSERT_EQUAL(put(m, "tasks/default/policy", "weighted-interleave:0-1\n"), 0);
	ASSERT_HOLDS(m, "tasks/default/policy", "weighted interleave:0-1\n");
	ASSERT_HOLDS(m, "tasks/default/il_weight", "0\n");
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "a count=2"), 0);
	ASSERT_HOLDS(m, "tasks/default/il_prev", "0\n");
	ASSERT_HOLDS(m, "tasks/default/il_weight", "1\n");
	ASSERT_HOLDS(m, "tasks/default/next_node", "0\n");
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "b count=2"), 0);
	ASSERT_HOLDS(m, "tasks/default/next_node", "0\n");
	ASSERT_HOLDS(m, "tasks/default/il_prev", "1\n");
	ASSERT_HOLDS(m, "tasks/default/numastat", "node0 3\nnode1 1\n");
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "c count=3"), 0);
	ASSERT_HOLDS(m, "tasks/default/next_node", "1\n");
	CU_ASSERT_EQUAL(put(m, "tasks/default/policy", "weighted-interleave:0-2"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "tasks/default/policy", "sideways:0"), -EINVAL);
	ASSERT_HOLDS(m, "tasks/default/policy", "weighted interleave:0-1\n");
	CU_ASSERT_EQUAL(put(m, "tasks/default/mems_allowed", "5"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "tasks/default/mems_allowed", "1"), 0);
	ASSERT_HOLDS(m, "tasks/default/mems_allowed", "1\n");
	fixture_end(m);
}

static void test_allocations(void)
{
	struct memfs *m = fixture(TWO_NODES);

	CU_ASSERT_EQUAL(put(m, "weights/node0", "3"), 0);
	CU_ASSERT_EQUAL(put(m, "tasks/default/policy", "weighted-interleave:0-1"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "db count=1024\n"), 0);
	CU_ASSERT_STRING_EQUAL(put_reply, "db returned=1024 node0=768 node1=256\n");
	ASSERT_HOLDS(m, "live/db/placement", "node0 768\nnode1 256\n");
	ASSERT_HOLDS(m, "live/db/kind", "pages\n");
	ASSERT_HOLDS(m, "live/db/task", "default\n");
	ASSERT_HOLDS(m, "live/db/policy", "weighted interleave:0-1\n");
	ASSERT_HOLDS(m, "live/db/order", "0\n");
	ASSERT_HOLDS(m, "live/db/pages", "1024\n");
	ASSERT_HOLDS(m, "live/db/bytes", "4194304\n");
	ASSERT_CONTAINS(m, "stats/all", "\npages_live 1024\nallocations_live 1\ntasks 1\n");
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "db"), -EEXIST);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "x task=nobody"), -ENOENT);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "x node=2"), -ENOENT);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "x policy=bind:7"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "x count=100000"), -ENOMEM);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "x order=11"), -EINVAL);
	CU_ASSERT_STRING_EQUAL(put_reply, "alloc/pages: order=11: expected a number in 0..10\n");
	CU_ASSERT_EQUAL(put(m, "alloc/free", "db count=1025"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "db count=24"), 0);
	ASSERT_HOLDS(m, "live/db/pages", "1000\n");
	CU_ASSERT_EQUAL(put(m, "alloc/free", "db"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "db"), -ENOENT);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "m policy=prefer-(many):1 order=1"), 0);
	ASSERT_HOLDS(m, "live/m/policy", "prefer (many):1\n");
	ASSERT_HOLDS(m, "live/m/placement", "node1 2\n");
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "n node=1"), 0);
	ASSERT_HOLDS(m, "live/n/policy", "node=1\n");
	fixture_end(m);
}

static void test_freed_node_is_gone(void)
{
	struct memfs *m = fixture(TWO_NODES);
	struct mf_outbuf out = MF_OUTBUF_INIT;
	struct mf_ctl_node pages, policy, tasks;

	CU_ASSERT_EQUAL(put(m, "alloc/pages", "a"), 0);
	CU_ASSERT_EQUAL(resolve(m, "live/a/pages", &pages), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "a"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "a"), 0);
	CU_ASSERT_EQUAL(mf_ctl_show(m, &pages, &out), -ENODEV);
	CU_ASSERT_EQUAL(resolve(m, "tasks", &tasks), 0);
	CU_ASSERT_EQUAL(mf_ctl_mkdir(m, &tasks, mf_text_of("t")), 0);
	CU_ASSERT_EQUAL(resolve(m, "tasks/t/policy", &policy), 0);
	CU_ASSERT_EQUAL(mf_ctl_rmdir(m, &tasks, mf_text_of("t")), 0);
	CU_ASSERT_EQUAL(mf_ctl_mkdir(m, &tasks, mf_text_of("t")), 0);
	CU_ASSERT_EQUAL(mf_ctl_show(m, &policy, &out), -ENODEV);
	CU_ASSERT_EQUAL(mf_ctl_store(m, &policy, "local", 5, &out, NULL), -ENODEV);
	CU_ASSERT_STRING_EQUAL(out.data, "tasks/t/policy: has gone\n");
	ASSERT_HOLDS(m, "tasks/t/policy", "default\n");
	mf_outbuf_free(&out);
	fixture_end(m);
}

/* While its command is under way a name is taken, but there is no folder of it. */
static void test_unfinished_is_hidden(void)
{
	struct memfs *m = fixture(TWO_NODES);
	struct names names = { .nr = 0 };
	struct mf_ctl_node node;
	struct mf_live *live;

	CU_ASSERT_EQUAL(put(m, "alloc/pages", "a"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "b"), 0);
	CU_ASSERT_EQUAL(resolve(m, "live/a", &node), 0);
	live = mf_live_get(m, mf_text_of("a"));
	CU_ASSERT_PTR_NOT_NULL_FATAL(live);
	live->ready = false;
	CU_ASSERT_FALSE(mf_ctl_alive(m, &node));
	CU_ASSERT_EQUAL(resolve(m, "live/a", &node), -ENOENT);
	CU_ASSERT_FALSE(list_some(m, "live", &names, 10));
	CU_ASSERT_STRING_EQUAL(names.list, "b/ ");
	live->ready = true;
	mf_live_put(live);
	fixture_end(m);
}

static void test_drain_and_trim(void)
{
	struct memfs *m = fixture(TWO_NODES);

	CU_ASSERT_EQUAL(put(m, "alloc/pages", "a count=600 node=0 touch"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "a"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/drain", "node0"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/drain", "1"), 0);
	ASSERT_CONTAINS(m, "stats/all", "\npages_pcp 0\n");
	ASSERT_CONTAINS(m, "stats/buddyinfo", "      4 \nNode 1");
	CU_ASSERT_EQUAL(put(m, "alloc/drain", "node2"), -ENOENT);
	CU_ASSERT_EQUAL(put(m, "alloc/drain", "node64"), -ENOENT);
	CU_ASSERT_EQUAL(put(m, "alloc/drain", "node"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "alloc/drain", "2"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "alloc/trim", "2"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "alloc/trim", "1"), 0);
	CU_ASSERT_STRING_EQUAL(put_reply, "pages=1024\n");
	ASSERT_HOLDS(m, "nodes/node0/resident", "0\n");
	ASSERT_HOLDS(m, "debug/check", "ok\n");
	fixture_end(m);
}

static void test_knobs(void)
{
	struct memfs *m = fixture(TWO_NODES);

	ASSERT_HOLDS(m, "tune/lowmem_reserve_ratio", "256\t256\t32\t0\n");
	CU_ASSERT_EQUAL(put(m, "tune/lowmem_reserve_ratio", "1 2\t3  4"), 0);
	ASSERT_HOLDS(m, "tune/lowmem_reserve_ratio", "1\t2\t3\t4\n");
	CU_ASSERT_EQUAL(put(m, "tune/lowmem_reserve_ratio", "1 2 3"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "tune/lowmem_reserve_ratio", "1 2 3 4 5"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "tune/lowmem_reserve_ratio", "1 2 3 4 "), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "tune/lowmem_reserve_ratio", " 1 2 3 4"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "tune/lowmem_reserve_ratio", "1 2 3 4294967296"), -EINVAL);
	ASSERT_HOLDS(m, "tune/lowmem_reserve_ratio", "1\t2\t3\t4\n");
	CU_ASSERT_EQUAL(put(m, "tune/percpu_pagelist_high_fraction", "7"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "tune/percpu_pagelist_high_fraction", "8"), 0);
	CU_ASSERT_EQUAL(put(m, "tune/percpu_pagelist_high_fraction", "0"), 0);
	ASSERT_HOLDS(m, "tune/bulk_algorithm", "carryover\n");
	CU_ASSERT_EQUAL(put(m, "tune/bulk_algorithm", "both"), -EINVAL);
	CU_ASSERT_STRING_EQUAL(put_reply, "tune/bulk_algorithm: \"both\" is not one of carryover, split\n");
	CU_ASSERT_EQUAL(put(m, "tune/bulk_algorithm", "split"), 0);
	ASSERT_HOLDS(m, "tune/bulk_algorithm", "split\n");
	CU_ASSERT_EQUAL(put(m, "tune/pcp_mode", "trylock"), 0);
	ASSERT_HOLDS(m, "tune/pcp_mode", "trylock\n");
	CU_ASSERT_EQUAL(put(m, "tune/pcp_mode", "rseq"), mf_page_rseq_available() ? 0 : -ENODEV);
	CU_ASSERT_EQUAL(put(m, "tune/numa", "2"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "tune/numa", "0"), 0);
	ASSERT_HOLDS(m, "tune/numa", "0\n");
	/* 16 MiB a node: two Normal zones of 4096 pages; 1024 kB are 256 pages, 128 a zone. */
	CU_ASSERT_EQUAL(put(m, "tune/min_free_kbytes", "1024"), 0);
	ASSERT_HOLDS(m, "nodes/node0/Normal/min", "128\n");
	ASSERT_HOLDS(m, "nodes/node0/Normal/low", "160\n");
	ASSERT_HOLDS(m, "nodes/node0/Normal/high", "192\n");
	ASSERT_HOLDS(m, "nodes/node0/Normal/promo", "224\n");
	ASSERT_HOLDS(m, "tune/tick_ms", "1000\n");
	CU_ASSERT_EQUAL(put(m, "tune/tick_ms", "0"), 0);
	ASSERT_HOLDS(m, "tune/tick_ms", "0\n");
	ASSERT_HOLDS(m, "tune/max_live_allocations", "1000000\n");
	CU_ASSERT_EQUAL(put(m, "tune/max_live_allocations", "1"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "a"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "b"), -ENOSPC);
	fixture_end(m);
}

static void test_faults(void)
{
	static const char *const good[] = { "nth=3", "nth=3 every=5", "permille=500 seed=7", "off" };
	static const char *const bad[] = { "nth=0",  "every=5",	    "permille=5",   "permille=1001 seed=1",
					   "seed=1", "nth=1 nth=1", "nth=1 seed=2", "nth",
					   "on",     "off off" };
	struct memfs *m = fixture(TWO_NODES);
	char wanted[64];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(wanted, sizeof(wanted), "%s\n", good[i]);
		CU_ASSERT_EQUAL(put(m, "debug/fault/arena_map", good[i]), 0);
		ASSERT_HOLDS(m, "debug/fault/arena_map", wanted);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(put(m, "debug/fault/arena_map", bad[i]), -EINVAL);
	ASSERT_HOLDS(m, "debug/fault/arena_map", "off\n");
	CU_ASSERT_EQUAL(put(m, "debug/fault/meta_alloc", "nth=1"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "a"), -ENOMEM);
	CU_ASSERT_EQUAL(put(m, "debug/fault/meta_alloc", "off"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "a"), 0);
	fixture_end(m);
}

static void test_events(void)
{
	static const struct {
		const char *path, *command, *text;
	} rows[] = {
		{ "weights/node0", "weights/node1", "5" },
		{ "weights/auto", "weights/node1", "6" },
		{ "tasks/default/policy", "tasks/default/policy", "local" },
		{ "stats/all", "alloc/pages", "a" },
	};
	struct memfs *m = fixture(TWO_NODES);
	struct mf_ctl_node node;
	uint64_t before;

	CU_ASSERT_EQUAL(resolve(m, "README", &node), 0);
	CU_ASSERT_EQUAL(mf_ctl_event_generation(m, &node), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CU_ASSERT_EQUAL(resolve(m, rows[i].path, &node), 0);
		before = mf_ctl_event_generation(m, &node);
		CU_ASSERT(before > 0);
		CU_ASSERT_EQUAL(put(m, rows[i].command, rows[i].text), 0);
		CU_ASSERT(mf_ctl_event_generation(m, &node) > before);
	}
	fixture_end(m);
}

static void test_waits(void)
{
	struct memfs *m = fixture(TWO_NODES);
	struct mf_ctl_node node;

	CU_ASSERT_EQUAL(resolve(m, "alloc/pages", &node), 0);
	CU_ASSERT(mf_ctl_waits(&node, "a touch\n", 8));
	CU_ASSERT_FALSE(mf_ctl_waits(&node, "a count=3\n", 10));
	CU_ASSERT_EQUAL(resolve(m, "alloc/vmalloc", &node), 0);
	CU_ASSERT(mf_ctl_waits(&node, "a pages=1 touch\n", 16));
	CU_ASSERT_FALSE(mf_ctl_waits(&node, "a pages=1\n", 10));
	CU_ASSERT_EQUAL(resolve(m, "weights/node0", &node), 0);
	CU_ASSERT_FALSE(mf_ctl_waits(&node, "a touch\n", 8));
	fixture_end(m);
}

/* --- readers beside writers --- */

#define ROUNDS 300

struct reader {
	struct memfs *m;
	_Atomic bool *stop;
	unsigned nr_shown, nr_bad;
};

static bool read_child(void *arg, const char *name, const struct mf_ctl_node *child, uint64_t next_cursor)
{
	struct reader *reader = arg;
	struct mf_outbuf out = MF_OUTBUF_INIT;
	int error;

	(void)name;
	(void)next_cursor;
	if (mf_ctl_is_dir(child)) {
		mf_ctl_list(reader->m, child, 0, read_child, reader);
		return true;
	}
	error = mf_ctl_show(reader->m, child, &out);
	reader->nr_shown++;
	if (error && error != -ENODEV && child->row->type != MF_CTL_MEMORY)
		reader->nr_bad++;
	mf_outbuf_free(&out);
	return true;
}

static void *read_everything(void *arg)
{
	struct reader *reader = arg;
	struct mf_ctl_node root;

	mf_ctl_root(reader->m, &root);
	do
		mf_ctl_list(reader->m, &root, 0, read_child, reader);
	while (!*reader->stop);
	return NULL;
}

static void write_some(struct memfs *m, const struct mf_ctl_node *tasks)
{
	CU_ASSERT_EQUAL(mf_ctl_mkdir(m, tasks, mf_text_of("t")), 0);
	CU_ASSERT_EQUAL(put(m, "tasks/t/policy", "interleave:0-1"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "a count=70 task=t"), 0);
	CU_ASSERT_EQUAL(put(m, "weights/node0", "5"), 0);
	CU_ASSERT_EQUAL(put(m, "tune/watermark_scale_factor", "11"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "a"), 0);
	CU_ASSERT_EQUAL(put(m, "weights/node0", "256"), -EINVAL);
	CU_ASSERT_EQUAL(mf_ctl_rmdir(m, tasks, mf_text_of("t")), 0); /* readers are no hindrance */
}

static void test_parallel(void)
{
	struct memfs *m = fixture(TWO_NODES);
	_Atomic bool stop = false;
	struct reader readers[2] = { { .m = m, .stop = &stop }, { .m = m, .stop = &stop } };
	pthread_t threads[2];
	struct mf_ctl_node tasks;

	CU_ASSERT_EQUAL(resolve(m, "tasks", &tasks), 0);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, read_everything, &readers[i]), 0);
	for (int i = 0; i < ROUNDS; i++)
		write_some(m, &tasks);
	stop = true;
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		CU_ASSERT_EQUAL(readers[i].nr_bad, 0);
		CU_ASSERT(readers[i].nr_shown > 80);
	}
	ASSERT_HOLDS(m, "debug/check", "ok\n");
	fixture_end(m);
}

static void *read_policy(void *m)
{
	return content(m, "tasks/default/policy");
}

/* A reader that comes while a policy is being written waits for it, and never makes one up. */
static void test_policy_in_the_middle_of_a_write(void)
{
	struct memfs *m = fixture(TWO_NODES);
	struct mf_task *task = m->tasks.default_task;
	pthread_t thread;
	void *text;

	CU_ASSERT_EQUAL(put(m, "tasks/default/policy", "bind:1"), 0);
	mf_lock_acquire(&task->lock);
	__atomic_fetch_add(&task->place.seq, 1, __ATOMIC_SEQ_CST); /* odd: half written */
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, read_policy, m), 0);
	usleep(20000); /* so that it is there by now; if it is not, nothing is shown wrong */
	__atomic_fetch_add(&task->place.seq, 1, __ATOMIC_SEQ_CST);
	mf_lock_release(&task->lock);
	pthread_join(thread, &text);
	CU_ASSERT_STRING_EQUAL(text, "bind:1\n");
	free(text);
	fixture_end(m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_lookup),
	UNIT_TEST(test_modes),
	UNIT_TEST(test_listing),
	UNIT_TEST(test_listing_under_change),
	UNIT_TEST(test_paths_and_inodes),
	UNIT_TEST(test_text_rules),
	UNIT_TEST(test_status_is_one_line),
	UNIT_TEST(test_mkdir_rmdir),
	UNIT_TEST(test_weights_and_bandwidth),
	UNIT_TEST(test_tasks),
	UNIT_TEST(test_allocations),
	UNIT_TEST(test_freed_node_is_gone),
	UNIT_TEST(test_drain_and_trim),
	UNIT_TEST(test_knobs),
	UNIT_TEST(test_faults),
	UNIT_TEST(test_events),
	UNIT_TEST(test_waits),
	UNIT_TEST(test_parallel),
	UNIT_TEST(test_policy_in_the_middle_of_a_write),
	UNIT_TEST(test_unfinished_is_hidden),
};

UNIT_MAIN("ctl", tests)
