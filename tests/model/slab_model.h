/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What model_slab.c knows of the objects it holds: whose they are, what they
 * contain, how many each cache has handed out.
 */
#ifndef MF_TESTS_SLAB_MODEL_H
#define MF_TESTS_SLAB_MODEL_H

#include "plat/plat_sim.h"
#include "slab/slab_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NR_TASKS 4
#define MOST_OBJECTS 6000

/* A kind of cache that comes and goes; two of the same shape may be one. */
struct shape {
	const char *name;
	uint32_t size, align;
	unsigned flags;
	bool ctor;
};

struct object {
	char *at;
	struct mf_cache *cache; /* NULL: a block of kmalloc's */
	int kind;		/* of shapes[], -1 by size */
	uint64_t size, tag;
};

struct run {
	uint64_t seed, state, operation;
	const char *machine;
	bool leaves; /* at the end objects are still there */
	unsigned failures;
	bool provokes; /* a report is what is wanted */
	unsigned reports;
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *pg;
	struct mf_slabs *slabs;
	struct mf_stat_set *stat;
	struct mf_weights weights;
	struct mf_placement place[NR_TASKS];
	struct mf_cache **cache; /* by shape, NULL: not there */
	size_t *held;		 /* objects of the shape */
	struct object object[MOST_OBJECTS];
	size_t nr_objects;
	uint64_t next_tag;
	struct mf_lock *interrupted; /* held by whom the operations have interrupted, NULL: nobody */
	struct mf_zone_info before[16];
	unsigned zone[16], nr_zones;
};

static uint64_t next_random(struct run *run)
{
	uint64_t z = run->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t below(struct run *run, uint64_t bound)
{
	return next_random(run) % bound;
}

static void expect(struct run *run, bool holds, const char *what)
{
	if (holds)
		return;
	run->failures++;
	if (run->failures <= 5)
		printf("seed %" PRIu64 " machine '%.30s' operation %" PRIu64 ": %s\n", run->seed,
		       run->machine, run->operation, what);
}

static void on_report(void *arg, const char *text)
{
	struct run *run = arg;

	run->reports++;
	expect(run, run->provokes, text);
	expect(run, !run->provokes || mf_lock_depth() == (run->interrupted ? 1 : 0), "a report under a lock");
}

/* --- contents: words at both ends, and all that is between them if it is little --- */

#define CONSTRUCTED 0xc0

static void construct(void *object)
{
	memset(object, CONSTRUCTED, 8);
}

static char byte_of(const struct object *object, uint64_t i)
{
	return (char)((object->tag * 0x9e3779b97f4a7c15 >> (i % 8 * 8)) + i / 8);
}

static uint64_t next_touched(const struct object *object, uint64_t i)
{
	return i == 255 && object->size > 512 ? object->size - 256 : i + 1;
}

static void fill(const struct object *object)
{
	for (uint64_t i = 0; i < object->size; i = next_touched(object, i))
		object->at[i] = byte_of(object, i);
}

static bool is_filled(const struct object *object)
{
	for (uint64_t i = 0; i < object->size; i = next_touched(object, i))
		if (object->at[i] != byte_of(object, i))
			return false;
	return true;
}

static bool is_clear(const struct object *object)
{
	for (uint64_t i = 0; i < object->size; i = next_touched(object, i))
		if (object->at[i])
			return false;
	return true;
}

static bool is_constructed(const struct object *object)
{
	for (int i = 0; i < 8; i++)
		if ((unsigned char)object->at[i] != CONSTRUCTED)
			return false;
	return true;
}

/* --- objects --- */

static int node_of(const struct run *run, const void *object)
{
	uint32_t pfn;

	return mf_page_address_pfn(run->pg, object, &pfn) ? mf_page_node(run->pg, pfn) : -1;
}

static struct object *add(struct run *run, void *at, int kind, uint64_t size)
{
	struct object *object = &run->object[run->nr_objects++];

	*object = (struct object){ .at = at, .kind = kind, .size = size, .tag = run->next_tag++ };
	object->cache = mf_cache_of(run->slabs, at);
	if (kind >= 0) {
		expect(run, object->cache == run->cache[kind], "an object of another cache");
		run->held[kind]++;
	}
	expect(run, node_of(run, at) >= 0, "an object that lies nowhere");
	return object;
}

/* Off the list; what it contained is checked, and a constructor's object is as it made it. */
static struct object take_off(struct run *run, size_t at, const struct shape *shapes)
{
	struct object object = run->object[at];

	expect(run, is_filled(&object), "contents changed");
	run->object[at] = run->object[--run->nr_objects];
	if (object.kind >= 0) {
		run->held[object.kind]--;
		if (shapes[object.kind].ctor)
			construct(object.at);
	}
	return object;
}

static uint64_t count_held(const struct run *run, const struct mf_cache *cache)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < run->nr_objects; i++)
		nr += run->object[i].cache == cache;
	return nr;
}

#endif
