/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An instance on the simulated host, for the tests of src/engine/.  Its
 * platform counts what was not given back when the instance is destroyed.
 */
#ifndef MF_TESTS_ENGINE_FIXTURE_H
#define MF_TESTS_ENGINE_FIXTURE_H

#include "engine/engine.h"
#include "engine/live.h"
#include "plat/plat_sim.h"
#include "unit.h"

#include <errno.h>

#define ORDERS MF_NR_ORDERS

static struct mf_plat_ops fixture_ops;
static const struct mf_plat_ops *fixture_real_ops;
static unsigned fixture_leaked;

static inline void fixture_plat_destroy(struct mf_plat *plat)
{
	fixture_leaked += mf_plat_sim_outstanding(plat);
	fixture_real_ops->destroy(plat);
}

/* A host with these nodes (NULL, 0: none that anybody could ask about). */
static inline struct mf_plat *fixture_plat(const struct mf_plat_node *nodes, unsigned nr_nodes)
{
	struct mf_plat *plat = NULL;

	if (mf_plat_sim_create(nodes, nr_nodes, &plat))
		abort();
	fixture_real_ops = plat->ops;
	fixture_ops = *plat->ops;
	fixture_ops.destroy = fixture_plat_destroy;
	plat->ops = &fixture_ops;
	return plat;
}

static inline struct memfs *fixture_on(struct mf_plat *plat, const char *options)
{
	struct memfs *m = NULL;
	char why[256] = "";
	int error = mf_engine_create(options, plat, &m, why, sizeof(why));

	if (error) {
		fprintf(stderr, "cannot create %s: %d %s\n", options, error, why);
		abort();
	}
	return m;
}

static inline struct memfs *fixture(const char *options)
{
	return fixture_on(fixture_plat(NULL, 0), options);
}

/* Destroys the instance; everything must have gone back to the platform. */
static inline void fixture_end(struct memfs *m)
{
	fixture_leaked = 0;
	mf_engine_destroy(m);
	CU_ASSERT_EQUAL(fixture_leaked, 0);
}

/*
 * buddyinfo: free blocks by zone and order, whatever their type, when nothing
 * is kept back on lists, for ranges or for objects.
 */
struct free_table {
	uint64_t blocks[MF_MAX_ZONES][ORDERS];
};

static inline void fixture_shrink(void *arg, const char *name, struct mf_cache *cache, bool alias)
{
	(void)arg, (void)name, (void)alias;
	mf_cache_shrink(cache);
}

static inline struct free_table *free_table(struct memfs *m)
{
	struct free_table *table = calloc(1, sizeof(*table));
	struct mf_zone_info *info = calloc(1, sizeof(*info));

	if (!table || !info)
		abort();
	mf_cache_for_each(m->slabs, false, fixture_shrink, NULL);
	mf_vmalloc_purge(m->vmalloc);
	mf_page_drain(m->page, -1);
	for (unsigned zone = 0; zone < MF_MAX_ZONES; zone++) {
		if (!mf_page_zone_info(m->page, zone, info))
			continue;
		for (int type = 0; type < MF_NR_MIGRATE_TYPES; type++)
			for (int order = 0; order < ORDERS; order++)
				table->blocks[zone][order] += info->nr_free[type][order];
	}
	free(info);
	return table;
}

/* Compares with how it was and frees that. */
static inline bool same_free_table(struct memfs *m, struct free_table *before)
{
	struct free_table *now = free_table(m);
	bool same = memcmp(before, now, sizeof(*now)) == 0;

	free(before);
	free(now);
	return same;
}

static inline struct mf_live_request request_of(const char *name, uint64_t count)
{
	return (struct mf_live_request){
		.name = mf_text_of(name),
		.count = count,
		.bulk = count > 1,
		.page = { .gfp = MEMFS_GFP_KERNEL, .node = MF_NODE_BY_POLICY, .cpu = MF_CPU_OF_TASK },
		.task = mf_text_of(""),
		.policy_text = mf_text_of(""),
		.cpu = MF_CPU_OF_TASK,
	};
}

static inline struct mf_live_request range_of(const char *name, uint64_t size)
{
	struct mf_live_request request = request_of(name, 0);

	request.kind = MF_LIVE_VMALLOC;
	request.size = size;
	return request;
}

/* Objects of a cache, or (cache NULL) of so many bytes. */
static inline struct mf_live_request objects_of(const char *name, const char *cache, uint64_t size,
						uint64_t count)
{
	struct mf_live_request request = request_of(name, count);

	request.kind = MF_LIVE_SLAB;
	request.cache = mf_text_of(cache ? cache : "");
	request.size = size;
	request.bulk = false;
	return request;
}

/* Performs it; the reply (or the reason) is kept for the next call to overwrite. */
static char fixture_text[512];

static inline int do_alloc(struct memfs *m, const struct mf_live_request *request)
{
	struct mf_outbuf reply = MF_OUTBUF_INIT;
	char why[256] = "";
	int error = mf_live_alloc(m, request, &reply, why, sizeof(why));

	snprintf(fixture_text, sizeof(fixture_text), "%s", error ? why : reply.data);
	mf_outbuf_free(&reply);
	return error;
}

static inline int do_free(struct memfs *m, const char *name, uint64_t count)
{
	struct mf_outbuf reply = MF_OUTBUF_INIT;
	char why[256] = "";
	int error = mf_live_free(m, mf_text_of(name), count, &reply, why, sizeof(why));

	snprintf(fixture_text, sizeof(fixture_text), "%s", error ? why : reply.data);
	mf_outbuf_free(&reply);
	return error;
}

/* The entry of that name, referenced: there is one. */
static inline struct mf_live *get(struct memfs *m, const char *name)
{
	struct mf_live *live = mf_live_get(m, mf_text_of(name));

	if (!live)
		abort();
	return live;
}

/* What a show function prints, compared and forgotten. */
static inline bool shows(struct mf_live *live, int (*show)(struct mf_live *, struct mf_outbuf *),
			 const char *wanted)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	int error = show(live, &out);
	bool same = !error && out.length && strcmp(out.data, wanted) == 0;

	if (!same)
		fprintf(stderr, "shown: %d %s", error, out.length ? out.data : "\n");
	mf_outbuf_free(&out);
	return same;
}

static inline bool all_zero(const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i])
			return false;
	return true;
}

static inline void set_policy(struct memfs *m, const char *policy)
{
	char why[256] = "";

	if (mf_task_set_policy(m->tasks.default_task, mf_text_of(policy), why, sizeof(why))) {
		fprintf(stderr, "%s: %s\n", policy, why);
		abort();
	}
}

/* What the check prints. */
static inline bool check_says(struct memfs *m, const char *wanted)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	bool found;

	mf_engine_check(m, &out);
	found = out.length && strstr(out.data, wanted);
	if (!found)
		fprintf(stderr, "check: %s", out.length ? out.data : "(nothing)\n");
	mf_outbuf_free(&out);
	return found;
}

#define ASSERT_TEXT(wanted) CU_ASSERT_STRING_EQUAL(fixture_text, wanted)
#define ASSERT_SAYS(wanted) CU_ASSERT_PTR_NOT_NULL(strstr(fixture_text, wanted))

#endif
