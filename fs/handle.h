/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Open files: one snapshot, or one reply, served at any offset and in any
 * pieces.
 *
 * What a read gets:
 *   - nothing held yet, or offset 0 with a snapshot held: a new snapshot;
 *   - after a command that succeeded: from the position behind the command on,
 *     its reply; before that position a new snapshot.  A file that only takes
 *     commands has no snapshot: there offset 0 is the reply again;
 *   - after a command that failed: its reason, from wherever the next read
 *     starts (the position has not moved), until its end has been read.
 *
 * Locks: handle.lock for all but node and live, which never change;
 * handles.lock for the list of all open files, which outlives a mount that ends
 * while files are open.
 */
#ifndef FS_HANDLE_H
#define FS_HANDLE_H

#include "fs.h"

enum fs_held { FS_HELD_NOTHING, FS_HELD_SNAPSHOT, FS_HELD_REPLY, FS_HELD_REASON };

struct fs_handle {
	struct mf_ctl_node node;
	struct mf_live *live; /* data files: a reference, else NULL */
	pthread_mutex_t lock;
	struct mf_outbuf text;
	enum fs_held held;
	bool base_known;		   /* reasons: a read has fixed base */
	bool finished;			   /* reasons: the end has been read */
	uint64_t base;			   /* file position of the text's first byte */
	_Atomic uint64_t generation;	   /* of the node's event, when last read */
	struct fs_handle *next, *previous; /* handles.lock */
	/* notify.c's, under its lock */
	struct fuse_pollhandle *poll;
	struct fs_handle *next_polled, *previous_polled;
};

void fs_handles_init(struct fs *fs);
void fs_handles_destroy(struct fs *fs); /* frees what the end of the mount has left open */

/* Takes over the reference on @live. NULL: no memory. */
struct fs_handle *fs_handle_new(struct fs *fs, const struct mf_ctl_node *node, struct mf_live *live);
void fs_handle_free(struct fs *fs, struct fs_handle *handle);
struct fs_handle *fs_handle_of(const struct fuse_file_info *fi);

void fs_handle_read(struct fs *fs, struct fs_handle *handle, fuse_req_t req, size_t size, off_t offset);

/* A command of @size bytes at @offset ended with @error (0 or -errno); takes over the text of @reply. */
void fs_handle_set_reply(struct fs_handle *handle, struct mf_outbuf *reply, int error, size_t size,
			 off_t offset);

/* Refuses a command before it reaches the engine: records it, leaves the reason, replies. */
void fs_handle_refuse(struct fs *fs, struct fs_handle *handle, fuse_req_t req, off_t offset, int error,
		      const char *why);

#endif
