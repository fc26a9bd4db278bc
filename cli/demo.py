"""`cacp demo`: two agents take a contract from proposed to verified, on a node of its own or one
that runs."""

import json
import os
import re
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from cacp_launcher import command
from cli.client import CallRefused, NodeClient, NodeError, NodeUnreachable
from cli.terminal import REFUSED, USAGE, fail
from schemas.errors import ErrorCode
from schemas.plain import one_line

if TYPE_CHECKING:
    from rich.console import Console

    from server.store.connection import Connection

BACKEND = "backend-api"
FRONTEND = "frontend-app"
TONES = {BACKEND: "cyan", FRONTEND: "magenta"}
PAUSE = 0.3
PATIENCE_SECONDS = 60.0
AGAIN_SECONDS = 0.2
START_SECONDS = 60.0
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{6}([0-9a-f]{6})")

ENDPOINT = {
    "method": "POST",
    "path": "/coupons/apply",
    "request": {"cart_id": "string", "code": "string"},
    "response": {"discount": "number"},
}


def demo(
    fast: Annotated[bool, typer.Option("--fast", help="Don't pause between the steps.")] = False,
    url: Annotated[
        str | None,
        typer.Option(
            "--url", metavar="URL", help="A running node to play on, such as that of a cluster."
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL",
            help="With --url: that node's SQLite file or PostgreSQL database, in which the agents "
            "have keys until the end.",
        ),
    ] = None,
) -> None:
    """Watch two agents agree on an endpoint, build it and verify it.

    It starts a real node on a free port with a temporary database, creates a key for each agent,
    shows each call and its result, then what `cacp show` prints, and cleans up. It takes a few
    seconds.

    With --url it plays on a node that runs, and leaves the project there. A call that gets no
    answer, or that the node can't carry out now, is made again with the same idempotency key: kill
    replicas of `cacp cluster` meanwhile.

    \b
    Examples:
      cacp demo
      cacp demo --url http://127.0.0.1:8080 \\
          --database "$(cat data/cluster/database-url)"
    """
    from cli import views

    if (url is None) != (database is None):
        fail(USAGE, "--url and --database belong together: the node, and where it keeps keys")
    out = views.console()
    try:
        if url is not None and database is not None:
            with _keyed(database) as agent_keys:
                _show(out, url, agent_keys, 0 if fast else PAUSE, PATIENCE_SECONDS)
            out.print("\nDone; the keys are revoked, and the project stays.", style="bold")
            return
        with _scratch_node() as (scratch, agent_keys):
            out.print(f"A temporary node listens on {scratch}.\n", style="dim")
            _show(out, scratch, agent_keys, 0 if fast else PAUSE, 0)
    except (NodeError, OSError, ValueError) as error:
        fail(REFUSED, f"the demo failed: {error}")
    except KeyboardInterrupt:
        raise typer.Exit from None
    out.print("\nDone; the node and its data are removed. Next:", style="bold")
    out.print("  cacp serve --repo backend-api    your own node")
    out.print("  cacp watch                       its changes, live, in another terminal")


def _show(
    out: "Console", url: str, agent_keys: dict[str, str], pause: float, patience: float
) -> None:
    """Play at a node, then print the contract's story."""
    from cli.show import story, tell

    with (
        NodeClient(url, agent_keys[BACKEND]) as backend,
        NodeClient(url, agent_keys[FRONTEND]) as frontend,
    ):
        stage = Stage(out, {BACKEND: backend, FRONTEND: frontend}, pause, patience)
        project_id, contract_id = play(stage)
        out.rule(f"cacp show {contract_id}", style="dim")
        tale = insist(lambda: tell(backend, project_id, contract_id), patience)
        out.print(story(tale, out.width))


T = TypeVar("T")


def insist(call: Callable[[], T], patience: float, waits: Callable[[str], object] = str) -> T:
    """The result of a call, which is made again for `patience` seconds while it gets no answer or
    the node can't carry it out. `waits` is told why, the first time. Raises NodeError."""
    deadline = time.monotonic() + patience
    is_told = False
    while True:
        try:
            return call()
        except NodeError as error:
            passing = isinstance(error, NodeUnreachable) or (
                isinstance(error, CallRefused) and error.code == ErrorCode.SERVER_ERROR
            )
            if not passing or time.monotonic() >= deadline:
                raise
            if not is_told:
                waits(one_line(error))
            is_told = True
        time.sleep(AGAIN_SECONDS)


Ids = dict[str, str]


class Stage:
    """Makes the agents' calls, and shows each with its result."""

    def __init__(
        self, out: "Console", agents: dict[str, NodeClient], pause: float, patience: float = 0
    ) -> None:
        self._out = out
        self._agents = agents
        self._pause = pause
        self._patience = patience

    def scene(self, title: str) -> None:
        self._out.print(f"\n{title}", style="bold")

    def call(self, repo: str, method: str, **params: Any) -> Any:
        """Call `cacp/METHOD` as the agent of `repo`. Returns the result."""
        from rich.text import Text

        what = {name: value for name, value in params.items() if not name.endswith("Id")}
        width = max(40, self._out.width - len(method) - 20)
        shown = _compact(what, width)
        self._out.print(
            Text.assemble((f"{repo:<13}", f"bold {TONES[repo]}"), f" {method} ", (shown, "dim"))
        )
        once = str(uuid.uuid4())
        result = insist(
            lambda: self._agents[repo].call(f"cacp/{method}", params, once=once),
            self._patience,
            lambda why: self._out.print(f"{'':13} … again: {why}", style="yellow"),
        )
        self._out.print(
            Text.assemble(
                " " * 13, (" → ", "green"), (_compact(result, self._out.width - 17), "green")
            )
        )
        time.sleep(self._pause)
        return result


