"""A call over HTTP, and the refusal of a whole request."""

import json
from typing import Any

import httpx

LIST = json.dumps({"jsonrpc": "2.0", "method": "cacp/project/list", "params": {}, "id": 1})


def refusal(response: httpx.Response, status: int) -> Any:
    """A whole request refused: the status, and a JSON-RPC error with id null as the body."""
    assert response.status_code == status, response.text
    body = response.json()
    assert body.keys() == {"jsonrpc", "error", "id"}
    assert body["id"] is None
    return body["error"]
