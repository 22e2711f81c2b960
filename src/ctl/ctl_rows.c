/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * THE table: every file of the mount, one row each.  Nothing else lists files:
 * tree, modes, parsing, README, the man page's file section, boot options and
 * the table tests come from here.
 *
 * To add a file: a row, and its show or get (and store or set) function.
 */
#include "ctl/ctl_internal.h"

#define SINCE "1.0"
#define QUIET (-1) /* poll never reports a change */

/* clang-format off */
#define READ(path_, show_, help_) \
	{ .path = path_, .mode = 0444, .show = show_, .event = QUIET, .since = SINCE, .help = help_ }
#define READ_EVENT(path_, show_, event_, help_) \
	{ .path = path_, .mode = 0444, .show = show_, .event = event_, .since = SINCE, .help = help_ }
#define READ_WRITE(path_, show_, store_, event_, help_) \
	{ .path = path_, .mode = 0644, .show = show_, .store = store_, .event = event_, .since = SINCE, \
	  .help = help_ }
/* Addresses are for root alone, as the kernel's are. */
#define READ_ROOT(path_, show_, help_) \
	{ .path = path_, .mode = 0400, .show = show_, .event = QUIET, .since = SINCE, .help = help_ }
/* Write-only; 0600, because reading the same descriptor gives the reply. */
#define TRIGGER(path_, store_, waits_, help_) \
	{ .path = path_, .mode = 0600, .store = store_, .waits = waits_, .event = QUIET, .since = SINCE, \
	  .help = help_ }
