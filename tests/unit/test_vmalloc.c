/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranges on the simulator: what is refused, what they contain, what guards
 * them, what is told of them, and what is left when they are gone.
 */
#include "vmalloc_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define TWO_NODES "2x64M:cpus=1"
#define ONE_NODE "64M:cpus=1"

#ifdef __SANITIZE_ADDRESS__
#define RANDOM_ROUNDS 30000
#else
#define RANDOM_ROUNDS 100000
#endif

/* --- refusals --- */

static void expect_refused(struct machine *m, const struct mf_vmalloc_request *request, int error,
			   const char *why)
{
	uint64_t fails = stat_of(m, MF_STAT_vmalloc_fail), asked = stat_of(m, MF_STAT_vmalloc_requests);
	void *address;

	CU_ASSERT_EQUAL(ask(m, request, &address), error);
	CU_ASSERT_STRING_EQUAL(m->why, why);
	CU_ASSERT_EQUAL(stat_of(m, MF_STAT_vmalloc_fail), fails + 1);
	CU_ASSERT_EQUAL(stat_of(m, MF_STAT_vmalloc_requests), asked + 1);
	expect_as_at_start(m);
}

static void test_refused(void)
{
	struct mf_vmalloc_request request = request_of(1);
	static struct machine m;

	start(&m, "2x64M:cpus=1+0:cpus=1");
	request.size = 0;
	expect_refused(&m, &request, -EINVAL, "size is 0");
	request.size = 5000;
	request.align = 3 * PAGE;
	expect_refused(&m, &request, -EINVAL, "align 12288 is no power of two");
	request = request_of(32769);
	expect_refused(&m, &request, -ENOMEM, "32769 pages asked, all nodes hold 32768");
	request.size = UINT64_MAX;
	expect_refused(&m, &request, -ENOMEM, "4503599627370496 pages asked, all nodes hold 32768");
	request = request_of(1);
	request.page.node = 2;
	expect_refused(&m, &request, -EINVAL, "the node named has no memory");
	request.page.node = 3;
	expect_refused(&m, &request, -EINVAL, "the node named has no memory");
	CU_ASSERT_PTR_NULL(mf_vmalloc_simple(m.vm, &m.place, 0, MEMFS_GFP_KERNEL, NULL));
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_PTR_NULL(mf_vmalloc_simple(m.vm, &m.place, SIZE_MAX, MEMFS_GFP_KERNEL, NULL));
	CU_ASSERT_EQUAL(errno, ENOMEM);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_pgalloc), 0);
	stop(&m);
}

static void expect_no_range(struct machine *m, const void *address)
{
	CU_ASSERT_EQUAL(mf_vmalloc_free(m->vm, &m->place, address), -EINVAL);
	CU_ASSERT_EQUAL(mf_vmalloc_unmap(m->vm, address), -EINVAL);
}

static void expect_only_start(struct machine *m, char *address, uint64_t pages)
{
	CU_ASSERT_EQUAL(mf_vmalloc_unmap(m->vm, address), -EINVAL);
	expect_no_range(m, address + 1);
	expect_no_range(m, address + PAGE);
	expect_no_range(m, address + (pages - 1) * PAGE);
	expect_no_range(m, address + pages * PAGE);
	put(m, address);
	expect_no_range(m, address);
}

static void test_foreign_addresses(void)
{
	static struct machine m;
	char *linear, *mapped;

	start(&m, TWO_NODES);
	expect_no_range(&m, NULL);
	expect_no_range(&m, &m);
	expect_no_range(&m, m.vm->base);
	expect_no_range(&m, (char *)m.vm->base + m.vm->bytes - PAGE);
	expect_no_range(&m, mf_page_address(m.pg, 100));
	linear = get(&m, 20);
	set_linear(&m, 0);
	mapped = get(&m, 20);
	CU_ASSERT_FALSE(is_mapped(&m, linear));
	CU_ASSERT_TRUE(is_mapped(&m, mapped));
	expect_only_start(&m, linear, 20);
	expect_only_start(&m, mapped, 20);
	mf_vmalloc_purge(m.vm);
	expect_no_range(&m, mapped);
	expect_as_at_start(&m);
	stop(&m);
}

