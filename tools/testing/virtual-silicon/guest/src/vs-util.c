// SPDX-License-Identifier: GPL-2.0
/*
 * vs-util: a fixed amount (or share of time) of periodic work on one CPU, and the
 * utilisation that the scheduler sees in it.
 *
 * The worker does its work, then sleeps to the end of the period. Shortly before
 * that a watcher on CPU 0 reads what /proc says of the worker: a sleeping task
 * keeps the utilisation that it had when it was dequeued. CPU 0 does not sleep
 * deeply meanwhile, so that the watcher is in time.
 *
 * With a list of frequencies the clock of the worker's CPU is also changed
 * (governor userspace), from one to the next after a random time within the
 * given limits. The numbers are the same in each run.
 *
 * Output, one line per period: end of the work in ns (CLOCK_MONOTONIC), ns that
 * the task has run for since it began, and its utilisation; -1 for the last two
 * if the watcher came too late. A mark in the model's trace is made at the begin,
 * with the time in the first line: "mark NS".
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
#define MAX_PERIODS	20000
#define MAX_FREQS	64

static struct {
	int cpu, units, duty, periods, freqs, khz[MAX_FREQS], least_ms, most_ms;
	int64_t period_ns;
	long mark;
} opt = { .cpu = 1, .units = 10, .periods = 100, .period_ns = 10000000, .mark = -1,
	  .least_ms = 2, .most_ms = 101 };

static struct { int64_t end, ran; double util; } rows[MAX_PERIODS];
static int64_t start_ns;
static volatile pid_t worker_tid;
static volatile int begun, done;	/* periods */

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
		begun = i + 1;
		if (opt.duty) {
			while (now_ns() < start_ns + i * opt.period_ns + opt.period_ns * opt.duty / 100)
				work(1);
		} else {
			work(opt.units);
		}
		done = i + 1;
		rows[i].end = now_ns();
	}
	sleep_until(start_ns + (opt.periods + 1) * opt.period_ns);
	return NULL;
}

struct look {
	double	util;
	int64_t	ran;
};

static double number_after(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	at = at ? strchr(at, ':') : NULL;
	if (!at) {
		fprintf(stderr, "vs-util: no %s in /proc/PID/sched (CONFIG_SCHED_DEBUG)\n", name);
		exit(1);
	}
	return atof(at + 1);
}

/*
 * Not util_avg, which is renewed when a period of 1024 us is complete only: the
 * sum behind it, over what it would be at 100 %. That depends on how much of the
 * present period is over, which began at a multiple of 2^20 ns of the run
 * queue's clock.
 */
static struct look look(void)
{
	char name[64], text[8192];
	uint64_t updated;
	char *at;
	int fd, n;

	snprintf(name, sizeof(name), "/proc/self/task/%d/sched", worker_tid);
	fd = open(name, O_RDONLY);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;

	number_after(text, "se.avg.last_update_time");
	at = strchr(strstr(text, "se.avg.last_update_time"), ':');
	updated = strtoull(at + 1, NULL, 10);
	return (struct look){
		.util	= number_after(text, "se.avg.util_sum") / (46718 + (updated >> 10 & 1023)),
		/* Printed as ms */
		.ran	= number_after(text, "se.sum_exec_runtime") * 1e6 + .5,
	};
}

/* How long CPU 0 may take to wake up */
static void stay_awake(void)
{
	const char *name = "/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us";
	int fd = open(name, O_WRONLY);

	if (fd >= 0) {
		if (write(fd, "2", 1) != 1)
			fprintf(stderr, "vs-util: %s: %s\n", name, strerror(errno));
		close(fd);
	}
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
	    opt.period_ns <= LOOK_BEFORE_NS || opt.most_ms < opt.least_ms || optind != argc)
		usage();

	pin(0);
	stay_awake();
	if (opt.mark >= 0) {
		mark(opt.mark);
		printf("mark %lld\n", (long long)now_ns());
	}
	start_ns = now_ns() + 20000000;
	pthread_create(&threads[0], NULL, worker, NULL);
	if (opt.freqs)
		pthread_create(&threads[1], NULL, changer, NULL);
	for (int i = 0; i < opt.periods; i++) {
		struct look now;

		sleep_until(start_ns + (i + 1) * opt.period_ns - LOOK_BEFORE_NS);
		rows[i].util = rows[i].ran = -1;
		if (done != i + 1)
			continue;
		now = look();
		if (begun != i + 1)
			continue;
		rows[i].util = now.util;
		rows[i].ran = now.ran;
	}
	pthread_join(threads[0], NULL);
	if (opt.freqs)
		pthread_join(threads[1], NULL);
	for (int i = 0; i < opt.periods; i++)
		printf("%lld %lld %.3f\n", (long long)rows[i].end, (long long)rows[i].ran,
		       rows[i].util);
	return 0;
}
