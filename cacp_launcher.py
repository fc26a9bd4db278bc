"""Starts `cacp` from its own installation, whatever the caller's folder holds.

PYTHONPATH, and with `python -m` the current folder, come before what is installed: in a repository
with a folder `cli/`, `server/` or `schemas/`, that would be imported in place of ours. This module,
whose name nobody else uses, moves them to the end of the path. Every `cacp` starts here: the
script, `python -m cacp_launcher`, and the processes that `cacp` starts itself (`command`).

A hook runs at every turn of an agent, so this imports little: paths are strings, as pathlib is slow
to import.
"""

import os
import sys
from collections.abc import Iterable, Set
from typing import NoReturn

OWN = os.path.dirname(os.path.abspath(__file__))
"""The folder of our packages: `site-packages`, or a checkout."""


def main() -> NoReturn:
    """Run the `cacp` command of this process's arguments, or, after `-m`, one of our modules."""
    sys.path[:] = ordered(sys.path, OWN, _callers())
    if sys.argv[1:2] == ["-m"]:
        import runpy

        del sys.argv[:2]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        sys.exit()
    from cli.entry import main as run

    run()


def command(*words: str) -> list[str]:
    """The words of a process that is `cacp WORDS…` of this installation."""
    return [sys.executable, os.path.join(OWN, "cacp_launcher.py"), *words]


def ordered(path: Iterable[str], own: str, callers: Set[str]) -> list[str]:
    """The module search path with Python's own modules first, then ours, then what is installed,
    and the caller's folders last."""

    def rank(entry: str) -> int:
        if entry == own:
            return 1
        if entry in callers:
            return 3
        return 0 if _is_standard(entry) else 2

    return sorted(dict.fromkeys([*path, own]), key=rank)


def _is_standard(entry: str) -> bool:
    library = os.path.dirname(os.__file__)
    archive = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    zipped = os.path.join(os.path.dirname(library), archive)
    return entry in (library, os.path.join(library, "lib-dynload"), zipped)


def _callers() -> set[str]:
    """Of the search path: what PYTHONPATH names, and the folder that Python puts in front, which is
    the current one or that of the program."""
    named = os.environ.get("PYTHONPATH", "")
    callers = {os.path.abspath(entry) for entry in named.split(os.pathsep)} if named else set()
    return callers if sys.flags.safe_path else callers | {sys.path[0]}


if __name__ == "__main__":
    main()
