/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An intrusive red-black tree whose nodes may carry something computed from
 * their subtree (augmentation).
 *
 * Invariants: a red node has no red child; every way from the root to a leaf
 * passes the same number of black nodes; a node's augmented value is what
 * update() computes from the node and its children.
 *
 * Whoever inserts finds the place himself (one loop, his own order), so there
 * is no comparison function.  Threads: the owner's lock.
 */
#ifndef MF_BASE_RBTREE_H
#define MF_BASE_RBTREE_H

#include <stdbool.h>
#include <stddef.h>

struct mf_rb_node {
	struct mf_rb_node *parent, *left, *right;
	bool red;
};

/* Recomputes the node's value from itself and its children; true if it changed. */
typedef bool mf_rb_update_fn(struct mf_rb_node *node);

struct mf_rb_tree {
	struct mf_rb_node *root;
	mf_rb_update_fn *update; /* NULL: nothing is augmented */
};

/* Links a node at *link below parent (NULL: the empty tree's root), rebalances, updates upwards. */
void mf_rb_insert(struct mf_rb_tree *tree, struct mf_rb_node *node, struct mf_rb_node *parent,
		  struct mf_rb_node **link);
void mf_rb_erase(struct mf_rb_tree *tree, struct mf_rb_node *node);
/* The node's own contribution changed: it and those above it, as far up as anything changes. */
void mf_rb_changed(struct mf_rb_tree *tree, struct mf_rb_node *node);

struct mf_rb_node *mf_rb_first(const struct mf_rb_tree *tree);
struct mf_rb_node *mf_rb_last(const struct mf_rb_tree *tree);
struct mf_rb_node *mf_rb_next(const struct mf_rb_node *node);
struct mf_rb_node *mf_rb_prev(const struct mf_rb_node *node);

/* Black height if the colours and parents are right, 0 if not (an empty tree has 1). */
unsigned mf_rb_check(const struct mf_rb_tree *tree);

#endif
