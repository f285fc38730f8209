// SPDX-License-Identifier: GPL-2.0
/*
 * Which CPU is woken, by the idle states of all: a row is a machine of twelve CPUs at the
 * time of a wake-up. Time stamps of CPUs that idle differ, and the higher one is the later.
 */
#define MAX_CPUS	64
#include <kunit/test.h>

struct cpumask { u64 bits; };
struct sched_domain { struct cpumask span; int flags; };
struct task_struct { struct cpumask *cpus_ptr; bool sched_idle; };
struct cpuidle_state { unsigned int exit_latency; };
struct rq { struct cpuidle_state *idle_state; u64 idle_stamp, clock_idle; };

#define CONFIG_SCHED_SMT
#define CPUS		MAX_CPUS
#define DEEP		290	/* C6 */
#define LESS		30
#define LIGHT		2	/* C1E */

int shim_cpu;
static struct rq rqs[CPUS];
static struct cpuidle_state states[CPUS];
static struct cpumask smt[CPUS], select_mask;
static struct sched_domain llc, *sd_llc[CPUS];
static bool newer, unequal, idle_waker, no_tick[CPUS];
static unsigned long capacity[CPUS];
static bool idle[CPUS];
/* What has been read of a CPU, and after how many reads it begins to work */
static unsigned int looks[CPUS], works_after[CPUS];

#define round_down(x, y)		((x) & ~((y) - 1))
#define cpu_rq(c)			(&rqs[c])
#define this_rq()			(&rqs[shim_cpu])
#define u64_u32_load(x)			(x)
#define current				NULL
#define is_idle_task(p)			idle_waker
#define rcu_dereference(p)		(p)
#define rcu_dereference_all(p)		(newer = true, p)	/* 7.3 has it */
#define sched_domain_span(sd)		(&(sd)->span)
#define this_cpu_cpumask_var_ptr(m)	(&select_mask)
#define cpumask_and(to, a, b)		((to)->bits = (a)->bits & (b)->bits)
#define cpumask_andnot(to, a, b)	((to)->bits = (a)->bits & ~(b)->bits)
#define for_each_cpu(c, m)		for ((c) = 0; (c) < CPUS; (c)++) if ((m)->bits >> (c) & 1)
#define for_each_cpu_wrap(c, m, start)						\
	for (int _n = 0; (c) = ((start) + _n) % CPUS, _n < CPUS; _n++)		\
		if ((m)->bits >> (c) & 1)
#define cpu_smt_mask(c)			(&smt[c])
#define sched_asym_cpucap_active()	unequal
#define get_actual_cpu_capacity(c)	capacity[c]
#define arch_scale_cpu_capacity(c)	1024UL	/* without heat and limits of power */
#define SD_ASYM_PACKING			1
#define HK_TYPE_TICK			0
#define housekeeping_cpu(c, type)	(!no_tick[c])
/* The lower ones have more turbo. */
#define sched_asym_prefer(a, b)		((a) < (b))

static void look(int cpu)
{
	if (++looks[cpu] == works_after[cpu]) {
		idle[cpu] = false;
		rqs[cpu].idle_state = NULL;
	}
}

static struct cpuidle_state *idle_get_state(struct rq *rq)
{
	struct cpuidle_state *state = rq->idle_state;

	look(rq - rqs);
	return state;
}

static bool idle_cpu(int cpu)
{
	return idle[cpu];
}

static bool available_idle_cpu(int cpu)
{
	bool is = idle[cpu];

	look(cpu);
	return is;
}

static int only_idle_tasks;

static bool sched_idle_rq(struct rq *rq)
{
	return only_idle_tasks && rq == &rqs[only_idle_tasks];
}

/* Of 7.3: a SCHED_IDLE task has to wait behind others of them. */
static bool choose_idle_cpu(int cpu, struct task_struct *p)
{
	return available_idle_cpu(cpu) || (sched_idle_rq(cpu_rq(cpu)) && !p->sched_idle);
}

