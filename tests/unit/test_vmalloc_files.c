/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The files of vmalloc: alloc/vmalloc, live/NAME of a range, vmalloc/,
 * stats/vmallocinfo and the levels in the kernel's files.  One strict parser
 * reads a kernel's vmallocinfo (tests/data/samples) and ours.
 */
#include "ctl_fixture.h"
#include "data.h"

#include <inttypes.h>

#define TWO_NODES "topology=2x16M:cpus=2"
#define FOUR_NODES "topology=4x16M:cpus=1"

/* --- a line of vmallocinfo --- */

/* The words behind the caller, in the only order they come in. */
enum word { PAGES, PHYS, IOREMAP, SPARSE, VMALLOC, LINEAR, VMAP, USER, COHERENT, VPAGES, NR_WORDS };

static const char *const words[NR_WORDS] = {
	[PAGES] = "pages=",	     [PHYS] = "phys=",	  [IOREMAP] = "ioremap", [SPARSE] = "sparse",
	[VMALLOC] = "vmalloc",	     [LINEAR] = "linear", [VMAP] = "vmap",	 [USER] = "user",
	[COHERENT] = "dma-coherent", [VPAGES] = "vpages",
};

struct line {
	uint64_t start, size, pages, by_node[MEMFS_MAX_NODES];
	unsigned seen; /* bit a word */
	bool unpurged;
	char caller[128]; /* "": none */
};

static bool ends_in_equals(const char *word)
{
	return word[strlen(word) - 1] == '=';
}

/* The word a token is, NR_WORDS if it is none. */
static enum word word_of(const char *token)
{
	for (unsigned i = 0; i < NR_WORDS; i++)
		if (ends_in_equals(words[i]) ? !strncmp(token, words[i], strlen(words[i]))
					     : !strcmp(token, words[i]))
			return i;
	return NR_WORDS;
}

/* "N3=12"; nodes rise and none is 0. */
static bool parse_node(const char *token, int *last, struct line *line)
{
	char again[64];
	uint64_t pages;
	int node;

	if (sscanf(token, "N%d=%" SCNu64, &node, &pages) != 2 || node <= *last || node >= MEMFS_MAX_NODES ||
	    !pages)
		return false;
	snprintf(again, sizeof(again), "N%d=%" PRIu64, node, pages);
	line->by_node[node] = pages;
	*last = node;
	return strcmp(again, token) == 0;
}

/* What stands behind the size, a blank between two tokens. */
static bool parse_tokens(char *rest, struct line *line)
{
	int last_node = -1, last_word = -1;
	uint64_t sum = 0;
	char *token;

	while ((token = strsep(&rest, " "))) {
		enum word word = word_of(token);

		if (!*token)
			return false;
		if (word < NR_WORDS) {
			if ((int)word <= last_word || last_node >= 0)
				return false;
			last_word = (int)word;
			line->seen |= 1u << word;
			if (word == PAGES && sscanf(token, "pages=%" SCNu64, &line->pages) != 1)
				return false;
		} else if (token[0] == 'N' && strchr(token, '=')) {
			if (!parse_node(token, &last_node, line))
				return false;
			sum += line->by_node[last_node];
		} else {
			if (last_word >= 0 || last_node >= 0 || (*line->caller && token[0] != '['))
				return false; /* a caller, and behind it its module, come first */
			snprintf(line->caller + strlen(line->caller),
				 sizeof(line->caller) - strlen(line->caller), "%s", token);
		}
	}
	return last_node < 0 || sum == line->pages;
}

static bool parse_line(const char *text, struct line *line)
{
	char copy[512], span[64];
	uint64_t end;
	int length;

	memset(line, 0, sizeof(*line));
	if (sscanf(text, "0x%" SCNx64 "-0x%" SCNx64 " %" SCNu64 "%n", &line->start, &end, &line->size,
		   &length) != 3)
		return false;
	snprintf(span, sizeof(span), "0x%016" PRIx64 "-0x%016" PRIx64 " %7" PRIu64, line->start, end,
		 line->size);
	if (strlen(span) != (size_t)length || strncmp(text, span, (size_t)length) != 0 ||
	    end - line->start != line->size || line->size % 4096 || line->start % 4096)
		return false;
	if (!text[length])
		return true;
	if (text[length] != ' ')
		return false;
	line->unpurged = strcmp(text + length, " unpurged vm_area") == 0;
	snprintf(copy, sizeof(copy), "%s", text + length + 1);
	return line->unpurged || parse_tokens(copy, line);
}

