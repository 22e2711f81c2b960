/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * FUSE requests to control tree calls.  Nothing is decided here that a row of
 * the table can decide.
 *
 * getattr, lookup, the listings and statfs take no lock of the engine's pages,
 * so they answer whatever the engine does.  Requests without a handler here
 * (extended attributes, access, flush) are answered by libfuse with ENOSYS,
 * which the kernel takes as "never ask again" and turns into its own answer:
 * a user never sees it.
 */
#include "commands.h"
#include "fs.h"
#include "handle.h"
#include "notify.h"

#include "engine/live.h"
#include "page/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define BLOCK_SIZE 65536      /* else bash cuts a long echo at 4096 bytes */
#define STATIC_TIMEOUT 3600.0 /* seconds; names that no command makes or ends */

static struct fs *fs_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* Permission bits of a row under mode=: each class gets what the owner has, within its digit of mode=. */
static mode_t permissions(const struct fs *fs, const struct mf_ctl_node *node)
{
	unsigned row = mf_ctl_mode(node), owner = row >> 6 & 7, mode = 0;

	if (fs->options->mode == 0755)
		return (mode_t)row;
	for (unsigned shift = 0; shift <= 6; shift += 3) {
		unsigned class = owner & (fs->options->mode >> shift & 7);

		if (!(row >> shift & 4))
			class &= ~4u; /* what the row lets nobody read stays so */
		mode |= class << shift;
	}
	return (mode_t)mode;
}

static void fill_attr(const struct fs *fs, const struct mf_ctl_node *node, struct mf_live *live,
		      struct stat *out)
{
	bool folder = mf_ctl_is_dir(node);

	memset(out, 0, sizeof(*out));
	out->st_ino = node->inode;
	out->st_mode = (folder ? S_IFDIR : S_IFREG) | permissions(fs, node);
	out->st_nlink = 1; /* of a folder: its subfolders are not counted */
	out->st_uid = fs->options->uid;
	out->st_gid = fs->options->gid;
	out->st_blksize = BLOCK_SIZE;
	out->st_atim = fs->mounted_at;
	out->st_mtim = fs->mounted_at;
	out->st_ctim = fs->mounted_at;
	if (live) {
		out->st_size = (off_t)mf_live_bytes(live);
		out->st_blocks = out->st_size / 512;
	}
}

static double timeout_of(const struct mf_ctl_node *node)
{
	return node->serial ? 0 : STATIC_TIMEOUT;
}

/* How long the kernel may use a name without asking: see inode.c for files that may wait. */
static double name_timeout_of(const struct mf_ctl_node *node)
{
	return fs_may_wait(node) ? 0 : timeout_of(node);
}

/* Makes the kernel know a child: one lookup is counted. */
static int fill_entry(struct fs *fs, fuse_ino_t parent, const struct mf_ctl_node *node,
		      struct fuse_entry_param *out)
{
	struct mf_live *live;
	fuse_ino_t id;
	int error = fs_inode_remember(fs, parent, node, &id, &live);

	if (error)
		return error;
	memset(out, 0, sizeof(*out));
	out->ino = id;
	out->entry_timeout = name_timeout_of(node);
	out->attr_timeout = timeout_of(node);
	fill_attr(fs, node, live, &out->attr);
	if (live)
		mf_live_put(live);
	return 0;
}

static void reply_entry(fuse_req_t req, fuse_ino_t parent, const struct mf_ctl_node *node)
{
	struct fuse_entry_param entry;
	int error = fill_entry(fs_of(req), parent, node, &entry);

	if (error)
		fuse_reply_err(req, -error);
	else if (fuse_reply_entry(req, &entry))
		fs_inode_forget(fs_of(req), entry.ino, 1);
}

/* The path of @name in a folder, for the record of a refusal; name NULL: the node itself. */
static void refuse(fuse_req_t req, fuse_ino_t ino, const char *name, int error, const char *why)
{
	struct mf_outbuf path = MF_OUTBUF_INIT;
	struct mf_ctl_node node;

	if (!fs_inode_get(fs_of(req), ino, &node, NULL)) {
		mf_ctl_path(&node, &path);
		if (name)
			mf_outbuf_printf(&path, "%s%s", path.length ? "/" : "", name);
		mf_ctl_refused(fs_of(req)->m, path.data ? path.data : "", error, why);
	}
	mf_outbuf_free(&path);
	fuse_reply_err(req, -error);
}

