/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random test of caches and kmalloc against a model that knows which objects are
 * out and fills each with bytes of its own.
 *
 *	model_slab [SEED|- [COUNT]]
 *
 * runs COUNT operations (default 100000), spread over fixed seeds and one
 * random seed, or all with SEED, each seed over several small machines: objects
 * come and go one by one and many at once, by several tasks on several CPUs, by
 * node, also in the place of a signal handler that has interrupted the holder
 * of some lock; caches come, go and are shrunk, knobs turn.  What an object
 * holds is looked at when it is freed; a rotation moves only for new slabs.
 * Every few operations the engines check themselves and each cache's count of
 * objects is compared; at the end everything is freed and the free blocks must
 * be those of the start.
 *
 * Then the same with the Nth failure point visited made to fail, for rising N
 * until none fails any more.  A failure prints seed, machine and operation.
 */
#include "slab_model.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_COUNT 100000
#define FAULT_OPERATIONS 60
#define MOST_AT_ONCE 200

static const char *const machines[] = {
	"2x32M:cpus=2",
	"4x16M:cpus=1",
	"16M:cpus=2+8M:cpus=0+0:cpus=1",
	"node 0 cpus 0-1 zones DMA=4M,DMA32=8M,Normal=16M\n"
	"node 3 cpus - zones Normal=16M,Movable=8M\n"
	"node 62 cpus 5 zones DMA32=8M,Normal=8M\n"
	"distance 0 10 20 30\n"
	"distance 3 20 10 15\n"
	"distance 62 30 15 10\n",
};
#define NR_MACHINES (sizeof(machines) / sizeof(machines[0]))

#define FLAG MF_SLAB_FLAG
static const struct shape shapes[] = {
	{ "tiny", 8, 0, FLAG(NO_MERGE), false },
	{ "odd", 100, 0, 0, false },
	{ "twin", 104, 0, 0, false }, /* may share with odd */
	{ "line", 60, 0, FLAG(HWCACHE_ALIGN) | FLAG(NO_MERGE), false },
	{ "made", 72, 0, 0, true },
	{ "typesafe", 200, 0, FLAG(TYPESAFE_BY_RCU), false },
	{ "reclaimable", 700, 0, FLAG(RECLAIM_ACCOUNT), false },
	{ "aligned", 1000, 512, FLAG(NO_MERGE), false },
	{ "page", 4096, 4096, FLAG(NO_MERGE), false },
	{ "large", 20000, 0, FLAG(NO_MERGE), false },
	{ "debug", 120, 0, MF_SLAB_DEBUG, false },
	{ "poisoned", 3000, 0, FLAG(POISON), false },
	{ "zoned", 24, 0, FLAG(RED_ZONE) | FLAG(CONSISTENCY), true },
};
#define NR_SHAPES (int)(sizeof(shapes) / sizeof(shapes[0]))

/* --- choices --- */

static struct mf_placement *any_task(struct run *run)
{
	return &run->place[below(run, NR_TASKS)];
}

static int any_node(struct run *run)
{
	mf_nodemask memory = run->topo->memory;

	return mf_node_nth(memory, (int)below(run, (uint64_t)mf_node_weight(memory)));
}

static memfs_gfp any_gfp(struct run *run)
{
	static const memfs_gfp kinds[] = { MEMFS_GFP_KERNEL, MEMFS_GFP_KERNEL, MEMFS_GFP_NOWAIT,
					   MEMFS_GFP_ATOMIC };
	memfs_gfp gfp = kinds[below(run, 4)];

	return below(run, 5) ? gfp : gfp | MEMFS___GFP_ZERO;
}

/* A cache that is there, -1: none. */
static int any_cache(struct run *run)
{
	int from = (int)below(run, (uint64_t)NR_SHAPES);

	for (int i = 0; i < NR_SHAPES; i++)
		if (run->cache[(from + i) % NR_SHAPES])
			return (from + i) % NR_SHAPES;
	return -1;
}