def play(stage: Stage) -> tuple[str, str]:
    """All steps (CACP 2.0, from project/create to implementation/verify). Returns the ids of the
    project and the contract."""
    project = _begin(stage)
    contract = _propose(stage, project)
    _negotiate(stage, contract)
    _build(stage, contract)
    return project["projectId"], contract["contractId"]


def _begin(stage: Stage) -> Ids:
    stage.scene("A feature that spans two repositories")
    made = stage.call(
        BACKEND,
        "project/create",
        name="Coupons",
        objective="Customers redeem a coupon at checkout",
        repos=[
            {"name": BACKEND, "role": "backend", "language": "python"},
            {"name": FRONTEND, "role": "frontend", "language": "typescript"},
        ],
    )
    project = {"projectId": str(made["projectId"])}
    stage.call(FRONTEND, "project/join", **project, repoName=FRONTEND)
    return project


def _propose(stage: Stage, project: Ids) -> Ids:
    stage.scene("The backend proposes an interface; the frontend asks about it")
    proposed = stage.call(
        BACKEND,
        "contract/propose",
        **project,
        type="api_endpoint",
        name="POST /coupons/apply",
        content=ENDPOINT,
    )
    about = [proposed["contractId"]]
    asked = stage.call(
        FRONTEND,
        "context/askQuestion",
        **project,
        relatedContracts=about,
        question="What does an expired coupon answer?",
        options=["404", "422"],
    )
    stage.call(
        BACKEND,
        "context/recordDecision",
        **project,
        relatedContracts=about,
        replyTo=asked["packetId"],
        decision="An expired coupon",
        chosen="422",
        rationale="the code is known, it just no longer applies",
    )
    return project | {"contractId": str(proposed["contractId"])}


def _negotiate(stage: Stage, contract: Ids) -> None:
    stage.scene("It asks for a change, gets it, and agrees")
    stage.call(
        FRONTEND,
        "contract/respond",
        **contract,
        action="request_change",
        comment="a float loses cents; send whole cents, and the error",
    )
    better = ENDPOINT | {"response": {"discount_cents": "integer"}, "errors": {"422": "expired"}}
    stage.call(
        BACKEND, "contract/update", **contract, content=better, changeNote="cents, and the error"
    )
    stage.call(FRONTEND, "contract/respond", **contract, action="agree")


def _build(stage: Stage, contract: Ids) -> None:
    stage.scene("Both build against it, at the same time")
    stage.call(BACKEND, "implementation/start", **contract, plan="a coupon service and its route")
    stage.call(FRONTEND, "implementation/start", **contract, plan="a coupon field in the cart")
    stage.call(BACKEND, "implementation/complete", **contract, files=["api/coupons.py"])
    stage.call(FRONTEND, "implementation/complete", **contract, files=["src/CouponField.tsx"])
    stage.scene("And the frontend verifies that it fits")
    stage.call(
        FRONTEND,
        "implementation/verify",
        **contract,
        result="success",
        notes="12 checkout tests pass against the real backend",
    )


@contextmanager
def _scratch_node() -> Iterator[tuple[str, dict[str, str]]]:
    """A node process with a temporary database: its URL, and the key of each repo's agent."""
    from server.store.opening import connect, prepare

    with tempfile.TemporaryDirectory(prefix="cacp-demo-") as folder:
        db = Path(folder) / "demo.db"
        prepare(db)
        with closing(connect(db)) as connection:
            agent_keys = _make_keys(connection)
        port = _free_port()
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("CACP_")
        }
        place = ["--host", "127.0.0.1", "--port", str(port), "--db", str(db)]
        process = subprocess.Popen(
            command("serve", *place, "--repo", BACKEND),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url, process)
            yield url, agent_keys
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def _keyed(database: str) -> Iterator[dict[str, str]]:
    """The key of each repo's agent, in a node's database; they end with the block. Raises
    ValueError when it can't be opened."""
    from server.domain.location import DatabaseUrl
    from server.store import keys
    from server.store.opening import connect, storage_at

    location = DatabaseUrl(database) if "://" in database else Path(database)
    if isinstance(location, Path) and not location.exists():
        raise ValueError(f"there is no database {location}")
    errors = storage_at(location).errors
    try:
        with closing(connect(location)) as connection:
            agent_keys = _make_keys(connection)
    except errors as error:
        raise ValueError(f"the database can't be used: {one_line(error)}") from None
    try:
        yield agent_keys
    finally:
        # On a connection of its own: the server may have been killed and started meanwhile.
        with suppress(*errors), closing(connect(location)) as connection:
            for key in keys.every(connection):
                if key.agent_id in map(_agent_of, agent_keys):
                    keys.revoke(connection, key.key_id, now=time.time_ns() // 1000)


def _agent_of(repo: str) -> str:
    return f"aid://demo.example/{repo}@1.0.0"


def _make_keys(connection: "Connection") -> dict[str, str]:
    from server.store import keys

    made = {repo: keys.new_key() for repo in (BACKEND, FRONTEND)}
    for repo, key in made.items():
        keys.add(connection, key, agent_id=_agent_of(repo), repo=repo, now=time.time_ns() // 1000)
    return made


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    with NodeClient(url) as node:
        while True:
            try:
                node.get("/live")
                return
            except NodeError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


def _compact(value: dict[str, Any], width: int) -> str:
    """Members as name=value, ids by their end, on one line of at most `width` characters."""
    parts = []
    for name, member in value.items():
        plain = isinstance(member, str) and " " not in member
        parts.append(f"{name}={member if plain else json.dumps(member, ensure_ascii=False)}")
    return one_line(_UUID.sub(r"…\1", " ".join(parts)), max(20, width))
