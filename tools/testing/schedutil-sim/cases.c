// SPDX-License-Identifier: GPL-2.0
/*
 * Named cases of one CPU: the last request, and how many calls computed the utilisation.
 * "cases NAME" prints "level min_perf requests computed". A level is in MHz, with
 * ->adjust_perf() in units of capacity.
 */
#include <stdbool.h>

static bool estimates = true;
#define sched_feat(x)		estimates	/* of UTIL_EST, the only one that is asked for */

#include "schedutil.h"

static unsigned long level, told, requests, computed;
#define effective_cpu_util(...)	(computed++, effective_cpu_util(__VA_ARGS__))

#include "kernel/sched/cpufreq_schedutil.c"

#include "machine.h"

static void request(unsigned long l, unsigned long min_perf)
{
	level = m.perf ? l : l / 1000;
	told = min_perf;
	requests++;
}

static bool short_idles, keeps_tick;	/* while it idles */

/* Calls each ms for @ms of a CPU that needs @util, and idles now and then if @idles */
static void run(unsigned int ms, unsigned long util, bool idles)
{
	struct rq *rq = &shim_rq[0];

	rq->curr = &m.running[0];
	rq->nr_running = 1;
	m.running[0].se.avg = (struct sched_avg){ .util_avg = util, .util_est = util };
	rq->cfs.avg = (struct sched_avg){ util, util, util };
	for (unsigned int i = 0; i < ms; i++) {
		m.now += MSEC;
		if (idles && !(i % 8)) {
			rq->curr = rq->idle;
			rq->idle_stamp = m.now;
			rq->idle_calls += !keeps_tick;
			m.now += short_idles ? 0 : 2 * shim_tick_ns;
			rq->clock_idle = m.now;
		}
		m.now += 1000;
		call_hook(0, 0, 0);
		rq->curr = &m.running[0];
	}
}

static void begin(bool perf, unsigned int rate_limit_us)
{
	m.perf = perf;
	machine_init(1);
	tunable("rate_limit_us", rate_limit_us);
	governor_start();
}

/* The range that was known without invariance is not one with it. */
static void invariance_on(void)
{
	shim_invariant = false;
	begin(false, 500);
	for (unsigned long util = 100; util <= 640; util += 20)
		run(8, util, true);
	shim_invariant = true;
	run(400, 600, true);
}

/* The request without invariance was not the last one that the driver got. */
static void invariance_off(void)
{
	shim_invariant = false;
	begin(true, 500);
	run(100, 1024, false);
	shim_invariant = true;
	run(200, 50, true);
	shim_invariant = false;
	run(200, 1024, false);
}

/* The CPU has become slower: the same utilisation is more of it. */
static void capacity_falls(void)
{
	begin(false, 500);
	run(100, 500, true);
	shim_capacity = 700;
	run(400, 500, true);
}

/* A clamp rises while the target stays. */
static void clamp_rises(void)
{
	begin(true, 500);
	sched_uclamp_used = true;
	run(100, 512, true);
	shim_rq[0].uclamp[UCLAMP_MIN].value = 600;
	run(20, 512, true);
}

/* The reservation of a deadline task ends while the target stays. */
static void deadline_ends(void)
{
	begin(true, 500);
	shim_rq[0].dl.running_bw = (3 << BW_SHIFT) / 10;
	run(100, 512, true);
	shim_rq[0].dl.running_bw = 0;
	run(20, 512, true);
}

/* The driver wants 10 ms between two requests. */
static void rate_limit(void)
{
	begin(false, 10000);
	run(30, 100, true);
	short_idles = true;
	requests = 0;
	for (unsigned long util = 200; util <= 900; util += 110)
		run(1, util, true);
}

/* A task with a clamp sleeps elsewhere: what was known without clamps is known with them. */
static void clamp_elsewhere(void)
{
	begin(false, 500);
	run(100, 500, true);
	sched_uclamp_used = true;
	requests = computed = 0;
	run(1000, 500, true);
}

