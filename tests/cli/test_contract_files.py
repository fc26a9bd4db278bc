"""Contracts in files, hostile ones too."""

import json
from pathlib import Path

import click
import pytest
import typer

from cli.contract_files import load_contract


def refused(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises((typer.Exit, click.exceptions.Exit)):
        load_contract(path)
    return capsys.readouterr().err


def test_texts_of_other_languages_are_members(tmp_path: Path) -> None:
    for name, member in (("a.graphql", "graphql"), ("a.gql", "graphql"), ("a.proto", "proto")):
        file = tmp_path / name
        file.write_text("text")
        assert load_contract(file) == {member: "text"}


def test_files_beside_it_are_read_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    refs = ["sub/b.json#/x", "sub/none.json", "https://example.com/c.json", "#/y"]
    (folder / "a.json").write_text(json.dumps({"refs": [{"$ref": ref} for ref in refs]}))
    (folder / "sub" / "b.json").write_text('{"x": {"$ref": "../d.yaml#/z"}}')
    (folder / "d.yaml").write_text("z: {type: string}")
    assert set(load_contract(folder / "a.json")["x-files"]) == {"sub/b.json", "d.yaml"}


def test_a_file_outside_its_folder_is_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "secret.json").write_text('{"a": 1}')
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    for name in ("../secret.json", "link.json"):
        (folder / "a.json").write_text(json.dumps({"$ref": name}))
        assert "outside its folder" in refused(folder / "a.json", capsys)


def test_aliases_of_aliases_are_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 30):
        again = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} [{again}]")
    file = tmp_path / "laughs.yaml"
    file.write_text("\n".join(lines))
    assert "aliases stand for more than" in refused(file, capsys)
    file.write_text("a: &a [*a]")
    assert "within itself" in refused(file, capsys)


def test_yaml_means_what_json_would(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("responses: {200: ok, true: yes}\nday: 2026-11-26\nbase: &b {x: 1}\nmore: *b")
    content = load_contract(file)
    assert content["responses"] == {"200": "ok", "true": True}
    assert content["day"] == "2026-11-26"
    assert content["more"] == {"x": 1}


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("a.yaml", "a: {maximum: .inf}", "at $.a.maximum is a number beyond 1.8e308"),
        ("a.yaml", "a: [1, .nan]", "at $.a[1] is no number"),
        ("a.yaml", f"a: 0x{'f' * 5_000}", "at $.a is a number beyond 1.8e308"),
        ("a.json", '{"a": NaN}', "at $.a is no number"),
        ("a.json", '{"a": -1e999}', "at $.a is a number beyond 1.8e308"),
        ("a.json", f'{{"a": 1{"0" * 400}}}', "at $.a is a number beyond 1.8e308"),
        ("a.yaml", "a: !!binary aGk=", "at $.a is a bytes"),
        ("a.yaml", "? !!binary aGk=\n: 1", "a member has a bytes for its name"),
    ],
)
def test_what_json_has_not_is_refused_with_its_place(
    name: str, text: str, where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    file.write_text(text)
    # The line is wrapped to the terminal.
    assert where in " ".join(refused(file, capsys).split())
