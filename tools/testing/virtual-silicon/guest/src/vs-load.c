// SPDX-License-Identifier: GPL-2.0
/*
 * vs-load: keep chosen CPUs busy for a time, count the work done, and mark
 * begin and end in the model's trace.
 *
 * One thread per CPU, pinned, runs units of a fixed number of dependent
 * integer operations: no memory, so that work per second is proportional to
 * the clock.  With a duty cycle below 100 % each period is part work, part
 * sleep; the share is of time, so the CPU idles for the rest at any frequency.
 * With units per period the share is of work: a slower clock leaves less idle.
 *
 * With -P a unit is 1000 PAUSE instead, as programs spin that wait for a lock.
 *
 * Output, one line per CPU: cpu units seconds units/s
 * With a mark also, per powercap zone: energy ZONE microjoules
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define UNIT_STEPS	100000		/* some 100 us at 2 GHz */
#define UNIT_PAUSES	1000
#define MARK_MSR	0x400000f0	/* software range: a mark in the trace */
#define NSEC		1000000000ll
#define MAX_CPUS	64
#define MAX_ZONES	16
#define POWERCAP	"/sys/class/powercap/"

struct worker {
	pthread_t thread;
	int cpu;
	uint64_t units;
	int64_t begin_ns, end_ns;
};

static struct {
	int64_t duration_ns;
	int64_t period_ns;
	uint64_t fixed_units;
	uint64_t period_units;
	int duty;
	int pause;
	long mark;
} options = { .duration_ns = NSEC, .period_ns = 10000000, .duty = 100, .mark = -1 };

static int64_t deadline_ns;

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC + ts.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / NSEC, .tv_nsec = ns % NSEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* Each step needs the result of the one before: the compiler cannot shorten it. */
static void one_unit(void)
{
	uint64_t x = 88172645463325252ull;

	if (options.pause) {
		for (int i = 0; i < UNIT_PAUSES / 20; i++)
			__asm__ volatile(".rept 20; pause; .endr");
		return;
	}
	for (int i = 0; i < UNIT_STEPS; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		__asm__ volatile("" : "+r"(x));
	}
}

static void work_until(struct worker *w, int64_t end)
{
	do {
		one_unit();
		w->units++;
	} while (now_ns() < end);
}

static void work_by_duty(struct worker *w)
{
	int64_t busy = options.period_ns * options.duty / 100;

	for (int64_t t = w->begin_ns; t < deadline_ns; t += options.period_ns) {
		work_until(w, t + busy);
		sleep_until(t + options.period_ns);
	}
}

/* A period that does not suffice for its work runs into the next. */
static void work_by_period(struct worker *w)
{
	for (int64_t t = w->begin_ns; t < deadline_ns; t += options.period_ns) {
		for (uint64_t i = 0; i < options.period_units; i++) {
			one_unit();
			w->units++;
		}
		sleep_until(t + options.period_ns);
	}
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(w->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		fprintf(stderr, "vs-load: cpu %d: %s\n", w->cpu, strerror(errno));
		exit(1);
	}
	w->begin_ns = now_ns();
	if (options.fixed_units)
		while (w->units < options.fixed_units) {
			one_unit();
			w->units++;
		}
	else if (options.period_units)
		work_by_period(w);
	else if (options.duty < 100)
		work_by_duty(w);
	else
		work_until(w, deadline_ns);
	w->end_ns = now_ns();
	return NULL;
}

/* Without the emulated CPU the register does not exist: then no mark is made. */
static void mark(long value)
{
	uint64_t word = value;
	int fd;

	if (value < 0)
		return;
	fd = open("/dev/cpu/0/msr", O_WRONLY);
	if (fd < 0 || pwrite(fd, &word, sizeof(word), MARK_MSR) != sizeof(word))
		fprintf(stderr, "vs-load: no mark: %s\n", strerror(errno));
	if (fd >= 0)
		close(fd);
}

struct zone {
	char path[128];
	long long begin_uj, end_uj, range_uj;
};

static struct zone zones[MAX_ZONES];
static int zone_count;

static long long read_number(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return atoll(text);
}

