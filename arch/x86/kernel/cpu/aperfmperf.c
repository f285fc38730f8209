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
 * This file reads the counters and keeps the samples. The arithmetic is in
 * freq_invariance.h, freq_max in freq_max.c, the turbo tables in turbo_table.c.
 */
#define pr_fmt(fmt) "freq_invariance: " fmt

#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/cpufeature.h>
#include <linux/cpufreq.h>
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/jump_label.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/processor.h>
#include <linux/string.h>
#include <linux/topology.h>

#include <asm/cpu.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "freq_max.h"

#define CREATE_TRACE_POINTS
#include <asm/trace/freq_invariance.h>

DEFINE_PER_CPU_SHARED_ALIGNED(struct freq_counters, freq_counters) = {
	.factor	= BIT_ULL(10 + FREQ_FACTOR_SHIFT),
	.ratio	= SCHED_CAPACITY_SCALE,
	.quiet	= INITIAL_JIFFIES,
	.wanted	= INITIAL_JIFFIES - 3600 * HZ,
};

/*
 * A read that raises #GP yields 0, which makes a sample without a meaning. Not by
 * rdmsrl_safe(), because its tracepoint costs more than all else here, and there
 * is one for samples.
 */
static __always_inline u64 read_counter(u32 msr)
{
	DECLARE_ARGS(value, low, high);
	int err;

	asm volatile("1: rdmsr\n"
		     "2:\n\t"
		     _ASM_EXTABLE_TYPE_REG(1b, 2b, EX_TYPE_RDMSR_SAFE, %[err])
		     : [err] "=r" (err), EAX_EDX_RET(value, low, high)
		     : "c" (msr));

	return EAX_EDX_VAL(value, low, high);
}

/* What APERF and MPERF did between two reads, modulo 2^64 */
struct freq_deltas {
	u64	aperf;
	u64	mperf;
};

/* Read by the CPU itself with interrupts off; the next deltas begin here */
static __always_inline struct freq_deltas read_counters(struct freq_counters *c)
{
	u64 aperf = read_counter(MSR_IA32_APERF);
	u64 mperf = read_counter(MSR_IA32_MPERF);
	struct freq_deltas d = { aperf - c->aperf, mperf - c->mperf };

	c->aperf = aperf;
	c->mperf = mperf;
	c->tsc = rdtsc();

	return d;
}

/* No message about a CPU for so long after the last one */
#define MESSAGE_PERIOD	(60 * HZ)

static const char *what_is_wrong(struct freq_sample sample)
{
	u64 value;

	if (rdmsrl_safe(MSR_IA32_APERF, &value) || rdmsrl_safe(MSR_IA32_MPERF, &value))
		return "APERF or MPERF cannot be read";
	if (sample.aperf)
		return "MPERF stands still";
	if (sample.mperf)
		return "APERF stands still";

	return "APERF and MPERF stand still or go back";
}

/* From the tick, or with the runqueue's lock held */
static void tell_quarantine(struct freq_counters *c, struct freq_sample sample)
{
	if (c->told || time_before(jiffies, c->quiet))
		return;

	c->told = true;
	c->quiet = jiffies + MESSAGE_PERIOD;
	printk_deferred(KERN_WARNING
			pr_fmt("CPU %u: %s; keeping its last scale and trying again\n"),
			smp_processor_id(), what_is_wrong(sample));
}

static void tell_recovery(struct freq_counters *c)
{
	if (!c->told)
		return;

	c->told = false;
	printk_deferred(KERN_INFO pr_fmt("CPU %u: the counters are good again\n"),
			smp_processor_id());
}

/*
 * The scale remains what it was. The next sample is as good as any, because the
 * reference of the differences has moved on.
 */
static noinline void skip_sample(struct freq_counters *c, struct freq_sample sample)
{
	c->skipped++;
	if (!freq_health_bad(&c->health))
		return;

	c->retry = jiffies + msecs_to_jiffies(c->health.wait);
	tell_quarantine(c, sample);
}

static __always_inline void publish(struct freq_counters *c, struct freq_sample sample)
{
	atomic64_set(&c->sample, sample.aperf << 32 | sample.mperf);
	/* Pairs with arch_freq_get_on_cpu(): no new stamp on an old sample */
	smp_store_release(&c->stamp, jiffies);
	c->samples++;
}

#if defined(CONFIG_X86_64) && defined(CONFIG_SMP)

DEFINE_STATIC_KEY_FALSE(arch_scale_freq_key);

