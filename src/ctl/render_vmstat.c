/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vmstat and the kernel's groups of names: what zoneinfo, vmstat and a node's
 * vmstat are made of, in the order of 7.2.  A later engine that counts one of
 * the zero rows gives it a value here, and every file shows it.
 */
#include "ctl/render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(MF_STAT_numa_other == MF_STAT_numa_hit + 5 && MF_VM_NUMA_OTHER == MF_VM_NUMA_HIT + 5,
	       "the six NUMA counters are copied as one run");

#define NR_NUMA_COUNTERS 6
/* clang-format off */
#define ZERO(name) { #name, MF_VM_ZERO }
/* clang-format on */

/* of a zone */
const struct mf_vm_item mf_vm_zone_items[] = {
	{ "nr_free_pages", MF_VM_FREE },
	{ "nr_free_pages_blocks", MF_VM_FREE_BLOCKS },
	ZERO(nr_zone_inactive_anon),
	ZERO(nr_zone_active_anon),
	ZERO(nr_zone_inactive_file),
	ZERO(nr_zone_active_file),
	ZERO(nr_zone_unevictable),
	ZERO(nr_zone_write_pending),
	ZERO(nr_mlock),
	ZERO(nr_zspages),
	ZERO(nr_free_cma),
	ZERO(nr_unaccepted),
	{ NULL, MF_VM_ZERO },
};

/* of a zone, NUMA */
const struct mf_vm_item mf_vm_numa_items[] = {
	{ "numa_hit", MF_VM_NUMA_HIT },
	{ "numa_miss", MF_VM_NUMA_MISS },
	{ "numa_foreign", MF_VM_NUMA_FOREIGN },
	{ "numa_interleave", MF_VM_NUMA_INTERLEAVE },
	{ "numa_local", MF_VM_NUMA_LOCAL },
	{ "numa_other", MF_VM_NUMA_OTHER },
	{ NULL, MF_VM_ZERO },
};

/* of a node */
const struct mf_vm_item mf_vm_node_items[] = {
	ZERO(nr_inactive_anon),
	ZERO(nr_active_anon),
	ZERO(nr_inactive_file),
	ZERO(nr_active_file),
	ZERO(nr_unevictable),
	{ "nr_slab_reclaimable", MF_VM_SLAB_RECLAIMABLE },
	{ "nr_slab_unreclaimable", MF_VM_SLAB_UNRECLAIMABLE },
	ZERO(nr_isolated_anon),
	ZERO(nr_isolated_file),
	ZERO(workingset_nodes),
	ZERO(workingset_refault_anon),
	ZERO(workingset_refault_file),
	ZERO(workingset_activate_anon),
	ZERO(workingset_activate_file),
	ZERO(workingset_restore_anon),
	ZERO(workingset_restore_file),
	ZERO(workingset_nodereclaim),
	ZERO(nr_anon_pages),
	ZERO(nr_mapped),
	ZERO(nr_file_pages),
	ZERO(nr_dirty),
	ZERO(nr_writeback),
	ZERO(nr_shmem),
	ZERO(nr_shmem_hugepages),
	ZERO(nr_shmem_pmdmapped),
	ZERO(nr_file_hugepages),
	ZERO(nr_file_pmdmapped),
	ZERO(nr_anon_transparent_hugepages),
	ZERO(nr_vmscan_write),
	ZERO(nr_vmscan_immediate_reclaim),
	ZERO(nr_dirtied),
	ZERO(nr_written),
	ZERO(nr_throttled_written),
	ZERO(nr_kernel_misc_reclaimable),
	ZERO(nr_foll_pin_acquired),
	ZERO(nr_foll_pin_released),
	{ "nr_vmalloc", MF_VM_VMALLOC },
	ZERO(nr_kernel_stack),
	ZERO(nr_page_table_pages),
	ZERO(nr_sec_page_table_pages),
	ZERO(nr_iommu_pages),
	ZERO(nr_swapcached),
	ZERO(pgpromote_success),
	ZERO(pgpromote_candidate),
	ZERO(pgpromote_candidate_nrl),
	ZERO(pgdemote_kswapd),
	ZERO(pgdemote_direct),
	ZERO(pgdemote_khugepaged),
	ZERO(pgdemote_proactive),
	ZERO(pgsteal_kswapd),
	ZERO(pgsteal_direct),
	ZERO(pgsteal_khugepaged),
	ZERO(pgsteal_proactive),
	ZERO(pgsteal_anon),
	ZERO(pgsteal_file),
	ZERO(pgscan_kswapd),
	ZERO(pgscan_direct),
	ZERO(pgscan_khugepaged),
	ZERO(pgscan_proactive),
	ZERO(pgscan_anon),
	ZERO(pgscan_file),
	ZERO(pgrefill),
	ZERO(nr_hugetlb),
	ZERO(nr_balloon_pages),
	ZERO(nr_kernel_file_pages),
	ZERO(nr_gpu_active),
	ZERO(nr_gpu_reclaim),
	{ NULL, MF_VM_ZERO },
};

