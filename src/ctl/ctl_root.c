/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The files at the top: README (made from the rows) and version.
 */
#include "ctl/ctl_internal.h"

#include <inttypes.h>

static const char head[] =
	"memfs is a NUMA memory manager over real memory: zones, buddy lists, per-CPU lists and\n"
	"memory policies.  Every policy is a file to write, every counter a file to read:\n"
	"echo 3 > weights/node0; echo 'db count=1024' > alloc/pages; cat live/db/placement\n\n"
	"FILES (node* stands for node0, node1, ...; {zone} for a zone; other braces for names)\n\n";

static const char tail[] =
	"\nmkdir tasks/NAME makes a task, rmdir tasks/NAME ends it; rmdir live/NAME frees an allocation,\n"
	"rmdir slab/NAME destroys a cache that has no objects in use.\n"
	"Names are 1 to 64 of A-Z a-z 0-9 . _ : -\n\n"
	"WRITING\n\n"
	"One write(2) is one command, at whatever offset; it is done whole or refused whole.\n"
	"One trailing newline is allowed; at most 4096 bytes; an empty command is an error.\n"
	"What one write is depends on the shell: printf 'a\\nb\\n' makes two in bash and one in dash\n"
	"(refused: two lines), and printf '' makes none.  echo always makes one.\n"
	"Numbers are decimal, 0x hexadecimal or 0 octal; lists are like 0,2-3.\n"
	"What a file prints can be written back to it.\n"
	"Why a command failed: read the same descriptor, or last_cmd_status (\"ok\" after a success).\n"
	"A mkdir of a name that is there and a rmdir of one that is not end in the kernel and leave it as it is.\n"
	"After a success the same descriptor reads the command's reply, if it has one (alloc/, slab/, vmalloc/purge).\n";

static const char *access_of(const struct mf_ctl_row *row)
{
	bool reads = row->show || row->get || row->type == MF_CTL_MEMORY, writes = row->mode & 0222;

	return reads && writes ? "rw" : writes ? "-w" : "r-";
}

/* The values a row takes, behind its help. */
static void put_values(const struct mf_ctl_row *row, struct mf_outbuf *out)
{
	if (row->type == MF_CTL_U64)
		mf_outbuf_printf(out, " [%" PRIu64 "..%" PRIu64 "]", row->min, row->max);
	if (row->type == MF_CTL_BOOL)
		mf_outbuf_puts(out, " [0 1]");
	for (unsigned i = 0; row->type == MF_CTL_CHOICE && row->choices[i]; i++)
		mf_outbuf_printf(out, "%s%s%s", i ? " " : " [", row->choices[i],
				 row->choices[i + 1] ? "" : "]");
}

static void put_counters(struct mf_outbuf *out)
{
	mf_outbuf_puts(out, "\nCOUNTERS (stats/all, stats/counters/)\n\n");
	for (unsigned i = 0; i < MF_NR_STATS; i++)
		mf_outbuf_printf(out, "%-24s %-6s  %s\n", mf_stat_rows[i].name, mf_stat_rows[i].unit,
				 mf_stat_rows[i].help);
	mf_outbuf_puts(out, "\nCOUNTERS OF A CACHE (slab/CACHE/)\n\n");
	for (unsigned i = 0; i < MF_NR_SLAB_STATS; i++)
		mf_outbuf_printf(out, "%-24s %s\n", mf_slab_stat_names[i], mf_slab_stat_help[i]);
	mf_outbuf_puts(out, "\nFAILURE POINTS (debug/fault/)\n\n");
	for (unsigned i = 0; i < MF_NR_FAULT_POINTS; i++)
		mf_outbuf_printf(out, "%-24s %s\n", mf_fault_name(i), mf_fault_help(i));
}

int mf_ctl_show_readme(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	(void)m;
	(void)node;
	mf_outbuf_puts(out, head);
	for (size_t i = 0; i < mf_nr_ctl_rows; i++) {
		const struct mf_ctl_row *row = &mf_ctl_rows[i];

		mf_outbuf_printf(out, "%-38s %s  %s", row->path, access_of(row), row->help);
		put_values(row, out);
		mf_outbuf_puts(out, "\n");
	}
	mf_outbuf_puts(out, tail);
	put_counters(out);
	return 0;
}

int mf_ctl_show_version(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	(void)m;
	(void)node;
	mf_outbuf_printf(out, "%s\n", memfs_version());
	return 0;
}
