#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The schedutil governor's rate_limit_us: does it take its range and nothing else?
# Needs root and a policy with this governor; what is changed is set back.

cd "$(dirname "$0")" || exit 1
. ../kselftest/ktap_helpers.sh

CPUFREQ=/sys/devices/system/cpu/cpufreq

# The tunables are of all policies or of each: the first directory will do.
find_tunables()
{
	for dir in $CPUFREQ/schedutil $CPUFREQ/policy*/schedutil; do
		[ -e "$dir/rate_limit_us" ] && echo "$dir" && return
	done
}

# $1: text; without a message if it is refused
put()
{
	(echo "$1" >"$DIR/rate_limit_us") 2>/dev/null
}

get()
{
	cat "$DIR/rate_limit_us"
}

# Texts that it has to take and to show again
takes()
{
	for text; do
		put "$text" || return
		[ "$(get)" = "$text" ] || return
	done
}

# A number that is too large, and text that is no number, leave it unchanged.
refuses()
{
	before=$(get)
	for text in 4294967296 -1 x 1x "1 1" ""; do
		! put "$text" || return
	done
	[ "$(get)" = "$before" ]
}

ktap_print_header
DIR=$(find_tunables)
if [ "$(id -u)" != 0 ] || [ -z "$DIR" ]; then
	ktap_skip_all "needs root and a policy with schedutil"
	exit "$KSFT_SKIP"
fi

ktap_set_plan 2
before=$(get)
ktap_test_result "rate_limit_us takes its range" takes 0 1 700 10000 4294967295
ktap_test_result "rate_limit_us refuses the rest" refuses
put "$before"
ktap_finished
