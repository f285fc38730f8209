# SPDX-License-Identifier: GPL-2.0
# Sourced in the guest by store.py, after guest.sh. "settings" sets a column up and refuses what
# does not hold; "cell" runs one load and prints
#
#	cell LOAD PARAMETER SEED STATUS S J AMOUNT APERF MPERF CHANGES ABOVE BELOW WAITED WAITS
#		[NUMBER]...
#
# CHANGES: writes of the registers that ask for a clock which change their value. WAITED: ns that
# tasks which could run waited for a CPU, in so many WAITS. NUMBERs: what the load prints.

. /usr/lib/vs/programs.sh

BEGAN=/tmp/began
FEATURES=/sys/kernel/debug/sched/features
TRACING=/sys/kernel/tracing
CGROUPS=/sys/fs/cgroup
DMA_LATENCY=/dev/cpu_dma_latency
KNOBS="$CPU/intel_pstate/status
	$CPU/cpufreq/policy[0-9]*/scaling_governor
	$CPU/cpuidle/current_governor
	/sys/module/aperfmperf/parameters/freq_max
	/sys/module/umwait/parameters/idle_poll
	$CPU/cpu[0-9]*/cpuidle/state[0-9]*/disable"

# Writes down how the kernel began
prepare()
{
	for file in $KNOBS; do
		[ ! -e "$file" ] || echo "$(cat "$file") $file"
	done >$BEGAN
	[ ! -e $FEATURES ] || cat $FEATURES >$BEGAN.features
	echo "msr == 0x199 || msr == 0x774 || msr == 0xc0010062" >$TRACING/events/msr/write_msr/filter
	echo 4096 >$TRACING/buffer_size_kb
	cd /usr/lib/vs
}

# STEPS: of work in a us at the highest clock, for handovers
steps()
{
	put performance $CPU/cpufreq/policy[0-9]*/scaling_governor && STEPS=$(handovers)
}

# TOP: the highest clock, in the unit of PERF_CTL
highest()
{
	TOP=$(($(cat $CPU/cpu0/cpufreq/cpuinfo_max_freq) / 100000))
}

# VALUE FILE...: writes it, and reads it back
hold()
{
	put "$@" || return
	want=$1
	shift
	for file; do
		[ "$(cat "$file")" = "$want" ] || { echo "$file is $(cat "$file")"; return 1; }
	done
}

# NAME, or NO_NAME: of the scheduler
feature()
{
	put "$1" $FEATURES && grep -qw "$1" $FEATURES
}

# STATE,...: no others are used; each is there
states()
{
	for state in $(echo "$1" | tr , ' '); do
		grep -qx "$state" $CPU/cpu0/cpuidle/state*/name || { echo "no state $state"; return 1; }
	done
	only "$(echo "$1" | tr , ' ')"
}

# US: states that take longer to leave are not used
shallower()
{
	for state in $CPU/cpu[0-9]*/cpuidle/state*; do
		[ "$(cat "$state/latency")" -le "$1" ] || hold 1 "$state/disable" || return
	done
}

# US: what a CPU may take to wake, while descriptor 4 is open
limit()
{
	exec 4>$DMA_LATENCY && printf "\\$(printf %o "$1")\\0\\0\\0" >&4 &&
		[ "$(od -An -td4 -N4 $DMA_LATENCY | tr -d ' ')" = "$1" ]
}

# All as the kernel began
restore()
{
	exec 4>&-
	[ -z "$HINT" ] || uclampset -m -1 -p $$ >/dev/null || return
	HINT=
	while read -r began of; do
		# Hybrids refuse any freq_max, also the one that they have
		[ "${of%/freq_max}" != "$of" ] && [ "$(cat "$of")" = "$began" ] && continue
		hold "$began" "$of" || return
	done <$BEGAN
	[ ! -e $FEATURES ] || cmp -s $FEATURES $BEGAN.features ||
		for name in $(cat $BEGAN.features); do
			feature "$name" || return
		done
}

