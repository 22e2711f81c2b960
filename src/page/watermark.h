/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The arithmetic of watermarks, reserves and per-CPU list sizes (behaviour 2.3
 * and 2.5).  Pure functions: from the topology and the knobs to numbers.
 * Unit: pages, where nothing else is said.
 */
#ifndef MF_PAGE_WATERMARK_H
#define MF_PAGE_WATERMARK_H

#include "topo/topo.h"

struct mf_watermark_knobs {
	uint64_t min_free_kbytes;
	unsigned watermark_scale_factor;		 /* per 10000, default 10 */
	unsigned lowmem_reserve_ratio[MF_NR_ZONE_TYPES]; /* default 256 256 32 0 */
	unsigned percpu_pagelist_high_fraction;		 /* 0 auto, else >= 8 */
};

struct mf_zone_marks {
	uint64_t min, low, high, promo;
	uint64_t lowmem_reserve[MF_NR_ZONE_TYPES]; /* protection against requests that may use up to zone j */
	uint32_t batch, high_min, high_max;
};

/* The default for min_free_kbytes: clamp(isqrt(16 * lowmem kB), 128, 262144). */
uint64_t mf_watermark_default_min_free(const struct mf_topo *topo);

/* The marks of one populated zone of one node. */
void mf_watermark_zone(const struct mf_topo *topo, int node, enum mf_zone_type zone,
		       const struct mf_watermark_knobs *knobs, struct mf_zone_marks *out);

#endif
