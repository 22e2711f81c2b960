/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Named allocations that are ranges: distribution by the page, names, bytes
 * and where they lie, freeing; and every failure point undone.
 */
#include "engine_fixture.h"

#include <pthread.h>

#define TOPOLOGY "topology=2x64M:cpus=2"
#define WEIGHTED TOPOLOGY ",weights/node0=3,weights/node1=1,tasks/default/policy=weighted-interleave:0-1"
#define FOUR_NODES "topology=4x64M:cpus=1"

#define PAGE ((uint64_t)MEMFS_PAGE_SIZE)
#define MIB (UINT64_C(1) << 20)

static void set_linear(struct memfs *m, int linear)
{
	struct mf_vmalloc_knobs knobs;

	mf_vmalloc_get_knobs(m->vmalloc, &knobs);
	knobs.linear = linear;
	mf_vmalloc_set_knobs(m->vmalloc, &knobs);
}

/* --- distribution --- */

static void four_hundred_pages_are_three_to_one(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = range_of("v", 400 * PAGE);
	struct mf_live *live;

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("v returned=400 node0=300 node1=100\n");
	live = get(m, "v");
	CU_ASSERT_TRUE(shows(live, mf_live_placement, "node0 300\nnode1 100\n"));
	CU_ASSERT_STRING_EQUAL(live->policy, "weighted interleave:0-1");
	CU_ASSERT_EQUAL(live->kind, MF_LIVE_VMALLOC);
	CU_ASSERT_EQUAL(live->order, 0);
	CU_ASSERT_EQUAL(mf_live_bytes(live), 400 * PAGE);
	CU_ASSERT_EQUAL(m->live.nr_pages, 400);
	CU_ASSERT_EQUAL(m->tasks.default_task->live_pages[0], 300);
	CU_ASSERT_EQUAL(m->tasks.default_task->live_pages[1], 100);
	mf_live_put(live);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_EQUAL(do_free(m, "v", 0), 0);
	CU_ASSERT_EQUAL(m->tasks.default_task->live_pages[0], 0);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	fixture_end(m);
}

/* A range moves the rotation as so many single pages do. */
static void ranges_and_pages_share_one_rotation(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request range = range_of("v", 6 * PAGE), pages = request_of("p", 5);

	CU_ASSERT_EQUAL(do_alloc(m, &pages), 0);
	ASSERT_TEXT("p returned=5 node0=4 node1=1\n");
	CU_ASSERT_EQUAL(do_alloc(m, &range), 0); /* 2 owed to node 0, 1 for node 1, 3 for node 0 */
	ASSERT_TEXT("v returned=6 node0=5 node1=1\n");
	CU_ASSERT_EQUAL(mf_placement_rotation(&m->tasks.default_task->place).il_prev, 0);
	CU_ASSERT_EQUAL(mf_placement_rotation(&m->tasks.default_task->place).il_weight, 0);
	fixture_end(m);
}

static void two_mib_over_four_nodes(void)
{
	struct memfs *m = fixture(FOUR_NODES);
	struct mf_live_request request = range_of("own", 2 * MIB);
	uint32_t rotation = m->tasks.default_task->place.rotation;
	struct mf_live *live;

	request.policy_text = mf_text_of("interleave:0-3");
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("own returned=512 node0=128 node1=128 node2=128 node3=128\n");
	live = get(m, "own");
	CU_ASSERT_STRING_EQUAL(live->policy, "interleave:0-3");
	mf_live_put(live);
	CU_ASSERT_EQUAL(m->tasks.default_task->place.rotation, rotation);
	set_policy(m, "interleave:0-3");
	request = range_of("task", 2 * MIB);
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("task returned=512 node0=128 node1=128 node2=128 node3=128\n");
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	fixture_end(m);
}

static void a_node_sets_the_policy_aside(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = range_of("n", 100 * PAGE);
	uint32_t rotation = m->tasks.default_task->place.rotation;
	struct mf_live *live;

	request.page.node = 1;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("n returned=100 node1=100\n");
	CU_ASSERT_EQUAL(m->tasks.default_task->place.rotation, rotation);
	live = get(m, "n");
	CU_ASSERT_STRING_EQUAL(live->policy, "node=1");
	mf_live_put(live);
	fixture_end(m);
}

