"""Pages as HTML: the templates, and what they may call."""

import secrets
from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markupsafe import Markup

from schemas.stamps import iso, stamp_of
from server.page.actions import ACTIONS
from server.page.assets import asset_url
from server.page.view import VIEWS, url_of

if TYPE_CHECKING:
    from server.page.environment import PageTemplates

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "min"))

_AGENT = Markup('<bdi class="agent" title="%s">%s</bdi>')
_BADGE = Markup('<span class="badge" data-state="%s">%s</span>')
_AGO = Markup('<time datetime="%s" title="%s" data-ago="ago">%s</time>')
_LASTING = Markup('<time datetime="%s" title="%s" data-ago>%s</time>')


@cache
def templates() -> "PageTemplates":
    """The environment of all templates, with what they may call."""
    from server.page.environment import PageTemplates

    made = PageTemplates()
    made.globals.update(actions=ACTIONS, once=once)
    made.globals.update(url=url_of, asset=asset_url, views=VIEWS, page_query=page_query)
    made.globals.update(agent_name=agent_name, state_badge=state_badge)
    made.filters["short_agent"] = short_agent
    made.filters["moment"] = moment
    return made


def render(template: str, *, now: int, **shown: Any) -> str:
    """A template as text. `now` is what ages are counted from, in microseconds since 1970."""
    ages = {
        "ago": partial(ago, now),
        "aged": partial(aged, now),
        "duration": partial(lasting, now),
    }
    return templates().get_template(template).render(shown, **ages, now=iso(now))


# The smallest parts of pages stand in each row several times: functions cost a third of macros.


def agent_name(agent_id: str) -> Markup:
    """The name of an agent, with its whole id for who needs it."""
    return _AGENT % (agent_id, short_agent(agent_id))


def state_badge(name: str, label: str | None = None) -> Markup:
    """A state as a badge: its name is always there, its colour only helps."""
    return _BADGE % (name, label or name.replace("_", " "))


def aged(now: int, at: int | str) -> Markup:
    """How long ago something was: `at` is a stamp or ISO 8601."""
    when, age = moment(at), ago(now, at)
    return _AGO % (when, when, age if age == "now" else f"{age} ago")


def lasting(now: int, since: int | str) -> Markup:
    """How long something lasts: `since` is a stamp or ISO 8601."""
    when = moment(since)
    return _LASTING % (when, when, ago(now, since))


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
        since = stamp_of(since)
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
