/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the bytes of a cache with debugging must be, and reports of what they
 * are instead.
 *
 *   [red zone] object [filler, free pointer, owners, filler] ... [padding]
 *
 *   0xbb  red zone of a free object      0x6b  content of a free one, last 0xa5
 *   0xcc  red zone of one in use         0x5a  content of a new one, and fillers
 *
 * Locks: the node's, held by the caller, or nobody else sees the slab.  Reports
 * are sent with none held.
 */
#include "slab/debug.h"

#include <errno.h>
#include <string.h>

#define RED_FREE 0xbb
#define RED_IN_USE 0xcc
#define POISON_FREE 0x6b
#define POISON_END 0xa5
#define POISON_NEW 0x5a

#define SHOWN_BYTES 8

static bool has(const struct mf_cache *cache, unsigned flag)
{
	return cache->flags & flag;
}

/* What a constructor made, or what a reader may still look at, stays. */
static bool poisons(const struct mf_cache *cache)
{
	return has(cache, MF_SLAB_FLAG(POISON)) && !cache->ctor && !has(cache, MF_SLAB_FLAG(TYPESAFE_BY_RCU));
}

/* --- where objects are --- */

char *mf_debug_slab_base(const struct mf_cache *cache, uint32_t pfn)
{
	return cache->slabs->base + ((uint64_t)pfn << MEMFS_PAGE_SHIFT);
}

bool mf_debug_is_object(const struct mf_cache *cache, uint32_t pfn, const void *object)
{
	const struct mf_slab_geometry *g = &cache->geometry;
	/* In front of the first it wraps round and is too large. */
	uint64_t offset = (uintptr_t)object - (uintptr_t)mf_debug_slab_base(cache, pfn) - g->red_left;

	return offset < (uint64_t)mf_slab_at(cache->slabs, pfn)->objects * g->size && offset % g->size == 0;
}

static uint32_t page_of(const struct mf_slabs *slabs, const void *address)
{
	return (uint32_t)((uint64_t)((const char *)address - slabs->base) >> MEMFS_PAGE_SHIFT);
}

uint32_t mf_debug_slab_of(const struct mf_slabs *slabs, const void *object)
{
	return mf_slab_first_page(slabs, page_of(slabs, object));
}

static uint32_t tag_id(uint32_t tag)
{
	return tag & MF_TAG_LARGE ? 0 : tag & ((UINT32_C(1) << MF_TAG_NODE_SHIFT) - 1);
}

void *mf_slab_object_start(const struct mf_cache *cache, const void *object)
{
	if (tag_id(mf_slab_tag_of(cache->slabs, object)) != cache->id ||
	    !mf_debug_is_object(cache, mf_debug_slab_of(cache->slabs, object), object))
		return NULL;
	return (void *)object;
}

/* --- reports --- */

static void __attribute__((format(printf, 2, 0)))
say_more(struct mf_slab_report *report, const char *format, va_list args)
{
	size_t room = sizeof(report->text) - report->length;
	int length = vsnprintf(report->text + report->length, room, format, args);

	if (length > 0)
		report->length += (size_t)length < room ? (size_t)length : room - 1;
}

void mf_debug_say(struct mf_slab_report *report, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_more(report, format, args);
	va_end(args);
}

void mf_debug_begin_report(struct mf_slab_report *report, struct mf_cache *cache, const void *object,
			   const char *what)
{
	atomic_store_explicit(&cache->damaged, true, memory_order_relaxed);
	mf_debug_say(report, "%s%s: %s: object %p", report->length ? "\n" : "", cache->name, what, object);
}

void mf_debug_send(struct mf_slabs *slabs, struct mf_slab_report *report)
{
	mf_slab_report_fn *tell = __atomic_load_n(&slabs->report, __ATOMIC_ACQUIRE);
	char *line = report->text, *end;

	if (report->length && tell)
		do {
			end = strchr(line, '\n');
			if (end)
				*end = '\0';
			tell(slabs->report_arg, line);
			line = end ? end + 1 : NULL;
		} while (line);
	report->length = 0;
}

static void say_owner(struct mf_slab_report *report, const struct mf_slab_track *track, const char *what)
{
	if (track->caller)
		mf_debug_say(report, "; %s by %p on CPU %d, thread %d, at %llu ms", what, track->caller,
			     (int)track->cpu, (int)track->thread,
			     (unsigned long long)(track->when / 1000000));
}

