/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The arithmetic of watermarks, reserves and per-CPU list sizes.  All of it
 * rounds down at every step, as the kernel does: the results are compared with
 * recorded ones to the page.
 *
 * Locks: none; pure.
 */
#include "page/watermark.h"

#define PAGES_PER_BATCH_UNIT 4096 /* 16 MiB of zone make one page of batch */
#define BATCH_LIMIT 64		  /* 256 KiB */
#define HIGH_MAX_FRACTION 8

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t clamp_u64(uint64_t value, uint64_t low, uint64_t high)
{
	return max_u64(low, min_u64(value, high));
}

/* value * times / divisor without overflow, for value and divisor up to 2^32 and times below 2^32. */
static uint64_t scale(uint64_t value, uint64_t times, uint64_t divisor)
{
	return value / divisor * times + value % divisor * times / divisor;
}

/* The largest root with root^2 <= value, bit by bit. */
static uint64_t isqrt(uint64_t value)
{
	uint64_t root = 0;

	for (int bit = 31; bit >= 0; bit--) {
		uint64_t next = root | UINT64_C(1) << bit;

		if (next * next <= value)
			root = next;
	}
	return root;
}

/* Pages that any request may use: all zones but Movable. */
static uint64_t lowmem_pages(const struct mf_topo *topo)
{
	uint64_t pages = 0;

	MF_FOR_EACH_NODE(node, topo->memory)
		for (int type = 0; type < MF_ZONE_MOVABLE; type++)
			pages += topo->node[node]->zone[type].nr_pages;
	return pages;
}

uint64_t mf_watermark_default_min_free(const struct mf_topo *topo)
{
	return clamp_u64(isqrt(16 * 4 * lowmem_pages(topo)), 128, 262144);
}

static void set_marks(uint64_t managed, uint64_t lowmem, enum mf_zone_type zone,
		      const struct mf_watermark_knobs *knobs, struct mf_zone_marks *out)
{
	uint64_t pages_min = min_u64(knobs->min_free_kbytes / 4, UINT32_MAX);
	uint64_t share = lowmem ? scale(managed, pages_min, lowmem) : 0;
	uint64_t step = max_u64(share / 4, scale(managed, knobs->watermark_scale_factor, 10000));

	/* Nothing unmovable lives in Movable, so its minimum is only for the sake of reclaim. */
	out->min = zone == MF_ZONE_MOVABLE ? clamp_u64(managed / 1024, 32, 128) : share;
	out->low = out->min + step;
	out->high = out->low + step;
	out->promo = out->high + step;
}

static void set_reserve(const struct mf_topo_node *node, enum mf_zone_type zone,
			const struct mf_watermark_knobs *knobs, struct mf_zone_marks *out)
{
	unsigned ratio = node->zone[zone].nr_pages ? knobs->lowmem_reserve_ratio[zone] : 0;
	uint64_t above = 0;

	for (unsigned upper = 0; upper < MF_NR_ZONE_TYPES; upper++) {
		if (upper > zone)
			above += node->zone[upper].nr_pages;
		out->lowmem_reserve[upper] = ratio ? above / ratio : 0;
	}
}

/* One less than a power of two, about 1.5 times the zone's share. */
static uint32_t batch_of(uint64_t managed)
{
	uint32_t batch = (uint32_t)min_u64(managed / PAGES_PER_BATCH_UNIT, BATCH_LIMIT);

	if (batch <= 1)
		return 1;
	batch += batch / 2;
	return (1u << (31 - __builtin_clz(batch))) - 1;
}

/* What a CPU's list may hold, if together they may hold @total. */
static uint32_t high_of(uint64_t total, unsigned nr_cpus, uint32_t batch)
{
	return (uint32_t)clamp_u64(total / nr_cpus, 4 * (uint64_t)batch, UINT32_MAX);
}

static void set_pcp(const struct mf_topo *topo, const struct mf_topo_node *node, uint64_t managed,
		    const struct mf_watermark_knobs *knobs, struct mf_zone_marks *out)
{
	/* Every CPU may come to a node that has none of its own. */
	unsigned nr_cpus = node->nr_cpus ? node->nr_cpus : topo->nr_cpus;
	unsigned fraction = knobs->percpu_pagelist_high_fraction;

	if (nr_cpus == 0)
		nr_cpus = 1;
	out->batch = batch_of(managed);
	out->high_min = high_of(fraction ? managed / fraction : out->low, nr_cpus, out->batch);
	out->high_max = high_of(managed / (fraction ? fraction : HIGH_MAX_FRACTION), nr_cpus, out->batch);
}

void mf_watermark_zone(const struct mf_topo *topo, int node, enum mf_zone_type zone,
		       const struct mf_watermark_knobs *knobs, struct mf_zone_marks *out)
{
	uint64_t managed = topo->node[node]->zone[zone].nr_pages;

	set_marks(managed, lowmem_pages(topo), zone, knobs, out);
	set_reserve(topo->node[node], zone, knobs, out);
	set_pcp(topo, topo->node[node], managed, knobs, out);
}
