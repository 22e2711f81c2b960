/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tree of control files, derived from the paths of the rows: there is no
 * second list of folders.  Looking a name up costs a walk over the few fixed
 * names of one folder, or one look into a table (node numbers, hashed names).
 *
 * Inode numbers: kind << 56 | object << FILE_BITS | file.  "file" is the row or the
 * folder's code, "object" the node, zone, counter or the serial of the task,
 * the allocation or the name of the cache (with a counter of it: both); serials
 * are never used again, so neither are inodes.
 *
 * Locks: that of a table of names (tasks, live, caches), for one step in it.
 */
#include "ctl/ctl_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOT_INODE 1
#define FILE_BITS 12			   /* of an inode number */
#define STAT_BITS 6			   /* of an object's number: which counter of a cache */
#define DYNAMIC_CURSOR (UINT64_C(1) << 40) /* cursors of a wildcard's names stand above this */

_Static_assert(MF_NR_SLAB_STATS <= 1 << STAT_BITS, "the counters of a cache have inode numbers");

/* --- patterns --- */

/* Component @depth of a path; length 0 if it has fewer. */
static struct mf_text component(const char *path, unsigned depth)
{
	struct mf_text rest = mf_text_of(path);
	struct mf_text part = mf_text_until(&rest, '/');

	while (depth-- > 0)
		part = mf_text_until(&rest, '/');
	return part;
}

/* How many bytes of the path its first @depth components take. */
static size_t prefix_length(const char *path, unsigned depth)
{
	const char *end = path;

	while (depth-- > 0) {
		end += strcspn(end, "/");
		if (depth > 0 && *end)
			end++;
	}
	return (size_t)(end - path);
}

/* The path lies below the folder that @depth components of @folder name. */
static bool lies_below(const char *path, const char *folder, unsigned depth)
{
	size_t length = prefix_length(folder, depth);

	return depth == 0 || (strncmp(path, folder, length) == 0 && path[length] == '/');
}

static uint16_t folder_code(size_t first_row, unsigned depth)
{
	return depth ? (uint16_t)(first_row * MF_CTL_MAX_DEPTH + depth) : MF_CTL_ROOT_CODE;
}

static enum mf_ctl_kind kind_of(struct mf_text part)
{
	static const char *const wildcards[] = {
		[MF_CTL_PER_NODE] = "node*",	    [MF_CTL_PER_ZONE] = "{zone}",
		[MF_CTL_PER_TASK] = "{task}",	    [MF_CTL_PER_LIVE] = "{live}",
		[MF_CTL_PER_COUNTER] = "{counter}", [MF_CTL_PER_FAULT] = "{fault}",
		[MF_CTL_PER_CACHE] = "{cache}",	    [MF_CTL_PER_SLAB_STAT] = "{slabstat}",
	};

	for (unsigned kind = MF_CTL_PER_NODE; kind < sizeof(wildcards) / sizeof(wildcards[0]); kind++)
		if (mf_text_is(part, wildcards[kind]))
			return kind;
	return MF_CTL_STATIC;
}

/* --- building --- */

static bool has_entry(const struct mf_ctl_folder *folder, struct mf_text name)
{
	for (unsigned i = 0; i < folder->nr_entries; i++)
		if (folder->entries[i].name.length == name.length &&
		    memcmp(folder->entries[i].name.at, name.at, name.length) == 0)
			return true;
	return false;
}

