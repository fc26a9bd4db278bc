"""The operator is who has the operator's key, wherever the call comes from (design §7)."""

from server.auth.authenticator import Caller
from server.domain.errors import Forbidden, Unauthenticated
from server.store import keys
from tests.server.auth import test_authenticator
from tests.server.auth.test_authenticator import BACKEND, LOCAL, OWN, Node, refused

path = test_authenticator.path
node = test_authenticator.node


def test_the_operators_key_is_the_nodes_own_agent_with_more(node: Node) -> None:
    """From anywhere, and whatever the agent is called by now; a place never makes an operator."""
    key = keys.new_operator_key()
    headers = {b"authorization": b"Bearer " + key.encode()}
    refused(Unauthenticated, "unknown_key", lambda: node.identify(headers))
    keys.put_operator(node.db, key)
    operator = Caller(OWN, "local", "verified", "key", operator=True)
    assert node.identify(headers, None, host="0.0.0.0") == operator
    assert node.identify({**headers, b"x-agent-id": OWN.encode()}) == operator
    renamed = node.identify(headers, repo="renamed")
    assert (renamed.repo, renamed.operator) == ("renamed", True)
    assert operator.is_own_agent
    assert LOCAL.is_own_agent
    assert not LOCAL.operator
    other = {**headers, b"x-agent-id": BACKEND.encode()}
    refused(Forbidden, "agent_mismatch", lambda: node.identify(other))
    keys.put_operator(node.db, keys.new_operator_key())
    refused(Unauthenticated, "unknown_key", lambda: node.identify(headers))


def test_an_agents_key_is_no_operators(node: Node) -> None:
    """Nor is one that only looks like it."""
    given = keys.new_operator_key()
    keys.add(node.db, given, agent_id=OWN, repo="local", now=1)
    for bearer in (node.key(OWN), node.key(human=True), b"Bearer " + given.encode()):
        caller = node.identify({b"authorization": bearer})
        assert (caller.operator, caller.is_own_agent) == (False, False)
