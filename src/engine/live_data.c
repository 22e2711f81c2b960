/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Named allocations looked at: their bytes, where they lie, and whether they
 * are consistent.
 *
 * Bytes are numbered through the blocks or objects in allocation order.  Whoever
 * reaches a page (or an object: a "unit" of clearing) by its bytes finds it
 * cleared: either all were when they were allocated, or clear_map has a bit for
 * each that has been since.  A unit is cleared on its first use only, so that a
 * large allocation of which little is read stays small on the host.
 *
 * Locks: data_lock shared to move bytes or walk blocks, exclusive to clear;
 * cut_mutex for the check.
 */
#include "engine/engine_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Pages, or objects, whose order is 0. */
static uint64_t nr_units(const struct mf_live *live)
{
	return (uint64_t)__atomic_load_n(&live->nr_blocks, __ATOMIC_RELAXED) << live->order;
}

static uint64_t unit_bytes(const struct mf_live *live)
{
	return live->kind == MF_LIVE_SLAB ? live->object_size : MEMFS_PAGE_SIZE;
}

uint64_t mf_live_bytes(struct mf_live *live)
{
	return nr_units(live) * unit_bytes(live);
}

/* --- bytes --- */

/* The pfn of a page numbered within the allocation. */
static uint32_t pfn_of(const struct mf_live *live, uint64_t index)
{
	uint64_t in_block = index & ((UINT64_C(1) << live->order) - 1);

	return live->blocks[index >> live->order].v + (uint32_t)in_block;
}

/* The bytes [offset, offset + size) that are there, size > 0. */
static bool is_clear(const struct mf_live *live, uint64_t offset, size_t size)
{
	uint64_t unit = offset / unit_bytes(live), last = (offset + size - 1) / unit_bytes(live);

	if (live->cleared)
		return true;
	if (!live->clear_map)
		return false;
	for (; unit <= last; unit++)
		if (!(live->clear_map[unit / 64] >> unit % 64 & 1))
			return false;
	return true;
}

static void clear_unit(struct mf_live *live, uint64_t unit)
{
	if (live->kind == MF_LIVE_SLAB)
		mf_live_clear_object(live, unit);
	else
		memset(mf_page_address(live->m->page, pfn_of(live, unit)), 0, MEMFS_PAGE_SIZE);
}

/* data_lock is held exclusively. */
static int clear_units(struct mf_live *live, uint64_t first, uint64_t last)
{
	if (!live->clear_map)
		live->clear_map = calloc((nr_units(live) + 63) / 64, sizeof(*live->clear_map));
	if (!live->clear_map)
		return -ENOMEM;
	for (uint64_t unit = first; unit <= last; unit++) {
		uint64_t bit = UINT64_C(1) << unit % 64;

		if (live->clear_map[unit / 64] & bit)
			continue;
		clear_unit(live, unit);
		live->clear_map[unit / 64] |= bit;
	}
	return 0;
}

/* Cuts the range at the end of the allocation; data_lock is held. */
static int clip(const struct mf_live *live, uint64_t offset, size_t *size)
{
	uint64_t bytes = nr_units(live) * unit_bytes(live);

	if (!bytes)
		return -ENODEV;
	if (offset >= bytes)
		*size = 0;
	else if (*size > bytes - offset)
		*size = (size_t)(bytes - offset);
	return 0;
}

static int clear_range(struct mf_live *live, uint64_t offset, size_t size)
{
	int error;

	pthread_rwlock_wrlock(&live->data_lock);
	error = clip(live, offset, &size);
	if (!error && size)
		error = clear_units(live, offset / unit_bytes(live), (offset + size - 1) / unit_bytes(live));
	pthread_rwlock_unlock(&live->data_lock);
	return error;
}

/*
 * Cuts the range at the end and, unless nothing is left of it, makes it fit to
 * be shown.  On 0 data_lock is held shared.
 */
static int access_begin(struct mf_live *live, uint64_t offset, size_t *size)
{
	for (;;) {
		int error;

		pthread_rwlock_rdlock(&live->data_lock);
		error = clip(live, offset, size);
		if (!error && (!*size || is_clear(live, offset, *size)))
			return 0;
		pthread_rwlock_unlock(&live->data_lock);
		if (!error)
			error = clear_range(live, offset, *size);
		if (error)
			return error;
	}
}

static void access_end(struct mf_live *live)
{
	pthread_rwlock_unlock(&live->data_lock);
}

/* The bytes at offset that follow each other in memory: at most up to the end of the block or object. */
static char *bytes_at(const struct mf_live *live, uint64_t offset, size_t *size)
{
	uint64_t block_bytes = unit_bytes(live) << live->order;
	uint64_t block = offset / block_bytes, in_block = offset % block_bytes;

	if (*size > block_bytes - in_block)
		*size = (size_t)(block_bytes - in_block);
	if (live->kind == MF_LIVE_SLAB)
		return (char *)live->objects[block] + in_block;
	return (char *)mf_page_address(live->m->page, live->blocks[block].v) + in_block;
}

