#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# A small C project. $1: "new SEED FILES" writes it, "make JOBS" compiles it.
project=/tmp/project
case $1 in
new)
	rm -rf $project
	mkdir $project
	for file in $(seq "$3"); do
		# Some files are larger than others.
		awk -v file="$file" -v seed="$2" 'BEGIN {
			srand(seed * 1000 + file)
			n = 1 + int(rand() * 3)
			print "struct item { struct item *next; long key, value; };"
			for (f = 0; f < n; f++) {
				printf "long work_%d_%d(struct item *i, long x)\n{\n", file, f
				print "\tfor (; i; i = i->next) {"
				for (l = 0; l < 2 + int(rand() * 3); l++)
					printf "\t\tif (i->key > %d)\n\t\t\tx += i->value * %d;\n",
						rand() * 1000, rand() * 100
				print "\t}\n\treturn x;\n}"
			}
		}' >"$project/file$file.c"
	done
	{
		echo "all:$(for file in $(seq "$3"); do printf ' file%s.o' "$file"; done)"
		printf '%%.o: %%.c\n\t%s -ffreestanding -O0 -c -o $@ $<\n' \
			"$(ls /usr/bin/gcc-[0-9]* | head -n 1)"
	} >$project/Makefile
	;;
make)
	rm -f $project/*.o
	exec make -s -C $project -j "$2"
	;;
esac