/* of the whole machine: thresholds and events */
const struct mf_vm_item mf_vm_event_items[] = {
	ZERO(nr_dirty_threshold),
	ZERO(nr_dirty_background_threshold),
	ZERO(nr_memmap_pages),
	ZERO(nr_memmap_boot_pages),
	ZERO(pgpgin),
	ZERO(pgpgout),
	ZERO(pswpin),
	ZERO(pswpout),
	{ "pgalloc_dma", MF_VM_PGALLOC + MF_ZONE_DMA },
	{ "pgalloc_dma32", MF_VM_PGALLOC + MF_ZONE_DMA32 },
	{ "pgalloc_normal", MF_VM_PGALLOC + MF_ZONE_NORMAL },
	{ "pgalloc_movable", MF_VM_PGALLOC + MF_ZONE_MOVABLE },
	ZERO(pgalloc_device),
	{ "allocstall_dma", MF_VM_ALLOCSTALL + MF_ZONE_DMA },
	{ "allocstall_dma32", MF_VM_ALLOCSTALL + MF_ZONE_DMA32 },
	{ "allocstall_normal", MF_VM_ALLOCSTALL + MF_ZONE_NORMAL },
	{ "allocstall_movable", MF_VM_ALLOCSTALL + MF_ZONE_MOVABLE },
	ZERO(allocstall_device),
	ZERO(pgskip_dma),
	ZERO(pgskip_dma32),
	ZERO(pgskip_normal),
	ZERO(pgskip_movable),
	ZERO(pgskip_device),
	{ "pgfree", MF_VM_PGFREE },
	ZERO(pgactivate),
	ZERO(pgdeactivate),
	ZERO(pglazyfree),
	ZERO(pgfault),
	ZERO(pgmajfault),
	ZERO(pglazyfreed),
	ZERO(pgreuse),
	ZERO(pgscan_direct_throttle),
	ZERO(zone_reclaim_success),
	ZERO(zone_reclaim_failed),
	ZERO(pginodesteal),
	ZERO(slabs_scanned),
	ZERO(kswapd_inodesteal),
	ZERO(kswapd_low_wmark_hit_quickly),
	ZERO(kswapd_high_wmark_hit_quickly),
	ZERO(pageoutrun),
	ZERO(pgrotated),
	ZERO(drop_pagecache),
	ZERO(drop_slab),
	ZERO(oom_kill),
	ZERO(numa_pte_updates),
	ZERO(numa_huge_pte_updates),
	ZERO(numa_hint_faults),
	ZERO(numa_hint_faults_local),
	ZERO(numa_pages_migrated),
	ZERO(pgmigrate_success),
	ZERO(pgmigrate_fail),
	ZERO(thp_migration_success),
	ZERO(thp_migration_fail),
	ZERO(thp_migration_split),
	ZERO(compact_migrate_scanned),
	ZERO(compact_free_scanned),
	ZERO(compact_isolated),
	ZERO(compact_stall),
	ZERO(compact_fail),
	ZERO(compact_success),
	ZERO(compact_daemon_wake),
	ZERO(compact_daemon_migrate_scanned),
	ZERO(compact_daemon_free_scanned),
	ZERO(htlb_buddy_alloc_success),
	ZERO(htlb_buddy_alloc_fail),
	ZERO(cma_alloc_success),
	ZERO(cma_alloc_fail),
	ZERO(unevictable_pgs_culled),
	ZERO(unevictable_pgs_scanned),
	ZERO(unevictable_pgs_rescued),
	ZERO(unevictable_pgs_mlocked),
	ZERO(unevictable_pgs_munlocked),
	ZERO(unevictable_pgs_cleared),
	ZERO(unevictable_pgs_stranded),
	ZERO(thp_fault_alloc),
	ZERO(thp_fault_fallback),
	ZERO(thp_fault_fallback_charge),
	ZERO(thp_collapse_alloc),
	ZERO(thp_collapse_alloc_failed),
	ZERO(thp_file_alloc),
	ZERO(thp_file_fallback),
	ZERO(thp_file_fallback_charge),
	ZERO(thp_file_mapped),
	ZERO(thp_split_page),
	ZERO(thp_split_page_failed),
	ZERO(thp_deferred_split_page),
	ZERO(thp_underused_split_page),
	ZERO(thp_split_pmd),
	ZERO(thp_scan_exceed_none_pte),
	ZERO(thp_scan_exceed_swap_pte),
	ZERO(thp_scan_exceed_share_pte),
	ZERO(thp_split_pud),
	ZERO(thp_zero_page_alloc),
	ZERO(thp_zero_page_alloc_failed),
	ZERO(thp_swpout),
	ZERO(thp_swpout_fallback),
	ZERO(balloon_inflate),
	ZERO(balloon_deflate),
	ZERO(balloon_migrate),
	ZERO(swap_ra),
	ZERO(swap_ra_hit),
	ZERO(swpin_zero),
	ZERO(swpout_zero),
	ZERO(ksm_swpin_copy),
	ZERO(cow_ksm),
	ZERO(zswpin),
	ZERO(zswpout),
	ZERO(zswpwb),
	ZERO(direct_map_level2_splits),
	ZERO(direct_map_level3_splits),
	ZERO(direct_map_level2_collapses),
	ZERO(direct_map_level3_collapses),
	ZERO(nr_unstable),
	{ NULL, MF_VM_ZERO },
};

