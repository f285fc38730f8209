// SPDX-License-Identifier: GPL-2.0
/*
 * Runs one governor over one trace.
 *
 * The recording host always let the tick be stopped. Where the governor under
 * test keeps it, or polls until the time limit, a recorded period becomes
 * several: each is a decision of its own, judged by its own rest.
 *
 * The rest in a state is shorter than the idle time: the governor is asked, the
 * tick perhaps stopped, and then the state is entered. All of that is work at
 * full power, which is 1.
 */
#include "replay.h"

/* The limits of polling, as cpuidle_poll_time() has them. */
#define POLL_MIN_NS	(10 * NSEC_PER_USEC)
#define POLL_MAX_NS	(TICK_NSEC / 16)

bool engine_usable(const struct run *run, int i)
{
	return !run->table->disabled[i] &&
	       (run->table->drv.states[i].exit_latency_ns <= run->latency_ns);
}

static double taken(const struct run *run, double what)
{
	return what * run->latency_percent / 100;
}

static s64 exit_latency(const struct run *run, int idx)
{
	return taken(run, run->table->drv.states[idx].exit_latency_ns);
}

/**
 * engine_rest_energy - what resting in a state takes, getting there and back included
 * @run: the run
 * @idx: the state
 * @rest: time in it
 */
double engine_rest_energy(const struct run *run, int idx, s64 rest)
{
	return run->table->power[idx] * rest +
	       taken(run, run->table->transition[idx]);
}

/* Nothing meets the limits: as near to them as the enabled states allow. */
static int shallowest(const struct run *run)
{
	int i;

	for (i = 0; i < run->table->drv.state_count; i++)
		if (!run->table->disabled[i])
			return i;
	return 0;
}

/* Of the usable states, the one that takes the least energy for @rest. */
int engine_least_state(const struct run *run, s64 rest)
{
	int i, idx = -1;

	for (i = 0; i < run->table->drv.state_count; i++) {
		if (!engine_usable(run, i))
			continue;
		if (idx < 0 || engine_rest_energy(run, i, rest) <
			       engine_rest_energy(run, idx, rest))
			idx = i;
	}
	return idx < 0 ? shallowest(run) : idx;
}

/* By the driver's target residencies, as the kernel counts "above" and "below". */
static void judge(const struct run *run, struct result *res, int idx, s64 rest)
{
	const struct cpuidle_driver *drv = &run->table->drv;
	int i, shallower = 0;

	for (i = 0; i < idx; i++)
		shallower |= !run->table->disabled[i];

	if (rest < drv->states[idx].target_residency_ns && shallower) {
		res->too_deep++;
		return;
	}

	for (i = idx + 1; i < drv->state_count && !engine_usable(run, i); i++)
		;
	if (i < drv->state_count && rest >= drv->states[i].target_residency_ns)
		res->too_shallow++;
	else
		res->adequate++;
}

/* A decision: the work before the state, and the rest in it. */
void engine_account(const struct run *run, struct result *res, int idx, s64 rest)
{
	double energy = engine_rest_energy(run, idx, rest);
	int least = engine_least_state(run, rest);

	judge(run, res, idx, rest);
	res->least += energy <= engine_rest_energy(run, least, rest);
	res->decisions++;
	res->usage[idx]++;
	res->exit_latency_ns += exit_latency(run, idx);
	res->energy += run->costs.overhead + energy;
}

void engine_account_tick(const struct run *run, struct result *res)
{
	res->ticks++;
	res->energy += run->costs.tick;
}

/* The period is over, whatever number of decisions it took; @idx was the last. */
void engine_account_wakeup(const struct run *run, struct result *res,
			   const struct idle_period *p, int idx)
{
	res->periods++;
	res->idle_ns += p->idle;
	res->wake_latency_ns += exit_latency(run, idx);
	if (p->flags & FLAG_TASK) {
		res->waits++;
		res->wait_latency_ns += exit_latency(run, idx);
	}
}

