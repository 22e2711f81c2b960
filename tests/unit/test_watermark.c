/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Watermarks, protection and list sizes, to the page, against worked and recorded numbers. */
#include "page/watermark.h"

#include "unit.h"
#include "data.h"

enum field {
	MACHINE,
	NODE,
	CPUS,
	ZONE,
	MANAGED,
	MIN_FREE,
	MIN,
	LOW,
	HIGH,
	PROMO,
	PROTECTION,
	BATCH,
	HIGH_MIN,
	HIGH_MAX,
	ORIGIN,
	NR_FIELDS
};

struct row {
	char line[DATA_LINE];
	char *fields[NR_FIELDS];
};

static struct row rows[64]; /* of one machine */
static int nr_rows;
static int nr_compared; /* numbers of the file that were compared */

#define NR_COMPARED 430 /* numbers in the file, counted apart from this program */

static const struct mf_watermark_knobs default_knobs = {
	.watermark_scale_factor = 10,
	.lowmem_reserve_ratio = { 256, 256, 32, 0 },
};

static int zone_type(const char *name)
{
	for (int type = 0; type < MF_NR_ZONE_TYPES; type++)
		if (!strcmp(mf_zone_names[type], name))
			return type;
	return -1;
}

/* A machine as its rows say; its zones have sizes that no topology text allows. */
static struct mf_topo *topo_of_rows(void)
{
	struct mf_topo *topo = calloc(1, sizeof(*topo));

	CU_ASSERT_PTR_NOT_NULL_FATAL(topo);
	for (int i = 0; i < nr_rows; i++) {
		char **fields = rows[i].fields;
		int id = atoi(fields[NODE]), type = zone_type(fields[ZONE]);
		struct mf_topo_node *node = topo->node[id];

		if (!node) {
			node = topo->node[id] = calloc(1, sizeof(*node));
			CU_ASSERT_PTR_NOT_NULL_FATAL(node);
			node->id = id;
			node->nr_cpus = (unsigned)atoi(fields[CPUS]);
			topo->nr_cpus += node->nr_cpus;
			topo->nodes |= mf_node_bit(id);
		}
		if (type < 0)
			continue;
		node->zone[type].nr_pages = strtoull(fields[MANAGED], NULL, 10);
		node->nr_pages += node->zone[type].nr_pages;
		topo->memory |= mf_node_bit(id);
	}
	return topo;
}

static void compare(const struct row *row, enum field field, uint64_t got)
{
	const char *want = row->fields[field];

	if (!strcmp(want, "-"))
		return;
	nr_compared++;
	CU_ASSERT_EQUAL(strtoull(want, NULL, 10), got);
	if (strtoull(want, NULL, 10) != got)
		printf("%s node %s %s: field %d is %llu\n", row->fields[MACHINE], row->fields[NODE],
		       row->fields[ZONE], (int)field, (unsigned long long)got);
}

static void compare_protection(const struct row *row, const struct mf_zone_marks *marks)
{
	unsigned long long want[MF_NR_ZONE_TYPES];

	if (!strcmp(row->fields[PROTECTION], "-"))
		return;
	nr_compared++;
	CU_ASSERT_EQUAL(data_numbers(row->fields[PROTECTION], want, MF_NR_ZONE_TYPES), MF_NR_ZONE_TYPES);
	for (int type = 0; type < MF_NR_ZONE_TYPES; type++)
		CU_ASSERT_EQUAL(want[type], marks->lowmem_reserve[type]);
}

static void check_row(const struct mf_topo *topo, const struct row *row)
{
	struct mf_watermark_knobs knobs = default_knobs;
	int type = zone_type(row->fields[ZONE]);
	struct mf_zone_marks marks;

	if (type < 0)
		return;
	knobs.min_free_kbytes = strtoull(row->fields[MIN_FREE], NULL, 10);
	if (strstr(row->fields[ORIGIN], "default min_free"))
		CU_ASSERT_EQUAL(mf_watermark_default_min_free(topo), knobs.min_free_kbytes);
	mf_watermark_zone(topo, atoi(row->fields[NODE]), type, &knobs, &marks);
	compare(row, MIN, marks.min);
	compare(row, LOW, marks.low);
	compare(row, HIGH, marks.high);
	compare(row, PROMO, marks.promo);
	compare(row, BATCH, marks.batch);
	compare(row, HIGH_MIN, marks.high_min);
	compare(row, HIGH_MAX, marks.high_max);
	compare_protection(row, &marks);
}

static void check_machine(void)
{
	struct mf_topo *topo = topo_of_rows();

	for (int i = 0; i < nr_rows; i++)
		check_row(topo, &rows[i]);
	mf_topo_destroy(topo);
	nr_rows = 0;
}

