import json
from typing import Any

import pytest
from hypothesis import given

from cli.client import NodeClient
from cli.project_choice import NoSuchName
from cli.pull_contracts import (
    AgreedContents,
    agreed_contents,
    content_text,
    contract_files,
    pulled_files,
)
from cli.pull_lock import LockedProject
from tests.cli.npx import stand_in
from tests.support.contents import CONTENTS
from tests.support.node import REPO, Node
from tests.support.team import Team

PROJECT = LockedProject(id="01", name="P")
MODEL = {"email": "string"}


def contents(*contracts: tuple[str, dict[str, Any]], version: int = 1) -> AgreedContents:
    answers = [
        {
            "contractId": name,
            "type": "custom",
            "name": name,
            "version": version,
            "digest": "a" * 64,
            "content": content,
        }
        for name, content in contracts
    ]
    return AgreedContents(PROJECT, None, answers)


@given(CONTENTS)
def test_a_file_has_the_content(content: dict[str, Any]) -> None:
    text = content_text(content)
    assert json.loads(text) == content
    assert all(line.isprintable() for line in text.splitlines())
    assert content_text(dict(reversed(content.items()))) == text
    text.encode()


def test_what_a_node_has_agreed(node: Node, team: Team) -> None:
    agreed = team.agreed(name="Users", content=MODEL)
    other = team.proposed(name="Draft", content=MODEL)
    with NodeClient(node.url) as client:
        whole = agreed_contents(client, team.project, None)
        assert (whole.project.name, whole.repo) == ("User Auth", None)
        assert [contract["contractId"] for contract in whole.contracts] == [agreed]
        assert whole.reopened == {other}
        assert agreed_contents(client, team.project, REPO.upper()).repo == REPO
        with pytest.raises(NoSuchName, match=r"no repo here is named frontend-ap, .* did you mean"):
            agreed_contents(client, team.project, "frontend-ap")
    ((locked),) = whole.locked(pulled_files(whole, contract_files(whole), [], None, {}).lock)
    assert (locked.name, locked.dialect, locked.version) == ("Users", "shorthand", 1)
    assert locked.digest == whole.contracts[0]["digest"]


def test_a_contract_that_is_negotiated_again_stays() -> None:
    first = contents(("a", MODEL), ("b", MODEL))
    pulled = pulled_files(first, contract_files(first), [], None, {})
    second = contents(("b", MODEL))._replace(reopened=frozenset({"a", "never pulled"}))
    again = pulled_files(second, contract_files(second), [], pulled.lock, pulled.texts)
    assert (again.lock, again.texts) == (pulled.lock, pulled.texts)
    assert {contract.id for contract in second.locked(pulled.lock)} == {"a", "b"}
    gone = pulled_files(contents(("b", MODEL)), contract_files(second), [], pulled.lock, {})
    assert [contract.id for contract in gone.lock.contracts] == ["b"]


def test_types_are_made_only_of_what_has_changed(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = stand_in(tmp_path, monkeypatch)
    first = contents(("a", MODEL), ("b", MODEL))
    listed = contract_files(first)
    disk: dict[str, str | None] = {f".cacp/typescript/{name}.d.ts": None for name in "ab"}
    pulled = pulled_files(first, listed, ["typescript"], None, disk)
    assert len(calls.read_text().splitlines()) == 1
    assert {*pulled.texts} == {*disk, ".cacp/contracts/a.json", ".cacp/contracts/b.json"}
    again = pulled_files(first, listed, ["typescript"], pulled.lock, pulled.texts)
    assert again.lock == pulled.lock
    assert len(calls.read_text().splitlines()) == 1
    edited = {**pulled.texts, ".cacp/typescript/b.d.ts": "edited"}
    mended = pulled_files(first, listed, ["typescript"], pulled.lock, edited)
    assert (mended.lock, mended.texts) == (pulled.lock, pulled.texts)
    assert len(calls.read_text().splitlines()) == 2


def test_why_a_contract_has_no_types_is_told(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch)
    given = contents(("broken", MODEL), ("a", MODEL), ("g", {"sdl": "type Query { a: Int }"}))
    disk: dict[str, str | None] = {f".cacp/typescript/{n}.d.ts": None for n in ("broken", "a")}
    pulled = pulled_files(given, contract_files(given), ["typescript"], None, disk)
    assert [*pulled.untyped] == ["g", "broken"]
    assert pulled.untyped["broken"] == "typescript: the generator can't: Error: it is broken"
    assert [contract.id for contract in pulled.lock.contracts if contract.types] == ["a"]
    assert pulled_files(given, contract_files(given), [], None, {}).untyped == {}


def test_proto_files_that_stand_nowhere_else_are_counted() -> None:
    files = dict.fromkeys(("a.proto", "../b.proto"), 'syntax = "proto3"; message A {}')
    given = contents(("a", {"files": files}))
    assert pulled_files(given, contract_files(given), [], None, {}).unwritten == {"a": 1}
