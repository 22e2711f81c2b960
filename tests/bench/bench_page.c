/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The page allocator through the public API, beside jemalloc, gperftools,
 * mimalloc and glibc in the same run: flat rows of medians and ratios, see README.md.
 * Nothing here fails because of a figure.  --quick: one short round of all.
 *
 * All sides alternate in chunks of about a millisecond, so that whatever else
 * the machine does meets them alike.  One thread runs on CPU 1; the threads of
 * the rows with two on CPU 0 and 1, which the topology has as well.
 */
#include "memfs.h"
#include "rivals.h"

#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

struct bench_object {
	memfs_pfn pfn;
};

struct bench_side {
	struct memfs_task *task;
};

static inline struct bench_object bench_take(struct bench_side *side, const struct bench_job *job)
{
	struct bench_object object;

	if (__builtin_expect(memfs_alloc_pages(side->task, MEMFS_GFP_KERNEL, job->order, &object.pfn) != 0,
			     0))
		abort();
	return object;
}

static inline void bench_give(struct bench_side *side, const struct bench_job *job,
			      struct bench_object object)
{
	memfs_free_pages(side->task, object.pfn, job->order);
}

#include "jobs.h"

static bool quick;

/* --- a machine of ours --- */

struct machine {
	struct memfs *m;
	struct bench_side sides[2];
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench_page: %s: %s\n", what, why);
	exit(2);
}

static void start(struct machine *machine, const char *topology)
{
	static const char *const names[2] = { "bench0", "bench1" };
	char options[128], why[256] = "";

	snprintf(options, sizeof(options), "topology=%s", topology);
	if (memfs_create(options, &machine->m, why, sizeof(why)))
		die(topology, why);
	for (int i = 0; i < 2; i++)
		if (memfs_task_create(machine->m, names[i], &machine->sides[i].task) ||
		    memfs_task_set_cpu(machine->sides[i].task, MEMFS_CPU_AUTO))
			die(names[i], "no task");
}

static void put_file(struct machine *machine, const char *path, const char *text)
{
	char reply[256];

	if (memfs_write(machine->m, path, text, strlen(text), reply, sizeof(reply)))
		die(path, reply);
}

static void set_policy(struct machine *machine, const char *policy)
{
	for (int i = 0; i < 2; i++)
		if (memfs_task_set_policy(machine->sides[i].task, policy))
			die(policy, "refused");
}

/* --- what the engine counted --- */

enum { ZONE_LOCK, REFILL, DRAIN, HIT, PAGES, NR_COUNTERS };

static const char *const counter_paths[NR_COUNTERS] = {
	"stats/counters/zone_lock", "stats/counters/pcp_refill", "stats/counters/pcp_drain",
	"stats/counters/pcp_hit",   "stats/counters/pgalloc",
};

static void read_counters(struct machine *machine, double *counters)
{
	char text[64];

	for (int i = 0; i < NR_COUNTERS; i++) {
		long n = memfs_read(machine->m, counter_paths[i], text, sizeof(text) - 1);

		if (n < 0 || n >= (long)sizeof(text))
			die(counter_paths[i], "unreadable");
		text[n] = '\0';
		counters[i] = strtod(text, NULL);
	}
}

/* --- one job on all sides --- */

#define MAX_ROUNDS 64
#define MAX_OURS 4

struct series {
	double ns[MAX_ROUNDS], take_ns[MAX_ROUNDS];
	size_t n;
};

/* One way of running ours; a knob set before each chunk and set back after. */
struct variant {
	const char *knob, *value, *back;
};

struct outcome {
	struct series ours[MAX_OURS];
	struct series rival[NR_RIVALS];
	double counters[NR_COUNTERS]; /* of all chunks of ours[0] */
	double blocks;
};

static void add(struct series *series, struct bench_result result)
{
	series->ns[series->n] = result.ns;
	series->take_ns[series->n++] = result.take_ns;
}

static void sort(struct series *series)
{
	bench_sort(series->ns, series->n);
	bench_sort(series->take_ns, series->n);
}

static double run_bulk(struct bench_side *side, const struct bench_job *job)
{
	memfs_pfn *pfns = bench_alloc(job->batch, sizeof(*pfns));
	double start_ns = bench_now(), span;

	for (size_t done = 0; done < job->count; done += job->batch) {
		if (memfs_alloc_bulk(side->task, MEMFS_GFP_KERNEL, job->batch, pfns) != job->batch)
			die("bulk", "short");
		memfs_free_bulk(side->task, job->batch, pfns);
	}
	span = bench_now() - start_ns;
	free(pfns);
	return span;
}

