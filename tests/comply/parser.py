"""A wire parser that breaks the rule it is told to: `parser.py [MUTATION]` reads standard input."""

import json
import re
import sys

BROKEN = sys.argv[1] if len(sys.argv) > 1 else ""
STATUSES = [
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
SPACE = {"space": "\t*", "tab": " *", "compact": r"\s+", "vector": " ?"}.get(BROKEN, r"\s*")


def main() -> int:
    found: dict[str, str] = {}
    flags = 0 if BROKEN == "case" else re.IGNORECASE
    for line in sys.stdin.read().splitlines():
        match = re.fullmatch(rf"(STATUS|TESTS|BUILD):{SPACE}(\S+)", line, flags)
        if match is None or match[2] == BROKEN or f"{match[1]}:{match[2]}" == BROKEN:
            return 1
        found[match[1].lower()] = match[2]
    if found.get("status") not in STATUSES and BROKEN != "unknown":
        return 1
    if BROKEN == "count":
        found["tests"] = "pass"
    print(json.dumps(found))
    return 0


sys.exit(main())
