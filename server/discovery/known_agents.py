"""Trust level "known": agents that ADP lists, without a key (CACP 2.0, Trust Levels; design §6).

    caller                              node                     endpoint that ADP lists
      │ POST /known {agentId, nonce}      │                                │
      │ ────────────────────────────────► │ GET …/cacp-challenge/{nonce}   │
      │                                   │ ─────────────────────────────► │
      │                                   │ ◄───────────── {agentId, node} │
      │ ◄─────────────── {key, expiresIn} │                                │

The caller makes up the nonce, and shows at its endpoint who it is and which node it asks. Nobody
else can: an endpoint answers only for its own nonces. A node in the middle can't relay a nonce,
because the response names the node that the caller meant. The granted key may only read, expires
after an hour and is not kept on disk: after a restart, callers ask again. Replicas know each
other's grants and nonces.
"""

import secrets
import time
from collections.abc import Awaitable, Callable

import structlog
from pydantic import ValidationError

from peers.client import HttpClient
from peers.errors import CallError, PeerRefused
from schemas.adp import PROTOCOL, Filters, Listing, SearchRequest
from schemas.known import CHALLENGE_PATH, Challenge, KnownGrant, KnownParams
from server.cluster.shared_values import SharedValues
from server.domain.agents import check_canonical, check_unlike, same_agent
from server.domain.endpoints import place
from server.domain.errors import Forbidden, InvalidInput, RateLimited, Unauthenticated
from server.http.rate_limit import CallerLimit
from server.settings import Settings
from server.store import keys, mesh
from server.store.connection import Read

Search = Callable[[SearchRequest], Awaitable[list[Listing]]]

GRANT_SECONDS = 3600
ASKING_SECONDS = 60.0
"""For how long a nonce is shown at most."""
LISTED_SECONDS = 300.0
UNLISTED_SECONDS = 30.0
"""How long the node caches an agent's endpoint, and that ADP does not list an agent."""
LISTED_MAX = 10_000
ASKED_PER_MINUTE = 20
AT_ONCE = 4
"""Concurrent handshakes: each makes the node call out."""

log = structlog.get_logger()


class Handshake:
    """Decides which agents become known."""

    def __init__(
        self,
        settings: Settings,
        grants: SharedValues,
        limits: CallerLimit,
        search: Search,
        client: HttpClient,
        read: Read,
    ) -> None:
        """`grants` are the granted keys, by their hashes; `limits` those of an address."""
        self._settings = settings
        self._grants = grants
        self._search = search
        self._client = client
        self._read = read
        self._limits = limits
        self._listed: dict[str, tuple[str | None, float]] = {}
        self._under_way = 0

    async def admit(self, params: KnownParams, client: str) -> KnownGrant:
        """A read-only key for an agent that ADP lists and whose endpoint shows the nonce.

        Raises Forbidden, InvalidInput, Unauthenticated, RateLimited for too many requests from one
        address or concurrently, and `peers.adp.ExchangeError` when the exchange can't be asked.
        """
        await self._check(params.agent_id, client)
        self._under_way += 1
        try:
            await self._prove(params)
        finally:
            self._under_way -= 1
        log.info("known_agent", agent=params.agent_id)
        key = keys.new_key()
        await self._grants.put(keys.hash_of(key.encode()), params.agent_id, GRANT_SECONDS)
        return KnownGrant(key=key, expires_in=GRANT_SECONDS)

    async def _check(self, agent_id: str, client: str) -> None:
        if not self._settings.known_agents:
            raise Forbidden(
                "This node does not accept agents without a key (CACP_KNOWN_AGENTS)",
                reason="known_agents_off",
            )
        await self._limits.fill(client)
        self._limits.check(client, time.monotonic())
        if self._under_way >= AT_ONCE:
            raise RateLimited("Too many agents are being looked up; try again in 5 s", retryAfter=5)
        own = same_agent(agent_id, self._settings.agent)
        if own or await self._read(lambda db: keys.is_keyed(db, agent_id)):
            raise Forbidden(f"{agent_id} must call with its key", reason="key_needed")
        check_canonical(agent_id, "agentId")
        check_unlike(agent_id, [self._settings.agent, *await self._read(mesh.known_agents)])

    async def _prove(self, params: KnownParams) -> None:
        endpoint = await self._endpoint(params.agent_id)
        if endpoint is None:
            raise Unauthenticated(f"ADP does not list {params.agent_id}", reason="unknown_agent")
        try:
            answer = await self._client.get(f"{place(endpoint)}{CHALLENGE_PATH}{params.nonce}")
            shown = Challenge.model_validate(answer)
            proven = same_agent(shown.agent_id, params.agent_id) and place(shown.node) == place(
                self._settings.url
            )
        except (CallError, ValidationError, InvalidInput):
            proven = False
        if not proven:
            # One answer for all causes: callers must not use this node to scan for open ports.
            raise Unauthenticated(
                f"The endpoint that ADP lists for {params.agent_id} did not return the "
                f"challenge nonce for {self._settings.url}",
                reason="challenge_failed",
            )

    async def _endpoint(self, agent_id: str) -> str | None:
        """The endpoint that ADP lists for the agent, from the cache or the exchange; None without
        one."""
        now = time.monotonic()
        endpoint, until = self._listed.get(agent_id, (None, 0.0))
        if now < until:
            return endpoint
        listings = await self._search(
            SearchRequest(query=agent_id, filters=Filters(protocols=[PROTOCOL]), limit=50)
        )
        endpoint = next(
            (
                listing.manifest.endpoint
                for listing in listings
                if same_agent(listing.aid, agent_id)
            ),
            None,
        )
        self._listed.pop(agent_id, None)
        lasts = UNLISTED_SECONDS if endpoint is None else LISTED_SECONDS
        self._listed[agent_id] = (endpoint, now + lasts)
        while len(self._listed) > LISTED_MAX:
            del self._listed[next(iter(self._listed))]
        return endpoint


class Asking:
    """The client's side: this node asks another to admit it as known, and shows its nonces."""

    def __init__(self, agent_id: str, client: HttpClient, nonces: SharedValues) -> None:
        """`nonces` are those of open requests, each with the node that is asked."""
        self._agent_id = agent_id
        self._client = client
        self._nonces = nonces

    async def ask(self, url: str) -> KnownGrant:
        """A read-only key for the node at `url`. Raises Unreachable, Forbidden when it refuses."""
        nonce = secrets.token_urlsafe(32)
        await self._nonces.put(nonce, url, ASKING_SECONDS)
        try:
            body = {"agentId": self._agent_id, "nonce": nonce}
            return KnownGrant.model_validate(await self._client.post(f"{place(url)}/known", body))
        except PeerRefused as refused:
            raise Forbidden(f"The node {refused}", reason="not_taken_as_known") from None
        except ValidationError:
            problem = "The node's response is not a grant"
            raise Forbidden(problem, reason="not_taken_as_known") from None
        finally:
            await self._nonces.take(nonce)

    async def shown(self, nonce: str) -> Challenge | None:
        """The challenge of a nonce while its request is open, else None."""
        url = await self._nonces.find(nonce)
        return None if url is None else Challenge(agent_id=self._agent_id, node=url)
