"""Files and requests as facts: their union is the same in any order (design §7)."""

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from schemas.file import FileFact, FileRequestFact
from server.domain.files import F, winner

IDS = st.sampled_from(["f1", "f2", "f3"])
STAMPS = st.integers(1, 3)

FILES = st.builds(
    FileFact,
    file_id=IDS,
    name=st.sampled_from(["a", "b"]),
    content_type=st.just("text/plain"),
    size=st.just(1),
    sha256=st.sampled_from(["0" * 64, "1" * 64]),
    purpose=st.none(),
    related_contracts=st.just([]),
    from_repo=st.just("r"),
    from_agent=st.sampled_from(["a", "b"]),
    fulfils=st.sampled_from([None, "q1"]),
    stamp=STAMPS,
)
REQUESTS = st.builds(
    FileRequestFact,
    request_id=IDS,
    requested_by=st.just("r"),
    from_agent=st.sampled_from(["a", "b"]),
    description=st.sampled_from(["x", "y"]),
    suggested_format=st.none(),
    stamp=STAMPS,
)


def joined(facts: list[F]) -> F:
    return reduce(winner, facts)


@given(st.lists(FILES, min_size=1), st.randoms())
def test_of_one_id_the_same_file_stays_on_every_node(facts: list[FileFact], chance: object) -> None:
    shuffled = sorted(facts * 2, key=lambda _: chance.random())  # type: ignore[attr-defined]
    assert joined(shuffled) == joined(facts), "in any order, and however often it comes"
    assert joined(facts).stamp == min(fact.stamp for fact in facts)
    split = len(facts) // 2
    parts = [part for part in (facts[:split], facts[split:]) if part]
    assert joined([joined(part) for part in parts]) == joined(facts)


@given(st.lists(REQUESTS, min_size=1), st.randoms())
def test_of_one_id_the_same_request_stays_on_every_node(
    facts: list[FileRequestFact], chance: object
) -> None:
    shuffled = sorted(facts, key=lambda _: chance.random())  # type: ignore[attr-defined]
    assert joined(shuffled) == joined(facts)
