#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Builds a guest kernel with other options than "make kernel", of which it needs what that
# leaves: build/studies/KIND-NAME/bzImage. KIND is base, patched, or patched with
# the base's file of one governor, base-teo or base-schedutil, or with the teo of Linux 7.3,
# which "make replay TREE=7.3" leaves. Where a build fails, no image is left.
#
#	kernel.sh KIND NAME OPTION=VALUE...
set -e

kind=$1 name=$2
shift 2
top=$(cd "$(dirname "$0")"/../../../../.. && pwd)
out=$top/build/studies
src=$out/source
# Else each change between the two touches headers that all depends on.
[ "$kind" != base ] || src=$src-base
obj=$src/.obj-$kind-$name
log=$out/log-$kind-$name

check_out()
{
	cd "$top/build/linux"
	head=$(git rev-parse HEAD)
	base=$(git rev-list --max-parents=0 HEAD)
	git worktree prune
	[ -e "$src/.git" ] || git worktree add --quiet --detach "$src"
	case $kind in
	base)		git -C "$src" checkout --quiet --force --detach "$base" ;;
	patched)	git -C "$src" checkout --quiet --force --detach "$head" ;;
	base-teo)	git -C "$src" checkout --quiet --force --detach "$head"
			git -C "$src" checkout --quiet "$base" -- drivers/cpuidle/governors/teo.c ;;
	7.3-teo)	git -C "$src" checkout --quiet --force --detach "$head"
			cp "$top"/build/replay/7.3/drivers/cpuidle/governors/teo.c \
				"$top"/build/replay/7.3/drivers/cpuidle/governors/gov.h \
				"$src/drivers/cpuidle/governors" ;;
	base-schedutil)	git -C "$src" checkout --quiet --force --detach "$head"
			git -C "$src" checkout --quiet "$base" -- kernel/sched/cpufreq_schedutil.c ;;
	*)		echo "kernel.sh: $kind: the kind is base, patched, base-teo, 7.3-teo or base-schedutil" >&2
			exit 2 ;;
	esac
}

build()
{
	make -C "$src" O="$obj" ARCH=x86_64 LOCALVERSION= KBUILD_BUILD_VERSION=1 \
		KBUILD_BUILD_USER=x86-dvfs KBUILD_BUILD_HOST=build \
		KBUILD_BUILD_TIMESTAMP=2026-01-01 -j"${JOBS:-$(nproc)}" "$@" \
		>"$log" 2>&1 || { tail -3 "$log"; exit 1; }
}

# Of two lines for an option, and of two of a choice, the last one counts.
configure()
{
	like=patched
	[ "$kind" != base ] || like=base
	cp "$top/build/out/$like/config" "$obj/.config"
	printf 'CONFIG_%s\n' "$@" >>"$obj/.config"
	build olddefconfig
	for option; do
		grep -qx "CONFIG_$option" "$obj/.config" ||
			{ echo "kernel.sh: $option is not what came out" >&2; exit 1; }
	done
}

mkdir -p "$out/$kind-$name"
rm -f "$out/$kind-$name/bzImage"
check_out
mkdir -p "$obj"
configure "$@"
build bzImage
cp "$obj/arch/x86/boot/bzImage" "$out/$kind-$name"
echo "build/studies/$kind-$name/bzImage"
