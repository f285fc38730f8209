// SPDX-License-Identifier: GPL-2.0
/*
 * Small loads whose speed depends on how fast an idle CPU wakes: to compare
 * idle governors, see bench.sh. Prints one number per load.
 *
 *	bench NAME [SECONDS]
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE		64
#define MAX_SAMPLES	1048576

/* Both ends of a conversation: what is written to one is read from the other. */
struct pair {
	int in[2], out[2];	/* [0]: the server's, [1]: the client's */
};

static atomic_bool stop;
static double seconds = 1;
static unsigned int samples[MAX_SAMPLES];
static int nr_samples;
static pid_t other;
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

/*
 * Ping-pong: as fast as possible, or with a pause of @pause_us before each. An idle
 * time of @rest_us first ends the influence of earlier loads on the frequency.
 */
static double ping_pong(struct pair *p, unsigned int pause_us, unsigned int rest_us)
{
	unsigned long trips = 0;
	double start, sum = 0;
	pthread_t server;

	pthread_create(&server, NULL, echo, p);
	pin_to(0);
	usleep(rest_us);
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

static int compare(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return x < y ? -1 : x > y;
}

/* Like schbench: a message wakes a worker, which computes; p99 of the wake-up. */
static double sched_latency(void)
{
	double start = now(), sent, late;
	struct pair p;

	make_pipes(&p);
	other = fork();
	if (!other) {
		pin_to(0);
		for (;;) {
			usleep(200 + rand() % 1000);
			sent = now();
			if (write(p.out[1], &sent, sizeof(sent)) < 0)
				exit(0);
		}
	}
	pin_to(1);
	while (now() - start < seconds && nr_samples < MAX_SAMPLES) {
		if (read(p.in[0], &sent, sizeof(sent)) != sizeof(sent))
			break;
		/* Clocks of two CPUs may differ by a little. */
		late = now() - sent;
		samples[nr_samples++] = late > 0 ? 1e9 * late : 0;
		think(20000);
	}
	qsort(samples, nr_samples, sizeof(*samples), compare);
	return nr_samples ? samples[nr_samples * 99 / 100] / 1000.0 : 0;
}

/* Throughput one way: a reader that is faster idles in between. */
static double stream(struct pair *p)
{
	static char block[4096];
	double start = now();
	unsigned long long bytes = 0;
	ssize_t got;

	other = fork();
	if (!other) {
		pin_to(0);
		while (write(p->out[1], block, sizeof(block)) > 0)
			think(3000);
		exit(0);
	}
	pin_to(1);
	while (now() - start < seconds) {
		got = read(p->in[0], block, sizeof(block));
		if (got <= 0)
			break;
		bytes += got;
	}
	return bytes / (now() - start) / 1e6;
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
	fprintf(stderr, "bench: unknown load \"%s\", must be sched-latency, timers or\n",
		name);
	fprintf(stderr, "{pipe,tcp,udp}-{rr,rest,paced,stream}, pipe-io\n");
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

	if (strstr(name, "-rr"))
		result = ping_pong(&p, 0, 0);
	else if (strstr(name, "-rest"))
		result = ping_pong(&p, 0, 300000);
	else if (strstr(name, "-paced"))
		result = ping_pong(&p, 1000, 0);
	else if (strstr(name, "-stream"))
		result = stream(&p);
	else if (!strcmp(name, "sched-latency"))
		result = sched_latency();
	else if (!strcmp(name, "timers"))
		result = timers();
	else if (!strcmp(name, "pipe-io"))
		result = ping_pong(&p, 0, 0);
	else
		return usage(name);

	printf("%.3f\n", result);
	fflush(stdout);
	if (other)
		kill(other, SIGKILL);
	/* Without waiting for threads that wait for a message. */
	_exit(0);
}
