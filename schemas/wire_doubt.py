"""Recognises lines that report a failure outside the fields of a report (`schemas.wire`).

The last check before a report completes anything. It looks at the words of each line and shares no
code with `wire_text`, so that what `wire_text` misses is not lost silently.

Every function here is linear in the length of its input.
"""

import re
import unicodedata
from collections.abc import Collection
from typing import NamedTuple

from schemas.plain import HIDDEN
from schemas.wire_values import CROSSES, FAILING

_NAME = r"(?:tests?(?:[ _-]results?)?|test[ _-]?suites?|builds?|ci)"
_MARKS = r"[*_`\"'“”‘’)\]}>\s]*+"
_COLON = r"(?:[:：=→⇒|\t]|->|\s[-–—]+\s)"
_GAP = rf"(?:[^\w{CROSSES}]|_)"
_OPENING = rf"{_GAP}*+(?:[0-9]+\s*+(?:(?:/|of)\s*+[0-9]+\s*+)?(?:tests?\s++)?)?"
_FAIL = rf"(?:(?:{FAILING}|not ok)(?![^\W_])|[{CROSSES}])"
_COUNTED = r"(?:fail(?:ed|ing|ures?|s)?|errors?)"
_SOME = r"(?![\W_]*+(?:(?:0+|no|none|nothing|n/?a|false|null)\b|$))"

_PLAIN = re.compile(
    rf"(?<![^\W_])(?-i:TESTS?(?:[ _]RESULTS?)?|BUILDS?|STATUS){_MARKS}"
    rf"(?:{_COLON}{_OPENING}|(?<=[^\w])){_GAP}*+{_FAIL}",
    re.IGNORECASE,
)
_FIELD = re.compile(
    rf"(?<![^\W_]){_NAME}{_MARKS}(?:{_COLON}{_OPENING}{_FAIL})"
    rf"|(?<![^\W_])(?:{_NAME}[\s_-]*+{_COUNTED}|{_COUNTED}[\s_-]*+{_NAME})"
    rf"{_MARKS}[:=]{_SOME}"
    rf"|(?<![^\W_]){_COUNTED}[\"'`*\s]*+[:=][\"'`*\s]*+0*+[1-9]"
    r"|(?<![\w.])0*+[1-9][0-9]*+\s++(?:unit\s|tests?\s)?\s*+fail(?:ed|ing|ures?)"
    r"(?=\s*+(?:[,.;:)\]|/]|$|tests?\b|in [0-9]))"
    rf"|(?<!#)#{{1,6}}\s*+{_NAME}(?![^\W_])[^.;!?#]{{0,40}}?{_GAP}{_FAIL}",
    re.IGNORECASE,
)
_WHOLE = re.compile(rf"[\W_]*+{_NAME}{_GAP}*+{_FAIL}[\W_]*+", re.IGNORECASE)

_TEMPLATE = re.compile(
    r"\b(?:pass|fail|skip)(?:\s*+[|/]\s*+(?:pass|fail|skip))++\b"
    r"|\bpass, fail,? (?:or )?skip\b|\bok(?:\s*+\|\s*+\w++)++|\bok, fail, partial\b",
    re.IGNORECASE,
)
_NONE = re.compile(
    rf"(?<![\w.])(?:0|no|not|never|zero|nothing|without|n['’]t)\s++"
    rf"(?:(?:any|longer|more|new|known|other|tests?|builds?|is|are|of)\s++){{0,2}}{_FAIL}"
    rf"|\bnone of the (?:tests|builds) {_FAIL}"
    rf"|(?<![^\W_])(?:{_NAME}[\s_-]*+)?{_COUNTED}(?:[\s_-]*+{_NAME})?"
    r"[\"'`*\s]*+[:=][\"'`*\s]*+(?:(?:0+|none|no|nothing|n/?a|false|null)\b|\[\])",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"\b(?:errors?|failure)[ -]"
    r"(?:handl\w*|messages?|paths?|cases?|modes?|codes?|types?|responses?)\b",
    re.IGNORECASE,
)
_NOT_WELL = re.compile(
    r"(?:\b(?:not|never|cannot|unable to)|n['’]t)\s++(?:(?P<all>all (?:of )?(?:the )?tests?)\s++)?"
    r"(?:pass(?:ed|es|ing)?|succeed(?:s|ed|ing)?|green|(?P<build>compil(?:e[sd]?|ing)|build))\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[.;!?](?=\s|$)|\b(?:but|however|although|though)\b", re.IGNORECASE)