static void recorded_numbers(void)
{
	FILE *file = data_open("watermarks.tsv");
	struct row row;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	nr_rows = nr_compared = 0;
	while (data_row(file, row.line, row.fields, NR_FIELDS) == NR_FIELDS) {
		if (nr_rows && strcmp(rows[0].fields[MACHINE], row.fields[MACHINE]))
			check_machine();
		CU_ASSERT_FATAL(nr_rows < 64);
		rows[nr_rows] = row;
		for (int i = 0; i < NR_FIELDS; i++)
			rows[nr_rows].fields[i] = rows[nr_rows].line + (row.fields[i] - row.line);
		nr_rows++;
	}
	check_machine();
	fclose(file);
	CU_ASSERT_EQUAL(nr_compared, NR_COMPARED);
}

static struct mf_topo *topo_of(const char *text)
{
	struct mf_topo *topo = NULL;
	int error = mf_topo_parse_file(text, strlen(text), &topo, NULL, 0);

	CU_ASSERT_EQUAL_FATAL(error, 0);
	return topo;
}

static void min_free_bounds(void)
{
	struct mf_topo *small = topo_of("node 0 cpus 0 zones Normal=2M\n");
	struct mf_topo *large = topo_of("node 0 cpus 0 zones Normal=8T\n");
	struct mf_topo *movable = topo_of("node 0 cpus 0 zones Movable=8T\n");
	struct mf_topo *square =
		topo_of("node 0 cpus 0 zones DMA=32M,DMA32=32M,Movable=1G\nnode 1 cpus - zones Normal=36M\n");

	CU_ASSERT_EQUAL(mf_watermark_default_min_free(small), 181); /* isqrt(16 * 2048) */
	CU_ASSERT_EQUAL(mf_watermark_default_min_free(large), 262144);
	CU_ASSERT_EQUAL(mf_watermark_default_min_free(movable), 128);
	CU_ASSERT_EQUAL(mf_watermark_default_min_free(square),
			1280); /* exactly sqrt(16 * 102400): no Movable */
	mf_topo_destroy(small);
	mf_topo_destroy(large);
	mf_topo_destroy(movable);
	mf_topo_destroy(square);
}

static void protection_by_zone_above(void)
{
	struct mf_watermark_knobs knobs = default_knobs;
	struct mf_topo *topo = topo_of("node 0 cpus 0 zones DMA=16M,DMA32=112M,Normal=1G,Movable=512M\n"
				       "node 1 cpus 1 zones DMA32=2G,Normal=1G\n");
	struct mf_zone_marks marks;

	mf_watermark_zone(topo, 1, MF_ZONE_DMA32, &knobs, &marks);
	CU_ASSERT_EQUAL(marks.lowmem_reserve[MF_ZONE_DMA], 0);
	CU_ASSERT_EQUAL(marks.lowmem_reserve[MF_ZONE_DMA32], 0);
	CU_ASSERT_EQUAL(marks.lowmem_reserve[MF_ZONE_NORMAL], 1024);
	CU_ASSERT_EQUAL(marks.lowmem_reserve[MF_ZONE_MOVABLE], 1024);
	mf_watermark_zone(topo, 0, MF_ZONE_DMA, &knobs, &marks);
	CU_ASSERT_EQUAL(marks.lowmem_reserve[MF_ZONE_DMA32], 112);    /* 28672 / 256 */
	CU_ASSERT_EQUAL(marks.lowmem_reserve[MF_ZONE_NORMAL], 1136);  /* 290816 / 256 */
	CU_ASSERT_EQUAL(marks.lowmem_reserve[MF_ZONE_MOVABLE], 1648); /* 421888 / 256 */
	mf_watermark_zone(topo, 0, MF_ZONE_NORMAL, &knobs, &marks);
	CU_ASSERT_EQUAL(marks.lowmem_reserve[MF_ZONE_NORMAL], 0);
	CU_ASSERT_EQUAL(marks.lowmem_reserve[MF_ZONE_MOVABLE], 4096); /* 131072 / 32 */
	knobs.lowmem_reserve_ratio[MF_ZONE_NORMAL] = 0;
	mf_watermark_zone(topo, 0, MF_ZONE_NORMAL, &knobs, &marks);
	CU_ASSERT_EQUAL(marks.lowmem_reserve[MF_ZONE_MOVABLE], 0);
	/* An empty zone protects nothing. */
	mf_watermark_zone(topo, 1, MF_ZONE_DMA, &knobs, &marks);
	CU_ASSERT_EQUAL(marks.lowmem_reserve[MF_ZONE_NORMAL], 0);
	mf_topo_destroy(topo);
}

