"""A report is titled by what was tested, and says how."""

from dataclasses import replace

import pytest

from comply.report.about import methodology, title
from comply.report.markdown import markdown
from comply.report.page import page
from comply.result import Subject, Verdict
from tests.comply.results import result


def report_of(*suites: str, transport: str = "stdio") -> list[Subject]:
    made = [result("a", Verdict.PASS) for _ in suites]
    for one, suite in zip(made, suites, strict=True):
        test = one.case.test.model_copy(update={"transport": transport})
        one.case = replace(one.case, suite=suite, test=test)
    return [Subject("x", {}, made)]


@pytest.mark.parametrize(
    ("suites", "transport", "named"),
    [
        (("acp",), "stdio", "ACP"),
        (("acp", "acp-v2", "acp"), "stdio", "ACP and ACP v2"),
        (("someones",), "stdio", "ACP"),
        (("someones",), "http", "someones"),
        (("cacp-2.0", "json-rpc-2.0"), "http", "CACP 2.0 and JSON-RPC 2.0"),
        (("cacp-2.0", "json-rpc-2.0", "x"), "http", "CACP 2.0, JSON-RPC 2.0 and x"),
        (("acp-messages",), "http", "ACP Messages"),
        (("wire",), "command", "CACP Wire Format"),
    ],
)
def test_the_title_names_what_was_tested(
    suites: tuple[str, ...], transport: str, named: str
) -> None:
    subjects = report_of(*suites, transport=transport)
    assert title(subjects) == f"{named} Compliance Report"
    assert markdown(subjects).startswith(f"# {named} Compliance Report\n")
    assert f"<h1>{named} Compliance Report</h1>" in page(subjects)


def test_a_report_of_nothing_has_a_title() -> None:
    assert title([]) == "Compliance Report"


def test_it_says_how_what_was_tested_was_tested() -> None:
    assert "its own process, session and folder" in methodology(report_of("acp"))
    node = methodology(report_of("cacp-2.0", transport="http"))
    assert ("folder" in node, "made its own requests" in node) == (False, True)
