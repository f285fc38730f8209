# SPDX-License-Identifier: GPL-2.0
# Loads for a guest: what each takes, and what the hooks of schedutil do meanwhile.
# guest.py runs it. REPEAT, the number of times, comes from the environment, and so
# does LOADS, their names.
#
# Output, a line per load and time: name, result, calls of the hook, those that computed
# the utilisation, changes sent. A result is seconds or us: less is better; of churn it
# is searches per second.

COUNTS=/sys/kernel/debug/schedutil
[ -e $COUNTS/counting ] && echo 1 >$COUNTS/counting

# Sums over all policies
show()
{
	awk '{ n[$1] += $2 } END { print n["calls"] + 0, n["computed"] + 0, n["sent"] + 0 }' \
		$COUNTS/policy* /dev/null 2>/dev/null
}

worst()
{
	awk '/^T/ && $NF > worst { worst = $NF } END { print worst }'
}

load_perf_pipe()
{
	perf bench -f simple sched pipe -l 5000
}

load_perf_messaging()
{
	perf bench -f simple sched messaging -g 2 -l 20
}

load_hackbench()
{
	hackbench -g 2 -l 100 | awk '/^Time/ { print $2 }'
}

load_pipe_pair()
{
	hackbench -p -g 1 -f 1 -l 50000 | awk '/^Time/ { print $2 }'
}

load_churn()
{
	vs-churn 8 0.5
}

load_cyclic_100us() { cyclictest -q -t 4 -a -i 100 -d 0 -l 2000 | worst; }
load_cyclic_1ms() { cyclictest -q -t 4 -a -i 1000 -d 0 -l 500 | worst; }
load_cyclic_10ms() { cyclictest -q -t 4 -a -i 10000 -d 0 -l 100 | worst; }
load_rt_100us() { cyclictest -q -t 4 -a -p 50 -i 100 -d 0 -l 2000 | worst; }
load_rt_1ms() { cyclictest -q -t 4 -a -p 50 -i 1000 -d 0 -l 500 | worst; }
load_rt_10ms() { cyclictest -q -t 4 -a -p 50 -i 10000 -d 0 -l 100 | worst; }

now()
{
	cut -d' ' -f1 /proc/uptime
}

# 320 short processes, 16 at a time
load_processes()
{
	begin=$(now)
	for r in $(seq 20); do
		for i in $(seq 16); do
			(i=0; while [ $i -lt 40 ]; do i=$((i + 1)); done) &
		done
		wait
	done
	echo "$begin $(now)" | awk '{ print $2 - $1 }'
}

# Random lengths of work and of sleep on one CPU, in ms
BURSTS='40:17 48:23 51:45 54:48 42:60 34:2 54:30 50:16 42:4 58:11
	8:24 31:56 16:25 35:7 37:16 1:47 14:27 18:12 59:56 50:25
	11:49 52:5 9:40 40:29 9:9 1:56 1:14 50:14 11:56 11:19
	21:13 35:57 44:41 14:12 45:13 58:25 20:2 24:27 11:60 10:17'
load_bursts()
{
	begin=$(now)
	for b in $BURSTS; do
		vs-load -c 1 -t $(printf 0.%03d ${b%:*}) >/dev/null
		sleep $(printf 0.%03d ${b#*:})
	done
	echo "$begin $(now)" | awk '{ print $2 - $1 }'
}

for time in $(seq ${REPEAT:-1}); do
	for name in $LOADS; do
		sleep 0.3
		before=$(show)
		result=$(load_$name)
		echo "$name ${result:-none} $before $(show)" |
			awk '{ print $1, $2, $6 - $3, $7 - $4, $8 - $5 }'
	done
done
dmesg | grep -E "WARN|BUG|Call Trace"
true
