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
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define PAGE 4096
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
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

/* An arena of 4 MiB, and behind it 4 MiB of addresses for windows. */
struct ground {
	struct mf_plat *plat;
	unsigned char *at;
	unsigned char *room;
	int arena;
};

static struct ground ground(struct mf_plat *plat)
{
	struct ground g = { .plat = plat };

	CU_ASSERT_EQUAL_FATAL(plat->ops->reserve(plat, 8 * MIB, (void **)&g.at), 0);
	CU_ASSERT_EQUAL_FATAL(plat->ops->arena_map(plat, g.at, 4 * MIB, -1, &g.arena), 0);
	g.room = g.at + 4 * MIB;
	return g;
}

static void leave(struct ground *g)
{
	g->plat->ops->arena_unmap(g->plat, g->arena);
	g->plat->ops->unreserve(g->plat, g->at, 8 * MIB);
}

/* Window of pages [first, first + pages) of the arena at page @where of the room. */
static int window(const struct ground *g, unsigned where, unsigned first, unsigned pages)
{
	return g->plat->ops->window_map(g->plat, g->room + where * PAGE, g->arena, first * PAGE,
					pages * PAGE);
}

static int seal(const struct ground *g, unsigned where, unsigned pages)
{
	return g->plat->ops->window_seal(g->plat, g->room + where * PAGE, pages * PAGE);
}

static int64_t resident_pages(const struct ground *g)
{
	return g->plat->ops->arena_resident(g->plat, g->arena) / PAGE;
}

/* In how many mappings the kernel has [at, at + bytes), neighbours with them included. */
static unsigned mappings_of(const void *at, size_t bytes)
{
	uintptr_t start = (uintptr_t)at, end = start + bytes;
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	unsigned found = 0;
	char line[512];

	CU_ASSERT_PTR_NOT_NULL_FATAL(maps);
	while (fgets(line, sizeof(line), maps))
		found += sscanf(line, "%lx-%lx", &from, &to) == 2 && from < end && to > start;
	fclose(maps);
	return found;
}

static void check_windows(struct mf_plat *plat)
{
	struct ground g = ground(plat);

	/* Both ways, and with another window of the same page. */
	g.at[5 * PAGE + 3] = 0x51;
	CU_ASSERT_EQUAL_FATAL(window(&g, 0, 4, 3), 0);
	CU_ASSERT_EQUAL(strncmp(rights_of(g.room, 3 * PAGE), "rw-", 3), 0);
	CU_ASSERT_STRING_EQUAL(rights_of(g.room + 3 * PAGE, 4 * MIB - 3 * PAGE), "---p");
	CU_ASSERT_EQUAL(g.room[PAGE + 3], 0x51);
	g.room[2 * PAGE] = 0x62;
	CU_ASSERT_EQUAL(g.at[6 * PAGE], 0x62);
	CU_ASSERT_EQUAL_FATAL(window(&g, 10, 6, 1), 0);
	CU_ASSERT_EQUAL(g.room[10 * PAGE], 0x62);
	g.room[10 * PAGE + 1] = 0x73;
	CU_ASSERT_EQUAL(g.room[2 * PAGE + 1], 0x73);
	CU_ASSERT_EQUAL(g.at[6 * PAGE + 1], 0x73);
	CU_ASSERT_EQUAL(resident_pages(&g), 2); /* shown twice, held once */

	/* Given back, it is zeroes everywhere. */
	CU_ASSERT_EQUAL(plat->ops->arena_trim(plat, g.arena, 6 * PAGE, PAGE), 0);
	CU_ASSERT_EQUAL(resident_pages(&g), 1);
	CU_ASSERT_TRUE(all_bytes(g.room + 2 * PAGE, PAGE, 0));
	CU_ASSERT_TRUE(all_bytes(g.room + 10 * PAGE, PAGE, 0));
	CU_ASSERT_EQUAL(g.room[PAGE + 3], 0x51);

	/* The arena's end, and a window over two others. */
	g.at[4 * MIB - 1] = 0x84;
	CU_ASSERT_EQUAL(window(&g, 0, 1022, 2), 0);
	CU_ASSERT_EQUAL(g.room[2 * PAGE - 1], 0x84);
	CU_ASSERT_EQUAL(seal(&g, 0, 1024), 0);
	CU_ASSERT_EQUAL(g.at[4 * MIB - 1], 0x84);
	leave(&g);
}

