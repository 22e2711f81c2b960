/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What pattern.c lends to debug.c and traces.c: the checks of one object, and
 * reports that are written under a lock and sent when none is held.
 */
#ifndef MF_SLAB_DEBUG_H
#define MF_SLAB_DEBUG_H

#include "slab/slab_internal.h"

/* Lines, each about one problem; on the stack, for the heap may have been interrupted. */
struct mf_slab_report {
	size_t length; /* 0: nothing to report */
	char text[1000];
};

/* A slab whose free objects are left alone, for one of them cannot be trusted; they count as in use. */
static inline bool mf_debug_is_abandoned(const struct mf_slab *slab)
{
	return slab->remote_frees != 0;
}

/* Starts a line and marks the cache; more of it by mf_debug_say(). */
void mf_debug_begin_report(struct mf_slab_report *report, struct mf_cache *cache, const void *object,
			   const char *what);
void mf_debug_say(struct mf_slab_report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Who had the object last, if that is recorded. */
void mf_debug_say_owners(struct mf_slab_report *report, const struct mf_cache *cache, const void *object);
/* No lock held: a call a line; the report is empty afterwards. */
void mf_debug_send(struct mf_slabs *slabs, struct mf_slab_report *report);

/* The slab's node is locked, or nobody else sees the slab.  False: reported. */
bool mf_debug_check_object(struct mf_cache *cache, uint32_t pfn, const void *object, bool in_use,
			   struct mf_slab_report *report);
bool mf_debug_check_padding(struct mf_cache *cache, uint32_t pfn, struct mf_slab_report *report);
/* An object of that slab, not inside one. */
bool mf_debug_is_object(const struct mf_cache *cache, uint32_t pfn, const void *object);
char *mf_debug_slab_base(const struct mf_cache *cache, uint32_t pfn);
/* The first page of the slab a tagged address lies in. */
uint32_t mf_debug_slab_of(const struct mf_slabs *slabs, const void *address);
/* Red zones and content of an object that changes hands. */
void mf_debug_fill(const struct mf_cache *cache, char *object, bool in_use);

static inline bool mf_debug_pointer_is_behind(const struct mf_slab_geometry *geometry)
{
	return geometry->offset >= geometry->object_size;
}

#endif
