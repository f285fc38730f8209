#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# schedutil, the user of invariant utilisation, can be chosen on every policy,
# and raises a busy CPU's clock.

cd "$(dirname "$0")" || exit 1
. ../kselftest/ktap_helpers.sh

CPUFREQ=/sys/devices/system/cpu/cpufreq

policies=$(ls -d $CPUFREQ/policy* 2>/dev/null)
ktap_print_header
if [ -z "$policies" ]; then
	ktap_skip_all "no cpufreq driver"
	exit "$KSFT_SKIP"
fi
if [ "$(id -u)" != 0 ]; then
	ktap_skip_all "needs root"
	exit "$KSFT_SKIP"
fi

# $1: policy, $2: governor
choose()
{
	echo "$2" 2>/dev/null >"$1/scaling_governor" &&
		[ "$(cat "$1/scaling_governor")" = "$2" ]
}

# Highest of five readings while a CPU of the policy is busy. $1: policy
# A CPU that nohz_full= names has a tick, in which schedutil acts, with two tasks only.
busy_khz()
{
	cpu=$(cut -d' ' -f1 "$1/affected_cpus")
	taskset -c "$cpu" sh -c 'while :; do :; done' &
	load=$!
	taskset -c "$cpu" sh -c 'while :; do :; done' &
	load="$load $!"
	highest=0
	sleep 1
	for look in 1 2 3 4 5; do
		khz=$(cat "$1/scaling_cur_freq")
		[ "$khz" -gt "$highest" ] && highest=$khz
		sleep 0.1
	done
	kill $load
	wait $load 2>/dev/null
	echo "$highest"
}

# $1: policy
test_policy()
{
	name=$(basename "$1")
	if ! grep -qw schedutil "$1/scaling_available_governors"; then
		ktap_test_skip "$name: schedutil is not on offer"
		ktap_test_skip "$name: busy CPU"
		return
	fi

	before=$(cat "$1/scaling_governor")
	if choose "$1" schedutil; then
		ktap_test_pass "$name: schedutil chosen"
	else
		ktap_test_fail "$name: schedutil chosen"
	fi

	# Whatever turbo gives, it must be more than half of the possible
	khz=$(busy_khz "$1")
	max=$(cat "$1/cpuinfo_max_freq")
	if [ $((2 * khz)) -gt "$max" ]; then
		ktap_test_pass "$name: busy CPU at $khz of $max kHz"
	else
		ktap_test_fail "$name: busy CPU at $khz of $max kHz"
	fi
	choose "$1" "$before"
}

ktap_set_plan $((2 * $(echo "$policies" | wc -l)))
for policy in $policies; do
	test_policy "$policy"
done
ktap_finished
