// SPDX-License-Identifier: GPL-2.0
/*
 * Preloaded into turbostat where there are no performance counters: the events of C0.1
 * and C0.2 have the clocks of idle state 1, as sysfs tells its time, at KHZ; C0.1 a
 * quarter of them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define C01	0x10ec
#define C02	0x20ec
#define FDS	1024

static struct { int cpu; unsigned int config; } event[FDS];

long syscall(long number, ...)
{
	long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);

	if (number == __NR_perf_event_open) {
		const struct perf_event_attr *attr = (const void *)a[0];

		/* Without these 7.3 asks for no others. */
		if (attr->type == PERF_TYPE_HARDWARE)
			return open("/dev/null", O_RDONLY);
		if (attr->type == PERF_TYPE_RAW && (attr->config == C01 || attr->config == C02)) {
			const int fd = open("/dev/null", O_RDONLY);

			event[fd].cpu = (int)a[2];
			event[fd].config = attr->config;
			return fd;
		}
	}
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

ssize_t read(int fd, void *buffer, size_t size)
{
	unsigned long long us = 0;
	char path[80];
	FILE *file;

	if (fd < 0 || fd >= FDS || !event[fd].config)
		return syscall(__NR_read, fd, buffer, size, 0, 0, 0);

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpuidle/state1/time",
		 event[fd].cpu);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%llu", &us) != 1)
		abort();
	fclose(file);
	*(unsigned long long *)buffer = us * KHZ / 1000 / (event[fd].config == C01 ? 4 : 1);
	return sizeof(us);
}
