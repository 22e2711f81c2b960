/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects through the public API, beside jemalloc, gperftools, mimalloc and
 * glibc in the same run: what a pair costs, what stays resident, and the seed's
 * question, how often other nodes' lists are looked at in a search.  See
 * README.md.  Nothing here fails because of a figure.  --quick: one short round
 * of all.
 *
 * All sides alternate in chunks of about a millisecond.  One thread runs on CPU
 * 1; the threads of the rows with two on CPU 0 and 1, which the topology has as
 * well.  The same caches without sheaves (tune/slab_sheaves=0) live in an
 * instance of their own, so that no chunk begins with caches just emptied.
 */
#include "memfs.h"
#include "rivals.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

struct bench_object {
	void *at;
};

struct bench_side {
	struct memfs_task *task;
	struct memfs_cache *cache; /* NULL: kmalloc */
	struct memfs *m;
	double slabs[4]; /* KEEP: bytes of the cache's slabs, a look each */
	unsigned looks;
};

static inline struct bench_object bench_take(struct bench_side *side, const struct bench_job *job)
{
	struct bench_object object;

	if (__builtin_expect(side->cache != NULL, 1))
		object.at = memfs_cache_alloc(side->task, side->cache, MEMFS_GFP_KERNEL);
	else
		object.at = memfs_kmalloc(side->task, job->bytes, MEMFS_GFP_KERNEL);
	if (__builtin_expect(!object.at, 0))
		abort();
	return object;
}

static inline void bench_give(struct bench_side *side, const struct bench_job *job,
			      struct bench_object object)
{
	(void)job;
	if (__builtin_expect(side->cache != NULL, 1))
		memfs_cache_free(side->task, side->cache, object.at);
	else
		memfs_kfree(side->task, object.at);
}

#define BENCH_KEEPS
#include "jobs.h"

#define MIB 1048576.0

static bool quick;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench_slab: %s: %s\n", what, why);
	exit(2);
}

/* --- a machine of ours --- */

struct machine {
	struct memfs *m;
	struct bench_side sides[2];
};

static void start(struct machine *machine, const char *options)
{
	static const char *const names[2] = { "bench0", "bench1" };
	char why[256] = "";

	memset(machine, 0, sizeof(*machine));
	if (memfs_create(options, &machine->m, why, sizeof(why)))
		die(options, why);
	for (int i = 0; i < 2; i++) {
		machine->sides[i].m = machine->m;
		if (memfs_task_create(machine->m, names[i], &machine->sides[i].task) ||
		    memfs_task_set_cpu(machine->sides[i].task, MEMFS_CPU_AUTO))
			die(names[i], "no task");
	}
}

static void put_file(struct memfs *m, const char *path, const char *text)
{
	char reply[256];

	if (memfs_write(m, path, text, strlen(text), reply, sizeof(reply)))
		die(path, reply);
}

/* The number that a file begins with. */
static double read_number(struct memfs *m, const char *path)
{
	char text[4096];
	long n = memfs_read(m, path, text, sizeof(text) - 1);

	if (n < 0)
		die(path, "unreadable");
	text[n < (long)sizeof(text) ? n : (long)sizeof(text) - 1] = '\0';
	return strtod(text, NULL);
}

static double cache_number(struct memfs *m, const char *cache, const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), "slab/%s/%s", cache, file);
	return read_number(m, path);
}

static void make_cache(struct machine *machine, const char *name, size_t bytes)
{
	struct memfs_cache *cache;

	if (memfs_cache_create(machine->m, name, bytes, 0, MEMFS_SLAB_NO_MERGE, NULL, &cache))
		die(name, "no cache");
	for (int i = 0; i < 2; i++)
		machine->sides[i].cache = cache;
}

static void end_cache(struct machine *machine)
{
	if (memfs_cache_destroy(machine->m, machine->sides[0].cache))
		die("cache", "still in use");
	for (int i = 0; i < 2; i++)
		machine->sides[i].cache = NULL;
}

