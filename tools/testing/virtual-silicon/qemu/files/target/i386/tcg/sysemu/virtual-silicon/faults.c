/*
 * Virtual silicon: breaking it on purpose.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What a fault is, and its values, is in qapi/virtual-silicon.json.  Faults
 * come with the object's property "faults" and by QMP, virtual-silicon-fault.
 */
#include "qemu/osdep.h"
#include "qapi/clone-visitor.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-misc-target.h"
#include "qapi/qapi-visit-virtual-silicon.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "internal.h"

/**
 * VsFault: a fault that was asked for
 * @reads: so many are left; 0: no limit
 */
struct VsFault {
    VirtualSilicon *vs;
    VirtualSiliconFault *what;
    uint64_t reads;
    bool active, over;
    QEMUTimer *begin, *end;
    VsFault *next;
};

/* The members that kinds have in common; NULL if this one lacks them. */
static const VirtualSiliconFaultStop *
fault_stop(const VirtualSiliconFault *what)
{
    switch (what->kind) {
    case VIRTUAL_SILICON_FAULT_KIND_FREEZE:
        return &what->u.freeze;
    case VIRTUAL_SILICON_FAULT_KIND_ZERO:
        return &what->u.zero;
    case VIRTUAL_SILICON_FAULT_KIND_RATE:
        return qapi_VirtualSiliconFaultRate_base(&what->u.rate);
    default:
        return NULL;
    }
}

static const VirtualSiliconFaultCounter *
fault_counter(const VirtualSiliconFault *what)
{
    const VirtualSiliconFaultStop *stop = fault_stop(what);

    if (what->kind == VIRTUAL_SILICON_FAULT_KIND_ADD) {
        return qapi_VirtualSiliconFaultAdd_base(&what->u.add);
    }
    return stop ? qapi_VirtualSiliconFaultStop_base(stop) : NULL;
}

static const VirtualSiliconFaultGp *
fault_register(const VirtualSiliconFault *what)
{
    switch (what->kind) {
    case VIRTUAL_SILICON_FAULT_KIND_GP:
        return &what->u.gp;
    case VIRTUAL_SILICON_FAULT_KIND_MSR:
        return qapi_VirtualSiliconFaultMsr_base(&what->u.msr);
    default:
        return NULL;
    }
}

static bool fault_hits(const VsFault *f, const VsThread *t)
{
    return !f->what->has_cpu || f->what->cpu == t->cs->cpu_index;
}

static bool fault_lasts(const VsFault *f)
{
    return f->active && !f->over;
}

uint64_t vs_shown(const VsShown *s, uint64_t count)
{
    unsigned __int128 since = count - s->count;

    return s->shown + since * s->permille / 1000;
}

/* From here on the counter shows @shown and counts at @permille. */
static void reshow(VsShown *s, uint64_t count, uint64_t shown,
                   unsigned permille)
{
    *s = (VsShown) { .count = count, .shown = shown, .permille = permille };
}

static void begin_counter(const VsFault *f, VsShown *s, uint64_t count)
{
    uint64_t shown = vs_shown(s, count);

    switch (f->what->kind) {
    case VIRTUAL_SILICON_FAULT_KIND_FREEZE:
        reshow(s, count, shown, 0);
        break;
    case VIRTUAL_SILICON_FAULT_KIND_ZERO:
        reshow(s, count, 0, 0);
        break;
    case VIRTUAL_SILICON_FAULT_KIND_RATE:
        reshow(s, count, shown, f->what->u.rate.permille);
        break;
    default:
        reshow(s, count, shown + f->what->u.add.cycles, s->permille);
        break;
    }
}

static bool fault_has_counter(const VsFault *f, VirtualSiliconCounter counter)
{
    const VirtualSiliconFaultCounter *c = fault_counter(f->what);

    return c && (c->counter == counter ||
                 c->counter == VIRTUAL_SILICON_COUNTER_BOTH);
}

