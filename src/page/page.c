/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Building and taking down the allocator, its knobs, and addresses.
 *
 * Nothing here touches memory in proportion to the machine but the table of
 * zones by line (one byte for 2 MiB) and the queues of free lines (bits), so a
 * machine of a tebibyte stands in milliseconds.
 */
#include "page/page_internal.h"
#include "plat/rseq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void *meta_alloc(struct mf_page *pg, size_t bytes)
{
	if (mf_fault_hit(pg->fault, MF_FAULT_meta_alloc))
		return NULL;
	return pg->plat->ops->meta_alloc(pg->plat, bytes);
}

static size_t pcp_bytes(const struct mf_page *pg)
{
	return pg->cpu_limit * sizeof(struct mf_pcp);
}

/* --- zones --- */

static int create_zone(struct mf_page *pg, const struct mf_topo_node *node, enum mf_zone_type type)
{
	const struct mf_topo_zone *span = &node->zone[type];
	unsigned index = mf_zone_index(node->id, type);
	struct mf_zone *zone = aligned_alloc(64, (sizeof(*zone) + 63) & ~(size_t)63);

	if (!zone)
		return -ENOMEM;
	memset(zone, 0, sizeof(*zone));
	zone->index = index;
	zone->stat_base = index * MF_NR_STATS;
	zone->node = node->id;
	zone->type = type;
	zone->start_pfn = span->start_pfn;
	zone->managed = span->nr_pages;
	mf_lock_init(&zone->lock, MF_LOCK_ZONE);
	pg->zone[index] = zone;
	if (mf_fault_hit(pg->fault, MF_FAULT_meta_alloc) ||
	    mf_buddy_init(&zone->buddy, pg->plat, span->start_pfn, span->nr_pages))
		return -ENOMEM;
	if (pg->cpu_limit) {
		zone->pcp = meta_alloc(pg, pcp_bytes(pg));
		if (!zone->pcp)
			return -ENOMEM;
		/* Zeroed memory would be open for CPU 0, while another CPU makes its lists ready. */
		zone->pcp[0].owner = MF_RSEQ_SHUT;
	}
	mf_buddy_share_kinds(&zone->buddy, pg->line_kind, (uint8_t)index);
	return 0;
}

static void destroy_zone(struct mf_page *pg, struct mf_zone *zone)
{
	if (zone->pcp) {
		mf_pcp_destroy_zone(pg, zone);
		pg->plat->ops->meta_free(pg->plat, zone->pcp, pcp_bytes(pg));
	}
	mf_buddy_destroy(&zone->buddy);
	mf_lock_destroy(&zone->lock);
	free(zone);
}

static int create_arena(struct mf_page *pg, const struct mf_topo_node *node)
{
	void *at = pg->base + ((size_t)node->start_pfn << MEMFS_PAGE_SHIFT);

	if (mf_fault_hit(pg->fault, MF_FAULT_arena_map))
		return -ENOMEM;
	return pg->plat->ops->arena_map(pg->plat, at, (size_t)node->nr_pages << MEMFS_PAGE_SHIFT,
					node->host_node, &pg->arena[node->id]);
}

static int create_nodes(struct mf_page *pg)
{
	int error = 0;

	MF_FOR_EACH_NODE(id, pg->topo->memory) {
		const struct mf_topo_node *node = pg->topo->node[id];

		error = create_arena(pg, node);
		for (int type = 0; !error && type < MF_NR_ZONE_TYPES; type++)
			if (node->zone[type].nr_pages)
				error = create_zone(pg, node, (enum mf_zone_type)type);
		if (error)
			break;
	}
	return error;
}

/* First zone of a node's zonelist that a request for up to @highest may use. */
static struct mf_zone *first_zone(const struct mf_page *pg, int node, int highest)
{
	const struct mf_zonelist *list = &pg->zonelist[node];

	for (unsigned i = 0; i < list->nr_zones; i++)
		if ((int)pg->zone[list->zones[i]]->type <= highest)
			return pg->zone[list->zones[i]];
	return NULL;
}

