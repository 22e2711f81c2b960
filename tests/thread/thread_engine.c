/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One instance used by several threads through the public calls and the control
 * files: tasks come and go, named allocations are made, written to and freed,
 * two threads want one name, files are read and settings changed all the while.
 * At the end nothing is left and the free blocks are those of the start.
 */
#include "ctl/ctl.h"
#include "engine_fixture.h"
#include "plat/rseq.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>

#ifdef MF_TSAN
#define ROUNDS 4000
#else
#define ROUNDS 15000
#endif
#define NR_WORKERS 4
#define NAMES 4
#define OPTIONS "topology=2x64M:cpus=2"

struct worker {
	struct memfs *m;
	pthread_t thread;
	unsigned number;
	uint64_t state;
	struct memfs_task *task; /* its own, NULL while there is none */
	uint64_t pages[NAMES];	 /* of its own named allocations, 0 none */
	uint64_t tags[NAMES];
	unsigned wrong;
	char last_wrong[256];
	uint64_t done;
};

static _Atomic bool stop;

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

/* CUnit counts for one thread only: each keeps its own list of what went wrong. */
static void expect(struct worker *w, bool holds, const char *what, long result)
{
	if (holds)
		return;
	w->wrong++;
	snprintf(w->last_wrong, sizeof(w->last_wrong), "%.200s: %ld", what, result);
}

static int put(struct worker *w, const char *path, const char *text, char *reply, size_t size)
{
	return memfs_write(w->m, path, text, strlen(text), reply, size);
}

/* A setting that may always be made. */
static void set(struct worker *w, const char *path, const char *text)
{
	char reply[256];
	int error = put(w, path, text, reply, sizeof(reply));

	if (error)
		expect(w, false, reply, error);
}

/* --- named allocations --- */

static void data_path(const struct worker *w, unsigned k, char *path, size_t size)
{
	snprintf(path, size, "live/w%u-%u/data", w->number, k);
}

static void alloc_named(struct worker *w, unsigned k)
{
	static const char *const kinds[] = { "",
					     " via=single",
					     " policy=interleave:0-1",
					     " node=1",
					     " gfp=GFP_HIGHUSER_MOVABLE",
					     " context=irq" };
	uint64_t count = 1 + below(w, 40), order = below(w, 4) ? 0 : below(w, 4), returned = 0;
	char text[256], reply[256], path[64];
	int error;

	snprintf(text, sizeof(text), "w%u-%u count=%" PRIu64 " order=%" PRIu64 "%s%s%u", w->number, k, count,
		 order, order ? "" : kinds[below(w, sizeof(kinds) / sizeof(kinds[0]))],
		 w->task ? " task=w" : " cpu=", w->task ? w->number : w->number % 4);
	error = put(w, "alloc/pages", text, reply, sizeof(reply));
	expect(w, error == 0, reply, error);
	if (error)
		return;
	expect(w, sscanf(reply, "%*s returned=%" SCNu64, &returned) == 1 && returned == count, reply, 0);
	w->pages[k] = count << order;
	w->tags[k] = next_random(w);
	data_path(w, k, path, sizeof(path));
	error = memfs_write(w->m, path, (char *)&w->tags[k], sizeof(w->tags[k]), NULL, 0);
	expect(w, error == 0, path, error);
	w->done++;
}

static void free_named(struct worker *w, unsigned k)
{
	char path[64], reply[256];
	uint64_t tag = 0;
	long result;
	int error;

	data_path(w, k, path, sizeof(path));
	result = memfs_read(w->m, path, (char *)&tag, sizeof(tag));
	expect(w, result == (long)(w->pages[k] * MEMFS_PAGE_SIZE), path, result);
	expect(w, tag == w->tags[k], "the bytes of an allocation changed", 0);
	snprintf(path, sizeof(path), "w%u-%u", w->number, k);
	error = put(w, "alloc/free", path, reply, sizeof(reply));
	expect(w, error == 0, reply, error);
	w->pages[k] = 0;
}

/* All want this name: one has it. */
static void use_shared_name(struct worker *w)
{
	char reply[256];
	int error;

	if (below(w, 2)) {
		error = put(w, "alloc/pages", "shared count=20", reply, sizeof(reply));
		expect(w, error == 0 || error == -EEXIST, reply, error);
	} else {
		error = put(w, "alloc/free", "shared", reply, sizeof(reply));
		expect(w, error == 0 || error == -ENOENT, reply, error);
	}
}

static void use_generated_name(struct worker *w)
{
	char reply[256], name[80];
	int error = put(w, "alloc/pages", "- count=3", reply, sizeof(reply));

	expect(w, error == 0, reply, error);
	if (error || sscanf(reply, "%79s", name) != 1)
		return;
	error = put(w, "alloc/free", name, reply, sizeof(reply));
	expect(w, error == 0, reply, error);
}

/* --- tasks and the library's own calls --- */

