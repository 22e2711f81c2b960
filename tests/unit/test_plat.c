/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The operations on the real host and on the simulator: one set of checks of
 * the memory contract for both, then what only one of them has.
 */
#include "plat/plat.h"
#include "plat/plat_sim.h"
#include "plat/rseq.h"

#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define PAGE 4096
#ifdef MF_TSAN
#define HUGE_BYTES ((size_t)1 << 35) /* it leaves a program little address space */
#else
#define HUGE_BYTES ((size_t)1 << 40)
#endif

static struct mf_plat *host(void)
{
	struct mf_plat *plat = NULL;

	CU_ASSERT_EQUAL_FATAL(mf_plat_host_create(&plat), 0);
	return plat;
}

static struct mf_plat *sim(void)
{
	struct mf_plat *plat = NULL;

	CU_ASSERT_EQUAL_FATAL(mf_plat_sim_create(NULL, 0, &plat), 0);
	return plat;
}

/* How the kernel maps [at, at + bytes): its rights ("---p") if it is one or more mappings of the same, else "". */
static const char *rights_of(const void *at, size_t bytes)
{
	static char found[5];
	uintptr_t next = (uintptr_t)at, end = next + bytes;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	CU_ASSERT_PTR_NOT_NULL_FATAL(maps);
	found[0] = '\0';
	while (next < end && fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		char rights[5];

		if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3 || to <= next)
			continue;
		if (from > next || (found[0] && strcmp(found, rights)))
			break;
		strcpy(found, rights);
		next = to;
	}
	fclose(maps);
	return next >= end ? found : "";
}

/* Whether a load from there kills. */
static bool load_faults(const char *at)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would print */
		(void)*(const volatile char *)at;
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static bool all_bytes(const unsigned char *at, size_t bytes, unsigned char value)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != value)
			return false;
	return true;
}

/* Reserve, map in the middle, write, trim, unmap. */
static void check_memory(struct mf_plat *plat)
{
	const struct mf_plat_ops *ops = plat->ops;
	unsigned char *base = NULL, *at;
	int arena = -1;

	CU_ASSERT_EQUAL_FATAL(ops->reserve(plat, 8 * MIB, (void **)&base), 0);
	CU_ASSERT_EQUAL((uintptr_t)base % (2 * MIB), 0);
	CU_ASSERT_STRING_EQUAL(rights_of(base, 8 * MIB), "---p");
	CU_ASSERT_TRUE(load_faults((char *)base));
	at = base + 2 * MIB;
	CU_ASSERT_EQUAL_FATAL(ops->arena_map(plat, at, 4 * MIB, -1, &arena), 0);
	CU_ASSERT_EQUAL(strncmp(rights_of(at, 4 * MIB), "rw-", 3), 0);
	CU_ASSERT_STRING_EQUAL(rights_of(base, 2 * MIB), "---p");
	CU_ASSERT_STRING_EQUAL(rights_of(base + 6 * MIB, 2 * MIB), "---p");
	CU_ASSERT_EQUAL(ops->arena_resident(plat, arena), 0);

	memset(at, 0xa5, 8 * PAGE);
	at[4 * MIB - 1] = 7;
	CU_ASSERT_EQUAL(ops->arena_resident(plat, arena), 9 * PAGE);
	CU_ASSERT_TRUE(all_bytes(at + 8 * PAGE, 2 * PAGE, 0));
	CU_ASSERT_TRUE(all_bytes(at, 8 * PAGE, 0xa5));

	CU_ASSERT_EQUAL(ops->arena_trim(plat, arena, 2 * PAGE, 3 * PAGE), 0);
	CU_ASSERT_TRUE(all_bytes(at, 2 * PAGE, 0xa5));
	CU_ASSERT_TRUE(all_bytes(at + 5 * PAGE, 3 * PAGE, 0xa5));
	CU_ASSERT_TRUE(ops->arena_resident(plat, arena) <= 8 * PAGE);
	CU_ASSERT_TRUE(all_bytes(at + 2 * PAGE, 3 * PAGE, 0));
	CU_ASSERT_EQUAL(at[4 * MIB - 1], 7);
	CU_ASSERT_EQUAL(ops->arena_trim(plat, arena, 0, 4 * MIB), 0);
	CU_ASSERT_EQUAL(ops->arena_resident(plat, arena), 0);
	at[PAGE] = 1; /* and is there again */
	CU_ASSERT_EQUAL(ops->arena_resident(plat, arena), PAGE);

	CU_ASSERT_EQUAL(ops->arena_trim(plat, arena, 4 * MIB, 0), 0);
	CU_ASSERT_EQUAL(ops->arena_trim(plat, arena, 4 * MIB, PAGE), -EINVAL);
	CU_ASSERT_EQUAL(ops->arena_trim(plat, arena, PAGE, UINT64_MAX - PAGE + 1), -EINVAL);
	CU_ASSERT_EQUAL(at[PAGE], 1);

	ops->arena_unmap(plat, arena);
	CU_ASSERT_STRING_EQUAL(rights_of(base, 8 * MIB), "---p");
	CU_ASSERT_TRUE(load_faults((char *)at + PAGE));
	CU_ASSERT_EQUAL(ops->arena_resident(plat, arena), -EINVAL);
	CU_ASSERT_EQUAL(ops->arena_trim(plat, arena, 0, PAGE), -EINVAL);
	ops->arena_unmap(plat, arena); /* twice does no harm */

	/* A second arena at the same place starts as zeros. */
	CU_ASSERT_EQUAL_FATAL(ops->arena_map(plat, at, 4 * MIB, -1, &arena), 0);
	CU_ASSERT_EQUAL(at[PAGE], 0);
	ops->arena_unmap(plat, arena);
	ops->unreserve(plat, base, 8 * MIB);
	CU_ASSERT_STRING_EQUAL(rights_of(base, 8 * MIB), "");
}