/* --- contents --- */

static void fill(char *address, uint64_t pages, uint64_t tag)
{
	for (uint64_t i = 0; i < pages; i++) {
		*(uint64_t *)(address + i * PAGE) = tag + i;
		*(uint64_t *)(address + (i + 1) * PAGE - 8) = ~(tag + i);
	}
}

static bool is_filled(const char *address, uint64_t pages, uint64_t tag)
{
	for (uint64_t i = 0; i < pages; i++)
		if (*(const uint64_t *)(address + i * PAGE) != tag + i ||
		    *(const uint64_t *)(address + (i + 1) * PAGE - 8) != ~(tag + i))
			return false;
	return true;
}

/* By the address of the range, by that of each page, and the page by the address. */
static void check_contents(struct machine *m, char *address, uint64_t pages)
{
	static memfs_pfn pfns[MOST_PAGES];
	uint32_t pfn;

	CU_ASSERT_EQUAL_FATAL(mf_vmalloc_pages(m->vm, address, pfns, MOST_PAGES), pages);
	fill(address, pages, 1000);
	CU_ASSERT_TRUE(is_filled(address, pages, 1000));
	for (uint64_t i = 0; i < pages; i++) {
		uint64_t *page = mf_page_address(m->pg, pfns[i].v);

		CU_ASSERT_EQUAL(*page, 1000 + i);
		*page = 5000 + i;
		CU_ASSERT_TRUE(i == 0 || pfns[i].v > pfns[i - 1].v);
		CU_ASSERT_TRUE(mf_vmalloc_page(m->vm, address + i * PAGE + 77, &pfn) && pfn == pfns[i].v);
	}
	for (uint64_t i = 0; i < pages; i++)
		CU_ASSERT_EQUAL(*(uint64_t *)(address + i * PAGE), 5000 + i);
}

static void test_contents(void)
{
	static const uint64_t sizes[] = { 1, 2, 3, 5, 7, 8, 9, 63, 400, 512, 513, 3000 };
	static struct machine m;

	start(&m, TWO_NODES);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *linear, *mapped, *spread;

		set_linear(&m, 1);
		linear = get(&m, sizes[i]);
		set_linear(&m, 0);
		mapped = get(&m, sizes[i]);
		set_policy(&m, "interleave:0-1");
		spread = get(&m, sizes[i]);
		set_policy(&m, "default");
		CU_ASSERT_TRUE(is_mapped(&m, mapped));
		CU_ASSERT_TRUE(is_mapped(&m, spread));
		check_contents(&m, linear, sizes[i]);
		check_contents(&m, mapped, sizes[i]);
		check_contents(&m, spread, sizes[i]);
		check_ok(&m, 0);
		put(&m, linear);
		put(&m, mapped);
		put(&m, spread);
	}
	expect_as_at_start(&m);
	stop(&m);
}

static bool is_clear(const char *address, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i += 8)
		if (*(const uint64_t *)(address + i))
			return false;
	return true;
}

static void test_cleared_by_flag(void)
{
	struct mf_vmalloc_request request = request_of(100);
	static struct machine m;
	void *address;

	start(&m, ONE_NODE);
	request.page.gfp |= MEMFS___GFP_ZERO;
	for (int round = 0; round < 6; round++) {
		set_linear(&m, round & 1);
		CU_ASSERT_EQUAL_FATAL(ask(&m, &request, &address), 0);
		CU_ASSERT_TRUE(is_clear(address, 100 * PAGE));
		memset(address, 0x5a, 100 * PAGE);
		put(&m, address);
		mf_vmalloc_purge(m.vm);
	}
	for (int round = 0; round < 4; round++) {
		address = mf_vmalloc_simple(m.vm, &m.place, 5 * PAGE, request.page.gfp, NULL);
		CU_ASSERT_TRUE(is_clear(address, 5 * PAGE));
		memset(address, 0x5a, 5 * PAGE);
		put(&m, address);
	}
	expect_as_at_start(&m);
	stop(&m);
}

