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
/* Of a cache: root's alone, as the kernel has it. */
#define CACHE_FILE(name_, help_) READ_ROOT("slab/{cache}/" #name_, mf_ctl_show_cache_##name_, help_)
#define CACHE_KNOB(name_, max_, help_) \
	{ .path = "slab/{cache}/" #name_, .mode = 0600, .type = MF_CTL_U64, .max = max_, \
	  .get = mf_ctl_get_cache_##name_, .set = mf_ctl_set_cache_##name_, .event = QUIET, .since = SINCE, \
	  .help = help_ }
#define TOTAL(name_, help_) READ("stats/counters/" #name_, mf_ctl_show_total_##name_, help_)
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
static const char *const slab_skips[] = { "visited", "last", "none", NULL }; /* as enum mf_slab_skip */
static const char *const pcp_modes[] = { "rseq", "trylock", "off", NULL };   /* as enum mf_pcp_mode */

const struct mf_ctl_row mf_ctl_rows[] = {
	READ("README", mf_ctl_show_readme, "This text: every file, and the rules of writing."),
	READ("version", mf_ctl_show_version, "The version of memfs."),
	READ("last_cmd_status", mf_ctl_show_status,
	     "ok, or the path and the reason of the last command's failure, or what an engine found damaged since."),

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
	TRIGGER("alloc/slab", mf_ctl_store_slab, mf_ctl_alloc_waits,
		"NAME cache=CACHE|size=BYTES [count=N] [node=N] [task=T] [cpu=C] [gfp=FLAGS]: allocate objects, of "
		"a cache or of kmalloc by size; sizes take K M G T."),
	TRIGGER("alloc/free", mf_ctl_store_free, NULL,
		"NAME [count=N]: free all, or the last N blocks or objects; a vmalloc only as a whole."),
	TRIGGER("alloc/drain", mf_ctl_store_drain, NULL, "1 or nodeN: per-CPU lists back to the zones."),
	TRIGGER("alloc/trim", mf_ctl_store_trim, NULL, "1: free memory back to the host now."),

	READ("live/{live}/kind", mf_ctl_show_kind, "What the allocation is: pages, vmalloc or slab."),
	READ("live/{live}/task", mf_ctl_show_live_task, "The task that allocated."),
	READ("live/{live}/policy", mf_ctl_show_live_policy, "The policy that placed it, or node=N."),
	READ("live/{live}/order", mf_ctl_show_order,
	     "Order of its blocks; of its cache's slabs; 0 for a vmalloc."),
	READ("live/{live}/pages", mf_ctl_show_pages, "Pages it holds."),
	READ("live/{live}/bytes", mf_ctl_show_bytes, "Bytes it holds."),
	{ .path = "live/{live}/address",
	  .mode = 0400,
	  .show = mf_ctl_show_address,
	  .event = QUIET,
	  .live_kinds = 1u << MF_LIVE_VMALLOC,
	  .since = SINCE,
	  .help = "Where the range of a vmalloc starts, in the memory of the program that serves it." },
	{ .path = "live/{live}/cache",
	  .mode = 0444,
	  .show = mf_ctl_show_live_cache,
	  .event = QUIET,
	  .live_kinds = 1u << MF_LIVE_SLAB,
	  .since = SINCE,
	  .help = "The cache its objects are of; - if they are too large for one." },
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

	TRIGGER("slab/create", mf_ctl_store_cache_create, NULL,
		"NAME size=BYTES [align=BYTES] [flags=a,b]: make a cache; flags hwcache_align, reclaim_account, "
		"no_merge, poison, red_zone, store_user, typesafe_by_rcu, consistency; one of the same shape is shared."),
	CACHE_FILE(aliases, "Names the cache has beside the first."),
	CACHE_FILE(align, "Bytes every object is aligned to."),
	CACHE_FILE(alloc_traces, "Who allocated the objects in use, with store_user."),
	CACHE_FILE(cache_dma, "1: from zone DMA; always 0."),
	CACHE_KNOB(cpu_partial, 1u << 30,
		   "Objects a CPU may keep in partial slabs; a write empties the CPUs."),
	CACHE_FILE(cpu_slabs, "Slabs with the CPUs, by node."),
	CACHE_FILE(ctor, "The constructor: caches made by files have none."),
	CACHE_FILE(destroy_by_rcu, "1: made with typesafe_by_rcu."),
	CACHE_FILE(free_traces, "Who freed the objects last, with store_user."),
	CACHE_FILE(hwcache_align, "1: objects stand on cache lines of their own."),
	CACHE_KNOB(min_partial, UINT32_MAX, "Empty slabs a node keeps."),
	CACHE_FILE(object_size, "Bytes of an object as asked for."),
	CACHE_FILE(objects, "Objects in use or with a CPU, by node."),
	CACHE_FILE(objects_partial, "The same in slabs on the nodes' partial lists."),
	CACHE_FILE(objs_per_slab, "Objects in a slab of the usual order."),
	CACHE_FILE(order, "The usual order of its slabs."),
	CACHE_FILE(partial, "Slabs on the nodes' partial lists."),
	CACHE_FILE(poison, "1: the pattern in free objects is checked."),
	CACHE_FILE(reclaim_account, "1: made with reclaim_account."),
	CACHE_FILE(red_zone, "1: the patterns around objects are checked."),
	{ .path = "slab/{cache}/remote_node_defrag_ratio",
	  .mode = 0600,
	  .show = mf_ctl_show_defrag_ratio,
	  .store = mf_ctl_store_defrag_ratio,
	  .event = QUIET,
	  .since = SINCE,
	  .help = "How often, in percent, other nodes' partial slabs are looked for before a new slab is made; "
		  "0..100." },
	CACHE_FILE(sanity_checks, "1: every free is checked."),
	CACHE_KNOB(sheaf_capacity, 254,
		   "Objects in a CPU's array of them, 0 no arrays; a write empties the CPUs."),
	TRIGGER("slab/{cache}/shrink", mf_ctl_store_shrink, NULL,
		"1: what CPUs and nodes hold back goes to the slabs, and empty slabs to the zones."),
	CACHE_FILE(slab_size, "Bytes from one object to the next."),
	CACHE_FILE(slabs, "Slabs, by node."),
	CACHE_FILE(slabs_cpu_partial, "Objects, estimated, and slabs on the CPUs' partial lists, by CPU."),
	CACHE_FILE(store_user, "1: who allocated and freed each object is kept."),
	CACHE_FILE(total_objects, "Objects there is room for in its slabs, by node."),
	CACHE_FILE(trace, "1: every call is logged; always 0."),
	CACHE_FILE(usersize, "Bytes of an object that users copy; 0 but for kmalloc."),
	TRIGGER("slab/{cache}/validate", mf_ctl_store_validate, NULL,
		"1: check every object now, of a cache with debugging."),
	{ .path = "slab/{cache}/{slabstat}",
	  .mode = 0600,
	  .show = mf_ctl_show_slab_stat,
	  .store = mf_ctl_store_slab_stat,
	  .event = QUIET,
	  .since = SINCE,
	  .help = "One counter of the cache, the sum and by CPU; a write that begins with 0 clears it." },

	READ_EVENT("stats/all", mf_ctl_show_all, MF_EVENT_STATS, "Every counter and level: name value."),
	READ("stats/counters/{counter}", mf_ctl_show_counter, "One counter, summed over all zones."),
	TOTAL(partial_search, "Searches of other nodes' partial slabs, by all caches there are."),
	TOTAL(partial_probe, "Lists looked at in these searches."),
	TOTAL(partial_probe_skipped, "List looks saved in these searches."),
	TOTAL(partial_remote_hit, "Searches that found a slab."),
	TOTAL(slab_caches, "Caches there are, each once however many names it has."),
	TOTAL(slab_pages, "Pages of slabs."),
	READ("stats/buddyinfo", mf_ctl_show_buddyinfo,
	     "Free blocks by zone and order, in the kernel's format."),
	READ("stats/pagetypeinfo", mf_ctl_show_pagetypeinfo,
	     "The same by migrate type, and pageblocks by type."),
	READ("stats/zoneinfo", mf_ctl_show_zoneinfo,
	     "Zones, watermarks and per-CPU lists, in the kernel's format."),
	READ("stats/vmstat", mf_ctl_show_vmstat, "Counters, in the kernel's format."),
	READ("stats/meminfo", mf_ctl_show_meminfo, "Memory, in the kernel's format."),
	READ_ROOT("stats/slabinfo", mf_ctl_show_slabinfo, "Caches, in the kernel's format, version 2.1."),
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
	KNOB_CHOICE(
		slab_skip, slab_skips,
		"Search of other nodes' slabs: each node once, only the last one left out, or zone by zone."),
	KNOB_BOOL(slab_sheaves, "1: per-CPU arrays of objects above the CPU slabs; 0: the layers alone."),
	KNOB_NUMBER(
		slab_stock_bytes, 0, UINT64_C(1) << 40,
		"Bytes of objects that a node keeps in full arrays, a cache; more than 1024 or 1 MiB it does not."),
	KNOB_NUMBER(max_caches, 1, 65535, "How many names of caches there may be."),
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
