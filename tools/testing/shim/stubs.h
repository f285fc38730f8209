/* SPDX-License-Identifier: GPL-2.0 */
/* What does nothing here: no result depends on it in a program of one thread. */
#ifndef SHIM_STUBS_H
#define SHIM_STUBS_H

#define __init
#define __rcu
#define __read_mostly
#define __cpuidle
#define GFP_KERNEL				0
#define THIS_MODULE				NULL
#define EXPORT_SYMBOL_GPL(x)
#define EXPORT_SYMBOL_IF_KUNIT(x)
#define MODULE_DESCRIPTION(text)
#define MODULE_LICENSE(text)
#define MODULE_IMPORT_NS(namespace)
#define module_param(name, type, perm)		_Static_assert(sizeof(name), "")
#define MODULE_PARM_DESC(name, text)		_Static_assert(sizeof(text), "")

#define data_race(x)				(x)
#define rcu_dereference_sched(p)		(p)
#define rcu_assign_pointer(p, v)		((p) = (v))
#define synchronize_rcu()			do { } while (0)

/* Only in inline functions of cpuidle.h that no governor calls */
struct cpumask;
typedef struct { int counter; } atomic_t;
#define lockdep_assert_irqs_disabled()		do { } while (0)
#define trace_hardirqs_on_prepare()		do { } while (0)
#define lockdep_hardirqs_on_prepare()		do { } while (0)
#define lockdep_hardirqs_on(ip)			do { } while (0)
#define lockdep_hardirqs_off(ip)		do { } while (0)
#define instrumentation_begin()			do { } while (0)
#define instrumentation_end()			do { } while (0)
#define ct_idle_enter()				do { } while (0)
#define ct_idle_exit()				do { } while (0)
#define _RET_IP_				0UL

#define trace_guest_halt_poll_ns_grow(new, old)		do { } while (0)
#define trace_guest_halt_poll_ns_shrink(new, old)	do { } while (0)

#endif
