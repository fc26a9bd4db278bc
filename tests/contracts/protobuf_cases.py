"""Changes of `.proto` files, with what buf 1.75.0 says of each (`protobuf_cases.json`), and random
ones."""

import json
import os
import re
import subprocess
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

BUF = os.environ.get("BUF")
"""buf's program, of the npm package @bufbuild/buf or another."""
RULES = ("WIRE_JSON", "MESSAGE_NO_DELETE", "ENUM_NO_DELETE", "SERVICE_NO_DELETE", "RPC_NO_DELETE")
"""The rules of buf that our verdict on consumers is held against."""

needs_buf = [
    pytest.mark.soak,
    pytest.mark.skipif(BUF is None, reason="BUF names no program, such as that of @bufbuild/buf"),
]

DIFFERENT = {
    "a oneof of another name": "The same fields exclude each other; only generated code changes.",
    "required in a response": "Consumers pass over a field that they don't know.",
    "not required in a request": "Providers that need the field no more take what is sent.",
    "an extension is gone": "An extension is a field: what comes in its place is taken for it.",
}
"""Cases in which we say otherwise than buf, and why."""


class ProtoCase(NamedTuple):
    """A change. `changes` are the rules that we find, each with its effect on consumers and on
    providers: b for breaking, c for compatible. `buf` are the rules that buf finds broken."""

    name: str
    syntax: str
    before: str
    after: str
    changes: dict[str, str]
    buf: list[str]

    def files(self) -> tuple[str, str]:
        before, after = (f'syntax = "{self.syntax}";\n{t}\n' for t in (self.before, self.after))
        return before, after


CASES = [
    ProtoCase(**case)
    for case in json.loads(Path(__file__).with_name("protobuf_cases.json").read_text())
]


def buf_breaking(folder: Path, before: str, after: str) -> list[str]:
    """The rules that a change breaks. `COMPILE` among them: one of the files is invalid."""
    config = f"version: v2\nbreaking:\n  use: [{', '.join(RULES)}]\n"
    for name, text in (("before", before), ("after", after)):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "buf.yaml").write_text(config)
        (folder / name / "a.proto").write_text(text)
    listed = subprocess.run(
        [str(BUF), "breaking", "after", "--against", "before", "--error-format", "json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if "is an invalid map" in listed.stderr:
        return ["COMPILE"]  # It finds that only when it has compiled the files.
    assert listed.returncode in (0, 100), listed.stderr
    return sorted({json.loads(line)["type"] for line in listed.stdout.splitlines()})


TYPES = (
    "int32", "uint32", "int64", "uint64", "sint32", "bool", "string", "bytes", "fixed32",
    "sfixed32", "double", "E0", "E1", "M0", "M1",
)  # fmt: skip
LABELS = {"proto2": ("optional", "repeated", "required"), "proto3": ("", "optional", "repeated")}
_STATEMENT = re.compile(r"oneof \w+ \{[^}]*\}|[^;{}]+;")
_DEFINITION = re.compile(r"(message|enum|service) (\w+) \{(.*)\}")


class RandomFiles:
    """Small `.proto` files, by a seed, and some edits of them, which may make them invalid."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.syntax = self.random.choice(("proto2", "proto3", "proto3"))

    def pair(self) -> tuple[str, str]:
        head = [f'syntax = "{self.syntax}";', "package p;"]
        before = [self.enum(f"E{n}") for n in range(2)] + [self.message(f"M{n}") for n in range(3)]
        if self.random.random() < 0.5:
            before.append(self.service())
        after = list(before)
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            place = self.random.randrange(len(after))
            after[place] = self.edited(after[place])
        return "\n".join(head + before) + "\n", "\n".join(head + after) + "\n"

    def enum(self, name: str) -> str:
        values = [f"{name}_A = 0;"]
        for number, letter in enumerate("BCD", 1):
            if self.random.random() < 0.6:
                values.append(f"{name}_{letter} = {number};")
            elif self.random.random() < 0.5:
                values += [f"reserved {number};", f'reserved "{name}_{letter}";']
        return f"enum {name} {{{' '.join(values)}}}"

    def message(self, name: str) -> str:
        numbers, names = self.random.sample(range(1, 9), 5), self.random.sample("abcdefgh", 5)
        made = [self.field(*pair) for pair in zip(names[:3], numbers, strict=False)]
        if self.random.random() < 0.4:
            made.append(f"oneof o {{{self.random.choice(TYPES)} {names[3]} = {numbers[3]};}}")
        if self.random.random() < 0.4:
            made.append(f"reserved {numbers[4]};")
        if self.random.random() < 0.4:
            made.append(f'reserved "{names[4]}";')
        return f"message {name} {{{' '.join(made)}}}"

    def field(self, name: str, number: int) -> str:
        kind = self.random.choice(TYPES)
        if self.random.random() < 0.1:
            return f"map<string, {kind}> {name} = {number};"
        option = f' [json_name = "{name}J"]' if self.random.random() < 0.1 else ""
        label = self.random.choice(LABELS[self.syntax])
        return f"{label} {kind} {name} = {number}{option};".strip()

    def service(self) -> str:
        def sent() -> str:
            return f"{self.random.choice(('', 'stream '))}M{self.random.randrange(3)}"

        methods = [f"rpc {name}({sent()}) returns ({sent()});" for name in "XY"]
        return f"service S {{{' '.join(methods)}}}"

    def edited(self, definition: str) -> str:
        """A definition with a statement removed, changed or added; or none at all."""
        match = _DEFINITION.fullmatch(definition)
        if match is None or self.random.random() < 0.05:
            return ""
        kind, name, body = match.groups()
        statements = _STATEMENT.findall(body)
        choice = self.random.random()
        if statements and choice < 0.3:
            statements.pop(self.random.randrange(len(statements)))
        elif statements and choice < 0.75:
            place = self.random.randrange(len(statements))
            statements[place] = self.changed(statements[place])
        elif kind == "message":
            added = [self.field("z", self.random.randint(1, 12)), f"reserved {choice * 9:.0f};"]
            statements.append(self.random.choice(added))
        elif kind == "enum":
            statements.append(f"{name}_Z = {self.random.randint(1, 9)};")
        return f"{kind} {name} {{{' '.join(statements)}}}"

    def changed(self, statement: str) -> str:
        random = self.random
        types = rf"\b({'|'.join(TYPES)})\b"
        label = random.choice((*LABELS[self.syntax], "required"))
        edits = (
            lambda text: re.sub(types, random.choice(TYPES), text, count=1),
            lambda text: re.sub(r"\b[a-h]\b(?= =)", random.choice("abcdxyz"), text, count=1),
            lambda text: re.sub(r"= \d+", f"= {random.randint(1, 12)}", text, count=1),
            lambda text: re.sub(r"^ ?(optional |repeated |required |)", f"{label} ", text),
            lambda text: text.replace("stream ", "", 1).replace("oneof o", "oneof k"),
        )
        edited: str = random.choice(edits)(statement)
        return edited
