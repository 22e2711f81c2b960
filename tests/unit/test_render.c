/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's formats: line by line against output of a 7.2 kernel on a
 * machine of the same shape (tests/data/samples), and exact numbers.
 */
#include "ctl_fixture.h"
#include "data.h"

/* Zones, nodes and CPUs as in the samples, with less memory. */
static const char sample_shape[] = "node 0 cpus 0-1 zones DMA=16M,DMA32=240M\n"
				   "node 1 cpus 2-3 zones DMA32=128M\n"
				   "node 2 cpus - zones DMA32=64M\n"
				   "distance 0 10 20 28\ndistance 1 20 10 24\ndistance 2 28 24 10\n";

/* A hole in the ids, and a node without memory. */
static const char sparse_shape[] = "node 1 cpus 0 zones Normal=8M\nnode 4 cpus 1 zones -\n"
				   "distance 1 10 33\ndistance 4 33 10\n";

static char *read_sample(const char *name)
{
	char path[256];
	char *text = calloc(1, 65536);
	FILE *file;

	snprintf(path, sizeof(path), "samples/%s", name);
	file = data_open(path);
	if (!file || !fread(text, 1, 65535, file))
		abort();
	fclose(file);
	return text;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Numbers become '#'.  Of right-aligned ones the blanks in front go as well,
 * and the columns in which they end are noted.
 */
static void shape_of(const char *line, bool right, char *shape, char *ends)
{
	size_t n = 0;

	memset(ends, ' ', 255);
	ends[255] = '\0';
	for (size_t i = 0; line[i] && n < 254; i++) {
		if (!is_digit(line[i])) {
			shape[n++] = line[i];
			continue;
		}
		while (right && n && shape[n - 1] == ' ')
			n--;
		while (is_digit(line[i + 1]))
			i++;
		shape[n++] = '#';
		if (right && i < 255)
			ends[i] = '|';
	}
	shape[n] = '\0';
}

static bool same_shape(const char *ours, const char *kernels, bool right)
{
	char shapes[2][256], ends[2][256];

	shape_of(ours, right, shapes[0], ends[0]);
	shape_of(kernels, right, shapes[1], ends[1]);
	if (strcmp(shapes[0], shapes[1]) == 0 && strcmp(ends[0], ends[1]) == 0)
		return true;
	fprintf(stderr, "ours   \"%s\"\nkernel \"%s\"\n", ours, kernels);
	return false;
}

/* All lines of a file of ours have the shape of the sample's, in their order. */
static void compare(struct memfs *m, const char *path, const char *sample, bool right)
{
	char *ours = content(m, path), *kernels = read_sample(sample);
	char *our_rest = ours, *kernel_rest = kernels;
	unsigned nr_lines = 0;

	CU_ASSERT_EQUAL(ours[strlen(ours) - 1], '\n');
	while (our_rest && *our_rest && kernel_rest && *kernel_rest) {
		CU_ASSERT(same_shape(strsep(&our_rest, "\n"), strsep(&kernel_rest, "\n"), right));
		nr_lines++;
	}
	CU_ASSERT(our_rest && !*our_rest && kernel_rest && !*kernel_rest);
	CU_ASSERT(nr_lines >= 4);
	free(ours);
	free(kernels);
}

static void test_same_as_kernel(void)
{
	struct memfs *m = fixture_file(sample_shape);

	compare(m, "stats/buddyinfo", "buddyinfo", true);
	compare(m, "stats/pagetypeinfo", "pagetypeinfo", true);
	compare(m, "stats/zoneinfo", "zoneinfo", false);
	compare(m, "stats/vmstat", "vmstat", false);
	compare(m, "nodes/node2/vmstat", "node2-vmstat", false);
	compare(m, "nodes/node2/numastat", "node2-numastat", false);
	compare(m, "nodes/node2/meminfo", "node2-meminfo", true);
	fixture_end(m);
}

/* VmallocTotal is wider than its column in the sample, ours is 64 GiB; the others end where the kernel's do. */
static void test_meminfo_lines(void)
{
	struct memfs *m = fixture_file(sample_shape);
	char *ours = content(m, "stats/meminfo"), *kernels = read_sample("meminfo");
	char *our_rest = ours, *kernel_rest = kernels;

	while (our_rest && *our_rest && kernel_rest && *kernel_rest) {
		char *our_line = strsep(&our_rest, "\n"), *kernel_line = strsep(&kernel_rest, "\n");

		if (strncmp(kernel_line, "VmallocTotal:", 13) == 0)
			CU_ASSERT_STRING_EQUAL(our_line, "VmallocTotal:   67108864 kB")
		else
			CU_ASSERT(same_shape(our_line, kernel_line, true));
	}
	CU_ASSERT(our_rest && !*our_rest && kernel_rest && !*kernel_rest);
	free(ours);
	free(kernels);
	fixture_end(m);
}

/* A line of buddyinfo with nothing but blocks of order 10. */
#define WHOLE(zone, blocks) \
	zone "      0      0      0      0      0      0      0      0      0      0 " blocks " \n"

static void test_fresh_numbers(void)
{
	struct memfs *m = fixture_file(sample_shape);

	ASSERT_HOLDS(m, "stats/buddyinfo",
		     WHOLE("Node 0, zone      DMA", "     4") WHOLE("Node 0, zone    DMA32", "    60")
			     WHOLE("Node 1, zone    DMA32", "    32")
				     WHOLE("Node 2, zone    DMA32", "    16"));
	ASSERT_HOLDS(m, "nodes/node0/DMA/free_area",
		     "     0      0      0      0      0      0      0      0      0      0      4 \n");
	ASSERT_CONTAINS(m, "stats/meminfo", "MemTotal:         458752 kB\nMemFree:          458752 kB\n");
	ASSERT_CONTAINS(m, "stats/meminfo", "Hugepagesize:       2048 kB\n");
	ASSERT_CONTAINS(m, "nodes/node2/meminfo",
			"Node 2 MemTotal:          65536 kB\nNode 2 MemFree:           65536 kB\n"
			"Node 2 MemUsed:               0 kB\n");
	ASSERT_HOLDS(m, "nodes/node0/DMA/protection", "(0, 240, 240, 240, 240)\n");
	ASSERT_HOLDS(m, "nodes/node0/DMA32/protection", "(0, 0, 0, 0, 0)\n");
	ASSERT_CONTAINS(m, "stats/zoneinfo",
			"        protection: (0, 240, 240, 240, 240)\n      nr_free_pages 4096\n"
			"      nr_free_pages_blocks 4096\n");
	ASSERT_CONTAINS(m, "stats/zoneinfo", "  start_pfn:           4096\n");
	ASSERT_CONTAINS(m, "stats/zoneinfo", "  start_pfn:           65536\n");
	ASSERT_CONTAINS(m, "stats/pagetypeinfo",
			"Node 0, zone    DMA32            0          120            0 "
			"           0            0            0 \n");
	ASSERT_CONTAINS(m, "stats/vmstat", "nr_free_pages 114688\nnr_free_pages_blocks 114688\n");
	ASSERT_HOLDS(m, "nodes/node2/distance", "28 24 10\n");
	fixture_end(m);
}

/* Free pages less the high marks and the DMA zone's protection of 240. */
static void test_mem_available(void)
{
	static const char *const zones[] = { "node0/DMA", "node0/DMA32", "node1/DMA32", "node2/DMA32" };
	struct memfs *m = fixture_file(sample_shape);
	uint64_t pages = 114688 - 240;
	char path[64], line[64];

	for (size_t i = 0; i < sizeof(zones) / sizeof(zones[0]); i++) {
		char *high;

		snprintf(path, sizeof(path), "nodes/%s/high", zones[i]);
		high = content(m, path);
		CU_ASSERT(atoi(high) > 0);
		pages -= (uint64_t)atoi(high);
		free(high);
	}
	snprintf(line, sizeof(line), "\nMemAvailable:%11llu kB\n", (unsigned long long)pages * 4);
	ASSERT_CONTAINS(m, "stats/meminfo", line);
	fixture_end(m);
}

static void test_counted_numbers(void)
{
	struct memfs *m = fixture_file(sample_shape);

	CU_ASSERT_EQUAL(put(m, "tune/pcp_mode", "off"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "a node=1 count=5 via=single"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "b node=0 order=9 count=2 gfp=__GFP_DMA"), 0);
	ASSERT_HOLDS(
		m, "nodes/node1/numastat",
		"numa_hit 5\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node 0\nother_node 5\n");
	ASSERT_HOLDS(
		m, "nodes/node0/numastat",
		"numa_hit 1024\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node 1024\nother_node 0\n");
	ASSERT_CONTAINS(m, "stats/vmstat",
			"\npgalloc_dma 1024\npgalloc_dma32 5\npgalloc_normal 0\npgalloc_movable 0\n"
			"pgalloc_device 0\nallocstall_dma 0\n");
	ASSERT_CONTAINS(m, "stats/vmstat", "\nnuma_hit 1029\n");
	ASSERT_CONTAINS(m, "nodes/node1/vmstat", "nr_free_pages 32763\nnr_free_pages_blocks 32256\n");
	ASSERT_CONTAINS(m, "nodes/node1/meminfo", "Node 1 MemUsed:              20 kB\n");
	ASSERT_HOLDS(m, "nodes/node0/DMA/free", "3072\n");
	ASSERT_CONTAINS(m, "stats/zoneinfo",
			"Node 1, zone    DMA32\n  per-node stats\n      nr_inactive_anon 0\n");
	ASSERT_CONTAINS(m, "stats/zoneinfo", "  pages free     32763\n        boost    ");
	CU_ASSERT_EQUAL(put(m, "alloc/free", "a"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "b"), 0);
	ASSERT_CONTAINS(m, "stats/vmstat", "\npgfree 1029\n");
	ASSERT_HOLDS(m, "nodes/node1/DMA32/free_area",
		     "     0      0      0      0      0      0      0      0      0      0     32 \n");
	fixture_end(m);
}

static void test_sparse_and_memoryless(void)
{
	struct memfs *m = fixture_file(sparse_shape);

	ASSERT_HOLDS(m, "stats/buddyinfo", WHOLE("Node 1, zone   Normal", "     2"));
	ASSERT_HOLDS(m, "nodes/node4/distance", "33 10\n");
	ASSERT_HOLDS(
		m, "nodes/node4/numastat",
		"numa_hit 0\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node 0\nother_node 0\n");
	ASSERT_CONTAINS(m, "nodes/node4/meminfo", "Node 4 MemTotal:              0 kB\n");
	ASSERT_CONTAINS(m, "nodes/node4/vmstat", "nr_free_pages 0\n");
	ASSERT_HOLDS(m, "nodes/node4/resident", "0\n");
	ASSERT_CONTAINS(m, "stats/zoneinfo", "Node 4, zone      DMA\n  pages free     0\n");
	ASSERT_CONTAINS(m, "stats/zoneinfo", "Node 4, zone   Normal\n  pages free     0\n");
	ASSERT_HOLDS(m, "nodes/online", "1,4\n");
	ASSERT_HOLDS(m, "nodes/has_memory", "1\n");
	ASSERT_HOLDS(m, "nodes/has_cpu", "1,4\n");
	ASSERT_HOLDS(m, "nodes/node4/cpulist", "1\n");
	ASSERT_HOLDS(m, "nodes/node4/cpumap", "2\n");
	fixture_end(m);
}

/* The per-node block once a node with memory, and never for one without. */
static void test_per_node_block(void)
{
	struct memfs *m = fixture_file(sample_shape);
	char *text = content(m, "stats/zoneinfo");
	unsigned blocks = 0, pagesets = 0;

	for (char *at = text; (at = strstr(at, "per-node stats")); at++)
		blocks++;
	for (char *at = text; (at = strstr(at, "    cpu: ")); at++)
		pagesets++;
	CU_ASSERT_EQUAL(blocks, 3);
	CU_ASSERT_EQUAL(pagesets, 4 * 4); /* four zones, four CPUs */
	free(text);
	fixture_end(m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_same_as_kernel),	       UNIT_TEST(test_meminfo_lines),
	UNIT_TEST(test_fresh_numbers),	       UNIT_TEST(test_counted_numbers),
	UNIT_TEST(test_sparse_and_memoryless), UNIT_TEST(test_per_node_block),
	UNIT_TEST(test_mem_available),
};

UNIT_MAIN("render", tests)
