"""How the node finds and is found: the exchange that it uses, or is (CACP 2.0, ADP Integration).

| route                                | for                     | does                            |
|--------------------------------------|-------------------------|---------------------------------|
| POST /adp/search                     | callers that may read   | search at the node's exchange   |
| POST /adp/register                   | the node's own agent    | register there, now             |
| POST /adp/known                      | the node's own agent    | ask another node to be known    |
| GET /.well-known/cacp-challenge/…    | that other node         | show that the node has asked    |
| POST /known                          | agents without a key    | become known (`known_agents`)   |
| /v1/…                                | callers, as an exchange | `exchange`                      |
"""

import asyncio
import time

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from peers.adp import Exchange, ExchangeError, Registration
from peers.errors import CallError
from schemas import jsonrpc
from schemas.adp import Listing, SearchRequest, to_wire
from schemas.errors import ErrorCode
from schemas.known import CHALLENGE_PATH, AskParams, KnownParams
from server.auth.authenticator import Caller
from server.discovery import exchange
from server.discovery.exchange import AgentRegistry
from server.discovery.known_agents import Asking, Grants, Handshake
from server.domain.agents import same_agent
from server.domain.errors import Forbidden, InvalidInput
from server.http import agent_card
from server.http.routes import Handler, Site, answering, guarded, json_response, read_model
from server.settings import Settings
from server.store.database import Database
from server.util.loops import Loops, cancel
from server.util.outgoing_client import make_client

BODY_LIMIT = 64 * 1024
SECONDS = 10.0
ANSWER_MAX = 1024 * 1024
"""For a whole answer of an exchange, or of a node that is asked about itself."""


class Discovery:
    """The node's part in ADP. Calls out only when `adp_url` is set, or its own agent asks it to."""

    def __init__(self, settings: Settings, database: Database, loops: Loops) -> None:
        self._loops = loops
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
            Exchange(self.client, settings.adp_url, key.get_secret_value() if key else None)
            if settings.adp_url
            else None
        )
        self.asking = Asking(settings.agent, self.client)
        self._grants = Grants()
        self.handshake = Handshake(settings, self._grants, self.search, self.client, database.read)
        self._registration = Registration(self.register) if settings.adp_register else None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to register, if the node is told to."""
        if self._registration is not None:
            self._task = self._loops.start("registration", self._registration.run)

    async def close(self) -> None:
        await cancel([self._task])
        await self.client.close()

    async def search(self, request: SearchRequest) -> list[Listing]:
        """Who is found: at the exchange of `adp_url`, else at this node's own.

        Raises ExchangeError, and InvalidInput when there is neither.
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

    def known_holder(self, hashed: str) -> str | None:
        """The agent without a key that was granted the key with this hash."""
        return self._grants.holder(hashed, time.monotonic())

    def is_registered(self) -> float:
        return float(self._registration is not None and bool(self._registration.registered))


_NO_EXCHANGE = "This node knows no ADP exchange: set CACP_ADP_URL"


def routes(site: Site, discovery: Discovery) -> list[Route]:
    """The routes; those of an exchange only when the node serves as one."""
    asking = discovery.asking

    async def search(site: Site, request: Request, caller: Caller) -> Response:
        found = await discovery.search(await read_model(request, SearchRequest, BODY_LIMIT))
        return json_response({"results": [to_wire(one) for one in found]})

    async def register(site: Site, request: Request, caller: Caller) -> Response:
        _check_own(site, caller)
        await discovery.register()
        return json_response({"status": "registered", "manifest": to_wire(discovery.manifest)})

    async def ask(site: Site, request: Request, caller: Caller) -> Response:
        _check_own(site, caller)
        params = await read_model(request, AskParams, BODY_LIMIT)
        return json_response(to_wire(await asking.ask(params.url)))

    async def challenge(request: Request) -> Response:
        shown = asking.shown(request.path_params["nonce"])
        if shown is None:
            return json_response({"detail": "This node asks nobody with this nonce"}, 404)
        return json_response(to_wire(shown))

    async def known(request: Request) -> Response:
        params = await read_model(request, KnownParams, BODY_LIMIT)
        client = request.client.host if request.client else ""
        return json_response(to_wire(await discovery.handshake.admit(params, client)))

    own = [
        Route("/adp/search", _outward(guarded(site, search)), methods=["POST"]),
        Route("/adp/register", _outward(guarded(site, register)), methods=["POST"]),
        Route("/adp/known", _outward(guarded(site, ask)), methods=["POST"]),
        Route(CHALLENGE_PATH + "{nonce}", challenge),
        Route("/known", _outward(answering(known)), methods=["POST"]),
    ]
    if discovery.directory is None:
        return own
    return [*own, *exchange.routes(site, discovery.directory)]


def _outward(handler: Handler) -> Handler:
    """Answer 502 when it is the other side that fails."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except (ExchangeError, CallError) as error:
            said = str(error) if isinstance(error, ExchangeError) else f"The node {error}"
            reason = {"reason": "no_answer"}
            return json_response(jsonrpc.error(ErrorCode.SERVER_ERROR, said, reason), 502)

    return handle


def _check_own(site: Site, caller: Caller) -> None:
    own = site.settings.agent
    if caller.trust != "verified" or not same_agent(caller.agent_id, own):
        raise Forbidden(f"Only {own} may do this in the node's name", reason="other_agent")
