/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One instance: built from options, ticking, checked, taken down.
 *
 *   plat -> topo -> page -> slabs -> vmalloc -> weights, tasks -> ctl -> boot settings
 *
 * Invariant: tear_down() undoes any prefix of that list, so that every failure
 * while building has one way out.  The platform is the caller's until
 * everything has succeeded.
 *
 * Locks: ticker.mutex for the tick thread's sleep, tick_mutex around a tick;
 * neither is ranked, and nothing of the engines waits for them.
 */
#include "ctl/ctl.h"
#include "engine/engine_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MAX_LIVE 1000000
#define DEFAULT_MAX_TASKS 4096
#define DEFAULT_TICK_MS 1000

/* --- options --- */

struct option {
	struct mf_text key, value;
	bool has_value;
};

/* The next "key=value" of a list joined by commas; false at the end. */
static bool next_option(struct mf_text *rest, struct option *out)
{
	while (rest->length) {
		struct mf_text piece = mf_text_until(rest, ',');

		if (!piece.length)
			continue;
		out->has_value = memchr(piece.at, '=', piece.length) != NULL;
		out->key = mf_text_until(&piece, '=');
		out->value = piece;
		return true;
	}
	return false;
}

static bool is_topology(const struct option *option)
{
	return option->has_value && mf_text_is(option->key, "topology");
}

/* The topology's text as a string of its own (NULL: none was given); the last one counts. */
static int find_topology(const char *options, char **out)
{
	struct mf_text rest = mf_text_of(options ? options : "");
	struct option option;

	*out = NULL;
	while (next_option(&rest, &option)) {
		if (!is_topology(&option))
			continue;
		free(*out);
		*out = strndup(option.value.at, option.value.length);
		if (!*out)
			return -ENOMEM;
	}
	return 0;
}

static int boot_setting(struct memfs *m, const struct option *option, char *why, size_t why_size)
{
	struct mf_outbuf reply = MF_OUTBUF_INIT;
	int length = (int)option->key.length;
	struct mf_ctl_node node;
	int error;

	if (mf_ctl_resolve(m, option->key, &node) || mf_ctl_is_dir(&node))
		return mf_why(why, why_size, -EINVAL, "unknown option %.*s", length, option->key.at);
	if (!option->has_value)
		return mf_why(why, why_size, -EINVAL, "option %.*s needs a value", length, option->key.at);
	error = mf_ctl_store(m, &node, option->value.at, option->value.length, &reply, NULL);
	if (error && reply.length)
		mf_why(why, why_size, error, "%.*s", (int)strcspn(reply.data, "\n"), reply.data);
	else if (error)
		mf_why(why, why_size, error, "%.*s: %s", length, option->key.at, strerror(-error));
	mf_outbuf_free(&reply);
	return error;
}

static int boot_settings(struct memfs *m, const char *options, char *why, size_t why_size)
{
	struct mf_text rest = mf_text_of(options ? options : "");
	struct option option;
	int error = 0;

	while (!error && next_option(&rest, &option))
		if (!is_topology(&option))
			error = boot_setting(m, &option, why, why_size);
	return error;
}

/* --- building and taking down --- */

static void init_ticker(struct memfs *m)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&m->ticker.mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&m->ticker.wake, &attr);
	pthread_condattr_destroy(&attr);
	m->ticker.tick_ms = DEFAULT_TICK_MS;
	pthread_mutex_init(&m->tick_mutex, NULL);
}

static void init_members(struct memfs *m, struct mf_plat *plat)
{
	m->plat = plat;
	mf_fault_init(&m->fault);
	mf_lock_init(&m->config_lock, MF_LOCK_CONFIG);
	mf_lock_init(&m->tasks.lock, MF_LOCK_TASKS);
	mf_lock_init(&m->live.lock, MF_LOCK_LIVE);
	mf_name_table_init(&m->tasks.table);
	mf_name_table_init(&m->live.table);
	pthread_mutex_init(&m->live.cut_mutex, NULL);
	pthread_mutex_init(&m->library.mutex, NULL);
	mf_report_init(m);
	m->limits.max_live = DEFAULT_MAX_LIVE;
	m->limits.max_tasks = DEFAULT_MAX_TASKS;
	init_ticker(m);
}

static int build_topology(struct memfs *m, const char *options, char *why, size_t why_size)
{
	char *text;
	int error = find_topology(options, &text);

	if (error)
		return mf_why(why, why_size, error, "out of memory");
	error = mf_topo_create(text, m->plat, &m->topo, why, why_size);
	free(text);
	return error;
}

