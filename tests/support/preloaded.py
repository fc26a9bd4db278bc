"""What a node imports up to its first answer, or soon after, imported, and what it makes alike each
time, made. `tests.support.forkserver` forks nodes from it."""

import gc
import importlib

from cli.main import command
from schemas.base import Model
from server.store.sqlite import schema
from tests.support import pace


def build(base: type[Model]) -> None:
    """Build all models of this kind."""
    for model in base.__subclasses__():
        model.model_rebuild()
        build(model)


for name in (
    "cli.serve",
    "jwt",
    "server.mcp_tools.server",
    "server.page.environment",
    "server.rpc.library_call",
    "server.serve",
    "anyio._backends._asyncio",
    "httpcore",
    "uvicorn.lifespan.on",
    "uvloop",
    "tests.support.forkserver",
):
    importlib.import_module(name)

command("serve")
build(Model)
pace.quicken()
schema.made(tuple(schema.migrations()))

# The collector leaves it alone, so that the nodes share its pages.
gc.collect()
gc.freeze()
