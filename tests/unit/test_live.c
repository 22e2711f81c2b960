/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Named allocations: names, distribution, all or nothing, freeing, races; and
 * every failure point undone.  Their bytes are in test_live_data.c, ranges in
 * test_live_vmalloc.c.
 */
#include "engine_fixture.h"

#include <pthread.h>

#define TOPOLOGY "topology=2x64M:cpus=2"
#define WEIGHTED TOPOLOGY ",weights/node0=3,weights/node1=1,tasks/default/policy=weighted-interleave:0-1"
#define NODE_PAGES 16384u

/* --- distribution --- */

static void three_to_one_is_exact(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = request_of("db", 1024);
	struct mf_live *live;

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("db returned=1024 node0=768 node1=256\n");
	live = get(m, "db");
	CU_ASSERT_TRUE(shows(live, mf_live_placement, "node0 768\nnode1 256\n"));
	CU_ASSERT_STRING_EQUAL(live->policy, "weighted interleave:0-1");
	CU_ASSERT_STRING_EQUAL(live->task_name, "default");
	CU_ASSERT_EQUAL(mf_live_bytes(live), 1024 * 4096);
	CU_ASSERT_EQUAL(m->live.nr_pages, 1024);
	CU_ASSERT_EQUAL(m->tasks.default_task->live_pages[0], 768);
	mf_live_put(live);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	fixture_end(m);
}

static void singly_and_in_bulk_are_the_same(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request single = request_of("s", 5), bulk = request_of("b", 6);

	single.bulk = false;
	CU_ASSERT_EQUAL(do_alloc(m, &single), 0);
	ASSERT_TEXT("s returned=5 node0=4 node1=1\n");
	CU_ASSERT_EQUAL(do_alloc(m, &bulk), 0); /* 2 owed to node 0, 1 for node 1, 3 for node 0 */
	ASSERT_TEXT("b returned=6 node0=5 node1=1\n");
	CU_ASSERT_EQUAL(mf_placement_rotation(&m->tasks.default_task->place).il_prev, 0);
	CU_ASSERT_EQUAL(mf_placement_rotation(&m->tasks.default_task->place).il_weight, 0);
	fixture_end(m);
}

static void blocks_of_an_order_count_as_one(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = request_of("big", 8);

	request.bulk = false;
	request.page.order = 3;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("big returned=8 node0=48 node1=16\n");
	CU_ASSERT_EQUAL(do_free(m, "big", 3), 0);
	ASSERT_TEXT("big freed=3\n");
	CU_ASSERT_EQUAL(m->live.nr_pages, 40);
	fixture_end(m);
}

static void a_node_sets_policy_and_rotation_aside(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = request_of("n", 10);
	uint32_t rotation = m->tasks.default_task->place.rotation;
	struct mf_live *live;

	request.page.node = 1;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("n returned=10 node1=10\n");
	CU_ASSERT_EQUAL(m->tasks.default_task->place.rotation, rotation);
	live = get(m, "n");
	CU_ASSERT_STRING_EQUAL(live->policy, "node=1");
	mf_live_put(live);
	fixture_end(m);
}

static void a_policy_of_its_own_goes_by_index(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = request_of("v", 7);
	uint32_t rotation = m->tasks.default_task->place.rotation;
	struct mf_live *live;

	request.policy_text = mf_text_of("interleave:0-1");
	request.bulk = false;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("v returned=7 node0=4 node1=3\n");
	live = get(m, "v");
	for (size_t i = 0; i < 7; i++)
		CU_ASSERT_EQUAL(mf_page_node(m->page, live->blocks[i].v), (int)(i & 1));
	CU_ASSERT_STRING_EQUAL(live->policy, "interleave:0-1");
	mf_live_put(live);
	request.name = mf_text_of("w");
	request.policy_text = mf_text_of("weighted-interleave:0-1");
	request.bulk = true;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("w returned=7 node0=6 node1=1\n");
	CU_ASSERT_EQUAL(m->tasks.default_task->place.rotation, rotation);
	fixture_end(m);
}

