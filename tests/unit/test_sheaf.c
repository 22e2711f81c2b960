/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects by sheaf: what is exchanged when, counted exactly; frees of other
 * nodes; sheaves switched off or refused; signal handlers that come in between;
 * kmalloc by size.
 */
#include "unit.h"

#include "plat/plat_sim.h"
#include "slab/slab_internal.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>

/* --- an engine --- */

#define MOST_CPUS 2

static int cpus[MOST_CPUS];
static unsigned nr_cpus;

static void find_cpus(void)
{
	cpu_set_t set;

	nr_cpus = 0;
	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < CPU_SETSIZE && nr_cpus < MOST_CPUS; cpu++)
		if (CPU_ISSET((unsigned)cpu, &set))
			cpus[nr_cpus++] = cpu;
}

/* The calling thread, on the first n of the CPUs found. */
static void bind_to(unsigned n)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (unsigned i = 0; i < n; i++)
		CPU_SET((unsigned)cpus[i], &set);
	CU_ASSERT_EQUAL_FATAL(sched_setaffinity(0, sizeof(set), &set), 0);
}

struct machine {
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *pg;
	struct mf_slabs *slabs;
	struct mf_cache *cache;
	struct mf_placement place;
	uint64_t free_pages;
};

static uint64_t free_pages(struct machine *m)
{
	uint64_t pages = 0;

	mf_page_drain(m->pg, -1);
	for (unsigned zone = 0; zone < MF_MAX_ZONES; zone++) {
		struct mf_zone_info info;

		if (mf_page_zone_info(m->pg, zone, &info))
			pages += info.free;
	}
	return pages;
}

static void start(struct machine *m, const char *topology, uint32_t size, unsigned capacity)
{
	struct mf_cache_request request = { .name = mf_text_of("objects"),
					    .size = size,
					    .flags = MF_SLAB_FLAG(NO_MERGE) };
	struct mf_cache_knobs knobs;
	char why[256] = "";

	memset(m, 0, sizeof(*m));
	mf_fault_init(&m->fault);
	CU_ASSERT_EQUAL_FATAL(mf_plat_sim_create(NULL, 0, &m->plat), 0);
	mf_topo_create(topology, m->plat, &m->topo, why, sizeof(why));
	CU_ASSERT_STRING_EQUAL_FATAL(why, "");
	CU_ASSERT_EQUAL_FATAL(mf_page_create(m->topo, m->plat, &m->fault, &m->pg), 0);
	CU_ASSERT_EQUAL_FATAL(mf_slabs_create(m->pg, m->plat, &m->slabs), 0);
	mf_placement_init(&m->place, m->pg);
	m->free_pages = free_pages(m);
	CU_ASSERT_EQUAL_FATAL(mf_cache_create(m->slabs, &request, &m->cache, why, sizeof(why)), 0);
	mf_cache_get_knobs(m->cache, &knobs);
	knobs.sheaf_capacity = capacity;
	CU_ASSERT_EQUAL_FATAL(mf_cache_set_knobs(m->cache, &knobs), 0);
}

static uint64_t total_objects(const struct machine *m)
{
	uint64_t objects = 0;

	for (int node = 0; node < MEMFS_MAX_NODES; node++)
		if (m->cache->node[node])
			objects += m->cache->node[node]->total_objects;
	return objects;
}

/* Everything is given back: not an object, not a page is missing. */
static void stop(struct machine *m)
{
	mf_cache_shrink(m->cache);
	CU_ASSERT_EQUAL(total_objects(m), 0);
	CU_ASSERT_PTR_NULL(m->cache->deferred);
	for (int class = 0; class < MF_NR_KMALLOC; class ++)
		mf_cache_shrink(m->slabs->kmalloc[class]);
	CU_ASSERT_EQUAL(free_pages(m), m->free_pages);
	mf_cache_put(m->cache);
	mf_slabs_destroy(m->slabs);
	mf_page_destroy(m->pg);
	mf_topo_destroy(m->topo);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(m->plat), 0);
	m->plat->ops->destroy(m->plat);
}

