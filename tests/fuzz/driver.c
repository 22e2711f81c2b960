/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * main() of a fuzz target where libFuzzer is not linked.
 *
 *	fuzz_NAME                            once over its corpus, tests/fuzz/corpus/NAME/
 *	fuzz_NAME FILE...                    once over each file
 *	fuzz_NAME --random SECONDS [SEED]    inputs made from the corpus, for so long
 *
 * The random inputs follow from the seed alone, which is printed; the input
 * that ends the program is left in ./fuzz_NAME.failed, to be run again.  It
 * stands in an archive of its own, so that only programs without a main() get it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_FILES 1024
#define MAX_LENGTH 4096 /* bytes of a random one */
#define NR_CHANGES 6	/* at most, of one file's bytes */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
/* There in a program with a sanitizer, which may end it without a signal. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

struct input {
	uint8_t *bytes; /* exactly as many as are meant, so that a sanitizer sees a read past the end */
	size_t length;
};

static struct input corpus[MAX_FILES];
static unsigned nr_corpus;

/* --- what is left of a failure --- */

static const uint8_t *running; /* the input under way, NULL between two */
static size_t running_length;
static char failed_name[512];

/* Only what a signal handler may call. */
static void save_running(void)
{
	int fd = running ? open(failed_name, O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;

	if (fd < 0)
		return;
	if (write(fd, running, running_length) == (ssize_t)running_length) {
		(void)!write(STDERR_FILENO, "the input is in ", 16);
		(void)!write(STDERR_FILENO, failed_name, strlen(failed_name));
		(void)!write(STDERR_FILENO, "\n", 1);
	}
	close(fd);
	running = NULL;
}

static void on_signal(int number)
{
	save_running();
	signal(number, SIG_DFL);
	raise(number);
}

static void save_failures(const char *program)
{
	static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };

	snprintf(failed_name, sizeof(failed_name), "%s.failed", program);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(save_running);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], on_signal);
}

static void run_input(const uint8_t *bytes, size_t length)
{
	running = bytes;
	running_length = length;
	LLVMFuzzerTestOneInput(bytes, length);
	running = NULL;
}

/* --- files --- */

static int read_input(const char *path, struct input *out)
{
	FILE *file = fopen(path, "rb");
	long length = -1;
	int error = 1;

	out->bytes = NULL;
	if (file && !fseek(file, 0, SEEK_END))
		length = ftell(file);
	if (length >= 0)
		out->bytes = malloc((size_t)length ? (size_t)length : 1);
	if (out->bytes) {
		rewind(file);
		out->length = (size_t)length;
		error = fread(out->bytes, 1, out->length, file) != out->length;
	}
	if (error) {
		perror(path);
		free(out->bytes);
	}
	if (file)
		fclose(file);
	return error;
}

static int run_file(const char *path)
{
	struct input input;
	int error = read_input(path, &input);

	if (error)
		return error;
	run_input(input.bytes, input.length);
	free(input.bytes);
	return 0;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* In the order of the names, or a seed would mean something else elsewhere. */
static int read_corpus(const char *folder)
{
	struct dirent **entries = NULL;
	int nr = scandir(folder, &entries, is_visible, alphasort), error = 0;
	char path[4096 + 256];

	if (nr < 0)
		perror(folder);
	for (int i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		if (nr_corpus < MAX_FILES && !read_input(path, &corpus[nr_corpus]))
			nr_corpus++;
		else
			error = 1;
		free(entries[i]);
	}
	free(entries);
	return error || nr < 0;
}

static void free_corpus(void)
{
	while (nr_corpus)
		free(corpus[--nr_corpus].bytes);
}

/* --- random inputs --- */

static uint64_t random_state;

static uint64_t random_below(uint64_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return limit ? random_state % limit : 0;
}

static void remove_bytes(struct input *input, size_t at, size_t length)
{
	memmove(input->bytes + at, input->bytes + at + length, input->length - at - length);
	input->length -= length;
}

static void insert_bytes(struct input *input, size_t at, const uint8_t *bytes, size_t length)
{
	if (length > MAX_LENGTH - input->length)
		length = MAX_LENGTH - input->length;
	memmove(input->bytes + at + length, input->bytes + at, input->length - at);
	memcpy(input->bytes + at, bytes, length);
	input->length += length;
}

/* A piece of some file of the corpus. */
static void insert_piece(struct input *input, size_t at)
{
	const struct input *from = &corpus[random_below(nr_corpus)];
	size_t begin = random_below(from->length), length = random_below(from->length - begin + 1);

	insert_bytes(input, at, from->bytes + begin, length);
}

static void insert_number(struct input *input, size_t at)
{
	static const char *const numbers[] = { "0",   "1",     "255",  "256",	     "-1",
					       "64",  "0x",    "4096", "2147483648", "18446744073709551615",
					       "16T", "65536", "1023", "4294967296", "18446744073709551616" };
	const char *number = numbers[random_below(sizeof(numbers) / sizeof(numbers[0]))];

	insert_bytes(input, at, (const uint8_t *)number, strlen(number));
}

static void change(struct input *input)
{
	size_t at = random_below(input->length + 1);
	uint8_t byte = (uint8_t)random_below(256);

	switch (random_below(6)) {
	case 0:
		if (at < input->length)
			input->bytes[at] = byte;
		break;
	case 1:
		if (at < input->length)
			input->bytes[at] ^= (uint8_t)(1u << byte % 8);
		break;
	case 2:
		insert_bytes(input, at, &byte, 1);
		break;
	case 3:
		remove_bytes(input, at, random_below(input->length - at + 1));
		break;
	case 4:
		insert_piece(input, at);
		break;
	default:
		insert_number(input, at);
	}
}

static void run_random(void)
{
	static uint8_t room[MAX_LENGTH];
	uint64_t changes = 0, wanted = random_below(NR_CHANGES);
	struct input input = { room, 0 };
	uint8_t *exact;

	if (random_below(50)) {
		const struct input *from = &corpus[random_below(nr_corpus)];

		insert_bytes(&input, 0, from->bytes, from->length);
	}
	while (changes++ < wanted || !input.length)
		change(&input);
	exact = malloc(input.length);
	if (!exact)
		abort();
	memcpy(exact, input.bytes, input.length);
	run_input(exact, input.length);
	free(exact);
}

static time_t seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static unsigned long run_randomly(long seconds, uint64_t seed)
{
	time_t end = seconds_now() + seconds;
	unsigned long nr = 0;

	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	random_state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	for (; seconds_now() < end; nr++)
		run_random();
	return nr;
}

int main(int argc, char **argv)
{
	const char *top = getenv("TEST_SRCDIR"), *slash = strrchr(argv[0], '/');
	const char *program = slash ? slash + 1 : argv[0], *name = strstr(program, "fuzz_");
	bool is_random = argc >= 3 && !strcmp(argv[1], "--random");
	unsigned long nr = 0;
	char folder[4096];
	int error = 0;

	save_failures(name ? name : program);
	for (int i = 1; i < argc && !is_random; i++, nr++)
		error |= run_file(argv[i]);
	if (argc == 1 || is_random) {
		snprintf(folder, sizeof(folder), "%s/tests/fuzz/corpus/%s", top ? top : ".",
			 name ? name + strlen("fuzz_") : "");
		error = read_corpus(folder);
	}
	for (unsigned i = 0; i < nr_corpus; i++, nr++)
		run_input(corpus[i].bytes, corpus[i].length);
	if (is_random && nr_corpus)
		nr += run_randomly(atol(argv[2]),
				   argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t)time(NULL));
	free_corpus();
	printf("%lu inputs\n", nr);
	return error || !nr;
}
