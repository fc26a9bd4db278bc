"""The product's source, as the architecture tests read it."""

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "schemas",
    "contracts",
    "peers",
    "proof",
    "server",
    "cli",
    "threader",
    "comply",
    "bench",
)
OURS = ("schemas", "contracts", "peers", "proof", "server", "cli", "threader", "comply")


def modules(*packages: str) -> list[Path]:
    """Every module of the packages that are there, from the project's root."""
    found = (path for package in packages for path in (ROOT / package).rglob("*.py"))
    return sorted(path.relative_to(ROOT) for path in found)


@cache
def tree(module: Path) -> ast.Module:
    parsed = ast.parse((ROOT / module).read_text(), str(module))
    # It stays, and the garbage collector would look through it at each of the next.
    gc.freeze()
    return parsed


@cache
def nodes(module: Path) -> tuple[ast.AST, ...]:
    """All of a module's tree."""
    return tuple(ast.walk(tree(module)))


def name_of(module: Path) -> str:
    """The import name: server/store/__init__.py is server.store."""
    return ".".join(module.with_suffix("").parts).removesuffix(".__init__")


@cache
def imports(module: Path) -> tuple[str, ...]:
    """The full name of each of our modules that a module imports, wherever in it."""
    return tuple(_imports(module))


def _imports(module: Path) -> Iterator[str]:
    for node in nodes(module):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] in OURS)


def relative_imports(module: Path) -> list[int]:
    return [
        node.lineno for node in nodes(module) if isinstance(node, ast.ImportFrom) and node.level
    ]
