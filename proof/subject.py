"""What is verified: a side of a contract, as the node says that it stands; and its receipt on the
way to the node."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from proof.git_tree import GitTree
from schemas.receipt import ReceiptSide


class NotVerifiable(Exception):
    """Why a receipt would prove nothing, known before anything is run; one line."""


class NotItsSide(NotVerifiable):
    """The repo has not the side that is to be verified."""


@dataclass(frozen=True, slots=True)
class ProofSubject:
    """A side of a repo of a contract's current version and round. `declared` is the commit that the
    repo has declared complete, if it named one; `is_complete`: it has declared its work complete;
    `is_asked`: the version asks for receipts."""

    project_id: str
    contract_id: str
    contract: str
    version: int
    digest: str
    round: int
    repo_id: str
    repo: str
    side: ReceiptSide
    declared: str | None
    is_complete: bool
    is_asked: bool
    completed_at: str | None = None
    """When the repo declared its work complete in this round, an ISO 8601 time of a node."""

    def check(self, tree: GitTree) -> None:
        """Raises NotVerifiable when the node would refuse a receipt of this tree. The node decides:
        this only spares a run in vain."""
        if tree.is_dirty:
            raise NotVerifiable(
                f"the working tree has changes that commit {tree.commit[:12]} lacks "
                f"({tree.shown_changes()}): commit, stash or ignore them. Flags of the index, "
                "which `git ls-files -v` shows as h or S, hide some from `git status`"
            )
        complete = (
            f"cacp call cacp/implementation/complete projectId={self.project_id} "
            f"contractId={self.contract_id} commit={tree.commit}"
        )
        if not self.is_complete:
            raise NotVerifiable(
                f"{self.repo} has not declared its work on {self.contract} complete in round "
                f"{self.round}: its agent calls `{complete}` first"
            )
        if self.declared is None and self.is_asked:
            raise NotVerifiable(
                f"{self.repo} has declared no commit complete: its agent calls `{complete}`"
            )
        if self.declared not in (None, tree.commit):
            raise NotVerifiable(
                f"{self.repo} has declared commit {str(self.declared)[:12]} complete, and this is "
                f"{tree.commit[:12]}: check that one out, or its agent calls `{complete}`"
            )

    def text(self) -> str:
        """As JSON, to be kept for a time without the node."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def read(cls, text: str) -> "ProofSubject":
        """Raises ValueError for other text."""
        try:
            return cls(**json.loads(text))
        except TypeError as error:
            raise ValueError(str(error)) from None


def side_of(
    repo_id: str, parties: Mapping[str, str], unproven: list[dict[str, Any]], named: str | None
) -> ReceiptSide:
    """The side to verify: the one that is `named`, else the only one that the repo has, else the
    only one that lacks a receipt. `parties` have the role of each repo by id. Raises NotItsSide,
    and NotVerifiable where none is clear."""
    role = parties.get(repo_id)
    if role is None:
        raise NotItsSide("the repo is not a party to the contract's current version")
    if named not in (None, role) and role != "both":
        raise NotItsSide(f"the repo is the {role} of the contract, and not the {named}")
    lacking = {side["side"] for side in unproven if side["repoId"] == repo_id}
    for side in (named, role, *(lacking if len(lacking) == 1 else ())):
        if side == "provider":
            return "provider"
        if side == "consumer":
            return "consumer"
    raise NotVerifiable(
        "the repo is both provider and consumer: say with --side which the command verifies"
    )


def kept_file(tree: GitTree, *parts: str) -> Path:
    """A file of this checkout that git doesn't see."""
    return tree.git_folder.joinpath("cacp", *parts)
