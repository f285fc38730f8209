/*
 * Virtual silicon: the machine as the model needs it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Types and their ranges are those of qapi/virtual-silicon.json; what members
 * have to do with each other is checked here.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "internal.h"

static unsigned list_length(const void *list)
{
    unsigned n = 0;

    for (const GenericList *e = list; e; e = e->next) {
        n++;
    }
    return n;
}

static bool length_is(const void *list, unsigned least, unsigned most,
                      const char *what, Error **errp)
{
    unsigned n = list_length(list);

    if (n < least || n > most) {
        error_setg(errp, "machine.%s: needs %u to %u entries, not %u", what,
                   least, most, n);
        return false;
    }
    return true;
}

static bool set_clock(VsConfig *c, const VirtualSiliconClock *k, Error **errp)
{
    c->clock = *k;
    if (!k->tsc_khz || !k->bus_khz || !k->counter_unit || !k->domain_cpus) {
        error_setg(errp, "machine.clock: tsc-khz, bus-khz, counter-unit and "
                   "domain-cpus must be above 0");
        return false;
    }
    if (!k->min_ratio || k->min_ratio > k->base_ratio ||
        k->base_ratio > k->max_ratio) {
        error_setg(errp, "machine.clock: needs 0 < min-ratio <= base-ratio <= "
                   "max-ratio, not %u, %u, %u", k->min_ratio, k->base_ratio,
                   k->max_ratio);
        return false;
    }
    return true;
}

static bool set_turbo(VsConfig *c, const VirtualSiliconTurboBinList *list,
                      Error **errp)
{
    if (!length_is(list, 1, VS_BINS, "turbo", errp)) {
        return false;
    }
    for (; list; list = list->next) {
        c->bin_cores[c->nbins] = list->value->cores;
        c->bin_ratios[c->nbins++] = list->value->ratio;
    }
    return true;
}

static bool set_pstates(VsConfig *c, const VirtualSiliconPstates *p,
                        Error **errp)
{
    const uint8List *r;

    if (!length_is(p->ratios, 1, VS_PSTATES, "pstates.ratios", errp)) {
        return false;
    }
    for (r = p->ratios; r; r = r->next) {
        c->pstate_ratios[c->npstates++] = r->value;
    }
    c->cppc_nominal = p->cppc_nominal;
    return true;
}

static unsigned ratios(const VsConfig *c)
{
    return c->clock.max_ratio - c->clock.min_ratio + 1;
}

/* One value for each ratio; NULL if there are more or less. */
static uint64_t *by_ratio(const VsConfig *c, const uint32List *list,
                          const char *what, Error **errp)
{
    unsigned n = ratios(c), i = 0;
    uint64_t *values;

    if (list_length(list) != n) {
        error_setg(errp, "machine.%s: needs %u entries, one for each ratio, "
                   "not %u", what, n, list_length(list));
        return NULL;
    }
    values = g_new(uint64_t, n);
    for (; list; list = list->next) {
        values[i++] = list->value;
    }
    return values;
}

static bool set_exit(VsState *s, const VirtualSiliconQuantileList *list,
                     Error **errp)
{
    unsigned n = list_length(list);
    bool rises = true;

    for (; list && s->nexits < VS_QUANTILES; list = list->next) {
        s->exit_ppm[s->nexits] = list->value->ppm;
        s->exit_ns[s->nexits] = list->value->ns;
        s->timer_ns[s->nexits] = list->value->timer_ns;
        rises &= list->value->timer_ns <= list->value->ns &&
                 (!s->nexits ||
                  s->exit_ppm[s->nexits] > s->exit_ppm[s->nexits - 1]);
        s->nexits++;
    }
    if (!n || n > VS_QUANTILES || !rises) {
        error_setg(errp, "machine: %s: exit needs 1 to %d points whose ppm "
                   "rises, with timer-ns not above ns", s->name, VS_QUANTILES);
        return false;
    }
    return true;
}

static bool set_rest(const VsConfig *c, VsState *s, const VirtualSiliconRest *r,
                     Error **errp)
{
    s->exit_cycles = r->exit_cycles;
    s->entry_ns = r->entry_ns;
    s->entry_cycles = r->entry_cycles;
    s->power_uw = by_ratio(c, r->power_uw, "idle.rest.power-uw", errp);
    return s->power_uw && set_exit(s, r->exit, errp);
}

