/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Named allocations that are objects: of a cache and by size, where they lie,
 * their bytes, freeing in parts; the cache they pin; every failure point undone.
 */
#include "engine_fixture.h"

#define TOPOLOGY "topology=2x64M:cpus=2"
#define WEIGHTED TOPOLOGY ",weights/node0=3,weights/node1=1,tasks/default/policy=weighted-interleave:0-1"

static unsigned constructed;

static void construct(void *object)
{
	memcpy(object, "constructed", 12);
	constructed++;
}

static struct mf_cache *make_cache(struct memfs *m, const char *name, uint32_t size, void (*ctor)(void *))
{
	struct mf_cache_request request = {
		.name = mf_text_of(name), .size = size, .flags = MF_SLAB_FLAG(NO_MERGE), .ctor = ctor
	};
	struct mf_cache *cache = NULL;

	if (mf_cache_create(m->slabs, &request, &cache, NULL, 0))
		abort();
	return cache;
}

static uint64_t used(struct mf_cache *cache)
{
	struct mf_cache_info *info = calloc(1, sizeof(*info));
	uint64_t nr;

	if (!info)
		abort();
	mf_cache_info(cache, info);
	nr = info->used;
	free(info);
	return nr;
}

static int end_cache(struct memfs *m, const char *name)
{
	return mf_cache_destroy(m->slabs, mf_text_of(name), NULL, 0);
}

/* --- from the command to the reply --- */

static void objects_of_a_cache(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct free_table *before = free_table(m);
	struct mf_cache *cache = make_cache(m, "things", 100, NULL);
	struct mf_live_request request = objects_of("s", "things", 0, 1000);
	struct mf_live *live;

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("s returned=1000 node0=1000\n");
	live = get(m, "s");
	CU_ASSERT_EQUAL(live->kind, MF_LIVE_SLAB);
	CU_ASSERT_EQUAL(live->nr_blocks, 1000);
	CU_ASSERT_EQUAL(mf_live_bytes(live), 100000);
	CU_ASSERT_EQUAL(used(cache), 1000);
	for (size_t i = 0; i < 1000; i++)
		CU_ASSERT_PTR_EQUAL(mf_cache_of(m->slabs, live->objects[i]), cache);
	mf_live_put(live);
	/* The pages are the cache's. */
	CU_ASSERT_EQUAL(m->live.nr_pages, 0);
	CU_ASSERT_EQUAL(m->tasks.default_task->live_pages[0], 0);
	CU_ASSERT_EQUAL(m->tasks.default_task->nr_live, 1);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_EQUAL(do_free(m, "s", 0), 0);
	ASSERT_TEXT("s freed=1000\n");
	CU_ASSERT_EQUAL(used(cache), 0);
	CU_ASSERT_EQUAL(m->tasks.default_task->nr_live, 0);
	mf_cache_put(cache);
	CU_ASSERT_EQUAL(end_cache(m, "things"), 0);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_TRUE(same_free_table(m, before));
	fixture_end(m);
}

static void objects_by_size(void)
{
	static const struct {
		uint64_t size, count, ksize;
	} rows[] = {
		{ 1, 600, 8 },	    { 96, 100, 96 },	   { 97, 100, 128 },	    { 8192, 9, 8192 },
		{ 8193, 3, 16384 }, { 100000, 2, 131072 }, { 4194304, 2, 4194304 },
	};
	struct memfs *m = fixture(TOPOLOGY);
	struct free_table *before = free_table(m);

	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct mf_live_request request = objects_of("-", NULL, rows[row].size, rows[row].count);
		char name[MEMFS_NAME_MAX + 1], wanted[160];
		struct mf_live *live;

		CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
		snprintf(name, sizeof(name), "slab-%zu", row + 1);
		snprintf(wanted, sizeof(wanted), "%s returned=%d node0=%d\n", name, (int)rows[row].count,
			 (int)rows[row].count);
		ASSERT_TEXT(wanted);
		live = get(m, name);
		CU_ASSERT_EQUAL(mf_live_bytes(live), rows[row].size * rows[row].count);
		for (size_t i = 0; i < rows[row].count; i++)
			CU_ASSERT_EQUAL(mf_ksize(m->slabs, live->objects[i]), rows[row].ksize);
		mf_live_put(live);
	}
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	mf_live_free_all(m);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_TRUE(same_free_table(m, before));
	fixture_end(m);
}

