// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the arithmetic behind frequency invariance.
 *
 * A row of a table is a test case of its own; to add a case, add a row.
 */
#include <kunit/test.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/prandom.h>
#include <linux/string.h>

#include <asm/cpu_device_id.h>
#include <asm/intel-family.h>

#include "freq_invariance.h"

#define MAX_WANTS	5

struct table_case {
	const char	*name;
	u32		vfm;
	/* Values of the base register and of those with the bins */
	u64		base;
	u64		limits[TURBO_LIMIT_MSRS];
	int		ret;
	/* The rest is what they mean, unless ret is an error */
	u8		base_ratio;
	struct turbo_bin bins[TURBO_BINS_MAX + 1];
	/* freq_max / base frequency by the model's default, in 1/1024 */
	u32		ratio;
	/* The same by number of active cores */
	struct {
		u16	cores;
		u32	ratio;
	} wants[MAX_WANTS];
};

/*
 * Register values are those of real CPUs. Where only clocks are published, the
 * values are made of them: the first three (measured for the choice of 4C), the
 * Atoms and Xeon Phi.
 */
static const struct table_case real_tables[] = {
	{
		.name = "E3-1240 v5 (Skylake)", .vfm = INTEL_SKYLAKE,
		.base = 0x2300, .limits = { 0x25262727 },
		.base_ratio = 35,
		.bins = { {1, 39}, {2, 39}, {3, 38}, {4, 37} },
		.ratio = 1082,
		/* Beyond its four cores: the widest bin */
		.wants = { {1, 1141}, {3, 1111}, {4, 1082}, {8, 1082}, {12, 1082} },
	}, {
		.name = "E5-2698 v4 (Broadwell-X)", .vfm = INTEL_BROADWELL_X,
		.base = 0x1600, .limits = { 0x1d1e1f2021222424 },
		.base_ratio = 22,
		.bins = { {1, 36}, {2, 36}, {3, 34}, {4, 33}, {5, 32}, {6, 31},
			  {7, 30}, {8, 29} },
		.ratio = 1536,
		.wants = { {1, 1675}, {3, 1582}, {4, 1536}, {8, 1349}, {12, 1349} },
	}, {
		.name = "E5-2670 v3 (Haswell-X)", .vfm = INTEL_HASWELL_X,
		.base = 0x1700, .limits = { 0x1a1a1a1b1c1d1f1f, 0x1a1a1a1a },
		.base_ratio = 23,
		.bins = { {1, 31}, {2, 31}, {3, 29}, {4, 28}, {5, 27}, {6, 26},
			  {7, 26}, {8, 26}, {9, 26}, {10, 26}, {11, 26}, {12, 26} },
		.ratio = 1246,
		.wants = { {1, 1380}, {3, 1291}, {4, 1246}, {8, 1157}, {12, 1157} },
	}, {
		.name = "E5-2696 v4 (Broadwell-X)", .vfm = INTEL_BROADWELL_X,
		.base = 0x20080c3bf2811600,
		.limits = { 0x1e1f202122232525, 0x1c1c1c1c1c1c1c1d, 0x1c1c1c1c1c1c1c1c },
		.base_ratio = 22,
		.bins = { {1, 37}, {2, 37}, {3, 35}, {4, 34}, {5, 33}, {6, 32},
			  {7, 31}, {8, 30}, {9, 29}, {10, 28}, {11, 28}, {12, 28},
			  {13, 28}, {14, 28}, {15, 28}, {16, 28}, {17, 28}, {18, 28},
			  {19, 28}, {20, 28}, {21, 28}, {22, 28}, {23, 28}, {24, 28} },
		.ratio = 1582,
		.wants = { {1, 1722}, {4, 1582}, {9, 1349}, {22, 1303}, {255, 1303} },
	}, {
		.name = "E5-2670 v3 early sample (Haswell-X)", .vfm = INTEL_HASWELL_X,
		.base = 0x1700, .limits = { 0x1c1c1c1c1c1c1c1c, 0x1919191919191c1c },
		.base_ratio = 23,
		.bins = { {1, 28}, {2, 28}, {3, 28}, {4, 28}, {5, 28}, {6, 28},
			  {7, 28}, {8, 28}, {9, 28}, {10, 28}, {11, 25}, {12, 25},
			  {13, 25}, {14, 25}, {15, 25}, {16, 25} },
		.ratio = 1246,
		.wants = { {10, 1246}, {11, 1113} },
	}, {
		.name = "i9-9880H (Coffee Lake)", .vfm = INTEL_KABYLAKE,
		.base = 0x1700, .limits = { 0x292b2c2d2e2f3030 },
		.base_ratio = 23,
		.bins = { {1, 48}, {2, 48}, {3, 47}, {4, 46}, {5, 45}, {6, 44},
			  {7, 43}, {8, 41} },
		.ratio = 2048,
		.wants = { {1, 2137}, {4, 2048}, {8, 1825} },
	}, {
		.name = "Cascade Lake, 28 cores (Skylake-X)", .vfm = INTEL_SKYLAKE_X,
		.base = 0x1700,
		.limits = { 0x1d1d1d1f20202123, 0x1c1814100c080402 },
		.base_ratio = 23,
		.bins = { {2, 35}, {4, 33}, {8, 32}, {12, 32}, {16, 31}, {20, 29},
			  {24, 29}, {28, 29} },
		.ratio = 1469,
		.wants = { {1, 1558}, {3, 1469}, {4, 1469}, {8, 1424}, {28, 1291} },
	}, {
		.name = "Sapphire Rapids, 48 cores", .vfm = INTEL_SAPPHIRERAPIDS_X,
		.base = 0x80080001800,
		.limits = { 0x2020212123242526, 0x302e2c2a26221e18 },
		.base_ratio = 24,
		.bins = { {24, 38}, {30, 37}, {34, 36}, {38, 35}, {42, 33}, {44, 33},
			  {46, 32}, {48, 32} },
		/* Byte 3, read as the four-core ratio, gave 1493 */
		.ratio = 1621,
		.wants = { {1, 1621}, {24, 1621}, {25, 1578}, {38, 1493}, {48, 1365} },
	}, {
		.name = "Xeon Phi 7210 (KNL)", .vfm = INTEL_XEON_PHI_KNL,
		.base = 0x0d00, .limits = { 0x1f3f0f04 },
		.base_ratio = 13,
		.bins = { {2, 15}, {33, 14}, {64, 14} },
		.ratio = 1102,
		.wants = { {1, 1181}, {2, 1181}, {3, 1102}, {64, 1102} },
	}, {
		.name = "Xeon Phi, one turbo level (KNM)", .vfm = INTEL_XEON_PHI_KNM,
		.base = 0x0f00, .limits = { 0x1f3f1004 },
		.base_ratio = 15,
		.bins = { {2, 16}, {33, 15}, {64, 15} },
		.ratio = 1024,
	}, {
		.name = "Pentium N4200 (Goldmont)", .vfm = INTEL_ATOM_GOLDMONT,
		.base = 0x0b00, .limits = { 0x18181919, 0x04030201 },
		.base_ratio = 11,
		.bins = { {1, 25}, {2, 25}, {3, 24}, {4, 24} },
		.ratio = 2327,
		.wants = { {4, 2234} },
	}, {
		.name = "Celeron J1900 (Silvermont)", .vfm = INTEL_ATOM_SILVERMONT,
		.base = 0x181006, .limits = { 0x1d1d1d1d },
		.base_ratio = 24,
		.bins = { {1, 29}, {2, 29}, {3, 29}, {4, 29} },
		.ratio = 1237,
	}, {
		.name = "Atom x5-Z8350 (Airmont)", .vfm = INTEL_ATOM_AIRMONT,
		.base = 0x120606, .limits = { 0x18181818 },
		.base_ratio = 18,
		.bins = { {1, 24}, {2, 24}, {3, 24}, {4, 24} },
		.ratio = 1365,
	},
};

