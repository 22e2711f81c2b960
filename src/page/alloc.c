/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One block: from a request along the zonelist, and what is tried when that
 * does not help.
 *
 * First every zone down to its low mark; then down to the min mark, with the
 * reserves the flags entitle to; then, if the caller may wait, the lists are
 * drained, the shrinkers run, and the zones are asked once more; then it fails,
 * or with NOFAIL sleeps until pages come back (behaviour 2.3, 2.9; design 3.4).
 */
#include "page/page_internal.h"

#include <errno.h>
#include <string.h>

/* The zone that counts as wanted: the first of the zonelist that passes the filter. */
static const struct mf_zone *preferred_zone(const struct mf_page *pg, const struct mf_alloc *a)
{
	const struct mf_zonelist *list = &pg->zonelist[a->node];
	const struct mf_zone *zone = pg->node_zone[a->node][a->highest];

	if (zone && mf_node_isset(a->filter, zone->node))
		return zone;
	for (unsigned i = 0; i < list->nr_zones; i++) {
		zone = pg->zone[list->zones[i]];
		if (zone->type <= a->highest && mf_node_isset(a->filter, zone->node))
			return zone;
	}
	return NULL;
}

void mf_alloc_account(struct mf_page *pg, const struct mf_alloc *a, const struct mf_zone *from,
		      uint64_t pages)
{
	uint64_t *words = mf_stat_words(&pg->stat) + from->index * MF_NR_STATS;
	const struct mf_zone *wanted;

	mf_stat_word_add(&words[MF_STAT_pgalloc], pages);
	if (!__atomic_load_n(&pg->numa_stat, __ATOMIC_RELAXED))
		return;
	wanted = a->stands_in_for ? a->stands_in_for : preferred_zone(pg, a);
	if (!wanted || wanted->node == from->node) {
		mf_stat_word_add(&words[MF_STAT_numa_hit], pages);
		if (a->interleaved && from->node == a->node)
			mf_stat_word_add(&words[MF_STAT_numa_interleave], pages);
	} else {
		mf_stat_word_add(&words[MF_STAT_numa_miss], pages);
		mf_stat_zone_add(&pg->stat, wanted->index, MF_STAT_numa_foreign, pages);
	}
	mf_stat_word_add(&words[from->node == a->local ? MF_STAT_numa_local : MF_STAT_numa_other], pages);
}

void mf_alloc_finish(struct mf_page *pg, const struct mf_alloc *a, uint32_t pfn)
{
	if (a->gfp & MEMFS___GFP_ZERO || __atomic_load_n(&pg->knobs.init_on_alloc, __ATOMIC_RELAXED))
		memset(mf_page_address(pg, pfn), 0, a->pages * (size_t)MEMFS_PAGE_SIZE);
}

int mf_alloc_fail(struct mf_page *pg, const struct mf_alloc *a)
{
	mf_stat_add(&pg->stat, a->no_sleep ? MF_STAT_alloc_nowait_fail : MF_STAT_alloc_fail, 1);
	return -ENOMEM;
}

void mf_alloc_entitle(struct mf_alloc *a)
{
	a->min_reserve = a->gfp & MEMFS___GFP_HIGH;
	if (!(a->gfp & MEMFS___GFP_DIRECT_RECLAIM) && !(a->gfp & MEMFS___GFP_NOMEMALLOC)) {
		a->non_block = true;
		a->highatomic = a->order > 0 && a->min_reserve;
	}
	a->memalloc = (a->gfp & MEMFS___GFP_MEMALLOC) && !(a->gfp & MEMFS___GFP_NOMEMALLOC);
}

/* Along the zonelist once, as the request stands.  true: *pfn and *from. */
static bool walk_zones(struct mf_page *pg, const struct mf_alloc *a, enum mf_watermark mark, uint32_t *pfn,
		       struct mf_zone **from)
{
	const struct mf_zonelist *list = &pg->zonelist[a->node];

	for (unsigned i = 0; i < list->nr_zones; i++) {
		struct mf_zone *zone = pg->zone[list->zones[i]];

		if (zone->type > a->highest || !mf_node_isset(a->filter, zone->node))
			continue;
		if (!mf_zone_watermark_ok(zone, a, a->order,
					  __atomic_load_n(&zone->wmark[mark], __ATOMIC_RELAXED)))
			continue;
		if (mf_pcp_take(pg, zone, a, pfn) || mf_zone_take(pg, zone, a, pfn)) {
			*from = zone;
			return true;
		}
	}
	return false;
}

/*
 * Before a zone Normal breaks pageblocks of other types, the DMA32 beside it is
 * asked; before another node is, it may (behaviour 2.2: locality first).
 */
static bool walk(struct mf_page *pg, const struct mf_alloc *a, enum mf_watermark mark, uint32_t *pfn,
		 struct mf_zone **from)
{
	if (a->highest >= MF_ZONE_NORMAL && pg->zone[mf_zone_index(a->node, MF_ZONE_NORMAL)] &&
	    pg->zone[mf_zone_index(a->node, MF_ZONE_DMA32)] && mf_node_isset(a->filter, a->node)) {
		struct mf_alloc whole = *a;

		whole.nofragment = true;
		whole.filter = mf_node_bit(a->node);
		if (walk_zones(pg, &whole, mark, pfn, from))
			return true;
	}
	return walk_zones(pg, a, mark, pfn, from);
}

