"""Where a node's settings come from, and how they are shown without their secrets."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import SecretStr

from server.settings import Settings

OTHER_VARIABLES = (
    "CACP_CONFIG",
    "CACP_HOOK_SECONDS",
    "CACP_KEY",
    "CACP_URL",
    "CACP_PROMPT_FILE",
    "CACP_STAGING_DIR",
    "CACP_TASK_ID",
    "CACP_THREAD_RUN",
)
"""Variables of the commands, and of agents under `cacp thread`; no settings of a node."""

Origin = Literal["default", "option", "variable", "file"]
SET = "set"
"""What is shown in place of a secret."""


class ShownSetting(NamedTuple):
    """A setting: its value as text, empty without one, never a secret; and who set it."""

    name: str
    value: str
    origin: Origin
    about: str


def shown(settings: Settings, variables: Mapping[str, str]) -> list[ShownSetting]:
    """Every setting, those that are not the default first. `variables` is the environment that the
    settings were read from."""
    every = [
        ShownSetting(
            name,
            _text(getattr(settings, name)),
            _origin(settings, name, variables),
            field.description or "",
        )
        for name, field in Settings.model_fields.items()
    ]
    return sorted(every, key=lambda setting: setting.origin == "default")


def misspelt(variables: Iterable[str]) -> dict[str, str]:
    """The names in `variables` that begin with CACP_ and that nothing reads, each with the most
    similar known name ("" without one)."""
    known = [*OTHER_VARIABLES, *(f"CACP_{name.upper()}" for name in Settings.model_fields)]
    unknown = sorted({name for name in variables if name.startswith("CACP_")} - {*known})
    return {
        name: next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.8)), "")
        for name in unknown
    }


def _origin(settings: Settings, name: str, variables: Mapping[str, str]) -> Origin:
    """Flags override variables, and variables the file."""
    if name == "mesh_token" and settings.mesh_token_file is not None:
        name = "mesh_token_file"
    if name in settings.flags:
        return "option"
    if variables.get(f"CACP_{name.upper()}"):
        return "variable"
    return "file" if name in settings.model_fields_set else "default"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, SecretStr):
        return SET if value.get_secret_value() else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        # The words of a command may hold a secret.
        return ", ".join(value)
    if isinstance(value, tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, Path):
        return str(value)
    return SET if isinstance(value, str) and _has_password(value) else str(value)


def _has_password(text: str) -> bool:
    try:
        return "@" in urlsplit(text).netloc and "://" in text and not text.startswith("aid://")
    except ValueError:
        return True
