"""What a node imports up to its first answer, imported. `tests.nursery` forks nodes from it."""

import gc
import importlib

for name in (
    "cli.main",
    "cli.serve",
    "server.serve",
    "anyio._backends._asyncio",
    "httpcore",
    "uvicorn.lifespan.on",
    "uvloop",
    "tests.nursery",
):
    importlib.import_module(name)

# The collector leaves it alone, so that the nodes share its pages.
gc.collect()
gc.freeze()
