"""docs/contracts.md is found by playing every step; it shows design §5's state machine."""

import re

from cli.contract_page import STEPS, page
from server.domain.contract import ALLOWED

TEXT = "\n".join(page())


def test_the_diagram_is_the_designs_state_machine() -> None:
    moves = set(re.findall(r"^    (\w+) --> (\w+): (.+)$", TEXT, re.MULTILINE))
    assert moves == {
        ("proposed", "negotiating", "request_change"),
        ("negotiating", "proposed", "update"),
        ("negotiating", "proposed", "reject"),
        ("proposed", "agreed", "agree"),
        ("negotiating", "agreed", "agree"),
        ("agreed", "implemented", "complete"),
        ("implemented", "verified", "verify success"),
        ("implemented", "agreed", "verify failure"),
        ("verified", "agreed", "verify failure"),
        ("agreed", "negotiating", "request_change"),
        ("implemented", "negotiating", "request_change"),
        ("verified", "negotiating", "request_change"),
    }


def test_every_legal_step_has_its_row() -> None:
    rows = re.findall(r"^\| (\w+) \| .+ \| (\w+) \|$", TEXT, re.MULTILINE)
    legal = [status for step in STEPS for status in ALLOWED[step.split()[0]]]  # type: ignore[index]
    assert sorted(status for status, _ in rows) == sorted(legal)
