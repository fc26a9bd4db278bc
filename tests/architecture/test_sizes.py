"""Files under 500 lines, functions under 60: short enough to hold in one's head."""

import ast
from collections.abc import Iterator

from tests.architecture.source import PACKAGES, ROOT, modules, tree

FILE_LINES = 500
FUNCTION_LINES = 60
EVERY = modules(*PACKAGES, "tests")


def lengths(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Each function below a node with the lines of its body, without those of functions in it.

    A command's list of options is no part of its body.
    """
    for child in ast.iter_child_nodes(node):
        inner = list(lengths(child))
        yield from inner
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            own = (child.end_lineno or 0) + 1 - child.body[0].lineno
            yield f"{child.lineno} {child.name}", own - sum(lines for _, lines in inner)


def test_files_are_short() -> None:
    sizes = {str(module): len((ROOT / module).read_text().splitlines()) for module in EVERY}
    assert {name: size for name, size in sizes.items() if size >= FILE_LINES} == {}


def test_functions_are_short() -> None:
    sizes = {f"{module}:{name}": lines for module in EVERY for name, lines in lengths(tree(module))}
    assert {name: size for name, size in sizes.items() if size >= FUNCTION_LINES} == {}
