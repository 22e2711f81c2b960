/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of src/ctl/ share: the tree built from the rows, the show and
 * store functions the table names, and small helpers of theirs.
 *
 * A folder is known by a code that needs no instance: the first row whose path
 * lies in it, and how many components of that path it has.
 *
 * Locks: mf_ctl.lock (MF_LOCK_CTL) protects status alone and is taken with no
 * other lock held.  mf_ctl.slab_knobs is a mutex outside the order: a change of
 * slab knobs empties CPUs, which must happen with no ranked lock held.
 */
#ifndef MF_CTL_INTERNAL_H
#define MF_CTL_INTERNAL_H

#include "ctl/ctl.h"

#define MF_CTL_MAX_DEPTH 8 /* components of a path, exclusive */
#define MF_CTL_ROOT_CODE 0

enum mf_ctl_kind {
	MF_CTL_STATIC,
	MF_CTL_PER_NODE,
	MF_CTL_PER_ZONE,
	MF_CTL_PER_TASK,
	MF_CTL_PER_LIVE,
	MF_CTL_PER_COUNTER,
	MF_CTL_PER_FAULT,
	MF_CTL_PER_CACHE,
	MF_CTL_PER_SLAB_STAT,
};

/* One name, or one wildcard, in a folder. */
struct mf_ctl_entry {
	struct mf_text name; /* the pattern's component */
	enum mf_ctl_kind kind;
	const struct mf_ctl_row *row; /* NULL: a folder */
	enum mf_ctl_nodes nodes;
	uint16_t code; /* of the folder it is; of the folder it is in, if it is a file */
};

struct mf_ctl_folder {
	struct mf_ctl_entry *entries; /* the wildcard, if there is one, stands last */
	unsigned nr_entries;
	unsigned nr_static;
};

struct mf_ctl {
	struct mf_lock lock;
	char status[512];	       /* lock: what last_cmd_status prints */
	uint64_t seen_reports;	       /* lock: of the engines, told of in status */
	pthread_mutex_t slab_knobs;    /* one change of slab knobs at a time; taken with no lock held */
	struct mf_ctl_folder *folders; /* by code; most codes have none */
	unsigned nr_codes;
};

/* --- ctl_tree.c --- */
int mf_ctl_tree_create(struct mf_ctl *ctl);
void mf_ctl_tree_destroy(struct mf_ctl *ctl);
/* What the children of a folder are, if they are named by a table: PER_TASK, PER_LIVE, PER_CACHE. */
enum mf_ctl_kind mf_ctl_children(const struct mf_ctl_node *dir);

