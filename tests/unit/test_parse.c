/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The grammar of numbers, lists, words and names: every accepted and refused form, with its value. */
#include "unit.h"

#include "base/parse.h"

#include <errno.h>

#define BYTES(literal) ((struct mf_text){ literal, sizeof(literal) - 1 })
#define KEEP UINT64_C(0x5a5a5a5a5a5a5a5a) /* what *out must still hold after a failure */

struct number_case {
	struct mf_text text;
	int error;
	uint64_t value;
};

static void check_numbers(const struct number_case *cases, size_t nr, uint64_t max,
			  int (*parse)(struct mf_text, uint64_t, uint64_t *))
{
	for (size_t i = 0; i < nr; i++) {
		uint64_t value = KEEP;
		int error = parse(cases[i].text, max, &value);
		uint64_t wanted = cases[i].error ? KEEP : cases[i].value;

		if (error != cases[i].error || value != wanted)
			printf("\n  case %zu \"%.*s\": %d, %llu\n", i, (int)cases[i].text.length,
			       cases[i].text.at, error, (unsigned long long)value);
		CU_ASSERT_EQUAL(error, cases[i].error);
		CU_ASSERT_EQUAL(value, wanted);
	}
}

#define CHECK_NUMBERS(cases, max, parse) check_numbers(cases, sizeof(cases) / sizeof((cases)[0]), max, parse)

static void test_u64_of_a_weight(void)
{
	static const struct number_case cases[] = {
		{ BYTES("7"), 0, 7 },
		{ BYTES("0"), 0, 0 },
		{ BYTES("255"), 0, 255 },
		{ BYTES("256"), -EINVAL, 0 },
		{ BYTES("-1"), -EINVAL, 0 },
		{ BYTES("-0"), -EINVAL, 0 },
		{ BYTES("abc"), -EINVAL, 0 },
		{ BYTES(""), -EINVAL, 0 },
		{ BYTES("\n"), -EINVAL, 0 },
		{ BYTES("3 "), -EINVAL, 0 },
		{ BYTES("3\n"), -EINVAL, 0 },
		{ BYTES(" 3"), -EINVAL, 0 },
		{ BYTES("\t4"), -EINVAL, 0 },
		{ BYTES("0x10"), 0, 16 },
		{ BYTES("0X1f"), 0, 31 },
		{ BYTES("0xFf"), 0, 255 },
		{ BYTES("010"), 0, 8 },
		{ BYTES("08"), -EINVAL, 0 },
		{ BYTES("0b11"), -EINVAL, 0 },
		{ BYTES("+5"), 0, 5 },
		{ BYTES("+0x10"), 0, 16 },
		{ BYTES("++5"), -EINVAL, 0 },
		{ BYTES("+-5"), -EINVAL, 0 },
		{ BYTES("+"), -EINVAL, 0 },
		{ BYTES("1\n2"), -EINVAL, 0 },
		{ BYTES("1 2"), -EINVAL, 0 },
		{ BYTES("3.5"), -EINVAL, 0 },
		{ BYTES("1e2"), -EINVAL, 0 },
		{ BYTES("0x"), -EINVAL, 0 },
		{ BYTES("0x+1"), -EINVAL, 0 },
		{ BYTES("0xg"), -EINVAL, 0 },
		{ BYTES("00"), 0, 0 },
		{ BYTES("0x100"), -EINVAL, 0 },
		{ BYTES("3\0"), -EINVAL, 0 },
		{ BYTES("3\0"
			"4"),
		  -EINVAL, 0 },
		{ BYTES("\0"), -EINVAL, 0 },
		{ BYTES("00000000003"), 0, 3 },
		{ BYTES("N"), -EINVAL, 0 },
		{ BYTES("  "), -EINVAL, 0 },
		{ BYTES("99999999999999999999"), -EINVAL, 0 },
		{ BYTES("1K"), -EINVAL, 0 },
		{ BYTES("\xb2"), -EINVAL, 0 },
		{ BYTES("1/"), -EINVAL, 0 },
		{ BYTES("1:"), -EINVAL, 0 },
	};

	CHECK_NUMBERS(cases, 255, mf_parse_u64);
}

static void test_u64_never_wraps(void)
{
	static const struct number_case cases[] = {
		{ BYTES("18446744073709551615"), 0, UINT64_MAX },
		{ BYTES("18446744073709551616"), -EINVAL, 0 },
		{ BYTES("18446744073709551617"), -EINVAL, 0 },
		{ BYTES("36893488147419103233"), -EINVAL, 0 },
		{ BYTES("0xffffffffffffffff"), 0, UINT64_MAX },
		{ BYTES("0x10000000000000000"), -EINVAL, 0 },
		{ BYTES("0x10000000000000001"), -EINVAL, 0 },
		{ BYTES("01777777777777777777777"), 0, UINT64_MAX },
		{ BYTES("02000000000000000000000"), -EINVAL, 0 },
		{ BYTES("0000000000000000000000000000000000000000000000000000000017"), 0, 15 },
	};

	CHECK_NUMBERS(cases, UINT64_MAX, mf_parse_u64);
}

