/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The page allocator used by several threads at once: blocks taken by one and
 * freed by another, everything that visits other CPUs' lists, changes of policies,
 * weights and knobs; then, without the thread sanitizer, with a signal handler
 * that allocates wherever it interrupts.  At the end the totals are exact and
 * the free blocks are those of the start.
 *
 * Each block carries a word that only its owner knows: a page handed out twice
 * shows when the other owner finds it changed.
 */
#include "unit.h"

#include "page/page.h"
#include "plat/plat_sim.h"
#include "plat/rseq.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#ifdef MF_TSAN
#define ROUNDS 3000
#define TRIM_ROUNDS 3
#else
#define ROUNDS 20000
#define TRIM_ROUNDS 15
#endif
#define NR_WORKERS 4
#define MOST_HELD 256
#define QUEUE 512
#define MOST_BULK 96

struct block {
	uint32_t pfn;
	unsigned order;
	uint64_t tag;
};

/* Blocks on their way from one thread to another. */
struct queue {
	pthread_mutex_t mutex;
	struct block block[QUEUE];
	unsigned nr;
};

struct machine {
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *pg;
	struct mf_placement shared;
	pthread_mutex_t shared_mutex; /* the lock of the shared placement's task */
	pthread_mutex_t config_mutex; /* knobs and weights */
	struct queue queue;
	_Atomic bool stop;
	_Atomic uint64_t allocated, freed, spoilt, odd, failed;
};

struct worker {
	struct machine *m;
	pthread_t thread;
	uint64_t state;
	struct mf_placement place;
	struct block held[MOST_HELD];
	unsigned nr_held;
	uint64_t by_node[64];
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

/* --- blocks --- */

static uint64_t *last_word(const struct machine *m, const struct block *block)
{
	char *first = mf_page_address(m->pg, block->pfn);

	return (uint64_t *)(void *)(first + ((size_t)MEMFS_PAGE_SIZE << block->order)) - 1;
}

static void release(struct worker *w, struct mf_placement *place, const struct block *block)
{
	struct machine *m = w->m;

	if (*(uint64_t *)mf_page_address(m->pg, block->pfn) != block->tag ||
	    *last_word(m, block) != ~block->tag)
		m->spoilt++;
	if (below(w, 8))
		mf_page_free(place, (memfs_pfn){ block->pfn }, block->order);
	else
		mf_page_free_irq(m->pg, place, (memfs_pfn){ block->pfn }, block->order);
	m->freed += UINT64_C(1) << block->order;
}

static void keep(struct worker *w, uint32_t pfn, unsigned order)
{
	struct block block = { .pfn = pfn, .order = order, .tag = next_random(w) };

	*(uint64_t *)mf_page_address(w->m->pg, pfn) = block.tag;
	*last_word(w->m, &block) = ~block.tag;
	w->m->allocated += UINT64_C(1) << order;
	if (w->nr_held == MOST_HELD) {
		unsigned i = (unsigned)below(w, MOST_HELD);

		release(w, &w->place, &w->held[i]);
		w->held[i] = w->held[--w->nr_held];
	}
	w->held[w->nr_held++] = block;
}

/* Puts one of its blocks into the queue and takes another out of it. */
static void swap_blocks(struct worker *w)
{
	struct queue *queue = &w->m->queue;
	struct block taken;
	bool got = false;

	pthread_mutex_lock(&queue->mutex);
	if (queue->nr) {
		unsigned i = (unsigned)below(w, queue->nr);

		taken = queue->block[i];
		queue->block[i] = queue->block[--queue->nr];
		got = true;
	}
	while (w->nr_held && queue->nr < QUEUE && below(w, 4))
		queue->block[queue->nr++] = w->held[--w->nr_held];
	pthread_mutex_unlock(&queue->mutex);
	if (got)
		release(w, below(w, 2) ? &w->place : &w->m->shared, &taken);
}

/* --- what a worker does --- */

static struct mf_placement *some_place(struct worker *w)
{
	return below(w, 4) ? &w->place : &w->m->shared;
}

static void note_nodes(struct worker *w, const struct mf_placement *place, const memfs_pfn *pfns, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int node = mf_page_node(w->m->pg, pfns[i].v);

		if (node < 0)
			w->m->odd++;
		else if (place == &w->place)
			w->by_node[node]++;
	}
}

