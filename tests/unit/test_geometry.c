/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sizes and orders of slabs against what a kernel 6.12 with four CPUs made of
 * the same requests, plain ones and ones with all debugging; its kmalloc
 * classes; which caches may be one; what is refused.
 *
 * Rows of slab-geometry.tsv are named for their request: kts_SIZE, and
 * kta_SIZE_ALIGN, the same with "hwcache_align" kth_SIZE_ALIGN.
 */
#include "data.h"
#include "memfs.h"
#include "slab/geometry.h"
#include "unit.h"

#include <errno.h>

#define KERNEL_CPUS 4
#define NR_PLAIN_ROWS 184
#define NR_DEBUG_ROWS 195
#define NR_KSIZE_ROWS 34

static struct mf_slab_geometry geometry_of(uint32_t size, uint32_t align, unsigned flags)
{
	struct mf_slab_geometry g;

	memset(&g, 0xff, sizeof(g));
	CU_ASSERT_EQUAL_FATAL(mf_slab_geometry(size, align, flags, false, KERNEL_CPUS, &g), 0);
	return g;
}

/* --- recorded rows --- */

static void compare(const char *row, const char *field, const char *want, uint64_t got)
{
	CU_ASSERT_EQUAL(strtoull(want, NULL, 10), got);
	if (strtoull(want, NULL, 10) != got)
		printf("%s: %s is %llu, recorded %s\n", row, field, (unsigned long long)got, want);
}

static void compare_row(char **fields, const struct mf_slab_geometry *g)
{
	compare(fields[0], "object_size", fields[1], g->object_size);
	compare(fields[0], "slab_size", fields[2], g->size);
	compare(fields[0], "align", fields[3], g->align);
	compare(fields[0], "order", fields[4], g->order);
	compare(fields[0], "objs_per_slab", fields[5], g->objects);
	compare(fields[0], "min_partial", fields[6], g->min_partial);
}

static void test_recorded_geometry(void)
{
	FILE *file = data_open("slab-geometry.tsv");
	char line[DATA_LINE], *fields[8];
	unsigned rows = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL_FATAL(data_row(file, line, fields, 8), 8);
	CU_ASSERT_STRING_EQUAL(fields[7], "cpu_partial");
	for (; data_row(file, line, fields, 8) == 8; rows++) {
		unsigned size = 0, align = 0;
		struct mf_slab_geometry g;

		CU_ASSERT_FATAL(sscanf(fields[0] + 4, "%u_%u", &size, &align) >= 1);
		g = geometry_of(size, align, fields[0][2] == 'h' ? MF_SLAB_FLAG(HWCACHE_ALIGN) : 0);
		compare_row(fields, &g);
		compare(fields[0], "cpu_partial", fields[7], g.cpu_partial);
	}
	CU_ASSERT_EQUAL(rows, NR_PLAIN_ROWS);
	fclose(file);
}

/* Red zones, poison and owners together; sizes differ where the least detail of the layout does. */
static void test_recorded_debugging(void)
{
	FILE *file = data_open("slab-debug-geometry.tsv");
	char line[DATA_LINE], *fields[7];
	unsigned rows = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL_FATAL(data_row(file, line, fields, 7), 7);
	for (; data_row(file, line, fields, 7) == 7; rows++) {
		struct mf_slab_geometry g =
			geometry_of((uint32_t)atoi(fields[1]), (uint32_t)atoi(fields[3]), MF_SLAB_DEBUG);

		compare_row(fields, &g);
		CU_ASSERT_EQUAL(g.cpu_partial, 0);
		CU_ASSERT_EQUAL(g.sheaf_capacity, 0);
	}
	CU_ASSERT_EQUAL(rows, NR_DEBUG_ROWS);
	fclose(file);
}

