// SPDX-License-Identifier: GPL-2.0
/*
 * vs-hostile: what do the series' files in sysfs make of anything that can be written?
 *
 *	vs-hostile WRITES THREADS	half of the writes with a file to each thread for
 *					itself, half with all threads at all files, while
 *					governors are switched and a CPU goes off and on
 *	vs-hostile -u			mode, owner and path of each file; what a user can do
 *					with it
 *
 * A value that Documentation/ABI allows is taken and reads back; any other is refused, and
 * if nobody else writes the file, it reads as before. What is read is allowed at any time.
 * As everywhere in sysfs a value ends at its first zero byte or after a page.
 *
 * Output: numbers of writes, or the first line that is wrong, and status 1
 */
#include "vs-common.h"

#include <ctype.h>
#include <glob.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#define PAGE		4096
#define MOST		(4 * PAGE)	/* bytes written at once */
#define WORD		64		/* bytes read */
#define MAX_FILES	256
#define MAX_THREADS	16
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))

/* What may be written; each kind has its own words or highest number */
enum kind { NUMBER, FREQ_MAX, WORDS, READ_ONLY };

struct file {
	const char *path;
	enum kind kind;
	unsigned long long highest;
	const char *words;
	bool slow;		/* a change stops all CPUs: is not made often */
};

static const struct file patterns[] = {
	{ CPUS "cpufreq/{,policy*/}schedutil/rate_limit_us", NUMBER, UINT32_MAX, NULL, false },
	{ "/sys/module/aperfmperf/parameters/freq_max", FREQ_MAX, 255,
	  "nominal midpoint boost", false },
	{ "/sys/module/umwait/parameters/idle_poll", WORDS, 0, "off c02", true },
	{ CPUS "cpuidle/current_governor", WORDS, 0, "menu teo ladder", true },
	{ "/sys/module/intel_idle/parameters/c02", READ_ONLY, 0, NULL, false },
};

static struct file files[MAX_FILES];
static int nr_files, nr_writable;

static atomic_ulong nr_writes, nr_taken, nr_refused, nr_gone, nr_reads, nr_switches;
static atomic_bool over;
static unsigned long writes_each;

