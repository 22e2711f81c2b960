/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A task's interleave rotation as one word: il_prev | il_weight << 8.
 */
#ifndef MF_PAGE_ROTATION_H
#define MF_PAGE_ROTATION_H

#include "page/page.h"
#include "plat/rseq.h"

static inline struct mf_rotation mf_rotation_unpack(uint32_t word)
{
	return (struct mf_rotation){ .il_prev = (uint8_t)word, .il_weight = (uint8_t)(word >> 8) };
}

static inline uint32_t mf_rotation_pack(struct mf_rotation rotation)
{
	return rotation.il_prev | (uint32_t)rotation.il_weight << 8;
}

static inline uint32_t mf_rotation_load(const struct mf_placement *place)
{
	return __atomic_load_n(&place->rotation, __ATOMIC_RELAXED);
}

/*
 * One instruction without a lock prefix: atomic against the signal handlers of
 * this thread, which is what page.h promises, at a tenth of the price.
 */
static inline bool mf_rotation_swap(struct mf_placement *place, uint32_t before, uint32_t after)
{
#if defined(__x86_64__) && !defined(MF_TSAN)
	bool swapped;

	__asm__ volatile("cmpxchgl %[after], %[word]"
			 : "=@ccz"(swapped), [word] "+m"(place->rotation), "+a"(before)
			 : [after] "r"(after)
			 : "memory");
	return swapped;
#else
	return __atomic_compare_exchange_n(&place->rotation, &before, after, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
#endif
}

#endif
