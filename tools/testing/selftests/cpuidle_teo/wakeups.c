// SPDX-License-Identifier: GPL-2.0
/*
 * Idle governors under loads that wake a CPU regularly, and without load: wake-ups,
 * time in the deepest state and wrong choices by cpuidle's own counters in sysfs,
 * under teo and, to compare, under menu.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../kselftest.h"

#define SYSFS		"/sys/devices/system/cpu"
#define GOVERNOR	SYSFS "/cpuidle/current_governor"
#define MAX_STATES	10
#define SECONDS		4
#define SETTLE_SECONDS	2
#define SLEEPERS	10

/* The CPU that is watched; another one wakes it up. */
#define WATCHED		1
#define WAKER		0

struct counters {
	int nr;
	unsigned long long usage[MAX_STATES], time_us[MAX_STATES];
	unsigned long long above, below1;
	struct timespec when;
};

/* The result of a load, per second or in percent. */
struct outcome {
	double wakeups, deepest, above, shallow1;
};

static atomic_bool stop_load;
static sem_t remote;

static bool read_text(const char *path, char *text, int size)
{
	FILE *in = fopen(path, "r");
	bool good = in && fgets(text, size, in);

	if (in)
		fclose(in);
	return good;
}

static bool write_text(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");
	bool good = out && fputs(text, out) >= 0;

	if (out && fclose(out))
		good = false;
	return good;
}

static unsigned long long read_counter(int state, const char *name)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), SYSFS "/cpu%d/cpuidle/state%d/%s", WATCHED,
		 state, name);
	return read_text(path, text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
}

static int count_states(void)
{
	char path[128];
	struct stat st;
	int nr;

	for (nr = 0; nr < MAX_STATES; nr++) {
		snprintf(path, sizeof(path), SYSFS "/cpu%d/cpuidle/state%d",
			 WATCHED, nr);
		if (stat(path, &st))
			break;
	}
	return nr;
}

static void pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* An idle time counts when it ends: the watched CPU is woken first. */
static void read_counters(struct counters *c)
{
	int i;

	pin_to(WATCHED);
	pin_to(0);
	memset(c, 0, sizeof(*c));
	c->nr = count_states();
	for (i = 0; i < c->nr; i++) {
		c->usage[i] = read_counter(i, "usage");
		c->time_us[i] = read_counter(i, "time");
		c->above += read_counter(i, "above");
	}
	c->below1 = read_counter(1, "below");
	clock_gettime(CLOCK_MONOTONIC, &c->when);
}

static struct outcome compare(const struct counters *a, const struct counters *b)
{
	double usage = 0, time_us = 0, seconds;
	int i, deepest = 0;

	for (i = 0; i < a->nr; i++) {
		usage += b->usage[i] - a->usage[i];
		time_us += b->time_us[i] - a->time_us[i];
		if (!read_counter(i, "disable"))
			deepest = i;
	}
	seconds = b->when.tv_sec - a->when.tv_sec +
		  (b->when.tv_nsec - a->when.tv_nsec) / 1e9;

	return (struct outcome) {
		.wakeups = usage / seconds,
		.deepest = 100 * (b->time_us[deepest] - a->time_us[deepest]) /
			   (time_us > 0 ? time_us : 1),
		.above = (b->above - a->above) / seconds,
		.shallow1 = 100 * (b->below1 - a->below1) / (usage > 0 ? usage : 1),
	};
}

static void next_period(struct timespec *when, int hz)
{
	when->tv_nsec += 1000000000 / hz;
	if (when->tv_nsec >= 1000000000) {
		when->tv_nsec -= 1000000000;
		when->tv_sec++;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, when, NULL);
}

/* Short work at a rate. */
static void *periodic(void *hz)
{
	struct timespec when;

	pin_to(WATCHED);
	clock_gettime(CLOCK_MONOTONIC, &when);
	while (!stop_load)
		next_period(&when, (long)hz);
	return NULL;
}

/* The same, when another CPU says so. */
static void *woken(void *hz)
{
	(void)hz;
	pin_to(WATCHED);
	while (!stop_load)
		sem_wait(&remote);
	return NULL;
}

static void *wake(void *hz)
{
	struct timespec when;

	pin_to(WAKER);
	clock_gettime(CLOCK_MONOTONIC, &when);
	while (!stop_load) {
		next_period(&when, (long)hz);
		sem_post(&remote);
	}
	sem_post(&remote);
	return NULL;
}

/* Sleeps for 1 to 20 ms, at random. */
static void *sleeper(void *arg)
{
	unsigned int seed = (unsigned long)arg;

	pin_to(WATCHED);
	while (!stop_load)
		usleep(1000 + rand_r(&seed) % 19000);
	return NULL;
}

