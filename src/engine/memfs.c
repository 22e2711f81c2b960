/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The public API (memfs.h) over the engines.  struct memfs_task is struct
 * mf_task under its public name.  The page calls, and memfs_vmalloc, are one
 * tail call each; all rules are the engines'.
 *
 * Locks: none of its own.
 */
#include "ctl/ctl.h"
#include "engine/engine_internal.h"
#include "memfs.h"

#include <errno.h>
#include <string.h>

#ifndef MEMFS_VERSION
#define MEMFS_VERSION "1.0.0"
#endif

static inline struct mf_task *task_of(struct memfs_task *t)
{
	return (struct mf_task *)t;
}

/* --- instances --- */

int memfs_create(const char *options, struct memfs **out, char *why, size_t why_size)
{
	struct mf_plat *plat;
	struct memfs *m;
	int error = mf_plat_host_create(&plat);

	if (error)
		return mf_why(why, why_size, error, "the host cannot be used: %s", strerror(-error));
	error = mf_engine_create(options, plat, &m, why, why_size);
	if (error) {
		plat->ops->destroy(plat);
		return error;
	}
	error = mf_engine_start_ticker(m);
	if (error) {
		mf_engine_destroy(m);
		return mf_why(why, why_size, error, "no thread for the ticks: %s", strerror(-error));
	}
	*out = m;
	return 0;
}

void memfs_destroy(struct memfs *m)
{
	mf_engine_destroy(m);
}

const char *memfs_version(void)
{
	return MEMFS_VERSION;
}

/* --- tasks --- */

int memfs_task_create(struct memfs *m, const char *name, struct memfs_task **out)
{
	struct mf_task *task;
	int error = mf_task_create(m, mf_text_of(name), &task);

	if (!error)
		*out = (struct memfs_task *)task;
	return error;
}

struct memfs_task *memfs_task_find(struct memfs *m, const char *name)
{
	struct mf_task *task = mf_task_get(m, mf_text_of(name));

	if (task)
		mf_task_put(task); /* a handle lives until its owner destroys the task */
	return (struct memfs_task *)task;
}

int memfs_task_destroy(struct memfs_task *t)
{
	return mf_task_end(task_of(t));
}

int memfs_task_set_policy(struct memfs_task *t, const char *policy)
{
	return mf_task_set_policy(task_of(t), mf_text_of(policy), NULL, 0);
}

int memfs_task_set_mems_allowed(struct memfs_task *t, const char *nodes)
{
	return mf_task_set_mems_allowed(task_of(t), mf_text_of(nodes), NULL, 0);
}

int memfs_task_set_cpu(struct memfs_task *t, int cpu)
{
	return mf_task_set_cpu_number(task_of(t), cpu, NULL, 0);
}

/* --- pages --- */

int memfs_alloc_pages(struct memfs_task *t, memfs_gfp gfp, unsigned order, memfs_pfn *out)
{
	struct mf_task *task = task_of(t);

	return mf_page_alloc_simple(&task->place, gfp, order, out);
}

int memfs_alloc_pages_node(struct memfs_task *t, int node, memfs_gfp gfp, unsigned order, memfs_pfn *out)
{
	struct mf_task *task = task_of(t);
	struct mf_page_request request = { .gfp = gfp, .order = order, .node = node, .cpu = MF_CPU_OF_TASK };

	if (!mf_node_isset(task->m->topo->memory, node))
		return -EINVAL;
	return mf_page_alloc(task->page, &task->place, &request, out);
}

void memfs_free_pages(struct memfs_task *t, memfs_pfn pfn, unsigned order)
{
	struct mf_task *task = task_of(t);

	mf_page_free(&task->place, pfn, order);
}

size_t memfs_alloc_bulk(struct memfs_task *t, memfs_gfp gfp, size_t n, memfs_pfn *out)
{
	struct mf_task *task = task_of(t);
	struct mf_page_request request = { .gfp = gfp, .node = MF_NODE_BY_POLICY, .cpu = MF_CPU_OF_TASK };

	return mf_page_alloc_bulk(task->page, &task->place, &request, n, out);
}

void memfs_free_bulk(struct memfs_task *t, size_t n, const memfs_pfn *pfns)
{
	struct mf_task *task = task_of(t);

	mf_page_free_bulk(task->page, &task->place, n, pfns);
}

void *memfs_page_address(const struct memfs *m, memfs_pfn pfn)
{
	return mf_page_address(m->page, pfn.v);
}

/* The highest number of all stands for "not a page of ours". */
memfs_pfn memfs_address_page(const struct memfs *m, const void *address)
{
	memfs_pfn pfn = { UINT32_MAX };
	uint32_t found;

	if (mf_page_address_pfn(m->page, address, &found) || mf_vmalloc_page(m->vmalloc, address, &found))
		pfn.v = found;
	return pfn;
}

int memfs_page_node(const struct memfs *m, memfs_pfn pfn)
{
	return mf_page_node(m->page, pfn.v);
}

int memfs_drain(struct memfs *m, int node)
{
	if (node != -1 && !mf_node_isset(m->topo->nodes, node))
		return -ENOENT;
	mf_page_drain(m->page, node);
	return 0;
}

/* --- ranges --- */

