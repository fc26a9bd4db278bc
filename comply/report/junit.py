"""The report as JUnit XML, as CI servers read it: a suite per subject, a case per test."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from comply.baseline import excused
from comply.result import CaseResult, Subject, Verdict

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(subjects: Sequence[Subject], known: frozenset[str] = frozenset()) -> str:
    """A failure is what makes the run fail: optional tests and `known` ones are skipped instead.

    Skipped, too, is what was not tested. Why a whole subject wasn't is an error in the case `run`.
    """
    root = ET.Element("testsuites", name="cacp comply")
    for subject in subjects:
        suite = ET.SubElement(root, "testsuite", name=_clean(subject.name))
        if subject.problem:
            case = ET.SubElement(suite, "testcase", classname=_clean(subject.name), name="run")
            ET.SubElement(case, "error", message=_clean(subject.problem))
        for result in subject.results:
            _case(suite, result, known)
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))
        suite.set("tests", str(len(suite)))
        suite.set("time", f"{sum(result.seconds for result in subject.results):.3f}")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, result: CaseResult, known: frozenset[str]) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        classname=_clean(result.case.suite),
        name=_clean(result.case.id),
        time=f"{result.seconds:.3f}",
    )
    reason = _clean(result.reason)
    if result.verdict is Verdict.ERROR:
        ET.SubElement(case, "error", message=reason)
    elif result.verdict is Verdict.FAIL and result.required and not excused(known, result):
        failure = ET.SubElement(case, "failure", message=reason)
        if result.near is not None:
            failure.text = "\n".join(_clean(str(mismatch)) for mismatch in result.near.mismatches)
    elif result.verdict is not Verdict.PASS:
        ET.SubElement(case, "skipped", message=f"{result.verdict}: {reason}")
    if result.bad and result.log:
        ET.SubElement(case, "system-err").text = _clean(result.log)


def _clean(text: str) -> str:
    return _NOT_XML.sub("", text)
