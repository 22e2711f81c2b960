/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Looking at caches of all three kinds of layers: sums to the object, counters
 * that are cleared, pages by kind and node; and that the check of everything
 * finds what it is made for, one broken word at a time.
 */
#include "slab_fixture.h"

#define SIZE 512 /* 16 objects in a slab of two pages */
#define PER_SLAB 16

static void set_sheaves(struct machine *m, int on)
{
	struct mf_slab_knobs knobs;

	mf_slabs_get_knobs(m->slabs, &knobs);
	knobs.sheaves = on;
	mf_slabs_set_knobs(m->slabs, &knobs);
}

static struct mf_cache *begin(struct machine *m, int sheaves)
{
	start(m, "2x32M:cpus=2");
	set_sheaves(m, sheaves);
	return make_cache(m, "plain", SIZE, MF_SLAB_FLAG(NO_MERGE));
}

static void end(struct machine *m, struct mf_cache *cache)
{
	CU_ASSERT_EQUAL(m->nr_reports, 0);
	mf_cache_put(cache);
	stop(m);
}

/* --- sums --- */

/* Whatever CPU took and gave what, all that is not used is free somewhere. */
static void sums(int sheaves)
{
	struct machine m;
	struct mf_cache *cache = begin(&m, sheaves);
	uint64_t allocs, frees;
	void *objects[300];
	unsigned live = 0;

	for (unsigned step = 0; step < 3000; step++) {
		unsigned cpu = step / 7 % 4, wanted = step % 600 < 300 ? step % 600 : 600 - step % 600;

		mf_placement_set_cpu(&m.place, (int)cpu, m.topo);
		if (live < wanted)
			objects[live++] = take(&m, cache);
		else if (live)
			give(&m, cache, objects[--live]);
		if (step % 97 == 0) {
			CU_ASSERT_EQUAL(used(cache), live);
			check_ok(&m);
		}
	}
	CU_ASSERT_EQUAL(used(cache), live);
	allocs = stat_sum(cache, MF_SLAB_STAT_alloc_fastpath) + stat_sum(cache, MF_SLAB_STAT_alloc_slowpath);
	frees = stat_sum(cache, MF_SLAB_STAT_free_fastpath) + stat_sum(cache, MF_SLAB_STAT_free_slowpath);
	CU_ASSERT_EQUAL(allocs - frees, live);
	CU_ASSERT_TRUE(allocs > 1000);
	while (live)
		give(&m, cache, objects[--live]);
	CU_ASSERT_EQUAL(used(cache), 0);
	check_ok(&m);
	mf_cache_shrink(cache);
	CU_ASSERT_EQUAL(mf_slabs_pages(m.slabs, false, -1), 0);
	end(&m, cache);
}

static void test_sums_of_sheaves(void)
{
	sums(1);
}

static void test_sums_of_layers(void)
{
	sums(0);
}

/* One CPU, layers alone: a full slab, a CPU slab, a CPU's partial list. */
static void test_info(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m, 0);
	struct mf_cache_info info;
	void *objects[3 * PER_SLAB];
	uint64_t slabs, estimate;

	for (int i = 0; i < 2 * PER_SLAB + 1; i++)
		objects[i] = take(&m, cache);
	mf_cache_info(cache, &info);
	CU_ASSERT_EQUAL(info.node[0].slabs, 3);
	CU_ASSERT_EQUAL(info.node[0].total_objects, 3 * PER_SLAB);
	CU_ASSERT_EQUAL(info.node[0].objects,
			3 * PER_SLAB); /* what the CPU took over is not free in the slab */
	CU_ASSERT_EQUAL(info.node[0].cpu_slabs, 1);
	CU_ASSERT_EQUAL(info.node[0].partial, 0);
	CU_ASSERT_EQUAL(info.node[1].slabs, 0);
	CU_ASSERT_EQUAL(info.used, 2 * PER_SLAB + 1);
	for (int i = 0; i < 2 * PER_SLAB; i++)
		give(&m, cache, objects[i]);
	mf_cache_info(cache, &info);
	CU_ASSERT_EQUAL(info.node[0].cpu_slabs, 3);
	CU_ASSERT_EQUAL(info.node[0].objects, PER_SLAB);
	CU_ASSERT_EQUAL(info.used, 1);
	mf_cache_cpu_partial(cache, 0, &slabs, &estimate);
	CU_ASSERT_EQUAL(slabs, 2);
	CU_ASSERT_EQUAL(estimate, PER_SLAB);
	mf_cache_cpu_partial(cache, 1, &slabs, &estimate);
	CU_ASSERT_EQUAL(slabs, 0);
	check_ok(&m);
	give(&m, cache, objects[2 * PER_SLAB]);
	mf_cache_flush(cache);
	mf_cache_info(cache, &info);
	CU_ASSERT_EQUAL(info.node[0].partial, 3);
	CU_ASSERT_EQUAL(info.node[0].objects, 0);
	CU_ASSERT_EQUAL(info.node[0].objects_partial, 0);
	CU_ASSERT_EQUAL(info.node[0].cpu_slabs, 0);
	end(&m, cache);
}