/* --- names --- */

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct mf_ctl_node dir, child;
	int error = fs_inode_get(fs_of(req), parent, &dir, NULL);

	if (!error)
		error = mf_ctl_lookup(fs_of(req)->m, &dir, mf_text_of(name), &child);
	if (error)
		fuse_reply_err(req, -error);
	else
		reply_entry(req, parent, &child);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	fs_inode_forget(fs_of(req), ino, nlookup);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		fs_inode_forget(fs_of(req), forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct memfs *m = fs_of(req)->m;
	struct mf_ctl_node dir, child;
	int error = fs_inode_get(fs_of(req), parent, &dir, NULL);

	(void)mode;
	if (!error)
		error = mf_ctl_mkdir(m, &dir, mf_text_of(name));
	if (!error)
		error = mf_ctl_lookup(m, &dir, mf_text_of(name), &child);
	if (error)
		fuse_reply_err(req, -error);
	else
		reply_entry(req, parent, &child);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct mf_ctl_node dir;
	int error = fs_inode_get(fs_of(req), parent, &dir, NULL);

	if (!error)
		error = mf_ctl_rmdir(fs_of(req)->m, &dir, mf_text_of(name));
	fuse_reply_err(req, -error);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
	(void)mode;
	(void)device;
	refuse(req, parent, name, -EPERM, "no node can be made here");
}

/* The kernel asks for this only when the name is not there. */
static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi)
{
	(void)mode;
	(void)fi;
	refuse(req, parent, name, -ENOENT, "no such file, and none can be made");
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	refuse(req, parent, name, -EPERM, "files cannot be removed");
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	(void)target;
	refuse(req, parent, name, -EPERM, "no link can be made here");
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	(void)ino;
	refuse(req, parent, name, -EPERM, "no link can be made here");
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		      const char *new_name, unsigned flags)
{
	(void)new_parent;
	(void)new_name;
	(void)flags;
	refuse(req, parent, name, -EPERM, "nothing can be renamed");
}

/* --- attributes --- */

static void reply_attr(fuse_req_t req, fuse_ino_t ino)
{
	struct fs *fs = fs_of(req);
	struct mf_ctl_node node;
	struct mf_live *live;
	struct stat attr;
	int error = fs_inode_get(fs, ino, &node, &live);

	if (!error && node.serial && !mf_ctl_alive(fs->m, &node))
		error = -ENODEV;
	if (error) {
		fuse_reply_err(req, -error);
	} else {
		fill_attr(fs, &node, live, &attr);
		fuse_reply_attr(req, &attr, timeout_of(&node));
	}
	if (live)
		mf_live_put(live);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)fi;
	reply_attr(req, ino);
}

/* Sizes and times are accepted and change nothing; mode and owner are the mount's. */
static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		       struct fuse_file_info *fi)
{
	struct mf_ctl_node node;

	(void)attr;
	(void)fi;
	if (to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
		refuse(req, ino, NULL, -EPERM, "mode and owner are mount options");
		return;
	}
	if ((to_set & FUSE_SET_ATTR_SIZE) && !fs_inode_get(fs_of(req), ino, &node, NULL) &&
	    !(mf_ctl_mode(&node) & 0222)) {
		refuse(req, ino, NULL, -EACCES, "this file cannot be written");
		return;
	}
	reply_attr(req, ino);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	const struct fs *fs = fs_of(req);
	struct mf_zone_info zone;
	struct statvfs out = {
		.f_bsize = MEMFS_PAGE_SIZE,
		.f_frsize = MEMFS_PAGE_SIZE,
		.f_blocks = fs->m->topo->nr_pages,
		.f_namemax = MEMFS_NAME_MAX,
	};

	(void)ino;
	for (unsigned i = 0; i < MEMFS_MAX_NODES * MF_NR_ZONE_TYPES; i++)
		if (mf_node_isset(fs->m->topo->memory, (int)(i / MF_NR_ZONE_TYPES)) &&
		    mf_page_zone_info(fs->m->page, i, &zone))
			out.f_bfree += zone.free + zone.pcp_count;
	out.f_bavail = out.f_bfree;
	fuse_reply_statfs(req, &out);
}

