"""Composition root: settings → store → methods → app (design §2)."""

import asyncio
import hmac
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property, partial
from typing import Any

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from peers.signing import SigningKey
from server import node_metrics
from server.auth.authenticator import Authenticator
from server.auth.mismatch_audit import MismatchAudit
from server.cluster import agent_calls
from server.cluster.background_duty import BackgroundDuty
from server.cluster.heartbeat import Heartbeat, ReplicaTopic, own_address
from server.cluster.member import ClusterMember
from server.discovery.service import Discovery
from server.discovery.service import routes as discovery_routes
from server.domain.acp.handoff import HandoffRules
from server.domain.acp.routing import Channel
from server.domain.agents import identity
from server.domain.location import DatabaseUrl, Location
from server.http.admission import Admission
from server.http.agent_card import VERSION
from server.http.connections import Connections
from server.http.health import HealthCheck
from server.http.last_resort import LastResort
from server.http.metrics import Metrics
from server.http.rate_limit import CallerLimit, RateLimit, SharedRateLimit
from server.http.routes import AppState, no_route, routes
from server.http.rpc_endpoint import RpcEndpoint
from server.mcp_tools.endpoint import PATH as MCP_PATH
from server.mcp_tools.endpoint import McpEndpoint
from server.mesh.handshake_server import HandshakeServer
from server.mesh.supervisor import Supervisor
from server.methods import METHODS
from server.node import Node
from server.page.guard import PageParts
from server.page.header import HeaderFacts
from server.page.live import LivePages
from server.page.outside import watch_outside
from server.page.routes import page_routes
from server.page.sessions import PageSessions
from server.rpc.answer_budget import AnswerBudget
from server.rpc.dispatch import Dispatcher
from server.settings import Settings
from server.store.database import Database
from server.store.stamps import Stamps
from server.store.storage import Prepared
from server.util.log_once import RateLimitedLog
from server.util.loops import Loops
from server.util.outgoing_client import CardCheck, make_client
from server.util.service import Service, running
from server.workers.content_audit import ContentAudit
from server.workers.handoff_worker import HandoffWorker
from server.workers.mail_sweeper import MailSweeper
from server.workers.push_worker import PushTransport, PushWorker
from server.workers.search_indexer import SearchIndexer
from server.workers.sure_time import SureTime
from server.workers.wake_command import WakeCommands
from server.workers.webhook import ANSWER_MAX, Webhooks

log = structlog.get_logger()


