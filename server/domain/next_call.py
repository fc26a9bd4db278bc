"""A call that a model can make next, written out."""

import json
from collections.abc import Mapping
from typing import Any


def next_call(tool: str, params: Mapping[str, Any], fill: Mapping[str, str] | None = None) -> str:
    """A tool with its arguments as a code span; `fill` names the arguments that the model decides.

    >>> next_call("cacp_contract_respond", {"version": 2}, {"action": "agree or request_change"})
    'cacp_contract_respond with `{"version": 2}`; you decide action: agree or request_change'
    """
    # Ids from outside may hold backticks, which would end the span.
    arguments = json.dumps(dict(params)).replace("`", "\\u0060")
    decided = "; ".join(f"{name}: {about}" for name, about in (fill or {}).items())
    return f"{tool} with `{arguments}`" + (f"; you decide {decided}" if decided else "")
