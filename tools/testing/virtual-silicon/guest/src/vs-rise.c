// SPDX-License-Identifier: GPL-2.0
/*
 * vs-rise: how long a task that becomes CPU-bound waits for a frequency.
 *
 * Each round, a task pinned to one CPU does what -m says and is then busy until the
 * P-state that the CPU asks for (IA32_PERF_CTL) has been at least RATIO for a while
 * (-k), and for so long in all (-b):
 *
 *	new	the task has just been forked, after a pause (-p), and with -a has
 *		slept for 200 us (slept), waited for a byte (byte), been moved to this CPU
 *		(moved), or slept as a new thread (thread) or program (exec)
 *	return	it slept for a second
 *	step	it did a little work in each 10 ms, for a second and a bit
 *
 * With -f it then works a little in each 10 ms, until less is asked for.  With -s all
 * CPUs of the policy have to ask for what this one asks for.
 *
 * Output, a line per round: ms until RATIO was asked for, ms until it was asked for and
 * kept, and ms of little work until less was asked for; nan for what did not happen in
 * time. Status 1 if anything did not.
 */
#include "vs-common.h"

#include <math.h>
#include <sys/wait.h>

#define PERF_CTL	0x199
#define PERIOD_NS	(10 * MSEC)
#define MAX_GIVE_UP	3		/* times -t, for a fall */
#define SHARED_NS	(2 * MSEC)	/* that the CPUs of a policy may differ for */
#define MAX_CPUS	64

static struct {
	int cpu, ratio, rounds, fall, shared;
	int64_t give_up_ns, keep_ns, busy_ns, pause_ns;
	long steps;
	const char *mode, *after;
} opt = { .rounds = 1, .give_up_ns = 500 * MSEC, .keep_ns = 20 * MSEC,
	  .pause_ns = 500 * MSEC, .steps = 10000, .mode = "new", .after = "" };

static int msr[MAX_CPUS];

static int asked_by(int cpu)
{
	if (!msr[cpu])
		msr[cpu] = open_msr(cpu, O_RDONLY);
	return read_msr(msr[cpu], PERF_CTL) >> 8 & 0xff;
}

/* The CPU's own register: no other CPU is disturbed. */
static int asked(void)
{
	return asked_by(opt.cpu);
}

static void light(int64_t from, int64_t until)
{
	for (; from < until; from += PERIOD_NS) {
		work(opt.steps);
		sleep_until(from + PERIOD_NS);
	}
}

struct rise {
	double first, kept;	/* ms */
};

static struct rise rise(void)
{
	int64_t begin = now_ns(), now = begin, since = 0;
	struct rise up = { NAN, NAN };

	while (since || now < begin + opt.give_up_ns) {
		if (asked() < opt.ratio)
			since = 0;
		else if (!since)
			since = now_ns();
		if (since && isnan(up.first))
			up.first = (double)(since - begin) / MSEC;
		if (since && now - since >= opt.keep_ns && now - begin >= opt.busy_ns)
			break;
		work(100);
		now = now_ns();
	}
	if (since)
		up.kept = (double)(since - begin) / MSEC;
	return up;
}

/* Does a CPU ask for something else, as long as this one does not change its mind? */
static int differs(int cpu)
{
	int before = asked(), other = asked_by(cpu);

	return other != before && asked() == before;
}

/*
 * CPUs of the policy that ask for something else. Reading another CPU's register is
 * to sleep for a moment, after which this CPU may be given less.
 */
static int differing(void)
{
	int64_t end = now_ns() + SHARED_NS;
	char path[80];
	int cpu, n;

	snprintf(path, sizeof(path), CPUS "cpu%d/cpufreq/affected_cpus", opt.cpu);
	do {
		FILE *cpus = fopen(path, "r");

		if (!cpus)
			fail(path);
		for (n = 0; fscanf(cpus, "%d", &cpu) == 1;)
			n += differs(cpu);
		fclose(cpus);
	} while (n && now_ns() < end);
	return n;
}

/* ms of light work until less is asked for; looked at before and after each work */
static double fall(void)
{
	int64_t begin = now_ns(), now = begin, next = begin;

	while (now < begin + MAX_GIVE_UP * opt.give_up_ns) {
		if (asked() < opt.ratio)
			return (double)(now - begin) / MSEC;
		work(opt.steps);
		now = now_ns();
		if (asked() < opt.ratio)
			return (double)(now - begin) / MSEC;
		next += PERIOD_NS;
		sleep_until(next);
		now = now_ns();
	}
	return NAN;
}

