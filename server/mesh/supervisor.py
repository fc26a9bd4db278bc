"""The node's side of the mesh: who its peers are, and what calls and pages need of them.

Every replica has channels to the peers, for calls that need one. What keeps the node equal with
them, one replica runs (`exchange`), and tells the others how it goes."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, get_args

from peers.clock import ClockVerdict
from schemas.handoff import HandoffStatus
from server.domain.acp.handoff import HeldElsewhere
from server.domain.errors import Unavailable
from server.mesh import exchange, peer_facts
from server.mesh.clock_settling import ClockSettling
from server.mesh.exchange import Exchange
from server.mesh.file_fetcher import FileFetcher
from server.mesh.handoff_forwarder import accept_checked, forward
from server.mesh.handshake_client import HandshakeClient
from server.mesh.peer_facts import PeerFacts, facts_of
from server.mesh.peer_links import PeerLinks
from server.mesh.peer_status import PeerStatus
from server.mesh.peer_tasks import SharedParts
from server.mesh.peers_to_join import PeersToJoin
from server.methods.base import Fetch
from server.methods.cacp.handoff_evidence import check_holds, with_evidence
from server.methods.sync.composer import Composer
from server.node import Node
from server.rpc.sync_batch import SyncIntake
from server.settings import Settings
from server.store import handoffs
from server.store.database import Database
from server.util.loops import Loops, Turns
from server.util.outgoing_client import make_client
from server.util.service import Service

HEARD_KEPT = 3_000_000
"""Microseconds for which a replica tells that a peer has called it."""


class Supervisor(Service):
    """The channels to the peers that are listed, and how the exchange with each goes."""

    def __init__(self, settings: Settings, database: Database, node: Node, loops: Loops) -> None:
        super().__init__(loops)
        self._database = database
        client = make_client(loopback_allowed=node.loopback)
        self._shared = SharedParts(
            database,
            node,
            loops,
            client,
            Composer(database, node),
            SyncIntake(database, node),
            ClockSettling(database, node),
            HandshakeClient(settings, database, node, client),
            settings.sync_seconds,
        )
        self.links = PeerLinks(self._shared)
        self.exchange = Exchange(
            self._shared,
            self.links,
            PeersToJoin(database, self._shared.handshakes, settings.peers),
        )
        """What only one of several replicas runs."""
        self.status = PeerStatus(database, node, self.facts)
        self.files = FileFetcher(
            database, node, self.links.channels, self.links.is_up, settings.file_copies_bytes
        )
        self.fetch: Fetch = self.files.fetch
        self._told: dict[str, PeerFacts] = {}
        """What the replica tells that exchanges."""
        self._heard: dict[str, int] = {}
        """Peers that have called lately, and when by the steady clock."""

    async def start(self) -> None:
        """Have a channel to each peer: a call that needs one may come once it returns."""
        self._database.clock.sends = False
        with suppress(Unavailable):
            # The loop below tries again what can't be read now.
            await self.links.match(exchanges=False)
        self.run("channels", self._keep_channels)

    async def stop(self) -> None:
        """End every task and every fetch."""
        await self.files.stop()
        await super().stop()
        await self.links.end()

    async def close(self) -> None:
        await self._shared.client.close()

    async def _keep_channels(self) -> Turns:
        """Keep the channels those of the listed peers while another replica exchanges."""
        while True:
            yield await self.links.match(exchanges=False)
            await asyncio.sleep(exchange.OVERSEE_SECONDS)

    def facts(self) -> Mapping[str, PeerFacts]:
        """How the exchange with each peer goes."""
        if not self.links.exchanges:
            return self._told
        clock = self._database.clock
        return {
            agent_id: facts_of(tasks, clock) for agent_id, tasks in list(self.links.tasks.items())
        }

    # --- what replicas tell each other --------------------------------------------------------

    def tell(self) -> dict[str, Any]:
        """For the other replicas: which peers have called and, from the one that exchanges, how
        that goes and what the clocks say."""
        since = self._database.clock.steady() - HEARD_KEPT
        self._heard = {name: at for name, at in self._heard.items() if at > since}
        report: dict[str, Any] = {"called": list(self._heard)}
        if self.links.exchanges:
            report["peers"] = peer_facts.as_json(self.facts())
            report["clocks"] = self._database.clock.verdict._asdict()
        return report

    def hear(self, report: Mapping[str, Any]) -> None:
        """Take what another replica tells."""
        if self.links.exchanges:
            for agent_id in report["called"]:
                self._wake(agent_id)
        elif "peers" in report:
            self._told = peer_facts.from_json(report["peers"])
            verdict = ClockVerdict(**report["clocks"])
            apart = tuple((name, ahead) for name, ahead in verdict.apart)
            self._database.clock.adopt(verdict._replace(apart=apart))

    # --- calls --------------------------------------------------------------------------------

    def heard_from(self, agent_id: str) -> None:
        """A peer has called, so it isn't down any more."""
        if self.links.exchanges:
            self._wake(agent_id)
        elif (facts := self._told.get(agent_id)) is not None and facts.failures:
            self._heard[agent_id] = self._database.clock.steady()

    def _wake(self, agent_id: str) -> None:
        tasks = self.links.tasks.get(agent_id)
        if tasks is None:
            return
        if tasks.comparison is not None:
            self._shared.settling.meet()
        if tasks.sender.failures or (tasks.mail is not None and tasks.mail.failures):
            tasks.wake()

    async def forward(self, call: HeldElsewhere) -> Any:
        """The answer of the peer that holds what a call is about. Raises Refusal."""
        link, rules = self.links.channels.get(call.node), self._shared.node.handoffs
        if rules.asks_evidence and call.call["action"] == "accept":
            answer = await accept_checked(link, call, partial(self._check_evidence, call))
        else:
            answer = await forward(link, call)
        handoff = answer.get("handoff") or {}
        if handoff.get("status") in get_args(HandoffStatus):
            status = handoff["handoffId"], call.node, handoff["status"]
            # The peer has taken the step. What can't be noted now is noted with its next answer.
            with suppress(Unavailable):
                await self._database.write(
                    lambda transaction: handoffs.put_status_elsewhere(
                        transaction.connection, *status
                    )
                )
        if "package" not in answer:
            return answer
        return await self._database.read(
            partial(with_evidence, rules=rules, answer=answer, agent_id=call.agent)
        )

    async def _check_evidence(self, call: HeldElsewhere, package: Any) -> None:
        """Raises Conflict when the evidence of a package doesn't hold at this node."""
        await self._database.read(partial(check_holds, handoff_id=call.handoff_id, package=package))
