// SPDX-License-Identifier: GPL-2.0
/*
 * What a CPU asks for whose group takes time from a quota: nothing before the quota is used
 * up, and the highest frequency from then on, until it has lasted for 30 s.
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
struct cfs_rq { struct rq *rq; s64 runtime_remaining; };
#define rq_of(cfs_rq)		((cfs_rq)->rq)

static unsigned long jiffies;

// FROM kernel/sched/pairs.h: pair_request pair_util
// FROM kernel/sched/fair.c: __assign_cfs_rq_runtime

static struct cfs_bandwidth group;
static struct rq rqs[2];
static struct cfs_rq of[2];

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
	group = (struct cfs_bandwidth){ .quota = quota, .runtime = quota };
	for (int cpu = 0; cpu < 2; cpu++) {
		rqs[cpu].pairs = 0;
		of[cpu] = (struct cfs_rq){ .rq = &rqs[cpu] };
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
	KUNIT_CASE(no_limit_test),
	{}
};

static struct kunit_suite limit_suite = { .name = "limit", .test_cases = limit_cases };
kunit_test_suite(limit_suite);