#define KNOB_NUMBER(name_, min_, max_, help_) \
	{ .path = "tune/" #name_, .mode = 0644, .type = MF_CTL_U64, .min = min_, .max = max_, \
	  .get = mf_ctl_get_##name_, .set = mf_ctl_set_##name_, .event = QUIET, .since = SINCE, .help = help_ }
#define KNOB_BOOL(name_, help_) \
	{ .path = "tune/" #name_, .mode = 0644, .type = MF_CTL_BOOL, .max = 1, .get = mf_ctl_get_##name_, \
	  .set = mf_ctl_set_##name_, .event = QUIET, .since = SINCE, .help = help_ }
#define KNOB_CHOICE(name_, choices_, help_) \
	{ .path = "tune/" #name_, .mode = 0644, .type = MF_CTL_CHOICE, .choices = choices_, \
	  .get = mf_ctl_get_##name_, .set = mf_ctl_set_##name_, .event = QUIET, .since = SINCE, .help = help_ }
/* clang-format on */

static const char *const bulk_algorithms[] = { "carryover", "split", NULL };
static const char *const large_orders[] = { "bounded", "off", "max", NULL }; /* as enum mf_vmalloc_large */
static const char *const pcp_modes[] = { "rseq", "trylock", "off", NULL };   /* as enum mf_pcp_mode */

const struct mf_ctl_row mf_ctl_rows[] = {
	READ("README", mf_ctl_show_readme, "This text: every file, and the rules of writing."),
	READ("version", mf_ctl_show_version, "The version of memfs."),
	READ("last_cmd_status", mf_ctl_show_status,
	     "ok, or the path and the reason of the last command's failure."),

	READ_WRITE("weights/auto", mf_ctl_show_auto, mf_ctl_store_auto, MF_EVENT_WEIGHTS,
		   "true: weights follow bandwidth; false: they stay as written."),
	{ .path = "weights/node*",
	  .mode = 0644,
	  .type = MF_CTL_U64,
	  .min = 1,
	  .max = 255,
	  .get = mf_ctl_get_weight,
	  .set = mf_ctl_set_weight,
	  .event = MF_EVENT_WEIGHTS,
	  .nodes = MF_CTL_NODES_WITH_MEMORY,
	  .since = SINCE,
	  .help = "Pages placed on this node in one turn of weighted interleave; a write ends auto." },

	READ("nodes/online", mf_ctl_show_online, "The nodes of the topology."),
	READ("nodes/possible", mf_ctl_show_online, "The nodes there can be: the same."),
	READ("nodes/has_cpu", mf_ctl_show_has_cpu, "The nodes with CPUs."),
	READ("nodes/has_memory", mf_ctl_show_has_memory, "The nodes with memory."),
	READ("nodes/has_normal_memory", mf_ctl_show_has_normal_memory,
	     "The nodes with memory below Movable."),
	READ("nodes/node*/cpulist", mf_ctl_show_cpulist, "The node's CPUs as a list."),
	READ("nodes/node*/cpumap", mf_ctl_show_cpumap, "The node's CPUs as a mask."),
	READ("nodes/node*/distance", mf_ctl_show_distance, "Distance to each online node, in their order."),
	{ .path = "nodes/node*/bandwidth",
	  .mode = 0644,
	  .type = MF_CTL_U64,
	  .max = UINT64_C(1) << 40,
	  .get = mf_ctl_get_bandwidth,
	  .set = mf_ctl_set_bandwidth,
	  .event = MF_EVENT_WEIGHTS,
	  .since = SINCE,
	  .help = "Bandwidth in MB/s, 0 if unknown; in auto mode a write recomputes all weights." },
	READ("nodes/node*/meminfo", mf_ctl_show_node_meminfo, "The node's memory, in the kernel's format."),
	READ("nodes/node*/numastat", mf_ctl_show_node_numastat,
	     "Pages by where they were wanted and placed."),
	READ("nodes/node*/vmstat", mf_ctl_show_node_vmstat, "The node's counters, in the kernel's format."),
	READ("nodes/node*/resident", mf_ctl_show_resident, "Bytes of the node that the host really holds."),
	READ_EVENT("nodes/node*/{zone}/free", mf_ctl_show_zone_free, MF_EVENT_PRESSURE,
		   "Free pages of the zone."),
	READ("nodes/node*/{zone}/min", mf_ctl_show_zone_min,
	     "Watermark in pages: below it only reserves are used."),
	READ("nodes/node*/{zone}/low", mf_ctl_show_zone_low,
	     "Watermark in pages: below it the zone is under pressure."),
	READ("nodes/node*/{zone}/high", mf_ctl_show_zone_high,
	     "Watermark in pages: above it the zone is balanced."),
	READ("nodes/node*/{zone}/promo", mf_ctl_show_zone_promo, "Watermark in pages: room for promotions."),
	READ("nodes/node*/{zone}/managed", mf_ctl_show_zone_pages, "Pages the allocator manages."),
	READ("nodes/node*/{zone}/present", mf_ctl_show_zone_pages, "Pages that exist."),
	READ("nodes/node*/{zone}/spanned", mf_ctl_show_zone_pages, "Pages from the first to the last."),
	READ("nodes/node*/{zone}/protection", mf_ctl_show_zone_protection,
	     "Pages kept from requests that may use each higher zone."),
	READ("nodes/node*/{zone}/free_area", mf_ctl_show_zone_free_area, "Free blocks of order 0 to 10."),

	READ_WRITE("tasks/{task}/policy", mf_ctl_show_policy, mf_ctl_store_policy, MF_EVENT_POLICY,
		   "The memory policy, in the kernel's text; a write resets the rotation."),
	READ_WRITE("tasks/{task}/mems_allowed", mf_ctl_show_mems_allowed, mf_ctl_store_mems_allowed,
		   MF_EVENT_POLICY, "The nodes the task may use; a write rebinds its policy."),
	READ_WRITE("tasks/{task}/cpu", mf_ctl_show_cpu, mf_ctl_store_cpu, QUIET,
		   "The CPU the task runs on, or auto: the caller's."),
	READ("tasks/{task}/il_prev", mf_ctl_show_il_prev, "Interleave: the node entered last."),
	READ("tasks/{task}/il_weight", mf_ctl_show_il_weight, "Interleave: blocks still owed to il_prev."),
	READ("tasks/{task}/next_node", mf_ctl_show_next_node, "The node the next block would be wanted on."),
	READ("tasks/{task}/numastat", mf_ctl_show_task_numastat, "Pages of the task's allocations by node."),

	TRIGGER("alloc/pages", mf_ctl_store_pages, mf_ctl_alloc_waits,
		"NAME [count=N] [order=K] [via=bulk|single] [node=N] [policy=P] [task=T] [cpu=C] [gfp=FLAGS] "
		"[type=unmovable|movable|reclaimable] [context=task|irq] [partial] [touch]: allocate; - generates a "
		"name."),
	TRIGGER("alloc/vmalloc", mf_ctl_store_vmalloc, mf_ctl_alloc_waits,
		"NAME size=BYTES|pages=N [align=BYTES] [node=N] [policy=P] [task=T] [cpu=C] [gfp=FLAGS] [huge] "
		"[touch]: allocate a range that is contiguous for its user; sizes take K M G T."),
	TRIGGER("alloc/free", mf_ctl_store_free, NULL,
		"NAME [count=N]: free all, or the last N blocks; a vmalloc only as a whole."),
	TRIGGER("alloc/drain", mf_ctl_store_drain, NULL, "1 or nodeN: per-CPU lists back to the zones."),
	TRIGGER("alloc/trim", mf_ctl_store_trim, NULL, "1: free memory back to the host now."),

	READ("live/{live}/kind", mf_ctl_show_kind, "What the allocation is: pages or vmalloc."),
	READ("live/{live}/task", mf_ctl_show_live_task, "The task that allocated."),
	READ("live/{live}/policy", mf_ctl_show_live_policy, "The policy that placed it, or node=N."),
	READ("live/{live}/order", mf_ctl_show_order, "Order of its blocks; 0 for a vmalloc."),
	READ("live/{live}/pages", mf_ctl_show_pages, "Pages it holds."),
	READ("live/{live}/bytes", mf_ctl_show_bytes, "Bytes it holds."),
	{ .path = "live/{live}/address",
	  .mode = 0400,
	  .show = mf_ctl_show_address,
	  .event = QUIET,
	  .live_kinds = 1u << MF_LIVE_VMALLOC,
	  .since = SINCE,
	  .help = "Where the range of a vmalloc starts, in the memory of the program that serves it." },
	READ("live/{live}/placement", mf_ctl_show_placement, "Pages by node."),
	READ("live/{live}/map", mf_ctl_show_map, "Contiguous runs: index pfn pages node zone."),
	{ .path = "live/{live}/data",
	  .mode = 0644,
	  .type = MF_CTL_MEMORY,
	  .event = QUIET,
	  .since = SINCE,
	  .help = "The memory itself." },

	READ_ROOT(
		"vmalloc/areas", mf_ctl_show_areas,
		"Ranges in use by address: 0xSTART-0xEND size pages runs kind name; the kind is linear, mapped or "
		"vmap, with -huge behind it where it is made of huge blocks; without a name -."),
	READ_ROOT(
		"vmalloc/free_space", mf_ctl_show_free_space,
		"The addresses for mapped ranges: start, and in bytes size, free and largest (free in one piece); "
		"places: free pieces."),
	READ("vmalloc/lazy_pages", mf_ctl_show_lazy_pages, "Pages that a purge would give back."),
	READ("vmalloc/mappings", mf_ctl_show_mappings,
	     "Mappings of the host: used by ranges (their runs and guards), and the limit."),
	TRIGGER("vmalloc/purge", mf_ctl_store_purge, NULL,
		"1: ranges freed lazily, and parked ones, back to the zones now."),

	READ_EVENT("stats/all", mf_ctl_show_all, MF_EVENT_STATS, "Every counter and level: name value."),
	READ("stats/counters/{counter}", mf_ctl_show_counter, "One counter, summed over all zones."),
	READ("stats/buddyinfo", mf_ctl_show_buddyinfo,
	     "Free blocks by zone and order, in the kernel's format."),
	READ("stats/pagetypeinfo", mf_ctl_show_pagetypeinfo,
	     "The same by migrate type, and pageblocks by type."),
	READ("stats/zoneinfo", mf_ctl_show_zoneinfo,
	     "Zones, watermarks and per-CPU lists, in the kernel's format."),
	READ("stats/vmstat", mf_ctl_show_vmstat, "Counters, in the kernel's format."),
	READ("stats/meminfo", mf_ctl_show_meminfo, "Memory, in the kernel's format."),
	READ_ROOT("stats/vmallocinfo", mf_ctl_show_vmallocinfo,
		  "Ranges in use and those freed lazily, in the kernel's format."),

	KNOB_NUMBER(min_free_kbytes, 0, INT32_MAX, "Memory kept free, in kB: sets the watermarks."),
	KNOB_NUMBER(watermark_scale_factor, 1, 3000, "Distance between watermarks, in 1/10000 of a zone."),
	KNOB_NUMBER(watermark_boost_factor, 0, INT32_MAX,
		    "How far mixing of migrate types raises watermarks, in 1/10000 of high; 0 not at all."),
	READ_WRITE("tune/lowmem_reserve_ratio", mf_ctl_show_lowmem_reserve_ratio,
		   mf_ctl_store_lowmem_reserve_ratio, QUIET,
		   "DMA, DMA32, Normal, Movable: a zone keeps 1/ratio of the zones above it; 0 nothing."),
	KNOB_NUMBER(percpu_pagelist_high_fraction, 0, INT32_MAX,
		    "Per-CPU lists may hold 1/N of a zone; 0 automatic, else at least 8."),
	KNOB_BOOL(numa_stat, "1: count numa_hit and the like."),
	KNOB_CHOICE(bulk_algorithm, bulk_algorithms,
		    "Weighted bulk: one call a node, or the extra call of kernels 6.9 to 7.2."),
	KNOB_CHOICE(pcp_mode, pcp_modes, "Per-CPU lists by restartable sequence, by lock, or none."),
	KNOB_BOOL(pcp_irq_bypass, "1: context=irq never uses the per-CPU lists."),
	KNOB_CHOICE(vmalloc_large_order, large_orders,
		    "Large blocks for vmalloc: bounded keeps the last ones of a node, off none, max any."),
	KNOB_BOOL(vmalloc_linear,
		  "1: a range that is one contiguous run is used where it is; 0: always mapped."),
	KNOB_NUMBER(vmalloc_small_pages, 0, 1024, "A mapped range of fewer pages asks for no large block."),
	KNOB_NUMBER(vmalloc_lazy_max, 0, UINT32_MAX,
		    "Pages freed lazily before a purge; 0: purge at every free."),
	KNOB_NUMBER(vmalloc_max_mappings, 0, UINT32_MAX, "Runs and guards that may be mapped at once."),
	KNOB_BOOL(numa, "0: no policy is looked up and no NUMA statistics are kept."),
	KNOB_BOOL(init_on_alloc, "1: every page is cleared when it is handed out."),
	KNOB_NUMBER(trim_seconds, 0, 32767, "Free lines idle for so long go back to the host; 0 never."),
	KNOB_NUMBER(tick_ms, 0, 3600000, "Time between ticks in milliseconds; 0 stops them."),
	KNOB_NUMBER(max_live_allocations, 0, UINT32_MAX, "How many named allocations there may be."),
	KNOB_NUMBER(max_tasks, 1, UINT32_MAX, "How many tasks there may be."),

	{ .path = "debug/check",
	  .mode = 0400,
	  .show = mf_ctl_show_check,
	  .event = QUIET,
	  .since = SINCE,
	  .help = "Walks every structure: ok, or a line a violation." },
	TRIGGER("debug/tick", mf_ctl_store_tick, NULL, "1: one tick now."),
	READ_WRITE("debug/fault/{fault}", mf_ctl_show_fault, mf_ctl_store_fault, QUIET,
		   "Failures on purpose: off, nth=N [every=M], or permille=P seed=S."),
};

const size_t mf_nr_ctl_rows = sizeof(mf_ctl_rows) / sizeof(mf_ctl_rows[0]);
