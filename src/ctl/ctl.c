/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One read and one command: what every file has in common (design 2.1), so
 * that rows only say what differs.  A refused command changes nothing and
 * leaves its reason in the caller's reply and in last_cmd_status.
 *
 * Locks: mf_ctl.lock (MF_LOCK_CTL) for the status text alone.  Show and store
 * functions are called with no lock held.
 */
#include "ctl/ctl_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mf_ctl_create(struct memfs *m)
{
	struct mf_ctl *ctl = calloc(1, sizeof(*ctl));
	int error;

	if (!ctl)
		return -ENOMEM;
	error = mf_ctl_tree_create(ctl);
	if (error) {
		mf_ctl_tree_destroy(ctl);
		free(ctl);
		return error;
	}
	mf_lock_init(&ctl->lock, MF_LOCK_CTL);
	pthread_mutex_init(&ctl->slab_knobs, NULL);
	strcpy(ctl->status, "ok");
	m->ctl = ctl;
	return 0;
}

void mf_ctl_destroy(struct memfs *m)
{
	if (!m->ctl)
		return;
	mf_ctl_tree_destroy(m->ctl);
	mf_lock_destroy(&m->ctl->lock);
	pthread_mutex_destroy(&m->ctl->slab_knobs);
	free(m->ctl);
	m->ctl = NULL;
}

/* --- last_cmd_status --- */

/* The status is one line whatever a user wrote. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

/* What was reported on the way to a failure is told by its reason. */
static void set_status(struct memfs *m, const char *text, bool failed)
{
	char report[1];

	mf_lock_acquire(&m->ctl->lock);
	if (failed)
		mf_engine_new_report(m, &m->ctl->seen_reports, report, sizeof(report));
	snprintf(m->ctl->status, sizeof(m->ctl->status), "%s", text);
	mf_lock_release(&m->ctl->lock);
}

/*
 * What an engine found wrong (a damaged object, say) is told like a failure, if
 * no command failed since.  The lock is held.
 */
static void add_report(struct memfs *m)
{
	char report[256];

	if (strcmp(m->ctl->status, "ok") == 0 &&
	    mf_engine_new_report(m, &m->ctl->seen_reports, report, sizeof(report)))
		snprintf(m->ctl->status, sizeof(m->ctl->status), "%s", report);
}

/* Records the end of a command: "ok", or "PATH: why", which also becomes the reply. */
static void finish(struct memfs *m, const char *path, int error, const char *why, struct mf_outbuf *reply)
{
	char line[sizeof(m->ctl->status)];

	if (!error) {
		set_status(m, "ok", false);
		return;
	}
	snprintf(line, sizeof(line), "%s: %s", path, *why ? why : strerror(-error));
	make_printable(line);
	set_status(m, line, true);
	if (reply) {
		mf_outbuf_clear(reply);
		mf_outbuf_printf(reply, "%s\n", line);
	}
}

void mf_ctl_refused(struct memfs *m, const char *path, int error, const char *why)
{
	finish(m, path, error < 0 ? error : -error, why ? why : "", NULL);
}

int mf_ctl_show_status(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	char line[sizeof(m->ctl->status)];

	(void)node;
	mf_lock_acquire(&m->ctl->lock);
	add_report(m);
	memcpy(line, m->ctl->status, sizeof(line));
	mf_lock_release(&m->ctl->lock);
	mf_outbuf_printf(out, "%s\n", line);
	return 0;
}

/* --- objects behind nodes --- */

struct mf_ctl_names mf_ctl_names(struct memfs *m, enum mf_ctl_kind kind)
{
	struct mf_ctl_names names = { &m->tasks.lock, &m->tasks.table };

	if (kind == MF_CTL_PER_LIVE)
		names = (struct mf_ctl_names){ &m->live.lock, &m->live.table };
	else if (kind == MF_CTL_PER_CACHE)
		names.table = mf_cache_names(m->slabs, &names.lock);
	return names;
}

static bool name_exists(struct memfs *m, enum mf_ctl_kind kind, const struct mf_ctl_node *node)
{
	struct mf_ctl_names names = mf_ctl_names(m, kind);
	const struct mf_named *named;
	bool exists;

	mf_lock_acquire(names.lock);
	named = mf_name_table_find(names.table, mf_text_of(node->name));
	exists = named && named->serial == node->serial;
	if (exists && kind == MF_CTL_PER_LIVE)
		exists = ((const struct mf_live *)named)->ready;
	mf_lock_release(names.lock);
	return exists;
}

/* The table a node's name is from. */
static enum mf_ctl_kind named_kind(const struct mf_ctl_node *node)
{
	const char *path = mf_ctl_rows[node->dir / MF_CTL_MAX_DEPTH].path;

	if (!node->serial)
		return MF_CTL_STATIC;
	if (strncmp(path, "slab/", 5) == 0)
		return MF_CTL_PER_CACHE;
	return strncmp(path, "tasks/", 6) == 0 ? MF_CTL_PER_TASK : MF_CTL_PER_LIVE;
}

