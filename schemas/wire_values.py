"""Reads values in unusual but unambiguous forms (`schemas.wire`): quoted, with a tick, with a
remark after them.

After a word of success, only what is known not to qualify it is accepted: counts, durations, ticks,
commands and names. Any other remark makes the value ambiguous.
"""

import re
from typing import Literal, NamedTuple, get_args

Status = Literal[
    "ok",
    "fail",
    "partial",
    "needs_decision",
    "no_changes",
    "decomposed",
    "rejected",
    "retry",
    "fixture_gap",
]
Outcome = Literal["pass", "fail", "skip"]
STATUSES: tuple[str, ...] = get_args(Status)
OUTCOMES: tuple[str, ...] = get_args(Outcome)
DONE = ("ok", "no_changes")
"""The values of STATUS for finished work, unless TESTS or BUILD fail."""
ONE_WORD = ("STATUS", "TESTS", "BUILD")
CROSSES = "❌✗✘✖❎⛔🛑🔴🟥🚫💥👎"
TICKS = "✅✓✔☑🟢🟩💚👍🎉🚀✨🏁💯"
FAILING = (
    "fail(?:s|ed|ing|ures?)?|broken|broke|red|crash(?:ed|es|ing)?|error(?:s|ed)?"
    "|unsuccessful|regressions?"
)
"""The words of failure, as a pattern."""

_OUTCOME_WORDS = {
    "pass": "pass passed passes passing ok success successful succeeded",
    "fail": "fail failed fails failing failure failures broken",
    "skip": "skip skipped n/a na none not_run not_applicable no_tests",
}
_DASHES = frozenset("-–—")
_NO_PATHS = _DASHES | {"n/a", "na", "none", "nothing", "[]"}

_DRESS = re.compile(r"(?:[\s*_`\"'“”‘’«»(\[{<]|[^\x00-\x7f\w–—])*+")
_NUMBER = re.compile(
    r"(?:all\s+)?(?:([0-9]{1,9})(?:\s*/\s*([0-9]{1,9}))?\s+)?(?:tests?\s+)?", re.IGNORECASE
)
_COUNT = re.compile(r"\s*+:\s*+([0-9]{1,9})(?:\s*/\s*\1)?(?![0-9]|:[0-9])")
_BEHIND = re.compile(r"[\s:(\[{,;.!–—*_`\"'“”‘’»)\]}>-]|[^\x00-\x7f\w]")
_RAN = re.compile(r"([0-9]{1,9})(?:\s*/\s*\1)?(?=\s*(?:tests?\b|pass|fail|[)\],;]|$))")
_ENDS = " \t.,;:!*_`\"'“”‘’»()[]{}<>✅✓✔"
_FIELD = re.compile(
    r"(?<![^\s,;|(*`\"'{])(?:status|files[ _-](?:created|modified|deleted)|tests|build|learned"
    r"|error|question)[*`\"']*+\s*+:",
    re.IGNORECASE,
)
_NO_FAILURE = re.compile(
    r"\b(?:0|no|zero|without(?: any)?) (?:fail\w*|errors?|issues?|problems?|regressions?)",
    re.IGNORECASE,
)
_DOUBTFUL = re.compile(
    rf"\b(?:{FAILING}|pass\w*|timed? ?out|hangs?|hung|flaky)\b|[{CROSSES}⚠?]", re.IGNORECASE
)
_HARMLESS = re.compile(
    r"""all|good|green|clean|fine|well|great|success(?:ful(?:ly)?)?|done|complete[d]?|ok|pass(?:e[sd]|ing)?
      |tests?|suites?|files?|cases?|specs?|checks?|assertions?|examples?|warnings?|total|new|existing
      |unit|integration|e2e|end-to-end|smoke|acceptance|regression|backend|frontend|full|whole|everything
      |skipped|deselected|xfailed|ran|in|of|and|with|for|the|on|at|is|are|works?|working
      |needed|nothing|to|do|required|necessary|already|up-to-date|it
      |seconds?|secs?|minutes?|mins?|m?s|[0-9]++(?:\.[0-9]++)?(?:m?s|m|min|sec)?|[0-9]++/[0-9]++|x
    """,
    re.VERBOSE | re.IGNORECASE,
)
_COMMAND = re.compile(
    r"(?:python3?|pytest|tox|nox|uv|poetry|hatch|ruff|mypy|go|cargo|make|just|npm|npx|pnpm|yarn|bun"
    r"|deno|node|jest|vitest|tsc|mvn|gradle|\./gradlew|dotnet|swift|rake|rspec|bundle|phpunit|ctest"
    r"|cmake|ninja|bazel|xcodebuild|mix|sbt)"
    r"(?:\s++(?:-\S*+|[^\s./_:=]*+[./_:=]\S*+|(?:unit)?tests?|build|run|check|lint|vet|ci|exec|all"
    r"|compile|verify|package|assemble|pytest|jest|vitest|mypy|ruff|python3?)(?!\S))*+"
)
_GROUP = re.compile(r"[(\[]([^()\[\]]*+)[)\]]|`([^`]*+)`")
_NAMED = re.compile(r"[\w-]*+[./_:][\w./:-]*\w")
_TOKEN = re.compile(
    rf"[^\s,;:.!()\[\]{{}}*_`\"'“”‘’«»<>{TICKS}–—-][^\s,;()\[\]{{}}`\"'“”‘’«»<>{TICKS}–—]*+"
)
_NO_NEED = re.compile(
    r"\b(?:(?:nothing|no (?:need|changes?)) "
    r"(?:to (?:do|change|build|test)|needed|required|necessary)"
    r"|no (?:changes?|suites?|tests?|warnings?))\b",
    re.IGNORECASE,
)
_LEADING_NONE = re.compile(
    r"(?:0|no)\s+(?:failed|failures?|errors?)\s*[,;]\s*(?=\S)", re.IGNORECASE
)
_ZERO = re.compile(r"(?<![\w.])0+(?:/0+)?(?![\w.])")
_MARK_ONLY = re.compile(rf"(?:([{TICKS}])|([{CROSSES}]))[\s\ufe0f]*+(?=$|[0-9(])")
_SHARE = re.compile(r"([0-9]{1,9})\s*(?:/|of)\s*([0-9]{1,9})")
_CODE = re.compile(r"`([^`]+)`")
_REMARK = re.compile(r"(?<=\s)\([^()]*+\)(?=\s*+(?:[,;]|$))|\s[-–—]+\s[^,]*+|:\s[^,]*+")
_BETWEEN = re.compile(r";\s*+|\s++(?:and|&)\s++|\s++")
_LIKE_A_PATH = re.compile(r"[^\s;]*[^\s;.]\.[A-Za-z]\w{0,11}|[^\s;/]*+/[^\s;]*+")
_HOW_MANY = re.compile(
    r"(?:[0-9]+|several|many|some|various|a few|two|three|all)\s+(?:\w+\s+)?files?\b.*"
    r"|\S+\s.*\b(?:others?|more(?: files)?)\.?",
    re.IGNORECASE,
)
_NO_FILES = re.compile(
    r"(?:no|0|zero)\s+(?:new\s+)?(?:files?|changes?)\b.*|none\b\s*[-(–—:].*", re.IGNORECASE
)


