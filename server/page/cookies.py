"""The cookies of the page, and from where a form may be sent.

They count on pages only: `POST /`, `/mcp` and `/events` know keys alone, so no other site can use
them through a browser.
"""

import base64
import binascii
import hashlib
import hmac
import re
from typing import Any
from urllib.parse import urlsplit

import orjson
from starlette.requests import Request

from server.domain.errors import Forbidden
from server.page.viewer import PageMessage
from server.settings import Settings

MESSAGE_SECONDS = 20
"""How long the outcome of an action waits for the page that shows it."""
MESSAGE_MAX = 600
"""Characters of an outcome; a cookie has four kilobytes."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_ORIGIN = re.compile(r"https?://([^/]+)")


class PageCookies:
    """Names, writes and reads the cookies of one node."""

    def __init__(self, settings: Settings, secret: bytes) -> None:
        own = urlsplit(settings.url)
        self.is_secure = own.scheme == "https"
        self._authority = own.netloc.lower()
        self._secret = secret
        # A browser sends a cookie to all ports of a host, where another node may run.
        self.session = "__Host-cacp_page" if self.is_secure else f"cacp_page_{settings.port}"
        self.message = f"{self.session}_message"

    def token_of(self, request: Request) -> str | None:
        """The session's token that the browser shows. Of two none counts: somebody else may have
        set one."""
        shown = self._values(request, self.session)
        return shown[0] if len(shown) == 1 and _TOKEN.fullmatch(shown[0]) else None

    def with_token(self, token: str, seconds: int) -> str:
        """The `Set-Cookie` that gives the browser a token."""
        return self._set(self.session, token, seconds)

    def without_token(self) -> str:
        """The `Set-Cookie` that takes the token away."""
        return self._set(self.session, "", 0)

    def with_message(self, message: PageMessage, path: str, bound: str) -> str:
        """The `Set-Cookie` that shows a message on the page at `path`, within the session whose
        CSRF token is `bound`."""
        text = message.text
        if len(text) > MESSAGE_MAX:
            text = text[: MESSAGE_MAX - 1] + "…"
        body = base64.urlsafe_b64encode(orjson.dumps([message.kind, text, path])).decode()
        return self._set(self.message, f"{body}.{self._seal(body, bound)}", MESSAGE_SECONDS)

    def without_message(self) -> str:
        """The `Set-Cookie` that takes a message away, once it is shown."""
        return self._set(self.message, "", 0)

    def message_for(self, request: Request, bound: str) -> PageMessage | None:
        """The message that the page of this request is to show."""
        shown = self._values(request, self.message)
        body, _, seal = (shown[0] if len(shown) == 1 else "").partition(".")
        if not hmac.compare_digest(seal.encode(), self._seal(body, bound).encode()):
            return None
        try:
            kind, text, path = orjson.loads(base64.urlsafe_b64decode(body))
        except (binascii.Error, ValueError):
            return None
        return PageMessage(kind, text) if urlsplit(path).path == request.url.path else None

    def check_reader(self, request: Request) -> None:
        """Raises Forbidden for what a page of another site, or of another port of this host, loads
        in the background: it may not read the answer, but it would cost, and a browser sends the
        cookie to all ports. Links of other sites are followed."""
        headers = request.headers
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and (
            headers.get("sec-fetch-mode", "navigate") != "navigate"
            or headers.get("sec-fetch-dest", "document") != "document"
        ):
            raise Forbidden(
                "Pages of other sites can link to the pages of this node, not load them",
                reason="foreign_page",
            )

    def check_origin(self, request: Request) -> None:
        """Raises Forbidden for a form that was not sent by a page of this node."""
        site = request.headers.get("sec-fetch-site")
        origin = request.headers.get("origin")
        if site is not None and site != "same-origin":
            raise _foreign()
        if origin is None or origin == "null":
            # A browser that names no site is too old to be told apart from another site's form.
            if site is None:
                raise _foreign()
            return
        match = _ORIGIN.fullmatch(origin.lower())
        own = {request.headers.get("host", "").lower(), self._authority}
        if match is None or _portless(match[1], origin) not in {
            _portless(at, origin) for at in own
        }:
            raise _foreign()

    def _set(self, name: str, value: str, seconds: int) -> str:
        secure = "; Secure" if self.is_secure else ""
        return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"

    def _values(self, request: Request, name: str) -> list[str]:
        pairs = [
            pair.strip().partition("=")
            for header in request.headers.getlist("cookie")
            for pair in header.split(";")
        ]
        return list(dict.fromkeys(value for key, _, value in pairs if key == name))

    def _seal(self, body: str, bound: str) -> str:
        return hmac.new(self._secret, f"{bound}.{body}".encode(), hashlib.sha256).hexdigest()


def _portless(authority: str, origin: Any) -> str:
    """An authority without the port that is its scheme's own."""
    default = ":443" if origin.lower().startswith("https:") else ":80"
    return authority.removesuffix(default)


def _foreign() -> Forbidden:
    return Forbidden(
        "This form was not sent by a page of this node: open the page and try there",
        reason="foreign_form",
    )