static uint64_t any_size(struct run *run)
{
	uint64_t bits = below(run, 40) ? below(run, 14) : below(run, 21);

	return (UINT64_C(1) << bits) + below(run, UINT64_C(1) << bits);
}

/* --- inside a handler: somebody below holds a lock --- */

static void interrupt(struct run *run)
{
	int kind = any_cache(run), cpu = mf_topo_first_cpu(run->topo);
	struct mf_cache *cache = kind >= 0 && below(run, 3) ? run->cache[kind] : run->slabs->kmalloc[3];

	switch (below(run, 3)) {
	case 0:
		run->interrupted = &run->slabs->sheaves_lock;
		break;
	case 1:
		run->interrupted = &cache->node[any_node(run)]->lock;
		break;
	default:
		run->interrupted = cache->cpu[cpu].ready ? &cache->cpu[cpu].lock : &run->slabs->names_lock;
	}
	mf_lock_acquire(run->interrupted);
}

static void go_on(struct run *run)
{
	if (run->interrupted)
		mf_lock_release(run->interrupted);
	run->interrupted = NULL;
}

/* --- objects come --- */

static uint64_t slabs_made(struct mf_cache *cache)
{
	uint64_t nr = 0;

	for (unsigned cpu = 0; cpu < mf_cache_nr_cpus(cache); cpu++)
		nr += mf_cache_stat(cache, MF_SLAB_STAT_alloc_slab, cpu);
	return nr;
}

static void check_new(struct run *run, const struct object *object, memfs_gfp gfp, int node)
{
	const struct shape *shape = object->kind >= 0 ? &shapes[object->kind] : NULL;

	expect(run, !shape || !shape->align || !((uintptr_t)object->at % shape->align), "not aligned");
	if (shape && shape->ctor)
		expect(run, is_constructed(object), "not constructed");
	else if (gfp & MEMFS___GFP_ZERO)
		expect(run, is_clear(object), "not clear");
	if (gfp & MEMFS___GFP_THISNODE && node != MF_NODE_BY_POLICY)
		expect(run, node_of(run, object->at) == node, "another node than the only one allowed");
	fill(object);
}

static void do_alloc(struct run *run)
{
	int kind = any_cache(run), node = below(run, 4) ? MF_NODE_BY_POLICY : any_node(run);
	struct mf_placement *place = any_task(run);
	uint32_t rotation = place->rotation;
	memfs_gfp gfp = any_gfp(run);
	uint64_t made;
	void *at;

	if (kind < 0 || run->nr_objects == MOST_OBJECTS)
		return;
	made = slabs_made(run->cache[kind]);
	if (node != MF_NODE_BY_POLICY && below(run, 2))
		gfp |= MEMFS___GFP_THISNODE;
	at = node == MF_NODE_BY_POLICY ? mf_cache_alloc(run->cache[kind], place, gfp)
				       : mf_cache_alloc_node(run->cache[kind], place, gfp, node);
	if (at)
		check_new(run, add(run, at, kind, shapes[kind].size), gfp, node);
	if (!run->interrupted && (node != MF_NODE_BY_POLICY || made == slabs_made(run->cache[kind])))
		expect(run, place->rotation == rotation, "the rotation moved without a new slab");
}

static void do_alloc_bulk(struct run *run)
{
	size_t n = 1 + below(run, below(run, 4) ? 20 : MOST_AT_ONCE), got;
	struct mf_placement *place = any_task(run);
	int kind = any_cache(run);
	memfs_gfp gfp = any_gfp(run);
	void *objects[MOST_AT_ONCE];

	if (kind < 0 || run->nr_objects + n > MOST_OBJECTS)
		return;
	got = mf_cache_alloc_bulk(run->cache[kind], place, gfp, n, objects);
	expect(run, got == n || got == 0, "neither all nor none");
	for (size_t i = 0; i < got; i++)
		check_new(run, add(run, objects[i], kind, shapes[kind].size), gfp, MF_NODE_BY_POLICY);
}

