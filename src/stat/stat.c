/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counters, see stat.h: who owns a shard, and summing.
 *
 * A shard has up to two users, its set and its thread, a bit of shard->users
 * each:
 *
 *   set and thread   in use: in the list of both
 *   set only         the thread has ended; its counts stay, a new thread of
 *                    that set may take the shard over and counts on
 *   thread only      the set was destroyed; the memory stays, since the
 *                    thread (or what its signal handler interrupted) may still
 *                    look at its set; the thread uses it again for its next set
 *   neither          unmapped by whoever left last
 *
 * So a thread's own shards are readable as long as it lives, a set that ends
 * leaves its shards, and a stale mf_stat_current can only lead to the slow path.
 *
 * That a thread ends is learnt from the destructor of a pthread key.
 *
 * Signal handlers: the slow path may be interrupted anywhere by itself.  Lists
 * are only pushed to, by compare-and-swap; the worst a handler can cause is a
 * second shard of one thread for one set, both the thread's own and both
 * summed.  Memory comes from mmap, since malloc may be what was interrupted.
 *
 * Locks: none.
 */
#include "stat/stat.h"

#include "plat/pages.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define USED_BY_SET 1u
#define USED_BY_THREAD 2u

/* Of no set: what a thread points to before its first shard. */
static struct mf_stat_shard no_shard;

__thread struct mf_stat_shard *mf_stat_current __attribute__((tls_model("initial-exec"))) = &no_shard;

/* All shards this thread is a user of; shrinks only when the thread ends. */
static __thread struct mf_stat_shard *thread_shards __attribute__((tls_model("initial-exec")));

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_exists;

const struct mf_stat_row mf_stat_rows[MF_NR_STATS] = {
#define MF_STAT_ROW(name, scope, unit, help) { #name, #unit, help, MF_STAT_##scope },
	MF_STATS(MF_STAT_ROW)
#undef MF_STAT_ROW
};

static size_t nr_words(const struct mf_stat_set *set)
{
	return (size_t)set->nr_zones * MF_NR_STATS;
}

static const struct mf_stat_set *set_of(const struct mf_stat_shard *shard)
{
	return __atomic_load_n(&shard->set, __ATOMIC_RELAXED);
}

static void set_set(struct mf_stat_shard *shard, const struct mf_stat_set *set)
{
	__atomic_store_n(&shard->set, set, __ATOMIC_RELAXED);
}

static void set_current(struct mf_stat_shard *shard)
{
	__atomic_store_n(&mf_stat_current, shard, __ATOMIC_RELAXED);
}

static void drop_user(struct mf_stat_shard *shard, uint32_t user)
{
	if (atomic_fetch_and_explicit(&shard->users, ~user, memory_order_acq_rel) == user)
		mf_pages_unmap(shard, shard->bytes);
}

/*
 * The thread ends.  Until mf_stat_current points away, a signal handler may
 * still use its shard; after that it finds none, takes another, and so has
 * this destructor called once more.
 */
static void release_thread(void *unused)
{
	struct mf_stat_shard *shards = __atomic_exchange_n(&thread_shards, NULL, __ATOMIC_RELAXED);
	struct mf_stat_shard *next;

	(void)unused;
	set_current(&no_shard);
	atomic_signal_fence(memory_order_seq_cst);
	for (; shards; shards = next) {
		next = shards->next_of_thread;
		drop_user(shards, USED_BY_THREAD);
	}
}

static void create_key(void)
{
	key_exists = !pthread_key_create(&key, release_thread);
}

int mf_stat_init(struct mf_stat_set *set, unsigned nr_zones)
{
	memset(set, 0, sizeof(*set));
	pthread_once(&key_once, create_key);
	if (!key_exists)
		return -ENOMEM;
	set->nr_zones = nr_zones ? nr_zones : 1;
	set->spare = calloc(nr_words(set), sizeof(*set->spare));
	if (!set->spare)
		return -ENOMEM;
	return 0;
}

void mf_stat_destroy(struct mf_stat_set *set)
{
	struct mf_stat_shard *shard = atomic_load_explicit(&set->shards, memory_order_acquire);
	struct mf_stat_shard *next;

	for (; shard; shard = next) {
		next = shard->next;
		/* Another set may come to stand at this address. */
		set_set(shard, NULL);
		drop_user(shard, USED_BY_SET);
	}
	free(set->spare);
	memset(set, 0, sizeof(*set));
}

static void push_to_set(struct mf_stat_set *set, struct mf_stat_shard *shard)
{
	shard->next = atomic_load_explicit(&set->shards, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&set->shards, &shard->next, shard, memory_order_release,
						      memory_order_relaxed))
		;
}

