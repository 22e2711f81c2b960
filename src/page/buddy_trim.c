/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Giving host memory back: dirty lines, their age, and isolation while the
 * host punches them out.
 *
 * An isolated line is used in every respect (full, in no queue) and flagged.
 * It stays dirty until it is released clean, so that dirty lines bound the
 * memory the host may hold.
 *
 * Locks: the zone's, held by the caller; mf_buddy_dirty_lines needs none.
 */
#include "page/buddy_tables.h"

#include <string.h>

void mf_buddy_set_stamp(struct mf_buddy *buddy, uint16_t stamp)
{
	buddy->tables->stamp = stamp;
}

/* Stamps wrap; a line is at most 65535 old. */
static bool is_old(const struct mf_line *line, uint16_t now, uint16_t min_age)
{
	return line->loss <= MF_LOSS_FREE && (uint16_t)(now - line->stamp) >= min_age;
}

static void isolate(struct mf_buddy *buddy, uint32_t line)
{
	mf_buddy_detach_line(buddy, line);
	mf_line_set_full(buddy->tables, line);
	buddy->tables->lines[line].flags |= MF_LINE_ISOLATED;
}

unsigned mf_buddy_isolate(struct mf_buddy *buddy, uint16_t now, uint16_t min_age, unsigned budget,
			  uint32_t *cursor, unsigned max, uint32_t *pfns)
{
	struct mf_buddy_tables *tables = buddy->tables;
	uint32_t line = *cursor, word = MF_QUEUE_NONE;
	unsigned nr = 0;

	while (nr < max) {
		line = mf_queue_next(&tables->dirty, line);
		if (line == MF_QUEUE_NONE) {
			*cursor = 0;
			return nr;
		}
		if (line / 64 != word) {
			if (!budget--)
				break;
			word = line / 64;
		}
		if (is_old(&tables->lines[line], now, min_age)) {
			isolate(buddy, line);
			pfns[nr++] = mf_line_pfn(tables, line);
		}
		line++;
	}
	*cursor = line;
	return nr;
}

void mf_buddy_release(struct mf_buddy *buddy, uint32_t pfn, bool clean)
{
	struct mf_buddy_tables *tables = buddy->tables;
	uint32_t number = mf_line_of(tables, pfn);
	struct mf_line *line = &tables->lines[number];

	if (!(line->flags & MF_LINE_ISOLATED))
		return;
	line->flags &= (uint8_t)~MF_LINE_ISOLATED;
	if (clean) {
		line->flags &= (uint8_t)~MF_LINE_DIRTY;
		mf_queue_remove(&tables->dirty, number);
		mf_counter_add(&tables->nr_dirty, -1);
	}
	/* A line the host refused counts as free from now: it is not tried at once again. */
	line->stamp = tables->stamp;
	memset(&tables->rows[number], 0, sizeof(tables->rows[number]));
	mf_buddy_attach_line(buddy, number);
}

uint64_t mf_buddy_dirty_lines(const struct mf_buddy *buddy)
{
	return __atomic_load_n(&buddy->tables->nr_dirty, __ATOMIC_RELAXED);
}
