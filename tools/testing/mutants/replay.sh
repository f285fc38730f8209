#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Builds the replay of a tree and runs some of its tests: replay.sh TREE TOP TEST [OPTION]...
# Exit status 1: a test failed; 2: it does not compile, or there is no base (make replay).
tree=$1 top=$2
shift 2
cd "$tree/tools/testing/cpuidle-replay/tests" || exit 2
mkdir -p "$tree/out"
ln -sfn "$top/build/replay/base" "$tree/out/base"
make -s -j2 -C .. OUT="$tree/out" KSRC="$tree/out/base" CFLAGS='-O1 -g' WARN=-w KWARN=-w || exit 2
GOVERNOR_REPLAY=$tree/out/governor-replay PYTHONPATH=.. exec \
	"${PYTHON:-python3}" -m pytest -q -x -p no:cacheprovider -c /dev/null "$@"
