/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Commands, at once or on a thread of their own; see commands.h.
 *
 * Lifetime: the kernel sends no release for a handle while a write on it has
 * no reply, so a waiting command may use its handle until it replies, and not
 * a moment longer.
 *
 * Locks: commands.lock, for the list.  The interrupt callback runs under a lock
 * of libfuse's and only sets the cancel mark.
 */
#include "commands.h"

#include "page/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

struct command {
	struct command *next, *previous;
	struct fs *fs;
	struct fs_handle *handle;
	fuse_req_t req;
	off_t offset;
	struct mf_cancel cancel;
	size_t size;
	char bytes[];
};

struct fs_commands {
	pthread_mutex_t lock;
	pthread_cond_t all_done;
	struct command *first;
	unsigned count;
};

int fs_commands_create(struct fs *fs)
{
	fs->commands = calloc(1, sizeof(*fs->commands));
	if (!fs->commands)
		return -ENOMEM;
	pthread_mutex_init(&fs->commands->lock, NULL);
	pthread_cond_init(&fs->commands->all_done, NULL);
	return 0;
}

void fs_commands_finish(struct fs *fs)
{
	struct fs_commands *commands = fs->commands;

	pthread_mutex_lock(&commands->lock);
	for (struct command *command = commands->first; command; command = command->next)
		mf_page_cancel(fs->m->page, &command->cancel);
	while (commands->count)
		pthread_cond_wait(&commands->all_done, &commands->lock);
	pthread_mutex_unlock(&commands->lock);
}

void fs_commands_destroy(struct fs *fs)
{
	if (!fs->commands)
		return;
	pthread_cond_destroy(&fs->commands->all_done);
	pthread_mutex_destroy(&fs->commands->lock);
	free(fs->commands);
}

static int store(struct fs *fs, struct fs_handle *handle, const char *bytes, size_t size, off_t offset,
		 struct mf_cancel *cancel)
{
	struct mf_outbuf reply = MF_OUTBUF_INIT;
	int error = mf_ctl_store(fs->m, &handle->node, bytes, size, &reply, cancel);

	fs_handle_set_reply(handle, &reply, error, size, offset);
	return error;
}

void fs_command_run(struct fs *fs, struct fs_handle *handle, fuse_req_t req, const char *bytes, size_t size,
		    off_t offset)
{
	int error = store(fs, handle, bytes, size, offset, NULL);

	if (error)
		fuse_reply_err(req, -error);
	else
		fuse_reply_write(req, size);
}

/* Enters a command in the list; false: there are too many. */
static bool enter(struct fs_commands *commands, struct command *command)
{
	bool entered;

	pthread_mutex_lock(&commands->lock);
	entered = commands->count < FS_MAX_WAITING;
	if (entered) {
		command->next = commands->first;
		if (command->next)
			command->next->previous = command;
		commands->first = command;
		commands->count++;
	}
	pthread_mutex_unlock(&commands->lock);
	return entered;
}

/* Leaves the list and frees the command; the last one wakes fs_commands_finish(). */
static void leave(struct fs_commands *commands, struct command *command)
{
	pthread_mutex_lock(&commands->lock);
	if (command->next)
		command->next->previous = command->previous;
	if (command->previous)
		command->previous->next = command->next;
	else
		commands->first = command->next;
	free(command);
	if (!--commands->count)
		pthread_cond_broadcast(&commands->all_done);
	pthread_mutex_unlock(&commands->lock);
}

bool fs_command_may_queue(struct fs *fs, const struct fs_handle *handle)
{
	bool waiting;

	if (!fs_may_wait(&handle->node))
		return false;
	pthread_mutex_lock(&fs->commands->lock);
	waiting = fs->commands->count > 0;
	pthread_mutex_unlock(&fs->commands->lock);
	return waiting;
}

static void interrupted(fuse_req_t req, void *arg)
{
	struct command *command = arg;

	(void)req;
	mf_page_cancel(command->fs->m->page, &command->cancel);
}

static void *run_command(void *arg)
{
	struct command *command = arg;
	struct fs *fs = command->fs;
	int error =
		store(fs, command->handle, command->bytes, command->size, command->offset, &command->cancel);

	/* After this call no interrupt can reach the command any more. */
	fuse_req_interrupt_func(command->req, NULL, NULL);
	if (error)
		fuse_reply_err(command->req, -error);
	else
		fuse_reply_write(command->req, command->size);
	leave(fs->commands, command);
	return NULL;
}

void fs_command_defer(struct fs *fs, struct fs_handle *handle, fuse_req_t req, const char *bytes, size_t size,
		      off_t offset)
{
	struct command *command = calloc(1, sizeof(*command) + size);
	int error;

	if (!command) {
		fs_handle_refuse(fs, handle, req, offset, -ENOMEM, "no memory for a command that may wait");
		return;
	}
	command->fs = fs;
	command->handle = handle;
	command->req = req;
	command->offset = offset;
	command->size = size;
	memcpy(command->bytes, bytes, size);
	if (!enter(fs->commands, command)) {
		free(command);
		fs_handle_refuse(fs, handle, req, offset, -EAGAIN, "too many commands are waiting already");
		return;
	}
	fuse_req_interrupt_func(req, interrupted, command);
	error = fs_thread_start(run_command, command, NULL);
	if (error) {
		fuse_req_interrupt_func(req, NULL, NULL);
		leave(fs->commands, command);
		fs_log(LOG_WARNING, "no thread for a command that may wait: %s", strerror(-error));
		fs_handle_refuse(fs, handle, req, offset, -EAGAIN, "no thread for a command that may wait");
	}
}
