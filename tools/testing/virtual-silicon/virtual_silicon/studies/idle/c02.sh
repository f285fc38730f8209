# SPDX-License-Identifier: GPL-2.0
# What c02.py runs in the guest, after guest.sh.

# $1: latency limit in us, or nothing
limit()
{
	exec 4>&-
	[ -z "$1" ] && return
	exec 4>/dev/cpu_dma_latency
	printf "\\$(printf %o "$1")\\0\\0\\0" >&4
}

# $1: governor, $2: limit, $3: what polling loops do, $4...: states allowed; all if none
under()
{
	put $1 $CPU/cpuidle/current_governor
	limit "$2"
	[ ! -e /sys/module/umwait/parameters/idle_poll ] ||
		put $3 /sys/module/umwait/parameters/idle_poll
	shift 3
	if [ -n "$*" ]; then
		only "$*"
	else
		put 0 $CPU/cpu[0-9]*/cpuidle/state*/disable
	fi
	sleep 0.02
}

# One repetition of all loads: lines with the load before them
loads()
{
	c02-load -t 60 idle | sed 's/^/idle /'
	c02-load -t 30 -n 1000 poll | sed 's/^/poll /'
	c02-load -t 30 -n 10 handover | sed 's/^/handover /'
	vs-wake -m timer -i -c 1 -n 150 -w 50 -x 300 | sed 's/^/irq ns /'
	vs-wake -m signal -c 1 -k 0 -n 100 -w 50 -x 300 | sed 's/^/signal ns /'
}