/* Over all CPUs, what is still counted in sheaves included. */
static uint64_t stat_of(struct machine *m, enum mf_slab_stat id)
{
	uint64_t sum = 0, allocs, frees;

	for (unsigned cpu = 0; cpu < m->topo->cpu_limit; cpu++) {
		struct mf_cache_cpu *pc = &m->cache->cpu[cpu];

		if (!pc->ready)
			continue;
		sum += pc->stat[id];
		mf_sheaf_counts(pc->main, &allocs, &frees);
		sum += id == MF_SLAB_STAT_alloc_cpu_sheaf || id == MF_SLAB_STAT_alloc_fastpath ? allocs : 0;
		sum += id == MF_SLAB_STAT_free_cpu_sheaf || id == MF_SLAB_STAT_free_fastpath ? frees : 0;
	}
	return sum;
}

#define CHECK_STAT(m, id, value) CU_ASSERT_EQUAL(stat_of(m, MF_SLAB_STAT_##id), value)

static void *take(struct machine *m)
{
	void *object = mf_cache_alloc(m->cache, &m->place, MEMFS_GFP_KERNEL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	return object;
}

static void give(struct machine *m, void *object)
{
	CU_ASSERT_EQUAL(mf_cache_free(m->cache, &m->place, object), 0);
}

/* Both for a fixed CPU, which goes by the lock, and for the caller's own, by sequence. */
static void exchange_by(int cpu)
{
	struct machine m;
	void *object[64];

	start(&m, "1x64M:cpus=2", 64, 4);
	mf_placement_set_cpu(&m.place, cpu, m.topo);
	find_cpus();
	bind_to(1);
	/* 64 objects a slab: ten sheaves of four are filled from one of them. */
	for (int i = 0; i < 40; i++)
		object[i] = take(&m);
	CHECK_STAT(&m, sheaf_refill, 10);
	CHECK_STAT(&m, barn_get_fail, 10);
	CHECK_STAT(&m, alloc_cpu_sheaf, 40);
	CHECK_STAT(&m, alloc_fastpath, 40);
	CHECK_STAT(&m, alloc_slowpath, 0);
	CHECK_STAT(&m, alloc_slab, 1);
	/* Main and spare take 8, the stock the other 32. */
	for (int i = 0; i < 40; i++)
		give(&m, object[i]);
	CHECK_STAT(&m, free_cpu_sheaf, 40);
	CHECK_STAT(&m, free_fastpath, 40);
	CHECK_STAT(&m, free_slowpath, 0);
	CHECK_STAT(&m, barn_put, 8);
	CHECK_STAT(&m, sheaf_flush, 0);
	CU_ASSERT_EQUAL(m.cache->node[0]->stock_objects, 32);
	/* And the same objects come back whole. */
	for (int i = 0; i < 40; i++)
		object[i] = take(&m);
	CHECK_STAT(&m, barn_get, 8);
	CHECK_STAT(&m, sheaf_refill, 10);
	CHECK_STAT(&m, alloc_fastpath, 80);
	CU_ASSERT_EQUAL(m.cache->node[0]->stock_objects, 0);
	for (int i = 0; i < 40; i++)
		give(&m, object[i]);
	bind_to(nr_cpus);
	stop(&m);
}

static void test_exchange_by_lock(void)
{
	exchange_by(0);
}

static void test_exchange_by_sequence(void)
{
	exchange_by(MEMFS_CPU_AUTO);
}

/* A stock that may hold 5 * 64 bytes takes one sheaf of four; what is too much goes below. */
static void test_stock_is_bounded(void)
{
	struct mf_slab_knobs knobs;
	struct machine m;
	void *object[24];

	start(&m, "1x64M:cpus=2", 64, 4);
	mf_slabs_get_knobs(m.slabs, &knobs);
	knobs.stock_bytes = (uint64_t)5 * m.cache->geometry.size;
	mf_slabs_set_knobs(m.slabs, &knobs);
	for (int i = 0; i < 24; i++)
		object[i] = take(&m);
	for (int i = 0; i < 24; i++)
		give(&m, object[i]);
	CHECK_STAT(&m, barn_put, 1);
	CHECK_STAT(&m, barn_put_fail, 3);
	CHECK_STAT(&m, sheaf_flush, 3);
	CHECK_STAT(&m, free_fastpath, 24);
	CU_ASSERT_EQUAL(m.cache->node[0]->stock_objects, 4);
	stop(&m);
}

/* Objects of node 1 freed on a CPU of node 0 wait together and go home. */
static void test_remote_frees_go_home(void)
{
	struct machine m;
	void *object[9];

	start(&m, "2x64M:cpus=1", 64, 4);
	for (int i = 0; i < 9; i++) {
		object[i] =
			mf_cache_alloc_node(m.cache, &m.place, MEMFS_GFP_KERNEL | MEMFS___GFP_THISNODE, 1);
		CU_ASSERT_PTR_NOT_NULL_FATAL(object[i]);
		CU_ASSERT_EQUAL(mf_slab_tag_of(m.slabs, object[i]), mf_slab_tag(m.cache, 1));
	}
	CHECK_STAT(&m, alloc_cpu_sheaf, 0);
	CU_ASSERT_EQUAL(stat_of(&m, MF_SLAB_STAT_alloc_fastpath) + stat_of(&m, MF_SLAB_STAT_alloc_slowpath),
			9);
	for (int i = 0; i < 9; i++)
		give(&m, object[i]);
	CHECK_STAT(&m, free_remote, 8);
	CHECK_STAT(&m, free_cpu_sheaf, 8);
	CU_ASSERT_EQUAL(MF_SHEAF_DEPTH(m.cache->cpu[0].main->word), 0);
	CU_ASSERT_EQUAL(MF_SHEAF_DEPTH(m.cache->cpu[0].remote->word), 1);
	mf_cache_flush(m.cache);
	CHECK_STAT(&m, free_remote, 9);
	CU_ASSERT_PTR_EQUAL(m.cache->cpu[0].remote, &m.slabs->nothing);
	CU_ASSERT_PTR_NULL(mf_cache_alloc_node(m.cache, &m.place, MEMFS_GFP_KERNEL, 7));
	stop(&m);
}

static void test_sheaves_off(void)
{
	struct mf_slab_knobs knobs;
	struct machine m;
	void *object[20];

	start(&m, "1x64M:cpus=1", 64, 4);
	for (int i = 0; i < 10; i++)
		object[i] = take(&m);
	mf_slabs_get_knobs(m.slabs, &knobs);
	knobs.sheaves = 0;
	mf_slabs_set_knobs(m.slabs, &knobs);
	for (int i = 10; i < 20; i++)
		object[i] = take(&m);
	CU_ASSERT_PTR_EQUAL(m.cache->cpu[0].main, &m.slabs->nothing);
	CHECK_STAT(&m, alloc_cpu_sheaf, 10);
	CU_ASSERT_EQUAL(stat_of(&m, MF_SLAB_STAT_alloc_fastpath) + stat_of(&m, MF_SLAB_STAT_alloc_slowpath),
			20);
	for (int i = 0; i < 20; i++)
		give(&m, object[i]);
	CHECK_STAT(&m, free_cpu_sheaf, 0);
	CU_ASSERT_EQUAL(stat_of(&m, MF_SLAB_STAT_free_fastpath) + stat_of(&m, MF_SLAB_STAT_free_slowpath),
			20);
	stop(&m);
}

/* Without memory for a sheaf objects come from the layers and go there. */
static void test_no_sheaf(void)
{
	struct machine m;
	void *object[10];
	uint64_t failures;

	start(&m, "1x64M:cpus=1", 64, 4);
	mf_fault_arm(&m.fault, MF_FAULT_sheaf_alloc, 1, 1);
	for (int i = 0; i < 10; i++)
		object[i] = take(&m);
	for (int i = 0; i < 10; i++)
		give(&m, object[i]);
	CU_ASSERT_TRUE(mf_fault_fired(&m.fault));
	mf_fault_disarm(&m.fault);
	CHECK_STAT(&m, alloc_cpu_sheaf, 0);
	CHECK_STAT(&m, free_cpu_sheaf, 0);
	CU_ASSERT_EQUAL(stat_of(&m, MF_SLAB_STAT_alloc_fastpath) + stat_of(&m, MF_SLAB_STAT_alloc_slowpath),
			10);
	mf_fault_arm(&m.fault, MF_FAULT_slab_new, 1, 1);
	mf_cache_shrink(m.cache);
	failures = stat_of(&m, MF_SLAB_STAT_alloc_slowpath) + 1;
	CU_ASSERT_PTR_NULL(mf_cache_alloc(m.cache, &m.place, MEMFS_GFP_KERNEL));
	CHECK_STAT(&m, alloc_slowpath, failures);
	mf_fault_disarm(&m.fault);
	stop(&m);
}

static void test_bulk(void)
{
	struct machine m;
	static void *object[20000];
	void *first;

	start(&m, "1x64M:cpus=1", 4096, 4);
	first = take(&m);
	memset(first, 0xa5, 4096);
	give(&m, first);
	CU_ASSERT_EQUAL(mf_cache_alloc_bulk(m.cache, &m.place, MEMFS_GFP_KERNEL | MEMFS___GFP_ZERO, 100,
					    object),
			100);
	for (int i = 0; i < 100; i++) {
		CU_ASSERT_EQUAL(*(uint64_t *)object[i], 0);
		for (int j = 0; j < i; j++)
			CU_ASSERT_PTR_NOT_EQUAL(object[i], object[j]);
	}
	CU_ASSERT_EQUAL(mf_cache_free_bulk(m.cache, &m.place, 100, object), 0);
	/* More than there is: none. */
	CU_ASSERT_EQUAL(mf_cache_alloc_bulk(m.cache, &m.place, MEMFS_GFP_KERNEL, 20000, object), 0);
	object[0] = take(&m);
	object[1] = &m;
	CU_ASSERT_EQUAL(mf_cache_free_bulk(m.cache, &m.place, 2, object), -EINVAL);
	stop(&m);
}

/* --- handlers --- */

static struct machine *interrupted;
static _Atomic unsigned handled, spoiled;

static void on_alarm(int number)
{
	int saved = errno;
	void *object[6];
	unsigned n = 0;

	(void)number;
	while (n < 6 &&
	       (object[n] = mf_cache_alloc(interrupted->cache, &interrupted->place, MEMFS_GFP_ATOMIC)))
		n++;
	for (unsigned i = 0; i < n; i++)
		memset(object[i], 0xee, 64);
	while (n)
		mf_cache_free(interrupted->cache, &interrupted->place, object[--n]);
	handled++;
	errno = saved;
}

/* A thread: its placement is its own, the cache is everybody's. */
struct worker {
	pthread_t thread;
	struct machine *m;
	int mark;
	struct mf_placement place;
};

#define AT_ONCE 50u

/* What an object was marked with is there until it is given back: nobody else has it. */
static void one_by_one(struct worker *w, void **object, int mark)
{
	for (unsigned i = 0; i < AT_ONCE; i++) {
		object[i] = mf_cache_alloc(w->m->cache, &w->place, MEMFS_GFP_KERNEL);
		if (object[i])
			memset(object[i], mark, 64);
	}
	for (unsigned i = 0; i < AT_ONCE; i++) {
		const volatile unsigned char *bytes = object[i];

		if (!bytes)
			continue;
		spoiled += bytes[0] != mark || bytes[63] != mark;
		mf_cache_free(w->m->cache, &w->place, object[i]);
	}
}

static void *allocate_and_free(void *arg)
{
	struct worker *w = arg;
	void *object[AT_ONCE];

	for (int round = 0; round < 6000; round++) {
		one_by_one(w, object, w->mark);
		if (round % 8 == 0 &&
		    mf_cache_alloc_bulk(w->m->cache, &w->place, MEMFS_GFP_KERNEL, AT_ONCE, object))
			mf_cache_free_bulk(w->m->cache, &w->place, AT_ONCE, object);
		if (round % 500 == 0)
			mf_cache_shrink(w->m->cache);
	}
	return NULL;
}

static void handlers_in(int cpu)
{
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART }, before;
	struct worker worker[3];
	struct machine m;

	start(&m, "2x64M:cpus=1", 64, 4);
	mf_placement_set_cpu(&m.place, cpu, m.topo);
	interrupted = &m;
	handled = spoiled = 0;
	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 3; i++) {
		worker[i].m = &m;
		worker[i].mark = i + 1;
		worker[i].place = m.place;
		/* The last one visits the others' CPU from wherever it is. */
		if (i == 2)
			mf_placement_set_cpu(&worker[i].place, 0, m.topo);
		CU_ASSERT_EQUAL_FATAL(pthread_create(&worker[i].thread, NULL, allocate_and_free, &worker[i]),
				      0);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(worker[i].thread, NULL);
	while (!handled)
		sched_yield();
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	mf_cache_flush(m.cache);
	CU_ASSERT_EQUAL(spoiled, 0);
	CU_ASSERT_TRUE(stat_of(&m, MF_SLAB_STAT_alloc_cpu_sheaf) > 0);
	stop(&m);
}