static void test_recorded_kmalloc(void)
{
	FILE *file = data_open("kmalloc-ksize.tsv");
	char line[DATA_LINE], *fields[2];
	unsigned rows = 0, larger = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL_FATAL(data_row(file, line, fields, 2), 2);
	for (; data_row(file, line, fields, 2) == 2; rows++) {
		uint64_t size = strtoull(fields[0], NULL, 10);
		int class = mf_kmalloc_class(size);

		if (!size) {
			CU_ASSERT_STRING_EQUAL(fields[1], "ZERO_SIZE_PTR=0000000000000010");
		} else if (strtoull(fields[1], NULL, 10) > 8192) {
			CU_ASSERT_EQUAL(class, -1);
			larger++;
		} else {
			CU_ASSERT_FATAL(class >= 0 && class < MF_NR_KMALLOC);
			compare(fields[0], "ksize", fields[1], mf_kmalloc_sizes[class]);
		}
	}
	CU_ASSERT_EQUAL(rows, NR_KSIZE_ROWS);
	CU_ASSERT_EQUAL(larger, 6);
	fclose(file);
}

/* Every size has the least class that holds it. */
static void test_every_class(void)
{
	static const char *const names[] = { "kmalloc-8",   "kmalloc-16",  "kmalloc-32",  "kmalloc-64",
					     "kmalloc-96",  "kmalloc-128", "kmalloc-192", "kmalloc-256",
					     "kmalloc-512", "kmalloc-1k",  "kmalloc-2k",  "kmalloc-4k",
					     "kmalloc-8k" };
	unsigned wrong = 0;

	for (uint64_t size = 1; size <= 8192; size++) {
		int class = mf_kmalloc_class(size);

		wrong += class < 0 || mf_kmalloc_sizes[class] < size ||
			 (class > 0 && mf_kmalloc_sizes[class - 1] >= size);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(mf_kmalloc_class(8193), -1);
	CU_ASSERT_EQUAL(mf_kmalloc_class(UINT64_MAX), -1);
	for (int class = 0; class < MF_NR_KMALLOC; class ++)
		CU_ASSERT_STRING_EQUAL(mf_kmalloc_names[class], names[class]);
}

/* --- worked cases --- */

/* size, order, objects, min_partial, cpu_partial in objects and in slabs */
static void test_worked_cases(void)
{
	static const unsigned cases[][6] = {
		{ 8, 0, 512, 5, 120, 1 },  { 64, 0, 64, 5, 120, 4 },  { 192, 0, 21, 5, 120, 12 },
		{ 256, 0, 16, 5, 52, 7 },  { 512, 1, 16, 5, 52, 7 },  { 700, 2, 23, 5, 52, 5 },
		{ 1024, 2, 16, 5, 24, 3 }, { 2048, 3, 16, 5, 24, 3 }, { 4096, 3, 8, 6, 6, 2 },
		{ 8192, 3, 4, 6, 6, 3 },   { 16384, 3, 2, 7, 6, 6 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mf_slab_geometry g = geometry_of(cases[i][0], 0, 0);

		CU_ASSERT_EQUAL(g.order, cases[i][1]);
		CU_ASSERT_EQUAL(g.objects, cases[i][2]);
		CU_ASSERT_EQUAL(g.min_partial, cases[i][3]);
		CU_ASSERT_EQUAL(g.cpu_partial, cases[i][4]);
		CU_ASSERT_EQUAL(g.cpu_partial_slabs, cases[i][5]);
		CU_ASSERT_EQUAL(mf_slab_cpu_partial_slabs(&g, g.cpu_partial), cases[i][5]);
	}
}

/* The least order holds one object, and is what a slab falls back to. */
static void test_least_order(void)
{
	struct mf_slab_geometry g = geometry_of(700, 0, 0);

	CU_ASSERT_EQUAL(g.min_order, 0);
	CU_ASSERT_EQUAL(g.min_objects, 5);
	CU_ASSERT_EQUAL(mf_slab_objects(704, 0), 5);
	CU_ASSERT_EQUAL(mf_slab_objects(704, 2), 23);
	g = geometry_of(40960, 0, 0);
	CU_ASSERT_EQUAL(g.min_order, 4);
	CU_ASSERT_EQUAL(g.order, 4);
	g = geometry_of(20480, 0, 0);
	CU_ASSERT_EQUAL(g.min_order, 3);
}

/* More CPUs want more objects in a slab. */
static void test_cpus(void)
{
	static const unsigned cases[][3] = { { 1, 0, 8 },  { 2, 1, 16 },  { 4, 1, 16 },
					     { 8, 2, 32 }, { 64, 2, 32 }, { 128, 3, 64 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mf_slab_geometry g;

		CU_ASSERT_EQUAL(mf_slab_geometry(512, 0, 0, false, cases[i][0], &g), 0);
		CU_ASSERT_EQUAL(g.order, cases[i][1]);
		CU_ASSERT_EQUAL(g.objects, cases[i][2]);
	}
}

/* Where the free pointer lies: in the middle, or behind what must not be touched. */
static void test_free_pointer(void)
{
	struct mf_slab_geometry g = geometry_of(104, 0, 0);

	CU_ASSERT_EQUAL(g.offset, 48);
	CU_ASSERT_EQUAL(g.size, 104);
	g = geometry_of(104, 0, MF_SLAB_FLAG(TYPESAFE_BY_RCU));
	CU_ASSERT_EQUAL(g.offset, 104);
	CU_ASSERT_EQUAL(g.size, 112);
	CU_ASSERT_EQUAL(mf_slab_geometry(104, 0, 0, true, KERNEL_CPUS, &g), 0);
	CU_ASSERT_EQUAL(g.offset, 104);
	g = geometry_of(1, 0, 0);
	CU_ASSERT_EQUAL(g.offset, 0);
	CU_ASSERT_EQUAL(g.size, 8);
	/* A red zone is a word of its own when rounding leaves none; a tiny object has no room inside. */
	g = geometry_of(104, 0, MF_SLAB_FLAG(RED_ZONE));
	CU_ASSERT_EQUAL(g.offset, 48);
	CU_ASSERT_EQUAL(g.inuse, 112);
	CU_ASSERT_EQUAL(g.red_left, 8);
	CU_ASSERT_EQUAL(g.size, 128);
	g = geometry_of(7, 0, MF_SLAB_FLAG(RED_ZONE));
	CU_ASSERT_EQUAL(g.inuse, 8);
	CU_ASSERT_EQUAL(g.offset, 8);
	g = geometry_of(104, 0, MF_SLAB_FLAG(STORE_USER));
	CU_ASSERT_EQUAL(g.track, 104);
	CU_ASSERT_EQUAL(g.size, 104 + 64);
}

/* --- refused --- */

static void test_refused(void)
{
	const uint32_t most = MEMFS_PAGE_SIZE << MEMFS_MAX_PAGE_ORDER;
	struct mf_slab_geometry g;

	CU_ASSERT_EQUAL(mf_slab_geometry(0, 0, 0, false, 4, &g), -EINVAL);
	CU_ASSERT_EQUAL(mf_slab_geometry(8, 3, 0, false, 4, &g), -EINVAL);
	CU_ASSERT_EQUAL(mf_slab_geometry(8, 2 * most, 0, false, 4, &g), -EINVAL);
	CU_ASSERT_EQUAL(mf_slab_geometry(8, 0, 1u << MF_NR_SLAB_FLAGS, false, 4, &g), -EINVAL);
	CU_ASSERT_EQUAL(mf_slab_geometry(most + 1, 0, 0, false, 4, &g), -EINVAL);
	CU_ASSERT_EQUAL(mf_slab_geometry(UINT32_MAX, 0, 0, false, 4, &g), -EINVAL);
	CU_ASSERT_EQUAL(mf_slab_geometry(most, 0, 0, false, 4, &g), 0);
	CU_ASSERT_EQUAL(g.order, MEMFS_MAX_PAGE_ORDER);
	CU_ASSERT_EQUAL(g.objects, 1);
	CU_ASSERT_EQUAL(mf_slab_geometry(most, 0, MF_SLAB_FLAG(RED_ZONE), false, 4, &g), -EINVAL);
	CU_ASSERT_EQUAL(mf_slab_geometry(8, most, 0, false, 4, &g), 0);
	CU_ASSERT_EQUAL(g.size, most);
}

/* --- merging --- */

static bool merges(uint32_t host, uint32_t host_align, unsigned host_flags, uint32_t size, uint32_t align,
		   unsigned flags)
{
	struct mf_slab_geometry h = geometry_of(host, host_align, host_flags),
				w = geometry_of(size, align, flags);

	return mf_slab_mergeable(&h, host_flags, false, &w, flags, false);
}

static void test_mergeable(void)
{
	/* Less than a word may be lost. */
	CU_ASSERT_TRUE(merges(64, 0, 0, 64, 0, 0));
	CU_ASSERT_TRUE(merges(64, 0, 0, 57, 0, 0));
	CU_ASSERT_FALSE(merges(64, 0, 0, 56, 0, 0));
	CU_ASSERT_FALSE(merges(64, 0, 0, 65, 0, 0));
	/* The host's objects must be aligned well enough, each of them. */
	CU_ASSERT_TRUE(merges(64, 64, 0, 64, 16, 0));
	CU_ASSERT_FALSE(merges(64, 8, 0, 64, 16, 0));
	CU_ASSERT_FALSE(merges(96, 32, 0, 96, 64, 0));
	CU_ASSERT_TRUE(merges(128, 0, MF_SLAB_FLAG(HWCACHE_ALIGN), 100, 0, MF_SLAB_FLAG(HWCACHE_ALIGN)));
	/* Their pages must be of one kind. */
	CU_ASSERT_FALSE(merges(64, 0, MF_SLAB_FLAG(RECLAIM_ACCOUNT), 64, 0, 0));
	CU_ASSERT_FALSE(merges(64, 0, 0, 64, 0, MF_SLAB_FLAG(RECLAIM_ACCOUNT)));
	CU_ASSERT_TRUE(merges(64, 0, MF_SLAB_FLAG(RECLAIM_ACCOUNT), 64, 0, MF_SLAB_FLAG(RECLAIM_ACCOUNT)));
}

static void test_never_mergeable(void)
{
	static const unsigned never[] = { MF_SLAB_FLAG(NO_MERGE),   MF_SLAB_FLAG(TYPESAFE_BY_RCU),
					  MF_SLAB_FLAG(POISON),	    MF_SLAB_FLAG(RED_ZONE),
					  MF_SLAB_FLAG(STORE_USER), MF_SLAB_FLAG(CONSISTENCY) };
	struct mf_slab_geometry g = geometry_of(64, 0, 0);

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		CU_ASSERT_FALSE(mf_slab_mergeable(&g, never[i], false, &g, 0, false));
		CU_ASSERT_FALSE(mf_slab_mergeable(&g, 0, false, &g, never[i], false));
		CU_ASSERT_FALSE(mf_slab_mergeable(&g, never[i], false, &g, never[i], false));
	}
	CU_ASSERT_FALSE(mf_slab_mergeable(&g, 0, true, &g, 0, false));
	CU_ASSERT_FALSE(mf_slab_mergeable(&g, 0, false, &g, 0, true));
	CU_ASSERT_TRUE(mf_slab_mergeable(&g, 0, false, &g, 0, false));
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_recorded_geometry),
	UNIT_TEST(test_recorded_debugging),
	UNIT_TEST(test_recorded_kmalloc),
	UNIT_TEST(test_every_class),
	UNIT_TEST(test_worked_cases),
	UNIT_TEST(test_least_order),
	UNIT_TEST(test_cpus),
	UNIT_TEST(test_free_pointer),
	UNIT_TEST(test_refused),
	UNIT_TEST(test_mergeable),
	UNIT_TEST(test_never_mergeable),
};

UNIT_MAIN("geometry", tests)
