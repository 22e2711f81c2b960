/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Strict parsing of what users write.  Every function consumes a whole text
 * [text, text+length) or fails with -EINVAL and leaves *out alone.  No locale,
 * no leading or trailing space, no partial success.
 *
 * Threads: pure functions.
 */
#ifndef MF_BASE_PARSE_H
#define MF_BASE_PARSE_H

#include "base/nodemask.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of text inside somebody else's buffer; not NUL-terminated. */
struct mf_text {
	const char *at;
	size_t length;
};

struct mf_text mf_text_of(const char *string);
bool mf_text_is(struct mf_text text, const char *string);

/* Cuts the first word (up to blanks) off *rest; length 0 at the end. */
struct mf_text mf_text_word(struct mf_text *rest);

/* Cuts up to @separator off *rest and the separator with it; the whole rest if there is none. */
struct mf_text mf_text_until(struct mf_text *rest, char separator);

/*
 * Numbers as kstrtoul(base 0) takes them: decimal, 0x hexadecimal, 0 octal, an
 * optional leading '+', no sign otherwise.  Above max: -EINVAL as well
 * (design: out of range is EINVAL).  2^64 and more never wraps.
 */
int mf_parse_u64(struct mf_text text, uint64_t max, uint64_t *out);

/* The same with a factor K M G T (powers of 1024, either case) behind it; -EINVAL on overflow. */
int mf_parse_size(struct mf_text text, uint64_t max, uint64_t *out);

/* Signed, for knobs that take -1; same grammar with '-' allowed. */
int mf_parse_i64(struct mf_text text, int64_t min, int64_t max, int64_t *out);

/* The kernel's kstrtobool: judged by the first letter(s): 1/0 y/n t/f on/off, any case. */
int mf_parse_bool(struct mf_text text, bool *out);

/*
 * The kernel's list format "0,2-3" (also "0," and an empty text: the empty
 * set), each number decimal and at most @max_bit.  @bits holds
 * (max_bit / 64 + 1) words and is written only on success.
 */
int mf_parse_list(struct mf_text text, unsigned max_bit, uint64_t *bits);
int mf_parse_nodelist(struct mf_text text, mf_nodemask *out);

/* [A-Za-z0-9._:-]{1,64}, not "." or "..". */
bool mf_name_is_valid(struct mf_text text);

#endif
