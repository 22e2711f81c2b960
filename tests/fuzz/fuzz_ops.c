/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sequences of operations on a small instance: each byte below NR_OPERATIONS
 * (modulo) is one, the bytes behind it are what it works on.
 *
 * Every page handed out carries a stamp in its first and its last word until
 * it is freed, so that a page handed out twice, or touched after it was, shows
 * at once.  At the end the check says ok; and once everything is freed and the
 * lists are drained, the free blocks are those of the start.  Named ranges
 * (alloc/vmalloc) and objects (alloc/slab) are written and read through as named
 * allocations are.
 */
#include "fuzz.h"

#include "engine/live.h"

#include <errno.h>
#include <inttypes.h>

#define MAX_OPERATIONS 400
#define MAX_BLOCKS 3000
#define MAX_BULK 700
#define NR_TASKS 2
#define NR_NAMES 8
#define PAGE_WORDS (MEMFS_PAGE_SIZE / sizeof(uint64_t))

struct block {
	memfs_pfn pfn;
	unsigned order;
	uint64_t stamp; /* of its first page; the others count on from there */
};

struct run {
	struct fuzz_input input;
	struct memfs *m;
	struct memfs_task *tasks[NR_TASKS];
	struct block blocks[MAX_BLOCKS];
	unsigned nr_blocks;
	uint64_t next_stamp;
	unsigned char data[NR_NAMES]; /* what every byte of live/nI/data was set to; 0 never written */
	uint64_t nr_free[MF_MAX_ZONES][MF_NR_ORDERS]; /* at the start */
};

/* --- pages --- */

static uint64_t *words_of(const struct run *run, const struct block *block, unsigned page)
{
	return memfs_page_address(run->m, (memfs_pfn){ block->pfn.v + page });
}

static void stamp(const struct run *run, const struct block *block)
{
	for (unsigned page = 0; page < 1u << block->order; page++) {
		uint64_t *words = words_of(run, block, page);

		words[0] = block->stamp + page;
		words[PAGE_WORDS - 1] = ~(block->stamp + page);
	}
}

static void check_stamp(const struct run *run, const struct block *block)
{
	for (unsigned page = 0; page < 1u << block->order; page++) {
		const uint64_t *words = words_of(run, block, page);

		FUZZ_CHECK(words[0] == block->stamp + page);
		FUZZ_CHECK(words[PAGE_WORDS - 1] == ~(block->stamp + page));
	}
}

static void check_zero(const struct run *run, const struct block *block)
{
	for (unsigned page = 0; page < 1u << block->order; page++) {
		const uint64_t *words = words_of(run, block, page);

		for (unsigned i = 0; i < PAGE_WORDS; i++)
			FUZZ_CHECK(words[i] == 0);
	}
}

static void note_block(struct run *run, memfs_pfn pfn, unsigned order, memfs_gfp gfp)
{
	struct block *block = &run->blocks[run->nr_blocks++];

	FUZZ_CHECK(pfn.v % (1u << order) == 0);
	FUZZ_CHECK(memfs_page_node(run->m, pfn) == 0 || memfs_page_node(run->m, pfn) == 1);
	*block = (struct block){ pfn, order, run->next_stamp };
	run->next_stamp += UINT64_C(1) << 16;
	if (gfp & MEMFS___GFP_ZERO)
		check_zero(run, block);
	stamp(run, block);
}

static struct memfs_task *some_task(struct run *run)
{
	return run->tasks[fuzz_byte(&run->input) % NR_TASKS];
}

static memfs_gfp some_gfp(struct run *run)
{
	static const memfs_gfp kinds[] = {
		MEMFS_GFP_KERNEL,
		MEMFS_GFP_ATOMIC,
		MEMFS_GFP_NOWAIT,
		MEMFS_GFP_HIGHUSER_MOVABLE,
		MEMFS_GFP_KERNEL | MEMFS___GFP_RECLAIMABLE,
		MEMFS_GFP_KERNEL | MEMFS___GFP_ZERO,
		MEMFS_GFP_KERNEL | MEMFS___GFP_NORETRY,
		MEMFS_GFP_KERNEL | MEMFS___GFP_MEMALLOC,
	};

	return kinds[fuzz_byte(&run->input) % (sizeof(kinds) / sizeof(kinds[0]))];
}

