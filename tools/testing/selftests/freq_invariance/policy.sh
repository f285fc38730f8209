#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The policy for freq_max: each word on offer can be chosen, others are refused and
# change nothing, and freq_max is never above what cpufreq can request.

cd "$(dirname "$0")" || exit 1
. ../kselftest/ktap_helpers.sh

CPU=/sys/devices/system/cpu
DIR=$CPU/freq_invariance

ktap_print_header
if [ ! -w $DIR/policy ] || [ "$(cat $DIR/enabled)" != 1 ]; then
	ktap_skip_all "no $DIR, or invariance is off"
	exit "$KSFT_SKIP"
fi
before=$(cat $DIR/policy)
if ! echo "$before" 2>/dev/null >$DIR/policy; then
	ktap_skip_all "the policy cannot be set"
	exit "$KSFT_SKIP"
fi

# 1 unit of freq_max is 1/1024 of base, of which 1/512 is more
within_limit()
{
	top=$(cat $CPU/cpu[0-9]*/cpufreq/cpuinfo_max_freq 2>/dev/null | sort -n | tail -n 1)
	[ -n "$top" ] || return 0
	for ratio in $(cat $CPU/cpu[0-9]*/freq_invariance/max_ratio); do
		[ $((ratio * TSC_KHZ / 1024)) -le $((top + TSC_KHZ / 512)) ] || return 1
	done
}

# $1: word that is no policy
refused()
{
	! echo "$1" 2>/dev/null >$DIR/policy && [ "$(cat $DIR/policy)" = "$before" ] &&
		[ "$(cat $CPU/cpu[0-9]*/freq_invariance/max_ratio)" = "$ratios" ]
}

TSC_KHZ=$(dmesg | sed -n 's/.*tsc: Detected \([0-9]*\)\.\([0-9]\{3\}\) MHz.*/\1\2/p' | tail -n 1)
words=$(sed 's/Nc/7c/' $DIR/available_policies)
bad="nonsense 0c 04c c 4 4cc $(grep -q boost $DIR/available_policies && echo 4c || echo boost)"
ktap_set_plan $((2 * $(echo "$words" | wc -w) + $(echo "$bad" | wc -w)))

for word in $words; do
	echo "$word" 2>/dev/null >$DIR/policy
	ktap_test_result "$word: chosen" [ "$(cat $DIR/policy)" = "$word" ]
	if [ -z "$TSC_KHZ" ]; then
		ktap_test_skip "$word: limit"
	else
		ktap_test_result "$word: within what cpufreq can request" within_limit
	fi
done
echo "$before" >$DIR/policy
ratios=$(cat $CPU/cpu[0-9]*/freq_invariance/max_ratio)

for word in $bad; do
	ktap_test_result "$word: refused, nothing changed" refused "$word"
done
ktap_finished