static void a_cpu_of_its_own(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = range_of("c", 10 * PAGE);
	struct mf_live *live;

	request.cpu = 2;
	request.page.irq = true; /* means nothing to a range */
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("c returned=10 node1=10\n");
	live = get(m, "c");
	CU_ASSERT_FALSE(live->irq);
	mf_live_put(live);
	CU_ASSERT_EQUAL(do_free(m, "c", 0), 0);
	fixture_end(m);
}

/* --- sizes, alignment, shape --- */

static void sizes_are_rounded_up_to_pages(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = range_of("a", PAGE + 1);
	struct mf_live *live;

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("a returned=2 node0=2\n");
	request = range_of("b", 1);
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("b returned=1 node0=1\n");
	live = get(m, "b");
	CU_ASSERT_EQUAL(mf_live_bytes(live), PAGE);
	mf_live_put(live);
	fixture_end(m);
}

static void addresses_are_aligned(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = range_of("b", 40 * PAGE);
	struct mf_live *live;

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0); /* what follows it is not aligned by chance */
	request.name = mf_text_of("a");
	request.align = MIB;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("a returned=40 node0=30 node1=10\n");
	live = get(m, "a");
	CU_ASSERT_EQUAL((uintptr_t)live->address % MIB, 0);
	mf_live_put(live);
	fixture_end(m);
}

static void huge_ranges_are_whole_blocks(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = range_of("h", 3 * MIB);
	struct free_table *before = free_table(m);
	struct mf_live *live;

	request.huge = true;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("h returned=1024 node0=1024\n");
	live = get(m, "h");
	CU_ASSERT_EQUAL((uintptr_t)live->address % (2 * MIB), 0);
	for (size_t i = 0; i < 1024; i++)
		CU_ASSERT_EQUAL(live->blocks[i].v % 512, i % 512);
	mf_live_put(live);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_EQUAL(do_free(m, "h", 0), 0);
	ASSERT_TEXT("h freed=1024\n");
	CU_ASSERT_TRUE(same_free_table(m, before));
	fixture_end(m);
}

/* --- refusals --- */

static void refused(struct memfs *m, const struct mf_live_request *request, int error, const char *why)
{
	CU_ASSERT_EQUAL(do_alloc(m, request), error);
	ASSERT_TEXT(why);
	CU_ASSERT_EQUAL(m->live.table.count, 0);
}

static void bad_requests_are_refused(void)
{
	struct memfs *m = fixture("topology=2x64M:cpus=2+0:cpus=1");
	struct mf_live_request request = range_of("v", 0);

	refused(m, &request, -EINVAL, "size is 0");
	request = range_of("v", 128 * MIB + 1);
	refused(m, &request, -ENOMEM, "32769 pages asked, all nodes hold 32768");
	request.size = UINT64_MAX;
	refused(m, &request, -ENOMEM, "4503599627370496 pages asked, all nodes hold 32768");
	request = range_of("v", PAGE);
	request.align = 3 * PAGE;
	refused(m, &request, -EINVAL, "align 12288 is no power of two");
	request = range_of("v", PAGE);
	request.page.node = 2;
	refused(m, &request, -EINVAL, "node 2 has no memory");
	request.page.node = 3;
	refused(m, &request, -ENOENT, "node 3 does not exist");
	request.page.node = 1;
	request.policy_text = mf_text_of("bind:0");
	refused(m, &request, -EINVAL, "node= and policy= exclude each other");
	request = range_of("v", PAGE);
	request.cpu = 5;
	refused(m, &request, -EINVAL, "CPU 5 does not exist");
	request = range_of("v", PAGE);
	request.task = mf_text_of("nobody");
	refused(m, &request, -ENOENT, "no task nobody");
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	fixture_end(m);
}

