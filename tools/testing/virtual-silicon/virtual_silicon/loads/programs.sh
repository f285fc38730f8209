# SPDX-License-Identifier: GPL-2.0
# Programs as loads: sourced in the guest by cells.sh, on real machines by itself.

OUTPUT=/tmp/output	# of stopwatch's command
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

# The load file's first lines once per client: none survives the last, a write beyond the limit.
# $1: clients
dbench_once()
{
	rm -rf /tmp/clients
	head -n 6000 /usr/share/dbench/client.txt >/tmp/dbench.txt
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
	$PG/pgbench -h /tmp -U postgres $1 -t 1 postgres >$OUTPUT 2>&1
	stopwatch -n $(($2 * $3)) $PG/pgbench -h /tmp -U postgres -n $1 -t "$2" -c "$3" -j "$3" \
		--random-seed="$4" postgres
}

# 16 files. $1: jobs, $2: seed
kernbench()
{
	sh "$SCRIPTS/kernbench.sh" new "$2" 16 && stopwatch sh "$SCRIPTS/kernbench.sh" make "$1"
}

# Of all threads of cyclictest
lateness()
{
	sed -n 's/.*Avg: *\([0-9]*\).*/\1/p' $OUTPUT | awk '{ s += $1 } END { print s / NR }' >$OUTPUT.mean
	mv $OUTPUT.mean $OUTPUT
}
