/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The paths that serve nearly every single-block request, apart so that the
 * compiler sees them whole: no call, no lock, no locked instruction.
 *
 *   may this placement go fast at all?  one and of two bytes
 *   which zone?                         a table by CPU and highest zone type
 *   is it above its low mark?           one compare
 *   a block                             one restartable sequence
 *   statistics                          one increment (rows named *_fast)
 *
 * Whatever does not fit goes to mf_page_alloc() or the slow free, which decide
 * everything anew.  Tables have an entry for what does not exist: a zone that is
 * never above its mark.
 */
#include "base/guess.h"
#include "page/page_internal.h"
#include "page/pcp_fast.h"

/* Flags that need more than a page of the right type from the right zone. */
#define SLOW_FLAGS (MEMFS___GFP_ZERO | MEMFS___GFP_THISNODE | MEMFS___GFP_MEMALLOC)

#define KIND_FLAGS 31u /* the flags that decide zone and type */

#define NEVER_INLINE __attribute__((noinline))

/* By the low flag bits: highest zone type, and the list of order 0 for the migrate type. */
#define HIGHEST_OF(f) \
	((f)&1 ? MF_ZONE_DMA : (f)&2 ? MF_ZONE_DMA32 : ((f)&12) == 12 ? MF_ZONE_MOVABLE : MF_ZONE_NORMAL)
#define TYPE_OF(f) ((f)&8 ? MF_MOVABLE : (f)&16 ? MF_RECLAIMABLE : MF_UNMOVABLE)
#define KIND(f) (uint8_t)(HIGHEST_OF(f) | TYPE_OF(f) << 2)
#define KINDS4(f) KIND(f), KIND((f) + 1), KIND((f) + 2), KIND((f) + 3)

static const uint8_t kinds[KIND_FLAGS + 1] = { KINDS4(0),  KINDS4(4),  KINDS4(8),  KINDS4(12),
					       KINDS4(16), KINDS4(20), KINDS4(24), KINDS4(28) };

_Static_assert(MEMFS___GFP_DMA == 1 && MEMFS___GFP_DMA32 == 2 && MEMFS___GFP_HIGHMEM == 4 &&
		       MEMFS___GFP_MOVABLE == 8 && MEMFS___GFP_RECLAIMABLE == 16,
	       "KIND() spells these bits");

static inline bool above_mark(const struct mf_zone *zone, unsigned highest, unsigned order)
{
	uint64_t mark = __atomic_load_n(&zone->fast_mark[highest], __ATOMIC_RELAXED);

	return mf_zone_free_pages(zone) > mark + ((UINT64_C(1) << order) - 1);
}

/* The thread has no shard yet: its row is as good as the column. */
static NEVER_INLINE void count_first(struct mf_page *pg, unsigned cpu, enum mf_stat_column column,
				     uint64_t pages)
{
	mf_stat_zone_add(&pg->stat, (unsigned)pg->cpu_zone[cpu], mf_stat_column_rows[column], pages);
}

/* Of the CPU's own zone. */
static inline void count_cpu(struct mf_page *pg, unsigned cpu, unsigned column, uint64_t pages)
{
	struct mf_stat_shard *shard = __atomic_load_n(&mf_stat_current, __ATOMIC_RELAXED);

	if (__builtin_expect(__atomic_load_n(&shard->set, __ATOMIC_RELAXED) != &pg->stat, 0))
		count_first(pg, cpu, (enum mf_stat_column)column, pages);
	else
		mf_stat_word_add(&shard->cpu[cpu][column], pages);
}

/* By zone index, which callers know before they have the zone itself. */
static inline void count_zone(struct mf_page *pg, unsigned zone, enum mf_stat_id id, unsigned order)
{
	mf_stat_word_add(&mf_stat_words(&pg->stat)[zone * MF_NR_STATS + id], UINT64_C(1) << order);
}

static NEVER_INLINE int alloc_slow(struct mf_page *pg, struct mf_placement *place, memfs_gfp gfp,
				   unsigned order, memfs_pfn *out)
{
	struct mf_page_request request = {
		.gfp = gfp, .order = order, .node = MF_NODE_BY_POLICY, .cpu = MF_CPU_OF_TASK
	};

	return mf_page_alloc(pg, place, &request, out);
}

