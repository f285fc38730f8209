/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM freq_invariance

#if !defined(_TRACE_FREQ_INVARIANCE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_FREQ_INVARIANCE_H

#include <linux/tracepoint.h>

TRACE_EVENT(freq_scale,

	TP_PROTO(unsigned int cpu, u64 aperf, u64 mperf, u32 ratio, unsigned long scale),

	TP_ARGS(cpu, aperf, mperf, ratio, scale),

	TP_STRUCT__entry(
		__field(u64,		aperf)
		__field(u64,		mperf)
		__field(unsigned int,	cpu)
		__field(u32,		ratio)
		__field(unsigned int,	scale)
	),

	TP_fast_assign(
		__entry->aperf = aperf;
		__entry->mperf = mperf;
		__entry->cpu = cpu;
		__entry->ratio = ratio;
		__entry->scale = scale;
	),

	TP_printk("cpu=%u aperf=%llu mperf=%llu ratio=%u scale=%u",
		  __entry->cpu, __entry->aperf, __entry->mperf, __entry->ratio,
		  __entry->scale)
);

#endif /* _TRACE_FREQ_INVARIANCE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH asm/trace/
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE freq_invariance
#include <trace/define_trace.h>
