"""Ids that follow from what they name (design §5)."""

import uuid


def repo_id_for(project_id: str, name: str) -> str:
    """UUIDv5 of project and name, so that a repo added on two nodes is one."""
    try:
        namespace = uuid.UUID(project_id)
    except ValueError:
        namespace = uuid.uuid5(uuid.NAMESPACE_URL, project_id)
    return str(uuid.uuid5(namespace, name))
