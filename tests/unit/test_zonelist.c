/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fallback order: against recorded and worked orders, and by zone within a node. */
#include "page/zonelist.h"

#include "unit.h"
#include "data.h"

#define FIELDS 7

/* One machine of fallback-order.tsv. */
struct machine {
	char name[32];
	char text[8192]; /* as a topology FILE */
	int nr;
	struct {
		unsigned long long order[64];
		int nr_order;
	} want[64];
};

static struct mf_topo *topo_of(const char *text)
{
	struct mf_topo *topo = NULL;
	char why[200] = "";
	int error = mf_topo_parse_file(text, strlen(text), &topo, why, sizeof(why));

	CU_ASSERT_EQUAL(error, 0);
	if (error)
		printf("%s\n", why);
	return topo;
}

static void add_row(struct machine *machine, char **fields)
{
	size_t used = strlen(machine->text);
	int node = atoi(fields[1]);

	for (char *c = fields[4]; *c; c++)
		if (*c == ',')
			*c = ' ';
	snprintf(machine->text + used, sizeof(machine->text) - used,
		 "node %d cpus %s zones %s\ndistance %d %s\n", node, fields[2],
		 fields[3][0] == '1' ? "Normal=2M" : "-", node, fields[4]);
	machine->want[node].nr_order = data_numbers(fields[5], machine->want[node].order, 64);
	machine->nr++;
}

static void check_machine(const struct machine *machine)
{
	static struct mf_zonelist lists[64];
	struct mf_topo *topo = topo_of(machine->text);

	CU_ASSERT_PTR_NOT_NULL_FATAL(topo);
	mf_zonelist_build(topo, lists);
	CU_ASSERT_EQUAL(mf_node_weight(topo->nodes), machine->nr);
	MF_FOR_EACH_NODE(node, topo->nodes) {
		bool same = lists[node].nr_nodes == machine->want[node].nr_order;

		for (int i = 0; same && i < lists[node].nr_nodes; i++)
			same = lists[node].nodes[i] == machine->want[node].order[i];
		CU_ASSERT_TRUE(same);
		if (!same)
			printf("%s: order of node %d\n", machine->name, node);
	}
	mf_topo_destroy(topo);
}

static void recorded_orders(void)
{
	static struct machine machine;
	char line[DATA_LINE], *fields[FIELDS];
	FILE *file = data_open("fallback-order.tsv");
	int nr_machines = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	while (data_row(file, line, fields, FIELDS) == FIELDS) {
		if (strcmp(machine.name, fields[0])) {
			if (machine.nr)
				check_machine(&machine);
			memset(&machine, 0, sizeof(machine));
			snprintf(machine.name, sizeof(machine.name), "%s", fields[0]);
			nr_machines++;
		}
		add_row(&machine, fields);
	}
	check_machine(&machine);
	fclose(file);
	CU_ASSERT_EQUAL(nr_machines, 11);
}

static void zones_from_high_to_low(void)
{
	static struct mf_zonelist lists[64];
	struct mf_topo *topo = topo_of("node 3 cpus 0 zones DMA=16M,DMA32=112M,Movable=64M\n"
				       "node 60 cpus - zones Normal=8M,Movable=8M\n"
				       "node 63 cpus 1 zones -\n");
	static const uint8_t from_3[] = { 15, 13, 12, 243, 242 };
	static const uint8_t from_60[] = { 243, 242, 15, 13, 12 };

	CU_ASSERT_PTR_NOT_NULL_FATAL(topo);
	memset(lists, 0xff, sizeof(lists));
	mf_zonelist_build(topo, lists);
	CU_ASSERT_EQUAL(mf_zone_index(60, MF_ZONE_MOVABLE), 243);
	CU_ASSERT_EQUAL(lists[3].nr_zones, 5);
	CU_ASSERT_EQUAL(memcmp(lists[3].zones, from_3, 5), 0);
	CU_ASSERT_EQUAL(lists[60].nr_zones, 5);
	CU_ASSERT_EQUAL(memcmp(lists[60].zones, from_60, 5), 0);
	/* No memory, but a list: both are lower, equally far and headed one group before, so the number decides. */
	CU_ASSERT_EQUAL(lists[63].nr_nodes, 2);
	CU_ASSERT_EQUAL(lists[63].nr_zones, 5);
	CU_ASSERT_EQUAL(lists[63].nodes[0], 3);
	CU_ASSERT_EQUAL(lists[63].nodes[1], 60);
	/* A node that is not there is left alone. */
	CU_ASSERT_EQUAL(lists[4].nr_nodes, 0xff);
	mf_topo_destroy(topo);
}

static void full_machine(void)
{
	static struct mf_zonelist lists[64];
	struct mf_topo *topo = NULL;

	CU_ASSERT_EQUAL_FATAL(mf_topo_create("64x1G:cpus=16", NULL, &topo, NULL, 0), 0);
	mf_zonelist_build(topo, lists);
	/* All equal: each list is the ring from its node. */
	for (int node = 0; node < 64; node++) {
		bool ring = lists[node].nr_nodes == 64 && lists[node].nr_zones == 64;

		for (int i = 0; i < 64; i++)
			ring = ring && lists[node].nodes[i] == (node + i) % 64 &&
			       lists[node].zones[i] == (node + i) % 64 * 4 + 2;
		CU_ASSERT_TRUE(ring);
	}
	mf_topo_destroy(topo);
}

static const struct unit_test tests[] = {
	UNIT_TEST(recorded_orders),
	UNIT_TEST(zones_from_high_to_low),
	UNIT_TEST(full_machine),
};

UNIT_MAIN("zonelist", tests)
