/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Restartable sequences: each one alone, many threads on few CPUs, and a visitor
 * from another CPU that shuts the data of its data.
 */
#include "unit.h"

#include "plat/rseq.h"

#include <pthread.h>
#include <sched.h>

#define ENTRIES 256u
#define MOST_CPUS 2
#define NR_THREADS 6
#define TOKENS 96u
#define ROUNDS 60000

struct cpu_data {
	uint32_t cpu; /* the owner word */
	uint32_t visits;
	struct mf_rseq_stack stack;
	uint32_t entry[ENTRIES];
} __attribute__((aligned(256)));

static int cpus[MOST_CPUS];
static unsigned nr_cpus;

static void find_cpus(void)
{
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < CPU_SETSIZE && nr_cpus < MOST_CPUS; cpu++)
		if (CPU_ISSET((unsigned)cpu, &set))
			cpus[nr_cpus++] = cpu;
}

/* The calling thread, on the first n of the CPUs found. */
static void bind_to(unsigned first, unsigned n)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (unsigned i = 0; i < n; i++)
		CPU_SET((unsigned)cpus[first + i], &set);
	CU_ASSERT_EQUAL_FATAL(sched_setaffinity(0, sizeof(set), &set), 0);
}

/* Empty, with room for @room entries. */
static void make_data(struct cpu_data *data, uint32_t cpu, uint32_t room)
{
	memset(data, 0, sizeof(*data));
	data->cpu = cpu;
	data->stack.top = data->stack.bottom = data->entry + ENTRIES;
	data->stack.limit = data->stack.top - room;
}

static uint32_t *top_of(const struct cpu_data *data)
{
	return __atomic_load_n(&data->stack.top, __ATOMIC_RELAXED);
}

/* A sequence that was interrupted says MISS and may simply be begun again. */
static enum mf_rseq_result push(struct cpu_data *data, uint32_t value)
{
	enum mf_rseq_result result = MF_RSEQ_MISS;

	for (int tries = 0; tries < 1000 && result == MF_RSEQ_MISS; tries++)
		result = mf_rseq_push(mf_rseq_offset(), &data->cpu, &data->stack, value);
	return result;
}

static enum mf_rseq_result pop(struct cpu_data *data, uint32_t *value)
{
	enum mf_rseq_result result = MF_RSEQ_MISS;

	for (int tries = 0; tries < 1000 && result == MF_RSEQ_MISS; tries++)
		result = mf_rseq_pop(mf_rseq_offset(), &data->cpu, &data->stack, value);
	return result;
}

/* From @old_top on, if *visits is @visits. */
static enum mf_rseq_result copy(struct cpu_data *data, uint32_t visits, uint32_t *old_top, uint32_t *new_top,
				uint32_t *to, const uint32_t *from, uint32_t count)
{
	enum mf_rseq_result result = MF_RSEQ_MISS;

	for (int tries = 0; tries < 1000 && result == MF_RSEQ_MISS; tries++)
		result = mf_rseq_copy(mf_rseq_offset(), &data->cpu, &data->visits, visits, &data->stack.top,
				      old_top, new_top, to, from, count);
	return result;
}

static enum mf_rseq_result shut(struct cpu_data *data)
{
	enum mf_rseq_result result = MF_RSEQ_MISS;

	for (int tries = 0; tries < 1000 && result == MF_RSEQ_MISS; tries++)
		result = mf_rseq_shut(&data->cpu);
	return result;
}

static void test_push_and_pop(void)
{
	static struct cpu_data data;
	uint32_t value = 99;

	bind_to(0, 1);
	CU_ASSERT_EQUAL(mf_rseq_cpu(), cpus[0]);
	CU_ASSERT_EQUAL(mf_rseq_cpu_at(mf_rseq_offset()), (unsigned)cpus[0]);
	CU_ASSERT_TRUE(mf_rseq_cpu_limit() > (unsigned)cpus[0]);
	make_data(&data, (uint32_t)cpus[0], 3);
	CU_ASSERT_EQUAL(pop(&data, &value), MF_RSEQ_EMPTY);
	CU_ASSERT_EQUAL(value, 99);
	for (uint32_t i = 1; i <= 3; i++)
		CU_ASSERT_EQUAL(push(&data, 10 * i), MF_RSEQ_DONE);
	CU_ASSERT_EQUAL(push(&data, 40), MF_RSEQ_EMPTY);
	/* It grows downwards from the end. */
	CU_ASSERT_PTR_EQUAL(data.stack.top, data.entry + ENTRIES - 3);
	CU_ASSERT_EQUAL(data.entry[ENTRIES - 1], 10);
	CU_ASSERT_EQUAL(data.entry[ENTRIES - 3], 30);
	CU_ASSERT_EQUAL(data.entry[ENTRIES - 4], 0);
	for (uint32_t i = 3; i >= 1; i--) {
		CU_ASSERT_EQUAL(pop(&data, &value), MF_RSEQ_DONE);
		CU_ASSERT_EQUAL(value, 10 * i);
	}
	CU_ASSERT_EQUAL(pop(&data, &value), MF_RSEQ_EMPTY);
	CU_ASSERT_PTR_EQUAL(data.stack.top, data.stack.bottom);
}

