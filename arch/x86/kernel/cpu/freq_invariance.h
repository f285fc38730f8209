/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frequency invariance on x86: the arithmetic, apart from registers and state.
 *
 * Everything here takes values and returns values, so that KUnit and programs
 * in user space can call it without the hardware.
 */
#ifndef _X86_KERNEL_CPU_FREQ_INVARIANCE_H
#define _X86_KERNEL_CPU_FREQ_INVARIANCE_H

#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/types.h>

/* MSR_TURBO_RATIO_LIMIT and its two extensions */
#define TURBO_LIMIT_MSRS	3

/* The longest table known: one bin for each of 24 cores (Broadwell-X) */
#define TURBO_BINS_MAX		(8 * TURBO_LIMIT_MSRS)

/**
 * struct turbo_bin - highest clock for a number of active cores
 * @cores: the bin holds while at most this many cores of the package are active
 * @ratio: clock in multiples of the bus clock
 */
struct turbo_bin {
	u16	cores;
	u8	ratio;
};

/**
 * struct turbo_table - what a package can give, as its registers say
 * @base: ratio of the clock that MPERF counts, same unit as the bins
 * @nr_bins: entries of @bins in use
 * @bins: by number of cores, strictly rising; ratios are as reported and never
 *	zero, usually falling
 */
struct turbo_table {
	u8			base;
	u8			nr_bins;
	struct turbo_bin	bins[TURBO_BINS_MAX];
};

/**
 * struct turbo_layout - where a family of CPUs keeps its turbo table, and how
 * @name: for messages and tests
 * @base_msr: register with the base ratio
 * @base_shift: lowest bit of the base ratio
 * @base_mask: the base ratio's width, right-aligned
 * @limit_msrs: registers with the bins, unused ones are 0
 * @decode: appends the bins in the values of @limit_msrs to the table
 */
struct turbo_layout {
	const char	*name;
	u32		base_msr;
	u8		base_shift;
	u8		base_mask;
	u32		limit_msrs[TURBO_LIMIT_MSRS];
	void		(*decode)(struct turbo_table *table, const u64 *limits);
};

/* In place of a number of cores: the second highest ratio of the table */
#define TURBO_SECOND_RATIO	0

/**
 * struct turbo_model - how one CPU model is treated
 * @vfm: vendor, family and model, as in <asm/intel-family.h>
 * @cores: freq_max is the turbo clock with this many cores active, or
 *	%TURBO_SECOND_RATIO
 * @layout: how to read the turbo table
 */
struct turbo_model {
	u32				vfm;
	u8				cores;
	const struct turbo_layout	*layout;
};

const struct turbo_model *turbo_model_find(u32 vfm);
const struct turbo_model *turbo_model_fallback(void);
int turbo_table_decode(struct turbo_table *table,
		       const struct turbo_layout *layout, u64 base,
		       const u64 *limits);
unsigned int turbo_table_ratio(const struct turbo_table *table,
			       unsigned int cores);
unsigned int turbo_table_freq_max(const struct turbo_table *table,
				  unsigned int cores);
u32 freq_max_ratio(unsigned int turbo, unsigned int base);

/**
 * enum freq_policy_kind - which of the clocks that a CPU can have is freq_max
 * @FREQ_POLICY_BASE: the base frequency
 * @FREQ_POLICY_CORES: turbo with a number of cores active
 * @FREQ_POLICY_SECOND: the second highest turbo clock
 * @FREQ_POLICY_ALL: turbo with all cores of the package active
 * @FREQ_POLICY_ACTIVE: turbo with as many cores active as are busy at present
 * @FREQ_POLICY_BOOST: the highest boost clock (AMD)
 * @FREQ_POLICY_MIDPOINT: the middle of @FREQ_POLICY_BOOST and the base (AMD)
 */
enum freq_policy_kind {
	FREQ_POLICY_BASE,
	FREQ_POLICY_CORES,
	FREQ_POLICY_SECOND,
	FREQ_POLICY_ALL,
	FREQ_POLICY_ACTIVE,
	FREQ_POLICY_BOOST,
	FREQ_POLICY_MIDPOINT,
};

/**
 * struct freq_policy - how freq_max is chosen
 * @kind: the rule
 * @cores: active cores that %FREQ_POLICY_CORES assumes, at least 1
 */
struct freq_policy {
	enum freq_policy_kind	kind;
	u16			cores;
};

/**
 * enum freq_family - where the clocks above base are known from
 * @FREQ_FAMILY_TURBO: a turbo table (Intel)
 * @FREQ_FAMILY_BOOST: a boost ratio of each CPU, from ACPI CPPC (AMD)
 */
