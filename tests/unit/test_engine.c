/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The instance: options, undoing a failed start, weights and bandwidth, ticks,
 * events, the check.
 */
#include "engine_fixture.h"
#include "vmalloc/vmalloc_internal.h"

#include <pthread.h>
#include <unistd.h>

#define TOPOLOGY "topology=2x64M:cpus=2"

/* An instance on nodes with bandwidth 300 and 100 and a third one without memory. */
static struct memfs *fixture_with_bandwidth(void)
{
	static const char lines[] = "node 0 cpus 0-1 zones Normal=64M bandwidth 300\n"
				    "node 1 cpus 2-3 zones Normal=64M bandwidth 100\n"
				    "node 2 cpus 4 zones -\n";
	char path[] = "/tmp/memfs-test-XXXXXX", options[128];
	int fd = mkstemp(path);
	struct memfs *m;

	if (fd < 0 || write(fd, lines, sizeof(lines) - 1) != (ssize_t)sizeof(lines) - 1)
		abort();
	close(fd);
	snprintf(options, sizeof(options), "topology=@%s", path);
	m = fixture(options);
	unlink(path);
	return m;
}

/* --- options --- */

static int create_error(const char *options, char *why, size_t why_size)
{
	struct mf_plat *plat = fixture_plat(NULL, 0);
	struct memfs *m = NULL;
	int error = mf_engine_create(options, plat, &m, why, why_size);

	CU_ASSERT_PTR_NULL(m);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(plat), 0);
	plat->ops->destroy(plat);
	return error;
}

static void boot_settings_are_performed_in_order(void)
{
	struct memfs *m = fixture("weights/node0=7," TOPOLOGY ",weights/node1=3,weights/node0=5");

	CU_ASSERT_EQUAL(mf_engine_weight(m, 0), 5);
	CU_ASSERT_EQUAL(mf_engine_weight(m, 1), 3);
	CU_ASSERT_FALSE(mf_engine_auto(m));
	fixture_end(m);
}

static void values_may_hold_other_separators(void)
{
	struct memfs *m =
		fixture("topology=64M:cpus=1+32M:cpus=0,tasks/default/policy=weighted-interleave:0-1");
	struct mf_policy policy;
	mf_nodemask allowed;

	mf_placement_read(&m->tasks.default_task->place, &policy, &allowed);
	CU_ASSERT_EQUAL(policy.mode, MF_MPOL_WEIGHTED_INTERLEAVE);
	CU_ASSERT_EQUAL(policy.nodes, 3);
	CU_ASSERT_EQUAL(m->topo->node[1]->nr_pages, 8192);
	fixture_end(m);
}

