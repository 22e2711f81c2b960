/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the tests of src/vmalloc/ share: a simulated machine with both engines,
 * requests in one line, and what must be as before once everything was given
 * back.
 */
#ifndef MF_TESTS_UNIT_VMALLOC_FIXTURE_H
#define MF_TESTS_UNIT_VMALLOC_FIXTURE_H

#include "unit.h"

#include "plat/plat_sim.h"
#include "vmalloc/vmalloc_internal.h"

#include <errno.h>

#define PAGE ((uint64_t)MEMFS_PAGE_SIZE)
#define MOST_PAGES 33000

struct machine {
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *pg;
	struct mf_vmalloc *vm;
	struct mf_placement place;
	struct mf_zone_info before[MF_MAX_ZONES];
	char why[256];
	memfs_pfn pfns[MOST_PAGES]; /* pages the test holds itself */
	size_t nr_pfns;
};

/* --- birth and end --- */

static inline void snapshot(struct machine *m, struct mf_zone_info *infos)
{
	for (unsigned zone = 0; zone < MF_MAX_ZONES; zone++)
		mf_page_zone_info(m->pg, zone, &infos[zone]);
}

/* A topology in the short form, or the lines of a FILE; no vmalloc yet. */
static inline void start_pages(struct machine *m, const char *topology)
{
	char why[256] = "";

	memset(m, 0, sizeof(*m));
	mf_fault_init(&m->fault);
	CU_ASSERT_EQUAL_FATAL(mf_plat_sim_create(NULL, 0, &m->plat), 0);
	if (!strncmp(topology, "node", 4))
		mf_topo_parse_file(topology, strlen(topology), &m->topo, why, sizeof(why));
	else
		mf_topo_create(topology, m->plat, &m->topo, why, sizeof(why));
	CU_ASSERT_STRING_EQUAL_FATAL(why, "");
	CU_ASSERT_EQUAL_FATAL(mf_page_create(m->topo, m->plat, &m->fault, &m->pg), 0);
	mf_placement_init(&m->place, m->pg);
	snapshot(m, m->before);
}

static inline void start(struct machine *m, const char *topology)
{
	start_pages(m, topology);
	CU_ASSERT_EQUAL_FATAL(mf_vmalloc_create(m->pg, m->plat, &m->vm), 0);
}

static inline void stop(struct machine *m)
{
	if (m->vm)
		mf_vmalloc_destroy(m->vm);
	mf_page_destroy(m->pg);
	mf_topo_destroy(m->topo);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(m->plat), 0);
	m->plat->ops->destroy(m->plat);
}

/* --- knobs, policies, weights --- */

static inline struct mf_vmalloc_knobs knobs_of(struct machine *m)
{
	struct mf_vmalloc_knobs knobs;

	mf_vmalloc_get_knobs(m->vm, &knobs);
	return knobs;
}

static inline void set_linear(struct machine *m, int linear)
{
	struct mf_vmalloc_knobs knobs = knobs_of(m);

	knobs.linear = linear;
	mf_vmalloc_set_knobs(m->vm, &knobs);
}

static inline void set_large(struct machine *m, enum mf_vmalloc_large large)
{
	struct mf_vmalloc_knobs knobs = knobs_of(m);

	knobs.large_order = (int)large;
	mf_vmalloc_set_knobs(m->vm, &knobs);
}

static inline void set_lazy_max(struct machine *m, uint64_t pages)
{
	struct mf_vmalloc_knobs knobs = knobs_of(m);

	knobs.lazy_max = pages;
	mf_vmalloc_set_knobs(m->vm, &knobs);
}

static inline void set_max_mappings(struct machine *m, uint64_t max)
{
	struct mf_vmalloc_knobs knobs = knobs_of(m);

	knobs.max_mappings = max;
	mf_vmalloc_set_knobs(m->vm, &knobs);
}

static inline struct mf_policy policy_of(struct machine *m, const char *text)
{
	struct mf_policy_context context;
	struct mf_policy policy;

	mf_placement_context(m->topo, m->place.allowed, &context);
	CU_ASSERT_EQUAL_FATAL(mf_policy_parse(mf_text_of(text), &context, &policy, NULL, 0), 0);
	return policy;
}

