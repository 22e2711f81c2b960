/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Both texts of a topology.  An input that begins with "node", "distance" or
 * '#' or has a newline is a FILE, any other the short form.  Either there is a
 * reason, or a topology for which everything holds that topo.h promises.  A
 * small one in the short form is built, checked and taken down as well.
 */
#include "fuzz.h"

#include "base/parse.h"

#include <errno.h>

#define NODE_ALIGN 1024
#define LINE_PAGES 512
#define MAX_PAGES (UINT64_C(1) << 32)
#define SMALL_PAGES (UINT64_C(1) << 14) /* 64 MiB: what is built */

/* Zones follow each other without a gap; all but the last are whole lines. */
static void check_zones(const struct mf_topo_node *node)
{
	uint64_t pfn = node->start_pfn, pages = 0;

	for (int type = 0; type < MF_NR_ZONE_TYPES; type++) {
		const struct mf_topo_zone *zone = &node->zone[type];

		if (!zone->nr_pages)
			continue;
		FUZZ_CHECK(pages % LINE_PAGES == 0);
		FUZZ_CHECK(zone->start_pfn == pfn);
		pfn += zone->nr_pages;
		pages += zone->nr_pages;
	}
	FUZZ_CHECK(pages == node->nr_pages);
}

static void check_cpus(const struct mf_topo *topo, const struct mf_topo_node *node)
{
	unsigned nr = 0;

	for (unsigned cpu = 0; cpu < MF_MAX_CPUS; cpu++) {
		bool here = node->cpus[cpu / 64] >> cpu % 64 & 1;

		FUZZ_CHECK(here == (topo->cpu_node[cpu] == node->id));
		nr += here;
	}
	FUZZ_CHECK(nr == node->nr_cpus);
	FUZZ_CHECK((nr > 0) == mf_node_isset(topo->with_cpu, node->id));
}

static void check_distances(const struct mf_topo *topo, const struct mf_topo_node *node)
{
	for (int to = 0; to < 64; to++)
		FUZZ_CHECK((node->distance[to] != 0) == mf_node_isset(topo->nodes, to));
}

/* @end is where the nodes before it end; returns where this one does. */
static uint64_t check_node(const struct mf_topo *topo, int id, uint64_t end)
{
	const struct mf_topo_node *node = topo->node[id];

	FUZZ_CHECK(node && node->id == id);
	FUZZ_CHECK((node->nr_pages > 0) == mf_node_isset(topo->memory, id));
	FUZZ_CHECK((node->nr_pages > node->zone[MF_ZONE_MOVABLE].nr_pages) ==
		   mf_node_isset(topo->normal_memory, id));
	check_cpus(topo, node);
	check_distances(topo, node);
	if (!node->nr_pages)
		return end;
	FUZZ_CHECK(node->start_pfn % NODE_ALIGN == 0);
	FUZZ_CHECK(node->start_pfn == (end + NODE_ALIGN - 1) / NODE_ALIGN * NODE_ALIGN);
	check_zones(node);
	return node->start_pfn + node->nr_pages;
}

static void check_totals(const struct mf_topo *topo)
{
	uint64_t pages = 0;
	unsigned cpus = 0;
	int first = -1, last = -1;

	for (int id = 0; id < 64; id++) {
		FUZZ_CHECK((topo->node[id] != NULL) == mf_node_isset(topo->nodes, id));
		pages += topo->node[id] ? topo->node[id]->nr_pages : 0;
	}
	for (int cpu = 0; cpu < MF_MAX_CPUS; cpu++) {
		bool there = topo->cpus[cpu / 64] >> cpu % 64 & 1;

		FUZZ_CHECK(there == (topo->cpu_node[cpu] >= 0));
		cpus += there;
		first = there && first < 0 ? cpu : first;
		last = there ? cpu : last;
	}
	FUZZ_CHECK(topo->nr_pages == pages && pages > 0 && pages <= MAX_PAGES);
	FUZZ_CHECK(topo->nr_cpus == cpus && (int)topo->cpu_limit == last + 1);
	FUZZ_CHECK(mf_topo_first_cpu(topo) == first);
}

static void check_topology(const struct mf_topo *topo)
{
	uint64_t end = 0;

	FUZZ_CHECK(topo->nodes && topo->memory && topo->simulated);
	check_totals(topo);
	MF_FOR_EACH_NODE(id, topo->nodes)
		end = check_node(topo, id, end);
	FUZZ_CHECK(topo->pfn_limit == end && end <= MAX_PAGES);
}

/* An instance of it holds every page, knows where each node begins, and goes away without a rest. */
static void check_instance(const char *short_form)
{
	char options[256];
	struct memfs *m;

	snprintf(options, sizeof(options), "topology=%s", short_form);
	m = fuzz_instance(options);
	MF_FOR_EACH_NODE(id, m->topo->memory)
		FUZZ_CHECK(mf_page_node(m->page, m->topo->node[id]->start_pfn) == id);
	fuzz_check_engine(m);
	mf_engine_destroy(m);
}

static bool begins(const char *text, const char *word)
{
	return !strncmp(text, word, strlen(word));
}

static bool is_file(const char *text, size_t length)
{
	return begins(text, "node") || begins(text, "distance") || begins(text, "#") ||
	       memchr(text, '\n', length);
}

/* What else a topology= may be concerns the host, not a parser. */
static bool is_short(const char *text)
{
	return text[0] != '@' && strcmp(text, "auto") && strcmp(text, "host");
}

static void run_text(const char *text, size_t length)
{
	bool file = is_file(text, length);
	struct mf_topo *topo = NULL;
	char why[160] = "";
	int error;

	if (!file && !is_short(text))
		return;
	error = file ? mf_topo_parse_file(text, length, &topo, why, sizeof(why))
		     : mf_topo_create(text, NULL, &topo, why, sizeof(why));
	if (error) {
		FUZZ_CHECK(error == -EINVAL && !topo);
		fuzz_check_reason(why, sizeof(why));
		return;
	}
	check_topology(topo);
	/* A comma would begin the next option. */
	if (!file && topo->nr_pages <= SMALL_PAGES && strlen(text) < 200 && !strchr(text, ','))
		check_instance(text);
	mf_topo_destroy(topo);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	char *text = malloc(length + 1);

	FUZZ_CHECK(text);
	memcpy(text, bytes, length);
	text[length] = '\0';
	run_text(text, length);
	free(text);
	return 0;
}
