# SPDX-License-Identifier: GPL-2.0
"""Where the base comes from, and a cache that notices damage."""
from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest
from virtual_silicon.errors import Fail

from .. import git, paths, targets
from ..fetch import aptget, base, cache
from ..patchqueue import releases
from ..patchqueue import tree as trees
from .conftest import MAKEFILE


def pack(place, suffix: str) -> Path:
    target = place.source.with_name(f"linux-6.12.99.tar{suffix}")
    subprocess.run(["tar", "-caf", target, "-C", place.source.parent, place.source.name],
                   check=True)
    return target


@pytest.mark.parametrize("suffix", ["", ".xz", ".gz", ".bz2"])
def test_tarball_and_directory_give_the_same_tree(place, suffix):
    trees = [git.run("rev-parse", "base^{tree}", repo=base.from_path(p).repo())
             for p in (place.source, pack(place, suffix))]
    assert trees[0] == trees[1]


@pytest.mark.parametrize("form", ["directory", "tarball"])
def test_other_version_is_refused(place, form):
    (place.source / "Makefile").write_text(MAKEFILE.replace("12", "18"))
    source = place.source if form == "directory" else pack(place, ".xz")
    with pytest.raises(Fail, match=r"the base is Linux 6.18.99; .* 6.12.x \(BASE=6.18 says"):
        base.from_path(source).repo()


@pytest.mark.parametrize("makefile", [None, "all:\n\ttrue\n"])
def test_no_kernel_source(place, makefile):
    (place.source / "Makefile").unlink()
    if makefile:
        (place.source / "Makefile").write_text(makefile)
    for source in (place.source, pack(place, ".gz")):
        with pytest.raises(Fail, match="no kernel source"):
            base.from_path(source).repo()


def test_absent_source(tmp_path, monkeypatch):
    monkeypatch.setenv("KSRC", str(tmp_path / "nowhere"))
    with pytest.raises(Fail, match="neither a tarball nor a directory"):
        base.choose()


def test_cut_off_tarball(place, cache_of_its_own):
    tarball = pack(place, ".xz")
    tarball.write_bytes(tarball.read_bytes()[:-60])
    with pytest.raises(Fail, match="or a damaged one"):
        base.from_path(tarball).repo()
    assert not [p for p in cache_of_its_own.glob("base-*") if not p.name.endswith(".part")]


def test_not_an_archive(tmp_path):
    (tmp_path / "x.tar.xz").write_text("hello")
    with pytest.raises(Fail, match="no tar archive"):
        base.from_path(tmp_path / "x.tar.xz").repo()


def test_new_files_are_seen_in_debians_source(place):
    (place.source / ".gitignore").write_text("*.o\n/*\n!/debian/\n")
    place.make()
    (place.tree.path / "lib/added.c").touch()
    assert trees.uncommitted(place.tree) == ["lib/added.c"]


def test_damaged_cache_is_made_again(place, capsys):
    repo = place.base().repo()
    tree = git.run("rev-parse", "base^{tree}", repo=repo)
    victim = next(repo.glob("objects/pack/*.pack"))
    victim.chmod(0o644)
    victim.write_bytes(victim.read_bytes()[:-10])
    assert git.run("rev-parse", "base^{tree}", repo=place.base().repo()) == tree
    assert "is damaged" in capsys.readouterr().out
    capsys.readouterr()
    place.base().repo()
    assert "importing" not in capsys.readouterr().out


@pytest.mark.parametrize("harm, said", [
    (lambda e: (e / "a").unlink(), "a is missing"),
    (lambda e: (e / "a").write_text("other"), "a has changed"),
    (lambda e: (e / cache.MARKER).unlink(), "list of files"),
    (lambda e: (e / cache.MARKER).write_text("{"), "list of files"),
])
def test_damage_is_noticed(harm, said, capsys):
    made = []

    def make(part):
        made.append(1)
        (part / "a").write_text("content")
        return ["a"]

    entry = cache.get("kind", "0" * 64, make)
    harm(entry)
    assert cache.get("kind", "0" * 64, make) == entry
    assert len(made) == 2 and said in capsys.readouterr().out


def test_interrupted_entry(cache_of_its_own):
    """Not visible, and continued only by a maker that can."""
    def broken(part):
        (part / "half").touch()
        raise KeyboardInterrupt

    def look(part):
        found.append((part / "half").exists())
        (part / "a").touch()
        return ["a"]

    found: list[bool] = []
    for digest, resume in (("1" * 64, True), ("2" * 64, False)):
        with pytest.raises(KeyboardInterrupt):
            cache.get("kind", digest, broken, resume=resume)
        assert not (cache_of_its_own / f"kind-{digest[:16]}").exists()
        cache.get("kind", digest, look, resume=resume)
    assert found == [True, False]


def test_excerpt_is_enough_for_the_series(place):
    wanted = releases.directories(place.series())
    assert wanted == {"kernel", "lib"}
    repo = place.base().excerpt(wanted)
    assert git.blob(repo, "base", "README") is None
    assert releases.check(place.series(), [place.base()]) == [("6.12.99", "")]


def test_release_on_which_a_patch_fails_is_reported(place):
    (place.source / "kernel/numbers.c").write_text("nothing of it\n")
    ((release, reason),) = releases.check(place.series(), [place.base()])
    assert release == "6.12.99" and "0001-kernel.patch does not apply" in reason


