"""What the tests of `cacp comply` leave at a node, and how it is removed (comply/cleanup.json)."""

from pydantic import BaseModel, ConfigDict, JsonValue


class CleanupStrict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Removal(CleanupStrict):
    """A JSON-RPC call; `${id}` stands for the id of what is removed."""

    method: str
    params: dict[str, JsonValue] = {}


class CleanupRule(CleanupStrict):
    """Which requests make something. `request` is a JSON-RPC method, or an HTTP method and a path.

    Paths such as `params.action` lead into an object with the members `params` and `result` of a
    call, or `body`, what was sent, of an HTTP request.
    """

    what: str
    """What is made, in the plural."""
    request: str
    where: dict[str, str] = {}
    """Paths, and the text that must be there."""
    id: str | None = None
    """The path of its id; without one there is at most one for each caller."""
    remove: Removal | None = None
    stays: str = ""
    """Why it can't be removed."""


class CleanupRules(CleanupStrict):
    rules: list[CleanupRule]
