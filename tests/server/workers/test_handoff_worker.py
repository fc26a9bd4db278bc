"""What a real node does for handoffs by itself, killed in between (acp-canonical §7, §8, §10.4)."""

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from peers.signing import SigningKey
from server.node import Node as Own
from server.settings import Settings
from server.store.database import Database
from server.util.loops import Loops
from server.workers.handoff_worker import HandoffWorker
from tests.support.in_process_node import package
from tests.support.located import connect, location_of, prepare
from tests.support.mail_agent import MailAgent, agent
from tests.support.mesh import project
from tests.support.node import AGENT, Node
from tests.support.waiting import eventually, until


class Workq:
    """A gateway that keeps what it is asked; `refuses` says what it won't do."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.refuses = ""
        self.down = False
        workq = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = orjson.loads(self.rfile.read(int(self.headers["content-length"])))
                answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
                if request["method"] == workq.refuses:
                    answer["error"] = {"code": -32000, "message": "held by another"}
                else:
                    answer["result"] = {}
                workq.calls.append(request)
                self.send_response(503 if workq.down else 200)
                self.end_headers()
                self.wfile.write(orjson.dumps(answer))

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/rpc"


@pytest.fixture(scope="module")
def workq() -> Iterator[Workq]:
    workq = Workq()
    yield workq
    workq.server.shutdown()
    workq.server.server_close()


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory, workq: Workq) -> Iterator[Node]:
    """A node with every duty, and an SLA of three seconds."""
    folder = tmp_path_factory.mktemp("busy")
    (folder / "files").mkdir()
    with Node(
        folder,
        handoff_sla_seconds=3,
        artifact_roots=folder / "files",
        teamspaces_root=folder / "teams",
        workq_url=workq.url,
    ) as node:
        yield node
        assert "Traceback" not in node.log, node.log[-4000:]


def offer(sender: MailAgent, receiver: MailAgent, **changes: Any) -> str:
    given = package(f"task-{sender.id}", **changes)
    made = sender.call("handoff", action="initiate", to=receiver.id, reason="r", package=given)
    return str(made["handoff"]["handoffId"])


def state(who: MailAgent, handoff_id: str) -> Any:
    return who.call("handoff", action="get", handoff_id=handoff_id)["handoff"]


def steps(who: MailAgent, handoff_id: str) -> list[str]:
    found = who.call("handoff", action="history", handoff_id=handoff_id)["history"]
    return [one["step"] for one in found]


def artifact(path: Path, content: bytes) -> list[dict[str, Any]]:
    sha256 = hashlib.sha256(content).hexdigest()
    return [{"artifact_id": "notes", "ref": {"type": "file", "path": str(path), "sha256": sha256}}]


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"right", "accepted", None),
        (b"wrong", "rejected", "hash_mismatch"),
        (None, "rejected", "missing_artifact"),
    ],
)
def test_files_are_verified_before_it_is_accepted(
    busy: Node, content: bytes | None, status: str, code: str | None
) -> None:
    """§7.2 rule 4."""
    one, two = agent(busy), agent(busy)
    path = busy.folder / "files" / f"{status}-{code}.txt"
    if content is not None:
        path.write_bytes(content)
    handoff_id = offer(one, two, artifacts=artifact(path, b"right"))
    first = two.call("handoff", action="accept", handoff_id=handoff_id)["handoff"]
    assert first["status"] in ("validating", status)
    eventually(lambda: state(one, handoff_id)["status"] != "validating")
    got = one.call("handoff", action="get", handoff_id=handoff_id)
    assert got["handoff"]["status"] == status
    assert got["artifacts"][0]["outcome"] == (code or "verified")
    types = [message["type"] for message in two.inbox()["messages"]]
    assert types[-1] == ("handoff.reject" if code else "status.update")


@pytest.mark.parametrize(
    ("required", "status"), [(True, "rejected"), (False, "accepted"), (None, "accepted")]
)
def test_a_required_file_is_looked_for_without_a_hash(
    busy: Node, required: bool | None, status: str
) -> None:
    """§6: `required` decides whether a file may be missing."""
    one, two = agent(busy), agent(busy)
    ref: dict[str, Any] = {"type": "file", "path": str(busy.folder / "files" / "none")}
    if required is not None:
        ref["required"] = required
    handoff_id = offer(one, two, artifacts=[{"artifact_id": "notes", "ref": ref}])
    two.call("handoff", action="accept", handoff_id=handoff_id)
    eventually(lambda: state(one, handoff_id)["status"] == status)
    notes = state(one, handoff_id).get("resolutionNotes")
    assert notes == ("missing_artifact: notes: the file does not exist" if required else None)


def test_an_overdue_handoff_is_escalated_once_whatever_happens(busy: Node) -> None:
    """§7.2 rule 5: over a kill -9, by message, in the history and in the audit."""
    one, two, three = agent(busy), agent(busy), agent(busy)
    late, done = offer(one, two), offer(three, two)
    for handoff_id in (late, done):
        two.call("handoff", action="accept", handoff_id=handoff_id)
    two.call("handoff", action="complete", handoff_id=done, summary="done")
    busy.kill()
    busy.restart()
    eventually(lambda: state(one, late).get("escalatedAt"))
    assert steps(one, late).count("escalate") == 1
    assert "escalate" not in steps(three, done)
    told = [
        message["payload"]["blocked_on"]
        for message in busy.call("acp/inbox", limit=500)["messages"]
        if message["type"] == "status.blocked"
    ]
    assert [late in one for one in told].count(True) == 1
    audited = busy.query("SELECT actor, detail FROM acp_audit WHERE outcome = 'escalated'")
    assert [late in detail for _, detail in audited].count(True) == 1


def refs() -> dict[str, Any]:
    return {"external_refs": [{"type": "workq_item", "value": "WQ-7"}]}


def test_ownership_moves_at_workq(busy: Node, workq: Workq) -> None:
    """§10.4: release and claim, each with its agent and session."""
    workq.calls.clear()
    one, two = agent(busy), agent(busy)
    handoff_id = offer(one, two, task=refs())
    two.call("handoff", action="accept", handoff_id=handoff_id, session_key="session-2")
    eventually(lambda: state(one, handoff_id)["workq"] == "transferred")
    assert [(call["method"], call["params"]) for call in workq.calls] == [
        (
            "workq.release",
            {"item": "WQ-7", "agent_id": one.address, "session_key": "session-1"},
        ),
        ("workq.claim", {"item": "WQ-7", "agent_id": two.address, "session_key": "session-2"}),
    ]
    assert "workq_transferred" in steps(one, handoff_id)


def test_a_call_that_got_no_answer_is_made_again_after_a_crash(busy: Node, workq: Workq) -> None:
    workq.calls.clear()
    workq.down = True
    one, two = agent(busy), agent(busy)
    handoff_id = offer(one, two, task=refs())
    two.call("handoff", action="accept", handoff_id=handoff_id)
    eventually(lambda: workq.calls)
    assert state(one, handoff_id)["workq"] == "pending"
    busy.kill()
    workq.down = False
    busy.restart()
    eventually(lambda: state(one, handoff_id)["workq"] == "transferred")
    ids = [call["id"] for call in workq.calls if call["method"] == "workq.release"]
    assert len(ids) > 1
    assert len(set(ids)) == 1


def test_what_workq_refuses_is_left_to_people(busy: Node, workq: Workq) -> None:
    """§10.4: explicit operator-visible status."""
    workq.refuses = "workq.claim"
    one, two = agent(busy), agent(busy)
    handoff_id = offer(one, two, task=refs())
    two.call("handoff", action="accept", handoff_id=handoff_id)
    eventually(lambda: state(one, handoff_id)["workq"] == "manual")
    workq.refuses = ""
    found = two.call("handoff", action="history", handoff_id=handoff_id)["history"]
    assert (
        "held by another" in next(one for one in found if one["step"] == "workq_manual")["detail"]
    )
    assert "cacp_workq_manual 1" in busy.get("/metrics").text
    assert "by hand" in two.call("handoff", action="get", handoff_id=handoff_id)["nextStep"]


def test_the_logs_are_written(busy: Node) -> None:
    """§8.2: they are those of the database."""
    one = agent(busy)
    name = f"core-{one.address[-12:]}"
    one.call("team", action="create", team=name, name="Core")
    for number in range(5):
        one.call("team", action="decide", team=name, title=f"d{number}", detail="because")
    rows = busy.query("SELECT seq, line FROM team_log WHERE team = ? AND log = 'decisions'", name)
    expected = [{"seq": seq, **orjson.loads(line)} for seq, line in rows]
    assert len(expected) == 5
    path = busy.folder / "teams" / name / "decisions" / "decisions.jsonl"
    eventually(lambda: path.exists() and path.read_bytes().count(b"\n") >= 5)
    assert [orjson.loads(line) for line in path.read_bytes().splitlines()] == expected
    # Each log is written in a step of its own.
    eventually((busy.folder / "teams" / name / "roles" / "ledger.jsonl").exists)


def test_a_duty_that_fails_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cacp.db"
    own = Own(AGENT, "duties", True, True, SigningKey(bytes(32)))

    async def on_a_closed_database() -> None:
        database = Database(location_of(path))
        await database.open(prepare(path).last_stamp)
        await database.close()
        duties = HandoffWorker(Settings(db=path), database, own, Loops())
        await duties.start()
        await until(lambda: {line.get("loop") for line in lines} >= {"escalate", "verify"})
        await duties.stop()

    with capture_logs() as lines:
        asyncio.run(on_a_closed_database())
    assert {line["event"] for line in lines if "loop" in line} == {"loop_failed"}


def test_a_handoff_that_fails_holds_up_none_behind_it(tmp_path: Path) -> None:
    """The first of two that are due can't be read."""

    def write(sql: str, *values: object) -> None:
        with closing(connect(node.db)) as other:
            other.execute(sql, values)

    with Node(tmp_path, handoff_sla_seconds=3_600, log_format="json") as node:
        one, two = agent(node), agent(node)
        first, second = offer(one, two), offer(two, one)
        [(kept,)] = node.query("SELECT package_json FROM handoffs WHERE id = ?", first)
        write("UPDATE handoffs SET package_json = '{' WHERE id = ?", first)
        for at, handoff in enumerate((first, second)):
            write("UPDATE handoff_control SET due_at = ? WHERE handoff_id = ?", at, handoff)
        project(node)
        eventually(lambda: f'"handoff": "{second}"' in node.log)
        eventually(lambda: node.get("/health").json().get("reason") == "loop_failing")
        assert "escalate" in node.get("/health").json()["detail"]
        assert f'"handoff": "{first}"' not in node.log
        write("UPDATE handoffs SET package_json = ? WHERE id = ?", kept, first)
        eventually(lambda: f'"handoff": "{first}"' in node.log)
        eventually(lambda: node.get("/health").json()["status"] == "healthy")
