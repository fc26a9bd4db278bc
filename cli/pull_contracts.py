"""The agreed contracts that `cacp pull` writes: asked of a node, and made into files."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cli.client import NodeClient
from cli.project_choice import chosen
from cli.pull_lock import (
    Language,
    LockedContract,
    LockedProject,
    LockedTypes,
    PullLock,
    digest_of,
)
from cli.pull_names import content_path, slugs, source_texts, types_path
from cli.pull_types import TypesInput, generated, generator_of, types_input
from cli.show import every_contract
from contracts.protobuf import proto_paths
from proof.agreed import AgreedContract
from schemas.plain import escaped


class AgreedContents(NamedTuple):
    """What is agreed in a project, as a lock names it. `repo` is the name of the repo that it was
    asked for, None for all."""

    project: LockedProject
    repo: str | None
    contracts: list[dict[str, Any]]
    """As `cacp/contract/agreed` answers them."""
    reopened: frozenset[str] = frozenset()
    """The ids of contracts of which no version is agreed: they are negotiated, perhaps again."""

    def kept(self, lock: PullLock | None) -> list[LockedContract]:
        """The contracts of a lock that were agreed and are negotiated again. Their files stay: code
        is built on them until another version is agreed."""
        locked = lock.contracts if lock is not None else []
        return [contract for contract in locked if contract.id in self.reopened]

    def locked(self, lock: PullLock) -> list[LockedContract]:
        """What a pull would lock in place of a lock, without the files."""
        now = [_locked(contract, _agreed(contract)) for contract in self.contracts]
        return [*now, *self.kept(lock)]


def agreed_contents(node: NodeClient, project_id: str, repo: str | None) -> AgreedContents:
    """What is agreed in a project, or of it what binds a repo. Raises NoSuchName for another repo
    than the project's."""
    project = node.call("cacp/project/get", {"projectId": project_id, "summary": True})
    names = {member["repo_id"]: member["name"] for member in project["repos"]}
    wanted = None if repo is None else chosen(repo, names, "repo")
    every = [*node.pages("cacp/contract/agreed", {"projectId": project_id}, "contracts")]
    contracts = [
        contract
        for contract in every
        if wanted is None or any(party["repoId"] == wanted for party in contract["parties"])
    ]
    listed = {contract["contractId"] for contract in every_contract(node, project_id)}
    return AgreedContents(
        LockedProject(id=project_id, name=project["name"]),
        None if wanted is None else names[wanted],
        contracts,
        frozenset(listed - {contract["contractId"] for contract in every}),
    )


@dataclass(frozen=True, slots=True)
class PulledFiles:
    """What a pull makes of a project: the lock, and the text of each file by its path."""

    lock: PullLock
    texts: Mapping[str, str]
    untyped: Mapping[str, str] = field(default_factory=dict)
    """Why contracts have no types, by their ids."""
    unwritten: Mapping[str, int] = field(default_factory=dict)
    """How many `.proto` files of contracts have names that not all systems take, by their ids."""


class ContractFiles(NamedTuple):
    """The files of one contract: what it says, and what types are to be made of."""

    contract: AgreedContract
    slug: str
    locked: LockedContract
    texts: dict[str, str]
    types: TypesInput | str


def contract_files(contents: AgreedContents) -> list[ContractFiles]:
    """The files of each contract, without types."""
    named = slugs({contract["contractId"]: contract["name"] for contract in contents.contracts})
    listed = []
    for answer in contents.contracts:
        contract = _agreed(answer)
        slug = named[answer["contractId"]]
        locked = _locked(answer, contract)
        texts = {content_path(slug): content_text(contract.content)}
        texts |= source_texts(locked.dialect, contract.content, slug)
        listed.append(ContractFiles(contract, slug, locked, texts, types_input(contract)))
    return sorted(listed, key=lambda files: files.locked.id)