void mf_debug_say_owners(struct mf_slab_report *report, const struct mf_cache *cache, const void *object)
{
	struct mf_slab_track track[2];

	if (!cache->geometry.track)
		return;
	memcpy(track, (const char *)object + cache->geometry.track, sizeof(track));
	say_owner(report, &track[0], "allocated");
	say_owner(report, &track[1], "freed");
}

/* --- checks of one object --- */

struct check {
	struct mf_cache *cache;
	const char *object;
	struct mf_slab_report *report;
};

static const unsigned char *first_other(const unsigned char *at, const unsigned char *end,
					unsigned char value)
{
	while (at < end && *at == value)
		at++;
	return at < end ? at : NULL;
}

/* Bytes @from to @to, counted from the object, hold one value. */
static bool check_bytes(const struct check *c, int64_t from, int64_t to, unsigned char value,
			const char *what)
{
	const unsigned char *object = (const unsigned char *)c->object;
	const unsigned char *bad = first_other(object + from, object + to, value);

	if (!bad)
		return true;
	mf_debug_begin_report(c->report, c->cache, c->object, what);
	mf_debug_say(c->report, "; at %+lld", (long long)(bad - object));
	for (int i = 0; i < SHOWN_BYTES && bad + i < object + to; i++)
		mf_debug_say(c->report, " %02x", bad[i]);
	mf_debug_say(c->report, " instead of %02x", value);
	mf_debug_say_owners(c->report, c->cache, c->object);
	return false;
}

static bool check_red_zones(const struct check *c, bool in_use)
{
	const struct mf_slab_geometry *g = &c->cache->geometry;
	unsigned char value = in_use ? RED_IN_USE : RED_FREE;

	if (has(c->cache, MF_SLAB_FLAG(RED_ZONE)))
		return check_bytes(c, -(int64_t)g->red_left, 0, value, "written before the object") &&
		       check_bytes(c, g->object_size, g->inuse, value, "written behind the object");
	return !has(c->cache, MF_SLAB_FLAG(POISON)) ||
	       check_bytes(c, g->object_size, g->inuse, POISON_NEW, "written behind the object");
}

static bool check_poison(const struct check *c)
{
	int64_t last = (int64_t)c->cache->geometry.object_size - 1;

	return !poisons(c->cache) ||
	       (check_bytes(c, 0, last, POISON_FREE, "written after it was freed") &&
		check_bytes(c, last, last + 1, POISON_END, "written after it was freed"));
}

/* From the object to what nothing is kept in any more. */
static uint32_t metadata_end(const struct mf_slab_geometry *g)
{
	if (g->track)
		return g->track + 2 * (uint32_t)sizeof(struct mf_slab_track);
	return mf_debug_pointer_is_behind(g) ? g->offset + (uint32_t)sizeof(void *) : g->inuse;
}

static bool check_filler(const struct check *c)
{
	const struct mf_slab_geometry *g = &c->cache->geometry;

	return !has(c->cache, MF_SLAB_FLAG(POISON)) ||
	       check_bytes(c, metadata_end(g), (int64_t)g->size - g->red_left, POISON_NEW,
			   "written behind the object");
}

static bool check_pointer(const struct check *c, uint32_t pfn)
{
	const void *next = mf_slab_next_free(c->cache, c->object);

	if (!next || mf_debug_is_object(c->cache, pfn, next))
		return true;
	mf_debug_begin_report(c->report, c->cache, c->object, "free pointer overwritten");
	mf_debug_say(c->report, "; at %+lld, leads to %p", (long long)c->cache->geometry.offset, next);
	mf_debug_say_owners(c->report, c->cache, c->object);
	return false;
}

bool mf_debug_check_object(struct mf_cache *cache, uint32_t pfn, const void *object, bool in_use,
			   struct mf_slab_report *report)
{
	struct check c = { cache, object, report };

	/* Inside an object in use the pointer's place is the user's. */
	return check_red_zones(&c, in_use) && (in_use || check_poison(&c)) && check_filler(&c) &&
	       ((in_use && !mf_debug_pointer_is_behind(&cache->geometry)) || check_pointer(&c, pfn));
}

