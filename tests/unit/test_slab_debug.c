/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Caches with debugging on the simulator: every kind of misuse is reported in
 * one line, refused or kept apart, and the cache goes on working.
 */
#include "slab_fixture.h"

#define SIZE 104 /* with all debugging 200 bytes, 20 objects in a page, 96 bytes of padding */
#define OBJECTS 20

static bool filled_with(const char *at, size_t n, int value)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)at[i] != value)
			return false;
	return true;
}

/* The last report has all of these; forgotten then. */
static void reported(struct machine *m, const char *one, const char *two, const char *three)
{
	const char *wanted[] = { one, two, three };

	CU_ASSERT_EQUAL(m->nr_reports, 1);
	for (size_t i = 0; i < 3 && m->nr_reports; i++) {
		CU_ASSERT_PTR_NOT_NULL(strstr(m->report[m->nr_reports - 1], wanted[i]));
		if (!strstr(m->report[m->nr_reports - 1], wanted[i]))
			fprintf(stderr, "no \"%s\": %s\n", wanted[i], m->report[m->nr_reports - 1]);
	}
	m->nr_reports = 0;
}

static const char *address(const void *at)
{
	static char text[32];

	snprintf(text, sizeof(text), "object %p", at);
	return text;
}

/* Filled, emptied and filled again without a report. */
static void goes_on(struct machine *m, struct mf_cache *cache)
{
	uint64_t before = used(cache);
	char *objects[3 * OBJECTS];

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3 * OBJECTS; i++)
			objects[i] = take(m, cache);
		CU_ASSERT_EQUAL(used(cache), before + 3 * OBJECTS);
		check_ok(m);
		for (int i = 0; i < 3 * OBJECTS; i++)
			give(m, cache, objects[i]);
	}
	CU_ASSERT_EQUAL(used(cache), before);
	CU_ASSERT_EQUAL(m->nr_reports, 0);
	CU_ASSERT_EQUAL(mf_cache_validate(cache), 0);
	check_ok(m);
}

static struct mf_cache *begin(struct machine *m)
{
	start(m, "2x32M:cpus=2");
	return make_cache(m, "dbg", SIZE, MF_SLAB_DEBUG);
}

static void end(struct machine *m, struct mf_cache *cache)
{
	mf_cache_put(cache);
	stop(m);
}

/* --- no misuse --- */

static void test_patterns(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m);
	char *object = take(&m, cache);

	CU_ASSERT_TRUE(filled_with(object - 8, 8, 0xcc));
	CU_ASSERT_TRUE(filled_with(object, SIZE, 0x5a));
	CU_ASSERT_TRUE(filled_with(object + SIZE, 8, 0xcc));
	give(&m, cache, object);
	CU_ASSERT_TRUE(filled_with(object - 8, 8, 0xbb));
	CU_ASSERT_TRUE(filled_with(object, SIZE - 1, 0x6b));
	CU_ASSERT_TRUE(filled_with(object + SIZE - 1, 1, 0xa5));
	CU_ASSERT_TRUE(filled_with(object + SIZE, 8, 0xbb));
	object = mf_cache_alloc(cache, &m.place, MEMFS_GFP_KERNEL | MEMFS___GFP_ZERO);
	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	CU_ASSERT_TRUE(filled_with(object, SIZE, 0));
	give(&m, cache, object);
	goes_on(&m, cache);
	CU_ASSERT_FALSE(mf_cache_is_damaged(cache));
	end(&m, cache);
}