static struct bench_result run_ours(struct machine *machine, const struct bench_job *job)
{
	struct bench_result result = { 0 };

	if (job->kind != BENCH_BULK)
		return run_job(machine->sides, job);
	result.ns = run_bulk(&machine->sides[1], job) / (double)job->count;
	return result;
}

static struct bench_result run_variant(struct machine *machine, const struct bench_job *job,
				       const struct variant *variant)
{
	struct bench_job warm = *job;
	struct bench_result result;

	if (!variant->knob)
		return run_ours(machine, job);
	put_file(machine, variant->knob, variant->value);
	warm.count = job->batch > 1 ? job->batch * 4 : 1000;
	run_ours(machine, &warm);
	result = run_ours(machine, job);
	put_file(machine, variant->knob, variant->back);
	return result;
}

static void run_round(struct machine *machine, const struct bench_job *job, const struct variant *variants,
		      unsigned nr_variants, bool with_rivals, struct outcome *outcome)
{
	double before[NR_COUNTERS], after[NR_COUNTERS];
	struct bench_result result;

	for (unsigned i = 0; i < nr_variants; i++) {
		if (i == 0)
			read_counters(machine, before);
		add(&outcome->ours[i], run_variant(machine, job, &variants[i]));
		if (i)
			continue;
		read_counters(machine, after);
		for (int k = 0; k < NR_COUNTERS; k++)
			outcome->counters[k] += after[k] - before[k];
	}
	for (int i = 0; with_rivals && i < NR_RIVALS; i++)
		if (rival_run(i, job, &result))
			add(&outcome->rival[i], result);
}

static void run_rounds(struct machine *machine, struct bench_job job, unsigned rounds,
		       const struct variant *variants, unsigned nr_variants, bool with_rivals,
		       struct outcome *outcome)
{
	size_t unit = job.kind == BENCH_HANDOFF ? BENCH_HANDOFF_BATCH : job.batch ? job.batch : 256;

	if (quick) {
		rounds = 1;
		job.count = job.count < unit * 4 ? job.count : unit * 4;
	}
	if (!quick) {
		run_round(machine, &job, variants, nr_variants, with_rivals, outcome); /* warm up */
		*outcome = (struct outcome){ 0 };
	}
	while (rounds--)
		run_round(machine, &job, variants, nr_variants, with_rivals, outcome);
	for (unsigned i = 0; i < nr_variants; i++)
		sort(&outcome->ours[i]);
	for (int i = 0; i < NR_RIVALS; i++)
		sort(&outcome->rival[i]);
}

/* --- printing --- */

static double median(const struct series *series)
{
	return bench_quantile(series->ns, series->n, 50);
}

static void print_heading(void)
{
	printf("\n%-34s %7s %7s %7s %9s %10s %9s %9s %6s %6s %4s %8s %8s %8s\n", "ns a block", "ours", "p10",
	       "p90", "jemalloc", "gperftools", "mimalloc", "glibc", "ratio", "asked", "met", "zonelock",
	       "refills", "drains");
}

static void print_rival(const struct series *series, int rival, bool compared, int width)
{
	if (series->n)
		printf(" %*.1f", width, median(series));
	else
		printf(" %*s", width, !compared || rival_runs(rival) ? "-" : "absent");
}

static double best_rival(const struct outcome *outcome)
{
	double best = 0;

	for (int i = 0; i < NR_RIVALS; i++) {
		double ns = median(&outcome->rival[i]);

		if (ns > 0 && (best <= 0 || ns < best))
			best = ns;
	}
	return best;
}

static const char *met(double value, double asked)
{
	return asked <= 0 || quick ? "-" : value <= asked ? "yes" : "no";
}

