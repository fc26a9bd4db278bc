"""Whether an attempt failed because the model's provider could not be had, or refused. Pure.

CLIs say so in their own ways: events of JSON (`claude`, `codex exec --json`, `opencode`, `gemini`)
or lines of text. Only what a CLI reports as an error counts, and only when the model said nothing
after it: prose about rate limits is no outage. Any other program may mean its own network, or the
product's: what it prints is a guess.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import orjson

from threader.signatures import one_line, strip_ansi

LAST_LINES = 5
"""How near to the end a line of plain text must stand to be what ended the CLI."""

LONGEST_WAIT = 7 * 86_400.0


class OutageKind(StrEnum):
    QUOTA = "quota"
    ACCOUNT = "account"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    NETWORK = "network"


SAID = {
    OutageKind.QUOTA: "its quota or credit is used up",
    OutageKind.ACCOUNT: "it refuses the account or key",
    OutageKind.RATE_LIMIT: "rate limited",
    OutageKind.OVERLOADED: "overloaded",
    OutageKind.NETWORK: "cannot be reached",
}


@dataclass(frozen=True)
class Outage:
    """The provider could not be had. `retry_after` are the seconds that it asks to wait.

    `certain`: said by an agent's CLI, in its way; else it may be something else that is away.
    """

    kind: OutageKind
    text: str
    retry_after: float | None = None
    certain: bool = True

    @property
    def reason(self) -> str:
        return f"{SAID[self.kind]}: {self.text}"


@dataclass(frozen=True)
class TooLarge:
    """The provider refused the prompt for its size: waiting mends nothing."""

    text: str

    @property
    def reason(self) -> str:
        return f"the provider refuses its prompt as too large: {self.text}"


def _status(*codes: str) -> str:
    """Where a number is an HTTP status: not line 429 of a file."""
    return rf"(?:^\W*|(?:status|code|error|http(?:/[\d.]+)?)\W{{1,3}})(?:{'|'.join(codes)})\b"


_KINDS = (
    (OutageKind.QUOTA, rf"{_status('402')}|payment.required|insufficient.quota|billing.(?:error|"
     r"hard.limit|not.active)|check your plan and billing|credit balance is too low"
     r"|out of credits|\bspend cap\b|usage.not.included|to use codex with your chatgpt plan"),
    (OutageKind.ACCOUNT, rf"{_status('401')}|authentication.error|invalid api key|not logged in"
     r"|run /login|token (?:has )?expired|unauthori[sz]ed"),
    (OutageKind.RATE_LIMIT, rf"{_status('429')}|rate.?limit|too many requests|resource.?exhausted"
     r"|\bquota\b|usage.limit|hit your [\w ]{0,20}limit|limit reached|out of (?:extra )?usage"),
    (OutageKind.OVERLOADED, rf"{_status('50[0234]', '529')}|overloaded|service.unavailable"
     r"|experiencing high demand"
     r"|\[unavailable\]|temporarily unavailable|internal.server.error|bad gateway"
     r"|gateway.time-?out"),
    (OutageKind.NETWORK, r"\be(?:conn(?:refused|reset|aborted)|timedout|notfound|ai_again"
     r"|hostunreach|netunreach)\b|fetch failed|failed to connect|unable to connect|socket hang up"
     r"|connection (?:error|refused|reset|closed|lost)|network (?:error|is unreachable)"
     r"|could not resolve|getaddrinfo|stream disconnected|request timed out"),
)  # fmt: skip
_PATTERNS = tuple((kind, re.compile(text, re.IGNORECASE)) for kind, text in _KINDS)
_CERTAIN = re.compile(
    rf"{_status('429', '529')}|resource_exhausted|rate_limit_error|overloaded_error"
    r"|too many requests",
    re.IGNORECASE,
)
"""Not to be mistaken wherever a CLI that crashed has printed it."""
_MODELS = re.compile(
    r"resource_exhausted|rate_limit_error|overloaded_error|authentication_error|^\W*\[?api error\b"
    r"|you.ve hit your|claude (?:ai )?usage limit|credit balance is too low|run /login"
    r"|stream disconnected before completion|exceeded retry limit|insufficient_quota"
    r"|check your plan and billing|billing_error|to use codex with your chatgpt plan"
    r"|your workspace is out of credits|you hit your spend cap",
    re.IGNORECASE,
)
"""Said by the APIs of models and their CLIs alone, whatever program passes it on."""

_TOO_LARGE = re.compile(
    r"\b(?:prompt|input) (?:is )?too (?:long|large)|context.?length.?exceeded"
    r"|maximum (?:context|prompt) length|exceeds? (?:the |this )?(?:model.?s )?context"
    r"|out of room in the model.?s context|input token count\W[^.]{0,60}exceeds"
    r"|request.?too.?large[^.]{0,200}\btokens? per",
    re.IGNORECASE,
)
"""Said of prompts alone."""
_TOO_LARGE_HTTP = re.compile(rf"{_status('413')}|request.?too.?large", re.IGNORECASE)
"""What a model's API means by it; other servers say it of other things."""
_REQUESTED = re.compile(
    r"\blimit\W{1,3}(?P<limit>\d[\d,]*\d)\W{1,3}(?:used\W{1,3}[\d,]+\W{1,3})?"
    r"requested\W{1,3}(?P<asked>\d[\d,]*\d)",
    re.IGNORECASE,
)
"""A rate limit that one request alone exceeds never lets it through."""