/* Shut, another CPU's, or visited meanwhile: nothing is stored. */
static void test_misses(void)
{
	static struct cpu_data data;
	uint32_t own_cpu = (uint32_t)cpus[0], value = 99, to[4] = { 0 }, *end = data.entry + ENTRIES;

	bind_to(0, 1);
	make_data(&data, MF_RSEQ_SHUT, 3);
	CU_ASSERT_EQUAL(push(&data, 1), MF_RSEQ_MISS);
	CU_ASSERT_EQUAL(pop(&data, &value), MF_RSEQ_MISS);
	CU_ASSERT_EQUAL(shut(&data), MF_RSEQ_MISS);
	CU_ASSERT_EQUAL(copy(&data, 0, end, end - 2, end - 2, to, 2), MF_RSEQ_MISS);
	data.cpu = own_cpu + 1;
	CU_ASSERT_EQUAL(push(&data, 1), MF_RSEQ_MISS);
	CU_ASSERT_EQUAL(pop(&data, &value), MF_RSEQ_MISS);
	CU_ASSERT_EQUAL(shut(&data), MF_RSEQ_MISS);
	CU_ASSERT_EQUAL(data.cpu, own_cpu + 1);
	data.cpu = own_cpu;
	data.visits = 7;
	CU_ASSERT_EQUAL(copy(&data, 6, end, end - 2, end - 2, to, 2), MF_RSEQ_MISS);
	CU_ASSERT_EQUAL(copy(&data, 7, end - 1, end - 2, end - 2, to, 2), MF_RSEQ_MISS);
	CU_ASSERT_PTR_EQUAL(data.stack.top, end);
	CU_ASSERT_PTR_EQUAL(data.stack.bottom, end);
	CU_ASSERT_EQUAL(value, 99);
}

static void test_copy_and_shut(void)
{
	static struct cpu_data data;
	static const uint32_t from[5] = { 5, 6, 7, 8, 9 };
	uint32_t to[5] = { 0 }, value = 0, *end = data.entry + ENTRIES;

	bind_to(0, 1);
	make_data(&data, (uint32_t)cpus[0], ENTRIES);
	data.visits = 7;
	CU_ASSERT_EQUAL(copy(&data, 7, end, end - 5, end - 5, from, 5), MF_RSEQ_DONE);
	CU_ASSERT_PTR_EQUAL(data.stack.top, end - 5);
	CU_ASSERT_EQUAL(pop(&data, &value), MF_RSEQ_DONE);
	CU_ASSERT_EQUAL(value, 5);
	CU_ASSERT_EQUAL(copy(&data, 7, end - 4, end - 1, to, end - 4, 3), MF_RSEQ_DONE);
	CU_ASSERT_EQUAL(to[0], 6);
	CU_ASSERT_EQUAL(to[2], 8);
	CU_ASSERT_EQUAL(to[3], 0);
	CU_ASSERT_PTR_EQUAL(data.stack.top, end - 1);
	CU_ASSERT_EQUAL(shut(&data), MF_RSEQ_DONE);
	CU_ASSERT_EQUAL(data.cpu, MF_RSEQ_SHUT);
	CU_ASSERT_EQUAL(pop(&data, &value), MF_RSEQ_MISS);
}

/* --- tokens wander between CPUs: none is lost, none is there twice --- */

static struct cpu_data all_data[MOST_CPUS];
static _Atomic unsigned failed_takes, started;

/* The data of the CPU this thread runs on just now: one of the CPUs it is bound to. */
static struct cpu_data *here(void)
{
	return &all_data[mf_rseq_cpu() != cpus[0]];
}

static size_t take(uint32_t *tokens, size_t n)
{
	struct cpu_data *data = here();
	uint32_t *top = top_of(data);
	size_t there = (size_t)(data->stack.bottom - top), k = there < n ? there : n;

	if (n == 1)
		return mf_rseq_pop(mf_rseq_offset(), &data->cpu, &data->stack, tokens) == MF_RSEQ_DONE;
	if (!k || mf_rseq_copy(mf_rseq_offset(), &data->cpu, &data->visits, 0, &data->stack.top, top, top + k,
			       tokens, top, k) != MF_RSEQ_DONE)
		return 0;
	return k;
}

static bool give(uint32_t token)
{
	struct cpu_data *data = here();

	return mf_rseq_push(mf_rseq_offset(), &data->cpu, &data->stack, token) == MF_RSEQ_DONE;
}

