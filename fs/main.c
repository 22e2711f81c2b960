/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memfs, the program: from the command line to a mounted tree and back.
 *
 * Order of a start: options, heal the mount point, fork (unless -f), engine,
 * session, mount, threads, report to the waiting parent, serve.  The engine and
 * all threads belong to the process that serves.  Order of an end: the workers
 * stop, waiting commands are cancelled and reply, the connection is cut, the
 * notifier is joined, then session, inodes and engine are freed.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "commands.h"
#include "fs.h"
#include "notify.h"

#include "engine/engine.h"
#include "plat/plat.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>
#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

/* More of them only add wake-ups across CPUs, up to three times the latency; what waits has its own thread. */
#define MAX_WORKERS 2
#define READY_MARK "\n" /* what the parent waits for; reasons of a failure never start with it */

static bool log_to_syslog;		     /* set once, before the mount serves in the background */
static struct fuse_session *ended_by_signal; /* what the signal handler ends */
static volatile sig_atomic_t got_signal;

static void vlog(int priority, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
static void vlog(int priority, const char *format, va_list args)
{
	char line[512];
	size_t length;

	if (log_to_syslog) {
		vsyslog(priority, format, args);
		return;
	}
	vsnprintf(line, sizeof(line), format, args);
	length = strlen(line);
	fprintf(stderr, "memfs: %s%s", line, length && line[length - 1] == '\n' ? "" : "\n");
}

void fs_log(int priority, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vlog(priority, format, args);
	va_end(args);
}

/* What the engine found its users do wrong. */
static void log_of_engine(void *arg, const char *line)
{
	(void)arg;
	fs_log(LOG_WARNING, "%s", line);
}

static void log_of_libfuse(enum fuse_log_level level, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));
static void log_of_libfuse(enum fuse_log_level level, const char *format, va_list args)
{
	if (level <= FUSE_LOG_WARNING)
		vlog((int)level, format, args);
}

int fs_thread_start(void *(*run)(void *), void *arg, pthread_t *joinable)
{
	sigset_t all, old;
	pthread_t thread;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	error = pthread_create(&thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error)
		return -error;
	if (joinable)
		*joinable = thread;
	else
		pthread_detach(thread);
	return 0;
}

/* libfuse may be between its look at the mark and its sleep: the alarm interrupts that too. */
static void end_by_signal(int number)
{
	got_signal = number;
	fuse_session_exit(ended_by_signal);
	alarm(1);
}

static void handle_signals(void)
{
	struct sigaction action = { .sa_handler = end_by_signal };

	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
}

static void ending_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGALRM);
}

static int create_engine(const struct fs_options *options, struct memfs **out, char *why, size_t why_size)
{
	struct mf_plat *plat;
	int error = mf_plat_host_create(&plat);

	if (error) {
		snprintf(why, why_size, "the host's memory cannot be used: %s", strerror(-error));
		return error;
	}
	snprintf(why, why_size, "the engine cannot be built");
	error = mf_engine_create(options->engine, plat, out, why, why_size);
	if (error)
		plat->ops->destroy(plat);
	return error;
}

static struct fuse_session *create_session(struct fs *fs)
{
	char program[] = "memfs", option[] = "-o", words[256];
	char *argv[] = { program, option, words, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	struct fuse_session *se;

	snprintf(words, sizeof(words),
		 "allow_other,default_permissions,nosuid,nodev,noexec,fsname=memfs,subtype=memfs%s",
		 fs->options->read_only ? ",ro" : "");
	se = fuse_session_new(&args, &fs_ops, sizeof(fs_ops), fs);
	fuse_opt_free_args(&args); /* libfuse copies what it keeps */
	return se;
}

static int create_parts(struct fs *fs, char *why, size_t why_size)
{
	struct mf_ctl_node live_dir;
	int error;

	error = create_engine(fs->options, &fs->m, why, why_size);
	if (error)
		return error;
	snprintf(why, why_size, "the file system cannot be built");
	mf_engine_on_log(fs->m, log_of_engine, NULL);
	clock_gettime(CLOCK_REALTIME, &fs->mounted_at);
	mf_ctl_root(fs->m, &fs->root);
	error = mf_ctl_resolve(fs->m, mf_text_of("live"), &live_dir);
	if (error)
		return error;
	fs->live_dir = live_dir.inode;
	error = fs_inodes_init(fs);
	if (!error)
		error = fs_notify_create(fs);
	if (!error)
		error = fs_commands_create(fs);
	if (error)
		return error;
	fs->se = create_session(fs);
	if (!fs->se)
		return -ENOMEM;
	if (fuse_session_mount(fs->se, fs->options->mountpoint)) {
		snprintf(why, why_size, "%s: cannot be mounted", fs->options->mountpoint);
		return -EIO;
	}
	return 0;
}

static void destroy_parts(struct fs *fs)
{
	if (fs->se) {
		fuse_session_unmount(fs->se);
		fuse_session_destroy(fs->se);
	}
	fs_commands_destroy(fs);
	fs_notify_destroy(fs);
	fs_handles_destroy(fs);
	if (fs->inodes.nr_buckets)
		fs_inodes_destroy(fs);
	if (fs->m)
		mf_engine_destroy(fs->m);
}

/* Tells whoever waits that the tree can be used. */
static void report_ready(int ready_fd)
{
	int null_fd;

	if (ready_fd >= 0) {
		log_to_syslog = true;
		openlog("memfs", LOG_PID, LOG_DAEMON);
		if (chdir("/"))
			fs_log(LOG_WARNING, "cannot leave the folder the daemon was started in: %m");
		null_fd = open("/dev/null", O_RDWR);
		for (int fd = 0; null_fd >= 0 && fd <= 2; fd++)
			dup2(null_fd, fd);
		if (null_fd > 2)
			close(null_fd);
		if (write(ready_fd, READY_MARK, 1) != 1)
			fs_log(LOG_WARNING, "the starting process has gone");
		close(ready_fd);
	}
#ifdef HAVE_SYSTEMD
	sd_notify(0, "READY=1");
#endif
}

static int loop(struct fs *fs)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int result;