bool mf_ctl_alive(struct memfs *m, const struct mf_ctl_node *node)
{
	enum mf_ctl_kind kind = named_kind(node);

	return kind == MF_CTL_STATIC || name_exists(m, kind, node);
}

struct mf_task *mf_ctl_task(struct memfs *m, const struct mf_ctl_node *node)
{
	struct mf_task *task = mf_task_get(m, mf_text_of(node->name));

	if (task && task->named.serial != node->serial) {
		mf_task_put(task);
		return NULL;
	}
	return task;
}

struct mf_live *mf_ctl_live(struct memfs *m, const struct mf_ctl_node *node)
{
	struct mf_live *live = mf_live_get(m, mf_text_of(node->name));

	if (live && live->named.serial != node->serial) {
		mf_live_put(live);
		return NULL;
	}
	return live;
}

struct mf_cache *mf_ctl_cache(struct memfs *m, const struct mf_ctl_node *node)
{
	struct mf_cache *cache = mf_cache_get(m->slabs, mf_text_of(node->name));

	/* The name was this node's when it was looked up: if it still is, it was all the time. */
	if (cache && !name_exists(m, MF_CTL_PER_CACHE, node)) {
		mf_cache_put(cache);
		return NULL;
	}
	return cache;
}

uint64_t mf_ctl_event_generation(struct memfs *m, const struct mf_ctl_node *node)
{
	if (!node->row || node->row->event < 0)
		return 0;
	return atomic_load_explicit(&m->event_generation[node->row->event], memory_order_relaxed) + 1;
}

/* --- reading --- */

static void show_value(const struct mf_ctl_row *row, uint64_t value, struct mf_outbuf *out)
{
	if (row->type == MF_CTL_CHOICE)
		mf_outbuf_printf(out, "%s\n", row->choices[value]);
	else
		mf_outbuf_printf(out, "%" PRIu64 "\n", value);
}

int mf_ctl_show(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	const struct mf_ctl_row *row = node->row;
	int error = 0;

	if (!row)
		return -EISDIR;
	if (row->type == MF_CTL_MEMORY)
		return -EACCES;
	if (!mf_ctl_alive(m, node))
		return -ENODEV;
	if (row->show)
		error = row->show(m, node, out);
	else if (row->get)
		show_value(row, row->get(m, node), out);
	return error ? error : mf_outbuf_error(out);
}

/* --- writing --- */

int mf_ctl_fail(struct mf_ctl_command *command, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(command->why, sizeof(command->why), format, args);
	va_end(args);
	return error;
}

/* Text for a reason: at most 64 bytes of it are repeated. */
static int shown_length(struct mf_text text)
{
	return text.length > 64 ? 64 : (int)text.length;
}

int mf_ctl_parse_number(struct mf_ctl_command *command, uint64_t min, uint64_t max, uint64_t *out)
{
	struct mf_text text = command->text;
	uint64_t value;

	if (mf_parse_u64(text, UINT64_MAX, &value))
		return mf_ctl_fail(command, -EINVAL, "\"%.*s\" is not a number in %" PRIu64 "..%" PRIu64,
				   shown_length(text), text.at, min, max);
	if (value < min || value > max)
		return mf_ctl_fail(command, -EINVAL, "%" PRIu64 " is not in %" PRIu64 "..%" PRIu64, value,
				   min, max);
	*out = value;
	return 0;
}

int mf_ctl_parse_one(struct mf_ctl_command *command)
{
	uint64_t one;

	if (mf_parse_u64(command->text, UINT64_MAX, &one) || one != 1)
		return mf_ctl_fail(command, -EINVAL, "\"%.*s\" is not 1", shown_length(command->text),
				   command->text.at);
	return 0;
}

static int parse_choice(struct mf_ctl_command *command, uint64_t *out)
{
	const char *const *choices = command->node->row->choices;
	char list[128] = "";

	for (uint64_t i = 0; choices[i]; i++) {
		size_t used = strlen(list);

		if (mf_text_is(command->text, choices[i])) {
			*out = i;
			return 0;
		}
		snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", choices[i]);
	}
	return mf_ctl_fail(command, -EINVAL, "\"%.*s\" is not one of %s", shown_length(command->text),
			   command->text.at, list);
}

static int parse_value(struct mf_ctl_command *command, uint64_t *out)
{
	const struct mf_ctl_row *row = command->node->row;

	switch (row->type) {
	case MF_CTL_U64:
		return mf_ctl_parse_number(command, row->min, row->max, out);
	case MF_CTL_BOOL:
		return mf_ctl_parse_number(command, 0, 1, out);
	case MF_CTL_CHOICE:
		return parse_choice(command, out);
	case MF_CTL_TEXT:
	case MF_CTL_MEMORY:
		break;
	}
	return -EINVAL;
}

