/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Built by "make installcheck" against the installed library alone. */
#include <memfs/memfs.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	if (argc != 2 || strcmp(memfs_version(), argv[1])) {
		fprintf(stderr, "the library says it is %s\n", memfs_version());
		return 1;
	}
	return 0;
}
