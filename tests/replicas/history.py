"""Whether what clients were told can have happened one call after the other (linearizability).

A history has the calls of all clients: when each was made, when it was answered and what it was
told. It is linearizable when the calls can be put into an order in which each stands between its
call and its answer, and in which a plain sequential model tells each what it was told (Herlihy and
Wing, 1990). A call whose answer was lost may have happened at any later time, or never.

The search is the one of Wing and Gong with the memory of Lowe: a set of calls that were put in
order and the model's state behind them are looked at once. Objects are independent of each other,
so each is searched alone.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

State = TypeVar("State", bound=Hashable)

POSITIONS_MAX = 2_000_000
"""How many positions the search of one object may look at."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of a client, with all of its attempts."""

    client: str
    object: str
    """What it was about: a contract, a task, a mailbox."""
    name: str
    args: tuple[Hashable, ...]
    invoked: int
    """When its first attempt was sent, in ns of a clock that all clients share."""
    returned: int | None = None
    """When its answer came; None when whether it happened is not known."""
    result: Any = None
    replica: str = ""
    """Which replica answered, or was asked last."""

    def __str__(self) -> str:
        until = "?" if self.returned is None else f"{self.returned / 1e6:.1f}"
        args = ", ".join(map(str, self.args))
        told = "no answer" if self.returned is None else self.result
        return (
            f"[{self.invoked / 1e6:10.1f} … {until:>10}] {self.client:12} {self.replica:8} "
            f"{self.object} {self.name}({args}) → {told}"
        )


class Model(Protocol[State]):
    """What one object does when only one call at a time comes to it."""

    @property
    def initial(self) -> State: ...

    def apply(self, state: State, operation: Operation) -> tuple[State, Any]:
        """The state after a call, and what the call must be told. Does not read its result."""


@dataclass(frozen=True, slots=True)
class Violation:
    """What no order explains, with the shortest window of the history that shows it."""

    object: str
    refuted: Operation
    """The calls that were answered up to this answer can't be put in order; without it they can."""
    window: tuple[Operation, ...]
    """It, the calls that were under way with it, and the last ones before it in an order that came
    as far as here."""
    states: tuple[str, ...]
    """The states that the object may have been in, and what it would have told the call then."""

    def __str__(self) -> str:
        lines = [f"{self.object}: no order of the calls explains this answer:", f"  {self.refuted}"]
        lines += ["window:", *(f"  {operation}" for operation in self.window)]
        return "\n".join([*lines, "states before it:", *(f"  {state}" for state in self.states)])


class Undecided(Exception):
    """The search has taken too long: too many calls at the same time have no answer."""


def check(operations: Iterable[Operation], models: dict[str, Model[Any]]) -> list[Violation]:
    """The violations in a history, one for each object at most; `models` by the first word of an
    object's name, up to a colon. Raises Undecided, and KeyError for an object without a model."""
    objects: dict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        objects[operation.object].append(operation)
    found = [
        check_object(objects[name], models[name.partition(":")[0]]) for name in sorted(objects)
    ]
    return [violation for violation in found if violation is not None]


def check_object(operations: Sequence[Operation], model: Model[Any]) -> Violation | None:
    """What in the calls of one object no order explains."""
    return _Search(operations, model).run()


class _Entry:
    """A call or an answer in the time of all clients, in a list from which what is put in order is
    taken out and put back."""

    __slots__ = ("answer", "before", "is_call", "next", "number", "operation")

    def __init__(self, number: int, operation: Operation, *, is_call: bool) -> None:
        self.number = number
        self.operation = operation
        self.is_call = is_call
        self.answer: _Entry | None = None
        """The answer of a call; None for an answer, and for a call that has none."""
        self.before: _Entry = self
        self.next: _Entry | None = None

    def append(self, entry: "_Entry") -> "_Entry":
        self.next, entry.before = entry, self
        return entry

    def take_out(self) -> None:
        self.before.next = self.next
        if self.next is not None:
            self.next.before = self.before

    def put_back(self) -> None:
        self.before.next = self
        if self.next is not None:
            self.next.before = self