/* Row @row is a child of the folder, or the first one below a child of it. */
static int add_entry(struct mf_ctl_folder *folder, size_t row, unsigned depth)
{
	const struct mf_ctl_row *file = &mf_ctl_rows[row];
	struct mf_text name = component(file->path, depth);
	bool is_file = component(file->path, depth + 1).length == 0;
	struct mf_ctl_entry *grown;
	struct mf_ctl_entry entry = {
		.name = name,
		.kind = kind_of(name),
		.row = is_file ? file : NULL,
		.nodes = file->nodes,
		.code = folder_code(row, depth + 1),
	};

	if (has_entry(folder, name))
		return 0;
	grown = realloc(folder->entries, (folder->nr_entries + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	folder->entries = grown;
	if (entry.kind == MF_CTL_STATIC) {
		/* The wildcard stays last. */
		memmove(&grown[folder->nr_static + 1], &grown[folder->nr_static],
			(folder->nr_entries - folder->nr_static) * sizeof(*grown));
		grown[folder->nr_static++] = entry;
	} else {
		grown[folder->nr_entries] = entry;
	}
	folder->nr_entries++;
	return 0;
}

static int build_folder(struct mf_ctl *ctl, size_t first_row, unsigned depth)
{
	const char *path = mf_ctl_rows[first_row].path;
	uint16_t code = folder_code(first_row, depth);
	struct mf_ctl_folder *folder = &ctl->folders[code];
	int error = 0;

	for (size_t row = first_row; row < mf_nr_ctl_rows && !error; row++)
		if (lies_below(mf_ctl_rows[row].path, path, depth))
			error = add_entry(folder, row, depth);
	for (unsigned i = 0; i < folder->nr_entries; i++)
		if (folder->entries[i].row)
			folder->entries[i].code = code;
	return error;
}

/* No row before this one lies in the folder. */
static bool is_first_below(size_t row, unsigned depth)
{
	for (size_t before = 0; before < row; before++)
		if (lies_below(mf_ctl_rows[before].path, mf_ctl_rows[row].path, depth))
			return false;
	return true;
}

int mf_ctl_tree_create(struct mf_ctl *ctl)
{
	int error = 0;

	if (mf_nr_ctl_rows * (MF_CTL_MAX_DEPTH + 1) + 2 > 1u << FILE_BITS)
		return -ENOSPC;
	ctl->nr_codes = (unsigned)mf_nr_ctl_rows * MF_CTL_MAX_DEPTH;
	ctl->folders = calloc(ctl->nr_codes, sizeof(*ctl->folders));
	if (!ctl->folders)
		return -ENOMEM;
	for (size_t row = 0; row < mf_nr_ctl_rows; row++) {
		const char *path = mf_ctl_rows[row].path;

		for (unsigned depth = 0; component(path, depth + 1).length && !error; depth++)
			if (is_first_below(row, depth + 1))
				error = build_folder(ctl, row, depth + 1);
	}
	return error ? error : build_folder(ctl, 0, 0);
}

void mf_ctl_tree_destroy(struct mf_ctl *ctl)
{
	for (unsigned code = 0; ctl->folders && code < ctl->nr_codes; code++)
		free(ctl->folders[code].entries);
	free(ctl->folders);
	ctl->folders = NULL;
}

/* --- nodes --- */

/* The pattern of a node's path, and how many components of it are the node's. */
static const char *pattern_of(const struct mf_ctl_node *node, unsigned *depth)
{
	*depth = node->row ? MF_CTL_MAX_DEPTH : node->dir % MF_CTL_MAX_DEPTH;
	return node->row ? node->row->path : mf_ctl_rows[node->dir / MF_CTL_MAX_DEPTH].path;
}

/* The last wildcard on the way to a node tells what its object is. */
static enum mf_ctl_kind object_kind(const struct mf_ctl_node *node)
{
	enum mf_ctl_kind kind = MF_CTL_STATIC;
	unsigned depth;
	const char *path = pattern_of(node, &depth);

	for (unsigned i = 0; i < depth; i++) {
		struct mf_text part = component(path, i);

		if (!part.length)
			break;
		if (kind_of(part) != MF_CTL_STATIC)
			kind = kind_of(part);
	}
	return kind;
}

static uint64_t object_number(const struct mf_ctl_node *node, enum mf_ctl_kind kind)
{
	switch (kind) {
	case MF_CTL_PER_NODE:
		return (uint64_t)node->node;
	case MF_CTL_PER_ZONE:
		return (uint64_t)node->node * MF_NR_ZONE_TYPES + (uint64_t)node->zone;
	case MF_CTL_PER_COUNTER:
	case MF_CTL_PER_FAULT:
		return (uint64_t)node->counter;
	case MF_CTL_PER_TASK:
	case MF_CTL_PER_LIVE:
	case MF_CTL_PER_CACHE:
		return node->serial;
	case MF_CTL_PER_SLAB_STAT:
		return node->serial << STAT_BITS | (uint64_t)node->counter;
	case MF_CTL_STATIC:
		break;
	}
	return 0;
}

static void set_inode(struct mf_ctl_node *node)
{
	uint64_t file = node->row ? (uint64_t)(node->row - mf_ctl_rows) + 2 : mf_nr_ctl_rows + 2u + node->dir;
	enum mf_ctl_kind kind = object_kind(node);

	if (!node->row && node->dir == MF_CTL_ROOT_CODE)
		node->inode = ROOT_INODE;
	else
		node->inode = (uint64_t)kind << 56 | object_number(node, kind) << FILE_BITS | file;
}

void mf_ctl_root(struct memfs *m, struct mf_ctl_node *out)
{
	(void)m;
	memset(out, 0, sizeof(*out));
	out->dir = MF_CTL_ROOT_CODE;
	out->node = out->zone = out->counter = -1;
	set_inode(out);
}

bool mf_ctl_is_dir(const struct mf_ctl_node *node)
{
	return !node->row;
}

enum mf_ctl_kind mf_ctl_children(const struct mf_ctl_node *dir)
{
	unsigned first = dir->dir / MF_CTL_MAX_DEPTH, depth = dir->dir % MF_CTL_MAX_DEPTH;
	const char *folder = mf_ctl_rows[first].path;

	if (!depth || dir->row)
		return MF_CTL_STATIC;
	/* Fixed files may stand before them. */
	for (size_t row = first; row < mf_nr_ctl_rows && lies_below(mf_ctl_rows[row].path, folder, depth);
	     row++)
		switch (kind_of(component(mf_ctl_rows[row].path, depth))) {
		case MF_CTL_PER_TASK:
			return MF_CTL_PER_TASK;
		case MF_CTL_PER_LIVE:
			return MF_CTL_PER_LIVE;
		case MF_CTL_PER_CACHE:
			return MF_CTL_PER_CACHE;
		default:
			break;
		}
	return MF_CTL_STATIC;
}

unsigned mf_ctl_mode(const struct mf_ctl_node *node)
{
	if (node->row)
		return node->row->mode;
	return mf_ctl_children(node) != MF_CTL_STATIC ? 0755 : 0555;
}

static void print_component(const struct mf_ctl_node *node, struct mf_text part, struct mf_outbuf *out)
{
	switch (kind_of(part)) {
	case MF_CTL_PER_NODE:
		mf_outbuf_printf(out, "node%d", node->node);
		return;
	case MF_CTL_PER_ZONE:
		mf_outbuf_puts(out, mf_zone_names[node->zone]);
		return;
	case MF_CTL_PER_TASK:
	case MF_CTL_PER_LIVE:
	case MF_CTL_PER_CACHE:
		mf_outbuf_puts(out, node->name);
		return;
	case MF_CTL_PER_COUNTER:
		mf_outbuf_puts(out, mf_stat_rows[node->counter].name);
		return;
	case MF_CTL_PER_FAULT:
		mf_outbuf_puts(out, mf_fault_name((enum mf_fault_point)node->counter));
		return;
	case MF_CTL_PER_SLAB_STAT:
		mf_outbuf_puts(out, mf_slab_stat_names[node->counter]);
		return;
	case MF_CTL_STATIC:
		break;
	}
	mf_outbuf_write(out, part.at, part.length);
}

void mf_ctl_path(const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	unsigned depth;
	const char *path = pattern_of(node, &depth);

	for (unsigned i = 0; i < depth; i++) {
		struct mf_text part = component(path, i);

		if (!part.length)
			break;
		if (i)
			mf_outbuf_puts(out, "/");
		print_component(node, part, out);
	}
}

/* --- looking up --- */

/* A row may be for allocations of some kinds only: the others have no such file. */
static bool has_file(const struct mf_ctl_node *dir, const struct mf_ctl_entry *entry)
{
	return !entry->row || !entry->row->live_kinds || entry->row->live_kinds & 1u << dir->live_kind;
}

static mf_nodemask entry_nodes(const struct memfs *m, const struct mf_ctl_entry *entry)
{
	return entry->nodes == MF_CTL_NODES_WITH_MEMORY ? m->topo->memory : m->topo->nodes;
}

static bool zone_is_populated(const struct memfs *m, int node, unsigned zone)
{
	const struct mf_topo_node *of = node >= 0 ? m->topo->node[node] : NULL;

	return of && of->zone[zone].nr_pages > 0;
}

/* "node12", without leading zeros. */
static bool match_node(struct mf_text name, mf_nodemask nodes, int16_t *out)
{
	int number = 0;

	if (name.length < 5 || name.length > 6 || memcmp(name.at, "node", 4) != 0)
		return false;
	if (name.length == 6 && name.at[4] == '0')
		return false;
	for (size_t i = 4; i < name.length; i++) {
		if (name.at[i] < '0' || name.at[i] > '9')
			return false;
		number = number * 10 + (name.at[i] - '0');
	}
	if (!mf_node_isset(nodes, number))
		return false;
	*out = (int16_t)number;
	return true;
}

static bool match_named(struct memfs *m, enum mf_ctl_kind kind, struct mf_text name, struct mf_ctl_node *out)
{
	struct mf_ctl_names names = mf_ctl_names(m, kind);
	bool live = kind == MF_CTL_PER_LIVE;
	const struct mf_named *found;

	mf_lock_acquire(names.lock);
	found = mf_name_table_find(names.table, name);
	if (found && live && !((const struct mf_live *)found)->ready)
		found = NULL;
	if (found) {
		out->serial = found->serial;
		memcpy(out->name, found->name, sizeof(out->name));
		if (live)
			out->live_kind = (uint8_t)((const struct mf_live *)found)->kind;
	}
	mf_lock_release(names.lock);
	return found;
}

/* Counters of all kinds: how many there are of a kind, and their names. */
static unsigned nr_counters(enum mf_ctl_kind kind)
{
	switch (kind) {
	case MF_CTL_PER_FAULT:
		return MF_NR_FAULT_POINTS;
	case MF_CTL_PER_SLAB_STAT:
		return MF_NR_SLAB_STATS;
	default:
		return MF_NR_STATS;
	}
}

static const char *counter_name(enum mf_ctl_kind kind, unsigned i)
{
	switch (kind) {
	case MF_CTL_PER_FAULT:
		return mf_fault_name(i);
	case MF_CTL_PER_SLAB_STAT:
		return mf_slab_stat_names[i];
	default:
		return mf_stat_rows[i].name;
	}
}

static bool match_counter(enum mf_ctl_kind kind, struct mf_text name, struct mf_ctl_node *out)
{
	for (unsigned i = 0; i < nr_counters(kind); i++)
		if (mf_text_is(name, counter_name(kind, i)))
			out->counter = (int16_t)i;
	return out->counter >= 0;
}

static bool match_wildcard(struct memfs *m, const struct mf_ctl_entry *entry, struct mf_text name,
			   struct mf_ctl_node *out)
{
	switch (entry->kind) {
	case MF_CTL_PER_NODE:
		return match_node(name, entry_nodes(m, entry), &out->node);
	case MF_CTL_PER_ZONE:
		for (unsigned zone = 0; zone < MF_NR_ZONE_TYPES; zone++)
			if (mf_text_is(name, mf_zone_names[zone]) && zone_is_populated(m, out->node, zone))
				out->zone = (int16_t)zone;
		return out->zone >= 0;
	case MF_CTL_PER_TASK:
	case MF_CTL_PER_LIVE:
	case MF_CTL_PER_CACHE:
		return match_named(m, entry->kind, name, out);
	case MF_CTL_PER_COUNTER:
	case MF_CTL_PER_FAULT:
	case MF_CTL_PER_SLAB_STAT:
		return match_counter(entry->kind, name, out);
	case MF_CTL_STATIC:
		break;
	}
	return false;
}

/* @dir's own node, zone, task ... go on to its child. */
static void become(const struct mf_ctl_node *dir, const struct mf_ctl_entry *entry, struct mf_ctl_node *child)
{
	*child = *dir;
	child->row = entry->row;
	child->dir = entry->code;
}

int mf_ctl_lookup(struct memfs *m, const struct mf_ctl_node *dir, struct mf_text name,
		  struct mf_ctl_node *out)
{
	const struct mf_ctl_folder *folder = &m->ctl->folders[dir->dir];
	struct mf_ctl_node child;

	if (dir->row)
		return -ENOTDIR;
	for (unsigned i = 0; i < folder->nr_entries; i++) {
		const struct mf_ctl_entry *entry = &folder->entries[i];

		if (!has_file(dir, entry))
			continue;
		become(dir, entry, &child);
		if (entry->kind == MF_CTL_STATIC) {
			if (entry->name.length != name.length ||
			    memcmp(entry->name.at, name.at, name.length) != 0)
				continue;
		} else if (!match_wildcard(m, entry, name, &child)) {
			continue;
		}
		set_inode(&child);
		*out = child;
		return 0;
	}
	return -ENOENT;
}

int mf_ctl_resolve(struct memfs *m, struct mf_text path, struct mf_ctl_node *out)
{
	struct mf_ctl_node node;
	int error = 0;

	mf_ctl_root(m, &node);
	while (path.length && !error)
		error = mf_ctl_lookup(m, &node, mf_text_until(&path, '/'), &node);
	if (!error)
		*out = node;
	return error;
}

/* --- listing --- */

struct listing {
	struct memfs *m;
	const struct mf_ctl_node *dir;
	const struct mf_ctl_entry *entry;
	mf_ctl_emit_fn *emit;
	void *arg;
};

static bool emit_child(const struct listing *list, struct mf_ctl_node *child, const char *name,
		       uint64_t position)
{
	set_inode(child);
	return list->emit(list->arg, name, child, DYNAMIC_CURSOR + position);
}

static void list_nodes(const struct listing *list, uint64_t position)
{
	mf_nodemask nodes = entry_nodes(list->m, list->entry);
	struct mf_ctl_node child;
	char name[16];

	for (int node = mf_node_next(nodes, (int)position - 1); node >= 0; node = mf_node_next(nodes, node)) {
		become(list->dir, list->entry, &child);
		child.node = (int16_t)node;
		snprintf(name, sizeof(name), "node%d", node);
		if (!emit_child(list, &child, name, (uint64_t)node + 1))
			return;
	}
}

static void list_zones(const struct listing *list, uint64_t position)
{
	struct mf_ctl_node child;

	for (unsigned zone = (unsigned)position; zone < MF_NR_ZONE_TYPES; zone++) {
		if (!zone_is_populated(list->m, list->dir->node, zone))
			continue;
		become(list->dir, list->entry, &child);
		child.zone = (int16_t)zone;
		if (!emit_child(list, &child, mf_zone_names[zone], zone + 1))
			return;
	}
}

static void list_counters(const struct listing *list, uint64_t position)
{
	enum mf_ctl_kind kind = list->entry->kind;
	struct mf_ctl_node child;

	for (unsigned i = (unsigned)position; i < nr_counters(kind); i++) {
		become(list->dir, list->entry, &child);
		child.counter = (int16_t)i;
		if (!emit_child(list, &child, counter_name(kind, i), i + 1))
			return;
	}
}

/* A few names at a time are copied out, so that emit is called with no lock held. */
#define NAMES_AT_ONCE 64

struct name_copy {
	uint64_t serial;
	uint8_t live_kind;
	char name[65];
};

static unsigned copy_names(const struct listing *list, uint64_t *position, struct name_copy *copies)
{
	bool live = list->entry->kind == MF_CTL_PER_LIVE;
	struct mf_ctl_names names = mf_ctl_names(list->m, list->entry->kind);
	const struct mf_named *named;
	unsigned count = 0;

	mf_lock_acquire(names.lock);
	for (named = mf_name_table_after(names.table, *position); named && count < NAMES_AT_ONCE;
	     named = named->newer) {
		*position = named->serial;
		if (live && !((const struct mf_live *)named)->ready)
			continue;
		copies[count].serial = named->serial;
		copies[count].live_kind = live ? (uint8_t)((const struct mf_live *)named)->kind : 0;
		memcpy(copies[count++].name, named->name, sizeof(copies->name));
	}
	mf_lock_release(names.lock);
	return count;
}

/* A cache that a library user has called "create" stands behind the file of that name. */
static bool is_hidden(const struct listing *list, const char *name)
{
	const struct mf_ctl_folder *folder = &list->m->ctl->folders[list->dir->dir];

	for (unsigned i = 0; i < folder->nr_static; i++)
		if (mf_text_is(folder->entries[i].name, name))
			return true;
	return false;
}

static void list_named(const struct listing *list, uint64_t position)
{
	struct name_copy copies[NAMES_AT_ONCE];
	struct mf_ctl_node child;
	unsigned count;

	while ((count = copy_names(list, &position, copies)) > 0)
		for (unsigned i = 0; i < count; i++) {
			if (is_hidden(list, copies[i].name))
				continue;
			become(list->dir, list->entry, &child);
			child.serial = copies[i].serial;
			child.live_kind = copies[i].live_kind;
			memcpy(child.name, copies[i].name, sizeof(child.name));
			if (!emit_child(list, &child, copies[i].name, copies[i].serial))
				return;
		}
}

static void list_wildcard(const struct listing *list, uint64_t position)
{
	switch (list->entry->kind) {
	case MF_CTL_PER_NODE:
		list_nodes(list, position);
		break;
	case MF_CTL_PER_ZONE:
		list_zones(list, position);
		break;
	case MF_CTL_PER_TASK:
	case MF_CTL_PER_LIVE:
	case MF_CTL_PER_CACHE:
		list_named(list, position);
		break;
	case MF_CTL_PER_COUNTER:
	case MF_CTL_PER_FAULT:
	case MF_CTL_PER_SLAB_STAT:
		list_counters(list, position);
		break;
	case MF_CTL_STATIC:
		break;
	}
}

void mf_ctl_list(struct memfs *m, const struct mf_ctl_node *dir, uint64_t cursor, mf_ctl_emit_fn *emit,
		 void *arg)
{
	const struct mf_ctl_folder *folder = &m->ctl->folders[dir->dir];
	struct listing list = { m, dir, NULL, emit, arg };
	struct mf_ctl_node child;
	char name[65];

	if (dir->row)
		return;
	for (uint64_t i = cursor; i < folder->nr_static; i++) {
		const struct mf_ctl_entry *entry = &folder->entries[i];

		if (!has_file(dir, entry))
			continue;
		become(dir, entry, &child);
		set_inode(&child);
		memcpy(name, entry->name.at, entry->name.length);
		name[entry->name.length] = '\0';
		if (!emit(arg, name, &child, i + 1))
			return;
	}
	if (folder->nr_entries == folder->nr_static)
		return;
	list.entry = &folder->entries[folder->nr_static];
	list_wildcard(&list, cursor > DYNAMIC_CURSOR ? cursor - DYNAMIC_CURSOR : 0);
}