static void wrong(const struct file *file, const char *what, const void *value, size_t len)
{
	const unsigned char *bytes = value;

	flockfile(stdout);
	printf("%s: %s, %zu bytes: ", file->path, what, len);
	for (size_t i = 0; i < len && i < 80; i++)
		printf(isprint(bytes[i]) && bytes[i] != '\\' ? "%c" : "\\x%02x", bytes[i]);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

static uint64_t rnd(uint64_t *seed, uint64_t below)
{
	*seed = next_random(*seed);
	return (*seed >> 33) % below;
}

/*
 * The documentation's judgement: is the value one for the file, and what does it read as?
 */

static bool is_number(const char *value, size_t len, unsigned long long highest, char *canon)
{
	unsigned long long number = 0;
	size_t i = len > 1 && *value == '+';

	if (i == len)
		return false;
	for (; i < len; i++) {
		if (!isdigit((unsigned char)value[i]))
			return false;
		number = 10 * number + value[i] - '0';
		if (number > highest)
			return false;
	}
	sprintf(canon, "%llu", number);
	return true;
}

static bool is_word(const char *value, size_t len, const char *words, char *canon)
{
	for (const char *word = words; *word; word += strspn(word, " ")) {
		size_t n = strcspn(word, " ");

		if (n == len && !memcmp(word, value, n)) {
			sprintf(canon, "%.*s", (int)n, word);
			return true;
		}
		word += n;
	}
	return false;
}

/* The kernel's, which goes by Latin-1 */
static bool is_space(unsigned char c)
{
	return isspace(c) || c == 0xa0;
}

static bool allowed(const struct file *file, const char *value, size_t len, char *canon)
{
	len = strnlen(value, len < PAGE ? len : PAGE);

	/* The base's: the first word, whatever surrounds it */
	if (strstr(file->path, "current_governor")) {
		for (; len && is_space(*value); len--)
			value++;
		for (size_t i = 0; i < len; i++) {
			if (is_space(value[i]))
				len = i;
		}
		return is_word(value, len, file->words, canon);
	}

	if (len && value[len - 1] == '\n')
		len--;
	switch (file->kind) {
	case NUMBER:
		return is_number(value, len, file->highest, canon);
	case FREQ_MAX:
		if (len > 1 && isdigit((unsigned char)*value) && *value != '0' &&
		    value[len - 1] == 'c' &&
		    is_number(value, len - 1, file->highest, canon)) {
			strcat(canon, "c");
			return true;
		}
		return is_word(value, len, file->words, canon);
	case WORDS:
		return is_word(value, len, file->words, canon);
	default:
		return false;
	}
}

/*
 * Values: those that are allowed, some near them, and any bytes
 */

static size_t an_allowed(const struct file *file, char *value, uint64_t *seed)
{
	char word[WORD];
	size_t len, n = 0;

	if (file->kind == NUMBER || (file->kind == FREQ_MAX && rnd(seed, 2))) {
		unsigned long long number = rnd(seed, 1ULL << (1 + rnd(seed, 32)));

		len = sprintf(word, "%llu", number % (file->highest + 1));
		if (file->kind == FREQ_MAX)
			len += sprintf(word + len, "c");
		/* Zeros in front change no number, however many there are */
		if (file->kind == NUMBER && !rnd(seed, 8))
			n = rnd(seed, rnd(seed, 4) ? 30 : PAGE + 2);
	} else {
		const char *at = file->words;

		for (uint64_t skip = rnd(seed, 4); skip && strchr(at, ' '); skip--)
			at = strchr(at, ' ') + 1;
		len = strcspn(at, " ");
		memcpy(word, at, len);
	}
	memset(value, '0', n);
	memcpy(value + n, word, len);
	len += n;
	if (rnd(seed, 2))
		value[len++] = '\n';
	return len;
}

static size_t an_edge(char *value, uint64_t *seed)
{
	static const struct {
		const char *bytes;
		size_t len;
	} edges[] = {
#define EDGE(text) { text, sizeof(text) - 1 }
		EDGE(""), EDGE("\n"), EDGE("\0"), EDGE(" "), EDGE("-"), EDGE("+"), EDGE("-0"),
		EDGE("-1"), EDGE("+1"), EDGE("--1"), EDGE("+-1"), EDGE("++1"), EDGE(" 1"),
		EDGE("1 "), EDGE("1\n\n"), EDGE("1\n2"), EDGE("\n1"), EDGE("1\0002"), EDGE("1\r\n"),
		EDGE("0x10"), EDGE("0x"), EDGE("010"), EDGE("1e3"), EDGE("1.0"), EDGE("1,0"),
		EDGE("2"), EDGE("256"), EDGE("256c"), EDGE("255c"), EDGE("0c"), EDGE("00c"),
		EDGE("-1c"), EDGE("4C"), EDGE("c4"), EDGE("4 c"), EDGE("1c\0"), EDGE("boosT"),
		EDGE("100000"), EDGE("100001"), EDGE("2147483647"), EDGE("2147483648"),
		EDGE("4294967295"), EDGE("4294967296"), EDGE("4294967297"), EDGE("-4294967295"),
		EDGE("9223372036854775808"), EDGE("18446744073709551615"),
		EDGE("18446744073709551616"), EDGE("18446744073709551617"),
		EDGE("1000000000000000000000000000000"), EDGE("\x80"), EDGE("\xff\xff\xff\xff"),
		EDGE("y"), EDGE("on"), EDGE("c03"), EDGE("C01"), EDGE("c0"), EDGE("c011"),
		EDGE("t"), EDGE("teo2"), EDGE("menu\0teo"), EDGE("Menu"), EDGE("%n%s%x"),
		EDGE("..\n"), EDGE("/"), EDGE("\xd9\xa1"),
#undef EDGE
	};
	size_t n = rnd(seed, ARRAY_SIZE(edges));

	memcpy(value, edges[n].bytes, edges[n].len);
	return edges[n].len;
}

static size_t a_value(const struct file *file, char *value, uint64_t *seed)
{
	static const int lengths[] = { 100, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, MOST };
	size_t len, at;

	switch (rnd(seed, 8)) {
	case 0:
		return an_allowed(file, value, seed);
	case 1:
	case 2:
		return an_edge(value, seed);
	case 3:		/* long; mostly of one byte */
		if (rnd(seed, 8))
			goto near;
		len = lengths[rnd(seed, ARRAY_SIZE(lengths))];
		memset(value, "0 9c\nxb\0"[rnd(seed, 8)], len);
		if (rnd(seed, 2))
			value[rnd(seed, len)] = rnd(seed, 256);
		return len;
	case 4:
		len = rnd(seed, 40);
		for (at = 0; at < len; at++)
			value[at] = rnd(seed, 256);
		return len;
	default:
near:		/* one byte of an allowed one is another, more or missing */
		len = an_allowed(file, value, seed);
		at = rnd(seed, len);
		switch (rnd(seed, 3)) {
		case 0:
			value[at] = rnd(seed, 256);
			break;
		case 1:
			memmove(value + at + 1, value + at, len++ - at);
			value[at] = "0+- \n\0c9"[rnd(seed, 8)];
			break;
		default:
			memmove(value + at, value + at + 1, --len - at);
		}
		return len;
	}
}

/* Bytes read without the newline, or -1 if the file has gone */
static int get(const struct file *file, char *value)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC), len;

	if (fd < 0)
		return -1;
	len = read(fd, value, WORD - 1);
	close(fd);
	if (len < 0)
		return -1;
	value[len] = 0;
	value[strcspn(value, "\n")] = 0;
	nr_reads++;
	return len;
}