static void op_alloc(struct run *run)
{
	struct memfs_task *task = some_task(run);
	memfs_gfp gfp = some_gfp(run);
	unsigned order = fuzz_byte(&run->input) % (MEMFS_MAX_PAGE_ORDER + 2);
	memfs_pfn pfn = { UINT32_MAX };
	int error;

	if (run->nr_blocks == MAX_BLOCKS)
		return;
	error = memfs_alloc_pages(task, gfp, order, &pfn);
	FUZZ_CHECK(error == 0 || pfn.v == UINT32_MAX);
	FUZZ_CHECK(error == 0 || error == (order > MEMFS_MAX_PAGE_ORDER ? -EINVAL : -ENOMEM));
	if (!error)
		note_block(run, pfn, order, gfp);
}

static void op_alloc_node(struct run *run)
{
	struct memfs_task *task = some_task(run);
	memfs_gfp gfp = some_gfp(run);
	unsigned choice = fuzz_byte(&run->input);
	unsigned order = choice % (MEMFS_MAX_PAGE_ORDER + 1);
	int node = (int)(choice / 16 % 3), error;
	memfs_pfn pfn;

	if (run->nr_blocks == MAX_BLOCKS)
		return;
	if (choice & 128)
		gfp |= MEMFS___GFP_THISNODE;
	error = memfs_alloc_pages_node(task, node, gfp, order, &pfn);
	FUZZ_CHECK(node < 2 ? error == 0 || error == -ENOMEM : error == -EINVAL);
	if (error)
		return;
	FUZZ_CHECK(!(choice & 128) || memfs_page_node(run->m, pfn) == node);
	note_block(run, pfn, order, gfp);
}

static void free_block(struct run *run, struct memfs_task *task, unsigned i)
{
	struct block block = run->blocks[i];

	check_stamp(run, &block);
	run->blocks[i] = run->blocks[--run->nr_blocks];
	memfs_free_pages(task, block.pfn, block.order);
}

static void op_free(struct run *run)
{
	struct memfs_task *task = some_task(run);
	unsigned i = fuzz_short(&run->input);

	if (run->nr_blocks)
		free_block(run, task, i % run->nr_blocks);
}

static void op_alloc_bulk(struct run *run)
{
	struct memfs_task *task = some_task(run);
	memfs_gfp gfp = some_gfp(run);
	size_t wanted = fuzz_short(&run->input) % MAX_BULK, got;
	memfs_pfn pfns[MAX_BULK + 1];

	if (wanted > MAX_BLOCKS - run->nr_blocks)
		wanted = MAX_BLOCKS - run->nr_blocks;
	pfns[wanted].v = UINT32_MAX;
	got = memfs_alloc_bulk(task, gfp, wanted, pfns);
	FUZZ_CHECK(got <= wanted && pfns[wanted].v == UINT32_MAX);
	for (size_t i = 0; i < got; i++)
		note_block(run, pfns[i], 0, gfp);
}

/* Single pages among the last blocks, in one call. */
static void op_free_bulk(struct run *run)
{
	struct memfs_task *task = some_task(run);
	size_t wanted = fuzz_short(&run->input) % MAX_BULK, nr = 0;
	memfs_pfn pfns[MAX_BULK];

	for (unsigned i = run->nr_blocks; i-- > 0 && nr < wanted;) {
		if (run->blocks[i].order)
			continue;
		check_stamp(run, &run->blocks[i]);
		pfns[nr++] = run->blocks[i].pfn;
		run->blocks[i] = run->blocks[--run->nr_blocks];
	}
	memfs_free_bulk(task, nr, pfns);
}

/* --- the machine --- */