/* --- one row --- */

struct row {
	const char *name;
	bool by_size; /* kmalloc */
	struct bench_job job;
	double asked;
};

static const struct row rows[] = {
	{ "cache pair, 64 B", false, { BENCH_PAIR, 0, 0, 200000, 64 }, 3.2 },
	{ "cache pair, 256 B", false, { BENCH_PAIR, 0, 0, 200000, 256 }, 3.2 },
	{ "cache pair, 1 KiB", false, { BENCH_PAIR, 0, 0, 200000, 1024 }, 3.2 },
	{ "cache pair, 8 KiB", false, { BENCH_PAIR, 0, 0, 200000, 8192 }, 3.2 },
	{ "kmalloc pair, 64 B", true, { BENCH_PAIR, 0, 0, 200000, 64 }, 5.3 },
	{ "kmalloc pair, 256 B", true, { BENCH_PAIR, 0, 0, 200000, 256 }, 5.3 },
	{ "kmalloc pair, 1 KiB", true, { BENCH_PAIR, 0, 0, 200000, 1024 }, 5.3 },
	{ "kmalloc pair, 8 KiB", true, { BENCH_PAIR, 0, 0, 200000, 8192 }, 6 },
	{ "1000 then freed, 64 B", false, { BENCH_BATCH, 0, 1000, 100000, 64 }, 5.5 },
	{ "1000 then freed, 1 KiB", false, { BENCH_BATCH, 0, 1000, 50000, 1024 }, 7 },
	{ "1000 then freed, 8 KiB", false, { BENCH_BATCH, 0, 1000, 20000, 8192 }, 14 },
	{ "1000 then freed, kmalloc 64 B", true, { BENCH_BATCH, 0, 1000, 100000, 64 }, 0 },
	{ "1000 then freed, kmalloc 1 KiB", true, { BENCH_BATCH, 0, 1000, 50000, 1024 }, 0 },
	{ "1000 then freed, kmalloc 8 KiB", true, { BENCH_BATCH, 0, 1000, 20000, 8192 }, 0 },
	{ "2 threads, cache pair, 64 B", false, { BENCH_THREADS, 0, 0, 200000, 64 }, 0 },
	{ "2 threads, kmalloc pair, 64 B", true, { BENCH_THREADS, 0, 0, 200000, 64 }, 0 },
	{ "freed on another CPU, cache 64 B",
	  false,
	  { BENCH_HANDOFF, 0, 0, 16 * BENCH_HANDOFF_BATCH, 64 },
	  18 },
	{ "freed on another CPU, kmalloc 64 B",
	  true,
	  { BENCH_HANDOFF, 0, 0, 16 * BENCH_HANDOFF_BATCH, 64 },
	  18 },
};

enum { OURS, LAYERS, PAGES, FIRST_RIVAL };

_Static_assert(FIRST_RIVAL + NR_RIVALS <= BENCH_RACE_SIDES, "struct bench_race");

/* How often the fast path did not do, over all chunks of OURS. */
enum { STOCK_GET, STOCK_PUT, NEW_SLABS, REFILLS, NR_COUNTERS };

static const char *const counters[NR_COUNTERS] = { "barn_get", "barn_put", "alloc_slab", "sheaf_refill" };

static void count(struct memfs *m, const char *cache, double sign, double *counts)
{
	for (int i = 0; i < NR_COUNTERS; i++)
		counts[i] += sign * cache_number(m, cache, counters[i]);
}

/* The yardstick: pairs of the page allocator. */
static double run_pages(struct memfs_task *task, size_t n)
{
	double begin = bench_now();
	memfs_pfn pfn;

	for (size_t i = 0; i < n; i++) {
		if (memfs_alloc_pages(task, MEMFS_GFP_KERNEL, 0, &pfn))
			die("memfs_alloc_pages", "no memory");
		memfs_free_pages(task, pfn, 0);
	}
	return (bench_now() - begin) / (double)n;
}

