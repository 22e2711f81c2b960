/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Placement: the policy, rotation, allowed nodes and CPU of a task, and what
 * they mean for one request: whose lists, which node, which nodes at all.
 *
 * Readers copy a placement without a lock under its sequence count; each field
 * is one atomic word, acquire on the way out and release on the way in, so that
 * no fence is needed.  A signal handler that interrupted the writer cannot wait
 * for it and takes the default policy for that one request.
 */
#include "page/page_internal.h"
#include "plat/rseq.h"

#include <errno.h>
#include <string.h>

/* --- the rotation word --- */

void mf_alloc_move_rotation(struct mf_placement *place, const struct mf_policy *policy,
			    const struct mf_weights *weights, uint32_t before, uint64_t blocks)
{
	for (;;) {
		struct mf_rotation rotation = mf_rotation_unpack(before);

		mf_policy_advance(policy, weights, &rotation, blocks);
		if (mf_rotation_swap(place, before, mf_rotation_pack(rotation)))
			return;
		/* A handler moved it meanwhile: these blocks come after its own. */
		before = mf_rotation_load(place);
	}
}

struct mf_rotation mf_placement_rotation(const struct mf_placement *place)
{
	return mf_rotation_unpack(mf_rotation_load(place));
}

/* --- the sequence count --- */

static void write_begin(struct mf_placement *place)
{
	__atomic_store_n(&place->seq, place->seq + 1, __ATOMIC_RELAXED);
}

static void write_end(struct mf_placement *place)
{
	__atomic_store_n(&place->seq, place->seq + 1, __ATOMIC_RELEASE);
}

#define PUT(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELEASE)
#define GET(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)

/* What the fast path may assume; anything it does not know is left to the slow one. */
static void put_fast(struct mf_placement *place, mf_nodemask memory)
{
	const struct mf_policy *policy = &place->policy;
	bool local = policy->mode == MF_MPOL_DEFAULT || policy->mode == MF_MPOL_LOCAL;
	uint8_t fast = local && (place->allowed & memory) == memory ? MF_FAST_PINNED : 0;

	if (place->cpu == MEMFS_CPU_AUTO) {
		fast |= MF_FAST_AUTO;
		if (local && (place->allowed & memory) == memory)
			fast |= MF_FAST_LOCAL;
		if (mf_policy_interleaves(policy) && !(policy->nodes & ~(place->allowed & memory)))
			fast |= MF_FAST_INTERLEAVE;
	}
	PUT(place->fast, fast);
}

static void put_policy(struct mf_placement *place, const struct mf_policy *policy, const struct mf_topo *topo)
{
	PUT(place->policy.mode, policy->mode);
	PUT(place->policy.flags, policy->flags);
	PUT(place->policy.user, policy->user);
	PUT(place->policy.nodes, policy->nodes);
	PUT(place->policy.allowed, policy->allowed);
	put_fast(place, topo->memory);
}

void mf_placement_read(const struct mf_placement *place, struct mf_policy *policy, mf_nodemask *allowed)
{
	uint32_t seq;

	do {
		seq = GET(place->seq);
		if (seq & 1) {
			if (mf_lock_depth() == 0)
				continue;
			*policy = (struct mf_policy){ .mode = MF_MPOL_DEFAULT };
			*allowed = ~UINT64_C(0);
			return;
		}
		policy->mode = GET(place->policy.mode);
		policy->flags = GET(place->policy.flags);
		policy->user = GET(place->policy.user);
		policy->nodes = GET(place->policy.nodes);
		policy->allowed = GET(place->policy.allowed);
		*allowed = GET(place->allowed);
	} while (seq & 1 || __atomic_load_n(&place->seq, __ATOMIC_RELAXED) != seq);
}

void mf_placement_context(const struct mf_topo *topo, mf_nodemask allowed, struct mf_policy_context *out)
{
	*out = (struct mf_policy_context){ .exist = topo->nodes, .memory = topo->memory, .allowed = allowed };
}