/* A hog that may use 300. */
static void capped_hog(void)
{
	begin(false, 500);
	sched_uclamp_used = true;
	shim_rq[0].uclamp[UCLAMP_MAX].value = 300;
	run(1000, 1000, false);
}

/* It frees itself. */
static void freed_hog(void)
{
	capped_hog();
	shim_rq[0].uclamp[UCLAMP_MAX].value = SCHED_CAPACITY_SCALE;
	run(2, 1000, false);
}

/* A real-time task runs, whose utilisation is small. */
static void real_time(void)
{
	begin(false, 500);
	shim_rq[0].rt.rt_nr_running = 1;
	run(1000, 10, true);
}

/* It needed much, and has idled for less than a tick at a time since then, for @ms. */
static void short_idle(unsigned int ms)
{
	begin(false, 500);
	run(50, 700, true);
	short_idles = true;
	run(ms, 100, true);
}

static void short_idles_that_begin(void)
{
	short_idle(120);
}

static void short_idles_that_last(void)
{
	short_idle(140);
}

static void short_idles_with_ticks(void)
{
	keeps_tick = true;
	short_idle(140);
}

/* It was busy with less for a while, and idles for two ticks at a time, which go on. */
static void kept_tick(void)
{
	begin(false, 500);
	run(50, 700, true);
	run(8, 100, false);
	keeps_tick = true;
	run(50, 100, true);
}

/* It needed 700, and less for @ms after that, and idles. */
static struct rq *idle_from_700(unsigned int ms)
{
	struct rq *rq = &shim_rq[0];

	begin(false, 500);
	run(50, 700, true);
	run(ms, 100, false);
	requests = computed = 0;
	rq->curr = rq->idle;
	rq->nr_running = 0;
	rq->idle_stamp = m.now;
	return rq;
}

/* A call of an idle CPU after @us, which needs @util */
static void idle_call(unsigned int us, unsigned long util)
{
	m.now += us * 1000;
	shim_rq[0].idle_calls += !keeps_tick;
	shim_rq[0].cfs.avg = (struct sched_avg){ util, util, 0 };
	call_hook(0, 0, 0);
}

/* While it idles, its own balancing calls @us apart; what it needs decays to @least. */
static void balance(unsigned int us, unsigned long util, unsigned long least)
{
	idle_from_700(0);
	for (; util > least; util = util * 7 / 10)
		idle_call(us, util);
}

static void idle_calls(void)
{
	balance(6000, 490, 100);
}

static void idle_calls_that_need(void)
{
	balance(40000, 690, 450);
}

/* Balancing that comes before the CPU has idled for a tick decides nothing. */
static void idle_call_at_once(void)
{
	idle_from_700(0);
	idle_call(1, 690);
	idle_call(20000, 400);
}

/* The tick stops, balancing comes before the CPU has idled for a tick, and then a wake-up. */
static void idle_call_and_wake_up(void)
{
	idle_from_700(8);
	idle_call(1000, 100);
	keeps_tick = true;
	idle_call(50000, 100);
}

/* The tick goes on for as long as it idles. */
static void long_idle(void)
{
	idle_from_700(8);
	keeps_tick = true;
	for (int ms = 0; ms < 132; ms += 4)
		idle_call(4000, 100);
}

/* Nothing is known of the level: it is held for a tick, whatever calls there are. */
static void idle_without_invariance(void)
{
	shim_invariant = false;
	balance(3000, 490, 100);
	for (int i = 0; i < 10; i++)
		idle_call(20000, 100);
}

/* A second call of each wake-up, for which idle_stamp is 0, while its idle times are short */
static void second_call(void)
{
	struct rq *rq = idle_from_700(0);

	for (int i = 0; i < 100; i++) {
		rq->idle_stamp = m.now;
		rq->nr_running = 0;
		idle_call(500, 100);
		rq->idle_stamp = 0;
		rq->nr_running = 1;
		idle_call(3, 100);
	}
}

