/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A growing text buffer: what every show function writes to.  A failed
 * allocation is remembered and reported once, at mf_outbuf_error(): show
 * functions need no error handling.
 *
 * Threads: one owner.
 */
#ifndef MF_BASE_OUTBUF_H
#define MF_BASE_OUTBUF_H

#include "base/nodemask.h"

#include <stdarg.h>
#include <stddef.h>

struct mf_outbuf {
	char *data;	 /* NUL-terminated when length > 0; owned */
	size_t length;	 /* bytes without the NUL */
	size_t capacity; /* bytes */
	int error;	 /* 0 or -ENOMEM; once set, nothing is added any more */
};

#define MF_OUTBUF_INIT \
	{ \
		NULL, 0, 0, 0 \
	}

void mf_outbuf_printf(struct mf_outbuf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mf_outbuf_vprintf(struct mf_outbuf *out, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));
void mf_outbuf_write(struct mf_outbuf *out, const void *bytes, size_t length);
void mf_outbuf_puts(struct mf_outbuf *out, const char *string);

/* The kernel's list format "0,2-3" of nr_bits bits, no newline; nothing for an empty set. */
void mf_outbuf_list(struct mf_outbuf *out, const uint64_t *bits, unsigned nr_bits);
void mf_outbuf_nodelist(struct mf_outbuf *out, mf_nodemask mask);

/* The kernel's cpumap format: groups of 32 bits in hexadecimal from the highest, "f" or "3,ffffffff". */
void mf_outbuf_cpumap(struct mf_outbuf *out, const uint64_t *bits, unsigned nr_bits);

int mf_outbuf_error(const struct mf_outbuf *out);
void mf_outbuf_clear(struct mf_outbuf *out); /* keeps the memory */
void mf_outbuf_free(struct mf_outbuf *out);

#endif