static void fault_counters(const VsFault *f, VsThread *t, int64_t now,
                           bool begin)
{
    uint64_t aperf = vs_aperf(t, now), mperf = vs_mperf(t, now);

    if (fault_has_counter(f, VIRTUAL_SILICON_COUNTER_APERF)) {
        if (begin) {
            begin_counter(f, &t->shown_aperf, aperf);
        } else {
            reshow(&t->shown_aperf, aperf, vs_shown(&t->shown_aperf, aperf),
                   1000);
        }
    }
    if (fault_has_counter(f, VIRTUAL_SILICON_COUNTER_MPERF)) {
        if (begin) {
            begin_counter(f, &t->shown_mperf, mperf);
        } else {
            reshow(&t->shown_mperf, mperf, vs_shown(&t->shown_mperf, mperf),
                   1000);
        }
    }
}

static void fault_packages(VirtualSilicon *vs, int64_t now)
{
    for (unsigned i = 0; i < vs->npackages; i++) {
        vs->packages[i]->changed = true;
        if (!vs->tcg.deterministic) {
            vs_model_update(vs->packages[i], now);
        }
    }
}

static void fault_switch(VsFault *f, int64_t now, bool begin)
{
    f->active = begin;
    f->over = !begin;
    for (unsigned i = 0; i < VS_THREADS; i++) {
        VsThread *t = f->vs->threads[i];

        if (t && fault_hits(f, t)) {
            fault_counters(f, t, now, begin);
        }
    }
    if (f->what->kind == VIRTUAL_SILICON_FAULT_KIND_LIMIT) {
        fault_packages(f->vs, now);
    }
}

static void fault_wake(const VsFault *f)
{
    for (unsigned i = 0; i < VS_THREADS; i++) {
        VsThread *t = f->vs->threads[i];

        if (t && fault_hits(f, t) && t->state > VS_OFF) {
            vs_idle_call(t, VS_OTHER);
        }
    }
}

static void fault_begin(void *opaque)
{
    VsFault *f = opaque;
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

    if (f->over) {
        return;
    }
    if (f->what->kind == VIRTUAL_SILICON_FAULT_KIND_WAKE) {
        fault_wake(f);
        if (f->what->u.wake.has_every_ns) {
            timer_mod(f->begin, now + f->what->u.wake.every_ns);
        }
    }
    WITH_QEMU_LOCK_GUARD(&f->vs->lock) {
        if (!f->active) {
            fault_switch(f, now, true);
        }
        f->over = f->what->kind == VIRTUAL_SILICON_FAULT_KIND_ADD;
    }
    if (f->what->has_duration_ns && !timer_pending(f->end)) {
        timer_mod(f->end, now + f->what->duration_ns);
    }
}

static void fault_end(void *opaque)
{
    VsFault *f = opaque;

    timer_del(f->begin);
    QEMU_LOCK_GUARD(&f->vs->lock);
    if (fault_lasts(f)) {
        fault_switch(f, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL), false);
    }
    f->active = false;
}

/* One read of a fault that is limited by reads. */
static void fault_count(VsFault *f, int64_t now)
{
    if (f->reads && !--f->reads) {
        fault_switch(f, now, false);
    }
}

static bool fault_has_msr(const VsFault *f, uint32_t msr)
{
    const VirtualSiliconFaultGp *reg = fault_register(f->what);

    if (reg) {
        return reg->msr == msr;
    }
    return (msr == VS_REG_APERF &&
            fault_has_counter(f, VIRTUAL_SILICON_COUNTER_APERF)) ||
           (msr == VS_REG_MPERF &&
            fault_has_counter(f, VIRTUAL_SILICON_COUNTER_MPERF));
}

VsFaultResult vs_fault_register(VsThread *t, uint32_t msr, bool read,
                                int64_t now, uint64_t *val)
{
    VsFaultResult result = VS_FAULT_NONE;

    for (VsFault *f = t->vs->faults; f; f = f->next) {
        if (!fault_lasts(f) || !fault_hits(f, t) || !fault_has_msr(f, msr)) {
            continue;
        }
        if (f->what->kind == VIRTUAL_SILICON_FAULT_KIND_GP) {
            result = VS_FAULT_GP;
        } else if (f->what->kind == VIRTUAL_SILICON_FAULT_KIND_MSR && read) {
            *val = f->what->u.msr.value;
            result = VS_FAULT_VALUE;
        }
        if (read) {
            fault_count(f, now);
        }
    }
    return result;
}

