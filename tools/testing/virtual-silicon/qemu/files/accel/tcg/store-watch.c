/*
 * Watching a line of guest memory for stores, for MONITOR and UMONITOR.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A page with an armed line keeps TLB_NOTDIRTY in every vCPU's TLB, so that
 * each store to it takes the slow path and is seen here, whatever value it
 * stores.  A page stays watched for good once a line of it was armed: it is the
 * idle thread's, armed again thousands of times a second, and sweeping all
 * TLBs each time would cost more than the slow stores do.
 *
 * The hook runs before the store is done.  The waiting vCPU is therefore told
 * through work queued on the storing one, which runs after the translation
 * block with the store in it: whoever is woken finds the new value.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/rcu.h"
#include "qemu/thread.h"
#include "cpu.h"
#include "exec/exec-all.h"
#include "exec/ram_addr.h"
#include "exec/ramlist.h"
#include "exec/store-watch.h"
#include "exec/virtual-silicon.h"

#define WATCH_VCPUS 256

unsigned long *store_watch_pages;

/* Per vCPU: armed line address, with bit 0 set; 0 while nothing is armed. */
static uint64_t watch_line[WATCH_VCPUS];

static uint64_t ram_pages(void)
{
    RAMBlock *block;
    ram_addr_t end = 0;

    RCU_READ_LOCK_GUARD();
    RAMBLOCK_FOREACH(block) {
        end = MAX(end, block->offset + block->max_length);
    }
    return DIV_ROUND_UP(end, TARGET_PAGE_SIZE);
}

static void watch_page(ram_addr_t addr, void *host)
{
    uintptr_t start = (uintptr_t)host & TARGET_PAGE_MASK;
    CPUState *cs;

    if (!qatomic_read(&store_watch_pages)) {
        unsigned long *map = bitmap_new(ram_pages());

        if (qatomic_cmpxchg(&store_watch_pages, NULL, map)) {
            g_free(map);
        }
    }
    if (store_watch_page(addr)) {
        return;
    }
    set_bit_atomic(addr >> TARGET_PAGE_BITS, store_watch_pages);
    CPU_FOREACH(cs) {
        tlb_reset_dirty(cs, start, TARGET_PAGE_SIZE);
    }
}

void store_watch_arm(CPUState *cs, ram_addr_t addr, void *host)
{
    g_assert(cs->cpu_index < WATCH_VCPUS);
    qatomic_set(&watch_line[cs->cpu_index],
                ROUND_DOWN(addr, STORE_WATCH_LINE) | 1);
    smp_mb();           /* a store that misses the line finds the page */
    watch_page(addr, host);
}

bool store_watch_armed(CPUState *cs)
{
    return qatomic_read(&watch_line[cs->cpu_index]) != 0;
}

void store_watch_disarm(CPUState *cs)
{
    qatomic_set(&watch_line[cs->cpu_index], 0);
}

static void watch_tell(CPUState *writer, run_on_cpu_data data)
{
    virtual_silicon->ops->stored(data.host_ptr);
}

void store_watch_store(CPUState *writer, ram_addr_t addr, unsigned size)
{
    CPUState *cs;

    CPU_FOREACH(cs) {
        uint64_t *line = &watch_line[cs->cpu_index];
        uint64_t armed = qatomic_read(line);

        if (!armed || addr + size <= (armed & ~1ull) ||
            addr >= (armed & ~1ull) + STORE_WATCH_LINE) {
            continue;
        }
        if (qatomic_cmpxchg(line, armed, 0) == armed) {
            async_run_on_cpu(writer, watch_tell, RUN_ON_CPU_HOST_PTR(cs));
        }
    }
}