enum freq_family {
	FREQ_FAMILY_TURBO,
	FREQ_FAMILY_BOOST,
};

/* Enough for any word, with its terminating zero */
#define FREQ_POLICY_WORD	12

const char *freq_policy_words(enum freq_family family);
int freq_policy_parse(struct freq_policy *policy, enum freq_family family,
		      const char *word);
void freq_policy_word(struct freq_policy policy, enum freq_family family,
		      char word[FREQ_POLICY_WORD]);
struct freq_policy freq_policy_default(unsigned int cores);
u32 freq_policy_turbo(struct freq_policy policy, const struct turbo_table *table,
		      unsigned int package_cores);
u32 freq_policy_boost(struct freq_policy policy, u32 boost);
u32 freq_max_limit(u32 ratio, unsigned int max_khz, unsigned int base_khz);
u32 freq_active_step(u32 level, u32 ratio);

/* Places of freq_active_step()'s level behind the 10 of a ratio */
#define FREQ_ACTIVE_SHIFT	8

/*
 * The scale of a sample is
 *
 *	       f_cur          dAPERF   f_base
 *	1024 * ----- = 1024 * ------ * ------
 *	       f_max          dMPERF   f_max
 *
 * with f_max / f_base known beforehand as a ratio in 1/1024, so that
 *
 *	scale = dAPERF * (2^20 / ratio) / dMPERF
 *
 * The ratio changes rarely, and so the term in parentheses is kept, with
 * %FREQ_FACTOR_SHIFT more bits. The other division cannot be avoided, but its
 * result has 11 bits at most: one of 64 by 32 bits will do.
 *
 * That nothing overflows is up to these three numbers: differences are below
 * 2^FREQ_SAMPLE_BITS, factors at most 2^34.
 */
#define FREQ_SAMPLE_BITS	30
#define FREQ_FACTOR_SHIFT	22
#define FREQ_MAX_RATIO_LOWEST	256

/* Up to here a factor has 22 bits or more, which the result needs 11 of */
#define FREQ_MAX_RATIO_HIGHEST	BIT(20)

/**
 * freq_scale_factor() - Prepare a ratio for freq_sample_scale()
 * @ratio: freq_max / base frequency, in 1/1024; one out of the limits (1/4 and
 *	1024 times base) counts as the nearest that is not
 *
 * Return: 2^20 / @ratio with %FREQ_FACTOR_SHIFT binary places, rounded up, so
 * that freq_max itself scales to 1024.
 */
static inline u64 freq_scale_factor(u64 ratio)
{
	ratio = clamp(ratio, FREQ_MAX_RATIO_LOWEST, FREQ_MAX_RATIO_HIGHEST);

	return DIV_ROUND_UP_ULL(BIT_ULL(20 + FREQ_FACTOR_SHIFT), ratio);
}

/**
 * struct freq_sample - what the counters did over some time, scaled alike
 * @aperf: by how much APERF rose
 * @mperf: by how much MPERF rose
 *
 * Only the quotient has a meaning. Both are below 2^FREQ_SAMPLE_BITS. A sample
 * without a meaning is zero on either side.
 */
struct freq_sample {
	u64	aperf;
	u64	mperf;
};

/*
 * What freq_sample_from() does with differences of too many bits. APERF in the
 * upper half of the result, MPERF in the lower one: a structure on the stack
 * would cost the callers more than this function.
 */
static noinline_for_stack __maybe_unused u64 freq_sample_shrink(u64 aperf, u64 mperf)
{
	unsigned int bits = fls64(aperf | mperf);

	/* Counting to 2^63 takes 58 years at 5 GHz: one was set back */
	if (bits == 64)
		return 0;

	aperf >>= bits - FREQ_SAMPLE_BITS;
	/* So little beside APERF that the scale is 1024 whatever it is */
	if (mperf)
		mperf = max(mperf >> (bits - FREQ_SAMPLE_BITS), 1);

	return aperf << 32 | mperf;
}

/**
 * freq_sample_from() - Make a sample of two counter differences
 * @aperf: of APERF, modulo 2^64
 * @mperf: of MPERF over the same time, modulo 2^64
 *
 * Differences of more than %FREQ_SAMPLE_BITS bits, after 200 ms and more of
 * work without a tick, lose their lowest bits, so that the larger one has that
 * many left. No time is too long.
 *
 * Return: the sample; one without a meaning if a counter stood still or was set
 * back.
 */
