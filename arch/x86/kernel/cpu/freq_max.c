// SPDX-License-Identifier: GPL-2.0
/*
 * freq_max of each CPU: what the policy makes of what the CPU can give, within
 * what cpufreq can request.
 *
 * Who has a say in it:
 *
 *  - the turbo table of Intel CPUs, or the boost ratios from ACPI CPPC (AMD);
 *  - the policy, from the command line or sysfs;
 *  - cpufreq drivers, which say whether turbo can be used, and whose highest
 *    frequency is a limit;
 *  - intel_pstate on hybrid CPUs, which sets each CPU's ratio itself.
 */
#define pr_fmt(fmt) "freq_invariance: " fmt

#include <linux/bitmap.h>
#include <linux/cleanup.h>
#include <linux/cpufreq.h>
#include <linux/cpumask.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/jump_label.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include <asm/cpu_device_id.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "freq_max.h"

/**
 * struct freq_range - what is known of one CPU
 * @boost: highest clock / base frequency in 1/1024, or 0; AMD
 * @hybrid: ratio set by arch_set_cpu_capacity(), or 0
 * @capacity: the same for the capacity, in 1/1024 of the most capable CPU
 * @max_khz: highest frequency that cpufreq can request, 0 without a driver
 * @no_turbo: turbo cannot be used at present
 */
struct freq_range {
	u32		boost;
	u32		hybrid;
	unsigned long	capacity;
	unsigned int	max_khz;
	bool		no_turbo;
};

static DEFINE_PER_CPU_READ_MOSTLY(struct freq_range, freq_range) = {
	.capacity = SCHED_CAPACITY_SCALE,
};

/*
 * Serialises the writers of freq_range, freq_counters::factor and the policy.
 * Taken with the CPU hotplug lock held, so that it must not be held where a
 * static branch is switched.
 */
static DEFINE_MUTEX(freq_max_lock);

/* Serialises what switches static branches; outside of all other locks */
static DEFINE_MUTEX(freq_switch_lock);

static DEFINE_STATIC_KEY_FALSE(hybrid_capacity_key);

static struct turbo_table turbo_table;
static enum freq_family family;
static struct freq_policy policy;

/* What freq_invariance_set_perf_ratio() was told, in place of all of that */
static u32 fixed_ratio;

static u32 turbo_ratio_of(const struct freq_range *range)
{
	if (turbo_table.nr_bins)
		return freq_policy_turbo(policy, &turbo_table,
					 topology_num_cores_per_package());
	if (range->boost)
		return freq_policy_boost(policy, range->boost);

	return fixed_ratio ?: SCHED_CAPACITY_SCALE;
}

static u32 ratio_of(const struct freq_range *range)
{
	u32 ratio = SCHED_CAPACITY_SCALE;

	if (range->hybrid)
		return range->hybrid;

	if (!range->no_turbo)
		ratio = turbo_ratio_of(range);

	return freq_max_limit(ratio, range->max_khz, tsc_khz);
}

static void update_cpu(unsigned int cpu)
{
	struct freq_counters *c = per_cpu_ptr(&freq_counters, cpu);
	u32 ratio = ratio_of(per_cpu_ptr(&freq_range, cpu));

	lockdep_assert_held(&freq_max_lock);

	WRITE_ONCE(c->ratio, ratio);
	WRITE_ONCE(c->factor, freq_scale_factor(ratio));
}

static void update_all_cpus(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		update_cpu(cpu);
}

/**
 * arch_set_max_freq_ratio() - Tell whether turbo can be used
 * @turbo_disabled: if true, freq_max is the base frequency
 *
 * For cpufreq drivers whose CPUs have one switch for all. Takes effect at the
 * next tick of each CPU. May sleep; the CPU hotplug lock may be held.
 */
void arch_set_max_freq_ratio(bool turbo_disabled)
{
	unsigned int cpu;

	guard(mutex)(&freq_max_lock);
	for_each_possible_cpu(cpu) {
		per_cpu(freq_range.no_turbo, cpu) = turbo_disabled;
		update_cpu(cpu);
	}
}
EXPORT_SYMBOL_GPL(arch_set_max_freq_ratio);

#ifdef CONFIG_CPU_FREQ

/*
 * A driver's init() callback may boost before related_cpus is known. CPUs of
 * the policy that are offline at present have to be right when they come back.
 */
static const struct cpumask *cpus_of(const struct cpufreq_policy *cpufreq)
{
	return cpumask_empty(cpufreq->related_cpus) ? cpufreq->cpus :
						      cpufreq->related_cpus;
}