void *memfs_vmalloc(struct memfs_task *t, size_t size)
{
	struct mf_task *task = task_of(t);

	return mf_vmalloc_simple(task->m->vmalloc, &task->place, size, MEMFS_GFP_KERNEL, __func__);
}

void *memfs_vzalloc(struct memfs_task *t, size_t size)
{
	struct mf_task *task = task_of(t);

	return mf_vmalloc_simple(task->m->vmalloc, &task->place, size, MEMFS_GFP_KERNEL | MEMFS___GFP_ZERO,
				 __func__);
}

/* The engines' result as a pointer: NULL and errno if there is an error. */
static void *address_or_errno(void *address, int error)
{
	if (!error)
		return address;
	errno = -error;
	return NULL;
}

void *memfs_vmalloc_node(struct memfs_task *t, size_t size, int node)
{
	struct mf_task *task = task_of(t);
	struct mf_vmalloc_request request = {
		.size = size,
		.page = { .gfp = MEMFS_GFP_KERNEL, .node = node, .cpu = MF_CPU_OF_TASK },
		.caller = __func__,
	};
	void *address = NULL;
	int error = -EINVAL;

	if (mf_node_isset(task->m->topo->memory, node))
		error = mf_vmalloc_alloc(task->m->vmalloc, &task->place, &request, &address, NULL, 0);
	return address_or_errno(address, error);
}

int memfs_vfree(struct memfs_task *t, const void *address)
{
	struct mf_task *task = task_of(t);

	return address ? mf_vmalloc_free(task->m->vmalloc, &task->place, address) : 0;
}

void *memfs_vmap(struct memfs *m, const memfs_pfn *pfns, size_t n)
{
	void *address = NULL;
	int error = mf_vmalloc_map(m->vmalloc, n, pfns, __func__, &address, NULL, 0);

	return address_or_errno(address, error);
}

int memfs_vunmap(struct memfs *m, const void *address)
{
	return address ? mf_vmalloc_unmap(m->vmalloc, address) : 0;
}

int memfs_vpurge(struct memfs *m)
{
	mf_vmalloc_purge(m->vmalloc);
	return 0;
}

/* --- control files --- */

static struct mf_text path_of(const char *path)
{
	while (*path == '/')
		path++;
	return mf_text_of(path);
}

static struct mf_live *live_of(struct memfs *m, const struct mf_ctl_node *node)
{
	return mf_live_get(m, mf_text_of(node->name));
}

static bool is_memory(const struct mf_ctl_node *node)
{
	return node->row && node->row->type == MF_CTL_MEMORY;
}

static long read_memory(struct memfs *m, const struct mf_ctl_node *node, char *buf, size_t size)
{
	struct mf_live *live = live_of(m, node);
	long result;

	if (!live)
		return -ENODEV;
	result = mf_live_read(live, buf, size, 0);
	if (result >= 0)
		result = (long)mf_live_bytes(live);
	mf_live_put(live);
	return result;
}

static long read_text(struct memfs *m, const struct mf_ctl_node *node, char *buf, size_t size)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	long result = mf_ctl_show(m, node, &out);

	if (!result)
		result = mf_outbuf_error(&out);
	if (!result && size && out.length)
		memcpy(buf, out.data, out.length < size ? out.length : size);
	if (!result)
		result = (long)out.length;
	mf_outbuf_free(&out);
	return result;
}

long memfs_read(struct memfs *m, const char *path, char *buf, size_t size)
{
	struct mf_ctl_node node;
	int error = mf_ctl_resolve(m, path_of(path), &node);

	if (error)
		return error;
	if (mf_ctl_is_dir(&node))
		return -EISDIR;
	return is_memory(&node) ? read_memory(m, &node, buf, size) : read_text(m, &node, buf, size);
}

static int write_memory(struct memfs *m, const struct mf_ctl_node *node, const char *bytes, size_t length)
{
	struct mf_live *live = live_of(m, node);
	ssize_t done;

	if (!live)
		return -ENODEV;
	done = mf_live_write(live, bytes, length, 0);
	mf_live_put(live);
	if (done < 0)
		return (int)done;
	return (size_t)done < length ? -ENOSPC : 0;
}

static int write_text(struct memfs *m, const char *path, const char *text, size_t length,
		      struct mf_outbuf *reply)
{
	struct mf_ctl_node node;
	int error = mf_ctl_resolve(m, path_of(path), &node);

	if (!error && mf_ctl_is_dir(&node))
		error = -EISDIR;
	if (error) {
		mf_outbuf_printf(reply, "%s: %s\n", path_of(path).at, strerror(-error));
		mf_ctl_refused(m, path_of(path).at, error, strerror(-error));
		return error;
	}
	if (is_memory(&node))
		return write_memory(m, &node, text, length);
	return mf_ctl_store(m, &node, text, length, reply, NULL);
}

int memfs_write(struct memfs *m, const char *path, const char *text, size_t length, char *reply,
		size_t reply_size)
{
	struct mf_outbuf out = MF_OUTBUF_INIT;
	int error = write_text(m, path, text, length, &out);

	if (reply && reply_size)
		snprintf(reply, reply_size, "%s", out.length ? out.data : "");
	mf_outbuf_free(&out);
	return error;
}