static const struct table_case odd_tables[] = {
	{
		.name = "bytes: all zero", .vfm = INTEL_SKYLAKE,
		.ret = -ENODATA,
	}, {
		.name = "bytes: base zero", .vfm = INTEL_SKYLAKE,
		.base = 0x80000000, .limits = { 0x25262727 },
		.ret = -ENODATA,
	}, {
		.name = "bytes: no turbo ratio", .vfm = INTEL_SKYLAKE,
		.base = 0x2300,
		.ret = -ENODATA,
	}, {
		.name = "bytes: two cores", .vfm = INTEL_SKYLAKE,
		.base = 0x1900, .limits = { 0x1d1f },
		.base_ratio = 25,
		.bins = { {1, 31}, {2, 29} },
		/* Fewer than four cores: the highest bin */
		.ratio = 1269,
		.wants = { {1, 1269}, {2, 1187}, {3, 1187}, {4, 1187} },
	}, {
		.name = "bytes: hole", .vfm = INTEL_SKYLAKE,
		.base = 0x2300, .limits = { 0x25002727 },
		.base_ratio = 35,
		.bins = { {1, 39}, {2, 39}, {4, 37} },
		.ratio = 1082,
		.wants = { {3, 1082} },
	}, {
		.name = "bytes: rising ratios", .vfm = INTEL_SKYLAKE,
		.base = 0x2300, .limits = { 0x27262525 },
		.base_ratio = 35,
		.bins = { {1, 37}, {2, 37}, {3, 38}, {4, 39} },
		.ratio = 1141,
		.wants = { {1, 1082}, {3, 1111} },
	}, {
		.name = "bytes: below base", .vfm = INTEL_SKYLAKE,
		.base = 0xff00, .limits = { 0x01010101 },
		.base_ratio = 255,
		.bins = { {1, 1}, {2, 1}, {3, 1}, {4, 1} },
		.ratio = 4,
	}, {
		.name = "bytes: as high as can be", .vfm = INTEL_SKYLAKE,
		.base = 0x0100, .limits = { 0xffffffffffffffff },
		.base_ratio = 1,
		.bins = { {1, 255}, {2, 255}, {3, 255}, {4, 255}, {5, 255},
			  {6, 255}, {7, 255}, {8, 255} },
		.ratio = 261120,
	}, {
		.name = "long bytes: semaphore set", .vfm = INTEL_IVYBRIDGE_X,
		.base = 0x1b00, .limits = { 0x1f1f1f1f20212223, 0x9f1f1f1f1f1f1f1f },
		.base_ratio = 27,
		.bins = { {1, 35}, {2, 34}, {3, 33}, {4, 32}, {5, 31}, {6, 31},
			  {7, 31}, {8, 31}, {9, 31}, {10, 31}, {11, 31}, {12, 31},
			  {13, 31}, {14, 31}, {15, 31}, {16, 31} },
		.ratio = 1213,
		.wants = { {16, 1175} },
	}, {
		.name = "long bytes: semaphore and no ratio", .vfm = INTEL_HASWELL_X,
		.base = 0x1b00, .limits = { 0x20212223, 0, 0x8000000000000000 },
		.base_ratio = 27,
		.bins = { {1, 35}, {2, 34}, {3, 33}, {4, 32} },
		.ratio = 1213,
	}, {
		.name = "groups: all zero", .vfm = INTEL_SKYLAKE_X,
		.ret = -ENODATA,
	}, {
		.name = "groups: counts 0", .vfm = INTEL_SKYLAKE_X,
		.base = 0x1700, .limits = { 0x1d1d1d1f20202123, 0 },
		.ret = -ENODATA,
	}, {
		.name = "groups: counts 255", .vfm = INTEL_SKYLAKE_X,
		.base = 0x1700, .limits = { 0x1d1d1d1f20202123, 0xffffffffffffffff },
		.base_ratio = 23,
		.bins = { {255, 35} },
		.ratio = 1558,
		.wants = { {1, 1558}, {255, 1558}, {256, 1558} },
	}, {
		.name = "groups: unused ones count 0", .vfm = INTEL_ICELAKE_X,
		.base = 0x1700, .limits = { 0x2123, 0x0402 },
		.base_ratio = 23,
		.bins = { {2, 35}, {4, 33} },
		.ratio = 1469,
	}, {
		.name = "groups: unused ones have no ratio", .vfm = INTEL_ICELAKE_X,
		.base = 0x1700, .limits = { 0x210023, 0xffffffff080402 },
		.base_ratio = 23,
		.bins = { {2, 35}, {8, 33} },
		.ratio = 1469,
	}, {
		.name = "groups: falling counts", .vfm = INTEL_ICELAKE_X,
		.base = 0x1700, .limits = { 0x1d2123, 0x0c0408 },
		.base_ratio = 23,
		.bins = { {8, 35}, {12, 29} },
		.ratio = 1558,
		.wants = { {4, 1558}, {9, 1291} },
	}, {
		.name = "groups: two cores", .vfm = INTEL_ATOM_CRESTMONT,
		.base = 0x1700, .limits = { 0x2123, 0x0201 },
		.base_ratio = 23,
		.bins = { {1, 35}, {2, 33} },
		.ratio = 1558,
	}, {
		.name = "deltas: all zero", .vfm = INTEL_XEON_PHI_KNL,
		.ret = -ENODATA,
	}, {
		.name = "deltas: one level for all cores", .vfm = INTEL_XEON_PHI_KNL,
		.base = 0x0d00, .limits = { 0x0f80 },
		.base_ratio = 13,
		.bins = { {64, 15} },
		/* The second highest clock is base */
		.ratio = 1024,
	}, {
		.name = "deltas: second level not in the second group", .vfm = INTEL_XEON_PHI_KNL,
		.base = 0x0d00, .limits = { 0x3f1f0f04 },
		.base_ratio = 13,
		.bins = { {2, 15}, {33, 15}, {64, 14} },
		.ratio = 1102,
	}, {
		.name = "deltas: all ones", .vfm = INTEL_XEON_PHI_KNL,
		.base = 0x0d00, .limits = { 0xffffffffffffffff },
		.base_ratio = 13,
		.bins = { {127, 255}, {158, 248}, {189, 241}, {220, 234},
			  {251, 227}, {282, 220}, {313, 213} },
		.ratio = 19534,
		.wants = { {313, 16777} },
	}, {
		.name = "deltas: below zero", .vfm = INTEL_XEON_PHI_KNL,
		.base = 0x0d00, .limits = { 0xffffffffff3f0604 },
		.base_ratio = 13,
		.bins = { {2, 6}, {33, 5} },
		.ratio = 393,
	}, {
		.name = "atom: all zero", .vfm = INTEL_ATOM_SILVERMONT,
		.ret = -ENODATA,
	}, {
		.name = "atom: reserved bits set", .vfm = INTEL_ATOM_SILVERMONT,
		.base = 0xffffffff00d81006, .limits = { 0xffffffffdddddddd },
		.base_ratio = 24,
		.bins = { {1, 29}, {2, 29}, {3, 29}, {4, 29} },
		.ratio = 1237,
	},
};

