"""SQL stands only in server/store/ (design §2, §3)."""

import ast
import re

from tests.architecture.source import OURS, modules, nodes

SQL = re.compile(
    r"\s*(SELECT\s|INSERT\s+INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|CREATE\s+(TABLE|INDEX)\s|"
    r"ALTER\s+TABLE\s|DROP\s|PRAGMA\s|WITH\s+RECURSIVE\s|WITH\s+\w+\s+AS\s)"
)
TRANSACTIONS = {"BEGIN", "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"}
"""Who owns a connection opens and ends its transactions; that is no SQL of the product."""

OUTSIDE = [module for module in modules(*OURS) if module.parts[:2] != ("server", "store")]
ADAPTERS = "threader"
"""It opens no database; `execute` there is `CliAdapter.execute` (agent-threader-v2 §7)."""


def is_sql(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return bool(SQL.match(node.value))
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("execute", "executemany", "executescript")
        and not (isinstance(node.args[0], ast.Constant) and node.args[0].value in TRANSACTIONS)
    )


def test_there_is_no_sql_outside_the_store() -> None:
    found = [
        f"{module}:{node.lineno}"
        for module in OUTSIDE
        for node in nodes(module)
        if isinstance(node, ast.expr) and is_sql(node)
        if not (module.parts[0] == ADAPTERS and isinstance(node, ast.Call))
    ]
    assert found == []