static void a_cpu_of_its_own(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("c", 3);

	request.cpu = 2;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("c returned=3 node1=3\n");
	CU_ASSERT_EQUAL(m->tasks.default_task->place.cpu, 0);
	request.name = mf_text_of("d");
	request.cpu = 4;
	CU_ASSERT_EQUAL(do_alloc(m, &request), -EINVAL);
	ASSERT_TEXT("CPU 4 does not exist");
	fixture_end(m);
}

/* --- refusals --- */

static void bad_requests_are_refused(void)
{
	struct memfs *m = fixture("topology=2x64M:cpus=2+0:cpus=1");
	struct mf_live_request request;

	request = request_of("a/b", 1);
	CU_ASSERT_EQUAL(do_alloc(m, &request), -EINVAL);
	ASSERT_SAYS("not a name");
	request = request_of("a", 0);
	CU_ASSERT_EQUAL(do_alloc(m, &request), -EINVAL);
	request = request_of("a", 1);
	request.page.order = 11;
	CU_ASSERT_EQUAL(do_alloc(m, &request), -EINVAL);
	ASSERT_TEXT("order 11 is not in 0..10");
	request = request_of("a", 1);
	request.page.order = 1;
	request.bulk = true;
	CU_ASSERT_EQUAL(do_alloc(m, &request), -EINVAL);
	request = request_of("a", 1);
	request.page.node = 2;
	CU_ASSERT_EQUAL(do_alloc(m, &request), -EINVAL);
	ASSERT_TEXT("node 2 has no memory");
	request.page.node = 7;
	CU_ASSERT_EQUAL(do_alloc(m, &request), -ENOENT);
	ASSERT_TEXT("node 7 does not exist");
	request.page.node = 1;
	request.policy_text = mf_text_of("bind:0");
	CU_ASSERT_EQUAL(do_alloc(m, &request), -EINVAL);
	ASSERT_TEXT("node= and policy= exclude each other");
	request = request_of("a", 1);
	request.policy_text = mf_text_of("bind:9");
	CU_ASSERT_EQUAL(do_alloc(m, &request), -EINVAL);
	request = request_of("a", 1);
	request.task = mf_text_of("nobody");
	CU_ASSERT_EQUAL(do_alloc(m, &request), -ENOENT);
	ASSERT_TEXT("no task nobody");
	CU_ASSERT_EQUAL(m->live.table.count, 0);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	fixture_end(m);
}

static void names_are_taken_once(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("a", 2), other = request_of("-", 1);

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	CU_ASSERT_EQUAL(do_alloc(m, &request), -EEXIST);
	ASSERT_TEXT("a exists");
	CU_ASSERT_EQUAL(do_alloc(m, &other), 0);
	ASSERT_TEXT("pages-1 returned=1 node0=1\n");
	request.name = mf_text_of("pages-2");
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	CU_ASSERT_EQUAL(do_alloc(m, &other), 0);
	ASSERT_TEXT("pages-3 returned=1 node0=1\n");
	CU_ASSERT_EQUAL(do_free(m, "nothing", 0), -ENOENT);
	ASSERT_TEXT("no allocation nothing");
	CU_ASSERT_EQUAL(do_free(m, "a", 3), -EINVAL);
	ASSERT_TEXT("a has 2 blocks, fewer than 3");
	CU_ASSERT_PTR_NULL(mf_live_get(m, mf_text_of("nothing")));
	fixture_end(m);
}

static void allocations_are_bounded(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("-", 1);

	m->limits.max_live = 2;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	CU_ASSERT_EQUAL(do_alloc(m, &request), -ENOSPC);
	ASSERT_TEXT("there are 2 allocations, the bound of tune/max_live_allocations");
	CU_ASSERT_EQUAL(do_free(m, "pages-1", 0), 0);
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	fixture_end(m);
}

/* --- all or nothing --- */

