/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The grammar of allocation commands: a name, then keys in any order.  One row
 * a key, which tells the commands that take it.  Pure functions: they look at
 * the topology and nothing else.
 *
 * A key twice, an unknown key, a value where none belongs: -EINVAL, always
 * with a reason.
 */
#include "ctl/ctl_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum via { VIA_DEFAULT, VIA_BULK, VIA_SINGLE };

struct parse {
	const struct mf_topo *topo;
	struct mf_live_request *request;
	enum mf_live_kind kind; /* which command */
	unsigned seen;		/* bit a row of keys[] */
	enum via via;
	memfs_gfp type; /* what type= asks for */
	char *why;
	size_t why_size;
};

static int __attribute__((format(printf, 3, 4))) refuse(struct parse *p, int error, const char *format, ...)
{
	va_list args;

	if (!p->why || !p->why_size)
		return error;
	va_start(args, format);
	vsnprintf(p->why, p->why_size, format, args);
	va_end(args);
	return error;
}

/* A choice by its place in a NULL-terminated list, -EINVAL if it is not there. */
static int find_choice(struct mf_text value, const char *const *choices)
{
	for (int i = 0; choices[i]; i++)
		if (mf_text_is(value, choices[i]))
			return i;
	return -EINVAL;
}

static int parse_count(struct parse *p, struct mf_text value)
{
	uint64_t count;

	if (mf_parse_u64(value, UINT64_MAX, &count) || !count)
		return -EINVAL;
	p->request->count = count;
	return 0;
}

static int parse_cache(struct parse *p, struct mf_text value)
{
	if (!mf_name_is_valid(value))
		return -EINVAL;
	p->request->cache = value;
	return 0;
}

static int parse_order(struct parse *p, struct mf_text value)
{
	uint64_t order;

	if (mf_parse_u64(value, MEMFS_MAX_PAGE_ORDER, &order))
		return -EINVAL;
	p->request->page.order = (unsigned)order;
	return 0;
}

static int parse_bytes(struct parse *p, struct mf_text value)
{
	uint64_t size;

	if (mf_parse_size(value, INT64_MAX, &size) || !size)
		return -EINVAL;
	p->request->size = size;
	return 0;
}

static int parse_pages(struct parse *p, struct mf_text value)
{
	uint64_t pages;

	if (mf_parse_u64(value, INT64_MAX >> MEMFS_PAGE_SHIFT, &pages) || !pages)
		return -EINVAL;
	p->request->size = pages << MEMFS_PAGE_SHIFT;
	return 0;
}

static int parse_align(struct parse *p, struct mf_text value)
{
	uint64_t align;

	if (mf_parse_size(value, INT64_MAX, &align) || !align || align & (align - 1))
		return -EINVAL;
	p->request->align = align;
	return 0;
}

static int parse_via(struct parse *p, struct mf_text value)
{
	static const char *const choices[] = { "bulk", "single", NULL };
	int choice = find_choice(value, choices);

	if (choice < 0)
		return choice;
	p->via = choice ? VIA_SINGLE : VIA_BULK;
	return 0;
}

static int parse_node(struct parse *p, struct mf_text value)
{
	uint64_t node;

	if (mf_parse_u64(value, INT32_MAX, &node))
		return -EINVAL;
	if (node >= MEMFS_MAX_NODES || !mf_node_isset(p->topo->nodes, (int)node))
		return refuse(p, -ENOENT, "node %u does not exist", (unsigned)node);
	if (!mf_node_isset(p->topo->memory, (int)node))
		return refuse(p, -EINVAL, "node %u has no memory", (unsigned)node);
	p->request->page.node = (int)node;
	return 0;
}

static int parse_policy(struct parse *p, struct mf_text value)
{
	if (!value.length)
		return -EINVAL;
	/* "default" takes a policy away: the task's own is in force, as for the kernel's ranges. */
	if (!mf_text_is(value, "default"))
		p->request->policy_text = value;
	return 0;
}

static int parse_task(struct parse *p, struct mf_text value)
{
	if (!mf_name_is_valid(value))
		return -EINVAL;
	p->request->task = value;
	return 0;
}

static int parse_cpu(struct parse *p, struct mf_text value)
{
	uint64_t cpu;

	if (mf_parse_u64(value, MF_MAX_CPUS - 1, &cpu) || p->topo->cpu_node[cpu] < 0)
		return -EINVAL;
	p->request->cpu = p->request->page.cpu = (int)cpu;
	return 0;
}

static int parse_gfp(struct parse *p, struct mf_text value)
{
	return mf_gfp_parse(value, &p->request->page.gfp);
}

static int parse_type(struct parse *p, struct mf_text value)
{
	static const char *const choices[] = { "unmovable", "movable", "reclaimable", NULL };
	static const memfs_gfp bits[] = { 0, MEMFS___GFP_MOVABLE, MEMFS___GFP_RECLAIMABLE };
	int choice = find_choice(value, choices);

	if (choice < 0)
		return choice;
	p->type = bits[choice];
	return 0;
}

