# SPDX-License-Identifier: GPL-2.0
# Random life of one policy of all CPUs, in a guest; policies.py runs it.
#
# In each round a few things happen at random: a CPU goes off or on, the governor or a
# limit changes, a tunable is written, a load begins. Then it is found out whether
# anything was lost:
#
#   rise     a task that has just been forked and is CPU-bound must be given the highest
#            frequency of the limits in time, on all CPUs of the policy, and keep it
#   limit    the same while the limits change under it
#   fall     when it does little again, less must be asked for; it stayed if not within
#            three times what the rise may take
#   fixed    under the governors performance and powersave: what they stand for
#
# SEED, LENGTH (s) and HZ come from the environment. Each thing that was lost makes a
# line that begins with LOST; the last line has the counts.

CPU=/sys/devices/system/cpu
POLICY=$CPU/cpufreq/policy0
TUNABLES=$CPU/cpufreq/schedutil
SEED=${SEED:-1} LENGTH=${LENGTH:-60} HZ=${HZ:-250}
TICK_MS=$((1000 / HZ))

STEPS=$(cat $POLICY/scaling_available_frequencies)
TOP=$(cat $POLICY/cpuinfo_max_freq)
BOTTOM=$(cat $POLICY/cpuinfo_min_freq)
CPUS=$(cat $CPU/present); CPUS=$((${CPUS#*-} + 1))

# Happened so far
rounds=0 off=0 on=0 governors=0 limits=0 tunables=0 refused=0 loads=0
rises=0 changed=0 falls=0 fixed=0 stayed=0 lost=0
slowest=0

# $1: numbers from 0 to $1 - 1; in $r
random()
{
	SEED=$(((SEED * 1103515245 + 12345) & 0x7fffffff))
	r=$(((SEED >> 8) % $1))
}

# A word of the arguments; in $w
pick()
{
	random $#
	shift "$r"
	w=$1
}

lost()
{
	lost=$((lost + 1))
	echo "LOST round $rounds $(cut -d' ' -f1 /proc/uptime) s: $*;" \
		"$(cat $POLICY/scaling_governor) $(cat $POLICY/scaling_min_freq)" \
		"$(cat $POLICY/scaling_max_freq) cpus $(cat $POLICY/affected_cpus):" \
		"$(cat $TUNABLES/* 2>/dev/null | tr '\n' ' ')"
}

# What the CPU asks for, as a ratio of 100 MHz
asked()
{
	value=$(vs-msr "$1" 0x199)
	echo $((${value#* } >> 8 & 255))
}

######## What happens

# acpi-cpufreq, the base's as well, leaves a CPU that comes back at its old frequency
# until the policy's changes.
join()
{
	until [ "$(asked "$1")" = "$(asked 0)" ]; do
		vs-msr "$1" 0x199=$(($(asked 0) << 8))
	done
}

hotplug()
{
	random $((CPUS - 1))
	c=$((r + 1))
	if [ "$(cat $CPU/cpu$c/online)" = 1 ]; then
		echo 0 >$CPU/cpu$c/online && off=$((off + 1))
	else
		echo 1 >$CPU/cpu$c/online && on=$((on + 1)) && join $c
	fi
}

governor()
{
	# Half of the time the one that it is about
	pick schedutil schedutil schedutil performance powersave userspace ondemand
	echo "$w" >$POLICY/scaling_governor && governors=$((governors + 1))
}

limit()
{
	pick scaling_min_freq scaling_max_freq scaling_max_freq
	file=$w
	pick $STEPS
	echo "$w" >$POLICY/"$file" 2>/dev/null && limits=$((limits + 1))
}

no_limits()
{
	echo "$BOTTOM" >$POLICY/scaling_min_freq
	echo "$TOP" >$POLICY/scaling_max_freq
}

tunable()
{
	[ -d $TUNABLES ] || return
	pick $(cd $TUNABLES && ls)
	name=$w
	case $name in
	rate_limit_us) pick 0 10 100 500 2000 10000 20000 x -1 ;;
	*) return ;;
	esac
	before=$(cat $TUNABLES/"$name")
	if echo "$w" 2>/dev/null >$TUNABLES/"$name"; then
		tunables=$((tunables + 1))
	else
		refused=$((refused + 1))
		[ "$(cat $TUNABLES/"$name")" = "$before" ] ||
			lost "$name changed by $w"
	fi
}

# Each change has to wait for long.
patient()
{
	[ -e $TUNABLES/rate_limit_us ] || return
	pick 4000 8000 12000 20000
	echo "$w" >$TUNABLES/rate_limit_us
	tunables=$((tunables + 1))
}

# A task that runs and is moved from CPU to CPU
wander()
{
	sh -c 'while :; do :; done' &
	task=$!
	for i in 1 2 3 4 5 6; do
		for c in $(cat $POLICY/affected_cpus); do
			taskset -pc "$c" $task >/dev/null 2>&1
			sleep 0.013
		done
	done
	kill $task
	wait $task
}

load()
{
	loads=$((loads + 1)) loaded=1
	random 6
	case $r in
	0) vs-load -c all -d 3 -p 10000 -t 2 ;;
	1) hackbench -g 1 -l 20 ;;
	2) cyclictest -q -t 2 -p 50 -i 1000 -l 300 ;;
	3) cyclictest -q -t 4 -i 300 -l 500 ;;
	4) for i in 1 2 3 4 5 6 7 8; do (vs-load -c none -t 0.01) & done; wait ;;
	5) wander ;;
	esac >/dev/null 2>&1 &
}

