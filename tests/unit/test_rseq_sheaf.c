/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sequences of sheaves: each alone, what they refuse, and many threads on
 * few CPUs.
 */
#include "unit.h"

#include "slab/slab_internal.h"

#include <pthread.h>
#include <sched.h>

#define ROOM 64u
#define MOST_CPUS 2
#define NR_THREADS 5
#define ROUNDS 60000
#define TOKENS 40u

struct sheaf_memory {
	union {
		struct mf_sheaf sheaf;
		uint64_t words[3 + ROOM];
	} u;
};

struct cpu_data {
	uint32_t owner;
	struct mf_sheaf *main;
	struct sheaf_memory memory[2];
} __attribute__((aligned(256)));

static struct cpu_data data[MOST_CPUS];
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

static struct mf_sheaf *make_sheaf(struct sheaf_memory *memory, uint16_t room)
{
	memset(memory, 0, sizeof(*memory));
	memory->u.sheaf.room = room;
	return &memory->u.sheaf;
}

static void make_data(unsigned i, uint32_t owner, uint16_t room)
{
	data[i].owner = owner;
	data[i].main = make_sheaf(&data[i].memory[0], room);
	make_sheaf(&data[i].memory[1], room);
}

/* Interrupted now and then, a sequence is tried again. */
static enum mf_rseq_result pop_from(unsigned i, void **object)
{
	enum mf_rseq_result result = MF_RSEQ_MISS;

	for (int n = 0; n < 100 && result == MF_RSEQ_MISS; n++)
		result = mf_rseq_sheaf_pop(mf_rseq_offset(), &data[i].owner, &data[i].main, object);
	return result;
}

static enum mf_rseq_result push_to(unsigned i, void *object)
{
	enum mf_rseq_result result = MF_RSEQ_MISS;

	for (int n = 0; n < 100 && result == MF_RSEQ_MISS; n++)
		result = mf_rseq_sheaf_push(mf_rseq_offset(), &data[i].owner, &data[i].main, object);
	return result;
}

static enum mf_rseq_result swap_in(unsigned i, struct mf_sheaf *old, uint64_t word, struct mf_sheaf *new)
{
	enum mf_rseq_result result = MF_RSEQ_MISS;

	for (int n = 0; n < 100 && result == MF_RSEQ_MISS; n++)
		result = mf_rseq_sheaf_swap(mf_rseq_offset(), &data[i].owner, &data[i].main, old, word, new);
	return result;
}

static void test_sequences_alone(void)
{
	struct mf_sheaf *sheaf;
	void *object = NULL;

	find_cpus();
	if (!mf_rseq_usable()) {
		CU_ASSERT_EQUAL(mf_rseq_sheaf_pop(0, &data[0].owner, &data[0].main, &object), MF_RSEQ_MISS);
		return;
	}
	bind_to(1);
	make_data(0, (uint32_t)cpus[0], 2);
	sheaf = data[0].main;
	CU_ASSERT_EQUAL(pop_from(0, &object), MF_RSEQ_EMPTY);
	CU_ASSERT_EQUAL(push_to(0, (void *)16), MF_RSEQ_DONE);
	CU_ASSERT_EQUAL(push_to(0, (void *)32), MF_RSEQ_DONE);
	CU_ASSERT_EQUAL(push_to(0, (void *)48), MF_RSEQ_EMPTY);
	CU_ASSERT_EQUAL(sheaf->word, 2);
	CU_ASSERT_EQUAL(pop_from(0, &object), MF_RSEQ_DONE);
	CU_ASSERT_PTR_EQUAL(object, (void *)32);
	/* One left, one taken. */
	CU_ASSERT_EQUAL(sheaf->word, 1 + (UINT64_C(1) << 16));
	CU_ASSERT_EQUAL(push_to(0, (void *)64), MF_RSEQ_DONE);
	CU_ASSERT_EQUAL(pop_from(0, &object), MF_RSEQ_DONE);
	CU_ASSERT_PTR_EQUAL(object, (void *)64);
	CU_ASSERT_EQUAL(pop_from(0, &object), MF_RSEQ_DONE);
	CU_ASSERT_PTR_EQUAL(object, (void *)16);
	CU_ASSERT_EQUAL(pop_from(0, &object), MF_RSEQ_EMPTY);
	CU_ASSERT_EQUAL(sheaf->word, UINT64_C(3) << 16);
	CU_ASSERT_PTR_NULL(sheaf->object[2]);
	bind_to(nr_cpus);
}

