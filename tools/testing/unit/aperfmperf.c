// SPDX-License-Identifier: GPL-2.0
/*
 * aperfmperf.c: ticks that see any values in the counters, ratios of CPUs for which
 * firmware reports nothing, and when freq_max is computed.
 */
#include <kunit/test.h>

#define CPUS		4
#define TICK		8000000ULL	/* of the TSC, 2 GHz */
#define SCHED_CAPACITY_SCALE	1024L
#define SCHED_CAPACITY_SHIFT	10
#define X86_FEATURE_APERFMPERF	0
#define MSR_IA32_APERF	0
#define MSR_IA32_MPERF	1

typedef struct { unsigned int sequence; } seqcount_t;
struct cpumask { unsigned int bits; };

static u64 counters[2];
static unsigned long jiffies;
static unsigned int tsc_khz = 2000000, told;
static bool invariant = true, hybrid;
static unsigned long arch_freq_scale;
static u32 cpufreq_limit[CPUS];

#define rdmsrl(msr, value)	((value) = counters[msr])
#define rdmsrq			rdmsrl		/* its name from 6.16 on */
#define cpu_feature_enabled(f)	true
#define arch_scale_freq_invariant()	(invariant)
#define this_cpu_ptr(p)		(p)
#define this_cpu_write(p, v)	((p) = (v))
#define this_cpu_inc(p)		((p)++)
#define per_cpu(v, cpu)		((v)[cpu])
#define smp_processor_id()	0
#define pr_warn_once(...)	(told++)
#define raw_write_seqcount_begin(s)	((s)->sequence++)
#define raw_write_seqcount_end(s)	((s)->sequence++)
#define div_u64(a, b)		((a) / (b))
#define check_shl_overflow(a, s, d)	\
	({ u64 a_ = (a); *(d) = a_ << (s); (s64)a_ < 0 || *(d) >> (s) != a_ || (s64)*(d) < 0; })
#define check_mul_overflow(a, b, d)	__builtin_mul_overflow(a, b, d)

// FROM arch/x86/kernel/cpu/aperfmperf.c: aperfmperf
static struct aperfmperf cpu_samples;
static u64 ratio = 1945;
#define freq_max_of(cpu)	(ratio)
// FROM arch/x86/kernel/cpu/aperfmperf.c: init_counter_refs scale_freq_tick arch_scale_freq_tick

/* One tick later the counters have risen by so much */
static void tick(u64 acnt, u64 mcnt)
{
	jiffies++;
	counters[MSR_IA32_APERF] += acnt;
	counters[MSR_IA32_MPERF] += mcnt;
	arch_scale_freq_tick();
}

static void boot(void)
{
	counters[0] = counters[1] = 1;
	jiffies = told = 0;
	arch_freq_scale = 1024;
	cpu_samples = (struct aperfmperf){};
	init_counter_refs(NULL);
}

/* Utilisation and the budgets of deadline tasks stand still at a scale of 0 */
static void no_sample_sets_a_scale_of_0(struct kunit *test)
{
	static const u64 rises[] = { 0, 1, 100, 400, 4000, TICK / 2, TICK, 3 * TICK,
				     1ULL << 44, 1ULL << 62, -1ULL };

	for (size_t a = 0; a < ARRAY_SIZE(rises); a++) {
		for (size_t m = 0; m < ARRAY_SIZE(rises); m++) {
			boot();
			for (int i = 0; i < 20; i++) {
				tick(rises[a], rises[m]);
				KUNIT_EXPECT_TRUE(test, arch_freq_scale > 0 &&
							arch_freq_scale <= 1024);
			}
		}
	}
}

static void a_counter_that_crawls_is_found(struct kunit *test)
{
	boot();
	tick(TICK / 2, TICK);
	KUNIT_EXPECT_EQ(test, arch_freq_scale, 269);
	for (int i = 0; i < 10; i++)
		tick(TICK / 2000, TICK);
	KUNIT_EXPECT_EQ(test, arch_freq_scale, 1024);
	KUNIT_EXPECT_EQ(test, cpu_samples.skipped, 10);
	tick(TICK / 2, TICK);
	KUNIT_EXPECT_EQ(test, arch_freq_scale, 269);
}