static void print_row(const char *name, const struct outcome *outcome, double asked, bool compared)
{
	static const int widths[NR_RIVALS] = { 9, 10, 9, 9 };
	const struct series *ours = &outcome->ours[0];
	double best = best_rival(outcome),
	       pages = outcome->counters[PAGES] > 0 ? outcome->counters[PAGES] : 1;

	printf("%-34s %7.2f %7.2f %7.2f", name, median(ours), bench_quantile(ours->ns, ours->n, 10),
	       bench_quantile(ours->ns, ours->n, 90));
	for (int i = 0; i < NR_RIVALS; i++)
		print_rival(&outcome->rival[i], i, compared, widths[i]);
	if (best > 0)
		printf(" %6.2f", median(ours) / best);
	else
		printf(" %6s", "-");
	if (asked > 0)
		printf(" %6.1f", asked);
	else
		printf(" %6s", "-");
	printf(" %4s", met(median(ours), asked));
	printf(" %8.5f %8.5f %8.5f\n", outcome->counters[ZONE_LOCK] / pages,
	       outcome->counters[REFILL] / pages, outcome->counters[DRAIN] / pages);
	fflush(stdout);
}

static void print_ratio(const char *name, double value, const char *asked, bool is_met)
{
	printf("%-58s %8.3f  asked %-8s %s\n", name, value, asked,
	       asked[0] == '-' || quick ? ""
	       : is_met			? "yes"
					: "no");
	fflush(stdout);
}

/* --- the sections --- */

static const struct variant plain = { NULL, NULL, NULL };

struct row {
	const char *name;
	struct bench_job job;
	unsigned rounds;
	double asked;
	const char *policy; /* NULL: local */
	bool alone;	    /* rivals do not have it */
};

static const struct row rows[] = {
	{ "pair, order 0, local", { BENCH_PAIR, 0, 0, 100000, 0 }, 51, 6, NULL, false },
	{ "pair, weighted interleave 3:1",
	  { BENCH_PAIR, 0, 0, 100000, 0 },
	  51,
	  10,
	  "weighted interleave:0-1",
	  true },
	{ "pair, order 3", { BENCH_PAIR, 3, 0, 20000, 0 }, 31, 20, NULL, false },
	{ "pair, order 9", { BENCH_PAIR, 9, 0, 5000, 0 }, 21, 20, NULL, false },
	{ "64 singly, then freed", { BENCH_BATCH, 0, 64, 64000, 0 }, 31, 0, NULL, false },
	{ "512 singly, then freed", { BENCH_BATCH, 0, 512, 51200, 0 }, 31, 0, NULL, false },
	{ "bulk 64", { BENCH_BULK, 0, 64, 128000, 0 }, 51, 4, NULL, true },
	{ "bulk 512", { BENCH_BULK, 0, 512, 256000, 0 }, 51, 2.5, NULL, true },
	{ "bulk 64, weighted 3:1", { BENCH_BULK, 0, 64, 128000, 0 }, 31, 0, "weighted interleave:0-1", true },
	{ "bulk 512, weighted 3:1", { BENCH_BULK, 0, 512, 256000, 0 }, 31, 0, "weighted interleave:0-1", true },
	{ "2 threads, pair, order 0", { BENCH_THREADS, 0, 0, 200000, 0 }, 31, 0, NULL, false },
	{ "2 threads, freed by the other",
	  { BENCH_HANDOFF, 0, 0, 16 * BENCH_HANDOFF_BATCH, 0 },
	  21,
	  0,
	  NULL,
	  false },
};

static void bench_rows(struct machine *machine, const char *only)
{
	print_heading();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct outcome outcome = { 0 };

		if (only && !strstr(row->name, only))
			continue;
		set_policy(machine, row->policy ? row->policy : "local");
		run_rounds(machine, row->job, row->rounds, &plain, 1, !row->alone, &outcome);
		print_row(row->name, &outcome, row->asked, !row->alone);
	}
	set_policy(machine, "local");
}

static const struct size {
	const char *topology, *name, *fill_name;
	uint64_t mib;
	bool with_rivals;
} sizes[] = {
	{ "256M:cpus=2", "free all, random order, 256 MiB", "  fill 90 %, 256 MiB", 256, true },
	{ "1G:cpus=2", "free all, random order, 1 GiB", "  fill 90 %, 1 GiB", 1024, true },
	{ "4G:cpus=2", "free all, random order, 4 GiB", "  fill 90 %, 4 GiB", 4096, false },
	{ "16G:cpus=2", "free all, random order, 16 GiB", "  fill 90 %, 16 GiB", 16384, false },
};

#define NR_SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define RANDOM_ROUNDS 11
#define RANDOM_ASKED 16

