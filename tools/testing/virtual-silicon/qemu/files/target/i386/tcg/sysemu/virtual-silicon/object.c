/*
 * Virtual silicon: -object virtual-silicon
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-visit-virtual-silicon.h"
#include "qemu/error-report.h"
#include "qemu/lockable.h"
#include "qemu/module.h"
#include "hw/boards.h"
#include "hw/qdev-core.h"
#include "migration/blocker.h"
#include "qom/object_interfaces.h"
#include "sysemu/cpu-timers.h"
#include "sysemu/reset.h"
#include "sysemu/sysemu.h"
#include "sysemu/tcg.h"
#include "internal.h"

/* What is known only once options and machine are there. */
static void check_machine(VirtualSilicon *vs, Error **errp)
{
    const CpuTopology *smp = &MACHINE(qdev_get_machine())->smp;

    if (!tcg_enabled()) {
        error_setg(errp, "needs -accel tcg");
    } else if (vs->tcg.deterministic && !icount_enabled()) {
        error_setg(errp, "time=deterministic needs "
                   "-icount shift=0,sleep=off");
    } else if (!vs->tcg.deterministic && icount_enabled()) {
        error_setg(errp, "-icount needs time=deterministic");
    } else if (smp->max_cpus > VS_THREADS) {
        error_setg(errp, "takes up to %d CPUs, not %u", VS_THREADS,
                   smp->max_cpus);
    } else if (smp->max_cpus > smp->cpus) {
        error_setg(errp, "CPUs cannot be added later: -smp maxcpus=%u must be "
                   "%u", smp->max_cpus, smp->cpus);
    }
}

static void machine_threads(VirtualSilicon *vs)
{
    CPUState *cs;

    QEMU_LOCK_GUARD(&vs->lock);
    CPU_FOREACH(cs) {
        vs_model_add(vs, cs);
        vs_idle_init(vs_thread(cs));
    }
}

static void machine_faults(VirtualSilicon *vs, Error **errp)
{
    VirtualSiliconFaultList *fault = vs->first_faults;

    while (fault && vs_fault_add(vs, fault->value, errp)) {
        fault = fault->next;
    }
}

/* The vCPUs are stopped, and reset. */
static void machine_reset(void *opaque)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    VirtualSilicon *vs = opaque;

    if (!now) {
        return;                 /* power-on: all is as vs_model_add() made it */
    }
    QEMU_LOCK_GUARD(&vs->lock);
    for (unsigned i = 0; i < VS_THREADS && vs->threads[i]; i++) {
        vs_idle_reset(vs->threads[i]);
        vs_model_reset(vs->threads[i], now);
    }
}

static void machine_done(Notifier *n, void *data)
{
    VirtualSilicon *vs = container_of(n, VirtualSilicon, machine_done);
    Error *err = NULL;

    check_machine(vs, &err);
    if (!err) {
        machine_threads(vs);
        machine_faults(vs, &err);
    }
    if (err) {
        error_reportf_err(err, "virtual-silicon: ");
        exit(1);
    }
    vs_limits_start(vs);
    qemu_register_reset(machine_reset, vs);
}