static inline void set_policy(struct machine *m, const char *text)
{
	struct mf_policy policy = policy_of(m, text);

	mf_placement_set_policy(&m->place, &policy, m->topo);
}

static inline struct mf_weights set_weights(struct machine *m, uint8_t first, uint8_t second)
{
	struct mf_weights weights;

	memset(weights.of, 1, sizeof(weights.of));
	weights.of[0] = first;
	weights.of[1] = second;
	mf_page_set_weights(m->pg, &weights);
	return weights;
}

/* --- requests --- */

static inline struct mf_vmalloc_request request_of(uint64_t pages)
{
	return (struct mf_vmalloc_request){
		.size = pages * PAGE,
		.page = { .gfp = MEMFS_GFP_KERNEL, .node = MF_NODE_BY_POLICY, .cpu = MF_CPU_OF_TASK },
		.caller = "test",
	};
}

static inline int ask(struct machine *m, const struct mf_vmalloc_request *request, void **address)
{
	*address = NULL;
	m->why[0] = '\0';
	return mf_vmalloc_alloc(m->vm, &m->place, request, address, m->why, sizeof(m->why));
}

static inline char *get(struct machine *m, uint64_t pages)
{
	struct mf_vmalloc_request request = request_of(pages);
	void *address;

	CU_ASSERT_EQUAL_FATAL(ask(m, &request, &address), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(address);
	return address;
}

static inline void put(struct machine *m, const void *address)
{
	CU_ASSERT_EQUAL(mf_vmalloc_free(m->vm, &m->place, address), 0);
}

static inline bool is_mapped(struct machine *m, const void *address)
{
	return mf_vm_in_range(m->vm, address);
}

/* Pages by node of the range that starts there. */
static inline void count_nodes(struct machine *m, const void *address, uint64_t by_node[64])
{
	static memfs_pfn pfns[MOST_PAGES];
	uint64_t n = mf_vmalloc_pages(m->vm, address, pfns, MOST_PAGES);

	memset(by_node, 0, 64 * sizeof(by_node[0]));
	for (uint64_t i = 0; i < n && i < MOST_PAGES; i++)
		by_node[mf_page_node(m->pg, pfns[i].v)]++;
}

static inline void expect_nodes(struct machine *m, const void *address, uint64_t first, uint64_t second)
{
	uint64_t by_node[64];

	count_nodes(m, address, by_node);
	CU_ASSERT_EQUAL(by_node[0], first);
	CU_ASSERT_EQUAL(by_node[1], second);
}

/* --- pages the test holds itself --- */

static inline size_t hold(struct machine *m, int node, size_t n)
{
	struct mf_page_request request = { .gfp = MEMFS_GFP_KERNEL | MEMFS___GFP_THISNODE,
					   .node = node,
					   .cpu = MF_CPU_OF_TASK };
	size_t got = mf_page_alloc_bulk(m->pg, &m->place, &request, n, m->pfns + m->nr_pfns);

	m->nr_pfns += got;
	return got;
}

/* All of a node that it hands out. */
static inline void hold_node(struct machine *m, int node)
{
	while (hold(m, node, 512))
		;
}

static inline void let_go(struct machine *m)
{
	mf_page_free_bulk(m->pg, &m->place, m->nr_pfns, m->pfns);
	m->nr_pfns = 0;
}

/* --- looking --- */

static inline uint64_t stat_of(struct machine *m, enum mf_stat_id id)
{
	return mf_stat_read(mf_page_stat(m->pg), id);
}

static inline uint64_t stat_node(struct machine *m, int node, enum mf_stat_id id)
{
	return mf_stat_zone_read(mf_page_stat(m->pg), mf_zone_index(node, MF_ZONE_NORMAL), id);
}

static inline struct mf_vmalloc_info info_of(struct machine *m)
{
	struct mf_vmalloc_info info;

	mf_vmalloc_info(m->vm, &info);
	return info;
}

static inline struct mf_zone_info zone_of(struct machine *m, int node)
{
	struct mf_zone_info info;

	mf_page_zone_info(m->pg, mf_zone_index(node, MF_ZONE_NORMAL), &info);
	return info;
}

static inline uint64_t free_pages(struct machine *m, int node)
{
	struct mf_zone_info info = zone_of(m, node);

	return info.free + info.pcp_count;
}

/* Both engines count themselves; @others: pages held that vmalloc does not own. */
static inline void check_ok(struct machine *m, uint64_t others)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	struct mf_vmalloc_info info = info_of(m);
	uint64_t handed_out = info.used_pages + info.lazy_pages + others;
	unsigned bad = mf_vmalloc_check(m->vm, &out);

	bad += mf_page_check(m->pg, (int64_t)handed_out, &out);
	if (bad)
		fprintf(stderr, "%s", out.data);
	CU_ASSERT_EQUAL(bad, 0);
	mf_outbuf_free(&out);
}

