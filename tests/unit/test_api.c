/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The library as a program sees it: memfs.h alone, on the real host.
 */
#include "memfs.h"
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>

#define OPTIONS "topology=2x64M:cpus=2,tune/tick_ms=0"
#define WEIGHTED OPTIONS ",weights/node0=3,weights/node1=1,tasks/default/policy=weighted-interleave:0-1"

static struct memfs *create(const char *options)
{
	struct memfs *m = NULL;
	char why[256] = "";
	int error = memfs_create(options, &m, why, sizeof(why));

	if (error) {
		fprintf(stderr, "memfs_create: %d %s\n", error, why);
		abort();
	}
	return m;
}

static int put(struct memfs *m, const char *path, const char *text)
{
	return memfs_write(m, path, text, strlen(text), NULL, 0);
}

static bool file_is(struct memfs *m, const char *path, const char *wanted)
{
	char buf[4096];
	long length = memfs_read(m, path, buf, sizeof(buf) - 1);
	bool same;

	if (length < 0 || length >= (long)sizeof(buf))
		return false;
	buf[length] = '\0';
	same = strcmp(buf, wanted) == 0;
	if (!same)
		fprintf(stderr, "%s: %s", path, buf);
	return same;
}

/* --- instances --- */

static void create_tells_why_it_failed(void)
{
	struct memfs *m = NULL;
	char why[256] = "";

	CU_ASSERT_EQUAL(memfs_create("topology=0x0", &m, why, sizeof(why)), -EINVAL);
	CU_ASSERT_NOT_EQUAL(strlen(why), 0);
	CU_ASSERT_EQUAL(memfs_create(OPTIONS ",nonsense=1", &m, why, sizeof(why)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "unknown option nonsense");
	CU_ASSERT_EQUAL(memfs_create(OPTIONS ",nonsense=1", &m, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(memfs_create(OPTIONS ",nonsense=1", &m, why, 8), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "unknown");
	CU_ASSERT_PTR_NULL(m);
	memfs_destroy(NULL);
}

static void defaults_are_enough(void)
{
	struct memfs *m = create(NULL);
	memfs_pfn pfn;

	CU_ASSERT_NOT_EQUAL(strlen(memfs_version()), 0);
	CU_ASSERT_EQUAL(memfs_alloc_pages(memfs_task_find(m, "default"), MEMFS_GFP_KERNEL, 0, &pfn), 0);
	memfs_free_pages(memfs_task_find(m, "default"), pfn, 0);
	memfs_destroy(m);
}

static void instances_share_nothing(void)
{
	struct memfs *one = create(OPTIONS), *two = create(OPTIONS);

	CU_ASSERT_EQUAL(put(one, "weights/node0", "9"), 0);
	CU_ASSERT_TRUE(file_is(one, "weights/node0", "9\n"));
	CU_ASSERT_TRUE(file_is(two, "weights/node0", "1\n"));
	memfs_destroy(one);
	CU_ASSERT_TRUE(file_is(two, "debug/check", "ok\n"));
	memfs_destroy(two);
}

/* --- pages --- */

static void single_and_bulk_calls_share_one_rotation(void)
{
	struct memfs *m = create(WEIGHTED);
	struct memfs_task *task = memfs_task_find(m, "default");
	unsigned on_node[2] = { 0, 0 };
	memfs_pfn pfns[1024];
	size_t got = 0;

	for (size_t i = 0; i < 5; i++, got++)
		CU_ASSERT_EQUAL(memfs_alloc_pages(task, MEMFS_GFP_KERNEL, 0, &pfns[got]), 0);
	got += memfs_alloc_bulk(task, MEMFS_GFP_KERNEL, 1024 - 5, pfns + 5);
	CU_ASSERT_EQUAL(got, 1024);
	for (size_t i = 0; i < got; i++)
		on_node[memfs_page_node(m, pfns[i]) & 1]++;
	CU_ASSERT_EQUAL(on_node[0], 768);
	CU_ASSERT_EQUAL(on_node[1], 256);
	memfs_free_bulk(task, 1000, pfns);
	for (size_t i = 1000; i < 1024; i++)
		memfs_free_pages(task, pfns[i], 0);
	CU_ASSERT_EQUAL(memfs_drain(m, -1), 0);
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	memfs_destroy(m);
}

static void a_node_can_be_named(void)
{
	struct memfs *m = create(WEIGHTED);
	struct memfs_task *task = memfs_task_find(m, "default");
	memfs_pfn pfn = { 77 };

	CU_ASSERT_EQUAL(memfs_alloc_pages_node(task, 2, MEMFS_GFP_KERNEL, 0, &pfn), -EINVAL);
	CU_ASSERT_EQUAL(memfs_alloc_pages_node(task, -1, MEMFS_GFP_KERNEL, 0, &pfn), -EINVAL);
	CU_ASSERT_EQUAL(memfs_alloc_pages(task, MEMFS_GFP_KERNEL, 11, &pfn), -EINVAL);
	CU_ASSERT_EQUAL(pfn.v, 77);
	CU_ASSERT_EQUAL(memfs_alloc_pages_node(task, 1, MEMFS_GFP_KERNEL, 3, &pfn), 0);
	CU_ASSERT_EQUAL(memfs_page_node(m, pfn), 1);
	CU_ASSERT_EQUAL(pfn.v % 8, 0);
	memfs_free_pages(task, pfn, 3);
	CU_ASSERT_EQUAL(memfs_drain(m, 1), 0);
	CU_ASSERT_EQUAL(memfs_drain(m, 2), -ENOENT);
	memfs_destroy(m);
}

static void pages_are_memory(void)
{
	struct memfs *m = create(OPTIONS);
	struct memfs_task *task = memfs_task_find(m, "default");
	char here = 0, *bytes;
	memfs_pfn pfn, back;

	CU_ASSERT_EQUAL(memfs_alloc_pages(task, MEMFS_GFP_KERNEL | MEMFS___GFP_ZERO, 1, &pfn), 0);
	bytes = memfs_page_address(m, pfn);
	for (size_t i = 0; i < 8192; i++)
		here |= bytes[i];
	CU_ASSERT_EQUAL(here, 0);
	memset(bytes, 0x5a, 8192);
	back = memfs_address_page(m, bytes + 8191);
	CU_ASSERT_EQUAL(back.v, pfn.v + 1);
	back = memfs_address_page(m, &here);
	CU_ASSERT_EQUAL(back.v, UINT32_MAX);
	memfs_free_pages(task, pfn, 1);
	memfs_destroy(m);
}

/* --- ranges --- */

static unsigned pages_on(struct memfs *m, const char *address, size_t pages, int node)
{
	unsigned nr = 0;

	for (size_t i = 0; i < pages; i++)
		nr += memfs_page_node(m, memfs_address_page(m, address + i * 4096)) == node;
	return nr;
}

static void ranges_keep_the_policy_by_the_page(void)
{
	struct memfs *m = create(WEIGHTED);
	struct memfs_task *task = memfs_task_find(m, "default");
	char *range = memfs_vmalloc(task, 400 * 4096 - 1), *single;

	CU_ASSERT_PTR_NOT_NULL_FATAL(range);
	CU_ASSERT_EQUAL(pages_on(m, range, 400, 0), 300);
	CU_ASSERT_EQUAL(pages_on(m, range, 400, 1), 100);
	for (size_t i = 0; i < 400; i++)
		memset(range + i * 4096, (int)(i & 127), 4096);
	for (size_t i = 0; i < 400; i++) {
		memfs_pfn pfn = memfs_address_page(m, range + i * 4096 + 9);

		CU_ASSERT_EQUAL(((char *)memfs_page_address(m, pfn))[4095], (char)(i & 127));
	}
	CU_ASSERT_EQUAL(memfs_address_page(m, range + 400 * 4096).v, UINT32_MAX); /* the guard */
	single = memfs_vmalloc_node(task, 4096, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(single);
	CU_ASSERT_EQUAL(pages_on(m, single, 1, 1), 1);
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	CU_ASSERT_EQUAL(memfs_vfree(task, single), 0);
	CU_ASSERT_EQUAL(memfs_vfree(task, range), 0);
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	CU_ASSERT_EQUAL(memfs_vpurge(m), 0);
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	memfs_destroy(m);
}

/* Sizes that are parked, listed and mapped, dirty before and cleared for the next. */
static void cleared_ranges_are_clear(void)
{
	static const size_t sizes[] = { 1,	  4096,	      12288,	  5 * 4096,
					8 * 4096, 100 * 4096, 512 * 4096, 3000 * 4096 };
	struct memfs *m = create(OPTIONS);
	struct memfs_task *task = memfs_task_find(m, "default");

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int round = 0; round < 3; round++) {
			char *range = memfs_vzalloc(task, sizes[i]), any = 0;

			CU_ASSERT_PTR_NOT_NULL_FATAL(range);
			for (size_t at = 0; at < sizes[i]; at++)
				any |= range[at];
			CU_ASSERT_EQUAL(any, 0);
			memset(range, 'S', sizes[i]);
			CU_ASSERT_EQUAL(memfs_vfree(task, range), 0);
		}
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	memfs_destroy(m);
}

static void no_range(const void *address, int error)
{
	CU_ASSERT_PTR_NULL(address);
	CU_ASSERT_EQUAL(errno, error);
	errno = 0;
}

static void bad_ranges_are_refused(void)
{
	struct memfs *m = create(OPTIONS);
	struct memfs_task *task = memfs_task_find(m, "default");
	char *range = memfs_vmalloc(task, 5 * 4096), here = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(range);
	no_range(memfs_vmalloc(task, 0), EINVAL);
	no_range(memfs_vzalloc(task, 0), EINVAL);
	no_range(memfs_vmalloc_node(task, 0, 0), EINVAL);
	no_range(memfs_vmalloc_node(task, 4096, 2), EINVAL);
	no_range(memfs_vmalloc_node(task, 4096, -1), EINVAL);
	no_range(memfs_vmalloc(task, (size_t)128 << 20), ENOMEM);
	no_range(memfs_vmalloc(task, SIZE_MAX), ENOMEM);
	CU_ASSERT_EQUAL(memfs_vfree(task, NULL), 0);
	CU_ASSERT_EQUAL(memfs_vfree(task, &here), -EINVAL);
	CU_ASSERT_EQUAL(memfs_vfree(task, range + 1), -EINVAL);
	CU_ASSERT_EQUAL(memfs_vfree(task, range + 4096), -EINVAL);
	CU_ASSERT_EQUAL(memfs_vunmap(m, range), -EINVAL);
	CU_ASSERT_EQUAL(memfs_vfree(task, range), 0);
	CU_ASSERT_EQUAL(memfs_vfree(task, range), -EINVAL);
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	memfs_destroy(m);
}

static void scattered_pages_are_mapped(void)
{
	struct memfs *m = create(OPTIONS);
	struct memfs_task *task = memfs_task_find(m, "default");
	memfs_pfn pfns[3], none = { UINT32_MAX }, found;
	char *area;

	CU_ASSERT_EQUAL(memfs_alloc_pages_node(task, 1, MEMFS_GFP_KERNEL, 0, &pfns[0]), 0);
	CU_ASSERT_EQUAL(memfs_alloc_pages_node(task, 0, MEMFS_GFP_KERNEL, 0, &pfns[1]), 0);
	CU_ASSERT_EQUAL(memfs_alloc_pages_node(task, 1, MEMFS_GFP_KERNEL, 0, &pfns[2]), 0);
	area = memfs_vmap(m, pfns, 3);
	CU_ASSERT_PTR_NOT_NULL_FATAL(area);
	for (int i = 0; i < 3; i++) {
		area[i * 4096 + 7] = (char)('x' + i);
		CU_ASSERT_EQUAL(((char *)memfs_page_address(m, pfns[i]))[7], 'x' + i);
		((char *)memfs_page_address(m, pfns[i]))[8] = (char)('a' + i);
		CU_ASSERT_EQUAL(area[i * 4096 + 8], 'a' + i);
		found = memfs_address_page(m, area + i * 4096);
		CU_ASSERT_EQUAL(found.v, pfns[i].v);
	}
	no_range(memfs_vmap(m, pfns, 0), EINVAL);
	no_range(memfs_vmap(m, &none, 1), EINVAL);
	CU_ASSERT_EQUAL(memfs_vfree(task, area), -EINVAL); /* its pages are the caller's */
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	CU_ASSERT_EQUAL(memfs_vunmap(m, area), 0);
	CU_ASSERT_EQUAL(memfs_vunmap(m, area), -EINVAL);
	CU_ASSERT_EQUAL(memfs_vunmap(m, NULL), 0);
	CU_ASSERT_EQUAL(memfs_vpurge(m), 0);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(((char *)memfs_page_address(m, pfns[i]))[7], 'x' + i);
		memfs_free_pages(task, pfns[i], 0);
	}
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	memfs_destroy(m);
}

/* --- objects --- */

static unsigned nr_constructed;

static void construct(void *object)
{
	memset(object, 'c', 40);
	nr_constructed++;
}

static void caches_hand_out_objects(void)
{
	struct memfs *m = create(OPTIONS);
	struct memfs_task *task = memfs_task_find(m, "default");
	struct memfs_cache *cache = NULL;
	char *objects[100];

	CU_ASSERT_EQUAL(memfs_cache_create(m, "things", 40, 16, 0, NULL, &cache), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(cache);
	for (int i = 0; i < 100; i++) {
		objects[i] = memfs_cache_alloc(task, cache, MEMFS_GFP_KERNEL);
		CU_ASSERT_PTR_NOT_NULL_FATAL(objects[i]);
		CU_ASSERT_EQUAL((uintptr_t)objects[i] % 16, 0);
		memset(objects[i], i, 40);
	}
	for (int i = 0; i < 100; i++)
		for (int byte = 0; byte < 40; byte++)
			CU_ASSERT_EQUAL(objects[i][byte], i);
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	CU_ASSERT_EQUAL(memfs_cache_destroy(m, cache), -EBUSY);
	for (int i = 0; i < 99; i++)
		CU_ASSERT_EQUAL(memfs_cache_free(task, cache, objects[i]), 0);
	CU_ASSERT_EQUAL(memfs_cache_destroy(m, cache), -EBUSY);
	CU_ASSERT_EQUAL(memfs_kfree(task, objects[99]), 0); /* it knows whose it is */
	CU_ASSERT_EQUAL(memfs_cache_destroy(m, cache), 0);
	CU_ASSERT_EQUAL(memfs_cache_destroy(m, cache), -EINVAL);
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	memfs_destroy(m);
}

static void bulk_is_all_or_none(void)
{
	struct memfs *m = create(OPTIONS);
	struct memfs_task *task = memfs_task_find(m, "default");
	static void *objects[20000];
	struct memfs_cache *cache = NULL;

	CU_ASSERT_EQUAL(memfs_cache_create(m, "pages", 8192, 0, 0, NULL, &cache), 0);
	CU_ASSERT_EQUAL(memfs_cache_alloc_bulk(task, cache, MEMFS_GFP_KERNEL, 20000, objects), 0);
	CU_ASSERT_EQUAL(memfs_cache_alloc_bulk(task, cache, MEMFS_GFP_KERNEL, 1000, objects), 1000);
	for (size_t i = 0; i < 1000; i++)
		memset(objects[i], (int)(i & 127), 8192);
	for (size_t i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(((char *)objects[i])[8191], (char)(i & 127));
	CU_ASSERT_EQUAL(memfs_cache_free_bulk(task, cache, 1000, objects), 0);
	CU_ASSERT(memfs_cache_shrink(m, cache) > 0);
	CU_ASSERT_EQUAL(memfs_cache_shrink(m, cache), 0);
	CU_ASSERT_EQUAL(memfs_cache_destroy(m, cache), 0);
	memfs_destroy(m);
}

static void constructors_are_called(void)
{
	struct memfs *m = create(OPTIONS);
	struct memfs_task *task = memfs_task_find(m, "default");
	struct memfs_cache *cache = NULL;
	unsigned before;
	char *object;

	CU_ASSERT_EQUAL(memfs_cache_create(m, "made", 40, 0, 0, construct, &cache), 0);
	nr_constructed = 0;
	object = memfs_cache_alloc(task, cache, MEMFS_GFP_KERNEL | MEMFS___GFP_ZERO);
	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	CU_ASSERT_EQUAL(object[0], 'c');
	CU_ASSERT_EQUAL(object[39], 'c');
	before = nr_constructed;
	CU_ASSERT(before > 1);
	CU_ASSERT_EQUAL(memfs_cache_free(task, cache, object), 0);
	CU_ASSERT_PTR_EQUAL(memfs_cache_alloc(task, cache, MEMFS_GFP_KERNEL), object);
	CU_ASSERT_EQUAL(nr_constructed, before);
	CU_ASSERT_EQUAL(memfs_cache_free(task, cache, object), 0);
	CU_ASSERT_EQUAL(memfs_cache_destroy(m, cache), 0);
	memfs_destroy(m);
}

/* Two names of one cache are two handles that are equal: each is given up once. */
static void caches_may_be_shared(void)
{
	struct memfs *m = create(OPTIONS);
	struct memfs_task *task = memfs_task_find(m, "default");
	struct memfs_cache *one = NULL, *two = NULL, *alone = NULL;
	void *object;

	CU_ASSERT_EQUAL(memfs_cache_create(m, "one", 1000, 0, 0, NULL, &one), 0);
	CU_ASSERT_EQUAL(memfs_cache_create(m, "two", 996, 0, 0, NULL, &two), 0);
	CU_ASSERT_EQUAL(memfs_cache_create(m, "alone", 1000, 0, MEMFS_SLAB_NO_MERGE, NULL, &alone), 0);
	CU_ASSERT_PTR_EQUAL(one, two);
	CU_ASSERT_PTR_NOT_EQUAL(one, alone);
	object = memfs_cache_alloc(task, one, MEMFS_GFP_KERNEL);
	CU_ASSERT_EQUAL(memfs_cache_destroy(m, one), 0); /* a name less */
	CU_ASSERT_EQUAL(memfs_cache_destroy(m, two), -EBUSY);
	CU_ASSERT_EQUAL(memfs_cache_free(task, two, object), 0);
	CU_ASSERT_EQUAL(memfs_cache_destroy(m, two), 0);
	CU_ASSERT_EQUAL(memfs_cache_destroy(m, two), -EINVAL);
	CU_ASSERT_EQUAL(memfs_cache_create(m, "one", 8, 0, 0, NULL, &one), 0);
	CU_ASSERT_EQUAL(memfs_cache_create(m, "two", 8, 0, 0, NULL, &two), 0);
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	memfs_destroy(m); /* what is left goes with it */
}

static void bad_caches_are_refused(void)
{
	struct memfs *m = create(OPTIONS);
	struct memfs_task *task = memfs_task_find(m, "default");
	struct memfs_cache *cache = NULL, *other = NULL;
	char *object;

	CU_ASSERT_EQUAL(memfs_cache_create(m, "no good", 8, 0, 0, NULL, &cache), -EINVAL);
	CU_ASSERT_EQUAL(memfs_cache_create(m, "c", 0, 0, 0, NULL, &cache), -EINVAL);
	CU_ASSERT_EQUAL(memfs_cache_create(m, "c", (size_t)8 << 20, 0, 0, NULL, &cache), -EINVAL);
	CU_ASSERT_EQUAL(memfs_cache_create(m, "c", ((size_t)1 << 32) + 8, 0, 0, NULL, &cache), -EINVAL);
	CU_ASSERT_EQUAL(memfs_cache_create(m, "c", 8, 24, 0, NULL, &cache), -EINVAL);
	CU_ASSERT_EQUAL(memfs_cache_create(m, "c", 8, 0, 1u << 8, NULL, &cache), -EINVAL);
	CU_ASSERT_EQUAL(memfs_cache_create(m, "kmalloc-64", 64, 0, 0, NULL, &cache), -EEXIST);
	CU_ASSERT_PTR_NULL(cache);
	CU_ASSERT_EQUAL(memfs_cache_create(m, "c", 300, 0, 0, NULL, &cache), 0);
	CU_ASSERT_EQUAL(memfs_cache_create(m, "d", 600, 0, 0, NULL, &other), 0);
	object = memfs_cache_alloc(task, cache, MEMFS_GFP_KERNEL);
	CU_ASSERT_PTR_NULL(memfs_cache_alloc_node(task, cache, MEMFS_GFP_KERNEL, 2));
	CU_ASSERT_EQUAL(memfs_cache_free(task, other, object), -EINVAL);
	CU_ASSERT_EQUAL(memfs_cache_free(task, cache, &object), -EINVAL);
	CU_ASSERT_EQUAL(memfs_cache_free(task, cache, object), 0);
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	memfs_destroy(m);
}

static void flags_find_double_frees(void)
{
	struct memfs *m = create(OPTIONS);
	struct memfs_task *task = memfs_task_find(m, "default");
	struct memfs_cache *cache = NULL;
	char *object;

	CU_ASSERT_EQUAL(memfs_cache_create(m, "c", 50, 0, MEMFS_SLAB_CONSISTENCY | MEMFS_SLAB_POISON, NULL,
					   &cache),
			0);
	object = memfs_cache_alloc(task, cache, MEMFS_GFP_KERNEL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	CU_ASSERT_EQUAL(memfs_cache_free(task, cache, object + 8), -EINVAL);
	CU_ASSERT_EQUAL(memfs_cache_free(task, cache, object), 0);
	CU_ASSERT_EQUAL(memfs_cache_free(task, cache, object), -EINVAL);
	CU_ASSERT_EQUAL(memfs_cache_destroy(m, cache), 0);
	memfs_destroy(m);
}

static void sizes_have_classes(void)
{
	static const size_t rows[][2] = { { 1, 8 },
					  { 8, 8 },
					  { 9, 16 },
					  { 65, 96 },
					  { 97, 128 },
					  { 129, 192 },
					  { 193, 256 },
					  { 4097, 8192 },
					  { 8193, 16384 },
					  { 1 << 20, 1 << 20 },
					  { 4 << 20, 4 << 20 } };
	struct memfs *m = create(WEIGHTED);
	struct memfs_task *task = memfs_task_find(m, "default");
	char here;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *object = memfs_kzalloc(task, rows[i][0], MEMFS_GFP_KERNEL), any = 0;

		CU_ASSERT_PTR_NOT_NULL_FATAL(object);
		CU_ASSERT_EQUAL(memfs_ksize(m, object), rows[i][1]);
		for (size_t byte = 0; byte < rows[i][0]; byte++)
			any |= object[byte];
		CU_ASSERT_EQUAL(any, 0);
		memset(object, 'S', rows[i][0]);
		CU_ASSERT_EQUAL(memfs_kfree(task, object), 0);
		object = memfs_kmalloc_node(task, rows[i][0], MEMFS_GFP_KERNEL | MEMFS___GFP_THISNODE, 1);
		CU_ASSERT_EQUAL(memfs_page_node(m, memfs_address_page(m, object)), 1);
		CU_ASSERT_EQUAL(memfs_kfree(task, object), 0);
	}
	CU_ASSERT_PTR_NULL(memfs_kmalloc(task, (4 << 20) + 1, MEMFS_GFP_KERNEL));
	CU_ASSERT_PTR_NULL(memfs_kmalloc_node(task, 8, MEMFS_GFP_KERNEL, 2));
	CU_ASSERT_EQUAL(memfs_kfree(task, NULL), 0);
	CU_ASSERT_EQUAL(memfs_kfree(task, &here), -EINVAL);
	CU_ASSERT_EQUAL(memfs_ksize(m, &here), 0);
	CU_ASSERT_EQUAL(memfs_kfree(task, memfs_kmalloc(task, 0, MEMFS_GFP_KERNEL)), 0);
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	memfs_destroy(m);
}

static void objects_grow_and_shrink(void)
{
	struct memfs *m = create(OPTIONS);
	struct memfs_task *task = memfs_task_find(m, "default");
	char *object = memfs_krealloc(task, NULL, 10, MEMFS_GFP_KERNEL), *same, here;
	size_t size = 10;

	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	memcpy(object, "012345678", 10);
	for (; size <= 4000000; size *= 7) {
		object = memfs_krealloc(task, object, size, MEMFS_GFP_KERNEL);
		CU_ASSERT_PTR_NOT_NULL_FATAL(object);
		CU_ASSERT(memfs_ksize(m, object) >= size);
		CU_ASSERT_STRING_EQUAL(object, "012345678");
	}
	CU_ASSERT_PTR_NULL(memfs_krealloc(task, object, (size_t)5 << 20, MEMFS_GFP_KERNEL));
	CU_ASSERT_STRING_EQUAL(object, "012345678");
	same = memfs_krealloc(task, object, 10, MEMFS_GFP_KERNEL);
	CU_ASSERT_PTR_EQUAL(same, object);
	CU_ASSERT_PTR_NULL(memfs_krealloc(task, &here, 10, MEMFS_GFP_KERNEL));
	CU_ASSERT_EQUAL(memfs_kfree(task, memfs_krealloc(task, same, 0, MEMFS_GFP_KERNEL)), 0);
	CU_ASSERT_EQUAL(memfs_kfree(task, same), -EINVAL);
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	memfs_destroy(m);
}

/* --- tasks --- */

static void tasks_by_handle(void)
{
	struct memfs *m = create(OPTIONS);
	struct memfs_task *task = NULL;
	memfs_pfn pfn;

	CU_ASSERT_PTR_NULL(memfs_task_find(m, "t"));
	CU_ASSERT_EQUAL(memfs_task_create(m, "t", &task), 0);
	CU_ASSERT_EQUAL(memfs_task_create(m, "t", &task), -EEXIST);
	CU_ASSERT_EQUAL(memfs_task_create(m, "no good", &task), -EINVAL);
	CU_ASSERT_PTR_EQUAL(memfs_task_find(m, "t"), task);
	CU_ASSERT_EQUAL(memfs_task_set_policy(task, "bind:1"), 0);
	CU_ASSERT_EQUAL(memfs_task_set_policy(task, "bind:5"), -EINVAL);
	CU_ASSERT_TRUE(file_is(m, "tasks/t/policy", "bind:1\n"));
	CU_ASSERT_EQUAL(memfs_alloc_pages(task, MEMFS_GFP_KERNEL, 0, &pfn), 0);
	CU_ASSERT_EQUAL(memfs_page_node(m, pfn), 1);
	memfs_free_pages(task, pfn, 0);
	CU_ASSERT_EQUAL(memfs_task_set_policy(task, "default"), 0);
	CU_ASSERT_EQUAL(memfs_task_set_mems_allowed(task, "1"), 0);
	CU_ASSERT_EQUAL(memfs_task_set_mems_allowed(task, "9"), -EINVAL);
	CU_ASSERT_EQUAL(memfs_task_set_cpu(task, 0), 0);
	CU_ASSERT_EQUAL(memfs_task_set_cpu(task, 4), -EINVAL);
	CU_ASSERT_EQUAL(memfs_alloc_pages(task, MEMFS_GFP_KERNEL, 0, &pfn), 0);
	CU_ASSERT_EQUAL(memfs_page_node(m, pfn), 1); /* the CPU is on node 0, which is not allowed */
	memfs_free_pages(task, pfn, 0);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "x task=t"), 0);
	CU_ASSERT_EQUAL(memfs_task_destroy(task), -EBUSY);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "x"), 0);
	CU_ASSERT_EQUAL(memfs_task_destroy(task), 0);
	CU_ASSERT_EQUAL(memfs_task_destroy(memfs_task_find(m, "default")), -EBUSY);
	memfs_destroy(m);
}

