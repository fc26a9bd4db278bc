"""`cacp verify`: run a test command, and let a runner's receipt of it verify a contract."""

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.client import DEFAULT_URL, CallRefused, NodeClient, NodeUnreachable
from cli.options import JsonOption, RunnerKeyOption, UrlOption, grouped
from cli.show import locate
from cli.terminal import REFUSED, UNREACHABLE, USAGE, fail, notice, print_json
from schemas.plain import one_line

if TYPE_CHECKING:
    from proof.command import EndedCommand
    from proof.git_tree import GitTree
    from proof.runner_key import RunnerKeys
    from proof.subject import ProofSubject
    from schemas.receipt import ProofReceipt

Json = dict[str, Any]


@dataclass(frozen=True)
class ProvenSide:
    """What is verified."""

    contract: Annotated[
        str | None,
        typer.Option(help="The contract's name, its id, or the beginning of it."),
    ] = None
    repo: Annotated[
        str | None,
        typer.Option(help="The repo's name in the project. By default that of the runner's key."),
    ] = None
    side: Annotated[
        Literal["provider", "consumer"] | None,
        typer.Option(help="The side that the command verifies, of a repo that has both."),
    ] = None


@dataclass(frozen=True)
class BaseOptions:
    """How a failure is told from one that was there before."""

    base: Annotated[
        str | None,
        typer.Option(
            metavar="COMMIT",
            help="The branch or commit that the work is based on. By default the remote's main "
            "branch, else main or master.",
        ),
    ] = None
    prepare: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this before the command at the base commit, where nothing is installed yet, "
            "such as 'npm ci'.",
        ),
    ] = None


@grouped
def verify(
    subject: ProvenSide,
    base: BaseOptions,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND", help="The test command with its arguments, after --."),
    ] = None,
    key_file: RunnerKeyOption = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the receipt into this file too."),
    ] = None,
    send: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Send a receipt that was kept, and run nothing."),
    ] = None,
    url: UrlOption = DEFAULT_URL,
    as_json: JsonOption = False,
) -> None:
    """Run a test command, and record a receipt of it that verifies a contract.

    In a clean git checkout of the commit that the repo has declared complete. The receipt says what
    ran on which commit and how it ended, signed with the runner's key. If the command fails, it
    runs again at the base commit in a temporary worktree: a failure that was there before is an
    inherited one, not a regression.

    The exit status is the command's. With 1 and "nothing was run" the receipt would have proven
    nothing, and it says why. A receipt that can't be sent is kept, to be sent with --send.

    \b
    Examples:
      cacp verify --contract "Get profile" --key-file runner.json -- make test
      cacp verify --contract 0198c0df --repo frontend-app --prepare 'npm ci' -- npm test
      cacp verify --key-file runner.json --send .git/cacp/receipt-0198c0df-4be1.json
    """
    keys = runner_keys(key_file)
    if send is not None:
        _send_kept(keys, url, send, as_json=as_json)
        return
    if not command or subject.contract is None:
        fail(USAGE, "name the contract and the command: cacp verify --contract NAME -- COMMAND")
    tree = _tree()
    asked = asked_of(keys, url, subject, tree)
    given = RunnerCommand(command, quiet=as_json)
    run, receipt = run_and_sign(asked, tree, keys, given, base)
    if out is not None:
        out.write_text(_kept_text(asked.project_id, receipt))
    recorded = record(keys, url, asked.project_id, receipt, tree)
    if as_json:
        print_json({"receipt": receipt.wire(), **recorded})
    else:
        tell(receipt, recorded)
    raise typer.Exit(run.exit_code)


def runner_keys(file: Path | None) -> "RunnerKeys":
    from proof.runner_key import RunnerKeys, UnusableRunnerKey

    if file is None:
        fail(
            USAGE,
            "name the runner's keys with --key-file or CACP_RUNNER_KEY_FILE; the operator makes "
            "them with `cacp keys create AID --runner --file FILE`",
        )
    try:
        return RunnerKeys.read(file)
    except UnusableRunnerKey as problem:
        fail(REFUSED, str(problem))


def _tree() -> "GitTree":
    from proof.git_tree import GitProblem, GitTree

    try:
        return GitTree.at(Path.cwd())
    except GitProblem as problem:
        fail(REFUSED, f"nothing was run: {problem}")


# --- what is asked ------------------------------------------------------------------------------