/* All nodes hold that many, but the marks keep some of it. */
static void short_means_nothing(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = range_of("all", 128 * MIB);
	struct free_table *before = free_table(m);
	uint32_t rotation = m->tasks.default_task->place.rotation;

	CU_ASSERT_EQUAL(do_alloc(m, &request), -ENOMEM);
	ASSERT_SAYS("32768 pages asked");
	CU_ASSERT_EQUAL(m->tasks.default_task->place.rotation, rotation);
	CU_ASSERT_EQUAL(m->live.table.count, 0);
	CU_ASSERT_TRUE(same_free_table(m, before));
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	fixture_end(m);
}

static void names_are_those_of_all_allocations(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request pages = request_of("a", 1), range = range_of("a", PAGE);

	CU_ASSERT_EQUAL(do_alloc(m, &pages), 0);
	CU_ASSERT_EQUAL(do_alloc(m, &range), -EEXIST);
	ASSERT_TEXT("a exists");
	range.name = mf_text_of("-");
	CU_ASSERT_EQUAL(do_alloc(m, &range), 0);
	ASSERT_TEXT("vmalloc-1 returned=1 node0=1\n");
	CU_ASSERT_EQUAL(do_alloc(m, &range), 0);
	ASSERT_TEXT("vmalloc-2 returned=1 node0=1\n");
	m->limits.max_live = 3;
	CU_ASSERT_EQUAL(do_alloc(m, &range), -ENOSPC);
	ASSERT_TEXT("there are 3 allocations, the bound of tune/max_live_allocations");
	fixture_end(m);
}

static void mappings_are_bounded(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = range_of("v", 400 * PAGE);
	uint32_t rotation = m->tasks.default_task->place.rotation;
	struct free_table *before = free_table(m);
	struct mf_vmalloc_knobs knobs, lowered;

	mf_vmalloc_get_knobs(m->vmalloc, &knobs);
	lowered = knobs;
	lowered.max_mappings = 2; /* two nodes: two runs and the guard */
	mf_vmalloc_set_knobs(m->vmalloc, &lowered);
	CU_ASSERT_EQUAL(do_alloc(m, &request), -ENOSPC);
	ASSERT_SAYS("mappings");
	CU_ASSERT_EQUAL(m->live.table.count, 0);
	CU_ASSERT_EQUAL(m->tasks.default_task->place.rotation, rotation);
	CU_ASSERT_TRUE(same_free_table(m, before));
	mf_vmalloc_set_knobs(m->vmalloc, &knobs);
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("v returned=400 node0=300 node1=100\n");
	fixture_end(m);
}

static void cancelled_commands_are_undone(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = range_of("c", 100 * PAGE);
	struct free_table *before = free_table(m);
	uint32_t rotation = m->tasks.default_task->place.rotation;
	struct mf_cancel cancel = { 1 };

	request.page.cancel = &cancel;
	CU_ASSERT_EQUAL(do_alloc(m, &request), -EINTR);
	ASSERT_TEXT("interrupted");
	request.page.node = 1; /* waits for no turn */
	CU_ASSERT_EQUAL(do_alloc(m, &request), -EINTR);
	ASSERT_TEXT("interrupted");
	CU_ASSERT_EQUAL(m->tasks.default_task->place.rotation, rotation);
	CU_ASSERT_EQUAL(m->live.table.count, 0);
	CU_ASSERT_TRUE(same_free_table(m, before));
	fixture_end(m);
}

/* --- every failure point --- */

static void undone(struct memfs *m, int error, uint32_t rotation, struct free_table *before)
{
	if (error) {
		CU_ASSERT_TRUE(error == -ENOMEM || error == -ENOSPC);
		CU_ASSERT_NOT_EQUAL(strlen(fixture_text), 0);
		CU_ASSERT_EQUAL(m->tasks.default_task->place.rotation, rotation);
	}
	CU_ASSERT_TRUE(same_free_table(m, before));
	CU_ASSERT_EQUAL(m->live.nr_pages, 0);
	CU_ASSERT_EQUAL(m->live.table.count, 0);
	CU_ASSERT_EQUAL(m->tasks.default_task->nr_live + m->tasks.default_task->nr_pins, 0);
}

