"""What `cacp verify`, `cacp probe` and `cacp mock check` share: which side is proven, and what
becomes of its receipt."""

import shlex
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.client import CallRefused, NodeClient, NodeUnreachable
from cli.show import locate
from cli.terminal import REFUSED, UNREACHABLE, USAGE, fail, notice
from schemas.plain import one_line

if TYPE_CHECKING:
    from proof.git_tree import GitTree
    from proof.probe_outcome import ProbeOutcome
    from proof.runner_key import RunnerKeys
    from proof.subject import ProofSubject
    from schemas.receipt import ProofReceipt

Json = dict[str, Any]

RepoOption = Annotated[
    str | None,
    typer.Option(
        "--repo",
        metavar="NAME",
        help="The repo's name in the project. By default that of the runner's key.",
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Write the receipt into this file too."),
]


@dataclass(frozen=True)
class ProvenSide:
    """What is verified."""

    contract: Annotated[
        str | None,
        typer.Option(help="The contract's name, its id, or the beginning of it."),
    ] = None
    repo: RepoOption = None
    side: Annotated[
        Literal["provider", "consumer"] | None,
        typer.Option(help="The side that the command verifies, of a repo that has both."),
    ] = None


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


def checkout() -> "GitTree":
    """The checkout that the command runs in."""
    from proof.git_tree import GitProblem, GitTree

    try:
        return GitTree.at(Path.cwd())
    except GitProblem as problem:
        fail(REFUSED, f"nothing was run: {problem}")


# --- what is asked ------------------------------------------------------------------------------


def asked_of(keys: "RunnerKeys", url: str, wanted: ProvenSide, tree: "GitTree") -> "ProofSubject":
    """As `subject_of`; ends the command where there is nothing to prove."""
    from proof.subject import NotVerifiable

    try:
        return subject_of(keys, url, wanted, tree)
    except NodeUnreachable as problem:
        fail(UNREACHABLE, f"nothing was run: {problem}")
    except (CallRefused, NotVerifiable, ValueError) as problem:
        fail(REFUSED, f"nothing was run: {problem}")


def subject_of(keys: "RunnerKeys", url: str, wanted: ProvenSide, tree: "GitTree") -> "ProofSubject":
    """What the node says of the contract, or said last if it can't be reached.

    Raises NotVerifiable when a receipt of this tree would prove nothing, NodeUnreachable when the
    node was never asked, and as NodeClient.
    """
    from proof.subject import ProofSubject, kept_file

    named = sha256(repr((url, wanted)).encode()).hexdigest()[:16]
    kept = kept_file(tree, f"asked-{named}.json")
    try:
        with NodeClient(url, keys.api_key) as node:
            asked = _ask(node, keys, wanted)
        keep(kept, asked.text())
    except NodeUnreachable as problem:
        try:
            asked = ProofSubject.read(kept.read_text())
        except (OSError, ValueError):
            raise NodeUnreachable(f"{problem}, and it was never asked from here") from None
        notice(f"{problem}: taking the contract as it was when the node was asked last")
    asked.check(tree)
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
        completed_at=work.get("completed_at"),
        is_asked=listed["verificationPolicy"] != "word",
    )


# --- the receipt --------------------------------------------------------------------------------


def has_moved(tree: "GitTree") -> bool:
    """Whether the checkout has become another since; then it is told."""
    moved = tree.moved()
    if moved is not None:
        notice(f"while it ran, {moved}: its receipt proves nothing")
    return moved is not None


def sign_probe(
    asked: "ProofSubject",
    tree: "GitTree",
    keys: "RunnerKeys",
    outcome: "ProbeOutcome",
    command: str,
) -> "ProofReceipt":
    """The receipt of a probe or of a recording; ends the command if it was of other content."""
    from proof.receipts import receipt_of_probe

    try:
        return receipt_of_probe(
            asked, tree, keys, outcome, command=command, is_dirty=has_moved(tree)
        )
    except ValueError as problem:
        fail(REFUSED, f"no receipt is made: {problem}; the contract has changed meanwhile")


def record(
    keys: "RunnerKeys", url: str, project_id: str, receipt: "ProofReceipt", tree: "GitTree"
) -> Json:
    """What the node answers; or why it refuses the receipt; or where it is kept for later."""
    from proof.subject import kept_file

    try:
        return sent(keys, url, project_id, receipt.wire())
    except NodeUnreachable as problem:
        place = f"receipt-{receipt.contract_id[:8]}-{receipt.signature[:8]}.json"
        kept = kept_file(tree, place)
        keep(kept, kept_text(project_id, receipt))
        return {"status": "kept", "problem": str(problem), "file": str(kept)}


def sent(keys: "RunnerKeys", url: str, project_id: str, receipt: Json) -> Json:
    """Raises NodeUnreachable."""
    at = {"projectId": project_id, "contractId": receipt["contractId"]}
    try:
        with NodeClient(url, keys.api_key) as node:
            answer: Json = node.call("cacp/receipt/record", at | {"receipt": receipt})
    except CallRefused as refused:
        reason = refused.data.get("reason") if isinstance(refused.data, dict) else None
        return {"status": "refused", "reason": reason, "problem": refused.message}
    return answer


def keep(file: Path, text: str) -> None:
    """Write a file of this checkout that git doesn't see."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def kept_text(project_id: str, receipt: "ProofReceipt") -> str:
    """A receipt as `cacp verify --send` takes it."""
    import json

    return json.dumps({"projectId": project_id, "receipt": receipt.wire()}, indent=1) + "\n"


def write_copy(out: Path | None, project_id: str, receipt: "ProofReceipt") -> None:
    """The receipt in the file of --out. One that can't be written ends nothing: the run is over,
    and its receipt is recorded all the same."""
    if out is not None:
        try:
            out.write_text(kept_text(project_id, receipt))
        except OSError as error:
            notice(f"can't write {out}: {error.strerror}")


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
        tell_recorded(receipt.wire(), recorded)


def tell_recorded(receipt: Json, answer: Json) -> None:
    """Say on stderr what a recorded receipt proves, and what lacks one."""
    outcome = one_line(receipt["outcome"]).replace("_", " ")
    proves = "proves" if answer["proves"] else "does not prove"
    notice(
        f"{outcome} at {receipt['commit'][:12]}: the receipt is recorded, and {proves} the "
        f"{receipt['side']}'s side. The contract is {answer['contractStatus']}"
    )
    for side in answer["unproven"]:
        name = one_line(side.get("name") or side["repoId"])
        notice(f"not proven yet: {name} as {side['side']}")
