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
#include "vs-common.h"

#include <getopt.h>
#include <glob.h>

#define UNIT_STEPS	100000		/* some 100 us at 2 GHz */
#define UNIT_PAUSES	1000
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
	uint64_t period_units;
	int duty;
	int pause;
	long mark;
} options = { .duration_ns = NSEC, .period_ns = 10000000, .duty = 100, .mark = -1 };

static int64_t deadline_ns;

static void one_unit(struct worker *w)
{
	if (options.pause) {
		for (int i = 0; i < UNIT_PAUSES / 20; i++)
			__asm__ volatile(".rept 20; pause; .endr");
	} else {
		work(UNIT_STEPS);
	}
	w->units++;
}

static void work_until(struct worker *w, int64_t end)
{
	do {
		one_unit(w);
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
		for (uint64_t i = 0; i < options.period_units; i++)
			one_unit(w);
		sleep_until(t + options.period_ns);
	}
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	pin(w->cpu);
	w->begin_ns = now_ns();
	if (options.period_units)
		work_by_period(w);
	else if (options.duty < 100)
		work_by_duty(w);
	else
		work_until(w, deadline_ns);
	w->end_ns = now_ns();
	return NULL;
}

struct zone {
	char path[128];
	long long begin_uj, end_uj, range_uj;
};

static struct zone zones[MAX_ZONES];
static int zone_count;

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

static const char arguments[] =
	"[-c CPUS] [-t SECONDS] [-d DUTY% | -w UNITS]\n"
	"               [-p PERIOD_US] [-m MARK] [-P]\n"
	"  CPUS: a list like 0-3,6, 'all' (default) or 'none'\n"
	"  MARK: number for the model's trace at the begin; MARK+1 at the end";

static void run(struct worker *workers, int count)
{
	if (options.mark >= 0)
		mark(options.mark);
	for (int i = 0; i < zone_count; i++)
		zones[i].begin_uj = read_number(zones[i].path);
	deadline_ns = now_ns() + options.duration_ns;
	for (int i = 0; i < count; i++)
		workers[i].thread = start_thread(worker_main, &workers[i]);
	if (!count)
		sleep_until(deadline_ns);
	for (int i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < zone_count; i++)
		zones[i].end_uj = read_number(zones[i].path);
	if (options.mark >= 0)
		mark(options.mark + 1);
}

int main(int argc, char **argv)
{
	static struct worker workers[MAX_CPUS];
	int cpus[MAX_CPUS], count = parse_cpus("all", cpus), opt;

	while ((opt = getopt(argc, argv, "c:t:d:w:p:m:P")) != -1) {
		switch (opt) {
		case 'c': count = parse_cpus(optarg, cpus); break;
		case 't': options.duration_ns = atof(optarg) * NSEC; break;
		case 'd': options.duty = atoi(optarg); break;
		case 'w': options.period_units = strtoull(optarg, NULL, 0); break;
		case 'p': options.period_ns = atoll(optarg) * 1000; break;
		case 'm': options.mark = strtol(optarg, NULL, 0); break;
		case 'P': options.pause = 1; break;
		default: usage(arguments);
		}
	}
	if (count < 0 || optind != argc || options.duty < 1 || options.duty > 100 ||
	    options.duration_ns <= 0 || options.period_ns <= 0)
		usage(arguments);
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
