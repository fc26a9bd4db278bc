"""The checker: it passes what can have happened, and only that."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.replicas.history import Model, Operation, Undecided, check, check_object
from tests.replicas.models import MODELS, ContractModel, MailboxModel, Refused, TaskModel

CONTRACT, TASK, MAILBOX = ContractModel(), TaskModel(), MailboxModel()
REPOS = ("api", "app", "web")
Calls = list[tuple[str, tuple[Any, ...]]]

# --- histories that happened ----------------------------------------------------------------------


@st.composite
def contract_calls(draw: st.DrawFn) -> Calls:
    """Calls of one contract, the proposal first; each content is written once."""
    calls: Calls = [("propose", ("c0", draw(st.sampled_from(REPOS))))]
    for number in range(draw(st.integers(1, 9))):
        name = draw(st.sampled_from(("update", "respond", "get")))
        what = f"c{number + 1}"
        if name == "respond":
            what = draw(st.sampled_from(("agree", "request_change", "reject")))
        version = draw(st.integers(1, 4))
        repo = draw(st.sampled_from(REPOS))
        calls.append((name, () if name == "get" else (what, repo, version)))
    return calls


@st.composite
def task_calls(draw: st.DrawFn) -> Calls:
    names = st.sampled_from(("initiate", "accept", "reject", "activate", "get"))
    return draw(
        st.lists(
            st.tuples(names, st.tuples(st.sampled_from(("h1", "h2")))), min_size=1, max_size=10
        )
    )


@st.composite
def mailbox_calls(draw: st.DrawFn) -> Calls:
    calls: Calls = []
    for _ in range(draw(st.integers(1, 10))):
        name = draw(st.sampled_from(("send", "ack", "list")))
        message = draw(st.sampled_from(("m1", "m2", "m3", "m4")))
        calls.append((name, () if name == "list" else (message,)))
    return calls


KINDS: st.SearchStrategy[tuple[str, Calls]] = st.one_of(
    st.tuples(st.just("contract"), contract_calls()),
    st.tuples(st.just("task"), task_calls()),
    st.tuples(st.just("mailbox"), mailbox_calls()),
)


def performed(kind: str, calls: Calls) -> list[Operation]:
    """The calls one after the other: the n-th takes place at 10·n."""
    model = MODELS[kind]
    state, done = model.initial, []
    for place, (name, args) in enumerate(calls, 1):
        operation = Operation("c", f"{kind}:1", name, args, 10 * place - 1)
        state, told = model.apply(state, operation)
        done.append(replace(operation, returned=10 * place + 1, result=told))
    return done


@st.composite
def concurrent(draw: st.DrawFn) -> tuple[Model[Any], list[Operation]]:
    """A history that has happened: each call took place at some time between its call and its
    answer, and the answers of some were lost, of calls that took place or did not."""
    kind, calls = draw(KINDS)
    history = []
    for operation in performed(kind, calls):
        earlier, later = draw(st.integers(0, 45)), draw(st.integers(0, 45))
        assert operation.returned is not None
        happened = replace(
            operation, invoked=operation.invoked - earlier, returned=operation.returned + later
        )
        if draw(st.integers(0, 5)) == 0:
            happened = replace(happened, returned=None, result=None)
        history.append(happened)
    for number in range(draw(st.integers(0, 2))):
        lost = Operation("x", f"{kind}:1", *_harmless(kind, number), draw(st.integers(0, 100)))
        history.append(lost)
    return MODELS[kind], draw(st.permutations(history))


def _harmless(kind: str, number: int) -> tuple[str, tuple[Any, ...]]:
    """A call that never came to the server."""
    return {
        "contract": ("update", (f"lost{number}", "api", 1)),
        "task": ("initiate", (f"lost{number}",)),
        "mailbox": ("send", (f"lost{number}",)),
    }[kind]


@given(concurrent())
def test_what_happened_passes(case: tuple[Model[Any], list[Operation]]) -> None:
    model, history = case
    assert check_object(history, model) is None


# --- histories that did not happen ----------------------------------------------------------------


@given(KINDS, st.data())
def test_one_after_the_other_any_other_answer_is_refuted(
    case: tuple[str, Calls], data: st.DataObject
) -> None:
    """Without concurrency there is one order, so the model's answers are the only ones."""
    kind, calls = case
    history = performed(kind, calls)
    place = data.draw(st.integers(0, len(history) - 1))
    history[place] = replace(history[place], result=("something", "else"))
    violation = check_object(history, MODELS[kind])
    assert violation is not None
    assert violation.refuted == history[place]


@given(concurrent(), st.data())
def test_it_judges_as_a_trial_of_all_orders_does(
    case: tuple[Model[Any], list[Operation]], data: st.DataObject
) -> None:
    """Results exchanged at random make histories of both kinds."""
    model, history = case
    history = history[:6]
    answered = [each for each in history if each.returned is not None]
    if len(answered) > 1:
        first, second = data.draw(st.permutations(answered))[:2]
        swapped = {id(first): second.result, id(second): first.result}
        history = [
            replace(each, result=swapped[id(each)]) if id(each) in swapped else each
            for each in history
        ]
    assert (check_object(history, model) is None) == _has_order(history, model)


