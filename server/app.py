"""Composition root: settings → store → methods → app (design §2)."""

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from peers.sender import Sender
from peers.signing import SigningKey
from server.auth.authenticator import Authenticator
from server.auth.mismatch_audit import MismatchAudit
from server.discovery.service import Discovery
from server.discovery.service import routes as discovery_routes
from server.domain.acp.handoff import HandoffRules
from server.domain.acp.routing import Channel
from server.domain.agents import identity
from server.http.connections import Connections
from server.http.health import HealthCheck
from server.http.metrics import Metrics
from server.http.rate_limit import RateLimit
from server.http.routes import Site, no_route, routes
from server.http.rpc_endpoint import Admission, LastResort, RpcEndpoint
from server.mcp_tools.endpoint import PATH as MCP_PATH
from server.mcp_tools.endpoint import McpEndpoint
from server.mesh.anti_entropy import Comparison
from server.mesh.handshake_server import HandshakeServer
from server.mesh.supervisor import Supervisor
from server.methods import METHODS
from server.node import Node
from server.rpc.answer_budget import AnswerBudget
from server.rpc.dispatch import Dispatcher
from server.settings import Settings
from server.store import alarms, changes, deferred, equivocations, files, handoffs, mailboxes
from server.store.database import Database
from server.store.migrate import Prepared
from server.store.stamps import Stamps
from server.util.log_once import LogOnce
from server.util.loops import Loops
from server.util.outgoing_client import CardCheck, make_client
from server.workers.content_audit import ContentAudit
from server.workers.handoff_worker import HandoffWorker
from server.workers.mail_sweeper import MailSweeper
from server.workers.push_worker import PushTransport, PushWorker
from server.workers.sure_time import SureTime
from server.workers.wake_command import WakeCommands
from server.workers.webhook import ANSWER_MAX, Webhooks

log = structlog.get_logger()


def make_app(
    settings: Settings, prepared: Prepared, secret: bytes, connections: Connections
) -> Starlette:
    """The node as an ASGI application, on the database that `migrate.prepare` made ready."""
    stamps = Stamps()
    loops = Loops()
    database = Database(settings.db, settings.durability, stamps, loops)
    metrics = Metrics()
    check_card = CardCheck(loopback_allowed=settings.loopback)
    node = _node(settings, secret, check_card)
    mesh = Supervisor(settings, database, node, loops)
    discovery = Discovery(settings, database, loops)
    duties = HandoffWorker(settings, database, node, loops)
    callers = Authenticator(settings, database.read, secret, discovery.known_holder)
    notices = LogOnce()
    mismatches = MismatchAudit(database)
    limits = RateLimit(settings.requests_per_minute)
    gate = Admission(callers, limits, notices, mesh.heard_from, mismatches.note)
    stopping = asyncio.Event()
    dispatcher = _dispatcher(settings, database, node, metrics, stopping, mesh)
    mail_sweeper = MailSweeper(database, node, loops)
    audit = ContentAudit(database, loops)
    certainty = SureTime(database, loops)
    push_worker = PushWorker(database, node, loops, _transports(settings, node))
    site = Site(
        settings,
        database,
        dispatcher,
        gate,
        notices,
        HealthCheck(database, loops),
        metrics,
        node,
        prepared.epoch,
        mesh,
        HandshakeServer(settings, database, node),
    )
    mcp = McpEndpoint(dispatcher, gate, settings.body_limit, loops)
    _count(metrics, site)
    _count_peers(metrics, mesh, database, node)
    _count_mail(metrics, push_worker, database)
    _count_connections(metrics, connections)
    _count_answers(metrics, dispatcher.budget, connections)
    _count_loops(metrics, loops, discovery, audit)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        await database.open(prepared.last_stamp)
        await certainty.start(prepared.last_stamp)
        await mesh.start()
        log.info("ready", url=settings.url, agent=settings.agent, db=settings.db.name)
        discovery.start()
        duties.start()
        mail_sweeper.start()
        push_worker.start()
        audit.start()
        try:
            yield {"stopping": stopping}
        finally:
            await mcp.stop()
            await audit.stop()
            await duties.stop()
            await push_worker.stop()
            await mail_sweeper.stop()
            await discovery.close()
            await mesh.stop()
            await mismatches.stop()
            await certainty.stop()
            await check_card.close()
            await database.close()
            log.info("stopped")

    rpc = RpcEndpoint(dispatcher, gate, settings.body_limit, settings.file_body_limit)
    app = Starlette(
        routes=[
            Route("/", rpc, methods=["POST"]),
            Route(MCP_PATH, mcp, methods=["POST"]),
            *routes(site),
            *discovery_routes(site, discovery),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: no_route},
    )
    # It would redirect to whatever host the request names.
    app.router.redirect_slashes = False
    app.add_middleware(LastResort)
    return app


