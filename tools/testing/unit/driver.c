// SPDX-License-Identifier: GPL-2.0
/*
 * When intel_idle offers the state entered by UMWAIT, and the state's properties: all
 * combinations of the option, the model, the CPU's features and states_off. And
 * which CPUs may poll by UMWAIT.
 */
#include <kunit/test.h>
#include <linux/cpuidle.h>

#define __initconst
#define __ro_after_init
#define pr_info(...)		snprintf(said, sizeof(said), __VA_ARGS__)
#define BIT(n)			(1ul << (n))

enum { X86_FEATURE_HYPERVISOR, X86_FEATURE_WAITPKG, X86_BUG_MONITOR, FEATURES };

static char said[300];
static bool has[FEATURES];
#define boot_cpu_has(f)		(has[f])
#define boot_cpu_has_bug(f)	(has[f])
#define cpu_feature_enabled(f)	(has[f])

struct idle_cpu { bool has_c02; void *state_table; };
static struct idle_cpu model;
static const struct idle_cpu *icpu;
static u32 umwait_ns_mult, tsc_khz = 2000000;
static bool umwait_poll_on;
static u64 orig_umwait_control_cached;
static unsigned int disabled_states_mask;

static int intel_idle_umwait(struct cpuidle_device *dev, struct cpuidle_driver *drv, int i)
{
	return i;
}

/* Of umwait_init() only what it makes of the CPU's features counts. */
#define __init
#define MSR_IA32_UMWAIT_CONTROL	0
#define CPUHP_AP_ONLINE_DYN	0
#define USEC_PER_SEC		1000000ul
#define rdmsrl(msr, value)	((value) = (msr))
#define rdmsrq			rdmsrl		/* its name from 6.16 on */
#define div_u64(a, b)		((a) / (b))
#define cpuhp_setup_state(...)	(-1)
#define register_syscore(ops)
#define bus_get_dev_root(bus)	NULL
#define sysfs_create_group(...)	0
#define put_device(dev)
struct device { int kobj; };
struct kernel_param;
#define static_branch_enable(key)	(*(key) = true)
#define static_branch_disable(key)	(*(key) = false)

// FROM arch/x86/include/asm/mwait.h: UMWAIT_NS_SHIFT
// FROM arch/x86/kernel/cpu/umwait.c: idle_poll_names idle_poll_set umwait_init
enum { C02_AUTO, C02_ON, C02_OFF };	/* as in intel_idle.c */
static unsigned int c02_mode;

/* The rest of the table */
static int max_states;
static void intel_idle_init_cstates_icpu(struct cpuidle_driver *drv)
{
	for (int i = 0; i < max_states; i++)
		snprintf(drv->states[drv->state_count++].name, CPUIDLE_NAME_LEN, "S%d", i);
}
#define intel_idle_init_cstates_acpi intel_idle_init_cstates_icpu
// FROM drivers/idle/intel_idle.c: c02_state intel_idle_init_c02 intel_idle_cpuidle_driver_init

static struct kunit *test;

static void check(bool right, const char *text)
{
	if (right)
		return;
	KUNIT_FAIL(test, "model %d %d, WAITPKG %d, guest %d, erratum %d, mask %u: %s",
		   !!icpu, model.has_c02, has[X86_FEATURE_WAITPKG], has[X86_FEATURE_HYPERVISOR],
		   has[X86_BUG_MONITOR], disabled_states_mask, text);
}

/* POLL, what the driver adds, and so many states of MWAIT after it */
static void boot(int mwait_states)
{
	struct cpuidle_driver drv = {};
	const struct cpuidle_state *s = &drv.states[1];
	bool wanted, moved, umwait = has[X86_FEATURE_WAITPKG] && !has[X86_BUG_MONITOR];

	umwait_ns_mult = 0;
	umwait_init();
	check(!umwait || umwait_ns_mult == (2 << UMWAIT_NS_SHIFT), "2 cycles per ns");
	umwait_poll_on = false;
	check(idle_poll_set("c02", NULL) == (umwait ? 0 : -ENODEV), "idle_poll");
	check(umwait_poll_on == umwait, "polls by UMWAIT, or does not");
	check(!idle_poll_set("off", NULL) && !umwait_poll_on, "idle_poll=off");

	said[0] = '\0';
	max_states = mwait_states;
	intel_idle_cpuidle_driver_init(&drv);
	/* The rule of the documentation: 0 names no state, 2 this one alone */
	wanted = icpu && model.has_c02 && umwait &&
		 (c02_mode == C02_ON ||
		  (c02_mode == C02_AUTO && !has[X86_FEATURE_HYPERVISOR] &&
		   (disabled_states_mask == 0 || disabled_states_mask == 2)));
	check(drv.state_count == 1 + wanted + mwait_states, "there, or not there");
	if (wanted) {
		check(!strcmp(s->name, "C0.2"), "its name");
		check(s->flags & CPUIDLE_FLAG_POLLING, "not a polling state");
		check(!(s->flags & CPUIDLE_FLAG_OFF) == !(disabled_states_mask & 2),
		      "disabled, or not");
		check(s->exit_latency_ns > 0 && s->exit_latency_ns < 1000 &&
		      !s->exit_latency, "its latency is not between POLL's and C1's");
		check(s->target_residency_ns >= s->exit_latency_ns &&
		      s->target_residency_ns <= 1000, "its residency");
		check(!s->enter_s2idle && !s->enter_dead, "for suspend");
	}
	check(!(c02_state.flags & CPUIDLE_FLAG_OFF), "off for the next, too");

	moved = wanted && mwait_states;
	check(!!said[0] == moved, "says that numbers have moved, or does not");
	if (moved) {
		char last[80];

		snprintf(last, sizeof(last), "state%d/disable for S%d must write state%d/disable",
			 drv.state_count - 2, mwait_states - 1, drv.state_count - 1);
		check(strstr(said, s->name) && strstr(said, last), "what it says");
	}
}

static void each_machine(struct kunit *t, unsigned int mode)
{
	test = t;
	c02_mode = mode;
	static const unsigned int masks[] = { 0, 1, 2, 3, 5, 8, 12, 14 };

	for (int bits = 0; bits < 1 << 8; bits++) {
		icpu = bits & 1 ? &model : NULL;
		model.has_c02 = bits & 2;
		has[X86_FEATURE_WAITPKG] = bits & 4;
		has[X86_FEATURE_HYPERVISOR] = bits & 8;
		has[X86_BUG_MONITOR] = bits & 16;
		disabled_states_mask = masks[bits >> 5];
		boot(0);
		boot(1);
		boot(3);
	}
}

static void auto_test(struct kunit *t)
{
	each_machine(t, C02_AUTO);
}

static void on_test(struct kunit *t)
{
	each_machine(t, C02_ON);
}

static void off_test(struct kunit *t)
{
	each_machine(t, C02_OFF);
}

static struct kunit_case driver_cases[] = {
	KUNIT_CASE(auto_test),
	KUNIT_CASE(on_test),
	KUNIT_CASE(off_test),
	{}
};

static struct kunit_suite driver_suite = { .name = "driver", .test_cases = driver_cases };
kunit_test_suite(driver_suite);
