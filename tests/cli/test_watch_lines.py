"""The lines of `cacp watch`: names, in the width of a terminal."""

from typing import Any

import pytest

from cli.client import CallRefused, NodeClient
from cli.watch_lines import ChangeNames, ChangeSubject, change_line

CHANGE = {
    "at": "2026-01-01T00:00:00+00:00",
    "actor": "aid://h/frontend@1.0.0",
    "action": "cacp/contract/respond",
    "entity": "contract",
    "entityId": "c1",
    "projectId": "p1",
    "outcome": "negotiating",
}
ANSWERS: dict[str, Any] = {
    "cacp/project/get": {
        "name": "Coupons",
        "repos": [{"repo_id": "r1", "name": "frontend-app"}],
    },
    "cacp/contract/get": {"name": "POST /x"},
    "cacp/context/getThread": {
        "thread": [
            {"packet_id": "k1", "type": "api_change", "content": {"text": "now"}},
            {"packet_id": "k2", "type": "question", "content": {"question": "Why?"}},
        ]
    },
}


class CannedNode(NodeClient):
    """Answers each method once, as `ANSWERS` says, and refuses all others."""

    def __init__(self) -> None:
        self.left = dict(ANSWERS)

    def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        patience: float = 0,
        once: str | None = None,
    ) -> Any:
        if method not in self.left:
            raise CallRefused(-32602, "again")
        return self.left.pop(method)


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        ({}, ("respond", "negotiating", "POST /x", "Coupons")),
        ({"entity": "conflict", "outcome": "version_lost"}, None),
        (
            {"entity": "project", "entityId": "p1", "action": "cacp/project/create"},
            ("create", "negotiating", "project Coupons", ""),
        ),
        ({"entity": "repo", "entityId": "r1"}, ("respond", "negotiating", None, "Coupons")),
        ({"entity": "context", "entityId": "k2"}, ("asks", "", "Why?", "Coupons")),
        ({"entity": "context", "entityId": "k1"}, ("shares", "", "api change: now", "Coupons")),
        ({"entity": "context", "entityId": "k9"}, ("shares", "", "packet k9", "Coupons")),
        (
            {"entity": "peer", "entityId": "aid://h/b@1.0.0", "projectId": None},
            ("respond", "negotiating", "peer aid://h/b@1.0.0", ""),
        ),
    ],
)
def test_ids_have_names(change: dict[str, Any], subject: tuple[str | None, ...] | None) -> None:
    shown = ChangeNames(CannedNode()).subject(CHANGE | change, with_project=True)
    if subject is None:
        assert shown.name == "conflict POST /x"
    else:
        expected = [part for part in subject if part is not None]
        assert [part for part in shown if part in expected or part == ""] == expected
    if change.get("entity") == "repo":
        assert shown.name == "repo frontend-app"


def test_a_line_is_cleaned() -> None:
    subject = ChangeSubject("respond", "negotiating", "GET \x1b[2J/x", "Coup\nons")
    line = change_line(CHANGE, subject).plain
    assert line.endswith("frontend      respond    ● negotiating  GET /x · Coup ons")


def test_names_are_asked_for_once() -> None:
    names = ChangeNames(CannedNode())
    for _ in range(2):
        assert names.subject(CHANGE, with_project=True).name == "POST /x"
