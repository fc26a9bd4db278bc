"""The node's part in ADP: as a client of an exchange, and as an exchange (CACP 2.0, ADP
Integration).

| route                                | for                     | does                            |
|--------------------------------------|-------------------------|---------------------------------|
| POST /adp/search                     | callers that may read   | search at the node's exchange   |
| POST /adp/register                   | the node's own agent    | register there, now             |
| POST /adp/known                      | the node's own agent    | become known to another node    |
| GET /.well-known/cacp-challenge/…    | that other node         | prove that this node asked it   |
| POST /known                          | agents without a key    | become known (`known_agents`)   |
| /v1/…                                | callers, as an exchange | `exchange`                      |
"""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from peers.adp import AdpExchange, ExchangeError, Registration
from peers.errors import CallError
from schemas import jsonrpc
from schemas.adp import Listing, SearchRequest, to_wire
from schemas.errors import ErrorCode
from schemas.known import CHALLENGE_PATH, AskParams, KnownParams
from server.auth.authenticator import Caller
from server.cluster.shared_values import SharedValues
from server.discovery import exchange
from server.discovery.exchange import AgentRegistry
from server.discovery.known_agents import ASKED_PER_MINUTE, Asking, Handshake
from server.domain.agents import same_agent
from server.domain.errors import Forbidden, InvalidInput
from server.http import agent_card
from server.http.rate_limit import CallerLimit
from server.http.routes import AppState, Handler, answering, guarded, json_response, read_model
from server.settings import Settings
from server.store.connection import Connection
from server.store.database import Database
from server.util.loops import Loops
from server.util.outgoing_client import make_client
from server.util.service import Service

BODY_LIMIT = 64 * 1024
SECONDS = 10.0
ANSWER_MAX = 1024 * 1024
"""Bytes of a response from an exchange or another node, at most."""


class Discovery(Service):
    """The node's part in ADP. It calls out only when `adp_url` is set, or when its own agent
    asks."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        loops: Loops,
        limit_of: Callable[[int, str], CallerLimit],
    ) -> None:
        """`limit_of` makes a limit of so many requests a minute, of a kind of its own."""
        super().__init__(loops)
        self.client = make_client(
            loopback_allowed=settings.loopback, seconds=SECONDS, answer_max=ANSWER_MAX
        )
        self.manifest = agent_card.manifest(settings)
        self.directory = (
            AgentRegistry(database, self.manifest, loopback=settings.loopback)
            if settings.exchange
            else None
        )
        key = settings.adp_key
        self.exchange = (
            AdpExchange(self.client, settings.adp_url, key.get_secret_value() if key else None)
            if settings.adp_url
            else None
        )
        self.asking = Asking(settings.agent, self.client, SharedValues(database, "nonce"))
        self._grants = SharedValues(database, "grant")
        self.handshake = Handshake(
            settings,
            self._grants,
            limit_of(ASKED_PER_MINUTE, "known "),
            self.search,
            self.client,
            database.read,
        )
        self._registration = Registration(self.register) if settings.adp_register else None
        self.registering = Registering(loops, self._registration)
        """What only one of several replicas runs."""

    async def close(self) -> None:
        await self.client.close()

    async def search(self, request: SearchRequest) -> list[Listing]:
        """The agents listed at the exchange of `adp_url` or, without one, at this node's exchange.

        Raises ExchangeError, and InvalidInput when there is no exchange.
        """
        if self.exchange is not None:
            return await self.exchange.search(request)
        if self.directory is not None:
            return (await self.directory.search(request)).results
        raise InvalidInput(_NO_EXCHANGE, reason="no_exchange")

    async def register(self) -> None:
        """Register this node. Raises ExchangeError, and InvalidInput without an exchange."""
        if self.exchange is None:
            raise InvalidInput(_NO_EXCHANGE, reason="no_exchange")
        await self.exchange.register(self.manifest)

    def known_holder(self, db: Connection, hashed: str) -> str | None:
        """The agent that was granted the read-only key with this hash; None for an unknown hash."""
        return self._grants.find_in(db, hashed)

    def is_registered(self) -> float:
        return float(self._registration is not None and bool(self._registration.registered))


class Registering(Service):
    """Keeps the node registered at its exchange, where the settings ask for it."""

    def __init__(self, loops: Loops, registration: Registration | None) -> None:
        super().__init__(loops)
        self._registration = registration

    async def start(self) -> None:
        if self._registration is not None:
            self.run("registration", self._registration.run)


_NO_EXCHANGE = "This node has no ADP exchange: set CACP_ADP_URL"


def routes(state: AppState, discovery: Discovery) -> list[Route]:
    """The routes of ADP; those of an exchange only when the node is one."""
    asking = discovery.asking

    async def search(state: AppState, request: Request, caller: Caller) -> Response:
        params = await read_model(request, SearchRequest, BODY_LIMIT)
        listings = await discovery.search(params)
        return json_response({"results": [to_wire(listing) for listing in listings]})

    async def register(state: AppState, request: Request, caller: Caller) -> Response:
        _check_own(state, caller)
        await discovery.register()
        return json_response({"status": "registered", "manifest": to_wire(discovery.manifest)})

    async def ask(state: AppState, request: Request, caller: Caller) -> Response:
        _check_own(state, caller)
        params = await read_model(request, AskParams, BODY_LIMIT)
        return json_response(to_wire(await asking.ask(params.url)))

    async def challenge(request: Request) -> Response:
        shown = await asking.shown(request.path_params["nonce"])
        if shown is None:
            return json_response({"detail": "This node has no open request with this nonce"}, 404)
        return json_response(to_wire(shown))

    async def known(request: Request) -> Response:
        params = await read_model(request, KnownParams, BODY_LIMIT)
        client = request.client.host if request.client else ""
        return json_response(to_wire(await discovery.handshake.admit(params, client)))

    own = [
        Route("/adp/search", _outward(guarded(state, search)), methods=["POST"]),
        Route("/adp/register", _outward(guarded(state, register)), methods=["POST"]),
        Route("/adp/known", _outward(guarded(state, ask)), methods=["POST"]),
        Route(CHALLENGE_PATH + "{nonce}", challenge),
        Route("/known", _outward(answering(known)), methods=["POST"]),
    ]
    if discovery.directory is None:
        return own
    return [*own, *exchange.routes(state, discovery.directory)]


def _outward(handler: Handler) -> Handler:
    """Answer 502 when the other side fails."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except (ExchangeError, CallError) as error:
            message = str(error) if isinstance(error, ExchangeError) else f"The node {error}"
            reason = {"reason": "no_answer"}
            return json_response(jsonrpc.error(ErrorCode.SERVER_ERROR, message, reason), 502)

    return handle


def _check_own(state: AppState, caller: Caller) -> None:
    own = state.settings.agent
    if caller.trust != "verified" or not same_agent(caller.agent_id, own):
        raise Forbidden(f"Only {own}, the node's own agent, may do this", reason="other_agent")
