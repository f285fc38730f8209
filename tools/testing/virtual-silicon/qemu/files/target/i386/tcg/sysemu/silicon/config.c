/*
 * Virtual silicon: reading the machine file.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The file is what virtual_silicon makes of a machine description after checking it;
 * here every key must be present, and the first that is not ends the start.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "silicon.h"

typedef struct VsReader {
    GKeyFile *file;
    const char *path;
    Error *err;                 /* the first thing that was wrong */
} VsReader;

static void reader_fail(VsReader *r, const char *group, const char *key,
                        const char *what)
{
    if (!r->err) {
        error_setg(&r->err, "%s: [%s] %s: %s", r->path, group, key, what);
    }
}

static char *read_string(VsReader *r, const char *group, const char *key)
{
    char *s = g_key_file_get_string(r->file, group, key, NULL);

    if (!s) {
        reader_fail(r, group, key, "is missing");
        s = g_strdup("");
    }
    return s;
}

static bool has_key(VsReader *r, const char *group, const char *key)
{
    return g_key_file_has_key(r->file, group, key, NULL);
}

static uint64_t parse_number(VsReader *r, const char *group, const char *key,
                             const char *text)
{
    uint64_t value = 0;

    if (qemu_strtou64(text, NULL, 0, &value)) {
        reader_fail(r, group, key, "is not a number");
    }
    return value;
}

static uint64_t read_number(VsReader *r, const char *group, const char *key)
{
    g_autofree char *s = read_string(r, group, key);

    return parse_number(r, group, key, s);
}

/* For what a machine need not have: 0 where the key is absent. */
static uint64_t read_option(VsReader *r, const char *group, const char *key)
{
    return has_key(r, group, key) ? read_number(r, group, key) : 0;
}

/* A list "1;2;3"; an empty last element is allowed.  Frees with g_array. */
static GArray *read_list(VsReader *r, const char *group, const char *key)
{
    g_autofree char *s = read_string(r, group, key);
    g_auto(GStrv) parts = g_strsplit(s, ";", -1);
    GArray *list = g_array_new(false, true, sizeof(uint64_t));

    for (unsigned i = 0; parts[i]; i++) {
        if (*parts[i] || parts[i + 1]) {
            uint64_t v = parse_number(r, group, key, parts[i]);

            g_array_append_val(list, v);
        }
    }
    return list;
}

static void read_clock(VsReader *r, VsConfig *c)
{
    c->tsc_khz = read_number(r, "clock", "tsc_khz");
    c->bus_khz = read_number(r, "clock", "bus_khz");
    c->min_ratio = read_number(r, "clock", "min_ratio");
    c->base_ratio = read_number(r, "clock", "base_ratio");
    c->max_ratio = read_number(r, "clock", "max_ratio");
    c->counter_unit = read_number(r, "clock", "counter_unit");
    if (!c->tsc_khz || !c->bus_khz || !c->min_ratio ||
        c->min_ratio > c->base_ratio || c->base_ratio > c->max_ratio ||
        c->max_ratio > 255 || !c->counter_unit) {
        reader_fail(r, "clock", "*", "need 0 < min_ratio <= base_ratio <= "
                    "max_ratio <= 255; clocks and counter_unit above 0");
    }
}

static void read_turbo(VsReader *r, VsConfig *c)
{
    g_autoptr(GArray) cores = read_list(r, "turbo", "cores");
    g_autoptr(GArray) ratios = read_list(r, "turbo", "ratios");

    if (!cores->len || cores->len != ratios->len || cores->len > VS_BINS) {
        reader_fail(r, "turbo", "cores", "needs as many entries as ratios, "
                    "1 to 16");
        return;
    }
    c->nbins = cores->len;
    for (unsigned i = 0; i < c->nbins; i++) {
        c->bin_cores[i] = g_array_index(cores, uint64_t, i);
        c->bin_ratios[i] = g_array_index(ratios, uint64_t, i);
    }
}

static void read_state(VsReader *r, VsConfig *c, const char *name)
{
    g_autofree char *group = g_strdup_printf("idle.%s", name);
    g_autoptr(GArray) hints = read_list(r, group, "hints");
    VsState *s = &c->states[c->nstates];

    s->port = read_option(r, group, "port");
    if (c->nstates == VS_STATES || !hints->len == !s->port ||
        hints->len > VS_HINTS) {
        reader_fail(r, group, "hints", "needs 1 to 8 entries, or a port, in at "
                    "most 12 states");
        return;
    }
    c->nstates++;
    s->name = g_strdup(name);
    s->nhints = hints->len;
    for (unsigned i = 0; i < s->nhints; i++) {
        s->hints[i] = g_array_index(hints, uint64_t, i);
    }
    s->exit_ns = read_number(r, group, "exit_ns");
    s->entry_ns = read_number(r, group, "entry_ns");
    s->power_uw = read_number(r, group, "power_uw");
    s->active = read_number(r, group, "active");
    s->residency_msr = read_number(r, group, "residency_msr");
}

