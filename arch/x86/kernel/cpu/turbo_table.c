// SPDX-License-Identifier: GPL-2.0
/*
 * Turbo tables of Intel CPUs: from register values (SDM, volume 4, chapter 2) to bins.
 */
#include <kunit/visibility.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/sched.h>
#include <linux/string.h>

#include <asm/cpu_device_id.h>
#include <asm/intel-family.h>
#include <asm/msr-index.h>

#include "turbo_table.h"

/* Ignore bins without a ratio (unused) or below base (guests), and as wide as the last or less */
static void add_bin(struct turbo_table *table, unsigned int cores, unsigned int ratio)
{
	unsigned int n = table->nr_bins;

	if (ratio < table->base || n == TURBO_BINS_MAX ||
	    cores <= (n ? table->bins[n - 1].cores : 0))
		return;

	table->bins[table->nr_bins++] = (struct turbo_bin){ cores, ratio };
}

/* Byte @i of the values, counted over all of them */
static u8 limit_byte(const u64 *limits, unsigned int i)
{
	return limits[i / 8] >> (i % 8 * 8);
}

/* One byte per core: byte 0 is the ratio with one core active, and so on */
static void decode_bytes(struct turbo_table *table, const struct turbo_layout *layout,
			 const u64 *limits)
{
	unsigned int i;

	for (i = 0; i < layout->nr_bytes; i++)
		add_bin(table, i + 1, limit_byte(limits, i) & layout->byte_mask);
}

/* Ratios in the first register, numbers of cores in the second */
static void decode_groups(struct turbo_table *table, const struct turbo_layout *layout,
			  const u64 *limits)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		add_bin(table, limit_byte(limits, 8 + i), limit_byte(limits, i));
}

/* Numbers of cores rise, or repeat where a group is not in use; ratios do not rise */
static bool is_rising(u64 counts)
{
	unsigned int i;

	for (i = 1; i < 8 && counts >> 8 * i; i++)
		if (limit_byte(&counts, i) < limit_byte(&counts, i - 1))
			return false;

	return limit_byte(&counts, 0) && limit_byte(&counts, i - 1) > limit_byte(&counts, 0);
}

/* Client parts since Alder Lake have 1 to 8 there: both decoders agree */
static void decode_unknown(struct turbo_table *table, const struct turbo_layout *layout,
			   const u64 *limits)
{
	if (is_rising(limits[1]))
		decode_groups(table, layout, limits);
	else
		decode_bytes(table, layout, limits);
}

/* Xeon Phi: a first group, six others as differences (5 bits cores, 3 bits ratio) */
static void decode_deltas(struct turbo_table *table, const struct turbo_layout *layout,
			  const u64 *limits)
{
	unsigned int cores = limit_byte(limits, 0) >> 1;
	unsigned int ratio = limit_byte(limits, 1);
	unsigned int i;

	add_bin(table, cores, ratio);

	for (i = 2; i < 8; i++) {
		u8 delta = limit_byte(limits, i);

		/* A ratio below zero: from here on the register makes no sense */
		if (ratio < delta >> 5)
			break;

		cores += delta & 0x1f;
		ratio -= delta >> 5;
		add_bin(table, cores, ratio);
	}
}

#define TURBO_LAYOUT_CORE(_name, _decode, _nr_bytes, _byte_mask, ...) \
static const struct turbo_layout layout_##_name = {		\
	.name		= #_name,				\
	.base_msr	= MSR_PLATFORM_INFO,			\
	.base_shift	= 8,					\
	.base_mask	= 0xff,					\
	.limit_msrs	= { MSR_TURBO_RATIO_LIMIT, ##__VA_ARGS__ }, \
	.nr_bytes	= _nr_bytes,				\
	.byte_mask	= _byte_mask,				\
	.decode		= _decode,				\
}

/* The topmost bit of the last register in use is a semaphore; no ratio needs it */
TURBO_LAYOUT_CORE(unknown, decode_unknown, 8, 0xff, MSR_TURBO_RATIO_LIMIT1);
TURBO_LAYOUT_CORE(bytes16, decode_bytes, 16, 0x7f, MSR_TURBO_RATIO_LIMIT1);
TURBO_LAYOUT_CORE(bytes24, decode_bytes, 24, 0x7f, MSR_TURBO_RATIO_LIMIT1,
		  MSR_TURBO_RATIO_LIMIT2);
TURBO_LAYOUT_CORE(groups, decode_groups, 0, 0, MSR_TURBO_RATIO_LIMIT1);
TURBO_LAYOUT_CORE(deltas, decode_deltas, 0, 0);

static const struct turbo_layout layout_atom = {
	.name		= "atom",
	.base_msr	= MSR_ATOM_CORE_RATIOS,
	.base_shift	= 16,
	.base_mask	= 0x3f,
	.limit_msrs	= { MSR_ATOM_CORE_TURBO_RATIOS },
	.nr_bytes	= 4,
	.byte_mask	= 0x3f,
	.decode		= decode_bytes,
};

