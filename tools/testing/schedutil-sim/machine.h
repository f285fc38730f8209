/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CPUs of one cpufreq policy, their driver, and the callers of the scheduler's hook and
 * of the governor's thread. Included after the governor's source.
 *
 * The including file defines request(), which gets every request to the driver.
 */
#ifndef MACHINE_H
#define MACHINE_H

#define MSEC		1000000ull
#define KHZ_MIN		800000u
#define KHZ_MAX		3800000u
#define KHZ_STEP	100000u

long shim_tick_ns = 4 * MSEC;
u32 shim_jiffies;			/* if it stands still, requests of pairs do not expire */
int shim_cpu;
struct rq shim_rq[MAX_CPUS];
unsigned long shim_freq_scale[MAX_CPUS], shim_capacity = SCHED_CAPACITY_SCALE;
bool sched_uclamp_used, shim_scx_enabled, shim_scx_switched_all,
     shim_nohz_full, shim_invariant = true;

static struct {
	u64 now;
	u64 behind[MAX_CPUS];		/* clocks of run queues differ */
	int cpus;
	bool slow, perf;		/* kind of driver */
	bool any_frequency;		/* it has no table */
	bool every_limit;		/* it wants to be called at each change of limits */
	struct cpufreq_policy policy;
	cpumask_t online, related;
	struct task_struct running[MAX_CPUS], idle[MAX_CPUS];
	struct irq_work *irq_work;
	struct kthread_work *work;
	u64 work_at;
} m;

/* A request to the driver in kHz, or on the perf path in units of capacity */
static void request(unsigned long level, unsigned long min_perf);

static u64 rnd_state = 88172645463325252ull;
static u32 rnd(u32 limit)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return (rnd_state >> 32) * limit >> 32;
}

unsigned long tick_nohz_get_idle_calls_cpu(int cpu) { return shim_rq[cpu].idle_calls; }
u64 local_clock(void) { return m.now; }

unsigned int cpufreq_driver_resolve_freq(struct cpufreq_policy *policy, unsigned int freq)
{
	if (!m.any_frequency)
		freq = (freq + KHZ_STEP - 1) / KHZ_STEP * KHZ_STEP;
	return clamp_val(freq, READ_ONCE(policy->min), READ_ONCE(policy->max));
}

unsigned int cpufreq_driver_fast_switch(struct cpufreq_policy *policy, unsigned int freq)
{
	policy->cur = cpufreq_driver_resolve_freq(policy, freq);
	request(policy->cur, 0);
	return policy->cur;
}

int __cpufreq_driver_target(struct cpufreq_policy *policy, unsigned int freq, unsigned int r)
{
	freq = cpufreq_driver_resolve_freq(policy, freq);
	if (freq != policy->cur) {
		policy->cur = freq;
		request(freq, 0);
	}
	return 0;
}

void shim_adjust_perf(unsigned long lo, unsigned long target, unsigned long capacity)
{
	m.policy.cur = cpufreq_driver_resolve_freq(&m.policy, target * KHZ_MAX / capacity);
	request(target, lo);
}

bool cpufreq_driver_has_adjust_perf(void) { return m.perf; }
bool cpufreq_driver_test_flags(unsigned int flags)
{
	return m.every_limit && flags & CPUFREQ_NEED_UPDATE_LIMITS;
}

void cpufreq_policy_apply_limits(struct cpufreq_policy *policy)
{
	__cpufreq_driver_target(policy, policy->cur, 0);
}

void shim_irq_work_queue(struct irq_work *w) { m.irq_work = w; }
void shim_kthread_queue(struct kthread_work *w) { m.work = w; }
void shim_kthread_cancel(void) { m.work = NULL; m.irq_work = NULL; }

/* The governor's thread runs @delay after it was woken. */
static void deferred(u64 delay)
{
	if (m.irq_work) {
		struct irq_work *w = m.irq_work;

		m.irq_work = NULL;
		w->func(w);
		m.work_at = m.now + delay;
	}
	if (m.work && m.now >= m.work_at) {
		struct kthread_work *w = m.work;

		m.work = NULL;
		w->func(w);
	}
}

static u64 clock_of(int cpu) { return m.now - m.behind[cpu]; }

/* The scheduler, running on @from, calls the hook for @cpu. */
static void call_hook(int from, int cpu, unsigned int flags)
{
	shim_cpu = from;
	shim_rq[cpu].clock = clock_of(cpu);
	cpufreq_update_util(&shim_rq[cpu], flags);
}

static void tunable(const char *name, unsigned int value)
{
	struct gov_attr_set *set = governor_tunables;
	char text[16];

	snprintf(text, sizeof(text), "%u\n", value);
	for (struct attribute **a = sugov_attrs; *a; a++) {
		struct governor_attr *g = container_of(*a, struct governor_attr, attr);

		if (strcmp(g->attr.name, name))
			continue;
		mutex_lock(&set->update_lock);
		assert(g->store(set, text, strlen(text)) > 0);
		mutex_unlock(&set->update_lock);
	}
}

static void governor_start(void)
{
	m.policy.cpu = __builtin_ctz(m.online);
	assert(!schedutil_gov.start(&m.policy));
	schedutil_gov.limits(&m.policy);
}

static void governor_end(void)
{
	schedutil_gov.stop(&m.policy);
	schedutil_gov.exit(&m.policy);
}

/* Idle CPUs of a policy at its lowest frequency */
static void machine_init(int cpus)
{
	m.cpus = cpus;
	m.online = m.related = (1u << cpus) - 1;
	m.policy = (struct cpufreq_policy){
		.cpus = &m.online, .related_cpus = &m.related, .min = KHZ_MIN, .max = KHZ_MAX,
		.cur = KHZ_MIN, .cpuinfo = { KHZ_MAX, KHZ_MIN, 20000 },
		.transition_delay_us = 500, .fast_switch_enabled = !m.slow,
	};
	if (!m.now)
		m.now = 1000 * MSEC;
	for (int cpu = 0; cpu < cpus; cpu++) {
		shim_rq[cpu] = (struct rq){
			.cpu = cpu, .curr = &m.idle[cpu], .idle = &m.idle[cpu],
			.clock_idle = clock_of(cpu), .idle_calls = 1,
			.uclamp = { { 0 }, { SCHED_CAPACITY_SCALE } },
		};
		shim_freq_scale[cpu] = SCHED_CAPACITY_SCALE;
		m.running[cpu].sched_class = &fair_sched_class;
		m.running[cpu].se.sum_exec_runtime = 1000 * MSEC;
	}
	assert(!schedutil_gov.init(&m.policy));
}

#endif
