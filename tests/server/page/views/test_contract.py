"""The page of a contract."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from server.domain.canonical import digest
from server.domain.contract import current_of
from server.page.views import contract as contract_view
from server.store import contracts
from tests.server.page.browsing import Browser
from tests.server.page.views.look import look
from tests.support.in_process_node import InProcessNode
from tests.support.located import connect
from tests.support.node import Node
from tests.support.shop import Shop
from tests.support.team import FRONTEND, Team

BROWSER = {"accept": "text/html"}
EVIL = "<script>x</script><img src=x onerror=y> javascript:z \"' \u202eevil\u200b"
FIRST = {"method": "POST", "path": "/a", "request": {"code": "string"}, "response": {"n": "number"}}
SECOND = {**FIRST, "response": {"cents": "integer"}}


def page(node: Node, team: Team, contract: str, query: str = "") -> Any:
    at = f"/ui/projects/{team.project}/contracts/{contract}"
    return node.http.get(at + query, headers=BROWSER)


def propose(team: Team, content: dict[str, Any], name: str = "Apply") -> str:
    made = team.backend("contract/propose", type="api_endpoint", name=name, content=content)
    return str(made["contractId"])


def test_a_first_version_says_who_must_answer(node: Node, team: Team) -> None:
    contract = propose(team, FIRST)
    shown = page(node, team, contract).text
    assert "must answer version 1" in shown
    assert "What changed" not in shown
    assert "no answer" in shown
    assert page(node, team, contract, "?raw=7").status_code == 404
    assert page(node, team, "nothing").status_code == 404


@pytest.fixture
def built(team: Team) -> str:
    """A contract of two versions, of which the second failed once and is built again."""
    contract = propose(team, FIRST)
    at = {"contractId": contract}
    team.frontend(
        "contract/respond",
        **at,
        action="request_change",
        comment="Send cents",
        suggestedChange={"response": {"n": None, "cents": "integer"}},
    )
    team.backend("contract/update", **at, content=SECOND, changeNote="Cents, as asked")
    team.frontend("context/askQuestion", question="Per cart?", relatedContracts=[contract])
    team.frontend("contract/respond", **at, action="agree")
    for agent in (team.backend, team.frontend):
        agent("implementation/complete", **at, files=["a.py"], notes="a route")
    failed = {"result": "failure", "notes": "It answers 500", "failureDetails": {"code": "NOPE"}}
    team.frontend("implementation/verify", **at, **failed)
    for agent in (team.backend, team.frontend):
        agent("implementation/complete", **at, files=["a.py"])
    return contract


def test_the_whole_story(node: Node, team: Team, built: str) -> None:
    shown = page(node, team, built).text
    for words in (
        "may verify version 2",
        "built, verified by nobody",
        "required member removed",
        "Send cents",
        "Beside version 1.",
        "It answers 500",
        "&#34;code&#34;: &#34;NOPE&#34;",
        "Cents, as asked",
        "Per cart?",
        "asks for a change to version 1",
        "has implemented it (round 2)",
    ):
        assert words in shown, words
    twin = node.http.get(f"/ui/projects/{team.project}/contracts/{built}.json").json()
    assert [(each["name"], each["side"]) for each in twin["parties"]] == [
        ("backend-api", "provider"),
        (FRONTEND, "consumer"),
    ]
    assert twin["difference"]["verdict"] == "breaking"
    assert twin["raw"]["content"] == SECOND


def test_it_says_who_verified_what_is_proven(node: Node, team: Team, built: str) -> None:
    verified = {"result": "success", "notes": "12 cases pass"}
    team.frontend("implementation/verify", contractId=built, **verified)
    shown = page(node, team, built).text
    assert "Nothing is left to do" in shown
    assert "by word: there is no receipt" in shown
    assert "12 cases pass" in shown


def test_versions_are_chosen_and_shown_raw(node: Node, team: Team, built: str) -> None:
    assert "Both versions have the same content" in page(node, team, built, "?from=2&to=2").text
    assert "From version 2 to 1" in page(node, team, built, "?from=2&to=1").text
    raw = page(node, team, built, "?raw=1").text
    assert "Version 1 as JSON" in raw
    assert "&#34;n&#34;: &#34;number&#34;" in raw
    assert page(node, team, built, "?from=9").status_code == 400


def test_a_page_of_the_story(node: Node, team: Team, built: str) -> None:
    shown = page(node, team, built, "?after=3")
    assert shown.status_code == 200
    assert "proposes version 1" in shown.text


def test_hostile_text_runs_nothing_and_hides_nothing(node: Node, team: Team) -> None:
    content = {EVIL: EVIL, "long": "x" * 100_000, "response": {"a": "string"}}
    contract = propose(team, content, name=EVIL)
    at = {"contractId": contract}
    suggested = {EVIL: [EVIL]}
    team.frontend(
        "contract/respond", **at, action="request_change", comment=EVIL, suggestedChange=suggested
    )
    after = {**content, EVIL: "other", "long": "x" * 100_000 + "y"}
    team.backend("contract/update", **at, content=after, changeNote=EVIL)
    team.frontend("contract/respond", **at, action="agree")
    for agent in (team.backend, team.frontend):
        agent("implementation/complete", **at, files=[EVIL], notes=EVIL, testEndpoint=EVIL)
    team.frontend(
        "implementation/verify", **at, result="failure", notes=EVIL, failureDetails={EVIL: 1}
    )
    shown = page(node, team, contract)
    assert shown.status_code == 200
    for markup in ("<script>x", "<img src=x", 'href="javascript:'):
        assert markup not in shown.text
    # In JSON, what can't be seen is written out.
    assert "\\u202eevil\\u200b" in shown.text
    assert "more characters" in shown.text
    assert len(shown.text) < 600_000


def test_a_version_that_lost_is_shown_beside_the_current_one(node: Node, team: Team) -> None:
    contract = propose(team, FIRST)
    team.backend("contract/update", contractId=contract, content=SECOND)
    with closing(connect(node.db)) as db:
        facts = contracts.facts_of(db, contract)
        header = contracts.header_of(db, team.project, contract)
        assert header is not None
        current = current_of(facts)
        content = {**SECOND, "path": "/lost"}
        lost = replace(
            current, digest=digest(content), content=content, stamp=current.stamp - 1, note=EVIL
        )
        contracts.add(db, team.project, contract, header, facts, [lost])
    shown = page(node, team, contract)
    assert "wrote another version 2" in shown.text
    assert "<del>lost</del>" in shown.text
    assert "<ins>a</ins>" in shown.text
    assert "<script>x" not in shown.text


def test_a_person_nudges_whom_it_waits_for(node: Node, team: Team) -> None:
    contract = propose(team, FIRST)
    at = f"/ui/projects/{team.project}/contracts/{contract}"
    person = Browser(node)
    assert "Nudge" not in person.get(at).text
    person.sign_in(node.key("aid://example.com/hugh", "", human=True))
    shown = person.get(at).text
    assert f"Nudge {FRONTEND}" in shown
    assert "Your key holds no repo of this project" in shown
    [item] = team.frontend("attention/list", kinds=["respond"])["items"]
    assert f'name="item" value="{item["id"]}"' in shown


def test_of_much_context_the_newest_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A packet may have a megabyte, and a contract many."""
    monkeypatch.setattr(contract_view, "PACKETS_AT_ONCE", 2)
    with InProcessNode(tmp_path) as desk:
        shop = Shop(desk)
        at = {"project_id": shop.project, "contract_id": shop.proposed()}
        for number in range(5):
            shop.call(
                "api",
                "context/share",
                type="decision",
                content={"decision": f"Decision {number}"},
                relatedContracts=[at["contract_id"]],
            )

        def told() -> tuple[list[str], bool]:
            shown, html = look(desk, "contract", shop.callers["web"], at)
            assert ("left out here" in html) == shown["leavesOutContext"]
            said = [each["why"] for each in shown["moments"] if each["step"] == "decision"]
            return said, shown["leavesOutContext"]

        assert told() == ([f"Decision {number}" for number in (4, 3, 2, 1, 0)], False)
        monkeypatch.setattr(contract_view, "PACKET_BYTES", 1)
        assert told() == (["Decision 4", "Decision 3"], True)