static memfs_gfp some_gfp(struct worker *w)
{
	static const memfs_gfp kinds[] = {
		MEMFS_GFP_KERNEL,
		MEMFS_GFP_KERNEL,
		MEMFS_GFP_HIGHUSER_MOVABLE,
		MEMFS_GFP_ATOMIC,
		MEMFS_GFP_KERNEL | MEMFS___GFP_RECLAIMABLE,
		MEMFS_GFP_KERNEL | MEMFS___GFP_ZERO,
	};

	return kinds[below(w, sizeof(kinds) / sizeof(kinds[0]))];
}

static void alloc_single(struct worker *w)
{
	struct mf_placement *place = some_place(w);
	unsigned order = below(w, 4) ? 0 : (unsigned)below(w, below(w, 8) ? 4 : MF_NR_ORDERS);
	memfs_gfp gfp = some_gfp(w);
	memfs_pfn pfn;

	/* Blocks of all sizes move a rotation by one; its own are counted as blocks, too. */
	if (mf_page_alloc_simple(place, gfp, order, &pfn)) {
		w->m->failed++;
		return;
	}
	note_nodes(w, place, &pfn, 1);
	keep(w, pfn.v, order);
}

static void alloc_bulk(struct worker *w)
{
	struct mf_page_request request = { .gfp = some_gfp(w),
					   .node = MF_NODE_BY_POLICY,
					   .cpu = MF_CPU_OF_TASK };
	struct mf_placement *place = some_place(w);
	memfs_pfn pfns[MOST_BULK];
	size_t n = 1 + below(w, MOST_BULK), got;

	got = mf_page_alloc_bulk(w->m->pg, place, &request, n, pfns);
	if (got > n)
		w->m->odd++;
	if (got < n)
		w->m->failed++;
	note_nodes(w, place, pfns, got);
	if (below(w, 2)) {
		mf_page_free_bulk(w->m->pg, some_place(w), got, pfns);
		w->m->allocated += got;
		w->m->freed += got;
		return;
	}
	for (size_t i = 0; i < got; i++)
		keep(w, pfns[i].v, 0);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int round = 0; round < ROUNDS; round++) {
		switch (below(w, 8)) {
		case 0:
			alloc_bulk(w);
			break;
		case 1:
			swap_blocks(w);
			break;
		case 2:
		case 3:
		case 4:
			if (w->nr_held)
				release(w, some_place(w), &w->held[--w->nr_held]);
			break;
		default:
			alloc_single(w);
			break;
		}
		if (below(w, 64) == 0)
			mf_page_drain(w->m->pg, (int)below(w, 3) - 1);
		if (below(w, 64) == 0)
			sched_yield();
	}
	return NULL;
}

/* --- what the visitor does meanwhile --- */

static void set_shared_policy(struct machine *m, struct worker *w)
{
	static const char *const texts[] = { "default",	       "local",
					     "interleave:0-1", "weighted interleave:0-1",
					     "prefer:1",       "bind:0-1",
					     "prefer (many):1" };
	const char *text = texts[below(w, sizeof(texts) / sizeof(texts[0]))];
	struct mf_policy_context context;
	struct mf_policy policy;
	char why[128];

	pthread_mutex_lock(&m->shared_mutex);
	mf_placement_context(m->topo, m->shared.allowed, &context);
	if (mf_policy_parse(mf_text_of(text), &context, &policy, why, sizeof(why)) == 0)
		mf_placement_set_policy(&m->shared, &policy, m->topo);
	if (below(w, 4) == 0 && mf_placement_set_allowed(&m->shared, 1 + below(w, 3), m->topo))
		m->odd++;
	mf_placement_set_cpu(&m->shared, (int)below(w, 3) - 1, m->topo);
	pthread_mutex_unlock(&m->shared_mutex);
}

static void change_weights(struct machine *m, struct worker *w)
{
	struct mf_weights weights;

	memset(weights.of, 1, sizeof(weights.of));
	weights.of[0] = (uint8_t)(1 + below(w, 9));
	weights.of[1] = (uint8_t)(1 + below(w, 9));
	pthread_mutex_lock(&m->config_mutex);
	mf_page_set_weights(m->pg, &weights);
	pthread_mutex_unlock(&m->config_mutex);
}

