/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Searching other nodes' lists: how many are looked at with each way to skip,
 * for the zonelists of behaviour 4.5 and for drawn ones; and in which order,
 * which a policy decides and a search does not move.
 */
#include "unit.h"

#include "plat/plat_sim.h"
#include "slab/slab_internal.h"

/* Remembers who was asked; says yes to the nth (0: nobody). */
struct prober {
	uint8_t asked[64];
	unsigned nr, yes;
};

static bool probe(void *arg, int node)
{
	struct prober *p = arg;

	p->asked[p->nr++ % 64] = (uint8_t)node;
	return p->nr == p->yes;
}

static unsigned probes(const uint8_t *nodes, unsigned n, int tried, enum mf_slab_skip skip)
{
	struct prober p = { .nr = 0 };
	struct mf_search_result result = mf_slab_search(nodes, n, tried, skip, probe, &p);

	CU_ASSERT_FALSE(result.hit);
	CU_ASSERT_EQUAL(result.probes, p.nr);
	CU_ASSERT_EQUAL(result.probes + result.skipped, n);
	return result.probes;
}

/* --- how many --- */

static void test_probe_counts(void)
{
	static const struct {
		uint8_t nodes[6];
		unsigned n, none, last, visited;
	} cases[] = {
		{ { 0, 0, 0 }, 3, 3, 0, 0 },
		{ { 0, 0, 0, 1, 2, 3 }, 6, 6, 3, 3 },
		{ { 0, 1, 0, 0 }, 4, 4, 2, 1 },
		{ { 2, 3, 0, 0, 0, 1 }, 6, 6, 4, 3 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CU_ASSERT_EQUAL(probes(cases[i].nodes, cases[i].n, 0, MF_SLAB_SKIP_NONE), cases[i].none);
		CU_ASSERT_EQUAL(probes(cases[i].nodes, cases[i].n, 0, MF_SLAB_SKIP_LAST), cases[i].last);
		CU_ASSERT_EQUAL(probes(cases[i].nodes, cases[i].n, 0, MF_SLAB_SKIP_VISITED),
				cases[i].visited);
	}
	CU_ASSERT_EQUAL(probes(cases[0].nodes, 0, 0, MF_SLAB_SKIP_VISITED), 0);
}

/* A node that was not looked at before is not skipped. */
static void test_nothing_tried(void)
{
	static const uint8_t nodes[] = { 0, 0, 0, 63, 0, 63 };

	CU_ASSERT_EQUAL(probes(nodes, 6, -1, MF_SLAB_SKIP_NONE), 6);
	CU_ASSERT_EQUAL(probes(nodes, 6, -1, MF_SLAB_SKIP_LAST), 4);
	CU_ASSERT_EQUAL(probes(nodes, 6, -1, MF_SLAB_SKIP_VISITED), 2);
	CU_ASSERT_EQUAL(probes(nodes, 6, 63, MF_SLAB_SKIP_VISITED), 1);
	CU_ASSERT_EQUAL(probes(nodes, 6, 5, MF_SLAB_SKIP_VISITED), 2);
}

static void test_hit_ends_it(void)
{
	static const uint8_t nodes[] = { 0, 1, 0, 2, 3 };
	struct prober p = { .yes = 2 };
	struct mf_search_result result = mf_slab_search(nodes, 5, 0, MF_SLAB_SKIP_VISITED, probe, &p);

	CU_ASSERT_TRUE(result.hit);
	CU_ASSERT_EQUAL(result.probes, 2);
	CU_ASSERT_EQUAL(result.skipped, 2);
	CU_ASSERT_EQUAL(p.asked[0], 1);
	CU_ASSERT_EQUAL(p.asked[1], 2);
	p = (struct prober){ .yes = 1 };
	result = mf_slab_search(nodes, 5, -1, MF_SLAB_SKIP_NONE, probe, &p);
	CU_ASSERT_TRUE(result.hit);
	CU_ASSERT_EQUAL(result.probes, 1);
	CU_ASSERT_EQUAL(result.skipped, 0);
	CU_ASSERT_EQUAL(p.asked[0], 0);
}

/* Drawn lists: every node once, in the order of its first place; the other ways ask it no less often. */
static void check_drawn(const uint8_t *nodes, unsigned n, int tried)
{
	struct prober p = { .nr = 0 };
	mf_nodemask seen = tried >= 0 ? mf_node_bit(tried) : 0;
	struct mf_search_result result = mf_slab_search(nodes, n, tried, MF_SLAB_SKIP_VISITED, probe, &p);
	unsigned wrong = 0, nr = 0;

	for (unsigned i = 0; i < n; i++) {
		if (mf_node_isset(seen, nodes[i]))
			continue;
		seen |= mf_node_bit(nodes[i]);
		wrong += p.asked[nr++] != nodes[i];
	}
	wrong += result.probes != nr || result.skipped != n - nr;
	wrong += probes(nodes, n, tried, MF_SLAB_SKIP_NONE) != n;
	wrong += probes(nodes, n, tried, MF_SLAB_SKIP_LAST) < nr;
	CU_ASSERT_EQUAL(wrong, 0);
}

static void test_drawn_lists(void)
{
	uint64_t state = 1;

	for (unsigned round = 0; round < 2000; round++) {
		unsigned n = round % 65;
		uint8_t nodes[64];

		for (unsigned i = 0; i < n; i++) {
			state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			nodes[i] = (uint8_t)((state >> 33) % (1 + round % 64));
		}
		check_drawn(nodes, n, (int)(state >> 40) % 9 - 1);
	}
}

/* --- in which order --- */

struct machine {
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *pg;
	struct mf_slabs *slabs;
	struct mf_placement place;
};

static const char four_nodes[] = "node 0 cpus 0 zones DMA=16M,DMA32=16M,Normal=16M\n"
				 "node 1 cpus 1 zones Normal=16M\n"
				 "node 2 cpus 2 zones Normal=16M\n"
				 "node 3 cpus 3 zones Normal=16M\n";

static void start(struct machine *m)
{
	char why[256] = "";

	memset(m, 0, sizeof(*m));
	mf_fault_init(&m->fault);
	CU_ASSERT_EQUAL_FATAL(mf_plat_sim_create(NULL, 0, &m->plat), 0);
	mf_topo_parse_file(four_nodes, strlen(four_nodes), &m->topo, why, sizeof(why));
	CU_ASSERT_STRING_EQUAL_FATAL(why, "");
	CU_ASSERT_EQUAL_FATAL(mf_page_create(m->topo, m->plat, &m->fault, &m->pg), 0);
	CU_ASSERT_EQUAL_FATAL(mf_slabs_create(m->pg, m->plat, &m->slabs), 0);
	mf_placement_init(&m->place, m->pg);
	mf_placement_set_cpu(&m->place, 0, m->topo);
}

static void stop(struct machine *m)
{
	mf_slabs_destroy(m->slabs);
	mf_page_destroy(m->pg);
	mf_topo_destroy(m->topo);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(m->plat), 0);
	m->plat->ops->destroy(m->plat);
}