# NAME=VALUE...; what is not named is as the kernel began
settings()
{
	# A governor that begins anew has forgotten the last column's idle times
	for name in $(cat $CPU/cpuidle/available_governors); do
		put "$name" $CPU/cpuidle/current_governor
	done
	restore || { echo "is not as the kernel began"; return 1; }
	for set; do
		value=${set#*=}
		case $set in
		governor=*)	hold "$value" $CPU/cpufreq/policy[0-9]*/scaling_governor ;;
		idle=)		;;
		idle=*)		hold "$value" $CPU/cpuidle/current_governor ;;
		status=*)	hold "$value" $CPU/intel_pstate/status ;;
		freq_max=*)	hold "$value" /sys/module/aperfmperf/parameters/freq_max ;;
		idle_poll=*)	hold "$value" /sys/module/umwait/parameters/idle_poll ;;
		feature=*)	feature "$value" ;;
		states=*)	states "$value" ;;
		shallower=*)	shallower "$value" ;;
		limit=*)	limit "$value" ;;
		hint=*)		HINT=$value; uclampset -m "$value" -p $$ >/dev/null ;;
		*)		false ;;
		esac || { echo "$set does not hold"; return 1; }
	done
	# A CPU that sleeps stays in a state that is no longer there until it wakes
	vs-load -c all -t 0.01
	sleep 0.5
}

# n=4,w=60 as handovers takes it
options()
{
	echo ",$1" | sed 's/,\([a-z]\)=/ -\1 /g'
}

# A task that becomes busy, as vs-rise takes it; how long its clock stays then
task()
{
	case $1 in
	behind,*)	echo "-m new -p ${1#*,}" ;;
	step|return|new)	echo "-m $1 -f" ;;
	*)		echo "-m new -a $1 -f" ;;
	esac
}

# KIND,LIMIT SEED as requests takes them
service()
{
	case $1 in
	pool,*)	echo "4 25 250 $2" ;;
	*)	echo "1 150 250 $2 6000" ;;
	esac
}

# GROUP PERCENT[,SAVED]: of a CPU in each 100 ms, beside what it has saved up
quota()
{
	group=$CGROUPS/$1 burst=0
	grep -q " $CGROUPS cgroup2 " /proc/mounts || mount -t cgroup2 none $CGROUPS || return
	echo +cpu >"${group%/*}/cgroup.subtree_control" && mkdir -p "$group" || return
	case $2 in
	max)	max=max ;;
	*,*)	max=${2%,*}000 burst=${2#*,}000 ;;
	*)	max=${2}000 ;;
	esac
	hold 0 "$group/cpu.max.burst" && hold "$max 100000" "$group/cpu.max" &&
		hold $burst "$group/cpu.max.burst"
}

# GROUP PERCENT[-PERCENT]... COMMAND...: in a group with that quota, for 3.3 s each
within()
{
	quota "$1" "${2%%-*}" || return
	for next in $(echo "$2" | tr - ' ' | cut -s -d ' ' -f 2-); do
		sleep 3.3
		quota "$1" "$next" || return
	done &
	in=$1
	shift 2
	sh -c "echo \$\$ >$CGROUPS/$in/cgroup.procs && exec $*" && wait $!
}

