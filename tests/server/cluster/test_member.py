"""A process among the replicas of its node."""

import time

from server.cluster.background_duty import BackgroundDuty
from server.cluster.heartbeat import Heartbeat
from server.cluster.member import ClusterMember
from server.util.loops import Loops
from tests.server.cluster.shared import DatabaseOfTest, Server


def cluster(database: DatabaseOfTest) -> ClusterMember:
    given, loops = database.as_database(), Loops()
    heartbeat = Heartbeat(given, loops, "a:1", "2.0", lambda: "healthy", ())
    return ClusterMember(given, heartbeat, BackgroundDuty(given, loops, ()))


def test_alone_it_has_the_duty_and_no_trouble_with_others() -> None:
    database = DatabaseOfTest(Server(), "a")
    database.shared = None
    alone = cluster(database)
    assert alone.does_background_work()
    assert alone.trouble() is None


def test_a_machine_s_clock_is_compared_with_the_server_s() -> None:
    server = Server(time.time_ns() // 1000)
    database = DatabaseOfTest(server, "a")
    among = cluster(database)
    assert not among.does_background_work()
    assert among.trouble() is None
    server.time -= 3_600 * 1_000_000
    trouble = among.trouble()
    assert trouble is not None
    assert trouble.reason == "machine_clock_off"


def test_the_heartbeat_starts_before_the_duty() -> None:
    among = cluster(DatabaseOfTest(Server(), "a"))
    assert among.services == (among.heartbeat, among.duty)