s64 engine_entered(const struct run *run, s64 asked, bool stopped_now)
{
	return asked + run->costs.overhead +
	       (stopped_now ? run->costs.tick_stop : 0);
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
void engine_start_period(const struct idle_period *p, bool first)
{
	if (emu.run->nohz_full)
		emu.tick_stopped = true;
	else if (first)
		emu.tick_stopped = p->flags & FLAG_TICK_STOPPED;
	else if (!(p->flags & FLAG_CONTINUES))
		emu.tick_stopped = false;

	emu.timer = p->sleep == KTIME_MAX ? KTIME_MAX : p->entry + p->sleep;
	emu.idle_entry = p->entry;
	emu.period = p;
}

/*
 * A timer of the wheel that is due no later than the next tick expires in that
 * tick, so the kernel does not stop it.
 */
void engine_update_tick(const struct idle_period *p)
{
	emu.next_tick = next_tick_after(emu.idle_entry);
	emu.can_stop_tick = emu.tick_stopped ||
		(p->next != NEXT_TICK_KEPT &&
		 !(p->next == NEXT_WHEEL && emu.timer <= emu.next_tick));
}

/* Each stop is followed by one restart, so that is charged along with it. */
bool engine_stop_tick(const struct run *run, struct result *res)
{
	if (emu.tick_stopped || !emu.can_stop_tick)
		return false;

	emu.tick_stopped = true;
	res->tick_stops++;
	res->energy += run->costs.tick_stop + run->costs.tick_restart;
	return true;
}

/*
 * One decision: ask, rest until the wake-up at @wakeup or what comes before
 * it, report back. Returns the state; emu.idle_entry is when the rest ended.
 */
static int decide(const struct run *run, struct result *res,
		  struct cpuidle_device *dev, s64 wakeup)
{
	struct cpuidle_driver *drv = (struct cpuidle_driver *)&run->table->drv;
	bool stop = true, stopped_now;
	s64 entered, end = wakeup, rest;
	int idx;

	emu.now = emu.idle_entry;
	idx = run->gov->select(drv, dev, &stop);
	stopped_now = stop && engine_stop_tick(run, res);
	entered = engine_entered(run, emu.idle_entry, stopped_now);

	dev->poll_time_limit = false;
	if (drv->states[idx].flags & CPUIDLE_FLAG_POLLING) {
		end = min(end, entered + poll_limit(run, dev));
		dev->poll_time_limit = end < wakeup;
	}

	emu.got_tick = !emu.tick_stopped && end >= emu.next_tick;
	if (emu.got_tick) {
		end = emu.next_tick;
		dev->poll_time_limit = false;
		engine_account_tick(run, res);
	}

	rest = max(end - entered, 0);
	engine_account(run, res, idx, rest);
	dev->last_residency_ns = rest + exit_latency(run, idx);
	emu.idle_entry = max(end, entered);
	emu.now = emu.idle_entry + exit_latency(run, idx);
	emu.task = end == wakeup && emu.period->flags & FLAG_TASK;
	if (run->gov->reflect)
		run->gov->reflect(dev, idx);

	return idx;
}

void governor_run(const struct run *run, struct result *res)
{
	struct cpuidle_driver *drv = (struct cpuidle_driver *)&run->table->drv;
	const struct trace *trace = run->trace;
	struct cpuidle_device dev = { .last_state_idx = 0 };
	size_t n;
	int i, idx;

	for (i = 0; i < drv->state_count; i++)
		dev.states_usage[i].disable = run->table->disabled[i];
	if (run->gov->enable)
		run->gov->enable(drv, &dev);

	for (n = 0; n < trace->nr; n++) {
		const struct idle_period *p = &trace->periods[n];
		s64 wakeup = p->entry + p->idle;

		engine_start_period(p, !n);
		do {
			engine_update_tick(p);
			idx = decide(run, res, &dev, wakeup);
		} while (emu.idle_entry < wakeup);
		engine_account_wakeup(run, res, p, idx);
	}
}

void engine_run(const struct run *run, struct result *res)
{
	memset(res, 0, sizeof(*res));
	memset(&emu, 0, sizeof(emu));
	emu.run = run;
	emu.latency_req = run->latency_ns;
	shim_tick_ns = run->tick_ns;

	run->play(run, res);
	res->timer_queries = emu.timer_queries;
}