/* --- listings --- */

struct listed {
	char name[256];
	struct mf_ctl_node node;
	uint64_t cursor;
};

/* Children are collected first: what an entry needs may take the locks that a listing holds. */
struct listing {
	struct listed *entries;
	size_t nr_entries, max_entries;
};

static bool collect(void *arg, const char *name, const struct mf_ctl_node *child, uint64_t next_cursor)
{
	struct listing *listing = arg;
	struct listed *entry = &listing->entries[listing->nr_entries];

	if (listing->nr_entries == listing->max_entries)
		return false;
	strncpy(entry->name, name, sizeof(entry->name) - 1);
	entry->name[sizeof(entry->name) - 1] = '\0';
	entry->node = *child;
	entry->cursor = next_cursor;
	listing->nr_entries++;
	return true;
}

/* A reply under construction; offsets 1 and 2 stand behind "." and "..", cursors follow from there. */
struct dir_reply {
	fuse_req_t req;
	fuse_ino_t dir;
	bool plus;
	char *bytes;
	size_t size, used;
};

/* One entry; false when it does not fit any more. */
static bool add_entry(struct dir_reply *reply, const char *name, const struct mf_ctl_node *node, off_t next)
{
	struct fs *fs = fs_of(reply->req);
	char *at = reply->bytes + reply->used;
	size_t rest = reply->size - reply->used, need;
	struct fuse_entry_param entry = { .attr.st_ino = node->inode };

	entry.attr.st_mode = mf_ctl_is_dir(node) ? S_IFDIR : S_IFREG;
	if (!reply->plus) {
		need = fuse_add_direntry(reply->req, at, rest, name, &entry.attr, next);
	} else {
		bool remember = strcmp(name, ".") && strcmp(name, "..");

		need = fuse_add_direntry_plus(reply->req, NULL, 0, name, NULL, 0);
		if (need > rest)
			return false;
		if (remember && fill_entry(fs, reply->dir, node, &entry))
			return true; /* ended while it was listed: left out */
		fuse_add_direntry_plus(reply->req, at, rest, name, &entry, next);
	}
	if (need > rest)
		return false;
	reply->used += need;
	return true;
}

static void add_children(struct dir_reply *reply, const struct mf_ctl_node *dir, uint64_t cursor)
{
	struct listing listing = { .max_entries = reply->size / 64 + 1 };

	listing.entries = malloc(listing.max_entries * sizeof(*listing.entries));
	if (!listing.entries)
		return;
	mf_ctl_list(fs_of(reply->req)->m, dir, cursor, collect, &listing);
	for (size_t i = 0; i < listing.nr_entries; i++) {
		const struct listed *entry = &listing.entries[i];

		if (!add_entry(reply, entry->name, &entry->node, (off_t)entry->cursor + 2))
			break;
	}
	free(listing.entries);
}

static void list(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, bool plus)
{
	struct dir_reply reply = { .req = req, .dir = ino, .plus = plus, .size = size };
	struct mf_ctl_node dir;
	int error = fs_inode_get(fs_of(req), ino, &dir, NULL);

	if (!error && dir.serial && !mf_ctl_alive(fs_of(req)->m, &dir))
		error = -ENOENT;
	if (!error) {
		reply.bytes = malloc(size ? size : 1);
		error = reply.bytes ? 0 : -ENOMEM;
	}
	if (error) {
		fuse_reply_err(req, -error);
		return;
	}
	if ((offset > 0 || add_entry(&reply, ".", &dir, 1)) &&
	    (offset > 1 || add_entry(&reply, "..", &dir, 2)))
		add_children(&reply, &dir, offset > 2 ? (uint64_t)offset - 2 : 0);
	fuse_reply_buf(req, reply.bytes, reply.used);
	free(reply.bytes);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	(void)fi;
	list(req, ino, size, offset, false);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
			   struct fuse_file_info *fi)
{
	(void)fi;
	list(req, ino, size, offset, true);
}

