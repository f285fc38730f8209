#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Run by systemd in the installed system (virtual_silicon/studies/installed.py), once in each
# boot. What is to be done in this one is in /root/stage; the answers go to the second
# serial port, as those of guests without a disk do.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive HOME=/root TERM=dumb
stty -F /dev/ttyS1 raw -echo
exec 3>/dev/ttyS1
. /usr/lib/vs/guest.sh
echo "vs:ready $(cut -d' ' -f1 /proc/uptime)" >&3
stage=$(cat /root/stage)
status=0

try()
{
	step "$@" || status=1
}

# The clients as people run them; each has to end well and to say what it is for.
clients()
{
	modprobe msr; modprobe intel_rapl_msr
	try turbostat turbostat -q -n 1 -i 2
	try turbostat-x86dvfs turbostat-x86dvfs -q -n 1 -i 2
	# 1: it has found something
	try cpuwhy-doctor sh -c 'cpuwhy doctor || [ $? = 1 ]'
	try cpuwhy-idle cpuwhy idle --record 2
	try cpupower-frequency cpupower frequency-info
	try cpupower-idle cpupower idle-info
	try perf perf stat -a -e power/energy-pkg/ sleep 1
	# Its other methods take the CPU's model for a promise of AVX-512.
	try stress-ng stress-ng --quiet --cpu 2 --cpu-method int64 --timeout 2
	try irqbalance irqbalance --oneshot
	try powertop sh -c 'cd /tmp && powertop --csv=p.csv --time=2 && grep -c C6 p.csv'
	try tuned sh -c 'systemctl start tuned && tuned-adm profile latency-performance &&
		tuned-adm active'
	before=$(cat $CPU/cpu0/cpuidle/state0/time)
	sleep 5
	after=$(cat $CPU/cpu0/cpuidle/state0/time)
	try polled-us echo $((after - before))
	try tuned-ours sh -c "tuned-adm profile x86-dvfs && tuned-adm verify &&
		grep -H . $CPU/cpu3/cpufreq/scaling_governor $CPU/cpuidle/current_governor"
	try tuned-off tuned-adm off
}

try kernel uname -r
try failed-units sh -c 'systemctl --failed --no-legend --plain; true'
try governor cat $CPU/cpu0/cpufreq/scaling_governor
try driver cat $CPU/cpu0/cpufreq/scaling_driver
try idle-governor cat $CPU/cpuidle/current_governor
try idle-states dump $CPU/cpu0/cpuidle/state*/name
case $stage in
install)
	try install sh -c 'apt-get -q install --yes --no-install-recommends /root/packages/*.deb'
	try settings cp /usr/share/doc/x86-dvfs-tools/examples/tmpfiles.conf \
		/etc/tmpfiles.d/x86-dvfs.conf
	echo installed >/root/stage
	;;
installed)
	try invariance cat /sys/module/aperfmperf/parameters/freq_max
	try tune grep -H . $CPU/cpufreq/schedutil/*
	clients
	try remove sh -c 'apt-get -q remove --yes $(dpkg-query -W -f "\${Package}\n" "linux-*-x86dvfs*")'
	echo removed >/root/stage
	;;
removed)
	try left sh -c 'ls /boot /lib/modules; dpkg -l | grep -c "^ii.*x86dvfs"; true'
	;;
esac
try dmesg dmesg
echo "vs:exit $status" >&3
sync
systemctl poweroff