static void check_read(const struct file *file)
{
	char value[WORD], canon[WORD];

	if (get(file, value) < 0)
		return;
	if (file->kind != READ_ONLY && (!allowed(file, value, strlen(value), canon) ||
					strcmp(value, canon)))
		wrong(file, "reads", value, strlen(value));
}

/* One write; @alone says that nobody else does */
static void attack(const struct file *file, bool alone, uint64_t *seed)
{
	char value[MOST + 8], before[WORD], after[WORD], canon[WORD];
	int had = alone ? get(file, before) : 0;
	ssize_t done;
	size_t len;
	bool may;
	int fd;

	do {
		len = a_value(file, value, seed);
		may = len && allowed(file, value, len, canon);
	} while (may && file->slow && rnd(seed, 32));

	fd = open(file->path, O_WRONLY | O_CLOEXEC);
	nr_writes++;
	if (fd < 0) {
		nr_gone++;
		return;
	}
	/* sysfs knows no offsets */
	done = rnd(seed, 8) ? write(fd, value, len) : pwrite(fd, value, len, rnd(seed, 100));
	if (done < 0 && (errno == ENODEV || errno == ENOENT || errno == EBUSY) && !alone) {
		nr_gone++;
		close(fd);
		return;
	}
	close(fd);

	if (done > 0 && !may)
		wrong(file, "took", value, len);
	if (done <= 0 && may)
		wrong(file, "refused", value, len);
	atomic_fetch_add(done > 0 ? &nr_taken : &nr_refused, 1);
	if (!alone || had < 0)
		return;
	get(file, after);
	if (strcmp(after, may ? canon : before))
		wrong(file, may ? "reads otherwise after" : "was changed by", value, len);
}

struct worker {
	pthread_t thread;
	int number, nr;
	bool alone;
};

static void *write_files(void *arg)
{
	struct worker *w = arg;
	uint64_t seed = w->number + 1;

	for (unsigned long i = 0; i < writes_each; i++) {
		int n = rnd(&seed, nr_writable);

		/* A file to each thread for itself, if there are as many */
		if (w->alone)
			n = n - n % w->nr + w->number;
		if (n < nr_writable)
			attack(&files[n], w->alone, &seed);
		else
			i--;
	}
	return NULL;
}

static void *read_files(void *arg)
{
	uint64_t seed = 77;

	while (!over)
		check_read(&files[rnd(&seed, nr_files)]);
	return arg;
}

static void put(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, value, strlen(value)) > 0)
		nr_switches++;
	close(fd);
}

