"""Known failures, and entries that are no longer true."""

from comply.baseline import as_text, entries, failures, gaps, stale
from comply.result import Subject, Verdict
from tests.comply.results import result, subjects


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


def test_what_was_not_tested_is_known_as_such_and_may_not_fail() -> None:
    gap = Subject("x", {}, [result("a", Verdict.NA, reason="needs a key")])
    assert as_text([gap]) == "suite/a NA  # needs a key\n"
    known = entries(as_text([gap]))
    assert (gaps(known, [gap]), gaps(frozenset(), [gap])) == ([], ["x: suite/a"])
    for verdict in (Verdict.PASS, Verdict.FAIL):
        tested = Subject("x", {}, [result("a", verdict)])
        assert stale(known, [tested], ()) == {"suite/a NA": "is tested"}
    assert failures(known, [Subject("x", {}, [result("a", Verdict.FAIL)])]) == ["x: suite/a"]
    assert stale(known, [tested, gap], ()) == {}
    assert stale(entries("suite/b NA"), [gap], ()) == {"suite/b NA": "names no test"}