static void check_bins(struct kunit *test, const struct table_case *c,
		       const struct turbo_table *table)
{
	unsigned int i;

	for (i = 0; i < TURBO_BINS_MAX && c->bins[i].cores; i++) {
		KUNIT_EXPECT_EQ_MSG(test, table->bins[i].cores, c->bins[i].cores,
				    "cores of bin %u", i);
		KUNIT_EXPECT_EQ_MSG(test, table->bins[i].ratio, c->bins[i].ratio,
				    "ratio of bin %u", i);
	}
	KUNIT_EXPECT_EQ(test, table->nr_bins, i);
}

static void check_wants(struct kunit *test, const struct table_case *c,
			const struct turbo_table *table)
{
	unsigned int i, turbo;

	for (i = 0; i < MAX_WANTS && c->wants[i].cores; i++) {
		turbo = turbo_table_ratio(table, c->wants[i].cores);
		KUNIT_EXPECT_EQ_MSG(test, freq_max_ratio(turbo, table->base),
				    c->wants[i].ratio,
				    "with %u cores active", c->wants[i].cores);
	}
}

static void turbo_table_test(struct kunit *test)
{
	const struct table_case *c = test->param_value;
	const struct turbo_model *model = turbo_model_find(c->vfm);
	struct turbo_table table;
	unsigned int turbo;
	int ret;

	/* Whatever was in it before must not show */
	memset(&table, 0xff, sizeof(table));
	ret = turbo_table_decode(&table, model->layout, c->base, c->limits);
	KUNIT_ASSERT_EQ(test, ret, c->ret);
	if (ret)
		return;

	KUNIT_EXPECT_EQ(test, table.base, c->base_ratio);
	check_bins(test, c, &table);

	turbo = turbo_table_freq_max(&table, model->cores);
	KUNIT_EXPECT_EQ(test, freq_max_ratio(turbo, table.base), c->ratio);
	check_wants(test, c, &table);
}

KUNIT_ARRAY_PARAM_DESC(real_tables, real_tables, name);
KUNIT_ARRAY_PARAM_DESC(odd_tables, odd_tables, name);

/*
 * Any value at all in the registers: the promises that callers rely on hold,
 * rising numbers of cores, no ratio of zero, nothing out of bounds.
 */
