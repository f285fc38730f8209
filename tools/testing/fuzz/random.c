// SPDX-License-Identifier: GPL-2.0
/*
 * For compilers without a fuzzer: the unit's function for each line of a file, an input in
 * hexadecimal, and for so many random inputs.
 *
 *	FILE NUMBER
 *
 * Exit status 2: the file cannot be read
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of its own length on the heap, so that reads beyond it are seen */
static void give(const uint8_t *from, size_t size)
{
	uint8_t *data = malloc(size);

	for (size_t i = 0; i < size; i++)
		data[i] = from[i];
	LLVMFuzzerTestOneInput(data, size);
	free(data);
}

int main(int argc, char **argv)
{
	FILE *file = argc == 3 ? fopen(argv[1], "r") : NULL;
	uint8_t data[4096];
	size_t size = 0;
	char text[3];

	if (!file) {
		perror(argc == 3 ? argv[1] : "FILE NUMBER");
		return 2;
	}
	for (int c; (c = getc(file)) != EOF;) {
		if (c == '\n') {
			give(data, size);
			size = 0;
		} else {
			text[0] = c;
			text[1] = getc(file);
			text[2] = 0;
			if (size < sizeof(data))
				data[size++] = strtoul(text, NULL, 16);
		}
	}
	fclose(file);

	srandom(1);
	for (long n = strtol(argv[2], NULL, 10); n > 0; n--) {
		size = random() % 256;
		for (size_t i = 0; i < size; i++)
			data[i] = random() >> 8;
		give(data, size);
	}
	return 0;
}
