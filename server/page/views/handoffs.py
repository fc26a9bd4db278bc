"""Handoffs as a board, and teamspaces."""

from typing import Any

from schemas.base import stamp_of
from server.domain.agents import identity, same_agent
from server.page.rendering import ago
from server.page.view import Page, PageCall, view

COLUMNS = (
    *("draft", "proposed", "validating", "accepted", "activated"),
    *("completed", "rejected", "closed"),
)
OF_EACH = 10
OF_ONE = 50
TEAMS = 20


@view("handoffs", "/ui/handoffs", title="Handoffs", kinds=("handoff",))
def handoffs(call: PageCall) -> Page:
    """Handoffs by state: who has the task, until when, and the steps so far; of one state, page by
    page."""
    state, team = call.query.get("state"), call.query.get("team")
    columns = [_column(call, each, team) for each in COLUMNS if state in (None, each)]
    return {
        "ownId": identity(call.caller.agent_id),
        "state": state,
        "team": team,
        "columns": [column for column in columns if column["handoffs"] or state],
    }


def _column(call: PageCall, state: str, team: str | None) -> dict[str, Any]:
    alone = call.query.get("state") == state
    shown = call.ask(
        "acp/handoffs",
        status=state,
        team=team,
        steps=True,
        limit=OF_ONE if alone else OF_EACH,
        cursor=call.query.get("after") if alone else None,
    )
    listed = [_shown(call, entry) for entry in shown["handoffs"]]
    return {"state": state, **shown, "handoffs": listed}


def _shown(call: PageCall, entry: dict[str, Any]) -> dict[str, Any]:
    """A handoff, whether the viewer is a party to it, and how long there is to its deadline."""
    handoff, own = entry["handoff"], call.caller.agent_id
    is_party = any(same_agent(own, handoff[name]) for name in ("fromAgent", "toAgent"))
    shown = entry | {"isParty": is_party}
    if "dueAt" in handoff and not entry["isOverdue"]:
        shown["dueIn"] = ago(stamp_of(handoff["dueAt"]), call.ctx.now)
    return shown


@view("teams", "/ui/teams", title="Teams", kinds=("teamspace", "handoff"))
def teams(call: PageCall) -> Page:
    """The teamspaces that the viewer is in, with their members and tasks; for the operator all."""
    shown = call.ask("acp/teams", limit=TEAMS, cursor=call.query.get("after"))
    return {"ownId": identity(call.caller.agent_id), **shown}