/* Zones are found before the first mark: the window must hold the load only. */
static void find_zones(void)
{
	glob_t found;

	if (options.mark < 0 || glob(POWERCAP "intel-rapl:*/energy_uj", 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc && i < MAX_ZONES; i++) {
		struct zone *z = &zones[zone_count++];
		char range[160];

		snprintf(z->path, sizeof(z->path), "%s", found.gl_pathv[i]);
		snprintf(range, sizeof(range), "%.*s/max_energy_range_uj",
			 (int)(strrchr(z->path, '/') - z->path), z->path);
		z->range_uj = read_number(range);
	}
	globfree(&found);
}

static void print_zones(void)
{
	for (struct zone *z = zones; z < zones + zone_count; z++) {
		long long used = z->end_uj - z->begin_uj;
		char *name = z->path + strlen(POWERCAP);

		if (used < 0)
			used += z->range_uj;
		printf("energy %.*s %lld\n", (int)strcspn(name, "/"), name, used);
	}
}

/* "0-3,6", "all" or "none" */
static int parse_cpus(const char *text, int *cpus)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	int count = 0;
	char *end;

	if (!strcmp(text, "none"))
		return 0;
	if (!strcmp(text, "all")) {
		for (; count < online && count < MAX_CPUS; count++)
			cpus[count] = count;
		return count;
	}
	for (;;) {
		long first = strtol(text, &end, 10), last = first;

		if (end == text)
			return -1;
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		for (long cpu = first; cpu <= last; cpu++) {
			if (cpu < 0 || cpu >= MAX_CPUS || count == MAX_CPUS)
				return -1;
			cpus[count++] = cpu;
		}
		if (*end != ',')
			return *end ? -1 : count;
		text = end + 1;
	}
}

static void usage(void)
{
	fprintf(stderr,
		"usage: vs-load [-c CPUS] [-t SECONDS | -u UNITS] [-d DUTY%% | -w UNITS]\n"
		"               [-p PERIOD_US] [-m MARK] [-P]\n"
		"  CPUS: a list like 0-3,6, 'all' (default) or 'none'\n"
		"  MARK: number for the model's trace at the begin; MARK+1 at the end\n");
	exit(2);
}

static void run(struct worker *workers, int count)
{
	mark(options.mark);
	for (int i = 0; i < zone_count; i++)
		zones[i].begin_uj = read_number(zones[i].path);
	deadline_ns = now_ns() + options.duration_ns;
	for (int i = 0; i < count; i++) {
		if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i])) {
			fprintf(stderr, "vs-load: cannot start a thread\n");
			exit(1);
		}
	}
	if (!count)
		sleep_until(deadline_ns);
	for (int i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < zone_count; i++)
		zones[i].end_uj = read_number(zones[i].path);
	mark(options.mark < 0 ? -1 : options.mark + 1);
}

int main(int argc, char **argv)
{
	static struct worker workers[MAX_CPUS];
	int cpus[MAX_CPUS], count = parse_cpus("all", cpus), opt;

	while ((opt = getopt(argc, argv, "c:t:u:d:w:p:m:P")) != -1) {
		switch (opt) {
		case 'c': count = parse_cpus(optarg, cpus); break;
		case 't': options.duration_ns = atof(optarg) * NSEC; break;
		case 'u': options.fixed_units = strtoull(optarg, NULL, 0); break;
		case 'd': options.duty = atoi(optarg); break;
		case 'w': options.period_units = strtoull(optarg, NULL, 0); break;
		case 'p': options.period_ns = atoll(optarg) * 1000; break;
		case 'm': options.mark = strtol(optarg, NULL, 0); break;
		case 'P': options.pause = 1; break;
		default: usage();
		}
	}
	if (count < 0 || optind != argc || options.duty < 1 || options.duty > 100 ||
	    options.duration_ns <= 0 || options.period_ns <= 0)
		usage();
	for (int i = 0; i < count; i++)
		workers[i].cpu = cpus[i];
	find_zones();
	run(workers, count);
	for (int i = 0; i < count; i++) {
		double seconds = (workers[i].end_ns - workers[i].begin_ns) / 1e9;

		printf("%d %llu %.6f %.1f\n", workers[i].cpu,
		       (unsigned long long)workers[i].units, seconds,
		       workers[i].units / seconds);
	}
	print_zones();
	return 0;
}
