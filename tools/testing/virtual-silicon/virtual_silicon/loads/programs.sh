# SPDX-License-Identifier: GPL-2.0
# Sourced in the guest by the runner; on real machines load() and value() alone. "cell" runs one load and prints a line:
#
#	cell LOAD PARAMETER SEED STATUS UPDATES SECONDS JOULES BYTES APERF MPERF [VALUE]
#
# WORK is how much of a load is done: 4 for the bench, where each lasts for 0.2 s and more.
#
# UPDATES are writes of the registers that ask for a clock. The output of a load that fails
# comes after its line.

FEATURES=/sys/kernel/debug/sched/features
TRACING=/sys/kernel/tracing
WORK=${WORK:-1}
SCRIPTS=${SCRIPTS:-/usr/lib/vs}
DISK=${DISK-LD_PRELOAD=/usr/lib/vs/disk.so}
PG=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)

servers()
{
	tbench_srv >/dev/null 2>&1 &
	iperf3 -s -D
	sleep 0.3
}

# For pgbench. The server refuses to be root; no text search, for that takes seconds to set up.
database()
{
	echo "postgres:x:26:26::/tmp:/bin/sh" >>/etc/passwd
	echo "postgres:x:26:" >>/etc/group
	chmod 1777 /tmp
	touch "$(echo /usr/share/postgresql/*)/snowball_create.sql"
	su postgres -c "LC_ALL=C $PG/initdb -N -A trust -T simple -E SQL_ASCII /tmp/pg" \
		>/tmp/database 2>&1 || return
	su postgres -c "exec env $DISK $PG/postgres -D /tmp/pg -k /tmp -c listen_addresses= \
		-c shared_buffers=32MB -c autovacuum=off" >>/tmp/database 2>&1 &
	sleep 0.5
	$PG/pgbench -h /tmp -U postgres -q -i postgres >>/tmp/database 2>&1
}

# $1: batch
prepare()
{
	echo "msr == 0x199 || msr == 0x774 || msr == 0xc0010062" >$TRACING/events/msr/write_msr/filter
	echo 1 >$TRACING/events/msr/write_msr/enable
	servers
	[ "$1" != pgbench ] || database || { tail -n 5 /tmp/database; return 1; }
}

# Refuses what does not hold. "-" leaves a knob as it is.
# $1: intel_pstate's status, $2: governor, $3: idle governor, $4: freq_max, $5: 1 for chains and
# the choice of CPU, where the kernel has them
setup()
{
	[ "$1" = - ] || put "$1" $CPU/intel_pstate/status || return
	put "$2" $CPU/cpu[0-9]*/cpufreq/scaling_governor || return
	put "$3" $CPU/cpuidle/current_governor || return
	[ "$4" = - ] || put "$4" /sys/module/aperfmperf/parameters/freq_max || return
	chains "$5" || return
	! grep -q SIS_SHALLOW $FEATURES ||
		put "$([ "$5" = 1 ] || echo NO_)SIS_SHALLOW" $FEATURES || return
	sleep 0.5
}

# The load file's first lines once per client: none survives the last, a write beyond the limit.
# $1: clients
dbench_once()
{
	rm -rf /tmp/clients
	head -n $((1500 * WORK)) /usr/share/dbench/client.txt >/tmp/dbench.txt
	printf '%s\n' 'NTCreateX "\clients\client1\end" 0x40 0x2 9999 NT_STATUS_OK' \
		'WriteX 9999 2000000000 1 1 NT_STATUS_OK' >>/tmp/dbench.txt
	# It sleeps for 100 ms before its clients begin.
	(ulimit -f 1000000
	 stopwatch -w 100 env $DISK dbench -c /tmp/dbench.txt -D /tmp -t 9 "$1")
}

# $1: what a transaction is, $2: transactions of each client, $3: clients, $4: seed
pgbench()
{
	# Its vacuum is not measured.
	$PG/pgbench -h /tmp -U postgres $1 -t 1 postgres >/tmp/output 2>&1
	stopwatch -n $(($2 * $3)) $PG/pgbench -h /tmp -U postgres -n $1 -t "$2" -c "$3" -j "$3" \
		--random-seed="$4" postgres
}

# $1: load, $2: its parameter, $3: seed
load()
{
	case $1 in
	tbench)		# What clients do differs from part to part of their file.
			stopwatch -f $((10000000 * $2)) -b $((WORK * 10000000 * $2)) \
				tbench -c /usr/share/dbench/client.txt -t 9 "$2" 127.0.0.1 ;;
	dbench)		dbench_once "$2" ;;
	pgbench-ro)	pgbench -S $((250 * WORK)) "$2" "$3" ;;
	pgbench-rw)	pgbench "" $((10 * WORK)) "$2" "$3" ;;
	netudp)		stopwatch -w 40 -t $((50 * WORK)) iperf3 -c 127.0.0.1 -t 9 -u -b 0 -l "$2" ;;
	nettcp)		stopwatch -w 40 -t $((50 * WORK)) iperf3 -c 127.0.0.1 -t 9 -l "$2" ;;
	hackbench)	stopwatch hackbench -g "$2" -l $((40 * WORK)) ;;
	c02hack)	stopwatch hackbench -s 128 -P -f 3 -g "$2" -l 1000 ;;
	pipe)		stopwatch perf bench sched pipe -l "$2" ;;
	gitsource)	stopwatch sh "$SCRIPTS/gitsource.sh" "$2" ;;
	kernbench)	sh "$SCRIPTS/kernbench.sh" new "$3" $((4 * WORK))
			stopwatch sh "$SCRIPTS/kernbench.sh" make "$2" ;;
	cyclictest)	stopwatch cyclictest -q --default-system -t 2 -a -i "$2" -l 100 ;;
	esac
}

value()
{
	case $1 in
	cyclictest)	sed -n 's/.*Avg: *\([0-9]*\).*/\1/p' /tmp/output | awk '{ s += $1 } END { print s / NR }' ;;
	esac
}

updates()
{
	cat $TRACING/per_cpu/cpu*/stats | awk '$1 == "entries:" || $1 == "overrun:" { n += $2 } END { print n + 0 }'
}

# $1: load, $2: parameter, $3: seed
cell()
{
	# What is left of the last load's utilisation is not to be the next one's, and each
	# seed meets ticks at another phase.
	sleep "0.2$(printf %03d $(($3 * 137 % 997)))"
	echo >$TRACING/trace
	said=$(load "$1" "$2" "$3" 2>&1)
	status=$?
	echo "cell $1 $2 $3 $status $(updates) $said $(value "$1")"
	[ $status = 0 ] || tail -n 5 /tmp/output
}
