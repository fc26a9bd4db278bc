"""A process among the replicas of its node; alone on an SQLite file."""

import time

from server.cluster.background_duty import BackgroundDuty
from server.cluster.heartbeat import Heartbeat
from server.cluster.trouble import ReplicaTrouble, replica_trouble
from server.store.database import Database
from server.util.service import Service


class ClusterMember:
    """The heartbeat of this replica, and the duty that one of all has."""

    def __init__(self, database: Database, heartbeat: Heartbeat, duty: BackgroundDuty) -> None:
        self._database = database
        self.heartbeat = heartbeat
        self.duty = duty

    @property
    def services(self) -> tuple[Service, ...]:
        """Both, in the order in which they start."""
        return self.heartbeat, self.duty

    def does_background_work(self) -> bool:
        """Whether this process does what only one of all replicas may do."""
        return self.duty.is_held

    def trouble(self) -> ReplicaTrouble | None:
        """What is wrong with this replica among others."""
        shared = self._database.storage.shared
        if shared is None:
            return None
        ahead = time.time_ns() // 1000 - shared.now()
        return replica_trouble(vacant=self.duty.vacant_for(), machine_ahead=ahead)
