"""POST /peers/hello and /peers/confirm, and who tries to get in otherwise (design §6)."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from peers.timekeeper import Timekeeper
from schemas.mesh import Hello, Introduction
from server.domain.errors import Unauthenticated
from server.domain.peer_limits import PEER_LIMITS
from server.mesh.handshake_server import HandshakeServer
from server.settings import load
from server.store import mesh as store
from server.store import peers
from server.store.database import Database
from server.store.stamps import Stamps
from tests.support.located import connect, location_of, prepare
from tests.support.mesh_member import TOKEN, MeshMember
from tests.support.node import Node


@pytest.fixture(scope="module")
def alpha(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("alpha")
    with Node(folder, repo="alpha", mesh_token=f"a token that is being retired,{TOKEN}") as node:
        yield node
        assert "Traceback" not in node.log


YEAR = 365 * 24 * 3_600_000_000
JSON = {"content-type": "application/json"}


def reason(response: httpx.Response) -> str:
    return str(response.json()["error"]["data"]["reason"])


def listed(node: Node) -> set[str]:
    return {one["agentId"] for one in node.get("/peers").json()["peers"]}


def test_who_knows_the_token_becomes_a_peer(alpha: Node) -> None:
    """While the token is being changed the old one counts too."""
    stranger = MeshMember(alpha, "beta").register()
    assert stranger.agent in listed(alpha)
    assert stranger.call("cacp/sync/digest", prefixes=[""])["behind"] is False


def test_what_registered_its_name_without_a_key_has_ended(alpha: Node) -> None:
    """In whatever version: a node's word comes with its key."""
    stranger = MeshMember(alpha, "squatted")
    early = stranger.agent.replace("1.0.0", "0.9.0")
    given = {"agentId": early, "endpoint": "http://127.0.0.1:9"}
    assert alpha.http.post("/peers/register", json=given).status_code == 200
    assert early in listed(alpha)
    stranger.register()
    assert stranger.agent in listed(alpha)
    assert early not in listed(alpha)


def test_who_does_not_know_it_does_not(alpha: Node) -> None:
    stranger = MeshMember(alpha, "guesser")
    assert reason(stranger.hello("a guess that is long enough")) == "unknown_secret"
    answer = stranger.hello()
    refused = stranger.confirm(answer, "a guess that is long enough")
    assert (refused.status_code, reason(refused)) == (401, "wrong_proof")
    assert stranger.agent not in listed(alpha)


def test_a_fisher_learns_nothing_of_the_token(alpha: Node) -> None:
    """The mesh token fished for with a false endpoint: only HMACs and public keys are sent."""
    fisher = MeshMember(alpha, "fisher", "http://192.0.2.1/collect")
    sent = fisher.hello()
    assert TOKEN not in sent.text
    assert TOKEN.encode().hex() not in sent.text


def test_who_knows_the_token_does_not_fill_every_place(tmp_path: Path) -> None:
    """One member can come under any number of names: the operators' places stay free."""
    with Node(tmp_path, repo="alpha", mesh_token=TOKEN) as node:
        with closing(connect(node.db)) as db:
            for number in range(PEER_LIMITS["token"]):
                name = f"aid://x/m{number}"
                peers.put(db, name, "http://127.0.0.1:1", "r", "verified", 1)
                peers.put_way(db, name, "token")
        late = MeshMember(node, "late")
        refused = late.confirm(late.hello())
        assert (refused.status_code, reason(refused)) == (403, "peer_limit")
        said = refused.json()["error"]
        assert "by the mesh token" in said["message"]
        assert said["data"]["limit"] == PEER_LIMITS["token"]
        with closing(connect(node.db)) as db:
            now = time.time_ns() // 1000
            invite_id, code = store.invite(db, now=now, expires_at=now + 60_000_000)
        late.register(code.partition(".")[2], invite_id)
        assert late.agent in listed(node)
        given = {"agentId": "aid://x/here", "endpoint": "http://127.0.0.1:9"}
        assert node.http.post("/peers/register", json=given).status_code == 200
        ways = dict(node.query("SELECT came_by, count(*) FROM peers GROUP BY came_by"))
        assert ways == {"token": PEER_LIMITS["token"], "invite": 1, "operator": 1}


def test_a_confirmation_is_good_once(alpha: Node) -> None:
    stranger = MeshMember(alpha, "replayer").register()
    again = alpha.http.post("/peers/confirm", json=stranger.confirmed)
    assert (again.status_code, reason(again)) == (401, "unknown_handshake")


