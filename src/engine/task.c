/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tasks: the table, their lifetime, and what is set on them.
 *
 * Invariants: "default" is always in the table and never ends; a task ends only
 * with nr_live = 0 and nr_pins = 0; allowed nodes exist and at least one of
 * them has memory.
 *
 * Locks: tasks.lock for the table and the counts, each task's lock for writers
 * of its placement.  No memory is allocated from the arenas here.
 */
#include "engine/engine_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How often one that queues for its turn looks whether it was cancelled. */
#define TURN_SLICE_MS 10

/* The caller's own CPU on the host's topology, else the first there is. */
static void init_place(struct mf_task *task)
{
	const struct mf_topo *topo = task->m->topo;

	mf_placement_init(&task->place, task->page);
	if (!topo->simulated)
		mf_placement_set_cpu(&task->place, MEMFS_CPU_AUTO, task->m->topo);
}

static void init_turn(struct mf_task *task)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&task->turn.mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&task->turn.given_on, &attr);
	pthread_condattr_destroy(&attr);
}

static struct mf_task *new_task(struct memfs *m)
{
	struct mf_task *task = NULL;

	if (!mf_fault_hit(&m->fault, MF_FAULT_meta_alloc))
		task = calloc(1, sizeof(*task));
	if (!task)
		return NULL;
	task->m = m;
	task->page = m->page;
	task->slabs = m->slabs;
	mf_lock_init(&task->lock, MF_LOCK_TASK);
	init_turn(task);
	init_place(task);
	return task;
}

static void delete_task(struct mf_task *task)
{
	pthread_cond_destroy(&task->turn.given_on);
	pthread_mutex_destroy(&task->turn.mutex);
	mf_lock_destroy(&task->lock);
	free(task);
}

static uint64_t max_tasks(struct memfs *m)
{
	uint64_t max;

	mf_lock_acquire(&m->config_lock);
	max = m->limits.max_tasks;
	mf_lock_release(&m->config_lock);
	return max;
}

static int add_task(struct memfs *m, struct mf_task *task, struct mf_text name)
{
	uint64_t max = max_tasks(m);
	int error;

	mf_lock_acquire(&m->tasks.lock);
	if (mf_name_table_find(&m->tasks.table, name))
		error = -EEXIST;
	else if (m->tasks.table.count >= max)
		error = -ENOSPC;
	else
		error = mf_name_table_add(&m->tasks.table, &task->named, name);
	mf_lock_release(&m->tasks.lock);
	return error;
}

int mf_task_create(struct memfs *m, struct mf_text name, struct mf_task **out)
{
	struct mf_task *task;
	int error;

	if (!mf_name_is_valid(name))
		return -EINVAL;
	task = new_task(m);
	if (!task)
		return -ENOMEM;
	error = add_task(m, task, name);
	if (error) {
		delete_task(task);
		return error;
	}
	if (out)
		*out = task;
	return 0;
}

/* Takes an idle task out of the table; tasks.lock is held. */
static int unlink_task(struct mf_task *task)
{
	struct memfs *m = task->m;

	if (task == m->tasks.default_task || task->nr_live || task->nr_pins)
		return -EBUSY;
	mf_name_table_remove(&m->tasks.table, &task->named);
	return 0;
}

int mf_task_end(struct mf_task *task)
{
	struct memfs *m = task->m;
	int error;

	mf_lock_acquire(&m->tasks.lock);
	error = unlink_task(task);
	mf_lock_release(&m->tasks.lock);
	if (!error)
		delete_task(task);
	return error;
}

int mf_task_destroy(struct memfs *m, struct mf_text name)
{
	struct mf_task *task;
	int error = -ENOENT;

	mf_lock_acquire(&m->tasks.lock);
	task = (struct mf_task *)mf_name_table_find(&m->tasks.table, name);
	if (task)
		error = unlink_task(task);
	mf_lock_release(&m->tasks.lock);
	if (!error)
		delete_task(task);
	return error;
}

struct mf_task *mf_task_get(struct memfs *m, struct mf_text name)
{
	struct mf_task *task;

	mf_lock_acquire(&m->tasks.lock);
	task = (struct mf_task *)mf_name_table_find(&m->tasks.table, name);
	if (task)
		task->nr_pins++;
	mf_lock_release(&m->tasks.lock);
	return task;
}

