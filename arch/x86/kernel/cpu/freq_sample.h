/* SPDX-License-Identifier: GPL-2.0 */
/* What two counter differences say. Values in, values out. */
#ifndef _X86_KERNEL_CPU_FREQ_SAMPLE_H
#define _X86_KERNEL_CPU_FREQ_SAMPLE_H

#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/types.h>

/* Differences of so many bits can be scaled as they are: 58 minutes at 5 GHz */
#define FREQ_SAMPLE_BITS	(64 - 2 * SCHED_CAPACITY_SHIFT)

/* One that freq_sample_scale() takes: no counter stood still, was set back or rose by more */
static __always_inline bool freq_sample_usual(u64 acnt, u64 mcnt, u64 usual)
{
	return mcnt - 1 < usual && !((acnt - 1) >> (FREQ_SAMPLE_BITS - 1));
}

/**
 * freq_sample_scale() - 1024 * acnt / mcnt * f_base / f_max
 * @acnt: by how much APERF rose; both below 2^44
 * @mcnt: by how much MPERF rose over the same time; not zero
 * @ratio: freq_max / base frequency, in 1/1024; below 2^20, not zero
 *
 * Return: at most 1024; 0 for less than 1/1024 of freq_max: a counter crawls.
 */
static __always_inline unsigned long freq_sample_scale(u64 acnt, u64 mcnt, u64 ratio)
{
	return min(div64_u64(acnt << (2 * SCHED_CAPACITY_SHIFT), mcnt * ratio),
		   SCHED_CAPACITY_SCALE);
}

/*
 * The same for any differences, modulo 2^64; 0 also if a counter stood still or was set
 * back. Large ones lose their lowest bits, so that no time is too long.
 */
static inline unsigned long freq_sample_scale_any(u64 acnt, u64 mcnt, u64 ratio)
{
	int excess = max(fls64(acnt | mcnt) - FREQ_SAMPLE_BITS, 0);

	if ((s64)(acnt | mcnt) < 0 || !(mcnt >> excess))
		return 0;

	return freq_sample_scale(acnt >> excess, mcnt >> excess, ratio);
}

/* MPERF counts no faster than the TSC, or by little where that has another crystal */
static inline u64 freq_sample_mperf_max(u64 tsc)
{
	return tsc + tsc / 8;
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
