"""What a version freezes of its project beside its parties: what verifies it, and their roles.

Both decide the status, so they are part of the version's fact: the same on every node, whatever
becomes of the project. A version that is verified by word freezes roles only where they were named,
so that nodes of earlier releases take it too.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from schemas.contract import ContractType
from schemas.facts import VersionFact
from schemas.receipt import ReceiptSide
from schemas.verification import PartyRole, VerificationPolicy
from server.domain.sides import completed, provides, roles_of


class VersionTerms(NamedTuple):
    """`verification` and `frozen` as in a VersionFact; `roles` are those that hold, frozen or
    not."""

    verification: VerificationPolicy | None
    frozen: dict[str, PartyRole] | None
    roles: dict[str, PartyRole]


class ProjectTerms(NamedTuple):
    """What a project says: its policy, and the role of each repo by id."""

    verification: VerificationPolicy
    repo_roles: Mapping[str, str]


def terms_of(
    project: ProjectTerms,
    type: ContractType,
    parties: Sequence[str],
    named: Mapping[str, PartyRole] | None,
    *,
    first_author: str,
    before: VersionFact | None = None,
) -> VersionTerms:
    """The terms of a new version. `named` has roles by repo_id; without them those of the version
    `before` stay. Raises InvalidInput, as `sides.completed`."""
    if named is None and before is not None:
        named = before.roles
    by_default = roles_of(type, parties, None, project.repo_roles, first_author)
    if named is None:
        roles = by_default
    else:
        roles = completed(type, parties, named, project.repo_roles, first_author)
    if project.verification == "word":
        return VersionTerms(None, None if named is None else roles, roles)
    return VersionTerms(project.verification, roles, roles)


def weakens(before: VerificationPolicy, after: VerificationPolicy) -> bool:
    """Whether a policy asks for less proof than the one before."""
    return not demands(before) <= demands(after)


def demands(policy: VerificationPolicy | None) -> frozenset[str]:
    """What a policy asks for: `receipt` of each provider, `both` sides, `independent` runners."""
    if policy is None or policy == "word":
        return frozenset()
    asked = {"receipt", *policy.split("_")}
    return frozenset(asked)


def sides_to_prove(versions: Sequence[VersionFact]) -> frozenset[tuple[str, ReceiptSide]]:
    """The repos and sides of which receipts are asked. Of several versions with one content, which
    only a race or a node that cheats can make, all that any asks for: so none weakens another."""
    asked: set[tuple[str, ReceiptSide]] = set()
    for version in versions:
        demanded = demands(version.verification)
        roles = roles_of("custom", version.parties, version.roles or {}, {}, version.repo_id)
        if "receipt" in demanded:
            asked |= {(repo, "provider") for repo, role in roles.items() if role != "consumer"}
            if not provides(roles.values()):
                asked |= {(repo, "provider") for repo in roles}
        if "both" in demanded:
            asked |= {(repo, "consumer") for repo, role in roles.items() if role != "provider"}
    return frozenset(asked)
