"""Reports as coding agents end their work with them, and what each says.

Each is a text and the fields that are not empty, as `wire.to_fields` has them, or the line that it
is refused at.
"""

from typing import Any, NamedTuple


class Case(NamedTuple):
    name: str
    text: str
    fields: dict[str, Any] | int


def ran(outcome: str, count: int | None = None) -> dict[str, Any]:
    return {"outcome": outcome, "count": count}


CORPUS = (
    Case(
        "as the format has it",
        "STATUS:ok\nFILES_CREATED:src/jwt.go,src/jwt_test.go\nFILES_MODIFIED:go.mod\n"
        "TESTS:pass:12\nBUILD:pass\nLEARNED:JWT tokens need 24h expiry\n",
        {
            "status": "ok",
            "files_created": ["src/jwt.go", "src/jwt_test.go"],
            "files_modified": ["go.mod"],
            "tests": ran("pass", 12),
            "build": "pass",
            "learned": "JWT tokens need 24h expiry",
        },
    ),
    Case(
        "a continuation line before what fails",
        "STATUS:ok\nLEARNED:one\ntwo\nTESTS:fail:3\nBUILD:fail",
        {"status": "ok", "learned": "one two", "tests": ran("fail", 3), "build": "fail"},
    ),
    Case(
        "an unknown field in lower case before what fails",
        "STATUS:ok\nnotes: see the log\nTESTS:fail:3\nBUILD:fail",
        {"status": "ok", "tests": ran("fail", 3), "build": "fail"},
    ),
    Case(
        "bold fields with lists, blank lines between (Claude Code)",
        """\
I've implemented the middleware and everything works. Here's the summary:

**STATUS:** ok

**FILES_CREATED:**
- `src/middleware/jwt.go` - validates Bearer tokens
- `src/middleware/jwt_test.go` - 12 tests, all green

**FILES_MODIFIED:** `go.mod`, `go.sum`

**TESTS:** pass (12 passed)
**BUILD:** ✅ pass

**LEARNED:**
- Tokens need 24h expiry for mobile clients
- The router runs middleware bottom-up

Let me know if you'd like me to add refresh tokens as well!
""",
        {
            "status": "ok",
            "files_created": ["src/middleware/jwt.go", "src/middleware/jwt_test.go"],
            "files_modified": ["go.mod", "go.sum"],
            "tests": ran("pass", 12),
            "build": "pass",
            "learned": "Tokens need 24h expiry for mobile clients; "
            "The router runs middleware bottom-up",
        },
    ),
    Case(
        "a fenced block, then prose (Codex)",
        """\
codex
Implemented the retry policy in the client and added coverage.

```text
STATUS: ok
FILES_MODIFIED: client/retry.py, tests/test_retry.py
TESTS: pass:34
BUILD: skip
LEARNED: httpx retries connects only; wrap send() instead.
  Backoff must be capped, or the suite takes minutes.
```

tokens used: 48,112
""",
        {
            "status": "ok",
            "files_modified": ["client/retry.py", "tests/test_retry.py"],
            "tests": ran("pass", 34),
            "build": "skip",
            "learned": "httpx retries connects only; wrap send() instead. "
            "Backoff must be capped, or the suite takes minutes.",
        },
    ),
    Case(
        "a list of fields, title case (Gemini)",
        """\
Okay, I have finished the task. Here is my report:

*   **Status:** Partial
*   **Files Created:**
    *   `web/src/login.tsx`
    *   `web/src/login.test.tsx`
*   **Files Modified:** None
*   **Tests:** Failed (2 of 9)
*   **Build:** Passed
*   **Error:** the session cookie is not sent cross-site
""",
        {
            "status": "partial",
            "files_created": ["web/src/login.tsx", "web/src/login.test.tsx"],
            "tests": ran("fail"),
            "build": "pass",
            "error": "the session cookie is not sent cross-site",
        },
    ),
    Case(
        "headings, a trace over many lines, CRLF (opencode)",
        "## Report\r\n\r\nSTATUS: fail\r\nERROR: the migration can't run\r\n"
        '  Traceback (most recent call last):\r\n    File "migrate.py", line 3\r\n'
        "  OperationalError: no such table\r\nTESTS: fail:7\r\nBUILD: pass\r\n",
        {
            "status": "fail",
            "error": "the migration can't run Traceback (most recent call last): "
            'File "migrate.py", line 3 OperationalError: no such table',
            "tests": ran("fail", 7),
            "build": "pass",
        },
    ),
    Case(
        "the format quoted before the report",
        """\
You asked me to end with a block such as:

> STATUS:ok
> FILES_CREATED:a.go
> TESTS:pass:12

Nothing had to be done.

STATUS: no_changes
TESTS: n/a
BUILD: "pass"
""",
        {"status": "no_changes", "tests": ran("skip"), "build": "pass"},
    ),
    Case(
        "partial at first, and then done",
        "STATUS:partial\nTESTS:fail:2\n\nOn it.\n\nSTATUS:ok\nTESTS:pass:9\nBUILD:pass\n",
        {"status": "ok", "tests": ran("pass", 9), "build": "pass"},
    ),
    Case(
        "done at last, but silent on what failed",
        "STATUS:partial\nTESTS:fail:2\n\nOn it.\n\nStatus: ok\n",
        2,
    ),
    Case(
        "a table",
        """\
| Field | Value |
|-------|-------|
| STATUS | ok |
| **TESTS** | fail:1 |
| BUILD | pass |
""",
        {"status": "ok", "tests": ran("fail", 1), "build": "pass"},
    ),
    Case(
        "JSON after all",
        '```json\n{\n  "status": "ok",\n  "files_created": ["a.py", "b.py"],\n'
        '  "tests": "pass:3",\n  "build": "pass"\n}\n```\n',
        {
            "status": "ok",
            "files_created": ["a.py", "b.py"],
            "tests": ran("pass", 3),
            "build": "pass",
        },
    ),
    Case("JSON on one line", '{"status": "ok", "tests": "pass", "build": "fail"}\n', 1),
    Case(
        "blockers, a rule, and the outcome behind it",
        """\
STATUS: ok

BLOCKERS:
- none that I know of
- API: waits for the other team

---

Verification
============

- Build: fail
- Tests: skipped (no runner here)
""",
        {
            "status": "ok",
            "blockers": "none that I know of; API: waits for the other team",
            "build": "fail",
            "tests": ran("skip"),
        },
    ),
    Case(
        "other colons, and a letter from another row",
        "STATUS：ok\nTESTS∶ pass\nＢＵＩＬＤ：fail\n",
        {"status": "ok", "tests": ran("pass"), "build": "fail"},
    ),
    Case(
        "a question over two lines",
        "STATUS: needs decision\nQUESTION: JWT or cookies?\nCookies need CSRF.\nBUILD:pass\n",
        {
            "status": "needs_decision",
            "question": "JWT or cookies? Cookies need CSRF.",
            "build": "pass",
        },
    ),
    Case(
        "a value on the next line",
        "**STATUS:**\nok\n**TESTS:**\n\nfail\n",
        {
            "status": "ok",
            "tests": ran("fail"),
        },
    ),
    Case(
        "a status in what is quoted behind the report",
        "STATUS:fail\nERROR: the health page is wrong\nIt should say\n\n    status: ok\n",
        1,
    ),
    Case(
        "what `cacp wire parse --json` prints, as a report",
        '{\n  "status": "partial",\n  "files_created": [\n    "a.py",\n    "b.py"\n  ],\n'
        '  "build": "fail"\n}\n',
        {"status": "partial", "files_created": ["a.py", "b.py"], "build": "fail"},
    ),
    Case(
        "a log with times before the lines",
        "[12:00:01] STATUS: ok\n[12:00:01] TESTS: 1 skipped, 11 passed\n",
        2,
    ),
    Case("two suites that differ", "STATUS:ok\nTESTS (unit): pass\nTESTS (e2e): fail\n", 3),
    Case("a but", "STATUS: ok, but the login is still broken\nTESTS: pass\n", 1),
    Case("not all", "STATUS: ok\nTESTS: 11/12 passed\n", 2),
    Case("the template", "STATUS: ok|fail|partial\nTESTS: pass\n", 1),
    Case("two fields on a line", "STATUS: ok, TESTS: fail\n", 1),
    Case("prose where an outcome should be", "STATUS: ok\n\nTests: I could not run them.\n", 3),
    Case(
        "failing fields, a summary, then ok",
        "TESTS:fail:3\nBUILD:fail\n\nThat is my summary.\n\nSTATUS:ok",
        2,
    ),
    Case(
        "a line of prose parts the failing tests from the status",
        "TESTS: fail (3 of 40)\nThis was known before.\nSTATUS:ok\nBUILD:pass",
        1,
    ),
    Case("a heading parts them", "TESTS: fail\n## Summary\nSTATUS:ok", 1),
    Case("a list parts them", "TESTS: fail\n\n- that is all\n\nSTATUS:ok", 1),
    Case("a fence parts them", "```\nTESTS: fail\n```\nSTATUS:ok", 2),
    Case("an error that is of no report", "ERROR: disk full\nI gave up.\nSTATUS: ok", 1),
    Case("counts below the tests", "STATUS: ok\nTESTS:\n  passed: 12\n  failed: 3\nBUILD: pass", 4),
    Case("a failure in the list below the tests", "STATUS: ok\nTESTS: pass\n- 3 failed: a, b", 3),
    Case("one of two builds", "STATUS: ok\nBUILD: pass\n  - backend: ok\n  - frontend: fail", 4),
    Case(
        "what takes the outcome back on the next line",
        "STATUS: ok\nTESTS: pass\n  only on Linux",
        3,
    ),
    Case("headings with the outcome below", "STATUS: ok\n## TESTS\nfail\n## BUILD\nfail", 3),
    Case(
        "the output of the tests in a fence",
        "STATUS: ok\nTESTS: pass\n```\n3 failed, 9 passed\n```",
        4,
    ),
    Case("prose behind the report", "STATUS:ok\nTESTS:pass\n\nNote that 3 tests still fail.", 4),
    Case(
        "prose before the report, which is silent on it",
        "The build fails.\n\nSTATUS:ok\nTESTS:pass",
        1,
    ),
    Case("what still fails, before the report", "3 tests still fail.\n\nSTATUS:ok\nTESTS:pass", 1),
    Case(
        "an example of the format behind a failed report",
        "STATUS:fail\n\nThe format:\n```\nSTATUS:ok\nTESTS:pass:12\nBUILD:pass\n```",
        1,
    ),
    Case(
        "an example behind failing tests",
        "STATUS:ok\nTESTS:fail:3\n\nThe format:\n```\nSTATUS:ok\nTESTS:pass:12\nBUILD:pass\n```",
        2,
    ),
    Case("a quoted example behind a failed report", "STATUS:fail\n\n> STATUS:ok\n> TESTS:pass", 1),
    *(
        Case(f"a failure that no field has: {line}", f"STATUS: ok\n{line}", 2)
        for line in (
            *("**TESTS** fail", "TESTS - fail", "TESTS = fail", "TESTS → fail", "[TESTS] fail"),
            *("TESTS\tfail", "iv. BUILD: fail", "Test: fail", "TEST RESULTS: fail 3"),
            *("TESTS_FAILED: 3", "SUMMARY: 3 failed", "FOO: bar TESTS:fail", "INFO: TESTS:fail"),
            *("LEARNED: it works; TESTS: fail; BUILD: fail", "Build is broken.", "Tests ❌"),
            *("LEARNED: a\n## TESTS\nfail", "> Test results: 2 of 9 failed", "FAILED_TESTS: a"),
            *("LEARNED: a\n## Tests (unit)\nfail", "LEARNED: a\n## Build (CI)\nbroken"),
        )
    ),
    *(
        Case(
            f"no failure: {line}",
            f"STATUS: ok\nTESTS: pass\nBUILD: pass\n\n{line}",
            {"status": "ok", "tests": ran("pass"), "build": "pass"},
        )
        for line in (
            *("12 passed, 0 failed", "No tests failed.", "I fixed the 3 failing tests."),
            *("Let me know if the tests fail on your machine.", "The build was broken at first."),
            *("Added tests for the error paths: failing logins are rejected.", "Failed: 0"),
            *("The failing tests pass now.", "None of the tests fail.", "TESTS are fine"),
        )
    ),
    Case(
        "knowledge of failures",
        "STATUS:ok\nTESTS:pass\nBUILD:pass\nLEARNED: fixed the failing test by seeding the clock; "
        "the build fails without CGO",
        {
            "status": "ok",
            "tests": ran("pass"),
            "build": "pass",
            "learned": "fixed the failing test by seeding the clock; the build fails without CGO",
        },
    ),
    Case(
        "the way there, and then the report",
        "I ran the tests: 3 failed. The build is broken, too.\n\nFixed both.\n\n"
        "STATUS:ok\nTESTS:pass:12\nBUILD:pass",
        {"status": "ok", "tests": ran("pass", 12), "build": "pass"},
    ),
    Case(
        "parts of the tests that passed",
        "STATUS:ok\nTESTS:pass\n- unit: 12\n- e2e: 3",
        {"status": "ok", "tests": ran("pass")},
    ),
    *(
        Case(
            f"paths as {value}",
            f"STATUS:ok\nFILES_CREATED: {value}",
            {"status": "ok", "files_created": ["a.py", "b.py"]},
        )
        for value in ("a.py b.py", "a.py; b.py", "a.py and b.py", "a.py (new, small), b.py: tests")
    ),
    Case("how many files", "STATUS:ok\nFILES_CREATED: 2 files", 2),
    Case("no files", "STATUS:ok\nFILES_CREATED: no files", {"status": "ok"}),
    Case("a tick", "STATUS:ok\nBUILD: ✅", {"status": "ok", "build": "pass"}),
)
