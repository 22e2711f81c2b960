/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The buddy allocator of one zone, with exact numbers.
 */
#include "page/buddy_tables.h"
#include "unit.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

static bool out_of_memory;

static void *meta_alloc(struct mf_plat *plat, size_t bytes)
{
	void *at;

	(void)plat;
	if (out_of_memory)
		return NULL;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

static void meta_free(struct mf_plat *plat, void *at, size_t bytes)
{
	(void)plat;
	munmap(at, bytes);
}

static const struct mf_plat_ops plat_ops = { .meta_alloc = meta_alloc, .meta_free = meta_free };
static struct mf_plat plat = { &plat_ops };
static struct mf_buddy buddy;

static void make(uint32_t start_pfn, uint64_t nr_pages)
{
	CU_ASSERT_EQUAL_FATAL(mf_buddy_init(&buddy, &plat, start_pfn, nr_pages), 0);
}

static void check(void)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	unsigned wrong = mf_buddy_check(&buddy, "", &out);

	CU_ASSERT_EQUAL(wrong, 0);
	if (wrong)
		printf("\n%s", out.data);
	mf_outbuf_free(&out);
}

static void finish(void)
{
	check();
	mf_buddy_destroy(&buddy);
}

/* Compares one type's row of buddyinfo, given as text of 11 numbers. */
static void expect_free(enum mf_migrate_type type, const char *expected)
{
	char text[256];
	int n = 0;

	for (unsigned order = 0; order < MF_NR_ORDERS; order++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, order ? " %" PRIu64 : "%" PRIu64,
			      buddy.nr_free[type][order]);
	CU_ASSERT_STRING_EQUAL(text, expected);
	if (strcmp(text, expected))
		printf("\nnr_free %s, expected %s\n", text, expected);
}

static uint32_t take(enum mf_migrate_type type, unsigned order)
{
	uint32_t pfn = UINT32_MAX;

	CU_ASSERT_TRUE(mf_buddy_take(&buddy, type, order, &pfn));
	return pfn;
}

static void test_init(void)
{
	out_of_memory = true;
	CU_ASSERT_EQUAL(mf_buddy_init(&buddy, &plat, 0, 1024), -ENOMEM);
	out_of_memory = false;
	CU_ASSERT_EQUAL(mf_buddy_init(&buddy, &plat, 0, 0), -EINVAL);
	CU_ASSERT_EQUAL(mf_buddy_init(&buddy, &plat, UINT32_MAX, 2), -EINVAL);
	mf_buddy_destroy(&buddy); /* of nothing */

	make(4096, 4096);
	CU_ASSERT_EQUAL(buddy.nr_free_pages, 4096);
	CU_ASSERT_EQUAL(buddy.nr_lines, 8);
	CU_ASSERT_EQUAL(buddy.first_line, 8);
	CU_ASSERT_EQUAL(buddy.nr_blocks[MF_MOVABLE], 8);
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 4");
	finish();
	make(UINT32_MAX - 1023, 1024); /* the last pages there can be */
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 1");
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 10), UINT32_MAX - 1023);
	mf_buddy_give(&buddy, UINT32_MAX - 1023, 10);
	finish();
}

static void test_odd_ends(void)
{
	/* Pages 515..2059: 509 of line 1, lines 2 and 3, 12 of line 4. */
	make(515, 509 + 1024 + 12);
	CU_ASSERT_EQUAL(buddy.nr_free_pages, 1545);
	CU_ASSERT_EQUAL(buddy.nr_lines, 4);
	CU_ASSERT_EQUAL(buddy.nr_blocks[MF_MOVABLE], 4);
	expect_free(MF_MOVABLE, "1 0 2 2 1 1 1 1 1 0 1");
	CU_ASSERT_FALSE(mf_buddy_page_is_free(&buddy, 514));
	CU_ASSERT_TRUE(mf_buddy_page_is_free(&buddy, 515));
	CU_ASSERT_TRUE(mf_buddy_page_is_free(&buddy, 2059));
	CU_ASSERT_FALSE(mf_buddy_page_is_free(&buddy, 2060));
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 2),
			2056); /* line 4: its largest, order 3, is the smallest that serves */
	finish();
	make(512, 512); /* one line, an odd one: no pair */
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 1 0");
	finish();
	make(700, 3); /* both ends in one line */
	expect_free(MF_MOVABLE, "1 1 0 0 0 0 0 0 0 0 0");
	finish();
}