static unsigned nr_named(const struct worker *w)
{
	unsigned nr = 0;

	for (unsigned k = 0; k < NAMES; k++)
		nr += w->pages[k] > 0;
	return nr;
}

static void use_task(struct worker *w)
{
	char name[16];
	int error;

	snprintf(name, sizeof(name), "w%u", w->number);
	if (w->task && !below(w, 4) && !nr_named(w)) {
		error = memfs_task_destroy(w->task);
		/* Whoever looks at its files pins it for a moment. */
		expect(w, error == 0 || error == -EBUSY, "destroying a task", error);
		if (!error)
			w->task = NULL;
		expect(w, (memfs_task_find(w->m, name) == NULL) == !error, "finding a task that ended",
		       error);
	} else if (w->task) {
		error = memfs_task_set_policy(w->task, below(w, 2) ? "weighted interleave:0-1" : "prefer:1");
		expect(w, error == 0, "policy", error);
		error = memfs_task_set_mems_allowed(w->task, below(w, 2) ? "0-1" : "1");
		expect(w, error == 0, "mems_allowed", error);
		error = memfs_task_set_cpu(w->task, (int)below(w, 4));
		expect(w, error == 0, "cpu", error);
	} else {
		error = memfs_task_create(w->m, name, &w->task);
		expect(w, error == 0 && memfs_task_find(w->m, name) == w->task, "creating a task", error);
	}
}

static void use_pages(struct worker *w)
{
	struct memfs_task *task = w->task && below(w, 2) ? w->task : memfs_task_find(w->m, "default");
	memfs_pfn pfns[50], block;
	size_t n = memfs_alloc_bulk(task, MEMFS_GFP_KERNEL, 50, pfns);
	int error;

	expect(w, n == 50, "bulk", (long)n);
	for (size_t i = 0; i < n; i++)
		*(uint64_t *)memfs_page_address(w->m, pfns[i]) = w->number + i;
	error = memfs_alloc_pages_node(task, (int)below(w, 2), MEMFS_GFP_KERNEL, 2, &block);
	expect(w, error == 0, "a block of a node", error);
	for (size_t i = 0; i < n; i++)
		expect(w, *(uint64_t *)memfs_page_address(w->m, pfns[i]) == w->number + i, "contents",
		       (long)i);
	memfs_free_bulk(task, n, pfns);
	if (!error)
		memfs_free_pages(task, block, 2);
	if (below(w, 8) == 0)
		memfs_drain(w->m, (int)below(w, 3) - 1);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int round = 0; round < ROUNDS; round++) {
		unsigned k = (unsigned)below(w, NAMES);

		switch (below(w, 8)) {
		case 0:
			use_task(w);
			break;
		case 1:
			use_shared_name(w);
			break;
		case 2:
			use_generated_name(w);
			break;
		case 3:
		case 4:
			use_pages(w);
			break;
		default:
			if (w->pages[k])
				free_named(w, k);
			else
				alloc_named(w, k);
			break;
		}
	}
	for (unsigned k = 0; k < NAMES; k++)
		if (w->pages[k])
			free_named(w, k);
	return NULL;
}

/* --- meanwhile: one reads, one changes --- */

static const char *const paths[] = {
	"README",
	"last_cmd_status",
	"weights/auto",
	"weights/node1",
	"nodes/online",
	"nodes/node0/meminfo",
	"nodes/node1/numastat",
	"nodes/node0/vmstat",
	"nodes/node0/Normal/free_area",
	"nodes/node1/Normal/low",
	"tasks/default/policy",
	"tasks/default/next_node",
	"tasks/default/numastat",
	"stats/all",
	"stats/buddyinfo",
	"stats/pagetypeinfo",
	"stats/zoneinfo",
	"stats/vmstat",
	"stats/meminfo",
	"stats/counters/pgalloc",
	"tune/numa_stat",
	"tune/lowmem_reserve_ratio",
};

/* Of things that come and go. */
static const char *const passing_paths[] = {
	"live/shared/map",   "live/shared/placement", "live/shared/pages",   "live/shared/policy",
	"live/w0-0/map",     "live/w1-1/task",	      "live/w2-2/placement", "tasks/w0/policy",
	"tasks/w1/numastat", "tasks/w2/cpu",
};

static bool see(void *arg, const char *name, const struct mf_ctl_node *child, uint64_t next_cursor)
{
	struct worker *w = arg;

	(void)child, (void)next_cursor;
	expect(w, name[0] != '\0', "an entry without a name", 0);
	return true;
}

static void list(struct worker *w, const char *path)
{
	struct mf_ctl_node dir;

	if (mf_ctl_resolve(w->m, mf_text_of(path), &dir) == 0)
		mf_ctl_list(w->m, &dir, 0, see, w);
	else
		expect(w, false, path, 0);
}

/*
 * A thread that stands between a list and its counter makes the sums wrong for
 * that moment (what is really wrong stays so).
 */
