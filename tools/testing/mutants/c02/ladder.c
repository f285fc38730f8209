// SPDX-License-Identifier: GPL-2.0
/*
 * ladder with disabled states and limits, whatever was before: it enters no disabled
 * state, none above the limit, gets to the deepest one that is left if idle times are
 * long, and to the shallowest if they are short.
 */
#include <stdio.h>

#define SHIM_INIT	ladder_init
#include "drivers/cpuidle/governors/ladder.c"

static const s64 latency_ns[] = { 0, 200, 1000, 2000, 290000 };
#define STATES	ARRAY_SIZE(latency_ns)

long shim_tick_ns = 4 * NSEC_PER_MSEC;
bool tick_nohz_enabled = true;
static struct cpuidle_governor *ladder;
static struct cpuidle_driver drv = { .state_count = STATES };
static struct cpuidle_device dev;
static s64 limit_ns;
static int failures;

int cpuidle_register_governor(struct cpuidle_governor *gov)
{
	ladder = gov;
	return 0;
}

s64 cpuidle_governor_latency_req(unsigned int cpu)
{
	return limit_ns;
}

static void wrong(unsigned int disabled, const char *text, int state)
{
	printf("# disabled 0x%x, limit %lld ns: %s, state %d\n", disabled, limit_ns, text,
	       state);
	failures++;
}

static bool allowed(unsigned int disabled, int i)
{
	return !(disabled & 1 << i) && latency_ns[i] <= limit_ns;
}

/* A short rest: less than ladder wants of the state, and not less than its latency. */
static int rest(bool is_short)
{
	bool stop_tick = true;
	int state = ladder->select(&drv, &dev, &stop_tick);

	dev.last_residency_ns = is_short ? latency_ns[state] * 3 / 2 : 1000000;
	ladder->reflect(&dev, state);
	return state;
}

static void stretch(unsigned int disabled, bool is_short, int expected)
{
	int state = -1;

	for (int i = 0; i < 60; i++) {
		state = rest(is_short);
		if (state && !allowed(disabled, state))
			wrong(disabled, "entered", state);
	}
	if (state != expected)
		wrong(disabled, is_short ? "short idle times end in" : "long ones in", state);
}

int main(void)
{
	static const s64 limits[] = { 0, 200, 1000, 2000, 290000 };
	unsigned int disabled;

	drv.states[0].flags = CPUIDLE_FLAG_POLLING;
	for (int i = 0; i < STATES; i++)
		drv.states[i].exit_latency_ns = latency_ns[i];
	ladder_init();

	for (disabled = 0; disabled < 1 << STATES; disabled += 2) {
		for (int l = 0; l < ARRAY_SIZE(limits); l++) {
			int deepest = 0, shallowest = 0;

			for (int i = 0; i < STATES; i++)
				dev.states_usage[i].disable = disabled >> i & 1;
			limit_ns = limits[l];
			for (int i = STATES - 1; i > 0; i--)
				if (allowed(disabled, i))
					shallowest = i;
			for (int i = 1; i < STATES; i++)
				if (allowed(disabled, i))
					deepest = i;
			ladder->enable(&drv, &dev);
			stretch(disabled, false, deepest);
			stretch(disabled, true, shallowest);
			limit_ns = S64_MAX;	/* the limit is over, and back */
			for (int i = 0; i < 60; i++)
				rest(false);
			limit_ns = limits[l];
			stretch(disabled, false, deepest);
			limit_ns = 0;	/* somebody asks for no latency, for a while */
			stretch(disabled, false, 0);
			limit_ns = limits[l];
			stretch(disabled, false, deepest);
		}
	}
	printf("%s\n", failures ? "not ok" : "ok");
	return failures != 0;
}
