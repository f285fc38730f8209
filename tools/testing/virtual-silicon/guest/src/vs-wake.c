// SPDX-License-Identifier: GPL-2.0
/*
 * vs-wake: how long an idle CPU takes to wake up.
 *
 *	timer	its own timer wakes it: from the time that was set
 *	device	the HPET does, as another device: from the time of its comparator
 *	signal	another CPU does by pthread_cond_signal(): from the event sched_waking
 *
 * until the event cpu_idle says that it left idle or, with -i, until the kernel is in
 * the handler. Which idle states there are is for the caller to set. Samples for which
 * the CPU was not idle are left out.
 *
 * Output, a line per sample: ns.
 */
#include "vs-common.h"

#include <linux/hpet.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define TRACING		"/sys/kernel/tracing/"
#define LEFT_IDLE	"state=4294967295"
#define WINDOW_NS	(10 * MSEC)	/* a wake-up that takes longer is not one */
#define SLOP_NS		50
#define HPET_COUNTER	(0xf0 / 8)
#define HPET_COMPARATOR(n) ((0x108 + 0x20 * (n)) / 8)

enum mode { TIMER, DEVICE, SIGNAL };

static struct {
	enum mode mode;
	int cpu, caller, samples;
	bool interrupt;
	int64_t wait_min_ns, wait_max_ns;
} opt = { .cpu = 1, .samples = 100, .wait_min_ns = 1000 * USEC, .wait_max_ns = 4 * MSEC };

static uint64_t *causes;	/* TSC at which each wake-up is due */
static int ncauses;
static pid_t callee_tid;

static uint64_t tsc(void)
{
	uint32_t lo, hi;

	asm volatile("lfence; rdtsc" : "=a" (lo), "=d" (hi) : : "memory");
	return lo | (uint64_t)hi << 32;
}

static volatile uint64_t *hpet;

static int64_t hpet_count(void)
{
	return hpet[HPET_COUNTER];
}

/* Two clocks at two moments: what one says when the other says so much. */
struct pair {
	double at[2], tsc[2];
};

/* Of several tries the one between whose two reads of the TSC the least passes. */
static void sample_pair(struct pair *p, int i, int64_t (*clock)(void))
{
	uint64_t best = UINT64_MAX;

	for (int try = 0; try < 20; try++) {
		uint64_t before = tsc();
		int64_t at = clock();
		uint64_t after = tsc();

		if (after - before >= best)
			continue;
		best = after - before;
		p->at[i] = at;
		p->tsc[i] = before + best / 2.0;
	}
}

static double ticks_per(const struct pair *p)
{
	return (p->tsc[1] - p->tsc[0]) / (p->at[1] - p->at[0]);
}

static uint64_t to_tsc(const struct pair *p, double at)
{
	return p->tsc[0] + (at - p->at[0]) * ticks_per(p);
}

static void put(const char *value, const char *format, ...)
{
	char path[128] = TRACING;
	size_t n = strlen(path);
	va_list args;

	va_start(args, format);
	vsnprintf(path + n, sizeof(path) - n, format, args);
	va_end(args);
	write_text(path, value);
}

static void trace_begin(void)
{
	char text[64];

	put("0", "tracing_on");
	put("x86-tsc", "trace_clock");
	put("8192", "per_cpu/cpu%d/buffer_size_kb", opt.cpu);
	snprintf(text, sizeof(text), "cpu_id == %d", opt.cpu);
	put(text, "events/power/cpu_idle/filter");
	put("1", "events/power/cpu_idle/enable");
	if (opt.mode == SIGNAL) {
		put("8192", "per_cpu/cpu%d/buffer_size_kb", opt.caller);
		snprintf(text, sizeof(text), "pid == %d", callee_tid);
		put(text, "events/sched/sched_waking/filter");
		put("1", "events/sched/sched_waking/enable");
	}
	if (opt.interrupt && opt.mode == TIMER)
		put("1", "events/irq_vectors/local_timer_entry/enable");
	if (opt.interrupt && opt.mode == DEVICE)
		put("1", "events/irq/irq_handler_entry/enable");
	put("\n", "trace");
	put("1", "tracing_on");
}

