#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Do tasks that take turns get the clock that they need?
# Needs root and the governor schedutil everywhere. All is set back at the end.

cd "$(dirname "$0")" || exit 1
. ../kselftest/ktap_helpers.sh

CPU=/sys/devices/system/cpu

# Loads of conversations.c must reach this share, in %, of their result with the governor
# performance. Sanitizers slow some down more than others: the environment may ask for less.
SHARE=${SHARE:-80}

governor()
{
	for file in $CPU/cpufreq/policy*/scaling_governor; do
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

restore()
{
	trap '' HUP INT PIPE TERM
	echo "$saved" | while IFS=: read -r file value; do
		echo "$value" >"$file"
	done
}

ktap_print_header
if [ "$(id -u)" != 0 ] || ! grep -qs schedutil $CPU/cpufreq/policy*/scaling_governor ||
   grep -qv schedutil $CPU/cpufreq/policy*/scaling_governor; then
	ktap_skip_all "needs root and the governor schedutil"
	exit "$KSFT_SKIP"
fi

saved=$(grep -Hs . $CPU/cpufreq/policy*/scaling_governor $CPU/cpu[0-9]*/cpuidle/state*/disable)
trap restore EXIT
trap 'exit 1' HUP INT PIPE TERM

ktap_set_plan 4
for load in legs1 legs5; do
	ktap_test_result "$load keeps up" keeps_up $load
done
# In C1 alone: between short turns the idle state can matter more than the clock.
for state in $CPU/cpu[0-9]*/cpuidle/state*; do
	grep -qsx "C1\|C1_ACPI" "$state/name" || [ ! -w "$state/disable" ] ||
		echo 1 >"$state/disable"
done
for load in pipe legs0.1; do
	ktap_test_result "$load keeps up" keeps_up $load
done
ktap_finished
