"""One name, one thing: no class name twice, and no variable whose name says nothing."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import PACKAGES, modules, nodes

EMPTY = frozenset({"found", "one", "ours", "said", "theirs", "told"})
"""Names that say neither what a thing is nor what it is for."""


def bound(node: ast.AST) -> str | None:
    """The name that a node gives to a variable or an argument."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            return name
        case ast.MatchAs(name=name) | ast.MatchStar(name=name):
            return name
    return None


def fields(module: Path) -> set[ast.AST]:
    """The fields of classes, whose names are those of a file or a wire format."""
    return {
        line.target
        for node in nodes(module)
        if isinstance(node, ast.ClassDef)
        for line in node.body
        if isinstance(line, ast.AnnAssign)
    }


def empty_names() -> Iterator[str]:
    for module in modules(*PACKAGES):
        for node in set(nodes(module)) - fields(module):
            name = bound(node)
            if name in EMPTY:
                yield f"{module}:{getattr(node, 'lineno', 0)} {name}"


def test_each_class_has_its_own_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules(*PACKAGES):
        for node in nodes(module):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{module}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_a_variable_says_what_it_holds() -> None:
    assert list(empty_names()) == []
