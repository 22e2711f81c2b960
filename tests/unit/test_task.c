/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tasks: lifetime, policy, allowed nodes, CPU, turns.
 */
#include "engine_fixture.h"

#include <pthread.h>
#include <unistd.h>

#define TOPOLOGY "topology=4x32M:cpus=1"

static char why[256];

static struct mf_text text(const char *string)
{
	return mf_text_of(string);
}

static struct mf_policy policy_of(struct mf_task *task)
{
	struct mf_policy policy;
	mf_nodemask allowed;

	mf_placement_read(&task->place, &policy, &allowed);
	return policy;
}

static mf_nodemask allowed_of(struct mf_task *task)
{
	struct mf_policy policy;
	mf_nodemask allowed;

	mf_placement_read(&task->place, &policy, &allowed);
	return allowed;
}

/* --- lifetime --- */

static void tasks_come_and_go(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_task *task = NULL, *found;

	CU_ASSERT_EQUAL(mf_task_create(m, text("default"), &task), -EEXIST);
	CU_ASSERT_EQUAL(mf_task_create(m, text("a b"), &task), -EINVAL);
	CU_ASSERT_EQUAL(mf_task_create(m, text(".."), &task), -EINVAL);
	CU_ASSERT_EQUAL(mf_task_create(m, text(""), &task), -EINVAL);
	CU_ASSERT_PTR_NULL(task);
	CU_ASSERT_EQUAL(mf_task_create(m, text("one"), &task), 0);
	CU_ASSERT_EQUAL(mf_task_create(m, text("one"), NULL), -EEXIST);
	found = mf_task_get(m, text("one"));
	CU_ASSERT_PTR_EQUAL(found, task);
	CU_ASSERT_EQUAL(mf_task_destroy(m, text("one")), -EBUSY); /* pinned */
	mf_task_put(found);
	CU_ASSERT_EQUAL(mf_task_destroy(m, text("one")), 0);
	CU_ASSERT_EQUAL(mf_task_destroy(m, text("one")), -ENOENT);
	CU_ASSERT_PTR_NULL(mf_task_get(m, text("one")));
	CU_ASSERT_EQUAL(mf_task_destroy(m, text("default")), -EBUSY);
	CU_ASSERT_EQUAL(mf_task_end(m->tasks.default_task), -EBUSY);
	fixture_end(m);
}

static void tasks_are_bounded(void)
{
	struct memfs *m = fixture(TOPOLOGY);

	m->limits.max_tasks = 3;
	CU_ASSERT_EQUAL(mf_task_create(m, text("a"), NULL), 0);
	CU_ASSERT_EQUAL(mf_task_create(m, text("b"), NULL), 0);
	CU_ASSERT_EQUAL(mf_task_create(m, text("c"), NULL), -ENOSPC);
	CU_ASSERT_EQUAL(mf_task_create(m, text("a"), NULL), -EEXIST);
	CU_ASSERT_EQUAL(mf_task_destroy(m, text("b")), 0);
	CU_ASSERT_EQUAL(mf_task_create(m, text("c"), NULL), 0);
	fixture_end(m);
}

static void no_memory_for_a_task(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_task *task = NULL;

	mf_fault_arm(&m->fault, MF_FAULT_meta_alloc, 1, 0);
	CU_ASSERT_EQUAL(mf_task_create(m, text("a"), &task), -ENOMEM);
	CU_ASSERT_PTR_NULL(task);
	mf_fault_disarm(&m->fault);
	CU_ASSERT_EQUAL(mf_task_create(m, text("a"), &task), 0);
	fixture_end(m);
}