static void test_touch(void)
{
	struct mf_vmalloc_request request = request_of(300);
	static struct machine m;
	void *address;

	start(&m, ONE_NODE);
	request.touch = true;
	for (int linear = 0; linear < 2; linear++) {
		set_linear(&m, linear);
		mf_page_trim(m.pg);
		CU_ASSERT_EQUAL(mf_page_resident(m.pg, 0), 0);
		CU_ASSERT_EQUAL_FATAL(ask(&m, &request, &address), 0);
		CU_ASSERT_EQUAL(mf_page_resident(m.pg, 0), (int64_t)(300 * PAGE));
		put(&m, address);
		mf_vmalloc_purge(m.vm);
		mf_page_drain(m.pg, -1);
		mf_page_trim(m.pg);
	}
	/* A host that has no memory now is asked again later: no failure. */
	mf_plat_sim_fail(m.plat, MF_SIM_POPULATE, 1);
	CU_ASSERT_EQUAL_FATAL(ask(&m, &request, &address), 0);
	put(&m, address);
	expect_as_at_start(&m);
	stop(&m);
}

/* --- the guard --- */

/* The signal that writing there ends a process with, 0: none. */
static int write_there(char *at)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		*(volatile char *)at = 1;
		_exit(0);
	}
	CU_ASSERT_TRUE_FATAL(child > 0);
	CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_guard(void)
{
	static struct machine m;
	char *first, *second, *linear;
	uint32_t pfn;

	start(&m, ONE_NODE);
	linear = get(&m, 4);
	set_linear(&m, 0);
	first = get(&m, 4);
	second = get(&m, 4);
	CU_ASSERT_PTR_EQUAL(second, first + 5 * PAGE);
	CU_ASSERT_EQUAL(write_there(first + 4 * PAGE - 1), 0);
	CU_ASSERT_EQUAL(write_there(first + 4 * PAGE), SIGSEGV);
	CU_ASSERT_EQUAL(write_there(first + 5 * PAGE - 1), SIGSEGV);
	CU_ASSERT_EQUAL(write_there(second), 0);
	CU_ASSERT_EQUAL(write_there(second + 4 * PAGE), SIGSEGV);
	CU_ASSERT_FALSE(mf_vmalloc_page(m.vm, first + 4 * PAGE, &pfn));
	CU_ASSERT_TRUE(mf_vmalloc_page(m.vm, first + 4 * PAGE - 1, &pfn));
	/* A linear range ends where the next page of the arena begins. */
	CU_ASSERT_EQUAL(write_there(linear + 4 * PAGE), 0);
	put(&m, first);
	CU_ASSERT_FALSE(mf_vmalloc_page(m.vm, first, &pfn));
	mf_vmalloc_purge(m.vm);
	CU_ASSERT_EQUAL(write_there(first), SIGSEGV);
	put(&m, second);
	put(&m, linear);
	expect_as_at_start(&m);
	stop(&m);
}

/* --- vmap --- */

