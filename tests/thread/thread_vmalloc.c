/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranges used by two threads at once, linear and mapped, some freed by the
 * other; a third looks at everything, purges and turns the knobs meanwhile.  At
 * the end nothing is missing.
 *
 * Each page of a range carries a word that only its owner knows: a page or an
 * address in two ranges at once shows when one owner finds it changed.
 */
#include "unit.h"

#include "plat/plat_sim.h"
#include "vmalloc/vmalloc.h"

#include <pthread.h>
#include <sched.h>

#ifdef MF_TSAN
#define ROUNDS 2000
#else
#define ROUNDS 10000
#endif
#define NR_WORKERS 2
#define MOST_HELD 24
#define QUEUE 32

struct range {
	char *address;
	uint64_t pages, tag;
};

/* Ranges on their way from one thread to the other. */
struct queue {
	pthread_mutex_t mutex;
	struct range range[QUEUE];
	unsigned nr;
};

struct machine {
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *pg;
	struct mf_vmalloc *vm;
	struct mf_vmalloc_knobs usual;
	struct queue queue;
	bool only_mapped;
	_Atomic bool stop;
	_Atomic uint64_t spoilt, odd, failed;
};

struct worker {
	struct machine *m;
	pthread_t thread;
	uint64_t state;
	struct mf_placement place;
	struct range held[MOST_HELD];
	unsigned nr_held;
};

static uint64_t next_random(struct worker *w)
{
	uint64_t z = w->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t below(struct worker *w, uint64_t bound)
{
	return next_random(w) % bound;
}

/* --- ranges --- */

static uint64_t *word_of(const struct range *range, uint64_t page)
{
	return (uint64_t *)(void *)(range->address + page * MEMFS_PAGE_SIZE);
}

static void fill(const struct range *range)
{
	for (uint64_t page = 0; page < range->pages; page++)
		*word_of(range, page) = range->tag + page;
}

static bool is_filled(const struct range *range)
{
	for (uint64_t page = 0; page < range->pages; page++)
		if (*word_of(range, page) != range->tag + page)
			return false;
	return true;
}

static void release(struct worker *w, const struct range *range)
{
	struct machine *m = w->m;

	if (!is_filled(range))
		m->spoilt++;
	if (mf_vmalloc_free(m->vm, &w->place, range->address))
		m->odd++;
	/* With only_mapped nobody can have it again before a purge. */
	if (m->only_mapped && below(w, 64) == 0 && !mf_vmalloc_unmap(m->vm, range->address))
		m->odd++;
}

static void *take(struct worker *w, uint64_t pages)
{
	struct mf_vmalloc_request request = {
		.size = pages * MEMFS_PAGE_SIZE,
		.page = { .gfp = MEMFS_GFP_KERNEL, .node = MF_NODE_BY_POLICY, .cpu = MF_CPU_OF_TASK },
		.huge = below(w, 16) == 0,
		.touch = below(w, 16) == 0,
		.caller = "thread",
	};
	void *address = NULL;

	if (below(w, 2))
		return mf_vmalloc_simple(w->m->vm, &w->place, request.size, MEMFS_GFP_KERNEL, "thread");
	return mf_vmalloc_alloc(w->m->vm, &w->place, &request, &address, NULL, 0) ? NULL : address;
}

static void get_one(struct worker *w)
{
	struct range range = { .pages = 1 + below(w, below(w, 16) ? 24 : 600), .tag = next_random(w) };
	uint32_t pfn;

	range.address = take(w, range.pages);
	if (!range.address) {
		w->m->failed++;
		return;
	}
	fill(&range);
	if (!mf_vmalloc_page(w->m->vm, range.address + (range.pages - 1) * MEMFS_PAGE_SIZE, &pfn))
		w->m->odd++;
	w->held[w->nr_held++] = range;
}

static void put_one(struct worker *w)
{
	unsigned i = (unsigned)below(w, w->nr_held);

	release(w, &w->held[i]);
	w->held[i] = w->held[--w->nr_held];
}

/* Puts one of its ranges into the queue and frees another out of it. */
static void swap_one(struct worker *w)
{
	struct queue *queue = &w->m->queue;
	struct range taken = { .address = NULL };

	pthread_mutex_lock(&queue->mutex);
	if (queue->nr > QUEUE / 2)
		taken = queue->range[--queue->nr];
	if (w->nr_held)
		queue->range[queue->nr++] = w->held[--w->nr_held];
	pthread_mutex_unlock(&queue->mutex);
	if (taken.address)
		release(w, &taken);
}

/* Pages of its own, mapped a second time in another order. */
static void map_twice(struct worker *w)
{
	struct machine *m = w->m;
	memfs_pfn pfns[24];
	struct range *range = &w->held[below(w, w->nr_held)];
	uint64_t n = mf_vmalloc_pages(m->vm, range->address, pfns, 24);
	void *second;

	if (n != range->pages)
		m->odd++;
	if (n > 24 || mf_vmalloc_map(m->vm, n, pfns, "thread", &second, NULL, 0))
		return;
	if (!is_filled(&(struct range){ second, n, range->tag }))
		m->spoilt++;
	if (mf_vmalloc_unmap(m->vm, second))
		m->odd++;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t what = below(w, 16);

		if (w->nr_held == MOST_HELD || (what < 6 && w->nr_held))
			put_one(w);
		else if (what == 6)
			swap_one(w);
		else if (what == 7 && w->nr_held)
			map_twice(w);
		else
			get_one(w);
		if (below(w, 64) == 0)
			sched_yield();
	}
	return NULL;
}

