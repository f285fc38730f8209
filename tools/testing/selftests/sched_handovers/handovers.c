// SPDX-License-Identifier: GPL-2.0
/*
 * Work that goes from thread to thread: how often, and how long does a wake-up take?
 *
 *	handovers [-OPTION VALUE]...
 *
 *	-n threads		2 to 256
 *	-o order		ring: to the next; random: to any; workers: thread 0 gives it to
 *				any other and gets it back; burst: thread 0 gives a piece to
 *				each of the others, and waits for all
 *	-m means		what wakes: futex, pipe, unix, tcp, epoll
 *	-k pieces		so many at once, for half of the threads at most
 *	-w us			of work on a piece, at the clock that -c was measured at
 *	-p us			rest before each 20th piece, or after each burst
 *	-s seconds		to measure, after 0.1 s of the same
 *	-S seed			of what is random
 *	-c steps		of work in a us; without it they are measured and printed
 *
 * No thread is pinned. A piece goes to a thread that has none, in a ring to the next such
 * one. Prints hops per second; of the time from the call that wakes a thread until that
 * runs the median, the 99th percentile and the longest, in us; and the power of package 0
 * in W, 0 if it cannot be read.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NSEC		1000000000ll
#define ENERGY		"/sys/class/powercap/intel-rapl:0/energy_uj"
#define MAX_THREADS	256
#define MAX_SAMPLES	4000000
#define HOPS_PER_REST	20

/*
 * @busy: it has a piece; @waits: nothing came yet since it asked.
 * @in is written to, @out is read, for which @epoll waits.
 */
struct worker {
	_Alignas(64) atomic_uint posted;
	atomic_bool busy, waits;
	atomic_llong sent_ns;
	uint64_t random;
	int in, out, epoll;
};

struct reading {
	int64_t ns;
	unsigned int hops, samples;
	double joules;
};

static struct worker workers[MAX_THREADS];
static unsigned int late_ns[MAX_SAMPLES];
static atomic_uint hops, samples;

static const char *order = "random", *means = "futex";
static unsigned int threads = 16, pieces = 1, work_us = 20, rest_us, seed = 1, steps_us;
static double seconds = 0.4;
static bool by_futex, by_epoll, ring, burst;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC + t.tv_nsec;
}

static void rest(int64_t ns)
{
	struct timespec t = { ns / NSEC, ns % NSEC };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static uint64_t next_random(uint64_t x)
{
	return x * 6364136223846793005ull + 1442695040888963407ull;
}

/* Each step needs the result of the one before. */
static void work(unsigned long steps)
{
	uint64_t x = 88172645463325252ull;

	while (steps--) {
		x = next_random(x);
		__asm__ volatile("" : "+r"(x));
	}
}

/* The most of 50 rounds: the clock rises meanwhile. */
static unsigned int measure_steps(void)
{
	const unsigned int steps = 100000;
	unsigned int most = 0;

	for (int i = 0; i < 50; i++) {
		int64_t begin = now_ns();
		unsigned int rate;

		work(steps);
		rate = steps * 1000ll / (now_ns() - begin);
		if (rate > most)
			most = rate;
	}
	return most;
}

static void make_tcp(struct worker *w)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	socklen_t len = sizeof(addr);

	w->in = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&addr, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&addr, &len) ||
	    connect(w->in, (struct sockaddr *)&addr, len) ||
	    setsockopt(w->in, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		die("tcp");
	w->out = accept(listener, NULL, NULL);
	close(listener);
}

static void make_means(struct worker *w)
{
	struct epoll_event event = { .events = EPOLLIN };
	int ends[2] = { 0, 0 };

	if (!strcmp(means, "pipe")) {
		if (pipe(ends))
			die("pipe");
	} else if (!strcmp(means, "unix")) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
			die("socketpair");
	} else if (by_epoll) {
		ends[0] = eventfd(0, EFD_SEMAPHORE);
		ends[1] = ends[0];
		w->epoll = epoll_create1(0);
		if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, ends[0], &event))
			die("epoll");
	}
	w->out = ends[0];
	w->in = ends[1];
	if (!strcmp(means, "tcp"))
		make_tcp(w);
}

