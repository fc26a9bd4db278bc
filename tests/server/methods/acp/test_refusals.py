"""What acp/* does with what it refuses (acp-canonical §12.2, §12.4, §12.6)."""

import pytest

from server.domain.errors import (
    Forbidden,
    InvalidInput,
    NotFound,
    RateLimited,
    Refusal,
    Unavailable,
)
from server.methods.acp.refusals import LOOKING, SENDING
from tests.server.methods.acp.office import SECOND, START, Office

WRONG = InvalidInput("payload.summary required", reason="schema_invalid")
LOOP = Forbidden("Reply chain limit reached: 64 consecutive replies", reason="hop_limit")


def test_a_disk_that_fails_is_told_calmly() -> None:
    """§12.6: a clear degraded-mode error that keeps the caller going."""
    down = Unavailable("The database cannot be written: the disk is full", reason="storage_full")
    told = SENDING.explain(down)
    assert told.data == {"reason": "storage_full", "degraded": True}
    assert "degraded" in told.message
    assert not SENDING.notes(down)
    assert SENDING.explain(WRONG) is WRONG


def test_looking_leaves_no_trace() -> None:
    assert SENDING.notes(WRONG)
    assert not LOOKING.notes(WRONG)


def outcomes(office: Office) -> list[str]:
    return [row[0] for row in office.rows("SELECT outcome FROM acp_audit ORDER BY seq")]


def abuse(office: Office, times: int = 1) -> None:
    for _ in range(times):
        SENDING.note(office.context(), LOOP)


def paused(office: Office) -> int:
    """Seconds for which Anna's messages are refused now."""
    rows = office.rows("SELECT open_until FROM breakers")
    return round((rows[0][0] - START) / SECOND - office.at) if rows else 0


def test_abuse_is_audited_until_the_breaker_opens(office: Office) -> None:
    abuse(office, 40)
    assert outcomes(office) == ["refused"] * 20 + ["circuit_opened"]
    office.reopen()
    assert office.rows("SELECT name, trips, reason FROM breakers") == [
        ("sender:aid://example.com/anna", 1, "hop_limit")
    ]


def test_after_its_time_one_good_message_closes_it(office: Office) -> None:
    abuse(office, 20)
    office.at = 61
    office.post()
    assert office.rows("SELECT * FROM breakers") == []


def test_the_refusal_says_why_and_when_to_try_again(office: Office) -> None:
    abuse(office, 20)
    office.at = 10
    with pytest.raises(
        RateLimited, match=r"most recently with hop_limit\. .* retry after 50 s"
    ) as caught:
        office.post()
    assert caught.value.data == {"reason": "circuit_open", "retryAfter": 50, "cause": "hop_limit"}


@pytest.mark.parametrize("mistake", [WRONG, RateLimited("10 a minute"), NotFound("no such agent")])
def test_mistakes_open_nothing_and_dont_fill_the_disk(office: Office, mistake: Refusal) -> None:
    for _ in range(40):
        SENDING.note(office.context(), mistake)
    assert outcomes(office) == ["refused"] * 20
    assert office.rows("SELECT * FROM breakers") == []
    abuse(office)
    assert len(outcomes(office)) == 21
    office.at = 61
    SENDING.note(office.context(), mistake)
    assert len(outcomes(office)) == 22
    office.post()


def test_a_mistake_after_a_pause_doesnt_begin_another(office: Office) -> None:
    abuse(office, 20)
    office.at = 61
    SENDING.note(office.context(), WRONG)
    assert paused(office) < 0
    office.post()
    assert office.rows("SELECT * FROM breakers") == []


def test_the_breaker_forgets(office: Office) -> None:
    """After a pause, each refusal however late doubled the next, up to an hour."""
    abuse(office, 20)
    for pause in (60, 120, 240):
        assert paused(office) == pause
        office.at += pause + 1
        abuse(office)
    assert paused(office) == 480
    office.at += 480 + 2 * 600
    abuse(office)
    assert paused(office) == 240
    office.at += 240 + 3 * 600
    office.reopen()
    abuse(office)
    assert paused(office) < 0
    office.post()
