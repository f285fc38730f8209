// SPDX-License-Identifier: GPL-2.0
/*
 * What sysfs shows of latencies and residencies: whole microseconds, of which a
 * latency limit admits the state and one less does not; 0 is for POLL only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <linux/cpuidle.h>

#define DIV_ROUND_UP_ULL(n, d)	(((unsigned long long)(n) + (d) - 1) / (d))

// FROM drivers/cpuidle/sysfs.c: define_show_state_time_function
define_show_state_time_function(exit_latency)
define_show_state_time_function(target_residency)

int main(void)
{
	static const s64 ns[] = { 0, 1, 200, 999, 1000, 1001, 2000, 290000, 5000000000 };
	int failures = 0;

	for (int i = 0; i < ARRAY_SIZE(ns); i++) {
		struct cpuidle_state state = {
			.exit_latency_ns = ns[i], .target_residency_ns = ns[i]
		};
		char latency[32], residency[32];
		s64 us;

		show_state_exit_latency(&state, NULL, latency);
		show_state_target_residency(&state, NULL, residency);
		us = atoll(latency);
		if (us * 1000 >= ns[i] && (us - 1) * 1000 < ns[i] && atoll(residency) == us)
			continue;
		printf("# %lld ns: latency %s# residency %s", ns[i], latency, residency);
		failures++;
	}
	printf("%s\n", failures ? "not ok" : "ok");
	return failures != 0;
}