/* All lines of a text; how many there are, 0 if one of them is bad. */
static unsigned parse_lines(char *text, struct line *lines, unsigned max)
{
	unsigned nr = 0;
	char *one;

	while ((one = strsep(&text, "\n")) && *one) {
		if (nr == max || !parse_line(one, &lines[nr])) {
			fprintf(stderr, "bad line: %s\n", one);
			return 0;
		}
		nr++;
	}
	return nr;
}

static unsigned read_info(struct memfs *m, struct line *lines, unsigned max)
{
	char *text = content(m, "stats/vmallocinfo");
	unsigned nr = parse_lines(text, lines, max);

	free(text);
	return nr;
}

static unsigned count_if(const struct line *lines, unsigned nr, unsigned seen, bool unpurged)
{
	unsigned count = 0;

	for (unsigned i = 0; i < nr; i++)
		count += lines[i].unpurged == unpurged && (lines[i].seen & seen) == seen;
	return count;
}

static void test_parser_takes_the_kernels(void)
{
	static const char *const bad[] = {
		"0xffffc90000000000-0xffffc90000005000  20480 a+0x0/0x1 vmap",
		"0xffffc90000000000-0xffffc90000005000   20481 a+0x0/0x1 vmap",
		"0xffffc90000000000-0xffffc90000005000   20480 a+0x0/0x1 vmalloc pages=4",
		"0xffffc90000000000-0xffffc90000005000   20480 a+0x0/0x1 pages=4 vmalloc N0=3",
		"0xffffc90000000000-0xffffc90000005000   20480 a+0x0/0x1 pages=4 vmalloc N1=2 N0=2",
		"0xffffc90000000000-0xffffc90000005000   20480 a+0x0/0x1  pages=4 vmalloc",
		"0xffffc90000000000-0xffffc90000005000   20480 pages=4 vmalloc N0=4 ",
		"ffffc90000000000-ffffc90000005000   20480 a+0x0/0x1 vmap",
	};
	static char text[65536];
	struct line lines[100];
	FILE *file = data_open("samples/vmallocinfo");
	unsigned nr;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_FATAL(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	nr = parse_lines(text, lines, 100);
	CU_ASSERT(nr >= 15);
	CU_ASSERT(count_if(lines, nr, 1u << VMAP, false) >= 1);
	CU_ASSERT(count_if(lines, nr, 1u << PAGES | 1u << VMALLOC, false) >= 5);
	CU_ASSERT(count_if(lines, nr, 0, true) >= 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_FALSE(parse_line(bad[i], &lines[0]));
}

/* --- ranges by policy --- */

static uint64_t address_of(struct memfs *m, const char *name)
{
	char path[80], *text;
	uint64_t address = 0;

	snprintf(path, sizeof(path), "live/%s/address", name);
	text = content(m, path);
	CU_ASSERT_EQUAL(sscanf(text, "0x%" SCNx64, &address), 1);
	free(text);
	return address;
}

/* The file is this line behind the addresses of @name. */
static bool info_is(struct memfs *m, const char *path, const char *name, uint64_t size, const char *rest)
{
	uint64_t start = address_of(m, name);
	char wanted[256];

	snprintf(wanted, sizeof(wanted), "0x%016" PRIx64 "-0x%016" PRIx64 " %s\n", start, start + size, rest);
	return contains(m, path, wanted);
}

static void test_three_to_one(void)
{
	struct memfs *m = fixture(TWO_NODES);

	CU_ASSERT_EQUAL(put(m, "weights/node0", "3"), 0);
	CU_ASSERT_EQUAL(put(m, "tasks/default/policy", "weighted-interleave:0-1"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "a pages=400\n"), 0);
	CU_ASSERT_STRING_EQUAL(put_reply, "a returned=400 node0=300 node1=100\n");
	CU_ASSERT(info_is(m, "stats/vmallocinfo", "a", 1642496,
			  "1642496 a+0x0/0x190000 pages=400 vmalloc N0=300 N1=100"));
	ASSERT_HOLDS(m, "live/a/placement", "node0 300\nnode1 100\n");
	ASSERT_HOLDS(m, "live/a/kind", "vmalloc\n");
	ASSERT_HOLDS(m, "live/a/task", "default\n");
	ASSERT_HOLDS(m, "live/a/policy", "weighted interleave:0-1\n");
	ASSERT_HOLDS(m, "live/a/order", "0\n");
	ASSERT_HOLDS(m, "live/a/pages", "400\n");
	ASSERT_HOLDS(m, "live/a/bytes", "1638400\n");
	ASSERT_CONTAINS(m, "stats/all", "\npages_live 400\nallocations_live 1\n");
	ASSERT_CONTAINS(m, "stats/all", "\nvmalloc_used_pages 400\nvmalloc_lazy_pages 0\nvmalloc_mappings ");
	ASSERT_HOLDS(m, "debug/check", "ok\n");
	fixture_end(m);
}

/* The kernel documents this very line for 2 MiB interleaved over four nodes. */
static void test_four_nodes(void)
{
	struct memfs *m = fixture(FOUR_NODES);
	struct line lines[4];

	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "hash size=2M policy=interleave:0-3"), 0);
	CU_ASSERT_STRING_EQUAL(put_reply, "hash returned=512 node0=128 node1=128 node2=128 node3=128\n");
	CU_ASSERT(info_is(m, "stats/vmallocinfo", "hash", 2101248,
			  "2101248 hash+0x0/0x200000 pages=512 vmalloc N0=128 N1=128 N2=128 N3=128"));
	ASSERT_HOLDS(m, "live/hash/policy", "interleave:0-3\n");
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "t pages=11 policy=interleave:0-3"), 0);
	CU_ASSERT(info_is(m, "stats/vmallocinfo", "t", 49152,
			  "  49152 t+0x0/0xb000 pages=11 vmalloc N0=3 N1=3 N2=3 N3=2"));
	CU_ASSERT_EQUAL_FATAL(read_info(m, lines, 4), 2);
	CU_ASSERT_EQUAL(lines[0].pages, 512);
	CU_ASSERT_EQUAL(lines[0].seen, 1u << PAGES | 1u << VMALLOC);
	CU_ASSERT_STRING_EQUAL(lines[0].caller, "hash+0x0/0x200000");
	CU_ASSERT(lines[1].start >= lines[0].start + lines[0].size);
	fixture_end(m);
}

