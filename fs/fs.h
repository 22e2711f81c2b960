/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the parts of the file system share: one mount, its options, its inode
 * table and the log.  Only this folder knows FUSE.
 *
 * Invariants: a FUSE node id is the inode number of the control tree (the root
 * excepted, which FUSE calls 1) and is never used for a second object; an inode
 * is in the table exactly while the kernel remembers it.
 *
 * Locks: the table's lock, the list of handles' and one lock a handle, the notifier's and the waiting
 * commands' lock.  No two of them are ever held together, and no engine
 * function that takes an engine lock is called under the table's lock.
 */
#ifndef FS_FS_H
#define FS_FS_H

#define FUSE_USE_VERSION 312

#include "ctl/ctl.h"

#include <fuse_lowlevel.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* What the command line says (options.c). */
struct fs_options {
	bool foreground;
	bool read_only;
	uid_t uid;
	gid_t gid;
	unsigned mode;	  /* what owner, group and others may at most do */
	char *engine;	  /* comma-separated words for mf_engine_create; owned */
	char *mountpoint; /* absolute; owned */
};

/* Returns -1 to go on, else the exit status (help or version printed, or bad usage). */
int fs_options_parse(int argc, char **argv, struct fs_options *out);
void fs_options_free(struct fs_options *options);

/*
 * fs_mount_heal - detaches dead mounts of ours from @path, refuses a live one.
 * 0, or -errno with a line in @why: -EBUSY already mounted (mount.c).
 */
int fs_mount_heal(const char *path, char *why, size_t why_size);
/* Ends the connection of a mount that may still be up, so that nothing waits for us any more. */
void fs_mount_cut(struct fuse_session *se, const char *path);

struct fs_inode;
struct fs_handle;

struct fs {
	struct memfs *m;
	struct fuse_session *se;
	const struct fs_options *options;
	struct timespec mounted_at;
	struct mf_ctl_node root;
	uint64_t live_dir; /* node id of live/ */
	struct {
		pthread_mutex_t lock;
		struct fs_inode **by_id, **by_serial; /* chained; nr_buckets each */
		size_t nr_buckets, count;
		uint64_t nr_own; /* ids given to single lookups */
	} inodes;
	struct {
		pthread_mutex_t lock;
		struct fs_handle *first;
	} handles; /* open files */
	struct fs_notify *notify;
	struct fs_commands *commands;
};

/* --- inode.c: what the kernel remembers --- */

int fs_inodes_init(struct fs *fs); /* -ENOMEM */
void fs_inodes_destroy(struct fs *fs);

/* The node behind an id, and with @live a reference on the memory of a data file (else NULL). -ENOENT. */
int fs_inode_get(struct fs *fs, fuse_ino_t ino, struct mf_ctl_node *node, struct mf_live **live);
/*
 * The kernel is about to learn of @node below @parent: counts one lookup of
 * *id.  *live as above.  -ENOMEM, -ENOENT (freed in the meantime).
 */
int fs_inode_remember(struct fs *fs, fuse_ino_t parent, const struct mf_ctl_node *node, fuse_ino_t *id,
		      struct mf_live **live);
void fs_inode_forget(struct fs *fs, fuse_ino_t ino, uint64_t nlookup);
/* Is @node a file whose commands may wait? */
static inline bool fs_may_wait(const struct mf_ctl_node *node)
{
	return node->row && node->row->waits;
}

/* Node ids the kernel remembers for an allocation: its folder and its data, 0 if it does not. */
void fs_inodes_of_allocation(struct fs *fs, uint64_t serial, uint64_t *folder, uint64_t *data);

/* --- ops.c --- */

extern const struct fuse_lowlevel_ops fs_ops;

/* --- data.c: live/NAME/data --- */

void fs_data_read(fuse_req_t req, struct mf_live *live, size_t size, off_t offset);
void fs_data_write(fuse_req_t req, struct mf_live *live, const char *bytes, size_t size, off_t offset);

/* --- main.c --- */

/* One line to stderr, or to syslog once the daemon has left its terminal. Priorities of syslog(3). */
void fs_log(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Starts a detached thread that takes no signal.  0 or -errno. */
int fs_thread_start(void *(*run)(void *), void *arg, pthread_t *joinable);

#endif
