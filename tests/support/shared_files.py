"""Files as tests share and get them."""

import base64
from typing import Any

from tests.support.node import Node


def inline(content: bytes, name: str = "logo.png") -> dict[str, Any]:
    """A file as `cacp/file/share` takes it."""
    return {
        "name": name,
        "content": base64.b64encode(content).decode(),
        "contentType": "image/png",
    }


def share(node: Node, project_id: str, content: bytes, **more: Any) -> str:
    """The id of a file that a node's own agent has shared."""
    given = {"projectId": project_id, "file": inline(content), **more}
    return str(node.call("cacp/file/share", **given)["fileId"])


def get(node: Node, project_id: str, file_id: str) -> bytes:
    """The content of a file, as a node gives it."""
    found = node.call("cacp/file/get", projectId=project_id, fileId=file_id)
    return base64.b64decode(found["content"])


def times_named(node: Node) -> int:
    """How often the log names content that is damaged: who finds it first names it, a caller's
    request or the audit."""
    return sum(node.log.count(f'"event": "{name}"') for name in ("file_damaged", "content_corrupt"))
