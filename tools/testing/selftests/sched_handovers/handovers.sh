#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Is work that goes from thread to thread as fast with deep idle states as without? Needs
# root, several CPUs, and states that take long to leave. Clocks are held at their highest
# meanwhile, and the idle governor is menu, where that can be done: teo may keep CPUs from
# deep states between hops, and so hide that a wrong one is woken.

cd "$(dirname "$0")" || exit 1
. ../kselftest/ktap_helpers.sh

CPU=/sys/devices/system/cpu
# Of 100 hops without deep states. Sanitizers make the kernel slower: the environment may
# ask for less.
SHARE=${SHARE:-70}

# A state that takes longer to leave than LIMIT us, and is not disabled
LIMIT=20
deep_states()
{
	for state in $CPU/cpu0/cpuidle/state*; do
		[ "$(cat "$state/latency")" -le $LIMIT ] || grep -l 0 "$state/disable"
	done 2>/dev/null
}

# $1: for all policies; without it what each had. $2: the idle governor
governors()
{
	grep -qw "$2" $CPU/cpuidle/available_governors && echo "$2" >$CPU/cpuidle/current_governor
	i=0
	for file in $CPU/cpufreq/policy*/scaling_governor; do
		i=$((i + 1))
		[ -e "$file" ] || return
		echo "${1:-$(echo "$old" | sed -n ${i}p)}" >"$file"
	done
}

hops()
{
	./handovers -c "$steps" -s 0.3 "$@" | cut -d' ' -f1
}

# $@: load
as_fast()
{
	got=$(hops "$@")
	most=$(exec 3>/dev/cpu_dma_latency; printf '0x%08x' $LIMIT >&3; hops "$@")
	echo "# $*: $got of $most"
	[ "$most" -gt 0 ] && [ $((got * 100)) -ge $((most * SHARE)) ]
}

ktap_print_header
if [ "$(id -u)" != 0 ] || [ "$(nproc)" -lt 4 ] || [ ! -c /dev/cpu_dma_latency ] ||
   [ -z "$(deep_states)" ]; then
	ktap_skip_all "needs root, 4 CPUs, and idle states that take more than $LIMIT us to leave"
	exit "$KSFT_SKIP"
fi

old=$(cat $CPU/cpufreq/policy*/scaling_governor 2>/dev/null)
old_idle=$(cat $CPU/cpuidle/current_governor)
governors performance menu
steps=$(./handovers)
ktap_set_plan 4
ktap_test_result "a pool of 16" as_fast -n 16
ktap_test_result "a pool of 16, 60 us" as_fast -n 16 -w 60
ktap_test_result "a ring of 16" as_fast -n 16 -o ring
ktap_test_result "a pool of 16, by epoll" as_fast -n 16 -m epoll
governors "" "$old_idle"
ktap_finished