def pulled_files(
    contents: AgreedContents,
    listed: Sequence[ContractFiles],
    languages: Sequence[Language],
    old: PullLock | None,
    disk: Mapping[str, str | None],
) -> PulledFiles:
    """The files with types. Those on `disk` that were made of the same by the same generator are
    taken from there. Raises GenerationFailed."""
    texts = {path: text for files in listed for path, text in files.texts.items()}
    typed: dict[str, dict[Language, LockedTypes]] = {files.locked.id: {} for files in listed}
    owners = {files.locked.id: {*files.texts} for files in listed}
    untyped = {f.locked.id: f.types for f in listed if languages and isinstance(f.types, str)}
    for language in languages:
        made, failed = _types(language, listed, old, disk)
        untyped |= failed
        for id, (path, text, locked) in made.items():
            texts[path] = text
            owners[id].add(path)
            typed[id][language] = locked
    contracts = [
        files.locked.model_copy(
            update={
                "files": {path: digest_of(texts[path]) for path in sorted(owners[files.locked.id])},
                "types": typed[files.locked.id],
            }
        )
        for files in listed
    ]
    for contract in contents.kept(old):
        kept = {path: disk[path] for path in contract.files}
        if not kept.keys() & texts.keys():
            contracts.append(contract)
            texts |= {path: text for path, text in kept.items() if text is not None}
    lock = PullLock(
        lock_version=1,
        project=contents.project,
        repo=contents.repo,
        types=sorted(languages),
        contracts=sorted(contracts, key=lambda contract: contract.id),
    )
    return PulledFiles(lock, texts, untyped, _unwritten(listed))


def content_text(content: Mapping[str, Any]) -> str:
    """The file of a content: the same for equal contents, with no character that can't be seen."""
    return escaped(json.dumps(content, ensure_ascii=False, indent=2, sort_keys=True)) + "\n"


class MadeTypes(NamedTuple):
    path: str
    text: str
    locked: LockedTypes


def _types(
    language: Language,
    listed: Iterable[ContractFiles],
    old: PullLock | None,
    disk: Mapping[str, str | None],
) -> tuple[dict[str, MadeTypes], dict[str, str]]:
    """The types of each contract that has any, and why others have none, by the contracts' ids."""
    generator = generator_of(language)
    before = {contract.id: contract for contract in old.contracts} if old is not None else {}
    made: dict[str, MadeTypes] = {}
    waiting: dict[str, tuple[str, TypesInput]] = {}
    for files in listed:
        if not isinstance(files.types, TypesInput):
            continue
        id, path = files.locked.id, types_path(files.slug, language)
        text, was = disk[path], before.get(id)
        locked = None if was is None else was.types.get(language)
        if (
            was is not None
            and locked is not None
            and text is not None
            and locked.input == files.types.digest
            and generator in (None, locked.generator)
            and digest_of(text) == was.files.get(path)
        ):
            made[id] = MadeTypes(path, text, locked)
        else:
            waiting[files.slug] = (id, files.types)
    results = generated(language, {slug: given for slug, (_, given) in waiting.items()})
    for slug, text in results.texts.items():
        id, given = waiting[slug]
        locked = LockedTypes(generator=generator or "", input=given.digest)
        made[id] = MadeTypes(types_path(slug, language), text, locked)
    failed = {waiting[slug][0]: f"{language}: {why}" for slug, why in results.failed.items()}
    return made, failed


def _agreed(answer: Mapping[str, Any]) -> AgreedContract:
    return AgreedContract(
        answer["name"],
        answer["content"],
        answer["type"],
        answer["contractId"],
        answer["version"],
        answer.get("dialect"),
    )


def _locked(answer: Mapping[str, Any], contract: AgreedContract) -> LockedContract:
    return LockedContract(
        id=answer["contractId"],
        name=answer["name"],
        version=answer["version"],
        digest=answer["digest"],
        dialect=contract.interface.dialect,
        files={},
    )


def _unwritten(listed: Iterable[ContractFiles]) -> dict[str, int]:
    counts = {
        files.locked.id: len(proto_paths(files.contract.content)) - len(files.texts) + 1
        for files in listed
        if files.locked.dialect == "protobuf"
    }
    return {id: count for id, count in counts.items() if count}