static void test_sequences_refuse(void)
{
	struct mf_sheaf *sheaf, *other;
	void *object = (void *)8;

	if (!mf_rseq_usable())
		return;
	bind_to(1);
	make_data(0, (uint32_t)cpus[0], 2);
	sheaf = data[0].main;
	other = &data[0].memory[1].u.sheaf;
	/* Exchanged only while it is what it was. */
	CU_ASSERT_EQUAL(swap_in(0, other, 0, sheaf), MF_RSEQ_MISS);
	CU_ASSERT_EQUAL(swap_in(0, sheaf, 1, other), MF_RSEQ_MISS);
	CU_ASSERT_PTR_EQUAL(data[0].main, sheaf);
	CU_ASSERT_EQUAL(swap_in(0, sheaf, 0, other), MF_RSEQ_DONE);
	CU_ASSERT_PTR_EQUAL(data[0].main, other);
	/* Shut, or another CPU's. */
	for (int i = 0; i < 2; i++) {
		data[0].owner = i ? (uint32_t)cpus[0] + 1 : MF_RSEQ_SHUT;
		CU_ASSERT_EQUAL(push_to(0, (void *)16), MF_RSEQ_MISS);
		CU_ASSERT_EQUAL(pop_from(0, &object), MF_RSEQ_MISS);
		CU_ASSERT_EQUAL(swap_in(0, other, 0, sheaf), MF_RSEQ_MISS);
	}
	CU_ASSERT_PTR_EQUAL(object, (void *)8);
	CU_ASSERT_EQUAL(other->word, 0);
	CU_ASSERT_EQUAL(sheaf->word, 0);
	bind_to(nr_cpus);
}

/* The entries of all CPUs there can be, of which the sequence finds its own. */
static void test_sequences_find_their_cpu(void)
{
	size_t bytes = (size_t)mf_rseq_cpu_limit() << MF_RSEQ_SHEAF_CPU_SHIFT;
	struct sheaf_memory memory;
	struct mf_sheaf *sheaf = make_sheaf(&memory, 1);
	struct mf_cache_cpu *entries, *own;
	enum mf_rseq_result result = MF_RSEQ_MISS;
	void *object = NULL;

	if (!mf_rseq_usable())
		return;
	bind_to(1);
	entries = calloc(1, bytes);
	CU_ASSERT_PTR_NOT_NULL_FATAL(entries);
	entries[0].owner = MF_RSEQ_SHUT;
	own = &entries[cpus[0]];
	/* Zeroes are open to nobody. */
	CU_ASSERT_EQUAL(mf_rseq_sheaf_pop_own(mf_rseq_offset(), (void *const *)&entries, &object),
			MF_RSEQ_MISS);
	CU_ASSERT_EQUAL(mf_rseq_sheaf_push_own(mf_rseq_offset(), (void *const *)&entries, 0, &memory),
			MF_RSEQ_MISS);
	own->owner = (uint32_t)cpus[0];
	own->tag = 77;
	own->main = sheaf;
	CU_ASSERT_EQUAL(mf_rseq_sheaf_push_own(mf_rseq_offset(), (void *const *)&entries, 76, &memory),
			MF_RSEQ_MISS);
	for (int n = 0; n < 100 && result == MF_RSEQ_MISS; n++)
		result = mf_rseq_sheaf_push_own(mf_rseq_offset(), (void *const *)&entries, 77, &memory);
	CU_ASSERT_EQUAL(result, MF_RSEQ_DONE);
	for (int n = 0; n < 100 && result != MF_RSEQ_EMPTY; n++)
		result = mf_rseq_sheaf_push_own(mf_rseq_offset(), (void *const *)&entries, 77, &entries);
	CU_ASSERT_EQUAL(result, MF_RSEQ_EMPTY);
	CU_ASSERT_EQUAL(sheaf->word, 1);
	for (int n = 0; n < 100 && result != MF_RSEQ_DONE; n++)
		result = mf_rseq_sheaf_pop_own(mf_rseq_offset(), (void *const *)&entries, &object);
	CU_ASSERT_PTR_EQUAL(object, &memory);
	CU_ASSERT_EQUAL(sheaf->word, UINT64_C(1) << 16);
	for (int n = 0; n < 100 && result != MF_RSEQ_EMPTY; n++)
		result = mf_rseq_sheaf_pop_own(mf_rseq_offset(), (void *const *)&entries, &object);
	CU_ASSERT_EQUAL(result, MF_RSEQ_EMPTY);
	free(entries);
	bind_to(nr_cpus);
}