@pytest.mark.parametrize("text, derived", [
    ("deb [signed-by=/k] http://m/d b main\n", "deb-src [signed-by=/k] http://m/d b main\n"),
    ("# deb http://m/d b main\ndeb-src http://m/d b main\n",) * 2,
    ("Types: deb\n# why\nURIs: http://m/debian\n", "Types: deb-src\n# why\nURIs: http://m/debian\n"),
])
def test_sources_of_a_sources_file(text, derived):
    assert aptget.sources_of(text) == derived


@pytest.mark.parametrize("text, found", [
    ("deb https://m/tool x main\ndeb [signed-by=/k] https://m/debian b main\n", "https://m/debian"),
    ("URIs: https://m/debian-security/\n\nURIs: https://m/debian/\n", "https://m/debian/"),
    ("# deb http://m/debian b main\n", "http://deb.debian.org/debian"),
])
def test_mirror_of_a_sources_file(text, found):
    assert aptget.mirror(text) == found


def test_offers_are_what_can_be_downloaded():
    shown = ("Package: p\nVersion: 2-1\nSHA256: aa\n\nPackage: p\nVersion: 2-1\nSHA256: aa\n\n"
             "Package: p\nVersion: 1-1\nSHA256: bb\n\n"
             "Package: p\nStatus: installed\nVersion: 0-1\n")
    assert [(o.version, o.sha256) for o in aptget.parse_offers("p", shown)] == [
        ("2-1", "aa"), ("1-1", "bb")]


@pytest.mark.parametrize("asked, version, directory", [
    ("", "6.12", "build"), ("6.12.117", "6.12", "build"), ("7.3", "7.3", "build/7.3"),
    ("7.3.4", "7.3", "build/7.3"), ("7.3.4-1~bpo13+1", "7.3", "build/7.3"),
    ("7.3~rc7-1~exp1", "7.3", "build/7.3"), ("7", "6.12", "build"), ("../7.3", "6.12", "build"),
    ("7.3/..", "6.12", "build"),
])
def test_newer_base_has_its_own_directory(asked, version, directory):
    assert paths.version_of(asked) == version
    assert paths.shown(paths.build_of(version)) == directory


@pytest.fixture
def offered(monkeypatch):
    """apt's offers: {package: versions}, from backports if we name them."""
    monkeypatch.setattr(base, "WANTED", "7.3")
    monkeypatch.setattr(aptget, "backports", lambda update=False: ("-o", "backports"))
    monkeypatch.setattr(aptget, "versions", lambda package: ["7.2", "6.12"])

    def there(*versions, machine=()):
        monkeypatch.setattr(aptget, "offers", lambda package, options=(): [
            aptget.Offer(package, v, "0", options) for v in (versions if options else machine)])
    return there


@pytest.mark.parametrize("asked", ["7.3", "7.3.4", "7.3.4-1~bpo13+1"])
def test_newer_base_is_of_backports(offered, monkeypatch, asked):
    monkeypatch.setenv("BASE", asked)
    offered("7.3.5-1", "7.3.4-1~bpo13+1")
    found = base.choose().offer
    assert found
    assert (found.release, found.options) == (
        "7.3.5" if asked == "7.3" else "7.3.4", ("-o", "backports"))


def test_configuration_of_newer_base_is_of_backports(offered):
    offered("7.3.5-1")
    assert base.offers("linux-config-7.3")[0].options == ("-o", "backports")
    assert base.offers("linux-config-6.12", "6.12") == []


def test_machine_that_has_the_newer_base_needs_no_backports(offered, monkeypatch):
    monkeypatch.setenv("BASE", "7.3")
    offered("7.3.5-1", machine=["7.3.4-1"])
    found = base.choose().offer
    assert found and found.options == ()


@pytest.mark.parametrize("there, said", [
    (["7.3.5-1"], r"BASE=7.3.4: not on offer; there are 7.3.5 \("),
    ([], r"BASE=7.3.4: not on offer; there are 7.2, 6.12 \("),
])
def test_base_that_is_not_on_offer(offered, monkeypatch, there, said):
    monkeypatch.setenv("BASE", "7.3.4")
    offered(*there)
    with pytest.raises(Fail, match=said):
        base.choose()


@pytest.mark.parametrize("target, refused", [("mutants", True), ("stick", True), ("deb", False),
                                             ("run", False)])
def test_target_that_cannot_take_a_newer_base(monkeypatch, target, refused):
    monkeypatch.setenv("BASE", "7.3")
    monkeypatch.setattr(paths, "BASE_VERSION", "7.3")
    tried = dataclasses.replace(targets.TARGETS[target], needs=(), first=lambda: None,
                                then=lambda: 0)
    if not refused:
        assert tried.make() == 0
        return
    with pytest.raises(Fail, match=r"^BASE=7.3: this is for 6.12 alone; another .* run, "):
        tried.make()


def test_offer_knows_its_release():
    assert aptget.Offer("p", "6.12.117-1~deb12u1", "0").release == "6.12.117"
    assert aptget.Offer("p", "1:7.2+dfsg-7+deb12u18", "0").release == "7.2+dfsg"
