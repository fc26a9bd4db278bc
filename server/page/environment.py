"""Jinja's environment, as pages need it. It is slow to import, and needed with the first page."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.runtime import Context

_MEMBERS_OF_DICTS = frozenset(dir(dict))


class _PageContext(Context):
    """Calls what needs nothing of the context, which is nearly all, without further looks at it."""

    def call(self, called: Any, /, *args: Any, **kwargs: Any) -> Any:
        if hasattr(called, "jinja_pass_arg"):
            return super().call(called, *args, **kwargs)
        kwargs.pop("_block_vars", None)
        kwargs.pop("_loop_vars", None)
        return called(*args, **kwargs)


class PageTemplates(Environment):
    """Escapes, and a name that is not there is an error. Reads members of dicts first: pages are
    made of them, and Jinja would try attributes."""

    context_class = _PageContext

    def __init__(self) -> None:
        super().__init__(
            loader=PackageLoader("server.page"),
            auto_reload=False,
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.policies["json.dumps_kwargs"] = {"sort_keys": False}

    def getattr(self, obj: Any, attribute: str) -> Any:
        if type(obj) is dict and attribute in obj and attribute not in _MEMBERS_OF_DICTS:
            return obj[attribute]
        return super().getattr(obj, attribute)
