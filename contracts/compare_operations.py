"""Operations compared: what came and went, responses by status, security, placeholders."""

import re
from collections.abc import Mapping

from contracts.changes import ChangeLog
from contracts.compare_parts import PartComparer
from contracts.model import Interface, Operation, Part, Side
from contracts.work import Work
from schemas.dialect import Effect

_PLACEHOLDER = re.compile(r"\{([^{}/]*)\}")
_WORD = {"http": "operation", "event": "event", "model": "model"}


class OperationComparer:
    """Compares operations of two interfaces, and notes what changed."""

    def __init__(self, log: ChangeLog, work: Work, before: Interface, after: Interface) -> None:
        self._log = log
        self._parts = PartComparer(log, work, before, after)

    def removed(self, operation: Operation) -> None:
        """An operation that is there no longer."""
        why = "A consumer as built today may rely on it."
        rule = f"{_WORD[operation.kind]}_removed"
        self._log.add(operation.path, rule, why, before=operation.key, consumer="breaking")

    def added(self, operation: Operation) -> None:
        """An operation that is new."""
        why = "A provider as built today doesn't have it."
        rule = f"{_WORD[operation.kind]}_added"
        self._log.add(operation.path, rule, why, after=operation.key, provider="breaking")

    def moved(self, before: Operation, after: Operation) -> None:
        """An operation that is the only one of its content, with another method or path."""
        why = "Either side as built today uses the former one."
        for name, was, now in (
            ("method", before.method, after.method),
            ("path", _PLACEHOLDER.sub("{}", before.route), _PLACEHOLDER.sub("{}", after.route)),
        ):
            if was != now:
                self._log.add(
                    (*after.path, name),
                    f"{name}_changed",
                    why,
                    before=was,
                    after=now,
                    provider="breaking",
                    consumer="breaking",
                )
        self.operation(before, after)

    def operation(self, before: Operation, after: Operation) -> None:
        """Two versions of one operation."""
        self._parts.user = after.key
        answers: Side = "provider" if after.caller == "consumer" else "consumer"
        renamed = self._placeholders(before, after)
        self._parts.part(before.request, after.request, "request", after.caller, renamed)
        self._responses(before.responses, after.responses, answers)
        self._security(before, after)

    def _placeholders(self, before: Operation, after: Operation) -> Mapping[str, str]:
        """The new names of path parameters, by their former ones: they go by place."""
        was, now = _PLACEHOLDER.findall(before.route), _PLACEHOLDER.findall(after.route)
        if was == now or len(was) != len(now):
            return {}
        routes = before.route, after.route
        path = (*after.path, "path")
        if set(was) & set(now) and sorted(was) == sorted(now):
            why = "Parameters have changed places, or each other's names."
            self._log.unknown(path, "path_changed", why, *routes)
            return {}
        why = "Only the names of placeholders changed."
        self._log.add(path, "placeholder_renamed", why, before=routes[0], after=routes[1])
        return dict(zip(was, now, strict=True))

    def _responses(
        self, before: Mapping[str, Part], after: Mapping[str, Part], sent_by: Side
    ) -> None:
        """Responses by status. Of statuses that mean failure, HTTP lets each side know none."""
        kept = any(_is_success(status) and _of_status(after, status) for status in before) or any(
            _is_success(status) and _of_status(before, status) for status in after
        )
        for status, part in before.items():
            answer = _of_status(after, status)
            if answer is not None:
                self._parts.part(part, answer, "response", sent_by)
                continue
            forward: Effect = "breaking" if _is_success(status) else _of_any(status, before)
            backward: Effect = "breaking" if _is_success(status) and not kept else "compatible"
            self._parts.note(part.path, "response_removed", sent_by, forward, backward, status)
        for status, part in after.items():
            if status in before:
                continue
            former = _of_status(before, status)
            if former is not None:
                self._parts.part(former, part, "response", sent_by)
                continue
            backward = "breaking" if _is_success(status) else _of_any(status, after)
            forward = "breaking" if _is_success(status) and not kept else "compatible"
            self._parts.note(part.path, "response_added", sent_by, forward, backward, None, status)

    def _security(self, before: Operation, after: Operation) -> None:
        was, now = before.security or ({},), after.security or ({},)
        forward = all(any(_asks_no_more(new, old) for new in now) for old in was)
        backward = all(any(_asks_no_more(old, new) for old in was) for new in now)
        if not (forward and backward):
            self._parts.note(
                (*after.path, "security"),
                "security_changed",
                after.caller,
                "compatible" if forward else "breaking",
                "compatible" if backward else "breaking",
                _listed(was),
                _listed(now),
            )


Alternatives = tuple[Mapping[str, frozenset[str]], ...]


def _asks_no_more(some: Mapping[str, frozenset[str]], than: Mapping[str, frozenset[str]]) -> bool:
    """Whether who has what one alternative asks for also has what another does."""
    return all(name in than and scopes <= than[name] for name, scopes in some.items())


def _listed(alternatives: Alternatives) -> list[dict[str, list[str]]]:
    return [
        {name: sorted(scopes) for name, scopes in sorted(alternative.items())}
        for alternative in alternatives
    ]


def _is_success(status: str) -> bool:
    """Whether a status says that the request went well. An event is always sent well."""
    return status[:1] in ("1", "2", "3") or status == "message"


def _of_any(status: str, responses: Mapping[str, Part]) -> Effect:
    """The effect of a response that only one side has, if it may be for a success: a default is, as
    long as no status of success stands beside it."""
    is_for_any = status == "default" and not any(map(_is_success, responses))
    return "unknown" if is_for_any else "compatible"


def _of_status(responses: Mapping[str, Part], status: str) -> Part | None:
    """The response for a status, also by a range (`2XX`) or the default."""
    names = (status, f"{status[:1]}XX", f"{status[:1]}xx", "default")
    return next((responses[name] for name in names if name in responses), None)
