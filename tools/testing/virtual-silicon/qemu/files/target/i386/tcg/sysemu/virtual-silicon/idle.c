/*
 * Virtual silicon: instructions that rest, and what ends the rest.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Intel SDM volume 2, MONITOR, MWAIT, UMONITOR, UMWAIT, TPAUSE.
 */
#include "qemu/osdep.h"
#include "qemu/lockable.h"
#include "exec/exec-all.h"
#include "exec/helper-proto.h"
#include "exec/store-watch.h"
#include "hw/i386/apic.h"
#include "hw/i386/apic_internal.h"
#include "internal.h"
#include "target/i386/virtual-silicon.h"
#include "target/i386/tcg/helper-tcg.h"

#define UMWAIT_NO_C02       1u          /* IA32_UMWAIT_CONTROL bit 0 */
#define UMWAIT_LIMIT_MASK   (~3u)       /* bits 31:2, TSC quanta, 0 = none */
#define UMWAIT_OPERAND_C01  1u

bool vs_has_waitpkg(CPUState *cs)
{
    return vs_present(cs) && vs_thread(cs)->config->machine->has_umwait;
}

bool vs_pauses(CPUState *cs)
{
    return vs_thread(cs)->config->machine->speed->pause_cycles;
}

bool vs_has_call(CPUState *cs)
{
    VsThread *t = vs_thread(cs);
    int any = CPU_INTERRUPT_HARD | CPU_INTERRUPT_POLL;

    return t && (qatomic_read(&t->called) ||
                 (t->break_on_irq && (cs->interrupt_request & any)));
}

static bool idle_awaited(CPUState *cs)
{
    if (cs->interrupt_request & CPU_INTERRUPT_POLL) {
        apic_poll_irq(X86_CPU(cs)->apic_state);
        cpu_reset_interrupt(cs, CPU_INTERRUPT_POLL);
    }
    return cpu_has_work(cs);
}

/* Ends the rest of @t from outside; BQL held. */
void vs_idle_call(VsThread *t, VsReason reason)
{
    t->reason = reason;
    qatomic_set(&t->called, true);
    cpu_interrupt(t->cs, CPU_INTERRUPT_EXITTB);
}

static void idle_stored(CPUState *cs)
{
    vs_idle_call(vs_thread(cs), VS_STORE);
}

static void idle_deadline(void *opaque)
{
    VsThread *t = opaque;

    vs_idle_call(t, t->deadline_is_limit ? VS_LIMIT : VS_DEADLINE);
}

/* Did the local APIC's timer fire at @event?  It is used once at a time. */
static bool timer_fired(CPUState *cs, int64_t event)
{
    DeviceState *apic = X86_CPU(cs)->apic_state;

    return apic && APIC_COMMON(apic)->next_time == event;
}

static VsReason wake_reason(const VsThread *t, int64_t event)
{
    int request = t->cs->interrupt_request;

    if (t->called) {
        return t->reason;
    }
    if ((request & CPU_INTERRUPT_HARD) && timer_fired(t->cs, event)) {
        return VS_TIMER;
    }
    return request & CPU_INTERRUPT_NMI ? VS_NMI :
           request & CPU_INTERRUPT_HARD ? VS_IRQ : VS_OTHER;
}

static void idle_rest(CPUState *cs, int64_t now)
{
    QEMU_LOCK_GUARD(&vs_thread(cs)->vs->lock);
    vs_model_rest(vs_thread(cs), now);
}

static int64_t idle_wake(CPUState *cs, int64_t event)
{
    VsThread *t = vs_thread(cs);
    VsReason reason = wake_reason(t, event);

    timer_del(t->deadline);
    store_watch_disarm(cs);
    /*
     * The carry flag tells that the operating system's limit ended it.  The
     * flags are in eflags while the vCPU is outside of cpu_exec().
     */
    if (reason == VS_LIMIT) {
        X86_CPU(cs)->env.eflags |= CC_C;
    }
    QEMU_LOCK_GUARD(&t->vs->lock);
    return vs_model_wake(t, event, reason);
}

/* Units of budget that an instruction takes, by the privilege of its block. */
static unsigned idle_insn_cost(const VirtualSiliconModel *model,
                               uint32_t tb_flags)
{
    const VsConfig *c = &vs_of_model(model)->config;

    return (tb_flags & HF_CPL_MASK ?
            c->machine->speed->user_cycles_per_1000_insns :
            c->machine->speed->kernel_cycles_per_1000_insns) / c->cycle_unit;
}

static int64_t idle_ready(CPUState *cs)
{
    return vs_thread(cs)->core->ready;
}

