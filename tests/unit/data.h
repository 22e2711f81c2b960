/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Data files of the tests: tab-separated rows, '#' lines are comments.  The
 * folder is $MF_TEST_DATA, else TEST_DATA_DIR of the build.
 */
#ifndef MF_TESTS_UNIT_DATA_H
#define MF_TESTS_UNIT_DATA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef TEST_DATA_DIR
#define TEST_DATA_DIR "tests/data"
#endif

#define DATA_LINE 4096

/* NULL with a message when there is no such file. */
static inline FILE *data_open(const char *name)
{
	const char *folder = getenv("MF_TEST_DATA");
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder ? folder : TEST_DATA_DIR, name);
	file = fopen(path, "r");
	if (!file)
		perror(path);
	return file;
}

/* The next row cut into at most @max fields (kept in @line); 0 at the end of the file. */
static inline int data_row(FILE *file, char line[DATA_LINE], char **fields, int max)
{
	int nr = 0;

	do {
		if (!fgets(line, DATA_LINE, file))
			return 0;
	} while (line[0] == '#');
	line[strcspn(line, "\n")] = '\0';
	while (nr < max) {
		fields[nr++] = strsep(&line, "\t");
		if (!line)
			break;
	}
	return nr;
}

/* "3,1,2" into numbers; how many there were. */
static inline int data_numbers(const char *text, unsigned long long *out, int max)
{
	int nr = 0;

	while (*text && nr < max) {
		char *end;

		out[nr++] = strtoull(text, &end, 10);
		text = *end == ',' ? end + 1 : end;
		if (end == text && *text)
			break; /* not a number: the caller sees too few */
	}
	return nr;
}

#endif
