"""Reads tokens and cost from the logs of CLIs. Pure.

- `claude --output-format json` and `stream-json`: the `result`, or the messages until the CLI was
  cut off. Its input count excludes cached tokens.
- `codex exec --json`: `turn.completed`. No cost.
- `gemini --output-format json`: `stats.models`; `stream-json`: the `stats` of its `result`. No
  cost.
- `opencode run --format json`: each `step_finish`; its input count excludes cached tokens.
- Agent Client Protocol: the session's `cost` in `usage_update`; the draft `usage` of the answer.

A missing count is unknown, not 0. A cost of 0 is unknown too: CLIs write it when they know no
price.
"""

from collections.abc import Iterable
from typing import Any

from schemas.run_state import Usage
from threader.adapters.streams import objects
from threader.parsing import Buffer

MOST_TOKENS, MOST_USD = 10**12, 10**6
"""The most of one invocation. A larger number is an error that would spoil every sum."""


def _is_within(value: object, most: int) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value <= most  # type: ignore[operator]


def _count(value: object) -> int:
    return value if isinstance(value, int) and _is_within(value, MOST_TOKENS) else 0


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _price(value: object) -> float | None:
    return float(value) if _is_within(value, MOST_USD) else None  # type: ignore[arg-type]


def _sum(values: Iterable[Usage]) -> Usage | None:
    """The sum of `values`, without their unknown counts; None when there are no values."""
    listed = list(values)
    if not listed:
        return None
    prices = [usage.cost_usd for usage in listed if usage.cost_usd is not None]
    return Usage(
        input_tokens=sum(usage.input_tokens or 0 for usage in listed),
        cached_tokens=sum(usage.cached_tokens or 0 for usage in listed),
        output_tokens=sum(usage.output_tokens or 0 for usage in listed),
        cost_usd=sum(prices) if prices else None,
    )


def _usage(
    given: dict[str, Any],
    sent: tuple[str, ...],
    cached: str,
    made: tuple[str, ...],
    price: object = None,
) -> Usage:
    """The counts of `given` by a CLI's own names; those of `sent` and of `made` are added up."""
    return Usage(
        input_tokens=sum(_count(given.get(name)) for name in sent),
        cached_tokens=_count(given.get(cached)),
        output_tokens=sum(_count(given.get(name)) for name in made),
        cost_usd=_price(price),
    )


def _of_claude(given: dict[str, Any], price: object = None) -> Usage:
    sent = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return _usage(given, sent, "cache_read_input_tokens", ("output_tokens",), price)


def _claude_result(event: dict[str, Any]) -> Usage | None:
    """Prefers `modelUsage`, which includes subagents, to `usage` of the conversation alone."""
    sent = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    total = _sum(
        _usage(_dict(counts), sent, "cacheReadInputTokens", ("outputTokens",))
        for counts in _dict(event.get("modelUsage")).values()
    )
    if total is None and _dict(event.get("usage")).keys() & {"input_tokens", "output_tokens"}:
        total = _of_claude(event["usage"])
    price = _price(event.get("total_cost_usd"))
    if total is None:
        return None if price is None else Usage(cost_usd=price)
    return total.model_copy(update={"cost_usd": price})


def _gemini(stats: dict[str, Any]) -> Usage | None:
    if "models" in stats and "input_tokens" not in stats:
        return _sum(
            _usage(_dict(tokens), ("prompt",), "cached", ("candidates", "thoughts"))
            for tokens in (_dict(model).get("tokens") for model in _dict(stats["models"]).values())
        )
    if not stats.keys() & {"input_tokens", "output_tokens"}:
        return None
    usage = _usage(stats, ("input_tokens",), "cached", ("output_tokens",))
    whole = _count(stats.get("total_tokens")) - (usage.input_tokens or 0)
    return usage.model_copy(update={"output_tokens": max(whole, usage.output_tokens or 0)})


def _opencode(part: dict[str, Any]) -> Usage | None:
    tokens = _dict(part.get("tokens"))
    if not tokens:
        return None
    cache = _dict(tokens.get("cache"))
    flat = {**tokens, "read": cache.get("read"), "write": cache.get("write")}
    sent, made = ("input", "read", "write"), ("output", "reasoning")
    return _usage(flat, sent, "read", made, part.get("cost"))


def _acp(given: dict[str, Any]) -> Usage:
    usage = _usage(given, ("input_tokens",), "cached_read_tokens", ("output_tokens",))
    rest = _count(given.get("total_tokens")) - (usage.output_tokens or 0)
    return usage.model_copy(update={"input_tokens": max(rest, usage.input_tokens or 0)})


class _Meter:
    """Reads events in order: of totals the last counts, of steps the sum."""

    def __init__(self) -> None:
        self._total: Usage | None = None
        self._cost: float | None = None
        self._steps: dict[str, Usage] = {}

    def read(self, event: dict[str, Any]) -> None:
        kind, part = event.get("type"), _dict(event.get("part"))
        if kind == "result" and "stats" not in event:
            self._total = _claude_result(event) or self._total
        elif stats := _dict(event.get("stats")):
            self._total = _gemini(stats) or self._total
        elif kind == "turn.completed" and (given := _dict(event.get("usage"))):
            self._total = _usage(
                given, ("input_tokens",), "cached_input_tokens", ("output_tokens",)
            )
        elif kind == "step_finish" and (step := _opencode(part)):
            self._steps[f"{len(self._steps)}"] = step
        elif kind == "assistant":
            message = _dict(event.get("message"))
            if (given := _dict(message.get("usage"))) and isinstance(message.get("id"), str):
                # Each part of a message repeats its usage.
                self._steps[message["id"]] = _of_claude(given)
        elif event.get("update") == "usage_update":
            cost = _dict(event.get("cost"))
            if cost.get("currency") == "USD":
                self._cost = _price(cost.get("amount")) or self._cost
        elif "stop_reason" in event and (given := _dict(event.get("usage"))):
            self._total = _acp(given)

    def total(self) -> Usage | None:
        total = self._total or _sum(self._steps.values())
        if self._cost is None:
            return total
        return (total or Usage()).model_copy(update={"cost_usd": self._cost})


def find_usage(log: Buffer) -> Usage | None:
    """The usage of the invocation that wrote a log; None when the log reports none."""
    meter = _Meter()
    for event in objects(log):
        meter.read(event)
    return meter.total()