static void a_task_with_allocations_is_busy(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("x", 5);
	struct mf_task *task = NULL;

	CU_ASSERT_EQUAL(mf_task_create(m, text("a"), &task), 0);
	request.task = text("a");
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	CU_ASSERT_EQUAL(task->nr_live, 1);
	CU_ASSERT_EQUAL(task->nr_pins, 0);
	CU_ASSERT_EQUAL(task->live_pages[0], 5);
	CU_ASSERT_EQUAL(mf_task_destroy(m, text("a")), -EBUSY);
	CU_ASSERT_EQUAL(do_free(m, "x", 2), 0);
	CU_ASSERT_EQUAL(task->live_pages[0], 3);
	CU_ASSERT_EQUAL(mf_task_destroy(m, text("a")), -EBUSY);
	CU_ASSERT_EQUAL(do_free(m, "x", 0), 0);
	CU_ASSERT_EQUAL(mf_task_destroy(m, text("a")), 0);
	fixture_end(m);
}

/* --- policy --- */

static void a_policy_is_set_and_resets_the_rotation(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_task *task = m->tasks.default_task;
	struct mf_live_request request = request_of("x", 6);
	uint64_t before = m->event_generation[MF_EVENT_POLICY];

	CU_ASSERT_EQUAL(mf_task_set_policy(task, text("interleave:1-3"), why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(m->event_generation[MF_EVENT_POLICY], before + 1);
	CU_ASSERT_EQUAL(policy_of(task).mode, MF_MPOL_INTERLEAVE);
	CU_ASSERT_EQUAL(policy_of(task).nodes, 0xe);
	CU_ASSERT_EQUAL(mf_placement_rotation(&task->place).il_prev, 63);
	request.count = 5;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("x returned=5 node1=2 node2=2 node3=1\n");
	CU_ASSERT_EQUAL(mf_placement_rotation(&task->place).il_prev, 2);
	CU_ASSERT_EQUAL(mf_task_set_policy(task, text("interleave:1-3"), why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(mf_placement_rotation(&task->place).il_prev, 63);
	fixture_end(m);
}

static void a_bad_policy_changes_nothing(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_task *task = m->tasks.default_task;
	uint64_t before;

	set_policy(m, "bind:2");
	before = m->event_generation[MF_EVENT_POLICY];
	why[0] = '\0';
	CU_ASSERT_EQUAL(mf_task_set_policy(task, text("bind:7"), why, sizeof(why)), -EINVAL);
	CU_ASSERT_NOT_EQUAL(strlen(why), 0);
	CU_ASSERT_EQUAL(mf_task_set_policy(task, text("nonsense"), why, sizeof(why)), -EINVAL);
	CU_ASSERT_EQUAL(mf_task_set_policy(task, text(""), NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(policy_of(task).mode, MF_MPOL_BIND);
	CU_ASSERT_EQUAL(policy_of(task).nodes, 4);
	CU_ASSERT_EQUAL(m->event_generation[MF_EVENT_POLICY], before);
	fixture_end(m);
}

/* --- allowed nodes --- */

static void allowed_nodes_rebind_the_policy(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_task *task = m->tasks.default_task;
	struct mf_live_request request = request_of("x", 4);
	uint64_t before;

	CU_ASSERT_EQUAL(mf_task_set_mems_allowed(task, text("0-1"), why, sizeof(why)), 0);
	set_policy(m, "interleave:0-1");
	before = m->event_generation[MF_EVENT_POLICY];
	CU_ASSERT_EQUAL(mf_task_set_mems_allowed(task, text("2-3"), why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(m->event_generation[MF_EVENT_POLICY], before + 1);
	CU_ASSERT_EQUAL(policy_of(task).nodes, 0xc);
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("x returned=4 node2=2 node3=2\n");
	fixture_end(m);
}

static void bad_allowed_nodes_change_nothing(void)
{
	struct memfs *m = fixture("topology=2x32M:cpus=1+0:cpus=1");
	struct mf_task *task = m->tasks.default_task;

	CU_ASSERT_EQUAL(mf_task_set_mems_allowed(task, text("1-2"), why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(mf_task_set_mems_allowed(task, text("2"), why, sizeof(why)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "no node of 2 has memory");
	CU_ASSERT_EQUAL(mf_task_set_mems_allowed(task, text("0,5"), why, sizeof(why)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "node 5 does not exist");
	CU_ASSERT_EQUAL(mf_task_set_mems_allowed(task, text(""), why, sizeof(why)), -EINVAL);
	CU_ASSERT_EQUAL(mf_task_set_mems_allowed(task, text("all"), why, sizeof(why)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "'all' is not a list of nodes");
	CU_ASSERT_EQUAL(allowed_of(task), 6);
	fixture_end(m);
}

/* --- CPU --- */

static void the_cpu_decides_what_is_local(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_task *task = m->tasks.default_task;
	struct mf_live_request request = request_of("x", 3);

	CU_ASSERT_EQUAL(task->place.cpu, 0);
	CU_ASSERT_EQUAL(mf_task_set_cpu(task, text("3"), why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("x returned=3 node3=3\n");
	CU_ASSERT_EQUAL(mf_task_set_cpu(task, text("4"), why, sizeof(why)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "CPU 4 does not exist");
	CU_ASSERT_EQUAL(mf_task_set_cpu(task, text("4294967296"), why, sizeof(why)), -EINVAL);
	CU_ASSERT_EQUAL(mf_task_set_cpu(task, text("-1"), why, sizeof(why)), -EINVAL);
	CU_ASSERT_EQUAL(mf_task_set_cpu(task, text("x"), why, sizeof(why)), -EINVAL);
	CU_ASSERT_EQUAL(task->place.cpu, 3);
	fixture_end(m);
}

static void auto_cpu_needs_the_hosts_cpus(void)
{
	struct mf_plat_node host = { .id = 0, .bytes = 1 << 30, .cpus = { 0x6 }, .distance = { 10 } };
	struct memfs *m = fixture(TOPOLOGY); /* a host that tells nothing */
	struct mf_live_request request = request_of("x", 2);

	CU_ASSERT_EQUAL(mf_task_set_cpu(m->tasks.default_task, text("auto"), why, sizeof(why)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "auto: the simulated topology lacks CPUs of this host");
	fixture_end(m);

	m = fixture_on(fixture_plat(&host, 1), TOPOLOGY);
	CU_ASSERT_EQUAL(mf_task_set_cpu(m->tasks.default_task, text("auto"), why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(m->tasks.default_task->place.cpu, MEMFS_CPU_AUTO);
	mf_plat_sim_set_cpu(m->plat, 2);
	CU_ASSERT_EQUAL(mf_task_set_cpu_number(m->tasks.default_task, MEMFS_CPU_AUTO, NULL, 0), 0);
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	fixture_end(m);

	host.cpus[0] = 0x11;
	m = fixture_on(fixture_plat(&host, 1), TOPOLOGY);
	CU_ASSERT_EQUAL(mf_task_set_cpu(m->tasks.default_task, text("auto"), why, sizeof(why)), -EINVAL);
	fixture_end(m);
}

/* --- turns --- */

static void only_interleaving_takes_turns(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_task *task = m->tasks.default_task;
	struct mf_task_turn one, two;

	CU_ASSERT_EQUAL(mf_task_turn_begin(task, NULL, &one), 0);
	CU_ASSERT_EQUAL(mf_task_turn_begin(task, NULL, &two), 0);
	CU_ASSERT_FALSE(one.held || two.held);
	mf_task_turn_end(&one, true);
	mf_task_turn_end(&two, false);
	set_policy(m, "interleave:0-1");
	CU_ASSERT_EQUAL(mf_task_turn_begin(task, NULL, &one), 0);
	CU_ASSERT_TRUE(one.held);
	mf_task_turn_end(&one, false);
	fixture_end(m);
}

static void an_undone_turn_puts_the_rotation_back(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_task *task = m->tasks.default_task;
	struct mf_task_turn turn;

	set_policy(m, "interleave:0-1");
	CU_ASSERT_EQUAL(mf_task_turn_begin(task, NULL, &turn), 0);
	task->place.rotation = 1;
	mf_task_turn_end(&turn, false);
	CU_ASSERT_EQUAL(task->place.rotation, 1);
	CU_ASSERT_EQUAL(mf_task_turn_begin(task, NULL, &turn), 0);
	task->place.rotation = 0;
	mf_task_turn_end(&turn, true);
	CU_ASSERT_EQUAL(task->place.rotation, 1);
	CU_ASSERT_EQUAL(mf_task_turn_begin(task, NULL, &turn), 0);
	set_policy(m, "interleave:2-3"); /* starts anew: nothing to put back */
	mf_task_turn_end(&turn, true);
	CU_ASSERT_EQUAL(mf_placement_rotation(&task->place).il_prev, 63);
	fixture_end(m);
}

static struct mf_cancel queued_cancel;

static void *queue_for_a_turn(void *arg)
{
	struct mf_task_turn turn;
	static int error;

	error = mf_task_turn_begin(arg, &queued_cancel, &turn);
	return &error;
}

static void one_that_queues_can_be_cancelled(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_task *task = m->tasks.default_task;
	struct mf_task_turn turn;
	pthread_t thread;
	void *result = NULL;

	set_policy(m, "interleave:0-1");
	CU_ASSERT_EQUAL(mf_task_turn_begin(task, NULL, &turn), 0);
	CU_ASSERT_EQUAL(pthread_create(&thread, NULL, queue_for_a_turn, task), 0);
	mf_page_cancel(m->page, &queued_cancel);
	pthread_join(thread, &result);
	CU_ASSERT_EQUAL(*(int *)result, -EINTR);
	mf_task_turn_end(&turn, false);
	fixture_end(m);
}

/* Commands of one interleaving task from several threads: the sum of the rotation is exact. */
static struct memfs *shared;

static void *allocate_some(void *arg)
{
	struct mf_live_request request = request_of("-", 7);

	request.bulk = arg != NULL;
	for (int i = 0; i < 50; i++)
		if (mf_live_alloc(shared, &request, NULL, NULL, 0))
			return arg ? arg : &shared;
	return NULL;
}

static void commands_of_one_task_keep_its_rotation_exact(void)
{
	pthread_t threads[4];
	void *failed;

	shared = fixture(TOPOLOGY
			 ",weights/node0=3,weights/node1=1,tasks/default/policy=weighted interleave:0-1");
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(pthread_create(&threads[i], NULL, allocate_some, i & 1 ? &threads : NULL), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &failed);
		CU_ASSERT_PTR_NULL(failed);
	}
	/* 4 * 50 * 7 = 1400 pages at 3:1 */
	CU_ASSERT_EQUAL(shared->tasks.default_task->live_pages[0], 1050);
	CU_ASSERT_EQUAL(shared->tasks.default_task->live_pages[1], 350);
	CU_ASSERT_TRUE(check_says(shared, "ok\n"));
	fixture_end(shared);
}

static const struct unit_test tests[] = {
	UNIT_TEST(tasks_come_and_go),
	UNIT_TEST(tasks_are_bounded),
	UNIT_TEST(no_memory_for_a_task),
	UNIT_TEST(a_task_with_allocations_is_busy),
	UNIT_TEST(a_policy_is_set_and_resets_the_rotation),
	UNIT_TEST(a_bad_policy_changes_nothing),
	UNIT_TEST(allowed_nodes_rebind_the_policy),
	UNIT_TEST(bad_allowed_nodes_change_nothing),
	UNIT_TEST(the_cpu_decides_what_is_local),
	UNIT_TEST(auto_cpu_needs_the_hosts_cpus),
	UNIT_TEST(only_interleaving_takes_turns),
	UNIT_TEST(an_undone_turn_puts_the_rotation_back),
	UNIT_TEST(one_that_queues_can_be_cancelled),
	UNIT_TEST(commands_of_one_task_keep_its_rotation_exact),
};

UNIT_MAIN("task", tests)