/* A signal handler moved the rotation between our look and our store: our block comes after its own. */
static NEVER_INLINE void move_after_handler(struct mf_page *pg, struct mf_placement *place)
{
	struct mf_weights weights;
	struct mf_policy policy;
	mf_nodemask allowed;

	mf_page_get_weights(pg, &weights);
	mf_placement_read(place, &policy, &allowed);
	if (mf_policy_interleaves(&policy))
		mf_alloc_move_rotation(place, &policy, &weights, mf_rotation_load(place), 1);
}

/* The next turn begins: the rule of mf_policy_step() on single words. False: the policy is being changed. */
static bool enter_node(const struct mf_page *pg, const struct mf_placement *place,
		       struct mf_rotation *rotation)
{
	uint32_t seq = __atomic_load_n(&place->seq, __ATOMIC_ACQUIRE);
	mf_nodemask nodes = __atomic_load_n(&place->policy.nodes, __ATOMIC_ACQUIRE);
	enum mf_policy_mode mode = __atomic_load_n(&place->policy.mode, __ATOMIC_ACQUIRE);
	uint8_t node;

	if (seq & 1 || __atomic_load_n(&place->seq, __ATOMIC_RELAXED) != seq || !nodes ||
	    (mode != MF_MPOL_INTERLEAVE && mode != MF_MPOL_WEIGHTED_INTERLEAVE))
		return false;
	node = (uint8_t)mf_node_next_cyclic(nodes, rotation->il_prev);
	rotation->il_prev = node;
	rotation->il_weight =
		mode == MF_MPOL_INTERLEAVE ? 1 : __atomic_load_n(&pg->weights.of[node], __ATOMIC_RELAXED);
	return true;
}

/*
 * Interleaving.  In the middle of a turn the policy is not read but for one
 * word: is the node still one of its nodes?  The placement's fast bit says that
 * every node of the policy is allowed and has memory.
 */
static bool take_interleaved(struct mf_page *pg, struct mf_placement *place, unsigned cpu, unsigned index,
			     unsigned highest, unsigned order, uint32_t *pfn)
{
	uint32_t before = mf_rotation_load(place);
	struct mf_rotation rotation = mf_rotation_unpack(before);
	struct mf_zone *zone;
	struct mf_pcp *pcp;
	unsigned node;
	bool own;

	if ((!rotation.il_weight ||
	     !mf_node_isset(__atomic_load_n(&place->policy.nodes, __ATOMIC_RELAXED), rotation.il_prev)) &&
	    !enter_node(pg, place, &rotation))
		return false;
	rotation.il_weight--;
	node = rotation.il_prev;
	/* Guess that it is the CPU's own node: see below, why the frees guess. */
	pcp = __atomic_load_n(&pg->local_pcp[cpu], __ATOMIC_RELAXED);
	zone = pcp->zone;
	own = zone->node == (int)node && highest == MF_ZONE_NORMAL;
	if (!own) {
		zone = pg->node_zone[node][highest];
		if (!zone || zone->node != (int)node || cpu >= pg->cpu_limit)
			return false;
		pcp = &zone->pcp[cpu];
	}
	if (!above_mark(zone, highest, order) || !mf_pcp_fast_take(pg->rseq_offset, pcp, index, pfn))
		return false;
	if (own)
		count_cpu(pg, cpu, MF_STAT_COLUMN_TURN, UINT64_C(1) << order);
	else
		count_zone(pg, pg->node_zone_index[node][highest],
			   pg->topo->cpu_node[cpu] == (int)node ? MF_STAT_alloc_turn_local_fast
								: MF_STAT_alloc_turn_other_fast,
			   order);
	if (__builtin_expect(!mf_rotation_swap(place, before, mf_rotation_pack(rotation)), 0))
		move_after_handler(pg, place);
	return true;
}

/* A large block must be in the zone besides, not only on the list (behaviour 2.3). */
static inline bool has_block(const struct mf_zone *zone, unsigned order)
{
	return order == 0 ||
	       __atomic_load_n(&zone->buddy.nr_free[MF_MOVABLE][MEMFS_MAX_PAGE_ORDER], __ATOMIC_RELAXED) != 0;
}