/* It exceeded its estimate once, and has idled for less than a tick at a time since then. */
static void once_saturated(void)
{
	begin(false, 500);
	run(50, 100, true);
	short_idles = keeps_tick = true;
	m.running[0].se.avg.util_est = 60;
	for (int i = 0; i < 7; i++) {
		m.now += MSEC;
		call_hook(0, 0, 0);
	}
	run(100, 100, true);
}

/* The same, but the CPU needed a middle level before; its capacity becomes @capacity. */
static void saturated_at(unsigned long util, unsigned long capacity)
{
	begin(false, 500);
	run(50, 100, true);
	short_idles = keeps_tick = true;
	run(1, util, true);
	m.running[0].se.avg.util_est = 60;
	for (int i = 0; i < 14; i++) {
		if (i == 7 && capacity != shim_capacity) {
			shim_capacity = capacity;
			m.running[0].se.avg.util_avg = 300;
			shim_rq[0].cfs.avg = (struct sched_avg){ 300, 300, 300 };
		}
		m.now += MSEC;
		call_hook(0, 0, 0);
	}
	run(100, 100, true);
}

static void middle_then_saturated(void)
{
	saturated_at(500, SCHED_CAPACITY_SCALE);
}

/* It needs 600, is saturated for @ms with @util, and needs less for 100 ms; idles are short. */
static void saturated_for(unsigned int ms, unsigned long util, unsigned long after)
{
	begin(false, 500);
	run(50, 600, true);
	short_idles = true;
	run(50, 600, true);
	m.running[0].se.avg = (struct sched_avg){ .util_avg = util, .util_est = 60 };
	shim_rq[0].cfs.avg = (struct sched_avg){ util, util, 60 };
	for (unsigned int i = 0; i < ms; i++) {
		m.now += MSEC;
		call_hook(0, 0, 0);
	}
	run(after > 0, after, true);
	run(100, 100, true);
}

/* When that ends it needs what it gets. */
static void needed_after_saturation(void)
{
	saturated_for(60, 300, 650);
}

/* It needs the same meanwhile. */
static void needed_while_saturated(void)
{
	saturated_for(140, 600, 0);
}

/* It needs more in the window of a change, and less for 100 ms after that. */
static void needed_in_window(void)
{
	begin(false, 200000);
	short_idles = true;
	run(10, 600, true);
	run(90, 100, true);
	run(8, 700, true);
	run(108, 100, true);
}

/* A limit cuts what it asks for; it needs less, which is cut as well, and then little for 100 ms. */
static void needed_under_limit(void)
{
	begin(false, 500);
	m.policy.max = 2000000;
	schedutil_gov.limits(&m.policy);
	short_idles = true;
	run(10, 800, true);
	run(100, 600, true);
	run(100, 100, true);
}

/* What it needed before was in other units. */
static void slower_and_saturated(void)
{
	saturated_at(700, 700);
}

/* With NO_UTIL_EST the estimate of the CPU is the last one. */
static void estimates_end(void)
{
	struct rq *rq = idle_from_700(0);

	estimates = false;
	for (int i = 0; i < 50; i++) {
		rq->idle_stamp = m.now;
		m.now += 2 * shim_tick_ns;
		rq->idle_calls++;
		rq->clock_idle = m.now;
		rq->cfs.avg = (struct sched_avg){ 50, 50, 700 };
		call_hook(0, 0, 0);
	}
}

/* A deadline task begins whose bandwidth exceeds that of interrupts by little. */
static void deadline_beside_interrupts(void)
{
	begin(false, 500);
	shim_rq[0].avg_irq.util_avg = 60;
	sched_uclamp_used = true;
	shim_rq[0].uclamp[UCLAMP_MIN].value = 390;
	run(30, 100, false);
	shim_rq[0].dl.running_bw = (355 << BW_SHIFT) >> 10;
	run(2, 100, false);
}

/* With NO_UTIL_EST all estimates are 0. */
static void no_estimates(void)
{
	estimates = false;
	begin(false, 500);
	for (int i = 0; i < 50; i++) {
		run(1, 300, false);
		m.running[0].se.avg.util_est = shim_rq[0].cfs.avg.util_est = 0;
		call_hook(0, 0, 0);
	}
}

