// SPDX-License-Identifier: GPL-2.0
/*
 * SCHED_DEADLINE uses up a task's runtime at the rate of the scale, so that the
 * policy for freq_max changes how long the runtime lasts. It must not change what
 * is admitted, nor take from a task what it was promised: a greedy task gets its
 * share of the time at least, whatever the policy, also while policies change.
 */
#include <sys/syscall.h>

#include "counters.h"

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE	6
#endif

#define POLICY		"/sys/devices/system/cpu/freq_invariance/policy"
#define AVAILABLE	"/sys/devices/system/cpu/freq_invariance/available_policies"
#define PERIOD_NS	20000000ull
#define SHARE		0.10
#define WINDOW_MS	400

struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static bool set_deadline(double share)
{
	struct attr attr = {
		.size = sizeof(attr), .policy = SCHED_DEADLINE,
		.runtime = PERIOD_NS * share, .deadline = PERIOD_NS, .period = PERIOD_NS,
	};

	return !syscall(SYS_sched_setattr, 0, &attr, 0);
}

static bool set_normal(void)
{
	struct attr attr = { .size = sizeof(attr) };

	return !syscall(SYS_sched_setattr, 0, &attr, 0);
}

static bool choose(const char *word)
{
	FILE *file = fopen(POLICY, "w");
	bool done;

	if (!file)
		return false;
	done = fprintf(file, "%s\n", word) > 0;
	return !fclose(file) && done;
}

static void read_line(const char *name, char *line, size_t size)
{
	FILE *file = fopen(name, "r");

	if (!file || !fgets(line, size, file))
		ksft_exit_skip("%s cannot be read\n", name);
	fclose(file);
	line[strcspn(line, "\n")] = 0;
}

static double clock_s(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Share of the time that this task got while it wanted all of it */
static double greedy_share(void)
{
	double wall = clock_s(CLOCK_MONOTONIC), cpu = clock_s(CLOCK_THREAD_CPUTIME_ID);
	double end = wall + WINDOW_MS / 1e3, now;

	do {
		now = clock_s(CLOCK_MONOTONIC);
	} while (now < end);

	return (clock_s(CLOCK_THREAD_CPUTIME_ID) - cpu) / (now - wall);
}

static void test_policy(const char *word)
{
	bool admitted, refused;
	double share;

	if (!choose(word)) {
		ksft_test_result_skip("%s: cannot be chosen\n", word);
		return;
	}

	refused = !set_deadline(1.5);
	admitted = set_deadline(SHARE);
	share = admitted ? greedy_share() : 0;
	set_normal();

	/* A period at either end may lie half outside of the window */
	ksft_test_result(admitted && refused && share > 0.9 * SHARE,
			 "%s: %.0f %% reserved, %.1f %% given\n", word, 100 * SHARE, 100 * share);
}

int main(void)
{
	char before[32], words[256], *word, *list[16];
	int i, nr = 0;
	bool all = true;

	ksft_print_header();
	read_line(POLICY, before, sizeof(before));
	read_line(AVAILABLE, words, sizeof(words));
	if (geteuid() || !choose(before))
		ksft_exit_skip("the policy cannot be set\n");

	for (word = strtok(words, " "); word && nr < 16; word = strtok(NULL, " ")) {
		if (strcmp(word, "Nc"))
			list[nr++] = word;
	}
	ksft_set_plan(nr + 1);
	for (i = 0; i < nr; i++)
		test_policy(list[i]);

	/* Under way */
	all = set_deadline(SHARE);
	for (i = 0; i < 100; i++)
		all = all && choose(list[i % nr]);
	all = all && greedy_share() > 0.9 * SHARE;
	set_normal();
	choose(before);
	ksft_test_result(all, "policies changed 100 times under a reservation\n");
	ksft_finished();
}
