// SPDX-License-Identifier: GPL-2.0
/* Who asks for a pair, for how much and for how long; and that hooks that are off do nothing. */
#include <kunit/test.h>
#include <linux/types.h>

#include "kernel/sched/pairs.h"

typedef int pid_t;
struct sched_class { int unused; };
struct sched_entity {
	u64 exec_start, sum_exec_runtime, prev_sum_exec_runtime;
	struct { unsigned long util_avg; } avg;
};
struct rq {
	int cpu;
	u64 clock, clock_task;
	u32 pairs;
	struct { struct { unsigned long util_avg; } avg; } cfs;
};
struct task_struct {
	pid_t pid, pair_woke;
	struct sched_entity se;
	const struct sched_class *sched_class;
	struct rq *rq;
	unsigned long clamp;
};

#define READ_ONCE(x)			(x)
#define WRITE_ONCE(x, v)		((x) = (v))
#define data_race(x)			(x)
#undef current
#define current				now_running
#undef jiffies
#define jiffies				((unsigned long)(now * HZ / 1000000000))
#define local_clock()			now
#define task_rq(p)			((p)->rq)
#define cap_scale(a, b)			((a) * (b) >> SCHED_CAPACITY_SHIFT)
#define arch_scale_cpu_capacity(cpu)	SCHED_CAPACITY_SCALE
#define arch_scale_freq_capacity(cpu)	freq_capacity
#define uclamp_eff_value(p, id)		((p)->clamp ?: SCHED_CAPACITY_SCALE)
#define cpu_of(rq)			((rq)->cpu)
#define this_rq()			(current->rq)
#define IS_ENABLED(option)		1
#define in_hardirq()			hardirq
#define softirq_interrupts		interrupts
#define this_cpu_read(x)		(x)
#define is_idle_task(p)			(!(p)->pid)
#define static_branch_unlikely(key)	(*(key))
#define sched_feat(name)		feature_##name

static const struct sched_class fair_sched_class, rt_sched_class;
static bool sched_pairs_key, feature_PAIRS, interrupts, hardirq;
static unsigned long freq_capacity = SCHED_CAPACITY_SCALE;
static struct task_struct a, b, *now_running;
static struct rq rqs[2];
static u64 now;

// FROM kernel/sched/pairs.c: pair_since __sched_pair_wake
// FROM kernel/sched/sched.h: sched_pair_wake

static void pass(u64 us)
{
	now += us * 1000;
}

/* @p begins or ends to run; clocks of idle CPUs stand still. */
static void account(struct task_struct *p)
{
	u64 passed = now - p->rq->clock;

	p->rq->clock += passed;
	p->rq->clock_task += passed;
	p->se.exec_start = p->rq->clock_task;
}

static void wake(struct task_struct *from, struct task_struct *to)
{
	now_running = from;
	sched_pair_wake(to->rq, to);
}

/* @p runs for so many us, wakes @w, and after another so many us sleeps. */
static void turn(struct task_struct *p, struct task_struct *w, u64 us, u64 more)
{
	account(p);
	pass(us);
	wake(p, w);
	pass(more);
	account(p);
}

static void turns(int number)
{
	while (number--) {
		turn(&a, &b, 1000, 0);
		turn(&b, &a, 1000, 0);
	}
}

/* Two tasks of 300 each on two CPUs, whose clocks of tasks differ by what interrupts took */
static void begin(void)
{
	memset(rqs, 0, sizeof(rqs));
	now = 5000000000;
	rqs[0].clock = rqs[1].clock = now;
	rqs[0].clock_task = 4000000000;
	rqs[1].clock_task = 1000000000;
	a = (struct task_struct){ .pid = 1, .rq = &rqs[0], .sched_class = &fair_sched_class };
	b = (struct task_struct){ .pid = 2, .rq = &rqs[1], .sched_class = &fair_sched_class };
	a.se.exec_start = a.rq->clock_task;
	b.se.exec_start = b.rq->clock_task;
	a.se.avg.util_avg = b.se.avg.util_avg = 300;
	freq_capacity = SCHED_CAPACITY_SCALE;
	sched_pairs_key = feature_PAIRS = true;
	interrupts = hardirq = false;
}

static u32 asks(struct rq *rq)
{
	return pair_util(rq->pairs, jiffies);
}

static u32 asked(void)
{
	return max(asks(&rqs[0]), asks(&rqs[1]));
}

/* Who answers makes the CPU ask for both, for 34 ms; a wake-up alone does not. */
static void answer_test(struct kunit *test)
{
	begin();
	turn(&a, &b, 1000, 0);
	KUNIT_EXPECT_EQ(test, asked(), 0);
	turn(&b, &a, 1000, 0);
	KUNIT_EXPECT_EQ(test, asks(&rqs[0]), 600);
	KUNIT_EXPECT_EQ(test, asks(&rqs[1]), 0);
	turn(&b, &a, 1000, 0);		/* a has woken nobody since: it is still an answer */
	KUNIT_EXPECT_EQ(test, asked(), 600);
	pass(33000);
	KUNIT_EXPECT_EQ(test, asked(), 600);
	pass(10000);
	KUNIT_EXPECT_EQ(test, asked(), 0);
	freq_capacity = 600;
	turns(2);
	KUNIT_EXPECT_EQ(test, asked(), SCHED_CAPACITY_SCALE);
}

