/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * slab/create, the files of a cache that are written, and sums over all caches.
 *
 * There is no failslab: debug/fault/ makes allocations fail on purpose.
 *
 * Locks: mf_ctl.slab_knobs (outside the order) around each change of a cache's
 * knobs, so that two writers of different knobs do not undo each other.  The
 * cache is pinned meanwhile; nothing else is held, as a change may empty CPUs.
 */
#include "base/why.h"
#include "ctl/ctl_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* --- slab/create --- */

static const struct {
	const char *name;
	unsigned flag;
} flags[] = {
#define FLAG_ROW(NAME, name_, help) { name_, MF_SLAB_FLAG(NAME) },
	MF_SLAB_FLAGS(FLAG_ROW)
#undef FLAG_ROW
};

#define NR_FLAGS (sizeof(flags) / sizeof(flags[0]))

struct create {
	struct mf_cache_request *request;
	char *why;
	size_t why_size;
};

/* Text for a reason: no more of it than helps. */
static int shown(struct mf_text text)
{
	return text.length > 64 ? 64 : (int)text.length;
}

static int parse_flag(struct create *c, struct mf_text word)
{
	unsigned i = 0;

	while (i < NR_FLAGS && !mf_text_is(word, flags[i].name))
		i++;
	if (i == NR_FLAGS)
		return mf_why(c->why, c->why_size, -EINVAL, "\"%.*s\" is not a flag", shown(word), word.at);
	if (c->request->flags & flags[i].flag)
		return mf_why(c->why, c->why_size, -EINVAL, "%s twice", flags[i].name);
	c->request->flags |= flags[i].flag;
	return 0;
}

/* "a,b,c": no item is empty. */
static int parse_flags(struct create *c, struct mf_text value)
{
	bool more = true;
	int error = 0;

	while (more && !error) {
		struct mf_text word = value;

		more = memchr(value.at, ',', value.length) != NULL;
		word = mf_text_until(&value, ',');
		error = parse_flag(c, word);
	}
	return error;
}

static int parse_cache_size(struct create *c, struct mf_text value)
{
	uint64_t size;

	if (mf_parse_size(value, UINT32_MAX, &size) || !size)
		return mf_why(c->why, c->why_size, -EINVAL, "size=%.*s: expected bytes, at least 1",
			      shown(value), value.at);
	c->request->size = (uint32_t)size;
	return 0;
}

static int parse_cache_align(struct create *c, struct mf_text value)
{
	uint64_t align;

	if (mf_parse_size(value, UINT32_MAX, &align) || !align || align & (align - 1))
		return mf_why(c->why, c->why_size, -EINVAL, "align=%.*s: expected a power of two of bytes",
			      shown(value), value.at);
	c->request->align = (uint32_t)align;
	return 0;
}

static const struct {
	const char *name;
	int (*parse)(struct create *c, struct mf_text value);
} keys[] = {
	{ "size", parse_cache_size },
	{ "align", parse_cache_align },
	{ "flags", parse_flags },
};

#define NR_KEYS (sizeof(keys) / sizeof(keys[0]))

static int parse_key(struct create *c, struct mf_text word, unsigned *seen)
{
	struct mf_text value = word, name = mf_text_until(&value, '=');
	unsigned i = 0;

	while (i < NR_KEYS && !mf_text_is(name, keys[i].name))
		i++;
	if (i == NR_KEYS)
		return mf_why(c->why, c->why_size, -EINVAL, "\"%.*s\" is not a key of slab/create",
			      shown(name), name.at);
	if (*seen & 1u << i)
		return mf_why(c->why, c->why_size, -EINVAL, "%s twice", keys[i].name);
	if (name.length == word.length)
		return mf_why(c->why, c->why_size, -EINVAL, "%s needs a value", keys[i].name);
	*seen |= 1u << i;
	return keys[i].parse(c, value);
}

int mf_ctl_parse_cache(struct mf_text text, struct mf_cache_request *out, char *why, size_t why_size)
{
	struct mf_cache_request request = { .name = mf_text_word(&text) };
	struct create c = { &request, why, why_size };
	struct mf_text word;
	unsigned seen = 0;

	if (!mf_name_is_valid(request.name))
		return mf_why(why, why_size, -EINVAL,
			      "the first word is the name: 1 to 64 of A-Z a-z 0-9 . _ : -");
	while ((word = mf_text_word(&text)).length) {
		int error = parse_key(&c, word, &seen);

		if (error)
			return error;
	}
	if (!request.size)
		return mf_why(why, why_size, -EINVAL, "size= is needed");
	*out = request;
	return 0;
}