static void test_large_zone_is_lazy(void)
{
	make(0, 1ull << 32); /* 16 TiB */
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 4194304");
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 0), 0);
	expect_free(MF_MOVABLE, "1 1 1 1 1 1 1 1 1 1 4194303");
	mf_buddy_give(&buddy, 0, 0);
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 4194304");
	mf_buddy_destroy(&buddy);
}

static void test_split_and_merge(void)
{
	make(0, 2048);
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 0), 0);
	expect_free(MF_MOVABLE, "1 1 1 1 1 1 1 1 1 1 1");
	CU_ASSERT_EQUAL(buddy.nr_free_pages, 2047);
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 3), 8);
	expect_free(MF_MOVABLE, "1 1 1 0 1 1 1 1 1 1 1");
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 3), 16); /* splits order 4 */
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 7), 128);
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 9), 512);
	expect_free(MF_MOVABLE, "1 1 1 1 0 1 1 0 1 0 1");
	check();
	mf_buddy_give(&buddy, 8, 3);
	mf_buddy_give(&buddy, 512, 9);
	mf_buddy_give(&buddy, 128, 7);
	mf_buddy_give(&buddy, 0, 0);
	expect_free(MF_MOVABLE, "0 0 0 1 1 1 1 1 1 1 1");
	mf_buddy_give(&buddy, 16, 3);
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 2");
	CU_ASSERT_EQUAL(buddy.nr_free_pages, 2048);
	finish();
}

static void test_every_order(void)
{
	make(0, 4096);
	for (unsigned order = 0; order <= 10; order++) {
		uint32_t first = take(MF_MOVABLE, order), second = take(MF_MOVABLE, order);

		CU_ASSERT_EQUAL(first, 0);
		CU_ASSERT_EQUAL(second, 1u << order);
		CU_ASSERT_EQUAL(buddy.nr_free_pages, 4096 - (2u << order));
		check();
		mf_buddy_give(&buddy, first, order);
		CU_ASSERT_EQUAL(buddy.nr_free[MF_MOVABLE][order], order == 10 ? 3 : 1);
		mf_buddy_give(&buddy, second, order);
		expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 4");
	}
	finish();
}

static void test_best_fit(void)
{
	make(0, 4096);
	for (unsigned i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(take(MF_MOVABLE, 9), 512 * i);
	mf_buddy_give(&buddy, 0 * 512 + 256, 8);
	mf_buddy_give(&buddy, 3 * 512 + 64, 3);
	mf_buddy_give(&buddy, 5 * 512 + 8, 2);
	mf_buddy_give(&buddy, 5 * 512 + 320, 0);
	mf_buddy_give(&buddy, 6 * 512, 2);
	expect_free(MF_MOVABLE, "1 0 2 1 0 0 0 0 1 0 0");
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 0),
			5 * 512 + 320); /* the line of the smallest largest, its smallest */
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 2), 5 * 512 + 8);
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 1), 6 * 512);
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 2), 3 * 512 + 64);
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 3), 256);
	expect_free(MF_MOVABLE, "0 1 1 1 1 1 1 1 0 0 0");
	CU_ASSERT_FALSE(mf_buddy_has(&buddy, MF_MOVABLE, 8));
	CU_ASSERT_TRUE(mf_buddy_has(&buddy, MF_MOVABLE, 7));
	finish();
}

