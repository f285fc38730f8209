// SPDX-License-Identifier: GPL-2.0
/*
 * vs-msr: read or write model-specific registers of one CPU.
 *
 *	vs-msr CPU MSR...		"msr value" per register, or "msr fault"
 *	vs-msr CPU MSR=VALUE...		writes; "msr fault" if it raised #GP
 *
 * Status 1 if any access faulted.
 */
#include "vs-common.h"

static int access_register(int fd, const char *text)
{
	char *end;
	uint32_t msr = strtoul(text, &end, 0);
	uint64_t value = 0;

	if (end == text || (*end && *end != '=')) {
		fprintf(stderr, "vs-msr: not a register: %s\n", text);
		exit(2);
	}
	if (*end) {
		value = strtoull(end + 1, NULL, 0);
		if (pwrite(fd, &value, sizeof(value), msr) == sizeof(value))
			return 0;
	} else if (pread(fd, &value, sizeof(value), msr) == sizeof(value)) {
		printf("%#x %#llx\n", msr, (unsigned long long)value);
		return 0;
	}
	printf("%#x fault\n", msr);
	return 1;
}

int main(int argc, char **argv)
{
	int fd, status = 0;

	if (argc < 3)
		usage("CPU MSR[=VALUE]...");
	fd = open_msr(atoi(argv[1]), O_RDWR);
	for (int i = 2; i < argc; i++)
		status |= access_register(fd, argv[i]);
	return status;
}
