// SPDX-License-Identifier: GPL-2.0
/*
 * Unused chains: without the governor, or with NO_CHAINS, each hook of the scheduler is
 * off, and what chains learned before is not used afterwards.
 */
#include <kunit/test.h>
#include <linux/types.h>

#include "kernel/sched/chain.h"

struct sched_class { int unused; };
struct task_struct {
	struct sched_chain chain;
	struct { u64 sum_exec_runtime; struct { unsigned long util_avg; } avg; } se;
	const struct sched_class *sched_class;
	unsigned long clamp;
	bool idle;
};
struct rq {
	u64 clock;
	u32 chain_util, chain_stamp;
	struct { struct { unsigned long util_avg; } avg; } cfs;
};

#define READ_ONCE(x)			(x)
#define WRITE_ONCE(x, v)		((x) = (v))
#define data_race(x)			(x)
#undef current
#define current				now_running
#undef jiffies
#define jiffies				((unsigned long)(now_rq.clock * HZ / 1000000000))
#define cap_scale(a, b)			((a) * (b) >> SCHED_CAPACITY_SHIFT)
#define arch_scale_cpu_capacity(cpu)	SCHED_CAPACITY_SCALE
#define arch_scale_freq_capacity(cpu)	freq_capacity
#define uclamp_is_used()		clamps
#define uclamp_eff_value(p, id)		((p)->clamp)
#define cpu_of(rq)			0
#define rq_clock(rq)			((rq)->clock)
#define in_hardirq()			false
#define softirq_interrupts		interrupts
#define this_cpu_read(x)		(x)
#define scx_enabled()			false
#define is_idle_task(p)			((p)->idle)
#define static_branch_unlikely(key)	(*(key))
#define sched_feat(name)		feature_##name

static const struct sched_class fair_sched_class, rt_sched_class;
static bool sched_chain_key, feature_CHAINS, clamps, interrupts;
static unsigned long freq_capacity = SCHED_CAPACITY_SCALE;
static struct task_struct a, b, *now_running;
static struct rq now_rq;

// FROM kernel/sched/chain.c: chain_clock chain_capacity chain_ask chain_update
// FROM kernel/sched/chain.c: __cpu_util_chain __sched_chain_waking __sched_chain_woken
// FROM kernel/sched/chain.c: __sched_chain_run __sched_chain_new
// FROM kernel/sched/sched.h: sched_chains cpu_util_chain sched_chain_waking
// FROM kernel/sched/sched.h: sched_chain_woken sched_chain_run sched_chain_new

static void pass(struct task_struct *p, u64 us)
{
	now_rq.clock += us * 1000;
	p->se.sum_exec_runtime += us * 1000;
}

static void hand(struct task_struct *from, struct task_struct *to)
{
	now_running = from;
	sched_chain_waking(to);
	sched_chain_woken(&now_rq, to);
	sched_chain_run(&now_rq, from);
}

/* They take turns, with 1 ms each. */
static void turns(int number)
{
	while (number--) {
		pass(&a, 1000);
		hand(&a, &b);
		pass(&b, 1000);
		hand(&b, &a);
	}
}

static void begin(void)
{
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	memset(&now_rq, 0, sizeof(now_rq));
	now_rq.clock = 5000000000;
	a.se.avg.util_avg = b.se.avg.util_avg = 500;
	a.sched_class = b.sched_class = &fair_sched_class;
	sched_chain_key = feature_CHAINS = true;
	turns(200);
}

static void off_test(struct kunit *test)
{
	for (int what = 0; what < 2; what++) {
		struct task_struct was_a, was_b, child;
		struct rq was_rq;

		begin();
		KUNIT_EXPECT_GT(test, cpu_util_chain(&now_rq), 1000);
		*(what ? &feature_CHAINS : &sched_chain_key) = false;
		was_a = a;
		was_b = b;
		was_rq = now_rq;
		KUNIT_EXPECT_EQ(test, cpu_util_chain(&now_rq), 0);
		turns(3);
		sched_chain_woken(&now_rq, &b);
		sched_chain_run(&now_rq, &a);
		child = a;
		sched_chain_new(&now_rq, &child);
		KUNIT_EXPECT_EQ(test, memcmp(&a.chain, &was_a.chain, sizeof(a.chain)), 0);
		KUNIT_EXPECT_EQ(test, memcmp(&b.chain, &was_b.chain, sizeof(b.chain)), 0);
		KUNIT_EXPECT_EQ(test, memcmp(&child.chain, &was_a.chain, sizeof(a.chain)), 0);
		KUNIT_EXPECT_EQ(test, now_rq.chain_util, was_rq.chain_util);
		KUNIT_EXPECT_EQ(test, now_rq.chain_stamp, was_rq.chain_stamp);
	}
}