def _dispatcher(
    settings: Settings,
    database: Database,
    node: Node,
    metrics: Metrics,
    stopping: asyncio.Event,
    mesh: Supervisor,
) -> Dispatcher:
    budget = AnswerBudget(settings.answer_limit, settings.answer_budget)
    most, observe = settings.batch_limit, metrics.observe
    return Dispatcher(METHODS, database, node, most, observe, stopping, mesh, budget)


def _node(settings: Settings, secret: bytes, check_card: CardCheck) -> Node:
    """The node as its methods know it."""
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
        ),
    )


def _transports(settings: Settings, node: Node) -> dict[Channel, PushTransport]:
    """What makes the pushes of the channels that are on."""
    states, made = node.acp.capabilities, dict[Channel, PushTransport]()
    if states["channel"] == "available":
        client = make_client(
            loopback_allowed=settings.loopback,
            private_allowed=settings.acp_webhook_private,
            seconds=settings.acp_webhook_seconds,
            answer_max=ANSWER_MAX,
        )
        made["channel"] = Webhooks(client, node.webhook_key, settings.acp_webhook_seconds)
    if states["wake"] == "available":
        commands = {identity(name): words for name, words in settings.acp_wake_commands.items()}
        made["wake"] = WakeCommands(commands, settings.acp_wake_seconds)
    return made


def _count_mail(metrics: Metrics, push_worker: PushWorker, database: Database) -> None:
    metrics.family(
        "cacp_mail_dead_letters",
        "Recipients whom a message did not reach, by what became of it",
        "status",
        lambda: database.read(mailboxes.count_dead),
    )
    for name, help, counted in (
        ("taken", "Pushes of messages that were taken", push_worker.taken),
        ("failed", "Pushes of messages that failed", push_worker.failed),
    ):
        metrics.family(f"cacp_mail_pushes_{name}_total", help, "channel", partial(dict, counted))


def _count_content(metrics: Metrics, database: Database) -> None:
    metrics.family(
        "cacp_equivocations",
        "Contradictions that the node has signed, of which evidence is kept",
        "node",
        lambda: database.read(equivocations.counts),
    )
    metrics.family(
        "cacp_alarms",
        "What is wrong with content, as `/health` says it, by its reason",
        "reason",
        lambda: database.read(alarms.counts),
    )


def _count_loops(metrics: Metrics, loops: Loops, discovery: Discovery, audit: ContentAudit) -> None:
    metrics.family(
        "cacp_loop_failures_total",
        "Turns of the node's own loops that did not go well",
        "loop",
        partial(dict, loops.failures),
    )
    metrics.gauge("cacp_audit_rounds_total", "How often all was looked at", lambda: audit.rounds)
    metrics.gauge("cacp_adp_registered", "Listed by the ADP exchange", discovery.is_registered)


def _count_connections(metrics: Metrics, connections: Connections) -> None:
    metrics.gauge("cacp_connections", "Open connections of callers", lambda: connections.open)
    metrics.gauge(
        "cacp_connections_refused_total",
        "Connections that were over a limit",
        lambda: connections.refused,
    )


def _count_answers(metrics: Metrics, budget: AnswerBudget, connections: Connections) -> None:
    metrics.gauge(
        "cacp_answers_bytes",
        "Bytes of large answers that are being made or sent",
        lambda: budget.taken,
    )
    metrics.gauge("cacp_answers_waiting", "Calls that wait for room", lambda: budget.waiting)
    metrics.family(
        "cacp_answers_refused_total",
        "Calls whose answers were too large, or had no room",
        "reason",
        partial(dict, budget.refused),
    )
    metrics.gauge(
        "cacp_answers_not_taken_total",
        "Connections ended because their callers did not take their answers",
        lambda: connections.ended,
    )


