/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The loops of bench.h's jobs.  A .c file that includes this has declared
 *
 *   struct bench_object    what is taken: a page number, a pointer
 *   struct bench_side      what a thread takes from
 *   bench_take(), bench_give()    inline, never failing
 *
 * so that both sides run the very same loops with nothing indirect in them.
 * One that defines BENCH_KEEPS before has declared for BENCH_KEEP also
 *
 *   bench_resident()    bytes that the host holds for this side just now
 *   bench_purge()       what the allocator offers to make that less
 */
#include "bench.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define BENCH_HANDOFF_BATCH 4096

static double run_pairs(struct bench_side *side, const struct bench_job *job)
{
	double start = bench_now();

	for (size_t i = 0; i < job->count; i++)
		bench_give(side, job, bench_take(side, job));
	return bench_now() - start;
}

static double run_batches(struct bench_side *side, const struct bench_job *job, struct bench_object *held)
{
	double start = bench_now();

	for (size_t done = 0; done < job->count; done += job->batch) {
		for (size_t i = 0; i < job->batch; i++)
			held[i] = bench_take(side, job);
		for (size_t i = 0; i < job->batch; i++)
			bench_give(side, job, held[i]);
	}
	return bench_now() - start;
}

static void shuffle_objects(struct bench_object *held, size_t n)
{
	uint64_t state = 88172645463325252ull;

	for (size_t i = n; i > 1; i--) {
		size_t j = bench_random_below(&state, i);
		struct bench_object object = held[j];

		held[j] = held[i - 1];
		held[i - 1] = object;
	}
}

/* The array is touched before, so that its page faults are nobody's. */
static struct bench_result run_random(struct bench_side *side, const struct bench_job *job)
{
	struct bench_object *held = bench_alloc(job->count, sizeof(*held));
	struct bench_result result = { 0 };
	double start;

	for (size_t i = 0; i < job->count; i++)
		((volatile char *)&held[i])[0] = 1;
	start = bench_now();
	for (size_t i = 0; i < job->count; i++)
		held[i] = bench_take(side, job);
	result.take_ns = (bench_now() - start) / (double)job->count;
	shuffle_objects(held, job->count);
	start = bench_now();
	for (size_t i = 0; i < job->count; i++)
		bench_give(side, job, held[i]);
	result.ns = (bench_now() - start) / (double)job->count;
	free(held);
	return result;
}

#ifdef BENCH_KEEPS
/* Bytes of the process's own anonymous memory; without stdio, which would take some. */
static double bench_anonymous(void)
{
	char text[4096], *at;
	int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, "Anonymous:");
	return at ? 1024 * strtod(at + strlen("Anonymous:"), NULL) : 0;
}

static double bench_resident(struct bench_side *side);
static void bench_purge(struct bench_side *side);

static struct bench_result run_keep(struct bench_side *side, const struct bench_job *job)
{
	struct bench_object *held = bench_alloc(job->count, sizeof(*held));
	struct bench_result result = { 0 };
	double before;

	for (size_t i = 0; i < job->count; i++)
		((volatile char *)&held[i])[0] = 1;
	before = bench_resident(side);
	for (size_t i = 0; i < job->count; i++) {
		held[i] = bench_take(side, job);
		memset(held[i].at, 1, job->bytes);
	}
	result.held = bench_resident(side) - before;
	for (size_t i = 0; i < job->count; i++)
		bench_give(side, job, held[i]);
	result.kept = bench_resident(side) - before;
	bench_purge(side);
	result.purged = bench_resident(side) - before;
	free(held);
	return result;
}
#endif

/* --- two threads --- */

struct bench_pair {
	const struct bench_job *job;
	struct bench_side *side[2];
	struct bench_object *buffer[2];
	pthread_barrier_t barrier;
};

struct bench_thread {
	struct bench_pair *pair;
	int cpu;
	double span;
};

static void *pairs_thread(void *arg)
{
	struct bench_thread *thread = arg;

	bench_pin(thread->cpu);
	pthread_barrier_wait(&thread->pair->barrier);
	thread->span = run_pairs(thread->pair->side[thread->cpu], thread->pair->job);
	return NULL;
}

/* Thread 0 fills one buffer while thread 1 empties the other. */
static void *handoff_thread(void *arg)
{
	struct bench_thread *thread = arg;
	struct bench_pair *pair = thread->pair;
	size_t steps = pair->job->count / BENCH_HANDOFF_BATCH;
	double cost = bench_clock_cost();

	bench_pin(thread->cpu);
	thread->span = 0;
	for (size_t step = 0; step <= steps; step++) {
		struct bench_object *buffer = pair->buffer[(step ^ (size_t)thread->cpu) & 1];
		double start = bench_now();

		for (size_t i = 0; thread->cpu == 0 && step < steps && i < BENCH_HANDOFF_BATCH; i++)
			buffer[i] = bench_take(pair->side[0], pair->job);
		for (size_t i = 0; thread->cpu == 1 && step > 0 && i < BENCH_HANDOFF_BATCH; i++)
			bench_give(pair->side[1], pair->job, buffer[i]);
		thread->span += bench_now() - start - cost;
		pthread_barrier_wait(&pair->barrier);
	}
	return NULL;
}

static double run_two(struct bench_side *sides, const struct bench_job *job, void *(*run)(void *))
{
	struct bench_pair pair = { .job = job, .side = { &sides[0], &sides[1] } };
	struct bench_thread threads[2];
	pthread_t ids[2];

	for (int i = 0; i < 2; i++)
		pair.buffer[i] = bench_alloc(BENCH_HANDOFF_BATCH, sizeof(struct bench_object));
	pthread_barrier_init(&pair.barrier, NULL, 2);
	for (int i = 0; i < 2; i++) {
		threads[i] = (struct bench_thread){ .pair = &pair, .cpu = i };
		if (pthread_create(&ids[i], NULL, run, &threads[i]))
			exit(2);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(ids[i], NULL);
	pthread_barrier_destroy(&pair.barrier);
	for (int i = 0; i < 2; i++)
		free(pair.buffer[i]);
	return threads[0].span + threads[1].span;
}

/* sides[0] and [1] belong to the threads of CPU 0 and 1; a job of one thread runs on sides[1]. */
static struct bench_result run_job(struct bench_side *sides, const struct bench_job *job)
{
	struct bench_result result = { 0 };
	struct bench_object *held;

	switch (job->kind) {
	case BENCH_PAIR:
		result.ns = run_pairs(&sides[1], job) / (double)job->count;
		break;
	case BENCH_BATCH:
		held = bench_alloc(job->batch, sizeof(*held));
		result.ns = run_batches(&sides[1], job, held) / (double)job->count;
		free(held);
		break;
	case BENCH_RANDOM:
		return run_random(&sides[1], job);
	case BENCH_THREADS:
		result.ns = run_two(sides, job, pairs_thread) / (2 * (double)job->count);
		break;
	case BENCH_HANDOFF:
		result.ns = run_two(sides, job, handoff_thread) / (double)job->count;
		break;
#ifdef BENCH_KEEPS
	case BENCH_KEEP:
		return run_keep(&sides[1], job);
#endif
	default:
		break;
	}
	return result;
}
