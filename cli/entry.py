"""Entry point of `cacp`. A hook runs at every turn of an agent: it starts without the rest."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command of this process's arguments."""
    if sys.argv[1:2] == ["hook"]:
        from cli.hook import asked, run

        hook_call = asked(sys.argv[2:])
        if hook_call is not None:
            sys.exit(run(*hook_call))
    from cli.main import main as every_command

    every_command()
