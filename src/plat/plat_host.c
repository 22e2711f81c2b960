/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The real host.  An arena is a sparse memfd mapped shared at its reserved
 * address: so the host counts it exactly (fstat), a punched hole gives pages
 * back for good, and the file's memory policy holds for every later fault, also
 * for one in a window, which maps a piece of the file once more.
 *
 * Invariants: a slot of the arena table with fd >= 0 is a mapped arena; what
 * reserve() handed out is PROT_NONE, an arena or a window until unreserve().
 * Windows are recorded nowhere: the kernel knows them.
 *
 * Locks: arenas_lock, a leaf below every mf_lock, guards the table; trimming,
 * windows and asking for residency happen outside it, on the descriptor, since
 * the caller does not unmap an arena that it still uses.  window_seal takes no
 * lock at all: a signal handler may seal.
 */
#include "plat/plat.h"

#include "base/parse.h"
#include "plat/windows.h"

#include <errno.h>
#include <fcntl.h>
#include <numa.h>
#include <numaif.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RESERVE_ALIGN ((size_t)2 << 20)
#define NODE_MASK_BITS 1024

struct host_arena {
	int fd; /* -1: free slot */
	void *at;
	size_t bytes;
};

struct host {
	struct mf_plat plat;
	size_t page;
	bool numa;	  /* libnuma works here */
	unsigned nr_numa; /* nodes it knows; 1 without it */
	pthread_mutex_t arenas_lock;
	struct host_arena *arenas; /* arenas_lock */
	unsigned nr_arenas;	   /* arenas_lock */
};

static struct host *host_of(struct mf_plat *plat)
{
	return (struct host *)plat; /* plat is the first member */
}

static size_t whole_pages(const struct host *host, size_t bytes)
{
	return (bytes + host->page - 1) & ~(host->page - 1);
}

/* Nodes. */

/* CPUs that are online, by the kernel's own list; by number if it cannot be read. */
static void online_cpus(uint64_t *cpus)
{
	uint64_t bits[16] = { 0 };
	char line[4096];
	FILE *file = fopen("/sys/devices/system/cpu/online", "re");
	bool known = false;
	long nr;

	if (file) {
		if (fgets(line, sizeof(line), file)) {
			line[strcspn(line, "\n")] = '\0';
			known = mf_parse_list(mf_text_of(line), 1023, bits) == 0 && line[0];
		}
		fclose(file);
	}
	nr = known ? 0 : sysconf(_SC_NPROCESSORS_ONLN);
	for (long cpu = 0; cpu < nr && cpu < 1024; cpu++)
		bits[cpu / 64] |= UINT64_C(1) << (cpu % 64);
	memcpy(cpus, bits, sizeof(bits));
}

/* A host that has no nodes to tell of is one node. */
static int single_node(const struct host *host, struct mf_plat_node *node)
{
	long pages = sysconf(_SC_PHYS_PAGES);

	if (pages <= 0)
		return -ENODEV;
	memset(node, 0, sizeof(*node));
	node->bytes = (uint64_t)pages * host->page;
	node->distance[0] = 10;
	online_cpus(node->cpus);
	return 1;
}

static void numa_cpus(int id, uint64_t *cpus)
{
	struct bitmask *mask = numa_allocate_cpumask();

	if (!mask)
		return;
	if (numa_node_to_cpus(id, mask) == 0)
		for (unsigned cpu = 0; cpu < 1024 && cpu < mask->size; cpu++)
			if (numa_bitmask_isbitset(mask, cpu))
				cpus[cpu / 64] |= UINT64_C(1) << (cpu % 64);
	numa_free_cpumask(mask);
}

static bool numa_has_node(int id)
{
	return id <= numa_max_node() && numa_bitmask_isbitset(numa_nodes_ptr, id);
}

static void numa_node(int id, struct mf_plat_node *node)
{
	long long bytes = numa_node_size64(id, NULL);

	memset(node, 0, sizeof(*node));
	node->id = id;
	node->bytes = bytes > 0 ? (uint64_t)bytes : 0;
	numa_cpus(id, node->cpus);
	for (int other = 0; other < 64; other++)
		if (numa_has_node(other))
			node->distance[other] = numa_distance(id, other);
}

