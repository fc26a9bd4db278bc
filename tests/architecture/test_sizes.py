"""Files under 500 lines, functions under 60: short enough to hold in one's head."""

import ast

from tests.architecture.source import PACKAGES, ROOT, modules, tree

FILE_LINES = 500
FUNCTION_LINES = 60
EVERY = modules(*PACKAGES, "tests")


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of its body, which a command's list of options is no part of.

    Functions inside it count for themselves only.
    """
    inner = [
        child
        for child in ast.walk(function)
        if child is not function and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lines = set(range(function.body[0].lineno, (function.end_lineno or 0) + 1))
    for child in inner:
        lines -= set(range(child.lineno, (child.end_lineno or 0) + 1))
    return len(lines)


def test_files_are_short() -> None:
    sizes = {str(module): len((ROOT / module).read_text().splitlines()) for module in EVERY}
    assert {name: size for name, size in sizes.items() if size >= FILE_LINES} == {}


def test_functions_are_short() -> None:
    sizes = {
        f"{module}:{node.lineno} {node.name}": length(node)
        for module in EVERY
        for node in ast.walk(tree(module))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: size for name, size in sizes.items() if size >= FUNCTION_LINES} == {}
