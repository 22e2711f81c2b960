/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Named allocations: alloc/free, whole or (not of a range) the last blocks or objects.
 *
 *   found, task pinned -> blocks cut off -> pages given back -> account, told
 *
 * Invariants: once blocks are cut off nobody reaches their bytes, and of two
 * frees that race each block is cut off by one; a whole free takes the entry
 * out of the table at the same moment.  The list of blocks itself stays until
 * the last reference goes, so that what was cut off can be read without a lock.
 *
 * Locks: data_lock exclusive, cut_mutex and live.lock inside it to cut off; the
 * pages go back, and the file system is told, with no lock held.
 */
#include "engine/engine_internal.h"

#include <errno.h>
#include <string.h>

/* Blocks given back by one call of the page engine. */
#define SLICE_BLOCKS 4096u

/* --- pages of an entry --- */

static int node_of(const struct mf_live *live, size_t i)
{
	return live->kind == MF_LIVE_SLAB ? mf_live_object_node(live, i)
					  : mf_page_node(live->m->page, live->blocks[i].v);
}

void mf_live_count(const struct mf_live *live, size_t first, size_t nr, uint64_t by_node[64])
{
	memset(by_node, 0, 64 * sizeof(*by_node));
	for (size_t i = first; i < first + nr; i++) {
		int node = node_of(live, i);

		if (node >= 0)
			by_node[node] += UINT64_C(1) << live->order;
	}
}

void mf_live_give_back_blocks(struct mf_live *live, struct mf_task *task, size_t first, size_t nr)
{
	struct mf_page *page = live->m->page;

	if (live->order == 0 && !live->irq) {
		for (size_t done = 0; done < nr; done += SLICE_BLOCKS) {
			size_t slice = nr - done < SLICE_BLOCKS ? nr - done : SLICE_BLOCKS;

			mf_page_free_bulk(page, &task->place, slice, live->blocks + first + done);
		}
		return;
	}
	for (size_t i = first; i < first + nr; i++) {
		if (live->irq)
			mf_page_free_irq(page, &task->place, live->blocks[i], live->order);
		else
			mf_page_free(&task->place, live->blocks[i], live->order);
	}
}

/* --- a free --- */

/* Under data_lock: takes the last @count blocks (0: all) off the entry; a whole one leaves the table. */
static int cut_off(struct mf_live *live, uint64_t count, size_t *nr, bool *whole, char *why, size_t why_size)
{
	struct memfs *m = live->m;
	size_t have = live->nr_blocks;

	if (!have)
		return mf_why(why, why_size, -ENOENT, "no allocation %s", live->named.name);
	if (count && mf_live_kinds[live->kind].whole)
		return mf_why(why, why_size, -EINVAL, "%s is a vmalloc range: it is freed as a whole",
			      live->named.name);
	if (count > have)
		return mf_why(why, why_size, -EINVAL, "%s has %zu %s, fewer than %llu", live->named.name,
			      have, mf_live_kinds[live->kind].units, (unsigned long long)count);
	*nr = count ? count : have;
	*whole = *nr == have;
	pthread_mutex_lock(&m->live.cut_mutex);
	mf_lock_acquire(&m->live.lock);
	if (*whole) {
		live->ready = false;
		mf_name_table_remove(&m->live.table, &live->named);
	}
	atomic_fetch_sub(&m->live.nr_pages, mf_live_account(live, *nr));
	mf_lock_release(&m->live.lock);
	__atomic_store_n(&live->nr_blocks, have - *nr, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&m->live.cut_mutex);
	return 0;
}

/* The blocks [first, first + nr) are cut off: gives them back and settles the task's account. */
static void free_cut(struct mf_live *live, struct mf_task *task, size_t first, size_t nr, bool whole)
{
	struct memfs *m = live->m;
	uint64_t by_node[64];

	mf_live_count(live, first, nr, by_node);
	mf_live_kinds[live->kind].give_back(live, task, first, nr);
	for (int node = 0; node < 64; node++)
		if (by_node[node] && live->kind != MF_LIVE_SLAB)
			atomic_fetch_sub(&task->live_pages[node], by_node[node]);
	if (!whole)
		return;
	mf_live_unpin_cache(live);
	mf_lock_acquire(&m->tasks.lock);
	task->nr_live--;
	mf_lock_release(&m->tasks.lock);
}

/* Tells the file system, with no lock held. */
static void tell_freed(struct mf_live *live)
{
	struct memfs *m = live->m;
	mf_live_freed_fn *freed;
	void *arg;

	mf_lock_acquire(&m->live.lock);
	freed = m->live.freed;
	arg = m->live.freed_arg;
	mf_lock_release(&m->live.lock);
	if (freed)
		freed(arg, live->named.serial, live->named.name);
}

static int free_blocks(struct mf_live *live, struct mf_task *task, uint64_t count, size_t *nr, char *why,
		       size_t why_size)
{
	bool whole = false;
	size_t first;
	int error;

	pthread_rwlock_wrlock(&live->data_lock);
	error = cut_off(live, count, nr, &whole, why, why_size);
	first = live->nr_blocks;
	pthread_rwlock_unlock(&live->data_lock);
	if (error)
		return error;
	free_cut(live, task, first, *nr, whole);
	if (whole) {
		tell_freed(live);
		mf_live_put(live); /* the table's reference */
	}
	return 0;
}

/* Referenced, and its task pinned: nothing of either goes away while blocks are given back. */
static struct mf_live *get_with_task(struct memfs *m, struct mf_text name, struct mf_task **task)
{
	struct mf_live *live;

	mf_lock_acquire(&m->live.lock);
	live = mf_live_find(m, name);
	if (live) {
		mf_live_ref(live);
		*task = live->task;
		mf_lock_acquire(&m->tasks.lock);
		live->task->nr_pins++;
		mf_lock_release(&m->tasks.lock);
	}
	mf_lock_release(&m->live.lock);
	return live;
}

int mf_live_free(struct memfs *m, struct mf_text name, uint64_t count, struct mf_outbuf *reply, char *why,
		 size_t why_size)
{
	struct mf_task *task = NULL;
	struct mf_live *live;
	size_t nr = 0;
	int error;

	mf_live_begin(m);
	live = get_with_task(m, name, &task);
	if (!live) {
		mf_live_end(m);
		return mf_why(why, why_size, -ENOENT, "no allocation %.*s", (int)name.length, name.at);
	}
	error = free_blocks(live, task, count, &nr, why, why_size);
	if (!error && reply)
		mf_outbuf_printf(reply, "%s freed=%zu\n", live->named.name, nr);
	mf_task_put(task);
	mf_live_put(live);
	mf_live_end(m);
	return error;
}

void mf_live_free_all(struct memfs *m)
{
	mf_live_on_freed(m, NULL, NULL);
	while (m->live.table.oldest) {
		char name[MEMFS_NAME_MAX + 1];

		memcpy(name, m->live.table.oldest->name, sizeof(name));
		if (mf_live_free(m, mf_text_of(name), 0, NULL, NULL, 0))
			break; /* cannot be: no call is running, so every entry is ready */
	}
}