static void check_many_arenas(struct mf_plat *plat)
{
	const struct mf_plat_ops *ops = plat->ops;
	int arenas[64];
	char *base;

	CU_ASSERT_EQUAL_FATAL(ops->reserve(plat, 128 * MIB, (void **)&base), 0);
	for (int i = 0; i < 64; i++) {
		CU_ASSERT_EQUAL_FATAL(ops->arena_map(plat, base + i * 2 * MIB, 2 * MIB, -1, &arenas[i]), 0);
		base[i * 2 * MIB] = (char)(i + 1);
	}
	for (int i = 0; i < 64; i++) {
		CU_ASSERT_EQUAL(base[i * 2 * MIB], i + 1);
		CU_ASSERT_EQUAL(ops->arena_resident(plat, arenas[i]), PAGE);
	}
	/* One in the middle goes; its neighbours stay, and its handle serves the next. */
	ops->arena_unmap(plat, arenas[30]);
	CU_ASSERT_STRING_EQUAL(rights_of(base + 60 * MIB, 2 * MIB), "---p");
	CU_ASSERT_EQUAL(base[58 * MIB], 30);
	CU_ASSERT_EQUAL(base[62 * MIB], 32);
	CU_ASSERT_EQUAL(ops->arena_map(plat, base + 60 * MIB, 2 * MIB, -1, &arenas[30]), 0);
	CU_ASSERT_EQUAL(base[60 * MIB], 0);
	for (int i = 0; i < 64; i++)
		ops->arena_unmap(plat, arenas[i]);
	ops->unreserve(plat, base, 128 * MIB);
}