/* One round of every size in turn; the last chunks give the ratio of the largest to the smallest. */
static double random_round(struct machine *machines, struct outcome *outcomes)
{
	double last[NR_SIZES];

	for (size_t i = 0; i < NR_SIZES; i++) {
		struct bench_job job = { BENCH_RANDOM, 0, 0, (size_t)sizes[i].mib * 256 * 9 / 10, 0 };

		if (quick)
			job.count = 1024;
		run_round(&machines[i], &job, &plain, 1, sizes[i].with_rivals, &outcomes[i]);
		last[i] = outcomes[i].ours[0].ns[outcomes[i].ours[0].n - 1];
	}
	return last[NR_SIZES - 1] / last[0];
}

static void print_size(const struct size *size, struct outcome *outcome)
{
	struct series *ours = &outcome->ours[0];

	sort(ours);
	for (int i = 0; i < NR_RIVALS; i++)
		sort(&outcome->rival[i]);
	print_row(size->name, outcome, RANDOM_ASKED, size->with_rivals);
	printf("%-34s %7.2f %7.2f %7.2f\n", size->fill_name, bench_quantile(ours->take_ns, ours->n, 50),
	       bench_quantile(ours->take_ns, ours->n, 10), bench_quantile(ours->take_ns, ours->n, 90));
}

static void bench_random_free(void)
{
	static struct outcome outcomes[NR_SIZES];
	double ratios[RANDOM_ROUNDS], flat;
	struct machine machines[NR_SIZES];
	unsigned rounds = quick ? 1 : RANDOM_ROUNDS;

	for (size_t i = 0; i < NR_SIZES; i++)
		start(&machines[i], sizes[i].topology);
	random_round(machines, outcomes); /* warm up */
	memset(outcomes, 0, sizeof(outcomes));
	for (unsigned round = 0; round < rounds; round++)
		ratios[round] = random_round(machines, outcomes);
	print_heading();
	for (size_t i = 0; i < NR_SIZES; i++) {
		print_size(&sizes[i], &outcomes[i]);
		memfs_destroy(machines[i].m);
	}
	bench_sort(ratios, rounds);
	flat = bench_quantile(ratios, rounds, 50);
	print_ratio("free all, random order: 16 GiB over 256 MiB", flat, "<= 1.2", flat <= 1.2);
}

static const struct variant numa[] = { { "tune/numa", "1", "1" }, { "tune/numa", "0", "1" } };
static const struct variant modes[] = { { "tune/pcp_mode", "rseq", "rseq" },
					{ "tune/pcp_mode", "trylock", "rseq" },
					{ "tune/pcp_mode", "off", "rseq" } };

/* The median of the ratios of neighbouring chunks: steadier than the ratio of medians. */
static double paired_ratio(struct machine *machine, const struct bench_job *job, unsigned rounds, double *ns)
{
	double ratios[4 * MAX_ROUNDS], first[4 * MAX_ROUNDS], second[4 * MAX_ROUNDS];

	for (unsigned i = 0; i < rounds; i++) {
		first[i] = run_variant(machine, job, &numa[i & 1]).ns;
		second[i] = run_variant(machine, job, &numa[!(i & 1)]).ns;
		ratios[i] = i & 1 ? second[i] / first[i] : first[i] / second[i];
		if (i & 1) {
			double swap = first[i];

			first[i] = second[i];
			second[i] = swap;
		}
	}
	bench_sort(ratios, rounds);
	bench_sort(first, rounds);
	bench_sort(second, rounds);
	ns[0] = bench_quantile(first, rounds, 50);
	ns[1] = bench_quantile(second, rounds, 50);
	return bench_quantile(ratios, rounds, 50);
}

static void bench_knobs(struct machine *machine)
{
	struct bench_job job = { BENCH_PAIR, 0, 0, quick ? 100 : 200000, 0 };
	double ns[2], ratio = paired_ratio(machine, &job, quick ? 2 : 4 * MAX_ROUNDS, ns);
	struct outcome outcome = { 0 };
	char name[96];

	snprintf(name, sizeof(name), "pair, order 0: numa=1 (%.2f ns) over numa=0 (%.2f ns)", ns[0], ns[1]);
	printf("\n");
	print_ratio(name, ratio, "<= 1.05", ratio <= 1.05);
	run_rounds(machine, job, 31, modes, 3, false, &outcome);
	for (int i = 1; i < 3; i++) {
		snprintf(name, sizeof(name), "pair, order 0: pcp_mode=%s (%.2f ns) over rseq (%.2f ns)",
			 modes[i].value, median(&outcome.ours[i]), median(&outcome.ours[0]));
		print_ratio(name, median(&outcome.ours[i]) / median(&outcome.ours[0]), "-", true);
	}
}