static void test_linear(void)
{
	struct memfs *m = fixture(TWO_NODES);

	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "l size=65536"), 0);
	CU_ASSERT(info_is(m, "stats/vmallocinfo", "l", 65536,
			  "  65536 l+0x0/0x10000 pages=16 vmalloc linear N0=16"));
	CU_ASSERT(info_is(m, "vmalloc/areas", "l", 65536, "65536 16 1 linear l"));
	ASSERT_CONTAINS(m, "vmalloc/mappings", "used 0\nlimit ");
	CU_ASSERT_EQUAL(put(m, "tune/vmalloc_linear", "0"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "k size=65536 node=1"), 0);
	CU_ASSERT(
		info_is(m, "stats/vmallocinfo", "k", 69632, "  69632 k+0x0/0x10000 pages=16 vmalloc N1=16"));
	ASSERT_HOLDS(m, "live/k/policy", "node=1\n");
	CU_ASSERT_EQUAL(put(m, "alloc/free", "l"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "k"), 0);
	ASSERT_HOLDS(m, "vmalloc/areas", "");
	fixture_end(m);
}

/* --- the life of a mapped range --- */

struct space {
	uint64_t start, size, free, largest, places;
};

static struct space read_space(struct memfs *m)
{
	char *text = content(m, "vmalloc/free_space"), extra;
	struct space s = { 0 };

	CU_ASSERT_EQUAL(sscanf(text,
			       "start 0x%" SCNx64 "\nsize %" SCNu64 "\nfree %" SCNu64 "\nlargest %" SCNu64
			       "\nplaces %" SCNu64 "%c",
			       &s.start, &s.size, &s.free, &s.largest, &s.places, &extra),
			6);
	CU_ASSERT_EQUAL(extra, '\n');
	free(text);
	return s;
}