class NodeApp(Starlette):
    """The node as an ASGI application. `POST /` is answered ahead of the routes, whose matching and
    middleware cost as much as a `contract/get`."""

    def __init__(self, rpc: RpcEndpoint, **given: Any) -> None:
        # Around the router and its exception handlers: it answers what neither of them caught.
        super().__init__(middleware=[Middleware(LastResort)], **given)
        # A redirect would go to whatever host the request names.
        self.router.redirect_slashes = False
        self.rpc = rpc
        self._calls = LastResort(rpc)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/" and scope["method"] == "POST":
            await self._calls(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def make_app(
    settings: Settings, prepared: Prepared, secret: bytes, connections: Connections
) -> NodeApp:
    """The node as an ASGI application, on the database that `migrate.prepare` made ready."""
    parts = _Parts(settings, prepared, secret, connections)
    parts.register_metrics()
    return NodeApp(
        parts.rpc,
        routes=parts.routes(),
        exception_handlers={HTTPException: no_route},
        lifespan=parts.lifespan,
    )


class _Parts:
    """The parts of one node, each made once and given to those that use it."""

    def __init__(
        self, settings: Settings, prepared: Prepared, secret: bytes, connections: Connections
    ) -> None:
        self.settings = settings
        self.prepared = prepared
        self.connections = connections
        self.loops = loops = Loops()
        self.metrics = Metrics()
        self.stopping = asyncio.Event()
        self.database = database = Database(settings.location, settings.durability, Stamps(), loops)
        self.check_card = CardCheck(loopback_allowed=settings.loopback)
        self.node = node = make_node(settings, secret, self.check_card)
        self.mesh = mesh = Supervisor(settings, database, node, loops)
        self.discovery = Discovery(settings, database, loops, partial(_limit, database))
        self.mismatches = MismatchAudit(database)
        self.notices = RateLimitedLog()
        self.admission = Admission(
            Authenticator(settings, secret, self.discovery.known_holder),
            database.read,
            _limit(database, settings.requests_per_minute),
            self.notices,
            mesh.heard_from,
            self.mismatches.note,
        )
        self.dispatcher = make_dispatcher(
            settings, database, node, self.metrics, self.stopping, mesh
        )
        self.push_worker = PushWorker(database, node, loops, _transports(settings, node))
        self.audit = ContentAudit(database, loops)
        # Nothing may expire before the node knows which time is sure.
        self.certainty = SureTime(
            database, loops, prepared.last_stamp, lambda: self.cluster.does_background_work()
        )
        self.cluster = self._cluster()
        self.state = AppState(
            settings,
            database,
            self.dispatcher,
            self.admission,
            self.notices,
            HealthCheck(database, loops, self.cluster.trouble),
            self.metrics,
            node,
            prepared.epoch,
            mesh,
            HandshakeServer(settings, database, node),
            connections,
            self.audit,
            self.push_worker,
            self.cluster,
        )
        self.mcp = McpEndpoint(
            self.dispatcher,
            self.admission,
            settings.body_limit,
            settings.event_streams_per_caller,
            loops,
        )
        self.page_sessions = PageSessions(settings, database, self.admission, secret)
        self.header = HeaderFacts(self.state)
        outside = watch_outside(node, database.now, mesh.status, loops)
        self.live = LivePages(database, loops, settings.event_streams, outside)

    @cached_property
    def rpc(self) -> RpcEndpoint:
        limits = (self.settings.body_limit, self.settings.file_body_limit)
        return RpcEndpoint(self.dispatcher, self.admission, *limits)

    def _cluster(self) -> ClusterMember:
        settings, database, node, loops = self.settings, self.database, self.node, self.loops
        topics = (
            ReplicaTopic("mesh", self.mesh.tell, self.mesh.hear),
            ReplicaTopic("stamps", self.certainty.tell, self.certainty.hear),
            ReplicaTopic(
                "calls",
                lambda: agent_calls.tell(node, database.now()),
                partial(agent_calls.hear, node),
            ),
        )
        background = (
            self.mesh.exchange,
            self.discovery.registering,
            MailSweeper(database, node, loops),
            self.push_worker,
            HandoffWorker(settings, database, node, loops),
            self.audit,
            SearchIndexer(database, loops),
        )
        address = own_address(settings.host, settings.port)
        heartbeat = Heartbeat(database, loops, address, VERSION, self._status, topics)
        return ClusterMember(database, heartbeat, BackgroundDuty(database, loops, background))

    def _status(self) -> str:
        if self.database.trouble is not None or self.database.corrupt:
            return "unhealthy"
        return "degraded" if self.loops.failing else "healthy"

    def services(self) -> Sequence[Service]:
        """All that runs beside the callers, in the order in which it starts."""
        # The first call may need a peer.
        return (
            self.certainty,
            self.mesh,
            self.discovery,
            *self.cluster.services,
            self.mcp,
            self.live,
        )

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[dict[str, Any]]:
        """From the first start of a service until the database is closed."""
        async with AsyncExitStack() as closing:
            await self.database.open(self.prepared.last_stamp)
            # Only now it is known which clock the node goes by.
            self.node.start.at = self.database.now()
            # Opened before the services, closed after them: they use these until they stop.
            for close in (self.database.close, self.check_card.close, self.mismatches.stop):
                closing.push_async_callback(close)
            await closing.enter_async_context(running(self.services()))
            settings = self.settings
            log.info(
                "ready", url=settings.url, agent=settings.agent, db=_name_of(settings.location)
            )
            yield {"stopping": self.stopping}
        log.info("stopped")

    def routes(self) -> list[Route]:
        return [
            Route("/", self.rpc, methods=["POST"]),
            Route(MCP_PATH, self.mcp, methods=["POST"]),
            *routes(self.state),
            *discovery_routes(self.state, self.discovery),
            *page_routes(self._page()),
        ]

    def _page(self) -> PageParts:
        return PageParts(self.state, self.page_sessions, self.live, self.header, self.stopping)

    def register_metrics(self) -> None:
        metrics, database = self.metrics, self.database
        node_metrics.count_storage(metrics, database)
        node_metrics.count_loops(metrics, self.loops, self.audit)
        node_metrics.count_callers(
            metrics, self.connections, self.dispatcher.budget, self.state.streams
        )
        node_metrics.count_replicas(metrics, self.cluster)
        node_metrics.count_pages(metrics, self.live)
        node_metrics.count_attention(metrics, database)
        node_metrics.count_mail(metrics, self.push_worker, database)
        node_metrics.count_peers(metrics, self.mesh, database, self.node)
        node_metrics.count_mesh(metrics, self.mesh, self.discovery, database, self.node)


def _limit(database: Database, per_minute: int, kind: str = "") -> CallerLimit:
    """A limit of requests for each caller, at all replicas together, of a `kind` of its own."""
    shared = database.storage.shared
    if shared is None:
        return RateLimit(per_minute)
    return SharedRateLimit(per_minute, shared.aside, kind)


def _name_of(location: Location) -> str:
    return location.shown if isinstance(location, DatabaseUrl) else location.name


def make_dispatcher(
    settings: Settings,
    database: Database,
    node: Node,
    metrics: Metrics,
    stopping: asyncio.Event,
    mesh: Supervisor,
) -> Dispatcher:
    """The dispatcher of all methods."""
    budget = AnswerBudget(settings.answer_limit, settings.answer_budget)
    most, observe = settings.batch_limit, metrics.observe
    return Dispatcher(METHODS, database, node, most, observe, stopping, mesh, budget)


def make_node(settings: Settings, secret: bytes, check_card: CardCheck) -> Node:
    """The node as its methods know it. Its keys are derived from `secret`."""
    return Node(
        agent_id=settings.agent,
        repo=settings.repo,
        loopback=settings.loopback,
        takes_unkeyed_peers=settings.takes_unkeyed_peers,
        key=SigningKey(hmac.digest(secret, b"node key", "sha256")),
        url=settings.url,
        future_limit=settings.future_limit * 1_000_000,
        acp=settings.acp_rules,
        webhook_key=hmac.digest(secret, b"webhooks", "sha256"),
        check_card=check_card,
        bans_from=frozenset(settings.bans_from),
        handoffs=HandoffRules(
            sla_seconds=settings.handoff_sla_seconds,
            offer_seconds=settings.handoff_offer_seconds,
            checks_files=bool(settings.artifact_roots),
            workq=bool(settings.workq_url),
            asks_evidence=settings.handoff_evidence == "checked",
        ),
    )


def _transports(settings: Settings, node: Node) -> dict[Channel, PushTransport]:
    """The transport of each channel that is available."""
    states, transports = node.acp.capabilities, dict[Channel, PushTransport]()
    if states["channel"] == "available":
        client = make_client(
            loopback_allowed=settings.loopback,
            private_allowed=settings.acp_webhook_private,
            seconds=settings.acp_webhook_seconds,
            answer_max=ANSWER_MAX,
        )
        transports["channel"] = Webhooks(client, node.webhook_key, settings.acp_webhook_seconds)
    if states["wake"] == "available":
        commands = {identity(name): words for name, words in settings.acp_wake_commands.items()}
        transports["wake"] = WakeCommands(commands, settings.acp_wake_seconds)
    return transports