static int parse_context(struct parse *p, struct mf_text value)
{
	static const char *const choices[] = { "task", "irq", NULL };
	int choice = find_choice(value, choices);

	if (choice < 0)
		return choice;
	p->request->page.irq = choice == 1;
	return 0;
}

static int set_partial(struct parse *p, struct mf_text value)
{
	(void)value;
	p->request->partial = true;
	return 0;
}

static int set_touch(struct parse *p, struct mf_text value)
{
	(void)value;
	p->request->touch = true;
	return 0;
}

static int set_huge(struct parse *p, struct mf_text value)
{
	(void)value;
	p->request->huge = true;
	return 0;
}

enum key {
	KEY_CACHE,
	KEY_SIZE,
	KEY_PAGES,
	KEY_ALIGN,
	KEY_HUGE,
	KEY_COUNT,
	KEY_ORDER,
	KEY_VIA,
	KEY_NODE,
	KEY_POLICY,
	KEY_TASK,
	KEY_CPU,
	KEY_GFP,
	KEY_TYPE,
	KEY_CONTEXT,
	KEY_PARTIAL,
	KEY_TOUCH,
	NR_KEYS,
};

#define OF_PAGES (1u << MF_LIVE_PAGES)
#define OF_VMALLOC (1u << MF_LIVE_VMALLOC)
#define OF_SLAB (1u << MF_LIVE_SLAB)
#define OF_ALL (OF_PAGES | OF_VMALLOC | OF_SLAB)

static const struct {
	const char *name;
	const char *wants; /* NULL: a word of its own */
	unsigned commands; /* that take it */
	int (*parse)(struct parse *p, struct mf_text value);
} keys[NR_KEYS] = {
	[KEY_CACHE] = { "cache", "a cache's name", OF_SLAB, parse_cache },
	[KEY_SIZE] = { "size", "bytes, at least 1", OF_VMALLOC | OF_SLAB, parse_bytes },
	[KEY_PAGES] = { "pages", "a number of at least 1", OF_VMALLOC, parse_pages },
	[KEY_ALIGN] = { "align", "a power of two of bytes", OF_VMALLOC, parse_align },
	[KEY_HUGE] = { "huge", NULL, OF_VMALLOC, set_huge },
	[KEY_COUNT] = { "count", "a number of at least 1", OF_PAGES | OF_SLAB, parse_count },
	[KEY_ORDER] = { "order", "a number in 0..10", OF_PAGES, parse_order },
	[KEY_VIA] = { "via", "bulk or single", OF_PAGES, parse_via },
	[KEY_NODE] = { "node", "a node number", OF_ALL, parse_node },
	[KEY_POLICY] = { "policy", "a policy", OF_PAGES | OF_VMALLOC, parse_policy },
	[KEY_TASK] = { "task", "a task's name", OF_ALL, parse_task },
	[KEY_CPU] = { "cpu", "the number of a CPU that exists", OF_ALL, parse_cpu },
	[KEY_GFP] = { "gfp", "flag names joined by |", OF_ALL, parse_gfp },
	[KEY_TYPE] = { "type", "unmovable, movable or reclaimable", OF_PAGES, parse_type },
	[KEY_CONTEXT] = { "context", "task or irq", OF_PAGES, parse_context },
	[KEY_PARTIAL] = { "partial", NULL, OF_PAGES, set_partial },
	[KEY_TOUCH] = { "touch", NULL, OF_PAGES | OF_VMALLOC, set_touch },
};

static bool saw(const struct parse *p, enum key key)
{
	return p->seen & 1u << key;
}

/* Text for a reason: no more of it than helps. */
static int shown(struct mf_text text)
{
	return text.length > 64 ? 64 : (int)text.length;
}

static int parse_key(struct parse *p, struct mf_text word)
{
	static const char *const command_names[] = {
		[MF_LIVE_PAGES] = "alloc/pages",
		[MF_LIVE_VMALLOC] = "alloc/vmalloc",
		[MF_LIVE_SLAB] = "alloc/slab",
	};
	struct mf_text value = word, name = mf_text_until(&value, '=');
	bool has_value = name.length < word.length;
	unsigned i = 0;
	int error;

	while (i < NR_KEYS && !(keys[i].commands & 1u << p->kind && mf_text_is(name, keys[i].name)))
		i++;
	if (i == NR_KEYS)
		return refuse(p, -EINVAL, "\"%.*s\" is not a key of %s", shown(name), name.at,
			      command_names[p->kind]);
	if (saw(p, i))
		return refuse(p, -EINVAL, "%s twice", keys[i].name);
	if (has_value != (keys[i].wants != NULL))
		return refuse(p, -EINVAL, has_value ? "%s takes no value" : "%s needs a value", keys[i].name);
	p->seen |= 1u << i;
	error = keys[i].parse(p, value);
	if (error == -EINVAL && p->why && p->why_size && !*p->why)
		return refuse(p, error, "%s=%.*s: expected %s", keys[i].name, shown(value), value.at,
			      keys[i].wants);
	return error;
}

