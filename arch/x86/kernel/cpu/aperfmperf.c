// SPDX-License-Identifier: GPL-2.0
/*
 * What APERF and MPERF tell the scheduler and cpufreq.
 *
 * While a CPU is not idle, APERF counts at its clock and MPERF at the base
 * frequency. Each tick takes the differences since the last one:
 *
 *  - their quotient is the mean clock, for scaling_cur_freq and /proc/cpuinfo;
 *  - relative to freq_max it is the scale that makes utilisation independent of
 *    the clock (64-bit SMP kernels).
 *
 * This file reads registers and keeps state. The arithmetic is in
 * freq_invariance.h, the turbo tables in turbo_table.c.
 */
#define pr_fmt(fmt) "freq_invariance: " fmt

#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/cpufeature.h>
#include <linux/cpufreq.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/jump_label.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/processor.h>
#include <linux/topology.h>

#include <asm/cpu.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "freq_invariance.h"

/**
 * struct freq_counters - state of one CPU
 * @aperf: APERF at the last sample
 * @mperf: MPERF at the last sample
 * @factor: freq_max as freq_sample_scale() takes it; written by any CPU
 * @sample: the last sample, APERF in the upper half and MPERF in the lower one;
 *	read by any CPU
 * @stamp: when @sample was taken, in jiffies; written after it
 */
struct freq_counters {
	u64		aperf;
	u64		mperf;
	u64		factor;
	atomic64_t	sample;
	unsigned long	stamp;
};

static DEFINE_PER_CPU_SHARED_ALIGNED(struct freq_counters, freq_counters);

#if defined(CONFIG_X86_64) && defined(CONFIG_SMP)

DEFINE_STATIC_KEY_FALSE(arch_scale_freq_key);

DEFINE_PER_CPU(unsigned long, arch_freq_scale) = SCHED_CAPACITY_SCALE;
EXPORT_PER_CPU_SYMBOL_GPL(arch_freq_scale);

static DEFINE_STATIC_KEY_FALSE(hybrid_capacity_key);
static DEFINE_PER_CPU_READ_MOSTLY(unsigned long, cpu_capacity) = SCHED_CAPACITY_SCALE;

/* Serialises the writers of freq_counters::factor and turbo_ratio */
static DEFINE_MUTEX(freq_max_lock);

/* freq_max / base frequency while turbo can be used, in 1/1024 */
static u64 turbo_ratio = SCHED_CAPACITY_SCALE;

static void set_cpu_freq_max(unsigned int cpu, u64 ratio)
{
	WRITE_ONCE(per_cpu(freq_counters.factor, cpu), freq_scale_factor(ratio));
}

static u64 set_freq_max(bool turbo_disabled)
{
	u64 ratio = turbo_disabled ? SCHED_CAPACITY_SCALE : turbo_ratio;
	unsigned int cpu;

	lockdep_assert_held(&freq_max_lock);

	/* On hybrid parts arch_set_cpu_capacity() decides, CPU by CPU */
	if (static_branch_unlikely(&hybrid_capacity_key))
		return ratio;

	for_each_possible_cpu(cpu)
		set_cpu_freq_max(cpu, ratio);

	return ratio;
}

/**
 * arch_set_max_freq_ratio() - Tell whether turbo can be used
 * @turbo_disabled: if true, freq_max is the base frequency
 *
 * For cpufreq drivers. Takes effect at the next tick of each CPU. May sleep;
 * the CPU hotplug lock may be held.
 */
void arch_set_max_freq_ratio(bool turbo_disabled)
{
	guard(mutex)(&freq_max_lock);
	set_freq_max(turbo_disabled);
}
EXPORT_SYMBOL_GPL(arch_set_max_freq_ratio);

/**
 * freq_invariance_set_perf_ratio() - Set freq_max and switch invariance on
 * @ratio: freq_max / base frequency, in 1/1024
 * @turbo_disabled: as of arch_set_max_freq_ratio()
 *
 * May sleep. The CPU hotplug lock must not be held, it is taken to switch the
 * static branch.
 */
void freq_invariance_set_perf_ratio(u64 ratio, bool turbo_disabled)
{
	u64 now;

	scoped_guard(mutex, &freq_max_lock) {
		turbo_ratio = ratio;
		now = set_freq_max(turbo_disabled);
	}

	static_branch_enable(&arch_scale_freq_key);
	pr_info("on, freq_max is %llu/1024 of base\n", now);
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
	if (WARN_ON_ONCE(!static_key_enabled(&hybrid_capacity_key)) ||
	    WARN_ON_ONCE(!max_cap || !base_freq))
		return;

	guard(mutex)(&freq_max_lock);
	WRITE_ONCE(per_cpu(cpu_capacity, cpu),
		   (cap << SCHED_CAPACITY_SHIFT) / max_cap);
	set_cpu_freq_max(cpu, (cap_freq << SCHED_CAPACITY_SHIFT) / base_freq);
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
		capacity = READ_ONCE(per_cpu(cpu_capacity, cpu));

	return capacity;
}
EXPORT_SYMBOL_GPL(arch_scale_cpu_capacity);

/*
 * A sample that says nothing leaves the scale as it was. The next one is as
 * good as any, because the reference of the differences has moved on.
 */
static __always_inline void update_freq_scale(const struct freq_counters *c,
					      struct freq_sample sample)
{
	unsigned long scale;

	if (!arch_scale_freq_invariant())
		return;

	scale = freq_sample_scale(sample, READ_ONCE(c->factor));
	if (likely(scale))
		this_cpu_write(arch_freq_scale, scale);
}

