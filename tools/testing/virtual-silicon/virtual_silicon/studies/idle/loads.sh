# SPDX-License-Identifier: GPL-2.0
# Sourced in the guest by loads.py. "rounds" prints a line per load, LOADS names them:
#
#	FREQUENCY_GOVERNOR IDLE_GOVERNOR LOAD VALUE... ABOVE BELOW SECONDS JOULES
#
# with the rises of cpuidle's counters of choices that were too deep and too
# shallow, over all CPUs, and the time and the packages' energy that it took.

IDLE=$CPU/cpuidle/current_governor

# $1: above or below
total()
{
	cat $CPU/cpu[0-9]*/cpuidle/state*/"$1" | awk '{ sum += $1 } END { print sum + 0 }'
}

uptime_now()
{
	read -r up _ </proc/uptime
	echo "$up"
}

# 10 ms is what the clock resolves
shell_load()
{
	begin=$(uptime_now)
	i=0
	while [ $i -lt 150 ]; do
		echo "$i" | cat | grep -q "$i"
		i=$((i + 1))
	done
	echo "$begin $(uptime_now)" | awk '{ print $2 - $1 }'
}

# $@: more options
sockperf_load()
{
	sockperf under-load -i 127.0.0.1 "$@" -t 1 --mps=10000 --full-rtt 2>&1 |
		sed -n 's/.*Summary: Round trip is \([0-9.]*\).*/\1/p;
			s/.*percentile 99.000 = *\([0-9.]*\).*/\1/p' | tr '\n' ' '
}

# Of dbench's and tbench's report, which has no throughput after a single second
operations()
{
	awk '$1 == "Operation" { on = 1 } on && NF == 4 { n += $2 } END { print n }'
}

SCRIPT=/usr/share/dbench/client.txt

load()
{
	case $1 in
	hackbench)	hackbench -g 1 -l 200 2>&1 | awk '/^Time:/ { print $2 }' ;;
	pipe)		hackbench -p -g 1 -f 1 -l 60000 2>&1 | awk '/^Time:/ { print $2 }' ;;
	perf-pipe)	perf bench sched pipe -l 5000 2>&1 | awk '/usecs.op/ { print $1 }' ;;
	tbench-*)	tbench -c $SCRIPT -t 1 ${1#*-} 127.0.0.1 | operations ;;
	dbench-*)	dbench -D /tmp -c $SCRIPT -t 1 ${1#*-} | operations ;;
	*-rr|*-rest|*-paced|*-stream|*-io|timers)	teo-bench "$1" 0.3 ;;
	ticks)		count $TICKS messages "$(sed 's/.*-//' $CPU/present)" 0.5 ;;
	rest)		count -e power/energy-pkg/ $TICKS sleep 1 ;;
	sockperf-udp)	sockperf_load ;;
	sockperf-tcp)	sockperf_load --tcp ;;
	sockperf-1ms)	sockperf_load --reply-every=10 ;;
	messages)	messages 3 0.8 ;;
	shell)		shell_load ;;
	esac
}

# Tick stops, and timers that a CPU ran for one that rests
TICKS="-e timer:tick_stop -e timer_migration:tmigr_handle_remote_cpu"

# Of all CPUs. $@: events and a command
count()
{
	mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
	perf stat -a -x, "$@" 2>&1 >/dev/null | cut -d, -f1 | tr '\n' ' '
}

servers()
{
	tbench_srv >/dev/null 2>&1 &
	sockperf server -i 127.0.0.1 >/dev/null 2>&1 &
	sockperf server -i 127.0.0.1 --tcp >/dev/null 2>&1 &
	sleep 0.5
}

# What is left of the last load's utilisation is not to be the next one's.
settle()
{
	sleep 0.2
}

measure()
{
	settle
	above=$(total above) below=$(total below)
	took=$(stopwatch sh -c "CPU=$CPU; . /usr/lib/vs/loads.sh; load $3")
	echo "$(total above) $above $(total below) $below $took" |
		awk -v what="$1 $2 $3 $(cat /tmp/output)" '{ print what, $1 - $2, $3 - $4, $5, $6 }'
}

# $1: rounds, $2: idle governors, $3: frequency governors
rounds()
{
	servers
	for round in $(seq "$1"); do
		for frequency in $3; do
			put "$frequency" $CPU/cpu[0-9]*/cpufreq/scaling_governor
			for idle in $2; do
				put "$idle" "$IDLE"
				for name in $LOADS; do
					measure "$frequency" "$idle" "$name"
				done
			done
		done
	done
}
