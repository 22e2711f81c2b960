/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tune/: one value a file.  Ranges and choices stand in the rows; here is only
 * where each value lives.
 *
 * Lock: MF_LOCK_CONFIG around every change, so that two writers of different
 * knobs do not undo each other, and around every look, so that nobody copies a
 * set of knobs that is half written.  The knobs of slab are single words, and
 * their changes empty CPUs, with no ranked lock held: mf_ctl.slab_knobs instead.
 */
#include "ctl/ctl_internal.h"

#include <errno.h>

static void read_knobs(struct memfs *m, struct mf_page_knobs *knobs)
{
	mf_lock_acquire(&m->config_lock);
	mf_page_get_knobs(m->page, knobs);
	mf_lock_release(&m->config_lock);
}

/* A knob of the page engine, by its field. */
#define PAGE_KNOB(name, field) \
	uint64_t mf_ctl_get_##name(struct memfs *m, const struct mf_ctl_node *node) \
	{ \
		struct mf_page_knobs knobs; \
\
		(void)node; \
		read_knobs(m, &knobs); \
		return (uint64_t)knobs.field; \
	} \
\
	static void put_##name(struct mf_page_knobs *knobs, uint64_t value) \
	{ \
		knobs->field = (__typeof__(knobs->field))value; \
	}

#define SIMPLE_PAGE_KNOB(name, field) \
	PAGE_KNOB(name, field) \
