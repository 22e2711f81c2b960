/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A simulated host for tests: declared nodes, a clock that stands still until
 * it is moved, a settable current CPU, and memory that is plain anonymous
 * memory of this process (still really readable and writable).  trim really
 * drops the pages, and resident counts what was touched (mincore).
 */
#ifndef MF_PLAT_SIM_H
#define MF_PLAT_SIM_H

#include "plat/plat.h"

int mf_plat_sim_create(const struct mf_plat_node *nodes, unsigned nr_nodes, struct mf_plat **out);
void mf_plat_sim_advance(struct mf_plat *plat, uint64_t ns);
void mf_plat_sim_set_cpu(struct mf_plat *plat, int cpu);
/* The nth (1 = next) call of the operation fails with -ENOMEM; 0 disarms. */
enum mf_plat_sim_op { MF_SIM_RESERVE, MF_SIM_ARENA_MAP, MF_SIM_ARENA_TRIM, MF_SIM_META_ALLOC, MF_NR_SIM_OPS };
void mf_plat_sim_fail(struct mf_plat *plat, enum mf_plat_sim_op op, unsigned nth);
/* Arenas, reservations and meta allocations not given back yet (leak check). */
unsigned mf_plat_sim_outstanding(const struct mf_plat *plat);

#endif