static void test_vmap(void)
{
	static struct machine m;
	void *address, *again;
	uint32_t pfn;

	start(&m, TWO_NODES);
	CU_ASSERT_EQUAL(mf_vmalloc_map(m.vm, 0, m.pfns, "test", &address, m.why, sizeof(m.why)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(m.why, "no pages");
	hold(&m, 0, 20);
	hold(&m, 1, 20);
	m.pfns[40].v = 40000;
	CU_ASSERT_EQUAL(mf_vmalloc_map(m.vm, 41, m.pfns, "test", &address, m.why, sizeof(m.why)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(m.why, "pfn 40000 is no page");
	/* The order is the caller's, and a page may appear in two places. */
	for (unsigned i = 0; i < 20; i++) {
		memfs_pfn pfn_of_first = m.pfns[i];

		m.pfns[i] = m.pfns[39 - i];
		m.pfns[39 - i] = pfn_of_first;
	}
	CU_ASSERT_EQUAL(mf_vmalloc_map(m.vm, 40, m.pfns, "test", &address, NULL, 0), 0);
	CU_ASSERT_EQUAL(mf_vmalloc_map(m.vm, 40, m.pfns, "test", &again, NULL, 0), 0);
	fill(address, 40, 7);
	CU_ASSERT_TRUE(is_filled(again, 40, 7));
	for (unsigned i = 0; i < 40; i++) {
		CU_ASSERT_EQUAL(*(uint64_t *)mf_page_address(m.pg, m.pfns[i].v), 7 + i);
		CU_ASSERT_TRUE(mf_vmalloc_page(m.vm, (char *)address + i * PAGE, &pfn) && pfn == m.pfns[i].v);
	}
	CU_ASSERT_EQUAL(info_of(&m).used_pages, 0);
	CU_ASSERT_EQUAL(info_of(&m).areas, 2);
	CU_ASSERT_EQUAL(mf_vmalloc_free(m.vm, &m.place, address), -EINVAL);
	CU_ASSERT_EQUAL(mf_vmalloc_unmap(m.vm, (char *)address + PAGE), -EINVAL);
	CU_ASSERT_EQUAL(mf_vmalloc_unmap(m.vm, address), 0);
	CU_ASSERT_EQUAL(mf_vmalloc_unmap(m.vm, address), -EINVAL);
	CU_ASSERT_EQUAL(info_of(&m).lazy_areas, 1);
	CU_ASSERT_EQUAL(info_of(&m).lazy_pages, 0);
	check_ok(&m, 40);
	CU_ASSERT_EQUAL(mf_vmalloc_purge(m.vm), 0);
	CU_ASSERT_TRUE(is_filled(again, 40, 7));
	CU_ASSERT_EQUAL(mf_vmalloc_unmap(m.vm, again), 0);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_pgalloc), 40);
	CU_ASSERT_EQUAL(stat_of(&m, MF_STAT_pgfree), 0);
	let_go(&m);
	expect_as_at_start(&m);
	stop(&m);
}

/* --- looking --- */

struct seen {
	struct mf_vmalloc_area area[16];
	uint64_t start[16], size[16];
	unsigned nr;
};

static void see(void *arg, const struct mf_vmalloc_area *area)
{
	struct seen *seen = arg;

	if (seen->nr < 16)
		seen->area[seen->nr++] = *area;
}

static void see_free(void *arg, uint64_t at, uint64_t size)
{
	struct seen *seen = arg;

	if (seen->nr < 16) {
		seen->start[seen->nr] = at;
		seen->size[seen->nr++] = size;
	}
}

static void expect_area(const struct mf_vmalloc_area *area, const void *at, uint64_t bytes, uint64_t first,
			uint64_t second)
{
	CU_ASSERT_EQUAL(area->start, (uintptr_t)at);
	CU_ASSERT_EQUAL(area->size, bytes);
	CU_ASSERT_EQUAL(area->pages, first + second);
	CU_ASSERT_EQUAL(area->by_node[0], first);
	CU_ASSERT_EQUAL(area->by_node[1], second);
}

static const struct mf_vmalloc_area *area_at(const struct seen *seen, const void *at)
{
	for (unsigned i = 0; i < seen->nr; i++)
		if (seen->area[i].start == (uintptr_t)at)
			return &seen->area[i];
	CU_FAIL_FATAL("no such area");
	return NULL;
}

static void expect_free(struct machine *m, const struct seen *seen, unsigned i, uint64_t offset,
			uint64_t size)
{
	CU_ASSERT_EQUAL(seen->start[i], (uintptr_t)m->vm->base + offset);
	CU_ASSERT_EQUAL(seen->size[i], size);
}

static void test_for_each(void)
{
	struct seen seen = { .nr = 0 };
	static struct machine m;
	char *linear, *mapped, *spread;
	void *mapping;

	start(&m, TWO_NODES);
	hold(&m, 1, 3);
	linear = get(&m, 6);
	set_linear(&m, 0);
	mapped = get(&m, 10);
	set_policy(&m, "interleave:0-1");
	spread = get(&m, 20);
	CU_ASSERT_EQUAL_FATAL(mf_vmalloc_map(m.vm, 3, m.pfns, "mapper", &mapping, NULL, 0), 0);
	CU_ASSERT_EQUAL(mf_vmalloc_for_each(m.vm, false, see, &seen), 0);
	CU_ASSERT_EQUAL_FATAL(seen.nr, 4);
	for (unsigned i = 1; i < seen.nr; i++)
		CU_ASSERT_TRUE(seen.area[i].start > seen.area[i - 1].start);
	expect_area(area_at(&seen, linear), linear, 6 * PAGE, 6, 0);
	CU_ASSERT_TRUE(area_at(&seen, linear)->linear);
	CU_ASSERT_EQUAL(area_at(&seen, linear)->runs, 1);
	expect_area(area_at(&seen, mapped), mapped, 11 * PAGE, 10, 0);
	CU_ASSERT_FALSE(area_at(&seen, mapped)->linear);
	CU_ASSERT_STRING_EQUAL(area_at(&seen, mapped)->caller, "test");
	expect_area(area_at(&seen, spread), spread, 21 * PAGE, 10, 10);
	CU_ASSERT_TRUE(area_at(&seen, spread)->runs >= 2);
	expect_area(area_at(&seen, mapping), mapping, 4 * PAGE, 0, 3);
	CU_ASSERT_TRUE(area_at(&seen, mapping)->vmap);
	CU_ASSERT_STRING_EQUAL(area_at(&seen, mapping)->caller, "mapper");
	CU_ASSERT_EQUAL(info_of(&m).used_pages, 36);
	CU_ASSERT_EQUAL(info_of(&m).areas, 3);
	put(&m, mapped);
	put(&m, linear);
	seen.nr = 0;
	CU_ASSERT_EQUAL(mf_vmalloc_for_each(m.vm, true, see, &seen), 0);
	CU_ASSERT_EQUAL_FATAL(seen.nr, 1);
	expect_area(&seen.area[0], mapped, 11 * PAGE, 10, 0);
	mf_vmalloc_purge(m.vm);
	seen.nr = 0;
	CU_ASSERT_EQUAL(mf_vmalloc_for_each_free(m.vm, see_free, &seen), 0);
	CU_ASSERT_EQUAL(seen.nr, 2);
	expect_free(&m, &seen, 0, 0, 11 * PAGE);
	expect_free(&m, &seen, 1, 36 * PAGE, m.vm->bytes - 36 * PAGE);
	put(&m, spread);
	mf_vmalloc_unmap(m.vm, mapping);
	let_go(&m);
	expect_as_at_start(&m);
	stop(&m);
}

static void test_pages_at_most(void)
{
	static struct machine m;
	memfs_pfn pfns[6];
	char *address;

	start(&m, TWO_NODES);
	for (int linear = 0; linear < 2; linear++) {
		set_linear(&m, linear);
		address = get(&m, 9);
		pfns[5].v = 4711;
		CU_ASSERT_EQUAL(mf_vmalloc_pages(m.vm, address, pfns, 5), 9);
		CU_ASSERT_EQUAL(pfns[5].v, 4711);
		CU_ASSERT_EQUAL(mf_vmalloc_pages(m.vm, address + PAGE, pfns, 5), 0);
		CU_ASSERT_EQUAL(mf_vmalloc_pages(m.vm, address + 1, pfns, 5), 0);
		put(&m, address);
		CU_ASSERT_EQUAL(mf_vmalloc_pages(m.vm, address, pfns, 5), 0);
	}
	CU_ASSERT_EQUAL(mf_vmalloc_pages(m.vm, &m, pfns, 5), 0);
	expect_as_at_start(&m);
	stop(&m);
}

/* --- the check finds what is wrong --- */

static unsigned violations(struct machine *m)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	unsigned bad = mf_vmalloc_check(m->vm, &out);

	CU_ASSERT_EQUAL(bad == 0, out.length == 0);
	mf_outbuf_free(&out);
	return bad;
}

static void test_check_sees(void)
{
	static struct machine m;
	struct mf_vm_area *area;
	char *linear, *mapped;
	uint32_t pfn;

	start(&m, TWO_NODES);
	linear = get(&m, 6);
	set_linear(&m, 0);
	mapped = get(&m, 6);
	CU_ASSERT_EQUAL(violations(&m), 0);
	m.vm->mappings++;
	CU_ASSERT_EQUAL(violations(&m), 1);
	m.vm->mappings--;
	m.vm->lazy_span++;
	CU_ASSERT_EQUAL(violations(&m), 1);
	m.vm->lazy_span--;
	area = mf_space_find(&m.vm->space, (uintptr_t)mapped)->owner;
	area->runs[0].pages++;
	CU_ASSERT_EQUAL(violations(&m), 2);
	area->runs[0].pages--;
	CU_ASSERT_TRUE_FATAL(mf_vmalloc_page(m.vm, linear, &pfn));
	m.vm->linear[pfn + 2] = 1;
	CU_ASSERT_EQUAL(violations(&m), 1);
	m.vm->linear[pfn + 2] = 0;
	m.vm->linear[pfn] = 20000;
	CU_ASSERT_EQUAL(violations(&m), 1);
	m.vm->linear[pfn] = 6;
	CU_ASSERT_EQUAL(violations(&m), 0);
	put(&m, linear);
	put(&m, mapped);
	expect_as_at_start(&m);
	stop(&m);
}

/* --- many --- */

#define SLOTS 64

static uint64_t random_state;

static uint64_t below(uint64_t bound)
{
	random_state = random_state * 6364136223846793005 + 1442695040888963407;
	return (random_state >> 33) % bound;
}

static char *get_somehow(struct machine *m, uint64_t pages)
{
	set_linear(m, below(2) != 0);
	return below(2) ? get(m, pages)
			: mf_vmalloc_simple(m->vm, &m->place, pages * PAGE, MEMFS_GFP_KERNEL, NULL);
}

static void test_random(void)
{
	static struct {
		char *address;
		uint64_t pages, tag;
	} slot[SLOTS];
	static struct machine m;
	unsigned spoilt = 0;

	start(&m, TWO_NODES);
	random_state = 1;
	memset(slot, 0, sizeof(slot));
	set_lazy_max(&m, 2000);
	for (uint64_t round = 0; round < RANDOM_ROUNDS; round++) {
		unsigned i = (unsigned)below(SLOTS);

		if (round % 1024 == 0)
			set_policy(&m, below(2) ? "interleave:0-1" : "default");
		if (slot[i].address) {
			spoilt += !is_filled(slot[i].address, slot[i].pages, slot[i].tag);
			put(&m, slot[i].address);
			slot[i].address = NULL;
			continue;
		}
		slot[i].pages = 1 + below(below(16) ? 12 : 200);
		slot[i].tag = round << 20;
		slot[i].address = get_somehow(&m, slot[i].pages);
		CU_ASSERT_PTR_NOT_NULL_FATAL(slot[i].address);
		fill(slot[i].address, slot[i].pages, slot[i].tag);
		if (round % 8192 == 0)
			check_ok(&m, 0);
	}
	for (unsigned i = 0; i < SLOTS; i++)
		if (slot[i].address) {
			spoilt += !is_filled(slot[i].address, slot[i].pages, slot[i].tag);
			put(&m, slot[i].address);
		}
	CU_ASSERT_EQUAL(spoilt, 0);
	CU_ASSERT_TRUE(stat_of(&m, MF_STAT_vmalloc_linear) > RANDOM_ROUNDS / 16);
	CU_ASSERT_TRUE(stat_of(&m, MF_STAT_vmalloc_mapped) > RANDOM_ROUNDS / 16);
	CU_ASSERT_TRUE(stat_of(&m, MF_STAT_vmalloc_pages_parked) > 0);
	CU_ASSERT_TRUE(stat_of(&m, MF_STAT_vmalloc_purge) > 0);
	expect_as_at_start(&m);
	stop(&m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_refused),       UNIT_TEST(test_foreign_addresses),
	UNIT_TEST(test_contents),      UNIT_TEST(test_cleared_by_flag),
	UNIT_TEST(test_touch),	       UNIT_TEST(test_guard),
	UNIT_TEST(test_vmap),	       UNIT_TEST(test_for_each),
	UNIT_TEST(test_pages_at_most), UNIT_TEST(test_check_sees),
	UNIT_TEST(test_random),
};

UNIT_MAIN("vmalloc", tests)