static void at_exit(Notifier *n, void *data)
{
    VirtualSilicon *vs = container_of(n, VirtualSilicon, exit);

    QEMU_LOCK_GUARD(&vs->lock);
    vs_finish(vs, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
}

static void vs_complete(UserCreatable *uc, Error **errp)
{
    VirtualSilicon *vs = VIRTUAL_SILICON(uc);

    if (virtual_silicon) {
        error_setg(errp, "there is a virtual-silicon object already; "
                   "a machine has one");
        return;
    }
    if (phase_check(PHASE_MACHINE_CREATED)) {
        error_setg(errp, "virtual-silicon comes before the machine, by "
                   "-object");
        return;
    }
    if (!vs_config_init(&vs->config, vs->machine, errp)) {
        return;
    }
    if (!vs_trace_open(vs, errp)) {
        return;
    }
    error_setg(&vs->migration_blocker, "virtual-silicon cannot be migrated");
    if (migrate_add_blocker(vs->migration_blocker, errp)) {
        return;
    }
    qemu_mutex_init(&vs->lock);
    vs->machine_done.notify = machine_done;
    qemu_add_machine_init_done_notifier(&vs->machine_done);
    object_ref(vs);     /* at_exit() comes after the last user's unref */
    vs->exit.notify = at_exit;
    qemu_add_exit_notifier(&vs->exit);
    vs->tcg.ops = &vs_ops;
    vs->tcg.quantum_ns = vs->machine->speed->quantum_ns;
    virtual_silicon = &vs->tcg;
    vs->complete = true;
}

/* The guest runs on what has been set: false. */
static bool can_be_set(VirtualSilicon *vs, Error **errp)
{
    if (vs->complete) {
        error_setg(errp, "can only be set when the object is made");
    }
    return !vs->complete;
}

/* The guest runs on it: it stays until the end. */
static bool vs_can_be_deleted(UserCreatable *uc)
{
    return false;
}

static void get_machine(Object *obj, Visitor *v, const char *name, void *opaque,
                        Error **errp)
{
    visit_type_VirtualSiliconMachine(v, name, &VIRTUAL_SILICON(obj)->machine,
                                     errp);
}

static void set_machine(Object *obj, Visitor *v, const char *name, void *opaque,
                        Error **errp)
{
    VirtualSilicon *vs = VIRTUAL_SILICON(obj);
    VirtualSiliconMachine *machine;

    if (can_be_set(vs, errp) &&
        visit_type_VirtualSiliconMachine(v, name, &machine, errp)) {
        qapi_free_VirtualSiliconMachine(vs->machine);
        vs->machine = machine;
    }
}

static char *get_trace(Object *obj, Error **errp)
{
    return g_strdup(VIRTUAL_SILICON(obj)->trace_file);
}

static void set_trace(Object *obj, const char *value, Error **errp)
{
    VirtualSilicon *vs = VIRTUAL_SILICON(obj);

    if (can_be_set(vs, errp)) {
        g_free(vs->trace_file);
        vs->trace_file = g_strdup(value);
    }
}

static char *get_report(Object *obj, Error **errp)
{
    return g_strdup(VIRTUAL_SILICON(obj)->report_file);
}

static void set_report(Object *obj, const char *value, Error **errp)
{
    VirtualSilicon *vs = VIRTUAL_SILICON(obj);

    if (can_be_set(vs, errp)) {
        g_free(vs->report_file);
        vs->report_file = g_strdup(value);
    }
}

static void get_faults(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    visit_type_VirtualSiliconFaultList(v, name,
                                       &VIRTUAL_SILICON(obj)->first_faults,
                                       errp);
}

static void set_faults(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    VirtualSilicon *vs = VIRTUAL_SILICON(obj);
    VirtualSiliconFaultList *faults;

    if (can_be_set(vs, errp) &&
        visit_type_VirtualSiliconFaultList(v, name, &faults, errp)) {
        qapi_free_VirtualSiliconFaultList(vs->first_faults);
        vs->first_faults = faults;
    }
}

/* QMP qom-get: what report= writes at the end, as of now. */
static char *get_counters(Object *obj, Error **errp)
{
    VirtualSilicon *vs = VIRTUAL_SILICON(obj);
    g_autofree char *copy = NULL;
    char *text;

    if (!vs->threads[0]) {
        error_setg(errp, "counters: the machine is not there yet");
        return NULL;
    }
    WITH_QEMU_LOCK_GUARD(&vs->lock) {
        text = vs_report(vs, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
    }
    copy = g_strdup(text);
    free(text);
    return g_steal_pointer(&copy);
}

static int get_time(Object *obj, Error **errp)
{
    return VIRTUAL_SILICON(obj)->tcg.deterministic;
}

static void set_time(Object *obj, int value, Error **errp)
{
    VirtualSilicon *vs = VIRTUAL_SILICON(obj);

    if (can_be_set(vs, errp)) {
        vs->tcg.deterministic = value == VIRTUAL_SILICON_TIME_DETERMINISTIC;
    }
}

/* Only of one that could not be completed: the others stay. */
static void vs_finalize(Object *obj)
{
    VirtualSilicon *vs = VIRTUAL_SILICON(obj);

    qapi_free_VirtualSiliconMachine(vs->machine);
    qapi_free_VirtualSiliconFaultList(vs->first_faults);
    error_free(vs->migration_blocker);
    g_free(vs->trace_file);
    g_free(vs->report_file);
}

static void vs_class_init(ObjectClass *oc, void *data)
{
    UserCreatableClass *ucc = USER_CREATABLE_CLASS(oc);

    ucc->complete = vs_complete;
    ucc->can_be_deleted = vs_can_be_deleted;
    object_class_property_add(oc, "machine", "VirtualSiliconMachine",
                              get_machine, set_machine, NULL, NULL);
    object_class_property_add_str(oc, "trace", get_trace, set_trace);
    object_class_property_add_str(oc, "report", get_report, set_report);
    object_class_property_add(oc, "faults", "VirtualSiliconFaultList",
                              get_faults, set_faults, NULL, NULL);
    object_class_property_add_str(oc, "counters", get_counters, NULL);
    object_class_property_add_enum(oc, "time", "VirtualSiliconTime",
                                   &VirtualSiliconTime_lookup, get_time,
                                   set_time);
}

static const TypeInfo vs_info = {
    .name = TYPE_VIRTUAL_SILICON,
    .parent = TYPE_OBJECT,
    .instance_size = sizeof(VirtualSilicon),
    .instance_finalize = vs_finalize,
    .class_init = vs_class_init,
    .interfaces = (InterfaceInfo[]) {
        { TYPE_USER_CREATABLE },
        { }
    },
};

static void vs_register_types(void)
{
    type_register_static(&vs_info);
}
type_init(vs_register_types);
