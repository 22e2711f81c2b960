/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every row of the placements recorded on real kernels 6.12 and 7.2, against
 * our policy functions.  Singles and ranges are compared node by node, bulks
 * by pages per node and by the order in which nodes first appear (a kernel's
 * bulk comes back to the node it had pages left on, ours does not).
 *
 * A row may differ only by a documented rule: every row must equal our
 * functions with both rules turned round to the kernel's way, and those that
 * differ without that are counted for the rule that makes the difference:
 *  loaded    a bulk that came out even has loaded the next node's weight
 *            already; here it is read when the node is entered
 *  unfair    bulk plain interleave starts at the same node every time
 * How many rows each rule explains is asserted exactly.
 *
 * A range of vmalloc also goes through the engine, with and without large
 * blocks: its pages per node are those that 6.12 recorded.  7.2 moves the
 * policy once a block instead of once a page ("by block"): its rows must equal
 * that rule, ours must equal single steps, and the rows where the two differ
 * are counted.
 */
#include "data.h"
#include "plat/plat_sim.h"
#include "unit.h"
#include "vmalloc/vmalloc.h"

#include <ctype.h>

#define MAX_PAGES 1024
#define VMALLOC_CHUNK 100 /* pages of one bulk call of vmalloc in 6.12 */

enum verdict { EQUAL, LOADED, UNFAIR, BY_BLOCK, WRONG, NR_VERDICTS };

#define KERNEL_LOADS (1u << LOADED)
#define KERNEL_UNFAIR (1u << UNFAIR)

static unsigned ranges; /* rows of vmalloc that went through the engine */

struct row {
	const char *id, *topology, *api, *mode, *nodes, *weights, *sequence, *note;
	unsigned long long start, pages;
	bool is_6_12;
};

/* A task of the recorded machine. */
struct machine {
	struct mf_policy_context context;
	struct mf_policy policy;
	struct mf_weights weights;
	struct mf_rotation rotation;
	unsigned rules; /* which are the kernel's, a set of KERNEL_ bits */
};

static bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static void set_weights(struct machine *m, const char *list)
{
	unsigned long long values[64];
	int nr = data_numbers(list, values, 64);

	memset(m->weights.of, 1, sizeof(m->weights.of));
	for (int i = 0; i < nr; i++)
		m->weights.of[i] = values[i];
}

/* False when the row's policy is not one of ours. */
static bool start_machine(struct machine *m, const struct row *row, unsigned rules)
{
	const char *mode = strcmp(row->mode, "preferred") ? row->mode : "prefer";
	mf_nodemask all = (UINT64_C(1) << (row->topology[1] - '0')) - 1;
	char text[128];

	m->context = (struct mf_policy_context){ all, all, all };
	m->rotation = (struct mf_rotation)MF_ROTATION_INIT;
	m->rules = rules;
	set_weights(m, row->weights);
	snprintf(text, sizeof(text), "%s%s%s", mode, row->nodes[0] ? ":" : "", row->nodes);
	return !mf_policy_parse(mf_text_of(text), &m->context, &m->policy, NULL, 0);
}

/*
 * The other modes are placed by the zonelist of the CPU's node, which is 0 in
 * every row, with the distances rising by number: the lowest node of the mask.
 */
static int single(struct machine *m)
{
	if (mf_policy_interleaves(&m->policy))
		return mf_policy_step(&m->policy, &m->weights, &m->rotation);
	return m->policy.nodes ? mf_node_first(m->policy.nodes) : 0;
}

/* n mod nodes go to the first ones behind il_prev, which stays where it is. */
static void unfair_bulk(const struct machine *m, uint64_t n, struct mf_policy_shares *shares)
{
	unsigned nodes = mf_node_weight(m->policy.nodes);
	int node = m->rotation.il_prev;

	shares->nr = 0;
	for (unsigned i = 0; i < nodes; i++) {
		uint64_t share = n / nodes + (i < n % nodes);

		node = mf_node_next_cyclic(m->policy.nodes, node);
		if (!share)
			continue;
		shares->node[shares->nr] = node;
		shares->share[shares->nr++] = share;
	}
}

/* The kernel's way of ending a bulk that came out even. */
static void load_next(struct machine *m, uint64_t n, struct mf_rotation before)
{
	uint64_t owed = mf_node_isset(m->policy.nodes, before.il_prev) ? before.il_weight : 0;
	uint64_t sum = 0;
	int next;

	MF_FOR_EACH_NODE(node, m->policy.nodes)
		sum += m->weights.of[node];
	if (n <= owed || (n - owed) % sum)
		return;
	next = mf_node_next_cyclic(m->policy.nodes, before.il_prev);
	m->rotation = (struct mf_rotation){ next, m->weights.of[next] };
}

