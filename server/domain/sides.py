"""Which party provides a contract, and which consume it, as long as the contract itself does not
say."""

from collections.abc import Mapping, Sequence

from schemas.contract import ContractType

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
