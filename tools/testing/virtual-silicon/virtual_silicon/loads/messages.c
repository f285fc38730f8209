// SPDX-License-Identifier: GPL-2.0
/*
 * How late do threads run that a message wakes?
 *
 * A messenger wakes all workers that wait for a message, rests, and does so again.
 * A worker takes the time since the message was sent, works a while, and waits for
 * the next one. Prints two percentiles of that time in us: 50 and 99.
 *
 *	messages [WORKERS [SECONDS]]
 */
#include "vs-common.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#define MAX_WORKERS	64
#define MAX_SAMPLES	65536

/* Loops of work: some 0.1 to 0.4 ms at 3 GHz. */
#define WORK_LEAST	100000
#define WORK_SPAN	300000

/* The messenger's rest, us. */
#define REST_LEAST	100
#define REST_SPAN	900

struct worker {
	pthread_t thread;
	atomic_uint message;	/* 1: sent, and not taken yet */
	atomic_uint waiting;
	int64_t sent_ns;
	unsigned int seed;
	unsigned int nr;
	unsigned int late_ns[MAX_SAMPLES];
};

static struct worker workers[MAX_WORKERS];

static void futex(atomic_uint *word, int op, unsigned int value)
{
	syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void spin(unsigned int loops)
{
	while (loops--)
		atomic_signal_fence(memory_order_seq_cst);
}

static void take(struct worker *w)
{
	int64_t late;

	w->waiting = 1;
	while (!w->message)
		futex(&w->message, FUTEX_WAIT, 0);
	late = now_ns() - w->sent_ns;
	/* Clocks of two CPUs may differ by a little. */
	if (late < 0)
		late = 0;
	w->message = 0;
	if (w->nr < MAX_SAMPLES)
		w->late_ns[w->nr++] = late;
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		take(w);
		spin(WORK_LEAST + rand_r(&w->seed) % WORK_SPAN);
	}
	return NULL;
}

static void send_to_all(int nr_workers)
{
	for (int i = 0; i < nr_workers; i++) {
		struct worker *w = &workers[i];

		if (!w->waiting)
			continue;
		w->waiting = 0;
		w->sent_ns = now_ns();
		w->message = 1;
		futex(&w->message, FUTEX_WAKE, 1);
	}
}

static void report(int nr_workers)
{
	static unsigned int all[MAX_WORKERS * MAX_SAMPLES];
	unsigned int nr = 0;

	for (int i = 0; i < nr_workers; i++)
		for (unsigned int k = 0; k < workers[i].nr; k++)
			all[nr++] = workers[i].late_ns[k];
	if (!nr)
		exit(1);
	qsort(all, nr, sizeof(*all), ascending_u32);
	printf("%.1f %.1f\n", all[nr / 2] / 1e3,
	       all[(unsigned long long)nr * 99 / 100] / 1e3);
}

int main(int argc, char **argv)
{
	int nr_workers = argc > 1 ? atoi(argv[1]) : 4;
	double seconds = argc > 2 ? atof(argv[2]) : 1;
	int64_t end = now_ns() + seconds * NSEC;
	unsigned int seed = now_ns();

	if (nr_workers < 1 || nr_workers > MAX_WORKERS || seconds <= 0) {
		fprintf(stderr, "messages: 1 to %d workers, more than 0 s\n", MAX_WORKERS);
		return 1;
	}
	for (int i = 0; i < nr_workers; i++) {
		workers[i].seed = seed + i;
		workers[i].thread = start_thread(run_worker, &workers[i]);
	}
	while (now_ns() < end) {
		usleep(REST_LEAST + rand_r(&seed) % REST_SPAN);
		send_to_all(nr_workers);
	}
	report(nr_workers);
	return 0;
}
