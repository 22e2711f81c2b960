/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The notifier; see notify.h.
 *
 * Changes are found by comparing generations, every 100 ms and only while
 * somebody polls: so a file wakes its pollers at most ten times a second
 * whatever the engine does, and an idle mount costs nothing.  A change between
 * the poll and its registration is not lost, as the generation compared is the
 * one of the descriptor's last read.
 *
 * Locks: notify.lock for the list of polled handles and the queue.  The kernel
 * is told with no lock held.
 */
#include "notify.h"

#include "engine/live.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#define POLL_INTERVAL_MS 100
#define WAKE_BATCH 64

/* A freed allocation the kernel still remembers. */
struct freed {
	struct freed *next;
	uint64_t folder, data; /* node ids, 0 none */
	char name[65];
};

struct fs_notify {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct fs_handle *polled;
	struct freed *first_freed, **last_freed;
	pthread_t thread;
	bool started, stop;
};

static void on_freed(void *arg, uint64_t serial, const char *name);

int fs_notify_create(struct fs *fs)
{
	struct fs_notify *notify = calloc(1, sizeof(*notify));
	pthread_condattr_t attr;

	if (!notify)
		return -ENOMEM;
	pthread_mutex_init(&notify->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&notify->wake, &attr);
	pthread_condattr_destroy(&attr);
	notify->last_freed = &notify->first_freed;
	fs->notify = notify;
	mf_live_on_freed(fs->m, on_freed, fs);
	return 0;
}

static void unlink_polled(struct fs_notify *notify, struct fs_handle *handle)
{
	if (handle->next_polled)
		handle->next_polled->previous_polled = handle->previous_polled;
	if (handle->previous_polled)
		handle->previous_polled->next_polled = handle->next_polled;
	else
		notify->polled = handle->next_polled;
	handle->next_polled = NULL;
	handle->previous_polled = NULL;
	handle->poll = NULL;
}

void fs_notify_destroy(struct fs *fs)
{
	struct fs_notify *notify = fs->notify;

	if (!notify)
		return;
	mf_live_on_freed(fs->m, NULL, NULL);
	while (notify->polled) {
		fuse_pollhandle_destroy(notify->polled->poll);
		unlink_polled(notify, notify->polled);
	}
	while (notify->first_freed) {
		struct freed *freed = notify->first_freed;

		notify->first_freed = freed->next;
		free(freed);
	}
	pthread_cond_destroy(&notify->wake);
	pthread_mutex_destroy(&notify->lock);
	free(notify);
}

/* Called by the engine on the thread that freed: only queues. */
static void on_freed(void *arg, uint64_t serial, const char *name)
{
	struct fs *fs = arg;
	struct fs_notify *notify = fs->notify;
	struct freed *freed;
	uint64_t folder, data;

	fs_inodes_of_allocation(fs, serial, &folder, &data);
	if (!folder && !data)
		return;
	freed = calloc(1, sizeof(*freed));
	if (!freed) {
		/* Nothing is unsafe without it: names are looked up anew and late writes refused. */
		fs_log(LOG_WARNING, "no memory to invalidate the cached pages of %s", name);
		return;
	}
	freed->folder = folder;
	freed->data = data;
	strncpy(freed->name, name, sizeof(freed->name) - 1);
	pthread_mutex_lock(&notify->lock);
	*notify->last_freed = freed;
	notify->last_freed = &freed->next;
	pthread_cond_signal(&notify->wake);
	pthread_mutex_unlock(&notify->lock);
}

static bool has_changed(struct fs *fs, struct fs_handle *handle)
{
	return mf_ctl_event_generation(fs->m, &handle->node) != handle->generation;
}

static bool is_gone(struct fs *fs, struct fs_handle *handle)
{
	return handle->node.serial && !mf_ctl_alive(fs->m, &handle->node);
}