static void check_large_and_wrong(struct mf_plat *plat)
{
	const struct mf_plat_ops *ops = plat->ops;
	size_t huge = HUGE_BYTES;
	void *base = NULL;
	int arena = 77;
	char *meta;

	/* Nothing costs anything until it is touched. */
	CU_ASSERT_EQUAL_FATAL(ops->reserve(plat, huge, &base), 0);
	CU_ASSERT_EQUAL_FATAL(ops->arena_map(plat, base, huge, -1, &arena), 0);
	((char *)base)[huge - 1] = 3;
	CU_ASSERT_EQUAL(((char *)base)[huge / 2], 0);
	CU_ASSERT_EQUAL(ops->arena_trim(plat, arena, 0, huge), 0);
	CU_ASSERT_EQUAL(((char *)base)[huge - 1], 0);
	ops->arena_unmap(plat, arena);
	ops->unreserve(plat, base, huge);
	meta = ops->meta_alloc(plat, (size_t)1 << 38);
	CU_ASSERT_PTR_NOT_NULL_FATAL(meta);
	CU_ASSERT_EQUAL((uintptr_t)meta % PAGE, 0);
	CU_ASSERT_EQUAL(meta[0], 0);
	meta[((size_t)1 << 38) - 1] = 1;
	ops->meta_free(plat, meta, (size_t)1 << 38);
	ops->meta_free(plat, NULL, 5);
	CU_ASSERT_STRING_EQUAL(rights_of(meta, PAGE), "");

	base = NULL;
	arena = 77;
	CU_ASSERT_EQUAL(ops->reserve(plat, 0, &base), -EINVAL);
	CU_ASSERT_EQUAL(ops->reserve(plat, SIZE_MAX, &base), -EINVAL);
	CU_ASSERT_EQUAL(ops->reserve(plat, SIZE_MAX / 2, &base), -ENOMEM);
	CU_ASSERT_PTR_NULL(base);
	CU_ASSERT_EQUAL(ops->arena_map(plat, (void *)(uintptr_t)(2 * MIB + 1), PAGE, -1, &arena), -EINVAL);
	CU_ASSERT_EQUAL(ops->arena_map(plat, (void *)(uintptr_t)(2 * MIB), 0, -1, &arena), -EINVAL);
	CU_ASSERT_EQUAL(arena, 77);
	CU_ASSERT_EQUAL(ops->arena_resident(plat, 1000), -EINVAL);
	CU_ASSERT_EQUAL(ops->arena_resident(plat, -1), -EINVAL);
	CU_ASSERT_PTR_NULL(ops->meta_alloc(plat, 0));
}

static void host_memory(void)
{
	struct mf_plat *plat = host();

	check_memory(plat);
	check_many_arenas(plat);
	check_large_and_wrong(plat);
	plat->ops->destroy(plat);
}

static void sim_memory(void)
{
	struct mf_plat *plat = sim();

	check_memory(plat);
	check_many_arenas(plat);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(plat), 0);
	check_large_and_wrong(plat);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(plat), 0);
	plat->ops->destroy(plat);
}

static void *map_and_unmap(void *data)
{
	struct mf_plat *plat = data;
	intptr_t wrong = 0;

	for (int i = 0; i < 50; i++) {
		char *base;
		int arena;

		if (plat->ops->reserve(plat, 2 * MIB, (void **)&base) ||
		    plat->ops->arena_map(plat, base, 2 * MIB, -1, &arena))
			return (void *)1;
		wrong += base[MIB] != 0;
		base[MIB] = 1;
		wrong += plat->ops->arena_resident(plat, arena) != PAGE;
		plat->ops->arena_unmap(plat, arena);
		plat->ops->unreserve(plat, base, 2 * MIB);
	}
	return (void *)wrong;
}

static void in_parallel(void)
{
	struct mf_plat *plats[2] = { host(), sim() };

	for (int i = 0; i < 2; i++) {
		pthread_t threads[4];

		for (int t = 0; t < 4; t++)
			CU_ASSERT_EQUAL(pthread_create(&threads[t], NULL, map_and_unmap, plats[i]), 0);
		for (int t = 0; t < 4; t++) {
			void *wrong;

			CU_ASSERT_EQUAL(pthread_join(threads[t], &wrong), 0);
			CU_ASSERT_PTR_NULL(wrong);
		}
	}
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(plats[1]), 0);
	for (int i = 0; i < 2; i++)
		plats[i]->ops->destroy(plats[i]);
}

