/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Everything that can fail on the way to a range made to fail, visit by visit:
 * afterwards pages, addresses, mappings, descriptors and the rotation are as
 * before.  And requests that must not fail: they wait, and are cancelled.
 */
#include "vmalloc_fixture.h"

#include <pthread.h>
#include <time.h>

#define TWO_NODES "2x64M:cpus=1"

/* --- each failure point in turn --- */

/* One way to get a range; the pages of a vmap are those the test holds. */
struct shape {
	const char *policy;
	uint64_t pages;
	int linear;
	enum mf_vmalloc_large large;
	bool huge, vmap, simple;
	uint32_t scattered; /* free on node 0 are blocks of so many pages only, no two neighbours; 0: all */
	unsigned least;	    /* visits there must be at least */
};

/* No two neighbours in the list: each page becomes a run of its own. */
static void shuffle(struct machine *m, uint64_t pages)
{
	hold(m, 0, 2 * pages);
	for (size_t i = 1; i < pages; i += 2) {
		memfs_pfn pfn = m->pfns[i];

		m->pfns[i] = m->pfns[2 * pages - i];
		m->pfns[2 * pages - i] = pfn;
	}
}

static void scatter(struct machine *m, uint32_t pages)
{
	size_t kept = 0;

	hold_node(m, 0);
	for (size_t i = 0; i < m->nr_pfns; i++) {
		if (m->pfns[i].v / pages % 2)
			mf_page_free(&m->place, m->pfns[i], 0);
		else
			m->pfns[kept++] = m->pfns[i];
	}
	m->nr_pfns = kept;
}

static int try_shape(struct machine *m, const struct shape *shape, void **address)
{
	struct mf_vmalloc_request request = request_of(shape->pages);

	m->why[0] = '\0';
	*address = NULL;
	request.huge = shape->huge;
	if (shape->vmap)
		return mf_vmalloc_map(m->vm, shape->pages, m->pfns, "test", address, m->why, sizeof(m->why));
	if (!shape->simple)
		return ask(m, &request, address);
	strcpy(m->why, "by errno");
	*address = mf_vmalloc_simple(m->vm, &m->place, request.size, MEMFS_GFP_KERNEL, "test");
	return *address ? 0 : -errno;
}

static void undo_shape(struct machine *m, const struct shape *shape, void *address)
{
	for (uint64_t i = 0; i < shape->pages; i++)
		*(volatile char *)((char *)address + i * PAGE) = 1;
	if (!shape->vmap)
		put(m, address);
	else
		CU_ASSERT_EQUAL(mf_vmalloc_unmap(m->vm, address), 0);
}

/* One attempt that fails at the nth visit; false: there were not so many. */
static bool attempt(struct machine *m, const struct shape *shape, uint64_t nth,
		    const struct mf_zone_info *before)
{
	struct mf_rotation was, is;
	void *address;
	bool fired;
	int error;

	set_policy(m, shape->policy);
	/* Somewhere in the middle of a turn. */
	m->place.rotation = 0 | 2 << 8;
	was = mf_placement_rotation(&m->place);
	mf_fault_arm_any(&m->fault, nth);
	error = try_shape(m, shape, &address);
	fired = mf_fault_fired(&m->fault);
	mf_fault_disarm(&m->fault);
	if (error) {
		is = mf_placement_rotation(&m->place);
		CU_ASSERT_TRUE(fired);
		CU_ASSERT_TRUE(error == -ENOMEM || error == -ENOSPC);
		CU_ASSERT_STRING_NOT_EQUAL(m->why, "");
		CU_ASSERT_EQUAL(memcmp(&was, &is, sizeof(is)), 0);
	} else {
		CU_ASSERT_PTR_NOT_NULL_FATAL(address);
		undo_shape(m, shape, address);
	}
	expect_all_back(m, before, m->nr_pfns);
	return fired;
}

static void fail_everywhere(const struct shape *shape)
{
	static struct mf_zone_info before[MF_MAX_ZONES];
	static struct machine m;
	struct mf_vmalloc_knobs knobs;
	uint64_t nth = 1;

	start(&m, TWO_NODES);
	knobs = knobs_of(&m);
	knobs.linear = shape->linear;
	knobs.large_order = (int)shape->large;
	mf_vmalloc_set_knobs(m.vm, &knobs);
	set_weights(&m, 3, 1);
	if (shape->vmap)
		shuffle(&m, shape->pages);
	if (shape->scattered)
		scatter(&m, shape->scattered);
	mf_page_drain(m.pg, -1);
	snapshot(&m, before);
	while (nth < 1000 && attempt(&m, shape, nth, before))
		nth++;
	CU_ASSERT_TRUE(nth - 1 >= shape->least);
	CU_ASSERT_TRUE(nth < 1000);
	if (m.nr_pfns)
		let_go(&m);
	expect_as_at_start(&m);
	stop(&m);
}

