/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The two texts of a topology.
 *
 * Short form, nodes numbered from 0 and CPUs in order:
 *	[Nx]SIZE[:cpus=K] joined by '+'
 * FILE, in lines, '#' begins a comment:
 *	node ID cpus LIST zones TYPE=SIZE,TYPE=SIZE... [bandwidth MBps]
 *	distance ID d0 d1 ...
 * '-' stands for no CPUs and for no memory; the columns of a distance line are
 * the declared nodes by rising number, wherever in the FILE they are declared.
 */
#include "topo/topo_internal.h"

#include "base/parse.h"

#include <errno.h>
#include <string.h>

#define PAGE_MASK ((UINT64_C(1) << MF_TOPO_PAGE_SHIFT) - 1)
#define SHOWN(text) (int)((text).length < 40 ? (text).length : 40), (text).at

static int parse_pages(struct mf_text text, uint64_t *pages, struct mf_topo_reason *reason)
{
	uint64_t bytes;

	if (mf_parse_size(text, MF_TOPO_MAX_PAGES << MF_TOPO_PAGE_SHIFT, &bytes))
		return mf_topo_fail(reason, -EINVAL, "'%.*s' is not a size up to 16T", SHOWN(text));
	if (bytes & PAGE_MASK)
		return mf_topo_fail(reason, -EINVAL, "'%.*s' is not a multiple of 4K", SHOWN(text));
	*pages = bytes >> MF_TOPO_PAGE_SHIFT;
	return 0;
}

/* The short form. */

struct group {
	uint64_t nr_nodes;
	uint64_t pages;
	uint64_t cpus; /* a node */
};

/* "2x1G" or "1G" */
static int parse_group_size(struct mf_text text, struct group *group, struct mf_topo_reason *reason)
{
	if (text.length && memchr(text.at, 'x', text.length)) {
		struct mf_text count = mf_text_until(&text, 'x');

		if (mf_parse_u64(count, 64, &group->nr_nodes) || group->nr_nodes == 0)
			return mf_topo_fail(reason, -EINVAL, "'%.*s' is not a number of nodes, 1..64",
					    SHOWN(count));
	}
	return parse_pages(text, &group->pages, reason);
}

static int parse_group(struct mf_text text, struct group *group, struct mf_topo_reason *reason)
{
	bool has_cpus = text.length && memchr(text.at, ':', text.length);
	struct mf_text size = mf_text_until(&text, ':');
	struct mf_text value = text, key;

	*group = (struct group){ 1, 0, 1 };
	if (parse_group_size(size, group, reason))
		return -EINVAL;
	if (!has_cpus)
		return 0;
	key = mf_text_until(&value, '=');
	if (!mf_text_is(key, "cpus") || mf_parse_u64(value, MF_MAX_CPUS, &group->cpus))
		return mf_topo_fail(reason, -EINVAL, "'%.*s' is not cpus=K, K 0..%d", SHOWN(text),
				    MF_MAX_CPUS);
	return 0;
}

/* One node with the @cpus next CPU numbers. */
static int add_short_node(struct mf_topo *topo, const struct group *group, struct mf_topo_reason *reason)
{
	uint64_t cpus[MF_CPU_WORDS] = { 0 };
	struct mf_topo_node *node;
	int error;

	error = mf_topo_add_node(topo, (unsigned)mf_node_weight(topo->nodes), &node, reason);
	if (!error)
		error = mf_topo_add_zone(topo, node, MF_ZONE_NORMAL, group->pages, reason);
	if (error)
		return error;
	if (group->cpus > MF_MAX_CPUS - topo->nr_cpus)
		return mf_topo_fail(reason, -EINVAL, "more than %d CPUs", MF_MAX_CPUS);
	for (uint64_t i = 0; i < group->cpus; i++)
		cpus[(topo->nr_cpus + i) / 64] |= UINT64_C(1) << ((topo->nr_cpus + i) % 64);
	return mf_topo_add_cpus(topo, node, cpus, reason);
}