static void trace_end(void)
{
	put("0", "tracing_on");
	put("0", "events/enable");
}

/* The next event of @cpu, or any if negative, whose text has @what; its TSC, 0 at the end */
static uint64_t next_event(FILE *trace, int cpu, const char *what, char *line, size_t size)
{
	while (fgets(line, size, trace)) {
		char *bracket = strchr(line, '['), *colon;

		if (*line == '#' || !bracket || (cpu >= 0 && atoi(bracket + 1) != cpu))
			continue;
		colon = strstr(bracket, ": ");
		if (!colon || !strstr(colon, what))
			continue;
		while (colon > bracket && colon[-1] != ' ')
			colon--;
		return strtoull(colon, NULL, 10);
	}
	return 0;
}

static FILE *open_trace(void)
{
	FILE *trace = fopen(TRACING "trace", "r");

	if (!trace)
		fail(TRACING "trace");
	return trace;
}

static void causes_from_trace(void)
{
	FILE *trace = open_trace();
	char line[256];
	uint64_t at;

	while (ncauses < opt.samples &&
	       (at = next_event(trace, opt.caller, "sched_waking", line, sizeof(line))))
		causes[ncauses++] = at;
	fclose(trace);
}

/*
 * What CPU @opt.cpu did, in order: pairs each cause with the first end of the wait after
 * it, if the CPU was idle then. Clocks are compared to some 10 ns.
 */
static void report(double ticks_per_ns)
{
	const char *end = !opt.interrupt ? LEFT_IDLE :
			  opt.mode == TIMER ? "local_timer_entry" : "irq_handler_entry";
	uint64_t entered = UINT64_MAX, left = 0, slop = SLOP_NS * ticks_per_ns, at;
	FILE *trace = open_trace();
	char line[256];

	for (int i = 0; (at = next_event(trace, opt.cpu, ":", line, sizeof(line)));) {
		if (strstr(line, LEFT_IDLE)) {
			left = at;
		} else if (strstr(line, "cpu_idle:")) {
			entered = at;
			left = UINT64_MAX - slop;
		}
		if (!strstr(line, end))
			continue;
		while (i < ncauses && causes[i] <= at + slop &&
		       (causes[i] < entered || causes[i] > left + slop))
			i++;
		if (i < ncauses && causes[i] <= at + slop) {
			double ns = (at - (double)causes[i++]) / ticks_per_ns;

			if (ns < WINDOW_NS)
				printf("%.0f\n", ns > 0 ? ns : 0);
		}
	}
	fclose(trace);
}

static void by_timer(void)
{
	int64_t *due = calloc(opt.samples, sizeof(*due));
	struct pair p;

	pin(opt.cpu);
	prctl(PR_SET_TIMERSLACK, 1);
	trace_begin();
	sample_pair(&p, 0, now_ns);
	for (int i = 0; i < opt.samples; i++) {
		due[i] = now_ns() + random_between(opt.wait_min_ns, opt.wait_max_ns);
		sleep_until(due[i]);
	}
	sample_pair(&p, 1, now_ns);
	trace_end();
	for (int i = 0; i < opt.samples; i++)
		causes[ncauses++] = to_tsc(&p, due[i]);
	report(ticks_per(&p));
	free(due);
}

/* The HPET's interrupt goes to the CPU measured. */
static void route(void)
{
	FILE *list = fopen("/proc/interrupts", "r");
	char line[4096], path[64], cpu[16];
	int irq = -1;

	while (list && fgets(line, sizeof(line), list)) {
		if (strstr(line, "hpet2"))
			irq = atoi(line);
	}
	if (!list || irq < 0) {
		fprintf(stderr, "vs-wake: no interrupt of the HPET\n");
		exit(2);
	}
	fclose(list);
	snprintf(path, sizeof(path), "/proc/irq/%d/smp_affinity_list", irq);
	snprintf(cpu, sizeof(cpu), "%d", opt.cpu);
	write_text(path, cpu);
}

/* Sets the HPET for once, in about @ns. */
static void arm(int fd, int64_t ns, bool on)
{
	if (!on) {
		if (ioctl(fd, HPET_IE_OFF, 0))
			fail("HPET_IE_OFF");
		return;
	}
	if (ioctl(fd, HPET_IRQFREQ, (unsigned long)(NSEC / ns)) || ioctl(fd, HPET_IE_ON, 0))
		fail("HPET_IE_ON");
}