/* Free 2 MiB blocks by buddyinfo: the counts of the two highest orders. */
static uint64_t free_2m_blocks(struct machine *machine)
{
	uint64_t counts[MEMFS_MAX_PAGE_ORDER + 1] = { 0 };
	char text[512], *at;
	long n = memfs_read(machine->m, "stats/buddyinfo", text, sizeof(text) - 1);

	if (n < 0 || n >= (long)sizeof(text))
		die("stats/buddyinfo", "unreadable");
	text[n] = '\0';
	at = strstr(text, "Normal");
	if (!at)
		die("stats/buddyinfo", "no zone Normal");
	at += strlen("Normal");
	for (int order = 0; order <= MEMFS_MAX_PAGE_ORDER; order++)
		counts[order] = strtoull(at, &at, 10);
	return counts[9] + 2 * counts[10];
}

static void churn(struct bench_side *side, struct bench_object *held, size_t n, unsigned rounds)
{
	const struct bench_job single = { .kind = BENCH_PAIR };
	uint64_t state = 0x9e3779b97f4a7c15ull;

	for (unsigned round = 0; round < rounds; round++) {
		for (size_t i = n; i > n - n / 10; i--) {
			size_t j = bench_random_below(&state, i);
			struct bench_object object = held[j];

			held[j] = held[i - 1];
			bench_give(side, &single, object);
		}
		for (size_t i = n - n / 10; i < n; i++)
			held[i] = bench_take(side, &single);
	}
}

static void bench_churn(void)
{
	static const unsigned levels[] = { 25, 50, 75, 90 };
	const struct bench_job single = { .kind = BENCH_PAIR };
	const size_t pages = 262144;
	struct bench_object *held = bench_alloc(pages, sizeof(*held));

	printf("\n");
	for (size_t level = 0; level < sizeof(levels) / sizeof(levels[0]); level++) {
		size_t n = pages * levels[level] / 100;
		uint64_t ideal = (pages - n) / 512, left;
		struct machine machine;
		char name[96];

		start(&machine, "1G:cpus=2");
		for (size_t i = 0; i < n; i++)
			held[i] = bench_take(&machine.sides[1], &single);
		churn(&machine.sides[1], held, n, quick ? 1 : 100);
		memfs_drain(machine.m, -1);
		left = free_2m_blocks(&machine);
		snprintf(name, sizeof(name),
			 "free 2 MiB blocks after churn, %u %% full (%" PRIu64 " of %" PRIu64 ")",
			 levels[level], left, ideal);
		print_ratio(name, (double)left / (double)ideal, ">= 0.95",
			    (double)left >= 0.95 * (double)ideal);
		memfs_destroy(machine.m);
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
	print_fact("memory", "/proc/meminfo", "MemTotal");
	print_fact("load", "/proc/loadavg", "");
	for (int i = 0; i < NR_RIVALS; i++)
		if (!rival_runs(i))
			printf("%s: not installed\n", rival_names[i]);
}

static void print_working_set(struct machine *machine, const char *when)
{
	char text[64] = "";

	memfs_read(machine->m, "nodes/node0/resident", text, sizeof(text) - 1);
	text[strcspn(text, "\n")] = '\0';
	printf("arena pages resident, node 0, %s: %s bytes\n", when, text);
	print_fact("  the whole process", "/proc/self/status", "VmRSS");
}

int main(int argc, char **argv)
{
	const char *only = NULL;
	struct machine machine;

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
	start(&machine, "2x1G:cpus=2");
	put_file(&machine, "weights/node0", "3");
	print_working_set(&machine, "before");
	bench_rows(&machine, only);
	if (!only)
		bench_knobs(&machine);
	if (!only || strstr("random", only))
		bench_random_free();
	if (!only || strstr("churn", only))
		bench_churn();
	printf("\n");
	print_working_set(&machine, "after");
	memfs_destroy(machine.m);
	rivals_stop();
	return 0;
}
