// SPDX-License-Identifier: GPL-2.0
/*
 * Does every wake-up of an idle CPU arrive, and when?
 *
 * Tokens go from CPU to CPU. The thread that holds one waits for a random time,
 * then wakes an idle CPU in one of several ways and passes the token to it, or
 * keeps it and waits for a timer of its own. All other CPUs are idle meanwhile,
 * in the states that sysfs allows them, so that it is those that are tested.
 * What is measured is the time from the sender's action to the first
 * instruction of the receiver that has to do with it:
 *
 *	store	  a function call by way of the idle task, as wake-ups of tasks
 *		  are: for a CPU that polls or monitors its flags it is a store
 *	ipi	  an interrupt from another CPU
 *	nmi	  the same, not maskable
 *	irq	  a device's interrupt line, triggered by software
 *	timer	  a high-resolution timer of the CPU
 *
 * While a CPU goes off or comes on, nothing is measured: stop_machine() keeps
 * interrupts off on all CPUs for long then.
 *
 * A wake-up that is lost shows as a late one, once something else ends the rest,
 * or, if nothing does, as a run that does not end. Late is what kept its CPU
 * resting for longer than bound_us. If it took that long because the CPU was
 * executing, such as the softirqs of the tick, which a store does not interrupt,
 * no idle state is to blame: these are counted as busy. States that take their
 * interrupts before they are left (POLL, C0.2) have handlers run within them:
 * the tick's and softirqs are not rest.
 *
 *	cd /sys/kernel/debug/wakeup_test
 *	echo 100000 >run	# so many wake-ups; returns when they are done
 *	cat result
 *	cat slow		# the first late and busy ones: when, by trace_clock mono
 *	echo 7 >seed		# of the random numbers, goes up with each run
 *	echo 100 >bound_us	# later ones are late or busy
 *
 * The first of them ends tracing, so that the trace says what the CPU was doing.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/smpboot.h>
#include <linux/timekeeping.h>

#include <trace/events/irq.h>
#include <trace/events/power.h>

#include <asm/apic.h>
#include <asm/irq.h>
#include <asm/nmi.h>
#include <asm/trace/irq_vectors.h>

enum wakeup_kind { STORE, IPI, NMI, IRQ, TIMER, NR_KINDS };

static const char * const kind_names[NR_KINDS] = {
	"store", "ipi", "nmi", "irq", "timer"
};

/* Lines of the ISA bus that rarely have a device; a CPU each, from CPU 0 on. */
static const unsigned int isa_lines[] = { 5, 6, 7, 10, 11, 14, 15 };

/* Most pauses are so short that the receiver is on its way into the state. */
#define PAUSE_BITS		13
#define LONG_PAUSE_BITS		19

struct wakeup_count {
	u64 nr;
	u64 late;
	u64 busy;
	u64 sum_ns;
	s64 max_ns;
};

/**
 * struct wakeup_cpu - a CPU that takes part
 * @cpu: its number
 * @busy: it has a token, or one is on the way
 * @go: the token has arrived, the thread may run
 * @nmi_sent: the next NMI is ours
 * @kind: how the token was sent
 * @sent: when, CLOCK_MONOTONIC in ns; 0 if that is not to be measured
 * @state: idle state that the CPU is in, PWR_EVENT_EXIT if in none
 * @handlers: handlers under way
 * @rest_begin: when the CPU began to rest, 0 if it does not
 * @rested: ns that it has rested since @rested_from, the rest under way excluded
 * @rested_from: @sent at the end of the last rest
 * @hotplug: wakeup_hotplug at that time
 * @line: its interrupt line, 0 if it has none
 * @timer: for TIMER
 * @store: for STORE
 * @after_nmi: wakes the thread, which an NMI cannot do
 * @rnd: its random numbers
 * @count: what it has seen, per kind
 */
