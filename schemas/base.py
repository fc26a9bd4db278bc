"""The common base of all wire models: naming, strictness, limits, times."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from schemas.stamps import iso as iso
from schemas.stamps import stamp_of as stamp_of

NAME_MAX = 200
TEXT_MAX = 20_000
LIST_MAX = 1_000

Identifier = Annotated[str, StringConstraints(min_length=1, max_length=NAME_MAX)]
"""An id or a name: 1 to 200 characters."""

Cursor = Annotated[str, StringConstraints(min_length=1, max_length=NAME_MAX + 20)]
"""The end of a page, from `nextCursor`: a stamp and an id."""

Text = Annotated[str, StringConstraints(max_length=TEXT_MAX)]
"""Prose: up to 20,000 characters."""

Strings = Annotated[
    list[Annotated[str, StringConstraints(max_length=4_000)]], Field(max_length=LIST_MAX)
]
"""Up to 1,000 strings (paths, ids, options) of up to 4,000 characters."""

Endpoint = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
"""An http(s) URL. Whether the node may call it is `server.domain.endpoints`' decision."""

COMMIT_PATTERN = "^(?:[0-9a-f]{40}|[0-9a-f]{64})$"
Commit = Annotated[str, StringConstraints(pattern=COMMIT_PATTERN)]
"""The hash of a git commit or tree, in full."""

SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON implementation reads alike, and that has a canonical form
(RFC 8785, 3.2.2.3): a larger one could be neither signed nor sent on."""

Count = Annotated[int, Field(ge=0, le=SAFE_INTEGER)]

Stamp = Annotated[int, Field(ge=0, le=SAFE_INTEGER)]
"""Microseconds since 1970, up to the year 2255."""

ORDINAL_MAX = 1_000_000

Ordinal = Annotated[int, Field(ge=1, le=ORDINAL_MAX)]
"""The number of a version or a round, from 1. They grow one by one, so the limit is reached only by
skipping numbers."""

JsonObject = dict[str, Any]
"""Any JSON object. Its values were parsed from JSON, so they need no check."""


def present(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members that are not None: on the wire they are absent, never null (CACP 2.0)."""
    return {name: value for name, value in members.items() if value is not None}


def check_time(value: Any) -> Any:
    """Raises ValueError for text that is not a time."""
    if isinstance(value, str):
        try:
            stamp_of(value)
        except (ValueError, OverflowError):
            raise ValueError(
                "should be an ISO 8601 time such as 2026-02-21T09:30:00.000000+00:00"
            ) from None
    return value


Timestamp = Annotated[str, StringConstraints(max_length=64), BeforeValidator(check_time)]
"""ISO 8601. The node sends UTC with six digits of fraction; a time without offset is UTC."""


class Model(BaseModel):
    """A model that is built when it is first used, in a few milliseconds: to build all of them took
    a fifth of the start of a node."""

    model_config = ConfigDict(defer_build=True)


class WireObject(Model):
    """A data type of the protocol: snake_case members, as in the spec's Data Types."""

    model_config = ConfigDict(extra="forbid")


class Params(Model):
    """Params of a method: camelCase members; an unknown one or one of a wrong type is refused."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True)


class Result(Model):
    """Result of a method: camelCase members."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="forbid"
    )
