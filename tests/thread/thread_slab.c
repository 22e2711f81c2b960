/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Caches and kmalloc used by several threads: objects made here and freed there,
 * by tasks on CPUs of their own and on the caller's; others that keep their
 * objects for a while; and beside them one that shrinks, looks, counts and turns
 * knobs.  Whatever an object was filled with it still holds when it is freed.
 * At the end nothing is left and the free blocks are those of the start.
 */
#include "engine_fixture.h"
#include "plat/rseq.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>

#ifdef MF_TSAN
#define ROUNDS 20000
#else
#define ROUNDS 200000
#endif
#define OPTIONS "topology=2x64M:cpus=2"
#define NR_CACHES 4
#define NR_KEPT 300

/* What goes from a maker to a taker: one writes, one reads. */
#define RING 256u
struct ring {
	void *object[RING];
	int cache[RING];
	_Atomic unsigned put, got;
};

struct worker {
	struct memfs *m;
	pthread_t thread;
	struct memfs_task *task;
	struct memfs_cache **cache; /* [NR_CACHES]; beyond: by size */
	struct ring *ring;
	uint64_t state, done;
	unsigned wrong;
	char last_wrong[128];
};

static const size_t sizes[NR_CACHES + 1] = { 16, 64, 192, 2000, 704 };
static _Atomic bool stop;

static uint64_t below(struct worker *w, uint64_t bound)
{
	uint64_t z = w->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) % bound;
}

/* CUnit counts for one thread only: each keeps its own list of what went wrong. */
static void expect(struct worker *w, bool holds, const char *what)
{
	if (holds)
		return;
	w->wrong++;
	snprintf(w->last_wrong, sizeof(w->last_wrong), "%s", what);
}

/* --- objects: their address at both ends --- */

static uintptr_t *last_word(void *object, int cache)
{
	return (uintptr_t *)((char *)object + sizes[cache]) - 1;
}

static void *make(struct worker *w, int cache)
{
	int node = below(w, 8) ? -1 : (int)below(w, 2);
	void *object;

	if (cache == NR_CACHES)
		object = memfs_kmalloc(w->task, sizes[cache], MEMFS_GFP_KERNEL);
	else if (node < 0)
		object = memfs_cache_alloc(w->task, w->cache[cache], MEMFS_GFP_KERNEL);
	else
		object = memfs_cache_alloc_node(w->task, w->cache[cache], MEMFS_GFP_KERNEL, node);
	expect(w, object != NULL, "no object though there is memory");
	if (object) {
		*(uintptr_t *)object = (uintptr_t)object;
		*last_word(object, cache) = (uintptr_t)object;
	}
	return object;
}

static void end(struct worker *w, void *object, int cache)
{
	int error;

	expect(w, *(uintptr_t *)object == (uintptr_t)object, "an object's beginning changed");
	expect(w, *last_word(object, cache) == (uintptr_t)object, "an object's end changed");
	*(uintptr_t *)object = *last_word(object, cache) = 0; /* whoever has it, too, would see that */
	if (cache == NR_CACHES || !below(w, 4))
		error = memfs_kfree(w->task, object);
	else
		error = memfs_cache_free(w->task, w->cache[cache], object);
	expect(w, error == 0, "an object is not taken back");
	w->done++;
}

/* --- made here, freed there --- */

static void *maker(void *arg)
{
	struct worker *w = arg;
	struct ring *ring = w->ring;

	for (unsigned put = 0; put < ROUNDS;) {
		int cache = (int)below(w, NR_CACHES + 1);

		if (put - ring->got == RING) {
			sched_yield();
			continue;
		}
		ring->cache[put % RING] = cache;
		ring->object[put % RING] = make(w, cache);
		ring->put = ++put;
		w->done++;
	}
	return NULL;
}

static void *taker(void *arg)
{
	struct worker *w = arg;
	struct ring *ring = w->ring;

	for (unsigned got = 0; got < ROUNDS;) {
		if (got == ring->put) {
			sched_yield();
			continue;
		}
		if (ring->object[got % RING])
			end(w, ring->object[got % RING], ring->cache[got % RING]);
		ring->got = ++got;
	}
	return NULL;
}

