"""The named queries of `queries/*.sql`, loaded once."""

from pathlib import Path
from typing import Any

import aiosql

Row = tuple[Any, ...]

SQL: Any = aiosql.from_path(Path(__file__).parent / "queries", "sqlite3")
"""Each query as a function of a connection and named parameters."""