static void test_take_failures(void)
{
	uint32_t pfn = 77;

	make(0, 1024);
	CU_ASSERT_FALSE(mf_buddy_take(&buddy, MF_MOVABLE, 11, &pfn));
	CU_ASSERT_FALSE(mf_buddy_take(&buddy, MF_UNMOVABLE, 0, &pfn));
	CU_ASSERT_FALSE(mf_buddy_has(&buddy, MF_UNMOVABLE, 0));
	CU_ASSERT_FALSE(mf_buddy_has(&buddy, MF_MOVABLE, 11));
	CU_ASSERT_FALSE(mf_buddy_find_line(&buddy, MF_RECLAIMABLE, &pfn));
	CU_ASSERT_FALSE(mf_buddy_find_free_line(&buddy, MF_RECLAIMABLE, &pfn));
	CU_ASSERT_EQUAL(mf_buddy_take_bulk(&buddy, MF_HIGHATOMIC, 1, &pfn), 0);
	CU_ASSERT_EQUAL(pfn, 77);
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 10), 0);
	CU_ASSERT_FALSE(mf_buddy_take(&buddy, MF_MOVABLE, 0, &pfn));
	CU_ASSERT_EQUAL(mf_buddy_take_bulk(&buddy, MF_MOVABLE, 5, &pfn), 0);
	CU_ASSERT_EQUAL(buddy.nr_free_pages, 0);
	CU_ASSERT_EQUAL(pfn, 77);
	finish();
}

static void test_take_bulk(void)
{
	static uint32_t pfns[4096];

	make(0, 2048);
	CU_ASSERT_EQUAL(mf_buddy_take_bulk(&buddy, MF_MOVABLE, 0, pfns), 0);
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 2");
	CU_ASSERT_EQUAL(mf_buddy_take_bulk(&buddy, MF_MOVABLE, 63, pfns), 63);
	for (unsigned i = 0; i < 63; i++)
		CU_ASSERT_EQUAL(pfns[i], i);
	expect_free(MF_MOVABLE, "1 0 0 0 0 0 1 1 1 1 1");
	CU_ASSERT_EQUAL(mf_buddy_take_bulk(&buddy, MF_MOVABLE, 66, pfns), 66);
	CU_ASSERT_EQUAL(pfns[0], 63);
	CU_ASSERT_EQUAL(pfns[65], 128);
	expect_free(MF_MOVABLE, "1 1 1 1 1 1 1 0 1 1 1");
	CU_ASSERT_EQUAL(buddy.nr_free_pages, 2048 - 129);
	check();
	CU_ASSERT_EQUAL(mf_buddy_take_bulk(&buddy, MF_MOVABLE, 4096, pfns), 2048 - 129);
	CU_ASSERT_EQUAL(pfns[0], 129);
	CU_ASSERT_EQUAL(pfns[2048 - 130], 2047);
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 0");
	finish();
}

static void test_bulk_keeps_large_blocks(void)
{
	static uint32_t pfns[512];

	make(0, 512);
	CU_ASSERT_EQUAL(mf_buddy_take_bulk(&buddy, MF_MOVABLE, 512, pfns), 512);
	mf_buddy_give(&buddy, 0, 5);	  /* row 0: an order 5 */
	mf_buddy_give(&buddy, 64 + 1, 0); /* row 1: scattered */
	mf_buddy_give(&buddy, 64 + 8, 1);
	mf_buddy_give(&buddy, 256, 8); /* rows 4..7 */
	expect_free(MF_MOVABLE, "1 1 0 0 0 1 0 0 1 0 0");
	CU_ASSERT_EQUAL(mf_buddy_take_bulk(&buddy, MF_MOVABLE, 2, pfns), 2);
	CU_ASSERT_EQUAL(pfns[0], 65);
	CU_ASSERT_EQUAL(pfns[1], 72);
	expect_free(MF_MOVABLE, "1 0 0 0 0 1 0 0 1 0 0");
	CU_ASSERT_EQUAL(mf_buddy_take_bulk(&buddy, MF_MOVABLE, 17, pfns), 17);
	CU_ASSERT_EQUAL(pfns[0], 73);
	CU_ASSERT_EQUAL(pfns[1], 0);
	expect_free(MF_MOVABLE, "0 0 0 0 1 0 0 0 1 0 0");
	finish();
}

