"""How mail reaches a peer, and what a failure leaves (acp-canonical §10; design §7)."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from peers.errors import NotConnected, PeerRefused, PeerUnreachable
from peers.signing import SigningKey, verify
from server.domain.authorship import statement
from server.mesh.mail_sender import WRONG, MailSender
from server.mesh.mesh_channel import MeshChannel
from server.methods.sync import agent_homes
from server.store import mail_outbox, mesh, peers
from server.store.database import Database
from server.store.mail_outbox import StoredDirectory
from server.store.peers import Peer
from tests.server.methods.acp.office import START, Office
from tests.support.located import location_of

BETA = "aid://example.com/beta@1.0.0"
Answering = Callable[[str, dict[str, Any]], Any]


class Peering:
    """Beta, where Zoe lives, as the sender meets it: `answer` is what it does with a call."""

    def __init__(self, office: Office, database: Database, runner: asyncio.Runner) -> None:
        self.office = office
        self.runner = runner
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.applied: list[dict[str, Any]] = []
        self.answer: Answering = self.takes
        db = office.db
        peers.put(db, BETA, "http://127.0.0.1:1", "r", "verified", START)
        peers.put_keys(db, BETA, "secret", "id")
        mesh.pin(db, BETA, "key")
        mail_outbox.put_directory(db, BETA, StoredDirectory(1, "e", "{}"))
        mesh.put_home(db, "zoe", BETA)
        agent_homes.publish(office.context())
        found = cast(Peer, peers.find(db, BETA))
        link = cast(MeshChannel, self)
        self.sender = MailSender(link, database, office.context().node, found, self.apply)

    def takes(self, method: str, params: dict[str, Any]) -> Any:
        if method == "acp/sync/agents":
            return {"listed": None}
        return {"answers": [{"reached": []} for _ in params["messages"]]}

    async def ask(self, method: str, **params: Any) -> Any:
        self.calls.append((method, params))
        return self.answer(method, params)

    async def apply(self, peer: Peer, message: dict[str, Any]) -> Any:
        self.applied.append(message)

    def deliver(self) -> int:
        """Have the sender say what is owed; how much that was. Raises CallError."""

        async def run() -> int:
            names = (await self.sender.load(0)).names
            await self.sender.deliver(names)
            return len(names)

        return self.runner.run(run())

    def owed(self) -> list[str]:
        return [one.message_id for one in mail_outbox.entries(self.office.db, BETA, 10)]

    def offered(self) -> list[int]:
        rows = self.office.rows("SELECT offered FROM mail_routes ORDER BY message_id")
        return [offered for (offered,) in rows]


@pytest.fixture
def peering(tmp_path: Path) -> Iterator[Peering]:
    office = Office(tmp_path / "cacp.db").without_limits()
    database = Database(location_of(office.path))
    with asyncio.Runner() as runner:
        runner.run(database.open(START))
        yield Peering(office, database, runner)
        runner.run(database.close())
    office.db.close()


def is_mail(method: str) -> bool:
    return method == "acp/sync/mail"


def test_what_is_owed_is_signed_said_and_forgotten(peering: Peering) -> None:
    sent = [peering.office.post(to=["zoe"]) for _ in range(3)]
    peering.deliver()
    (hello, said), (method, given) = peering.calls
    assert (hello, method) == ("acp/sync/agents", "acp/sync/mail")
    assert "zoe" not in orjson.loads(bytes(orjson.dumps(said["listed"])))["directory"]["agents"]
    texts = [orjson.loads(one["text"]) for one in given["messages"]]
    assert [one["message"]["id"] for one in texts] == sent
    assert all(one["recipients"] == ["zoe"] for one in texts)
    public = SigningKey(bytes(32)).public
    for one in given["messages"]:
        said_so = statement("mail", "aid://example.com/beta", {"text": one["text"]})
        by = one["signature"]
        assert verify(public, said_so, by["value"], by["path"])
    assert peering.owed() == []
    assert peering.deliver() == 0


def test_what_was_never_sent_may_still_expire_here(peering: Peering) -> None:
    peering.office.post(to=["zoe"])

    def down(method: str, params: dict[str, Any]) -> Any:
        if is_mail(method):
            raise NotConnected("can't be reached")
        return peering.takes(method, params)

    peering.answer = down
    with pytest.raises(NotConnected):
        peering.deliver()
    assert (peering.offered(), len(peering.owed())) == ([0], 1)


def test_what_may_have_arrived_is_the_peers_to_end(peering: Peering) -> None:
    """It broke off: the message is said again, after a greeting."""
    sent = peering.office.post(to=["zoe"])

    def breaks(method: str, params: dict[str, Any]) -> Any:
        if is_mail(method):
            raise PeerUnreachable("closed the connection")
        return peering.takes(method, params)

    peering.answer = breaks
    with pytest.raises(PeerUnreachable):
        peering.deliver()
    assert (peering.offered(), peering.owed()) == ([1], [sent])
    peering.answer = peering.takes
    peering.deliver()
    assert [method for method, _ in peering.calls[-2:]] == ["acp/sync/agents", "acp/sync/mail"]
    assert peering.owed() == []


@pytest.mark.parametrize("code", sorted(WRONG))
def test_one_that_is_never_taken_holds_up_no_other(peering: Peering, code: int) -> None:
    bad, good = (peering.office.post(to=["zoe"]) for _ in range(2))

    def picky(method: str, params: dict[str, Any]) -> Any:
        if is_mail(method) and any(bad in one["text"] for one in params["messages"]):
            raise PeerRefused("refuses: no", status=200, code=code)
        return peering.takes(method, params)

    peering.answer = picky
    peering.deliver()
    failed, taken = (one["params"]["receipts"][0] for one in peering.applied)
    assert (failed["message_id"], failed["reached"][0]["status"]) == (bad, "failed")
    assert (taken["message_id"], taken["reached"]) == (good, [])
    assert peering.owed() == []


def test_a_peer_that_answers_nonsense_has_not_confirmed(peering: Peering) -> None:
    peering.office.post(to=["zoe"])
    answers: list[Any] = [{"answers": []}, {"answers": [{"reached": 1}]}, []]
    for nonsense in answers:
        peering.answer = lambda method, params, one=nonsense: (  # type: ignore[misc]
            one if is_mail(method) else {"listed": None}
        )
        with pytest.raises(PeerRefused):
            peering.deliver()
        assert len(peering.owed()) == 1


def test_a_message_that_ended_meanwhile_does_not_leave(peering: Peering) -> None:
    sent = peering.office.post(to=["zoe"])
    peering.office.db.execute("UPDATE delivery_log SET status = 'expired'")
    peering.deliver()
    assert not any(is_mail(method) for method, _ in peering.calls)
    assert (peering.owed(), sent != "") == ([], True)