struct wakeup_cpu {
	int cpu;
	atomic_t busy;
	bool go;
	bool nmi_sent;
	u8 kind;
	unsigned int state;
	unsigned int handlers;
	s64 sent;
	s64 rest_begin;
	s64 rested;
	s64 rested_from;
	int hotplug;
	unsigned int line;
	struct hrtimer timer;
	struct irq_work store;
	struct irq_work after_nmi;
	struct rnd_state rnd;
	struct wakeup_count count[NR_KINDS];
};

/**
 * struct wakeup_slow - one that took longer than the bound
 * @cpu: which CPU it was for
 * @kind: how it was sent
 * @late: the CPU rested for longer than the bound meanwhile
 * @sent: when, CLOCK_MONOTONIC in ns
 * @arrived: when it arrived
 * @rested: for how many ns of that the CPU rested
 */
struct wakeup_slow {
	int cpu;
	u8 kind;
	bool late;
	s64 sent;
	s64 arrived;
	s64 rested;
};

static DEFINE_PER_CPU_ALIGNED(struct wakeup_cpu, wakeup_cpus);
static DEFINE_PER_CPU(struct task_struct *, wakeup_threads);

/* CPUs whose threads are not parked. */
static struct cpumask wakeup_ready;

/* Goes up as a CPU begins to go off or come on, and when it has: odd between. */
static atomic_t wakeup_hotplug;

static atomic64_t wakeups_left;
static atomic_t wakeup_tokens;
static DECLARE_COMPLETION(wakeups_done);
static DEFINE_MUTEX(wakeup_mutex);	/* one run at a time */
static struct wakeup_slow wakeup_slow[16];	/* of the last run, the first ones */
static atomic_t wakeup_nr_slow;
static u32 bound_us = 100;
static u32 wakeup_seed = 1;

/* Of the time from a wake-up to now, the part that its CPU has rested, in ns. */
static s64 wakeup_rested(const struct wakeup_cpu *c, s64 sent, s64 now)
{
	s64 rested = c->rested_from == sent ? c->rested : 0;

	if (c->rest_begin)
		rested += max_t(s64, now - max(c->rest_begin, sent), 0);
	return rested;
}

/* A rest begins or ends, on this CPU and with interrupts off. */
static void wakeup_set_resting(struct wakeup_cpu *c, bool resting)
{
	s64 now = ktime_get_mono_fast_ns(), sent = READ_ONCE(c->sent);

	if (resting == !!c->rest_begin)
		return;
	if (!resting) {
		c->rested = wakeup_rested(c, sent, now);
		c->rested_from = sent;
	}
	WRITE_ONCE(c->rest_begin, resting ? now : 0);
}

/* Idle states are entered and left here, with interrupts off. */
static void wakeup_rest(void *unused, unsigned int state, unsigned int cpu)
{
	struct wakeup_cpu *c = this_cpu_ptr(&wakeup_cpus);

	c->state = state;
	c->handlers = 0;
	wakeup_set_resting(c, state != PWR_EVENT_EXIT);
}

static void wakeup_handler_begins(void)
{
	struct wakeup_cpu *c = this_cpu_ptr(&wakeup_cpus);
	unsigned long flags;

	local_irq_save(flags);
	c->handlers++;
	wakeup_set_resting(c, false);
	local_irq_restore(flags);
}

static void wakeup_handler_ends(void)
{
	struct wakeup_cpu *c = this_cpu_ptr(&wakeup_cpus);
	unsigned long flags;

	local_irq_save(flags);
	if (c->handlers && !--c->handlers)
		wakeup_set_resting(c, c->state != PWR_EVENT_EXIT);
	local_irq_restore(flags);
}

static void wakeup_tick_begins(void *unused, int vector)
{
	wakeup_handler_begins();
}

static void wakeup_tick_ends(void *unused, int vector)
{
	wakeup_handler_ends();
}

static void wakeup_softirq_begins(void *unused, unsigned int nr)
{
	wakeup_handler_begins();
}

static void wakeup_softirq_ends(void *unused, unsigned int nr)
{
	wakeup_handler_ends();
}

