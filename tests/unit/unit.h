/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What every CUnit program of this folder shares: a table of tests and main().
 */
#ifndef MF_TESTS_UNIT_H
#define MF_TESTS_UNIT_H

#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit_test {
	const char *name;
	void (*run)(void);
};

#define UNIT_TEST(function) \
	{ \
#function, function \
	}

static inline int unit_main(const char *suite_name, const struct unit_test *tests, size_t nr_tests)
{
	CU_pSuite suite;
	unsigned failures;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	suite = CU_add_suite(suite_name, NULL, NULL);
	for (size_t i = 0; suite && i < nr_tests; i++)
		if (!CU_add_test(suite, tests[i].name, tests[i].run))
			return 2;
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failures = CU_get_number_of_failures() + CU_get_number_of_tests_failed();
	printf("TOTALS %u passed, %u failed, 0 skipped\n",
	       CU_get_number_of_tests_run() - CU_get_number_of_tests_failed(),
	       CU_get_number_of_tests_failed());
	CU_cleanup_registry();
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define UNIT_MAIN(suite_name, tests) \
	int main(void) \
	{ \
		return unit_main(suite_name, tests, sizeof(tests) / sizeof((tests)[0])); \
	}

#endif