static void put_created(struct mf_text name, struct mf_cache *cache, struct mf_outbuf *out)
{
	const struct mf_slab_geometry *geometry = mf_cache_geometry(cache);

	mf_outbuf_printf(out, "%.*s size=%" PRIu32 " align=%" PRIu32 " order=%u objects=%" PRIu32,
			 (int)name.length, name.at, geometry->size, geometry->align, geometry->order,
			 geometry->objects);
	if (!mf_text_is(name, mf_cache_name(cache)))
		mf_outbuf_printf(out, " alias of %s", mf_cache_name(cache));
	mf_outbuf_puts(out, "\n");
}

int mf_ctl_store_cache_create(struct mf_ctl_command *command)
{
	struct mf_cache_request request;
	struct mf_cache *cache;
	int error = mf_ctl_parse_cache(command->text, &request, command->why, sizeof(command->why));

	if (error)
		return error;
	/* Its folder would stand behind this file. */
	if (mf_text_is(request.name, "create"))
		return mf_ctl_fail(command, -EEXIST, "create is a file of slab/");
	error = mf_cache_create(command->m->slabs, &request, &cache, command->why, sizeof(command->why));
	if (error)
		return error;
	put_created(request.name, cache, command->reply);
	mf_cache_put(cache);
	return 0;
}

/* --- knobs of a cache --- */

typedef void put_knob_fn(struct mf_cache_knobs *knobs, uint64_t value);

static int set_knob(struct mf_ctl_command *command, put_knob_fn *put, uint64_t value)
{
	struct mf_cache *cache = mf_ctl_cache(command->m, command->node);
	struct mf_cache_knobs knobs;
	int error;

	if (!cache)
		return mf_ctl_fail(command, -ENODEV, "has gone");
	pthread_mutex_lock(&command->m->ctl->slab_knobs);
	mf_cache_get_knobs(cache, &knobs);
	put(&knobs, value);
	error = mf_cache_set_knobs(cache, &knobs);
	pthread_mutex_unlock(&command->m->ctl->slab_knobs);
	mf_cache_put(cache);
	if (error)
		return mf_ctl_fail(command, error, "a cache with debugging has none: 0 is all it takes");
	return 0;
}

/* 0 once the cache has gone, which mf_ctl_show() has ruled out but for a moment. */
static struct mf_cache_knobs get_knobs(struct memfs *m, const struct mf_ctl_node *node)
{
	struct mf_cache *cache = mf_ctl_cache(m, node);
	struct mf_cache_knobs knobs = { 0 };

	if (cache) {
		mf_cache_get_knobs(cache, &knobs);
		mf_cache_put(cache);
	}
	return knobs;
}

#define CACHE_KNOB(name) \
	uint64_t mf_ctl_get_cache_##name(struct memfs *m, const struct mf_ctl_node *node) \
	{ \
		return get_knobs(m, node).name; \
	} \
\
	static void put_##name(struct mf_cache_knobs *knobs, uint64_t value) \
	{ \
		knobs->name = (unsigned)value; \
	} \
