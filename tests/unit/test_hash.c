/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of names: lookups, serials, listings among changes, and a host without memory. */
#include "unit.h"

#include "base/hash.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#define NR_MANY 50000

static struct mf_named many[NR_MANY];

static int add_numbered(struct mf_name_table *table, struct mf_named *entry, int number)
{
	char name[32];

	snprintf(name, sizeof(name), "n%d", number);
	return mf_name_table_add(table, entry, mf_text_of(name));
}

static struct mf_named *find_numbered(struct mf_name_table *table, int number)
{
	char name[32];

	snprintf(name, sizeof(name), "n%d", number);
	return mf_name_table_find(table, mf_text_of(name));
}

static void remove_all(struct mf_name_table *table)
{
	while (table->oldest)
		mf_name_table_remove(table, table->oldest);
}

static void test_small(void)
{
	struct mf_name_table table;
	struct mf_named a, b, c;

	mf_name_table_init(&table);
	CU_ASSERT_PTR_NULL(mf_name_table_find(&table, mf_text_of("a")));
	CU_ASSERT_PTR_NULL(mf_name_table_after(&table, 0));
	CU_ASSERT_EQUAL(mf_name_table_add(&table, &a, mf_text_of("a")), 0);
	CU_ASSERT_EQUAL(mf_name_table_add(&table, &b, (struct mf_text){ "bxx", 1 }), 0);
	CU_ASSERT_EQUAL(mf_name_table_add(&table, &c, mf_text_of("a")), -EEXIST);
	CU_ASSERT_EQUAL(mf_name_table_add(&table, &c, mf_text_of("")), -EINVAL);
	CU_ASSERT_EQUAL(mf_name_table_add(&table, &c, mf_text_of("..")), -EINVAL);
	CU_ASSERT_EQUAL(mf_name_table_add(&table, &c, mf_text_of("a/b")), -EINVAL);
	CU_ASSERT_EQUAL(table.count, 2);
	CU_ASSERT_EQUAL(a.serial, 1);
	CU_ASSERT_EQUAL(b.serial, 2);
	CU_ASSERT_STRING_EQUAL(b.name, "b");
	CU_ASSERT_PTR_EQUAL(mf_name_table_find(&table, mf_text_of("b")), &b);
	CU_ASSERT_PTR_NULL(mf_name_table_find(&table, mf_text_of("bx")));
	mf_name_table_remove(&table, &a);
	CU_ASSERT_PTR_NULL(mf_name_table_find(&table, mf_text_of("a")));
	CU_ASSERT_EQUAL(mf_name_table_add(&table, &c, mf_text_of("a")), 0);
	CU_ASSERT_EQUAL(c.serial, 3);
	CU_ASSERT_PTR_EQUAL(table.oldest, &b);
	CU_ASSERT_PTR_EQUAL(table.newest, &c);
	remove_all(&table);
	CU_ASSERT_EQUAL(table.count, 0);
	mf_name_table_destroy(&table);
}

/* A full listing, checked against the list by age. */
static void check_listing(const struct mf_name_table *table)
{
	struct mf_named *wanted = table->oldest;
	struct mf_named *entry;
	uint64_t serial = 0;
	size_t n = 0;
	bool same = true;

	while ((entry = mf_name_table_after(table, serial))) {
		same &= entry == wanted && entry->serial > serial;
		if (!same)
			break;
		serial = entry->serial;
		wanted = wanted->newer;
		n++;
	}
	CU_ASSERT_TRUE(same);
	CU_ASSERT_EQUAL(n, table->count);
	CU_ASSERT_PTR_NULL(mf_name_table_after(table, table->last_serial));
	CU_ASSERT_PTR_NULL(mf_name_table_after(table, UINT64_MAX));
}