static void test_pages(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m, 0);
	struct mf_cache *other = make_cache(&m, "rcl", 64, MF_SLAB_FLAG(RECLAIM_ACCOUNT));
	void *a = take(&m, cache), *b = mf_cache_alloc_node(other, &m.place, MEMFS_GFP_KERNEL, 1);

	CU_ASSERT_PTR_NOT_NULL_FATAL(b);
	CU_ASSERT_EQUAL(mf_slabs_pages(m.slabs, false, -1), 2);
	CU_ASSERT_EQUAL(mf_slabs_pages(m.slabs, false, 0), 2);
	CU_ASSERT_EQUAL(mf_slabs_pages(m.slabs, false, 1), 0);
	CU_ASSERT_EQUAL(mf_slabs_pages(m.slabs, true, -1), 1);
	CU_ASSERT_EQUAL(mf_slabs_pages(m.slabs, true, 1), 1);
	CU_ASSERT_PTR_EQUAL(mf_cache_of(m.slabs, a), cache);
	CU_ASSERT_PTR_EQUAL(mf_cache_of(m.slabs, b), other);
	CU_ASSERT_PTR_NULL(mf_cache_of(m.slabs, &m));
	give(&m, other, b);
	mf_cache_put(other);
	end(&m, cache); /* with an object still out: its page goes back all the same */
}

/* --- counters --- */

static void test_names(void)
{
	CU_ASSERT_STRING_EQUAL(mf_slab_stat_names[0], "alloc_fastpath");
	CU_ASSERT_STRING_EQUAL(mf_slab_stat_names[MF_NR_SLAB_STATS - 1], "partial_remote_hit");
	CU_ASSERT_STRING_EQUAL(mf_slab_stat_help[MF_SLAB_STAT_alloc_slab], "new slabs");
}

/* Cleared while a sheaf has counts of its own; the identities hold from birth on. */
static void clearing(int sheaves)
{
	const enum mf_slab_stat id = MF_SLAB_STAT_alloc_fastpath;
	struct machine m;
	struct mf_cache *cache = begin(&m, sheaves);
	void *objects[10];
	uint64_t before;

	for (int i = 0; i < 10; i++)
		objects[i] = take(&m, cache);
	before = stat_sum(cache, id);
	CU_ASSERT_TRUE(before >= 8);
	mf_cache_stat_clear(cache, id);
	mf_cache_stat_clear(cache, MF_SLAB_STAT_alloc_slab);
	CU_ASSERT_EQUAL(stat_sum(cache, id), 0);
	CU_ASSERT_EQUAL(stat_sum(cache, MF_SLAB_STAT_alloc_slab), 0);
	for (int i = 0; i < 5; i++)
		give(&m, cache, objects[i]);
	for (int i = 0; i < 5; i++)
		objects[i] = take(&m, cache);
	CU_ASSERT_EQUAL(stat_sum(cache, id), 5);
	mf_cache_flush(cache);
	CU_ASSERT_EQUAL(stat_sum(cache, id), 5);
	CU_ASSERT_EQUAL(mf_cache_stat(cache, id, 0), 5);
	CU_ASSERT_EQUAL(mf_cache_stat(cache, id, 1), 0);
	CU_ASSERT_EQUAL(mf_cache_stat(cache, id, 100000), 0);
	check_ok(&m);
	end(&m, cache);
}

static void test_clearing(void)
{
	clearing(0);
	clearing(1);
}

static void test_freed_elsewhere(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m, 1);
	void *object = take(&m, cache);

	mf_placement_set_cpu(&m.place, 2, m.topo);
	give(&m, cache, object);
	CU_ASSERT_EQUAL(mf_cache_stat(cache, MF_SLAB_STAT_free_remote, 2), 1);
	CU_ASSERT_EQUAL(mf_cache_stat(cache, MF_SLAB_STAT_free_cpu_sheaf, 2), 1);
	CU_ASSERT_EQUAL(mf_cache_stat(cache, MF_SLAB_STAT_free_fastpath, 2), 1);
	CU_ASSERT_EQUAL(used(cache), 0);
	mf_cache_flush(cache);
	CU_ASSERT_EQUAL(mf_cache_stat(cache, MF_SLAB_STAT_free_remote, 2), 1);
	end(&m, cache);
}