/* A lower request does not end a higher one. */
static void most_test(struct kunit *test)
{
	begin();
	turns(2);
	a.se.avg.util_avg = b.se.avg.util_avg = 200;
	turns(2);
	KUNIT_EXPECT_EQ(test, asked(), 600);
	pass(40000);
	turns(2);
	KUNIT_EXPECT_EQ(test, asked(), 400);
}

/* While a third task is woken by a, b's wake-up of a is no answer. */
static void third_test(struct kunit *test)
{
	struct task_struct c;

	begin();
	c = b;
	c.pid = 3;
	for (int i = 0; i < 20; i++) {
		turn(&a, &b, 10, 0);
		wake(&a, &c);
		turn(&b, &a, 1000, 0);
	}
	KUNIT_EXPECT_EQ(test, asks(&rqs[0]), 0);
}

/* Both work at the same time: the sleep is short, and the work of the waker long. */
static void overlap_test(struct kunit *test)
{
	begin();
	for (int i = 0; i < 20; i++) {
		account(&b);
		turn(&a, &b, 10, 900);
		pass(90);
		wake(&b, &a);
	}
	KUNIT_EXPECT_EQ(test, asks(&rqs[0]), 0);
	/* Ticks account what the waker runs. */
	for (int i = 0; i < 20; i++) {
		turn(&a, &b, 10, 900);
		account(&b);
		b.se.sum_exec_runtime += 910000;
		pass(90);
		wake(&b, &a);
		b.se.prev_sum_exec_runtime = b.se.sum_exec_runtime;
	}
	KUNIT_EXPECT_EQ(test, asks(&rqs[0]), 0);
	turns(2);
	KUNIT_EXPECT_EQ(test, asks(&rqs[0]), 600);
}

static void off_test(struct kunit *test)
{
	for (int what = 0; what < 2; what++) {
		begin();
		turns(2);
		KUNIT_EXPECT_EQ(test, asked(), 600);
		*(what ? &feature_PAIRS : &sched_pairs_key) = false;
		pass(100000);
		turns(3);
		KUNIT_EXPECT_EQ(test, asked(), 0);
		a.pair_woke = 0;
		wake(&a, &b);
		KUNIT_EXPECT_EQ(test, a.pair_woke, 0);
		*(what ? &feature_PAIRS : &sched_pairs_key) = true;
		KUNIT_EXPECT_EQ(test, asked(), 0);
	}
}

/* A child asks at once, for its parent and itself, and its end is an answer. */
static void child_test(struct kunit *test)
{
	begin();
	b.se.exec_start = 0;
	turn(&a, &b, 1000, 0);
	KUNIT_EXPECT_EQ(test, asks(&rqs[1]), 600);
	KUNIT_EXPECT_EQ(test, asks(&rqs[0]), 0);
	turn(&b, &a, 1000, 0);
	KUNIT_EXPECT_EQ(test, asks(&rqs[0]), 600);
}

/* Interrupts and the idle task answer nobody, and do not come between. */
static void interrupt_test(struct kunit *test)
{
	for (int what = 0; what < 3; what++) {
		begin();
		for (int i = 0; i < 20; i++) {
			turn(&a, &b, 20, 0);
			interrupts = what == 0;
			hardirq = what == 1;
			if (what == 2)
				b.pid = a.pair_woke = 0;
			turn(&b, &a, 300, 0);
			interrupts = hardirq = false;
			b.pid = 2;
			KUNIT_EXPECT_EQ(test, b.pair_woke, 0);
		}
		KUNIT_EXPECT_EQ_MSG(test, asked(), 0, "%d", what);
		turns(2);
		KUNIT_EXPECT_EQ_MSG(test, asked(), 600, "%d", what);
	}
}

/* A task that became a real-time one: what it was before is out of date. */
static void class_test(struct kunit *test)
{
	begin();
	a.sched_class = b.sched_class = &rt_sched_class;
	turns(20);
	KUNIT_EXPECT_EQ(test, asked(), 0);
}

/* Many share the work of the CPU, or one does that has just come to it. */
static void own_test(struct kunit *test)
{
	static const struct {
		unsigned long task, other, cpu, clamp, ask;
	} cases[] = {
		{ 20, 500, 60, 0, 160 }, { 20, 500, 0, 0, 160 }, { 20, 500, 120, 0, 240 },
		{ 5, 500, 800, 0, 160 }, { 40, 600, 800, 0, 640 }, { 0, 500, 0, 0, 0 },
		{ 0, 500, 800, 0, 0 }, { 300, 300, 0, 250, 250 }, { 20, 500, 0, 300, 160 },
	};

	for (int i = 0; i < ARRAY_SIZE(cases); i++) {
		begin();
		a.se.avg.util_avg = cases[i].task;
		b.se.avg.util_avg = cases[i].other;
		rqs[0].cfs.avg.util_avg = cases[i].cpu;
		a.clamp = b.clamp = cases[i].clamp;
		turns(20);
		KUNIT_EXPECT_EQ_MSG(test, asks(&rqs[0]), cases[i].ask, "row %d", i);
	}
}

static struct kunit_case pair_hooks_cases[] = {
	KUNIT_CASE(answer_test),
	KUNIT_CASE(most_test),
	KUNIT_CASE(third_test),
	KUNIT_CASE(overlap_test),
	KUNIT_CASE(off_test),
	KUNIT_CASE(child_test),
	KUNIT_CASE(interrupt_test),
	KUNIT_CASE(class_test),
	KUNIT_CASE(own_test),
	{}
};

static struct kunit_suite pair_hooks_suite = {
	.name = "pair_hooks", .test_cases = pair_hooks_cases
};
kunit_test_suite(pair_hooks_suite);