def asked_of(keys: "RunnerKeys", url: str, wanted: ProvenSide, tree: "GitTree") -> "ProofSubject":
    """What the node says of the contract, or said last if it can't be reached. Ends the command
    when a receipt of this tree would prove nothing."""
    from proof.subject import NotVerifiable, ProofSubject, kept_file

    named = sha256(repr((url, wanted)).encode()).hexdigest()[:16]
    kept = kept_file(tree, f"asked-{named}.json")
    try:
        with NodeClient(url, keys.api_key) as node:
            asked = _ask(node, keys, wanted)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(asked.text())
    except NodeUnreachable as problem:
        try:
            asked = ProofSubject.read(kept.read_text())
        except (OSError, ValueError):
            fail(UNREACHABLE, f"nothing was run: {problem}, and it was never asked from here")
        notice(f"{problem}: taking the contract as it was when the node was asked last")
    except (CallRefused, NotVerifiable, ValueError) as problem:
        fail(REFUSED, f"nothing was run: {problem}")
    try:
        asked.check(tree)
    except NotVerifiable as problem:
        fail(REFUSED, f"nothing was run: {problem}")
    return asked


def _ask(node: NodeClient, keys: "RunnerKeys", wanted: ProvenSide) -> "ProofSubject":
    """Raises NotVerifiable, and as NodeClient."""
    from proof.subject import NotVerifiable, ProofSubject, side_of

    project_id, contract_id = locate(node, str(wanted.contract))
    if contract_id is None:
        raise NotVerifiable(f"{wanted.contract} is a project: name one of its contracts")
    at = {"projectId": project_id, "contractId": contract_id}
    seen = node.call("cacp/contract/overview", at)
    listed = node.call("cacp/receipt/list", at)
    name = wanted.repo or keys.repo
    if not name:
        raise NotVerifiable("say with --repo whose work it is: the runner's key is for any repo")
    by_name = {party.get("name"): party for party in seen["parties"]}
    party = by_name.get(name) or {"repoId": name}
    roles = {party["repoId"]: party["side"] for party in seen["parties"]}
    works = {work["repo_id"]: work for work in seen["contract"]["implementations"]}
    work = works.get(party["repoId"], {})
    return ProofSubject(
        project_id=project_id,
        contract_id=contract_id,
        contract=seen["contract"]["name"],
        version=listed["version"],
        digest=listed["digest"],
        round=listed["round"],
        repo_id=party["repoId"],
        repo=name,
        side=side_of(party["repoId"], roles, listed["unproven"], wanted.side),
        declared=work.get("commit"),
        is_complete=work.get("status") == "complete",
        is_asked=listed["verificationPolicy"] != "word",
    )


# --- the run ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunnerCommand:
    """A test command. `quiet`: its output goes to stderr; `tool` is what the receipt names; without
    an `environment` it has this process's."""

    words: list[str]
    quiet: bool
    tool: str = "verify"
    environment: Mapping[str, str] | None = None

    def run(self, folder: Path, *, quiet: bool = False) -> "EndedCommand":
        from proof.command import run_command

        printed = _printer(quiet=quiet or self.quiet)
        return run_command(self.words, folder, printed, self.environment)


def run_and_sign(
    asked: "ProofSubject",
    tree: "GitTree",
    keys: "RunnerKeys",
    command: RunnerCommand,
    base: BaseOptions,
) -> tuple["EndedCommand", "ProofReceipt"]:
    """Run the command, again at the base commit if it fails, and sign the receipt."""
    from proof.git_tree import GitProblem, GitTree
    from proof.receipts import receipt_of_command

    run = command.run(tree.folder)
    if run.problem:
        notice(f"the command can't be run here: {run.problem}")
    at_base, commit = None, None
    if not run.passed and not run.is_missing and not run.was_ended:
        at_base, commit = _run_at_base(tree, command, base)
    try:
        moved = GitTree.at(tree.folder).commit != tree.commit
    except GitProblem:
        moved = True
    receipt = receipt_of_command(
        asked,
        tree,
        keys,
        command.words,
        run,
        at_base=at_base,
        base=commit,
        is_dirty=moved,
        tool=command.tool,
    )
    return run, receipt