unsigned fs_notify_poll(struct fs *fs, struct fs_handle *handle, struct fuse_pollhandle *poll)
{
	struct fs_notify *notify = fs->notify;
	struct fuse_pollhandle *old = NULL;
	unsigned events = POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;

	if (poll) {
		pthread_mutex_lock(&notify->lock);
		old = handle->poll;
		if (!old) {
			handle->next_polled = notify->polled;
			if (notify->polled)
				notify->polled->previous_polled = handle;
			notify->polled = handle;
			pthread_cond_signal(&notify->wake);
		}
		handle->poll = poll;
		pthread_mutex_unlock(&notify->lock);
	}
	if (old)
		fuse_pollhandle_destroy(old);
	if (is_gone(fs, handle))
		return events | POLLERR | POLLHUP;
	return has_changed(fs, handle) ? events | POLLPRI | POLLERR : events;
}

void fs_notify_forget(struct fs *fs, struct fs_handle *handle)
{
	struct fuse_pollhandle *old;

	pthread_mutex_lock(&fs->notify->lock);
	old = handle->poll;
	if (old)
		unlink_polled(fs->notify, handle);
	pthread_mutex_unlock(&fs->notify->lock);
	if (old)
		fuse_pollhandle_destroy(old);
}

/* Wakes the pollers of files that have changed; the lock is held on entry and exit, not while sending. */
static void wake_pollers(struct fs *fs)
{
	struct fs_notify *notify = fs->notify;
	struct fuse_pollhandle *due[WAKE_BATCH];
	struct fs_handle *handle, *next;
	unsigned nr_due = 0;

	for (handle = notify->polled; handle && nr_due < WAKE_BATCH; handle = next) {
		next = handle->next_polled;
		if (!has_changed(fs, handle) && !is_gone(fs, handle))
			continue;
		due[nr_due++] = handle->poll;
		unlink_polled(notify, handle);
	}
	if (!nr_due)
		return;
	pthread_mutex_unlock(&notify->lock);
	for (unsigned i = 0; i < nr_due; i++) {
		fuse_lowlevel_notify_poll(due[i]);
		fuse_pollhandle_destroy(due[i]);
	}
	pthread_mutex_lock(&notify->lock);
}

/* Errors mean that the kernel has forgotten the inode or the mount has ended: nothing is left to do. */
static void tell_freed(struct fs *fs, const struct freed *freed)
{
	if (freed->data)
		fuse_lowlevel_notify_inval_inode(fs->se, freed->data, 0, 0);
	/* Not notify_delete: that is refused, and libfuse says so on stderr, while a file of the folder is open. */
	if (freed->folder)
		fuse_lowlevel_notify_inval_entry(fs->se, fs->live_dir, freed->name, strlen(freed->name));
}

static void invalidate_freed(struct fs *fs)
{
	struct fs_notify *notify = fs->notify;
	struct freed *freed;

	while (!notify->stop && (freed = notify->first_freed)) {
		notify->first_freed = freed->next;
		if (!notify->first_freed)
			notify->last_freed = &notify->first_freed;
		pthread_mutex_unlock(&notify->lock);
		tell_freed(fs, freed);
		free(freed);
		pthread_mutex_lock(&notify->lock);
	}
}

static void sleep_for_interval(struct fs_notify *notify)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += POLL_INTERVAL_MS * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	while (!notify->stop && !notify->first_freed)
		if (pthread_cond_timedwait(&notify->wake, &notify->lock, &until))
			break;
}

static void *run_notifier(void *arg)
{
	struct fs *fs = arg;
	struct fs_notify *notify = fs->notify;

	pthread_mutex_lock(&notify->lock);
	while (!notify->stop) {
		invalidate_freed(fs);
		wake_pollers(fs);
		if (notify->polled)
			sleep_for_interval(notify);
		else if (!notify->stop && !notify->first_freed)
			pthread_cond_wait(&notify->wake, &notify->lock);
	}
	pthread_mutex_unlock(&notify->lock);
	return NULL;
}

int fs_notify_start(struct fs *fs)
{
	int error = fs_thread_start(run_notifier, fs, &fs->notify->thread);

	fs->notify->started = !error;
	return error;
}

void fs_notify_ask_stop(struct fs *fs)
{
	pthread_mutex_lock(&fs->notify->lock);
	fs->notify->stop = true;
	pthread_cond_signal(&fs->notify->wake);
	pthread_mutex_unlock(&fs->notify->lock);
}

void fs_notify_stop(struct fs *fs)
{
	fs_notify_ask_stop(fs);
	if (fs->notify->started)
		pthread_join(fs->notify->thread, NULL);
	fs->notify->started = false;
}
