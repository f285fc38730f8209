// SPDX-License-Identifier: GPL-2.0
/*
 * stopwatch: what a command takes.
 *
 *	stopwatch COMMAND...			until it ends
 *	stopwatch -w MS COMMAND...		from so long after its start until it ends
 *	stopwatch -w MS -t MS COMMAND...	for the second time after the first
 *	stopwatch -f BYTES -b BYTES COMMAND...	for the second number of bytes over the
 *						loopback device after the first
 *
 * The last two kill it and its children then. A load whose parts differ is compared over
 * the same part, however fast it is, by bytes and not by time.
 *
 * With -n NUMBER this is printed for the bytes.
 *
 * Prints: seconds, joules of all packages (0 if nothing says), bytes over the loopback device,
 * what APERF and MPERF rose by over all CPUs. The command's output goes to /tmp/output. Exit
 * status: the command's, 0 if it was killed in time.
 */
#define FAILED		125	/* as timeout(1) has it: what is lower is the command's */
#include "vs-common.h"

#include <glob.h>
#include <signal.h>
#include <sys/wait.h>

#define POWERCAP	"/sys/class/powercap/intel-rapl:?"
#define LOOPBACK	"/sys/class/net/lo/statistics/rx_bytes"
#define MSR_MPERF	0xe7
#define MSR_APERF	0xe8

struct reading {
	double seconds;
	uint64_t energy_uj, bytes, aperf, mperf;
};

static uint64_t number(const char *path)
{
	long long value = read_number(path);

	if (value < 0)
		fail(path);
	return value;
}

/* Counters of packages wrap long after the runs that are measured here; 0 without a driver. */
static uint64_t energy(void)
{
	uint64_t sum = 0;
	glob_t zones;

	if (glob(POWERCAP "/energy_uj", 0, NULL, &zones))
		return 0;
	for (size_t i = 0; i < zones.gl_pathc; i++)
		sum += number(zones.gl_pathv[i]);
	globfree(&zones);
	return sum;
}

static uint64_t msr(int cpu, off_t reg)
{
	int fd = open_msr(cpu, O_RDONLY);
	uint64_t value = read_msr(fd, reg);

	close(fd);
	return value;
}

static struct reading reading(void)
{
	struct reading now = { .energy_uj = energy(), .bytes = number(LOOPBACK) };

	for (long cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
		now.mperf += msr(cpu, MSR_MPERF);
		now.aperf += msr(cpu, MSR_APERF);
	}
	now.seconds = now_ns() / 1e9;
	return now;
}

static pid_t start(char **command)
{
	pid_t pid = fork();
	int out;

	if (pid)
		return pid;
	setpgid(0, 0);
	out = open("/tmp/output", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execvp(command[0], command);
	_exit(127);
}

static void rest(double ms)
{
	struct timespec ts = { ms / 1000, (long)(ms * 1e6) % 1000000000 };

	nanosleep(&ts, NULL);
}

/* To the millisecond before so many bytes: what is over is no harm, it is counted. */
static void wait_bytes(uint64_t bytes, pid_t pid)
{
	int status;

	while (number(LOOPBACK) < bytes) {
		rest(1);
		if (waitpid(pid, &status, WNOHANG) == pid) {
			fprintf(stderr, "ended too early\n");
			exit(FAILED);
		}
	}
}

int main(int argc, char **argv)
{
	double warm = 0, window = 0;
	uint64_t first = 0, count = 0, done = 0;
	struct reading from = { 0 }, to;
	int option, status = 0;
	pid_t pid;

	while ((option = getopt(argc, argv, "+w:t:f:b:n:")) != -1) {
		if (option == 'w')
			warm = atof(optarg);
		else if (option == 't')
			window = atof(optarg);
		else if (option == 'f')
			first = strtoull(optarg, NULL, 0);
		else if (option == 'b')
			count = strtoull(optarg, NULL, 0);
		else if (option == 'n')
			done = strtoull(optarg, NULL, 0);
		else
			return FAILED;
	}
	if (optind == argc)
		return FAILED;
	first += number(LOOPBACK);
	if (!warm && !count)
		from = reading();
	pid = start(argv + optind);
	if (pid < 0)
		fail("fork");
	if (window || count) {
		if (window)
			rest(warm);
		else
			wait_bytes(first, pid);
		from = reading();
		if (window)
			rest(window);
		else
			wait_bytes(from.bytes + count, pid);
		to = reading();
		if (waitpid(pid, &status, WNOHANG) == pid) {
			fprintf(stderr, "ended too early\n");
			return FAILED;
		}
		kill(-pid, SIGKILL);
		waitpid(pid, &status, 0);
		status = 0;
	} else {
		if (warm) {
			rest(warm);
			from = reading();
		}
		waitpid(pid, &status, 0);
		to = reading();
	}
	printf("%.6f %.4f %llu %llu %llu\n", to.seconds - from.seconds,
	       (to.energy_uj - from.energy_uj) / 1e6,
	       (unsigned long long)(done ? done : to.bytes - from.bytes),
	       (unsigned long long)(to.aperf - from.aperf),
	       (unsigned long long)(to.mperf - from.mperf));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
