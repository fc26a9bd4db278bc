"""Which refusals count for a sender's breaker (acp-canonical §12.4): each reason is decided on."""

import ast
from collections.abc import Iterator

import pytest

from server.domain import errors
from server.domain.acp.abuse import ABUSE, MISTAKES, is_abuse
from server.domain.errors import Refusal, Unavailable
from server.domain.invalid import TYPED
from tests.architecture.source import ROOT, imports, modules, name_of, tree

KINDS = {
    name: kind.reason
    for name, kind in vars(errors).items()
    if isinstance(kind, type)
    and issubclass(kind, Refusal)
    and kind is not Refusal
    and not issubclass(kind, Unavailable)
}
"""What a sender can be refused with, and its reason where none is given."""

BEFORE = ("server.rpc.dispatch", "server.rpc.idempotent_call", "server.domain.access")
"""What refuses a call before its method runs."""


def reached() -> set[str]:
    """The modules of what writes messages, and all of ours that those import."""
    every = {name_of(module): module for module in modules("server")}
    found: set[str] = set()
    begin = [name for name, module in every.items() if "SENDING" in (ROOT / module).read_text()]
    following = [*begin, *BEFORE]
    while following:
        name = following.pop()
        found.add(name)
        if name in BEFORE:
            continue
        for imported in imports(every[name]):
            owner = imported if imported in every else imported.rpartition(".")[0]
            if owner.startswith(("server.methods.", "server.domain.")) and owner in every:
                following += {owner} - found
    return found


def raised(module: str) -> Iterator[str]:
    """The reasons of the refusals that a module makes, as far as they stand in it."""
    path = next(one for one in modules("server") if name_of(one) == module)
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        given = {word.arg: word.value for word in node.keywords}
        reason = given.get("reason")
        if node.func.id in KINDS and reason is None:
            yield KINDS[node.func.id]
        elif node.func.id in {*KINDS, "invalid_input"} and isinstance(reason, ast.Constant):
            yield str(reason.value)


def test_each_reason_is_decided_on() -> None:
    """A new one is to be put into the table: it is abuse, or a mistake."""
    found = {reason for module in reached() for reason in raised(module)} | TYPED
    assert found - ABUSE - MISTAKES == set()
    assert (ABUSE | MISTAKES) - found == set()
    assert not ABUSE & MISTAKES


def test_the_guide_names_each_kind_of_abuse() -> None:
    guide = (ROOT / "docs/acp.md").read_text()
    assert [reason for reason in sorted(ABUSE) if f"`{reason}`" not in guide] == []


@pytest.mark.parametrize(
    "reason",
    [
        *("sender_supplied", "wrong_signature", "not_its_home"),
        *("policy_violation", "broadcast_not_allowed", "not_in_team", "not_in_thread"),
        *("role_authority", "not_human", "hop_limit", "round_limit"),
    ],
)
def test_what_one_may_not_do_is_abuse(reason: str) -> None:
    assert is_abuse(reason)


@pytest.mark.parametrize(
    "reason",
    [
        *("invalid_params", "schema_invalid", "type_reserved", "payload_too_large"),
        *("unknown_recipient", "not_found", "sequence_taken", "client_id_reused"),
        *("rate_limited", "circuit_open", "insufficient_trust", "never_heard_of"),
    ],
)
def test_what_one_mends_is_a_mistake(reason: str) -> None:
    assert not is_abuse(reason)
