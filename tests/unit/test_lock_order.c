/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of locks in src/README.md against the ranks of base/lock.h: every
 * rank has its row, in the same order, and no row names a lock there is not.
 */
#include "base/lock.h"
#include "unit.h"

#include <ctype.h>
#include <stdbool.h>

/* Of a table row: the cells that the test compares. */
struct row {
	unsigned number;
	char name[32];
	char protects[256];
	char may_allocate[64];
	char may_call_plat[64];
};

static FILE *open_tour(void)
{
	const char *top = getenv("TEST_SRCDIR");
	char path[4096];

	snprintf(path, sizeof(path), "%s/src/README.md", top ? top : ".");
	return fopen(path, "r");
}

/* The next cell of a row "| a | b |" without its blanks and back-ticks; false at the end. */
static bool next_cell(const char **at, char *cell, size_t size)
{
	const char *start = *at, *end;
	size_t length = 0;

	if (*start != '|' || !(end = strchr(start + 1, '|')))
		return false;
	for (start++; start < end; start++)
		if (*start != '`' && length + 1 < size && (length || !isspace((unsigned char)*start)))
			cell[length++] = *start;
	while (length && isspace((unsigned char)cell[length - 1]))
		length--;
	cell[length] = '\0';
	*at = end;
	return true;
}

static bool parse_row(const char *line, struct row *row)
{
	char number[16], lock[256];
	const char *at = line;
	char *end;

	if (!next_cell(&at, number, sizeof(number)) || !next_cell(&at, row->name, sizeof(row->name)) ||
	    !next_cell(&at, lock, sizeof(lock)) || !next_cell(&at, row->protects, sizeof(row->protects)) ||
	    !next_cell(&at, row->may_allocate, sizeof(row->may_allocate)) ||
	    !next_cell(&at, row->may_call_plat, sizeof(row->may_call_plat)))
		return false;
	row->number = (unsigned)strtoul(number, &end, 10);
	return end != number && *end == '\0';
}

/* The rows of the table under the heading "Locks"; returns how many, at most max. */
static unsigned read_table(struct row *rows, unsigned max)
{
	FILE *tour = open_tour();
	bool in_section = false;
	unsigned nr_rows = 0;
	char line[1024];

	if (!tour)
		return 0;
	while (nr_rows < max && fgets(line, sizeof(line), tour)) {
		if (!strncmp(line, "## ", 3))
			in_section = !strncmp(line, "## Locks", 8);
		else if (in_section && parse_row(line, &rows[nr_rows]))
			nr_rows++;
	}
	fclose(tour);
	return nr_rows;
}

static void every_rank_has_its_row(void)
{
	struct row rows[MF_NR_LOCK_RANKS + 8];
	unsigned nr_rows = read_table(rows, MF_NR_LOCK_RANKS + 8);

	CU_ASSERT_EQUAL(nr_rows, MF_NR_LOCK_RANKS);
	for (unsigned i = 0; i < nr_rows && i < MF_NR_LOCK_RANKS; i++) {
		CU_ASSERT_EQUAL(rows[i].number, i);
		CU_ASSERT_STRING_EQUAL(rows[i].name, mf_lock_rank_name((enum mf_lock_rank)i));
		CU_ASSERT(strlen(rows[i].protects) > 0);
	}
}

static bool is_answer(const char *cell)
{
	return !strncmp(cell, "yes", 3) || !strncmp(cell, "no", 2);
}

/* The platform is never called under ZONE or a later rank: what plat/plat.h demands. */
static void answers_follow_the_rules(void)
{
	struct row rows[MF_NR_LOCK_RANKS + 8];
	unsigned nr_rows = read_table(rows, MF_NR_LOCK_RANKS + 8);

	CU_ASSERT_FATAL(nr_rows > 0);
	for (unsigned i = 0; i < nr_rows; i++) {
		CU_ASSERT(is_answer(rows[i].may_allocate));
		CU_ASSERT(is_answer(rows[i].may_call_plat));
		if (rows[i].number >= MF_LOCK_ZONE) {
			CU_ASSERT(!strncmp(rows[i].may_call_plat, "no", 2));
			CU_ASSERT(!strncmp(rows[i].may_allocate, "no", 2));
		}
	}
}

static const struct unit_test tests[] = {
	UNIT_TEST(every_rank_has_its_row),
	UNIT_TEST(answers_follow_the_rules),
};

UNIT_MAIN("lock order in src/README.md", tests)
