/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tasks/NAME/: policy, rotation, allowed nodes and CPU of a task.
 *
 * A task that has gone since the path was looked up is -ENODEV.  Writing pins
 * the task; reading copies what it needs under tasks.lock and the task's own
 * instead, so that a reader never makes the rmdir of somebody else fail with EBUSY.
 */
#include "ctl/ctl_internal.h"

#include <errno.h>
#include <inttypes.h>

/* What shows need of a task, copied in one piece. */
struct task_view {
	struct mf_policy policy;
	mf_nodemask allowed;
	struct mf_rotation rotation;
	int cpu;
	uint64_t live_pages[64];
};

/* With writers kept out: one that holds tasks.lock, as here, is not made to wait for the sequence count. */
static void copy_task(struct mf_task *task, struct task_view *view)
{
	mf_lock_acquire(&task->lock);
	mf_placement_read(&task->place, &view->policy, &view->allowed);
	view->rotation = mf_placement_rotation(&task->place);
	view->cpu = __atomic_load_n(&task->place.cpu, __ATOMIC_RELAXED);
	mf_lock_release(&task->lock);
	for (int node = 0; node < 64; node++)
		view->live_pages[node] = atomic_load_explicit(&task->live_pages[node], memory_order_relaxed);
}

static int view_task(struct memfs *m, const struct mf_ctl_node *node, struct task_view *view)
{
	struct mf_named *named;
	int error = -ENODEV;

	mf_lock_acquire(&m->tasks.lock);
	named = mf_name_table_find(&m->tasks.table, mf_text_of(node->name));
	if (named && named->serial == node->serial) {
		copy_task((struct mf_task *)named, view);
		error = 0;
	}
	mf_lock_release(&m->tasks.lock);
	return error;
}

int mf_ctl_show_policy(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	struct task_view view;
	int error = view_task(m, node, &view);

	if (error)
		return error;
	mf_policy_print(&view.policy, out);
	mf_outbuf_puts(out, "\n");
	return 0;
}

int mf_ctl_show_mems_allowed(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	struct task_view view;
	int error = view_task(m, node, &view);

	if (error)
		return error;
	mf_outbuf_nodelist(out, view.allowed);
	mf_outbuf_puts(out, "\n");
	return 0;
}

int mf_ctl_show_cpu(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	struct task_view view;
	int error = view_task(m, node, &view);

	if (error)
		return error;
	if (view.cpu == MEMFS_CPU_AUTO)
		mf_outbuf_puts(out, "auto\n");
	else
		mf_outbuf_printf(out, "%d\n", view.cpu);
	return 0;
}

int mf_ctl_show_il_prev(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	struct task_view view;
	int error = view_task(m, node, &view);

	if (!error)
		mf_outbuf_printf(out, "%u\n", view.rotation.il_prev);
	return error;
}

int mf_ctl_show_il_weight(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	struct task_view view;
	int error = view_task(m, node, &view);

	if (!error)
		mf_outbuf_printf(out, "%u\n", view.rotation.il_weight);
	return error;
}

/* --- where the next block would go --- */

/* The node of the task's CPU; without a CPU the lowest node. */
static int local_node(struct memfs *m, int cpu)
{
	if (cpu == MEMFS_CPU_AUTO)
		cpu = m->plat->ops->current_cpu(m->plat);
	if (cpu >= 0 && cpu < MF_MAX_CPUS && m->topo->cpu_node[cpu] >= 0)
		return m->topo->cpu_node[cpu];
	return mf_node_first(m->topo->nodes);
}

/* The nearest node with memory that the policy and the task allow. */
static int nearest_node(struct memfs *m, const struct task_view *view, int from)
{
	const struct mf_zonelist *list = mf_page_zonelist(m->page, from);
	mf_nodemask eligible = view->allowed;

	if (view->policy.mode == MF_MPOL_BIND || view->policy.mode == MF_MPOL_PREFERRED_MANY)
		eligible &= view->policy.nodes;
	for (unsigned i = 0; i < list->nr_nodes; i++)
		if (mf_node_isset(eligible, list->nodes[i]))
			return list->nodes[i];
	return list->nr_nodes ? list->nodes[0] : from;
}

static int next_node(struct memfs *m, const struct task_view *view)
{
	struct mf_weights weights;

	if (mf_policy_interleaves(&view->policy)) {
		mf_page_get_weights(m->page, &weights);
		return mf_policy_peek(&view->policy, &weights, view->rotation);
	}
	if (view->policy.mode == MF_MPOL_PREFERRED)
		return nearest_node(m, view, mf_node_first(view->policy.nodes));
	return nearest_node(m, view, local_node(m, view->cpu));
}

int mf_ctl_show_next_node(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	struct task_view view;
	int error = view_task(m, node, &view);

	if (!error)
		mf_outbuf_printf(out, "%d\n", next_node(m, &view));
	return error;
}

int mf_ctl_show_task_numastat(struct memfs *m, const struct mf_ctl_node *node, struct mf_outbuf *out)
{
	struct task_view view;
	int error = view_task(m, node, &view);

	if (error)
		return error;
	MF_FOR_EACH_NODE(id, m->topo->memory)
		mf_outbuf_printf(out, "node%d %" PRIu64 "\n", id, view.live_pages[id]);
	return 0;
}

/* --- writing --- */

typedef int set_task_fn(struct mf_task *task, struct mf_text text, char *why, size_t why_size);

static int store_task(struct mf_ctl_command *command, set_task_fn *set)
{
	struct mf_task *task = mf_ctl_task(command->m, command->node);
	int error;

	if (!task)
		return mf_ctl_fail(command, -ENODEV, "the task has gone");
	error = set(task, command->text, command->why, sizeof(command->why));
	mf_task_put(task);
	return error;
}

int mf_ctl_store_policy(struct mf_ctl_command *command)
{
	return store_task(command, mf_task_set_policy);
}

int mf_ctl_store_mems_allowed(struct mf_ctl_command *command)
{
	return store_task(command, mf_task_set_mems_allowed);
}

int mf_ctl_store_cpu(struct mf_ctl_command *command)
{
	return store_task(command, mf_task_set_cpu);
}
