#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs small loads under each idle governor, in turn and several times, and prints
# "governor load value above below" lines: above and below are cpuidle's counters
# of choices that were too deep and too shallow, all CPUs, per second.
#
#	[REPETITIONS [SECONDS [GOVERNOR...]]]

repetitions=${1:-3}
seconds=${2:-1}
[ $# -gt 2 ] && shift 2 && governors="$*"
governors=${governors:-menu teo}

here=$(dirname "$0")
current=/sys/devices/system/cpu/cpuidle/current_governor
was=$(cat "$current") || exit 4

# How much frequency a load gets depends on how it idles, and more on chance.
for policy in /sys/devices/system/cpu/cpufreq/policy*; do
	[ -e "$policy" ] && echo performance >"$policy/scaling_governor"
done

# $1: above or below
total()
{
	cat /sys/devices/system/cpu/cpu[0-9]*/cpuidle/state*/"$1" |
		awk '{ sum += $1 } END { print sum + 0 }'
}

uptime_now()
{
	read -r up _ </proc/uptime
	echo "$up"
}

# Prints one number.
shell_load()
{
	begin=$(uptime_now)
	i=0
	while [ $i -lt 200 ]; do
		echo "$i" | cat | grep -q "$i"
		i=$((i + 1))
	done
	echo "$begin $(uptime_now)" | awk '{ print $2 - $1 }'
}

load()
{
	case $1 in
	hackbench)
		hackbench -g 1 -l 200 2>&1 | awk '/^Time:/ { print $2 }' ;;
	shell)
		shell_load ;;
	dbench)
		(cd /tmp && dbench -c client.txt -t "$seconds" -S 2 2>&1 |
			awk '/^Throughput/ { print $2 }') ;;
	tbench)
		tbench -c /tmp/client.txt -t "$seconds" 2 localhost 2>&1 |
			awk '/^Throughput/ { print $2 }' ;;
	*)
		"$here"/bench "$1" "$seconds" ;;
	esac
}

loads="hackbench shell pipe-rr tcp-rr udp-rr pipe-paced tcp-paced udp-paced
       sched-latency tcp-stream udp-stream"
command -v dbench >/dev/null && [ -e /tmp/client.txt ] && loads="$loads dbench"

n=0
while [ $n -lt "$repetitions" ]; do
	for governor in $governors; do
		echo "$governor" >"$current" || exit 4
		for name in $loads; do
			above=$(total above) below=$(total below) begin=$(uptime_now)
			value=$(load "$name")
			echo "$governor $name $value $above $(total above) $below" \
			     "$(total below) $begin $(uptime_now)" |
				awk '{ t = $9 - $8; if (t <= 0) t = 1
				       printf "%s %s %s %.1f %.1f\n", $1, $2, $3,
					      ($5 - $4) / t, ($7 - $6) / t }'
		done
	done
	n=$((n + 1))
done
echo "$was" >"$current"
