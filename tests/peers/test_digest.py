"""What differs between two nodes (design §7)."""

from hypothesis import given
from hypothesis import strategies as st

from peers import digest
from peers.digest import DEPTH, Name
from schemas.mesh import DigestLeaf

NAMES = st.builds(
    Name,
    st.sampled_from(["project", "contract", "context"]),
    st.sampled_from(["p1", "p2"]),
    st.integers(0, 40).map(str),
)
HELD = st.dictionaries(NAMES, st.binary(max_size=2), max_size=40)


def sums(held: dict[Name, bytes]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, state in held.items():
        for prefix in digest.prefixes_of(digest.place_of(name)):
            leaf = digest.leaf(name, [state])
            found[prefix] = digest.xor(found.get(prefix, digest.NOTHING), leaf)
    return found


@given(HELD, HELD)
def test_descending_where_sums_differ_finds_exactly_what_differs(
    ours: dict[Name, bytes], theirs: dict[Name, bytes]
) -> None:
    prefixes = [""]
    for depth in range(DEPTH):
        below = [
            {
                prefix: one
                for prefix, one in sums(held).items()
                if len(prefix) == depth + 1 and prefix[:-1] in prefixes
            }
            for held in (ours, theirs)
        ]
        prefixes = digest.differing(*below)
    leaves = [
        DigestLeaf(**name._asdict(), digest=digest.leaf(name, [state]))
        for name, state in theirs.items()
        if digest.place_of(name) in prefixes
    ]
    known = {name: digest.leaf(name, [state]) for name, state in ours.items()}
    expected = {name for name in theirs if theirs[name] != ours.get(name)}
    found = list(digest.lacking(known, leaves))
    assert set(found) == expected
    kinds = [name.entity == "project" for name in found]
    assert kinds == sorted(kinds, reverse=True), "projects come before what is in them"


@given(st.lists(st.binary(max_size=3)))
def test_the_order_of_a_states_parts_does_not_matter(parts: list[bytes]) -> None:
    name = Name("contract", "p", "c")
    assert digest.leaf(name, parts) == digest.leaf(name, sorted(parts, reverse=True))


def test_one_change_touches_a_sum_for_each_level() -> None:
    assert [len(prefix) for prefix in digest.prefixes_of("abc")] == [1, 2, 3]