static void test_each_failure_point(void)
{
	static const struct shape shapes[] = {
		{ "default", 5, 1, MF_VMALLOC_BOUNDED, .least = 2 },
		{ "default", 5, 1, MF_VMALLOC_BOUNDED, .simple = true, .least = 2 },
		{ "default", 1, 1, MF_VMALLOC_BOUNDED, .simple = true, .least = 2 },
		{ "default", 400, 1, MF_VMALLOC_BOUNDED, .least = 2 },
		{ "default", 5, 0, MF_VMALLOC_BOUNDED, .least = 5 },
		{ "default", 403, 0, MF_VMALLOC_BOUNDED, .least = 6 },
		{ "weighted interleave:0-1", 403, 0, MF_VMALLOC_BOUNDED, .least = 12 },
		{ "weighted interleave:0-1", 403, 1, MF_VMALLOC_MAX, .least = 12 },
		{ "weighted interleave:0-1", 403, 0, MF_VMALLOC_OFF, .least = 8 },
		{ "bind:1", 77, 0, MF_VMALLOC_OFF, .least = 5 },
		{ "interleave:0-1", 2048, 0, MF_VMALLOC_BOUNDED, .huge = true, .least = 9 },
		{ "default", 1024, 1, MF_VMALLOC_BOUNDED, .huge = true, .least = 3 },
		{ "default", 40, 1, MF_VMALLOC_BOUNDED, .vmap = true, .least = 45 },
		{ "bind:0", 200, 0, MF_VMALLOC_BOUNDED, .scattered = 1, .least = 30 },
		{ "bind:0", 300, 0, MF_VMALLOC_BOUNDED, .scattered = 8, .least = 45 },
	};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		fail_everywhere(&shapes[i]);
}

/* --- mapping --- */

static void expect_map_refused(struct machine *m)
{
	struct mf_vmalloc_request request = request_of(200);
	void *address;

	CU_ASSERT_EQUAL(ask(m, &request, &address), -ENOMEM);
	CU_ASSERT_STRING_EQUAL(m->why, "the host refused to map a run of pages: Cannot allocate memory");
	CU_ASSERT_EQUAL(mf_placement_rotation(&m->place).il_prev, 63);
	expect_as_at_start(m);
}

static void test_mapping_refused(void)
{
	static struct machine m;

	start(&m, TWO_NODES);
	set_policy(&m, "interleave:0-1");
	for (unsigned nth = 1; nth <= 2; nth++) {
		mf_fault_arm(&m.fault, MF_FAULT_vmalloc_map, nth, 0);
		expect_map_refused(&m);
		CU_ASSERT_TRUE(mf_fault_fired(&m.fault));
		mf_fault_disarm(&m.fault);
		mf_plat_sim_fail(m.plat, MF_SIM_WINDOW_MAP, nth);
		expect_map_refused(&m);
		mf_plat_sim_fail(m.plat, MF_SIM_WINDOW_MAP, 0);
	}
	/* Nothing to unmap after the first, one window after the second. */
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_seal_calls), 2);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_vmalloc_mapped), 0);
	put(&m, get(&m, 200));
	expect_as_at_start(&m);
	stop(&m);
}

/* Neither mapped nor unmapped: the addresses wait, the pages do not. */
static void test_undoing_refused(void)
{
	struct mf_vmalloc_request request = request_of(200);
	static struct machine m;
	void *address;

	start(&m, TWO_NODES);
	set_policy(&m, "interleave:0-1");
	mf_plat_sim_fail(m.plat, MF_SIM_WINDOW_MAP, 2);
	mf_plat_sim_fail(m.plat, MF_SIM_WINDOW_SEAL, 1);
	CU_ASSERT_EQUAL(ask(&m, &request, &address), -ENOMEM);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_pgalloc), 200);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_pgfree), 200);
	CU_ASSERT_EQUAL(info_of(&m).areas, 0);
	CU_ASSERT_EQUAL(info_of(&m).lazy_areas, 1);
	CU_ASSERT_EQUAL(info_of(&m).lazy_pages, 0);
	check_ok(&m, 0);
	address = get(&m, 200);
	CU_ASSERT_PTR_EQUAL(address, (char *)m.vm->base + 201 * PAGE);
	put(&m, address);
	expect_as_at_start(&m);
	stop(&m);
}

