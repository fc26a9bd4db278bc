"""Values that are not written as they should be, where no reader could take them for another
(`schemas.wire`): quoted, with a mark of approval, with a remark behind them.

Behind a word that says that all is well stands only what is known to take nothing back: counts,
durations, marks of approval, commands and names. All else is nobody's to decide here.
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
"""What STATUS says of work that is done, if TESTS and BUILD say nothing else."""
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
    """What finds a word at the beginning of a text, and what each stands for."""
    means = {word: meaning for meaning, words in meant.items() for word in words.split()}
    longest_first = sorted(means, key=len, reverse=True)
    pattern = "|".join(re.escape(word).replace("_", r"[\s_-]") for word in longest_first)
    return re.compile(rf"(?:{pattern})(?!\w)", re.IGNORECASE), means


_STATUS = _words({status: status for status in STATUSES} | {"fail": "fail failed failure"})
_OUTCOME = _words(_OUTCOME_WORDS)


class Said(NamedTuple):
    """A word of the format, and how many tests ran if that is told."""

    word: str
    ran: int | None = None

    def __str__(self) -> str:
        return self.word if self.ran is None else f"{self.word}:{self.ran}"


class Paths(NamedTuple):
    """Paths, those parts of the text that hold more than a path, and the first part that can't be
    told to be one path or many."""

    paths: tuple[str, ...]
    odd: tuple[str, ...] = ()
    unclear: str | None = None


def said(name: str, text: str) -> Said | None:
    """What STATUS, TESTS or BUILD says; None when that can't be told for certain.

    >>> said("TESTS", "`pass` (12 passed)")
    Said(word='pass', ran=12)
    """
    if name != "STATUS" and text.strip() in _DASHES:
        return Said("skip")
    bare = text.strip().replace("\ufe0f", "")
    if name != "STATUS" and (mark := _MARK_ONLY.match(bare)):
        text = f"{'pass' if mark[1] else 'fail'} {bare[mark.end() :]}"
    elif name == "TESTS":
        text = _LEADING_NONE.sub("", text, count=1) if _LEADING_NONE.match(bare) else text
        if (share := _SHARE.fullmatch(bare)) and share[1] == share[2]:
            text = f"pass:{share[1]}"
    dress = _DRESS.match(text)
    number = _NUMBER.match(text, dress.end() if dress else 0) if name == "TESTS" else None
    start = number or dress
    pattern, means = _STATUS if name == "STATUS" else _OUTCOME
    found = pattern.match(text, start.end() if start else 0)
    if found is None:
        return None
    word = means[re.sub(r"[\s_-]", "_", found[0].lower())]
    counted = _COUNT.match(text, found.end()) if name == "TESTS" else None
    rest = text[counted.end() if counted else found.end() :]
    count = counted or number
    ran = int(count[1]) if count and count[1] else None
    if rest and not _BEHIND.match(rest):
        return None
    if number and number[1] and (not ran or number[2] not in (None, number[1])):
        return None
    remark = rest.strip(_ENDS)
    if names_field(remark) or _is_doubtful(word, f"{dress[0] if dress else ''}{rest}"):
        return None
    if name == "TESTS" and not counted and rest.startswith(":") and word != "fail":
        return None
    if name == "TESTS" and ran is None and (told := _RAN.match(remark)):
        ran = int(told[1])
    return Said(word, ran)


def names_field(value: str) -> bool:
    """Whether another field of a report stands within a value."""
    return _FIELD.search(value) is not None


def is_word(text: str) -> bool:
    """Whether STATUS, TESTS or BUILD could have this as its value."""
    return any(said(name, text) is not None for name in ONE_WORD)


def _is_doubtful(word: str, around: str) -> bool:
    """Whether what stands around a word may take back what it says."""
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
    """A group without the command that it is, if it is one that says nothing else."""
    inner = group[1] if group[1] is not None else group[2]
    bare = inner.strip(" `")
    return " " if _COMMAND.fullmatch(bare) and not _DOUBTFUL.search(bare) else f" {inner} "


def _is_harmless(text: str) -> bool:
    """Whether each word of a text is one that takes nothing back."""
    if _ZERO.search(text) or any(not char.isalnum() and char in CROSSES + "⚠?%" for char in text):
        return False
    for found in _TOKEN.findall(text):
        token = found.rstrip(".:!*_-").removeprefix("\ufe0f")
        known = _HARMLESS.fullmatch(token)
        named = _NAMED.fullmatch(token) and not _DOUBTFUL.search(token)
        if token and not known and not named:
            return False
    return True


def paths(text: str, *, listed: bool) -> Paths:
    """The paths in a text, between commas. `listed`: the text is an item of a list, which may have
    a remark behind a path in code marks.

    >>> paths("`a.py` (new, and tested)", listed=True)
    Paths(paths=('a.py',), odd=('`a.py` (new, and tested)',), unclear=None)
    """
    if text in ("[", "]"):
        return Paths(())
    if text.strip("().").lower() in _NO_PATHS or _NO_FILES.fullmatch(text):
        return Paths((), (text,))
    if text.startswith("`"):
        found = tuple(_CODE.findall(text))
        between = _CODE.sub("", text)
        if not re.sub(r"[ ,;&]|\band\b", "", between):
            return Paths(found, () if not between.strip(" ,") else (text,))
        if listed and found:
            return Paths(found[:1], (text,))
    text = text.rstrip(", ")
    inner = text[1:-1]
    if text[:1] == "[" and text[-1:] == "]" and not set("[]") & set(inner):
        text = inner
    bare = _REMARK.sub("", text)
    odd: tuple[str, ...] = (text,) if bare != text else ()
    kept: list[str] = []
    for part in (_unquoted(one.strip()) for one in bare.split(",")):
        many = _many(part)
        if many is None:
            return Paths((), (), part)
        kept += many
        odd += (part,) if len(many) > 1 else ()
    return Paths(tuple(kept), odd)


def _many(part: str) -> tuple[str, ...] | None:
    """The paths in a part between commas: itself, those it holds when each shows that it is one,
    and None when that can't be told."""
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