/* Numbers of cores: see Documentation/admin-guide/pm/x86-freq-invariance-turbo.rst */
static const struct turbo_model turbo_models[] = {
	{ INTEL_IVYBRIDGE_X,		4, &layout_bytes16 },
	{ INTEL_HASWELL_X,		4, &layout_bytes24 },
	{ INTEL_BROADWELL_X,		4, &layout_bytes24 },

	{ INTEL_SKYLAKE_X,		4, &layout_groups },
	{ INTEL_ICELAKE_X,		TURBO_ALL_CORES, &layout_groups },
	{ INTEL_ICELAKE_D,		TURBO_ALL_CORES, &layout_groups },
	{ INTEL_SAPPHIRERAPIDS_X,	TURBO_ALL_CORES, &layout_groups },
	{ INTEL_EMERALDRAPIDS_X,	TURBO_ALL_CORES, &layout_groups },
	{ INTEL_GRANITERAPIDS_X,	TURBO_ALL_CORES, &layout_groups },
	{ INTEL_GRANITERAPIDS_D,	TURBO_ALL_CORES, &layout_groups },
	{ INTEL_BARTLETTLAKE,		4, &layout_groups },
	{ INTEL_ATOM_TREMONT_D,		4, &layout_groups },
	{ INTEL_ATOM_CRESTMONT_X,	4, &layout_groups },
	{ INTEL_ATOM_CRESTMONT,		4, &layout_groups },
	{ INTEL_ATOM_DARKMONT_X,	4, &layout_groups },

	{ INTEL_ATOM_GOLDMONT,		1, &layout_groups },
	{ INTEL_ATOM_GOLDMONT_D,	1, &layout_groups },
	{ INTEL_ATOM_GOLDMONT_PLUS,	1, &layout_groups },

	{ INTEL_ATOM_SILVERMONT,	1, &layout_atom },
	{ INTEL_ATOM_SILVERMONT_D,	1, &layout_atom },
	{ INTEL_ATOM_SILVERMONT_MID,	1, &layout_atom },
	{ INTEL_ATOM_AIRMONT,		1, &layout_atom },
	{ INTEL_ATOM_AIRMONT_MID,	1, &layout_atom },
	{ INTEL_ATOM_AIRMONT_NP,	1, &layout_atom },

	{ INTEL_XEON_PHI_KNL, TURBO_SECOND_RATIO, &layout_deltas },
	{ INTEL_XEON_PHI_KNM, TURBO_SECOND_RATIO, &layout_deltas },

	/* Every other Intel CPU since Nehalem; keep it last */
	{ 0,				4, &layout_unknown },
};

/* Return: the model's entry, or the last one, as for a @vfm of 0; never NULL */
const struct turbo_model *turbo_model_find(u32 vfm)
{
	const struct turbo_model *model = turbo_models;

	while (model->vfm && model->vfm != vfm)
		model++;

	return model;
}
EXPORT_SYMBOL_IF_KUNIT(turbo_model_find);

/*
 * Fill @table from the values of @layout's registers, 0 for those that are missing.
 * Return: 0, or -ENODATA without a base ratio or a bin, as some hypervisors have it; the
 * table has no bins then.
 */
int turbo_table_decode(struct turbo_table *table, const struct turbo_layout *layout,
		       u64 base, const u64 *limits)
{
	memset(table, 0, sizeof(*table));
	table->base = (base >> layout->base_shift) & layout->base_mask;
	if (table->base)
		layout->decode(table, layout, limits);

	return table->nr_bins ? 0 : -ENODATA;
}
EXPORT_SYMBOL_IF_KUNIT(turbo_table_decode);

/*
 * Return: how many active cores freq_max stands for: the model's @cores, or 1 if the CPU has
 * fewer. Without a second highest ratio it is 0, which stands for the base frequency.
 */
unsigned int turbo_table_cores(const struct turbo_table *table, unsigned int cores)
{
	unsigned int i, widest = table->bins[table->nr_bins - 1].cores;

	if (cores != TURBO_SECOND_RATIO)
		return cores <= widest || cores == TURBO_ALL_CORES ? cores : 1;

	for (i = 1; i < table->nr_bins; i++) {
		if (table->bins[i].ratio < table->bins[0].ratio)
			return table->bins[i - 1].cores + 1;
	}

	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(turbo_table_cores);

/* Highest clock / base, in 1/1024, with @cores active; beyond the widest bin, that bin's */
u32 turbo_table_freq_max(const struct turbo_table *table, unsigned int cores)
{
	const struct turbo_bin *bin = table->bins;

	if (!cores)
		return SCHED_CAPACITY_SCALE;

	while (bin->cores < cores && bin < table->bins + table->nr_bins - 1)
		bin++;

	return ((u32)bin->ratio << SCHED_CAPACITY_SHIFT) / table->base;
}
EXPORT_SYMBOL_IF_KUNIT(turbo_table_freq_max);
