/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rivals' processes and their side of the jobs: malloc and free.
 * One struct bench_job goes in, one struct bench_result comes out.  The loops
 * find in job->bytes what to ask malloc for, of jobs in pages as well.
 */
#include "rivals.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE_BYTES 4096u

struct bench_object {
	void *at;
};

struct bench_side {
	int unused;
};

static inline struct bench_object bench_take(struct bench_side *side, const struct bench_job *job)
{
	struct bench_object object = { malloc(job->bytes) };

	(void)side;
	__asm__ volatile("" : "+r"(object.at) : : "memory"); /* a pair must not be optimised away */
	if (__builtin_expect(!object.at, 0))
		abort();
	return object;
}

static inline void bench_give(struct bench_side *side, const struct bench_job *job,
			      struct bench_object object)
{
	(void)side, (void)job;
	free(object.at);
}

#define BENCH_KEEPS
#include "jobs.h"

static double bench_resident(struct bench_side *side)
{
	(void)side;
	return bench_anonymous();
}

/* Whichever of these the library that was preloaded has, but for the C library's own. */
static void bench_purge(struct bench_side *side)
{
	int (*mallctl)(const char *, void *, size_t *, void *, size_t) = dlsym(RTLD_DEFAULT, "mallctl");
	void (*release)(void) = dlsym(RTLD_DEFAULT, "MallocExtension_ReleaseFreeMemory");
	void (*collect)(bool) = dlsym(RTLD_DEFAULT, "mi_collect");

	(void)side;
	if (mallctl) {
		mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
		mallctl("arena.4096.purge", NULL, NULL, NULL, 0); /* all arenas */
	} else if (release) {
		release();
	} else if (collect) {
		collect(true);
	} else {
		malloc_trim(0);
	}
}

const char *const rival_names[NR_RIVALS] = { "jemalloc", "gperftools", "mimalloc", "glibc" };

/* What may be preloaded for each, best first; "" needs nothing. */
static const char *const libraries[NR_RIVALS][2] = {
	{ "libjemalloc.so.2", NULL },
	{ "libtcmalloc_minimal.so.4", "libtcmalloc.so.4" },
	{ "libmimalloc.so.2", NULL },
	{ "", NULL },
};

static struct rival {
	pid_t pid; /* 0: not running */
	int to, from;
} rivals[NR_RIVALS];

/* --- in the rival's process --- */

/* malloc really comes from the library that was asked for. */
static bool is_loaded(const char *library)
{
	void *symbol = dlsym(RTLD_DEFAULT, "malloc");
	Dl_info info;

	return !library[0] || (symbol && dladdr(symbol, &info) && strstr(info.dli_fname, library));
}

static size_t bytes_of(const struct bench_job *job)
{
	size_t pages = job->kind == BENCH_PAIR && job->batch ? job->batch : (size_t)1 << job->order;

	return job->bytes ? job->bytes : pages * PAGE_BYTES;
}

int rival_main(const char *library)
{
	struct bench_side sides[2] = { { 0 }, { 0 } };
	bool loaded = is_loaded(library);
	struct bench_job job;

	bench_pin(1);
	if (write(STDOUT_FILENO, &loaded, sizeof(loaded)) != sizeof(loaded) || !loaded)
		return 1;
	while (read(STDIN_FILENO, &job, sizeof(job)) == sizeof(job)) {
		struct bench_result result;

		job.bytes = bytes_of(&job);
		result = run_job(sides, &job);
		if (write(STDOUT_FILENO, &result, sizeof(result)) != sizeof(result))
			return 1;
	}
	return 0;
}

/* --- in the benchmark's --- */

static void become_rival(const char *library, const int *to, const int *from)
{
	int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);

	dup2(to[0], STDIN_FILENO);
	dup2(from[1], STDOUT_FILENO);
	if (library[0]) {
		dup2(quiet, STDERR_FILENO); /* the loader complains about a library that is not there */
		setenv("LD_PRELOAD", library, 1);
	}
	execl("/proc/self/exe", "rival", RIVAL_ARGUMENT, library, (char *)NULL);
	_exit(127);
}

static bool start(struct rival *rival, const char *library)
{
	int to[2], from[2];
	bool loaded = false;

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		exit(2);
	rival->pid = fork();
	if (rival->pid == 0)
		become_rival(library, to, from);
	close(to[0]);
	close(from[1]);
	rival->to = to[1];
	rival->from = from[0];
	return rival->pid > 0 && read(rival->from, &loaded, sizeof(loaded)) == sizeof(loaded) && loaded;
}

static void stop(struct rival *rival)
{
	close(rival->to);
	close(rival->from);
	if (rival->pid > 0)
		waitpid(rival->pid, NULL, 0);
	rival->pid = 0;
}

void rivals_start(void)
{
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < NR_RIVALS; i++)
		for (int k = 0; k < 2 && libraries[i][k] && !rivals[i].pid; k++)
			if (!start(&rivals[i], libraries[i][k]))
				stop(&rivals[i]);
}

bool rival_runs(int rival)
{
	return rivals[rival].pid != 0;
}

bool rival_run(int rival, const struct bench_job *job, struct bench_result *result)
{
	struct rival *r = &rivals[rival];

	if (!r->pid)
		return false;
	if (write(r->to, job, sizeof(*job)) == sizeof(*job) &&
	    read(r->from, result, sizeof(*result)) == sizeof(*result))
		return true;
	stop(r);
	return false;
}

void rivals_stop(void)
{
	for (int i = 0; i < NR_RIVALS; i++)
		if (rivals[i].pid)
			stop(&rivals[i]);
}
