/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Named allocations: the registry, alloc/pages, and what alloc/vmalloc and
 * alloc/slab have in common with it.
 *
 *   check -> task pinned -> name reserved -> turn -> pages -> published
 *
 * and on a failure the same way back: pages freed, rotation put back, name
 * given up, task unpinned.  What the kinds do differently is in mf_live_kinds[]
 * and behind it: blocks here and in live_free.c, ranges in live_vmalloc.c, objects
 * in live_slab.c.
 *
 * Invariants: an entry of the table that is ready has nr_blocks > 0 and counts
 * in its task's nr_live; nr_blocks only falls, and 0 means out of the table;
 * live.nr_pages is the sum of nr_blocks << order over the ready entries that are
 * pages or ranges.
 *
 * Locks: live.lock for the table; tasks.lock inside it.  Pages are taken and
 * given back with no lock held (but for the task's turn, which is not ranked).
 */
#include "engine/engine_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Blocks an entry's list has room for at first. */
#define FIRST_CAPACITY 64u

/* --- entries --- */

void mf_live_begin(struct memfs *m)
{
	atomic_fetch_add(&m->live.begun, 1);
}

void mf_live_end(struct memfs *m)
{
	atomic_fetch_add(&m->live.ended, 1);
	mf_engine_notify(m, MF_EVENT_STATS);
}

bool mf_live_quiet(struct memfs *m, uint64_t *mark)
{
	uint64_t ended = atomic_load(&m->live.ended); /* first: begun can only be ahead of it */

	*mark = atomic_load(&m->live.begun);
	return *mark == ended;
}

static struct mf_live *new_live(struct memfs *m)
{
	struct mf_live *live = NULL;

	if (!mf_fault_hit(&m->fault, MF_FAULT_meta_alloc))
		live = calloc(1, sizeof(*live));
	if (!live)
		return NULL;
	live->m = m;
	atomic_init(&live->refs, 1);
	pthread_rwlock_init(&live->data_lock, NULL);
	return live;
}

void mf_live_ref(struct mf_live *live)
{
	atomic_fetch_add_explicit(&live->refs, 1, memory_order_relaxed);
}

void mf_live_put(struct mf_live *live)
{
	if (atomic_fetch_sub_explicit(&live->refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_rwlock_destroy(&live->data_lock);
	mf_live_unpin_cache(live); /* of an allocation that failed */
	free(live->blocks);
	free(live->objects);
	free(live->clear_map);
	free(live->policy);
	free(live);
}

struct mf_live *mf_live_find(struct memfs *m, struct mf_text name)
{
	struct mf_live *live = (struct mf_live *)mf_name_table_find(&m->live.table, name);

	mf_lock_assert_held(&m->live.lock);
	return live && live->ready ? live : NULL;
}

struct mf_live *mf_live_get(struct memfs *m, struct mf_text name)
{
	struct mf_live *live;

	mf_lock_acquire(&m->live.lock);
	live = mf_live_find(m, name);
	if (live)
		mf_live_ref(live);
	mf_lock_release(&m->live.lock);
	return live;
}

void mf_live_on_freed(struct memfs *m, mf_live_freed_fn *freed, void *arg)
{
	mf_lock_acquire(&m->live.lock);
	m->live.freed = freed;
	m->live.freed_arg = arg;
	mf_lock_release(&m->live.lock);
}

/* --- checking a request --- */

static int check_node(struct mf_live_take *t)
{
	const struct mf_topo *topo = t->m->topo;
	int node = t->page.node;

	if (node == MF_NODE_BY_POLICY)
		return 0;
	if (!mf_node_isset(topo->nodes, node))
		return mf_why(t->why, t->why_size, -ENOENT, "node %d does not exist", node);
	if (!mf_node_isset(topo->memory, node))
		return mf_why(t->why, t->why_size, -EINVAL, "node %d has no memory", node);
	if (t->page.vma || t->request->policy_text.length)
		return mf_why(t->why, t->why_size, -EINVAL, "node= and policy= exclude each other");
	return 0;
}

static int check_request(struct mf_live_take *t)
{
	const struct mf_live_request *request = t->request;
	int error;

	if (!mf_text_is(request->name, "-") && !mf_name_is_valid(request->name))
		return mf_why(t->why, t->why_size, -EINVAL, "not a name: 1 to %d of A-Z a-z 0-9 . _ : -",
			      MEMFS_NAME_MAX);
	error = mf_live_kinds[request->kind].check(t);
	if (error)
		return error;
	if (request->cpu != MF_CPU_OF_TASK && mf_task_check_cpu(t->m, request->cpu, t->why, t->why_size))
		return -EINVAL;
	return check_node(t);
}

/* A policy= that the caller left as text is bound to what the task may use. */
static int parse_text(struct mf_live_take *t)
{
	struct mf_policy_context context;
	struct mf_policy current;
	mf_nodemask allowed;
	int error;

	mf_placement_read(&t->task->place, &current, &allowed);
	mf_placement_context(t->m->topo, allowed, &context);
	error = mf_policy_parse(t->request->policy_text, &context, &t->vma, t->why, t->why_size);
	if (!error)
		t->page.vma = &t->vma;
	return error;
}

static int find_policy(struct mf_live_take *t)
{
	int error = 0;

	t->page.index = 0;
	if (!t->page.vma && t->request->policy_text.length)
		error = parse_text(t);
	/* A range whose policy is DEFAULT has none: the task's applies. */
	if (!error && t->page.vma && t->page.vma->mode == MF_MPOL_DEFAULT)
		t->page.vma = NULL;
	return error;
}

static int find_task(struct mf_live_take *t)
{
	struct mf_text name = t->request->task.length ? t->request->task : mf_text_of("default");

	t->task = mf_task_get(t->m, name);
	if (!t->task)
		return mf_why(t->why, t->why_size, -ENOENT, "no task %.*s", (int)name.length, name.at);
	return 0;
}

/* What live/NAME/policy will say. */
static char *policy_text(const struct mf_live_take *t)
{
	struct mf_outbuf text = MF_OUTBUF_INIT;
	struct mf_policy policy;
	mf_nodemask allowed;

	if (t->page.node != MF_NODE_BY_POLICY) {
		mf_outbuf_printf(&text, "node=%d", t->page.node);
	} else if (t->page.vma) {
		mf_policy_print(t->page.vma, &text);
	} else {
		mf_placement_read(&t->task->place, &policy, &allowed);
		mf_policy_print(&policy, &text);
	}
	if (mf_outbuf_error(&text)) {
		mf_outbuf_free(&text);
		return NULL;
	}
	return text.data;
}

/* --- the name --- */

static uint64_t max_live(struct memfs *m)
{
	uint64_t max;

	mf_lock_acquire(&m->config_lock);
	max = m->limits.max_live;
	mf_lock_release(&m->config_lock);
	return max;
}

/* Adds the entry under the name asked for, or the next free generated one. live.lock is held. */
static int add_name(struct mf_live_take *t)
{
	struct memfs *m = t->m;
	char name[MEMFS_NAME_MAX + 1];

	if (!mf_text_is(t->request->name, "-"))
		return mf_name_table_add(&m->live.table, &t->live->named, t->request->name);
	do
		snprintf(name, sizeof(name), "%s-%llu", mf_live_kinds[t->live->kind].prefix,
			 (unsigned long long)++m->live.next_generated);
	while (mf_name_table_find(&m->live.table, mf_text_of(name)));
	return mf_name_table_add(&m->live.table, &t->live->named, mf_text_of(name));
}

static int reserve_name(struct mf_live_take *t)
{
	struct memfs *m = t->m;
	uint64_t max = max_live(m);
	int error;

	mf_lock_acquire(&m->live.lock);
	error = m->live.table.count >= max ? -ENOSPC : add_name(t);
	mf_lock_release(&m->live.lock);
	if (error == -ENOSPC)
		return mf_why(t->why, t->why_size, error,
			      "there are %llu allocations, the bound of tune/max_live_allocations",
			      (unsigned long long)max);
	if (error == -EEXIST)
		return mf_why(t->why, t->why_size, error, "%.*s exists", (int)t->request->name.length,
			      t->request->name.at);
	return error ? mf_why(t->why, t->why_size, error, "no memory for the name") : 0;
}

static void give_up_name(struct mf_live_take *t)
{
	mf_lock_acquire(&t->m->live.lock);
	mf_name_table_remove(&t->m->live.table, &t->live->named);
	mf_lock_release(&t->m->live.lock);
}

int mf_live_grow_list(struct mf_live_take *t, size_t capacity)
{
	memfs_pfn *blocks = NULL;

	if (!mf_fault_hit(&t->m->fault, MF_FAULT_meta_alloc))
		blocks = realloc(t->live->blocks, capacity * sizeof(*blocks));
	if (!blocks)
		return mf_why(t->why, t->why_size, -ENOMEM, "no memory to list %zu blocks", capacity);
	t->live->blocks = blocks;
	t->capacity = capacity;
	return 0;
}

/* --- blocks (MF_LIVE_PAGES) --- */

static int check_blocks(struct mf_live_take *t)
{
	const struct mf_live_request *request = t->request;

	if (t->page.order > MEMFS_MAX_PAGE_ORDER)
		return mf_why(t->why, t->why_size, -EINVAL, "order %u is not in 0..%d", t->page.order,
			      MEMFS_MAX_PAGE_ORDER);
	if (request->count < 1)
		return mf_why(t->why, t->why_size, -EINVAL, "count is 0");
	if (request->bulk && t->page.order)
		return mf_why(t->why, t->why_size, -EINVAL, "via=bulk is for order 0");
	return 0;
}

/* More than all nodes hold can only be meant as "what there is". */
static int check_count(struct mf_live_take *t)
{
	uint64_t blocks = t->m->topo->nr_pages >> t->page.order;

	t->limit = t->request->count;
	if (t->limit <= blocks)
		return 0;
	if (!t->request->partial)
		return mf_why(t->why, t->why_size, -ENOMEM,
			      "%llu blocks of order %u asked, all nodes hold %llu",
			      (unsigned long long)t->request->count, t->page.order,
			      (unsigned long long)blocks);
	t->limit = blocks ? blocks : 1;
	return 0;
}

static int take_bulk(struct mf_live_take *t)
{
	int error = mf_live_grow_list(t, t->limit);

	if (error)
		return error;
	t->live->nr_blocks =
		mf_page_alloc_bulk(t->m->page, &t->task->place, &t->page, t->limit, t->live->blocks);
	return mf_live_cancelled(t) ? mf_live_interrupted(t) : 0;
}

static int take_one(struct mf_live_take *t)
{
	struct mf_live *live = t->live;
	size_t capacity;
	int error = 0;

	if (live->nr_blocks == t->capacity) {
		capacity = t->capacity ? t->capacity * 2 : FIRST_CAPACITY;
		error = mf_live_grow_list(t, capacity < t->limit ? capacity : t->limit);
	}
	if (error)
		return error;
	t->page.index = live->nr_blocks;
	error = mf_page_alloc(t->m->page, &t->task->place, &t->page, &live->blocks[live->nr_blocks]);
	if (!error)
		live->nr_blocks++;
	return error;
}

static int take_singly(struct mf_live_take *t)
{
	int error = 0;

	while (!error && t->live->nr_blocks < t->limit) {
		if (mf_live_cancelled(t))
			return mf_live_interrupted(t);
		error = take_one(t);
	}
	if (error == -EINTR)
		return mf_live_interrupted(t);
	return error == -ENOMEM ? 0 : error; /* how much that was is judged by the caller */
}

/* Everything asked for, or with partial at least one block. */
static int judge(struct mf_live_take *t)
{
	size_t got = t->live->nr_blocks;

	if (got == t->request->count || (t->request->partial && got))
		return 0;
	if (t->why && t->why_size && *t->why) /* it was not the arenas that were short */
		return -ENOMEM;
	return mf_why(t->why, t->why_size, -ENOMEM, "%llu blocks of order %u asked, %zu were there",
		      (unsigned long long)t->request->count, t->page.order, got);
}

static int touch(struct mf_live_take *t)
{
	struct mf_live *live = t->live;
	size_t bytes = (size_t)MEMFS_PAGE_SIZE << live->order;

	if (!t->request->touch || live->cleared)
		return 0;
	for (size_t i = 0; i < live->nr_blocks; i++) {
		if (mf_live_cancelled(t))
			return mf_live_interrupted(t);
		memset(mf_page_address(t->m->page, live->blocks[i].v), 0, bytes);
	}
	live->cleared = true;
	return 0;
}

static int take_blocks(struct mf_live_take *t)
{
	int error = t->request->bulk ? take_bulk(t) : take_singly(t);

	if (!error)
		error = judge(t);
	return error ? error : touch(t);
}

/* --- any kind --- */

const struct mf_live_kind_ops mf_live_kinds[] = {
	[MF_LIVE_PAGES] = {
		.prefix = "pages",
		.units = "blocks",
		.check = check_blocks,
		.prepare = check_count,
		.take = take_blocks,
		.give_back = mf_live_give_back_blocks,
	},
	[MF_LIVE_VMALLOC] = {
		.prefix = "vmalloc",
		.units = "pages",
		.whole = true,
		.check = mf_live_check_range,
		.prepare = mf_live_prepare_range,
		.take = mf_live_take_range,
		.give_back = mf_live_give_back_range,
	},
	[MF_LIVE_SLAB] = {
		.prefix = "slab",
		.units = "objects",
		.check = mf_live_check_objects,
		.prepare = mf_live_prepare_objects,
		.take = mf_live_take_objects,
		.give_back = mf_live_give_back_objects,
	},
};

/* Pages under the name, all or nothing. */
static int take_pages(struct mf_live_take *t)
{
	const struct mf_live_kind_ops *kind = &mf_live_kinds[t->live->kind];
	bool moves = t->page.node == MF_NODE_BY_POLICY && !t->page.vma;
	struct mf_task_turn turn = { .held = false };
	int error = 0;

	if (moves && mf_task_turn_begin(t->task, t->page.cancel, &turn))
		return mf_live_interrupted(t);
	error = kind->take(t);
	if (error && t->live->nr_blocks) {
		kind->give_back(t->live, t->task, 0, t->live->nr_blocks);
		t->live->nr_blocks = 0;
	}
	mf_task_turn_end(&turn, error != 0);
	return error;
}

/* --- publishing --- */

/* A list much longer than what it holds is cut; that it may stay where it is is no failure. */
static void trim_list(struct mf_live_take *t)
{
	struct mf_live *live = t->live;
	memfs_pfn *blocks;

	if (!live->blocks || t->capacity - live->nr_blocks < FIRST_CAPACITY)
		return;
	blocks = realloc(live->blocks, live->nr_blocks * sizeof(*blocks));
	if (blocks)
		live->blocks = blocks;
}

static void publish(struct mf_live_take *t)
{
	struct memfs *m = t->m;
	struct mf_live *live = t->live;

	trim_list(t);
	mf_live_count(live, 0, live->nr_blocks, t->by_node);
	for (int node = 0; node < 64; node++)
		if (t->by_node[node] && live->kind != MF_LIVE_SLAB)
			atomic_fetch_add(&t->task->live_pages[node], t->by_node[node]);
	mf_live_ref(live); /* the reply still needs it, and a free may come at once */
	mf_lock_acquire(&m->live.lock);
	live->ready = true;
	atomic_fetch_add(&m->live.nr_pages, mf_live_account(live, live->nr_blocks));
	mf_lock_acquire(&m->tasks.lock);
	t->task->nr_live++;
	mf_lock_release(&m->tasks.lock);
	mf_lock_release(&m->live.lock);
}

static void write_reply(struct mf_live_take *t, size_t nr_blocks, struct mf_outbuf *reply)
{
	if (!reply)
		return;
	mf_outbuf_printf(reply, "%s returned=%zu", t->live->named.name, nr_blocks);
	for (int node = 0; node < 64; node++)
		if (t->by_node[node])
			mf_outbuf_printf(reply, " node%d=%llu", node, (unsigned long long)t->by_node[node]);
	mf_outbuf_puts(reply, "\n");
}

static int fill_entry(struct mf_live_take *t)
{
	struct mf_live *live = new_live(t->m);

	if (!live)
		return mf_why(t->why, t->why_size, -ENOMEM, "no memory for the allocation's descriptor");
	t->live = live;
	live->kind = t->request->kind;
	live->task = t->task;
	memcpy(live->task_name, t->task->named.name, sizeof(live->task_name));
	live->irq = t->page.irq;
	live->order = t->page.order;
	live->cleared = t->page.gfp & MEMFS___GFP_ZERO;
	live->policy = policy_text(t);
	return live->policy ? 0 : mf_why(t->why, t->why_size, -ENOMEM, "no memory for the policy's text");
}

/* With the task pinned and the entry made: the name, the pages, the publication. */
static int take_named(struct mf_live_take *t, struct mf_outbuf *reply)
{
	size_t nr_blocks;
	int error = reserve_name(t);

	if (error)
		return error;
	error = mf_live_kinds[t->live->kind].prepare(t);
	if (!error)
		error = take_pages(t);
	if (error) {
		give_up_name(t);
		return error;
	}
	nr_blocks = t->live->nr_blocks;
	publish(t);
	write_reply(t, nr_blocks, reply);
	return 0;
}

int mf_live_alloc(struct memfs *m, const struct mf_live_request *request, struct mf_outbuf *reply, char *why,
		  size_t why_size)
{
	struct mf_live_take t = {
		.m = m, .request = request, .page = request->page, .why = why, .why_size = why_size
	};
	int error;

	if (why && why_size)
		*why = '\0';
	t.page.cpu = request->cpu;
	error = check_request(&t);
	if (!error)
		error = find_task(&t);
	if (error)
		return error;
	mf_live_begin(m);
	error = find_policy(&t);
	if (!error)
		error = fill_entry(&t);
	if (!error)
		error = take_named(&t, reply);
	if (t.live)
		mf_live_put(t.live); /* on success the table keeps its own reference */
	mf_task_put(t.task);
	mf_live_end(m);
	return error;
}
