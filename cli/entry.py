"""Entry point of `cacp`: a hook, which runs at every turn of an agent, starts without the rest."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command of this process's arguments."""
    if sys.argv[1:2] == ["hook"]:
        from cli.hook import asked, run

        found = asked(sys.argv[2:])
        if found is not None:
            sys.exit(run(*found))
    from cli.main import main as every_command

    every_command()
