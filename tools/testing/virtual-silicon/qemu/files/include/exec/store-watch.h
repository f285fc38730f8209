/*
 * Watching a line of guest memory for stores, for MONITOR and UMONITOR.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef EXEC_STORE_WATCH_H
#define EXEC_STORE_WATCH_H

#include "exec/cpu-common.h"
#include "hw/core/cpu.h"
#include "qemu/bitops.h"

/* The size of the area that MONITOR arms; CPUID.5 must report the same. */
#define STORE_WATCH_LINE 64

extern unsigned long *store_watch_pages;

/* Must stores to the page of @addr take the slow path? */
static inline bool store_watch_page(ram_addr_t addr)
{
    unsigned long *map = qatomic_read(&store_watch_pages);

    return unlikely(map) && test_bit(addr >> TARGET_PAGE_BITS, map);
}

/*
 * Arm the line that contains @addr (host pointer @host) for @cs.  An older
 * line of the same vCPU is forgotten.
 */
void store_watch_arm(CPUState *cs, ram_addr_t addr, void *host);

/* True while armed and no store has hit the line. */
bool store_watch_armed(CPUState *cs);

void store_watch_disarm(CPUState *cs);

/* @writer is about to store @size bytes at @addr, a page being watched. */
void store_watch_store(CPUState *writer, ram_addr_t addr, unsigned size);

#endif
