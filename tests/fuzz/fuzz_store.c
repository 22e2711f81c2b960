/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Commands to the files of a small instance.  Each line of the input is one:
 *
 *	PATH TEXT      the text with its newline is stored to the file
 *	PATH/          makes the folder PATH
 *	!PATH          removes it
 *
 * A PATH that leads to no file chooses one by its bytes.  Whatever a command
 * does, the full check says ok.  One that fails changes nothing anybody can
 * read, but for last_cmd_status and the reply, which tell why; only a lack of
 * memory may have moved what counts and measures.  What a successful command
 * leaves in a file can be written back and changes nothing.
 */
#include "fuzz.h"

#include "ctl/ctl.h"

#include <errno.h>

#define MAX_FILES 3000
#define MAX_COMMANDS 24

struct store {
	struct memfs *m;
	struct mf_ctl_node files[MAX_FILES]; /* of the moment: see list_files() */
	unsigned nr_files;
	struct mf_outbuf strict, loose; /* what all files hold, see print_all() */
};

/* --- all files --- */

struct folder {
	struct store *store;
	struct mf_ctl_node children[32];
	unsigned nr;
};

static bool note_child(void *arg, const char *name, const struct mf_ctl_node *child, uint64_t next_cursor)
{
	struct folder *folder = arg;

	(void)next_cursor;
	/* The caches of kmalloc have the files of any other: one of them is enough. */
	if (!strncmp(name, "kmalloc-", 8) && strcmp(name, "kmalloc-64") != 0)
		return true;
	if (!mf_ctl_is_dir(child)) {
		FUZZ_CHECK(folder->store->nr_files < MAX_FILES);
		folder->store->files[folder->store->nr_files++] = *child;
	} else if (folder->nr < sizeof(folder->children) / sizeof(folder->children[0])) {
		folder->children[folder->nr++] = *child;
	}
	return true;
}

static void list_folder(struct store *store, const struct mf_ctl_node *dir)
{
	struct folder folder;

	folder.store = store;
	folder.nr = 0;
	mf_ctl_list(store->m, dir, 0, note_child, &folder);
	for (unsigned i = 0; i < folder.nr; i++)
		list_folder(store, &folder.children[i]);
}

static void list_files(struct store *store)
{
	struct mf_ctl_node root;

	store->nr_files = 0;
	mf_ctl_root(store->m, &root);
	list_folder(store, &root);
}

static bool begins(const char *text, const char *word)
{
	return !strncmp(text, word, strlen(word));
}

/* last_cmd_status is meant to change, debug/check counts its locks; the others repeat what is printed elsewhere. */
static bool is_left_out(const char *path)
{
	return !strcmp(path, "last_cmd_status") || !strcmp(path, "README") || !strcmp(path, "debug/check") ||
	       begins(path, "stats/counters/");
}

/*
 * Counts and measures, which an allocation that found no memory or addresses has
 * moved, and the end of a cache that turned out to be in use.
 */
static bool is_loose(const char *path)
{
	return begins(path, "stats/") || begins(path, "nodes/") || begins(path, "vmalloc/") ||
	       begins(path, "slab/") || begins(path, "debug/fault/");
}

/* What every file holds now: strict what no failure may change, loose the rest. */
static void print_all(struct store *store)
{
	mf_outbuf_clear(&store->strict);
	mf_outbuf_clear(&store->loose);
	list_files(store);
	for (unsigned i = 0; i < store->nr_files; i++) {
		const struct mf_ctl_node *file = &store->files[i];
		struct mf_outbuf path = MF_OUTBUF_INIT, *out;

		mf_ctl_path(file, &path);
		out = is_loose(path.data) ? &store->loose : &store->strict;
		if (!is_left_out(path.data)) {
			mf_outbuf_printf(out, "%s\n", path.data);
			if (file->row->type != MF_CTL_MEMORY)
				FUZZ_CHECK(mf_ctl_show(store->m, file, out) == 0);
		}
		mf_outbuf_free(&path);
	}
}

static void check_same(const struct mf_outbuf *before, const struct mf_outbuf *now)
{
	size_t at = 0;

	while (at < before->length && at < now->length && before->data[at] == now->data[at])
		at++;
	if (at < before->length || at < now->length)
		fprintf(stderr, "changed at: %.80s\n", before->data + (at > 40 ? at - 40 : 0));
	FUZZ_CHECK(at == before->length && at == now->length);
}

/* --- commands --- */

static void show(struct store *store, const char *path, struct mf_outbuf *out)
{
	struct mf_ctl_node node;

	FUZZ_CHECK(mf_ctl_resolve(store->m, mf_text_of(path), &node) == 0);
	FUZZ_CHECK(mf_ctl_show(store->m, &node, out) == 0);
}

/* The reason stands in last_cmd_status, and is what the descriptor reads (@reply; NULL for a folder). */
static void check_status(struct store *store, int error, const struct mf_outbuf *reply)
{
	struct mf_outbuf status = MF_OUTBUF_INIT;

	show(store, "last_cmd_status", &status);
	FUZZ_CHECK(status.length && strchr(status.data, '\n') == status.data + status.length - 1);
	FUZZ_CHECK((error == 0) == !strcmp(status.data, "ok\n"));
	if (error && reply)
		FUZZ_CHECK(reply->length && !strcmp(reply->data, status.data));
	mf_outbuf_free(&status);
}