static void bad_options_are_refused_with_a_reason(void)
{
	char why[256];

	CU_ASSERT_EQUAL(create_error(TOPOLOGY ",no/such=1", why, sizeof(why)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "unknown option no/such");
	CU_ASSERT_EQUAL(create_error(TOPOLOGY ",weights=1", why, sizeof(why)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "unknown option weights");
	CU_ASSERT_EQUAL(create_error(TOPOLOGY ",weights/node0", why, sizeof(why)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "option weights/node0 needs a value");
	CU_ASSERT_EQUAL(create_error(TOPOLOGY ",weights/node0=0", why, sizeof(why)), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "weights/node0: "));
	CU_ASSERT_PTR_NULL(strchr(why, '\n'));
	CU_ASSERT_EQUAL(create_error(TOPOLOGY ",weights/auto=true", why, sizeof(why)), -ENODEV);
	why[0] = '\0';
	CU_ASSERT_EQUAL(create_error("topology=banana", why, sizeof(why)), -EINVAL);
	CU_ASSERT_NOT_EQUAL(strlen(why), 0);
	CU_ASSERT_EQUAL(create_error("topology=banana", NULL, 0), -EINVAL);
}

/* Every call to the platform fails once; each time everything is undone. */
static void a_failed_start_is_undone(enum mf_plat_sim_op op, unsigned at_least)
{
	unsigned nth, failures = 0;

	for (nth = 1; nth < 1000; nth++) {
		struct mf_plat *plat = fixture_plat(NULL, 0);
		struct memfs *m = NULL;
		int error;

		mf_plat_sim_fail(plat, op, nth);
		error = mf_engine_create(TOPOLOGY, plat, &m, NULL, 0);
		if (!error) {
			fixture_end(m);
			break;
		}
		failures++;
		CU_ASSERT_EQUAL(error, -ENOMEM);
		CU_ASSERT_EQUAL(mf_plat_sim_outstanding(plat), 0);
		plat->ops->destroy(plat);
	}
	CU_ASSERT(nth < 1000);
	CU_ASSERT(failures >= at_least);
}

static void failing_reserve(void)
{
	a_failed_start_is_undone(MF_SIM_RESERVE, 1);
}

static void failing_arena(void)
{
	a_failed_start_is_undone(MF_SIM_ARENA_MAP, 2);
}

static void failing_meta(void)
{
	a_failed_start_is_undone(MF_SIM_META_ALLOC, 2);
}

static void destroy_gives_everything_back(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("a", 1000);
	struct mf_task *task = NULL;
	struct mf_page_request page = request.page;
	memfs_pfn pfn;

	CU_ASSERT_EQUAL(mf_task_create(m, mf_text_of("t"), &task), 0);
	request.task = mf_text_of("t");
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	CU_ASSERT_EQUAL(mf_page_alloc(m->page, &task->place, &page, &pfn), 0);
	request = range_of("v", 1000 * 4096);
	request.policy_text = mf_text_of("interleave:0-1");
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	CU_ASSERT_PTR_NOT_NULL(mf_vmalloc_simple(m->vmalloc, &task->place, 4096, MEMFS_GFP_KERNEL, NULL));
	fixture_end(m);
}

/* --- weights --- */

static void weights_start_at_one_and_auto(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_weights engine;

	CU_ASSERT_TRUE(mf_engine_auto(m));
	mf_page_get_weights(m->page, &engine);
	for (int node = 0; node < 2; node++) {
		CU_ASSERT_EQUAL(mf_engine_weight(m, node), 1);
		CU_ASSERT_EQUAL(engine.of[node], 1);
	}
	fixture_end(m);
}

static void a_weight_sets_manual_mode(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	uint64_t before = m->event_generation[MF_EVENT_WEIGHTS];
	struct mf_weights engine;

	CU_ASSERT_EQUAL(mf_engine_set_weight(m, 0, 0), -EINVAL);
	CU_ASSERT_EQUAL(mf_engine_set_weight(m, 0, 256), -EINVAL);
	CU_ASSERT_EQUAL(mf_engine_set_weight(m, 2, 1), -EINVAL);
	CU_ASSERT_EQUAL(mf_engine_set_weight(m, -1, 1), -EINVAL);
	CU_ASSERT_TRUE(mf_engine_auto(m));
	CU_ASSERT_EQUAL(m->event_generation[MF_EVENT_WEIGHTS], before);
	CU_ASSERT_EQUAL(mf_engine_set_weight(m, 0, 255), 0);
	CU_ASSERT_FALSE(mf_engine_auto(m));
	mf_page_get_weights(m->page, &engine);
	CU_ASSERT_EQUAL(engine.of[0], 255);
	CU_ASSERT_EQUAL(engine.of[1], 1);
	CU_ASSERT_EQUAL(m->event_generation[MF_EVENT_WEIGHTS], before + 1);
	fixture_end(m);
}

static void a_node_without_memory_has_no_weight(void)
{
	struct memfs *m = fixture_with_bandwidth();

	CU_ASSERT_EQUAL(mf_engine_set_weight(m, 2, 1), -EINVAL);
	CU_ASSERT_EQUAL(mf_engine_set_weight(m, 1, 1), 0);
	fixture_end(m);
}

static void auto_needs_bandwidth(void)
{
	struct memfs *m = fixture(TOPOLOGY);

	CU_ASSERT_EQUAL(mf_engine_set_auto(m, true), -ENODEV);
	CU_ASSERT_TRUE(mf_engine_auto(m));
	CU_ASSERT_EQUAL(mf_engine_set_auto(m, false), 0);
	CU_ASSERT_EQUAL(mf_engine_set_auto(m, false), 0);
	CU_ASSERT_FALSE(mf_engine_auto(m));
	CU_ASSERT_EQUAL(mf_engine_set_auto(m, true), -ENODEV);
	CU_ASSERT_FALSE(mf_engine_auto(m));
	fixture_end(m);
}

static void bandwidth_makes_weights_in_auto_mode_only(void)
{
	struct memfs *m = fixture(TOPOLOGY);

	mf_engine_set_bandwidth(m, 0, 300);
	CU_ASSERT_EQUAL(mf_engine_weight(m, 0), 32); /* the other one is unknown yet */
	CU_ASSERT_EQUAL(mf_engine_weight(m, 1), 1);
	mf_engine_set_bandwidth(m, 1, 100);
	CU_ASSERT_EQUAL(mf_engine_weight(m, 0), 3);
	CU_ASSERT_EQUAL(mf_engine_weight(m, 1), 1);
	CU_ASSERT_EQUAL(mf_engine_set_weight(m, 1, 9), 0);
	mf_engine_set_bandwidth(m, 0, 200);
	CU_ASSERT_EQUAL(mf_engine_bandwidth(m, 0), 200);
	CU_ASSERT_EQUAL(mf_engine_weight(m, 0), 3);
	CU_ASSERT_EQUAL(mf_engine_weight(m, 1), 9);
	CU_ASSERT_EQUAL(mf_engine_set_auto(m, true), 0);
	CU_ASSERT_EQUAL(mf_engine_weight(m, 0), 21);
	CU_ASSERT_EQUAL(mf_engine_weight(m, 1), 10);
	CU_ASSERT_EQUAL(mf_engine_set_auto(m, false), 0);
	CU_ASSERT_EQUAL(mf_engine_weight(m, 0), 21);
	fixture_end(m);
}

static void the_topology_may_tell_bandwidth(void)
{
	struct memfs *m = fixture_with_bandwidth();

	CU_ASSERT_EQUAL(mf_engine_bandwidth(m, 0), 300);
	CU_ASSERT_EQUAL(mf_engine_weight(m, 0), 3);
	CU_ASSERT_EQUAL(mf_engine_weight(m, 1), 1);
	CU_ASSERT_TRUE(mf_engine_auto(m));
	CU_ASSERT_EQUAL(mf_engine_set_auto(m, true), 0);
	fixture_end(m);
}

/* --- ticks --- */

static void crossing_the_low_mark_is_told_once(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("all", 32768);
	_Atomic uint64_t *pressure = &m->event_generation[MF_EVENT_PRESSURE];

	mf_engine_tick(m);
	CU_ASSERT_EQUAL(*pressure, 0);
	request.partial = true;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	mf_engine_tick(m);
	CU_ASSERT_EQUAL(*pressure, 1);
	mf_engine_tick(m);
	CU_ASSERT_EQUAL(*pressure, 1);
	CU_ASSERT_EQUAL(do_free(m, "all", 0), 0);
	mf_page_drain(m->page, -1);
	mf_engine_tick(m);
	CU_ASSERT_EQUAL(*pressure, 2);
	fixture_end(m);
}

static void changed_counters_are_told_by_a_tick(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_placement *place = &m->tasks.default_task->place;
	struct mf_page_request request = request_of("", 1).page;
	uint64_t before;
	memfs_pfn pfn;

	CU_ASSERT_EQUAL(mf_page_alloc(m->page, place, &request, &pfn), 0);
	before = m->event_generation[MF_EVENT_STATS];
	mf_engine_tick(m);
	CU_ASSERT_EQUAL(m->event_generation[MF_EVENT_STATS], before + 1);
	mf_page_free(place, pfn, 0);
	mf_engine_tick(m);
	CU_ASSERT_EQUAL(m->event_generation[MF_EVENT_STATS], before + 2);
	fixture_end(m);
}

/* Below the low mark a tick takes back what freed ranges keep. */
static void a_tick_purges_under_pressure(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request range = range_of("v", 1000 * 4096), rest = request_of("all", 32768);
	struct mf_vmalloc_info info;

	range.policy_text = mf_text_of("interleave:0-1");
	CU_ASSERT_EQUAL(do_alloc(m, &range), 0);
	CU_ASSERT_EQUAL(do_free(m, "v", 0), 0);
	mf_engine_tick(m);
	mf_vmalloc_info(m->vmalloc, &info);
	CU_ASSERT_EQUAL(info.lazy_pages, 1000);
	rest.partial = true;
	rest.page.gfp |= MEMFS___GFP_NORETRY; /* does not take them back itself */
	CU_ASSERT_EQUAL(do_alloc(m, &rest), 0);
	mf_vmalloc_info(m->vmalloc, &info);
	CU_ASSERT_EQUAL(info.lazy_pages, 1000);
	rest = request_of("more", 64); /* from low to min */
	rest.page.gfp = MEMFS_GFP_ATOMIC | MEMFS___GFP_NORETRY;
	CU_ASSERT_EQUAL(do_alloc(m, &rest), 0);
	mf_engine_tick(m);
	mf_vmalloc_info(m->vmalloc, &info);
	CU_ASSERT_EQUAL(info.lazy_pages, 0);
	fixture_end(m);
}

/* The thread ticks by itself, can be stopped and set going again, and ends with the instance. */
static void the_ticker_ticks(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_placement *place = &m->tasks.default_task->place;
	struct mf_page_request request = request_of("", 1).page;
	uint64_t before = m->event_generation[MF_EVENT_STATS];
	memfs_pfn pfn;

	CU_ASSERT_EQUAL(mf_engine_tick_ms(m), 1000);
	mf_engine_set_tick_ms(m, 0);
	CU_ASSERT_EQUAL(mf_engine_start_ticker(m), 0);
	CU_ASSERT_EQUAL(mf_engine_start_ticker(m), 0);
	CU_ASSERT_EQUAL(mf_page_alloc(m->page, place, &request, &pfn), 0);
	mf_engine_set_tick_ms(m, 1);
	CU_ASSERT_EQUAL(mf_engine_tick_ms(m), 1);
	for (int i = 0; i < 20000 && m->event_generation[MF_EVENT_STATS] == before; i++)
		usleep(1000);
	CU_ASSERT_NOT_EQUAL(m->event_generation[MF_EVENT_STATS], before);
	fixture_end(m);
}

/* --- check --- */

static void the_check_finds_what_is_wrong(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("a", 8);
	struct mf_live *live;
	memfs_pfn kept;

	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	live = mf_live_get(m, mf_text_of("a"));
	CU_ASSERT_PTR_NOT_NULL_FATAL(live);
	kept = live->blocks[3];
	live->blocks[3] = live->blocks[4];
	CU_ASSERT_TRUE(check_says(m, "belongs to another allocation, too"));
	live->blocks[3].v = UINT32_MAX;
	CU_ASSERT_TRUE(check_says(m, "is in no zone"));
	live->blocks[3] = kept;
	m->live.nr_pages++;
	CU_ASSERT_TRUE(check_says(m, "allocations hold 8 pages, counted are 9"));
	m->live.nr_pages--;
	m->tasks.default_task->nr_live++;
	CU_ASSERT_TRUE(check_says(m, "tasks: own 2 allocations, 1 are live"));
	m->tasks.default_task->nr_live--;
	mf_live_put(live);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	fixture_end(m);
}

static void the_check_compares_ranges_with_their_entries(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = range_of("v", 8 * 4096);
	struct mf_live *live;
	char *address;

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "v");
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	address = live->address;
	live->address = address + 4096;
	CU_ASSERT_TRUE(check_says(m, "is not its 8 pages"));
	live->address = address;
	live->blocks[0].v ^= 1;
	CU_ASSERT_TRUE(check_says(m, "is not its 8 pages"));
	live->blocks[0].v ^= 1;
	m->vmalloc->mappings++;
	CU_ASSERT_TRUE(check_says(m, "vmalloc: "));
	m->vmalloc->mappings--;
	mf_live_put(live);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	fixture_end(m);
}

/* Allocations that come and go are no violation. */
static struct memfs *busy;

static void *come_and_go(void *arg)
{
	struct mf_live_request request = request_of(arg, 40);

	for (int i = 0; i < 300; i++) {
		if (mf_live_alloc(busy, &request, NULL, NULL, 0) ||
		    mf_live_free(busy, request.name, 15, NULL, NULL, 0) ||
		    mf_live_free(busy, request.name, 0, NULL, NULL, 0))
			return arg;
	}
	return NULL;
}

static void the_check_bears_with_traffic(void)
{
	char names[2][2] = { "a", "b" };
	pthread_t threads[2];
	void *failed;

	busy = fixture(TOPOLOGY);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(pthread_create(&threads[i], NULL, come_and_go, names[i]), 0);
	for (int i = 0; i < 30; i++)
		CU_ASSERT_TRUE(check_says(busy, "ok\n"));
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], &failed);
		CU_ASSERT_PTR_NULL(failed);
	}
	CU_ASSERT_TRUE(check_says(busy, "ok\n"));
	fixture_end(busy);
}

