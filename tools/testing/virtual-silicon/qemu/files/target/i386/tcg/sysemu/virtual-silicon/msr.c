/*
 * Virtual silicon: registers and CPUID leaves.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layouts: Intel SDM volume 4.
 */
#include "qemu/osdep.h"
#include "qemu/lockable.h"
#include "exec/exec-all.h"
#include "internal.h"
#include "target/i386/virtual-silicon.h"
#include "target/i386/tcg/helper-tcg.h"

enum {
    REG_TSC             = 0x10,
    REG_UCODE_REV       = 0x8b,
    REG_UMWAIT_CONTROL  = 0xe1,
    REG_MISC_ENABLE     = 0x1a0,
    REG_AMD_MPERF_RO    = 0xc00000e7,
    REG_AMD_APERF_RO    = 0xc00000e8,
    /* in the range that the SDM reserves for software, see trace.c */
    REG_MARK            = 0x400000f0,
};

/* Enhanced SpeedStep and automatic thermal control are on. */
#define MISC_ENABLE_FIXED   (1ull << 16 | 1ull << 3)

/*
 * Those that the SDM, volume 4, table 2-2 names for some part; 38: turbo off.
 * Writing any other raises #GP.
 */
#define MISC_ENABLE_BITS    (1ull << 38 | 1ull << 34 | 0x00d51889ull)