static int add_group(struct mf_topo *topo, struct mf_text text, struct mf_topo_reason *reason)
{
	struct group group;
	int error = parse_group(text, &group, reason);

	for (uint64_t i = 0; !error && i < group.nr_nodes; i++)
		error = add_short_node(topo, &group, reason);
	return error;
}

int mf_topo_parse_short(struct mf_topo *topo, const char *text, struct mf_topo_reason *reason)
{
	struct mf_text rest = mf_text_of(text);
	bool more = true;
	int error = 0;

	/* A '+' at the end leaves an empty last part, which is no size. */
	while (!error && more) {
		more = rest.length && memchr(rest.at, '+', rest.length);
		error = add_group(topo, mf_text_until(&rest, '+'), reason);
	}
	return error;
}

/* The FILE. */

static int expect_word(struct mf_text *line, const char *wanted, struct mf_topo_reason *reason)
{
	struct mf_text word = mf_text_word(line);

	if (mf_text_is(word, wanted))
		return 0;
	return mf_topo_fail(reason, -EINVAL, "'%s' expected instead of '%.*s'", wanted, SHOWN(word));
}

static int expect_end(struct mf_text line, struct mf_topo_reason *reason)
{
	struct mf_text word = mf_text_word(&line);

	if (word.length == 0)
		return 0;
	return mf_topo_fail(reason, -EINVAL, "'%.*s' is too much", SHOWN(word));
}

static int parse_id(struct mf_text *line, unsigned *id, struct mf_topo_reason *reason)
{
	struct mf_text word = mf_text_word(line);
	uint64_t value;

	if (mf_parse_u64(word, 63, &value))
		return mf_topo_fail(reason, -EINVAL, "'%.*s' is not a node number, 0..63", SHOWN(word));
	*id = (unsigned)value;
	return 0;
}

static int parse_cpus(struct mf_topo *topo, struct mf_topo_node *node, struct mf_text word,
		      struct mf_topo_reason *reason)
{
	uint64_t cpus[MF_CPU_WORDS];

	if (mf_text_is(word, "-"))
		return 0;
	if (word.length == 0 || mf_parse_list(word, MF_MAX_CPUS - 1, cpus))
		return mf_topo_fail(reason, -EINVAL, "'%.*s' is not a list of CPUs, 0..%d", SHOWN(word),
				    MF_MAX_CPUS - 1);
	return mf_topo_add_cpus(topo, node, cpus, reason);
}

static int zone_type_of(struct mf_text name)
{
	for (int type = 0; type < MF_NR_ZONE_TYPES; type++)
		if (mf_text_is(name, mf_zone_names[type]))
			return type;
	return -1;
}

/* "Normal=128M"; *last is the type of the zone before, -1 none. */
static int parse_zone(struct mf_topo *topo, struct mf_topo_node *node, struct mf_text text, int *last,
		      struct mf_topo_reason *reason)
{
	struct mf_text name = mf_text_until(&text, '=');
	int type = zone_type_of(name);
	uint64_t pages;

	if (type < 0)
		return mf_topo_fail(reason, -EINVAL, "'%.*s' is not DMA, DMA32, Normal or Movable",
				    SHOWN(name));
	if (type <= *last)
		return mf_topo_fail(reason, -EINVAL, "zone %s is not above %s", mf_zone_names[type],
				    mf_zone_names[*last]);
	if (node->nr_pages % MF_TOPO_LINE_PAGES)
		return mf_topo_fail(reason, -EINVAL, "zone %s is not the last and no multiple of 2M",
				    mf_zone_names[*last]);
	if (parse_pages(text, &pages, reason))
		return -EINVAL;
	if (pages == 0)
		return mf_topo_fail(reason, -EINVAL, "zone %s is empty; leave it out", mf_zone_names[type]);
	*last = type;
	return mf_topo_add_zone(topo, node, type, pages, reason);
}

static int parse_zones(struct mf_topo *topo, struct mf_topo_node *node, struct mf_text word,
		       struct mf_topo_reason *reason)
{
	bool more = true;
	int last = -1, error = 0;

