"""Who calls (CACP 2.0, Security Considerations; design §6), over a real file and real settings."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.auth.authenticator import Authenticator, Caller, issue_token
from server.domain.errors import Forbidden, Refusal, Unauthenticated
from server.settings import Settings
from server.store import keys, peers, tokens
from server.store.connection import Connection
from tests.support.located import connect, prepare

OWN = "aid://localhost/local@1.0.0"
BACKEND = "aid://example.com/backend@1.0.0"
FRONTEND = "aid://example.com/frontend@1.0.0"
LOCAL = Caller(OWN, "local", "verified", "local")
HOST = {b"host": b"127.0.0.1:8080"}


class Identity:
    def __init__(self, node: "Node", settings: Settings, **more: Any) -> None:
        self.identify = partial(Authenticator(settings, node.secret, **more).identify, node.db)


class Node:
    """The part of a node that identity needs."""

    def __init__(self, db: Connection) -> None:
        self.db = db
        self.secret = tokens.node_secret(db)

    def identify(
        self, headers: dict[bytes, bytes], client: str | None = "127.0.0.1", **settings: Any
    ) -> Caller:
        return Identity(self, Settings(**settings)).identify(headers, client)

    def key(self, agent_id: str = BACKEND, **more: Any) -> bytes:
        key = keys.new_key()
        keys.add(self.db, key, agent_id=agent_id, repo="backend-api", now=1, **more)
        return b"Bearer " + key.encode()

    def peer(self, agent_id: str, trust: str = "unkeyed", repo: str | None = "web") -> None:
        peers.put(self.db, agent_id, "http://127.0.0.1:9", repo, trust, 1)

    def token(self, agent_id: str, *, seconds: int = 60) -> bytes:
        now = time.time_ns() // 1000
        token_id = tokens.add(self.db, project_id="p", agent_id=agent_id, now=now, expires_at=now)
        return issue_token(
            self.secret,
            token_id=token_id,
            project_id="p",
            agent_id=agent_id,
            issued_at=now,
            expires_at=now + seconds * 1_000_000,
        ).encode()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("identity") / "cacp.db"
    prepare(path)
    return path


@pytest.fixture
def node(path: Path) -> Iterator[Node]:
    with closing(connect(path)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield Node(db)
        db.execute("ROLLBACK")


# --- without a key: the node's own agent ------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        HOST,
        {b"host": b"localhost"},
        {b"host": b"LocalHost:8080"},
        {b"host": b"127.4.5.6:80"},
        {b"host": b"[::1]:8080"},
        {**HOST, b"origin": b"http://localhost:8080"},
        {**HOST, b"origin": b"http://[::1]:8080"},
        {**HOST, b"x-agent-id": OWN.encode()},
        {**HOST, b"x-agent-id": b"aid://localhost/local@2.0.0"},
    ],
)
@pytest.mark.parametrize("client", ["127.0.0.1", "::1"])
def test_over_loopback_the_nodes_own_agent_needs_no_key(
    node: Node, headers: dict[bytes, bytes], client: str
) -> None:
    assert node.identify(headers, client) == LOCAL


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "foreign_host"),
        ({b"host": b""}, "foreign_host"),
        ({b"host": b"evil.example"}, "foreign_host"),
        ({b"host": b"127.0.0.1.evil.example:8080"}, "foreign_host"),
        ({b"host": b"localhost.evil.example"}, "foreign_host"),
        ({b"host": b"localhost:8080@evil.example"}, "foreign_host"),
        ({b"host": b"evil.example#localhost"}, "foreign_host"),
        ({b"host": b"192.168.0.1"}, "foreign_host"),
        ({b"host": b"127.0.0.1:port"}, "foreign_host"),
        ({b"host": b"[::1"}, "foreign_host"),
        ({b"host": b"localhost\xff"}, "foreign_host"),
        ({**HOST, b"origin": b"null"}, "foreign_origin"),
        ({**HOST, b"origin": b""}, "foreign_origin"),
        ({**HOST, b"origin": b"https://evil.example"}, "foreign_origin"),
        ({**HOST, b"origin": b"http://localhost.evil.example"}, "foreign_origin"),
        ({**HOST, b"origin": b"file://localhost"}, "foreign_origin"),
        ({**HOST, b"origin": b"http://localhost:80 http://evil.example"}, "foreign_origin"),
        ({**HOST, b"forwarded": b"for=127.0.0.1"}, "forwarded"),
        ({**HOST, b"x-forwarded-for": b"127.0.0.1"}, "forwarded"),
        ({**HOST, b"x-forwarded-proto": b"http"}, "forwarded"),
        ({**HOST, b"x-real-ip": b"127.0.0.1"}, "forwarded"),
        ({**HOST, b"via": b"1.1 proxy"}, "forwarded"),
    ],
)
def test_neither_page_nor_proxy_is_the_nodes_own_agent(
    node: Node, headers: dict[bytes, bytes], reason: str
) -> None:
    refused(Unauthenticated, reason, lambda: node.identify(headers))
    own = {**headers, b"x-agent-id": OWN.encode()}
    refused(Unauthenticated, reason, lambda: node.identify(own))


@pytest.mark.parametrize("client", [None, "192.168.0.9", "10.0.0.1", "2001:db8::1"])
def test_who_is_not_on_this_machine_needs_a_key(node: Node, client: str | None) -> None:
    refused(Unauthenticated, "no_credentials", lambda: node.identify(HOST, client))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.1", "node.example"])
def test_a_node_that_is_reachable_from_outside_needs_a_key_of_everybody(
    node: Node, host: str
) -> None:
    refused(Unauthenticated, "no_credentials", lambda: node.identify(HOST, host=host))
    for claimed in (OWN, "aid://localhost/local@2.0.0"):
        node.peer(claimed)
        headers = {**HOST, b"x-agent-id": claimed.encode()}
        for trusting in (True, False):
            call = partial(node.identify, headers, host=host, trust_unkeyed_peers=trusting)
            refused(Unauthenticated, "no_credentials", call)


def test_a_name_that_an_operator_allows_makes_nobody_the_own_agent(node: Node) -> None:
    """A proxy on this machine that passes the public Host on must not become the agent."""
    headers = {b"host": b"Node.internal:8080"}
    refused(
        Unauthenticated,
        "foreign_host",
        lambda: node.identify(headers, allowed_hosts="node.internal"),
    )


# --- with a key -------------------------------------------------------------------------------


def test_a_key_stands_for_its_agent_from_anywhere(node: Node) -> None:
    headers = {b"authorization": node.key(), b"host": b"any", b"x-forwarded-for": b"1.2.3.4"}
    caller = Caller(BACKEND, "backend-api", "verified", "key")
    assert node.identify(headers, None, host="0.0.0.0") == caller
    assert node.identify(headers, "127.0.0.1") == caller


def test_the_scheme_has_no_case(node: Node) -> None:
    bearer = node.key().replace(b"Bearer", b"BEARER")
    assert node.identify({b"authorization": bearer}).agent_id == BACKEND


def test_a_key_carries_its_trust(node: Node) -> None:
    assert node.identify({b"authorization": node.key(trust="known")}).trust == "known"


@pytest.mark.parametrize(
    "authorization",
    [
        b"",
        b"Bearer",
        b"Bearer ",
        b"Bearer cacp_sk_",
        b"Bearer cacp_sk_short",
        b"Bearer sk_live_aaaaaaaaaaaaaaaaaaaaaaaa",
        b"Bearer CACP_SK_aaaaaaaaaaaaaaaaaaaaaaaa",
        b"Basic Y2FjcDpjYWNw",
        b"cacp_sk_aaaaaaaaaaaaaaaaaaaaaaaa",
        b"Bearer cacp_sk_aaaaaaaaaaaaaaaaaaaaaaa\xe9",
        b"Bearer cacp_sk_aaaaaaaaaaaaaaaaaaaaaaaa extra",
        b"Bearer cacp_sk_aaaaaaaaaaaaaaaaaaaaaaaa\n",
        b"Bearer cacp_sk_" + b"a" * 100_000,
    ],
)
def test_a_malformed_key_is_refused_even_over_loopback(node: Node, authorization: bytes) -> None:
    headers = {**HOST, b"authorization": authorization}
    refused(Unauthenticated, "malformed_key", lambda: node.identify(headers))


def test_an_unknown_key_is_refused_and_not_repeated(node: Node) -> None:
    key = keys.new_key()
    refusal = refused(
        Unauthenticated,
        "unknown_key",
        lambda: node.identify({**HOST, b"authorization": f"Bearer {key}".encode()}),
    )
    assert key not in repr(refusal)
    assert key not in str(refusal.data)


def test_a_revoked_key_is_out_with_the_next_request(node: Node) -> None:
    headers = {b"authorization": node.key()}
    identity = Identity(node, Settings())
    identity.identify(headers, None)
    keys.revoke(node.db, keys.every(node.db)[0].key_id, now=2)
    refused(Unauthenticated, "revoked_key", lambda: identity.identify(headers, None))


def test_a_key_that_was_granted_to_a_known_agent_reads(node: Node) -> None:
    """Design §6: known = found in ADP, proven by a challenge, reads only."""
    key = keys.new_key()
    granted = {keys.hash_of(key.encode()): FRONTEND}
    identity = Identity(node, Settings(), known=lambda db, hashed: granted.get(hashed))
    headers = {b"authorization": b"Bearer " + key.encode()}
    assert identity.identify(headers, None) == Caller(FRONTEND, "", "known", "key")
    named = {**headers, b"x-agent-id": BACKEND.encode()}
    refused(Forbidden, "agent_mismatch", lambda: identity.identify(named, None))
    granted.clear()
    refused(Unauthenticated, "unknown_key", lambda: identity.identify(headers, None))


def test_a_key_made_by_another_process_counts_at_once(tmp_path: Path) -> None:
    prepare(tmp_path / "cacp.db")
    with (
        closing(connect(tmp_path / "cacp.db")) as ours,
        closing(connect(tmp_path / "cacp.db")) as theirs,
    ):
        running = Node(ours)
        identity = Identity(running, Settings())
        headers = {b"authorization": Node(theirs).key()}
        assert identity.identify(headers, None).agent_id == BACKEND


@pytest.mark.parametrize("claimed", [BACKEND, "aid://example.com/backend@1.4.0"])
def test_the_agent_may_be_named_in_any_of_its_versions(node: Node, claimed: str) -> None:
    headers = {b"authorization": node.key(), b"x-agent-id": claimed.encode()}
    assert node.identify(headers).agent_id == BACKEND


@pytest.mark.parametrize("claimed", [FRONTEND, OWN, "backend", "aid://example.com/backend/x@1"])
def test_a_key_does_not_stand_for_another_agent(node: Node, claimed: str) -> None:
    headers = {b"authorization": node.key(), b"x-agent-id": claimed.encode()}
    refusal = refused(Forbidden, "agent_mismatch", lambda: node.identify(headers))
    assert refusal.data["agentId"] == BACKEND


def test_with_named_hosts_a_keyed_request_must_name_one(node: Node) -> None:
    headers = {b"authorization": node.key()}
    named = {"allowed_hosts": "cacp.example, other.example", "host": "0.0.0.0"}
    for host in (b"cacp.example", b"OTHER.example:443", b"localhost:8080"):
        assert node.identify({**headers, b"host": host}, None, **named).agent_id == BACKEND
    for wrong in ({b"host": b"evil.example"}, {}):
        call = partial(node.identify, {**headers, **wrong}, None, **named)
        refused(Forbidden, "host_not_allowed", call)


# --- peers without keys -----------------------------------------------------------------------


def test_a_registered_peer_without_a_key_is_taken_at_its_word(node: Node) -> None:
    node.peer(FRONTEND)
    headers = {**HOST, b"x-agent-id": FRONTEND.encode()}
    assert node.identify(headers) == Caller(FRONTEND, "web", "unkeyed", "peer")


def test_a_peer_that_named_no_repo_speaks_for_none(node: Node) -> None:
    node.peer(FRONTEND, repo=None)
    assert node.identify({**HOST, b"x-agent-id": FRONTEND.encode()}).repo == ""


def test_a_node_may_take_unkeyed_peers_from_outside(node: Node) -> None:
    node.peer(FRONTEND)
    headers = {**HOST, b"x-agent-id": FRONTEND.encode()}
    outside = {"host": "0.0.0.0", "allowed_hosts": "node.internal"}
    named = {**headers, b"host": b"node.internal:8080"}
    taken = node.identify(named, "10.0.0.7", trust_unkeyed_peers=True, **outside)
    assert taken.trust == "unkeyed"
    refused(Unauthenticated, "no_credentials", lambda: node.identify(named, "10.0.0.7", **outside))
    refused(
        Unauthenticated,
        "no_credentials",
        lambda: node.identify(headers, "10.0.0.7", trust_unkeyed_peers=True),
    )


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({b"host": b"evil.example"}, "foreign_host"),
        ({b"origin": b"https://evil.example"}, "foreign_origin"),
        ({b"x-forwarded-for": b"10.0.0.1"}, "forwarded"),
    ],
)
def test_neither_page_nor_proxy_is_a_peer(
    node: Node, more: dict[bytes, bytes], reason: str
) -> None:
    node.peer(FRONTEND)
    headers = {**HOST, b"x-agent-id": FRONTEND.encode(), **more}
    refused(Unauthenticated, reason, lambda: node.identify(headers))


def test_by_setting_no_peer_is_taken_at_its_word(node: Node) -> None:
    node.peer(FRONTEND)
    headers = {**HOST, b"x-agent-id": FRONTEND.encode()}
    refused(
        Unauthenticated,
        "unkeyed_peers_off",
        lambda: node.identify(headers, trust_unkeyed_peers=False),
    )


def test_an_agent_that_nobody_registered_is_rejected(node: Node) -> None:
    headers = {**HOST, b"x-agent-id": FRONTEND.encode()}
    refused(Unauthenticated, "unknown_agent", lambda: node.identify(headers))


@pytest.mark.parametrize("claimed", [BACKEND, "aid://example.com/backend@9.0.0"])
def test_a_keyed_agent_is_never_taken_at_its_word(node: Node, claimed: str) -> None:
    node.key(BACKEND)
    node.peer(claimed)
    headers = {**HOST, b"x-agent-id": claimed.encode()}
    refused(Unauthenticated, "key_required", lambda: node.identify(headers))


def test_a_verified_peer_whose_key_was_revoked_is_not_taken_at_its_word(node: Node) -> None:
    node.peer(FRONTEND, trust="verified")
    headers = {**HOST, b"x-agent-id": FRONTEND.encode()}
    refused(Unauthenticated, "key_required", lambda: node.identify(headers))


@pytest.mark.parametrize("claimed", [b"", b"a" * 201])
def test_an_agent_id_has_bounds(node: Node, claimed: bytes) -> None:
    headers = {**HOST, b"x-agent-id": claimed}
    refused(Unauthenticated, "malformed_agent_id", lambda: node.identify(headers))


# --- project tokens ---------------------------------------------------------------------------


def test_a_token_narrows_a_caller_to_one_project(node: Node) -> None:
    headers = {b"authorization": node.key(), b"x-project-token": node.token(BACKEND)}
    assert node.identify(headers).projects == frozenset({"p"})


def test_a_token_stays_within_the_projects_of_its_key(node: Node) -> None:
    token = {b"x-project-token": node.token(BACKEND)}
    some = {b"authorization": node.key(projects=["q", "p"]), **token}
    assert node.identify(some).projects == frozenset({"p"})
    with pytest.raises(Forbidden) as refusal:
        node.identify({b"authorization": node.key(projects=["q", "r"]), **token})
    assert refusal.value.data == {"reason": "other_project", "projectIds": ["q", "r"]}


def test_a_token_narrows_the_nodes_own_agent_too(node: Node) -> None:
    assert node.identify({**HOST, b"x-project-token": node.token(OWN)}).projects == frozenset({"p"})


def test_a_token_is_no_key(node: Node) -> None:
    headers = {b"x-project-token": node.token(BACKEND)}
    refused(Unauthenticated, "no_credentials", lambda: node.identify(headers, "10.0.0.1"))


def test_a_token_serves_its_agent_only(node: Node) -> None:
    headers = {b"authorization": node.key(), b"x-project-token": node.token(FRONTEND)}
    refused(Forbidden, "agent_mismatch", lambda: node.identify(headers))


def test_a_token_expires(node: Node) -> None:
    headers = {b"authorization": node.key(), b"x-project-token": node.token(BACKEND, seconds=-5)}
    refused(Unauthenticated, "expired_token", lambda: node.identify(headers))


def test_a_token_can_be_revoked(node: Node) -> None:
    headers = {b"authorization": node.key(), b"x-project-token": node.token(BACKEND)}
    node.identify(headers)
    tokens.revoke(node.db, tokens.every(node.db)[0].token_id, now=2)
    refused(Unauthenticated, "revoked_token", lambda: node.identify(headers))


def test_a_token_that_was_never_recorded_does_not_count(node: Node) -> None:
    claims = sound_claims() | {"jti": "tok_unheard_of"}
    token = jwt.encode(claims, node.secret, algorithm="HS256").encode()
    headers = {b"authorization": node.key(), b"x-project-token": token}
    refused(Unauthenticated, "revoked_token", lambda: node.identify(headers))


@pytest.mark.parametrize("missing", ["aud", "sub", "jti", "project", "exp"])
def test_a_token_needs_all_its_claims(node: Node, missing: str) -> None:
    claims = {name: value for name, value in sound_claims().items() if name != missing}
    headers = with_token(node, jwt.encode(claims, node.secret, algorithm="HS256"))
    refused(Unauthenticated, "invalid_token", lambda: node.identify(headers))


def test_a_token_is_what_pyjwt_makes_of_the_claims(node: Node) -> None:
    headers = with_token(node, jwt.encode(sound_claims(), node.secret, algorithm="HS256"))
    assert node.identify(headers).projects == frozenset({"p"})


@pytest.mark.parametrize(
    "wrong", [{"aud": "other"}, {"aud": ["other"]}, {"sub": 7}, {"jti": 7}, {"exp": "soon"}]
)
def test_a_token_needs_sound_claims(node: Node, wrong: dict[str, Any]) -> None:
    body = json.dumps(sound_claims() | wrong).encode()
    headers = with_token(node, jwt.api_jws.encode(body, node.secret, algorithm="HS256"))
    refused(Unauthenticated, "invalid_token", lambda: node.identify(headers))


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        ("HS256", lambda secret: b"x" * 32),
        ("HS512", lambda secret: secret * 2),
        ("none", lambda secret: None),
    ],
)
def test_a_token_is_signed_by_this_node_with_the_one_algorithm(
    node: Node, algorithm: str, key: Callable[[bytes], bytes | None]
) -> None:
    token = jwt.encode(sound_claims(), key(node.secret) or "", algorithm=algorithm)
    headers = with_token(node, token)
    refused(Unauthenticated, "invalid_token", lambda: node.identify(headers))


def test_a_token_without_its_signature_is_refused(node: Node) -> None:
    header, body, _ = jwt.encode(sound_claims(), node.secret, algorithm="HS256").split(".")
    headers = with_token(node, f"{header}.{body}.")
    refused(Unauthenticated, "invalid_token", lambda: node.identify(headers))


@pytest.mark.parametrize(
    "token",
    [
        "",
        "x",
        "..",
        "a.b.c",
        base64.urlsafe_b64encode(b'{"a":' * 20_000).decode() + ".e30.x",
        base64.urlsafe_b64encode(b"[" * 20_000).decode() + ".e30.x",
    ],
)
def test_a_malformed_token_is_refused(node: Node, token: str) -> None:
    headers = with_token(node, token)
    refused(Unauthenticated, "invalid_token", lambda: node.identify(headers))


NAMES = [b"authorization", b"x-agent-id", b"x-project-token", b"host", b"origin", b"via"]


@given(st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=40), min_size=1))
def test_random_headers_make_nobody_a_caller(path: Path, headers: dict[bytes, bytes]) -> None:
    with closing(connect(path)) as db, pytest.raises(Refusal):
        Node(db).identify(headers, host="0.0.0.0")


def sound_claims() -> dict[str, Any]:
    return {
        "aud": "cacp",
        "sub": BACKEND,
        "jti": "tok_1",
        "project": "p",
        "exp": int(time.time()) + 60,
    }


def with_token(node: Node, token: str) -> dict[bytes, bytes]:
    """Headers of a request whose token, if it is sound, is one that the node recorded."""
    node.db.execute("INSERT INTO tokens VALUES ('tok_1', 'p', ?, 1, 1, NULL)", (BACKEND,))
    return {b"authorization": node.key(), b"x-project-token": token.encode()}


def refused(kind: type[Refusal], reason: str, call: Callable[[], object]) -> Refusal:
    with pytest.raises(kind) as refusal:
        call()
    assert refusal.value.data["reason"] == reason
    return refusal.value
