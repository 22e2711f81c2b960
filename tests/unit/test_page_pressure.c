/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The page allocator where it is tight: sizes of refills on small zones, reserves,
 * the order in which preferred nodes give out, large calls, and hosts without
 * restartable sequences.
 */
#include "unit.h"

#include "page/page.h"
#include "plat/plat_sim.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_VARIABLE "MF_TEST_CHILD"

struct machine {
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *pg;
	struct mf_placement place;
};

static memfs_pfn pfns[70000];

static void start(struct machine *m, const char *topology)
{
	char why[256] = "";

	memset(m, 0, sizeof(*m));
	mf_fault_init(&m->fault);
	CU_ASSERT_EQUAL_FATAL(mf_plat_sim_create(NULL, 0, &m->plat), 0);
	CU_ASSERT_EQUAL_FATAL(mf_topo_create(topology, m->plat, &m->topo, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL_FATAL(mf_page_create(m->topo, m->plat, &m->fault, &m->pg), 0);
	mf_placement_init(&m->place, m->pg);
}

static void stop(struct machine *m)
{
	mf_page_destroy(m->pg);
	mf_topo_destroy(m->topo);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(m->plat), 0);
	m->plat->ops->destroy(m->plat);
}

static void set_policy(struct machine *m, const char *text)
{
	struct mf_policy_context context;
	struct mf_policy policy;
	char why[128];

	mf_placement_context(m->topo, m->place.allowed, &context);
	CU_ASSERT_EQUAL_FATAL(mf_policy_parse(mf_text_of(text), &context, &policy, why, sizeof(why)), 0);
	mf_placement_set_policy(&m->place, &policy, m->topo);
}

static struct mf_page_request request_for(memfs_gfp gfp, unsigned order)
{
	return (struct mf_page_request){
		.gfp = gfp, .order = order, .node = MF_NODE_BY_POLICY, .cpu = MF_CPU_OF_TASK
	};
}

static size_t exhaust(struct machine *m, memfs_gfp gfp, size_t n)
{
	struct mf_page_request request = request_for(gfp, 0);

	while (n < sizeof(pfns) / sizeof(pfns[0]) && mf_page_alloc(m->pg, &m->place, &request, &pfns[n]) == 0)
		n++;
	return n;
}

static void check_ok(struct machine *m, int64_t handed_out)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	unsigned bad = mf_page_check(m->pg, handed_out, &out);

	if (bad)
		fprintf(stderr, "%s", out.data);
	CU_ASSERT_EQUAL(bad, 0);
	mf_outbuf_free(&out);
}

/* 16 MiB: batch 1, and still the refills double while nothing is freed. */
static void test_refills_of_a_small_zone(void)
{
	static const uint64_t expected[] = { 1, 2, 4, 8, 16, 32, 32 };
	uint64_t last = 0, pages;
	struct machine m;
	int refills = 0;

	start(&m, "16M:cpus=2");
	for (int i = 0; i < 1000 && refills < 7; i++) {
		CU_ASSERT_EQUAL_FATAL(mf_page_alloc_simple(&m.place, MEMFS_GFP_KERNEL, 0, &pfns[i]), 0);
		pages = mf_stat_read(mf_page_stat(m.pg), MF_STAT_pcp_refill_pages);
		if (pages != last)
			CU_ASSERT_EQUAL(pages - last, expected[refills++]);
		last = pages;
	}
	CU_ASSERT_EQUAL(refills, 7);
	stop(&m);
}

/* One free between two refills halves what the next one brings, it does not start again from the batch. */
static void test_a_free_halves_the_refill(void)
{
	struct mf_page_request request = request_for(MEMFS_GFP_KERNEL, 0);
	uint64_t before, refilled;
	struct machine m;
	size_t n = 0;

	start(&m, "1G:cpus=4");
	/* 63, 126, 252, 504: the factor is 4 and the list is empty. */
	while (n < 63 + 126 + 252 + 504)
		CU_ASSERT_EQUAL_FATAL(mf_page_alloc(m.pg, &m.place, &request, &pfns[n++]), 0);
	mf_page_free_bulk(m.pg, &m.place, 1, &pfns[--n]);
	before = mf_stat_read(mf_page_stat(m.pg), MF_STAT_pcp_refill_pages);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(mf_page_alloc(m.pg, &m.place, &request, &pfns[n++]), 0);
	refilled = mf_stat_read(mf_page_stat(m.pg), MF_STAT_pcp_refill_pages) - before;
	CU_ASSERT_EQUAL(refilled, 63 << 2);
	check_ok(&m, (int64_t)n);
	stop(&m);
}

/* Preferred nodes give down to min before any other node gives at all. */
static void preferred_many(bool bulk)
{
	struct mf_page_request request = request_for(MEMFS_GFP_KERNEL | MEMFS___GFP_NORETRY, 0);
	struct mf_zone_info info;
	struct machine m;
	size_t n = 0;

	start(&m, "3x16M:cpus=1");
	set_policy(&m, "prefer (many):1");
	if (bulk)
		n = mf_page_alloc_bulk(m.pg, &m.place, &request, 4096, pfns);
	else
		while (n < 4096 && mf_page_alloc(m.pg, &m.place, &request, &pfns[n]) == 0)
			n++;
	CU_ASSERT_EQUAL(n, 4096);
	mf_page_zone_info(m.pg, mf_zone_index(1, MF_ZONE_NORMAL), &info);
	CU_ASSERT_TRUE(info.free <= info.marks.min);
	check_ok(&m, (int64_t)n);
	stop(&m);
}