ssize_t mf_live_read(struct mf_live *live, void *buf, size_t size, uint64_t offset)
{
	size_t done = 0;
	int error = access_begin(live, offset, &size);

	if (error)
		return error;
	while (done < size) {
		size_t piece = size - done;
		const char *from = bytes_at(live, offset + done, &piece);

		memcpy((char *)buf + done, from, piece);
		done += piece;
	}
	access_end(live);
	return (ssize_t)done;
}

ssize_t mf_live_write(struct mf_live *live, const void *buf, size_t size, uint64_t offset)
{
	size_t asked = size, done = 0;
	int error = access_begin(live, offset, &size);

	if (error)
		return error;
	while (done < size) {
		size_t piece = size - done;
		char *to = bytes_at(live, offset + done, &piece);

		memcpy(to, (const char *)buf + done, piece);
		done += piece;
	}
	access_end(live);
	return asked && !done ? -ENOSPC : (ssize_t)done; /* what fits is kept, as on a full disk */
}

/* --- where it lies --- */

/* data_lock is held.  -ENOMEM. */
static int count_object_pages(const struct mf_live *live, uint64_t pages[64])
{
	size_t nr;
	struct mf_run *runs = mf_live_object_runs(live, &nr);

	if (!runs)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		pages[mf_page_node(live->m->page, runs[i].pfn) & 63] += runs[i].pages;
	free(runs);
	return 0;
}

static int count_pages(struct mf_live *live, uint64_t pages[64])
{
	int error = 0;

	memset(pages, 0, 64 * sizeof(*pages));
	pthread_rwlock_rdlock(&live->data_lock);
	if (!live->nr_blocks)
		error = -ENODEV;
	else if (live->kind == MF_LIVE_SLAB)
		error = count_object_pages(live, pages);
	else
		mf_live_count(live, 0, live->nr_blocks, pages);
	pthread_rwlock_unlock(&live->data_lock);
	return error;
}

uint64_t mf_live_pages(struct mf_live *live)
{
	uint64_t pages[64], sum = 0;

	if (live->kind != MF_LIVE_SLAB)
		return nr_units(live);
	if (count_pages(live, pages))
		return 0;
	for (int node = 0; node < 64; node++)
		sum += pages[node];
	return sum;
}

int mf_live_placement(struct mf_live *live, struct mf_outbuf *out)
{
	uint64_t pages[64];
	int error = count_pages(live, pages);

	if (error)
		return error;
	for (int node = 0; node < 64; node++)
		if (pages[node])
			mf_outbuf_printf(out, "node%d %llu\n", node, (unsigned long long)pages[node]);
	return 0;
}

/* A physically contiguous run, not crossing a zone. */
struct run {
	uint64_t index, pages;
	uint32_t pfn;
	int zone;
};

static void print_run(const struct run *run, struct mf_outbuf *out)
{
	if (!run->pages)
		return;
	mf_outbuf_printf(out, "%llu %lu %llu %d %s\n", (unsigned long long)run->index,
			 (unsigned long)run->pfn, (unsigned long long)run->pages,
			 run->zone / MF_NR_ZONE_TYPES, mf_zone_names[run->zone % MF_NR_ZONE_TYPES]);
}

static void print_runs(const struct mf_live *live, struct mf_outbuf *out)
{
	uint64_t pages = UINT64_C(1) << live->order;
	struct run run = { 0, 0, 0, -1 };

	for (size_t i = 0; i < live->nr_blocks; i++) {
		uint32_t pfn = live->blocks[i].v;
		int zone = mf_page_zone(live->m->page, pfn);

		if (run.pages && zone == run.zone && pfn == run.pfn + run.pages) {
			run.pages += pages;
			continue;
		}
		print_run(&run, out);
		run = (struct run){ .index = i * pages, .pages = pages, .pfn = pfn, .zone = zone };
	}
	print_run(&run, out);
}

/* The index counts the distinct pages by rising pfn. */
static int print_object_runs(const struct mf_live *live, struct mf_outbuf *out)
{
	uint64_t index = 0;
	size_t nr;
	struct mf_run *runs = mf_live_object_runs(live, &nr);

	if (!runs)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		struct run run = { index, runs[i].pages, runs[i].pfn,
				   mf_page_zone(live->m->page, runs[i].pfn) };

		print_run(&run, out);
		index += run.pages;
	}
	free(runs);
	return 0;
}