	if (mf_text_is(word, "-"))
		return 0;
	while (!error && more) {
		more = word.length && memchr(word.at, ',', word.length);
		error = parse_zone(topo, node, mf_text_until(&word, ','), &last, reason);
	}
	return error;
}

static int parse_bandwidth(struct mf_topo_node *node, struct mf_text *line, struct mf_topo_reason *reason)
{
	struct mf_text value;
	int error;

	if (line->length == 0)
		return 0;
	error = expect_word(line, "bandwidth", reason);
	if (error)
		return error;
	value = mf_text_word(line);
	if (mf_parse_u64(value, UINT64_MAX, &node->bandwidth))
		return mf_topo_fail(reason, -EINVAL, "'%.*s' is not a bandwidth in MB/s", SHOWN(value));
	return 0;
}

static int parse_node(struct mf_topo *topo, struct mf_text line, struct mf_topo_reason *reason)
{
	struct mf_topo_node *node;
	unsigned id;
	int error = parse_id(&line, &id, reason);

	if (!error)
		error = mf_topo_add_node(topo, id, &node, reason);
	if (!error)
		error = expect_word(&line, "cpus", reason);
	if (!error)
		error = parse_cpus(topo, node, mf_text_word(&line), reason);
	if (!error)
		error = expect_word(&line, "zones", reason);
	if (!error)
		error = parse_zones(topo, node, mf_text_word(&line), reason);
	if (!error)
		error = parse_bandwidth(node, &line, reason);
	return error ? error : expect_end(line, reason);
}

static int parse_distance(struct mf_topo *topo, struct mf_text line, struct mf_topo_reason *reason)
{
	unsigned id;
	int error = parse_id(&line, &id, reason);

	if (error)
		return error;
	if (!topo->node[id])
		return mf_topo_fail(reason, -EINVAL, "there is no node %u", id);
	/* No distance is 0, so one that is there means a line before. */
	if (topo->node[id]->distance[id])
		return mf_topo_fail(reason, -EINVAL, "distances of node %u appear twice", id);
	MF_FOR_EACH_NODE(to, topo->nodes) {
		struct mf_text word = mf_text_word(&line);
		uint64_t distance;

		if (word.length == 0)
			return mf_topo_fail(reason, -EINVAL, "a distance for each of the %d nodes expected",
					    mf_node_weight(topo->nodes));
		if (mf_parse_u64(word, 255, &distance) || distance == 0)
			return mf_topo_fail(reason, -EINVAL, "'%.*s' is not a distance, 1..255", SHOWN(word));
		topo->node[id]->distance[to] = (uint8_t)distance;
	}
	return expect_end(line, reason);
}

enum pass { PASS_NODES, PASS_DISTANCES };

static int parse_line(struct mf_topo *topo, struct mf_text line, enum pass pass,
		      struct mf_topo_reason *reason)
{
	struct mf_text keyword = mf_text_word(&line);

	if (keyword.length == 0)
		return 0;
	if (mf_text_is(keyword, "node"))
		return pass == PASS_NODES ? parse_node(topo, line, reason) : 0;
	if (mf_text_is(keyword, "distance"))
		return pass == PASS_DISTANCES ? parse_distance(topo, line, reason) : 0;
	if (mf_text_is(keyword, "available:"))
		return mf_topo_fail(
			reason, -EINVAL,
			"this is what 'numactl --hardware' prints; lines 'node ID cpus ...' expected");
	return mf_topo_fail(reason, -EINVAL, "'%.*s' is neither node nor distance", SHOWN(keyword));
}

/* Twice: a distance line needs all nodes known, also those declared below it. */
int mf_topo_parse_lines(struct mf_topo *topo, const char *bytes, size_t length, struct mf_topo_reason *reason)
{
	for (enum pass pass = PASS_NODES; pass <= PASS_DISTANCES; pass++) {
		struct mf_text rest = { bytes, length };

		for (reason->line = 1; rest.length; reason->line++) {
			struct mf_text line = mf_text_until(&rest, '\n');
			int error = parse_line(topo, mf_text_until(&line, '#'), pass, reason);

			if (error)
				return error;
		}
	}
	return 0;
}