/* One CPU of a policy needs most; tasks of the others sleep now and then. A call each us. */
static void shared_sleeps(void)
{
	m.perf = false;
	machine_init(MAX_CPUS - 1);
	governor_start();
	for (int i = 0; i < 100000; i++) {
		struct rq *rq = &shim_rq[rnd(m.cpus)];
		unsigned long est = !rq->cpu ? 620 : rnd(4) ? 610 : 0;

		m.now += 1000;
		rq->curr = &m.running[rq->cpu];
		rq->cfs.avg = (struct sched_avg){ 250, 250, est };
		call_hook(rq->cpu, rq->cpu, 0);
	}
}

/* A task of an idle CPU without a tick wakes; its CPU idles again. */
static void wake_without_tick(void)
{
	struct rq *rq = &shim_rq[0];

	shim_nohz_full = true;
	rq->cfs.avg = (struct sched_avg){ 100, 100, 100 };
	rq->nr_running = 0;
	m.now += MSEC;
	rq->clock_idle = m.now;
	call_hook(0, 0, 0);
}

static void no_tick(void)
{
	begin(false, 500);
	wake_without_tick();
}

/* Two tasks need ticks, which call. */
static void no_tick_for_one(void)
{
	no_tick();
	shim_rq[0].clock_idle = ++m.now;
	shim_rq[0].nr_running = 2;
	m.now += MSEC;
	call_hook(0, 0, 0);
}

/* The CPU without a tick idles, another one of its policy calls. */
static void no_tick_while_idle(void)
{
	m.perf = false;
	machine_init(2);
	governor_start();
	wake_without_tick();
	shim_rq[0].clock_idle = ++m.now;
	shim_nohz_full = false;
	for (int i = 0; i < 20; i++) {
		m.now += MSEC;
		shim_rq[1].cfs.avg.util_avg = 200;
		call_hook(1, 1, 0);
	}
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } cases[] = {
		{ "invariance-on", invariance_on }, { "invariance-off", invariance_off },
		{ "capacity-falls", capacity_falls },
		{ "clamp-rises", clamp_rises }, { "deadline-ends", deadline_ends },
		{ "rate-limit", rate_limit }, { "clamp-elsewhere", clamp_elsewhere },
		{ "capped-hog", capped_hog }, { "freed-hog", freed_hog },
		{ "real-time", real_time }, { "short-idles-that-begin", short_idles_that_begin },
		{ "short-idles-that-last", short_idles_that_last },
		{ "short-idles-with-ticks", short_idles_with_ticks },
		{ "estimates-end", estimates_end },
		{ "deadline-beside-interrupts", deadline_beside_interrupts },
		{ "long-idle", long_idle }, { "kept-tick", kept_tick },
		{ "idle-calls", idle_calls },
		{ "idle-call-and-wake-up", idle_call_and_wake_up },
		{ "idle-calls-that-need", idle_calls_that_need },
		{ "idle-call-at-once", idle_call_at_once },
		{ "idle-without-invariance", idle_without_invariance },
		{ "second-call", second_call }, { "once-saturated", once_saturated },
		{ "no-estimates", no_estimates }, { "middle-then-saturated", middle_then_saturated },
		{ "slower-and-saturated", slower_and_saturated },
		{ "needed-after-saturation", needed_after_saturation },
		{ "needed-while-saturated", needed_while_saturated },
		{ "needed-in-window", needed_in_window },
		{ "needed-under-limit", needed_under_limit },
		{ "shared-sleeps", shared_sleeps },
		{ "no-tick", no_tick }, { "no-tick-for-one", no_tick_for_one },
		{ "no-tick-while-idle", no_tick_while_idle },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (argc != 2 || strcmp(argv[1], cases[i].name))
			continue;
		cases[i].run();
		printf("%lu %lu %lu %lu\n", level, told, requests, computed);
		return 0;
	}
	fprintf(stderr, "usage: cases NAME\n");
	return 2;
}
