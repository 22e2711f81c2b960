/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * debug/: the full check, a tick by hand, and the failure points.
 *
 * fault/POINT takes "off", "nth=N [every=M]" or "permille=P seed=S" and prints
 * the same.  What it prints is the state of now: written back, it goes on from
 * there.
 */
#include "ctl/ctl_internal.h"

#include <errno.h>
#include <inttypes.h>

int mf_ctl_show_check(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	(void)node;
	mf_engine_check(m, out);
	return 0;
}

int mf_ctl_store_tick(struct mf_ctl_command *command)
{
	int error = mf_ctl_parse_one(command);

	if (!error)
		mf_engine_tick(command->m);
	return error;
}

/* --- failure points --- */

enum fault_key { FAULT_NTH, FAULT_EVERY, FAULT_PERMILLE, FAULT_SEED, NR_FAULT_KEYS };

static const struct {
	const char *name;
	uint64_t min, max;
} fault_keys[NR_FAULT_KEYS] = {
	[FAULT_NTH] = { "nth", 1, UINT64_MAX },
	[FAULT_EVERY] = { "every", 0, UINT64_MAX },
	[FAULT_PERMILLE] = { "permille", 1, 1000 },
	[FAULT_SEED] = { "seed", 0, UINT64_MAX },
};

int mf_ctl_show_fault(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	const struct mf_fault_state *state = &m->fault.point[node->counter];
	uint64_t nth = atomic_load(&state->nth), every = atomic_load(&state->every);
	uint32_t permille = atomic_load(&state->permille);

	if (permille)
		mf_outbuf_printf(out, "permille=%" PRIu32 " seed=%" PRIu64 "\n", permille,
				 atomic_load(&state->seed));
	else if (nth && every)
		mf_outbuf_printf(out, "nth=%" PRIu64 " every=%" PRIu64 "\n", nth, every);
	else if (nth)
		mf_outbuf_printf(out, "nth=%" PRIu64 "\n", nth);
	else
		mf_outbuf_puts(out, "off\n");
	return 0;
}

static int parse_fault_key(struct mf_ctl_command *command, struct mf_text word, unsigned *seen,
			   uint64_t *values)
{
	struct mf_text value = word, key = mf_text_until(&value, '=');

	for (unsigned i = 0; i < NR_FAULT_KEYS; i++) {
		if (!mf_text_is(key, fault_keys[i].name))
			continue;
		if (*seen & 1u << i)
			return mf_ctl_fail(command, -EINVAL, "%s= twice", fault_keys[i].name);
		*seen |= 1u << i;
		if (mf_parse_u64(value, fault_keys[i].max, &values[i]) || values[i] < fault_keys[i].min)
			return mf_ctl_fail(command, -EINVAL, "%s= needs a number in %" PRIu64 "..%" PRIu64,
					   fault_keys[i].name, fault_keys[i].min, fault_keys[i].max);
		return 0;
	}
	return mf_ctl_fail(command, -EINVAL, "expected off, nth=N [every=M], or permille=P seed=S");
}

int mf_ctl_store_fault(struct mf_ctl_command *command)
{
	enum mf_fault_point point = (enum mf_fault_point)command->node->counter;
	struct mf_fault *fault = &command->m->fault;
	struct mf_text rest = command->text, word;
	uint64_t values[NR_FAULT_KEYS] = { 0 };
	unsigned seen = 0;
	int error;

	if (mf_text_is(command->text, "off")) {
		mf_fault_arm(fault, point, 0, 0);
		return 0;
	}
	while ((word = mf_text_word(&rest)).length) {
		error = parse_fault_key(command, word, &seen, values);
		if (error)
			return error;
	}
	if (seen == (1u << FAULT_PERMILLE | 1u << FAULT_SEED)) {
		mf_fault_arm_share(fault, point, (uint32_t)values[FAULT_PERMILLE], values[FAULT_SEED]);
		return 0;
	}
	if (!(seen & 1u << FAULT_NTH) || seen & (1u << FAULT_PERMILLE | 1u << FAULT_SEED))
		return mf_ctl_fail(command, -EINVAL, "expected off, nth=N [every=M], or permille=P seed=S");
	mf_fault_arm(fault, point, values[FAULT_NTH], values[FAULT_EVERY]);
	return 0;
}
