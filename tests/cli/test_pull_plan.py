import doctest

from hypothesis import given
from hypothesis import strategies as st

from cli import pull_plan
from cli.pull_lock import LockedContract, LockedProject, PullLock, digest_of
from cli.pull_plan import FilePlan, contract_changes, differing, file_plan, while_writing

PATHS = [f".cacp/contracts/{name}.json" for name in "abcd"]
TEXTS = st.sampled_from(["1", "2", "3"])
FILES = st.dictionaries(st.sampled_from(PATHS), TEXTS)


def lock_with(files: dict[str, str], version: int = 1, **contract: object) -> PullLock:
    given = {
        "id": "02",
        "name": "A",
        "version": version,
        "digest": digest_of(str(files)),
        "dialect": "opaque",
        "files": {path: digest_of(text) for path, text in files.items()},
    }
    return PullLock(
        lock_version=1,
        project=LockedProject(id="01", name="P"),
        contracts=[LockedContract.model_validate(given | contract)],
    )


def on_disk(files: dict[str, str]) -> dict[str, str | None]:
    return {path: files.get(path) for path in PATHS}


def carried_out(plan: FilePlan, files: dict[str, str], steps: int | None = None) -> dict[str, str]:
    """What files become by a plan, or its first steps."""
    after = dict(files)
    edits: list[tuple[str, str | None]] = [*plan.write.items(), *((p, None) for p in plan.remove)]
    for path, text in edits[:steps]:
        if text is None:
            del after[path]
        else:
            after[path] = text
    return after


def test_the_examples_hold() -> None:
    assert doctest.testmod(pull_plan).failed == 0


@given(FILES, FILES, FILES)
def test_a_plan_loses_no_edit(
    locked: dict[str, str], wanted: dict[str, str], disk: dict[str, str]
) -> None:
    known = lock_with(locked).known()
    plan = file_plan(known, wanted, on_disk(disk))
    after = carried_out(plan, disk)
    for path in plan.edited:
        assert after[path] == disk[path]
        assert disk[path] not in (locked.get(path), wanted.get(path))
    # Whatever else was pulled, or is to be, is as it is wanted; no other file is touched.
    for path in {*known, *wanted} - {*plan.edited}:
        assert after.get(path) == wanted.get(path)
    for path in disk.keys() - known.keys() - wanted.keys():
        assert after[path] == disk[path]
    lost = {path for path, text in disk.items() if after.get(path) != text}
    assert all(disk[path] == locked.get(path) for path in lost)


@given(FILES, FILES, FILES)
def test_a_second_pull_has_nothing_to_do(
    locked: dict[str, str], wanted: dict[str, str], disk: dict[str, str]
) -> None:
    plan = file_plan(lock_with(locked).known(), wanted, on_disk(disk)).forced(wanted)
    after = carried_out(plan, disk)
    again = file_plan(lock_with(wanted).known(), wanted, on_disk(after))
    assert again == FilePlan({}, ())
    assert differing(lock_with(wanted), on_disk(after)) == {}


@given(FILES, FILES, FILES, st.integers(0, 4), st.integers(0, 4))
def test_an_interrupted_pull_is_finished_by_the_next(
    first: dict[str, str], second: dict[str, str], third: dict[str, str], at: int, again_at: int
) -> None:
    """Also if that is interrupted too, and what is agreed has changed in between."""
    locks = [lock_with(first), lock_with(second), lock_with(third)]
    plan = file_plan(locks[0].known(), second, on_disk(first))
    disk = carried_out(plan, first, at)
    during = while_writing(locks[0], locks[1])
    plan = file_plan(during.known(), third, on_disk(disk))
    assert plan.edited == ()
    disk = carried_out(plan, disk, again_at)
    during = while_writing(during, locks[2])
    plan = file_plan(during.known(), third, on_disk(disk))
    assert plan.edited == ()
    assert carried_out(plan, disk) == third


def test_what_differs_is_named() -> None:
    lock = lock_with({PATHS[0]: "1", PATHS[1]: "1", PATHS[2]: "1"})
    disk = on_disk({PATHS[0]: "2", PATHS[2]: "1\r\n".strip()})
    assert differing(lock, disk) == {PATHS[0]: "was edited", PATHS[1]: "is missing"}
    during = while_writing(lock, lock_with({PATHS[0]: "3"}))
    assert differing(during, on_disk({PATHS[0]: "1", PATHS[1]: "1"})) == {
        PATHS[0]: "was not reached by the last pull",
        PATHS[1]: "was not removed by the last pull",
    }


def test_changes_of_contracts() -> None:
    def locked(id: str, version: int, digest: str = "a") -> LockedContract:
        (contract,) = lock_with({}, version, id=id, name=id, digest=digest * 64).contracts
        return contract

    old = [locked("a", 1), locked("b", 1), locked("c", 1), locked("d", 1)]
    new = [locked("e", 3), locked("a", 1), locked("b", 2), locked("d", 1, "b")]
    assert [(c.contract.id, c.kind, c.text) for c in contract_changes(old, new)] == [
        ("a", "unchanged", "unchanged, version 1"),
        ("b", "updated", "version 1 → 2"),
        ("c", "removed", "no longer agreed here"),
        ("d", "updated", "changed, version 1"),
        ("e", "added", "new, version 3"),
    ]