void mf_placement_init(struct mf_placement *place, struct mf_page *pg)
{
	const struct mf_topo *topo = pg->topo;

	*place = (struct mf_placement){
		.pg = pg,
		.rotation = mf_rotation_pack((struct mf_rotation)MF_ROTATION_INIT),
		.cpu = mf_topo_first_cpu(topo),
		.policy = { .mode = MF_MPOL_DEFAULT, .allowed = topo->nodes },
		.allowed = topo->nodes,
	};
	put_fast(place, topo->memory);
}

void mf_placement_set_policy(struct mf_placement *place, const struct mf_policy *policy,
			     const struct mf_topo *topo)
{
	write_begin(place);
	put_policy(place, policy, topo);
	__atomic_store_n(&place->rotation, mf_rotation_pack((struct mf_rotation)MF_ROTATION_INIT),
			 __ATOMIC_RELEASE);
	write_end(place);
}

int mf_placement_set_allowed(struct mf_placement *place, mf_nodemask allowed, const struct mf_topo *topo)
{
	struct mf_policy policy = place->policy;
	struct mf_policy_context context;

	if (allowed & ~topo->nodes || !(allowed & topo->memory))
		return -EINVAL;
	mf_placement_context(topo, allowed, &context);
	mf_policy_rebind(&policy, &context);
	write_begin(place);
	PUT(place->allowed, allowed);
	put_policy(place, &policy, topo);
	write_end(place);
	return 0;
}

void mf_placement_set_cpu(struct mf_placement *place, int cpu, const struct mf_topo *topo)
{
	__atomic_store_n(&place->cpu, cpu, __ATOMIC_RELAXED);
	put_fast(place, topo->memory);
}

/* --- weights: the same kind of sequence count --- */

void mf_page_set_weights(struct mf_page *pg, const struct mf_weights *weights)
{
	__atomic_store_n(&pg->weights_seq, pg->weights_seq + 1, __ATOMIC_RELAXED);
	for (int node = 0; node < 64; node++)
		PUT(pg->weights.of[node], weights->of[node]);
	__atomic_store_n(&pg->weights_seq, pg->weights_seq + 1, __ATOMIC_RELEASE);
}

void mf_page_get_weights(const struct mf_page *pg, struct mf_weights *out)
{
	uint32_t seq;

	memset(out->of, 1, sizeof(out->of));
	do {
		seq = GET(pg->weights_seq);
		/* Below its own writer a handler takes each weight as it is: any mixture is valid. */
		if (seq & 1 && mf_lock_depth() == 0)
			continue;
		MF_FOR_EACH_NODE(node, pg->topo->memory)
			out->of[node] = GET(pg->weights.of[node]);
		if (seq & 1)
			return;
	} while (seq & 1 || __atomic_load_n(&pg->weights_seq, __ATOMIC_RELAXED) != seq);
}

/* --- one request --- */

int mf_alloc_cpu(struct mf_page *pg, int cpu, bool *is_auto)
{
	*is_auto = cpu == MEMFS_CPU_AUTO;
	if (*is_auto) {
		/* Where glibc did not register, the rseq area says CPU 0 for every thread. */
		cpu = __atomic_load_n(&pg->rseq, __ATOMIC_RELAXED) ? mf_rseq_cpu() : -1;
		if (cpu < 0)
			cpu = pg->plat->ops->current_cpu(pg->plat);
	}
	if (cpu < 0 || (unsigned)cpu >= pg->cpu_limit || pg->topo->cpu_node[cpu] < 0) {
		*is_auto = false;
		return -1;
	}
	return cpu;
}

