/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a polling idle loop does between two looks at need_resched()
 */
#ifndef _LINUX_IDLE_POLL_H
#define _LINUX_IDLE_POLL_H

#include <linux/types.h>

#ifdef CONFIG_ARCH_HAS_IDLE_POLL_WAIT
#include <asm/idle_poll.h>
#else
static __always_inline bool idle_poll_wait(u64 ns)
{
	return false;
}
#endif

#endif /* _LINUX_IDLE_POLL_H */