/**
 * arch_set_boost() - Tell whether the CPUs of a cpufreq policy can boost
 * @cpufreq: the policy, with its cpuinfo.max_freq as it is now
 * @on: whether they can
 *
 * Takes effect at the next tick of each CPU. May sleep; the CPU hotplug lock
 * may be held.
 */
void arch_set_boost(const struct cpufreq_policy *cpufreq, bool on)
{
	unsigned int cpu;

	guard(mutex)(&freq_max_lock);
	for_each_cpu(cpu, cpus_of(cpufreq)) {
		per_cpu(freq_range.no_turbo, cpu) = !on;
		if (per_cpu(freq_range.max_khz, cpu))
			per_cpu(freq_range.max_khz, cpu) = cpufreq->cpuinfo.max_freq;
		update_cpu(cpu);
	}
}
EXPORT_SYMBOL_GPL(arch_set_boost);

static int policy_notify(struct notifier_block *nb, unsigned long event, void *data)
{
	const struct cpufreq_policy *cpufreq = data;
	unsigned int cpu;

	guard(mutex)(&freq_max_lock);
	for_each_cpu(cpu, cpus_of(cpufreq)) {
		per_cpu(freq_range.max_khz, cpu) =
			event == CPUFREQ_CREATE_POLICY ? cpufreq->cpuinfo.max_freq : 0;
		update_cpu(cpu);
	}

	return NOTIFY_OK;
}

static struct notifier_block policy_notifier = { .notifier_call = policy_notify };

/* Before any driver, so that no policy is missed */
static int __init watch_policies(void)
{
	if (!cpu_feature_enabled(X86_FEATURE_APERFMPERF))
		return 0;

	return cpufreq_register_notifier(&policy_notifier, CPUFREQ_POLICY_NOTIFIER);
}
postcore_initcall(watch_policies);

#endif /* CONFIG_CPU_FREQ */

/**
 * freq_invariance_set_perf_ratio() - Set freq_max and switch invariance on
 * @ratio: freq_max / base frequency of all CPUs, in 1/1024
 * @turbo_disabled: as of arch_set_max_freq_ratio()
 *
 * For CPUs whose clocks are not known in more detail. May sleep. The CPU hotplug
 * lock must not be held.
 */
void freq_invariance_set_perf_ratio(u64 ratio, bool turbo_disabled)
{
	scoped_guard(mutex, &freq_max_lock)
		fixed_ratio = min(ratio, U32_MAX);

	arch_set_max_freq_ratio(turbo_disabled);
	freq_invariance_switch(true);
}

/**
 * freq_invariance_set_boost_ratio() - Set what a CPU can boost to
 * @cpu: the CPU
 * @ratio: highest clock / base frequency, in 1/1024; not 0
 *
 * The policy makes freq_max of it. When all CPUs are done,
 * freq_invariance_switch() switches invariance on. May sleep.
 */
void freq_invariance_set_boost_ratio(unsigned int cpu, u32 ratio)
{
	guard(mutex)(&freq_max_lock);
	per_cpu(freq_range.boost, cpu) = ratio;
	update_cpu(cpu);
}

/**
 * arch_enable_hybrid_capacity_scale() - Give each CPU a capacity of its own
 *
 * To be called before arch_set_cpu_capacity(). May sleep; the CPU hotplug lock
 * must not be held.
 *
 * Return: true, it cannot fail.
 */
bool arch_enable_hybrid_capacity_scale(void)
{
	guard(mutex)(&freq_switch_lock);

	if (!static_key_enabled(&hybrid_capacity_key)) {
		static_branch_enable(&hybrid_capacity_key);
		pr_info("CPUs differ in capacity and freq_max\n");
	}

	return true;
}

/**
 * arch_set_cpu_capacity() - Set the capacity and freq_max of one CPU
 * @cpu: the CPU
 * @cap: its capacity at its highest frequency, any unit
 * @max_cap: highest capacity of all CPUs, in the unit of @cap
 * @cap_freq: frequency at which it has @cap, any unit
 * @base_freq: frequency at which its MPERF counts, in the unit of @cap_freq
 *
 * arch_enable_hybrid_capacity_scale() must have been called. When all CPUs are
 * done, arch_rebuild_sched_domains() lets the scheduler know. May sleep.
 */
void arch_set_cpu_capacity(int cpu, unsigned long cap, unsigned long max_cap,
			   unsigned long cap_freq, unsigned long base_freq)
{
	struct freq_range *range = per_cpu_ptr(&freq_range, cpu);

	if (WARN_ON_ONCE(!static_key_enabled(&hybrid_capacity_key)) ||
	    WARN_ON_ONCE(!max_cap || !base_freq))
		return;

	guard(mutex)(&freq_max_lock);
	WRITE_ONCE(range->capacity, (cap << SCHED_CAPACITY_SHIFT) / max_cap);
	range->hybrid = (cap_freq << SCHED_CAPACITY_SHIFT) / base_freq;
	update_cpu(cpu);
}

