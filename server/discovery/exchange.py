"""A node as the ADP exchange of a private network (CACP 2.0, ADP Integration).

POST /v1/search/ and GET /v1/agents/… need an authenticated caller, POST /v1/register/ a verified
one. The node itself is always listed. Responses have the shape of those of the public exchange.
"""

from functools import partial

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from schemas.adp import (
    PAGE_MAX,
    AdpManifest,
    Listing,
    ListingPage,
    RegisterAnswer,
    RegisterRequest,
    SearchRequest,
    to_wire,
)
from schemas.base import NAME_MAX
from server.auth.authenticator import Caller
from server.domain.agents import check_canonical, check_unlike, identity
from server.domain.directory import DirectoryEntry, check_registrar, protocols_of, search, words_of
from server.domain.endpoints import check_endpoint
from server.domain.errors import Forbidden, InvalidInput, TooLarge
from server.domain.invalid import invalid_input
from server.http.routes import AppState, Handler, guarded, json_response, read_model
from server.store import directory, keys, mesh
from server.store.connection import Connection
from server.store.database import Database
from server.store.directory import Registered
from server.store.group_commit import Transaction

BODY_LIMIT = 64 * 1024
ENTRIES_MAX = 10_000


class AgentRegistry:
    """The listed agents: this node, and those that registered."""

    def __init__(self, database: Database, own: AdpManifest, *, loopback: bool) -> None:
        self._database = database
        self._own = Registered(own, identity(own.aid), verified=True)
        self._own_entry = DirectoryEntry(
            self._own.registrar, " ".join(words_of(own)), " ".join(protocols_of(own))
        )
        self._loopback = loopback

    async def search(self, request: SearchRequest) -> ListingPage:
        """The matching agents, best match first."""

        def agents_found(db: Connection) -> list[str]:
            entries = [self._own_entry, *directory.entries(db, now=self._database.clock.sure())]
            return search(entries, request.query, request.filters.protocols)

        agents = await self._database.read_wide(agents_found)
        shown = agents[request.offset :][: request.limit]
        return ListingPage(
            results=[listing for agent in shown if (listing := await self.find(agent)) is not None],
            total=len(agents),
            limit=request.limit,
            offset=request.offset,
        )

    async def find(self, agent_id: str) -> Listing | None:
        """The listing of an agent, whatever version its id names; None when it is not listed."""
        if identity(agent_id) == self._own.registrar:
            return _listing(self._own)
        sure = self._database.clock.sure()
        registered = await self._database.read(partial(directory.find, agent_id=agent_id, now=sure))
        return None if registered is None else _listing(registered)

    async def register(self, caller: Caller, manifest: AdpManifest) -> RegisterAnswer:
        """List an agent, or renew its entry.

        Raises Forbidden when the agent is not the caller, Conflict when it registered itself with a
        key, InvalidInput when it has no endpoint that others could call, TooLarge when the exchange
        is full. Callers without a key also get InvalidInput for an id that is not in canonical
        form, and Forbidden for one that looks like a known agent's.
        """
        if manifest.endpoint is None:
            raise InvalidInput(
                "manifest.invocation.protocols: should name an endpoint of type cacp"
            )
        for protocol in manifest.invocation.protocols:
            if protocol.endpoint is not None:
                check_endpoint(protocol.endpoint, loopback_allowed=self._loopback)
        if identity(manifest.aid) == self._own.registrar:
            raise Forbidden(f"{manifest.aid} is this exchange, which is always listed")
        return await self._database.write(partial(self._register, caller, manifest))

    def _register(
        self, caller: Caller, manifest: AdpManifest, transaction: Transaction
    ) -> RegisterAnswer:
        db, sure = transaction.connection, transaction.sure
        keyed = caller.via == "key"
        before = directory.find(db, manifest.aid, now=sure)
        if not keyed:
            check_canonical(manifest.aid, "manifest.aid")
        if before is None and not keyed:
            listed = directory.agents(db)
            check_unlike(manifest.aid, [self._own.registrar, *mesh.known_agents(db), *listed])
        check_registrar(
            manifest.aid,
            caller=caller.agent_id,
            keyed=keyed,
            has_key=keys.is_keyed(db, manifest.aid),
            pinned_to=before.registrar if before else None,
        )
        if before is None and directory.count(db, now=sure) >= ENTRIES_MAX:
            raise TooLarge(f"The exchange lists {ENTRIES_MAX} agents, which is its limit")
        directory.forget(db, now=sure)
        entry = Registered(manifest, identity(caller.agent_id), keyed)
        directory.put(db, entry, now=transaction.stamp)
        return RegisterAnswer(message="Agent registered", aid=manifest.aid, verified=keyed)


def routes(state: AppState, listed: AgentRegistry) -> list[Route]:
    """The routes of an exchange."""

    async def search(state: AppState, request: Request, caller: Caller) -> Response:
        params = await read_model(request, SearchRequest, BODY_LIMIT)
        return json_response({**to_wire(await listed.search(params)), "query": params.query})

    async def register(state: AppState, request: Request, caller: Caller) -> Response:
        params = await read_model(request, RegisterRequest, BODY_LIMIT)
        return json_response(to_wire(await listed.register(caller, params.manifest)), 201)

    async def agents(state: AppState, request: Request, caller: Caller) -> Response:
        given = {"limit": PAGE_MAX, **request.query_params, "query": ""}
        try:
            page = SearchRequest.model_validate(given)
        except ValidationError as error:
            raise invalid_input(error) from None
        return json_response(to_wire(await listed.search(page)))

    async def agent(state: AppState, request: Request, caller: Caller) -> Response:
        agent_id = request.path_params["aid"]
        listing = await listed.find(agent_id)
        if listing is None:
            return json_response({"detail": f"There is no agent {agent_id[:NAME_MAX]}"}, 404)
        return json_response(to_wire(listing))

    def at(path: str, handler: Handler, method: str) -> list[Route]:
        # The specification ends these paths in a slash; people who type them leave it out.
        return [Route(spelling, handler, methods=[method]) for spelling in (f"{path}/", path)]

    return [
        *at("/v1/search", guarded(state, search), "POST"),
        *at("/v1/register", guarded(state, register, wanted="write"), "POST"),
        *at("/v1/agents", guarded(state, agents), "GET"),
        Route("/v1/agents/{aid:path}", guarded(state, agent)),
    ]


def _listing(registered: Registered) -> Listing:
    manifest = registered.manifest
    return Listing(
        aid=manifest.aid,
        name=manifest.name,
        description=manifest.description,
        verified=registered.verified,
        manifest=manifest,
    )
