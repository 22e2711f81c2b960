/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The growing text buffer, see outbuf.h.
 *
 * Invariants: data == NULL and capacity == 0, or length < capacity and
 * data[length] == 0.  A call adds all of its text or none of it.
 * Locks: none, one owner.
 */
#include "base/outbuf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 256

/* Room for @more bytes and a NUL behind the text; false, and the error noted, if there is none. */
static bool reserve(struct mf_outbuf *out, size_t more)
{
	size_t capacity = out->capacity ? out->capacity : FIRST_CAPACITY;
	char *data;

	if (out->error)
		return false;
	if (more < out->capacity - out->length)
		return true;
	while (capacity - out->length <= more && !__builtin_mul_overflow(capacity, (size_t)2, &capacity))
		;
	data = capacity - out->length > more ? realloc(out->data, capacity) : NULL;
	if (!data) {
		out->error = -ENOMEM;
		return false;
	}
	out->data = data;
	out->capacity = capacity;
	return true;
}

void mf_outbuf_write(struct mf_outbuf *out, const void *bytes, size_t length)
{
	if (!length || !reserve(out, length))
		return;
	memcpy(out->data + out->length, bytes, length);
	out->length += length;
	out->data[out->length] = 0;
}

void mf_outbuf_puts(struct mf_outbuf *out, const char *string)
{
	mf_outbuf_write(out, string, strlen(string));
}

void mf_outbuf_vprintf(struct mf_outbuf *out, const char *format, va_list args)
{
	va_list again;
	int n;

	/* With some room to begin with, most texts are formatted once. */
	if (!reserve(out, out->capacity ? 0 : FIRST_CAPACITY - 1))
		return;
	va_copy(again, args);
	n = vsnprintf(out->data + out->length, out->capacity - out->length, format, args);
	if (n >= 0 && (size_t)n >= out->capacity - out->length)
		n = reserve(out, n)
			    ? vsnprintf(out->data + out->length, out->capacity - out->length, format, again)
			    : -1;
	va_end(again);
	if (n < 0) {
		out->error = -ENOMEM;
		out->data[out->length] = 0;
		return;
	}
	out->length += n;
}

void mf_outbuf_printf(struct mf_outbuf *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	mf_outbuf_vprintf(out, format, args);
	va_end(args);
}

static bool test_bit(const uint64_t *bits, unsigned bit)
{
	return bits[bit / 64] >> (bit % 64) & 1;
}

/* The first bit from @from on that is @value; nr_bits if there is none. */
static unsigned find_bit(const uint64_t *bits, unsigned nr_bits, unsigned from, bool value)
{
	while (from < nr_bits && test_bit(bits, from) != value)
		from++;
	return from;
}

void mf_outbuf_list(struct mf_outbuf *out, const uint64_t *bits, unsigned nr_bits)
{
	const char *separator = "";
	unsigned first = find_bit(bits, nr_bits, 0, true);

	while (first < nr_bits) {
		unsigned end = find_bit(bits, nr_bits, first, false);

		mf_outbuf_printf(out, "%s%u", separator, first);
		if (end - first > 1)
			mf_outbuf_printf(out, "-%u", end - 1);
		separator = ",";
		first = find_bit(bits, nr_bits, end, true);
	}
}

void mf_outbuf_nodelist(struct mf_outbuf *out, mf_nodemask mask)
{
	mf_outbuf_list(out, &mask, 64);
}

void mf_outbuf_cpumap(struct mf_outbuf *out, const uint64_t *bits, unsigned nr_bits)
{
	unsigned nr_groups = (nr_bits + 31) / 32;
	unsigned top_bits = nr_bits % 32 ? nr_bits % 32 : 32;

	/* As many digits as the number of bits needs: the top group is as narrow as its bits, the rest full. */
	for (unsigned group = nr_groups; group-- > 0;) {
		bool top = group == nr_groups - 1;
		uint32_t value = bits[group / 2] >> (group % 2 * 32);

		if (top && top_bits < 32)
			value &= (UINT32_C(1) << top_bits) - 1;
		mf_outbuf_printf(out, "%s%0*x", top ? "" : ",", top ? (int)(top_bits + 3) / 4 : 8, value);
	}
}

int mf_outbuf_error(const struct mf_outbuf *out)
{
	return out->error;
}

void mf_outbuf_clear(struct mf_outbuf *out)
{
	out->length = 0;
	out->error = 0;
	if (out->data)
		out->data[0] = 0;
}

void mf_outbuf_free(struct mf_outbuf *out)
{
	free(out->data);
	*out = (struct mf_outbuf)MF_OUTBUF_INIT;
}
