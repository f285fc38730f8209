#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Do tasks that take turns get the clock that they need?
# Needs root and the governor schedutil everywhere, which is set back.

cd "$(dirname "$0")" || exit 1
. ../kselftest/ktap_helpers.sh

CPUFREQ=/sys/devices/system/cpu/cpufreq

# Loads of conversations.c must reach this share, in %, of their result with the governor
# performance. Sanitizers slow some down more than others: the environment may ask for less.
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
	# A ring has two stable rates at the same clock: of three runs the lower one counts
	# with performance, and the higher one with schedutil.
	most=$(for _ in 1 2 3; do ./conversations "$1" 0.3; done | sort -n | head -n 1)
	governor schedutil
	got=$(for _ in 1 2 3; do ./conversations "$1" 0.3; done | sort -n | tail -n 1)
	echo "# $1: $got of $most"
	awk -v got="$got" -v most="$most" "BEGIN { exit !(most > 0 && got * 100 >= most * $SHARE) }"
}

ktap_print_header
if [ "$(id -u)" != 0 ] ||
   grep -qv schedutil $CPUFREQ/policy*/scaling_governor; then
	ktap_skip_all "needs root and the governor schedutil"
	exit "$KSFT_SKIP"
fi

ktap_set_plan 5
for load in legs1 legs5; do
	ktap_test_result "$load keeps up" keeps_up $load
done
# At most C1: between short turns the idle state can matter more than the clock.
[ -c /dev/cpu_dma_latency ] && exec 3>/dev/cpu_dma_latency && echo 0x00000001 >&3
for load in pipe ring3 legs0.1; do
	ktap_test_result "$load keeps up" keeps_up $load
done
ktap_finished