static void op_drain(struct run *run)
{
	int node = (int)(fuzz_byte(&run->input) % 5) - 1;

	FUZZ_CHECK(memfs_drain(run->m, node) == (node < 3 ? 0 : -ENOENT));
}

static void op_tick(struct run *run)
{
	mf_plat_sim_advance(run->m->plat, UINT64_C(1000000000) * (1 + fuzz_byte(&run->input) % 40));
	mf_engine_tick(run->m);
}

static void op_trim(struct run *run)
{
	mf_page_trim(run->m->page);
}

/* Behind debug/fault/: the Nth place from here that can fail does. */
static void op_fault(struct run *run)
{
	mf_fault_arm_any(&run->m->fault, fuzz_byte(&run->input) % 32);
}

static void op_check(struct run *run)
{
	fuzz_check_engine(run->m);
}

/* --- tasks --- */

static void op_policy(struct run *run)
{
	static const char *const policies[] = {
		"default",	     "local",	  "prefer:1",
		"prefer (many):0-1", "bind:0",	  "interleave:0-1",
		"bind=static:0-1",   "prefer:2",  "weighted interleave:0-1",
		"interleave",	     "prefer:64", "weighted interleave=relative:0-1",
	};
	struct memfs_task *task = some_task(run);
	unsigned i = fuzz_byte(&run->input) % (sizeof(policies) / sizeof(policies[0]));

	memfs_task_set_policy(task, policies[i]);
}

static void op_mems_allowed(struct run *run)
{
	static const char *const lists[] = { "0-2", "0", "1", "0-1", "2", "", "3" };
	struct memfs_task *task = some_task(run);

	memfs_task_set_mems_allowed(task, lists[fuzz_byte(&run->input) % (sizeof(lists) / sizeof(lists[0]))]);
}

static void op_cpu(struct run *run)
{
	struct memfs_task *task = some_task(run);
	int cpu = (int)(fuzz_byte(&run->input) % 6) - 1;

	FUZZ_CHECK(memfs_task_set_cpu(task, cpu) == (cpu >= 0 && cpu < 4 ? 0 : -EINVAL));
}

/* --- files --- */

static int put(struct run *run, const char *path, const char *text)
{
	char reply[256];

	return memfs_write(run->m, path, text, strlen(text), reply, sizeof(reply));
}

static void op_weight(struct run *run)
{
	char path[32], text[16];

	snprintf(path, sizeof(path), "weights/node%u", fuzz_byte(&run->input) % 2);
	snprintf(text, sizeof(text), "%u", fuzz_byte(&run->input));
	FUZZ_CHECK(put(run, path, text) == (strcmp(text, "0") ? 0 : -EINVAL));
}

static void op_knob(struct run *run)
{
	static const struct {
		const char *path, *values[3];
	} knobs[] = {
		{ "tune/pcp_mode", { "rseq", "trylock", "off" } },
		{ "tune/numa", { "1", "0", "1" } },
		{ "tune/bulk_algorithm", { "carryover", "split", "carryover" } },
		{ "tune/init_on_alloc", { "0", "1", "0" } },
		{ "tune/min_free_kbytes", { "64", "512", "0" } },
		{ "tune/watermark_boost_factor", { "15000", "0", "30000" } },
		{ "tune/percpu_pagelist_high_fraction", { "0", "8", "100" } },
		{ "tune/pcp_irq_bypass", { "0", "1", "0" } },
		{ "tune/trim_seconds", { "0", "1", "10" } },
	};
	unsigned choice = fuzz_byte(&run->input);
	unsigned knob = choice % (sizeof(knobs) / sizeof(knobs[0]));

	put(run, knobs[knob].path, knobs[knob].values[choice / 16 % 3]);
}

static struct mf_live *live_of(struct run *run, unsigned i)
{
	char name[8];

	snprintf(name, sizeof(name), "n%u", i);
	return mf_live_get(run->m, mf_text_of(name));
}

