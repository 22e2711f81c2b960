/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Named allocations: their bytes, which show nothing of earlier owners, and
 * where they lie.
 */
#include "engine_fixture.h"

#define TOPOLOGY "topology=2x64M:cpus=2"
#define WEIGHTED TOPOLOGY ",weights/node0=3,weights/node1=1,tasks/default/policy=weighted-interleave:0-1"
#define NODE_PAGES 16384u

/* --- bytes --- */

static void bytes_go_through_the_blocks(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = request_of("d", 6);
	size_t size = 6 * 8192;
	char *in = malloc(size), *back = malloc(size);
	struct mf_live *live;

	request.page.order = 1;
	request.bulk = false;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "d");
	CU_ASSERT_EQUAL(mf_live_bytes(live), size);
	for (size_t i = 0; i < size; i++)
		in[i] = (char)(i * 7 + i / 4096);
	CU_ASSERT_EQUAL(mf_live_write(live, in, 20000, 5000), 20000);
	CU_ASSERT_EQUAL(mf_live_read(live, back, size, 0), (ssize_t)size);
	CU_ASSERT_TRUE(all_zero(back, 5000));
	CU_ASSERT_EQUAL(memcmp(back + 5000, in, 20000), 0);
	CU_ASSERT_TRUE(all_zero(back + 25000, size - 25000));
	/* byte 8192 + 5 is byte 5 of the second block, in the memory itself */
	CU_ASSERT_EQUAL(((char *)mf_page_address(m->page, live->blocks[1].v))[5], in[8192 + 5 - 5000]);
	mf_live_put(live);
	free(in);
	free(back);
	fixture_end(m);
}

static void bytes_end_with_the_allocation(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("d", 2);
	char buf[16] = "0123456789abcdef";
	struct mf_live *live;

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "d");
	CU_ASSERT_EQUAL(mf_live_write(live, buf, 16, 8192), -ENOSPC);
	CU_ASSERT_EQUAL(mf_live_write(live, buf, 16, UINT64_MAX), -ENOSPC);
	CU_ASSERT_EQUAL(mf_live_write(live, buf, 0, 8192), 0);
	CU_ASSERT_EQUAL(mf_live_write(live, buf, 16, 8182), 10);
	CU_ASSERT_EQUAL(mf_live_read(live, buf, 16, 8192), 0);
	CU_ASSERT_EQUAL(mf_live_read(live, buf, 16, UINT64_MAX), 0);
	CU_ASSERT_EQUAL(mf_live_read(live, buf, 16, 8187), 5);
	CU_ASSERT_EQUAL(memcmp(buf, "56789", 5), 0);
	mf_live_put(live);
	fixture_end(m);
}

/* Pages that somebody else has written to show nothing of it, however they are reached first. */
static void nothing_of_earlier_owners_is_shown(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("old", UINT64_MAX);
	char page[4096], buf[2 * 4096];
	struct mf_live *live;

	request.partial = true;
	request.page.gfp |= MEMFS___GFP_MEMALLOC;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "old");
	memset(page, 'S', sizeof(page));
	for (size_t i = 0; i < live->nr_blocks; i++)
		memcpy(mf_page_address(m->page, live->blocks[i].v), page, sizeof(page));
	mf_live_put(live);
	CU_ASSERT_EQUAL(do_free(m, "old", 0), 0);

	request = request_of("new", 4);
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "new");
	CU_ASSERT_EQUAL(*(char *)mf_page_address(m->page, live->blocks[0].v), 'S');
	CU_ASSERT_EQUAL(mf_live_write(live, "mine", 4, 4096 + 10), 4);
	CU_ASSERT_EQUAL(mf_live_read(live, buf, sizeof(buf), 0), sizeof(buf));
	CU_ASSERT_TRUE(all_zero(buf, 4096 + 10));
	CU_ASSERT_EQUAL(memcmp(buf + 4096 + 10, "mine", 4), 0);
	CU_ASSERT_TRUE(all_zero(buf + 4096 + 14, sizeof(buf) - 4096 - 14));
	/* only what was looked at has been cleared */
	CU_ASSERT_EQUAL(*(char *)mf_page_address(m->page, live->blocks[3].v), 'S');
	CU_ASSERT_EQUAL(mf_live_read(live, buf, 1, 3 * 4096), 1);
	CU_ASSERT_TRUE(all_zero(mf_page_address(m->page, live->blocks[3].v), 4096));
	mf_live_put(live);
	fixture_end(m);
}

static void touch_and_zero_clear_at_once(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("old", 64);
	struct mf_live *live;

	for (int round = 0; round < 2; round++) {
		request = request_of("a", 64);
		request.touch = round == 0;
		request.page.gfp |= round == 1 ? MEMFS___GFP_ZERO : 0;
		CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
		live = get(m, "a");
		CU_ASSERT_TRUE(live->cleared);
		for (size_t i = 0; i < 64; i++) {
			char *bytes = mf_page_address(m->page, live->blocks[i].v);

			CU_ASSERT_TRUE(all_zero(bytes, 4096));
			memset(bytes, 'S', 4096);
		}
		mf_live_put(live);
		CU_ASSERT_EQUAL(mf_page_resident(m->page, 0), 64 * 4096);
		CU_ASSERT_EQUAL(do_free(m, "a", 0), 0);
	}
	fixture_end(m);
}

/* --- where it lies --- */

static void the_map_shows_runs(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = request_of("m", 4);
	struct mf_live *live;
	memfs_pfn blocks[4];

	request.page.order = 2;
	request.bulk = false;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "m");
	memcpy(blocks, live->blocks, sizeof(blocks));
	/* Known places instead: two neighbours, a step back, and the first block of the other node. */
	live->blocks[0].v = 96;
	live->blocks[1].v = 100;
	live->blocks[2].v = NODE_PAGES - 4;
	live->blocks[3].v = NODE_PAGES;
	CU_ASSERT_TRUE(
		shows(live, mf_live_map, "0 96 8 0 Normal\n8 16380 4 0 Normal\n12 16384 4 1 Normal\n"));
	CU_ASSERT_TRUE(shows(live, mf_live_placement, "node0 12\nnode1 4\n"));
	memcpy(live->blocks, blocks, sizeof(blocks));
	mf_live_put(live);
	fixture_end(m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(bytes_go_through_the_blocks),
	UNIT_TEST(bytes_end_with_the_allocation),
	UNIT_TEST(nothing_of_earlier_owners_is_shown),
	UNIT_TEST(touch_and_zero_clear_at_once),
	UNIT_TEST(the_map_shows_runs),
};

UNIT_MAIN("live_data", tests)
