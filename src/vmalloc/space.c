/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Extents of an address range in one augmented tree: see space.h.
 *
 * Lock: the caller's.  Giving back uses no memory and frees none, so that it
 * may happen anywhere; nodes that vanish are kept, and the surplus goes back to
 * the heap when the next extent is asked for.
 */
#include "vmalloc/space.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define KEPT_SPARES 64u
#define DROPPED_AT_ONCE 16u /* a purge may leave many: no caller pays for all of them */

static struct mf_extent *extent_of(struct mf_rb_node *node)
{
	return (struct mf_extent *)node; /* node is the first member */
}

static uint64_t end_of(const struct mf_extent *extent)
{
	return extent->start + extent->size;
}

static uint64_t max_free_of(const struct mf_rb_node *node)
{
	return node ? ((const struct mf_extent *)node)->max_free : 0;
}

static uint64_t own_free(const struct mf_extent *extent)
{
	return extent->owner ? 0 : extent->size;
}

static uint64_t largest(const struct mf_extent *extent)
{
	uint64_t most = own_free(extent);

	if (max_free_of(extent->node.left) > most)
		most = max_free_of(extent->node.left);
	if (max_free_of(extent->node.right) > most)
		most = max_free_of(extent->node.right);
	return most;
}

static bool update(struct mf_rb_node *node)
{
	struct mf_extent *extent = extent_of(node);
	uint64_t before = extent->max_free;

	extent->max_free = largest(extent);
	return extent->max_free != before;
}

/* --- nodes --- */

static struct mf_extent *new_node(struct mf_space *space)
{
	struct mf_extent *node = space->spare;

	if (node) {
		space->spare = node->owner;
		space->nr_spare--;
		return node;
	}
	return mf_fault_hit(space->fault, MF_FAULT_meta_alloc) ? NULL : malloc(sizeof(*node));
}

static void keep_node(struct mf_space *space, struct mf_extent *node)
{
	node->owner = space->spare;
	space->spare = node;
	space->nr_spare++;
}

/* Until @keep are left, but no more than @at_most. */
static void drop_spares(struct mf_space *space, unsigned keep, unsigned at_most)
{
	for (; space->nr_spare > keep && at_most; at_most--) {
		struct mf_extent *node = space->spare;

		space->spare = node->owner;
		space->nr_spare--;
		free(node);
	}
}

/* Links an extent in its place by address. */
static void link_extent(struct mf_space *space, struct mf_extent *extent)
{
	struct mf_rb_node **link = &space->tree.root, *parent = NULL;

	extent->max_free = own_free(extent);
	while (*link) {
		parent = *link;
		link = extent->start < extent_of(parent)->start ? &parent->left : &parent->right;
	}
	mf_rb_insert(&space->tree, &extent->node, parent, link);
}

static void unlink_extent(struct mf_space *space, struct mf_extent *extent)
{
	mf_rb_erase(&space->tree, &extent->node);
	keep_node(space, extent);
}

/* --- life --- */

int mf_space_init(struct mf_space *space, struct mf_fault *fault, uint64_t start, uint64_t size)
{
	struct mf_extent *all;

	*space = (struct mf_space){
		.tree = { .update = update },
		.fault = fault,
		.start = start,
		.size = size,
	};
	all = new_node(space);
	if (!all) {
		space->size = 0;
		return -ENOMEM;
	}
	*all = (struct mf_extent){ .start = start, .size = size };
	link_extent(space, all);
	space->nr_free = 1;
	space->free_bytes = size;
	return 0;
}

void mf_space_destroy(struct mf_space *space)
{
	struct mf_rb_node *node;

	while ((node = space->tree.root)) {
		mf_rb_erase(&space->tree, node);
		free(extent_of(node));
	}
	drop_spares(space, 0, space->nr_spare);
}

/* --- finding a place --- */

/* Where @size bytes would start in a free extent. */
static uint64_t aligned_start(const struct mf_extent *extent, uint64_t align)
{
	return (extent->start + align - 1) & ~(align - 1);
}

static bool fits(const struct mf_extent *extent, uint64_t size, uint64_t align)
{
	uint64_t start = aligned_start(extent, align);

	return !extent->owner && start >= extent->start && start < end_of(extent) &&
	       end_of(extent) - start >= size;
}

/* The lowest extent of a subtree that may do by its size, NULL if there is none. */
static struct mf_rb_node *lowest_candidate(struct mf_rb_node *node, uint64_t size)
{
	while (node && max_free_of(node) >= size) {
		if (max_free_of(node->left) >= size)
			node = node->left;
		else if (own_free(extent_of(node)) >= size)
			return node;
		else
			node = node->right;
	}
	return NULL;
}

/* The next one by address after a candidate that alignment spoiled. */
static struct mf_rb_node *next_candidate(struct mf_rb_node *node, uint64_t size)
{
	struct mf_rb_node *found = lowest_candidate(node->right, size);

	while (!found && node) {
		struct mf_rb_node *parent = node->parent;
		bool from_left = parent && parent->left == node;

		node = parent;
		if (!from_left)
			continue;
		if (own_free(extent_of(node)) >= size)
			return node;
		found = lowest_candidate(node->right, size);
	}
	return found;
}

static struct mf_extent *find_place(const struct mf_space *space, uint64_t size, uint64_t align)
{
	struct mf_rb_node *node = lowest_candidate(space->tree.root, size);

	while (node && !fits(extent_of(node), size, align))
		node = next_candidate(node, size);
	return node ? extent_of(node) : NULL;
}

/* --- cutting --- */

/* A free extent becomes busy as a whole. */
static void occupy(struct mf_space *space, struct mf_extent *extent, void *owner)
{
	extent->owner = owner;
	space->nr_free--;
	space->nr_busy++;
	space->free_bytes -= extent->size;
	mf_rb_changed(&space->tree, &extent->node);
}

