/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * main() of a fuzz target where libFuzzer is not linked: runs it once over each
 * file named, or over the target's own corpus, tests/fuzz/corpus/NAME/ for a
 * program called fuzz_NAME.  It stands in an archive of its own, so that only
 * programs without a main() get it.
 */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* A copy of exactly the file's size, so that a sanitizer sees a read past its end. */
static int run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = NULL;
	long length = -1;
	int error = 1;

	if (file && !fseek(file, 0, SEEK_END))
		length = ftell(file);
	if (length >= 0)
		bytes = malloc((size_t)length ? (size_t)length : 1);
	if (bytes) {
		rewind(file);
		if (fread(bytes, 1, (size_t)length, file) == (size_t)length) {
			LLVMFuzzerTestOneInput(bytes, (size_t)length);
			error = 0;
		}
	}
	if (error)
		perror(path);
	free(bytes);
	if (file)
		fclose(file);
	return error;
}

static int run_folder(const char *folder, unsigned *nr_files)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[4096 + 256];
	int error = 0;

	if (!dir) {
		perror(folder);
		return 1;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		error |= run_file(path);
		++*nr_files;
	}
	closedir(dir);
	return error;
}

int main(int argc, char **argv)
{
	const char *top = getenv("TEST_SRCDIR"), *slash = strrchr(argv[0], '/');
	const char *name = strstr(slash ? slash : argv[0], "fuzz_");
	unsigned nr_files = 0;
	char folder[4096];
	int error = 0;

	for (int i = 1; i < argc; i++, nr_files++)
		error |= run_file(argv[i]);
	if (argc == 1) {
		snprintf(folder, sizeof(folder), "%s/tests/fuzz/corpus/%s", top ? top : ".",
			 name ? name + strlen("fuzz_") : "");
		error = run_folder(folder, &nr_files);
	}
	printf("%u inputs\n", nr_files);
	return error || !nr_files;
}
