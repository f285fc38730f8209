#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The idle state entered by UMWAIT, C0.2: is it there where the options
# given at boot and the CPU say so, and does it do what its documentation says?
# Needs root; what is changed is set back.

cd "$(dirname "$0")" || exit 1
. ../kselftest/ktap_helpers.sh

SYS=/sys/devices/system/cpu
CPU=$SYS/cpu0
IDLE=/sys/module/intel_idle/parameters
POLL=/sys/module/umwait/parameters/idle_poll

# Family 6 models for which the driver has C0.2: SPR, EMR, GNR.
MODELS=" 143 173 207 "

cpuinfo()
{
	sed -n "s/^$1[[:space:]]*: //p" /proc/cpuinfo | head -n 1
}

has_flag()
{
	cpuinfo flags | tr ' ' '\n' | grep -q "^$1\$"
}

# The state's name, or nothing.
expected_state()
{
	[ "$(cat $SYS/cpuidle/current_driver)" = intel_idle ] || return
	[ "$(cpuinfo 'cpu family')" = 6 ] || return
	case $MODELS in *" $(cpuinfo model) "*) ;; *) return ;; esac
	has_flag waitpkg || return

	case $(cat $IDLE/c02) in
	auto)
		# It would change which states other masks mean.
		case $(cat $IDLE/states_off) in 0|2) has_flag hypervisor || echo C0.2 ;; esac ;;
	on) echo C0.2 ;;
	esac
}

# The directory of a state by its name: the numbers are not the same everywhere.
state_by_name()
{
	[ -n "$1" ] || return
	for dir in $CPU/cpuidle/state*; do
		[ "$(cat "$dir/name")" = "$1" ] && echo "${dir##*/}"
	done
}

names()
{
	cat $CPU/cpuidle/state*/name 2>/dev/null | tr '\n' ' '
}

# Sum over all CPUs of a file of the state
sum()
{
	cat $SYS/cpu[0-9]*/cpuidle/$STATE/"$1" | awk '{ n += $1 } END { print n }'
}

# $1: 0 or 1, $2...: states, on all CPUs
disable()
{
	value=$1
	shift
	for state; do
		for file in $SYS/cpu[0-9]*/cpuidle/$state/disable; do
			echo "$value" >"$file"
		done
	done
}

# Leaves $STATE as the only one that may be entered.
only_state()
{
	for dir in $CPU/cpuidle/state*; do
		[ "${dir##*/}" = "$STATE" ] || disable 1 "${dir##*/}"
	done
	disable 0 $STATE
}

# All files that are written to; they are set back however this ends.
save()
{
	saved=$(grep -Hs . $SYS/cpu[0-9]*/cpuidle/state*/disable $SYS/umwait_control/* \
		$SYS/cpuidle/current_governor $POLL)
	trap restore EXIT
	trap 'exit 1' HUP INT PIPE TERM
}

restore()
{
	trap '' HUP INT PIPE TERM
	echo "$saved" | while IFS=: read -r file value; do
		[ -z "$file" ] || echo "$value" >"$file"
	done
}

# Entries of the state while the machine is idle
entries()
{
	before=$(sum usage)
	sleep 0.1
	echo $(($(sum usage) - before))
}

test_list()
{
	case " $(names)" in
	" "|" C1"*|" POLL $WANTED "*) listed=yes ;;
	" POLL "*) [ -z "$WANTED" ] && listed=yes ;;
	esac
	[ -n "$WANTED" ] || case $(names) in *C0.*) listed= ;; esac
	ktap_test_result "states: $(names)" [ "x$listed" = xyes ]
}

test_off_mask()
{
	mask=$(($(cat $IDLE/states_off 2>/dev/null || echo 0)))
	ktap_test_result "disabled at boot only by states_off" \
		[ "$(cat $CPU/cpuidle/$STATE/disable)" = $((mask >> ${STATE#state} & 1)) ]
}

test_entered()
{
	only_state
	time=$(sum time)
	ktap_test_result "entered if it is the only one" [ "$(entries)" -gt 0 ]
	ktap_test_result "time is spent in it" [ $(($(sum time) - time)) -gt 25000 ]
}

# 4000 cycles of the TSC are 1 to 2 us; the driver's own limit is above 60 us.
test_limit()
{
	cpus=$(ls -d $SYS/cpu[0-9]*/cpuidle | wc -l)
	echo 4000 >$SYS/umwait_control/max_time
	# without it 50000 a second and CPU and more
	ktap_test_result "the limit of user space does not end it" \
		[ "$(entries)" -lt $((cpus * 100000 / 50)) ]
}

