"""cacp/activity/list: which changes a caller sees, by what it asks for."""

from typing import Any

import pytest

from server.auth.authenticator import Caller
from server.domain.errors import Forbidden, NotFound
from server.methods.cacp import activity
from tests.server.methods.cacp.duo import Duo
from tests.support.in_process_node import ANA, BEN, HUMAN


def listed(duo: Duo, caller: Caller | None = None, **params: Any) -> Any:
    caller = caller or Caller(ANA, "api", "verified", "key")
    return duo.desk.call_as(caller, "cacp/activity/list", **params)


def outcomes(page: Any) -> list[tuple[str, str]]:
    return [(change["kind"], change["outcome"]) for change in page["changes"]]


def test_changes_are_newest_first_with_names(duo: Duo) -> None:
    duo.agreed("Login")
    page = listed(duo)
    assert outcomes(page) == [
        ("contract", "agreed"),
        ("contract", "proposed"),
        ("repo", "joined"),
        ("project", "created"),
    ]
    agreed, _, joined, created = page["changes"]
    assert (agreed["name"], agreed["project"], agreed["actor"]) == ("Login", "Coupons", BEN)
    assert (joined["name"], created["name"]) == ("web", "Coupons")


def test_filters(duo: Duo) -> None:
    duo.agreed()
    assert outcomes(listed(duo, agent=ANA)) == [("contract", "proposed"), ("project", "created")]
    assert len(listed(duo, repo="web")["changes"]) == 2
    assert outcomes(listed(duo, kinds=["repo", "project"])) == [
        ("repo", "joined"),
        ("project", "created"),
    ]
    other = Duo(duo.desk)
    assert len(listed(duo, projectId=other.project)["changes"]) == 2
    assert len(listed(duo)["changes"]) == 6


def test_it_has_pages(duo: Duo) -> None:
    for number in range(5):
        duo.proposed(f"{number}")
    names: list[str] = []
    more: dict[str, Any] = {}
    while True:
        page = listed(duo, kinds=["contract"], limit=2, **more)
        names += [change["name"] for change in page["changes"]]
        if "nextCursor" not in page:
            break
        more = {"cursor": page["nextCursor"]}
    assert names == ["4", "3", "2", "1", "0"]


def test_a_page_looks_at_so_many_changes_only(duo: Duo, monkeypatch: pytest.MonkeyPatch) -> None:
    duo.proposed()
    monkeypatch.setattr(activity, "SCANNED", 2)
    page = listed(duo, kinds=["project"])
    assert page["changes"] == []
    assert page["lookedBackTo"]
    page = listed(duo, kinds=["project"], cursor=page["nextCursor"])
    assert outcomes(page) == [("project", "created")]
    assert "nextCursor" not in page


def test_counts_by_time(duo: Duo) -> None:
    duo.verified()
    page = listed(duo, spans=20, limit=1)
    assert sum(span["count"] for span in page["spans"]) == 7
    assert page["spanSeconds"] == 1
    assert "spans" not in listed(duo)


def test_who_is_for_one_project_sees_its_changes_alone(duo: Duo) -> None:
    duo.proposed()
    other = Duo(duo.desk)
    narrow = Caller(ANA, "api", "verified", "key", frozenset({other.project}))
    assert {change["projectId"] for change in listed(duo, narrow)["changes"]} == {other.project}
    with pytest.raises(Forbidden):
        listed(duo, narrow, projectId=duo.project)
    with pytest.raises(NotFound):
        listed(duo, projectId="none")


def test_mail_is_for_humans_and_only_what_is_open_to_them(duo: Duo) -> None:
    for visibility in ("human-audit", "private"):
        duo.desk.call(
            "acp/send",
            ANA,
            to=[BEN],
            type="knowledge.push",
            payload={"summary": "s"},
            policy={"visibility": visibility},
        )
    human = Caller(HUMAN, "r", "verified", "key", human=True)
    assert "message" not in {kind for kind, _ in outcomes(listed(duo))}
    assert outcomes(listed(duo, human, kinds=["message"])) == [("message", "pending")]
    assert ("message", "pending") in outcomes(listed(duo, human))
    with pytest.raises(Forbidden, match="human"):
        listed(duo, kinds=["message"])
