// SPDX-License-Identifier: GPL-2.0
/*
 * What a CPU asks for whose group takes time from a quota: nothing before the quota is used
 * up, and all that its clamp allows from then on, until it has lasted for 30 s.
 */
#define HZ		250
#include <kunit/test.h>

typedef s64 ktime_t;
#define RUNTIME_INF	((u64)~0ULL)
#define MSEC		1000000ll
#define lockdep_assert_held(lock)
#define start_cfs_bandwidth(b)	((b)->period_active = 1)

struct cfs_bandwidth { int lock; u64 quota, runtime; unsigned long dry; u8 idle, period_active; };
struct rq { u32 pairs; };
enum { UCLAMP_MIN, UCLAMP_MAX };
struct task_group { struct { unsigned int value : 11; } uclamp[2]; };
struct cfs_rq { struct rq *rq; struct task_group *tg; s64 runtime_remaining; };
#define rq_of(cfs_rq)		((cfs_rq)->rq)
#define CONFIG_UCLAMP_TASK_GROUP
#undef IS_ENABLED
#define IS_ENABLED(option)	true
#define static_branch_unlikely(key) (*(key))

static bool sched_pairs_key;
static unsigned long jiffies;

// FROM kernel/sched/pairs.h: pair_util pair_ask
// FROM kernel/sched/fair.c: cfs_rq_ask __assign_cfs_rq_runtime

static struct cfs_bandwidth group;
static struct rq rqs[2];
static struct cfs_rq of[2];
static struct task_group tg;

static u32 asked(int cpu)
{
	return pair_util(rqs[cpu].pairs, jiffies);
}

/* The group has run for so long on a CPU, and wants more: does it get it? */
static bool runs(int cpu, s64 ns)
{
	of[cpu].runtime_remaining -= ns;
	return of[cpu].runtime_remaining > 0 ||
	       __assign_cfs_rq_runtime(&group, &of[cpu], 5 * MSEC);
}

static void begins(unsigned long now, u64 quota)
{
	jiffies = now;
	sched_pairs_key = true;
	tg.uclamp[UCLAMP_MAX].value = SCHED_CAPACITY_SCALE;
	group = (struct cfs_bandwidth){ .quota = quota, .runtime = quota };
	for (int cpu = 0; cpu < 2; cpu++) {
		rqs[cpu].pairs = 0;
		of[cpu] = (struct cfs_rq){ .rq = &rqs[cpu], .tg = &tg };
	}
}

static void limit_test(struct kunit *test)
{
	/* jiffies begin 5 minutes before they wrap as 32 bits. */
	static const unsigned long begin[] = { -300 * HZ, (u32)(-300 * HZ), 5, 100000 };

	for (int i = 0; i < 4; i++) {
		begins(begin[i], 20 * MSEC);
		KUNIT_EXPECT_TRUE(test, runs(0, 4 * MSEC));
		KUNIT_EXPECT_TRUE(test, runs(0, 6 * MSEC));
		KUNIT_EXPECT_EQ(test, asked(0), 0);
		KUNIT_EXPECT_TRUE(test, runs(1, 0));
		/* It is used up: throttled, and the next period begins. */
		KUNIT_EXPECT_FALSE(test, runs(0, 60 * MSEC));
		KUNIT_EXPECT_EQ(test, asked(0), 0);
		jiffies += HZ / 20;
		group.runtime = 200 * MSEC;
		KUNIT_EXPECT_TRUE(test, runs(0, 0));
		KUNIT_EXPECT_EQ(test, asked(0), SCHED_CAPACITY_SCALE);
		KUNIT_EXPECT_EQ(test, asked(1), 0);
		/* On each CPU of the group, as long as it runs there */
		KUNIT_EXPECT_TRUE(test, runs(1, 5 * MSEC));
		KUNIT_EXPECT_EQ(test, asked(1), SCHED_CAPACITY_SCALE);
		jiffies += HZ;
		KUNIT_EXPECT_EQ(test, asked(0), 0);
		jiffies += 28 * HZ;
		KUNIT_EXPECT_TRUE(test, runs(0, 30 * MSEC));
		KUNIT_EXPECT_EQ(test, asked(0), SCHED_CAPACITY_SCALE);
		jiffies += 2 * HZ;
		KUNIT_EXPECT_TRUE(test, runs(0, 6 * MSEC));
		KUNIT_EXPECT_EQ(test, asked(0), 0);
	}
}

/* It gets what its clamp allows, and does not take back what another one asked for. */
static void clamp_test(struct kunit *test)
{
	begins(1000, 20 * MSEC);
	tg.uclamp[UCLAMP_MAX].value = 300;
	KUNIT_EXPECT_FALSE(test, runs(0, 60 * MSEC));
	group.runtime = 200 * MSEC;
	KUNIT_EXPECT_TRUE(test, runs(0, 0));
	KUNIT_EXPECT_EQ(test, asked(0), 300);
	pair_ask(&rqs[0].pairs, 500, jiffies);
	KUNIT_EXPECT_TRUE(test, runs(0, 6 * MSEC));
	KUNIT_EXPECT_EQ(test, asked(0), 500);
}

/* With no policy that has schedutil nobody asks. */
static void other_governor_test(struct kunit *test)
{
	begins(1000, 20 * MSEC);
	sched_pairs_key = false;
	KUNIT_EXPECT_FALSE(test, runs(0, 60 * MSEC));
	group.runtime = 200 * MSEC;
	KUNIT_EXPECT_TRUE(test, runs(0, 0));
	KUNIT_EXPECT_EQ(test, asked(0), 0);
}

/* A group without a limit gets what it asks for. */
static void no_limit_test(struct kunit *test)
{
	begins(1000, RUNTIME_INF);
	KUNIT_EXPECT_TRUE(test, runs(0, 30 * MSEC));
	KUNIT_EXPECT_TRUE(test, runs(0, 30 * MSEC));
	KUNIT_EXPECT_EQ(test, asked(0), 0);
}

static struct kunit_case limit_cases[] = {
	KUNIT_CASE(limit_test),
	KUNIT_CASE(clamp_test),
	KUNIT_CASE(other_governor_test),
	KUNIT_CASE(no_limit_test),
	{}
};

static struct kunit_suite limit_suite = { .name = "limit", .test_cases = limit_cases };
kunit_test_suite(limit_suite);
