"""One file per namespace. A method loads, lets the domain decide, and applies (design §2)."""

from server.methods import (  # isort: skip
    project,
    contract,
    context,
    implementation,
    file,
    sync,
    digest,
    file_mesh,
    peer,
    rpc,
    handoff,
    handoff_mesh,
    team,
)
from server.methods.acp import (  # isort: skip
    send,
    inbox,
    query,
    gate,
    dead,
    claim,
    channels,
    arrivals,
)
from server.methods.base import METHODS

__all__ = [
    "METHODS",
    "arrivals",
    "channels",
    "claim",
    "context",
    "contract",
    "dead",
    "digest",
    "file",
    "file_mesh",
    "gate",
    "handoff",
    "handoff_mesh",
    "implementation",
    "inbox",
    "peer",
    "project",
    "query",
    "rpc",
    "send",
    "sync",
    "team",
]
