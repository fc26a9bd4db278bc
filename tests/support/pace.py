"""The pauses of a node that tests start, shorter: what a test waits for comes sooner.

The processes, the order of their steps and their settings stay as they are; only how long a loop
rests between two looks changes. Much shorter pauses would cost more than they save: a worker has
nodes that run as long as it does. `make soak` keeps the product's own pauses.
"""

import importlib
import os

from peers import backoff

LEASE = 4_000_000
"""Microseconds after which the work of a killed replica is taken over."""
PAUSES: dict[str, dict[str, float]] = {
    "peers.sender": {"LINGER_SECONDS": 0.01, "BUSY_SECONDS": 0.05},
    "server.cluster.background_duty": {"LOOK_SECONDS": 0.1, "RENEW_SECONDS": 1.0},
    "server.cluster.heartbeat": {"BEAT_SECONDS": 0.2},
    "server.domain.duty": {"LEASE": LEASE, "MARGIN": LEASE // 10, "STALE": 2 * LEASE},
    "server.mesh.anti_entropy": {"BEHIND_SECONDS": 0.05},
    "server.mesh.deferred_worker": {"LOOK_SECONDS": 0.2},
    "server.mesh.exchange": {"COUNT_SECONDS": 0.05, "OVERSEE_SECONDS": 0.2},
    "server.mesh.peers_to_join": {"LOOK_SECONDS": 0.2},
    "server.store.postgresql.duties": {"LEASE": LEASE},
    "server.workers.handoff_worker": {"POLL_SECONDS": 0.2},
    "server.workers.mail_sweeper": {"LOOK_SECONDS": 0.2},
    "server.workers.push_worker": {"TROUBLE_SECONDS": 0.1},
    "server.workers.sure_time": {"LOOK_SECONDS": 0.2},
}
FIRST_SECONDS = 0.05
"""Until the first of the tries again, each of which comes later than the one before."""


def quicken() -> None:
    """Shorten the pauses of this process, unless TEST_PACE is `real`.

    Raises AttributeError when the product no longer has one of them.
    """
    if os.environ.get("TEST_PACE") == "real":
        return
    for name, pauses in PAUSES.items():
        module = importlib.import_module(name)
        for constant, seconds in pauses.items():
            getattr(module, constant)
            setattr(module, constant, seconds)
    backoff.delay.__kwdefaults__ = {**(backoff.delay.__kwdefaults__ or {}), "first": FIRST_SECONDS}
