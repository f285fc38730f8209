/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM schedutil

#if !defined(_TRACE_SCHEDUTIL_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_SCHEDUTIL_H

#include <linux/tracepoint.h>

#define SUGOV_VERDICTS				\
	EM(SUGOV_SAME,		"same")		\
	EM(SUGOV_LEVEL,		"level")	\
	EM(SUGOV_KEPT,		"kept")		\
	EM(SUGOV_HELD,		"held")		\
	EM(SUGOV_AT_ONCE,	"at_once")	\
	EMe(SUGOV_AT_END,	"at_end")

#undef EM
#undef EMe
#define EM(a, b)	TRACE_DEFINE_ENUM(a);
#define EMe(a, b)	TRACE_DEFINE_ENUM(a);

SUGOV_VERDICTS

#undef EM
#undef EMe
#define EM(a, b)	{ a, b },
#define EMe(a, b)	{ a, b }

/**
 * schedutil_request - the schedutil governor judged a request
 * @cpu: the CPU that asks
 * @old: utilisation that the present performance level was chosen for
 * @wanted: utilisation that is needed
 * @verdict: enum sugov_verdict
 *
 * Utilisation is in capacity units. Called with the CPU's run queue locked.
 */
TRACE_EVENT(schedutil_request,

	TP_PROTO(unsigned int cpu, unsigned int old, unsigned int wanted, unsigned int verdict),

	TP_ARGS(cpu, old, wanted, verdict),

	TP_STRUCT__entry(
		__field(u32,	cpu)
		__field(u32,	old)
		__field(u32,	wanted)
		__field(s32,	error)
		__field(u32,	verdict)
	),

	TP_fast_assign(
		__entry->cpu = cpu;
		__entry->old = old;
		__entry->wanted = wanted;
		__entry->error = wanted - old;
		__entry->verdict = verdict;
	),

	TP_printk("cpu=%u old=%u wanted=%u error=%d verdict=%s", __entry->cpu, __entry->old,
		  __entry->wanted, __entry->error,
		  __print_symbolic(__entry->verdict, SUGOV_VERDICTS))
);

#endif /* _TRACE_SCHEDUTIL_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
