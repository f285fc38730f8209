// SPDX-License-Identifier: GPL-2.0
/*
 * vs-util: a fixed amount (or share of time) of periodic work on one CPU, and the utilisation that
 * the scheduler sees in it.
 *
 * The worker does its work, then sleeps to the end of the period. Shortly before
 * that a watcher on CPU 0 reads the worker's utilisation from /proc: a sleeping
 * task keeps the value that it had when it was dequeued.
 *
 * With a list of frequencies the watcher also changes the clock of the worker's
 * CPU (governor userspace), after a random time within the given limits. The
 * numbers are the same in each run.
 *
 * Output, one line per period: begin and end of the work in ns (CLOCK_MONOTONIC),
 * and the utilisation. A mark in the model's trace is made at the begin, with the time
 * in the first line: "mark NS".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STEPS_PER_UNIT	1000
#define MARK_MSR	0x400000f0
#define NSEC		1000000000ll
#define LOOK_BEFORE_NS	400000
#define WAKE_BEFORE_NS	1500000		/* leaving an idle state takes a while */
#define MAX_PERIODS	20000
#define MAX_FREQS	8

static struct {
	int cpu, units, duty, periods, freqs, khz[MAX_FREQS], least_ms, most_ms;
	int64_t period_ns;
	long mark;
} opt = { .cpu = 1, .units = 10, .periods = 100, .period_ns = 10000000, .mark = -1,
	  .least_ms = 2, .most_ms = 101 };

static struct { int64_t begin, end; double util; } rows[MAX_PERIODS];
static int64_t start_ns;
static volatile pid_t worker_tid;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC + t.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	struct timespec t = { ns / NSEC, ns % NSEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* Each step needs the result of the one before */
static void work(int units)
{
	uint64_t x = 88172645463325252ull;

	for (int i = 0; i < units * STEPS_PER_UNIT; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		__asm__ volatile("" : "+r"(x));
	}
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		fprintf(stderr, "vs-util: cpu %d: %s\n", cpu, strerror(errno));
		exit(1);
	}
}

static void *worker(void *unused)
{
	(void)unused;
	pin(opt.cpu);
	worker_tid = syscall(SYS_gettid);
	for (int i = 0; i < opt.periods; i++) {
		sleep_until(start_ns + i * opt.period_ns);
		rows[i].begin = now_ns();
		if (opt.duty) {
			while (now_ns() < start_ns + i * opt.period_ns + opt.period_ns * opt.duty / 100)
				work(1);
		} else {
			work(opt.units);
		}
		rows[i].end = now_ns();
	}
	sleep_until(start_ns + (opt.periods + 1) * opt.period_ns);
	return NULL;
}

/*
 * Utilisation of the worker, -1 if it cannot be read (CONFIG_SCHED_DEBUG). Not
 * util_avg, which is renewed when a period of 1024 us is complete only: the sum
 * behind it, over what it would be at 100 %. That is 47742 less what is missing
 * of the current period, which is 512 in the mean: an error of 1.1 % at most.
 */
static double read_util(void)
{
	char name[64], text[8192], *at;
	int fd, n;

	snprintf(name, sizeof(name), "/proc/self/task/%d/sched", worker_tid);
	fd = open(name, O_RDONLY);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, "se.avg.util_sum");
	at = at ? strchr(at, ':') : NULL;
	return at ? atoll(at + 1) / (47742 - 512.) : -1;
}

static uint32_t next_random(void)
{
	static uint32_t x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

static void set_khz(int khz)
{
	char name[96], text[16];
	int fd, n = snprintf(text, sizeof(text), "%d\n", khz);

	snprintf(name, sizeof(name),
		 "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_setspeed", opt.cpu);
	fd = open(name, O_WRONLY);
	if (fd < 0 || write(fd, text, n) != n) {
		fprintf(stderr, "vs-util: %s: %s\n", name, strerror(errno));
		exit(1);
	}
	close(fd);
}

static void *changer(void *unused)
{
	int64_t t = start_ns;

	(void)unused;
	pin(0);
	for (int i = 0; t < start_ns + opt.periods * opt.period_ns; i++) {
		set_khz(opt.khz[i % opt.freqs]);
		t += (opt.least_ms + next_random() % (opt.most_ms - opt.least_ms + 1)) * 1000000ll;
		sleep_until(t);
	}
	return NULL;
}

static void mark(long value)
{
	uint64_t word = value;
	int fd = open("/dev/cpu/0/msr", O_WRONLY);

	if (fd < 0 || pwrite(fd, &word, sizeof(word), MARK_MSR) != sizeof(word))
		fprintf(stderr, "vs-util: no mark: %s\n", strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void parse_freqs(char *text)
{
	for (char *word = strtok(text, ","); word && opt.freqs < MAX_FREQS;
	     word = strtok(NULL, ","))
		opt.khz[opt.freqs++] = atoi(word);
}

static void usage(void)
{
	fprintf(stderr, "usage: vs-util [-c CPU] [-w UNITS | -t DUTY%%] [-p PERIOD_US] [-n PERIODS] [-m MARK]\n"
		"               [-f KHZ,KHZ... [-l LEAST_MS] [-h MOST_MS]]\n");
	exit(2);
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	int c;

	while ((c = getopt(argc, argv, "c:w:t:p:n:m:f:l:h:")) != -1) {
		switch (c) {
		case 'c': opt.cpu = atoi(optarg); break;
		case 'w': opt.units = atoi(optarg); break;
		case 't': opt.duty = atoi(optarg); break;
		case 'p': opt.period_ns = atoll(optarg) * 1000; break;
		case 'n': opt.periods = atoi(optarg); break;
		case 'm': opt.mark = atol(optarg); break;
		case 'f': parse_freqs(optarg); break;
		case 'l': opt.least_ms = atoi(optarg); break;
		case 'h': opt.most_ms = atoi(optarg); break;
		default: usage();
		}
	}
	if (opt.periods < 1 || opt.periods > MAX_PERIODS || opt.units < 1 ||
	    opt.period_ns <= LOOK_BEFORE_NS + WAKE_BEFORE_NS || opt.most_ms < opt.least_ms || optind != argc)
		usage();

	pin(0);
	if (opt.mark >= 0) {
		mark(opt.mark);
		printf("mark %lld\n", (long long)now_ns());
	}
	start_ns = now_ns() + 20000000;
	pthread_create(&threads[0], NULL, worker, NULL);
	if (opt.freqs)
		pthread_create(&threads[1], NULL, changer, NULL);
	for (int i = 0; i < opt.periods; i++) {
		int64_t look = start_ns + (i + 1) * opt.period_ns - LOOK_BEFORE_NS;

		sleep_until(look - WAKE_BEFORE_NS);
		while (now_ns() < look)
			;
		rows[i].util = read_util();
	}
	pthread_join(threads[0], NULL);
	if (opt.freqs)
		pthread_join(threads[1], NULL);
	for (int i = 0; i < opt.periods; i++)
		printf("%lld %lld %.2f\n", (long long)rows[i].begin, (long long)rows[i].end,
		       rows[i].util);
	return 0;
}
