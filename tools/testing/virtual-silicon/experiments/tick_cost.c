// SPDX-License-Identifier: GPL-2.0
/*
 * Runs arch_scale_freq_tick() of a kernel object in user space and counts its
 * instructions, one by one; tick_cost.py builds and calls this.
 *
 * RDMSR faults here: the handler stands for the counters, at a clock of 1.5 times
 * base. It and RDTSC are left out of the count. For the time, the
 * assembler source has a counter in memory in place of both.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

void arch_scale_freq_tick(void);
void ap_init_aperfmperf(void);
extern unsigned long arch_freq_scale;
extern char __start_ticktext[], __stop_ticktext[];

/* Entries that static branches are patched by, if the object has them */
struct jump_entry { int32_t code, target; int64_t key; };
extern struct jump_entry __start___jump_table[] __attribute__((weak));
extern struct jump_entry __stop___jump_table[] __attribute__((weak));
extern char arch_scale_freq_key[];

/* What the object refers to */
unsigned int fake_counter = 1;
unsigned long this_cpu_off, pcpu_hot[16], jiffies = 1000, cpu_khz = 2000000, tsc_khz = 2000000;

static uint64_t aperf = 1, mperf = 1;

static void set_writable(void *at)
{
	mprotect((void *)((uintptr_t)at & ~4095ul), 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
}

/* The static branch of invariance: its jumps become NOPs and the other way round */
static void switch_on(void)
{
	for (struct jump_entry *e = __start___jump_table; e < __stop___jump_table; e++) {
		unsigned char *code = (unsigned char *)&e->code + e->code;
		char *target = (char *)&e->target + e->target;
		char *key = (char *)&e->key + (e->key & ~3ll);

		if (key != arch_scale_freq_key)
			continue;
		set_writable(code);
		if (*code == 0xeb)
			memcpy(code, "\x66\x90", 2);
		else if (*code == 0xe9)
			memcpy(code, "\x0f\x1f\x44\x00\x00", 5);
		else if (*code == 0x66) {
			code[0] = 0xeb;
			code[1] = target - (char *)code - 2;
		} else {
			int32_t rel = target - (char *)code - 5;

			code[0] = 0xe9;
			memcpy(code + 1, &rel, 4);
		}
	}
	*(int *)arch_scale_freq_key = 1;
}

static void on_rdmsr(int sig, siginfo_t *info, void *data)
{
	greg_t *r = ((ucontext_t *)data)->uc_mcontext.gregs;
	uint8_t *code = (uint8_t *)r[REG_RIP];
	uint64_t value;

	(void)sig;
	(void)info;
	if (code[0] != 0x0f || code[1] != 0x32) {
		fprintf(stderr, "tick_cost: fault at %p\n", code);
		_exit(1);
	}
	value = r[REG_RCX] == 0xe8 ? aperf : mperf;
	r[REG_RAX] = (uint32_t)value;
	r[REG_RDX] = value >> 32;
	r[REG_RIP] += 2;
}

static void one_tick(void)
{
	aperf += 12000000;
	mperf += 8000000;
	jiffies++;
	arch_scale_freq_tick();
}

static void child(void)
{
	struct sigaction sa = { .sa_sigaction = on_rdmsr, .sa_flags = SA_SIGINFO };

	sigaction(SIGSEGV, &sa, NULL);
	syscall(SYS_arch_prctl, ARCH_SET_GS, 0ul);
	switch_on();
	one_tick();
	one_tick();
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	one_tick();
	_exit(arch_freq_scale & 0xff);
}

static int count(void)
{
	int status, counted = 0;
	pid_t pid = fork();

	if (!pid)
		child();
	waitpid(pid, &status, 0);
	for (;;) {
		struct user_regs_struct r;
		int sig = WSTOPSIG(status);
		long code;

		ptrace(PTRACE_GETREGS, pid, 0, &r);
		code = ptrace(PTRACE_PEEKTEXT, pid, r.rip, 0) & 0xffff;
		if ((char *)r.rip >= __start_ticktext && (char *)r.rip < __stop_ticktext &&
		    sig != SIGSEGV && code != 0x320f && code != 0x310f)
			counted++;
		ptrace(PTRACE_SINGLESTEP, pid, 0, sig == SIGSEGV ? SIGSEGV : 0);
		waitpid(pid, &status, 0);
		if (WIFEXITED(status))
			break;
	}
	printf("scale %d of 1024 (low byte)\n", WEXITSTATUS(status));
	return counted;
}

static double ns_per_call(void (*call)(void))
{
	struct timespec a, b;
	double best = 1e9;

	for (int round = 0; round < 50; round++) {
		clock_gettime(CLOCK_MONOTONIC, &a);
		for (int i = 0; i < 100000; i++)
			call();
		clock_gettime(CLOCK_MONOTONIC, &b);
		double ns = ((b.tv_sec - a.tv_sec) * 1e9 + b.tv_nsec - a.tv_nsec) / 1e5;

		best = ns < best ? ns : best;
	}
	return best;
}

static void nothing(void)
{
	__asm__ volatile("" ::: "memory");
}

/* With an argument, the time: the object has no reads then */
int main(int argc, char **argv)
{
	(void)argv;
	if (argc == 1) {
		printf("instructions %d\n", count());
		return 0;
	}
	syscall(SYS_arch_prctl, ARCH_SET_GS, 0ul);
	switch_on();
	ap_init_aperfmperf();
	printf("ns %.2f\n", ns_per_call(arch_scale_freq_tick) - ns_per_call(nothing));
	return 0;
}
