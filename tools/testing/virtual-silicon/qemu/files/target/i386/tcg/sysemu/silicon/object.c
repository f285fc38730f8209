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
#include "silicon.h"

VirtualSilicon *silicon;

/* What is known only once options and machine are there. */
static void check_machine(VirtualSilicon *s, Error **errp)
{
    const CpuTopology *smp = &MACHINE(qdev_get_machine())->smp;

    if (!tcg_enabled()) {
        error_setg(errp, "needs -accel tcg");
    } else if (s->deterministic && !icount_enabled()) {
        error_setg(errp, "time=deterministic needs "
                   "-icount shift=0,sleep=off");
    } else if (!s->deterministic && icount_enabled()) {
        error_setg(errp, "-icount needs time=deterministic");
    } else if (smp->max_cpus > VS_THREADS) {
        error_setg(errp, "takes up to %d CPUs, not %u", VS_THREADS,
                   smp->max_cpus);
    } else if (smp->max_cpus > smp->cpus) {
        error_setg(errp, "CPUs cannot be added later: -smp maxcpus=%u must be "
                   "%u", smp->max_cpus, smp->cpus);
    }
}

static void machine_threads(void)
{
    CPUState *cs;

    QEMU_LOCK_GUARD(&silicon->lock);
    CPU_FOREACH(cs) {
        vs_model_add(cs);
        vs_idle_init(vs_thread(cs));
    }
}

static void machine_faults(VirtualSilicon *s, Error **errp)
{
    VirtualSiliconFaultList *fault = s->first_faults;

    while (fault && vs_fault_add(fault->value, errp)) {
        fault = fault->next;
    }
}

/* The vCPUs are stopped, and reset. */
static void machine_reset(void *opaque)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

    if (!now) {
        return;                 /* power-on: all is as vs_model_add() made it */
    }
    QEMU_LOCK_GUARD(&silicon->lock);
    for (unsigned i = 0; i < VS_THREADS && silicon->threads[i]; i++) {
        vs_idle_reset(silicon->threads[i]);
        vs_model_reset(silicon->threads[i], now);
    }
}

static void machine_done(Notifier *n, void *data)
{
    VirtualSilicon *s = container_of(n, VirtualSilicon, machine_done);
    Error *err = NULL;

    check_machine(s, &err);
    if (!err) {
        machine_threads();
        machine_faults(s, &err);
    }
    if (err) {
        error_reportf_err(err, "virtual-silicon: ");
        exit(1);
    }
    vs_limits_start();
    qemu_register_reset(machine_reset, NULL);
}

static void at_exit(Notifier *n, void *data)
{
    QEMU_LOCK_GUARD(&silicon->lock);
    vs_finish(qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
}

static void silicon_complete(UserCreatable *uc, Error **errp)
{
    VirtualSilicon *s = VIRTUAL_SILICON(uc);

    if (silicon) {
        error_setg(errp, "there is a virtual-silicon object already; "
                   "a machine has one");
        return;
    }
    if (phase_check(PHASE_MACHINE_CREATED)) {
        error_setg(errp, "virtual-silicon comes before the machine, by "
                   "-object");
        return;
    }
    if (!vs_config_init(&s->config, s->machine, errp)) {
        return;
    }
    silicon = s;
    if (!vs_trace_open(errp)) {
        silicon = NULL;
        return;
    }
    error_setg(&s->migration_blocker, "virtual-silicon cannot be migrated");
    if (migrate_add_blocker(s->migration_blocker, errp)) {
        silicon = NULL;
        return;
    }
    qemu_mutex_init(&s->lock);
    s->machine_done.notify = machine_done;
    qemu_add_machine_init_done_notifier(&s->machine_done);
    object_ref(s);              /* at_exit() comes after the last user's unref */
    s->exit.notify = at_exit;
    qemu_add_exit_notifier(&s->exit);
    vs_ops_publish(s->deterministic, &s->config);
    s->complete = true;
}

/* The guest runs on what has been set: false. */
static bool can_be_set(VirtualSilicon *s, Error **errp)
{
    if (s->complete) {
        error_setg(errp, "can only be set when the object is made");
    }
    return !s->complete;
}

/* The guest runs on it: it stays until the end. */
static bool silicon_can_be_deleted(UserCreatable *uc)
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
    VirtualSilicon *s = VIRTUAL_SILICON(obj);
    VirtualSiliconMachine *machine;

    if (can_be_set(s, errp) &&
        visit_type_VirtualSiliconMachine(v, name, &machine, errp)) {
        qapi_free_VirtualSiliconMachine(s->machine);
        s->machine = machine;
    }
}

