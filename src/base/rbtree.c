/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Red-black tree with augmentation: see rbtree.h.
 *
 * Augmented values are exact before and after every step.  A rotation keeps the
 * set of nodes below its place, so only the two nodes it turns are recomputed;
 * a node that comes or goes is told to those above it, as far up as a value
 * changes.
 */
#include "base/rbtree.h"

static bool is_red(const struct mf_rb_node *node)
{
	return node && node->red;
}

static void update(struct mf_rb_tree *tree, struct mf_rb_node *node)
{
	if (tree->update)
		tree->update(node);
}

void mf_rb_changed(struct mf_rb_tree *tree, struct mf_rb_node *node)
{
	while (tree->update && node && tree->update(node))
		node = node->parent;
}

/* --- links --- */

/* @new takes the place of @old below old's parent. */
static void replace_child(struct mf_rb_tree *tree, struct mf_rb_node *old, struct mf_rb_node *new)
{
	struct mf_rb_node *parent = old->parent;

	if (!parent)
		tree->root = new;
	else if (parent->left == old)
		parent->left = new;
	else
		parent->right = new;
	if (new)
		new->parent = parent;
}

/* The right child comes up, the node becomes its left one. */
static void rotate_left(struct mf_rb_tree *tree, struct mf_rb_node *node)
{
	struct mf_rb_node *up = node->right;

	node->right = up->left;
	if (node->right)
		node->right->parent = node;
	replace_child(tree, node, up);
	up->left = node;
	node->parent = up;
	update(tree, node);
	update(tree, up);
}

static void rotate_right(struct mf_rb_tree *tree, struct mf_rb_node *node)
{
	struct mf_rb_node *up = node->left;

	node->left = up->right;
	if (node->left)
		node->left->parent = node;
	replace_child(tree, node, up);
	up->right = node;
	node->parent = up;
	update(tree, node);
	update(tree, up);
}

/* --- inserting --- */

/* The parent, a left child, is red, and so is the node; the other branch is black. */
static void fix_left(struct mf_rb_tree *tree, struct mf_rb_node *node)
{
	struct mf_rb_node *parent = node->parent, *grand = parent->parent;

	if (node == parent->right) {
		rotate_left(tree, parent);
		parent = node;
	}
	parent->red = false;
	grand->red = true;
	rotate_right(tree, grand);
}

static void fix_right(struct mf_rb_tree *tree, struct mf_rb_node *node)
{
	struct mf_rb_node *parent = node->parent, *grand = parent->parent;

	if (node == parent->left) {
		rotate_right(tree, parent);
		parent = node;
	}
	parent->red = false;
	grand->red = true;
	rotate_left(tree, grand);
}

static void fix_insert(struct mf_rb_tree *tree, struct mf_rb_node *node)
{
	while (is_red(node->parent)) {
		struct mf_rb_node *parent = node->parent, *grand = parent->parent;
		bool left = parent == grand->left;
		struct mf_rb_node *uncle = left ? grand->right : grand->left;

		if (!is_red(uncle)) {
			if (left)
				fix_left(tree, node);
			else
				fix_right(tree, node);
			break;
		}
		parent->red = false;
		uncle->red = false;
		grand->red = true;
		node = grand;
	}
	tree->root->red = false;
}

void mf_rb_insert(struct mf_rb_tree *tree, struct mf_rb_node *node, struct mf_rb_node *parent,
		  struct mf_rb_node **link)
{
	node->parent = parent;
	node->left = node->right = NULL;
	node->red = true;
	*link = node;
	update(tree, node);
	mf_rb_changed(tree, parent);
	fix_insert(tree, node);
}

/* --- erasing --- */

/* The left branch of @parent lacks one black node.  True: done; else the lack is one level up. */
static bool fix_short_left(struct mf_rb_tree *tree, struct mf_rb_node *parent)
{
	struct mf_rb_node *sibling = parent->right;

	if (is_red(sibling)) {
		sibling->red = false;
		parent->red = true;
		rotate_left(tree, parent);
		sibling = parent->right;
	}
	if (!is_red(sibling->left) && !is_red(sibling->right)) {
		sibling->red = true;
		return false;
	}
	if (!is_red(sibling->right)) {
		sibling->left->red = false;
		sibling->red = true;
		rotate_right(tree, sibling);
		sibling = parent->right;
	}
	sibling->red = parent->red;
	parent->red = false;
	sibling->right->red = false;
	rotate_left(tree, parent);
	return true;
}