/* Fails at the 1st, 2nd, 3rd... visit of any point, until nothing fails any more; most are made up for. */
static void failures_are_undone(const char *options, int linear, const struct mf_live_request *request,
				unsigned at_least)
{
	struct memfs *m = fixture(options);
	struct free_table *start = free_table(m);
	unsigned nth, failures = 0;
	bool fired = true;

	set_linear(m, linear);
	for (nth = 1; nth < 10000 && fired; nth++) {
		struct free_table *before = free_table(m);
		uint32_t rotation = m->tasks.default_task->place.rotation;
		int error;

		mf_fault_arm_any(&m->fault, nth);
		error = do_alloc(m, request);
		fired = mf_fault_fired(&m->fault);
		mf_fault_disarm(&m->fault);
		CU_ASSERT_TRUE(check_says(m, "ok\n"));
		if (!error)
			CU_ASSERT_EQUAL(do_free(m, "f", 0), 0);
		failures += error != 0;
		undone(m, error, rotation, before);
	}
	CU_ASSERT_FALSE(fired);
	CU_ASSERT(failures >= at_least);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_TRUE(same_free_table(m, start));
	fixture_end(m);
}

static void mapped_failures_are_undone(void)
{
	struct mf_live_request request = range_of("f", 400 * PAGE);

	failures_are_undone(WEIGHTED, 1, &request, 6); /* entry, list, area twice, addresses, a window */
}

static void linear_failures_are_undone(void)
{
	struct mf_live_request request = range_of("f", 100 * PAGE);

	failures_are_undone(TOPOLOGY, 1, &request, 2); /* entry, list */
}

static void always_mapped_failures_are_undone(void)
{
	struct mf_live_request request = range_of("f", 7 * PAGE);

	failures_are_undone(TOPOLOGY, 0, &request, 4);
}

static void huge_failures_are_undone(void)
{
	struct mf_live_request request = range_of("f", 4 * MIB);

	request.huge = true;
	failures_are_undone(WEIGHTED, 0, &request, 2);
}

/* --- bytes --- */

/* Each page gets its number through the file, and holds it wherever one looks. */
static void write_all_pages(struct memfs *m, struct mf_live *live)
{
	for (uint64_t i = 0; i < live->nr_blocks; i++) {
		uint64_t word = i * 7919 + 1;

		CU_ASSERT_EQUAL(mf_live_write(live, &word, sizeof(word), i * PAGE + 16), sizeof(word));
	}
	for (uint64_t i = 0; i < live->nr_blocks; i++) {
		const char *linear = mf_page_address(m->page, live->blocks[i].v);
		uint64_t wanted = i * 7919 + 1, word = 0;
		uint32_t pfn = UINT32_MAX;

		CU_ASSERT_EQUAL(mf_live_read(live, &word, sizeof(word), i * PAGE + 16), sizeof(word));
		CU_ASSERT_EQUAL(word, wanted);
		CU_ASSERT_EQUAL(memcmp(linear + 16, &wanted, sizeof(wanted)), 0);
		CU_ASSERT_EQUAL(memcmp((char *)live->address + i * PAGE + 16, &wanted, sizeof(wanted)), 0);
		CU_ASSERT_TRUE(mf_vmalloc_page(m->vmalloc, (char *)live->address + i * PAGE, &pfn));
		CU_ASSERT_EQUAL(pfn, live->blocks[i].v);
	}
}

/* The map's lines, added up: they follow each other and name the pages of the list. */
static void map_tells_the_pages(struct mf_live *live)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	uint64_t next = 0;
	char *line, *rest;

	CU_ASSERT_EQUAL(mf_live_map(live, &out), 0);
	for (line = strtok_r(out.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		unsigned long long index, pfn, pages;

		CU_ASSERT_EQUAL(sscanf(line, "%llu %llu %llu", &index, &pfn, &pages), 3);
		CU_ASSERT_EQUAL(index, next);
		for (uint64_t i = 0; i < pages && index + i < live->nr_blocks; i++)
			CU_ASSERT_EQUAL(live->blocks[index + i].v, pfn + i);
		next = index + pages;
	}
	CU_ASSERT_EQUAL(next, live->nr_blocks);
	mf_outbuf_free(&out);
}