static void bulk(struct machine *m, uint64_t n, struct mf_policy_shares *shares)
{
	struct mf_rotation before = m->rotation;

	if (m->rules & KERNEL_UNFAIR && m->policy.mode == MF_MPOL_INTERLEAVE) {
		unfair_bulk(m, n, shares);
		return;
	}
	mf_policy_bulk(&m->policy, &m->weights, m->rotation, n, shares);
	mf_policy_advance(&m->policy, &m->weights, &m->rotation, n);
	if (m->rules & KERNEL_LOADS && m->policy.mode == MF_MPOL_WEIGHTED_INTERLEAVE)
		load_next(m, n, before);
}

static bool check_singles(struct machine *m, unsigned long long n, const unsigned long long *got, int nr_got)
{
	if (nr_got < 0 || n != (unsigned long long)nr_got)
		return false;
	for (int i = 0; i < nr_got; i++)
		if (single(m) != (int)got[i])
			return false;
	return true;
}

static bool check_bulk(struct machine *m, uint64_t n, const unsigned long long *got, int nr_got)
{
	struct mf_policy_shares shares;
	uint64_t per_node[64] = { 0 };
	unsigned seen = 0;

	if (n != (uint64_t)nr_got)
		return false;
	bulk(m, n, &shares);
	for (int i = 0; i < nr_got; i++)
		if (!per_node[got[i] & 63]++ && (seen >= shares.nr || shares.node[seen++] != got[i]))
			return false;
	for (unsigned i = 0; i < shares.nr; i++)
		if (per_node[shares.node[i]] != shares.share[i])
			return false;
	return seen == shares.nr;
}

/* 6.12: bulks of at most 100 pages each; pages per node over all of them. */
static bool check_vmalloc(struct machine *m, uint64_t n, const unsigned long long *got, int nr_got)
{
	uint64_t wanted[64] = { 0 };

	if (n != (uint64_t)nr_got)
		return false;
	while (n) {
		uint64_t part = n < VMALLOC_CHUNK ? n : VMALLOC_CHUNK;
		struct mf_policy_shares shares;

		bulk(m, part, &shares);
		for (unsigned i = 0; i < shares.nr; i++)
			wanted[shares.node[i]] += shares.share[i];
		n -= part;
	}
	for (int i = 0; i < nr_got; i++)
		wanted[got[i] & 63]--;
	for (int node = 0; node < 64; node++)
		if (wanted[node])
			return false;
	return true;
}

/* Cuts the nodes of the next part off; a bulk's "13:" in front must be what was asked. */
static int next_part(char **parts, unsigned long long asked, unsigned long long *got)
{
	char *part = strsep(parts, "|");
	char *colon = part ? strchr(part, ':') : NULL;

	if (!part)
		return -1;
	if (colon && strtoull(part, NULL, 10) != asked)
		return -1;
	return data_numbers(colon ? colon + 1 : part, got, MAX_PAGES);
}

/* One command of a row's note: page, bulk, vmalloc, w, pol. */
static bool run_command(struct machine *m, const char *command, char **parts)
{
	unsigned long long got[MAX_PAGES], a = 0, b = 0;
	char word[16] = "", hex[32] = "";

	if (sscanf(command, " %15s %llu %31s", word, &a, hex) < 2)
		return false;
	b = strtoull(hex, NULL, 10);
	if (!strcmp(word, "page"))
		return check_singles(m, a, got, next_part(parts, a, got));
	if (!strcmp(word, "bulk"))
		return check_bulk(m, a, got, next_part(parts, a, got));
	if (!strcmp(word, "vmalloc"))
		return check_vmalloc(m, a, got, next_part(parts, a, got));
	if (!strcmp(word, "w")) {
		m->weights.of[a & 63] = b;
		return true;
	}
	if (strcmp(word, "pol"))
		return false;
	m->rotation = (struct mf_rotation)MF_ROTATION_INIT;
	return !mf_policy_set(a, 0, strtoull(hex, NULL, 16), &m->context, &m->policy, NULL, 0);
}

static bool kernel_row_is_equal(struct machine *m, const struct row *row)
{
	char commands[DATA_LINE], sequence[DATA_LINE];
	char *rest = commands, *parts = sequence, *command, *comment;

	snprintf(commands, sizeof(commands), "%s", row->note);
	snprintf(sequence, sizeof(sequence), "%s", row->sequence);
	comment = strstr(commands, " -- ");
	if (comment)
		*comment = '\0';
	while ((command = strsep(&rest, ";")))
		if (!run_command(m, command, &parts))
			return false;
	return !parts; /* all of the sequence was explained */
}