/* --- the check finds it --- */

static unsigned problems(struct machine *m, const char *about)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	unsigned bad = mf_slabs_check(m->slabs, &out), lines = 0;

	for (const char *at = out.length ? out.data : ""; *at; at++)
		lines += *at == '\n';
	CU_ASSERT_EQUAL(lines, bad);
	CU_ASSERT_PTR_NOT_NULL(out.length ? strstr(out.data, about) : NULL);
	if (out.length && !strstr(out.data, about))
		fprintf(stderr, "no \"%s\": %s", about, out.data);
	mf_outbuf_free(&out);
	return bad;
}

/* @word is one too many for a moment. */
#define BREAK(word, about) \
	do { \
		(word)++; \
		CU_ASSERT_TRUE(problems(&m, about) > 0); \
		(word)--; \
		check_ok(&m); \
	} while (0)

static void test_check_finds_counts(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m, 0);
	void *objects[2 * PER_SLAB + 1];
	struct mf_cache_node *n = cache->node[0];
	struct mf_slab *slab;

	for (int i = 0; i < 2 * PER_SLAB + 1; i++)
		objects[i] = take(&m, cache);
	mf_cache_flush(cache);
	slab = mf_slab_at(m.slabs, mf_slab_pfn(n->head));
	check_ok(&m);
	BREAK(n->nr_partial, "nr_partial is 2, must be 1");
	BREAK(n->nr_slabs, "nr_slabs is 4, must be 3");
	BREAK(n->nr_pages, "nr_pages is 7, must be 6");
	BREAK(n->total_objects, "total_objects is 49, must be 48");
	BREAK(n->tail, "the list ends with");
	BREAK(slab->inuse, "its free list has not 14 objects");
	BREAK(slab->prev, "is not linked back");
	BREAK(slab->objects, "1 of 17 in use");
	BREAK(slab->order, "order 2");
	BREAK(slab->node, "node 1");
	BREAK(slab->state, "state 5");
	BREAK(m.slabs->tags[mf_slab_pfn(n->head) + 1], "has the tag of cache");
	BREAK(cache->cpu[0].stat[MF_SLAB_STAT_alloc_slab], "alloc_slab 4 - free_slab 0 is not its 3 slabs");
	BREAK(cache->cpu[0].partial_slabs, "its list has 0 slabs, not 1");
	BREAK(cache->cpu[0].tag, "CPU 0: its tag is");
	BREAK(n->stock_objects, "the stock is 1, must be 0");
	for (int i = 0; i < 2 * PER_SLAB + 1; i++)
		give(&m, cache, objects[i]);
	end(&m, cache);
}

static void test_check_finds_objects(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m, 1);
	char *a = take(&m, cache), *b = take(&m, cache);
	struct mf_sheaf *sheaf = cache->cpu[0].main;
	void *kept;

	give(&m, cache, b);
	CU_ASSERT_FATAL(MF_SHEAF_DEPTH(sheaf->word) >= 2);
	check_ok(&m);
	kept = sheaf->object[0];
	sheaf->object[0] = sheaf->object[1];
	CU_ASSERT_EQUAL(problems(&m, "is free twice"), 1);
	sheaf->object[0] = (char *)kept + 8;
	CU_ASSERT_EQUAL(problems(&m, "main sheaf: 0x"), 1);
	sheaf->object[0] = &m;
	CU_ASSERT_EQUAL(problems(&m, "is no object of it"), 1);
	sheaf->object[0] = kept;
	sheaf->room = 1;
	CU_ASSERT_EQUAL(problems(&m, "room for 1"), 1);
	sheaf->room = (uint16_t)cache->knobs.sheaf_capacity;
	mf_slab_at(m.slabs, 77)->state = MF_SLAB_FULL;
	CU_ASSERT_EQUAL(problems(&m, "a slab begins at page 77, which has no tag"), 1);
	mf_slab_at(m.slabs, 77)->state = MF_SLAB_NONE;
	give(&m, cache, a);
	end(&m, cache);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_sums_of_sheaves),
	UNIT_TEST(test_sums_of_layers),
	UNIT_TEST(test_info),
	UNIT_TEST(test_pages),
	UNIT_TEST(test_names),
	UNIT_TEST(test_clearing),
	UNIT_TEST(test_freed_elsewhere),
	UNIT_TEST(test_check_finds_counts),
	UNIT_TEST(test_check_finds_objects),
};

UNIT_MAIN("slab_info", tests)
