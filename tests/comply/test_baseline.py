"""Known failures, and entries that are no longer true."""

from comply.baseline import as_text, entries, failures, stale
from tests.comply.results import subjects


def test_comments_and_empty_lines_are_no_entries() -> None:
    assert entries("# all\n\nsuite/a  # why\n suite/b\n") == {"suite/a", "suite/b"}


def test_what_is_written_is_what_fails_now() -> None:
    known = entries(as_text(subjects()))
    assert known == {"suite/cancel"}
    assert failures(known, subjects()) == []
    assert failures(frozenset(), subjects()) == ["agent-one: suite/cancel"]


def test_an_entry_is_stale_when_its_test_passes_everywhere() -> None:
    one, other = subjects()
    assert stale(frozenset({"suite/cancel"}), [one, other], ()) == {}
    assert stale(frozenset({"suite/cancel"}), [other], ()) == {"suite/cancel": "passes"}
    assert stale(frozenset({"suite/modes"}), [one], ()) == {}


def test_an_entry_is_stale_when_it_names_no_test_run_or_not() -> None:
    known = frozenset({"suite/elsewhere", "suite/gone"})
    assert stale(known, subjects(), {"suite/elsewhere"}) == {"suite/gone": "names no test"}