\
	int mf_ctl_set_cache_##name(struct mf_ctl_command *command, uint64_t value) \
	{ \
		return set_knob(command, put_##name, value); \
	}

CACHE_KNOB(min_partial)
CACHE_KNOB(cpu_partial)
CACHE_KNOB(sheaf_capacity)

/* A percentage: the one number whose limit is ERANGE, as it is in the kernel. */
int mf_ctl_show_defrag_ratio(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	mf_outbuf_printf(out, "%u\n", get_knobs(m, node).defrag_ratio);
	return 0;
}

static void put_defrag_ratio(struct mf_cache_knobs *knobs, uint64_t value)
{
	knobs->defrag_ratio = (unsigned)value;
}

int mf_ctl_store_defrag_ratio(struct mf_ctl_command *command)
{
	uint64_t ratio;

	if (mf_ctl_parse_number(command, 0, UINT64_MAX, &ratio))
		return mf_ctl_fail(command, -EINVAL, "\"%.*s\" is not a number in 0..100",
				   shown(command->text), command->text.at);
	if (ratio > 100)
		return mf_ctl_fail(command, -ERANGE, "%" PRIu64 " is not in 0..100", ratio);
	return set_knob(command, put_defrag_ratio, ratio);
}

/* --- triggers of a cache --- */

int mf_ctl_store_shrink(struct mf_ctl_command *command)
{
	struct mf_cache *cache;
	int error = mf_ctl_parse_one(command);

	if (error)
		return error;
	cache = mf_ctl_cache(command->m, command->node);
	if (!cache)
		return mf_ctl_fail(command, -ENODEV, "has gone");
	mf_outbuf_printf(command->reply, "slabs=%" PRIu64 "\n", mf_cache_shrink(cache));
	mf_cache_put(cache);
	return 0;
}

int mf_ctl_store_validate(struct mf_ctl_command *command)
{
	struct mf_cache *cache;
	int error = mf_ctl_parse_one(command);

	if (error)
		return error;
	cache = mf_ctl_cache(command->m, command->node);
	if (!cache)
		return mf_ctl_fail(command, -ENODEV, "has gone");
	if (mf_cache_flags(cache) & MF_SLAB_DEBUG)
		mf_outbuf_printf(command->reply, "problems=%u\n", mf_cache_validate(cache));
	else
		error = mf_ctl_fail(command, -EINVAL, "the cache has no debugging");
	mf_cache_put(cache);
	return error;
}

/* --- counters of a cache --- */

int mf_ctl_show_slab_stat(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	enum mf_slab_stat id = (enum mf_slab_stat)node->counter;
	struct mf_cache *cache = mf_ctl_cache(m, node);
	struct mf_outbuf by_cpu = MF_OUTBUF_INIT;
	uint64_t sum = 0;
	int error;

	if (!cache)
		return -ENODEV;
	for (unsigned cpu = 0; cpu < mf_cache_nr_cpus(cache); cpu++) {
		uint64_t count = mf_cache_stat(cache, id, cpu);

		sum += count;
		if (count)
			mf_outbuf_printf(&by_cpu, " C%u=%" PRIu64, cpu, count);
	}
	mf_cache_put(cache);
	error = mf_outbuf_error(&by_cpu);
	mf_outbuf_printf(out, "%" PRIu64, sum);
	if (by_cpu.length)
		mf_outbuf_write(out, by_cpu.data, by_cpu.length);
	mf_outbuf_puts(out, "\n");
	mf_outbuf_free(&by_cpu);
	return error;
}

/* Judged by the first letter, as the kernel does. */
int mf_ctl_store_slab_stat(struct mf_ctl_command *command)
{
	struct mf_cache *cache;

	if (*command->text.at != '0')
		return mf_ctl_fail(command, -EINVAL, "\"%.*s\" does not begin with 0: it is only cleared",
				   shown(command->text), command->text.at);
	cache = mf_ctl_cache(command->m, command->node);
	if (!cache)
		return mf_ctl_fail(command, -ENODEV, "has gone");
	mf_cache_stat_clear(cache, (enum mf_slab_stat)command->node->counter);
	mf_cache_put(cache);
	return 0;
}

/* --- over all caches --- */

static void add_cache(void *arg, const char *name, struct mf_cache *cache, bool alias)
{
	static const enum mf_slab_stat ids[MF_CTL_NR_SLAB_SUMS] = {
#define SUM_ID(name_) [MF_CTL_SLAB_SUM_##name_] = MF_SLAB_STAT_##name_,
		MF_CTL_SLAB_SUMS(SUM_ID)
#undef SUM_ID
	};
	struct mf_ctl_slab_totals *totals = arg;

	(void)name;
	(void)alias;
	totals->caches++;
	for (unsigned cpu = 0; cpu < mf_cache_nr_cpus(cache); cpu++)
		for (unsigned i = 0; i < MF_CTL_NR_SLAB_SUMS; i++)
			totals->sum[i] += mf_cache_stat(cache, ids[i], cpu);
}

void mf_ctl_slab_totals(struct memfs *m, struct mf_ctl_slab_totals *out)
{
	*out = (struct mf_ctl_slab_totals){ 0 };
	mf_cache_for_each(m->slabs, false, add_cache, out);
	out->pages = mf_slabs_pages(m->slabs, true, -1) + mf_slabs_pages(m->slabs, false, -1);
}

#define SHOW_TOTAL(name, field) \
	int mf_ctl_show_total_##name(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out) \
	{ \
		struct mf_ctl_slab_totals totals; \
\
		(void)node; \
		mf_ctl_slab_totals(m, &totals); \
		mf_outbuf_printf(out, "%" PRIu64 "\n", totals.field); \
		return 0; \
	}
#define SHOW_SUM(name) SHOW_TOTAL(name, sum[MF_CTL_SLAB_SUM_##name])

MF_CTL_SLAB_SUMS(SHOW_SUM)
SHOW_TOTAL(slab_caches, caches)
SHOW_TOTAL(slab_pages, pages)