/* The rules of every command's text; cuts the one trailing newline off. */
static int check_text(struct mf_ctl_command *command)
{
	struct mf_text *text = &command->text;

	if (text->length > MF_CTL_WRITE_MAX)
		return mf_ctl_fail(command, -E2BIG, "more than %d bytes", MF_CTL_WRITE_MAX);
	if (text->length && text->at[text->length - 1] == '\n')
		text->length--;
	if (!text->length)
		return mf_ctl_fail(command, -EINVAL, "nothing written");
	for (size_t i = 0; i < text->length; i++) {
		unsigned char c = (unsigned char)text->at[i];

		if (c == '\n')
			return mf_ctl_fail(command, -EINVAL, "more than one line in one write");
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return mf_ctl_fail(command, -EINVAL, "byte %zu is a control character (%u)", i + 1,
					   c);
	}
	return 0;
}

static int perform(struct mf_ctl_command *command)
{
	const struct mf_ctl_row *row = command->node->row;
	uint64_t value;
	int error;

	if (!row)
		return mf_ctl_fail(command, -EISDIR, "is a folder");
	if (!(row->mode & 0222) || (!row->store && !row->set))
		return mf_ctl_fail(command, -EACCES, "is not written with commands");
	error = check_text(command);
	if (error)
		return error;
	if (!mf_ctl_alive(command->m, command->node))
		return mf_ctl_fail(command, -ENODEV, "has gone");
	if (row->store)
		return row->store(command);
	error = parse_value(command, &value);
	return error ? error : row->set(command, value);
}

int mf_ctl_store(struct memfs *m, const struct mf_ctl_node *node, const char *bytes, size_t length,
		 struct mf_outbuf *reply, struct mf_cancel *cancel)
{
	struct mf_outbuf path = MF_OUTBUF_INIT, unread = MF_OUTBUF_INIT;
	struct mf_ctl_command command = {
		.m = m,
		.node = node,
		.text = { bytes, length },
		.reply = reply ? reply : &unread,
		.cancel = cancel,
	};
	int error;

	mf_outbuf_clear(command.reply);
	error = perform(&command);
	mf_ctl_path(node, &path);
	finish(m, path.data ? path.data : "", error, command.why, command.reply);
	mf_outbuf_free(&path);
	mf_outbuf_free(&unread);
	return error;
}

bool mf_ctl_waits(const struct mf_ctl_node *node, const char *bytes, size_t length)
{
	struct mf_text text = { bytes, length };

	if (!node->row || !node->row->waits || length > MF_CTL_WRITE_MAX)
		return false;
	if (text.length && text.at[text.length - 1] == '\n')
		text.length--;
	return node->row->waits(text);
}

/* --- mkdir and rmdir --- */

static void child_path(const struct mf_ctl_node *dir, struct mf_text name, char *out, size_t size)
{
	struct mf_outbuf path = MF_OUTBUF_INIT;
	int length = name.length > 255 ? 255 : (int)name.length;

	mf_ctl_path(dir, &path);
	snprintf(out, size, "%s%s%.*s", path.length ? path.data : "", path.length ? "/" : "", length,
		 name.at);
	mf_outbuf_free(&path);
}

static const char *task_reason(int error)
{
	switch (error) {
	case -EINVAL:
		return "a name is 1 to 64 of A-Z a-z 0-9 . _ : -";
	case -EEXIST:
		return "there is a task of this name";
	case -ENOENT:
		return "no such task";
	case -ENOSPC:
		return "as many tasks as tune/max_tasks allows";
	case -EBUSY:
		return "the default task, a task with live allocations, or one in use";
	default:
		return "";
	}
}

int mf_ctl_mkdir(struct memfs *m, const struct mf_ctl_node *dir, struct mf_text name)
{
	struct mf_task *task;
	const char *why = "folders are made in tasks/ only";
	char path[400];
	int error = -EPERM;

	if (mf_ctl_children(dir) == MF_CTL_PER_TASK) {
		error = mf_task_create(m, name, &task);
		why = task_reason(error);
	}
	child_path(dir, name, path, sizeof(path));
	finish(m, path, error, why, NULL);
	return error;
}

int mf_ctl_rmdir(struct memfs *m, const struct mf_ctl_node *dir, struct mf_text name)
{
	struct mf_outbuf reply = MF_OUTBUF_INIT;
	char why[256] = "folders are removed in tasks/, live/ and slab/ only";
	char path[400];
	int error = -EPERM;

	switch (mf_ctl_children(dir)) {
	case MF_CTL_PER_TASK:
		error = mf_task_destroy(m, name);
		snprintf(why, sizeof(why), "%s", task_reason(error));
		break;
	case MF_CTL_PER_LIVE:
		why[0] = '\0';
		error = mf_live_free(m, name, 0, &reply, why, sizeof(why));
		break;
	case MF_CTL_PER_CACHE:
		why[0] = '\0';
		error = mf_cache_destroy(m->slabs, name, why, sizeof(why));
		break;
	default:
		break;
	}
	child_path(dir, name, path, sizeof(path));
	finish(m, path, error, why, NULL);
	mf_outbuf_free(&reply);
	return error;
}