static void bytes_are_where_the_map_says(void)
{
	static const struct {
		const char *options;
		int linear;
		uint64_t pages;
	} cases[] = { { WEIGHTED, 1, 400 }, { TOPOLOGY, 1, 100 }, { TOPOLOGY, 0, 100 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct memfs *m = fixture(cases[i].options);
		struct mf_live_request request = range_of("d", cases[i].pages * PAGE);
		struct mf_live *live;

		set_linear(m, cases[i].linear);
		CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
		live = get(m, "d");
		CU_ASSERT_EQUAL(live->nr_blocks, cases[i].pages);
		write_all_pages(m, live);
		map_tells_the_pages(live);
		CU_ASSERT_EQUAL(mf_live_write(live, "x", 1, cases[i].pages * PAGE), -ENOSPC);
		mf_live_put(live);
		fixture_end(m);
	}
}

static void nothing_of_earlier_owners_is_shown(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = range_of("old", 400 * PAGE);
	static char bytes[400 * MEMFS_PAGE_SIZE];
	struct mf_live *live;
	unsigned dirty = 0;

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "old");
	memset(live->address, 'S', sizeof(bytes));
	mf_live_put(live);
	CU_ASSERT_EQUAL(do_free(m, "old", 0), 0);
	mf_vmalloc_purge(m->vmalloc);
	request = range_of("new", 400 * PAGE);
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "new");
	for (size_t i = 0; i < 400; i++)
		dirty += *(char *)mf_page_address(m->page, live->blocks[i].v) == 'S';
	CU_ASSERT_NOT_EQUAL(dirty, 0);
	CU_ASSERT_EQUAL(mf_live_read(live, bytes, sizeof(bytes), 0), sizeof(bytes));
	CU_ASSERT_TRUE(all_zero(bytes, sizeof(bytes)));
	CU_ASSERT_TRUE(all_zero(live->address, sizeof(bytes)));
	mf_live_put(live);
	fixture_end(m);
}

static void zero_clears_at_once(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = range_of("z", 40 * PAGE);
	struct mf_live *live;

	for (int round = 0; round < 2; round++) {
		request.page.gfp |= MEMFS___GFP_ZERO;
		CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
		live = get(m, "z");
		CU_ASSERT_TRUE(live->cleared);
		CU_ASSERT_TRUE(all_zero(live->address, 40 * PAGE));
		memset(live->address, 'S', 40 * PAGE);
		mf_live_put(live);
		CU_ASSERT_EQUAL(do_free(m, "z", 0), 0);
	}
	fixture_end(m);
}

static void touch_has_the_host_map_it(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = range_of("t", 64 * PAGE);
	struct mf_live *live;

	CU_ASSERT_EQUAL(mf_page_resident(m->page, 0), 0);
	request.touch = true;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	CU_ASSERT_EQUAL(mf_page_resident(m->page, 0), 64 * (int64_t)PAGE);
	live = get(m, "t");
	CU_ASSERT_FALSE(live->cleared);
	mf_live_put(live);
	fixture_end(m);
}

/* --- freeing --- */

static void ranges_are_freed_as_a_whole(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = range_of("v", 400 * PAGE);
	struct free_table *before = free_table(m);
	struct mf_vmalloc_info info;

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	CU_ASSERT_EQUAL(do_free(m, "v", 1), -EINVAL);
	ASSERT_TEXT("v is a vmalloc range: it is freed as a whole");
	CU_ASSERT_EQUAL(do_free(m, "v", 400), -EINVAL);
	ASSERT_TEXT("v is a vmalloc range: it is freed as a whole");
	CU_ASSERT_EQUAL(m->live.nr_pages, 400);
	CU_ASSERT_EQUAL(do_free(m, "v", 0), 0);
	ASSERT_TEXT("v freed=400\n");
	mf_vmalloc_info(m->vmalloc, &info);
	CU_ASSERT_EQUAL(info.lazy_areas, 1);
	CU_ASSERT_EQUAL(info.lazy_pages, 400);
	CU_ASSERT_EQUAL(mf_vmalloc_purge(m->vmalloc), 400);
	CU_ASSERT_TRUE(same_free_table(m, before));
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	fixture_end(m);
}