static void test_slabs_and_counters(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m);
	struct mf_cache_info info;
	char *objects[8 * OBJECTS];

	for (int i = 0; i < 8 * OBJECTS; i++)
		objects[i] = take(&m, cache);
	mf_cache_info(cache, &info);
	CU_ASSERT_EQUAL(info.node[0].slabs, 8);
	CU_ASSERT_EQUAL(info.node[0].partial, 0);
	CU_ASSERT_EQUAL(info.node[0].objects, 8 * OBJECTS);
	CU_ASSERT_EQUAL(info.used, 8 * OBJECTS);
	CU_ASSERT_EQUAL(stat_sum(cache, MF_SLAB_STAT_alloc_slab), 8);
	CU_ASSERT_EQUAL(stat_sum(cache, MF_SLAB_STAT_alloc_slowpath), 8 * OBJECTS);
	CU_ASSERT_EQUAL(stat_sum(cache, MF_SLAB_STAT_alloc_from_partial), 8 * (OBJECTS - 1));
	check_ok(&m);
	/* As many empty slabs stay as min_partial says, less the one that is on the list itself. */
	for (int i = 0; i < 8 * OBJECTS; i++)
		give(&m, cache, objects[i]);
	mf_cache_info(cache, &info);
	CU_ASSERT_EQUAL(info.node[0].slabs, 4);
	CU_ASSERT_EQUAL(info.node[0].partial, 4);
	CU_ASSERT_EQUAL(info.used, 0);
	CU_ASSERT_EQUAL(stat_sum(cache, MF_SLAB_STAT_free_slowpath), 8 * OBJECTS);
	CU_ASSERT_EQUAL(stat_sum(cache, MF_SLAB_STAT_free_add_partial), 8);
	CU_ASSERT_EQUAL(stat_sum(cache, MF_SLAB_STAT_free_remove_partial), 4);
	CU_ASSERT_EQUAL(stat_sum(cache, MF_SLAB_STAT_free_slab), 4);
	CU_ASSERT_EQUAL(mf_cache_shrink(cache), 4);
	CU_ASSERT_EQUAL(mf_slabs_pages(m.slabs, false, -1), 0);
	end(&m, cache);
}

/* A node named, or another one's list when it is long enough. */
static void test_nodes(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m);
	struct mf_cache_knobs knobs;
	char *there = mf_cache_alloc_node(cache, &m.place, MEMFS_GFP_KERNEL, 1), *next;

	CU_ASSERT_PTR_NOT_NULL_FATAL(there);
	CU_ASSERT_EQUAL(mf_slab_tag_of(m.slabs, there) >> MF_TAG_NODE_SHIFT, 1);
	/* One slab is no more than min_partial: it stays with its node. */
	next = take(&m, cache);
	CU_ASSERT_EQUAL(mf_slab_tag_of(m.slabs, next) >> MF_TAG_NODE_SHIFT, 0);
	CU_ASSERT_EQUAL(stat_sum(cache, MF_SLAB_STAT_partial_probe), 1);
	give(&m, cache, next);
	CU_ASSERT_EQUAL(mf_cache_shrink(cache), 1);
	mf_cache_get_knobs(cache, &knobs);
	knobs.min_partial = 0;
	CU_ASSERT_EQUAL(mf_cache_set_knobs(cache, &knobs), 0);
	next = take(&m, cache);
	CU_ASSERT_EQUAL(mf_slab_tag_of(m.slabs, next) >> MF_TAG_NODE_SHIFT, 1);
	CU_ASSERT_EQUAL(stat_sum(cache, MF_SLAB_STAT_partial_search), 2);
	CU_ASSERT_EQUAL(stat_sum(cache, MF_SLAB_STAT_partial_remote_hit), 1);
	give(&m, cache, next);
	give(&m, cache, there);
	end(&m, cache);
}

static void construct(void *object)
{
	memset(object, 0x33, 24);
}

