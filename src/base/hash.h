/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A table of named things: intrusive, chained, grows by doubling, and every
 * entry has a stable serial number so that a directory can be listed in pieces
 * while entries come and go (each entry present throughout is listed once).
 *
 * Threads: the owner of the table locks it.
 */
#ifndef MF_BASE_HASH_H
#define MF_BASE_HASH_H

#include "base/parse.h"

#include <stddef.h>
#include <stdint.h>

struct mf_named {
	struct mf_named *chain;		/* same bucket */
	struct mf_named *older, *newer; /* by serial */
	uint64_t serial;		/* from 1, never used again in this table */
	uint32_t hash;
	char name[65];
};

/* Where an entry is by serial: one for every entry, and some left behind by removed ones. */
struct mf_name_slot {
	uint64_t serial;
	struct mf_named *entry; /* NULL: removed */
};

struct mf_name_table {
	struct mf_named **buckets;
	size_t nr_buckets; /* power of two, or 0 */
	size_t count;
	uint64_t last_serial;
	struct mf_named *oldest, *newest;
	struct mf_name_slot *slots; /* by rising serial */
	size_t nr_slots, max_slots; /* nr_slots <= 2 * count + a constant */
};

void mf_name_table_init(struct mf_name_table *table);
void mf_name_table_destroy(struct mf_name_table *table); /* must be empty */

struct mf_named *mf_name_table_find(const struct mf_name_table *table, struct mf_text name);

/* Fills entry->name, serial; -EEXIST, -ENOMEM, -EINVAL (invalid name). */
int mf_name_table_add(struct mf_name_table *table, struct mf_named *entry, struct mf_text name);
void mf_name_table_remove(struct mf_name_table *table, struct mf_named *entry);

/*
 * The entry with the lowest serial above @serial, NULL at the end.  One step
 * while serials are dense, a binary search in what gaps leave open otherwise;
 * listing a table entry by entry is linear either way, and a caller that stays
 * under the lock goes on with entry->newer.
 */
struct mf_named *mf_name_table_after(const struct mf_name_table *table, uint64_t serial);

#endif