static void test_handlers_by_lock(void)
{
	handlers_in(0);
}

static void test_handlers_by_sequence(void)
{
	handlers_in(MEMFS_CPU_AUTO);
}

/* While a lock of the CPU is held nobody waits: an allocation fails and counts, a free is kept. */
static void test_below_a_holder(void)
{
	struct machine m;
	struct mf_lock *lock;
	void *object;

	start(&m, "1x64M:cpus=1", 64, 4);
	object = take(&m);
	lock = &m.cache->cpu[0].lock;
	mf_lock_acquire(lock);
	CU_ASSERT_PTR_NULL(mf_cache_alloc(m.cache, &m.place, MEMFS_GFP_ATOMIC));
	CU_ASSERT_EQUAL(mf_stat_read(mf_page_stat(m.pg), MF_STAT_alloc_nowait_fail), 1);
	CU_ASSERT_EQUAL(mf_cache_free(m.cache, &m.place, object), 0);
	CU_ASSERT_PTR_EQUAL(m.cache->deferred, object);
	mf_lock_release(lock);
	object = take(&m);
	CU_ASSERT_PTR_NULL(m.cache->deferred);
	CU_ASSERT_EQUAL(stat_of(&m, MF_SLAB_STAT_free_fastpath) + stat_of(&m, MF_SLAB_STAT_free_slowpath), 1);
	give(&m, object);
	stop(&m);
}

