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
#include "page/page_internal.h"
#include "page/pcp_fast.h"

#include <stddef.h>

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

/* One increment at an offset that the zone keeps ready. */
static inline void count_word(struct mf_page *pg, uint32_t offset, uint64_t pages)
{
	struct mf_stat_shard *shard = __atomic_load_n(&mf_stat_current, __ATOMIC_RELAXED);

	if (__builtin_expect(shard->set_id != pg->stat.id, 0)) {
		uint64_t *words = mf_stat_shard_get(&pg->stat);

		mf_stat_word_add(words + (offset - offsetof(struct mf_stat_shard, words)) / sizeof(*words),
				 pages);
		return;
	}
	mf_stat_word_add((uint64_t *)(void *)((char *)shard + offset), pages);
}

static inline void count(struct mf_page *pg, const struct mf_zone *zone, enum mf_stat_id id, unsigned order)
{
	mf_stat_word_add(&mf_stat_words(&pg->stat)[zone->stat_base + id], UINT64_C(1) << order);
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

/*
 * Interleaving: the rule of mf_policy_step() on single words.  The placement's
 * fast bit says that every node of the policy is allowed and has memory.
 */
static bool take_interleaved(struct mf_page *pg, struct mf_placement *place, int cpu, unsigned index,
			     unsigned highest, unsigned order, uint32_t *pfn)
{
	uint32_t seq = __atomic_load_n(&place->seq, __ATOMIC_ACQUIRE);
	mf_nodemask nodes = __atomic_load_n(&place->policy.nodes, __ATOMIC_ACQUIRE);
	enum mf_policy_mode mode = __atomic_load_n(&place->policy.mode, __ATOMIC_ACQUIRE);
	uint32_t before = mf_rotation_load(place);
	struct mf_rotation rotation = mf_rotation_unpack(before);
	struct mf_zone *zone;

	if (seq & 1 || __atomic_load_n(&place->seq, __ATOMIC_RELAXED) != seq || !nodes)
		return false;
	if (!rotation.il_weight || !mf_node_isset(nodes, rotation.il_prev)) {
		rotation.il_prev = (uint8_t)mf_node_next_cyclic(nodes, rotation.il_prev);
		rotation.il_weight =
			mode == MF_MPOL_INTERLEAVE
				? 1
				: __atomic_load_n(&pg->weights.of[rotation.il_prev], __ATOMIC_RELAXED);
	}
	rotation.il_weight--;
	zone = pg->node_zone[rotation.il_prev][highest];
	if (!zone || zone->node != rotation.il_prev || !above_mark(zone, highest, order) ||
	    !mf_pcp_fast_take(&zone->pcp[cpu], index, pfn))
		return false;
	count(pg, zone,
	      pg->topo->cpu_node[cpu] == zone->node ? MF_STAT_alloc_turn_local_fast
						    : MF_STAT_alloc_turn_other_fast,
	      order);
	if (__builtin_expect(!mf_rotation_swap(place, before, mf_rotation_pack(rotation)), 0))
		move_after_handler(pg, place);
	return true;
}

/* Larger blocks and interleaving: the same steps, a few more of them. */
static NEVER_INLINE int alloc_other(struct mf_page *pg, struct mf_placement *place, memfs_gfp gfp,
				    unsigned order, memfs_pfn *out)
{
	unsigned fast = __atomic_load_n(&place->fast, __ATOMIC_RELAXED) &
			__atomic_load_n(&pg->fast_mask, __ATOMIC_RELAXED);
	unsigned kind = kinds[gfp & KIND_FLAGS], highest = kind & 3;
	int index = mf_pcp_list_index(order, (enum mf_migrate_type)(kind >> 2));
	int cpu = mf_rseq_cpu();
	struct mf_zone *zone;

	if (!fast || gfp & SLOW_FLAGS || index < 0)
		return alloc_slow(pg, place, gfp, order, out);
	zone = pg->local_zone[(unsigned)cpu * MF_NR_ZONE_TYPES + highest];
	/* A large block must be there besides: in the zone, not only on the list (behaviour 2.3). */
	if (order > 0 &&
	    !__atomic_load_n(&zone->buddy.nr_free[MF_MOVABLE][MEMFS_MAX_PAGE_ORDER], __ATOMIC_RELAXED))
		return alloc_slow(pg, place, gfp, order, out);
	if (fast & MF_FAST_INTERLEAVE)
		return take_interleaved(pg, place, cpu, (unsigned)index, highest, order, &out->v)
			       ? 0
			       : alloc_slow(pg, place, gfp, order, out);
	if (!above_mark(zone, highest, order) || !mf_pcp_fast_take(&zone->pcp[cpu], (unsigned)index, &out->v))
		return alloc_slow(pg, place, gfp, order, out);
	count_word(pg, __atomic_load_n(&zone->fast_word, __ATOMIC_RELAXED), UINT64_C(1) << order);
	return 0;
}

int mf_page_alloc_simple(struct mf_page *pg, struct mf_placement *place, memfs_gfp gfp, unsigned order,
			 memfs_pfn *out)
{
	uint8_t fast = __atomic_load_n(&place->fast, __ATOMIC_RELAXED) &
		       __atomic_load_n(&pg->fast_mask, __ATOMIC_RELAXED) & (MF_FAST_AUTO | MF_FAST_LOCAL);
	const struct mf_local *local;
	struct mf_zone *zone;

	/* An unmovable page for the kernel's own zones; the other kinds differ by a table look-up. */
	if (__builtin_expect(!fast || gfp & (SLOW_FLAGS | KIND_FLAGS) || order, 0))
		return alloc_other(pg, place, gfp, order, out);
	local = &pg->local[mf_rseq_cpu()];
	zone = local->zone;
	if (__builtin_expect(!above_mark(zone, MF_ZONE_NORMAL, 0) ||
				     !mf_pcp_fast_take(local->pcp, MF_UNMOVABLE, &out->v),
			     0))
		return alloc_slow(pg, place, gfp, order, out);
	count_word(pg, __atomic_load_n(&zone->fast_word, __ATOMIC_RELAXED), 1);
	return 0;
}

/*
 * A list number that does not depend on the type as data.  The processor then
 * guesses the branch and goes on with the address of the list while the type is
 * still being loaded; a computed address would make every free wait for a chain
 * of loads that begins at the page's number, and the next allocation for the free.
 */
static inline __attribute__((always_inline)) unsigned opaque(const unsigned list)
{
#if defined(__x86_64__) && defined(__OPTIMIZE__)
	unsigned number;

	/* A move of its own: the compiler must not find the number in the register it has just compared. */
	__asm__ volatile("movl %1, %0" : "=r"(number) : "i"(list));
	return number;
#else
	return list;
#endif
}

static inline unsigned guess_list(enum mf_migrate_type type)
{
	if (type == MF_UNMOVABLE)
		return opaque(MF_UNMOVABLE);
	if (type == MF_MOVABLE)
		return opaque(MF_MOVABLE);
	return opaque(MF_RECLAIMABLE);
}

static NEVER_INLINE void free_other(struct mf_page *pg, const struct mf_placement *place, uint32_t pfn,
				    unsigned order)
{
	bool fast = __atomic_load_n(&place->fast, __ATOMIC_RELAXED) &
		    __atomic_load_n(&pg->free_mask, __ATOMIC_RELAXED);
	struct mf_zone *zone = mf_page_zone_of(pg, pfn);
	enum mf_migrate_type type = mf_buddy_type(&zone->buddy, pfn);
	int list = type < MF_PCP_TYPES ? mf_pcp_list_index(order, type) : -1;
	int cpu = mf_rseq_cpu();

	if (fast && list >= 0 && (unsigned)cpu < pg->cpu_limit &&
	    mf_pcp_fast_give(&zone->pcp[cpu], (unsigned)list, pfn))
		count_word(pg, __atomic_load_n(&zone->free_word, __ATOMIC_RELAXED), UINT64_C(1) << order);
	else
		mf_free_slow(pg, place, pfn, order, false);
}

/* A single page of the CPU's own zone: that it is one is a guess that one compare confirms. */
void mf_page_free(struct mf_page *pg, const struct mf_placement *place, memfs_pfn page, unsigned order)
{
	uint8_t fast = __atomic_load_n(&place->fast, __ATOMIC_RELAXED) &
		       __atomic_load_n(&pg->free_mask, __ATOMIC_RELAXED);
	const struct mf_local *local;
	enum mf_migrate_type type;
	struct mf_zone *zone;

	if (__builtin_expect(!fast || order, 0))
		goto other;
	local = &pg->local[mf_rseq_cpu()];
	zone = local->zone;
	if (__builtin_expect(page.v - zone->start_pfn >= zone->managed, 0))
		goto other;
	type = mf_buddy_type(&zone->buddy, page.v);
	if (__builtin_expect(type >= MF_PCP_TYPES, 0) ||
	    !mf_pcp_fast_give(local->pcp, guess_list(type), page.v))
		goto other;
	count_word(pg, __atomic_load_n(&zone->free_word, __ATOMIC_RELAXED), 1);
	return;
other:
	free_other(pg, place, page.v, order);
}