static void too_much_is_refused_at_once(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = request_of("huge", UINT64_MAX);
	struct free_table *before = free_table(m);
	uint32_t rotation = m->tasks.default_task->place.rotation;

	CU_ASSERT_EQUAL(do_alloc(m, &request), -ENOMEM);
	ASSERT_TEXT("18446744073709551615 blocks of order 0 asked, all nodes hold 32768");
	request.bulk = false;
	request.page.order = 10;
	request.count = 33;
	CU_ASSERT_EQUAL(do_alloc(m, &request), -ENOMEM);
	ASSERT_TEXT("33 blocks of order 10 asked, all nodes hold 32");
	CU_ASSERT_EQUAL(m->tasks.default_task->place.rotation, rotation);
	CU_ASSERT_TRUE(same_free_table(m, before));
	CU_ASSERT_EQUAL(m->live.table.count, 0);
	fixture_end(m);
}

/* All nodes hold that many, but the marks keep some of it: nothing is kept, the rotation is as before. */
static void short_means_nothing(bool bulk)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = request_of("all", 2 * NODE_PAGES), warm_up = request_of("w", 1);
	struct free_table *before;
	uint32_t rotation;

	CU_ASSERT_EQUAL(do_alloc(m, &warm_up), 0); /* so that something is owed */
	before = free_table(m);
	rotation = m->tasks.default_task->place.rotation;
	request.bulk = bulk;
	CU_ASSERT_EQUAL(do_alloc(m, &request), -ENOMEM);
	ASSERT_SAYS("32768 blocks of order 0 asked, ");
	CU_ASSERT_EQUAL(m->tasks.default_task->place.rotation, rotation);
	CU_ASSERT_EQUAL(m->live.table.count, 1);
	CU_ASSERT_EQUAL(m->live.nr_pages, 1);
	CU_ASSERT_TRUE(same_free_table(m, before));
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	fixture_end(m);
}

static void short_bulk_means_nothing(void)
{
	short_means_nothing(true);
}

static void short_single_means_nothing(void)
{
	short_means_nothing(false);
}

static void partial_takes_what_there_is(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("all", UINT64_MAX);
	struct free_table *before = free_table(m);
	struct mf_live *live;
	uint64_t pages;

	request.partial = true;
	request.page.gfp |= MEMFS___GFP_MEMALLOC;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "all");
	pages = mf_live_bytes(live) / 4096;
	mf_live_put(live);
	CU_ASSERT_EQUAL(pages, 2 * NODE_PAGES);
	ASSERT_TEXT("all returned=32768 node0=16384 node1=16384\n");
	request.name = mf_text_of("more");
	CU_ASSERT_EQUAL(do_alloc(m, &request), -ENOMEM);
	ASSERT_TEXT("18446744073709551615 blocks of order 0 asked, 0 were there");
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_EQUAL(do_free(m, "all", 0), 0);
	ASSERT_TEXT("all freed=32768\n");
	CU_ASSERT_TRUE(same_free_table(m, before));
	fixture_end(m);
}

static void partial_singly_takes_what_there_is(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("all", UINT64_MAX);
	struct free_table *before = free_table(m);

	request.partial = true;
	request.bulk = false;
	request.page.order = 10;
	request.page.node = 1;
	request.page.gfp |= MEMFS___GFP_MEMALLOC | MEMFS___GFP_THISNODE;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("all returned=16 node1=16384\n");
	CU_ASSERT_EQUAL(do_free(m, "all", 0), 0);
	CU_ASSERT_TRUE(same_free_table(m, before));
	fixture_end(m);
}

