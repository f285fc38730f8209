// SPDX-License-Identifier: GPL-2.0
/*
 * aperfmperf.c: ticks that see any values in the counters, ratios of CPUs for which
 * firmware reports nothing, and when freq_max is computed.
 */
#include <kunit/test.h>

#define CPUS		4
#define HZ		250
#define TICK		8000000ULL	/* of the TSC, 2 GHz */
#define MSEC_PER_SEC	1000
#define SCHED_CAPACITY_SCALE	1024L
#define SCHED_CAPACITY_SHIFT	10
#define KERN_WARNING	""
#define X86_FEATURE_APERFMPERF	0
#define MSR_IA32_APERF	0
#define MSR_IA32_MPERF	1

typedef struct { unsigned int sequence; } seqcount_t;
struct work_struct { int unused; };
struct cpumask { unsigned int bits; };

static u64 counters[2];
static unsigned long jiffies;
static u64 shim_tsc;
#define rdtsc()			(shim_tsc)
static unsigned int tsc_khz = 2000000, told, asked;
static bool invariant = true, hybrid;
static unsigned long arch_freq_scale;
static u64 cpufreq_limit[CPUS];

#define rdmsrl(msr, value)	((value) = counters[msr])
#define rdmsrq			rdmsrl		/* its name from 6.16 on */
#define cpu_feature_enabled(f)	true
#define arch_scale_freq_invariant()	(invariant)
#define this_cpu_ptr(p)		(p)
#define this_cpu_write(p, v)	((p) = (v))
#define per_cpu(v, cpu)		((v)[cpu])
#define smp_processor_id()	0
#define printk_deferred(...)	(told++)
#define raw_write_seqcount_begin(s)	((s)->sequence++)
#define raw_write_seqcount_end(s)	((s)->sequence++)
#define noinline
#define div_u64(a, b)		((a) / (b))

// FROM arch/x86/kernel/cpu/freq_sample.h: FREQ_SAMPLE_BITS freq_sample_usual freq_sample_scale freq_sample_scale_any freq_sample_mperf_max FREQ_SAMPLE_RATIO_MAX FREQ_TROUBLE_BAD FREQ_TROUBLE_LIMIT freq_trouble_bad

// FROM arch/x86/kernel/cpu/aperfmperf.c: aperfmperf
static struct aperfmperf cpu_samples;
static u64 ratio = 1945;
#define this_freq_max()		(ratio)
// FROM arch/x86/kernel/cpu/aperfmperf.c: tsc_per_tick init_counter_refs set_freq_scale count_bad_sample publish_sample judge_sample arch_scale_freq_tick

/* One tick later the counters have risen by so much */
static void tick(u64 acnt, u64 mcnt)
{
	jiffies++;
	shim_tsc += TICK;
	counters[MSR_IA32_APERF] += acnt;
	counters[MSR_IA32_MPERF] += mcnt;
	arch_scale_freq_tick();
}

static void boot(void)
{
	counters[0] = counters[1] = jiffies = told = 0;
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
				KUNIT_EXPECT_TRUE(test, arch_freq_scale > 0);
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
	KUNIT_EXPECT_EQ(test, told, 1);
	for (int i = 0; i < 10; i++)
		tick(TICK / 2, TICK);
	KUNIT_EXPECT_EQ(test, arch_freq_scale, 269);
}

static void one_bad_sample_costs_three(struct kunit *test)
{
	boot();
	tick(TICK, TICK);
	tick(TICK, 0);
	KUNIT_EXPECT_EQ(test, cpu_samples.mcnt, 0);
	tick(TICK / 2, TICK);
	tick(TICK / 2, TICK);
	KUNIT_EXPECT_EQ(test, arch_freq_scale, 539);
	KUNIT_EXPECT_EQ(test, cpu_samples.mcnt, 0);
	tick(TICK / 2, TICK);
	KUNIT_EXPECT_EQ(test, arch_freq_scale, 269);
	KUNIT_EXPECT_EQ(test, cpu_samples.mcnt, TICK);
	KUNIT_EXPECT_EQ(test, cpu_samples.skipped, 1);
}

