/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One small user of the library, written in what C and C++ have in common and
 * included by test_header.c and test_header_cxx.cc.  It calls every function
 * of memfs.h, so a function that is declared and not exported does not link.
 */
#ifndef MF_TESTS_HEADER_CALLS_H
#define MF_TESTS_HEADER_CALLS_H

static int nr_wrong;

#define EXPECT(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			nr_wrong++; \
		} \
	} while (0)

static void use_tasks(struct memfs *m)
{
	struct memfs_task *t = NULL, *again = NULL;

	EXPECT(memfs_task_find(m, "default") != NULL);
	EXPECT(memfs_task_find(m, "user") == NULL);
	EXPECT(memfs_task_create(m, "user", &t) == 0);
	EXPECT(memfs_task_create(m, "user", &again) == -EEXIST && again == NULL);
	EXPECT(memfs_task_find(m, "user") == t);
	EXPECT(memfs_task_set_policy(t, "no such policy") == -EINVAL);
	EXPECT(memfs_task_set_mems_allowed(t, "0-1") == 0);
	EXPECT(memfs_task_set_cpu(t, 1) == 0);
	EXPECT(memfs_task_set_cpu(t, 4096) == -EINVAL);
	EXPECT(memfs_task_destroy(t) == 0);
	EXPECT(memfs_task_destroy(memfs_task_find(m, "default")) == -EBUSY);
}

static void use_pages(struct memfs *m, struct memfs_task *t)
{
	memfs_pfn pfn, other;
	void *bytes;

	EXPECT(memfs_alloc_pages(t, MEMFS_GFP_KERNEL, MEMFS_MAX_PAGE_ORDER + 1, &pfn) == -EINVAL);
	EXPECT(memfs_alloc_pages_node(t, 63, MEMFS_GFP_KERNEL, 0, &pfn) == -EINVAL);
	if (memfs_alloc_pages(t, MEMFS_GFP_KERNEL | MEMFS___GFP_ZERO, 1, &pfn)) {
		EXPECT(!"a block of two pages");
		return;
	}
	bytes = memfs_page_address(m, pfn);
	EXPECT(bytes && ((char *)bytes)[0] == 0 && ((char *)bytes)[2 * MEMFS_PAGE_SIZE - 1] == 0);
	memset(bytes, 0xa5, 2 * MEMFS_PAGE_SIZE);
	EXPECT(memfs_address_page(m, bytes).v == pfn.v);
	memfs_free_pages(t, pfn, 1);

	if (memfs_alloc_pages_node(t, 1, MEMFS_GFP_KERNEL | MEMFS___GFP_THISNODE, 0, &other)) {
		EXPECT(!"a page of node 1");
		return;
	}
	EXPECT(memfs_page_node(m, other) == 1);
	memfs_free_pages(t, other, 0);
}

/* 400 pages at weights 3 and 1 are 300 and 100. */
static void use_bulk(struct memfs *m, struct memfs_task *t)
{
	static memfs_pfn pfns[400];
	size_t got, on_node[2] = { 0, 0 };
	char reply[256];

	EXPECT(memfs_write(m, "weights/node0", "3\n", 2, reply, sizeof(reply)) == 0);
	EXPECT(memfs_write(m, "weights/node0", "0\n", 2, reply, sizeof(reply)) == -EINVAL);
	EXPECT(strlen(reply) > 0);
	EXPECT(memfs_read(m, "weights/node0", reply, sizeof(reply)) == 2 && !memcmp(reply, "3\n", 2));
	EXPECT(memfs_task_set_policy(t, "weighted interleave:0-1") == 0);

	got = memfs_alloc_bulk(t, MEMFS_GFP_KERNEL, 400, pfns);
	EXPECT(got == 400);
	for (size_t i = 0; i < got; i++)
		if (memfs_page_node(m, pfns[i]) == 0 || memfs_page_node(m, pfns[i]) == 1)
			on_node[memfs_page_node(m, pfns[i])]++;
	EXPECT(on_node[0] == 300 && on_node[1] == 100);
	memfs_free_bulk(t, got, pfns);
	EXPECT(memfs_drain(m, -1) == 0);
}

static size_t on_node(struct memfs *m, const void *address, size_t pages, int node)
{
	size_t nr = 0;

	for (size_t i = 0; i < pages; i++)
		nr += memfs_page_node(
			      m, memfs_address_page(m, (const char *)address + i * MEMFS_PAGE_SIZE)) == node;
	return nr;
}

/* The task interleaves 3 to 1 by now. */
static void use_ranges(struct memfs *m, struct memfs_task *t)
{
	void *range = memfs_vmalloc(t, 400 * MEMFS_PAGE_SIZE);
	void *cleared = memfs_vzalloc(t, 5000);
	void *there = memfs_vmalloc_node(t, 1, 1);

	EXPECT(range && cleared && there);
	if (!range || !cleared || !there)
		return;
	EXPECT(on_node(m, range, 400, 0) == 300 && on_node(m, range, 400, 1) == 100);
	EXPECT(((char *)cleared)[0] == 0 && ((char *)cleared)[4999] == 0);
	EXPECT(on_node(m, there, 1, 1) == 1);
	memset(range, 0xa5, 400 * MEMFS_PAGE_SIZE);
	EXPECT(memfs_vfree(t, range) == 0 && memfs_vfree(t, cleared) == 0 && memfs_vfree(t, there) == 0);
	EXPECT(memfs_vfree(t, range) == -EINVAL && memfs_vfree(t, NULL) == 0);
	errno = 0;
	EXPECT(memfs_vmalloc(t, 0) == NULL && errno == EINVAL);
	EXPECT(memfs_vpurge(m) == 0);
}