// FROM kernel/sched/fair.c: SLOW_EXIT_US SHALLOW_SCAN idle_exit_us core_exit_us is_core_idle
// FROM kernel/sched/fair.c: idled_later idled_meanwhile capacity_greater larger may_replace
// FROM kernel/sched/fair.c: select_shallow_cpu

/* A CPU is busy without @exit_us, and idles in no state with 0. @stamp: when it went idle */
static void rest(int cpu, int exit_us, u64 stamp)
{
	idle[cpu] = exit_us >= 0;
	states[cpu].exit_latency = exit_us;
	rqs[cpu].idle_state = exit_us > 0 ? &states[cpu] : NULL;
	rqs[cpu].idle_stamp = stamp;
	rqs[cpu].clock_idle = ~0ull;
}

#define BUSY	(-1)

static const struct row {
	const char *what;
	int chosen, expected, waker;
	u64 allowed, domain;
	int threads;		/* of a core, with numbers that follow each other */
	int exit_us[12];
	u64 stamp[12];
	int little[3];		/* have less capacity; 1 and 4 have a little less than 1024 */
	int no_tick, works, reads;	/* works: a CPU that begins to, after so many reads of it */
	int wakes;		/* it has been sent another task */
	u64 began;		/* when the waker did; 0: after all had gone idle */
	bool interrupt;		/* wakes the task, while the waker's CPU idles */
	bool sched_idle;	/* of SCHED_IDLE */
	bool both;		/* and so is the one that wakes, for which 6.12 does not ask */
	bool turbo;		/* CPUs have different turbo clocks */
} rows[] = {
	{ "the chosen one is awake", 2, 2, 0, ~0, ~0, 1,
	  { BUSY, 0, 0, LIGHT }, { 0, 9, 1, 9 } },
	{ "the chosen one rests lightly", 3, 3, 0, ~0, ~0, 1,
	  { BUSY, LIGHT, 0, LIGHT }, { 0, 1, 9, 9 } },
	{ "one of the others rests lightly", 1, 3, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, LIGHT, DEEP }, { 0, 5, 9, 1, 8 } },
	{ "one of the others is on its way to rest", 1, 3, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, 0, DEEP }, { 0, 5, 9, 1, 8 } },
	{ "the first of two that wake soon", 1, 2, 0, ~0, ~0, 1,
	  { BUSY, DEEP, LIGHT, 0, DEEP }, { 0, 5, 1, 9, 8 } },
	{ "the lightest of two", 1, 3, 0, ~0, ~0, 1,
	  { BUSY, DEEP, LESS, LIGHT, DEEP }, { 0, 5, 9, 1, 8 } },
	{ "less deep, if none rests lightly", 1, 2, 0, ~0, ~0, 1,
	  { BUSY, DEEP, LESS, DEEP, DEEP }, { 0, 5, 1, 7, 8 } },
	{ "all rest deep: the last one to", 1, 3, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, DEEP, DEEP }, { 0, 5, 6, 9, 8 } },
	{ "all rest deep: it is the chosen one", 1, 1, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, DEEP, DEEP }, { 0, 9, 6, 5, 8 } },
	{ "busy ones are none", 1, 2, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, BUSY, BUSY }, { 0, 5, 6, 9, 8 } },
	{ "the others are busy", 1, 1, 0, ~0, ~0, 1,
	  { BUSY, DEEP, BUSY, BUSY, BUSY }, { 0, 5, 6, 9, 8 } },
	{ "affinity", 1, 2, 0, 0x006, ~0, 1,
	  { BUSY, DEEP, DEEP, LIGHT, LIGHT }, { 0, 5, 6, 9, 8 } },
	{ "another LLC, cpuset or isolated CPUs", 1, 2, 0, ~0, 0x007, 1,
	  { BUSY, DEEP, DEEP, LIGHT, LIGHT }, { 0, 5, 6, 9, 8 } },
	{ "the chosen one is isolated", 4, 4, 0, ~0, 0x00f, 1,
	  { BUSY, LIGHT, LIGHT, LIGHT, DEEP }, { 0, 5, 6, 9, 8 } },
	{ "the waker is in another LLC", 1, 2, 11, ~0, 0x007, 1,
	  { BUSY, DEEP, LIGHT }, { 0, 5, 6 } },
	{ "none with less capacity", 1, 4, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, LIGHT, LIGHT }, { 0, 5, 6, 9, 8 }, { 2, 3 } },
	{ "one with more capacity", 2, 1, 0, ~0, ~0, 1,
	  { BUSY, LIGHT, DEEP, LIGHT, LIGHT }, { 0, 5, 6, 9, 8 }, { 2, 3 } },
	{ "a little less capacity", 3, 4, 0, ~0, ~0, 1,
	  { BUSY, BUSY, LIGHT, DEEP, LIGHT }, { 0, 5, 6, 9, 8 }, { 2 } },
	{ "a CPU without tick is left alone", 1, 4, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, LIGHT, LIGHT }, { 0, 5, 6, 9, 8 }, .no_tick = 3 },
	{ "a CPU without tick keeps its tasks", 1, 1, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, LIGHT, LIGHT }, { 0, 5, 6, 9, 8 }, .no_tick = 1 },
	{ "turbo: none with less", 2, 1, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, LIGHT, DEEP }, { 0, 9, 6, 5, 8 }, .turbo = true },
	{ "turbo: none with less than the chosen one has", 4, 2, 0, ~0, ~0, 1,
	  { BUSY, LESS, LESS - 1, DEEP, DEEP }, { 0, 5, 6, 9, 8 }, .turbo = true },
	{ "begins to work after its idle state was read", 1, 3, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, DEEP, DEEP }, { 0, 5, 9, 8, 7 }, .works = 2, .reads = 2 },
	{ "begins to work after it was found idle", 1, 1, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, DEEP, DEEP }, { 0, 5, 9, 8, 7 }, .works = 2, .reads = 3 },
	{ "the chosen one wakes for another task", 1, 4, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, DEEP, DEEP }, { 0, 9, 6, 5, 8 }, .wakes = 1 },
	{ "the chosen one wakes for another task, and so do all", 1, 1, 0, ~0, ~0, 1,
	  { BUSY, DEEP, BUSY, BUSY, BUSY }, { 0, 9, 6, 5, 8 }, .wakes = 1 },
	{ "the chosen one wakes for another task, and the others wake later", 1, 1, 0, ~0, ~0, 1,
	  { BUSY, LESS, DEEP, DEEP, DEEP }, { 0, 5, 6, 9, 8 }, .wakes = 1 },
	{ "the chosen one wakes for another task, and has the most turbo", 1, 4, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, DEEP, DEEP }, { 0, 9, 6, 5, 8 }, .wakes = 1, .turbo = true },
	{ "the chosen one wakes for a SCHED_IDLE task", 1, 1, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, DEEP, DEEP }, { 0, 9, 6, 5, 8 }, .wakes = 1, .sched_idle = true },
	{ "the chosen one wakes for a SCHED_IDLE task, and this is another", 1, 4, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, DEEP, DEEP }, { 0, 9, 6, 5, 8 }, .wakes = 1, .sched_idle = true,
	  .both = true },
	{ "the chosen one's core wakes for another task", 2, 6, 0, ~0, ~0, 2,
	  { BUSY, DEEP, DEEP, DEEP, DEEP, DEEP, DEEP, DEEP }, { 0, 1, 9, 8, 3, 2, 7, 5 },
	  .wakes = 3 },
	{ "the chosen one's core wakes for another task, and the others wake later", 2, 2, 0,
	  ~0, ~0, 2, { BUSY, DEEP, LESS, LESS, DEEP, DEEP, DEEP, DEEP },
	  { 0, 1, 2, 3, 9, 9, 7, 5 }, .wakes = 3 },
	{ "the chosen one worked while the waker did", 1, 1, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, DEEP, DEEP }, { 0, 5, 6, 9, 8 }, .began = 4 },
	{ "the chosen one worked until the waker began", 1, 3, 0, ~0, ~0, 1,
	  { BUSY, DEEP, DEEP, DEEP, DEEP }, { 0, 5, 6, 9, 8 }, .began = 5 },
	{ "the chosen one worked while the waker did, and another one wakes sooner", 1, 2, 0,
	  ~0, ~0, 1, { BUSY, DEEP, LESS, DEEP, DEEP }, { 0, 5, 1, 9, 8 }, .began = 4 },
	{ "the chosen one idled later than the CPU whose interrupt wakes the task", 1, 3, 0,
	  0x1e, ~0, 1, { LIGHT, DEEP, DEEP, DEEP, DEEP }, { 0, 5, 6, 9, 8 }, .began = 4,
	  .interrupt = true },
	{ "the chosen one worked while the waker did, and wakes for another task", 1, 4, 0,
	  ~0, ~0, 1, { BUSY, DEEP, DEEP, DEEP, DEEP }, { 0, 9, 6, 5, 8 }, .wakes = 1, .began = 4 },
	{ "no half core, if it wakes at once", 2, 4, 1, ~0, ~0, 2,
	  { LIGHT, BUSY, DEEP, DEEP, DEEP, DEEP, BUSY, LIGHT }, { 9, 0, 1, 2, 3, 3, 0, 9 } },
	{ "no half core, if no other one is left", 2, 2, 1, ~0, ~0, 2,
	  { LIGHT, BUSY, DEEP, DEEP, BUSY, LIGHT }, { 9, 0, 2, 1, 0, 9 } },
	{ "the chosen one's core is awake", 2, 2, 0, ~0, ~0, 2,
	  { BUSY, LIGHT, DEEP, BUSY, LIGHT, LIGHT }, { 0, 9, 1, 0, 5, 5 } },
	{ "the chosen one's core rests lightly", 2, 2, 0, ~0, ~0, 2,
	  { BUSY, LIGHT, DEEP, LIGHT, 0, LIGHT }, { 0, 9, 1, 1, 5, 5 } },
	{ "a core rests as its lightest thread", 2, 6, 0, ~0, ~0, 2,
	  { BUSY, DEEP, DEEP, DEEP, DEEP, DEEP, DEEP, LIGHT }, { 0, 9, 1, 2, 8, 7, 3, 4 } },
};

