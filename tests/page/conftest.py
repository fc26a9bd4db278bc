"""One browser for all tests of this folder, and nodes with something to show."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.page.ground import Ground, HostileWords, Words, bare, empty, told
from tests.support.chromium import Visitor, launched
from tests.support.node import Node
from tests.support.skewed_clock import HOUR, SkewedNode

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Grounds = Callable[[str], Ground]
Visits = Callable[[Ground], Visitor]
TOLD: dict[str, Callable[[Node], Ground]] = {
    "empty": empty,
    "bare": bare,
    "usual": partial(told, words=Words()),
    "hostile": partial(told, words=HostileWords()),
}


# For this folder alone: other tests run event loops, which its thread can't beside the browser.
@pytest.fixture(scope="package")
def browser() -> "Iterator[Browser]":
    with launched() as browser:
        yield browser


@pytest.fixture(scope="package")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grounds]:
    """A node with `empty`, `bare`, `usual` or `hostile` content: don't stop it."""
    made: dict[str, Ground] = {}

    def ground(name: str) -> Ground:
        if name not in made:
            node = Node(tmp_path_factory.mktemp(name), unlimited_senders=True).start()
            made[name] = TOLD[name](node)
        return made[name]

    yield ground
    for each in made.values():
        each.node.stop()
        each.node.http.close()
        assert "Traceback" not in each.node.log, each.node.log[-4000:]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Ground]:
    """A node of this test's own, with one of each thing."""
    with Node(tmp_path, unlimited_senders=True) as node:
        yield bare(node)


@pytest.fixture(scope="package")
def away(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkewedNode]:
    """A node that nobody reads without a key, whose clock tests set forward."""
    folder = tmp_path_factory.mktemp("away")
    with SkewedNode(
        folder,
        at_once=True,
        unlimited_senders=True,
        public_url="http://cacp.example",
        bootstrap_key_file=folder / "bootstrap-key",
        page_session_seconds=3 * HOUR,
        handoff_sla_seconds=1,
    ) as node:
        yield node
        assert "Traceback" not in node.log, node.log[-4000:]


@pytest.fixture(scope="package")
def visitors(browser: "Browser") -> Iterator[dict[str, Visitor]]:
    """Who has looked at the shared nodes, by URL."""
    made: dict[str, Visitor] = {}
    yield made
    for each in made.values():
        each.context.close()


@pytest.fixture
def visitor(browser: "Browser", visitors: dict[str, Visitor]) -> Iterator[Visits]:
    """Somebody who looks at a ground's node, and only looks: all tests share it."""
    used: list[Visitor] = []

    def visit(ground: Ground) -> Visitor:
        url = ground.node.url
        if url not in visitors:
            visitors[url] = Visitor(browser, url)
        used.append(visitors[url])
        return visitors[url]

    yield visit
    for each in used:
        each.check()


@pytest.fixture
def guest(browser: "Browser", own: Ground) -> Iterator[Visitor]:
    """Somebody who looks at this test's own node."""
    with Visitor(browser, own.node.url) as guest:
        yield guest