/* Pages of the arena from the last to the first, as a range of scattered pages has them. */
static void check_reverse_and_seal(struct mf_plat *plat)
{
	struct ground g = ground(plat);
	unsigned wrong = 0;

	for (unsigned i = 0; i < 64; i++)
		g.at[i * PAGE] = (unsigned char)(i + 1);
	for (unsigned i = 0; i < 64; i++)
		wrong += window(&g, i, 63 - i, 1) != 0;
	for (unsigned i = 0; i < 64; i++)
		wrong += g.room[i * PAGE] != 64 - i;
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(mappings_of(g.room, 65 * PAGE), 65);
	CU_ASSERT_EQUAL(window(&g, 100, 0, 8), 0);
	CU_ASSERT_EQUAL(window(&g, 200, 8, 8), 0);

	/* Windows 32 to 63, a gap, a window, a gap and half of the last one. */
	CU_ASSERT_FALSE(load_faults((char *)g.room + 40 * PAGE));
	CU_ASSERT_EQUAL(seal(&g, 32, 172), 0);
	CU_ASSERT_STRING_EQUAL(rights_of(g.room + 32 * PAGE, 172 * PAGE), "---p");
	CU_ASSERT_EQUAL(mappings_of(g.room + 32 * PAGE, 172 * PAGE), 1);
	CU_ASSERT_TRUE(load_faults((char *)g.room + 32 * PAGE));
	CU_ASSERT_TRUE(load_faults((char *)g.room + 104 * PAGE));
	CU_ASSERT_TRUE(load_faults((char *)g.room + 203 * PAGE));
	CU_ASSERT_EQUAL(g.room[31 * PAGE], 33);
	CU_ASSERT_EQUAL(g.room[204 * PAGE], 13);
	CU_ASSERT_EQUAL(seal(&g, 32, 172), 0); /* twice does no harm */
	CU_ASSERT_EQUAL(g.at[0], 1);
	CU_ASSERT_EQUAL(resident_pages(&g), 64);

	CU_ASSERT_EQUAL(seal(&g, 0, 1024), 0);
	CU_ASSERT_EQUAL(mappings_of(g.room, 4 * MIB), 1);
	CU_ASSERT_EQUAL(window(&g, 32, 9, 1), 0); /* and serves again */
	CU_ASSERT_EQUAL(g.room[32 * PAGE], 10);
	leave(&g);
	CU_ASSERT_EQUAL(mappings_of(g.at, 8 * MIB), 0);
}

static void check_windows_wrong(struct mf_plat *plat)
{
	const struct mf_plat_ops *ops = plat->ops;
	struct ground g = ground(plat);

	CU_ASSERT_EQUAL(window(&g, 0, 0, 1), 0);
	g.at[0] = 9;
	CU_ASSERT_EQUAL(ops->window_map(plat, g.room + 1, g.arena, 0, PAGE), -EINVAL);
	CU_ASSERT_EQUAL(ops->window_map(plat, g.room, g.arena, 512, PAGE), -EINVAL);
	CU_ASSERT_EQUAL(ops->window_map(plat, g.room, g.arena, 0, PAGE - 1), -EINVAL);
	CU_ASSERT_EQUAL(ops->window_map(plat, g.room, g.arena, 0, 0), -EINVAL);
	CU_ASSERT_EQUAL(ops->window_map(plat, NULL, g.arena, 0, PAGE), -EINVAL);
	CU_ASSERT_EQUAL(window(&g, 0, 1023, 2), -EINVAL);
	CU_ASSERT_EQUAL(window(&g, 0, 1024, 1), -EINVAL);
	CU_ASSERT_EQUAL(ops->window_map(plat, g.room, g.arena, UINT64_MAX - PAGE + 1, PAGE), -EINVAL);
	CU_ASSERT_EQUAL(ops->window_map(plat, g.room, g.arena, PAGE, SIZE_MAX - PAGE + 1), -EINVAL);
	CU_ASSERT_EQUAL(ops->window_map(plat, g.room, -1, 0, PAGE), -EINVAL);
	CU_ASSERT_EQUAL(ops->window_map(plat, g.room, 1000, 0, PAGE), -EINVAL);
	CU_ASSERT_EQUAL(ops->window_seal(plat, g.room + 8, PAGE), -EINVAL);
	CU_ASSERT_EQUAL(ops->window_seal(plat, g.room, 8), -EINVAL);
	CU_ASSERT_EQUAL(ops->window_seal(plat, g.room, 0), -EINVAL);
	CU_ASSERT_EQUAL(ops->window_seal(plat, NULL, PAGE), -EINVAL);
	CU_ASSERT_EQUAL(ops->populate(plat, g.room + 8, PAGE), -EINVAL);
	CU_ASSERT_EQUAL(ops->populate(plat, g.room, 8), -EINVAL);
	CU_ASSERT_EQUAL(g.room[0], 9); /* none of them touched the window */
	CU_ASSERT_EQUAL(resident_pages(&g), 1);
	ops->arena_unmap(plat, g.arena);
	CU_ASSERT_EQUAL(window(&g, 0, 0, 1), -EINVAL);
	leave(&g);
}

