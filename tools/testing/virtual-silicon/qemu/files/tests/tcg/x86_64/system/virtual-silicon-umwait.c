/*
 * Virtual silicon: UMONITOR, UMWAIT and TPAUSE (Intel SDM volume 2).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "virtual-silicon.h"

#define UMWAIT_CONTROL  0xe1

/* In us.  What shall end a wait comes after SHORT, what else might, LONG. */
#define SHORT           50000
#define LONG            1000000

static uint32_t operand;
static uint64_t deadline, flags;

static void do_umonitor(void)
{
    asm volatile("umonitor %0" : : "r" (line));
}

static void do_umonitor_nowhere(void)
{
    asm volatile("umonitor %0" : : "r" (1ull << 63));
}

/* Address size 32: the upper half of the register does not count. */
static void do_umonitor_32(void)
{
    asm volatile("addr32 umonitor %0" : : "r" ((uint64_t)line | 1ull << 63));
}

/* Both begin with all arithmetic flags set and leave theirs in @flags. */
static void do_umwait(void)
{
    asm volatile("pushfq; orq %4, (%%rsp); popfq; umwait %1; pushfq; popq %0"
                 : "=r" (flags)
                 : "r" (operand), "a" ((uint32_t)deadline),
                   "d" ((uint32_t)(deadline >> 32)), "i" (FLAGS_ARITHMETIC)
                 : "memory", "cc");
}

static void do_tpause(void)
{
    asm volatile("pushfq; orq %4, (%%rsp); popfq; tpause %1; pushfq; popq %0"
                 : "=r" (flags)
                 : "r" (operand), "a" ((uint32_t)deadline),
                   "d" ((uint32_t)(deadline >> 32)), "i" (FLAGS_ARITHMETIC)
                 : "memory", "cc");
}

/* How long it takes with a deadline in so many us from now; in us. */
static uint32_t waited(void (*how)(void), int64_t us)
{
    uint64_t begin = rdtsc();

    deadline = begin + us * (int64_t)tsc_per_ms / 1000;
    how();
    return (rdtsc() - begin) * 1000 / tsc_per_ms;
}

static bool is_short(uint32_t us)
{
    return us > SHORT / 2 && us < LONG / 2;
}

static bool at_once(uint32_t us)
{
    return us < LONG / 2;
}

static bool carry(void)
{
    return flags & FLAG_CARRY;
}

static void limit_us(uint32_t us)
{
    wrmsr(UMWAIT_CONTROL, (us * tsc_per_ms / 1000) & ~3ull);
}

static void test_control(void)
{
    check(wrmsr(UMWAIT_CONTROL, 0x12344) == 0 &&
          msr(UMWAIT_CONTROL) == 0x12344, "IA32_UMWAIT_CONTROL holds a limit");
    check(wrmsr(UMWAIT_CONTROL, 2) == GP, "its bit 1: #GP");
    check(wrmsr(UMWAIT_CONTROL, 1ull << 32) == GP, "its bit 32: #GP");
    check(msr(UMWAIT_CONTROL) == 0x12344, "and it still holds the limit");
    wrmsr(UMWAIT_CONTROL, 0);
}

static void set_tsd(bool on)
{
    uint64_t cr4;

    asm volatile("mov %%cr4, %0" : "=r" (cr4));
    cr4 = on ? cr4 | 4 : cr4 & ~4ull;
    asm volatile("mov %0, %%cr4" : : "r" (cr4));
}

static void test_exceptions(void)
{
    deadline = 0;
    operand = 2;
    check(attempt(do_umwait) == GP, "UMWAIT with bit 1: #GP");
    check(attempt(do_tpause) == GP, "TPAUSE with bit 1: #GP");
    operand = 1u << 31;
    check(attempt(do_umwait) == GP, "UMWAIT with bit 31: #GP");
    operand = 0;
    check(attempt_at(do_umonitor, true) == 0, "UMONITOR at CPL 3");
    check(attempt(do_umonitor_nowhere) == GP,
          "UMONITOR checks its address as a load does");
    check(attempt(do_umonitor_32) == 0, "UMONITOR with 32 bits of address");
    check(attempt_at(do_umwait, true) == 0, "UMWAIT at CPL 3");
    check(attempt_at(do_tpause, true) == 0, "TPAUSE at CPL 3");
    set_tsd(true);
    check(attempt(do_umwait) == 0, "UMWAIT at CPL 0 with CR4.TSD");
    check(attempt_at(do_umwait, true) == GP, "UMWAIT at CPL 3 then: #GP");
    check(attempt_at(do_tpause, true) == GP, "TPAUSE at CPL 3 then: #GP");
    set_tsd(false);
}

