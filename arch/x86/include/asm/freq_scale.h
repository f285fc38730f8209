/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frequency invariance: what the scheduler, cpufreq drivers and ACPI tell it. The
 * rest of the interface is in <asm/topology.h>.
 */
#ifndef _ASM_X86_FREQ_SCALE_H
#define _ASM_X86_FREQ_SCALE_H

#include <linux/errno.h>
#include <linux/time64.h>
#include <linux/types.h>

#include <asm/topology.h>

struct cpufreq_policy;

#if defined(CONFIG_X86_64) && defined(CONFIG_SMP)

void arch_set_boost(const struct cpufreq_policy *cpufreq, bool on);
void freq_invariance_set_boost_ratio(unsigned int cpu, u32 ratio);
int freq_invariance_switch(bool on);

/* So much running time, and the scale of the last sample may be off */
#define ARCH_FREQ_REFRESH_NS	(500 * NSEC_PER_USEC)

void __arch_scale_freq_refresh(int cpu);

/**
 * arch_scale_freq_refresh() - Renew the scale before time is accounted
 * @cpu: the CPU whose time it is
 * @delta: the time, in ns
 *
 * A CPU that was idle or changed its clock since the last tick has the scale of
 * another time. A burst that is shorter than a tick may see none at all. So a
 * sample is taken before a long stretch is scaled: it covers what is accounted.
 *
 * The runqueue's lock is held and interrupts are off.
 */
static __always_inline void arch_scale_freq_refresh(int cpu, s64 delta)
{
	if (arch_scale_freq_invariant() && delta > ARCH_FREQ_REFRESH_NS)
		__arch_scale_freq_refresh(cpu);
}

#else

static inline void arch_set_boost(const struct cpufreq_policy *cpufreq, bool on) { }
static inline void freq_invariance_set_boost_ratio(unsigned int cpu, u32 ratio) { }
static inline int freq_invariance_switch(bool on) { return -ENODEV; }
static inline void arch_scale_freq_refresh(int cpu, s64 delta) { }

#endif

#endif /* _ASM_X86_FREQ_SCALE_H */
