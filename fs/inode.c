/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The inode table: FUSE node id -> node of the control tree.
 *
 * Node ids are inode numbers of the control tree; the table only keeps what an
 * id stands for while the kernel holds it.  A file whose commands may wait has
 * an id of its own for each lookup, as the kernel holds an inode's lock during
 * a write: behind one that waits no other writer could do anything, nor be
 * killed.  st_ino stays the same, and such a name is looked up at each open.  The
 * inode of a data file also holds a reference on its allocation, which keeps
 * the descriptor (never the pages) and lets getattr work without a name lookup.
 * Folders and data files of allocations are chained by serial number as well,
 * for the invalidation that follows a free.
 *
 * Invariant: count = inodes with nlookup > 0 = all inodes in the table.
 * Locks: inodes.lock; references are taken or dropped outside of it where that
 * may call the engine.
 */
#include "fs.h"

#include "engine/live.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_BUCKETS 256
#define OWN_ID (UINT64_C(1) << 63) /* no inode number of the control tree has this bit */

struct fs_inode {
	struct fs_inode *next_by_id, *next_by_serial;
	uint64_t id;
	uint64_t nlookup;
	struct mf_ctl_node node;
	struct mf_live *live; /* data files only; a reference */
	bool in_serials;
};

static size_t bucket_of(const struct fs *fs, uint64_t key)
{
	return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (fs->inodes.nr_buckets - 1);
}

static bool is_data(const struct mf_ctl_node *node)
{
	return node->row && node->row->type == MF_CTL_MEMORY;
}

int fs_inodes_init(struct fs *fs)
{
	fs->inodes.by_id = calloc(FIRST_BUCKETS, sizeof(struct fs_inode *));
	fs->inodes.by_serial = calloc(FIRST_BUCKETS, sizeof(struct fs_inode *));
	if (!fs->inodes.by_id || !fs->inodes.by_serial) {
		free(fs->inodes.by_id);
		free(fs->inodes.by_serial);
		return -ENOMEM;
	}
	fs->inodes.nr_buckets = FIRST_BUCKETS;
	fs->inodes.count = 0;
	fs->inodes.nr_own = 0;
	pthread_mutex_init(&fs->inodes.lock, NULL);
	return 0;
}

static void release_inode(struct fs_inode *inode)
{
	if (inode->live)
		mf_live_put(inode->live);
	free(inode);
}

void fs_inodes_destroy(struct fs *fs)
{
	for (size_t i = 0; i < fs->inodes.nr_buckets; i++) {
		struct fs_inode *inode = fs->inodes.by_id[i], *next;

		for (; inode; inode = next) {
			next = inode->next_by_id;
			release_inode(inode);
		}
	}
	free(fs->inodes.by_id);
	free(fs->inodes.by_serial);
	pthread_mutex_destroy(&fs->inodes.lock);
}

static struct fs_inode *find(const struct fs *fs, uint64_t id)
{
	struct fs_inode *inode = fs->inodes.by_id[bucket_of(fs, id)];

	while (inode && inode->id != id)
		inode = inode->next_by_id;
	return inode;
}

static void link_inode(struct fs *fs, struct fs_inode *inode)
{
	struct fs_inode **head = &fs->inodes.by_id[bucket_of(fs, inode->id)];

	inode->next_by_id = *head;
	*head = inode;
	if (!inode->in_serials)
		return;
	head = &fs->inodes.by_serial[bucket_of(fs, inode->node.serial)];
	inode->next_by_serial = *head;
	*head = inode;
}

static void unlink_inode(struct fs *fs, struct fs_inode *inode)
{
	struct fs_inode **at = &fs->inodes.by_id[bucket_of(fs, inode->id)];

	while (*at != inode)
		at = &(*at)->next_by_id;
	*at = inode->next_by_id;
	if (!inode->in_serials)
		return;
	at = &fs->inodes.by_serial[bucket_of(fs, inode->node.serial)];
	while (*at != inode)
		at = &(*at)->next_by_serial;
	*at = inode->next_by_serial;
}

/* Doubles the buckets; a table that cannot grow goes on with longer chains. */
static void grow(struct fs *fs)
{
	size_t old_buckets = fs->inodes.nr_buckets;
	struct fs_inode **old = fs->inodes.by_id;
	struct fs_inode **by_id = calloc(old_buckets * 2, sizeof(struct fs_inode *));
	struct fs_inode **by_serial = calloc(old_buckets * 2, sizeof(struct fs_inode *));

	if (!by_id || !by_serial) {
		free(by_id);
		free(by_serial);
		return;
	}
	free(fs->inodes.by_serial);
	fs->inodes.by_id = by_id;
	fs->inodes.by_serial = by_serial;
	fs->inodes.nr_buckets = old_buckets * 2;
	for (size_t i = 0; i < old_buckets; i++) {
		struct fs_inode *inode = old[i], *next;

		for (; inode; inode = next) {
			next = inode->next_by_id;
			link_inode(fs, inode);
		}
	}
	free(old);
}

