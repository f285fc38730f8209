/*
 * Deterministic virtual time for several vCPUs of different speeds.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * One host thread executes all vCPUs.  Virtual time advances in rounds; in a
 * round every vCPU that is awake executes the same stretch [T, end) of virtual
 * time, one after the other, and its budget is the length of the stretch times
 * its speed.  Between rounds timers run and the model of the silicon renews the
 * speeds.  A round ends early at the next timer, so timers run at their time to
 * the nanosecond.
 *
 * The budget is in units that the model chooses: an instruction takes more or
 * fewer of them by the block it is in.  What is left of a stretch, but does not
 * pay for an instruction, is credit for the next.
 *
 * vCPUs that rest and are called in the round execute after all others, those
 * called first before those called later: the earliest of the calls counts, and
 * each executes from the moment it is awake, whatever its number.
 *
 * Nothing here reads a host clock, and a vCPU that is kicked out of its stretch
 * by another host thread is put back into it: where a stretch ends is decided
 * by budgets and timers alone.  What remains is that two vCPUs that execute may
 * see each other's stores and interrupts up to a round early or late.
 */
#include "qemu/osdep.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qemu/guest-random.h"
#include "qemu/rcu.h"
#include "qemu/timer.h"
#include "sysemu/cpus.h"
#include "sysemu/cpu-timers.h"
#include "sysemu/runstate.h"
#include "exec/exec-all.h"
#include "exec/virtual-silicon.h"
#include "tcg-accel-ops.h"
#include "lockstep.h"

#define LOCKSTEP_VCPUS 256

/**
 * LockstepVcpu: where a vCPU is in virtual time
 * @now: executed up to here, ns
 * @credit: budget (in 1/den of a unit) carried over
 * @event: time of the first event that ends its rest, if @called
 * @num, @den: units per ns in this stretch
 * @budget: units given to the stretch being executed
 */
typedef struct LockstepVcpu {
    int64_t now;
    int64_t credit;
    int64_t event;
    bool called;
    uint64_t num;
    uint64_t den;
    int64_t budget;
} LockstepVcpu;

static LockstepVcpu vcpus[LOCKSTEP_VCPUS];
static int64_t round_time;

/* The vCPU whose code this thread executes now; NULL between stretches. */
static __thread CPUState *executing;

/* The one whose stretch has just ended, while what it left to do is done. */
static __thread CPUState *finishing;

static LockstepVcpu *lockstep_vcpu(CPUState *cs)
{
    return &vcpus[cs->cpu_index];
}

static int64_t spent_units(CPUState *cs)
{
    return lockstep_vcpu(cs)->budget -
           (cpu_neg(cs)->icount_decr.u16.low + cs->icount_extra);
}

/* ns that @units take beyond what the credit has paid for */
static int64_t units_to_ns(const LockstepVcpu *v, int64_t units)
{
    int64_t due = units * (int64_t)v->den - v->credit;

    return due > 0 ? DIV_ROUND_UP(due, (int64_t)v->num) : 0;
}

int64_t lockstep_get_clock(void)
{
    if (executing) {
        LockstepVcpu *v = lockstep_vcpu(executing);

        return v->now + units_to_ns(v, spent_units(executing));
    }
    if (finishing) {
        return lockstep_vcpu(finishing)->now;
    }
    return qatomic_read_i64(&round_time);
}

void lockstep_kick_vcpu_thread(CPUState *cs)
{
    cpu_exit(cs);
}

void lockstep_handle_interrupt(CPUState *cs, int mask)
{
    LockstepVcpu *v = lockstep_vcpu(cs);
    CPUState *caller = executing ? executing : finishing;

    if (cs->halted) {
        int64_t event = lockstep_get_clock();

        if (caller && caller != cs) {
            /* a call without an interrupt comes from a store */
            event += virtual_silicon->ops->signal_ns(caller, cs,
                                    !(mask & ~CPU_INTERRUPT_EXITTB));
        }
        v->event = v->called ? MIN(v->event, event) : event;
        v->called = true;
    }
    tcg_handle_interrupt(cs, mask);
}

