// SPDX-License-Identifier: GPL-2.0
/*
 * vs-waitpkg: what the SDM says of UMONITOR, UMWAIT and TPAUSE, tried from
 * user mode (volume 2, the pages of the three instructions).
 *
 * Output is KTAP.  Runs on CPU 0; CPU 1 does the stores.
 */
#include "vs-common.h"

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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

static void umonitor(const void *line)
{
	asm volatile("umonitor %0" : : "r" (line) : "memory");
}

/* Both return EFLAGS as the instruction left them; all were set before. */
#define WAIT(insn, operand, deadline) ({				\
	uint64_t flags_ = FLAGS_ARITH, d_ = (deadline);			\
	asm volatile("pushf; orq %1, (%%rsp); popf\n\t"			\
		     insn " %2\n\t"					\
		     "pushf; pop %0"					\
		     : "=&r" (flags_)					\
		     : "r" (flags_), "r" ((uint32_t)(operand)),		\
		       "a" ((uint32_t)d_), "d" ((uint32_t)(d_ >> 32))	\
		     : "cc", "memory");					\
	flags_ & FLAGS_ARITH; })

#define UMWAIT(operand, deadline)	WAIT("umwait", operand, deadline)
#define TPAUSE(operand, deadline)	WAIT("tpause", operand, deadline)

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

static void set_limit(const char *ticks)
{
	int fd = open(MAX_TIME, O_WRONLY);

	if (fd < 0 || write(fd, ticks, strlen(ticks)) < 0) {
		printf("Bail out! cannot write %s\n", MAX_TIME);
		exit(1);
	}
	close(fd);
}

static char line[64] __attribute__((aligned(64)));
static volatile int go;

/*
 * CPU 1 stores to the line when told to; @stored is when.  The value is the
 * same as before: what counts is the store.
 */
static volatile uint64_t stored;
static volatile bool ready;

static void *storer(void)
{
	ready = true;
	for (;;) {
		while (!go)
			asm volatile("pause");
		if (go < 0)
			return NULL;
		for (uint64_t t = tsc() + NEAR_TICKS; tsc() < t; )
			;
		((volatile char *)line)[5] = 0;
		stored = tsc();
		go = 0;
	}
}

static void *pinned_storer(void *arg)
{
	(void)arg;
	pin(1);
	return storer();
}

static void do_umonitor_null(void)	{ umonitor(NULL); }
static void do_reserved(void)		{ TPAUSE(2, 0); }
static void do_reserved_umwait(void)	{ umonitor(line); UMWAIT(0x80000000, 0); }
static void do_tpause(void)		{ TPAUSE(0, 0); }
static void do_umwait(void)		{ umonitor(line); UMWAIT(0, 0); }

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
	uint64_t t0, t1, flags;

	t0 = tsc();
	flags = TPAUSE(0, t0);
	result(!flags && tsc() - t0 < NEAR_TICKS,
	       "TPAUSE: a deadline that has passed returns at once, flags clear");
	t0 = tsc();
	flags = TPAUSE(0, t0 + NEAR_TICKS);
	t1 = tsc();
	result(t1 - t0 >= NEAR_TICKS && t1 - t0 < 2 * NEAR_TICKS && !flags,
	       "TPAUSE: until the deadline, carry clear");
	t0 = tsc();
	flags = TPAUSE(1, t0 + NEAR_TICKS);
	t1 = tsc();
	result(t1 - t0 >= NEAR_TICKS && t1 - t0 < 2 * NEAR_TICKS && !flags,
	       "TPAUSE: C0.1 the same");
}

static void test_limit(void)
{
	uint64_t t0, t1, flags;

	set_limit("40000");
	t0 = tsc();
	flags = TPAUSE(0, t0 + FAR_TICKS);
	t1 = tsc();
	result(flags == FLAG_CF && t1 - t0 >= 40000 && t1 - t0 < 400000,
	       "TPAUSE: the system's limit ends it, carry set");
	umonitor(line);
	t0 = tsc();
	flags = UMWAIT(0, t0 + FAR_TICKS);
	t1 = tsc();
	result(flags == FLAG_CF && t1 - t0 >= 40000 && t1 - t0 < 400000,
	       "UMWAIT: the system's limit ends it, carry set");
	t0 = tsc();
	flags = TPAUSE(0, t0 + 20000);
	result(!flags, "TPAUSE: a deadline before the limit leaves carry clear");
	set_limit("0");
}

static void test_store(void)
{
	uint64_t t0, t1, flags = 0;

	/* interrupts may end it before the store: then wait again */
	stored = 0;
	go = 1;
	do {
		umonitor(line);
		if (stored)
			break;
		flags |= UMWAIT(0, tsc() + FAR_TICKS);
	} while (!stored);
	t1 = tsc();
	result(!flags && t1 - stored < NEAR_TICKS,
	       "UMWAIT: a store of the same value by another CPU ends it");
	while (go)
		;

	umonitor(line);
	go = 1;
	while (go)
		;
	t0 = tsc();
	UMWAIT(0, t0 + FAR_TICKS);
	result(tsc() - t0 < NEAR_TICKS,
	       "UMWAIT: a store between UMONITOR and UMWAIT is not lost");

	t0 = tsc();
	UMWAIT(0, t0 + FAR_TICKS);
	result(tsc() - t0 < NEAR_TICKS, "UMWAIT: not armed, returns at once");
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
		TPAUSE(0, t0 + 10 * FAR_TICKS);
	result(alarms && tsc() - t0 < 5 * FAR_TICKS,
	       "TPAUSE: an interrupt ends it");
}

static void test_faults(void)
{
	faults(do_umonitor_null, SIGSEGV,
	       "UMONITOR: checks its address as a load does");
	faults(do_umonitor32, 0, "UMONITOR: address size override");
	faults(do_reserved, SIGSEGV, "TPAUSE: #GP for reserved operand bits");
	faults(do_reserved_umwait, SIGSEGV,
	       "UMWAIT: #GP for reserved operand bits");
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	faults(do_tpause, SIGSEGV, "TPAUSE: #GP with CR4.TSD in user mode");
	faults(do_umwait, SIGSEGV, "UMWAIT: #GP with CR4.TSD in user mode");
	prctl(PR_SET_TSC, PR_TSC_ENABLE);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	signal(SIGSEGV, on_fault);
	signal(SIGILL, on_fault);
	printf("KTAP version 1\n");
	if (argc > 1 && !strcmp(argv[1], "--absent")) {
		printf("1..2\n");
		faults(do_tpause, SIGILL, "TPAUSE: #UD without WAITPKG");
		faults(do_umwait, SIGILL, "UMONITOR: #UD without WAITPKG");
		return failed;
	}
	printf("1..16\n");
	pin(0);
	set_limit("0");
	thread = start_thread(pinned_storer, NULL);
	while (!ready)
		;
	test_deadline();
	test_limit();
	test_store();
	test_interrupt();
	test_faults();
	go = -1;
	pthread_join(thread, NULL);
	return failed;
}
