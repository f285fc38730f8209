// SPDX-License-Identifier: GPL-2.0
/*
 * vs-churn: threads that allocate, fill, search and free memory, as a web server's
 * workers do.
 *
 *	vs-churn THREADS SECONDS
 *
 * Each thread looks for random keys. For each it copies the sorted table that all
 * share into memory of its own, searches the copy and frees it. Allocations are large
 * enough to be mapped and unmapped each time: page faults and a lock of the address
 * space that all threads contend for.
 *
 * Output: searches per second, of all threads
 */
#include "vs-common.h"

#define ENTRIES		(40 * 1024)	/* 160 KiB: above malloc's threshold for mmap */
#define MAX_THREADS	64

static uint32_t table[ENTRIES];
static int64_t end_ns;

struct worker {
	pthread_t thread;
	uint32_t seed;
	unsigned long searches;
};

static uint32_t random_of(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static void search(struct worker *w)
{
	uint32_t key = 3 * (random_of(&w->seed) % ENTRIES), *copy = malloc(sizeof(table));

	if (!copy)
		exit(1);
	memcpy(copy, table, sizeof(table));
	if (!bsearch(&key, copy, ENTRIES, sizeof(*copy), ascending_u32))
		exit(1);
	free(copy);
	w->searches++;
}

static void *worker_main(void *arg)
{
	while (now_ns() < end_ns)
		search(arg);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[MAX_THREADS];
	int threads = argc == 3 ? atoi(argv[1]) : 0;
	double seconds = argc == 3 ? atof(argv[2]) : 0;
	unsigned long sum = 0;

	if (threads < 1 || threads > MAX_THREADS || seconds <= 0)
		usage("THREADS SECONDS");
	for (int i = 0; i < ENTRIES; i++)
		table[i] = 3 * i;
	end_ns = now_ns() + seconds * NSEC;
	for (int i = 0; i < threads; i++) {
		workers[i].seed = i + 1;
		workers[i].thread = start_thread(worker_main, &workers[i]);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		sum += workers[i].searches;
	}
	printf("%.1f\n", sum / seconds);
	return 0;
}