static void check_ksize(struct run *run, const struct object *object)
{
	uint64_t room = mf_ksize(run->slabs, object->at);

	expect(run, room >= object->size, "fewer bytes than were asked for");
	expect(run, (object->cache != NULL) == (object->size <= 8192), "a class that is none, or none");
	expect(run, room <= 8 || room < 2 * object->size, "a class or block too large");
}

static void do_kmalloc(struct run *run)
{
	int node = below(run, 6) ? MF_NODE_BY_POLICY : any_node(run);
	struct mf_placement *place = any_task(run);
	memfs_gfp gfp = any_gfp(run);
	uint64_t size = any_size(run);
	struct object *object;
	void *at;

	if (run->nr_objects == MOST_OBJECTS)
		return;
	if (node != MF_NODE_BY_POLICY && below(run, 2))
		gfp |= MEMFS___GFP_THISNODE;
	at = mf_kmalloc(run->slabs, place, size, gfp, node);
	if (!at)
		return;
	object = add(run, at, -1, size);
	check_ksize(run, object);
	check_new(run, object, gfp, node);
}

static void do_krealloc(struct run *run)
{
	size_t at = run->nr_objects ? below(run, run->nr_objects) : 0;
	struct mf_placement *place = any_task(run);
	struct object object;
	uint64_t size = any_size(run);
	char *new;

	if (!run->nr_objects || run->object[at].kind >= 0)
		return;
	object = run->object[at];
	new = mf_krealloc(run->slabs, place, object.at, size, MEMFS_GFP_KERNEL);
	expect(run, new || size > object.size, "no memory to become smaller");
	if (!new)
		return;
	for (uint64_t i = 0; i < 64 && i < size && i < object.size; i++)
		expect(run, new[i] == byte_of(&object, i), "contents did not come along");
	object.at = new;
	object.size = size;
	object.cache = mf_cache_of(run->slabs, new);
	fill(&object);
	run->object[at] = object;
}

/* --- objects go --- */

static void check_refusals(struct run *run, const struct object *object, struct mf_placement *place)
{
	unsigned reports = run->reports, wanted = 1;
	int kind = any_cache(run);

	run->provokes = true;
	expect(run, mf_kfree(run->slabs, place, &run->object[0]) == -EINVAL,
	       "no object at all is taken back");
	if (kind >= 0 && run->cache[kind] != object->cache && ++wanted)
		expect(run, mf_cache_free(run->cache[kind], place, object->at) == -EINVAL,
		       "another cache takes an object back");
	expect(run, run->reports == reports + wanted, "a mistake was not reported");
	run->provokes = false;
}

/* A cache that checks sees that an object is free already. */
static void check_freed(struct run *run, const struct object *object, struct mf_placement *place)
{
	unsigned reports = run->reports;

	if (!object->cache || !(mf_cache_flags(object->cache) & MF_SLAB_DEBUG) || run->interrupted)
		return;
	run->provokes = true;
	expect(run, mf_cache_free(object->cache, place, object->at) == -EINVAL, "freed twice");
	expect(run, run->reports == reports + 1, "a double free was not reported");
	run->provokes = false;
}

static int give_back(struct run *run, const struct object *object, struct mf_placement *place)
{
	return object->kind >= 0 && below(run, 2) ? mf_cache_free(object->cache, place, object->at)
						  : mf_kfree(run->slabs, place, object->at);
}

static void do_free(struct run *run)
{
	struct mf_placement *place = any_task(run);
	struct object object;

	if (!run->nr_objects)
		return;
	object = take_off(run, below(run, run->nr_objects), shapes);
	if (!below(run, 50))
		check_refusals(run, &object, place);
	expect(run, !give_back(run, &object, place), "an object is not taken back");
	if (!below(run, 20))
		check_freed(run, &object, place);
}