/* Every set of flags, odd sizes, with and without what forbids poison. */
static void test_every_flag_set(void)
{
	static const uint32_t sizes[] = { 1, 7, 8, 24, 100, 1000, 5000 };
	static const unsigned kinds[] = { MF_SLAB_FLAG(POISON), MF_SLAB_FLAG(RED_ZONE),
					  MF_SLAB_FLAG(STORE_USER), MF_SLAB_FLAG(CONSISTENCY),
					  MF_SLAB_FLAG(TYPESAFE_BY_RCU) };
	struct machine m;

	start(&m, "2x32M:cpus=2");
	for (unsigned set = 1; set < 32; set++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			struct mf_cache *cache;
			unsigned flags = 0;
			char *objects[40];

			for (unsigned kind = 0; kind < 5; kind++)
				flags |= set >> kind & 1 ? kinds[kind] : 0;
			if (!(flags & MF_SLAB_DEBUG))
				continue;
			cache = make_cache(&m, "set", sizes[i], flags);
			for (int n = 0; n < 40; n++)
				memset(objects[n] = take(&m, cache), n, sizes[i]);
			CU_ASSERT_EQUAL(mf_cache_validate(cache), 0);
			for (int n = 0; n < 40; n++) {
				CU_ASSERT_TRUE(filled_with(objects[n], sizes[i], n));
				give(&m, cache, objects[n]);
			}
			CU_ASSERT_EQUAL(mf_cache_free(cache, &m.place, objects[39]), -EINVAL);
			CU_ASSERT_EQUAL(mf_cache_validate(cache), 0);
			reported(&m, "set", address(objects[39]), "freed");
			mf_cache_put(cache);
			CU_ASSERT_EQUAL(mf_cache_destroy(m.slabs, mf_text_of("set"), NULL, 0), 0);
		}
	CU_ASSERT_EQUAL(m.nr_reports, 0);
	stop(&m);
}

static void test_constructor(void)
{
	struct mf_cache_request request = {
		.name = mf_text_of("made"), .size = 24, .flags = MF_SLAB_DEBUG, .ctor = construct
	};
	struct mf_cache *cache;
	struct machine m;
	char *object;

	start(&m, "32M:cpus=1");
	CU_ASSERT_EQUAL_FATAL(mf_cache_create(m.slabs, &request, &cache, NULL, 0), 0);
	object = take(&m, cache);
	CU_ASSERT_TRUE(filled_with(object, 24, 0x33));
	give(&m, cache, object);
	CU_ASSERT_TRUE(filled_with(object, 24, 0x33));
	CU_ASSERT_EQUAL(mf_cache_validate(cache), 0);
	CU_ASSERT_EQUAL(m.nr_reports, 0);
	end(&m, cache);
}

/* --- pointers that must not be freed --- */

static void test_double_free(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m);
	char *object = take(&m, cache), *other = take(&m, cache);

	give(&m, cache, object);
	CU_ASSERT_EQUAL(mf_cache_free(cache, &m.place, object), -EINVAL);
	reported(&m, "dbg: freed though it is free already", address(object), "; allocated by 0x");
	CU_ASSERT_TRUE(mf_cache_is_damaged(cache));
	CU_ASSERT_EQUAL(used(cache), 1);
	/* Not the head of the list, and once more. */
	give(&m, cache, other);
	CU_ASSERT_EQUAL(mf_cache_free(cache, &m.place, object), -EINVAL);
	reported(&m, "free already", address(object), "; freed by 0x");
	CU_ASSERT_EQUAL(used(cache), 0);
	goes_on(&m, cache);
	end(&m, cache);
}

static void test_foreign_pointers(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m);
	char *object = take(&m, cache), *large = mf_kmalloc(m.slabs, &m.place, 20000, MEMFS_GFP_KERNEL, -1);
	char local[8];

	CU_ASSERT_EQUAL(mf_cache_free(cache, &m.place, local), -EINVAL);
	reported(&m, "dbg: ", address(local), "; it lies in no slab");
	CU_ASSERT_EQUAL(mf_cache_free(cache, &m.place, object + 8), -EINVAL);
	reported(&m, "no object's start", address(object + 8), "but 8 bytes behind one");
	CU_ASSERT_EQUAL(mf_cache_free(cache, &m.place, object - 8), -EINVAL);
	CU_ASSERT_EQUAL(m.nr_reports, 1);
	m.nr_reports = 0;
	CU_ASSERT_EQUAL(mf_cache_free(cache, &m.place, large), -EINVAL);
	reported(&m, "dbg: ", address(large), "a block of pages of order 3");
	CU_ASSERT_EQUAL(mf_kfree(m.slabs, &m.place, local), -EINVAL);
	reported(&m, "kmalloc: ", address(local), "; it lies in no slab");
	CU_ASSERT_EQUAL(mf_kfree(m.slabs, &m.place, large), 0);
	CU_ASSERT_EQUAL(used(cache), 1);
	give(&m, cache, object);
	goes_on(&m, cache);
	end(&m, cache);
}