def _words(meant: dict[str, str]) -> tuple[re.Pattern[str], dict[str, str]]:
    """A pattern for a word at the beginning of a text, and the value that each word stands for."""
    means = {word: meaning for meaning, words in meant.items() for word in words.split()}
    longest_first = sorted(means, key=len, reverse=True)
    pattern = "|".join(re.escape(word).replace("_", r"[\s_-]") for word in longest_first)
    return re.compile(rf"(?:{pattern})(?!\w)", re.IGNORECASE), means


_STATUS = _words({status: status for status in STATUSES} | {"fail": "fail failed failure"})
_OUTCOME = _words(_OUTCOME_WORDS)


class FieldWord(NamedTuple):
    """A value of STATUS, TESTS or BUILD, and how many tests ran if that is given."""

    word: str
    ran: int | None = None

    def __str__(self) -> str:
        return self.word if self.ran is None else f"{self.word}:{self.ran}"


class Paths(NamedTuple):
    """Paths, the parts of the text that hold more than a path, and the first part that may be one
    path or several."""

    paths: tuple[str, ...]
    odd: tuple[str, ...] = ()
    unclear: str | None = None


def field_word(name: str, text: str) -> FieldWord | None:
    """The value of STATUS, TESTS or BUILD; None when it is ambiguous.

    >>> field_word("TESTS", "`pass` (12 passed)")
    FieldWord(word='pass', ran=12)
    """
    if name == "STATUS":
        return _plain_word(_STATUS, text)
    if text.strip() in _DASHES:
        return FieldWord("skip")
    bare = text.strip().replace("\ufe0f", "")
    mark = _MARK_ONLY.match(bare)
    if mark is not None:
        text = f"{'pass' if mark[1] else 'fail'} {bare[mark.end() :]}"
    elif name == "TESTS":
        text = _tests_text(text, bare)
    return _tests_word(text) if name == "TESTS" else _plain_word(_OUTCOME, text)


def _plain_word(words: tuple[re.Pattern[str], dict[str, str]], text: str) -> FieldWord | None:
    """The value of STATUS or BUILD: one of `words`."""
    dress = _dress(text)
    pattern, means = words
    match = pattern.match(text, len(dress))
    if match is None:
        return None
    word = means[_key(match[0])]
    return FieldWord(word) if _is_clear(word, dress, text[match.end() :]) else None


def _tests_word(text: str) -> FieldWord | None:
    """The value of TESTS: an outcome, with a count before it, after it or in the remark."""
    dress = _dress(text)
    number = _NUMBER.match(text, len(dress))
    pattern, means = _OUTCOME
    match = pattern.match(text, number.end() if number else len(dress))
    if match is None:
        return None
    word = means[_key(match[0])]
    counted = _COUNT.match(text, match.end())
    rest = text[counted.end() if counted else match.end() :]
    count = counted or number
    ran = int(count[1]) if count and count[1] else None
    if number and number[1] and (not ran or number[2] not in (None, number[1])):
        return None
    if not _is_clear(word, dress, rest):
        return None
    if not counted and rest.startswith(":") and word != "fail":
        return None
    if ran is None and (in_remark := _RAN.match(rest.strip(_ENDS))):
        ran = int(in_remark[1])
    return FieldWord(word, ran)