/* To and fro between sheaves of whatever CPU it is on; what it holds at the end stays in its row. */
struct mover {
	pthread_t thread;
	void *held[ROOM];
	unsigned nr_held;
};

static void *move_tokens(void *arg)
{
	struct mover *m = arg;

	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned i = (unsigned)mf_rseq_cpu() == (uint32_t)cpus[0] ? 0 : nr_cpus - 1;
		ptrdiff_t rseq = mf_rseq_offset();
		struct mf_sheaf *old = data[i].main;
		void *object;

		if (m->nr_held < ROOM && round % 3 != 2 &&
		    mf_rseq_sheaf_pop(rseq, &data[i].owner, &data[i].main, &object) == MF_RSEQ_DONE)
			m->held[m->nr_held++] = object;
		if (m->nr_held && round % 3 &&
		    mf_rseq_sheaf_push(rseq, &data[i].owner, &data[i].main, m->held[m->nr_held - 1]) ==
			    MF_RSEQ_DONE)
			m->nr_held--;
		/* An empty one for an empty one: nobody's token may go with it. */
		if (round % 64 == 0 && MF_SHEAF_DEPTH(old->word) == 0)
			mf_rseq_sheaf_swap(rseq, &data[i].owner, &data[i].main, old,
					   old->word & ~UINT64_C(0xffff), old);
	}
	return NULL;
}

static void count_tokens(unsigned seen[], void *const *objects, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		seen[(uintptr_t)objects[i] / 16]++;
}

static void test_sequences_together(void)
{
	static struct mover movers[NR_THREADS];
	unsigned seen[MOST_CPUS * TOKENS + 1] = { 0 };

	if (!mf_rseq_usable())
		return;
	memset(movers, 0, sizeof(movers));
	for (unsigned i = 0; i < nr_cpus; i++) {
		make_data(i, (uint32_t)cpus[i], ROOM);
		for (unsigned t = 0; t < TOKENS; t++)
			data[i].main->object[t] = (void *)(uintptr_t)(16 * (i * TOKENS + t + 1));
		data[i].main->word = TOKENS;
	}
	for (int i = 0; i < NR_THREADS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&movers[i].thread, NULL, move_tokens, &movers[i]), 0);
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_join(movers[i].thread, NULL);
		count_tokens(seen, movers[i].held, movers[i].nr_held);
	}
	for (unsigned i = 0; i < nr_cpus; i++)
		count_tokens(seen, data[i].main->object, MF_SHEAF_DEPTH(data[i].main->word));
	for (unsigned t = 1; t <= nr_cpus * TOKENS; t++)
		CU_ASSERT_EQUAL(seen[t], 1);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_sequences_alone),
	UNIT_TEST(test_sequences_refuse),
	UNIT_TEST(test_sequences_find_their_cpu),
	UNIT_TEST(test_sequences_together),
};

UNIT_MAIN("sheaf sequences", tests)