int mf_vm_snapshot_take(struct memfs *m, struct mf_vm_snapshot *out)
{
	struct mf_stat_set *set = mf_page_stat(m->page);

	memset(out, 0, sizeof(*out));
	out->m = m;
	out->nr_zones = set->nr_zones;
	out->sums = calloc((size_t)set->nr_zones * MF_NR_STATS, sizeof(*out->sums));
	if (!out->sums)
		return -ENOMEM;
	mf_stat_snapshot(set, out->sums);
	return 0;
}

/* Pages that vmap shows belong to whoever allocated them. */
static void add_range(void *arg, const struct mf_vmalloc_area *area)
{
	struct mf_vm_snapshot *snapshot = arg;

	if (!area->vmap)
		MF_FOR_EACH_NODE(node, snapshot->m->topo->memory)
			snapshot->vmalloc[node] += area->by_node[node];
}

int mf_vm_snapshot_ranges(struct mf_vm_snapshot *snapshot)
{
	return mf_vmalloc_for_each(snapshot->m->vmalloc, false, add_range, snapshot);
}

void mf_vm_snapshot_free(struct mf_vm_snapshot *snapshot)
{
	free(snapshot->sums);
	snapshot->sums = NULL;
}

/* Pages of free blocks of at least @order. */
static uint64_t free_from_order(const struct mf_zone_info *zone, unsigned order)
{
	uint64_t pages = 0;

	for (unsigned type = 0; type < MF_NR_MIGRATE_TYPES; type++)
		for (unsigned o = order; o < MF_NR_ORDERS; o++)
			pages += zone->nr_free[type][o] << o;
	return pages;
}

/* What the kernel calls a zone's part of totalreserve_pages. */
static uint64_t reserved_pages(const struct mf_zone_info *zone)
{
	uint64_t most = 0, reserved;

	for (unsigned j = 0; j < MF_NR_ZONE_TYPES; j++)
		if (zone->marks.lowmem_reserve[j] > most)
			most = zone->marks.lowmem_reserve[j];
	reserved = most + zone->marks.high;
	return reserved < zone->managed ? reserved : zone->managed;
}