static void run_give_bulk(bool fast)
{
	static uint32_t pfns[2048];
	uint32_t pfn;

	make(0, 2048);
	if (!fast)
		buddy.tables->fast = false;
	CU_ASSERT_EQUAL_FATAL(mf_buddy_take_bulk(&buddy, MF_MOVABLE, 2048, pfns), 2048);
	mf_buddy_give_bulk(&buddy, 0, pfns);
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 0");
	mf_buddy_give_bulk(&buddy, 7, pfns + 1); /* a group: pages 1..7 */
	expect_free(MF_MOVABLE, "1 1 1 0 0 0 0 0 0 0 0");
	mf_buddy_give_bulk(&buddy, 1, pfns);
	expect_free(MF_MOVABLE, "0 0 0 1 0 0 0 0 0 0 0");
	mf_buddy_give_bulk(&buddy, 1016, pfns + 8);
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 1");
	CU_ASSERT_EQUAL(buddy.nr_free_pages, 1024);
	check();
	for (unsigned i = 0; i < 1024; i++) /* 769 has no factor in common with 1024 */
		pfns[i] = 1024 + i * 769 % 1024;
	mf_buddy_give_bulk(&buddy, 1023, pfns);
	pfn = pfns[1023];
	CU_ASSERT_EQUAL(pfn, 1279);
	expect_free(MF_MOVABLE, "1 1 1 1 1 1 1 1 1 1 1");
	mf_buddy_give_bulk(&buddy, 1, &pfn);
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 2");
	finish();
}

static void test_give_bulk(void)
{
	run_give_bulk(true);
	run_give_bulk(false);
}

static void test_types(void)
{
	make(0, 2048);
	mf_buddy_set_type(&buddy, 700, MF_UNMOVABLE); /* of a free pair: both lines */
	CU_ASSERT_EQUAL(mf_buddy_type(&buddy, 0), MF_UNMOVABLE);
	CU_ASSERT_EQUAL(mf_buddy_type(&buddy, 1023), MF_UNMOVABLE);
	CU_ASSERT_EQUAL(mf_buddy_type(&buddy, 1024), MF_MOVABLE);
	CU_ASSERT_EQUAL(buddy.nr_blocks[MF_UNMOVABLE], 2);
	CU_ASSERT_EQUAL(buddy.nr_blocks[MF_MOVABLE], 2);
	expect_free(MF_UNMOVABLE, "0 0 0 0 0 0 0 0 0 0 1");
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 1");
	CU_ASSERT_EQUAL(take(MF_UNMOVABLE, 4), 0);
	mf_buddy_set_type(&buddy, 0, MF_RECLAIMABLE); /* a partly free line goes alone */
	expect_free(MF_RECLAIMABLE, "0 0 0 0 1 1 1 1 1 0 0");
	expect_free(MF_UNMOVABLE, "0 0 0 0 0 0 0 0 0 1 0");
	check();
	mf_buddy_give(&buddy, 0, 4); /* joins, and its type wins */
	expect_free(MF_RECLAIMABLE, "0 0 0 0 0 0 0 0 0 0 1");
	expect_free(MF_UNMOVABLE, "0 0 0 0 0 0 0 0 0 0 0");
	CU_ASSERT_EQUAL(buddy.nr_blocks[MF_RECLAIMABLE], 2);
	CU_ASSERT_EQUAL(buddy.nr_blocks[MF_UNMOVABLE], 0);
	CU_ASSERT_EQUAL(take(MF_RECLAIMABLE, 10), 0);
	mf_buddy_set_type(&buddy, 0, MF_MOVABLE); /* a full line */
	CU_ASSERT_EQUAL(mf_buddy_type(&buddy, 511), MF_MOVABLE);
	CU_ASSERT_EQUAL(mf_buddy_type(&buddy, 512), MF_RECLAIMABLE);
	mf_buddy_give(&buddy, 0, 10);
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 2");
	CU_ASSERT_EQUAL(buddy.nr_blocks[MF_MOVABLE], 4);
	finish();
}

