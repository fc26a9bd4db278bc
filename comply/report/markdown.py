"""The report as Markdown: a matrix over the subjects, footnotes, summaries (acpcomply, Sample)."""

from collections.abc import Iterator, Sequence

from comply.report.about import ABSENT, methodology, title
from comply.result import CaseResult, Subject, Verdict, coverage, results_of, tally

_LAST_LINES, _LAST_WORDS = 5, 400


def markdown(subjects: Sequence[Subject]) -> str:
    return "\n".join(_lines(subjects)) + "\n"


def _lines(subjects: Sequence[Subject]) -> Iterator[str]:
    yield f"# {_text(title(subjects))}\n"
    yield f"Methodology: {methodology(subjects)}\n"
    notes = _Notes()
    yield from _matrix(subjects, notes)
    yield ""
    yield from notes.lines()
    for subject in subjects:
        yield from _summary(subject)


class _Notes:
    """Footnotes. A note shared by several tests of a subject appears once."""

    def __init__(self) -> None:
        self.results: dict[tuple[str, str], list[CaseResult]] = {}

    def add(self, subject: Subject, result: CaseResult) -> int:
        """The number of the note with the reason for this verdict."""
        place = subject.name, _reason(result)
        self.results.setdefault(place, []).append(result)
        return list(self.results).index(place) + 1

    def lines(self) -> Iterator[str]:
        for number, ((_, reason), results) in enumerate(self.results.items(), 1):
            first, *others = results
            more = f" and {len(others)} more" if others else ""
            # What fails many tests for one reason is not what one of them is about.
            rule = "" if others or first.verdict is Verdict.ERROR else first.case.test.description
            explained = f". The rule: {_text(rule)}" if rule else ""
            yield f"[{number}] {_text(first.key)}{more}: {_text(reason)}{explained}"


def _matrix(subjects: Sequence[Subject], notes: _Notes) -> Iterator[str]:
    """The table; each verdict that wants a reason gets a footnote in `notes`."""
    rows: dict[str, list[str]] = {}
    areas = {(result.area, result.case.suite) for _, result in results_of(subjects)}
    mixed = len({area for area, _ in areas}) < len(areas)
    # Subject by subject, so that its notes are adjacent.
    for column, subject in enumerate(subjects):
        for result in subject.results:
            area = _cell(f"{result.area} ({result.case.suite})" if mixed else result.area)
            row = rows.setdefault(result.key, [area, *(ABSENT for _ in subjects)])
            row[column + 1] = result.verdict
            if result.bad:
                row[column + 1] += f" [{notes.add(subject, result)}]"
    table = [["Compliance Area", *(_cell(subject.name) for subject in subjects)], *rows.values()]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for number, row in enumerate(table):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"| {' | '.join(cells)} |"
        if number == 0:
            yield f"|{'|'.join('-' * (width + 2) for width in widths)}|"


def _reason(result: CaseResult) -> str:
    reason = result.reason if result.required else f"{result.reason} (optional)"
    if result.verdict is Verdict.ERROR:
        return reason
    words = [line.strip() for line in result.log.splitlines() if line.strip()][-_LAST_LINES:]
    return f"{reason}; its stderr ended: {' / '.join(words)[-_LAST_WORDS:]}" if words else reason


def _summary(subject: Subject) -> Iterator[str]:
    yield f"\n## {_text(subject.name)} Summary\n"
    counts = (
        f"{subject.count(verdict)} {verdict}" for verdict in Verdict if subject.count(verdict)
    )
    if subject.problem:
        yield f"- Not tested to the end: {_text(subject.problem)}"
    yield f"- Required: {tally([subject])}"
    yield f"- Tests: {', '.join(counts) or 'none'}"
    yield f"- Coverage: {coverage([subject])}"
    yield f"- Time: {subject.ran} tests in {subject.seconds:.1f} s"
    if subject.stray:
        yield f"- Lines on stdout that are not messages, in: {_text(', '.join(subject.stray))}"
    for label, value in subject.facts.items():
        yield f"- {_text(label)}: {_text(value)}"
    absent = [f"{reason} ({many})" for reason, many in subject.untested().items()]
    if absent:
        yield f"- Not tested: {_text('; '.join(absent))}"
    # What fails many tests for one reason is explained by the links of the first.
    causes = {result.reason: result for result in reversed(subject.results) if result.bad}
    links = dict.fromkeys(
        link for result in reversed(causes.values()) for link in result.case.test.docs
    )
    if links:
        yield f"- Links: {', '.join(links)}"


def _text(text: str) -> str:
    """The text on one line, without Markdown or HTML markup."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line.replace("<", "&lt;").replace("`", "'")


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")