/* Both ahead by so many ticks in one; MPERF may be overclocked */
static void a_jump_ahead_is_not_believed(struct kunit *test)
{
	static const struct { u64 mcnt; bool bad; } cases[] = {
		{ TICK, false }, { 2 * TICK, false }, { 2 * TICK + 1, true },
		{ 1ULL << 61, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		boot();
		tick(TICK, TICK);
		tick(cases[i].mcnt, cases[i].mcnt);
		KUNIT_EXPECT_EQ(test, cpu_samples.skipped, cases[i].bad);
	}
}

static void a_long_time_without_a_tick_is_no_error(struct kunit *test)
{
	boot();
	shim_tsc += 2 * 3600 * HZ * TICK;
	tick(2 * 3600 * HZ * TICK / 2, 2 * 3600 * HZ * TICK);
	KUNIT_EXPECT_EQ(test, cpu_samples.skipped, 0);
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
#define arch_scale_freq_key	0
#define static_branch_enable(key)	(invariant = true)
#define static_branch_disable(key)	(invariant = false)
#define static_key_enabled(key)		(invariant)
#define synchronize_rcu()		(graces++)
#define for_each_possible_cpu(cpu)	for (walks++, cpu = 0; cpu < CPUS; cpu++)
#define for_each_cpu(cpu, mask)	for (cpu = 0; cpu < CPUS; cpu++) if ((mask)->bits >> cpu & 1)
#define schedule_delayed_work(work, delay)	(asked++)
#define DIV_ROUND_UP_ULL(a, b)	(((a) + (b) - 1) / (b))
#define turbo_table_freq_max(table, cores)	((cores) == 1 ? 2048 : 1536)

static unsigned int walks, graces;
static int turbo_table;
static bool freq_max_known = true, no_turbo;
static unsigned int freq_max;
static u64 arch_max_freq_ratio;
static unsigned long scale_of[CPUS];

// FROM arch/x86/kernel/cpu/freq_max.h: freq_max
#define arch_freq_scale	scale_of
// FROM arch/x86/kernel/cpu/aperfmperf.c: boost_ratio chosen_ratio set_freq_max arch_set_max_freq_ratio arch_set_cpufreq_max freq_invariance_set_boost
#undef arch_freq_scale

static void limit(unsigned int bits, unsigned int khz, bool boost)
{
	arch_set_cpufreq_max(&(struct cpumask){ bits }, khz, boost);
	set_freq_max(NULL);
}

static void choose(unsigned int choice)
{
	freq_max = choice;
	set_freq_max(NULL);
}

static void the_best_cpu_decides(struct kunit *test)
{
	choose(FREQ_MAX_BOOST);
	freq_invariance_set_boost(0);		/* firmware does not say */
	set_freq_max(NULL);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1024);
	freq_invariance_set_boost(1100);	/* dense, as CPU 0 */
	freq_invariance_set_boost(1568);	/* fast, online later */
	freq_invariance_set_boost(1120);
	set_freq_max(NULL);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1568);
	freq_invariance_set_boost(1945);
}

/* The tick multiplies by it; CPPC tables have 32 bits. */
static void firmware_may_say_any_number(struct kunit *test)
{
	static const u64 ratios[] = { 1ULL << 20, 1ULL << 32, (1ULL << 32) + 1, ~0ULL };
	u32 kept = boost_ratio;

	for (size_t i = 0; i < ARRAY_SIZE(ratios); i++) {
		boost_ratio = SCHED_CAPACITY_SCALE;
		freq_invariance_set_boost(ratios[i]);
		KUNIT_EXPECT_EQ(test, boost_ratio, (1 << 20) - 1);
	}
	boost_ratio = kept;
}

