/* SPDX-License-Identifier: GPL-2.0 */
/* Registers, clocks and kernel messages, for the tests of frequency invariance. */
#ifndef COUNTERS_H
#define COUNTERS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <cpuid.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "../kselftest.h"

#define MSR_PLATFORM_INFO	0xce
#define MSR_MPERF		0xe7
#define MSR_APERF		0xe8
#define MSR_MISC_ENABLE		0x1a0

static bool access_msr(int cpu, uint32_t msr, uint64_t *value, bool write)
{
	char name[32];
	ssize_t done;
	int fd;

	snprintf(name, sizeof(name), "/dev/cpu/%d/msr", cpu);
	fd = open(name, write ? O_WRONLY : O_RDONLY);
	if (fd < 0)
		return false;

	done = write ? pwrite(fd, value, 8, msr) : pread(fd, value, 8, msr);
	close(fd);
	return done == 8;
}

static inline bool read_msr(int cpu, uint32_t msr, uint64_t *value)
{
	return access_msr(cpu, msr, value, false);
}

static inline bool write_msr(int cpu, uint32_t msr, uint64_t value)
{
	return access_msr(cpu, msr, &value, true);
}

static inline bool has_aperfmperf(void)
{
	unsigned int eax, ebx, ecx = 0, edx;

	return __get_cpuid(6, &eax, &ebx, &ecx, &edx) && ecx & 1;
}

/* Skip a test that compares with the counters if something it needs is missing */
static inline void need_counters(void)
{
	uint64_t value;

	if (!has_aperfmperf())
		ksft_exit_skip("the CPU has no APERF and MPERF\n");
	if (!read_msr(0, MSR_MPERF, &value) || !read_msr(0, MSR_APERF, &value))
		ksft_exit_skip("/dev/cpu/0/msr cannot be read (root? CONFIG_X86_MSR?)\n");
}

static inline void wait_ms(unsigned int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

static inline double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* MPERF counts at the rate of the TSC */
static inline double tsc_khz(void)
{
	double start = seconds();
	uint64_t tsc = __rdtsc();

	wait_ms(100);
	return (__rdtsc() - tsc) / (seconds() - start) / 1e3;
}

/* The kernel's messages so far, to be freed */
static inline char *kernel_log(void)
{
	int size = klogctl(10 /* SYSLOG_ACTION_SIZE_BUFFER */, NULL, 0);
	char *text = size < 0 ? NULL : calloc(1, size + 1);

	if (!text || klogctl(3 /* SYSLOG_ACTION_READ_ALL */, text, size) < 0)
		ksft_exit_skip("the kernel's messages cannot be read (root?)\n");
	return text;
}

/* Skip if it was switched off at boot */
static inline void need_invariance(void)
{
	char *text = kernel_log();
	bool off = strstr(text, "freq_invariance: off, freq_max=off");

	free(text);
	if (off)
		ksft_exit_skip("aperfmperf.freq_max=off: there is no invariance to test\n");
}

/* A CPU kept busy while others look at it */
struct load {
	pthread_t thread;
	int cpu;
	atomic_bool stop;
};

static inline void *load_thread(void *data)
{
	struct load *load = data;

	while (!load->stop)
		;
	return NULL;
}

static inline void start_load(struct load *load, int cpu)
{
	pthread_attr_t attr;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(set), &set);

	load->cpu = cpu;
	load->stop = false;
	if (pthread_create(&load->thread, &attr, load_thread, load))
		ksft_exit_fail_msg("no load on CPU %d\n", cpu);
	pthread_attr_destroy(&attr);
}

static inline void stop_load(struct load *load)
{
	load->stop = true;
	pthread_join(load->thread, NULL);
}

/* Stay off the CPUs that are looked at, as far as there are others */
static inline void keep_off(int cpu)
{
	cpu_set_t set;
	int i, n = sysconf(_SC_NPROCESSORS_CONF);

	CPU_ZERO(&set);
	for (i = 0; i < n; i++) {
		if (i != cpu)
			CPU_SET(i, &set);
	}
	sched_setaffinity(0, sizeof(set), &set);
}

/* What scaling_cur_freq says, in kHz; 0 if there is no such file */
static inline double sysfs_khz(int cpu)
{
	double khz = 0;
	char name[80];
	FILE *file;

	snprintf(name, sizeof(name),
		 "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu);
	file = fopen(name, "r");
	if (!file)
		return 0;
	if (fscanf(file, "%lf", &khz) != 1)
		khz = 0;
	fclose(file);
	return khz;
}

/* What /proc/cpuinfo says, in kHz; 0 if it does not */
static inline double cpuinfo_khz(int cpu)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	double mhz = 0, khz = 0;
	int current = -1;
	char line[4096];

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "processor : %d", &current) == 1)
			continue;
		if (current == cpu && sscanf(line, "cpu MHz : %lf", &mhz) == 1)
			khz = mhz * 1000;
	}
	fclose(file);
	return khz;
}

static inline int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* APERF and MPERF at the same time, or nearly so */
struct pair {
	uint64_t aperf;
	uint64_t mperf;
};

/*
 * Each register is a system call and an interrupt of the other CPU. APERF is
 * read between two reads of MPERF; of some attempts the quickest counts.
 */
static inline bool read_pair(int cpu, struct pair *pair)
{
	uint64_t aperf, before, after, least = UINT64_MAX;
	int try;

	for (try = 0; try < 8; try++) {
		if (!read_msr(cpu, MSR_MPERF, &before) ||
		    !read_msr(cpu, MSR_APERF, &aperf) ||
		    !read_msr(cpu, MSR_MPERF, &after))
			return false;
		if (after - before < least) {
			least = after - before;
			pair->aperf = aperf;
			pair->mperf = before + least / 2;
		}
	}
	return true;
}

#define LOOKS	11

/*
 * How far a reading of the frequency is from what the counters say around it.
 * The load must have run for a while, so that the clock has settled. A change of
 * the clock or other work can spoil a single reading, so take the median of many.
 * Returns the relative error, or 1 if there was nothing to read.
 */
static inline double frequency_error(int cpu, double base_khz, double (*khz)(int cpu))
{
	double error[LOOKS], read, real;
	struct pair before = {}, after = {};
	int i;

	for (i = 0; i < LOOKS; i++) {
		if (!read_pair(cpu, &before))
			return 1;
		wait_ms(60);
		read = khz(cpu);
		if (!read_pair(cpu, &after))
			return 1;
		real = base_khz * (after.aperf - before.aperf) /
		       (after.mperf - before.mperf);
		error[i] = read > real ? read / real - 1 : 1 - read / real;
	}

	qsort(error, LOOKS, sizeof(error[0]), by_size);
	return error[LOOKS / 2];
}

#endif /* COUNTERS_H */