DEFINE_PER_CPU(unsigned long, arch_freq_scale) = SCHED_CAPACITY_SCALE;
EXPORT_PER_CPU_SYMBOL_GPL(arch_freq_scale);

static __always_inline bool is_invariant(void)
{
	return arch_scale_freq_invariant();
}

static u64 freq_factor(const struct freq_counters *c)
{
	u64 factor = READ_ONCE(c->factor);

	if (static_branch_unlikely(&freq_active_key))
		factor = freq_active_factor(smp_processor_id(), factor);

	return factor;
}

/* Return: whether the sample has a meaning */
static bool set_scale(const struct freq_counters *c, struct freq_sample sample)
{
	unsigned long scale = freq_sample_scale(sample, freq_factor(c));
	unsigned int cpu = smp_processor_id();

	if (scale)
		this_cpu_write(arch_freq_scale, scale);
	trace_freq_scale(cpu, sample.aperf, sample.mperf, freq_max_of_cpu(cpu), scale);

	return scale;
}

/* What use_deltas() can do without a call of another function */
static __always_inline bool is_plain(struct freq_deltas d)
{
	return !((d.aperf | d.mperf) >> FREQ_SAMPLE_BITS) &&
	       !static_branch_unlikely(&freq_active_key) &&
	       !trace_freq_scale_enabled();
}

#else

static inline bool is_invariant(void) { return false; }
static inline bool set_scale(const struct freq_counters *c, struct freq_sample sample)
{
	return true;
}

#endif /* CONFIG_X86_64 && CONFIG_SMP */

/* Everything that a sample may need, in any state of health */
static noinline void use_deltas(struct freq_counters *c, u64 aperf, u64 mperf)
{
	struct freq_sample sample = freq_sample_from(aperf, mperf);
	bool good = sample.mperf;

	if (is_invariant())
		good = set_scale(c, sample);

	if (good) {
		publish(c, sample);
		freq_health_good(&c->health);
	} else {
		skip_sample(c, sample);
	}
}

/* While invariance is off: for so long after somebody asked for the frequency */
#define WANTED_PERIOD	(10 * HZ)

/* Nobody wants samples: the next one would reach back too far */
static bool is_wanted(struct freq_counters *c)
{
	if (time_before(jiffies, READ_ONCE(c->wanted) + WANTED_PERIOD))
		return true;

	if (c->health.state == FREQ_SAMPLING)
		c->health.state = FREQ_SEEDING;

	return false;
}

/* The tick of a CPU whose last sample was bad, or that has not sampled lately */
static noinline void sample_in_trouble(struct freq_counters *c)
{
	struct freq_deltas d;
	u8 state = c->health.state;

	if (state == FREQ_QUARANTINED && time_before(jiffies, c->retry))
		return;

	d = read_counters(c);
	switch (state) {
	case FREQ_SEEDING:
		freq_health_good(&c->health);
		break;
	case FREQ_QUARANTINED:
		freq_health_retry(&c->health);
		break;
	default:
		use_deltas(c, d.aperf, d.mperf);
		if (!c->health.trouble)
			tell_recovery(c);
	}
}

/* The tick while invariance is off */
static noinline void sample_for_readers(struct freq_counters *c)
{
	if (is_wanted(c))
		sample_in_trouble(c);
}

#if defined(CONFIG_X86_64) && defined(CONFIG_SMP)

/* The usual case has no calls but at its end, which spares it the stack */
static __always_inline void sample(struct freq_counters *c)
{
	struct freq_sample sample;
	struct freq_deltas d;
	unsigned long scale;

	d = read_counters(c);
	if (unlikely(!is_plain(d)))
		return use_deltas(c, d.aperf, d.mperf);

	sample = (struct freq_sample){ d.aperf, d.mperf };
	scale = freq_sample_scale(sample, READ_ONCE(c->factor));
	if (unlikely(!scale))
		return skip_sample(c, sample);

	this_cpu_write(arch_freq_scale, scale);
	publish(c, sample);
}

#else

static inline void sample(struct freq_counters *c) { }

#endif

/**
 * arch_scale_freq_tick() - Sample APERF and MPERF of this CPU
 *
 * From the scheduler's tick, interrupts off.
 */
void arch_scale_freq_tick(void)
{
	struct freq_counters *c = this_cpu_ptr(&freq_counters);

	if (!cpu_feature_enabled(X86_FEATURE_APERFMPERF))
		return;

	if (!is_invariant())
		sample_for_readers(c);
	else if (unlikely(c->health.trouble))
		sample_in_trouble(c);
	else
		sample(c);
}

