"""Stable failure signatures: `<failure_class>:<normalized_primary_signal>` (§10). Pure."""

import re

MAX_SIGNAL = 100
_TAIL = 64 * 1024

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]{0,32}[ -/]?[@-~]|\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|[@-_])")
_UNSTABLE = re.compile(
    r"(?-i:\b(?P<code>[A-Z]{1,5}\d{3,5}))\b"  # E0425, TS2304: what the failure is, so it stays
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"  # timestamps
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"  # UUIDs
    r"|\b0x[0-9a-f]+\b|\b[0-9a-f]{12,64}\b"  # addresses and digests
    r"|(?:(?<=\s)|(?<=[\"'(=])|^)(?:[a-z]:)?[/\\](?:[\w.@+-]+[/\\])*"  # directories of abs. paths
    r"|\d+",
    re.IGNORECASE,
)
_EXCEPTION = re.compile(r"^\s*(?:E\s+)?(\w[\w.]*(?:Error|Exception|Failure)\b.*)$")
_TROUBLE = re.compile(r"\b(?:error|fatal|failed|failure|cannot|undefined|panic)\b", re.IGNORECASE)
_WORD_BREAK = re.compile(r"[^a-z0-9]+")


def strip_ansi(text: str) -> str:
    """`text` without terminal control sequences."""
    return _ANSI.sub("", text)


def one_line(text: str) -> str:
    """`text` as one line for a terminal: without line breaks and control sequences."""
    return "".join(filter(str.isprintable, " ".join(strip_ansi(text).split())))


def primary_signal(log: str) -> str:
    """The line of a verification or worker log that best identifies the failure.

    The last exception line, else the first line with a word of failure, else the last line.
    """
    lines = [line for line in strip_ansi(log[-_TAIL:]).splitlines() if line.strip()]
    for line in reversed(lines):
        if len(line) < 2000 and (match := _EXCEPTION.match(line)):
            return match[1]
    for line in lines:
        if _TROUBLE.search(line[:2000]):
            return line
    return lines[-1] if lines else "no output"


def _stable(match: re.Match[str]) -> str:
    return match["code"] or " "


def signature(failure_class: str, signal: str, task_id: str = "") -> str:
    """The fingerprint of a failure; equal causes give equal text."""
    text = strip_ansi(signal[:4000])
    if task_id:
        text = re.sub(rf"(?<![\w-]){re.escape(task_id)}(?![\w-])", " ", text, flags=re.IGNORECASE)
    words = _WORD_BREAK.sub("_", _UNSTABLE.sub(_stable, text).lower()).strip("_")
    return f"{failure_class}:{words[:MAX_SIGNAL].strip('_') or 'unknown'}"
