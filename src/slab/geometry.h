/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How a cache's objects lie in its slabs: pure arithmetic on what was asked for
 * (behaviour 4.1), with the numbers of the kernel.
 *
 *   [red zone] object [filler] [free pointer] [allocated by, freed by] [padding]
 *
 * The free pointer lies inside the object where its content is not needed while
 * it is free; see offset.
 */
#ifndef MF_SLAB_GEOMETRY_H
#define MF_SLAB_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#define MF_SLAB_MAX_OBJECTS 32767u
#define MF_SLAB_COSTLY_ORDER 3 /* slabs are not made larger than this for the sake of waste */

/* F(NAME, "name in slab/create", "help") */
#define MF_SLAB_FLAGS(F) \
	F(HWCACHE_ALIGN, "hwcache_align", "objects on cache lines of their own") \
	F(RECLAIM_ACCOUNT, "reclaim_account", "slabs from reclaimable pageblocks") \
	F(NO_MERGE, "no_merge", "never shared with a cache of the same shape") \
	F(POISON, "poison", "free objects hold a pattern that is checked") \
	F(RED_ZONE, "red_zone", "patterns before and behind each object are checked") \
	F(STORE_USER, "store_user", "who allocated and freed each object is kept") \
	F(TYPESAFE_BY_RCU, "typesafe_by_rcu", \
	  "a free object's content stays: the free pointer lies behind it") \
	F(CONSISTENCY, "consistency", "every free is checked")

enum mf_slab_flag_bit {
#define MF_SLAB_FLAG_ENUM(NAME, name, help) MF_SLAB_BIT_##NAME,
	MF_SLAB_FLAGS(MF_SLAB_FLAG_ENUM)
#undef MF_SLAB_FLAG_ENUM
		MF_NR_SLAB_FLAGS,
};

#define MF_SLAB_FLAG(NAME) (1u << MF_SLAB_BIT_##NAME)
/* With any of these every allocation and free is checked, one at a time, without the CPU layers. */
#define MF_SLAB_DEBUG \
	(MF_SLAB_FLAG(POISON) | MF_SLAB_FLAG(RED_ZONE) | MF_SLAB_FLAG(STORE_USER) | MF_SLAB_FLAG(CONSISTENCY))

struct mf_slab_geometry {
	uint32_t object_size; /* what the user asked for */
	uint32_t align;	      /* of every object */
	uint32_t size;	      /* from one object to the next: slab_size */
	uint32_t inuse;	      /* bytes up to the metadata behind the object */
	uint32_t offset;      /* of the free pointer, from the object */
	uint32_t red_left;    /* bytes before the object */
	uint32_t track;	      /* offset of the two owner records, 0 none */
	unsigned order, min_order;
	uint32_t objects, min_objects; /* a slab of order, of min_order */
	unsigned min_partial;	       /* slabs */
	unsigned cpu_partial;	       /* objects; 0 with debugging */
	unsigned cpu_partial_slabs;
	unsigned sheaf_capacity; /* objects of a per-CPU array, 0 with debugging */
};

/* An owner record: who, where, when. */
struct mf_slab_track {
	const void *caller; /* return address, or a static text's address */
	uint64_t when;	    /* ns of the platform's clock */
	int32_t cpu, thread;
	uint64_t task; /* serial of the task, 0 none */
};

/* @align 0: a word.  -EINVAL: size 0 or more than a slab of the largest order holds, align no power of two. */
int mf_slab_geometry(uint32_t size, uint32_t align, unsigned flags, bool ctor, unsigned nr_cpus,
		     struct mf_slab_geometry *out);
/* Slabs kept on a CPU's partial list for @objects objects (assuming them half full). */
unsigned mf_slab_cpu_partial_slabs(const struct mf_slab_geometry *geometry, unsigned objects);
/* Objects in a slab of @order. */
uint32_t mf_slab_objects(uint32_t size, unsigned order);
/* May a request of that shape share @host's slabs (behaviour 4.2, merging)? */
bool mf_slab_mergeable(const struct mf_slab_geometry *host, unsigned host_flags, bool host_ctor,
		       const struct mf_slab_geometry *wanted, unsigned flags, bool ctor);

/* The kernel's kmalloc classes: 8 ... 8192 with 96 and 192.  -1: larger than the largest. */
#define MF_NR_KMALLOC 13
int mf_kmalloc_class(uint64_t size);
/* The same of a size in 1..8192, where it counts: by words up to 192 bytes, by powers of two above. */
static inline unsigned mf_kmalloc_class_of(uint64_t size)
{
	static const uint8_t by_word[24] = { 0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4,
					     5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6 };

	return size <= 192 ? by_word[(size - 1) / 8] : 63 - (unsigned)__builtin_clzll(size - 1);
}
extern const uint32_t mf_kmalloc_sizes[MF_NR_KMALLOC];	  /* by class, in the order of size */
extern const char *const mf_kmalloc_names[MF_NR_KMALLOC]; /* kmalloc-8 ... kmalloc-8k */

#endif