static void turbo_table_random_test(struct kunit *test)
{
	static const u32 vfms[] = {
		INTEL_SKYLAKE, INTEL_IVYBRIDGE_X, INTEL_HASWELL_X, INTEL_SKYLAKE_X,
		INTEL_XEON_PHI_KNL, INTEL_ATOM_SILVERMONT,
	};
	struct turbo_table table;
	struct rnd_state rnd;
	u64 limits[TURBO_LIMIT_MSRS];
	unsigned int n, i, bad = 0;

	prandom_seed_state(&rnd, 4);

	for (n = 0; n < 100000; n++) {
		const struct turbo_model *model;

		prandom_bytes_state(&rnd, limits, sizeof(limits));
		model = turbo_model_find(vfms[n % ARRAY_SIZE(vfms)]);
		if (turbo_table_decode(&table, model->layout, limits[n % 3], limits))
			continue;

		bad += table.nr_bins > TURBO_BINS_MAX;
		for (i = 0; i < table.nr_bins; i++) {
			bad += !table.bins[i].ratio;
			bad += i && table.bins[i].cores <= table.bins[i - 1].cores;
		}
		bad += !turbo_table_freq_max(&table, model->cores);

		if (bad) {
			KUNIT_FAIL(test, "%s: %#llx %#llx %#llx", model->layout->name,
				   limits[0], limits[1], limits[2]);
			return;
		}
	}
}

static const struct model_case {
	const char	*name;
	u32		vfm;
	const char	*layout;
	u8		cores;
} model_cases[] = {
	{ "Nehalem",		INTEL_NEHALEM,			"bytes", 4 },
	{ "Sandy Bridge-X",	INTEL_SANDYBRIDGE_X,		"bytes", 4 },
	{ "Ivy Bridge-X",	INTEL_IVYBRIDGE_X,		"bytes16", 4 },
	{ "Haswell-X",		INTEL_HASWELL_X,		"bytes24", 4 },
	{ "Broadwell-D",	INTEL_BROADWELL_D,		"bytes", 4 },
	{ "Broadwell-X",	INTEL_BROADWELL_X,		"bytes24", 4 },
	{ "Skylake",		INTEL_SKYLAKE,			"bytes", 4 },
	{ "Skylake-X",		INTEL_SKYLAKE_X,		"groups", 4 },
	{ "Ice Lake-X",		INTEL_ICELAKE_X,		"groups", 4 },
	{ "Ice Lake-D",		INTEL_ICELAKE_D,		"groups", 4 },
	{ "Ice Lake-L",		INTEL_ICELAKE_L,		"bytes", 4 },
	{ "Sapphire Rapids",	INTEL_SAPPHIRERAPIDS_X,		"groups", 4 },
	{ "Emerald Rapids",	INTEL_EMERALDRAPIDS_X,		"groups", 4 },
	{ "Granite Rapids",	INTEL_GRANITERAPIDS_X,		"groups", 4 },
	{ "Granite Rapids-D",	INTEL_GRANITERAPIDS_D,		"groups", 4 },
	{ "Sierra Forest",	INTEL_ATOM_CRESTMONT_X,		"groups", 4 },
	{ "Grand Ridge",	INTEL_ATOM_CRESTMONT,		"groups", 4 },
	{ "Clearwater Forest",	INTEL_ATOM_DARKMONT_X,		"groups", 4 },
	{ "Tremont-D",		INTEL_ATOM_TREMONT_D,		"groups", 4 },
	{ "Tremont",		INTEL_ATOM_TREMONT,		"bytes", 4 },
	{ "Gracemont",		INTEL_ATOM_GRACEMONT,		"bytes", 4 },
	{ "Alder Lake",		INTEL_ALDERLAKE,		"bytes", 4 },
	{ "Lunar Lake",		INTEL_LUNARLAKE_M,		"bytes", 4 },
	{ "Goldmont",		INTEL_ATOM_GOLDMONT,		"groups", 1 },
	{ "Goldmont-D",		INTEL_ATOM_GOLDMONT_D,		"groups", 1 },
	{ "Goldmont Plus",	INTEL_ATOM_GOLDMONT_PLUS,	"groups", 1 },
	{ "Silvermont",		INTEL_ATOM_SILVERMONT,		"atom", 1 },
	{ "Silvermont-D",	INTEL_ATOM_SILVERMONT_D,	"atom", 1 },
	{ "Airmont",		INTEL_ATOM_AIRMONT,		"atom", 1 },
	{ "Knights Landing",	INTEL_XEON_PHI_KNL, "deltas", TURBO_SECOND_RATIO },
	{ "Knights Mill",	INTEL_XEON_PHI_KNM, "deltas", TURBO_SECOND_RATIO },
	{ "not invented yet",	IFM(19, 0xff),			"bytes", 4 },
};

KUNIT_ARRAY_PARAM_DESC(model, model_cases, name);

static void turbo_model_test(struct kunit *test)
{
	const struct model_case *c = test->param_value;
	const struct turbo_model *model = turbo_model_find(c->vfm);

	KUNIT_EXPECT_STREQ(test, model->layout->name, c->layout);
	KUNIT_EXPECT_EQ(test, model->cores, c->cores);
}

static void freq_max_ratio_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, freq_max_ratio(0, 0), 0);
	KUNIT_EXPECT_EQ(test, freq_max_ratio(37, 0), 0);
	KUNIT_EXPECT_EQ(test, freq_max_ratio(0, 35), 0);
	KUNIT_EXPECT_EQ(test, freq_max_ratio(35, 35), 1024);
	KUNIT_EXPECT_EQ(test, freq_max_ratio(37, 35), 1082);
	/* kHz are as good as ratios */
	KUNIT_EXPECT_EQ(test, freq_max_ratio(6000000, 1000000), 6144);
}

/*
 * The smallest factor for which factor * ratio reaches 2^42, and no sample
 * makes it overflow.
 */
static void freq_scale_factor_test(struct kunit *test)
{
	u64 factor, num;
	u32 ratio;

	for (ratio = FREQ_MAX_RATIO_LOWEST; ratio <= FREQ_MAX_RATIO_HIGHEST; ratio++) {
		factor = freq_scale_factor(ratio);
		if (factor * ratio < BIT_ULL(42) ||
		    (factor - 1) * ratio >= BIT_ULL(42) ||
		    check_mul_overflow(BIT_ULL(FREQ_SAMPLE_BITS) - 1, factor, &num)) {
			KUNIT_FAIL(test, "ratio %u: %#llx", ratio, factor);
			return;
		}
	}

	KUNIT_EXPECT_EQ(test, freq_scale_factor(0),
			freq_scale_factor(FREQ_MAX_RATIO_LOWEST));
	KUNIT_EXPECT_EQ(test, freq_scale_factor(U64_MAX),
			freq_scale_factor(FREQ_MAX_RATIO_HIGHEST));
}