/* Those that every machine has; C0.1 and C0.2 are entered by UMWAIT only. */
static bool set_fixed_states(VsConfig *c, const VirtualSiliconMachine *m,
                             Error **errp)
{
    unsigned n = ratios(c);
    VsState *s = c->states;

    s[VS_C0] = (VsState) { .name = "C0", .active = true, .unhalted = true };
    s[VS_C0].power_uw = by_ratio(c, m->power->active_uw, "power.active-uw",
                                 errp);
    if (!s[VS_C0].power_uw) {
        return false;
    }
    s[VS_OFF] = (VsState) { .name = "off", .power_uw = g_new0(uint64_t, n) };
    s[VS_C01] = s[VS_C02] = s[VS_C0];
    s[VS_C01].name = "C0.1";
    s[VS_C02].name = "C0.2";
    c->nstates = VS_MWAIT;
    return !m->has_umwait ||
           (set_rest(c, &s[VS_C01], m->umwait->c01, errp) &&
            set_rest(c, &s[VS_C02], m->umwait->c02, errp));
}

static bool set_state(const VsConfig *c, VsState *s,
                      const VirtualSiliconIdleState *i, Error **errp)
{
    unsigned n = list_length(i->hints);
    const uint8List *h;

    if (!n == !i->has_port || n > VS_HINTS) {
        error_setg(errp, "machine.idle: %s: needs 1 to %d hints, or a port",
                   i->name, VS_HINTS);
        return false;
    }
    *s = (VsState) {
        .name = i->name,
        .port = i->port,
        .active = i->active,
        .residency_msr = i->residency_msr,
    };
    for (h = i->hints; h; h = h->next) {
        s->hints[s->nhints++] = h->value;
    }
    return set_rest(c, s, i->rest, errp);
}

static bool set_idle(VsConfig *c, const VirtualSiliconIdleStateList *list,
                     Error **errp)
{
    if (!length_is(list, 1, VS_STATES - VS_MWAIT, "idle", errp)) {
        return false;
    }
    for (; list; list = list->next) {
        if (!set_state(c, &c->states[c->nstates++], list->value, errp)) {
            return false;
        }
    }
    return true;
}

static bool set_level(VsConfig *c, const VirtualSiliconPackageState *p,
                      Error **errp)
{
    for (unsigned i = VS_MWAIT; i < c->nstates; i++) {
        if (g_str_equal(c->states[i].name, p->core_state)) {
            c->levels[c->nlevels++] = (VsLevel) {
                .name = p->name,
                .core_state = i,
                .uncore_uw = p->uncore_uw,
                .exit_ns = p->exit_ns,
                .residency_msr = p->residency_msr,
            };
            return true;
        }
    }
    error_setg(errp, "machine.package: %s: core-state '%s' is no idle state "
               "of the machine", p->name, p->core_state);
    return false;
}

static bool set_levels(VsConfig *c, const VirtualSiliconMachine *m,
                       Error **errp)
{
    if (!length_is(m->package, 0, VS_LEVELS - 1, "package", errp)) {
        return false;
    }
    c->levels[c->nlevels++] = (VsLevel) {
        .name = "PC0", .core_state = VS_C0,
    };
    for (const VirtualSiliconPackageStateList *p = m->package; p; p = p->next) {
        if (!set_level(c, p->value, errp)) {
            return false;
        }
    }
    return true;
}

static bool set_power(VsConfig *c, const VirtualSiliconPower *p, Error **errp)
{
    if (p->energy_unit_shift > 31 || !p->dram_unit_nj ||
        (p->has_energy_unit_uj && !p->energy_unit_uj)) {
        error_setg(errp, "machine.power: energy-unit-shift must be at most 31, "
                   "energy-unit-uj and dram-unit-nj above 0");
        return false;
    }
    c->pause_uw = by_ratio(c, p->pause_uw, "power.pause-uw", errp);
    if (!c->pause_uw) {
        return false;
    }
    c->uncore_uw = by_ratio(c, p->uncore_uw, "power.uncore-uw", errp);
    return c->uncore_uw;
}

/* A block of instructions, 512 at most, has to fit into 16 bits of budget. */
#define INSN_COST_MAX   127

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    return b ? common_divisor(b, a % b) : a;
}