/* Off for a while, in which the tasks slept, or ran */
static void on_again_test(struct kunit *test)
{
	static const u64 ms[] = {
		2000, 40 * 60000, 4398047 /* 2^32 units */, 25 * 86400000ULL, 50 * 86400000ULL
	};

	for (int i = 0; i < ARRAY_SIZE(ms); i++) {
		for (int how = 0; how < 4; how++) {
			struct task_struct child;

			begin();
			feature_CHAINS = false;
			pass(&a, ms[i] * 1000);
			child = a;
			child.se.sum_exec_runtime = 0;
			feature_CHAINS = true;
			KUNIT_EXPECT_EQ_MSG(test, cpu_util_chain(&now_rq), 0, "%d.%d", i, how);
			switch (how) {
			case 0:
				sched_chain_run(&now_rq, &a);
				break;
			case 1:
				hand(&a, &b);
				break;
			case 2:
				now_running = &a;
				sched_chain_new(&now_rq, &child);
				break;
			default:
				/* It began while chains were off. */
				sched_chain_run(&now_rq, &child);
				pass(&child, 100);
				now_running = &child;
				sched_chain_run(&now_rq, &child);
				KUNIT_EXPECT_LT(test, child.chain.util >> CHAIN_UTIL_SHIFT, 10);
			}
			KUNIT_EXPECT_EQ_MSG(test, cpu_util_chain(&now_rq), 0, "%d.%d", i, how);
			turns(200);
			KUNIT_EXPECT_GE_MSG(test, cpu_util_chain(&now_rq), 1000, "%d.%d", i, how);
		}
	}
}

/* A child asks at once for what its parent's loop needs; the parent has issued a wake-up. */
static void child_test(struct kunit *test)
{
	struct task_struct child;

	begin();
	pass(&b, 100000);
	KUNIT_EXPECT_EQ(test, cpu_util_chain(&now_rq), 0);
	now_running = &a;
	child = a;
	a.chain.issued = false;
	sched_chain_new(&now_rq, &child);
	KUNIT_EXPECT_GT(test, cpu_util_chain(&now_rq), 1000);
	KUNIT_EXPECT_TRUE(test, a.chain.issued);
	KUNIT_EXPECT_FALSE(test, child.chain.issued);
}

/* The idle task is part of no chain. */
static void idle_test(struct kunit *test)
{
	begin();
	a.idle = true;
	a.chain.loop = 2;
	pass(&a, 100000);
	sched_chain_run(&now_rq, &a);
	KUNIT_EXPECT_EQ(test, cpu_util_chain(&now_rq), 0);
}

/*
 * A wakes its worker b. While b runs, a packet for a comes, on a's CPU or on that of b, whose
 * softirq wakes a: b has not answered.
 */
static void softirq_test(struct kunit *test)
{
	begin();
	pass(&a, 2000000);
	for (int i = 0; i < 500; i++) {
		pass(&a, 20);
		hand(&a, &b);
		interrupts = true;
		now_rq.clock += 280000;
		hand(&b, &a);
		interrupts = false;
		pass(&a, 20);
		sched_chain_run(&now_rq, &a);
		now_rq.clock += 180000;
		sched_chain_run(&now_rq, &b);
		now_rq.clock += 500000;
		sched_chain_woken(&now_rq, &a);
	}
	KUNIT_EXPECT_EQ(test, cpu_util_chain(&now_rq), 0);
}

/* Tasks that became real-time ones: what they were before is out of date. */
static void class_test(struct kunit *test)
{
	begin();
	a.sched_class = b.sched_class = &rt_sched_class;
	turns(200);
	KUNIT_EXPECT_EQ(test, cpu_util_chain(&now_rq), 0);
	a.sched_class = &fair_sched_class;
	turns(2);
	KUNIT_EXPECT_GT(test, cpu_util_chain(&now_rq), 1000);
}

/* Many share the work of the CPU, or one does that has just come to it. */
static void own_test(struct kunit *test)
{
	static const struct {
		unsigned long task, cpu, clamp, least, most;
	} cases[] = {
		{ 20, 60, 0, 160, 160 }, { 20, 0, 0, 160, 160 }, { 20, 256, 0, 512, 512 },
		{ 20, 800, 0, 640, 640 }, { 40, 800, 0, 1000, 1024 }, { 0, 0, 0, 0, 0 },
		{ 0, 800, 0, 0, 0 }, { 500, 0, 300, 300, 300 }, { 20, 0, 300, 160, 160 },
	};

	for (int i = 0; i < ARRAY_SIZE(cases); i++) {
		begin();
		pass(&a, 100000);
		KUNIT_EXPECT_EQ(test, cpu_util_chain(&now_rq), 0);
		a.se.avg.util_avg = b.se.avg.util_avg = cases[i].task;
		now_rq.cfs.avg.util_avg = cases[i].cpu;
		clamps = cases[i].clamp;
		a.clamp = b.clamp = cases[i].clamp;
		turns(20);
		KUNIT_EXPECT_GE_MSG(test, cpu_util_chain(&now_rq), cases[i].least, "row %d", i);
		KUNIT_EXPECT_LE_MSG(test, cpu_util_chain(&now_rq), cases[i].most, "row %d", i);
	}
	clamps = false;
}

/* Boost frequencies exceed the scale on some machines: nothing is lost. */
static void boost_test(struct kunit *test)
{
	freq_capacity = 1100;
	begin();
	KUNIT_EXPECT_EQ(test, a.chain.lag, 0);
	freq_capacity = SCHED_CAPACITY_SCALE / 2;
	begin();
	KUNIT_EXPECT_EQ(test, a.chain.lag, CHAIN_LAG);
	freq_capacity = SCHED_CAPACITY_SCALE;
}

static struct kunit_case chain_hooks_cases[] = {
	KUNIT_CASE(own_test),
	KUNIT_CASE(off_test),
	KUNIT_CASE(on_again_test),
	KUNIT_CASE(child_test),
	KUNIT_CASE(idle_test),
	KUNIT_CASE(softirq_test),
	KUNIT_CASE(class_test),
	KUNIT_CASE(boost_test),
	{}
};

static struct kunit_suite chain_hooks_suite = {
	.name = "chain_hooks", .test_cases = chain_hooks_cases
};
kunit_test_suite(chain_hooks_suite);
