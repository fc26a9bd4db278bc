"""Tests over HTTP: JSON-RPC by `POST /`, and any other request, from several agents to up to
two nodes."""

import json
import uuid
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx
from pydantic import JsonValue

from comply.cleanup import Credentials, MadeThings, NodeCaller
from comply.files import Case
from comply.matching import at
from comply.preconditions import unmet
from comply.record import Transcript
from comply.result import NotApplicable
from comply.run import to_its_end
from comply.target import HarnessError, SubjectUnreachable
from comply.template import fill, text_of
from schemas.jsont import ComplianceTest, HttpRequest, JsonObject, JsontStep

REQUEST_SECONDS = 30.0
ANSWER_BYTES = 16 << 20
"""What an answer may hold; more is a flood."""
LARGE = 2_000_000
"""Characters of `${large}`, which is too large for a request."""
SOON_SECONDS = 3.0
"""How far ahead `${soon}` is, by the runner's clock."""
CARD = "/.well-known/agent.json"
NEAR = "http://127.0.0.1:9101", "http://127.0.0.1:9102"
AWAY = "https://first.comply.invalid", "https://second.comply.invalid"
"""The endpoints that the two agents announce: NEAR to a node on this machine, AWAY to any other,
which may refuse to call loopback. Nobody listens there, and `.invalid` never resolves."""
NEEDED = {
    "second": "another agent: --key2",
    "third": "an agent whose limits may be used up: --key3",
    "human": "a human: --human-key",
    "sync": "the second agent as a peer: --sync-key",
}
"""What a test needs that calls as one of these."""
KEYS = {
    "first": "--key",
    "second": "--key2",
    "third": "--key3",
    "human": "--human-key",
    "sync": "--sync-key",
}
"""The option that gives the key of a caller."""
OWN = ("authorization", "x-agent-id")
"""Headers that say who calls."""


@dataclass(slots=True)
class HttpTarget:
    """A node under test. `keys` holds the key of each caller that a step may name."""

    url: str
    keys: Mapping[str, str | None] = field(default_factory=dict)
    peer_url: str | None = None
    peer_key: str | None = None
    repo: str | None = None
    repo2: str | None = None
    peer_repo: str = "frontend-app"
    endpoint: str | None = None
    endpoint2: str | None = None
    facts: dict[str, str] = field(default_factory=dict)
    card: JsonValue = None
    methods: list[str] | None = None
    made: MadeThings = field(default_factory=MadeThings)
    client: httpx.AsyncClient = field(
        default_factory=lambda: httpx.AsyncClient(timeout=REQUEST_SECONDS, trust_env=False)
    )

    @property
    def name(self) -> str:
        return self.url.partition("://")[2].rstrip("/")

    async def learn(self) -> None:
        """Fetch the card and the list of methods; a server may have neither.

        Raises SubjectUnreachable.
        """
        self.card = await self._get(self.url, CARD)
        listed = await self._get(self.url, "/methods")
        if self.peer_url is not None:
            repo = at(await self._get(self.peer_url, CARD), "extensions.cacp.repo")
            self.peer_repo = repo if isinstance(repo, str) else self.peer_repo
        if isinstance(listed, dict) and isinstance(listed.get("methods"), list):
            self.methods = [text_of(method) for method in listed["methods"]]  # type: ignore[union-attr]
        for label, path in (
            ("Name", "name"),
            ("CACP", "protocols.cacp"),
            ("Agent", "extensions.cacp.agentId"),
            ("Repo", "extensions.cacp.repo"),
        ):
            value = at(self.card, path)
            if value is not None:
                self.facts[label] = text_of(value)
        if self.methods is not None:
            self.facts["Methods"] = str(len(self.methods))
        self.repo = self.repo or self.facts.get("Repo", "backend-api")
        self.repo2 = self.repo2 or "frontend-app"
        own = at(self.card, "url")
        first, second = NEAR if _is_near(own if isinstance(own, str) else self.url) else AWAY
        self.endpoint, self.endpoint2 = self.endpoint or first, self.endpoint2 or second

    async def _get(self, url: str, path: str) -> JsonValue:
        try:
            answer = await _request(self.client, "GET", url.rstrip("/") + path)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            raise SubjectUnreachable(f"nothing answers at {url}") from None
        except httpx.TimeoutException:
            # Otherwise each test would wait this long.
            raise SubjectUnreachable(
                f"{url} does not answer within {REQUEST_SECONDS:g} s"
            ) from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise SubjectUnreachable(f"{url} is not a URL such as http://127.0.0.1:8080") from None
        except (httpx.HTTPError, _Flood):
            return None
        return _json(answer.text) if answer.status_code == httpx.codes.OK else None

    async def missing(self, test: ComplianceTest) -> str | None:
        if test.transport != "http":
            return f"is for {test.transport}, not for HTTP"
        for step in test.steps:
            if step.caller in NEEDED and self.keys.get(step.caller) is None:
                return f"needs {NEEDED[step.caller]}"
            if step.to == "peer" and self.peer_url is None:
                return "needs a second node: --peer-url"
        return unmet(test.preconditions, agent=self.card, methods=self.methods or ())

    def concerns(self, test: ComplianceTest) -> bool:
        return True

    async def open(self, case: Case) -> "HttpSession":
        return HttpSession(self)

    async def clean(self) -> list[str]:
        return await self.made.remove(self._call, self.methods)

    async def _call(
        self, url: str, credentials: Credentials, method: str, params: JsonValue
    ) -> JsonValue:
        """The answer to a JSON-RPC call. Raises OSError when there is none."""
        frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = httpx.Headers([*credentials, ("content-type", "application/json")])
        content = json.dumps(frame).encode()
        try:
            answer = await _request(self.client, "POST", f"{url}/", content, headers)
        except (httpx.HTTPError, _Flood) as error:
            raise OSError(f"the node does not answer: {type(error).__name__}") from None
        return _json(answer.text)

    async def close(self) -> None:
        await self.client.aclose()