static void post(struct worker *w)
{
	uint64_t one = 1;
	ssize_t size = by_epoll ? sizeof(one) : 1;

	if (by_futex) {
		w->posted++;
		syscall(SYS_futex, &w->posted, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	} else if (write(w->in, &one, size) != size) {
		die("write");
	}
}

static void receive(struct worker *w)
{
	struct epoll_event event;
	uint64_t one;

	if (by_futex) {
		while (!w->posted)
			syscall(SYS_futex, &w->posted, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		w->posted--;
		return;
	}
	if (by_epoll)
		epoll_wait(w->epoll, &event, 1, -1);
	if (read(w->out, &one, by_epoll ? sizeof(one) : 1) < 1)
		die("read");
}

/* Who finds a piece without having waited has no time to tell. */
static void take(struct worker *w)
{
	int64_t sent;
	unsigned int i;

	w->sent_ns = 0;
	w->waits = true;
	receive(w);
	w->waits = false;
	sent = w->sent_ns;
	if (!sent)
		return;
	sent = now_ns() - sent;
	i = samples++;
	/* Clocks of two CPUs may differ by a little. */
	if (i < MAX_SAMPLES)
		late_ns[i] = sent < 0 ? 0 : sent;
}

static void hand(struct worker *w)
{
	hops++;
	if (atomic_exchange(&w->waits, false))
		w->sent_ns = now_ns();
	post(w);
}

/* To one that has no piece. @from: the first one that may get it */
static void hand_on(struct worker *self, unsigned int from)
{
	unsigned int i = self - workers;
	struct worker *w;

	do {
		if (ring) {
			i = (i + 1) % threads;
		} else {
			self->random = next_random(self->random);
			i = from + (self->random >> 33) % (threads - from);
		}
		w = &workers[i];
	} while (atomic_exchange(&w->busy, true));
	self->busy = false;
	hand(w);
}

static void do_piece(void)
{
	if (rest_us && !burst && hops % HOPS_PER_REST == 0)
		rest(rest_us * 1000ll);
	work((unsigned long)work_us * steps_us);
}

static void *run_pool(void *arg)
{
	for (;;) {
		take(arg);
		do_piece();
		hand_on(arg, 0);
	}
	return NULL;
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		take(w);
		do_piece();
		w->busy = false;
		hand(&workers[0]);
	}
	return NULL;
}

static void *run_dispatcher(void *arg)
{
	for (unsigned int i = 0; i < pieces; i++)
		hand_on(arg, 1);
	for (;;) {
		take(arg);
		hand_on(arg, 1);
	}
	return NULL;
}

static void *run_bursts(void *arg)
{
	for (;;) {
		for (unsigned int i = 1; i < threads; i++)
			hand_on(arg, 1);
		for (unsigned int i = 1; i < threads; i++)
			take(arg);
		rest(rest_us * 1000ll);
	}
	return NULL;
}

static void start(void *(*run)(void *), unsigned int i)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, &workers[i]))
		die("thread");
}

/* Thread 0 comes last, when the others wait. */
static void start_all(void)
{
	bool dispatched = burst || !strcmp(order, "workers");

	for (unsigned int i = 0; i < threads; i++) {
		workers[i].random = next_random(seed * MAX_THREADS + i);
		make_means(&workers[i]);
	}
	for (unsigned int i = dispatched; i < threads; i++)
		start(dispatched ? run_worker : run_pool, i);
	rest(10000000);
	if (dispatched)
		start(burst ? run_bursts : run_dispatcher, 0);
	else
		for (unsigned int i = 0; i < pieces; i++) {
			workers[2 * i].busy = true;
			hand(&workers[2 * i]);
		}
}

static double energy(void)
{
	FILE *file = fopen(ENERGY, "r");
	double uj = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%lf", &uj) != 1)
		uj = 0;
	fclose(file);
	return uj / 1e6;
}

static struct reading now(void)
{
	return (struct reading){ now_ns(), hops, samples, energy() };
}

static int ascending(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return (x > y) - (x < y);
}

static double percentile(const unsigned int *sorted, unsigned int nr, unsigned int of_1000)
{
	return nr ? sorted[(nr - 1) * 1ull * of_1000 / 1000] / 1e3 : 0;
}

static void report(struct reading a, struct reading b)
{
	unsigned int end = b.samples < MAX_SAMPLES ? b.samples : MAX_SAMPLES;
	unsigned int *of = late_ns + a.samples, nr = end - a.samples;
	double took = (b.ns - a.ns) / 1e9;

	qsort(of, nr, sizeof(*of), ascending);
	printf("%.0f %.1f %.1f %.1f %.3f\n", (b.hops - a.hops) / took,
	       percentile(of, nr, 500), percentile(of, nr, 990), percentile(of, nr, 1000),
	       (b.joules - a.joules) / took);
}

static bool one_of(const char *word, const char *words)
{
	size_t n = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += n)
		if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return true;
	return false;
}

static void parse(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "n:o:m:k:w:p:s:S:c:")) != -1)
		switch (option) {
		case 'n':
			threads = atoi(optarg);
			break;
		case 'o':
			order = optarg;
			break;
		case 'm':
			means = optarg;
			break;
		case 'k':
			pieces = atoi(optarg);
			break;
		case 'w':
			work_us = atoi(optarg);
			break;
		case 'p':
			rest_us = atoi(optarg);
			break;
		case 's':
			seconds = atof(optarg);
			break;
		case 'S':
			seed = atoi(optarg);
			break;
		case 'c':
			steps_us = atoi(optarg);
			break;
		default:
			exit(2);
		}
	if (threads < 2 || threads > MAX_THREADS || !pieces || 2 * pieces > threads ||
	    seconds <= 0 || !one_of(order, "ring random workers burst") ||
	    !one_of(means, "futex pipe unix tcp epoll")) {
		fprintf(stderr, "handovers: no such load; the source says what there is\n");
		exit(2);
	}
	by_futex = !strcmp(means, "futex");
	by_epoll = !strcmp(means, "epoll");
	ring = !strcmp(order, "ring");
	burst = !strcmp(order, "burst");
}

int main(int argc, char **argv)
{
	struct reading begin;

	parse(argc, argv);
	if (!steps_us) {
		printf("%u\n", measure_steps());
		return 0;
	}
	start_all();
	rest(NSEC / 10);
	begin = now();
	rest(seconds * NSEC);
	report(begin, now());
	fflush(stdout);
	/* Not waiting for those that wait. */
	_exit(0);
}
