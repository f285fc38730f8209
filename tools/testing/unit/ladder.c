// SPDX-License-Identifier: GPL-2.0
/*
 * ladder with disabled states and limits, after any history: it enters only enabled
 * states within the limit, gets to the deepest of these if idle times are long, and to
 * the shallowest if they are short.
 */
#include <kunit/test.h>

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
static struct kunit *test;

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
	KUNIT_FAIL(test, "disabled 0x%x, limit %lld ns: %s, state %d", disabled, limit_ns, text,
		   state);
}

static bool allowed(unsigned int disabled, int i)
{
	return !(disabled & 1 << i) && latency_ns[i] <= limit_ns;
}

/* A short stay: less than ladder wants of the state, and at least its latency. */
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

enum then { SHORT_REST, NO_LIMIT, NO_LATENCY };

/* With each set of disabled states and each limit: long idle times, then @then, long ones */
static void each(struct kunit *t, enum then then)
{
	test = t;
	drv.states[0].flags = CPUIDLE_FLAG_POLLING;
	for (int i = 0; i < STATES; i++)
		drv.states[i].exit_latency_ns = latency_ns[i];
	ladder_init();

	for (unsigned int disabled = 0; disabled < 1 << STATES; disabled += 2) {
		for (int l = 0; l < STATES; l++) {
			int deepest = 0, shallowest = 0;

			for (int i = 0; i < STATES; i++)
				dev.states_usage[i].disable = disabled >> i & 1;
			limit_ns = latency_ns[l];
			for (int i = STATES - 1; i > 0; i--)
				if (allowed(disabled, i))
					shallowest = i;
			for (int i = 1; i < STATES; i++)
				if (allowed(disabled, i))
					deepest = i;
			ladder->enable(&drv, &dev);
			stretch(disabled, false, deepest);
			if (then == SHORT_REST) {
				stretch(disabled, true, shallowest);
			} else if (then == NO_LIMIT) {
				limit_ns = S64_MAX;
				for (int i = 0; i < 60; i++)
					rest(false);
			} else {
				limit_ns = 0;
				stretch(disabled, false, 0);
			}
			limit_ns = latency_ns[l];
			stretch(disabled, false, deepest);
		}
	}
}

static void short_idle_test(struct kunit *t)
{
	each(t, SHORT_REST);
}

static void limit_is_lifted_test(struct kunit *t)
{
	each(t, NO_LIMIT);
}

static void no_latency_for_a_while_test(struct kunit *t)
{
	each(t, NO_LATENCY);
}

static struct kunit_case ladder_cases[] = {
	KUNIT_CASE(short_idle_test),
	KUNIT_CASE(limit_is_lifted_test),
	KUNIT_CASE(no_latency_for_a_while_test),
	{}
};

static struct kunit_suite ladder_suite = { .name = "ladder", .test_cases = ladder_cases };
kunit_test_suite(ladder_suite);