static void parked_pages_are_accounted_for(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = range_of("v", 100 * PAGE);
	struct free_table *before = free_table(m);

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	CU_ASSERT_EQUAL(do_free(m, "v", 0), 0);
	CU_ASSERT_EQUAL(mf_vmalloc_parked(m->vmalloc), 100);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_EQUAL(mf_vmalloc_purge(m->vmalloc), 100);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_TRUE(same_free_table(m, before));
	fixture_end(m);
}

/* Eight pages that follow each other, but are no block: free, while nothing else is. */
static void pages_in_a_row_need_not_be_a_block(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_placement *place = &m->tasks.default_task->place;
	struct mf_live_request request = range_of("v", 8 * PAGE);
	struct free_table *before = free_table(m), *full;
	memfs_pfn *held = calloc(32768, sizeof(*held));
	size_t kept = 0;
	struct mf_live *live;

	request.page.gfp |= MEMFS___GFP_MEMALLOC;
	CU_ASSERT_EQUAL_FATAL(mf_page_alloc_bulk(m->page, place, &request.page, 32768, held), 32768);
	for (size_t i = 0; i < 32768; i++) {
		if (held[i].v - 1001 < 8)
			mf_page_free(place, held[i], 0);
		else
			held[kept++] = held[i];
	}
	CU_ASSERT_EQUAL(kept, 32768 - 8);
	full = free_table(m);
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("v returned=8 node0=8\n");
	live = get(m, "v");
	for (uint32_t i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(live->blocks[i].v, 1001 + i);
	mf_live_put(live);
	CU_ASSERT_EQUAL(do_free(m, "v", 0), 0);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_TRUE(same_free_table(m, full));
	mf_page_free_bulk(m->page, place, kept, held);
	CU_ASSERT_TRUE(same_free_table(m, before));
	free(held);
	fixture_end(m);
}

static void after_the_free_nothing_is_reached(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = range_of("v", 40 * PAGE);
	struct mf_outbuf out = MF_OUTBUF_INIT;
	struct mf_live *live;
	char byte = 'x';

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "v");
	CU_ASSERT_EQUAL(mf_live_write(live, &byte, 1, 39 * PAGE), 1);
	CU_ASSERT_EQUAL(do_free(m, "v", 0), 0);
	CU_ASSERT_EQUAL(mf_live_bytes(live), 0);
	CU_ASSERT_EQUAL(mf_live_read(live, &byte, 1, 0), -ENODEV);
	CU_ASSERT_EQUAL(mf_live_write(live, &byte, 1, 0), -ENODEV);
	CU_ASSERT_EQUAL(mf_live_placement(live, &out), -ENODEV);
	CU_ASSERT_EQUAL(mf_live_map(live, &out), -ENODEV);
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0); /* the name is free, the old handle is still dead */
	CU_ASSERT_EQUAL(mf_live_bytes(live), 0);
	mf_live_put(live);
	mf_outbuf_free(&out);
	fixture_end(m);
}

/* --- the list of names --- */

struct seen {
	struct memfs *m;
	unsigned nr;
};

static void see(void *arg, const void *address, const char *name)
{
	struct seen *seen = arg;
	struct mf_live *live = get(seen->m, name); /* takes the lock: none is held here */

	CU_ASSERT_EQUAL(mf_lock_depth(), 0);
	CU_ASSERT_PTR_EQUAL(live->address, address);
	CU_ASSERT_STRING_EQUAL(name, seen->nr ? "w" : "v");
	seen->nr++;
	mf_live_put(live);
}

