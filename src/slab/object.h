/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The few instructions that serve most objects, shared by object.c and
 * kmalloc.c.  False means nothing but "take the slow way": another CPU's
 * placement, a sheaf that is empty, full or shut, a CPU that is not ready, an
 * object of another node or of another cache.
 */
#ifndef MF_SLAB_OBJECT_H
#define MF_SLAB_OBJECT_H

#include "slab/slab_internal.h"

#define MF_TAG_ID ((UINT32_C(1) << MF_TAG_NODE_SHIFT) - 1)

/*
 * There is an entry of every CPU that this host can ever have: no need to
 * compare.  One that is not ready is open to nobody.  @rseq: slabs->rseq.
 */
static inline bool mf_object_pop(ptrdiff_t rseq, const struct mf_cache *cache,
				 const struct mf_placement *place, void **object)
{
	return __builtin_expect(__atomic_load_n(&place->fast, __ATOMIC_RELAXED) & MF_FAST_AUTO, 1) &&
	       mf_rseq_sheaf_pop_own(rseq, (void *const *)&cache->cpu, object) == MF_RSEQ_DONE;
}

/* @tag: of the object's page; only the node and cache of the CPU's main sheaf will do. */
static inline bool mf_object_push(ptrdiff_t rseq, const struct mf_cache *cache,
				  const struct mf_placement *place, void *object, uint32_t tag)
{
	return __builtin_expect(__atomic_load_n(&place->fast, __ATOMIC_RELAXED) & MF_FAST_AUTO, 1) &&
	       mf_rseq_sheaf_push_own(rseq, (void *const *)&cache->cpu, tag, object) == MF_RSEQ_DONE;
}

/* object.c: everything else; @node MF_NODE_BY_POLICY or a node named. */
void *mf_object_alloc_slow(struct mf_cache *cache, struct mf_placement *place, memfs_gfp gfp, int node,
			   const void *caller);
int mf_object_free_slow(struct mf_cache *cache, const struct mf_placement *place, void *object,
			const void *caller);

#endif