/* Its frequency is not shown either */
static void a_bad_sample_costs_one(struct kunit *test)
{
	static const struct { u64 acnt, mcnt; } bad[] = {
		{ TICK, 0 }, { 0, TICK }, { 0, 0 }, { -TICK, TICK }, { TICK, -TICK },
		{ -TICK, -TICK }, { 1ULL << 61, 1ULL << 61 }, { 1ULL << 62, TICK },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		boot();
		tick(TICK / 2, TICK);
		tick(bad[i].acnt, bad[i].mcnt);
		KUNIT_EXPECT_EQ(test, arch_freq_scale, 1024);
		KUNIT_EXPECT_EQ(test, cpu_samples.mcnt, 0);
		KUNIT_EXPECT_EQ(test, cpu_samples.skipped, 1);
		KUNIT_EXPECT_EQ(test, told, 1);
		tick(TICK / 2, TICK);
		KUNIT_EXPECT_EQ(test, arch_freq_scale, 269);
		KUNIT_EXPECT_EQ(test, cpu_samples.mcnt, TICK);
	}
}

/* A read that fails gives 0. What MPERF has counted since boot is no sample. */
static void a_failed_read_costs_two(struct kunit *test)
{
	u64 before;

	boot();
	tick(10 * TICK, 10 * TICK);
	before = counters[MSR_IA32_MPERF];
	for (int i = 1; i < 4; i++) {
		tick(TICK / 2, -counters[MSR_IA32_MPERF]);
		KUNIT_EXPECT_EQ(test, arch_freq_scale, 1024);
		KUNIT_EXPECT_EQ(test, cpu_samples.skipped, i);
	}
	tick(TICK / 2, before + 4 * TICK);
	KUNIT_EXPECT_EQ(test, arch_freq_scale, 1024);
	KUNIT_EXPECT_EQ(test, cpu_samples.skipped, 4);
	tick(TICK / 2, TICK);
	KUNIT_EXPECT_EQ(test, arch_freq_scale, 269);
}

/* The rest: as of any CPUs */
static int arch_hybrid_cap_scale_key;
static struct arch_hybrid_cpu_scale { unsigned long capacity, freq_ratio; } scales[CPUS];
static struct arch_hybrid_cpu_scale *arch_cpu_scale = scales;
#define static_branch_likely(key)	(hybrid)
#define per_cpu_ptr(p, cpu)	(&(p)[cpu])
#define WARN_ONCE(...)		assert(!"WARN")

// FROM arch/x86/kernel/cpu/aperfmperf.c: arch_set_cpu_capacity

static void firmware_that_says_0_sets_nothing(struct kunit *test)
{
	hybrid = true;
	for (int cpu = 0; cpu < CPUS; cpu++)
		scales[cpu] = (struct arch_hybrid_cpu_scale){ 1024, 1600 };
	arch_set_cpu_capacity(0, 60, 80, 60, 40);
	arch_set_cpu_capacity(1, 0, 80, 0, 40);
	arch_set_cpu_capacity(2, 60, 80, 0, 40);
	arch_set_cpu_capacity(3, 60, 80, 1, 4000);
	KUNIT_EXPECT_EQ(test, scales[0].capacity, 768);
	KUNIT_EXPECT_EQ(test, scales[0].freq_ratio, 1536);
	for (int cpu = 1; cpu < 3; cpu++) {
		KUNIT_EXPECT_EQ(test, scales[cpu].capacity, 1024);
		KUNIT_EXPECT_EQ(test, scales[cpu].freq_ratio, 1600);
	}
	KUNIT_EXPECT_EQ(test, scales[3].freq_ratio, 1);
}

/* Turbo with one core and with more */
static int arch_scale_freq_key;
#define static_branch_unlikely(key)	(patched)
#define WARN_ON_ONCE(c)		assert(!(c))
#define for_each_possible_cpu(cpu)	for (walks++, cpu = 0; cpu < CPUS; cpu++)
#define for_each_cpu(cpu, mask)	for (cpu = 0; cpu < CPUS; cpu++) if ((mask)->bits >> cpu & 1)
#define DIV_ROUND_UP_ULL(a, b)	(((a) + (b) - 1) / (b))
#define turbo_table_freq_max(table, cores)	((cores) == 1 ? 2048 : 1536)
#define BIT(n)			(1ul << (n))

/* The lock is a leaf: no code is patched while it is held */
static bool locked, hotplug_locked, patched;
static bool lock(void) { assert(!locked); return locked = true; }
static void unlock(bool *unused) { locked = false; }
#define guard(type)		guard_##type
#define guard_mutex(m)		bool held __attribute__((cleanup(unlock))) = lock()
#define guard_cpus_read_lock()	hotplug_locked = true
#define scoped_guard(type, m)	\
	for (bool once = true, held __attribute__((cleanup(unlock))) = lock(); once; once = false)
#define lockdep_assert_held(m)	assert(locked)
#define static_branch_enable_cpuslocked(key)	\
	(assert(!locked && hotplug_locked), patched = true, invariant = true)

static unsigned int walks, resumes;
static int turbo_table;
static bool no_turbo, counters_stand_still;
static unsigned int freq_max;
static u32 boost_ratio;
static u64 arch_max_freq_ratio = 1024;

