/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of names, see hash.h.
 *
 * Two indexes over the same entries: buckets by name, and an array of slots by
 * serial.  Serials only rise, so the array is always sorted and an addition
 * appends; a removal leaves its slot behind with the serial in it, which is
 * what lets a listing find its place again after its last entry has gone.
 *
 * Invariants: buckets together, slots with an entry, and the list
 * oldest..newest hold the same count entries; slots without an entry are at
 * most count + SPARE_SLOTS.
 * Locks: none, the owner of the table locks it.
 */
#include "base/hash.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 16
#define SPARE_SLOTS 64

void mf_name_table_init(struct mf_name_table *table)
{
	*table = (struct mf_name_table){ 0 };
}

void mf_name_table_destroy(struct mf_name_table *table)
{
	assert(!table->count);
	free(table->buckets);
	free(table->slots);
	mf_name_table_init(table);
}

static uint32_t hash_name(struct mf_text name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < name.length; i++)
		hash = (hash ^ (unsigned char)name.at[i]) * 16777619u;
	return hash ^ hash >> 15;
}

static struct mf_named **bucket_of(const struct mf_name_table *table, uint32_t hash)
{
	return &table->buckets[hash & (table->nr_buckets - 1)];
}

static struct mf_named *find_hashed(const struct mf_name_table *table, struct mf_text name, uint32_t hash)
{
	struct mf_named *entry = table->nr_buckets ? *bucket_of(table, hash) : NULL;

	while (entry && (entry->hash != hash || !mf_text_is(name, entry->name)))
		entry = entry->chain;
	return entry;
}

struct mf_named *mf_name_table_find(const struct mf_name_table *table, struct mf_text name)
{
	return find_hashed(table, name, hash_name(name));
}

static void link_bucket(struct mf_name_table *table, struct mf_named *entry)
{
	struct mf_named **bucket = bucket_of(table, entry->hash);

	entry->chain = *bucket;
	*bucket = entry;
}

/* Room for one more by name: on average at most one entry a bucket. */
static int grow_buckets(struct mf_name_table *table)
{
	size_t nr = table->nr_buckets ? table->nr_buckets * 2 : FIRST_BUCKETS;
	struct mf_named **buckets;

	if (table->count < table->nr_buckets)
		return 0;
	buckets = calloc(nr, sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	free(table->buckets);
	table->buckets = buckets;
	table->nr_buckets = nr;
	for (struct mf_named *entry = table->oldest; entry; entry = entry->newer)
		link_bucket(table, entry);
	return 0;
}

/* Room for one more by serial. */
static int grow_slots(struct mf_name_table *table)
{
	size_t max = table->max_slots ? table->max_slots * 2 : FIRST_BUCKETS;
	struct mf_name_slot *slots;

	if (table->nr_slots < table->max_slots)
		return 0;
	slots = realloc(table->slots, max * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	table->slots = slots;
	table->max_slots = max;
	return 0;
}

static void link_newest(struct mf_name_table *table, struct mf_named *entry)
{
	entry->serial = ++table->last_serial;
	entry->newer = NULL;
	entry->older = table->newest;
	if (table->newest)
		table->newest->newer = entry;
	else
		table->oldest = entry;
	table->newest = entry;
	table->slots[table->nr_slots++] = (struct mf_name_slot){ entry->serial, entry };
}

int mf_name_table_add(struct mf_name_table *table, struct mf_named *entry, struct mf_text name)
{
	uint32_t hash;

	if (!mf_name_is_valid(name))
		return -EINVAL;
	hash = hash_name(name);
	if (find_hashed(table, name, hash))
		return -EEXIST;
	if (grow_buckets(table) || grow_slots(table))
		return -ENOMEM;
	memcpy(entry->name, name.at, name.length);
	entry->name[name.length] = 0;
	entry->hash = hash;
	link_bucket(table, entry);
	link_newest(table, entry);
	table->count++;
	return 0;
}

/*
 * The first slot whose serial is above @serial.  As serials differ by 1 at
 * least, the distance to both ends bounds where it can be; without gaps the
 * bounds meet at once.
 */
static size_t slot_above(const struct mf_name_table *table, uint64_t serial)
{
	size_t low = 0, high = table->nr_slots;
	uint64_t first, last;

	if (!high || serial < table->slots[0].serial)
		return 0;
	first = table->slots[0].serial;
	last = table->slots[high - 1].serial;
	if (serial >= last)
		return high;
	if (serial - first + 1 < high)
		high = serial - first + 1;
	if (last - serial < table->nr_slots)
		low = table->nr_slots - (last - serial);
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->slots[middle].serial > serial)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

struct mf_named *mf_name_table_after(const struct mf_name_table *table, uint64_t serial)
{
	size_t slot;

	if (!table->oldest || serial < table->oldest->serial)
		return table->oldest;
	for (slot = slot_above(table, serial); slot < table->nr_slots; slot++)
		if (table->slots[slot].entry)
			return table->slots[slot].entry;
	return NULL;
}

/* An empty table that was large gives its memory back; serials go on rising. */
static void shrink_empty(struct mf_name_table *table)
{
	if (table->nr_buckets < 1024)
		return;
	free(table->buckets);
	free(table->slots);
	table->buckets = NULL;
	table->slots = NULL;
	table->nr_buckets = table->nr_slots = table->max_slots = 0;
}

/* Closes the gaps once they are the larger part: paid for by the removals that made them. */
static void compact_slots(struct mf_name_table *table)
{
	size_t kept = 0;

	if (!table->count)
		shrink_empty(table);
	if (table->nr_slots - table->count <= table->count + SPARE_SLOTS)
		return;
	for (size_t i = 0; i < table->nr_slots; i++)
		if (table->slots[i].entry)
			table->slots[kept++] = table->slots[i];
	table->nr_slots = kept;
}

static void unlink_bucket(struct mf_name_table *table, struct mf_named *entry)
{
	struct mf_named **at = bucket_of(table, entry->hash);

	while (*at != entry)
		at = &(*at)->chain;
	*at = entry->chain;
}

void mf_name_table_remove(struct mf_name_table *table, struct mf_named *entry)
{
	unlink_bucket(table, entry);
	*(entry->older ? &entry->older->newer : &table->oldest) = entry->newer;
	*(entry->newer ? &entry->newer->older : &table->newest) = entry->older;
	entry->chain = entry->older = entry->newer = NULL;
	table->slots[slot_above(table, entry->serial - 1)].entry = NULL;
	table->count--;
	compact_slots(table);
}