static void movable_minimum(void)
{
	static const struct {
		const char *text;
		uint64_t min, low;
	} cases[] = {
		/* share 256 pages of a 262144 page zone: the step is 0.1 % = 262 */
		{ "node 0 cpus 0 zones Normal=1G,Movable=1G\n", 128, 390 },
		{ "node 0 cpus 0 zones Normal=1G,Movable=256M\n", 64, 129 },
		{ "node 0 cpus 0 zones Normal=1G,Movable=16M\n", 32, 36 },
	};
	struct mf_watermark_knobs knobs = default_knobs;

	knobs.min_free_kbytes = 1024;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mf_topo *topo = topo_of(cases[i].text);
		struct mf_zone_marks marks;

		mf_watermark_zone(topo, 0, MF_ZONE_MOVABLE, &knobs, &marks);
		CU_ASSERT_EQUAL(marks.min, cases[i].min);
		CU_ASSERT_EQUAL(marks.low, cases[i].low);
		/* The Normal zone is all of the lowmem. */
		mf_watermark_zone(topo, 0, MF_ZONE_NORMAL, &knobs, &marks);
		CU_ASSERT_EQUAL(marks.min, 256);
		CU_ASSERT_EQUAL(marks.low, 518);
		mf_topo_destroy(topo);
	}
}

static void scale_factor(void)
{
	struct mf_watermark_knobs knobs = default_knobs;
	struct mf_topo *topo = topo_of("node 0 cpus 0-3 zones Normal=1G\n");
	struct mf_zone_marks marks;

	knobs.min_free_kbytes = 4096;
	knobs.watermark_scale_factor = 3000;
	mf_watermark_zone(topo, 0, MF_ZONE_NORMAL, &knobs, &marks);
	CU_ASSERT_EQUAL(marks.min, 1024);
	CU_ASSERT_EQUAL(marks.low, 1024 + 78643);
	CU_ASSERT_EQUAL(marks.promo, 1024 + 3 * 78643);
	CU_ASSERT_EQUAL(marks.high_min, (1024 + 78643) / 4);
	knobs.watermark_scale_factor = 1;
	mf_watermark_zone(topo, 0, MF_ZONE_NORMAL, &knobs, &marks);
	CU_ASSERT_EQUAL(marks.low, 1280);
	/* A knob beyond all memory must not wrap. */
	knobs.min_free_kbytes = UINT64_MAX;
	mf_watermark_zone(topo, 0, MF_ZONE_NORMAL, &knobs, &marks);
	CU_ASSERT_EQUAL(marks.min, UINT32_MAX);
	mf_topo_destroy(topo);
}

static void high_fraction(void)
{
	struct mf_watermark_knobs knobs = default_knobs;
	struct mf_topo *topo = topo_of("node 0 cpus 0-3 zones Normal=1G\nnode 1 cpus - zones Normal=64M\n");
	struct mf_zone_marks marks;

	knobs.min_free_kbytes = 4096;
	knobs.percpu_pagelist_high_fraction = 8;
	mf_watermark_zone(topo, 0, MF_ZONE_NORMAL, &knobs, &marks);
	CU_ASSERT_EQUAL(marks.high_min, 8192);
	CU_ASSERT_EQUAL(marks.high_max, 8192);
	knobs.percpu_pagelist_high_fraction = 100;
	mf_watermark_zone(topo, 0, MF_ZONE_NORMAL, &knobs, &marks);
	CU_ASSERT_EQUAL(marks.high_min, 655);
	CU_ASSERT_EQUAL(marks.high_max, 655);
	/* By the CPUs of the machine, and never less than four batches. */
	mf_watermark_zone(topo, 1, MF_ZONE_NORMAL, &knobs, &marks);
	CU_ASSERT_EQUAL(marks.batch, 3);
	CU_ASSERT_EQUAL(marks.high_min, 40);
	knobs.percpu_pagelist_high_fraction = 1000000;
	mf_watermark_zone(topo, 1, MF_ZONE_NORMAL, &knobs, &marks);
	CU_ASSERT_EQUAL(marks.high_min, 12);
	CU_ASSERT_EQUAL(marks.high_max, 12);
	mf_topo_destroy(topo);
}

static void batch_steps(void)
{
	/* MiB, batch */
	static const unsigned steps[][2] = { { 2, 1 },	  { 16, 1 },	{ 32, 1 },    { 48, 3 },
					     { 64, 3 },	  { 96, 7 },	{ 176, 15 },  { 256, 15 },
					     { 512, 31 }, { 1008, 63 }, { 1024, 63 }, { 65536, 63 } };

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct mf_zone_marks marks;
		struct mf_topo *topo;
		char text[64];

		snprintf(text, sizeof(text), "node 0 cpus - zones Normal=%uM\n", steps[i][0]);
		topo = topo_of(text);
		mf_watermark_zone(topo, 0, MF_ZONE_NORMAL, &default_knobs, &marks);
		CU_ASSERT_EQUAL(marks.batch, steps[i][1]);
		/* No CPU at all: as if there were one. */
		CU_ASSERT(marks.high_max >= steps[i][0] * 256 / 8);
		mf_topo_destroy(topo);
	}
}

static const struct unit_test tests[] = {
	UNIT_TEST(recorded_numbers), UNIT_TEST(min_free_bounds), UNIT_TEST(protection_by_zone_above),
	UNIT_TEST(movable_minimum),  UNIT_TEST(scale_factor),	 UNIT_TEST(high_fraction),
	UNIT_TEST(batch_steps),
};

UNIT_MAIN("watermark", tests)
