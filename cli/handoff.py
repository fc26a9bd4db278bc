"""`cacp handoff`: read a handoff of work, and check the evidence that its tests pass."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.agreements import NOT_RUN
from cli.client import DEFAULT_URL, CallRefused, NodeClient, NodeUnreachable, connected
from cli.options import JsonOption, KeyOption, UrlOption, grouped
from cli.terminal import REFUSED, USAGE, fail, notice, print_json
from schemas.plain import one_line

if TYPE_CHECKING:
    from proof.evidence import EvidenceRun
    from proof.git_tree import GitTree
    from schemas.handoff import ACPHandoffPackage
    from schemas.handoff_evidence import HandoffCommandEvidence

Json = dict[str, Any]
OPEN = ("proposed", "validating")
"""States in which a check is recorded."""

app = typer.Typer(
    name="handoff",
    no_args_is_help=True,
    help="Read a handoff of work, and check the evidence that its tests pass.",
)

HandoffArgument = Annotated[str, typer.Argument(metavar="ID", help="The handoff's id.")]


@dataclass(frozen=True)
class CheckOptions:
    """How the commands are run."""

    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Run them without asking: you have read them.")
    ] = False
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="The most that each may take.")
    ] = 600.0
    prepare: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this before each, as nothing is installed in a new worktree, such as "
            "'npm ci'.",
        ),
    ] = None


@app.command()
def show(
    handoff_id: HandoffArgument,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a handoff, its task, and what its `test_status: passing` is worth here.

    Its parties see it, and who oversees the node's handoffs. The texts are its sender's.

    \b
    Examples:
      cacp handoff show 01a200d3-c0e1-7539-b1a1-fddaebe9d751
      cacp handoff show 01a200d3-c0e1-7539-b1a1-fddaebe9d751 --json | jq .evidence
    """
    answer = _fetched(handoff_id, url, key)
    if as_json:
        print_json(answer)
        return
    from cli.handoff_view import handoff_text

    typer.echo(handoff_text(answer))