/* --- birth and end --- */

static void expect_no_birth(struct machine *m)
{
	unsigned outstanding = mf_plat_sim_outstanding(m->plat);

	CU_ASSERT_EQUAL(mf_vmalloc_create(m->pg, m->plat, &m->vm), -ENOMEM);
	CU_ASSERT_PTR_NULL(m->vm);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(m->plat), outstanding);
}

static void test_birth_fails(void)
{
	static struct machine m;
	uint64_t nth;

	start_pages(&m, TWO_NODES);
	for (unsigned i = 1; i <= 2; i++) {
		mf_plat_sim_fail(m.plat, MF_SIM_META_ALLOC, i);
		expect_no_birth(&m);
		mf_plat_sim_fail(m.plat, MF_SIM_META_ALLOC, 0);
	}
	for (nth = 1; nth < 100; nth++) {
		mf_fault_arm_any(&m.fault, nth);
		if (mf_vmalloc_create(m.pg, m.plat, &m.vm) == 0)
			break;
		CU_ASSERT_TRUE(mf_fault_fired(&m.fault));
	}
	mf_fault_disarm(&m.fault);
	CU_ASSERT_TRUE(nth >= 3 && nth < 100);
	expect_as_at_start(&m);
	stop(&m);
}

/* A host with few addresses: half as many, and half of that. */
static void test_smaller_range(void)
{
	static struct machine m;

	start(&m, TWO_NODES);
	CU_ASSERT_EQUAL(info_of(&m).size, UINT64_C(64) << 30);
	stop(&m);
	start_pages(&m, TWO_NODES);
	mf_plat_sim_fail(m.plat, MF_SIM_RESERVE, 1);
	CU_ASSERT_EQUAL_FATAL(mf_vmalloc_create(m.pg, m.plat, &m.vm), 0);
	CU_ASSERT_EQUAL(info_of(&m).size, UINT64_C(32) << 30);
	set_linear(&m, 0);
	put(&m, get(&m, 100));
	expect_as_at_start(&m);
	stop(&m);
}

static void test_end_with_ranges(void)
{
	static struct machine m;
	void *mapping;

	start(&m, TWO_NODES);
	hold(&m, 1, 4);
	get(&m, 5);
	put(&m, mf_vmalloc_simple(m.vm, &m.place, 6 * PAGE, MEMFS_GFP_KERNEL, NULL));
	set_linear(&m, 0);
	get(&m, 300);
	put(&m, get(&m, 20));
	get(&m, 3);
	CU_ASSERT_EQUAL(mf_vmalloc_map(m.vm, 4, m.pfns, "test", &mapping, NULL, 0), 0);
	mf_vmalloc_destroy(m.vm);
	m.vm = NULL;
	let_go(&m);
	mf_page_drain(m.pg, -1);
	CU_ASSERT_TRUE(same_buddyinfo(&m, m.before));
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_pgalloc), stat_of(&m, MF_STAT_pgfree));
	/* Its shrinker went with it. */
	hold_node(&m, 0);
	let_go(&m);
	stop(&m);
}

/* More of them than may wait for a purge, with free places between them. */
static void test_end_with_many(void)
{
	static struct machine m;
	char *at[600];

	start(&m, TWO_NODES);
	set_linear(&m, 0);
	for (int i = 0; i < 600; i++)
		at[i] = get(&m, 1 + (uint64_t)i % 7);
	for (int i = 0; i < 600; i++)
		if (i % 3 == 1)
			put(&m, at[i]);
	mf_vmalloc_purge(m.vm);
	CU_ASSERT_EQUAL(info_of(&m).areas, 400);
	CU_ASSERT_EQUAL(info_of(&m).nr_free, 201);
	mf_vmalloc_destroy(m.vm);
	m.vm = NULL;
	mf_page_drain(m.pg, -1);
	CU_ASSERT_TRUE(same_buddyinfo(&m, m.before));
	stop(&m);
}

/* --- requests that must not fail --- */

struct waiter {
	struct machine *m;
	struct mf_vmalloc_request request;
	struct mf_placement place;
	struct mf_cancel cancel;
	pthread_t thread;
	void *address;
	int error;
	char why[128];
};

static void *wait_for_it(void *arg)
{
	struct waiter *w = arg;

	w->error = mf_vmalloc_alloc(w->m->vm, &w->place, &w->request, &w->address, w->why, sizeof(w->why));
	return NULL;
}

