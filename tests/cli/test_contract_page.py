"""docs/contracts.md is found by playing every step; it shows design §5's state machine."""

import re

from cli.contract_page import STEPS, page
from server.domain.contract_steps import ALLOWED

TEXT = "\n".join(page())


def test_the_diagram_is_the_designs_state_machine() -> None:
    moves = set(re.findall(r"^    (\w+) --> (\w+): (.+)$", TEXT, re.MULTILINE))
    assert moves == {
        ("proposed", "negotiating", "request_change"),
        ("negotiating", "proposed", "update"),
        ("negotiating", "proposed", "reject by who asked"),
        ("proposed", "agreed", "agree"),
        ("negotiating", "agreed", "agree by who asked"),
        ("agreed", "implemented", "complete"),
        ("implemented", "verified", "verify success"),
        ("implemented", "agreed", "verify failure"),
        ("verified", "agreed", "verify failure"),
        ("agreed", "negotiating", "request_change"),
        ("implemented", "negotiating", "request_change"),
        ("verified", "negotiating", "request_change"),
    }


def test_every_legal_step_has_its_row() -> None:
    rows = re.findall(r"^\| (\w+) \| (.+) \| \w+ \|$", TEXT, re.MULTILINE)
    legal = {
        (status, step.split()[0])
        for step in STEPS
        for status in ALLOWED[step.split()[0]]  # type: ignore[index]
    }
    assert len(set(rows)) == len(rows)
    assert {
        (status, next(one for one in ALLOWED if re.search(rf"\b{one}\b", said)))
        for status, said in rows
    } == legal


def test_a_request_for_a_change_stands_until_who_made_it_says_otherwise() -> None:
    """Design §7: an outstanding request_change → negotiating, whatever others say."""
    rows = re.findall(r"^\| negotiating \| contract/respond (\w+), (.+) \| (\w+) \|$", TEXT, re.M)
    after = {(action, who): then for action, who, then in rows}
    asked, another = "by the party that asked for the change", "by another party"
    assert (after["agree", asked], after["agree", another]) == ("agreed", "negotiating")
    assert after["reject", asked] == "proposed"
    assert after["reject", f"{another}, also the author"] == "negotiating"
