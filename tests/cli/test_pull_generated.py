import pytest

from cli.pull_generated import NoTypes, check_python, check_typescript

TYPES = '''# Made by cacp pull
from __future__ import annotations

from typing import Any as Any_aliased
from typing import Literal, NotRequired, TypeAlias, TypedDict, Union


class User(TypedDict):
    """
    Who it is
    """

    id: int
    kind: NotRequired[Literal['a b()', -1, None] | None]
    friends: NotRequired[list[User]]


class Empty(User):
    pass


Loop: TypeAlias = Union["Loop", str]


Odd = TypedDict(
    'Odd',
    {
        'e-mail': NotRequired[dict[str, Any_aliased]],
    },
)
'''


def test_types_of_python_are_taken() -> None:
    check_python(TYPES)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("import os", "line 1 is no type"),
        ("from os import path", "line 1 is no type"),
        ("from . import typing", "line 1 is no type"),
        ("print(1)", "line 1 is no type"),
        ("A: TypeAlias = print(1)", "line 1 is no type"),
        ("A: print(1) = int", "line 1 is no type"),
        ("A = __import__('os')", "line 1 is no type"),
        ("A = TypedDict('A', {'a': print(1)})", "line 1 is no type"),
        ("A = TypedDict('A', {}, total=print(1))", "line 1 is no type"),
        ("class A(TypedDict, metaclass=print): pass", "line 1 is no type"),
        ("class A(print(1)): pass", "line 1 is no type"),
        ("@print\nclass A(TypedDict): pass", "line 2 is no type"),
        ("class A(TypedDict):\n    a: int = 1", "line 2 is no type"),
        ("class A(TypedDict):\n    a: int\n    print(1)", "line 3 is no type"),
        ("class A(TypedDict):\n    a: [print(1) for _ in b]", "line 2 is no type"),
        ("class A(TypedDict):\n    def a(self): ...", "line 2 is no type"),
        ("A: TypeAlias = os.system", "line 1 is no type"),
        ("A: TypeAlias = lambda: 1", "line 1 is no type"),
        ("A: TypeAlias = f'{1}'", "line 1 is no type"),
        ("A: TypeAlias = list[int] | 'A'", "line 1 can't be evaluated"),
        ("A: TypeAlias = 'B'\nB: TypeAlias = list[int] | A", "line 2 can't be evaluated"),
        ("class A(TypedDict):\n    a: list['print(1)']", "line 2 is no type"),
        ("A = TypedDict('A', {'a': 'print(1)'})", "line 1 is no type"),
        ("A = TypedDict('A', {**{}})", "line 1 is no type"),
        ("A: TypeAlias = Literal[print(1)]", "line 1 is no type"),
        ("if True: pass", "line 1 is no type"),
        ("A: TypeAlias = Other", "it names Other, which is not in it"),
        ("class", "it is not Python: SyntaxError"),
        ("\0", "it is not Python: (SyntaxError|ValueError)"),
        ("A: TypeAlias = " + "list[" * 5000, "it is not Python"),
    ],
)
def test_what_is_no_type_is_refused(line: str, why: str) -> None:
    known = "\nfrom typing import TypeAlias, TypedDict\n"
    with pytest.raises(NoTypes, match=why):
        check_python(line + known)


def test_declarations_of_typescript_are_taken() -> None:
    check_typescript(
        "// Made\n/**\n * words\n */\n\nexport type paths = Record<string, never>;\n"
        "export interface components {\n    schemas: {\n        /** @description a */\n"
        '        A: "x";\n    };\n}\nexport type $defs = Record<string, never>;\n'
    )


@pytest.mark.parametrize(
    "line", ["import x from 'x';", "evil();", "export const a = 1;", "declare global {", "  b"]
)
def test_other_lines_of_typescript_are_refused(line: str) -> None:
    with pytest.raises(NoTypes, match="line 2 is no type"):
        check_typescript(f"export type A = string;\n{line}\n")
