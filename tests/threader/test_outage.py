"""What the CLIs print when their provider cannot be had."""

import json

import pytest

from threader.outage import Outage, OutageKind, PromptTooLarge, find_trouble, retry_after

NOW = 1_755_800_000.0

CLAUDE_JSON = {
    "type": "result",
    "subtype": "success",
    "is_error": True,
    "api_error_status": 429,
    "result": 'API Error: 429 {"type":"error","error":{"type":"rate_limit_error"}}',
    "usage": {"input_tokens": 529},
}
CLAUDE_RETRY = {
    "type": "system",
    "subtype": "api_retry",
    "attempt": 1,
    "retry_delay_ms": 20500,
    "error_status": 529,
    "error": "overloaded",
}
CLAUDE_LIMIT = {
    "type": "rate_limit_event",
    "rate_limit_info": {"status": "rejected", "resetsAt": int(NOW) + 600},
}
CLAUDE_SYNTHETIC = {
    "type": "assistant",
    "error": "rate_limit",
    "message": {"content": [{"type": "text", "text": "You've hit your limit · resets 2pm"}]},
}
CODEX = {
    "type": "turn.failed",
    "error": {"message": "exceeded retry limit, last status: 429 Too Many Requests"},
}
OPENCODE = {
    "type": "error",
    "error": {
        "name": "APIError",
        "data": {
            "message": "Overloaded",
            "statusCode": 503,
            "responseHeaders": {"retry-after": "20"},
        },
    },
}
GEMINI = {
    "session_id": "s",
    "error": {
        "type": "ApiError",
        "message": '[API Error: {"error":{"code":429,"status":"RESOURCE_EXHAUSTED",'
        '"details":[{"retryDelay":"34s"}]}}]',
        "code": 429,
    },
}
SPEECH = {"type": "assistant", "message": {"content": [{"type": "text", "text": "Done."}]}}


def lines(*events: object) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


@pytest.mark.parametrize(
    ("output", "crashed", "kind", "asked"),
    [
        (lines(CLAUDE_JSON), True, "rate_limit", None),
        (lines(SPEECH, CLAUDE_RETRY), False, "overloaded", 20.5),
        (lines(CLAUDE_LIMIT, CLAUDE_SYNTHETIC, CLAUDE_JSON), True, "rate_limit", 600),
        (lines({"type": "thread.started"}, CODEX), True, "rate_limit", None),
        (lines(OPENCODE), False, "overloaded", 20),
        (json.dumps(GEMINI, indent=2), True, "rate_limit", 34),
        ("Loaded.\n" + json.dumps(GEMINI, indent=2) + "\n", True, "rate_limit", 34),
        ("API Error: Connection error.\n", True, "network", None),
        (f"Claude AI usage limit reached|{int(NOW) + 90}\n", False, "rate_limit", 90),
        ("\x1b[91m\x1b[1mError: \x1b[0mToo Many Requests\n", False, "rate_limit", None),
        ("ERROR: stream disconnected before completion: reset\n", True, "network", None),
        ("ERROR: You've hit your usage limit. Try again in 3 hours 20 minutes.\n", True,
         "rate_limit", 12_000),
        ("429 Too Many Requests\nRetry-After: 20\n", True, "rate_limit", 20),
        ("HTTP/1.1 429\nretry-after-ms: 1500\n", False, "rate_limit", 1.5),
        ("Invalid API key · Please run /login\n", True, "account", None),
        ("the session failed: Internal error {'details': 'fetch failed'}\n", True, "network", None),
        ('GaxiosError: [{\n  "code": 429,\n' + "  at step\n" * 20, True, "rate_limit", None),
    ],
)  # fmt: skip
def test_outages_are_recognised(output: str, crashed: bool, kind: str, asked: float | None) -> None:
    found = find_trouble(output, crashed=crashed, is_agent_cli=True, now=NOW)
    assert isinstance(found, Outage)
    assert (found.kind, found.retry_after) == (OutageKind(kind), asked)
    assert "\n" not in found.reason


@pytest.mark.parametrize(
    ("output", "crashed"),
    [
        ("I added the rate limit, and 429 is answered with Retry-After.\n", False),
        (lines(CLAUDE_RETRY, SPEECH), False),
        (lines({"type": "user", "message": {"content": "API Error: 429"}}), True),
        (lines({**CLAUDE_LIMIT, "rate_limit_info": {"status": "allowed"}}), False),
        ("Error: 429 Too Many Requests\n" + "Working on it.\n" * 9, False),
        ("ValueError: x\n", True),
        ("cannot start claude: Resource temporarily unavailable\n", False),
        ("", True),
    ],
)
def test_what_is_no_outage(output: str, crashed: bool) -> None:
    assert find_trouble(output, crashed=crashed, is_agent_cli=True, now=NOW) is None