static const struct row *row;

static int choose(void)
{
	struct cpumask allowed = { row->allowed };
	struct task_struct p = { &allowed, row->both };

	shim_cpu = row->waker;
	memset(looks, 0, sizeof(looks));
	return select_shallow_cpu(&p, row->chosen);
}

static void machine(unsigned int threads, u64 domain)
{
	llc.span.bits = domain;
	llc.flags = 0;
	unequal = false;
	memset(no_tick, 0, sizeof(no_tick));
	memset(works_after, 0, sizeof(works_after));
	for (int i = 0; i < CPUS; i++) {
		rest(i, BUSY, 0);
		capacity[i] = i % 3 == 1 ? 1000 : 1024;
		smt[i].bits = ((1ull << threads) - 1) << i / threads * threads;
		sd_llc[i] = domain >> i & 1 ? &llc : NULL;
	}
}

static void rows_test(struct kunit *test)
{
	for (row = rows; row < rows + ARRAY_SIZE(rows); row++) {
		machine(row->threads, row->domain);
		for (int i = 0; i < 12; i++) {
			rest(i, row->exit_us[i] || row->stamp[i] ? row->exit_us[i] : BUSY,
			     row->stamp[i]);
		}
		for (int i = 0; i < 3 && row->little[i]; i++)
			capacity[row->little[i]] = 400;
		unequal = row->little[0];
		no_tick[row->no_tick] = row->no_tick;
		works_after[row->works] = row->reads;
		idle[row->wakes] &= !row->wakes;
		only_idle_tasks = row->sched_idle ? row->wakes : 0;
		llc.flags = row->turbo ? SD_ASYM_PACKING : 0;
		rqs[row->waker].clock_idle = row->began ?: ~0ull;
		idle_waker = row->interrupt;
		int got = choose(), expected = row->both && !newer ? row->chosen : row->expected;

		KUNIT_EXPECT_EQ_MSG(test, got, expected, "%s", row->what);
	}
}