/* Every failure point fails at its 1st, 2nd, 3rd... visit: no trace is left, until nothing fails any more. */
static void failures_are_undone(bool bulk, unsigned order, uint64_t count, unsigned at_least)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = request_of("f", count);
	struct free_table *start = free_table(m);
	unsigned nth, failures = 0;

	request.bulk = bulk;
	request.page.order = order;
	for (nth = 1; nth < 10000; nth++) {
		struct free_table *before = free_table(m);
		uint32_t rotation = m->tasks.default_task->place.rotation;
		int error;
		bool fired;

		mf_fault_arm_any(&m->fault, nth);
		error = do_alloc(m, &request);
		fired = mf_fault_fired(&m->fault);
		mf_fault_disarm(&m->fault);
		if (!error)
			CU_ASSERT_EQUAL(do_free(m, "f", 0), 0);
		failures += error != 0;
		if (error) {
			CU_ASSERT_EQUAL(error, -ENOMEM);
			CU_ASSERT_NOT_EQUAL(strlen(fixture_text), 0);
			CU_ASSERT_EQUAL(m->tasks.default_task->place.rotation, rotation);
		}
		CU_ASSERT_TRUE(same_free_table(m, before));
		CU_ASSERT_EQUAL(m->live.nr_pages, 0);
		CU_ASSERT_EQUAL(m->live.table.count, 0);
		CU_ASSERT_EQUAL(m->tasks.default_task->nr_live + m->tasks.default_task->nr_pins, 0);
		if (!fired)
			break;
	}
	CU_ASSERT(nth < 10000);
	CU_ASSERT(failures >= at_least);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_TRUE(same_free_table(m, start));
	fixture_end(m);
}

static void bulk_failures_are_undone(void)
{
	failures_are_undone(true, 0, 100, 3); /* descriptor, list, a node's share */
}

static void single_failures_are_undone(void)
{
	failures_are_undone(false, 0, 100, 3); /* descriptor, list twice */
}

static void order_failures_are_undone(void)
{
	failures_are_undone(false, 5, 70, 3);
}

static void cancelled_commands_are_undone(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = request_of("c", 100);
	struct free_table *before = free_table(m);
	uint32_t rotation = m->tasks.default_task->place.rotation;
	struct mf_cancel cancel = { 1 };

	request.page.cancel = &cancel;
	CU_ASSERT_EQUAL(do_alloc(m, &request), -EINTR);
	ASSERT_TEXT("interrupted");
	request.bulk = false;
	request.partial = true;
	CU_ASSERT_EQUAL(do_alloc(m, &request), -EINTR);
	CU_ASSERT_EQUAL(m->tasks.default_task->place.rotation, rotation);
	CU_ASSERT_EQUAL(m->live.table.count, 0);
	CU_ASSERT_TRUE(same_free_table(m, before));
	fixture_end(m);
}

/* A NOFAIL command that waits is ended from outside; what it had goes back. */
static struct memfs *shared;
static struct mf_cancel waiting_cancel;

static void *wait_for_memory(void *arg)
{
	struct mf_live_request request = request_of("-", 2);

	request.bulk = arg != NULL;
	request.page.gfp |= MEMFS___GFP_NOFAIL;
	request.page.cancel = &waiting_cancel;
	return mf_live_alloc(shared, &request, NULL, NULL, 0) == -EINTR ? NULL : &shared;
}

static void a_waiting_command_can_be_cancelled(void)
{
	struct mf_live_request request = request_of("all", UINT64_MAX);
	pthread_t threads[3];
	void *failed;

	shared = fixture(WEIGHTED);
	request.partial = true;
	request.page.gfp |= MEMFS___GFP_MEMALLOC;
	CU_ASSERT_EQUAL(do_alloc(shared, &request), 0);
	atomic_store(&waiting_cancel.cancelled, 0);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(pthread_create(&threads[i], NULL, wait_for_memory, i & 1 ? &threads : NULL),
				0);
	mf_page_cancel(shared->page, &waiting_cancel);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &failed);
		CU_ASSERT_PTR_NULL(failed);
	}
	CU_ASSERT_EQUAL(shared->live.table.count, 1);
	CU_ASSERT_TRUE(check_says(shared, "ok\n"));
	fixture_end(shared);
}

/* --- freeing --- */