/* Arenas survive a fork of the process shared: the host's memory is a file. */
static void host_arena_is_shared(void)
{
	struct mf_plat *plat = host();
	int arena, status = 1;
	char *base;
	pid_t child;

	CU_ASSERT_EQUAL_FATAL(plat->ops->reserve(plat, 2 * MIB, (void **)&base), 0);
	CU_ASSERT_EQUAL_FATAL(plat->ops->arena_map(plat, base, 2 * MIB, 0, &arena), 0);
	child = fork();
	if (child == 0) {
		base[5] = 9;
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_EQUAL(base[5], 9);
	plat->ops->arena_unmap(plat, arena);
	plat->ops->unreserve(plat, base, 2 * MIB);
	plat->ops->destroy(plat);
}

static void destroy_unmaps(void)
{
	struct mf_plat *plat = host();
	int arena, before, after;
	void *base;

	before = dup(0);
	close(before);
	CU_ASSERT_EQUAL_FATAL(plat->ops->reserve(plat, 2 * MIB, &base), 0);
	CU_ASSERT_EQUAL_FATAL(plat->ops->arena_map(plat, base, 2 * MIB, -1, &arena), 0);
	plat->ops->destroy(plat);
	CU_ASSERT_STRING_EQUAL(rights_of(base, 2 * MIB), "---p");
	after = dup(0); /* the lowest free descriptor is the same: none leaked */
	close(after);
	CU_ASSERT_EQUAL(before, after);
	munmap(base, 2 * MIB);
}

/* What the kernel says a node has; 0 if it does not tell. */
static uint64_t kernel_node_bytes(int node)
{
	unsigned long long kib = 0;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", node);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (!fgets(line, sizeof(line), file) || sscanf(line, "Node %*d MemTotal: %llu kB", &kib) != 1)
		kib = 0;
	fclose(file);
	return kib << 10;
}

static void host_facts(void)
{
	static struct mf_plat_node nodes[64];
	struct mf_plat *plat = host();
	int nr = plat->ops->host_nodes(plat, nodes, 64), found = 0;
	uint64_t total = 0, first, second;
	cpu_set_t allowed;

	CU_ASSERT_FATAL(nr >= 1);
	for (int i = 0; i < nr; i++) {
		CU_ASSERT_TRUE(i == 0 || nodes[i].id > nodes[i - 1].id);
		CU_ASSERT_EQUAL(nodes[i].distance[nodes[i].id], 10);
		total += nodes[i].bytes;
		/* Memory may come and go; a tenth of it does not, between two looks. */
		CU_ASSERT_TRUE(nodes[i].bytes / 9 >= kernel_node_bytes(nodes[i].id) / 10);
	}
	CU_ASSERT_TRUE(total >= 16 * MIB);
	CU_ASSERT_TRUE(total / 2 <= (uint64_t)sysconf(_SC_PHYS_PAGES) * PAGE);
	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && cpu < 1024; cpu++) {
		int on = 0;

		for (int i = 0; i < nr; i++)
			on += nodes[i].cpus[cpu / 64] >> (cpu % 64) & 1;
		CU_ASSERT_TRUE(on <= 1);
		CU_ASSERT_TRUE(on == 1 || !CPU_ISSET(cpu, &allowed));
		found += on;
	}
	CU_ASSERT_EQUAL(found, sysconf(_SC_NPROCESSORS_ONLN));
	CU_ASSERT_EQUAL(plat->ops->host_nodes(plat, nodes, 0), 0);

	first = plat->ops->now_ns(plat);
	usleep(2000);
	second = plat->ops->now_ns(plat);
	CU_ASSERT_TRUE(second >= first + 2000000);
	CU_ASSERT_TRUE(CPU_ISSET(plat->ops->current_cpu(plat), &allowed));
	plat->ops->destroy(plat);
}