static void test_deadline(void)
{
    do_umonitor();
    check(at_once(waited(do_umwait, -1)), "a deadline in the past: no wait");
    check(!(flags & FLAGS_ARITHMETIC), "and the arithmetic flags are 0");
    for (operand = 0; operand < 2; operand++) {
        do_umonitor();
        check(is_short(waited(do_umwait, SHORT)) &&
              !(flags & FLAGS_ARITHMETIC),
              operand ? "C0.1: the deadline ends it, the flags are 0"
                      : "C0.2: the deadline ends it, the flags are 0");
    }
    operand = 0;
    check(is_short(waited(do_tpause, SHORT)) && !(flags & FLAGS_ARITHMETIC),
          "TPAUSE: the deadline ends it, the flags are 0");
    check(at_once(waited(do_umwait, LONG)), "UMWAIT without UMONITOR: no wait");
}

static void test_limit(void)
{
    limit_us(SHORT);
    do_umonitor();
    check(is_short(waited(do_umwait, LONG)) && carry(),
          "UMWAIT: the limit ends it, CF is 1");
    check((flags & FLAGS_ARITHMETIC) == FLAG_CARRY, "and the others are 0");
    check(is_short(waited(do_tpause, LONG)) && carry(),
          "TPAUSE: the limit ends it, CF is 1");
    limit_us(LONG);
    do_umonitor();
    check(is_short(waited(do_umwait, SHORT)) && !carry(),
          "the deadline ends it before the limit, CF is 0");
    wrmsr(UMWAIT_CONTROL, 0);
}


static void ap_store(void)
{
    sleep_us(SHORT);
    touch(&line[7]);
}

static void ap_nmi(void)
{
    sleep_us(SHORT);
    lapic_write(LAPIC_ICR, 0x4400 | TO_OTHERS);
}

static void test_store(void)
{
    do_umonitor();
    touch(&line[0]);
    check(at_once(waited(do_umwait, LONG)) && !carry(),
          "a store after UMONITOR: no wait");
    do_umonitor();
    ap_do(ap_store);
    check(is_short(waited(do_umwait, LONG)) && !carry(),
          "a store ends UMWAIT, CF is 0");
    ap_done();
    do_umonitor();
    ap_do(ap_store);
    check(waited(do_tpause, LONG) > LONG / 2, "a store does not end TPAUSE");
    ap_done();
}

static void test_interrupt(void)
{
    int nmis = nmi_count, timers = timer_count;

    do_umonitor();
    timer_in(SHORT * 1000);
    check(is_short(waited(do_umwait, LONG)) && timer_pending() &&
          timer_count == timers, "IF 0: a masked interrupt ends UMWAIT");
    check(at_once(waited(do_tpause, LONG)), "one pending: no wait");
    interrupts();
    limit_us(LONG);
    do_umonitor();
    ap_do(ap_nmi);
    check(is_short(waited(do_umwait, LONG * 2)) && nmi_count == nmis + 1,
          "an NMI ends UMWAIT");
    check(!carry(), "and CF is 0");
    ap_done();
    ap_do(ap_nmi);
    check(is_short(waited(do_tpause, LONG * 2)) && nmi_count == nmis + 2,
          "an NMI ends TPAUSE");
    ap_done();
    wrmsr(UMWAIT_CONTROL, 0);
}

/* UMWAIT is execution to the counters. */
static void test_counters(void)
{
    uint64_t mperf, tsc;

    do_umonitor();
    tsc = rdtsc();
    mperf = msr(0xe7);
    waited(do_umwait, SHORT);
    mperf = msr(0xe7) - mperf;
    tsc = rdtsc() - tsc;
    check(mperf > tsc / 2, "MPERF counts in C0.2");
}

static void test_absent(void)
{
    uint64_t val;

    check(attempt(do_umonitor) == UD, "UMONITOR: #UD");
    check(attempt(do_umwait) == UD, "UMWAIT: #UD");
    check(attempt(do_tpause) == UD, "TPAUSE: #UD");
    check(rdmsr(UMWAIT_CONTROL, &val) == GP, "RDMSR of 0xe1: #GP");
    check(wrmsr(UMWAIT_CONTROL, 0) == GP, "WRMSR of 0xe1: #GP");
    asm volatile("mfence");
}

int main(void)
{
    uint32_t regs[4];

    setup();
    cpuid(7, regs);
    if (regs[2] >> 5 & 1) {
        test_control();
        test_exceptions();
        start_ap();
        test_deadline();
        test_limit();
        test_store();
        test_interrupt();
        test_counters();
    } else {
        test_absent();
    }
    return checked();
}
