"""What a node imports up to its first answer, imported, and what it makes alike at each start,
made. `tests.support.forkserver` forks nodes from it."""

import gc
import importlib

from cli.main import command
from server.store.sqlite import schema
from tests.support import pace

for name in (
    "cli.serve",
    "server.mcp_tools.server",
    "server.serve",
    "anyio._backends._asyncio",
    "httpcore",
    "uvicorn.lifespan.on",
    "uvloop",
    "tests.support.forkserver",
):
    importlib.import_module(name)

command()
pace.quicken()
schema.made(tuple(schema.migrations()))

# The collector leaves it alone, so that the nodes share its pages.
gc.collect()
gc.freeze()