static void by_device(void)
{
	int64_t *due = calloc(opt.samples, sizeof(*due));
	int fd = open("/dev/hpet", O_RDONLY);
	struct hpet_info info;
	unsigned long count;
	struct pair p, m;

	if (fd < 0 || ioctl(fd, HPET_INFO, &info))
		fail("/dev/hpet");
	hpet = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (hpet == MAP_FAILED)
		fail("mmap of /dev/hpet");
	pin(opt.cpu);
	arm(fd, opt.wait_min_ns, true);	/* the interrupt has a line from here on */
	route();
	arm(fd, 0, false);
	trace_begin();
	sample_pair(&p, 0, hpet_count);
	sample_pair(&m, 0, now_ns);
	for (int i = 0; i < opt.samples; i++) {
		arm(fd, random_between(opt.wait_min_ns, opt.wait_max_ns), true);
		due[i] = hpet[HPET_COMPARATOR(info.hi_timer)];
		if (read(fd, &count, sizeof(count)) != sizeof(count))
			fail("read of /dev/hpet");
		arm(fd, 0, false);
	}
	sample_pair(&p, 1, hpet_count);
	sample_pair(&m, 1, now_ns);
	trace_end();
	for (int i = 0; i < opt.samples; i++)
		causes[ncauses++] = to_tsc(&p, due[i]);
	report(ticks_per(&m));
	free(due);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t called = PTHREAD_COND_INITIALIZER;
static int calls;

static void *callee(void *arg)
{
	pthread_mutex_lock(&lock);
	callee_tid = syscall(SYS_gettid);
	for (;;)
		pthread_cond_wait(&called, &lock);
	return arg;
}

static void by_signal(void)
{
	struct pair p;

	pin(opt.cpu);
	start_thread(callee, NULL);
	while (!__atomic_load_n(&callee_tid, __ATOMIC_ACQUIRE))
		usleep(1000);
	pin(opt.caller);
	trace_begin();
	sample_pair(&p, 0, now_ns);
	for (; calls < opt.samples; calls++) {
		sleep_until(now_ns() + random_between(opt.wait_min_ns, opt.wait_max_ns));
		pthread_cond_signal(&called);
	}
	sleep_until(now_ns() + WINDOW_NS);
	sample_pair(&p, 1, now_ns);
	trace_end();
	causes_from_trace();
	report(ticks_per(&p));
}

static const char arguments[] =
	"-m timer|device|signal [-c CPU] [-k CALLER] [-i]\n"
	"               [-n SAMPLES] [-w MIN_US] [-x MAX_US]";

static void parse(int argc, char **argv)
{
	static const char *const modes[] = { "timer", "device", "signal" };
	int c, mode = -1;

	while ((c = getopt(argc, argv, "m:c:k:in:w:x:")) != -1) {
		switch (c) {
		case 'm':
			for (mode = 2; mode >= 0 && strcmp(optarg, modes[mode]); mode--)
				;
			break;
		case 'c': opt.cpu = atoi(optarg); break;
		case 'k': opt.caller = atoi(optarg); break;
		case 'i': opt.interrupt = true; break;
		case 'n': opt.samples = atoi(optarg); break;
		case 'w': opt.wait_min_ns = atoll(optarg) * USEC; break;
		case 'x': opt.wait_max_ns = atoll(optarg) * USEC; break;
		default: usage(arguments);
		}
	}
	if (mode < 0 || opt.samples <= 0 || opt.wait_min_ns <= 0 ||
	    opt.wait_max_ns < opt.wait_min_ns || optind != argc ||
	    (mode == SIGNAL && (opt.caller == opt.cpu || opt.interrupt)))
		usage(arguments);
	opt.mode = mode;
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	causes = calloc(opt.samples, sizeof(*causes));
	if (!causes)
		fail("memory");
	if (opt.mode == TIMER)
		by_timer();
	else if (opt.mode == DEVICE)
		by_device();
	else
		by_signal();
	return 0;
}
