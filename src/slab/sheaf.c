/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sheaves: a CPU's arrays of free objects, exchanged whole.
 *
 *   main     what the CPU's threads pop from and push to, by sequence
 *   remote   objects of other nodes that were freed here, on their way home
 *   spare    one more, so that a user who goes to and fro at the edge of main
 *            does not go below each time
 *   stock    full ones of a node, shared by its CPUs                 node.c
 *   pool     empty ones of the engine, shared by all its caches
 *
 * Sequences need nothing but main and remote, and so do handlers: while a thread
 * of the CPU works here, what it interrupts stays usable.  Each exchange is one
 * sequence, too, of a sheaf that was made ready in private for one that is
 * nobody's afterwards.  Whoever cannot use sequences (another CPU's thread, a
 * fixed CPU) shuts them out first: a visit.
 *
 * A sheaf's word counts what was taken while it was with its CPU; it is added to
 * the CPU's statistics when the sheaf leaves (fold).
 *
 * Invariants: main and remote are never NULL; an object is in one sheaf at most;
 * sheaves of stock, pool and spare have no taken objects in their word and
 * start = depth.  Memory of sheaves is never given back before the end, so a
 * sequence that looks at one too late reads rubbish and commits nothing.
 *
 * Locks: pc->lock is held; SLAB_NODE inside it, and what pool.c takes.
 */
#include "slab/slab_internal.h"

_Static_assert(offsetof(struct mf_sheaf, word) == 0, "mf_rseq_sheaf_pop()");
_Static_assert(offsetof(struct mf_sheaf, room) == MF_RSEQ_SHEAF_ROOM, "mf_rseq_sheaf_push()");
_Static_assert(offsetof(struct mf_sheaf, object) == MF_RSEQ_SHEAF_OBJECT, "mf_rseq_sheaf_pop()");
_Static_assert(sizeof(struct mf_cache_cpu) == 1u << MF_RSEQ_SHEAF_CPU_SHIFT, "mf_rseq_sheaf_pop_own()");
_Static_assert(offsetof(struct mf_cache_cpu, owner) == 0, "mf_rseq_sheaf_pop_own()");
_Static_assert(offsetof(struct mf_cache_cpu, tag) == MF_RSEQ_SHEAF_CPU_TAG, "mf_rseq_sheaf_push_own()");
_Static_assert(offsetof(struct mf_cache_cpu, main) == MF_RSEQ_SHEAF_CPU_MAIN, "mf_rseq_sheaf_pop_own()");
_Static_assert(MF_SHEAF_MOST < 65535u, "a sheaf's depth has 16 bits");

static uint64_t get_word(const struct mf_sheaf *sheaf)
{
	return __atomic_load_n(&sheaf->word, __ATOMIC_RELAXED);
}

static void set_word(struct mf_sheaf *sheaf, uint64_t word)
{
	__atomic_store_n(&sheaf->word, word, __ATOMIC_RELAXED);
}

static unsigned depth_of(const struct mf_sheaf *sheaf)
{
	return MF_SHEAF_DEPTH(get_word(sheaf));
}

static bool is_full(const struct mf_sheaf *sheaf)
{
	return depth_of(sheaf) == sheaf->room;
}

/* Objects the sheaves of a cache hold just now; 0: it goes without. */
static unsigned wanted_room(const struct mf_cache *cache)
{
	unsigned room = __atomic_load_n(&cache->knobs.sheaf_capacity, __ATOMIC_RELAXED);

	if (!__atomic_load_n(&cache->slabs->knobs.sheaves, __ATOMIC_RELAXED) || mf_cache_debugs(cache))
		return 0;
	return room > MF_SHEAF_MOST ? MF_SHEAF_MOST : room;
}

/* --- in and out --- */

static bool is_open(const struct mf_cache_cpu *pc)
{
	return __atomic_load_n(&pc->owner, __ATOMIC_RELAXED) != MF_RSEQ_SHUT;
}

/*
 * On the CPU itself one sequence shuts it, for no other sequence of that CPU can
 * be half-way then; from elsewhere the word is stored first and the fence makes
 * sure that whoever saw it open is gone.
 */
void mf_sheaf_visit_begin(struct mf_cache_cpu *pc)
{
	if (is_open(pc) && mf_rseq_shut(&pc->owner) != MF_RSEQ_DONE) {
		__atomic_store_n(&pc->owner, MF_RSEQ_SHUT, __ATOMIC_RELEASE);
		mf_rseq_fence(pc->cpu);
	}
}

