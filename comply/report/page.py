"""The report as one HTML page: the matrix, and for each failure what was expected, what came
nearest, and the frames around it. No script, nothing from elsewhere."""

import json
from collections.abc import Iterator, Sequence
from html import escape

from pydantic import JsonValue

from comply.record import Frame
from comply.report.about import ABSENT, methodology, title
from comply.result import CaseResult, Subject, Verdict, results_of, tally

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;
color:#1b1b1b;background:#fff;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25rem .75rem;
border-bottom:1px solid #ddd;vertical-align:top}
pre{background:#f5f5f5;padding:.5rem;overflow-x:auto;white-space:pre-wrap;
overflow-wrap:anywhere;margin:.25rem 0}
.PASS{color:#1b5e20}.FAIL,.ERROR{color:#b3261e;font-weight:600}.PARTIAL{color:#8a5a00}
.NA{color:#666}section{border-left:4px solid #ddd;padding-left:.75rem;margin:1rem 0}
section p,section ul{margin:.2rem 0}section ul{padding-left:1.2rem;color:#666}.wide{overflow-x:auto}
th,td{overflow-wrap:normal}.test{overflow-wrap:anywhere;min-width:8rem}.reason{display:block;
color:#666;font-size:.9em}
.sent{border-left:4px solid #3367d6}.heard{border-left:4px solid #8a5a00}
.area{color:#666;font-size:.9em;display:block}
h2{margin-top:2.5rem;border-top:1px solid #ddd;padding-top:1rem}a{color:inherit}
@media(max-width:40rem){body{margin:1rem auto;padding:0 .5rem}h1{font-size:1.5rem}
h2{font-size:1.1rem}th,td{padding:.25rem .3rem;font-size:.85rem}.severity{display:none}}
@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}pre{background:#242424}
th,td{border-color:#444}.PASS{color:#81c784}.FAIL,.ERROR{color:#f2b8b5}.PARTIAL{color:#ffcc80}
.NA,.area{color:#aaa}section ul,.reason{color:#aaa}
h2,section{border-color:#444}}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_SHOWN = 20_000


def page(subjects: Sequence[Subject]) -> str:
    named = escape(title(subjects))
    body = "\n".join(_body(subjects, named))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{named}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _body(subjects: Sequence[Subject], named: str) -> Iterator[str]:
    yield f"<h1>{named}</h1>"
    yield f"<p>{escape(methodology(subjects))}</p>"
    for subject in subjects:
        yield from _summary(subject)
    yield from _table(subjects)
    for number, (subject, result) in enumerate(results_of(subjects)):
        if result.bad:
            yield from _failure(number, subject, result)


def _summary(subject: Subject) -> Iterator[str]:
    counts = ", ".join(
        f"{subject.count(verdict)} {verdict}" for verdict in Verdict if subject.count(verdict)
    )
    required = tally([subject])
    sure = (
        "FAIL"
        if required.failed or required.breaking
        else "PARTIAL"
        if required.untested
        else "PASS"
    )
    yield f"<section><p><strong>{escape(subject.name)}</strong>: required tests: "
    yield f'<span class="{sure}">{required}</span></p>'
    if subject.problem:
        yield f'<p class="FAIL">Not tested to the end: {escape(subject.problem)}</p>'
    yield f"<p>{counts}; {subject.ran} tests in {subject.seconds:.1f} s.</p>"
    facts = [f"{label}: {value}" for label, value in subject.facts.items()]
    missing = [f"{many} not tested: {reason}" for reason, many in subject.untested().items()]
    if facts or missing:
        yield "<ul>"
        yield from (f"<li>{escape(line)}</li>" for line in (*facts, *missing))
        yield "</ul>"
    yield "</section>"


def _table(subjects: Sequence[Subject]) -> Iterator[str]:
    yield '<div class="wide"><table><thead><tr><th class="test">Test</th>'
    yield '<th class="severity">Severity</th>'
    yield from (f"<th>{escape(subject.name)}</th>" for subject in subjects)
    yield "</tr></thead><tbody>"
    rows: dict[str, tuple[CaseResult, dict[str, str]]] = {}
    for number, (subject, result) in enumerate(results_of(subjects)):
        verdict = f'<span class="{result.verdict}">{result.verdict}</span>'
        if result.bad:
            verdict = f'<a href="#t{number}">{verdict}</a>'
        elif result.reason and len(subjects) == 1:
            # Of several, the summaries name the reasons: here they would take all the room.
            verdict += f' <span class="reason">{escape(result.reason)}</span>'
        rows.setdefault(result.key, (result, {}))[1][subject.name] = verdict
    for key, (result, cells) in rows.items():
        area = f'<span class="area">{escape(result.area)}</span>'
        yield f'<tr><td class="test">{escape(key)}{area}</td>'
        yield f'<td class="severity">{result.case.test.severity}</td>'
        yield from (f"<td>{cells.get(subject.name, ABSENT)}</td>" for subject in subjects)
        yield "</tr>"
    yield "</tbody></table></div>"


def _failure(number: int, subject: Subject, result: CaseResult) -> Iterator[str]:
    heading = f"{result.key} on {subject.name}: {result.verdict}"
    yield f'<h2 id="t{number}" class="{result.verdict}">{escape(heading)}</h2>'
    yield f"<p>{escape(result.case.test.description)}</p><p>{escape(result.reason)}</p><p>"
    yield " ".join(_link(link) for link in result.case.test.docs)
    yield "</p>"
    if result.near is not None:
        yield f"<h3>Expected</h3>{_pre(result.near.expected)}"
        if result.near.message is not None:
            problems = "\n".join(str(mismatch) for mismatch in result.near.mismatches)
            yield f"<h3>What came nearest</h3>{_pre(result.near.message)}"
            yield f"<pre>{escape(problems)}</pre>"
    yield "<h3>Transcript</h3>"
    yield from (_frame(frame) for frame in result.frames)
    if result.log:
        yield f"<h3>What it wrote to stderr</h3><pre>{escape(result.log)}</pre>"


def _frame(frame: Frame) -> str:
    way = ("sent", "→") if frame.sent else ("heard", "←")
    broken = f'<p class="FAIL">{escape(frame.breach)}</p>' if frame.breach else ""
    return _pre(frame.message, way[0], f"{frame.at:8.0f} ms {way[1]} ") + broken


def _pre(value: JsonValue, css: str = "", prefix: str = "") -> str:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}\n… {len(text) - _SHOWN} more"
    return f'<pre class="{css}">{escape(prefix + shown)}</pre>'


def _link(link: str) -> str:
    if not link.startswith(("https://", "http://")):
        return escape(link)
    return f'<a href="{escape(link)}">{escape(link)}</a>'