static void push_to_thread(struct mf_stat_shard *shard)
{
	shard->next_of_thread = __atomic_load_n(&thread_shards, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&thread_shards, &shard->next_of_thread, shard, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	/* Any value but NULL has release_thread() called; if it fails the shard just stays the thread's. */
	pthread_setspecific(key, shard);
}

static struct mf_stat_shard *first_shard(struct mf_stat_set *set)
{
	return atomic_load_explicit(&set->shards, memory_order_acquire);
}

/* A shard of this set that is the thread's already; those of sets that are gone match nothing. */
static struct mf_stat_shard *find_own(struct mf_stat_set *set)
{
	struct mf_stat_shard *shard = __atomic_load_n(&thread_shards, __ATOMIC_RELAXED);

	while (shard && set_of(shard) != set)
		shard = shard->next_of_thread;
	return shard;
}

static bool change_users(struct mf_stat_shard *shard, uint32_t from, uint32_t to)
{
	return atomic_load_explicit(&shard->users, memory_order_relaxed) == from &&
	       atomic_compare_exchange_strong_explicit(&shard->users, &from, to, memory_order_acq_rel,
						       memory_order_relaxed);
}

/* A shard of this set whose thread has ended, with its counts in it. */
static struct mf_stat_shard *take_over(struct mf_stat_set *set)
{
	struct mf_stat_shard *shard = first_shard(set);

	while (shard && !change_users(shard, USED_BY_SET, USED_BY_SET | USED_BY_THREAD))
		shard = shard->next;
	if (shard)
		push_to_thread(shard);
	return shard;
}

/* In whole small pages, so that a shard often fits another set as well. */
static size_t shard_bytes(const struct mf_stat_set *set)
{
	return (sizeof(struct mf_stat_shard) + nr_words(set) * sizeof(uint64_t) + 4095) & ~(size_t)4095;
}

/* A shard of this thread whose set is gone, for a new set; cleared. */
static struct mf_stat_shard *use_again(struct mf_stat_set *set)
{
	struct mf_stat_shard *shard = __atomic_load_n(&thread_shards, __ATOMIC_RELAXED);

	while (shard && !(shard->bytes >= shard_bytes(set) &&
			  change_users(shard, USED_BY_THREAD, USED_BY_THREAD | USED_BY_SET)))
		shard = shard->next_of_thread;
	if (!shard)
		return NULL;
	memset(shard->cpu, 0, sizeof(shard->cpu));
	memset(shard->words, 0, nr_words(set) * sizeof(uint64_t));
	/* From here on a handler of this thread may count in it. */
	atomic_signal_fence(memory_order_seq_cst);
	set_set(shard, set);
	push_to_set(set, shard);
	return shard;
}

static struct mf_stat_shard *create(struct mf_stat_set *set)
{
	struct mf_stat_shard *shard = mf_pages_map(shard_bytes(set));

	if (!shard)
		return NULL;
	shard->bytes = shard_bytes(set);
	set_set(shard, set);
	atomic_init(&shard->users, USED_BY_SET | USED_BY_THREAD);
	push_to_thread(shard);
	push_to_set(set, shard);
	return shard;
}

uint64_t *mf_stat_shard_get(struct mf_stat_set *set)
{
	struct mf_stat_shard *shard = find_own(set);

	if (!shard)
		shard = take_over(set);
	if (!shard)
		shard = use_again(set);
	if (!shard)
		shard = create(set);
	if (!shard)
		return set->spare;
	set_current(shard);
	return shard->words;
}

const enum mf_stat_id mf_stat_column_rows[MF_NR_STAT_COLUMNS] = {
	[MF_STAT_COLUMN_LOCAL] = MF_STAT_alloc_local_fast,
	[MF_STAT_COLUMN_PLAIN] = MF_STAT_alloc_plain_fast,
	[MF_STAT_COLUMN_TURN] = MF_STAT_alloc_turn_local_fast,
	[MF_STAT_COLUMN_FREE] = MF_STAT_free_fast,
};

/* The column a row is counted in besides, MF_NR_STAT_COLUMNS if none. */
static unsigned column_of(enum mf_stat_id id)
{
	unsigned column = 0;

	while (column < MF_NR_STAT_COLUMNS && mf_stat_column_rows[column] != id)
		column++;
	return column;
}

static uint64_t sum_of_column(const struct mf_stat_set *set, const struct mf_stat_shard *shard, unsigned zone,
			      unsigned column)
{
	uint64_t sum = 0;

	for (unsigned cpu = 0; column < MF_NR_STAT_COLUMNS && cpu < set->nr_cpus; cpu++)
		if (set->cpu_zone[cpu] == (int)zone)
			sum += __atomic_load_n(&shard->cpu[cpu][column], __ATOMIC_RELAXED);
	return sum;
}

/* One row of one zone as it was counted. */
static uint64_t sum_of(struct mf_stat_set *set, unsigned zone, enum mf_stat_id id)
{
	size_t word = (size_t)zone * MF_NR_STATS + id;
	uint64_t sum = __atomic_load_n(&set->spare[word], __ATOMIC_RELAXED);

	for (struct mf_stat_shard *shard = first_shard(set); shard; shard = shard->next) {
		sum += __atomic_load_n(&shard->words[word], __ATOMIC_RELAXED);
		sum += sum_of_column(set, shard, zone, column_of(id));
	}
	return sum;
}

/* Which rows each fast row stands for. */
static const struct fold {
	enum mf_stat_id fast;
	unsigned nr;
	enum mf_stat_id rows[5];
} folds[] = {
	{ MF_STAT_alloc_local_fast,
	  4,
	  { MF_STAT_pgalloc, MF_STAT_pcp_hit, MF_STAT_numa_hit, MF_STAT_numa_local } },
	{ MF_STAT_alloc_plain_fast, 2, { MF_STAT_pgalloc, MF_STAT_pcp_hit } },
	{ MF_STAT_free_fast, 1, { MF_STAT_pgfree } },
	{ MF_STAT_alloc_turn_local_fast,
	  5,
	  { MF_STAT_pgalloc, MF_STAT_pcp_hit, MF_STAT_numa_hit, MF_STAT_numa_interleave,
	    MF_STAT_numa_local } },
	{ MF_STAT_alloc_turn_other_fast,
	  5,
	  { MF_STAT_pgalloc, MF_STAT_pcp_hit, MF_STAT_numa_hit, MF_STAT_numa_interleave,
	    MF_STAT_numa_other } },
};

#define NR_FOLDS (sizeof(folds) / sizeof(folds[0]))

static bool stands_for(const struct fold *fold, enum mf_stat_id id)
{
	for (unsigned i = 0; i < fold->nr; i++)
		if (fold->rows[i] == id)
			return true;
	return false;
}

uint64_t mf_stat_zone_read(struct mf_stat_set *set, unsigned zone, enum mf_stat_id id)
{
	uint64_t sum = sum_of(set, zone, id);

	for (unsigned i = 0; i < NR_FOLDS; i++)
		if (stands_for(&folds[i], id))
			sum += sum_of(set, zone, folds[i].fast);
	return sum;
}

/* One row of all zones as it was counted; each CPU is looked at once, not once a zone. */
static uint64_t sum_of_all(struct mf_stat_set *set, enum mf_stat_id id)
{
	unsigned column = column_of(id);
	uint64_t sum = 0;

	for (size_t word = id; word < (size_t)set->nr_zones * MF_NR_STATS; word += MF_NR_STATS) {
		sum += __atomic_load_n(&set->spare[word], __ATOMIC_RELAXED);
		for (struct mf_stat_shard *shard = first_shard(set); shard; shard = shard->next)
			sum += __atomic_load_n(&shard->words[word], __ATOMIC_RELAXED);
	}
	for (struct mf_stat_shard *shard = first_shard(set); shard; shard = shard->next)
		for (unsigned cpu = 0; column < MF_NR_STAT_COLUMNS && cpu < set->nr_cpus; cpu++)
			if (set->cpu_zone[cpu] >= 0)
				sum += __atomic_load_n(&shard->cpu[cpu][column], __ATOMIC_RELAXED);
	return sum;
}

uint64_t mf_stat_read(struct mf_stat_set *set, enum mf_stat_id id)
{
	uint64_t sum = sum_of_all(set, id);

	for (unsigned i = 0; i < NR_FOLDS; i++)
		if (stands_for(&folds[i], id))
			sum += sum_of_all(set, folds[i].fast);
	return sum;
}

static void add_columns(const struct mf_stat_set *set, const struct mf_stat_shard *shard, uint64_t *sums)
{
	for (unsigned cpu = 0; cpu < set->nr_cpus; cpu++)
		for (unsigned i = 0; set->cpu_zone[cpu] >= 0 && i < MF_NR_STAT_COLUMNS; i++)
			sums[(size_t)set->cpu_zone[cpu] * MF_NR_STATS + mf_stat_column_rows[i]] +=
				__atomic_load_n(&shard->cpu[cpu][i], __ATOMIC_RELAXED);
}

static void add_words(uint64_t *sums, const uint64_t *words, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		sums[i] += __atomic_load_n(&words[i], __ATOMIC_RELAXED);
}

void mf_stat_snapshot(struct mf_stat_set *set, uint64_t *sums)
{
	memset(sums, 0, nr_words(set) * sizeof(*sums));
	add_words(sums, set->spare, nr_words(set));
	for (struct mf_stat_shard *shard = first_shard(set); shard; shard = shard->next) {
		add_words(sums, shard->words, nr_words(set));
		add_columns(set, shard, sums);
	}
	for (unsigned zone = 0; zone < set->nr_zones; zone++) {
		uint64_t *row = sums + (size_t)zone * MF_NR_STATS;

		for (unsigned i = 0; i < NR_FOLDS; i++)
			for (unsigned k = 0; k < folds[i].nr; k++)
				row[folds[i].rows[k]] += row[folds[i].fast];
	}
}