int mf_live_map(struct mf_live *live, struct mf_outbuf *out)
{
	int error = 0;

	pthread_rwlock_rdlock(&live->data_lock);
	if (!live->nr_blocks)
		error = -ENODEV;
	else if (live->kind == MF_LIVE_SLAB)
		error = print_object_runs(live, out);
	else
		print_runs(live, out);
	pthread_rwlock_unlock(&live->data_lock);
	return error;
}

/* --- check --- */

/*
 * One check: every allocation there is, held still together (cut_mutex), so
 * that no page can wander from one to the next meanwhile.
 */
struct check {
	struct memfs *m;
	struct mf_outbuf *out;
	struct mf_live **lives;
	size_t nr_lives;
	uint64_t *seen; /* a bit a pfn */
	uint64_t pages;
	unsigned bad;
};

static int collect(struct check *c)
{
	struct memfs *m = c->m;

	mf_lock_acquire(&m->live.lock);
	c->lives = calloc(m->live.table.count + 1, sizeof(struct mf_live *));
	for (struct mf_named *at = m->live.table.oldest; at && c->lives; at = at->newer) {
		struct mf_live *live = (struct mf_live *)at;

		if (live->ready)
			c->lives[c->nr_lives++] = live;
	}
	mf_lock_release(&m->live.lock);
	return c->lives ? 0 : -ENOMEM;
}

static void check_block(struct check *c, const struct mf_live *live, size_t i)
{
	uint32_t pfn = live->blocks[i].v;
	uint32_t last = pfn + (1u << live->order) - 1;
	int zone = mf_page_zone(c->m->page, pfn);

	if ((zone < 0 || mf_page_zone(c->m->page, last) != zone) && ++c->bad) {
		mf_outbuf_printf(c->out, "live/%s: block %zu (pfn %lu) is in no zone\n", live->named.name, i,
				 (unsigned long)pfn);
		return;
	}
	if (pfn & (last - pfn) && ++c->bad)
		mf_outbuf_printf(c->out, "live/%s: block %zu (pfn %lu) is not aligned to order %u\n",
				 live->named.name, i, (unsigned long)pfn, live->order);
	for (uint64_t page = pfn; page <= last; page++) {
		if (c->seen[page / 64] >> page % 64 & 1 && ++c->bad)
			mf_outbuf_printf(c->out, "live/%s: pfn %llu belongs to another allocation, too\n",
					 live->named.name, (unsigned long long)page);
		c->seen[page / 64] |= UINT64_C(1) << page % 64;
	}
}

static void check_unit(struct check *c, const struct mf_live *live, size_t i)
{
	if (live->kind != MF_LIVE_SLAB)
		check_block(c, live, i);
	else if (!mf_live_object_is_there(live, i) && ++c->bad)
		mf_outbuf_printf(c->out, "live/%s: object %zu at %p is none of %s\n", live->named.name, i,
				 live->objects[i], live->cache ? mf_cache_name(live->cache) : "kmalloc");
}

static void check_all(struct check *c)
{
	for (size_t i = 0; i < c->nr_lives; i++) {
		struct mf_live *live = c->lives[i];

		if (live->kind == MF_LIVE_VMALLOC && !mf_live_range_is_there(live) && ++c->bad)
			mf_outbuf_printf(c->out, "live/%s: the range at %p is not its %zu pages\n",
					 live->named.name, live->address, live->nr_blocks);
		for (size_t block = 0; block < live->nr_blocks; block++)
			check_unit(c, live, block);
		c->pages += mf_live_account(live, live->nr_blocks);
	}
	c->bad += mf_live_check_shared(c->lives, c->nr_lives, c->out);
}

static void check_sum(struct check *c, bool quiet, uint64_t mark)
{
	uint64_t pages = atomic_load(&c->m->live.nr_pages);

	if (!quiet || atomic_load(&c->m->live.begun) != mark)
		return; /* it was moving */
	if (pages != c->pages && ++c->bad)
		mf_outbuf_printf(c->out, "live: allocations hold %llu pages, counted are %llu\n",
				 (unsigned long long)c->pages, (unsigned long long)pages);
}

unsigned mf_live_check(struct memfs *m, struct mf_outbuf *out)
{
	struct check c = { .m = m, .out = out };
	uint64_t mark;
	bool quiet = mf_live_quiet(m, &mark);

	pthread_mutex_lock(&m->live.cut_mutex);
	c.seen = calloc(m->topo->pfn_limit / 64 + 1, sizeof(*c.seen));
	if (!c.seen || collect(&c)) {
		mf_outbuf_puts(out, "live: no memory to check\n");
		c.bad++;
	} else {
		check_all(&c);
		check_sum(&c, quiet, mark);
	}
	pthread_mutex_unlock(&m->live.cut_mutex);
	free(c.lives);
	free(c.seen);
	return c.bad;
}