static inline uint64_t blocks(const struct mf_zone_info *info, unsigned order)
{
	uint64_t nr = 0;

	for (int type = 0; type < MF_NR_MIGRATE_TYPES; type++)
		nr += info->nr_free[type][order];
	return nr;
}

static inline uint64_t free_blocks(struct machine *m, int node, unsigned order)
{
	struct mf_zone_info info = zone_of(m, node);

	return blocks(&info, order);
}

static inline bool same_buddyinfo(struct machine *m, const struct mf_zone_info *before)
{
	static struct mf_zone_info now[MF_MAX_ZONES];

	snapshot(m, now);
	for (unsigned zone = 0; zone < MF_MAX_ZONES; zone++)
		for (unsigned order = 0; order < MF_NR_ORDERS; order++)
			if (blocks(&before[zone], order) != blocks(&now[zone], order))
				return false;
	return true;
}

/* Purged and drained, the free blocks are those of the start; @others as above. */
static inline void expect_all_back(struct machine *m, const struct mf_zone_info *before, uint64_t others)
{
	struct mf_vmalloc_info info;

	mf_vmalloc_purge(m->vm);
	mf_page_drain(m->pg, -1);
	info = info_of(m);
	CU_ASSERT_EQUAL(info.areas, 0);
	CU_ASSERT_EQUAL(info.lazy_areas, 0);
	CU_ASSERT_EQUAL(info.used_pages, 0);
	CU_ASSERT_EQUAL(info.lazy_pages, 0);
	CU_ASSERT_EQUAL(info.mappings, 0);
	CU_ASSERT_EQUAL(info.nr_free, 1);
	CU_ASSERT_EQUAL(info.free_bytes, info.size);
	CU_ASSERT_EQUAL(info.largest_free, info.size);
	CU_ASSERT_TRUE(same_buddyinfo(m, before));
	CU_ASSERT_EQUAL(stat_of(m, MF_STAT_pgalloc) - stat_of(m, MF_STAT_pgfree), others);
	CU_ASSERT_EQUAL(stat_of(m, MF_STAT_numa_miss), stat_of(m, MF_STAT_numa_foreign));
	check_ok(m, others);
}

static inline void expect_as_at_start(struct machine *m)
{
	expect_all_back(m, m->before, 0);
}

/* --- addresses used up --- */

/* Busy from the start of the range on, all but @bytes at its end.  No check before it is gone again. */
static inline struct mf_extent *fill_range(struct machine *m, uint64_t bytes)
{
	static struct mf_vm_area nobody;
	struct mf_extent *extent = NULL;

	mf_lock_acquire(&m->vm->lock);
	CU_ASSERT_EQUAL_FATAL(mf_space_alloc(&m->vm->space, m->vm->bytes - bytes, 0, &nobody, &extent), 0);
	mf_lock_release(&m->vm->lock);
	return extent;
}

static inline void clear_range(struct machine *m, struct mf_extent *extent)
{
	mf_lock_acquire(&m->vm->lock);
	mf_space_free(&m->vm->space, extent);
	mf_lock_release(&m->vm->lock);
}

#endif