/* Of two keys of a command exactly one. */
static int one_of(struct parse *p, enum mf_live_kind kind, enum key a, enum key b)
{
	if (p->kind != kind || saw(p, a) != saw(p, b))
		return 0;
	return refuse(p, -EINVAL, saw(p, a) ? "%s= and %s= exclude each other" : "%s= or %s= is needed",
		      keys[a].name, keys[b].name);
}

/* What keys mean together. */
static int combine(struct parse *p)
{
	struct mf_live_request *request = p->request;
	const memfs_gfp both = MEMFS___GFP_MOVABLE | MEMFS___GFP_RECLAIMABLE;
	int error;

	if (p->via == VIA_BULK && request->page.order)
		return refuse(p, -EINVAL, "via=bulk is for order 0");
	if (saw(p, KEY_NODE) && saw(p, KEY_POLICY))
		return refuse(p, -EINVAL, "node= and policy= exclude each other");
	if (saw(p, KEY_TYPE))
		request->page.gfp = (request->page.gfp & ~both) | p->type;
	if ((request->page.gfp & both) == both)
		return refuse(p, -EINVAL, "__GFP_MOVABLE and __GFP_RECLAIMABLE exclude each other");
	error = one_of(p, MF_LIVE_VMALLOC, KEY_SIZE, KEY_PAGES);
	if (!error)
		error = one_of(p, MF_LIVE_SLAB, KEY_CACHE, KEY_SIZE);
	if (error)
		return error;
	request->bulk = p->kind != MF_LIVE_SLAB && request->page.order == 0 &&
			(p->via == VIA_BULK || (p->via == VIA_DEFAULT && request->count > 1));
	return 0;
}

static int parse_request(const struct mf_topo *topo, enum mf_live_kind kind, struct mf_text text,
			 struct mf_live_request *out, char *why, size_t why_size)
{
	struct mf_live_request request = {
		.kind = kind,
		.count = 1,
		.cpu = MF_CPU_OF_TASK,
		.page = { .gfp = MEMFS_GFP_KERNEL, .node = MF_NODE_BY_POLICY, .cpu = MF_CPU_OF_TASK },
	};
	struct parse p = { .topo = topo, .request = &request, .kind = kind, .why = why, .why_size = why_size };
	struct mf_text word;
	int error;

	if (why && why_size)
		*why = '\0';
	request.name = mf_text_word(&text);
	if (!mf_text_is(request.name, "-") && !mf_name_is_valid(request.name))
		return refuse(&p, -EINVAL, "the first word is the name: 1 to 64 of A-Z a-z 0-9 . _ : -");
	while ((word = mf_text_word(&text)).length) {
		error = parse_key(&p, word);
		if (error)
			return error;
	}
	error = combine(&p);
	if (!error)
		*out = request;
	return error;
}

int mf_ctl_parse_pages(const struct mf_topo *topo, struct mf_text text, struct mf_live_request *out,
		       char *why, size_t why_size)
{
	return parse_request(topo, MF_LIVE_PAGES, text, out, why, why_size);
}

int mf_ctl_parse_vmalloc(const struct mf_topo *topo, struct mf_text text, struct mf_live_request *out,
			 char *why, size_t why_size)
{
	return parse_request(topo, MF_LIVE_VMALLOC, text, out, why, why_size);
}

int mf_ctl_parse_slab(const struct mf_topo *topo, struct mf_text text, struct mf_live_request *out, char *why,
		      size_t why_size)
{
	return parse_request(topo, MF_LIVE_SLAB, text, out, why, why_size);
}

/* NOFAIL waits for memory, touch for the host's pages. */
bool mf_ctl_alloc_waits(struct mf_text text)
{
	struct mf_text word;
	memfs_gfp gfp;

	mf_text_word(&text);
	while ((word = mf_text_word(&text)).length) {
		struct mf_text value = word, key = mf_text_until(&value, '=');

		if (mf_text_is(word, "touch"))
			return true;
		if (mf_text_is(key, "gfp") && !mf_gfp_parse(value, &gfp) && gfp & MEMFS___GFP_NOFAIL)
			return true;
	}
	return false;
}

int mf_ctl_parse_free(struct mf_text text, struct mf_text *name, uint64_t *count, char *why, size_t why_size)
{
	struct mf_text first = mf_text_word(&text), word = mf_text_word(&text), value = word;
	struct parse p = { .why = why, .why_size = why_size };
	uint64_t blocks = 0;

	if (!mf_name_is_valid(first))
		return refuse(&p, -EINVAL, "the first word is the name: 1 to 64 of A-Z a-z 0-9 . _ : -");
	if (word.length && !mf_text_is(mf_text_until(&value, '='), "count"))
		return refuse(&p, -EINVAL, "\"%.*s\" is not a key", shown(word), word.at);
	if (word.length && (mf_parse_u64(value, UINT64_MAX, &blocks) || !blocks))
		return refuse(&p, -EINVAL, "count= needs a number of at least 1");
	if (text.length)
		return refuse(&p, -EINVAL, "more than NAME [count=N]");
	*name = first;
	*count = blocks;
	return 0;
}