def _run_at_base(
    tree: "GitTree", command: RunnerCommand, base: BaseOptions
) -> tuple["EndedCommand | None", str | None]:
    """The command at the base commit, and that commit; None where it can't be run there."""
    from proof.command import run_command
    from proof.git_tree import GitProblem

    try:
        commit = tree.base(base.base)
        if commit is None:
            notice("it failed, and there is no earlier commit to compare with")
            return None, None
        notice(f"it failed: running it at the base commit {commit[:12]} too")
        with tree.worktree(commit) as folder:
            if base.prepare is not None:
                ready = run_command(shlex.split(base.prepare), folder, _printer(quiet=True))
                if not ready.passed:
                    notice(f"--prepare failed there, with {ready.exit_code}")
                    return None, None
            return command.run(folder, quiet=True), commit
    except (GitProblem, ValueError) as problem:
        notice(f"it could not be run at the base commit: {problem}")
        return None, None


def _printer(*, quiet: bool) -> "Any":
    """Passes output on: to stderr if stdout is for the result."""
    stream = (sys.stderr if quiet else sys.stdout).buffer

    def printed(piece: bytes) -> None:
        stream.write(piece)
        stream.flush()

    return printed


# --- the receipt --------------------------------------------------------------------------------


def record(
    keys: "RunnerKeys", url: str, project_id: str, receipt: "ProofReceipt", tree: "GitTree"
) -> Json:
    """What the node answers; or why it refuses the receipt; or where it is kept for later."""
    from proof.subject import kept_file

    try:
        return _sent(keys, url, project_id, receipt.wire())
    except NodeUnreachable as problem:
        place = f"receipt-{receipt.contract_id[:8]}-{receipt.signature[:8]}.json"
        kept = kept_file(tree, place)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(_kept_text(project_id, receipt))
        return {"status": "kept", "problem": str(problem), "file": str(kept)}


def _sent(keys: "RunnerKeys", url: str, project_id: str, receipt: Json) -> Json:
    """Raises NodeUnreachable."""
    at = {"projectId": project_id, "contractId": receipt["contractId"]}
    try:
        with NodeClient(url, keys.api_key) as node:
            answer: Json = node.call("cacp/receipt/record", at | {"receipt": receipt})
    except CallRefused as refused:
        reason = refused.data.get("reason") if isinstance(refused.data, dict) else None
        return {"status": "refused", "reason": reason, "problem": refused.message}
    return answer


def _kept_text(project_id: str, receipt: "ProofReceipt") -> str:
    import json

    return json.dumps({"projectId": project_id, "receipt": receipt.wire()}, indent=1) + "\n"


def _send_kept(keys: "RunnerKeys", url: str, file: Path, *, as_json: bool) -> None:
    import json

    try:
        kept = json.loads(file.read_text())
        project_id, receipt = str(kept["projectId"]), dict(kept["receipt"])
        str(receipt["contractId"])
    except OSError as error:
        fail(REFUSED, f"{file} can't be read: {error.strerror}")
    except (ValueError, KeyError, TypeError):
        fail(REFUSED, f"{file} holds no receipt that `cacp verify` has kept")
    try:
        answer = _sent(keys, url, project_id, receipt)
    except NodeUnreachable as problem:
        fail(UNREACHABLE, f"{problem}: {file} stays as it is")
    if as_json:
        print_json({"receipt": receipt, **answer})
    elif answer["status"] != "refused":
        _tell_recorded(receipt, answer)
    if answer["status"] == "refused":
        fail(REFUSED, answer["problem"])


def tell(receipt: "ProofReceipt", recorded: Json) -> None:
    """Say on stderr what became of the receipt: stdout is the command's."""
    if recorded["status"] == "refused":
        notice(f"no receipt is recorded. {recorded['problem']}")
    elif recorded["status"] == "kept":
        notice(
            f"{recorded['problem']}. The receipt is kept in {recorded['file']}: send it with "
            f"`cacp verify --key-file FILE --send {shlex.quote(recorded['file'])}`"
        )
    else:
        _tell_recorded(receipt.wire(), recorded)


def _tell_recorded(receipt: Json, answer: Json) -> None:
    outcome = one_line(receipt["outcome"]).replace("_", " ")
    proves = "proves" if answer["proves"] else "does not prove"
    notice(
        f"{outcome} at {receipt['commit'][:12]}: the receipt is recorded, and {proves} the "
        f"{receipt['side']}'s side. The contract is {answer['contractStatus']}"
    )
    for side in answer["unproven"]:
        name = one_line(side.get("name") or side["repoId"])
        notice(f"not proven yet: {name} as {side['side']}")