static int host_nodes(struct mf_plat *plat, struct mf_plat_node *nodes, unsigned max)
{
	struct host *host = host_of(plat);
	unsigned nr = 0;

	if (max == 0)
		return 0;
	for (int id = 0; host->numa && id < 64 && nr < max; id++)
		if (numa_has_node(id))
			numa_node(id, &nodes[nr++]);
	return nr ? (int)nr : single_node(host, nodes);
}

/* Address space. */

static int host_reserve(struct mf_plat *plat, size_t bytes, void **base)
{
	size_t length = whole_pages(host_of(plat), bytes), head, tail;
	char *at;

	if (bytes == 0 || length < bytes || length + RESERVE_ALIGN < length)
		return -EINVAL;
	at = mmap(NULL, length + RESERVE_ALIGN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		  0);
	if (at == MAP_FAILED)
		return -errno;
	head = -(uintptr_t)at & (RESERVE_ALIGN - 1);
	tail = RESERVE_ALIGN - head;
	if (head)
		munmap(at, head);
	munmap(at + head + length, tail);
	*base = at + head;
	return 0;
}

static void host_unreserve(struct mf_plat *plat, void *base, size_t bytes)
{
	munmap(base, whole_pages(host_of(plat), bytes));
}

/* Arenas. */

/*
 * Best effort: in a container or a narrow cpuset the host may refuse, and then
 * memory comes from where the host likes; what memfs accounts does not change.
 */
static void bind_to(const struct host *host, void *at, size_t bytes, int node)
{
	unsigned long mask[NODE_MASK_BITS / (8 * sizeof(unsigned long))] = { 0 };
	unsigned bits = 8 * sizeof(unsigned long);

	if (!host->numa || host->nr_numa < 2 || node < 0 || node >= NODE_MASK_BITS)
		return;
	mask[(unsigned)node / bits] |= 1ul << ((unsigned)node % bits);
	(void)mbind(at, bytes, MPOL_BIND, mask, NODE_MASK_BITS + 1, 0);
}

