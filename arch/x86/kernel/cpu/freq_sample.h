/* SPDX-License-Identifier: GPL-2.0 */
/* The frequency scale from differences of APERF and MPERF: pure functions */
#ifndef _X86_KERNEL_CPU_FREQ_SAMPLE_H
#define _X86_KERNEL_CPU_FREQ_SAMPLE_H

#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/types.h>

/* Differences of this many bits need no shift: 59 minutes at 5 GHz */
#define FREQ_SAMPLE_BITS	(64 - 2 * SCHED_CAPACITY_SHIFT)

/* freq_sample_scale() takes it: no counter stood still, was set back or rose by too much */
static __always_inline bool freq_sample_usual(u64 acnt, u64 mcnt, u64 usual)
{
	return mcnt - 1 < usual && !((acnt - 1) >> (FREQ_SAMPLE_BITS - 1));
}

/* The largest freq_max / base frequency, in 1/1024, with which mcnt * ratio fits 64 bits */
#define FREQ_SAMPLE_RATIO_MAX	(BIT_ULL(20) - 1)

/**
 * freq_sample_scale() - 1024 * acnt / mcnt * f_base / f_max
 * @acnt: by how much APERF rose; both below 2^44
 * @mcnt: by how much MPERF rose over the same time; not zero
 * @ratio: freq_max / base frequency, in 1/1024; up to FREQ_SAMPLE_RATIO_MAX, not zero
 *
 * Return: at most 1024; 0 below 1/1024 of freq_max, when a counter crawls.
 */
static __always_inline unsigned long freq_sample_scale(u64 acnt, u64 mcnt, u64 ratio)
{
	return min(div64_u64(acnt << (2 * SCHED_CAPACITY_SHIFT), mcnt * ratio),
		   SCHED_CAPACITY_SCALE);
}

/*
 * The same for any differences, modulo 2^64; 0 also if a counter stood still or was set
 * back. Large differences lose their lowest bits, so an interval may have any length.
 */
static inline unsigned long freq_sample_scale_any(u64 acnt, u64 mcnt, u64 ratio)
{
	int excess = max(fls64(acnt | mcnt) - FREQ_SAMPLE_BITS, 0);

	if ((s64)(acnt | mcnt) < 0 || !(mcnt >> excess))
		return 0;

	return freq_sample_scale(acnt >> excess, mcnt >> excess, ratio);
}

/* MPERF counts at the rate of the TSC, or up to twice as fast if its clock is overclocked */
static inline u64 freq_sample_mperf_max(u64 tsc)
{
	return 2 * tsc;
}

/* The scale is given up: four bad samples in a row, or more than one in three */
#define FREQ_TROUBLE_BAD	2
#define FREQ_TROUBLE_LIMIT	(4 * FREQ_TROUBLE_BAD)

/* Return: @trouble after a bad sample; each good one lowers it by 1 */
static inline u8 freq_trouble_bad(u8 trouble)
{
	return min(trouble + FREQ_TROUBLE_BAD, FREQ_TROUBLE_LIMIT);
}

#endif /* _X86_KERNEL_CPU_FREQ_SAMPLE_H */