/*
 * The scale by its definition, in 128 bits and without a division: the largest
 * q up to 1024 for which q * mperf * ratio is not above aperf * 2^20.
 */
static unsigned int exact_scale(u64 aperf, u64 mperf, u32 ratio)
{
	u128 num = (u128)aperf << 20;
	u128 den = (u128)mperf * ratio;
	unsigned int bit, q = 0;

	for (bit = SCHED_CAPACITY_SCALE; bit; bit >>= 1) {
		if (q + bit <= SCHED_CAPACITY_SCALE && (q + bit) * den <= num)
			q += bit;
	}

	return q;
}

/* The sign bit of a difference: the counter went back */
#define BACK	BIT_ULL(63)

static bool scale_is_right(unsigned int scale, u64 aperf, u64 mperf, u32 ratio)
{
	unsigned int exact;

	if (!mperf || (aperf | mperf) & BACK)
		return !scale;

	exact = exact_scale(aperf, mperf, ratio);
	return scale <= SCHED_CAPACITY_SCALE &&
	       scale + 1 >= exact && scale <= exact + 1;
}

static unsigned int scale_of(u64 aperf, u64 mperf, u32 ratio)
{
	return freq_sample_scale(freq_sample_from(aperf, mperf),
				 freq_scale_factor(ratio));
}

/* Counter values at two ticks, what their difference is and what it gives */
static const struct scale_case {
	const char	*name;
	u64		aperf[2];
	u64		mperf[2];
	u32		ratio;
	unsigned int	scale;
} scale_cases[] = {
	/* 4 ms of a 2.2 GHz CPU whose freq_max is 3.3 GHz */
	{ "at freq_max",	{ 0, 13200000 }, { 0, 8800000 }, 1536, 1024 },
	{ "at base",		{ 0, 8800000 }, { 0, 8800000 }, 1536, 682 },
	{ "at 8C turbo",	{ 0, 11600000 }, { 0, 8800000 }, 1536, 899 },
	{ "at 1C turbo",	{ 0, 14400000 }, { 0, 8800000 }, 1536, 1024 },
	{ "at 1.2 GHz",		{ 0, 4800000 }, { 0, 8800000 }, 1536, 372 },
	{ "nothing counted",	{ 7, 7 }, { 7, 7 }, 1536, 0 },
	{ "APERF frozen",	{ 7, 7 }, { 7, 8800007 }, 1536, 0 },
	{ "MPERF frozen",	{ 7, 8800007 }, { 7, 7 }, 1536, 0 },
	{ "one count each",	{ 0, 1 }, { 0, 1 }, 1536, 682 },
	{ "far below 1/1024",	{ 0, 1 }, { 0, 8800000 }, 1536, 0 },
	{ "both wrap",		{ U64_MAX - 9, 8799990 }, { U64_MAX - 99, 8799900 },
				1536, 682 },
	{ "APERF wraps",	{ U64_MAX, 8799999 }, { 5, 8800005 }, 1536, 682 },
	{ "both back by 1",	{ 8, 7 }, { 8, 7 }, 1536, 0 },
	{ "APERF back by 1",	{ 8, 7 }, { 0, 8800000 }, 1536, 0 },
	{ "MPERF back by 1",	{ 0, 8800000 }, { 8, 7 }, 1536, 0 },
	{ "both back to 0",	{ BIT_ULL(50), 0 }, { BIT_ULL(50), 0 }, 1536, 0 },
	{ "2^30 - 1",		{ 0, BIT(30) - 1 }, { 0, BIT(30) - 1 }, 1536, 682 },
	{ "2^30",		{ 0, BIT(30) }, { 0, BIT(30) }, 1536, 682 },
	{ "2^32 - 1",		{ 0, U32_MAX }, { 0, U32_MAX }, 1536, 682 },
	{ "2^32",		{ 0, BIT_ULL(32) }, { 0, BIT_ULL(32) }, 1536, 682 },
	/* An hour of a CPU without ticks, where 64 bits once overflowed */
	{ "2^44",		{ 0, BIT_ULL(44) }, { 0, BIT_ULL(44) }, 1536, 682 },
	{ "2^44, base is max",	{ 0, BIT_ULL(44) }, { 0, BIT_ULL(44) }, 1024, 1024 },
	{ "2^63 - 1",		{ 0, S64_MAX }, { 0, S64_MAX }, 1536, 682 },
	{ "2^63",		{ 0, BACK }, { 0, BACK }, 1536, 0 },
	{ "2^64 - 1",		{ 0, U64_MAX }, { 0, U64_MAX }, 1536, 0 },
	{ "APERF 2^63 - 1",	{ 0, S64_MAX }, { 0, 1 }, 1536, 1024 },
	{ "MPERF 2^63 - 1",	{ 0, 1 }, { 0, S64_MAX }, 1536, 0 },
	{ "APERF 2^63",		{ 0, BACK }, { 0, 1 }, 1536, 0 },
	{ "MPERF 2^63",		{ 0, 1 }, { 0, BACK }, 1536, 0 },
	{ "ratio too low",	{ 0, 100 }, { 0, 1000 }, 0, 409 },
	{ "ratio too high",	{ 0, S64_MAX }, { 0, S64_MAX }, U32_MAX, 1 },
	{ "hybrid, below base",	{ 0, 4400000 }, { 0, 8800000 }, 768, 682 },
};

KUNIT_ARRAY_PARAM_DESC(scale, scale_cases, name);

