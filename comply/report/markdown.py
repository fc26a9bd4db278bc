"""The report as Markdown: a matrix over the subjects, footnotes, summaries (acpcomply, Sample)."""

from collections.abc import Iterator, Sequence

from comply.result import Result, Subject, Verdict

METHODOLOGY = (
    "Each test ran in a session and sandbox of its own. Expectations use regex subset matching "
    "over responses, notifications and requests of the subject. NA: what the test needs is not "
    "offered. PARTIAL: an optional test of which some expectations were met. ERROR: the harness "
    "failed, which says nothing about the subject."
)


def markdown(subjects: Sequence[Subject], *, title: str = "ACP Compliance Report") -> str:
    return "\n".join(_lines(subjects, title)) + "\n"


def _lines(subjects: Sequence[Subject], title: str) -> Iterator[str]:
    yield f"# {title}\n"
    yield f"Methodology: {METHODOLOGY}\n"
    notes: list[str] = []
    yield from _matrix(subjects, notes)
    yield ""
    yield from notes
    for subject in subjects:
        yield from _summary(subject)


def _matrix(subjects: Sequence[Subject], notes: list[str]) -> Iterator[str]:
    """The table; each verdict that wants a reason gets a footnote in `notes`."""
    rows: dict[str, list[str]] = {}
    for column, subject in enumerate(subjects):
        for result in subject.results:
            row = rows.setdefault(result.key, [_cell(result.area), *("" for _ in subjects)])
            row[column + 1] = result.verdict
            if result.bad:
                notes.append(f"[{len(notes) + 1}] {_text(result.key)}: {_text(_reason(result))}")
                row[column + 1] += f" [{len(notes)}]"
    table = [["Compliance Area", *(_cell(subject.name) for subject in subjects)], *rows.values()]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for number, row in enumerate(table):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"| {' | '.join(cells)} |"
        if number == 0:
            yield f"|{'|'.join('-' * (width + 2) for width in widths)}|"


def _reason(result: Result) -> str:
    return result.reason if result.required else f"{result.reason} (optional)"


def _summary(subject: Subject) -> Iterator[str]:
    yield f"\n## {_text(subject.name)} Summary\n"
    counts = (f"{subject.count(one)} {one}" for one in Verdict if subject.count(one))
    yield f"- Tests: {', '.join(counts) or 'none'}"
    yield f"- Time: {len(subject.results)} tests in {subject.seconds:.1f} s"
    if subject.stray:
        yield f"- Lines on stdout that are no messages, in: {_text(', '.join(subject.stray))}"
    for label, value in subject.facts.items():
        yield f"- {_text(label)}: {_text(value)}"
    absent = sorted({result.reason for result in subject.results if result.verdict is Verdict.NA})
    if absent:
        yield f"- Not applicable: {_text('; '.join(absent))}"
    links = dict.fromkeys(
        link for result in subject.results if result.bad for link in result.case.test.docs
    )
    if links:
        yield f"- Links: {', '.join(links)}"


def _text(text: str) -> str:
    """On one line, and nothing in it that Markdown or a page would take for markup."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line.replace("<", "&lt;").replace("`", "'")


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")
