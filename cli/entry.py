"""What `cacp_launcher` runs: a hook, which starts at every turn of an agent, without the rest."""

import os
import sys
from typing import NoReturn

DEFAULT_URL = "http://127.0.0.1:8080"


def main() -> NoReturn:
    """Run the command of this process's arguments."""
    asked = hook_of(sys.argv[1:])
    if asked is not None:
        from cli.hook import run

        sys.exit(run(*asked))
    from cli.main import main as every_command

    every_command()


def hook_of(words: list[str]) -> tuple[str, str | None, str, str | None] | None:
    """Agent, event, URL and key, as `cli.hook.run` takes them, of `hook AGENT [EVENT] [--url URL]`;
    None for any other command."""
    if words[:1] != ["hook"]:
        return None
    url = os.environ.get("CACP_URL") or DEFAULT_URL
    rest = words[1:]
    if "--url" in rest[:-1]:
        place = rest.index("--url")
        url = rest[place + 1]
        rest = rest[:place] + rest[place + 2 :]
    if not 1 <= len(rest) <= 2 or any(word.startswith("-") for word in rest):
        return None
    return rest[0], rest[1] if len(rest) == 2 else None, url, os.environ.get("CACP_KEY") or None