static __always_inline struct freq_sample freq_sample_from(u64 aperf, u64 mperf)
{
	if (unlikely((aperf | mperf) >> FREQ_SAMPLE_BITS)) {
		mperf = freq_sample_shrink(aperf, mperf);
		aperf = mperf >> 32;
		mperf = (u32)mperf;
	}

	return (struct freq_sample){ aperf, mperf };
}

/**
 * freq_sample_scale() - Frequency of a sample relative to freq_max
 * @s: the sample
 * @factor: from freq_scale_factor()
 *
 * Within 1 of the exact quotient rounded down.
 *
 * Return: 1 to 1024; 0 if the sample has no meaning or the frequency was below
 * 1/1024 of freq_max.
 */
static __always_inline unsigned long
freq_sample_scale(struct freq_sample s, u64 factor)
{
	u64 num = (s.aperf * factor) >> FREQ_FACTOR_SHIFT;
	unsigned long scale;
	u32 rest;

	if (num >= s.mperf << SCHED_CAPACITY_SHIFT)
		return s.mperf ? SCHED_CAPACITY_SCALE : 0;

	/*
	 * Now the quotient is below 2^10, so that DIV of 64 by 32 bits does not
	 * trap; volatile, lest it be moved before the check. The compiler would
	 * take the much slower one of 128 by 64 bits.
	 */
	asm volatile("divl %k[den]"
		     : "=a" (scale), "=d" (rest)
		     : [den] "r" (s.mperf), "a" ((u32)num), "d" ((u32)(num >> 32)));

	return scale;
}

/**
 * freq_sample_khz() - Frequency of a sample
 * @s: the sample
 * @base_khz: frequency at which MPERF counts, in kHz
 *
 * Return: mean frequency while the CPU was not idle, in kHz; 0 if the sample
 * has no meaning.
 */
static inline unsigned int freq_sample_khz(struct freq_sample s,
					   unsigned int base_khz)
{
	if (!s.mperf)
		return 0;

	return min(div_u64(s.aperf * base_khz, s.mperf), UINT_MAX);
}

/* So many bad samples in a row, and a CPU is quarantined */
#define FREQ_BAD_SAMPLES	8

/* First and longest time until a quarantined CPU is tried again, in ms */
#define FREQ_RETRY_FIRST	20
#define FREQ_RETRY_LONGEST	400

/**
 * enum freq_state - what the next tick of a CPU does
 * @FREQ_SAMPLING: take a sample; it is 0
 * @FREQ_SEEDING: read the counters as a reference only, then sample
 * @FREQ_QUARANTINED: nothing until the time of the next try
 * @FREQ_TRYING: take a sample that decides whether the quarantine ends
 */
enum freq_state {
	FREQ_SAMPLING,
	FREQ_SEEDING,
	FREQ_QUARANTINED,
	FREQ_TRYING,
};

/**
 * struct freq_health - how a CPU's samples have been lately
 * @state: one of enum freq_state
 * @bad: bad samples in a row, while not in quarantine
 * @trouble: both of them, 0 if the last sample was good
 * @wait: from the last try in quarantine to the next, in ms
 */
struct freq_health {
	union {
		struct {
			u8	state;
			u8	bad;
		};
		u16	trouble;
	};
	u16	wait;
};

/**
 * freq_health_bad() - Account a bad sample
 * @h: the CPU's health, with the state that the sample was taken in
 *
 * Return: true if the CPU is in quarantine now; then the next try is due in
 * @h->wait ms, at which time freq_health_retry() is to be called.
 */
static inline bool freq_health_bad(struct freq_health *h)
{
	if (h->state == FREQ_TRYING) {
		h->wait = min(2 * h->wait, FREQ_RETRY_LONGEST);
	} else {
		if (++h->bad < FREQ_BAD_SAMPLES)
			return false;
		h->wait = FREQ_RETRY_FIRST;
	}
	h->state = FREQ_QUARANTINED;

	return true;
}

/**
 * freq_health_retry() - Try a quarantined CPU again
 * @h: the CPU's health
 *
 * To be called with the counters read as a reference: what they did since the
 * last read includes the fault, so that the next sample is the first to count.
 */
static inline void freq_health_retry(struct freq_health *h)
{
	h->state = FREQ_TRYING;
}

/**
 * freq_health_good() - Account a good sample
 * @h: the CPU's health
 */
static inline void freq_health_good(struct freq_health *h)
{
	h->trouble = 0;
}

#endif /* _X86_KERNEL_CPU_FREQ_INVARIANCE_H */
