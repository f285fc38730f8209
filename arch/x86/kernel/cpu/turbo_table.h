/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Turbo tables of Intel CPUs: from register values (SDM, volume 4, chapter 2) to bins.
 * Pure functions.
 */
#ifndef _X86_KERNEL_CPU_TURBO_TABLE_H
#define _X86_KERNEL_CPU_TURBO_TABLE_H

#include <linux/errno.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/types.h>

#include <asm/cpu_device_id.h>
#include <asm/intel-family.h>

#define TURBO_LIMIT_MSRS	3	/* MSR_TURBO_RATIO_LIMIT and its two extensions */
#define TURBO_BINS_MAX		(8 * TURBO_LIMIT_MSRS)

/* Highest clock, in multiples of the bus clock, with up to @cores active */
struct turbo_bin {
	u16	cores;
	u8	ratio;
};

/* Bins by number of cores, strictly rising; no ratio is below base, which is not zero */
struct turbo_table {
	u8			base;		/* the clock that MPERF counts */
	u8			nr_bins;
	u16			cores;		/* by default freq_max is turbo with so many */
	struct turbo_bin	bins[TURBO_BINS_MAX];
};

/* In place of a number of cores */
#define TURBO_SECOND_RATIO	0	/* the fewest that have the second highest ratio */
#define TURBO_ALL_CORES		255	/* the widest bin */

static const struct turbo_model {
	u32	vfm;
	u8	cores;
	bool	groups;		/* also if there is one, so that the numbers of cores do not rise */
} turbo_models[] = {
	{ INTEL_ICELAKE_X,		TURBO_ALL_CORES,	true },
	{ INTEL_ICELAKE_D,		TURBO_ALL_CORES,	true },
	{ INTEL_SAPPHIRERAPIDS_X,	TURBO_ALL_CORES,	true },
	{ INTEL_EMERALDRAPIDS_X,	TURBO_ALL_CORES,	true },
	{ INTEL_GRANITERAPIDS_X,	TURBO_ALL_CORES,	true },
	{ INTEL_GRANITERAPIDS_D,	TURBO_ALL_CORES,	true },
	{ IFM(19, 0x01),		TURBO_ALL_CORES,	true },	/* Diamond Rapids */

	{ INTEL_SKYLAKE_X,		4,			true },
	{ INTEL_BARTLETTLAKE,		4,			true },
	{ INTEL_ATOM_TREMONT_D,		4,			true },
	{ INTEL_ATOM_CRESTMONT_X,	4,			true },
	{ INTEL_ATOM_CRESTMONT,		4,			true },
	{ INTEL_ATOM_DARKMONT_X,	4,			true },

	/* Made for low power; the first stands for all with MSR_ATOM_CORE_RATIOS */
	{ INTEL_ATOM_SILVERMONT,	1 },
	{ INTEL_ATOM_GOLDMONT,		1 },
	{ INTEL_ATOM_GOLDMONT_D,	1 },
	{ INTEL_ATOM_GOLDMONT_PLUS,	1 },

	/* Their registers have a layout of their own, too */
	{ INTEL_XEON_PHI_KNL,		TURBO_SECOND_RATIO },
	{ INTEL_XEON_PHI_KNM,		TURBO_SECOND_RATIO },

	/* Every other Intel CPU, which has groups if the numbers of cores rise; keep it last */
	{ 0,				4 },
};

/* Ignore bins without a ratio (unused) or below base (guests), and as wide as the last or less */
static inline void add_turbo_bin(struct turbo_table *table, unsigned int cores,
				 unsigned int ratio)
{
	unsigned int n = table->nr_bins;

	if (ratio < table->base || n == TURBO_BINS_MAX ||
	    cores <= (n ? table->bins[n - 1].cores : 0))
		return;

	table->bins[table->nr_bins++] = (struct turbo_bin){ cores, ratio };
}

/* Byte @i of the values, counted over all of them */
static inline u8 limit_byte(const u64 *limits, unsigned int i)
{
	return limits[i / 8] >> (i % 8 * 8);
}

