/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Topologies: each form of the option, layout, limits, and every mistake with its line. */
#include "topo/topo.h"
#include "plat/plat_sim.h"

#include "unit.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define G (UINT64_C(1) << 18) /* pages */
#define M 256

static struct mf_topo *created(const char *text)
{
	struct mf_topo *topo = NULL;
	char why[200] = "";

	CU_ASSERT_EQUAL(mf_topo_create(text, NULL, &topo, why, sizeof(why)), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(topo);
	CU_ASSERT_STRING_EQUAL(why, "");
	return topo;
}

static struct mf_topo *parsed(const char *text)
{
	struct mf_topo *topo = NULL;
	char why[200] = "";
	int error = mf_topo_parse_file(text, strlen(text), &topo, why, sizeof(why));

	if (error)
		printf("%s\n", why);
	CU_ASSERT_EQUAL_FATAL(error, 0);
	return topo;
}

static void short_form(void)
{
	struct mf_topo *topo = created("2x1G:cpus=4+256M:cpus=0+0:cpus=3+64K");

	CU_ASSERT_EQUAL(topo->nodes, 0x1f);
	CU_ASSERT_EQUAL(topo->memory, 0x17);
	CU_ASSERT_EQUAL(topo->normal_memory, 0x17);
	CU_ASSERT_EQUAL(topo->with_cpu, 0x1b);
	CU_ASSERT_TRUE(topo->simulated);
	CU_ASSERT_EQUAL(topo->nr_cpus, 12);
	CU_ASSERT_EQUAL(topo->cpu_limit, 12);
	CU_ASSERT_EQUAL(topo->cpus[0], 0xfff);
	CU_ASSERT_EQUAL(topo->cpu_node[3], 0);
	CU_ASSERT_EQUAL(topo->cpu_node[4], 1);
	CU_ASSERT_EQUAL(topo->cpu_node[8], 3);
	CU_ASSERT_EQUAL(topo->cpu_node[11], 4); /* cpus= left out: one */
	CU_ASSERT_EQUAL(topo->cpu_node[12], -1);
	CU_ASSERT_EQUAL(topo->node[1]->cpus[0], 0xf0);
	CU_ASSERT_EQUAL(topo->node[1]->nr_cpus, 4);
	CU_ASSERT_EQUAL(topo->node[1]->start_pfn, G);
	CU_ASSERT_EQUAL(topo->node[2]->start_pfn, 2 * G);
	CU_ASSERT_EQUAL(topo->node[2]->zone[MF_ZONE_NORMAL].nr_pages, 256 * M);
	CU_ASSERT_EQUAL(topo->node[3]->nr_pages, 0);
	CU_ASSERT_EQUAL(topo->node[4]->start_pfn, 2 * G + 256 * M);
	CU_ASSERT_EQUAL(topo->nr_pages, 2 * G + 256 * M + 16);
	CU_ASSERT_EQUAL(topo->pfn_limit, 2 * G + 256 * M + 16);
	CU_ASSERT_EQUAL(topo->node[0]->distance[0], 10);
	CU_ASSERT_EQUAL(topo->node[0]->distance[3], 20);
	CU_ASSERT_EQUAL(topo->node[0]->distance[5], 0);
	CU_ASSERT_EQUAL(topo->node[0]->host_node, -1);
	CU_ASSERT_EQUAL(topo->node[0]->bandwidth, 0);
	CU_ASSERT_PTR_NULL(topo->node[5]);
	CU_ASSERT_EQUAL(mf_topo_first_cpu(topo), 0);
	mf_topo_destroy(topo);
}

static void file_form(void)
{
	struct mf_topo *topo = parsed("# two sockets and an expander\n"
				      "\n"
				      "distance 2 10 14 33 # before its nodes\n"
				      "node 7 cpus 3,70-71 zones Movable=64M bandwidth 64000\n"
				      "node 2 cpus 0-1 zones DMA=16M,DMA32=112M,Normal=12K bandwidth 307200\n"
				      "\tnode  63 cpus 1023 zones -  \n"
				      "distance 63 255 1 10");

	CU_ASSERT_EQUAL(topo->nodes, 1ull << 2 | 1ull << 7 | 1ull << 63);
	CU_ASSERT_EQUAL(topo->memory, 1ull << 2 | 1ull << 7);
	CU_ASSERT_EQUAL(topo->normal_memory, 1ull << 2);
	CU_ASSERT_EQUAL(topo->with_cpu, topo->nodes);
	CU_ASSERT_EQUAL(topo->node[2]->zone[MF_ZONE_DMA].start_pfn, 0);
	CU_ASSERT_EQUAL(topo->node[2]->zone[MF_ZONE_DMA32].start_pfn, 16 * M);
	CU_ASSERT_EQUAL(topo->node[2]->zone[MF_ZONE_DMA32].nr_pages, 112 * M);
	CU_ASSERT_EQUAL(topo->node[2]->zone[MF_ZONE_NORMAL].start_pfn, 128 * M);
	CU_ASSERT_EQUAL(topo->node[2]->zone[MF_ZONE_NORMAL].nr_pages, 3);
	CU_ASSERT_EQUAL(topo->node[2]->zone[MF_ZONE_MOVABLE].nr_pages, 0);
	CU_ASSERT_EQUAL(topo->node[2]->zone[MF_ZONE_MOVABLE].start_pfn, 0);
	CU_ASSERT_EQUAL(topo->node[2]->nr_pages, 128 * M + 3);
	CU_ASSERT_EQUAL(topo->node[7]->start_pfn, 129 * 256 + 768); /* the next multiple of 1024 */
	CU_ASSERT_EQUAL(topo->node[7]->start_pfn % 1024, 0);
	CU_ASSERT_EQUAL(topo->node[7]->zone[MF_ZONE_MOVABLE].start_pfn, topo->node[7]->start_pfn);
	CU_ASSERT_EQUAL(topo->pfn_limit, topo->node[7]->start_pfn + 64 * M);
	CU_ASSERT_EQUAL(topo->nr_pages, 192 * M + 3);
	CU_ASSERT_EQUAL(topo->cpu_node[70], 7);
	CU_ASSERT_EQUAL(topo->cpu_node[1023], 63);
	CU_ASSERT_EQUAL(topo->cpu_node[2], -1);
	CU_ASSERT_EQUAL(topo->cpus[1], 0xc0);
	CU_ASSERT_EQUAL(topo->node[7]->nr_cpus, 3);
	CU_ASSERT_EQUAL(topo->nr_cpus, 6);
	CU_ASSERT_EQUAL(topo->cpu_limit, 1024);
	CU_ASSERT_EQUAL(topo->node[7]->bandwidth, 64000);
	CU_ASSERT_EQUAL(topo->node[2]->distance[7], 14);
	CU_ASSERT_EQUAL(topo->node[2]->distance[63], 33);
	CU_ASSERT_EQUAL(topo->node[63]->distance[2], 255);
	CU_ASSERT_EQUAL(topo->node[63]->distance[7], 1);
	CU_ASSERT_EQUAL(topo->node[7]->distance[2], 20); /* no line: 10 and 20 */
	CU_ASSERT_EQUAL(topo->node[7]->distance[7], 10);
	CU_ASSERT_EQUAL(topo->node[7]->distance[0], 0);
	CU_ASSERT_TRUE(topo->simulated);
	mf_topo_destroy(topo);
}

static void no_cpus(void)
{
	struct mf_topo *topo = parsed("node 0 cpus - zones Normal=4M\n");

	CU_ASSERT_EQUAL(topo->nr_cpus, 0);
	CU_ASSERT_EQUAL(topo->cpu_limit, 0);
	CU_ASSERT_EQUAL(topo->with_cpu, 0);
	CU_ASSERT_EQUAL(mf_topo_first_cpu(topo), -1);
	mf_topo_destroy(topo);
	topo = parsed("node 0 cpus 200 zones Normal=4M\n");
	CU_ASSERT_EQUAL(mf_topo_first_cpu(topo), 200);
	mf_topo_destroy(topo);
}

static void largest(void)
{
	struct mf_topo *topo = created("64x256G:cpus=16");

	CU_ASSERT_EQUAL(topo->nodes, ~0ull);
	CU_ASSERT_EQUAL(topo->nr_cpus, 1024);
	CU_ASSERT_EQUAL(topo->nr_pages, 1ull << 32);
	CU_ASSERT_EQUAL(topo->pfn_limit, 1ull << 32);
	CU_ASSERT_EQUAL(topo->node[63]->start_pfn, 63u << 26);
	mf_topo_destroy(topo);
	topo = created("16T:cpus=1024");
	CU_ASSERT_EQUAL(topo->pfn_limit, 1ull << 32);
	mf_topo_destroy(topo);
	topo = created("8x128G");
	CU_ASSERT_EQUAL(topo->nr_pages, 1ull << 28);
	mf_topo_destroy(topo);
}

struct mistake {
	const char *text;
	const char *why;
};

static void short_mistakes(void)
{
	static const struct mistake mistakes[] = {
		{ "", "'' is not a size up to 16T" },
		{ "1G+", "'' is not a size up to 16T" },
		{ "+1G", "'' is not a size up to 16T" },
		{ "1G++1G", "'' is not a size up to 16T" },
		{ "1Q", "'1Q' is not a size up to 16T" },
		{ "-1G", "'-1G' is not a size up to 16T" },
		{ "17T", "'17T' is not a size up to 16T" },
		{ "1G,cpus=2", "'1G,cpus=2' is not a size up to 16T" },
		{ "2x8T+4K", "more than 16 TiB of memory" },
		{ "6K", "'6K' is not a multiple of 4K" },
		{ "0x1G", "'0' is not a number of nodes, 1..64" },
		{ "x1G", "'' is not a number of nodes, 1..64" },
		{ "65x1G", "'65' is not a number of nodes, 1..64" },
		{ "2x", "'' is not a size up to 16T" },
		{ "64x2M+2M", "more than 64 nodes, or a node number above 63" },
		{ "1G:", "'' is not cpus=K, K 0..1024" },
		{ "1G:cpus", "'cpus' is not cpus=K, K 0..1024" },
		{ "1G:cpus=", "'cpus=' is not cpus=K, K 0..1024" },
		{ "1G:cpus=-1", "'cpus=-1' is not cpus=K, K 0..1024" },
		{ "1G:cpus=2:cpus=2", "'cpus=2:cpus=2' is not cpus=K, K 0..1024" },
		{ "1G:mem=2", "'mem=2' is not cpus=K, K 0..1024" },
		{ "1G:cpus=1025", "'cpus=1025' is not cpus=K, K 0..1024" },
		{ "64x1G:cpus=16+1G", "more than 64 nodes, or a node number above 63" },
		{ "2x1G:cpus=512+1G", "more than 1024 CPUs" },
		{ "0", "no node has 2 MiB of memory" },
		{ "4x1M", "no node has 2 MiB of memory" },
		{ "3x1G\n", "'1G?' is not a size up to 16T" },
		/* 2^32 pages, but not with the gap behind the first node */
		{ "2M+16777208M+4K+4096K", "more than 16 TiB with the gaps between nodes" },
	};

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		struct mf_topo *topo = NULL;
		char why[200] = "";

		CU_ASSERT_EQUAL(mf_topo_create(mistakes[i].text, NULL, &topo, why, sizeof(why)), -EINVAL);
		CU_ASSERT_PTR_NULL(topo);
		CU_ASSERT_STRING_EQUAL(why, mistakes[i].why);
		if (strcmp(why, mistakes[i].why))
			printf("'%s': %s\n", mistakes[i].text, why);
	}
}