static void the_last_blocks_are_freed(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = request_of("a", 8);
	struct free_table *before = free_table(m);
	struct mf_live *live;
	memfs_pfn kept[8];

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "a");
	memcpy(kept, live->blocks, sizeof(kept));
	CU_ASSERT_EQUAL(do_free(m, "a", 3), 0);
	ASSERT_TEXT("a freed=3\n");
	CU_ASSERT_EQUAL(live->nr_blocks, 5);
	CU_ASSERT_EQUAL(memcmp(kept, live->blocks, 5 * sizeof(*kept)), 0);
	CU_ASSERT_EQUAL(mf_live_bytes(live), 5 * 4096);
	CU_ASSERT_EQUAL(do_free(m, "a", 6), -EINVAL);
	CU_ASSERT_EQUAL(do_free(m, "a", 5), 0); /* the last five are all there are */
	ASSERT_TEXT("a freed=5\n");
	CU_ASSERT_EQUAL(do_free(m, "a", 1), -ENOENT);
	CU_ASSERT_EQUAL(m->tasks.default_task->nr_live, 0);
	mf_live_put(live);
	CU_ASSERT_TRUE(same_free_table(m, before));
	fixture_end(m);
}

static void after_the_free_nothing_is_reached(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("a", 4);
	struct mf_outbuf out = MF_OUTBUF_INIT;
	struct mf_live *live;
	char byte = 'x';

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "a");
	CU_ASSERT_EQUAL(mf_live_write(live, &byte, 1, 0), 1);
	CU_ASSERT_EQUAL(do_free(m, "a", 0), 0);
	CU_ASSERT_EQUAL(mf_live_bytes(live), 0);
	CU_ASSERT_EQUAL(mf_live_read(live, &byte, 1, 0), -ENODEV);
	CU_ASSERT_EQUAL(mf_live_write(live, &byte, 1, 0), -ENODEV);
	CU_ASSERT_EQUAL(mf_live_write(live, &byte, 1, 1 << 30), -ENODEV);
	CU_ASSERT_EQUAL(mf_live_placement(live, &out), -ENODEV);
	CU_ASSERT_EQUAL(mf_live_map(live, &out), -ENODEV);
	CU_ASSERT_EQUAL(out.length, 0);
	CU_ASSERT_STRING_EQUAL(live->task_name, "default");
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0); /* the name is free, the old handle is still dead */
	CU_ASSERT_EQUAL(mf_live_bytes(live), 0);
	mf_live_put(live);
	mf_outbuf_free(&out);
	fixture_end(m);
}

static uint64_t told_serial;
static unsigned told;

static void tell(void *arg, uint64_t serial, const char *name)
{
	CU_ASSERT_PTR_EQUAL(arg, &told);
	CU_ASSERT_STRING_EQUAL(name, "a");
	CU_ASSERT_EQUAL(mf_lock_depth(), 0);
	told_serial = serial;
	told++;
}

static void a_whole_free_is_told(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("a", 4);
	struct mf_live *live;
	uint64_t serial;

	mf_live_on_freed(m, tell, &told);
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "a");
	serial = live->named.serial;
	mf_live_put(live);
	CU_ASSERT_EQUAL(do_free(m, "a", 1), 0);
	CU_ASSERT_EQUAL(told, 0);
	CU_ASSERT_EQUAL(do_free(m, "a", 0), 0);
	CU_ASSERT_EQUAL(told, 1);
	CU_ASSERT_EQUAL(told_serial, serial);
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "a");
	CU_ASSERT(live->named.serial > serial);
	mf_live_put(live);
	fixture_end(m); /* tells nobody */
	CU_ASSERT_EQUAL(told, 1);
}

static void irq_context_is_kept_for_the_free(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("i", 20);
	struct free_table *before = free_table(m);

	request.page.irq = true;
	request.page.gfp = MEMFS_GFP_ATOMIC;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	CU_ASSERT_EQUAL(do_free(m, "i", 7), 0);
	CU_ASSERT_EQUAL(do_free(m, "i", 0), 0);
	CU_ASSERT_TRUE(same_free_table(m, before));
	fixture_end(m);
}

/* --- races --- */

static pthread_barrier_t barrier;
static atomic_uint allocated, existed, freed, missing, other;