/* 0: there is no such side. */
static double run_side(unsigned side, struct machine machines[2], const struct bench_job *job)
{
	struct bench_result result = { 0 };

	switch (side) {
	case OURS:
	case LAYERS:
		return run_job(machines[side].sides, job).ns;
	case PAGES:
		return run_pages(machines[0].sides[1].task, job->count < 100000 ? job->count : 100000);
	default:
		rival_run((int)side - FIRST_RIVAL, job, &result);
		return result.ns;
	}
}

static void run_lap(struct machine machines[2], const struct bench_job *job, const char *cache,
		    struct bench_race *race, double *counts)
{
	for (unsigned side = 0; side < FIRST_RIVAL + NR_RIVALS; side++) {
		if (side == OURS)
			count(machines[0].m, cache, -1, counts);
		race->ns[side][race->rounds] = run_side(side, machines, job);
		race->ratio[side][race->rounds] = race->ns[side][race->rounds] / race->ns[OURS][race->rounds];
		if (side == OURS)
			count(machines[0].m, cache, 1, counts);
	}
	race->rounds++;
}

static void print_heading(void)
{
	printf("\n%-36s %7s %7s %7s %8s %6s", "ns an object", "ours", "p10", "p90", "layers", "page");
	for (int i = 0; i < NR_RIVALS; i++)
		printf(" %10s", rival_names[i]);
	printf(" %6s %6s %4s %8s %8s\n", "ratio", "asked", "met", "stock", "slabs");
}

static double best_rival(const struct bench_race *race)
{
	double best = 0;

	for (unsigned side = FIRST_RIVAL; side < FIRST_RIVAL + NR_RIVALS; side++) {
		double ns = bench_race_quantile(race, side, 50);

		if (ns > 0 && (best <= 0 || ns < best))
			best = ns;
	}
	return best;
}

static void print_asked(double value, double asked)
{
	if (asked <= 0)
		printf(" %6s %4s", "-", "-");
	else
		printf(" %6.4g %4s", asked, quick ? "-" : value <= asked ? "yes" : "no");
}

static void print_row(const struct row *row, const struct bench_race *race, const double *counts)
{
	double ours = bench_race_quantile(race, OURS, 50), best = best_rival(race);
	double objects = (double)row->job.count * race->rounds * (row->job.kind == BENCH_THREADS ? 2 : 1);

	printf("%-36s %7.2f %7.2f %7.2f %8.1f %6.2f", row->name, ours, bench_race_quantile(race, OURS, 10),
	       bench_race_quantile(race, OURS, 90), bench_race_quantile(race, LAYERS, 50),
	       bench_race_quantile(race, PAGES, 50));
	for (int i = 0; i < NR_RIVALS; i++)
		if (rival_runs(i))
			printf(" %10.1f", bench_race_quantile(race, FIRST_RIVAL + (unsigned)i, 50));
		else
			printf(" %10s", "absent");
	if (best > 0)
		printf(" %6.2f", ours / best);
	else
		printf(" %6s", "-");
	print_asked(ours, row->asked);
	printf(" %8.3f %8.3f\n", 1000 * (counts[STOCK_GET] + counts[STOCK_PUT]) / objects,
	       1000 * counts[NEW_SLABS] / objects);
	fflush(stdout);
}

static void bench_row(struct machine machines[2], const struct row *row)
{
	struct bench_race race = { .rounds = 0 };
	double counts[NR_COUNTERS] = { 0 };
	struct bench_job job = row->job;
	struct row run = *row;
	char cache[64];

	snprintf(cache, sizeof(cache), row->by_size ? "kmalloc-%zu%s" : "bench-%zu%s",
		 job.bytes < 1024 ? job.bytes : job.bytes / 1024, job.bytes < 1024 ? "" : "k");
	if (quick)
		job.count = job.kind == BENCH_HANDOFF ? BENCH_HANDOFF_BATCH : 4000;
	for (int i = 0; i < 2 && !row->by_size; i++)
		make_cache(&machines[i], cache, job.bytes);
	if (!quick) {
		run_lap(machines, &job, cache, &race, counts); /* warm up */
		race.rounds = 0;
		memset(counts, 0, sizeof(counts));
	}
	for (unsigned lap = 0; lap < (quick ? 1 : 31); lap++)
		run_lap(machines, &job, cache, &race, counts);
	bench_race_finish(&race);
	run.job = job;
	print_row(&run, &race, counts);
	for (int i = 0; i < 2 && !row->by_size; i++)
		end_cache(&machines[i]);
}