static void test_wrong_cache(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m), *other = make_cache(&m, "other", 64, MF_SLAB_FLAG(NO_MERGE));
	char *object = take(&m, cache), *plain = take(&m, other);

	CU_ASSERT_EQUAL(mf_cache_free(other, &m.place, object), -EINVAL);
	reported(&m, "other: ", address(object), "in a slab of dbg, an object's start");
	CU_ASSERT_EQUAL(mf_cache_free(cache, &m.place, plain), -EINVAL);
	reported(&m, "dbg: ", address(plain), "in a slab of other, an object's start");
	CU_ASSERT_EQUAL(used(cache), 1);
	CU_ASSERT_EQUAL(used(other), 1);
	give(&m, cache, object);
	give(&m, other, plain);
	goes_on(&m, cache);
	mf_cache_put(other);
	end(&m, cache);
}

/* --- bytes that must not be written --- */

static void test_overflow(void)
{
	static const struct {
		int at;
		const char *what, *bytes;
	} cases[] = {
		{ SIZE, "dbg: written behind the object", "; at +104 41 cc cc cc cc cc cc cc instead of cc" },
		{ SIZE + 7, "dbg: written behind the object", "; at +111 41 instead of cc" },
		{ -1, "dbg: written before the object", "; at -1 41 instead of cc" },
		{ -8, "dbg: written before the object", "; at -8 41 cc cc cc cc cc cc cc instead of cc" },
	};
	struct machine m;
	struct mf_cache *cache = begin(&m);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *object = take(&m, cache), kept = object[cases[i].at];

		object[cases[i].at] = 'A';
		CU_ASSERT_EQUAL(mf_cache_free(cache, &m.place, object), -EINVAL);
		reported(&m, cases[i].what, cases[i].bytes, address(object));
		CU_ASSERT_EQUAL(used(cache), 1);
		CU_ASSERT_EQUAL(mf_cache_validate(cache), 1);
		reported(&m, cases[i].what, cases[i].bytes, "allocated by 0x");
		object[cases[i].at] = kept;
		give(&m, cache, object);
	}
	goes_on(&m, cache);
	end(&m, cache);
}

/* One object of a slab that is otherwise free was written to: none of the slab's is handed out. */
static void use_after_free(int at, const char *what)
{
	struct machine m;
	struct mf_cache *cache = begin(&m);
	char *object = take(&m, cache), *next;
	struct mf_cache_info info;

	give(&m, cache, object);
	object[at] ^= 0x10;
	CU_ASSERT_EQUAL(mf_cache_validate(cache), 1);
	reported(&m, what, address(object), "; freed by 0x");
	next = take(&m, cache);
	reported(&m, what, address(object), "; freed by 0x");
	CU_ASSERT_NOT_EQUAL((uintptr_t)next >> 12, (uintptr_t)object >> 12);
	mf_cache_info(cache, &info);
	CU_ASSERT_EQUAL(info.node[0].slabs, 2);
	CU_ASSERT_EQUAL(info.node[0].partial, 1);
	CU_ASSERT_EQUAL(info.used, OBJECTS + 1);
	CU_ASSERT_EQUAL(mf_cache_validate(cache), 0);
	give(&m, cache, next);
	goes_on(&m, cache);
	mf_cache_put(cache);
	CU_ASSERT_EQUAL(mf_cache_destroy(m.slabs, mf_text_of("dbg"), NULL, 0), -EBUSY);
	stop(&m);
}