/* --- kept for a while; many at once --- */

static void make_many(struct worker *w, int cache, void **objects, size_t n)
{
	size_t got = memfs_cache_alloc_bulk(w->task, w->cache[cache], MEMFS_GFP_KERNEL, n, objects);

	expect(w, got == n, "not as many objects as asked for");
	for (size_t i = 0; i < got; i++)
		memset(objects[i], 'k', sizes[cache]);
	for (size_t i = 0; i < got; i++)
		for (size_t byte = 0; byte < sizes[cache]; byte++)
			if (((char *)objects[i])[byte] != 'k')
				expect(w, false, "objects of one call overlap");
	expect(w, memfs_cache_free_bulk(w->task, w->cache[cache], got, objects) == 0, "freeing many");
}

static void *keeper(void *arg)
{
	static const int none = -1;
	struct worker *w = arg;
	void *kept[NR_KEPT] = { NULL };
	int of[NR_KEPT];

	for (int round = 0; round < ROUNDS; round++) {
		unsigned i = (unsigned)below(w, NR_KEPT);

		if (!below(w, 500)) {
			void *many[200];

			make_many(w, (int)below(w, NR_CACHES), many, 200);
		}
		if (kept[i]) {
			end(w, kept[i], of[i]);
			kept[i] = NULL;
			of[i] = none;
			continue;
		}
		of[i] = (int)below(w, NR_CACHES + 1);
		kept[i] = make(w, of[i]);
	}
	for (unsigned i = 0; i < NR_KEPT; i++)
		if (kept[i])
			end(w, kept[i], of[i]);
	return NULL;
}

/* --- beside them --- */

static void turn_knobs(struct worker *w, struct mf_cache *cache)
{
	struct mf_slab_knobs all;
	struct mf_cache_knobs knobs;

	mf_slabs_get_knobs(w->m->slabs, &all);
	all.sheaves = below(w, 4) != 0;
	all.skip = (int)below(w, 3);
	all.stock_bytes = below(w, 2) ? UINT64_C(1) << 20 : 0;
	mf_slabs_set_knobs(w->m->slabs, &all);
	mf_cache_get_knobs(cache, &knobs);
	knobs.cpu_partial = (unsigned)below(w, 50);
	knobs.min_partial = (unsigned)below(w, 6);
	knobs.sheaf_capacity = (unsigned)below(w, 100);
	expect(w, mf_cache_set_knobs(cache, &knobs) == 0, "knobs of a cache");
}

static void look(struct worker *w, struct mf_cache *cache)
{
	struct mf_cache_info *info = malloc(sizeof(*info));
	uint64_t total = 0;

	if (!info)
		abort();
	mf_cache_info(cache, info);
	for (int node = 0; node < MEMFS_MAX_NODES; node++)
		total += info->node[node].total_objects;
	/* Each count is right for itself; together they may be of different moments. */
	expect(w, info->used < UINT64_C(1) << 32, "a count went below zero");
	expect(w, total < UINT64_C(1) << 32, "a sum went below zero");
	for (unsigned cpu = 0; cpu < mf_cache_nr_cpus(cache); cpu++)
		for (int id = 0; id < MF_NR_SLAB_STATS; id++)
			expect(w, mf_cache_stat(cache, (enum mf_slab_stat)id, cpu) < UINT64_C(1) << 48,
			       "a counter went below zero");
	free(info);
}

static void come_and_go(struct worker *w)
{
	struct memfs_cache *passing = NULL;
	void *object;

	expect(w, memfs_cache_create(w->m, "passing", 333, 0, 0, NULL, &passing) == 0, "making a cache");
	if (!passing)
		return;
	object = memfs_cache_alloc(w->task, passing, MEMFS_GFP_KERNEL);
	expect(w, object && memfs_cache_free(w->task, passing, object) == 0, "a cache that was just made");
	expect(w, memfs_cache_destroy(w->m, passing) == 0, "ending a cache");
}

