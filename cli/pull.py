"""`cacp pull`: the agreed contracts of a project, as files of a repository."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.client import DEFAULT_URL, connected
from cli.options import JsonOption, KeyOption, UrlOption, grouped
from cli.terminal import REFUSED, USAGE, fail, notice, print_json
from schemas.plain import one_line

if TYPE_CHECKING:
    from cli.pull_contracts import AgreedContents, ContractFiles, PulledFiles
    from cli.pull_lock import Language, PullLock
    from cli.pull_plan import FilePlan, PullChange

SHOWN = 10
"""Files that a refusal names."""


class TypesOption(StrEnum):
    python = "python"
    typescript = "typescript"
    none = "none"


@dataclass(frozen=True)
class PullOptions:
    """What is pulled; what isn't given is as in the lock."""

    repo: Annotated[
        str | None,
        typer.Option("--repo", metavar="NAME", help="Only the contracts that bind this repo."),
    ] = None
    types: Annotated[
        list[TypesOption] | None,
        typer.Option("--types", help="Make types of this language too; repeatable."),
    ] = None
    check: Annotated[
        bool,
        typer.Option("--check", help="Change nothing; exit status 1 if a pull would, for CI."),
    ] = False
    offline: Annotated[
        bool, typer.Option("--offline", help="With --check: hold the files against the lock alone.")
    ] = False
    force: Annotated[
        bool,
        typer.Option("--force", help="Overwrite edited files, or another project's contracts."),
    ] = False


