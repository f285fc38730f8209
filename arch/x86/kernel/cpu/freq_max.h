/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frequency invariance on x86: the state that its files share. The sampling is
 * in aperfmperf.c, freq_max in freq_max.c.
 */
#ifndef _X86_KERNEL_CPU_FREQ_MAX_H
#define _X86_KERNEL_CPU_FREQ_MAX_H

#include <linux/atomic.h>
#include <linux/jump_label.h>
#include <linux/percpu.h>

#include <asm/freq_scale.h>

#include "freq_invariance.h"

/**
 * struct freq_counters - state of one CPU's sampling
 * @aperf: APERF at the last sample
 * @mperf: MPERF at the last sample
 * @factor: freq_max as freq_sample_scale() takes it; written by any CPU
 * @sample: the last sample, APERF in the upper half and MPERF in the lower one;
 *	read by any CPU
 * @stamp: when @sample was taken, in jiffies; written after it
 * @samples: samples taken
 * @tsc: when the last one was, lower half of the time stamp counter
 * @health: whether to sample at all
 * @ratio: freq_max / base frequency in 1/1024, what @factor is made of
 * @skipped: bad samples
 * @retry: when to try again in quarantine, in jiffies
 * @quiet: when the next message about this CPU may be printed, in jiffies
 * @told: the present quarantine was worth a message
 * @wanted: when the frequency was last asked for while invariance was off, in
 *	jiffies; written by any CPU
 *
 * The first cache line is all that a good sample needs.
 */
struct freq_counters {
	u64			aperf;
	u64			mperf;
	u64			factor;
	atomic64_t		sample;
	unsigned long		stamp;
	unsigned long		samples;
	u32			tsc;
	struct freq_health	health;
	u32			ratio;

	unsigned long		skipped;
	unsigned long		retry;
	unsigned long		quiet;
	bool			told;
	unsigned long		wanted;
};

DECLARE_PER_CPU_SHARED_ALIGNED(struct freq_counters, freq_counters);

/* freq_max.c; a static branch that is true while the policy is "active" */
DECLARE_STATIC_KEY_FALSE(freq_active_key);
u64 freq_active_factor(unsigned int cpu, u64 factor);

bool freq_max_known(void);
void freq_max_init(const char *word);
int freq_max_set_policy(const char *word);
struct freq_policy freq_max_policy(enum freq_family *family);
u32 freq_max_of_cpu(unsigned int cpu);
const struct turbo_table *freq_max_table(void);
unsigned int freq_max_khz(unsigned int ratio);

#endif /* _X86_KERNEL_CPU_FREQ_MAX_H */