static bool may_have_moved(int error)
{
	return error == -ENOMEM || error == -EINTR || error == -ENOSPC || error == -EBUSY;
}

/* store->strict and ->loose are of before the command.  The check comes last: its locks are counted. */
static void check_after(struct store *store, int error)
{
	struct mf_outbuf strict = store->strict, loose = store->loose;

	store->strict = store->loose = (struct mf_outbuf)MF_OUTBUF_INIT;
	if (error) {
		print_all(store);
		check_same(&strict, &store->strict);
		if (!may_have_moved(error))
			check_same(&loose, &store->loose);
	}
	mf_outbuf_free(&strict);
	mf_outbuf_free(&loose);
	fuzz_check_engine(store->m);
}

/* What the file prints is taken and printed again. */
static void write_back(struct store *store, const struct mf_ctl_node *file)
{
	struct mf_outbuf text = MF_OUTBUF_INIT, again = MF_OUTBUF_INIT;

	/* A counter of a cache is only cleared. */
	if ((file->row->show || file->row->get) && mf_ctl_alive(store->m, file) &&
	    strcmp(file->row->path, "slab/{cache}/{slabstat}") != 0) {
		FUZZ_CHECK(mf_ctl_show(store->m, file, &text) == 0);
		FUZZ_CHECK(mf_ctl_store(store->m, file, text.data, text.length, NULL, NULL) == 0);
		FUZZ_CHECK(mf_ctl_show(store->m, file, &again) == 0);
		check_same(&text, &again);
	}
	mf_outbuf_free(&text);
	mf_outbuf_free(&again);
}

static void run_store(struct store *store, const struct mf_ctl_node *file, struct mf_text text)
{
	/* Nobody could end a wait for memory here: it is cancelled before it begins. */
	struct mf_cancel cancel = { 1 };
	bool waits = mf_ctl_waits(file, text.at, text.length);
	struct mf_outbuf reply = MF_OUTBUF_INIT;
	int error = mf_ctl_store(store->m, file, text.at, text.length, &reply, waits ? &cancel : NULL);

	FUZZ_CHECK(error <= 0 && error != -ENOSYS);
	check_status(store, error, &reply);
	check_after(store, error);
	if (!error)
		write_back(store, file);
	mf_outbuf_free(&reply);
}

/* Makes or removes the folder @path. */
static void run_folder(struct store *store, struct mf_text path, bool make)
{
	struct mf_text parent = path, name = path;
	struct mf_ctl_node dir;
	int error;

	for (size_t i = 0; i < path.length; i++)
		if (path.at[i] == '/') {
			parent.length = i;
			name = (struct mf_text){ path.at + i + 1, path.length - i - 1 };
		}
	if (name.at == path.at)
		parent.length = 0;
	if (mf_ctl_resolve(store->m, parent, &dir) || !mf_ctl_is_dir(&dir))
		return;
	error = make ? mf_ctl_mkdir(store->m, &dir, name) : mf_ctl_rmdir(store->m, &dir, name);
	check_status(store, error, NULL);
	check_after(store, error);
}

/* The file of this path, else one that its bytes choose. */
static struct mf_ctl_node choose_file(struct store *store, struct mf_text path)
{
	struct mf_ctl_node node;
	unsigned number = 0;

	if (!mf_ctl_resolve(store->m, path, &node) && !mf_ctl_is_dir(&node))
		return node;
	for (size_t i = 0; i < path.length; i++)
		number = number * 31 + (unsigned char)path.at[i];
	return store->files[number % store->nr_files];
}

/* A line with its newline, if it has one. */
static void run_line(struct store *store, struct mf_text line)
{
	struct mf_text path = mf_text_until(&line, ' ');
	struct mf_ctl_node file;

	if (path.length && path.at[path.length - 1] == '\n')
		path.length--;
	if (path.length && path.at[0] == '!') {
		run_folder(store, (struct mf_text){ path.at + 1, path.length - 1 }, false);
	} else if (path.length && path.at[path.length - 1] == '/') {
		run_folder(store, (struct mf_text){ path.at, path.length - 1 }, true);
	} else {
		file = choose_file(store, path);
		run_store(store, &file, line);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct mf_text rest = { (const char *)bytes, length };
	struct store *store = calloc(1, sizeof(*store));

	FUZZ_CHECK(store);
	store->m = fuzz_instance("topology=4M:cpus=2+2M:cpus=1+0:cpus=1,tune/min_free_kbytes=64");
	for (unsigned i = 0; i < MAX_COMMANDS && rest.length; i++) {
		struct mf_text line = mf_text_until(&rest, '\n');

		if (line.at + line.length < (const char *)bytes + length)
			line.length++;
		print_all(store);
		run_line(store, line);
	}
	mf_engine_destroy(store->m);
	mf_outbuf_free(&store->strict);
	mf_outbuf_free(&store->loose);
	free(store);
	return 0;
}