static void *race_for_a_name(void *arg)
{
	struct mf_live_request request = request_of("race", 16);

	(void)arg;
	for (int round = 0; round < 100; round++) {
		int error;

		pthread_barrier_wait(&barrier);
		error = mf_live_alloc(shared, &request, NULL, NULL, 0);
		atomic_fetch_add(error == 0 ? &allocated : error == -EEXIST ? &existed : &other, 1);
		pthread_barrier_wait(&barrier);
		error = mf_live_free(shared, mf_text_of("race"), 0, NULL, NULL, 0);
		atomic_fetch_add(error == 0 ? &freed : error == -ENOENT ? &missing : &other, 1);
	}
	return NULL;
}

static void one_of_racing_commands_wins(void)
{
	pthread_t threads[3];

	shared = fixture(TOPOLOGY);
	pthread_barrier_init(&barrier, NULL, 3);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(pthread_create(&threads[i], NULL, race_for_a_name, NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
	CU_ASSERT_EQUAL(allocated, 100);
	CU_ASSERT_EQUAL(existed, 200);
	CU_ASSERT_EQUAL(freed, 100);
	CU_ASSERT_EQUAL(missing, 200);
	CU_ASSERT_EQUAL(other, 0);
	CU_ASSERT_TRUE(check_says(shared, "ok\n"));
	fixture_end(shared);
}

/* Readers of the bytes while blocks are cut off: they get bytes, the end or -ENODEV, nothing else. */
static void *read_on(void *arg)
{
	struct mf_live *live = arg;
	char buf[5000];
	ssize_t got;

	do
		got = mf_live_read(live, buf, sizeof(buf), 2000);
	while (got > 0);
	return got == -ENODEV ? NULL : arg;
}

static void reading_while_it_is_freed(void)
{
	struct mf_live_request request = request_of("r", 64);
	struct mf_live *live;
	pthread_t threads[2];
	void *failed;

	shared = fixture(TOPOLOGY);
	CU_ASSERT_EQUAL(do_alloc(shared, &request), 0);
	live = get(shared, "r");
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(pthread_create(&threads[i], NULL, read_on, live), 0);
	for (int i = 0; i < 31; i++)
		CU_ASSERT_EQUAL(do_free(shared, "r", 2), 0);
	CU_ASSERT_EQUAL(do_free(shared, "r", 0), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], &failed);
		CU_ASSERT_PTR_NULL(failed);
	}
	mf_live_put(live);
	fixture_end(shared);
}

static const struct unit_test tests[] = {
	UNIT_TEST(three_to_one_is_exact),
	UNIT_TEST(singly_and_in_bulk_are_the_same),
	UNIT_TEST(blocks_of_an_order_count_as_one),
	UNIT_TEST(a_node_sets_policy_and_rotation_aside),
	UNIT_TEST(a_policy_of_its_own_goes_by_index),
	UNIT_TEST(a_cpu_of_its_own),
	UNIT_TEST(bad_requests_are_refused),
	UNIT_TEST(names_are_taken_once),
	UNIT_TEST(allocations_are_bounded),
	UNIT_TEST(too_much_is_refused_at_once),
	UNIT_TEST(short_bulk_means_nothing),
	UNIT_TEST(short_single_means_nothing),
	UNIT_TEST(partial_takes_what_there_is),
	UNIT_TEST(partial_singly_takes_what_there_is),
	UNIT_TEST(bulk_failures_are_undone),
	UNIT_TEST(single_failures_are_undone),
	UNIT_TEST(order_failures_are_undone),
	UNIT_TEST(cancelled_commands_are_undone),
	UNIT_TEST(a_waiting_command_can_be_cancelled),
	UNIT_TEST(the_last_blocks_are_freed),
	UNIT_TEST(after_the_free_nothing_is_reached),
	UNIT_TEST(a_whole_free_is_told),
	UNIT_TEST(irq_context_is_kept_for_the_free),
	UNIT_TEST(one_of_racing_commands_wins),
	UNIT_TEST(reading_while_it_is_freed),
};

UNIT_MAIN("live", tests)
