/*
 * Virtual silicon: reading the machine file.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The file is what vsilicon makes of a machine description after checking it;
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

/* A list "1;2;3"; an empty last element is allowed.  Frees with g_array. */
static GArray *read_list(VsReader *r, const char *group, const char *key)
{
    g_autofree char *s = read_string(r, group, key);
    g_auto(GStrv) parts = g_strsplit(s, ";", -1);
    GArray *list = g_array_new(false, false, sizeof(uint64_t));

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
    if (!c->tsc_khz || !c->bus_khz || !c->min_ratio ||
        c->min_ratio > c->base_ratio || c->base_ratio > c->max_ratio ||
        c->max_ratio > 255) {
        reader_fail(r, "clock", "*", "need 0 < min_ratio <= base_ratio <= "
                    "max_ratio <= 255 and clocks above 0");
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

    if (c->nstates == VS_STATES || !hints->len || hints->len > VS_HINTS) {
        reader_fail(r, group, "hints", "needs 1 to 8 entries, in at most "
                    "12 states");
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
    c->uncore_uw = read_number(r, "power", "uncore_uw");
    c->dram_uw = read_number(r, "power", "dram_uw");
    c->energy_unit_shift = read_number(r, "power", "energy_unit_shift");
    c->dram_unit_nj = read_number(r, "power", "dram_unit_nj");
    c->pkg_msr = read_number(r, "power", "pkg_msr");
    c->cores_msr = read_number(r, "power", "cores_msr");
    c->dram_msr = read_number(r, "power", "dram_msr");
    if (!c->dram_unit_nj || c->energy_unit_shift > 31) {
        reader_fail(r, "power", "dram_unit_nj", "needs a unit above 0, and "
                    "energy_unit_shift at most 31");
    }
}

static void read_time(VsReader *r, VsConfig *c)
{
    c->cycles_per_1000_insns = read_number(r, "time", "cycles_per_1000_insns");
    c->quantum_ns = read_number(r, "time", "quantum_ns");
    if (!c->cycles_per_1000_insns || c->quantum_ns < 100 ||
        c->quantum_ns > 1000000) {
        reader_fail(r, "time", "quantum_ns", "needs 100 to 1000000, and "
                    "cycles_per_1000_insns above 0");
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
    }
    read_time(&r, c);
    c->registers = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    read_registers(&r, c, "msr", false);
    read_registers(&r, c, "msr-rw", true);
    c->leaf_replace = read_leaves(&r, "cpuid");
    c->leaf_set = read_leaves(&r, "cpuid-set");
    c->leaf_clear = read_leaves(&r, "cpuid-clear");
    if (r.err) {
        error_propagate(errp, r.err);
        return false;
    }
    return true;
}
