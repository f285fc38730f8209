// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of turbo_table.h.
 *
 * A row of a table is a test case of its own; to add a case, add a row.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/string.h>

#include <asm/cpu_device_id.h>
#include <asm/intel-family.h>

#include "turbo_table.h"

#define MAX_WANTS	6

struct table_case {
	const char	*name;
	u32		vfm;
	/* Values of the base register and of those with the bins */
	u64		base;
	u64		limits[TURBO_LIMIT_MSRS];
	int		ret;
	/* The meaning of the values, unless ret is an error */
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
 * Register values are those of real CPUs. Where only clocks are published, they
 * are computed from these: the first three (measured for the choice of 4C), the
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
		.name = "Core 9 273PQE (Bartlett Lake)", .vfm = INTEL_BARTLETTLAKE,
		.base = 0x2200, .limits = { 0x36383b, 0xc0802 },
		.base_ratio = 34,
		.bins = { {2, 59}, {8, 56}, {12, 54} },
		.ratio = 1686,
		.wants = { {1, 1776}, {2, 1776}, {3, 1686}, {9, 1626} },
	}, {
		.name = "i9-12900K (Alder Lake)", .vfm = INTEL_ALDERLAKE,
		.base = 0x2000, .limits = { 0x3131313132323334, 0x807060504030201 },
		.base_ratio = 32,
		.bins = { {1, 52}, {2, 51}, {3, 50}, {4, 50}, {5, 49}, {6, 49},
			  {7, 49}, {8, 49} },
		.ratio = 1600,
		.wants = { {1, 1664}, {2, 1632}, {16, 1568} },
	}, {
		.name = "Xeon D-1540 (Broadwell-D): more ratios", .vfm = INTEL_BROADWELL_D,
		.base = 0x1400, .limits = { 0x191919191a1a1a1a, 0x1919191919191919 },
		.base_ratio = 20,
		.bins = { {1, 26}, {2, 26}, {3, 26}, {4, 26}, {5, 25}, {6, 25},
			  {7, 25}, {8, 25}, {9, 25}, {10, 25}, {11, 25}, {12, 25},
			  {13, 25}, {14, 25}, {15, 25}, {16, 25} },
		.ratio = 1331,
	}, {
		.name = "Sapphire Rapids, 48 cores", .vfm = INTEL_SAPPHIRERAPIDS_X,
		.base = 0x80080001800,
		.limits = { 0x2020212123242526, 0x302e2c2a26221e18 },
		.base_ratio = 24,
		.bins = { {24, 38}, {30, 37}, {34, 36}, {38, 35}, {42, 33}, {44, 33},
			  {46, 32}, {48, 32} },
		/* All cores; byte 3, read as the four-core ratio, gave 1493 */
		.ratio = 1365,
		.wants = { {1, 1621}, {4, 1621}, {24, 1621}, {25, 1578}, {38, 1493}, {48, 1365} },
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
		/* As read in a guest */
		.name = "bytes: below base", .vfm = INTEL_HASWELL,
		.base = 0x28280000002800, .limits = { 0x1f1f1f1f1f20 },
		.ret = -ENODATA,
	}, {
		.name = "bytes: as high as can be", .vfm = INTEL_SKYLAKE,
		.base = 0x0100, .limits = { 0xffffffffffffffff },
		.base_ratio = 1,
		.bins = { {1, 127}, {2, 127}, {3, 127}, {4, 127}, {5, 127},
			  {6, 127}, {7, 127}, {8, 127} },
		.ratio = 130048,
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
		.name = "groups or bytes: groups of 4, 12 and 20", .vfm = IFM(19, 0xff),
		.base = 0x1400, .limits = { 0x20262a, 0x140c04 },
		.base_ratio = 20,
		.bins = { {4, 42}, {12, 38}, {20, 32} },
		.ratio = 2150,
	}, {
		.name = "groups or bytes: counts do not rise", .vfm = IFM(19, 0xff),
		.base = 0x1400, .limits = { 0x2022262a, 0x140a0c04 },
		.base_ratio = 20,
		.bins = { {1, 42}, {2, 38}, {3, 34}, {4, 32}, {12, 20} },
		.ratio = 1638,
	}, {
		.name = "groups or bytes: the last count repeats", .vfm = IFM(19, 0xff),
		.base = 0x1400, .limits = { 0x2022262a, 0x14140c04 },
		.base_ratio = 20,
		.bins = { {4, 42}, {12, 38}, {20, 34} },
		.ratio = 2150,
	}, {
		.name = "groups or bytes: counts with a hole", .vfm = IFM(19, 0xff),
		.base = 0x1400, .limits = { 0x2022262a, 0x14000c04 },
		.base_ratio = 20,
		/* As on a Platinum 8170M */
		.bins = { {4, 42}, {12, 38}, {20, 32} },
		.ratio = 2150,
	}, {
		.name = "groups or bytes: one count", .vfm = IFM(19, 0xff),
		.base = 0x1400, .limits = { 0x2022262a, 0x1c },
		.base_ratio = 20,
		.bins = { {1, 42}, {2, 38}, {3, 34}, {4, 32}, {9, 28} },
		.ratio = 1638,
	}, {
		.name = "groups: all zero", .vfm = INTEL_SKYLAKE_X,
		.ret = -ENODATA,
	}, {
		.name = "groups: counts 0", .vfm = INTEL_SKYLAKE_X,
		.base = 0x1700, .limits = { 0x1d1d1d1f20202123, 0 },
		.base_ratio = 23,
		.bins = { {1, 35}, {2, 33}, {3, 32}, {4, 32}, {5, 31}, {6, 29},
			  {7, 29}, {8, 29} },
		.ratio = 1424,
	}, {
		.name = "groups: counts up to 255", .vfm = INTEL_SKYLAKE_X,
		.base = 0x1700, .limits = { 0x1d1d1d1f20202123, 0xfffffffffffffffe },
		.base_ratio = 23,
		.bins = { {254, 35}, {255, 33} },
		.ratio = 1558,
		.wants = { {1, 1558}, {255, 1469}, {256, 1469} },
	}, {
		.name = "groups: one, whose count repeats", .vfm = INTEL_ATOM_CRESTMONT_X,
		.base = 0x1400, .limits = { 0x1b1b1b1b1b1b1b1b, 0x1c1c1c1c1c1c1c1c },
		.base_ratio = 20,
		.bins = { {28, 27} },
		.ratio = 1382,
		.wants = { {1, 1382}, {255, 1382} },
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
		.ratio = 1181,
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
		.base = 0x0500, .limits = { 0xffffffffff3f0604 },
		.base_ratio = 5,
		.bins = { {2, 6}, {33, 5} },
		.ratio = 1024,
	}, {
		.name = "groups: the widest is below base", .vfm = INTEL_ICELAKE_X,
		.base = 0x1700, .limits = { 0x161723, 0x0c0804 },
		.base_ratio = 23,
		.bins = { {4, 35}, {8, 23} },
		.ratio = 1024,
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
	unsigned int i;

	for (i = 0; i < MAX_WANTS && c->wants[i].cores; i++)
		KUNIT_EXPECT_EQ_MSG(test, turbo_table_freq_max(table, c->wants[i].cores),
				    c->wants[i].ratio,
				    "with %u cores active", c->wants[i].cores);
}

