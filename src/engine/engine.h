/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One instance: wiring, lifetime, configuration.  struct memfs is what the
 * public header calls it; nothing of memfs is global.
 *
 * Locks: config_lock (MF_LOCK_CONFIG) for knobs, weights, bandwidth;
 * tasks.lock (MF_LOCK_TASKS), live.lock (MF_LOCK_LIVE), each task's lock.
 */
#ifndef MF_ENGINE_H
#define MF_ENGINE_H

#include "base/hash.h"
#include "base/lock.h"
#include "page/page.h"
#include "slab/slab.h"
#include "vmalloc/vmalloc.h"

#include <pthread.h>

struct mf_task;
struct mf_ctl;

/* One line about what a user did wrong; from any thread, signal handlers included, no lock held. */
typedef void mf_engine_log_fn(void *arg, const char *line);

/* A cache's name that the library gave away; memfs_slab.c. */
struct mf_library_cache;

/* What a change may wake (design 2.1, notification). */
enum mf_event { MF_EVENT_WEIGHTS, MF_EVENT_POLICY, MF_EVENT_PRESSURE, MF_EVENT_STATS, MF_NR_EVENTS };

struct mf_limits {	    /* knobs: tune/max_live_allocations, max_tasks */
	uint64_t max_live;  /* 1,000,000 */
	uint64_t max_tasks; /* 4096 */
};

struct memfs {
	struct mf_plat *plat;
	struct mf_topo *topo;
	struct mf_fault fault;
	struct mf_page *page;
	struct mf_slabs *slabs;
	struct mf_vmalloc *vmalloc;

	struct mf_lock config_lock;
	bool weights_auto;	   /* config_lock */
	struct mf_weights weights; /* config_lock; the engine's copy is mf_page_set_weights */
	uint64_t bandwidth[64];	   /* config_lock; MB/s by node id */
	struct mf_limits limits;   /* config_lock */

	struct {
		struct mf_lock lock;
		struct mf_name_table table;
		struct mf_task *default_task;
	} tasks;
	struct {
		struct mf_lock lock;
		struct mf_name_table table;
		uint64_t next_generated;   /* for NAME "-" */
		_Atomic uint64_t nr_pages; /* pages held by named allocations */
		/* Commands that change allocations: nothing is under way while the two are equal. */
		_Atomic uint64_t begun, ended;
		/* Held while blocks are cut off, and by the check, which so has all of them hold still.
		 * Not ranked: between an allocation's data_lock and live.lock. */
		pthread_mutex_t cut_mutex;
		void (*freed)(void *arg, uint64_t serial, const char *name); /* live.lock */
		void *freed_arg;					     /* live.lock */
	} live;

	_Atomic uint64_t event_generation[MF_NR_EVENTS]; /* goes up with each change */
	_Atomic uint64_t below_low[MF_MAX_ZONES / 64];	 /* bit a zone: under its low mark at the last tick */
	_Atomic uint64_t stats_hash;			 /* of all counters at the last tick */
	pthread_mutex_t tick_mutex; /* one tick at a time; outermost, not ranked: a tick must be free to wait */

	struct {
		pthread_t thread;
		pthread_mutex_t mutex; /* only this thread's sleep: not ranked, nothing is called under it */
		pthread_cond_t wake;
		bool running, stop;
		unsigned tick_ms; /* 0: stopped */
	} ticker;

	struct {
		pthread_mutex_t mutex; /* not ranked: nothing is called under it */
		uint64_t nr;	       /* mutex: reports kept so far */
		char last[256];	       /* mutex; empty: nothing was reported */
		mf_engine_log_fn *log; /* relaxed, after its argument */
		void *log_arg;
	} report;
	struct {
		pthread_mutex_t mutex; /* not ranked: nothing is called under it */
		struct mf_library_cache *first;
	} library;

	struct mf_ctl *ctl; /* the control tree, made by mf_ctl_create */
};

/* Builds an instance on a given platform (taken over on success); options as in memfs_create. */
int mf_engine_create(const char *options, struct mf_plat *plat, struct memfs **out, char *why,
		     size_t why_size);
void mf_engine_destroy(struct memfs *m);

/* The tick thread; started after a daemon has forked.  -errno. */
int mf_engine_start_ticker(struct memfs *m);
void mf_engine_set_tick_ms(struct memfs *m, unsigned ms);
unsigned mf_engine_tick_ms(struct memfs *m);
void mf_engine_tick(struct memfs *m); /* one tick now: page tick, pressure events */

/* Weights and bandwidth (behaviour 1.10); notify MF_EVENT_WEIGHTS. */
int mf_engine_set_weight(struct memfs *m, int node, unsigned weight); /* -EINVAL */
unsigned mf_engine_weight(struct memfs *m, int node);
int mf_engine_set_auto(struct memfs *m, bool on); /* -ENODEV without bandwidth */
bool mf_engine_auto(struct memfs *m);
void mf_engine_set_bandwidth(struct memfs *m, int node, uint64_t mbps);
uint64_t mf_engine_bandwidth(struct memfs *m, int node);

/* Each report goes there, NULL: nowhere; set it while nothing else runs. */
void mf_engine_on_log(struct memfs *m, mf_engine_log_fn *log, void *arg);
/* The last report, if it is newer than *seen (0 at first), which is then up to date. */
bool mf_engine_new_report(struct memfs *m, uint64_t *seen, char *buf, size_t size);
/* The last report without its newline, cut at size; its whole length, 0: there was none. */
size_t mf_engine_last_report(struct memfs *m, char *buf, size_t size);

void mf_engine_notify(struct memfs *m, enum mf_event event);

/* Walks every structure of every engine: a line a violation, "ok" if none. */
void mf_engine_check(struct memfs *m, struct mf_outbuf *out);

#endif
