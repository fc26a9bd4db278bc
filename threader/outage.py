"""Recognises attempts that failed because the model's provider was unavailable or refused. Pure.

Each CLI reports that in its own way: JSON events (`claude`, `codex exec --json`, `opencode`,
`gemini`) or lines of text. Only what a CLI reports as an error counts, and only if the model said
nothing after it: prose about rate limits is not an outage. The errors of any other program may
concern its own network or the product's, so they count as guesses.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import orjson

from threader.signatures import one_line, strip_ansi

LAST_LINES = 5
"""Only this many last lines of plain text may be the error that ended the CLI."""

LONGEST_WAIT = 7 * 86_400.0


class OutageKind(StrEnum):
    QUOTA = "quota"
    ACCOUNT = "account"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    NETWORK = "network"


DESCRIPTIONS = {
    OutageKind.QUOTA: "its quota or credit is used up",
    OutageKind.ACCOUNT: "it refuses the account or key",
    OutageKind.RATE_LIMIT: "rate limited",
    OutageKind.OVERLOADED: "overloaded",
    OutageKind.NETWORK: "cannot be reached",
}


@dataclass(frozen=True)
class Outage:
    """The provider was unavailable. `retry_after`: the seconds that it asks to wait.

    `certain`: reported by an agent's CLI; otherwise another service may be meant.
    """

    kind: OutageKind
    text: str
    retry_after: float | None = None
    certain: bool = True

    @property
    def reason(self) -> str:
        return f"{DESCRIPTIONS[self.kind]}: {self.text}"


@dataclass(frozen=True)
class PromptTooLarge:
    """The provider refused the prompt for its size: waiting does not help."""

    text: str

    @property
    def reason(self) -> str:
        return f"the provider refuses the prompt as too large: {self.text}"


def _status(*codes: str) -> str:
    """A pattern for HTTP status codes that excludes other numbers, such as line 429 of a file."""
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
"""Unambiguous anywhere in the output of a CLI that crashed."""
_MODELS = re.compile(
    r"resource_exhausted|rate_limit_error|overloaded_error|authentication_error|^\W*\[?api error\b"
    r"|you.ve hit your|claude (?:ai )?usage limit|credit balance is too low|run /login"
    r"|stream disconnected before completion|exceeded retry limit|insufficient_quota"
    r"|check your plan and billing|billing_error|to use codex with your chatgpt plan"
    r"|your workspace is out of credits|you hit your spend cap",
    re.IGNORECASE,
)
"""Messages that only model APIs and their CLIs write, whatever program passes them on."""

_TOO_LARGE = re.compile(
    r"\b(?:prompt|input) (?:is )?too (?:long|large)|context.?length.?exceeded"
    r"|maximum (?:context|prompt) length|exceeds? (?:the |this )?(?:model.?s )?context"
    r"|out of room in the model.?s context|input token count\W[^.]{0,60}exceeds"
    r"|request.?too.?large[^.]{0,200}\btokens? per",
    re.IGNORECASE,
)
"""Messages that can only mean the prompt."""
_TOO_LARGE_HTTP = re.compile(rf"{_status('413')}|request.?too.?large", re.IGNORECASE)
"""Means the prompt when a model's API says it; other servers mean other requests."""
_REQUESTED = re.compile(
    r"\blimit\W{1,3}(?P<limit>\d[\d,]*\d)\W{1,3}(?:used\W{1,3}[\d,]+\W{1,3})?"
    r"requested\W{1,3}(?P<asked>\d[\d,]*\d)",
    re.IGNORECASE,
)
"""A single request above the rate limit never succeeds."""

_PER_TIME = re.compile(r"resource.?exhausted", re.IGNORECASE)
"""Google uses this for quotas that reset with time; elsewhere the text means missing credit."""

_EVENTS = frozenset({"result", "system", "rate_limit_event", "assistant", "turn.failed", "error"})
"""Types of events in which agent CLIs report errors; Gemini's have a session id instead."""

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
    """The longest wait that `text` asks for, in seconds; `now` is in seconds since 1970."""
    waits_asked: list[float] = []
    for match in _WAITS.finditer(text):
        if match["epoch"]:
            waits_asked.append(float(match["epoch"]) - now)
        elif match["after"]:
            waits_asked.append(_seconds(match["after"], milli=bool(match["ms"])))
        elif match["delay"]:
            waits_asked.append(_seconds(match["delay"], milli=bool(match["delay_ms"])))
        else:
            waits_asked.append(_seconds(match["span"]))
    waits = [seconds for seconds in waits_asked if seconds > 0]
    return min(max(waits), LONGEST_WAIT) if waits else None


def _bare(text: str) -> str:
    """`text` without the quotes and escapes of JSON nested in JSON."""
    return text.replace("\\n", " ").replace("\\", "").replace('"', "")


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _is_too_large(bare: str, *, certain: bool) -> bool:
    if _TOO_LARGE.search(bare) or (certain and _TOO_LARGE_HTTP.search(bare)):
        return True
    match = _REQUESTED.search(bare)
    return match is not None and _number(match["asked"]) > _number(match["limit"])


