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
 * (governor userspace), from one to the next after the given time.
 *
 * Output, one line per period: end of the work in ns (CLOCK_MONOTONIC), ns that
 * the task has run for since it began, and its utilisation; -1 for the last two
 * if the watcher came too late. A mark in the model's trace is made at the begin,
 * with the time in the first line: "mark NS".
 */
#include "vs-common.h"

#include <sys/syscall.h>

#define STEPS_PER_UNIT	1000
#define LOOK_BEFORE_NS	400000
#define MAX_PERIODS	20000
#define MAX_FREQS	64

static struct {
	int cpu, units, duty, periods, freqs, khz[MAX_FREQS], hold_ms;
	int64_t period_ns;
	long mark;
} opt = { .cpu = 1, .units = 10, .periods = 100, .period_ns = 10000000, .mark = -1,
	  .hold_ms = 10 };

static struct { int64_t end, ran; double util; } rows[MAX_PERIODS];
static int64_t start_ns;
static volatile pid_t worker_tid;
static volatile int begun, done;	/* periods */

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
				work(STEPS_PER_UNIT);
		} else {
			work(opt.units * STEPS_PER_UNIT);
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

static void *changer(void *unused)
{
	int setspeed = open_setspeed(opt.cpu);
	int64_t t = start_ns;

	(void)unused;
	pin(0);
	for (int i = 0; t < start_ns + opt.periods * opt.period_ns; i++) {
		ask(setspeed, opt.khz[i % opt.freqs]);
		t += opt.hold_ms * MSEC;
		sleep_until(t);
	}
	return NULL;
}

static void parse_freqs(char *text)
{
	for (char *word = strtok(text, ","); word && opt.freqs < MAX_FREQS;
	     word = strtok(NULL, ","))
		opt.khz[opt.freqs++] = atoi(word);
}

static const char arguments[] =
	"[-c CPU] [-w UNITS | -t DUTY%] [-p PERIOD_US] [-n PERIODS] [-m MARK]\n"
	"               [-f KHZ,KHZ... [-l HOLD_MS]]";

int main(int argc, char **argv)
{
	pthread_t threads[2] = { 0 };
	int c;

	while ((c = getopt(argc, argv, "c:w:t:p:n:m:f:l:")) != -1) {
		switch (c) {
		case 'c': opt.cpu = atoi(optarg); break;
		case 'w': opt.units = atoi(optarg); break;
		case 't': opt.duty = atoi(optarg); break;
		case 'p': opt.period_ns = atoll(optarg) * 1000; break;
		case 'n': opt.periods = atoi(optarg); break;
		case 'm': opt.mark = atol(optarg); break;
		case 'f': parse_freqs(optarg); break;
		case 'l': opt.hold_ms = atoi(optarg); break;
		default: usage(arguments);
		}
	}
	if (opt.periods < 1 || opt.periods > MAX_PERIODS || opt.units < 1 ||
	    opt.period_ns <= LOOK_BEFORE_NS || opt.hold_ms < 1 || optind != argc)
		usage(arguments);

	pin(0);
	/* How long CPU 0 may take to wake up */
	write_text(CPUS "cpu0/power/pm_qos_resume_latency_us", "2");
	if (opt.mark >= 0) {
		mark(opt.mark);
		printf("mark %lld\n", (long long)now_ns());
	}
	start_ns = now_ns() + 20000000;
	threads[0] = start_thread(worker, NULL);
	if (opt.freqs)
		threads[1] = start_thread(changer, NULL);
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