/* Notes a slow one; the trace ends with the first. */
static void wakeup_note_slow(const struct wakeup_cpu *c, enum wakeup_kind kind,
			     s64 sent, s64 now, s64 rested, bool late)
{
	int i = atomic_inc_return(&wakeup_nr_slow) - 1;

	if (i < ARRAY_SIZE(wakeup_slow))
		wakeup_slow[i] = (struct wakeup_slow) {
			.cpu = c->cpu, .kind = kind, .late = late, .sent = sent,
			.arrived = now, .rested = rested
		};
	tracing_off();
}

static void wakeup_measure(struct wakeup_cpu *c, enum wakeup_kind kind)
{
	struct wakeup_count *n = &c->count[kind];
	s64 bound = (s64)READ_ONCE(bound_us) * NSEC_PER_USEC;
	s64 now, ns, rested, sent = c->sent;

	if (!sent || c->hotplug & 1 || c->hotplug != atomic_read(&wakeup_hotplug))
		return;

	/* Clocks of two CPUs may differ by a little. */
	now = ktime_get_mono_fast_ns();
	ns = max_t(s64, now - sent, 0);
	rested = wakeup_rested(c, sent, now);
	c->sent = 0;
	n->nr++;
	n->sum_ns += ns;
	n->max_ns = max(n->max_ns, ns);
	if (ns <= bound)
		return;
	if (rested > bound)
		n->late++;
	else
		n->busy++;
	wakeup_note_slow(c, kind, sent, now, rested, rested > bound);
}

static void wakeup_arrived(struct wakeup_cpu *c)
{
	WRITE_ONCE(c->go, true);
	wake_up_process(per_cpu(wakeup_threads, c->cpu));
}

static void wakeup_store(struct irq_work *work)
{
	struct wakeup_cpu *c = container_of(work, struct wakeup_cpu, store);

	wakeup_measure(c, STORE);
	wakeup_arrived(c);
}

static void wakeup_ipi(void)
{
	struct wakeup_cpu *c = this_cpu_ptr(&wakeup_cpus);

	wakeup_measure(c, IPI);
	wakeup_arrived(c);
}

static int wakeup_nmi(unsigned int cmd, struct pt_regs *regs)
{
	struct wakeup_cpu *c = this_cpu_ptr(&wakeup_cpus);

	if (!READ_ONCE(c->nmi_sent))
		return NMI_DONE;

	WRITE_ONCE(c->nmi_sent, false);
	wakeup_measure(c, NMI);
	irq_work_queue(&c->after_nmi);
	return NMI_HANDLED;
}

static void wakeup_after_nmi(struct irq_work *work)
{
	wakeup_arrived(container_of(work, struct wakeup_cpu, after_nmi));
}

/* After its CPU was offline a line leads elsewhere until the next interrupt. */
static irqreturn_t wakeup_irq(int irq, void *arg)
{
	struct wakeup_cpu *c = arg;

	if (c->cpu != smp_processor_id())
		c->sent = 0;
	wakeup_measure(c, IRQ);
	wakeup_arrived(c);
	return IRQ_HANDLED;
}

static enum hrtimer_restart wakeup_timer(struct hrtimer *timer)
{
	struct wakeup_cpu *c = container_of(timer, struct wakeup_cpu, timer);

	wakeup_measure(c, TIMER);
	wakeup_arrived(c);
	return HRTIMER_NORESTART;
}

/* Each power of two is as likely as the next; now and then a long one. */
static u32 wakeup_pause_ns(struct wakeup_cpu *c)
{
	u32 rnd = prandom_u32_state(&c->rnd);
	u32 bits = rnd % 1024 ? (rnd >> 10) % PAUSE_BITS : LONG_PAUSE_BITS;

	return prandom_u32_state(&c->rnd) & GENMASK(bits, 0);
}

static void wakeup_spin(u32 ns)
{
	u64 end = ktime_get_mono_fast_ns() + ns;

	while (ktime_get_mono_fast_ns() < end)
		cpu_relax();
}

