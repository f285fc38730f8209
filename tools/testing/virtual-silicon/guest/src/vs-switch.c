// SPDX-License-Identifier: GPL-2.0
/*
 * vs-switch: how long a CPU takes to change its frequency, as ftalat measures it.
 *
 * The governor must be userspace. Each sample: the CPU runs at FROM, a random time
 * passes, TO is written to scaling_setspeed, and short loops of fixed work are timed
 * until KEEP of them in a row take what they take at TO.
 *
 * Output, a line per sample: ns from the write to the first of those loops.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NSEC		1000000000ll
#define USEC		1000ll
#define MSEC		1000000ll
#define STEPS		400		/* of a loop */
#define KEEP		5
#define REFERENCES	101
#define SETTLE_NS	(50 * MSEC)
#define GIVE_UP_NS	(100 * MSEC)

static struct {
	int cpu, samples;
	long from, to;			/* kHz */
	int64_t wait_min_ns, wait_max_ns;
} opt = { .samples = 100, .wait_max_ns = 10 * MSEC };

static int setspeed;

static void fail(const char *what)
{
	fprintf(stderr, "vs-switch: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC + t.tv_nsec;
}

static void ask(long khz)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%ld", khz);

	if (pwrite(setspeed, text, n, 0) != n)
		fail("scaling_setspeed");
}

/* ns of one loop */
static int64_t loop(void)
{
	uint64_t x = 88172645463325252ull;
	int64_t begin = now_ns();

	for (int i = 0; i < STEPS; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		__asm__ volatile("" : "+r"(x));
	}
	return now_ns() - begin;
}

static void spin(int64_t ns)
{
	for (int64_t end = now_ns() + ns; now_ns() < end;)
		loop();
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Median ns of a loop at @khz. */
static int64_t reference(long khz)
{
	int64_t ns[REFERENCES];

	ask(khz);
	spin(SETTLE_NS);
	for (int i = 0; i < REFERENCES; i++)
		ns[i] = loop();
	qsort(ns, REFERENCES, sizeof(*ns), ascending);
	return ns[REFERENCES / 2];
}

/* Begin of the first of KEEP loops that last about @want; -1: there were none in time. */
static int64_t reached(int64_t want, int64_t other)
{
	int64_t band = llabs(other - want) / 3, give_up = now_ns() + GIVE_UP_NS, since = -1;
	int kept = 0;

	while (kept < KEEP) {
		int64_t begin = now_ns();

		if (begin > give_up)
			return -1;
		if (llabs(loop() - want) > band)
			kept = 0;
		else if (!kept++)
			since = begin;
	}
	return since;
}

/* Of a generator of its own, so that each run waits the same times. */
static int64_t random_wait(void)
{
	static uint64_t x = 1;

	x = x * 6364136223846793005ull + 1442695040888963407ull;
	return opt.wait_min_ns + (x >> 33) % (opt.wait_max_ns - opt.wait_min_ns + 1);
}

static void prepare(void)
{
	char path[80];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(opt.cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("affinity");
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_setspeed",
		 opt.cpu);
	setspeed = open(path, O_WRONLY);
	if (setspeed < 0)
		fail(path);
}

static void usage(void)
{
	fprintf(stderr, "usage: vs-switch -f KHZ -t KHZ [-c CPU] [-n SAMPLES]\n"
			"                 [-w MIN_US] [-x MAX_US]\n");
	exit(2);
}

int main(int argc, char **argv)
{
	int64_t from_ns, to_ns;
	int c;

	while ((c = getopt(argc, argv, "f:t:c:n:w:x:")) != -1) {
		switch (c) {
		case 'f': opt.from = atol(optarg); break;
		case 't': opt.to = atol(optarg); break;
		case 'c': opt.cpu = atoi(optarg); break;
		case 'n': opt.samples = atoi(optarg); break;
		case 'w': opt.wait_min_ns = atoll(optarg) * USEC; break;
		case 'x': opt.wait_max_ns = atoll(optarg) * USEC; break;
		default: usage();
		}
	}
	if (opt.from <= 0 || opt.to <= 0 || opt.wait_max_ns < opt.wait_min_ns || optind != argc)
		usage();
	prepare();
	to_ns = reference(opt.to);
	from_ns = reference(opt.from);
	if (llabs(to_ns - from_ns) * 50 < to_ns) {
		fprintf(stderr, "vs-switch: loops take %lld and %lld ns: no difference\n",
			(long long)from_ns, (long long)to_ns);
		return 1;
	}
	for (int i = 0; i < opt.samples; i++) {
		int64_t begin, end;

		ask(opt.from);
		if (reached(from_ns, to_ns) < 0)
			continue;
		spin(random_wait());
		begin = now_ns();
		ask(opt.to);
		end = reached(to_ns, from_ns);
		if (end >= 0)
			printf("%lld\n", (long long)(end - begin));
	}
	return 0;
}
