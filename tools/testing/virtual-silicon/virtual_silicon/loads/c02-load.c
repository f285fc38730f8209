// SPDX-License-Identifier: GPL-2.0
/*
 * c02-load: loads with idle times of about a microsecond, what they take and cost.
 *
 *	idle		nothing
 *	handover	two threads hand a lock over that each holds for -n ns; the other
 *			sleeps in futex() meanwhile
 *	poll		a thread looks every -n ns whether a device has something for it
 *
 * for -t ms, on CPU 1 (and 2). Output: mean and 99th percentile of the time from the
 * hand-over, or from the timer's time, until the thread runs, in ns; watts of the package;
 * then of CPU 1 each idle state's entries per second and share of the time.
 */
#include "vs-common.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define STATES		10
#define SAMPLES		200000
#define STATE		CPUS "cpu1/cpuidle/state%d/%s"

static int64_t hold_ns = 1000, run_ns = 200000000, end;
static uint32_t samples[SAMPLES];
static int nsamples;
static _Atomic int turn;
static _Atomic int64_t handed;

static void sample(int64_t ns)
{
	if (nsamples < SAMPLES)
		samples[nsamples++] = ns < 0 ? 0 : ns;
}

static void run_on(int cpu)
{
	struct sched_param rt = { .sched_priority = 50 };

	pin(cpu);
	if (sched_setscheduler(0, SCHED_FIFO, &rt))
		fail("SCHED_FIFO");
	prctl(PR_SET_TIMERSLACK, 1);
}

static void futex(int op, int value)
{
	syscall(SYS_futex, &turn, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void *holder(void *arg)
{
	int me = (intptr_t)arg;
	int64_t since;

	run_on(1 + me);
	for (;;) {
		while (turn == !me)
			futex(FUTEX_WAIT, !me);
		since = now_ns();
		if (me == 0)
			sample(since - handed);
		while (now_ns() < since + hold_ns)
			;
		handed = now_ns();
		turn = since > end ? 2 : !me;
		futex(FUTEX_WAKE, 1);
		if (turn == 2 || since > end)
			return NULL;
	}
}

static void handover(void)
{
	pthread_t threads[2];

	handed = now_ns();
	for (intptr_t i = 0; i < 2; i++)
		threads[i] = start_thread(holder, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

static void poll_device(void)
{
	struct timespec t = { .tv_nsec = hold_ns };

	run_on(1);
	while (now_ns() < end) {
		int64_t due = now_ns() + hold_ns;

		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
		sample(now_ns() - due);
	}
}

static int64_t counter(int state, const char *what)
{
	char path[100];

	snprintf(path, sizeof(path), STATE, state, what);
	return read_number(path);
}

static void name_of(int state, char *name)
{
	char path[100];
	FILE *f;

	snprintf(path, sizeof(path), STATE, state, "name");
	f = fopen(path, "r");
	if (!f || fscanf(f, "%15s", name) != 1)
		name[0] = '\0';
	if (f)
		fclose(f);
}

static const char arguments[] = "[-n NS] [-t MS] idle|handover|poll";

int main(int argc, char **argv)
{
	int64_t entries[STATES], time_us[STATES], begin, uj, took;
	double sum = 0;
	int c;

	while ((c = getopt(argc, argv, "n:t:")) != -1) {
		if (c == 'n')
			hold_ns = atoll(optarg);
		else if (c == 't')
			run_ns = atoll(optarg) * 1000000;
		else
			usage(arguments);
	}
	if (optind + 1 != argc)
		usage(arguments);
	for (int i = 0; i < STATES; i++) {
		entries[i] = counter(i, "usage");
		time_us[i] = counter(i, "time");
	}
	begin = now_ns();
	uj = read_number(PACKAGE_ENERGY);
	end = begin + run_ns;
	if (!strcmp(argv[optind], "handover"))
		handover();
	else if (!strcmp(argv[optind], "poll"))
		poll_device();
	else
		usleep(run_ns / 1000);
	took = now_ns() - begin;
	uj = read_number(PACKAGE_ENERGY) - uj;
	for (int i = 0; i < STATES; i++) {
		entries[i] = counter(i, "usage") - entries[i];
		time_us[i] = counter(i, "time") - time_us[i];
	}

	qsort(samples, nsamples, sizeof(*samples), ascending_u32);
	for (int i = 0; i < nsamples; i++)
		sum += samples[i];
	if (nsamples)
		printf("mean %.0f\np99 %u\n", sum / nsamples, samples[nsamples * 99ll / 100]);
	printf("watts %.3f\n", uj * 1000.0 / took);
	for (int i = 0; i < STATES; i++) {
		char name[16];

		name_of(i, name);
		if (name[0])
			printf("state %s %.0f %.4f\n", name, entries[i] * 1e9 / took,
			       time_us[i] * 1000.0 / took);
	}
	return 0;
}