static void test_use_after_free(void)
{
	use_after_free(0, "dbg: written after it was freed");
	use_after_free(SIZE - 1, "dbg: written after it was freed");
	use_after_free(SIZE, "dbg: written behind the object");
	use_after_free(-8, "dbg: written before the object");
	use_after_free(112, "dbg: free pointer overwritten"); /* behind object and red zone */
}

/* Other objects of an abandoned slab can still be given back, and serve again. */
static void test_abandoned_slab(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m);
	char *bad = take(&m, cache), *good = take(&m, cache), *fresh;

	give(&m, cache, bad);
	bad[3] = 1;
	fresh = take(&m, cache);
	reported(&m, "written after it was freed", "; at +3 01", address(bad));
	CU_ASSERT_EQUAL(used(cache), OBJECTS + 1);
	check_ok(&m);
	give(&m, cache, good);
	CU_ASSERT_EQUAL(used(cache), OBJECTS);
	give(&m, cache, fresh);
	CU_ASSERT_EQUAL(used(cache), OBJECTS - 1);
	goes_on(&m, cache);
	end(&m, cache);
}

/* The list is found broken while something else is freed, which goes well. */
static void test_broken_list(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m);
	char *object = take(&m, cache), *head = take(&m, cache);

	give(&m, cache, head);
	memset(head + cache->geometry.offset, 0x41, 8);
	give(&m, cache, object);
	reported(&m, "dbg: free pointer overwritten", address(head), "; leads to 0x");
	CU_ASSERT_EQUAL(used(cache), OBJECTS - 1);
	CU_ASSERT_EQUAL(take(&m, cache), object);
	give(&m, cache, object);
	goes_on(&m, cache);
	end(&m, cache);
}

static void test_padding(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m);
	char *object = take(&m, cache), *page = (char *)((uintptr_t)object & ~(uintptr_t)4095);

	page[4095] = 7;
	CU_ASSERT_EQUAL(mf_cache_validate(cache), 1);
	reported(&m, "dbg: written behind the last object of a slab", "; at +95 07 instead of 5a", "object ");
	/* Seen once more when the slab goes, which is not kept for that. */
	give(&m, cache, object);
	CU_ASSERT_EQUAL(mf_cache_shrink(cache), 1);
	reported(&m, "dbg: written behind the last object of a slab", "; at +95 07", "object ");
	goes_on(&m, cache);
	end(&m, cache);
}

static void test_slab_that_goes(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m);
	char *object = take(&m, cache);

	give(&m, cache, object);
	object[50] = 0;
	CU_ASSERT_EQUAL(mf_cache_shrink(cache), 1);
	reported(&m, "dbg: written after it was freed", "; at +50 00 6b", address(object));
	CU_ASSERT_TRUE(mf_cache_is_damaged(cache));
	goes_on(&m, cache);
	end(&m, cache);
}

/* Two problems of two objects, one line each. */
static void test_validate(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m), *plain = make_cache(&m, "plain", 64, MF_SLAB_FLAG(NO_MERGE));
	char *objects[OBJECTS + 2];

	for (int i = 0; i < OBJECTS + 2; i++)
		objects[i] = take(&m, cache);
	objects[0][SIZE] = 0; /* on a full slab */
	give(&m, cache, objects[OBJECTS]);
	objects[OBJECTS][1] = 0;
	CU_ASSERT_EQUAL(mf_cache_validate(cache), 2);
	CU_ASSERT_EQUAL(m.nr_reports, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(m.report[0], "written after it was freed"));
	CU_ASSERT_PTR_NOT_NULL(strstr(m.report[1], "written behind the object"));
	mf_slabs_on_report(m.slabs, NULL, NULL);
	CU_ASSERT_EQUAL(mf_cache_validate(cache), 2);
	CU_ASSERT_EQUAL(mf_cache_validate(plain), 0);
	CU_ASSERT_EQUAL(m.nr_reports, 2);
	mf_cache_put(plain);
	end(&m, cache);
}