static bool fix_short_right(struct mf_rb_tree *tree, struct mf_rb_node *parent)
{
	struct mf_rb_node *sibling = parent->left;

	if (is_red(sibling)) {
		sibling->red = false;
		parent->red = true;
		rotate_right(tree, parent);
		sibling = parent->left;
	}
	if (!is_red(sibling->left) && !is_red(sibling->right)) {
		sibling->red = true;
		return false;
	}
	if (!is_red(sibling->left)) {
		sibling->right->red = false;
		sibling->red = true;
		rotate_left(tree, sibling);
		sibling = parent->left;
	}
	sibling->red = parent->red;
	parent->red = false;
	sibling->left->red = false;
	rotate_right(tree, parent);
	return true;
}

/* @node (NULL: a leaf) below @parent lacks one black node. */
static void fix_erase(struct mf_rb_tree *tree, struct mf_rb_node *node, struct mf_rb_node *parent)
{
	while (node != tree->root && !is_red(node)) {
		if (node == parent->left ? fix_short_left(tree, parent) : fix_short_right(tree, parent))
			return;
		node = parent;
		parent = node->parent;
	}
	if (node)
		node->red = false;
}

/* A node with at most one child is cut out; its child takes its place. */
static void cut_out(struct mf_rb_tree *tree, struct mf_rb_node *node)
{
	struct mf_rb_node *child = node->left ? node->left : node->right, *parent = node->parent;

	replace_child(tree, node, child);
	mf_rb_changed(tree, parent);
	if (!node->red)
		fix_erase(tree, child, parent);
}

/* @by leaves its place and takes that of @node, links, colour and all. */
static void stand_in(struct mf_rb_tree *tree, struct mf_rb_node *node, struct mf_rb_node *by)
{
	by->left = node->left;
	by->right = node->right;
	by->red = node->red;
	replace_child(tree, node, by);
	if (by->left)
		by->left->parent = by;
	if (by->right)
		by->right->parent = by;
	update(tree, by); /* its value was that of its old place: a change of it says nothing */
	mf_rb_changed(tree, by->parent);
}

void mf_rb_erase(struct mf_rb_tree *tree, struct mf_rb_node *node)
{
	struct mf_rb_node *next;

	if (!node->left || !node->right) {
		cut_out(tree, node);
		return;
	}
	next = mf_rb_next(node); /* in the right branch: it has no left child */
	cut_out(tree, next);
	stand_in(tree, node, next);
}

/* --- walking --- */

struct mf_rb_node *mf_rb_first(const struct mf_rb_tree *tree)
{
	struct mf_rb_node *node = tree->root;

	while (node && node->left)
		node = node->left;
	return node;
}

struct mf_rb_node *mf_rb_last(const struct mf_rb_tree *tree)
{
	struct mf_rb_node *node = tree->root;

	while (node && node->right)
		node = node->right;
	return node;
}

struct mf_rb_node *mf_rb_next(const struct mf_rb_node *node)
{
	struct mf_rb_node *at = node->right;

	if (at) {
		while (at->left)
			at = at->left;
		return at;
	}
	for (at = node->parent; at && node == at->right; at = at->parent)
		node = at;
	return at;
}

struct mf_rb_node *mf_rb_prev(const struct mf_rb_node *node)
{
	struct mf_rb_node *at = node->left;

	if (at) {
		while (at->right)
			at = at->right;
		return at;
	}
	for (at = node->parent; at && node == at->left; at = at->parent)
		node = at;
	return at;
}

/* --- check --- */

/* Depth is logarithmic, so recursion is shallow. */
static unsigned check(const struct mf_rb_node *node, const struct mf_rb_node *parent)
{
	unsigned left, right;

	if (!node)
		return 1;
	if (node->parent != parent || (node->red && (is_red(node->left) || is_red(node->right))))
		return 0;
	left = check(node->left, node);
	right = check(node->right, node);
	return left && left == right ? left + !node->red : 0;
}

unsigned mf_rb_check(const struct mf_rb_tree *tree)
{
	return is_red(tree->root) ? 0 : check(tree->root, NULL);
}
