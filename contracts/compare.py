"""Two contents of a contract compared: what changed, and whom it breaks (N2).

`compare` is pure, never raises for what `contracts.recognise.read` returns, and does a bounded
amount of work, after which the rest is `unknown`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from contracts.changes import UNDECIDED, ChangeLog, ContractChange, ContractComparison
from contracts.compare_operations import OperationComparer
from contracts.graphql_changes import graphql_changes
from contracts.json_text import same, shown
from contracts.model import Interface, Located, Path
from contracts.protobuf_changes import protobuf_changes
from contracts.refs import FILES
from contracts.structure import structure_changes, word_changes
from contracts.work import TooMuchWork, Work
from schemas.dialect import DialectName

STEPS = 2_000_000
"""Steps of one comparison, of two microseconds or so: at most some 5 s of any contents. What is not
compared by then is unknown."""

TOO_LARGE = "The contents are too large to be compared in full."
OWN: Mapping[DialectName, Callable[[Interface, Interface], Iterable[ContractChange]]] = {
    "graphql": graphql_changes,
    "protobuf": protobuf_changes,
}
"""How dialects with type systems of their own are compared."""


def compare(before: Interface, after: Interface, steps: int = STEPS) -> ContractComparison:
    """What changed from one content to the next.

    A sender keeps to one of them and a receiver to the other: whatever may be sent must be
    accepted, in each direction and for each side (`schema_within`).
    """
    log, work = ChangeLog(), Work(steps)
    if same(before.document, after.document):
        return log.comparison()
    try:
        _compare(log, work, before, after)
    except (TooMuchWork, RecursionError):
        log.unknown((), "too_large", TOO_LARGE)
    if not len(log):
        log.add((), "rewritten", "It is written in another way, and says the same.")
    return log.comparison()


def _compare(log: ChangeLog, work: Work, before: Interface, after: Interface) -> None:
    if before.dialect != after.dialect:
        why = "Contents of two dialects can't be compared."
        log.unknown((), "dialect_changed", why, before.dialect, after.dialect)
        return
    broken = [problem for side in (before, after) for problem in side.problems]
    for problem in broken:
        log.unknown(problem.path, "invalid", f"It is not valid {before.dialect}: {problem.why}")
    own = OWN.get(before.dialect)
    if own is not None:
        for change in own(before, after):
            log.take(change)
        _surroundings(log, work, before, after)
    elif before.dialect == "opaque":
        structure_changes(log, work, before.document, after.document, ())
    else:
        _operations(log, work, before, after)
        _surroundings(log, work, before, after)


def _operations(log: ChangeLog, work: Work, before: Interface, after: Interface) -> None:
    comparer = OperationComparer(log, work, before, after)
    was = {operation.key: operation for operation in before.operations}
    now = {operation.key: operation for operation in after.operations}
    if before.dialect == "endpoint" and len(was) == len(now) == 1 and was.keys() != now.keys():
        comparer.moved(*was.values(), *now.values())
        return
    for key, operation in was.items():
        if key in now:
            comparer.operation(operation, now[key])
        else:
            comparer.removed(operation)
    for key, operation in now.items():
        if key not in was:
            comparer.added(operation)


def _surroundings(log: ChangeLog, work: Work, before: Interface, after: Interface) -> None:
    """What a document says beside its operations."""
    word_changes(log, work, before.document, after.document)
    was, now = ({_place(located): located for located in side.unread} for side in (before, after))
    for place in [*was, *(place for place in now if place not in was)]:
        file, path = place
        whole = path if not file else (FILES, file, *path)
        if place not in now:
            log.unknown(whole, "value_removed", UNDECIDED, shown(was[place].schema))
        elif place not in was:
            log.unknown(whole, "value_added", UNDECIDED, None, shown(now[place].schema))
        else:
            structure_changes(log, work, was[place].schema, now[place].schema, whole)
    lost = [path for path in before.servers if path not in after.servers]
    if lost and after.servers:
        why = "A consumer as built today calls it below the former path."
        log.unknown(("servers",), "base_path_changed", why, lost, after.servers)
    for name in sorted(before.schemes.keys() & after.schemes.keys()):
        old, new = before.schemes[name], after.schemes[name]
        if not same(old, new):
            _scheme(log, work, old, new, ("components", "securitySchemes", name))


def _place(unread: Located) -> tuple[str, Path]:
    return unread.file, unread.path


def _scheme(log: ChangeLog, work: Work, before: Any, after: Any, path: Path) -> None:
    """A security scheme. A scope that is new asks nothing of anybody by itself."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            here = (*path, name)
            if name == "scopes":
                for scope in sorted(before.get(name, {}).keys() - after.get(name, {}).keys()):
                    log.unknown((*here, scope), "scope_removed", before=scope)
            elif name != "description" and not name.startswith("x-"):
                _scheme(log, work, before.get(name), after.get(name), here)
    else:
        structure_changes(log, work, before, after, path)