/*
 * The bytes of MSR_TURBO_RATIO_LIMIT1 are numbers of cores, which rise, or repeat or are 0
 * where a group is not in use. Where they are ratios they do not rise, but for a semaphore
 * in the topmost bit; so the last byte does not count.
 */
static inline bool are_core_counts(u64 counts)
{
	u8 n, first = 0, last = 0;

	for (counts &= ~(0xffULL << 56); counts; counts >>= 8) {
		n = counts;
		if (n && n < last)
			return false;
		first = first ?: n;
		last = n ?: last;
	}

	return last > first;
}

/*
 * One byte per core: byte 0 is the ratio with one core active, and so on. Or, on servers
 * since Skylake and some Atoms, a ratio per group of cores, and the numbers of cores in the
 * second register.
 */
static inline void decode_turbo_bytes(struct turbo_table *table, const u64 *limits, bool groups)
{
	unsigned int i;

	for (i = 0; i < (groups ? 8 : TURBO_BINS_MAX); i++)
		add_turbo_bin(table, groups ? limit_byte(limits, 8 + i) : i + 1,
			      limit_byte(limits, i) & 0x7f);
}

/* Xeon Phi: a first group, six others as differences (5 bits cores, 3 bits ratio) */
static inline void decode_turbo_deltas(struct turbo_table *table, const u64 *limits)
{
	unsigned int cores = limit_byte(limits, 0) >> 1;
	unsigned int ratio = limit_byte(limits, 1);
	unsigned int i;

	add_turbo_bin(table, cores, ratio);

	/* Up to a ratio below zero: from there on the register makes no sense */
	for (i = 2; i < 8 && ratio >= limit_byte(limits, i) >> 5; i++) {
		cores += limit_byte(limits, i) & 0x1f;
		ratio -= limit_byte(limits, i) >> 5;
		add_turbo_bin(table, cores, ratio);
	}
}

/*
 * Fill @table from the base ratio and the values of the registers, 0 for those that are
 * missing. Return: 0, or -ENODATA without a base ratio or a bin, as some hypervisors have
 * it; the table has no bins then.
 */
static inline int turbo_table_decode(struct turbo_table *table, u32 vfm, u8 base,
				     const u64 *limits)
{
	const struct turbo_model *model = turbo_models;
	const struct turbo_bin *bin = table->bins, *widest;

	while (model->vfm && model->vfm != vfm)
		model++;

	memset(table, 0, sizeof(*table));
	table->base = base;
	table->cores = model->cores;
	if (!base)
		return -ENODATA;

	if (model->cores == TURBO_SECOND_RATIO)
		decode_turbo_deltas(table, limits);
	else
		decode_turbo_bytes(table, limits, limits[1] &&
				   (model->groups || are_core_counts(limits[1])));
	if (!table->nr_bins)
		return -ENODATA;

	widest = bin + table->nr_bins - 1;
	if (model->cores == TURBO_SECOND_RATIO) {
		while (bin < widest && bin[1].ratio == bin->ratio)
			bin++;
		table->cores = bin->cores + 1;
	}
	/* The CPU may have fewer cores, or one ratio: the highest then */
	if (table->cores > widest->cores && table->cores != TURBO_ALL_CORES)
		table->cores = 1;

	return 0;
}

/* The same of MSR_ATOM_CORE_RATIOS and MSR_ATOM_CORE_TURBO_RATIOS: Silvermont, Airmont */
static inline int turbo_table_decode_atom(struct turbo_table *table, u64 base, u64 limit)
{
	u64 limits[TURBO_LIMIT_MSRS] = { limit & 0x3f3f3f3f };

	return turbo_table_decode(table, INTEL_ATOM_SILVERMONT, base >> 16 & 0x3f, limits);
}

/* Highest clock / base, in 1/1024, with @cores active; beyond the widest bin, that bin's */
static inline u32 turbo_table_freq_max(const struct turbo_table *table, unsigned int cores)
{
	const struct turbo_bin *bin = table->bins;

	while (bin->cores < cores && bin < table->bins + table->nr_bins - 1)
		bin++;

	return ((u32)bin->ratio << SCHED_CAPACITY_SHIFT) / table->base;
}

#endif /* _X86_KERNEL_CPU_TURBO_TABLE_H */