/* An idle CPU that now belongs to the sender, or -1. Preemption is off. */
static int wakeup_claim(struct wakeup_cpu *self)
{
	int cpu = prandom_u32_state(&self->rnd) % nr_cpu_ids;

	cpu = cpumask_next_wrap(cpu, &wakeup_ready, cpu, true);
	if (cpu >= nr_cpu_ids || cpu == self->cpu)
		return -1;

	return atomic_cmpxchg(&per_cpu_ptr(&wakeup_cpus, cpu)->busy, 0, 1) ? -1 : cpu;
}

static enum wakeup_kind wakeup_choose(struct wakeup_cpu *self,
				      const struct wakeup_cpu *to)
{
	u32 rnd = prandom_u32_state(&self->rnd) % 8;

	if (rnd < 3)
		return STORE;
	if (rnd < 5)
		return IPI;
	if (rnd < 6)
		return NMI;
	return to->line ? IRQ : IPI;
}

/*
 * Preemption is off, so that the receiver stays online. Interrupts are off, so
 * that nothing comes between the note of the time and the wake-up.
 */
static void wakeup_send(struct wakeup_cpu *to, enum wakeup_kind kind)
{
	unsigned long flags;

	local_irq_save(flags);
	to->kind = kind;
	to->hotplug = atomic_read(&wakeup_hotplug);
	/* What else may run there can keep it waiting; that is not of interest. */
	to->sent = available_idle_cpu(to->cpu) ? ktime_get_mono_fast_ns() : 0;
	switch (kind) {
	case STORE:
		irq_work_queue_on(&to->store, to->cpu);
		break;
	case IPI:
		__apic_send_IPI(to->cpu, X86_PLATFORM_IPI_VECTOR);
		break;
	case NMI:
		WRITE_ONCE(to->nmi_sent, true);
		__apic_send_IPI(to->cpu, NMI_VECTOR);
		break;
	default:
		if (irq_inject_interrupt(to->line))
			wakeup_arrived(to);
		break;
	}
	local_irq_restore(flags);
}

/* Until its first tick a CPU that came on has timers of the tick's resolution. */
static void wakeup_by_timer(struct wakeup_cpu *c)
{
	u32 pause = wakeup_pause_ns(c) + 1000;
	unsigned long flags;
	ktime_t expires;

	local_irq_save(flags);
	expires = ktime_add_ns(ktime_get(), pause);
	hrtimer_start(&c->timer, expires, HRTIMER_MODE_ABS_PINNED_HARD);
	c->kind = TIMER;
	c->hotplug = atomic_read(&wakeup_hotplug);
	c->sent = hrtimer_is_hres_active(&c->timer) ? expires : 0;
	local_irq_restore(flags);
}

static void wakeup_drop_token(struct wakeup_cpu *c)
{
	atomic_set_release(&c->busy, 0);
	if (atomic_dec_and_test(&wakeup_tokens))
		complete(&wakeups_done);
}

static int wakeup_should_run(unsigned int cpu)
{
	return READ_ONCE(per_cpu_ptr(&wakeup_cpus, cpu)->go);
}

/* The token is here: pass it on. */
static void wakeup_run(unsigned int cpu)
{
	struct wakeup_cpu *c = per_cpu_ptr(&wakeup_cpus, cpu);
	int next = -1;

	c->sent = 0;
	WRITE_ONCE(c->go, false);

	if (atomic64_dec_return(&wakeups_left) < 0) {
		wakeup_drop_token(c);
		return;
	}

	wakeup_spin(wakeup_pause_ns(c));

	preempt_disable();
	if (prandom_u32_state(&c->rnd) % 4)
		next = wakeup_claim(c);
	if (next < 0) {
		wakeup_by_timer(c);
	} else {
		struct wakeup_cpu *to = per_cpu_ptr(&wakeup_cpus, next);
		enum wakeup_kind kind = wakeup_choose(c, to);

		/* From here on somebody may send us one. */
		atomic_set_release(&c->busy, 0);
		wakeup_send(to, kind);
	}
	preempt_enable();
}