static void read_fixed_states(VsReader *r, VsConfig *c)
{
    VsState *s = c->states;

    s[VS_C0] = (VsState) { .name = g_strdup("C0"), .active = true,
                           .unhalted = true };
    s[VS_OFF] = (VsState) { .name = g_strdup("off") };
    s[VS_C01] = s[VS_C02] = s[VS_C0];
    s[VS_C01].name = g_strdup("C0.1");
    s[VS_C02].name = g_strdup("C0.2");
    c->nstates = VS_MWAIT;

    c->waitpkg = read_number(r, "umwait", "present");
    if (c->waitpkg) {
        s[VS_C01].exit_ns = read_number(r, "umwait", "c01_exit_ns");
        s[VS_C02].exit_ns = read_number(r, "umwait", "c02_exit_ns");
        s[VS_C01].power_uw = read_number(r, "umwait", "c01_power_uw");
        s[VS_C02].power_uw = read_number(r, "umwait", "c02_power_uw");
    }
}

static void read_idle(VsReader *r, VsConfig *c)
{
    g_autofree char *s = read_string(r, "idle", "states");
    g_auto(GStrv) names = g_strsplit(s, ";", -1);

    read_fixed_states(r, c);
    for (unsigned i = 0; names[i]; i++) {
        if (*names[i]) {
            read_state(r, c, names[i]);
        }
    }
    if (c->nstates == VS_MWAIT) {
        reader_fail(r, "idle", "states", "needs at least one state");
    }
}

static unsigned state_by_name(VsReader *r, VsConfig *c, const char *group,
                              const char *name)
{
    for (unsigned i = VS_MWAIT; i < c->nstates; i++) {
        if (g_str_equal(c->states[i].name, name)) {
            return i;
        }
    }
    reader_fail(r, group, "core_state", "is no idle state of the machine");
    return VS_MWAIT;
}

/* [package] states=PC2;PC6 and a section [package.PC2] each; may be absent. */
static void read_levels(VsReader *r, VsConfig *c)
{
    g_autofree char *s = has_key(r, "package", "states") ?
                         read_string(r, "package", "states") : g_strdup("");
    g_auto(GStrv) names = g_strsplit(s, ";", -1);

    c->levels[0] = (VsLevel) {
        .name = g_strdup("PC0"), .core_state = VS_C0,
        .uncore_uw = read_number(r, "power", "uncore_uw"),
    };
    c->nlevels = 1;
    for (unsigned i = 0; names[i]; i++) {
        g_autofree char *group = g_strdup_printf("package.%s", names[i]);
        g_autofree char *state = NULL;
        VsLevel *level;

        if (!*names[i]) {
            continue;
        }
        if (c->nlevels == VS_LEVELS) {
            reader_fail(r, "package", "states", "has more than 3 states");
            return;
        }
        level = &c->levels[c->nlevels++];
        state = read_string(r, group, "core_state");
        level->name = g_strdup(names[i]);
        level->core_state = state_by_name(r, c, group, state);
        level->uncore_uw = read_number(r, group, "uncore_uw");
        level->residency_msr = read_number(r, group, "residency_msr");
    }
}

/* Most of [control] and all of [limits] may be absent. */
static void read_control(VsReader *r, VsConfig *c)
{
    c->transition_ns = read_option(r, "control", "transition_ns");
    c->domain_cpus = read_option(r, "control", "domain_cpus");
    c->hwp = read_option(r, "control", "hwp");
    c->hwp_epp = read_option(r, "control", "hwp_epp");
    c->hwp_unit_khz = read_number(r, "control", "hwp_unit_khz");
    if (!c->hwp_unit_khz) {
        reader_fail(r, "control", "hwp_unit_khz", "must be above 0");
    }
    c->efficient_ratio = read_option(r, "control", "efficient_ratio");
    c->cppc_nominal = read_option(r, "control", "cppc_nominal");
    if (has_key(r, "control", "pstate_ratios")) {
        g_autoptr(GArray) list = read_list(r, "control", "pstate_ratios");

        if (!list->len || list->len > VS_PSTATES) {
            reader_fail(r, "control", "pstate_ratios", "needs 1 to 8 entries");
            return;
        }
        c->npstates = list->len;
        for (unsigned i = 0; i < list->len; i++) {
            c->pstate_ratios[i] = g_array_index(list, uint64_t, i);
        }
    }
}