static void op_live(struct run *run)
{
	static const char *const words[] = { "",
					     "via=single",
					     "partial",
					     "node=1",
					     "policy=bind:1",
					     "gfp=GFP_ATOMIC",
					     "context=irq",
					     "policy=interleave:0-1" };
	unsigned i = fuzz_byte(&run->input) % NR_NAMES, word = fuzz_byte(&run->input);
	unsigned order = word / 16 % (MEMFS_MAX_PAGE_ORDER + 1);
	unsigned count = 1 + fuzz_short(&run->input) % (MAX_BULK >> order / 2);
	struct mf_live *live = live_of(run, i);
	char text[128];
	int error;

	snprintf(text, sizeof(text), "n%u count=%u order=%u %s%s", i, count, order,
		 words[word % (sizeof(words) / sizeof(words[0]))], word & 128 ? " task=t1" : "");
	error = put(run, "alloc/pages", text);
	/* Whether the task may have the policy, and memory for the descriptor, are asked before the name is. */
	FUZZ_CHECK(error == -ENOMEM || error == -EINVAL || error == (live ? -EEXIST : 0));
	if (!error)
		run->data[i] = 0;
	if (live)
		mf_live_put(live);
}

static void op_range(struct run *run)
{
	static const char *const words[] = { "",
					     "huge",
					     "align=64K",
					     "node=1",
					     "policy=bind:1",
					     "gfp=GFP_ATOMIC",
					     "touch",
					     "policy=interleave:0-1" };
	unsigned i = fuzz_byte(&run->input) % NR_NAMES, word = fuzz_byte(&run->input);
	unsigned pages = 1 + fuzz_short(&run->input) % MAX_BULK;
	struct mf_live *live = live_of(run, i);
	char text[128];
	int error;

	snprintf(text, sizeof(text), "n%u pages=%u %s%s", i, pages,
		 words[word % (sizeof(words) / sizeof(words[0]))], word & 128 ? " task=t1" : "");
	error = put(run, "alloc/vmalloc", text);
	FUZZ_CHECK(error == -ENOMEM || error == -EINVAL || error == -ENOSPC || error == (live ? -EEXIST : 0));
	if (!error)
		run->data[i] = 0;
	if (live)
		mf_live_put(live);
}

static void op_range_knob(struct run *run)
{
	static const struct {
		const char *path, *values[3];
	} knobs[] = {
		{ "tune/vmalloc_large_order", { "bounded", "off", "max" } },
		{ "tune/vmalloc_linear", { "1", "0", "1" } },
		{ "tune/vmalloc_small_pages", { "8", "0", "1024" } },
		{ "tune/vmalloc_lazy_max", { "8192", "0", "100" } },
		{ "tune/vmalloc_max_mappings", { "60000", "3", "20" } },
		{ "vmalloc/purge", { "1", "1", "1" } },
	};
	unsigned choice = fuzz_byte(&run->input);
	unsigned knob = choice % (sizeof(knobs) / sizeof(knobs[0]));

	FUZZ_CHECK(put(run, knobs[knob].path, knobs[knob].values[choice / 16 % 3]) == 0);
}

static void op_objects(struct run *run)
{
	static const char *const words[] = { "size=64",	  "size=8",	"size=700",    "size=3000",
					     "size=8192", "size=20000", "cache=plain", "cache=checked" };
	static const char *const places[] = { "", "node=1", "cpu=1", "gfp=GFP_ATOMIC" };
	unsigned i = fuzz_byte(&run->input) % NR_NAMES, word = fuzz_byte(&run->input);
	unsigned count = 1 + fuzz_short(&run->input) % 600;
	struct mf_live *live = live_of(run, i);
	char text[128];
	int error;

	snprintf(text, sizeof(text), "n%u count=%u %s %s%s", i, count, words[word % 8], places[word / 8 % 4],
		 word & 128 ? " task=t1" : "");
	error = put(run, "alloc/slab", text);
	FUZZ_CHECK(error == -ENOMEM || error == (live ? -EEXIST : 0));
	if (!error)
		run->data[i] = 0;
	if (live)
		mf_live_put(live);
}

