/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Building a topology: the forms of the option's value lead to one builder,
 * which keeps the invariants of topo.h.
 *
 * Locks: none; a topology is immutable once mf_topo_create() has returned it.
 */
#include "topo/topo_internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AUTO_SIMULATED "2x256M:cpus=2"
#define NODE_ALIGN_PAGES 1024 /* no block of the largest order spans two nodes */
#define LOCAL_DISTANCE 10
#define REMOTE_DISTANCE 20
#define FILE_LIMIT ((size_t)1 << 20)

const char *const mf_zone_names[MF_NR_ZONE_TYPES] = { "DMA", "DMA32", "Normal", "Movable" };

int mf_topo_fail(struct mf_topo_reason *reason, int error, const char *format, ...)
{
	int used = 0;
	va_list args;

	if (!reason->text || !reason->size)
		return error;
	if (reason->line)
		used = snprintf(reason->text, reason->size, "line %u: ", reason->line);
	if (used < 0 || (size_t)used >= reason->size)
		return error;
	va_start(args, format);
	vsnprintf(reason->text + used, reason->size - (size_t)used, format, args);
	va_end(args);
	/* It quotes what a user wrote, and is to stay one printable line. */
	for (char *c = reason->text; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	return error;
}

/* The builder. */

struct mf_topo *mf_topo_new(void)
{
	struct mf_topo *topo = calloc(1, sizeof(*topo));

	if (!topo)
		return NULL;
	topo->simulated = true;
	for (unsigned cpu = 0; cpu < MF_MAX_CPUS; cpu++)
		topo->cpu_node[cpu] = -1;
	return topo;
}

void mf_topo_destroy(struct mf_topo *topo)
{
	if (!topo)
		return;
	for (unsigned id = 0; id < 64; id++)
		free(topo->node[id]);
	free(topo);
}

int mf_topo_add_node(struct mf_topo *topo, unsigned id, struct mf_topo_node **out,
		     struct mf_topo_reason *reason)
{
	struct mf_topo_node *node;

	if (id > 63)
		return mf_topo_fail(reason, -EINVAL, "more than 64 nodes, or a node number above 63");
	if (topo->node[id])
		return mf_topo_fail(reason, -EINVAL, "node %u appears twice", id);
	node = calloc(1, sizeof(*node));
	if (!node)
		return mf_topo_fail(reason, -ENOMEM, "no memory");
	node->id = (int)id;
	node->host_node = -1;
	topo->node[id] = node;
	topo->nodes |= mf_node_bit(node->id);
	*out = node;
	return 0;
}

int mf_topo_add_zone(struct mf_topo *topo, struct mf_topo_node *node, enum mf_zone_type type, uint64_t pages,
		     struct mf_topo_reason *reason)
{
	if (pages > MF_TOPO_MAX_PAGES - topo->nr_pages)
		return mf_topo_fail(reason, -EINVAL, "more than 16 TiB of memory");
	node->zone[type].nr_pages = pages;
	node->nr_pages += pages;
	topo->nr_pages += pages;
	return 0;
}

int mf_topo_add_cpus(struct mf_topo *topo, struct mf_topo_node *node, const uint64_t *cpus,
		     struct mf_topo_reason *reason)
{
	for (unsigned cpu = 0; cpu < MF_MAX_CPUS; cpu++) {
		uint64_t bit = UINT64_C(1) << (cpu % 64);

		if (!(cpus[cpu / 64] & bit))
			continue;
		if (topo->cpu_node[cpu] >= 0)
			return mf_topo_fail(reason, -EINVAL, "CPU %u is already on node %d", cpu,
					    topo->cpu_node[cpu]);
		topo->cpu_node[cpu] = (int16_t)node->id;
		topo->cpus[cpu / 64] |= bit;
		node->cpus[cpu / 64] |= bit;
		node->nr_cpus++;
		topo->nr_cpus++;
		if (cpu >= topo->cpu_limit)
			topo->cpu_limit = cpu + 1;
	}
	return 0;
}

/* The zones of a node follow each other; the first pfn after them. */
static uint64_t lay_out_zones(struct mf_topo_node *node, uint64_t pfn)
{
	node->start_pfn = (uint32_t)pfn;
	for (unsigned type = 0; type < MF_NR_ZONE_TYPES; type++) {
		struct mf_topo_zone *zone = &node->zone[type];

		/* An empty zone begins nowhere; it shows 0, as the kernel's does. */
		if (zone->nr_pages)
			zone->start_pfn = (uint32_t)pfn;
		pfn += zone->nr_pages;
	}
	return pfn;
}

static void lay_out(struct mf_topo *topo)
{
	uint64_t pfn = 0;

	MF_FOR_EACH_NODE(id, topo->nodes) {
		struct mf_topo_node *node = topo->node[id];

		if (!node->nr_pages)
			continue;
		pfn = (pfn + NODE_ALIGN_PAGES - 1) & ~(uint64_t)(NODE_ALIGN_PAGES - 1);
		pfn = lay_out_zones(node, pfn);
		topo->memory |= mf_node_bit(id);
		if (node->nr_pages != node->zone[MF_ZONE_MOVABLE].nr_pages)
			topo->normal_memory |= mf_node_bit(id);
	}
	topo->pfn_limit = pfn;
}

static void fill_distances(struct mf_topo *topo)
{
	MF_FOR_EACH_NODE(from, topo->nodes) {
		MF_FOR_EACH_NODE(to, topo->nodes) {
			uint8_t *distance = &topo->node[from]->distance[to];

			if (!*distance)
				*distance = from == to ? LOCAL_DISTANCE : REMOTE_DISTANCE;
		}
	}
}

int mf_topo_finish(struct mf_topo *topo, struct mf_topo_reason *reason)
{
	bool usable = false;

	reason->line = 0;
	lay_out(topo);
	if (topo->pfn_limit > MF_TOPO_MAX_PAGES)
		return mf_topo_fail(reason, -EINVAL, "more than 16 TiB with the gaps between nodes");
	fill_distances(topo);
	MF_FOR_EACH_NODE(id, topo->nodes) {
		if (topo->node[id]->nr_cpus)
			topo->with_cpu |= mf_node_bit(id);
		if (topo->node[id]->nr_pages >= MF_TOPO_LINE_PAGES)
			usable = true;
	}
	if (!usable)
		return mf_topo_fail(reason, -EINVAL, "no node has 2 MiB of memory");
	return 0;
}

/* The forms. */

/* Ends a creation that came to @error: a finished topology or nothing. */
static int conclude(struct mf_topo *topo, int error, struct mf_topo **out, struct mf_topo_reason *reason)
{
	if (!error)
		error = mf_topo_finish(topo, reason);
	if (error)
		mf_topo_destroy(topo);
	else
		*out = topo;
	return error;
}

static int create_empty(struct mf_topo **topo, struct mf_topo_reason *reason)
{
	*topo = mf_topo_new();
	return *topo ? 0 : mf_topo_fail(reason, -ENOMEM, "no memory");
}

static int create_short(const char *text, struct mf_topo **out, struct mf_topo_reason *reason)
{
	struct mf_topo *topo;
	int error = create_empty(&topo, reason);

	if (error)
		return error;
	return conclude(topo, mf_topo_parse_short(topo, text, reason), out, reason);
}

static int create_host(struct mf_plat *plat, unsigned min_memory, struct mf_topo **out,
		       struct mf_topo_reason *reason)
{
	struct mf_topo *topo;
	int error = create_empty(&topo, reason);

	if (error)
		return error;
	return conclude(topo, mf_topo_from_host(topo, plat, min_memory, reason), out, reason);
}

static int create_auto(struct mf_plat *plat, struct mf_topo **out, struct mf_topo_reason *reason)
{
	int error = create_host(plat, 2, out, reason);

	/* Too few nodes, or a host larger than the limits: a mount without options always works. */
	if (error != -ENODEV && error != -EINVAL)
		return error;
	return create_short(AUTO_SIMULATED, out, reason);
}

/* All of a file into @bytes, which has room for FILE_LIMIT + 1. */
static int read_all(int fd, char *bytes, size_t *length)
{
	*length = 0;
	while (*length <= FILE_LIMIT) {
		ssize_t got = read(fd, bytes + *length, FILE_LIMIT + 1 - *length);

		if (got == 0)
			return 0;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got > 0)
			*length += (size_t)got;
	}
	return -EFBIG;
}

