// SPDX-License-Identifier: GPL-2.0
/*
 * Requests that arrive whether or not the one before is answered.
 *
 *	requests THREADS PERMILLE REQUESTS SEED [US]
 *
 * Each thread gets so many requests at random times. One is 0.4 to 1.6 ms of work at 3.8
 * GHz, and the mean time between two is such that this is PERMILLE of the time. With US, each
 * is so much work, at equal intervals.
 * Prints the mean time from arrival to answer, its median and 99th percentile, in us.
 */
#include "vs-common.h"

/* Work of 1 us at 3.8 GHz, where a step of work() takes four instructions of eight cycles. */
#define STEPS_PER_US	118

static struct {
	long threads, permille, requests, seed, us;
} options;

struct worker {
	pthread_t thread;
	uint64_t random;
	int64_t *answered_ns;
};

static int64_t begin_ns;

/* Uniform, of mean 1 */
static double draw(struct worker *w)
{
	w->random = next_random(w->random);
	return 2 * ((w->random >> 11) + 0.5) / (1ull << 53);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	int64_t arrival = begin_ns;

	for (long i = 0; i < options.requests; i++) {
		double us = options.us ?: 1000 * (0.4 + 0.6 * draw(w));

		if (options.us)
			arrival += us * MSEC / options.permille;
		else
			arrival += draw(w) * draw(w) * 1000 * MSEC / options.permille;
		sleep_until(arrival);
		work(us * STEPS_PER_US);
		w->answered_ns[i] = now_ns() - arrival;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long all;
	int64_t *answered, sum = 0;
	struct worker *workers;

	if (argc != 5 && argc != 6)
		usage("THREADS PERMILLE REQUESTS SEED [US]");
	options.threads = atol(argv[1]);
	options.permille = atol(argv[2]);
	options.requests = atol(argv[3]);
	options.seed = atol(argv[4]);
	options.us = argc > 5 ? atol(argv[5]) : 0;
	if (options.threads < 1 || options.permille < 1 || options.requests < 1 || options.us < 0)
		usage("THREADS PERMILLE REQUESTS SEED [US]");

	all = options.threads * options.requests;
	answered = calloc(all, sizeof(*answered));
	workers = calloc(options.threads, sizeof(*workers));
	if (!answered || !workers)
		fail("memory");

	/* New tasks begin with what the ones before have left on their CPUs: until that decays */
	begin_ns = now_ns() + 310 * MSEC;
	for (long i = 0; i < options.threads; i++) {
		workers[i].random = next_random(options.seed * 1000 + i);
		workers[i].answered_ns = answered + i * options.requests;
		workers[i].thread = start_thread(worker_main, workers + i);
	}
	for (long i = 0; i < options.threads; i++)
		pthread_join(workers[i].thread, NULL);

	qsort(answered, all, sizeof(*answered), ascending_ns);
	for (long i = 0; i < all; i++)
		sum += answered[i];
	printf("%.1f %.1f %.1f\n", sum / 1e3 / all, answered[all / 2] / 1e3,
	       answered[all * 99 / 100] / 1e3);
	return 0;
}