/* How many cores were looked at, and how often at one but the chosen one, at most? */
static unsigned int looked_at(unsigned int *most)
{
	unsigned int cores = 0;
	u64 seen = 0;

	*most = 0;
	for (int i = 0; i < CPUS; i++) {
		if (!looks[i])
			continue;
		if (i != row->chosen)
			*most = max(*most, looks[i]);
		cores += !(seen >> i & 1);
		seen |= smt[i].bits;
	}
	return cores;
}

/* Wakers of one part of a large LLC read the same cores, and no more than so many. */
static void large_test(struct kunit *test)
{
	struct row large = { .allowed = ~0ull };
	unsigned int most;

	row = &large;
	for (int waker = 0; waker < CPUS; waker++) {
		int first = waker / SHALLOW_SCAN * SHALLOW_SCAN, last = first + SHALLOW_SCAN - 1;

		machine(1, ~0ull);
		for (int i = 0; i < CPUS; i++)
			rest(i, DEEP, i + 1);
		large.waker = waker;
		large.chosen = (last + 1) % CPUS;
		rest(large.chosen, DEEP, 0);
		KUNIT_EXPECT_EQ(test, choose(), last);
		KUNIT_EXPECT_EQ(test, looked_at(&most), SHALLOW_SCAN + 1);
		/* All of them and the chosen one are taken, which its neighbour is not. */
		for (int i = first; i <= last; i++)
			idle[i] = false;
		idle[large.chosen] = false;
		KUNIT_EXPECT_EQ(test, choose(), large.chosen + SHALLOW_SCAN - 1);
	}
}

