/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _X86_KERNEL_CPU_TURBO_TABLE_H
#define _X86_KERNEL_CPU_TURBO_TABLE_H

#include <linux/types.h>

#define TURBO_LIMIT_MSRS	3	/* MSR_TURBO_RATIO_LIMIT and its two extensions */
#define TURBO_BINS_MAX		(8 * TURBO_LIMIT_MSRS)

/* Highest clock, in multiples of the bus clock, with up to @cores active */
struct turbo_bin {
	u16	cores;
	u8	ratio;
};

/* Bins by number of cores, strictly rising; ratios are as reported and never zero */
struct turbo_table {
	u8			base;		/* the clock that MPERF counts */
	u8			nr_bins;
	struct turbo_bin	bins[TURBO_BINS_MAX];
};

struct turbo_layout {
	const char *name;
	u32	base_msr;	/* the base ratio: shift right, then mask */
	u8	base_shift;
	u8	base_mask;
	u32	limit_msrs[TURBO_LIMIT_MSRS];	/* the bins; 0 if unused */
	u8	nr_bytes;	/* how many of their bytes are ratios, by number of cores */
	u8	byte_mask;
	/* Appends the bins in the values of limit_msrs to the table */
	void	(*decode)(struct turbo_table *table, const struct turbo_layout *layout,
			  const u64 *limits);
};

/* In place of a number of cores */
#define TURBO_SECOND_RATIO	0	/* the fewest that have the second highest ratio */
#define TURBO_ALL_CORES		255	/* the widest bin */

struct turbo_model {
	u32				vfm;
	u8				cores;
	const struct turbo_layout	*layout;
};

const struct turbo_model *turbo_model_find(u32 vfm);
int turbo_table_decode(struct turbo_table *table, const struct turbo_layout *layout,
		       u64 base, const u64 *limits);
unsigned int turbo_table_cores(const struct turbo_table *table, unsigned int cores);
u32 turbo_table_freq_max(const struct turbo_table *table, unsigned int cores);

#endif /* _X86_KERNEL_CPU_TURBO_TABLE_H */