/* Absolute time of the next virtual timer, or INT64_MAX. */
static int64_t next_timer(void)
{
    int64_t left = qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL,
                                              QEMU_TIMER_ATTR_ALL);

    return left < 0 ? INT64_MAX : round_time + left;
}

/* Units that the next instruction of @cs takes. */
static unsigned insn_cost(CPUState *cs)
{
    target_ulong pc, cs_base;
    uint32_t flags;

    cpu_get_tb_cpu_state(cs->env_ptr, &pc, &cs_base, &flags);
    return virtual_silicon->ops->insn_cost(virtual_silicon, flags);
}

static void give_budget(CPUState *cs, int64_t units)
{
    int low = MIN(0xffff, units);

    lockstep_vcpu(cs)->budget = units;
    cs->icount_budget = units;
    cpu_neg(cs)->icount_decr.u16.low = low;
    cs->icount_extra = units - low;
}

/* Moves @cs on by what it spent of its budget. */
static void settle_stretch(CPUState *cs)
{
    LockstepVcpu *v = lockstep_vcpu(cs);
    int64_t units = spent_units(cs);
    int64_t ns = units_to_ns(v, units);

    v->credit += ns * (int64_t)v->num - units * (int64_t)v->den;
    v->now += ns;
    give_budget(cs, 0);
}

/* Executes @cs for at most @units; returns cpu_exec()'s reason. */
static int execute(CPUState *cs, int64_t units)
{
    int reason;

    qemu_mutex_unlock_iothread();
    give_budget(cs, units);
    executing = cs;
    reason = tcg_cpus_exec(cs);
    settle_stretch(cs);
    if (cs->halted) {
        lockstep_vcpu(cs)->credit = 0;
    }
    executing = NULL;
    qemu_mutex_lock_iothread();

    if (reason == EXCP_ATOMIC) {
        int64_t cost = insn_cost(cs);

        qemu_mutex_unlock_iothread();
        cpu_exec_step_atomic(cs);
        qemu_mutex_lock_iothread();
        lockstep_vcpu(cs)->credit -= cost * lockstep_vcpu(cs)->den;
    } else if (reason == EXCP_DEBUG) {
        cpu_handle_guest_debug(cs);
    }
    return reason;
}

/*
 * What came while @cs was still executing with interrupts off, and is pending,
 * ends its rest as it begins: nobody is going to call.
 */
static void note_pending(CPUState *cs)
{
    LockstepVcpu *v = lockstep_vcpu(cs);

    if (cs->halted && !v->called && virtual_silicon->ops->awaited(cs)) {
        v->called = true;
        v->event = v->now;
    }
}

/*
 * Executes @cs up to *@end.  A timer that is set meanwhile to an earlier time
 * brings *@end forward, for this vCPU and for those after it.
 */
static void run_stretch(CPUState *cs, int64_t *end)
{
    LockstepVcpu *v = lockstep_vcpu(cs);

    virtual_silicon->ops->speed(cs, &v->num, &v->den);
    v->now = MAX(v->now, virtual_silicon->ops->ready(cs));
    while (v->now < *end && cpu_can_run(cs) && !cs->halted) {
        int64_t ns = *end - v->now;
        int64_t units = (ns * (int64_t)v->num + v->credit) / (int64_t)v->den;

        if (units < insn_cost(cs)) {
            v->credit += ns * (int64_t)v->num;
            v->now = *end;
            break;
        }
        current_cpu = cs;
        if (execute(cs, units) == EXCP_INTERRUPT) {
            qatomic_mb_set(&cs->exit_request, 0);
        }
        finishing = cs;
        qemu_wait_io_event_common(cs);
        finishing = NULL;
        *end = MIN(*end, next_timer());
    }
    note_pending(cs);
}

/* Lets a vCPU that was called leave its rest.  False: it goes on resting. */
static bool leave_rest(CPUState *cs)
{
    LockstepVcpu *v = lockstep_vcpu(cs);
    bool called = v->called;

    v->called = false;
    if (!virtual_silicon->ops->awaited(cs)) {
        return false;
    }
    cs->halted = 0;
    v->now = virtual_silicon->ops->wake(cs, called ? v->event : round_time);
    return true;
}