static void test_free_space_and_purge(void)
{
	struct memfs *m = fixture(TWO_NODES);
	struct free_table *before = free_table(m);
	struct space empty = read_space(m), full;
	char wanted[128];

	CU_ASSERT_EQUAL(empty.size, UINT64_C(64) << 30);
	CU_ASSERT_EQUAL(empty.free, empty.size);
	CU_ASSERT_EQUAL(empty.largest, empty.size);
	CU_ASSERT_EQUAL(empty.places, 1);
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "a pages=400 policy=interleave:0-1"), 0);
	CU_ASSERT_EQUAL(address_of(m, "a"), empty.start); /* the lowest there is */
	CU_ASSERT(info_is(m, "vmalloc/areas", "a", 1642496, "1642496 400 2 mapped a"));
	ASSERT_CONTAINS(m, "vmalloc/mappings", "used 3\nlimit ");
	ASSERT_CONTAINS(m, "stats/all", "\nvmalloc_mappings 3\n");
	full = read_space(m);
	CU_ASSERT_EQUAL(full.free, empty.size - 1642496);
	CU_ASSERT_EQUAL(full.largest, full.free);
	CU_ASSERT_EQUAL(full.places, 1);

	CU_ASSERT_EQUAL(put(m, "alloc/free", "a"), 0);
	snprintf(wanted, sizeof(wanted), "0x%016" PRIx64 "-0x%016" PRIx64 " 1642496 unpurged vm_area\n",
		 empty.start, empty.start + 1642496);
	ASSERT_HOLDS(m, "stats/vmallocinfo", wanted);
	ASSERT_HOLDS(m, "vmalloc/areas", "");
	ASSERT_HOLDS(m, "vmalloc/lazy_pages", "400\n");
	ASSERT_CONTAINS(m, "stats/all", "\nvmalloc_used_pages 0\nvmalloc_lazy_pages 400\n");
	ASSERT_HOLDS(m, "debug/check", "ok\n");
	CU_ASSERT_EQUAL(read_space(m).free, full.free);
	CU_ASSERT_EQUAL(put(m, "vmalloc/purge", "2"), -EINVAL);
	CU_ASSERT_STRING_EQUAL(put_reply, "vmalloc/purge: \"2\" is not 1\n");
	CU_ASSERT_EQUAL(put(m, "vmalloc/purge", "1"), 0);
	CU_ASSERT_STRING_EQUAL(put_reply, "pages=400\n");
	CU_ASSERT_EQUAL(put(m, "vmalloc/purge", "1"), 0);
	CU_ASSERT_STRING_EQUAL(put_reply, "pages=0\n");
	ASSERT_HOLDS(m, "stats/vmallocinfo", "");
	ASSERT_HOLDS(m, "vmalloc/lazy_pages", "0\n");
	ASSERT_CONTAINS(m, "vmalloc/mappings", "used 0\nlimit ");
	full = read_space(m);
	CU_ASSERT_EQUAL(memcmp(&full, &empty, sizeof(full)), 0);
	CU_ASSERT(same_free_table(m, before));
	fixture_end(m);
}

/* Used and lazily freed ones in one file: by address first, unpurged behind them. */
static void test_info_of_many(void)
{
	struct memfs *m = fixture(TWO_NODES);
	struct line lines[16];
	char command[64];

	for (int i = 0; i < 8; i++) {
		snprintf(command, sizeof(command), "r%d pages=%d policy=interleave:0-1", i, 10 + i);
		CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", command), 0);
	}
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "l pages=3"), 0);
	for (int i = 0; i < 8; i += 2) {
		snprintf(command, sizeof(command), "r%d", i);
		CU_ASSERT_EQUAL(put(m, "alloc/free", command), 0);
	}
	CU_ASSERT_EQUAL_FATAL(read_info(m, lines, 16), 9);
	for (int i = 0; i < 9; i++) {
		CU_ASSERT_EQUAL(lines[i].unpurged, i >= 5);
		if (i && i != 5)
			CU_ASSERT(lines[i].start >= lines[i - 1].start + lines[i - 1].size);
	}
	CU_ASSERT_EQUAL(count_if(lines, 9, 1u << LINEAR, false), 1);
	ASSERT_HOLDS(m, "vmalloc/lazy_pages", "52\n"); /* 10 + 12 + 14 + 16 */
	fixture_end(m);
}

