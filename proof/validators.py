"""Checks values against schemas that stand alone (`contracts.standalone`). Nothing is fetched."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from schemas.plain import one_line

if TYPE_CHECKING:
    import jsonschema_rs

REPAIRS_MAX = 50
PROBLEMS_MAX = 5
WHY_MAX = 300


class Misfit(NamedTuple):
    """Where a value breaks its schema, as a JSON pointer ("" for the whole), and why."""

    where: str
    why: str


class SchemaValidator:
    """A schema, ready to check values.

    `ignored` names, by JSON pointer, the keywords that no validator can read, such as a pattern
    in another language's syntax: they are not checked.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        import jsonschema_rs

        self.schema: dict[str, Any] = dict(schema)
        self.ignored: tuple[str, ...] = ()
        for _ in range(REPAIRS_MAX):
            try:
                self._validator = _compiled(self.schema)
                return
            except jsonschema_rs.ValidationError as error:
                self.ignored += ("".join(f"/{step}" for step in error.instance_path),)
                self.schema = _without(self.schema, list(error.instance_path))
        self.ignored += ("",)
        self.schema = {}
        self._validator = _compiled(self.schema)

    def accepts(self, value: Any) -> bool:
        """Whether a value fits. What is no JSON, such as half a character, doesn't."""
        try:
            return self._validator.is_valid(value)
        except ValueError:
            return False

    def misfits(self, value: Any) -> list[Misfit]:
        """Where a value doesn't fit, the first places of it."""
        misfits: list[Misfit] = []
        try:
            for error in self._validator.iter_errors(value):
                where = "".join(f"/{step}" for step in error.instance_path)
                misfits.append(Misfit(one_line(where, WHY_MAX), one_line(error.message, WHY_MAX)))
                if len(misfits) == PROBLEMS_MAX:
                    break
        except ValueError as error:
            misfits.append(Misfit("", one_line(error, WHY_MAX)))
        return misfits


def _compiled(schema: dict[str, Any]) -> "jsonschema_rs.Draft202012Validator":
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True, offline=True)


def _without(value: Any, path: list[str | int]) -> Any:
    """A value without what stands at a path; without its last object's member, that is."""
    if not path:
        return {}
    if isinstance(value, dict):
        name = str(path[0])
        if len(path) == 1 or not isinstance(value.get(name), dict | list):
            return {key: part for key, part in value.items() if key != name}
        return value | {name: _without(value[name], path[1:])}
    if isinstance(value, list) and len(path) > 1:
        place = int(path[0])
        return [*value[:place], _without(value[place], path[1:]), *value[place + 1 :]]
    return {}
