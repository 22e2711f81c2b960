/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the file system tells the kernel by itself: that a polled file has
 * changed, and that an allocation's inodes are void.
 *
 * All of it is sent by one thread that holds no lock meanwhile: sent from a
 * request's handler, a notification can wait for that very request.
 */
#ifndef FS_NOTIFY_H
#define FS_NOTIFY_H

#include "handle.h"

int fs_notify_create(struct fs *fs); /* -ENOMEM */
int fs_notify_start(struct fs *fs);  /* the thread, once the session is mounted; -errno */
void fs_notify_ask_stop(struct fs *fs);
/* Joins the thread; the connection must have been cut, or the thread may wait for a reply nobody sends. */
void fs_notify_stop(struct fs *fs);
void fs_notify_destroy(struct fs *fs);

/* Events due for a handle; takes over @poll (may be NULL) to wake its pollers later. */
unsigned fs_notify_poll(struct fs *fs, struct fs_handle *handle, struct fuse_pollhandle *poll);
/* The handle is about to be freed. */
void fs_notify_forget(struct fs *fs, struct fs_handle *handle);

#endif
