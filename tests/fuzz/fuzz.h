/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the fuzz targets share: a check that holds in every build, the input
 * read piece by piece, and an instance on the simulated host.
 *
 * A target decides everything from its bytes, so that a file replays it: no
 * clock, no random numbers, no threads.
 */
#ifndef MF_TESTS_FUZZ_H
#define MF_TESTS_FUZZ_H

#include "engine/engine.h"
#include "plat/plat_sim.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* Ends the program, as a sanitizer would, if the condition does not hold. */
#define FUZZ_CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

/* The next byte; 0 behind the end, where fuzz_input.left is 0. */
static inline unsigned fuzz_byte(struct fuzz_input *input)
{
	if (!input->left)
		return 0;
	input->left--;
	return *input->at++;
}

/* A number of two bytes, the lower first. */
static inline unsigned fuzz_short(struct fuzz_input *input)
{
	unsigned low = fuzz_byte(input);

	return low | fuzz_byte(input) << 8;
}

/* One line at most this long without a NUL or a newline in it, as every reason is. */
static inline void fuzz_check_reason(const char *why, size_t size)
{
	FUZZ_CHECK(memchr(why, '\0', size));
	FUZZ_CHECK(why[0]);
	FUZZ_CHECK(!strchr(why, '\n'));
}

/* --- an instance --- */

static struct mf_plat_ops fuzz_ops;
static const struct mf_plat_ops *fuzz_real_ops;

/* Whatever was taken from the host must have gone back by now. */
static inline void fuzz_plat_destroy(struct mf_plat *plat)
{
	FUZZ_CHECK(mf_plat_sim_outstanding(plat) == 0);
	fuzz_real_ops->destroy(plat);
}

static inline struct mf_plat *fuzz_plat(void)
{
	struct mf_plat *plat = NULL;

	FUZZ_CHECK(mf_plat_sim_create(NULL, 0, &plat) == 0);
	fuzz_real_ops = plat->ops;
	fuzz_ops = *plat->ops;
	fuzz_ops.destroy = fuzz_plat_destroy;
	plat->ops = &fuzz_ops;
	return plat;
}

static inline struct memfs *fuzz_instance(const char *options)
{
	struct memfs *m = NULL;

	FUZZ_CHECK(mf_engine_create(options, fuzz_plat(), &m, NULL, 0) == 0);
	return m;
}

/* The full check has nothing to complain about. */
static inline void fuzz_check_engine(struct memfs *m)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;

	mf_engine_check(m, &out);
	if (!out.data || strcmp(out.data, "ok\n") != 0)
		fprintf(stderr, "check: %s", out.data ? out.data : "nothing\n");
	FUZZ_CHECK(out.data && strcmp(out.data, "ok\n") == 0);
	mf_outbuf_free(&out);
}

#endif