/* Takes the tunables away again and again, and a CPU with its files */
static void *take_away(void *arg)
{
	static const char * const governors[] = { "performance", "schedutil" };
	char path[128];
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	for (int n = 0; !over || n % 4; n++) {
		for (int cpu = 0; cpu < cpus; cpu++) {
			sprintf(path, CPUS "cpufreq/policy%d/scaling_governor", cpu);
			put(path, governors[n % 2]);
		}
		sprintf(path, CPUS "cpu%ld/online", cpus - 1);
		put(path, n / 2 % 2 ? "1" : "0");
		usleep(20000);
	}
	sprintf(path, CPUS "cpu%ld/online", cpus - 1);
	put(path, "1");
	sprintf(path, CPUS "cpufreq/policy%ld/scaling_governor", cpus - 1);
	put(path, "schedutil");
	return arg;
}

static void find_files(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		const struct file *p = &patterns[i];
		glob_t found;

		if (glob(p->path, GLOB_BRACE, NULL, &found))
			continue;
		for (size_t n = 0; n < found.gl_pathc && nr_files < MAX_FILES; n++) {
			files[nr_files] = *p;
			files[nr_files++].path = found.gl_pathv[n];
		}
		if (p->kind != READ_ONLY)
			nr_writable = nr_files;
	}
}

/* Root too cannot open what is not to be written */
static void check_read_only(void)
{
	for (int n = nr_writable; n < nr_files; n++) {
		int fd = open(files[n].path, O_WRONLY);

		if (fd >= 0 && write(fd, "1", 1) > 0)
			wrong(&files[n], "took", "1", 1);
		check_read(&files[n]);
	}
}

static void run(int threads, bool alone)
{
	struct worker workers[MAX_THREADS];
	pthread_t helpers[3];

	over = false;
	for (int i = 0; i < threads; i++) {
		workers[i] = (struct worker){ .number = i, .nr = threads, .alone = alone };
		workers[i].thread = start_thread(write_files, &workers[i]);
	}
	for (int i = 0; i < 3 && !alone; i++)
		helpers[i] = start_thread(i ? read_files : take_away, NULL);
	for (int i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	over = true;
	for (int i = 0; i < 3 && !alone; i++)
		pthread_join(helpers[i], NULL);
}

static const char hidden[] = "/sys/kernel/debug/x86/freq_invariance";

/* "mode uid path read|- write|-", by what a user is let; what a user does not see is no file */
static int as_user(void)
{
	if (access(hidden, F_OK))
		return 1;
	if (setgid(65534) || setuid(65534))
		return 1;
	printf("%s %s\n", access(hidden, F_OK) ? "hidden" : "seen", hidden);
	for (int n = 0; n < nr_files; n++) {
		struct stat is;

		if (stat(files[n].path, &is))
			return 1;
		printf("%o %u %s %s %s\n", is.st_mode & 07777, is.st_uid, files[n].path,
		       open(files[n].path, O_RDONLY) < 0 ? "-" : "read",
		       open(files[n].path, O_WRONLY) < 0 ? "-" : "write");
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long writes = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	int threads = argc == 3 ? atoi(argv[2]) : 0;

	find_files();
	if (argc == 2 && !strcmp(argv[1], "-u"))
		return as_user();
	if (access("/job/run", F_OK)) {
		fprintf(stderr, "vs-hostile: only for the guest\n");
		return 2;
	}
	if (!writes || threads < 1 || threads > MAX_THREADS || !nr_writable) {
		fprintf(stderr, "usage: vs-hostile WRITES THREADS, THREADS up to %d, or -u;\n"
			"there are %d files to write\n", MAX_THREADS, nr_writable);
		return 2;
	}

	check_read_only();
	/* Each has a file of its own then */
	writes_each = writes / 2 / (threads < nr_writable ? threads : nr_writable);
	run(threads < nr_writable ? threads : nr_writable, true);
	writes_each = writes / 2 / threads;
	run(threads, false);
	/* What was taken away is back */
	for (int n = 0; n < nr_writable; n++) {
		char value[WORD];

		if (get(&files[n], value) < 0)
			wrong(&files[n], "is not back", "", 0);
	}
	printf("writes %lu taken %lu refused %lu gone %lu reads %lu switches %lu files %d\n",
	       nr_writes, nr_taken, nr_refused, nr_gone, nr_reads, nr_switches, nr_writable);
	return 0;
}
