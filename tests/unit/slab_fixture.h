/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A simulated machine with a slab engine whose reports are kept, for the tests
 * of debugging and of looking.
 */
#ifndef MF_TESTS_UNIT_SLAB_FIXTURE_H
#define MF_TESTS_UNIT_SLAB_FIXTURE_H

#include "unit.h"

#include "plat/plat_sim.h"
#include "slab/debug.h"

#include <errno.h>

#define MAX_REPORTS 16

struct machine {
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *pg;
	struct mf_slabs *slabs;
	struct mf_placement place;
	unsigned nr_reports;
	char report[MAX_REPORTS][1024];
};

static void keep_report(void *arg, const char *text)
{
	struct machine *m = arg;

	CU_ASSERT_EQUAL(mf_lock_depth(), 0);
	CU_ASSERT_PTR_NULL(strchr(text, '\n'));
	CU_ASSERT_FATAL(m->nr_reports < MAX_REPORTS);
	snprintf(m->report[m->nr_reports++], sizeof(m->report[0]), "%s", text);
}

static void start(struct machine *m, const char *topology)
{
	char why[256] = "";

	memset(m, 0, sizeof(*m));
	mf_fault_init(&m->fault);
	CU_ASSERT_EQUAL_FATAL(mf_plat_sim_create(NULL, 0, &m->plat), 0);
	mf_topo_create(topology, m->plat, &m->topo, why, sizeof(why));
	CU_ASSERT_STRING_EQUAL_FATAL(why, "");
	CU_ASSERT_EQUAL_FATAL(mf_page_create(m->topo, m->plat, &m->fault, &m->pg), 0);
	CU_ASSERT_EQUAL_FATAL(mf_slabs_create(m->pg, m->plat, &m->slabs), 0);
	mf_slabs_on_report(m->slabs, keep_report, m);
	mf_placement_init(&m->place, m->pg);
	mf_placement_set_cpu(&m->place, 0, m->topo);
	mf_plat_sim_advance(m->plat, UINT64_C(5000000000));
}

static void check_ok(struct machine *m)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	unsigned bad = mf_slabs_check(m->slabs, &out);

	if (bad)
		fprintf(stderr, "%s", out.data);
	CU_ASSERT_EQUAL(bad, 0);
	mf_outbuf_free(&out);
}

/* All pages are back with the page allocator afterwards. */
static void stop(struct machine *m)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;

	check_ok(m);
	mf_slabs_destroy(m->slabs);
	CU_ASSERT_EQUAL(mf_page_check(m->pg, 0, &out), 0);
	mf_outbuf_free(&out);
	mf_page_destroy(m->pg);
	mf_topo_destroy(m->topo);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(m->plat), 0);
	m->plat->ops->destroy(m->plat);
}

static struct mf_cache *make_cache(struct machine *m, const char *name, uint32_t size, unsigned flags)
{
	struct mf_cache_request request = { .name = mf_text_of(name), .size = size, .flags = flags };
	struct mf_cache *cache = NULL;
	char why[256] = "";

	CU_ASSERT_EQUAL_FATAL(mf_cache_create(m->slabs, &request, &cache, why, sizeof(why)), 0);
	return cache;
}

static char *take(struct machine *m, struct mf_cache *cache)
{
	char *object = mf_cache_alloc(cache, &m->place, MEMFS_GFP_KERNEL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	return object;
}

static void give(struct machine *m, struct mf_cache *cache, void *object)
{
	CU_ASSERT_EQUAL(mf_cache_free(cache, &m->place, object), 0);
}

static uint64_t used(struct mf_cache *cache)
{
	struct mf_cache_info info;

	mf_cache_info(cache, &info);
	return info.used;
}

static uint64_t stat_sum(struct mf_cache *cache, enum mf_slab_stat id)
{
	uint64_t sum = 0;

	for (unsigned cpu = 0; cpu < mf_cache_nr_cpus(cache); cpu++)
		sum += mf_cache_stat(cache, id, cpu);
	return sum;
}

#endif