@grouped
def pull(
    options: PullOptions,
    project: Annotated[
        str | None,
        typer.Argument(
            metavar="PROJECT",
            help="A project's name, its id, or the beginning of it. By default what the lock says.",
        ),
    ] = None,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the agreed contracts of a project into this git repository.

    Each content becomes a file in .cacp/contracts, with the SDL or the .proto files beside it if it
    has any; .cacp/contracts.lock says what was pulled. --types makes types of the bodies of
    requests, responses and messages: .cacp/python/cacp_types (with the extra `codegen`) and
    .cacp/typescript (with npx). Commit them all. Without PROJECT a pull does again what the lock
    says. Files that somebody edited are never overwritten without --force.

    \b
    Examples:
      cacp pull Coupons --repo web-app --types typescript
      cacp pull
      cacp pull --check
    """
    from cli.pull_lock import PullLock

    if options.offline and not options.check:
        fail(USAGE, "--offline goes with --check")
    top = _top()
    lock = _lock(top)
    if project is None and lock is None:
        fail(USAGE, "name a project: this repository has no .cacp/contracts.lock yet")
    if options.check and lock is None:
        fail(REFUSED, "there is no .cacp/contracts.lock: `cacp pull PROJECT` makes it")
    languages = _languages(options, project, lock)
    contents = None if options.offline else _contents(options, project, lock, url, key)
    if options.check:
        assert isinstance(lock, PullLock)
        _check(top, lock, contents, languages, as_json)
    elif contents is not None:
        _pull(top, lock, contents, languages, options.force, as_json)


def _top() -> Path:
    from cli.git_folder import top_level

    top = top_level(Path.cwd())
    if top is None:
        fail(USAGE, "this folder is in no git repository: contracts are pulled into one")
    return top


def _lock(top: Path) -> "PullLock | None":
    from cli.pull_files import UnusableFile, read_lock

    try:
        return read_lock(top)
    except UnusableFile as error:
        fail(REFUSED, str(error))
    except OSError as error:
        fail(REFUSED, f"can't read .cacp/contracts.lock: {error.strerror}")


def _languages(
    options: PullOptions, project: str | None, lock: "PullLock | None"
) -> "list[Language]":
    given = set(options.types or ())
    if TypesOption.none in given and len(given) > 1:
        fail(USAGE, "--types none goes with no other")
    if given:
        languages: list[Language] = ["python", "typescript"]
        return [language for language in languages if language in given]
    return [] if lock is None or (project is not None and not options.check) else lock.types


def _contents(
    options: PullOptions, project: str | None, lock: "PullLock | None", url: str, key: str | None
) -> "AgreedContents":
    """What is agreed in the project that is meant."""
    from cli.project_choice import NoSuchName
    from cli.pull_contracts import agreed_contents
    from cli.show import project_id_of

    as_locked = project is None or options.check
    repo = options.repo or (lock.repo if lock is not None and as_locked else None)
    with connected(url, key, oversees=True) as node:
        id = lock.project.id if lock is not None else ""
        if project is not None:
            id = project_id_of(node, project)
        if lock is not None and id != lock.project.id and not options.force:
            fail(
                REFUSED,
                f"this repository has the contracts of {_name(lock)} "
                f"({one_line(lock.project.id, 60)}); --force puts this project's in their place",
            )
        try:
            return agreed_contents(node, id, repo)
        except NoSuchName as error:
            fail(REFUSED, str(error))


def _disk(top: Path, paths: Iterable[str]) -> dict[str, str | None]:
    from cli.pull_files import UnusableFile, read_all

    try:
        return read_all(top, paths)
    except UnusableFile as error:
        fail(REFUSED, str(error))
    except OSError as error:
        fail(REFUSED, f"can't read the files in .cacp: {error.strerror}")


# --- cacp pull --check ----------------------------------------------------------------------------


def _check(
    top: Path,
    lock: "PullLock",
    contents: "AgreedContents | None",
    languages: "list[Language]",
    as_json: bool,
) -> None:
    from cli.pull_plan import contract_changes, differing

    wrong = differing(lock, _disk(top, lock.known()))
    changes = contract_changes(
        lock.contracts, lock.contracts if contents is None else contents.locked(lock)
    )
    news = [change for change in changes if change.kind != "unchanged"]
    missing = sorted({*languages} - {*lock.types})
    if contents is not None:
        _tell_kept(contents, lock)
    if as_json:
        print_json(
            {
                "current": not (wrong or news or missing),
                "projectId": lock.project.id,
                "files": [{"path": path, "problem": why} for path, why in wrong.items()],
                "contracts": [_change_output(change) for change in news],
                "missingTypes": missing,
            }
        )
    else:
        for path, why in wrong.items():
            typer.echo(f"{path} {why}")
        for change in news:
            typer.echo(f"{one_line(change.contract.name, 60)}: {change.text}")
        for language in missing:
            typer.echo(f"types of {language} were never made")
        if not (wrong or news or missing):
            against = "the lock" if contents is None else "agreed"
            typer.echo(f"As {against}: {_count(len(lock.contracts))} of {_name(lock)}")
    if wrong or news or missing:
        raise typer.Exit(REFUSED)


# --- cacp pull ------------------------------------------------------------------------------------


def _pull(
    top: Path,
    lock: "PullLock | None",
    contents: "AgreedContents",
    languages: "list[Language]",
    force: bool,
    as_json: bool,
) -> None:
    from cli.pull_contracts import contract_files, pulled_files
    from cli.pull_files import write_all
    from cli.pull_names import types_path
    from cli.pull_plan import contract_changes, file_plan
    from cli.pull_types import GenerationFailed
    from cli.views import console

    listed = contract_files(contents)
    known = lock.known() if lock is not None else {}
    paths = {*known, *(path for files in listed for path in files.texts)}
    paths |= {types_path(files.slug, language) for files in listed for language in languages}
    disk = _disk(top, sorted(paths))
    try:
        with console(stderr=True).status("Making types…"):
            pulled = pulled_files(contents, listed, languages, lock, disk)
    except GenerationFailed as error:
        fail(REFUSED, f"{error}. Nothing was changed; --types none pulls without types")
    plan = file_plan(known, pulled.texts, disk)
    if plan.edited and not force:
        _refuse(plan.edited)
    plan = plan.forced(pulled.texts)
    try:
        changed = write_all(top, plan, disk, lock, pulled.lock)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        fail(REFUSED, f"the pull was interrupted ({why}); run it again")
    changes = contract_changes(lock.contracts if lock is not None else [], pulled.lock.contracts)
    _tell_kept(contents, lock)
    if changed:
        _notices(listed, pulled)
    if as_json:
        _print_json(contents, listed, pulled, changes, plan, changed)
    else:
        _print(changes, plan, changed, pulled)


def _tell_kept(contents: "AgreedContents", lock: "PullLock | None") -> None:
    for contract in contents.kept(lock):
        name = one_line(contract.name, 60)
        notice(f"{name} is negotiated again: version {contract.version} stays until one is agreed")


def _refuse(edited: tuple[str, ...]) -> None:
    more = f" and {len(edited) - SHOWN} more" if len(edited) > SHOWN else ""
    fail(
        REFUSED,
        f"would overwrite what was edited: {', '.join(edited[:SHOWN])}{more}. Nothing was changed; "
        "move your changes elsewhere, or overwrite them with --force",
    )


def _notices(listed: "list[ContractFiles]", pulled: "PulledFiles") -> None:
    for files in listed:
        why = pulled.untyped.get(files.locked.id)
        if why is not None:
            notice(f"{files.contract.title} has no types: {why}")
        count = pulled.unwritten.get(files.locked.id)
        if count:
            notice(
                f"{files.contract.title}: {count} of its .proto files have names that not every "
                "system takes; they are in its .json alone"
            )


def _print_json(
    contents: "AgreedContents",
    listed: "list[ContractFiles]",
    pulled: "PulledFiles",
    changes: "list[PullChange]",
    plan: "FilePlan",
    changed: bool,
) -> None:
    statuses = {contract["contractId"]: contract for contract in contents.contracts}
    print_json(
        {
            "changed": changed,
            "projectId": contents.project.id,
            "project": contents.project.name,
            "repo": contents.repo,
            "contracts": [
                _change_output(change)
                | {
                    "files": sorted(change.contract.files) if change.kind != "removed" else [],
                    "status": statuses.get(change.contract.id, {}).get("status"),
                    "untyped": pulled.untyped.get(change.contract.id),
                }
                for change in changes
            ],
            "written": sorted(plan.write),
            "removed": sorted(plan.remove),
        }
    )


def _print(
    changes: "list[PullChange]", plan: "FilePlan", changed: bool, pulled: "PulledFiles"
) -> None:
    for change in changes:
        if change.kind != "unchanged":
            typer.echo(f"{one_line(change.contract.name, 60)}: {change.text}")
    for path in plan.write:
        typer.echo(f"  wrote {path}")
    for path in plan.remove:
        typer.echo(f"  removed {path}")
    contracts = _count(len(pulled.lock.contracts))
    project = _name(pulled.lock)
    if not changed:
        typer.echo(f"Nothing to do: {contracts} of {project}, as agreed")
    else:
        typer.echo(f"{contracts} of {project} in .cacp/contracts.lock")


def _change_output(change: "PullChange") -> dict[str, object]:
    return {
        "contractId": change.contract.id,
        "name": change.contract.name,
        "version": change.contract.version,
        "change": change.kind,
        "before": change.before,
    }


def _count(number: int) -> str:
    return "1 contract" if number == 1 else f"{number} contracts"


def _name(lock: "PullLock") -> str:
    return one_line(lock.project.name, 60)
