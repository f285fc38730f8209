// SPDX-License-Identifier: GPL-2.0
/*
 * Small loads whose speed depends on how fast an idle CPU wakes. Prints one number: round
 * trips a second; us for paced ones; us for the lateness of timers.
 *
 *	teo-bench NAME [SECONDS]
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE		64

/* Both ends of a conversation: what is written to one is read from the other. */
struct pair {
	int in[2], out[2];	/* [0]: the server's, [1]: the client's */
};

static atomic_bool stop;
static double seconds = 1;
/* The delay until the other end answers: a disk or a network. */
static unsigned int device_loops;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void pin_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void make_pipes(struct pair *p)
{
	int a[2], b[2];

	if (pipe(a) || pipe(b))
		die("pipe");
	*p = (struct pair) { .in = { a[0], b[0] }, .out = { b[1], a[1] } };
}

static int inet_socket(int type, struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, type, 0);

	*addr = (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	if (fd < 0 || bind(fd, (struct sockaddr *)addr, len) ||
	    getsockname(fd, (struct sockaddr *)addr, &len))
		die("socket");
	return fd;
}

static void make_udp(struct pair *p)
{
	struct sockaddr_in a, b;
	int fa = inet_socket(SOCK_DGRAM, &a), fb = inet_socket(SOCK_DGRAM, &b);

	if (connect(fa, (struct sockaddr *)&b, sizeof(b)) ||
	    connect(fb, (struct sockaddr *)&a, sizeof(a)))
		die("connect");
	*p = (struct pair) { .in = { fa, fb }, .out = { fa, fb } };
}

static void make_tcp(struct pair *p)
{
	struct sockaddr_in addr;
	int listener = inet_socket(SOCK_STREAM, &addr);
	int fb = socket(AF_INET, SOCK_STREAM, 0), fa;

	if (listen(listener, 1) ||
	    connect(fb, (struct sockaddr *)&addr, sizeof(addr)))
		die("connect");
	fa = accept(listener, NULL, NULL);
	if (fa < 0)
		die("accept");
	close(listener);
	*p = (struct pair) { .in = { fa, fb }, .out = { fa, fb } };
}

/* Some work that takes about as long everywhere. */
static void think(unsigned int loops)
{
	while (loops--)
		atomic_signal_fence(memory_order_seq_cst);
}

static void *echo(void *arg)
{
	struct pair *p = arg;
	char text[MESSAGE];

	pin_to(1);
	while (!stop && read(p->in[0], text, sizeof(text)) > 0) {
		think(device_loops);
		if (write(p->out[0], text, sizeof(text)) < 0)
			break;
	}
	return NULL;
}

static double round_trip(struct pair *p)
{
	char text[MESSAGE] = "";
	double start = now();

	if (write(p->out[1], text, sizeof(text)) < 0 ||
	    read(p->in[1], text, sizeof(text)) <= 0)
		die("round trip");
	return now() - start;
}

/* Ping-pong: as fast as possible, or with a pause of about @pause_us before each. */
static double ping_pong(struct pair *p, unsigned int pause_us)
{
	unsigned long trips = 0;
	double start, sum = 0;
	pthread_t server;

	pthread_create(&server, NULL, echo, p);
	pin_to(0);
	start = now();
	while (now() - start < seconds) {
		if (pause_us)
			usleep(pause_us / 2 + rand() % pause_us);
		sum += round_trip(p);
		trips++;
	}
	stop = true;
	return pause_us ? 1e6 * sum / trips : trips / (now() - start);
}

/* Lateness of a thread that sleeps for 0.1 to 3 ms; mean in us. */
static double timers(void)
{
	double start = now(), begin, sum = 0;
	unsigned long n = 0;

	pin_to(1);
	while (now() - start < seconds) {
		useconds_t us = 100 + rand() % 2900;

		begin = now();
		usleep(us);
		sum += now() - begin - us / 1e6;
		n++;
	}
	return 1e6 * sum / n;
}

static int usage(const char *name)
{
	fprintf(stderr, "teo-bench: unknown load \"%s\", must be timers, pipe-io or "
		"{pipe,tcp,udp}-{rr,paced}\n", name);
	return 1;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	double result;
	struct pair p;

	if (argc > 2)
		seconds = atof(argv[2]);
	if (strstr(name, "-io"))
		device_loops = 100000;

	if (!strncmp(name, "pipe", 4))
		make_pipes(&p);
	else if (!strncmp(name, "udp", 3))
		make_udp(&p);
	else
		make_tcp(&p);

	if (strstr(name, "-rr") || !strcmp(name, "pipe-io"))
		result = ping_pong(&p, 0);
	else if (strstr(name, "-paced"))
		result = ping_pong(&p, 1000);
	else if (!strcmp(name, "timers"))
		result = timers();
	else
		return usage(name);

	printf("%.3f\n", result);
	fflush(stdout);
	/* Without waiting for threads that wait for a message. */
	_exit(0);
}
