# SPDX-License-Identifier: GPL-2.0
"""Shared by the tests: guests that are booted once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from guests import Guests
from virtual_silicon import paths
from virtual_silicon.guest.boot import Result


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--qemu", help="emulator (default: the built one)")
    parser.addoption("--base-kernel", default="base", help="base kernel image")
    parser.addoption("--patched-kernel", default="patched", help="patched kernel image")
    parser.addoption("--jobs", type=int, default=2, help="guests booted at a time")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "boots(scenario...): guests the test needs")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Starts every guest that some collected test will want, in that order."""
    config = session.config
    if config.option.collectonly:
        return
    guests = Guests(config.getoption("--qemu"), config.getoption("--base-kernel"),
                    config.getoption("--patched-kernel"), paths.BUILD / "test",
                    config.getoption("--jobs"))
    config.stash[GUESTS] = guests
    for item in session.items:
        for marker in item.iter_markers("boots"):
            for name in marker.args:
                guests.want(name)


GUESTS = pytest.StashKey[Guests]()


@pytest.fixture(scope="session")
def guests(request: pytest.FixtureRequest) -> Iterator[Guests]:
    """Results of the boots; a failed boot fails each test that needs it."""
    pool = request.config.stash[GUESTS]
    yield pool
    pool.close()


@pytest.fixture
def result(request: pytest.FixtureRequest, guests: Guests) -> Result:
    """Of the one guest that the test boots."""
    mark = request.node.get_closest_marker("boots")
    assert mark, "a test that takes a result is marked with its guest"
    name, = mark.args
    return guests.get(name)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if GUESTS in session.config.stash:
        session.config.stash[GUESTS].close()
