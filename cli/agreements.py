"""The contracts that `cacp mock` and `cacp probe` work on: from files, or agreed at a node."""

import importlib.util
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.client import NodeClient
from cli.show import every_contract, locate_contract, project_id_of
from cli.terminal import REFUSED, USAGE, fail, notice
from schemas.plain import one_line

if TYPE_CHECKING:
    from proof.agreed import AgreedContract

NOT_RUN = 4
"""The exit status of a command that could not try what it should."""
STATUSES = "Exit status: 0 passed, 1 failed, 2 wrong usage, 3 no node, 4 it could not be tried."
DOUBTS_MAX = 5
NAMED_MAX = 5
NEEDED = ("hypothesis", "hypothesis_graphql", "jsonschema_rs")

FilesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="A contract in a file, JSON or YAML, in place of a node's; repeatable.",
    ),
]


def need_proof(command: str) -> None:
    """End the command where the extra `proof` is not installed.

    Hypothesis then keeps what it remembers in the user's cache: in the folder of a repository it
    would be a change of its tree.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        fail(
            NOT_RUN,
            f"`cacp {command}` needs {' and '.join(missing)}, of the extra `proof` of this "
            "package: pip install 'cacp-server[proof]'",
        )
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - it never fails
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", f"{cache}/cacp/hypothesis")


def of_files(paths: Iterable[Path]) -> "list[AgreedContract]":
    from cli.contract_files import load_contract
    from proof.agreed import AgreedContract

    return [AgreedContract(path.name, load_contract(path)) for path in paths]


def of_project(node: NodeClient, wanted: str) -> "list[AgreedContract]":
    """The agreed contracts of a project. One that is being negotiated again is as it was agreed
    last, and a line on stderr says so. Ends the command if there is none."""
    from schemas.contract import UNSETTLED

    project_id = project_id_of(node, wanted)
    listed = list(every_contract(node, project_id))
    settled = [each["contractId"] for each in listed if each["status"] not in UNSETTLED]
    again = {each["contractId"] for each in listed} - {*settled}
    contracts = [*_fetched(node, project_id, settled)]
    if again:
        contracts += _agreed_before(node, project_id, again)
    if not contracts:
        negotiated = [one_line(c["name"], 60) for c in listed if c["status"] == "negotiating"]
        names = f": {', '.join(negotiated[:NAMED_MAX])} is being negotiated" if negotiated else ""
        fail(
            REFUSED,
            "the project has no agreed contract" + (names or " yet") + "; `cacp contracts` lists "
            "them",
        )
    return contracts


def _agreed_before(
    node: NodeClient, project_id: str, again: set[str]
) -> "Iterator[AgreedContract]":
    """Of contracts that are not agreed now the versions that were, as far as the node has them.

    A repo that asks for a change takes back its agreement. Where that was the only one, a version
    on which work was begun was agreed: on another none may begin.
    """
    from proof.agreed import AgreedContract

    left = set(again)
    pages = node.pages("cacp/contract/agreed", {"projectId": project_id}, "contracts")
    for agreed in (each for each in pages if each["contractId"] in again):
        left.remove(agreed["contractId"])
        yield _again(
            AgreedContract(
                agreed["name"],
                agreed["content"],
                agreed["type"],
                agreed["contractId"],
                agreed["version"],
                completions={},
            )
        )
    params = [{"projectId": project_id, "contractId": id} for id in sorted(left)]
    for contract in node.call_each("cacp/contract/get", params):
        if contract["implementations"]:
            yield _again(_taken(contract))


def _again(contract: "AgreedContract") -> "AgreedContract":
    version = contract.version
    notice(
        f"{contract.name} is being negotiated again (version {version} was agreed): version "
        f"{version} counts until another is agreed"
    )
    return contract


def of_contract(node: NodeClient, wanted: str) -> "AgreedContract":
    """One contract by its name or id, which may be unsettled; then a line on stderr says so."""
    project_id, contract_id = locate_contract(node, wanted, USAGE)
    (contract,) = _fetched(node, project_id, [contract_id])
    return contract


def _fetched(node: NodeClient, project_id: str, ids: list[str]) -> "Iterator[AgreedContract]":
    from schemas.contract import UNSETTLED

    params = [{"projectId": project_id, "contractId": id} for id in ids]
    for contract in node.call_each("cacp/contract/get", params):
        if contract["status"] in UNSETTLED:
            notice(f"{contract['name']} is {contract['status']}, not agreed")
        yield _taken(contract)


def _taken(contract: dict[str, Any]) -> "AgreedContract":
    """The current version of a contract as `cacp/contract/get` answers it."""
    from proof.agreed import AgreedContract

    return AgreedContract(
        contract["name"],
        contract["content"],
        contract["type"],
        contract["contract_id"],
        contract["version"],
        completions={
            work["repo_id"]: work["completed_at"]
            for work in contract["implementations"]
            if work["status"] == "complete" and work.get("completed_at")
        },
    )


def tell_doubts(contract: "AgreedContract") -> None:
    """Say on stderr what of a contract could not be read."""
    doubts: list[Any] = contract.doubts()
    for doubt in doubts[:DOUBTS_MAX]:
        notice(f"{contract.title}: {doubt}")
    if len(doubts) > DOUBTS_MAX:
        notice(f"{contract.title}: {len(doubts) - DOUBTS_MAX} more such doubts are not listed")
