"""Imports point one way (design §2): a house of floors, each on those below it."""

import ast
from graphlib import CycleError, TopologicalSorter

from tests.architecture.source import OURS, imports, modules, name_of, nodes, relative_imports

FLOORS = (
    "schemas",
    "contracts",
    "peers",
    "server.domain",
    "server.secret_files",
    "server.settings",
    "server.setting_sources",
    "server.util",
    "server.store",
    "server.auth",
    "server.node",
    "server.cluster",
    "server.methods.base",
    "server.methods.openrpc",
    "server.methods.rpc",
    "server.methods.cacp",
    "server.methods.sync",
    "server.methods.acp",
    "server.methods.handoff",
    "server.methods",
    "server.rpc",
    "server.mesh",
    "server.workers",
    "server.http",
    "server.discovery",
    "server.mcp_tools",
    "server.page",
    "server.node_metrics",
    "server.app",
    "server.serve",
    "threader",
    "comply",
    "proof",
    "cli",
)
"""Folders, and modules that stand in one alone: each imports itself and what is above it."""

ISOLATED = {
    "schemas": {"schemas"},
    "contracts": {"contracts", "schemas"},
    "peers": {"peers", "schemas"},
    "proof": {"proof", "contracts", "peers", "schemas"},
    "threader": {"threader", "schemas"},
    "comply": {"comply", "schemas"},
}
"""Packages, and the only ones of ours that they know."""

IMPURE = {"asyncio", "httpx", "os", "random", "secrets", "socket", "sqlite3", "time"}


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def floor(name: str) -> int:
    """Where a module stands: on the floor that names most of its name."""
    found = [(len(folder), number) for number, folder in enumerate(FLOORS) if within(name, folder)]
    assert found, f"{name} stands nowhere: add it to FLOORS"
    return max(found)[1]


def test_a_module_imports_only_what_is_below_it() -> None:
    found = [
        f"{name_of(module)} imports {imported}"
        for module in modules("schemas", "contracts", "peers", "server", "cli")
        for imported in imports(module)
        if floor(imported) > floor(name_of(module))
    ]
    assert found == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = {name_of(module) for module in modules(*OURS)}
    graph = {
        name_of(module): {
            target
            for imported in imports(module)
            for target in [imported if imported in known else imported.rpartition(".")[0]]
            if target in known and target != name_of(module)
        }
        for module in modules(*OURS)
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        raise AssertionError(" → ".join(circle.args[1])) from None


def test_some_packages_know_nothing_of_the_node() -> None:
    """Design §2: peers imports schemas only; threader and comply import no server."""
    found = [
        f"{module} imports {imported}"
        for module in modules(*ISOLATED)
        for imported in imports(module)
        if imported.split(".")[0] not in ISOLATED[module.parts[0]]
    ]
    assert found == []


def test_the_pure_core_has_no_clock_no_randomness_and_no_input_or_output() -> None:
    """Design §3: no await, clock, randomness or SQL in domain functions."""
    found = []
    for module in modules("server/domain", "contracts"):
        for node in nodes(module):
            names: list[str | None] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module]
            elif isinstance(node, ast.AsyncFunctionDef | ast.Await):
                found.append(f"{module}:{node.lineno} waits")
            found += [
                f"{module} imports {name}"
                for name in names
                if name is not None and name.split(".")[0] in IMPURE
            ]
    assert found == []


def test_imports_are_absolute() -> None:
    assert [str(module) for module in modules(*OURS) if relative_imports(module)] == []
