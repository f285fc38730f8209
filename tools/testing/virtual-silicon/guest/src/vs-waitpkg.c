// SPDX-License-Identifier: GPL-2.0
/*
 * vs-waitpkg: what programs see of UMONITOR and TPAUSE under a kernel. The other rules of the
 * SDM are asked by the emulator's own program, virtual-silicon-umwait.c.
 *
 * Output is KTAP.
 */
#include "vs-common.h"

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/time.h>

#define MAX_TIME	CPUS "umwait_control/max_time"
#define FLAGS_ARITH	0x8d5		/* OF SF ZF AF PF CF */
#define FLAG_CF		1
#define FAR_TICKS	40000000ull	/* 20 ms at 2 GHz: longer than any limit here */
#define NEAR_TICKS	200000ull	/* 0.1 ms */

static sigjmp_buf fault_jump;
static volatile int fault_signal;
static int cases, failed;

static void on_fault(int sig)
{
	fault_signal = sig;
	siglongjmp(fault_jump, 1);
}

static uint64_t tsc(void)
{
	uint32_t lo, hi;

	asm volatile("rdtsc" : "=a" (lo), "=d" (hi));
	return lo | (uint64_t)hi << 32;
}

/* EFLAGS as the instruction left them; all were set before. */
static uint64_t tpause(uint32_t operand, uint64_t deadline)
{
	uint64_t flags = FLAGS_ARITH;

	asm volatile("pushf; orq %1, (%%rsp); popf\n\t"
		     "tpause %2\n\t"
		     "pushf; pop %0"
		     : "=&r" (flags)
		     : "r" (flags), "r" (operand),
		       "a" ((uint32_t)deadline), "d" ((uint32_t)(deadline >> 32))
		     : "cc", "memory");
	return flags & FLAGS_ARITH;
}

static void result(bool ok, const char *name)
{
	printf("%sok %d %s\n", ok ? "" : "not ", ++cases, name);
	failed += !ok;
}

/* Runs @what, which must raise @sig (0: nothing). */
static void faults(void (*what)(void), int sig, const char *name)
{
	fault_signal = 0;
	if (!sigsetjmp(fault_jump, 1))
		what();
	result(fault_signal == sig, name);
}

static void do_umonitor_null(void)
{
	asm volatile("umonitor %0" : : "r" (0ull) : "memory");
}

static void do_umonitor32(void)
{
	void *low = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	/* address size 32: the upper half of the register does not count */
	asm volatile("addr32 umonitor %0"
		     : : "r" ((uint64_t)low | 0xdead00000000ull) : "memory");
}

static void test_deadline(void)
{
	uint64_t t0 = tsc(), flags = tpause(1, t0 + NEAR_TICKS), t1 = tsc();

	result(t1 - t0 >= NEAR_TICKS && t1 - t0 < 2 * NEAR_TICKS && !flags,
	       "TPAUSE: in C0.1 until the deadline, carry clear");
}

static void test_limit(void)
{
	uint64_t t0, t1, flags;

	write_text(MAX_TIME, "40000");
	t0 = tsc();
	flags = tpause(0, t0 + FAR_TICKS);
	t1 = tsc();
	result(flags == FLAG_CF && t1 - t0 >= 40000 && t1 - t0 < 400000,
	       "TPAUSE: the system's limit ends it, carry set");
	write_text(MAX_TIME, "0");
}

static volatile int alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void test_interrupt(void)
{
	struct itimerval it = { .it_value.tv_usec = 5000 };
	uint64_t t0;

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &it, NULL);
	t0 = tsc();
	while (!alarms && tsc() - t0 < 10 * FAR_TICKS)
		tpause(0, t0 + 10 * FAR_TICKS);
	result(alarms && tsc() - t0 < 5 * FAR_TICKS,
	       "TPAUSE: an interrupt ends it");
}

int main(void)
{
	signal(SIGSEGV, on_fault);
	signal(SIGILL, on_fault);
	printf("KTAP version 1\n1..5\n");
	pin(0);
	write_text(MAX_TIME, "0");
	test_deadline();
	test_limit();
	test_interrupt();
	faults(do_umonitor_null, SIGSEGV, "UMONITOR: checks its address as a load does");
	faults(do_umonitor32, 0, "UMONITOR: address size override");
	return failed;
}