/* Slabs of 8 objects, one turn each: 8 slabs are 6 and 2. */
static void slabs_follow_the_policy(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = objects_of("s", NULL, 4096, 64), one = request_of("p", 4);

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("s returned=64 node0=48 node1=16\n");
	CU_ASSERT_EQUAL(do_alloc(m, &one), 0); /* a whole cycle: the rotation stood at its beginning */
	ASSERT_TEXT("p returned=4 node0=3 node1=1\n");
	fixture_end(m);
}

static void a_node_sets_the_policy_aside(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = objects_of("s", "kmalloc-64", 0, 300);
	uint32_t rotation = m->tasks.default_task->place.rotation;
	struct mf_live *live;

	request.page.node = 1;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("s returned=300 node1=300\n");
	live = get(m, "s");
	CU_ASSERT_STRING_EQUAL(live->policy, "node=1");
	CU_ASSERT_EQUAL(mf_live_pages(live), 5); /* 64 objects a page */
	CU_ASSERT_TRUE(shows(live, mf_live_placement, "node1 5\n"));
	mf_live_put(live);
	CU_ASSERT_EQUAL(m->tasks.default_task->place.rotation, rotation);
	fixture_end(m);
}

static void a_cpu_of_its_own(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = objects_of("s", "kmalloc-128", 0, 200);

	request.cpu = 3;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("s returned=200 node1=200\n");
	CU_ASSERT_EQUAL(m->tasks.default_task->place.cpu, 0);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	fixture_end(m);
}

/* Also with the CPU of another, the rotation is the task's: 8 slabs and 4 pages are three cycles. */
static void a_cpu_of_its_own_keeps_the_rotation(void)
{
	struct memfs *m = fixture(WEIGHTED);
	struct mf_live_request request = objects_of("s", NULL, 4096, 40), pages = request_of("p", 3);

	request.cpu = 3;
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	ASSERT_TEXT("s returned=40 node0=32 node1=8\n"); /* 0 0 0 1 0 */
	CU_ASSERT_EQUAL(do_alloc(m, &pages), 0);
	ASSERT_TEXT("p returned=3 node0=2 node1=1\n"); /* 0 0 1 */
	fixture_end(m);
}

static void refused(struct memfs *m, const struct mf_live_request *request, int error, const char *says)
{
	CU_ASSERT_EQUAL(do_alloc(m, request), error);
	ASSERT_SAYS(says);
	CU_ASSERT_EQUAL(m->live.table.count, 0);
}

static void bad_requests_are_refused(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = objects_of("s", "none", 0, 1);

	refused(m, &request, -ENOENT, "no cache none");
	request = objects_of("s", NULL, 0, 1);
	refused(m, &request, -EINVAL, "size is 0");
	request = objects_of("s", "kmalloc-8", 8, 1);
	refused(m, &request, -EINVAL, "exclude each other");
	request = objects_of("s", NULL, 4194305, 1);
	refused(m, &request, -EINVAL, "size 4194305");
	request = objects_of("s", "kmalloc-8", 0, 0);
	refused(m, &request, -EINVAL, "count is 0");
	request = objects_of("s", NULL, 8, UINT64_MAX);
	refused(m, &request, -ENOMEM, "all nodes hold fewer");
	request = objects_of("s", "kmalloc-8", 0, 1);
	request.policy_text = mf_text_of("interleave:0-1");
	refused(m, &request, -EINVAL, "their task's policy");
	request = objects_of("s", "kmalloc-8", 0, 1);
	request.page.node = 2;
	refused(m, &request, -ENOENT, "node 2 does not exist");
	request.page.node = MF_NODE_BY_POLICY;
	request.cpu = 4;
	refused(m, &request, -EINVAL, "CPU 4");
	request = objects_of("no good", "kmalloc-8", 0, 1);
	refused(m, &request, -EINVAL, "not a name");
	request = objects_of("s", "kmalloc-8", 0, 1);
	request.task = mf_text_of("nobody");
	refused(m, &request, -ENOENT, "no task nobody");
	fixture_end(m);
}