static void test_highatomic(void)
{
	uint32_t pfn;

	make(0, 2048);
	mf_buddy_set_type(&buddy, 0, MF_HIGHATOMIC);
	expect_free(MF_HIGHATOMIC, "0 0 0 0 0 0 0 0 0 1 0");
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 1 1");
	CU_ASSERT_TRUE(mf_buddy_find_free_line(&buddy, MF_HIGHATOMIC, &pfn) && pfn == 0);
	CU_ASSERT_TRUE(mf_buddy_find_free_line(&buddy, MF_MOVABLE, &pfn) && pfn == 512);
	CU_ASSERT_EQUAL(take(MF_HIGHATOMIC, 0), 0);
	CU_ASSERT_FALSE(mf_buddy_find_free_line(&buddy, MF_HIGHATOMIC, &pfn));
	CU_ASSERT_TRUE(mf_buddy_find_line(&buddy, MF_HIGHATOMIC, &pfn) && pfn == 0);
	mf_buddy_give(&buddy, 0, 0); /* does not join its neighbour */
	expect_free(MF_HIGHATOMIC, "0 0 0 0 0 0 0 0 0 1 0");
	check();
	mf_buddy_set_type(&buddy, 512, MF_HIGHATOMIC); /* two of a kind */
	expect_free(MF_HIGHATOMIC, "0 0 0 0 0 0 0 0 0 0 1");
	mf_buddy_set_type(&buddy, 0, MF_MOVABLE);
	expect_free(MF_HIGHATOMIC, "0 0 0 0 0 0 0 0 0 1 0");
	mf_buddy_set_type(&buddy, 512, MF_MOVABLE);
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 2");
	CU_ASSERT_EQUAL(buddy.nr_blocks[MF_MOVABLE], 4);
	finish();
}

static bool fall_back(enum mf_migrate_type type, unsigned order, bool nofragment, uint32_t *pfn,
		      struct mf_fallback_result *result)
{
	memset(result, 0xff, sizeof(*result));
	return mf_buddy_take_fallback(&buddy, type, order, nofragment, pfn, result);
}

static void test_claim_pair(void)
{
	struct mf_fallback_result result;
	uint32_t pfn;

	make(0, 2048);
	CU_ASSERT_TRUE(fall_back(MF_UNMOVABLE, 0, true, &pfn, &result));
	CU_ASSERT_EQUAL(pfn, 0);
	CU_ASSERT_TRUE(result.claimed);
	CU_ASSERT_FALSE(result.boost);
	CU_ASSERT_EQUAL(buddy.nr_blocks[MF_UNMOVABLE], 2);
	expect_free(MF_UNMOVABLE, "1 1 1 1 1 1 1 1 1 1 0");
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 1");
	finish();
}

static void test_claim_below_pageblock(void)
{
	struct mf_fallback_result result;
	uint32_t pfn;

	make(0, 512);
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 8), 0); /* 256 pages free: just enough */
	CU_ASSERT_FALSE(fall_back(MF_UNMOVABLE, 3, true, &pfn, &result));
	CU_ASSERT_FALSE(result.claimed);
	CU_ASSERT_TRUE(fall_back(MF_UNMOVABLE, 3, false, &pfn, &result));
	CU_ASSERT_EQUAL(pfn, 256);
	CU_ASSERT_TRUE(result.claimed);
	CU_ASSERT_TRUE(result.boost);
	CU_ASSERT_EQUAL(mf_buddy_type(&buddy, 0), MF_UNMOVABLE);
	expect_free(MF_UNMOVABLE, "0 0 0 1 1 1 1 1 0 0 0");
	finish();
}

static void test_steal(void)
{
	struct mf_fallback_result result;
	uint32_t pfn;

	make(0, 512);
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 8), 0);
	CU_ASSERT_EQUAL(take(MF_MOVABLE, 0), 256); /* 255 free: not half */
	CU_ASSERT_TRUE(fall_back(MF_UNMOVABLE, 1, false, &pfn, &result));
	CU_ASSERT_EQUAL(pfn, 258);
	CU_ASSERT_FALSE(result.claimed);
	CU_ASSERT_FALSE(result.boost);
	CU_ASSERT_EQUAL(mf_buddy_type(&buddy, 258), MF_MOVABLE);
	expect_free(MF_MOVABLE, "1 0 1 1 1 1 1 1 0 0 0");
	CU_ASSERT_FALSE(fall_back(MF_UNMOVABLE, 8, false, &pfn, &result));
	CU_ASSERT_FALSE(fall_back(MF_UNMOVABLE, 11, false, &pfn, &result));
	finish();
}