static void bench_rows(const char *only)
{
	struct machine machines[2];
	bool headed = false;

	start(&machines[0], "topology=1G:cpus=2");
	start(&machines[1], "topology=1G:cpus=2,tune/slab_sheaves=0");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (only && !strstr(rows[i].name, only))
			continue;
		if (!headed)
			print_heading();
		headed = true;
		bench_row(machines, &rows[i]);
	}
	for (int i = 0; i < 2; i++)
		memfs_destroy(machines[i].m);
}

/* --- memory --- */

static double bench_resident(struct bench_side *side)
{
	side->slabs[side->looks++ & 3] = cache_number(side->m, "keep", "slabs") * MEMFS_PAGE_SIZE *
					 (double)(1u << (unsigned)cache_number(side->m, "keep", "order"));
	return read_number(side->m, "nodes/node0/resident") + bench_anonymous();
}

static void bench_purge(struct bench_side *side)
{
	memfs_cache_shrink(side->m, side->cache);
	memfs_drain(side->m, -1);
	put_file(side->m, "alloc/trim", "1");
}

static void print_memory(const char *name, const double *values, double asked)
{
	printf("%-36s %9.4f", name, values[0]);
	for (int i = 0; i < NR_RIVALS; i++)
		if (rival_runs(i))
			printf(" %10.4f", values[1 + i]);
		else
			printf(" %10s", "absent");
	print_asked(values[0], asked);
	printf("\n");
}

#define KEPT_BYTES (61u << 20)

static void keep_objects(size_t bytes, double asked)
{
	struct bench_job job = { BENCH_KEEP, 0, 0, (quick ? 1u << 20 : KEPT_BYTES) / bytes, bytes };
	double held[1 + NR_RIVALS], kept[1 + NR_RIVALS], purged[1 + NR_RIVALS];
	double live = (double)(job.count * bytes);
	struct machine machine;
	char name[64];

	start(&machine, "topology=256M:cpus=2");
	make_cache(&machine, "keep", bytes);
	rivals_start();
	for (int i = 0; i <= NR_RIVALS; i++) {
		struct bench_result result = { 0 };

		if (i == 0)
			result = run_job(machine.sides, &job);
		else
			rival_run(i - 1, &job, &result);
		held[i] = result.held / live;
		kept[i] = result.kept / MIB;
		purged[i] = result.purged / MIB;
	}
	snprintf(name, sizeof(name), "resident a live byte, %zu B", bytes);
	print_memory(name, held, asked);
	print_memory("  MiB after all were freed", kept, 0);
	printf("%-36s %9.4f\n", "    of them in slabs", machine.sides[1].slabs[2] / MIB);
	print_memory("  MiB after shrink and trim", purged, 5);
	rivals_stop();
	end_cache(&machine);
	memfs_destroy(machine.m);
}

static void bench_memory(void)
{
	printf("\n%-36s %9s", "61 MiB of objects, all written", "ours");
	for (int i = 0; i < NR_RIVALS; i++)
		printf(" %10s", rival_names[i]);
	printf(" %6s %4s\n", "asked", "met");
	keep_objects(64, 1.01);
	keep_objects(192, 1.005);
}

/* --- the seed: searches and how often a list is looked at in them --- */