/* --- kmalloc --- */

static void check_class(struct machine *m, uint64_t size)
{
	unsigned char *object = mf_kmalloc(m->slabs, &m->place, size, MEMFS_GFP_KERNEL, MF_NODE_BY_POLICY);

	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	CU_ASSERT_EQUAL(mf_ksize(m->slabs, object), mf_kmalloc_sizes[mf_kmalloc_class(size)]);
	CU_ASSERT_PTR_EQUAL(mf_cache_of(m->slabs, object), m->slabs->kmalloc[mf_kmalloc_class(size)]);
	CU_ASSERT_EQUAL(mf_kfree(m->slabs, &m->place, object), 0);
}

static void test_kmalloc_classes(void)
{
	struct machine m;
	void *object;

	start(&m, "1x64M:cpus=1", 64, 4);
	for (uint64_t size = 1; size <= 8192; size++)
		check_class(&m, size);
	object = mf_kmalloc(m.slabs, &m.place, 0, MEMFS_GFP_KERNEL, MF_NODE_BY_POLICY);
	CU_ASSERT_PTR_NOT_NULL(object);
	CU_ASSERT_EQUAL(mf_ksize(m.slabs, object), 0);
	CU_ASSERT_EQUAL(mf_kfree(m.slabs, &m.place, object), 0);
	CU_ASSERT_EQUAL(mf_kfree(m.slabs, &m.place, NULL), 0);
	CU_ASSERT_EQUAL(mf_kfree(m.slabs, &m.place, &m), -EINVAL);
	CU_ASSERT_PTR_NULL(mf_cache_of(m.slabs, &m));
	stop(&m);
}