void mf_vm_add_zone(const struct mf_vm_snapshot *snapshot, const struct mf_zone_info *zone,
		    struct mf_vm_numbers *numbers)
{
	unsigned index = mf_zone_index(zone->node, zone->type);
	const uint64_t *sums = snapshot->sums + (size_t)index * MF_NR_STATS;
	uint64_t *of = numbers->of;

	of[MF_VM_FREE] += zone->free;
	of[MF_VM_FREE_BLOCKS] += free_from_order(zone, MF_PAGEBLOCK_ORDER);
	of[MF_VM_MANAGED] += zone->managed;
	of[MF_VM_PCP] += zone->pcp_count;
	of[MF_VM_RESERVED] += reserved_pages(zone);
	if (index >= snapshot->nr_zones)
		return;
	for (unsigned i = 0; i < NR_NUMA_COUNTERS; i++)
		of[MF_VM_NUMA_HIT + i] += sums[MF_STAT_numa_hit + i];
	of[MF_VM_PGALLOC + zone->type] += sums[MF_STAT_pgalloc];
	of[MF_VM_ALLOCSTALL + zone->type] += sums[MF_STAT_allocstall];
	of[MF_VM_PGFREE] += sums[MF_STAT_pgfree];
}

void mf_vm_add_node(const struct mf_vm_snapshot *snapshot, int node, struct mf_vm_numbers *numbers)
{
	mf_nodemask nodes = node < 0 ? snapshot->m->topo->memory : mf_node_bit(node);
	struct mf_zone_info zone;

	MF_FOR_EACH_NODE(id, nodes) {
		for (unsigned type = 0; type < MF_NR_ZONE_TYPES; type++)
			if (mf_page_zone_info(snapshot->m->page, mf_zone_index(id, type), &zone))
				mf_vm_add_zone(snapshot, &zone, numbers);
		numbers->of[MF_VM_VMALLOC] += snapshot->vmalloc[id];
		numbers->of[MF_VM_SLAB_RECLAIMABLE] += mf_slabs_pages(snapshot->m->slabs, true, id);
		numbers->of[MF_VM_SLAB_UNRECLAIMABLE] += mf_slabs_pages(snapshot->m->slabs, false, id);
	}
}

static void put_items(const struct mf_vm_item *items, const struct mf_vm_numbers *numbers,
		      struct mf_outbuf *out)
{
	for (; items->name; items++)
		mf_outbuf_printf(out, "%s %" PRIu64 "\n", items->name, numbers->of[items->value]);
}

/* The numbers of a node, or of all (-1), from a snapshot of their own. */
static int collect(struct memfs *m, int node, struct mf_vm_numbers *numbers)
{
	struct mf_vm_snapshot snapshot;
	int error = mf_vm_snapshot_take(m, &snapshot);

	if (error)
		return error;
	error = mf_vm_snapshot_ranges(&snapshot);
	*numbers = (struct mf_vm_numbers){ { 0 } };
	mf_vm_add_node(&snapshot, node, numbers);
	mf_vm_snapshot_free(&snapshot);
	return error;
}

int mf_render_vmstat(struct memfs *m, struct mf_outbuf *out)
{
	struct mf_vm_numbers numbers;
	int error = collect(m, -1, &numbers);

	if (error)
		return error;
	put_items(mf_vm_zone_items, &numbers, out);
	put_items(mf_vm_numa_items, &numbers, out);
	put_items(mf_vm_node_items, &numbers, out);
	put_items(mf_vm_event_items, &numbers, out);
	return mf_outbuf_error(out);
}

int mf_render_node_vmstat(struct memfs *m, int node, struct mf_outbuf *out)
{
	struct mf_vm_numbers numbers;
	int error = collect(m, node, &numbers);

	if (error)
		return error;
	put_items(mf_vm_zone_items, &numbers, out);
	put_items(mf_vm_numa_items, &numbers, out);
	put_items(mf_vm_node_items, &numbers, out);
	return mf_outbuf_error(out);
}