static void short_means_nothing(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct free_table *before = free_table(m);
	struct mf_live_request request = objects_of("s", NULL, 8192, 16384); /* every byte there is */

	refused(m, &request, -ENOMEM, "16384 objects of 8192 bytes asked, ");
	request = objects_of("s", "kmalloc-8k", 0, 16384);
	refused(m, &request, -ENOMEM, "16384 objects of 8192 bytes asked, ");
	request.page.node = 1;
	request.page.gfp |= MEMFS___GFP_THISNODE;
	request.count = 8192;
	refused(m, &request, -ENOMEM, "8192 objects of 8192 bytes asked, ");
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_TRUE(same_free_table(m, before));
	fixture_end(m);
}

static void cancelled_commands_are_undone(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct free_table *before = free_table(m);
	struct mf_live_request request = objects_of("s", NULL, 8192, 16384);
	struct mf_cancel cancel = { 1 };

	request.page.gfp |= MEMFS___GFP_NOFAIL;
	request.page.cancel = &cancel;
	refused(m, &request, -EINTR, "interrupted");
	CU_ASSERT_TRUE(same_free_table(m, before));
	fixture_end(m);
}

/* --- the cache --- */

static void a_cache_is_pinned_while_it_is_used(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = objects_of("s", "things", 0, 3);
	struct mf_live *live;

	mf_cache_put(make_cache(m, "things", 64, NULL));
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	CU_ASSERT_EQUAL(end_cache(m, "things"), -EBUSY);
	CU_ASSERT_EQUAL(do_free(m, "s", 2), 0);
	CU_ASSERT_EQUAL(end_cache(m, "things"), -EBUSY);
	live = get(m, "s");
	CU_ASSERT_EQUAL(do_free(m, "s", 0), 0);
	CU_ASSERT_EQUAL(end_cache(m, "things"), 0); /* who still looks at the entry holds no cache */
	mf_live_put(live);
	request.count = UINT64_MAX;
	mf_cache_put(make_cache(m, "things", 64, NULL));
	CU_ASSERT_EQUAL(do_alloc(m, &request), -ENOMEM);
	CU_ASSERT_EQUAL(end_cache(m, "things"), 0);
	CU_ASSERT_EQUAL(end_cache(m, "things"), -ENOENT);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	fixture_end(m);
}

/* What data showed and took is no constructed object any more: the next user gets one. */
static void constructed_objects_stay_so(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_cache *cache = make_cache(m, "things", 64, construct);
	struct mf_placement *place = &m->tasks.default_task->place;
	struct mf_live_request request = objects_of("s", "things", 0, 200);
	char bytes[64], *object;
	struct mf_live *live;

	constructed = 0;
	object = mf_cache_alloc(cache, place, MEMFS_GFP_KERNEL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	CU_ASSERT(constructed > 0);
	memcpy(object + 12, "secret", 7);
	CU_ASSERT_EQUAL(mf_cache_free(cache, place, object), 0);
	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "s");
	for (uint64_t i = 0; i < 200; i++) {
		CU_ASSERT_EQUAL(mf_live_read(live, bytes, 64, i * 64), 64);
		CU_ASSERT_STRING_EQUAL(bytes, "constructed");
		CU_ASSERT_TRUE(all_zero(bytes + 12, 52));
		memset(bytes, 'x', 64);
		CU_ASSERT_EQUAL(mf_live_write(live, bytes, 64, i * 64), 64);
	}
	mf_live_put(live);
	CU_ASSERT_EQUAL(do_free(m, "s", 0), 0);
	for (unsigned i = 0; i < 200; i++) {
		object = mf_cache_alloc(cache, place, MEMFS_GFP_KERNEL);
		CU_ASSERT_STRING_EQUAL(object, "constructed");
	}
	mf_cache_put(cache);
	fixture_end(m);
}

/* --- bytes --- */