static int build(struct memfs *m, const char *options, char *why, size_t why_size)
{
	int error = build_topology(m, options, why, why_size);

	if (error)
		return error;
	error = mf_page_create(m->topo, m->plat, &m->fault, &m->page);
	if (error)
		return mf_why(why, why_size, error, "no memory for the nodes' arenas or tables: %s",
			      strerror(-error));
	error = mf_slabs_create(m->page, m->plat, &m->slabs);
	if (error)
		return mf_why(why, why_size, error, "no memory for the tables of caches: %s",
			      strerror(-error));
	mf_report_listen(m);
	error = mf_vmalloc_create(m->page, m->plat, &m->vmalloc);
	if (error)
		return mf_why(why, why_size, error, "no addresses or tables for ranges: %s",
			      strerror(-error));
	mf_engine_init_weights(m);
	error = mf_task_create(m, mf_text_of("default"), &m->tasks.default_task);
	if (!error)
		error = mf_ctl_create(m);
	if (error)
		return mf_why(why, why_size, error, "no memory for the control files");
	return boot_settings(m, options, why, why_size);
}

static void delete_tasks(struct memfs *m)
{
	m->tasks.default_task = NULL; /* from here on it may end like any other */
	while (m->tasks.table.oldest)
		if (mf_task_end((struct mf_task *)m->tasks.table.oldest))
			break; /* pinned: a caller of another thread broke the contract */
}

static void stop_ticker(struct memfs *m)
{
	bool running;

	pthread_mutex_lock(&m->ticker.mutex);
	running = m->ticker.running;
	m->ticker.stop = true;
	pthread_cond_signal(&m->ticker.wake);
	pthread_mutex_unlock(&m->ticker.mutex);
	if (running)
		pthread_join(m->ticker.thread, NULL);
}

/* Everything but the platform. */
static void tear_down(struct memfs *m)
{
	stop_ticker(m);
	mf_live_free_all(m);
	if (m->ctl)
		mf_ctl_destroy(m);
	delete_tasks(m);
	if (m->vmalloc)
		mf_vmalloc_destroy(m->vmalloc);
	if (m->slabs)
		mf_slabs_destroy(m->slabs);
	mf_library_forget_caches(m);
	if (m->page)
		mf_page_destroy(m->page);
	if (m->topo)
		mf_topo_destroy(m->topo);
	mf_name_table_destroy(&m->live.table);
	mf_name_table_destroy(&m->tasks.table);
	pthread_mutex_destroy(&m->live.cut_mutex);
	pthread_mutex_destroy(&m->library.mutex);
	mf_report_destroy(m);
	mf_lock_destroy(&m->live.lock);
	mf_lock_destroy(&m->tasks.lock);
	mf_lock_destroy(&m->config_lock);
	pthread_mutex_destroy(&m->tick_mutex);
	pthread_cond_destroy(&m->ticker.wake);
	pthread_mutex_destroy(&m->ticker.mutex);
	free(m);
}

int mf_engine_create(const char *options, struct mf_plat *plat, struct memfs **out, char *why,
		     size_t why_size)
{
	struct memfs *m = calloc(1, sizeof(*m));
	int error;

	if (!m)
		return mf_why(why, why_size, -ENOMEM, "out of memory");
	init_members(m, plat);
	error = build(m, options, why, why_size);
	if (error) {
		tear_down(m);
		return error;
	}
	*out = m;
	return 0;
}

void mf_engine_destroy(struct memfs *m)
{
	struct mf_plat *plat;

	if (!m)
		return;
	plat = m->plat;
	tear_down(m);
	plat->ops->destroy(plat);
}

/* --- time --- */

static void check_pressure(struct memfs *m)
{
	uint64_t below[MF_MAX_ZONES / 64] = { 0 };
	bool crossed = false;

	MF_FOR_EACH_NODE(node, m->topo->memory)
		for (int type = 0; type < MF_NR_ZONE_TYPES; type++) {
			unsigned zone = mf_zone_index(node, (enum mf_zone_type)type);

			if (m->topo->node[node]->zone[type].nr_pages && mf_page_zone_below_low(m->page, zone))
				below[zone / 64] |= UINT64_C(1) << zone % 64;
		}
	for (unsigned i = 0; i < MF_MAX_ZONES / 64; i++)
		crossed |= atomic_exchange(&m->below_low[i], below[i]) != below[i];
	if (crossed)
		mf_engine_notify(m, MF_EVENT_PRESSURE);
}

/* Counters move without notice (that would cost every allocation): a tick compares them. */
static void check_counters(struct memfs *m)
{
	struct mf_stat_set *set = mf_page_stat(m->page);
	size_t nr = (size_t)set->nr_zones * MF_NR_STATS;
	uint64_t *sums = calloc(nr, sizeof(*sums));
	uint64_t hash = UINT64_C(14695981039346656037);

	if (!sums)
		return;
	mf_stat_snapshot(set, sums);
	for (size_t i = 0; i < nr; i++)
		hash = (hash ^ sums[i]) * UINT64_C(1099511628211);
	free(sums);
	if (atomic_exchange(&m->stats_hash, hash) != hash)
		mf_engine_notify(m, MF_EVENT_STATS);
}

void mf_engine_tick(struct memfs *m)
{
	pthread_mutex_lock(&m->tick_mutex);
	mf_page_tick(m->page);
	mf_vmalloc_tick(m->vmalloc);
	check_pressure(m);
	check_counters(m);
	pthread_mutex_unlock(&m->tick_mutex);
}