static void index_zones(struct mf_page *pg)
{
	mf_zonelist_build(pg->topo, pg->zonelist);
	MF_FOR_EACH_NODE(node, pg->topo->nodes)
		for (int highest = 0; highest < MF_NR_ZONE_TYPES; highest++) {
			struct mf_zone *zone = first_zone(pg, node, highest);

			pg->node_zone[node][highest] = zone;
			pg->node_zone_index[node][highest] = zone ? (uint16_t)zone->index : 0;
		}
	for (unsigned i = 0; i < pg->local_cpus * MF_NR_ZONE_TYPES; i++)
		pg->local_zone[i] = pg->no_zone;
	for (unsigned cpu = 0; cpu < pg->cpu_limit; cpu++) {
		int node = pg->topo->cpu_node[cpu];

		for (int highest = 0; node >= 0 && highest < MF_NR_ZONE_TYPES; highest++) {
			struct mf_zone *zone = pg->node_zone[node][highest];

			/* The fast path counts a local hit: only the CPU's own node will do. */
			if (zone && zone->node == node)
				pg->local_zone[cpu * MF_NR_ZONE_TYPES + (unsigned)highest] = zone;
		}
	}
	for (unsigned cpu = 0; cpu < pg->local_cpus; cpu++) {
		const struct mf_zone *zone = pg->local_zone[cpu * MF_NR_ZONE_TYPES + MF_ZONE_NORMAL];

		pg->cpu_zone[cpu] = zone == pg->no_zone ? -1 : (int16_t)zone->index;
	}
	pg->stat.cpu_zone = pg->cpu_zone;
	pg->stat.nr_cpus = pg->cpu_limit; /* those beyond have no zone */
}

/* --- knobs --- */

#define GET(field) out->field = __atomic_load_n(&pg->knobs.field, __ATOMIC_RELAXED)

void mf_page_get_knobs(const struct mf_page *pg, struct mf_page_knobs *out)
{
	GET(pcp_mode);
	GET(pcp_irq_bypass);
	GET(numa);
	GET(numa_stat);
	GET(bulk_split);
	GET(init_on_alloc);
	GET(watermark_boost_factor);
	GET(trim_seconds);
	out->marks = pg->knobs.marks;
}

static void set_zone_knobs(struct mf_page *pg, struct mf_zone *zone)
{
	struct mf_zone_marks marks;

	mf_watermark_zone(pg->topo, zone->node, zone->type, &pg->knobs.marks, &marks);
	mf_zone_lock(pg, zone, false);
	zone->base_wmark[MF_WMARK_MIN] = marks.min;
	zone->base_wmark[MF_WMARK_LOW] = marks.low;
	zone->base_wmark[MF_WMARK_HIGH] = marks.high;
	zone->base_wmark[MF_WMARK_PROMO] = marks.promo;
	for (int highest = 0; highest < MF_NR_ZONE_TYPES; highest++)
		__atomic_store_n(&zone->lowmem_reserve[highest], marks.lowmem_reserve[highest],
				 __ATOMIC_RELAXED);
	__atomic_store_n(&zone->batch, marks.batch, __ATOMIC_RELAXED);
	__atomic_store_n(&zone->high_min, marks.high_min, __ATOMIC_RELAXED);
	__atomic_store_n(&zone->high_max, marks.high_max, __ATOMIC_RELAXED);
	mf_zone_set_marks(zone);
	mf_zone_unlock(zone);
	mf_pcp_resize(pg, zone);
}

/* The lists that the fast path finds for a CPU; zone and kind are there before the lists are used. */
static struct mf_pcp *local_pcp(const struct mf_page *pg, unsigned cpu)
{
	struct mf_zone *zone = pg->local_zone[cpu * MF_NR_ZONE_TYPES + MF_ZONE_NORMAL];

	if (zone == pg->no_zone)
		return pg->no_pcp;
	zone->pcp[cpu].zone = zone;
	zone->pcp[cpu].kind = (uint16_t)(zone->index << 8 | (MF_UNMOVABLE ^ MF_MOVABLE));
	return &zone->pcp[cpu];
}

/*
 * Which placements may go fast.  Without numa every policy is local; with numa
 * but without its statistics the fast rows would count what is switched off.
 */
static void set_fast(struct mf_page *pg, const struct mf_page_knobs *knobs, bool rseq)
{
	uint8_t mask = 0;

	if (rseq && !knobs->init_on_alloc && !knobs->numa)
		mask = MF_FAST_AUTO;
	else if (rseq && !knobs->init_on_alloc && knobs->numa_stat)
		mask = MF_FAST_LOCAL | MF_FAST_INTERLEAVE;
	__atomic_store_n(&pg->locked_ok,
			 knobs->pcp_mode != MF_PCP_OFF && !knobs->init_on_alloc &&
				 (!knobs->numa || knobs->numa_stat),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&pg->fast_mask, mask, __ATOMIC_RELAXED);
	__atomic_store_n(&pg->fast_column, knobs->numa ? MF_STAT_COLUMN_LOCAL : MF_STAT_COLUMN_PLAIN,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&pg->free_mask, rseq ? MF_FAST_AUTO : 0, __ATOMIC_RELAXED);
	for (unsigned cpu = 0; cpu < pg->local_cpus; cpu++)
		__atomic_store_n(&pg->local_pcp[cpu], mask ? local_pcp(pg, cpu) : pg->no_pcp,
				 __ATOMIC_RELEASE);
}

