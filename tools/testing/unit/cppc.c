// SPDX-License-Identifier: GPL-2.0
/*
 * What amd_get_boost_ratio_numerator() returns for each CPU of parts with and without
 * types of cores, and with and without ranks of preferred cores.
 */
#include <kunit/test.h>

#define CPUS		4
enum { X86_FEATURE_ZEN4, X86_FEATURE_AMD_HTR_CORES };
enum { TOPO_CPU_TYPE_ANY, TOPO_CPU_TYPE_PERFORMANCE, TOPO_CPU_TYPE_EFFICIENCY,
       TOPO_CPU_TYPE_LOW_POWER, TOPO_CPU_TYPE_UNKNOWN };
#define TOPO_AMD_TYPE_PERFORMANCE	TOPO_CPU_TYPE_PERFORMANCE	/* 6.12 */

static bool has[2];
static struct { u8 x86_model; } boot_cpu_data;
static struct { struct { unsigned int cpu_type; } topo; } cpus[CPUS];
static u32 highest[CPUS];
static unsigned int online;

#define cpu_feature_enabled(f)	(has[f])
#define cpu_data(cpu)		(cpus[cpu])
#define for_each_online_cpu(cpu)	for (cpu = 0; cpu < CPUS; cpu++) if (online >> cpu & 1)
#undef WARN_ON
#define WARN_ON(x)		(x)
#define pr_warn(...)
#define pr_debug(...)

static int amd_get_highest_perf(unsigned int cpu, u32 *value)
{
	*value = highest[cpu];
	return 0;
}

// FROM arch/x86/kernel/acpi/cppc.c: CPPC_HIGHEST_PERF_PERFORMANCE CPPC_HIGHEST_PERF_PREFCORE amd_pref_core
static enum amd_pref_core amd_pref_core_detected;
static u64 boost_numerator;
// FROM arch/x86/kernel/acpi/cppc.c: amd_detect_prefcore amd_get_boost_ratio_numerator

struct row {
	const char *name;
	bool types, zen4;
	u8 model;
	unsigned int online;
	u32 highest[CPUS];
	u64 expected[CPUS];
};

/* CPUs 0 and 1 are dense where there are types, 2 and 3 fast. */
static const struct row rows[] = {
	{ "no ranks", false, false, 0, 0xf, { 231, 231, 231, 231 }, { 231, 231, 231, 231 } },
	{ "ranks", false, false, 0, 0xf, { 216, 211, 231, 226 }, { 166, 166, 166, 166 } },
	{ "ranks, Phoenix", false, true, 0x74, 0xf, { 211, 216, 231, 236 },
	  { 196, 196, 196, 196 } },
	{ "types", true, false, 0, 0xf, { 132, 132, 206, 201 }, { 132, 132, 196, 196 } },
	{ "types, fast CPUs alone, of one rank", true, false, 0, 0xc, { 0, 0, 201, 201 },
	  { 201, 201, 201, 201 } },
	{ "types, firmware without ranks", true, false, 0, 0xf, { 166, 166, 166, 166 },
	  { 166, 166, 166, 166 } },
};

static void each_cpu_of_each_part(struct kunit *test)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *r = &rows[i];

		has[X86_FEATURE_ZEN4] = r->zen4;
		has[X86_FEATURE_AMD_HTR_CORES] = r->types;
		boot_cpu_data.x86_model = r->model;
		online = r->online;
		amd_pref_core_detected = AMD_PREF_CORE_UNKNOWN;
		for (int cpu = 0; cpu < CPUS; cpu++) {
			cpus[cpu].topo.cpu_type = cpu < 2 ? TOPO_CPU_TYPE_EFFICIENCY :
								   TOPO_CPU_TYPE_PERFORMANCE;
			highest[cpu] = r->highest[cpu];
		}
		for (int cpu = 0; cpu < CPUS; cpu++) {
			u64 got = 0;

			KUNIT_EXPECT_EQ(test, amd_get_boost_ratio_numerator(cpu, &got), 0);
			KUNIT_EXPECT_EQ_MSG(test, got, r->expected[cpu], "%s, CPU %d",
					    r->name, cpu);
		}
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(each_cpu_of_each_part),
	{}
};

static struct kunit_suite suite = { .name = "cppc", .test_cases = cases };
kunit_test_suite(suite);