static int __init read_turbo_table(struct turbo_table *table,
				   const struct turbo_layout *layout)
{
	u64 limits[TURBO_LIMIT_MSRS] = {};
	unsigned int i;
	u64 base;

	if (rdmsrl_safe(layout->base_msr, &base))
		return -EIO;

	for (i = 0; i < TURBO_LIMIT_MSRS && layout->limit_msrs[i]; i++) {
		if (rdmsrl_safe(layout->limit_msrs[i], &limits[i]))
			return -EIO;
	}

	return turbo_table_decode(table, layout, base, limits);
}

/* freq_max / base frequency in 1/1024, 0 if the registers do not say */
static u32 __init read_turbo_ratio(void)
{
	const struct turbo_model *model = turbo_model_find(boot_cpu_data.x86_vfm);
	struct turbo_table table;

	if (read_turbo_table(&table, model->layout)) {
		model = turbo_model_fallback();
		if (read_turbo_table(&table, model->layout))
			return 0;
	}

	return freq_max_ratio(turbo_table_freq_max(&table, model->cores),
			      table.base);
}

static bool __init turbo_disabled_by_firmware(void)
{
	u64 setting;

	return !rdmsrl_safe(MSR_IA32_MISC_ENABLE, &setting) &&
	       setting & MSR_IA32_MISC_ENABLE_TURBO_DISABLE;
}

/* Some hypervisors offer the counters and never move them, idle or not */
static bool __init counters_move(void)
{
	u64 aperf, mperf, value;

	rdmsrl(MSR_IA32_APERF, aperf);
	rdmsrl(MSR_IA32_MPERF, mperf);
	udelay(5);
	rdmsrl(MSR_IA32_APERF, value);
	if (value == aperf)
		return false;
	rdmsrl(MSR_IA32_MPERF, value);
	return value != mperf;
}

/* On AMD the ratio comes later, from ACPI: see arch/x86/kernel/acpi/cppc.c */
static void __init init_intel_freq_invariance(void)
{
	u32 ratio;

	if (boot_cpu_data.x86_vendor != X86_VENDOR_INTEL)
		return;

	if (!counters_move()) {
		pr_info("off, APERF and MPERF do not count\n");
		return;
	}

	ratio = read_turbo_ratio();
	if (!ratio) {
		pr_debug("off, no base or turbo ratio in the registers\n");
		return;
	}

	freq_invariance_set_perf_ratio(ratio, turbo_disabled_by_firmware());
}

#else

static inline void update_freq_scale(const struct freq_counters *c,
				     struct freq_sample sample) { }
static inline void init_intel_freq_invariance(void) { }

#endif /* CONFIG_X86_64 && CONFIG_SMP */

/**
 * arch_scale_freq_tick() - Sample APERF and MPERF of this CPU
 *
 * From the scheduler's tick, interrupts off.
 */
void arch_scale_freq_tick(void)
{
	struct freq_sample sample;
	struct freq_counters *c;
	u64 aperf, mperf;

	if (!cpu_feature_enabled(X86_FEATURE_APERFMPERF))
		return;

	rdmsrl(MSR_IA32_APERF, aperf);
	rdmsrl(MSR_IA32_MPERF, mperf);

	c = this_cpu_ptr(&freq_counters);
	sample = freq_sample_from(aperf - c->aperf, mperf - c->mperf);
	c->aperf = aperf;
	c->mperf = mperf;

	atomic64_set(&c->sample, sample.aperf << 32 | sample.mperf);
	/* Pairs with arch_freq_get_on_cpu(): no new stamp on an old sample */
	smp_store_release(&c->stamp, jiffies);

	update_freq_scale(c, sample);
}

/* No tick for so long: the CPU is idle or isolated, the sample is history */
#define SAMPLE_MAX_AGE	msecs_to_jiffies(20)

static struct freq_sample read_sample(const struct freq_counters *c)
{
	u64 sample = atomic64_read(&c->sample);

	return (struct freq_sample){ sample >> 32, (u32)sample };
}

/**
 * arch_freq_get_on_cpu() - Frequency of a CPU
 * @cpu: the CPU
 *
 * Any context that cpufreq_quick_get() can be called in.
 *
 * Return: the mean between its last two ticks, without idle time, in kHz. If
 * there was no tick lately or the counters say nothing, what cpufreq has
 * requested; if that is not known, the base frequency.
 */
unsigned int arch_freq_get_on_cpu(int cpu)
{
	const struct freq_counters *c = per_cpu_ptr(&freq_counters, cpu);
	unsigned int khz = 0;
	unsigned long stamp;

	/* Pairs with arch_scale_freq_tick(): the sample is as new or newer */
	stamp = smp_load_acquire(&c->stamp);
	if (jiffies - stamp <= SAMPLE_MAX_AGE)
		khz = freq_sample_khz(read_sample(c), cpu_khz);

	return khz ?: cpufreq_quick_get(cpu) ?: cpu_khz;
}

/**
 * ap_init_aperfmperf() - Start sampling from here on this CPU
 *
 * Called on a CPU that comes online or resumes, interrupts off: its counters
 * may have started anew.
 */
void ap_init_aperfmperf(void)
{
	if (!cpu_feature_enabled(X86_FEATURE_APERFMPERF))
		return;

	rdmsrl(MSR_IA32_APERF, this_cpu_ptr(&freq_counters)->aperf);
	rdmsrl(MSR_IA32_MPERF, this_cpu_ptr(&freq_counters)->mperf);
}

static int __init bp_init_aperfmperf(void)
{
	ap_init_aperfmperf();
	if (cpu_feature_enabled(X86_FEATURE_APERFMPERF))
		init_intel_freq_invariance();
	return 0;
}
early_initcall(bp_init_aperfmperf);