class _Search(Generic[State]):
    """Depth first: the next call of the order is one that was made before the first answer among
    those that are not in the order yet."""

    def __init__(self, operations: Sequence[Operation], model: Model[State]) -> None:
        self._operations = operations
        self._model = model
        self._head = _listed(operations)
        self._order: list[tuple[_Entry, State]] = []
        self._deepest: _Entry | None = None
        """The latest answer that the search came to and could not pass."""
        self._stuck: dict[State, tuple[Operation, ...]] = {}
        """The states in which it stood there, each with the order that led to it."""

    def run(self) -> Violation | None:
        unanswered = sum(operation.returned is not None for operation in self._operations)
        state, placed = self._model.initial, 0
        seen: set[tuple[int, State | None]] = {(0, state)}
        entry = self._head.next
        while unanswered:
            assert entry is not None, "an answer stands behind each call that has one"
            if entry.is_call:
                after = self._after(state, entry)
                position = (placed | 1 << entry.number, after)
                if after is None or position in seen:
                    entry = entry.next
                    continue
                seen.add(position)
                if len(seen) > POSITIONS_MAX:
                    raise Undecided(f"{entry.operation.object}: {len(seen)} positions")
                self._order.append((entry, state))
                state, placed = after, position[0]
                unanswered -= _take_out(entry)
                entry = self._head.next
                continue
            self._note(entry, state)
            if not self._order:
                return self._violation()
            last, state = self._order.pop()
            placed &= ~(1 << last.number)
            unanswered += _put_back(last)
            entry = last.next
        return None

    def _after(self, state: State, entry: _Entry) -> State | None:
        """The state after a call, None when the model would have told it something else. A call
        without an answer that changes nothing need not have happened."""
        operation = entry.operation
        after, told = self._model.apply(state, operation)
        if operation.returned is None:
            return after if after != state else None
        return after if told == operation.result else None

    def _note(self, answer: _Entry, state: State) -> None:
        if self._deepest is None or _answered(answer) > _answered(self._deepest):
            self._deepest, self._stuck = answer, {}
        if answer is self._deepest:
            self._stuck.setdefault(state, tuple(entry.operation for entry, _ in self._order))

    def _violation(self) -> Violation:
        assert self._deepest is not None
        refuted = self._deepest.operation
        meanwhile = [
            operation
            for operation in self._operations
            if operation is not refuted and _overlap(operation, refuted)
        ]
        order = max(self._stuck.values(), key=len)
        window = {id(each): each for each in [*order[-LAST_SHOWN:], *meanwhile, refuted]}
        shown = []
        for state in self._stuck:
            _, told = self._model.apply(state, refuted)
            shown.append(f"{state} would tell it {told}")
        return Violation(
            refuted.object,
            refuted,
            tuple(sorted(window.values(), key=lambda each: each.invoked)),
            tuple(shown[:STATES_SHOWN]),
        )


LAST_SHOWN = 5
STATES_SHOWN = 8


def _listed(operations: Sequence[Operation]) -> _Entry:
    """The list of all calls and answers, behind a head. A call stands before an answer of the same
    time."""
    timed: list[tuple[int, int, _Entry]] = []
    for number, operation in enumerate(operations):
        call = _Entry(number, operation, is_call=True)
        timed.append((operation.invoked, 0, call))
        if operation.returned is not None:
            call.answer = _Entry(number, operation, is_call=False)
            timed.append((operation.returned, 1, call.answer))
    head = last = _Entry(-1, operations[0], is_call=False)
    for _, _, entry in sorted(timed, key=lambda each: each[:2]):
        last = last.append(entry)
    return head


def _take_out(call: _Entry) -> int:
    """Returns how many answers went with it."""
    call.take_out()
    if call.answer is None:
        return 0
    call.answer.take_out()
    return 1


def _put_back(call: _Entry) -> int:
    answers = 0
    if call.answer is not None:
        call.answer.put_back()
        answers = 1
    call.put_back()
    return answers


def _answered(answer: _Entry) -> int:
    assert answer.operation.returned is not None
    return answer.operation.returned


def _overlap(first: Operation, second: Operation) -> bool:
    return _before(first.invoked, second.returned) and _before(second.invoked, first.returned)


def _before(invoked: int, returned: int | None) -> bool:
    return returned is None or invoked <= returned