def _classify(text: str, now: float, *, certain: bool) -> Outage | PromptTooLarge | None:
    bare = _bare(text)
    certain = certain or _MODELS.search(bare) is not None
    if _is_too_large(bare, certain=certain):
        return PromptTooLarge(one_line(bare)[:300])
    for kind, pattern in _PATTERNS:
        if pattern.search(bare) and (certain or kind is not OutageKind.QUOTA):
            return Outage(kind, one_line(bare)[:300], retry_after(bare, now), certain)
    return None


def _texts(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


def reported_error(event: dict[str, Any]) -> str | None:
    """The error of the CLI or its provider that an event reports, or None."""
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
        content = message.get("content") if isinstance(message, dict) else ""
        return f"{event.get('error') or ''} {_texts(content)}"
    if event.get("error") or kind == "error":
        return _texts(event.get("error") or event.get("message") or event)
    return None


def _speaks(event: dict[str, Any]) -> bool:
    """Whether `event` holds text of the model, so that the provider has served it."""
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


def _object_at_end(text: str) -> dict[str, Any] | None:
    """The one JSON object, over several lines, at the end of the output; or None."""
    start = text.find("{") if text.startswith("{") else text.find("\n{")
    return _object(text[start : text.rfind("}") + 1]) if start >= 0 else None


def _may_be_error(line: str, *, crashed: bool, last: bool) -> bool:
    """Whether a line of plain text may be the error that ended the CLI."""
    if crashed and (last or _CERTAIN.search(line)):
        return True
    return last and _ERROR_LINE.match(line) is not None


def _events(text: str) -> Iterator[tuple[str, dict[str, Any] | None]]:
    lines = [line for line in strip_ansi(text).splitlines() if line.strip()]
    parsed = [_object(line) for line in lines]
    if not any(parsed) and (event := _object_at_end(strip_ansi(text))):
        yield "", event
        return
    yield from zip(lines, parsed, strict=True)


class ProviderLog:
    """Follows the end of an output, entry by entry, for what it says about the provider.

    `crashed`: the CLI ended with an exit code other than 0; `is_agent_cli`: it is an agent's CLI,
    not any program; `now` is in seconds since 1970.
    """

    def __init__(self, *, crashed: bool, is_agent_cli: bool, now: float) -> None:
        self._crashed = crashed
        self._is_agent_cli = is_agent_cli
        self._now = now
        self._trouble: Outage | PromptTooLarge | None = None
        self._wait: float | None = None

    def see_line(self, line: str, *, last: bool) -> None:
        """Take a line of plain text; `last`: it is among the last LAST_LINES."""
        is_error = _may_be_error(line, crashed=self._crashed, last=last)
        trouble = _classify(line, self._now, certain=self._is_agent_cli) if is_error else None
        self._see(trouble, retry_after(_bare(line), self._now) if last else None)

    def see_event(self, event: dict[str, Any]) -> None:
        """Take a JSON event of a CLI."""
        error = reported_error(event)
        if error is None:
            if _speaks(event):
                self._trouble = self._wait = None
            return
        certain = self._is_agent_cli or event.get("type") in _EVENTS or "session_id" in event
        trouble = _classify(error, self._now, certain=certain)
        self._see(trouble, trouble.retry_after if isinstance(trouble, Outage) else None)

    def _see(self, trouble: Outage | PromptTooLarge | None, wait: float | None) -> None:
        self._wait = max(filter(None, (self._wait, wait)), default=None)
        if not _is_final(self._trouble):
            # Errors after a refusal, such as a closed stream, are its consequences.
            self._trouble = trouble or self._trouble

    def verdict(self, text: str) -> Outage | PromptTooLarge | None:
        """The provider's last trouble, or None. `text` is the whole output that was seen."""
        trouble = self._trouble
        if not isinstance(trouble, Outage):
            return trouble
        if trouble.kind is OutageKind.QUOTA and (self._wait or _PER_TIME.search(text)):
            trouble = replace(trouble, kind=OutageKind.RATE_LIMIT)
        return replace(trouble, retry_after=self._wait)


def _is_final(trouble: Outage | PromptTooLarge | None) -> bool:
    return isinstance(trouble, PromptTooLarge) or (
        trouble is not None and trouble.kind is OutageKind.QUOTA
    )


def find_trouble(
    tail: str, *, crashed: bool, is_agent_cli: bool, now: float
) -> Outage | PromptTooLarge | None:
    """What the end of an output without a contract says about the provider, or None.

    The arguments are those of `ProviderLog`.
    """
    log = ProviderLog(crashed=crashed, is_agent_cli=is_agent_cli, now=now)
    entries = list(_events(tail))
    for index, (line, event) in enumerate(entries):
        if event is None:
            log.see_line(line, last=index >= len(entries) - LAST_LINES)
        else:
            log.see_event(event)
    return log.verdict(tail)
