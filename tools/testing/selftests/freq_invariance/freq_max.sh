#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# freq_max: each word can be chosen and takes effect, others are refused and change
# nothing, and freq_max is never above what cpufreq can request.

cd "$(dirname "$0")" || exit 1
. ../kselftest/ktap_helpers.sh

CPU=/sys/devices/system/cpu
FILE=/sys/module/aperfmperf/parameters/freq_max
STATE=/sys/kernel/debug/x86/freq_invariance

ktap_print_header
before=$(cat $FILE 2>/dev/null)
if [ -z "$before" ] || ! echo "$before" 2>/dev/null >$FILE; then
	ktap_skip_all "freq_max cannot be set"
	exit "$KSFT_SKIP"
fi
if [ ! -r $STATE ]; then
	ktap_skip_all "no $STATE"
	exit "$KSFT_SKIP"
fi

ratios()
{
	sed -n 's/.* freq_max \([0-9]*\) .*/\1/p' $STATE
}

# freq_max has units of 1/1024 of base: allow 1/512
within_limit()
{
	top=$(cat $CPU/cpu[0-9]*/cpufreq/cpuinfo_max_freq 2>/dev/null | sort -n | tail -n 1)
	[ -n "$top" ] || return 0
	for ratio in $(ratios); do
		[ $((ratio * TSC_KHZ / 1024)) -le $((top + TSC_KHZ / 512)) ] || return 1
	done
}

# $1: word that is none
refused()
{
	! echo "$1" 2>/dev/null >$FILE && [ "$(cat $FILE)" = "$before" ] && as_before
}

# A line per CPU: ktap_test_result would split it into words
as_before()
{
	[ "$(ratios)" = "$then" ]
}

TSC_KHZ=$(dmesg | sed -n 's/.*tsc: Detected \([0-9]*\)\.\([0-9]\{3\}\) MHz.*/\1\2/p' | tail -n 1)
words="nominal midpoint boost"
bad="nonsense off 0c 00c 04c +4c c 4 4cc 256c"
if grep -q GenuineIntel /proc/cpuinfo; then
	words="$words 1c 4c 255c"
else
	bad="$bad 4c"
fi
ktap_set_plan $((2 * $(echo "$words" | wc -w) + $(echo "$bad" | wc -w) + 1))

then=$(ratios)
for word in $bad; do
	ktap_test_result "$word: refused, nothing changed" refused "$word"
done

for word in $words; do
	echo "$word" 2>/dev/null >$FILE
	ktap_test_result "$word: chosen" [ "$(cat $FILE)" = "$word" ]
	if [ -z "$TSC_KHZ" ]; then
		ktap_test_skip "$word: limit"
	else
		ktap_test_result "$word: within what cpufreq can request" within_limit
	fi
done

echo "$before" >$FILE
ktap_test_result "$before: as before" as_before
ktap_finished
