/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sizes and orders of slabs: see geometry.h and behaviour 4.1.  Pure.
 */
#include "slab/geometry.h"

#include "memfs.h"

#include <errno.h>
#include <stddef.h>

#define WORD 8u
#define CACHE_LINE 64u

static uint32_t round_up(uint32_t value, uint32_t to)
{
	return (value + to - 1) & ~(to - 1);
}

static unsigned floor_log2(uint32_t n)
{
	return 31u - (unsigned)__builtin_clz(n);
}

uint32_t mf_slab_objects(uint32_t size, unsigned order)
{
	return (MEMFS_PAGE_SIZE << order) / size;
}

static unsigned least_order(uint32_t bytes)
{
	unsigned order = 0;

	while (order < MEMFS_MAX_PAGE_ORDER && (MEMFS_PAGE_SIZE << order) < bytes)
		order++;
	return order;
}

/* --- layout --- */

/* A cache line is no help to objects of which several fit into one. */
static uint32_t alignment(uint32_t size, uint32_t align, unsigned flags)
{
	uint32_t line = CACHE_LINE;

	if (flags & MF_SLAB_FLAG(HWCACHE_ALIGN)) {
		while (size <= line / 2)
			line /= 2;
		align = align > line ? align : line;
	}
	return round_up(align > WORD ? align : WORD, WORD);
}

/* The free pointer stands behind the object where its content must stay, or be a pattern, while it is free. */
static bool pointer_behind(const struct mf_slab_geometry *g, unsigned flags, bool ctor)
{
	return ctor || flags & (MF_SLAB_FLAG(TYPESAFE_BY_RCU) | MF_SLAB_FLAG(POISON)) ||
	       (flags & MF_SLAB_FLAG(RED_ZONE) && g->object_size < WORD);
}

static void lay_out(struct mf_slab_geometry *g, unsigned flags, bool ctor)
{
	uint32_t size = round_up(g->object_size, WORD);

	/* A red zone needs a word behind the object; if rounding left none, one more. */
	if (flags & MF_SLAB_FLAG(RED_ZONE) && size == g->object_size)
		size += WORD;
	g->inuse = size;
	if (pointer_behind(g, flags, ctor)) {
		g->offset = size;
		size += WORD;
	} else {
		g->offset = g->object_size / 2 & ~(WORD - 1);
	}
	if (flags & MF_SLAB_FLAG(STORE_USER)) {
		g->track = size;
		size += 2 * (uint32_t)sizeof(struct mf_slab_track);
	}
	if (flags & MF_SLAB_FLAG(RED_ZONE)) {
		size += WORD; /* between the records and the next object's red zone */
		g->red_left = round_up(WORD, g->align);
		size += g->red_left;
	}
	g->size = round_up(size, g->align);
}

/* --- orders --- */

/* The first order from @from on, up to @most, that wastes at most 1/@fraction. */
static bool find_order(uint32_t size, unsigned from, unsigned most, unsigned fraction, unsigned *out)
{
	for (unsigned order = from; order <= most; order++) {
		uint32_t bytes = MEMFS_PAGE_SIZE << order;

		if (bytes % size > bytes / fraction)
			continue;
		*out = order;
		return true;
	}
	return false;
}

static unsigned fls(unsigned n)
{
	return n ? floor_log2(n) + 1 : 0;
}

static unsigned best_order(uint32_t size, unsigned nr_cpus)
{
	uint32_t wanted = 4 * (fls(nr_cpus) + 1), most = mf_slab_objects(size, MF_SLAB_COSTLY_ORDER);
	unsigned from, order;

	wanted = wanted < most ? wanted : most;
	wanted = wanted ? wanted : 1;
	from = least_order(wanted * size);
	for (unsigned fraction = 16; fraction > 1; fraction /= 2)
		if (find_order(size, from, MF_SLAB_COSTLY_ORDER, fraction, &order))
			return order;
	return least_order(size);
}

