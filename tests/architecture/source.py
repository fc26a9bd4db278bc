"""The product's source, as the architecture tests read it."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("schemas", "peers", "server", "cli", "threader", "comply", "bench")
OURS = ("schemas", "peers", "server", "cli", "threader", "comply")


def modules(*packages: str) -> list[Path]:
    """Every module of the packages that are there, from the project's root."""
    found = (path for package in packages for path in (ROOT / package).rglob("*.py"))
    return sorted(path.relative_to(ROOT) for path in found)


@cache
def tree(module: Path) -> ast.Module:
    return ast.parse((ROOT / module).read_text(), str(module))


def name_of(module: Path) -> str:
    """The import name: server/store/__init__.py is server.store."""
    return ".".join(module.with_suffix("").parts).removesuffix(".__init__")


def imports(module: Path) -> Iterator[str]:
    """The full name of each of our modules that a module imports, wherever in it."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] in OURS)


def relative_imports(module: Path) -> list[int]:
    return [
        node.lineno
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
