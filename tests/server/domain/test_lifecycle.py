"""A project's lifecycle ends the same on every node, whatever came first (design §7)."""

from functools import reduce
from itertools import permutations
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from server.domain.identifiers import founded_by
from server.domain.lifecycle import Lifecycle, may_name_founder, may_set, replaces

FOUNDER, OTHER = "aid://example.com/f@1.0.0", "aid://example.com/o@1.0.0"
PROJECT = founded_by(FOUNDER, UUID("0198f5c2-7d1e-7c43-9b7a-3d0a6c1f2e4b"))
REGISTERS = st.builds(
    Lifecycle,
    state=st.sampled_from(["active", "archived", "deleted"]),
    name=st.just("Shop"),
    by=st.sampled_from(["ana", "ben"]),
    stamp=st.integers(1, 4),
    signature=st.none(),
)


def joined(registers: list[Lifecycle]) -> Lifecycle | None:
    def join(known: Lifecycle | None, sent: Lifecycle) -> Lifecycle | None:
        return sent if replaces(known, sent) else known

    return reduce(join, registers, None)


@given(st.lists(REGISTERS, max_size=4))
def test_the_order_makes_no_difference(registers: list[Lifecycle]) -> None:
    assert {joined([*order]) for order in permutations(registers)} == {joined(registers)}
    assert joined(registers + registers) == joined(registers)


@given(st.lists(REGISTERS, min_size=1))
def test_a_deletion_stays_and_otherwise_the_latest_wins(registers: list[Lifecycle]) -> None:
    final = joined(registers)
    assert final is not None
    assert final.is_deleted == any(register.is_deleted for register in registers)
    if not final.is_deleted:
        assert final.stamp == max(register.stamp for register in registers)


def test_only_the_node_that_created_a_project_deletes_it() -> None:
    assert may_set("deleted", PROJECT, FOUNDER, has_standing=False)
    assert not may_set("deleted", PROJECT, OTHER, has_standing=True)
    for state in ("active", "archived"):
        assert may_set(state, PROJECT, OTHER, has_standing=True)
        assert not may_set(state, PROJECT, OTHER, has_standing=False)


def test_a_foreign_peers_project_can_be_deleted_at_any_node() -> None:
    for foreign in (str(uuid4()), "their-project", PROJECT.replace("-", "")):
        assert not may_name_founder(foreign)
        assert may_set("deleted", foreign, OTHER, has_standing=False)
    assert may_name_founder(PROJECT)