static const char one_node[] = "node 0 cpus 0 zones DMA=16M,DMA32=112M,Normal=128M\n";
static const char four_nodes[] = "node 0 cpus 0 zones DMA=16M,DMA32=112M,Normal=128M\n"
				 "node 1 cpus 1 zones Normal=256M\n"
				 "node 2 cpus 2 zones Normal=256M\n"
				 "node 3 cpus 3 zones Normal=256M\n";

#define MOST_NODES 4
#define SEED_BYTES 256
#define SEED_OBJECTS 40000u
#define NR_SKIPS 3

static const char *const skips[NR_SKIPS] = { "none", "last", "visited" };

struct seed {
	const char *name, *topology;
	unsigned nodes, sheaves;
	bool mixed; /* else objects are only taken */
	const char *published;
};

static const struct seed seeds[] = {
	{ "one node, growing", one_node, 1, 0, false, "1:3 -> 1:0" },
	{ "one node, mixed", one_node, 1, 0, true, "1:3 -> 1:0" },
	{ "one node, mixed, sheaves", one_node, 1, 1, true, "" },
	{ "four nodes, growing", four_nodes, 4, 0, false, "1:5.8 -> 1:2.5" },
	{ "four nodes, mixed", four_nodes, 4, 0, true, "1:5.8 -> 1:2.5" },
	{ "four nodes, mixed, sheaves", four_nodes, 4, 1, true, "" },
};

struct seed_result {
	double allocations, searches, probes, hits, ns;
};

struct load {
	struct memfs_task *task[MOST_NODES]; /* one a node, on its CPU */
	struct memfs_cache *cache;
	unsigned nodes;
	void **held;
	size_t n;
	double allocations, operations;
};

static struct memfs *seed_machine(const struct seed *seed, const char *skip, struct load *load)
{
	char options[128], why[256] = "", name[16];
	int fd = memfd_create("topology", MFD_CLOEXEC);
	size_t length = strlen(seed->topology);
	struct memfs *m;

	if (fd < 0 || write(fd, seed->topology, length) != (ssize_t)length)
		die("topology", "cannot be written");
	snprintf(options, sizeof(options),
		 "topology=@/proc/self/fd/%d,tune/slab_skip=%s,tune/slab_sheaves=%u", fd, skip,
		 seed->sheaves);
	if (memfs_create(options, &m, why, sizeof(why)))
		die(options, why);
	close(fd);
	for (unsigned i = 0; i < seed->nodes; i++) {
		snprintf(name, sizeof(name), "node%u", i);
		if (memfs_task_create(m, name, &load->task[i]) || memfs_task_set_cpu(load->task[i], (int)i))
			die(name, "no task");
	}
	if (memfs_cache_create(m, "seed", SEED_BYTES, 0, MEMFS_SLAB_NO_MERGE, NULL, &load->cache))
		die("seed", "no cache");
	load->nodes = seed->nodes;
	return m;
}

static void take(struct load *load, unsigned node)
{
	void *object = memfs_cache_alloc(load->task[node], load->cache, MEMFS_GFP_KERNEL);

	if (!object)
		die("seed", "no memory");
	load->held[load->n++] = object;
	load->allocations++;
	load->operations++;
}

/* Any object, freed on any CPU. */
static void give(struct load *load, unsigned node, uint64_t *state)
{
	size_t i = bench_random_below(state, load->n);

	memfs_cache_free(load->task[node], load->cache, load->held[i]);
	load->held[i] = load->held[--load->n];
	load->operations++;
}

/*
 * The number of objects goes up and down between a tenth and all, slowly, while
 * most are exchanged; each CPU has its turn as the busy one for some time.
 */
static void mix(struct load *load, size_t operations)
{
	uint64_t state = 0x9e3779b97f4a7c15ull;
	bool rising = true;

	for (size_t i = 0; i < operations; i++) {
		unsigned busy = (unsigned)(i / 2000) % load->nodes;
		unsigned node = bench_random_below(&state, 4)
					? busy
					: (unsigned)bench_random_below(&state, load->nodes);
		bool up = bench_random_below(&state, 100) < (rising ? 60u : 40u);

		if (load->n <= SEED_OBJECTS / 10)
			rising = up = true;
		if (load->n == SEED_OBJECTS)
			rising = up = false;
		if (up)
			take(load, node);
		else
			give(load, node, &state);
	}
}