/* --- owners --- */

static void *take_for(struct machine *m, struct mf_cache *cache, uintptr_t caller)
{
	return mf_debug_alloc(cache, mf_cache_cpu_get(cache, &m->place), &m->place, MEMFS_GFP_KERNEL,
			      MF_NODE_BY_POLICY, (const void *)caller);
}

static void give_for(struct machine *m, struct mf_cache *cache, void *object, uintptr_t caller)
{
	CU_ASSERT_EQUAL(mf_debug_free(cache, mf_cache_cpu_get(cache, &m->place), &m->place, object,
				      (const void *)caller),
			0);
}

static void __attribute__((format(printf, 3, 4)))
check_traces(struct mf_cache *cache, bool frees, const char *format, ...)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	char want[512];
	va_list args;

	va_start(args, format);
	vsnprintf(want, sizeof(want), format, args);
	va_end(args);
	CU_ASSERT_EQUAL(mf_cache_traces(cache, frees, &out), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out.data);
	CU_ASSERT_STRING_EQUAL(out.data, want);
	if (strcmp(out.data, want))
		fprintf(stderr, "%s", out.data);
	mf_outbuf_free(&out);
}

static void test_traces(void)
{
	struct mf_slab_track track;
	struct machine m;
	struct mf_cache *cache = begin(&m);
	char *a, *b;

	check_traces(cache, false, "No data\n");
	a = take_for(&m, cache, 0x1000);
	memcpy(&track, a + cache->geometry.track, sizeof(track));
	CU_ASSERT_EQUAL(track.cpu, 0);
	CU_ASSERT_EQUAL(track.when, UINT64_C(5000000000));
	mf_plat_sim_advance(m.plat, 10000000);
	take_for(&m, cache, 0x2000);
	mf_placement_set_cpu(&m.place, 3, m.topo);
	mf_plat_sim_advance(m.plat, 20000000);
	b = take_for(&m, cache, 0x2000);
	check_traces(cache, false,
		     "      2 0x2000 age=0/10/20 pid=%d cpus=0,3 nodes=0-1\n"
		     "      1 0x1000 age=30 pid=%d cpus=0 nodes=0\n",
		     track.thread, track.thread);
	/* Who freed it before the one who has it now; most of them nobody. */
	give_for(&m, cache, b, 0x3000);
	CU_ASSERT_EQUAL(take_for(&m, cache, 0x2000), b);
	check_traces(cache, true,
		     "      2 <not-available> age=5030 pid=0 cpus=0 nodes=0\n"
		     "      1 0x3000 age=0 pid=%d cpus=3 nodes=1\n",
		     track.thread);
	end(&m, cache);
}

static void test_traces_refused(void)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	struct mf_cache *cache;
	struct machine m;

	start(&m, "32M:cpus=1");
	cache = make_cache(&m, "anonymous", 64, MF_SLAB_FLAG(RED_ZONE));
	CU_ASSERT_EQUAL(mf_cache_traces(cache, false, &out), -EINVAL);
	mf_outbuf_free(&out);
	end(&m, cache);
}

static void test_owners_in_report(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m);
	char *object = take_for(&m, cache, 0xabc0), want[64];

	mf_plat_sim_advance(m.plat, 250000000);
	give_for(&m, cache, object, 0xdef0);
	object[0] = 0;
	CU_ASSERT_EQUAL(mf_cache_validate(cache), 1);
	snprintf(want, sizeof(want), "; allocated by 0xabc0 on CPU 0, thread ");
	reported(&m, want, "at 5000 ms; freed by 0xdef0 on CPU 0", "at 5250 ms");
	end(&m, cache);
}

