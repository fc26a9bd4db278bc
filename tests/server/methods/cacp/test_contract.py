"""cacp/contract/* (CACP 2.0, Contract Methods; design §5)."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.server.methods.refusals import refused
from tests.support.node import REPO, Node, RpcError
from tests.support.team import CONTENT, FRONTEND, FRONTEND_AGENT, Team

NEXT = CONTENT | {"path": "/api/v2/users/profile"}


# --- cacp/contract/propose ----------------------------------------------------------------------


def test_propose(team: Team) -> None:
    """CACP 2.0, cacp/contract/propose."""
    made = team.backend("contract/propose", type="api_endpoint", name="Get User", content=CONTENT)
    assert made == {
        "contractId": made["contractId"],
        "version": 1,
        "status": "proposed",
        "roles": {REPO: "provider", FRONTEND: "consumer"},
        "dialect": "endpoint",
        "warnings": [],
    }


@pytest.mark.parametrize(
    "type_",
    ["api_endpoint", "event_schema", "data_model", "config_spec", "rpc_interface", "custom"],
)
def test_propose_takes_each_contract_type(team: Team, type_: str) -> None:
    """CACP 2.0, ContractType."""
    assert team.contract(team.proposed(type=type_))["type"] == type_


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "endpoint"},
        {"name": ""},
        {"content": "text"},
        {"content": None},
        {"content": [1]},
        {"parties": []},
    ],
)
def test_propose_refuses_bad_params(team: Team, wrong: dict[str, Any]) -> None:
    with refused(-32602, "invalid_params"):
        team.proposed(**wrong)


def test_content_beyond_canonical_json_is_refused_by_its_path(team: Team) -> None:
    """Design §5: integers beyond 2^53 have no canonical form: refuse them, naming the path."""
    with refused(-32602, "invalid_params", path="content.limits[1].max"):
        team.proposed(content={"limits": [1, {"max": 2**53}]})
    with refused(-32602, "invalid_params"):
        team.proposed(content={"a": [[[[]]]] and nested(70)})


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else []


def test_parties_are_named_by_name_or_id(team: Team) -> None:
    team.backend("project/addRepo", repo={"name": "mobile", "role": "mobile", "language": "swift"})
    for party in ("mobile", team.repo_id("mobile")):
        contract = team.proposed(parties=[REPO, party])
        with refused(-32003, "not_a_party", parties=[team.repo_id(REPO), team.repo_id("mobile")]):
            team.frontend("contract/respond", contractId=contract, action="agree")
    with refused(-32602, "invalid_params", path="parties"):
        team.proposed(parties=["nobody"])


# --- cacp/contract/respond ----------------------------------------------------------------------


def test_agree(team: Team) -> None:
    """CACP 2.0, cacp/contract/respond."""
    contract = team.proposed()
    answer = team.frontend(
        "contract/respond", contractId=contract, action="agree", comment="Looks good!"
    )
    assert answer == {
        "status": "agreed",
        "version": 1,
        "contractStatus": "agreed",
        "contractVersion": 1,
    }
    assert team.contract(contract)["status"] == "agreed"


def test_request_change(team: Team) -> None:
    contract = team.proposed()
    answer = team.frontend(
        "contract/respond",
        contractId=contract,
        action="request_change",
        comment="Make avatar nullable",
        suggestedChange={"avatar": None},
    )
    assert (answer["status"], answer["contractStatus"]) == ("change_requested", "negotiating")


def test_reject(team: Team) -> None:
    """Design §5: reject: back to proposed, recorded."""
    contract = team.proposed()
    answer = team.frontend("contract/respond", contractId=contract, action="reject")
    assert (answer["status"], answer["contractStatus"]) == ("rejected", "proposed")


def test_the_author_of_the_current_version_cannot_agree_to_it(team: Team) -> None:
    contract = team.proposed()
    with refused(-32003, "own_version", parties=[team.repo_id(FRONTEND)]):
        team.backend("contract/respond", contractId=contract, action="agree")
    team.frontend("contract/respond", contractId=contract, action="request_change")
    team.frontend("contract/update", contractId=contract, content=NEXT)
    with refused(-32003, "own_version", parties=[team.repo_id(REPO)]):
        team.frontend("contract/respond", contractId=contract, action="agree")
    team.backend("contract/respond", contractId=contract, action="agree")


def test_one_agent_with_two_repos_is_still_one_author(team: Team) -> None:
    """Design §5: compare agents without their version."""
    team.backend("project/addRepo", repo={"name": "second", "role": "r", "language": "l"})
    team.backend("project/join", repoName="second")
    contract = team.proposed(parties=[REPO, "second"])
    with refused(-32003, "own_version"):
        team.backend("contract/respond", contractId=contract, action="agree")


def test_alone_an_author_agrees_to_its_own_version(team: Team) -> None:
    contract = team.proposed(parties=[REPO])
    answer = team.backend("contract/respond", contractId=contract, action="agree")
    assert answer["contractStatus"] == "agreed"


def test_a_project_may_ask_for_every_partys_agreement(team: Team) -> None:
    """Design §5: agreementPolicy any | all."""
    strict = Team.on(team.node, team.key, agreementPolicy="all")
    strict.backend("project/addRepo", repo={"name": "mobile", "role": "r", "language": "l"})
    mobile = strict.node.key("aid://example.com/mobile@1.0.0", "mobile")
    at = {"projectId": strict.project, "repoName": "mobile"}
    strict.node.call("cacp/project/join", key=mobile, **at)
    contract = strict.proposed()
    first = strict.frontend("contract/respond", contractId=contract, action="agree")
    assert (first["status"], first["contractStatus"]) == ("proposed", "proposed")
    second = strict.node.call(
        "cacp/contract/respond",
        key=mobile,
        projectId=strict.project,
        contractId=contract,
        action="agree",
    )
    assert second["contractStatus"] == "agreed"


def test_a_response_to_a_version_that_is_no_longer_current_is_a_conflict(team: Team) -> None:
    contract = team.proposed()
    team.backend("contract/update", contractId=contract, content=NEXT)
    with refused(-32004, "stale_version", currentVersion=2):
        team.frontend("contract/respond", contractId=contract, action="agree", version=1)


@dataclass
class Third:
    """A third party of a fresh project of a node."""

    team: Team
    key: str

    @classmethod
    def on(cls, team: Team) -> "Third":
        fresh = Team.on(team.node, team.key)
        fresh.backend("project/addRepo", repo={"name": "mobile", "role": "r", "language": "l"})
        third = cls(fresh, fresh.node.key("aid://example.com/mobile@1.0.0", "mobile"))
        third.call("project/join", repoName="mobile")
        return third

    def call(self, method: str, **params: Any) -> Any:
        given = {"projectId": self.team.project, **params}
        return self.team.node.call(f"cacp/{method}", key=self.key, **given)


def test_an_agreement_against_anothers_word_is_recorded_and_not_called_agreed(team: Team) -> None:
    """CACP 2.0, cacp/contract/respond: a client of the text reads `status` and nothing else."""
    third = Third.on(team)
    for action, status in [("request_change", "negotiating"), ("reject", "proposed")]:
        contract = third.team.proposed()
        third.team.frontend("contract/respond", contractId=contract, action=action)
        answer = third.call("contract/respond", contractId=contract, action="agree")
        assert answer == {
            "status": status,
            "version": 1,
            "contractStatus": status,
            "contractVersion": 1,
        }
        steps = third.team.backend("contract/timeline", contractId=contract)["timeline"]
        assert [entry["step"] for entry in steps][-1] == "agreed"
        third.team.frontend("contract/respond", contractId=contract, action="agree")
        assert third.team.contract(contract)["status"] == "agreed"


def test_the_authors_reject_in_negotiation_takes_no_request_back(team: Team) -> None:
    """Design §7: an outstanding request_change → negotiating."""
    contract = team.proposed()
    team.frontend("contract/respond", contractId=contract, action="request_change")
    answer = team.backend("contract/respond", contractId=contract, action="reject")
    assert (answer["status"], answer["contractStatus"]) == ("rejected", "negotiating")


def test_a_third_partys_agreement_is_recorded_without_a_move(team: Team) -> None:
    third = Third.on(team)
    contract = third.team.agreed()
    for status in ("agreed", "implemented", "verified"):
        if status == "implemented":
            for agent in (third.team.backend, third.team.frontend, third.call):
                agent("implementation/complete", contractId=contract, files=["a"])
        if status == "verified":
            third.call("implementation/verify", contractId=contract, result="success")
        answer = third.call(
            "contract/respond", contractId=contract, action="agree", comment=f"When {status}"
        )
        assert (answer["status"], answer["contractStatus"]) == ("agreed", status)
        steps = third.team.backend("contract/timeline", contractId=contract)["timeline"]
        assert f"When {status}" in [entry.get("note") for entry in steps]


def test_a_retry_is_answered_as_the_contract_stands_and_writes_nothing(team: Team) -> None:
    contract = team.proposed()

    def twice(agent: Any, method: str, status: str, contract_status: str, **params: Any) -> None:
        first = agent(method, contractId=contract, **params)
        newest = team.node.query("SELECT max(seq) FROM changes")
        again = agent(method, contractId=contract, **params)
        assert first == again
        assert (again["status"], again["contractStatus"]) == (status, contract_status)
        assert team.node.query("SELECT max(seq) FROM changes") == newest

    answer, work, found = "contract/respond", "implementation/complete", "implementation/verify"
    twice(team.frontend, answer, "rejected", "proposed", action="reject", comment="no")
    twice(team.frontend, answer, "change_requested", "negotiating", action="request_change")
    twice(team.frontend, answer, "agreed", "agreed", action="agree", comment="yes")
    twice(team.frontend, "implementation/start", "started", "agreed", plan="p")
    twice(team.frontend, work, "complete", "agreed", files=["a"])
    twice(team.backend, work, "complete", "implemented", files=["b"])
    twice(team.backend, found, "failed", "agreed", result="failure", notes="n")
    twice(team.backend, work, "complete", "agreed", files=["b"])
    twice(team.frontend, work, "complete", "implemented", files=["a"])
    twice(team.backend, found, "partial", "implemented", result="partial")
    twice(team.backend, found, "verified", "verified", result="success")
    twice(team.frontend, work, "complete", "verified", files=["a"])
    twice(team.frontend, answer, "agreed", "verified", action="agree", comment="yes")


def test_an_illegal_step_says_the_state_and_what_is_allowed(team: Team) -> None:
    """illegal_transition, with from and allowed."""
    contract = team.agreed()
    with refused(
        -32602,
        "illegal_transition",
        **{"from": "agreed", "action": "reject"},
        allowed=["agree", "request_change", "start", "complete"],
    ):
        team.frontend("contract/respond", contractId=contract, action="reject")


@pytest.mark.parametrize("state", ["proposed", "agreed", "implemented"])
def test_request_change_reopens_a_contract_in_every_state(team: Team, state: str) -> None:
    contract = getattr(team, state)()
    answer = team.frontend("contract/respond", contractId=contract, action="request_change")
    assert answer["contractStatus"] == "negotiating"


def test_an_unknown_action_is_refused(team: Team) -> None:
    with refused(-32602, "invalid_params"):
        team.frontend("contract/respond", contractId=team.proposed(), action="accept")


def test_two_that_act_at_once_make_one_legal_history(team: Team) -> None:
    """Issue: exactly one legal history."""
    contract = team.proposed()

    def act(number: int) -> str:
        try:
            if number % 2:
                team.frontend("contract/respond", contractId=contract, action="agree", version=1)
                return "agreed"
            team.backend("contract/update", contractId=contract, content={"n": number}, version=1)
            return "updated"
        except RpcError as error:
            return str(error.reason)

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(act, range(12)))
    # Whoever agrees once more to what is agreed says nothing new.
    assert outcomes.count("updated") + ("agreed" in outcomes) == 1
    assert set(outcomes) <= {"updated", "agreed", "stale_version", "illegal_transition"}


# --- cacp/contract/update -----------------------------------------------------------------------


def test_update(team: Team) -> None:
    """CACP 2.0, cacp/contract/update."""
    contract = team.proposed()
    team.frontend("contract/respond", contractId=contract, action="request_change")
    answer = team.backend(
        "contract/update", contractId=contract, content=NEXT, changeNote="Made avatar nullable"
    )
    comparison = answer.pop("comparison")
    assert answer == {
        "contractId": contract,
        "version": 2,
        "status": "proposed",
        "roles": {REPO: "provider", FRONTEND: "consumer"},
        "dialect": "endpoint",
        "warnings": [],
    }
    assert team.contract(contract)["content"] == NEXT
    assert (comparison["against"], comparison["verdict"]) == (1, "breaking")
    assert comparison["concerns"] == [FRONTEND]
    assert [change["rule"] for change in comparison["changes"]] == ["path_changed"]


@pytest.mark.parametrize("spelling", ["changeNote", "changeNotes"])
def test_a_change_note_is_taken_in_both_spellings(team: Team, spelling: str) -> None:
    """Design §5: changeNotes beside changeNote."""
    contract = team.proposed()
    team.backend("contract/update", contractId=contract, content=NEXT, **{spelling: "why"})
    team.backend("contract/update", contractId=contract, content=CONTENT)
    history = team.contract(contract, includeHistory=True)["history"]
    assert [version.get("change_notes") for version in history] == [None, "why"]


def test_an_update_voids_what_was_said_of_the_version_before(team: Team) -> None:
    contract = team.proposed()
    team.frontend("contract/respond", contractId=contract, action="reject")
    team.backend("contract/update", contractId=contract, content=NEXT)
    team.frontend("contract/respond", contractId=contract, action="agree")
    assert team.contract(contract)["status"] == "agreed"


def test_an_agreed_contract_is_updated_only_after_request_change(team: Team) -> None:
    """Design §5: otherwise refused with the way forward."""
    contract = team.agreed()
    with refused(-32602, "illegal_transition", **{"from": "agreed", "action": "update"}):
        team.backend("contract/update", contractId=contract, content=NEXT)
    team.backend("contract/respond", contractId=contract, action="request_change")
    assert team.backend("contract/update", contractId=contract, content=NEXT)["version"] == 2


def test_parties_are_frozen_into_each_version(team: Team) -> None:
    """Design §5: a repo that comes later is bound from the next version on."""
    contract = team.agreed()
    team.backend("project/addRepo", repo={"name": "late", "role": "r", "language": "l"})
    team.backend("implementation/complete", contractId=contract, files=["a"])
    team.frontend("implementation/complete", contractId=contract, files=["b"])
    assert team.contract(contract)["status"] == "implemented"


def test_an_update_of_a_stale_version_is_a_conflict(team: Team) -> None:
    contract = team.proposed()
    team.backend("contract/update", contractId=contract, content=NEXT, version=1)
    with refused(-32004, "stale_version", currentVersion=2):
        team.backend("contract/update", contractId=contract, content=CONTENT, version=1)


# --- cacp/contract/get --------------------------------------------------------------------------


def test_get_is_the_whole_contract_without_its_history(team: Team) -> None:
    """CACP 2.0, Contract; design §5: without includeHistory no history."""
    contract = team.proposed()
    got = team.contract(contract)
    assert got == {
        "contract_id": contract,
        "type": "api_endpoint",
        "name": "Get User Profile",
        "version": 1,
        "status": "proposed",
        "content": CONTENT,
        "proposed_by": team.repo_id(REPO),
        "implementations": [],
        "created_at": got["created_at"],
        "updated_at": got["created_at"],
    }


def test_history_holds_the_versions_before_the_current_one(team: Team) -> None:
    contract = team.proposed()
    first = team.contract(contract)
    assert team.contract(contract, includeHistory=True)["history"] == []
    team.frontend("contract/update", contractId=contract, content=NEXT, changeNote="v2")
    got = team.contract(contract, includeHistory=True)
    assert got["proposed_by"] == team.repo_id(FRONTEND)
    assert got["updated_at"] > got["created_at"]
    assert got["history"] == [
        {
            "version": 1,
            "content": CONTENT,
            "proposed_by": team.repo_id(REPO),
            "timestamp": first["created_at"],
        }
    ]
    assert team.backend("project/get")["contracts"] == [got]


def test_content_comes_back_as_it_was_sent(team: Team) -> None:
    content = {"ü": "日本", "n": [1, 1.5, -0.0, 1e-7, True, None, ""], "": {"a": {}}}
    assert team.contract(team.proposed(content=content))["content"] == content


def test_a_contract_of_another_project_is_not_found(team: Team) -> None:
    contract = Team.on(team.node, team.key).proposed()
    calls: dict[str, dict[str, Any]] = {
        "contract/get": {},
        "contract/respond": {"action": "agree"},
        "contract/update": {"content": {}},
        "implementation/getStatus": {},
        "implementation/start": {},
    }
    for method, params in calls.items():
        with refused(-32602, "not_found", kind="contract", contractId=contract):
            team.frontend(method, contractId=contract, **params)


# --- cacp/contract/list and conflicts -----------------------------------------------------------


def test_list(team: Team) -> None:
    """Design §5: items {contractId, type, name, version, status, proposedBy}."""
    agreed = team.agreed()
    model = team.proposed(type="data_model", name="User")
    item = {
        "contractId": model,
        "type": "data_model",
        "name": "User",
        "version": 1,
        "status": "proposed",
        "proposedBy": team.repo_id(REPO),
        "proposedByName": REPO,
    }
    assert item in team.backend("contract/list")["contracts"]
    assert team.backend("contract/list", type="data_model") == {"contracts": [item]}
    [found] = team.backend("contract/list", status="agreed")["contracts"]
    assert found["contractId"] == agreed
    assert team.backend("contract/list", status="verified") == {"contracts": []}


def test_list_goes_page_by_page(team: Team) -> None:
    made = [team.proposed() for _ in range(5)]
    first = team.backend("contract/list", limit=3)
    rest = team.backend("contract/list", limit=3, cursor=first["nextCursor"])
    assert "nextCursor" not in rest
    listed = [one["contractId"] for one in first["contracts"] + rest["contracts"]]
    assert sorted(listed) == sorted(made)


def test_versions_in_one_line_are_no_conflict(team: Team) -> None:
    """Design §7: a version that is not an ancestor of the current one lost a race."""
    contract = team.proposed()
    team.backend("contract/update", contractId=contract, content=NEXT)
    team.backend("contract/update", contractId=contract, content=CONTENT)
    assert team.backend("contract/conflicts") == {"conflicts": []}
    assert team.backend("contract/conflicts", contractId=contract) == {"conflicts": []}


def test_a_version_leaves_no_party_out(team: Team) -> None:
    """Else its author could agree, build and verify alone."""
    made = team.backend("contract/propose", type="custom", name="x", content={"a": 1})
    with refused(-32003, "party_left_out"):
        team.backend(
            "contract/update", contractId=made["contractId"], content={"a": 2}, parties=[REPO]
        )


def test_a_contract_takes_no_more_versions_than_a_read_can_carry(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        team = Team.on(node, node.key(FRONTEND_AGENT, FRONTEND))
        made = team.backend("contract/propose", type="custom", name="x", content={"a": 0})
        contract = {"contractId": made["contractId"]}
        for number in range(1, 7):
            team.backend("contract/update", **contract, content={"a": str(number) * 900_000})
        with refused(-32006, "too_large"):
            team.backend("contract/update", **contract, content={"a": 7})
        assert team.backend("contract/get", **contract)["version"] == 7