######## What must not be lost

# ms until a busy CPU has the highest frequency: its utilisation gets there in 200 ms, and
# what its task does may be unusual before.
bound()
{
	window=0
	[ -d $TUNABLES ] && window=$(cat $TUNABLES/rate_limit_us)
	ms=$((200 + 3 * window / 1000))
}

probe_rise()
{
	random 3
	[ "$r" = 0 ] || no_limits
	pick $(cat $POLICY/affected_cpus)
	cpu=$w ratio=$(($(cat $POLICY/scaling_max_freq) / 100000))
	bound
	fall=
	random 4
	[ -z "$loaded" ] && [ "$r" = 0 ] &&
		[ "$(cat $POLICY/scaling_min_freq)" != "$(cat $POLICY/scaling_max_freq)" ] &&
		fall=-f
	rises=$((rises + 1))
	[ -n "$fall" ] && falls=$((falls + 1))
	if found=$(vs-rise -s -p 0 -c "$cpu" -r $ratio -t $ms -k 12 $fall); then
		took=${found#* }
		took=${took%%.*}
		[ "$took" -gt $slowest ] && slowest=$took
	elif [ -n "$fall" ] && [ "${found##* }" = nan ]; then
		stayed=$((stayed + 1))
	else
		lost "cpu $cpu ratio $ratio within $ms ms:" $found
	fi
}

# $1: CPU; what it asks for within the bound
reaches()
{
	i=0
	while [ "$(asked "$1")" != "$2" ]; do
		i=$((i + 1))
		[ $((i * TICK_MS)) -le $ms ] || return
		sleep 0.00$TICK_MS
	done
}

# The limits change while a CPU is busy.
probe_limit()
{
	pick $(cat $POLICY/affected_cpus)
	cpu=$w
	no_limits
	vs-rise -p 0 -c "$cpu" -r $((TOP / 100000)) -t 300 -k 1000 >/dev/null &
	spinner=$!
	bound
	reaches "$cpu" $((TOP / 100000)) || lost "cpu $cpu: $(asked "$cpu"), not the top"
	for i in 1 2 3; do
		pick $STEPS
		[ "$w" -gt "$BOTTOM" ] || continue
		changed=$((changed + 1)) limits=$((limits + 1))
		echo "$w" >$POLICY/scaling_max_freq
		bound
		reaches "$cpu" $((w / 100000)) ||
			lost "cpu $cpu: $(asked "$cpu") with a limit of $w"
	done
	kill $spinner 2>/dev/null
	wait $spinner 2>/dev/null
}

probe_fixed()
{
	fixed=$((fixed + 1))
	wanted=$(($(cat $POLICY/scaling_"$1"_freq) / 100000))
	for c in $(cat $POLICY/affected_cpus); do
		[ "$(asked "$c")" = $wanted ] || lost "cpu $c: $(asked "$c"), $1 is $wanted"
	done
}

probe()
{
	case $(cat $POLICY/scaling_governor) in
	schedutil)
		random 6
		if [ "$r" = 0 ]; then probe_limit; else probe_rise; fi ;;
	performance) probe_fixed max ;;
	powersave) probe_fixed min ;;
	esac
}

one_round()
{
	rounds=$((rounds + 1)) loaded=
	random 4
	for i in $(seq $((r + 1))); do
		pick hotplug hotplug governor limit tunable tunable patient load
		$w
	done
	random 50
	sleep 0.0$(printf %02d "$r")
	probe
	[ -n "$loaded" ] && wait 2>/dev/null
	random 50
	sleep $((r / 10)).$((r % 10))
}

uptime_s()
{
	cut -d. -f1 /proc/uptime
}

end=$(($(uptime_s) + LENGTH))
while [ "$(uptime_s)" -lt $end ]; do
	one_round
done

# And in the end it still works.
for c in $(seq $((CPUS - 1))); do
	[ "$(cat $CPU/cpu$c/online)" = 1 ] && continue
	echo 1 >$CPU/cpu$c/online
	join "$c"
done
echo schedutil >$POLICY/scaling_governor
no_limits
loaded=
for c in $(cat $POLICY/affected_cpus); do
	probe_rise
done
complaints=$(dmesg | grep -cE "WARNING|BUG|Call Trace|stall|INFO: task|deadlock")
[ "$complaints" = 0 ] || dmesg | grep -E "WARNING|BUG|stall|INFO: task|deadlock" | head
echo "rounds $rounds off $off on $on governors $governors limits $limits" \
	"tunables $tunables refused $refused loads $loads rises $rises changed $changed" \
	"falls $falls fixed $fixed slowest_ms $slowest complaints $complaints" \
	"stayed $stayed lost $lost"
[ "$lost$complaints$stayed" = 000 ]