static bool counters_move(void)
{
	return !counters_stand_still;
}

static void register_freq_invariance_syscore(void)
{
	resumes++;
}

#undef pr_info
#define pr_info(...)
// FROM arch/x86/kernel/cpu/freq_max.h: freq_max
// FROM arch/x86/kernel/cpu/aperfmperf.c: chosen_ratio set_freq_max arch_set_max_freq_ratio arch_set_cpufreq_max freq_invariance_enable freq_invariance_start freq_invariance_set_perf_ratio

static void limit(unsigned int bits, unsigned int khz, bool boost)
{
	arch_set_cpufreq_max(&(struct cpumask){ bits }, khz, boost);
}

static void choose(unsigned int choice)
{
	freq_max = choice;
	lock();
	set_freq_max();
	unlock(NULL);
}

static void start(u64 boost, unsigned int choice)
{
	invariant = patched = no_turbo = false;
	resumes = boost_ratio = 0;
	arch_max_freq_ratio = 1024;
	freq_max = choice;
	freq_invariance_set_perf_ratio(boost, false);
}

/* The tick multiplies by it; CPPC tables have 32 bits, or 0 */
static void firmware_may_say_any_number(struct kunit *test)
{
	static const struct { u64 says; u32 ratio; } cases[] = {
		{ 0, 1024 }, { 1, 1024 }, { 1023, 1024 }, { 1568, 1568 }, { 1ULL << 20, 1 << 20 },
		{ 1ULL << 32, 1 << 20 }, { (1ULL << 32) + 1, 1 << 20 }, { ~0ULL, 1 << 20 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		start(cases[i].says, FREQ_MAX_BOOST);
		KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, cases[i].ratio);
	}
}

static void what_each_word_is(struct kunit *test)
{
	start(1945, 0);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1484);
	choose(FREQ_MAX_NOMINAL);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1024);
	choose(FREQ_MAX_MIDPOINT);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1484);
	choose(FREQ_MAX_BOOST);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1945);
	choose(4);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1536);
}

/* Neither may a driver make a freq_max of it: the choice may need a table that is not there */
static void off_is_never_on(struct kunit *test)
{
	for (int still = 0; still < 2; still++) {
		counters_stand_still = still;
		start(1945, still ? 0 : FREQ_MAX_OFF);
		KUNIT_EXPECT_FALSE(test, invariant || patched);
		KUNIT_EXPECT_EQ(test, resumes, 0);
		arch_set_max_freq_ratio(false);
		limit(0xf, 3000000, true);
		KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1024);
		limit(0xf, 0, true);
	}
	counters_stand_still = false;
	start(1945, 4);
	KUNIT_EXPECT_TRUE(test, invariant);
	KUNIT_EXPECT_EQ(test, resumes, 1);
}

static void turbo_that_is_off_before_it_starts_counts(struct kunit *test)
{
	start(1945, FREQ_MAX_OFF);
	arch_set_max_freq_ratio(true);
	freq_max = FREQ_MAX_BOOST;
	freq_invariance_set_perf_ratio(1945, false);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1024);
	arch_set_max_freq_ratio(false);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1945);
}

static void no_more_than_cpufreq_can_request(struct kunit *test)
{
	start(1945, FREQ_MAX_BOOST);
	limit(0xf, 3000001, true);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1537);
	limit(0x3, 2500000, true);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1537);
	limit(0xc, 3000000, false);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1280);
	limit(0x3, 0, true);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1024);
	limit(0xc, 0, false);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1945);
	arch_set_max_freq_ratio(true);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1024);
	arch_set_max_freq_ratio(false);
	walks = 0;
	limit(0xf, 2500000, true);
	KUNIT_EXPECT_EQ(test, walks, 1);
	limit(0xf, 2500000, true);
	KUNIT_EXPECT_EQ(test, walks, 1);
	limit(0xf, 0, true);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(no_sample_sets_a_scale_of_0),
	KUNIT_CASE(a_counter_that_crawls_is_found),
	KUNIT_CASE(a_bad_sample_costs_one),
	KUNIT_CASE(a_failed_read_costs_two),
	KUNIT_CASE(firmware_that_says_0_sets_nothing),
	KUNIT_CASE(firmware_may_say_any_number),
	KUNIT_CASE(what_each_word_is),
	KUNIT_CASE(off_is_never_on),
	KUNIT_CASE(turbo_that_is_off_before_it_starts_counts),
	KUNIT_CASE(no_more_than_cpufreq_can_request),
	{}
};

static struct kunit_suite suite = { .name = "aperfmperf", .test_cases = cases };
kunit_test_suite(suite);