void mf_alloc_prepare(struct mf_page *pg, const struct mf_placement *place,
		      const struct mf_page_request *request, struct mf_alloc *a)
{
	int cpu = request->cpu == MF_CPU_OF_TASK ? __atomic_load_n(&place->cpu, __ATOMIC_RELAXED)
						 : request->cpu;
	bool irq_bypass = request->irq && __atomic_load_n(&pg->knobs.pcp_irq_bypass, __ATOMIC_RELAXED);
	bool off = __atomic_load_n(&pg->knobs.pcp_mode, __ATOMIC_RELAXED) == MF_PCP_OFF;

	*a = (struct mf_alloc){
		.gfp = request->gfp,
		.order = request->order,
		.pages = UINT32_C(1) << request->order,
		.type = mf_gfp_migrate_type(request->gfp),
		.highest = mf_gfp_highest_zone(request->gfp),
		.bypass = irq_bypass || off,
		.no_sleep = mf_lock_depth() > 0,
		.filter = pg->topo->memory,
		.first_filter = pg->topo->memory,
	};
	a->cpu = mf_alloc_cpu(pg, cpu, &a->auto_cpu);
	a->auto_cpu &= __atomic_load_n(&pg->rseq, __ATOMIC_RELAXED);
	a->local = a->cpu >= 0 ? pg->topo->cpu_node[a->cpu] : pg->node_without_cpu;
	a->node = a->local;
	a->may_wait = !a->no_sleep && !request->irq && (request->gfp & MEMFS___GFP_DIRECT_RECLAIM);
}

void mf_alloc_policy(struct mf_page *pg, const struct mf_placement *place,
		     const struct mf_page_request *request, struct mf_policy *policy, mf_nodemask *allowed)
{
	if (!__atomic_load_n(&pg->numa, __ATOMIC_RELAXED)) {
		*policy = (struct mf_policy){ .mode = MF_MPOL_DEFAULT };
		*allowed = pg->topo->memory;
		return;
	}
	mf_placement_read(place, policy, allowed);
	*allowed &= pg->topo->memory;
	if (request->vma)
		*policy = *request->vma;
	else if (request->irq) /* the kernel: no task's policy in interrupt context */
		*policy = (struct mf_policy){ .mode = MF_MPOL_DEFAULT };
}

static void only_this_node(struct mf_alloc *a)
{
	if (a->gfp & MEMFS___GFP_THISNODE)
		a->filter &= mf_node_bit(a->node);
	a->first_filter &= a->filter;
	if (!a->first_filter)
		a->first_filter = a->filter;
}

void mf_alloc_place_on(int node, mf_nodemask allowed, struct mf_alloc *a)
{
	a->node = node;
	a->filter = allowed;
	a->first_filter = allowed;
	only_this_node(a);
}

int mf_alloc_place_try(struct mf_page *pg, const struct mf_placement *place,
		       const struct mf_page_request *request, unsigned order, struct mf_alloc *a)
{
	struct mf_page_request here = *request;
	struct mf_policy policy;
	mf_nodemask allowed;

	if (!mf_node_isset(pg->topo->memory, request->node))
		return -EINVAL;
	here.order = order;
	here.gfp &= ~(MEMFS___GFP_NOFAIL | MEMFS___GFP_RECLAIM);
	here.gfp |= MEMFS___GFP_THISNODE | MEMFS___GFP_NOWARN;
	mf_alloc_prepare(pg, place, &here, a);
	mf_alloc_policy(pg, place, &here, &policy, &allowed);
	mf_alloc_place_on(here.node, allowed, a);
	a->interleaved = here.interleaved;
	if (here.stands_in)
		a->stands_in_for = pg->node_zone[here.wanted][a->highest];
	return 0;
}

void mf_alloc_place(const struct mf_policy *policy, mf_nodemask allowed, struct mf_alloc *a)
{
	a->filter = allowed;
	a->first_filter = allowed;
	if (policy->mode == MF_MPOL_PREFERRED)
		a->node = mf_node_first(policy->nodes);
	else if (policy->mode == MF_MPOL_BIND)
		a->first_filter = a->filter = allowed & policy->nodes ? allowed & policy->nodes
								      : policy->nodes;
	else if (policy->mode == MF_MPOL_PREFERRED_MANY)
		a->first_filter = allowed & policy->nodes;
	only_this_node(a);
}
