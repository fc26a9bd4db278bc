"""No input of any shape gives a 500, a traceback, a hang, or a change together with an error."""

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from schemas.errors import ErrorCode
from tests.acceptance import ledger
from tests.acceptance.shapes import SUSPECTS, bodies
from tests.support.node import Node, check_result
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team

pytestmark = pytest.mark.sqlite

SOAK_EXAMPLES = int(os.environ.get("CACP_FUZZ_EXAMPLES", "20000"))
ANSWER_SECONDS = 30.0
STATUSES = {200, 204, 400, 401, 403, 413, 415}
CODES = {int(code) for code in ErrorCode} - {ErrorCode.SERVER_ERROR, -32603}
"""Every code but those that say that the node itself is at fault."""
PATHS = {sys.prefix, str(Path(__file__).parents[2]), str(Path.home()) + "/"}

HEADERS: st.SearchStrategy[dict[bytes, bytes]] = st.dictionaries(
    st.sampled_from([b"idempotency-key", b"x-agent-id", b"x-project-token", b"origin"]),
    st.sampled_from([b"a", b"retry-1", b"", b"\xff\xfe", b"a b", b"x" * 300, b"\xc3\xa9"])
    | st.lists(st.integers(33, 126) | st.integers(128, 255), max_size=20).map(bytes),
    max_size=1,
)
HEADERS_OR_NONE = st.one_of(*[st.just({})] * 3, HEADERS)


BY_ITSELF = frozenset(
    {
        *("meta", "sqlite_sequence", "digests", "digest_sums", "alarms", "undelivered"),
        *("homes", "directories", "listed_agents", "directory", "node_keys"),
        *("acp_audit", "breakers", "send_rates"),
    }
)
"""Tables that the node writes at times of its own, and those where it keeps what it refused."""
AGEING = {
    "peers": "agent_id, endpoint, repo_name, trust, registered_at, secret, key_id, came_by",
    "messages": "id",
    "handoffs": "id",
}
"""Columns that no loop writes, of tables of which some are."""


@dataclass
class Target:
    """A node that holds one of everything, and an eye on its file from outside; `past` sees what
    was there before a call."""

    node: Node
    team: Team
    stranger: str
    eye: sqlite3.Connection
    past: sqlite3.Connection
    known: dict[bytes, bytes] = field(default_factory=dict)

    def version(self) -> int:
        """Differs as soon as anything in the file was changed."""
        return int(self.eye.execute("PRAGMA data_version").fetchone()[0])

    def assert_unchanged(self, before: int) -> None:
        """But for what the node writes by itself: `past` began to read at version `before`."""
        if self.version() == before:
            return
        for (table,) in self.eye.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            # What is searched is indexed a moment after it was written.
            if table not in BY_ITSELF and not table.startswith("search_"):
                rows = f"SELECT {AGEING.get(table, '*')} FROM {table}"
                now, then = self.eye.execute(rows).fetchall(), self.past.execute(rows).fetchall()
                assert now == then, f"an error, and yet {table} changed"

    def send(self, body: bytes, headers: dict[bytes, bytes], key: str | None) -> str:
        """Send it, and check all that must hold of any answer; a word on what it was."""
        for name, value in self.known.items():
            body = body.replace(name, value)
        every = {b"content-type": b"application/json"} | headers
        if key is not None:
            every[b"authorization"] = f"Bearer {key}".encode()
        self.past.execute("BEGIN IMMEDIATE")
        try:
            before = self.version()
            self.past.execute("SELECT 1 FROM meta").fetchone()
            return self._send(body, every, before)
        finally:
            self.past.execute("ROLLBACK")

    def _send(self, body: bytes, headers: dict[bytes, bytes], before: int) -> str:
        began = time.monotonic()
        response = self.node.http.post("/", content=body, headers=list(headers.items()))
        assert time.monotonic() - began < ANSWER_SECONDS
        assert response.status_code in STATUSES
        if response.status_code == 204:
            assert response.content == b""
            return "nothing"
        text = response.text
        assert "Traceback" not in text
        assert not any(path in text for path in {*PATHS, str(self.node.folder)})
        answers = response.json()
        batch = answers if isinstance(answers, list) else [answers]
        assert batch
        for answer in batch:
            check_answer(answer)
        if isinstance(answers, list):
            return "batch"
        if "result" in answers:
            check_result(json.loads(body)["method"], answers["result"])
            return "result"
        self.assert_unchanged(before)
        return str(answers["error"]["code"])


