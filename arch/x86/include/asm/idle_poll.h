/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A polling idle loop that waits by UMWAIT
 */
#ifndef _ASM_X86_IDLE_POLL_H
#define _ASM_X86_IDLE_POLL_H

#include <linux/irqflags.h>
#include <linux/jump_label.h>

#include <asm/mwait.h>

/* Whether polling idle loops wait by UMWAIT */
DECLARE_STATIC_KEY_FALSE(umwait_poll_on);

/**
 * idle_poll_wait - wait for need_resched() without executing instructions
 * @ns: the longest wait
 *
 * Called by the idle task with the polling flag set and interrupts on. Ends
 * with need_resched(), with any interrupt, and after @ns. noinstr-clean.
 *
 * Return: false, at once, if umwait.idle_poll is off.
 */
static __always_inline bool idle_poll_wait(u64 ns)
{
	if (!static_branch_unlikely(&umwait_poll_on))
		return false;

	raw_local_irq_disable();
	umwait_need_resched(umwait_deadline(ns));
	raw_local_irq_enable();
	return true;
}

#endif /* _ASM_X86_IDLE_POLL_H */