static int64_t clock_now(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static uint64_t tsc_khz(CPUX86State *env)
{
    return vs_thread(env_cpu(env))->config->clock.tsc_khz;
}

uint64_t vs_raw_tsc(CPUX86State *env)
{
    return muldiv64(clock_now(), tsc_khz(env), 1000000);
}

uint64_t vs_tsc(CPUX86State *env, int64_t now)
{
    return muldiv64(now, tsc_khz(env), 1000000) + env->tsc_offset;
}

/* The first ns at which the counter shows @tsc or more. */
int64_t vs_tsc_to_ns(CPUX86State *env, uint64_t tsc)
{
    uint64_t raw = tsc - env->tsc_offset;
    unsigned __int128 ns = (unsigned __int128)raw * 1000000 +
                           tsc_khz(env) - 1;

    ns /= tsc_khz(env);
    return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

static uint32_t energy_units(const VirtualSiliconPower *p, VsEnergy e)
{
    if (p->energy_unit_uj) {
        return e.uj / p->energy_unit_uj;
    }
    return ((unsigned __int128)e.uj << p->energy_unit_shift) / 1000000;
}

static bool read_energy(const VsThread *t, uint32_t msr, int64_t now,
                        uint64_t *val)
{
    const VirtualSiliconPower *p = t->vs->machine->power;

    if (msr == p->package_msr) {
        *val = energy_units(p, vs_package_energy(t->core->package, now));
    } else if (msr == p->cores_msr) {
        *val = energy_units(p, vs_cores_energy(t->core->package, now));
    } else if (msr == p->core_msr) {
        *val = energy_units(p, vs_core_energy(t->core, now));
    } else if (msr == p->dram_msr) {
        *val = (uint32_t)(vs_dram_energy(t->vs, now).uj * 1000 /
                          p->dram_unit_nj);
    } else {
        return false;
    }
    return true;
}

static uint64_t state_ticks(const VsThread *t, unsigned state, int64_t now)
{
    return muldiv64(vs_core_state_ns(t->core, state, now),
                    t->vs->config.clock.tsc_khz, 1000000);
}

/*
 * States may share a register, as C1 and C1E do.  Each is rounded by itself, so
 * that what a register holds beyond another is never a tick less than before.
 */
static bool read_residency(const VsThread *t, uint32_t msr, int64_t now,
                           uint64_t *val)
{
    const VsConfig *c = &t->vs->config;
    uint64_t ticks = 0;
    bool found = false;

    for (unsigned i = VS_MWAIT; i < c->nstates; i++) {
        if (c->states[i].residency_msr == msr ||
            (found && t->config->residency_deeper && !c->states[i].active)) {
            ticks += state_ticks(t, i, now);
            found = true;
        }
    }
    if (found) {
        *val = ticks;
        return true;
    }
    for (unsigned i = 1; i < c->nlevels; i++) {
        if (c->levels[i].residency_msr == msr) {
            *val = vs_level_ticks(t->core->package, i, now);
            return true;
        }
    }
    return false;
}

bool vs_described_read(const VsThread *t, uint32_t msr, uint64_t *val)
{
    gpointer key = GUINT_TO_POINTER(msr);
    uint64_t *own = g_hash_table_lookup(t->registers, key);
    const VirtualSiliconMsr *reg = g_hash_table_lookup(t->config->registers,
                                                       key);

    if (!reg) {
        return false;
    }
    *val = own ? *own : reg->value;
    return true;
}

static bool read_register(CPUX86State *env, const VsThread *t, uint32_t msr,
                          int64_t now, uint64_t *val)
{
    switch (msr) {
    case REG_TSC:
        *val = vs_tsc(env, now);
        return true;
    case REG_AMD_MPERF_RO:
        if (!t->vs->config.npstates) {
            return false;
        }
        /* fall through */
    case VS_REG_MPERF:
        *val = vs_shown(&t->shown_mperf, vs_mperf(t, now)) /
               t->vs->config.clock.counter_unit;
        return true;
    case REG_AMD_APERF_RO:
        if (!t->vs->config.npstates) {
            return false;
        }
        /* fall through */
    case VS_REG_APERF:
        *val = vs_shown(&t->shown_aperf, vs_aperf(t, now)) /
               t->vs->config.clock.counter_unit;
        return true;
    case REG_MISC_ENABLE:
        *val = env->msr_ia32_misc_enable | t->misc_enable | MISC_ENABLE_FIXED;
        return true;
    case REG_UMWAIT_CONTROL:
        *val = t->umwait_control;
        return t->vs->machine->has_umwait;
    }
    return msr && (vs_request_read(t, msr, val) ||
                   vs_limits_read(t, msr, val) ||
                   read_energy(t, msr, now, val) ||
                   read_residency(t, msr, now, val) ||
                   vs_described_read(t, msr, val));
}

bool vs_rdmsr(CPUX86State *env, uint32_t msr, uint64_t *val, uintptr_t ra)
{
    VsThread *t = vs_thread(env_cpu(env));
    int64_t now = clock_now();
    VsFaultResult fault;
    bool known;

    WITH_QEMU_LOCK_GUARD(&t->vs->lock) {
        known = read_register(env, t, msr, now, val);
        fault = vs_fault_register(t, msr, true, now, val);
    }
    if (fault == VS_FAULT_GP) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
    }
    return known || fault == VS_FAULT_VALUE;
}

/* The guest has set the counter; it goes on from there. */
static void set_counter(VsShown *s, uint64_t count, uint64_t val, unsigned unit)
{
    *s = (VsShown) { .count = count,
                     .shown = val * unit,
                     .permille = s->permille };
}

/* Returns false if the register does not take @val. */
static bool write_described(VsThread *t, uint32_t msr, uint64_t val)
{
    gpointer key = GUINT_TO_POINTER(msr);
    const VirtualSiliconMsr *reg = g_hash_table_lookup(t->config->registers,
                                                       key);
    uint64_t old = reg->value;

    vs_described_read(t, msr, &old);
    if (!reg->has_mask || ((val ^ old) & ~reg->mask)) {
        return false;
    }
    g_hash_table_insert(t->registers, key, g_memdup2(&val, sizeof(val)));
    return true;
}

static VsWrite write_register(CPUX86State *env, VsThread *t, uint32_t msr,
                              uint64_t val, int64_t now)
{
    VsWrite result;
    uint64_t old;

    switch (msr) {
    case REG_TSC:
        env->tsc_offset += val - vs_tsc(env, now);
        return VS_WRITE_DONE;
    case REG_UCODE_REV:         /* written before CPUID(1) to latch it */
        return VS_WRITE_DONE;
    case VS_REG_MPERF:
        set_counter(&t->shown_mperf, vs_mperf(t, now), val,
                    t->config->clock.counter_unit);
        return VS_WRITE_DONE;
    case VS_REG_APERF:
        set_counter(&t->shown_aperf, vs_aperf(t, now), val,
                    t->config->clock.counter_unit);
        return VS_WRITE_DONE;
    case REG_MISC_ENABLE:
        if (val & ~MISC_ENABLE_BITS) {
            return VS_WRITE_FAULT;
        }
        env->msr_ia32_misc_enable = val & ~(1ull << 38);
        return vs_request_write(t, msr, val, now);
    case REG_UMWAIT_CONTROL:
        if (!t->vs->machine->has_umwait) {
            return VS_WRITE_PASS;
        }
        if (val & (~0ull << 32 | 2)) {
            return VS_WRITE_FAULT;
        }
        t->umwait_control = val;
        return VS_WRITE_DONE;
    case REG_MARK:
        vs_trace_mark(t, now, val);
        return VS_WRITE_DONE;
    }
    result = vs_request_write(t, msr, val, now);
    if (result != VS_WRITE_PASS) {
        return result;
    }
    if (g_hash_table_contains(t->config->registers,
                              GUINT_TO_POINTER(msr))) {
        return write_described(t, msr, val) ? VS_WRITE_DONE : VS_WRITE_FAULT;
    }
    if (msr && (read_energy(t, msr, now, &old) ||
                read_residency(t, msr, now, &old))) {
        return VS_WRITE_FAULT;
    }
    return VS_WRITE_PASS;
}

bool vs_wrmsr(CPUX86State *env, uint32_t msr, uint64_t val, uintptr_t ra)
{
    VsThread *t = vs_thread(env_cpu(env));
    int64_t now = clock_now();
    VsWrite result;

    WITH_QEMU_LOCK_GUARD(&t->vs->lock) {
        result = vs_fault_register(t, msr, false, now, NULL) == VS_FAULT_GP
                 ? VS_WRITE_FAULT : write_register(env, t, msr, val, now);
    }
    if (result == VS_WRITE_FAULT) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
    }
    return result == VS_WRITE_DONE;
}

