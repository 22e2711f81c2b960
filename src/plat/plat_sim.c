/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The simulated host: declared nodes, a clock and a current CPU that only the
 * test moves, failures on demand.  An arena is a sparse file without a name, as
 * on the host, so that windows can show it; neither has huge pages, whatever is
 * wished for, so that one touched page is one resident page.
 *
 * Invariants: outstanding = what was handed out and not given back; a failed
 * call hands out nothing.
 *
 * Locks: lock, a leaf, guards the table of arenas.  Everything else is atomics:
 * now_ns may be called under any lock, meta_alloc and window_seal in a signal
 * handler that has interrupted a call of its own.
 */
#include "plat/plat_sim.h"

#include "plat/windows.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RESERVE_ALIGN ((size_t)2 << 20)

struct sim_arena {
	void *at; /* NULL: free slot */
	size_t bytes;
	int fd;
};

struct sim {
	struct mf_plat plat;
	size_t page;
	struct mf_plat_node nodes[64];
	unsigned nr_nodes;
	uint64_t now; /* atomic */
	int cpu;      /* atomic */
	pthread_mutex_t lock;
	struct sim_arena *arenas;	 /* lock */
	unsigned nr_arenas;		 /* lock */
	unsigned fail_in[MF_NR_SIM_OPS]; /* atomic; 0 disarmed */
	unsigned outstanding;		 /* atomic */
	uint64_t max_mappings;		 /* atomic */
	uint64_t used_mappings;		 /* atomic */
};

static struct sim *sim_of(struct mf_plat *plat)
{
	return (struct sim *)plat; /* plat is the first member */
}

static size_t whole_pages(const struct sim *sim, size_t bytes)
{
	return (bytes + sim->page - 1) & ~(sim->page - 1);
}

