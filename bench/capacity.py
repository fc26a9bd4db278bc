"""Where one cluster of replicas ends: a model with measured unit costs.

Writes of all replicas take turns under one lock, so their rate is at most one over the time that a
write has it, however many replicas and cores there are. Beside it, the processors of the replicas
and of the database server each set a limit.
"""

from typing import NamedTuple


class Costs(NamedTuple):
    """Microseconds of a call: processor time of the replica and of the database server, and time
    under the lock."""

    replica: float
    database: float
    lock: float


class Machines(NamedTuple):
    """What serves: replicas, each of which uses one core, and the cores of the database server."""

    replicas: int
    database_cores: int


BUSY = 0.7
"""The part of a limit that is used before queues grow out of proportion."""


def limits(costs: Costs, machines: Machines) -> dict[str, float]:
    """Calls a second that each part carries, by its name."""
    second = 1e6 * BUSY
    bounds = {
        "replicas": machines.replicas * second / costs.replica,
        "database": machines.database_cores * second / costs.database,
    }
    return bounds | ({"lock": second / costs.lock} if costs.lock else {})


def capacity(costs: Costs, machines: Machines) -> tuple[str, float]:
    """The part that ends first, and the calls a second that it carries."""
    bounds = limits(costs, machines)
    first = min(bounds, key=lambda name: bounds[name])
    return first, bounds[first]