static void scale_test(struct kunit *test)
{
	const struct scale_case *c = test->param_value;
	u64 aperf = c->aperf[1] - c->aperf[0];
	u64 mperf = c->mperf[1] - c->mperf[0];
	u32 ratio = clamp(c->ratio, FREQ_MAX_RATIO_LOWEST, FREQ_MAX_RATIO_HIGHEST);
	unsigned int scale = scale_of(aperf, mperf, c->ratio);

	KUNIT_EXPECT_EQ(test, scale, c->scale);
	KUNIT_EXPECT_TRUE(test, scale_is_right(scale, aperf, mperf, ratio));
}

/* Each power of two and its neighbours, in each combination */
static void scale_corner_test(struct kunit *test)
{
	static const u32 ratios[] = {
		FREQ_MAX_RATIO_LOWEST, 257, 1023, 1024, 1025, 1082, 1536, 4095,
		261120, FREQ_MAX_RATIO_HIGHEST,
	};
	unsigned int i, j, k, scale;
	u64 aperf, mperf;

	for (k = 0; k < ARRAY_SIZE(ratios); k++) {
		for (i = 0; i < 3 * 64; i++) {
			aperf = BIT_ULL(i / 3) + i % 3 - 1;
			for (j = 0; j < 3 * 64; j++) {
				mperf = BIT_ULL(j / 3) + j % 3 - 1;
				scale = scale_of(aperf, mperf, ratios[k]);
				if (scale_is_right(scale, aperf, mperf, ratios[k]))
					continue;
				KUNIT_FAIL(test, "scale(%llu, %llu, %u) = %u",
					   aperf, mperf, ratios[k], scale);
				return;
			}
		}
	}
}

#define RANDOM_PAIRS	BIT(20)

static u64 random_u64(struct rnd_state *rnd)
{
	return (u64)prandom_u32_state(rnd) << 32 | prandom_u32_state(rnd);
}

/*
 * Pairs of all sizes. Independent ones are nearly always off the scale, so
 * every other one has APERF below twice what makes 1024.
 */
static void scale_random_test(struct kunit *test)
{
	unsigned int n, scale, inside = 0;
	struct rnd_state rnd;
	u64 aperf, mperf;
	u32 ratio;

	prandom_seed_state(&rnd, 20191113);

	for (n = 0; n < RANDOM_PAIRS; n++) {
		ratio = FREQ_MAX_RATIO_LOWEST + prandom_u32_state(&rnd) % 8192;
		mperf = random_u64(&rnd) >> prandom_u32_state(&rnd) % 64;
		aperf = random_u64(&rnd);
		if (n % 2)
			aperf = mul_u64_u64_shr(aperf, 2 * mul_u64_u32_shr(mperf, ratio, 10), 64);
		else
			aperf >>= prandom_u32_state(&rnd) % 64;

		scale = scale_of(aperf, mperf, ratio);
		inside += scale > 0 && scale < SCHED_CAPACITY_SCALE;
		if (!scale_is_right(scale, aperf, mperf, ratio)) {
			KUNIT_FAIL(test, "pair %u: scale(%llu, %llu, %u) = %u", n,
				   aperf, mperf, ratio, scale);
			return;
		}
	}

	/* The test is worth something only if it meets the interesting range */
	KUNIT_EXPECT_GT(test, inside, RANDOM_PAIRS / 10);
}

static const struct khz_case {
	const char	*name;
	u64		aperf;
	u64		mperf;
	unsigned int	base_khz;
	unsigned int	khz;
} khz_cases[] = {
	{ "base",		8800000, 8800000, 2200000, 2200000 },
	{ "turbo",		14400000, 8800000, 2200000, 3600000 },
	{ "an hour",		BIT_ULL(44), BIT_ULL(43), 2200000, 4400000 },
	{ "58 years",		S64_MAX, S64_MAX, 2200000, 2200000 },
	{ "MPERF frozen",	8800000, 0, 2200000, 0 },
	{ "APERF frozen",	0, 8800000, 2200000, 0 },
	{ "went back",		-1ULL, 8800000, 2200000, 0 },
	{ "beyond 32 bits",	U32_MAX, 1, 2200000, UINT_MAX },
};

KUNIT_ARRAY_PARAM_DESC(khz, khz_cases, name);

static void khz_test(struct kunit *test)
{
	const struct khz_case *c = test->param_value;
	struct freq_sample s = freq_sample_from(c->aperf, c->mperf);

	KUNIT_EXPECT_EQ(test, freq_sample_khz(s, c->base_khz), c->khz);
}

/* One word per row: what it parses to, and that it comes back the same */
static const struct word_case {
	const char		*name;
	const char		*word;
	enum freq_family	family;
	int			ret;
	struct freq_policy	policy;
} word_cases[] = {
	{ "base", "base", FREQ_FAMILY_TURBO, 0, { FREQ_POLICY_BASE } },
	{ "1c", "1c", FREQ_FAMILY_TURBO, 0, { FREQ_POLICY_CORES, 1 } },
	{ "4c", "4c", FREQ_FAMILY_TURBO, 0, { FREQ_POLICY_CORES, 4 } },
	{ "9999c", "9999c", FREQ_FAMILY_TURBO, 0, { FREQ_POLICY_CORES, 9999 } },
	{ "second", "second", FREQ_FAMILY_TURBO, 0, { FREQ_POLICY_SECOND } },
	{ "all", "all", FREQ_FAMILY_TURBO, 0, { FREQ_POLICY_ALL } },
	{ "active", "active", FREQ_FAMILY_TURBO, 0, { FREQ_POLICY_ACTIVE } },
	{ "boost", "boost", FREQ_FAMILY_BOOST, 0, { FREQ_POLICY_BOOST } },
	{ "midpoint", "midpoint", FREQ_FAMILY_BOOST, 0, { FREQ_POLICY_MIDPOINT } },
	{ "nominal", "nominal", FREQ_FAMILY_BOOST, 0, { FREQ_POLICY_BASE } },
	{ "newline", "all\n", FREQ_FAMILY_TURBO, 0, { FREQ_POLICY_ALL } },
	{ "nothing", "", FREQ_FAMILY_TURBO, -EINVAL },
	{ "newline alone", "\n", FREQ_FAMILY_TURBO, -EINVAL },
	{ "no cores", "0c", FREQ_FAMILY_TURBO, -EINVAL },
	{ "leading zero", "04c", FREQ_FAMILY_TURBO, -EINVAL },
	{ "too many digits", "12345c", FREQ_FAMILY_TURBO, -EINVAL },
	{ "negative", "-4c", FREQ_FAMILY_TURBO, -EINVAL },
	{ "no number", "c", FREQ_FAMILY_TURBO, -EINVAL },
	{ "number alone", "4", FREQ_FAMILY_TURBO, -EINVAL },
	{ "more behind", "4cc", FREQ_FAMILY_TURBO, -EINVAL },
	{ "second line", "4c\n8c", FREQ_FAMILY_TURBO, -EINVAL },
	{ "capitals", "ALL", FREQ_FAMILY_TURBO, -EINVAL },
	{ "prefix", "al", FREQ_FAMILY_TURBO, -EINVAL },
	{ "too long", "activeactiveactive", FREQ_FAMILY_TURBO, -EINVAL },
	{ "word of the other family", "boost", FREQ_FAMILY_TURBO, -EINVAL },
	{ "cores without a table", "4c", FREQ_FAMILY_BOOST, -EINVAL },
};

