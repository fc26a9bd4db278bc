import json

import httpx
import pytest

from proof.agreed import AgreedContract
from proof.messages import WireRequest
from proof.mock import Mock, Mocked
from proof.mock_app import BODY_MAX, mock_app
from tests.proof.provider import CONTRACT

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Asked:
    """A client of a mock, and what the mock told of it."""

    def __init__(self) -> None:
        self.seen: list[tuple[WireRequest, Mocked]] = []
        mock = Mock([AgreedContract("Users", CONTRACT)], 0)
        app = mock_app(mock, lambda request, mocked: self.seen.append((request, mocked)))
        transport = httpx.ASGITransport(app=app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://mock")


async def test_it_answers_and_tells_what_it_was_asked() -> None:
    asked = Asked()
    answer = await asked.client.post("/users?a=%20b", json={"email": "ana"})
    assert answer.status_code == 201
    assert answer.headers["x-cacp-mock"] == "1"
    assert answer.json()["email"] == "text"
    ((request, mocked),) = asked.seen
    assert (request.method, request.path, request.query) == ("POST", "/users", "a=%20b")
    assert json.loads(request.body or b"") == {"email": "ana"}
    assert mocked.operation == "POST /users"


async def test_paths_stay_encoded() -> None:
    asked = Asked()
    answer = await asked.client.get("/users/a%2Fb")
    assert answer.status_code == 400
    assert asked.seen[0][0].path == "/users/a%2Fb"


async def test_a_page_may_call_it() -> None:
    asked = Asked()
    headers = {"Origin": "http://page.example", "Access-Control-Request-Method": "DELETE"}
    answer = await asked.client.options("/users/7", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "*"


async def test_any_method_is_answered() -> None:
    answer = await Asked().client.request("BREW", "/users")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")
    assert answer.headers["x-cacp-mock"] == "1"


async def test_a_body_may_be_too_large() -> None:
    asked = Asked()
    answer = await asked.client.post("/users", content=b"x" * (BODY_MAX + 1))
    assert answer.status_code == 413
    ((request, mocked),) = asked.seen
    assert (request.method, request.body) == ("POST", None)
    assert [breach.rule for breach in mocked.breaches] == ["oversized"]
