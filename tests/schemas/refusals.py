"""How a model refuses: the place and the message of its only error."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError


def refusal(model: type[BaseModel], sent: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(sent)
    (error,) = refused.value.errors()
    return ".".join(str(step) for step in error["loc"]), error["msg"]


def without(sent: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in sent.items() if key != name}