KUNIT_ARRAY_PARAM_DESC(word, word_cases, name);

static void word_test(struct kunit *test)
{
	const struct word_case *c = test->param_value;
	const struct freq_policy untouched = { FREQ_POLICY_ACTIVE, 77 };
	struct freq_policy policy = untouched;
	char word[FREQ_POLICY_WORD];

	KUNIT_ASSERT_EQ(test, freq_policy_parse(&policy, c->family, c->word), c->ret);
	if (c->ret) {
		KUNIT_EXPECT_EQ(test, policy.kind, untouched.kind);
		KUNIT_EXPECT_EQ(test, policy.cores, untouched.cores);
		return;
	}

	KUNIT_EXPECT_EQ(test, policy.kind, c->policy.kind);
	KUNIT_EXPECT_EQ(test, policy.cores, c->policy.cores);
	freq_policy_word(policy, c->family, word);
	KUNIT_EXPECT_EQ(test, strncmp(word, c->word, strlen(word)), 0);
}

/* E5-2698 v4 with eight of its cores, and parts with fewer */
static const struct policy_case {
	const char	*name;
	u32		vfm;
	u64		base;
	u64		limits;
	unsigned int	cores;
	const char	*word;
	u32		ratio;
} policy_cases[] = {
	{ "base", INTEL_BROADWELL_X, 0x1600, 0x1d1e1f2021222424, 8, "base", 1024 },
	{ "1c", INTEL_BROADWELL_X, 0x1600, 0x1d1e1f2021222424, 8, "1c", 1675 },
	{ "3c", INTEL_BROADWELL_X, 0x1600, 0x1d1e1f2021222424, 8, "3c", 1582 },
	{ "4c", INTEL_BROADWELL_X, 0x1600, 0x1d1e1f2021222424, 8, "4c", 1536 },
	{ "8c", INTEL_BROADWELL_X, 0x1600, 0x1d1e1f2021222424, 8, "8c", 1349 },
	{ "all", INTEL_BROADWELL_X, 0x1600, 0x1d1e1f2021222424, 8, "all", 1349 },
	{ "all of six", INTEL_BROADWELL_X, 0x1600, 0x1d1e1f2021222424, 6, "all", 1442 },
	{ "second", INTEL_BROADWELL_X, 0x1600, 0x1d1e1f2021222424, 8, "second", 1582 },
	{ "limit of active", INTEL_BROADWELL_X, 0x1600, 0x1d1e1f2021222424, 8, "active", 1675 },
	{ "more than it has", INTEL_SKYLAKE, 0x1900, 0x1d1f, 2, "4c", 1269 },
	{ "all of two", INTEL_SKYLAKE, 0x1900, 0x1d1f, 2, "all", 1187 },
};

KUNIT_ARRAY_PARAM_DESC(policy, policy_cases, name);

static void policy_test(struct kunit *test)
{
	const struct policy_case *c = test->param_value;
	u64 limits[TURBO_LIMIT_MSRS] = { c->limits };
	struct turbo_table table;
	struct freq_policy policy;

	KUNIT_ASSERT_EQ(test, turbo_table_decode(&table, turbo_model_find(c->vfm)->layout,
						 c->base, limits), 0);
	KUNIT_ASSERT_EQ(test, freq_policy_parse(&policy, FREQ_FAMILY_TURBO, c->word), 0);
	KUNIT_EXPECT_EQ(test, freq_policy_turbo(policy, &table, c->cores), c->ratio);
}

/* EPYC 7742, 2250 and 3400 MHz: the three candidates that were measured */
static void boost_policy_test(struct kunit *test)
{
	u32 boost = freq_max_ratio(3400, 2250);

	struct freq_policy policy = { FREQ_POLICY_BOOST };

	KUNIT_EXPECT_EQ(test, freq_policy_boost(policy, boost), 1547);
	policy.kind = FREQ_POLICY_MIDPOINT;
	KUNIT_EXPECT_EQ(test, freq_policy_boost(policy, boost), 1285);
	policy.kind = FREQ_POLICY_BASE;
	KUNIT_EXPECT_EQ(test, freq_policy_boost(policy, boost), 1024);
}

static const struct limit_case {
	const char	*name;
	u32		ratio;
	unsigned int	max_khz;
	unsigned int	base_khz;
	u32		limited;
} limit_cases[] = {
	{ "no driver",		1536, 0, 2200000, 1536 },
	{ "no base",		1536, 3600000, 0, 1536 },
	{ "above freq_max",	1536, 3600000, 2200000, 1536 },
	{ "the same",		1675, 3600000, 2200000, 1675 },
	{ "base is off by a bit", 1675, 3600000, 2200500, 1675 },
	{ "below",		1536, 2200000, 2200000, 1024 },
	{ "EPYC without boost",	1285, 2250000, 2250000, 1024 },
	{ "below base",		1536, 1100000, 2200000, 512 },
	{ "highest",		U32_MAX, UINT_MAX, 1, U32_MAX },
};

