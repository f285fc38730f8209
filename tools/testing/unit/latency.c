// SPDX-License-Identifier: GPL-2.0
/*
 * Latencies and residencies in sysfs: whole microseconds. A limit of what is shown
 * admits the state, one less excludes it; only POLL shows 0.
 */
#include <kunit/test.h>
#include <linux/cpuidle.h>

#define sysfs_emit		sprintf

// FROM drivers/cpuidle/sysfs.c: define_show_state_time_function
define_show_state_time_function(exit_latency)
define_show_state_time_function(target_residency)

static void microseconds_test(struct kunit *test)
{
	static const s64 ns[] = { 0, 1, 200, 999, 1000, 1001, 2000, 290000, 5000000000 };

	for (int i = 0; i < ARRAY_SIZE(ns); i++) {
		struct cpuidle_state state = {
			.exit_latency_ns = ns[i], .target_residency_ns = ns[i]
		};
		char latency[32], residency[32];
		s64 us;

		show_state_exit_latency(&state, NULL, latency);
		show_state_target_residency(&state, NULL, residency);
		us = atoll(latency);
		KUNIT_EXPECT_GE(test, us * 1000, ns[i]);
		KUNIT_EXPECT_LT(test, (us - 1) * 1000, ns[i]);
		KUNIT_EXPECT_STREQ(test, residency, latency);
	}
}

static struct kunit_case latency_cases[] = {
	KUNIT_CASE(microseconds_test),
	{}
};

static struct kunit_suite latency_suite = { .name = "latency", .test_cases = latency_cases };
kunit_test_suite(latency_suite);