/* The nodes preferred are asked as deep as they go before any other (behaviour 1.1). */
static bool walk_preferred(struct mf_page *pg, const struct mf_alloc *a, enum mf_watermark mark,
			   uint32_t *pfn, struct mf_zone **from)
{
	struct mf_alloc deep = *a;

	if (mark == MF_WMARK_LOW && walk(pg, a, mark, pfn, from))
		return true;
	mf_alloc_entitle(&deep);
	return walk(pg, &deep, MF_WMARK_MIN, pfn, from);
}

static bool walk_filters(struct mf_page *pg, struct mf_alloc *a, enum mf_watermark mark, uint32_t *pfn,
			 struct mf_zone **from)
{
	mf_nodemask filter = a->filter;
	bool got = false;

	if (a->first_filter != filter && a->first_filter) {
		a->filter = a->first_filter;
		got = walk_preferred(pg, a, mark, pfn, from);
		if (!got)
			a->filter = filter;
	}
	return got || walk(pg, a, mark, pfn, from);
}

static int slow_path(struct mf_page *pg, struct mf_alloc *a, struct mf_cancel *cancel, uint32_t *pfn,
		     struct mf_zone **from)
{
	bool nofail = (a->gfp & MEMFS___GFP_NOFAIL) && a->may_wait;

	mf_alloc_entitle(a);
	if (walk_filters(pg, a, MF_WMARK_MIN, pfn, from))
		return 0;
	if (!a->may_wait || (a->gfp & MEMFS___GFP_NORETRY && !nofail))
		return mf_alloc_fail(pg, a);
	for (;;) {
		int error;

		if (mf_pressure_relieve(pg, a) && walk_filters(pg, a, MF_WMARK_MIN, pfn, from))
			return 0;
		if (!nofail)
			return mf_alloc_fail(pg, a);
		error = mf_pressure_wait(pg, cancel);
		if (error)
			return error;
	}
}

int mf_alloc_block(struct mf_page *pg, struct mf_alloc *a, struct mf_cancel *cancel, uint32_t *pfn)
{
	mf_nodemask filter = a->filter;
	struct mf_zone *from = NULL;
	int error = 0;

	if (!walk_filters(pg, a, MF_WMARK_LOW, pfn, &from))
		error = slow_path(pg, a, cancel, pfn, &from);
	if (!error) {
		if (a->highatomic)
			mf_zone_reserve_highatomic(pg, from, *pfn);
		mf_alloc_account(pg, a, from, a->pages);
		mf_alloc_finish(pg, a, *pfn);
	}
	a->filter = filter;
	return error;
}

int mf_alloc_try(struct mf_page *pg, const struct mf_alloc *a, uint32_t *pfn)
{
	struct mf_zone *from = NULL;

	if (!walk(pg, a, MF_WMARK_LOW, pfn, &from))
		return -ENOMEM;
	mf_alloc_account(pg, a, from, a->pages);
	mf_alloc_finish(pg, a, *pfn);
	return 0;
}

int mf_alloc_check(const struct mf_page *pg, const struct mf_page_request *request)
{
	if (request->order > MEMFS_MAX_PAGE_ORDER)
		return -EINVAL;
	if (request->node == MF_NODE_BY_POLICY)
		return 0;
	return mf_node_isset(pg->topo->memory, request->node) ? 0 : -EINVAL;
}

/* A task policy's rotation decides, and moves if the block is handed out. */
static int alloc_rotating(struct mf_page *pg, struct mf_placement *place,
			  const struct mf_page_request *request, const struct mf_policy *policy,
			  mf_nodemask allowed, struct mf_alloc *a, uint32_t *pfn)
{
	uint32_t before = mf_rotation_load(place);
	struct mf_rotation rotation = mf_rotation_unpack(before);
	struct mf_weights weights;
	int error;

	mf_page_get_weights(pg, &weights);
	mf_alloc_place_on(mf_policy_step(policy, &weights, &rotation), allowed, a);
	a->interleaved = true;
	error = mf_alloc_block(pg, a, request->cancel, pfn);
	if (!error)
		mf_alloc_move_rotation(place, policy, &weights, before, 1);
	return error;
}

int mf_page_alloc(struct mf_page *pg, struct mf_placement *place, const struct mf_page_request *request,
		  memfs_pfn *out)
{
	struct mf_policy policy;
	struct mf_weights weights;
	struct mf_alloc a;
	mf_nodemask allowed;
	uint32_t pfn;
	int error = mf_alloc_check(pg, request);

	if (error)
		return error;
	mf_alloc_prepare(pg, place, request, &a);
	mf_alloc_policy(pg, place, request, &policy, &allowed);
	if (request->node != MF_NODE_BY_POLICY) {
		mf_alloc_place_on(request->node, allowed, &a);
		a.interleaved = request->interleaved;
		error = mf_alloc_block(pg, &a, request->cancel, &pfn);
	} else if (mf_policy_interleaves(&policy) && request->vma) {
		mf_page_get_weights(pg, &weights);
		mf_alloc_place_on(mf_policy_index_node(&policy, &weights, request->index), allowed, &a);
		a.interleaved = true;
		error = mf_alloc_block(pg, &a, request->cancel, &pfn);
	} else if (mf_policy_interleaves(&policy)) {
		error = alloc_rotating(pg, place, request, &policy, allowed, &a, &pfn);
	} else {
		mf_alloc_place(&policy, allowed, &a);
		error = mf_alloc_block(pg, &a, request->cancel, &pfn);
	}
	if (!error)
		out->v = pfn;
	return error;
}