KUNIT_ARRAY_PARAM_DESC(limit, limit_cases, name);

static void limit_test(struct kunit *test)
{
	const struct limit_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, freq_max_limit(c->ratio, c->max_khz, c->base_khz), c->limited);
}

/* Whatever policy, table and driver: never more than what can be requested */
static void limit_random_test(struct kunit *test)
{
	struct rnd_state rnd;
	unsigned int n;

	prandom_seed_state(&rnd, 2021);
	for (n = 0; n < 100000; n++) {
		u32 ratio = prandom_u32_state(&rnd) >> prandom_u32_state(&rnd) % 32;
		u32 max = 1 + prandom_u32_state(&rnd) % 8000000;
		u32 base = 1 + prandom_u32_state(&rnd) % 8000000;
		u64 limited = freq_max_limit(ratio, max, base);

		if (limited > ratio || (limited && (limited - 1) * base >= (u64)max << 10)) {
			KUNIT_FAIL(test, "limit(%u, %u, %u) = %llu", ratio, max, base, limited);
			return;
		}
	}
}

/* How a quarantine begins, how long it lasts and how it ends */
static void health_test(struct kunit *test)
{
	struct freq_health h = {};
	unsigned int i, waits = 0;

	for (i = 1; i < FREQ_BAD_SAMPLES; i++)
		KUNIT_EXPECT_FALSE(test, freq_health_bad(&h));
	freq_health_good(&h);
	for (i = 1; i < FREQ_BAD_SAMPLES; i++)
		KUNIT_EXPECT_FALSE(test, freq_health_bad(&h));
	KUNIT_EXPECT_EQ(test, h.state, FREQ_SAMPLING);
	KUNIT_EXPECT_TRUE(test, freq_health_bad(&h));
	KUNIT_EXPECT_EQ(test, h.state, FREQ_QUARANTINED);
	KUNIT_EXPECT_EQ(test, h.wait, FREQ_RETRY_FIRST);

	for (i = 0; i < 100; i++) {
		waits = h.wait;
		freq_health_retry(&h);
		KUNIT_EXPECT_EQ(test, h.state, FREQ_TRYING);
		KUNIT_EXPECT_TRUE(test, freq_health_bad(&h));
		KUNIT_EXPECT_EQ(test, h.wait, min(2 * waits, FREQ_RETRY_LONGEST));
	}
	/* With two ticks of 10 ms after it, still within a second */
	KUNIT_EXPECT_LT(test, h.wait + 20, 1000);

	freq_health_retry(&h);
	freq_health_good(&h);
	KUNIT_EXPECT_EQ(test, h.state, FREQ_SAMPLING);
	KUNIT_EXPECT_FALSE(test, freq_health_bad(&h));
}

/*
 * Seven or eight busy cores in turn, a bin of 46 between them: freq_max stays
 * between the two, and far less than a bin comes of 10 ms. Then one core.
 */
static void active_test(struct kunit *test)
{
	u32 level = 1349 << FREQ_ACTIVE_SHIFT, before, steps;
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		before = level;
		level = freq_active_step(level, i % 2 ? 1349 : 1396);
		KUNIT_EXPECT_LT(test, abs((int)(level - before)) >> FREQ_ACTIVE_SHIFT, 46 / 3);
	}
	KUNIT_EXPECT_GE(test, level >> FREQ_ACTIVE_SHIFT, 1349);
	KUNIT_EXPECT_LE(test, level >> FREQ_ACTIVE_SHIFT, 1396);

	for (steps = 0; level >> FREQ_ACTIVE_SHIFT < 1670 && steps < 100; steps++)
		level = freq_active_step(level, 1675);
	/* 4 ms each */
	KUNIT_EXPECT_LE(test, steps, 40);
	for (i = 0; i < 100; i++)
		level = freq_active_step(level, 1675);
	KUNIT_EXPECT_GE(test, level >> FREQ_ACTIVE_SHIFT, 1674);
	KUNIT_EXPECT_LE(test, level >> FREQ_ACTIVE_SHIFT, 1675);
}

static struct kunit_case freq_invariance_cases[] = {
	KUNIT_CASE_PARAM(turbo_table_test, real_tables_gen_params),
	KUNIT_CASE_PARAM(turbo_table_test, odd_tables_gen_params),
	KUNIT_CASE(turbo_table_random_test),
	KUNIT_CASE_PARAM(turbo_model_test, model_gen_params),
	KUNIT_CASE(freq_max_ratio_test),
	KUNIT_CASE_SLOW(freq_scale_factor_test),
	KUNIT_CASE_PARAM(scale_test, scale_gen_params),
	KUNIT_CASE_SLOW(scale_corner_test),
	KUNIT_CASE_SLOW(scale_random_test),
	KUNIT_CASE_PARAM(khz_test, khz_gen_params),
	KUNIT_CASE_PARAM(word_test, word_gen_params),
	KUNIT_CASE_PARAM(policy_test, policy_gen_params),
	KUNIT_CASE(boost_policy_test),
	KUNIT_CASE_PARAM(limit_test, limit_gen_params),
	KUNIT_CASE(limit_random_test),
	KUNIT_CASE(health_test),
	KUNIT_CASE(active_test),
	{}
};

static struct kunit_suite freq_invariance_suite = {
	.name = "x86_freq_invariance",
	.test_cases = freq_invariance_cases,
};

kunit_test_suite(freq_invariance_suite);

MODULE_DESCRIPTION("KUnit tests of x86 frequency invariance");
MODULE_IMPORT_NS(EXPORTED_FOR_KUNIT_TESTING);
MODULE_LICENSE("GPL");
