/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text buffer: growth, the kernel's list and cpumap formats, and a host without memory. */
#include "unit.h"

#include "base/outbuf.h"

#include <errno.h>
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

static void test_empty(void)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;

	mf_outbuf_puts(&out, "");
	mf_outbuf_write(&out, "x", 0);
	mf_outbuf_nodelist(&out, 0);
	CU_ASSERT_EQUAL(out.length, 0);
	CU_ASSERT_EQUAL(mf_outbuf_error(&out), 0);
	mf_outbuf_clear(&out);
	mf_outbuf_printf(&out, "%s", "");
	CU_ASSERT_EQUAL(out.length, 0);
	mf_outbuf_free(&out);
	CU_ASSERT_PTR_NULL(out.data);
	mf_outbuf_free(&out);
}

static void test_mixed_calls(void)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;

	mf_outbuf_puts(&out, "node");
	mf_outbuf_printf(&out, "%d %s\n", 3, "pages");
	mf_outbuf_write(&out, "a\0b", 3);
	CU_ASSERT_EQUAL(out.length, 15);
	CU_ASSERT_EQUAL(memcmp(out.data, "node3 pages\na\0b", 16), 0);
	mf_outbuf_clear(&out);
	CU_ASSERT_EQUAL(out.length, 0);
	CU_ASSERT_PTR_NOT_NULL(out.data);
	CU_ASSERT_STRING_EQUAL(out.data, "");
	mf_outbuf_puts(&out, "again");
	CU_ASSERT_STRING_EQUAL(out.data, "again");
	mf_outbuf_free(&out);
}

/* Every length around the places where the buffer grows, by every way to add. */
static void test_every_length(void)
{
	static char text[1001];

	memset(text, 'x', sizeof(text) - 1);
	for (size_t length = 0; length <= 1000; length++) {
		struct mf_outbuf out = MF_OUTBUF_INIT;

		mf_outbuf_printf(&out, "%.*s", (int)length, text);
		CU_ASSERT_EQUAL(out.length, length);
		mf_outbuf_printf(&out, "%.*s|", 1000 - (int)length, text);
		mf_outbuf_write(&out, text, length);
		CU_ASSERT_EQUAL(out.length, 1001 + length);
		CU_ASSERT_EQUAL(strlen(out.data), 1001 + length);
		CU_ASSERT_EQUAL(out.data[1000], '|');
		mf_outbuf_free(&out);
	}
}

static void test_grows_by_doubling(void)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	size_t capacity = 0;
	int nr_growths = 0;

	for (int i = 0; i < 100000; i++) {
		mf_outbuf_printf(&out, "%05d\n", i);
		nr_growths += out.capacity != capacity;
		capacity = out.capacity;
	}
	CU_ASSERT_EQUAL(out.length, 600000);
	CU_ASSERT(nr_growths <= 14);
	CU_ASSERT_EQUAL(memcmp(out.data + 599994, "99999\n", 7), 0);
	CU_ASSERT_EQUAL(memcmp(out.data + 6 * 43210, "43210\n", 6), 0);
	mf_outbuf_free(&out);
}

static void check_list(const uint64_t *bits, unsigned nr_bits, const char *wanted)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;

	mf_outbuf_puts(&out, ":");
	mf_outbuf_list(&out, bits, nr_bits);
	CU_ASSERT_STRING_EQUAL(out.data + 1, wanted);
	mf_outbuf_free(&out);
}

static void test_list(void)
{
	static const struct {
		uint64_t bits[2];
		unsigned nr_bits;
		const char *text;
	} cases[] = {
		{ { 0 }, 64, "" },
		{ { 1 }, 64, "0" },
		{ { 3 }, 64, "0-1" },
		{ { 13 }, 64, "0,2-3" },
		{ { UINT64_MAX }, 64, "0-63" },
		{ { UINT64_MAX, 1 }, 65, "0-64" },
		{ { UINT64_MAX }, 4, "0-3" },
		{ { UINT64_C(1) << 63, 5 }, 128, "63-64,66" },
		{ { 0, UINT64_C(1) << 63 }, 128, "127" },
		{ { 0x15 }, 64, "0,2,4" },
		{ { 0 }, 0, "" },
	};
	mf_nodemask mask = UINT64_C(0x8000000000000006);
	struct mf_outbuf out = MF_OUTBUF_INIT;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_list(cases[i].bits, cases[i].nr_bits, cases[i].text);
	mf_outbuf_nodelist(&out, mask);
	CU_ASSERT_STRING_EQUAL(out.data, "1-2,63");
	mf_outbuf_free(&out);
}