static void test_fallback_order(void)
{
	struct mf_fallback_result result;
	uint32_t pfn;

	make(0, 3 * 1024);
	mf_buddy_set_type(&buddy, 1024, MF_UNMOVABLE);
	mf_buddy_set_type(&buddy, 2048, MF_RECLAIMABLE);
	CU_ASSERT_EQUAL(take(MF_UNMOVABLE, 10), 1024);
	CU_ASSERT_TRUE(fall_back(MF_UNMOVABLE, 10, false, &pfn, &result)); /* RECLAIMABLE before MOVABLE */
	CU_ASSERT_EQUAL(pfn, 2048);
	CU_ASSERT_EQUAL(buddy.nr_blocks[MF_UNMOVABLE], 4);
	CU_ASSERT_TRUE(fall_back(MF_RECLAIMABLE, 10, false, &pfn, &result)); /* none UNMOVABLE: MOVABLE */
	CU_ASSERT_EQUAL(pfn, 0);
	CU_ASSERT_FALSE(fall_back(MF_MOVABLE, 0, false, &pfn, &result));
	/* A used-up UNMOVABLE line for RECLAIMABLE: everything in it is compatible. */
	mf_buddy_give(&buddy, 1024, 0);
	CU_ASSERT_TRUE(fall_back(MF_RECLAIMABLE, 0, false, &pfn, &result));
	CU_ASSERT_EQUAL(pfn, 1024);
	CU_ASSERT_TRUE(result.claimed && result.boost);
	CU_ASSERT_EQUAL(mf_buddy_type(&buddy, 1024), MF_RECLAIMABLE);
	/* MOVABLE claims nothing below order 4, and steals. */
	mf_buddy_give(&buddy, 2048, 3);
	CU_ASSERT_TRUE(fall_back(MF_MOVABLE, 0, false, &pfn, &result));
	CU_ASSERT_EQUAL(pfn, 2048);
	CU_ASSERT_FALSE(result.claimed);
	finish();
}

static void test_fallback_never_highatomic(void)
{
	struct mf_fallback_result result;
	uint32_t pfn;

	make(0, 1024);
	mf_buddy_set_type(&buddy, 0, MF_HIGHATOMIC);
	mf_buddy_set_type(&buddy, 512, MF_HIGHATOMIC);
	CU_ASSERT_FALSE(fall_back(MF_MOVABLE, 0, false, &pfn, &result));
	CU_ASSERT_FALSE(fall_back(MF_UNMOVABLE, 0, false, &pfn, &result));
	CU_ASSERT_FALSE(fall_back(MF_HIGHATOMIC, 0, false, &pfn, &result));
	finish();
}

static void test_partial_line_not_claimed(void)
{
	struct mf_fallback_result result;
	uint32_t pfn;

	make(64, 448); /* 448 of a pageblock: more than half, but not all in the zone */
	CU_ASSERT_TRUE(fall_back(MF_UNMOVABLE, 0, false, &pfn, &result));
	CU_ASSERT_FALSE(result.claimed);
	CU_ASSERT_EQUAL(pfn, 64);
	CU_ASSERT_EQUAL(mf_buddy_type(&buddy, 64), MF_MOVABLE);
	finish();
}

