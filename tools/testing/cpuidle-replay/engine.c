// SPDX-License-Identifier: GPL-2.0
/*
 * Runs one governor over one trace.
 *
 * The recording host always let the tick be stopped. Where the governor under
 * test keeps it, or polls until the time limit, a recorded period becomes
 * several: each is a decision of its own, judged by its own idle time.
 */
#include <stdlib.h>
#include <time.h>

#include "replay.h"

/* The limits of polling, as cpuidle_poll_time() has them. */
#define POLL_MIN_NS	(10 * NSEC_PER_USEC)
#define POLL_MAX_NS	(TICK_NSEC / 16)

static bool usable(const struct run *run, int i)
{
	return !run->table->disabled[i] &&
	       (run->table->drv.states[i].exit_latency_ns <= run->latency_ns);
}

/* The deepest state for which an idle time of @ns is long enough. */
static int deepest_for(const struct run *run, s64 ns)
{
	const struct cpuidle_driver *drv = &run->table->drv;
	int i, idx = -1;

	for (i = 0; i < drv->state_count; i++) {
		if (!usable(run, i))
			continue;
		if (idx < 0 || drv->states[i].target_residency_ns <= ns)
			idx = i;
	}
	return idx < 0 ? 0 : idx;
}

static void judge(const struct run *run, struct result *res, int idx, s64 idle)
{
	const struct cpuidle_driver *drv = &run->table->drv;
	int i, shallower = 0;

	for (i = 0; i < idx; i++)
		shallower |= !run->table->disabled[i];

	if (idle < drv->states[idx].target_residency_ns && shallower) {
		res->too_deep++;
		return;
	}

	for (i = idx + 1; i < drv->state_count && !usable(run, i); i++)
		;
	if (i < drv->state_count && idle >= drv->states[i].target_residency_ns)
		res->too_shallow++;
	else
		res->adequate++;
}

static s64 exit_latency(const struct run *run, int idx)
{
	return run->table->drv.states[idx].exit_latency_ns *
	       run->latency_share / LATENCY_FULL;
}

static void account(const struct run *run, struct result *res, int idx, s64 idle)
{
	judge(run, res, idx, idle);
	res->decisions++;
	res->usage[idx]++;
	res->idle_ns += idle;
	res->exit_latency_ns += exit_latency(run, idx);
	res->energy += run->table->power[idx] * idle + run->table->overhead[idx];
}

static s64 next_tick_after(s64 when)
{
	return when - when % TICK_NSEC + TICK_NSEC;
}

static s64 poll_limit(const struct run *run, const struct cpuidle_device *dev)
{
	const struct cpuidle_driver *drv = &run->table->drv;
	int i;

	if (dev->poll_limit_ns)
		return dev->poll_limit_ns;

	for (i = 1; i < drv->state_count; i++) {
		s64 ns = drv->states[i].target_residency_ns;

		if (!run->table->disabled[i] && ns >= POLL_MIN_NS)
			return min(ns, POLL_MAX_NS);
	}
	return POLL_MAX_NS;
}

/* The tick as it is when the idle loop asks about @p for the first time. */
static void start_period(const struct idle_period *p, bool first)
{
	if (first)
		emu.tick_stopped = p->flags & FLAG_TICK_STOPPED;
	else if (!(p->flags & FLAG_CONTINUES))
		emu.tick_stopped = false;

	emu.timer = p->sleep == KTIME_MAX ? KTIME_MAX : p->entry + p->sleep;
}

/*
 * A timer of the wheel that is due no later than the next tick expires in that
 * tick, so the kernel does not stop it.
 */
static void update_tick(const struct idle_period *p)
{
	emu.next_tick = next_tick_after(emu.idle_entry);
	emu.can_stop_tick = emu.tick_stopped ||
		(p->next != NEXT_TICK_KEPT &&
		 !(p->next == NEXT_WHEEL && emu.timer <= emu.next_tick));
}

static void stop_tick(struct result *res)
{
	if (emu.tick_stopped || !emu.can_stop_tick)
		return;

	emu.tick_stopped = true;
	res->tick_stops++;
}

/*
 * One decision: ask, rest until the wake-up at @wakeup or what comes before
 * it, report back. Returns the time at which the rest ended.
 */
static s64 decide(const struct run *run, struct result *res,
		  struct cpuidle_device *dev, s64 wakeup)
{
	struct cpuidle_driver *drv = (struct cpuidle_driver *)&run->table->drv;
	bool stop = true;
	s64 end = wakeup;
	int idx;

	emu.now = emu.idle_entry;
	idx = run->gov->select(drv, dev, &stop);
	if (stop)
		stop_tick(res);

	dev->poll_time_limit = false;
	if (drv->states[idx].flags & CPUIDLE_FLAG_POLLING) {
		end = min(end, emu.idle_entry + poll_limit(run, dev));
		dev->poll_time_limit = end < wakeup;
	}

	emu.got_tick = !emu.tick_stopped && end >= emu.next_tick;
	if (emu.got_tick) {
		end = emu.next_tick;
		dev->poll_time_limit = false;
		res->ticks++;
	}

	account(run, res, idx, end - emu.idle_entry);
	dev->last_residency_ns = end - emu.idle_entry + exit_latency(run, idx);
	emu.now = emu.idle_entry + dev->last_residency_ns;
	if (run->gov->reflect)
		run->gov->reflect(dev, idx);

	return end;
}

static void run_governor(const struct run *run, struct result *res)
{
	struct cpuidle_driver *drv = (struct cpuidle_driver *)&run->table->drv;
	const struct trace *trace = run->trace;
	struct cpuidle_device dev = { .last_state_idx = 0 };
	size_t n;
	int i;

	for (i = 0; i < drv->state_count; i++)
		dev.states_usage[i].disable = run->table->disabled[i];
	if (run->gov->enable)
		run->gov->enable(drv, &dev);

	for (n = 0; n < trace->nr; n++) {
		const struct idle_period *p = &trace->periods[n];
		s64 wakeup = p->entry + p->idle;

		start_period(p, !n);
		emu.idle_entry = p->entry;
		do {
			update_tick(p);
			emu.idle_entry = decide(run, res, &dev, wakeup);
		} while (emu.idle_entry < wakeup);
	}
}

/* The oracle knows the idle time, the other bound the next timer event. */
static void run_bound(const struct run *run, struct result *res)
{
	const struct trace *trace = run->trace;
	size_t n;

	for (n = 0; n < trace->nr; n++) {
		const struct idle_period *p = &trace->periods[n];
		s64 known = run->oracle ? p->idle : p->sleep;

		start_period(p, !n);
		emu.idle_entry = p->entry;
		update_tick(p);
		stop_tick(res);
		account(run, res, deepest_for(run, known), p->idle);
	}
}

static double seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

void engine_run(const struct run *run, struct result *res)
{
	double start = seconds_now();

	memset(res, 0, sizeof(*res));
	memset(&emu, 0, sizeof(emu));
	emu.latency_req = run->latency_ns;
#ifndef REPLAY_HZ
	replay_tick_nsec = run->trace->tick_ns;
#endif

	if (run->gov)
		run_governor(run, res);
	else
		run_bound(run, res);

	res->timer_queries = emu.timer_queries;
	res->seconds = seconds_now() - start;
}
