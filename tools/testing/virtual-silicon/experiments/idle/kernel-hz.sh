#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Builds two guest kernels with another HZ: ours, build/idle/patched-HZ/bzImage, and
# the same with the base's teo.c in place of ours, build/idle/base-teo-HZ/bzImage.
# Needs what "make kernel" leaves.
#
#	kernel-hz.sh HZ
set -e

hz=$1
top=$(cd "$(dirname "$0")"/../../../../.. && pwd)
src=$top/build/idle/source
obj=$src/.obj-$hz
teo=drivers/cpuidle/governors/teo.c

# The series as it stands, in a working tree of its own
check_out()
{
	cd "$top/build/linux"
	head=$(git rev-parse HEAD)
	base=$(git rev-list --max-parents=0 HEAD)
	git worktree prune
	[ -e "$src" ] || git worktree add --quiet --detach "$src"
	git -C "$src" checkout --quiet --force --detach "$head"
}

configure()
{
	mkdir -p "$obj"
	sed "s/^CONFIG_HZ_[0-9]*=y/# & is not set/; /^CONFIG_HZ=/d; /CONFIG_HZ_$hz is not set/d" \
		"$top/build/out/patched/config" >"$obj/.config"
	echo "CONFIG_HZ_$hz=y" >>"$obj/.config"
	build olddefconfig
	grep -qx "CONFIG_HZ=$hz" "$obj/.config"
}

build()
{
	make -C "$src" O="$obj" ARCH=x86_64 LOCALVERSION= KBUILD_BUILD_VERSION=1 \
		KBUILD_BUILD_USER=x86-dvfs KBUILD_BUILD_HOST=build \
		KBUILD_BUILD_TIMESTAMP=2026-01-01 -j"${JOBS:-$(nproc)}" "$@" \
		>"$top/build/idle/log-$hz" 2>&1 || { tail -3 "$top/build/idle/log-$hz"; exit 1; }
}

# $1: name of the result
image()
{
	build bzImage
	mkdir -p "$top/build/idle/$1-$hz"
	cp "$obj/arch/x86/boot/bzImage" "$top/build/idle/$1-$hz"
	echo "build/idle/$1-$hz/bzImage"
}

mkdir -p "$top/build/idle"
check_out
configure
image patched
git -C "$src" checkout --quiet "$base" -- "$teo"
image base-teo
git -C "$src" checkout --quiet --force "$head" -- "$teo"