static long faults_so_far(void)
{
	struct rusage usage;

	CU_ASSERT_EQUAL(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_minflt;
}

/* How many faults it takes; a sanitizer would add those of its shadow. */
__attribute__((noinline, no_sanitize("address", "thread"))) static long write_each_page(unsigned char *at,
											unsigned pages)
{
	long before = faults_so_far();

	for (unsigned i = 0; i < pages; i++)
		((volatile unsigned char *)at)[i * PAGE + 8] = 5;
	return faults_so_far() - before;
}

/* Pages that are there by then need no fault of their own, neither to be read nor to be written. */
static void check_populate(struct mf_plat *plat)
{
	struct ground g = ground(plat);

	g.at[7] = 1;
	CU_ASSERT_EQUAL(window(&g, 0, 512, 256), 0);
	CU_ASSERT_EQUAL(window(&g, 256, 0, 256), 0);
	CU_ASSERT_EQUAL(resident_pages(&g), 1);
	CU_ASSERT_EQUAL(plat->ops->populate(plat, g.room, 512 * PAGE), 0); /* two windows in one call */
	CU_ASSERT_EQUAL(resident_pages(&g), 512);
	CU_ASSERT_TRUE(write_each_page(g.room, 512) < 32);
	CU_ASSERT_EQUAL(g.at[512 * PAGE + 8], 5);
	CU_ASSERT_EQUAL(g.room[256 * PAGE + 7], 1); /* what was there stays */
	CU_ASSERT_TRUE(all_bytes(g.room + 9, PAGE - 9, 0));

	CU_ASSERT_EQUAL(plat->ops->populate(plat, g.at + 256 * PAGE, 16 * PAGE), 0); /* an arena, too */
	CU_ASSERT_EQUAL(resident_pages(&g), 528);
	CU_ASSERT_EQUAL(plat->ops->populate(plat, g.at, 0), 0);
	plat->ops->advise_huge(plat, g.room, 2 * MIB);
	plat->ops->advise_huge(plat, g.room + 1, PAGE); /* a wish that nobody can grant */
	CU_ASSERT_EQUAL(g.room[8], 5);
	leave(&g);
}

static void windows_of_both(void)
{
	struct mf_plat *plats[2] = { host(), sim() };

	for (int i = 0; i < 2; i++) {
		check_windows(plats[i]);
		check_reverse_and_seal(plats[i]);
		check_windows_wrong(plats[i]);
		check_populate(plats[i]);
	}
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(plats[1]), 0);
	for (int i = 0; i < 2; i++)
		plats[i]->ops->destroy(plats[i]);
}

/* From here on the kernel has never heard of MADV_POPULATE_READ; false: it knows no filters. */
static bool forget_populate(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_POPULATE_READ, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(rules) / sizeof(rules[0]), rules };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void populate_on_an_old_kernel(void)
{
	struct mf_plat *plat = host();
	struct ground g = ground(plat);
	int status = -1;
	pid_t child;

	CU_ASSERT_EQUAL(window(&g, 0, 40, 20), 0);
	child = fork();
	if (child == 0)
		_exit(forget_populate() && plat->ops->populate(plat, g.room, 20 * PAGE) ? 1 : 0);
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
	/* The child's pages are ours as well.  Without filters it did nothing, and so do we. */
	if (resident_pages(&g) == 0)
		CU_ASSERT_EQUAL(plat->ops->populate(plat, g.room, 20 * PAGE), 0);
	CU_ASSERT_EQUAL(resident_pages(&g), 20);
	leave(&g);
	plat->ops->destroy(plat);
}

