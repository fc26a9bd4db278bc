"""What `cacp doctor` checks of the running node: which one has this database, is it healthy, and is
it the one that commands call?"""

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cli.node_url import NodeUrl, chosen_url, own_url
from schemas.plain import one_line
from server.domain.doctor_check import DoctorCheck

if TYPE_CHECKING:
    from server.settings import Settings

ANSWER_SECONDS = 3.0
UNAUTHENTICATED = -32001


class NodeState(NamedTuple):
    """The process that has the database open, if there is one.

    `url` is where it listens, None for a release that does not write it down; `health` is the body
    of its /health, empty without an answer.
    """

    running: bool
    url: str | None
    health: dict[str, Any]


def look(settings: "Settings") -> NodeState:
    """The state of the node of this database. Falls back to the settings' address for a node that
    does not say where it listens."""
    from server.store.sqlite.file_lock import announced, is_locked

    if not is_locked(settings.db):
        return NodeState(False, None, {})
    address = announced(settings.db)
    if address is not None:
        url = own_url(*address)
        return NodeState(True, url, health_at(url))
    url = own_url(settings.host, settings.port)
    health = health_at(url)
    return NodeState(True, url if health.get("agentId") == settings.agent else None, health)


def node_checks(settings: "Settings", state: NodeState) -> Iterator[DoctorCheck]:
    """What is known of the node that has the database open."""
    if not state.running:
        where = "this database" if isinstance(settings.location, Path) else "this machine"
        yield DoctorCheck("node", "ok", f"no node runs on {where}")
    elif state.url is None:
        yield DoctorCheck(
            "node",
            "warning",
            f"a process has {settings.db} open, but does not say where it listens",
            "if it is a node, give `cacp doctor` its settings (CACP_PORT or --config)",
        )
    elif not state.health:
        yield DoctorCheck(
            "node",
            "broken",
            f"a process has {settings.db} open, but no node answers at {state.url}",
            "its log says more; if it hangs, stop it and start `cacp serve` again",
        )
    else:
        yield from _answering(settings, state.url, state.health)


def call_checks(variables: Mapping[str, str], db: Path, state: NodeState) -> Iterator[DoctorCheck]:
    """Whether the commands of this shell call the node of this database, and with a key that the
    node knows."""
    try:
        chosen = chosen_url({**variables, "CACP_DB": str(db)}, lambda _: state.url)
    except ValueError as error:
        yield DoctorCheck("calls", "broken", str(error), "correct or unset the variable")
        return
    own = state.url is not None and chosen.url.rstrip("/") == state.url
    if not own and not health_at(chosen.url):
        if chosen.source == "CACP_URL" or state.url is not None:
            yield DoctorCheck(
                "calls",
                "warning",
                f"commands call {chosen.url} ({chosen.source}), where no node answers",
                f"correct or unset {chosen.source}, or start that node",
            )
        return
    if not own and state.url is not None:
        yield DoctorCheck(
            "calls",
            "warning",
            f"commands call {chosen.url} ({chosen.source}), not the node of this database",
            f"export CACP_URL={state.url}",
        )
    yield from _key_check(chosen, variables.get("CACP_KEY"))


def health_at(url: str) -> dict[str, Any]:
    """The body of /health; empty when nothing at the URL answers as a node does."""
    from cli.client import NodeClient, NodeError

    try:
        with NodeClient(url, timeout=ANSWER_SECONDS) as node:
            body = node.get("/health")
    except (NodeError, ValueError):
        return {}
    return body if isinstance(body, dict) and "agentId" in body else {}


def _answering(settings: "Settings", url: str, health: dict[str, Any]) -> Iterator[DoctorCheck]:
    agent = one_line(health["agentId"])
    yield DoctorCheck("node", "ok", f"{agent} runs on this database and answers at {url}")
    if agent != settings.agent:
        yield DoctorCheck(
            "settings",
            "warning",
            f"the running node has other settings than these, which name it {settings.agent}",
            "give `cacp doctor` what the node was started with (CACP_* variables or --config)",
        )
    if health.get("version") != version("cacp-server"):
        yield DoctorCheck(
            "release",
            "warning",
            f"the node is {one_line(health.get('version'))}, this command {version('cacp-server')}",
            "restart the node, or run the `cacp` of its release",
        )
    if health.get("detail"):
        yield DoctorCheck(
            "health",
            "broken" if health.get("status") == "unhealthy" else "warning",
            one_line(health.get("reason")),
            one_line(health["detail"]),
        )


def _key_check(chosen: NodeUrl, key: str | None) -> Iterator[DoctorCheck]:
    from cli.client import CallRefused, NodeClient, NodeError

    if not key:
        return
    problem = None
    try:
        with NodeClient(chosen.url, key, timeout=ANSWER_SECONDS) as node:
            node.call("cacp/project/list", {"summary": True, "limit": 1})
    except ValueError as error:
        problem = str(error)
    except CallRefused as error:
        problem = error.message if error.code == UNAUTHENTICATED else None
    except NodeError as error:
        problem = str(error)
    if problem is None:
        yield DoctorCheck("key", "ok", f"{chosen.url} knows the key of CACP_KEY")
    else:
        yield DoctorCheck(
            "key",
            "warning",
            f"{chosen.url} refuses the key of CACP_KEY: {one_line(problem)}",
            "`cacp keys create` on that node's machine makes one; or unset CACP_KEY",
        )