#define PUT(field) __atomic_store_n(&pg->knobs.field, knobs->field, __ATOMIC_RELAXED)

void mf_page_set_knobs(struct mf_page *pg, const struct mf_page_knobs *knobs)
{
	bool rseq = knobs->pcp_mode == MF_PCP_RSEQ && mf_rseq_usable() && pg->cpu_limit;

	PUT(pcp_mode);
	PUT(pcp_irq_bypass);
	PUT(numa);
	PUT(numa_stat);
	PUT(bulk_split);
	PUT(init_on_alloc);
	PUT(watermark_boost_factor);
	PUT(trim_seconds);
	pg->knobs.marks = knobs->marks;
	__atomic_store_n(&pg->numa, knobs->numa != 0, __ATOMIC_RELAXED);
	__atomic_store_n(&pg->numa_stat, knobs->numa && knobs->numa_stat, __ATOMIC_RELAXED);
	__atomic_store_n(&pg->rseq, rseq, __ATOMIC_RELAXED);
	set_fast(pg, knobs, rseq);
	for (unsigned i = 0; i < MF_MAX_ZONES; i++)
		if (pg->zone[i])
			set_zone_knobs(pg, pg->zone[i]);
}

static void default_knobs(const struct mf_topo *topo, struct mf_page_knobs *knobs)
{
	*knobs = (struct mf_page_knobs){
		.pcp_mode = mf_rseq_usable() ? MF_PCP_RSEQ : MF_PCP_TRYLOCK,
		.numa = 1,
		.numa_stat = 1,
		.watermark_boost_factor = 15000,
		.trim_seconds = 10,
		.marks = {
			.min_free_kbytes = mf_watermark_default_min_free(topo),
			.watermark_scale_factor = 10,
			.lowmem_reserve_ratio = { 256, 256, 32, 0 },
		},
	};
}

bool mf_page_rseq_available(void)
{
	return mf_rseq_usable();
}

/* --- lifetime --- */

static size_t line_table_bytes(const struct mf_page *pg)
{
	return ((pg->pfn_limit >> MF_PAGEBLOCK_ORDER) + 1) * sizeof(*pg->line_kind);
}

static size_t local_table_bytes(const struct mf_page *pg)
{
	return pg->local_cpus * MF_NR_ZONE_TYPES * sizeof(struct mf_zone *);
}

static int init_sync(struct mf_page *pg)
{
	pthread_condattr_t attr;
	int error;

	mf_lock_init(&pg->wait_lock, MF_LOCK_WAIT);
	mf_lock_init(&pg->trim_lock, MF_LOCK_TRIM);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	error = pthread_cond_init(&pg->wait_cond, &attr);
	pthread_condattr_destroy(&attr);
	return -error;
}

static int build(struct mf_page *pg)
{
	struct mf_page_knobs knobs;
	int error;

	error = pg->plat->ops->reserve(pg->plat, pg->base_bytes, (void **)&pg->base);
	if (error)
		return error;
	pg->line_kind = meta_alloc(pg, line_table_bytes(pg));
	pg->local_zone = meta_alloc(pg, local_table_bytes(pg));
	pg->local_pcp = meta_alloc(pg, pg->local_cpus * sizeof(*pg->local_pcp));
	pg->cpu_zone = meta_alloc(pg, pg->local_cpus * sizeof(*pg->cpu_zone));
	pg->no_zone = meta_alloc(pg, sizeof(*pg->no_zone));
	pg->no_pcp = meta_alloc(pg, sizeof(*pg->no_pcp));
	if (!pg->line_kind || !pg->local_zone || !pg->local_pcp || !pg->cpu_zone || !pg->no_zone ||
	    !pg->no_pcp)
		return -ENOMEM;
	pg->no_pcp->owner = MF_RSEQ_SHUT;
	pg->no_pcp->zone = pg->no_zone;
	pg->no_zone->node = -1;
	pg->no_pcp->kind = UINT16_MAX;
	memset(pg->no_zone->fast_mark, 0xff, sizeof(pg->no_zone->fast_mark));
	error = create_nodes(pg);
	if (error)
		return error;
	index_zones(pg);
	memset(pg->weights.of, 1, sizeof(pg->weights.of));
	default_knobs(pg->topo, &knobs);
	mf_page_set_knobs(pg, &knobs);
	return 0;
}

int mf_page_create(const struct mf_topo *topo, struct mf_plat *plat, struct mf_fault *fault,
		   struct mf_page **out)
{
	struct mf_page *pg;
	int error;