/* The part from @at on becomes a free extent of its own. */
static void split(struct mf_space *space, struct mf_extent *extent, uint64_t at, struct mf_extent *node)
{
	*node = (struct mf_extent){ .start = at, .size = end_of(extent) - at };
	extent->size = at - extent->start;
	mf_rb_changed(&space->tree, &extent->node);
	link_extent(space, node);
	space->nr_free++;
}

int mf_space_alloc(struct mf_space *space, uint64_t size, uint64_t align, void *owner, struct mf_extent **out)
{
	struct mf_extent *place, *middle = NULL, *tail = NULL;
	uint64_t start;

	if (align < MF_SPACE_GRANULE)
		align = align & (align - 1) ? 0 : MF_SPACE_GRANULE;
	if (!size || size % MF_SPACE_GRANULE || !align || align & (align - 1) || !owner)
		return -EINVAL;
	drop_spares(space, KEPT_SPARES, DROPPED_AT_ONCE);
	place = find_place(space, size, align);
	if (!place)
		return -ENOSPC;
	start = aligned_start(place, align);
	if (start > place->start && !(middle = new_node(space)))
		return -ENOMEM;
	if (end_of(place) > start + size && !(tail = new_node(space))) {
		if (middle)
			keep_node(space, middle);
		return -ENOMEM;
	}
	if (middle) {
		split(space, place, start, middle);
		place = middle;
	}
	if (tail)
		split(space, place, start + size, tail);
	occupy(space, place, owner);
	*out = place;
	return 0;
}

/* A free neighbour's size, once it has left the tree; 0 if it is busy or there is none. */
static uint64_t absorb(struct mf_space *space, struct mf_extent *neighbour)
{
	if (!neighbour || neighbour->owner)
		return 0;
	unlink_extent(space, neighbour);
	space->nr_free--;
	return neighbour->size;
}

/* The extent itself changes last, so that every value is exact while neighbours leave the tree. */
void mf_space_free(struct mf_space *space, struct mf_extent *extent)
{
	uint64_t after = absorb(space, extent_of(mf_rb_next(&extent->node)));
	uint64_t before = absorb(space, extent_of(mf_rb_prev(&extent->node)));

	space->nr_busy--;
	space->nr_free++;
	space->free_bytes += extent->size;
	extent->owner = NULL;
	extent->start -= before;
	extent->size += before + after;
	mf_rb_changed(&space->tree, &extent->node);
}

/* --- looking --- */

struct mf_extent *mf_space_find(const struct mf_space *space, uint64_t address)
{
	struct mf_rb_node *node = space->tree.root;

	while (node) {
		struct mf_extent *extent = extent_of(node);

		if (address < extent->start)
			node = node->left;
		else if (address - extent->start >= extent->size)
			node = node->right;
		else
			return extent;
	}
	return NULL;
}

struct mf_extent *mf_space_first(const struct mf_space *space)
{
	return extent_of(mf_rb_first(&space->tree));
}

struct mf_extent *mf_space_next(const struct mf_extent *extent)
{
	return extent_of(mf_rb_next(&extent->node));
}

uint64_t mf_space_largest_free(const struct mf_space *space)
{
	return max_free_of(space->tree.root);
}

/* --- check --- */

static unsigned complain(struct mf_outbuf *out, const struct mf_extent *extent, const char *what)
{
	mf_outbuf_printf(out, "space: extent at %#" PRIx64 ", %" PRIu64 " bytes: %s\n", extent->start,
			 extent->size, what);
	return 1;
}

static unsigned check_extent(const struct mf_extent *extent, uint64_t wanted, bool after_free,
			     struct mf_outbuf *out)
{
	unsigned bad = 0;

	if (extent->start != wanted)
		bad += complain(out, extent, "is not where the one before ends");
	if (!extent->size || extent->size % MF_SPACE_GRANULE)
		bad += complain(out, extent, "is no multiple of a page");
	if (after_free && !extent->owner)
		bad += complain(out, extent, "is free like the one before");
	if (extent->max_free != largest(extent))
		bad += complain(out, extent, "has the largest free extent below it wrong");
	return bad;
}

unsigned mf_space_check(const struct mf_space *space, struct mf_outbuf *out)
{
	uint64_t at = space->start, busy = 0, free = 0, bytes = 0;
	bool after_free = false;
	unsigned bad = 0;

	if (!mf_rb_check(&space->tree)) {
		mf_outbuf_puts(out, "space: the tree is out of balance\n");
		return 1;
	}
	for (const struct mf_extent *extent = mf_space_first(space); extent; extent = mf_space_next(extent)) {
		bad += check_extent(extent, at, after_free, out);
		at = end_of(extent);
		after_free = !extent->owner;
		busy += extent->owner != NULL;
		free += after_free;
		bytes += own_free(extent);
	}
	if (at != space->start + space->size || busy != space->nr_busy || free != space->nr_free ||
	    bytes != space->free_bytes) {
		mf_outbuf_printf(out,
				 "space: counted %" PRIu64 " busy, %" PRIu64 " free of %" PRIu64
				 " bytes; kept %" PRIu64 ", %" PRIu64 ", %" PRIu64 "\n",
				 busy, free, bytes, space->nr_busy, space->nr_free, space->free_bytes);
		bad++;
	}
	return bad;
}

static unsigned depth(const struct mf_rb_node *node)
{
	unsigned left, right;

	if (!node)
		return 0;
	left = depth(node->left);
	right = depth(node->right);
	return 1 + (left > right ? left : right);
}

unsigned mf_space_depth(const struct mf_space *space)
{
	return depth(space->tree.root);
}
