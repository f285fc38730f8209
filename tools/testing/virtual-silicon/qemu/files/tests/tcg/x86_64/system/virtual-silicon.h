/*
 * Virtual silicon: what its guest programs share.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Code runs at CPL 0 with interrupts off.  attempt() runs a function and tells
 * which exception ended it; vectors TIMER and NMI are counted on the first CPU.
 * A second one executes what ap_do() gives it, and halts otherwise.
 */
#ifndef TEST_VIRTUAL_SILICON_H
#define TEST_VIRTUAL_SILICON_H

#include <stdbool.h>
#include <stdint.h>
#include "minilib.h"

#define NMI         2
#define UD          6
#define GP          13
#define TIMER       0x20
#define WORK        0x21
#define USER_EXIT   0x80

#define CODE        0x08
#define USER_DATA   0x1b
#define USER_CODE   0x23
#define TSS         0x28

#define FLAGS_ARITHMETIC    0x8d5       /* OF SF ZF AF PF CF */
#define FLAG_CARRY          0x001

#define TRAMPOLINE  0x8000
#define AP_CR3      0x8ff0
#define AP_GDTR     0x8fe0

#define LAPIC_ID    0x20
#define LAPIC_EOI   0xb0
#define LAPIC_SVR   0xf0
#define LAPIC_IRR   0x200
#define LAPIC_ICR   0x300
#define LAPIC_ICR2  0x310
#define LAPIC_LVTT  0x320
#define LAPIC_TICR  0x380
#define LAPIC_TCCR  0x390
#define LAPIC_TDCR  0x3e0

#define TO_OTHERS   0xc0000             /* all excluding self */

struct pointer {
    uint16_t limit;
    uint64_t base;
} __attribute__((packed));

static uint64_t gdt[7] = {
    0, 0x00af9b000000ffff, 0x00cf93000000ffff, 0x00cff3000000ffff,
    0x00affb000000ffff,
};
static uint64_t idt[256][2];
static uint8_t tss[104] __attribute__((aligned(16)));
static uint8_t stacks[3][16384] __attribute__((aligned(16)));

static volatile int timer_count, nmi_count;     /* by interrupts */
static void (*volatile ap_work)(void);          /* read by the other CPU */
static uint64_t tsc_per_ms;

/* The monitored line and its neighbours. */
static uint64_t lines[3][8] __attribute__((aligned(64)));
#define line (lines[1])

/* int attempt_at(void (*fn)(void), bool user): vector of an exception, or 0 */
int attempt_at(void (*fn)(void), bool user);
uint64_t attempt_rsp;
void exception_ud(void);
void exception_gp(void);
void exception_exit(void);
void user_exit(void);
void ap_trampoline(void);
void ap_trampoline_end(void);
void ap_main(void);
uint8_t *const ap_stack = stacks[1] + sizeof(stacks[1]);

asm(".text\n"
    "attempt_at:\n"
    "   push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
    "   mov %rsp, attempt_rsp\n"
    "   test %esi, %esi\n"
    "   jnz 1f\n"
    "   call *%rdi\n"
    "   xor %eax, %eax\n"
    "   jmp 2f\n"
    "1: lea stacks + 3 * 16384 - 8, %rax\n"
    "   movq $user_exit, (%rax)\n"
    "   pushq $0x1b; push %rax; pushq $2; pushq $0x23; push %rdi\n"
    "   iretq\n"
    "exception_ud:\n"
    "   mov $6, %eax\n"
    "   jmp 3f\n"
    "exception_gp:\n"
    "   mov $13, %eax\n"
    "   jmp 3f\n"
    "exception_exit:\n"
    "   xor %eax, %eax\n"
    "3: mov attempt_rsp, %rsp\n"
    "2: pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
    "   ret\n"
    "user_exit:\n"
    "   int $0x80\n"
    ".code16\n"
    "ap_trampoline:\n"
    "   cli\n"
    "   xor %ax, %ax\n"
    "   mov %ax, %ds\n"
    "   movl 0x8ff0, %eax\n"
    "   movl %eax, %cr3\n"
    "   movl $0x20, %eax\n"
    "   movl %eax, %cr4\n"
    "   movl $0xc0000080, %ecx\n"
    "   rdmsr\n"
    "   btsl $8, %eax\n"
    "   wrmsr\n"
    "   lgdtl 0x8fe0\n"
    "   movl $0x80000011, %eax\n"
    "   movl %eax, %cr0\n"
    "   ljmpl $8, $ap_long\n"
    "ap_trampoline_end:\n"
    ".code64\n"
    "ap_long:\n"
    "   mov $0x10, %eax\n"
    "   mov %eax, %ds; mov %eax, %es; mov %eax, %ss\n"
    "   mov ap_stack, %rsp\n"
    "   call ap_main\n");

