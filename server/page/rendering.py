"""Pages as HTML: the templates, and what they may call."""

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from schemas.base import iso
from server.page.actions import ACTIONS
from server.page.assets import asset_url
from server.page.view import VIEWS, url_of

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "min"))


@cache
def templates() -> Environment:
    """The environment of all templates: it escapes, and a name that is not there is an error."""
    made = Environment(
        loader=PackageLoader("server.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(actions=ACTIONS, once=once)
    made.globals.update(url=url_of, asset=asset_url, views=VIEWS, page_query=page_query)
    made.filters["short_agent"] = short_agent
    made.filters["moment"] = moment
    made.policies["json.dumps_kwargs"] = {"sort_keys": False}
    return made


def render(template: str, *, now: int, **shown: Any) -> str:
    """A template as text. `now` is what ages are counted from, in microseconds since 1970."""
    return templates().get_template(template).render(shown, ago=partial(ago, now), now=iso(now))


def once() -> str:
    """The id of a form, by which a double click is one call."""
    return secrets.token_urlsafe(12)


def page_query(query: Mapping[str, str], name: str, value: str | None) -> str:
    """The query of a request, with one value replaced, or left out for None."""
    kept = {key: each for key, each in query.items() if key != name}
    return urlencode(kept if value is None else kept | {name: value})


def moment(stamp: int | str) -> str:
    """A time as ISO 8601: of a stamp, or as it is."""
    return iso(stamp) if isinstance(stamp, int) else stamp


def ago(now: int, since: int | str) -> str:
    """The age of a time in the largest unit that it fills: "3 min", "2 days"; "now" under a
    minute, and for what a clock ahead of this one's says."""
    if isinstance(since, str):
        since = int(datetime.fromisoformat(since).replace(tzinfo=UTC).timestamp() * 1_000_000)
    seconds = (now - since) // 1_000_000
    for size, unit in _UNITS:
        count = seconds // size
        if count >= 1:
            return f"{count} {unit}{'s' if count > 1 and unit != 'min' else ''}"
    return "now"


def short_agent(agent_id: str) -> str:
    """The last part of an agent's id, which names it among others: `aid://example.com/web@1.0.0` is
    `web`. An id of another shape stays whole."""
    if not agent_id.startswith("aid://"):
        return agent_id
    return agent_id.rpartition("/")[2].partition("@")[0] or agent_id
