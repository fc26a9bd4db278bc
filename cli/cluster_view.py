"""The state of a cluster of replicas as tables, lines and JSON. Pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from cli import views
from cli.times import clock
from schemas.plain import one_line

Json = dict[str, Any]

TONES = {
    "ready": "green",
    "up": "green",
    "starting": "yellow",
    "unready": "yellow",
    "silent": "red",
    "down": "red",
    "failed": "red",
}
SHOWN = 8
"""How many events a terminal shows."""


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """A replica as its process and the proxy show it. `state` is ready, unready, silent, starting
    or down. `requests` are those that came through the proxy, `answer_ms` is how long its last
    check took. `duty` is None where it is not known who has it, `beat_seconds` how long the
    database has not heard of the replica."""

    name: str
    url: str
    pid: int | None = None
    state: str = "down"
    duty: bool | None = None
    connections: int = 0
    requests: int = 0
    answer_ms: float | None = None
    beat_seconds: float | None = None
    ends: int = 0
    """How often its process ended by itself, or was killed."""


@dataclass(frozen=True, slots=True)
class DatabaseView:
    """The PostgreSQL server. `address` is its URL without a password; `pid` is None for one that
    the cluster did not start. `state` is up, starting, or down."""

    address: str
    pid: int | None = None
    state: str = "down"
    version: str | None = None
    connections: int | None = None
    stamp_age_seconds: float | None = None
    """How long ago the last write was."""
    ends: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a part of the cluster. `at` is ISO 8601."""

    at: str
    text: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The whole. `url` is the proxy's, to which callers send everything."""

    url: str
    replicas: list[ReplicaView]
    database: DatabaseView
    events: list[Event] = field(default_factory=list)

    @property
    def ready(self) -> int:
        return sum(replica.state == "ready" for replica in self.replicas)


def as_json(view: ClusterView) -> Json:
    return {"ready": view.ready, **asdict(view)}


def verdict(view: ClusterView) -> tuple[str, str]:
    """Whether the cluster serves, in a sentence, and the tone to say it in.

    >>> verdict(ClusterView("http://p", [ReplicaView("r1", "u")], DatabaseView("d", state="up")))
    ('0 of 1 replica is ready', 'red')
    """
    whole = len(view.replicas)
    noun = "replica is" if whole == 1 else "replicas are"
    if view.ready == whole:
        return f"All {whole} replicas are ready" if whole > 1 else "The replica is ready", "green"
    return f"{view.ready} of {whole} {noun} ready", "yellow" if view.ready else "red"


def picture(view: ClusterView) -> Group:
    """The proxy, the database, the replicas, whether it serves, and what happened last."""
    sentence, tone = verdict(view)
    return Group(
        Text.assemble(("● ", tone), (view.url, "bold"), ("   proxy   ", "dim"), (sentence, tone)),
        Text(),
        _database(view.database),
        Text(),
        _replicas(view.replicas),
        Text(),
        *(
            Text(f"{clock(each.at)}  {one_line(each.text)}", each.tone)
            for each in view.events[-SHOWN:]
        ),
    )


def _database(database: DatabaseView) -> RenderableType:
    row: Sequence[RenderableType] = (
        views.data(f"PostgreSQL {database.version or ''}".strip(), "bold"),
        views.data(database.address),
        views.data(database.pid or "-"),
        _mark(database.state),
        views.data("-" if database.connections is None else database.connections),
        views.data(_seconds(database.stamp_age_seconds)),
        views.data(database.ends),
    )
    return views.table(
        "DATABASE", "ADDRESS", "#PID", "STATE", "#CONNECTIONS", "#LAST WRITE", "#ENDED", rows=[row]
    )


def _replicas(replicas: Sequence[ReplicaView]) -> RenderableType:
    rows: list[Sequence[RenderableType]] = [
        (
            views.data(f"{number} {replica.name}", "bold"),
            views.data(replica.url.removeprefix("http://")),
            views.data(replica.pid or "-"),
            _mark(replica.state),
            views.data({None: "-", True: "background", False: ""}[replica.duty], "cyan"),
            views.data(replica.connections),
            views.data(f"{replica.requests:,}"),
            views.data("-" if replica.answer_ms is None else f"{replica.answer_ms:.0f} ms"),
            views.data(_seconds(replica.beat_seconds)),
            views.data(replica.ends),
        )
        for number, replica in enumerate(replicas, start=1)
    ]
    heads = ("REPLICA", "ADDRESS", "#PID", "STATE", "DUTY", "#CONN", "#REQUESTS", "#ANSWER")
    return views.table(*heads, "#HEARD", "#ENDED", rows=rows)


def _mark(state: str) -> Text:
    return Text(f"● {state}", TONES.get(state, "yellow"))


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f} s"


def lines(before: ClusterView | None, after: ClusterView) -> list[str]:
    """What has changed as lines, for an output that is not a terminal."""
    seen = set() if before is None else set(before.events)
    changes = [one_line(event.text) for event in after.events if event not in seen]
    if before is None or verdict(before) != verdict(after):
        changes.append(f"{verdict(after)[0]}: {after.url}")
    return changes
