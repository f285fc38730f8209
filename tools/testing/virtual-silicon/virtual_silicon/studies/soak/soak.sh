# SPDX-License-Identifier: GPL-2.0
# A day of a machine with all of the series switched on, in the guest's shell. Each minute brings
# some work, every ten minutes change all that users can; soak.faults breaks the CPU each half
# hour. Prints a line an hour, and ends with 1 where something is not as it has to be. Shorter:
# --cmd "HOURS=2; $(cat virtual_silicon/studies/soak/soak.sh)".
#
#	python3 -m virtual_silicon run --cpus 2 --time deterministic --compact \
#		--append "intel_pstate=passive cpuidle.governor=teo umwait.idle_poll=c02" \
#		--faults virtual_silicon/studies/soak/soak.faults --limit 14400 --cmd "$(cat virtual_silicon/studies/soak/soak.sh)"

. /usr/lib/vs/guest.sh
FREQ_MAX=/sys/module/aperfmperf/parameters/freq_max

must()
{
	"$@" || { echo "$* failed"; exit 1; }
}

work()
{
	vs-load -c all -t 0.01 -d 40 -p 2000 >/dev/null && hackbench -g 1 -f 2 -l 4 >/dev/null ||
		{ echo "work failed"; exit 1; }
}

# $1: number of the change
change()
{
	must put "$(echo nominal 1c 4c 255c | cut -d' ' -f$(($1 % 4 + 1)))" $FREQ_MAX
	must put $(($1 % 2)) $CPU/cpu1/online
	must put performance $CPU/cpufreq/policy0/scaling_governor
	must put 1 $CPU/cpu1/online
	must put schedutil $CPU/cpufreq/policy*/scaling_governor
	must put $(($1 % 5 * 500)) $CPU/cpufreq/schedutil/rate_limit_us
	must put "$(echo teo menu ladder | cut -d' ' -f$(($1 % 3 + 1)))" $CPU/cpuidle/current_governor
	must put "$(echo off c02 | cut -d' ' -f$(($1 % 2 + 1)))" /sys/module/umwait/parameters/idle_poll
	work
	must put teo $CPU/cpuidle/current_governor
}

hour=0 minute=0
while [ $hour -lt "${HOURS:-24}" ]; do
	sleep 60
	work
	minute=$((minute + 1))
	[ $((minute % 10)) = 0 ] && change $((minute / 10))
	[ $((minute % 60)) = 0 ] || continue
	hour=$((hour + 1))
	[ "$(cat $FREQ_MAX)" != off ] || { echo "invariance is off"; exit 1; }
	echo "hour $hour: $(cut -d' ' -f1 /proc/uptime) s, skipped samples" \
		$(sed -n 's/^cpu.* skipped //p' /sys/kernel/debug/x86/freq_invariance)
	# Not to the end of the day: what it says is an answer of this minute
	echo "hour $hour" >/dev/ttyS0
	[ -z "$(dmesg | grep -E 'WARNING|BUG|Oops|stall|hung|wobbly')" ] ||
		{ dmesg | tail -n 30; exit 1; }
done
must put 4c $FREQ_MAX
must put 500 $CPU/cpufreq/schedutil/rate_limit_us
/selftests/freq_invariance/frequency 1 && /selftests/freq_invariance/ratio
