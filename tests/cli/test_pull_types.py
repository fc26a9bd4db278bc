import importlib.metadata
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli import pull_types
from cli.pull_generated import check_python
from cli.pull_types import (
    TYPESCRIPT_PACKAGE,
    GenerationFailed,
    TypesInput,
    generated,
    generator_of,
    types_input,
)
from proof.agreed import AgreedContract
from tests.cli.hostile_types import hostile_schema
from tests.cli.npx import stand_in
from tests.cli.test_pull_python import input_of

USER = {"name": "string", "friends": [{"name": "string"}]}
SLEEPS = "#!/bin/sh\nsleep 600 & echo $! > {calls!r}.pid; wait\n"
OFFLINE = "#!/bin/sh\necho 'npm error code ENOTFOUND' >&2; exit 1\n"


def test_types_of_python() -> None:
    made = generated("python", {"user": input_of(USER, "User"), "b": input_of({"c": "null"}, "B")})
    assert made.failed == {}
    assert made.texts["user"] == (
        "# Made by cacp pull of User (version 1): change the contract, not this.\n"
        "from __future__ import annotations\n\nfrom typing import TypedDict\n\n\n"
        "class Friend(TypedDict):\n    name: str\n\n\n"
        "class User(TypedDict):\n    name: str\n    friends: list[Friend]\n"
    )
    assert generated("python", {"user": input_of(USER, "User")}).texts["user"] == made.texts["user"]
    assert generated("python", {}) == ({}, {})


def test_what_has_no_types_and_why() -> None:
    def why(content: dict[str, Any]) -> TypesInput | str:
        return types_input(AgreedContract("A", content))

    assert why({"sdl": "type Query { a: Int }"}) == (
        "graphql has generators of its own, which take its text"
    )
    assert why({"some": ["words"]}) == "nothing in it has a schema"
    properties: dict[str, Any] = {"a" * 1_000 + str(number): {} for number in range(5_000)}
    assert why({"type": "object", "properties": properties}) == (
        "its schemas have more than 5,000,000 characters"
    )
    definitions = {f"D{number}": {"type": "string"} for number in range(2_000)}
    members = {name: {"$ref": f"#/$defs/{name}"} for name in definitions}
    assert why({"type": "object", "properties": members, "$defs": definitions}) == (
        "it has more than 2,000 schemas"
    )


def test_a_header_is_one_line_without_an_end_of_comments() -> None:
    header = input_of(USER, "x */ evil()\nimport os\u2028 \\").header
    assert header.isprintable()
    assert "*/" not in header


def test_types_of_typescript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stand_in(tmp_path, monkeypatch)
    made = generated("typescript", {"user": input_of(USER, "User")})
    assert made.texts == {
        "user": "// Made by cacp pull of User (version 1): change the contract, not this.\n"
        "export type User = unknown;\n"
    }
    assert json.loads(calls.read_text())[:2] == ["--yes", TYPESCRIPT_PACKAGE]


def test_one_contract_keeps_no_other_from_its_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch)
    inputs = {name: input_of(USER, "User") for name in ("broken", "user")}
    made = generated("typescript", inputs)
    assert [*made.texts] == ["user"]
    assert made.failed == {"broken": "the generator can't: Error: it is broken"}
    assert generated("python", {"a": TypesInput("a", {"openapi": "3.1.0", "paths": 1})}).failed


def test_text_that_is_no_type_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull_types, "check_typescript", check_python)
    stand_in(tmp_path, monkeypatch)
    made = generated("typescript", {"user": input_of(USER, "User")})
    assert made.texts == {}
    assert made.failed["user"].startswith("what the generator made is refused: it is not Python")


def test_a_generator_that_takes_too_long_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = stand_in(tmp_path, monkeypatch, SLEEPS)
    monkeypatch.setattr(pull_types, "SECONDS_MAX", 0.5)
    with pytest.raises(GenerationFailed, match=r"npx took more than 0\.5 seconds to make types"):
        generated("typescript", {"user": input_of(USER, "User")})
    pid = Path(f"{calls}.pid")
    state = Path("/proc", pid.read_text().strip(), "stat") if pid.exists() else pid
    assert not state.exists() or state.read_text().split()[2] == "Z"


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = {"user": input_of(USER, "User")}
    stand_in(tmp_path, monkeypatch, OFFLINE)
    with pytest.raises(GenerationFailed, match=r"npx can't fetch openapi-typescript@.*ENOTFOUND"):
        generated("typescript", inputs)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GenerationFailed, match=r"need npx, of Node\.js 18 or newer"):
        generated("typescript", inputs)

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    assert str(generator_of("python")).startswith("datamodel-code-generator@")
    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert generator_of("python") is None
    with pytest.raises(GenerationFailed, match=r"pip install 'cacp-server\[codegen\]'"):
        generated("python", inputs)


@pytest.mark.soak
@pytest.mark.skipif(shutil.which("npx") is None, reason="Node.js has npx")
def test_the_real_generator_of_typescript_makes_what_its_compiler_takes(tmp_path: Path) -> None:
    inputs = {f"h{seed}": input_of(hostile_schema(seed), 'x"); evil(); ("') for seed in range(100)}
    made = generated("typescript", {"user": input_of(USER, "User"), **inputs})
    assert made.failed == {}
    assert "export type User = components['schemas']['User'];" in made.texts["user"]
    for name, text in made.texts.items():
        (tmp_path / f"{name}.d.ts").write_text(text)
    command = ["npx", "--yes", "-p", "typescript@5.9.3", "tsc", "--noEmit", "--strict"]
    files = sorted(path.name for path in tmp_path.glob("*.d.ts"))
    done = subprocess.run([*command, *files], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
