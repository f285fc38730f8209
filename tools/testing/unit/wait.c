// SPDX-License-Identifier: GPL-2.0
/*
 * The wait by UMWAIT on a simulated CPU that executes one primitive after the other.
 * In one run each, a store or an interrupt comes before each primitive and in the
 * middle of each wait. Every wake-up has to end the wait, every interrupt has to be
 * handled soon and before the CPU leaves the idle state,
 * after a wait only.
 */
#include <kunit/test.h>
#include <linux/cpuidle.h>

#define nop()		instruction()
#define static_branch_unlikely(key) (*(key))
#define rdtsc()		(instruction(), tsc)
#define mul_u64_u32_shr(a, mul, shift) ((a) * (mul) >> (shift))
#define current_thread_info()	(&info)
#define POLL_NS		10000
#define STEP		10		/* cycles of a primitive; 1 cycle is 1 ns */
#define SLACK		400
#define LIMIT		1700		/* the operating system's */
#define SHORT_LIMIT	4		/* it may win over anything else */

enum { NOTHING, STORE, IRQ };

static struct { unsigned long flags; } info;
static u32 umwait_ns_mult = 1 << 22;
static struct {
	int what, at;		/* before this primitive, or */
	int rest;		/* in the middle of this rest */
} event;
static u64 tsc, limit, rest_end, event_tsc;
static int ops, rests;
static bool polling, resched, armed, triggered, irqs, shadow, pending, verw;
static bool handled, is_state;
static struct kunit *test;

static void wrong(const char *text)
{
	KUNIT_FAIL(test, "event %d at %d, rest %d: %s", event.what, event.at, event.rest, text);
}

static void happens(void)
{
	event_tsc = tsc;
	if (event.what == STORE)
		resched = triggered = true;
	else if (event.what == IRQ)
		pending = true;
}

/* Its handler wakes a thread on this CPU, whose own store ends no rest of its. */
static void take_irq(void)
{
	if (tsc - event_tsc > SLACK)
		wrong("the interrupt waits");
	pending = false;
	handled = resched = true;
}

static void instruction(void)
{
	if (event.what && ops++ == event.at)
		happens();
	tsc += STEP;
	if (pending && irqs && !shadow)
		take_irq();
	shadow = false;
}

static void raw_local_irq_enable(void)
{
	instruction();
	shadow = !irqs;
	irqs = true;
}

static void raw_local_irq_disable(void)
{
	instruction();
	irqs = false;
}

static bool current_set_polling_and_test(void)
{
	instruction();
	polling = true;
	return resched;
}

static void current_clr_polling(void)
{
	instruction();
	polling = false;
}

bool need_resched(void)
{
	instruction();
	return resched;
}

static void x86_idle_clear_cpu_buffers(void)
{
	instruction();
	verw = true;
}

static void __umonitor(const void *addr)
{
	instruction();
	if (addr != &info.flags)
		wrong("another line is watched");
	armed = true;
	triggered = false;
}

static bool __umwait(u64 deadline)
{
	bool limited = limit && tsc + limit < deadline, was_armed = armed;
	u64 end = limited ? tsc + limit : deadline;

	instruction();
	armed = false;
	if (++rests > 1000) {
		wrong("rests without end");
		exit(1);
	}
	if (!polling)
		wrong("rests without the polling flag");
	if (!verw)
		wrong("rests with buffers not cleared");
	if (handled && is_state)
		wrong("rests after a handler ran, which may have queued a timer");
	if (limited && limit == SHORT_LIMIT) {
		tsc = rest_end = end;
		return true;
	}
	if (!was_armed || triggered || pending) {
		rest_end = tsc;
		return false;
	}
	if (resched)
		wrong("sleeps through a wake-up");
	if (tsc < end && rests == event.rest) {
		tsc += (end - tsc) / 2;
		happens();
		if (triggered || pending) {
			rest_end = tsc;
			return false;
		}
	}
	tsc = tsc < end ? end : tsc;
	rest_end = tsc;
	return limited;
}

u64 cpuidle_poll_time(struct cpuidle_driver *drv, struct cpuidle_device *dev)
{
	return POLL_NS;
}

// FROM arch/x86/include/asm/mwait.h: UMWAIT_NS_SHIFT UMWAIT_SHORT umwait_deadline umwait_need_resched
// FROM drivers/idle/intel_idle.c: intel_idle_umwait
static bool umwait_poll_on;
// FROM arch/x86/include/asm/idle_poll.h: idle_poll_wait