@app.command()
@grouped
def check(
    handoff_id: HandoffArgument,
    options: CheckOptions,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the commands again by which a handoff's sender says that its tests pass.

    In a checkout of the repository: each runs in a temporary worktree of its commit, without a
    shell, from the top folder. Nothing is fetched, and your working tree is left alone. ANOTHER
    AGENT WROTE THE COMMANDS AND THE CODE, and they run with your rights on this machine: read them
    first, and use a container where you don't trust their sender. Keys of this software
    (CACP_*) are kept from them, other variables are not.

    The outcome is recorded at the node, which may ask for it before the handoff is accepted
    (CACP_HANDOFF_EVIDENCE=checked). Receipts that the package names are looked up at the node.

    Exit status: 0 all of it holds, or there is nothing to hold; 1 some does not, or the node
    refused; 2 wrong usage; 3 no node; 4 some could not be tried.

    \b
    Examples:
      cacp handoff check 01a200d3-c0e1-7539-b1a1-fddaebe9d751
      cacp handoff check 01a200d3-c0e1-7539-b1a1-fddaebe9d751 --yes --prepare 'npm ci'
    """
    prepare = _words(options.prepare)
    answer = _fetched(handoff_id, url, key)
    package = _sound(answer)
    if package.work_state.test_status != "passing":
        _tell_nothing(handoff_id, as_json)
        return
    evidence = package.work_state.test_evidence
    commands = list(evidence.commands or ()) if evidence else []
    if evidence is None:
        fail(
            NOT_RUN, "the package says that tests pass and has no evidence: it is its sender's word"
        )
    receipts = (answer.get("evidence") or {}).get("receipts", [])
    runs: list[EvidenceRun] = []
    problem = None
    is_open = bool(commands) and answer["handoff"]["status"] in OPEN
    if commands:
        tree = _tree()
        _ask(answer["handoff"], commands, tree, yes=options.yes)
        runs = _run(commands, tree, options.time_limit, prepare)
        problem = _record(url, key, answer["handoff"], runs) if is_open else None
    _tell(handoff_id, commands, runs, receipts, is_open and problem is None, as_json)
    if problem is not None:
        notice(f"the check is not recorded: {problem}")
    raise typer.Exit(_status(runs, receipts) or (REFUSED if problem else 0))


def _fetched(handoff_id: str, url: str, key: str | None) -> Json:
    with connected(url, key) as node:
        answer: Json = node.call("acp/handoff", {"action": "get", "handoff_id": handoff_id})
    return answer


def _words(command: str | None) -> list[str]:
    try:
        return shlex.split(command or "")
    except ValueError as problem:
        fail(USAGE, f"--prepare is no command: {problem}")


def _sound(answer: Json) -> "ACPHandoffPackage":
    """The package, which is whole and as it was sent. Else the command ends."""
    from pydantic import ValidationError

    from schemas.handoff import ACPHandoffPackage
    from server.domain.acp.handoff import package_hash

    try:
        package = ACPHandoffPackage.model_validate(answer["package"])
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        fail(REFUSED, f"nothing was run: the package is invalid at {where}: {first['msg']}")
    digest = package_hash(answer["package"])
    if {digest} != {package.verification.package_hash, answer["handoff"]["packageHash"]}:
        fail(REFUSED, "nothing was run: the package was changed after it was sent (its hash says)")
    return package


def _tree() -> "GitTree":
    from proof.git_tree import GitProblem, GitTree

    try:
        return GitTree.at(GitTree.at(Path.cwd()).top)
    except GitProblem as problem:
        fail(NOT_RUN, f"nothing was run: {problem}; go into a checkout of the repository")


def _ask(
    handoff: Json, commands: "list[HandoffCommandEvidence]", tree: "GitTree", *, yes: bool
) -> None:
    """Show what is to be run and who wrote it, and ask. Ends the command without a yes."""
    sender = one_line(handoff["fromAgent"], 200)
    typer.echo(f"{sender} says that tests pass, by these commands:", err=True)
    for claimed in commands:
        here = "" if tree.has(claimed.commit) else ", which this repository lacks"
        typer.echo(f"  {one_line(claimed.command)}", err=True)
        typer.echo(f"    at {claimed.commit}{here}", err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        fail(USAGE, "another agent wrote them: give --yes where nobody can be asked")
    if not typer.confirm("Run them on this machine, with your rights?", err=True):
        fail(REFUSED, "nothing was run")


def _run(
    commands: "list[HandoffCommandEvidence]",
    tree: "GitTree",
    time_limit: float,
    prepare: list[str],
) -> "list[EvidenceRun]":
    from proof.evidence import run_again

    runs = []
    for place, claimed in enumerate(commands, 1):
        notice(f"running {place} of {len(commands)}: {claimed.command}")
        runs.append(run_again(tree, claimed, time_limit=time_limit, prepare=prepare))
    return runs


def _record(url: str, key: str | None, handoff: Json, runs: "list[EvidenceRun]") -> str | None:
    """Record the runs at the node; returns why that could not be done."""
    params = {
        "handoff_id": handoff["handoffId"],
        "package_hash": handoff["packageHash"],
        "commands": [run.run.model_dump(mode="json", exclude_none=True) for run in runs],
    }
    try:
        with NodeClient(url, key) as node:
            node.call("acp/handoff/check", params)
    except (CallRefused, NodeUnreachable) as error:
        return str(error)
    return None


def _status(runs: "list[EvidenceRun]", receipts: list[Json]) -> int:
    codes = [run.run.exit_code for run in runs]
    outcomes = {receipt["outcome"] for receipt in receipts}
    if any(code not in (None, 0) for code in codes) or "unproven" in outcomes:
        return REFUSED
    return NOT_RUN if None in codes or "unknown" in outcomes else 0


def _tell_nothing(handoff_id: str, as_json: bool) -> None:
    if as_json:
        print_json({"handoffId": handoff_id, "recorded": False, "commands": [], "receipts": []})
    else:
        typer.echo("The package does not say that tests pass: there is nothing to check.")


def _tell(
    handoff_id: str,
    commands: "list[HandoffCommandEvidence]",
    runs: "list[EvidenceRun]",
    receipts: list[Json],
    recorded: bool,
    as_json: bool,
) -> None:
    from cli.handoff_view import receipt_line, run_json, run_text

    pairs = list(zip(commands, runs, strict=True))
    if as_json:
        print_json(
            {
                "handoffId": handoff_id,
                "recorded": recorded,
                "commands": [run_json(claimed, ended) for claimed, ended in pairs],
                "receipts": receipts,
            }
        )
        return
    for claimed, ended in pairs:
        typer.echo(run_text(claimed, ended))
    for receipt in receipts:
        typer.echo(receipt_line(receipt))
