"""Entry point of `cacp`. A hook runs at every turn of an agent: it starts without the rest."""

import gc
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command of this process's arguments."""
    if sys.argv[1:2] == ["hook"]:
        from cli.hook import main as hook

        hook(sys.argv[2:])
    # What a start makes stays: to look through it for garbage takes a tenth of its time.
    gc.set_threshold(200_000)
    from cli.main import main as every_command

    every_command()