/* Ranges of the library have no name: the function that asked, or nothing; vmap's pages are not vmalloc's. */
static void test_without_a_name(void)
{
	struct memfs *m = fixture(TWO_NODES);
	struct mf_vmalloc_request request = {
		.size = 40960,
		.page = { .gfp = MEMFS_GFP_KERNEL, .node = 1, .cpu = MF_CPU_OF_TASK },
		.caller = "some_caller",
	};
	struct mf_placement *place = &m->tasks.default_task->place;
	memfs_pfn pfns[2];
	void *range, *window;
	char wanted[256], why[128];
	uint64_t at;

	CU_ASSERT_EQUAL(put(m, "tune/vmalloc_linear", "0"), 0);
	CU_ASSERT_EQUAL_FATAL(mf_vmalloc_alloc(m->vmalloc, place, &request, &range, why, sizeof(why)), 0);
	at = (uintptr_t)range;
	snprintf(wanted, sizeof(wanted),
		 "0x%016" PRIx64 "-0x%016" PRIx64 "   45056 some_caller pages=10 vmalloc N1=10\n", at,
		 at + 45056);
	ASSERT_HOLDS(m, "stats/vmallocinfo", wanted);
	CU_ASSERT_EQUAL(mf_vmalloc_pages(m->vmalloc, range, pfns, 2), 10);
	CU_ASSERT_EQUAL_FATAL(mf_vmalloc_map(m->vmalloc, 2, pfns, NULL, &window, why, sizeof(why)), 0);
	at = (uintptr_t)window;
	snprintf(wanted, sizeof(wanted), "0x%016" PRIx64 "-0x%016" PRIx64 "   12288 vmap\n", at, at + 12288);
	ASSERT_CONTAINS(m, "stats/vmallocinfo", wanted);
	snprintf(wanted, sizeof(wanted), "0x%016" PRIx64 "-0x%016" PRIx64 " 12288 2 1 vmap -\n", at,
		 at + 12288);
	ASSERT_CONTAINS(m, "vmalloc/areas", wanted);
	ASSERT_CONTAINS(m, "stats/vmstat", "\nnr_vmalloc 10\n");
	ASSERT_CONTAINS(m, "stats/meminfo", "\nVmallocUsed:          40 kB\n");
	CU_ASSERT_EQUAL(mf_vmalloc_unmap(m->vmalloc, window), 0);
	CU_ASSERT_EQUAL(mf_vmalloc_free(m->vmalloc, place, range), 0);
	fixture_end(m);
}

static void test_huge(void)
{
	struct memfs *m = fixture(TWO_NODES);

	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "h size=4M huge align=4M"), 0);
	CU_ASSERT_EQUAL(address_of(m, "h") % (UINT64_C(4) << 20), 0);
	ASSERT_HOLDS(m, "live/h/pages", "1024\n");
	ASSERT_CONTAINS(m, "vmalloc/areas", " h\n");
	ASSERT_HOLDS(m, "debug/check", "ok\n");
	fixture_end(m);
}

/* --- the kernel's files --- */

static void test_levels_in_kernel_files(void)
{
	struct memfs *m = fixture(TWO_NODES);

	ASSERT_CONTAINS(
		m, "stats/meminfo",
		"\nVmallocTotal:   67108864 kB\nVmallocUsed:           0 kB\nVmallocChunk:          0 kB\n");
	ASSERT_CONTAINS(m, "stats/vmstat", "\nnr_vmalloc 0\n");
	CU_ASSERT_EQUAL(put(m, "weights/node0", "3"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "a pages=400 policy=weighted-interleave:0-1"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "l pages=16"), 0);
	ASSERT_CONTAINS(m, "stats/meminfo", "\nVmallocUsed:        1664 kB\n");
	ASSERT_CONTAINS(m, "stats/vmstat", "\nnr_vmalloc 416\n");
	ASSERT_CONTAINS(m, "nodes/node0/vmstat", "\nnr_vmalloc 316\n");
	ASSERT_CONTAINS(m, "nodes/node1/vmstat", "\nnr_vmalloc 100\n");
	ASSERT_CONTAINS(m, "stats/zoneinfo", "\n      nr_vmalloc   316\n");
	CU_ASSERT_EQUAL(put(m, "alloc/free", "a"), 0);
	ASSERT_CONTAINS(m, "stats/vmstat", "\nnr_vmalloc 16\n");
	ASSERT_CONTAINS(m, "stats/meminfo", "\nVmallocUsed:          64 kB\n");
	fixture_end(m);
}

