/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control tree: one row of mf_ctl_rows[] declares one file or, with a
 * wildcard component, one file per node, zone, task, allocation or counter.
 * Lookup, listing, modes, number parsing, range checks, README, the man page's
 * file section, boot options and the table tests all come from the row.
 *
 * Patterns: components separated by '/'; "node*" expands to the nodes of the
 * row's set, "{zone}" to a node's populated zones, "{task}", "{live}",
 * "{counter}", "{fault}", "{cache}", "{slabstat}" to the names of those tables.
 *
 * Threads: any.  mf_ctl_lookup, mf_ctl_list and attributes take no engine lock;
 * show and store functions may.
 */
#ifndef MF_CTL_H
#define MF_CTL_H

#include "base/outbuf.h"
#include "base/parse.h"
#include "engine/engine.h"
#include "engine/live.h"

#include <stdbool.h>
#include <stdint.h>

#define MF_CTL_WRITE_MAX 4096 /* bytes of one command; more is -E2BIG */

/* What a resolved path stands for. */
struct mf_ctl_node {
	const struct mf_ctl_row *row; /* NULL: a folder */
	uint16_t dir;		      /* the folder's pattern, or that of the folder the file is in */
	int16_t node;		      /* NUMA node of a node* component, -1 */
	int16_t zone;		      /* zone type, -1 */
	int16_t counter;	      /* enum mf_stat_id, mf_slab_stat or fault point, -1 */
	uint64_t serial;	      /* serial of the task, allocation or cache's name, 0 */
	uint8_t live_kind;	      /* of the allocation named: enum mf_live_kind */
	char name[65];		      /* its name, "" */
	uint64_t inode;		      /* unique, never used again for another object */
};

/* One command (a write) on its way. */
struct mf_ctl_command {
	struct memfs *m;
	const struct mf_ctl_node *node;
	struct mf_text text;	  /* without the one trailing newline */
	struct mf_outbuf *reply;  /* what the same descriptor reads next */
	char why[256];		  /* on failure: the reason, without path and newline */
	struct mf_cancel *cancel; /* may be NULL */
};

typedef int mf_ctl_show_fn(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out);
typedef int mf_ctl_store_fn(struct mf_ctl_command *command);

enum mf_ctl_type {
	MF_CTL_TEXT,   /* show and store do it all */
	MF_CTL_U64,    /* get/set with min..max */
	MF_CTL_BOOL,   /* 0/1 */
	MF_CTL_CHOICE, /* one of choices[] */
	MF_CTL_MEMORY, /* live/NAME/data: not text at all */
};

enum mf_ctl_nodes { MF_CTL_NODES_DECLARED, MF_CTL_NODES_WITH_MEMORY }; /* what node* expands to */

struct mf_ctl_row {
	const char *path; /* pattern */
	unsigned mode;	  /* 0444, 0644, 0200 ... */
	enum mf_ctl_type type;
	uint64_t min, max;	    /* MF_CTL_U64 */
	const char *const *choices; /* MF_CTL_CHOICE: default first, NULL-terminated */
	mf_ctl_show_fn *show;
	mf_ctl_store_fn *store;
	uint64_t (*get)(struct memfs *m, const struct mf_ctl_node *node); /* U64, BOOL, CHOICE (index) */
	int (*set)(struct mf_ctl_command *command, uint64_t value);
	bool (*waits)(struct mf_text text); /* this command may wait: run it on a thread of its own */
	int event;			    /* enum mf_event that poll reports, -1 none */
	enum mf_ctl_nodes nodes;	    /* with a node* component */
	unsigned live_kinds; /* with {live}: bits, 1 << enum mf_live_kind, that have it; 0: all */
	const char *since;
	const char *help; /* one sentence */
};

extern const struct mf_ctl_row mf_ctl_rows[];
extern const size_t mf_nr_ctl_rows;

int mf_ctl_create(struct memfs *m);
void mf_ctl_destroy(struct memfs *m);

/* The root, a child by name, and a whole path ("" is the root).  0 or -ENOENT, -ENOTDIR. */
void mf_ctl_root(struct memfs *m, struct mf_ctl_node *out);
int mf_ctl_lookup(struct memfs *m, const struct mf_ctl_node *dir, struct mf_text name,
		  struct mf_ctl_node *out);
int mf_ctl_resolve(struct memfs *m, struct mf_text path, struct mf_ctl_node *out);

/*
 * Lists a folder from *cursor (0 first); emit returns false when its buffer is
 * full, and the listing goes on later from the cursor last emitted.  Every
 * entry present throughout is emitted exactly once.
 */
typedef bool mf_ctl_emit_fn(void *arg, const char *name, const struct mf_ctl_node *child,
			    uint64_t next_cursor);
void mf_ctl_list(struct memfs *m, const struct mf_ctl_node *dir, uint64_t cursor, mf_ctl_emit_fn *emit,
		 void *arg);

bool mf_ctl_is_dir(const struct mf_ctl_node *node);
unsigned mf_ctl_mode(const struct mf_ctl_node *node); /* permission bits */
/* The node's object still exists (handles on freed allocations get -ENODEV). */
bool mf_ctl_alive(struct memfs *m, const struct mf_ctl_node *node);

/* One snapshot of a file. -EACCES (write-only files without reply read as empty: 0), -ENODEV. */
int mf_ctl_show(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out);

/*
 * One command.  Trims one newline, refuses NUL bytes and empty text, parses by
 * the row's type, performs it, records last_cmd_status.  On failure the reason
 * (one line, "PATH: why") replaces *reply.
 */
int mf_ctl_store(struct memfs *m, const struct mf_ctl_node *node, const char *bytes, size_t length,
		 struct mf_outbuf *reply, struct mf_cancel *cancel);
bool mf_ctl_waits(const struct mf_ctl_node *node, const char *bytes, size_t length);

/* mkdir in tasks/, rmdir in tasks/, live/ and slab/.  -EPERM elsewhere.  Recorded in last_cmd_status. */
int mf_ctl_mkdir(struct memfs *m, const struct mf_ctl_node *dir, struct mf_text name);
int mf_ctl_rmdir(struct memfs *m, const struct mf_ctl_node *dir, struct mf_text name);

/* Records a refusal that never reached a store (E2BIG, EPERM ...). */
void mf_ctl_refused(struct memfs *m, const char *path, int error, const char *why);
/* The path of a node, relative to the root. */
void mf_ctl_path(const struct mf_ctl_node *node, struct mf_outbuf *out);

uint64_t mf_ctl_event_generation(struct memfs *m, const struct mf_ctl_node *node); /* 0: never changes */

#endif