_PER_TIME = re.compile(r"resource.?exhausted", re.IGNORECASE)
"""Google's word for quotas that time lifts, in the words in which others ask for money."""

_EVENTS = frozenset({"result", "system", "rate_limit_event", "assistant", "turn.failed", "error"})
"""The types of events in which agents' CLIs report errors; Gemini's have none, but a session."""

_ERROR_LINE = re.compile(
    r"^\W*(?:\d{4}-\S+\s+)?(?:(?-i:ERROR)\b|\w*error:|api error\b|fatal:|http[/ ]|[45]\d\d\b"
    r"|you.ve hit your|you.re out of|claude (?:ai )?usage limit|credit balance"
    r"|attempt \d+ failed|curl:|prompt is too long)",
    re.IGNORECASE,
)

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|[smhd])?", re.IGNORECASE)
_WAITS = re.compile(
    r"retry.?after(?P<ms>.?ms)?[\s:=]+(?P<after>\d+(?:\.\d+)?\s*(?:ms|[smhd]\b)?)"
    r"|retry.?delay(?P<delay_ms>_ms)?\s*:\s*(?P<delay>\d+(?:\.\d+)?\s*s?)"
    r"|(?:try again|retry(?:ing)?|resets?|wait)(?: again)?(?: in| after| for)? "
    r"(?P<span>(?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?"
    r"|h(?:ours?)?|d(?:ays?)?)\b[,\s]*(?:and )?)+)"
    r"|(?:limit reached\||resets?_?at\s*:\s*)(?P<epoch>\d{10})\b",
    re.IGNORECASE,
)


def _seconds(text: str, *, milli: bool = False) -> float:
    total = 0.0
    for number, unit in _SPAN.findall(text):
        name = "ms" if milli or unit.lower() in ("ms", "milli") else (unit.lower() or "s")
        total += float(number) * _UNITS[name]
    return total


def retry_after(text: str, now: float) -> float | None:
    """The longest wait that `text` asks for, in seconds; `now` are seconds since 1970."""
    found: list[float] = []
    for match in _WAITS.finditer(text):
        if match["epoch"]:
            found.append(float(match["epoch"]) - now)
        elif match["after"]:
            found.append(_seconds(match["after"], milli=bool(match["ms"])))
        elif match["delay"]:
            found.append(_seconds(match["delay"], milli=bool(match["delay_ms"])))
        else:
            found.append(_seconds(match["span"]))
    waits = [seconds for seconds in found if seconds > 0]
    return min(max(waits), LONGEST_WAIT) if waits else None


def _bare(text: str) -> str:
    """`text` without the quotes and escapes that JSON in JSON puts around words."""
    return text.replace("\\n", " ").replace("\\", "").replace('"', "")


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _is_too_large(bare: str, *, certain: bool) -> bool:
    if _TOO_LARGE.search(bare) or (certain and _TOO_LARGE_HTTP.search(bare)):
        return True
    match = _REQUESTED.search(bare)
    return match is not None and _number(match["asked"]) > _number(match["limit"])