static void do_free_bulk(struct run *run)
{
	size_t most = 1 + below(run, MOST_AT_ONCE), n = 0;
	struct mf_placement *place = any_task(run);
	void *objects[MOST_AT_ONCE];
	int kind = any_cache(run);

	for (size_t i = run->nr_objects; kind >= 0 && i-- > 0 && n < most;)
		if (run->object[i].kind == kind)
			objects[n++] = take_off(run, i, shapes).at;
	if (n)
		expect(run, !mf_cache_free_bulk(run->cache[kind], place, n, objects),
		       "objects are not taken back");
}

static void do_free_most(struct run *run)
{
	size_t keep = below(run, run->nr_objects + 1);

	while (run->nr_objects > keep)
		do_free(run);
}

/* --- caches --- */

static void make_cache(struct run *run, int kind)
{
	struct mf_cache_request request = {
		.name = mf_text_of(shapes[kind].name),
		.size = shapes[kind].size,
		.align = shapes[kind].align,
		.flags = shapes[kind].flags,
		.ctor = shapes[kind].ctor ? construct : NULL,
	};
	struct mf_cache *cache;
	int error = mf_cache_create(run->slabs, &request, &cache, NULL, 0);

	expect(run, !error || error == -ENOMEM, "a cache that cannot be made");
	if (error)
		return;
	mf_cache_put(cache);
	run->cache[kind] = cache;
}

/* Of two names of one cache it does not matter which objects are whose. */
static bool is_shared(const struct run *run, int kind)
{
	for (int i = 0; i < NR_SHAPES; i++)
		if (i != kind && run->cache[i] == run->cache[kind])
			return true;
	return mf_cache_flags(run->cache[kind]) != shapes[kind].flags ||
	       strncmp(mf_cache_name(run->cache[kind]), "kmalloc", 7) == 0;
}

static void end_cache(struct run *run, int kind)
{
	bool shared = is_shared(run, kind), held = run->held[kind] > 0;
	int error;

	if (shared && held)
		return;
	error = mf_cache_destroy(run->slabs, mf_text_of(shapes[kind].name), NULL, 0);
	expect(run, error == (held && !shared ? -EBUSY : 0),
	       "a cache with objects went, or one without stayed");
	if (!error)
		run->cache[kind] = NULL;
}

static void do_cache(struct run *run)
{
	int kind = (int)below(run, (uint64_t)NR_SHAPES);

	if (!run->cache[kind])
		make_cache(run, kind);
	else if (!below(run, 3))
		end_cache(run, kind);
	else
		mf_cache_shrink(run->cache[kind]);
}

static void do_cache_knobs(struct run *run)
{
	int kind = any_cache(run);
	struct mf_cache *cache = kind >= 0 && below(run, 3) ? run->cache[kind]
							    : run->slabs->kmalloc[below(run, MF_NR_KMALLOC)];
	bool debugs = mf_cache_flags(cache) & MF_SLAB_DEBUG;
	struct mf_cache_knobs knobs;

	mf_cache_get_knobs(cache, &knobs);
	knobs.min_partial = (unsigned)below(run, 8);
	knobs.defrag_ratio = below(run, 2) ? 100 : (unsigned)below(run, 101);
	if (below(run, 2)) {
		knobs.cpu_partial = below(run, 3) ? (unsigned)below(run, 200) : 0;
		knobs.sheaf_capacity = below(run, 3) ? (unsigned)below(run, 255) : 0;
	}
	expect(run,
	       mf_cache_set_knobs(cache, &knobs) ==
		       (debugs && (knobs.cpu_partial || knobs.sheaf_capacity) ? -EINVAL : 0),
	       "knobs of a cache");
}

static void do_knobs(struct run *run)
{
	struct mf_slab_knobs knobs;

	mf_slabs_get_knobs(run->slabs, &knobs);
	knobs.skip = (int)below(run, 3);
	knobs.sheaves = below(run, 3) != 0;
	knobs.stock_bytes = below(run, 2) ? UINT64_C(1) << 20 : below(run, 100000);
	mf_slabs_set_knobs(run->slabs, &knobs);
}