static const struct unit_test tests[] = {
	UNIT_TEST(boot_settings_are_performed_in_order),
	UNIT_TEST(values_may_hold_other_separators),
	UNIT_TEST(bad_options_are_refused_with_a_reason),
	UNIT_TEST(failing_reserve),
	UNIT_TEST(failing_arena),
	UNIT_TEST(failing_meta),
	UNIT_TEST(destroy_gives_everything_back),
	UNIT_TEST(weights_start_at_one_and_auto),
	UNIT_TEST(a_weight_sets_manual_mode),
	UNIT_TEST(a_node_without_memory_has_no_weight),
	UNIT_TEST(auto_needs_bandwidth),
	UNIT_TEST(bandwidth_makes_weights_in_auto_mode_only),
	UNIT_TEST(the_topology_may_tell_bandwidth),
	UNIT_TEST(crossing_the_low_mark_is_told_once),
	UNIT_TEST(changed_counters_are_told_by_a_tick),
	UNIT_TEST(a_tick_purges_under_pressure),
	UNIT_TEST(the_ticker_ticks),
	UNIT_TEST(the_check_finds_what_is_wrong),
	UNIT_TEST(the_check_compares_ranges_with_their_entries),
	UNIT_TEST(the_check_bears_with_traffic),
};

UNIT_MAIN("engine", tests)