static bool set_speed(VsConfig *c, const VirtualSiliconSpeed *s, Error **errp)
{
    uint64_t kernel = s->kernel_cycles_per_1000_insns;
    uint64_t user = s->user_cycles_per_1000_insns;

    if (s->quantum_ns < 100 || s->quantum_ns > 1000000 ||
        s->memory_permille > 1000 || !s->smt_permille ||
        s->smt_permille > 1000) {
        error_setg(errp, "machine.speed: quantum-ns must be 100 to 1000000, "
                   "memory-permille up to 1000, smt-permille 1 to 1000");
        return false;
    }
    c->work_permille = 1000;
    c->cycle_unit = common_divisor(kernel, user);
    if (!kernel || !user ||
        MAX(kernel, user) / c->cycle_unit > INSN_COST_MAX) {
        error_setg(errp, "machine.speed: kernel-cycles-per-1000-insns and "
                   "user-cycles-per-1000-insns must be above 0, and the "
                   "greater at most %d times their greatest common divisor",
                   INSN_COST_MAX);
        return false;
    }
    return true;
}

static void add_registers(GHashTable *registers,
                          const VirtualSiliconMsrList *list)
{
    for (; list; list = list->next) {
        g_hash_table_insert(registers, GUINT_TO_POINTER(list->value->msr),
                            list->value);
    }
}

/* A copy of @uw, @permille of it. */
static uint64_t *scale(const VsConfig *c, const uint64_t *uw, unsigned permille)
{
    unsigned n = ratios(c);
    uint64_t *out = g_new(uint64_t, n);

    for (unsigned i = 0; i < n; i++) {
        out[i] = uw[i] * permille / 1000;
    }
    return out;
}

static bool set_class(VsConfig *c, const VirtualSiliconMachine *m,
                      const VirtualSiliconClass *k, Error **errp)
{
    VsClass *class = g_new0(VsClass, 1);
    VsConfig *own = &class->config;

    class->cpus = k->cpus;
    class->next = c->classes;
    *own = *c;
    own->clock.base_ratio = k->base_ratio;
    own->clock.max_ratio = k->max_ratio;
    own->residency_deeper = k->residency_deeper;
    own->work_permille = k->work_permille;
    if (k->has_hwp) {
        own->hwp = k->hwp;
    }
    if (k->has_cppc_nominal) {
        own->cppc_nominal = k->cppc_nominal;
    }
    if (c->npstates) {
        own->pstate_ratios[0] = k->base_ratio;
    }
    if (k->base_ratio < c->clock.min_ratio || k->base_ratio > k->max_ratio ||
        k->max_ratio > c->clock.max_ratio || !k->work_permille ||
        (own->hwp && !own->hwp->unit_khz)) {
        error_setg(errp, "machine.classes: needs min-ratio <= base-ratio <= "
                   "max-ratio <= the machine's; work-permille and hwp.unit-khz "
                   "above 0");
        return false;
    }
    for (unsigned i = 0; i < c->nstates; i++) {
        own->states[i].power_uw = scale(c, c->states[i].power_uw,
                                        k->power_permille);
    }
    own->pause_uw = scale(c, c->pause_uw, k->power_permille);
    own->registers = g_hash_table_new(NULL, NULL);
    add_registers(own->registers, m->msrs);
    add_registers(own->registers, k->msrs);
    own->class_leaves = k->cpuid;
    c->classes = class;
    return true;
}

static bool set_classes(VsConfig *c, const VirtualSiliconMachine *m,
                        Error **errp)
{
    for (const VirtualSiliconClassList *k = m->classes; k; k = k->next) {
        if (!set_class(c, m, k->value, errp)) {
            return false;
        }
    }
    return true;
}

const VsConfig *vs_config_of(const VsConfig *config, unsigned cpu)
{
    const VsClass *class;
    const uint16List *i;

    for (class = config->classes; class; class = class->next) {
        for (i = class->cpus; i; i = i->next) {
            if (i->value == cpu) {
                return &class->config;
            }
        }
    }
    return config;
}

bool vs_config_init(VsConfig *c, const VirtualSiliconMachine *m, Error **errp)
{
    if (m->has_hwp && !m->hwp->unit_khz) {
        error_setg(errp, "machine.hwp: unit-khz must be above 0");
        return false;
    }
    if (m->has_thermal && !m->thermal->tau_ns) {
        error_setg(errp, "machine.thermal: tau-ns must be above 0");
        return false;
    }
    c->machine = m;
    c->hwp = m->hwp;
    c->registers = g_hash_table_new(NULL, NULL);
    add_registers(c->registers, m->msrs);
    return set_clock(c, m->clock, errp) &&
           set_fixed_states(c, m, errp) &&
           set_turbo(c, m->turbo, errp) &&
           (!m->has_pstates || set_pstates(c, m->pstates, errp)) &&
           set_idle(c, m->idle, errp) &&
           set_power(c, m->power, errp) &&
           set_levels(c, m, errp) &&
           set_speed(c, m->speed, errp) &&
           set_classes(c, m, errp);
}
