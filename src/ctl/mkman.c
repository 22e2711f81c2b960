/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints memfs.5, the manual page of the files, from the rows of the control
 * table, the counters and the failure points.  Run by the build; not installed.
 */
#include "ctl/ctl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char head[] =
	".\\\" SPDX-License-Identifier: LGPL-2.1-or-later\n"
	".\\\" Made by src/ctl/mkman.c from the tables; to change it, change those.\n"
	".TH MEMFS 5 \"\" \"memfs " MEMFS_VERSION "\" \"File Formats\"\n"
	".SH NAME\n"
	"memfs \\- the files of a mounted memfs\n"
	".SH DESCRIPTION\n"
	".BR memfs (1)\n"
	"shows a memory manager as a tree of files: every policy is one to write, every\n"
	"counter one to read.\n"
	"This page has one entry a file, with its mode and, in brackets, what may be written.\n"
	"Paths are relative to the mount point.\n"
	".B node*\n"
	"stands for node0, node1 and so on,\n"
	".B {zone}\n"
	"for DMA, DMA32, Normal or Movable, and other braces for names.\n"
	".PP\n"
	"One\n"
	".BR write (2)\n"
	"is one command of one line: it is done whole or refused whole, and one newline may\n"
	"end it.\n"
	"Numbers are decimal, 0x hexadecimal or 0 octal; lists are like 0,2\\-3.\n"
	"What a file prints can be written back to it.\n"
	"Why a command failed is what its descriptor reads next; the same line stands in\n"
	".BR last_cmd_status .\n"
	".PP\n"
	".BR poll (2)\n"
	"reports POLLPRI after a change of the files marked so.\n"
	".PP\n"
	".BR mkdir (1)\n"
	"in\n"
	".B tasks/\n"
	"makes a task, and\n"
	".BR rmdir (1)\n"
	"ends it or frees an allocation of\n"
	".BR live/ .\n"
	"Names are 1 to 64 of A\\-Z a\\-z 0\\-9 . _ : \\-\n"
	".SH FILES\n";

static const char tail[] = ".SH SEE ALSO\n"
			   ".BR memfs (1),\n"
			   ".BR memfs (3),\n"
			   ".BR numa (7),\n"
			   ".BR proc (5)\n";

/* Text as it is: nothing in it means anything to the formatter. */
static void put(const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text; text++)
		switch (*text) {
		case '-':
			fputs("\\-", stdout);
			break;
		case '\\':
			fputs("\\e", stdout);
			break;
		default:
			putchar(*text);
		}
}

/* The tag of an entry, in bold. */
static void put_tag(const char *name)
{
	fputs(".TP\n\\fB", stdout);
	put(name);
	fputs("\\fP", stdout);
}

/* What may be written, where the row itself knows it. */
static void put_values(const struct mf_ctl_row *row)
{
	if (row->type == MF_CTL_U64)
		printf(" [%" PRIu64 "..%" PRIu64 "]", row->min, row->max);
	if (row->type == MF_CTL_BOOL)
		fputs(" [0 1]", stdout);
	for (unsigned i = 0; row->type == MF_CTL_CHOICE && row->choices[i]; i++) {
		fputs(i ? " " : " [", stdout);
		put(row->choices[i]);
		fputs(row->choices[i + 1] ? "" : "]", stdout);
	}
}

static void put_row(const struct mf_ctl_row *row)
{
	put_tag(row->path);
	printf(" (%04o)", row->mode);
	put_values(row);
	putchar('\n');
	put(row->help);
	putchar('\n');
	if (row->event >= 0)
		fputs("POLLPRI after a change.\n", stdout);
}

/* The folder at the top that a path lies in; no length for the root itself. */
static struct mf_text top_folder(const char *path)
{
	const char *slash = strchr(path, '/');

	return (struct mf_text){ path, slash ? (size_t)(slash - path) : 0 };
}

static bool is_same(struct mf_text a, struct mf_text b)
{
	return a.length == b.length && !memcmp(a.at, b.at, a.length);
}

static void put_files(void)
{
	for (size_t i = 0; i < mf_nr_ctl_rows; i++) {
		struct mf_text folder = top_folder(mf_ctl_rows[i].path);

		if (folder.length && (!i || !is_same(folder, top_folder(mf_ctl_rows[i - 1].path))))
			printf(".SS %.*s/\n", (int)folder.length, folder.at);
		put_row(&mf_ctl_rows[i]);
	}
}

static void put_counters(void)
{
	fputs(".SH COUNTERS\nIn\n.B stats/all\nand, one a file, in\n.BR stats/counters/ .\n", stdout);
	for (unsigned i = 0; i < MF_NR_STATS; i++) {
		put_tag(mf_stat_rows[i].name);
		printf(" (%s)\n", mf_stat_rows[i].unit);
		put(mf_stat_rows[i].help);
		putchar('\n');
	}
}

static void put_slab_counters(void)
{
	fputs(".SH COUNTERS OF A CACHE\nIn\n.BR slab/CACHE/ .\n", stdout);
	for (unsigned i = 0; i < MF_NR_SLAB_STATS; i++) {
		put_tag(mf_slab_stat_names[i]);
		putchar('\n');
		put(mf_slab_stat_help[i]);
		putchar('\n');
	}
}

static void put_fault_points(void)
{
	fputs(".SH FAILURE POINTS\nIn\n.BR debug/fault/ .\n", stdout);
	for (unsigned i = 0; i < MF_NR_FAULT_POINTS; i++) {
		put_tag(mf_fault_name((enum mf_fault_point)i));
		putchar('\n');
		put(mf_fault_help((enum mf_fault_point)i));
		putchar('\n');
	}
}

int main(void)
{
	fputs(head, stdout);
	put_files();
	put_counters();
	put_slab_counters();
	put_fault_points();
	fputs(tail, stdout);
	return fflush(stdout) || ferror(stdout);
}
