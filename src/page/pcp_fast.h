/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The few instructions that serve most requests: pop and push on the caller's
 * own CPU by restartable sequence.  False means nothing but "take the slow
 * path": wrong CPU, lists shut, list empty or full.
 */
#ifndef MF_PAGE_PCP_FAST_H
#define MF_PAGE_PCP_FAST_H

#include "page/page_internal.h"
#include "plat/rseq.h"

static inline bool mf_pcp_fast_take(ptrdiff_t rseq, struct mf_pcp *pcp, unsigned index, uint32_t *pfn)
{
	return mf_rseq_pop(rseq, &pcp->owner, &pcp->list[index].stack, pfn) == MF_RSEQ_DONE;
}

static inline bool mf_pcp_fast_give(ptrdiff_t rseq, struct mf_pcp *pcp, unsigned index, uint32_t pfn)
{
	return mf_rseq_push(rseq, &pcp->owner, &pcp->list[index].stack, pfn) == MF_RSEQ_DONE;
}

#endif