/* The caller is a thread of the CPU whose sequences may use what the CPU has. */
static bool is_own(const struct mf_slab_work *w)
{
	const struct mf_slabs *slabs = w->cache->slabs;

	return slabs->use_rseq && w->place && mf_rseq_cpu() == w->pc->cpu &&
	       __atomic_load_n(&w->place->fast, __ATOMIC_RELAXED) & MF_FAST_AUTO;
}

static void enter(struct mf_slab_work *w)
{
	if (!is_own(w)) {
		mf_sheaf_visit_begin(w->pc);
	} else if (!is_open(w->pc)) {
		__atomic_store_n(&w->pc->owner, (uint32_t)w->pc->cpu, __ATOMIC_RELEASE);
	}
}

/* A sequence that misses may have been interrupted, or the thread has left the CPU: then it is a visitor. */
#define TRIES 4

static void *pop(struct mf_slab_work *w)
{
	struct mf_cache_cpu *pc = w->pc;
	struct mf_sheaf *sheaf;
	void *object = NULL;
	uint64_t word;

	for (unsigned i = 0; i < TRIES && is_open(pc); i++) {
		enum mf_rseq_result result =
			mf_rseq_sheaf_pop(w->cache->slabs->rseq, &pc->owner, &pc->main, &object);

		if (result != MF_RSEQ_MISS)
			return result == MF_RSEQ_DONE ? object : NULL;
	}
	mf_sheaf_visit_begin(pc);
	sheaf = pc->main;
	word = get_word(sheaf);
	if (!MF_SHEAF_DEPTH(word))
		return NULL;
	set_word(sheaf, word + MF_RSEQ_SHEAF_TAKE);
	return sheaf->object[MF_SHEAF_DEPTH(word) - 1];
}

static bool push(struct mf_slab_work *w, struct mf_sheaf **slot, void *object)
{
	struct mf_cache_cpu *pc = w->pc;
	struct mf_sheaf *sheaf;

	for (unsigned i = 0; i < TRIES && is_open(pc); i++) {
		enum mf_rseq_result result =
			mf_rseq_sheaf_push(w->cache->slabs->rseq, &pc->owner, slot, object);

		if (result != MF_RSEQ_MISS)
			return result == MF_RSEQ_DONE;
	}
	mf_sheaf_visit_begin(pc);
	sheaf = *slot;
	if (is_full(sheaf))
		return false;
	sheaf->object[depth_of(sheaf)] = object;
	set_word(sheaf, get_word(sheaf) + 1);
	return true;
}

/* @new takes the place of what comes back, which nobody else sees any more. */
static struct mf_sheaf *exchange(struct mf_slab_work *w, struct mf_sheaf **slot, struct mf_sheaf *new)
{
	struct mf_cache_cpu *pc = w->pc;
	struct mf_sheaf *old;

	for (unsigned i = 0; i < TRIES && is_open(pc); i++) {
		old = *slot;
		if (mf_rseq_sheaf_swap(w->cache->slabs->rseq, &pc->owner, slot, old, get_word(old), new) ==
		    MF_RSEQ_DONE)
			return old;
	}
	mf_sheaf_visit_begin(pc);
	old = *slot;
	__atomic_store_n(slot, new, __ATOMIC_RELAXED);
	return old;
}

/* --- counting --- */

void mf_sheaf_counts(const struct mf_sheaf *sheaf, uint64_t *allocs, uint64_t *frees)
{
	uint64_t word = get_word(sheaf);

	*allocs = word >> 16;
	*frees = *allocs + MF_SHEAF_DEPTH(word) - sheaf->start;
}

/* The sheaf has left its CPU: what was taken and put meanwhile. */
static uint64_t fold(struct mf_cache_cpu *pc, struct mf_sheaf *sheaf)
{
	uint64_t allocs, frees;

	mf_sheaf_counts(sheaf, &allocs, &frees);
	mf_slab_count(pc, MF_SLAB_STAT_alloc_cpu_sheaf, allocs);
	mf_slab_count(pc, MF_SLAB_STAT_alloc_fastpath, allocs);
	mf_slab_count(pc, MF_SLAB_STAT_free_cpu_sheaf, frees);
	mf_slab_count(pc, MF_SLAB_STAT_free_fastpath, frees);
	sheaf->start = (uint16_t)depth_of(sheaf);
	set_word(sheaf, sheaf->start);
	return frees;
}

/* --- a sheaf and the layers --- */

static unsigned node_of(const struct mf_slab_work *w, const void *object)
{
	return mf_slab_tag_of(w->cache->slabs, object) >> MF_TAG_NODE_SHIFT;
}

