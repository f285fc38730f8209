// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel services that a governor calls, answered from the trace.
 */
#include "replay.h"

long shim_tick_ns = 4 * NSEC_PER_MSEC;
bool tick_nohz_enabled = true;
struct emulation emu;
struct cpuidle_governor *emulate_registered;

u64 local_clock(void)
{
	return emu.now;
}

bool tick_nohz_tick_stopped(void)
{
	return emu.tick_stopped;
}

/* Reading clears it, as in the kernel. */
bool tick_nohz_idle_got_tick(void)
{
	bool got_tick = emu.got_tick;

	emu.got_tick = false;
	return got_tick;
}

bool tick_nohz_full_cpu(int cpu)
{
	(void)cpu;
	return emu.run->nohz_full;
}

void tick_nohz_idle_restart_tick(void)
{
	emu.tick_stopped = false;
}

bool need_resched(void)
{
	return emu.task;
}

static s64 until(s64 when)
{
	return when == KTIME_MAX ? KTIME_MAX : when - emu.idle_entry;
}

ktime_t tick_nohz_get_sleep_length(ktime_t *delta_next)
{
	s64 next = emu.timer;

	emu.timer_queries++;
	if (!emu.tick_stopped && emu.next_tick < next)
		next = emu.next_tick;

	*delta_next = until(next);
	return emu.can_stop_tick ? until(emu.timer) : *delta_next;
}

bool kvm_para_available(void)
{
	return true;
}

s64 cpuidle_governor_latency_req(unsigned int cpu)
{
	(void)cpu;
	return emu.latency_req;
}

int cpuidle_register_governor(struct cpuidle_governor *gov)
{
	emulate_registered = gov;
	return 0;
}
