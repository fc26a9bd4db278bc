"""`cacp mcp --channel`: a session of Claude Code is shown what waits, as it comes."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.mcp_channel import meta_of
from tests.cli.run import ROOT, environment_of
from tests.support.mail_agent import agent
from tests.support.node import Node
from tests.support.waiting import PATIENCE, eventually


class ChannelSession:
    """What Claude Code does with a channel: it shakes hands, and reads events."""

    def __init__(self, node: Node, key: str, log: Path, *words: str) -> None:
        self.log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "cacp_launcher", "mcp", *words],
                env=environment_of(url=node.url, key=key),
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._messages: queue.Queue[Any] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        client = {"name": "claude-code", "version": "2.1.197"}
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        self._send(id=0, method="initialize", params=about)
        self.server: Any = self.next()["result"]
        self._send(method="notifications/initialized")

    def next(self) -> Any:
        return self._messages.get(timeout=PATIENCE)

    def close(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        status = self._process.wait(PATIENCE)
        self._reader.join()
        return status

    def _send(self, **message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._messages.put(json.loads(line))


@pytest.fixture
def new_node(tmp_path: Path) -> Iterator[Node]:
    """A node that the test may kill."""
    with Node(tmp_path) as own:
        yield own


def test_what_comes_is_shown_once_also_after_the_node_was_away(
    new_node: Node, tmp_path: Path
) -> None:
    bert, anna = agent(new_node, "bert"), agent(new_node, "anna")
    first = anna.send(bert)["message"]["id"]
    session = ChannelSession(new_node, bert.key, tmp_path / "log", "--channel")
    assert session.server["capabilities"]["experimental"] == {"claude/channel": {}}
    assert '<channel source="cacp">' in session.server["instructions"]
    event = session.next()
    assert event["method"] == "notifications/claude/channel"
    assert first in event["params"]["content"]
    assert "```untrusted" in event["params"]["content"]
    assert event["params"]["meta"] == {"items": "0", "messages": "1", "urgent": "0"}
    new_node.kill()
    eventually(lambda: "trying again" in session.log.read_text())
    new_node.restart()
    second = anna.send(bert, priority="high")["message"]["id"]
    content = session.next()["params"]["content"]
    assert (second in content, first in content) == (True, False)
    notices = session.log.read_text().splitlines()
    assert len(notices) == 2
    assert notices[1].endswith("answers again")
    assert session.close() == 0


def test_there_is_no_channel_unless_asked_for(node: Node, tmp_path: Path) -> None:
    session = ChannelSession(node, agent(node).key, tmp_path / "log")
    assert "experimental" not in session.server["capabilities"]
    assert "channel" not in session.server["instructions"]
    assert session.close() == 0


def test_attributes_are_texts_by_names_that_are_identifiers() -> None:
    """As Claude Code's schema demands: others are dropped."""
    meta = meta_of({"items": [1, 2], "messages": [], "urgent": 1})
    assert meta == {"items": "2", "messages": "0", "urgent": "1"}
    assert all(name.isidentifier() for name in meta)
