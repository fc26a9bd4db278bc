"""What each trust level may do (CACP 2.0, Trust Levels; design §7).

| trust    | comes from                                   | read | write | sync |
|----------|----------------------------------------------|------|-------|------|
| verified | a key, or the node's own agent over loopback | yes  | yes   | yes  |
| known    | ADP and a challenge, no key exchanged        | yes  |       |      |
| peer     | a node that has exchanged keys with this one   | yes  |       | yes  |
| visitor  | a key, whose agent is at home on another node | yes  |       |      |
| unkeyed  | a registered peer of another make, its word  | yes  |       | yes  |

A peer has full access by syncing: what its agents write, they write on their own node, which signs
it. This node can't sign in their name, nor in a visitor's: other nodes would refuse what it wrote
here. An unknown caller has no trust level: it is refused before
anything is asked here. What an unkeyed peer syncs counts for its own repo only, which is for the
sync methods to hold.
"""

from typing import Literal

from server.domain.errors import Forbidden

Trust = Literal["verified", "known", "peer", "visitor", "unkeyed"]
Access = Literal["read", "write", "sync"]

GRANTS: dict[Trust, frozenset[Access]] = {
    "verified": frozenset({"read", "write", "sync"}),
    "known": frozenset({"read"}),
    "peer": frozenset({"read", "sync"}),
    "visitor": frozenset({"read"}),
    "unkeyed": frozenset({"read", "sync"}),
}


def check(trust: Trust, access: Access) -> None:
    """Raise Forbidden unless a caller of this trust may do that."""
    if trust == "visitor" and access not in GRANTS[trust]:
        raise Forbidden(
            "Your home is another node, which speaks for you: write there, and read your mail "
            "there. Here you may read, until that node has revoked your keys",
            reason="home_elsewhere",
        )
    if access not in GRANTS[trust]:
        raise Forbidden(
            f"A caller of trust '{trust}' may not {access}; call with a verified key",
            reason="insufficient_trust",
            trust=trust,
            access=access,
        )
