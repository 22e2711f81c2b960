/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The reason of a failure in words: one line without newline, written beside
 * the errno that programs look at.
 */
#ifndef MF_BASE_WHY_H
#define MF_BASE_WHY_H

#include <stdarg.h>
#include <stdio.h>

/* Writes the reason of a failure (at most why_size bytes; why may be NULL) and returns the error. */
static inline int __attribute__((format(printf, 4, 5)))
mf_why(char *why, size_t why_size, int error, const char *format, ...)
{
	va_list args;

	if (!why || !why_size)
		return error;
	va_start(args, format);
	vsnprintf(why, why_size, format, args);
	va_end(args);
	return error;
}

#endif
