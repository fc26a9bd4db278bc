"""What `cacp pull` has to do, by the lock, the files of the repository and what is agreed."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from cli.pull_lock import LockedContract, PullLock, digest_of

ChangeKind = Literal["added", "updated", "removed", "unchanged"]


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The files to write, by path, and those to remove. `edited` are those that would be lost:
    neither as a pull wrote them nor as they are to be."""

    write: Mapping[str, str]
    remove: tuple[str, ...]
    edited: tuple[str, ...] = ()

    def forced(self, wanted: Mapping[str, str]) -> "FilePlan":
        """The plan that overwrites what was edited."""
        write = dict(self.write) | {path: wanted[path] for path in self.edited if path in wanted}
        removed = (path for path in self.edited if path not in wanted)
        return replace(self, write=write, remove=(*self.remove, *removed), edited=())


def file_plan(
    known: Mapping[str, Set[str]], wanted: Mapping[str, str], disk: Mapping[str, str | None]
) -> FilePlan:
    """What makes the files of before (`known`, the digests that each may have) those that are
    wanted. `disk` has the text of each of them, None for one that isn't there."""
    write: dict[str, str] = {}
    remove: list[str] = []
    edited: list[str] = []
    for path in sorted({*known, *wanted}):
        text, new = disk[path], wanted.get(path)
        if text is None:
            if new is not None:
                write[path] = new
        elif new is not None and digest_of(text) == digest_of(new):
            continue
        elif digest_of(text) not in known.get(path, frozenset()):
            edited.append(path)
        elif new is None:
            remove.append(path)
        else:
            write[path] = new
    return FilePlan(write, tuple(remove), tuple(edited))


def while_writing(old: PullLock | None, new: PullLock) -> PullLock:
    """The lock for the time in which the files of the old one become those of the new one.

    >>> project = {"id": "01", "name": "Coupons"}
    >>> lock = PullLock(lock_version=1, project=project, contracts=[])
    >>> while_writing(None, lock) == lock
    True
    """
    known = old.known() if old is not None else {}
    return new.model_copy(update={"before": {p: sorted(d)[:100] for p, d in sorted(known.items())}})


class PullChange(NamedTuple):
    """How a contract changes. `before` is the version of before, None without one."""

    kind: ChangeKind
    contract: LockedContract
    before: int | None = None

    @property
    def text(self) -> str:
        version = self.contract.version
        match self.kind:
            case "added":
                return f"new, version {version}"
            case "updated" if self.before == version:
                return f"changed, version {version}"
            case "updated":
                return f"version {self.before} → {version}"
            case "removed":
                return "no longer agreed here"
        return f"unchanged, version {version}"


def contract_changes(
    old: Iterable[LockedContract], new: Iterable[LockedContract]
) -> list[PullChange]:
    """Each contract of before or now, by name. What counts is what is agreed, not its files."""
    earlier = {contract.id: contract for contract in old}
    changes = []
    for contract in new:
        was = earlier.pop(contract.id, None)
        if was is None:
            changes.append(PullChange("added", contract))
        else:
            kind: ChangeKind = "unchanged" if _said(was) == _said(contract) else "updated"
            changes.append(PullChange(kind, contract, was.version))
    changes += [PullChange("removed", gone, gone.version) for gone in earlier.values()]
    return sorted(changes, key=lambda change: (change.contract.name, change.contract.id))


def _said(contract: LockedContract) -> tuple[object, ...]:
    return contract.name, contract.version, contract.digest, contract.dialect


def differing(lock: PullLock, disk: Mapping[str, str | None]) -> dict[str, str]:
    """The files that are not as the lock says, and how they differ."""
    wrong: dict[str, str] = {}
    for path, digest in sorted(lock.files().items()):
        text = disk[path]
        if text is None:
            wrong[path] = "is missing"
        elif digest_of(text) != digest:
            earlier = digest_of(text) in lock.before.get(path, ())
            wrong[path] = "was not reached by the last pull" if earlier else "was edited"
    for path in sorted(lock.before.keys() - wrong.keys() - lock.files().keys()):
        if disk[path] is not None:
            wrong[path] = "was not removed by the last pull"
    return wrong