static void check(struct worker *w, char *text, size_t size)
{
	long result = 0;

	for (int tries = 0; tries < 100; tries++) {
		result = memfs_read(w->m, "debug/check", text, size - 1);
		if (result == 3 && !memcmp(text, "ok\n", 3))
			return;
		sched_yield();
	}
	text[result > 0 && (size_t)result < size ? (size_t)result : 0] = '\0';
	expect(w, false, text, result);
}

static void *read_files(void *arg)
{
	static char text[1 << 17];
	struct worker *w = arg;

	while (!stop) {
		const char *path = paths[below(w, sizeof(paths) / sizeof(paths[0]))];
		long result = memfs_read(w->m, path, text, sizeof(text));

		expect(w, result > 0, path, result);
		path = passing_paths[below(w, sizeof(passing_paths) / sizeof(passing_paths[0]))];
		result = memfs_read(w->m, path, text, sizeof(text));
		expect(w, result > 0 || result == -ENOENT || result == -ENODEV, path, result);
		list(w, below(w, 2) ? "live" : "tasks");
		if (!below(w, 16))
			check(w, text, sizeof(text));
		w->done++;
		sched_yield();
	}
	return NULL;
}

static void *change_settings(void *arg)
{
	static const char *const settings[][2] = {
		{ "weights/node0", "3" },
		{ "weights/node1", "7" },
		{ "nodes/node0/bandwidth", "100" },
		{ "nodes/node1/bandwidth", "50" },
		{ "weights/auto", "true" },
		{ "weights/auto", "false" },
		{ "tasks/default/policy", "interleave:0-1" },
		{ "tasks/default/policy", "local" },
		{ "tasks/default/mems_allowed", "0-1" },
		{ "tasks/default/cpu", "3" },
		{ "tune/pcp_mode", "off" },
		{ "tune/pcp_mode", "trylock" },
		{ "tune/numa_stat", "0" },
		{ "tune/numa_stat", "1" },
		{ "tune/bulk_algorithm", "split" },
		{ "tune/bulk_algorithm", "carryover" },
		{ "tune/numa", "0" },
		{ "tune/numa", "1" },
		{ "alloc/drain", "1" },
		{ "alloc/drain", "node1" },
		{ "alloc/trim", "1" },
		{ "debug/tick", "1" },
	};
	struct worker *w = arg;

	/* So that auto can always be switched on. */
	set(w, "nodes/node0/bandwidth", "100");
	while (!stop) {
		const char *const *setting = settings[below(w, sizeof(settings) / sizeof(settings[0]))];

		set(w, setting[0], setting[1]);
		if (mf_page_rseq_available() && below(w, 4) == 0)
			set(w, "tune/pcp_mode", "rseq");
		w->done++;
		sched_yield();
	}
	return NULL;
}

static void begin(struct worker *w, struct memfs *m, unsigned number, void *(*body)(void *))
{
	*w = (struct worker){ .m = m, .number = number, .state = number + 1 };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w->thread, NULL, body, w), 0);
}

static void judge(const struct worker *w)
{
	if (w->wrong)
		fprintf(stderr, "thread %u: %u times wrong, the last: %s\n", w->number, w->wrong,
			w->last_wrong);
	CU_ASSERT_EQUAL(w->wrong, 0);
	CU_ASSERT_TRUE(w->done > 0);
	if (w->task)
		CU_ASSERT_EQUAL(memfs_task_destroy(w->task), 0);
}

static void test_everything_at_once(void)
{
	static struct worker workers[NR_WORKERS], reader, changer;
	struct memfs *m = fixture(OPTIONS);
	struct free_table *before = free_table(m);
	struct mf_stat_set *stat = mf_page_stat(m->page);

	stop = false;
	for (unsigned i = 0; i < NR_WORKERS; i++)
		begin(&workers[i], m, i, work);
	begin(&reader, m, NR_WORKERS, read_files);
	begin(&changer, m, NR_WORKERS + 1, change_settings);
	for (unsigned i = 0; i < NR_WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	stop = true;
	pthread_join(reader.thread, NULL);
	pthread_join(changer.thread, NULL);
	judge(&reader);
	judge(&changer);
	memfs_write(m, "alloc/free", "shared", 6, NULL, 0);
	for (unsigned i = 0; i < NR_WORKERS; i++)
		judge(&workers[i]);
	CU_ASSERT_TRUE(check_says(m, "ok\n"));
	CU_ASSERT_EQUAL(m->live.nr_pages, 0);
	CU_ASSERT_EQUAL(mf_stat_read(stat, MF_STAT_pgalloc), mf_stat_read(stat, MF_STAT_pgfree));
	CU_ASSERT_TRUE(mf_stat_read(stat, MF_STAT_pgalloc) > ROUNDS);
	CU_ASSERT_TRUE(same_free_table(m, before));
	fixture_end(m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_everything_at_once),
};

UNIT_MAIN("thread_engine", tests)