/* True when this call is the one told to fail. */
static bool told_to_fail(struct sim *sim, enum mf_plat_sim_op op)
{
	unsigned left = __atomic_load_n(&sim->fail_in[op], __ATOMIC_RELAXED);

	while (left && !__atomic_compare_exchange_n(&sim->fail_in[op], &left, left - 1, true,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return left == 1;
}

static void count_outstanding(struct sim *sim, int change)
{
	__atomic_fetch_add(&sim->outstanding, (unsigned)change, __ATOMIC_RELAXED);
}

static void *map_anonymous(size_t bytes, int protection)
{
	void *mapped = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mapped == MAP_FAILED ? NULL : mapped;
}

static int sim_host_nodes(struct mf_plat *plat, struct mf_plat_node *nodes, unsigned max)
{
	struct sim *sim = sim_of(plat);
	unsigned nr = sim->nr_nodes < max ? sim->nr_nodes : max;

	if (nr)
		memcpy(nodes, sim->nodes, nr * sizeof(*nodes));
	return (int)nr;
}

static int sim_reserve(struct mf_plat *plat, size_t bytes, void **base)
{
	struct sim *sim = sim_of(plat);
	size_t length = whole_pages(sim, bytes), head;
	char *at;

	if (bytes == 0 || length < bytes || length + RESERVE_ALIGN < length)
		return -EINVAL;
	if (told_to_fail(sim, MF_SIM_RESERVE))
		return -ENOMEM;
	at = map_anonymous(length + RESERVE_ALIGN, PROT_NONE);
	if (!at)
		return -ENOMEM;
	head = -(uintptr_t)at & (RESERVE_ALIGN - 1);
	if (head)
		munmap(at, head);
	munmap(at + head + length, RESERVE_ALIGN - head);
	count_outstanding(sim, 1);
	*base = at + head;
	return 0;
}

static void sim_unreserve(struct mf_plat *plat, void *base, size_t bytes)
{
	struct sim *sim = sim_of(plat);

	munmap(base, whole_pages(sim, bytes));
	count_outstanding(sim, -1);
}

/* With lock held.  A slot is taken once its address is set. */
static int free_slot(struct sim *sim)
{
	struct sim_arena *bigger;
	unsigned slot;

	for (slot = 0; slot < sim->nr_arenas; slot++)
		if (!sim->arenas[slot].at)
			return (int)slot;
	bigger = realloc(sim->arenas, (slot + 1) * sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	bigger[slot].at = NULL;
	sim->arenas = bigger;
	sim->nr_arenas++;
	return (int)slot;
}

static int sim_arena_map(struct mf_plat *plat, void *at, size_t bytes, int host_node, int *arena)
{
	struct sim *sim = sim_of(plat);
	size_t length = whole_pages(sim, bytes);
	int slot, fd;

	(void)host_node;
	if (length == 0 || !at || (uintptr_t)at % sim->page)
		return -EINVAL;
	if (told_to_fail(sim, MF_SIM_ARENA_MAP))
		return -ENOMEM;
	pthread_mutex_lock(&sim->lock);
	slot = free_slot(sim);
	fd = slot < 0 ? slot : mf_windows_file_map(at, length);
	if (fd >= 0) {
		sim->arenas[slot] = (struct sim_arena){ at, length, fd };
		count_outstanding(sim, 1);
	}
	pthread_mutex_unlock(&sim->lock);
	if (fd < 0)
		return fd;
	madvise(at, length, MADV_NOHUGEPAGE);
	*arena = slot;
	return 0;
}

static struct sim_arena arena_get(struct sim *sim, int arena)
{
	struct sim_arena found = { NULL, 0, -1 };

	pthread_mutex_lock(&sim->lock);
	if (arena >= 0 && (unsigned)arena < sim->nr_arenas)
		found = sim->arenas[arena];
	pthread_mutex_unlock(&sim->lock);
	return found;
}

static int sim_arena_trim(struct mf_plat *plat, int arena, uint64_t offset, uint64_t bytes)
{
	struct sim *sim = sim_of(plat);
	struct sim_arena found = arena_get(sim, arena);

	if (!found.at || offset > found.bytes || bytes > found.bytes - offset || offset % sim->page ||
	    bytes % sim->page)
		return -EINVAL;
	if (told_to_fail(sim, MF_SIM_ARENA_TRIM))
		return -ENOMEM;
	return bytes ? mf_windows_file_punch(found.fd, offset, bytes) : 0;
}

static int64_t sim_arena_resident(struct mf_plat *plat, int arena)
{
	struct sim_arena found = arena_get(sim_of(plat), arena);

	return found.at ? mf_windows_file_resident(found.fd) : -EINVAL;
}

static void sim_arena_unmap(struct mf_plat *plat, int arena)
{
	struct sim *sim = sim_of(plat);
	struct sim_arena found = arena_get(sim, arena);

	if (!found.at)
		return;
	mf_windows_seal(found.at, found.bytes);
	close(found.fd);
	pthread_mutex_lock(&sim->lock);
	sim->arenas[arena].at = NULL;
	count_outstanding(sim, -1);
	pthread_mutex_unlock(&sim->lock);
}

static int sim_window_map(struct mf_plat *plat, void *at, int arena, uint64_t offset, size_t bytes)
{
	struct sim *sim = sim_of(plat);
	struct sim_arena found = arena_get(sim, arena);
	int error;

	if (!found.at)
		return -EINVAL;
	error = mf_windows_file_window(found.fd, found.bytes, at, offset, bytes);
	if (!error && told_to_fail(sim, MF_SIM_WINDOW_MAP)) {
		mf_windows_seal(at, bytes);
		error = -ENOMEM;
	}
	if (!error)
		madvise(at, bytes, MADV_NOHUGEPAGE);
	return error;
}

static bool page_aligned(const struct sim *sim, const void *at, size_t bytes)
{
	return ((uintptr_t)at | bytes) % sim->page == 0;
}

static int sim_window_seal(struct mf_plat *plat, void *at, size_t bytes)
{
	struct sim *sim = sim_of(plat);

	if (!at || bytes == 0 || !page_aligned(sim, at, bytes))
		return -EINVAL;
	return told_to_fail(sim, MF_SIM_WINDOW_SEAL) ? -ENOMEM : mf_windows_seal(at, bytes);
}

static int sim_populate(struct mf_plat *plat, void *at, size_t bytes)
{
	struct sim *sim = sim_of(plat);

	if (!page_aligned(sim, at, bytes))
		return -EINVAL;
	return told_to_fail(sim, MF_SIM_POPULATE) ? -ENOMEM : mf_windows_populate(at, bytes);
}

static void sim_advise_huge(struct mf_plat *plat, void *at, size_t bytes)
{
	(void)plat;
	(void)at;
	(void)bytes;
}

static void sim_mappings(struct mf_plat *plat, uint64_t *max, uint64_t *used)
{
	*max = __atomic_load_n(&sim_of(plat)->max_mappings, __ATOMIC_RELAXED);
	*used = __atomic_load_n(&sim_of(plat)->used_mappings, __ATOMIC_RELAXED);
}

static void *sim_meta_alloc(struct mf_plat *plat, size_t bytes)
{
	struct sim *sim = sim_of(plat);
	void *at;

	if (bytes == 0 || told_to_fail(sim, MF_SIM_META_ALLOC))
		return NULL;
	at = map_anonymous(whole_pages(sim, bytes), PROT_READ | PROT_WRITE);
	if (at)
		count_outstanding(sim, 1);
	return at;
}

static void sim_meta_free(struct mf_plat *plat, void *at, size_t bytes)
{
	struct sim *sim = sim_of(plat);

	if (!at)
		return;
	munmap(at, whole_pages(sim, bytes));
	count_outstanding(sim, -1);
}

static uint64_t sim_now_ns(struct mf_plat *plat)
{
	return __atomic_load_n(&sim_of(plat)->now, __ATOMIC_RELAXED);
}

static int sim_current_cpu(struct mf_plat *plat)
{
	return __atomic_load_n(&sim_of(plat)->cpu, __ATOMIC_RELAXED);
}

static void sim_destroy(struct mf_plat *plat)
{
	struct sim *sim = sim_of(plat);

	/* What is still mapped stays: its range may be somebody else's by now. */
	for (unsigned arena = 0; arena < sim->nr_arenas; arena++)
		if (sim->arenas[arena].at)
			close(sim->arenas[arena].fd);
	pthread_mutex_destroy(&sim->lock);
	free(sim->arenas);
	free(sim);
}

static const struct mf_plat_ops sim_ops = {
	.host_nodes = sim_host_nodes,
	.reserve = sim_reserve,
	.unreserve = sim_unreserve,
	.arena_map = sim_arena_map,
	.arena_trim = sim_arena_trim,
	.arena_resident = sim_arena_resident,
	.arena_unmap = sim_arena_unmap,
	.window_map = sim_window_map,
	.window_seal = sim_window_seal,
	.populate = sim_populate,
	.advise_huge = sim_advise_huge,
	.mappings = sim_mappings,
	.meta_alloc = sim_meta_alloc,
	.meta_free = sim_meta_free,
	.now_ns = sim_now_ns,
	.current_cpu = sim_current_cpu,
	.destroy = sim_destroy,
};

int mf_plat_sim_create(const struct mf_plat_node *nodes, unsigned nr_nodes, struct mf_plat **out)
{
	struct sim *sim;

	if (nr_nodes > 64)
		return -EINVAL;
	sim = calloc(1, sizeof(*sim));
	if (!sim)
		return -ENOMEM;
	sim->plat.ops = &sim_ops;
	sim->page = (size_t)sysconf(_SC_PAGESIZE);
	if (nr_nodes)
		memcpy(sim->nodes, nodes, nr_nodes * sizeof(*nodes));
	sim->nr_nodes = nr_nodes;
	mf_plat_sim_set_mappings(&sim->plat, 65530, 100);
	pthread_mutex_init(&sim->lock, NULL);
	*out = &sim->plat;
	return 0;
}

void mf_plat_sim_advance(struct mf_plat *plat, uint64_t ns)
{
	__atomic_fetch_add(&sim_of(plat)->now, ns, __ATOMIC_RELAXED);
}

void mf_plat_sim_set_cpu(struct mf_plat *plat, int cpu)
{
	__atomic_store_n(&sim_of(plat)->cpu, cpu, __ATOMIC_RELAXED);
}

void mf_plat_sim_set_mappings(struct mf_plat *plat, uint64_t max, uint64_t used)
{
	__atomic_store_n(&sim_of(plat)->max_mappings, max, __ATOMIC_RELAXED);
	__atomic_store_n(&sim_of(plat)->used_mappings, used, __ATOMIC_RELAXED);
}

void mf_plat_sim_fail(struct mf_plat *plat, enum mf_plat_sim_op op, unsigned nth)
{
	__atomic_store_n(&sim_of(plat)->fail_in[op], nth, __ATOMIC_RELAXED);
}

unsigned mf_plat_sim_outstanding(const struct mf_plat *plat)
{
	const struct sim *sim = (const struct sim *)plat; /* plat is the first member */

	return __atomic_load_n(&sim->outstanding, __ATOMIC_RELAXED);
}