static void test_text_is_not_terminated(void)
{
	const char *buffer = "1234";
	uint64_t value = 0;

	CU_ASSERT_EQUAL(mf_parse_u64((struct mf_text){ buffer + 1, 2 }, 1000, &value), 0);
	CU_ASSERT_EQUAL(value, 23);
}

static void test_size(void)
{
	static const struct number_case cases[] = {
		{ BYTES("0"), 0, 0 },
		{ BYTES("4096"), 0, 4096 },
		{ BYTES("1K"), 0, 1024 },
		{ BYTES("1k"), 0, 1024 },
		{ BYTES("3M"), 0, 3145728 },
		{ BYTES("3m"), 0, 3145728 },
		{ BYTES("2G"), 0, 2147483648 },
		{ BYTES("2g"), 0, 2147483648 },
		{ BYTES("16T"), 0, UINT64_C(17592186044416) },
		{ BYTES("16t"), 0, UINT64_C(17592186044416) },
		{ BYTES("0x10K"), 0, 16384 },
		{ BYTES("010M"), 0, 8388608 },
		{ BYTES("+1K"), 0, 1024 },
		{ BYTES("K"), -EINVAL, 0 },
		{ BYTES("+K"), -EINVAL, 0 },
		{ BYTES(""), -EINVAL, 0 },
		{ BYTES("1KB"), -EINVAL, 0 },
		{ BYTES("1KK"), -EINVAL, 0 },
		{ BYTES("1 K"), -EINVAL, 0 },
		{ BYTES("1K "), -EINVAL, 0 },
		{ BYTES("1P"), -EINVAL, 0 },
		{ BYTES("-1K"), -EINVAL, 0 },
		{ BYTES("1.5G"), -EINVAL, 0 },
		{ BYTES("16777215T"), 0, UINT64_C(16777215) << 40 },
		{ BYTES("16777216T"), -EINVAL, 0 },
		{ BYTES("18014398509481984K"), -EINVAL, 0 },
		{ BYTES("18446744073709551615"), 0, UINT64_MAX },
		{ BYTES("1K\0"), -EINVAL, 0 },
	};
	static const struct number_case bounded[] = {
		{ BYTES("1M"), 0, 1048576 },	  { BYTES("1025K"), -EINVAL, 0 },
		{ BYTES("1048577"), -EINVAL, 0 }, { BYTES("1048576"), 0, 1048576 },
		{ BYTES("1G"), -EINVAL, 0 },	  { BYTES("0G"), 0, 0 },
	};

	CHECK_NUMBERS(cases, UINT64_MAX, mf_parse_size);
	CHECK_NUMBERS(bounded, 1048576, mf_parse_size);
}

static void test_i64(void)
{
	static const struct {
		struct mf_text text;
		int64_t min, max;
		int error;
		int64_t value;
	} cases[] = {
		{ BYTES("-1"), -1, 100, 0, -1 },
		{ BYTES("-2"), -1, 100, -EINVAL, 0 },
		{ BYTES("100"), -1, 100, 0, 100 },
		{ BYTES("101"), -1, 100, -EINVAL, 0 },
		{ BYTES("-0"), -1, 100, 0, 0 },
		{ BYTES("+1"), -1, 100, 0, 1 },
		{ BYTES("-+1"), -1, 100, -EINVAL, 0 },
		{ BYTES("+-1"), -1, 100, -EINVAL, 0 },
		{ BYTES("--1"), -1, 100, -EINVAL, 0 },
		{ BYTES("-"), -1, 100, -EINVAL, 0 },
		{ BYTES(""), -1, 100, -EINVAL, 0 },
		{ BYTES("-0x10"), -100, 100, 0, -16 },
		{ BYTES("-010"), -100, 100, 0, -8 },
		{ BYTES("-9223372036854775808"), INT64_MIN, INT64_MAX, 0, INT64_MIN },
		{ BYTES("-9223372036854775809"), INT64_MIN, INT64_MAX, -EINVAL, 0 },
		{ BYTES("9223372036854775807"), INT64_MIN, INT64_MAX, 0, INT64_MAX },
		{ BYTES("9223372036854775808"), INT64_MIN, INT64_MAX, -EINVAL, 0 },
		{ BYTES("18446744073709551615"), INT64_MIN, INT64_MAX, -EINVAL, 0 },
		{ BYTES("- 1"), -1, 100, -EINVAL, 0 },
		{ BYTES("1\0"), -1, 100, -EINVAL, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t value = 77;

		CU_ASSERT_EQUAL(mf_parse_i64(cases[i].text, cases[i].min, cases[i].max, &value),
				cases[i].error);
		CU_ASSERT_EQUAL(value, cases[i].error ? 77 : cases[i].value);
	}
}

static void test_bool(void)
{
	static const char *const yes[] = { "1",	   "y",	 "Y",  "t",  "T",  "yes",
					   "true", "on", "oN", "On", "ON", "1x" };
	static const char *const no[] = { "0", "n", "N", "f", "F", "no", "false", "off", "of", "oFF", "01" };
	static const char *const bad[] = { "", "2", "abc", "\n", "-1", "o", "ox", " 1", "+1" };
	bool value;

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		value = false;
		CU_ASSERT_EQUAL(mf_parse_bool(mf_text_of(yes[i]), &value), 0);
		CU_ASSERT_TRUE(value);
	}
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		value = true;
		CU_ASSERT_EQUAL(mf_parse_bool(mf_text_of(no[i]), &value), 0);
		CU_ASSERT_FALSE(value);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		value = true;
		CU_ASSERT_EQUAL(mf_parse_bool(mf_text_of(bad[i]), &value), -EINVAL);
		CU_ASSERT_TRUE(value);
	}
	CU_ASSERT_EQUAL(mf_parse_bool(BYTES("1\0"), &value), -EINVAL);
}