/* "after page 10 weights node0=1,node1=2" */
static void change_weights(struct machine *m, const char *note)
{
	const char *at = strstr(note, "node");

	for (; at; at = strstr(at + 1, "node")) {
		int node = atoi(at + 4);
		const char *equals = strchr(at, '=');

		m->weights.of[node & 63] = equals ? atoi(equals + 1) : 0;
	}
}

/* User memory: the node follows from the page's number alone. */
static bool range_row_is_equal(struct machine *m, const struct row *row)
{
	unsigned long long got[MAX_PAGES], inode = 0, change_at = MAX_PAGES;
	int nr = data_numbers(row->sequence, got, MAX_PAGES);

	if (starts_with(row->api, "memfd") && sscanf(row->note, "i_ino=%llu", &inode) != 1)
		return false;
	if (strstr(row->api, "midrun") && sscanf(row->note, "after page %llu", &change_at) != 1)
		return false;
	for (int i = 0; i < nr; i++) {
		if ((unsigned long long)i == change_at)
			change_weights(m, row->note);
		if (mf_policy_index_node(&m->policy, &m->weights, row->start + inode + i) != (int)got[i])
			return false;
	}
	return row->pages == (unsigned long long)nr;
}

static bool is_equal(const struct row *row, unsigned rules)
{
	struct machine m;

	if (!start_machine(&m, row, rules))
		return false;
	if (starts_with(row->api, "kernel-"))
		return kernel_row_is_equal(&m, row);
	return range_row_is_equal(&m, row);
}

/* --- ranges, by the engine --- */

#define NODES 64

struct engine {
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *page;
	struct mf_vmalloc *vmalloc;
	struct mf_placement place;
};

static void start_engine(struct engine *e, const struct row *row)
{
	struct machine m;
	char machine[32];

	CU_ASSERT_TRUE_FATAL(start_machine(&m, row, 0));
	snprintf(machine, sizeof(machine), "%cx64M:cpus=1", row->topology[1]);
	CU_ASSERT_EQUAL_FATAL(mf_plat_sim_create(NULL, 0, &e->plat), 0);
	CU_ASSERT_EQUAL_FATAL(mf_topo_create(machine, e->plat, &e->topo, NULL, 0), 0);
	mf_fault_init(&e->fault);
	CU_ASSERT_EQUAL_FATAL(mf_page_create(e->topo, e->plat, &e->fault, &e->page), 0);
	CU_ASSERT_EQUAL_FATAL(mf_vmalloc_create(e->page, e->plat, &e->vmalloc), 0);
	mf_page_set_weights(e->page, &m.weights);
	mf_placement_init(&e->place, e->page);
	mf_placement_set_policy(&e->place, &m.policy, e->topo);
}

static void stop_engine(struct engine *e)
{
	mf_vmalloc_destroy(e->vmalloc);
	mf_page_destroy(e->page);
	mf_topo_destroy(e->topo);
	CU_ASSERT_EQUAL(mf_plat_sim_outstanding(e->plat), 0);
	e->plat->ops->destroy(e->plat);
}

static void engine_range(const struct row *row, enum mf_vmalloc_large large, uint64_t by_node[NODES])
{
	struct mf_vmalloc_request request = {
		.size = row->pages * MEMFS_PAGE_SIZE,
		.page = { .gfp = MEMFS_GFP_KERNEL, .node = MF_NODE_BY_POLICY, .cpu = MF_CPU_OF_TASK },
	};
	memfs_pfn pfns[MAX_PAGES];
	struct mf_vmalloc_knobs knobs;
	struct engine e;
	void *address;

	memset(by_node, 0, NODES * sizeof(*by_node));
	start_engine(&e, row);
	mf_vmalloc_get_knobs(e.vmalloc, &knobs);
	CU_ASSERT_EQUAL(knobs.large_order, MF_VMALLOC_BOUNDED);
	knobs.large_order = large;
	mf_vmalloc_set_knobs(e.vmalloc, &knobs);
	CU_ASSERT_EQUAL_FATAL(mf_vmalloc_alloc(e.vmalloc, &e.place, &request, &address, NULL, 0), 0);
	CU_ASSERT_EQUAL(mf_vmalloc_pages(e.vmalloc, address, pfns, MAX_PAGES), row->pages);
	for (uint64_t i = 0; i < row->pages; i++)
		by_node[mf_page_node(e.page, pfns[i].v) & 63]++;
	stop_engine(&e);
}