/* The one that rests and was called first; NULL if none was. */
static CPUState *first_called(void)
{
    CPUState *cs, *first = NULL;

    CPU_FOREACH(cs) {
        LockstepVcpu *v = lockstep_vcpu(cs);

        if (cs->halted && v->called && cpu_can_run(cs) &&
            (!first || v->event < lockstep_vcpu(first)->event)) {
            first = cs;
        }
    }
    return first;
}

/*
 * One round; returns the time at which the next one starts, INT64_MAX if there
 * is nothing to wait for in virtual time.
 */
static int64_t run_round(void)
{
    int64_t end = MIN(round_time + virtual_silicon->quantum_ns, next_timer());
    int64_t first = INT64_MAX;
    CPUState *cs;

    CPU_FOREACH(cs) {
        if (!cpu_can_run(cs) ||
            (cs->halted && (lockstep_vcpu(cs)->called || !leave_rest(cs)))) {
            continue;
        }
        lockstep_vcpu(cs)->now = MAX(lockstep_vcpu(cs)->now, round_time);
        run_stretch(cs, &end);
    }
    while ((cs = first_called()) && lockstep_vcpu(cs)->event < end) {
        if (leave_rest(cs)) {
            run_stretch(cs, &end);
        }
    }
    if (cs) {
        return end;
    }
    CPU_FOREACH(cs) {
        if (cpu_can_run(cs) && !cs->halted) {
            first = MIN(first, lockstep_vcpu(cs)->now);
        }
    }
    /* Nobody executes before @first: go there, or to the next timer. */
    return MAX(end, MIN(first, next_timer()));
}

static void handle_requests(void)
{
    CPUState *cs;

    CPU_FOREACH(cs) {
        current_cpu = cs;
        qemu_wait_io_event_common(cs);
    }
}

/* Nothing can happen before the host does something: wait for it. */
static void wait_for_host(void)
{
    while (!runstate_is_running() || first_cpu->stopped) {
        qemu_cond_wait_iothread(first_cpu->halt_cond);
        handle_requests();
    }
}

static void lockstep_loop(void)
{
    for (;;) {
        int64_t next;

        /* let the main loop have the lock: nothing else may wait for it */
        qemu_mutex_unlock_iothread();
        qemu_mutex_lock_iothread();
        handle_requests();
        wait_for_host();

        if (next_timer() <= round_time) {
            qemu_clock_run_timers(QEMU_CLOCK_VIRTUAL);
        }
        virtual_silicon->ops->round(virtual_silicon, round_time);
        next = run_round();
        if (next == INT64_MAX) {
            qemu_cond_wait_iothread(first_cpu->halt_cond);
            continue;
        }
        qatomic_set_i64(&round_time, MAX(next, round_time));
    }
}

static void *lockstep_thread(void *arg)
{
    CPUState *cs = arg;

    rcu_register_thread();
    tcg_register_thread();
    qemu_mutex_lock_iothread();
    qemu_thread_get_self(cs->thread);
    cs->thread_id = qemu_get_thread_id();
    cs->can_do_io = 1;
    cpu_thread_signal_created(cs);
    qemu_guest_random_seed_thread_part2(cs->random_seed);

    while (first_cpu->stopped) {
        qemu_cond_wait_iothread(first_cpu->halt_cond);
        handle_requests();
    }
    lockstep_loop();
    return NULL;
}

void lockstep_start_vcpu_thread(CPUState *cs)
{
    static QemuCond *halt_cond;
    static QemuThread *thread;

    g_assert(cs->cpu_index < LOCKSTEP_VCPUS);
    tcg_cpu_init_cflags(cs, false);
    if (!thread) {
        thread = cs->thread = g_new0(QemuThread, 1);
        halt_cond = cs->halt_cond = g_new0(QemuCond, 1);
        qemu_cond_init(halt_cond);
        qemu_thread_create(thread, "lockstep", lockstep_thread, cs,
                           QEMU_THREAD_JOINABLE);
        return;
    }
    cs->thread = thread;
    cs->halt_cond = halt_cond;
    cs->thread_id = first_cpu->thread_id;
    cs->can_do_io = 1;
    cs->created = true;
}
