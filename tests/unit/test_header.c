/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The public header as a C program sees it: included first and alone, every
 * function linked from the shared library, the engine used through it.
 */
#include "memfs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "header_calls.h"

int main(void)
{
	return header_calls();
}
