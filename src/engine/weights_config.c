/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Weights and bandwidth (behaviour 1.10).
 *
 * Invariants: every weight is 1..255; while auto is on and some node with
 * memory has a known bandwidth, the table is what the formula makes of it;
 * the page engine's copy is the table as it stood at the last release of
 * config_lock.
 *
 * Locks: config_lock.  The allocation paths never take it: they read the page
 * engine's copy.  Events are notified after it was released.
 */
#include "engine/engine_internal.h"
#include "policy/weights.h"

#include <errno.h>
#include <string.h>

static bool bandwidth_known(const struct memfs *m)
{
	MF_FOR_EACH_NODE(node, m->topo->memory)
		if (m->bandwidth[node])
			return true;
	return false;
}

static void recompute(struct memfs *m)
{
	mf_weights_from_bandwidth(m->bandwidth, m->topo->memory, &m->weights);
	mf_page_set_weights(m->page, &m->weights);
}

void mf_engine_init_weights(struct memfs *m)
{
	mf_lock_acquire(&m->config_lock);
	m->weights_auto = true;
	memset(m->weights.of, 1, sizeof(m->weights.of));
	MF_FOR_EACH_NODE(node, m->topo->nodes)
		m->bandwidth[node] = m->topo->node[node]->bandwidth;
	if (bandwidth_known(m))
		recompute(m);
	else
		mf_page_set_weights(m->page, &m->weights);
	mf_lock_release(&m->config_lock);
}

int mf_engine_set_weight(struct memfs *m, int node, unsigned weight)
{
	if (!mf_node_isset(m->topo->memory, node) || weight < 1 || weight > UINT8_MAX)
		return -EINVAL;
	mf_lock_acquire(&m->config_lock);
	m->weights_auto = false;
	m->weights.of[node] = (uint8_t)weight;
	mf_page_set_weights(m->page, &m->weights);
	mf_lock_release(&m->config_lock);
	mf_engine_notify(m, MF_EVENT_WEIGHTS);
	return 0;
}

unsigned mf_engine_weight(struct memfs *m, int node)
{
	unsigned weight;

	if (node < 0 || node >= 64)
		return 0;
	mf_lock_acquire(&m->config_lock);
	weight = m->weights.of[node];
	mf_lock_release(&m->config_lock);
	return weight;
}

int mf_engine_set_auto(struct memfs *m, bool on)
{
	int error = 0;

	mf_lock_acquire(&m->config_lock);
	if (!on) {
		m->weights_auto = false; /* the weights stay as they are */
	} else if (bandwidth_known(m)) {
		m->weights_auto = true;
		recompute(m);
	} else {
		error = -ENODEV;
	}
	mf_lock_release(&m->config_lock);
	if (!error)
		mf_engine_notify(m, MF_EVENT_WEIGHTS);
	return error;
}

bool mf_engine_auto(struct memfs *m)
{
	bool on;

	mf_lock_acquire(&m->config_lock);
	on = m->weights_auto;
	mf_lock_release(&m->config_lock);
	return on;
}

void mf_engine_set_bandwidth(struct memfs *m, int node, uint64_t mbps)
{
	if (!mf_node_isset(m->topo->nodes, node))
		return;
	mf_lock_acquire(&m->config_lock);
	m->bandwidth[node] = mbps;
	if (m->weights_auto)
		recompute(m);
	mf_lock_release(&m->config_lock);
	mf_engine_notify(m, MF_EVENT_WEIGHTS);
}

uint64_t mf_engine_bandwidth(struct memfs *m, int node)
{
	uint64_t mbps;

	if (node < 0 || node >= 64)
		return 0;
	mf_lock_acquire(&m->config_lock);
	mbps = m->bandwidth[node];
	mf_lock_release(&m->config_lock);
	return mbps;
}
