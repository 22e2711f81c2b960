/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Strict parsing, see parse.h.  The grammar of numbers and lists is the one
 * the kernel accepts in sysfs and in mempolicy strings, minus what it accepts
 * by accident: a NUL byte does not end a text here, it is a wrong byte.
 *
 * Invariant: *out is written only by the statement before "return 0".
 * Locks: none, all functions are pure.
 */
#include "base/parse.h"

#include <errno.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct mf_text skip(struct mf_text text, size_t n)
{
	return (struct mf_text){ text.at + n, text.length - n };
}

static struct mf_text skip_blanks(struct mf_text text)
{
	while (text.length && is_blank(text.at[0]))
		text = skip(text, 1);
	return text;
}

struct mf_text mf_text_of(const char *string)
{
	return (struct mf_text){ string, strlen(string) };
}

bool mf_text_is(struct mf_text text, const char *string)
{
	return text.length == strlen(string) && (!text.length || !memcmp(text.at, string, text.length));
}

struct mf_text mf_text_word(struct mf_text *rest)
{
	struct mf_text word = skip_blanks(*rest);
	size_t n = 0;

	while (n < word.length && !is_blank(word.at[n]))
		n++;
	*rest = skip_blanks(skip(word, n));
	word.length = n;
	return word;
}

struct mf_text mf_text_until(struct mf_text *rest, char separator)
{
	struct mf_text part = *rest;
	size_t n = 0;

	while (n < part.length && part.at[n] != separator)
		n++;
	*rest = skip(part, n < part.length ? n + 1 : n);
	part.length = n;
	return part;
}

/* The value of a digit of any base up to 16; 16 for everything else. */
static unsigned digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

static int parse_digits(struct mf_text text, unsigned base, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;

	if (!text.length)
		return -EINVAL;
	for (size_t i = 0; i < text.length; i++) {
		unsigned digit = digit_value(text.at[i]);

		if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value) || value > max)
			return -EINVAL;
	}
	*out = value;
	return 0;
}

/* No sign here.  "0x" without a digit behind it stays octal, and so fails at the x. */
static int parse_unsigned(struct mf_text text, uint64_t max, uint64_t *out)
{
	if (!text.length || text.at[0] != '0')
		return parse_digits(text, 10, max, out);
	if (text.length > 2 && (text.at[1] == 'x' || text.at[1] == 'X'))
		return parse_digits(skip(text, 2), 16, max, out);
	return parse_digits(text, 8, max, out);
}

static struct mf_text skip_plus(struct mf_text text)
{
	return text.length && text.at[0] == '+' ? skip(text, 1) : text;
}

int mf_parse_u64(struct mf_text text, uint64_t max, uint64_t *out)
{
	return parse_unsigned(skip_plus(text), max, out);
}

/* log2 of the factor a letter stands for, 0 if it is none. */
static unsigned factor_shift(char c)
{
	switch (c) {
	case 'K':
	case 'k':
		return 10;
	case 'M':
	case 'm':
		return 20;
	case 'G':
	case 'g':
		return 30;
	case 'T':
	case 't':
		return 40;
	default:
		return 0;
	}
}

int mf_parse_size(struct mf_text text, uint64_t max, uint64_t *out)
{
	unsigned shift = text.length ? factor_shift(text.at[text.length - 1]) : 0;
	uint64_t value;

	if (shift)
		text.length--;
	/* value << shift <= max exactly when value <= max >> shift: nothing to overflow. */
	if (mf_parse_u64(text, max >> shift, &value))
		return -EINVAL;
	*out = value << shift;
	return 0;
}

int mf_parse_i64(struct mf_text text, int64_t min, int64_t max, int64_t *out)
{
	bool negative = text.length && text.at[0] == '-';
	uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
	uint64_t magnitude;
	int64_t value;

	text = negative ? skip(text, 1) : skip_plus(text);
	if (parse_unsigned(text, limit, &magnitude))
		return -EINVAL;
	/* Counted from -1, so that the lowest value needs no overflow. */
	value = negative && magnitude ? -(int64_t)(magnitude - 1) - 1 : (int64_t)magnitude;
	if (value < min || value > max)
		return -EINVAL;
	*out = value;
	return 0;
}

/* "on" and "off" by their second letter; -1 for anything else. */
static int bool_of_second_letter(struct mf_text text)
{
	switch (text.length > 1 ? text.at[1] : 0) {
	case 'n':
	case 'N':
		return 1;
	case 'f':
	case 'F':
		return 0;
	default:
		return -1;
	}
}

int mf_parse_bool(struct mf_text text, bool *out)
{
	int value;

	if (!text.length || memchr(text.at, 0, text.length))
		return -EINVAL;
	switch (text.at[0]) {
	case '1':
	case 'y':
	case 'Y':
	case 't':
	case 'T':
		value = 1;
		break;
	case '0':
	case 'n':
	case 'N':
	case 'f':
	case 'F':
		value = 0;
		break;
	case 'o':
	case 'O':
		value = bool_of_second_letter(text);
		break;
	default:
		value = -1;
	}
	if (value < 0)
		return -EINVAL;
	*out = value;
	return 0;
}

/* "3" or "1-4"; numbers are decimal whatever their first digit. */
static int parse_range(struct mf_text text, uint64_t max, uint64_t *first, uint64_t *last)
{
	bool single = !text.length || !memchr(text.at, '-', text.length);
	struct mf_text low = mf_text_until(&text, '-');

	if (parse_digits(low, 10, max, first))
		return -EINVAL;
	if (single) {
		*last = *first;
		return 0;
	}
	return parse_digits(text, 10, max, last) || *first > *last ? -EINVAL : 0;
}

/* One pass over a list; @bits NULL: only look whether it is right. */
static int walk_list(struct mf_text text, unsigned max_bit, uint64_t *bits)
{
	while (text.length) {
		struct mf_text item = mf_text_until(&text, ',');
		uint64_t first, last;

		if (!item.length)
			continue;
		if (parse_range(skip_blanks(item), max_bit, &first, &last))
			return -EINVAL;
		for (uint64_t bit = first; bits && bit <= last; bit++)
			bits[bit / 64] |= UINT64_C(1) << (bit % 64);
	}
	return 0;
}

int mf_parse_list(struct mf_text text, unsigned max_bit, uint64_t *bits)
{
	if (walk_list(text, max_bit, NULL))
		return -EINVAL;
	memset(bits, 0, (max_bit / 64 + 1) * sizeof(*bits));
	return walk_list(text, max_bit, bits);
}

int mf_parse_nodelist(struct mf_text text, mf_nodemask *out)
{
	return mf_parse_list(text, 63, out);
}

static bool is_name_byte(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
	       c == '_' || c == ':' || c == '-';
}

bool mf_name_is_valid(struct mf_text text)
{
	if (text.length < 1 || text.length > 64 || mf_text_is(text, ".") || mf_text_is(text, ".."))
		return false;
	for (size_t i = 0; i < text.length; i++)
		if (!is_name_byte(text.at[i]))
			return false;
	return true;
}
