/* SPDX-License-Identifier: GPL-2.0 */
#define trace_schedutil_request(cpu, old, wanted, verdict)	do { } while (0)
