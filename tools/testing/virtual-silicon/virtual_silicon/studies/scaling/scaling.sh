# SPDX-License-Identifier: GPL-2.0
# Sourced in the guest by scaling.py. All CPUs keep the base clock, so that times are
# comparable; schedutil is asked all the same. "cost" prints a line per function:
#
#	cost FUNCTION LOAD CALLS MEAN_US MEDIAN_US

TRACING=/sys/kernel/tracing

prepare()
{
	echo 1024 >$TRACING/buffer_size_kb
	[ ! -e $CPU/intel_pstate/no_turbo ] || put 1 $CPU/intel_pstate/no_turbo
	[ ! -e $CPU/cpufreq/boost ] || put 0 $CPU/cpufreq/boost
	for policy in $CPU/cpufreq/policy*; do
		read -r khz <"$policy/cpuinfo_max_freq"
		put "$khz" "$policy/scaling_min_freq" || return
	done
}

# $1: idle governor, $2: chains
setup()
{
	put schedutil $CPU/cpufreq/policy*/scaling_governor &&
		put "$1" $CPU/cpuidle/current_governor || return
	chains "$2" || return
	sleep 0.1
}

# Each CPU wakes by its own timer, with a latency limit of 0 in timers0; tasks wake each
# other on all CPUs.
load()
{
	case $1 in
	timers)		cyclictest -q --default-system -t "$(nproc)" -a -i 1000 -d 0 -l 100 ;;
	timers0)	cyclictest -q -t "$(nproc)" -a -i 1000 -d 0 -l 100 ;;
	messages)	hackbench -f 4 -g "$((($(nproc) + 3) / 4))" -l 60 ;;
	esac
}

# $1: function, $2: load. One function at a time: each that is traced makes
# those that call it slower.
cost()
{
	echo "$1" >$TRACING/set_ftrace_filter || return
	echo function_graph >$TRACING/current_tracer
	load "$2" >/dev/null 2>&1
	echo 0 >$TRACING/tracing_on
	sed -n 's/^ *[0-9]*) [^0-9]*\([0-9.]*\) us .*/\1/p' $TRACING/trace | sort -n |
		awk -v what="$1 $2" '{ us[NR] = $1; sum += $1 }
			END { print "cost", what, NR, sum / (NR + !NR), us[int((NR + 1) / 2)] }'
	echo nop >$TRACING/current_tracer
	echo 1 >$TRACING/tracing_on
}