/* Until it has begun to wait. */
static void start_waiter(struct machine *m, struct waiter *w, uint64_t pages, bool huge)
{
	uint64_t waits = stat_of(m, MF_STAT_alloc_wait);

	*w = (struct waiter){ .m = m, .request = request_of(pages) };
	mf_placement_init(&w->place, m->pg);
	w->request.page.gfp |= MEMFS___GFP_NOFAIL;
	w->request.page.cancel = &w->cancel;
	w->request.huge = huge;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w->thread, NULL, wait_for_it, w), 0);
	for (int i = 0; i < 20000 && stat_of(m, MF_STAT_alloc_wait) == waits; i++)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	CU_ASSERT_TRUE(stat_of(m, MF_STAT_alloc_wait) > waits);
}

static void expect_cancelled(struct machine *m, struct waiter *w, const struct mf_zone_info *before,
			     uint64_t others)
{
	mf_page_cancel(m->pg, &w->cancel);
	pthread_join(w->thread, NULL);
	CU_ASSERT_EQUAL(w->error, -EINTR);
	CU_ASSERT_PTR_NULL(w->address);
	CU_ASSERT_STRING_EQUAL(w->why, "interrupted");
	expect_all_back(m, before, others);
}

static void test_nofail_waits_for_memory(void)
{
	static struct mf_zone_info before[MF_MAX_ZONES];
	static struct machine m;
	static struct waiter w;

	start(&m, "64M:cpus=1");
	hold_node(&m, 0);
	mf_page_drain(m.pg, -1);
	snapshot(&m, before);
	start_waiter(&m, &w, 500, false);
	expect_cancelled(&m, &w, before, m.nr_pfns);
	start_waiter(&m, &w, 1024, true);
	expect_cancelled(&m, &w, before, m.nr_pfns);
	start_waiter(&m, &w, 500, false);
	let_go(&m);
	pthread_join(w.thread, NULL);
	CU_ASSERT_EQUAL(w.error, 0);
	CU_ASSERT_EQUAL(info_of(&m).used_pages, 500);
	put(&m, w.address);
	expect_as_at_start(&m);
	stop(&m);
}

static void test_nofail_waits_for_addresses(void)
{
	struct mf_extent *extent;
	static struct machine m;
	static struct waiter w;
	void *address;

	start(&m, TWO_NODES);
	set_linear(&m, 0);
	extent = fill_range(&m, 4 * PAGE);
	start_waiter(&m, &w, 100, false);
	mf_page_cancel(m.pg, &w.cancel);
	pthread_join(w.thread, NULL);
	CU_ASSERT_EQUAL(w.error, -EINTR);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_pgalloc), stat_of(&m, MF_STAT_pgfree));
	start_waiter(&m, &w, 100, false);
	clear_range(&m, extent);
	pthread_join(w.thread, NULL);
	CU_ASSERT_EQUAL(w.error, 0);
	put(&m, w.address);
	/* More than there will ever be, and nonsense, are refused at once. */
	w.request = request_of(1000000);
	w.request.page.gfp |= MEMFS___GFP_NOFAIL;
	CU_ASSERT_EQUAL(ask(&m, &w.request, &address), -ENOMEM);
	w.request.size = 0;
	CU_ASSERT_EQUAL(ask(&m, &w.request, &address), -EINVAL);
	expect_as_at_start(&m);
	stop(&m);
}

/* Cancelled before it began, with memory short only for a moment: not even then is anything kept. */
static void test_cancelled_early(void)
{
	static struct machine m;
	struct mf_cancel cancel = { 1 };
	struct mf_vmalloc_request request = request_of(100);
	void *address;

	start(&m, TWO_NODES);
	request.page.cancel = &cancel;
	request.page.gfp |= MEMFS___GFP_NOFAIL;
	set_policy(&m, "interleave:0-1");
	CU_ASSERT_EQUAL(ask(&m, &request, &address), -EINTR);
	CU_ASSERT_EQUAL(mf_placement_rotation(&m.place).il_prev, 63);
	expect_as_at_start(&m);
	stop(&m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_each_failure_point),
	UNIT_TEST(test_mapping_refused),
	UNIT_TEST(test_undoing_refused),
	UNIT_TEST(test_birth_fails),
	UNIT_TEST(test_smaller_range),
	UNIT_TEST(test_end_with_ranges),
	UNIT_TEST(test_end_with_many),
	UNIT_TEST(test_nofail_waits_for_memory),
	UNIT_TEST(test_nofail_waits_for_addresses),
	UNIT_TEST(test_cancelled_early),
};

UNIT_MAIN("vmalloc_undo", tests)