/* @all: also what changes where pages go. */
static void change_knobs(struct machine *m, struct worker *w, bool all)
{
	struct mf_page_knobs knobs;

	pthread_mutex_lock(&m->config_mutex);
	mf_page_get_knobs(m->pg, &knobs);
	knobs.pcp_mode = below(w, 2) ? MF_PCP_RSEQ : (int)below(w, 3);
	knobs.pcp_irq_bypass = (int)below(w, 2);
	knobs.bulk_split = (int)below(w, 2);
	knobs.init_on_alloc = below(w, 4) == 0;
	knobs.numa_stat = below(w, 4) != 0;
	knobs.numa = !all || below(w, 4) != 0;
	knobs.trim_seconds = (unsigned)below(w, 3);
	knobs.marks.percpu_pagelist_high_fraction = below(w, 2) ? 0 : 8 + (unsigned)below(w, 100);
	mf_page_set_knobs(m->pg, &knobs);
	pthread_mutex_unlock(&m->config_mutex);
}

static void look(struct machine *m)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	struct mf_zone_info info;
	struct mf_pcp_info lists;
	unsigned bad = mf_page_check(m->pg, -1, &out);

	if (bad) {
		fprintf(stderr, "%s", out.data);
		m->odd++;
	}
	mf_outbuf_free(&out);
	for (unsigned zone = 0; zone < 2 * MF_NR_ZONE_TYPES; zone++) {
		mf_page_zone_info(m->pg, zone, &info);
		if (info.free > info.managed)
			m->odd++;
		mf_page_pcp_info(m->pg, zone, 1, &lists);
		mf_page_zone_below_low(m->pg, zone);
	}
	if (mf_stat_read(mf_page_stat(m->pg), MF_STAT_pgfree) > UINT64_MAX / 2)
		m->odd++;
}

struct visitor {
	struct worker w; /* only for its random numbers */
	bool all;
};

static void *visit(void *arg)
{
	struct visitor *v = arg;
	struct machine *m = v->w.m;

	while (!m->stop) {
		switch (below(&v->w, 7)) {
		case 0:
			mf_page_drain(m->pg, -1);
			break;
		case 1:
			mf_page_tick(m->pg);
			break;
		case 2:
			mf_page_trim(m->pg);
			break;
		case 3:
			set_shared_policy(m, &v->w);
			break;
		case 4:
			change_weights(m, &v->w);
			break;
		case 5:
			change_knobs(m, &v->w, v->all);
			break;
		default:
			if (below(&v->w, 8) == 0)
				look(m);
			break;
		}
		sched_yield();
	}
	return NULL;
}

/* --- one run --- */

static void start(struct machine *m, const char *topology)
{
	memset(m, 0, sizeof(*m));
	mf_fault_init(&m->fault);
	CU_ASSERT_EQUAL_FATAL(mf_plat_sim_create(NULL, 0, &m->plat), 0);
	CU_ASSERT_EQUAL_FATAL(mf_topo_create(topology, m->plat, &m->topo, NULL, 0), 0);
	CU_ASSERT_EQUAL_FATAL(mf_page_create(m->topo, m->plat, &m->fault, &m->pg), 0);
	mf_placement_init(&m->shared, m->pg);
	pthread_mutex_init(&m->shared_mutex, NULL);
	pthread_mutex_init(&m->config_mutex, NULL);
	pthread_mutex_init(&m->queue.mutex, NULL);
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

static void check_sums(struct machine *m, int64_t handed_out)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	struct mf_stat_set *stat = mf_page_stat(m->pg);
	unsigned bad = mf_page_check(m->pg, handed_out, &out);

	if (bad)
		fprintf(stderr, "%s", out.data);
	mf_outbuf_free(&out);
	CU_ASSERT_EQUAL(bad, 0);
	CU_ASSERT_EQUAL(m->allocated - m->freed, (uint64_t)handed_out);
	CU_ASSERT_EQUAL(mf_stat_read(stat, MF_STAT_pgalloc), m->allocated);
	CU_ASSERT_EQUAL(mf_stat_read(stat, MF_STAT_pgfree), m->freed);
	CU_ASSERT_EQUAL(mf_stat_read(stat, MF_STAT_numa_miss), mf_stat_read(stat, MF_STAT_numa_foreign));
	CU_ASSERT_EQUAL(mf_stat_read(stat, MF_STAT_numa_hit) + mf_stat_read(stat, MF_STAT_numa_miss),
			mf_stat_read(stat, MF_STAT_numa_local) + mf_stat_read(stat, MF_STAT_numa_other));
	CU_ASSERT_TRUE(mf_stat_read(stat, MF_STAT_numa_interleave) <= mf_stat_read(stat, MF_STAT_numa_hit));
}

static void stop(struct machine *m)
{
	mf_page_destroy(m->pg);
	mf_topo_destroy(m->topo);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(m->plat), 0);
	m->plat->ops->destroy(m->plat);
}