def test_an_agent_id_is_pinned_to_its_key(alpha: Node) -> None:
    """Another agent's id registered again, with the mesh token: still refused."""
    MeshMember(alpha, "pinned").register()
    thief = MeshMember(alpha, "pinned")
    refused = thief.hello()
    assert (refused.status_code, reason(refused)) == (400, "key_pinned")
    with closing(connect(alpha.db)) as db:
        store.unpin(db, thief.agent)
    assert thief.register().key


def test_with_its_key_an_agent_registers_again_and_both_keys_hold_for_a_while(alpha: Node) -> None:
    """Rotation without downtime."""
    stranger = MeshMember(alpha, "renewing").register()
    before = stranger.key
    stranger.register()
    for key in (before, stranger.key):
        stranger.key = key
        assert stranger.call("cacp/sync/digest", prefixes=[""])
    stranger.register()
    stranger.key = before
    assert stranger.refused("cacp/sync/digest", prefixes=[""]).reason == "revoked_key"


@pytest.mark.parametrize(
    "endpoint",
    ["http://169.254.169.254/latest/", "http://[fe80::1]/", "file:///etc", "http://0.0.0.0/"],
)
def test_an_endpoint_that_must_not_be_called_is_refused(alpha: Node, endpoint: str) -> None:
    stranger = MeshMember(alpha, "metadata", endpoint)
    refused = stranger.hello()
    assert refused.status_code in (400, 403)
    assert stranger.agent not in listed(alpha)


def test_the_node_does_not_become_its_own_peer(alpha: Node) -> None:
    impostor = MeshMember(alpha, "alpha")
    impostor.agent = alpha.get("/health").json()["agentId"]
    assert reason(impostor.hello()) == "own_agent"


def test_handshakes_that_are_not_finished_are_limited(alpha: Node) -> None:
    strangers = [MeshMember(alpha, f"many-{number}") for number in range(120)]
    statuses = [stranger.hello().status_code for stranger in strangers]
    assert set(statuses) == {200, 429}
    assert not {stranger.agent for stranger in strangers} & listed(alpha)


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"introduction": 7}', "x" * 100_000])
def test_what_is_no_message_is_refused(alpha: Node, body: str) -> None:
    for path in ("/peers/hello", "/peers/confirm"):
        assert alpha.http.post(path, content=body, headers=JSON).status_code in (400, 413)


def test_an_invite_is_good_once(tmp_path: Path) -> None:
    with Node(tmp_path, repo="alpha") as node:
        with closing(connect(node.db)) as db:
            invite, code = store.invite(db, now=1, expires_at=2**60)
            revoked, _ = store.invite(db, now=1, expires_at=2**60)
            store.revoke_invite(db, revoked, now=2)
        secret = code.partition(".")[2]
        first = MeshMember(node, "beta").register(secret, invite)
        assert first.call("cacp/sync/digest", prefixes=[""])
        for id in (invite, revoked, "inv_unknown"):
            assert reason(MeshMember(node, "gamma").hello(secret, id)) == "unknown_secret"


@pytest.mark.sqlite
def test_an_invite_ends_by_the_nodes_time_not_its_machines(tmp_path: Path) -> None:
    """A majority says that the machine's clock is a year behind."""
    machine = time.time_ns() // 1000
    over = machine + YEAR // 2

    async def ask() -> str:
        stamps = Stamps()
        stamps.clock = Timekeeper(lambda: machine + YEAR, lambda: 0)
        prepare(tmp_path / "cacp.db")
        database = Database(location_of(tmp_path / "cacp.db"), stamps=stamps)
        await database.open(0)
        invite, _ = await database.write(
            lambda to: store.invite(to.connection, now=machine, expires_at=over)
        )
        node = SimpleNamespace(agent_id="aid://example.com/node@1.0.0")
        shakes = HandshakeServer(load(db=tmp_path / "cacp.db"), database, cast(Any, node))
        introduction = cast(Any, Introduction).model_construct(nonce="0" * 64)
        hello = Hello.model_construct(introduction=introduction, secret_id=invite)
        try:
            with pytest.raises(Unauthenticated) as refused:
                await shakes.hello(hello)
        finally:
            await database.close()
        return str(refused.value.data["reason"])

    assert asyncio.run(ask()) == "unknown_secret"