static void test_nodelist(void)
{
	static const struct number_case cases[] = {
		{ BYTES(""), 0, 0 },
		{ BYTES("0"), 0, 1 },
		{ BYTES("0,"), 0, 1 },
		{ BYTES("0-0"), 0, 1 },
		{ BYTES("0,1"), 0, 3 },
		{ BYTES("0-1"), 0, 3 },
		{ BYTES("0,0"), 0, 1 },
		{ BYTES("0-2,1-3"), 0, 15 },
		{ BYTES(" 0"), 0, 1 },
		{ BYTES("0, 2"), 0, 5 },
		{ BYTES("3,1"), 0, 10 },
		{ BYTES(",1"), 0, 2 },
		{ BYTES("0,,2"), 0, 5 },
		{ BYTES(","), 0, 0 },
		{ BYTES("08"), 0, 256 },
		{ BYTES("63"), 0, UINT64_C(1) << 63 },
		{ BYTES("0-63"), 0, UINT64_MAX },
		{ BYTES("0,2-3,62-63"), 0, UINT64_C(0xc00000000000000d) },
		{ BYTES("64"), -EINVAL, 0 },
		{ BYTES("0-64"), -EINVAL, 0 },
		{ BYTES("0,64"), -EINVAL, 0 },
		{ BYTES("1-0"), -EINVAL, 0 },
		{ BYTES("0-"), -EINVAL, 0 },
		{ BYTES("-1"), -EINVAL, 0 },
		{ BYTES("-"), -EINVAL, 0 },
		{ BYTES("0x1"), -EINVAL, 0 },
		{ BYTES("+1"), -EINVAL, 0 },
		{ BYTES("0--1"), -EINVAL, 0 },
		{ BYTES("0-1-2"), -EINVAL, 0 },
		{ BYTES("0-1:1/2"), -EINVAL, 0 },
		{ BYTES("N"), -EINVAL, 0 },
		{ BYTES("0-N"), -EINVAL, 0 },
		{ BYTES("all"), -EINVAL, 0 },
		{ BYTES("0 "), -EINVAL, 0 },
		{ BYTES("0 1"), -EINVAL, 0 },
		{ BYTES(" "), -EINVAL, 0 },
		{ BYTES("0\n"), -EINVAL, 0 },
		{ BYTES("0\0"), -EINVAL, 0 },
		{ BYTES("0,\0"), -EINVAL, 0 },
		{ BYTES("0 -1"), -EINVAL, 0 },
		{ BYTES("0- 1"), -EINVAL, 0 },
		{ BYTES("18446744073709551616"), -EINVAL, 0 },
		{ BYTES("0;1"), -EINVAL, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mf_nodemask mask = KEEP;
		int error = mf_parse_nodelist(cases[i].text, &mask);

		CU_ASSERT_EQUAL(error, cases[i].error);
		CU_ASSERT_EQUAL(mask, cases[i].error ? KEEP : cases[i].value);
		if (error != cases[i].error)
			printf("\n  case %zu \"%.*s\"\n", i, (int)cases[i].text.length, cases[i].text.at);
	}
}

static void test_list_of_many_bits(void)
{
	uint64_t bits[16];

	memset(bits, 0xff, sizeof(bits));
	CU_ASSERT_EQUAL(mf_parse_list(mf_text_of("0,62-65,1023"), 1023, bits), 0);
	CU_ASSERT_EQUAL(bits[0], UINT64_C(0xc000000000000001));
	CU_ASSERT_EQUAL(bits[1], 3);
	for (int i = 2; i < 15; i++)
		CU_ASSERT_EQUAL(bits[i], 0);
	CU_ASSERT_EQUAL(bits[15], UINT64_C(1) << 63);
	CU_ASSERT_EQUAL(mf_parse_list(mf_text_of("5,1024"), 1023, bits), -EINVAL);
	CU_ASSERT_EQUAL(bits[0], UINT64_C(0xc000000000000001));
	bits[1] = 99; /* behind the last word of a smaller list */
	CU_ASSERT_EQUAL(mf_parse_list(mf_text_of("3"), 3, bits), 0);
	CU_ASSERT_EQUAL(mf_parse_list(mf_text_of("4"), 3, bits), -EINVAL);
	CU_ASSERT_EQUAL(bits[0], 8);
	CU_ASSERT_EQUAL(bits[1], 99);
}

static void test_words(void)
{
	struct mf_text rest = mf_text_of("  db \t count=4  x ");
	struct mf_text empty = mf_text_of("");

	CU_ASSERT_TRUE(mf_text_is(mf_text_word(&rest), "db"));
	CU_ASSERT_TRUE(mf_text_is(mf_text_word(&rest), "count=4"));
	CU_ASSERT_TRUE(mf_text_is(mf_text_word(&rest), "x"));
	CU_ASSERT_EQUAL(rest.length, 0);
	CU_ASSERT_EQUAL(mf_text_word(&rest).length, 0);
	CU_ASSERT_EQUAL(mf_text_word(&empty).length, 0);
	rest = mf_text_of("a\nb c");
	CU_ASSERT_TRUE(mf_text_is(mf_text_word(&rest), "a\nb"));
}

static void test_until(void)
{
	struct mf_text rest = mf_text_of("key=a=b");

	CU_ASSERT_TRUE(mf_text_is(mf_text_until(&rest, '='), "key"));
	CU_ASSERT_TRUE(mf_text_is(rest, "a=b"));
	CU_ASSERT_TRUE(mf_text_is(mf_text_until(&rest, ','), "a=b"));
	CU_ASSERT_EQUAL(rest.length, 0);
	rest = mf_text_of(",x");
	CU_ASSERT_EQUAL(mf_text_until(&rest, ',').length, 0);
	CU_ASSERT_TRUE(mf_text_is(rest, "x"));
	CU_ASSERT_FALSE(mf_text_is(mf_text_of("ab"), "abc"));
	CU_ASSERT_FALSE(mf_text_is(mf_text_of("abc"), "ab"));
	CU_ASSERT_FALSE(mf_text_is(BYTES("ab\0"), "ab"));
}

static void test_names(void)
{
	static const char sixty_four[] = "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff0123x";
	struct mf_text text = { sixty_four, 64 };

	CU_ASSERT_TRUE(mf_name_is_valid(mf_text_of("db")));
	CU_ASSERT_TRUE(mf_name_is_valid(mf_text_of("-")));
	CU_ASSERT_TRUE(mf_name_is_valid(mf_text_of("...")));
	CU_ASSERT_TRUE(mf_name_is_valid(mf_text_of("AZaz09._:-")));
	CU_ASSERT_TRUE(mf_name_is_valid(text));
	text.length = 65;
	CU_ASSERT_FALSE(mf_name_is_valid(text));
	CU_ASSERT_FALSE(mf_name_is_valid(mf_text_of("")));
	CU_ASSERT_FALSE(mf_name_is_valid(mf_text_of(".")));
	CU_ASSERT_FALSE(mf_name_is_valid(mf_text_of("..")));
	CU_ASSERT_FALSE(mf_name_is_valid(mf_text_of("a/b")));
	CU_ASSERT_FALSE(mf_name_is_valid(mf_text_of("a b")));
	CU_ASSERT_FALSE(mf_name_is_valid(mf_text_of("a=b")));
	CU_ASSERT_FALSE(mf_name_is_valid(mf_text_of("a\xc3\xa9")));
	CU_ASSERT_FALSE(mf_name_is_valid(BYTES("a\0b")));
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_u64_of_a_weight),
	UNIT_TEST(test_u64_never_wraps),
	UNIT_TEST(test_text_is_not_terminated),
	UNIT_TEST(test_size),
	UNIT_TEST(test_i64),
	UNIT_TEST(test_bool),
	UNIT_TEST(test_nodelist),
	UNIT_TEST(test_list_of_many_bits),
	UNIT_TEST(test_words),
	UNIT_TEST(test_until),
	UNIT_TEST(test_names),
};

UNIT_MAIN("parse", tests)