static void op_slab_knob(struct run *run)
{
	static const struct {
		const char *path, *values[3];
	} knobs[] = {
		{ "tune/slab_skip", { "visited", "last", "none" } },
		{ "tune/slab_sheaves", { "1", "0", "1" } },
		{ "tune/slab_stock_bytes", { "1048576", "0", "4096" } },
		{ "slab/plain/sheaf_capacity", { "60", "0", "5" } },
		{ "slab/plain/cpu_partial", { "120", "0", "30" } },
		{ "slab/plain/min_partial", { "5", "0", "100" } },
		{ "slab/plain/remote_node_defrag_ratio", { "100", "0", "50" } },
		{ "slab/plain/shrink", { "1", "1", "1" } },
		{ "slab/kmalloc-64/shrink", { "1", "1", "1" } },
		{ "slab/checked/validate", { "1", "1", "1" } },
	};
	unsigned choice = fuzz_byte(&run->input);
	unsigned knob = choice % (sizeof(knobs) / sizeof(knobs[0]));

	FUZZ_CHECK(put(run, knobs[knob].path, knobs[knob].values[choice / 16 % 3]) == 0);
}

/* Every byte is what was written last, or 0 if nothing was. */
static void check_data(struct run *run, struct mf_live *live, unsigned i)
{
	unsigned char bytes[5000];
	uint64_t at = 0;
	ssize_t got;

	while ((got = mf_live_read(live, bytes, sizeof(bytes), at)) > 0) {
		for (ssize_t k = 0; k < got; k++)
			FUZZ_CHECK(bytes[k] == run->data[i]);
		at += (uint64_t)got;
	}
	FUZZ_CHECK(got == 0 && at == mf_live_bytes(live));
}

static void op_live_data(struct run *run)
{
	unsigned i = fuzz_byte(&run->input) % NR_NAMES, value = fuzz_byte(&run->input);
	struct mf_live *live = live_of(run, i);
	unsigned char bytes[3000];
	uint64_t at = 0;

	if (!live)
		return;
	check_data(run, live, i);
	memset(bytes, (int)value, sizeof(bytes));
	while (at < mf_live_bytes(live)) {
		ssize_t put_bytes = mf_live_write(live, bytes, sizeof(bytes), at);

		FUZZ_CHECK(put_bytes > 0);
		at += (uint64_t)put_bytes;
	}
	FUZZ_CHECK(mf_live_write(live, bytes, 1, at) == -ENOSPC);
	run->data[i] = (unsigned char)value;
	check_data(run, live, i);
	mf_live_put(live);
}

/* The last blocks of one, or all of it; a range only goes as a whole. */
static void op_live_free(struct run *run)
{
	unsigned i = fuzz_byte(&run->input) % NR_NAMES, count = fuzz_byte(&run->input);
	struct mf_live *live = live_of(run, i);
	size_t had = live ? live->nr_blocks : 0;
	char text[64];
	int error;

	snprintf(text, sizeof(text), count ? "n%u count=%u" : "n%u", i, count);
	error = put(run, "alloc/free", text);
	if (!live) {
		FUZZ_CHECK(error == -ENOENT);
		return;
	}
	FUZZ_CHECK(error == (count > had || (count && live->kind == MF_LIVE_VMALLOC) ? -EINVAL : 0));
	if (!error && (!count || count == had))
		FUZZ_CHECK(mf_live_bytes(live) == 0);
	mf_live_put(live);
}

static void op_stats(struct run *run)
{
	static const char *const paths[] = { "stats/all", "stats/zoneinfo", "stats/vmstat",
					     "nodes/node0/Normal/free_area" };
	char text[256];

	FUZZ_CHECK(memfs_read(run->m, paths[fuzz_byte(&run->input) % 4], text, sizeof(text)) > 0);
}

/* --- a whole run --- */

