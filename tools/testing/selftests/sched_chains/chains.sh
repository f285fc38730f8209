#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Chains: the tunable, and whether tasks that take turns get the clock that they need.
# Needs root and the governor schedutil everywhere, which is set back.

cd "$(dirname "$0")" || exit 1
. ../kselftest/ktap_helpers.sh

CPUFREQ=/sys/devices/system/cpu/cpufreq

tunables()
{
	ls $CPUFREQ/schedutil/chains $CPUFREQ/policy*/schedutil/chains 2>/dev/null
}

put()
{
	for file in $(tunables); do
		(echo "$1" >"$file") 2>/dev/null || return
	done
}

get()
{
	cat "$(tunables | head -n 1)"
}

takes()
{
	put "$1" && [ "$(get)" = "$1" ]
}

refuses()
{
	before=$(get)
	for text in 2 -1 4294967296 x 1x ""; do
		! put "$text" || return
	done
	[ "$(get)" = "$before" ]
}

# Loads of conversations.c reach so many of 100 of what they do with the governor
# performance. Sanitizers do not slow all down alike: the environment may ask for less.
SHARE=${SHARE:-80}

governor()
{
	for file in $CPUFREQ/policy*/scaling_governor; do
		echo "$1" >"$file"
	done
}

keeps_up()
{
	governor performance
	most=$(./conversations "$1" 0.3)
	governor schedutil
	put 1
	./conversations "$1" 0.3 >/dev/null
	got=$(./conversations "$1" 0.3)
	echo "# $1: $got of $most"
	awk -v got="$got" -v most="$most" "BEGIN { exit !(most > 0 && got * 100 >= most * $SHARE) }"
}

ktap_print_header
if [ "$(id -u)" != 0 ] || [ -z "$(tunables)" ] ||
   grep -qv schedutil $CPUFREQ/policy*/scaling_governor; then
	ktap_skip_all "needs root and the governor schedutil"
	exit "$KSFT_SKIP"
fi

ktap_set_plan 6
old=$(get)
# At most C1: how deep CPUs rest between turns can matter more than the clock.
[ -c /dev/cpu_dma_latency ] && exec 3>/dev/cpu_dma_latency && echo 0x00000001 >&3
ktap_test_result "chains takes 1" takes 1
ktap_test_result "chains takes 0" takes 0
ktap_test_result "chains refuses the rest" refuses
for load in pipe ring3 legs1; do
	ktap_test_result "$load keeps up" keeps_up $load
done
put "$old"
ktap_finished