/* Objects of one node stand together, so that each node's lock is taken once. */
static void sort_by_node(const struct mf_slab_work *w, unsigned n, void **objects)
{
	unsigned done = 0;

	while (done < n) {
		unsigned node = node_of(w, objects[done++]);

		for (unsigned i = done; i < n; i++) {
			void *object = objects[i];

			if (node_of(w, object) != node)
				continue;
			objects[i] = objects[done];
			objects[done++] = object;
		}
	}
}

/* A folded sheaf becomes empty.  What the layers cannot take just now waits with what handlers left. */
static void give_all(struct mf_slab_work *w, struct mf_sheaf *sheaf)
{
	unsigned n = depth_of(sheaf);
	bool direct = w->direct;
	size_t done;

	if (!n)
		return;
	w->direct = false;
	sort_by_node(w, n, sheaf->object);
	done = mf_layers_give(w, n, sheaf->object);
	mf_cache_defer(w->cache, n - done, sheaf->object + done);
	w->direct = direct;
	mf_slab_count(w->pc, MF_SLAB_STAT_sheaf_flush, 1);
	sheaf->start = 0;
	set_word(sheaf, 0);
}

static bool fill(struct mf_slab_work *w, struct mf_sheaf *sheaf)
{
	size_t got = mf_layers_take(w, sheaf->room, sheaf->object);

	sheaf->start = (uint16_t)got;
	set_word(sheaf, got);
	if (got)
		mf_slab_count(w->pc, MF_SLAB_STAT_sheaf_refill, 1);
	return got > 0;
}

static void drop(struct mf_slab_work *w, struct mf_sheaf *sheaf)
{
	give_all(w, sheaf);
	mf_sheaf_free(w->cache->slabs, sheaf);
}

/* --- spare and stock --- */

static struct mf_sheaf *take_spare(struct mf_cache_cpu *pc)
{
	struct mf_sheaf *spare = pc->spare;

	pc->spare = NULL;
	return spare;
}

/* Into the stock, or into the layers and the pool. */
static void put_away(struct mf_slab_work *w, struct mf_sheaf *sheaf)
{
	bool put;

	if (!depth_of(sheaf)) {
		mf_sheaf_free(w->cache->slabs, sheaf);
		return;
	}
	put = is_full(sheaf) && mf_stock_put(w->cache, w->pc->node, sheaf, w->only_try);
	mf_slab_count(w->pc, put ? MF_SLAB_STAT_barn_put : MF_SLAB_STAT_barn_put_fail, 1);
	if (!put)
		drop(w, sheaf);
}

/* A folded sheaf becomes the spare; the fuller of two stays, as it can serve longest. */
static void keep(struct mf_slab_work *w, struct mf_sheaf *sheaf)
{
	struct mf_sheaf *other = take_spare(w->pc);

	if (other && depth_of(other) > depth_of(sheaf)) {
		w->pc->spare = other;
		put_away(w, sheaf);
		return;
	}
	w->pc->spare = sheaf;
	if (other)
		put_away(w, other);
}

static struct mf_sheaf *take_from_stock(struct mf_slab_work *w)
{
	struct mf_sheaf *sheaf = mf_stock_get(w->cache, w->pc->node, w->only_try);

	mf_slab_count(w->pc, sheaf ? MF_SLAB_STAT_barn_get : MF_SLAB_STAT_barn_get_fail, 1);
	return sheaf;
}

/*
 * A sheaf made ready becomes main.  While it was filled the lock may have been
 * let go, and the sheaves switched off or made smaller: then it is too late.
 */
static void publish(struct mf_slab_work *w, struct mf_sheaf *sheaf)
{
	struct mf_sheaf *old;

	if (sheaf->room != wanted_room(w->cache)) {
		fold(w->pc, sheaf);
		drop(w, sheaf);
		return;
	}
	old = exchange(w, &w->pc->main, sheaf);
	if (old == &w->cache->slabs->nothing)
		return;
	fold(w->pc, old);
	keep(w, old);
}

/* --- taking --- */

static void *take_one(struct mf_sheaf *sheaf)
{
	uint64_t word = get_word(sheaf);

	set_word(sheaf, word + MF_RSEQ_SHEAF_TAKE);
	return sheaf->object[MF_SHEAF_DEPTH(word) - 1];
}

/* Objects from below, to be main: NULL, nothing there, or *no_sheaf: nothing to carry them in. */
static struct mf_sheaf *refilled(struct mf_slab_work *w, unsigned room, bool *no_sheaf)
{
	struct mf_sheaf *sheaf = take_spare(w->pc);