static void run_load(const struct seed *seed, struct load *load)
{
	if (seed->mixed)
		mix(load, quick ? 20000 : 20u * SEED_OBJECTS);
	else
		while (load->n < (quick ? 4000 : SEED_OBJECTS))
			take(load, (unsigned)(load->n / 100) % load->nodes);
}

static struct seed_result run_seed(const struct seed *seed, const char *skip, void **held)
{
	struct load load = { .held = held };
	struct memfs *m = seed_machine(seed, skip, &load);
	struct seed_result result = { 0 };
	double begin = bench_now();

	run_load(seed, &load);
	result.ns = (bench_now() - begin) / load.operations;
	result.allocations = load.allocations;
	result.searches = cache_number(m, "seed", "partial_search");
	result.probes = cache_number(m, "seed", "partial_probe");
	result.hits = cache_number(m, "seed", "partial_remote_hit");
	memfs_destroy(m);
	return result;
}

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

static void bench_seed(void)
{
	void **held = bench_alloc(SEED_OBJECTS, sizeof(*held));

	printf("\n%-28s %9s %7s %9s %9s %9s %9s %9s  %s\n", "searches : list looks", "searches", "hit",
	       "none", "last", "visited", "ns none", "visited", "published");
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		struct bench_race race = { .rounds = 0 };
		struct seed_result result[NR_SKIPS];

		for (; race.rounds < (quick ? 1 : 5); race.rounds++)
			for (unsigned skip = 0; skip < NR_SKIPS; skip++) {
				result[skip] = run_seed(&seeds[i], skips[skip], held);
				race.ns[skip][race.rounds] = result[skip].ns;
			}
		bench_race_finish(&race);
		printf("%-28s %8.3f%% %6.1f%%", seeds[i].name,
		       100 * share(result[2].searches, result[2].allocations),
		       100 * share(result[2].hits, result[2].searches));
		for (unsigned skip = 0; skip < NR_SKIPS; skip++)
			printf("    1:%-4.2f", share(result[skip].probes, result[skip].searches));
		printf(" %9.1f %9.1f  %s\n", bench_race_quantile(&race, 0, 50),
		       bench_race_quantile(&race, 2, 50), seeds[i].published);
		fflush(stdout);
	}
	free(held);
}

/* --- facts --- */

/* The rest of the line of @path that begins with @key, without what separates them. */
static void print_fact(const char *label, const char *path, const char *key)
{
	FILE *file = fopen(path, "r");
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		char *at = line + strlen(key);

		if (strncmp(line, key, strlen(key)))
			continue;
		printf("%s: %s", label, at + strspn(at, " \t:"));
		break;
	}
	if (file)
		fclose(file);
}

static void print_machine(void)
{
	struct utsname host;

	print_fact("CPU", "/proc/cpuinfo", "model name");
	if (!uname(&host))
		printf("kernel: %s %s\n", host.release, host.machine);
	printf("CPUs: %ld\n", sysconf(_SC_NPROCESSORS_ONLN));
	print_fact("load", "/proc/loadavg", "");
	for (int i = 0; i < NR_RIVALS; i++)
		if (!rival_runs(i))
			printf("%s: not installed\n", rival_names[i]);
}

int main(int argc, char **argv)
{
	const char *only = NULL;

	if (argc == 3 && !strcmp(argv[1], RIVAL_ARGUMENT))
		return rival_main(argv[2]);
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--quick"))
			quick = true;
		else
			only = argv[i];
	rivals_start();
	bench_pin(1);
	print_machine();
	bench_rows(only);
	rivals_stop();
	if (!only || strstr("memory", only))
		bench_memory();
	if (!only || strstr("seed", only))
		bench_seed();
	return 0;
}
