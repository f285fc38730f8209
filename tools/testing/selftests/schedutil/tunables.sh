#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The schedutil governor's tunables: does each take its range and nothing else?
# Needs root and a policy with this governor; what is changed is set back.

cd "$(dirname "$0")" || exit 1
. ../kselftest/ktap_helpers.sh

CPUFREQ=/sys/devices/system/cpu/cpufreq

# The tunables are of all policies or of each: the first directory will do.
find_tunables()
{
	for dir in $CPUFREQ/schedutil $CPUFREQ/policy*/schedutil; do
		[ -e "$dir/urgent_up" ] && echo "$dir" && return
	done
}

# $1: tunable, $2: text; without a message if it is refused
put()
{
	(echo "$2" >"$DIR/$1") 2>/dev/null
}

get()
{
	cat "$DIR/$1"
}

# All that can be set
settings()
{
	for name in rate_limit_us cost_permille urgent_up urgent_down saturation_us; do
		echo "$name $(get $name)"
	done
}

# $1: tunable, then texts that it has to take and to show again
takes()
{
	tunable=$1
	shift
	for text; do
		put "$tunable" "$text" || return
		[ "$(get "$tunable")" = "$text" ] || return
	done
}

# $1: tunable, then numbers that it has to refuse; none of them, and nothing that is no
# number, may change any tunable
refuses()
{
	tunable=$1
	shift
	for text in "$@" 4294967296 -1 x 1x "1 1" ""; do
		! put "$tunable" "$text" || return
	done
	[ "$(settings)" = "$BEFORE" ]
}

# $1: tunable, $2: its highest value
test_range()
{
	old=$(get "$1")
	ktap_test_result "$1 takes 0 to $2" takes "$1" 0 1 "$2"
	put "$1" "$old"
	ktap_test_result "$1 refuses the rest" refuses "$1" $(($2 + 1))
}

fixed_by_hand()
{
	takes rate_limit_us 0 1 700 && [ "$(get cost_permille)" = 0 ]
}

test_rate_limit()
{
	ktap_test_result "rate_limit_us is fixed by a write" fixed_by_hand
	ktap_test_result "and left to the cost by a budget" takes cost_permille 10
	put cost_permille "$COST"
}

ktap_print_header
DIR=$(find_tunables)
if [ "$(id -u)" != 0 ] || [ -z "$DIR" ]; then
	ktap_skip_all "needs root and a policy with schedutil"
	exit "$KSFT_SKIP"
fi

ktap_set_plan 12
COST=$(get cost_permille)
LIMIT=$(get rate_limit_us)

# The window is fixed, so that no cost changes it in between.
put rate_limit_us 700
BEFORE=$(settings)
test_range urgent_up 1024
test_range urgent_down 1024
test_range saturation_us 100000
ktap_test_result "rate_limit_us refuses the rest" refuses rate_limit_us
ktap_test_result "cost_permille refuses the rest" refuses cost_permille 1001
ktap_test_result "cost_permille takes 0 to 1000" takes cost_permille 1 1000 0
ktap_test_result "cost_ns is read-only" refuses cost_ns 1
put rate_limit_us "$LIMIT"
test_rate_limit
[ "$COST" != 0 ] || put rate_limit_us "$LIMIT"
ktap_finished
