/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the series adds to struct sugov_policy and struct sugov_cpu, whose layout has to stay: it
 * is in per-CPU data of the module.
 */
#include "cpufreq_holdoff.h"

struct live_policy {
	struct holdoff		holdoff;
	unsigned long		min_perf;
	unsigned long		max_perf;
	u64			looked;
	unsigned int		most;
};

struct live_cpu {
	u64			saturated;
	u64			needed;
};

static DEFINE_PER_CPU(struct live_policy, live_policies);
static DEFINE_PER_CPU(struct live_cpu, live_cpus);

#define live_policy(sg) per_cpu(live_policies, cpumask_first((sg)->policy->related_cpus))
#define live_cpu(sg)	per_cpu(live_cpus, (sg)->cpu)