static void set_policy(struct machine *m, const char *text)
{
	struct mf_policy_context context;
	struct mf_policy policy;
	char why[256];

	mf_placement_context(m->topo, m->topo->nodes, &context);
	CU_ASSERT_EQUAL_FATAL(mf_policy_parse(mf_text_of(text), &context, &policy, why, sizeof(why)), 0);
	mf_placement_set_policy(&m->place, &policy, m->topo);
}

/* The order as digits. */
static void check_order(struct machine *m, memfs_gfp gfp, const char *want)
{
	uint8_t nodes[MF_MAX_ZONES];
	char got[MF_MAX_ZONES + 1];
	unsigned n = mf_slab_search_order(m->slabs, &m->place, gfp, nodes, MF_MAX_ZONES);

	for (unsigned i = 0; i < n; i++)
		got[i] = (char)('0' + nodes[i]);
	got[n] = '\0';
	CU_ASSERT_STRING_EQUAL(got, want);
}

static void test_order_by_zone(void)
{
	uint8_t nodes[2] = { 9, 9 };
	struct machine m;

	start(&m);
	check_order(&m, MEMFS_GFP_KERNEL, "000123");
	/* Zones above what the request may use are left out, and nothing is written behind the room. */
	check_order(&m, MEMFS_GFP_KERNEL | MEMFS___GFP_DMA32, "00");
	CU_ASSERT_EQUAL(mf_slab_search_order(m.slabs, &m.place, MEMFS_GFP_KERNEL, nodes, 1), 1);
	CU_ASSERT_EQUAL(nodes[1], 9);
	mf_placement_set_cpu(&m.place, 2, m.topo);
	check_order(&m, MEMFS_GFP_KERNEL, "230001");
	stop(&m);
}

static bool same_rotation(struct mf_rotation a, struct mf_rotation b)
{
	return !memcmp(&a, &b, sizeof(a));
}

/* Interleaving: the search begins with the node whose turn it is, and leaves it its turn. */
static void test_rotation_stays(void)
{
	static const char *const want[] = { "000123", "123000", "230001", "300012", "000123" };
	struct mf_rotation before;
	memfs_pfn page[5];
	struct machine m;

	start(&m);
	set_policy(&m, "interleave:0-3");
	for (int i = 0; i < 5; i++) {
		before = mf_placement_rotation(&m.place);
		check_order(&m, MEMFS_GFP_KERNEL, want[i]);
		check_order(&m, MEMFS_GFP_KERNEL, want[i]);
		CU_ASSERT_TRUE(same_rotation(before, mf_placement_rotation(&m.place)));
		CU_ASSERT_EQUAL_FATAL(mf_page_alloc_simple(&m.place, MEMFS_GFP_KERNEL, 0, &page[i]), 0);
		CU_ASSERT_EQUAL(mf_page_node(m.pg, page[i].v), want[i][0] - '0');
		CU_ASSERT_FALSE(same_rotation(before, mf_placement_rotation(&m.place)));
	}
	for (int i = 0; i < 5; i++)
		mf_page_free(&m.place, page[i], 0);
	stop(&m);
}

static void test_order_by_policy(void)
{
	struct machine m;

	start(&m);
	set_policy(&m, "bind:1,3");
	check_order(&m, MEMFS_GFP_KERNEL, "13");
	set_policy(&m, "prefer:3");
	check_order(&m, MEMFS_GFP_KERNEL, "300012");
	set_policy(&m, "default");
	CU_ASSERT_EQUAL(mf_placement_set_allowed(&m.place, 0x6, m.topo), 0);
	check_order(&m, MEMFS_GFP_KERNEL, "12");
	stop(&m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_probe_counts),	 UNIT_TEST(test_nothing_tried), UNIT_TEST(test_hit_ends_it),
	UNIT_TEST(test_drawn_lists),	 UNIT_TEST(test_order_by_zone), UNIT_TEST(test_rotation_stays),
	UNIT_TEST(test_order_by_policy),
};

UNIT_MAIN("slab_search", tests)