static void read_limits(VsReader *r, VsConfig *c)
{
    c->power_tau_ns = read_option(r, "limits", "power_tau_ns");
    c->rth_mk_per_w = read_option(r, "limits", "rth_mk_per_w");
    c->thermal_tau_ns = read_option(r, "limits", "thermal_tau_ns");
    c->ambient_mc = read_option(r, "limits", "ambient_mc");
    c->tjmax_mc = read_option(r, "limits", "tjmax_mc");
    if (c->rth_mk_per_w && (!c->thermal_tau_ns || !c->tjmax_mc)) {
        reader_fail(r, "limits", "rth_mk_per_w", "needs thermal_tau_ns and "
                    "tjmax_mc beside it");
    }
}

static void read_power(VsReader *r, VsConfig *c)
{
    g_autoptr(GArray) active = read_list(r, "power", "active_uw");

    if (active->len != c->max_ratio - c->min_ratio + 1) {
        reader_fail(r, "power", "active_uw", "needs one entry for each ratio "
                    "from min_ratio to max_ratio");
        return;
    }
    c->active_uw = g_new(uint64_t, active->len);
    memcpy(c->active_uw, active->data, active->len * sizeof(uint64_t));
    c->dram_uw = read_number(r, "power", "dram_uw");
    c->energy_unit_shift = read_number(r, "power", "energy_unit_shift");
    c->energy_unit_uj = read_option(r, "power", "energy_unit_uj");
    c->dram_unit_nj = read_number(r, "power", "dram_unit_nj");
    c->pkg_msr = read_number(r, "power", "pkg_msr");
    c->cores_msr = read_number(r, "power", "cores_msr");
    c->dram_msr = read_number(r, "power", "dram_msr");
    c->core_msr = read_option(r, "power", "core_msr");
    if (!c->dram_unit_nj || c->energy_unit_shift > 31) {
        reader_fail(r, "power", "dram_unit_nj", "needs a unit above 0, and "
                    "energy_unit_shift at most 31");
    }
}

static void read_time(VsReader *r, VsConfig *c)
{
    c->cycles_per_1000_insns = read_number(r, "time", "cycles_per_1000_insns");
    c->quantum_ns = read_number(r, "time", "quantum_ns");
    c->memory_permille = read_option(r, "time", "memory_permille");
    c->pause_cycles = read_option(r, "time", "pause_cycles");
    c->smt_permille = read_number(r, "time", "smt_permille");
    c->ipi_ns = read_option(r, "time", "ipi_ns");
    if (!c->cycles_per_1000_insns || c->quantum_ns < 100 ||
        c->quantum_ns > 1000000 || c->memory_permille > 1000 ||
        !c->smt_permille || c->smt_permille > 1000) {
        reader_fail(r, "time", "quantum_ns", "needs 100 to 1000000, "
                    "cycles_per_1000_insns and smt_permille above 0, "
                    "memory_permille and smt_permille up to 1000");
    }
}

static void read_registers(VsReader *r, VsConfig *c, const char *group,
                           bool writable)
{
    g_auto(GStrv) keys = g_key_file_get_keys(r->file, group, NULL, NULL);

    for (unsigned i = 0; keys && keys[i]; i++) {
        g_autoptr(GArray) list = read_list(r, group, keys[i]);
        uint64_t msr = parse_number(r, group, keys[i], keys[i]);
        VsRegister *reg;

        if (list->len != (writable ? 2 : 1) || msr > UINT32_MAX) {
            reader_fail(r, group, keys[i], writable ? "needs value;mask"
                                                    : "needs one value");
            return;
        }
        reg = g_new0(VsRegister, 1);
        reg->value = g_array_index(list, uint64_t, 0);
        reg->mask = writable ? g_array_index(list, uint64_t, 1) : 0;
        reg->writable = writable;
        g_hash_table_insert(c->registers, GUINT_TO_POINTER((guint)msr), reg);
    }
}

/* Keys "leaf.subleaf" or "leaf.*" with four values. */
static GArray *read_leaves(VsReader *r, const char *group)
{
    g_auto(GStrv) keys = g_key_file_get_keys(r->file, group, NULL, NULL);
    GArray *leaves = g_array_new(false, true, sizeof(VsLeaf));

    for (unsigned i = 0; keys && keys[i]; i++) {
        g_autoptr(GArray) list = read_list(r, group, keys[i]);
        g_auto(GStrv) name = g_strsplit(keys[i], ".", 2);
        VsLeaf leaf = { };

        if (list->len != 4 || !name[0] || !name[1]) {
            reader_fail(r, group, keys[i], "needs leaf.subleaf=eax;ebx;ecx;edx");
            break;
        }
        leaf.leaf = parse_number(r, group, keys[i], name[0]);
        leaf.any_sub = g_str_equal(name[1], "*");
        leaf.sub = leaf.any_sub ? 0 : parse_number(r, group, keys[i], name[1]);
        for (unsigned reg = 0; reg < 4; reg++) {
            leaf.regs[reg] = g_array_index(list, uint64_t, reg);
        }
        g_array_append_val(leaves, leaf);
    }
    return leaves;
}