int fs_inode_get(struct fs *fs, fuse_ino_t ino, struct mf_ctl_node *node, struct mf_live **live)
{
	struct fs_inode *inode;

	if (live)
		*live = NULL;
	if (ino == FUSE_ROOT_ID) {
		*node = fs->root;
		return 0;
	}
	pthread_mutex_lock(&fs->inodes.lock);
	inode = find(fs, ino);
	if (inode) {
		*node = inode->node;
		if (live && inode->live) {
			mf_live_ref(inode->live);
			*live = inode->live;
		}
	}
	pthread_mutex_unlock(&fs->inodes.lock);
	return inode ? 0 : -ENOENT;
}

/* The memory of a data file: NULL if that very allocation has been freed. */
static struct mf_live *find_memory(struct fs *fs, const struct mf_ctl_node *node)
{
	struct mf_live *live = mf_live_get(fs->m, mf_text_of(node->name));

	if (live && live->named.serial != node->serial) {
		mf_live_put(live);
		return NULL;
	}
	return live;
}

/* The id under which a lookup of @node is remembered. */
static uint64_t id_of(struct fs *fs, const struct mf_ctl_node *node)
{
	uint64_t id = node->inode;

	if (!fs_may_wait(node))
		return id;
	pthread_mutex_lock(&fs->inodes.lock);
	id = OWN_ID | ++fs->inodes.nr_own;
	pthread_mutex_unlock(&fs->inodes.lock);
	return id;
}

static struct fs_inode *new_inode(struct fs *fs, fuse_ino_t parent, const struct mf_ctl_node *node,
				  uint64_t id, int *error)
{
	struct fs_inode *inode = calloc(1, sizeof(*inode));

	*error = inode ? 0 : -ENOMEM;
	if (!inode)
		return NULL;
	inode->id = id;
	inode->node = *node;
	inode->in_serials = node->serial && (parent == fs->live_dir || is_data(node));
	if (is_data(node)) {
		inode->live = find_memory(fs, node);
		if (!inode->live) {
			free(inode);
			*error = -ENOENT;
			return NULL;
		}
	}
	return inode;
}

/* Counts one lookup of @fresh, or of the inode that is there already; @fresh is taken over or freed. */
static void count_lookup(struct fs *fs, uint64_t id, struct fs_inode *fresh, struct mf_live **live,
			 bool *known)
{
	struct fs_inode *inode;

	pthread_mutex_lock(&fs->inodes.lock);
	inode = find(fs, id);
	if (!inode && fresh) {
		if (fs->inodes.count >= fs->inodes.nr_buckets)
			grow(fs);
		inode = fresh;
		fresh = NULL;
		link_inode(fs, inode);
		fs->inodes.count++;
	}
	*known = inode != NULL;
	if (inode) {
		inode->nlookup++;
		*live = inode->live;
		if (inode->live)
			mf_live_ref(inode->live);
	}
	pthread_mutex_unlock(&fs->inodes.lock);
	if (fresh)
		release_inode(fresh);
}

int fs_inode_remember(struct fs *fs, fuse_ino_t parent, const struct mf_ctl_node *node, fuse_ino_t *id,
		      struct mf_live **live)
{
	struct fs_inode *fresh;
	bool known;
	int error;

	*live = NULL;
	*id = id_of(fs, node);
	count_lookup(fs, *id, NULL, live, &known);
	if (known)
		return 0;
	fresh = new_inode(fs, parent, node, *id, &error);
	if (!fresh)
		return error;
	count_lookup(fs, *id, fresh, live, &known);
	return 0;
}

void fs_inode_forget(struct fs *fs, fuse_ino_t ino, uint64_t nlookup)
{
	struct fs_inode *inode;

	if (ino == FUSE_ROOT_ID)
		return;
	pthread_mutex_lock(&fs->inodes.lock);
	inode = find(fs, ino);
	if (inode) {
		inode->nlookup -= nlookup < inode->nlookup ? nlookup : inode->nlookup;
		if (inode->nlookup) {
			inode = NULL;
		} else {
			unlink_inode(fs, inode);
			fs->inodes.count--;
		}
	}
	pthread_mutex_unlock(&fs->inodes.lock);
	if (inode)
		release_inode(inode);
}

void fs_inodes_of_allocation(struct fs *fs, uint64_t serial, uint64_t *folder, uint64_t *data)
{
	struct fs_inode *inode;

	*folder = 0;
	*data = 0;
	pthread_mutex_lock(&fs->inodes.lock);
	for (inode = fs->inodes.by_serial[bucket_of(fs, serial)]; inode; inode = inode->next_by_serial) {
		if (inode->node.serial != serial)
			continue;
		if (is_data(&inode->node))
			*data = inode->id;
		else
			*folder = inode->id;
	}
	pthread_mutex_unlock(&fs->inodes.lock);
}