void vs_fault_cpuid(const VsThread *t, uint32_t leaf, uint32_t sub,
                    uint32_t *regs[4])
{
    for (VsFault *f = t->vs->faults; f; f = f->next) {
        const VirtualSiliconFaultCpuid *c = &f->what->u.cpuid;

        if (f->what->kind == VIRTUAL_SILICON_FAULT_KIND_CPUID &&
            fault_lasts(f) && fault_hits(f, t) &&
            c->leaf == leaf && c->sub == sub) {
            *regs[c->reg] &= ~c->clear;
        }
    }
}

unsigned vs_fault_limit(const VsThread *t, unsigned ratio)
{
    for (VsFault *f = t->vs->faults; f; f = f->next) {
        if (f->what->kind == VIRTUAL_SILICON_FAULT_KIND_LIMIT &&
            fault_lasts(f) && fault_hits(f, t)) {
            ratio = MIN(ratio, f->what->u.limit.ratio);
        }
    }
    return ratio;
}

/* What the types leave open: NULL, or what must hold and does not. */
static const char *fault_wrong(const VirtualSilicon *vs,
                               const VirtualSiliconFault *what)
{
    const VirtualSiliconFaultGp *reg = fault_register(what);
    const VirtualSiliconFaultStop *stop = fault_stop(what);

    if (what->has_cpu &&
        (what->cpu >= VS_THREADS || !vs->threads[what->cpu])) {
        return "cpu must be one of the machine's";
    }
    if (what->has_duration_ns && !what->duration_ns) {
        return "duration-ns must be above 0";
    }
    if (what->at_ns > INT64_MAX / 2 || what->duration_ns > INT64_MAX / 2) {
        return "at-ns and duration-ns must be below 2^62";
    }
    if ((stop && stop->has_reads && !stop->reads) ||
        (reg && reg->has_reads && !reg->reads)) {
        return "reads must be above 0";
    }
    if (what->kind == VIRTUAL_SILICON_FAULT_KIND_WAKE &&
        what->u.wake.has_every_ns &&
        (what->u.wake.every_ns < 1000 ||
         what->u.wake.every_ns > INT64_MAX / 2)) {
        return "every-ns must be 1000 or more, and below 2^62";
    }
    if (what->kind == VIRTUAL_SILICON_FAULT_KIND_LIMIT &&
        !what->u.limit.ratio) {
        return "ratio must be above 0";
    }
    return NULL;
}

static VsFault *fault_new(VirtualSilicon *vs, const VirtualSiliconFault *what)
{
    const VirtualSiliconFaultGp *reg = fault_register(what);
    const VirtualSiliconFaultStop *stop = fault_stop(what);
    VsFault *f = g_new0(VsFault, 1);

    f->vs = vs;
    f->what = QAPI_CLONE(VirtualSiliconFault, what);
    f->reads = stop ? stop->reads : reg ? reg->reads : 0;
    f->begin = timer_new_ns(QEMU_CLOCK_VIRTUAL, fault_begin, f);
    f->end = timer_new_ns(QEMU_CLOCK_VIRTUAL, fault_end, f);
    return f;
}

static void fault_append(VsFault *f)
{
    VsFault **last = &f->vs->faults;

    QEMU_LOCK_GUARD(&f->vs->lock);
    while (*last) {
        last = &(*last)->next;
    }
    qatomic_set(last, f);
}

/* The machine's CPUs must be there. */
bool vs_fault_add(VirtualSilicon *vs, const VirtualSiliconFault *what,
                  Error **errp)
{
    const char *wrong = fault_wrong(vs, what);
    VsFault *f;

    if (wrong) {
        error_setg(errp, "fault %s: %s",
                   VirtualSiliconFaultKind_str(what->kind), wrong);
        return false;
    }
    f = fault_new(vs, what);
    fault_append(f);
    if (what->at_ns > qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL)) {
        timer_mod(f->begin, what->at_ns);
    } else {
        fault_begin(f);
    }
    return true;
}

void qmp_virtual_silicon_fault(VirtualSiliconFault *what, Error **errp)
{
    VsThread *t = first_cpu ? vs_thread(first_cpu) : NULL;

    if (!t) {
        error_setg(errp, "the machine has no virtual silicon (yet)");
        return;
    }
    vs_fault_add(t->vs, what, errp);
}