static int busy(void)
{
	struct rise up = rise();
	int others = opt.shared && !isnan(up.kept) ? differing() : 0;
	double down = opt.fall && !isnan(up.kept) ? fall() : 0;

	if (others)
		printf("%d CPUs of the policy ask for something else\n", others);
	printf("%.3f %.3f %.3f\n", up.first, up.kept, down);
	fflush(stdout);
	return others || isnan(up.kept) || isnan(down);
}

static void nap(void)
{
	sleep_until(now_ns() + 200 * USEC);
}

static void *thread_main(void *status)
{
	nap();
	*(int *)status = busy();
	return NULL;
}

/* Does what -a says and is busy then */
static int child(int from)
{
	int status;
	char byte;

	if (!strcmp(opt.after, "thread")) {
		pthread_join(start_thread(thread_main, &status), NULL);
		return status;
	}
	if (!strcmp(opt.after, "slept") || !strcmp(opt.after, "exec")) {
		nap();
	} else if (!strcmp(opt.after, "byte")) {
		if (read(from, &byte, 1) != 1)
			fail("read");
	} else if (!strcmp(opt.after, "moved")) {
		pin(!opt.cpu);
		pin(opt.cpu);
	}
	return busy();
}

static int forked(char **argv)
{
	int status, bytes[2];
	pid_t pid;

	if (pipe(bytes))
		fail("pipe");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid && !strcmp(opt.after, "exec") && setenv("CHILD", "", 1) == 0)
		execv("/proc/self/exe", argv);
	if (!pid)
		_exit(child(bytes[0]));
	nap();
	if (write(bytes[1], "", 1) != 1)
		fail("write");
	close(bytes[0]);
	close(bytes[1]);
	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid");
	return WEXITSTATUS(status);
}

/* The phase against tick and period differs from round to round. */
static int one_round(int n, char **argv)
{
	int64_t now = now_ns();

	if (!strcmp(opt.mode, "new")) {
		sleep_until(now + opt.pause_ns + n * 1300000 % (17 * MSEC));
		return forked(argv);
	}
	if (!strcmp(opt.mode, "return"))
		sleep_until(now + NSEC + n * 1300000 % (17 * MSEC));
	else
		light(now, now + NSEC + n * 13700000ll % (170 * MSEC));
	return busy();
}

static const char arguments[] =
	"-r RATIO [-c CPU] [-m new|return|step] [-a slept|byte|moved|thread|exec] [-n ROUNDS] [-f] [-s]\n"
	"               [-t GIVE_UP_MS] [-k KEEP_MS] [-b BUSY_MS] [-p PAUSE_MS]\n"
	"               [-w STEPS_OF_LIGHT_WORK]";

int main(int argc, char **argv)
{
	int status = 0, c;

	while ((c = getopt(argc, argv, "r:c:m:a:n:fst:k:b:p:w:")) != -1) {
		switch (c) {
		case 'r': opt.ratio = atoi(optarg); break;
		case 'c': opt.cpu = atoi(optarg); break;
		case 'm': opt.mode = optarg; break;
		case 'a': opt.after = optarg; break;
		case 'n': opt.rounds = atoi(optarg); break;
		case 'b': opt.busy_ns = atoll(optarg) * MSEC; break;
		case 'f': opt.fall = 1; break;
		case 's': opt.shared = 1; break;
		case 'p': opt.pause_ns = atoll(optarg) * MSEC; break;
		case 't': opt.give_up_ns = atoll(optarg) * MSEC; break;
		case 'k': opt.keep_ns = atoll(optarg) * MSEC; break;
		case 'w': opt.steps = atol(optarg); break;
		default: usage(arguments);
		}
	}
	if (opt.ratio <= 0 || opt.cpu < 0 || opt.cpu >= MAX_CPUS || optind != argc ||
	    (strcmp(opt.mode, "new") && strcmp(opt.mode, "return") && strcmp(opt.mode, "step")))
		usage(arguments);
	pin(opt.cpu);
	msr[opt.cpu] = open_msr(opt.cpu, O_RDONLY);
	if (getenv("CHILD"))
		return child(-1);
	for (int n = 0; n < opt.rounds; n++)
		status |= one_round(n, argv);
	return status;
}
