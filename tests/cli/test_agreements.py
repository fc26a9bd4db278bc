import importlib.util
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.agreements import NOT_RUN, need_proof, of_contract, of_files, of_project, tell_doubts
from cli.client import NodeClient
from proof.agreed import AgreedContract
from tests.support.node import Node
from tests.support.team import Team

CONTENT = {"method": "GET", "path": "/a", "response": {"n": "integer"}}


def test_contracts_come_from_files(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("method: GET\npath: /a\nresponse:\n  n: integer\n")
    (contract,) = of_files([path])
    assert (contract.name, contract.content, contract.contract_id) == ("a.yaml", CONTENT, None)


def test_contracts_come_from_a_node(node: Node, team: Team, capsys: Any) -> None:
    agreed = team.agreed(name="Get a", content=CONTENT)
    proposed = team.proposed(name="Get b", content=CONTENT | {"path": "/b"})
    with NodeClient(node.url) as client:
        (contract,) = of_project(client, team.project)
        assert (contract.name, contract.contract_id, contract.version) == ("Get a", agreed, 1)
        assert contract.content == CONTENT
        assert capsys.readouterr().err == ""
        assert of_contract(client, proposed).content["path"] == "/b"
    assert "Get b is proposed, not agreed" in capsys.readouterr().err


def test_a_project_without_agreed_contracts_ends_the_command(
    node: Node, team: Team, capsys: Any
) -> None:
    team.proposed(name="Get b", content=CONTENT)
    with NodeClient(node.url) as client:
        with pytest.raises(typer.Exit):
            of_project(client, team.project)
        with pytest.raises(typer.Exit):
            of_contract(client, team.project)
    shown = capsys.readouterr().err
    assert "the project has no agreed contract yet; `cacp contracts` lists them" in shown
    assert "is a project: name one of its contracts" in shown


def test_a_contract_that_is_negotiated_again_counts_as_it_was_agreed(
    node: Node, team: Team, capsys: Any
) -> None:
    contract = team.agreed(name="Get a", content=CONTENT)
    team.backend("contract/respond", contractId=contract, action="request_change", comment="More")
    with NodeClient(node.url) as client:
        (before,) = of_project(client, team.project)
        assert (before.contract_id, before.version, before.content) == (contract, 1, CONTENT)
        assert "Get a is being negotiated again (version 1 was agreed)" in capsys.readouterr().err
        # Who alone had agreed doesn't any more: of that no agreement is left.
        team.frontend("contract/respond", contractId=contract, action="request_change", comment="x")
        with pytest.raises(typer.Exit):
            of_project(client, team.project)
    assert "no agreed contract: Get a is being negotiated" in capsys.readouterr().err


def test_what_was_begun_was_agreed(node: Node, team: Team, capsys: Any) -> None:
    contract = team.implemented(name="Get a", content=CONTENT)
    team.frontend("contract/respond", contractId=contract, action="request_change", comment="More")
    with NodeClient(node.url) as client:
        (before,) = of_project(client, team.project)
    assert (before.contract_id, before.version, before.content) == (contract, 1, CONTENT)
    assert "Get a is being negotiated again (version 1 was agreed)" in capsys.readouterr().err


def test_completions_are_of_the_current_round(node: Node, team: Team) -> None:
    contract = team.implemented(name="Get a", content=CONTENT, commit="a" * 40)
    works = team.contract(contract)["implementations"]
    with NodeClient(node.url) as client:
        (taken,) = of_project(client, team.project)
        assert taken.completions == {work["repo_id"]: work["completed_at"] for work in works}
        team.backend("implementation/verify", contractId=contract, result="failure", notes="No.")
        (taken,) = of_project(client, team.project)
        assert taken.completions == {}


def test_doubts_are_told_and_counted(capsys: Any) -> None:
    words = {f"m{number}": f"words {number}" for number in range(8)}
    tell_doubts(AgreedContract("A", CONTENT | {"response": words}))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6
    assert 'cacp: A: response/m0: "words 0" names no type' in lines[0]
    assert "3 more such doubts are not listed" in lines[5]


def test_without_the_extra_it_is_said_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    need_proof("mock")
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "jsonschema_rs" else real(name)
    )
    with pytest.raises(typer.Exit) as ended:
        need_proof("mock")
    assert ended.value.exit_code == NOT_RUN
    assert capsys.readouterr().err == (
        "cacp: `cacp mock` needs jsonschema_rs, of the extra `proof` of this package: "
        "pip install 'cacp-server[proof]'\n"
    )
