/*
 * Virtual silicon: MONITOR and MWAIT at CPL 0 (Intel SDM volume 2).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "virtual-silicon.h"

static uint32_t monitor_ecx, mwait_eax, mwait_ecx;

static void do_monitor(void)
{
    asm volatile("monitor" : : "a" (line), "c" (monitor_ecx), "d" (0));
}

static void do_mwait(void)
{
    asm volatile("mwait" : : "a" (mwait_eax), "c" (mwait_ecx) : "memory");
}

static void do_sti_mwait(void)
{
    asm volatile("sti; mwait; cli"
                 : : "a" (mwait_eax), "c" (mwait_ecx) : "memory");
}

/*
 * How long MWAIT takes, in us.  Where the host's clock is the guest's, anything
 * may come late: what shall end a rest comes after SHORT, what ends it if that
 * does not, after LONG.
 */
#define SHORT       50000
#define LONG        1000000

static inline bool short_rest(uint32_t us)
{
    return us > SHORT / 2 && us < LONG / 2;
}

static uint32_t waited(void (*how)(void), uint32_t ecx)
{
    uint64_t begin = rdtsc();

    mwait_ecx = ecx;
    how();
    return (rdtsc() - begin) * 1000 / tsc_per_ms;
}

static uint8_t *ap_where;

static void ap_store_byte(void)
{
    sleep_us(SHORT);
    touch(ap_where);
}

static void ap_store_across(void)
{
    sleep_us(SHORT);
    asm volatile("movq $0, (%0)" : : "r" (ap_where) : "memory");
}

static void ap_nmi(void)
{
    sleep_us(SHORT);
    lapic_write(LAPIC_ICR, 0x4400 | TO_OTHERS);
}

static void ap_soon(void (*work)(void), void *where)
{
    ap_where = where;
    ap_do(work);
}

static void test_exceptions(void)
{
    check(attempt(do_monitor) == 0, "MONITOR at CPL 0");
    monitor_ecx = 1;
    check(attempt(do_monitor) == GP, "MONITOR with an extension: #GP");
    monitor_ecx = 0;
    mwait_ecx = 2;
    check(attempt(do_mwait) == GP, "MWAIT with ECX bit 1: #GP");
    mwait_ecx = 1u << 31;
    check(attempt(do_mwait) == GP, "MWAIT with ECX bit 31: #GP");
    mwait_ecx = 0;
    check(attempt_at(do_monitor, true) == UD, "MONITOR at CPL 3: #UD");
    check(attempt_at(do_mwait, true) == UD, "MWAIT at CPL 3: #UD");
}

static void test_not_armed(void)
{
    timer_in(LONG * 1000);
    do_monitor();
    touch(&line[3]);
    check(waited(do_sti_mwait, 0) < LONG / 2, "a store after MONITOR: no rest");
    check(waited(do_sti_mwait, 0) < LONG / 2, "and not again");
    timer_off();
}

static void test_interrupt(void)
{
    uint32_t us;
    int before = timer_count;

    do_monitor();
    timer_in(SHORT * 1000);
    us = waited(do_sti_mwait, 0);
    check(short_rest(us) && timer_count == before + 1,
          "an interrupt ends the rest");
    timer_in(LONG * 1000);
    check(waited(do_sti_mwait, 0) < LONG / 2, "MWAIT after that: no rest");
    timer_off();
}

static void test_masked_interrupt(void)
{
    uint32_t us;
    int before = timer_count;

    do_monitor();
    timer_in(SHORT * 1000);
    us = waited(do_mwait, 1);
    check(short_rest(us),
          "ECX bit 0, IF 0: a masked interrupt ends the rest");
    check(timer_pending() && timer_count == before, "and is not delivered");
    do_monitor();
    check(waited(do_mwait, 1) < LONG / 2,
          "ECX bit 0, IF 0, one pending: no rest");
    interrupts();
    check(timer_count == before + 1, "it is delivered once IF is 1");

    do_monitor();
    timer_in(1000);
    ap_soon(ap_store_byte, line);
    us = waited(do_mwait, 0);
    check(short_rest(us),
          "ECX 0, IF 0: a masked interrupt does not end the rest");
    check(timer_pending(), "and stays pending");
    interrupts();
    ap_done();
}

static void test_nmi(void)
{
    int before = nmi_count;
    uint32_t us;

    do_monitor();
    ap_soon(ap_nmi, 0);
    us = waited(do_mwait, 0);
    check(short_rest(us) && nmi_count == before + 1, "an NMI ends the rest");
    ap_done();
}

/* Does this store end the rest?  A timer 5 ms from now does otherwise. */
static bool store_ends(void (*store)(void), void *where)
{
    uint32_t us;

    do_monitor();
    timer_in(LONG * 1000);
    ap_soon(store, where);
    us = waited(do_sti_mwait, 0);
    ap_done();
    timer_off();
    interrupts();
    return short_rest(us);
}

static void test_store(void)
{
    uint8_t *first = (uint8_t *)line;

    check(store_ends(ap_store_byte, first), "a store of the same value");
    check(store_ends(ap_store_byte, first + 63), "a store to the last byte");
    check(store_ends(ap_store_across, first - 4), "a store across the begin");
    check(!store_ends(ap_store_byte, first - 1), "not the byte before it");
    check(!store_ends(ap_store_byte, first + 64), "not the byte after it");
}

/* The counters stand still in C1, the TSC does not. */
static void test_counters(void)
{
    uint64_t mperf, aperf, tsc;

    do_monitor();
    timer_in(SHORT * 1000);
    tsc = rdtsc();
    mperf = msr(0xe7);
    aperf = msr(0xe8);
    waited(do_sti_mwait, 0);
    mperf = msr(0xe7) - mperf;
    aperf = msr(0xe8) - aperf;
    tsc = rdtsc() - tsc;
    check(tsc > tsc_per_ms * SHORT / 2000, "the TSC runs on");
    check(mperf > 0 && mperf < tsc / 2, "MPERF stands still");
    check(aperf > 0 && aperf < tsc, "APERF stands still");
}

/* Bits 7:4 of the hint are the C-state less 1, so that 15 is C0: no rest. */
static void test_hint_c0(void)
{
    uint32_t us;

    mwait_eax = 0xf0;
    do_monitor();
    timer_in(LONG * 1000);
    us = waited(do_sti_mwait, 0);
    mwait_eax = 0;
    timer_off();
    check(us < LONG / 2, "hint 0xf0: C0, no rest");
}

int main(void)
{
    uint32_t regs[4];

    setup();
    cpuid(1, regs);
    check(regs[2] >> 3 & 1, "CPUID 1 ECX bit 3: MONITOR");
    cpuid(5, regs);
    check(regs[0] == 64 && regs[1] == 64, "CPUID 5: lines of 64 bytes");
    check((regs[2] & 3) == 3, "CPUID 5: ECX bit 0 of MWAIT is there");
    test_exceptions();
    start_ap();
    test_not_armed();
    test_interrupt();
    test_masked_interrupt();
    test_nmi();
    test_store();
    test_hint_c0();
    test_counters();
    return checked();
}