static char *get_trace(Object *obj, Error **errp)
{
    return g_strdup(VIRTUAL_SILICON(obj)->trace_file);
}

static void set_trace(Object *obj, const char *value, Error **errp)
{
    VirtualSilicon *s = VIRTUAL_SILICON(obj);

    if (can_be_set(s, errp)) {
        g_free(s->trace_file);
        s->trace_file = g_strdup(value);
    }
}

static char *get_report(Object *obj, Error **errp)
{
    return g_strdup(VIRTUAL_SILICON(obj)->report_file);
}

static void set_report(Object *obj, const char *value, Error **errp)
{
    VirtualSilicon *s = VIRTUAL_SILICON(obj);

    if (can_be_set(s, errp)) {
        g_free(s->report_file);
        s->report_file = g_strdup(value);
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
    VirtualSilicon *s = VIRTUAL_SILICON(obj);
    VirtualSiliconFaultList *faults;

    if (can_be_set(s, errp) &&
        visit_type_VirtualSiliconFaultList(v, name, &faults, errp)) {
        qapi_free_VirtualSiliconFaultList(s->first_faults);
        s->first_faults = faults;
    }
}

/* QMP qom-get: what report= writes at the end, as of now. */
static char *get_counters(Object *obj, Error **errp)
{
    g_autofree char *copy = NULL;
    char *text;

    if (!silicon || !silicon->threads[0]) {
        error_setg(errp, "counters: the machine is not there yet");
        return NULL;
    }
    WITH_QEMU_LOCK_GUARD(&silicon->lock) {
        text = vs_report(qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
    }
    copy = g_strdup(text);
    free(text);
    return g_steal_pointer(&copy);
}

static int get_time(Object *obj, Error **errp)
{
    return VIRTUAL_SILICON(obj)->deterministic;
}

static void set_time(Object *obj, int value, Error **errp)
{
    VirtualSilicon *s = VIRTUAL_SILICON(obj);

    if (can_be_set(s, errp)) {
        s->deterministic = value == VIRTUAL_SILICON_TIME_DETERMINISTIC;
    }
}

/* Only of one that could not be completed: the others stay. */
static void silicon_finalize(Object *obj)
{
    VirtualSilicon *s = VIRTUAL_SILICON(obj);

    qapi_free_VirtualSiliconMachine(s->machine);
    qapi_free_VirtualSiliconFaultList(s->first_faults);
    error_free(s->migration_blocker);
    g_free(s->trace_file);
    g_free(s->report_file);
}

static void silicon_class_init(ObjectClass *oc, void *data)
{
    UserCreatableClass *ucc = USER_CREATABLE_CLASS(oc);

    ucc->complete = silicon_complete;
    ucc->can_be_deleted = silicon_can_be_deleted;
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

static const TypeInfo silicon_info = {
    .name = TYPE_VIRTUAL_SILICON,
    .parent = TYPE_OBJECT,
    .instance_size = sizeof(VirtualSilicon),
    .instance_finalize = silicon_finalize,
    .class_init = silicon_class_init,
    .interfaces = (InterfaceInfo[]) {
        { TYPE_USER_CREATABLE },
        { }
    },
};

static void silicon_register_types(void)
{
    type_register_static(&silicon_info);
}
type_init(silicon_register_types);
