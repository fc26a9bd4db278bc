"""Who is to become a peer does, whatever the others do."""

from pathlib import Path

from tests.support.mesh import Mesh, agent_of, peers
from tests.support.mesh_member import TOKEN
from tests.support.node import Node
from tests.support.scripted_http import ScriptedHttp, silent
from tests.support.waiting import eventually


def test_one_that_can_not_be_joined_holds_up_none(mesh: Mesh, tmp_path: Path) -> None:
    """Tried by the order of their URLs, it would come first."""
    beta = mesh.add("beta")
    folder = tmp_path / "alone"
    folder.mkdir()
    with ScriptedHttp(silent) as server:
        urls = ",".join([server.url, "ftp://nowhere", beta.url])
        with Node(folder, repo="alpha", mesh_token=TOKEN, peers=urls, log_format="json") as alpha:
            eventually(lambda: [one["agentId"] for one in peers(alpha)] == [agent_of("beta")])
            eventually(lambda: alpha.log.count('"peer_not_joined"') == 2)
            wanted = alpha.query("SELECT url FROM wanted_peers WHERE error IS NOT NULL")
            assert len(wanted) == 2, "each is tried again, and says why"
            assert alpha.get("/health").json()["status"] == "healthy"
