// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks that take turns, and some that only look like that, each on a CPU of its own.
 *
 *	conversations LOAD [SECONDS]
 *
 * Turns as fast as possible: a result is a number of rounds per second.
 *	pipe unix tcp udp futex		a byte goes to and fro
 *	ring3 ring4			it goes round by pipes
 *	legs0.1 legs1 legs5		two take turns, with so many ms of work each
 *	cold				legs of 0.1 ms: ms from rest until five rounds in a
 *					row are within 5 % of the fastest
 * Paced: rounds per second, at most the pace.
 *	serial		0.2 ms of work, then 0.2 ms of another's, in each ms
 *	paced5 20 50	rounds of 2 times 20 us of work, for so many % of 10 ms
 *	frames17 33	turns of 0.15 ms for 30 % of so many ms
 *	lapse		turns of 0.1 ms in each ms, and in 200 ms one of 3 ms
 *	server		4 clients rest for 0.5 ms after each answer, of 50 us
 * Others:
 *	parallel	two work for 0.4 ms of each ms, and wake each other when done
 *	producer	0.4 ms in each ms for an item, and 0.4 ms to consume it
 *	join		in each 10 ms three are woken for 3 ms, and waited for
 *	hog		never rests, and wakes a daemon for 0.1 ms after each 10 ms
 *	bystander	paced20, and a task on its first CPU with 0.4 ms in each ms
 *
 * Work is a number of steps that takes so long at 3.8 GHz.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MSEC		1000000ll
#define STEPS_US	118
#define MAX_TASKS	8
#define MAX_ROUNDS	65536

/* [0] is read, [1] is written */
static int ends[MAX_TASKS][2];
static atomic_uint words[2];
static atomic_long rounds;
static const char *name;
static int64_t begin_ns, end_ns;
static unsigned int leg_us, percent, frame_ms;
static int tasks;

static bool is(const char *other)
{
	return !strcmp(name, other);
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 * MSEC + t.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	struct timespec t = { ns / (1000 * MSEC), ns % (1000 * MSEC) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void work(unsigned int us)
{
	uint64_t x = 88172645463325252ull;

	for (unsigned int i = us * STEPS_US; i; i--) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		__asm__ volatile("" : "+r"(x));
	}
}

static void pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % sysconf(_SC_NPROCESSORS_ONLN), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("affinity");
}

/* Something for who reads from end @to */
static void tell(int to)
{
	if (write(ends[to][1], "", 1) != 1)
		die("write");
}

/* Waits until something comes to end @from. */
static bool hear(int from)
{
	char byte;

	return read(ends[from][0], &byte, 1) == 1;
}

static void make_pipes(int n)
{
	while (n--)
		if (pipe(ends[n]))
			die("pipe");
}

static int inet_socket(int type, struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, type, 0);

	*addr = (struct sockaddr_in) { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)addr, len) ||
	    getsockname(fd, (struct sockaddr *)addr, &len))
		die("socket");
	return fd;
}

/* What is written to ends[0] comes out of ends[0], of the other socket. */
static void join_sockets(int a, int b)
{
	ends[0][0] = a;
	ends[0][1] = b;
	ends[1][0] = b;
	ends[1][1] = a;
}

static void make_ends(void)
{
	struct sockaddr_in addr, other;
	int a, b, pair[2];

	if (is("unix")) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
			die("socketpair");
		join_sockets(pair[0], pair[1]);
	} else if (is("tcp")) {
		a = inet_socket(SOCK_STREAM, &addr);
		b = socket(AF_INET, SOCK_STREAM, 0);
		if (listen(a, 1) || connect(b, (struct sockaddr *)&addr, sizeof(addr)))
			die("connect");
		join_sockets(accept(a, NULL, NULL), b);
	} else if (is("udp")) {
		a = inet_socket(SOCK_DGRAM, &addr);
		b = inet_socket(SOCK_DGRAM, &other);
		if (connect(a, (struct sockaddr *)&other, sizeof(other)) ||
		    connect(b, (struct sockaddr *)&addr, sizeof(addr)))
			die("connect");
		join_sockets(a, b);
	} else {
		make_pipes(MAX_TASKS);
	}
}

/* Waits for its turn, works, and gives it to the next of @n. */
static void take_turns(int i, int n)
{
	if (!i)
		tell(1 % n);
	while (hear(i)) {
		work(leg_us);
		if (!i && ++rounds && now_ns() >= end_ns)
			break;
		tell((i + 1) % n);
	}
}

