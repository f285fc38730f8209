// SPDX-License-Identifier: GPL-2.0
/*
 * reads: what a reader of a file causes.
 *
 *	reads FILE...
 *
 * Prints for each: its name, ns of one time reading it whole (the median of TIMES), and how
 * many interrupts all CPUs sent each other meanwhile, per time.
 */
#include "vs-common.h"

#define TIMES	21

static char line[65536];

/* Function calls and reschedules, of all CPUs */
static unsigned long interrupts(void)
{
	FILE *file = fopen("/proc/interrupts", "r");
	unsigned long sum = 0;

	while (file && fgets(line, sizeof(line), file)) {
		char *at = strchr(line, ':'), *end;

		if (!at || (!strstr(line, "CAL:") && !strstr(line, "RES:")))
			continue;
		for (at++;; at = end) {
			unsigned long n = strtoul(at, &end, 10);

			if (end == at)
				break;
			sum += n;
		}
	}
	if (file)
		fclose(file);
	return sum;
}

static void read_whole(const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = -1;

	while (fd >= 0 && (n = read(fd, line, sizeof(line))) > 0)
		;
	if (n < 0) {
		perror(path);
		exit(1);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int64_t ns[TIMES];
		unsigned long before;

		read_whole(argv[i]);
		before = interrupts();
		for (int j = 0; j < TIMES; j++) {
			int64_t begin = now_ns();

			read_whole(argv[i]);
			ns[j] = now_ns() - begin;
		}
		qsort(ns, TIMES, sizeof(*ns), ascending_ns);
		printf("read %s %lld %.2f\n", argv[i], (long long)ns[TIMES / 2],
		       (double)(interrupts() - before) / TIMES);
	}
	return 0;
}
