"""Sends the requests of a probe to one provider, at a rate, and nowhere else."""

import time
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from proof.messages import Headers, WireAnswer, WireRequest, header_of
from proof.mock import MOCK_HEADER
from schemas.plain import one_line

if TYPE_CHECKING:
    import httpx

ANSWER_MAX = 20 * 2**20
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class NoAnswer(Exception):
    """A request had no answer; the message says why. `rule` names it as a failure."""

    def __init__(self, rule: str, why: str) -> None:
        super().__init__(why)
        self.rule = rule


class ProviderGone(NoAnswer):
    """Nothing listens at the provider's address."""


class Halted(BaseException):
    """The probe ends here; the message says why. Nothing that catches failures catches it."""


class _BrokenOff(NoAnswer):
    """A connection ended before an answer came."""


class BaseUrl:
    """The address of a provider: `origin` is its scheme and host, `path` stands before routes.

    Raises ValueError for what is no such address.
    """

    def __init__(self, text: str) -> None:
        right = "a base URL is like http://localhost:8000 or https://api.example.com/v1"
        try:
            parts = urlsplit(text)
            known = parts.scheme in ("http", "https") and bool(parts.hostname)
            extra = bool(parts.query or parts.fragment or parts.username or parts.password)
            _ = parts.port
        except ValueError:
            known, extra = False, False
        if not known or extra:
            raise ValueError(f"{one_line(text, 100)} is no base URL: {right}")
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.path = parts.path.rstrip("/")
        self.is_near = parts.hostname in LOOPBACK


class ProbeSender:
    """Sends to one origin. It follows no redirects.

    `headers` go with each request, and replace its own of the same names. `rate` is in requests
    each second, 0 for as many as there are; `seconds` is the time for all, `timeout` for each.
    """

    def __init__(
        self,
        url: BaseUrl,
        headers: Headers,
        *,
        rate: float,
        seconds: float,
        timeout: float,
        allow_mock: bool,
    ) -> None:
        import httpx

        self.headers, self._allow_mock = headers, allow_mock
        self._pause = 1 / rate if rate else 0.0
        self._deadline = time.monotonic() + seconds
        self._timeout = timeout
        self._next = 0.0
        self._origin = httpx.URL(url.origin)
        self.saw_mock = False
        self._client = partial(
            httpx.Client, timeout=timeout, follow_redirects=False, trust_env=not url.is_near
        )
        self._http = self._client()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def seconds_left(self) -> float:
        """The time that is left for all; below 0 when it is over."""
        return self._deadline - time.monotonic()

    def whole(self, request: WireRequest, headers: Headers | None = None) -> WireRequest:
        """A request with the headers that go with each, or with others in their place."""
        along = self.headers if headers is None else headers
        names = {name.lower() for name, _ in self.headers}
        own = tuple((name, value) for name, value in request.headers if name.lower() not in names)
        return replace(request, headers=(*own, *along))

    def send(self, request: WireRequest, headers: Headers | None = None) -> WireAnswer:
        """The answer to a request, with `headers` in place of those that go with each. Raises
        `NoAnswer`, and `Halted` at the end of the time or in front of a mock."""
        self._wait()
        answer = self._answered(self.whole(request, headers))
        if header_of(answer.headers, MOCK_HEADER) is not None:
            self.saw_mock = True
            if not self._allow_mock:
                raise Halted(
                    "a mock answers there, and a probe of a mock proves nothing: name the "
                    "provider's own address, or try the probe itself with --allow-mock"
                )
        return answer

    def _wait(self) -> None:
        now = time.monotonic()
        if now < self._next:
            time.sleep(self._next - now)
        self._next = max(now, self._next) + self._pause
        if time.monotonic() > self._deadline:
            raise Halted("the time was over; --time-limit gives more")

    def _answered(self, request: WireRequest) -> WireAnswer:
        try:
            return self._sent(request)
        except _BrokenOff as error:
            # A provider may close a connection that waits just when a request is on its way.
            self._http.close()
            self._http = self._client()
            try:
                return self._sent(request)
            except NoAnswer:
                raise error from None

    def _sent(self, request: WireRequest) -> WireAnswer:
        import httpx

        target = self._origin.copy_with(raw_path=request.target.encode("ascii"))
        try:
            with self._http.stream(
                request.method, target, headers=_encoded(request.headers), content=request.body
            ) as response:
                return WireAnswer(
                    response.status_code,
                    tuple(
                        (n.decode("latin-1"), v.decode("latin-1")) for n, v in response.headers.raw
                    ),
                    _body(response, time.monotonic() + self._timeout),
                )
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise ProviderGone("no_answer", one_line(error, 200)) from None
        except httpx.TimeoutException:
            raise NoAnswer("timeout", "There was no answer in time.") from None
        except httpx.HTTPError as error:
            why = one_line(error, 200) or type(error).__name__
            raise _BrokenOff("no_answer", f"It broke off without an answer: {why}") from None


def _encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def _body(response: "httpx.Response", until: float) -> bytes:
    """The body. Raises `NoAnswer` if it is too large, or not whole when time is `until`."""
    parts, size = [], 0
    for part in response.iter_bytes():
        size += len(part)
        if size > ANSWER_MAX:
            raise NoAnswer("too_large", f"The answer is larger than {ANSWER_MAX} bytes.")
        if time.monotonic() > until:
            raise NoAnswer("timeout", "There was no whole answer in time.")
        parts.append(part)
    return b"".join(parts)