def _has_order(history: Sequence[Operation], model: Model[Any]) -> bool:
    lost = [each for each in history if each.returned is None]
    for kept in range(1 << len(lost)):
        absent = {id(each) for place, each in enumerate(lost) if not kept >> place & 1}
        present = [each for each in history if id(each) not in absent]
        if any(_explains(order, model) for order in permutations(present)):
            return True
    return False


def _explains(order: Sequence[Operation], model: Model[Any]) -> bool:
    state, latest = model.initial, 0
    for operation in order:
        latest = max(latest, operation.invoked)
        if operation.returned is not None and operation.returned < latest:
            return False
        state, told = model.apply(state, operation)
        if operation.returned is not None and told != operation.result:
            return False
    return True


def call(
    name: str, *args: Any, at: tuple[int, int | None], result: Any = None, about: str = "contract:1"
) -> Operation:
    return Operation("c", about, name, args, at[0], at[1], result)


PROPOSED = call("propose", "c0", "api", at=(1, 2), result=(1, "proposed"))


def test_two_updates_of_one_version_can_not_both_have_been_accepted() -> None:
    """However concurrent they were: a missing lock."""
    history = [
        PROPOSED,
        call("update", "c1", "api", 1, at=(3, 9), result=(2, "proposed")),
        call("update", "c2", "app", 1, at=(3, 9), result=(2, "proposed")),
    ]
    assert check_object(history[:2], CONTRACT) is None
    assert check_object([history[0], history[2]], CONTRACT) is None
    violation = check_object(history, CONTRACT)
    assert violation is not None
    assert violation.refuted in history[1:]


def test_an_accepted_update_that_no_later_read_shows_is_lost() -> None:
    update = call("update", "c1", "api", 1, at=(3, 4), result=(2, "proposed"))
    read = call("get", at=(5, 6), result=(1, "c0", "proposed"))
    violation = check_object([PROPOSED, update, read], CONTRACT)
    assert violation is not None
    assert violation.refuted == read
    assert "(2, 'c1', 'proposed')" in str(violation)
    unanswered = replace(update, returned=None, result=None)
    assert check_object([PROPOSED, unanswered, read], CONTRACT) is None


def test_what_was_read_once_stays() -> None:
    """A call without an answer may have happened late, but not unhappened."""
    update = call("update", "c1", "api", 1, at=(3, None))
    new = call("get", at=(10, 11), result=(2, "c1", "proposed"))
    old = call("get", at=(12, 13), result=(1, "c0", "proposed"))
    assert check_object([PROPOSED, update, new], CONTRACT) is None
    assert check_object([PROPOSED, update, replace(old, invoked=9), new], CONTRACT) is None
    assert check_object([PROPOSED, update, new, old], CONTRACT) is not None


def test_a_refused_update_has_written_nothing() -> None:
    """It stands in no history, so nothing explains its content."""
    read = call("get", at=(5, 6), result=(2, "refused", "proposed"))
    assert check_object([PROPOSED, read], CONTRACT) is not None


def test_an_offer_is_accepted_or_withdrawn_and_not_both() -> None:
    offer = call("initiate", "h1", at=(1, 2), result=("proposed",), about="task:1")
    accept = call("accept", "h1", at=(3, 9), result=("accepted",), about="task:1")
    reject = call("reject", "h1", at=(3, 9), result=("rejected",), about="task:1")
    assert check_object([offer, accept, reject], TASK) is not None
    late = replace(reject, result=Refused("illegal_transition"))
    assert check_object([offer, accept, late], TASK) is None


def test_a_message_comes_once() -> None:
    send = call("send", "m", at=(1, 2), result=("sent",), about="mailbox:a")
    again = replace(send, invoked=1, returned=9)
    once = call("list", at=(10, 11), result=("m",), about="mailbox:a")
    twice = replace(once, result=("m", "m"))
    assert check_object([send, again, once], MAILBOX) is None
    assert check_object([send, again, twice], MAILBOX) is not None
    assert check_object([send, replace(once, result=())], MAILBOX) is not None


def test_objects_are_judged_alone() -> None:
    other = replace(PROPOSED, object="contract:2", result=(7, "proposed"))
    [violation] = check([PROPOSED, other], MODELS)
    assert violation.object == "contract:2"


def test_the_window_leaves_out_what_has_nothing_to_do_with_it() -> None:
    reads = [
        call("get", at=(10 * turn, 10 * turn + 5), result=(1, "c0", "proposed"))
        for turn in range(1, 60)
    ]
    wrong = replace(reads[40], result=(1, "never", "proposed"))
    reads[40] = wrong
    violation = check_object([PROPOSED, *reads], CONTRACT)
    assert violation is not None
    assert violation.refuted == wrong
    assert wrong in violation.window
    assert len(violation.window) < 8


def test_a_search_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.replicas.history.POSITIONS_MAX", 1_000)
    sends = [call("send", f"m{n}", at=(1, None), about="mailbox:a") for n in range(30)]
    never = call("list", at=(2, 3), result=("none of them",), about="mailbox:a")
    with pytest.raises(Undecided):
        check_object([*sends, never], MAILBOX)
