#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# To be run last: the kernel has logged no error.

cd "$(dirname "$0")" || exit 1
. ../kselftest/ktap_helpers.sh

ktap_print_header
if ! dmesg >/dev/null 2>&1; then
	ktap_skip_all "the kernel's messages cannot be read"
	exit "$KSFT_SKIP"
fi
ktap_set_plan 3

# $1: what must not be there, $2: name
test_absent()
{
	if found=$(dmesg | grep "$1"); then
		echo "$found" | sed 's/^/# /'
		ktap_test_fail "$2"
	else
		ktap_test_pass "$2"
	fi
}

given_up="invariance has not been given up"
if dmesg | grep -q "freq_invariance: off, freq_max=off"; then
	ktap_test_skip "$given_up: aperfmperf.freq_max=off"
else
	test_absent "wobbly\|freq_invariance: off" "$given_up"
fi
test_absent "unchecked MSR access" "no access to registers that are not there"
test_absent "Call Trace\|WARNING:.*CPU\|BUG:\|Oops" "no stack traces"
ktap_finished