	if (!sheaf)
		sheaf = mf_sheaf_new(w->cache->slabs, room, w->only_try);
	*no_sheaf = !sheaf;
	if (!sheaf || fill(w, sheaf))
		return sheaf;
	keep(w, sheaf);
	return NULL;
}

void *mf_sheaf_alloc(struct mf_slab_work *w)
{
	unsigned room = wanted_room(w->cache);
	struct mf_sheaf *sheaf = NULL;
	bool no_sheaf = false;
	void *object;

	if (!room)
		return mf_layers_take_one(w);
	enter(w);
	object = pop(w);
	if (object)
		return object;
	if (w->pc->spare && depth_of(w->pc->spare))
		sheaf = take_spare(w->pc);
	if (!sheaf)
		sheaf = take_from_stock(w);
	if (!sheaf)
		sheaf = refilled(w, room, &no_sheaf);
	if (no_sheaf)
		return mf_layers_take_one(w);
	if (!sheaf) {
		mf_slab_count(w->pc, MF_SLAB_STAT_alloc_slowpath, 1);
		return NULL;
	}
	object = take_one(sheaf);
	publish(w, sheaf);
	return object;
}

size_t mf_sheaf_take(struct mf_slab_work *w, size_t n, void **objects)
{
	size_t got = 0;

	if (!wanted_room(w->cache))
		return 0;
	enter(w);
	while (got < n) {
		struct mf_sheaf *sheaf;

		while (got < n && (objects[got] = pop(w)))
			got++;
		if (got == n)
			break;
		sheaf = w->pc->spare && depth_of(w->pc->spare) ? take_spare(w->pc) : take_from_stock(w);
		if (!sheaf)
			break;
		publish(w, sheaf);
	}
	return got;
}

/* --- giving --- */

/* A sheaf with room for one object at least; NULL: no memory for one. */
static struct mf_sheaf *with_room(struct mf_slab_work *w, unsigned room)
{
	struct mf_sheaf *spare = take_spare(w->pc), *sheaf;

	if (spare && !is_full(spare))
		return spare;
	sheaf = mf_sheaf_new(w->cache->slabs, room, w->only_try);
	if (sheaf && spare)
		put_away(w, spare);
	else if (spare)
		give_all(w, spare);
	return sheaf ? sheaf : spare;
}

static bool give_own(struct mf_slab_work *w, unsigned room, void *object)
{
	struct mf_sheaf *sheaf = with_room(w, room);
	unsigned depth;

	if (!sheaf)
		return false;
	depth = depth_of(sheaf);
	sheaf->object[depth] = object;
	set_word(sheaf, depth + 1);
	publish(w, sheaf);
	return true;
}

/* The objects of other nodes go home together. */
static void send_home(struct mf_slab_work *w, struct mf_sheaf *sheaf)
{
	if (sheaf == &w->cache->slabs->nothing)
		return;
	mf_slab_count(w->pc, MF_SLAB_STAT_free_remote, fold(w->pc, sheaf));
	drop(w, sheaf);
}

static bool give_remote(struct mf_slab_work *w, unsigned room, void *object)
{
	struct mf_sheaf *sheaf = mf_sheaf_new(w->cache->slabs, room, w->only_try);

	if (!sheaf)
		return false;
	sheaf->object[0] = object;
	set_word(sheaf, 1);
	send_home(w, exchange(w, &w->pc->remote, sheaf));
	return true;
}

bool mf_sheaf_give(struct mf_slab_work *w, void *object, bool is_remote)
{
	unsigned room = wanted_room(w->cache);

	if (!room)
		return false;
	enter(w);
	if (push(w, is_remote ? &w->pc->remote : &w->pc->main, object))
		return true;
	return is_remote ? give_remote(w, room, object) : give_own(w, room, object);
}

/* --- flushing --- */

void mf_sheaf_flush(struct mf_slab_work *w)
{
	struct mf_sheaf *nothing = &w->cache->slabs->nothing;
	struct mf_sheaf *main = exchange(w, &w->pc->main, nothing);
	struct mf_sheaf *spare = take_spare(w->pc);

	send_home(w, exchange(w, &w->pc->remote, nothing));
	if (main != nothing) {
		fold(w->pc, main);
		drop(w, main);
	}
	if (spare)
		drop(w, spare);
}

void mf_stock_flush(struct mf_slab_work *w)
{
	struct mf_sheaf *sheaf;

	for (int node = 0; node < MEMFS_MAX_NODES; node++)
		while (w->cache->node[node] && (sheaf = mf_stock_get(w->cache, node, w->only_try)))
			drop(w, sheaf);
}