static void bytes_run_through_the_objects(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = objects_of("s", NULL, 100, 50);
	char bytes[5001], back[5001];
	struct mf_live *live;

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "s");
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 7 + i / 100);
	CU_ASSERT_EQUAL(mf_live_write(live, bytes, 5001, 0), 5000); /* what fits */
	CU_ASSERT_EQUAL(mf_live_write(live, bytes, 1, 5000), -ENOSPC);
	memset(back, 0, sizeof(back));
	CU_ASSERT_EQUAL(mf_live_read(live, back, 5001, 0), 5000);
	CU_ASSERT_EQUAL(memcmp(bytes, back, 5000), 0);
	CU_ASSERT_EQUAL(mf_live_read(live, back, 250, 4950), 50);
	CU_ASSERT_EQUAL(memcmp(bytes + 4950, back, 50), 0);
	CU_ASSERT_EQUAL(mf_live_read(live, back, 1, 5000), 0);
	for (size_t i = 0; i < 50; i++)
		CU_ASSERT_EQUAL(memcmp(live->objects[i], bytes + i * 100, 100), 0);
	mf_live_put(live);
	fixture_end(m);
}

static void nothing_of_earlier_owners_is_shown(void)
{
	static const char *const caches[] = { "kmalloc-8", "kmalloc-192", "kmalloc-4k", NULL };
	struct memfs *m = fixture(TOPOLOGY);

	for (size_t i = 0; i < sizeof(caches) / sizeof(caches[0]); i++) {
		struct mf_live_request request = objects_of("s", caches[i], caches[i] ? 0 : 20000, 300);

		for (int round = 0; round < 2; round++) {
			struct mf_live *live;
			char *bytes;

			if (round)
				request.page.gfp |= MEMFS___GFP_ZERO;
			CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
			live = get(m, "s");
			bytes = calloc(1, mf_live_bytes(live));
			CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
			for (size_t k = 0; k < 300 && !round; k += 2)
				memset(live->objects[k], 'S', live->object_size);
			memset(bytes, 'x', mf_live_bytes(live));
			CU_ASSERT_EQUAL(mf_live_read(live, bytes, mf_live_bytes(live), 0),
					(ssize_t)mf_live_bytes(live));
			CU_ASSERT_TRUE(all_zero(bytes, mf_live_bytes(live)));
			memset(bytes, 'S', mf_live_bytes(live));
			CU_ASSERT_EQUAL(mf_live_write(live, bytes, mf_live_bytes(live), 0),
					(ssize_t)mf_live_bytes(live));
			free(bytes);
			mf_live_put(live);
			CU_ASSERT_EQUAL(do_free(m, "s", 0), 0);
		}
	}
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	fixture_end(m);
}

/* --- where they lie --- */

/* The map's lines, added up: distinct pages by rising pfn, and every object on one of them. */
static void map_tells_the_pages(struct memfs *m, struct mf_live *live)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	unsigned char *seen = calloc(m->topo->pfn_limit, 1);
	uint64_t next = 0, end = 0;
	char *line, *rest;

	CU_ASSERT_PTR_NOT_NULL_FATAL(seen);
	CU_ASSERT_EQUAL(mf_live_map(live, &out), 0);
	for (line = strtok_r(out.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		unsigned long long index, pfn, pages;

		CU_ASSERT_EQUAL_FATAL(sscanf(line, "%llu %llu %llu", &index, &pfn, &pages), 3);
		CU_ASSERT_EQUAL(index, next);
		CU_ASSERT(!end || pfn > end); /* else it were one run */
		memset(seen + pfn, 1, pages);
		next += pages;
		end = pfn + pages;
	}
	CU_ASSERT_EQUAL(next, mf_live_pages(live));
	for (size_t i = 0; i < live->nr_blocks; i++) {
		uint32_t first = 0, last = 0;

		mf_page_address_pfn(m->page, live->objects[i], &first);
		mf_page_address_pfn(m->page, (char *)live->objects[i] + live->object_size - 1, &last);
		for (uint32_t pfn = first; pfn <= last; pfn++)
			CU_ASSERT_TRUE(seen[pfn]);
	}
	mf_outbuf_free(&out);
	free(seen);
}

