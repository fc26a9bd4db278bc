"""Settings and health: what `cacp doctor` sees, as far as the node can check it itself."""

import os
import sqlite3
import sys
from typing import Any

from schemas.base import iso, present
from schemas.mesh import MESH_VERSION
from server.domain.access import check_unrestricted
from server.domain.acp.routing import CHANNELS
from server.http.agent_card import CACP, VERSION
from server.http.routes import AppState
from server.page.view import Page, PageCall, view
from server.setting_sources import shown
from server.store import alarms, files, mailboxes
from server.store.checks import store_checks
from server.store.connection import Connection

Json = dict[str, Any]


@view("health", "/ui/health", title="Health", kinds=("peer", "project"))
def health(call: PageCall) -> Page:
    """How the node is: its health, checks, alarms, loops, storage, clock, mail and limits; and, for
    the operator, humans and programs of its machine, its settings."""
    caller = call.caller
    check_unrestricted(caller.projects)
    state, db = call.state, call.ctx.db
    database = state.database
    checks = store_checks(db, database.now(), database.stamps.newest)
    page = {
        "health": present(state.checkup.seen(db)._asdict()),
        "checks": [check.as_json() for check in checks],
        "alarms": [
            {
                "reason": alarm.reason,
                "about": alarm.about,
                "detail": alarm.detail,
                "since": iso(alarm.raised_at),
            }
            for alarm in alarms.every(db)
        ],
        "loops": _loops(state),
        "storage": _storage(state, db),
        "clock": _clock(state),
        "mail": _mail(state, db),
        "limits": _limits(state),
        "versions": _versions(db),
        "replicas": _replicas(state),
    }
    if caller.is_own_agent or caller.human:
        page["settings"] = [setting._asdict() for setting in shown(state.settings, os.environ)]
    return page


def _replicas(state: AppState) -> list[Json]:
    """The replicas that were heard of lately or have not ended cleanly, the oldest first; none for
    a process that has its database alone."""
    heartbeat, holder = state.cluster.heartbeat, state.cluster.duty.holder.replica
    return [
        {
            "address": replica.address,
            "status": "away" if replica.is_away(heartbeat.at) else replica.status,
            "version": replica.version,
            "startedAt": iso(replica.started_at),
            "isOwn": replica.replica == heartbeat.own,
            "doesBackgroundWork": replica.replica == holder,
        }
        for replica in heartbeat.replicas
    ]


def _loops(state: AppState) -> list[Json]:
    """The background loops, those that fail first."""
    loops = state.checkup.loops
    failing = set(loops.failing)
    listed = [
        {"name": name, "failures": count, "isFailing": name in failing}
        for name, count in dict(loops.failures).items()
    ]
    return sorted(listed, key=lambda loop: (not loop["isFailing"], -loop["failures"], loop["name"]))


def _storage(state: AppState, db: Connection) -> Json:
    database = state.database
    storage = {
        **database.storage.facts(),
        "fileCopiesBytes": files.copied_bytes(db),
        "commits": database.commits,
        "writes": database.writes,
        "failedWrites": database.failures,
        "waitingWrites": database.waiting,
        "auditRounds": state.audit.rounds,
    }
    return present(storage)


def _clock(state: AppState) -> Json:
    clock, verdict = state.database.clock, state.database.clock.verdict
    return {
        "now": iso(clock.now()),
        "correctionSeconds": state.mesh.status.clock_correction(),
        "clocks": verdict.clocks,
        "agreeing": verdict.agreeing,
        "isConfirmed": clock.doubt is None,
    }


def _mail(state: AppState, db: Connection) -> Json:
    taken, failed = state.push_worker.taken, state.push_worker.failed
    capabilities = state.node.acp.capabilities
    return {
        "channels": [
            {
                "channel": channel,
                "state": capabilities[channel],
                "taken": taken[channel],
                "failed": failed[channel],
            }
            for channel in CHANNELS
        ],
        "deadLetters": mailboxes.count_dead(db),
    }


def _limits(state: AppState) -> list[Json]:
    """What the node limits, what is in use, and how often a limit has refused something since the
    start. What is not counted, or has no limit of its own, is absent; a limit of 0 is none."""
    settings, connections = state.settings, state.connections
    budget = state.dispatcher.budget
    answers = dict(budget.refused)
    rows = (
        ("Open connections", connections.open, settings.connections, connections.refused, None),
        ("Event streams", state.streams.total(), settings.event_streams, None, None),
        ("Unfinished answers", budget.taken, settings.answer_budget, answers["busy"], "bytes"),
        ("One answer", None, settings.answer_limit, answers["answer_too_large"], "bytes"),
        ("Answers that callers did not read", None, None, connections.ended, None),
        ("Requests per caller and minute", None, settings.requests_per_minute, None, None),
        ("Deferred messages dropped", None, None, state.node.deferred_dropped.total(), None),
    )
    names = ("name", "used", "limit", "hits", "unit")
    return [present(dict(zip(names, row, strict=True))) for row in rows]


def _versions(db: Connection) -> Json:
    return {
        "software": VERSION,
        "protocol": CACP,
        "mesh": str(MESH_VERSION),
        "python": ".".join(map(str, sys.version_info[:3])),
        "sqlite": sqlite3.sqlite_version,
    }