#define NODE0 "node 0 cpus 0 zones Normal=4M\n"

static void file_mistakes(void)
{
	static const struct mistake mistakes[] = {
		{ "", "no node has 2 MiB of memory" },
		{ "# nothing\n", "no node has 2 MiB of memory" },
		{ "node 0 cpus 0 zones -\n", "no node has 2 MiB of memory" },
		{ NODE0 "nodes 1", "line 2: 'nodes' is neither node nor distance" },
		{ "\navailable: 2 nodes (0-1)\n",
		  "line 2: this is what 'numactl --hardware' prints; lines 'node ID cpus ...' expected" },
		{ "node", "line 1: '' is not a node number, 0..63" },
		{ "node 64 cpus 0 zones -", "line 1: '64' is not a node number, 0..63" },
		{ "node -1 cpus 0 zones -", "line 1: '-1' is not a node number, 0..63" },
		{ NODE0 "\nnode 0 cpus 1 zones Normal=4M", "line 3: node 0 appears twice" },
		{ "node 0", "line 1: 'cpus' expected instead of ''" },
		{ "node 0 cpu 0 zones -", "line 1: 'cpus' expected instead of 'cpu'" },
		{ "node 0 cpus", "line 1: '' is not a list of CPUs, 0..1023" },
		{ "node 0 cpus 0-1024 zones -", "line 1: '0-1024' is not a list of CPUs, 0..1023" },
		{ "node 0 cpus 2-1 zones -", "line 1: '2-1' is not a list of CPUs, 0..1023" },
		{ NODE0 "node 1 cpus 1,0 zones -", "line 2: CPU 0 is already on node 0" },
		{ "node 0 cpus 0", "line 1: 'zones' expected instead of ''" },
		{ "node 0 cpus 0 zones", "line 1: '' is not DMA, DMA32, Normal or Movable" },
		{ "node 0 cpus 0 zones HighMem=1G",
		  "line 1: 'HighMem' is not DMA, DMA32, Normal or Movable" },
		{ "node 0 cpus 0 zones Normal=1G,", "line 1: '' is not DMA, DMA32, Normal or Movable" },
		{ "node 0 cpus 0 zones Normal", "line 1: '' is not a size up to 16T" },
		{ "node 0 cpus 0 zones Normal=0", "line 1: zone Normal is empty; leave it out" },
		{ "node 0 cpus 0 zones Normal=5000", "line 1: '5000' is not a multiple of 4K" },
		{ "node 0 cpus 0 zones Normal=1G,DMA=16M", "line 1: zone DMA is not above Normal" },
		{ "node 0 cpus 0 zones Normal=1G,Normal=1G", "line 1: zone Normal is not above Normal" },
		{ "node 0 cpus 0 zones DMA=15M,Normal=1G",
		  "line 1: zone DMA is not the last and no multiple of 2M" },
		{ "node 0 cpus 0 zones DMA=16M,Normal=4K,Movable=2M",
		  "line 1: zone Normal is not the last and no multiple of 2M" },
		{ "node 0 cpus 0 zones Normal=8T,Movable=9T", "line 1: more than 16 TiB of memory" },
		{ "node 0 cpus 0 zones Normal=1G speed 3",
		  "line 1: 'bandwidth' expected instead of 'speed'" },
		{ "node 0 cpus 0 zones Normal=1G bandwidth", "line 1: '' is not a bandwidth in MB/s" },
		{ "node 0 cpus 0 zones Normal=1G bandwidth 1G", "line 1: '1G' is not a bandwidth in MB/s" },
		{ "node 0 cpus 0 zones Normal=1G bandwidth 1 2", "line 1: '2' is too much" },
		{ NODE0 "distance 1 10", "line 2: there is no node 1" },
		{ NODE0 "distance", "line 2: '' is not a node number, 0..63" },
		{ NODE0 "distance 0", "line 2: a distance for each of the 1 nodes expected" },
		{ NODE0 "node 5 cpus 1 zones -\ndistance 5 20",
		  "line 3: a distance for each of the 2 nodes expected" },
		{ NODE0 "distance 0 10 20", "line 2: '20' is too much" },
		{ NODE0 "distance 0 0", "line 2: '0' is not a distance, 1..255" },
		{ NODE0 "distance 0 256", "line 2: '256' is not a distance, 1..255" },
		{ NODE0 "distance 0 10\ndistance 0 10", "line 3: distances of node 0 appear twice" },
		{ "node 0 cpus 0 zones Normal=4M\r\n", "line 1: '4M?' is not a size up to 16T" },
	};

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		struct mf_topo *topo = NULL;
		char why[200] = "";
		size_t length = strlen(mistakes[i].text);
		char *exact =
			malloc(length + 1); /* without the NUL, so that a sanitizer sees a read too far */

		memcpy(exact, mistakes[i].text, length);
		exact = realloc(exact, length ? length : 1);
		CU_ASSERT_EQUAL(mf_topo_parse_file(exact, length, &topo, why, sizeof(why)), -EINVAL);
		CU_ASSERT_PTR_NULL(topo);
		CU_ASSERT_STRING_EQUAL(why, mistakes[i].why);
		if (strcmp(why, mistakes[i].why))
			printf("'%s': %s\n", mistakes[i].text, why);
		free(exact);
	}
}