/**
 * arch_scale_cpu_capacity() - Capacity of a CPU at its highest frequency
 * @cpu: the CPU
 *
 * Return: capacity relative to the most capable CPU, in 1/1024.
 */
unsigned long arch_scale_cpu_capacity(int cpu)
{
	unsigned long capacity = SCHED_CAPACITY_SCALE;

	/* A branch, because most systems are spared the memory access by it */
	if (static_branch_unlikely(&hybrid_capacity_key))
		capacity = READ_ONCE(per_cpu(freq_range.capacity, cpu));

	return capacity;
}
EXPORT_SYMBOL_GPL(arch_scale_cpu_capacity);

/**
 * struct freq_package - busy cores of a package, for FREQ_POLICY_ACTIVE
 * @next: when to count them again, in jiffies
 * @level: of freq_active_step()
 * @ratio: freq_max / base frequency in 1/1024
 * @factor: the same as freq_sample_scale() takes it
 *
 * Written by the CPU that moves @next on, once per %ACTIVE_PERIOD; read by all.
 */
struct freq_package {
	unsigned long	next;
	u32		level;
	u32		ratio;
	u64		factor;
} ____cacheline_aligned_in_smp;

DEFINE_STATIC_KEY_FALSE(freq_active_key);

static struct freq_package *freq_packages;

#define ACTIVE_PERIOD	max(msecs_to_jiffies(4), 1)

/* One thread of a core stands for it: the first one that is busy */
static bool core_counts(unsigned int cpu)
{
	unsigned int sibling;

	for_each_cpu(sibling, topology_sibling_cpumask(cpu)) {
		if (!idle_cpu(sibling))
			return sibling == cpu;
	}

	return false;
}

static unsigned int busy_cores(unsigned int cpu)
{
	unsigned int i, cores = 0;

	for_each_cpu(i, topology_core_cpumask(cpu))
		cores += core_counts(i);

	return cores;
}

static void count_package(struct freq_package *package, unsigned int cpu)
{
	unsigned int cores = busy_cores(cpu);
	u32 ratio;

	/* An idle CPU's tick: nobody runs whom it would concern */
	if (!cores)
		return;

	ratio = freq_max_ratio(turbo_table_ratio(&turbo_table, cores), turbo_table.base);
	package->level = freq_active_step(package->level, ratio);
	WRITE_ONCE(package->ratio, package->level >> FREQ_ACTIVE_SHIFT);
	WRITE_ONCE(package->factor, freq_scale_factor(package->ratio));
}

static struct freq_package *package_of(unsigned int cpu)
{
	return &freq_packages[topology_logical_package_id(cpu)];
}

/**
 * freq_active_factor() - freq_max with the present number of busy cores
 * @cpu: this CPU
 * @factor: what limits it, as freq_scale_factor() returns
 *
 * From the tick or with the runqueue's lock held, interrupts off. Once every 4
 * ms one CPU of the package counts: it looks at the runqueues of the others,
 * and writes nothing there.
 *
 * Return: the factor for freq_sample_scale().
 */
u64 freq_active_factor(unsigned int cpu, u64 factor)
{
	struct freq_package *package = package_of(cpu);
	unsigned long next = READ_ONCE(package->next);

	if (time_after_eq(jiffies, next) &&
	    try_cmpxchg(&package->next, &next, jiffies + ACTIVE_PERIOD))
		count_package(package, cpu);

	/* A larger factor is a lower frequency */
	return max(factor, READ_ONCE(package->factor));
}

static bool has_active(void)
{
	return freq_packages && turbo_table.nr_bins;
}

static void start_packages(void)
{
	u32 ratio = freq_max_ratio(turbo_table_ratio(&turbo_table, 1), turbo_table.base);
	unsigned int i;

	for (i = 0; i < topology_max_packages(); i++) {
		freq_packages[i].next = jiffies;
		freq_packages[i].level = ratio << FREQ_ACTIVE_SHIFT;
		WRITE_ONCE(freq_packages[i].ratio, ratio);
		WRITE_ONCE(freq_packages[i].factor, freq_scale_factor(ratio));
	}
}

/**
 * freq_max_known() - Is anything known about freq_max?
 *
 * Return: true if invariance makes sense.
 */
bool freq_max_known(void)
{
	guard(mutex)(&freq_max_lock);

	return turbo_table.nr_bins || fixed_ratio || per_cpu(freq_range.boost, 0);
}

