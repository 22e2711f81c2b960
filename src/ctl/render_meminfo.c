/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * meminfo, of the machine and of a node.  A line is as wide as the kernel's:
 * the number ends in column 24 (22 for the huge page counts of a node).
 */
#include "ctl/render.h"

#include <inttypes.h>
#include <string.h>

enum mem_value {
	MEM_ZERO,
	MEM_TOTAL,
	MEM_FREE,
	MEM_AVAILABLE,
	MEM_USED,
	MEM_PAGEBLOCK,
	MEM_SLAB,
	MEM_SLAB_RECLAIMABLE,
	MEM_SLAB_UNRECLAIMABLE,
	MEM_VMALLOC_TOTAL,
	MEM_VMALLOC_USED,
	MEM_NR_VALUES
};

struct mem_line {
	const char *name;
	enum mem_value value;
	bool kb; /* else a plain count */
};

/* clang-format off */
#define KB(name) { name, MEM_ZERO, true }
#define COUNT(name) { name, MEM_ZERO, false }
/* clang-format on */

/* /proc/meminfo */
static const struct mem_line machine_lines[] = {
	{ "MemTotal", MEM_TOTAL, true },
	{ "MemFree", MEM_FREE, true },
	{ "MemAvailable", MEM_AVAILABLE, true },
	KB("Buffers"),
	KB("Cached"),
	KB("SwapCached"),
	KB("Active"),
	KB("Inactive"),
	KB("Active(anon)"),
	KB("Inactive(anon)"),
	KB("Active(file)"),
	KB("Inactive(file)"),
	KB("Unevictable"),
	KB("Mlocked"),
	KB("SwapTotal"),
	KB("SwapFree"),
	KB("Zswap"),
	KB("Zswapped"),
	KB("Dirty"),
	KB("Writeback"),
	KB("AnonPages"),
	KB("Mapped"),
	KB("Shmem"),
	{ "KReclaimable", MEM_SLAB_RECLAIMABLE, true },
	{ "Slab", MEM_SLAB, true },
	{ "SReclaimable", MEM_SLAB_RECLAIMABLE, true },
	{ "SUnreclaim", MEM_SLAB_UNRECLAIMABLE, true },
	KB("KernelStack"),
	KB("PageTables"),
	KB("SecPageTables"),
	KB("NFS_Unstable"),
	KB("Bounce"),
	KB("WritebackTmp"),
	KB("CommitLimit"),
	KB("Committed_AS"),
	{ "VmallocTotal", MEM_VMALLOC_TOTAL, true },
	{ "VmallocUsed", MEM_VMALLOC_USED, true },
	KB("VmallocChunk"),
	KB("Percpu"),
	KB("HardwareCorrupted"),
	KB("AnonHugePages"),
	KB("ShmemHugePages"),
	KB("ShmemPmdMapped"),
	KB("FileHugePages"),
	KB("FilePmdMapped"),
	KB("CmaTotal"),
	KB("CmaFree"),
	KB("Unaccepted"),
	KB("Balloon"),
	KB("GPUActive"),
	KB("GPUReclaim"),
	COUNT("HugePages_Total"),
	COUNT("HugePages_Free"),
	COUNT("HugePages_Rsvd"),
	COUNT("HugePages_Surp"),
	{ "Hugepagesize", MEM_PAGEBLOCK, true },
	KB("Hugetlb"),
	KB("DirectMap4k"),
	KB("DirectMap2M"),
	KB("DirectMap1G"),
};