static void *wander(void *arg)
{
	uint32_t tokens[4], state = (uint32_t)(size_t)arg;

	bind_to(0, nr_cpus);
	started++;
	for (int round = 0; round < ROUNDS; round++) {
		size_t n = take(tokens, 1 + (state = state * 1664525 + 1013904223) / 7 % 4);

		if (!n)
			failed_takes++;
		/* Held across a change of CPU now and then. */
		if (round % 512 == 0)
			sched_yield();
		while (n)
			n -= give(tokens[n - 1]);
	}
	return NULL;
}

static void test_nothing_is_lost(void)
{
	pthread_t threads[NR_THREADS];
	bool seen[TOKENS + 1] = { false };
	unsigned found = 0;

	for (unsigned i = 0; i < nr_cpus; i++)
		make_data(&all_data[i], (uint32_t)cpus[i], ENTRIES);
	for (uint32_t token = 1; token <= TOKENS; token++)
		*--all_data[token % nr_cpus].stack.top = token;
	for (size_t i = 0; i < NR_THREADS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, wander, (void *)(i + 1)), 0);
	for (size_t i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < nr_cpus; i++) {
		struct mf_rseq_stack *stack = &all_data[i].stack;

		CU_ASSERT_TRUE_FATAL(stack->top >= all_data[i].entry && stack->top <= stack->bottom);
		for (const uint32_t *at = stack->top; at != stack->bottom; at++) {
			uint32_t token = *at;

			CU_ASSERT_TRUE_FATAL(token >= 1 && token <= TOKENS);
			CU_ASSERT_FALSE(seen[token]);
			seen[token] = true;
			found++;
		}
	}
	CU_ASSERT_EQUAL(found, TOKENS);
	CU_ASSERT_EQUAL(started, NR_THREADS);
	/* There are more tokens than hands, so nearly every look must have found one. */
	CU_ASSERT_TRUE(failed_takes < NR_THREADS * ROUNDS / 2);
}

/* --- a visitor --- */

static struct cpu_data visited;
static _Atomic bool stop;
static _Atomic uint64_t commits;

/* Whoever finds the data shut waits for the visitor to open it. */
static void *own_it(void *arg)
{
	uint32_t value;

	(void)arg;
	bind_to(0, 1);
	while (!stop) {
		for (int i = 0; i < 64; i++) {
			if (mf_rseq_push(mf_rseq_offset(), &visited.cpu, &visited.stack, 1) == MF_RSEQ_DONE)
				commits++;
			if (mf_rseq_pop(mf_rseq_offset(), &visited.cpu, &visited.stack, &value) ==
			    MF_RSEQ_DONE)
				commits++;
		}
		sched_yield();
	}
	return NULL;
}

static bool stands_still(void)
{
	const uint32_t *top = top_of(&visited);

	for (int i = 0; i < 200; i++) {
		if (top_of(&visited) != top)
			return false;
		if (i % 100 == 99)
			sched_yield();
	}
	return true;
}

/* The visitor moves the top itself: a commit of an old sequence would put it back. */
static bool visit(void)
{
	uint32_t *top;
	bool still;

	__atomic_store_n(&visited.cpu, MF_RSEQ_SHUT, __ATOMIC_RELEASE);
	mf_rseq_fence(cpus[0]);
	still = stands_still();
	top = visited.stack.top;
	__atomic_store_n(&visited.stack.top, top - 2, __ATOMIC_RELAXED);
	still &= stands_still() && visited.stack.top == top - 2;
	__atomic_store_n(&visited.stack.top, top, __ATOMIC_RELAXED);
	__atomic_store_n(&visited.cpu, (uint32_t)cpus[0], __ATOMIC_RELEASE);
	return still;
}

static void test_fence(void)
{
	pthread_t threads[3];
	unsigned moved = 0, idle = 0;

	make_data(&visited, (uint32_t)cpus[0], ENTRIES / 2);
	stop = false;
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, own_it, NULL), 0);
	bind_to(nr_cpus - 1, 1);
	while (!commits)
		sched_yield();
	for (int i = 0; i < 4000; i++) {
		uint64_t before = commits;

		moved += !visit();
		if (i % 16 == 0)
			for (int yields = 0; commits == before && yields < 1000; yields++)
				sched_yield();
		idle += commits == before;
	}
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(moved, 0);
	/* The owners really were at work meanwhile. */
	CU_ASSERT_TRUE(idle < 4000);
	CU_ASSERT_TRUE(commits > 1000);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_push_and_pop),	 UNIT_TEST(test_misses), UNIT_TEST(test_copy_and_shut),
	UNIT_TEST(test_nothing_is_lost), UNIT_TEST(test_fence),
};

int main(void)
{
	if (!mf_rseq_usable()) {
		printf("skipped: this host, C library or build has no restartable sequences\n");
		return 77;
	}
	find_cpus();
	return unit_main("rseq", tests, sizeof(tests) / sizeof(tests[0]));
}
