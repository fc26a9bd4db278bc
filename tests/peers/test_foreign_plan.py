"""What goes to a foreign peer so that it takes it, and takes it only over what it showed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peers.errors import PeerRefused
from peers.foreign_plan import (
    LISTED_MAX,
    above,
    as_foreign,
    contract_of,
    lacks_claim,
    lacks_it,
    listed_of,
    over,
    repo_over,
    shown_of,
    whole_over,
    with_ids,
)
from schemas.base import stamp_of


def test_a_foreign_peer_is_written_to_as_it_writes() -> None:
    """Design §8: no offsets, strings where we would send null, `assigned_agent`."""
    ours = {
        "updated_at": "2026-01-01T00:00:00.000000+00:00",
        "proposed_by": None,
        "content": {"default": None, "at": "2026-01-01T00:00:00+00:00"},
        "repos": [{"role": "r", "agent_id": "a"}, {"role": "r"}],
        "started_at": None,
    }
    assert as_foreign(ours) == {
        "updated_at": "2026-01-01T00:00:00.000000",
        "proposed_by": "",
        "content": {"default": None, "at": "2026-01-01T00:00:00+00:00"},
        "repos": [{"role": "r", "agent_id": "a", "assigned_agent": "a"}, {"role": "r"}],
        "started_at": None,
    }


# --- times --------------------------------------------------------------------------------------


@given(st.datetimes().filter(lambda at: at.year >= 1970), st.sampled_from((1, 1_000, 1_000_000)))
def test_what_goes_is_above_what_was_shown_and_no_clock_of_ours(at: Any, step: int) -> None:
    written = above(at.isoformat(), step)
    assert written is not None
    assert "+" not in written
    if at.year < 9999:
        assert stamp_of(written) == stamp_of(at.isoformat()) + step


def test_a_time_is_written_as_the_peer_writes_it() -> None:
    assert above("2026-01-01T02:00:00+02:00", 1) == "2026-01-01T00:00:00.000001+00:00"
    assert above("2026-01-01T00:00:00Z", 1_000) == "2026-01-01T00:00:00.001000+00:00"


@pytest.mark.parametrize("shown", [None, "", 12, "soon", "0001-01-01T00:00:00"])
def test_what_is_no_time_has_nothing_above_it(shown: Any) -> None:
    assert above(shown, 1) is None
    ours = {"updated_at": "2026-01-01T00:00:00", "a": 1}
    assert over(ours, {"updated_at": shown}, 1)["updated_at"] == ours["updated_at"]


def test_the_last_time_there_is_stays() -> None:
    assert above("9999-12-31T23:59:59.999999", 1) == "9999-12-31T23:59:59.999999"


# --- what it shows ------------------------------------------------------------------------------


def shown(**more: Any) -> dict[str, Any]:
    return {"project_id": "p", "updated_at": "2026-01-01T00:00:05", **more}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "another object"),
        ({"status": "error", "reason": "no"}, "another object"),
        (shown(project_id="q"), "another object"),
        (shown(contracts=[{}]), "contracts have no contract_id"),
        (shown(contracts=["c"]), "contracts have no contract_id"),
        (shown(repos=[{"name": "a"}]), "repos have no name"),
        (shown(context_history=[{"packet_id": 1}]), "context_history have no packet_id"),
    ],
)
def test_what_is_no_project_is_none(answer: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        shown_of(answer, "p")


def test_of_two_repos_of_one_name_the_first_counts() -> None:
    found = shown_of(shown(repos=[{"repo_id": one, "name": "a"} for one in "xy"]), "p")
    assert found.ids == {"a": "x"}


@pytest.mark.parametrize(
    ("refused", "lacks"),
    [
        (
            PeerRefused("refuses: Invalid params: Project p not found", status=200, code=-32602),
            True,
        ),
        (PeerRefused("refuses: x", status=200, code=-1, data={"reason": "not_found"}), True),
        (
            PeerRefused("refuses: Invalid params: projectId required", status=200, code=-32602),
            False,
        ),
        (PeerRefused("refuses: Method not found: x", status=200, code=-32601), False),
        (PeerRefused("refuses (HTTP 404): Not Found", status=404), False),
        (PeerRefused("refuses: Server error: key not found", status=200, code=-32000), False),
    ],
)
def test_only_that_it_has_no_such_project_means_that_it_has_none(
    refused: PeerRefused, lacks: bool
) -> None:
    assert lacks_it(refused) is lacks


# --- what is written over it --------------------------------------------------------------------


def test_ids_of_repos_are_replaced_and_content_is_not() -> None:
    document = {
        "proposed_by": "ours",
        "content": {"repo_id": "ours"},
        "implementations": [{"repo_id": "ours"}, {"repo_id": "other"}],
        "from_repo": None,
    }
    assert with_ids(document, {"ours": "theirs"}) == {
        "proposed_by": "theirs",
        "content": {"repo_id": "ours"},
        "implementations": [{"repo_id": "theirs"}, {"repo_id": "other"}],
        "from_repo": None,
    }


def test_a_whole_project_keeps_what_only_the_peer_holds() -> None:
    theirs = shown(
        label="theirs",
        repos=[{"repo_id": "x", "name": "a", "url": "u"}, {"repo_id": "y", "name": "b"}],
        contracts=[
            {"contract_id": "1", "updated_at": "2026-01-01T00:00:03", "tag": "t"},
            {"contract_id": "2", "updated_at": "2026-01-01T00:00:04"},
        ],
        context_history=[{"packet_id": "k"}],
    )
    now = "2026-02-02T00:00:00"
    ours = {
        "project_id": "p",
        "updated_at": now,
        "repos": [{"repo_id": "x", "name": "a", "url": "", "role": "r"}],
        "contracts": [
            {"contract_id": "1", "updated_at": now},
            {"contract_id": "3", "updated_at": now},
        ],
        "context_history": [{"packet_id": "l"}],
    }
    assert whole_over(ours, shown_of(theirs, "p"), 1) == {
        "project_id": "p",
        "label": "theirs",
        "updated_at": "2026-01-01T00:00:05.000001",
        "repos": [
            {"repo_id": "x", "name": "a", "url": "u", "role": "r"},
            {"repo_id": "y", "name": "b"},
        ],
        "contracts": [
            {"contract_id": "1", "updated_at": "2026-01-01T00:00:03.000001", "tag": "t"},
            {"contract_id": "3", "updated_at": now},
            {"contract_id": "2", "updated_at": "2026-01-01T00:00:04"},
        ],
        "context_history": [{"packet_id": "l"}, {"packet_id": "k"}],
    }


@pytest.mark.parametrize(
    ("theirs", "lacks"),
    [
        (None, True),
        ({"assigned_agent": None}, True),
        ({"assigned_agent": "other"}, True),
        ({"assigned_agent": "a"}, True),
        ({"assigned_agent": "a", "agent_endpoint": "u"}, False),
        ({"agent_id": "a", "agent_endpoint": "u"}, False),
    ],
)
def test_a_claim_is_told_to_who_does_not_know_it(theirs: Any, lacks: bool) -> None:
    assert lacks_claim({"agent_id": "a", "agent_endpoint": "u"}, theirs) is lacks


def test_nobody_elses_claim_or_endpoint_is_taken_back() -> None:
    theirs = {"assigned_agent": "a", "agent_endpoint": "u"}
    assert not lacks_claim({}, theirs)
    assert not lacks_claim({"agent_id": "a"}, theirs)
    assert repo_over({"agent_id": "a", "agent_endpoint": ""}, theirs)["agent_endpoint"] == "u"


def test_what_is_kept_stays_as_the_peer_holds_it() -> None:
    held = {"contract_id": "c", "name": "odd", "updated_at": "2026-01-01T00:00:00"}
    shown = shown_of({"project_id": "p", "contracts": [held], "updated_at": "x"}, "p")
    mine = held | {"name": "ours"}
    ours = {"project_id": "p", "updated_at": "y", "repos": [], "context_history": []}
    written = whole_over(ours | {"contracts": [mine]}, shown, 1, kept={"c"})
    assert written["contracts"] == [held]


def test_a_part_of_what_was_shown_has_its_repos() -> None:
    repo = {"name": "a", "repo_id": "r"}
    shown = shown_of({"project_id": "p", "repos": [repo], "contracts": [{"contract_id": "c"}]}, "p")
    part = shown.part({})
    assert (part.ids, part.contracts, part.whole) == ({"a": "r"}, {}, False)
    assert shown.whole


def test_another_contract_than_the_one_asked_for_is_none() -> None:
    assert contract_of({"contract_id": "c"}, "c") == {"contract_id": "c"}
    others: list[Any] = [{"contract_id": "d"}, None, []]
    for answer in others:
        with pytest.raises(ValueError, match="another object"):
            contract_of(answer, "c")


@pytest.mark.parametrize(
    ("answer", "ids"),
    [
        ({"projects": [{"projectId": "p"}, {"projectId": "p"}, {"projectId": "q"}]}, ["p", "q"]),
        ({"projects": [{"projectId": 1}, {}, "p", {"projectId": ""}]}, []),
        ({"projects": [{"projectId": "x" * 201}]}, []),
        ({"projects": None}, []),
        (None, []),
    ],
)
def test_of_a_list_of_projects_what_are_ids_counts(answer: Any, ids: list[str]) -> None:
    assert listed_of(answer) == ids


def test_a_list_of_projects_is_bounded() -> None:
    rows = [{"projectId": str(one)} for one in range(LISTED_MAX + 1)]
    assert len(listed_of({"projects": rows})) == LISTED_MAX