\
	int mf_ctl_set_##name(struct mf_ctl_command *command, uint64_t value) \
	{ \
		return change_knobs(command->m, put_##name, value); \
	}

typedef void put_knob_fn(struct mf_page_knobs *knobs, uint64_t value);

static int change_knobs(struct memfs *m, put_knob_fn *put, uint64_t value)
{
	struct mf_page_knobs knobs;

	mf_lock_acquire(&m->config_lock);
	mf_page_get_knobs(m->page, &knobs);
	put(&knobs, value);
	mf_page_set_knobs(m->page, &knobs);
	mf_lock_release(&m->config_lock);
	return 0;
}

SIMPLE_PAGE_KNOB(min_free_kbytes, marks.min_free_kbytes)
SIMPLE_PAGE_KNOB(watermark_scale_factor, marks.watermark_scale_factor)
SIMPLE_PAGE_KNOB(watermark_boost_factor, watermark_boost_factor)
SIMPLE_PAGE_KNOB(numa_stat, numa_stat)
SIMPLE_PAGE_KNOB(bulk_algorithm, bulk_split)
SIMPLE_PAGE_KNOB(pcp_irq_bypass, pcp_irq_bypass)
SIMPLE_PAGE_KNOB(numa, numa)
SIMPLE_PAGE_KNOB(init_on_alloc, init_on_alloc)
SIMPLE_PAGE_KNOB(trim_seconds, trim_seconds)
PAGE_KNOB(percpu_pagelist_high_fraction, marks.percpu_pagelist_high_fraction)
PAGE_KNOB(pcp_mode, pcp_mode)

int mf_ctl_set_percpu_pagelist_high_fraction(struct mf_ctl_command *command, uint64_t value)
{
	if (value > 0 && value < 8)
		return mf_ctl_fail(command, -EINVAL, "%u is neither 0 nor at least 8", (unsigned)value);
	return change_knobs(command->m, put_percpu_pagelist_high_fraction, value);
}

int mf_ctl_set_pcp_mode(struct mf_ctl_command *command, uint64_t value)
{
	if (value == MF_PCP_RSEQ && !mf_page_rseq_available())
		return mf_ctl_fail(command, -ENODEV, "this host has no restartable sequences");
	return change_knobs(command->m, put_pcp_mode, value);
}

/* --- knobs of vmalloc --- */

#define VMALLOC_KNOB(name, field) \
	uint64_t mf_ctl_get_##name(struct memfs *m, const struct mf_ctl_node *node) \
	{ \
		struct mf_vmalloc_knobs knobs; \
\
		(void)node; \
		mf_lock_acquire(&m->config_lock); \
		mf_vmalloc_get_knobs(m->vmalloc, &knobs); \
		mf_lock_release(&m->config_lock); \
		return (uint64_t)knobs.field; \
	} \
\
	int mf_ctl_set_##name(struct mf_ctl_command *command, uint64_t value) \
	{ \
		struct mf_vmalloc_knobs knobs; \
\
		mf_lock_acquire(&command->m->config_lock); \
		mf_vmalloc_get_knobs(command->m->vmalloc, &knobs); \
		knobs.field = (__typeof__(knobs.field))value; \
		mf_vmalloc_set_knobs(command->m->vmalloc, &knobs); \
		mf_lock_release(&command->m->config_lock); \
		return 0; \
	}

VMALLOC_KNOB(vmalloc_large_order, large_order)
VMALLOC_KNOB(vmalloc_linear, linear)
VMALLOC_KNOB(vmalloc_small_pages, small_pages)
VMALLOC_KNOB(vmalloc_lazy_max, lazy_max)
VMALLOC_KNOB(vmalloc_max_mappings, max_mappings)

/* --- knobs of slab --- */

#define SLAB_KNOB(name, field) \
	uint64_t mf_ctl_get_##name(struct memfs *m, const struct mf_ctl_node *node) \
	{ \
		struct mf_slab_knobs knobs; \
\
		(void)node; \
		mf_slabs_get_knobs(m->slabs, &knobs); \
		return (uint64_t)knobs.field; \
	} \
\
	int mf_ctl_set_##name(struct mf_ctl_command *command, uint64_t value) \
	{ \
		struct memfs *m = command->m; \
		struct mf_slab_knobs knobs; \
\
		pthread_mutex_lock(&m->ctl->slab_knobs); \
		mf_slabs_get_knobs(m->slabs, &knobs); \
		knobs.field = (__typeof__(knobs.field))value; \
		mf_slabs_set_knobs(m->slabs, &knobs); \
		pthread_mutex_unlock(&m->ctl->slab_knobs); \
		return 0; \
	}

SLAB_KNOB(slab_skip, skip)
SLAB_KNOB(slab_sheaves, sheaves)
SLAB_KNOB(slab_stock_bytes, stock_bytes)
SLAB_KNOB(max_caches, max_caches)

/* --- lowmem_reserve_ratio: as many numbers as zone types --- */

int mf_ctl_show_lowmem_reserve_ratio(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	struct mf_page_knobs knobs;

	(void)node;
	read_knobs(m, &knobs);
	for (unsigned zone = 0; zone < MF_NR_ZONE_TYPES; zone++)
		mf_outbuf_printf(out, "%s%u", zone ? "\t" : "", knobs.marks.lowmem_reserve_ratio[zone]);
	mf_outbuf_puts(out, "\n");
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The next number of a list separated by blanks or tabs. */
static struct mf_text next_number(struct mf_text *rest)
{
	struct mf_text number = { rest->at, 0 };

	while (number.length < rest->length && !is_blank(rest->at[number.length]))
		number.length++;
	rest->at += number.length;
	rest->length -= number.length;
	while (rest->length && is_blank(*rest->at)) {
		rest->at++;
		rest->length--;
	}
	return number;
}

int mf_ctl_store_lowmem_reserve_ratio(struct mf_ctl_command *command)
{
	struct mf_text rest = command->text;
	uint64_t ratio[MF_NR_ZONE_TYPES];
	struct mf_page_knobs knobs;

	for (unsigned zone = 0; zone < MF_NR_ZONE_TYPES; zone++)
		if (mf_parse_u64(next_number(&rest), INT32_MAX, &ratio[zone]))
			return mf_ctl_fail(command, -EINVAL, "number %u of %d is missing or not in 0..%d",
					   zone + 1, MF_NR_ZONE_TYPES, INT32_MAX);
	if (rest.length || is_blank(command->text.at[command->text.length - 1]))
		return mf_ctl_fail(command, -EINVAL, "more than %d numbers, or blanks at the end",
				   MF_NR_ZONE_TYPES);
	mf_lock_acquire(&command->m->config_lock);
	mf_page_get_knobs(command->m->page, &knobs);
	for (unsigned zone = 0; zone < MF_NR_ZONE_TYPES; zone++)
		knobs.marks.lowmem_reserve_ratio[zone] = (unsigned)ratio[zone];
	mf_page_set_knobs(command->m->page, &knobs);
	mf_lock_release(&command->m->config_lock);
	return 0;
}

/* --- knobs of the instance --- */

uint64_t mf_ctl_get_tick_ms(struct memfs *m, const struct mf_ctl_node *node)
{
	(void)node;
	return mf_engine_tick_ms(m);
}

int mf_ctl_set_tick_ms(struct mf_ctl_command *command, uint64_t value)
{
	mf_engine_set_tick_ms(command->m, (unsigned)value);
	return 0;
}

#define LIMIT(name, field) \
	uint64_t mf_ctl_get_##name(struct memfs *m, const struct mf_ctl_node *node) \
	{ \
		uint64_t value; \
\
		(void)node; \
		mf_lock_acquire(&m->config_lock); \
		value = m->limits.field; \
		mf_lock_release(&m->config_lock); \
		return value; \
	} \
\
	int mf_ctl_set_##name(struct mf_ctl_command *command, uint64_t value) \
	{ \
		mf_lock_acquire(&command->m->config_lock); \
		command->m->limits.field = value; \
		mf_lock_release(&command->m->config_lock); \
		return 0; \
	}

LIMIT(max_live_allocations, max_live)
LIMIT(max_tasks, max_tasks)