/* SDM volume 3, 15.3.2.1: it reads 0 while MISC_ENABLE bit 38 is set. */
#define CPUID_6_EAX_TURBO   (1u << 1)

/*
 * APM volume 3, appendix E: levels of the topology, as leaf 0xB has them.  What
 * kind of core it is comes from the machine file.
 */
#define CPUID_AMD_TOPOLOGY  0x80000026

static void add_amd_topology(CPUX86State *env, uint32_t sub, uint32_t *regs[4])
{
    uint32_t level[4];

    cpu_x86_cpuid(env, 0xb, sub, &level[0], &level[1], &level[2], &level[3]);
    *regs[0] |= level[0];
    *regs[1] |= level[1];
    *regs[2] = level[2];
    *regs[3] = level[3];
}

typedef enum LeafOp { LEAF_REPLACE, LEAF_SET, LEAF_CLEAR } LeafOp;

static void apply_leaves(const VirtualSiliconCpuidList *list, LeafOp op,
                         uint32_t leaf, uint32_t sub, uint32_t *regs[4])
{
    for (; list; list = list->next) {
        const VirtualSiliconCpuid *l = list->value;
        uint32_t words[4] = { l->eax, l->ebx, l->ecx, l->edx };

        if (l->leaf != leaf || (l->has_sub && l->sub != sub)) {
            continue;
        }
        for (unsigned reg = 0; reg < 4; reg++) {
            switch (op) {
            case LEAF_REPLACE:
                *regs[reg] = words[reg];
                break;
            case LEAF_SET:
                *regs[reg] |= words[reg];
                break;
            case LEAF_CLEAR:
                *regs[reg] &= ~words[reg];
                break;
            }
        }
    }
}

void vs_cpuid(CPUX86State *env, uint32_t leaf, uint32_t sub,
                   uint32_t *eax, uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
    const VsThread *t = vs_thread(env_cpu(env));
    uint32_t *regs[4] = { eax, ebx, ecx, edx };

    apply_leaves(t->config->machine->cpuid, LEAF_REPLACE, leaf, sub, regs);
    apply_leaves(t->config->class_leaves, LEAF_REPLACE, leaf, sub, regs);
    apply_leaves(t->config->machine->cpuid_clear, LEAF_CLEAR, leaf, sub, regs);
    apply_leaves(t->config->machine->cpuid_set, LEAF_SET, leaf, sub, regs);
    if (leaf == CPUID_AMD_TOPOLOGY && env->cpuid_xlevel >= leaf) {
        add_amd_topology(env, sub, regs);
    }
    if (leaf == 6 && vs_turbo_disabled(t)) {
        *eax &= ~CPUID_6_EAX_TURBO;
    }
    if (t->vs->faults) {
        QEMU_LOCK_GUARD(&t->vs->lock);
        vs_fault_cpuid(t, leaf, sub, regs);
    }
}