static inline uint64_t rdtsc(void)
{
    uint32_t lo, hi;

    asm volatile("rdtsc" : "=a" (lo), "=d" (hi) : : "memory");
    return lo | (uint64_t)hi << 32;
}

static inline void cpuid(uint32_t leaf, uint32_t regs[4])
{
    asm volatile("cpuid" : "=a" (regs[0]), "=b" (regs[1]), "=c" (regs[2]),
                 "=d" (regs[3]) : "a" (leaf), "c" (0));
}

static inline uint32_t lapic_read(uint32_t reg)
{
    uint32_t val;

    asm volatile("mov (%1), %0" : "=r" (val) : "r" (0xfee00000ull + reg));
    return val;
}

static inline void lapic_write(uint32_t reg, uint32_t val)
{
    asm volatile("mov %0, (%1)" : : "r" (val), "r" (0xfee00000ull + reg));
}

/* An interrupt in so many ns, at the clock of QEMU's local APIC. */
static inline void timer_in(uint32_t ns)
{
    lapic_write(LAPIC_LVTT, TIMER);
    lapic_write(LAPIC_TDCR, 0xb);
    lapic_write(LAPIC_TICR, ns);
}

static inline void timer_off(void)
{
    lapic_write(LAPIC_TICR, 0);
}

static inline bool timer_pending(void)
{
    return lapic_read(LAPIC_IRR + TIMER / 32 * 0x10) >> (TIMER % 32) & 1;
}

/* Lets what is pending in. */
static inline void interrupts(void)
{
    asm volatile("sti; nop; nop; cli" : : : "memory");
}

static __attribute__((interrupt)) void timer_interrupt(void *frame)
{
    timer_count += !lapic_read(LAPIC_ID);
    lapic_write(LAPIC_EOI, 0);
}

static __attribute__((interrupt)) void work_interrupt(void *frame)
{
    lapic_write(LAPIC_EOI, 0);
}

static __attribute__((interrupt)) void nmi_interrupt(void *frame)
{
    nmi_count++;
}

/* A store of what is there already. */
static inline void touch(void *byte)
{
    asm volatile("mov (%0), %%al; mov %%al, (%0)"
                 : : "r" (byte) : "al", "memory");
}

static inline int attempt(void (*fn)(void))
{
    return attempt_at(fn, false);
}

static uint32_t msr_number;
static uint64_t msr_value;

static inline void do_rdmsr(void)
{
    uint32_t lo, hi;

    asm volatile("rdmsr" : "=a" (lo), "=d" (hi) : "c" (msr_number));
    msr_value = lo | (uint64_t)hi << 32;
}

static inline void do_wrmsr(void)
{
    asm volatile("wrmsr" : : "c" (msr_number), "a" ((uint32_t)msr_value),
                 "d" ((uint32_t)(msr_value >> 32)));
}

/* 0, or the exception that it raised */
static inline int rdmsr(uint32_t msr, uint64_t *val)
{
    int vector;

    msr_number = msr;
    vector = attempt(do_rdmsr);
    *val = msr_value;
    return vector;
}

static inline int wrmsr(uint32_t msr, uint64_t val)
{
    msr_number = msr;
    msr_value = val;
    return attempt(do_wrmsr);
}

static inline uint64_t msr(uint32_t number)
{
    uint64_t val;

    return rdmsr(number, &val) ? ~0ull : val;
}

static int checks, failures;

