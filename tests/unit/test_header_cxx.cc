/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The public header as a C++ program sees it.  The calls are those of the C test.
 */
#include "memfs.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "header_calls.h"

int main()
{
	return header_calls();
}