static void recorded_range(const struct row *row, uint64_t by_node[NODES])
{
	unsigned long long got[MAX_PAGES];
	int nr = data_numbers(row->sequence, got, MAX_PAGES);

	memset(by_node, 0, NODES * sizeof(*by_node));
	for (int i = 0; i < nr; i++)
		by_node[got[i] & 63]++;
}

/* A step a page, or as 7.2 does: a step a block of as many pages as fit, in powers of two. */
static void steps(const struct row *row, bool by_block, uint64_t by_node[NODES])
{
	uint64_t left = row->pages;
	struct machine m;

	memset(by_node, 0, NODES * sizeof(*by_node));
	CU_ASSERT_TRUE_FATAL(start_machine(&m, row, 0));
	while (left) {
		uint64_t block = by_block ? UINT64_C(1) << (63 - __builtin_clzll(left)) : 1;

		by_node[single(&m) & 63] += block;
		left -= block;
	}
}

static bool same_nodes(const uint64_t *a, const uint64_t *b)
{
	return !memcmp(a, b, NODES * sizeof(*a));
}

static enum verdict judge_range(const struct row *row)
{
	uint64_t recorded[NODES], policy[NODES], blocks[NODES], bounded[NODES], small[NODES];

	recorded_range(row, recorded);
	steps(row, false, policy);
	steps(row, true, blocks);
	engine_range(row, MF_VMALLOC_BOUNDED, bounded);
	engine_range(row, MF_VMALLOC_OFF, small);
	ranges++;
	if (!same_nodes(bounded, policy) || !same_nodes(small, policy) ||
	    !same_nodes(recorded, row->is_6_12 ? policy : blocks)) {
		printf("%s %s %s: not the pages per node that were foreseen\n", row->id, row->api, row->note);
		return WRONG;
	}
	return same_nodes(recorded, policy) ? EQUAL : BY_BLOCK;
}

static enum verdict judge(const struct row *row)
{
	if (!strcmp(row->api, "kernel-vmalloc")) {
		enum verdict verdict = judge_range(row);

		if (verdict != EQUAL || !row->is_6_12)
			return verdict;
	}
	if (!is_equal(row, KERNEL_LOADS | KERNEL_UNFAIR)) {
		printf("%s %s %s: differs by more than the two rules\n", row->id, row->api, row->note);
		return WRONG;
	}
	if (is_equal(row, 0))
		return EQUAL;
	return is_equal(row, KERNEL_LOADS) ? LOADED : UNFAIR;
}

static void judge_file(const char *name, unsigned *counts)
{
	FILE *file = data_open(name);
	char line[DATA_LINE], *f[12];
	int rows = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	while (data_row(file, line, f, 12) == 12) {
		struct row row = {
			.id = f[0],
			.topology = f[2],
			.api = f[3],
			.mode = f[4],
			.nodes = f[5],
			.weights = f[6],
			.sequence = f[9],
			.note = f[10],
			.start = strtoull(f[7], NULL, 10),
			.pages = strtoull(f[8], NULL, 10),
			.is_6_12 = starts_with(f[1], "6.12."),
		};

		counts[judge(&row)]++;
		rows++;
	}
	CU_ASSERT(feof(file));
	fclose(file);
	printf("%s: %d rows, %u equal, %u differ by 'loaded', %u by 'unfair', %u by block, %u wrong; %u ranges\n",
	       name, rows, counts[EQUAL], counts[LOADED], counts[UNFAIR], counts[BY_BLOCK], counts[WRONG],
	       ranges);
}

static void check_file(const char *name, const unsigned *wanted, unsigned wanted_ranges)
{
	unsigned counts[NR_VERDICTS] = { 0 };

	printf("\n");
	ranges = 0;
	judge_file(name, counts);
	CU_ASSERT_EQUAL(ranges, wanted_ranges);
	for (int verdict = 0; verdict < NR_VERDICTS; verdict++)
		CU_ASSERT_EQUAL(counts[verdict], wanted[verdict]);
}

static void kernel_6_12(void)
{
	static const unsigned wanted[NR_VERDICTS] = { 663, 1, 0, 0, 0 };

	check_file("weighted-interleave-6.12.117.tsv", wanted, 47);
}

static void kernel_7_2(void)
{
	static const unsigned wanted[NR_VERDICTS] = { 880 - 55, 0, 0, 55, 0 };

	check_file("weighted-interleave-7.2.13.tsv", wanted, 64);
}

static const struct unit_test tests[] = {
	UNIT_TEST(kernel_6_12),
	UNIT_TEST(kernel_7_2),
};

UNIT_MAIN("vectors", tests)