/* --- ctl.c --- */
/* A table of names, and its lock. */
struct mf_ctl_names {
	struct mf_lock *lock;
	const struct mf_name_table *table;
};
struct mf_ctl_names mf_ctl_names(struct memfs *m, enum mf_ctl_kind kind); /* PER_TASK, _LIVE, _CACHE */
/* Sets command->why; returns @error. */
int mf_ctl_fail(struct mf_ctl_command *command, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A number in min..max, with the reason if it is not. */
int mf_ctl_parse_number(struct mf_ctl_command *command, uint64_t min, uint64_t max, uint64_t *out);
/* The one word "1" that triggers take. */
int mf_ctl_parse_one(struct mf_ctl_command *command);

/* The pinned task or referenced allocation a node names; NULL if it has gone. */
struct mf_task *mf_ctl_task(struct memfs *m, const struct mf_ctl_node *node);
struct mf_live *mf_ctl_live(struct memfs *m, const struct mf_ctl_node *node);
/* The pinned cache a node names; NULL if the name has gone. */
struct mf_cache *mf_ctl_cache(struct memfs *m, const struct mf_ctl_node *node);

/* --- the functions the rows name, by file --- */
/* ctl_root.c */
mf_ctl_show_fn mf_ctl_show_readme, mf_ctl_show_version, mf_ctl_show_status;

/* ctl_weights.c: weights/, nodes/ */
uint64_t mf_ctl_get_weight(struct memfs *m, const struct mf_ctl_node *node);
int mf_ctl_set_weight(struct mf_ctl_command *command, uint64_t value);
mf_ctl_show_fn mf_ctl_show_auto;
mf_ctl_store_fn mf_ctl_store_auto;
uint64_t mf_ctl_get_bandwidth(struct memfs *m, const struct mf_ctl_node *node);
int mf_ctl_set_bandwidth(struct mf_ctl_command *command, uint64_t value);
mf_ctl_show_fn mf_ctl_show_online, mf_ctl_show_has_cpu, mf_ctl_show_has_memory, mf_ctl_show_has_normal_memory;
mf_ctl_show_fn mf_ctl_show_cpulist, mf_ctl_show_cpumap, mf_ctl_show_distance, mf_ctl_show_resident;
mf_ctl_show_fn mf_ctl_show_node_meminfo, mf_ctl_show_node_numastat, mf_ctl_show_node_vmstat;
mf_ctl_show_fn mf_ctl_show_zone_free, mf_ctl_show_zone_min, mf_ctl_show_zone_low, mf_ctl_show_zone_high;
mf_ctl_show_fn mf_ctl_show_zone_promo, mf_ctl_show_zone_pages, mf_ctl_show_zone_protection;
mf_ctl_show_fn mf_ctl_show_zone_free_area;

/* ctl_task.c */
mf_ctl_show_fn mf_ctl_show_policy, mf_ctl_show_mems_allowed, mf_ctl_show_cpu, mf_ctl_show_il_prev;
mf_ctl_show_fn mf_ctl_show_il_weight, mf_ctl_show_next_node, mf_ctl_show_task_numastat;
mf_ctl_store_fn mf_ctl_store_policy, mf_ctl_store_mems_allowed, mf_ctl_store_cpu;

/* --- ctl_parse.c --- */
/*
 * The grammar of alloc/pages, alloc/vmalloc and alloc/slab (design 2.5), as far as it needs
 * no instance: everything but whether the name is free, the task and the cache
 * exist and the policy fits it.  The texts in *out point into @text.  -EINVAL, -ENOENT (no such node).
 */
int mf_ctl_parse_pages(const struct mf_topo *topo, struct mf_text text, struct mf_live_request *out,
		       char *why, size_t why_size);
int mf_ctl_parse_vmalloc(const struct mf_topo *topo, struct mf_text text, struct mf_live_request *out,
			 char *why, size_t why_size);
int mf_ctl_parse_slab(const struct mf_topo *topo, struct mf_text text, struct mf_live_request *out, char *why,
		      size_t why_size);
/* waits of these rows: NOFAIL, touch. */
bool mf_ctl_alloc_waits(struct mf_text text);
/* "NAME [count=N]"; count 0 if it is not given. -EINVAL. */
int mf_ctl_parse_free(struct mf_text text, struct mf_text *name, uint64_t *count, char *why, size_t why_size);

/* ctl_alloc.c */
mf_ctl_store_fn mf_ctl_store_pages, mf_ctl_store_vmalloc, mf_ctl_store_free, mf_ctl_store_drain;
mf_ctl_store_fn mf_ctl_store_trim, mf_ctl_store_slab;

/* ctl_live.c */
mf_ctl_show_fn mf_ctl_show_kind, mf_ctl_show_live_task, mf_ctl_show_live_policy, mf_ctl_show_order;
mf_ctl_show_fn mf_ctl_show_pages, mf_ctl_show_bytes, mf_ctl_show_placement, mf_ctl_show_map;
mf_ctl_show_fn mf_ctl_show_address, mf_ctl_show_live_cache;

/* ctl_vmalloc.c: vmalloc/ */
mf_ctl_show_fn mf_ctl_show_areas, mf_ctl_show_free_space, mf_ctl_show_lazy_pages, mf_ctl_show_mappings;
mf_ctl_store_fn mf_ctl_store_purge;

/* ctl_slab.c: slab/create, the files of a cache that are written, sums over all caches */
/*
 * "NAME size=N [align=N] [flags=a,b]"; the name points into @text.  -EINVAL.
 * Pure: whether the name is free and the size fits is found out by the engine.
 */
int mf_ctl_parse_cache(struct mf_text text, struct mf_cache_request *out, char *why, size_t why_size);
/* clang-format off */
#define MF_CTL_SLAB_SUMS(S) \
	S(partial_search) S(partial_probe) S(partial_probe_skipped) S(partial_remote_hit)
/* clang-format on */
enum mf_ctl_slab_sum {
#define MF_CTL_SLAB_SUM_ENUM(name) MF_CTL_SLAB_SUM_##name,
	MF_CTL_SLAB_SUMS(MF_CTL_SLAB_SUM_ENUM)
#undef MF_CTL_SLAB_SUM_ENUM
		MF_CTL_NR_SLAB_SUMS,
};
/* Levels: what a cache has counted goes with it. */
struct mf_ctl_slab_totals {
	uint64_t sum[MF_CTL_NR_SLAB_SUMS]; /* over all caches and CPUs */
	uint64_t caches, pages;
};
void mf_ctl_slab_totals(struct memfs *m, struct mf_ctl_slab_totals *out);
#define MF_CTL_SLAB_SUM_DECLARE(name) \
	int mf_ctl_show_total_##name(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out);
MF_CTL_SLAB_SUMS(MF_CTL_SLAB_SUM_DECLARE)
#undef MF_CTL_SLAB_SUM_DECLARE
mf_ctl_show_fn mf_ctl_show_total_slab_caches, mf_ctl_show_total_slab_pages;
mf_ctl_store_fn mf_ctl_store_cache_create, mf_ctl_store_shrink, mf_ctl_store_validate;
mf_ctl_store_fn mf_ctl_store_defrag_ratio, mf_ctl_store_slab_stat;
mf_ctl_show_fn mf_ctl_show_defrag_ratio, mf_ctl_show_slab_stat;

/* clang-format off */
/* Knobs of a cache that are plain numbers: by field of struct mf_cache_knobs. */
#define MF_CTL_CACHE_KNOBS(K) K(min_partial) K(cpu_partial) K(sheaf_capacity)
/* ctl_cache.c: what is only read, in the order of the names */
#define MF_CTL_CACHE_FILES(F) \
	F(aliases) F(align) F(cache_dma) F(cpu_slabs) F(ctor) F(destroy_by_rcu) F(hwcache_align) \
	F(object_size) F(objects) F(objects_partial) F(objs_per_slab) F(order) F(partial) F(poison) \
	F(reclaim_account) F(red_zone) F(sanity_checks) F(slab_size) F(slabs) F(slabs_cpu_partial) \
	F(store_user) F(total_objects) F(trace) F(usersize) F(alloc_traces) F(free_traces)
/* clang-format on */
#define MF_CTL_CACHE_KNOB_DECLARE(name) \
	uint64_t mf_ctl_get_cache_##name(struct memfs *m, const struct mf_ctl_node *node); \
	int mf_ctl_set_cache_##name(struct mf_ctl_command *command, uint64_t value);
MF_CTL_CACHE_KNOBS(MF_CTL_CACHE_KNOB_DECLARE)
#undef MF_CTL_CACHE_KNOB_DECLARE
#define MF_CTL_CACHE_FILE_DECLARE(name) \
	int mf_ctl_show_cache_##name(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out);
MF_CTL_CACHE_FILES(MF_CTL_CACHE_FILE_DECLARE)
#undef MF_CTL_CACHE_FILE_DECLARE

/* ctl_stats.c: stats/ */
mf_ctl_show_fn mf_ctl_show_counter, mf_ctl_show_all, mf_ctl_show_buddyinfo, mf_ctl_show_pagetypeinfo;
mf_ctl_show_fn mf_ctl_show_zoneinfo, mf_ctl_show_vmstat, mf_ctl_show_meminfo, mf_ctl_show_vmallocinfo;
mf_ctl_show_fn mf_ctl_show_slabinfo;

/* ctl_tune.c */
/* clang-format off */
#define MF_CTL_KNOBS(K) \
	K(min_free_kbytes) K(watermark_scale_factor) K(watermark_boost_factor) \
	K(percpu_pagelist_high_fraction) K(numa_stat) K(bulk_algorithm) K(pcp_mode) K(pcp_irq_bypass) \
	K(vmalloc_large_order) K(vmalloc_linear) K(vmalloc_small_pages) K(vmalloc_lazy_max) \
	K(vmalloc_max_mappings) K(slab_skip) K(slab_sheaves) K(slab_stock_bytes) K(max_caches) K(numa) K(init_on_alloc) K(trim_seconds) K(tick_ms) \
	K(max_live_allocations) K(max_tasks)
/* clang-format on */
#define MF_CTL_KNOB_DECLARE(name) \
	uint64_t mf_ctl_get_##name(struct memfs *m, const struct mf_ctl_node *node); \
	int mf_ctl_set_##name(struct mf_ctl_command *command, uint64_t value);
MF_CTL_KNOBS(MF_CTL_KNOB_DECLARE)
#undef MF_CTL_KNOB_DECLARE
mf_ctl_show_fn mf_ctl_show_lowmem_reserve_ratio;
mf_ctl_store_fn mf_ctl_store_lowmem_reserve_ratio;

/* ctl_debug.c */
mf_ctl_show_fn mf_ctl_show_check, mf_ctl_show_fault;
mf_ctl_store_fn mf_ctl_store_tick, mf_ctl_store_fault;

#endif