/* A free slot of the table, which is then as good as taken only once its fd is set. */
static int free_slot(struct host *host)
{
	struct host_arena *bigger;
	unsigned slot;

	for (slot = 0; slot < host->nr_arenas; slot++)
		if (host->arenas[slot].fd < 0)
			return (int)slot;
	bigger = realloc(host->arenas, (slot + 1) * sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	bigger[slot].fd = -1;
	host->arenas = bigger;
	host->nr_arenas++;
	return (int)slot;
}

static int host_arena_map(struct mf_plat *plat, void *at, size_t bytes, int host_node, int *arena)
{
	struct host *host = host_of(plat);
	size_t length = whole_pages(host, bytes);
	int slot, fd;

	if (length == 0 || (uintptr_t)at % host->page)
		return -EINVAL;
	pthread_mutex_lock(&host->arenas_lock);
	slot = free_slot(host);
	fd = slot < 0 ? slot : mf_windows_file_map(at, length);
	if (fd >= 0)
		host->arenas[slot] = (struct host_arena){ fd, at, length };
	pthread_mutex_unlock(&host->arenas_lock);
	if (fd < 0)
		return fd;
	bind_to(host, at, length, host_node);
	/* Gigabytes of payload say little in a core file. */
	madvise(at, length, MADV_DONTDUMP);
	*arena = slot;
	return 0;
}

static struct host_arena arena_get(struct host *host, int arena)
{
	struct host_arena found = { -1, NULL, 0 };

	pthread_mutex_lock(&host->arenas_lock);
	if (arena >= 0 && (unsigned)arena < host->nr_arenas)
		found = host->arenas[arena];
	pthread_mutex_unlock(&host->arenas_lock);
	return found;
}

static int host_arena_trim(struct mf_plat *plat, int arena, uint64_t offset, uint64_t bytes)
{
	struct host_arena found = arena_get(host_of(plat), arena);

	if (found.fd < 0 || offset > found.bytes || bytes > found.bytes - offset)
		return -EINVAL;
	return bytes ? mf_windows_file_punch(found.fd, offset, bytes) : 0;
}

static int64_t host_arena_resident(struct mf_plat *plat, int arena)
{
	struct host_arena found = arena_get(host_of(plat), arena);

	return found.fd < 0 ? -EINVAL : mf_windows_file_resident(found.fd);
}

static void host_arena_unmap(struct mf_plat *plat, int arena)
{
	struct host *host = host_of(plat);
	struct host_arena found = arena_get(host, arena);

	if (found.fd < 0)
		return;
	mf_windows_seal(found.at, found.bytes);
	close(found.fd);
	pthread_mutex_lock(&host->arenas_lock);
	host->arenas[arena].fd = -1;
	pthread_mutex_unlock(&host->arenas_lock);
}

/* Windows. */

static int host_window_map(struct mf_plat *plat, void *at, int arena, uint64_t offset, size_t bytes)
{
	struct host_arena found = arena_get(host_of(plat), arena);

	return found.fd < 0 ? -EINVAL : mf_windows_file_window(found.fd, found.bytes, at, offset, bytes);
}

static bool page_aligned(const struct host *host, const void *at, size_t bytes)
{
	return ((uintptr_t)at | bytes) % host->page == 0;
}

static int host_window_seal(struct mf_plat *plat, void *at, size_t bytes)
{
	bool good = at && bytes && page_aligned(host_of(plat), at, bytes);

	return good ? mf_windows_seal(at, bytes) : -EINVAL;
}

static int host_populate(struct mf_plat *plat, void *at, size_t bytes)
{
	return page_aligned(host_of(plat), at, bytes) ? mf_windows_populate(at, bytes) : -EINVAL;
}

static void host_advise_huge(struct mf_plat *plat, void *at, size_t bytes)
{
	(void)plat;
	(void)madvise(at, bytes, MADV_HUGEPAGE);
}

static void host_mappings(struct mf_plat *plat, uint64_t *max, uint64_t *used)
{
	(void)plat;
	mf_windows_count(max, used);
}

/* Tables, time, CPU. */

static void *host_meta_alloc(struct mf_plat *plat, size_t bytes)
{
	size_t length = whole_pages(host_of(plat), bytes);
	void *at;

	if (length == 0)
		return NULL;
	at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

static void host_meta_free(struct mf_plat *plat, void *at, size_t bytes)
{
	if (at)
		munmap(at, whole_pages(host_of(plat), bytes));
}

static uint64_t host_now_ns(struct mf_plat *plat)
{
	struct timespec now;

	(void)plat;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int host_current_cpu(struct mf_plat *plat)
{
	int cpu = sched_getcpu();

	(void)plat;
	return cpu < 0 ? 0 : cpu;
}

static void host_destroy(struct mf_plat *plat)
{
	struct host *host = host_of(plat);

	for (unsigned arena = 0; arena < host->nr_arenas; arena++)
		host_arena_unmap(plat, (int)arena);
	pthread_mutex_destroy(&host->arenas_lock);
	free(host->arenas);
	free(host);
}

static const struct mf_plat_ops host_ops = {
	.host_nodes = host_nodes,
	.reserve = host_reserve,
	.unreserve = host_unreserve,
	.arena_map = host_arena_map,
	.arena_trim = host_arena_trim,
	.arena_resident = host_arena_resident,
	.arena_unmap = host_arena_unmap,
	.window_map = host_window_map,
	.window_seal = host_window_seal,
	.populate = host_populate,
	.advise_huge = host_advise_huge,
	.mappings = host_mappings,
	.meta_alloc = host_meta_alloc,
	.meta_free = host_meta_free,
	.now_ns = host_now_ns,
	.current_cpu = host_current_cpu,
	.destroy = host_destroy,
};

int mf_plat_host_create(struct mf_plat **out)
{
	struct host *host = calloc(1, sizeof(*host));

	if (!host)
		return -ENOMEM;
	host->plat.ops = &host_ops;
	host->page = (size_t)sysconf(_SC_PAGESIZE);
	host->numa = numa_available() >= 0;
	host->nr_numa = host->numa ? (unsigned)numa_num_configured_nodes() : 1;
	pthread_mutex_init(&host->arenas_lock, NULL);
	*out = &host->plat;
	return 0;
}