static void test_cpumap(void)
{
	static const struct {
		uint64_t bits[2];
		unsigned nr_bits;
		const char *text;
	} cases[] = {
		{ { 0xf }, 4, "f" },
		{ { 0xf }, 8, "0f" },
		{ { 0 }, 4, "0" },
		{ { 1 }, 1, "1" },
		{ { 0x10 }, 5, "10" },
		{ { 0xffffffff }, 32, "ffffffff" },
		{ { 0x3 }, 32, "00000003" },
		{ { UINT64_C(0x3ffffffff) }, 34, "3,ffffffff" },
		{ { UINT64_C(0xffffffffff) }, 40, "ff,ffffffff" },
		{ { UINT64_C(0x100000000) }, 40, "01,00000000" },
		{ { 1 }, 64, "00000000,00000001" },
		{ { 1, 2 }, 66, "2,00000000,00000001" },
		{ { UINT64_MAX, UINT64_MAX }, 100, "f,ffffffff,ffffffff,ffffffff" },
		{ { UINT64_MAX }, 6, "3f" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mf_outbuf out = MF_OUTBUF_INIT;

		mf_outbuf_cpumap(&out, cases[i].bits, cases[i].nr_bits);
		CU_ASSERT_STRING_EQUAL(out.data, cases[i].text);
		mf_outbuf_free(&out);
	}
}

/* An error stays, adds nothing more, and the text so far is whole. */
static void test_error_is_kept(void)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;

	mf_outbuf_puts(&out, "whole");
	mf_outbuf_write(&out, "x", SIZE_MAX - 3); /* cannot be had, so nothing is read of "x" */
	CU_ASSERT_EQUAL(mf_outbuf_error(&out), -ENOMEM);
	mf_outbuf_puts(&out, "more");
	mf_outbuf_printf(&out, "%d", 1);
	CU_ASSERT_EQUAL(out.length, 5);
	CU_ASSERT_STRING_EQUAL(out.data, "whole");
	mf_outbuf_clear(&out);
	CU_ASSERT_EQUAL(mf_outbuf_error(&out), 0);
	mf_outbuf_puts(&out, "new");
	CU_ASSERT_STRING_EQUAL(out.data, "new");
	mf_outbuf_free(&out);
}

#ifndef SANITIZED
static void test_host_without_memory(void)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	struct rlimit old, none;
	size_t length;

	getrlimit(RLIMIT_AS, &old);
	none = old;
	none.rlim_cur = 0;
	mf_outbuf_puts(&out, "0123456789");
	setrlimit(RLIMIT_AS, &none);
	for (length = 0; !mf_outbuf_error(&out) && length < (size_t)1 << 30; length = out.length)
		mf_outbuf_printf(&out, "%0*d", 1000, 7);
	setrlimit(RLIMIT_AS, &old);
	CU_ASSERT_EQUAL(mf_outbuf_error(&out), -ENOMEM);
	CU_ASSERT_EQUAL((out.length - 10) % 1000, 0);
	CU_ASSERT_EQUAL(strlen(out.data), out.length);
	mf_outbuf_free(&out);
}
#endif

static const struct unit_test tests[] = {
	UNIT_TEST(test_empty),
	UNIT_TEST(test_mixed_calls),
	UNIT_TEST(test_every_length),
	UNIT_TEST(test_grows_by_doubling),
	UNIT_TEST(test_list),
	UNIT_TEST(test_cpumap),
	UNIT_TEST(test_error_is_kept),
#ifndef SANITIZED
	UNIT_TEST(test_host_without_memory),
#endif
};

UNIT_MAIN("outbuf", tests)