def check_answer(answer: Any) -> None:
    """JSON-RPC 2.0, section 5."""
    assert answer["jsonrpc"] == "2.0"
    assert answer.keys() in ({"jsonrpc", "result", "id"}, {"jsonrpc", "error", "id"})
    if "error" in answer:
        assert answer["error"].keys() <= {"code", "message", "data"}
        assert answer["error"]["code"] in CODES, answer
        assert isinstance(answer["error"]["message"], str)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with Node(tmp_path_factory.mktemp("fuzz")) as node:
        team = Team.on(node, node.key(FRONTEND_AGENT, FRONTEND))
        stranger = node.key("aid://example.org/stranger@1.0.0", "elsewhere")
        file = f"{node.db.as_uri()}?mode=ro"
        eye, past = (sqlite3.connect(file, uri=True, isolation_level=None) for _ in range(2))
        with closing(eye), closing(past):
            target = Target(node, team, stranger, eye, past)
            target.known = {name.encode(): id.encode() for name, id in one_of_each(team).items()}
            yield target
        node.stop()
        node.process = None
        ledger.check(node.db)
        assert "Traceback" not in node.log


def one_of_each(team: Team) -> dict[str, str]:
    """What `$NAME` in a body stands for."""
    packet = team.frontend("context/askQuestion", question="Which pagination?")["packetId"]
    file = {"name": "a.json", "content": "e30="}
    request = team.backend("file/request", description="The catalogue")["requestId"]
    team.node.call(
        "cacp/peer/announce", agentId="aid://example.net/peer@1.0.0", endpoint="http://127.0.0.1:9"
    )
    return {
        "$project": team.project,
        "$contract": team.implemented(),
        "$packet": packet,
        "$file": team.backend("file/share", file=file)["fileId"],
        "$request": request,
        "$repo": team.repo_id(FRONTEND),
        "$cursor": f"1.{team.project}",
    }


def fuzz(target: Target, body: bytes, headers: dict[bytes, bytes], who: str) -> str:
    keys = {"own": None, "frontend": target.team.key, "stranger": target.stranger, "none": "x"}
    return target.send(body, headers, keys[who])


WHO = st.sampled_from(["own"] * 6 + ["frontend"] * 4 + ["stranger", "none"])
CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@pytest.mark.parametrize("who", ["own", "frontend"])
def test_no_usual_suspect_breaks_the_node(target: Target, who: str) -> None:
    for number, body in enumerate(SUSPECTS):
        fuzz(target, body, {b"idempotency-key": b"%s-%d" % (who.encode(), number)}, who)


@settings(
    max_examples=300,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=CHECKS,
)
@given(body=bodies(), headers=HEADERS_OR_NONE, who=WHO)
def test_no_input_of_any_shape_breaks_the_node(
    target: Target, body: bytes, headers: dict[bytes, bytes], who: str
) -> None:
    event(fuzz(target, body, headers, who))


@pytest.mark.soak
@settings(max_examples=SOAK_EXAMPLES, deadline=None, database=None, suppress_health_check=CHECKS)
@given(body=bodies(), headers=HEADERS_OR_NONE, who=WHO)
def test_no_input_of_any_shape_breaks_the_node_for_long(
    target: Target, body: bytes, headers: dict[bytes, bytes], who: str
) -> None:
    event(fuzz(target, body, headers, who))