	if (!config)
		return -ENOMEM;
	fuse_loop_cfg_set_clone_fd(config, 0);
	fuse_loop_cfg_set_max_threads(config, MAX_WORKERS);
	result = fuse_session_loop_mt(fs->se, config);
	fuse_loop_cfg_destroy(config);
	return result;
}

/* From a mounted session to its end; the exit status. */
static int run(struct fs *fs, int ready_fd)
{
	sigset_t ending;
	int result;

	ending_signals(&ending);
	ended_by_signal = fs->se;
	handle_signals();
	report_ready(ready_fd);
	pthread_sigmask(SIG_UNBLOCK, &ending, NULL);
	result = loop(fs);
	pthread_sigmask(SIG_BLOCK, &ending, NULL);
	alarm(0);
	fs_notify_ask_stop(fs);
	fs_commands_finish(fs);
	fs_mount_cut(fs->se, fs->options->mountpoint);
	fs_notify_stop(fs);
	if (got_signal || result >= 0)
		return EXIT_SUCCESS;
	fs_log(LOG_ERR, "the connection to the kernel broke: %s", strerror(-result));
	return EXIT_FAILURE;
}

static int fail(int ready_fd, const char *why)
{
	if (ready_fd < 0)
		fprintf(stderr, "memfs: %s\n", why);
	else if (write(ready_fd, why, strlen(why)) < 0)
		fs_log(LOG_ERR, "%s", why);
	return EXIT_FAILURE;
}

/* Builds, mounts, serves and ends; @ready_fd -1 in the foreground. */
static int serve(const struct fs_options *options, int ready_fd)
{
	struct fs fs = { .options = options };
	char why[512];
	sigset_t ending;
	int status;

	fs_handles_init(&fs);
	/* No thread but this one may take the ending signals: they must interrupt its loop. */
	ending_signals(&ending);
	pthread_sigmask(SIG_BLOCK, &ending, NULL);
	fuse_set_log_func(log_of_libfuse);
	status = create_parts(&fs, why, sizeof(why));
	if (!status) {
		snprintf(why, sizeof(why), "a thread cannot be started");
		status = fs_notify_start(&fs);
		if (!status)
			status = mf_engine_start_ticker(fs.m);
		if (status)
			fs_mount_cut(fs.se, options->mountpoint);
		if (status && fs.notify)
			fs_notify_stop(&fs);
	}
	status = status ? fail(ready_fd, why) : run(&fs, ready_fd);
	destroy_parts(&fs);
	return status;
}

/* The parent of a daemon: waits until the tree is mounted, or says why it is not. */
static int wait_until_ready(int fd, pid_t daemon)
{
	char why[600];
	size_t length = 0;
	ssize_t got;

	while (length < sizeof(why) - 1) {
		got = read(fd, why + length, sizeof(why) - 1 - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
		if (why[0] == READY_MARK[0])
			return EXIT_SUCCESS;
	}
	why[length] = '\0';
	waitpid(daemon, NULL, 0);
	fprintf(stderr, "memfs: %s\n", length ? why : "the daemon ended before the tree was mounted");
	return EXIT_FAILURE;
}

static int serve_in_background(const struct fs_options *options)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC)) {
		fprintf(stderr, "memfs: no pipe: %s\n", strerror(errno));
		return EXIT_FAILURE;
	}
	pid = fork();
	if (pid < 0) {
		fprintf(stderr, "memfs: no process: %s\n", strerror(errno));
		return EXIT_FAILURE;
	}
	if (pid > 0) {
		close(fds[1]);
		return wait_until_ready(fds[0], pid);
	}
	close(fds[0]);
	setsid();
	return serve(options, fds[1]);
}

int main(int argc, char **argv)
{
	struct fs_options options;
	char why[PATH_MAX + 128];
	int status = fs_options_parse(argc, argv, &options);

	if (status < 0 && fs_mount_heal(options.mountpoint, why, sizeof(why))) {
		fprintf(stderr, "memfs: %s\n", why);
		status = EXIT_FAILURE;
	}
	if (status < 0)
		status = options.foreground ? serve(&options, -1) : serve_in_background(&options);
	fs_options_free(&options);
	return status;
}
