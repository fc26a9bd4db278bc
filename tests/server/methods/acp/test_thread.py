"""Which thread a message is of (acp-canonical §4, §12.5)."""

from dataclasses import replace

import pytest

from server.domain.acp.threads import Bounds, Thread
from server.domain.errors import Conflict, Forbidden
from server.methods.acp import thread
from server.methods.acp.thread import JoinedThread
from server.store import messages
from tests.server.methods.acp.office import ANNA, BERT, CARL, Office

ANNAS, BERTS, CARLS = (one.removesuffix("@1.0.0") for one in (ANNA, BERT, CARL))


def test_a_message_begins_a_thread_or_joins_one(office: Office) -> None:
    sent = office.post(ANNA, to=[BERT])
    ctx = office.context(BERT)
    found = messages.find(office.db, sent)
    assert found is not None
    begun = JoinedThread(sent, sent, Thread())
    assert thread.of(ctx, found) == begun
    assert thread.joined(ctx, sent, "new", BERTS, [ANNAS]) == begun
    assert thread.joined(ctx, "new", "new", BERTS, [ANNAS]) == JoinedThread("new", "new", Thread())
    stranger = thread.joined(ctx, sent, "new", CARLS, [ANNAS])
    assert stranger == JoinedThread("new", sent, Thread(), closed=True)
    named = thread.joined(ctx, "a name", "new", CARLS, [ANNAS])
    assert named == JoinedThread("new", "a name", Thread(), closed=False)


def test_a_name_is_nobodys(office: Office) -> None:
    """Who uses it first, or writes to others in it, has no more of it than who uses it after."""
    office.without_limits()
    office.rules = replace(office.rules, bounds=Bounds(hops=4, rounds=3))
    for number in (1, 2):
        office.post(CARL, to=[CARL], thread_id="deploy-42", sequence=number)
    for _ in range(3):
        office.post(CARL, to=[ANNA, BERT], thread_id="deploy-42")
    office.post(ANNA, to=[BERT], thread_id="deploy-42", sequence=1)
    office.post(BERT, to=[ANNA], thread_id="deploy-42", sequence=2)
    with pytest.raises(Forbidden):
        office.post(CARL, to=[ANNA], thread_id="deploy-42")
    office.post(ANNA, to=[BERT], thread_id="deploy-42", sequence=3)


def test_a_name_holds_those_together_who_speak_in_it(office: Office) -> None:
    office.post(ANNA, to=[BERT, CARL], thread_id="deal", sequence=1)
    office.post(CARL, to=[BERT], thread_id="deal", sequence=2)
    with pytest.raises(Conflict):
        office.post(BERT, to=[ANNA], thread_id="deal", sequence=2)
    office.post(BERT, to=[ANNA], thread_id="deal", sequence=3)
    assert office.rows("SELECT name, sequence FROM threads") == [("deal", 3)]
