"""What acp/* does with what it refuses (acp-canonical §12.2, §12.4, §12.6)."""

from server.domain.errors import InvalidInput, Unavailable
from server.methods.acp.guard import LOOKING, SENDING
from tests.server.methods.acp.office import Office

WRONG = InvalidInput("payload.summary required", reason="schema_invalid")


def test_a_disk_that_fails_is_told_calmly() -> None:
    """§12.6: a clear degraded-mode error that keeps the caller going."""
    down = Unavailable("The database can't be used", reason="storage_full")
    told = SENDING.explain(down)
    assert told.data == {"reason": "storage_full", "degraded": True}
    assert "degraded" in told.message
    assert not SENDING.notes(down)
    assert SENDING.explain(WRONG) is WRONG


def test_looking_leaves_no_trace() -> None:
    assert SENDING.notes(WRONG)
    assert not LOOKING.notes(WRONG)


def test_what_is_refused_is_audited_until_the_breaker_opens(office: Office) -> None:
    for _ in range(40):
        SENDING.note(office.context(), WRONG)
    outcomes = [row[0] for row in office.rows("SELECT outcome FROM acp_audit ORDER BY seq")]
    assert outcomes == ["refused"] * 20 + ["circuit_opened"]
    office.reopen()
    assert office.rows("SELECT name, trips FROM breakers") == [("sender:aid://example.com/anna", 1)]


def test_after_its_time_one_good_message_closes_it(office: Office) -> None:
    for _ in range(20):
        SENDING.note(office.context(), WRONG)
    office.at = 61
    office.post()
    assert office.rows("SELECT * FROM breakers") == []
