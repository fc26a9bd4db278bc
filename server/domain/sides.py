"""Which parties provide a contract, and which consume it: as the version says, else by the roles of
their repos."""

from collections.abc import Collection, Mapping, Sequence

from schemas.contract import ContractType
from schemas.verification import PartyRole
from server.domain.errors import InvalidInput

_CLIENTS = "android app browser cli client consumer desktop frontend ios mobile ui web"
CLIENT_ROLES = frozenset(_CLIENTS.split(" "))
"""Roles of repos that call others, and are called by nobody while there is another party."""
_PREFERRED: Mapping[ContractType, str] = {"data_model": "shared", "config_spec": "infra"}
"""The role that provides a contract of a type; for other types `BACKEND`."""
BACKEND = "backend"


def provider_of(
    type: ContractType,
    parties: Sequence[str],
    roles: Mapping[str, str],
    first_author: str,
) -> str:
    """The repo_id of the party that provides a contract; the other parties consume it.

    It follows from the repos' roles (CACP 2.0: backend, frontend, mobile, shared, infra; or any
    other): a shared repo provides data models, an infra repo configurations, a backend all else.
    Where no party has that role, one provides it whose role is not a client's. Among several, the
    author of the first version does, else the first of `parties`.

    `roles` has the role of each repo that is known here.

    >>> provider_of("api_endpoint", ["web", "api"], {"web": "frontend", "api": "backend"}, "web")
    'api'
    """
    wanted = _PREFERRED.get(type, BACKEND)

    def rank(repo_id: str) -> tuple[int, bool]:
        role = roles.get(repo_id, "").strip().casefold()
        fits = 3 if role == wanted else 1 if role in CLIENT_ROLES else 2 if role else 0
        return fits, repo_id == first_author

    return max(parties, key=rank)


def roles_of(
    type: ContractType,
    parties: Sequence[str],
    frozen: Mapping[str, PartyRole] | None,
    roles: Mapping[str, str],
    first_author: str,
) -> dict[str, PartyRole]:
    """The role of each party: that which the version has `frozen`, else by `provider_of`. A party
    of which the version says nothing is both."""
    if frozen is not None:
        return {party: frozen.get(party, "both") for party in parties}
    provider = provider_of(type, parties, roles, first_author)
    return {party: "provider" if party == provider else "consumer" for party in parties}


def completed(
    type: ContractType,
    parties: Sequence[str],
    named: Mapping[str, PartyRole],
    roles: Mapping[str, str],
    first_author: str,
) -> dict[str, PartyRole]:
    """The role of each party where some are `named`: the others consume, but one of them provides
    where none of the named does. Raises InvalidInput for a repo that is no party, and where nobody
    is left to provide."""
    strangers = sorted(set(named) - set(parties))
    if strangers:
        raise InvalidInput(
            f"roles: {', '.join(strangers)} is no party, which roles are for", path="roles"
        )
    rest = [party for party in parties if party not in named]
    if provides(named.values()):
        return {party: named.get(party, "consumer") for party in parties}
    if not rest:
        raise InvalidInput(
            "roles: every party only consumes; give one the role provider or both", path="roles"
        )
    provider = provider_of(type, rest, roles, first_author)
    return {
        party: named.get(party, "provider" if party == provider else "consumer")
        for party in parties
    }


def provides(roles: Collection[PartyRole]) -> bool:
    """Whether one of these roles provides."""
    return any(role != "consumer" for role in roles)