static void choose_orders(struct mf_slab_geometry *g, unsigned nr_cpus)
{
	g->order = best_order(g->size, nr_cpus);
	/* Objects are counted in 15 bits. */
	while (g->order && mf_slab_objects(g->size, g->order) > MF_SLAB_MAX_OBJECTS)
		g->order--;
	g->min_order = least_order(g->size);
	g->objects = mf_slab_objects(g->size, g->order);
	g->min_objects = mf_slab_objects(g->size, g->min_order);
}

/* --- what CPUs and nodes keep --- */

static unsigned clamp(unsigned value, unsigned low, unsigned high)
{
	return value < low ? low : value > high ? high : value;
}

static unsigned cpu_partial(uint32_t size, unsigned flags)
{
	if (flags & MF_SLAB_DEBUG)
		return 0;
	return size >= 4096 ? 6 : size >= 1024 ? 24 : size >= 256 ? 52 : 120;
}

/*
 * Larger than the kernel's (4, 12, 28, 60): a lock costs the same however many
 * objects it is taken for.
 */
static unsigned sheaf_capacity(uint32_t size, unsigned flags)
{
	if (flags & MF_SLAB_DEBUG)
		return 0;
	return size >= 4096 ? 64 : size > 64 ? 124 : 252;
}

unsigned mf_slab_cpu_partial_slabs(const struct mf_slab_geometry *geometry, unsigned objects)
{
	return (2 * objects + geometry->objects - 1) / geometry->objects;
}

int mf_slab_geometry(uint32_t size, uint32_t align, unsigned flags, bool ctor, unsigned nr_cpus,
		     struct mf_slab_geometry *out)
{
	struct mf_slab_geometry g = { .object_size = size };
	const uint32_t most = MEMFS_PAGE_SIZE << MEMFS_MAX_PAGE_ORDER;

	if (!size || size > most || align & (align - 1) || align > most || flags >> MF_NR_SLAB_FLAGS)
		return -EINVAL;
	g.align = alignment(size, align, flags);
	lay_out(&g, flags, ctor);
	if (g.size > most)
		return -EINVAL;
	choose_orders(&g, nr_cpus);
	g.min_partial = clamp(floor_log2(g.size) / 2, 5, 10);
	g.cpu_partial = cpu_partial(g.size, flags);
	g.cpu_partial_slabs = mf_slab_cpu_partial_slabs(&g, g.cpu_partial);
	g.sheaf_capacity = sheaf_capacity(g.size, flags);
	*out = g;
	return 0;
}

bool mf_slab_mergeable(const struct mf_slab_geometry *host, unsigned host_flags, bool host_ctor,
		       const struct mf_slab_geometry *wanted, unsigned flags, bool ctor)
{
	const unsigned never = MF_SLAB_DEBUG | MF_SLAB_FLAG(NO_MERGE) | MF_SLAB_FLAG(TYPESAFE_BY_RCU);
	const unsigned same = MF_SLAB_FLAG(RECLAIM_ACCOUNT);
	uint32_t size = round_up(wanted->object_size, WORD);

	if (host_ctor || ctor || (host_flags | flags) & never || (host_flags ^ flags) & same)
		return false;
	size = round_up(size, wanted->align);
	return size <= host->size && host->size - size < WORD && host->size % wanted->align == 0 &&
	       host->align % wanted->align == 0;
}

/* --- kmalloc --- */

const uint32_t mf_kmalloc_sizes[MF_NR_KMALLOC] = { 8,	16,  32,   64,	 96,   128, 192,
						   256, 512, 1024, 2048, 4096, 8192 };

const char *const mf_kmalloc_names[MF_NR_KMALLOC] = {
	"kmalloc-8",   "kmalloc-16",  "kmalloc-32", "kmalloc-64", "kmalloc-96", "kmalloc-128", "kmalloc-192",
	"kmalloc-256", "kmalloc-512", "kmalloc-1k", "kmalloc-2k", "kmalloc-4k", "kmalloc-8k"
};

int mf_kmalloc_class(uint64_t size)
{
	if (!size)
		return 0;
	return size > 8192 ? -1 : (int)mf_kmalloc_class_of(size);
}
