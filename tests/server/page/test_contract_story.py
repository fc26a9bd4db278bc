"""A contract as its page tells it."""

from typing import Any

import pytest

from server.page.contract_story import (
    RAW_MAX,
    WHY_MAX,
    deeds,
    in_order,
    json_text,
    packet_moment,
    proof,
    raw,
    standing,
    versions,
)

Json = dict[str, Any]
AT = "2026-01-01T00:00:0{}.000000+00:00"
FAILURE = {"command": "make test", "commit": "a" * 40, "runner": "aid://example.com/ci@1.0.0"}


def step(at: int, name: str, repo: str = "api", version: int = 1, **more: Any) -> Json:
    return {
        "timestamp": AT.format(at),
        "step": name,
        "version": version,
        "repoId": repo,
        "agentId": f"aid://example.com/{repo}@1.0.0",
        **more,
    }


def overview(status: str = "verified", **more: Any) -> Json:
    contract = {
        "version": 2,
        "status": status,
        "proposed_by": "api",
        "content": {"path": "/b"},
        "implementations": [],
        "history": [{"version": 1, "proposed_by": "api", "content": {"path": "/a"}}],
    }
    parties = [{"repoId": "api", "side": "provider"}, {"repoId": "web", "side": "consumer"}]
    return {
        "contract": contract,
        "parties": parties,
        "round": 1,
        "verifications": [],
        "receipts": [],
        "unproven": [],
    } | more


def check(repo: str, result: str = "success", round: int = 1) -> Json:
    return {"repoId": repo, "result": result, "round": round}


@pytest.mark.parametrize(
    ("status", "checks", "round", "work", "state", "by"),
    [
        ("negotiating", [], 1, None, "unagreed", []),
        ("agreed", [], 1, None, "unbuilt", []),
        ("agreed", [], 1, "in_progress", "building", []),
        ("agreed", [], 1, "complete", "built", []),
        ("implemented", [], 1, "complete", "built", []),
        ("verified", [check("web")], 1, "complete", "verified", ["web"]),
        ("verified", [check("api")], 1, "complete", "own_word", ["api"]),
        ("verified", [check("api"), check("web")], 1, "complete", "verified", ["web"]),
        # An older round proves nothing; the failure that opened the round is named.
        ("agreed", [check("web"), check("web", "failure")], 2, "needs_revision", "failed", ["web"]),
        ("implemented", [check("web")], 2, "complete", "built", []),
    ],
)
def test_whether_a_partys_work_is_proven(
    status: str, checks: list[Json], round: int, work: str | None, state: str, by: list[str]
) -> None:
    known = overview(status, verifications=checks, round=round)
    shown = proof("api", known, {"status": work} if work else None)
    assert (shown["state"], [each["repoId"] for each in shown["by"]]) == (state, by)


@pytest.mark.parametrize(
    ("repo", "proves", "lacking", "state"),
    [
        ("api", True, [], "proven"),
        ("web", True, [], "built"),
        ("api", False, [], "built"),
        ("api", True, [{"repoId": "api", "side": "consumer"}], "built"),
        ("api", True, [{"repoId": "api", "side": "provider", "failure": FAILURE}], "refuted"),
    ],
)
def test_a_receipt_proves_what_a_word_only_claims(
    repo: str, proves: bool, lacking: list[Json], state: str
) -> None:
    receipt = {"proves": proves, "receipt": {"repo": "api", "side": "provider"}}
    known = overview("implemented", receipts=[receipt], unproven=lacking)
    shown = proof(repo, known, {"status": "complete"})
    by = {"proven": [receipt], "refuted": [FAILURE]}
    assert shown == {"state": state, "by": by.get(state, [])}


def test_where_each_party_stands() -> None:
    steps = [
        step(1, "change_requested", "web"),
        step(2, "change_requested", "web", version=2),
        step(3, "agreed", "web", version=2),
    ]
    api, web = standing(overview("agreed"), steps)
    assert (api["answer"], api["proof"]["state"]) == ({"state": "author"}, "unbuilt")
    assert web["answer"] == {"state": "agreed", "at": AT.format(3)}
    assert standing(overview("proposed"), [])[1]["answer"] == {"state": "waiting"}


def test_each_version_has_what_was_said_of_it() -> None:
    steps = [
        step(1, "proposed"),
        step(2, "change_requested", "web", note="another path", details={"path": "/b"}),
        step(3, "rejected", "ops", details="no"),
        step(4, "updated", "web", version=2, note="lost the race"),
        step(5, "updated", version=2, note="as asked"),
        step(6, "completed", version=2),
        step(7, "failed", "web", version=2, details={"case": 1}),
    ]
    second, first = versions(overview(), steps, 9)
    assert (second["version"], second["written"]["note"]) == (2, "as asked")
    assert [each["step"] for each in second["outcomes"]] == ["completed", "failed"]
    assert second["outcomes"][1]["text"] == ('{\n  "case": 1\n}')
    asked, refused = first["responses"]
    assert [row["kind"] for row in asked["rows"]] == ["equal", "changed", "equal"]
    assert (refused["text"], "rows" in refused) == ("no", False)
    assert [each["version"] for each in versions(overview(), steps, 1)] == [2]


def test_the_story_is_newest_first_and_bounded() -> None:
    packet = {
        "type": "question",
        "content": {"question": "Why?" * WHY_MAX},
        "from_repo": "web",
        "from_agent": "w",
        "timestamp": AT.format(2),
    }
    names = {"api": "A"}
    last, asked, first = in_order(
        deeds([step(1, "proposed"), step(3, "agreed")], names), [packet_moment(packet, names)]
    )
    assert (first["did"], first["name"], "why" in first) == ("proposes version 1", "A", False)
    assert (asked["did"], len(asked["why"])) == ("asks", WHY_MAX)
    assert last["did"] == "agrees to version 1"


def test_raw_json_can_be_copied_and_is_bounded() -> None:
    shown = raw({"a": "\u202eb\u200b"}, 3)
    assert (shown["version"], shown["cut"]) == (3, 0)
    assert shown["text"] == '{\n  "a": "\\u202eb\\u200b"\n}'
    long = raw({"a": "x" * 2 * RAW_MAX}, 1)
    assert len(long["text"]) == RAW_MAX
    assert long["cut"] > RAW_MAX


def test_any_value_as_text() -> None:
    assert json_text(None, 9) is None
    assert json_text("a\u202eb", 9) == "a\\u202eb"
    assert json_text(["x" * 99], 5) == '[\n  "…'