static void test_trim(void)
{
	uint32_t pfns[4], cursor = 0, a, b;

	make(0, 2048);
	mf_buddy_set_stamp(&buddy, 65530);
	CU_ASSERT_EQUAL(mf_buddy_isolate(&buddy, 65530, 0, 9, &cursor, 4, pfns), 0); /* nothing dirty */
	a = take(MF_MOVABLE, 0);
	b = take(MF_MOVABLE, 9);
	CU_ASSERT_EQUAL(b, 512);
	CU_ASSERT_EQUAL(mf_buddy_dirty_lines(&buddy), 2);
	mf_buddy_give(&buddy, a, 0);
	mf_buddy_set_stamp(&buddy, 2); /* 8 later, across the end of the numbers */
	mf_buddy_give(&buddy, b, 9);
	CU_ASSERT_EQUAL(mf_buddy_isolate(&buddy, 3, 10, 9, &cursor, 4, pfns), 0);
	CU_ASSERT_EQUAL(mf_buddy_isolate(&buddy, 4, 10, 9, &cursor, 4, pfns), 1);
	CU_ASSERT_EQUAL(pfns[0], 0);
	CU_ASSERT_EQUAL(cursor, 0);
	CU_ASSERT_EQUAL(buddy.nr_free_pages, 1536);
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 1 1");
	CU_ASSERT_FALSE(mf_buddy_page_is_free(&buddy, 0));
	CU_ASSERT_EQUAL(mf_buddy_dirty_lines(&buddy), 2);
	check();
	mf_buddy_release(&buddy, 0, false); /* refused: dirty, and young again */
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 2");
	CU_ASSERT_EQUAL(mf_buddy_isolate(&buddy, 4, 10, 9, &cursor, 4, pfns), 0);
	CU_ASSERT_EQUAL(mf_buddy_isolate(&buddy, 4, 2, 9, &cursor, 1, pfns), 1);
	CU_ASSERT_EQUAL(cursor, 1);
	CU_ASSERT_EQUAL(mf_buddy_isolate(&buddy, 4, 2, 9, &cursor, 1, pfns + 1), 1);
	CU_ASSERT_EQUAL(mf_buddy_isolate(&buddy, 4, 2, 9, &cursor, 1, pfns + 2), 0);
	CU_ASSERT_EQUAL(cursor, 0);
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 1");
	mf_buddy_release(&buddy, pfns[0], true);
	mf_buddy_release(&buddy, pfns[1], true);
	mf_buddy_release(&buddy, pfns[1], true); /* not isolated any more: nothing */
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 0 2");
	CU_ASSERT_EQUAL(mf_buddy_dirty_lines(&buddy), 0);
	CU_ASSERT_EQUAL(buddy.nr_free_pages, 2048);
	finish();
}

static void test_trim_budget(void)
{
	uint32_t pfns[300], cursor = 0, pfn;

	make(0, 256 * 512);
	for (unsigned i = 0; i < 256; i++)
		take(MF_MOVABLE, 9);
	for (unsigned i = 0; i < 256; i += 2)
		mf_buddy_give(&buddy, i * 512, 9);
	CU_ASSERT_EQUAL(mf_buddy_isolate(&buddy, 0, 0, 1, &cursor, 300, pfns), 32); /* one word of 64 lines */
	CU_ASSERT_EQUAL(cursor, 64);
	CU_ASSERT_EQUAL(pfns[31], 62 * 512);
	CU_ASSERT_EQUAL(mf_buddy_isolate(&buddy, 0, 0, 2, &cursor, 300, pfns + 32), 64);
	CU_ASSERT_EQUAL(cursor, 192);
	CU_ASSERT_EQUAL(mf_buddy_isolate(&buddy, 0, 0, 2, &cursor, 300, pfns + 96), 32);
	CU_ASSERT_EQUAL(cursor, 0);
	CU_ASSERT_FALSE(mf_buddy_take(&buddy, MF_MOVABLE, 0, &pfn));
	CU_ASSERT_EQUAL(buddy.nr_free_pages, 0);
	check();
	for (unsigned i = 0; i < 128; i++)
		mf_buddy_release(&buddy, pfns[i], true);
	expect_free(MF_MOVABLE, "0 0 0 0 0 0 0 0 0 128 0");
	finish();
}

/* The check sees what it should see. */
static void test_check_complains(void)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	uint32_t page;

	make(0, 2048);
	page = take(MF_MOVABLE, 0);
	buddy.nr_free[MF_MOVABLE][3]++;
	CU_ASSERT_EQUAL(mf_buddy_check(&buddy, "zone 0: ", &out), 1);
	CU_ASSERT_STRING_EQUAL(out.data, "zone 0: free blocks of type 1 order 3: 2, counted 1\n");
	buddy.nr_free[MF_MOVABLE][3]--;
	buddy.nr_free_pages--;
	CU_ASSERT_EQUAL(mf_buddy_check(&buddy, "", &out), 1);
	buddy.nr_free_pages++;
	buddy.nr_blocks[MF_HIGHATOMIC]++;
	CU_ASSERT_EQUAL(mf_buddy_check(&buddy, "", &out), 1);
	buddy.nr_blocks[MF_HIGHATOMIC]--;
	buddy.tables->lines[0].loss++;
	CU_ASSERT_EQUAL(mf_buddy_check(&buddy, "", &out), 1);
	buddy.tables->lines[0].loss--;
	buddy.tables->lines[0].flags ^= MF_LINE_DIRTY;
	CU_ASSERT_TRUE(mf_buddy_check(&buddy, "", &out) >= 1);
	buddy.tables->lines[0].flags ^= MF_LINE_DIRTY;
	buddy.tables->rows[0].used[0] |= 1ull << 40;
	CU_ASSERT_TRUE(mf_buddy_check(&buddy, "", &out) >= 2);
	buddy.tables->rows[0].used[0] &= ~(1ull << 40);
	mf_queue_insert(&buddy.tables->queues[MF_UNMOVABLE][4], 2);
	CU_ASSERT_EQUAL(mf_buddy_check(&buddy, "", &out), 2);
	mf_queue_remove(&buddy.tables->queues[MF_UNMOVABLE][4], 2);
	mf_buddy_give(&buddy, page, 0);
	mf_outbuf_free(&out);
	finish();
}

