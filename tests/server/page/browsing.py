"""A browser as far as sessions need one: it keeps cookies and sends forms."""

import re
from typing import Any

import httpx

from tests.support.node import Node

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
ANY_PAGE = "/ui/nowhere"
"""A page with no content of its own, so that tests of sessions need no view."""
_CSRF = re.compile(r'name="csrf" value="([0-9a-f]{64})"')


class Browser:
    """Calls one node. It sends all cookies that it was given, also those for https only."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.cookies: dict[str, str] = {}
        self.set: list[str] = []
        """The `Set-Cookie` headers of the last response."""

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self._send("GET", path, BROWSER | self._more(headers))

    def post(
        self, path: str, fields: dict[str, str] | bytes = b"", **headers: str
    ) -> httpx.Response:
        """Send a form, from a page of this node unless `origin` says otherwise."""
        given = BROWSER | {"origin": self.node.url} | self._more(headers)
        if isinstance(fields, dict):
            return self._send("POST", path, given, data=fields)
        form = {"content-type": "application/x-www-form-urlencoded"}
        return self._send("POST", path, form | given, content=fields)

    def sign_in(self, key: str, next: str = "/ui") -> httpx.Response:
        return self.post("/ui/sign-in", {"key": key, "next": next})

    @property
    def csrf(self) -> str:
        """The token of the forms of this session."""
        match = _CSRF.search(self.get(ANY_PAGE).text)
        assert match is not None, "nobody is signed in"
        return match[1]

    @property
    def session(self) -> str:
        """The name of the session's cookie."""
        (name,) = [name for name in self.cookies if not name.endswith("_message")]
        return name

    def act(self, action: str, **fields: str) -> httpx.Response:
        return self.post(f"/ui/actions/{action}", {"csrf": self.csrf, "next": ANY_PAGE, **fields})

    def outcome(self, action: str, **fields: str) -> str:
        """What the page says after an action."""
        response = self.act(action, **fields)
        assert response.status_code == 303, response.text
        shown = self.get(response.headers["location"]).text
        match = re.search(r'<p class="note" data-kind="(\w+)">([^<]*)</p>', shown)
        assert match is not None, shown
        return f"{match[1]}: {match[2]}"

    def _send(self, verb: str, path: str, headers: dict[str, str], **body: Any) -> httpx.Response:
        if self.cookies:
            headers = headers | {"cookie": "; ".join(f"{k}={v}" for k, v in self.cookies.items())}
        response: httpx.Response = httpx.request(
            verb, self.node.url + path, headers=headers, timeout=30, **body
        )
        self.set = response.headers.get_list("set-cookie")
        for cookie in self.set:
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
            if "Max-Age=0" in cookie:
                del self.cookies[name]
        return response

    @staticmethod
    def _more(headers: dict[str, str]) -> dict[str, str]:
        return {name.replace("_", "-"): value for name, value in headers.items()}