static inline void check(bool good, const char *what)
{
    checks++;
    failures += !good;
    ml_printf("%s %d %s\n", good ? "ok" : "not ok", checks, what);
}

static inline int checked(void)
{
    ml_printf("1..%d\n", checks);
    return failures ? 1 : 0;
}

static inline void load_idt(void)
{
    struct pointer to_idt = { sizeof(idt) - 1, (uintptr_t)idt };

    asm volatile("lidt %0" : : "m" (to_idt));
    lapic_write(LAPIC_SVR, 0x1ff);
}

static inline void sleep_us(uint32_t us)
{
    uint64_t end = rdtsc() + us * tsc_per_ms / 1000;

    timer_in(us * 1000);
    while (rdtsc() < end) {
        asm volatile("sti; hlt; cli" : : : "memory");
    }
}

void ap_main(void)
{
    load_idt();
    for (;;) {
        if (ap_work) {
            ap_work();
            ap_work = 0;
        } else {
            asm volatile("sti; hlt; cli" : : : "memory");
        }
    }
}

static inline void ap_do(void (*work)(void))
{
    ap_work = work;
    lapic_write(LAPIC_ICR, 0x4000 | TO_OTHERS | WORK);
}

static inline void ap_done(void)
{
    while (ap_work) {
        asm volatile("pause");
    }
}

static inline void set_gate(int vector, void *handler, int dpl)
{
    uint64_t to = (uintptr_t)handler;

    idt[vector][0] = (to & 0xffff) | (uint64_t)CODE << 16 |
                     (0x8e00ull | dpl << 13) << 32 | (to >> 16 & 0xffff) << 48;
    idt[vector][1] = to >> 32;
}

static inline void start_ap(void)
{
    uint8_t *to = (uint8_t *)TRAMPOLINE;
    uint8_t *code = (uint8_t *)ap_trampoline;
    uint64_t cr3;

    for (int i = 0; i < (uint8_t *)ap_trampoline_end - code; i++) {
        to[i] = code[i];
    }
    asm volatile("mov %%cr3, %0" : "=r" (cr3));
    *(uint32_t *)AP_CR3 = cr3;
    *(struct pointer *)AP_GDTR = (struct pointer) {
        sizeof(gdt) - 1, (uintptr_t)gdt };
    lapic_write(LAPIC_ICR, 0x4500 | TO_OTHERS);                 /* INIT */
    sleep_us(1000);
    lapic_write(LAPIC_ICR, 0x4600 | TO_OTHERS | TRAMPOLINE >> 12);
}

/* By CPUID 15H; by the definition of P0, where that is empty (AMD). */
static inline uint64_t tsc_khz(void)
{
    uint32_t regs[4];
    uint64_t p0;

    cpuid(0x15, regs);
    if (regs[0] && regs[1] && regs[2]) {
        return (uint64_t)regs[2] * regs[1] / regs[0] / 1000;
    }
    p0 = msr(0xc0010064);
    return (p0 & 0xff) * 200000 / (p0 >> 8 & 0x3f);
}

static inline void setup(void)
{
    struct pointer to_gdt = { sizeof(gdt) - 1, (uintptr_t)gdt };
    uint64_t base = (uintptr_t)tss;

    *(uint64_t *)(tss + 4) = (uintptr_t)(stacks[0] + sizeof(stacks[0]));
    gdt[5] = 103 | (base & 0xffffff) << 16 | 0x89ull << 40 |
             (base >> 24 & 0xff) << 56;
    gdt[6] = base >> 32;
    set_gate(NMI, nmi_interrupt, 0);
    set_gate(UD, exception_ud, 0);
    set_gate(GP, exception_gp, 0);
    set_gate(TIMER, timer_interrupt, 0);
    set_gate(WORK, work_interrupt, 0);
    set_gate(USER_EXIT, exception_exit, 3);
    asm volatile("lgdt %0; ltr %w1" : : "m" (to_gdt), "r" (TSS));
    /* nothing from the interrupt controllers of the firmware */
    asm volatile("out %b0, $0x21; out %b0, $0xa1" : : "a" (0xff));
    load_idt();
    tsc_per_ms = tsc_khz();
}

#endif