static void what_each_word_is(struct kunit *test)
{
	choose(FREQ_MAX_NOMINAL);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1024);
	choose(FREQ_MAX_MIDPOINT);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1484);
	choose(FREQ_MAX_BOOST);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1945);
	choose(4);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1536);
	KUNIT_EXPECT_TRUE(test, invariant);
	scale_of[2] = 500;
	choose(FREQ_MAX_OFF);
	KUNIT_EXPECT_FALSE(test, invariant);
	KUNIT_EXPECT_EQ(test, scale_of[2], 1024);
	KUNIT_EXPECT_EQ(test, graces, 1);
	limit(0xf, 2500000, true);
	limit(0xf, 0, true);
	KUNIT_EXPECT_EQ(test, graces, 1);
	choose(4);
	KUNIT_EXPECT_TRUE(test, invariant);
}

static void no_more_than_cpufreq_can_request(struct kunit *test)
{
	choose(FREQ_MAX_BOOST);
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
	set_freq_max(NULL);
	KUNIT_EXPECT_EQ(test, arch_max_freq_ratio, 1024);
	arch_set_max_freq_ratio(false);
	set_freq_max(NULL);
}

/* Each call asks for the work item, which one call or many queue once */
static void callers_do_not_walk_over_cpus(struct kunit *test)
{
	walks = asked = 0;
	for (int cpu = 0; cpu < CPUS; cpu++)
		arch_set_cpufreq_max(&(struct cpumask){ 1 << cpu }, 2500000, true);
	KUNIT_EXPECT_EQ(test, walks, 0);
	KUNIT_EXPECT_EQ(test, asked, CPUS);
	arch_set_cpufreq_max(&(struct cpumask){ 0xf }, 2500000, true);
	KUNIT_EXPECT_EQ(test, asked, CPUS);
	arch_set_cpufreq_max(&(struct cpumask){ 0xf }, 2500000, false);
	KUNIT_EXPECT_EQ(test, asked, CPUS + 1);
	limit(0xf, 0, true);
}

/* After suspend samples begin anew, also if invariance is switched on only then. */
#define flush_delayed_work(work)	(assert(!locked), set_freq_max(NULL))
#undef pr_info
#define pr_info(...)
static unsigned int resumes;

static bool counters_move(void)
{
	return true;
}

static void register_freq_invariance_syscore(void)
{
	resumes++;
}

static bool locked;
#define static_branch_enable_cpuslocked(key)	(assert(locked), invariant = true)
#define cpus_read_lock()		(locked = true)
#define cpus_read_unlock()		(locked = false)
// FROM arch/x86/kernel/cpu/aperfmperf.c: freq_invariance_enable freq_invariance_start

static void a_resume_is_seen_whatever_freq_max_is_at_boot(struct kunit *test)
{
	static const unsigned int choices[] = { 0, 4, FREQ_MAX_OFF };

	for (size_t i = 0; i < ARRAY_SIZE(choices); i++) {
		invariant = false;
		resumes = 0;
		freq_max = choices[i];
		freq_invariance_start();
		KUNIT_EXPECT_EQ(test, resumes, 1);
		KUNIT_EXPECT_EQ(test, invariant, freq_max != FREQ_MAX_OFF);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(no_sample_sets_a_scale_of_0),
	KUNIT_CASE(a_counter_that_crawls_is_found),
	KUNIT_CASE(one_bad_sample_costs_three),
	KUNIT_CASE(a_jump_ahead_is_not_believed),
	KUNIT_CASE(a_long_time_without_a_tick_is_no_error),
	KUNIT_CASE(firmware_that_says_0_sets_nothing),
	KUNIT_CASE(the_best_cpu_decides),
	KUNIT_CASE(firmware_may_say_any_number),
	KUNIT_CASE(what_each_word_is),
	KUNIT_CASE(no_more_than_cpufreq_can_request),
	KUNIT_CASE(callers_do_not_walk_over_cpus),
	KUNIT_CASE(a_resume_is_seen_whatever_freq_max_is_at_boot),
	{}
};

static struct kunit_suite suite = { .name = "aperfmperf", .test_cases = cases };
kunit_test_suite(suite);