/* --- files --- */

/* default_permissions lets root pass; what a file cannot do is refused to root as well. */
static int check_access(const struct mf_ctl_node *node, int flags)
{
	unsigned mode = mf_ctl_mode(node);
	int access = flags & O_ACCMODE;

	if (access != O_RDONLY && !(mode & 0222))
		return -EACCES;
	if (access == O_RDONLY && !(mode & 0444))
		return -EACCES;
	return 0;
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct fs_handle *handle = NULL;
	struct mf_ctl_node node;
	struct mf_live *live;
	int error = fs_inode_get(fs, ino, &node, &live);

	if (!error && node.serial && !mf_ctl_alive(fs->m, &node))
		error = -ENODEV;
	if (!error)
		error = check_access(&node, fi->flags);
	if (!error) {
		handle = fs_handle_new(fs, &node, live);
		error = handle ? 0 : -ENOMEM;
	}
	if (error) {
		if (live)
			mf_live_put(live);
		fuse_reply_err(req, -error);
		return;
	}
	fi->fh = (uintptr_t)handle;
	fi->direct_io = !live;
	if (fuse_reply_open(req, fi))
		fs_handle_free(fs, handle);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs_handle *handle = fs_handle_of(fi);

	(void)ino;
	fs_notify_forget(fs_of(req), handle);
	fs_handle_free(fs_of(req), handle);
	fuse_reply_err(req, 0);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct fs_handle *handle = fs_handle_of(fi);

	(void)ino;
	if (handle->live)
		fs_data_read(req, handle->live, size, offset);
	else
		fs_handle_read(fs_of(req), handle, req, size, offset);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
		     struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct fs_handle *handle = fs_handle_of(fi);

	(void)ino;
	if (handle->live)
		fs_data_write(req, handle->live, bytes, size, offset);
	else if (size > MF_CTL_WRITE_MAX)
		fs_handle_refuse(fs, handle, req, offset, -E2BIG, "a command has at most 4096 bytes");
	else if (mf_ctl_waits(&handle->node, bytes, size) || fs_command_may_queue(fs, handle))
		fs_command_defer(fs, handle, req, bytes, size, offset);
	else
		fs_command_run(fs, handle, req, bytes, size, offset);
}

static void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *ph)
{
	(void)ino;
	fuse_reply_poll(req, fs_notify_poll(fs_of(req), fs_handle_of(fi), ph));
}

/* A command is done when its write returns, and memory has no disk behind it. */
static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	(void)fi;
	fuse_reply_err(req, 0);
}

static void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void *arg, struct fuse_file_info *fi,
		     unsigned flags, const void *in, size_t in_size, size_t out_size)
{
	(void)ino;
	(void)command;
	(void)arg;
	(void)fi;
	(void)flags;
	(void)in;
	(void)in_size;
	(void)out_size;
	fuse_reply_err(req, ENOTTY);
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
			 struct fuse_file_info *fi)
{
	(void)ino;
	(void)mode;
	(void)offset;
	(void)length;
	(void)fi;
	fuse_reply_err(req, EOPNOTSUPP);
}

/* The caller goes on with plain reads and writes. */
static void op_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t off_in, struct fuse_file_info *fi_in,
			       fuse_ino_t ino_out, off_t off_out, struct fuse_file_info *fi_out,
			       size_t length, int flags)
{
	(void)ino_in;
	(void)off_in;
	(void)fi_in;
	(void)ino_out;
	(void)off_out;
	(void)fi_out;
	(void)length;
	(void)flags;
	fuse_reply_err(req, EOPNOTSUPP);
}

const struct fuse_lowlevel_ops fs_ops = {
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.symlink = op_symlink,
	.rename = op_rename,
	.link = op_link,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.release = op_release,
	.fsync = op_fsync,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.statfs = op_statfs,
	.create = op_create,
	.ioctl = op_ioctl,
	.poll = op_poll,
	.fallocate = op_fallocate,
	.copy_file_range = op_copy_file_range,
};
