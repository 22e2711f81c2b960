/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What happens when memory is short, and with time: draining, shrinkers,
 * waiting, the tick, and giving idle memory back to the host.
 *
 * Locks: WAIT only around the sleep; PCP and ZONE through pcp.c and zone.c; the
 * host is asked to take memory back with no lock held.
 */
#include "page/page_internal.h"

#include <errno.h>
#include <time.h>

/* Lines given back in one go: bounds the time a zone does without them. */
#define TRIM_BATCH 64
/* Queue words looked at under one hold of a zone lock. */
#define TRIM_BUDGET 1024
/* A waiter looks again by itself after this long: pages freed to a list wake nobody. */
#define WAIT_NS 20000000

#define FOR_EACH_ZONE(pg, zone) \
	for (unsigned zone##_i = 0; zone##_i < MF_MAX_ZONES; zone##_i++) \
		for (struct mf_zone *zone = (pg)->zone[zone##_i]; zone; zone = NULL)

/* Nobody reclaims here: a boost that keeps pages from a request about to fail has done what it can. */
static void end_boost(struct mf_page *pg, struct mf_zone *zone)
{
	if (!__atomic_load_n(&zone->boost, __ATOMIC_RELAXED))
		return;
	mf_zone_lock(pg, zone, false);
	__atomic_store_n(&zone->boost, 0, __ATOMIC_RELAXED);
	mf_zone_set_marks(zone);
	mf_zone_unlock(zone);
}

static void drain_zone(struct mf_page *pg, struct mf_zone *zone)
{
	mf_pcp_drain_zone(pg, zone);
	/* Blocks that a handler could not give back are free pages, too. */
	if (__atomic_load_n(&zone->deferred, __ATOMIC_RELAXED)) {
		mf_zone_lock(pg, zone, false);
		mf_zone_unlock(zone);
	}
}

/* Until pages come back, or for WAIT_NS. */
static int await_pages(struct mf_page *pg, struct mf_cancel *cancel)
{
	struct timespec until;
	bool cancelled;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += WAIT_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	mf_lock_acquire(&pg->wait_lock);
	__atomic_fetch_add(&pg->nr_waiters, 1, __ATOMIC_RELAXED);
	cancelled = cancel && atomic_load(&cancel->cancelled);
	if (!cancelled)
		pthread_cond_timedwait(&pg->wait_cond, &pg->wait_lock.mutex, &until);
	__atomic_fetch_sub(&pg->nr_waiters, 1, __ATOMIC_RELAXED);
	mf_lock_release(&pg->wait_lock);
	return cancel && atomic_load(&cancel->cancelled) ? -EINTR : 0;
}

bool mf_pressure_relieve(struct mf_page *pg, const struct mf_alloc *a)
{
	unsigned nr = __atomic_load_n(&pg->nr_shrinkers, __ATOMIC_ACQUIRE);

	mf_stat_zone_add(&pg->stat,
			 pg->node_zone[a->node][a->highest] ? pg->node_zone[a->node][a->highest]->index : 0,
			 MF_STAT_allocstall, 1);
	mf_stat_add(&pg->stat, MF_STAT_drain_all, 1);
	for (unsigned i = 0; i < nr; i++) {
		mf_shrinker_fn *shrink = __atomic_load_n(&pg->shrinker[i].shrink, __ATOMIC_RELAXED);
		uint64_t pages = shrink ? shrink(pg->shrinker[i].arg, UINT64_C(1) << a->order) : 0;

		mf_stat_add(&pg->stat, MF_STAT_shrink_calls, 1);
		mf_stat_add(&pg->stat, MF_STAT_shrink_pages, pages);
	}
	FOR_EACH_ZONE(pg, zone)
	{
		if (!mf_node_isset(a->filter, zone->node))
			continue;
		/* What the trimmer has in its hands is free memory, too: it is back in a moment. */
		if (__atomic_load_n(&zone->nr_trimming, __ATOMIC_RELAXED))
			await_pages(pg, NULL);
		drain_zone(pg, zone);
		mf_zone_unreserve_highatomic(pg, zone, false);
		end_boost(pg, zone);
	}
	return true;
}

void mf_pressure_wake(struct mf_page *pg)
{
	/* Called with a PCP lock held now and then: WAIT ranks above it. */
	mf_lock_acquire(&pg->wait_lock);
	pthread_cond_broadcast(&pg->wait_cond);
	mf_lock_release(&pg->wait_lock);
}

void mf_page_cancel(struct mf_page *pg, struct mf_cancel *cancel)
{
	atomic_store(&cancel->cancelled, 1);
	mf_pressure_wake(pg);
}

int mf_pressure_wait(struct mf_page *pg, struct mf_cancel *cancel)
{
	mf_stat_add(&pg->stat, MF_STAT_alloc_wait, 1);
	return await_pages(pg, cancel);
}

int mf_page_add_shrinker(struct mf_page *pg, mf_shrinker_fn *shrink, void *arg)
{
	unsigned nr = pg->nr_shrinkers;

	if (nr == sizeof(pg->shrinker) / sizeof(pg->shrinker[0]))
		return -ENOSPC;
	pg->shrinker[nr] = (struct mf_shrinker){ shrink, arg };
	__atomic_store_n(&pg->nr_shrinkers, nr + 1, __ATOMIC_RELEASE);
	return 0;
}

void mf_page_remove_shrinker(struct mf_page *pg, mf_shrinker_fn *shrink, void *arg)
{
	for (unsigned i = 0; i < pg->nr_shrinkers; i++)
		if (pg->shrinker[i].shrink == shrink && pg->shrinker[i].arg == arg)
			__atomic_store_n(&pg->shrinker[i].shrink, NULL, __ATOMIC_RELAXED);
}

int mf_page_wait(struct mf_page *pg, struct mf_cancel *cancel)
{
	return mf_pressure_wait(pg, cancel);
}

void mf_page_drain(struct mf_page *pg, int node)
{
	FOR_EACH_ZONE(pg, zone)
	{
		if (node >= 0 && zone->node != node)
			continue;
		drain_zone(pg, zone);
		while (mf_zone_unreserve_highatomic(pg, zone, true))
			;
	}
}

/* --- giving back to the host --- */

static bool punch(struct mf_page *pg, struct mf_zone *zone, uint32_t pfn, unsigned lines)
{
	uint64_t node_start = pg->topo->node[zone->node]->start_pfn;
	uint64_t offset = (pfn - node_start) << MEMFS_PAGE_SHIFT;

	if (mf_fault_hit(pg->fault, MF_FAULT_arena_trim))
		return false;
	return pg->plat->ops->arena_trim(pg->plat, pg->arena[zone->node], offset,
					 (uint64_t)lines * MF_PAGEBLOCK_PAGES << MEMFS_PAGE_SHIFT) == 0;
}

/* Isolated lines, rising: neighbours go in one call. */
static void punch_batch(struct mf_page *pg, struct mf_zone *zone, const uint32_t *pfns, unsigned nr,
			bool *clean)
{
	unsigned run;

	for (unsigned i = 0; i < nr; i += run) {
		for (run = 1; i + run < nr && pfns[i + run] == pfns[i] + run * MF_PAGEBLOCK_PAGES; run++)
			;
		clean[i] = punch(pg, zone, pfns[i], run);
		for (unsigned k = 1; k < run; k++)
			clean[i + k] = clean[i];
	}
}

/*
 * Lines the zone can do without for a moment: isolated lines are free for
 * nobody, and a request that cannot wait must not fail for them.
 */
static unsigned trim_most(const struct mf_zone *zone)
{
	uint64_t free = mf_zone_free_pages(zone), high = zone->wmark[MF_WMARK_HIGH];
	uint64_t lines = free > high ? (free - high) / MF_PAGEBLOCK_PAGES : 0;

	if (lines < 4)
		return lines > 1;
	return lines / 4 < TRIM_BATCH ? (unsigned)lines / 4 : TRIM_BATCH;
}

/* One batch; returns the pages given back, *done when the zone's end was reached. */
static uint64_t trim_batch(struct mf_page *pg, struct mf_zone *zone, uint16_t min_age, bool *done)
{
	uint32_t pfns[TRIM_BATCH];
	bool clean[TRIM_BATCH];
	uint64_t pages = 0;
	unsigned nr = 0, most;

	mf_zone_lock(pg, zone, false);
	most = trim_most(zone);
	if (most)
		nr = mf_buddy_isolate(&zone->buddy, pg->ticks, min_age, TRIM_BUDGET, &zone->trim_cursor, most,
				      pfns);
	*done = !most || zone->trim_cursor == 0;
	__atomic_store_n(&zone->nr_trimming, zone->nr_trimming + nr * MF_PAGEBLOCK_PAGES, __ATOMIC_RELAXED);
	mf_zone_unlock(zone);
	if (!nr)
		return 0;
	punch_batch(pg, zone, pfns, nr, clean);
	mf_zone_lock(pg, zone, false);
	for (unsigned i = 0; i < nr; i++) {
		mf_buddy_release(&zone->buddy, pfns[i], clean[i]);
		pages += clean[i] ? MF_PAGEBLOCK_PAGES : 0;
	}
	__atomic_store_n(&zone->nr_trimming, zone->nr_trimming - nr * MF_PAGEBLOCK_PAGES, __ATOMIC_RELAXED);
	mf_zone_unlock(zone);
	mf_stat_zone_add(&pg->stat, zone->index, MF_STAT_trim_pages, pages);
	if (__atomic_load_n(&pg->nr_waiters, __ATOMIC_RELAXED))
		mf_pressure_wake(pg);
	return pages;
}

static uint64_t trim_zone(struct mf_page *pg, struct mf_zone *zone, uint16_t min_age)
{
	uint64_t pages = 0;
	bool done;

	if (!mf_buddy_dirty_lines(&zone->buddy))
		return 0;
	do {
		pages += trim_batch(pg, zone, min_age, &done);
	} while (!done);
	return pages;
}

uint64_t mf_page_trim(struct mf_page *pg)
{
	uint64_t pages = 0;

	mf_lock_acquire(&pg->trim_lock);
	FOR_EACH_ZONE(pg, zone)
	{
		zone->trim_cursor = 0;
		pages += trim_zone(pg, zone, 0);
	}
	mf_lock_release(&pg->trim_lock);
	return pages;
}

/* --- the tick --- */

static void decay_boost(struct mf_page *pg, struct mf_zone *zone)
{
	uint64_t boost = __atomic_load_n(&zone->boost, __ATOMIC_RELAXED);

	if (!boost)
		return;
	mf_zone_lock(pg, zone, false);
	boost = zone->boost;
	__atomic_store_n(&zone->boost, boost - (boost + 7) / 8, __ATOMIC_RELAXED);
	mf_zone_set_marks(zone);
	mf_zone_unlock(zone);
}

void mf_page_tick(struct mf_page *pg)
{
	unsigned seconds = __atomic_load_n(&pg->knobs.trim_seconds, __ATOMIC_RELAXED);

	mf_lock_acquire(&pg->trim_lock);
	pg->ticks++;
	FOR_EACH_ZONE(pg, zone)
	{
		mf_zone_lock(pg, zone, false);
		mf_buddy_set_stamp(&zone->buddy, pg->ticks);
		mf_zone_unlock(zone);
		mf_pcp_tick(pg, zone);
		decay_boost(pg, zone);
		if (seconds)
			trim_zone(pg, zone, seconds > UINT16_MAX / 2 ? UINT16_MAX / 2 : (uint16_t)seconds);
	}
	mf_lock_release(&pg->trim_lock);
}