/*
 * An instruction takes cycles / f, of which memory_permille is time that the
 * clock does not shorten: with m that share and b the base frequency
 *
 *   t(f) = cycles * ((1 - m) / f + m / b)
 *
 * The budget is counted in units of cycle_unit / 1000 cycles of the machine's
 * first kind of core; another kind does work_permille of that work in a cycle.
 */
static void idle_speed(CPUState *cs, uint64_t *num, uint64_t *den)
{
    const VsConfig *c = vs_thread(cs)->config;
    uint64_t khz = vs_thread(cs)->core->khz;
    uint64_t base = c->clock.base_ratio * c->clock.bus_khz;
    uint64_t m = c->machine->speed->memory_permille;

    *num = khz * c->work_permille / 1000;
    *den = 1000 * c->cycle_unit;
    if (m) {
        *den = *den * ((1000 - m) * base + m * khz) / (1000 * base);
    }
    if (vs_core_shared(vs_thread(cs))) {
        *num = *num * c->machine->speed->smt_permille / 1000;
    }
}

static void idle_round(const VirtualSiliconModel *model, int64_t now)
{
    VirtualSilicon *vs = vs_of_model(model);

    QEMU_LOCK_GUARD(&vs->lock);
    for (unsigned i = 0; i < vs->npackages; i++) {
        if (vs->packages[i]->changed) {
            vs_model_update(vs->packages[i], now);
        }
    }
    vs_trace_energy(vs, now);
}

static void idle_finish(const VirtualSiliconModel *model, int64_t now)
{
    VirtualSilicon *vs = vs_of_model(model);

    QEMU_LOCK_GUARD(&vs->lock);
    vs_finish(vs, now);
}

/* What @by does to @cs takes to reach it. */
static int64_t idle_signal(CPUState *by, CPUState *cs, bool store)
{
    const VirtualSiliconSpeed *speed = vs_thread(cs)->vs->machine->speed;
    bool remote = vs_thread(by)->core->package != vs_thread(cs)->core->package;

    return (int64_t)(store ? speed->store_ns : speed->ipi_ns) +
           (remote ? speed->remote_ns : 0);
}

const VirtualSiliconOps vs_ops = {
    .insn_cost = idle_insn_cost,
    .speed = idle_speed,
    .ready = idle_ready,
    .round = idle_round,
    .rest = idle_rest,
    .wake = idle_wake,
    .awaited = idle_awaited,
    .stored = idle_stored,
    .signal_ns = idle_signal,
    .finish = idle_finish,
};

void vs_idle_init(VsThread *t)
{
    t->deadline = timer_new_ns(QEMU_CLOCK_VIRTUAL, idle_deadline, t);
}

void vs_idle_reset(VsThread *t)
{
    timer_del(t->deadline);
    store_watch_disarm(t->cs);
}

static void monitor_line(CPUX86State *env, target_ulong addr, uintptr_t ra)
{
    CPUState *cs = env_cpu(env);
    VsThread *t = vs_thread(cs);
    void *host = probe_access(env, addr, 1, MMU_DATA_LOAD,
                              cpu_mmu_index(env, false), ra);

    qatomic_set(&t->called, false);
    if (host) {
        store_watch_arm(cs, qemu_ram_addr_from_host(host), host);
    } else {
        store_watch_disarm(cs);         /* not write-back memory */
    }
}

/* Leaves the execution loop; @rest: halted until something calls. */
static G_NORETURN void leave(CPUX86State *env, bool rest)
{
    CPUState *cs = env_cpu(env);

    env->hflags &= ~HF_INHIBIT_IRQ_MASK;
    cs->halted = rest;
    cs->exception_index = rest ? EXCP_HLT : EXCP_INTERRUPT;
    cpu_loop_exit(cs);
}

/* Armed, and no store since: MWAIT and UMWAIT rest only then. */
static bool still_armed(CPUX86State *env)
{
    return store_watch_armed(env_cpu(env)) &&
           !qatomic_read(&vs_thread(env_cpu(env))->called);
}

void vs_monitor(CPUX86State *env, target_ulong addr, uintptr_t ra)
{
    if ((uint32_t)env->regs[R_ECX] != 0) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
    }
    monitor_line(env, addr, ra);
}

/*
 * The state for an MWAIT hint; 0xF in bits 7:4 is C0, no rest.  A hint that the
 * machine does not have gets the deepest state of a C-state number (bits 7:4)
 * not above the one asked for.
 */