static void test_queue(void)
{
	static uint64_t words[8192];
	struct mf_queue queue;

	CU_ASSERT_EQUAL(mf_queue_words(1), 1);
	CU_ASSERT_EQUAL(mf_queue_words(65), 3);
	CU_ASSERT_EQUAL(mf_queue_words(300000), 4688 + 74 + 2 + 1);
	mf_queue_init(&queue, words, 300000, false);
	CU_ASSERT_TRUE(mf_queue_empty(&queue));
	CU_ASSERT_TRUE(mf_queue_insert(&queue, 299999));
	CU_ASSERT_FALSE(mf_queue_insert(&queue, 70000));
	CU_ASSERT_EQUAL(mf_queue_first(&queue), 70000);
	CU_ASSERT_EQUAL(mf_queue_next(&queue, 70001), 299999);
	CU_ASSERT_EQUAL(mf_queue_next(&queue, 300000), MF_QUEUE_NONE);
	CU_ASSERT_FALSE(mf_queue_remove(&queue, 70000));
	CU_ASSERT_EQUAL(mf_queue_first(&queue), 299999);
	CU_ASSERT_EQUAL(mf_queue_count(&queue), 1);
	CU_ASSERT_EQUAL(mf_queue_check(&queue), 0);
	CU_ASSERT_TRUE(mf_queue_remove(&queue, 299999));
	CU_ASSERT_EQUAL(mf_queue_next(&queue, 0), MF_QUEUE_NONE);

	memset(words, 0, sizeof(words));
	mf_queue_init(&queue, words, 4097, true);
	CU_ASSERT_EQUAL(mf_queue_count(&queue), 4097);
	CU_ASSERT_EQUAL(mf_queue_check(&queue), 0);
	for (uint32_t i = 0; i < 4096; i++) {
		CU_ASSERT_EQUAL(mf_queue_first(&queue), i);
		CU_ASSERT_FALSE(mf_queue_remove(&queue, i));
	}
	CU_ASSERT_EQUAL(mf_queue_first(&queue), 4096);
	CU_ASSERT_TRUE(mf_queue_remove(&queue, 4096));
	CU_ASSERT_TRUE(mf_queue_empty(&queue));
	CU_ASSERT_EQUAL(mf_queue_check(&queue), 0);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_init),
	UNIT_TEST(test_odd_ends),
	UNIT_TEST(test_large_zone_is_lazy),
	UNIT_TEST(test_split_and_merge),
	UNIT_TEST(test_every_order),
	UNIT_TEST(test_best_fit),
	UNIT_TEST(test_take_failures),
	UNIT_TEST(test_take_bulk),
	UNIT_TEST(test_bulk_keeps_large_blocks),
	UNIT_TEST(test_give_bulk),
	UNIT_TEST(test_types),
	UNIT_TEST(test_highatomic),
	UNIT_TEST(test_claim_pair),
	UNIT_TEST(test_claim_below_pageblock),
	UNIT_TEST(test_steal),
	UNIT_TEST(test_fallback_order),
	UNIT_TEST(test_fallback_never_highatomic),
	UNIT_TEST(test_partial_line_not_claimed),
	UNIT_TEST(test_trim),
	UNIT_TEST(test_trim_budget),
	UNIT_TEST(test_check_complains),
	UNIT_TEST(test_queue),
};

UNIT_MAIN("buddy", tests)