static int decode(struct turbo_table *table, const struct table_case *c)
{
	/* Old contents must not show */
	memset(table, 0xff, sizeof(*table));
	if (c->vfm == INTEL_ATOM_SILVERMONT || c->vfm == INTEL_ATOM_AIRMONT)
		return turbo_table_decode_atom(table, c->base, c->limits[0]);
	return turbo_table_decode(table, c->vfm, c->base >> 8 & 0xff, c->limits);
}

static void turbo_table_test(struct kunit *test)
{
	const struct table_case *c = test->param_value;
	struct turbo_table table;
	int ret;

	ret = decode(&table, c);
	KUNIT_ASSERT_EQ(test, ret, c->ret);
	if (ret) {
		/* Who walks the bins divides by the base ratio */
		KUNIT_EXPECT_EQ(test, table.nr_bins, 0);
		return;
	}

	KUNIT_EXPECT_EQ(test, table.base, c->base_ratio);
	check_bins(test, c, &table);
	KUNIT_EXPECT_EQ(test, turbo_table_freq_max(&table, table.cores), c->ratio);
	check_wants(test, c, &table);
}

KUNIT_ARRAY_PARAM_DESC(real_tables, real_tables, name);
KUNIT_ARRAY_PARAM_DESC(odd_tables, odd_tables, name);

/*
 * With any value in the registers callers can rely on rising numbers of cores,
 * ratios above zero, and indices within bounds.
 */