static void host_mappings(void)
{
	struct mf_plat *plat = host();
	struct ground g = ground(plat);
	uint64_t max = 0, used = 0, more = 0;

	plat->ops->mappings(plat, &max, &used);
	CU_ASSERT_TRUE(max >= 1000);
	CU_ASSERT_TRUE(used >= 5); /* program, C library, heap, stack, ours */
	CU_ASSERT_TRUE(used <= max + 10);
	for (unsigned i = 0; i < 500; i++)
		CU_ASSERT_EQUAL(window(&g, 2 * i + 1, 999 - i, 1), 0); /* each with a gap behind */
	plat->ops->mappings(plat, &max, &more);
	CU_ASSERT_TRUE(more >= used + 1000 && more <= used + 1010);
	CU_ASSERT_EQUAL(seal(&g, 0, 1024), 0);
	plat->ops->mappings(plat, &max, &more);
	CU_ASSERT_TRUE(more <= used + 10);
	leave(&g);
	plat->ops->destroy(plat);
}

static void sim_mappings(void)
{
	struct mf_plat *plat = sim();
	uint64_t max = 0, used = 0;

	plat->ops->mappings(plat, &max, &used);
	CU_ASSERT_EQUAL(max, 65530);
	CU_ASSERT_EQUAL(used, 100);
	mf_plat_sim_set_mappings(plat, 77, UINT64_C(1) << 40);
	plat->ops->mappings(plat, &max, &used);
	CU_ASSERT_EQUAL(max, 77);
	CU_ASSERT_EQUAL(used, UINT64_C(1) << 40);
	plat->ops->destroy(plat);
}

static void sim_window_failures(void)
{
	struct mf_plat *plat = sim();
	struct ground g = ground(plat);

	/* Refused, it is PROT_NONE, even where a window was; the neighbour is not meant. */
	CU_ASSERT_EQUAL(window(&g, 0, 0, 2), 0);
	g.room[0] = 1;
	mf_plat_sim_fail(plat, MF_SIM_WINDOW_MAP, 2);
	CU_ASSERT_EQUAL(window(&g, 3, 3, 1), 0);
	CU_ASSERT_EQUAL(window(&g, 1, 5, 2), -ENOMEM);
	CU_ASSERT_STRING_EQUAL(rights_of(g.room + PAGE, 2 * PAGE), "---p");
	CU_ASSERT_TRUE(load_faults((char *)g.room + PAGE));
	CU_ASSERT_EQUAL(g.room[0], 1);
	CU_ASSERT_EQUAL(window(&g, 1, 5, 2), 0); /* only the one call */

	mf_plat_sim_fail(plat, MF_SIM_WINDOW_SEAL, 1);
	CU_ASSERT_EQUAL(seal(&g, 0, 4), -ENOMEM);
	CU_ASSERT_EQUAL(g.room[0], 1);
	CU_ASSERT_EQUAL(strncmp(rights_of(g.room, 4 * PAGE), "rw-", 3), 0);
	CU_ASSERT_EQUAL(resident_pages(&g), 1);
	mf_plat_sim_fail(plat, MF_SIM_POPULATE, 1);
	CU_ASSERT_EQUAL(plat->ops->populate(plat, g.room, 4 * PAGE), -ENOMEM);
	CU_ASSERT_EQUAL(resident_pages(&g), 1);
	CU_ASSERT_EQUAL(plat->ops->populate(plat, g.room, 4 * PAGE), 0);
	CU_ASSERT_EQUAL(resident_pages(&g), 4);
	CU_ASSERT_EQUAL(seal(&g, 0, 4), 0);
	CU_ASSERT_EQUAL(mappings_of(g.room, 4 * MIB), 1);
	leave(&g);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(plat), 0);
	plat->ops->destroy(plat);
}

static const struct unit_test tests[] = {
	UNIT_TEST(host_memory),		UNIT_TEST(sim_memory),
	UNIT_TEST(in_parallel),		UNIT_TEST(host_arena_is_shared),
	UNIT_TEST(destroy_unmaps),	UNIT_TEST(host_facts),
	UNIT_TEST(sim_facts),		UNIT_TEST(sim_failures),
	UNIT_TEST(windows_of_both),	UNIT_TEST(populate_on_an_old_kernel),
	UNIT_TEST(host_mappings),	UNIT_TEST(sim_mappings),
	UNIT_TEST(sim_window_failures),
};

UNIT_MAIN("plat", tests)
