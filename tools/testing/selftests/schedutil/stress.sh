#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# All changes that users can make to schedutil, at once and under loads: tunables are read
# and written, governors and limits change, a CPU goes off and on. The kernel must stay
# silent, best with PROVE_LOCKING, DEBUG_ATOMIC_SLEEP or KCSAN, and work afterwards.
# SECONDS_EACH says for how long. Needs root; all changes are undone.

cd "$(dirname "$0")" || exit 1
. ../kselftest/ktap_helpers.sh

CPU=/sys/devices/system/cpu
CPUFREQ=$CPU/cpufreq
SECONDS_EACH=${SECONDS_EACH:-2}

policies=$(grep -lw schedutil $CPUFREQ/policy*/scaling_available_governors 2>/dev/null |
	   xargs -rn 1 dirname)
first=${policies%%[[:space:]]*}
last=$(ls -d $CPU/cpu[0-9]* | sort -V | tail -n 1)

# One of the arguments, another each time; in $word
number=0
turn()
{
	number=$((number + 1))
	shift $((number % $#))
	word=$1
}

tunables()
{
	ls -d $CPUFREQ/schedutil $CPUFREQ/policy*/schedutil 2>/dev/null
}

read_tunables()
{
	for dir in $(tunables); do
		cat "$dir"/*
	done
}

write_tunables()
{
	for dir in $(tunables); do
		turn 0 100 500 2000 20000
		echo "$word" >"$dir/rate_limit_us"
	done
}

switch_governors()
{
	for policy in $policies; do
		turn performance schedutil powersave schedutil
		echo "$word" >"$policy/scaling_governor"
	done
}

change_limits()
{
	turn min max
	for policy in $policies; do
		cat "$policy/cpuinfo_${word}_freq" >"$policy/scaling_max_freq"
	done
}

switch_cpu()
{
	turn 0 1
	echo "$word" >"$last/online"
	sleep 0.05
}

work_a_little()
{
	seq 300
	sleep 0.003
}

work()
{
	seq 100000
}

children=
# $1: what to do again and again
repeat()
{
	(while :; do "$1"; done) >/dev/null 2>&1 &
	children="$children $!"
}

# $1: governor of all policies
choose()
{
	for policy in $policies; do
		echo "$1" >"$policy/scaling_governor" || return
	done
}

# A new start gives the tunables their defaults.
works_afterwards()
{
	choose performance && choose schedutil || return
	for file in $(tunables | sed 's,$,/rate_limit_us,'); do
		default=$(cat "$file")
		echo 700 >"$file" && [ "$(cat "$file")" = 700 ] && echo "$default" >"$file" ||
			return
	done
}

# KCSAN finds races everywhere: those of the governor count.
complaints()
{
	dmesg | sed '/KCSAN:/{/sugov\|pair\|gov_attr\|governor/!d}' |
		grep -E "WARNING:|BUG:|Oops|INFO: .*(lock|task)|suspicious RCU"
}

ktap_print_header
if [ "$(id -u)" != 0 ] || [ -z "$policies" ]; then
	ktap_skip_all "needs root and a policy that can have schedutil"
	exit "$KSFT_SKIP"
fi

ktap_set_plan 2
governor=$(cat "$first/scaling_governor")
before=$(complaints | wc -l)
choose schedutil
for what in read_tunables write_tunables switch_governors change_limits switch_cpu \
	    work_a_little work_a_little work; do
	repeat $what
done
sleep "$SECONDS_EACH"
kill $children 2>/dev/null
wait $children 2>/dev/null

echo 1 2>/dev/null >"$last/online"
for policy in $policies; do
	cat "$policy/cpuinfo_max_freq" >"$policy/scaling_max_freq"
done
ktap_test_result "it works afterwards" works_afterwards
choose "$governor"
complaints | tail -n +$((before + 1)) | sed 's/^/# /'
ktap_test_result "the kernel stays silent" [ "$(complaints | wc -l)" = "$before" ]
ktap_finished
