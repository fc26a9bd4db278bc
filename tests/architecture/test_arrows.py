"""Imports point one way (design §2):

schemas ← domain ← store ← methods ← dispatch ← transport ← app ← cli
"""

import ast

from tests.architecture.source import OURS, imports, modules, name_of, relative_imports, tree

LAYERS = (
    ("schemas",),
    ("peers",),
    ("server.domain",),
    ("server.settings", "server.waiting", "server.loops"),
    ("server.store",),
    ("server.budget", "server.identity", "server.limits", "server.notices", "server.bootstrap"),
    (
        "server.connections",
        "server.documents",
        "server.outgoing",
        "server.artifacts",
        "server.journal",
        "server.mismatches",
        "server.workq",
    ),
    ("server.known",),
    ("server.methods.base", "server.outbox"),
    ("server.methods",),
    ("server.openrpc", "server.card", "server.metrics"),
    ("server.shown", "server.shown_acp"),
    ("server.tools",),
    ("server.incoming",),
    ("server.dispatch", "server.events", "server.health", "server.handshake", "server.certainty"),
    ("server.progress",),
    ("server.links", "server.exchanges", "server.foreign_peer", "server.joining"),
    ("server.wanted", "server.deferred", "server.settling"),
    ("server.foreign_link",),
    ("server.divergence",),
    ("server.anti_entropy", "server.carrier", "server.fetching", "server.forwarding"),
    ("server.mesh",),
    ("server.audit",),
    ("server.postmaster", "server.mailstream", "server.webhook", "server.waking", "server.courier"),
    ("server.transport", "server.http"),
    ("server.mcp_server",),
    ("server.routes", "server.mcp_endpoint"),
    ("server.exchange",),
    ("server.discovery", "server.duties"),
    ("server.app",),
    ("server.serve",),
    ("threader",),
    ("comply",),
    ("cli",),
)
"""A module may import from its own layer and from those above it in this list."""

EXCEPTIONS = {("server.methods.rpc", "server.openrpc")}
"""rpc.discover is a method, and answers with the document that is made of all methods."""

ISOLATED = {
    "schemas": {"schemas"},
    "peers": {"peers", "schemas"},
    "threader": {"threader", "schemas"},
    "comply": {"comply", "schemas"},
}
"""Packages, and the only ones of ours that they know."""

IMPURE = {"asyncio", "httpx", "os", "random", "secrets", "socket", "sqlite3", "time"}


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def layer(name: str) -> int:
    """The layer of a module: the one that names it, or most of its name."""
    found = [
        (len(prefix), number)
        for number, prefixes in enumerate(LAYERS)
        for prefix in prefixes
        if within(name, prefix)
    ]
    assert found, f"{name} has no layer: add it to LAYERS"
    return max(found)[1]


def is_exception(name: str, imported: str) -> bool:
    return any(name == one and within(imported, other) for one, other in EXCEPTIONS)


def test_a_module_imports_only_what_is_below_it() -> None:
    found = [
        f"{name_of(module)} imports {imported}"
        for module in modules("schemas", "peers", "server", "cli")
        for imported in imports(module)
        if layer(imported) > layer(name_of(module)) and not is_exception(name_of(module), imported)
    ]
    assert found == []


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
    for module in modules("server/domain"):
        for node in ast.walk(tree(module)):
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
