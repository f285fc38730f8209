# SPDX-License-Identifier: GPL-2.0
# Loads for a guest: what each takes, and what the hooks of schedutil do meanwhile.
#
#	cd tools/testing/virtual-silicon
#	python3 -m vsilicon run --kernel patched --time deterministic \
#		--append intel_pstate=passive \
#		--cmd "$(cat ../schedutil-sim/guest-loads.sh)"

COUNTS=/sys/kernel/debug/schedutil
echo 1 >$COUNTS/counting

# Sums over all policies
show()
{
	awk '{ n[$1] += $2 } END { print n["calls"], n["computed"], n["sent"], n["held"] }' \
		$COUNTS/policy*
}

# $1: name, then a command
m()
{
	echo "== $1"
	shift
	before=$(show)
	"$@"
	echo "$before $(show)" |
		awk '{ print "calls", $5 - $1, "computed", $6 - $2, "sent", $7 - $3, "held", $8 - $4 }'
}

m hackbench sh -c 'for i in 1 2 3 4 5; do hackbench -g 2 -l 100 | grep Time; done'
m pipe sh -c 'for i in 1 2 3; do hackbench -p -g 1 -f 1 -l 50000 | grep Time; done'
m cyclic-100us sh -c 'cyclictest -q -t 4 -a -i 100 -d 0 -l 2000 | grep ^T'
m cyclic-1ms sh -c 'cyclictest -q -t 4 -a -i 1000 -d 0 -l 500 | grep ^T'
m cyclic-10ms sh -c 'cyclictest -q -t 4 -a -i 10000 -d 0 -l 100 | grep ^T'
m cyclic-100us-rt sh -c 'cyclictest -q -t 4 -a -p 50 -i 100 -d 0 -l 2000 | grep ^T'
m cyclic-1ms-rt sh -c 'cyclictest -q -t 4 -a -p 50 -i 1000 -d 0 -l 500 | grep ^T'
m cyclic-10ms-rt sh -c 'cyclictest -q -t 4 -a -p 50 -i 10000 -d 0 -l 100 | grep ^T'
m churn sh -c 'cut -d" " -f1 /proc/uptime
	for r in $(seq 20); do
		for i in $(seq 16); do
			(i=0; while [ $i -lt 40 ]; do i=$((i + 1)); done) &
		done
		wait
	done
	cut -d" " -f1 /proc/uptime'

# Random lengths of work and of sleep on one CPU, in ms
BURSTS='40:17 48:23 51:45 54:48 42:60 34:2 54:30 50:16 42:4 58:11
	8:24 31:56 16:25 35:7 37:16 1:47 14:27 18:12 59:56 50:25
	11:49 52:5 9:40 40:29 9:9 1:56 1:14 50:14 11:56 11:19
	21:13 35:57 44:41 14:12 45:13 58:25 20:2 24:27 11:60 10:17'
bursts()
{
	for b in $BURSTS; do
		vs-load -c 1 -t $(printf 0.%03d ${b%:*}) >/dev/null
		sleep $(printf 0.%03d ${b#*:})
	done
}
m bursts bursts
dmesg | grep -E "WARN|BUG|Call Trace"
