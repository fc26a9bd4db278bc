"""What CLIs tell of tokens and money."""

import json

import pytest

from schemas.run_state import Usage
from threader.adapters.usage import find_usage


def lines(*events: object) -> bytes:
    return "".join(json.dumps(event) + "\n" for event in events).encode()


def used(sent: int, cached: int, made: int, cost: float | None = None) -> Usage:
    return Usage(input_tokens=sent, cached_tokens=cached, output_tokens=made, cost_usd=cost)


CLAUDE = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 20,
    "cache_read_input_tokens": 3000,
    "output_tokens": 40,
}
MODELS = {
    "large": {"inputTokens": 100, "outputTokens": 40, "cacheReadInputTokens": 3000,
              "cacheCreationInputTokens": 20, "costUSD": 0.3},
    "small": {"inputTokens": 7, "outputTokens": 3, "cacheReadInputTokens": 0,
              "cacheCreationInputTokens": 0, "costUSD": 0.1},
}  # fmt: skip
RESULT = {"type": "result", "result": "Done.", "total_cost_usd": 0.4, "usage": CLAUDE}
GEMINI = {"prompt": 24939, "candidates": 20, "total": 25113, "cached": 21263, "thoughts": 154}
OPENCODE = {
    "total": 2450, "input": 1200, "output": 300, "reasoning": 50,
    "cache": {"read": 800, "write": 100},
}  # fmt: skip


def step(cost: float) -> dict[str, object]:
    part = {"type": "step-finish", "reason": "stop", "cost": cost, "tokens": OPENCODE}
    return {"type": "step_finish", "sessionID": "s", "part": part}


def spoken(name: str, **usage: int) -> dict[str, object]:
    return {"type": "assistant", "message": {"id": name, "usage": {**CLAUDE, **usage}}}


@pytest.mark.parametrize(
    ("log", "told"),
    [
        (lines(spoken("m1"), RESULT), used(3120, 3000, 40, 0.4)),
        (lines({**RESULT, "modelUsage": MODELS}), used(3127, 3000, 43, 0.4)),
        (lines(spoken("m1"), spoken("m1"), spoken("m2", output_tokens=2)), used(6240, 6000, 42)),
        (lines({**RESULT, "total_cost_usd": 0}), used(3120, 3000, 40)),
        (lines({"type": "turn.completed", "usage": {"input_tokens": 26549,
         "cached_input_tokens": 22272, "output_tokens": 1590}}), used(26549, 22272, 1590)),
        (b"Loaded.\n" + json.dumps({"response": "x", "stats": {"models": {
            "m": {"api": {"totalRequests": 2}, "tokens": GEMINI}}}}, indent=1).encode()
            + b"\nbye\n", used(24939, 21263, 174)),
        (lines({"type": "result", "status": "success", "stats": {"total_tokens": 25113,
         "input_tokens": 24939, "output_tokens": 20, "cached": 21263}}), used(24939, 21263, 174)),
        (lines(step(0.01), step(0.02)), used(4200, 1600, 700, 0.03)),
        (lines(step(0)), used(2100, 800, 350)),
        (lines(step(1e308), step(-1)), used(4200, 1600, 700)),
        (lines({"type": "turn.completed", "usage": {"input_tokens": 10**18, "output_tokens": True,
         "cached_input_tokens": "9"}}), used(0, 0, 0)),
        (lines({"update": "usage_update", "cost": {"amount": 0.1, "currency": "USD"}},
               {"update": "usage_update", "cost": {"amount": 0.2, "currency": "USD"}},
               {"stop_reason": "end_turn", "usage": {"total_tokens": 90, "input_tokens": 20,
                "output_tokens": 10, "cached_read_tokens": 60}}), used(80, 60, 10, 0.2)),
    ],
)  # fmt: skip
def test_what_is_told(log: bytes, told: Usage) -> None:
    assert find_usage(log) == told


@pytest.mark.parametrize(
    "log",
    [
        b"",
        b"I used 500 tokens, which cost $3.\n",
        lines({"type": "result", "result": "Done."}),
        lines({"type": "result", "usage": {"inputTokens": "many"}}),
        lines({"type": "turn.completed", "usage": None}),
        lines({"stats": []}, {"type": "step_finish", "part": {"type": "step-finish"}}),
        lines({"update": "usage_update", "cost": {"amount": 0.2, "currency": "EUR"}}),
        lines({"type": "assistant", "message": "text"}),
    ],
)
def test_what_is_not_told_is_not_zero(log: bytes) -> None:
    assert find_usage(log) is None