static void start_worker(struct machine *m, struct worker *w, unsigned number)
{
	struct mf_policy_context context;
	struct mf_policy policy;

	memset(w, 0, sizeof(*w));
	w->m = m;
	w->state = number + 1;
	mf_placement_init(&w->place, m->pg);
	mf_placement_context(m->topo, w->place.allowed, &context);
	CU_ASSERT_EQUAL_FATAL(mf_policy_parse(mf_text_of("interleave:0-1"), &context, &policy, NULL, 0), 0);
	mf_placement_set_policy(&w->place, &policy, m->topo);
	/* Two on their own CPU's lists, two on a CPU that others use, too. */
	mf_placement_set_cpu(&w->place, number % 2 ? MEMFS_CPU_AUTO : (int)(number / 2), m->topo);
}

static uint64_t free_all(struct machine *m, struct worker *workers)
{
	uint64_t blocks = 0;

	for (unsigned i = 0; i < NR_WORKERS; i++)
		for (; workers[i].nr_held; blocks++)
			release(&workers[i], &workers[i].place, &workers[i].held[--workers[i].nr_held]);
	for (; m->queue.nr; blocks++)
		release(&workers[0], &m->shared, &m->queue.block[--m->queue.nr]);
	return blocks;
}

static uint64_t held_pages(struct machine *m, const struct worker *workers)
{
	uint64_t pages = 0;

	for (unsigned i = 0; i < NR_WORKERS; i++)
		for (unsigned k = 0; k < workers[i].nr_held; k++)
			pages += UINT64_C(1) << workers[i].held[k].order;
	for (unsigned k = 0; k < m->queue.nr; k++)
		pages += UINT64_C(1) << m->queue.block[k].order;
	return pages;
}

/* No visitor: what a rotation promises holds for each thread's own placement. */
static void check_spread(const struct worker *w)
{
	uint64_t a = w->by_node[0], b = w->by_node[1];

	CU_ASSERT_TRUE(a + b > ROUNDS / 2);
	CU_ASSERT_TRUE(a == b || a == b + 1);
}

static void run(bool with_visitor, bool all)
{
	static uint64_t before[MF_MAX_ZONES][MF_NR_ORDERS], after[MF_MAX_ZONES][MF_NR_ORDERS];
	static struct worker workers[NR_WORKERS];
	static struct visitor visitor;
	static struct machine m;

	start(&m, "2x128M:cpus=1");
	snapshot(&m, before);
	visitor = (struct visitor){ .w = { .m = &m, .state = 77 }, .all = all };
	for (unsigned i = 0; i < NR_WORKERS; i++)
		start_worker(&m, &workers[i], i);
	for (unsigned i = 0; i < NR_WORKERS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	if (with_visitor)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&visitor.w.thread, NULL, visit, &visitor), 0);
	for (unsigned i = 0; i < NR_WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	m.stop = true;
	if (with_visitor)
		pthread_join(visitor.w.thread, NULL);
	check_sums(&m, (int64_t)held_pages(&m, workers));
	for (unsigned i = 0; !with_visitor && i < NR_WORKERS; i++)
		check_spread(&workers[i]);
	CU_ASSERT_TRUE(free_all(&m, workers) > 0);
	CU_ASSERT_EQUAL(m.spoilt, 0);
	CU_ASSERT_EQUAL(m.odd, 0);
	/* Memory is never short here. */
	CU_ASSERT_EQUAL(m.failed, 0);
	mf_page_drain(m.pg, -1);
	check_sums(&m, 0);
	snapshot(&m, after);
	CU_ASSERT_EQUAL(memcmp(before, after, sizeof(before)), 0);
	stop(&m);
}

static void test_workers_alone(void)
{
	run(false, false);
}

static void test_with_visitor(void)
{
	run(true, false);
}

static void test_with_all_knobs(void)
{
	run(true, true);
}

/* --- a handler that allocates --- */

static struct machine *handler_machine;
static _Atomic uint64_t handler_runs;

static void on_signal(int number)
{
	struct machine *m = handler_machine;
	struct mf_placement place;
	int saved = errno;
	memfs_pfn pfn;

	(void)number;
	mf_placement_init(&place, m->pg);
	mf_placement_set_cpu(&place, MEMFS_CPU_AUTO, m->topo);
	handler_runs++;
	if (mf_page_alloc_simple(&place, MEMFS_GFP_ATOMIC, 0, &pfn) == 0) {
		*(volatile uint64_t *)mf_page_address(m->pg, pfn.v) = 1;
		mf_page_free(&place, pfn, 0);
		m->allocated++;
		m->freed++;
	}
	errno = saved;
}