class HttpSession:
    """One test's requests, one after the other."""

    def __init__(self, target: HttpTarget) -> None:
        self.target = target
        self.record = Transcript(unasked=False)
        self.variables: dict[str, JsonValue] = {
            "unique": uuid.uuid4().hex[:12],
            "repo": target.repo,
            "repo2": target.repo2,
            "peerRepo": target.peer_repo,
            "endpoint": target.endpoint,
            "endpoint2": target.endpoint2,
            "large": "x" * LARGE,
        }

    async def start(self) -> None:
        """A node runs already."""

    async def act(self, step: JsontStep) -> None:
        soon = datetime.now(UTC) + timedelta(seconds=SOON_SECONDS)
        self.variables["soon"] = soon.isoformat(timespec="microseconds")
        headers = {name: str(fill(text, self.variables)) for name, text in step.headers.items()}
        if step.send is not None:
            frame = fill(step.send, self.variables)
            assert isinstance(frame, dict)
            frame.pop("expectError", None)
            await self._exchange(step, HttpRequest(body=frame), headers)
        elif step.request is not None:
            given = step.request.model_dump()
            filled = {name: fill(value, self.variables) for name, value in given.items()}
            await self._exchange(step, HttpRequest.model_validate(filled), headers)
        else:
            raise HarnessError("this step is not for HTTP")

    async def _exchange(self, step: JsontStep, request: HttpRequest, given: dict[str, str]) -> None:
        """Send a request; record its answer as `http`, and each JSON-RPC response in it."""
        headers = httpx.Headers(self._credentials(step))
        text = request.text
        if text is None and request.body is not None:
            text = json.dumps(request.body)
        if text is not None:
            headers["content-type"] = "application/json"
        headers.update(given)
        for frame in self.record.open():
            # Only the answer to this request can meet an `http` expectation.
            frame.matched = frame.kind == "http"
        shown = request.body if request.text is None else request.text
        if text is not None and len(text) > LARGE:
            shown = f"{text[:200]}… {len(text)} characters"
        self.record.sent({"request": f"{request.method} {request.path}", "body": shown}, "http")
        base = self.target.peer_url if step.to == "peer" else self.target.url
        url = (base or "").rstrip("/")
        sending = _request(
            self.target.client,
            request.method,
            f"{url}{request.path}",
            content=None if text is None else text.encode(),
            headers=headers,
        )
        try:
            if _makes(self.target.made, request):
                # What it makes must be known, to be removed, even if the run ends now.
                answer = await to_its_end(self._noting(sending, url, headers, request))
            else:
                answer = await sending
        except httpx.TimeoutException:
            self.record.end(f"no answer within {REQUEST_SECONDS:g} s")
        except _Flood:
            self.record.flood(f"the answer is larger than {ANSWER_BYTES >> 20} MiB")
        except httpx.HTTPError as error:
            self.record.end(f"the connection failed: {type(error).__name__}")
        else:
            own = "authorization" in httpx.Headers(given)
            if answer.status_code == httpx.codes.UNAUTHORIZED and not own:
                self._require_key(step)
            self._hear(answer)

    async def _noting(
        self,
        sending: Coroutine[Any, Any, httpx.Response],
        url: str,
        headers: httpx.Headers,
        request: HttpRequest,
    ) -> httpx.Response:
        """The answer to a request that may make something at the node, which is noted."""
        answer = await sending
        body = _json(answer.text)
        caller = NodeCaller(url, tuple((name, headers[name]) for name in OWN if name in headers))
        result = at(body, "result")
        method = at(request.body, "method")
        if request.path != "/":
            if answer.is_success:
                plain = f"{request.method} {request.path}"
                self.target.made.note(caller, plain, {"body": request.body})
        elif result is not None and isinstance(method, str):
            params = at(request.body, "params")
            self.target.made.note(caller, method, {"params": params, "result": result})
        return answer

    def _require_key(self, step: JsontStep) -> None:
        """A 401 without a valid key says nothing about the test's rule. Raises NotApplicable."""
        if step.caller == "nobody":
            return
        key, option = self._key(step)
        raise NotApplicable(
            f"needs a key: {option}" if key is None else f"the key of {option} is not taken"
        )

    def _key(self, step: JsontStep) -> tuple[str | None, str]:
        """The key that a step uses, and the option that sets it."""
        if step.to == "peer" and step.caller == "first":
            return self.target.peer_key, "--peer-key"
        return self.target.keys.get(step.caller), KEYS.get(step.caller, "")

    def _credentials(self, step: JsontStep) -> dict[str, str]:
        key, _ = self._key(step)
        return {} if key is None else {"authorization": f"Bearer {key}"}

    def _hear(self, answer: httpx.Response) -> None:
        body = _json(answer.text)
        heard: JsonObject = {
            "status": answer.status_code,
            "headers": dict(answer.headers),
            "text": answer.text,
        }
        if body is not None:
            heard["body"] = body
        self.record.heard(heard, "http")
        for message in body if isinstance(body, list) else [body]:
            if isinstance(message, dict) and "jsonrpc" in message:
                self.record.heard(message)

    async def close(self) -> str:
        return ""


class _Flood(Exception):
    """An answer exceeds ANSWER_BYTES."""


async def _request(
    client: httpx.AsyncClient,
    method: str,
    url: str,
    content: bytes | None = None,
    headers: httpx.Headers | None = None,
) -> httpx.Response:
    """The whole answer. Raises _Flood, httpx.HTTPError."""
    body = bytearray()
    async with client.stream(method, url, content=content, headers=headers) as answer:
        async for piece in answer.aiter_bytes():
            body += piece
            if len(body) > ANSWER_BYTES:
                raise _Flood
        # `aread` does the same, without a bound.
        answer._content = bytes(body)
    return answer


def _makes(made: MadeThings, request: HttpRequest) -> bool:
    """Whether a request may make or remove something at the node."""
    if request.path != "/":
        return made.concerns(f"{request.method} {request.path}")
    method = at(request.body, "method")
    return isinstance(method, str) and made.concerns(method)


def _json(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _is_near(url: str) -> bool:
    """Whether a URL names this machine's loopback."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