/* By number: a new one goes to the end, or the corpus means something else. */
static void (*const operations[])(struct run *run) = {
	op_alloc, op_free,  op_alloc_bulk, op_free_bulk,    op_alloc_node, op_drain,
	op_tick,  op_trim,  op_policy,	   op_mems_allowed, op_cpu,	   op_weight,
	op_knob,  op_live,  op_live_free,  op_live_data,    op_fault,	   op_check,
	op_stats, op_range, op_range_knob, op_objects,	    op_slab_knob,
};

#define NR_OPERATIONS (sizeof(operations) / sizeof(operations[0]))

/* Free blocks of every zone, whatever their migrate type: what buddyinfo prints. */
static void count_free(struct run *run, uint64_t nr_free[MF_MAX_ZONES][MF_NR_ORDERS])
{
	struct mf_zone_info info;

	memset(nr_free, 0, sizeof(run->nr_free));
	for (unsigned zone = 0; zone < MF_MAX_ZONES; zone++) {
		if (!mf_page_zone_info(run->m->page, zone, &info))
			continue;
		for (unsigned type = 0; type < MF_NR_MIGRATE_TYPES; type++)
			for (unsigned order = 0; order < MF_NR_ORDERS; order++)
				nr_free[zone][order] += info.nr_free[type][order];
	}
}

static struct run *begin(const uint8_t *bytes, size_t length)
{
	struct run *run = calloc(1, sizeof(*run));

	FUZZ_CHECK(run);
	run->input = (struct fuzz_input){ bytes, length };
	run->m = fuzz_instance("topology=8M:cpus=2+6M:cpus=1+0:cpus=1,tune/min_free_kbytes=64");
	run->tasks[0] = memfs_task_find(run->m, "default");
	FUZZ_CHECK(memfs_task_create(run->m, "t1", &run->tasks[1]) == 0);
	FUZZ_CHECK(put(run, "slab/create", "plain size=72 flags=no_merge") == 0);
	FUZZ_CHECK(put(run, "slab/create", "checked size=50 flags=poison,red_zone,store_user") == 0);
	count_free(run, run->nr_free);
	return run;
}

static void free_everything(struct run *run)
{
	while (run->nr_blocks)
		free_block(run, run->tasks[run->nr_blocks % NR_TASKS], run->nr_blocks - 1);
	for (unsigned i = 0; i < NR_NAMES; i++) {
		struct mf_live *live = live_of(run, i);
		char name[8];

		if (!live)
			continue;
		check_data(run, live, i);
		mf_live_put(live);
		snprintf(name, sizeof(name), "n%u", i);
		FUZZ_CHECK(put(run, "alloc/free", name) == 0);
	}
}

static void shrink_one(void *arg, const char *name, struct mf_cache *cache, bool alias)
{
	(void)arg;
	(void)name;
	(void)alias;
	mf_cache_shrink(cache);
}

static void end(struct run *run)
{
	uint64_t(*nr_free)[MF_NR_ORDERS] = calloc(MF_MAX_ZONES, sizeof(*nr_free));

	FUZZ_CHECK(nr_free);
	mf_fault_disarm(&run->m->fault);
	fuzz_check_engine(run->m);
	free_everything(run);
	mf_cache_for_each(run->m->slabs, false, shrink_one, NULL);
	FUZZ_CHECK(put(run, "vmalloc/purge", "1") == 0);
	FUZZ_CHECK(memfs_drain(run->m, -1) == 0);
	fuzz_check_engine(run->m);
	count_free(run, nr_free);
	FUZZ_CHECK(!memcmp(nr_free, run->nr_free, sizeof(run->nr_free)));
	FUZZ_CHECK(memfs_task_destroy(run->tasks[1]) == 0);
	free(nr_free);
	mf_engine_destroy(run->m);
	free(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct run *run = begin(bytes, length);

	for (unsigned i = 0; i < MAX_OPERATIONS && run->input.left; i++)
		operations[fuzz_byte(&run->input) % NR_OPERATIONS](run);
	end(run);
	return 0;
}
