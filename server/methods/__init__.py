"""One file per namespace. A method loads, lets the domain decide, and applies (design §2)."""

from server.methods import (  # isort: skip
    project,
    contract,
    context,
    implementation,
    file,
    sync,
    digest,
    peer,
    rpc,
    handoff,
    team,
)
from server.methods.base import METHODS

__all__ = [
    "METHODS",
    "context",
    "contract",
    "digest",
    "file",
    "handoff",
    "implementation",
    "peer",
    "project",
    "rpc",
    "sync",
    "team",
]
