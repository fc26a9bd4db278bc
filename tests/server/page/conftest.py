"""Nodes and browsers for tests of the page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.page.browsing import Browser
from tests.support.node import Node

HUGH = "aid://example.com/hugh"


def behind_tls(folder: Path) -> dict[str, Any]:
    """The settings of a node that others reach."""
    key_file = folder / "bootstrap-key"
    return {"public_url": "https://cacp.example", "bootstrap_key_file": key_file}


@pytest.fixture(scope="package")
def away(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node behind TLS: nobody reads it without a key."""
    folder = tmp_path_factory.mktemp("away")
    with Node(folder, **behind_tls(folder), unlimited_senders=True) as node:
        yield node


@pytest.fixture(scope="package")
def human_key(away: Node) -> str:
    return away.key(HUGH, "", human=True)


@pytest.fixture
def browser(away: Node) -> Browser:
    """A browser in which nobody is signed in."""
    return Browser(away)


@pytest.fixture
def person(browser: Browser, human_key: str) -> Browser:
    """A browser in which a person is signed in."""
    assert browser.sign_in(human_key).status_code == 303
    return browser