bool mf_debug_check_padding(struct mf_cache *cache, uint32_t pfn, struct mf_slab_report *report)
{
	const struct mf_slab *slab = mf_slab_at(cache->slabs, pfn);
	uint64_t used = (uint64_t)slab->objects * cache->geometry.size;
	struct check c = { cache, mf_debug_slab_base(cache, pfn) + used, report };
	int64_t rest = (int64_t)((UINT64_C(1) << slab->order << MEMFS_PAGE_SHIFT) - used);
	const unsigned char *at = (const unsigned char *)c.object, *bad;

	if (!has(cache, MF_SLAB_FLAG(POISON)))
		return true;
	bad = first_other(at, at + rest, POISON_NEW);
	if (!bad)
		return true;
	mf_debug_begin_report(report, cache, c.object, "written behind the last object of a slab");
	mf_debug_say(report, "; at %+lld %02x instead of %02x", (long long)(bad - at), *bad, POISON_NEW);
	return false;
}

/* --- patterns --- */

static void fill_red_zones(const struct mf_cache *cache, char *object, bool in_use)
{
	const struct mf_slab_geometry *g = &cache->geometry;
	int value = in_use ? RED_IN_USE : RED_FREE;

	if (!has(cache, MF_SLAB_FLAG(RED_ZONE)))
		return;
	memset(object - g->red_left, value, g->red_left);
	memset(object + g->object_size, value, g->inuse - g->object_size);
}

void mf_debug_fill(const struct mf_cache *cache, char *object, bool in_use)
{
	uint32_t size = cache->geometry.object_size;

	fill_red_zones(cache, object, in_use);
	if (!poisons(cache))
		return;
	memset(object, in_use ? POISON_NEW : POISON_FREE, size);
	if (!in_use)
		object[size - 1] = (char)POISON_END;
}

void mf_debug_init_slab(struct mf_cache *cache, uint32_t pfn)
{
	const struct mf_slab_geometry *g = &cache->geometry;
	const struct mf_slab *slab = mf_slab_at(cache->slabs, pfn);
	char *object = mf_debug_slab_base(cache, pfn);

	if (has(cache, MF_SLAB_FLAG(POISON)))
		memset(object, POISON_NEW, (size_t)1 << slab->order << MEMFS_PAGE_SHIFT);
	object += g->red_left;
	for (unsigned i = 0; i < slab->objects; i++, object += g->size) {
		mf_debug_fill(cache, object, false);
		if (g->track)
			memset(object + g->track, 0, 2 * sizeof(struct mf_slab_track));
	}
}

void mf_debug_check_slab(struct mf_cache *cache, uint32_t pfn)
{
	struct mf_slab_report report = { .length = 0 };
	const char *object = mf_debug_slab_base(cache, pfn) + cache->geometry.red_left;

	for (unsigned i = 0; i < mf_slab_at(cache->slabs, pfn)->objects; i++, object += cache->geometry.size)
		if (!mf_debug_check_object(cache, pfn, object, false, &report))
			mf_debug_send(cache->slabs, &report);
	mf_debug_check_padding(cache, pfn, &report);
	mf_debug_send(cache->slabs, &report);
}

/* --- pointers that are none of a cache's --- */

static void say_place(struct mf_slab_report *report, struct mf_slabs *slabs, const void *address)
{
	uint32_t tag = mf_slab_tag_of(slabs, address), pfn;
	const struct mf_cache *owner;
	uint64_t offset;

	if (tag & MF_TAG_LARGE) {
		mf_debug_say(report, "; it lies in a block of pages of order %u", tag & ~MF_TAG_LARGE);
		return;
	}
	owner = tag ? __atomic_load_n(&slabs->by_id[tag_id(tag)], __ATOMIC_ACQUIRE) : NULL;
	if (!owner) {
		mf_debug_say(report, "; it lies in no slab");
		return;
	}
	pfn = mf_debug_slab_of(slabs, address);
	offset = (uintptr_t)address - (uintptr_t)mf_debug_slab_base(owner, pfn) - owner->geometry.red_left;
	mf_debug_say(report, "; it lies in a slab of %s, %s", owner->name,
		     mf_debug_is_object(owner, pfn, address) ? "an object's start" : "no object's start");
	if (!mf_debug_is_object(owner, pfn, address) &&
	    offset < (uint64_t)mf_slab_at(slabs, pfn)->objects * owner->geometry.size)
		mf_debug_say(report, " but %u bytes behind one", (unsigned)(offset % owner->geometry.size));
}

int mf_slab_refuse(struct mf_slabs *slabs, struct mf_cache *cache, const void *object, const char *what)
{
	struct mf_slab_report report = { .length = 0 };

	if (cache)
		mf_debug_begin_report(&report, cache, object, what);
	else
		mf_debug_say(&report, "kmalloc: %s: object %p", what, object);
	say_place(&report, slabs, object);
	mf_debug_send(slabs, &report);
	return -EINVAL;
}
