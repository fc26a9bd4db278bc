"""What is said to and by an ADP exchange (CACP 2.0, ADP Integration)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.adp import AdpManifest, Listing, RegisterRequest, SearchRequest, to_wire

SPECIFIED: dict[str, Any] = {
    "aid": "aid://example.com/backend@1.0.0",
    "name": "Backend Agent",
    "invocation": {
        "protocols": [{"type": "cacp", "version": "2.0", "endpoint": "http://backend.example"}]
    },
}
DEPLOYED: dict[str, Any] = {
    **SPECIFIED,
    "description": "Coding agent",
    "owner": {},
    "capabilities": [
        {"id": "cacp.coordinate", "description": "Coordination", "inputs": {"type": "object"}},
        "python",
    ],
    "metadata": {"cacp": {"role": "backend", "languages": ["python"], "max": 5}, "tags": None},
    "sla": {"availability": 99.5},
    "updatedAt": "2026-01-01T00:00:00Z",
}


def test_the_specified_requests_are_read() -> None:
    request = RegisterRequest.model_validate({"manifest": SPECIFIED})
    assert request.manifest.endpoint == "http://backend.example"
    query = {"query": "frontend", "filters": {"protocols": ["cacp"]}, "limit": 10}
    assert SearchRequest.model_validate(query).filters.protocols == ["cacp"]
    assert SearchRequest.model_validate({}).limit == 10


def test_what_deployed_clients_add_is_read_or_ignored() -> None:
    manifest = AdpManifest.model_validate(DEPLOYED)
    assert [one.id for one in manifest.capabilities] == ["cacp.coordinate", "python"]
    assert (manifest.metadata.cacp.role, manifest.metadata.cacp.languages) == (
        "backend",
        ["python"],
    )
    assert "sla" not in to_wire(manifest)
    assert to_wire(manifest)["updatedAt"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("given", [SPECIFIED, DEPLOYED])
def test_what_is_written_reads_as_the_same(given: dict[str, Any]) -> None:
    manifest = AdpManifest.model_validate(given)
    assert AdpManifest.model_validate(to_wire(manifest)) == manifest


def test_an_agent_that_speaks_no_cacp_has_no_endpoint() -> None:
    rest = {"protocols": [{"type": "rest", "endpoint": "http://a"}, {"type": "cacp"}]}
    assert AdpManifest.model_validate({**SPECIFIED, "invocation": rest}).endpoint is None
    assert AdpManifest(aid="a", name="b").endpoint is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": None},
        {"aid": "x" * 201},
        {"description": "x" * 2_001},
        {"capabilities": [{"id": "x"}] * 51},
        {"invocation": {"protocols": [{"type": "cacp"}] * 21}},
        {"invocation": []},
        {"updatedAt": "yesterday"},
    ],
)
def test_a_manifest_has_limits(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AdpManifest.model_validate({**SPECIFIED, **wrong})


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 101}, {"offset": -1}, {"query": 5}])
def test_a_search_has_limits(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SearchRequest.model_validate(wrong)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["aid", "name", "manifest", "invocation", "protocols", "type", "id"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_whatever_arrives_is_a_listing_or_refused(value: Any) -> None:
    try:
        listing = Listing.model_validate(value)
    except ValidationError:
        return
    assert Listing.model_validate(to_wire(listing)) == listing