static void turbo_table_random_test(struct kunit *test)
{
	static const u32 vfms[] = {
		INTEL_SKYLAKE, INTEL_ICELAKE_X, INTEL_XEON_PHI_KNL, INTEL_ATOM_GOLDMONT,
	};
	struct turbo_table table;
	struct rnd_state rnd;
	u64 limits[TURBO_LIMIT_MSRS];
	unsigned int n, i, bad = 0;

	prandom_seed_state(&rnd, 4);

	for (n = 0; n < 100000; n++) {
		prandom_bytes_state(&rnd, limits, sizeof(limits));
		if (turbo_table_decode(&table, vfms[n % ARRAY_SIZE(vfms)], limits[n % 3], limits))
			continue;

		bad += table.nr_bins > TURBO_BINS_MAX;
		for (i = 0; i < table.nr_bins; i++) {
			bad += !table.bins[i].ratio;
			bad += i && table.bins[i].cores <= table.bins[i - 1].cores;
		}
		bad += !table.cores;

		if (bad) {
			KUNIT_FAIL(test, "model %u: %#llx %#llx %#llx", n % 4,
				   limits[0], limits[1], limits[2]);
			return;
		}
	}
}

static const struct model_case {
	const char	*name;
	u32		vfm;
	u16		cores;
} model_cases[] = {
	{ "Nehalem",		INTEL_NEHALEM,			4 },
	{ "Ivy Bridge-X",	INTEL_IVYBRIDGE_X,		4 },
	{ "Broadwell-D",	INTEL_BROADWELL_D,		4 },
	{ "Skylake",		INTEL_SKYLAKE,			4 },
	{ "Skylake-X",		INTEL_SKYLAKE_X,		4 },
	{ "Ice Lake-X",		INTEL_ICELAKE_X,		TURBO_ALL_CORES },
	{ "Ice Lake-D",		INTEL_ICELAKE_D,		TURBO_ALL_CORES },
	{ "Ice Lake-L",		INTEL_ICELAKE_L,		4 },
	{ "Sapphire Rapids",	INTEL_SAPPHIRERAPIDS_X,		TURBO_ALL_CORES },
	{ "Emerald Rapids",	INTEL_EMERALDRAPIDS_X,		TURBO_ALL_CORES },
	{ "Granite Rapids",	INTEL_GRANITERAPIDS_X,		TURBO_ALL_CORES },
	{ "Granite Rapids-D",	INTEL_GRANITERAPIDS_D,		TURBO_ALL_CORES },
	{ "Diamond Rapids",	IFM(19, 0x01),			TURBO_ALL_CORES },
	{ "Bartlett Lake",	INTEL_BARTLETTLAKE,		4 },
	{ "Sierra Forest",	INTEL_ATOM_CRESTMONT_X,		4 },
	{ "Grand Ridge",	INTEL_ATOM_CRESTMONT,		4 },
	{ "Clearwater Forest",	INTEL_ATOM_DARKMONT_X,		4 },
	{ "Tremont-D",		INTEL_ATOM_TREMONT_D,		4 },
	{ "Alder Lake",		INTEL_ALDERLAKE,		4 },
	{ "Silvermont",		INTEL_ATOM_SILVERMONT,		1 },
	{ "Goldmont",		INTEL_ATOM_GOLDMONT,		1 },
	{ "Goldmont-D",		INTEL_ATOM_GOLDMONT_D,		1 },
	{ "Goldmont Plus",	INTEL_ATOM_GOLDMONT_PLUS,	1 },
	{ "Knights Landing",	INTEL_XEON_PHI_KNL,		3 },
	{ "Knights Mill",	INTEL_XEON_PHI_KNM,		3 },
	{ "not invented yet",	IFM(19, 0xff),			4 },
};

KUNIT_ARRAY_PARAM_DESC(model, model_cases, name);

/* Two cores with a ratio of 16, then one of 15: as deltas too */
static void turbo_model_test(struct kunit *test)
{
	static const u64 limits[TURBO_LIMIT_MSRS] = { 0x1010101f3f1004 };
	const struct model_case *c = test->param_value;
	struct turbo_table table;

	KUNIT_ASSERT_EQ(test, turbo_table_decode(&table, c->vfm, 4, limits), 0);
	KUNIT_EXPECT_EQ(test, table.cores, c->cores);
}

static struct kunit_case turbo_table_cases[] = {
	KUNIT_CASE_PARAM(turbo_table_test, real_tables_gen_params),
	KUNIT_CASE_PARAM(turbo_table_test, odd_tables_gen_params),
	KUNIT_CASE(turbo_table_random_test),
	KUNIT_CASE_PARAM(turbo_model_test, model_gen_params),
	{}
};

static struct kunit_suite turbo_table_suite = {
	.name		= "turbo_table",
	.test_cases	= turbo_table_cases,
};

kunit_test_suite(turbo_table_suite);

MODULE_DESCRIPTION("KUnit tests of turbo tables");
MODULE_LICENSE("GPL");