/*
 * [class.NAME] with cpus= and whatever differs; [class.NAME.msr] and
 * [class.NAME.cpuid] hold the registers and leaves that do.
 */
static void read_class(VsReader *r, VsConfig *c, const char *group)
{
    g_autofree char *msrs = g_strdup_printf("%s.msr", group);
    g_autofree char *leaves = g_strdup_printf("%s.cpuid", group);
    g_autoptr(GArray) own = NULL;
    VsClass *class = g_new0(VsClass, 1);
    struct { const char *key; unsigned *value; } ratios[] = {
        { "base_ratio", &class->config.base_ratio },
        { "max_ratio", &class->config.max_ratio },
        { "efficient_ratio", &class->config.efficient_ratio },
        { "cppc_nominal", &class->config.cppc_nominal },
    };
    unsigned n = c->max_ratio - c->min_ratio + 1;
    uint64_t permille = read_number(r, group, "power_permille");

    class->config = *c;
    class->cpus = read_list(r, group, "cpus");
    for (unsigned i = 0; i < ARRAY_SIZE(ratios); i++) {
        if (has_key(r, group, ratios[i].key)) {
            *ratios[i].value = read_number(r, group, ratios[i].key);
        }
    }
    if (has_key(r, group, "hwp_unit_khz")) {
        class->config.hwp_unit_khz = read_number(r, group, "hwp_unit_khz");
    }
    class->config.residency_deeper = read_option(r, group, "residency_deeper");
    if (c->npstates) {
        class->config.pstate_ratios[0] = class->config.base_ratio;
    }
    if (!class->config.hwp_unit_khz || class->config.max_ratio > c->max_ratio ||
        class->config.base_ratio > class->config.max_ratio ||
        class->config.base_ratio < c->min_ratio) {
        reader_fail(r, group, "max_ratio", "must be at least base_ratio and "
                    "at most the machine's; base_ratio at least min_ratio");
    }
    class->config.active_uw = g_new(uint64_t, n);
    for (unsigned i = 0; i < n; i++) {
        class->config.active_uw[i] = c->active_uw[i] * permille / 1000;
    }
    class->config.registers = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    read_registers(r, &class->config, "msr", false);
    read_registers(r, &class->config, "msr-rw", true);
    read_registers(r, &class->config, msrs, false);
    own = read_leaves(r, leaves);
    class->config.leaf_replace = read_leaves(r, "cpuid");
    g_array_append_vals(class->config.leaf_replace, own->data, own->len);
    class->next = c->classes;
    c->classes = class;
}

static void read_classes(VsReader *r, VsConfig *c)
{
    g_auto(GStrv) groups = g_key_file_get_groups(r->file, NULL);

    for (unsigned i = 0; groups[i]; i++) {
        const char *name = groups[i];

        if (g_str_has_prefix(name, "class.") && !strchr(name + 6, '.')) {
            read_class(r, c, name);
        }
    }
}

const VsConfig *vs_config_of(const VsConfig *config, unsigned cpu)
{
    for (const VsClass *class = config->classes; class; class = class->next) {
        for (unsigned i = 0; i < class->cpus->len; i++) {
            if (g_array_index(class->cpus, uint64_t, i) == cpu) {
                return &class->config;
            }
        }
    }
    return config;
}

bool vs_config_read(VsConfig *c, const char *path, Error **errp)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autoptr(GError) gerr = NULL;
    VsReader r = { .file = file, .path = path };

    if (!g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, &gerr)) {
        error_setg(errp, "%s: %s", path, gerr->message);
        return false;
    }
    read_clock(&r, c);
    read_turbo(&r, c);
    read_idle(&r, c);
    if (!r.err) {
        read_power(&r, c);
        read_levels(&r, c);
    }
    read_control(&r, c);
    read_limits(&r, c);
    read_time(&r, c);
    c->registers = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    read_registers(&r, c, "msr", false);
    read_registers(&r, c, "msr-rw", true);
    c->leaf_replace = read_leaves(&r, "cpuid");
    c->leaf_set = read_leaves(&r, "cpuid-set");
    c->leaf_clear = read_leaves(&r, "cpuid-clear");
    if (!r.err) {
        read_classes(&r, c);
    }
    if (r.err) {
        error_propagate(errp, r.err);
        return false;
    }
    return true;
}
