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
#include "vs-common.h"

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

/* ns of one loop */
static int64_t loop(void)
{
	int64_t begin = now_ns();

	work(STEPS);
	return now_ns() - begin;
}

static void spin(int64_t ns)
{
	for (int64_t end = now_ns() + ns; now_ns() < end;)
		loop();
}

/* Median ns of a loop at @khz. */
static int64_t reference(long khz)
{
	int64_t ns[REFERENCES];

	ask(setspeed, khz);
	spin(SETTLE_NS);
	for (int i = 0; i < REFERENCES; i++)
		ns[i] = loop();
	qsort(ns, REFERENCES, sizeof(*ns), ascending_ns);
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

static const char arguments[] =
	"-f KHZ -t KHZ [-c CPU] [-n SAMPLES]\n"
	"                 [-w MIN_US] [-x MAX_US]";

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
		default: usage(arguments);
		}
	}
	if (opt.from <= 0 || opt.to <= 0 || opt.wait_max_ns < opt.wait_min_ns || optind != argc)
		usage(arguments);
	pin(opt.cpu);
	setspeed = open_setspeed(opt.cpu);
	to_ns = reference(opt.to);
	from_ns = reference(opt.from);
	if (llabs(to_ns - from_ns) * 50 < to_ns) {
		fprintf(stderr, "vs-switch: loops take %lld and %lld ns: no difference\n",
			(long long)from_ns, (long long)to_ns);
		return 1;
	}
	for (int i = 0; i < opt.samples; i++) {
		int64_t begin, end;

		ask(setspeed, opt.from);
		if (reached(from_ns, to_ns) < 0)
			continue;
		spin(random_between(opt.wait_min_ns, opt.wait_max_ns));
		begin = now_ns();
		ask(setspeed, opt.to);
		end = reached(to_ns, from_ns);
		if (end >= 0)
			printf("%lld\n", (long long)(end - begin));
	}
	return 0;
}
