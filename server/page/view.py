"""The views of the page: what each shows, where, and what makes it look again.

A view is a function from a `PageCall` to a JSON-able dict, which is both its `.json` twin and what
its template shows.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

from server.auth.authenticator import Caller
from server.http.routes import AppState
from server.methods import METHODS
from server.methods.base import Context
from server.page.viewer import Viewer
from server.rpc.dispatch import check_access, checked_params

Page = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PageCall:
    """One look at a view, in a read transaction of its own."""

    ctx: Context
    viewer: Viewer
    state: AppState
    path: Mapping[str, str]
    """The parameters of the view's path."""
    query: Mapping[str, str]
    """The query of the request; of a name that is given twice, the last."""

    @property
    def caller(self) -> Caller:
        return self.viewer.caller

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a method that reads, as this caller gets it. Params that are None are left
        out. Raises the method's Refusal."""
        declared = METHODS[method]
        if declared.writes or declared.waits:
            raise ValueError(f"{method} does more than read")
        check_access(declared, self.caller)
        return declared.run(self.ctx, checked_params(declared, self.caller, params))


@dataclass(frozen=True, slots=True)
class View:
    """A view and its place."""

    name: str
    path: str
    title: str
    load: Callable[[PageCall], Page]
    kinds: frozenset[str]
    """The entities of `changes` on which an open page looks again."""

    @property
    def template(self) -> str:
        return f"{self.name}.html"

    @property
    def about(self) -> str:
        """What it shows, in one line."""
        return (self.load.__doc__ or "").strip().split("\n\n")[0]


VIEWS: dict[str, View] = {}
"""Every view by name."""


def view(
    name: str, path: str, *, title: str, kinds: Iterable[str] = ()
) -> Callable[[Callable[[PageCall], Page]], Callable[[PageCall], Page]]:
    """Declare a view. Its template is `templates/NAME.html`; `kinds` are the entities of `changes`
    on which an open page looks again."""

    def declare(load: Callable[[PageCall], Page]) -> Callable[[PageCall], Page]:
        VIEWS[name] = View(name, path, title, load, frozenset(kinds))
        return load

    return declare


@lru_cache(4_096)
def url_of(name: str, /, **params: str | None) -> str:
    """The path of a view; what its path does not name becomes the query."""
    path = VIEWS[name].path
    query: dict[str, str] = {}
    for key, value in params.items():
        place = "{" + key + "}"
        if place in path:
            path = path.replace(place, quote(str(value), safe=""))
        elif value is not None:
            query[key] = value
    return f"{path}?{urlencode(query)}" if query else path