static void test_kmalloc_large(void)
{
	struct machine m;
	char *block;

	start(&m, "1x64M:cpus=1", 64, 4);
	block = mf_kmalloc(m.slabs, &m.place, 8193, MEMFS_GFP_KERNEL | MEMFS___GFP_ZERO, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(block);
	CU_ASSERT_EQUAL(block[16383], 0);
	CU_ASSERT_EQUAL(mf_ksize(m.slabs, block), 16384);
	CU_ASSERT_PTR_NULL(mf_cache_of(m.slabs, block));
	CU_ASSERT_EQUAL(mf_kfree(m.slabs, &m.place, block + 8), -EINVAL);
	CU_ASSERT_EQUAL(mf_kfree(m.slabs, &m.place, block + 4096), -EINVAL);
	CU_ASSERT_EQUAL(mf_cache_free(m.cache, &m.place, block), -EINVAL);
	CU_ASSERT_EQUAL(mf_kfree(m.slabs, &m.place, block), 0);
	CU_ASSERT_EQUAL(mf_kfree(m.slabs, &m.place, block), -EINVAL);
	block = mf_kmalloc(m.slabs, &m.place, 4u << 20, MEMFS_GFP_KERNEL, MF_NODE_BY_POLICY);
	CU_ASSERT_EQUAL(mf_ksize(m.slabs, block), 4u << 20);
	CU_ASSERT_EQUAL(mf_kfree(m.slabs, &m.place, block), 0);
	CU_ASSERT_PTR_NULL(
		mf_kmalloc(m.slabs, &m.place, (4u << 20) + 1, MEMFS_GFP_KERNEL, MF_NODE_BY_POLICY));
	CU_ASSERT_PTR_NULL(mf_kmalloc(m.slabs, &m.place, UINT64_MAX, MEMFS_GFP_KERNEL, MF_NODE_BY_POLICY));
	CU_ASSERT_PTR_NULL(mf_kmalloc(m.slabs, &m.place, 100, MEMFS_GFP_KERNEL, 5));
	stop(&m);
}

static void test_krealloc(void)
{
	struct machine m;
	char *object, *moved;

	start(&m, "1x64M:cpus=1", 64, 4);
	object = mf_krealloc(m.slabs, &m.place, NULL, 50, MEMFS_GFP_KERNEL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	memset(object, 7, 64);
	CU_ASSERT_PTR_EQUAL(mf_krealloc(m.slabs, &m.place, object, 64, MEMFS_GFP_KERNEL), object);
	moved = mf_krealloc(m.slabs, &m.place, object, 10000, MEMFS_GFP_KERNEL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(moved);
	CU_ASSERT_EQUAL(moved[0] + moved[63], 14);
	CU_ASSERT_EQUAL(mf_ksize(m.slabs, moved), 16384);
	CU_ASSERT_PTR_NULL(mf_krealloc(m.slabs, &m.place, moved, UINT64_C(1) << 40, MEMFS_GFP_KERNEL));
	CU_ASSERT_PTR_NULL(mf_krealloc(m.slabs, &m.place, &m, 10, MEMFS_GFP_KERNEL));
	object = mf_krealloc(m.slabs, &m.place, moved, 0, MEMFS_GFP_KERNEL);
	CU_ASSERT_EQUAL(mf_ksize(m.slabs, object), 0);
	object = mf_krealloc(m.slabs, &m.place, object, 8, MEMFS_GFP_KERNEL);
	CU_ASSERT_EQUAL(mf_ksize(m.slabs, object), 8);
	CU_ASSERT_EQUAL(mf_kfree(m.slabs, &m.place, object), 0);
	stop(&m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_exchange_by_lock),
	UNIT_TEST(test_exchange_by_sequence),
	UNIT_TEST(test_stock_is_bounded),
	UNIT_TEST(test_remote_frees_go_home),
	UNIT_TEST(test_sheaves_off),
	UNIT_TEST(test_no_sheaf),
	UNIT_TEST(test_bulk),
	UNIT_TEST(test_handlers_by_lock),
	UNIT_TEST(test_handlers_by_sequence),
	UNIT_TEST(test_below_a_holder),
	UNIT_TEST(test_kmalloc_classes),
	UNIT_TEST(test_kmalloc_large),
	UNIT_TEST(test_krealloc),
};

UNIT_MAIN("sheaf", tests)
