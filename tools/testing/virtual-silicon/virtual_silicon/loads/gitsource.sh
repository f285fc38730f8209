#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# Short processes one after the other, as a test suite of git has them. $1: rounds
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
	GIT_COMMITTER_EMAIL=a@b HOME=/tmp
rm -rf /tmp/git
mkdir /tmp/git
cd /tmp/git || exit 1
git init -q . 2>/dev/null || exit 1
for round in $(seq "$1"); do
	mkdir -p "dir$round"
	expr "$round" + 1 >"dir$round/file"
	git add . || exit 1
	git commit -q -m "round $round" || exit 1
	git rev-parse HEAD | grep -q . || exit 1
	git ls-files | wc -l | cat >count
	sed -e "s/^/$round /" count | sort >sorted
	test "$(cat sorted)" = "$round $round" || exit 1
	git diff --quiet HEAD~0 || exit 1
	rm -f count sorted
done