def _count_peers(metrics: Metrics, mesh: Supervisor, database: Database, node: Node) -> None:
    def of_each(value: Callable[[Sender], float]) -> Callable[[], dict[str, float]]:
        return lambda: {agent_id: value(one) for agent_id, one in mesh.senders.items()}

    def compared(value: Callable[[Comparison], float]) -> Callable[[], dict[str, float]]:
        return lambda: {agent_id: value(one) for agent_id, one in mesh.comparisons.items()}

    def conflicts() -> dict[str, float]:
        found = database.read(changes.conflicts_by_origin)
        return {agent_id: found.get(agent_id, 0) for agent_id in mesh.senders}

    def overruled() -> dict[str, float]:
        return {agent_id: node.overruled[agent_id] for agent_id in mesh.senders}

    for name, help, values in (
        ("up", "1 when the peer answers", of_each(lambda one: one.failures == 0)),
        ("backlog", "Entities that wait for the peer", mesh.backlogs),
        (
            "undelivered",
            "Entities that it has not taken, of these",
            of_each(lambda one: len(one.held)),
        ),
        ("lag_seconds", "How long the oldest of them has waited", mesh.lags),
        ("sent_total", "Entities that the peer has confirmed", of_each(lambda one: one.delivered)),
        ("retries_total", "Deliveries that failed", of_each(lambda one: one.retries)),
        ("digest_rounds_total", "Comparisons", compared(lambda one: one.rounds)),
        ("conflicts_total", "Conflicts found in what the peer sent", conflicts),
        ("overruled_total", "What it sent that is not its signer's to say", overruled),
        ("fetched_total", "Entities fetched by comparing", compared(lambda one: one.fetched)),
        ("clock_ahead_seconds", "How far its clock is ahead of the time", mesh.clocks_ahead),
    ):
        metrics.family(f"cacp_peer_{name}", help, "peer", values)
    metrics.gauge(
        "cacp_deferred_dropped_total",
        "Deferred messages of peers that were refused, have expired, or were too many",
        lambda: node.deferred_dropped.total(),
    )
    fetched = mesh.files
    metrics.gauge("cacp_files_fetched_total", "Files that came", lambda: fetched.fetched)
    metrics.gauge("cacp_files_not_fetched_total", "Files that did not", lambda: fetched.failed)
    metrics.gauge(
        "cacp_file_copies_bytes",
        "Bytes of copies of other nodes' files",
        lambda: database.read(files.copied_bytes),
    )
    metrics.gauge("cacp_clock_correction_seconds", "Added to our clock", mesh.clock_correction)
    metrics.gauge(
        "cacp_clock_unconfirmed",
        "1 while nothing ends by this machine's clock, because nobody stands by it",
        lambda: int(database.clock.doubt is not None),
    )
    metrics.gauge(
        "cacp_stamps_ahead_seconds",
        "How far the latest stamp of what is stored is ahead of the time",
        lambda: max(0, database.stamps.newest - database.now()) / 1e6,
    )
    metrics.gauge(
        "cacp_deferred_messages",
        "Messages of peers that wait until they are due, or for what they follow on",
        lambda: database.read(deferred.count),
    )


def _count(metrics: Metrics, site: Site) -> None:
    database = site.database
    _count_content(metrics, database)
    metrics.gauge(
        "cacp_workq_manual",
        "Handoffs whose ownership at workq is to be moved by hand",
        lambda: database.read(handoffs.manual_count),
    )
    metrics.gauge("cacp_commits_total", "Group commits", lambda: database.commits)
    metrics.gauge("cacp_writes_total", "Writes that are on disk", lambda: database.writes)
    metrics.gauge("cacp_waiting_writes", "Writes that wait", lambda: database.waiting)
    metrics.gauge("cacp_wal_bytes", "Size of the write-ahead log", lambda: database.log_bytes)
    metrics.gauge("cacp_event_streams", "Open event streams", lambda: site.streams.total())
