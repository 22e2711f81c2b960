/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The red-black tree: colours, order and depth through random changes, and the
 * values of subtrees against a recount from the leaves, for one value that
 * every change alters and one that most changes leave alone.
 */
#include "unit.h"

#include "base/rbtree.h"

#include <stdint.h>

#define NR_ITEMS 100u
#define NR_STEPS 40000u
#define NR_LARGE 100000u

struct item {
	struct mf_rb_node node; /* first */
	unsigned key, weight;
	bool linked;
	uint64_t value; /* of the subtree */
};

static struct item items[NR_ITEMS];
static uint64_t state;
static unsigned nr_updates; /* calls since a test set it to 0 */

static unsigned below(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)((state >> 32) * n >> 32);
}

static struct item *item_of(struct mf_rb_node *node)
{
	return (struct item *)node;
}

static uint64_t value_of(const struct mf_rb_node *node)
{
	return node ? ((const struct item *)node)->value : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool set_value(struct item *item, uint64_t value)
{
	bool changed = item->value != value;

	nr_updates++;
	item->value = value;
	return changed;
}

static bool update_sum(struct mf_rb_node *node)
{
	return set_value(item_of(node), item_of(node)->weight + value_of(node->left) + value_of(node->right));
}

static bool update_max(struct mf_rb_node *node)
{
	uint64_t below_it = larger(value_of(node->left), value_of(node->right));

	return set_value(item_of(node), larger(item_of(node)->weight, below_it));
}

static void add(struct mf_rb_tree *tree, struct item *item)
{
	struct mf_rb_node **link = &tree->root, *parent = NULL;

	while (*link) {
		parent = *link;
		link = item->key < item_of(parent)->key ? &parent->left : &parent->right;
	}
	item->value = 12345; /* what a node held before it was linked must not matter */
	mf_rb_insert(tree, &item->node, parent, link);
	item->linked = true;
}

static void drop(struct mf_rb_tree *tree, struct item *item)
{
	mf_rb_erase(tree, &item->node);
	item->linked = false;
}

/* --- recounting --- */

/* What the value of a subtree should be; counts the values that are not. */
static uint64_t recount(struct mf_rb_node *node, mf_rb_update_fn *kind, unsigned *wrong)
{
	uint64_t left, right, value;

	if (!node)
		return 0;
	left = recount(node->left, kind, wrong);
	right = recount(node->right, kind, wrong);
	value = kind == update_sum ? item_of(node)->weight + left + right
				   : larger(item_of(node)->weight, larger(left, right));
	*wrong += value != item_of(node)->value;
	return value;
}

static unsigned depth_of(const struct mf_rb_node *node)
{
	unsigned left, right;

	if (!node)
		return 0;
	left = depth_of(node->left);
	right = depth_of(node->right);
	return 1 + (left > right ? left : right);
}

/* Both ways through the tree meet the linked items, each once, in the order of their keys. */
static bool walks_agree(const struct mf_rb_tree *tree)
{
	struct mf_rb_node *up = mf_rb_first(tree), *down = mf_rb_last(tree);

	for (unsigned i = 0; i < NR_ITEMS; i++) {
		if (items[i].linked) {
			if (up != &items[i].node)
				return false;
			up = mf_rb_next(up);
		}
		if (items[NR_ITEMS - 1 - i].linked) {
			if (down != &items[NR_ITEMS - 1 - i].node)
				return false;
			down = mf_rb_prev(down);
		}
	}
	return !up && !down;
}

static bool sound(const struct mf_rb_tree *tree)
{
	unsigned wrong = 0;

	if (!mf_rb_check(tree))
		return false;
	if (tree->update)
		recount(tree->root, tree->update, &wrong);
	return !wrong;
}

static void clear_items(void)
{
	memset(items, 0, sizeof(items));
	for (unsigned i = 0; i < NR_ITEMS; i++)
		items[i].key = i;
}

/* --- tests --- */

static void test_empty(void)
{
	struct mf_rb_tree tree = { .update = update_sum };

	clear_items();
	CU_ASSERT_EQUAL(mf_rb_check(&tree), 1);
	CU_ASSERT_PTR_NULL(mf_rb_first(&tree));
	CU_ASSERT_PTR_NULL(mf_rb_last(&tree));
	items[0].weight = 7;
	add(&tree, &items[0]);
	CU_ASSERT_EQUAL(mf_rb_check(&tree), 2);
	CU_ASSERT_EQUAL(value_of(tree.root), 7);
	CU_ASSERT_PTR_EQUAL(mf_rb_first(&tree), &items[0].node);
	CU_ASSERT_PTR_EQUAL(mf_rb_last(&tree), &items[0].node);
	CU_ASSERT_PTR_NULL(mf_rb_next(&items[0].node));
	CU_ASSERT_PTR_NULL(mf_rb_prev(&items[0].node));
	drop(&tree, &items[0]);
	CU_ASSERT_PTR_NULL(tree.root);
	CU_ASSERT_EQUAL(mf_rb_check(&tree), 1);
}

/* 0 1 2 in any order are one black node above two red ones; a fourth makes those black. */
static void test_three_and_four(void)
{
	static const unsigned orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					       { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

	for (unsigned i = 0; i < 6; i++) {
		struct mf_rb_tree tree = { .update = update_sum };

		clear_items();
		for (unsigned j = 0; j < 3; j++) {
			items[orders[i][j]].weight = 1u << orders[i][j];
			add(&tree, &items[orders[i][j]]);
		}
		CU_ASSERT_PTR_EQUAL(tree.root, &items[1].node);
		CU_ASSERT(!items[1].node.red && items[0].node.red && items[2].node.red);
		CU_ASSERT_EQUAL(items[1].value, 7);
		CU_ASSERT_EQUAL(items[0].value, 1);
		CU_ASSERT_EQUAL(items[2].value, 4);
		add(&tree, &items[3]);
		CU_ASSERT(!items[0].node.red && !items[2].node.red && items[3].node.red);
		CU_ASSERT_EQUAL(mf_rb_check(&tree), 3);
	}
}

/* The check sees each kind of damage. */
static void test_check_refuses(void)
{
	struct mf_rb_tree tree = { NULL, NULL };

	clear_items();
	for (unsigned i = 0; i < 4; i++)
		add(&tree, &items[i]);
	CU_ASSERT_EQUAL(mf_rb_check(&tree), 3);
	items[2].node.red = true; /* above the red 3 */
	CU_ASSERT_EQUAL(mf_rb_check(&tree), 0);
	items[2].node.red = false;
	items[3].node.red = false; /* one black node more on that way */
	CU_ASSERT_EQUAL(mf_rb_check(&tree), 0);
	items[3].node.red = true;
	tree.root->red = true;
	CU_ASSERT_EQUAL(mf_rb_check(&tree), 0);
	tree.root->red = false;
	items[3].node.parent = tree.root;
	CU_ASSERT_EQUAL(mf_rb_check(&tree), 0);
	items[3].node.parent = &items[2].node;
	CU_ASSERT_EQUAL(mf_rb_check(&tree), 3);
}

/* Random insertions, erasures and changes of weight; everything is recounted each time. */
static void run_random(mf_rb_update_fn *kind, unsigned range)
{
	struct mf_rb_tree tree = { .update = kind };
	unsigned bad = 0;

	clear_items();
	for (unsigned step = 0; step < NR_STEPS; step++) {
		struct item *item = &items[below(range)];
		bool filling = step / 2000 % 2 == 0;

		if (item->linked && !below(8)) {
			item->weight = below(50);
			mf_rb_changed(&tree, &item->node);
		} else if (!item->linked && (filling || !below(4))) {
			item->weight = below(50);
			add(&tree, item);
		} else if (item->linked && (!filling || !below(4))) {
			drop(&tree, item);
		}
		bad += !sound(&tree);
		if (step % 64 == 0)
			bad += !walks_agree(&tree);
	}
	CU_ASSERT_EQUAL(bad, 0);
	for (unsigned i = 0; i < NR_ITEMS; i++) {
		if (!items[i].linked)
			continue;
		drop(&tree, &items[i]);
		bad += !sound(&tree);
	}
	CU_ASSERT_EQUAL(bad, 0);
	CU_ASSERT_PTR_NULL(tree.root);
}

static void test_random_sum(void)
{
	state = 1;
	run_random(update_sum, NR_ITEMS);
	run_random(update_sum, 9);
}

static void test_random_max(void)
{
	state = 2;
	run_random(update_max, NR_ITEMS);
	run_random(update_max, 9);
}

static void test_random_plain(void)
{
	state = 3;
	nr_updates = 0;
	run_random(NULL, NR_ITEMS);
	CU_ASSERT_EQUAL(nr_updates, 0);
}

/* Erasing any one node of any tree that grew in order leaves a sound one. */
static void test_every_erasure(void)
{
	unsigned bad = 0;

	for (unsigned size = 1; size <= 40; size++)
		for (unsigned victim = 0; victim < size; victim++) {
			struct mf_rb_tree tree = { .update = update_sum };

			clear_items();
			for (unsigned i = 0; i < size; i++) {
				items[i].weight = i + 1;
				add(&tree, &items[i]);
			}
			drop(&tree, &items[victim]);
			bad += !sound(&tree) || !walks_agree(&tree);
			bad += value_of(tree.root) != size * (size + 1) / 2 - (victim + 1);
		}
	CU_ASSERT_EQUAL(bad, 0);
}

/*
 * 0..6 grown in order: 1 is the root, 3 below it on the right, 5 below that,
 * 6 the leaf.  A change goes up as far as it alters a maximum, and no further.
 */
static void test_changes_stop(void)
{
	struct mf_rb_tree tree = { .update = update_max };

	clear_items();
	for (unsigned i = 0; i < 7; i++) {
		items[i].weight = 10;
		add(&tree, &items[i]);
	}
	CU_ASSERT_PTR_EQUAL(tree.root, &items[1].node);
	CU_ASSERT_PTR_EQUAL(items[6].node.parent, &items[5].node);
	CU_ASSERT_PTR_EQUAL(items[5].node.parent, &items[3].node);
	nr_updates = 0;
	mf_rb_changed(&tree, &items[6].node); /* nothing */
	CU_ASSERT_EQUAL(nr_updates, 1);
	nr_updates = 0;
	items[6].weight = 4; /* 5 still has 10 */
	mf_rb_changed(&tree, &items[6].node);
	CU_ASSERT_EQUAL(nr_updates, 2);
	nr_updates = 0;
	items[6].weight = 30; /* 6, 5, 3, 1: to the root */
	mf_rb_changed(&tree, &items[6].node);
	CU_ASSERT_EQUAL(nr_updates, 4);
	CU_ASSERT_EQUAL(value_of(tree.root), 30);
	nr_updates = 0;
	items[0].weight = 30; /* 0 and the root, whose maximum that is already */
	mf_rb_changed(&tree, &items[0].node);
	CU_ASSERT_EQUAL(nr_updates, 2);
	CU_ASSERT(sound(&tree));
}

/* Erasing what no maximum depends on tells the parent only. */
static void test_erasure_stops(void)
{
	struct mf_rb_tree tree = { .update = update_max };

	clear_items();
	for (unsigned i = 0; i < 7; i++) {
		items[i].weight = 10;
		add(&tree, &items[i]);
	}
	nr_updates = 0;
	drop(&tree, &items[6]); /* a red leaf: no rotation */
	CU_ASSERT_EQUAL(nr_updates, 1);
	nr_updates = 0;
	items[6].weight = 3;
	add(&tree, &items[6]);
	CU_ASSERT_EQUAL(nr_updates, 2);
	CU_ASSERT(sound(&tree));
}

/* In order, backwards and shuffled: never deeper than 2 * log2(n + 1). */
static void test_depth(void)
{
	struct item *many = calloc(NR_LARGE, sizeof(*many));

	CU_ASSERT_PTR_NOT_NULL_FATAL(many);
	for (unsigned way = 0; way < 3; way++) {
		struct mf_rb_tree tree = { .update = update_sum };

		for (unsigned i = 0; i < NR_LARGE; i++) {
			many[i].key = way == 0 ? i : way == 1 ? NR_LARGE - i : i * 2654435761u % 1000003;
			many[i].weight = 1;
			add(&tree, &many[i]);
		}
		CU_ASSERT(mf_rb_check(&tree) >= 9);
		CU_ASSERT(depth_of(tree.root) >= 17);
		CU_ASSERT(depth_of(tree.root) <= 33); /* log2(100001) = 16.6 */
		CU_ASSERT_EQUAL(value_of(tree.root), NR_LARGE);
		for (unsigned i = 0; i < NR_LARGE; i += 2)
			drop(&tree, &many[i]);
		CU_ASSERT(sound(&tree));
		CU_ASSERT(depth_of(tree.root) <= 31);
		CU_ASSERT_EQUAL(value_of(tree.root), NR_LARGE / 2);
	}
	free(many);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_empty),	       UNIT_TEST(test_three_and_four), UNIT_TEST(test_check_refuses),
	UNIT_TEST(test_random_sum),    UNIT_TEST(test_random_max),     UNIT_TEST(test_random_plain),
	UNIT_TEST(test_every_erasure), UNIT_TEST(test_changes_stop),   UNIT_TEST(test_erasure_stops),
	UNIT_TEST(test_depth),
};

UNIT_MAIN("rbtree", tests)
