"""What `cacp doctor` checks of the peers: registrations, endpoints, and their clocks."""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from server.domain.doctor_check import DoctorCheck
from server.store.connection import Connection

if TYPE_CHECKING:
    from peers.clock import Reading
    from server.settings import Settings
    from server.store.peers import Peer

ANSWER_SECONDS = 3.0
AT_ONCE = 16


def peer_checks(db: Connection, settings: "Settings") -> Iterator[DoctorCheck]:
    from concurrent.futures import ThreadPoolExecutor

    from server.store import peers

    known = peers.every(db)
    if not known:
        yield DoctorCheck("peers", "ok", "none are registered")
        return
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        yield from pool.map(_endpoint_check, known, [settings.loopback] * len(known))
        readings = pool.map(_read_clock, known, [settings] * len(known))
        yield clocks_check(dict(zip(known, readings, strict=True)))


def clocks_check(readings: "Mapping[Peer, Reading | None]") -> DoctorCheck:
    """Whether this machine's clock agrees with the clocks of the nodes that have a key.

    A reading is None when the peer did not tell its time.
    """
    from peers.clock import reckon
    from server.domain.clocks import Deferred, trouble

    keyed = {
        peer.agent_id: reading for peer, reading in readings.items() if peer.secret is not None
    }
    offsets = {
        name: ahead
        for name, reading in keyed.items()
        if reading is not None and (ahead := reading.at(reading.received, 0)) is not None
    }
    verdict = reckon(offsets, len(keyed) + 1)
    problem = trouble(verdict, has_jumped=False, newest=0, deferred=Deferred(), now=0, name=str)
    if problem is not None:
        finding, remedy = problem.detail.rsplit(". ", 1)
        return DoctorCheck("clocks", "warning", finding, remedy)
    if not offsets:
        return DoctorCheck("clocks", "ok", "no peer has reported its time")
    return DoctorCheck(
        "clocks", "ok", f"{verdict.agreeing} of {verdict.clocks} nodes share the time"
    )


def _read_clock(peer: "Peer", settings: "Settings") -> "Reading | None":
    """What a peer's clock shows, and when the question left and the answer came, by this machine's
    clock. None when the peer has no key, or gives no time."""
    import httpx

    from peers.clock import Reading
    from server.domain.endpoints import check_endpoint
    from server.domain.errors import Refusal

    if peer.secret is None:
        return None
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "cacp/sync/digest",
        "params": {"prefixes": [""], "source_agent": settings.agent},
    }
    with suppress(Refusal, httpx.HTTPError, ValueError, KeyError, TypeError):
        endpoint = check_endpoint(peer.endpoint, loopback_allowed=settings.loopback)
        sent = time.time_ns() // 1000
        response = httpx.post(
            endpoint.url,
            json=request,
            headers={"Authorization": f"Bearer {peer.secret}"},
            timeout=ANSWER_SECONDS,
            follow_redirects=False,
            trust_env=False,
        )
        peer_time = int(response.json()["result"]["time"])
        return Reading(sent, peer_time, time.time_ns() // 1000)
    return None


def _endpoint_check(peer: "Peer", loopback: bool) -> DoctorCheck:
    """Whether the peer answers at the endpoint that it registered."""
    import httpx

    from server.domain.endpoints import check_endpoint
    from server.domain.errors import Refusal

    name = f"peer {peer.agent_id}"
    try:
        endpoint = check_endpoint(peer.endpoint, loopback_allowed=loopback)
        card = httpx.get(
            f"{endpoint.url.rstrip('/')}/.well-known/agent.json",
            timeout=ANSWER_SECONDS,
            follow_redirects=False,
            trust_env=False,
        )
    except Refusal as refusal:
        return DoctorCheck(
            name, "broken", refusal.message, "the peer must register another endpoint"
        )
    except httpx.HTTPError:
        return DoctorCheck(
            name,
            "warning",
            f"no answer at {peer.endpoint}",
            "start it, or make it reachable; this node keeps for it what it misses",
        )
    if card.status_code != 200:
        return DoctorCheck(
            name,
            "warning",
            f"{peer.endpoint} answers with HTTP {card.status_code}",
            "is it a CACP node? It should have an agent card",
        )
    return DoctorCheck(name, "ok", f"answers at {peer.endpoint}")