	if (mf_fault_hit(fault, MF_FAULT_meta_alloc))
		return -ENOMEM;
	pg = calloc(1, sizeof(*pg));
	if (!pg)
		return -ENOMEM;
	pg->topo = topo;
	pg->plat = plat;
	pg->fault = fault;
	pg->cpu_limit = topo->cpu_limit;
	/* Also where sequences cannot be used: the fast paths look at the CPU first; it reads as 0 there. */
	pg->rseq_offset = mf_rseq_offset();
	pg->local_cpus = mf_rseq_cpu_limit() > topo->cpu_limit ? mf_rseq_cpu_limit() : topo->cpu_limit;
	pg->pfn_limit = topo->pfn_limit;
	pg->base_bytes = (size_t)topo->pfn_limit << MEMFS_PAGE_SHIFT;
	pg->node_without_cpu = mf_node_first(topo->memory);
	for (int node = 0; node < 64; node++)
		pg->arena[node] = -1;
	error = mf_stat_init(&pg->stat, MF_MAX_ZONES);
	if (error) {
		free(pg);
		return error;
	}
	error = init_sync(pg);
	if (!error)
		error = build(pg);
	if (error) {
		mf_page_destroy(pg);
		return error;
	}
	*out = pg;
	return 0;
}

void mf_page_destroy(struct mf_page *pg)
{
	if (!pg)
		return;
	for (unsigned i = 0; i < MF_MAX_ZONES; i++)
		if (pg->zone[i])
			destroy_zone(pg, pg->zone[i]);
	for (int node = 0; node < 64; node++)
		if (pg->arena[node] >= 0)
			pg->plat->ops->arena_unmap(pg->plat, pg->arena[node]);
	if (pg->no_zone)
		pg->plat->ops->meta_free(pg->plat, pg->no_zone, sizeof(*pg->no_zone));
	if (pg->no_pcp)
		pg->plat->ops->meta_free(pg->plat, pg->no_pcp, sizeof(*pg->no_pcp));
	if (pg->cpu_zone)
		pg->plat->ops->meta_free(pg->plat, pg->cpu_zone, pg->local_cpus * sizeof(*pg->cpu_zone));
	if (pg->local_pcp)
		pg->plat->ops->meta_free(pg->plat, pg->local_pcp, pg->local_cpus * sizeof(*pg->local_pcp));
	if (pg->local_zone)
		pg->plat->ops->meta_free(pg->plat, pg->local_zone, local_table_bytes(pg));
	if (pg->line_kind)
		pg->plat->ops->meta_free(pg->plat, pg->line_kind, line_table_bytes(pg));
	if (pg->base)
		pg->plat->ops->unreserve(pg->plat, pg->base, pg->base_bytes);
	pthread_cond_destroy(&pg->wait_cond);
	mf_lock_destroy(&pg->wait_lock);
	mf_lock_destroy(&pg->trim_lock);
	mf_stat_destroy(&pg->stat);
	free(pg);
}

/* --- addresses --- */

void *mf_page_address(const struct mf_page *pg, uint32_t pfn)
{
	return pg->base + ((size_t)pfn << MEMFS_PAGE_SHIFT);
}

int mf_page_zone(const struct mf_page *pg, uint32_t pfn)
{
	const struct mf_zone *zone = pfn < pg->pfn_limit ? mf_page_zone_of(pg, pfn) : NULL;

	/* Gaps between nodes have index 0 in the table: look at the span, too. */
	if (!zone || pfn < zone->start_pfn || pfn - zone->start_pfn >= zone->managed)
		return -1;
	return (int)zone->index;
}

int mf_page_node(const struct mf_page *pg, uint32_t pfn)
{
	int zone = mf_page_zone(pg, pfn);

	return zone < 0 ? -1 : pg->zone[zone]->node;
}

bool mf_page_address_pfn(const struct mf_page *pg, const void *address, uint32_t *pfn)
{
	size_t offset = (size_t)((const char *)address - pg->base);

	if ((const char *)address < pg->base || offset >= pg->base_bytes)
		return false;
	*pfn = (uint32_t)(offset >> MEMFS_PAGE_SHIFT);
	return mf_page_zone(pg, *pfn) >= 0;
}

struct mf_stat_set *mf_page_stat(struct mf_page *pg)
{
	return &pg->stat;
}

struct mf_fault *mf_page_fault(struct mf_page *pg)
{
	return pg->fault;
}

const struct mf_topo *mf_page_topo(const struct mf_page *pg)
{
	return pg->topo;
}

const struct mf_zonelist *mf_page_zonelist(const struct mf_page *pg, int node)
{
	return &pg->zonelist[node];
}

int64_t mf_page_resident(const struct mf_page *pg, int node)
{
	if (!mf_node_isset(pg->topo->memory, node))
		return 0;
	return pg->plat->ops->arena_resident(pg->plat, pg->arena[node]);
}
