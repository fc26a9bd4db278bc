"""Set-ups that the tests of a folder share: steps that run before a test's own steps.

`"setup": "proposed"` in a test means the steps of `proposed.setup.json` in the test's folder. A
set-up may build on another in the same way. It runs again for each test, with the test's own
session and variables: a test can change what it set up, and runs alone or beside others.
"""

from pathlib import Path

from comply.source import NotATest, read_as
from schemas.jsont import JsontStep, SharedSetup

SETUP_SUFFIX = ".setup.json"
"""Not the suffix of a test: neither this runner nor another takes a set-up for one."""


class BadSetup(ValueError):
    """A set-up that can't be loaded; the message names its file and line."""


def setup_steps(name: str | None, folder: Path) -> list[JsontStep]:
    """The steps of a set-up and of those it builds on, in the order they run. Raises BadSetup."""
    chain: list[SharedSetup] = []
    seen: set[str] = set()
    while name is not None:
        if name in seen:
            raise BadSetup(f"{name}{SETUP_SUFFIX} builds on itself")
        seen.add(name)
        chain.append(_load(folder / f"{name}{SETUP_SUFFIX}"))
        name = chain[-1].setup
    return [step for setup in reversed(chain) for step in setup.steps]


def _load(path: Path) -> SharedSetup:
    try:
        return read_as(SharedSetup, path.read_text(encoding="utf-8"))
    except NotATest as error:
        raise BadSetup(f"{path.name}:{error.problem.line}: {error.problem.text}") from None
    except FileNotFoundError:
        raise BadSetup(f"{path.name} is missing from the test's folder") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "not UTF-8")
        raise BadSetup(f"{path.name} can't be read: {reason}") from None
