"""Fixtures on real nodes. One node serves a whole session; each test gets a project of its own."""

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import temp_folder
from tests.support.chromium import chromium
from tests.support.located import ON_POSTGRESQL
from tests.support.mail_agent import MailAgent, MailAgents, agent
from tests.support.mesh import Mesh
from tests.support.node import Node
from tests.support.order import long_first
from tests.support.pushing_node import PushingNode
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team

temp_folder.take()

# What is collected stays: the garbage collector would look through it again and again in vain.
gc.disable()

# A shell starts what runs in the background deaf to SIGINT, and so are all of its children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A slow machine is no failure; on CI the same examples every time. The soak tries more of them.
settings.register_profile("suite", deadline=None, derandomize="CI" in os.environ, max_examples=60)
settings.register_profile("soak", deadline=None)
settings.load_profile("soak" if os.environ.get("TEST_PACE") == "real" else "suite")

HAS = {
    "root": os.geteuid() == 0,
    "node": shutil.which("node") is not None,
    "chromium": chromium() is not None,
    "pgbouncer": shutil.which("pgbouncer") is not None,
    "haproxy": shutil.which("haproxy") is not None,
}


def _is_about_sqlite(item: pytest.Item) -> bool:
    return item.get_closest_marker("sqlite") is not None or item.path.parent.name == "sqlite"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this machine can't show, and what is about the other store; a skipped test is
    one that should have run. Long tests come first."""
    lacking = [
        item
        for item in items
        if any(not HAS[mark.args[0]] for mark in item.iter_markers("needs"))
        or (ON_POSTGRESQL and _is_about_sqlite(item))
    ]
    if lacking:
        config.hook.pytest_deselected(items=lacking)
        items[:] = [item for item in items if item not in lacking]
    if hasattr(config, "workerinput"):
        workers = int(config.workerinput["workercount"])
        items[:] = long_first([(item.path, item) for item in items], workers, config.rootpath)


def pytest_collection_finish() -> None:
    """What is collected stays, so the garbage collector need not go through it at each turn."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Three to a core: most of the time a test waits for the processes that it watches."""
    return (os.cpu_count() or 1) * 3


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A running node that tests share: don't stop it, and leave no key or peer that others mind."""
    with Node(tmp_path_factory.mktemp("node")) as node:
        yield node
        assert "Traceback" not in node.log


@pytest.fixture(scope="session")
def pushing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PushingNode]:
    """A running node whose push channels are on, that tests share as they do `node`."""
    with PushingNode(tmp_path_factory.mktemp("pushing")) as node:
        yield node
        assert "Traceback" not in node.log


@pytest.fixture(scope="session")
def frontend_key(node: Node) -> str:
    """The key of the agent of repo frontend-app."""
    return node.key(FRONTEND_AGENT, FRONTEND)


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[Mesh]:
    """A mesh without nodes; those that are added end with the test."""
    with ExitStack() as stack:
        meshed = Mesh(tmp_path, stack)
        yield meshed
        for node in meshed.nodes.values():
            assert "Traceback" not in node.log, node.log[-4000:]


@pytest.fixture
def team(node: Node, frontend_key: str) -> Team:
    """A fresh project with two repos, each joined by its agent."""
    return Team.on(node, frontend_key)


@pytest.fixture
def post_office(node: Node) -> Node:
    """The node whose agents write to each other; a module may name another."""
    return node


@pytest.fixture
def agents(post_office: Node) -> MailAgents:
    """Makes agents that only this test knows."""
    return partial(agent, post_office)


@pytest.fixture
def anna(agents: MailAgents) -> MailAgent:
    return agents("anna")


@pytest.fixture
def bert(agents: MailAgents) -> MailAgent:
    return agents("bert")