static void sim_facts(void)
{
	struct mf_plat_node nodes[2] = { { .id = 3, .bytes = 5 }, { .id = 8, .bytes = 6, .cpus = { 4 } } };
	struct mf_plat_node got[2];
	struct mf_plat *plat = NULL;

	CU_ASSERT_EQUAL(mf_plat_sim_create(nodes, 65, &plat), -EINVAL);
	CU_ASSERT_EQUAL_FATAL(mf_plat_sim_create(nodes, 2, &plat), 0);
	CU_ASSERT_EQUAL(plat->ops->host_nodes(plat, got, 2), 2);
	CU_ASSERT_EQUAL(memcmp(got, nodes, sizeof(nodes)), 0);
	CU_ASSERT_EQUAL(plat->ops->host_nodes(plat, got, 1), 1);
	CU_ASSERT_EQUAL(plat->ops->now_ns(plat), 0);
	mf_plat_sim_advance(plat, 1500);
	mf_plat_sim_advance(plat, 500);
	CU_ASSERT_EQUAL(plat->ops->now_ns(plat), 2000);
	CU_ASSERT_EQUAL(plat->ops->current_cpu(plat), 0);
	mf_plat_sim_set_cpu(plat, 700);
	CU_ASSERT_EQUAL(plat->ops->current_cpu(plat), 700);
	plat->ops->destroy(plat);
}

static void sim_failures(void)
{
	struct mf_plat *plat = sim();
	const struct mf_plat_ops *ops = plat->ops;
	void *base, *second = NULL;
	int arena;

	mf_plat_sim_fail(plat, MF_SIM_RESERVE, 2);
	CU_ASSERT_EQUAL_FATAL(ops->reserve(plat, 4 * MIB, &base), 0);
	CU_ASSERT_EQUAL(ops->reserve(plat, 4 * MIB, &second), -ENOMEM);
	CU_ASSERT_PTR_NULL(second);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(plat), 1);
	CU_ASSERT_EQUAL(ops->reserve(plat, 4 * MIB, &second), 0); /* only the one call */
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(plat), 2);
	ops->unreserve(plat, second, 4 * MIB);

	mf_plat_sim_fail(plat, MF_SIM_ARENA_MAP, 1);
	CU_ASSERT_EQUAL(ops->arena_map(plat, base, 4 * MIB, 0, &arena), -ENOMEM);
	CU_ASSERT_STRING_EQUAL(rights_of(base, 4 * MIB), "---p");
	CU_ASSERT_EQUAL_FATAL(ops->arena_map(plat, base, 4 * MIB, 0, &arena), 0);
	*(char *)base = 1;
	mf_plat_sim_fail(plat, MF_SIM_ARENA_TRIM, 1);
	CU_ASSERT_EQUAL(ops->arena_trim(plat, arena, 0, PAGE), -ENOMEM);
	CU_ASSERT_EQUAL(*(char *)base, 1);
	CU_ASSERT_EQUAL(ops->arena_trim(plat, arena, 1, PAGE), -EINVAL); /* whole pages */
	mf_plat_sim_fail(plat, MF_SIM_ARENA_TRIM, 1);
	mf_plat_sim_fail(plat, MF_SIM_ARENA_TRIM, 0);
	CU_ASSERT_EQUAL(ops->arena_trim(plat, arena, 0, PAGE), 0);
	CU_ASSERT_EQUAL(*(char *)base, 0);

	mf_plat_sim_fail(plat, MF_SIM_META_ALLOC, 1);
	CU_ASSERT_PTR_NULL(ops->meta_alloc(plat, PAGE));
	second = ops->meta_alloc(plat, PAGE);
	CU_ASSERT_PTR_NOT_NULL(second);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(plat), 3);
	ops->meta_free(plat, second, PAGE);
	ops->arena_unmap(plat, arena);
	ops->unreserve(plat, base, 4 * MIB);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(plat), 0);
	ops->destroy(plat);
}

static const struct unit_test tests[] = {
	UNIT_TEST(host_memory),	   UNIT_TEST(sim_memory),
	UNIT_TEST(in_parallel),	   UNIT_TEST(host_arena_is_shared),
	UNIT_TEST(destroy_unmaps), UNIT_TEST(host_facts),
	UNIT_TEST(sim_facts),	   UNIT_TEST(sim_failures),
};

UNIT_MAIN("plat", tests)
