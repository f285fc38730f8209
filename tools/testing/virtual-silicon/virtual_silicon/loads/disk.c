// SPDX-License-Identifier: GPL-2.0
/*
 * disk: preloaded, fsync() and fdatasync() wait as for a disk of 7200 rotations a minute.
 *
 * Assumed: one rotation, whatever was written; several callers wait side by side, as for one
 * write of a journal.
 */
#include <time.h>
#include <unistd.h>

#define ROTATION_NS	(60 * 1000000000LL / 7200)

int fsync(int fd)
{
	struct timespec left = { .tv_nsec = ROTATION_NS };

	(void)fd;
	while (nanosleep(&left, &left))
		;	/* a signal */
	return 0;
}

int fdatasync(int fd)
{
	return fsync(fd);
}
