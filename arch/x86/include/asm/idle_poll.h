/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A polling idle loop that waits by UMWAIT
 */
#ifndef _ASM_X86_IDLE_POLL_H
#define _ASM_X86_IDLE_POLL_H

#include <linux/irqflags.h>

#include <asm/mwait.h>

#define UMWAIT_POLL_OFF			(-1)

/* UMWAIT_C02_STATE, UMWAIT_C01_STATE or UMWAIT_POLL_OFF. */
extern int umwait_poll_state;

/**
 * idle_poll_wait - wait for need_resched() without executing instructions
 * @ns: for so long at most
 *
 * Called by the idle task with the polling flag set and interrupts on. Ends
 * with need_resched(), with any interrupt, and after @ns. noinstr-clean.
 *
 * Return: false at once if that is not asked for, see umwait.idle_poll.
 */
static __always_inline bool idle_poll_wait(u64 ns)
{
	int state = READ_ONCE(umwait_poll_state);

	if (state == UMWAIT_POLL_OFF)
		return false;

	raw_local_irq_disable();
	umwait_need_resched(state, umwait_deadline(ns));
	raw_local_irq_enable();
	return true;
}

#endif /* _ASM_X86_IDLE_POLL_H */