/* --- which allocation has which files --- */

static bool collect(void *arg, const char *name, const struct mf_ctl_node *child, uint64_t next_cursor)
{
	char *list = arg;

	(void)child;
	(void)next_cursor;
	strcat(strcat(list, name), " ");
	return true;
}

/* A folder reached by its name. */
static void list_of(struct memfs *m, const char *path, char list[256])
{
	struct mf_ctl_node dir;

	list[0] = '\0';
	CU_ASSERT_EQUAL_FATAL(mf_ctl_resolve(m, mf_text_of(path), &dir), 0);
	mf_ctl_list(m, &dir, 0, collect, list);
}

#define PAGES_FILES "kind task policy order pages bytes placement map data "
#define VMALLOC_FILES "kind task policy order pages bytes address placement map data "

static struct memfs *listed_instance;

/* A folder reached through the list above it. */
static bool list_child(void *arg, const char *name, const struct mf_ctl_node *child, uint64_t next_cursor)
{
	char(*lists)[256] = arg;

	(void)next_cursor;
	mf_ctl_list(listed_instance, child, 0, collect, lists[strcmp(name, "v") == 0]);
	return true;
}

static void test_files_by_kind(void)
{
	struct memfs *m = fixture(TWO_NODES);
	char lists[2][256] = { "", "" };
	struct mf_ctl_node node;

	CU_ASSERT_EQUAL(put(m, "alloc/pages", "p count=3"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "v pages=3"), 0);
	list_of(m, "live/p", lists[0]);
	list_of(m, "live/v", lists[1]);
	CU_ASSERT_STRING_EQUAL(lists[0], PAGES_FILES);
	CU_ASSERT_STRING_EQUAL(lists[1], VMALLOC_FILES);
	lists[0][0] = lists[1][0] = '\0';
	listed_instance = m;
	CU_ASSERT_EQUAL_FATAL(mf_ctl_resolve(m, mf_text_of("live"), &node), 0);
	mf_ctl_list(m, &node, 0, list_child, lists);
	CU_ASSERT_STRING_EQUAL(lists[0], PAGES_FILES);
	CU_ASSERT_STRING_EQUAL(lists[1], VMALLOC_FILES);
	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("live/p/address"), &node), -ENOENT);
	CU_ASSERT_EQUAL_FATAL(mf_ctl_resolve(m, mf_text_of("live/v/address"), &node), 0);
	CU_ASSERT_EQUAL(mf_ctl_mode(&node), 0400);
	ASSERT_HOLDS(m, "live/p/kind", "pages\n");
	CU_ASSERT_EQUAL(put(m, "alloc/free", "v"), 0);
	CU_ASSERT_FALSE(mf_ctl_alive(m, &node));
	/* The name taken by another kind: what was looked up before is gone all the same. */
	CU_ASSERT_EQUAL(put(m, "alloc/pages", "v"), 0);
	CU_ASSERT_FALSE(mf_ctl_alive(m, &node));
	CU_ASSERT_EQUAL(mf_ctl_resolve(m, mf_text_of("live/v/address"), &node), -ENOENT);
	fixture_end(m);
}

/* --- refusals and knobs --- */

