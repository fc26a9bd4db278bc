"""Ids that are derived from what they name (design §5)."""

import re
import uuid
from hashlib import sha256

from server.domain.agents import identity

_BEGUN = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
"""A UUIDv8 as it is printed."""


def repo_id_for(project_id: str, name: str) -> str:
    """UUIDv5 of project and name, so that a repo that is added on two nodes has one id."""
    try:
        namespace = uuid.UUID(project_id)
    except ValueError:
        namespace = uuid.uuid5(uuid.NAMESPACE_URL, project_id)
    return str(uuid.uuid5(namespace, name))


def founded_by(node: str, fresh: uuid.UUID) -> str:
    """The id of a project that a node creates: a UUIDv7 whose last 62 bits are derived from the
    node and the bits before, so that every node can verify who founded a project."""
    return _naming(identity(node), fresh.bytes[:8])


def is_founder(project_id: str, node: str) -> bool:
    """Whether the node founded the project. False for ids of foreign peers and older releases,
    which name no founder."""
    try:
        return founded_by(node, uuid.UUID(project_id)) == project_id
    except ValueError:
        return False


def begun_by(node: str, project_id: str, fresh: uuid.UUID) -> str:
    """The id of a contract that a node begins in a project, derived like a project's id. It is a
    UUIDv8, to distinguish it from ids that name no node."""
    return _begun(node, project_id, fresh.bytes[:8])


def _begun(node: str, project_id: str, bytes_: bytes) -> str:
    head = bytearray(bytes_)
    head[6] = head[6] & 0x0F | 0x80
    return _naming(f"{identity(node)}\n{project_id}", bytes(head))


def names_beginner(contract_id: str) -> bool:
    """Whether a contract's id is derived from the node that began it. Ids of foreign peers and
    older releases are not; hex digits without hyphens don't count as such an id."""
    return _BEGUN.fullmatch(contract_id) is not None


def is_beginner(contract_id: str, project_id: str, node: str) -> bool:
    """Whether a contract's id says that the node began it in this project."""
    return names_beginner(contract_id) and contract_id == _begun(
        node, project_id, bytes.fromhex(contract_id[:18].replace("-", ""))
    )


def _naming(words: str, head: bytes) -> str:
    """An id of eight given bytes, and 62 bits that are derived from them and the words."""
    tail = sha256(f"{words}\n".encode() + head).digest()[:8]
    digits = (head + bytes([tail[0] & 0x3F | 0x80]) + tail[1:]).hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
