"""What an ADP exchange decides (CACP 2.0, ADP Integration)."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.adp import (
    AdpManifest,
    CacpMetadata,
    Capability,
    Invocation,
    InvocationProtocol,
    Metadata,
)
from server.domain import directory
from server.domain.directory import (
    DirectoryEntry,
    check_registrar,
    protocols_of,
    search,
    words,
    words_of,
)
from server.domain.errors import Conflict, Forbidden, Refusal

FRONTEND = AdpManifest(
    aid="aid://example.com/frontend@1.0.0",
    name="Web Agent",
    description="Builds the shop's React app",
    capabilities=[Capability(id="ui.build", description="Components")],
    invocation=Invocation(protocols=[InvocationProtocol(type="CACP", endpoint="http://a.example")]),
    metadata=Metadata(cacp=CacpMetadata(repo="shop", role="mobile", languages=["TypeScript"])),
)
KEYED = "aid://example.com/frontend"
OWN = "aid://example.com/exchange"

WORDS = st.lists(st.sampled_from(["react", "python", "shop", "api"]), max_size=3)
ENTRIES = st.lists(
    st.builds(
        DirectoryEntry,
        st.sampled_from([f"aid://example.com/{name}" for name in "abcdef"]),
        WORDS.map(" ".join),
        st.sampled_from(["cacp", "rest", "cacp rest", ""]),
    ),
    unique_by=lambda entry: entry.agent,
)


def test_the_examples_hold() -> None:
    assert doctest.testmod(directory).failed == 0


def test_an_agent_is_found_by_what_it_says_of_itself() -> None:
    spoken = {"example", "frontend", "web", "react", "ui", "components", "shop", "mobile"}
    assert spoken | {"typescript", "cacp"} <= words_of(FRONTEND)
    assert protocols_of(FRONTEND) == {"cacp"}


def test_the_specified_search_finds_the_frontend_first() -> None:
    """CACP 2.0, Search for Agents."""
    backend = DirectoryEntry("aid://example.com/backend", "backend cacp python", "cacp")
    frontend = DirectoryEntry("aid://example.com/frontend", " ".join(words_of(FRONTEND)), "cacp")
    query = "frontend typescript react cacp"
    assert search([backend, frontend], query, ["cacp"]) == [frontend.agent, backend.agent]


def test_the_agent_that_is_named_comes_first() -> None:
    """No other agent gets before it by saying all its words."""
    named = DirectoryEntry("aid://example.com/frontend", "frontend example com", "cacp")
    loud = DirectoryEntry("aid://a.example/a", "frontend example com 1 0", "cacp")
    assert search([loud, named], "aid://example.com/frontend@1.0.0", [])[0] == named.agent


@given(ENTRIES, WORDS, st.lists(st.sampled_from(["cacp", "REST", "mcp"]), max_size=2))
def test_a_search(entries: list[DirectoryEntry], query: list[str], protocols: list[str]) -> None:
    by_agent = {entry.agent: entry for entry in entries}
    agents = search(entries, " ".join(query), protocols)
    assert len(set(agents)) == len(agents)
    assert search(reversed(entries), " ".join(reversed(query)), protocols) == agents
    hits = [len(set(query) & set(by_agent[agent].words.split())) for agent in agents]
    assert hits == sorted(hits, reverse=True)
    spoken = {one.lower() for one in protocols}
    for entry in entries:
        speaks = not spoken or bool(spoken & set(entry.protocols.split()))
        matches = not query or bool(set(query) & set(entry.words.split()))
        assert (entry.agent in agents) == (speaks and matches)


@given(st.text(max_size=30))
def test_words_are_the_same_in_any_case(text: str) -> None:
    assert words(text) == words(text.lower())


AID = FRONTEND.aid


@pytest.mark.parametrize(
    ("caller", "keyed", "has_key", "pinned_to"),
    [
        ("aid://example.com/frontend@1.0.0", True, True, None),
        ("aid://example.com/frontend@2.0.0", True, True, KEYED),
        ("aid://example.com/frontend@1.0.0", True, True, OWN),
        (OWN + "@1.0.0", False, False, None),
        (OWN + "@1.0.0", False, False, OWN),
    ],
)
def test_who_may_enter_an_agent(
    caller: str, keyed: bool, has_key: bool, pinned_to: str | None
) -> None:
    check_registrar(AID, caller=caller, keyed=keyed, has_key=has_key, pinned_to=pinned_to)


@pytest.mark.parametrize(
    ("caller", "keyed", "has_key", "pinned_to", "refusal", "reason"),
    [
        ("aid://example.com/other@1.0.0", True, False, None, Forbidden, "other_agent"),
        ("aid://example.com/other@1.0.0", True, True, KEYED, Forbidden, "other_agent"),
        (OWN + "@1.0.0", False, True, None, Forbidden, "key_needed"),
        (OWN + "@1.0.0", False, False, KEYED, Conflict, "pinned"),
    ],
)
def test_who_may_not(
    caller: str,
    keyed: bool,
    has_key: bool,
    pinned_to: str | None,
    refusal: type[Refusal],
    reason: str,
) -> None:
    with pytest.raises(refusal) as refused:
        check_registrar(AID, caller=caller, keyed=keyed, has_key=has_key, pinned_to=pinned_to)
    assert refused.value.data["reason"] == reason
