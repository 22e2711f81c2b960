/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Commands that may wait (NOFAIL), and those that may have to queue behind one:
 * each runs on a thread of its own, so that no file system worker is held; its
 * reply is deferred.  An interrupt (a signal to the writer, or its death) or the
 * end of the mount cancels it: the engine undoes what it had and the writer
 * gets EINTR.
 *
 * Bound: FS_MAX_WAITING at a time, above that EAGAIN.
 */
#ifndef FS_COMMANDS_H
#define FS_COMMANDS_H

#include "handle.h"

#define FS_MAX_WAITING 64

int fs_commands_create(struct fs *fs); /* -ENOMEM */
/* Cancels all, returns when the last has replied.  No new one may be started any more. */
void fs_commands_finish(struct fs *fs);
void fs_commands_destroy(struct fs *fs);

/* May a command that does not wait itself have to queue behind one that does (both of one task)? */
bool fs_command_may_queue(struct fs *fs, const struct fs_handle *handle);
/* Performs one command now, on the caller's thread. */
void fs_command_run(struct fs *fs, struct fs_handle *handle, fuse_req_t req, const char *bytes, size_t size,
		    off_t offset);
/* Performs one that may wait; replies by itself in every case. */
void fs_command_defer(struct fs *fs, struct fs_handle *handle, fuse_req_t req, const char *bytes, size_t size,
		      off_t offset);

#endif
