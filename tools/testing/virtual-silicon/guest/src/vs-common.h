/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the programs for guests share: time, work, CPUs, small files, registers.
 *
 * It comes first in each program. What cannot go on ends with a line that says why,
 * and status 2, or what the program has for FAILED.
 */
#ifndef VS_COMMON_H
#define VS_COMMON_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NSEC		1000000000ll
#define MSEC		1000000ll
#define USEC		1000ll
#define MARK_MSR	0x400000f0	/* software range: a mark in the model's trace */
#define CPUS		"/sys/devices/system/cpu/"
#define PACKAGE_ENERGY	"/sys/class/powercap/intel-rapl:0/energy_uj"

#ifndef FAILED
#define FAILED		2
#endif

static inline void fail(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(FAILED);
}

static inline void usage(const char *arguments)
{
	fprintf(stderr, "usage: %s %s\n", program_invocation_short_name, arguments);
	exit(FAILED);
}

static inline int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC + t.tv_nsec;
}

static inline void sleep_until(int64_t ns)
{
	struct timespec t = { ns / NSEC, ns % NSEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static inline uint64_t next_random(uint64_t x)
{
	return x * 6364136223846793005ull + 1442695040888963407ull;
}

/* Of a generator of its own, so that each run has the same. */
static inline int64_t random_between(int64_t least, int64_t most)
{
	static uint64_t x = 1;

	x = next_random(x);
	return least + (x >> 33) % (most - least + 1);
}

/*
 * No memory, so that it is proportional to the clock. Each step needs the result of the
 * one before: the compiler cannot shorten it.
 */
static inline void work(long steps)
{
	uint64_t x = 88172645463325252ull;

	while (steps-- > 0) {
		x = next_random(x);
		__asm__ volatile("" : "+r"(x));
	}
}

static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("affinity");
}

static inline pthread_t start_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, run, arg);
	if (errno)
		fail("thread");
	return thread;
}

/* -1: the file cannot be read. */
static inline long long read_number(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY), n;

	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 ? atoll(text) : -1;
}

static inline void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail(path);
	close(fd);
}

/* For the governor userspace. */
static inline int open_setspeed(int cpu)
{
	char path[80];
	int fd;

	snprintf(path, sizeof(path), CPUS "cpu%d/cpufreq/scaling_setspeed", cpu);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		fail(path);
	return fd;
}

static inline void ask(int setspeed, long khz)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%ld", khz);

	if (pwrite(setspeed, text, n, 0) != n)
		fail("scaling_setspeed");
}

static inline int open_msr(int cpu, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/cpu/%d/msr", cpu);
	fd = open(path, flags);
	if (fd < 0)
		fail(path);
	return fd;
}

static inline uint64_t read_msr(int fd, uint32_t msr)
{
	uint64_t value;

	if (pread(fd, &value, sizeof(value), msr) != sizeof(value))
		fail("MSR");
	return value;
}

/* Without the emulated CPU the register does not exist: then no mark is made. */
static inline void mark(uint64_t value)
{
	int fd = open("/dev/cpu/0/msr", O_WRONLY);

	if (fd < 0 || pwrite(fd, &value, sizeof(value), MARK_MSR) != sizeof(value))
		fprintf(stderr, "%s: no mark: %s\n", program_invocation_short_name,
			strerror(errno));
	if (fd >= 0)
		close(fd);
}

static inline int ascending_ns(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static inline int ascending_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

#endif /* VS_COMMON_H */