/* A local policy where sequences cannot be used: a fixed CPU, or pcp_mode=trylock. */
static bool take_locked(struct mf_page *pg, const struct mf_placement *place, unsigned list, unsigned highest,
			unsigned order, uint32_t *pfn)
{
	bool is_auto, numa = __atomic_load_n(&pg->numa, __ATOMIC_RELAXED);
	int cpu = mf_alloc_cpu(pg, __atomic_load_n(&place->cpu, __ATOMIC_RELAXED), &is_auto);
	struct mf_zone *zone;
	int node;

	if (cpu < 0)
		return false;
	node = pg->topo->cpu_node[cpu];
	zone = pg->node_zone[node][highest];
	if (!zone || zone->node != node || !above_mark(zone, highest, order) || !has_block(zone, order) ||
	    !mf_pcp_take_hit(pg, zone, cpu, list, pfn))
		return false;
	count_zone(pg, zone->index, numa ? MF_STAT_alloc_local_fast : MF_STAT_alloc_plain_fast, order);
	return true;
}

/* Other kinds, larger blocks and interleaving: the same steps, a few more of them. */
static NEVER_INLINE int alloc_other(struct mf_placement *place, memfs_gfp gfp, unsigned order, memfs_pfn *out)
{
	struct mf_page *pg = place->pg;
	unsigned fast = __atomic_load_n(&place->fast, __ATOMIC_RELAXED) &
			__atomic_load_n(&pg->fast_mask, __ATOMIC_RELAXED);
	unsigned kind = kinds[gfp & KIND_FLAGS], highest = kind & 3;
	int list = mf_pcp_list_index(order, (enum mf_migrate_type)(kind >> 2));
	struct mf_zone *zone;
	unsigned cpu;

	if (gfp & SLOW_FLAGS || list < 0)
		return alloc_slow(pg, place, gfp, order, out);
	if (!fast)
		return __atomic_load_n(&place->fast, __ATOMIC_RELAXED) & MF_FAST_PINNED &&
				       __atomic_load_n(&pg->locked_ok, __ATOMIC_RELAXED) &&
				       take_locked(pg, place, (unsigned)list, highest, order, &out->v)
			       ? 0
			       : alloc_slow(pg, place, gfp, order, out);
	cpu = mf_rseq_cpu_at(pg->rseq_offset);
	zone = pg->local_zone[cpu * MF_NR_ZONE_TYPES + highest];
	if (!has_block(zone, order))
		return alloc_slow(pg, place, gfp, order, out);
	if (fast & MF_FAST_INTERLEAVE)
		return take_interleaved(pg, place, cpu, (unsigned)list, highest, order, &out->v)
			       ? 0
			       : alloc_slow(pg, place, gfp, order, out);
	if (!above_mark(zone, highest, order) ||
	    !mf_pcp_fast_take(pg->rseq_offset, &zone->pcp[cpu], (unsigned)list, &out->v))
		return alloc_slow(pg, place, gfp, order, out);
	count_zone(pg, zone->index,
		   __atomic_load_n(&pg->numa, __ATOMIC_RELAXED) ? MF_STAT_alloc_local_fast
								: MF_STAT_alloc_plain_fast,
		   order);
	return 0;
}

/* An unmovable page from the CPU's own zone, by a local policy. */
int mf_page_alloc_simple(struct mf_placement *place, memfs_gfp gfp, unsigned order, memfs_pfn *out)
{
	struct mf_page *pg = place->pg;
	struct mf_pcp *pcp;
	unsigned cpu;

	if (__builtin_expect(!(__atomic_load_n(&place->fast, __ATOMIC_RELAXED) & MF_FAST_LOCAL), 0) ||
	    __builtin_expect(gfp & (SLOW_FLAGS | KIND_FLAGS), 0) || __builtin_expect(order, 0))
		goto other;
	cpu = mf_rseq_cpu_at(pg->rseq_offset);
	pcp = __atomic_load_n(&pg->local_pcp[cpu], __ATOMIC_RELAXED);
	if (__builtin_expect(!above_mark(pcp->zone, MF_ZONE_NORMAL, 0) ||
				     !mf_pcp_fast_take(pg->rseq_offset, pcp, MF_UNMOVABLE, &out->v),
			     0))
		goto other;
	count_cpu(pg, cpu, __atomic_load_n(&pg->fast_column, __ATOMIC_RELAXED), 1);
	return 0;
other:
	return alloc_other(place, gfp, order, out);
}