/* --- what the visitor does meanwhile --- */

struct look {
	struct machine *m;
	uint64_t last;
};

static void see(void *arg, const struct mf_vmalloc_area *area)
{
	struct look *look = arg;
	uint64_t bytes = (area->pages + !area->linear) * MEMFS_PAGE_SIZE;

	if (!area->pages || !area->runs || area->start < look->last || area->size != bytes ||
	    area->by_node[0] + area->by_node[1] != area->pages)
		look->m->odd++;
	look->last = area->start;
}

static void see_free(void *arg, uint64_t start, uint64_t size)
{
	struct look *look = arg;

	if (!size || start < look->last)
		look->m->odd++;
	look->last = start;
}

static void look_around(struct machine *m)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	struct look used = { m, 0 }, lazy = { m, 0 }, free = { m, 0 };
	struct mf_vmalloc_info info;

	mf_vmalloc_info(m->vm, &info);
	if (info.free_bytes > info.size || info.largest_free > info.free_bytes || info.parked_pages > 65536)
		m->odd++;
	mf_vmalloc_for_each(m->vm, false, see, &used);
	mf_vmalloc_for_each(m->vm, true, see, &lazy);
	mf_vmalloc_for_each_free(m->vm, see_free, &free);
	/* Linear ranges come and go without a lock: they are exact only when nothing runs. */
	if (mf_vmalloc_check(m->vm, &out) && m->only_mapped) {
		fprintf(stderr, "%s", out.data);
		m->odd++;
	}
	mf_outbuf_free(&out);
}

static void change_knobs(struct machine *m, struct worker *w)
{
	struct mf_vmalloc_knobs knobs = m->usual;

	knobs.linear = !m->only_mapped && below(w, 2);
	knobs.large_order = (int)below(w, 3);
	knobs.lazy_max = below(w, 4) ? 3000 : 0;
	knobs.small_pages = (unsigned)below(w, 20);
	mf_vmalloc_set_knobs(m->vm, &knobs);
}

static void *visit(void *arg)
{
	struct worker *w = arg;
	struct machine *m = w->m;

	while (!m->stop) {
		switch (below(w, 5)) {
		case 0:
			mf_vmalloc_purge(m->vm);
			break;
		case 1:
			mf_vmalloc_tick(m->vm);
			mf_page_tick(m->pg);
			break;
		case 2:
			change_knobs(m, w);
			break;
		case 3:
			mf_page_drain(m->pg, -1);
			break;
		default:
			look_around(m);
			break;
		}
		sched_yield();
	}
	return NULL;
}

/* --- one run --- */

static void start(struct machine *m, bool only_mapped)
{
	memset(m, 0, sizeof(*m));
	mf_fault_init(&m->fault);
	CU_ASSERT_EQUAL_FATAL(mf_plat_sim_create(NULL, 0, &m->plat), 0);
	CU_ASSERT_EQUAL_FATAL(mf_topo_create("2x128M:cpus=1", m->plat, &m->topo, NULL, 0), 0);
	CU_ASSERT_EQUAL_FATAL(mf_page_create(m->topo, m->plat, &m->fault, &m->pg), 0);
	CU_ASSERT_EQUAL_FATAL(mf_vmalloc_create(m->pg, m->plat, &m->vm), 0);
	m->only_mapped = only_mapped;
	mf_vmalloc_get_knobs(m->vm, &m->usual);
	m->usual.lazy_max = 3000;
	m->usual.linear = !only_mapped;
	mf_vmalloc_set_knobs(m->vm, &m->usual);
	pthread_mutex_init(&m->queue.mutex, NULL);
}

