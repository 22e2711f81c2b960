/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Open files; see handle.h for what a read is served from.
 */
#include "handle.h"

#include "engine/live.h"

#include <errno.h>
#include <stdlib.h>

void fs_handles_init(struct fs *fs)
{
	pthread_mutex_init(&fs->handles.lock, NULL);
	fs->handles.first = NULL;
}

void fs_handles_destroy(struct fs *fs)
{
	while (fs->handles.first)
		fs_handle_free(fs, fs->handles.first);
	pthread_mutex_destroy(&fs->handles.lock);
}

struct fs_handle *fs_handle_new(struct fs *fs, const struct mf_ctl_node *node, struct mf_live *live)
{
	struct fs_handle *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return NULL;
	handle->node = *node;
	handle->live = live;
	handle->generation = mf_ctl_event_generation(fs->m, node);
	pthread_mutex_init(&handle->lock, NULL);
	pthread_mutex_lock(&fs->handles.lock);
	handle->next = fs->handles.first;
	if (handle->next)
		handle->next->previous = handle;
	fs->handles.first = handle;
	pthread_mutex_unlock(&fs->handles.lock);
	return handle;
}

void fs_handle_free(struct fs *fs, struct fs_handle *handle)
{
	pthread_mutex_lock(&fs->handles.lock);
	if (handle->next)
		handle->next->previous = handle->previous;
	if (handle->previous)
		handle->previous->next = handle->next;
	else
		fs->handles.first = handle->next;
	pthread_mutex_unlock(&fs->handles.lock);
	/* The last reader may have closed before the worker that answered it has left the handle. */
	pthread_mutex_lock(&handle->lock);
	pthread_mutex_unlock(&handle->lock);
	if (handle->live)
		mf_live_put(handle->live);
	mf_outbuf_free(&handle->text);
	pthread_mutex_destroy(&handle->lock);
	free(handle);
}

struct fs_handle *fs_handle_of(const struct fuse_file_info *fi)
{
	return (struct fs_handle *)(uintptr_t)fi->fh;
}

static bool takes_only_commands(const struct fs_handle *handle)
{
	const struct mf_ctl_row *row = handle->node.row;

	return !row->show && !row->get;
}

/* May a read at @offset be served from the text held?  May move base. */
static bool serves(struct fs_handle *handle, uint64_t offset)
{
	switch (handle->held) {
	case FS_HELD_NOTHING:
		return false;
	case FS_HELD_SNAPSHOT:
		return offset != 0;
	case FS_HELD_REASON:
		if (!handle->base_known) {
			handle->base_known = true;
			handle->base = offset;
		}
		if (offset >= handle->base && !(handle->finished && offset == handle->base))
			return true;
		break;
	case FS_HELD_REPLY:
		if (offset >= handle->base)
			return true;
		break;
	}
	if (!takes_only_commands(handle))
		return false;
	handle->base = offset;
	return true;
}

static int make_snapshot(struct fs *fs, struct fs_handle *handle)
{
	int error;

	mf_outbuf_clear(&handle->text);
	handle->held = FS_HELD_NOTHING;
	handle->base = 0;
	handle->generation = mf_ctl_event_generation(fs->m, &handle->node);
	error = mf_ctl_show(fs->m, &handle->node, &handle->text);
	if (!error)
		error = mf_outbuf_error(&handle->text);
	if (error) {
		mf_outbuf_free(&handle->text);
		return error;
	}
	handle->held = FS_HELD_SNAPSHOT;
	return 0;
}

void fs_handle_read(struct fs *fs, struct fs_handle *handle, fuse_req_t req, size_t size, off_t offset)
{
	uint64_t at = (uint64_t)offset;
	int error = 0;

	pthread_mutex_lock(&handle->lock);
	if (!serves(handle, at))
		error = make_snapshot(fs, handle);
	if (error) {
		pthread_mutex_unlock(&handle->lock);
		fuse_reply_err(req, -error);
		return;
	}
	at -= handle->base;
	if (at >= handle->text.length) {
		handle->finished = true;
		fuse_reply_buf(req, NULL, 0);
	} else {
		size_t rest = handle->text.length - at;

		fuse_reply_buf(req, handle->text.data + at, rest < size ? rest : size);
	}
	pthread_mutex_unlock(&handle->lock);
}

void fs_handle_set_reply(struct fs_handle *handle, struct mf_outbuf *reply, int error, size_t size,
			 off_t offset)
{
	pthread_mutex_lock(&handle->lock);
	mf_outbuf_free(&handle->text);
	handle->text = *reply;
	handle->held = error ? FS_HELD_REASON : FS_HELD_REPLY;
	handle->base = (uint64_t)offset + (error ? 0 : size);
	handle->base_known = !error;
	handle->finished = false;
	pthread_mutex_unlock(&handle->lock);
	*reply = (struct mf_outbuf)MF_OUTBUF_INIT;
}

void fs_handle_refuse(struct fs *fs, struct fs_handle *handle, fuse_req_t req, off_t offset, int error,
		      const char *why)
{
	struct mf_outbuf reply = MF_OUTBUF_INIT, path = MF_OUTBUF_INIT;

	mf_ctl_path(&handle->node, &path);
	mf_ctl_refused(fs->m, path.data ? path.data : "", error, why);
	mf_outbuf_printf(&reply, "%s: %s\n", path.data ? path.data : "", why);
	mf_outbuf_free(&path);
	fs_handle_set_reply(handle, &reply, error, 0, offset);
	fuse_reply_err(req, -error);
}
