"""Dialects of contents, and what an update answers of them (design, N2)."""

import pytest

from tests.server.methods.refusals import refused
from tests.support.node import RpcError
from tests.support.team import CONTENT, FRONTEND, Team

NEXT = CONTENT | {"path": "/api/v2/users/profile"}
OPENAPI = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {}}


def test_a_content_that_is_invalid_in_its_declared_dialect_is_refused_by_its_path(
    team: Team,
) -> None:
    wrong = OPENAPI | {"paths": {"/a": {"get": {"responses": {"200": "ok"}}}}}
    with pytest.raises(RpcError) as error:
        team.proposed(content=wrong, dialect="openapi")
    assert error.value.data["path"] == 'content.paths["/a"].get.responses["200"]'
    assert error.value.data["problems"]
    # Nobody said what it is: it is taken, with a warning.
    made = team.backend("contract/propose", type="custom", name="n", content=wrong)
    assert made["dialect"] == "openapi"
    assert made["warnings"][0]["path"].endswith('["200"]')


def test_a_dialect_that_was_declared_holds_for_the_next_versions(team: Team) -> None:
    contract = team.proposed(content=OPENAPI, dialect="openapi")
    with refused(-32602, "invalid_content"):
        team.backend("contract/update", contractId=contract, content={"paths": 1})
    team.backend("contract/update", contractId=contract, content={"a": "string"}, dialect="opaque")
    assert team.contract(contract)["version"] == 2


def test_an_update_is_compared_with_the_version_that_it_replaces(team: Team) -> None:
    contract = team.proposed()
    team.backend("contract/update", contractId=contract, content=NEXT)
    back = team.backend("contract/update", contractId=contract, content=CONTENT)
    assert (back["version"], back["comparison"]["against"]) == (3, 2)
    assert (back["comparison"]["verdict"], back["comparison"]["concerns"]) == (
        "breaking",
        [FRONTEND],
    )


def test_a_dry_run_tells_whom_an_update_burdens_and_writes_nothing(team: Team) -> None:
    contract = team.proposed()
    given = {"contractId": contract, "content": NEXT, "dryRun": True}
    answer = team.backend("contract/update", **given)
    assert (answer["dryRun"], answer["version"], answer["status"]) == (True, 2, "proposed")
    assert answer["comparison"]["concerns"] == [FRONTEND]
    assert team.contract(contract)["version"] == 1
    # It refuses what the update would refuse.
    with refused(-32004, "stale_version"):
        team.backend("contract/update", **given, version=9)
    team.frontend("contract/respond", contractId=contract, action="agree")
    with refused(-32602, "illegal_transition"):
        team.backend("contract/update", **given)
