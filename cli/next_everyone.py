"""`cacp next --everyone`: what is open between all agents, as a table. Pure."""

from collections.abc import Iterator
from typing import Any

from cli.times import ago
from cli.views import short_agent
from schemas.plain import one_line

Json = dict[str, Any]

HEADS = ("NEEDS", "WHAT", "PROJECT", "MUST ACT", "BLOCKS", "AGE")
PARTIES = 3
"""Of those who must act, the most that are named."""
NAME_WIDTH = 60


def rows(items: list[Json]) -> Iterator[tuple[str, ...]]:
    """The cells of each item, without control characters."""
    for item in items:
        yield (
            one_line(item.get("mark", "-"), NAME_WIDTH),
            what(item),
            one_line(item.get("project", "-"), NAME_WIDTH),
            must_act(item),
            "-" if not item["unblocks"] else str(item["unblocks"]),
            ago(item["since"]).removesuffix(" ago"),
        )


def what(item: Json) -> str:
    """What is to be done, and about what.

    >>> subject = {"type": "contract", "id": "c", "name": "login"}
    >>> what({"verb": "respond to", "subject": subject, "version": 2})
    'respond to login v2'
    """
    version = f" v{item['version']}" if "version" in item else ""
    return f"{one_line(item['verb'])} {one_line(item['subject']['name'], NAME_WIDTH)}{version}"


def must_act(item: Json) -> str:
    """Who must act: repos, else agents.

    >>> web, ios = {"repo": "web"}, {"agentId": "aid://example.com/ios"}
    >>> must_act({"mustAct": [web, ios], "mustActCount": 2, "anyOf": True})
    'web or ios'
    >>> must_act({"mustAct": [], "mustActCount": 0, "anyOf": False})
    'a person'
    """
    parties = item["mustAct"][:PARTIES]
    named = [
        one_line(party["repo"] if "repo" in party else short_agent(party["agentId"]), NAME_WIDTH)
        for party in parties
    ]
    if not named:
        return "a person"
    more = item["mustActCount"] - len(named)
    text = (" or " if item["anyOf"] else ", ").join(named)
    return f"{text} and {more} more" if more else text


def summary(listing: Json) -> str:
    """How much is open, in a line.

    >>> groups = {"person": 1, "overdue": 0, "in_time": 2}
    >>> summary({"groups": groups, "hidden": 0})
    '1 needs a person, 0 waited too long, 2 in time'
    """
    groups = listing["groups"]
    verb = "needs" if groups["person"] == 1 else "need"
    line = (
        f"{groups['person']} {verb} a person, {groups['overdue']} waited too long, "
        f"{groups['in_time']} in time"
    )
    if listing["hidden"]:
        line += f"; {listing['hidden']} of mail and approvals are for a human's key"
    return line
