# SPDX-License-Identifier: GPL-2.0
# Sourced by jobs.  What a job has to say goes to descriptor 3 in sections:
#
#	vs:begin NAME
#	any lines
#	vs:end NAME STATUS
#
# step NAME COMMAND...: runs the command; its output is the section
step()
{
	_name=$1
	shift
	echo "vs:begin $_name" >&3
	"$@" >&3 2>&1
	_status=$?
	# A line of its own even if the output does not end in one
	printf '\nvs:end %s %s\n' "$_name" "$_status" >&3
	return $_status
}

# put VALUE FILE...: writes a value into each file
put()
{
	_value=$1
	shift
	for _file; do
		echo "$_value" >"$_file" || return 1
	done
}

# pairs 1|0: the scheduler's feature PAIRS, in kernels that have it
pairs()
{
	_file=/sys/kernel/debug/sched/features
	! grep -q PAIRS $_file 2>/dev/null || put "$([ "$1" = 1 ] || echo NO_)PAIRS" $_file
}

CPU=/sys/devices/system/cpu

# only STATES [CPU]: the idle states that are to be used, by name, on one CPU or on all;
# the others are disabled
only()
{
	_found=1
	for _dir in $CPU/cpu${2:-[0-9]*}/cpuidle/state*; do
		read -r _state <"$_dir/name"
		case " $1 " in
		*" $_state "*)	put 0 "$_dir/disable" && _found=0 ;;
		*)		put 1 "$_dir/disable" ;;
		esac || return
	done
	[ $_found = 0 ] || echo "no idle state $1"
	return $_found
}

# dump FILE...: "file:value" for each line of each readable file
dump()
{
	grep -s -H '' "$@" 2>/dev/null
	return 0
}

dump_cpufreq()
{
	dump $CPU/cpu[0-9]*/cpufreq/[a-z]*_[a-z]* $CPU/intel_pstate/* $CPU/cpufreq/boost
}

dump_cpuidle()
{
	for _key in name desc disable latency residency usage time above below; do
		dump $CPU/cpu[0-9]*/cpuidle/state[0-9]*/$_key
	done
}

# names of the powercap zones
dump_zones()
{
	dump /sys/class/powercap/intel-rapl:*/name
}