/* Sleeps until the next tick is due; false if something was changed instead. ticker.mutex is held. */
static bool sleep_until_tick(struct memfs *m)
{
	struct timespec due;

	if (!m->ticker.tick_ms) {
		pthread_cond_wait(&m->ticker.wake, &m->ticker.mutex);
		return false;
	}
	due = mf_deadline_after(m->ticker.tick_ms);
	return pthread_cond_timedwait(&m->ticker.wake, &m->ticker.mutex, &due) == ETIMEDOUT;
}

static void *ticker_main(void *arg)
{
	struct memfs *m = arg;

	pthread_mutex_lock(&m->ticker.mutex);
	while (!m->ticker.stop) {
		if (!sleep_until_tick(m) || m->ticker.stop)
			continue;
		pthread_mutex_unlock(&m->ticker.mutex);
		mf_engine_tick(m);
		pthread_mutex_lock(&m->ticker.mutex);
	}
	pthread_mutex_unlock(&m->ticker.mutex);
	return NULL;
}

int mf_engine_start_ticker(struct memfs *m)
{
	sigset_t all, old;
	int error = 0;

	pthread_mutex_lock(&m->ticker.mutex);
	if (!m->ticker.running) {
		sigfillset(&all); /* signals are for the program's own threads */
		pthread_sigmask(SIG_SETMASK, &all, &old);
		error = pthread_create(&m->ticker.thread, NULL, ticker_main, m);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		m->ticker.running = !error;
	}
	pthread_mutex_unlock(&m->ticker.mutex);
	return -error;
}

void mf_engine_set_tick_ms(struct memfs *m, unsigned ms)
{
	pthread_mutex_lock(&m->ticker.mutex);
	m->ticker.tick_ms = ms;
	pthread_cond_signal(&m->ticker.wake);
	pthread_mutex_unlock(&m->ticker.mutex);
}

unsigned mf_engine_tick_ms(struct memfs *m)
{
	unsigned ms;

	pthread_mutex_lock(&m->ticker.mutex);
	ms = m->ticker.tick_ms;
	pthread_mutex_unlock(&m->ticker.mutex);
	return ms;
}

void mf_engine_notify(struct memfs *m, enum mf_event event)
{
	atomic_fetch_add(&m->event_generation[event], 1);
}

/* --- check --- */

struct page_flow {
	uint64_t out, back;
	uint64_t parked; /* of those back: kept for the next range, on no list of the page engine */
};

/* Frees first: a page that comes and goes in between then counts as handed out, never as missing. */
static struct page_flow page_flow(struct memfs *m)
{
	struct mf_stat_set *set = mf_page_stat(m->page);
	struct page_flow flow;

	flow.back = mf_stat_read(set, MF_STAT_pgfree);
	flow.out = mf_stat_read(set, MF_STAT_pgalloc);
	flow.parked = mf_vmalloc_parked(m->vmalloc);
	return flow;
}

static bool same_flow(const struct page_flow *a, const struct page_flow *b)
{
	return a->out == b->out && a->back == b->back && a->parked == b->parked;
}

/*
 * The page engine's own check, with the sums if nothing moved meanwhile.  A
 * program's direct calls are seen by their counters only: one that stands still
 * between a list and its counter makes the sums wrong, as any reader may find
 * them while something runs.
 */
static unsigned check_pages(struct memfs *m, struct mf_outbuf *out)
{
	struct page_flow before = page_flow(m), after;
	struct mf_outbuf text = MF_OUTBUF_INIT;
	uint64_t mark;
	bool still = mf_live_quiet(m, &mark);
	unsigned bad;

	if (!still)
		return mf_page_check(m->page, -1, out);
	bad = mf_page_check(m->page, (int64_t)(before.out - before.back + before.parked), &text);
	after = page_flow(m);
	still = same_flow(&before, &after) && atomic_load(&m->live.begun) == mark;
	if (still && text.length)
		mf_outbuf_write(out, text.data, text.length);
	mf_outbuf_free(&text);
	return still ? bad : mf_page_check(m->page, -1, out);
}

/* Named allocations cannot hold more than was handed out. */
static unsigned check_flow(struct memfs *m, struct mf_outbuf *out)
{
	uint64_t mark;
	bool quiet = mf_live_quiet(m, &mark);
	uint64_t named = atomic_load(&m->live.nr_pages);
	struct page_flow flow = page_flow(m);

	if (!quiet || atomic_load(&m->live.begun) != mark || named <= flow.out - flow.back)
		return 0;
	mf_outbuf_printf(out, "engine: allocations hold %llu pages, %llu are handed out\n",
			 (unsigned long long)named, (unsigned long long)(flow.out - flow.back));
	return 1;
}

void mf_engine_check(struct memfs *m, struct mf_outbuf *out)
{
	unsigned bad = check_pages(m, out);

	bad += check_flow(m, out);
	bad += mf_slabs_check(m->slabs, out);
	bad += mf_vmalloc_check(m->vmalloc, out);
	bad += mf_live_check(m, out);
	bad += mf_task_check(m, out);
	if (!bad)
		mf_outbuf_puts(out, "ok\n");
}
