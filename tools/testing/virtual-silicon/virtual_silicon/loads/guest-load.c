// SPDX-License-Identifier: GPL-2.0
/*
 * Loads on each CPU of a list; they end after a number of seconds.
 *
 *	guest-load bursts CPUS SECONDS MAX	busy for up to MAX ms, asleep for up to MAX ms
 *	guest-load work CPUS SECONDS MAX	the same, but the work of up to MAX ms at the top
 *	guest-load noise CPUS SECONDS PERCENT	work in each 10 ms, CPU by CPU a little more,
 *						each time up to 0.7 % more or less
 *	guest-load every CPUS SECONDS MS PERIOD	the work of MS in each PERIOD ms
 *	guest-load timed CPUS SECONDS MS PERIOD	the same, but busy for MS at any frequency
 *
 * Output: bursts or periods; of "every" and "timed", mJ of the first package
 * in the first LEARNT periods and afterwards.
 */
#include "vs-common.h"

#include <stdbool.h>

#define MAX_CPUS	64
#define LEARNT		5
#define STEPS_MS	118000		/* at 3.8 GHz */

struct worker {
	pthread_t thread;
	int cpu, number;
	uint64_t seed;
	long count;
};

static const char *mode;
static int64_t end_ns;
static double size, length;
static int64_t learnt_uj;

/* 0 to 1 */
static double chance(struct worker *w)
{
	w->seed = next_random(w->seed);
	return (double)(w->seed >> 40) / (1 << 24);
}

static void busy_until(int64_t ns)
{
	while (now_ns() < ns)
		work(100);
}

static void burst(struct worker *w, int64_t begin)
{
	double ms = chance(w) * size;

	if (!strcmp(mode, "work"))
		work(ms * STEPS_MS);
	else
		busy_until(begin + ms * MSEC);
	sleep_until(now_ns() + chance(w) * size * MSEC);
}

static void period(struct worker *w, int64_t begin)
{
	double share = (size + 0.4 * w->number) / 100 * (1 + 0.014 * (chance(w) - 0.5));

	work(share * 10 * STEPS_MS);
	sleep_until(begin + 10 * MSEC);
}

static int64_t energy_uj(void)
{
	int64_t uj = read_number(PACKAGE_ENERGY);

	if (uj < 0)
		fail(PACKAGE_ENERGY);
	return uj;
}

static void every(struct worker *w, int64_t begin)
{
	if (!strcmp(mode, "timed"))
		busy_until(begin + size * MSEC);
	else
		work(size * STEPS_MS);
	sleep_until(begin + length * MSEC);
	if (w->number == 0 && w->count + 1 == LEARNT)
		learnt_uj = energy_uj();
}

static bool metered(void)
{
	return !strcmp(mode, "every") || !strcmp(mode, "timed");
}

static void *run(void *data)
{
	struct worker *w = data;
	int64_t now;

	pin(w->cpu);
	for (; (now = now_ns()) < end_ns; w->count++) {
		if (!strcmp(mode, "noise"))
			period(w, now);
		else if (metered())
			every(w, now);
		else
			burst(w, now);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct worker workers[MAX_CPUS] = { };
	int64_t begin_uj = 0;
	int i, n = 0;
	char *cpu;

	if (argc < 5)
		usage("bursts|work|noise|every|timed CPUS SECONDS SIZE [PERIOD]");
	mode = argv[1];
	end_ns = now_ns() + atof(argv[3]) * NSEC;
	size = atof(argv[4]);
	length = argc > 5 ? atof(argv[5]) : 0;
	if (metered())
		begin_uj = energy_uj();
	for (cpu = strtok(argv[2], ","); cpu && n < MAX_CPUS; cpu = strtok(NULL, ","), n++)
		workers[n] = (struct worker){ .cpu = atoi(cpu), .number = n, .seed = 77 + n };
	for (i = 0; i < n; i++)
		workers[i].thread = start_thread(run, &workers[i]);
	for (i = 0; i < n; i++)
		pthread_join(workers[i].thread, NULL);
	if (metered())
		return printf("%.3f %.3f\n", (learnt_uj - begin_uj) / 1e3,
			      (energy_uj() - learnt_uj) / 1e3), 0;
	for (i = 1; i < n; i++)
		workers[0].count += workers[i].count;
	printf("%ld\n", workers[0].count);
	return 0;
}
