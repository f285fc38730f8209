#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A CPU that was offline samples its counters again: its frequency reads right,
# and invariance has not been given up. ROUNDS= sets how often (default 5).

cd "$(dirname "$0")" || exit 1
. ../kselftest/ktap_helpers.sh

ROUNDS=${ROUNDS:-5}

ktap_print_header
cpu=$(ls -d /sys/devices/system/cpu/cpu[0-9]* | sed 's/.*cpu//' | sort -n | tail -n 1)
online=/sys/devices/system/cpu/cpu$cpu/online
if [ ! -w "$online" ]; then
	ktap_skip_all "cpu$cpu cannot be taken offline"
	exit "$KSFT_SKIP"
fi

ktap_set_plan 3

round=0
while [ $round -lt "$ROUNDS" ]; do
	echo 0 >"$online" && echo 1 >"$online" || break
	round=$((round + 1))
done
if [ $round = "$ROUNDS" ] && [ "$(cat "$online")" = 1 ]; then
	ktap_test_pass "cpu$cpu: $round times offline and online"
else
	ktap_test_fail "cpu$cpu: offline and online, round $round of $ROUNDS"
fi

log=$(mktemp) || exit 1
./frequency "$cpu" | sed 's/^/# /' >"$log"
if grep -q '^# not ok' "$log"; then
	cat "$log"
	ktap_test_fail "cpu$cpu: frequency"
elif grep -q '^# ok' "$log"; then
	ktap_test_pass "cpu$cpu: frequency"
else
	ktap_test_skip "cpu$cpu: frequency"
fi
rm -f "$log"

if [ "$(cat /sys/module/aperfmperf/parameters/freq_max)" = off ]; then
	ktap_test_skip "invariance has not been given up"
elif dmesg | grep -q "wobbly\|freq_invariance: off"; then
	ktap_test_fail "invariance has not been given up"
else
	ktap_test_pass "invariance has not been given up"
fi
ktap_finished