def _tests_text(text: str, bare: str) -> str:
    """The text of TESTS as a word and a count where it is `0 failed, 12 passed` or `12/12`."""
    share = _SHARE.fullmatch(bare)
    if share is not None and share[1] == share[2]:
        return f"pass:{share[1]}"
    return _LEADING_NONE.sub("", text, count=1) if _LEADING_NONE.match(bare) else text


def _dress(text: str) -> str:
    """The decoration at the beginning of a text."""
    match = _DRESS.match(text)
    return match[0] if match else ""


def _key(word: str) -> str:
    return re.sub(r"[\s_-]", "_", word.lower())


def _is_clear(word: str, dress: str, rest: str) -> bool:
    """Whether the text around a word neither extends nor qualifies it."""
    if rest and not _BEHIND.match(rest):
        return False
    return not names_field(rest.strip(_ENDS)) and not _is_doubtful(word, f"{dress}{rest}")


def names_field(value: str) -> bool:
    """Whether a value contains another field of a report."""
    return _FIELD.search(value) is not None


def is_word(text: str) -> bool:
    """Whether this could be the value of STATUS, TESTS or BUILD."""
    return any(field_word(name, text) is not None for name in ONE_WORD)


def _is_doubtful(word: str, around: str) -> bool:
    """Whether the text around a word may qualify it."""
    if word not in (*DONE, "pass", "skip"):
        return False
    claims = _NO_FAILURE.sub("", around)
    if word == "skip":
        return _DOUBTFUL.search(claims) is not None
    if any(part != whole for part, whole in _SHARE.findall(claims)):
        return True
    claims = _NO_NEED.sub(" ", claims)
    return not _is_harmless(_GROUP.sub(_without_names, claims))


def _without_names(group: re.Match[str]) -> str:
    """A blank for a group that is only a command, else its content."""
    inner = group[1] if group[1] is not None else group[2]
    bare = inner.strip(" `")
    return " " if _COMMAND.fullmatch(bare) and not _DOUBTFUL.search(bare) else f" {inner} "


def _is_harmless(text: str) -> bool:
    """Whether no word of a text qualifies a success."""
    if _ZERO.search(text) or any(not char.isalnum() and char in CROSSES + "⚠?%" for char in text):
        return False
    for raw in _TOKEN.findall(text):
        token = raw.rstrip(".:!*_-").removeprefix("\ufe0f")
        known = _HARMLESS.fullmatch(token)
        named = _NAMED.fullmatch(token) and not _DOUBTFUL.search(token)
        if token and not known and not named:
            return False
    return True


def paths(text: str, *, listed: bool) -> Paths:
    """The paths in a text, separated by commas. `listed`: the text is an item of a list, which may
    have a remark after a path in code marks.

    >>> paths("`a.py` (new, and tested)", listed=True)
    Paths(paths=('a.py',), odd=('`a.py` (new, and tested)',), unclear=None)
    """
    if text in ("[", "]"):
        return Paths(())
    if text.strip("().").lower() in _NO_PATHS or _NO_FILES.fullmatch(text):
        return Paths((), (text,))
    if text.startswith("`"):
        quoted = tuple(_CODE.findall(text))
        between = _CODE.sub("", text)
        if not re.sub(r"[ ,;&]|\band\b", "", between):
            return Paths(quoted, () if not between.strip(" ,") else (text,))
        if listed and quoted:
            return Paths(quoted[:1], (text,))
    text = text.rstrip(", ")
    inner = text[1:-1]
    if text[:1] == "[" and text[-1:] == "]" and not set("[]") & set(inner):
        text = inner
    bare = _REMARK.sub("", text)
    odd: tuple[str, ...] = (text,) if bare != text else ()
    kept: list[str] = []
    for part in (_unquoted(raw.strip()) for raw in bare.split(",")):
        many = _many(part)
        if many is None:
            return Paths((), (), part)
        kept += many
        odd += (part,) if len(many) > 1 else ()
    return Paths(tuple(kept), odd)


def _many(part: str) -> tuple[str, ...] | None:
    """The paths in a part between commas: the part itself, or its pieces when each looks like a
    path. None when it is ambiguous."""
    if not part:
        return ()
    if _HOW_MANY.fullmatch(part):
        return None
    pieces = [_unquoted(piece) for piece in _BETWEEN.split(part) if piece]
    like = sum(_LIKE_A_PATH.fullmatch(piece) is not None for piece in pieces)
    if like < 2:
        return (part,) if ";" not in part.rstrip(";") else None
    return tuple(pieces) if like == len(pieces) else None


def _unquoted(part: str) -> str:
    quoted = (
        len(part) > 2 and part[0] in "\"'`" and part[0] == part[-1] and part[0] not in part[1:-1]
    )
    return part[1:-1].strip() if quoted else part
