/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random test of the policies against a model that knows one block at a time
 * and nothing else: singles, bulks, short bulks, bulks in two parts, huge
 * bulks, changes of weights, allowed nodes and policies, in any mixture.
 *
 *	model_policy [SEED|- [COUNT]]
 *
 * runs COUNT operations (default 200000), spread over fixed seeds and one
 * random seed, or all with SEED.  A failure prints the seed and the operation
 * that repeat it.
 */
#include "policy/policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_COUNT 200000
#define MOST_NODES 64

/* The model: plain arrays, plain loops. */
struct model {
	bool plain;		     /* interleave without weights */
	bool in_mask[MOST_NODES];    /* the policy's nodes */
	bool in_user[MOST_NODES];    /* as the user gave them */
	bool in_allowed[MOST_NODES]; /* bound to */
	unsigned weight[MOST_NODES];
	unsigned prev, owed;
};

struct subject {
	struct mf_policy policy;
	struct mf_policy_context context;
	struct mf_weights weights;
	struct mf_rotation rotation;
};

struct run {
	uint64_t seed, state, operation;
	unsigned failures;
	struct model model;
	struct subject subject;
};

static uint64_t next_random(struct run *run)
{
	uint64_t z = run->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t below(struct run *run, uint64_t bound)
{
	return next_random(run) % bound;
}

static void expect(struct run *run, bool holds, const char *what)
{
	if (holds)
		return;
	run->failures++;
	if (run->failures <= 5)
		printf("seed %" PRIu64 " operation %" PRIu64 ": %s\n", run->seed, run->operation, what);
}

static unsigned model_weight(const struct model *model, unsigned node)
{
	return model->plain ? 1 : model->weight[node];
}

static unsigned model_next(const struct model *model, unsigned node)
{
	do
		node = (node + 1) % MOST_NODES;
	while (!model->in_mask[node]);
	return node;
}

static unsigned model_step(struct model *model)
{
	if (!model->owed || !model->in_mask[model->prev]) {
		model->prev = model_next(model, model->prev);
		model->owed = model_weight(model, model->prev);
	}
	model->owed--;
	return model->prev;
}

static void model_steps(struct model *model, uint64_t n, uint64_t got[MOST_NODES])
{
	while (n--)
		got[model_step(model)]++;
}

static bool same_rotation(const struct model *model, struct mf_rotation rotation)
{
	return model->prev == rotation.il_prev && model->owed == rotation.il_weight;
}

static uint64_t weight_sum(const struct model *model)
{
	uint64_t sum = 0;

	for (unsigned node = 0; node < MOST_NODES; node++)
		sum += model->in_mask[node] ? model_weight(model, node) : 0;
	return sum;
}

/* Each node once, in cycle order, what is owed first; no share above its bound; together n. */
static void check_shape(struct run *run, const struct mf_policy_shares *shares, uint64_t n)
{
	const struct model *model = &run->model;
	uint64_t owed = model->in_mask[model->prev] ? model->owed : 0;
	uint64_t rounds = n > owed ? (n - owed) / weight_sum(model) : 0;
	unsigned last = 0;
	uint64_t sum = 0;

	expect(run, shares->nr <= (unsigned)mf_node_weight(run->subject.policy.nodes),
	       "more shares than nodes");
	if (owed && n)
		expect(run, shares->nr && shares->node[0] == model->prev, "what is owed does not come first");
	for (unsigned i = 0; i < shares->nr; i++) {
		unsigned node = shares->node[i];
		bool first_owed = owed && !i;
		unsigned distance = first_owed ? 0 : (node + MOST_NODES - model->prev - 1) % MOST_NODES + 1;
		uint64_t bound = model_weight(model, node) * (rounds + 1) + (node == model->prev ? owed : 0);

		expect(run, shares->share[i] > 0, "a share of nothing");
		expect(run, shares->share[i] <= bound, "a share above its bound");
		expect(run, first_owed || distance > last, "not in the order of the cycle");
		last = distance;
		sum += shares->share[i];
	}
	expect(run, sum == n, "the shares are not n");
}

static bool same_split(const struct mf_policy_shares *shares, int extra_node, uint64_t extra,
		       const uint64_t wanted[MOST_NODES])
{
	uint64_t got[MOST_NODES] = { 0 };

	for (unsigned i = 0; i < shares->nr; i++)
		got[shares->node[i]] += shares->share[i];
	if (extra_node >= 0)
		got[extra_node] += extra;
	return !memcmp(got, wanted, sizeof(got));
}

static struct mf_policy_shares ask_bulk(struct run *run, uint64_t n)
{
	struct mf_policy_shares shares;

	mf_policy_bulk(&run->subject.policy, &run->subject.weights, run->subject.rotation, n, &shares);
	return shares;
}

static void advance(struct run *run, uint64_t n)
{
	mf_policy_advance(&run->subject.policy, &run->subject.weights, &run->subject.rotation, n);
	expect(run, same_rotation(&run->model, run->subject.rotation), "advance is not n steps");
}

static void do_single(struct run *run)
{
	struct subject *s = &run->subject;
	int peeked = mf_policy_peek(&s->policy, &s->weights, s->rotation);
	int node = mf_policy_step(&s->policy, &s->weights, &s->rotation);

	expect(run, node == (int)model_step(&run->model), "a single goes elsewhere");
	expect(run, node == peeked, "peek is not the next step");
	expect(run, same_rotation(&run->model, s->rotation), "rotation after a single");
}

static void do_bulk(struct run *run, uint64_t n)
{
	struct subject *s = &run->subject;
	struct mf_policy_shares shares = ask_bulk(run, n);
	uint64_t wanted[MOST_NODES] = { 0 };
	struct mf_policy_split split;

	check_shape(run, &shares, n);
	mf_policy_bulk_split(&s->policy, &s->weights, s->rotation, n, &split);
	model_steps(&run->model, n, wanted);
	expect(run, same_split(&shares, -1, 0, wanted), "a bulk is not n singles");
	expect(run, same_split(&split.rest, split.carry_node, split.carry, wanted),
	       "the split rule is not n singles");
	expect(run, (split.carry_node < 0) == !split.carry, "carry without a node");
	advance(run, n);
}

/* Asked for n, handed out got: the rest asked again continues where it stopped. */
static void do_short_bulk(struct run *run, uint64_t n, uint64_t got)
{
	struct mf_policy_shares whole = ask_bulk(run, n), part = ask_bulk(run, got), rest;
	uint64_t both[MOST_NODES] = { 0 }, wanted[MOST_NODES] = { 0 };
	struct model ahead = run->model;
	uint64_t ignored[MOST_NODES] = { 0 };

	model_steps(&ahead, n, wanted);
	expect(run, same_split(&whole, -1, 0, wanted), "a bulk is not n singles");
	model_steps(&run->model, got, ignored);
	advance(run, got);
	rest = ask_bulk(run, n - got);
	for (unsigned i = 0; i < part.nr; i++)
		both[part.node[i]] += part.share[i];
	for (unsigned i = 0; i < rest.nr; i++)
		both[rest.node[i]] += rest.share[i];
	expect(run, !memcmp(both, wanted, sizeof(both)), "two bulks are not their sum");
}

/* Whole cycles add their weights to every node and leave the rotation where it was. */
static void do_huge_bulk(struct run *run, uint64_t n, uint64_t cycles)
{
	uint64_t wanted[MOST_NODES] = { 0 };
	uint64_t total = n + run->model.owed + cycles * weight_sum(&run->model);
	struct mf_policy_shares shares;

	/* At least one block more than is owed, so that the cycles are behind it. */
	n += run->model.owed + 1;
	total++;
	shares = ask_bulk(run, total);
	check_shape(run, &shares, total);
	model_steps(&run->model, n, wanted);
	for (unsigned node = 0; node < MOST_NODES; node++)
		if (run->model.in_mask[node])
			wanted[node] += cycles * model_weight(&run->model, node);
	expect(run, same_split(&shares, -1, 0, wanted), "a huge bulk is not cycles and a rest");
	advance(run, total);
}

static void do_weight(struct run *run)
{
	unsigned node = below(run, MOST_NODES);
	unsigned weight = below(run, 4) ? 1 + below(run, 12) : 1 + below(run, 255);

	run->model.weight[node] = weight;
	run->subject.weights.of[node] = weight;
}

/* About one node in @of, at least one node. */
static mf_nodemask random_mask(struct run *run, unsigned of)
{
	mf_nodemask mask = 0;

	for (unsigned node = 0; node < MOST_NODES; node++)
		if (!below(run, of))
			mask |= mf_node_bit(node);
	return mask ? mask : mf_node_bit(below(run, MOST_NODES));
}

static void spread(mf_nodemask mask, bool out[MOST_NODES])
{
	for (unsigned node = 0; node < MOST_NODES; node++)
		out[node] = mask >> node & 1;
}

static unsigned count(const bool set[MOST_NODES])
{
	unsigned n = 0;

	for (unsigned node = 0; node < MOST_NODES; node++)
		n += set[node];
	return n;
}

/* The node with @rank nodes of the set below it. */
static unsigned of_rank(const bool set[MOST_NODES], unsigned rank)
{
	unsigned node = 0;

	while (!set[node] || rank--)
		node++;
	return node;
}

static unsigned rank_of(const bool set[MOST_NODES], unsigned node)
{
	unsigned rank = 0;

	while (node--)
		rank += set[node];
	return rank;
}

/* in_mask from the user's or the old mask, for new allowed nodes; @old is NULL when a policy is set. */
static void model_bind(struct model *model, unsigned flags, const bool allowed[MOST_NODES], const bool *old)
{
	bool result[MOST_NODES] = { false };

	for (unsigned node = 0; node < MOST_NODES; node++) {
		if (flags & MF_MPOL_F_RELATIVE_NODES) {
			if (model->in_user[node])
				result[of_rank(allowed, node % count(allowed))] = true;
		} else if (flags & MF_MPOL_F_STATIC_NODES || !old) {
			result[node] = model->in_user[node] && allowed[node];
		} else if (model->in_mask[node]) {
			result[of_rank(allowed, rank_of(old, node) % count(allowed))] = true;
		}
	}
	memcpy(model->in_mask, count(result) || !old ? result : allowed, sizeof(result));
}

static bool same_mask(const struct run *run)
{
	for (unsigned node = 0; node < MOST_NODES; node++)
		if (run->model.in_mask[node] != mf_node_isset(run->subject.policy.nodes, node))
			return false;
	return true;
}

static void do_rebind(struct run *run)
{
	struct subject *s = &run->subject;
	bool old[MOST_NODES];

	s->context.allowed = random_mask(run, 2 + below(run, 30));
	memcpy(old, run->model.in_allowed, sizeof(old));
	spread(s->context.allowed, run->model.in_allowed);
	model_bind(&run->model, s->policy.flags, run->model.in_allowed, old);
	mf_policy_rebind(&s->policy, &s->context);
	expect(run, same_mask(run), "nodes after a rebind");
	expect(run, same_rotation(&run->model, s->rotation), "a rebind moved the rotation");
}

/* A new policy on random allowed nodes; the rotation starts again. */
static void do_set(struct run *run)
{
	static const unsigned flags[] = { 0, MF_MPOL_F_STATIC_NODES, MF_MPOL_F_RELATIVE_NODES };
	struct subject *s = &run->subject;
	struct model *model = &run->model;
	unsigned flag = flags[below(run, 3)];
	unsigned of = 1 + below(run, 30);
	mf_nodemask user = random_mask(run, of);

	s->context.allowed = random_mask(run, of > 8 ? 2 : of) | user;
	model->plain = !below(run, 4);
	spread(user, model->in_user);
	spread(s->context.allowed, model->in_allowed);
	model_bind(model, flag, model->in_allowed, NULL);
	model->prev = 63;
	model->owed = 0;
	s->rotation = (struct mf_rotation)MF_ROTATION_INIT;
	expect(run,
	       !mf_policy_set(model->plain ? MF_MPOL_INTERLEAVE : MF_MPOL_WEIGHTED_INTERLEAVE, flag, user,
			      &s->context, &s->policy, NULL, 0),
	       "setting failed");
	expect(run, same_mask(run), "nodes after a set");
}

/* A range: number of the block modulo the sum, counted off node by node. */
static void do_range(struct run *run)
{
	uint64_t index = next_random(run) >> below(run, 64);
	uint64_t left = index % weight_sum(&run->model);
	unsigned node = of_rank(run->model.in_mask, 0);

	while (left >= model_weight(&run->model, node)) {
		left -= model_weight(&run->model, node);
		node = model_next(&run->model, node);
	}
	expect(run, mf_policy_index_node(&run->subject.policy, &run->subject.weights, index) == (int)node,
	       "node of a range");
}

static uint64_t random_size(struct run *run)
{
	return below(run, 50) ? below(run, 61) : below(run, 3000);
}

static void do_something(struct run *run)
{
	unsigned what = below(run, 100);
	uint64_t n = random_size(run);

	if (what < 40)
		do_single(run);
	else if (what < 65)
		do_bulk(run, n);
	else if (what < 80)
		do_short_bulk(run, n, below(run, n + 1));
	else if (what < 82)
		do_huge_bulk(run, n, next_random(run) >> (16 + below(run, 40)));
	else if (what < 88)
		do_weight(run);
	else if (what < 91)
		do_rebind(run);
	else if (what < 94)
		do_set(run);
	else
		do_range(run);
}

static bool run_seed(uint64_t seed, uint64_t operations)
{
	struct run run = { .seed = seed, .state = seed };

	run.subject.context.exist = run.subject.context.memory = ~UINT64_C(0);
	for (unsigned node = 0; node < MOST_NODES; node++)
		run.model.weight[node] = run.subject.weights.of[node] = 1 + below(&run, 12);
	do_set(&run);
	for (run.operation = 0; run.operation < operations; run.operation++)
		do_something(&run);
	printf("seed %" PRIu64 ": %" PRIu64 " operations, %u failures\n", seed, operations, run.failures);
	return !run.failures;
}

int main(int argc, char **argv)
{
	uint64_t seeds[] = { 1, 2, 3, (uint64_t)time(NULL) * 1000003 + getpid() };
	uint64_t operations = argc > 2 ? strtoull(argv[2], NULL, 0) : DEFAULT_COUNT;
	unsigned nr_seeds = sizeof(seeds) / sizeof(seeds[0]);
	unsigned passed = 0;

	if (argc > 1 && strcmp(argv[1], "-")) {
		seeds[0] = strtoull(argv[1], NULL, 0);
		nr_seeds = 1;
	}
	for (unsigned i = 0; i < nr_seeds; i++)
		passed += run_seed(seeds[i], operations / nr_seeds);
	printf("TOTALS %u passed, %u failed, 0 skipped\n", passed, nr_seeds - passed);
	return passed == nr_seeds ? EXIT_SUCCESS : EXIT_FAILURE;
}
