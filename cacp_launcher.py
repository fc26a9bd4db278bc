"""Starts `cacp` from its own installation, whatever the caller's folder contains.

Python searches PYTHONPATH, and with `python -m` the current folder, before installed packages: in
a repository with a folder `cli/`, `server/` or `schemas/`, it would import that in place of ours.
This module, whose name nobody else uses, moves them to the end of the path. Every `cacp` starts
here: the script, `python -m cacp_launcher`, and the processes that `cacp` starts (`command`).

A hook runs at every turn of an agent, so this module imports little. Paths are strings, because
pathlib is slow to import.
"""

import os
import sys
from collections.abc import Iterable, Set
from typing import NoReturn

OWN = os.path.dirname(os.path.abspath(__file__))
"""The folder of our packages: `site-packages`, or a checkout."""


def main() -> NoReturn:
    """Run the command in this process's arguments; after `-m`, run one of our modules."""
    sys.path[:] = ordered(sys.path, OWN, _callers())
    if sys.argv[1:2] == ["-m"]:
        import runpy

        del sys.argv[:2]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        sys.exit()
    from cli.entry import main as run

    run()


def command(*words: str) -> list[str]:
    """The argument list of a process that runs `cacp WORDS…` of this installation."""
    return [sys.executable, os.path.join(OWN, "cacp_launcher.py"), *words]


def ordered(path: Iterable[str], own: str, callers: Set[str]) -> list[str]:
    """The module search path in this order: Python's own modules, ours, installed packages, and the
    caller's folders."""

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
    """The caller's entries of the search path: those of PYTHONPATH, and the first entry, which is
    the current folder or that of the program."""
    named = os.environ.get("PYTHONPATH", "")
    callers = {os.path.abspath(entry) for entry in named.split(os.pathsep)} if named else set()
    return callers if sys.flags.safe_path else callers | {sys.path[0]}


if __name__ == "__main__":
    main()
