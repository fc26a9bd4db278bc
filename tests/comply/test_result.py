"""What a test came to."""

from comply.result import Subject, Verdict, not_run, results_of, tally
from tests.comply.results import subjects


def test_na_and_pass_are_not_bad() -> None:
    bad = {result.verdict for _, result in results_of(subjects()) if result.bad}
    assert bad == {Verdict.FAIL, Verdict.PARTIAL, Verdict.ERROR}


def test_a_result_is_known_by_suite_and_test() -> None:
    first = subjects()[0].results[0]
    assert (first.key, first.area, first.required) == ("suite/init", "Title of init", True)
    assert subjects()[0].count(Verdict.PASS) == 1


def test_a_tally_counts_what_nobody_tested() -> None:
    counts = tally(subjects())
    assert (counts.required, counts.passed, counts.failed, counts.untested) == (4, 2, 1, 1)
    assert str(counts) == "2 of 4 pass, 1 fail, 1 not tested"


def test_what_is_not_run_says_why_once_it_is_known() -> None:
    done, waiting = subjects()[0].results[0], not_run(subjects()[0].results[1].case)
    subject = Subject("x", {}, [done, waiting])
    assert (subject.ran, waiting.verdict, waiting.reason) == (1, Verdict.NA, "not run")
    subject.stop("it is gone")
    assert (done.reason, waiting.reason) == ("", "not run: it is gone")
    assert subject.untested() == {}, "that is said once"
    assert subjects()[0].untested() == {"modes is not offered": 1}


def test_what_breaks_the_protocol_in_an_optional_test_is_counted_beside_the_required_ones() -> None:
    """All subjects have as many required tests, whatever they do: so they can be compared."""
    one, other = subjects()
    optional = next(it for it in one.results if it.case.test.severity != "required")
    optional.breaches = ["update.title is missing"]
    broken, whole = tally([one]), tally([other])
    assert (broken.required, broken.breaking) == (whole.required, 1)
    assert str(broken).endswith("1 optional break the protocol")
    assert whole.breaking == 0