static void futex_turns(int i)
{
	words[0] = 1;
	for (;;) {
		while (!words[i])
			syscall(SYS_futex, &words[i], FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		words[i] = 0;
		if (!i && ++rounds && now_ns() >= end_ns)
			return;
		words[!i] = 1;
		syscall(SYS_futex, &words[!i], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
}

static void cold(void)
{
	static int64_t took[MAX_ROUNDS], at[MAX_ROUNDS];
	int64_t begin = now_ns(), fastest = INT64_MAX;
	int n = 0, in_a_row = 0;

	for (; now_ns() < end_ns && n < MAX_ROUNDS; n++) {
		at[n] = now_ns();
		work(leg_us);
		tell(1);
		hear(0);
		took[n] = now_ns() - at[n];
		if (took[n] < fastest)
			fastest = took[n];
	}
	for (int i = 0; i < n && in_a_row < 5; i++) {
		in_a_row = took[i] * 100 <= fastest * 105 ? in_a_row + 1 : 0;
		rounds = (at[i] - begin) / 1000;
	}
}

/* The first of two: each period begins at its time. */
static void paced(int64_t begin)
{
	int64_t period = (frame_ms ?: percent ? 10 : 1) * MSEC;
	int n = frame_ms ?: percent ? percent * 100 / 45 : 1;

	for (; now_ns() < end_ns; begin += period) {
		sleep_until(begin);
		for (int i = 0; i < n; i++) {
			work(is("lapse") && rounds % 200 == 100 ? 3000 :
			     leg_us ?: percent ? 20 : 400);
			tell(1);
			if (!is("producer"))
				hear(0);
		}
		rounds += n;
	}
}

static void parallel(int i, int64_t begin)
{
	char bytes[64];

	for (; i || now_ns() < end_ns; begin += MSEC) {
		sleep_until(begin);
		work(400);
		rounds += !i;
		tell(!i);
		if (read(ends[i][0], bytes, sizeof(bytes)) < 1)
			die("read");
	}
}

static void answer(unsigned int us, bool reply)
{
	while (hear(1)) {
		work(us);
		if (reply)
			tell(0);
	}
}

static void server(void)
{
	unsigned char who;

	while (read(ends[0][0], &who, 1) == 1) {
		work(50);
		tell(who);
	}
}

static void client(int i)
{
	unsigned char who = i;

	while (now_ns() < end_ns) {
		if (is("server"))
			usleep(500);
		else
			work(50);
		if (write(ends[0][1], &who, 1) != 1)
			die("write");
		hear(i);
		rounds++;
	}
}

static void join(int64_t begin, int workers)
{
	for (; now_ns() < end_ns; begin += 10 * MSEC) {
		sleep_until(begin);
		for (int i = 1; i <= workers; i++)
			tell(i);
		for (int i = 1; i <= workers; i++)
			hear(0);
		rounds++;
	}
}

static void joined(int i)
{
	while (hear(i)) {
		work(3000);
		tell(0);
	}
}

static void beside(int64_t begin)
{
	for (; now_ns() < end_ns; begin += MSEC) {
		sleep_until(begin);
		work(400);
	}
}

static void forks(void)
{
	for (; now_ns() < end_ns; rounds++) {
		pid_t child = fork();

		if (!child) {
			work(500);
			_exit(0);
		}
		if (child < 0 || waitpid(child, NULL, 0) != child)
			die("fork");
	}
}

static void hog(void)
{
	while (now_ns() < end_ns) {
		work(10000);
		rounds++;
		tell(1);
	}
}

/* The life of task @i of @n */
static void live(int i, int n)
{
	if (is("futex"))
		futex_turns(i);
	else if (is("forks"))
		forks();
	else if (is("cold"))
		i ? answer(leg_us, true) : cold();
	else if (is("serial") || is("lapse") || frame_ms)
		i ? answer(leg_us, true) : paced(begin_ns);
	else if (is("producer"))
		i ? answer(400, false) : paced(begin_ns);
	else if (is("hog"))
		i ? answer(100, false) : hog();
	else if (is("parallel"))
		parallel(i, begin_ns);
	else if (strstr(name, "server"))
		i ? client(i) : server();
	else if (is("join"))
		i ? joined(i) : join(begin_ns, n - 1);
	else if (percent && i == 2)
		beside(begin_ns);
	else if (percent)
		i ? answer(20, true) : paced(begin_ns);
	else
		take_turns(i, n);
}

static void *run(void *arg)
{
	int i = (intptr_t)arg;

	pin_to(is("bystander") && i == 2 ? 0 : i);
	live(i, tasks);
	return NULL;
}

/* False if there is no such load */
static bool choose(void)
{
	static const char *const others[] = { "pipe", "unix", "tcp", "udp", "futex",
					      "parallel", "producer", "hog" };

	tasks = 2;
	for (int i = 0; i < (int)(sizeof(others) / sizeof(*others)); i++)
		if (is(others[i]))
			return true;
	if (!strncmp(name, "legs", 4))
		leg_us = 1000 * atof(name + 4);
	if (is("cold") || is("lapse"))
		leg_us = 100;
	if (is("serial"))
		leg_us = 200;
	if (!strncmp(name, "frames", 6)) {
		frame_ms = atoi(name + 6);
		leg_us = frame_ms > 0 ? 150 : 0;
	}
	if (leg_us)
		return true;
	if (is("forks")) {
		tasks = 1;
		return true;
	}
	if (!strncmp(name, "paced", 5))
		return (percent = atoi(name + 5)) > 0;
	if (is("bystander"))
		percent = 20;
	tasks = strstr(name, "server") ? 5 : is("ring3") || is("bystander") ? 3 : 4;
	return is("server") || is("busyserver") || is("join") || is("ring3") || is("ring4") ||
	       is("bystander");
}

int main(int argc, char **argv)
{
	double seconds = argc > 2 ? atof(argv[2]) : 1, took;
	pthread_t thread;

	name = argc > 1 ? argv[1] : "";
	if (!choose() || seconds <= 0) {
		fprintf(stderr, "conversations: no load \"%s\"; the source lists them\n", name);
		return 2;
	}
	make_ends();
	usleep(100000);
	begin_ns = now_ns() + MSEC;
	end_ns = begin_ns + seconds * 1000 * MSEC;
	for (int i = tasks - 1; i > 0; i--)
		if (pthread_create(&thread, NULL, run, (void *)(intptr_t)i))
			die("thread");
	if (!is("forks"))
		pin_to(0);
	if (strstr(name, "server")) {
		/* The others count, and end by themselves. */
		pthread_create(&thread, NULL, run, (void *)0);
		sleep_until(end_ns);
	} else {
		live(0, tasks);
	}
	took = (now_ns() - begin_ns) / 1e9;
	printf("%.2f\n", is("cold") ? rounds / 1e3 : rounds / took);
	fflush(stdout);
	/* Without waiting for those that wait for a message. */
	_exit(0);
}
