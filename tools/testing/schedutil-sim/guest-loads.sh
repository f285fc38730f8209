# SPDX-License-Identifier: GPL-2.0
# Loads for a guest, and what schedutil does meanwhile; guest.py runs it. REPEAT, the
# number of times, and LOADS, their names, come from the environment; if CLAMPED is set, a
# task with this utilisation clamp sleeps on CPU 3.
#
# Output, a line per load and time: name, result, seconds, calls of schedutil's hooks and
# of effective_cpu_util() by the kernel's function profiler, and writes of PERF_CTL or
# HWP_REQUEST that change the value, by the trace of MSRs. A result is seconds, us of
# latency, or a number of searches, round trips or periods.

TRACING=/sys/kernel/tracing

worst()
{
	awk '/^T/ && $NF > worst { worst = $NF } END { print worst }'
}

load_hackbench() { hackbench -g 2 -l 300 | awk '/^Time/ { print $2 }'; }
load_pipe_one() { guest-load pipe 1,1 0.5; }
load_pipe_two() { guest-load pipe 1,2 0.5; }
load_churn() { vs-churn 8 0.5; }
load_cyclic_100us() { cyclictest -q -t 4 -a -i 100 -d 0 -l 4000 | worst; }
load_cyclic_1ms() { cyclictest -q -t 4 -a -i 1000 -d 0 -l 1000 | worst; }
load_rt_1ms() { cyclictest -q -t 4 -a -p 50 -i 1000 -d 0 -l 1000 | worst; }
load_bursts_20ms() { guest-load bursts 0,1,2,3 2 20; }
load_bursts_100ms() { guest-load bursts 0,1,2,3 4 100; }
load_work_20ms() { guest-load work 0,1,2,3 2 20; }
load_work_100ms() { guest-load work 0,1,2,3 4 100; }
load_noise_30() { guest-load noise 0,1,2,3 2 30; }
load_light_10() { guest-load noise 0,1,2,3 1 10; }

now()
{
	cut -d' ' -f1 /proc/uptime
}

# A kernel without the profiler counts no calls. Others would slow all that they profile.
profile()
{
	[ ! -e $TRACING/function_profile_enabled ] || echo "$1" >$TRACING/function_profile_enabled
}

begin()
{
	profile 0
	profile 1
	: >$TRACING/trace
	echo 1 >$TRACING/events/msr/write_msr/enable
	from=$(now)
}

# Prints seconds, calls of the hooks, of effective_cpu_util(), and changes.
end()
{
	until=$(now)
	echo 0 >$TRACING/events/msr/write_msr/enable
	profile 0
	cat $TRACING/trace_stat/function* 2>/dev/null | awk -v s="$from $until" '
		$1 ~ /^sugov_update_/ { calls += $2 }
		$1 == "effective_cpu_util" { computed += $2 }
		END { split(s, t); printf "%.2f %d %d ", t[2] - t[1], calls, computed }'
	awk '/write_msr:/ {
			match($0, /\[[0-9]+\]/); c = substr($0, RSTART, RLENGTH) $(NF - 2)
			if (c in set && set[c] != $NF) n++
			set[c] = $NF
		} END { print n + 0 }' $TRACING/trace
}

echo "msr == 0x199 || msr == 0x774" >$TRACING/events/msr/write_msr/filter
echo 4096 >$TRACING/buffer_size_kb
[ ! -e $TRACING/function_profile_enabled ] ||
	printf '%s\n' 'sugov_update_*' effective_cpu_util >$TRACING/set_ftrace_filter
[ -z "$CLAMPED" ] || guest-load clamped 3 100000 $CLAMPED >/dev/null &
for time in $(seq ${REPEAT:-1}); do
	for name in $LOADS; do
		sleep 0.3
		begin
		result=$(load_$name)
		echo "$name ${result:-none} $(end)"
	done
done
dmesg | grep -E "WARN|BUG|Call Trace"
true