/* What is on the way while the CPU goes off arrives in any case, but late. */
static void wakeup_park(unsigned int cpu)
{
	cpumask_clear_cpu(cpu, &wakeup_ready);
	per_cpu_ptr(&wakeup_cpus, cpu)->sent = 0;
}

static void wakeup_unpark(unsigned int cpu)
{
	struct wakeup_cpu *c = per_cpu_ptr(&wakeup_cpus, cpu);

	c->sent = 0;
	if (c->line)
		irq_set_affinity(c->line, cpumask_of(cpu));
	cpumask_set_cpu(cpu, &wakeup_ready);
}

/* A CPU begins to go off, it is off, it begins to come on, it is on. */
static int wakeup_hotplug_step(unsigned int cpu)
{
	atomic_inc(&wakeup_hotplug);
	return 0;
}

static struct smp_hotplug_thread wakeup_smpboot = {
	.store			= &wakeup_threads,
	.thread_should_run	= wakeup_should_run,
	.thread_fn		= wakeup_run,
	.setup			= wakeup_unpark,
	.park			= wakeup_park,
	.unpark			= wakeup_unpark,
	.thread_comm		= "wakeup_test/%u",
};

/* A token for every second CPU, given to those by a store. */
static void wakeup_give_tokens(void)
{
	int tokens = max(num_online_cpus() / 2, 1U), cpu;

	reinit_completion(&wakeups_done);
	atomic_set(&wakeup_tokens, tokens);
	for_each_cpu(cpu, &wakeup_ready) {
		struct wakeup_cpu *c = per_cpu_ptr(&wakeup_cpus, cpu);

		if (!tokens--)
			break;
		atomic_set(&c->busy, 1);
		wakeup_send(c, STORE);
	}
}

static void wakeup_unregister_probes(void)
{
	unregister_trace_softirq_exit(wakeup_softirq_ends, NULL);
	unregister_trace_softirq_entry(wakeup_softirq_begins, NULL);
	unregister_trace_local_timer_exit(wakeup_tick_ends, NULL);
	unregister_trace_local_timer_entry(wakeup_tick_begins, NULL);
	unregister_trace_cpu_idle(wakeup_rest, NULL);
	tracepoint_synchronize_unregister();
}

/*
 * While a run lasts only, so that the kernel is as it was otherwise. Fails without
 * memory only, and then so does each later run.
 */
static int wakeup_register_probes(void)
{
	int err = register_trace_cpu_idle(wakeup_rest, NULL);

	err = err ?: register_trace_local_timer_entry(wakeup_tick_begins, NULL);
	err = err ?: register_trace_local_timer_exit(wakeup_tick_ends, NULL);
	err = err ?: register_trace_softirq_entry(wakeup_softirq_begins, NULL);
	return err ?: register_trace_softirq_exit(wakeup_softirq_ends, NULL);
}

static int wakeup_run_set(void *data, u64 wakeups)
{
	int cpu, err;

	if (!wakeups || wakeups > S64_MAX)
		return -EINVAL;

	err = mutex_lock_interruptible(&wakeup_mutex);
	if (err)
		return err;

	for_each_possible_cpu(cpu) {
		struct wakeup_cpu *c = per_cpu_ptr(&wakeup_cpus, cpu);

		memset(c->count, 0, sizeof(c->count));
		c->state = PWR_EVENT_EXIT;
		c->handlers = 0;
		c->rest_begin = 0;
		c->rested_from = 0;
		prandom_seed_state(&c->rnd, (u64)wakeup_seed << 32 | cpu);
	}
	wakeup_seed++;
	atomic_set(&wakeup_nr_slow, 0);

	err = wakeup_register_probes();
	if (err)
		goto unlock;

	atomic64_set(&wakeups_left, wakeups);
	cpus_read_lock();
	wakeup_give_tokens();
	cpus_read_unlock();
	wait_for_completion(&wakeups_done);
	wakeup_unregister_probes();
unlock:
	mutex_unlock(&wakeup_mutex);
	return err;
}
DEFINE_DEBUGFS_ATTRIBUTE(wakeup_run_fops, NULL, wakeup_run_set, "%llu\n");