#if defined(CONFIG_X86_64) && defined(CONFIG_SMP)

/* Half a millisecond, in units of the time stamp counter */
static u32 refresh_cycles __read_mostly = U32_MAX;

/**
 * __arch_scale_freq_refresh() - Sample before much time is accounted
 * @cpu: the CPU whose time it is
 *
 * What arch_scale_freq_refresh() does when there is reason to. The runqueue's
 * lock is held and interrupts are off. The counters of another CPU cannot be
 * read; its own tick is not far.
 */
void __arch_scale_freq_refresh(int cpu)
{
	struct freq_counters *c = this_cpu_ptr(&freq_counters);

	if (cpu != smp_processor_id() || c->health.trouble)
		return;
	/* The tick was here a moment ago */
	if ((u32)rdtsc() - c->tsc < refresh_cycles)
		return;

	sample(c);
}

/* Some hypervisors offer the counters and never move them, idle or not */
static bool counters_move(void)
{
	u64 aperf, mperf;

	guard(preempt)();
	aperf = read_counter(MSR_IA32_APERF);
	mperf = read_counter(MSR_IA32_MPERF);
	udelay(5);

	return read_counter(MSR_IA32_APERF) != aperf &&
	       read_counter(MSR_IA32_MPERF) != mperf;
}

/* Taken outside of the CPU hotplug lock */
static DEFINE_MUTEX(switch_lock);

static void switch_on(void)
{
	refresh_cycles = tsc_khz / 2;
	static_branch_enable(&arch_scale_freq_key);
	pr_info("on, freq_max is %u/1024 of base\n", freq_max_of_cpu(0));
}

/* After the branch is switched no tick is under way that has seen it on */
static void switch_off(void)
{
	unsigned int cpu;

	static_branch_disable(&arch_scale_freq_key);
	for_each_possible_cpu(cpu)
		per_cpu(arch_freq_scale, cpu) = SCHED_CAPACITY_SCALE;
	pr_info("switched off\n");
}

/**
 * freq_invariance_switch() - Switch frequency invariance on or off
 * @on: which
 *
 * May sleep. The CPU hotplug lock must not be held.
 *
 * Return: 0; -ENODEV if freq_max is not known, -EIO if the counters of this CPU
 * do not count. Then nothing has changed.
 */
int freq_invariance_switch(bool on)
{
	guard(mutex)(&switch_lock);

	if (on == static_key_enabled(&arch_scale_freq_key))
		return 0;
	if (!on) {
		switch_off();
		return 0;
	}

	if (!cpu_feature_enabled(X86_FEATURE_APERFMPERF) || !freq_max_known()) {
		pr_debug("off, no base or turbo ratio in the registers\n");
		return -ENODEV;
	}
	if (!counters_move()) {
		pr_info("off, APERF and MPERF do not count\n");
		return -EIO;
	}

	switch_on();
	return 0;
}

static char freq_max_word[FREQ_POLICY_WORD] __initdata;

/* A word that is too long stays unknown when it is cut */
static int __init set_freq_max_word(char *word)
{
	strscpy(freq_max_word, word);
	return 1;
}
__setup("freq_max=", set_freq_max_word);

static void __init init_invariance(void)
{
	freq_max_init(freq_max_word);
	freq_invariance_switch(true);
}

#else

static inline void init_invariance(void) { }

#endif /* CONFIG_X86_64 && CONFIG_SMP */

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
 * Any context that cpufreq_quick_get() can be called in. While invariance is
 * off, the CPU takes samples for the next ten seconds.
 *
 * Return: the mean between its last two samples, without idle time, in kHz. If
 * there was none lately or the counters say nothing, what cpufreq has requested;
 * if that is not known, the base frequency.
 */
unsigned int arch_freq_get_on_cpu(int cpu)
{
	struct freq_counters *c = per_cpu_ptr(&freq_counters, cpu);
	unsigned int khz = 0;
	unsigned long stamp;

	if (!is_invariant())
		WRITE_ONCE(c->wanted, jiffies);

	/* Pairs with publish(): the sample is as new or newer */
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
	if (cpu_feature_enabled(X86_FEATURE_APERFMPERF))
		read_counters(this_cpu_ptr(&freq_counters));
}

static int __init bp_init_aperfmperf(void)
{
	ap_init_aperfmperf();
	if (cpu_feature_enabled(X86_FEATURE_APERFMPERF))
		init_invariance();
	return 0;
}
early_initcall(bp_init_aperfmperf);