def _trouble(text: str, now: float, *, certain: bool) -> Outage | TooLarge | None:
    bare = _bare(text)
    certain = certain or _MODELS.search(bare) is not None
    if _is_too_large(bare, certain=certain):
        return TooLarge(one_line(bare)[:300])
    for kind, pattern in _PATTERNS:
        if pattern.search(bare) and (certain or kind is not OutageKind.QUOTA):
            return Outage(kind, one_line(bare)[:300], retry_after(bare, now), certain)
    return None


def _texts(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


def fault(event: dict[str, Any]) -> str | None:
    """What an event reports as an error of the CLI or its provider."""
    kind = event.get("type")
    if kind == "result" and event.get("is_error"):
        status = event.get("api_error_status")
        return f"{status or ''} {_texts(event.get('result') or event.get('error') or '')}"
    if kind == "system" and event.get("subtype") == "api_retry":
        return _texts(event)
    if kind == "rate_limit_event":
        info = event.get("rate_limit_info")
        rejected = isinstance(info, dict) and info.get("status") == "rejected"
        return f"rate limit {_texts(info)}" if rejected else None
    if kind == "assistant" and (event.get("error") or event.get("isApiErrorMessage")):
        message = event.get("message")
        said = message.get("content") if isinstance(message, dict) else ""
        return f"{event.get('error') or ''} {_texts(said)}"
    if event.get("error") or kind == "error":
        return _texts(event.get("error") or event.get("message") or event)
    return None


def _speaks(event: dict[str, Any]) -> bool:
    """Whether the model says something in `event`: the provider served it."""
    item = event.get("item")
    return (
        event.get("type") in ("assistant", "text")
        or (event.get("type") == "result" and not event.get("is_error"))
        or event.get("update") == "agent_message_chunk"
        or (event.get("type") == "message" and event.get("role") == "assistant")
        or (isinstance(item, dict) and item.get("type") == "agent_message")
    )


def _object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _whole(text: str) -> dict[str, Any] | None:
    """The one object that stands over several lines at the end of the output."""
    start = text.find("{") if text.startswith("{") else text.find("\n{")
    return _object(text[start : text.rfind("}") + 1]) if start >= 0 else None


def _line(line: str, *, crashed: bool, last: bool) -> bool:
    """Whether a line of plain text may be an error of the CLI that ended it."""
    if crashed and (last or _CERTAIN.search(line)):
        return True
    return last and _ERROR_LINE.match(line) is not None


def _events(text: str) -> Iterator[tuple[str, dict[str, Any] | None]]:
    lines = [line for line in strip_ansi(text).splitlines() if line.strip()]
    parsed = [_object(line) for line in lines]
    if not any(parsed) and (whole := _whole(strip_ansi(text))):
        yield "", whole
        return
    yield from zip(lines, parsed, strict=True)


def _is_final(found: Outage | TooLarge | None) -> bool:
    return isinstance(found, TooLarge) or (found is not None and found.kind is OutageKind.QUOTA)


def find_trouble(tail: str, *, crashed: bool, agent: bool, now: float) -> Outage | TooLarge | None:
    """What the end of a CLI's output tells of its provider, when it brought no contract.

    `crashed`: it ended with an exit code other than 0; `agent`: it is an agent's CLI, not any
    program; `now` are seconds since 1970.
    """
    found: Outage | TooLarge | None = None
    asked: float | None = None
    entries = list(_events(tail))
    for index, (line, event) in enumerate(entries):
        if event is None:
            near = index >= len(entries) - LAST_LINES
            said = _line(line, crashed=crashed, last=near)
            told = _trouble(line, now, certain=agent) if said else None
            wait = retry_after(_bare(line), now) if near else None
        else:
            trouble = fault(event)
            if trouble is None and _speaks(event):
                found = asked = None
            certain = agent or event.get("type") in _EVENTS or "session_id" in event
            told = _trouble(trouble, now, certain=certain) if trouble else None
            wait = told.retry_after if isinstance(told, Outage) else None
        asked = max(filter(None, (asked, wait)), default=None)
        if not _is_final(found):
            # What follows a refusal, a stream that closes for example, is its consequence.
            found = told or found
    if not isinstance(found, Outage):
        return found
    if found.kind is OutageKind.QUOTA and (asked or _PER_TIME.search(tail)):
        found = replace(found, kind=OutageKind.RATE_LIMIT)
    return replace(found, retry_after=asked)
