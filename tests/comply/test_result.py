"""What a test came to."""

from comply.result import Verdict, results_of
from tests.comply.results import subjects


def test_na_and_pass_are_not_bad() -> None:
    bad = {result.verdict for _, result in results_of(subjects()) if result.bad}
    assert bad == {Verdict.FAIL, Verdict.PARTIAL, Verdict.ERROR}


def test_a_result_is_known_by_suite_and_test() -> None:
    first = subjects()[0].results[0]
    assert (first.key, first.area, first.required) == ("suite/init", "Title of init", True)
    assert subjects()[0].count(Verdict.PASS) == 1