static void the_map_counts_pages_once(void)
{
	struct memfs *m = fixture(WEIGHTED);
	static const uint64_t sizes[] = { 8, 700, 8192, 40000 };
	static const uint64_t least[] = { 2, 171, 2000, 9766 }; /* pages that 1000 objects fill */

	for (size_t i = 0; i < 4; i++) {
		struct mf_live_request request = objects_of("s", NULL, sizes[i], 1000);
		struct mf_live *live;

		CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
		live = get(m, "s");
		map_tells_the_pages(m, live);
		CU_ASSERT(mf_live_pages(live) >= least[i]);
		CU_ASSERT(mf_live_pages(live) <= least[i] * 2 + 16);
		mf_live_put(live);
		CU_ASSERT_EQUAL(do_free(m, "s", 0), 0);
	}
	fixture_end(m);
}

/* --- the way back --- */

static void the_last_objects_are_freed(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_cache *cache = make_cache(m, "things", 256, NULL);
	struct mf_live_request request = objects_of("s", "things", 0, 100);
	void *first, *middle;
	struct mf_live *live;
	char byte = 'b';

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	live = get(m, "s");
	first = live->objects[0];
	middle = live->objects[49];
	CU_ASSERT_EQUAL(mf_live_write(live, &byte, 1, 49 * 256), 1);
	CU_ASSERT_EQUAL(do_free(m, "s", 50), 0);
	ASSERT_TEXT("s freed=50\n");
	CU_ASSERT_EQUAL(used(cache), 50);
	CU_ASSERT_EQUAL(mf_live_bytes(live), 50 * 256);
	CU_ASSERT_PTR_EQUAL(live->objects[0], first);
	CU_ASSERT_PTR_EQUAL(live->objects[49], middle);
	byte = 0;
	CU_ASSERT_EQUAL(mf_live_read(live, &byte, 1, 49 * 256), 1);
	CU_ASSERT_EQUAL(byte, 'b');
	CU_ASSERT_EQUAL(do_free(m, "s", 51), -EINVAL);
	ASSERT_TEXT("s has 50 objects, fewer than 51");
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_EQUAL(do_free(m, "s", 50), 0);
	CU_ASSERT_EQUAL(used(cache), 0);
	CU_ASSERT_EQUAL(mf_live_bytes(live), 0);
	CU_ASSERT_EQUAL(mf_live_pages(live), 0);
	CU_ASSERT_EQUAL(mf_live_read(live, &byte, 1, 0), -ENODEV);
	CU_ASSERT_EQUAL(do_free(m, "s", 0), -ENOENT);
	mf_live_put(live);
	mf_cache_put(cache);
	fixture_end(m);
}

static void failures_are_undone(const struct mf_live_request *request, unsigned at_least)
{
	struct memfs *m = fixture(WEIGHTED);
	struct free_table *start = free_table(m);
	unsigned nth, failures = 0;
	bool fired = true;

	for (nth = 1; nth < 10000 && fired; nth++) {
		struct free_table *before = free_table(m);
		uint32_t rotation = m->tasks.default_task->place.rotation;
		int error;

		mf_fault_arm_any(&m->fault, nth);
		error = do_alloc(m, request);
		fired = mf_fault_fired(&m->fault);
		mf_fault_disarm(&m->fault);
		CU_ASSERT_TRUE(check_says(m, "ok\n"));
		if (error) {
			CU_ASSERT_EQUAL(error, -ENOMEM);
			CU_ASSERT_EQUAL(m->live.table.count, 0);
			CU_ASSERT_EQUAL(m->tasks.default_task->nr_live, 0);
			CU_ASSERT_EQUAL(m->tasks.default_task->place.rotation, rotation);
		} else {
			CU_ASSERT_EQUAL(do_free(m, "f", 0), 0);
		}
		failures += error != 0;
		CU_ASSERT_TRUE(same_free_table(m, before));
	}
	CU_ASSERT_FALSE(fired);
	CU_ASSERT(failures >= at_least);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_TRUE(same_free_table(m, start));
	fixture_end(m);
}

static void failures_of_small_objects_are_undone(void)
{
	struct mf_live_request request = objects_of("f", "kmalloc-256", 0, 300);

	failures_are_undone(&request,
			    2); /* entry, list; a smaller slab and the layers make up for the rest */
}

static void failures_of_large_objects_are_undone(void)
{
	struct mf_live_request request = objects_of("f", NULL, 20000, 20);

	failures_are_undone(&request, 2);
}

