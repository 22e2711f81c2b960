/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranges through the public API, beside mmap, malloc and the host's own floor
 * in the same run: flat rows of medians and ratios, see README.md.  Nothing here
 * fails because of a figure.  --quick: one short round of all.
 *
 * What is compared alternates in chunks, so that whatever else the machine does
 * meets all sides alike.  Sides that differ in a knob are instances of their
 * own: neither finds the lists as the other has left them.
 */
#include "memfs.h"
#include "rivals.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

#define PAGE ((size_t)MEMFS_PAGE_SIZE)
#define LAZY_PAGES 16384u /* the default of vmalloc_lazy_max with two CPUs */

static bool quick;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench_vmalloc: %s: %s\n", what, why);
	exit(2);
}

/* --- machines of ours --- */

struct machine {
	struct memfs *m;
	struct memfs_task *task;
};

struct knob {
	const char *name, *value;
};

static void put_file(const struct machine *machine, const char *path, const char *text)
{
	char reply[256];

	if (memfs_write(machine->m, path, text, strlen(text), reply, sizeof(reply)))
		die(path, reply);
}

/* The list of knobs ends with one without name; NULL: none. */
static void start(struct machine *machine, const char *topology, const struct knob *knobs)
{
	char text[128], why[256] = "";

	snprintf(text, sizeof(text), "topology=%s", topology);
	if (memfs_create(text, &machine->m, why, sizeof(why)))
		die(topology, why);
	if (memfs_task_create(machine->m, "bench", &machine->task) ||
	    memfs_task_set_cpu(machine->task, MEMFS_CPU_AUTO))
		die(topology, "no task");
	for (; knobs && knobs->name; knobs++) {
		snprintf(text, sizeof(text), "tune/vmalloc_%s", knobs->name);
		put_file(machine, text, knobs->value);
	}
}

static void read_file(const struct machine *machine, const char *path, char *text, size_t size)
{
	long n = memfs_read(machine->m, path, text, size - 1);

	if (n < 0 || n >= (long)size)
		die(path, "unreadable");
	text[n] = '\0';
}

static double counter(const struct machine *machine, const char *name)
{
	char path[96], text[64];

	snprintf(path, sizeof(path), "stats/counters/%s", name);
	read_file(machine, path, text, sizeof(text));
	return strtod(text, NULL);
}

/* --- the work of one chunk --- */

enum reach { UNTOUCHED, TOUCH, POPULATE };

struct work {
	size_t pages;	  /* of one range */
	size_t count;	  /* ranges in a chunk; 0: about a millisecond's, but */
	size_t least;	  /* not fewer */
	enum reach reach; /* what is done with a range in between */
	bool held;	  /* all are made, then all freed, then purged; else each is freed at once */
};

struct side {
	double (*run)(const struct side *side, const struct work *work); /* ns a range */
	struct machine *machine;
	int rival;
};

static inline void reach(char *at, const struct work *work)
{
	if (work->reach == TOUCH)
		for (size_t i = 0; i < work->pages; i++)
			((volatile char *)at)[i * PAGE] = 1;
	else if (work->reach == POPULATE && madvise(at, work->pages * PAGE, MADV_POPULATE_READ))
		die("MADV_POPULATE_READ", strerror(errno));
}

static inline void *make(const struct machine *machine, size_t pages)
{
	void *at = memfs_vmalloc(machine->task, pages * PAGE);

	if (__builtin_expect(!at, 0))
		die("memfs_vmalloc", strerror(errno));
	return at;
}

static double run_held(const struct side *side, const struct work *work)
{
	void **held = bench_alloc(work->count, sizeof(*held));
	double begin, span;

	for (size_t i = 0; i < work->count; i++)
		((void *volatile *)held)[i] = held; /* so that its page faults are nobody's */
	begin = bench_now();
	for (size_t i = 0; i < work->count; i++) {
		held[i] = make(side->machine, work->pages);
		reach(held[i], work);
	}
	for (size_t i = 0; i < work->count; i++)
		memfs_vfree(side->machine->task, held[i]);
	memfs_vpurge(side->machine->m);
	span = bench_now() - begin;
	free(held);
	return span / (double)work->count;
}