/* To every worker in turn, until told to stop. */
static void *send_signals(void *arg)
{
	struct worker *workers = arg;
	struct machine *m = workers[0].m;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	while (!m->stop) {
		struct timespec pause = { 0, 20000 };

		for (unsigned i = 0; i < NR_WORKERS; i++)
			pthread_kill(workers[i].thread, SIGUSR1);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void test_with_signals(void)
{
#ifdef MF_TSAN
	printf("(skipped: the thread sanitizer delays signals to calls it knows, so nothing would be interrupted) ");
	(void)on_signal;
	(void)send_signals;
#else
	static struct worker workers[NR_WORKERS];
	static struct machine m;
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_t sender;

	start(&m, "2x128M:cpus=1");
	handler_machine = &m;
	handler_runs = 0;
	sigaction(SIGUSR1, &action, NULL);
	for (unsigned i = 0; i < NR_WORKERS; i++)
		start_worker(&m, &workers[i], i);
	for (unsigned i = 0; i < NR_WORKERS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&sender, NULL, send_signals, workers), 0);
	/* A thread may be signalled until it is joined, so the sender ends first. */
	for (unsigned waits = 0; waits < 1000 && handler_runs < 4000; waits++) {
		struct timespec pause = { 0, 1000000 };

		nanosleep(&pause, NULL);
	}
	m.stop = true;
	pthread_join(sender, NULL);
	for (unsigned i = 0; i < NR_WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	CU_ASSERT_TRUE(handler_runs > 0);
	free_all(&m, workers);
	CU_ASSERT_EQUAL(m.spoilt, 0);
	CU_ASSERT_EQUAL(m.odd, 0);
	mf_page_drain(m.pg, -1);
	check_sums(&m, 0);
	stop(&m);
#endif
}

/* --- trimming takes memory away for a moment only --- */

static _Atomic unsigned trims;

static void *trim_again_and_again(void *arg)
{
	struct machine *m = arg;

	while (!m->stop) {
		mf_page_trim(m->pg);
		trims++;
		sched_yield();
	}
	return NULL;
}

/* Takes whatever large blocks there are and gives them back: memory the host may have again. */
static void make_dirty(struct machine *m, struct mf_placement *place)
{
	memfs_pfn pfns[32];
	size_t n = 0;

	while (n < 32 && mf_page_alloc_simple(place, MEMFS_GFP_NOWAIT, 9, &pfns[n]) == 0) {
		for (uint32_t i = 0; i < MF_PAGEBLOCK_PAGES; i++)
			*(uint64_t *)mf_page_address(m->pg, pfns[n].v + i) = 1;
		n++;
	}
	while (n)
		mf_page_free(place, pfns[--n], 9);
	mf_page_drain(m->pg, -1);
}

/* One zone, all of it free and nearly all of it dirty: even who cannot wait must find memory. */
static void test_trim_starves_nobody(void)
{
	struct mf_placement place;
	unsigned failed = 0;
	pthread_t trimmer;
	struct machine m;

	start(&m, "64M:cpus=1");
	mf_placement_init(&place, m.pg);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&trimmer, NULL, trim_again_and_again, &m), 0);
	for (int round = 0; round < TRIM_ROUNDS; round++) {
		unsigned before;

		make_dirty(&m, &place);
		before = trims;
		/* Until a whole trim that began behind that has ended. */
		for (int i = 0; i < 1000000 && trims - before < 2; i++) {
			memfs_gfp gfp = i % 2 ? MEMFS_GFP_KERNEL : MEMFS_GFP_NOWAIT;
			memfs_pfn pfn;

			if (mf_page_alloc_simple(&place, gfp, 0, &pfn))
				failed++;
			else
				mf_page_free(&place, pfn, 0);
		}
	}
	m.stop = true;
	pthread_join(trimmer, NULL);
	CU_ASSERT_TRUE(mf_stat_read(mf_page_stat(m.pg), MF_STAT_trim_pages) > 0);
	CU_ASSERT_EQUAL(failed, 0);
	stop(&m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_workers_alone), UNIT_TEST(test_with_visitor),	    UNIT_TEST(test_with_all_knobs),
	UNIT_TEST(test_with_signals),  UNIT_TEST(test_trim_starves_nobody),
};

UNIT_MAIN("thread_page", tests)
