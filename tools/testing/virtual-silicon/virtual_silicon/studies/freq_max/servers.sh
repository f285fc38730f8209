# SPDX-License-Identifier: GPL-2.0
# Sourced in the guest by servers.py. "loads" prints a line per load, after those of the bench:
#
#	load NAME SEED SECONDS JOULES BYTES APERF MPERF [MEAN_US P99_US]
. /usr/lib/vs/bench.sh

# Until what stopwatch left on the CPUs that it read has decayed: new tasks begin with it
REST="sleep 0.3; exec requests"

# $1: load, $2: seed, $3: CPUs
run()
{
	size=$3
	case $1 in
	*-few)	size=4 ;;
	*-half)	size=$(($3 / 2)) ;;
	esac
	case $1 in
	gitsource)	stopwatch sh "$SCRIPTS/gitsource.sh" 4 ;;
	kernbench-*)	sh "$SCRIPTS/kernbench.sh" new "$2" "$size"
			stopwatch sh "$SCRIPTS/kernbench.sh" make "$size" ;;
	# A client and its server take turns.
	tbench-*)	stopwatch -f $((5000000 * size / 2)) -b $((5000000 * size / 2)) \
				tbench -c /usr/share/dbench/client.txt -t 9 $((size / 2)) 127.0.0.1 ;;
	requests-few)	stopwatch sh -c "$REST 4 600 200 $2" ;;
	requests-half)	stopwatch sh -c "$REST $3 300 100 $2" ;;
	requests-full)	stopwatch sh -c "$REST $3 600 200 $2" ;;
	esac
}

# $1: loads, $2: seeds
loads()
{
	for seed in $(seq "$2"); do
		for load in $1; do
			sleep "0.2$(printf %03d $((seed * 137 % 997)))"
			said=$(run "$load" "$seed" "$(nproc)" 2>&1) || tail -n 5 /tmp/output
			case $load in
			requests-*)	said="$said $(cat /tmp/output)" ;;
			esac
			echo "load $load $seed $said"
		done
	done
}