static void use_maps(struct memfs *m, struct memfs_task *t)
{
	memfs_pfn pfns[2];
	void *both;

	if (memfs_alloc_bulk(t, MEMFS_GFP_KERNEL, 2, pfns) != 2) {
		EXPECT(!"two pages");
		return;
	}
	both = memfs_vmap(m, pfns, 2);
	EXPECT(both != NULL);
	if (both) {
		memset(both, 0x5a, 2 * MEMFS_PAGE_SIZE);
		EXPECT(((char *)memfs_page_address(m, pfns[1]))[MEMFS_PAGE_SIZE - 1] == 0x5a);
		EXPECT(memfs_vunmap(m, both) == 0);
		EXPECT(memfs_vunmap(m, both) == -EINVAL);
	}
	memfs_free_bulk(t, 2, pfns);
}

static void use_caches(struct memfs *m, struct memfs_task *t)
{
	struct memfs_cache *c = NULL;
	void *object, *there, *many[3];

	EXPECT(memfs_cache_create(m, "no good", 64, 0, 0, NULL, &c) == -EINVAL && c == NULL);
	EXPECT(memfs_cache_create(m, "things", 64, 0, MEMFS_SLAB_NO_MERGE, NULL, &c) == 0);
	if (!c)
		return;
	object = memfs_cache_alloc(t, c, MEMFS_GFP_KERNEL | MEMFS___GFP_ZERO);
	there = memfs_cache_alloc_node(t, c, MEMFS_GFP_KERNEL | MEMFS___GFP_THISNODE, 1);
	EXPECT(object && there);
	EXPECT(!object || ((char *)object)[63] == 0);
	EXPECT(!there || memfs_page_node(m, memfs_address_page(m, there)) == 1);
	EXPECT(memfs_cache_alloc_bulk(t, c, MEMFS_GFP_KERNEL, 3, many) == 3);
	EXPECT(memfs_cache_destroy(m, c) == -EBUSY);
	EXPECT(memfs_cache_free_bulk(t, c, 3, many) == 0);
	EXPECT(memfs_cache_free(t, c, object) == 0 && memfs_cache_free(t, c, there) == 0);
	EXPECT(memfs_cache_shrink(m, c) > 0);
	EXPECT(memfs_cache_destroy(m, c) == 0);
}

static void use_sizes(struct memfs *m, struct memfs_task *t)
{
	char *small = (char *)memfs_kmalloc(t, 100, MEMFS_GFP_KERNEL), *grown;
	char *cleared = (char *)memfs_kzalloc(t, 5000, MEMFS_GFP_KERNEL);
	void *there = memfs_kmalloc_node(t, 20000, MEMFS_GFP_KERNEL, 1);

	EXPECT(small && cleared && there);
	if (!small || !cleared || !there)
		return;
	EXPECT(memfs_ksize(m, small) == 128 && memfs_ksize(m, cleared) == 8192 &&
	       memfs_ksize(m, there) == 32768);
	EXPECT(cleared[0] == 0 && cleared[4999] == 0);
	small[99] = 'x';
	grown = (char *)memfs_krealloc(t, small, 129, MEMFS_GFP_KERNEL);
	EXPECT(grown && grown[99] == 'x');
	EXPECT(memfs_kfree(t, grown) == 0 && memfs_kfree(t, cleared) == 0 && memfs_kfree(t, there) == 0);
	EXPECT(memfs_kfree(t, NULL) == 0 && memfs_kfree(t, &small) == -EINVAL);
}

static int header_calls(void)
{
	struct memfs *m = NULL;
	char why[256] = "";

	EXPECT(strlen(memfs_version()) > 0);
	EXPECT(memfs_create("topology=nonsense", &m, why, sizeof(why)) == -EINVAL);
	EXPECT(m == NULL && strlen(why) > 0);
	if (memfs_create("topology=2x64M:cpus=2", &m, why, sizeof(why))) {
		fprintf(stderr, "no instance: %s\n", why);
		return 1;
	}
	use_tasks(m);
	use_pages(m, memfs_task_find(m, "default"));
	use_bulk(m, memfs_task_find(m, "default"));
	use_ranges(m, memfs_task_find(m, "default"));
	use_maps(m, memfs_task_find(m, "default"));
	use_caches(m, memfs_task_find(m, "default"));
	use_sizes(m, memfs_task_find(m, "default"));
	memfs_destroy(m);
	memfs_destroy(NULL);
	return nr_wrong ? 1 : 0;
}

#endif
