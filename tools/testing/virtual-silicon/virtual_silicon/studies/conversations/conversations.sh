# SPDX-License-Identifier: GPL-2.0
# Sourced in the guest by conversations.py. "measure_all" prints a line per load:
#
#	VARIANT LOAD RESULT SECONDS CYCLES REFERENCE JOULES WRITES
#
# with what APERF and MPERF rose by, over all CPUs, and the writes of PERF_CTL that change
# its value. A result is that of conversations.c or of idle/loads.sh.

. /usr/lib/vs/loads.sh
TRACING=/sys/kernel/tracing
ENERGY=/sys/class/powercap/intel-rapl:0/energy_uj

# $1: schedutil without or with chains, 0 or 1; or "performance"
variant()
{
	case $1 in
	performance)
		put performance $CPU/cpu[0-9]*/cpufreq/scaling_governor ;;
	*)
		put schedutil $CPU/cpu[0-9]*/cpufreq/scaling_governor
		chains "$1" ;;
	esac
}

counters()
{
	for cpu in $CPU/cpu[0-9]*; do
		vs-msr "${cpu#"$CPU"/cpu}" 0xe8 0xe7
	done | while read -r msr value; do
		echo "$msr $((value))"
	done | awk '$1 == "0xe8" { a += $2 } $1 == "0xe7" { m += $2 } END { printf "%.0f %.0f\n", a, m }'
}

changes()
{
	awk '/write_msr:/ {
			match($0, /\[[0-9]+\]/); c = substr($0, RSTART, RLENGTH) $(NF - 2)
			if (c in set && set[c] != $NF) n++
			set[c] = $NF
		} END { print n + 0 }' $TRACING/trace
}

# For long enough to see more than the rise of the clock
script()
{
	for part in $(seq 8); do
		load shell
	done | awk '{ sum += $1 } END { print sum }'
}

run_load()
{
	case $1 in
	idle)		sleep $SECONDS_EACH; echo 1 ;;
	hackbench)	hackbench -g 2 -l 300 | awk '/^Time/ { print $2 }' ;;
	shell)		script ;;
	tbench-*|perf-pipe|sockperf-*)
			load "$1" ;;
	*)		conversations "$1" $SECONDS_EACH ;;
	esac
}

# $1: variant, $2: load
measure_one()
{
	variant "$1"
	sleep 0.3
	: >$TRACING/trace
	before="$(uptime_now) $(cat $ENERGY) $(counters)"
	echo 1 >$TRACING/events/msr/write_msr/enable
	result=$(run_load "$2")
	echo 0 >$TRACING/events/msr/write_msr/enable
	after="$(uptime_now) $(cat $ENERGY) $(counters)"
	echo "$before $after" | awk -v what="$1 $2 ${result%% *}" -v n="$(changes)" '{
		printf "%s %.2f %.0f %.0f %.4f %d\n", what, $5 - $1, $7 - $3, $8 - $4, ($6 - $2) / 1e6, n }'
}

# $1: variants, $2: loads, $3: repetitions
measure_all()
{
	mount -t tracefs tracefs $TRACING 2>/dev/null
	echo "msr == 0x199" >$TRACING/events/msr/write_msr/filter
	echo 8192 >$TRACING/buffer_size_kb
	case "$2" in *bench*|*sockperf*) servers ;; esac
	for time in $(seq "$3"); do
		for name in $2; do
			for variant in $1; do
				measure_one "$variant" "$name"
			done
		done
	done
	dmesg | grep -E "WARN|BUG|Call Trace|stall"
	true
}
