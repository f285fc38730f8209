/* SPDX-License-Identifier: GPL-2.0 */
/* What the idle governors' arithmetic knows of states and CPUs */
#ifndef MUTANTS_KUNIT_CPUIDLE_H
#define MUTANTS_KUNIT_CPUIDLE_H

#include <kunit/test.h>

#define CPUIDLE_STATE_MAX	10
#define RESIDENCY_THRESHOLD_NS	(15 * NSEC_PER_USEC)

struct cpuidle_driver {
	struct {
		s64 exit_latency_ns, target_residency_ns;
	} states[CPUIDLE_STATE_MAX];
	int state_count;
};

struct cpuidle_device {
	struct {
		unsigned long long disable;
	} states_usage[CPUIDLE_STATE_MAX];
};

#endif
