# SPDX-License-Identifier: GPL-2.0
# Sourced in the guest by handovers.py. "measure" prints a line per load:
#
#	LOAD REPETITION RATE P50 P99 LONGEST WATTS
#
# LOAD is of handovers.c, like n=4,w=60 for -n 4 -w 60, or PROGRAM:PARAMETER. A rate is hops
# per second, or of a program what it does in a second; without times in us these are 0.

. /usr/lib/vs/bench.sh

# States that take more than 20 us to leave. $1: 1 to disable them, 0 to enable
deep()
{
	for state in $CPU/cpu[0-9]*/cpuidle/state*; do
		read -r us <"$state/latency"
		[ "$us" -le 20 ] || put "$1" "$state/disable" || return
	done
}

# $1: SIS_SHALLOW or NO_SIS_SHALLOW, where the kernel has it
choice()
{
	_file=/sys/kernel/debug/sched/features
	! grep -q SIS_SHALLOW $_file 2>/dev/null || put "$1" $_file
}

# $1: idle governor, or installed: what the kernel began with; $2: schedutil, that with
# no-chains or no-choice of CPU, performance, or shallow: that without deep states
variant()
{
	[ "$1" != installed ] || set -- "$INSTALLED" "$2"
	put "$1" $CPU/cpuidle/current_governor && deep 0 || return
	governor=$2 with=1
	choice SIS_SHALLOW
	case $2 in
	shallow)	deep 1; governor=performance ;;
	no-chains)	with=0 governor=schedutil ;;
	no-choice)	choice NO_SIS_SHALLOW; governor=schedutil ;;
	esac
	put $governor $CPU/cpu[0-9]*/cpufreq/scaling_governor || return
	chains $with
}

# $1: loads
prepare_all()
{
	read -r INSTALLED <$CPU/cpuidle/current_governor || return
	put performance $CPU/cpu[0-9]*/cpufreq/scaling_governor || return
	STEPS=$(handovers)
	echo "$STEPS steps of work in a us"
	case $1 in *tbench:*) servers ;; esac
	case $1 in *pgbench*) database || { tail -n 5 /tmp/database; return 1; } ;; esac
}

# $1: what it does, $@: a program; RATE and WATTS of the line
timed()
{
	stopwatch -n "$@" | awk '{ print $3 / $1, $2 / $1 }'
}

# $1: load, $2: repetition; what follows these in the line
run_load()
{
	name=${1%%:*} number=${1#*:}
	case $1 in
	idle:*)		timed 1 sleep "$number" | sed 's/ / 0 0 0 /' ;;
	messages:*)	took=$(timed 1 messages "$number" 0.5)
			echo "${took% *} $(cat /tmp/output) 0 ${took#* }" ;;
	messaging:*)	timed "$number" perf bench sched messaging -t -g 2 -l "$number" |
				sed 's/ / 0 0 0 /' ;;
	*:*)		cell "$name" "$number" "$2" | awk '
				$1 != "cell" || $5 { print; exit }
				{ print $12 ? 1 / $12 : ($9 ? $9 : 1) / $7, 0, 0, 0, $8 / $7 }' ;;
	*)		sleep "0.2$(printf %03d $(($2 * 137 % 997)))"
			handovers -c "$STEPS" -s "$SECONDS_EACH" -S "$2" \
				$(echo ",$1" | sed 's/,\([a-z]\)=/ -\1 /g') ;;
	esac
}

# $1: idle governor, $2: variant, $3: loads, $4: repetitions
measure()
{
	variant "$1" "$2" || return
	for time in $(seq "$4"); do
		for load in $3; do
			echo "$load $time $(run_load "$load" "$time" 2>&1)"
		done
	done
	dmesg | grep -E "WARNING: CPU|BUG|Call Trace|stall"
	true
}