/* --- tasks, time, failures --- */

static void do_task(struct run *run, struct mf_placement *place)
{
	static const enum mf_policy_mode modes[] = { MF_MPOL_DEFAULT, MF_MPOL_WEIGHTED_INTERLEAVE,
						     MF_MPOL_INTERLEAVE, MF_MPOL_BIND, MF_MPOL_PREFERRED };
	enum mf_policy_mode mode = modes[below(run, 5)];
	mf_nodemask nodes = mode == MF_MPOL_DEFAULT ? 0
						    : mf_node_bit(any_node(run)) | mf_node_bit(any_node(run));
	int cpu = (int)below(run, run->topo->cpu_limit + 1) - 1; /* -1: the caller's own */
	struct mf_policy_context context;
	struct mf_policy policy;
	char why[128];

	mf_placement_context(run->topo, run->topo->nodes, &context);
	expect(run, !mf_policy_set(mode, 0, nodes, &context, &policy, why, sizeof(why)), why);
	mf_placement_set_policy(place, &policy, run->topo);
	if (cpu == MEMFS_CPU_AUTO || run->topo->cpu_node[cpu] >= 0)
		mf_placement_set_cpu(place, cpu, run->topo);
}

static void do_arm(struct run *run)
{
	mf_fault_disarm(&run->fault);
	if (!below(run, 3))
		return;
	if (below(run, 2))
		mf_fault_arm_any(&run->fault, 1 + below(run, 40));
	else
		mf_fault_arm(&run->fault, (enum mf_fault_point)below(run, MF_NR_FAULT_POINTS),
			     1 + below(run, 4), below(run, 2) ? 0 : 1 + below(run, 5));
}

/* --- checks --- */

static void compare_used(void *arg, const char *name, struct mf_cache *cache, bool alias)
{
	struct mf_cache_info *info = malloc(sizeof(*info));
	struct run *run = arg;
	uint64_t held = count_held(run, cache);

	(void)alias;
	if (!info)
		abort();
	mf_cache_info(cache, info);
	if (info->used != held && run->failures < 5)
		printf("%s: %" PRIu64 " used, %" PRIu64 " held\n", name, info->used, held);
	expect(run, info->used == held, "a cache's count of objects");
	free(info);
}

static void do_check(struct run *run)
{
	int64_t out_now =
		(int64_t)(mf_stat_read(run->stat, MF_STAT_pgalloc) - mf_stat_read(run->stat, MF_STAT_pgfree));
	struct mf_outbuf out = MF_OUTBUF_INIT;
	unsigned bad = mf_slabs_check(run->slabs, &out) + mf_page_check(run->pg, out_now, &out);

	if (bad && run->failures < 5)
		printf("%s", out.data);
	expect(run, !bad, "the engines' own checks");
	mf_outbuf_free(&out);
	mf_cache_for_each(run->slabs, false, compare_used, run);
}

/* --- the test --- */

static void do_change(struct run *run)
{
	switch (below(run, 8)) {
	case 0:
		do_cache_knobs(run);
		break;
	case 1:
		do_knobs(run);
		break;
	case 2:
		do_task(run, any_task(run));
		break;
	case 3:
		mf_page_drain(run->pg, -1);
		mf_page_tick(run->pg);
		break;
	case 4:
		do_check(run);
		break;
	case 5:
		mf_plat_sim_advance(run->plat, below(run, 5000));
		break;
	default:
		do_cache(run);
	}
}

static void move_objects(struct run *run)
{
	switch (below(run, 16)) {
	case 0:
		do_alloc_bulk(run);
		break;
	case 1:
		do_free_bulk(run);
		break;
	case 2:
		do_krealloc(run);
		break;
	case 3:
	case 4:
	case 5:
		do_kmalloc(run);
		break;
	case 6:
	case 7:
	case 8:
	case 9:
	case 10:
		do_alloc(run);
		break;
	default:
		do_free(run);
	}
}