static void failures_on_another_cpu_are_undone(void)
{
	struct mf_live_request request = objects_of("f", NULL, 700, 100);

	request.cpu = 2;
	failures_are_undone(&request, 2);
}

/* --- the check --- */

static void the_check_sees_what_is_wrong(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_live_request request = objects_of("s", "kmalloc-64", 0, 10),
			       other = objects_of("o", NULL, 500, 1);
	struct mf_live *live, *large;
	void *kept;

	CU_ASSERT_EQUAL(do_alloc(m, &request), 0);
	CU_ASSERT_EQUAL(do_alloc(m, &other), 0);
	live = get(m, "s");
	large = get(m, "o");
	kept = live->objects[3];
	live->objects[3] = live->objects[7];
	CU_ASSERT_TRUE(check_says(m, "belongs to two allocations\n"));
	live->objects[3] = large->objects[0];
	CU_ASSERT_TRUE(check_says(m, "live/s: object 3 at "));
	live->objects[3] = kept;
	kept = large->objects[0];
	large->objects[0] = live->objects[0];
	CU_ASSERT_TRUE(check_says(m, "live/o: object 0 at "));
	large->objects[0] = kept;
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	mf_live_put(live);
	mf_live_put(large);
	fixture_end(m);
}

/* --- what users do wrong --- */

static char logged[256];

static void log_line(void *arg, const char *line)
{
	CU_ASSERT_STRING_EQUAL(arg, "me");
	CU_ASSERT_EQUAL(mf_lock_depth(), 0);
	snprintf(logged, sizeof(logged), "%s", line);
}

static void reports_are_kept_and_told(void)
{
	struct memfs *m = fixture(TOPOLOGY);
	struct mf_placement *place = &m->tasks.default_task->place;
	char text[256] = "x", cut[8], me[] = "me";
	size_t length;

	CU_ASSERT_EQUAL(mf_engine_last_report(m, text, sizeof(text)), 0);
	CU_ASSERT_STRING_EQUAL(text, "");
	mf_engine_on_log(m, log_line, me);
	CU_ASSERT_EQUAL(mf_kfree(m->slabs, place, mf_page_address(m->page, 0)), -EINVAL);
	length = mf_engine_last_report(m, text, sizeof(text));
	CU_ASSERT_EQUAL(length, strlen(text));
	CU_ASSERT(length > 8);
	CU_ASSERT_PTR_NULL(strchr(text, '\n'));
	CU_ASSERT_EQUAL(strncmp(logged, text, length), 0);
	CU_ASSERT_EQUAL(mf_engine_last_report(m, cut, sizeof(cut)), length);
	CU_ASSERT_EQUAL(strncmp(cut, text, 7), 0);
	CU_ASSERT_EQUAL(cut[7], '\0');
	logged[0] = '\0';
	mf_engine_on_log(m, NULL, NULL);
	CU_ASSERT_EQUAL(mf_kfree(m->slabs, place, text), -EINVAL);
	CU_ASSERT_STRING_EQUAL(logged, "");
	fixture_end(m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(objects_of_a_cache),
	UNIT_TEST(objects_by_size),
	UNIT_TEST(slabs_follow_the_policy),
	UNIT_TEST(a_node_sets_the_policy_aside),
	UNIT_TEST(a_cpu_of_its_own),
	UNIT_TEST(a_cpu_of_its_own_keeps_the_rotation),
	UNIT_TEST(bad_requests_are_refused),
	UNIT_TEST(short_means_nothing),
	UNIT_TEST(cancelled_commands_are_undone),
	UNIT_TEST(a_cache_is_pinned_while_it_is_used),
	UNIT_TEST(constructed_objects_stay_so),
	UNIT_TEST(bytes_run_through_the_objects),
	UNIT_TEST(nothing_of_earlier_owners_is_shown),
	UNIT_TEST(the_map_counts_pages_once),
	UNIT_TEST(the_last_objects_are_freed),
	UNIT_TEST(failures_of_small_objects_are_undone),
	UNIT_TEST(failures_of_large_objects_are_undone),
	UNIT_TEST(failures_on_another_cpu_are_undone),
	UNIT_TEST(the_check_sees_what_is_wrong),
	UNIT_TEST(reports_are_kept_and_told),
};

UNIT_MAIN("live_slab", tests)