# KIND,PERCENT SEED: a load, while another one is in its group, in the next one, or on its CPU
beside()
{
	percent=${1#*,}
	quota limited max || return		# one of them mounts
	case $1 in
	heap,*)		within limited "$percent" vs-load -t 99 -p 400000 -w $((48 / $(nproc))) & ;;
	nested,*)	quota outer "$percent" || return
			within outer/other 20 requests 1 150 999 "$2" 6000 & ;;
	*,none)		within limited max sleep 99 & ;;
	light,*)	within limited "$percent" vs-load -c 1 -t 99 & ;;
	esac
	other=$!
	case $1 in
	heap,*)		within limited "$percent" stopwatch requests 16 10 60 "$2" ;;
	nested,*)	within outer/one 20 stopwatch requests 1 150 250 "$2" 6000 ;;
	light,*)	stopwatch taskset -c 1 requests 1 100 250 "$2" 4000 ;;
	esac && kill -9 $other && put 1 $CGROUPS/*/cgroup.kill && wait 2>/dev/null
}

# Work of all CPUs in 1 s, as vs-load prints it
total()
{
	awk '{ sum += $4 } END { print sum }' $OUTPUT >$OUTPUT.sum
	mv $OUTPUT.sum $OUTPUT
}

# KIND,MS,PERIOD,S as guest-load takes it
periods()
{
	echo "$1" | awk -F, '{ print $1, "0,1,2,3", $4, $2, $3 }'
}

# poll, handover as c02-load takes it
spell()
{
	case $1 in
	poll)	echo "-t 30 -n 1000 poll" ;;
	*)	echo "-t 30 -n 10 $1" ;;
	esac
}

# timer, signal as vs-wake takes it
woken()
{
	case $1 in
	timer)	echo "-m timer -i -c 1 -n 150 -w 50 -x 300" ;;
	*)	echo "-m $1 -c 1 -k 0 -n 100 -w 50 -x 300" ;;
	esac
}

# NAME...: numbers of the lines that begin so, in one line
pick()
{
	for name; do
		sed -n "s/^$name //p" $OUTPUT
	done >$OUTPUT.picked
	tr '\n' ' ' <$OUTPUT.picked >$OUTPUT
}

# Median and 99th percentile of a number a line
ranks()
{
	sort -n $OUTPUT | awk '{ n[NR - 1] = $1 }
		END { if (NR) print n[int(NR / 2)], n[int(NR * 99 / 100)] }' >$OUTPUT.ranks
	mv $OUTPUT.ranks $OUTPUT
}

# above, below, ns that tasks waited, and in how many waits, so far
counters()
{
	awk 'FILENAME ~ /above$/ { above += $1 } FILENAME ~ /below$/ { below += $1 }
		/^cpu/ { ns += $9; n += $10 }
		END { printf "%.0f %.0f %.0f %.0f\n", above, below, ns, n }' \
		$CPU/cpu[0-9]*/cpuidle/state*/above $CPU/cpu[0-9]*/cpuidle/state*/below \
		/proc/schedstat
}

changes()
{
	awk '/write_msr:/ {
			match($0, /\[[0-9]+\]/); c = substr($0, RSTART, RLENGTH) $(NF - 2)
			if (c in set && set[c] != $NF) n++
			set[c] = $NF
		} END { print n + 0 }' $TRACING/trace
}

# $1: load, $2: parameter, $3: seed, $4: how many numbers it prints itself, $5: shell
cell()
{
	N=$2 SEED=$3
	rm -f $OUTPUT
	# This interrupts all CPUs.
	: >$TRACING/trace
	echo 1 >$TRACING/events/msr/write_msr/enable
	# What is left of the last load's utilisation is not to be the next one's, and each
	# seed meets ticks at another phase.
	sleep "0.2$(printf %03d $(($3 * 137 % 997)))"
	# A group remembers that it was throttled.
	rmdir $CGROUPS/*/*/ $CGROUPS/*/ 2>/dev/null
	before=$(counters)
	took=$(eval "$5" 2>&1)
	status=$?
	after=$(counters)
	echo 0 >$TRACING/events/msr/write_msr/enable
	echo "cell $1 ${2:--} $3 $status $took $(changes) $(echo "$before $after" |
		awk '{ for (i = 1; i <= 4; i++) printf "%.0f ", $(i + 4) - $i }')" \
		"$([ "$4" = 0 ] || tail -n 1 $OUTPUT 2>/dev/null)"
	[ $status = 0 ] || tail -n 5 $OUTPUT 2>/dev/null
}