_WORD = re.compile(rf"[^\W_]++|[{CROSSES}]")
_NAMES = frozenset({"test", "tests", "build", "builds", "testsuite", "suite", "ci"})
_FAILS = re.compile(rf"(?:{FAILING}|[{CROSSES}])", re.IGNORECASE)
_OVER = re.compile(
    r"\b(?:fix(?:ed|es|ing)?|resolved|repaired|used to|previously|initially|originally|formerly"
    r"|at first|earlier|(?:was|were|had been) \w+|(?:now|again)\s+(?:\w+\s+)?(?:pass|green|ok)\w*"
    r"|pass\w* (?:now|again)"
    r"|(?:add\w*|wrote|extended|new)\s+(?:\w+\s+){0,3}tests?\s+(?:for|that|of|to|covering))\b",
    re.IGNORECASE,
)
_STILL = re.compile(
    r"\b(?:not|still|remain\w*|cannot|unable|never|unfixed|unresolved)\b|n['’]t\b", re.IGNORECASE
)
_PERHAPS = re.compile(
    r"\b(?:if|when|whenever|should|would|could|may|might|unless|until|whether|in case|so that)\b",
    re.IGNORECASE,
)
_UNDER = re.compile(r"\b(?:but|except|only|not|never|none|partial\w*|mostly)\b|n['’]t\b", re.I)
_NEAR = 5
_TOPIC = re.compile(
    r"[\W_]*+(?:[0-9a-z]++[\W_]++){0,2}?(?P<name>tests?|build|status)(?:[\W_]++[a-z]++){0,2}[\W_]*+",
    re.IGNORECASE,
)


class Passed(NamedTuple):
    """A line that belongs to no field. `under`: TESTS, BUILD or STATUS when it is below that."""

    number: int
    text: str
    under: str | None = None


def topic(text: str) -> str | None:
    """TESTS, BUILD or STATUS when a line is only a heading with that name; else None.

    >>> topic("## Test results")
    'TESTS'
    """
    match = _TOPIC.fullmatch(text) if len(text) <= 60 else None
    if match is None or fails(text):
        return None
    name = match["name"].upper()
    return "TESTS" if name == "TEST" else name


def says_failed(text: str) -> bool:
    """Whether the text of a field says explicitly that tests or a build failed. Past failures and
    lessons learned don't count.

    >>> says_failed("it works; TESTS: fail"), says_failed("fixed the failing tests")
    (True, False)
    """
    shown = _shown(text)
    if _PLAIN.search(shown) or _WHOLE.fullmatch(shown):
        return True
    return any(_FIELD.search(part) and not _is_past(part) for part in _CLAUSE.split(shown))


def fails(text: str) -> bool:
    """Whether any word of a text means failure."""
    return any(_FAILS.fullmatch(word) for word in _WORD.findall(_shown(text)))


def reports_failure(line: Passed) -> bool:
    """Whether a line outside the fields says that tests, a build or its heading failed."""
    if says_failed(line.text):
        return True
    shown = _shown(line.text)
    if line.under and line.under != "STATUS" and _UNDER.search(shown):
        return True
    return any(
        _near(part, named=line.under is not None) and not _is_past(part)
        for part in _CLAUSE.split(shown)
    )


def still_fails(line: Passed, about: Collection[str]) -> bool:
    """Whether a line before a report tells of a failure that the report does not supersede: one of
    what `about` names (TESTS, BUILD), or one that persists ("still fails")."""
    if not reports_failure(line):
        return False
    words = {word.lower().rstrip("s") for word in _WORD.findall(line.text)} | {line.under}
    open_ends = {"TESTS": {"test", "suite", "TESTS"}, "BUILD": {"build", "BUILD"}}
    if any(words & open_ends[name] for name in about):
        return True
    return re.search(r"\b(?:still|remain)", line.text, re.IGNORECASE) is not None


def _shown(text: str) -> str:
    """A text without invisible characters and without statements that nothing failed."""
    shown = unicodedata.normalize("NFKC", HIDDEN.sub("", text))
    shown = _SUBJECT.sub(" ", shown)
    return _NOT_WELL.sub(_plainly, _NONE.sub(" ", _TEMPLATE.sub(" ", shown)))


def _plainly(match: re.Match[str]) -> str:
    """The failure that a phrase such as `the tests do not pass` means: `tests failed`."""
    subject = "tests " if match["all"] else "build " if match["build"] else ""
    return f" {subject}failed "


def _near(part: str, *, named: bool) -> bool:
    """Whether a word of failure is near the name of tests or a build, or anywhere below a heading
    that is `named` so."""
    name = fail = -1 - _NEAR
    for place, word in enumerate(_WORD.findall(part)):
        if word.lower() in _NAMES:
            name = place
        if _FAILS.fullmatch(word):
            fail = place
            if named:
                return True
        if min(name, fail) >= 0 and abs(name - fail) <= _NEAR:
            return True
    return False


def _is_past(part: str) -> bool:
    """Whether a clause tells of a failure that is over or only possible."""
    if _STILL.search(part):
        return False
    if _OVER.search(part):
        return True
    perhaps, failed = _PERHAPS.search(part), _FAILS.search(part)
    return bool(perhaps and failed and perhaps.start() < failed.start())
