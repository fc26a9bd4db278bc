"""The processes of a cluster; tests/cli/test_cluster.py runs the command whole."""

import socket
import stat
from pathlib import Path

import pytest

from cli import cluster_nodes
from cli.cluster_nodes import Cluster
from tests.cli.test_cluster import folder
from tests.support.node import START_SECONDS, free_ports
from tests.support.postgresql import database
from tests.support.waiting import eventually

__all__ = ["folder"]

pytestmark = pytest.mark.postgresql


def test_replicas_run_on_a_database_that_is_given_and_are_started_again(tmp_path: Path) -> None:
    with database() as url, Cluster(tmp_path, free_ports(3), 2, url) as cluster:
        eventually(lambda: cluster.look().ready == 2, 2 * START_SECONDS)
        view = cluster.look()
        assert view.database.pid is None
        eventually(lambda: cluster.look().database.state == "up")
        cluster.kill_server()
        cluster.kill(0)
        first = view.replicas[0].pid
        eventually(lambda: cluster.look().ready == 2, 2 * START_SECONDS)
        view = cluster.look()
        assert view.replicas[0].pid not in (None, first)
        assert view.replicas[0].ends == 1
        told = [event.text for event in view.events if "duty" not in event.text]
        assert told == [
            f"replica-1 (pid {first}) is killed",
            "replica-1 has ended; it is started again in 0.5 s",
            "replica-1 is started again",
        ]


def test_the_background_duty_is_shown_and_goes_to_another_replica(tmp_path: Path) -> None:
    def holders(cluster: Cluster) -> list[str]:
        return [replica.name for replica in cluster.look().replicas if replica.duty]

    with database() as url, Cluster(tmp_path, free_ports(3), 2, url) as cluster:
        eventually(lambda: len(holders(cluster)) == 1, 2 * START_SECONDS)
        [first] = holders(cluster)
        eventually(lambda: cluster.look().ready == 2, 2 * START_SECONDS)
        place = [replica.name for replica in cluster.replicas].index(first)
        cluster.kill(place)
        other = cluster.replicas[1 - place].name

        def is_elsewhere() -> bool:
            # It is started again, and may be the first to take what it had.
            if holders(cluster) == [first]:
                cluster.kill(place)
            return holders(cluster) == [other]

        eventually(is_elsewhere, 2 * START_SECONDS)
        told = [event.text for event in cluster.look().events if "duty" in event.text]
        assert told == [f"{name} has the background duty" for name in (first, other)]


def test_a_port_that_is_taken_is_named_and_nothing_is_left_running(folder: Path) -> None:
    port = free_ports(4)
    for taken in (port, port + 2, port + 3):
        with (
            socket.create_server(("127.0.0.1", taken)),
            pytest.raises(ValueError, match=f"listens on port {taken}"),
            Cluster(folder, port, 2),
        ):
            pass
    assert not (folder / "postgresql" / "data" / "postmaster.pid").exists()


def test_the_servers_password_is_for_this_user_alone_and_kept(folder: Path) -> None:
    told = set()
    for _ in range(2):
        with Cluster(folder, free_ports(3), 1) as cluster:
            told.add((folder / "password").read_text())
            assert stat.S_IMODE(cluster.url_file.stat().st_mode) == 0o600
            assert (folder / "password").read_text().strip() in cluster.url_file.read_text()
            assert "password" not in cluster.look().database.address
    assert len(told) == 1


@pytest.mark.needs("root")
def test_root_keeps_data_where_the_servers_account_can_reach_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = folder / "hidden"
    hidden.mkdir(mode=0o700)
    monkeypatch.setattr(cluster_nodes, "STATE_FOLDER", folder / "state")
    with Cluster(hidden, free_ports(3), 1) as cluster:
        assert cluster.server is not None
        assert cluster.server.folder.parent == folder / "state"