void mf_task_put(struct mf_task *task)
{
	struct memfs *m = task->m;

	mf_lock_acquire(&m->tasks.lock);
	task->nr_pins--;
	mf_lock_release(&m->tasks.lock);
}

/* --- what is set on a task --- */

int mf_task_set_policy(struct mf_task *task, struct mf_text text, char *why, size_t why_size)
{
	const struct mf_topo *topo = task->m->topo;
	struct mf_policy_context context;
	struct mf_policy policy;
	int error;

	mf_lock_acquire(&task->lock);
	mf_placement_context(topo, task->place.allowed, &context);
	error = mf_policy_parse(text, &context, &policy, why, why_size);
	if (!error)
		mf_placement_set_policy(&task->place, &policy, topo);
	mf_lock_release(&task->lock);
	if (!error)
		mf_engine_notify(task->m, MF_EVENT_POLICY);
	return error;
}

static int check_allowed(const struct mf_topo *topo, struct mf_text text, mf_nodemask *allowed, char *why,
			 size_t why_size)
{
	int length = (int)text.length;

	if (!text.length || mf_parse_nodelist(text, allowed) || !*allowed)
		return mf_why(why, why_size, -EINVAL, "'%.*s' is not a list of nodes", length, text.at);
	if (*allowed & ~topo->nodes)
		return mf_why(why, why_size, -EINVAL, "node %d does not exist",
			      mf_node_first(*allowed & ~topo->nodes));
	if (!(*allowed & topo->memory))
		return mf_why(why, why_size, -EINVAL, "no node of %.*s has memory", length, text.at);
	return 0;
}

int mf_task_set_mems_allowed(struct mf_task *task, struct mf_text nodes, char *why, size_t why_size)
{
	const struct mf_topo *topo = task->m->topo;
	mf_nodemask allowed = 0;
	int error = check_allowed(topo, nodes, &allowed, why, why_size);

	if (error)
		return error;
	mf_lock_acquire(&task->lock);
	error = mf_placement_set_allowed(&task->place, allowed, topo);
	mf_lock_release(&task->lock);
	if (error)
		return mf_why(why, why_size, error, "nodes %.*s cannot be used", (int)nodes.length, nodes.at);
	mf_engine_notify(task->m, MF_EVENT_POLICY);
	return 0;
}

/* Every CPU that the host may run a caller on is a CPU of the topology, too. */
static bool covers_host_cpus(struct memfs *m)
{
	struct mf_plat_node *nodes = calloc(64, sizeof(*nodes));
	uint64_t host[MF_CPU_WORDS] = { 0 };
	uint64_t any = 0, missing = 0;
	int nr = nodes ? m->plat->ops->host_nodes(m->plat, nodes, 64) : 0;

	for (int i = 0; i < nr; i++)
		for (unsigned w = 0; w < MF_CPU_WORDS; w++)
			host[w] |= nodes[i].cpus[w];
	for (unsigned w = 0; w < MF_CPU_WORDS; w++) {
		any |= host[w];
		missing |= host[w] & ~m->topo->cpus[w];
	}
	free(nodes);
	return any && !missing;
}

int mf_task_check_cpu(struct memfs *m, int cpu, char *why, size_t why_size)
{
	if (cpu == MEMFS_CPU_AUTO) {
		if (!m->topo->simulated || covers_host_cpus(m))
			return 0;
		return mf_why(why, why_size, -EINVAL, "auto: the simulated topology lacks CPUs of this host");
	}
	if (cpu < 0 || cpu >= MF_MAX_CPUS || m->topo->cpu_node[cpu] < 0)
		return mf_why(why, why_size, -EINVAL, "CPU %d does not exist", cpu);
	return 0;
}

int mf_task_set_cpu_number(struct mf_task *task, int cpu, char *why, size_t why_size)
{
	int error = mf_task_check_cpu(task->m, cpu, why, why_size);

	if (error)
		return error;
	mf_lock_acquire(&task->lock);
	mf_placement_set_cpu(&task->place, cpu, task->m->topo);
	mf_lock_release(&task->lock);
	mf_engine_notify(task->m, MF_EVENT_POLICY);
	return 0;
}