static void *meddler(void *arg)
{
	struct worker *w = arg;

	while (!stop) {
		struct memfs_cache *cache = w->cache[below(w, NR_CACHES)];

		switch (below(w, 5)) {
		case 0:
			turn_knobs(w, (struct mf_cache *)cache);
			break;
		case 1:
			come_and_go(w);
			break;
		case 2:
			mf_engine_tick(w->m);
			break;
		case 3:
			look(w, (struct mf_cache *)cache);
			break;
		default:
			memfs_cache_shrink(w->m, cache);
		}
		w->done++;
		sched_yield();
	}
	return NULL;
}

/* --- all at once --- */

static void begin(struct worker *w, const struct worker *like, unsigned number, int cpu,
		  void *(*body)(void *))
{
	char name[24];

	*w = *like;
	w->state = number;
	snprintf(name, sizeof(name), "w%u", number);
	CU_ASSERT_EQUAL_FATAL(memfs_task_create(w->m, name, &w->task), 0);
	/* The caller's own where this host's CPUs are in the topology, else the one named. */
	if (cpu >= 0 || memfs_task_set_cpu(w->task, MEMFS_CPU_AUTO))
		CU_ASSERT_EQUAL(memfs_task_set_cpu(w->task, cpu < 0 ? 0 : cpu), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w->thread, NULL, body, w), 0);
}

static void judge(struct worker *w)
{
	if (w->wrong)
		fprintf(stderr, "%u times wrong, the last: %s\n", w->wrong, w->last_wrong);
	CU_ASSERT_EQUAL(w->wrong, 0);
	CU_ASSERT_TRUE(w->done > 0);
	CU_ASSERT_EQUAL(memfs_task_destroy(w->task), 0);
}

static void run_all(struct memfs *m, struct memfs_cache **caches)
{
	static struct ring rings[2];
	struct worker like = { .m = m, .cache = caches }, workers[7], side;

	memset(rings, 0, sizeof(rings));
	stop = false;
	begin(&side, &like, 100, -1, meddler);
	for (unsigned i = 0; i < 2; i++) {
		like.ring = &rings[i];
		begin(&workers[2 * i], &like, 2 * i, i ? 0 : -1, maker);
		begin(&workers[2 * i + 1], &like, 2 * i + 1, i ? 2 : -1, taker); /* the second on node 1 */
	}
	for (unsigned i = 4; i < 7; i++)
		begin(&workers[i], &like, i, i == 6 ? 3 : -1, keeper);
	for (unsigned i = 0; i < 7; i++)
		pthread_join(workers[i].thread, NULL);
	stop = true;
	pthread_join(side.thread, NULL);
	for (unsigned i = 0; i < 7; i++)
		judge(&workers[i]);
	judge(&side);
}

static void test_everything_at_once(void)
{
	static const unsigned flags[NR_CACHES] = { 0, MEMFS_SLAB_HWCACHE_ALIGN, MEMFS_SLAB_NO_MERGE,
						   MEMFS_SLAB_TYPESAFE_BY_RCU };
	struct memfs *m = fixture(OPTIONS);
	struct free_table *before = free_table(m);
	struct memfs_cache *caches[NR_CACHES];

	for (int i = 0; i < NR_CACHES; i++) {
		char name[24];

		snprintf(name, sizeof(name), "cache%d", i);
		CU_ASSERT_EQUAL_FATAL(memfs_cache_create(m, name, sizes[i], 0, flags[i], NULL, &caches[i]),
				      0);
	}
	run_all(m, caches);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	for (int i = 0; i < NR_CACHES; i++)
		CU_ASSERT_EQUAL(memfs_cache_destroy(m, caches[i]), 0);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_TRUE(same_free_table(m, before));
	CU_ASSERT_EQUAL(mf_stat_read(mf_page_stat(m->page), MF_STAT_pgalloc),
			mf_stat_read(mf_page_stat(m->page), MF_STAT_pgfree));
	fixture_end(m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_everything_at_once),
};

UNIT_MAIN("thread_slab", tests)