/* What is still lazy at the end is paid for by this chunk and not by the next one. */
static double run_ours(const struct side *side, const struct work *work)
{
	double begin;

	if (work->held)
		return run_held(side, work);
	begin = bench_now();
	for (size_t i = 0; i < work->count; i++) {
		void *at = make(side->machine, work->pages);

		reach(at, work);
		memfs_vfree(side->machine->task, at);
	}
	if (work->count >= 16)
		memfs_vpurge(side->machine->m);
	return (bench_now() - begin) / (double)work->count;
}

static double run_mmap(const struct side *side, const struct work *work)
{
	double begin = bench_now();

	(void)side;
	for (size_t i = 0; i < work->count; i++) {
		char *at = mmap(NULL, work->pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

		if (at == MAP_FAILED)
			die("mmap", strerror(errno));
		reach(at, work);
		munmap(at, work->pages * PAGE);
	}
	return (bench_now() - begin) / (double)work->count;
}

static double run_rival(const struct side *side, const struct work *work)
{
	struct bench_job job = { .kind = BENCH_PAIR, .batch = work->pages, .count = work->count };
	struct bench_result result;

	while ((size_t)1 << job.order < work->pages)
		job.order++;
	return rival_run(side->rival, &job, &result) ? result.ns : 0;
}

/* --- the host's floor: every second page of a file, one mapping a page, one seal --- */

static struct {
	char *window;
	size_t next; /* the pages take turns, as ours do while freed ranges are lazy */
	int fd;
} raw = { .fd = -1 };

static void raw_start(size_t pages)
{
	char *at;

	raw.fd = memfd_create("bench", MFD_CLOEXEC);
	if (raw.fd < 0 || ftruncate(raw.fd, (off_t)(2 * LAZY_PAGES * PAGE)))
		die("memfd", strerror(errno));
	at = mmap(NULL, 2 * LAZY_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, raw.fd, 0);
	raw.window = mmap(NULL, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED || raw.window == MAP_FAILED)
		die("mmap", strerror(errno));
	for (size_t i = 0; i < LAZY_PAGES; i++)
		at[2 * i * PAGE] = 1;
	munmap(at, 2 * LAZY_PAGES * PAGE);
}

static void raw_stop(size_t pages)
{
	munmap(raw.window, pages * PAGE);
	close(raw.fd);
}

static void raw_make(size_t pages)
{
	for (size_t i = 0; i < pages; i++) {
		void *at = mmap(raw.window + i * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
				raw.fd, (off_t)(2 * raw.next * PAGE));

		if (at == MAP_FAILED)
			die("mmap", strerror(errno));
		raw.next = raw.next + 1 < LAZY_PAGES ? raw.next + 1 : 0;
	}
}

static double run_raw(const struct side *side, const struct work *work)
{
	double begin = bench_now();

	(void)side;
	for (size_t i = 0; i < work->count; i++) {
		raw_make(work->pages);
		reach(raw.window, work);
		if (mmap(raw.window, work->pages * PAGE, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
			die("mmap", strerror(errno));
	}
	return (bench_now() - begin) / (double)work->count;
}

/* --- a race: chunk by chunk in turn --- */

#define MAX_SIDES (2 + NR_RIVALS)
#define LAPS 4 /* instances are made anew for each: where the host puts them makes some per cent */
#define LAP_ROUNDS (BENCH_RACE_ROUNDS / LAPS)
#define LAP_NS 1e9 /* a lap ends after about so long, but not before LEAST_ROUNDS */
#define LEAST_ROUNDS 3

static struct work chunk_of(const struct side *side, const struct work *work)
{
	struct work chunk = *work;
	double ns;

	if (quick)
		chunk.count = work->held ? 8 : 4;
	if (chunk.count)
		return chunk;
	chunk.count = 8;
	ns = side->run(side, &chunk); /* the first pays for much that the others find ready */
	ns = side->run(side, &chunk);
	chunk.count = ns * 20000 < 1e6 ? 20000 : ns * 16 > 1e6 ? 16 : (size_t)(1e6 / ns);
	if (chunk.count < work->least)
		chunk.count = work->least;
	return chunk;
}

static void round_of(const struct side *sides, unsigned nr, const struct work *chunks,
		     struct bench_race *race)
{
	unsigned round = race->rounds++;

	for (unsigned i = 0; i < nr; i++) {
		unsigned side = round & 1 ? nr - 1 - i : i;

		race->ns[side][round] = sides[side].run(&sides[side], &chunks[side]);
	}
	for (unsigned i = 0; i < nr; i++)
		race->ratio[i][round] = race->ns[i][round] / race->ns[0][round];
}

/* Adds its rounds to the race. */
static void run_lap(const struct side *sides, unsigned nr, const struct work *work, struct bench_race *race)
{
	struct work chunks[MAX_SIDES];
	unsigned before = race->rounds;
	double begin;

	for (unsigned i = 0; i < nr; i++)
		chunks[i] = chunk_of(&sides[i], work);
	round_of(sides, nr, chunks, race); /* warm up */
	race->rounds = before;
	begin = bench_now();
	do
		round_of(sides, nr, chunks, race);
	while (!quick && race->rounds < before + LAP_ROUNDS &&
	       (race->rounds < before + LEAST_ROUNDS || bench_now() - begin < LAP_NS));
}

static unsigned nr_laps(void)
{
	return quick ? 1 : LAPS;
}

/* --- printing --- */

static void print_judgement(double value, double asked, bool at_least)
{
	bool is_met = at_least ? value >= asked : value <= asked;

	if (asked <= 0)
		printf(" %9s %4s\n", "-", "-");
	else
		printf(" %s %6.2f %4s\n", at_least ? ">=" : "<=", asked, quick ? "-" : is_met ? "yes" : "no");
	fflush(stdout);
}

static void print_ours(const char *name, const struct bench_race *race)
{
	printf("%-40s %9.1f %9.1f %9.1f", name, bench_race_quantile(race, 0, 50),
	       bench_race_quantile(race, 0, 10), bench_race_quantile(race, 0, 90));
}

/* --- a: one contiguous range at its linear address --- */

static const struct size {
	const char *name;
	size_t pages;
	double asked_ns;   /* of a linear pair, untouched */
	double asked_gain; /* of large blocks over none */
	size_t count;	   /* of the seed's loop */
} sizes[] = {
	{ "20K", 5, 50, 0, 10000 },
	{ "200K", 50, 80, 1.28, 10000 },
	{ "2M", 512, 100, 1.35, 1000 },
};

#define NR_SIZES (sizeof(sizes) / sizeof(sizes[0]))
static void print_linear_row(const char *name, const struct bench_race *race, unsigned nr, double asked)
{
	double best = bench_race_quantile(race, 1, 50);

	print_ours(name, race);
	for (unsigned i = 1; i < MAX_SIDES; i++) {
		double ns = i < nr ? bench_race_quantile(race, i, 50) : 0;

		if (ns > 0)
			printf(" %10.1f", ns);
		else
			printf(" %10s", i < nr ? "absent" : "-");
		best = ns > 0 && ns < best ? ns : best;
	}
	printf(" %7.3f", bench_race_quantile(race, 0, 50) / best);
	print_judgement(bench_race_quantile(race, 0, 50), asked, false);
}

static void bench_linear(void)
{
	struct machine machine;
	struct side all[MAX_SIDES] = { { run_ours, &machine, 0 }, { run_mmap, NULL, 0 } };

	for (int i = 0; i < NR_RIVALS; i++)
		all[2 + i] = (struct side){ run_rival, NULL, i };
	start(&machine, "1G:cpus=2", NULL);
	printf("\n%-40s %9s %9s %9s %10s %10s %10s %10s %10s %7s %9s %4s\n", "linear, ns a range", "ours",
	       "p10", "p90", "mmap", "jemalloc", "gperftools", "mimalloc", "glibc", "ratio", "asked ns",
	       "met");
	for (enum reach how = UNTOUCHED; how <= TOUCH; how++)
		for (size_t i = 0; i < NR_SIZES; i++) {
			struct work work = { .pages = sizes[i].pages, .reach = how };
			unsigned nr = how == UNTOUCHED ? MAX_SIDES : 2;
			struct bench_race race;
			char name[64];

			snprintf(name, sizeof(name), "pair, %s%s", sizes[i].name,
				 how == TOUCH ? ", every page touched" : "");
			memset(&race, 0, sizeof(race));
			for (unsigned lap = 0; lap < nr_laps(); lap++)
				run_lap(all, nr, &work, &race);
			bench_race_finish(&race);
			print_linear_row(name, &race, nr, how == UNTOUCHED ? sizes[i].asked_ns : 0);
		}
	memfs_destroy(machine.m);
}

/* --- b: no two free pages are neighbours --- */

/* All single pages are taken and each second one given back; the host holds them all. */
static void fragment(const struct machine *machine, size_t pages)
{
	memfs_gfp gfp = MEMFS_GFP_NOWAIT | MEMFS___GFP_NORETRY | MEMFS___GFP_MEMALLOC;
	memfs_pfn *all = bench_alloc(pages, sizeof(*all));
	size_t n = 0;

	while (n < pages && !memfs_alloc_pages(machine->task, gfp, 0, &all[n])) {
		((volatile char *)memfs_page_address(machine->m, all[n]))[0] = 1;
		n++;
	}
	for (size_t i = 0; i < n; i++)
		if (all[i].v & 1)
			memfs_free_pages(machine->task, all[i], 0);
	memfs_drain(machine->m, -1);
	free(all);
}

static const struct knob mapped_lazy[] = { { "linear", "0" }, { NULL, NULL } };
static const struct knob mapped_at_once[] = { { "linear", "0" }, { "lazy_max", "0" }, { NULL, NULL } };

/* Two purges of the lazy side in a chunk. */
static size_t lazy_count(size_t pages)
{
	return 2 * LAZY_PAGES / (pages + 1);
}

static void print_scattered(const struct bench_race *race, const char *size, const char *how, bool is_asked)
{
	static const char *const names[] = { "lazy", "lazy_max=0" };

	for (unsigned i = 0; i < 2; i++) {
		printf("%-6s %-12s %-20s %12.0f %12.0f %12.0f %12.0f %7.3f", size, names[i], how,
		       bench_race_quantile(race, 1 + i, 50), bench_race_quantile(race, 1 + i, 10),
		       bench_race_quantile(race, 1 + i, 90), bench_race_quantile(race, 0, 50),
		       bench_race_ratio(race, 1 + i));
		print_judgement(bench_race_ratio(race, 1 + i), is_asked ? 1.1 : 0, false);
	}
}

static void scattered_lap(struct bench_race (*races)[NR_SIZES], unsigned lap)
{
	struct machine machines[2];
	struct side all[3] = { { run_raw, NULL, 0 },
			       { run_ours, &machines[0], 0 },
			       { run_ours, &machines[1], 0 } };

	for (unsigned i = 0; i < 2; i++) {
		unsigned which = (i + lap) & 1;

		start(&machines[which], "256M:cpus=2", which ? mapped_at_once : mapped_lazy);
		fragment(&machines[which], 65536);
	}
	for (enum reach how = UNTOUCHED; how <= POPULATE; how++)
		for (size_t i = 0; i < NR_SIZES; i++) {
			struct work work = { .pages = sizes[i].pages,
					     .least = lazy_count(sizes[i].pages),
					     .reach = how };

			run_lap(all, 3, &work, &races[how][i]);
		}
	for (unsigned i = 0; i < 2; i++)
		memfs_destroy(machines[i].m);
}

static void bench_scattered(void)
{
	static const char *const hows[] = { "untouched", "written", "populated" };
	static struct bench_race races[POPULATE + 1][NR_SIZES];

	raw_start(512);
	for (unsigned lap = 0; lap < nr_laps(); lap++)
		scattered_lap(races, lap);
	raw_stop(512);
	printf("\n%-40s %12s %12s %12s %12s %7s %9s %4s\n", "scattered pages, ns a range", "ours", "p10",
	       "p90", "floor", "ratio", "asked", "met");
	for (int how = POPULATE; how >= (int)UNTOUCHED; how--)
		for (size_t i = 0; i < NR_SIZES; i++) {
			bench_race_finish(&races[how][i]);
			print_scattered(&races[how][i], sizes[i].name, hows[how], how == POPULATE);
		}
}

/* --- c: large blocks against none --- */

static const struct setting {
	const char *name;
	struct knob on[4], off[4];
	bool is_asked;
} settings[] = {
	{ "as set by default", { { NULL, NULL } }, { { "large_order", "off" }, { NULL, NULL } }, true },
	{ "linear=0",
	  { { "linear", "0" }, { NULL, NULL } },
	  { { "large_order", "off" }, { "linear", "0" }, { NULL, NULL } },
	  false },
	{ "linear=0 lazy_max=0",
	  { { "linear", "0" }, { "lazy_max", "0" }, { NULL, NULL } },
	  { { "large_order", "off" }, { "linear", "0" }, { "lazy_max", "0" }, { NULL, NULL } },
	  false },
};

#define NR_SETTINGS (sizeof(settings) / sizeof(settings[0]))
static void print_gain(const char *name, const char *knobs, const struct bench_race *race, double asked)
{
	printf("%-26s %-20s %12.0f %12.0f %8.2f", name, knobs, bench_race_quantile(race, 0, 50),
	       bench_race_quantile(race, 1, 50), bench_race_ratio(race, 1));
	print_judgement(bench_race_ratio(race, 1), asked, true);
}

static void print_gain_heading(const char *what)
{
	printf("\n%-47s %12s %12s %8s %9s %4s\n", what, "large on", "off", "off/on", "asked", "met");
}

/* How many of @want ranges the side can hold at once. */
static size_t can_hold(const struct machine *machine, size_t pages, size_t want)
{
	void **held = bench_alloc(want, sizeof(*held));
	size_t n = 0;

	while (n < want && (held[n] = memfs_vmalloc(machine->task, pages * PAGE)))
		n++;
	for (size_t i = 0; i < n; i++)
		memfs_vfree(machine->task, held[i]);
	memfs_vpurge(machine->m);
	free(held);
	return n;
}

/* On and off as instances of their own, which of them first in turn. */
static void start_two(struct machine *machines, const char *topology, const struct setting *setting,
		      unsigned lap)
{
	for (unsigned i = 0; i < 2; i++) {
		unsigned which = (i + lap) & 1;

		start(&machines[which], topology, which ? setting->off : setting->on);
	}
}

/* As many as both sides can hold, less a little: the ranges are not cut alike each time. */
static void limit_held(const struct machine *machines, struct work *work)
{
	size_t want = work->count;

	for (unsigned i = 0; i < 2 && !quick; i++) {
		size_t n = can_hold(&machines[i], work->pages, work->count);

		work->count = n < work->count ? n : work->count;
	}
	if (work->count < want)
		work->count -= work->count / 16;
}

static void run_gain(const char *topology, const struct setting *setting, struct work *work,
		     struct bench_race *race)
{
	struct machine machines[2];
	const struct side sides[2] = { { run_ours, &machines[0], 0 }, { run_ours, &machines[1], 0 } };

	memset(race, 0, sizeof(*race));
	for (unsigned lap = 0; lap < nr_laps(); lap++) {
		start_two(machines, topology, setting, lap);
		if (work->held && lap == 0)
			limit_held(machines, work);
		run_lap(sides, 2, work, race);
		memfs_destroy(machines[0].m);
		memfs_destroy(machines[1].m);
	}
	bench_race_finish(race);
}

static void seed_row(const struct size *size, const struct setting *setting, bool held)
{
	struct work work = { .pages = size->pages, .count = size->count, .held = held };
	struct bench_race race;
	char name[64];

	run_gain("4G:cpus=2", setting, &work, &race);
	snprintf(name, sizeof(name), "%s x %zu%s%s", size->name, work.count, held ? " held" : "",
		 work.count < size->count ? " (budget)" : "");
	print_gain(name, setting->name, &race, setting->is_asked ? size->asked_gain : 0);
}

static void bench_seed(void)
{
	print_gain_heading("the seed's rows, ns a range");
	for (size_t k = 0; k < NR_SETTINGS; k++)
		for (int held = 0; held < 2; held++)
			for (size_t i = NR_SIZES; i-- > 0;)
				seed_row(&sizes[i], &settings[k], held);
}

static void bench_sweep(void)
{
	static const size_t pages[] = { 1, 2, 4, 5, 8, 16, 50, 64, 200, 512, 2048 };

	print_gain_heading("pair by size, ns a range");
	for (size_t k = 0; k < NR_SETTINGS; k++)
		for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
			struct work work = { .pages = pages[i], .least = lazy_count(pages[i]) };
			struct bench_race race;
			char name[64];

			run_gain("1G:cpus=2", &settings[k], &work, &race);
			snprintf(name, sizeof(name), "%zu pages", pages[i]);
			print_gain(name, settings[k].name, &race, 0.97);
		}
}

/* --- d: what large blocks save the page allocator, and what they cost it --- */

static double calls_a_request(const struct knob *knobs, const struct size *size, bool held)
{
	struct machine machine;
	struct side side = { run_ours, &machine, 0 };
	struct work work = { .pages = size->pages, .count = quick ? 16 : 1000, .held = held };
	double calls;

	start(&machine, "4G:cpus=2", knobs);
	side.run(&side, &work);
	calls = counter(&machine, "vmalloc_buddy_calls") / counter(&machine, "vmalloc_requests");
	memfs_destroy(machine.m);
	return calls;
}

static void bench_calls(void)
{
	printf("\n%-47s %12s %12s\n", "calls of the page allocator a range", "large on", "off");
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < NR_SIZES; i++)
			for (int held = 0; held < 2; held++)
				printf("%-6s %-19s %-20s %12.3f %12.3f\n", sizes[i].name,
				       held ? "held" : "pair", settings[k].name,
				       calls_a_request(settings[k].on, &sizes[i], held),
				       calls_a_request(settings[k].off, &sizes[i], held));
}

/* The 2 MiB blocks of buddyinfo, and how many its pages could make at best. */
static void free_2m_blocks(const struct machine *machine, uint64_t *blocks, uint64_t *most)
{
	uint64_t counts[MEMFS_MAX_PAGE_ORDER + 1], pages = 0;
	char text[512], *at;

	read_file(machine, "stats/buddyinfo", text, sizeof(text));
	at = strstr(text, "Normal");
	if (!at)
		die("stats/buddyinfo", "no zone Normal");
	at += strlen("Normal");
	for (int order = 0; order <= MEMFS_MAX_PAGE_ORDER; order++) {
		counts[order] = strtoull(at, &at, 10);
		pages += counts[order] << order;
	}
	*blocks = counts[9] + 2 * counts[10];
	*most = pages / 512;
}

/* 1..256, every magnitude as often as any other. */
static size_t random_pages(uint64_t *state)
{
	size_t magnitude = (size_t)1 << bench_random_below(state, 8);

	return magnitude + bench_random_below(state, magnitude + 1);
}

/* @nr ranges; after seven of ten one at random is freed.  How many could not be made. */
static size_t churn(const struct machine *machine, size_t nr)
{
	void **held = bench_alloc(nr, sizeof(*held));
	uint64_t state = 0x9e3779b97f4a7c15ull;
	size_t n = 0, failed = 0;

	for (size_t i = 0; i < nr; i++) {
		void *at = memfs_vmalloc(machine->task, random_pages(&state) * PAGE);

		failed += !at;
		if (at)
			held[n++] = at;
		if (n && bench_random_below(&state, 10) < 7) {
			size_t j = bench_random_below(&state, n);

			memfs_vfree(machine->task, held[j]);
			held[j] = held[--n];
		}
	}
	free(held);
	return failed;
}

static void bench_churn(void)
{
	static const struct knob knobs[][3] = {
		{ { NULL, NULL } },
		{ { "large_order", "max" }, { NULL, NULL } },
		{ { "large_order", "off" }, { NULL, NULL } },
		{ { "linear", "0" }, { NULL, NULL } },
		{ { "large_order", "max" }, { "linear", "0" }, { NULL, NULL } },
		{ { "large_order", "off" }, { "linear", "0" }, { NULL, NULL } },
	};
	static const char *const names[] = { "bounded", "max", "off" };

	printf("\n%-47s %9s %9s %8s %9s\n", "2 MiB blocks after 10000 ranges, 30 % kept", "blocks", "at most",
	       "share", "refused");
	for (size_t i = 0; i < sizeof(knobs) / sizeof(knobs[0]); i++) {
		struct machine machine;
		uint64_t blocks, most;
		size_t failed;

		start(&machine, "1G:cpus=2", knobs[i]);
		failed = churn(&machine, quick ? 200 : 10000);
		memfs_vpurge(machine.m);
		memfs_drain(machine.m, -1);
		free_2m_blocks(&machine, &blocks, &most);
		printf("large_order=%-14s %-20s %9" PRIu64 " %9" PRIu64 " %8.3f %9zu\n", names[i % 3],
		       i < 3 ? "" : "linear=0", blocks, most, (double)blocks / (double)(most ? most : 1),
		       failed);
		fflush(stdout);
		memfs_destroy(machine.m);
	}
}

/* --- e: growth --- */

static const struct growth {
	const char *name, *topology;
	struct knob knobs[2];
	size_t held, held_pages;
} growths[] = {
	{ "linear, 1 of 20K held", "1G:cpus=2", { { NULL, NULL } }, 1, 5 },
	{ "linear, 100 of 20K held", "1G:cpus=2", { { NULL, NULL } }, 100, 5 },
	{ "linear, 10^4 of 20K held", "1G:cpus=2", { { NULL, NULL } }, 10000, 5 },
	{ "linear, 1 page held", "16G:cpus=2", { { NULL, NULL } }, 1, 1 },
	{ "linear, 10^6 single pages held", "16G:cpus=2", { { NULL, NULL } }, 1000000, 1 },
	{ "mapped, 1 of 20K held", "1G:cpus=2", { { "linear", "0" } }, 1, 5 },
	{ "mapped, 100 of 20K held", "1G:cpus=2", { { "linear", "0" } }, 100, 5 },
	{ "mapped, 10^4 of 20K held", "1G:cpus=2", { { "linear", "0" } }, 10000, 5 },
	{ "mapped, 25000 of 20K held", "1G:cpus=2", { { "linear", "0" } }, 25000, 5 },
};

/* Those that could be made stay until the end of the machine. */
static size_t hold(const struct machine *machine, size_t pages, size_t want)
{
	size_t n = 0;

	while (n < want && memfs_vmalloc(machine->task, pages * PAGE))
		n++;
	return n;
}

static void growth_row(const struct growth *growth)
{
	struct knob knobs[2] = { growth->knobs[0], { NULL, NULL } };
	struct work work = { .pages = 5, .least = lazy_count(5) };
	struct machine machine;
	struct side side = { run_ours, &machine, 0 };
	struct bench_race race = { .rounds = 0 };
	size_t held = 0;

	for (unsigned lap = 0; lap < nr_laps(); lap++) {
		start(&machine, growth->topology, knobs);
		held = hold(&machine, growth->held_pages, quick ? 1 : growth->held);
		run_lap(&side, 1, &work, &race);
		memfs_destroy(machine.m);
	}
	bench_race_finish(&race);
	print_ours(growth->name, &race);
	printf(" %9zu%s\n", held, held < growth->held && !quick ? " (budget)" : "");
	fflush(stdout);
}

static void bench_growth(void)
{
	printf("\n%-40s %9s %9s %9s %9s\n", "pair of 20K, ns a range", "ours", "p10", "p90", "held");
	for (size_t i = 0; i < sizeof(growths) / sizeof(growths[0]); i++)
		growth_row(&growths[i]);
}

/* --- all of them --- */

static const struct part {
	const char *name;
	void (*run)(void);
} parts[] = {
	{ "linear", bench_linear }, { "scattered", bench_scattered }, { "seed", bench_seed },
	{ "sweep", bench_sweep },   { "calls", bench_calls },	      { "churn", bench_churn },
	{ "growth", bench_growth },
};

int main(int argc, char **argv)
{
	const char *only = "";

	if (argc == 3 && !strcmp(argv[1], RIVAL_ARGUMENT))
		return rival_main(argv[2]);
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--quick"))
			quick = true;
		else
			only = argv[i];
	rivals_start();
	bench_pin(1);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(parts[i].name, only))
			parts[i].run();
	rivals_stop();
	return 0;
}
