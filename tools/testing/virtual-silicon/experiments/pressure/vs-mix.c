// SPDX-License-Identifier: GPL-2.0
/*
 * vs-mix: tasks beside each other, some tied to a CPU, some free.
 *
 *	vs-mix [-t MS] [-m MARK] [-d] TASK...
 *
 * TASK is PLACE:UNITS:PERIOD_US. PLACE is a CPU or "any"; 0 units is a task that never
 * sleeps. Output, a line per task: place, units done, periods, periods that were not
 * done in time, mean response in us, moves from package to package (CPUs 0-3, 4-7).
 * -d: while they run, how many reservations of 30 ms in 100 SCHED_DEADLINE admits.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NSEC 1000000000ll
#define MAX_TASKS 64

static struct task {
	pthread_t thread;
	int cpu, units;
	long done, periods, late, moves;
	int64_t period_ns, response_ns;
} tasks[MAX_TASKS];

static int64_t end_ns;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC + t.tv_nsec;
}

static void unit(void)
{
	uint64_t x = 88172645463325252ull;

	for (int i = 0; i < 1000; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		__asm__ volatile("" : "+r"(x));
	}
}

static void *run(void *arg)
{
	struct task *t = arg;
	int package = sched_getcpu() / 4;
	int64_t begin = now_ns();
	cpu_set_t set;

	if (t->cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET(t->cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	for (int64_t next = begin, now = begin; now < end_ns; t->periods++) {
		for (int i = 0; i < (t->units ?: 10); i++)
			unit();
		t->done += t->units ?: 10;
		now = now_ns();
		if (sched_getcpu() / 4 != package) {
			package = sched_getcpu() / 4;
			t->moves++;
		}
		if (!t->units)
			continue;
		t->response_ns += now - next;
		next += t->period_ns;
		t->late += now > next;
		if (now < next) {
			struct timespec s = { next / NSEC, next % NSEC };

			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &s, NULL);
		}
		now = now_ns();
	}
	return NULL;
}

static void mark(long value)
{
	uint64_t word = value;
	int fd = open("/dev/cpu/0/msr", O_WRONLY);

	if (fd < 0 || pwrite(fd, &word, sizeof(word), 0x400000f0) != sizeof(word))
		exit(1);
	close(fd);
}

static int admitted(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} a = { sizeof(a), 6, 0, 0, 0, 30000000, 100000000, 100000000 };
	pid_t pids[64];
	int n = 0;

	for (; n < 64; n++) {
		pid_t pid = fork();

		if (!pid)
			for (;;)
				pause();
		if (syscall(SYS_sched_setattr, pid, &a, 0)) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			break;
		}
		pids[n] = pid;
	}
	for (int i = 0; i < n; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	return n;
}

int main(int argc, char **argv)
{
	int c, n = 0, dl = 0, ms = 300;
	long at = -1;

	while ((c = getopt(argc, argv, "t:m:d")) != -1) {
		switch (c) {
		case 't': ms = atoi(optarg); break;
		case 'm': at = atol(optarg); break;
		case 'd': dl = 1; break;
		default: return 2;
		}
	}
	for (; optind < argc && n < MAX_TASKS; optind++, n++) {
		char *rest = argv[optind];
		struct task *t = &tasks[n];

		t->cpu = *rest == 'a' ? -1 : atoi(rest);
		rest = strchr(rest, ':');
		t->units = strtol(rest + 1, &rest, 10);
		t->period_ns = strtol(rest + 1, &rest, 10) * 1000;
	}
	if (at >= 0)
		mark(at);
	end_ns = now_ns() + ms * 1000000ll;
	for (int i = 0; i < n; i++)
		pthread_create(&tasks[i].thread, NULL, run, &tasks[i]);
	if (dl) {
		usleep(ms * 500);
		printf("admitted %d\n", admitted());
	}
	for (int i = 0; i < n; i++)
		pthread_join(tasks[i].thread, NULL);
	if (at >= 0)
		mark(at + 1);
	for (int i = 0; i < n; i++) {
		struct task *t = &tasks[i];

		printf("%d %ld %ld %ld %.0f %ld\n", t->cpu, t->done, t->periods, t->late,
		       t->units ? t->response_ns / 1e3 / t->periods : 0, t->moves);
	}
	return 0;
}
