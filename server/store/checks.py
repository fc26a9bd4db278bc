"""What `cacp doctor` checks of a node's database, in the few rows that say it. The running node
checks the same for the page, so nothing here reads much or calls anybody."""

from collections.abc import Iterator

from peers.clock import is_ahead
from schemas.stamps import iso
from server.domain.clocks import doubted
from server.domain.doctor_check import DoctorCheck
from server.store import (
    alarms,
    deferred,
    equivocations,
    keys,
    mesh,
    peers,
    stamps,
    undelivered,
)
from server.store.connection import Connection


def store_checks(db: Connection, now: int, newest: int) -> Iterator[DoctorCheck]:
    """Every check of this module. `now` is a stamp, `newest` the largest of what is stored."""
    yield differences_check(db)
    yield equivocation_check(db)
    yield certainty_check(db, now)
    yield stamps_check(newest, now)
    yield deferred_check(db, now)
    yield undelivered_check(db)
    yield from registration_checks(db)


def differences_check(db: Connection) -> DoctorCheck:
    """Whether peers stay different, comparison after comparison."""
    differing = [alarm.about for alarm in alarms.every(db) if alarm.reason == "content_differs"]
    if not differing:
        return DoctorCheck("differences", "ok", "every peer that was compared holds the same")
    return DoctorCheck(
        "differences",
        "warning",
        f"these peers still differ after comparing: {', '.join(differing)}",
        "the logs of both nodes say what was refused; run the same release on both, and `cacp "
        "doctor` on each",
    )


def equivocation_check(db: Connection) -> DoctorCheck:
    """Whether nodes have signed contradicting things, which no operator has noted."""
    counts = equivocations.counts(db, unnoted=True)
    if not counts:
        return DoctorCheck("equivocation", "ok", "no node is known to contradict itself")
    return DoctorCheck(
        "equivocation",
        "warning",
        "nodes that signed two different things under one id: "
        + ", ".join(f"{node} ({count})" for node, count in counts.items()),
        "`cacp peers evidence AID` shows both; `cacp peers remove AID` ends the exchange, `cacp "
        "peers note AID` ends this warning",
    )


def certainty_check(db: Connection, now: int) -> DoctorCheck:
    """Whether the clock is near the last time that the node was sure of. `now` is a stamp."""
    sure = stamps.kept(db)
    if sure is None or not sure.is_doubtful(now):
        return DoctorCheck("certainty", "ok", "the clock is where the node left it")
    return DoctorCheck(
        "certainty",
        "warning",
        f"{doubted(sure, now)}: until the clock is confirmed, nothing expires or is archived",
        "run NTP; if the clock is right, run `cacp clock confirm`",
    )


def stamps_check(newest: int, now: int) -> DoctorCheck:
    """Whether anything stored is stamped ahead of the time. Both are stamps."""
    if is_ahead(newest, now):
        return DoctorCheck(
            "stamps",
            "warning",
            f"the newest stamp is {iso(newest)}, which is in the future: a clock was wrong",
            "run NTP; new writes get the right time, and nothing waits. `cacp clock repair` gives "
            "new stamps to what no other node has",
        )
    return DoctorCheck(
        "stamps", "ok", f"the newest is {iso(newest)}" if newest else "nothing is stored"
    )


def deferred_check(db: Connection, now: int) -> DoctorCheck:
    """Whether messages of peers wait for their time, or for what they depend on."""
    ahead = deferred.ahead(db, now)
    if ahead.messages:
        return DoctorCheck(
            "deferred",
            "warning",
            f"{_messages(ahead.messages)} from peers, stamped too far ahead of the time, not "
            f"shown before {iso(ahead.until)}",
            "run NTP on the peers' machines; `cacp clock deferred` lists the messages, `cacp clock "
            "accept` shows them now",
        )
    shares = deferred.by_source(db)
    if shares:
        waiting = sum(share.messages for share in shares)
        return DoctorCheck(
            "deferred",
            "warning",
            f"{_messages(waiting)} from peers, {shares[0].messages} of them from "
            f"{shares[0].source}: each waits for a project that is unknown here, or for an earlier "
            "version or round",
            "make sure that those peers are up: this node fetches what is missing from them. "
            "`cacp peers deferred` lists the messages, and drops them",
        )
    return DoctorCheck("deferred", "ok", "no message of a peer waits")


def undelivered_check(db: Connection) -> DoctorCheck:
    """Whether peers have refused anything that this node sent to them."""
    by_peer = undelivered.every(db)
    if not by_peer:
        return DoctorCheck("undelivered", "ok", "peers have accepted everything sent to them")
    peer, entities = next(iter(by_peer.items()))
    name, failure = next(iter(entities.items()))
    count = sum(map(len, by_peer.values()))
    return DoctorCheck(
        "undelivered",
        "warning",
        f"{count} not accepted; the first by {peer}: {name.entity} {name.entity_id}: "
        f"{failure.reason}",
        "`cacp peers` lists them; `cacp peers retry` tries again, `cacp peers drop` gives up",
    )


def _messages(count: int) -> str:
    return f"{count} message{'' if count == 1 else 's'}"


def registration_checks(db: Connection) -> Iterator[DoctorCheck]:
    """A warning for each agent that has a key and is also registered as a peer without a key.

    Making a key ends such a registration; one that is older, or made on another node, stays.
    """
    for peer in peers.every(db):
        agent = peer.agent_id
        if peer.trust == "unkeyed" and (
            keys.is_keyed(db, agent) or mesh.home_at_peer(db, agent) is not None
        ):
            yield DoctorCheck(
                f"agent {agent}",
                "warning",
                f"it has a key, but is also registered without one, at {peer.endpoint}",
                f"cacp peers remove {agent}: it was registered without proof of its key",
            )