/* A load is one or more threads; without any, the CPU is idle. */
struct load {
	const char *name;
	int hz;
	void *(*thread)(void *arg);
	int threads;
};

static struct outcome watch(const char *governor, const struct load *load)
{
	pthread_t threads[SLEEPERS], waker;
	struct counters before, after;
	struct outcome out;
	long i;

	write_text(GOVERNOR, governor);
	stop_load = false;
	for (i = 0; i < load->threads; i++)
		pthread_create(&threads[i], NULL, load->thread, (void *)(load->hz ?: i + 1));
	if (load->thread == woken)
		pthread_create(&waker, NULL, wake, (void *)(long)load->hz);

	sleep(SETTLE_SECONDS);
	read_counters(&before);
	sleep(SECONDS);
	read_counters(&after);
	out = compare(&before, &after);

	stop_load = true;
	if (load->thread == woken)
		pthread_join(waker, NULL);
	for (i = 0; i < load->threads; i++)
		pthread_join(threads[i], NULL);
	ksft_print_msg("%-5s %-15s %6.1f wake-ups/s, deepest %6.2f %%, ", governor, load->name,
		       out.wakeups, out.deepest);
	printf("too deep %5.1f/s, state 1 too shallow %4.1f %%\n", out.above, out.shallow1);
	return out;
}

/* Enable only this many states, from state 0 on; false if there are fewer. */
static bool enable_states(int nr)
{
	char path[128];
	int i, have = count_states();

	for (i = 0; i < have; i++) {
		snprintf(path, sizeof(path), SYSFS "/cpu%d/cpuidle/state%d/disable",
			 WATCHED, i);
		write_text(path, i < nr ? "0" : "1");
	}
	return nr <= have;
}

/* Left by itself after a while: POLL, C0.1 and C0.2 */
static bool is_polling(int state)
{
	char path[128], name[32];

	snprintf(path, sizeof(path), SYSFS "/cpu%d/cpuidle/state%d/name", WATCHED, state);
	return read_text(path, name, sizeof(name)) &&
	       (!strcmp(name, "POLL\n") || !strncmp(name, "C0.", 3));
}

static void test_idle(int nr_states)
{
	char what[32];
	struct load idle = { .name = what };
	struct outcome menu, teo;

	snprintf(what, sizeof(what), "idle, %d states", nr_states);
	if (!enable_states(nr_states) || is_polling(nr_states - 1)) {
		enable_states(MAX_STATES);
		ksft_test_result_skip("%s: there are fewer, or all of them poll\n", what);
		return;
	}
	menu = watch("menu", &idle);
	teo = watch("teo", &idle);
	enable_states(MAX_STATES);

	/* Two ticks may follow each wake-up that menu has, too; all ticks are 100/s and more. */
	ksft_test_result(teo.wakeups <= 10 + 2 * menu.wakeups && teo.deepest >= 99,
			 "%s: few wake-ups, deepest state\n", what);
}

static const struct load loads[] = {
	{ "73 Hz", 73, periodic, 1 },
	{ "113 Hz", 113, periodic, 1 },
	{ "199 Hz", 199, periodic, 1 },
	{ "307 Hz", 307, periodic, 1 },
	{ "401 Hz", 401, periodic, 1 },
	{ "sleepers", 0, sleeper, SLEEPERS },
	{ "401 Hz, remote", 401, woken, 1 },
};

static void test_load(const struct load *load)
{
	struct outcome menu = watch("menu", load), teo = watch("teo", load);

	/* A few more or less in a second are chance. */
	if (load->thread == woken)
		ksft_test_result(teo.above <= menu.above + 5, "%s: not too deep more often\n",
				 load->name);
	else
		ksft_test_result(teo.shallow1 < 15, "%s: state 1 seldom too shallow\n",
				 load->name);
}

int main(void)
{
	char governor[32];
	unsigned int i;
	int nr;

	ksft_print_header();
	if (!read_text(GOVERNOR, governor, sizeof(governor)) || count_states() < 2)
		ksft_exit_skip("no cpuidle\n");
	governor[strcspn(governor, "\n")] = '\0';
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		ksft_exit_skip("only one CPU\n");
	if (!write_text(GOVERNOR, "menu") || !write_text(GOVERNOR, "teo"))
		ksft_exit_skip("teo and menu cannot be selected\n");

	sem_init(&remote, 0, 0);
	ksft_set_plan(MAX_STATES - 1 + ARRAY_SIZE(loads));
	for (nr = 2; nr <= MAX_STATES; nr++)
		test_idle(nr);
	for (i = 0; i < ARRAY_SIZE(loads); i++)
		test_load(&loads[i]);

	write_text(GOVERNOR, governor);
	ksft_finished();
}