@pytest.mark.parametrize(
    ("output", "certain"),
    [
        (lines({"level": "error", "error": "connect ECONNREFUSED 127.0.0.1:5432"}), False),
        ("Traceback\nConnectionRefusedError: [Errno 111] Connection refused\n", False),
        ("Error: expected 200\nError: 503 Service Unavailable\n", False),
        ("API Error: 429 rate_limit_error\n", True),
        ("ERROR: stream disconnected before completion: reset\n", True),
        (lines(CODEX), True),
        (json.dumps(GEMINI, indent=2), True),
        (lines(CLAUDE_JSON), True),
    ],
)
def test_what_any_program_says_is_a_guess(output: str, certain: bool) -> None:
    """A database that is down, say; unless it is what the APIs of models and their CLIs say."""
    found = find_trouble(output, crashed=True, is_agent_cli=False, now=NOW)
    assert isinstance(found, Outage)
    assert found.certain is certain
    assert getattr(find_trouble(output, crashed=True, is_agent_cli=True, now=NOW), "certain", None)


@pytest.mark.parametrize(
    "output",
    [
        'Traceback:\n  File "a.py", line 429, in main\nKeyError: 5\n',
        "a.ts:503:12 - error TS2304\n",
        "copied 500 of 529 files\n",
    ],
)
def test_numbers_are_not_statuses(output: str) -> None:
    assert find_trouble(output, crashed=True, is_agent_cli=True, now=NOW) is None


LIMIT = "on tokens per min (TPM): Limit {limit}, Requested {asked}. Please try again in 6s."
TOO_LARGE = [
    (lines({"type": "result", "is_error": True, "result": "Prompt is too long"}), True),
    ("Prompt is too long\n", False),
    ('API Error: 400 {"error":{"message":"prompt is too long: 210883 tokens > 199999"}}\n', True),
    ('API Error: 400 {"error":{"message":"input length and `max_tokens` exceed context limit: '
     '184915 + 20000 > 204648"}}\n', True),
    ("Error: 429 Request too large for gpt-4o in organization org-1 on tokens per min (TPM): "
     "Limit 30000, Requested 36278. The input or output tokens must be reduced.\n", True),
    ("Error: 429 " + LIMIT.format(limit="30,000", asked="36,278") + "\n", True),
    (lines({"type": "error", "message": "stream disconnected before completion: Request too large "
            "for m on tokens per min (TPM): Limit 200000, Requested 208334."},
           {"type": "turn.failed", "error": {"message": "stream disconnected"}}), True),
    (json.dumps({"session_id": "s", "error": {"message": "The input token count (2845475) exceeds "
                 "the maximum number of tokens allowed (1048576).", "code": 400}}), True),
    ("ERROR: Codex ran out of room in the model's context window.\n", True),
    ("Error: 400 This model's maximum context length is 102400 tokens.\n", True),
    ("Error code: 413 - Request Entity Too Large\n", True),
    (lines({"type": "error", "error": {"data": {"statusCode": 413, "message": "too big"}}}), True),
]  # fmt: skip


@pytest.mark.parametrize(("output", "crashed"), TOO_LARGE)
def test_a_prompt_that_is_refused_for_its_size_is_no_outage(output: str, crashed: bool) -> None:
    found = find_trouble(output, crashed=crashed, is_agent_cli=True, now=NOW)
    assert isinstance(found, PromptTooLarge)
    assert found.reason.startswith("the provider refuses the prompt as too large: ")


@pytest.mark.parametrize(
    "output",
    [
        "Error: 429 Rate limit reached " + LIMIT.format(limit=30000, asked=15000) + "\n",
        "Error: 429 Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 28000, "
        "Requested 15000. Please try again in 6s.\n",
        "API Error: 429 This request would exceed your rate limit of 20,000 input tokens per "
        "minute. Please reduce the prompt length, or try again later.\n",
    ],
)
def test_a_limit_that_time_lifts_is_an_outage(output: str) -> None:
    assert isinstance(find_trouble(output, crashed=True, is_agent_cli=True, now=NOW), Outage)


