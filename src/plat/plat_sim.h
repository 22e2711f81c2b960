/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A simulated host for tests: declared nodes, a clock that stands still until
 * it is moved, a settable current CPU, a declared number of mappings, and memory
 * that is really there: readable, writable, seen through windows.  trim really
 * drops the pages, and resident counts what was touched, page by page.
 */
#ifndef MF_PLAT_SIM_H
#define MF_PLAT_SIM_H

#include "plat/plat.h"

int mf_plat_sim_create(const struct mf_plat_node *nodes, unsigned nr_nodes, struct mf_plat **out);
void mf_plat_sim_advance(struct mf_plat *plat, uint64_t ns);
void mf_plat_sim_set_cpu(struct mf_plat *plat, int cpu);
/* The nth (1 = next) call of the operation fails with -ENOMEM; 0 disarms. */
enum mf_plat_sim_op {
	MF_SIM_RESERVE,
	MF_SIM_ARENA_MAP,
	MF_SIM_ARENA_TRIM,
	MF_SIM_META_ALLOC,
	MF_SIM_WINDOW_MAP,
	MF_SIM_WINDOW_SEAL,
	MF_SIM_POPULATE,
	MF_NR_SIM_OPS
};
void mf_plat_sim_fail(struct mf_plat *plat, enum mf_plat_sim_op op, unsigned nth);
/* What mappings() answers; 65530 and 100 at first. */
void mf_plat_sim_set_mappings(struct mf_plat *plat, uint64_t max, uint64_t used);
/* Arenas, reservations and meta allocations not given back yet (leak check); a window goes with its range. */
unsigned mf_plat_sim_outstanding(const struct mf_plat *plat);

#endif