static void named_ranges_are_listed(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request pages = request_of("p", 3), range = range_of("v", 40 * PAGE);
	struct seen seen = { m, 0 };

	CU_ASSERT_EQUAL(mf_live_for_each_vmalloc(m, see, &seen), 0);
	CU_ASSERT_EQUAL(seen.nr, 0);
	CU_ASSERT_EQUAL(do_alloc(m, &range), 0);
	CU_ASSERT_EQUAL(do_alloc(m, &pages), 0);
	range.name = mf_text_of("w");
	CU_ASSERT_EQUAL(do_alloc(m, &range), 0);
	CU_ASSERT_EQUAL(mf_live_for_each_vmalloc(m, see, &seen), 0);
	CU_ASSERT_EQUAL(seen.nr, 2);
	fixture_end(m);
}

/* --- races --- */

static struct memfs *shared;

/* Ranges of several shapes come and go; whatever is read of them is what was written. */
static void *come_and_go(void *arg)
{
	const char *name = arg;

	for (unsigned i = 0; i < 200; i++) {
		struct mf_live_request request = range_of(name, (i * 37 % 300 + 1) * PAGE);
		struct mf_live *live;
		char byte = 0;

		if (mf_live_alloc(shared, &request, NULL, NULL, 0))
			return arg;
		live = get(shared, name);
		if (mf_live_write(live, name, 1, request.size - 1) != 1 ||
		    mf_live_read(live, &byte, 1, request.size - 1) != 1 || byte != *name) {
			mf_live_put(live);
			return arg;
		}
		mf_live_put(live);
		if (mf_live_free(shared, request.name, 0, NULL, NULL, 0))
			return arg;
	}
	return NULL;
}

static void the_check_bears_with_traffic(void)
{
	struct free_table *before;
	char names[2][2] = { "a", "b" };
	pthread_t threads[2];
	void *failed;

	shared = fixture(WEIGHTED);
	before = free_table(shared);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(pthread_create(&threads[i], NULL, come_and_go, names[i]), 0);
	for (int i = 0; i < 20; i++) {
		CU_ASSERT_TRUE(check_says(shared, "ok\n"));
		mf_engine_tick(shared);
		mf_vmalloc_purge(shared->vmalloc);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], &failed);
		CU_ASSERT_PTR_NULL(failed);
	}
	CU_ASSERT_TRUE(check_says(shared, "ok\n"));
	CU_ASSERT_TRUE(same_free_table(shared, before));
	fixture_end(shared);
}

static const struct unit_test tests[] = {
	UNIT_TEST(four_hundred_pages_are_three_to_one),
	UNIT_TEST(ranges_and_pages_share_one_rotation),
	UNIT_TEST(two_mib_over_four_nodes),
	UNIT_TEST(a_node_sets_the_policy_aside),
	UNIT_TEST(a_cpu_of_its_own),
	UNIT_TEST(sizes_are_rounded_up_to_pages),
	UNIT_TEST(addresses_are_aligned),
	UNIT_TEST(huge_ranges_are_whole_blocks),
	UNIT_TEST(bad_requests_are_refused),
	UNIT_TEST(short_means_nothing),
	UNIT_TEST(names_are_those_of_all_allocations),
	UNIT_TEST(mappings_are_bounded),
	UNIT_TEST(cancelled_commands_are_undone),
	UNIT_TEST(mapped_failures_are_undone),
	UNIT_TEST(linear_failures_are_undone),
	UNIT_TEST(always_mapped_failures_are_undone),
	UNIT_TEST(huge_failures_are_undone),
	UNIT_TEST(bytes_are_where_the_map_says),
	UNIT_TEST(nothing_of_earlier_owners_is_shown),
	UNIT_TEST(zero_clears_at_once),
	UNIT_TEST(touch_has_the_host_map_it),
	UNIT_TEST(ranges_are_freed_as_a_whole),
	UNIT_TEST(parked_pages_are_accounted_for),
	UNIT_TEST(pages_in_a_row_need_not_be_a_block),
	UNIT_TEST(after_the_free_nothing_is_reached),
	UNIT_TEST(named_ranges_are_listed),
	UNIT_TEST(the_check_bears_with_traffic),
};

UNIT_MAIN("live_vmalloc", tests)
