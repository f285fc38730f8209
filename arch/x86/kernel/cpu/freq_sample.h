/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What two counter differences say. Values in, values out, so that KUnit and
 * programs in user space can call it without the hardware.
 */
#ifndef _X86_KERNEL_CPU_FREQ_SAMPLE_H
#define _X86_KERNEL_CPU_FREQ_SAMPLE_H

#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/types.h>

/* Differences of so many bits can be scaled as they are: 58 minutes at 5 GHz */
#define FREQ_SAMPLE_BITS	(64 - 2 * SCHED_CAPACITY_SHIFT)

/**
 * freq_sample_valid() - Do two counter differences make sense?
 * @acnt: by how much APERF rose, modulo 2^64
 * @mcnt: by how much MPERF rose over the same time, modulo 2^64
 *
 * Return: false if a counter stood still or was set back.
 */
static inline bool freq_sample_valid(u64 acnt, u64 mcnt)
{
	return acnt && mcnt && (s64)(acnt | mcnt) > 0;
}

/**
 * freq_sample_scale() - Frequency relative to freq_max
 * @acnt: by how much APERF rose, modulo 2^64
 * @mcnt: by how much MPERF rose over the same time, modulo 2^64
 * @ratio: freq_max / base frequency, in 1/1024; below 2^20
 *
 *	       f_cur          acnt   f_base
 *	1024 * ----- = 1024 * ---- * ------
 *	       f_max          mcnt   f_max
 *
 * Differences of more than %FREQ_SAMPLE_BITS bits lose their lowest ones, so that
 * no time is too long.
 *
 * Return: 1 to 1024; 0 if a counter stood still or was set back, or if the frequency
 * was below 1/1024 of freq_max.
 */
static __always_inline unsigned long freq_sample_scale(u64 acnt, u64 mcnt, u64 ratio)
{
	if (unlikely((acnt | mcnt) >> FREQ_SAMPLE_BITS)) {
		unsigned int excess = fls64(acnt | mcnt) - FREQ_SAMPLE_BITS;

		/* Counting to 2^63 takes 58 years at 5 GHz: one was set back */
		if ((s64)(acnt | mcnt) < 0)
			return 0;
		acnt >>= excess;
		mcnt >>= excess;
	}

	mcnt *= ratio;
	if (unlikely(!mcnt))
		return 0;

	return min(div64_u64(acnt << (2 * SCHED_CAPACITY_SHIFT), mcnt),
		   SCHED_CAPACITY_SCALE);
}

/* The scale cannot be kept: four bad samples in a row, or more than every third */
#define FREQ_TROUBLE_BAD	2
#define FREQ_TROUBLE_LIMIT	(4 * FREQ_TROUBLE_BAD)

/* Return: @trouble after a bad sample; good ones take it back by 1 */
static inline u8 freq_trouble_bad(u8 trouble)
{
	return min(trouble + FREQ_TROUBLE_BAD, FREQ_TROUBLE_LIMIT);
}

#endif /* _X86_KERNEL_CPU_FREQ_SAMPLE_H */
