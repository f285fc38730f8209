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
	most=$(./conversations "$1" 0.4)
	governor schedutil
	got=$(./conversations "$1" 0.4)
	echo "# $1: $got of $most"
	awk -v got="$got" -v most="$most" "BEGIN { exit !(most > 0 && got * 100 >= most * $SHARE) }"
}

# Enabled idle states other than C1
others()
{
	for state in /sys/devices/system/cpu/cpu[0-9]*/cpuidle/state*; do
		grep -qx "C1\|C1_ACPI" "$state/name" || grep -lx 0 "$state/disable"
	done
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
# In C1 alone: between short turns the idle state can matter more than the clock.
disabled=$(others 2>/dev/null)
for file in $disabled; do
	echo 1 >"$file"
done
for load in pipe ring3 legs0.1; do
	ktap_test_result "$load keeps up" keeps_up $load
done
for file in $disabled; do
	echo 0 >"$file"
done
ktap_finished