/**
 * freq_max_set_policy() - Change the policy
 * @word: one of freq_policy_words()
 *
 * Takes effect at the next tick of each CPU. May sleep. The CPU hotplug lock
 * must not be held.
 *
 * Return: 0; -EINVAL if there is no such policy, -EBUSY if intel_pstate sets
 * each CPU's freq_max, -ENOMEM. Then nothing has changed.
 */
int freq_max_set_policy(const char *word)
{
	struct freq_policy new;
	bool active;
	int ret;

	guard(mutex)(&freq_switch_lock);

	ret = freq_policy_parse(&new, family, word);
	if (ret)
		return ret;
	if (static_key_enabled(&hybrid_capacity_key))
		return -EBUSY;

	active = new.kind == FREQ_POLICY_ACTIVE;
	if (active && !has_active())
		return -ENOMEM;

	if (active)
		start_packages();
	else
		static_branch_disable(&freq_active_key);

	scoped_guard(mutex, &freq_max_lock) {
		policy = new;
		update_all_cpus();
	}

	if (active)
		static_branch_enable(&freq_active_key);

	return 0;
}

/**
 * freq_max_policy() - The present policy
 * @which: whose words describe it, set
 *
 * Return: the policy.
 */
struct freq_policy freq_max_policy(enum freq_family *which)
{
	guard(mutex)(&freq_max_lock);
	*which = family;

	return policy;
}

/**
 * freq_max_of_cpu() - freq_max of a CPU at present
 * @cpu: the CPU
 *
 * Return: freq_max / base frequency in 1/1024.
 */
u32 freq_max_of_cpu(unsigned int cpu)
{
	u32 ratio = READ_ONCE(per_cpu(freq_counters.ratio, cpu));

	if (static_branch_unlikely(&freq_active_key))
		ratio = min(ratio, READ_ONCE(package_of(cpu)->ratio));

	return ratio;
}

/**
 * freq_max_table() - The turbo table
 *
 * Return: the table, NULL if the CPU has none. It does not change.
 */
const struct turbo_table *freq_max_table(void)
{
	return turbo_table.nr_bins ? &turbo_table : NULL;
}

/**
 * freq_max_khz() - Clock of a bin
 * @ratio: the bin's ratio
 *
 * Return: kHz, by the base frequency that was measured.
 */
unsigned int freq_max_khz(unsigned int ratio)
{
	return DIV_ROUND_CLOSEST_ULL((u64)ratio * tsc_khz, turbo_table.base);
}

static int __init read_turbo_table(const struct turbo_layout *layout)
{
	u64 limits[TURBO_LIMIT_MSRS] = {};
	struct turbo_table table;
	unsigned int i;
	u64 base;
	int ret;

	if (rdmsrl_safe(layout->base_msr, &base))
		return -EIO;

	for (i = 0; i < TURBO_LIMIT_MSRS && layout->limit_msrs[i]; i++) {
		if (rdmsrl_safe(layout->limit_msrs[i], &limits[i]))
			return -EIO;
	}

	ret = turbo_table_decode(&table, layout, base, limits);
	if (!ret)
		turbo_table = table;

	return ret;
}

static bool __init turbo_disabled_by_firmware(void)
{
	u64 setting;

	return !rdmsrl_safe(MSR_IA32_MISC_ENABLE, &setting) &&
	       setting & MSR_IA32_MISC_ENABLE_TURBO_DISABLE;
}

static void __init init_intel(void)
{
	const struct turbo_model *model = turbo_model_find(boot_cpu_data.x86_vfm);

	family = FREQ_FAMILY_TURBO;
	if (read_turbo_table(model->layout)) {
		model = turbo_model_fallback();
		if (read_turbo_table(model->layout)) {
			policy = (struct freq_policy){ FREQ_POLICY_BASE };
			return;
		}
	}

	policy = freq_policy_default(model->cores);
	freq_packages = kcalloc(topology_max_packages(), sizeof(*freq_packages), GFP_KERNEL);
	arch_set_max_freq_ratio(turbo_disabled_by_firmware());
}

/**
 * freq_max_init() - Read what the registers say, and set the policy
 * @word: the policy from the command line, empty for the default
 *
 * On AMD CPUs the ratios come later, from ACPI: arch/x86/kernel/acpi/cppc.c.
 */
void __init freq_max_init(const char *word)
{
	family = FREQ_FAMILY_BOOST;
	policy = (struct freq_policy){ FREQ_POLICY_MIDPOINT };
	if (boot_cpu_data.x86_vendor == X86_VENDOR_INTEL)
		init_intel();

	if (*word && freq_max_set_policy(word)) {
		char now[FREQ_POLICY_WORD];

		freq_policy_word(policy, family, now);
		pr_warn("freq_max=%s is unknown, %s is kept; there are: %s\n",
			word, now, freq_policy_words(family));
	}
}