int mf_task_set_cpu(struct mf_task *task, struct mf_text cpu, char *why, size_t why_size)
{
	uint64_t number;

	if (mf_text_is(cpu, "auto"))
		return mf_task_set_cpu_number(task, MEMFS_CPU_AUTO, why, why_size);
	if (mf_parse_u64(cpu, INT32_MAX, &number))
		return mf_why(why, why_size, -EINVAL, "'%.*s' is neither a CPU number nor auto",
			      (int)cpu.length, cpu.at);
	return mf_task_set_cpu_number(task, (int)number, why, why_size);
}

/* --- turns --- */

static int take_turn(struct mf_task *task, struct mf_cancel *cancel)
{
	int error = 0;

	pthread_mutex_lock(&task->turn.mutex);
	while (task->turn.taken && !error) {
		struct timespec until = mf_deadline_after(TURN_SLICE_MS);

		if (cancel && atomic_load(&cancel->cancelled))
			error = -EINTR;
		else
			pthread_cond_timedwait(&task->turn.given_on, &task->turn.mutex, &until);
	}
	if (!error)
		task->turn.taken = true;
	pthread_mutex_unlock(&task->turn.mutex);
	return error;
}

static void give_turn_on(struct mf_task *task)
{
	pthread_mutex_lock(&task->turn.mutex);
	task->turn.taken = false;
	pthread_cond_signal(&task->turn.given_on);
	pthread_mutex_unlock(&task->turn.mutex);
}

int mf_task_turn_begin(struct mf_task *task, struct mf_cancel *cancel, struct mf_task_turn *turn)
{
	struct mf_policy policy;
	mf_nodemask allowed;
	int error = 0;

	*turn = (struct mf_task_turn){ .task = task };
	mf_placement_read(&task->place, &policy, &allowed);
	if (!mf_policy_interleaves(&policy))
		return 0;
	error = take_turn(task, cancel);
	if (error)
		return error;
	turn->held = true;
	mf_lock_acquire(&task->lock);
	turn->seq = task->place.seq;
	turn->rotation = __atomic_load_n(&task->place.rotation, __ATOMIC_RELAXED);
	mf_lock_release(&task->lock);
	return 0;
}

void mf_task_turn_end(struct mf_task_turn *turn, bool undo)
{
	struct mf_task *task = turn->task;

	if (!turn->held)
		return;
	if (undo) {
		mf_lock_acquire(&task->lock); /* keeps set_policy, which resets the rotation, out */
		if (task->place.seq == turn->seq)
			__atomic_store_n(&task->place.rotation, turn->rotation, __ATOMIC_RELAXED);
		mf_lock_release(&task->lock);
	}
	give_turn_on(task);
	turn->held = false;
}

/* --- check --- */

struct task_sums {
	uint64_t live, pages;
};

static struct task_sums sum_tasks(struct memfs *m)
{
	struct task_sums sums = { 0, 0 };

	mf_lock_acquire(&m->tasks.lock);
	for (struct mf_named *at = m->tasks.table.oldest; at; at = at->newer) {
		struct mf_task *task = (struct mf_task *)at;

		sums.live += task->nr_live;
		for (int node = 0; node < 64; node++)
			sums.pages += atomic_load(&task->live_pages[node]);
	}
	mf_lock_release(&m->tasks.lock);
	return sums;
}

unsigned mf_task_check(struct memfs *m, struct mf_outbuf *out)
{
	uint64_t mark, live, pages;
	struct task_sums sums;
	bool quiet = mf_live_quiet(m, &mark);
	unsigned bad = 0;

	sums = sum_tasks(m);
	mf_lock_acquire(&m->live.lock);
	live = m->live.table.count;
	mf_lock_release(&m->live.lock);
	pages = atomic_load(&m->live.nr_pages);
	if (!quiet || atomic_load(&m->live.begun) != mark)
		return 0; /* the sums were moving */
	if (sums.live != live && ++bad)
		mf_outbuf_printf(out, "tasks: own %llu allocations, %llu are live\n",
				 (unsigned long long)sums.live, (unsigned long long)live);
	if (sums.pages != pages && ++bad)
		mf_outbuf_printf(out, "tasks: own %llu pages, allocations hold %llu\n",
				 (unsigned long long)sums.pages, (unsigned long long)pages);
	return bad;
}
