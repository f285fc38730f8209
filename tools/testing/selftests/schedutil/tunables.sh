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
		[ -e "$dir/saturation_us" ] && echo "$dir" && return
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

settings()
{
	get rate_limit_us
	get saturation_us
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
	before=$(settings)
	for text in "$@" 4294967296 -1 x 1x "1 1" ""; do
		! put "$tunable" "$text" || return
	done
	[ "$(settings)" = "$before" ]
}

# $1: tunable, $2: the other one, then what the first has to take
test_takes()
{
	old=$(get "$1")
	other=$(get "$2")
	tunable=$1 untouched=$2
	shift 2
	ktap_test_result "$tunable takes $*" takes "$tunable" "$@"
	ktap_test_result "$untouched stays" [ "$(get "$untouched")" = "$other" ]
	put "$tunable" "$old"
}

ktap_print_header
DIR=$(find_tunables)
if [ "$(id -u)" != 0 ] || [ -z "$DIR" ]; then
	ktap_skip_all "needs root and a policy with schedutil"
	exit "$KSFT_SKIP"
fi

ktap_set_plan 6
test_takes rate_limit_us saturation_us 0 1 700 10000 4294967295
test_takes saturation_us rate_limit_us 0 1 700 100000
ktap_test_result "rate_limit_us refuses the rest" refuses rate_limit_us
ktap_test_result "saturation_us refuses the rest" refuses saturation_us 100001
ktap_finished