OPENAI_QUOTA = {
    "message": "You exceeded your current quota, please check your plan and billing details.",
    "type": "insufficient_quota",
    "code": "insufficient_quota",
}
BROKE = [
    "ERROR: Quota exceeded. Check your plan and billing details.\n" * 2,
    lines({"type": "error", "message": "Reconnecting... 2/5 (rate limit exceeded: x)"},
          {"type": "error", "message": "Quota exceeded. Check your plan and billing details."},
          {"type": "turn.failed", "error": {"message": "stream disconnected"}}),
    "ERROR: unexpected status 429 Too Many Requests: " + json.dumps({"error": OPENAI_QUOTA}) + "\n",
    "ERROR: Your workspace is out of credits. Ask your workspace owner to refill in order to "
    "continue.\n",
    "ERROR: You hit your spend cap set in your workspace. Increase your spend cap to continue.\n",
    "ERROR: To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/x\n",
    lines({**CLAUDE_JSON, "api_error_status": 400, "result": "Credit balance is too low"}),
    'API Error: 402 {"type":"error","error":{"type":"billing_error","message":"x"}}\n',
    lines({"type": "error", "error": {"name": "APIError", "data": {
        "message": OPENAI_QUOTA["message"], "statusCode": 429, "isRetryable": False,
        "responseBody": json.dumps({"error": OPENAI_QUOTA})}}}),
    "\x1b[91m\x1b[1mError: \x1b[0mYou exceeded your current quota, please check your plan and "
    "billing details.\n",
]  # fmt: skip


@pytest.mark.parametrize("output", BROKE)
@pytest.mark.parametrize("agent", [True, False])
def test_what_time_does_not_lift_is_told_from_what_it_does(output: str, *, agent: bool) -> None:
    found = find_trouble(output, crashed=True, is_agent_cli=agent, now=NOW)
    assert isinstance(found, Outage)
    assert (found.kind, found.certain) == (OutageKind.QUOTA, True)
    assert found.reason.startswith("its quota or credit is used up: ")


GEMINI_QUOTA = (
    "[API Error: You exceeded your current quota, please check your plan and billing details.\n"
    "* Quota exceeded for metric: generate_content_free_tier_requests, limit: 250\n"
    "Please retry in 34.07s.\n"
)


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        (GEMINI_QUOTA, "rate_limit"),
        (GEMINI_QUOTA.replace("Please retry in 34.07s.", "status: RESOURCE_EXHAUSTED"),
         "rate_limit"),
        ("ERROR: exceeded retry limit, last status: 429 Too Many Requests, request id: 8f\n",
         "rate_limit"),
        ("ERROR: You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), "
         "visit https://chatgpt.com/codex/settings/usage to purchase more credits or try again at "
         "3:05 PM.\n", "rate_limit"),
        ("ERROR: Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 28000, "
         "Requested 15000. Please try again in 26s.\n", "rate_limit"),
        ("You're out of extra usage · resets 3pm\n", "rate_limit"),
        ("ERROR: We're currently experiencing high demand, which may cause temporary errors.\n",
         "overloaded"),
        ("ERROR: unexpected status 503 Service Unavailable: upstream\n", "overloaded"),
    ],
)  # fmt: skip
def test_what_time_lifts_is_waited_for(output: str, kind: str) -> None:
    found = find_trouble(output, crashed=True, is_agent_cli=True, now=NOW)
    assert isinstance(found, Outage)
    assert found.kind == kind


def test_any_programs_bill_is_not_the_models() -> None:
    found = find_trouble("Error: 402 Payment Required\n", crashed=True, is_agent_cli=False, now=NOW)
    assert found is None


def test_other_servers_refuse_other_things_for_their_size() -> None:
    upload = "AssertionError: expected 200\nError: 413 Request Entity Too Large\n"
    assert find_trouble(upload, crashed=True, is_agent_cli=False, now=NOW) is None
    said = "API Error: 413 request_too_large\n"
    assert isinstance(find_trouble(said, crashed=True, is_agent_cli=False, now=NOW), PromptTooLarge)


def test_a_model_that_speaks_after_a_refusal_got_through() -> None:
    refused = lines({"type": "error", "message": "prompt is too long"})
    assert find_trouble(refused + lines(SPEECH), crashed=True, is_agent_cli=True, now=NOW) is None


def test_the_longest_wait_is_the_one_to_keep() -> None:
    assert retry_after("retrying in 200ms … try again in 1m 30s", NOW) == 90
    assert retry_after("resetsAt: 1600000000", NOW) is None
    assert retry_after("reset the counter 5 times", NOW) is None
