/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Walks over every object of a cache with debugging: are they all sound, and
 * who has them (the kernel's alloc_traces and free_traces, one line a place).
 *
 * A line is "count place age=least/mean/most pid=from-to cpus=list nodes=list";
 * ages are in milliseconds, pid is the thread, and what is the same throughout
 * stands there once.  Only objects in use are counted, by who allocated them or
 * by who had freed them before.
 *
 * Locks: one node's at a time; reports are sent with none held.
 */
#include "slab/debug.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FREE_WORDS ((MF_SLAB_MAX_OBJECTS + 64) / 64)

typedef void visit_fn(void *arg, uint32_t pfn);

static void for_each_slab(struct mf_cache *cache, int node, visit_fn *visit, void *arg)
{
	struct mf_slabs *slabs = cache->slabs;
	struct mf_cache_node *n = cache->node[node];

	mf_lock_acquire(&n->lock);
	for (uint32_t link = n->head; link; link = mf_slab_at(slabs, mf_slab_pfn(link))->next)
		visit(arg, mf_slab_pfn(link));
	for (uint32_t link = n->full; link; link = mf_slab_at(slabs, mf_slab_pfn(link))->next)
		visit(arg, mf_slab_pfn(link));
	mf_lock_release(&n->lock);
}

static char *object_at(const struct mf_cache *cache, uint32_t pfn, unsigned index)
{
	return mf_debug_slab_base(cache, pfn) + (uint64_t)index * cache->geometry.size +
	       cache->geometry.red_left;
}

/* A bit an object that is on the free list; NULL, or the one whose pointer leads astray. */
static const void *mark_free(const struct mf_cache *cache, uint32_t pfn, uint64_t free[FREE_WORDS])
{
	const struct mf_slab *slab = mf_slab_at(cache->slabs, pfn);
	unsigned nr = 0;

	memset(free, 0, FREE_WORDS * sizeof(*free));
	for (const void *at = slab->freelist, *next; at; at = next) {
		unsigned index = (unsigned)((uintptr_t)((const char *)at - object_at(cache, pfn, 0)) /
					    cache->geometry.size);

		free[index / 64] |= UINT64_C(1) << index % 64;
		next = mf_slab_next_free(cache, at);
		if (++nr > slab->objects || (next && !mf_debug_is_object(cache, pfn, next)))
			return at;
	}
	return NULL;
}

static bool is_free(const uint64_t *free, unsigned index)
{
	return free[index / 64] >> index % 64 & 1;
}

/* --- validating --- */

struct validation {
	struct mf_cache *cache;
	struct mf_outbuf lines;
	unsigned problems;
};

static void note(struct validation *v, struct mf_slab_report *report)
{
	v->problems++;
	mf_outbuf_write(&v->lines, report->text, report->length + 1);
	report->length = 0;
}

static void validate_slab(void *arg, uint32_t pfn)
{
	struct validation *v = arg;
	struct mf_slab_report report = { .length = 0 };
	const struct mf_slab *slab = mf_slab_at(v->cache->slabs, pfn);
	uint64_t free[FREE_WORDS];
	unsigned before = v->problems;
	const void *astray;

	if (mf_debug_is_abandoned(slab))
		return;
	astray = mark_free(v->cache, pfn, free);
	for (unsigned i = 0; i < slab->objects; i++) {
		const char *object = object_at(v->cache, pfn, i);

		/* Behind a lost pointer nobody knows which objects are free. */
		if ((!astray || is_free(free, i)) &&
		    !mf_debug_check_object(v->cache, pfn, object, !is_free(free, i), &report))
			note(v, &report);
	}
	if (astray && v->problems == before) {
		mf_debug_begin_report(&report, v->cache, astray, "free list runs in a circle");
		note(v, &report);
	}
	if (!mf_debug_check_padding(v->cache, pfn, &report))
		note(v, &report);
}

static void send_lines(struct mf_slabs *slabs, const struct mf_outbuf *lines)
{
	mf_slab_report_fn *tell = __atomic_load_n(&slabs->report, __ATOMIC_ACQUIRE);

	for (size_t at = 0; tell && at < lines->length; at += strlen(lines->data + at) + 1)
		tell(slabs->report_arg, lines->data + at);
}

static void take_deferred(struct mf_cache *cache)
{
	struct mf_cache_cpu *pc = mf_cache_cpu_get(cache, NULL);

	if (pc)
		mf_debug_take_deferred(cache, pc, NULL);
}

unsigned mf_cache_validate(struct mf_cache *cache)
{
	struct validation v = { .cache = cache, .lines = MF_OUTBUF_INIT };

	if (!mf_cache_debugs(cache))
		return 0;
	take_deferred(cache);
	for (int node = 0; node < MEMFS_MAX_NODES; node++)
		if (cache->node[node])
			for_each_slab(cache, node, validate_slab, &v);
	send_lines(cache->slabs, &v.lines);
	mf_outbuf_free(&v.lines);
	return v.problems;
}

/* --- places --- */

struct place {
	const void *caller;
	uint64_t count, ages, least, most; /* ages in ms */
	int32_t first_thread, last_thread;
	uint64_t cpus[(MF_MAX_CPUS + 63) / 64];
	mf_nodemask nodes;
};

struct census {
	struct mf_cache *cache;
	unsigned which; /* of the two records */
	uint64_t now;
	struct place *places; /* by rising caller */
	size_t nr, room;
	int error;
};

/* Where the caller is, or would be. */
static size_t find_place(const struct census *c, const void *caller)
{
	size_t low = 0, high = c->nr;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if ((uintptr_t)c->places[middle].caller < (uintptr_t)caller)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct place *get_place(struct census *c, const void *caller)
{
	size_t at = find_place(c, caller);

	if (at < c->nr && c->places[at].caller == caller)
		return &c->places[at];
	if (c->nr == c->room) {
		size_t room = c->room ? 2 * c->room : 64;
		struct place *places = realloc(c->places, room * sizeof(*places));

		if (!places) {
			c->error = -ENOMEM;
			return NULL;
		}
		c->places = places;
		c->room = room;
	}
	memmove(&c->places[at + 1], &c->places[at], (c->nr - at) * sizeof(*c->places));
	c->nr++;
	c->places[at] = (struct place){
		.caller = caller, .least = UINT64_MAX, .first_thread = INT32_MAX, .last_thread = INT32_MIN
	};
	return &c->places[at];
}

static void count_track(struct census *c, const struct mf_slab_track *track, int node)
{
	struct place *place = get_place(c, track->caller);
	uint64_t age = c->now > track->when ? (c->now - track->when) / 1000000 : 0;

	if (!place)
		return;
	place->nodes |= mf_node_bit(node);
	/* One stands for all that nobody had, as in the kernel. */
	if (place->count++ && !track->when)
		return;
	place->ages += age;
	place->least = age < place->least ? age : place->least;
	place->most = age > place->most ? age : place->most;
	place->first_thread = track->thread < place->first_thread ? track->thread : place->first_thread;
	place->last_thread = track->thread > place->last_thread ? track->thread : place->last_thread;
	if (track->cpu >= 0 && track->cpu < MF_MAX_CPUS)
		place->cpus[track->cpu / 64] |= UINT64_C(1) << track->cpu % 64;
}

static void count_slab(void *arg, uint32_t pfn)
{
	struct census *c = arg;
	const struct mf_slab *slab = mf_slab_at(c->cache->slabs, pfn);
	uint64_t free[FREE_WORDS];

	if (mf_debug_is_abandoned(slab) || mark_free(c->cache, pfn, free))
		return;
	for (unsigned i = 0; i < slab->objects; i++) {
		const char *records = object_at(c->cache, pfn, i) + c->cache->geometry.track;
		struct mf_slab_track track;

		memcpy(&track, records + c->which * sizeof(track), sizeof(track));
		if (!is_free(free, i))
			count_track(c, &track, slab->node);
	}
}

static int by_count(const void *a, const void *b)
{
	const struct place *one = a, *other = b;

	if (one->count != other->count)
		return one->count < other->count ? 1 : -1;
	return (uintptr_t)one->caller < (uintptr_t)other->caller ? -1 : 1;
}

static void print_place(const struct place *place, struct mf_outbuf *out)
{
	mf_outbuf_printf(out, "%7llu ", (unsigned long long)place->count);
	if (place->caller)
		mf_outbuf_printf(out, "%p", place->caller);
	else
		mf_outbuf_puts(out, "<not-available>");
	mf_outbuf_printf(out, " age=%llu", (unsigned long long)place->least);
	if (place->ages != place->least)
		mf_outbuf_printf(out, "/%llu/%llu", (unsigned long long)(place->ages / place->count),
				 (unsigned long long)place->most);
	mf_outbuf_printf(out, " pid=%d", (int)place->first_thread);
	if (place->first_thread != place->last_thread)
		mf_outbuf_printf(out, "-%d", (int)place->last_thread);
	mf_outbuf_puts(out, " cpus=");
	mf_outbuf_list(out, place->cpus, MF_MAX_CPUS);
	mf_outbuf_puts(out, " nodes=");
	mf_outbuf_nodelist(out, place->nodes);
	mf_outbuf_puts(out, "\n");
}

int mf_cache_traces(struct mf_cache *cache, bool frees, struct mf_outbuf *out)
{
	struct mf_plat *plat = cache->slabs->plat;
	struct census c = { .cache = cache, .which = frees, .now = plat->ops->now_ns(plat) };

	if (!cache->geometry.track)
		return -EINVAL;
	take_deferred(cache);
	for (int node = 0; node < MEMFS_MAX_NODES; node++)
		if (cache->node[node])
			for_each_slab(cache, node, count_slab, &c);
	if (c.nr)
		qsort(c.places, c.nr, sizeof(*c.places), by_count);
	else
		mf_outbuf_puts(out, "No data\n");
	for (size_t i = 0; i < c.nr; i++)
		print_place(&c.places[i], out);
	free(c.places);
	return c.error ? c.error : mf_outbuf_error(out);
}