static void reason_is_optional_and_bounded(void)
{
	struct mf_topo *topo = NULL;
	char why[8] = "";

	CU_ASSERT_EQUAL(mf_topo_create("1Q", NULL, &topo, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(mf_topo_parse_file("node 0 cpus", 11, &topo, why, sizeof(why)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "line 1:");
	CU_ASSERT_PTR_NULL(topo);
}

static void from_a_file(void)
{
	char path[] = "/tmp/memfs-topo-XXXXXX", text[64], why[200] = "";
	int fd = mkstemp(path);
	struct mf_topo *topo = NULL;

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(write(fd, NODE0, strlen(NODE0)), (ssize_t)strlen(NODE0));
	snprintf(text, sizeof(text), "@%s", path);
	CU_ASSERT_EQUAL(mf_topo_create(text, NULL, &topo, why, sizeof(why)), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(topo);
	CU_ASSERT_EQUAL(topo->nr_pages, 4 * M);
	mf_topo_destroy(topo);
	topo = NULL;
	CU_ASSERT_EQUAL(write(fd, "bad\n", 4), 4);
	CU_ASSERT_EQUAL(mf_topo_create(text, NULL, &topo, why, sizeof(why)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "line 2: 'bad' is neither node nor distance");
	CU_ASSERT_EQUAL(ftruncate(fd, (1 << 20) + 1), 0);
	CU_ASSERT_EQUAL(mf_topo_create(text, NULL, &topo, why, sizeof(why)), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "longer than 1 MiB"));
	unlink(path);
	close(fd);
	CU_ASSERT_EQUAL(mf_topo_create(text, NULL, &topo, why, sizeof(why)), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, path));
	CU_ASSERT_EQUAL(mf_topo_create("@/", NULL, &topo, why, sizeof(why)), -EISDIR);
	CU_ASSERT_PTR_NULL(topo);
}

/* Two nodes with memory and one without, numbers with holes. */
static struct mf_plat *simulated_host(unsigned nr)
{
	struct mf_plat_node nodes[3] = {
		{ .id = 1, .bytes = 3ull << 20, .cpus = { 0x3 } },
		{ .id = 4, .bytes = (1ull << 30) + 4096, .cpus = { 0xc, 1 } },
		{ .id = 9, .bytes = 1 << 20, .cpus = { 0x30 } },
	};
	struct mf_plat *plat = NULL;

	nodes[0].distance[1] = 10;
	nodes[0].distance[4] = 31;
	nodes[0].distance[6] = 77; /* to a node that is not there */
	nodes[1].distance[1] = 32;
	nodes[1].distance[4] = 10;
	CU_ASSERT_EQUAL_FATAL(mf_plat_sim_create(nodes, nr, &plat), 0);
	return plat;
}

static void host_nodes(void)
{
	struct mf_plat *plat = simulated_host(3);
	struct mf_topo *topo = NULL;

	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(mf_topo_create(i ? "auto" : "host", plat, &topo, NULL, 0), 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(topo);
		CU_ASSERT_FALSE(topo->simulated);
		CU_ASSERT_EQUAL(topo->nodes, 0x212);
		CU_ASSERT_EQUAL(topo->memory, 0x12);
		CU_ASSERT_EQUAL(topo->node[1]->nr_pages, 2 * M);
		CU_ASSERT_EQUAL(topo->node[4]->nr_pages, G);
		CU_ASSERT_EQUAL(topo->node[4]->zone[MF_ZONE_NORMAL].nr_pages, G);
		CU_ASSERT_EQUAL(topo->node[4]->start_pfn, 1024);
		CU_ASSERT_EQUAL(topo->node[9]->nr_pages, 0); /* less than 2 MiB */
		CU_ASSERT_EQUAL(topo->node[4]->host_node, 4);
		CU_ASSERT_EQUAL(topo->node[1]->distance[4], 31);
		CU_ASSERT_EQUAL(topo->node[4]->distance[1], 32);
		CU_ASSERT_EQUAL(topo->node[1]->distance[6], 0);
		CU_ASSERT_EQUAL(topo->node[9]->distance[9], 10); /* the host was silent */
		CU_ASSERT_EQUAL(topo->node[9]->distance[4], 20);
		CU_ASSERT_EQUAL(topo->cpu_node[64], 4);
		CU_ASSERT_EQUAL(topo->cpu_node[5], 9);
		CU_ASSERT_EQUAL(topo->cpu_limit, 65);
		CU_ASSERT_EQUAL(topo->nr_cpus, 7);
		mf_topo_destroy(topo);
		topo = NULL;
	}
	plat->ops->destroy(plat);
}

static void auto_without_nodes(void)
{
	static const unsigned nr_hosts[] = { 0, 1 };
	struct mf_topo *topo = NULL;
	char why[100];

	for (int i = 0; i < 2; i++) {
		struct mf_plat *plat = simulated_host(nr_hosts[i]);

		CU_ASSERT_EQUAL(mf_topo_create(i ? NULL : "auto", plat, &topo, NULL, 0), 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(topo);
		CU_ASSERT_TRUE(topo->simulated);
		CU_ASSERT_EQUAL(topo->nodes, 3);
		CU_ASSERT_EQUAL(topo->nr_pages, 512 * M);
		CU_ASSERT_EQUAL(topo->nr_cpus, 4);
		mf_topo_destroy(topo);
		topo = NULL;
		plat->ops->destroy(plat);
	}
	CU_ASSERT_EQUAL(mf_topo_create("host", NULL, &topo, why, sizeof(why)), -ENODEV);
	CU_ASSERT_STRING_EQUAL(why, "the host does not tell of its nodes");
	CU_ASSERT_PTR_NULL(topo);
}

static void host_of_one_node(void)
{
	struct mf_plat *plat = simulated_host(1);
	struct mf_topo *topo = NULL;

	CU_ASSERT_EQUAL(mf_topo_create("host", plat, &topo, NULL, 0), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(topo);
	CU_ASSERT_FALSE(topo->simulated);
	CU_ASSERT_EQUAL(topo->nodes, 2);
	mf_topo_destroy(topo);
	plat->ops->destroy(plat);
}

static void host_beyond_limits(void)
{
	struct mf_plat_node nodes[2] = { { .id = 0, .bytes = 9ull << 40 }, { .id = 1, .bytes = 9ull << 40 } };
	struct mf_plat *plat = NULL;
	struct mf_topo *topo = NULL;

	CU_ASSERT_EQUAL_FATAL(mf_plat_sim_create(nodes, 2, &plat), 0);
	CU_ASSERT_EQUAL(mf_topo_create("host", plat, &topo, NULL, 0), -EINVAL);
	CU_ASSERT_PTR_NULL(topo);
	CU_ASSERT_EQUAL(mf_topo_create("auto", plat, &topo, NULL, 0), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(topo);
	CU_ASSERT_TRUE(topo->simulated);
	mf_topo_destroy(topo);
	plat->ops->destroy(plat);
}

static const struct unit_test tests[] = {
	UNIT_TEST(short_form),	     UNIT_TEST(file_form),
	UNIT_TEST(no_cpus),	     UNIT_TEST(largest),
	UNIT_TEST(short_mistakes),   UNIT_TEST(file_mistakes),
	UNIT_TEST(from_a_file),	     UNIT_TEST(reason_is_optional_and_bounded),
	UNIT_TEST(host_nodes),	     UNIT_TEST(auto_without_nodes),
	UNIT_TEST(host_of_one_node), UNIT_TEST(host_beyond_limits),
};

UNIT_MAIN("topo", tests)
