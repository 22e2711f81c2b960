/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Failure points, see fault.h.
 *
 * Arming the first point of all begins a new experiment: every counter starts
 * at 0.  Arming a further one starts that point's counters only.  Disarming
 * keeps the counters, so that they can be read when all is over.
 *
 * Invariant: a bit of @armed is set after the words it needs; it is the only
 * word the fast check reads.
 * Locks: none.  Two threads that arm the same point at once get one of both.
 */
#include "fault/fault.h"

#include <stddef.h>

#define ANY_BIT (UINT32_C(1) << 31)

_Static_assert(MF_NR_FAULT_POINTS < 31, "one bit of mf_fault.armed a point, and one for any of them");

struct fault_row {
	const char *name, *help;
};

static const struct fault_row rows[MF_NR_FAULT_POINTS] = {
#define MF_FAULT_ROW(name, help) { #name, help },
	MF_FAULT_POINTS(MF_FAULT_ROW)
#undef MF_FAULT_ROW
};

static uint32_t point_bit(enum mf_fault_point point)
{
	return UINT32_C(1) << point;
}

static void reset_point(struct mf_fault_state *state)
{
	atomic_store(&state->visits, 0);
	atomic_store(&state->failures, 0);
	atomic_store(&state->nth, 0);
	atomic_store(&state->every, 0);
	atomic_store(&state->permille, 0);
	atomic_store(&state->seed, 0);
}

static void reset_all(struct mf_fault *fault)
{
	atomic_store(&fault->any_nth, 0);
	atomic_store(&fault->any_visits, 0);
	for (int i = 0; i < MF_NR_FAULT_POINTS; i++)
		reset_point(&fault->point[i]);
}

void mf_fault_init(struct mf_fault *fault)
{
	atomic_init(&fault->armed, 0);
	reset_all(fault);
}

/* The point's state, clean and not armed, ready to be filled. */
static struct mf_fault_state *prepare_point(struct mf_fault *fault, enum mf_fault_point point)
{
	if (!(atomic_fetch_and(&fault->armed, ~point_bit(point)) & ~point_bit(point)))
		reset_all(fault);
	else
		reset_point(&fault->point[point]);
	return &fault->point[point];
}

void mf_fault_arm(struct mf_fault *fault, enum mf_fault_point point, uint64_t nth, uint64_t every)
{
	struct mf_fault_state *state = prepare_point(fault, point);

	atomic_store(&state->nth, nth);
	atomic_store(&state->every, every);
	if (nth)
		atomic_fetch_or(&fault->armed, point_bit(point));
}

void mf_fault_arm_share(struct mf_fault *fault, enum mf_fault_point point, uint32_t permille, uint64_t seed)
{
	struct mf_fault_state *state = prepare_point(fault, point);

	atomic_store(&state->permille, permille);
	atomic_store(&state->seed, seed);
	if (permille)
		atomic_fetch_or(&fault->armed, point_bit(point));
}

void mf_fault_arm_any(struct mf_fault *fault, uint64_t nth)
{
	atomic_fetch_and(&fault->armed, ~ANY_BIT);
	if (!nth)
		return;
	for (int i = 0; i < MF_NR_FAULT_POINTS; i++) {
		atomic_store(&fault->point[i].visits, 0);
		atomic_store(&fault->point[i].failures, 0);
	}
	atomic_store(&fault->any_visits, 0);
	atomic_store(&fault->any_nth, nth);
	atomic_fetch_or(&fault->armed, ANY_BIT);
}

void mf_fault_disarm(struct mf_fault *fault)
{
	atomic_store(&fault->armed, 0);
}

bool mf_fault_fired(const struct mf_fault *fault)
{
	for (int i = 0; i < MF_NR_FAULT_POINTS; i++)
		if (atomic_load(&fault->point[i].failures))
			return true;
	return false;
}

const char *mf_fault_name(enum mf_fault_point point)
{
	return (unsigned)point < MF_NR_FAULT_POINTS ? rows[point].name : NULL;
}

const char *mf_fault_help(enum mf_fault_point point)
{
	return (unsigned)point < MF_NR_FAULT_POINTS ? rows[point].help : NULL;
}

/* splitmix64: the n-th visit draws the n-th number of the seed, whoever visits. */
static uint64_t draw(_Atomic uint64_t *state)
{
	const uint64_t step = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = atomic_fetch_add(state, step) + step;

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static bool point_fails(struct mf_fault_state *state, uint64_t visit)
{
	uint64_t nth = atomic_load(&state->nth), every = atomic_load(&state->every);
	uint32_t permille = atomic_load(&state->permille);

	if (permille)
		return draw(&state->seed) % 1000 < permille;
	return nth && (visit == nth || (every && visit > nth && (visit - nth) % every == 0));
}

bool mf_fault_visit(struct mf_fault *fault, enum mf_fault_point point)
{
	struct mf_fault_state *state = &fault->point[point];
	uint32_t armed = atomic_load(&fault->armed);
	bool fails = false;
	uint64_t visit;

	if (!armed) /* disarmed since the fast check looked */
		return false;
	visit = atomic_fetch_add(&state->visits, 1) + 1;
	if (armed & point_bit(point))
		fails = point_fails(state, visit);
	if (armed & ANY_BIT && atomic_fetch_add(&fault->any_visits, 1) + 1 == atomic_load(&fault->any_nth))
		fails = true;
	if (fails)
		atomic_fetch_add(&state->failures, 1);
	return fails;
}