/* Neither another path nor another kind: what the caller does without it, it knows itself. */
bool mf_page_alloc_own(struct mf_placement *place, unsigned order, memfs_pfn *out)
{
	struct mf_page *pg = place->pg;
	unsigned fast = __atomic_load_n(&place->fast, __ATOMIC_RELAXED) &
			__atomic_load_n(&pg->fast_mask, __ATOMIC_RELAXED);
	int list = mf_pcp_list_index(order, MF_UNMOVABLE);
	struct mf_zone *zone;
	struct mf_pcp *pcp;
	unsigned cpu;

	/* AUTO is in the mask without numa only, where every policy is a local one. */
	if (!(fast & (MF_FAST_LOCAL | MF_FAST_AUTO)) || list < 0)
		return false;
	cpu = mf_rseq_cpu_at(pg->rseq_offset);
	pcp = __atomic_load_n(&pg->local_pcp[cpu], __ATOMIC_RELAXED);
	zone = pcp->zone;
	if (!above_mark(zone, MF_ZONE_NORMAL, order) || !has_block(zone, order) ||
	    !mf_pcp_fast_take(pg->rseq_offset, pcp, (unsigned)list, &out->v))
		return false;
	count_cpu(pg, cpu, __atomic_load_n(&pg->fast_column, __ATOMIC_RELAXED), UINT64_C(1) << order);
	return true;
}

/*
 * Why the frees guess.  The address of the list hangs on the page's zone and
 * type, hence on a chain of loads that begins at its number; and the next
 * allocation from that list waits for the store of its top, hence for the
 * chain.  A compared value ends the chain: the processor guesses the branch and
 * goes on with lists it knows already.
 */

static inline unsigned guess_list(enum mf_migrate_type type)
{
	if (type == MF_UNMOVABLE)
		return mf_guess(MF_UNMOVABLE);
	if (type == MF_MOVABLE)
		return mf_guess(MF_MOVABLE);
	return mf_guess(MF_RECLAIMABLE);
}

static NEVER_INLINE void free_other(const struct mf_placement *place, uint32_t pfn, unsigned order)
{
	struct mf_page *pg = place->pg;
	uint16_t kind = __atomic_load_n(&pg->line_kind[pfn >> MF_PAGEBLOCK_ORDER], __ATOMIC_RELAXED);
	enum mf_migrate_type type = (enum mf_migrate_type)((kind & 0xff) ^ MF_MOVABLE);
	unsigned cpu = mf_rseq_cpu_at(pg->rseq_offset);
	struct mf_pcp *pcp;
	struct mf_zone *zone;
	unsigned list;

	if (!(__atomic_load_n(&place->fast, __ATOMIC_RELAXED) &
	      __atomic_load_n(&pg->free_mask, __ATOMIC_RELAXED)) ||
	    cpu >= pg->cpu_limit || type >= MF_PCP_TYPES || (order > 3 && order != MF_PAGEBLOCK_ORDER))
		goto slow;
	pcp = __atomic_load_n(&pg->local_pcp[cpu], __ATOMIC_RELAXED);
	zone = pcp->zone;
	if ((kind ^ pcp->kind) >> 8) {
		zone = pg->zone[kind >> 8];
		pcp = &zone->pcp[cpu];
	}
	list = guess_list(type) + MF_PCP_TYPES * (order > 3 ? 4 : order);
	if (!mf_pcp_fast_give(pg->rseq_offset, pcp, list, pfn))
		goto slow;
	count_zone(pg, kind >> 8, MF_STAT_pgfree, order);
	return;
slow:
	mf_free_slow(pg, place, pfn, order, false);
}

/* A single unmovable page of the CPU's own zone. */
void mf_page_free(const struct mf_placement *place, memfs_pfn page, unsigned order)
{
	struct mf_page *pg = place->pg;
	struct mf_pcp *pcp;
	unsigned cpu;

	if (__builtin_expect(!(__atomic_load_n(&place->fast, __ATOMIC_RELAXED) & MF_FAST_AUTO), 0) ||
	    __builtin_expect(order, 0))
		goto other;
	cpu = mf_rseq_cpu_at(pg->rseq_offset);
	pcp = __atomic_load_n(&pg->local_pcp[cpu], __ATOMIC_RELAXED);
	if (__builtin_expect(__atomic_load_n(&pg->line_kind[page.v >> MF_PAGEBLOCK_ORDER],
					     __ATOMIC_RELAXED) != pcp->kind,
			     0) ||
	    !mf_pcp_fast_give(pg->rseq_offset, pcp, MF_UNMOVABLE, page.v))
		goto other;
	count_cpu(pg, cpu, MF_STAT_COLUMN_FREE, 1);
	return;
other:
	free_other(place, page.v, order);
}