static unsigned hint_state(const VsConfig *c, uint32_t hint)
{
    unsigned best = VS_MWAIT;

    if (hint >> 4 == 0xf) {
        return VS_C0;
    }
    for (unsigned i = VS_MWAIT; i < c->nstates; i++) {
        const VsState *s = &c->states[i];

        for (unsigned h = 0; h < s->nhints; h++) {
            if (s->hints[h] == hint) {
                return i;
            }
        }
        if (s->nhints && (s->hints[0] >> 4) <= ((hint >> 4) & 0xf)) {
            best = i;
        }
    }
    return best;
}

void vs_mwait(CPUX86State *env, int next_eip_addend, uintptr_t ra)
{
    VsThread *t = vs_thread(env_cpu(env));
    uint32_t extensions = env->regs[R_ECX];

    if (extensions & ~1u) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
    }
    env->eip += next_eip_addend;
    if (!still_armed(env)) {
        leave(env, false);
    }
    t->rest_state = hint_state(t->config, env->regs[R_EAX] & 0xff);
    if (t->rest_state == VS_C0) {
        t->rest_state = VS_MWAIT;
        store_watch_disarm(env_cpu(env));
        leave(env, false);
    }
    t->break_on_irq = extensions & 1;
    leave(env, true);
}

/*
 * A read of the port of a state (AMD, and what ACPI calls SystemIO): the vCPU
 * rests after the instruction until an interrupt, masked ones included.
 */
void vs_inb(CPUX86State *env, uint32_t port)
{
    const VsConfig *c = vs_thread(env_cpu(env))->config;
    CPUState *cs = env_cpu(env);
    VsThread *t = vs_thread(cs);

    for (unsigned i = VS_MWAIT; i < c->nstates; i++) {
        if (c->states[i].port && c->states[i].port == port) {
            qatomic_set(&t->called, false);
            t->break_on_irq = true;
            t->rest_state = i;
            cs->halted = 1;
            cs->exception_index = EXCP_HLT;
            cpu_exit(cs);
            return;
        }
    }
}

/* Time passes by instructions: PAUSE uses up what its cycles are. */
void helper_lockstep_pause(CPUX86State *env)
{
    VsThread *t = vs_thread(env_cpu(env));
    const VsConfig *c = t->config;
    uint16_t *left = &env_archcpu(env)->neg.icount_decr.u16.low;
    uint64_t asked = c->machine->speed->pause_cycles;
    uint64_t units = MIN(asked * c->work_permille / c->cycle_unit, *left);
    uint64_t cycles = units * c->cycle_unit / c->work_permille;

    *left -= units;
    t->paused += cycles;
    t->pause_cycles += cycles;
}

static void check_waitpkg(CPUX86State *env, uint32_t operand, uintptr_t ra)
{
    bool forbidden = (env->cr[4] & CR4_TSD_MASK) &&
                     (env->hflags & HF_CPL_MASK);

    if (forbidden || (operand & ~UMWAIT_OPERAND_C01)) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
    }
}

void helper_umonitor(CPUX86State *env, target_ulong addr)
{
    monitor_line(env, addr, GETPC());
}

/*
 * Sets the timer for the nearer of the instruction's deadline and the operating
 * system's limit.  False: the deadline has passed.
 */
static bool set_deadline(CPUX86State *env, VsThread *t)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    uint64_t tsc = vs_tsc(env, now);
    uint64_t deadline = (uint32_t)env->regs[R_EAX] |
                        (uint64_t)(uint32_t)env->regs[R_EDX] << 32;
    uint64_t limit = t->umwait_control & UMWAIT_LIMIT_MASK;

    if (deadline <= tsc) {
        return false;
    }
    t->deadline_is_limit = limit && limit < deadline - tsc;
    if (t->deadline_is_limit) {
        deadline = tsc + limit;
    }
    timer_mod(t->deadline, vs_tsc_to_ns(env, deadline));
    return true;
}

void helper_umwait(CPUX86State *env, uint32_t operand, int next_eip_addend,
                   uint32_t monitored)
{
    VsThread *t = vs_thread(env_cpu(env));
    bool c01 = (operand & UMWAIT_OPERAND_C01) ||
               (t->umwait_control & UMWAIT_NO_C02);

    check_waitpkg(env, operand, GETPC());
    env->eip += next_eip_addend;
    /* all arithmetic flags are cleared; idle_wake() may set the carry */
    env->cc_src = 0;
    env->cc_op = CC_OP_EFLAGS;
    if (!monitored) {
        store_watch_disarm(env_cpu(env));
        qatomic_set(&t->called, false);
    } else if (!still_armed(env)) {
        leave(env, false);
    }
    if (!set_deadline(env, t)) {
        leave(env, false);
    }
    t->break_on_irq = true;
    t->rest_state = c01 ? VS_C01 : VS_C02;
    leave(env, true);
}