static void do_something(struct run *run)
{
	if (!below(run, 40)) {
		do_change(run);
	} else if (!below(run, 400)) {
		do_free_most(run);
	} else if (!below(run, 30)) {
		interrupt(run);
		for (unsigned n = (unsigned)below(run, 10); n; n--)
			move_objects(run);
		go_on(run);
	} else {
		move_objects(run);
	}
}

static int create_machine(struct run *run, char *why, size_t size)
{
	int error = mf_plat_sim_create(NULL, 0, &run->plat);

	if (error)
		return error;
	if (!strchr(run->machine, '\n'))
		return mf_topo_create(run->machine, run->plat, &run->topo, why, size);
	return mf_topo_parse_file(run->machine, strlen(run->machine), &run->topo, why, size);
}

static void begin(struct run *run)
{
	char why[256] = "";

	if (create_machine(run, why, sizeof(why))) {
		printf("cannot begin: %s\n", why);
		exit(EXIT_FAILURE);
	}
	mf_fault_init(&run->fault);
	if (mf_page_create(run->topo, run->plat, &run->fault, &run->pg) ||
	    mf_slabs_create(run->pg, run->plat, &run->slabs))
		abort();
	mf_slabs_on_report(run->slabs, on_report, run);
	run->stat = mf_page_stat(run->pg);
	run->cache = calloc((size_t)NR_SHAPES, sizeof(struct mf_cache *));
	run->held = calloc((size_t)NR_SHAPES, sizeof(*run->held));
	if (!run->cache || !run->held)
		abort();
	for (unsigned zone = 0; zone < MF_MAX_ZONES; zone++)
		if (mf_page_zone_info(run->pg, zone, &run->before[run->nr_zones]))
			run->zone[run->nr_zones++] = zone;
	for (int node = 0; node < 64; node++)
		run->weights.of[node] = (uint8_t)(1 + below(run, 5));
	mf_page_set_weights(run->pg, &run->weights);
	for (unsigned i = 0; i < NR_TASKS; i++) {
		mf_placement_init(&run->place[i], run->pg);
		do_task(run, &run->place[i]);
	}
	for (int kind = 0; kind < NR_SHAPES; kind++)
		make_cache(run, kind);
}

static bool same_blocks(const struct run *run, unsigned z)
{
	uint64_t was[MF_NR_ORDERS] = { 0 }, is[MF_NR_ORDERS] = { 0 };
	struct mf_zone_info info;

	mf_page_zone_info(run->pg, run->zone[z], &info);
	for (int type = 0; type < MF_NR_MIGRATE_TYPES; type++)
		for (unsigned order = 0; order < MF_NR_ORDERS; order++) {
			was[order] += run->before[z].nr_free[type][order];
			is[order] += info.nr_free[type][order];
		}
	return !memcmp(was, is, sizeof(is)) && info.pcp_count == 0;
}

static void shrink_one(void *arg, const char *name, struct mf_cache *cache, bool alias)
{
	struct run *run = arg;
	struct mf_cache_info *info = malloc(sizeof(*info));

	(void)name, (void)alias;
	if (!info)
		abort();
	mf_cache_shrink(cache);
	mf_cache_info(cache, info);
	for (int node = 0; node < MEMFS_MAX_NODES; node++)
		expect(run, !info->node[node].slabs, "a slab is left though no object is out");
	free(info);
}

/* Blocks of kmalloc are the caller's own; objects may go with the engine. */
static void free_all(struct run *run)
{
	for (size_t i = run->nr_objects; i-- > 0;)
		if (!run->leaves || !run->object[i].cache) {
			struct object object = take_off(run, i, shapes);

			expect(run, !give_back(run, &object, any_task(run)), "an object at the end");
		}
}