/* --- callers that may not wait --- */

static void test_no_waiting(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m);
	char *object = take(&m, cache), *other = take(&m, cache);
	struct mf_lock *held = &cache->node[0]->lock;
	struct mf_cache_info info;

	/* As in a handler that has interrupted the holder. */
	mf_lock_acquire(held);
	CU_ASSERT_EQUAL(mf_cache_free(cache, &m.place, object), 0);
	CU_ASSERT_EQUAL(mf_cache_free(cache, &m.place, other), 0);
	CU_ASSERT_PTR_NULL(mf_cache_alloc(cache, &m.place, MEMFS_GFP_KERNEL));
	mf_lock_release(held);
	CU_ASSERT_EQUAL(mf_stat_read(mf_page_stat(m.pg), MF_STAT_alloc_nowait_fail), 1);
	mf_cache_info(cache, &info);
	CU_ASSERT_EQUAL(info.deferred, 2);
	CU_ASSERT_EQUAL(info.used, 0);
	check_ok(&m);
	/* A look at all objects takes them up first, as every operation does. */
	CU_ASSERT_EQUAL(mf_cache_validate(cache), 0);
	mf_cache_info(cache, &info);
	CU_ASSERT_EQUAL(info.deferred, 0);
	CU_ASSERT_EQUAL(info.used, 0);
	goes_on(&m, cache);
	CU_ASSERT_FALSE(mf_cache_is_damaged(cache));
	end(&m, cache);
}

/* Deferred and then the whole cache given back. */
static void test_deferred_at_the_end(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m);
	char *object = take(&m, cache);

	mf_lock_acquire(&cache->node[0]->lock);
	CU_ASSERT_EQUAL(mf_cache_free(cache, &m.place, object), 0);
	mf_lock_release(&cache->node[0]->lock);
	mf_cache_put(cache);
	CU_ASSERT_EQUAL(mf_cache_destroy(m.slabs, mf_text_of("dbg"), NULL, 0), 0);
	CU_ASSERT_EQUAL(m.nr_reports, 0);
	stop(&m);
}

static void test_no_memory(void)
{
	struct machine m;
	struct mf_cache *cache = begin(&m);
	char *object;

	mf_fault_arm(&m.fault, MF_FAULT_slab_new, 1, 1);
	CU_ASSERT_PTR_NULL(mf_cache_alloc(cache, &m.place, MEMFS_GFP_KERNEL));
	mf_fault_disarm(&m.fault);
	CU_ASSERT_EQUAL(stat_sum(cache, MF_SLAB_STAT_alloc_slowpath), 1);
	CU_ASSERT_EQUAL(stat_sum(cache, MF_SLAB_STAT_alloc_slab), 0);
	check_ok(&m);
	object = take(&m, cache);
	give(&m, cache, object);
	goes_on(&m, cache);
	end(&m, cache);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_patterns),
	UNIT_TEST(test_slabs_and_counters),
	UNIT_TEST(test_nodes),
	UNIT_TEST(test_every_flag_set),
	UNIT_TEST(test_constructor),
	UNIT_TEST(test_double_free),
	UNIT_TEST(test_foreign_pointers),
	UNIT_TEST(test_wrong_cache),
	UNIT_TEST(test_overflow),
	UNIT_TEST(test_use_after_free),
	UNIT_TEST(test_abandoned_slab),
	UNIT_TEST(test_broken_list),
	UNIT_TEST(test_padding),
	UNIT_TEST(test_slab_that_goes),
	UNIT_TEST(test_validate),
	UNIT_TEST(test_traces),
	UNIT_TEST(test_traces_refused),
	UNIT_TEST(test_owners_in_report),
	UNIT_TEST(test_no_waiting),
	UNIT_TEST(test_deferred_at_the_end),
	UNIT_TEST(test_no_memory),
};

UNIT_MAIN("slab_debug", tests)
