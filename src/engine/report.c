/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the engines found wrong with their users: the last report, and whoever
 * wants each of them.
 *
 * A report comes from any thread and from inside signal handlers, so its maker
 * never waits: while another reports or somebody reads, it is told but not
 * kept.
 *
 * Locks: report.mutex, not ranked: nothing is called under it.
 */
#include "engine/engine_internal.h"

#include <string.h>

static void keep(struct memfs *m, const char *text, size_t length)
{
	if (length >= sizeof(m->report.last))
		length = sizeof(m->report.last) - 1;
	if (pthread_mutex_trylock(&m->report.mutex))
		return;
	m->report.nr++;
	memcpy(m->report.last, text, length);
	m->report.last[length] = '\0';
	pthread_mutex_unlock(&m->report.mutex);
}

/* For the log alone. */
static void on_notice(void *arg, const char *text)
{
	struct memfs *m = arg;
	mf_engine_log_fn *log = __atomic_load_n(&m->report.log, __ATOMIC_ACQUIRE);

	if (log)
		log(__atomic_load_n(&m->report.log_arg, __ATOMIC_RELAXED), text);
}

static void on_report(void *arg, const char *text)
{
	struct memfs *m = arg;

	keep(m, text, strcspn(text, "\n"));
	on_notice(m, text);
}

void mf_report_init(struct memfs *m)
{
	pthread_mutex_init(&m->report.mutex, NULL);
}

void mf_report_destroy(struct memfs *m)
{
	pthread_mutex_destroy(&m->report.mutex);
}

void mf_report_listen(struct memfs *m)
{
	mf_slabs_on_report(m->slabs, on_report, m);
	mf_slabs_on_notice(m->slabs, on_notice, m);
}

void mf_engine_on_log(struct memfs *m, mf_engine_log_fn *log, void *arg)
{
	__atomic_store_n(&m->report.log, NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&m->report.log_arg, arg, __ATOMIC_RELAXED);
	__atomic_store_n(&m->report.log, log, __ATOMIC_RELEASE);
}

bool mf_engine_new_report(struct memfs *m, uint64_t *seen, char *buf, size_t size)
{
	bool is_new;

	pthread_mutex_lock(&m->report.mutex);
	is_new = m->report.nr != *seen;
	*seen = m->report.nr;
	if (is_new)
		snprintf(buf, size, "%s", m->report.last);
	pthread_mutex_unlock(&m->report.mutex);
	return is_new;
}

size_t mf_engine_last_report(struct memfs *m, char *buf, size_t size)
{
	size_t length;

	pthread_mutex_lock(&m->report.mutex);
	length = strlen(m->report.last);
	if (size)
		snprintf(buf, size, "%s", m->report.last);
	pthread_mutex_unlock(&m->report.mutex);
	return length;
}