static void test_many(void)
{
	struct mf_name_table table;
	bool found = true, refused = true;

	mf_name_table_init(&table);
	for (int i = 0; i < NR_MANY; i++)
		CU_ASSERT_EQUAL_FATAL(add_numbered(&table, &many[i], i), 0);
	for (int i = 0; i < NR_MANY; i++)
		found &= find_numbered(&table, i) == &many[i];
	for (int i = 0; i < NR_MANY; i += 7)
		refused &= add_numbered(&table, &(struct mf_named){ .hash = 0 }, i) == -EEXIST;
	CU_ASSERT_TRUE(found);
	CU_ASSERT_TRUE(refused);
	CU_ASSERT_EQUAL(table.count, NR_MANY);
	CU_ASSERT(table.nr_buckets >= NR_MANY && table.nr_buckets < 4 * NR_MANY);
	check_listing(&table);
	for (int i = 0; i < NR_MANY; i++)
		if (i % 3)
			mf_name_table_remove(&table, &many[i]);
	check_listing(&table);
	CU_ASSERT_PTR_EQUAL(mf_name_table_after(&table, many[4].serial), &many[6]); /* many[4] is gone */
	CU_ASSERT_PTR_NULL(find_numbered(&table, 4));
	CU_ASSERT_PTR_EQUAL(find_numbered(&table, 6), &many[6]);
	remove_all(&table);
	CU_ASSERT_EQUAL(add_numbered(&table, &many[0], 0), 0); /* serials go on after the table was empty */
	CU_ASSERT_EQUAL(many[0].serial, NR_MANY + 1);
	CU_ASSERT_PTR_EQUAL(mf_name_table_after(&table, 0), &many[0]);
	check_listing(&table);
	remove_all(&table);
	mf_name_table_destroy(&table);
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* Random additions and removals against a plain array of what should be there. */
static void test_random_changes(void)
{
	enum { NR = 300 };
	struct mf_name_table table;
	bool present[NR] = { false };
	uint32_t seed = 12345;
	size_t count = 0, max_slots = 0;

	mf_name_table_init(&table);
	for (int round = 0; round < 60000; round++) {
		int i = next_random(&seed) % NR;

		if (present[i])
			mf_name_table_remove(&table, &many[i]);
		else
			CU_ASSERT_EQUAL_FATAL(add_numbered(&table, &many[i], i), 0);
		present[i] = !present[i];
		count += present[i] ? 1 : -1;
		max_slots = table.nr_slots > max_slots ? table.nr_slots : max_slots;
		if (round % 500)
			continue;
		CU_ASSERT_EQUAL(table.count, count);
		for (int j = 0; j < NR; j++)
			CU_ASSERT_PTR_EQUAL(find_numbered(&table, j), present[j] ? &many[j] : NULL);
		check_listing(&table);
	}
	CU_ASSERT(max_slots <= 2 * NR + 65); /* gaps do not add up */
	remove_all(&table);
	mf_name_table_destroy(&table);
}

/* A listing in pieces: what is there throughout comes once, whatever comes and goes between. */
static void test_listing_among_changes(void)
{
	enum { NR = 1000 };
	struct mf_name_table table;
	int seen[NR] = { 0 };
	struct mf_named *entry;
	uint64_t serial = 0;
	int extra = NR;

	mf_name_table_init(&table);
	for (int i = 0; i < NR; i++)
		CU_ASSERT_EQUAL_FATAL(add_numbered(&table, &many[i], i), 0);
	while ((entry = mf_name_table_after(&table, serial))) {
		int i = entry - many;

		serial = entry->serial;
		if (i < NR)
			seen[i]++;
		if (i < NR && i % 2)
			mf_name_table_remove(&table, entry); /* the place itself goes */
		if (i < NR && i % 4 == 0 && i + 400 < NR && i % 8)
			mf_name_table_remove(&table,
					     &many[i + 403]); /* an odd one further on goes unlisted */
		if (extra < NR + 100)
			CU_ASSERT_EQUAL_FATAL(add_numbered(&table, &many[extra], extra), 0);
		extra++;
	}
	for (int i = 0; i < NR; i++)
		CU_ASSERT(i % 2 ? seen[i] <= 1 : seen[i] == 1);
	CU_ASSERT_EQUAL(seen[407], 0);
	CU_ASSERT_EQUAL(seen[409], 1);
	CU_ASSERT_EQUAL(table.count, NR / 2 + 100);
	remove_all(&table);
	mf_name_table_destroy(&table);
}

#ifndef SANITIZED
static void test_host_without_memory(void)
{
	struct rlimit old, none;
	struct mf_name_table table, before;
	bool found = true;
	int n = 0, error = 0;

	mf_name_table_init(&table);
	getrlimit(RLIMIT_AS, &old);
	none = old;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_AS, &none);
	while (n < NR_MANY && !error) {
		before = table;
		error = add_numbered(&table, &many[n], n);
		n += !error;
	}
	setrlimit(RLIMIT_AS, &old);
	CU_ASSERT_EQUAL(error, -ENOMEM);
	CU_ASSERT_EQUAL(table.count, before.count);
	CU_ASSERT_EQUAL(table.last_serial, before.last_serial);
	CU_ASSERT_PTR_EQUAL(table.newest, before.newest);
	CU_ASSERT_PTR_NULL(find_numbered(&table, n));
	for (int i = 0; i < n; i++)
		found &= find_numbered(&table, i) == &many[i];
	CU_ASSERT_TRUE(found);
	check_listing(&table);
	CU_ASSERT_EQUAL(add_numbered(&table, &many[n], n), 0);
	CU_ASSERT_EQUAL(many[n].serial, (uint64_t)n + 1);
	remove_all(&table);
	mf_name_table_destroy(&table);
}
#endif

static const struct unit_test tests[] = {
#ifndef SANITIZED
	UNIT_TEST(test_host_without_memory), /* first: while the heap holds little to spare */
#endif
	UNIT_TEST(test_small),
	UNIT_TEST(test_many),
	UNIT_TEST(test_random_changes),
	UNIT_TEST(test_listing_among_changes),
};

UNIT_MAIN("hash", tests)