static void start_worker(struct machine *m, struct worker *w, unsigned number)
{
	struct mf_policy_context context;
	struct mf_policy policy;

	memset(w, 0, sizeof(*w));
	w->m = m;
	w->state = number + 1;
	mf_placement_init(&w->place, m->pg);
	/* One spreads its pages, one keeps them near; both use the lists and the parked runs of CPU 0. */
	if (number) {
		mf_placement_context(m->topo, w->place.allowed, &context);
		CU_ASSERT_EQUAL_FATAL(
			mf_policy_parse(mf_text_of("interleave:0-1"), &context, &policy, NULL, 0), 0);
		mf_placement_set_policy(&w->place, &policy, m->topo);
	}
}

static void snapshot(struct machine *m, uint64_t blocks[MF_MAX_ZONES][MF_NR_ORDERS])
{
	struct mf_zone_info info;

	memset(blocks, 0, MF_MAX_ZONES * sizeof(blocks[0]));
	for (unsigned zone = 0; zone < MF_MAX_ZONES; zone++) {
		mf_page_zone_info(m->pg, zone, &info);
		for (int type = 0; type < MF_NR_MIGRATE_TYPES; type++)
			for (unsigned order = 0; order < MF_NR_ORDERS; order++)
				blocks[zone][order] += info.nr_free[type][order];
	}
}

static void check_sums(struct machine *m)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	struct mf_vmalloc_info info;
	unsigned bad = mf_vmalloc_check(m->vm, &out);

	mf_vmalloc_info(m->vm, &info);
	bad += mf_page_check(m->pg, (int64_t)(info.used_pages + info.lazy_pages), &out);
	if (bad)
		fprintf(stderr, "%s", out.data);
	mf_outbuf_free(&out);
	CU_ASSERT_EQUAL(bad, 0);
}

static void free_all(struct machine *m, struct worker *workers)
{
	for (unsigned i = 0; i < NR_WORKERS; i++)
		while (workers[i].nr_held)
			release(&workers[i], &workers[i].held[--workers[i].nr_held]);
	while (m->queue.nr)
		release(&workers[0], &m->queue.range[--m->queue.nr]);
}

static void stop(struct machine *m)
{
	mf_vmalloc_destroy(m->vm);
	mf_page_destroy(m->pg);
	mf_topo_destroy(m->topo);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(m->plat), 0);
	m->plat->ops->destroy(m->plat);
}

static void run(bool only_mapped)
{
	static uint64_t before[MF_MAX_ZONES][MF_NR_ORDERS], after[MF_MAX_ZONES][MF_NR_ORDERS];
	static struct worker workers[NR_WORKERS], visitor;
	static struct machine m;
	struct mf_stat_set *stat;

	start(&m, only_mapped);
	stat = mf_page_stat(m.pg);
	snapshot(&m, before);
	visitor = (struct worker){ .m = &m, .state = 77 };
	for (unsigned i = 0; i < NR_WORKERS; i++)
		start_worker(&m, &workers[i], i);
	for (unsigned i = 0; i < NR_WORKERS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&visitor.thread, NULL, visit, &visitor), 0);
	for (unsigned i = 0; i < NR_WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	m.stop = true;
	pthread_join(visitor.thread, NULL);
	check_sums(&m);
	free_all(&m, workers);
	CU_ASSERT_EQUAL(m.spoilt, 0);
	CU_ASSERT_EQUAL(m.odd, 0);
	/* Memory, addresses and mappings are never short here. */
	CU_ASSERT_EQUAL(m.failed, 0);
	CU_ASSERT_TRUE(mf_stat_read(stat, MF_STAT_vmalloc_mapped) > ROUNDS / 16);
	CU_ASSERT_EQUAL(mf_stat_read(stat, MF_STAT_vmalloc_linear) > 0, !only_mapped);
	mf_vmalloc_purge(m.vm);
	mf_page_drain(m.pg, -1);
	check_sums(&m);
	snapshot(&m, after);
	CU_ASSERT_EQUAL(memcmp(before, after, sizeof(before)), 0);
	CU_ASSERT_EQUAL(mf_stat_read(stat, MF_STAT_pgalloc), mf_stat_read(stat, MF_STAT_pgfree));
	stop(&m);
}

static void test_mapped(void)
{
	run(true);
}

static void test_both(void)
{
	run(false);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_mapped),
	UNIT_TEST(test_both),
};

UNIT_MAIN("thread_vmalloc", tests)
