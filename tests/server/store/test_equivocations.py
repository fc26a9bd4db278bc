"""The evidence against a node, and the alarm for it."""

from schemas.mesh import EVIDENCE_MAX
from server.store import alarms, equivocations
from server.store.connection import Connection
from server.store.equivocations import KEPT_MAX, Equivocation

NODE = "aid://example.com/gamma"


def found(key: str, at: int = 5) -> Equivocation:
    return Equivocation(f"{NODE}@1.0.0", "packet", "p", key, "{}", None, "[]", "{}", at)


def test_evidence_is_kept_once_and_raises_the_alarm_until_it_is_noted(
    db: Connection,
) -> None:
    assert equivocations.record(db, found("a"))
    assert not equivocations.record(db, found("a", 6)), "it is no news"
    assert [(one.reason, one.about) for one in alarms.every(db)] == [("equivocation", NODE)]
    assert equivocations.counts(db, unnoted=True) == {NODE: 1}
    assert equivocations.note(db, f"{NODE}@2.0.0", 9) == 1
    assert alarms.every(db) == []
    assert equivocations.note(db, NODE, 9) == 0
    assert equivocations.counts(db, unnoted=True) == {}
    assert equivocations.record(db, found("b", 7))
    assert len(alarms.every(db)) == 1, "it has done so again"
    assert [one.key for one in equivocations.of_node(db, NODE)] == ["a", "b"]
    assert equivocations.counts(db) == {NODE: 2}


def test_a_node_that_goes_on_fills_no_disk(db: Connection) -> None:
    for number in range(KEPT_MAX + 5):
        equivocations.record(db, found(str(number)))
    assert equivocations.counts(db) == {NODE: KEPT_MAX}


def test_evidence_is_told_in_parts_and_from_the_beginning_after_a_restore(
    db: Connection,
) -> None:
    for key, size in (("a", 8), ("b", 8), ("huge", 99), ("c", 2)):
        equivocations.record(db, found(key)._replace(ours="x" * size, ours_signature="{}"))
    equivocations.record(db, found("of this node itself"))

    def after(last: int) -> tuple[list[str], int]:
        some, end = equivocations.after(db, last, bytes_max=12, one_max=50)
        return [one.key for one in some], end

    assert after(0) == (["a"], 1)
    assert after(1) == (["b"], 2)
    assert after(2) == (["c"], 4)
    assert after(4) == ([], 4)
    assert after(9) == (["a"], 1), "it has found less than the caller has heard"


def test_no_answer_has_more_evidence_than_a_node_takes(db: Connection) -> None:
    for node in ("a", "b"):
        for number in range(KEPT_MAX):
            one = found(str(number))._replace(node=f"aid://example.com/{node}")
            equivocations.record(db, one._replace(ours_signature="{}"))
    first, last = equivocations.after(db, 0, bytes_max=10_000, one_max=10_000)
    rest, end = equivocations.after(db, last, bytes_max=10_000, one_max=10_000)
    assert len(first) == len(rest) == EVIDENCE_MAX
    assert equivocations.after(db, end, bytes_max=10_000, one_max=10_000) == ([], end)