static void end(struct run *run)
{
	mf_fault_disarm(&run->fault);
	free_all(run);
	do_check(run);
	if (!run->leaves) {
		mf_cache_for_each(run->slabs, false, shrink_one, run);
		for (int kind = 0; kind < NR_SHAPES; kind++)
			if (run->cache[kind])
				end_cache(run, kind);
	}
	mf_slabs_destroy(run->slabs);
	mf_page_drain(run->pg, -1);
	for (unsigned z = 0; z < run->nr_zones; z++)
		expect(run, same_blocks(run, z), "the free blocks are not those of the start");
	mf_page_destroy(run->pg);
	mf_topo_destroy(run->topo);
	expect(run, mf_plat_sim_outstanding(run->plat) == 0, "not everything went back to the host");
	run->plat->ops->destroy(run->plat);
	free(run->cache);
	free(run->held);
}

static unsigned run_machine(uint64_t seed, size_t machine, uint64_t operations)
{
	struct run *run = calloc(1, sizeof(*run));
	unsigned failures;

	if (!run)
		abort();
	run->seed = seed;
	run->state = seed + machine;
	run->machine = machines[machine];
	run->leaves = (seed + machine) % 2;
	begin(run);
	for (run->operation = 1; run->operation <= operations; run->operation++) {
		if (!below(run, 60))
			do_arm(run);
		do_something(run);
	}
	end(run);
	failures = run->failures;
	free(run);
	return failures;
}

/* True: the Nth visit came, so there may be another. */
static bool run_fault(uint64_t seed, size_t machine, uint64_t nth, unsigned *failures)
{
	struct run *run = calloc(1, sizeof(*run));
	bool fired;

	if (!run)
		abort();
	run->seed = seed;
	run->state = seed + machine;
	run->machine = machines[machine];
	begin(run);
	mf_fault_arm_any(&run->fault, nth);
	for (run->operation = 1; run->operation <= FAULT_OPERATIONS; run->operation++) {
		bool before = mf_fault_fired(&run->fault);

		do_something(run);
		if (before != mf_fault_fired(&run->fault))
			do_check(run);
	}
	fired = mf_fault_fired(&run->fault);
	end(run);
	if (run->failures)
		printf("visit %" PRIu64 " failing, seed %" PRIu64 ": %u failures\n", nth, seed,
		       run->failures);
	*failures += run->failures;
	free(run);
	return fired;
}

/* Every visit of the first twenty, then ever fewer. */
static uint64_t sweep(uint64_t seed, size_t machine, unsigned *failures)
{
	uint64_t visits = 0;

	for (uint64_t nth = 1; run_fault(seed, machine, nth, failures); nth += 1 + nth / 20)
		visits++;
	return visits;
}

static bool run_seed(uint64_t seed, uint64_t operations)
{
	unsigned failures = 0;
	uint64_t visits = 0;

	for (size_t machine = 0; machine < NR_MACHINES; machine++)
		failures += run_machine(seed, machine, operations / NR_MACHINES);
	visits += sweep(seed, seed % NR_MACHINES, &failures);
	printf("seed %" PRIu64 ": %" PRIu64 " operations, %" PRIu64 " failing visits, %u failures\n", seed,
	       operations, visits, failures);
	return !failures;
}

int main(int argc, char **argv)
{
	uint64_t seeds[] = { 1, 2, (uint64_t)time(NULL) * 1000003 + (uint64_t)getpid() };
	uint64_t operations = argc > 2 ? strtoull(argv[2], NULL, 0) : DEFAULT_COUNT;
	unsigned nr_seeds = sizeof(seeds) / sizeof(seeds[0]);
	unsigned passed = 0;

	if (argc > 1 && strcmp(argv[1], "-")) {
		seeds[0] = strtoull(argv[1], NULL, 0);
		nr_seeds = 1;
	}
	for (unsigned i = 0; i < nr_seeds; i++)
		passed += run_seed(seeds[i], operations / nr_seeds);
	printf("TOTALS %u passed, %u failed, 0 skipped\n", passed, nr_seeds - passed);
	return passed == nr_seeds ? EXIT_SUCCESS : EXIT_FAILURE;
}