/* a node's meminfo */
static const struct mem_line node_lines[] = {
	{ "MemTotal", MEM_TOTAL, true },
	{ "MemFree", MEM_FREE, true },
	{ "MemUsed", MEM_USED, true },
	KB("SwapCached"),
	KB("Active"),
	KB("Inactive"),
	KB("Active(anon)"),
	KB("Inactive(anon)"),
	KB("Active(file)"),
	KB("Inactive(file)"),
	KB("Unevictable"),
	KB("Mlocked"),
	KB("Dirty"),
	KB("Writeback"),
	KB("FilePages"),
	KB("Mapped"),
	KB("AnonPages"),
	KB("Shmem"),
	KB("KernelStack"),
	KB("PageTables"),
	KB("SecPageTables"),
	KB("NFS_Unstable"),
	KB("Bounce"),
	KB("WritebackTmp"),
	{ "KReclaimable", MEM_SLAB_RECLAIMABLE, true },
	{ "Slab", MEM_SLAB, true },
	{ "SReclaimable", MEM_SLAB_RECLAIMABLE, true },
	{ "SUnreclaim", MEM_SLAB_UNRECLAIMABLE, true },
	KB("AnonHugePages"),
	KB("ShmemHugePages"),
	KB("ShmemPmdMapped"),
	KB("FileHugePages"),
	KB("FilePmdMapped"),
	KB("Unaccepted"),
	KB("Balloon"),
	KB("GPUActive"),
	KB("GPUReclaim"),
	COUNT("HugePages_Total"),
	COUNT("HugePages_Free"),
	COUNT("HugePages_Surp"),
};

static uint64_t pages_to_kb(uint64_t pages)
{
	return pages << (MEMFS_PAGE_SHIFT - 10);
}

/* In kB, as all lines are. */
static int collect(struct memfs *m, int node, uint64_t *values)
{
	struct mf_vm_numbers numbers = { { 0 } };
	struct mf_vm_snapshot snapshot;
	struct mf_vmalloc_info ranges;
	int error = mf_vm_snapshot_take(m, &snapshot);
	uint64_t free, reserved;

	if (error)
		return error;
	mf_vm_add_node(&snapshot, node, &numbers);
	mf_vm_snapshot_free(&snapshot);
	free = numbers.of[MF_VM_FREE];
	reserved = numbers.of[MF_VM_RESERVED];
	values[MEM_ZERO] = 0;
	values[MEM_TOTAL] = pages_to_kb(numbers.of[MF_VM_MANAGED]);
	values[MEM_FREE] = pages_to_kb(free);
	values[MEM_AVAILABLE] = pages_to_kb(free > reserved ? free - reserved : 0);
	values[MEM_USED] = pages_to_kb(numbers.of[MF_VM_MANAGED] - free);
	values[MEM_PAGEBLOCK] = pages_to_kb(MF_PAGEBLOCK_PAGES);
	values[MEM_SLAB_RECLAIMABLE] = pages_to_kb(numbers.of[MF_VM_SLAB_RECLAIMABLE]);
	values[MEM_SLAB_UNRECLAIMABLE] = pages_to_kb(numbers.of[MF_VM_SLAB_UNRECLAIMABLE]);
	values[MEM_SLAB] = values[MEM_SLAB_RECLAIMABLE] + values[MEM_SLAB_UNRECLAIMABLE];
	mf_vmalloc_info(m->vmalloc, &ranges);
	values[MEM_VMALLOC_TOTAL] = ranges.size >> 10;
	values[MEM_VMALLOC_USED] = pages_to_kb(ranges.used_pages);
	return 0;
}

static void put_line(const struct mem_line *line, const uint64_t *values, int column, struct mf_outbuf *out)
{
	int room = column - 1 - (int)strlen(line->name), width = room < 8 ? room : 8;

	/* The blanks are there however long the number. */
	mf_outbuf_printf(out, "%s:%*s%*" PRIu64 "%s\n", line->name, room - width, "", width,
			 values[line->value], line->kb ? " kB" : "");
}

int mf_render_meminfo(struct memfs *m, struct mf_outbuf *out)
{
	uint64_t values[MEM_NR_VALUES];
	int error = collect(m, -1, values);

	if (error)
		return error;
	for (size_t i = 0; i < sizeof(machine_lines) / sizeof(machine_lines[0]); i++)
		put_line(&machine_lines[i], values, 24, out);
	return mf_outbuf_error(out);
}

int mf_render_node_meminfo(struct memfs *m, int node, struct mf_outbuf *out)
{
	uint64_t values[MEM_NR_VALUES];
	int error = collect(m, node, values);

	if (error)
		return error;
	for (size_t i = 0; i < sizeof(node_lines) / sizeof(node_lines[0]); i++) {
		mf_outbuf_printf(out, "Node %d ", node);
		put_line(&node_lines[i], values, node_lines[i].kb ? 24 : 22, out);
	}
	return mf_outbuf_error(out);
}