static void test_refusals(void)
{
	struct memfs *m = fixture(TWO_NODES);
	struct free_table *before = free_table(m);

	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "a pages=20 policy=interleave:0-1"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "a pages=20"), -EEXIST);
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "x"), -EINVAL);
	CU_ASSERT_STRING_EQUAL(put_reply, "alloc/vmalloc: size= or pages= is needed\n");
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "x pages=1 order=1"), -EINVAL);
	CU_ASSERT_STRING_EQUAL(put_reply, "alloc/vmalloc: \"order\" is not a key of alloc/vmalloc\n");
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "x pages=1 task=nobody"), -ENOENT);
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "x pages=1 policy=bind:7"), -EINVAL);
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "x pages=1 node=2"), -ENOENT);
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "x pages=8193"), -ENOMEM); /* two nodes of 4096 */
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "x pages=8192"), -ENOMEM);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "a count=1"), -EINVAL);
	CU_ASSERT_STRING_EQUAL(put_reply, "alloc/free: a is a vmalloc range: it is freed as a whole\n");
	ASSERT_HOLDS(m, "live/a/pages", "20\n");
	CU_ASSERT_EQUAL(put(m, "tune/vmalloc_max_mappings", "3"), 0);
	ASSERT_HOLDS(m, "vmalloc/mappings", "used 3\nlimit 3\n");
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "b pages=20 policy=interleave:0-1"), -ENOSPC);
	CU_ASSERT_PTR_NOT_NULL(strstr(put_reply, "alloc/vmalloc: "));
	ASSERT_HOLDS(m, "vmalloc/mappings", "used 3\nlimit 3\n");
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "l pages=20"), 0); /* a linear one needs none */
	CU_ASSERT_EQUAL(put(m, "alloc/free", "a"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "l"), 0);
	ASSERT_HOLDS(m, "debug/check", "ok\n");
	CU_ASSERT(same_free_table(m, before));
	fixture_end(m);
}

static void test_knobs(void)
{
	static const struct {
		const char *path, *first, *good, *bad, *why;
	} rows[] = {
		{ "tune/vmalloc_large_order", "bounded\n", "off\n", "some",
		  "tune/vmalloc_large_order: \"some\" is not one of bounded, off, max\n" },
		{ "tune/vmalloc_linear", "1\n", "0\n", "2", "tune/vmalloc_linear: 2 is not in 0..1\n" },
		{ "tune/vmalloc_small_pages", "8\n", "1024\n", "1025",
		  "tune/vmalloc_small_pages: 1025 is not in 0..1024\n" },
		{ "tune/vmalloc_lazy_max", NULL, "0\n", "4294967296",
		  "tune/vmalloc_lazy_max: 4294967296 is not in 0..4294967295\n" },
		{ "tune/vmalloc_max_mappings", NULL, "77\n", "-1",
		  "tune/vmalloc_max_mappings: \"-1\" is not a number in 0..4294967295\n" },
	};
	struct memfs *m = fixture(TWO_NODES);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].first)
			ASSERT_HOLDS(m, rows[i].path, rows[i].first);
		CU_ASSERT_EQUAL(put(m, rows[i].path, rows[i].good), 0);
		ASSERT_HOLDS(m, rows[i].path, rows[i].good);
		CU_ASSERT_EQUAL(put(m, rows[i].path, rows[i].bad), -EINVAL);
		CU_ASSERT_STRING_EQUAL(put_reply, rows[i].why);
		ASSERT_HOLDS(m, rows[i].path, rows[i].good);
	}
	ASSERT_HOLDS(m, "vmalloc/mappings", "used 0\nlimit 77\n");
	/* lazy_max 0: gone with the free. */
	CU_ASSERT_EQUAL(put(m, "alloc/vmalloc", "a pages=40 policy=interleave:0-1"), 0);
	CU_ASSERT_EQUAL(put(m, "alloc/free", "a"), 0);
	ASSERT_HOLDS(m, "vmalloc/lazy_pages", "0\n");
	ASSERT_HOLDS(m, "stats/vmallocinfo", "");
	fixture_end(m);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_parser_takes_the_kernels),
	UNIT_TEST(test_three_to_one),
	UNIT_TEST(test_four_nodes),
	UNIT_TEST(test_linear),
	UNIT_TEST(test_free_space_and_purge),
	UNIT_TEST(test_info_of_many),
	UNIT_TEST(test_without_a_name),
	UNIT_TEST(test_huge),
	UNIT_TEST(test_levels_in_kernel_files),
	UNIT_TEST(test_files_by_kind),
	UNIT_TEST(test_refusals),
	UNIT_TEST(test_knobs),
};

UNIT_MAIN("vmalloc_files", tests)