static int read_file(const char *path, char *bytes, size_t *length)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error;

	if (fd < 0)
		return -errno;
	error = read_all(fd, bytes, length);
	close(fd);
	return error;
}

static int create_from_file(const char *path, struct mf_topo **out, char *why, size_t why_size)
{
	struct mf_topo_reason reason = { why, why_size, 0 };
	char *bytes = malloc(FILE_LIMIT + 1);
	size_t length = 0;
	int error;

	if (!bytes)
		return mf_topo_fail(&reason, -ENOMEM, "no memory");
	error = read_file(path, bytes, &length);
	if (error == -EFBIG)
		error = mf_topo_fail(&reason, -EINVAL, "%s: longer than 1 MiB", path);
	else if (error)
		mf_topo_fail(&reason, error, "%s: %s", path, strerror(-error));
	else
		error = mf_topo_parse_file(bytes, length, out, why, why_size);
	free(bytes);
	return error;
}

int mf_topo_parse_file(const char *bytes, size_t length, struct mf_topo **out, char *why, size_t why_size)
{
	struct mf_topo_reason reason = { why, why_size, 0 };
	struct mf_topo *topo;
	int error = create_empty(&topo, &reason);

	if (error)
		return error;
	return conclude(topo, mf_topo_parse_lines(topo, bytes, length, &reason), out, &reason);
}

int mf_topo_create(const char *text, struct mf_plat *plat, struct mf_topo **out, char *why, size_t why_size)
{
	struct mf_topo_reason reason = { why, why_size, 0 };

	if (!text || !strcmp(text, "auto"))
		return create_auto(plat, out, &reason);
	if (!strcmp(text, "host"))
		return create_host(plat, 1, out, &reason);
	if (text[0] == '@')
		return create_from_file(text + 1, out, why, why_size);
	return create_short(text, out, &reason);
}

int mf_topo_first_cpu(const struct mf_topo *topo)
{
	for (unsigned word = 0; word < MF_CPU_WORDS; word++)
		if (topo->cpus[word])
			return (int)(word * 64) + __builtin_ctzll(topo->cpus[word]);
	return -1;
}