static struct cpuidle_driver drv;
static struct cpuidle_device dev;

static void fresh(u64 os_limit)
{
	tsc = 1000000;
	limit = os_limit;
	rest_end = event_tsc = 0;
	ops = rests = 0;
	resched = armed = triggered = irqs = shadow = pending = verw = handled = false;
	polling = !is_state;
	irqs = !is_state;
}

static u64 run(int (*enter)(void))
{
	u64 begin = tsc, came;

	enter();
	came = event_tsc;
	if (irqs == is_state)
		wrong("interrupts are not as they were");
	if (pending && came <= rest_end)
		wrong("the interrupt waits for the way out");
	if (is_state && polling)
		wrong("the polling flag stays");
	if (tsc > begin + POLL_NS + SLACK)
		wrong("longer than the poll time");
	/* Which of an interrupt and a short limit ended the wait cannot be told. */
	if (is_state && rests && came < rest_end && !(came && limit == SHORT_LIMIT) &&
	    dev.poll_time_limit !=
	    ((limit == SHORT_LIMIT || rest_end >= begin + POLL_NS) && !came))
		wrong("the time limit is taken for a wake-up, or a wake-up for it");
	return tsc - begin;
}

static int state(void)
{
	return intel_idle_umwait(&dev, &drv, 1) - 1;
}

/* With two instructions of the loop around it: STI holds interrupts back for one. */
static int poll_wait(void)
{
	idle_poll_wait(POLL_NS);
	nop();
	nop();
	return 0;
}

static void explore(struct kunit *t, int (*enter)(void), u64 os_limit)
{
	test = t;
	is_state = enter != poll_wait;
	umwait_poll_on = true;
	event.what = NOTHING;
	event.rest = 0;
	fresh(os_limit);
	if (run(enter) < POLL_NS)
		wrong("ends before the poll time is over");
	if (rests != (os_limit ? POLL_NS / os_limit + 1 : 1))
		wrong("the operating system's limit does not make it rest again");
	for (event.what = STORE; event.what <= IRQ; event.what++) {
		event.rest = 0;
		for (event.at = 0; event.at < 60; event.at++) {
			fresh(os_limit);
			run(enter);
		}
		for (event.at = -1, event.rest = 1; event.rest < 6; event.rest++) {
			fresh(os_limit);
			if (run(enter) > POLL_NS - SLACK && event.rest < 3 && os_limit)
				wrong("what happens does not end it");
		}
	}
}

/* A limit of a few cycles ends each wait, also while an interrupt is pending. */
static void explore_short(struct kunit *t, int (*enter)(void))
{
	test = t;
	is_state = enter != poll_wait;
	umwait_poll_on = true;
	event.rest = 0;
	for (event.what = NOTHING; event.what <= IRQ; event.what++) {
		for (event.at = 0; event.at < 60; event.at++) {
			fresh(SHORT_LIMIT);
			run(enter);
		}
	}
}

static void umwait_short_test(struct kunit *t)
{
	explore_short(t, state);
}

static void poll_short_test(struct kunit *t)
{
	explore_short(t, poll_wait);
}

static void umwait_test(struct kunit *t)
{
	explore(t, state, 0);
}

static void umwait_limited_test(struct kunit *t)
{
	explore(t, state, LIMIT);
}

static void poll_test(struct kunit *t)
{
	explore(t, poll_wait, 0);
}

static void poll_limited_test(struct kunit *t)
{
	explore(t, poll_wait, LIMIT);
}

static void poll_off_test(struct kunit *t)
{
	umwait_poll_on = false;
	rests = 0;
	KUNIT_EXPECT_FALSE(t, idle_poll_wait(POLL_NS));
	KUNIT_EXPECT_EQ(t, rests, 0);
}

static struct kunit_case wait_cases[] = {
	KUNIT_CASE(umwait_short_test),
	KUNIT_CASE(poll_short_test),
	KUNIT_CASE(umwait_test),
	KUNIT_CASE(umwait_limited_test),
	KUNIT_CASE(poll_test),
	KUNIT_CASE(poll_limited_test),
	KUNIT_CASE(poll_off_test),
	{}
};

static struct kunit_suite wait_suite = { .name = "wait", .test_cases = wait_cases };
kunit_test_suite(wait_suite);