static void wakeup_add(struct wakeup_count *sum, const struct wakeup_count *n)
{
	sum->nr += n->nr;
	sum->late += n->late;
	sum->busy += n->busy;
	sum->sum_ns += n->sum_ns;
	sum->max_ns = max(sum->max_ns, n->max_ns);
}

static int result_show(struct seq_file *m, void *unused)
{
	int kind, cpu;

	seq_puts(m, "kind wake-ups late busy mean_ns max_ns\n");
	for (kind = 0; kind < NR_KINDS; kind++) {
		struct wakeup_count sum = {};

		for_each_possible_cpu(cpu)
			wakeup_add(&sum, &per_cpu_ptr(&wakeup_cpus, cpu)->count[kind]);
		seq_printf(m, "%s %llu %llu %llu %llu %lld\n", kind_names[kind],
			   sum.nr, sum.late, sum.busy,
			   sum.nr ? div64_u64(sum.sum_ns, sum.nr) : 0, sum.max_ns);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

static int slow_show(struct seq_file *m, void *unused)
{
	int i, nr = min_t(int, atomic_read(&wakeup_nr_slow), ARRAY_SIZE(wakeup_slow));

	seq_puts(m, "what kind cpu sent_ns arrived_ns rested_ns\n");
	for (i = 0; i < nr; i++) {
		const struct wakeup_slow *w = &wakeup_slow[i];

		seq_printf(m, "%s %s %d %lld %lld %lld\n", w->late ? "late" : "busy",
			   kind_names[w->kind], w->cpu, w->sent, w->arrived, w->rested);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(slow);

static void __init wakeup_init_cpu(int cpu)
{
	struct wakeup_cpu *c = per_cpu_ptr(&wakeup_cpus, cpu);

	c->cpu = cpu;
	hrtimer_init(&c->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	c->timer.function = wakeup_timer;
	c->store = IRQ_WORK_INIT_HARD(wakeup_store);
	c->after_nmi = IRQ_WORK_INIT_HARD(wakeup_after_nmi);

	if (cpu < ARRAY_SIZE(isa_lines) &&
	    !request_irq(isa_lines[cpu], wakeup_irq, IRQF_NOBALANCING, "wakeup_test", c))
		c->line = isa_lines[cpu];
}

static int __init wakeup_test_init(void)
{
	struct dentry *dir;
	int cpu, err;

	if (x86_platform_ipi_callback)
		return -EBUSY;

	for_each_possible_cpu(cpu)
		wakeup_init_cpu(cpu);
	x86_platform_ipi_callback = wakeup_ipi;
	err = register_nmi_handler(NMI_LOCAL, wakeup_nmi, 0, "wakeup_test");
	if (!err)
		err = smpboot_register_percpu_thread(&wakeup_smpboot);
	if (!err)
		err = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN,
						"idle/wakeup_test:prepare",
						wakeup_hotplug_step,
						wakeup_hotplug_step);
	if (err >= 0)
		err = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN,
						"idle/wakeup_test:online",
						wakeup_hotplug_step,
						wakeup_hotplug_step);
	if (err < 0)
		return err;

	dir = debugfs_create_dir("wakeup_test", NULL);
	debugfs_create_file_unsafe("run", 0200, dir, NULL, &wakeup_run_fops);
	debugfs_create_file("result", 0400, dir, NULL, &result_fops);
	debugfs_create_file("slow", 0400, dir, NULL, &slow_fops);
	debugfs_create_u32("bound_us", 0600, dir, &bound_us);
	debugfs_create_u32("seed", 0600, dir, &wakeup_seed);
	return 0;
}
late_initcall(wakeup_test_init);