/* --- control files --- */

static void files_are_read_and_written(void)
{
	struct memfs *m = create(OPTIONS);
	char buf[8], reply[128];

	CU_ASSERT_EQUAL(put(m, "weights/node0", "3\n"), 0);
	CU_ASSERT_EQUAL(put(m, "/tasks/default/policy", "weighted-interleave:0-1"), 0);
	CU_ASSERT_EQUAL(memfs_write(m, "alloc/pages", "db count=1024", 13, reply, sizeof(reply)), 0);
	CU_ASSERT_STRING_EQUAL(reply, "db returned=1024 node0=768 node1=256\n");
	CU_ASSERT_TRUE(file_is(m, "live/db/placement", "node0 768\nnode1 256\n"));
	CU_ASSERT_TRUE(file_is(m, "last_cmd_status", "ok\n"));
	memset(buf, '#', sizeof(buf));
	CU_ASSERT_EQUAL(memfs_read(m, "live/db/placement", buf, 5), 20);
	CU_ASSERT_EQUAL(memcmp(buf, "node0###", 8), 0);
	CU_ASSERT_EQUAL(memfs_read(m, "live/db/placement", NULL, 0), 20);
	memfs_destroy(m);
}

static void failures_say_why(void)
{
	struct memfs *m = create(OPTIONS);
	char reply[128] = "", tiny[5];

	CU_ASSERT_EQUAL(memfs_write(m, "weights/node0", "0", 1, reply, sizeof(reply)), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(reply, "weights/node0: "));
	CU_ASSERT_TRUE(file_is(m, "last_cmd_status", reply));
	CU_ASSERT_EQUAL(memfs_write(m, "weights/node0", "0", 1, tiny, sizeof(tiny)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(tiny, "weig");
	CU_ASSERT_EQUAL(memfs_write(m, "no/such", "0", 1, reply, sizeof(reply)), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(reply, "no/such: "));
	CU_ASSERT_EQUAL(memfs_write(m, "weights", "0", 1, NULL, 0), -EISDIR);
	CU_ASSERT_EQUAL(memfs_read(m, "no/such", reply, sizeof(reply)), -ENOENT);
	CU_ASSERT_EQUAL(memfs_read(m, "weights", reply, sizeof(reply)), -EISDIR);
	CU_ASSERT_EQUAL(memfs_read(m, "live/none/data", reply, sizeof(reply)), -ENOENT);
	memfs_destroy(m);
}

static void data_is_read_and_written(void)
{
	struct memfs *m = create(OPTIONS);
	char buf[3 * 4096];

	CU_ASSERT_EQUAL(put(m, "alloc/pages", "d count=2"), 0);
	CU_ASSERT_EQUAL(put(m, "live/d/data", "hello"), 0);
	memset(buf, '#', sizeof(buf));
	CU_ASSERT_EQUAL(memfs_read(m, "live/d/data", buf, sizeof(buf)), 8192);
	CU_ASSERT_EQUAL(memcmp(buf, "hello\0\0", 7), 0);
	CU_ASSERT_EQUAL(buf[8191], 0);
	CU_ASSERT_EQUAL(buf[8192], '#');
	CU_ASSERT_EQUAL(memfs_write(m, "live/d/data", buf, sizeof(buf), NULL, 0), -ENOSPC);
	memfs_destroy(m);
}

/* --- inside a signal handler --- */

static struct memfs_task *handler_task;
static struct memfs_cache *handler_cache;
static volatile sig_atomic_t handler_failures, handler_runs;

static void handler(int number)
{
	memfs_pfn pfn;

	(void)number;
	handler_runs++;
	if (memfs_alloc_pages(handler_task, MEMFS_GFP_ATOMIC, 0, &pfn))
		handler_failures++;
	else
		memfs_free_pages(handler_task, pfn, 0);
}

static void object_handler(int number)
{
	void *one = memfs_cache_alloc(handler_task, handler_cache, MEMFS_GFP_ATOMIC);
	void *other = memfs_kmalloc(handler_task, 100, MEMFS_GFP_ATOMIC);

	(void)number;
	handler_runs++;
	if (!one || !other || memfs_cache_free(handler_task, handler_cache, one) ||
	    memfs_kfree(handler_task, other))
		handler_failures++;
}

static void handlers_may_use_objects(void)
{
	struct memfs *m = create(OPTIONS);
	struct sigaction action = { .sa_handler = object_handler }, old;

	handler_task = memfs_task_find(m, "default");
	handler_runs = handler_failures = 0;
	CU_ASSERT_EQUAL(memfs_cache_create(m, "c", 200, 0, 0, NULL, &handler_cache), 0);
	sigaction(SIGUSR1, &action, &old);
	for (int i = 0; i < 100; i++)
		raise(SIGUSR1);
	sigaction(SIGUSR1, &old, NULL);
	CU_ASSERT_EQUAL(handler_runs, 100);
	CU_ASSERT_EQUAL(handler_failures, 0);
	CU_ASSERT_EQUAL(memfs_cache_destroy(m, handler_cache), 0);
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	memfs_destroy(m);
}

static void handlers_may_allocate(void)
{
	struct memfs *m = create(WEIGHTED);
	struct sigaction action = { .sa_handler = handler }, old;

	handler_task = memfs_task_find(m, "default");
	sigaction(SIGUSR1, &action, &old);
	for (int i = 0; i < 100; i++)
		raise(SIGUSR1);
	sigaction(SIGUSR1, &old, NULL);
	CU_ASSERT_EQUAL(handler_runs, 100);
	CU_ASSERT_EQUAL(handler_failures, 0);
	CU_ASSERT_TRUE(file_is(m, "debug/check", "ok\n"));
	memfs_destroy(m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(create_tells_why_it_failed),
	UNIT_TEST(defaults_are_enough),
	UNIT_TEST(instances_share_nothing),
	UNIT_TEST(single_and_bulk_calls_share_one_rotation),
	UNIT_TEST(a_node_can_be_named),
	UNIT_TEST(pages_are_memory),
	UNIT_TEST(ranges_keep_the_policy_by_the_page),
	UNIT_TEST(cleared_ranges_are_clear),
	UNIT_TEST(bad_ranges_are_refused),
	UNIT_TEST(scattered_pages_are_mapped),
	UNIT_TEST(caches_hand_out_objects),
	UNIT_TEST(bulk_is_all_or_none),
	UNIT_TEST(constructors_are_called),
	UNIT_TEST(caches_may_be_shared),
	UNIT_TEST(bad_caches_are_refused),
	UNIT_TEST(flags_find_double_frees),
	UNIT_TEST(sizes_have_classes),
	UNIT_TEST(objects_grow_and_shrink),
	UNIT_TEST(tasks_by_handle),
	UNIT_TEST(files_are_read_and_written),
	UNIT_TEST(failures_say_why),
	UNIT_TEST(data_is_read_and_written),
	UNIT_TEST(handlers_may_allocate),
	UNIT_TEST(handlers_may_use_objects),
};

UNIT_MAIN("api", tests)
