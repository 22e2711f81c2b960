/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Failure points.  Each place of the engine that can fail asks
 * mf_fault_hit(point) first; a test (or debug/fault/) arms a point to fail at
 * its Nth visit, or a share of visits drawn from a seed.  One row a point.
 *
 * Cost when nothing is armed: one relaxed load of a word that never changes.
 * Threads: arming takes effect at once; counters are atomic.
 */
#ifndef MF_FAULT_H
#define MF_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* F(name, "what fails") */
#define MF_FAULT_POINTS(F) \
	F(meta_alloc, "memory for descriptors and tables") \
	F(buddy_alloc, "taking a block from a zone") \
	F(pcp_refill, "refilling a per-CPU list") \
	F(bulk_node, "one node's share of a bulk call") \
	F(arena_map, "mapping a node's arena") \
	F(arena_trim, "giving memory back to the host") \
	F(vmalloc_area, "address space for a mapped area") \
	F(vmalloc_large, "a large block for a range") \
	F(vmalloc_map, "mapping one run of pages") \
	F(slab_new, "a new slab") \
	F(sheaf_alloc, "memory for a sheaf")

enum mf_fault_point {
#define MF_FAULT_ENUM(name, help) MF_FAULT_##name,
	MF_FAULT_POINTS(MF_FAULT_ENUM)
#undef MF_FAULT_ENUM
		MF_NR_FAULT_POINTS,
};

struct mf_fault_state {
	_Atomic uint64_t visits;   /* since armed or reset, while anything is armed */
	_Atomic uint64_t failures; /* how often it was made to fail */
	_Atomic uint64_t nth;	   /* fail at this visit (1 = the next), 0 = not armed */
	_Atomic uint64_t every;	   /* and then at every multiple of it, 0 = once */
	_Atomic uint32_t permille; /* or: fail this share of visits */
	_Atomic uint64_t seed;	   /* state of the draw */
};

struct mf_fault {
	_Atomic uint32_t armed; /* bit a point; also bit 31: any_nth is counting */
	/* any point: fail the Nth visit over all points together (model tests) */
	_Atomic uint64_t any_nth, any_visits;
	struct mf_fault_state point[MF_NR_FAULT_POINTS];
};

void mf_fault_init(struct mf_fault *fault);
void mf_fault_arm(struct mf_fault *fault, enum mf_fault_point point, uint64_t nth, uint64_t every);
void mf_fault_arm_share(struct mf_fault *fault, enum mf_fault_point point, uint32_t permille, uint64_t seed);
/* Fails the Nth visit counted over all points together; 0 disarms. */
void mf_fault_arm_any(struct mf_fault *fault, uint64_t nth);
void mf_fault_disarm(struct mf_fault *fault);
/* True once the armed Nth visit (any or point) has happened. */
bool mf_fault_fired(const struct mf_fault *fault);
const char *mf_fault_name(enum mf_fault_point point);
const char *mf_fault_help(enum mf_fault_point point);

bool mf_fault_visit(struct mf_fault *fault, enum mf_fault_point point); /* the slow part */

static inline bool mf_fault_hit(struct mf_fault *fault, enum mf_fault_point point)
{
	return __builtin_expect(atomic_load_explicit(&fault->armed, memory_order_relaxed) != 0, 0) &&
	       mf_fault_visit(fault, point);
}

#endif