test_disable()
{
	disable 1 $STATE
	disable 0 state0
	ktap_test_result "not entered if disabled" [ "$(entries)" = 0 ]
	disable 0 $STATE
}

# What suspend-to-idle may enter has counters of it.
test_s2idle()
{
	ktap_test_result "not for suspend-to-idle" [ ! -e $CPU/cpuidle/$STATE/s2idle ]
}

# Sets a latency limit of $1 us for a command, and until file 4 is closed.
limited()
{
	exec 4>/dev/cpu_dma_latency
	printf "\\$(printf %o "$1")\\0\\0\\0" >&4
	shift
	sleep 0.05
	"$@"
}

# A limit of the latency that is shown admits the state; POLL's is 0.
test_latency()
{
	zero=$(grep -lx 0 $CPU/cpuidle/state*/latency)
	ktap_test_result "a latency of 0 is shown for POLL only" \
		[ "$zero" = $CPU/cpuidle/state0/latency ]
	[ -w /dev/cpu_dma_latency ] || {
		ktap_test_skip "a limit of the latency shown"
		ktap_test_skip "latency limit 0"
		return
	}
	only_state
	ktap_test_result "entered with a limit of the latency shown" \
		[ "$(limited "$(cat $CPU/cpuidle/$STATE/latency)" entries)" -gt 0 ]
	disable 0 state0	# where nothing meets the limit, teo takes what is enabled
	ktap_test_result "not entered with a latency limit of 0" [ "$(limited 0 entries)" = 0 ]
	exec 4>&-
}

# With the state disabled ladder goes past it, also from POLL.
test_ladder()
{
	grep -qw ladder $SYS/cpuidle/available_governors 2>/dev/null || {
		ktap_test_skip "ladder"
		ktap_test_skip "ladder leaves POLL"
		return
	}
	deepest=$(printf '%s\n' $CPU/cpuidle/state* | tail -n 1)
	disable 0 "${deepest##*/}"
	disable 1 $STATE
	echo ladder >$SYS/cpuidle/current_governor
	[ ! -w /dev/cpu_dma_latency ] || { limited 0 true; exec 4>&-; }
	ktap_test_result "ladder does not enter it if disabled" [ "$(entries)" = 0 ]
	before=$(cat "$deepest/usage")
	# It goes deeper only at wake-ups, and CPU 0 may sleep for all of a short time.
	for _ in $(seq 50); do
		taskset -c 0 sleep 0.02
		[ "$(cat "$deepest/usage")" = "$before" ] || break
	done
	ktap_test_result "ladder leaves POLL" [ "$(cat "$deepest/usage")" -gt "$before" ]
}

test_enable_c02()
{
	only_state
	echo 0 >$SYS/umwait_control/enable_c02
	ktap_test_result "entered with enable_c02=0, as C0.1" [ "$(entries)" -gt 0 ]
}

# idle_poll takes the value
takes()
{
	echo "$1" >$POLL && [ "$(cat $POLL)" = "$1" ]
}

# idle_poll refuses the value and keeps the one it has
refuses()
{
	now=$(cat $POLL)
	! (echo "$1" >$POLL) 2>/dev/null && [ "$(cat $POLL)" = "$now" ]
}

test_idle_poll()
{
	[ -e $POLL ] || {
		ktap_test_skip "idle_poll"
		ktap_test_skip "idle_poll: nonsense"
		return
	}
	if has_flag waitpkg && ! cpuinfo bugs | grep -qw monitor; then
		ktap_test_result "idle_poll can be set" takes c02
	else
		ktap_test_result "idle_poll is refused without UMWAIT" refuses c02
	fi
	ktap_test_result "idle_poll: nonsense is refused and changes nothing" refuses c03
}

ktap_print_header
if [ "$(id -u)" != 0 ] || [ ! -d $SYS/cpuidle ]; then
	ktap_skip_all "needs root and cpuidle"
	exit "$KSFT_SKIP"
fi

WANTED=$(expected_state)
STATE=$(state_by_name "$WANTED")
save
if [ -n "$STATE" ]; then
	ktap_set_plan 15
	test_list
	test_off_mask
	test_entered
	test_limit
	test_enable_c02
	test_disable
	test_latency
	test_s2idle
	test_ladder
else
	ktap_set_plan 3
	test_list
fi
test_idle_poll
ktap_finished