/* Threads of a core do not count twice, whether their numbers are neighbours or far apart. */
static void threads_test(struct kunit *test)
{
	struct row large = { .allowed = ~0ull, .chosen = CPUS - 1 };
	unsigned int most;

	row = &large;
	for (int apart = 0; apart < 2; apart++) {
		int last = apart ? SHALLOW_SCAN - 1 : 2 * SHALLOW_SCAN - 2;

		machine(2, ~0ull);
		for (int i = 0; i < CPUS; i++) {
			rest(i, DEEP, apart ? i % (CPUS / 2) + 1 : i / 2 + 1);
			if (apart)
				smt[i].bits = 1ull << i | 1ull << (i + CPUS / 2) % CPUS;
		}
		rest(large.chosen, DEEP, 0);
		KUNIT_EXPECT_EQ(test, choose(), last);
		KUNIT_EXPECT_EQ(test, looked_at(&most), SHALLOW_SCAN + 1);
		/* Those that idled before the chosen one cost their idle states and no more. */
		rest(large.chosen, DEEP, CPUS);
		KUNIT_EXPECT_EQ(test, choose(), large.chosen);
		looked_at(&most);
		KUNIT_EXPECT_EQ(test, most, 2);
	}
}

static struct kunit_case shallow_cases[] = {
	KUNIT_CASE(rows_test),
	KUNIT_CASE(large_test),
	KUNIT_CASE(threads_test),
	{}
};

static struct kunit_suite shallow_suite = { .name = "shallow", .test_cases = shallow_cases };
kunit_test_suite(shallow_suite);
