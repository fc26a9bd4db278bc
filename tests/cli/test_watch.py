"""`cacp watch`: the stream's format, and a real stream over a restart of its node."""

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.watch import ServerSentEvent, lines_of, parse_events
from tests.cli.run import ROOT, cacp, environment_of
from tests.support.node import Node
from tests.support.team import Team
from tests.support.waiting import PATIENCE

STREAM = ": hello\r\nretry: 5\r\n\r\nid: e:1\r\nevent: contract\r\ndata: a\u2028\r\ndata:b\r\n\r\n"


@given(st.lists(st.integers(0, len(STREAM.encode()))))
def test_events_are_the_same_however_the_stream_is_cut(cuts: list[int]) -> None:
    stream = STREAM.encode()
    edges = [0, *sorted(cuts), len(stream)]
    chunks = [stream[a:b] for a, b in pairwise(edges)]
    assert list(parse_events(lines_of(chunks))) == [ServerSentEvent("e:1", "a\u2028\nb")]


def test_an_event_that_breaks_off_is_dropped() -> None:
    assert list(parse_events(["id: 1", "data: x"])) == []
    assert list(parse_events(["id: 1", "data: x", "", "id: 2", ""])) == [ServerSentEvent("1", "x")]


@contextmanager
def watching(node: Node, *args: str) -> Iterator["queue.Queue[str]"]:
    """Lines that `cacp watch` prints, on either stream, as they come."""
    lines: queue.Queue[str] = queue.Queue()
    watch = subprocess.Popen(
        [sys.executable, "-u", "-m", "cli.main", "watch", *args],
        env=environment_of(url=node.url),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert watch.stdout is not None
    stdout = watch.stdout

    def read() -> None:
        for line in stdout:
            lines.put(line)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield lines
    finally:
        watch.send_signal(signal.SIGINT)
        assert watch.wait(PATIENCE) == 0
        reader.join()
        stdout.close()


def test_changes_are_told_to_people(node: Node, team: Team) -> None:
    contract = team.proposed(name="GET /me \x1b[2J")
    team.frontend("context/askQuestion", question="Why?", relatedContracts=[contract])
    team.frontend("contract/respond", contractId=contract, action="agree")
    with watching(node, "--after", "0", "--project", team.project) as lines:
        told = [lines.get(timeout=PATIENCE) for _ in range(5)]
    assert ["GET /me" in line for line in told] == [False, False, True, False, True]
    assert told[3].split()[1:] == ["frontend", "asks", "Why?"]
    assert "respond    ● agreed" in told[4]
    assert not any("\x1b" in line for line in told)


def test_json_goes_on_after_the_node_comes_back(tmp_path: Path) -> None:
    only = ("--json", "--kind", "project", "--after", "0")
    with Node(tmp_path) as node, watching(node, *only) as lines:
        node.call("cacp/project/create", name="One", objective="")
        first = json.loads(lines.get(timeout=PATIENCE))
        assert (first["entity"], first["outcome"]) == ("project", "created")
        node.kill()
        assert "does not answer; waiting for it" in lines.get(timeout=PATIENCE)
        node.start()
        second = node.call("cacp/project/create", name="Two", objective="")
        assert "answers again" in lines.get(timeout=PATIENCE)
        assert json.loads(lines.get(timeout=PATIENCE))["entityId"] == second["projectId"]


@pytest.mark.parametrize(("after", "said"), [("x", "should be the id of an event of this stream")])
def test_what_the_node_refuses_ends_it(node: Node, after: str, said: str) -> None:
    done = cacp("watch", "--after", after, url=node.url)
    assert done.exit_code == 1
    assert said in done.stderr