static void test_preferred_many(void)
{
	preferred_many(false);
	preferred_many(true);
}

/* What was set aside for atomic requests serves those that cannot wait, and nobody else. */
static void test_nowait_uses_the_reserve(void)
{
	struct mf_page_request atomic = request_for(MEMFS_GFP_ATOMIC, 3);
	struct mf_zone_info info;
	struct machine m;
	memfs_pfn block;
	size_t n, before;

	start(&m, "256M:cpus=1");
	n = exhaust(&m, MEMFS_GFP_KERNEL, 0);
	for (size_t i = 0; i < 4096; i++)
		mf_page_free(&m.place, pfns[--n], 0);
	mf_page_drain(m.pg, -1);
	n = exhaust(&m, MEMFS_GFP_KERNEL | MEMFS___GFP_NORETRY, n);
	CU_ASSERT_EQUAL_FATAL(mf_page_alloc(m.pg, &m.place, &atomic, &block), 0);
	mf_page_zone_info(m.pg, mf_zone_index(0, MF_ZONE_NORMAL), &info);
	CU_ASSERT_EQUAL_FATAL(info.reserved_highatomic, 512);
	for (size_t i = 0; i < 2000; i++)
		mf_page_free(&m.place, pfns[--n], 0);
	mf_page_drain(m.pg, -1);
	n = exhaust(&m, MEMFS_GFP_KERNEL | MEMFS___GFP_NORETRY, n);
	mf_page_drain(m.pg, -1);
	n = exhaust(&m, MEMFS_GFP_KERNEL | MEMFS___GFP_NORETRY, n);
	mf_page_zone_info(m.pg, mf_zone_index(0, MF_ZONE_NORMAL), &info);
	CU_ASSERT_TRUE_FATAL(info.free_highatomic > 0);
	before = n;
	n = exhaust(&m, MEMFS_GFP_NOWAIT, n);
	CU_ASSERT_TRUE(n > before);
	check_ok(&m, (int64_t)n + 8);
	stop(&m);
}

/* More than one hold of the zone lock: still every page, and each given back. */
static void test_large_calls(void)
{
	struct mf_page_request request = request_for(MEMFS_GFP_KERNEL, 0);
	struct machine m;
	uint64_t locks;

	start(&m, "256M:cpus=1");
	locks = mf_stat_read(mf_page_stat(m.pg), MF_STAT_zone_lock);
	CU_ASSERT_EQUAL(mf_page_alloc_bulk(m.pg, &m.place, &request, 50000, pfns), 50000);
	CU_ASSERT_TRUE(mf_stat_read(mf_page_stat(m.pg), MF_STAT_zone_lock) - locks >= 50000 / 4096);
	check_ok(&m, 50000);
	mf_page_free_bulk(m.pg, &m.place, 50000, pfns);
	check_ok(&m, 0);
	stop(&m);
}

/* Tasks of the caller's own CPU on a host where the C library registered nothing. */
static void test_without_rseq(void)
{
	char program[] = "/proc/self/exe", tunable[] = "GLIBC_TUNABLES=glibc.pthread.rseq=0";
	char variable[] = CHILD_VARIABLE "=1";
	char *argv[] = { program, NULL }, *envp[] = { tunable, variable, NULL };
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		execve(program, argv, envp);
		_exit(2);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int run_child(void)
{
	struct machine m;
	char why[256];
	bool good = true;

	memset(&m, 0, sizeof(m));
	mf_fault_init(&m.fault);
	if (mf_plat_sim_create(NULL, 0, &m.plat) ||
	    mf_topo_create("2x64M:cpus=2", m.plat, &m.topo, why, sizeof(why)) ||
	    mf_page_create(m.topo, m.plat, &m.fault, &m.pg))
		return EXIT_FAILURE;
	mf_placement_init(&m.place, m.pg);
	mf_placement_set_cpu(&m.place, MEMFS_CPU_AUTO, m.topo);
	/* The second node's: not the CPU 0 that an unregistered thread reads. */
	mf_plat_sim_set_cpu(m.plat, 2);
	for (int i = 0; i < 1000; i++) {
		good &= mf_page_alloc_simple(&m.place, MEMFS_GFP_KERNEL, 0, &pfns[i]) == 0;
		good &= mf_page_rseq_available() || mf_page_node(m.pg, pfns[i].v) == 1;
	}
	for (int i = 0; i < 1000; i++)
		mf_page_free(&m.place, pfns[i], 0);
	mf_page_destroy(m.pg);
	mf_topo_destroy(m.topo);
	m.plat->ops->destroy(m.plat);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_refills_of_a_small_zone),
	UNIT_TEST(test_a_free_halves_the_refill),
	UNIT_TEST(test_preferred_many),
	UNIT_TEST(test_nowait_uses_the_reserve),
	UNIT_TEST(test_large_calls),
	UNIT_TEST(test_without_rseq),
};

int main(void)
{
	if (getenv(CHILD_VARIABLE))
		return run_child();
	return unit_main("page under pressure", tests, sizeof(tests) / sizeof(tests[0]));
}
